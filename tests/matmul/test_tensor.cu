/* Products on tensor cores: half types, floats rounded to tf32, and floats in three parts. What the hardware adds up in
 * an order of its own is compared bit by bit where every order gives the same, by the documented bounds elsewhere. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "data.h"
#include <algorithm>
#include <float.h>

/* --- problems ----------------------------------------------------------------------------------------------------*/

struct problem { /* right when zero, but for the sizes */
  size_t m, n, k;
  int trans_a, trans_b;
  size_t pad_a, pad_b, pad_c, shift; /* columns of padding; elements that every matrix is off its alignment */
  double alpha, beta;
  size_t batch;
  bool one_a, one_b;
  gk_precision precision;

  size_t rows_a() const { return trans_a ? k : m; }
  size_t rows_b() const { return trans_b ? n : k; }
  size_t lda() const { return (trans_a ? m : k) + pad_a; }
  size_t ldb() const { return (trans_b ? k : n) + pad_b; }
  size_t ldc() const { return n + pad_c; }
  size_t stride_a() const { return one_a ? 0 : rows_a() * lda(); }
  size_t stride_b() const { return one_b ? 0 : rows_b() * ldb(); }
  size_t stride_c() const { return m * ldc(); }
  size_t size_a() const { return k ? (batch - 1) * stride_a() + rows_a() * lda() - pad_a : 0; }
  size_t size_b() const { return k ? (batch - 1) * stride_b() + rows_b() * ldb() - pad_b : 0; }
  size_t size_c() const { return batch * stride_c() - pad_c; }
  size_t at_a(size_t q, size_t i, size_t l) const { return q * stride_a() + (trans_a ? l * lda() + i : i * lda() + l); }
  size_t at_b(size_t q, size_t l, size_t j) const { return q * stride_b() + (trans_b ? j * ldb() + l : l * ldb() + j); }
  size_t at_c(size_t q, size_t i, size_t j) const { return q * stride_c() + i * ldc() + j; }
  gk_matmul_opts opts(gk_plan plan) const {
    gk_matmul_opts o = gk_matmul_opts();
    o.trans_a = trans_a, o.trans_b = trans_b, o.lda = lda(), o.ldb = ldb(), o.ldc = ldc();
    o.alpha = &alpha, o.beta = &beta;
    o.batch = batch, o.stride_a = stride_a(), o.stride_b = stride_b(), o.stride_c = stride_c();
    o.precision = precision, o.plan = plan;
    return o;
  }
  std::string text() const {
    char line[256];
    snprintf(
        line, sizeof(line),
        "%zu x %zu x %zu, trans %d %d, pad %zu %zu %zu, shift %zu, alpha %g, beta %g, batch %zu (one a %d, one b %d)",
        m, n, k, trans_a, trans_b, pad_a, pad_b, pad_c, shift, alpha, beta, batch, one_a, one_b);
    return line;
  }
};
static problem problem_of(size_t m, size_t n, size_t k, gk_precision precision = GK_PRECISION_DEFAULT) {
  problem p = problem();
  p.m = m, p.n = n, p.k = k, p.alpha = 1, p.batch = 1, p.precision = precision;
  return p;
}
/* A problem of everything at once, by number. */
static problem random_problem(uint64_t number, gk_precision precision, int largest) {
  uint64_t draws = 1000 * number;
  const auto draw = [&](int low, int high) { return static_cast<size_t>(uniform(54, draws++, low, high)); };
  const double factors[] = {1, 1, -0.5, 2};
  problem p = problem_of(draw(1, largest), draw(1, largest), draw(0, largest), precision);
  p.trans_a = static_cast<int>(draw(0, 1)), p.trans_b = static_cast<int>(draw(0, 1));
  if (draw(0, 3) == 0) p.m = 64, p.n = 72, p.k = 40; /* as they come: no copies */
  if (draw(0, 1)) p.pad_a = draw(0, 9), p.pad_b = draw(0, 9), p.pad_c = draw(0, 3);
  p.shift = draw(0, 1) * draw(0, 9);
  p.alpha = factors[draw(0, 3)], p.beta = draw(0, 1) ? factors[draw(0, 3)] : 0;
  p.batch = draw(0, 2) ? 1 : draw(1, 3);
  p.one_a = draw(0, 1), p.one_b = draw(0, 1);
  return p;
}

/* Which plans this GPU and this binary have; some has to be, or nothing is tested. */
template <class T, class O> static std::vector<gk_plan> plans_of(gk_precision precision) {
  std::vector<gk_plan> plans;
  gk_matmul_path path;
  for (gk_plan plan : {GK_PLAN_MMA, GK_PLAN_WGMMA}) {
    gk_matmul_opts o = gk_matmul_opts();
    o.precision = precision, o.plan = plan;
    T *const a = reinterpret_cast<T *>(256);
    if (gk_matmul_plan(a, a, reinterpret_cast<O *>(512), 64, 64, 64, &o, &path) == cudaSuccess) plans.push_back(plan);
  }
  return plans;
}

/* --- exact sums: small integers ----------------------------------------------------------------------------------
 * What is outside of the matrices is NaN, and so is C where it is not to be read. */

template <class T> static std::vector<T> not_numbers(size_t n) { return std::vector<T>(n, make<T>(NAN)); }

template <class T, class O> static void check_exactly(const problem &p) {
  std::vector<T> a = not_numbers<T>(p.size_a()), b = not_numbers<T>(p.size_b());
  const int most = sizeof(O) == 2 ? 1 : 3;
  for (size_t q = 0; q < p.batch; q++) {
    for (size_t l = 0; l < p.k; l++) {
      for (size_t i = 0; i < p.m; i++) a[p.at_a(q, i, l)] = make<T>(uniform(61, p.at_a(q, i, l), -most, most));
      for (size_t j = 0; j < p.n; j++) b[p.at_b(q, l, j)] = make<T>(uniform(62, p.at_b(q, l, j), -most, most));
    }
  }
  std::vector<O> before = not_numbers<O>(p.size_c());
  std::vector<O> expected(before);
  for (size_t q = 0; q < p.batch; q++)
    for (size_t i = 0; i < p.m; i++)
      for (size_t j = 0; j < p.n; j++) {
        float sum = 0;
        for (size_t l = 0; l < p.k; l++)
          sum += static_cast<float>(plain(a[p.at_a(q, i, l)])) * static_cast<float>(plain(b[p.at_b(q, l, j)]));
        sum *= static_cast<float>(p.alpha);
        if (p.beta != 0) {
          const int old = uniform(63, p.at_c(q, i, j), -8, 8);
          before[p.at_c(q, i, j)] = make<O>(old);
          sum += static_cast<float>(p.beta) * static_cast<float>(old);
        }
        expected[p.at_c(q, i, j)] = make<O>(static_cast<double>(sum));
      }
  device_array<T> device_a(a, p.shift), device_b(b, p.shift);
  device_array<O> c(p.size_c(), p.shift);
  for (gk_plan plan : plans_of<T, O>(p.precision)) {
    const gk_matmul_opts o = p.opts(plan);
    c.set(before);
    EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, c.ptr, p.m, p.n, p.k, &o));
    EXPECT_SAME(c.get(), expected, "plan %d, %s", static_cast<int>(plan), p.text().c_str());
  }
}
template <class T, class O>
static void check_randomly(uint64_t first, uint64_t count, gk_precision precision, int largest) {
  if (plans_of<T, O>(precision).empty()) SKIP("this GPU has no tensor cores for the type");
  for (uint64_t i = first; i < first + (test_slowed() ? count / 5 : count); i++)
    check_exactly<T, O>(random_problem(i, precision, largest));
}
TEST(f16_to_f16) { check_randomly<__half, __half>(0, 20, GK_PRECISION_DEFAULT, 100); }
TEST(f16_to_f32) { check_randomly<__half, float>(100, 20, GK_PRECISION_DEFAULT, 100); }
TEST(bf16_to_bf16) { check_randomly<__nv_bfloat16, __nv_bfloat16>(200, 20, GK_PRECISION_DEFAULT, 100); }
TEST(bf16_to_f32) { check_randomly<__nv_bfloat16, float>(300, 20, GK_PRECISION_DEFAULT, 100); }
TEST(tf32) { check_randomly<float, float>(400, 20, GK_PRECISION_TF32, 100); }
TEST(emulated) { check_randomly<float, float>(500, 6, GK_PRECISION_EMULATED, 60); }

