/* gk_matmul and gk_matmul_ex against chains of fused multiply-adds in the order that the library says, bit by bit; and
 * the building blocks in kernels of one's own. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "data.h"
#include <thread>

#ifdef CUDA_ON_CPU
static const bool on_cpu = true; /* which has no kernels of Hopper's */
#else
static const bool on_cpu = false;
#endif

/* --- what is right --------------------------------------------------------------------------------------------------*/

struct problem { /* right when zero, but for the sizes */
  size_t m, n, k;
  int trans_a, trans_b;
  size_t pad_a, pad_b, pad_c; /* columns of padding */
  double alpha, beta;
  size_t batch, gap_c; /* elements between one C and the next */
  bool one_a, one_b;   /* for the whole batch */
  size_t max_blocks;
  size_t shift; /* elements that every matrix is off its alignment */

  size_t rows_a() const { return trans_a ? k : m; }
  size_t cols_a() const { return trans_a ? m : k; }
  size_t rows_b() const { return trans_b ? n : k; }
  size_t cols_b() const { return trans_b ? k : n; }
  size_t lda() const { return cols_a() + pad_a; }
  size_t ldb() const { return cols_b() + pad_b; }
  size_t ldc() const { return n + pad_c; }
  size_t batches() const { return batch ? batch : 1; }
  size_t stride_a() const { return one_a ? 0 : rows_a() * lda(); }
  size_t stride_b() const { return one_b ? 0 : rows_b() * ldb(); }
  size_t stride_c() const { return m * ldc() + gap_c; }
  /* Elements up to the last one: the padding of the last row is not there. */
  size_t size(size_t rows, size_t cols, size_t ld, size_t stride) const {
    return rows && cols ? (batches() - 1) * stride + (rows - 1) * ld + cols : 0;
  }
  std::string text() const {
    char line[256];
    snprintf(
        line, sizeof(line),
        "%zu x %zu x %zu, trans %d %d, pad %zu %zu %zu, alpha %g, beta %g, batch %zu (one a %d, one b %d, gap %zu), "
        "shift %zu",
        m, n, k, trans_a, trans_b, pad_a, pad_b, pad_c, alpha, beta, batch, one_a, one_b, gap_c, shift);
    return line;
  }
};
static problem problem_of(size_t m, size_t n, size_t k) {
  problem p = problem();
  p.m = m, p.n = n, p.k = k, p.alpha = 1;
  return p;
}

template <class T> using acc_type = plain_type<T>;

/* One element: a chain for each partition of k; in thin products 32 chains in each, that take four products in turn. */
template <class Acc, class Product> static Acc sum_by_order(const gk__split_k &order, size_t k, Product product) {
  Acc total = 0;
  for (unsigned s = 0; s < order.partitions; s++) {
    const size_t depth = static_cast<size_t>(order.depth), first = s * depth, end = std::min(k, first + depth);
    Acc chain[32] = {};
    for (size_t l = first; l < end; l++) {
      Acc &sum = chain[order.thin ? (l - first) / 4 % 32 : 0];
      sum = product(l, sum);
    }
    for (int apart = order.thin ? 16 : 0; apart; apart /= 2)
      for (int i = 0; i < apart; i++) chain[i] += chain[i + apart];
    total = s == 0 ? chain[0] : total + chain[0];
  }
  return total;
}

/* The functor of the epilogue that calls without one have. */
struct as_it_is {
  template <class Acc> Acc operator()(Acc value, size_t, size_t) const { return value; }
};
template <class T, class O, class Func = as_it_is>
static void multiply_plainly(const problem &p, const std::vector<T> &a, const std::vector<T> &b, std::vector<O> &c,
                             const gk__split_k &order, const Func &func = Func()) {
  typedef acc_type<T> Acc;
  const Acc alpha = static_cast<Acc>(p.alpha), beta = static_cast<Acc>(p.beta);
  std::vector<Acc> x(p.k), y(p.k * p.n); /* y: op(B), transposed */
  for (size_t q = 0; q < p.batches(); q++) {
    for (size_t l = 0; l < p.k; l++)
      for (size_t j = 0; j < p.n; j++)
        y[j * p.k + l] = static_cast<Acc>(plain(b[q * p.stride_b() + (p.trans_b ? j * p.ldb() + l : l * p.ldb() + j)]));
    for (size_t i = 0; i < p.m; i++) {
      for (size_t l = 0; l < p.k; l++)
        x[l] = plain(a[q * p.stride_a() + (p.trans_a ? l * p.lda() + i : i * p.lda() + l)]);
      for (size_t j = 0; j < p.n; j++) {
        const Acc *const column = y.data() + j * p.k;
        O &to = c[q * p.stride_c() + i * p.ldc() + j];
        const Acc old = p.beta != 0 ? static_cast<Acc>(plain(to)) : 0;
        Acc result = beta * old; /* which it is, to the sign of a zero, where k or alpha is 0 */
        if (p.k > 0 && p.alpha != 0) {
          result =
              alpha * sum_by_order<Acc>(order, p.k, [&](size_t l, Acc sum) { return std::fma(x[l], column[l], sum); });
          if (p.beta != 0) result = std::fma(beta, old, result);
        }
        to = make<O>(static_cast<double>(func(result, i, j)));
      }
    }
  }
}

template <class T, class O>
static void multiply_plainly(const problem &p, const std::vector<T> &a, const std::vector<T> &b, std::vector<O> &c) {
  multiply_plainly(p, a, b, c, gk__plan_split_k<acc_type<T>>(p.m, p.n, p.k));
}

/* --- one problem, every plan ----------------------------------------------------------------------------------------*/

template <class T> static std::vector<T> random_elements(uint64_t seed, size_t n) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; i++) x[i] = rounding<T>(seed, i);
  return x;
}

template <class T, class O>
static void check_elements(const problem &p, const std::vector<T> &a, const std::vector<T> &b,
                           std::initializer_list<gk_plan> plans) {
  /* With beta 0 what stands in C is not read, a NaN neither; all else that is not an element of C stays. */
  std::vector<O> before = random_elements<O>(13, p.size(p.m, p.n, p.ldc(), p.stride_c()));
  if (p.beta == 0)
    for (size_t q = 0; q < p.batches(); q++)
      for (size_t i = 0; i < p.m; i++)
        for (size_t j = 0; j < p.n; j++) before[q * p.stride_c() + i * p.ldc() + j] = make<O>(NAN);
  std::vector<O> expected(before);
  multiply_plainly(p, a, b, expected);
  device_array<T> device_a(a, p.shift), device_b(b, p.shift);
  device_array<O> device_c(before, p.shift);
  gk_matmul_opts opts = gk_matmul_opts();
  opts.trans_a = p.trans_a, opts.trans_b = p.trans_b;
  opts.lda = p.pad_a ? p.lda() : 0, opts.ldb = p.pad_b ? p.ldb() : 0, opts.ldc = p.pad_c ? p.ldc() : 0;
  if (p.alpha != 1) opts.alpha = &p.alpha;
  if (p.beta != 0) opts.beta = &p.beta;
  opts.batch = p.batch;
  opts.stride_a = p.stride_a(), opts.stride_b = p.stride_b(), opts.stride_c = p.gap_c ? p.stride_c() : 0;
  opts.max_blocks = p.max_blocks;
  opts.precision = GK_PRECISION_STRICT; /* which floats are anyway */
  for (gk_plan plan : plans) {
    if (on_cpu && gk__is_hopper_plan(plan)) continue; /* others, there */
    opts.plan = plan;
    device_c.set(before);
    EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, device_c.ptr, p.m, p.n, p.k, &opts));
    EXPECT_SAME(device_c.get(), expected, "plan %d, %s", static_cast<int>(plan), p.text().c_str());
  }
}
template <class T, class O> static void check(const problem &p, std::initializer_list<gk_plan> plans) {
  if (test_leaves_out<std::pair<T, O>>()) return;
  check_elements<T, O>(p, random_elements<T>(11, p.size(p.rows_a(), p.cols_a(), p.lda(), p.stride_a())),
                       random_elements<T>(12, p.size(p.rows_b(), p.cols_b(), p.ldb(), p.stride_b())), plans);
}
template <class T, class O> static void check_all_plans(const problem &p) {
  check<T, O>(p, {GK_PLAN_AUTO, GK__PLAN_TILE_32, GK__PLAN_TILE_64, GK__PLAN_TILE_64_128, GK__PLAN_TILE_32_64,
                  GK__PLAN_HOPPER_128, GK__PLAN_HOPPER_64_128, GK__PLAN_HOPPER_128_64});
}

