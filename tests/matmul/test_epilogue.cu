/* gk_matmul_epilogue: every kernel applies the functor to the bits of the plain product, once for each element. */
#include "once.h"

#include "products.h"

/* The same bits whether it is applied before C's rounding to a half type or after it. */
struct exact_by_place {
  template <class Acc> __host__ __device__ Acc operator()(Acc value, size_t row, size_t col) const {
    return static_cast<Acc>(1 << (row + 3 * col) % 4) * value;
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
  bool trans_a, trans_b;
  double beta;
};
static const size_t split_k = on_cpu ? 900 : 3000; /* both are split */
/* Few rows or columns, small tiles, several tiles, a split k, a batch, transposes, k = 0. */
static const product products[] = {
    {1, 70, 300, 1, false, false, 0},     {90, 2, 200, 1, false, false, 0.5},   {17, 19, 23, 1, false, false, 0},
    {64, 64, 64, 5, false, false, 0.5},   {130, 97, 65, 1, true, true, 0},      {40, 40, split_k, 1, false, false, 0},
    {40, 48, split_k, 2, true, true, 2},  {200, 136, 80, 1, false, false, -1},  {5, 7, 0, 1, false, false, 3},
#ifndef CUDA_ON_CPU /* large tiles, whole and cut, stored by TMA and by threads, and split-K in clusters */
    {512, 768, 128, 1, false, false, 0},  {1000, 1000, 200, 1, false, true, 0}, {515, 1301, 96, 1, true, false, 0.5},
    {2049, 640, 72, 1, false, false, 0},  {640, 2050, 72, 2, true, true, 0},    {128, 192, 4096, 1, false, true, 0},
    {190, 128, 4100, 1, false, false, 2},
#endif
};

/* T: of A and B. Out: of C. */
template <gk_precision Precision, class Func, class T, class Out> static void check(gk_plan plan, const char *name) {
  typedef typename std::conditional<std::is_same<T, double>::value, double, float>::type Acc;
  for (const product &p : products) {
    if (Precision == GK_PRECISION_EMULATED && p.k == split_k) continue; /* slow on the stand-in */
    if (test_leaves_out()) continue;
    const size_t elements = p.batch * p.m * p.n;
    std::vector<T> host_a(p.batch * p.m * p.k), host_b(p.batch * p.k * p.n);
    std::vector<Out> host_c(elements), plain(elements), got(elements), expected(elements);
    for (size_t i = 0; i < host_a.size(); i++) host_a[i] = make<T>(gauss(90, i));
    for (size_t i = 0; i < host_b.size(); i++) host_b[i] = make<T>(gauss(91, i));
    for (size_t i = 0; i < elements; i++) host_c[i] = make<Out>(gauss(92, i));
    const gk_array<T> a(host_a), b(host_b);
    gk_array<Out> c(host_c), d(host_c);
    const double alpha = 1.5;
    gk_matmul_opts opts = gk_matmul_opts();
    opts.alpha = &alpha;
    opts.beta = &p.beta;
    opts.trans_a = p.trans_a;
    opts.trans_b = p.trans_b;
    opts.batch = p.batch;
    opts.stride_a = p.m * p.k;
    opts.stride_b = p.k * p.n;
    opts.plan = plan;
    EXPECT_OK(gk_matmul_ex<Precision>(a, b, c, p.m, p.n, p.k, &opts));
    EXPECT_OK(gk_matmul_epilogue<Precision>(a, b, d, p.m, p.n, p.k, Func(), &opts));
    c.copy_to(plain);
    d.copy_to(got);
    for (size_t i = 0; i < elements; i++)
      expected[i] = make<Out>(Func()(static_cast<Acc>(plain[i]), i / p.n % p.m, i % p.n));
    EXPECT_SAME(got, expected, "%s, %zu x %zu x %zu, batch %zu", name, p.m, p.n, p.k, p.batch);
  }
}
/* By each plan on tensor cores, and by the one that the planner chooses: for small products their own kernel, or for
 * emulated fp32 a strict one. */
template <gk_precision Precision, class Func, class T, class Out> static void check_both(const char *name) {
  for (gk_plan plan : require_plans<T, Out>(Precision)) check<Precision, Func, T, Out>(plan, name);
  check<Precision, Func, T, Out>(GK_PLAN_AUTO, name);
}
TEST(strict_floats) { check<GK_PRECISION_DEFAULT, by_place, float, float>(GK_PLAN_AUTO, "floats"); }
TEST(strict_doubles) { check<GK_PRECISION_DEFAULT, by_place, double, double>(GK_PLAN_AUTO, "doubles"); }
TEST(strict_halves) { check<GK_PRECISION_STRICT, by_place, __half, float>(GK_PLAN_AUTO, "strict halves"); }
TEST(halves) { check_both<GK_PRECISION_DEFAULT, by_place, __half, float>("halves"); }
TEST(bfloat16) { check_both<GK_PRECISION_DEFAULT, exact_by_place, __nv_bfloat16, __nv_bfloat16>("bfloat16"); }
TEST(tf32) { check_both<GK_PRECISION_TF32, by_place, float, float>("tf32"); }
TEST(emulated) { check_both<GK_PRECISION_EMULATED, by_place, float, float>("emulated"); }

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
  replay_graph(
      1,
      [&](cudaStream_t stream) {
        EXPECT_OK(gk_matmul_epilogue(a, b, c, m, n, k, relu_of_bias(x.data()), NULL, stream));
      },
      [&](int) { c.clear(); },
      [&](int) {
        c.copy_to(got);
        EXPECT_SAME(got, expected, "relu(A B + bias) in a graph");
      });
}
/* Tiles that overlap would call it again for the same element. */
static const size_t counted_edge = 200; /* of C */
struct call_counter {
  unsigned *calls;
  explicit call_counter(unsigned *of) : calls(of) {}
  __device__ float operator()(float value, size_t row, size_t col) const {
    atomicAdd(&calls[row * counted_edge + col], 1u);
    return value;
  }
};
template <gk_precision Precision, class T> static void check_calls() {
  std::vector<gk_plan> plans = plans_of<T, float>(Precision);
  plans.push_back(GK_PLAN_AUTO);
  const size_t edge = counted_edge, k = 96;
  for (gk_plan plan : plans) {
    const gk_array<T> a(std::vector<T>(edge * k, make<T>(1))), b(std::vector<T>(k * edge, make<T>(1)));
    gk_array<float> c(edge * edge);
    gk_array<unsigned> calls(std::vector<unsigned>(edge * edge));
    gk_matmul_opts opts = gk_matmul_opts();
    opts.plan = plan;
    EXPECT_OK(gk_matmul_epilogue<Precision>(a, b, c, edge, edge, k, call_counter(calls.data()), &opts));
    std::vector<unsigned> got(edge * edge);
    calls.copy_to(got);
    EXPECT_SAME(got, std::vector<unsigned>(edge * edge, 1u), "plan %d", static_cast<int>(plan));
  }
}
TEST(functors_are_called_once_for_each_element) {
  check_calls<GK_PRECISION_DEFAULT, __half>();
  check_calls<GK_PRECISION_TF32, float>();
  check_calls<GK_PRECISION_STRICT, float>();
}
/* The functor gets the value before it is rounded to C's type. Here that would be 1. */
struct minus_one {
  __host__ __device__ float operator()(float value, size_t, size_t) const { return value - 1; }
};
template <class T> static void check_unrounded(const char *name) {
  std::vector<gk_plan> plans = plans_of<T, T>(GK_PRECISION_DEFAULT);
  plans.push_back(GK_PLAN_AUTO);
  for (size_t edge : {7u, 130u})
    for (gk_plan plan : plans) {
      const size_t k = 40;
      std::vector<T> host(edge * k, make<T>(0)), got(edge * edge);
      for (size_t i = 0; i < edge; i++) host[i * k] = make<T>(1), host[i * k + 1] = make<T>(0x1p-12);
      const gk_array<T> a(host), b(std::vector<T>(k * edge, make<T>(1)));
      gk_array<T> c(edge * edge);
      gk_matmul_opts opts = gk_matmul_opts();
      opts.plan = plan;
      EXPECT_OK(gk_matmul_epilogue(a, b, c, edge, edge, k, minus_one(), &opts));
      c.copy_to(got);
      EXPECT_SAME(got, std::vector<T>(edge * edge, make<T>(0x1p-12)), "%s, plan %d, %zu rows", name,
                  static_cast<int>(plan), edge);
    }
}
TEST(functors_get_what_is_not_rounded_yet) {
  check_unrounded<__half>("halves");
  check_unrounded<__nv_bfloat16>("bfloat16");
}
TEST(precision_of_the_options) {
  gk_array<float> a(4), b(4), c(4);
  gk_matmul_opts opts = gk_matmul_opts();
  opts.precision = GK_PRECISION_TF32;
  EXPECT_ERROR(cudaErrorInvalidValue,
               "gk_matmul_epilogue: the precision of the options is GK_PRECISION_TF32, but that of the template "
               "argument, for which kernels are compiled, is GK_PRECISION_STRICT; leave one of them out",
               gk_matmul_epilogue<GK_PRECISION_STRICT>(a, b, c, 2, 2, 2, by_place(), &opts));
}