/* Many steps of k, and more than one tile of every size. */
TEST(a_large_c_with_odd_rows) {
  problem p = problem_of(700, 757, 33);
  check_exactly<__half, __half>(p);
  p.m = 200, p.n = 1500, p.batch = 2, p.k = 17;
  check_exactly<__half, float>(p);
}
TEST(several_tiles_and_stages) {
  for (int trans = 0; trans < 4; trans++) {
    problem p = problem_of(70, 72, 264);
    p.trans_a = trans & 1, p.trans_b = trans >> 1;
    check_exactly<__half, float>(p);
  }
  for (int trans = 0; trans < 4; trans++)
    for (size_t pad : {0u, 3u}) {
      problem p = problem_of(68, 140, 264, GK_PRECISION_TF32);
      p.trans_a = trans & 1, p.trans_b = trans >> 1, p.pad_a = pad, p.pad_b = pad * 3;
      check_exactly<float, float>(p);
    }
  problem tall = problem_of(1030, 24, 100, GK_PRECISION_TF32); /* an A that is not copied, though it is not aligned */
  tall.pad_a = 1, tall.batch = 2;
  check_exactly<float, float>(tall);
  for (size_t shift : {0u, 5u}) {
    problem odd = problem_of(1030, 24, 101);
    odd.pad_a = 2, odd.shift = shift;
    check_exactly<__half, float>(odd);
    odd.pad_a = 3, odd.trans_b = 1; /* rows of whole runs of 16 bytes, of which A ends within the last */
    if (!test_slowed()) check_exactly<__nv_bfloat16, __nv_bfloat16>(odd); /* a copy of a part: memcheck reads on */
  }
  check_exactly<float, float>(problem_of(130, 20, 70, GK_PRECISION_EMULATED));
}

/* Every tile that the planner may choose for tf32 where one operand runs along k, and the sharing of k. */
#ifdef GK__WGMMA
template <class S> static void check_tf32_tile(int trans, size_t m, size_t n, size_t k, size_t pad) {
  const size_t batch = 2, ldc = n + static_cast<size_t>(trans);
  gk__tensor_args<float, float> p = gk__tensor_args<float, float>();
  /* One runs along k, and that may be unaligned if it is A. */
  const size_t lda = trans ? gk_round_up(m, size_t(4)) + 4 * pad : k + pad,
               ldb = gk_round_up(trans ? k : n, size_t(4)) + 4 * pad;
  const size_t stride_a = gk_round_up(lda * (trans ? k : m), size_t(4)),
               stride_b = gk_round_up(ldb * (trans ? n : k), size_t(4));
  std::vector<float> a(batch * stride_a), b(batch * stride_b), before(batch * m * ldc);
  p.a.k_major = !trans, p.b.k_major = trans;
  for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(uniform(66, i, -3, 3));
  if (!trans)
    for (size_t i = 0; i < a.size(); i++)
      if (i % stride_a % lda >= k) a[i] = NAN; /* between the rows */
  for (size_t i = 0; i < b.size(); i++) b[i] = static_cast<float>(uniform(67, i, -3, 3));
  for (size_t i = 0; i < before.size(); i++) before[i] = static_cast<float>(uniform(68, i, -9, 9));
  device_array<float> on_a(a, trans ? 0 : pad), on_b(b), c(before.size());
  p.a.data = on_a.ptr, p.a.leading_dim = lda, p.a.stride_batch = stride_a;
  if (!trans) p.a.split = S::params::splits ? 8 : 1;
  p.b.data = on_b.ptr, p.b.leading_dim = ldb, p.b.stride_batch = stride_b;
  p.c = c.ptr, p.ldc = ldc, p.stride_c = m * ldc, p.m = m, p.n = n, p.k = k, p.batch = batch, p.alpha = 2;
  std::vector<float> product(before), with_c(before);
  for (size_t q = 0; q < batch; q++)
    for (size_t i = 0; i < m; i++)
      for (size_t j = 0; j < n; j++) {
        float sum = 0;
        for (size_t l = 0; l < k; l++)
          sum += a[q * stride_a + (trans ? l * lda + i : i * lda + l)] *
                 b[q * stride_b + (trans ? j * ldb + l : l * ldb + j)];
        product[(q * m + i) * ldc + j] = 2 * sum, with_c[(q * m + i) * ldc + j] += 2 * sum;
      }
  for (unsigned ranks = 1; ranks <= 8; ranks *= 2)
    for (int beta = 0; beta < 2; beta++)
      for (size_t blocks : {0u, 1u}) { /* as many as there are, or one after the other */
        if (test_leaves_out<S>()) continue;
        p.beta = static_cast<float>(beta), p.max_blocks = blocks;
        c.set(before);
        EXPECT_OK(gk__tf32_launch<S>(p, ranks, 132, 0));
        EXPECT_SAME(c.get(), beta ? with_c : product,
                    "%d columns, trans %d, %zu x %zu x %zu, pad %zu, %u ranks, beta %d", S::col_count, trans, m, n, k,
                    pad, ranks, beta);
      }
}
template <class S> static void check_tf32_tiles() {
  if (!S::params::splits)
    for (int trans = 0; trans < 2; trans++) {
      check_tf32_tile<S>(trans, 4, 4, 4, 0);
      check_tf32_tile<S>(trans, 132, 260, 100, 0);
      check_tf32_tile<S>(trans, 384, 256, 320, 0);
      check_tf32_tile<S>(trans, 256, 384, 160, 4);
      check_tf32_tile<S>(trans, 67, 301, 96, 4);
      check_tf32_tile<S>(trans, 5, 7, 4, 4);
    }
  else {
    check_tf32_tile<S>(0, 384, 256, 320, 0);
    check_tf32_tile<S>(0, 256, 384, 160, 1);
    check_tf32_tile<S>(0, 67, 301, 99, 3);
    check_tf32_tile<S>(0, 5, 7, 6, 1);
    check_tf32_tile<S>(0, 8 * S::col_count + 60, 12, 40, 5);
  }
}
TEST(tiles_of_tf32) {
  if (!gk__wgmma_available<0>()) SKIP("no GPU, or no code, of sm_90a");
  check_tf32_tiles<gk__tf32_shape<256, 4>>();
  check_tf32_tiles<gk__tf32_shape<192, 5>>();
  check_tf32_tiles<gk__tf32_shape<128, 6>>();
  check_tf32_tiles<gk__tf32_shape<64, 9>>();
  check_tf32_tiles<gk__tf32_shape<256, 4, true>>();
  check_tf32_tiles<gk__tf32_shape<192, 5, true>>();
  check_tf32_tiles<gk__tf32_shape<128, 6, true>>();
}
#endif

/* The stages of each configuration on this GPU. */
struct mma_stages {
  int stages[2];
  void take(const gk__mma_plan &plan) { stages[plan.config] = plan.stages; }
};
/* Each tile of mma.sync's kernels with k in some partitions, and room for the partials of one product of the batch or
 * all. Integers, so that sums are exact in any order. */