/* A problem of everything at once, by number. */
static problem random_problem(uint64_t number, int largest) {
  const size_t edges[] = {0, 1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  uint64_t draws = 1000 * number;
  const auto draw = [&](int low, int high) { return static_cast<size_t>(uniform(14, draws++, low, high)); };
  const auto size = [&] { return draw(0, 2) ? draw(1, largest) : edges[draw(0, 17)]; };
  const double factors[] = {1, 1, -0.5, 2.25, 0};
  problem p = problem();
  p.m = size(), p.n = size(), p.k = size();
  p.trans_a = static_cast<int>(draw(0, 1)), p.trans_b = static_cast<int>(draw(0, 1));
  p.pad_a = draw(0, 2) * draw(0, 4), p.pad_b = draw(0, 2) * draw(0, 4), p.pad_c = draw(0, 2) * draw(0, 4);
  p.alpha = factors[draw(0, 4)];
  p.beta = draw(0, 1) ? factors[draw(0, 4)] : 0;
  p.batch = draw(0, 3) ? 0 : draw(1, 4);
  p.one_a = draw(0, 3) == 0, p.one_b = draw(0, 3) == 0;
  p.gap_c = draw(0, 3) ? 0 : draw(1, 9);
  p.shift = draw(0, 1) * draw(0, 15);
  return p;
}

template <class T, class O> static void check_random(uint64_t first, uint64_t count) {
  for (uint64_t i = first; i < first + count; i++) check_all_plans<T, O>(random_problem(i, 200));
}
TEST(random_problems_f32) { check_random<float, float>(0, 60); }
TEST(random_problems_f64) { check_random<double, double>(100, 30); }
TEST(random_problems_f16) { check_random<__half, __half>(200, 30); }
TEST(random_problems_f16_f32) { check_random<__half, float>(300, 30); }
TEST(random_problems_bf16) { check_random<__nv_bfloat16, __nv_bfloat16>(400, 20); }
TEST(random_problems_bf16_f32) { check_random<__nv_bfloat16, float>(500, 20); }

/* Around the edges of every tile and of its depth, each transposition, aligned and not. */
TEST(edges_of_tiles) {
  for (size_t edge : {1u, 16u, 32u, 64u, 128u})
    for (size_t off : {0u, 1u, 2u})
      for (int trans = 0; trans < 4; trans++) {
        problem p = problem_of(edge - 1 + off, edge + 1 - off, edge - 1 + (off + 1) % 3);
        p.trans_a = trans & 1, p.trans_b = trans >> 1;
        check_all_plans<float, float>(p);
      }
}
TEST(vectors_and_nothing) {
  for (size_t m : {0u, 1u, 130u})
    for (size_t n : {0u, 1u, 130u})
      for (size_t k : {0u, 1u, 130u})
        for (double beta : {0.0, -0.5}) {
          problem p = problem_of(m, n, k);
          p.beta = beta;
          check_all_plans<float, float>(p);
        }
}
TEST(every_alignment) {
  for (size_t shift = 0; shift < 8; shift++)
    for (size_t pad : {0u, 1u, 2u, 4u}) {
      problem p = problem_of(70, 68, 36);
      p.shift = shift, p.pad_a = p.pad_b = p.pad_c = pad;
      p.trans_a = pad & 1, p.trans_b = shift & 1, p.beta = 1;
      check<float, float>(p, {GK__PLAN_TILE_32, GK__PLAN_TILE_64, GK__PLAN_TILE_64_128});
      check<__half, __half>(p, {GK__PLAN_TILE_32, GK__PLAN_TILE_64, GK__PLAN_TILE_64_128});
      check<double, double>(p, {GK__PLAN_TILE_64});
    }
}
/* Floats whose rows the copy engine cannot bring to where they are multiplied: every start of a row, some tiles and
 * steps of k, either order in memory, and operands of few rows. */
TEST(rows_at_any_address) {
  for (size_t shift = 0; shift < 4; shift++)
    for (int trans = 0; trans < 4; trans++) {
      const size_t k[] = {100, 45, 16, 3}; /* the last is for other kernels */
      problem p = problem_of(132, 260, k[shift]);
      p.trans_a = trans & 1, p.trans_b = trans >> 1;
      p.shift = shift, p.pad_a = 1 + shift, p.pad_b = 5 - shift;
      if (shift == 2) p.m = 2, p.n = 1;
      if (shift == 1) p.batch = 2, p.one_b = trans == 3;
      check<float, float>(p, {GK_PLAN_AUTO, GK__PLAN_HOPPER_128, GK__PLAN_HOPPER_64_128, GK__PLAN_HOPPER_128_64});
    }
}
TEST(larger) {
  check<float, float>(problem_of(300, 517, 1031), {GK_PLAN_AUTO, GK__PLAN_TILE_64_128});
  check<double, double>(problem_of(200, 257, 511), {GK_PLAN_AUTO});
  problem p = problem_of(1100, 70, 33); /* more than eight rows of tiles: the order of the blocks has bands */
  check_all_plans<float, float>(p);
  p = problem_of(40, 1500, 33);
  p.batch = 3;
  check_all_plans<float, float>(p);
}

/* Doubles whose tiles are enough for blocks that stay: more than one tile for each, edges on both sides, and depths
 * that are less than one step, several, and not whole ones. */
TEST(doubles_of_many_tiles) {
  const size_t m = on_cpu ? 262 : 1030; /* blocks that stay are a GPU's alone */
  for (size_t k : {1u, 16u, 37u, 130u})
    for (int trans = k % 2; trans < 4; trans += 2) {
      problem p = problem_of(m, 581 - k % 2, k);
      p.trans_a = trans & 1, p.trans_b = trans >> 1;
      p.shift = k % 3, p.pad_a = static_cast<size_t>(trans), p.pad_c = static_cast<size_t>(k % 2);
      if (trans == 1) p.alpha = -0.5, p.beta = 2.25;
      check<double, double>(p, {GK_PLAN_AUTO});
    }
  problem p = problem_of(100, 60, 45);
  p.batch = 300, p.one_b = true, p.gap_c = 3;
  check<double, double>(p, {GK_PLAN_AUTO, GK__PLAN_TILE_32_64});
}

/* Batches that warps make tile by tile: one tile for each product or several, edges on both sides; one, two and more
 * steps in k, and half of one; warps that have several tiles, one, or none. */
TEST(batches_of_tiles) {
  const size_t edges[][2] = {{64, 64}, {61, 52}, {128, 60}, {100, 124}, {3, 8}};
  for (const auto &edge : edges)
    for (size_t k : {8u, 16u, 24u, 40u}) {
      problem p = problem_of(edge[0], edge[1], k);
      p.batch = edge[0] > 64 ? 5 : 11, p.max_blocks = 1;
      check<float, float>(p, {GK_PLAN_AUTO, GK__PLAN_TILE_64});
      p.pad_a = 4, p.pad_b = 8, p.pad_c = k == 16 ? 3 : 4, p.shift = 4, p.gap_c = k == 16 ? 5 : 8;
      p.one_a = k == 16, p.one_b = k == 24, p.alpha = -0.5, p.beta = 2.25;
      check<float, float>(p, {GK_PLAN_AUTO});
    }
  problem p = problem_of(64, 64, 8);
  p.batch = 3, p.max_blocks = 1; /* too few */
  check<float, float>(p, {GK_PLAN_AUTO});
  p.batch = 20, p.k = 12; /* not in eights */
  check<float, float>(p, {GK_PLAN_AUTO});
  p.k = 8, p.shift = 1; /* not aligned */
  check<float, float>(p, {GK_PLAN_AUTO});
  p.shift = 0, p.max_blocks = 2;
  check<float, float>(p, {GK_PLAN_AUTO});
  p = problem_of(130, 188, 24); /* larger ones: nine tiles each, of eight warps */
  p.batch = 7, p.max_blocks = 1;
  check<float, float>(p, {GK_PLAN_AUTO});
  p = problem_of(62, 124, 328); /* k is too long, and split */
  p.batch = 8, p.max_blocks = 1, p.pad_c = 8, p.gap_c = 4;
  check<float, float>(p, {GK_PLAN_AUTO});
  p.beta = 0.5;
  check<float, float>(p, {GK_PLAN_AUTO});
  p.beta = 0, p.alpha = -0.5;
  check<float, float>(p, {GK_PLAN_AUTO});
}

/* --- partitions of k, the reduction of their partials, and the functor of the epilogue --------------------------------*/

/* Where the partials begin in a scratch. */
static const size_t partials_begin = GK__STATE_BYTES + GK__REDUCE_BYTES;

TEST(thin_products) {
  for (size_t few : {1u, 2u, 4u, 5u})
    for (size_t many : {1u, 31u, 33u, 70u})
      for (size_t k : {127u, 128u, 130u, 511u, 1500u})
        for (int trans = 0; trans < 4; trans++) {
          problem p = problem_of(trans & 1 ? few : many, trans & 1 ? many : few, k);
          p.trans_a = trans & 1, p.trans_b = trans >> 1;
          p.shift = k % 3, p.pad_b = k % 4, p.batch = k % 2 + 1, p.beta = k % 2 ? 0.5 : 0;
          check<float, float>(p, {GK_PLAN_AUTO, GK__PLAN_TILE_64});
          if (trans == 2) check<double, double>(p, {GK_PLAN_AUTO});
          if (trans == 1) check<__half, float>(p, {GK_PLAN_AUTO});
          if (trans == 3) check<__nv_bfloat16, __nv_bfloat16>(p, {GK_PLAN_AUTO});
          if (trans == 0) check<__nv_bfloat16, float>(p, {GK_PLAN_AUTO});
        }
}
/* Columns in whole runs, some of a last block, and one slice of more rounds than the ring has stages. */
TEST(thin_products_in_whole_runs) {
  for (size_t few : {1u, 3u, 4u})
    for (int trans = 0; trans < 4; trans++) {
      const size_t wide = few == 1 && trans % 3 == 0 ? 6408 : 136;
      problem p = problem_of(trans & 1 ? few : wide, trans & 1 ? wide : few, wide > 1000 ? 1028 : 2052);
      p.trans_a = trans & 1, p.trans_b = trans >> 1;
      check<float, float>(p, {GK_PLAN_AUTO});
      check<__half, float>(p, {GK_PLAN_AUTO});
      if (wide < 1000) check<double, double>(p, {GK_PLAN_AUTO});
    }
}

/* A product whose k is split, as often as asked for; the same with any scratch, and none. */
struct sliced {
  problem p;
  std::vector<float> a, b, expected;
  explicit sliced(size_t m = 40, size_t n = 50, size_t k = 900, size_t batch = 3) : p(problem_of(m, n, k)) {
    p.batch = batch;
    a = random_elements<float>(31, batch * m * k), b = random_elements<float>(32, batch * k * n);
    expected.resize(batch * m * n);
    multiply_plainly(p, a, b, expected);
    EXPECT(gk__plan_split_k<float>(m, n, k).partitions > 1);
  }
  /* Of a scratch that serves one product of the batch at a time. */
  size_t scratch_bytes() const {
    float *const any = reinterpret_cast<float *>(256), *const out = reinterpret_cast<float *>(512);
    gk_matmul_opts opts = gk_matmul_opts();
    gk_matmul_path path;
    opts.plan = GK__PLAN_TILE_64_128;
    EXPECT_OK(gk_matmul_plan(any, any, out, p.m, p.n, p.k, &opts, &path));
    EXPECT(path.scratch_bytes > gk_reduce_scratch_bytes());
    return path.scratch_bytes;
  }
  void run(gk_scratch *scratch, gk_plan plan = GK__PLAN_TILE_64_128) const {
    device_array<float> device_a(a), device_b(b), c(expected.size());
    gk_matmul_opts opts = gk_matmul_opts();
    opts.batch = p.batch, opts.stride_a = p.stride_a(), opts.stride_b = p.stride_b();
    opts.scratch = scratch, opts.plan = plan;
    EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, c.ptr, p.m, p.n, p.k, &opts));
    EXPECT_SAME(c.get(), expected, "plan %d", static_cast<int>(plan));
  }
};
TEST(partials_in_any_scratch) {
  const sliced tiles, thin(3, 40, 3000);
  const size_t one = tiles.scratch_bytes(), of_thin = thin.scratch_bytes();
  test_scratch just_one(one), larger(4 * (one > of_thin ? one : of_thin));
  tiles.run(NULL);
  thin.run(NULL);
  tiles.run(&just_one); /* the products of the batch one after the other */
  tiles.run(&larger);
  thin.run(&larger);
  for (gk_plan plan : {GK__PLAN_TILE_32, GK__PLAN_TILE_64, GK__PLAN_TILE_64_128, GK__PLAN_TILE_32_64,
                       GK__PLAN_HOPPER_128, GK__PLAN_HOPPER_64_128, GK__PLAN_HOPPER_128_64})
    tiles.run(&just_one, plan);
}
/* One size of a scratch serves every product on any GPU: the partials of each split fit, or are some at a time. */
TEST(partials_fit_a_scratch_of_one_size) {
  EXPECT_EQ(gk_matmul_scratch_bytes(), partials_begin + GK__PARTIALS_BYTES);
  EXPECT(gk_matmul_scratch_bytes() <= (size_t(64) << 20) + (size_t(33) << 10)); /* as the header says */
  for (uint64_t i = 0; i < 3000; i++) {
    const auto size = [&](uint64_t of) {
      return static_cast<size_t>(std::exp2(uniform(55, 10 * i + of, 0, i % 2 ? 1300 : 2200) / 100.0));
    };
    const size_t m = size(0), n = size(1), k = size(2);
    const gk__split_k single = gk__plan_split_k<float>(m, n, k), twice = gk__plan_split_k<double>(m, n, k);
    for (const gk__split_k &order : {single, twice}) {
      const size_t depth = static_cast<size_t>(order.depth), quantum = order.thin ? 128 : 16;
      EXPECT(order.partitions >= 1 && depth % quantum == 0);
      EXPECT(depth * order.partitions >= k && depth * (order.partitions - 1) < k); /* none is empty */
    }
    EXPECT(single.thin || gk__partials_fit<float>(m, n, single.partitions));
    EXPECT(twice.thin || gk__partials_fit<double>(m, n, twice.partitions));
  }
}
/* k past 2^30 is cut into so many partitions that the tiles may have to be made some at a time. */
template <class T> static void plan_very_long_k() {
  T *const a = reinterpret_cast<T *>(256), *const c = reinterpret_cast<T *>(512);
  for (size_t edge : {size_t(4), size_t(100), size_t(5000)})
    for (size_t k : {(size_t(1) << 30) + 1, size_t(3) << 30, size_t(1) << 34})
      for (size_t max_blocks : {size_t(0), size_t(1), size_t(7)}) {
        gk_matmul_opts opts = gk_matmul_opts();
        gk_matmul_path path;
        opts.max_blocks = max_blocks;
        const gk__split_k order = gk__plan_split_k<T>(edge, edge + 1, k);
        EXPECT(order.partitions >= gk_ceil_div(k, size_t(1) << 30) && order.depth > 0);
        EXPECT(order.partitions * static_cast<size_t>(order.depth) >= k);
        EXPECT_OK(gk_matmul_plan(a, a, c, edge, edge + 1, k, &opts, &path));
        EXPECT(path.scratch_bytes <= gk_matmul_scratch_bytes());
        EXPECT(path.scratch_bytes == 0 || path.scratch_bytes > gk_reduce_scratch_bytes());
        if (k == size_t(1) << 34) EXPECT(path.scratch_bytes > 0); /* more partitions than a block has groups */
      }
}
TEST(partials_of_very_long_k) {
  plan_very_long_k<float>();
  plan_very_long_k<double>();
}

