/* Hopper's kernels, for what ptxas has to say about them: wgmma.sh. SERIALISED makes one that it has to complain of,
 * whose sums are read while they are made. */
#include <cuda_bf16.h>
#include "gpukit.cuh"

#ifdef SERIALISED
__global__ void serialised(float *x, uint64_t a, uint64_t b, int n) {
#ifdef GK__WGMMA_CODE
  float sums[32] = {};
  for (int i = 0; i < n; i++) {
    gk__wgmma_begin();
    gk__wgmma<64, 1, 0, 0>::multiply(sums, a, b, 1);
    gk__wgmma_commit();
    for (int j = 0; j < 32; j++) sums[j] += 1;
  }
  gk__wgmma_finish(sums);
  for (int j = 0; j < 32; j++) x[j] = sums[j];
#endif
}
#else
template struct gk__wgmma_tiles<1, __nv_bfloat16, __nv_bfloat16>;
template struct gk__wgmma_split_tiles<1, __nv_bfloat16, __nv_bfloat16>;
template struct gk__wgmma_tiles<1, float, float>;
template struct gk__wgmma_tiles<6, __nv_bfloat16, float>;
template struct gk__wgmma_tiles<9, __nv_bfloat16, float>;
template cudaError_t gk__tf32_launch<gk__tf32_shape<256, 4, true>>(const gk__tensor_args<float, float> &, unsigned, int,
                                                                   cudaStream_t);
template cudaError_t gk__tf32_launch<gk__tf32_shape<128, 6, true>>(const gk__tensor_args<float, float> &, unsigned, int,
                                                                   cudaStream_t);
template cudaError_t gk__tf32_launch<gk__tf32_shape<256, 4>>(const gk__tensor_args<float, float> &, unsigned, int,
                                                             cudaStream_t);
template cudaError_t gk__tf32_launch<gk__tf32_shape<192, 5>>(const gk__tensor_args<float, float> &, unsigned, int,
                                                             cudaStream_t);
template cudaError_t gk__tf32_launch<gk__tf32_shape<128, 6>>(const gk__tensor_args<float, float> &, unsigned, int,
                                                             cudaStream_t);
template cudaError_t gk__tf32_launch<gk__tf32_shape<64, 9>>(const gk__tensor_args<float, float> &, unsigned, int,
                                                            cudaStream_t);
#endif