template <class Config, class E, class O>
static void check_mma_tile(int config, int trans, size_t stage_count, std::initializer_list<size_t> partition_counts) {
  const size_t m = Config::bm + 8, n = 72, k = stage_count * Config::bytes / sizeof(E) - 8, batch = 2;
  const size_t odd_n = n - 1, ldc = odd_n + (trans ? 2 : 0); /* C may begin its rows anywhere */
  gk__tensor_args<E, O> p = gk__tensor_args<E, O>();
  std::vector<E> a(batch * m * k), b(batch * n * k);
  p.a.k_major = !(trans & 1), p.b.k_major = trans >> 1;
  for (size_t i = 0; i < a.size(); i++) a[i] = make<E>(uniform(64, i, -3, 3));
  for (size_t i = 0; i < b.size(); i++) b[i] = make<E>(uniform(65, i, -3, 3));
  device_array<E> device_a(a), device_b(b);
  p.a.data = device_a.ptr, p.a.leading_dim = p.a.k_major ? k : m, p.a.stride_batch = m * k;
  p.b.data = device_b.ptr, p.b.leading_dim = p.b.k_major ? k : n, p.b.stride_batch = n * k;
  p.ldc = ldc, p.stride_c = m * ldc, p.m = m, p.n = odd_n, p.k = k, p.batch = batch, p.alpha = 2;
  p.beta = trans ? 3.0f : 0;
  std::vector<O> before(batch * m * ldc), expected;
  for (size_t i = 0; i < before.size(); i++) before[i] = make<O>(uniform(66, i, -9, 9));
  expected = before;
  for (size_t q = 0; q < batch; q++)
    for (size_t i = 0; i < m; i++)
      for (size_t j = 0; j < odd_n; j++) {
        float sum = 0;
        for (size_t l = 0; l < k; l++)
          sum += static_cast<float>(plain(a[q * m * k + (p.a.k_major ? i * k + l : l * m + i)])) *
                 static_cast<float>(plain(b[q * n * k + (p.b.k_major ? j * k + l : l * n + j)]));
        O &to = expected[(q * m + i) * ldc + j];
        to = make<O>(static_cast<double>(2 * sum + p.beta * static_cast<float>(plain(to))));
      }
  device_array<O> c(before);
  p.c = c.ptr;
  const size_t tiles = gk_ceil_div(m, size_t(Config::bm)) * gk_ceil_div(odd_n, size_t(Config::bn)) * batch;
  const size_t begin = GK__STATE_BYTES + GK__REDUCE_BYTES;
  gk__mma_gpu gpu;
  mma_stages stages_of = {{0, 0}};
  EXPECT_OK(gk__find_mma_gpu(&gpu));
  gk__each_mma_plan<1, E>(&stages_of, gk__mma_tiles<1, E>::costs(), m, odd_n, k, batch, gpu);
  size_t turn = static_cast<size_t>(trans);
  for (size_t partitions : partition_counts) {
    const size_t max_blocks = turn++ % 3 * 3; /* 0, 3, 6 */
    const size_t partial_bytes = partitions > 1 ? partitions * m * gk__partial_ld(odd_n) * sizeof(float) : 0;
    const size_t room = partial_bytes * (max_blocks ? 1 : batch);
    const gk__mma_plan plan = {config, stages_of.stages[config], tiles, partitions, partial_bytes, 0};
    test_scratch scratch(begin + room);
    gk__partials partials = gk__partials_of(max_blocks == 6 ? NULL : &scratch, 0);
    if (partial_bytes) partials.measure(partial_bytes, batch);
    EXPECT_OK(partials.begin());
    p.max_blocks = max_blocks;
    c.set(before);
    EXPECT_OK(partials.end(gk__mma_run<1>(p, plan, partials, 0)));
    EXPECT_SAME(c.get(), expected, "tile %d, trans %d, %zu partitions, max_blocks %zu", config, trans, partitions,
                max_blocks);
    EXPECT_EQ(scratch.bytes_not_zero(begin, room), size_t(0));
  }
}
template <class E, class O> static void check_mma_tiles(int trans) {
  typedef typename gk__mma_tiles<1, E>::template large<GK__K_MAJOR, GK__K_MAJOR> large;
  check_mma_tile<large, E, O>(0, trans, 3, {1, 2, 3});
  check_mma_tile<typename gk__mma_tiles<1, E>::small_config, E, O>(1, trans, 17, {1, 2, 3, 9, 17});
}
TEST(tiles_of_mma_sync) {
  if (plans_of<__half, float>(GK_PRECISION_DEFAULT).empty()) SKIP("this GPU has no tensor cores for the type");
  check_mma_tiles<__half, float>(0);
  check_mma_tiles<__half, float>(3);
  if (plans_of<float, float>(GK_PRECISION_TF32).empty()) return;
  check_mma_tiles<float, float>(1);
  check_mma_tiles<float, float>(2);
}

#ifdef GK__WGMMA
/* Hopper's tiles, most of which the planner takes for no product that is tested in little time: C written by the copy
 * engine, and by threads where it is odd; the last tiles cut; several of them for each block. An A that is split is two
 * matrices of aligned rows where B runs along k, too, and else sixteen. */
template <class S, class E, class O> static void check_tile(unsigned ranks, int trans, bool odd) {
  const bool along_a = !(trans & 1), along_b = trans >> 1;
  const size_t split = !S::params::splits ? 1 : along_b ? 2 : 16;
  const size_t m = S::row_count * (split == 2 ? 2 : 1) + 26, n = S::col_count + 40 + odd, k = 201, batch = 2;
  const size_t ldc = n + odd * 2, shift = odd * 3, shift_a = split > 2 ? 3 : 0;
  const size_t rows_a = along_a ? m : k, rows_b = along_b ? n : k;
  const size_t lda = split > 2    ? k + 2
                     : split == 2 ? k + 15
                                  : gk_round_up(along_a ? k : m, size_t(8)),
               ldb = gk_round_up(along_b ? k : n, size_t(8));
  const int most = sizeof(O) == 2 ? 1 : 3;
  std::vector<E> a = not_numbers<E>(shift_a + rows_a * lda), b = not_numbers<E>(batch * rows_b * ldb);
  std::vector<O> before = not_numbers<O>(batch * m * ldc + shift), expected(before);
  const auto at_a = [&](size_t i, size_t l) { return shift_a + (along_a ? i * lda + l : l * lda + i); };
  const auto at_b = [&](size_t q, size_t l, size_t j) {
    return q * rows_b * ldb + (along_b ? j * ldb + l : l * ldb + j);
  };
  for (size_t l = 0; l < k; l++) {
    for (size_t i = 0; i < m; i++) a[at_a(i, l)] = make<E>(uniform(66, i * k + l, -most, most));
    for (size_t q = 0; q < batch; q++)
      for (size_t j = 0; j < n; j++) b[at_b(q, l, j)] = make<E>(uniform(67 + q, l * n + j, -most, most));
  }
  for (size_t q = 0; q < batch; q++)
    for (size_t i = 0; i < m; i++) {
      std::vector<float> sums(n);
      for (size_t l = 0; l < k; l++) {
        const float x = static_cast<float>(plain(a[at_a(i, l)]));
        for (size_t j = 0; j < n; j++) sums[j] += x * static_cast<float>(plain(b[at_b(q, l, j)]));
      }
      for (size_t j = 0; j < n; j++) {
        const size_t at = shift + (q * m + i) * ldc + j;
        if (odd) before[at] = make<O>(uniform(69, at, -8, 8));
        expected[at] = make<O>(static_cast<double>(sums[j] + (odd ? 2 * plain(before[at]) : 0)));
      }
    }
  device_array<E> device_a(a), device_b(b);
  device_array<O> c(before);
  gk__tensor_args<E, O> p = gk__tensor_args<E, O>();
  p.a.data = device_a.ptr + shift_a, p.a.leading_dim = lda, p.a.k_major = along_a,
  p.a.split = static_cast<unsigned>(split);
  p.b.data = device_b.ptr, p.b.leading_dim = ldb, p.b.k_major = along_b, p.b.stride_batch = rows_b * ldb;
  p.c = c.ptr + shift, p.ldc = ldc, p.stride_c = m * ldc, p.m = m, p.n = n, p.k = k, p.batch = batch;
  p.alpha = 1, p.beta = odd ? 2.0f : 0.0f, p.max_blocks = 3;
  EXPECT_OK((gk__wgmma_launch<S, E, O>(p, ranks, 132, 0)));
  EXPECT_SAME(c.get(), expected, "%d x %d, %u ranks, trans %d, odd %d", S::row_count, S::col_count, ranks, trans, odd);
}
template <class S, class E, class O> static void check_tile(unsigned ranks) {
  for (int trans = 0; trans < 4; trans++)
    for (bool odd : {false, true})
      if (!S::params::splits || trans % 2 == 0) check_tile<S, E, O>(ranks, trans, odd);
}
template <class E, class O, int Products, bool Splits, class... Tiles>
static void check_tiles(const gk__wgmma_tiles<Products, Splits, Tiles...> &) {
  const int checked[] = {
      (check_tile<typename Tiles::template shape<Products, Splits>, E, O>(Tiles::ranks > 4 ? 4u : Tiles::ranks), 0)...};
  (void)checked;
}
template <class E, class O> static void check_tiles() {
  check_tiles<E, O>(gk__wgmma_tile_sets<1>::whole());
  check_tiles<E, O>(gk__wgmma_tile_sets<1>::split());
}
TEST(the_tiles_of_hopper) {
  if (!gk__wgmma_available<0>()) SKIP("this is no Hopper, or the program has no code for sm_90a");
  check_tiles<__half, __half>();
  check_tiles<__nv_bfloat16, float>();
}
#endif

/* --- accuracy ----------------------------------------------------------------------------------------------------*/

