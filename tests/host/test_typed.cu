/* The typed entry points that C programs use, of every type. */
#define GPUKIT_IMPLEMENTATION
#define GPUKIT_C_API
#include "gpukit.cuh"

#include "failing_calls.h"
#include "loops.h"

/* The functions of one type, under one name. Halves go by pointers to void, have floats as results, and fewer calls. */
template <class T> struct typed;
#define TYPED(S, T, RESULT, ...)                                                                                       \
  template <> struct typed<T> {                                                                                        \
    typedef gk_arg_##RESULT arg;                                                                                       \
    static constexpr auto reduce = gk_reduce_##S;                                                                      \
    static constexpr auto argreduce = gk_argreduce_##S;                                                                \
    static constexpr auto scan_exclusive = gk_scan_exclusive_##S;                                                      \
    static constexpr auto scan_inclusive = gk_scan_inclusive_##S;                                                      \
    __VA_ARGS__                                                                                                        \
  };
#define TYPED_NUMBER(S, T)                                                                                             \
  TYPED(S, T, S, static constexpr auto scan_exclusive_init = gk_scan_exclusive_init_##S;                               \
        static constexpr auto host_reduce = gk_host_reduce_##S;                                                        \
        static constexpr auto host_scan_exclusive = gk_host_scan_exclusive_##S;                                        \
        static constexpr auto host_scan_inclusive = gk_host_scan_inclusive_##S;)
#define TYPED_HALF(S, T)                                                                                               \
  TYPED(S, T, f32, static constexpr auto matmul = gk_matmul_##S; static constexpr auto matmul_ex = gk_matmul_ex_##S;)
TYPED_NUMBER(f32, float)
TYPED_NUMBER(f64, double)
TYPED_NUMBER(i32, int32_t)
TYPED_NUMBER(u32, uint32_t)
TYPED_NUMBER(i64, int64_t)
TYPED_NUMBER(u64, uint64_t)
TYPED_HALF(f16, __half)
TYPED_HALF(bf16, __nv_bfloat16)

/* The calls that every type has. */
template <class T>
static void check_device_calls(const char *name, gk_op op, const std::vector<T> &host, cudaStream_t stream,
                               gk_scratch *scratch) {
  typedef typed<T> api;
  typedef decltype(api::arg::value) result;
  const size_t n = host.size();
  const result all = reduce_in_a_loop(op, host), none = identity_of<result>(op);
  device_array<T> in(host), out(n);
  device_array<result> one(1);
  EXPECT_OK(api::reduce(in.ptr, one.ptr, n, op, stream, scratch));
  EXPECT_SAME(one.first(), all, "gk_reduce_%s, %s", name, name_of(op));
  EXPECT_OK(api::scan_exclusive(in.ptr, out.ptr, n, op, stream, scratch));
  EXPECT_SAME(out.get(), scan_in_a_loop(op, false, none, host), "gk_scan_exclusive_%s, %s", name, name_of(op));
  EXPECT_OK(api::scan_inclusive(in.ptr, out.ptr, n, op, stream, scratch));
  EXPECT_SAME(out.get(), scan_in_a_loop(op, true, none, host), "gk_scan_inclusive_%s, %s", name, name_of(op));
  if (op != GK_OP_MIN && op != GK_OP_MAX) return;
  device_array<typename api::arg> arg(1);
  EXPECT_OK(api::argreduce(in.ptr, arg.ptr, n, op == GK_OP_MIN ? GK_OP_ARGMIN : GK_OP_ARGMAX, stream, scratch));
  EXPECT_SAME(arg.first().value, all, "gk_argreduce_%s, %s", name, name_of(op));
  EXPECT_EQ(arg.first().index, op == GK_OP_MIN ? n - 2 : n - 3);
}

template <class T> static void check_typed(const char *name) {
  typedef typed<T> api;
  const size_t n = 20001;
  test_scratch scratch(gk_scan_scratch_bytes(n, 8));
  test_stream s;
  device_array<T> out(n);
  T one;
  for (gk_op op : value_ops) {
    const std::vector<T> host = elements<T>(op, n);
    const T start = T(3), none = identity_of<T>(op);
    std::vector<T> back(n);
    device_array<T> in(host);
    check_device_calls(name, op, host, s.stream, &scratch);
    EXPECT_OK(api::scan_exclusive_init(in.ptr, out.ptr, n, op, start, s.stream, NULL));
    EXPECT_SAME(out.get(), scan_in_a_loop(op, false, combine(op, start, none), host), "gk_scan_exclusive_init_%s, %s",
                name, name_of(op));
    EXPECT_OK(api::host_reduce(host.data(), &one, n, op));
    EXPECT_SAME(one, reduce_in_a_loop(op, host), "gk_host_reduce_%s, %s", name, name_of(op));
    EXPECT_OK(api::host_scan_exclusive(host.data(), back.data(), n, op));
    EXPECT_SAME(back, scan_in_a_loop(op, false, none, host), "gk_host_scan_exclusive_%s, %s", name, name_of(op));
    EXPECT_OK(api::host_scan_inclusive(host.data(), back.data(), n, op));
    EXPECT_SAME(back, scan_in_a_loop(op, true, none, host), "gk_host_scan_inclusive_%s, %s", name, name_of(op));
  }
  /* Operators that a call has no use for, by the name of the call */
  const gk_op unknown = static_cast<gk_op>(7);
  const std::string S = name;
  out.clear();
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_reduce_" + S + ": argmin and argmax also have an index as a result").c_str(),
               api::reduce(out.ptr, out.ptr, 1, GK_OP_ARGMIN, 0, NULL));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_reduce_" + S + ": operator 7 is not a gk_op").c_str(),
               api::reduce(out.ptr, out.ptr, 1, unknown, 0, NULL));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_scan_inclusive_" + S + ": operator 7 is not a gk_op").c_str(),
               api::scan_inclusive(out.ptr, out.ptr, 1, unknown, 0, NULL));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_scan_exclusive_" + S + ": operator 7 is not a gk_op").c_str(),
               api::scan_exclusive(out.ptr, out.ptr, 1, unknown, 0, NULL));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_scan_exclusive_init_" + S + ": operator 7 is not a gk_op").c_str(),
               api::scan_exclusive_init(out.ptr, out.ptr, 1, unknown, T(1), 0, NULL));
  EXPECT_ERROR(cudaErrorInvalidValue, ("gk_host_reduce_" + S + ": operator 7 is not a gk_op").c_str(),
               api::host_reduce(&one, &one, 1, unknown));
  EXPECT_ERROR(
      cudaErrorInvalidValue,
      ("gk_argreduce_" + S + ": operator 0 is neither argmin nor argmax: gk_reduce_" + S + " takes the others").c_str(),
      api::argreduce(out.ptr, NULL, 1, GK_OP_SUM, 0, NULL));
  EXPECT(out.untouched());
}
TEST(typed_f32) { check_typed<float>("f32"); }
TEST(typed_f64) { check_typed<double>("f64"); }
TEST(typed_i32) { check_typed<int32_t>("i32"); }
TEST(typed_u32) { check_typed<uint32_t>("u32"); }
TEST(typed_i64) { check_typed<int64_t>("i64"); }
TEST(typed_u64) { check_typed<uint64_t>("u64"); }

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
  for (gk_op op : value_ops) check_device_calls(name, op, elements<T>(op, 20001), 0, NULL);
  check_typed_matmul<T>(typed<T>::matmul, typed<T>::matmul_ex);
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
  EXPECT_EQ(where.first_index, size_t(7));
  EXPECT_EQ(gk_allclose_f64(d.data(), q.c.data(), d.size(), 0, 0, &where), 0);
  EXPECT_EQ(where.first_index, size_t(8));
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
