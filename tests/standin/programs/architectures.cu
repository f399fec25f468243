// What depends on __CUDA_ARCH__ and __CUDACC__: bodies of kernels, functions for both sides, what old GPUs lack; and
// macros by which headers know that CUDA's own have been included.
#include <cuda_runtime.h>
#include <stdio.h>

#if !defined(__CUDACC__) || !defined(__CUDA_RUNTIME_H__) || !defined(__DRIVER_TYPES_H__)
#error "headers ask for these"
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600
__device__ double atomicAdd(double *, double); // all that is compiled for here has it
#endif

__host__ __device__ inline int half(int x) {
#ifdef __CUDA_ARCH__
  return __float2int_rd(0.5f * (float)x);
#else
  return x / 2;
#endif
}

__device__ int generation() {
#if __CUDA_ARCH__ >= 700
  return __CUDA_ARCH__ / 10;
#else
  return 0;
#endif
}

__global__ void fill(int *p, double *sum) {
#if __CUDA_ARCH__ >= 700
  p[threadIdx.x] = half(2 * (int)threadIdx.x) + (generation() >= 70 ? 0 : 1000);
  atomicAdd(sum, 1.0);
#endif
}

int main() {
  int *p;
  double *sum;
  cudaMallocManaged(&p, 32 * sizeof *p);
  cudaMallocManaged(&sum, sizeof *sum);
  *sum = 0;
  fill<<<1, 32>>>(p, sum);
  bool right = cudaDeviceSynchronize() == cudaSuccess && *sum == 32 && half(9) == 4;
  for (int i = 0; i < 32; i++) right = right && p[i] == i;
  cudaFree(p);
  cudaFree(sum);
  puts(right ? "ok" : "wrong");
  return !right;
}
