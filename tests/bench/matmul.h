/* Matmul against cuBLAS: the faster of cublasGemmEx and the first heuristic of cublasLt, with the same types and
 * layouts on the same stream, a workspace of 32 MiB each, and TF32 only where gpukit has it, too. Emulated fp32 meets
 * cuBLAS in fp32. */
#ifndef BENCH_MATMUL_H
#define BENCH_MATMUL_H

#include "random.h"
#include "reference.h"

#include <cublasLt.h>
#include <cublas_v2.h>

#include <algorithm>

/* cuBLAS's handles, and the workspace that calls of cublasLt get. */
struct matmul_peers {
  cublasHandle_t blas;
  cublasLtHandle_t lt;
  void *lt_workspace;
};
static const size_t workspace_bytes = size_t{32} << 20;

/* The types, each in a file of its own. */
void matmul_f32(const matmul_peers &peers);
void matmul_f64(const matmul_peers &peers);
void matmul_f16(const matmul_peers &peers);
void matmul_bf16(const matmul_peers &peers);

template <class T> struct blas_types;
template <> struct blas_types<float> {
  typedef float scale;
  static const cudaDataType data = CUDA_R_32F, scales = CUDA_R_32F;
};
template <> struct blas_types<double> {
  typedef double scale;
  static const cudaDataType data = CUDA_R_64F, scales = CUDA_R_64F;
};
template <> struct blas_types<__half> : blas_types<float> { static const cudaDataType data = CUDA_R_16F; };
template <> struct blas_types<__nv_bfloat16> : blas_types<float> { static const cudaDataType data = CUDA_R_16BF; };

/* How both compute, under which name. An element may be off by so many units of the sums' roundoff, and by so many more
 * over the square root of k, where operands are rounded first. */
struct matmul_way {
  const char *name;
  gk_precision precision;
  cublasComputeType_t compute;
  gk_plan plan;
  double units, units_by_root;
};

template <class T> struct matmul_call {
  const T *a, *b; /* row-major, dense; buffers do not rotate */
  T *c;
  size_t m, n, k, batch;
  bool trans_a, trans_b;
  matmul_way way;
  gk_scratch *scratch; /* as the peers have their workspaces */
  matmul_peers peers;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a_layout, b_layout, c_layout;
  cublasLtMatmulAlgo_t algorithm;
};

template <class T> static cudaError_t matmul_ours(void *user, cudaStream_t stream, size_t) {
  const matmul_call<T> *s = static_cast<matmul_call<T> *>(user);
  gk_matmul_opts opts = {};
  opts.trans_a = s->trans_a, opts.trans_b = s->trans_b, opts.scratch = s->scratch;
  opts.batch = s->batch, opts.stride_a = s->m * s->k, opts.stride_b = s->k * s->n;
  opts.precision = s->way.precision, opts.plan = s->way.plan;
  return gk_matmul_ex(s->a, s->b, s->c, s->m, s->n, s->k, &opts, stream);
}
/* Row-major C = A B is column-major C' = B' A'. The handle's stream is bench.stream. */
template <class T> static cudaError_t matmul_gemm(void *user, cudaStream_t, size_t) {
  const matmul_call<T> *s = static_cast<matmul_call<T> *>(user);
  const typename blas_types<T>::scale one = 1, zero = 0;
  const cudaDataType data = blas_types<T>::data;
  const cublasOperation_t op_a = s->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = s->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int m = static_cast<int>(s->m), n = static_cast<int>(s->n), k = static_cast<int>(s->k);
  const int lda = s->trans_a ? m : k, ldb = s->trans_b ? k : n;
  if (s->batch == 1)
    GK_CHECK(cublasGemmEx(s->peers.blas, op_b, op_a, n, m, k, &one, s->b, data, ldb, s->a, data, lda, &zero, s->c, data,
                          n, s->way.compute, CUBLAS_GEMM_DEFAULT));
  else
    GK_CHECK(cublasGemmStridedBatchedEx(s->peers.blas, op_b, op_a, n, m, k, &one, s->b, data, ldb,
                                        static_cast<long long>(k) * n, s->a, data, lda, static_cast<long long>(m) * k,
                                        &zero, s->c, data, n, static_cast<long long>(m) * n, static_cast<int>(s->batch),
                                        s->way.compute, CUBLAS_GEMM_DEFAULT));
  return cudaSuccess;
}
template <class T> static cudaError_t matmul_lt(void *user, cudaStream_t stream, size_t) {
  const matmul_call<T> *s = static_cast<matmul_call<T> *>(user);
  const typename blas_types<T>::scale one = 1, zero = 0;
  GK_CHECK(cublasLtMatmul(s->peers.lt, s->product, &one, s->b, s->b_layout, s->a, s->a_layout, &zero, s->c, s->c_layout,
                          s->c, s->c_layout, &s->algorithm, s->peers.lt_workspace, workspace_bytes, stream));
  return cudaSuccess;
}

