/* The header among macros of all the names that the manual promises not to mind: its code has none of them, or hides it
 * and gives it back. headers.sh makes the lists. CUDA's own headers come first, as in every .cu file; the stand-in compiles
 * the C API and the calls of several ranks, too. */
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <atomic>
#include <type_traits>
#ifdef CUDA_ON_CPU
#include <nccl.h>
#define GPUKIT_NCCL
#define GPUKIT_C_API
#endif

#include "macro_names_before.h"
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#include "macro_names_after.h"

__global__ void scale(float *x, size_t n, float by) {
  GK_FOR_1D (i, n) x[i] *= by;
}

int main() {
  const size_t edge = 40, n = edge * edge;
  float *x = NULL, *y = NULL, sum = 0;
  GK_CHECK(cudaMalloc(reinterpret_cast<void **>(&x), n * sizeof(float)));
  GK_CHECK(cudaMalloc(reinterpret_cast<void **>(&y), n * sizeof(float)));
  GK_CHECK(cudaMemset(x, 0, n * sizeof(float)));
  GK_TIME ("names", 0) GK_LAUNCH(scale, gk_grid_1d(n, 256), 256, 0, 0, x, n, 2.0f);
  GK_CHECK(gk_matmul(x, x, y, edge, edge, edge));
  GK_CHECK(gk_scan_inclusive(y, y, n, gk_op_sum()));
  GK_CHECK(gk_reduce_sum(y, x, n));
  GK_CHECK(cudaMemcpy(&sum, x, sizeof(sum), cudaMemcpyDeviceToHost));
  GK_CHECK(cudaFree(x));
  GK_CHECK(cudaFree(y));
  return sum != 0;
}
