/* What the planner chooses: the split of k, the tile, the kernel, and which operands are copied. */
#include "once.h"

#include "hooks.h"
#include "products.h"

/* The raster order has each tile once. */
TEST(raster_order) {
  for (unsigned rows = 1; rows < 20; rows++)
    for (unsigned cols = 1; cols < 12; cols++) {
      std::vector<int> times(rows * cols, 0);
      for (unsigned i = 0; i < rows * cols; i++) {
        const hook_raster_tile tile(i, rows, cols);
        EXPECT(tile.row_idx < rows && tile.col_idx < cols);
        if (tile.row_idx < rows && tile.col_idx < cols) times[tile.row_idx * cols + tile.col_idx]++;
      }
      EXPECT(times == std::vector<int>(rows * cols, 1));
    }
  const unsigned most = 0x7fffffff;
  for (unsigned rows : {1u, 2u, 3u, 7u, 8u, 9u, 1000u, most}) {
    const unsigned cols = most / rows;
    const hook_raster_tile last(rows * cols - 1, rows, cols), first(0, rows, cols);
    EXPECT(first.row_idx == 0 && first.col_idx == 0 && last.row_idx == rows - 1 && last.col_idx == cols - 1);
  }
}

/* The split of k determines the bits, so it must not change by accident. A failure prints the rows as they would be. */
TEST(splits_of_k) {
  static const struct {
    size_t m, n, k;
    int thin;
    unsigned floats, doubles; /* partitions */
  } table[] = {
      {5, 5, 0, 0, 1, 1},           {3, 5, 127, 0, 1, 4},        {1, 8192, 8192, 1, 1, 1},
      {4, 4, 1048576, 1, 256, 256}, {4096, 4096, 4096, 0, 1, 1}, {128, 128, 128, 0, 1, 4},
      {255, 255, 255, 0, 4, 4},     {512, 512, 512, 0, 4, 2},    {640, 640, 640, 0, 5, 1},
      {768, 768, 768, 0, 5, 1},     {1000, 1000, 1000, 0, 3, 1}, {1024, 1024, 1024, 0, 2, 1},
      {64, 8192, 8192, 0, 4, 2},    {2047, 333, 5001, 0, 11, 4}, {858, 4921, 2132, 0, 2, 1},
      {2500, 2499, 2500, 0, 2, 1},  {40, 50, 900, 0, 19, 15},    {16, 16, 100000, 0, 32, 32},
      {550, 222, 123, 0, 2, 4},     {288, 4192, 64, 0, 1, 1},    {360, 365, 190, 0, 3, 1},
      {360, 365, 210, 0, 2, 2},
  };
  std::string changed;
  for (const auto &e : table) {
    const hook_split_k single = hook_plan_split_k<float>(e.m, e.n, e.k),
                       twice = hook_plan_split_k<double>(e.m, e.n, e.k);
    for (const hook_split_k &order : {single, twice}) {
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

/* A batch of small products, whose operands are not transposed, is planned for the kernel of such products. */
TEST(small_products_of_batches) {
  hook_plan_query query = {64, 16, 48, 603, {false, 1, 48}, GK_PLAN_AUTO, 132, 0, false, true, 232448};
  const hook_tile_choice plain = hook_plan_tile<float>(query);
  EXPECT_EQ((int)plain.tile_facts.plan, (int)HOOK_PLAN_TILE_32);
  hook_plan_query other = query;
  other.is_plain = false;
  EXPECT(hook_plan_tile<float>(other).cost > plain.cost && !(other == query));
}

/* Sizes that are powers of two, or their multiples, are usual. Two such products in turn are planned once each, not
 * for each call: they seldom share an entry of the cache. */
struct sizes {
  size_t m, n, k;
  bool operator==(const sizes &other) const { return m == other.m && n == other.n && k == other.k; }
};
TEST(cached_plans_of_round_sizes) {
  std::vector<sizes> round;
  for (size_t m = 64; m <= 8192; m *= 2)
    for (size_t n = 64; n <= 8192; n *= 2)
      for (size_t k : {size_t(64), size_t(768), size_t(4096)}) round.push_back({m, n, k});
  int pairs = 0, plans = 0;
  const auto find = [&plans](const sizes &) { return plans++; };
  for (size_t i = 0; i < round.size(); i++)
    for (size_t j = i + 1; j < round.size(); j += 7, pairs++)
      for (int call = 0; call < 10; call++) hook_cached_plan(call % 2 ? round[i] : round[j], find);
  EXPECT(plans > 0 && plans < pairs * 2);
}

/* The caches of splits and tiles: more shapes than they hold, each looked up twice in a row. */
TEST(cached_splits_and_tiles) {
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < 400; i++) {
      const auto edge = [i](uint64_t seed) { return static_cast<size_t>(uniform(seed, i, 0, 3000)); };
      const size_t m = edge(51), n = edge(52), k = edge(53);
      const hook_split_k order = hook_plan_split_k<float>(m, n, k), twice = hook_plan_split_k<double>(m, n, k);
      for (int again = 0; again < 2; again++) {
        EXPECT(hook_cached_split_k<float>(m, n, k) == order);
        EXPECT(hook_cached_split_k<double>(m, n, k) == twice);
        EXPECT(hook_cached_split_k<float>(m, n, k + 64) == hook_plan_split_k<float>(m, n, k + 64));
        for (const unsigned hopper : {0u, 1u, 2u}) {
          const hook_plan_query query = {m, n, k, 1, order, GK_PLAN_AUTO, 132, hopper, false, false, 232448};
          const hook_cut_plan<hook_tile_choice> cached = hook_cached_tiles<float>(query),
                                                planned = hook_plan_tiles<float>(query);
          EXPECT(cached.m == planned.m && cached.n == planned.n && cached.plan.cost == planned.plan.cost);
          const hook_tile_facts is = cached.plan.tile_facts, should = planned.plan.tile_facts;
          EXPECT(is.plan == should.plan && is.room == should.room && is.hopper == should.hopper);
          EXPECT(cached.rest_plan.cost == planned.rest_plan.cost);
        }
      }
    }
}

/* More work takes longer, and a partial wave as long as its partitions. */
TEST(estimates_of_blocks) {
  for (int i = 0; i < hook_tiles<float>::item_count; i++) {
    const hook_tile_facts tile = hook_tiles<float>::facts(i);
    if (!tile.hopper) continue;
    /* Clocks of this many tiles, whose last partition of k has the depth `last`. */
    const auto clocks_of = [&](size_t tiles, unsigned partitions, int depth, int last) {
      const size_t k = static_cast<size_t>(depth) * (partitions - 1) + static_cast<size_t>(last);
      const hook_split_k order = {0, partitions, depth};
      return hook_hopper_clocks(
          tile, {tiles * tile.row_count, tile.col_count, k, 1, order, GK_PLAN_AUTO, 132, 2, false, false, 232448});
    };
    unsigned long long before = 0;
    for (size_t tiles = 1; tiles < 2000; tiles += 33) {
      const unsigned long long clocks = clocks_of(tiles, 1, 1008, 1000);
      EXPECT(clocks + clocks / 20 >= before);
      before = clocks;
    }
    EXPECT(clocks_of(264, 1, 2000, 2000) > clocks_of(264, 1, 1008, 1000));
    /* Of a very long k, too. */
    EXPECT(clocks_of(1, 1, 1 << 30, 1 << 30) / 1000 > clocks_of(1, 1, 1 << 20, 1 << 20));
    EXPECT(clocks_of(1, 2, 1 << 29, (1 << 29) - 16) / 500 > clocks_of(1, 1, 1 << 20, 1 << 20));
    /* A few more blocks than are resident at once. */
    EXPECT(clocks_of(16, 17, 304, 136) < clocks_of(16, 17, 304, 304));
  }
}

/* A reduction takes longer the more partials there are, and no time if k is not split. */
TEST(estimates_of_reductions) {
  const hook_reduce_costs costs = hook_measured_reduce_costs();
  EXPECT_EQ(hook_reduction_clocks(costs, 1000, 1000, 3, 1, 4), 0ull);
  unsigned long long before = 0;
  for (unsigned partitions = 2; partitions <= HOOK_MATMUL_PARTITIONS; partitions++) {
    const unsigned long long clocks = hook_reduction_clocks(costs, 1000, 1000, 1, partitions, 4);
    EXPECT(clocks > before);
    EXPECT(hook_reduction_clocks(costs, 1000, 1000, 2, partitions, 4) > clocks);
    EXPECT(hook_reduction_clocks(costs, 1000, 1000, 1, partitions, 8) > clocks);
    before = clocks;
  }
  /* Partials of the groups of one block are reduced without a second kernel. */
  const hook_tile_facts square = hook_tiles<float>::facts(hook_tiles<float>::item_count - 1);
  const auto whole = [&](unsigned partitions) {
    const hook_split_k order = {0, partitions, 640 / static_cast<int>(partitions)};
    const hook_plan_query query = {64, 64, 640, 1, order, GK_PLAN_AUTO, 132, 0, false, false, 232448};
    return hook_clocks<float>(square, query) - hook_tiles<float>::kernel_clocks(square, query);
  };
  EXPECT_EQ(whole(square.groups), 0ull);
  EXPECT(whole(square.groups + 1) > 0);
}

/* What the planner knows of a portable tile is what its kernel takes. A GPU whose blocks have too little shared memory
 * for all groups splits k by blocks, which need a second launch. */
template <class T> static void check_groups() {
  typedef hook_tiles<T> tiles;
  const hook_matmul_gpu hopper = {132, 232448, GK_PLAN_AUTO};
  for (int i = 0; i < tiles::item_count; i++) {
    const hook_tile_facts tile = tiles::facts(i);
    if (tile.hopper) continue;
    const auto kernel = hook_portable_kernel_of(hook_matmul_args<T, T, T>(), tile.plan, hopper, T());
    EXPECT(kernel.bm == tile.row_count && kernel.bn == tile.col_count && kernel.groups == tile.groups);
    EXPECT_EQ(tile.bytes, std::max(kernel.ring_bytes, kernel.bm * kernel.bn * sizeof(T)));
    if (tile.groups == 1) continue;
    hook_plan_query query = {512,   512, 64 * tile.groups, 1, {false, tile.groups, 64}, GK_PLAN_AUTO, 132, 0, false,
                             false, 0};
    for (const size_t missing : {0u, 1u}) { /* the clocks to reduce partials by a second launch */
      query.smem_limit = tile.groups * tile.bytes - missing;
      EXPECT((hook_clocks<T>(tile, query) > tiles::kernel_clocks(tile, query)) == (missing > 0));
    }
  }
}
TEST(planner_knows_the_memory_of_groups) {
  check_groups<float>();
  check_groups<double>();
}

TEST(planner_fills_the_device) {
  const hook_split_k plain = {0, 1, 4096};
  const auto plan_of = [&](size_t edge, unsigned hopper, gk_plan wanted) {
    return (int)hook_plan_tile<float>({edge, edge, 4096, 1, plain, wanted, 132, hopper, false, false, 232448})
        .tile_facts.plan;
  };
  EXPECT_EQ(plan_of(4096, 0, GK_PLAN_AUTO), (int)HOOK_PLAN_TILE_64_128);
  EXPECT_EQ(plan_of(4096, 2, GK_PLAN_AUTO), (int)HOOK_PLAN_HOPPER_128);
  EXPECT_EQ(plan_of(100, 2, GK_PLAN_AUTO), (int)HOOK_PLAN_TILE_32);
  EXPECT_EQ(plan_of(100, 2, HOOK_PLAN_TILE_64), (int)HOOK_PLAN_TILE_64);
  EXPECT_EQ(plan_of(100, 2, HOOK_PLAN_HOPPER_128), (int)HOOK_PLAN_HOPPER_128);
  EXPECT_EQ(plan_of(100, 0, HOOK_PLAN_HOPPER_128), (int)HOOK_PLAN_TILE_64_128); /* this GPU has no such kernel */
  EXPECT_EQ(plan_of(100, 2, HOOK_PLAN_HOPPER_64_128), (int)HOOK_PLAN_HOPPER_64_128);
  EXPECT_EQ(plan_of(100, 0, HOOK_PLAN_HOPPER_64_128), (int)HOOK_PLAN_TILE_64_128);
  EXPECT_EQ(plan_of(100, 1, HOOK_PLAN_HOPPER_64_128), (int)HOOK_PLAN_TILE_32); /* only code for sm_90a has one */
  EXPECT_EQ(plan_of(100, 2, HOOK_PLAN_HOPPER_128_64), (int)HOOK_PLAN_HOPPER_128_64);
  EXPECT_EQ(plan_of(100, 0, HOOK_PLAN_HOPPER_128_64), (int)HOOK_PLAN_TILE_64_128);
  EXPECT_EQ((int)hook_plan_tile<double>({100, 100, 4096, 1, plain, HOOK_PLAN_TILE_64, 132, 0, false, false, 232448})
                .tile_facts.plan,
            (int)HOOK_PLAN_TILE_32_64);
}

/* The bytes of an element say its type. */
static const size_t half_type = 2, f32 = 4, f64 = 8;
static hook_product product_of(size_t item_bytes, size_t m, size_t n, size_t k, gk_precision precision, gk_plan plan) {
  const hook_product p = {item_bytes, m, n, k, 1, {256, k, 0, true}, {256, n, 0, false}, precision, plan};
  return p;
}

TEST(planner_chooses_the_kernel) {
  const hook_matmul_gpu ampere = {108, 166912, GK_PLAN_MMA}, hopper = {132, 232448, GK_PLAN_WGMMA},
                        older = {40, 65536, GK_PLAN_AUTO}; /* has no tensor cores for the type */
  const auto plan_of = [](size_t item_bytes, size_t edge, gk_precision precision, const hook_matmul_gpu &gpu) {
    const hook_product_plan plan =
        hook_plan_product(product_of(item_bytes, edge, edge, edge, precision, GK_PLAN_AUTO), gpu);
    EXPECT(plan.refused == NULL);
    EXPECT_EQ(plan.tensor() || plan.is_small, plan.precision != GK_PRECISION_STRICT);
    return static_cast<int>(plan.plan);
  };
  const int automatic = GK_PLAN_AUTO, mma = GK_PLAN_MMA, wgmma = GK_PLAN_WGMMA;
  EXPECT_EQ(plan_of(half_type, 1024, GK_PRECISION_DEFAULT, older), automatic);
  EXPECT_EQ(plan_of(half_type, 1024, GK_PRECISION_DEFAULT, ampere), mma);
  EXPECT_EQ(plan_of(half_type, 1024, GK_PRECISION_DEFAULT, hopper), wgmma);
  EXPECT_EQ(plan_of(half_type, 1024, GK_PRECISION_STRICT, hopper), automatic);
  EXPECT_EQ(plan_of(half_type, 32, GK_PRECISION_DEFAULT, hopper), automatic);
  EXPECT_EQ(plan_of(f32, 4096, GK_PRECISION_DEFAULT, hopper), automatic);
  EXPECT_EQ(plan_of(f32, 4096, GK_PRECISION_TF32, older), automatic);
  EXPECT_EQ(plan_of(f32, 4096, GK_PRECISION_TF32, hopper), wgmma);
  EXPECT_EQ(plan_of(f32, 224, GK_PRECISION_TF32, hopper), wgmma);
  EXPECT_EQ(plan_of(f32, 192, GK_PRECISION_TF32, hopper), mma);
  EXPECT_EQ(plan_of(f32, 129, GK_PRECISION_TF32, hopper), automatic); /* would be copied */
  EXPECT_EQ(plan_of(f32, 192, GK_PRECISION_TF32, ampere), mma);
  EXPECT_EQ(plan_of(f32, 129, GK_PRECISION_TF32, ampere), automatic);
  EXPECT_EQ(plan_of(f32, 256, GK_PRECISION_TF32, ampere), mma);
  EXPECT_EQ(plan_of(f32, 4096, GK_PRECISION_EMULATED, ampere), mma);
  EXPECT_EQ(plan_of(f32, 128, GK_PRECISION_EMULATED, ampere), automatic);
  hook_product flat = product_of(f32, 64, 8192, 8192, GK_PRECISION_EMULATED, GK_PLAN_AUTO);
  EXPECT(!hook_plan_product(flat, hopper).tensor()); /* splitting would take longer */
  flat.m = 256;
  EXPECT(hook_plan_product(flat, hopper).tensor());
  const auto emulates = [&](size_t k, const hook_matmul_gpu &gpu) {
    return hook_plan_product(product_of(f32, 4096, 4096, k, GK_PRECISION_EMULATED, GK_PLAN_AUTO), gpu).tensor();
  };
  EXPECT(emulates(48, hopper) && !emulates(47, hopper) && emulates(96, ampere) && !emulates(95, ampere));
  EXPECT_EQ(plan_of(f64, 4096, GK_PRECISION_STRICT, hopper), automatic);
  hook_product thin = product_of(half_type, 3, 8192, 8192, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
  EXPECT(!hook_plan_product(thin, ampere).tensor());
  thin.plan = GK_PLAN_MMA;
  EXPECT(hook_plan_product(thin, ampere).tensor());
  const auto thin_plan = [&](size_t item_bytes, size_t m, size_t n, size_t k) {
    return static_cast<int>(
        hook_plan_product(product_of(item_bytes, m, n, k, GK_PRECISION_DEFAULT, GK_PLAN_AUTO), hopper).plan);
  };
  EXPECT_EQ(thin_plan(half_type, 1, 8192, 8192), wgmma);
  EXPECT_EQ(thin_plan(half_type, 1, 8191, 8192), automatic); /* would be copied */
  EXPECT_EQ(thin_plan(half_type, 1, 8192, 8191), automatic);
  EXPECT_EQ(thin_plan(half_type, 8192, 1, 8192), automatic);
  EXPECT_EQ(thin_plan(half_type, 1, 2048, 4096), automatic);
  EXPECT_EQ(thin_plan(half_type, 1, 4096, 4096), wgmma);
  EXPECT_EQ(thin_plan(half_type, 2, 4096, 4096), wgmma);
  EXPECT_EQ(thin_plan(f32, 1, 8192, 8192), automatic);
  hook_product padded = product_of(half_type, 4, 4096, 4096, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
  EXPECT(hook_plan_product(padded, hopper).tensor());
  padded.b.leading_dim = 4097; /* would be copied */
  EXPECT(!hook_plan_product(padded, hopper).tensor());
  thin.k = 0;
  EXPECT(!hook_plan_product(thin, hopper).tensor());
}

/* Small products of half types and tf32: few steps for each multiprocessor, a short k, no thin ones, and nothing that
 * is asked for by name. */
TEST(planner_finds_small_products) {
  const hook_matmul_gpu hopper = {132, 232448, GK_PLAN_WGMMA}, older = {40, 65536, GK_PLAN_AUTO};
  const auto small = [&](size_t m, size_t n, size_t k, gk_precision precision = GK_PRECISION_DEFAULT,
                         gk_plan plan = GK_PLAN_AUTO, size_t item_bytes = half_type) {
    return hook_plan_product(product_of(item_bytes, m, n, k, precision, plan), hopper).is_small;
  };
  const auto small_tf32 = [&](size_t m, size_t n, size_t k) {
    return small(m, n, k, GK_PRECISION_TF32, GK_PLAN_AUTO, f32);
  };
  /* Those that would be copied have up to 80 steps of 16 x 16 x 16. */
  EXPECT(small(32, 32, 31) && small(127, 127, 127) && small(16, 80 * 132 * 16 - 1, 15));
  EXPECT(!small(16, 80 * 132 * 16 + 1, 15) && !small(17, 80 * 132 * 16 - 1, 15) && !small(16, 80 * 132 * 16 - 1, 17));
  EXPECT(small(75, 75, 1536) && !small(75, 75, 1537));
  EXPECT(!small(3, 75, 129) && small(3, 75, 127));
  EXPECT(small_tf32(75, 75, 75) && small_tf32(75, 75, 1536) && !small_tf32(75, 75, 1537));
  EXPECT(small(546, 48, 44) && !small(2184, 192, 44)); /* A would be read as strided matrices: up to 24 */
  /* Others have up to 2 or 8. */
  EXPECT(small(64, 64, 64) && small(128, 128, 64) && !small(128, 136, 64) && !small(128, 128, 128));
  EXPECT(small_tf32(128, 128, 128) && small_tf32(176, 192, 128) && !small_tf32(192, 192, 128));
  EXPECT(small_tf32(64, 64, 512) && !small_tf32(64, 64, 516));
  EXPECT(!small(75, 75, 75, GK_PRECISION_STRICT) && !small(75, 75, 75, GK_PRECISION_DEFAULT, GK_PLAN_SIMT));
  EXPECT(!small(75, 75, 75, GK_PRECISION_DEFAULT, GK_PLAN_WGMMA) && !small(75, 75, 0));
  EXPECT(!small(75, 75, 75, GK_PRECISION_EMULATED, GK_PLAN_AUTO, f32));
  const auto small_batch = [&](size_t m, size_t n, size_t k, size_t batch, const hook_matmul_gpu &gpu) {
    hook_product p = product_of(half_type, m, n, k, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
    p.batch = batch;
    return hook_plan_product(p, gpu).is_small;
  };
  EXPECT(small_batch(33, 33, 33, 391, hopper) && !small_batch(33, 33, 33, 392, hopper));
  EXPECT(small_batch(31, 61, 33, 1650, hopper) && !small_batch(31, 61, 33, 1651, hopper)); /* of 8 tiles */
  EXPECT(!small_batch(33, 33, 33, 10, older));
  const auto small_floats = [&](size_t m, size_t n, bool b_is_k_major) {
    hook_product p = product_of(f32, m, n, 32, GK_PRECISION_TF32, GK_PLAN_AUTO);
    p.batch = 1000, p.b.k_major = b_is_k_major;
    return hook_plan_product(p, hopper).is_small;
  };
  EXPECT(!small_floats(32, 32, false) && small_floats(32, 32, true) && small_floats(16, 32, false));
}

/* In a batch all products count, unless they leave most of a tile empty. */
TEST(planner_counts_all_products_of_a_batch) {
  const hook_matmul_gpu hopper = {132, 232448, GK_PLAN_WGMMA}, ampere = {108, 166912, GK_PLAN_MMA};
  const auto tensor = [](size_t item_bytes, size_t m, size_t n, size_t k, size_t batch, const hook_matmul_gpu &gpu,
                         gk_precision precision = GK_PRECISION_DEFAULT) {
    hook_product p = product_of(item_bytes, m, n, k, precision, GK_PLAN_AUTO);
    p.batch = batch, p.a.stride = m * k, p.b.stride = k * n;
    return hook_plan_product(p, gpu).tensor();
  };
  const auto halves = [&](size_t edge, size_t batch, const hook_matmul_gpu &gpu) {
    return tensor(half_type, edge, edge, edge, batch, gpu);
  };
  EXPECT(!halves(96, 1, hopper) && halves(96, 2, hopper) && halves(96, 2, ampere));
  EXPECT(!halves(64, 3, ampere) && halves(64, 4, ampere));
  EXPECT(halves(16, 1000, hopper) && halves(16, 1000, ampere) && !halves(16, 200, hopper));
  EXPECT(halves(65, 1000, hopper) && !halves(65, 10, hopper) && !halves(31, 10000, hopper));       /* would be copied */
  EXPECT(tensor(half_type, 4, 64, 128, 64, hopper) && !tensor(half_type, 4, 64, 128, 63, hopper)); /* thin ones */
  EXPECT(!tensor(half_type, 4, 63, 129, 1000, hopper));                                            /* would be copied */
  EXPECT(!tensor(half_type, 1, 64, 128, 1000, hopper) && !tensor(half_type, 64, 1, 128, 1000, ampere));
  const auto floats = [&](size_t edge, size_t batch, const hook_matmul_gpu &gpu, gk_precision precision) {
    return tensor(f32, edge, edge, edge, batch, gpu, precision);
  };
  EXPECT(!floats(96, 11, hopper, GK_PRECISION_TF32) && floats(96, 12, hopper, GK_PRECISION_TF32));
  EXPECT(floats(40, 1000, hopper, GK_PRECISION_TF32) && !floats(36, 1000, hopper, GK_PRECISION_TF32));
  EXPECT(floats(48, 1000, ampere, GK_PRECISION_TF32) && !floats(44, 1000, ampere, GK_PRECISION_TF32));
  EXPECT(floats(65, 1000, hopper, GK_PRECISION_TF32) && !floats(63, 1000, hopper, GK_PRECISION_TF32)); /* copied */
  EXPECT(!floats(256, 11, hopper, GK_PRECISION_EMULATED) && floats(256, 12, hopper, GK_PRECISION_EMULATED));
}

/* Tensor cores of a type need code for an architecture that has them. */
TEST(planner_asks_for_the_code) {
  const auto plan_from = [](int least_code) {
    hook_matmul_gpu gpu = this_gpu();
    EXPECT(gpu.sms > 0);
    EXPECT_OK((hook_find_tensor_plan<int, int>(least_code, &gpu)));
    return static_cast<int>(gpu.tensor_plan);
  };
  cudaFuncAttributes attributes;
  EXPECT_OK(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>((hook_code_kernel<int, int>))));
  const int code = attributes.ptxVersion, found = plan_from(code);
  EXPECT(found == GK_PLAN_MMA || found == GK_PLAN_WGMMA);
  EXPECT_EQ(plan_from(code + 1), found == GK_PLAN_MMA ? static_cast<int>(GK_PLAN_AUTO) : found);
}

/* TMA needs strides of rows and of matrices below 2^40 bytes. Others are for the strict kernels. */
TEST(planner_keeps_strides_within_tma_limits) {
  const hook_matmul_gpu hopper = {132, 232448, GK_PLAN_WGMMA};
  const size_t limit = size_t(1) << 37;
  for (int which = 0; which < 4; which++)
    for (size_t more : {size_t(0), size_t(8)}) {
      hook_product p = product_of(half_type, 256, 256, 256, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
      p.batch = 2, p.a.stride = p.b.stride = 1 << 16;
      (which == 0   ? p.a.leading_dim
       : which == 1 ? p.b.leading_dim
       : which == 2 ? p.a.stride
                    : p.b.stride) = limit - 8 + more;
      EXPECT_EQ(static_cast<int>(hook_plan_product(p, hopper).plan),
                static_cast<int>(more ? GK_PLAN_AUTO : GK_PLAN_WGMMA));
    }
}

/* An A that is split has more tiles, which may be more than a launch can number. Strides of a single product are not
 * used. */
TEST(planner_splits_no_more_than_tiles_can_be_numbered) {
  const hook_matmul_gpu hopper = {132, 232448, GK_PLAN_WGMMA};
  hook_product p = product_of(half_type, 10, 1, 1025, GK_PRECISION_DEFAULT, GK_PLAN_WGMMA);
  p.batch = size_t(1) << 23;
  EXPECT_EQ(hook_plan_product(p, hopper).a.split, 16u);
  p.batch = size_t(1) << 25;
  EXPECT_EQ(hook_plan_product(p, hopper).a.split, 1u);
  EXPECT(hook_plan_product(p, hopper).refused == NULL);
  p.a.stride = size_t(1) << 40;
  EXPECT(hook_plan_product(p, hopper).refused != NULL);
  p.batch = 1;
  EXPECT(hook_plan_product(p, hopper).refused == NULL);
}

TEST(planner_copies_what_is_not_aligned) {
  const hook_matmul_gpu gpu = {132, 166912, GK_PLAN_MMA};
  hook_product p = product_of(half_type, 104, 112, 120, GK_PRECISION_DEFAULT, GK_PLAN_MMA);
  const auto copies = [&] {
    const hook_product_plan plan = hook_plan_product(p, gpu);
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
  const hook_product_plan two = hook_plan_product(p, gpu);
  EXPECT_EQ(two.work_bytes(1), size_t(512 + 104 * 120 * 2));
  EXPECT_EQ(two.work_bytes(2), size_t(512 + 2 * 104 * 120 * 2));
  p.a.stride = 0;
  EXPECT_EQ(copies(), 0);
  p.item_bytes = f32, p.precision = GK_PRECISION_TF32, p.plan = GK_PLAN_MMA;
  EXPECT_EQ(copies(), 0); /* elements are rounded as fragments are loaded, from either order */
  p.b.leading_dim = 113;
  EXPECT_EQ(copies(), 2);
  EXPECT(!hook_plan_product(p, gpu).b.transposed);
  p.b.leading_dim = 112;
  p.precision = GK_PRECISION_EMULATED; /* mma.sync takes K-major operands */
  EXPECT(!hook_plan_product(p, gpu).a.transposed && hook_plan_product(p, gpu).b.transposed);
  EXPECT_EQ(hook_plan_product(p, gpu).b.matrix, size_t(3 * gk_round_up(112 * 120 * 2, 256)));
}

/* A small unaligned product runs on kernels that take any alignment: a copy would take longer. */
TEST(planner_copies_nothing_for_small_products) {
  const auto tensor = [](size_t item_bytes, size_t edge, size_t batch, size_t shift, bool wgmma) {
    const gk_precision precision = item_bytes == f32 ? GK_PRECISION_TF32 : GK_PRECISION_DEFAULT;
    hook_product p = product_of(item_bytes, edge, edge, edge, precision, GK_PLAN_AUTO);
    p.b.address += shift;
    p.batch = batch, p.a.stride = p.b.stride = edge * edge;
    return hook_plan_product(p, {132, 232448, wgmma ? GK_PLAN_WGMMA : GK_PLAN_MMA}).tensor();
  };
  for (size_t item_bytes : {half_type, f32}) {
    const bool is_half = item_bytes == half_type;
    EXPECT(tensor(item_bytes, 192, 1, 0, false) && tensor(item_bytes, 192, 1, 0, true)); /* no copies */
    EXPECT(!tensor(item_bytes, 192, 1, 4, false) && !tensor(item_bytes, 192, 1, 4, true));
    EXPECT(!tensor(item_bytes, is_half ? 336 : 352, 1, 4, false) &&
           tensor(item_bytes, is_half ? 352 : 384, 1, 4, false));
    EXPECT(!tensor(item_bytes, 336, 1, 4, true) && tensor(item_bytes, 352, 1, 4, true));
    EXPECT(tensor(item_bytes, 128, 30, 4, false) && tensor(item_bytes, 128, 30, 4, true));
  }
}
/* Of a narrow product the strict kernels compute whole tiles, too; but floats take less time by them than large copies
 * for tf32. */
TEST(planner_of_narrow_products_that_need_copies) {
  const auto tensor = [](size_t item_bytes, size_t m, size_t n, size_t k, size_t shift, bool a_is_k_major = true) {
    const gk_precision precision = item_bytes == f32 ? GK_PRECISION_TF32 : GK_PRECISION_DEFAULT;
    hook_product p = product_of(item_bytes, m, n, k, precision, GK_PLAN_AUTO);
    p.a.address += shift, p.a.k_major = a_is_k_major, p.a.leading_dim = a_is_k_major ? k : m;
    p.b.k_major = true, p.b.leading_dim = k;
    return hook_plan_product(p, {132, 232448, GK_PLAN_WGMMA}).tensor();
  };
  EXPECT(tensor(half_type, 33, 9, 8192, 4) && !tensor(half_type, 33, 9, 4096, 4));
  EXPECT(tensor(half_type, 6378, 52, 2596, 4));
  EXPECT(!tensor(f32, 6378, 52, 2596, 4, false));
  EXPECT(tensor(f32, 6378, 52, 2596, 4) && tensor(f32, 52, 8192, 8192, 4)); /* these copy the small operand */
  EXPECT(tensor(f32, 6378, 52, 2596, 0) && tensor(f32, 6378, 77, 2596, 4) && tensor(f32, 6378, 52, 603, 4));
}

/* TF32 on Hopper copies unaligned operands and, where neither operand is K-major, the smaller one. */
TEST(planner_copies_for_tf32_what_has_to_be) {
  const hook_matmul_gpu hopper = {132, 232448, GK_PLAN_WGMMA};
  const auto copies = [&](size_t m, size_t n, size_t k, int trans, size_t pad) {
    hook_product p = product_of(f32, m, n, k, GK_PRECISION_TF32, GK_PLAN_AUTO);
    p.a.k_major = !(trans & 1), p.a.leading_dim = (p.a.k_major ? k : m) + pad;
    p.b.k_major = trans >> 1, p.b.leading_dim = p.b.k_major ? k : n;
    const hook_product_plan plan = hook_plan_product(p, hopper);
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
  EXPECT_EQ(copies(4096, 4100, 4096, 0, 0), 0);
  EXPECT_EQ(copies(4100, 4096, 4100, 0, 0), 0);
  EXPECT_EQ(copies(4096, 4096, 4097, 0, 0), 0);
}

/* TF32 by code for sm_90a goes to mma.sync, where wgmma would wait for a transposed copy that is long beside the
 * product, or has little to do. */
TEST(planner_transposes_for_large_products_of_tf32) {
  const hook_matmul_gpu hopper = {132, 232448, GK_PLAN_WGMMA};
  const auto by_mma = [&](size_t m, size_t n, size_t k, int trans, size_t batch = 1,
                          gk_precision precision = GK_PRECISION_TF32, gk_plan asked = GK_PLAN_AUTO) {
    hook_product p = product_of(precision == GK_PRECISION_DEFAULT ? half_type : f32, m, n, k, precision, asked);
    p.batch = batch, p.a.stride = m * k, p.b.stride = k * n;
    p.a.k_major = !(trans & 1), p.a.leading_dim = p.a.k_major ? k : m;
    p.b.k_major = trans >> 1, p.b.leading_dim = p.b.k_major ? k : n;
    const hook_product_plan plan = hook_plan_product(p, hopper);
    EXPECT(plan.tensor());
    EXPECT(plan.plan == GK_PLAN_WGMMA || !(plan.a.wanted || plan.b.wanted));
    return plan.plan == GK_PLAN_MMA;
  };
  EXPECT(by_mma(33 * 64, 64, 2560, 1) && !by_mma(33 * 64, 64, 2564, 1) && !by_mma(33 * 64 + 4, 64, 2560, 1));
  EXPECT(by_mma(32, 1760, 160, 1)); /* needs no copies, so it is not small */
  EXPECT(by_mma(320, 320, 384, 1, 1000) && !by_mma(324, 320, 384, 1, 1000) && !by_mma(320, 324, 384, 1, 1000));
  EXPECT(by_mma(512, 512, 64, 1, 20) && !by_mma(512, 512, 64, 1, 21));
  for (int trans : {0, 3}) {
    EXPECT(by_mma(704, 704, 192, trans) && !by_mma(704, 704, 196, trans) && !by_mma(704, 772, 192, trans));
    EXPECT(!by_mma(704, 704, 192, trans, 2));
  }
  EXPECT(!by_mma(704, 704, 192, 2) && !by_mma(288, 4192, 64, 1, 1, GK_PRECISION_DEFAULT));
  EXPECT(!by_mma(288, 4192, 64, 1, 1, GK_PRECISION_TF32, GK_PLAN_WGMMA));
  EXPECT(!by_mma(1024, 1024, 256, 1, 1, GK_PRECISION_EMULATED));
}

/* Operands of half types whose rows begin at 16 bytes are neither copied nor split, however large they are. */
TEST(planner_reads_rows_at_16_bytes) {
  const hook_matmul_gpu hopper = {132, 232448, GK_PLAN_WGMMA}, ampere = {132, 166912, GK_PLAN_MMA};
  const auto copies = [](size_t m, size_t n, size_t k, size_t shift, const hook_matmul_gpu &gpu) {
    hook_product p = product_of(half_type, m, n, k, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
    p.b.address += shift;
    const hook_product_plan plan = hook_plan_product(p, gpu);
    EXPECT_EQ(plan.a.split, 1u);
    return plan.a.wanted + 2 * plan.b.wanted;
  };
  for (const hook_matmul_gpu &gpu : {hopper, ampere}) {
    EXPECT_EQ(copies(1000, 1000, 1000, 0, gpu), 0);
    EXPECT_EQ(copies(2056, 2056, 2056, 16, gpu), 0);
    EXPECT_EQ(copies(4096, 4096, 4096, 16, gpu), 0);
    EXPECT_EQ(copies(4096, 4096, 4096, 8, gpu), 2);
    EXPECT_EQ(copies(4096, 4100, 4096, 0, gpu), 2);
  }
}

/* The number of strided matrices that A is split into, so that rows are aligned to sectors, where that beats a copy. */
TEST(planner_splits_what_is_not_aligned) {
  const hook_matmul_gpu hopper = {132, 232448, GK_PLAN_WGMMA}, ampere = {132, 166912, GK_PLAN_MMA};
  hook_product p = product_of(half_type, 2047, 333, 5001, GK_PRECISION_DEFAULT, GK_PLAN_AUTO);
  const auto split = [&](const hook_matmul_gpu &gpu) {
    const hook_product_plan plan = hook_plan_product(p, gpu);
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
  p.b.k_major = true, p.n = 512;
  EXPECT_EQ(split(hopper), 1u);
  p.n = 333; /* B is small, and copied transposed */
  EXPECT_EQ(split(hopper), 16u);
  p.a.leading_dim = 5000, p.a.stride = 0;
  EXPECT_EQ(split(hopper), 1u);
  p.m = 1100, p.b.k_major = false, p.a.leading_dim = 5001, p.n = 200;
  EXPECT_EQ(split(hopper), 16u);
  p.n = 1000;
  EXPECT_EQ(split(hopper), 1u);
  p.n = 100, p.a.k_major = false;
  EXPECT_EQ(split(hopper), 1u);
  p = product_of(f32, 2047, 333, 5001, GK_PRECISION_TF32, GK_PLAN_AUTO);
  EXPECT_EQ(split(hopper), 8u);
  p.precision = GK_PRECISION_EMULATED;
  EXPECT_EQ(split(hopper), 1u);
}
/* With a large A and a small B, both K-major and not aligned, only B is copied. */
TEST(planner_transposes_a_small_operand) {
  const auto transposes = [](size_t item_bytes, size_t m, size_t n, size_t k, gk_plan plan = GK_PLAN_WGMMA) {
    const gk_precision precision = item_bytes == f32 ? GK_PRECISION_TF32 : GK_PRECISION_DEFAULT;
    hook_product p = product_of(item_bytes, m, n, k, precision, GK_PLAN_AUTO);
    p.b.k_major = true, p.b.leading_dim = k;
    const hook_product_plan found = hook_plan_product(p, {132, 232448, plan});
    EXPECT(found.b.wanted && found.b.k_major != found.b.transposed);
    EXPECT_EQ(found.b.transposed, !found.a.wanted);
    EXPECT_EQ(found.b.transposed, found.a.split > 1);
    EXPECT_EQ(found.b.leading_dim, gk_round_up(found.b.transposed ? n : k, 128 / item_bytes));
    return found.b.transposed;
  };
  EXPECT(transposes(half_type, 4080, 1020, 773) && !transposes(half_type, 4080, 1021, 773));
  EXPECT(!transposes(half_type, 4080, 1020, 771) && !transposes(half_type, 4080, 1020, 773, GK_PLAN_MMA));
  EXPECT(transposes(f32, 2040, 510, 773) && !transposes(f32, 2040, 510, 771));
}

TEST(refused_plans) {
  const hook_matmul_gpu older = {40, 65536, GK_PLAN_AUTO}, ampere = {108, 166912, GK_PLAN_MMA},
                        hopper = {132, 232448, GK_PLAN_WGMMA};
  const auto refused = [](size_t item_bytes, gk_precision precision, gk_plan plan, const hook_matmul_gpu &gpu) {
    const char *const why = hook_plan_product(product_of(item_bytes, 64, 64, 64, precision, plan), gpu).refused;
    return why ? why : "";
  };
  EXPECT_HAS(refused(half_type, GK_PRECISION_TF32, GK_PLAN_AUTO, ampere), "one of float");
  EXPECT_HAS(refused(f64, GK_PRECISION_EMULATED, GK_PLAN_AUTO, ampere), "double has none");
  EXPECT_HAS(refused(f32, GK_PRECISION_DEFAULT, GK_PLAN_MMA, ampere), "floats by GK_PRECISION_TF32");
  EXPECT_HAS(refused(f32, GK_PRECISION_TF32, HOOK_PLAN_TILE_64, ampere), "GK_PLAN_AUTO");
  EXPECT_HAS(refused(half_type, GK_PRECISION_DEFAULT, GK_PLAN_MMA, older), "sm_80");
  EXPECT_HAS(refused(half_type, GK_PRECISION_DEFAULT, GK_PLAN_WGMMA, ampere), "sm_90a");
  EXPECT_HAS(refused(half_type, GK_PRECISION_DEFAULT, GK_PLAN_MMA, hopper), "build the program for sm_90");
  EXPECT_EQ(std::string(refused(half_type, GK_PRECISION_DEFAULT, HOOK_PLAN_TILE_64, ampere)), std::string());
  device_array<float> a(std::vector<float>(64, 1.0f)), c(64);
  gk_matmul_opts o = gk_matmul_opts();
  o.plan = GK_PLAN_MMA;
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul: GK_PRECISION_DEFAULT, GK_PLAN_MMA: this plan is one of tensor cores",
               gk_matmul_ex(a.ptr, a.ptr, c.ptr, 8, 8, 8, &o));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul_plan: path is NULL",
               gk_matmul_plan(a.ptr, a.ptr, c.ptr, 8, 8, 8, &o, NULL));
  EXPECT(c.untouched());
}