/* The largest |error| / (|A| |B|) of a product, in units of 2^-24, against double. */
template <class T>
static double worst_error(const problem &p, const std::vector<T> &a, const std::vector<T> &b, gk_plan plan) {
  device_array<T> device_a(a), device_b(b);
  device_array<float> c(p.size_c());
  const gk_matmul_opts o = p.opts(plan);
  EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, c.ptr, p.m, p.n, p.k, &o));
  const std::vector<float> got = c.get();
  double worst = 0;
  for (size_t i = 0; i < p.m; i++)
    for (size_t j = 0; j < p.n; j++) {
      double sum = 0, size = 0;
      for (size_t l = 0; l < p.k; l++) {
        float x = static_cast<float>(plain(a[p.at_a(0, i, l)])), y = static_cast<float>(plain(b[p.at_b(0, l, j)]));
        if (p.precision == GK_PRECISION_TF32) { /* to 11 bits, ties to even: by way of arithmetic, not of bits */
          int exponent;
          x = static_cast<float>(ldexp(nearbyint(ldexp(static_cast<double>(frexpf(x, &exponent)), 11)), -11)) *
              static_cast<float>(ldexp(1, exponent));
          y = static_cast<float>(ldexp(nearbyint(ldexp(static_cast<double>(frexpf(y, &exponent)), 11)), -11)) *
              static_cast<float>(ldexp(1, exponent));
        }
        sum += static_cast<double>(x) * static_cast<double>(y);
        size += fabs(static_cast<double>(x) * static_cast<double>(y));
      }
      const double error = fabs(static_cast<double>(got[p.at_c(0, i, j)]) - sum) / (size > 0 ? size : 1);
      if (!(error <= worst)) worst = error;
    }
  return worst * 0x1p24;
}
enum data { NORMAL, UNIFORM, SCALED, CANCELLING };
template <class T> static std::vector<T> data_of(data which, uint64_t seed, size_t rows, size_t cols) {
  std::vector<T> x(rows * cols);
  for (size_t i = 0; i < x.size(); i++) {
    const double g = gauss(seed, i);
    if (which == NORMAL) x[i] = make<T>(g);
    if (which == UNIFORM) x[i] = make<T>(static_cast<double>(uniform(seed, i, 1, 1 << 24)) * 0x1p-24);
    if (which == SCALED) x[i] = make<T>((g < 0 ? g - 1 : g + 1) * ldexp(1, uniform(seed + 9, i, -50, 50)));
    if (which == CANCELLING)
      x[i] = make<T>(i % 2 && seed % 2 ? -static_cast<double>(plain(x[i - 1])) : seed % 2 ? g : 1 + g * 0x1p-12);
  }
  return x;
}
/* The documentation of gk_matmul_ex has them. */
static double bound_of(gk_precision precision, size_t k) {
  return precision == GK_PRECISION_EMULATED ? static_cast<double>(k) / 32 + 16 : static_cast<double>(k) + 8;
}
TEST(errors_stay_below_the_bounds) {
  const size_t m = 20, n = 24, k = 100;
  for (data which : {NORMAL, UNIFORM, SCALED, CANCELLING})
    for (gk_precision precision : {GK_PRECISION_TF32, GK_PRECISION_EMULATED})
      for (gk_plan plan : plans_of<float, float>(precision)) {
        problem p = problem_of(m, n, k, precision);
        p.trans_a = which & 1, p.trans_b = which >> 1;
        const double worst = worst_error(p, data_of<float>(which, 71, m, k), data_of<float>(which, 72, k, n), plan);
        if (!(worst <= bound_of(precision, k)))
          test_fail(__FILE__, __LINE__,
                    sentence("data %d, precision %d, plan %d: %g of 2^-24", which, precision, plan, worst));
      }
  for (gk_plan plan : plans_of<__half, float>(GK_PRECISION_DEFAULT)) {
    const problem p = problem_of(m, n, k);
    EXPECT(worst_error(p, data_of<__half>(NORMAL, 71, m, k), data_of<__half>(NORMAL, 72, k, n), plan) <=
           bound_of(GK_PRECISION_DEFAULT, k));
  }
}
/* Magnitudes at the small end of what is split: if hardware flushed sums below 2^-126 to zero, no bound would hold. */
TEST(small_magnitudes_are_kept) {
  const size_t m = 40, n = 40, k = 64;
  for (gk_plan plan : plans_of<float, float>(GK_PRECISION_EMULATED)) {
    std::vector<float> a = data_of<float>(NORMAL, 73, m, k), b = data_of<float>(NORMAL, 74, k, n);
    for (float &x : a) x = ldexpf(x < 0 ? x - 1 : x + 1, -60);
    for (float &x : b) x = ldexpf(x < 0 ? x - 1 : x + 1, -60);
    EXPECT(worst_error(problem_of(m, n, k, GK_PRECISION_EMULATED), a, b, plan) <= bound_of(GK_PRECISION_EMULATED, k));
  }
}

/* --- what is made of operands ------------------------------------------------------------------------------------*/

