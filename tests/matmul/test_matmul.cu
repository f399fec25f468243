/* gk_matmul and gk_matmul_ex as calls: factors, special values, errors, streams, and sizes past 2^32. */
#include "once.h"

#include "hooks.h"
#include "products.h"

#include <thread>

/* --- values --------------------------------------------------------------------------------------------------------*/

TEST(nan_and_infinity_spread_as_they_should) {
  const problem p = problem_of(70, 70, 37);
  std::vector<float> a = random_elements<float>(11, 70 * 37), b = random_elements<float>(12, 37 * 70);
  a[3 * 37 + 36] = NAN;        /* row 3 */
  b[36 * 70 + 5] = HUGE_VALF;  /* column 5 */
  a[9 * 37 + 36] = 0;          /* meets the infinity: NaN at (9, 5) */
  a[20 * 37 + 1] = -HUGE_VALF; /* row 20 */
  b[69] = 0, a[69 * 37] = NAN; /* the last column, the last row */
  for (size_t l = 0; l < 37; l++) a[30 * 37 + l] = -0.0f;
  check_elements<float, float>(p, a, b, {HOOK_PLAN_TILE_32, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128});
}

/* A product too small for any number is a zero with its sign, which padding must not touch. */
TEST(a_sum_of_minus_zero_stays) {
  const size_t k = 5;
  check_elements<float, float>(problem_of(33, 33, k), std::vector<float>(33 * k, 1e-30f),
                               std::vector<float>(33 * k, -1e-30f),
                               {HOOK_PLAN_TILE_32, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128});
  const size_t edge = 257, short_k = 21; /* large enough for Hopper's kernels; with k = 3000 all partials are -0 */
  for (size_t long_k : {short_k, size_t(3000)}) {
    const size_t few = long_k == short_k ? edge : 3;
    EXPECT(long_k == short_k || hook_plan_split_k<float>(few, edge, long_k).partitions > 1);
    check_elements<float, float>(problem_of(few, edge, long_k), std::vector<float>(few * long_k, 1e-30f),
                                 std::vector<float>(long_k * edge, -1e-30f),
                                 {GK_PLAN_AUTO, HOOK_PLAN_HOPPER_128, HOOK_PLAN_HOPPER_64_128});
  }
}

TEST(alpha_0_and_halves_that_overflow) {
  problem p = problem_of(40, 40, 40);
  p.alpha = 0, p.beta = 2;
  check_all_plans<float, float>(p);
  p.k = 0, p.alpha = NAN;
  check_all_plans<float, float>(p);
  check<double, double>(p, {GK_PLAN_AUTO});
  p.alpha = HUGE_VAL, p.beta = 0;
  check_all_plans<float, float>(p);
  p.k = 40, p.alpha = 30000; /* past what a half holds: infinity, as the conversion has it */
  check_all_plans<__half, __half>(p);
}

/* As in BLAS, alpha = 0 does not read A and B. */
TEST(alpha_0_reads_neither_a_nor_b) {
  const size_t n = 70;
  const std::vector<float> old = random_elements<float>(13, n * n);
  device_array<float> nan(std::vector<float>(n * n, NAN)), c(old);
  const double zero = 0, minus = -0.0, one = 1;
  gk_matmul_opts opts = gk_matmul_opts();
  for (const double *alpha : {&zero, &minus})
    for (gk_precision precision : {GK_PRECISION_STRICT, GK_PRECISION_TF32, GK_PRECISION_EMULATED}) {
      opts.alpha = alpha, opts.beta = &one, opts.precision = precision;
      EXPECT_OK(gk_matmul_ex(nan.ptr, nan.ptr, c.ptr, n, n, n, &opts));
      EXPECT_SAME(c.get(), old, "beta 1, precision %d", static_cast<int>(precision));
    }
  opts.beta = &zero;
  EXPECT_OK(gk_matmul_ex(nan.ptr, nan.ptr, c.ptr, n, n, n, &opts));
  EXPECT_SAME(c.get(), std::vector<float>(n * n, 0.0f), "beta 0");
}

