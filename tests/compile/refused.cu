/* What cannot work, each by its macro: the compiler has to say why. */
#ifdef INSIDE_A_NAMESPACE
namespace mine {
#include "gpukit.cuh"
}
#else
#include "gpukit.cuh"
#endif

#ifdef MISTAKE_NO_SIZE
cudaError_t mistake(const float *x, float *sum);
cudaError_t mistake(const float *x, float *sum) {
  gk_device_info info;
  gk_arg<float> nothing = gk_device_query(info);
  return gk_reduce(x, sum, nothing);
}
#endif

#ifdef MISTAKE_UNREAD
void mistake(const float *x, float *sum);
void mistake(const float *x, float *sum) {
  gk_device_print(-1);
  gk_reduce_sum(x, sum, 1);
}
#endif