static float from_bits(unsigned bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static unsigned bits_of(float x) {
  unsigned bits;
  memcpy(&bits, &x, 4);
  return bits;
}
TEST(rounding_to_tf32) {
  EXPECT_EQ(gk__round_to_tf32(0x3f800fffu), 0x3f800000u);
  EXPECT_EQ(gk__round_to_tf32(0x3f801000u), 0x3f800000u); /* ties to even */
  EXPECT_EQ(gk__round_to_tf32(0x3f801001u), 0x3f802000u);
  EXPECT_EQ(gk__round_to_tf32(0xbf803000u), 0xbf804000u);
  EXPECT_EQ(gk__round_to_tf32(0xbf805000u), 0xbf804000u);
  EXPECT_EQ(gk__round_to_tf32(0x3fffffffu), 0x40000000u); /* into the exponent */
  EXPECT_EQ(gk__round_to_tf32(0x7f7fffffu), 0x7f800000u); /* and to infinity */
  EXPECT_EQ(gk__round_to_tf32(0x7f7fefffu), 0x7f7fe000u);
  EXPECT_EQ(gk__round_to_tf32(0xff800000u), 0xff800000u);
  EXPECT_EQ(gk__round_to_tf32(0x7f800001u), 0x7fffffffu); /* a NaN stays one */
  EXPECT_EQ(gk__round_to_tf32(0x80000fffu), 0x80000000u); /* denormals too */
}

/* Whoever rounds, the pass before the product or the copy engine, does it so: in either operand, stored in either order,
 * in rows that are aligned or not. Each row of A (each column of B) has one value, which meets ones. */
static void check_rounding(gk_plan plan, int trans, size_t pad, bool in_b) {
  const unsigned special[] = {0x3f801000u, 0x3f803000u, 0xbf805000u, 0x3f801001u, 0x3f800fffu, 0x7f7fffffu,
                              0xff7ff000u, 0x7f7fefffu, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffffffffu,
                              0x00801000u, 0x00803000u, 0x00000000u, 0x80000000u};
  const size_t values = 96, others = 20;
  problem p = problem_of(in_b ? others : values, in_b ? values : others, 44, GK_PRECISION_TF32);
  p.trans_a = trans & 1, p.trans_b = trans >> 1, p.pad_a = p.pad_b = pad;
  std::vector<float> a(p.size_a(), in_b ? 1.0f : 0.0f), b(p.size_b(), in_b ? 0.0f : 1.0f);
  std::vector<unsigned> bits(values);
  for (size_t i = 0; i < values; i++) {
    bits[i] = i < 16 ? special[i] : static_cast<unsigned>(mix(78, i) & 0xbfffffffu) | 0x20000000u;
    if (i % 3 == 0 && i >= 16) bits[i] = (bits[i] & ~0xfffu) | 0x1000u; /* half of them ties */
    (in_b ? b[p.at_b(0, i % p.k, i)] : a[p.at_a(0, i, i % p.k)]) = from_bits(bits[i]);
  }
  device_array<float> on_a(a), on_b(b), c(p.size_c());
  const gk_matmul_opts o = p.opts(plan);
  EXPECT_OK(gk_matmul_ex(on_a.ptr, on_b.ptr, c.ptr, p.m, p.n, p.k, &o));
  const std::vector<float> got = c.get();
  for (size_t i = 0; i < values; i++)
    for (size_t j = 0; j < others; j++) {
      const float x = got[in_b ? p.at_c(0, j, i) : p.at_c(0, i, j)], wanted = from_bits(gk__round_to_tf32(bits[i]));
      if (wanted != wanted ? x == x : x != wanted)
        test_fail(
            __FILE__, __LINE__,
            sentence("plan %d, %s: %08x became %08x", static_cast<int>(plan), p.text().c_str(), bits[i], bits_of(x)));
    }
}
TEST(rounding_in_products) {
  for (gk_plan plan : plans_of<float, float>(GK_PRECISION_TF32))
    for (int trans = 0; trans < 4; trans++)
      for (size_t pad : {0u, 1u})
        for (bool in_b : {false, true}) check_rounding(plan, trans, pad, in_b);
}

/* Every element is the exact sum of its parts, wherever rows begin; the flag tells what has none. */
static unsigned split(const std::vector<float> &x, size_t rows, size_t cols, size_t shift,
                      std::vector<uint16_t> *parts) {
  const size_t ld = gk_round_up(cols, size_t(8));
  device_array<float> from(x, shift);
  device_array<uint16_t> to(3 * rows * ld);
  device_array<unsigned> flag(std::vector<unsigned>(1, 0u));
  gk__raw_operand<float> a = gk__raw_operand<float>(), none = a;
  a.from = from.ptr, a.row_count = rows, a.col_count = a.leading_dim = cols, a.batch = 1;
  a.dest = reinterpret_cast<unsigned char *>(to.ptr), a.to_ld = ld * 2, a.to_part = rows * ld * 2;
  EXPECT_OK((gk__prepare_operands<GK__PREPARE_BF16_PARTS>(a, none, gk__min_split_bits(), gk__max_split_bits(100),
                                                          flag.ptr, 1, true, 0)));
  *parts = to.get();
  return flag.first();
}
TEST(parts_add_up) {
  std::vector<uint16_t> parts;
  for (size_t cols : {1u, 7u, 8u, 9u, 33u, 64u, 300u, 2100u})
    for (size_t shift : {0u, 1u, 2u, 3u}) {
      const size_t rows = cols > 1000 ? 100 : 5, ld = gk_round_up(cols, size_t(8));
      std::vector<float> x(rows * cols);
      for (size_t i = 0; i < x.size(); i++)
        x[i] =
            ldexpf(from_bits(0x3f800000u | static_cast<unsigned>(mix(75, i) & 0x807fffffu)), uniform(76, i, -60, 58));
      EXPECT_EQ(split(x, rows, cols, shift, &parts), 0u);
      size_t wrong = 0;
      for (size_t i = 0; i < x.size(); i++) {
        double sum = 0;
        for (size_t part = 0; part < 3; part++)
          sum += static_cast<double>(
              from_bits(static_cast<unsigned>(parts[(part * rows + i / cols) * ld + i % cols]) << 16));
        wrong += sum != static_cast<double>(x[i]);
      }
      EXPECT_EQ(wrong, size_t(0));
    }
}
TEST(what_has_no_parts_is_flagged) {
  std::vector<uint16_t> parts;
  std::vector<float> x(700, 1.0f);
  x[3] = 0, x[4] = -0.0f;
  EXPECT_EQ(split(x, 7, 100, 0, &parts), 0u);
  for (float odd : {NAN, INFINITY, -INFINITY, 1e-40f, -1e-40f, ldexpf(0.999f, -60), ldexpf(1, 59), FLT_MAX})
    for (size_t at : {0u, 99u, 350u, 699u}) {
      x[at] = odd;
      EXPECT_EQ(split(x, 7, 100, at % 2, &parts), 1u);
      x[at] = 1;
    }
  EXPECT_EQ(gk__max_split_bits(1), bits_of(ldexpf(1, 63)));
  EXPECT_EQ(gk__max_split_bits(4096), bits_of(ldexpf(1, 57)));
  EXPECT_EQ(gk__max_split_bits(4097), bits_of(ldexpf(1, 56)));
}

/* --- emulated fp32 beside strict ---------------------------------------------------------------------------------*/

struct beside_strict {
  problem p;
  std::vector<float> a, b, c;
  device_array<float> on_a, on_b, emulated, strict;
  explicit beside_strict(gk_precision precision, double beta = 0)
      : p(problem_of(37, 50, 70, precision)), a(data_of<float>(NORMAL, 81, p.m, p.k)),
        b(data_of<float>(NORMAL, 82, p.k, p.n)), c(data_of<float>(NORMAL, 83, p.m, p.n)), on_a(a), on_b(b),
        emulated(c.size()), strict(c.size()) {
    p.beta = beta;
  }
  void run(cudaStream_t stream, gk_scratch *scratch = NULL) {
    gk_matmul_opts o = p.opts(plans_of<float, float>(p.precision)[0]);
    o.scratch = scratch;
    EXPECT_OK(gk_matmul_ex(on_a.ptr, on_b.ptr, emulated.ptr, p.m, p.n, p.k, &o, stream));
  }
  void run_strictly() {
    problem same = p;
    same.precision = GK_PRECISION_STRICT;
    const gk_matmul_opts o = same.opts(GK_PLAN_AUTO);
    strict.set(c);
    EXPECT_OK(gk_matmul_ex(on_a.ptr, on_b.ptr, strict.ptr, p.m, p.n, p.k, &o));
  }
};
TEST(special_values_as_in_strict_products) {
  if (plans_of<float, float>(GK_PRECISION_EMULATED).empty()) SKIP("this GPU has no tensor cores for the type");
  for (float odd : {NAN, INFINITY, -INFINITY, 1e-40f, 3e38f})
    for (int where = 0; where < 2; where++) {
      beside_strict both(GK_PRECISION_EMULATED, where ? 0 : -0.5);
      (where ? both.on_b : both.on_a).set(123, odd);
      both.emulated.set(both.c);
      both.run(0);
      both.run_strictly();
      EXPECT_SAME(both.emulated.get(), both.strict.get(), "%g in %s", static_cast<double>(odd), where ? "B" : "A");
    }
}
/* A graph knows nothing of the data: each replay decides anew, on the device. */
TEST(a_graph_meets_special_values) {
  if (plans_of<float, float>(GK_PRECISION_EMULATED).empty()) SKIP("this GPU has no tensor cores for the type");
  for (bool with_scratch : {true, false}) {
    beside_strict both(GK_PRECISION_EMULATED, with_scratch ? 0.5 : 0);
    gk_scratch scratch = gk_scratch();
    EXPECT_OK(
        gk_scratch_create_work(&scratch, 0, gk_matmul_work_bytes(both.p.precision, both.p.m, both.p.n, both.p.k), 0));
    both.emulated.set(both.c);
    both.run(0, &scratch);
    const std::vector<float> usual = both.emulated.get();
    replay_graph(
        4, [&](cudaStream_t stream) { both.run(stream, with_scratch ? &scratch : NULL); },
        [&](int i) {
          both.emulated.set(both.c);
          both.on_a.set(both.a);
          if (i % 2) both.on_a.set(200, i == 1 ? NAN : 3e38f);
        },
        [&](int i) {
          both.run_strictly();
          EXPECT_SAME(both.emulated.get(), i % 2 ? both.strict.get() : usual, "replay %d", i);
          if (i % 2 == 0) EXPECT(usual != both.strict.get());
        });
    EXPECT_OK(gk_scratch_destroy(&scratch));
  }
}
/* Rounding keeps them in place: a NaN or infinity meets its row of A, or column of B, and no other. */
TEST(special_values_in_tf32) {
  for (gk_plan plan : plans_of<float, float>(GK_PRECISION_TF32)) {
    beside_strict both(GK_PRECISION_TF32);
    both.on_a.set(3 * both.p.k + 5, NAN);
    both.on_b.set(7 * both.p.n + 9, INFINITY);
    const gk_matmul_opts o = both.p.opts(plan);
    EXPECT_OK(gk_matmul_ex(both.on_a.ptr, both.on_b.ptr, both.emulated.ptr, both.p.m, both.p.n, both.p.k, &o));
    const std::vector<float> c = both.emulated.get();
    size_t wrong = 0;
    for (size_t i = 0; i < both.p.m; i++)
      for (size_t j = 0; j < both.p.n; j++) {
        const float x = c[i * both.p.n + j];
        wrong += i == 3 ? !(x != x) : j == 9 ? !(fabsf(x) > FLT_MAX) : !(fabsf(x) < 100);
      }
    EXPECT_EQ(wrong, size_t(0));
  }
}

/* --- memory ------------------------------------------------------------------------------------------------------*/

/* The same with no scratch, one without a work area, and with room for one, two and all products of a batch. */
TEST(any_work_area) {
  const std::vector<gk_plan> plans = plans_of<float, float>(GK_PRECISION_TF32);
  if (plans.empty()) SKIP("this GPU has no tensor cores for the type");
  problem p = problem_of(20, 30, 40, GK_PRECISION_TF32);
  p.batch = 5, p.trans_b = 1;
  for (int one = 0; one < 3; one++) {
    p.one_a = one & 1, p.one_b = one >> 1;
    device_array<float> a(data_of<float>(NORMAL, 91, 5 * p.m, p.k)), b(data_of<float>(NORMAL, 92, 5 * p.k, p.n));
    device_array<float> c(p.size_c());
    gk_matmul_opts o = p.opts(plans[0]);
    gk_matmul_path path;
    const uint64_t used = pool_bytes();
    EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
    const std::vector<float> expected = c.get();
    EXPECT_EQ(pool_bytes(), used);
    EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o, &path));
    EXPECT(path.work_bytes <= gk_matmul_work_bytes(GK_PRECISION_TF32, p.m, p.n, p.k));
    for (size_t room : {size_t(0), path.work_bytes, path.work_bytes * 2, path.work_bytes * 9}) {
      gk_scratch scratch = gk_scratch();
      EXPECT_OK(gk_scratch_create_work(&scratch, 1000, room, 0));
      o.scratch = &scratch;
      for (int again = 0; again < 2; again++) {
        c.clear();
        EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
        EXPECT_SAME(c.get(), expected, "%zu bytes of work area, one %d", room, one);
      }
      /* Slots and state are others' still. */
      device_array<float> sum(1);
      EXPECT_OK(gk_reduce(c.ptr, sum.ptr, c.n, gk_op_sum(), 0, &scratch));
      EXPECT_OK(gk_scratch_destroy(&scratch));
    }
  }
}
TEST(a_small_work_area_is_an_error_that_changes_nothing) {
  const std::vector<gk_plan> plans = plans_of<float, float>(GK_PRECISION_EMULATED);
  if (plans.empty()) SKIP("this GPU has no tensor cores for the type");
  const problem p = problem_of(20, 30, 40, GK_PRECISION_EMULATED);
  device_array<float> a(data_of<float>(NORMAL, 91, p.m, p.k)), b(data_of<float>(NORMAL, 92, p.k, p.n)), c(p.size_c());
  gk_matmul_opts o = p.opts(plans[0]);
  gk_matmul_path path;
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o, &path));
  EXPECT_OK(gk_scratch_create_work(&scratch, 0, path.work_bytes - 1, 0));
  o.scratch = &scratch;
  EXPECT_ERROR(cudaErrorInvalidValue,
               ("but " + std::to_string(path.work_bytes) + " are needed: gk_matmul_work_bytes").c_str(),
               gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
  EXPECT(c.untouched());
  EXPECT_OK(gk_scratch_destroy(&scratch));
}
/* The strict kernel behind an emulated product is refused with it. */
TEST(a_fallback_without_slots_is_an_error_that_changes_nothing) {
  const std::vector<gk_plan> plans = plans_of<float, float>(GK_PRECISION_EMULATED);
  if (plans.empty()) SKIP("this GPU has no tensor cores for the type");
  const problem p = problem_of(64, 64, 5000, GK_PRECISION_EMULATED);
  device_array<float> a(data_of<float>(NORMAL, 91, p.m, p.k)), b(data_of<float>(NORMAL, 92, p.k, p.n)), c(p.size_c());
  gk_matmul_opts o = p.opts(plans[0]);
  gk_matmul_path path;
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o, &path));
  EXPECT(path.scratch_bytes > gk_reduce_scratch_bytes());
  EXPECT_OK(gk_scratch_create_work(&scratch, path.scratch_bytes - 1, path.work_bytes, 0));
  o.scratch = &scratch;
  EXPECT_ERROR(cudaErrorInvalidValue, (" bytes, but " + std::to_string(path.scratch_bytes) + " are needed").c_str(),
               gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
  EXPECT(c.untouched());
  EXPECT_OK(gk_scratch_destroy(&scratch));
  EXPECT_OK(gk_scratch_create_work(&scratch, path.scratch_bytes, path.work_bytes, 0));
  EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
  EXPECT_OK(gk_scratch_destroy(&scratch));
}
/* Behind a flag a strict product is made by other kernels than without one, which may need slots where those need none.
 * An infinity makes the fallback run: it has the strict product's bits. */