/* gk_matmul, with integers, so that every element is exact. */
TEST(easy_call) {
  const size_t m = 37, n = 41, k = 29;
  std::vector<double> a(m * k), b(k * n), c(m * n);
  for (size_t i = 0; i < a.size(); i++) a[i] = uniform(15, i, -9, 9);
  for (size_t i = 0; i < b.size(); i++) b[i] = uniform(16, i, -9, 9);
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++)
      for (size_t l = 0; l < k; l++) c[i * n + j] += a[i * k + l] * b[l * n + j];
  device_array<double> device_a(a), device_b(b), device_c(m * n);
  EXPECT_OK(gk_matmul(device_a.ptr, device_b.ptr, device_c.ptr, m, n, k));
  EXPECT_SAME(device_c.get(), c, "f64");
}

/* Factors by value, of any arithmetic type, where 0 means 0; and by the address of a double or a float. */
template <class T> static void check_factors(T alpha, T beta) {
  const size_t m = 5, n = 7, k = 3;
  const std::vector<T> a = random_elements<T>(21, m * k), b = random_elements<T>(22, k * n),
                       before = random_elements<T>(23, m * n);
  problem p = problem_of(m, n, k);
  p.alpha = alpha, p.beta = beta;
  std::vector<T> expected(before);
  multiply_on_host(p, a, b, expected);
  device_array<T> device_a(a), device_b(b), device_c(before);
  EXPECT_OK(gk_matmul_scaled(alpha, device_a.ptr, device_b.ptr, beta, device_c.ptr, m, n, k));
  EXPECT_SAME(device_c.get(), expected, "by value, alpha %g, beta %g", p.alpha, p.beta);
  T place_of_alpha = 99, place_of_beta = 99;
  gk_matmul_opts opts = gk_matmul_opts();
  opts.alpha = &place_of_alpha, opts.beta = &place_of_beta;
  place_of_alpha = alpha, place_of_beta = beta; /* read by the call, not before */
  EXPECT_EQ(static_cast<T>(*opts.alpha), alpha);
  device_c.set(before);
  EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, device_c.ptr, m, n, k, &opts));
  EXPECT_SAME(device_c.get(), expected, "by address, alpha %g, beta %g", p.alpha, p.beta);
}

TEST(factors_by_value_and_by_address) {
  check_factors<float>(2, -0.5f);
  check_factors<float>(0, 2);
  check_factors<float>(0.1f, 0);
  check_factors<double>(0.1, 1.0 / 3);
  check_factors<double>(0, 0);
  const float *const no_float = NULL;
  gk_matmul_opts opts = gk_matmul_opts();
  EXPECT(!opts.alpha && !opts.beta);
  opts.alpha = no_float, opts.beta = NULL;
  EXPECT(!opts.alpha && !opts.beta);
  opts.beta = nullptr;
  EXPECT(!opts.beta);
  float *const writable = reinterpret_cast<float *>(16);
  opts.beta = writable;
  EXPECT(!!opts.beta);
  EXPECT_EQ(gk_matmul_scaled(1, no_float, no_float, 0, writable, 1, 1, 1), cudaErrorInvalidValue);
}

/* A precision as a template argument gives the product of the same precision in the options. */
template <gk_precision Precision, class Item> static void check_compiled_precision() {
  const size_t n = 144;
  std::vector<Item> x(n * n);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<Item>(static_cast<float>(i % 251) / 251 - 0.5f);
  const device_array<Item> a(x);
  device_array<Item> expected(n * n), c(n * n), untouched(n * n);
  gk_matmul_opts of_options = gk_matmul_opts(), o = gk_matmul_opts();
  of_options.precision = Precision;
  EXPECT_OK(gk_matmul_ex(a.ptr, a.ptr, expected.ptr, n, n, n, &of_options));
  EXPECT_OK(gk_matmul_ex<Precision>(a.ptr, a.ptr, c.ptr, n, n, n, &of_options));
  EXPECT_SAME(c.get(), expected.get(), "precision %d twice", static_cast<int>(Precision));
  EXPECT_OK(gk_matmul_ex<Precision>(a.ptr, a.ptr, c.ptr, n, n, n, &o));
  EXPECT_SAME(c.get(), expected.get(), "precision %d", static_cast<int>(Precision));
  EXPECT_OK(gk_matmul_ex<Precision>(a.ptr, a.ptr, c.ptr, n, n, n, NULL));
  EXPECT_SAME(c.get(), expected.get(), "precision %d, no options", static_cast<int>(Precision));
  o.precision = Precision == GK_PRECISION_STRICT ? GK_PRECISION_TF32 : GK_PRECISION_STRICT;
  EXPECT_ERROR(cudaErrorInvalidValue, "but that of the template argument, for which kernels are compiled, is",
               gk_matmul_ex<Precision>(a.ptr, a.ptr, untouched.ptr, n, n, n, &o));
  EXPECT(untouched.untouched());
}

