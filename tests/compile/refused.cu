/* What cannot work, each by its macro: the compiler has to say why. */
#ifdef INSIDE_A_NAMESPACE
namespace mine {
#include "gpukit.cuh"
}
#elif defined(INSIDE_EXTERN_C)
extern "C" {
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

#ifdef MISTAKE_NO_HALF
cudaError_t mistake(const __nv_bfloat16 *x, __nv_bfloat16 *y, float *z);
cudaError_t mistake(const __nv_bfloat16 *x, __nv_bfloat16 *y, float *z) {
#if MISTAKE_NO_HALF == 1
  (void)z;
  return gk_matmul(x, x, y, 64, 64, 64);
#elif MISTAKE_NO_HALF == 2
  (void)y;
  return gk_reduce_sum(x, z, 64);
#elif MISTAKE_NO_HALF == 3
  (void)z;
  return gk_scan_inclusive(x, y, 64, gk_op_sum());
#elif MISTAKE_NO_HALF == 4
  (void)z;
  return gk_host_matmul(x, x, y, 64, 64, 64);
#endif
}
#endif

#ifdef MISTAKE_OPERATOR
struct add {
  __host__ __device__ float operator()(float x, float y) const { return x + y; }
};
struct add_from_zero : add { /* an int */
  __host__ __device__ int identity() const { return 0; }
};
#if MISTAKE_OPERATOR <= 3
cudaError_t mistake(const float *x, float *y);
cudaError_t mistake(const float *x, float *y) {
#if MISTAKE_OPERATOR == 1
  return gk_reduce(x, y, 64, add());
#elif MISTAKE_OPERATOR == 2
  return gk_scan_exclusive(x, y, 64, add());
#else
  return gk_reduce(x, y, 64, add_from_zero());
#endif
}
#elif MISTAKE_OPERATOR == 4
__global__ void mistake(const signed char *x, int *y) { *y = gk_block_reduce(x[threadIdx.x], gk_sum<int>()); }
#else
#include <cuda_fp16.h>
__global__ void mistake(const __half *x, __half *y) { *y = gk_warp_reduce(x[threadIdx.x], gk_max<__half>()); }
#endif
#endif

#ifdef MISTAKE_ARGUMENTS
__global__ void kernel(float *x, size_t n, float by) {
  GK_FOR_1D (i, n) x[i] *= by;
}
void mistake(float *x, const double *y);
void mistake(float *x, const double *y) {
#if MISTAKE_ARGUMENTS == 1 /* too few */
  (void)y;
  GK_LAUNCH(kernel, 1, 1, 0, 0, x, 64);
#elif MISTAKE_ARGUMENTS == 2 /* too many */
  (void)y;
  GK_LAUNCH(kernel, 1, 1, 0, 0, x, 64, 1.0f, 2);
#elif MISTAKE_ARGUMENTS == 3 /* of another type */
  (void)x;
  GK_LAUNCH(kernel, 1, 1, 0, 0, y, 64, 1.0f);
#elif MISTAKE_ARGUMENTS == 4 /* without shared memory and stream */
  (void)y;
  GK_LAUNCH(kernel, 1, 1, x, 64, 1.0f);
#elif MISTAKE_ARGUMENTS == 6 /* a lambda */
  (void)y;
  GK_LAUNCH([=] {}, 1, 1, 0, 0, x);
#elif MISTAKE_ARGUMENTS == 5 /* of a type that <<<>>> does not convert, either */
  (void)y;
  GK_LAUNCH(kernel, 1, 1, 0, 0, static_cast<void *>(x), 64, 1.0f);
#endif
}
#endif

#ifdef MISTAKE_NUMBER
#if MISTAKE_NUMBER == 1
void mistake();
void mistake() { GK_CHECK(0.5); }
#else
__global__ void mistake(float *x, double n) {
  GK_FOR_1D (i, n / 2) x[static_cast<size_t>(i)] = 0;
}
#endif
#endif

#ifdef MISTAKE_TYPES
#if MISTAKE_TYPES == 1
cudaError_t mistake(const int *a, int *c);
cudaError_t mistake(const int *a, int *c) { return gk_matmul(a, a, c, 64, 64, 64); }
#elif MISTAKE_TYPES == 2
cudaError_t mistake(const float *a, double *c);
cudaError_t mistake(const float *a, double *c) { return gk_matmul(a, a, c, 64, 64, 64); }
#elif MISTAKE_TYPES == 3
cudaError_t mistake(float *sum, const float *x);
cudaError_t mistake(float *sum, const float *x) { return gk_reduce_sum(sum, x, 64); }
#elif MISTAKE_TYPES == 4
cudaError_t mistake(const float *a, double *c);
cudaError_t mistake(const float *a, double *c) { return gk_matmul_ex(a, a, c, 64, 64, 64, nullptr); }
#endif
#endif

#ifdef MISTAKE_INPUT
struct pair {
  float x, y;
};
struct of_index {
  __device__ float operator()(size_t i) const { return static_cast<float>(i); }
};
struct of_nothing {
  __device__ float operator()() const { return 0; }
};
struct no_answer {
  __device__ void operator()(float) const {}
};
cudaError_t mistake(float *x, pair *pairs, int *out, gk_array<float> &array);
cudaError_t mistake(float *x, pair *pairs, int *out, gk_array<float> &array) {
  (void)x, (void)pairs, (void)out, (void)array;
#if MISTAKE_INPUT == 1
  return gk_reduce(x, out, 64, gk_op_argmax());
#elif MISTAKE_INPUT == 2
  return gk_scan_inclusive(x, out, 64, gk_op_argmin());
#elif MISTAKE_INPUT == 3
  return gk_scan_exclusive_init(x, x, 64, gk_op_sum(), pair());
#elif MISTAKE_INPUT == 4
  return gk_dot(gk_computed<float>(of_index()), x, x, 64);
#elif MISTAKE_INPUT == 5
  return gk_select_flagged(x, gk_computed<float>(of_index()), x, out, 64);
#elif MISTAKE_INPUT == 6
  return gk_print(pairs, 64);
#elif MISTAKE_INPUT == 7
  return gk_select(x, x, out, 64, no_answer());
#elif MISTAKE_INPUT == 8
  return gk_reduce_sum(gk_computed<float>(of_nothing()), x, 64);
#elif MISTAKE_INPUT == 9
  return gk_matmul_epilogue<GK_PRECISION_STRICT>(x, x, x, 64, 64, 64, of_index());
#elif MISTAKE_INPUT == 10
  return gk_reduce_sum(static_cast<const void *>(x), x, 64);
#elif MISTAKE_INPUT == 11
  return gk_reduce_value(x, array, 64, gk_op_sum());
#elif MISTAKE_INPUT == 12
  return gk_reduce(pairs, pairs, 64, gk_op_max());
#elif MISTAKE_INPUT == 13
  gk_matmul_opts opts = gk_matmul_opts();
  opts.alpha = 2.0;
  return gk_matmul_ex(x, x, x, 64, 64, 64, &opts);
#elif MISTAKE_INPUT == 14
  gk_matmul_opts opts = gk_matmul_opts();
  opts.beta = out;
  return gk_matmul_ex(x, x, x, 64, 64, 64, &opts);
#elif MISTAKE_INPUT == 15
  return gk_fill(static_cast<void *>(x), 64, 0);
#endif
}
#endif

#ifdef MISTAKE_TILE
#include <cuda_fp16.h>
__global__ void mistake(const __half *a, __half *c) {
  __shared__ __align__(16) __half as[32][72], bs[32][72];
  gk_tile<__half, 64, 64, 8, 8> acc;
  gk_tile_load_transposed<64, 32>(as, a, 32, 0, 0, 64, 32);
  gk_tile_load<32, 64>(bs, a, 64, 0, 0, 32, 64);
  gk_tile_multiply(acc, as, bs, 32);
  gk_tile_store(acc, c, 64, 0, 0, 64, 64, 1.0f, 0.0f);
}
#endif
