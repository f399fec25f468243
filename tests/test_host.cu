/* The calls on host arrays, gk_allclose, and the typed entry points that C programs use. */
#define GPUKIT_IMPLEMENTATION
#define GPUKIT_C_API
#include "gpukit.cuh"

#include "data.h"
#include "failures.h"

/* --- operators by number, and plain loops with them -----------------------------------------------------------------*/

static const gk_op value_ops[] = {GK_OP_SUM, GK_OP_PROD, GK_OP_MIN, GK_OP_MAX};
static const char *name_of(gk_op op) {
  switch (op) {
  case GK_OP_SUM: return "sum";
  case GK_OP_PROD: return "product";
  case GK_OP_MIN: return "min";
  case GK_OP_MAX: return "max";
  case GK_OP_ARGMIN: return "argmin";
  case GK_OP_ARGMAX: return "argmax";
  }
  return "no operator";
}

template <class A> static A identity_of(gk_op op) {
  typedef std::numeric_limits<A> limits;
  if (op == GK_OP_MIN) return is_float<A>::value ? limits::infinity() : limits::max();
  if (op == GK_OP_MAX) return is_float<A>::value ? -limits::infinity() : limits::lowest();
  return op == GK_OP_SUM ? A(0) : A(1);
}
template <class A> static A combine(gk_op op, A x, A y) {
  typedef typename std::conditional<is_float<A>::value, A, uint64_t>::type U; /* unsigned integers wrap */
  if (op == GK_OP_SUM) return static_cast<A>(static_cast<U>(x) + static_cast<U>(y));
  if (op == GK_OP_PROD) return static_cast<A>(static_cast<U>(x) * static_cast<U>(y));
  return (op == GK_OP_MIN ? y < x : y > x) ? y : x;
}
template <class T> static plain_type<T> reduce_in_a_loop(gk_op op, const std::vector<T> &x) {
  plain_type<T> all = identity_of<plain_type<T>>(op);
  for (const T &v : x) all = combine(op, all, plain(v));
  return all;
}
template <class T>
static std::vector<T> scan_in_a_loop(gk_op op, bool inclusive, plain_type<T> running, std::vector<T> x) {
  for (T &v : x) {
    const plain_type<T> next = combine(op, running, plain(v));
    v = make<T>(0);
    if constexpr (is_half<T>::value)
      v = make<T>(static_cast<double>(inclusive ? next : running));
    else
      v = inclusive ? next : running;
    running = next;
  }
  return x;
}
/* Exact in any order; the extreme elements come late. */
template <class T> static std::vector<T> elements(gk_op op, size_t n) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; i++) {
    if (op == GK_OP_PROD) {
      x[i] = make<T>(i % 128 == 9 ? 2 : i % 128 == 77 && is_float<T>::value ? 0.5 : 1);
    } else if (is_float<T>::value || op != GK_OP_SUM) {
      const int any = i == n - 3 ? 49 : i == n - 2 ? 11 : uniform(31, i, 20, 40);
      x[i] = make<T>(op == GK_OP_SUM ? any - 30 : any);
    } else {
      x[i] = static_cast<T>(mix(31, i));
    }
  }
  return x;
}

/* --- host arrays ----------------------------------------------------------------------------------------------------*/

static size_t free_bytes() {
  size_t free = 0, total = 0;
  EXPECT_OK(cudaMemGetInfo(&free, &total));
  return free;
}

