/* Products that are cut in two after whole waves of tiles: which of them are, and the results of the parts. */
#include "once.h"

#include "hooks.h"
#include "products.h"

/* --- the cut -------------------------------------------------------------------------------------------------------*/

/* Waves of 12 tiles of 10 x 20 take 10 each, or three of 12 tiles of 5 x 10 if there are no more than two of them. */
struct made_up_plan {
  int cost;
  bool small;
};
struct made_up_query {
  size_t m, n;
};
static made_up_plan made_up(const made_up_query &query) {
  const size_t large = gk_ceil_div(gk_ceil_div(query.m, size_t{10}) * gk_ceil_div(query.n, size_t{20}), size_t{12});
  const size_t small = gk_ceil_div(gk_ceil_div(query.m, size_t{5}) * gk_ceil_div(query.n, size_t{10}), size_t{12});
  return small <= 2 ? made_up_plan{static_cast<int>(3 * small), true}
                    : made_up_plan{static_cast<int>(10 * large), false};
}
static hook_cut_plan<made_up_plan> made_up_parts(size_t m, size_t n, int launch_cost) {
  const made_up_query query = {m, n};
  hook_cut_plan<made_up_plan> parts(m, n, made_up(query));
  parts.cut_after_waves(query, 10, 20, 12, launch_cost, made_up);
  return parts;
}
/* The arguments of a product without operands: the rectangle of C. */
struct rectangle {
  size_t first_row, first_col, m, n, c, ldc;
  rectangle(size_t row_idx, size_t col_idx, size_t rows, size_t cols)
      : first_row(row_idx), first_col(col_idx), m(rows), n(cols), c(0), ldc(0) {}
  void skip_outer(size_t, size_t) {}
  bool operator==(const rectangle &o) const {
    return first_row == o.first_row && first_col == o.first_col && m == o.m && n == o.n;
  }
};
static std::vector<rectangle> rectangles_of(const hook_cut_plan<made_up_plan> &parts, std::vector<bool> *small) {
  std::vector<rectangle> all;
  const rectangle whole(0, 0, parts.all_m, parts.all_n);
  EXPECT_OK(parts.run(whole, [&](const rectangle &part, const made_up_plan &plan) {
    all.push_back(part), small->push_back(plan.small);
    return cudaSuccess;
  }));
  return all;
}
TEST(whole_waves_and_the_rest) {
  std::vector<bool> small;
  /* 13 x 2 tiles: two waves, and two tiles. */
  EXPECT(rectangles_of(made_up_parts(128, 33, 2), &small) ==
         (std::vector<rectangle>{{0, 0, 120, 33}, {120, 0, 8, 33}}));
  EXPECT(small == (std::vector<bool>{false, true}));
  /* 3 x 9 tiles: by columns. */
  small.clear();
  EXPECT(rectangles_of(made_up_parts(27, 165, 2), &small) ==
         (std::vector<rectangle>{{0, 0, 27, 160}, {0, 160, 27, 5}}));
  EXPECT(small == (std::vector<bool>{false, true}));
  /* Not if the launch costs more than it saves, or saves less than a twentieth, and not without a rest or a wave. */
  EXPECT(made_up_parts(128, 33, 5).is_cut() && !made_up_parts(128, 33, 6).is_cut());
  EXPECT(!made_up_parts(120, 40, 0).is_cut() && !made_up_parts(20, 20, 0).is_cut());
  small.clear();
  EXPECT(rectangles_of(made_up_parts(120, 40, 0), &small) == (std::vector<rectangle>{{0, 0, 120, 40}}));
}

/* Some strict products are cut, on any GPU; the parts are cheaper, and there are no cuts of batches or of plans that
 * the caller asks for. */
template <class T> static size_t count_cuts(int sms, unsigned hopper) {
  size_t cuts = 0;
  for (size_t i = 0; i < 600; i++) {
    const auto edge = [i](uint64_t seed) { return static_cast<size_t>(uniform(seed, i, 256, 6000)); };
    const size_t m = edge(41), n = edge(42), k = edge(43);
    hook_plan_query query = {m, n, k, 1, hook_plan_split_k<T>(m, n, k), GK_PLAN_AUTO, sms, hopper, true, false, 232448};
    const hook_cut_plan<hook_tile_choice> parts = hook_plan_tiles<T>(query);
    const unsigned long long whole = hook_clocks<T>(hook_plan_tile<T>(query).tile_facts, query);
    EXPECT(!parts.is_cut() || parts.plan.cost + parts.rest_plan.cost < whole - whole / 20);
    EXPECT(parts.is_cut() || parts.plan.cost == whole);
    cuts += parts.is_cut();
    query.batch = 2;
    EXPECT(!hook_plan_tiles<T>(query).is_cut());
    query.batch = 1, query.wanted = HOOK_PLAN_TILE_64_128;
    EXPECT(!hook_plan_tiles<T>(query).is_cut());
  }
  return cuts;
}
TEST(strict_products_are_cut) {
  for (int sms : {40, 108, 132}) {
    EXPECT(count_cuts<float>(sms, 2) > 0);
    EXPECT(count_cuts<double>(sms, 1) > 0);
    count_cuts<float>(sms, 0);
  }
}

/* --- the parts -----------------------------------------------------------------------------------------------------*/