/* A functor of the epilogue that is not linear, and not the same anywhere else. */
struct by_place {
  template <class Acc> __host__ __device__ Acc operator()(Acc value, size_t row, size_t col) const {
    return value * 2 + static_cast<Acc>(row) - static_cast<Acc>(col);
  }
};
static as_it_is on_host(gk__identity) { return as_it_is(); }
static by_place on_host(by_place func) { return func; }

/* A product by a given split, or by the planner's, with a functor in its epilogue. */
template <class T, class O, class Func> struct product_by_order {
  typedef acc_type<T> Acc;
  problem p;
  gk__split_k order;
  std::vector<O> before, expected;
  device_array<T> a, b;
  device_array<O> c;
  gk__matmul_args<T, O, Acc, Func> args;
  static size_t size_a(const problem &p) { return p.size(p.rows_a(), p.cols_a(), p.lda(), p.stride_a()); }
  static size_t size_b(const problem &p) { return p.size(p.rows_b(), p.cols_b(), p.ldb(), p.stride_b()); }
  explicit product_by_order(const problem &of) : product_by_order(of, gk__plan_split_k<Acc>(of.m, of.n, of.k)) {}
  product_by_order(const problem &of, const gk__split_k &split)
      : p(of), order(split), before(random_elements<O>(13, p.size(p.m, p.n, p.ldc(), p.stride_c()))), expected(before),
        a(random_elements<T>(11, size_a(p)), p.shift), b(random_elements<T>(12, size_b(p)), p.shift),
        c(before, p.shift), args() {
    multiply_plainly(p, a.get(), b.get(), expected, order, on_host(Func()));
    args.a = a.ptr, args.b = b.ptr, args.c = c.ptr, args.m = p.m, args.n = p.n, args.k = p.k;
    args.lda = p.lda(), args.ldb = p.ldb(), args.ldc = p.ldc();
    args.stride_a = p.stride_a(), args.stride_b = p.stride_b(), args.stride_c = p.stride_c();
    args.batch = p.batches(), args.trans_a = p.trans_a != 0, args.trans_b = p.trans_b != 0;
    args.alpha = static_cast<Acc>(p.alpha), args.beta = static_cast<Acc>(p.beta);
  }
  size_t partial_bytes() const {
    gk__matmul_args<T, O, Acc, Func> with_split = args;
    with_split.partitions = order.partitions;
    return with_split.partial_bytes();
  }
  /* Least bytes of a scratch for it. */
  size_t least_bytes(gk_plan plan, size_t max_blocks) {
    gk__partials partials = gk__partials();
    args.max_blocks = max_blocks;
    EXPECT_OK(gk__measure_partials(args, order, plan, &partials));
    return partials.least;
  }
  cudaError_t launch(gk_plan plan, const gk_scratch *scratch, size_t max_blocks) {
    args.max_blocks = max_blocks;
    if (gk__same_split_k(order, gk__plan_split_k<Acc>(p.m, p.n, p.k))) return gk__matmul_strict(args, plan, scratch, 0);
    return gk__matmul_with_split_k(args, order, plan, scratch, 0);
  }
  void check(gk_plan plan, const gk_scratch *scratch = NULL, size_t max_blocks = 0) {
    if ((on_cpu && gk__is_hopper_plan(plan)) || test_leaves_out<product_by_order>()) return;
    c.set(before);
    EXPECT_OK(launch(plan, scratch, max_blocks));
    EXPECT_SAME(c.get(), expected, "%u partitions, plan %d, %s scratch, max_blocks %zu, %s", order.partitions,
                static_cast<int>(plan), scratch ? "a" : "no", max_blocks, p.text().c_str());
  }
  /* With a scratch of a caller's that has room for so many products, and slots that other calls have used. */
  void check_scratch(gk_plan plan, size_t products, size_t max_blocks = 0) {
    const size_t bytes = products * partial_bytes();
    if (bytes == 0) return;
    test_scratch scratch(partials_begin + bytes);
    scratch.set_tags(5);
    check(plan, &scratch, max_blocks);
    EXPECT_EQ(scratch.bytes_not_zero(partials_begin, bytes), size_t(0));
    EXPECT_EQ(scratch.scan_tags(), 5u);
    EXPECT_EQ(scratch.reduce_tags(), 5u);
  }
  /* A byte less than it needs is refused before anything is written. */
  void check_refusal(gk_plan plan, size_t max_blocks) {
    const size_t least = least_bytes(plan, max_blocks);
    if (least == 0) return; /* reduced inside of blocks */
    test_scratch scratch(partials_begin + least);
    c.set(before);
    scratch.bytes--;
    EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul: the scratch has", launch(plan, &scratch, max_blocks));
    EXPECT_SAME(c.get(), before, "refused");
    scratch.bytes++;
    check(plan, &scratch, max_blocks);
    EXPECT_EQ(scratch.bytes_not_zero(partials_begin, least), size_t(0));
  }
  void check_all(gk_plan plan) {
    check(plan);
    check_scratch(plan, 1);
    if (p.batches() > 2) check_scratch(plan, 2);
    check_scratch(plan, p.batches(), 7);
    check(plan, NULL, 1);
    check_refusal(plan, order.partitions % 2 ? 0 : 7);
  }
};
static const unsigned partition_counts[] = {2, 3, 9, 17};
/* Of tiles, with odd rows of C and partials or not. The last partition is shorter. */
template <class T, class O, class Func>
static void check_split_tiles(size_t m, size_t n, std::initializer_list<gk_plan> plans) {
  for (int i = 0; i < 4; i++) {
    const unsigned partitions = partition_counts[i];
    problem p = problem_of(m, n + static_cast<size_t>(i % 2), 16 * partitions - (i == 2 ? 0 : 5));
    p.trans_a = i & 1, p.trans_b = i >> 1, p.alpha = -0.5, p.beta = i == 1 ? 0 : 2.25;
    p.batch = i == 3 ? 0 : 3, p.one_b = i == 2, p.pad_c = static_cast<size_t>(i), p.gap_c = i == 1 ? 5 : 0;
    product_by_order<T, O, Func> product(p, {0, partitions, 16});
    for (gk_plan plan : plans) product.check_all(plan);
  }
}
TEST(split_tiles_of_floats) {
  check_split_tiles<float, float, gk__identity>(
      69, 134, {GK__PLAN_TILE_64_128, GK__PLAN_HOPPER_128, GK__PLAN_HOPPER_64_128, GK__PLAN_HOPPER_128_64});
  check_split_tiles<float, float, by_place>(
      41, 66, {GK_PLAN_AUTO, GK__PLAN_TILE_32, GK__PLAN_TILE_64, GK__PLAN_TILE_64_128, GK__PLAN_HOPPER_128});
}
TEST(split_tiles_of_doubles) {
  check_split_tiles<double, double, by_place>(35, 66, {GK__PLAN_TILE_32_64, GK__PLAN_TILE_64, GK__PLAN_TILE_64_128});
}
TEST(split_tiles_of_halves) {
  check_split_tiles<__half, __half, gk__identity>(33, 65, {GK__PLAN_TILE_32, GK__PLAN_TILE_64_128});
}
/* Thin products of few rows, and of few columns. */
template <class T, class O, class Func> static void check_split_thin() {
  for (int i = 0; i < 8; i++) {
    const unsigned partitions = partition_counts[i / 2];
    const size_t few = 1 + static_cast<size_t>(i) % 4, many = partitions > 9 ? 37 : 101;
    problem p = i % 2 ? problem_of(few, many, 128 * partitions - 37) : problem_of(many, few, 128 * partitions - 37);
    p.trans_a = i / 2 % 2, p.trans_b = i / 4, p.alpha = -0.5, p.beta = i % 3 ? 0 : 2.25;
    p.batch = partitions > 9 ? 0 : 3, p.pad_c = i % 3 == 2 ? 2 : 0;
    product_by_order<T, O, Func> product(p, {1, partitions, 128});
    product.check_all(GK_PLAN_AUTO);
  }
}
TEST(split_thin_products_of_floats) { check_split_thin<float, float, by_place>(); }
TEST(split_thin_products_of_doubles) { check_split_thin<double, double, by_place>(); }
TEST(split_thin_products_of_halves) { check_split_thin<__half, __half, gk__identity>(); }

