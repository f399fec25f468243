/* Matmul against cuBLAS: the faster of cublasGemmEx and the first heuristic of cublasLt, with the same types and
 * layouts on the same stream, a workspace of 32 MiB each, and no TF32. */
#include "reference.h"

#include <cublasLt.h>
#include <cublas_v2.h>

static const size_t workspace_bytes = size_t{32} << 20;

template <class T> struct blas_types;
template <> struct blas_types<float> {
  static const cudaDataType data = CUDA_R_32F;
  static const cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};
template <> struct blas_types<double> {
  static const cudaDataType data = CUDA_R_64F;
  static const cublasComputeType_t compute = CUBLAS_COMPUTE_64F;
};

template <class T> struct matmul_call {
  const T *a, *b; /* row-major, dense; buffers do not rotate */
  T *c;
  size_t m, n, k;
  cublasHandle_t blas;
  cublasLtHandle_t lt;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a_layout, b_layout, c_layout;
  cublasLtMatmulAlgo_t algorithm;
  void *workspace;
};

template <class T> static cudaError_t matmul_ours(void *user, cudaStream_t stream, size_t) {
  const matmul_call<T> *s = static_cast<matmul_call<T> *>(user);
  return gk_matmul(s->a, s->b, s->c, s->m, s->n, s->k, stream);
}
/* Row-major C = A B is column-major C' = B' A'. The handle's stream is bench.stream. */
template <class T> static cudaError_t matmul_gemm(void *user, cudaStream_t, size_t) {
  const matmul_call<T> *s = static_cast<matmul_call<T> *>(user);
  const T one = 1, zero = 0;
  const cudaDataType data = blas_types<T>::data;
  const int m = static_cast<int>(s->m), n = static_cast<int>(s->n), k = static_cast<int>(s->k);
  GK_CHECK(cublasGemmEx(s->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, s->b, data, n, s->a, data, k, &zero, s->c,
                        data, n, blas_types<T>::compute, CUBLAS_GEMM_DEFAULT));
  return cudaSuccess;
}
template <class T> static cudaError_t matmul_lt(void *user, cudaStream_t stream, size_t) {
  const matmul_call<T> *s = static_cast<matmul_call<T> *>(user);
  const T one = 1, zero = 0;
  GK_CHECK(cublasLtMatmul(s->lt, s->product, &one, s->b, s->b_layout, s->a, s->a_layout, &zero, s->c, s->c_layout, s->c,
                          s->c_layout, &s->algorithm, s->workspace, workspace_bytes, stream));
  return cudaSuccess;
}

/* The first heuristic; false: there is none for this product. */
template <class T> static bool find_algorithm(matmul_call<T> *s) {
  const cudaDataType data = blas_types<T>::data;
  GK_CHECK(cublasLtMatmulDescCreate(&s->product, blas_types<T>::compute, data));
  GK_CHECK(cublasLtMatrixLayoutCreate(&s->a_layout, data, s->k, s->m, static_cast<int64_t>(s->k)));
  GK_CHECK(cublasLtMatrixLayoutCreate(&s->b_layout, data, s->n, s->k, static_cast<int64_t>(s->n)));
  GK_CHECK(cublasLtMatrixLayoutCreate(&s->c_layout, data, s->n, s->m, static_cast<int64_t>(s->n)));
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  GK_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  GK_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                                sizeof(workspace_bytes)));
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(s->lt, s->product, s->b_layout, s->a_layout, s->c_layout,
                                                               s->c_layout, preference, 1, &found, &count);
  GK_CHECK(cublasLtMatmulPreferenceDestroy(preference));
  s->algorithm = found.algo;
  return status == CUBLAS_STATUS_SUCCESS && count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
}
template <class T> static void forget_algorithm(matmul_call<T> *s) {
  GK_CHECK(cublasLtMatrixLayoutDestroy(s->a_layout));
  GK_CHECK(cublasLtMatrixLayoutDestroy(s->b_layout));
  GK_CHECK(cublasLtMatrixLayoutDestroy(s->c_layout));
  GK_CHECK(cublasLtMatmulDescDestroy(s->product));
}