/* A product on tensor cores by mma.sync, of integers, so that sums are exact in any order. */
static void check_mma_parts(size_t part_m, size_t part_n, int trans) {
  const size_t m = 200, n = 144, k = 72;
  std::vector<__half> a(m * k), b(k * n);
  hook_tensor_args<__half, float, by_place> p;
  p.a.k_major = !(trans & 1), p.b.k_major = trans >> 1, p.a.split = p.b.split = 1;
  for (size_t i = 0; i < a.size(); i++) a[i] = make<__half>(uniform(64, i, -3, 3));
  for (size_t i = 0; i < b.size(); i++) b[i] = make<__half>(uniform(65, i, -3, 3));
  device_array<__half> device_a(a), device_b(b);
  device_array<float> c(m * n);
  p.a.data = device_a.ptr, p.a.leading_dim = p.a.k_major ? k : m;
  p.b.data = device_b.ptr, p.b.leading_dim = p.b.k_major ? k : n;
  p.c = c.ptr, p.ldc = n, p.m = m, p.n = n, p.k = k, p.batch = 1, p.alpha = 1, p.beta = 0;
  std::vector<float> expected(m * n);
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) {
      float sum = 0;
      for (size_t l = 0; l < k; l++)
        sum += plain(a[p.a.k_major ? i * k + l : l * m + i]) * plain(b[p.b.k_major ? j * k + l : l * n + j]);
      expected[i * n + j] = by_place()(sum, i, j);
    }
  const hook_matmul_gpu gpu = this_gpu();
  hook_cut_plan<hook_mma_plan> parts(m, n, hook_cheapest_mma_plan<1, __half>({part_m, part_n, k, 1, gpu}));
  parts.m = part_m, parts.n = part_n;
  parts.rest_plan =
      hook_cheapest_mma_plan<1, __half>({part_m < m ? m - part_m : m, part_n < n ? n - part_n : n, k, 1, gpu});
  EXPECT_OK(parts.run(p, [&](const decltype(p) &part, const hook_mma_plan &plan) {
    hook_product_call call(NULL, 0);
    if (plan.product_bytes) call.measure(plan.product_bytes, 1);
    GK_TRY(call.begin());
    return call.end(hook_mma_run<1>(part, plan, &call));
  }));
  EXPECT_SAME(c.get(), expected, "first part %zu x %zu, trans %d", part_m, part_n, trans);
}
TEST(parts_by_mma_sync) {
  if (!has_plan<__half, float>(GK_PRECISION_DEFAULT, GK_PLAN_MMA))
    SKIP("no tensor cores, or code for sm_90a, which refuses GK_PLAN_MMA");
  for (int trans = 0; trans < 4; trans++) {
    check_mma_parts(128, 144, trans);
    check_mma_parts(200, 64, trans);
  }
}

/* --- whole calls ---------------------------------------------------------------------------------------------------*/

#ifdef CUDA_ON_CPU
TEST(large_products) { SKIP("too large for the stand-in"); }
#else
/* Of integers, so that every path has the same bits. On a GPU of 132 multiprocessors the planners cut these. */
template <class T, gk_precision Precision> static void check_large(size_t m, size_t n, size_t k, int trans) {
  problem p = problem_of(m, n, k, Precision);
  p.trans_a = trans & 1, p.trans_b = trans >> 1;
  std::vector<T> a(p.size_a()), b(p.size_b());
  for (size_t i = 0; i < a.size(); i++) a[i] = make<T>(static_cast<double>(i * 7919 % 1021 % 7) - 3);
  for (size_t i = 0; i < b.size(); i++) b[i] = make<T>(static_cast<double>(i * 6007 % 1013 % 7) - 3);
  typedef typename std::conditional<std::is_same<T, double>::value, double, float>::type out_type;
  device_array<T> device_a(a), device_b(b);
  device_array<out_type> c(p.size_c()), expected(p.size_c());
  gk_matmul_opts opts = p.opts(GK_PLAN_AUTO);
  EXPECT_OK(gk_matmul_epilogue<Precision>(device_a.ptr, device_b.ptr, c.ptr, m, n, k, by_place(), &opts));
  opts.precision = GK_PRECISION_STRICT, opts.plan = HOOK_PLAN_TILE_64_128;
  EXPECT_OK(
      gk_matmul_epilogue<GK_PRECISION_STRICT>(device_a.ptr, device_b.ptr, expected.ptr, m, n, k, by_place(), &opts));
  EXPECT_SAME(c.get(), expected.get(), "precision %d, %s", static_cast<int>(Precision), p.text().c_str());
}
TEST(large_products) {
  check_large<float, GK_PRECISION_STRICT>(1383, 3245, 1072, 3);
  check_large<float, GK_PRECISION_STRICT>(1536, 1536, 1536, 0);
  check_large<double, GK_PRECISION_STRICT>(1184, 1120, 1120, 0);
  for (int trans = 0; trans < 4; trans++) {
    check_large<__half, GK_PRECISION_DEFAULT>(1383, 3245, 1072, trans);
    check_large<float, GK_PRECISION_TF32>(1383, 3245, 1072, trans);
    check_large<float, GK_PRECISION_EMULATED>(1383, 3245, 1072, trans);
  }
  check_large<__half, GK_PRECISION_DEFAULT>(6880, 864, 3872, 2);
  check_large<__nv_bfloat16, GK_PRECISION_DEFAULT>(1984, 4576, 4128, 1);
  check_large<__half, GK_PRECISION_DEFAULT>(3001, 77, 1111, 2); /* a transposed copy of B */
  check_large<__nv_bfloat16, GK_PRECISION_DEFAULT>(2047, 333, 5001, 2);
  check_large<float, GK_PRECISION_TF32>(3001, 77, 1111, 2);
  check_large<float, GK_PRECISION_TF32>(210, 4588, 7396, 0);
  check_large<float, GK_PRECISION_EMULATED>(210, 4588, 7396, 0);
}
#endif
