/* A kernel of which ptxas has to complain, since its sums are read while they are made: inspect.sh. */
#include <cuda_bf16.h>
#include "gpukit.cuh"

__global__ void serialised(float *x, uint64_t a, uint64_t b, int n) {
#ifdef GK__PASS_SM_90A
  float sums[32] = {};
  for (int i = 0; i < n; i++) {
    gk__ptx_wgmma_fence();
    gk__ptx_wgmma<1, 0, 0>(sums, a, b, 1);
    gk__ptx_wgmma_commit_group();
    for (int j = 0; j < 32; j++) sums[j] += 1;
  }
  gk__wgmma_wait(sums);
  for (int j = 0; j < 32; j++) x[j] = sums[j];
#endif
}