/* --- The check ----------------------------------------------------------------------------------------------------*/

/* Counts the elements of C further from the f64 product than 16 roundings of the sum of |a b|. A chain of k of them
 * could be off by k; on data from N(0, 1) it is off by about one, and one product left out would be seen. A block makes
 * 64 x 64 elements, a thread 4 x 4. */
template <class T>
static __global__ void __launch_bounds__(256)
    count_wrong(const T *a, const T *b, const T *c, size_t m, size_t n, size_t k, unsigned long long *wrong) {
  __shared__ double as[16][65], bs[16][65];
  const size_t row0 = static_cast<size_t>(blockIdx.y) * 64, col0 = static_cast<size_t>(blockIdx.x) * 64;
  const unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  double sum[4][4] = {}, size[4][4] = {};
  for (size_t depth = 0; depth < k; depth += 16) {
    for (unsigned i = threadIdx.x; i < 1024; i += 256) {
      const size_t row = row0 + i / 16, in_row = depth + i % 16, in_col = depth + i / 64, col = col0 + i % 64;
      as[i % 16][i / 16] = row < m && in_row < k ? static_cast<double>(a[row * k + in_row]) : 0;
      bs[i / 64][i % 64] = in_col < k && col < n ? static_cast<double>(b[in_col * n + col]) : 0;
    }
    __syncthreads();
    for (int p = 0; p < 16; p++) {
      double x[4], y[4];
      for (unsigned r = 0; r < 4; r++) x[r] = as[p][ty * 4 + r], y[r] = bs[p][tx + 16 * r];
      for (int r = 0; r < 4; r++) {
        for (int s = 0; s < 4; s++) {
          sum[r][s] = fma(x[r], y[s], sum[r][s]);
          size[r][s] = fma(fabs(x[r]), fabs(y[s]), size[r][s]);
        }
      }
    }
    __syncthreads();
  }
  unsigned long long bad = 0;
  for (unsigned r = 0; r < 4; r++) {
    for (unsigned s = 0; s < 4; s++) {
      const size_t row = row0 + ty * 4 + r, col = col0 + tx + 16 * s;
      if (row < m && col < n)
        bad += !reference_agrees(c[row * n + col], sum[r][s], 16 * reference_type<T>::roundoff * size[r][s]);
    }
  }
  if (bad) atomicAdd(wrong, bad);
}
template <class T> static size_t matmul_wrong(const bench_contestant *who, size_t i) {
  const matmul_call<T> *s = static_cast<matmul_call<T> *>(who->user);
  unsigned long long *const wrong = reinterpret_cast<unsigned long long *>(bench.spare);
  GK_CHECK(cudaMemsetAsync(s->c, 0xff, s->m * s->n * sizeof(T), bench.stream));
  GK_CHECK(cudaMemsetAsync(wrong, 0, sizeof(*wrong), bench.stream));
  GK_CHECK(who->fn(who->user, bench.stream, i));
  const dim3 grid(static_cast<unsigned>(gk_ceil_div(s->n, size_t{64})),
                  static_cast<unsigned>(gk_ceil_div(s->m, size_t{64})));
  GK_LAUNCH(count_wrong<T>, grid, 256, 0, bench.stream, s->a, s->b, s->c, s->m, s->n, s->k, wrong);
  return static_cast<size_t>(reference_fetch(wrong));
}

/* --- The contests -------------------------------------------------------------------------------------------------*/

/* Fused multiply-adds that a multiprocessor ends in a clock, of those kinds that keep to IEEE; for f64 of compute
 * capability 8.0 and 9.0 those of the tensor cores. 0: not known here. */
template <class T> static double multiply_adds_per_clock() {
  const int version = bench.device.major * 10 + bench.device.minor;
  if (sizeof(T) == 8) return version == 90 ? 128 : version == 80 ? 64 : 0;
  return version == 75 || version == 80 ? 64 : version >= 86 ? 128 : 0;
}