TEST(host_arrays_go_there_and_back) {
  const size_t n = 30000, before = free_bytes();
  const std::vector<float> x = elements<float>(GK_OP_SUM, n);
  float sum = -1;
  EXPECT_OK(gk_host_reduce(x.data(), &sum, n, gk_op_sum()));
  EXPECT_EQ(sum, reduce_in_a_loop(GK_OP_SUM, x));
  gk_arg<float> most = {0, 0};
  EXPECT_OK(gk_host_reduce(x.data(), &most, n, gk_op_argmax()));
  EXPECT_EQ(most.value, reduce_in_a_loop(GK_OP_MAX, x));
  EXPECT_EQ(x[most.index], most.value);
  std::vector<float> y(n);
  EXPECT_OK(gk_host_scan_inclusive(x.data(), y.data(), n, gk_op_sum()));
  EXPECT_SAME(y, scan_in_a_loop(GK_OP_SUM, true, 0.0f, x), "inclusive");
  EXPECT_OK(gk_host_scan_exclusive(x.data(), y.data(), n, gk_op_max()));
  EXPECT_SAME(y, scan_in_a_loop(GK_OP_MAX, false, -HUGE_VALF, x), "exclusive");
  y = x;
  EXPECT_OK(gk_host_scan_inclusive(y.data(), y.data(), n, gk_op_sum())); /* in place */
  EXPECT_SAME(y, scan_in_a_loop(GK_OP_SUM, true, 0.0f, x), "in place");
  const std::vector<__half> halves(n, make<__half>(0.5));
  EXPECT_OK(gk_host_reduce(halves.data(), &sum, n, gk_op_sum()));
  EXPECT_EQ(sum, 15000.0f);
  EXPECT_EQ(gk_error_detail(), std::string());
#ifdef CUDA_ON_CPU /* a GPU's driver keeps some for itself */
  EXPECT_EQ(free_bytes(), before);
#else
  (void)before;
#endif
}

TEST(host_matmul) {
  const size_t m = 7, n = 5, k = 9;
  std::vector<float> a(m * k), b(k * n), c(m * n), expected(m * n);
  for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(uniform(32, i, -9, 9));
  for (size_t i = 0; i < b.size(); i++) b[i] = static_cast<float>(uniform(33, i, -9, 9));
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++)
      for (size_t l = 0; l < k; l++) expected[i * n + j] += a[i * k + l] * b[l * n + j];
  EXPECT_OK(gk_host_matmul(a.data(), b.data(), c.data(), m, n, k));
  EXPECT_SAME(c, expected, "product");
  EXPECT_OK(gk_host_matmul(a.data(), b.data(), c.data(), m, n, 0));
  EXPECT_SAME(c, std::vector<float>(m * n, 0.0f), "k = 0");
  EXPECT_OK(gk_host_matmul(a.data(), b.data(), static_cast<float *>(NULL), 0, n, k));
}

TEST(nothing_on_the_host) {
  const float *const none = NULL;
  float out = -1;
  EXPECT_OK(gk_host_reduce(none, &out, 0, gk_op_min()));
  EXPECT_EQ(out, HUGE_VALF);
  EXPECT_OK(gk_host_scan_inclusive(none, static_cast<float *>(NULL), 0, gk_op_sum()));
}

