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
  size_t m, n, k, batch;
  bool trans_a, trans_b;
  gk_scratch *scratch; /* as the peers have their workspaces */
  cublasHandle_t blas;
  cublasLtHandle_t lt;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a_layout, b_layout, c_layout;
  cublasLtMatmulAlgo_t algorithm;
  void *workspace;
};

template <class T> static cudaError_t matmul_ours(void *user, cudaStream_t stream, size_t) {
  const matmul_call<T> *s = static_cast<matmul_call<T> *>(user);
  gk_matmul_opts opts = {};
  opts.trans_a = s->trans_a, opts.trans_b = s->trans_b, opts.scratch = s->scratch;
  opts.batch = s->batch, opts.stride_a = s->m * s->k, opts.stride_b = s->k * s->n;
  return gk_matmul_ex(s->a, s->b, s->c, s->m, s->n, s->k, &opts, stream);
}
/* Row-major C = A B is column-major C' = B' A'. The handle's stream is bench.stream. */
template <class T> static cudaError_t matmul_gemm(void *user, cudaStream_t, size_t) {
  const matmul_call<T> *s = static_cast<matmul_call<T> *>(user);
  const T one = 1, zero = 0;
  const cudaDataType data = blas_types<T>::data;
  const cublasOperation_t op_a = s->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = s->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int m = static_cast<int>(s->m), n = static_cast<int>(s->n), k = static_cast<int>(s->k);
  const int lda = s->trans_a ? m : k, ldb = s->trans_b ? k : n;
  if (s->batch == 1)
    GK_CHECK(cublasGemmEx(s->blas, op_b, op_a, n, m, k, &one, s->b, data, ldb, s->a, data, lda, &zero, s->c, data, n,
                          blas_types<T>::compute, CUBLAS_GEMM_DEFAULT));
  else
    GK_CHECK(cublasGemmStridedBatchedEx(s->blas, op_b, op_a, n, m, k, &one, s->b, data, ldb,
                                        static_cast<long long>(k) * n, s->a, data, lda, static_cast<long long>(m) * k,
                                        &zero, s->c, data, n, static_cast<long long>(m) * n, static_cast<int>(s->batch),
                                        blas_types<T>::compute, CUBLAS_GEMM_DEFAULT));
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
  const cublasOperation_t op_a = s->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = s->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const size_t cols_a = s->trans_a ? s->m : s->k, cols_b = s->trans_b ? s->k : s->n; /* as stored */
  GK_CHECK(cublasLtMatmulDescSetAttribute(s->product, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof(op_b)));
  GK_CHECK(cublasLtMatmulDescSetAttribute(s->product, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof(op_a)));
  GK_CHECK(cublasLtMatrixLayoutCreate(&s->a_layout, data, cols_a, s->m * s->k / cols_a, static_cast<int64_t>(cols_a)));
  GK_CHECK(cublasLtMatrixLayoutCreate(&s->b_layout, data, cols_b, s->n * s->k / cols_b, static_cast<int64_t>(cols_b)));
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
static __global__ void __launch_bounds__(256) count_wrong(matmul_call<T> s, unsigned long long *wrong) {
  const size_t m = s.m, n = s.n, k = s.k;
  const T *const a = s.a + blockIdx.z * m * k, *const b = s.b + blockIdx.z * k * n, *const c = s.c + blockIdx.z * m * n;
  const size_t a_row = s.trans_a ? 1 : k, a_k = s.trans_a ? m : 1, b_k = s.trans_b ? 1 : n, b_col = s.trans_b ? k : 1;
  __shared__ double as[16][65], bs[16][65];
  const size_t row0 = static_cast<size_t>(blockIdx.y) * 64, col0 = static_cast<size_t>(blockIdx.x) * 64;
  const unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  double sum[4][4] = {}, size[4][4] = {};
  for (size_t depth = 0; depth < k; depth += 16) {
    for (unsigned i = threadIdx.x; i < 1024; i += 256) {
      const size_t row = row0 + i / 16, in_row = depth + i % 16, in_col = depth + i / 64, col = col0 + i % 64;
      as[i % 16][i / 16] = row < m && in_row < k ? static_cast<double>(a[row * a_row + in_row * a_k]) : 0;
      bs[i / 64][i % 64] = in_col < k && col < n ? static_cast<double>(b[in_col * b_k + col * b_col]) : 0;
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
  GK_CHECK(cudaMemsetAsync(s->c, 0xff, s->batch * s->m * s->n * sizeof(T), bench.stream));
  GK_CHECK(cudaMemsetAsync(wrong, 0, sizeof(*wrong), bench.stream));
  GK_CHECK(who->fn(who->user, bench.stream, i));
  const dim3 grid(static_cast<unsigned>(gk_ceil_div(s->n, size_t{64})),
                  static_cast<unsigned>(gk_ceil_div(s->m, size_t{64})), static_cast<unsigned>(s->batch));
  GK_LAUNCH(count_wrong<T>, grid, 256, 0, bench.stream, *s, wrong);
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
/* For the chart of odd sizes, beside the squares above. */
static const size_t odd_squares[] = {127, 255, 511, 1023, 2047, 8191};

template <class T> static void matmul_contest(matmul_call<T> call, const char *what) {
  bench_contest c = {};
  c.group = "matmul", c.what = what, c.type = type_name<T>::value, c.modes = BENCH_HOT;
  if (call.batch > 1)
    snprintf(c.size, sizeof(c.size), "%zu of %zux%zux%zu", call.batch, call.m, call.n, call.k);
  else
    snprintf(c.size, sizeof(c.size), "%zux%zux%zu%s%s", call.m, call.n, call.k, call.trans_a ? " A'" : "",
             call.trans_b ? " B'" : "");
  c.n = static_cast<double>(call.m) * static_cast<double>(call.n) * static_cast<double>(call.k) *
        static_cast<double>(call.batch);
  c.flops = 2 * c.n;
  if (!bench_wanted(&c)) return;
  const size_t a_items = gk_round_up(call.batch * call.m * call.k, size_t{64});
  if (a_items + call.batch * call.k * call.n > bench.capacity / sizeof(T) ||
      call.batch * call.m * call.n > bench.capacity / sizeof(T))
    return bench_skip(&c, "the memory does not suffice");
  if (sizeof(T) == 8 && c.n > 1e12) return bench_skip(&c, "in f64 it takes longer than all other shapes together");

  call.b = call.a + a_items;
  const double clock = multiply_adds_per_clock<T>() * bench.device.sms * bench.device.clock_khz * 1e3;
  if (clock > 0) c.ceiling_us = c.n / clock * 1e6;
  if (c.n >= 2048.0 * 2048 * 2048) c.warm_seconds = bench.quick ? 0.2 : 1;
  c.ours = {"gpukit", matmul_ours<T>, &call};
  c.peers[0] = {"GemmEx", matmul_gemm<T>, &call};
  const bool of_lt = call.batch == 1;
  if (of_lt && find_algorithm(&call)) c.peers[1] = {"Lt", matmul_lt<T>, &call};
  gk_scratch scratch = {};
  if (const size_t bytes = gk_matmul_scratch_bytes(call.m, call.n, call.k)) {
    GK_CHECK(gk_scratch_create(&scratch, bytes, bench.stream));
    call.scratch = &scratch;
  }
  c.wrong = matmul_wrong<T>;
  bench_run(&c);
  GK_CHECK(gk_scratch_destroy(&scratch));
  if (of_lt) forget_algorithm(&call);
}
/* Many small ones, and shapes that nobody chose. */
static void matmul_variety(matmul_call<float> call) {
  for (size_t edge : {32, 64, 128})
    for (size_t batch : {1000, 10000}) {
      call.m = call.n = call.k = edge, call.batch = batch;
      matmul_contest(call, "A B batch");
    }
  call.batch = 1;
  uint64_t seed = 1;
  const auto draw = [&](uint64_t below) { /* Knuth's 64-bit congruential generator; its high bits */
                                          seed = seed * 6364136223846793005u + 1442695040888963407u;
                                          return static_cast<size_t>((seed >> 33) % below);
  };
  for (int i = 0; i < 50; i++) {
    call.m = 1 + draw(5000), call.n = 1 + draw(5000), call.k = 1 + draw(5000);
    call.trans_a = draw(2), call.trans_b = draw(2);
    matmul_contest(call, "A B random");
  }
}
static void matmul_variety(const matmul_call<double> &) {}

template <class T> static void matmul_type(cublasHandle_t blas, cublasLtHandle_t lt, void *workspace) {
  matmul_call<T> call = {};
  call.a = reinterpret_cast<T *>(bench.in), call.c = reinterpret_cast<T *>(bench.out);
  call.blas = blas, call.lt = lt, call.workspace = workspace;
  reference_fill(reinterpret_cast<T *>(bench.in), bench.capacity / sizeof(T), 3);
  call.batch = 1;
  const auto contest = [&](size_t m, size_t n, size_t k, const char *what) {
    call.m = m, call.n = n, call.k = k;
    matmul_contest(call, what);
  };
  for (const matmul_shape &shape : shapes)
    if (shape.quick || !bench.quick) contest(shape.m, shape.n, shape.k, "A B");
  if (bench.quick) return;
  for (size_t edge : odd_squares) contest(edge, edge, edge, "A B odd");
  matmul_variety(call);
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