/* The functor is applied once, with rows and columns of all of C, by every kernel whose k is not split; and where the
 * planner splits it. */
template <class T> static void check_functor(const problem &p, std::initializer_list<gk_plan> plans) {
  product_by_order<T, T, by_place> product(p);
  for (gk_plan plan : plans)
    for (size_t max_blocks : {0u, 1u, 7u}) product.check(plan, NULL, max_blocks);
}
TEST(functor_of_the_epilogue) {
  const gk__split_k whole = {0, 1, 48};
  EXPECT(gk__same_split_k(gk__plan_split_k<float>(141, 67, 40), whole));
  for (int i = 0; i < 4; i++) { /* the kernel of small products where neither operand is transposed */
    problem p = problem_of(141, i % 2 ? 67 : 68, 40);
    p.trans_a = i & 1, p.trans_b = i >> 1, p.alpha = -0.5, p.beta = i ? 0.5 : 0, p.batch = i == 3 ? 2 : 0;
    check_functor<float>(p, {GK_PLAN_AUTO, GK__PLAN_TILE_32, GK__PLAN_TILE_64, GK__PLAN_TILE_64_128,
                             GK__PLAN_HOPPER_128, GK__PLAN_HOPPER_64_128, GK__PLAN_HOPPER_128_64});
    check_functor<double>(p, {GK__PLAN_TILE_32_64, GK__PLAN_TILE_64, GK__PLAN_TILE_64_128});
  }
  problem p = problem_of(128, 60, 24); /* a batch for warps */
  p.batch = 11, p.beta = 0.5;
  check_functor<float>(p, {GK_PLAN_AUTO, GK__PLAN_TILE_64});
  p.n = 128, p.beta = 0; /* of whole tiles */
  check_functor<float>(p, {GK_PLAN_AUTO});
  for (size_t k : {130u, 1500u}) {
    p = problem_of(3, 150, k);
    check_functor<float>(p, {GK_PLAN_AUTO});
    p = problem_of(150, 2, k);
    p.beta = 0.5;
    check_functor<double>(p, {GK_PLAN_AUTO});
  }
  p = problem_of(40, 50, 900);
  check_functor<float>(p, {GK_PLAN_AUTO, GK__PLAN_TILE_64});
  p = problem_of(5, 6, 0); /* what it is applied to is beta C */
  p.beta = 0.5;
  check_functor<float>(p, {GK_PLAN_AUTO});
}

