/* One part of a program, whose main is parts.cpp: a product on tensor cores. What it checks is that there is one where
 * some files have code for sm_90a and others have not, and the linker merges what both have. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include "gpukit.cuh"
#include "register.h"

namespace {

#ifdef OF_HALF
typedef __half element;
#else
typedef __nv_bfloat16 element;
#endif

__global__ void fill(element *x, size_t n, float value) {
  GK_FOR_1D (i, n) x[i] = element(value);
}
__global__ void count_wrong(const element *x, size_t n, float expected, unsigned *wrong) {
  GK_FOR_1D (i, n)
    if (static_cast<float>(x[i]) < expected || static_cast<float>(x[i]) > expected) atomicAdd(wrong, 1u);
}

const char *check() {
  const size_t edge = 256, n = edge * edge;
  element *x = NULL, *c = NULL;
  unsigned *wrong = NULL, count = 1;
  if (cudaMalloc(reinterpret_cast<void **>(&x), n * sizeof(element)) != cudaSuccess ||
      cudaMalloc(reinterpret_cast<void **>(&c), n * sizeof(element)) != cudaSuccess ||
      cudaMalloc(reinterpret_cast<void **>(&wrong), sizeof(count)) != cudaSuccess)
    return "cudaMalloc";
  GK_LAUNCH(fill, gk_grid_1d(n, 256), 256, 0, 0, x, n, 0.5f);
  GK_LAUNCH(fill, gk_grid_1d(n, 256), 256, 0, 0, c, n, 0.0f);
  if (cudaMemset(wrong, 0, sizeof(count)) != cudaSuccess) return "cudaMemset";
  if (gk_matmul(x, x, c, edge, edge, edge) != cudaSuccess) return "gk_matmul";
  GK_LAUNCH(count_wrong, gk_grid_1d(n, 256), 256, 0, 0, c, n, 64.0f, wrong);
  if (cudaMemcpy(&count, wrong, sizeof(count), cudaMemcpyDefault) != cudaSuccess) return "cudaMemcpy";
  if (cudaFree(x) != cudaSuccess || cudaFree(c) != cudaSuccess || cudaFree(wrong) != cudaSuccess) return "cudaFree";
  return count ? "the product" : NULL;
}

const part_registered registered(check, __FILE__);

} // namespace
