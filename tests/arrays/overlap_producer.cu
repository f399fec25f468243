/* The kernel that test_overlap.cu's calls have to wait for. In a file of its own, so that it can be compiled for the
 * GPU at hand, and let what comes next start early, where those calls are PTX that knows nothing of it. */
#include <cuda_runtime.h>

/* Writes round + i % 7 into its elements, late. Its blocks end at different times. */
__global__ static void slow_producer_kernel(float *x, size_t n, const unsigned *round) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;"); /* what comes next may start now, and has to wait by itself */
#endif
#ifdef __CUDA_ARCH__
  const long long start = clock64();
  while (clock64() - start < 20000 + 2000 * (blockIdx.x % 8)) {}
#endif
  const float base = static_cast<float>(*round);
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    x[i] = base + static_cast<float>(i % 7);
}

cudaError_t slow_producer(float *x, size_t n, const unsigned *round, cudaStream_t stream);
cudaError_t slow_producer(float *x, size_t n, const unsigned *round, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = 64;
  config.blockDim = 256;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, slow_producer_kernel, x, n, round);
}