/* Partials are added in the order of the partitions, -0 included, whatever their number; in memory of the call's own
 * they stay, and elements that pad their rows are not looked at. */
TEST(partials_are_reduced_in_their_order) {
  const size_t m = 5, n = 7, ld = gk__partial_ld(n), batch = 2;
  EXPECT_EQ(ld, size_t(8));
  EXPECT_EQ(gk__partial_ld(8), size_t(8));
  for (unsigned partitions : {1u, 2u, 3u, 7u, 8u, 9u, 16u, 17u, 32u, 33u})
    for (bool clears : {false, true}) {
      std::vector<float> host = random_elements<float>(17, batch * partitions * m * ld);
      std::vector<float> expected(batch * m * n, -0.0f);
      for (size_t i = 0; i < host.size(); i++) {
        if (i % ld >= n) host[i] = NAN;
        if (i % (m * ld) == 0) host[i] = -0.0f;
      }
      for (size_t q = 0; q < batch; q++)
        for (size_t i = 0; i < m * n; i++)
          for (size_t s = 0; s < partitions; s++) {
            const float x = host[((q * partitions + s) * m + i / n) * ld + i % n];
            float &sum = expected[q * m * n + i];
            sum = s == 0 ? x : sum + x;
          }
      device_array<float> partials(host), c(batch * m * n);
      gk__matmul_output<float, float, gk__identity> output = gk__matmul_output<float, float, gk__identity>();
      output.c = c.ptr, output.m = m, output.n = output.ldc = n, output.stride_c = m * n, output.batch = batch;
      output.alpha = 1, output.partitions = partitions, output.partials = partials.ptr;
      output.max_blocks = partitions % 2;
      gk_scratch scratch = gk_scratch();
      EXPECT_OK(gk__reduce_partials(output, gk__partials_of(clears ? &scratch : NULL, 0)));
      EXPECT_SAME(c.get(), expected, "%u partitions", partitions);
      EXPECT_SAME(partials.get(), clears ? std::vector<float>(host.size(), 0.0f) : host, "partials");
    }
}
TEST(a_small_scratch_is_an_error_that_changes_nothing) {
  device_array<float> a(std::vector<float>(40 * 900, 1.0f)), b(std::vector<float>(900 * 50, 1.0f)), c(40 * 50);
  test_scratch scratch(gk_reduce_scratch_bytes() + 1000);
  gk_matmul_opts opts = gk_matmul_opts();
  gk_matmul_path path;
  opts.scratch = &scratch, opts.plan = GK__PLAN_TILE_64_128;
  EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, 40, 50, 900, &opts, &path));
  EXPECT_ERROR(cudaErrorInvalidValue,
               ("the scratch has " + std::to_string(scratch.bytes) + " bytes, but " +
                std::to_string(path.scratch_bytes) + " are needed")
                   .c_str(),
               gk_matmul_ex(a.ptr, b.ptr, c.ptr, 40, 50, 900, &opts));
  EXPECT(c.untouched());
}
TEST(a_scratch_off_its_alignment) {
  device_array<float> x(std::vector<float>(64, 1.0f)), c(64);
  test_scratch whole(gk_reduce_scratch_bytes() + 64);
  gk_scratch askew = whole;
  askew.ptr = static_cast<char *>(askew.ptr) + 4, askew.bytes -= 64;
  gk_matmul_opts opts = gk_matmul_opts();
  opts.scratch = &askew;
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul: the scratch's memory is not aligned to 16 bytes",
               gk_matmul_ex(x.ptr, x.ptr, c.ptr, 8, 8, 8, &opts));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_reduce: the scratch's memory is not aligned to 16 bytes",
               gk_reduce_sum(x.ptr, c.ptr, 64, 0, &askew));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_scan_inclusive: the scratch's memory is not aligned to 16 bytes",
               gk_scan_inclusive(x.ptr, c.ptr, 64, gk_op_sum(), 0, &askew));
  EXPECT(c.untouched());
}
/* Scans and reduces look for their tags where the partials were: so these are 0 again, also if they look like tags. */
TEST(a_scratch_shared_with_scans_and_reduces) {
  const sliced tiles, thin(3, 40, 3000, 2);
  const size_t n = 50000;
  const std::vector<unsigned> ones(n, 1);
  device_array<unsigned> in(ones), out(n), sum(1);
  test_scratch scratch(gk_matmul_scratch_bytes());
  float looks_like_a_tag;
  for (unsigned i = 0; i < 3; i++) {
    tiles.run(&scratch);
    thin.run(&scratch);
    EXPECT_OK(gk_scan_inclusive(in.ptr, out.ptr, n, gk_op_sum(), 0, &scratch));
    EXPECT_EQ(out.get()[n - 1], static_cast<unsigned>(n));
    EXPECT_OK(gk_reduce_sum(in.ptr, sum.ptr, n, 0, &scratch));
    EXPECT_EQ(sum.first(), static_cast<unsigned>(n));
    const unsigned tag = scratch.scan_tags() + 1;
    memcpy(&looks_like_a_tag, &tag, sizeof(tag));
    const size_t k = 1024; /* each partial is this number, of a row of A that is 0 but for the starts of partitions */
    const gk__split_k order = gk__plan_split_k<float>(1, 160, k);
    EXPECT(order.thin && order.partitions > 1);
    std::vector<float> a(k, 0.0f), b(k * 160, looks_like_a_tag);
    for (size_t l = 0; l < k; l += static_cast<size_t>(order.depth)) a[l] = 1;
    device_array<float> device_a(a), device_b(b), c(160);
    gk_matmul_opts opts = gk_matmul_opts();
    opts.scratch = &scratch;
    EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, c.ptr, 1, 160, k, &opts));
    EXPECT_OK(gk_scan_inclusive(in.ptr, out.ptr, n, gk_op_sum(), 0, &scratch));
    EXPECT_EQ(out.get()[n - 1], static_cast<unsigned>(n));
  }
  EXPECT_EQ(scratch.scan_tags(), 6u); /* products take none */
}
/* Slots that were used hold anything, and so does memory that a call takes for itself. */
TEST(partials_begin_where_anything_is) {
  const sliced tiles;
  const size_t bytes = tiles.scratch_bytes();
  test_scratch scratch(bytes);
  scratch.fill_slots(partials_begin, bytes - partials_begin);
  tiles.run(&scratch);
  EXPECT_EQ(scratch.bytes_not_zero(partials_begin, (bytes - partials_begin) / 16 * 16), size_t(0));
  for (int i = 0; i < 2; i++) {
    void *memory = NULL;
    EXPECT_OK(cudaMallocAsync(&memory, 3 * bytes, 0));
    EXPECT_OK(cudaMemsetAsync(memory, 0xff, 3 * bytes, 0));
    EXPECT_OK(cudaFreeAsync(memory, 0));
    tiles.run(NULL);
  }
}
TEST(a_hundred_runs) {
  const sliced tiles(70, 60, 700, 1);
  test_scratch scratch(tiles.scratch_bytes());
  const int runs = on_cpu ? 24 : test_slowed() ? 12 : 100; /* less is left to chance there */
  for (int i = 0; i < runs; i++) tiles.run(&scratch, static_cast<gk_plan>(i % 6));
}
TEST(a_product_without_a_scratch_loses_no_memory) {
  const sliced tiles;
  const uint64_t before = pool_bytes();
  for (int i = 0; i < 3; i++) tiles.run(NULL);
  EXPECT_EQ(pool_bytes(), before);
}