TEST(precision_as_a_template_argument) {
  check_compiled_precision<GK_PRECISION_STRICT, float>();
  check_compiled_precision<GK_PRECISION_TF32, float>();
  check_compiled_precision<GK_PRECISION_EMULATED, float>();
  check_compiled_precision<GK_PRECISION_STRICT, double>();
  check_compiled_precision<GK_PRECISION_STRICT, __half>();
  check_compiled_precision<GK_PRECISION_DEFAULT, __nv_bfloat16>();
}

/* gk_matmul_plan returns the path of a product for which the caller chooses no plan. */
TEST(plan_of_a_product) {
  device_array<__half> a(not_numbers<__half>(3)), c(3);
  gk_matmul_path path;
  const std::vector<gk_plan> plans = plans_of<__half, __half>(GK_PRECISION_DEFAULT);
  EXPECT_OK(gk_matmul_plan(a.ptr, a.ptr, c.ptr + 1, 256, 256, 256, NULL, &path));
  EXPECT_EQ(static_cast<int>(path.plan), static_cast<int>(plans.empty() ? GK_PLAN_AUTO : plans.back()));
  EXPECT_EQ(static_cast<int>(path.precision),
            static_cast<int>(plans.empty() ? GK_PRECISION_STRICT : GK_PRECISION_DEFAULT));
  EXPECT_EQ(path.work_bytes, size_t(0));
  EXPECT_OK(gk_matmul_plan(a.ptr, a.ptr + 1, c.ptr + 1, 400, 400, 400, NULL, &path));
  EXPECT_EQ(path.copies_a, 0);
  EXPECT_EQ(path.copies_b, !plans.empty());
  /* Where a copy would take as long as the product, and for tiny ones, there is a kernel that needs none. */
  for (size_t edge : {150u, 2u}) {
    EXPECT_OK(gk_matmul_plan(a.ptr, a.ptr + 1, c.ptr + 1, edge, edge, edge, NULL, &path));
    EXPECT_EQ(path.copies_b, 0);
    EXPECT_EQ(static_cast<int>(path.plan), static_cast<int>(plans.empty() ? GK_PLAN_AUTO : GK_PLAN_MMA));
    EXPECT_EQ(static_cast<int>(path.precision),
              static_cast<int>(plans.empty() ? GK_PRECISION_STRICT : GK_PRECISION_DEFAULT));
  }
  EXPECT_OK(gk_matmul_plan(a.ptr, a.ptr + 1, c.ptr + 1, 2, 200, 200, NULL, &path));
  EXPECT_EQ(static_cast<int>(path.precision), static_cast<int>(GK_PRECISION_STRICT)); /* a thin product */
}

/* --- errors --------------------------------------------------------------------------------------------------------*/