TEST(errors_on_the_host_change_nothing) {
  const size_t before = free_bytes(), huge = size_t(1) << 46;
  const float *const none = NULL, x[4] = {1, 2, 3, 4};
  float y[4] = {-1, -1, -1, -1}, *const nowhere = NULL;
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_reduce: an array of 4 elements is NULL",
               gk_host_reduce(none, y, 4, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_reduce: an array of 1 elements is NULL",
               gk_host_reduce(x, nowhere, 4, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "is more than memory can address",
               gk_host_reduce(x, y, SIZE_MAX / 4 + 1, gk_op_sum()));
  EXPECT_ERROR(cudaErrorMemoryAllocation, "the device has no 281474976710656 bytes left",
               gk_host_reduce(x, y, huge, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_scan_inclusive: an array of 4 elements is NULL",
               gk_host_scan_inclusive(none, y, 4, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_scan_exclusive: an array of 4 elements is NULL",
               gk_host_scan_exclusive(x, nowhere, 4, gk_op_sum()));
  EXPECT_ERROR(cudaErrorMemoryAllocation, "the device has no 281474976710656 bytes left",
               gk_host_scan_exclusive(x, y, huge, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_matmul: an array of 4 elements is NULL",
               gk_host_matmul(none, x, y, 2, 2, 2));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_matmul: an array of 4 elements is NULL",
               gk_host_matmul(x, x, nowhere, 2, 2, 2));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_matmul: 4294967296 x 4294967296 x 1 is more than memory can address",
               gk_host_matmul(x, x, y, size_t(1) << 32, size_t(1) << 32, 1));
  for (float v : y) EXPECT_EQ(v, -1.0f);
#ifdef CUDA_ON_CPU
  EXPECT_EQ(free_bytes(), before);
#else
  (void)before;
#endif
}

/* --- gk_allclose ----------------------------------------------------------------------------------------------------*/

TEST(allclose_is_relative_to_the_second) {
  const struct {
    double a, b, rtol, atol;
    bool close;
  } cases[] = {
      {1, 1, 0, 0, true},           {1, 1.25, 0, 0.25, true},         {1, 1.25, 0, 0.24, false},
      {100, 110, 0.1, 0, true},                                /* 10 <= 11 */
      {110, 100, 0.0999, 0, false}, {111, 100, 0.1, 0, false}, /* 11 > 10 */
      {111, 100, 0.1, 1, true},     {-100, -110, 0.1, 0, true},       {0.0, -0.0, 0, 0, true},
      {1e-300, 0, 0.5, 0, false},   {HUGE_VAL, HUGE_VAL, 0, 0, true}, {-HUGE_VAL, HUGE_VAL, 1, 1, false},
      {1, HUGE_VAL, 1, 1, false},   {HUGE_VAL, 1, 1, 1, false},       {HUGE_VAL, HUGE_VAL, 0, HUGE_VAL, true},
      {1, 2, 0, HUGE_VAL, true},    {NAN, NAN, 1, 1, false},          {NAN, 1, 1, HUGE_VAL, false},
      {1, NAN, 1, 1, false},
  };
  for (const auto &c : cases)
    if (gk_allclose(&c.a, &c.b, 1, c.rtol, c.atol) != c.close)
      test_fail(__FILE__, __LINE__, sentence("%g against %g, rtol %g, atol %g", c.a, c.b, c.rtol, c.atol));
}

TEST(allclose_tells_where) {
  const float a[] = {1, 2, 3, 4, 5, 6};
  const double b[] = {1, 2.5, 3, 2, 5, 9};
  gk_mismatch where = {9, 9, 9, 9, 9, 9, 9};
  EXPECT(!gk_allclose(a, b, 6, 0, 0.25, &where));
  EXPECT_EQ(where.count, size_t(3));
  EXPECT_EQ(where.first, size_t(1));
  EXPECT_EQ(where.first_a, 2.0);
  EXPECT_EQ(where.first_b, 2.5);
  EXPECT_EQ(where.worst, size_t(5));
  EXPECT_EQ(where.worst_a, 6.0);
  EXPECT_EQ(where.worst_b, 9.0);
  EXPECT_EQ(gk_error_detail(),
            std::string("gk_allclose: 3 of 6 differ: first [1]: 2 against 2.5, worst [5]: 6 against 9"));
  /* over its allowance: [3] differs by 2 of 0.2, [5] by 3 of 0.9 */
  EXPECT(!gk_allclose(a, b, 6, 0.1, 0, &where));
  EXPECT_EQ(where.worst, size_t(3));
  /* no allowance: by the difference alone */
  EXPECT(!gk_allclose(a, b, 6, 0, 0, &where));
  EXPECT_EQ(where.worst, size_t(5));
  /* success: all is zero, and the detail gone */
  EXPECT(gk_allclose(a, b, 6, 1, 0, &where));
  EXPECT_EQ(where.count, size_t(0));
  EXPECT_EQ(gk_error_detail(), std::string());
  EXPECT(gk_allclose(a, b, 0, 0, 0));
  EXPECT(!gk_allclose(a, b, 6, 0, 0)); /* without where */
}

TEST(allclose_finds_nan_the_worst) {
  const double a[] = {0, 1e300, NAN, HUGE_VAL, 5}, b[] = {0, -1e300, 1, 1, 5};
  gk_mismatch where;
  EXPECT(!gk_allclose(a, b, 5, 1e-6, 0, &where));
  EXPECT_EQ(where.count, size_t(3));
  EXPECT_EQ(where.first, size_t(1));
  EXPECT_EQ(where.worst, size_t(2)); /* the first of the infinitely wrong */
  EXPECT_HAS(gk_error_detail(), "worst [2]: nan against 1");
  const int64_t i[] = {1, 2, 3}, j[] = {1, 2, 4};
  EXPECT(!gk_allclose(i, j, 3, 0, 0, &where));
  EXPECT_EQ(where.worst, size_t(2));
}

/* --- typed entry points ---------------------------------------------------------------------------------------------*/

/* The functions of one type, under one name. */
template <class T> struct typed;
#define TYPED(S, T)                                                                                                    \
  template <> struct typed<T> {                                                                                        \
    typedef gk_arg_##S arg;                                                                                            \
    static constexpr auto reduce = gk_reduce_##S;                                                                      \
    static constexpr auto argreduce = gk_argreduce_##S;                                                                \
    static constexpr auto scan_exclusive = gk_scan_exclusive_##S;                                                      \
    static constexpr auto scan_inclusive = gk_scan_inclusive_##S;                                                      \
    static constexpr auto scan_exclusive_init = gk_scan_exclusive_init_##S;                                            \
    static constexpr auto host_reduce = gk_host_reduce_##S;                                                            \
    static constexpr auto host_scan_exclusive = gk_host_scan_exclusive_##S;                                            \
    static constexpr auto host_scan_inclusive = gk_host_scan_inclusive_##S;                                            \
  };
TYPED(f32, float)
TYPED(f64, double)
TYPED(i32, int32_t)
TYPED(u32, uint32_t)
TYPED(i64, int64_t)
TYPED(u64, uint64_t)

template <class T> static void check_typed(const char *name) {
  typedef typed<T> api;
  const size_t n = 20001;
  test_scratch scratch(gk_scan_scratch_bytes(n, 8));
  test_stream s;
  device_array<T> out(n);
  T one;
  for (gk_op op : value_ops) {
    const std::vector<T> host = elements<T>(op, n);
    const T all = reduce_in_a_loop(op, host), start = T(3), none = identity_of<T>(op);
    const std::vector<T> exclusive = scan_in_a_loop(op, false, none, host);
    const std::vector<T> inclusive = scan_in_a_loop(op, true, none, host);
    std::vector<T> back(n);
    device_array<T> in(host);
    EXPECT_OK(api::reduce(in.ptr, out.ptr, n, op, s.stream, &scratch));
    EXPECT_SAME(out.first(), all, "gk_reduce_%s, %s", name, name_of(op));
    EXPECT_OK(api::scan_exclusive(in.ptr, out.ptr, n, op, s.stream, &scratch));
    EXPECT_SAME(out.get(), exclusive, "gk_scan_exclusive_%s, %s", name, name_of(op));
    EXPECT_OK(api::scan_inclusive(in.ptr, out.ptr, n, op, s.stream, &scratch));
    EXPECT_SAME(out.get(), inclusive, "gk_scan_inclusive_%s, %s", name, name_of(op));
    EXPECT_OK(api::scan_exclusive_init(in.ptr, out.ptr, n, op, start, s.stream, NULL));
    EXPECT_SAME(out.get(), scan_in_a_loop(op, false, combine(op, start, none), host), "gk_scan_exclusive_init_%s, %s",
                name, name_of(op));
    EXPECT_OK(api::host_reduce(host.data(), &one, n, op));
    EXPECT_SAME(one, all, "gk_host_reduce_%s, %s", name, name_of(op));
    EXPECT_OK(api::host_scan_exclusive(host.data(), back.data(), n, op));
    EXPECT_SAME(back, exclusive, "gk_host_scan_exclusive_%s, %s", name, name_of(op));
    EXPECT_OK(api::host_scan_inclusive(host.data(), back.data(), n, op));
    EXPECT_SAME(back, inclusive, "gk_host_scan_inclusive_%s, %s", name, name_of(op));
    if (op != GK_OP_MIN && op != GK_OP_MAX) continue;
    device_array<typename api::arg> arg(1);
    EXPECT_OK(api::argreduce(in.ptr, arg.ptr, n, op == GK_OP_MIN ? GK_OP_ARGMIN : GK_OP_ARGMAX, s.stream, &scratch));
    EXPECT_SAME(arg.first().value, all, "gk_argreduce_%s, %s", name, name_of(op));
    EXPECT_EQ(arg.first().index, op == GK_OP_MIN ? n - 2 : n - 3);
  }
  /* Operators that a call has no use for, by the name of the call */
  const gk_op unknown = static_cast<gk_op>(7);
  const std::string S = name;
  out.clear();
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_reduce_" + S + ": argmin and argmax have another result").c_str(),
               api::reduce(out.ptr, out.ptr, 1, GK_OP_ARGMIN, 0, NULL));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_reduce_" + S + ": operator 7 is none").c_str(),
               api::reduce(out.ptr, out.ptr, 1, unknown, 0, NULL));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_scan_inclusive_" + S + ": operator 7 is none").c_str(),
               api::scan_inclusive(out.ptr, out.ptr, 1, unknown, 0, NULL));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_scan_exclusive_" + S + ": operator 7 is none").c_str(),
               api::scan_exclusive(out.ptr, out.ptr, 1, unknown, 0, NULL));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_scan_exclusive_init_" + S + ": operator 7 is none").c_str(),
               api::scan_exclusive_init(out.ptr, out.ptr, 1, unknown, T(1), 0, NULL));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_host_reduce_" + S + ": operator 7 is none").c_str(),
               api::host_reduce(&one, &one, 1, unknown));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_argreduce_" + S + ": operator 0 is neither argmin nor argmax").c_str(),
               api::argreduce(out.ptr, NULL, 1, GK_OP_SUM, 0, NULL));
  EXPECT(out.untouched());
}
TEST(typed_f32) { check_typed<float>("f32"); }
TEST(typed_f64) { check_typed<double>("f64"); }
TEST(typed_i32) { check_typed<int32_t>("i32"); }
TEST(typed_u32) { check_typed<uint32_t>("u32"); }
TEST(typed_i64) { check_typed<int64_t>("i64"); }
TEST(typed_u64) { check_typed<uint64_t>("u64"); }

