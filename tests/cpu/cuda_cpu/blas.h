/* The part of cuBLAS that courses use, by CBLAS: axpy, copy, dot, nrm2, scal, gemv, gemm, for float and double. Each
 * call is a kernel of one thread in its stream, which calls CBLAS. */
#pragma once
#pragma GCC system_header

#include <stdio.h>
#include <stdlib.h>
#include "../cuda_runtime.h"
#if !__has_include(<cblas.h>)
#include "cuBLAS is CBLAS here, which is missing: apt-get install libopenblas-dev"
#endif
#include <cblas.h>

#define CUBLAS_API_H_ /* helper_cuda.h asks */
#define CUBLASAPI
typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE } cublasPointerMode_t;
typedef enum {
  CUBLAS_DEFAULT_MATH,
  CUBLAS_TENSOR_OP_MATH,
  CUBLAS_PEDANTIC_MATH,
  CUBLAS_TF32_TENSOR_OP_MATH
} cublasMath_t;
typedef struct cublasContext {
  cudaStream_t stream;
  cublasPointerMode_t mode;
} * cublasHandle_t;

namespace cuda_cpu {

inline CBLAS_TRANSPOSE transposed(cublasOperation_t op) { return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans; }

/* CBLAS would end the program on wrong arguments. */
template <class F> cublasStatus_t blas(const char *name, cublasHandle_t h, bool right, const F &f) {
  static named_address here = {&here, name, nullptr};
  remember_name(&here);
  if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!right) return CUBLAS_STATUS_INVALID_VALUE;
  const cudaLaunchConfig_t config = {dim3(1), dim3(1), 0, h->stream, nullptr, 0};
  return launch_kernel(&here, config, f) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

} // namespace cuda_cpu