struct matmul_shape {
  size_t m, n, k;
  bool quick;
};
static const matmul_shape shapes[] = {
    {128, 128, 128, false},       {256, 256, 256, true},     {512, 512, 512, true},    {1000, 1000, 1000, false},
    {1024, 1024, 1024, true},     {2048, 2048, 2048, false}, {4096, 4096, 4096, true}, {8192, 8192, 8192, false},
    {16384, 16384, 16384, false}, {4095, 4097, 4099, true},  {2047, 333, 5001, false}, {8192, 128, 8192, false},
    {64, 8192, 8192, false},      {8192, 8192, 64, false},   {32768, 256, 256, false}, {1, 8192, 8192, false},
};

template <class T> static void matmul_contest(matmul_call<T> call, const matmul_shape &shape) {
  bench_contest c = {};
  call.m = shape.m, call.n = shape.n, call.k = shape.k;
  c.group = "matmul", c.what = "A B", c.type = type_name<T>::value, c.modes = BENCH_HOT;
  snprintf(c.size, sizeof(c.size), "%zux%zux%zu", call.m, call.n, call.k);
  c.n = static_cast<double>(call.m) * static_cast<double>(call.n) * static_cast<double>(call.k);
  c.flops = 2 * c.n;
  if (!bench_wanted(&c)) return;
  const size_t a_items = gk_round_up(call.m * call.k, size_t{64});
  if (a_items + call.k * call.n > bench.capacity / sizeof(T) || call.m * call.n > bench.capacity / sizeof(T))
    return bench_skip(&c, "the memory does not suffice");
  if (sizeof(T) == 8 && c.n > 1e12) return bench_skip(&c, "in f64 it takes longer than all other shapes together");

  call.b = call.a + a_items;
  const double clock = multiply_adds_per_clock<T>() * bench.device.sms * bench.device.clock_khz * 1e3;
  if (clock > 0) c.ceiling_us = c.n / clock * 1e6;
  if (c.n >= 2048.0 * 2048 * 2048) c.warm_seconds = bench.quick ? 0.2 : 1;
  c.ours = {"gpukit", matmul_ours<T>, &call};
  c.peers[0] = {"GemmEx", matmul_gemm<T>, &call};
  if (find_algorithm(&call)) c.peers[1] = {"Lt", matmul_lt<T>, &call};
  c.wrong = matmul_wrong<T>;
  bench_run(&c);
  forget_algorithm(&call);
}
template <class T> static void matmul_type(cublasHandle_t blas, cublasLtHandle_t lt, void *workspace) {
  matmul_call<T> call = {};
  call.a = reinterpret_cast<T *>(bench.in), call.c = reinterpret_cast<T *>(bench.out);
  call.blas = blas, call.lt = lt, call.workspace = workspace;
  reference_fill(reinterpret_cast<T *>(bench.in), bench.capacity / sizeof(T), 3);
  for (const matmul_shape &shape : shapes)
    if (shape.quick || !bench.quick) matmul_contest(call, shape);
}

void bench_matmul() {
  cublasHandle_t blas;
  cublasLtHandle_t lt;
  void *gemm_workspace, *lt_workspace;
  GK_CHECK(cublasCreate(&blas));
  GK_CHECK(cublasLtCreate(&lt));
  GK_CHECK(cudaMalloc(&gemm_workspace, workspace_bytes));
  GK_CHECK(cudaMalloc(&lt_workspace, workspace_bytes));
  GK_CHECK(cublasSetStream(blas, bench.stream));
  GK_CHECK(cublasSetWorkspace(blas, gemm_workspace, workspace_bytes));
  matmul_type<float>(blas, lt, lt_workspace);
  matmul_type<double>(blas, lt, lt_workspace);
  GK_CHECK(cudaStreamSynchronize(bench.stream));
  GK_CHECK(cublasDestroy(blas));
  GK_CHECK(cublasLtDestroy(lt));
  GK_CHECK(cudaFree(gemm_workspace));
  GK_CHECK(cudaFree(lt_workspace));
}

int bench_cublas_version() {
  int version = 0;
  cublasHandle_t blas;
  GK_CHECK(cublasCreate(&blas));
  GK_CHECK(cublasGetVersion(blas, &version));
  GK_CHECK(cublasDestroy(blas));
  return version;
}