/* Halves: void pointers to them, and float results. */
template <class T> struct typed_half;
#define TYPED_HALF(S, T)                                                                                               \
  template <> struct typed_half<T> {                                                                                   \
    static constexpr auto reduce = gk_reduce_##S;                                                                      \
    static constexpr auto argreduce = gk_argreduce_##S;                                                                \
    static constexpr auto scan_exclusive = gk_scan_exclusive_##S;                                                      \
    static constexpr auto scan_inclusive = gk_scan_inclusive_##S;                                                      \
    static constexpr auto matmul = gk_matmul_##S;                                                                      \
    static constexpr auto matmul_ex = gk_matmul_ex_##S;                                                                \
  };
TYPED_HALF(f16, __half)
TYPED_HALF(bf16, __nv_bfloat16)

/* C = A B with small integers, and the same in the typed calls: exact in every type. */
template <class T, class O> struct small_product {
  static const size_t m = 33, n = 20, k = 17;
  std::vector<T> a, b;
  std::vector<O> c, tripled; /* A B; and 3 B^T A^T, which is n x m */
  small_product() : a(m * k), b(k * n), c(m * n), tripled(m * n) {
    for (size_t i = 0; i < a.size(); i++) a[i] = make<T>(uniform(34, i, -5, 5));
    for (size_t i = 0; i < b.size(); i++) b[i] = make<T>(uniform(35, i, -5, 5));
    for (size_t i = 0; i < m; i++)
      for (size_t j = 0; j < n; j++) {
        for (size_t l = 0; l < k; l++) c[i * n + j] += static_cast<O>(plain(a[i * k + l]) * plain(b[l * n + j]));
        tripled[j * m + i] = 3 * c[i * n + j];
      }
  }
};
/* matmul and matmul_ex by pointers, V being what stands for T in C. */
template <class T, class V, class O>
static void check_typed_matmul(cudaError_t (*matmul)(const V *, const V *, O *, size_t, size_t, size_t, cudaStream_t),
                               cudaError_t (*matmul_ex)(const V *, const V *, O *, size_t, size_t, size_t,
                                                        const gk_matmul_opts *, cudaStream_t)) {
  const small_product<T, O> p;
  device_array<T> a(p.a), b(p.b);
  device_array<O> c(p.m * p.n);
  EXPECT_OK(matmul(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, 0));
  EXPECT_SAME(c.get(), p.c, "gk_matmul_");
  const double three = 3;
  gk_matmul_opts opts = gk_matmul_opts();
  opts.alpha = &three, opts.trans_a = opts.trans_b = 1;
  EXPECT_OK(matmul_ex(b.ptr, a.ptr, c.ptr, p.n, p.m, p.k, &opts, 0));
  EXPECT_SAME(c.get(), p.tripled, "gk_matmul_ex_");
}