/* The first heuristic; false: there is none for this product. */
template <class T> static bool find_algorithm(matmul_call<T> *s) {
  const cudaDataType data = blas_types<T>::data;
  GK_CHECK(cublasLtMatmulDescCreate(&s->product, s->way.compute, blas_types<T>::scales));
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
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(s->peers.lt, s->product, s->b_layout, s->a_layout,
                                                               s->c_layout, s->c_layout, preference, 1, &found, &count);
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

/* --- The check ---------------------------------------------------------------------------------------------------*/

/* Counts the elements of C further from the f64 product than 16 roundings of the sum of |a b|, or what the way allows.
 * A chain of k of them could be off by k; on data from N(0, 1) it is off by about one, and one product left out would
 * be seen. *worst: the largest error over that sum, as the bits of a float. A block makes 64 x 64 elements, a thread
 * 4 x 4. Of large products only one block in `every` does so, and those at the lower and the right edge: the others see
 * whether all elements were stored, since C was full of NaN before. */
template <class T>
static __global__ void __launch_bounds__(256)
    count_wrong(matmul_call<T> s, unsigned every, unsigned long long *wrong, unsigned *worst) {
  const size_t m = s.m, n = s.n, k = s.k;
  const T *const a = s.a + blockIdx.z * m * k, *const b = s.b + blockIdx.z * k * n, *const c = s.c + blockIdx.z * m * n;
  const size_t a_row = s.trans_a ? 1 : k, a_k = s.trans_a ? m : 1, b_k = s.trans_b ? 1 : n, b_col = s.trans_b ? k : 1;
  __shared__ double as[16][65], bs[16][65];
  const size_t row0 = static_cast<size_t>(blockIdx.y) * 64, col0 = static_cast<size_t>(blockIdx.x) * 64;
  const unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  double sum[4][4] = {}, size[4][4] = {};
  if ((blockIdx.x + 5 * blockIdx.y) % every && blockIdx.x + 1 < gridDim.x && blockIdx.y + 1 < gridDim.y) {
    unsigned long long missing = 0;
    for (unsigned i = threadIdx.x; i < 64 * 64; i += 256) {
      const double x = reference_wide(c[(row0 + i / 64) * n + col0 + i % 64]);
      missing += x != x;
    }
    if (missing) atomicAdd(wrong, missing);
    return;
  }
  for (size_t depth = 0; depth < k; depth += 16) {
    for (unsigned i = threadIdx.x; i < 1024; i += 256) {
      const size_t row = row0 + i / 16, in_row = depth + i % 16, in_col = depth + i / 64, col = col0 + i % 64;
      as[i % 16][i / 16] = row < m && in_row < k ? reference_wide(a[row * a_row + in_row * a_k]) : 0;
      bs[i / 64][i % 64] = in_col < k && col < n ? reference_wide(b[in_col * b_k + col * b_col]) : 0;
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
  const double units = s.way.units + s.way.units_by_root / sqrt(static_cast<double>(k));
  unsigned long long bad = 0;
  float furthest = 0;
  for (unsigned r = 0; r < 4; r++) {
    for (unsigned q = 0; q < 4; q++) {
      const size_t row = row0 + ty * 4 + r, col = col0 + tx + 16 * q;
      if (row >= m || col >= n) continue;
      const T x = c[row * n + col];
      bad += !reference_agrees(x, sum[r][q], units * reference_type<T>::roundoff * size[r][q]);
      furthest = fmaxf(furthest, static_cast<float>(fabs(reference_wide(x) - sum[r][q]) / size[r][q]));
    }
  }
  if (bad) atomicAdd(wrong, bad);
  atomicMax(worst, __float_as_uint(furthest));
}
template <class T> static size_t matmul_wrong(const bench_contestant *who, size_t i) {
  const matmul_call<T> *s = static_cast<matmul_call<T> *>(who->user);
  unsigned long long *const wrong = reinterpret_cast<unsigned long long *>(bench.spare);
  unsigned *const worst = reinterpret_cast<unsigned *>(wrong + 1);
  GK_CHECK(cudaMemsetAsync(s->c, 0xff, s->batch * s->m * s->n * sizeof(T), bench.stream));
  GK_CHECK(cudaMemsetAsync(wrong, 0, 2 * sizeof(*wrong), bench.stream));
  GK_CHECK(who->fn(who->user, bench.stream, i));
  const dim3 grid(static_cast<unsigned>(gk_ceil_div(s->n, size_t{64})),
                  static_cast<unsigned>(gk_ceil_div(s->m, size_t{64})), static_cast<unsigned>(s->batch));
  const double multiply_adds = static_cast<double>(s->m) * static_cast<double>(s->n) * static_cast<double>(s->k);
  GK_LAUNCH(count_wrong<T>, grid, 256, 0, bench.stream, *s, static_cast<unsigned>(multiply_adds * 0x1p-36) + 1, wrong,
            worst);
  return static_cast<size_t>(reference_fetch(wrong));
}

/* --- The contests ------------------------------------------------------------------------------------------------*/

/* Fused multiply-adds that a multiprocessor ends in a clock, of those kinds that keep to IEEE; for f64 of compute
 * capability 8.0 and 9.0 those of the tensor cores. 0: not known here. */
template <class T> static double multiply_adds_per_clock() {
  const int version = bench.device.major * 10 + bench.device.minor;
  if (sizeof(T) == 2) return 0;
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
    {3000, 3000, 3000, false},
};
/* For the chart of odd sizes, beside the squares above. */
static const size_t odd_squares[] = {127, 255, 511, 1023, 2047, 8191};

template <class T> static void matmul_label(const matmul_call<T> &call, bench_contest *c) {
  if (call.batch > 1)
    snprintf(c->size, sizeof(c->size), "%zu of %zux%zux%zu", call.batch, call.m, call.n, call.k);
  else
    snprintf(c->size, sizeof(c->size), "%zux%zux%zu%s%s", call.m, call.n, call.k, call.trans_a ? " A'" : "",
             call.trans_b ? " B'" : "");
  c->n = static_cast<double>(call.m) * static_cast<double>(call.n) * static_cast<double>(call.k) *
         static_cast<double>(call.batch);
  c->flops = 2 * c->n;
}
template <class T> static void matmul_plans(const matmul_call<T> &chosen);

template <class T> static void matmul_contest(matmul_call<T> call, const char *what) {
  bench_contest c = {};
  c.group = "matmul", c.what = what, c.type = call.way.name, c.modes = BENCH_HOT;
  matmul_label(call, &c);
  if (!bench.plans && !bench_wanted(&c)) return;
  const size_t a_items = gk_round_up(call.batch * call.m * call.k, size_t{64});
  if (a_items + call.batch * call.k * call.n > bench.capacity / sizeof(T) ||
      call.batch * call.m * call.n > bench.capacity / sizeof(T))
    return bench_skip(&c, "the memory does not suffice");
  if (sizeof(T) == 8 && c.n > 1e12) return bench_skip(&c, "in f64 it takes longer than all other shapes together");

  call.b = call.a + a_items;
  const bool strict = call.way.precision <= GK_PRECISION_STRICT;
  const double clock = (strict ? multiply_adds_per_clock<T>() : 0) * bench.device.sms * bench.device.clock_khz * 1e3;
  if (clock > 0) c.ceiling_us = c.n / clock * 1e6;
  const bool on_tensor_cores = sizeof(T) == 2 || call.way.precision == GK_PRECISION_TF32;
  bench_mma_loop mma = {sizeof(T) == 2 ? BENCH_MMA_BF16 : BENCH_MMA_TF32, c.flops};
  if (c.n >= 2048.0 * 2048 * 2048) {
    /* Long enough for the clock to settle where products are compared with what the GPU can do at most. */
    c.warm_seconds = bench.quick ? 0.1 : on_tensor_cores && c.n == 8192.0 * 8192 * 8192 ? 1 : 0.25;
    if (on_tensor_cores && bench_has_mma(mma.kind)) c.ceilings[0] = {"mma.sync", bench_run_mma_loop, &mma};
  }
  c.ours = {"gpukit", matmul_ours<T>, &call};
  c.peers[0] = {"GemmEx", matmul_gemm<T>, &call};
  const bool of_lt = call.batch == 1;
  if (of_lt && find_algorithm(&call)) c.peers[1] = {"Lt", matmul_lt<T>, &call};
  gk_scratch scratch = {};
  const size_t bytes = gk_matmul_scratch_bytes(), enough = size_t{256} << 20;
  size_t work_bytes = gk_matmul_work_bytes(call.way.precision, call.m, call.n, call.k);
  if (work_bytes) work_bytes *= std::min(call.batch, enough / work_bytes + 1);
  if (bytes || work_bytes) {
    GK_CHECK(gk_scratch_create_work(&scratch, bytes, work_bytes, bench.stream));
    call.scratch = &scratch;
  }
  c.wrong = matmul_wrong<T>;
  if (bench.plans)
    matmul_plans(call);
  else
    bench_run(&c);
  GK_CHECK(gk_scratch_destroy(&scratch));
  if (of_lt) forget_algorithm(&call);
}
/* Batches of 1000 products; of strict floats also of 10,000, with edges of 32, 64 and 128. */
template <class T> static void matmul_batches(matmul_call<T> call) {
  const auto contest = [&](size_t batch, size_t edge) {
    call.m = call.n = call.k = edge, call.batch = batch;
    matmul_contest(call, "A B batch");
  };
  for (size_t edge : {32, 64, 96, 128, 256}) contest(1000, edge);
  const bool strict_floats = sizeof(T) == 4 && call.way.precision == GK_PRECISION_DEFAULT;
  for (size_t edge : {32, 64, 128})
    if (strict_floats) contest(10000, edge);
}
/* Fifty shapes of up to 5000 in each dimension. */
static void matmul_variety(matmul_call<float> call) {
  random_numbers draw = {1};
  for (int i = 0; i < 50; i++) {
    const random_shape shape = next_uniform_shape(&draw, 5000);
    call.m = shape.m, call.n = shape.n, call.k = shape.k;
    call.trans_a = shape.trans_a, call.trans_b = shape.trans_b;
    matmul_contest(call, "A B random");
  }
}
template <class T> static void matmul_variety(const matmul_call<T> &) {}

/* Random shapes, the same ones for each type: as many of multiples of 32 as of any edges, and as many of multiples of
 * 8. With these, rows of half types begin at multiples of 16 bytes, so none needs a copy, but rarely all at sectors of
 * 32 bytes. */
template <class T> static void matmul_random(matmul_call<T> call) {
  for (const uint64_t seed : bench.seeds) {
    random_numbers draw = random_from(seed), draw_by_8 = random_from(~seed);
    const auto contest = [&](const random_shape &shape, const char *what) {
      call.m = shape.m, call.n = shape.n, call.k = shape.k;
      call.trans_a = shape.trans_a, call.trans_b = shape.trans_b;
      matmul_contest(call, what);
    };
    for (size_t i = 0; i < bench.random_count; i++) {
      const bool any = i % 2 == 0;
      contest(next_shape(&draw, any ? 1 : 32), any ? "A B log-uniform" : "A B log-uniform by 32");
      if (any) contest(next_shape(&draw_by_8, 8), "A B log-uniform by 8");
    }
  }
}

/* What the planner chooses beside every other plan that can be asked for, at random shapes: a ratio above 1 says that
 * the other plan is the faster one. */
template <class T> static void matmul_plans(const matmul_call<T> &chosen) {
  static const struct {
    gk_plan plan;
    const char *name;
  } plans[] = {{GK__PLAN_TILE_32, "TILE_32"},
               {GK__PLAN_TILE_32_64, "TILE_32_64"},
               {GK__PLAN_TILE_64, "TILE_64"},
               {GK__PLAN_TILE_64_128, "TILE_64_128"},
               {GK__PLAN_HOPPER_32_64, "HOPPER_32_64"},
               {GK__PLAN_HOPPER_64, "HOPPER_64"},
               {GK__PLAN_HOPPER_64_128, "HOPPER_64_128"},
               {GK__PLAN_HOPPER_128_64, "HOPPER_128_64"},
               {GK__PLAN_HOPPER_128, "HOPPER_128"},
               {GK_PLAN_MMA, "MMA"},
               {GK_PLAN_WGMMA, "WGMMA"}};
  const bool on_tensor_cores = sizeof(T) == 2 || chosen.way.precision > GK_PRECISION_STRICT;
  matmul_call<T> call = chosen;
  for (const auto &plan : plans) {
    if (on_tensor_cores != (plan.plan == GK_PLAN_MMA || plan.plan == GK_PLAN_WGMMA)) continue;
    call.way.plan = plan.plan;
    bench_contest c = {};
    c.group = "plan", c.what = plan.name, c.type = call.way.name, c.modes = BENCH_HOT;
    matmul_label(call, &c);
    /* Not every GPU and build has each plan. */
    if (!bench_wanted(&c) || matmul_ours<T>(&call, bench.stream, 0) != cudaSuccess) continue;
    c.ours = {plan.name, matmul_ours<T>, &call};
    c.peers[0] = {"chosen", matmul_ours<T>, const_cast<matmul_call<T> *>(&chosen)};
    c.wrong = matmul_wrong<T>;
    bench_run(&c);
  }
}

/* The largest |error| / (|A| |B|), beside cuBLAS: printed, not a contest. Also of data uniform in (0, 1], and of
 * N(0, 1) times powers of two from 2^-20 to 2^20. */
static __global__ void spread_fill(float *x, size_t n, int kind) {
  GK_FOR_1D (i, n) {
    const unsigned bits = reference_hash(static_cast<unsigned>(i) * 2u + 1u);
    if (kind == 1) x[i] = (static_cast<float>(bits >> 8) + 1.0f) * 0x1p-24f;
    if (kind == 2) x[i] = ldexpf(x[i], static_cast<int>(bits % 41) - 20);
  }
}
static void matmul_accuracy(matmul_call<float> call, const matmul_way *ways, size_t count) {
  const char *const kinds[] = {"N(0, 1)", "uniform", "2^-20 to 2^20"};
  call.m = call.n = 1024, call.k = 4096, call.batch = 1;
  call.b = call.a + call.m * call.k;
  if ((call.m + call.n) * call.k > bench.capacity / sizeof(float)) return;
  bench_contest c = {};
  c.group = "matmul", c.what = "accuracy", c.type = "f32", c.modes = BENCH_HOT;
  if (!bench_wanted(&c)) return;
  printf("\n|error| / (|A| |B|), worst of 1024x1024x4096, in 2^-24 %20s %12s\n", "gpukit", "cuBLAS");
  for (int kind = 0; kind < 3; kind++) {
    reference_fill(reinterpret_cast<float *>(bench.in), (call.m + call.n) * call.k, 3);
    if (kind)
      GK_LAUNCH(spread_fill, 4096, 256, 0, bench.stream, reinterpret_cast<float *>(bench.in),
                (call.m + call.n) * call.k, kind);
    for (size_t i = 0; i < count; i++) {
      double units[2];
      const bench_contestant who[] = {{"gpukit", matmul_ours<float>, &call}, {"GemmEx", matmul_gemm<float>, &call}};
      call.way = ways[i];
      for (int side = 0; side < 2; side++) {
        float worst = 0;
        matmul_wrong<float>(&who[side], 0);
        GK_CHECK(cudaMemcpy(&worst, bench.spare + sizeof(unsigned long long), sizeof(worst), cudaMemcpyDeviceToHost));
        units[side] = static_cast<double>(worst) * 0x1p24;
      }
      printf("%-24s %-24s %26.3f %12.3f\n", kinds[kind], call.way.name, units[0], units[1]);
    }
  }
  reference_fill(reinterpret_cast<float *>(bench.in), bench.capacity / sizeof(float), 3);
}
template <class T> static void matmul_accuracy(const matmul_call<T> &, const matmul_way *, size_t) {}

template <class T> static void matmul_type(const matmul_peers &peers, std::initializer_list<matmul_way> ways) {
  matmul_call<T> call = {};
  if (bench.plan_seconds > 0) return; /* plan_times.h, for the types that there are costs of */
  call.a = reinterpret_cast<T *>(bench.in), call.c = reinterpret_cast<T *>(bench.out);
  call.peers = peers;
  reference_fill(reinterpret_cast<T *>(bench.in), bench.capacity / sizeof(T), 3);
  call.batch = 1;
  const auto contest = [&](size_t m, size_t n, size_t k, const char *what) {
    call.m = m, call.n = n, call.k = k;
    matmul_contest(call, what);
  };
  for (const matmul_way &way : ways) {
    call.way = way;
    if (bench.plans) {
      if (way.plan == GK_PLAN_AUTO) matmul_random(call);
      continue;
    }
    if (way.plan != GK_PLAN_AUTO) { /* mma.sync, which code for sm_90a refuses */
      call.m = call.n = call.k = 8192;
      call.b = call.a; /* any B: this call only asks whether the kernel is there */
      if (matmul_ours<T>(&call, bench.stream, 0) == cudaSuccess) contest(8192, 8192, 8192, "A B mma");
      continue;
    }
    for (const matmul_shape &shape : shapes)
      if (shape.quick || !bench.quick) contest(shape.m, shape.n, shape.k, "A B");
    matmul_random(call);
    if (bench.quick) continue;
    for (size_t edge : odd_squares) contest(edge, edge, edge, "A B odd");
    matmul_batches(call);
    if (way.precision == GK_PRECISION_DEFAULT) matmul_variety(call);
  }
  if (ways.size() > 1 && !bench.plans) matmul_accuracy(call, ways.begin(), ways.size());
}

#endif
