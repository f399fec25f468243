/* One part of a program, whose main is parts.cpp: compiled in many ways, and linked with itself compiled in others. What
 * it checks is that it meets its own gpukit: its version's kernels, and the error detail of its own calls. */
#ifdef OTHER_VERSION /* in which a sum is a product that starts from 0 */
#include "other/gpukit.cuh"
#else
#include "gpukit.cuh"
#endif
#include <string.h>
#include "register.h"

namespace {

__global__ void fill(float *x, size_t n) {
  GK_DYNAMIC_SHARED(float, ones);
  ones[gk_thread_rank()] = 1;
  __syncthreads();
  GK_FOR_1D (i, n) x[i] = ones[gk_thread_rank()];
}

const char *check() {
  const size_t n = 5000;
  const float sum_expected = GPUKIT_VERSION_MINOR == 2 ? static_cast<float>(n) : 0.0f;
  float *x = NULL, last = 0, sum = -1;
  gk_timer timer = gk_timer();
  float ms = -1;
  if (gk_timer_create(&timer) != cudaSuccess || gk_timer_start(&timer, 0) != cudaSuccess) return "the timer";
  if (cudaMalloc(reinterpret_cast<void **>(&x), (n + 1) * sizeof(float)) != cudaSuccess) return "cudaMalloc";
  GK_LAUNCH(fill, gk_grid_1d(n, 128), 128, 128 * sizeof(float), 0, x, n);
  if (gk_reduce_sum(x, x + n, n) != cudaSuccess) return "gk_reduce_sum";
  if (gk_scan_inclusive(x, x, n, gk_op_max()) != cudaSuccess) return "gk_scan_inclusive";
  if (cudaMemcpy(&sum, x + n, sizeof(sum), cudaMemcpyDefault) != cudaSuccess) return "cudaMemcpy";
  if (cudaMemcpy(&last, x + n - 1, sizeof(last), cudaMemcpyDefault) != cudaSuccess) return "cudaMemcpy";
  if (gk_timer_stop(&timer) != cudaSuccess || gk_timer_ms(&timer, &ms) != cudaSuccess || ms < 0) return "the timer";
  if (gk_timer_destroy(&timer) != cudaSuccess || cudaFree(x) != cudaSuccess) return "what ends";
  if (sum != sum_expected) return "the sum is that of another version";
  if (last != 1) return "the scan";
  const float *const nothing = NULL;
  if (gk_host_reduce(nothing, &sum, 1, gk_op_sum()) == cudaSuccess) return "a null pointer is no error";
  if (!strstr(gk_error_detail(), "gk_host_reduce")) return "the detail is that of another gpukit";
  gk_set_error_handler(NULL, NULL);
  return NULL;
}

const part_registered registered(check, __FILE__);

} // namespace