template <class T> static void check_typed_half(const char *name) {
  typedef typed_half<T> api;
  const size_t n = 20001;
  device_array<T> out(n);
  device_array<float> one(1);
  device_array<gk_arg_f32> arg(1);
  for (gk_op op : value_ops) {
    const std::vector<T> host = elements<T>(op, n);
    device_array<T> in(host);
    const float none = identity_of<float>(op);
    EXPECT_OK(api::reduce(in.ptr, one.ptr, n, op, 0, NULL));
    EXPECT_SAME(one.first(), reduce_in_a_loop(op, host), "gk_reduce_%s, %s", name, name_of(op));
    EXPECT_OK(api::scan_exclusive(in.ptr, out.ptr, n, op, 0, NULL));
    EXPECT_SAME(out.get(), scan_in_a_loop(op, false, none, host), "gk_scan_exclusive_%s, %s", name, name_of(op));
    EXPECT_OK(api::scan_inclusive(in.ptr, out.ptr, n, op, 0, NULL));
    EXPECT_SAME(out.get(), scan_in_a_loop(op, true, none, host), "gk_scan_inclusive_%s, %s", name, name_of(op));
    if (op != GK_OP_MIN && op != GK_OP_MAX) continue;
    EXPECT_OK(api::argreduce(in.ptr, arg.ptr, n, op == GK_OP_MIN ? GK_OP_ARGMIN : GK_OP_ARGMAX, 0, NULL));
    EXPECT_SAME(arg.first().value, reduce_in_a_loop(op, host), "gk_argreduce_%s, %s", name, name_of(op));
    EXPECT_EQ(arg.first().index, op == GK_OP_MIN ? n - 2 : n - 3);
  }
  check_typed_matmul<T>(api::matmul, api::matmul_ex);
}
TEST(typed_f16) { check_typed_half<__half>("f16"); }
TEST(typed_bf16) { check_typed_half<__nv_bfloat16>("bf16"); }

