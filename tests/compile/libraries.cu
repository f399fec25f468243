/* The toolkit's own libraries in one file with the header, before it and (GPUKIT_FIRST) after it. The stand-in has the
 * first of them only. */
#ifdef GPUKIT_FIRST
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#endif
#include <cooperative_groups.h>
#ifndef CUDA_ON_CPU
#include <cooperative_groups/reduce.h>
#include <cub/cub.cuh>
#include <cublas_v2.h>
#include <thrust/device_ptr.h>
#include <thrust/reduce.h>
#endif
#ifndef GPUKIT_FIRST
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#endif

namespace cg = cooperative_groups;

__global__ void sum_of_warp(const float *in, float *out) {
  const cg::thread_block block = cg::this_thread_block();
  const float sum = gk_warp_reduce(in[block.thread_rank()], gk_sum<float>());
  block.sync();
  if (gk_thread_rank() == 0) *out = sum;
}

int main() {
  const size_t n = 32;
  float ones[n], *in = NULL, *out = NULL, sum = 0;
  for (size_t i = 0; i < n; i++) ones[i] = 1;
  GK_CHECK(cudaMalloc(reinterpret_cast<void **>(&in), sizeof(ones)));
  GK_CHECK(cudaMalloc(reinterpret_cast<void **>(&out), 3 * sizeof(float)));
  GK_CHECK(cudaMemcpy(in, ones, sizeof(ones), cudaMemcpyHostToDevice));
  GK_LAUNCH(sum_of_warp, 1, 32, 0, 0, in, out);
  GK_CHECK(gk_reduce_sum(in, out + 1, n));
  GK_CHECK(cudaMemcpy(&sum, out, sizeof(sum), cudaMemcpyDeviceToHost));
  int wrong = sum != n;
  GK_CHECK(cudaMemcpy(&sum, out + 1, sizeof(sum), cudaMemcpyDeviceToHost));
  wrong += sum != n;
#ifndef CUDA_ON_CPU
  size_t bytes = 0;
  void *temporary = NULL;
  cublasHandle_t handle;
  GK_CHECK(cub::DeviceReduce::Sum(temporary, bytes, in, out + 2, static_cast<int>(n)));
  GK_CHECK(cudaMalloc(&temporary, bytes));
  GK_CHECK(cub::DeviceReduce::Sum(temporary, bytes, in, out + 2, static_cast<int>(n)));
  GK_CHECK(cudaMemcpy(&sum, out + 2, sizeof(sum), cudaMemcpyDeviceToHost));
  GK_CHECK(cudaFree(temporary));
  wrong += sum != n;
  wrong += thrust::reduce(thrust::device_pointer_cast(in), thrust::device_pointer_cast(in + n)) != n;
  GK_CHECK(cublasCreate(&handle));
  GK_CHECK(cublasSasum(handle, static_cast<int>(n), in, 1, &sum));
  GK_CHECK(cublasDestroy(handle));
  wrong += sum != n;
#endif
  GK_CHECK(cudaFree(in));
  GK_CHECK(cudaFree(out));
  return wrong;
}