TEST(a_fallback_where_strict_products_need_no_slots) {
  const std::vector<gk_plan> plans = plans_of<float, float>(GK_PRECISION_EMULATED);
  if (plans.empty()) SKIP("this GPU has no tensor cores for the type");
  const size_t shapes[][3] = {{132, 260, 352}, {64, 64, 640}, {250, 130, 1000}, {100, 100, 100}};
  for (const auto &s : shapes) {
    const problem p = problem_of(s[0], s[1], s[2], GK_PRECISION_EMULATED);
    std::vector<float> host = data_of<float>(NORMAL, 91, p.m, p.k);
    host[p.k] = HUGE_VALF;
    device_array<float> a(host), b(data_of<float>(NORMAL, 92, p.k, p.n)), c(p.size_c()), strict(p.size_c());
    EXPECT_OK(gk_matmul(a.ptr, b.ptr, strict.ptr, p.m, p.n, p.k));
    for (gk_plan plan : plans) {
      const gk_matmul_opts o = p.opts(plan);
      c.clear();
      EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
      EXPECT_SAME(c.get(), strict.get(), "%s, plan %d", p.text().c_str(), static_cast<int>(plan));
    }
  }
}
TEST(work_areas_that_cannot_be) {
  gk_scratch scratch = gk_scratch();
  EXPECT_ERROR(cudaErrorInvalidValue, "more than memory can address",
               gk_scratch_create_work(&scratch, 1000, static_cast<size_t>(-1), 0));
  EXPECT(scratch.ptr == NULL);
  EXPECT_EQ(gk_matmul_work_bytes(GK_PRECISION_STRICT, 1001, 1001, 1001), size_t(0));
  EXPECT_EQ(gk_matmul_work_bytes(GK_PRECISION_TF32, 100, 0, 100), size_t(0));
  EXPECT_EQ(gk_matmul_work_bytes(GK_PRECISION_TF32, 64, 64, 64), size_t(256 + 2 * 64 * 64 * 4));
  EXPECT_EQ(gk_matmul_work_bytes(GK_PRECISION_EMULATED, 64, 64, 64), size_t(256 + 6 * 64 * 64 * 2));
}

/* --- the plan ----------------------------------------------------------------------------------------------------*/