TEST(typed_matmul_and_allclose) {
  check_typed_matmul<float>(gk_matmul_f32, gk_matmul_ex_f32);
  check_typed_matmul<double>(gk_matmul_f64, gk_matmul_ex_f64);
  const small_product<float, float> p;
  const small_product<double, double> q;
  std::vector<float> c(p.c.size());
  std::vector<double> d(q.c.size());
  gk_mismatch where;
  EXPECT_OK(gk_host_matmul_f32(p.a.data(), p.b.data(), c.data(), p.m, p.n, p.k));
  EXPECT_OK(gk_host_matmul_f64(q.a.data(), q.b.data(), d.data(), q.m, q.n, q.k));
  EXPECT_EQ(gk_allclose_f32(c.data(), p.c.data(), c.size(), 0, 0, NULL), 1);
  EXPECT_EQ(gk_allclose_f64(d.data(), q.c.data(), d.size(), 0, 0, NULL), 1);
  c[7] += 1, d[8] += 1;
  EXPECT_EQ(gk_allclose_f32(c.data(), p.c.data(), c.size(), 0, 0, &where), 0);
  EXPECT_EQ(where.first, size_t(7));
  EXPECT_EQ(gk_allclose_f64(d.data(), q.c.data(), d.size(), 0, 0, &where), 0);
  EXPECT_EQ(where.first, size_t(8));
}

