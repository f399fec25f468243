#include "gpukit.cuh"

__global__ void nothing() {}
int main() {
  float *in = NULL, *out = NULL;
  nothing<<<1, 1>>>();
  GK_CHECK(gk_reduce_sum(in, out, 0));
  return cudaDeviceSynchronize() != cudaSuccess;
}
