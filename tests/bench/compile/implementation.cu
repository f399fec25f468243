#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

__global__ void nothing() {}
int main() {
  nothing<<<1, 1>>>();
  return cudaDeviceSynchronize() != cudaSuccess;
}