/* --- every call that the typed ones make fails in turn --- */

#ifdef CUDA_ON_CPU
TEST(each_call_of_the_typed_ones_fails_in_turn) {
  const size_t n = fault_world::items;
  std::vector<fault_subject> subjects;
#define SUBJECT(call, ...) subjects.emplace_back(#call, [=](fault_world &w) { return call(__VA_ARGS__); });
#define OF_TYPE(S, T)                                                                                                  \
  SUBJECT(gk_reduce_##S, w.from<T>(), w.to<T>(), n, GK_OP_SUM, 0, NULL)                                                \
  SUBJECT(gk_argreduce_##S, w.from<T>(), w.to<gk_arg_##S>(), n, GK_OP_ARGMIN, 0, &w.scratch)                           \
  SUBJECT(gk_scan_exclusive_##S, w.from<T>(), w.to<T>(), n, GK_OP_SUM, 0, NULL)                                        \
  SUBJECT(gk_scan_inclusive_##S, w.from<T>(), w.to<T>(), n, GK_OP_MAX, 0, &w.scratch)                                  \
  SUBJECT(gk_scan_exclusive_init_##S, w.from<T>(), w.to<T>(), n, GK_OP_SUM, 1, 0, NULL)                                \
  SUBJECT(gk_host_reduce_##S, w.host<T>(), w.to_host<T>(), 100, GK_OP_MIN)                                             \
  SUBJECT(gk_host_scan_exclusive_##S, w.host<T>(), w.to_host<T>(), 100, GK_OP_SUM)                                     \
  SUBJECT(gk_host_scan_inclusive_##S, w.host<T>(), w.to_host<T>(), 100, GK_OP_PROD)
#define OF_REAL(S, T)                                                                                                  \
  SUBJECT(gk_matmul_##S, w.from<T>(), w.from<T>(), w.to<T>(), 9, 8, 7, 0)                                              \
  SUBJECT(gk_matmul_ex_##S, w.from<T>(), w.from<T>(), w.to<T>(), 9, 8, 7, NULL, 0)                                     \
  SUBJECT(gk_host_matmul_##S, w.host<T>(), w.host<T>(), w.to_host<T>(), 9, 8, 7)
#define OF_HALF(S)                                                                                                     \
  SUBJECT(gk_reduce_##S, w.in, w.to<float>(), n, GK_OP_SUM, 0, NULL)                                                   \
  SUBJECT(gk_argreduce_##S, w.in, w.to<gk_arg_f32>(), n, GK_OP_ARGMAX, 0, NULL)                                        \
  SUBJECT(gk_scan_exclusive_##S, w.in, w.out, n, GK_OP_SUM, 0, NULL)                                                   \
  SUBJECT(gk_scan_inclusive_##S, w.in, w.out, n, GK_OP_SUM, 0, &w.scratch)                                             \
  SUBJECT(gk_matmul_##S, w.in, w.in, w.to<float>(), 9, 8, 7, 0)                                                        \
  SUBJECT(gk_matmul_ex_##S, w.in, w.in, w.to<float>(), 9, 8, 7, NULL, 0)
  OF_TYPE(f32, float);
  OF_TYPE(f64, double);
  OF_TYPE(i32, int32_t);
  OF_TYPE(u32, uint32_t);
  OF_TYPE(i64, int64_t);
  OF_TYPE(u64, uint64_t);
  OF_REAL(f32, float);
  OF_REAL(f64, double);
  OF_HALF(f16);
  OF_HALF(bf16);
  EXPECT(fail_each(subjects, false) > 300);
}
#endif
