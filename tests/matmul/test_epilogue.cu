/* gk_matmul_epilogue: the functor is applied to the bits of the plain product, once for each element, by every kernel. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include <algorithm>
#include "data.h"

/* Neither linear nor the same at any two places. */
struct by_place {
  template <class Acc> __host__ __device__ Acc operator()(Acc value, size_t row, size_t col) const {
    return value * value + static_cast<Acc>(row) - static_cast<Acc>(col);
  }
};
/* Has no default constructor, like a lambda that captures. */
struct relu_of_bias {
  const float *bias;
  explicit relu_of_bias(const float *of) : bias(of) {}
  __device__ float operator()(float value, size_t, size_t col) const {
    return value + bias[col] > 0 ? value + bias[col] : 0;
  }
};

struct product {
  size_t m, n, k, batch;
  bool transposed;
  double beta;
};
/* Few rows or columns, small tiles, several tiles, a split k, a batch, transposes, k = 0. */
static const product products[] = {
    {1, 70, 300, 1, false, 0},   {90, 2, 200, 1, false, 0.5},  {17, 19, 23, 1, false, 0},
    {64, 64, 64, 5, false, 0.5}, {130, 97, 65, 1, true, 0},    {40, 40, 3000, 1, false, 0},
    {40, 48, 3000, 2, true, 2},  {200, 136, 80, 1, false, -1}, {5, 7, 0, 1, false, 3}};

/* T: of A and B; C is of Acc. */
template <gk_precision Precision, class T, class Acc> static void check(gk_plan plan, const char *name) {
  for (const product &p : products) {
    if (Precision == GK_PRECISION_EMULATED && p.k > 1000) continue; /* slow on the stand-in */
    const size_t elements = p.batch * p.m * p.n;
    std::vector<T> host_a(p.batch * p.m * p.k), host_b(p.batch * p.k * p.n);
    std::vector<Acc> host_c(elements), plain(elements), got(elements), expected(elements);
    for (size_t i = 0; i < host_a.size(); i++) host_a[i] = make<T>(gauss(90, i));
    for (size_t i = 0; i < host_b.size(); i++) host_b[i] = make<T>(gauss(91, i));
    for (size_t i = 0; i < elements; i++) host_c[i] = make<Acc>(gauss(92, i));
    const gk_array<T> a(host_a), b(host_b);
    gk_array<Acc> c(host_c), d(host_c);
    const double alpha = 1.5;
    gk_matmul_opts opts = gk_matmul_opts();
    opts.alpha = &alpha;
    opts.beta = &p.beta;
    opts.trans_a = opts.trans_b = p.transposed;
    opts.batch = p.batch;
    opts.stride_a = p.m * p.k;
    opts.stride_b = p.k * p.n;
    opts.plan = plan;
    EXPECT_OK(gk_matmul_ex<Precision>(a, b, c, p.m, p.n, p.k, &opts));
    EXPECT_OK(gk_matmul_epilogue<Precision>(a, b, d, p.m, p.n, p.k, by_place(), &opts));
    c.copy_to(plain);
    d.copy_to(got);
    for (size_t i = 0; i < elements; i++) expected[i] = by_place()(plain[i], i / p.n % p.m, i % p.n);
    EXPECT_SAME(got, expected, "%s, %zu x %zu x %zu, batch %zu", name, p.m, p.n, p.k, p.batch);
  }
}
TEST(strict_floats) { check<GK_PRECISION_DEFAULT, float, float>(GK_PLAN_AUTO, "floats"); }
TEST(strict_doubles) { check<GK_PRECISION_DEFAULT, double, double>(GK_PLAN_AUTO, "doubles"); }
TEST(strict_halves) { check<GK_PRECISION_STRICT, __half, float>(GK_PLAN_AUTO, "strict halves"); }
/* Hopper's kernels have no functor, so both products are by mma.sync. */
TEST(halves) { check<GK_PRECISION_DEFAULT, __half, float>(GK_PLAN_MMA, "halves"); }
TEST(bfloat16) { check<GK_PRECISION_DEFAULT, __nv_bfloat16, float>(GK_PLAN_MMA, "bfloat16"); }
TEST(tf32) { check<GK_PRECISION_TF32, float, float>(GK_PLAN_MMA, "tf32"); }
TEST(emulated) { check<GK_PRECISION_EMULATED, float, float>(GK_PLAN_MMA, "emulated"); }

TEST(bias_and_activation) {
  const size_t m = 33, n = 50, k = 20;
  std::vector<float> ones(m * k, 1.0f), ramp(k * n), bias(n), got(m * n), expected(m * n);
  for (size_t i = 0; i < k * n; i++) ramp[i] = static_cast<float>(i % n) * 0.25f;
  for (size_t j = 0; j < n; j++) bias[j] = j % 2 ? -1000.0f : 1.0f;
  for (size_t i = 0; i < m * n; i++) expected[i] = std::max(static_cast<float>(i % n) * 5.0f + bias[i % n], 0.0f);
  const gk_array<float> a(ones), b(ramp), x(bias);
  gk_array<float> c(m * n);
  EXPECT_OK(gk_matmul_epilogue(a, b, c, m, n, k, relu_of_bias(x.data())));
  c.copy_to(got);
  EXPECT_SAME(got, expected, "relu(A B + bias)");
}
TEST(precision_of_the_options) {
  gk_array<float> a(4), b(4), c(4);
  gk_matmul_opts opts = gk_matmul_opts();
  opts.precision = GK_PRECISION_TF32;
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul_epilogue: the precision of the options is 2",
               gk_matmul_epilogue<GK_PRECISION_STRICT>(a, b, c, 2, 2, 2, by_place(), &opts));
}
