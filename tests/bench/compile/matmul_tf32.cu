#include "gpukit.cuh"

__global__ void nothing() {}
int main() {
  float *in = NULL, *out = NULL;
  gk_matmul_opts opts = {};
  nothing<<<1, 1>>>();
  GK_CHECK(gk_matmul_ex<GK_PRECISION_TF32>(in, in, out, 0, 0, 0, &opts));
  return cudaDeviceSynchronize() != cudaSuccess;
}