static gk__product product_of(gk__item item, size_t m, size_t n, size_t k, gk_precision precision, gk_plan plan) {
  const gk__product p = {item, m, n, k, 1, {256, k, 0, true}, {256, n, 0, false}, precision, plan};
  return p;
}
TEST(planner) {
  const gk__tensor_gpu turing = {40, 75, false}, ampere = {108, 80, false}, hopper = {132, 90, true};
  const auto plan_of = [](gk__item item, size_t edge, gk_precision precision, const gk__tensor_gpu &gpu) {
    const gk__product_plan plan = gk__plan_product(product_of(item, edge, edge, edge, precision, GK_PLAN_AUTO), gpu);
    EXPECT(plan.refused == NULL);
    EXPECT_EQ(plan.tensor(), plan.precision != GK_PRECISION_STRICT);
    return static_cast<int>(plan.plan);
  };
  const int automatic = GK_PLAN_AUTO, mma = GK_PLAN_MMA, wgmma = GK_PLAN_WGMMA;
  EXPECT_EQ(plan_of(GK__ITEM_F16, 1024, GK_PRECISION_DEFAULT, turing), mma);
  EXPECT_EQ(plan_of(GK__ITEM_BF16, 1024, GK_PRECISION_DEFAULT, turing), automatic);
  EXPECT_EQ(plan_of(GK__ITEM_BF16, 1024, GK_PRECISION_DEFAULT, ampere), mma);
  EXPECT_EQ(plan_of(GK__ITEM_BF16, 1024, GK_PRECISION_DEFAULT, hopper), wgmma);
  EXPECT_EQ(plan_of(GK__ITEM_BF16, 1024, GK_PRECISION_STRICT, hopper), automatic);
  EXPECT_EQ(plan_of(GK__ITEM_BF16, 32, GK_PRECISION_DEFAULT, hopper), automatic);
  EXPECT_EQ(plan_of(GK__ITEM_F32, 4096, GK_PRECISION_DEFAULT, hopper), automatic);
  EXPECT_EQ(plan_of(GK__ITEM_F32, 4096, GK_PRECISION_TF32, turing), automatic);
  EXPECT_EQ(plan_of(GK__ITEM_F32, 4096, GK_PRECISION_TF32, hopper), wgmma);
  EXPECT_EQ(plan_of(GK__ITEM_F32, 128, GK_PRECISION_TF32, hopper), wgmma);
  EXPECT_EQ(plan_of(GK__ITEM_F32, 129, GK_PRECISION_TF32, hopper), automatic); /* would be copied */
  EXPECT_EQ(plan_of(GK__ITEM_F32, 128, GK_PRECISION_TF32, ampere), mma);
  EXPECT_EQ(plan_of(GK__ITEM_F32, 129, GK_PRECISION_TF32, ampere), automatic);
  EXPECT_EQ(plan_of(GK__ITEM_F32, 256, GK_PRECISION_TF32, ampere), mma);
  EXPECT_EQ(plan_of(GK__ITEM_F32, 4096, GK_PRECISION_EMULATED, ampere), mma);
  EXPECT_EQ(plan_of(GK__ITEM_F32, 128, GK_PRECISION_EMULATED, ampere), automatic);
  gk__product flat = product_of(GK__ITEM_F32, 64, 8192, 8192, GK_PRECISION_EMULATED, GK_PLAN_AUTO);
  EXPECT(!gk__plan_product(flat, hopper).tensor()); /* splitting would take longer */
  flat.m = 256;
  EXPECT(gk__plan_product(flat, hopper).tensor());
  EXPECT_EQ(plan_of(GK__ITEM_F64, 4096, GK_PRECISION_STRICT, hopper), automatic);
  gk__product thin = product_of(GK__ITEM_BF16, 3, 8192, 8192, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
  EXPECT(!gk__plan_product(thin, ampere).tensor());
  thin.plan = GK_PLAN_MMA;
  EXPECT(gk__plan_product(thin, ampere).tensor());
  const auto thin_plan = [&](gk__item item, size_t m, size_t n, size_t k) {
    return static_cast<int>(
        gk__plan_product(product_of(item, m, n, k, GK_PRECISION_DEFAULT, GK_PLAN_AUTO), hopper).plan);
  };
  EXPECT_EQ(thin_plan(GK__ITEM_BF16, 1, 8192, 8192), wgmma);
  EXPECT_EQ(thin_plan(GK__ITEM_BF16, 1, 8191, 8192), automatic); /* would be copied */
  EXPECT_EQ(thin_plan(GK__ITEM_BF16, 1, 8192, 8191), automatic);
  EXPECT_EQ(thin_plan(GK__ITEM_BF16, 8192, 1, 8192), automatic);
  EXPECT_EQ(thin_plan(GK__ITEM_BF16, 1, 2048, 4096), automatic);
  EXPECT_EQ(thin_plan(GK__ITEM_BF16, 1, 4096, 4096), wgmma);
  EXPECT_EQ(thin_plan(GK__ITEM_BF16, 2, 4096, 4096), wgmma);
  EXPECT_EQ(thin_plan(GK__ITEM_F32, 1, 8192, 8192), automatic);
  thin.k = 0;
  EXPECT(!gk__plan_product(thin, hopper).tensor());
}
/* Bytes from row to row and from matrix to matrix must stay below 2^40 for TMA. */
TEST(planner_keeps_to_what_tma_can_address) {
  const gk__tensor_gpu hopper = {132, 90, true};
  const size_t apart = size_t(1) << 37;
  for (int which = 0; which < 4; which++)
    for (size_t more : {size_t(0), size_t(8)}) {
      gk__product p = product_of(GK__ITEM_F16, 256, 256, 256, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
      p.batch = 2, p.a.stride = p.b.stride = 1 << 16;
      (which == 0   ? p.a.leading_dim
       : which == 1 ? p.b.leading_dim
       : which == 2 ? p.a.stride
                    : p.b.stride) = apart - 8 + more;
      EXPECT_EQ(static_cast<int>(gk__plan_product(p, hopper).plan),
                static_cast<int>(more ? GK_PLAN_MMA : GK_PLAN_WGMMA));
    }
}
/* A C of one row may say that its rows are any number of elements apart. */
TEST(a_leading_dimension_past_what_tma_can_address) {
  const size_t n = 32768, k = 64;
  const std::vector<gk_plan> plans = plans_of<__half, __half>(GK_PRECISION_DEFAULT);
  if (plans.empty()) SKIP("this GPU has no tensor cores for the type");
  device_array<__half> a(std::vector<__half>(k, make<__half>(1))), b(std::vector<__half>(k * n, make<__half>(1))), c(n);
  gk_matmul_opts o = gk_matmul_opts();
  for (gk_plan plan : plans)
    for (size_t ldc : {(size_t(1) << 39) - 8, size_t(1) << 39, size_t(1) << 42}) {
      o.plan = plan, o.ldc = ldc;
      c.clear();
      EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, 1, n, k, &o));
      EXPECT_SAME(c.get(), std::vector<__half>(n, make<__half>(64)), "ldc %zu, plan %d", ldc, static_cast<int>(plan));
    }
}
TEST(planner_copies_what_is_not_aligned) {
  const gk__tensor_gpu gpu = {132, 80, false};
  gk__product p = product_of(GK__ITEM_F16, 104, 112, 120, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
  const auto copies = [&] {
    const gk__product_plan plan = gk__plan_product(p, gpu);
    EXPECT_EQ(plan.work_bytes(1) > 0, plan.a.wanted || plan.b.wanted);
    return plan.a.wanted + 2 * plan.b.wanted;
  };
  EXPECT_EQ(copies(), 0);
  p.a.address = 258;
  EXPECT_EQ(copies(), 1);
  p.a.address = 256, p.b.leading_dim = 113;
  EXPECT_EQ(copies(), 2);
  p.b.leading_dim = 112, p.batch = 2, p.a.stride = 104 * 120 + 4;
  EXPECT_EQ(copies(), 1);
  const gk__product_plan two = gk__plan_product(p, gpu);
  EXPECT_EQ(two.work_bytes(1), size_t(256 + 98 * 256)); /* to a multiple of 256 */
  EXPECT_EQ(two.work_bytes(2), 2 * two.work_bytes(1) - 256);
  p.a.stride = 0;
  EXPECT_EQ(copies(), 0);
  p.item = GK__ITEM_F32, p.precision = GK_PRECISION_TF32, p.plan = GK_PLAN_MMA;
  EXPECT_EQ(copies(), 0); /* fragments are rounded, and read from any order */
  p.b.leading_dim = 113;
  EXPECT_EQ(copies(), 2);
  EXPECT(!gk__plan_product(p, gpu).b.transposed);
  p.b.leading_dim = 112;
  p.precision = GK_PRECISION_EMULATED;
  EXPECT(!gk__plan_product(p, gpu).b.transposed);
  EXPECT_EQ(gk__plan_product(p, gpu).b.matrix, size_t(3 * gk_round_up(112 * 120 * 2, 256)));
}
/* tf32 on Hopper: nothing, but what is not aligned, and one operand where neither runs along k: the smaller. */
TEST(planner_copies_for_tf32_what_has_to_be) {
  const gk__tensor_gpu hopper = {132, 90, true};
  const auto copies = [&](size_t m, size_t n, size_t k, int trans, size_t pad) {
    gk__product p = product_of(GK__ITEM_F32, m, n, k, GK_PRECISION_TF32, GK_PLAN_AUTO);
    p.a.k_major = !(trans & 1), p.a.leading_dim = (p.a.k_major ? k : m) + pad;
    p.b.k_major = trans >> 1, p.b.leading_dim = p.b.k_major ? k : n;
    const gk__product_plan plan = gk__plan_product(p, hopper);
    EXPECT(plan.plan == GK_PLAN_WGMMA);
    return plan.a.wanted + 2 * plan.b.wanted + 4 * plan.a.transposed + 8 * plan.b.transposed;
  };
  EXPECT_EQ(copies(1000, 1200, 1004, 0, 0), 0);
  EXPECT_EQ(copies(1000, 1200, 1004, 2, 0), 0);
  EXPECT_EQ(copies(1000, 1200, 1004, 3, 0), 0);
  EXPECT_EQ(copies(1000, 1200, 1004, 1, 0), 1 + 4);
  EXPECT_EQ(copies(1200, 1000, 1004, 1, 0), 2 + 8);
  EXPECT_EQ(copies(1200, 1000, 1004, 1, 1), 1 + 2 + 8);
  EXPECT_EQ(copies(1000, 1203, 1001, 0, 2), 2); /* every eighth row of A is aligned */
  EXPECT_EQ(copies(1000, 1200, 1004, 3, 1), 1);
  EXPECT_EQ(copies(1000, 1200, 1003, 3, 0), 2); /* its rows would give every fourth column of C */
  EXPECT_EQ(copies(100, 1200, 10001, 0, 0), 1); /* tiles of few columns */
  EXPECT_EQ(copies(1000, 1202, 1004, 2, 0), 0);
  EXPECT_EQ(copies(2048, 2052, 2048, 0, 0), 0);
  EXPECT_EQ(copies(4096, 4100, 4096, 0, 0), 2); /* to sectors, where it is large */
  EXPECT_EQ(copies(4100, 4096, 4100, 0, 0), 0);
  EXPECT_EQ(copies(4096, 4096, 4097, 0, 0), 0);
}
/* ... to a sector, where the copy engine reads most of it several times. */
TEST(planner_copies_what_begins_within_sectors) {
  const gk__tensor_gpu hopper = {132, 90, true}, ampere = {132, 80, false};
  const auto copies = [](size_t m, size_t n, size_t k, size_t shift, const gk__tensor_gpu &gpu) {
    gk__product p = product_of(GK__ITEM_BF16, m, n, k, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
    p.b.address += shift;
    const gk__product_plan plan = gk__plan_product(p, gpu);
    return plan.a.wanted + 2 * plan.b.wanted;
  };
  EXPECT_EQ(copies(2056, 2056, 2056, 0, hopper), 2); /* A is split */
  EXPECT_EQ(copies(2056, 2056, 2056, 0, ampere), 0);
  EXPECT_EQ(copies(2064, 2064, 2056, 0, hopper), 0);
  EXPECT_EQ(copies(2064, 2056, 2064, 0, hopper), 2);
  EXPECT_EQ(copies(2064, 2064, 2064, 0, hopper), 0);
  EXPECT_EQ(copies(2064, 2064, 2064, 16, hopper), 2);
  EXPECT_EQ(copies(2056, 2056, 1000, 0, hopper), 0);
  EXPECT_EQ(copies(2056, 1000, 2056, 0, hopper), 0);
  EXPECT_EQ(copies(1000, 2056, 2056, 0, hopper), 0);
}
/* Into how many an A is split: so that rows begin at sectors, where that is better than to copy it, or costs nothing. */
TEST(planner_splits_what_is_not_aligned) {
  const gk__tensor_gpu hopper = {132, 90, true}, ampere = {132, 80, false};
  gk__product p = product_of(GK__ITEM_BF16, 2047, 333, 5001, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
  const auto split = [&](const gk__tensor_gpu &gpu) {
    const gk__product_plan plan = gk__plan_product(p, gpu);
    EXPECT(plan.a.split == 1 || !plan.a.wanted);
    EXPECT_EQ(plan.b.split, 1u);
    return plan.a.split;
  };
  EXPECT_EQ(split(hopper), 16u);
  EXPECT_EQ(split(ampere), 1u);
  p.a.leading_dim = 5002;
  EXPECT_EQ(split(hopper), 8u);
  p.a.leading_dim = 5016, p.a.address = 264;
  EXPECT_EQ(split(hopper), 2u);
  p.a.leading_dim = 5024;
  EXPECT_EQ(split(hopper), 2u);
  p.a.address = 256;
  EXPECT_EQ(split(hopper), 1u);
  p.a.leading_dim = 5001, p.batch = 2, p.a.stride = 2047 * 5001;
  EXPECT_EQ(split(hopper), 1u); /* the second matrix begins elsewhere */
  p.a.stride = 2048 * 5001;
  EXPECT_EQ(split(hopper), 16u);
  p.b.k_major = true;
  EXPECT_EQ(split(hopper), 1u);
  p.a.leading_dim = 5000, p.a.stride = 0;
  EXPECT_EQ(split(hopper), 2u);
  p.m = 1100; /* 10 tiles below each other instead of 9 */
  EXPECT_EQ(split(hopper), 1u);
  p.b.k_major = false, p.a.leading_dim = 5001, p.n = 200;
  EXPECT_EQ(split(hopper), 16u);
  p.n = 1000;
  EXPECT_EQ(split(hopper), 1u);
  p.n = 100, p.a.k_major = false;
  EXPECT_EQ(split(hopper), 1u);
  p = product_of(GK__ITEM_F32, 2047, 333, 5001, GK_PRECISION_TF32, GK_PLAN_AUTO);
  EXPECT_EQ(split(hopper), 8u);
  p.precision = GK_PRECISION_EMULATED;
  EXPECT_EQ(split(hopper), 1u);
}
TEST(plans_that_cannot_be) {
  const gk__tensor_gpu turing = {40, 75, false}, ampere = {108, 80, false};
  const auto refused = [](gk__item item, gk_precision precision, gk_plan plan, const gk__tensor_gpu &gpu) {
    const char *const why = gk__plan_product(product_of(item, 64, 64, 64, precision, plan), gpu).refused;
    return why ? why : "";
  };
  EXPECT_HAS(refused(GK__ITEM_F16, GK_PRECISION_TF32, GK_PLAN_AUTO, ampere), "one of float");
  EXPECT_HAS(refused(GK__ITEM_F64, GK_PRECISION_EMULATED, GK_PLAN_AUTO, ampere), "double has none");
  EXPECT_HAS(refused(GK__ITEM_F32, GK_PRECISION_DEFAULT, GK_PLAN_MMA, ampere), "ask for another precision");
  EXPECT_HAS(refused(GK__ITEM_F32, GK_PRECISION_TF32, GK__PLAN_TILE_64, ampere), "GK_PLAN_AUTO");
  EXPECT_HAS(refused(GK__ITEM_BF16, GK_PRECISION_DEFAULT, GK_PLAN_MMA, turing), "sm_80");
  EXPECT_HAS(refused(GK__ITEM_BF16, GK_PRECISION_DEFAULT, GK_PLAN_WGMMA, ampere), "sm_90a");
  EXPECT_EQ(std::string(refused(GK__ITEM_BF16, GK_PRECISION_DEFAULT, GK__PLAN_TILE_64, ampere)), std::string());
  device_array<float> a(std::vector<float>(64, 1.0f)), c(64);
  gk_matmul_opts o = gk_matmul_opts();
  o.plan = GK_PLAN_MMA;
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul: precision 0, plan 8: this plan is one of tensor cores",
               gk_matmul_ex(a.ptr, a.ptr, c.ptr, 8, 8, 8, &o));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul_plan: path is NULL",
               gk_matmul_plan(a.ptr, a.ptr, c.ptr, 8, 8, 8, &o, NULL));
  EXPECT(c.untouched());
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
TEST(a_precision_that_is_compiled) {
  check_compiled_precision<GK_PRECISION_STRICT, float>();
  check_compiled_precision<GK_PRECISION_TF32, float>();
  check_compiled_precision<GK_PRECISION_EMULATED, float>();
  check_compiled_precision<GK_PRECISION_STRICT, double>();
  check_compiled_precision<GK_PRECISION_STRICT, __half>();
  check_compiled_precision<GK_PRECISION_DEFAULT, __nv_bfloat16>();
}
/* What a product does without a plan of the caller's is what gk_matmul_plan says. */
TEST(the_plan_can_be_asked_for) {
  device_array<__half> a(not_numbers<__half>(3)), c(3);
  gk_matmul_path path;
  const std::vector<gk_plan> plans = plans_of<__half, __half>(GK_PRECISION_DEFAULT);
  EXPECT_OK(gk_matmul_plan(a.ptr, a.ptr, c.ptr + 1, 200, 200, 200, NULL, &path));
  EXPECT_EQ(static_cast<int>(path.plan), static_cast<int>(plans.empty() ? GK_PLAN_AUTO : plans.back()));
  EXPECT_EQ(static_cast<int>(path.precision),
            static_cast<int>(plans.empty() ? GK_PRECISION_STRICT : GK_PRECISION_DEFAULT));
  EXPECT_EQ(path.work_bytes, size_t(0));
  EXPECT_OK(gk_matmul_plan(a.ptr, a.ptr + 1, c.ptr + 1, 200, 200, 200, NULL, &path));
  EXPECT_EQ(path.copies_a, 0);
  EXPECT_EQ(path.copies_b, !plans.empty());
  EXPECT_OK(gk_matmul_plan(a.ptr, a.ptr, c.ptr + 1, 2, 2, 2, NULL, &path));
  EXPECT_EQ(static_cast<int>(path.precision), static_cast<int>(GK_PRECISION_STRICT));
}
