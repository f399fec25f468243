/* Products of every type, for inspect.sh: every kernel that gk_matmul_ex has. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T> static cudaError_t product(const void *a, const void *b, void *c, size_t n, gk_matmul_opts opts) {
  return gk_matmul_ex(static_cast<const T *>(a), static_cast<const T *>(b), static_cast<T *>(c), n, n, n, &opts, 0);
}
cudaError_t products(const void *a, const void *b, void *c, size_t n, const gk_matmul_opts &opts);
cudaError_t products(const void *a, const void *b, void *c, size_t n, const gk_matmul_opts &opts) {
  GK_TRY(product<float>(a, b, c, n, opts));
  GK_TRY(product<double>(a, b, c, n, opts));
  GK_TRY(product<__half>(a, b, c, n, opts));
  return product<__nv_bfloat16>(a, b, c, n, opts);
}