TEST(errors_are_told_and_change_nothing) {
  const size_t m = 20, n = 30, k = 40;
  device_array<float> a(random_elements<float>(1, m * k)), b(random_elements<float>(2, k * n)), c(m * n);
  float *const none = NULL, *const askew = reinterpret_cast<float *>(reinterpret_cast<char *>(c.ptr) + 1);
  gk_matmul_opts plain = gk_matmul_opts(), lda = plain, ldb = plain, ldc = plain, trans = plain, plan = plain,
                 precision = plain, batch = plain, stride_c = plain;
  lda.lda = k - 1, ldb.ldb = n - 1, ldc.ldc = n - 1, trans.trans_a = 1, trans.lda = m - 1;
  const int none_of_them = 77; /* as C would pass it */
  memcpy(&plan.plan, &none_of_them, sizeof(int));
  memcpy(&precision.precision, &none_of_them, sizeof(int));
  batch.batch = 3, batch.stride_a = (SIZE_MAX / 4 / 2 - m * k) / 2 + 1; /* one more than can be */
  gk_matmul_opts largest_stride = batch;
  largest_stride.stride_a--;
  stride_c.batch = 2, stride_c.stride_c = m * n - 1;
  const struct {
    const float *a, *b;
    float *c;
    size_t m, n, k;
    const gk_matmul_opts *opts;
    const char *detail;
  } cases[] = {
      {none, b.ptr, c.ptr, m, n, k, NULL, "gk_matmul: A is NULL but is 20 x 40"},
      {a.ptr, none, c.ptr, m, n, k, NULL, "gk_matmul: B is NULL but is 40 x 30"},
      {a.ptr, b.ptr, none, m, n, k, NULL, "gk_matmul: C is NULL but is 20 x 30"},
      {a.ptr, b.ptr, askew, m, n, k, NULL, "gk_matmul: C is not aligned to its elements' 4 bytes"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &lda,
       "the leading dimension of A is 39, but its stored rows have 40 elements (0: dense rows)"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &ldb, "the leading dimension of B is 29, but its stored rows have 30 elements"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &ldc, "the leading dimension of C is 29, but its stored rows have 30 elements"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &trans, "the leading dimension of A is 19, but its stored rows have 20 elements"},
      {a.ptr, b.ptr, c.ptr, size_t(1) << 40, n, size_t(1) << 40, NULL, "gk_matmul: A, 1 times 1099511627776 x"},
      {a.ptr, b.ptr, c.ptr, 1, size_t(1) << 40, size_t(1) << 40, NULL, "is more than memory can address"},
      {a.ptr, b.ptr, c.ptr, size_t(1) << 40, size_t(1) << 40, 1, NULL, "gk_matmul: C, 1 times"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &batch, "gk_matmul: A, 3 times 20 x 40, is more than memory can address"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &stride_c,
       "stride_c is 599, but each C takes 600 elements; 0 puts one after the other"},
      {c.ptr, b.ptr, c.ptr, m, n, n, NULL, "C is the same memory as A"},
      {a.ptr, c.ptr, c.ptr, m, n, m, NULL, "C is the same memory as B"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &plan, "gk_matmul: plan 77 is not a gk_plan"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &precision, "gk_matmul: precision 77 is not a gk_precision"},
  };
  for (const auto &e : cases) {
    EXPECT_ERROR(cudaErrorInvalidValue, e.detail, gk_matmul_ex(e.a, e.b, e.c, e.m, e.n, e.k, e.opts));
    EXPECT(c.untouched());
  }
  gk_matmul_path path;
  EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, m, n, k, &largest_stride, &path));
  /* nothing to do, nothing needed */
  EXPECT_OK(gk_matmul(none, none, none, 0, n, k));
  EXPECT_OK(gk_matmul(none, none, none, m, 0, k));
  EXPECT_EQ(gk_error_detail(), std::string());
  EXPECT_OK(gk_matmul(none, none, c.ptr, m, n, 0));
  EXPECT_SAME(c.get(), std::vector<float>(m * n, 0.0f), "k = 0");
  EXPECT_OK(gk_matmul(c.ptr, c.ptr, c.ptr, m, n, 0)); /* A and B have no elements that C could overlap */
}

TEST(an_error_from_elsewhere_is_neither_reported_nor_cleared) {
  device_array<float> a(std::vector<float>(100, 1.0f)), c(100);
  EXPECT(cudaSetDevice(12345) != cudaSuccess);
  EXPECT_OK(gk_matmul(a.ptr, a.ptr, c.ptr, 10, 10, 10));
  EXPECT_EQ((int)cudaPeekAtLastError(), (int)cudaErrorInvalidDevice);
  EXPECT_EQ((int)cudaGetLastError(), (int)cudaErrorInvalidDevice);
  EXPECT_SAME(c.get(), std::vector<float>(100, 10.0f), "product");
}

/* --- streams, threads, graphs --------------------------------------------------------------------------------------*/

TEST(two_threads_and_a_graph) {
  const problem p = problem_of(150, 140, 130);
  const std::vector<float> a[2] = {random_elements<float>(1, p.m * p.k), random_elements<float>(2, p.m * p.k)};
  const std::vector<float> b = random_elements<float>(3, p.k * p.n);
  std::vector<float> expected[2] = {std::vector<float>(p.m * p.n), std::vector<float>(p.m * p.n)};
  device_array<float> device_b(b), a0(a[0]), a1(a[1]), c0(p.m * p.n), c1(p.m * p.n);
  const float *const from[2] = {a0.ptr, a1.ptr};
  float *const to[2] = {c0.ptr, c1.ptr};
  test_stream streams[2];
  std::thread threads[2];
  int failed[2] = {0, 0};
  for (size_t t = 0; t < 2; t++) {
    multiply_on_host(p, a[t], b, expected[t]);
    threads[t] = std::thread([&, t] {
      for (int i = 0; i < 5; i++)
        failed[t] += gk_matmul(from[t], device_b.ptr, to[t], p.m, p.n, p.k, streams[t].stream) != cudaSuccess;
    });
  }
  for (std::thread &t : threads) t.join();
  EXPECT_EQ(failed[0] + failed[1], 0);
  EXPECT_SAME(c0.get(), expected[0], "thread 0");
  EXPECT_SAME(c1.get(), expected[1], "thread 1");
  replay_graph(
      4, [&](cudaStream_t s) { EXPECT_OK(gk_matmul(from[0], device_b.ptr, to[0], p.m, p.n, p.k, s)); },
      [&](int i) {
        a0.set(a[i % 2]);
        c0.clear();
      },
      [&](int i) { EXPECT_SAME(c0.get(), expected[i % 2], "replay %d", i); });
}