/* --- values ---------------------------------------------------------------------------------------------------------*/

TEST(nan_and_infinity_spread_as_they_should) {
  const problem p = problem_of(70, 70, 37);
  std::vector<float> a = random_elements<float>(11, 70 * 37), b = random_elements<float>(12, 37 * 70);
  a[3 * 37 + 36] = NAN;        /* row 3 */
  b[36 * 70 + 5] = HUGE_VALF;  /* column 5 */
  a[9 * 37 + 36] = 0;          /* meets the infinity: NaN at (9, 5) */
  a[20 * 37 + 1] = -HUGE_VALF; /* row 20 */
  b[69] = 0, a[69 * 37] = NAN; /* the last column, the last row */
  for (size_t l = 0; l < 37; l++) a[30 * 37 + l] = -0.0f;
  check_elements<float, float>(p, a, b, {GK__PLAN_TILE_32, GK__PLAN_TILE_64, GK__PLAN_TILE_64_128});
}

/* A product too small for any number is a zero with its sign, which padding must not touch. */
TEST(a_sum_of_minus_zero_stays) {
  const size_t k = 5;
  check_elements<float, float>(problem_of(33, 33, k), std::vector<float>(33 * k, 1e-30f),
                               std::vector<float>(33 * k, -1e-30f),
                               {GK__PLAN_TILE_32, GK__PLAN_TILE_64, GK__PLAN_TILE_64_128});
  const size_t edge = 257, deep = 21; /* for Hopper's kernels, too; and partials that are all -0 */
  for (size_t long_k : {deep, size_t(3000)}) {
    const size_t few = long_k == deep ? edge : 3;
    EXPECT(long_k == deep || gk__plan_split_k<float>(few, edge, long_k).partitions > 1);
    check_elements<float, float>(problem_of(few, edge, long_k), std::vector<float>(few * long_k, 1e-30f),
                                 std::vector<float>(long_k * edge, -1e-30f),
                                 {GK_PLAN_AUTO, GK__PLAN_HOPPER_128, GK__PLAN_HOPPER_64_128});
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

/* The easy call, every element of whose result is exact. */
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
  multiply_plainly(p, a, b, expected);
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

/* --- the plan -------------------------------------------------------------------------------------------------------*/

/* A user may ask for strict kernels. */
TEST(simt_is_strict) {
  const size_t n = 96;
  const std::vector<float> host = random_elements<float>(61, n * n);
  device_array<float> a(host), c(n * n), strict(n * n);
  gk_matmul_opts opts = gk_matmul_opts();
  gk_matmul_path path;
  opts.plan = GK_PLAN_SIMT;
  EXPECT_OK(gk_matmul(a.ptr, a.ptr, strict.ptr, n, n, n));
  EXPECT_OK(gk_matmul_ex(a.ptr, a.ptr, c.ptr, n, n, n, &opts));
  EXPECT_SAME(c.get(), strict.get(), "float");
  device_array<__half> half_a(random_elements<__half>(62, n * n)), half_c(n * n), half_strict(n * n);
  EXPECT_OK(gk_matmul_plan(half_a.ptr, half_a.ptr, half_c.ptr, n, n, n, &opts, &path));
  EXPECT_EQ(static_cast<int>(path.precision), static_cast<int>(GK_PRECISION_STRICT));
  EXPECT_OK(gk_matmul_ex(half_a.ptr, half_a.ptr, half_c.ptr, n, n, n, &opts));
  opts.plan = GK_PLAN_AUTO, opts.precision = GK_PRECISION_STRICT;
  EXPECT_OK(gk_matmul_ex(half_a.ptr, half_a.ptr, half_strict.ptr, n, n, n, &opts));
  EXPECT_SAME(half_c.get(), half_strict.get(), "half");
  opts.plan = GK_PLAN_SIMT, opts.precision = GK_PRECISION_TF32;
  c.clear();
  EXPECT_ERROR(cudaErrorInvalidValue, "this plan is one of strict products",
               gk_matmul_ex(a.ptr, a.ptr, c.ptr, n, n, n, &opts));
  EXPECT(c.untouched());
}
/* Raster order reaches each tile once. */
TEST(raster_order) {
  for (unsigned rows = 1; rows < 20; rows++)
    for (unsigned cols = 1; cols < 12; cols++) {
      std::vector<int> times(rows * cols, 0);
      for (unsigned i = 0; i < rows * cols; i++) {
        const gk__raster_tile tile(i, rows, cols);
        EXPECT(tile.row_idx < rows && tile.col_idx < cols);
        if (tile.row_idx < rows && tile.col_idx < cols) times[tile.row_idx * cols + tile.col_idx]++;
      }
      EXPECT(times == std::vector<int>(rows * cols, 1));
    }
  const unsigned most = 0x7fffffff;
  for (unsigned rows : {1u, 2u, 3u, 7u, 8u, 9u, 1000u, most}) {
    const unsigned cols = most / rows;
    const gk__raster_tile last(rows * cols - 1, rows, cols), first(0, rows, cols);
    EXPECT(first.row_idx == 0 && first.col_idx == 0 && last.row_idx == rows - 1 && last.col_idx == cols - 1);
  }
}
/* How k is split decides the bits: so it must not change by accident. A failure tells the rows as they would be now. */
TEST(order_of_the_sums) {
  static const struct {
    size_t m, n, k;
    int thin;
    unsigned floats, doubles; /* partitions */
  } table[] = {
      {5, 5, 0, 0, 1, 1},           {3, 5, 127, 0, 1, 4},        {1, 8192, 8192, 1, 1, 1},
      {4, 4, 1048576, 1, 256, 256}, {4096, 4096, 4096, 0, 1, 1}, {128, 128, 128, 0, 1, 8},
      {255, 255, 255, 0, 4, 8},     {512, 512, 512, 0, 4, 4},    {640, 640, 640, 0, 5, 2},
      {768, 768, 768, 0, 5, 3},     {1000, 1000, 1000, 0, 3, 1}, {1024, 1024, 1024, 0, 3, 1},
      {64, 8192, 8192, 0, 6, 2},    {2047, 333, 5001, 0, 4, 4},  {858, 4921, 2132, 0, 3, 1},
      {2500, 2499, 2500, 0, 2, 1},  {40, 50, 900, 0, 15, 29},    {16, 16, 100000, 0, 32, 31},
  };
  std::string changed;
  for (const auto &e : table) {
    const gk__split_k single = gk__plan_split_k<float>(e.m, e.n, e.k), twice = gk__plan_split_k<double>(e.m, e.n, e.k);
    for (const gk__split_k &order : {single, twice}) {
      EXPECT((size_t)order.depth * order.partitions >= e.k);
      EXPECT(e.k == 0 || (size_t)order.depth * (order.partitions - 1) < e.k);
    }
    EXPECT_EQ(twice.thin, single.thin);
    if (single.thin != e.thin || single.partitions != e.floats || twice.partitions != e.doubles)
      changed +=
          sentence("\n{%zu, %zu, %zu, %d, %u, %u},", e.m, e.n, e.k, single.thin, single.partitions, twice.partitions);
  }
  if (!changed.empty()) test_fail(__FILE__, __LINE__, "other splits:" + changed);
}
TEST(order_of_the_sums_asked_for_again) {
  for (int turn = 0; turn < 2; turn++) /* more than it keeps, and each twice at once */
    for (size_t i = 0; i < 400; i++) {
      const auto edge = [i](uint64_t seed) { return static_cast<size_t>(uniform(seed, i, 0, 3000)); };
      const size_t m = edge(51), n = edge(52), k = edge(53);
      const gk__split_k order = gk__plan_split_k<float>(m, n, k), twice = gk__plan_split_k<double>(m, n, k);
      for (int again = 0; again < 2; again++) {
        EXPECT(gk__same_split_k(gk__cached_split_k<float>(m, n, k), order));
        EXPECT(gk__same_split_k(gk__cached_split_k<double>(m, n, k), twice));
        EXPECT(gk__same_split_k(gk__cached_split_k<float>(m, n, k + 64), gk__plan_split_k<float>(m, n, k + 64)));
        for (int way = 0; way < 4; way++) { /* and what tile */
          const bool hopper = way & 1, unaligned = way >> 1;
          const gk__tile_facts tile =
                                   gk__cached_tile_plan<float>(order, m, n, k, 1, 132, hopper, GK_PLAN_AUTO, unaligned),
                               is = gk__plan_tile<float>(order, m, n, k, 1, 132, hopper, GK_PLAN_AUTO, unaligned);
          EXPECT(tile.plan == is.plan && tile.room == is.room && tile.hopper == is.hopper);
        }
      }
    }
}
/* What the estimate is for: more work takes longer, and the rest of a wave as long as its partitions. */
TEST(estimates_of_blocks) {
  for (int i = 0; i < gk__tiles<float>::item_count; i++) {
    const gk__tile_facts tile = gk__tiles<float>::facts(i);
    if (!tile.hopper) continue;
    unsigned long long before = 0;
    for (size_t tiles = 1; tiles < 2000; tiles += 33) {
      const unsigned long long clocks = gk__hopper_clocks(tile, tiles, 1, 1008, 1000, 132);
      EXPECT(clocks + clocks / 20 >= before);
      before = clocks;
    }
    EXPECT(gk__hopper_clocks(tile, 264, 1, 2000, 2000, 132) > gk__hopper_clocks(tile, 264, 1, 1008, 1000, 132));
    /* Some more than find room at once. */
    EXPECT(gk__hopper_clocks(tile, 16, 17, 304, 136, 132) < gk__hopper_clocks(tile, 16, 17, 304, 304, 132));
  }
}
/* ... and to reduce partials takes longer the more of them there are; where k is whole there is nothing to reduce. */
TEST(estimates_of_reductions) {
  const gk__reduce_costs costs = gk__measured_reduce_costs();
  EXPECT_EQ(gk__reduction_clocks(costs, 1000, 1000, 3, 1, 4), 0ull);
  unsigned long long before = 0;
  for (unsigned partitions = 2; partitions <= GK__MATMUL_PARTITIONS; partitions++) {
    const unsigned long long clocks = gk__reduction_clocks(costs, 1000, 1000, 1, partitions, 4);
    EXPECT(clocks > before);
    EXPECT(gk__reduction_clocks(costs, 1000, 1000, 2, partitions, 4) > clocks);
    EXPECT(gk__reduction_clocks(costs, 1000, 1000, 1, partitions, 8) > clocks);
    before = clocks;
  }
  /* What the groups of a block add up costs no second kernel. */
  const gk__tile_facts square = gk__tiles<float>::facts(gk__tiles<float>::item_count - 1);
  const auto whole = [&](unsigned partitions) {
    return gk__clocks<float>(square, 64, 64, 640, 1, partitions, 640 / partitions, 132, false) -
           gk__tiles<float>::kernel_clocks(square, 64, 64, 640, 1, partitions, 640 / partitions, 132, false);
  };
  EXPECT_EQ(whole(square.groups), 0ull);
  EXPECT(whole(square.groups + 1) > 0);
}
TEST(planner_fills_the_device) {
  const gk__split_k plain = {0, 1, 4096};
  const auto plan_of = [&](size_t edge, bool engine, gk_plan wanted) {
    return (int)gk__plan_tile<float>(plain, edge, edge, 4096, 1, 132, engine, wanted).plan;
  };
  EXPECT_EQ(plan_of(4096, false, GK_PLAN_AUTO), (int)GK__PLAN_TILE_64_128);
  EXPECT_EQ(plan_of(4096, true, GK_PLAN_AUTO), (int)GK__PLAN_HOPPER_128);
  EXPECT_EQ(plan_of(100, true, GK_PLAN_AUTO), (int)GK__PLAN_TILE_32);
  EXPECT_EQ(plan_of(100, true, GK__PLAN_TILE_64), (int)GK__PLAN_TILE_64);
  EXPECT_EQ(plan_of(100, true, GK__PLAN_HOPPER_128), (int)GK__PLAN_HOPPER_128);
  EXPECT_EQ(plan_of(100, false, GK__PLAN_HOPPER_128), (int)GK__PLAN_TILE_64_128); /* there is none */
  EXPECT_EQ(plan_of(100, true, GK__PLAN_HOPPER_64_128), (int)GK__PLAN_HOPPER_64_128);
  EXPECT_EQ(plan_of(100, false, GK__PLAN_HOPPER_64_128), (int)GK__PLAN_TILE_64_128);
  EXPECT_EQ(plan_of(100, true, GK__PLAN_HOPPER_128_64), (int)GK__PLAN_HOPPER_128_64);
  EXPECT_EQ(plan_of(100, false, GK__PLAN_HOPPER_128_64), (int)GK__PLAN_TILE_64_128);
  EXPECT_EQ((int)gk__plan_tile<double>(plain, 100, 100, 4096, 1, 132, false, GK__PLAN_TILE_32).plan,
            (int)GK__PLAN_TILE_32_64);
}

/* --- errors ---------------------------------------------------------------------------------------------------------*/

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
       "the leading dimension of A is 39, but its stored rows have 40, for which 0 stands"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &ldb, "the leading dimension of B is 29, but its stored rows have 30"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &ldc, "the leading dimension of C is 29, but its stored rows have 30"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &trans, "the leading dimension of A is 19, but its stored rows have 20"},
      {a.ptr, b.ptr, c.ptr, size_t(1) << 40, n, size_t(1) << 40, NULL, "gk_matmul: A, 1 times 1099511627776 x"},
      {a.ptr, b.ptr, c.ptr, 1, size_t(1) << 40, size_t(1) << 40, NULL, "is more than memory can address"},
      {a.ptr, b.ptr, c.ptr, size_t(1) << 40, size_t(1) << 40, 1, NULL, "gk_matmul: C, 1 times"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &batch, "gk_matmul: A, 3 times 20 x 40, is more than memory can address"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &stride_c,
       "stride_c is 599, but each C takes 600 elements; 0 puts one after the other"},
      {c.ptr, b.ptr, c.ptr, m, n, n, NULL, "C is the same memory as A"},
      {a.ptr, c.ptr, c.ptr, m, n, m, NULL, "C is the same memory as B"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &plan, "gk_matmul: plan 77 is none of gk_plan"},
      {a.ptr, b.ptr, c.ptr, m, n, k, &precision, "gk_matmul: precision 77 is none of gk_precision"},
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

/* --- streams, threads, graphs ---------------------------------------------------------------------------------------*/

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
    multiply_plainly(p, a[t], b, expected[t]);
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

/* --- the building blocks, as the header's comment has them ----------------------------------------------------------*/

template <int BM, int BN, int BK, int TM, int TN, class S, class T>
__global__ void my_matmul(const T *a, const T *b, S *c, size_t m, size_t n, size_t k, bool transposed, S beta) {
  __shared__ __align__(16) S as[BK][BM + 4], bs[BK][BN + 4];
  gk_tile<S, BM, BN, TM, TN> acc;
  const size_t row = BM * static_cast<size_t>(blockIdx.y), col = BN * static_cast<size_t>(blockIdx.x);
  for (size_t i = 0; i < k; i += BK) {
    if (transposed) {
      gk_tile_load<BK, BM>(as, a, m, i, row, k, m);
      gk_tile_load_transposed<BN, BK>(bs, b, k, col, i, n, k);
    } else {
      gk_tile_load_transposed<BM, BK>(as, a, k, row, i, m, k);
      gk_tile_load<BK, BN>(bs, b, n, i, col, k, n);
    }
    __syncthreads();
    gk_tile_multiply(acc, as, bs, BK);
    __syncthreads();
  }
  gk_tile_store(acc, c, n, row, col, m, n, S(2), beta);
}

/* The same for operands that are not transposed, with A as textbooks have it. */
template <int BM, int BN, int BK, int TM, int TN, class S, class T>
__global__ void my_matmul_by_rows(const T *a, const T *b, S *c, size_t m, size_t n, size_t k, S beta) {
  __shared__ S as[BM][BK + 1];
  __shared__ __align__(16) S bs[BK][BN + 4];
  gk_tile<S, BM, BN, TM, TN> acc;
  const size_t row = BM * static_cast<size_t>(blockIdx.y), col = BN * static_cast<size_t>(blockIdx.x);
  for (size_t i = 0; i < k; i += BK) {
    gk_tile_load<BM, BK>(as, a, k, row, i, m, k);
    gk_tile_load<BK, BN>(bs, b, n, i, col, k, n);
    __syncthreads();
    gk_tile_multiply_rows(acc, as, bs, BK);
    __syncthreads();
  }
  gk_tile_store(acc, c, n, row, col, m, n, S(2), beta);
}

template <int BM, int BN, int BK, int TM, int TN, class S, class T> static void check_blocks(dim3 block) {
  EXPECT_EQ(static_cast<unsigned>(gk_tile<S, BM, BN, TM, TN>::thread_count), block.x * block.y * block.z);
  const size_t sizes[] = {1, 5, 37, 64, 100};
  for (size_t i = 0; i < 10; i++) {
    problem p = problem_of(sizes[i % 5], sizes[(i + 2) % 5], sizes[(i * 2 + 1) % 5]);
    p.trans_a = p.trans_b = i >= 5;
    p.alpha = 2, p.beta = i % 2 ? -0.5 : 0;
    const std::vector<T> a = random_elements<T>(1, p.m * p.k), b = random_elements<T>(2, p.k * p.n);
    std::vector<S> before(p.m * p.n, p.beta != 0 ? S(3) : S(NAN)), expected(before);
    const gk__split_k one_chain = {0, 1, 1000};
    multiply_plainly(p, a, b, expected, one_chain);
    device_array<T> device_a(a), device_b(b);
    device_array<S> c(before);
    const dim3 grid = gk_tile<S, BM, BN, TM, TN>::grid_dim(p.m, p.n);
    EXPECT(grid.x == gk_ceil_div(p.n, size_t(BN)) && grid.y == gk_ceil_div(p.m, size_t(BM)) && grid.z == 1);
    GK_LAUNCH((my_matmul<BM, BN, BK, TM, TN, S, T>), grid, block, 0, 0, device_a.ptr, device_b.ptr, c.ptr, p.m, p.n,
              p.k, p.trans_a != 0, static_cast<S>(p.beta));
    EXPECT_SAME(c.get(), expected, "%d x %d x %d, %d x %d a thread: %s", BM, BN, BK, TM, TN, p.text().c_str());
    if (p.trans_a) continue;
    c.set(before);
    GK_LAUNCH((my_matmul_by_rows<BM, BN, BK, TM, TN, S, T>), grid, block, 0, 0, device_a.ptr, device_b.ptr, c.ptr, p.m,
              p.n, p.k, static_cast<S>(p.beta));
    EXPECT_SAME(c.get(), expected, "by rows, %d x %d x %d, %d x %d a thread: %s", BM, BN, BK, TM, TN, p.text().c_str());
  }
}
TEST(blocks_16_by_16) { check_blocks<16, 16, 16, 1, 1, float, float>(dim3(16, 16)); }
TEST(blocks_32_by_32) { check_blocks<32, 32, 32, 1, 1, float, float>(dim3(32, 32)); }
TEST(blocks_64_by_64_by_registers) { check_blocks<64, 64, 8, 4, 4, float, float>(dim3(256)); }
TEST(blocks_64_by_32_uneven) { check_blocks<64, 32, 5, 8, 2, float, float>(dim3(8, 4, 4)); }
TEST(blocks_of_double) { check_blocks<32, 32, 8, 2, 4, double, double>(dim3(64, 2)); }
TEST(blocks_of_half) { check_blocks<32, 32, 8, 2, 2, float, __half>(dim3(256)); }

/* --- past 2^32 ------------------------------------------------------------------------------------------------------*/

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
/* 2^29 tiles beside each other, whose number times eight does not fit into 32 bits. */
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
TEST(more_than_2_to_the_29_tiles_strict) { check_columns(size_t(1) << 34, GK_PRECISION_STRICT, GK__PLAN_TILE_32); }
TEST(more_than_2_to_the_29_tiles_on_tensor_cores) {
  check_columns(size_t(1) << 35, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
}