#define CUBLAS_CALL(name) inline cublasStatus_t name
CUBLAS_CALL(cublasCreate)(cublasHandle_t *h) {
#ifdef OPENBLAS_VERSION
  openblas_set_num_threads(1); /* with more, it wants a larger stack than threads of kernels have */
#endif
  *h = static_cast<cublasHandle_t>(calloc(1, sizeof **h));
  return *h ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
CUBLAS_CALL(cublasDestroy)(cublasHandle_t h) { return free(h), CUBLAS_STATUS_SUCCESS; }
CUBLAS_CALL(cublasSetStream)(cublasHandle_t h, cudaStream_t s) { return h->stream = s, CUBLAS_STATUS_SUCCESS; }
CUBLAS_CALL(cublasSetMathMode)(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
CUBLAS_CALL(cublasSetPointerMode)(cublasHandle_t, cublasPointerMode_t mode) {
  if (mode == CUBLAS_POINTER_MODE_HOST) return CUBLAS_STATUS_SUCCESS;
  fprintf(stderr, "CUDA stand-in: not supported: CUBLAS_POINTER_MODE_DEVICE\n");
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
inline const char *cublasGetStatusString(cublasStatus_t s) { return s ? "a call of cuBLAS failed" : "success"; }
CUBLAS_CALL(cublasSetMatrix)(int rows, int columns, int size, const void *a, int lda, void *b, int ldb) {
  const size_t each = static_cast<size_t>(size);
  return cudaMemcpy2D(b, ldb * each, a, lda * each, rows * each, static_cast<size_t>(columns), cudaMemcpyDefault)
             ? CUBLAS_STATUS_MAPPING_ERROR
             : CUBLAS_STATUS_SUCCESS;
}
CUBLAS_CALL(cublasSetVector)(int n, int size, const void *x, int incx, void *y, int incy) {
  return cublasSetMatrix(1, n, size, x, incx, y, incy);
}
#define cublasGetMatrix cublasSetMatrix
#define cublasGetVector cublasSetVector

/* A call for T is that of CBLAS with the letter l. */
#define CUBLAS_ONE(name, l, right, ...) cuda_cpu::blas("cublas" #name, h, right, [=] { cblas_##l##name(__VA_ARGS__); })
#define CUBLAS_FOR(L, l, T)                                                                                            \
  CUBLAS_CALL(cublas##L##axpy)(cublasHandle_t h, int n, const T *alpha, const T *x, int incx, T *y, int incy) {        \
    const T by = *alpha;                                                                                               \
    return CUBLAS_ONE(axpy, l, true, n, by, x, incx, y, incy);                                                         \
  }                                                                                                                    \
  CUBLAS_CALL(cublas##L##copy)(cublasHandle_t h, int n, const T *x, int incx, T *y, int incy) {                        \
    return CUBLAS_ONE(copy, l, true, n, x, incx, y, incy);                                                             \
  }                                                                                                                    \
  CUBLAS_CALL(cublas##L##scal)(cublasHandle_t h, int n, const T *alpha, T *x, int incx) {                              \
    const T by = *alpha;                                                                                               \
    return CUBLAS_ONE(scal, l, true, n, by, x, incx);                                                                  \
  }                                                                                                                    \
  CUBLAS_CALL(cublas##L##dot)(cublasHandle_t h, int n, const T *x, int incx, const T *y, int incy, T *result) {        \
    return cuda_cpu::blas("cublas" #L "dot", h, true, [=] { *result = cblas_##l##dot(n, x, incx, y, incy); });         \
  }                                                                                                                    \
  CUBLAS_CALL(cublas##L##nrm2)(cublasHandle_t h, int n, const T *x, int incx, T *result) {                             \
    return cuda_cpu::blas("cublas" #L "nrm2", h, true, [=] { *result = cblas_##l##nrm2(n, x, incx); });                \
  }                                                                                                                    \
  CUBLAS_CALL(cublas##L##gemv)                                                                                         \
  (cublasHandle_t h, cublasOperation_t t, int m, int n, const T *alpha, const T *a, int lda, const T *x, int incx,     \
   const T *beta, T *y, int incy) {                                                                                    \
    const T by = *alpha, old = *beta;                                                                                  \
    return CUBLAS_ONE(gemv, l, m >= 0 && n >= 0 && lda >= m && lda > 0 && incx && incy, CblasColMajor,                 \
                      cuda_cpu::transposed(t), m, n, by, a, lda, x, incx, old, y, incy);                               \
  }                                                                                                                    \
  CUBLAS_CALL(cublas##L##gemmStridedBatched)                                                                           \
  (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha, const T *a,      \
   int lda, long long step_a, const T *b, int ldb, long long step_b, const T *beta, T *c, int ldc, long long step_c,   \
   int batches) {                                                                                                      \
    const bool right = m >= 0 && n >= 0 && k >= 0 && lda >= (ta ? k : m) && ldb >= (tb ? n : k) && ldc >= m &&         \
                       lda > 0 && ldb > 0 && ldc > 0;                                                                  \
    const T by = *alpha, old = *beta;                                                                                  \
    return cuda_cpu::blas("cublas" #L "gemm", h, right, [=] {                                                          \
      for (int i = 0; i < batches; i++)                                                                                \
        cblas_##l##gemm(CblasColMajor, cuda_cpu::transposed(ta), cuda_cpu::transposed(tb), m, n, k, by,                \
                        a + i * step_a, lda, b + i * step_b, ldb, old, c + i * step_c, ldc);                           \
    });                                                                                                                \
  }                                                                                                                    \
  CUBLAS_CALL(cublas##L##gemm)                                                                                         \
  (cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha, const T *a,      \
   int lda, const T *b, int ldb, const T *beta, T *c, int ldc) {                                                       \
    return cublas##L##gemmStridedBatched(h, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);         \
  }
CUBLAS_FOR(S, s, float)
CUBLAS_FOR(D, d, double)
#undef CUBLAS_FOR
#undef CUBLAS_ONE
#undef CUBLAS_CALL