/* --- past 2^32 -----------------------------------------------------------------------------------------------------*/

__global__ static void count_wrong(const float *c, size_t rows, size_t cols, unsigned long long *wrong) {
  GK_FOR_1D (i, rows * cols) {
    const float row = static_cast<float>(i / cols % 1000), col = static_cast<float>(i % cols % 1000);
    if (c[i] != row * 2 + col) atomicAdd(wrong, 1ull);
  }
}

TEST(more_than_2_to_the_32_elements) {
  const size_t edge = 65600, bytes = edge * edge * sizeof(float);
  need_device_bytes(bytes + (size_t(1) << 30));
  std::vector<float> a(2 * edge), b(2 * edge);
  for (size_t i = 0; i < edge; i++) { /* C[i][j] = i * 2 + 1 * j */
    a[2 * i] = static_cast<float>(i % 1000), a[2 * i + 1] = 1;
    b[i] = 2, b[edge + i] = static_cast<float>(i % 1000);
  }
  device_array<float> device_a(a), device_b(b), c(edge * edge);
  device_array<unsigned long long> wrong(std::vector<unsigned long long>(1, 0));
  EXPECT_OK(gk_matmul(device_a.ptr, device_b.ptr, c.ptr, edge, edge, 2));
  GK_LAUNCH(count_wrong, gk_grid_1d(edge * edge, 256), 256, 0, 0, c.ptr, edge, edge, wrong.ptr);
  EXPECT_EQ(wrong.first(), 0ull);
}

__global__ static void fill_columns(__half *x, size_t n) {
  GK_FOR_1D (i, n) x[i] = __float2half_rn(static_cast<float>((i ^ i >> 20) % 1000));
}

__global__ static void count_wrong_columns(const __half *c, size_t n, unsigned long long *wrong) {
  GK_FOR_1D (i, n) {
    if (__half2float(c[i]) != 2 * static_cast<float>((i ^ i >> 20) % 1000)) atomicAdd(wrong, 1ull);
  }
}

/* 2^29 columns of tiles: eight times as many do not fit into 32 bits. */
static void check_columns(size_t n, gk_precision precision, gk_plan plan) {
  need_device_bytes(2 * n * sizeof(__half) + (size_t(1) << 28));
  device_array<__half> a(std::vector<__half>(1, make<__half>(2)));
  __half *b = NULL, *c = NULL;
  EXPECT_OK(cudaMalloc(&b, n * sizeof(__half)));
  EXPECT_OK(cudaMalloc(&c, n * sizeof(__half)));
  device_array<unsigned long long> wrong(std::vector<unsigned long long>(1, 0));
  gk_matmul_opts opts = gk_matmul_opts();
  opts.precision = precision, opts.plan = plan;
  GK_LAUNCH(fill_columns, gk_grid_1d(n, 256), 256, 0, 0, b, n);
  EXPECT_OK(gk_matmul_ex(a.ptr, b, c, 1, n, 1, &opts));
  GK_LAUNCH(count_wrong_columns, gk_grid_1d(n, 256), 256, 0, 0, c, n, wrong.ptr);
  EXPECT_EQ(wrong.first(), 0ull);
  EXPECT_OK(cudaFree(b));
  EXPECT_OK(cudaFree(c));
}

TEST(more_than_2_to_the_29_tiles_strict) { check_columns(size_t(1) << 34, GK_PRECISION_STRICT, HOOK_PLAN_TILE_32); }

TEST(more_than_2_to_the_29_tiles_on_tensor_cores) {
  check_columns(size_t(1) << 35, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
}
