#include "gpukit.cuh"

__global__ void nothing() {}
int main() {
  float *in = NULL, *out = NULL;
  nothing<<<1, 1>>>();
  GK_CHECK(gk_scan_exclusive(in, out, 0, gk_op_sum()));
  return cudaDeviceSynchronize() != cudaSuccess;
}
