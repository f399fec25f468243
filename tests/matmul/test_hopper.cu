/* Hopper's kernels: each wgmma tile, and matrices that TMA cannot address. */
#include "once.h"

#include "hooks.h"
#include "products.h"

#ifdef HOOK_WGMMA

static const hook_product_call on_132(NULL, 0, {132, 0, GK_PLAN_WGMMA}); /* multiprocessors */

template <class T> static void require_wgmma(gk_precision precision) {
  if (!has_plan<T, T>(precision, GK_PLAN_WGMMA)) SKIP("this is no Hopper, or the program has no code for sm_90a");
}

/* by_place, which counts its calls on the GPU: beyond a tile it would be called, too, where the next tile calls it. */
struct counted_by_place : by_place {
  unsigned *calls = NULL;
  template <class Acc> __host__ __device__ Acc operator()(Acc value, size_t row, size_t col) const {
#ifdef __CUDA_ARCH__
    atomicAdd(calls, 1u);
#endif
    return by_place::operator()(value, row, col);
  }
};
/* Checks how often a launch calls its functor, if that counts its calls. */
template <class Func> struct call_check {
  explicit call_check(Func *) {}
  void begin() {}
  void end(size_t) const {}
};
template <> struct call_check<counted_by_place> {
  device_array<unsigned> calls;
  explicit call_check(counted_by_place *func) : calls(1) { func->calls = calls.ptr; }
  void begin() { calls.set({0}); }
  void end(size_t expected) const { EXPECT(calls.get()[0] == expected); }
};

/* What the host computes for a functor of the epilogue. */
template <class Func>
using host_functor = typename std::conditional<std::is_same<Func, hook_identity>::value, identity_on_host, Func>::type;

/* Clusters that split k, that share operands, and that do both. */
static const hook_wgmma_cluster clusters[] = {{1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {4, 0, 0}, {5, 0, 0}, {6, 0, 0},
                                              {7, 0, 0}, {8, 0, 0}, {1, 1, 0}, {1, 0, 1}, {1, 1, 1}, {2, 1, 0},
                                              {2, 0, 1}, {3, 1, 0}, {2, 1, 1}, {1, 2, 0}, {1, 0, 2}, {2, 2, 0},
                                              {2, 0, 2}, {1, 2, 1}, {1, 1, 2}};

/* A tile that the planner may choose for TF32, with one K-major operand, and with split-K in clusters. If A is split,
 * the elements of the next row are NaN. */
template <class S, class Func>
static void check_tf32_tile(int trans, size_t m, size_t n, size_t k, size_t pad, unsigned split = 1,
                            unsigned mma_cols = S::most_cols) {
  const size_t batch = 2, ldc = n + static_cast<size_t>(trans);
  hook_tensor_args<float, float, Func> p = hook_tensor_args<float, float, Func>();
  /* One operand is K-major, and its rows may be unaligned if it is A. */
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
  p.a.split = split;
  p.b.data = on_b.ptr, p.b.leading_dim = ldb, p.b.stride_batch = stride_b, p.b.split = 1;
  p.c = c.ptr, p.ldc = ldc, p.stride_c = m * ldc, p.m = m, p.n = n, p.k = k, p.batch = batch, p.alpha = 2;
  std::vector<float> product(before), with_c(before);
  for (size_t q = 0; q < batch; q++)
    for (size_t i = 0; i < m; i++)
      for (size_t j = 0; j < n; j++) {
        float sum = 0;
        for (size_t l = 0; l < k; l++)
          sum += a[q * stride_a + (trans ? l * lda + i : i * lda + l)] *
                 b[q * stride_b + (trans ? j * ldb + l : l * ldb + j)];
        float &x = product[(q * m + i) * ldc + j], &y = with_c[(q * m + i) * ldc + j];
        const host_functor<Func> f = host_functor<Func>();
        x = f(2 * sum, i, j);
        y = f(2 * sum + y, i, j);
      }
  call_check<Func> calls(&p.func);
  const auto kernel = hook_wgmma_tile_kernel_of<S, float, float, Func>(mma_cols);
  for (const hook_wgmma_cluster &cluster : clusters)
    for (int beta = 0; beta < 2; beta++)
      for (size_t blocks : {0u, 1u, cluster.size()}) { /* no limit; too few to share operands; one cluster at once */
        if (test_leaves_out<S>(41) || !cluster.has_room(S::mma_rows * mma_cols, mma_cols)) continue;
        p.beta = static_cast<float>(beta), p.max_blocks = blocks;
        c.set(before);
        calls.begin();
        EXPECT_OK(hook_wgmma_launch(kernel, p, cluster, on_132));
        calls.end(batch * m * n);
        EXPECT_SAME(c.get(), beta ? with_c : product,
                    "%u rows, trans %d, %zu x %zu x %zu, pad %zu, split %u, cluster of %u x %u, k by %u, beta %d",
                    mma_cols, trans, m, n, k, pad, split, 1u << cluster.row_shift, 1u << cluster.col_shift,
                    cluster.partitions, beta);
      }
}

/* All sizes of the tiles of a kernel. */
template <class Tile, class Func> static void check_tf32_tiles() {
  typedef typename Tile::template shape<1, true> S;
  const auto tile = Tile::cost(1, true);
  for (unsigned i = 0; i < tile.option_count; i++) {
    const unsigned rows = tile.col_options[i];
    for (int trans = 0; trans < 2; trans++) {
      check_tf32_tile<S, Func>(trans, 4, 4, 4, 0, 1, rows);
      check_tf32_tile<S, Func>(trans, 132, 260, 100, 0, 1, rows);
      check_tf32_tile<S, Func>(trans, 384, 256, 320, 0, 1, rows);
      check_tf32_tile<S, Func>(trans, 256, 384, 160, 4, 1, rows);
      check_tf32_tile<S, Func>(trans, 67, 301, 96, 4, 1, rows);
      check_tf32_tile<S, Func>(trans, 5, 7, 4, 4, 1, rows);
    }
    check_tf32_tile<S, Func>(0, 384, 256, 320, 0, 8, rows);
    check_tf32_tile<S, Func>(0, 256, 384, 160, 1, 8, rows);
    check_tf32_tile<S, Func>(0, 67, 301, 99, 3, 8, rows);
    check_tf32_tile<S, Func>(0, 5, 7, 6, 1, 8, rows);
    check_tf32_tile<S, Func>(0, 8 * rows + 60, 12, 40, 5, 8, rows);
  }
}
template <class Func, class... Tiles> static void check_tf32_tiles(const hook_wgmma_tiles<1, true, Tiles...> &) {
  const int checked[] = {(check_tf32_tiles<Tiles, Func>(), 0)...};
  (void)checked;
}

TEST(the_tiles_of_tf32_in_registers) {
  require_wgmma<float>(GK_PRECISION_TF32);
  check_tf32_tiles<hook_identity>(hook_wgmma_tile_set<1, float>::register_tiles());
  check_tf32_tiles<counted_by_place>(hook_wgmma_tile_set<1, float>::register_tiles());
  /* A k of so many stages that each launch has one wave of tiles. */
  typedef hook_wgmma_shape<1, true, 128, 2, hook_wgmma_cols<64>> small_shape;
  for (int trans = 0; trans < 2; trans++) check_tf32_tile<small_shape, hook_identity>(trans, 68, 132, 24580, 0);
}

/* A tile of Hopper's kernel, most of which the planner chooses only for products that take long to check. C is stored
 * by TMA, or by threads if its rows are odd or there is a beta, with which they load it first. The last tiles are
 * partial, and blocks compute several tiles. A split A is two strided matrices of aligned rows if B is K-major, too,
 * and otherwise sixteen. Func is the functor of the epilogue; emulated fp32 has three terms of each operand. */
template <class S, class E, class O, class Func>
static void check_tile(unsigned mma_cols, int trans, bool odd, bool has_beta, bool splits) {
  const bool along_a = !(trans & 1), along_b = trans >> 1;
  const size_t split = !splits ? 1 : along_b ? 2 : 16, terms = S::terms;
  const size_t m = S::mma_rows * (split == 2 ? 2 : 1) + 26, n = mma_cols + 40 + odd, k = 201, batch = 2;
  const size_t ldc = n + odd * 2, shift = odd * 3, shift_a = split > 2 ? 3 : 0;
  const size_t rows_a = along_a ? m : k, rows_b = along_b ? n : k;
  /* Two rows apart are a multiple of 32 bytes, one row is not; or no row is aligned; or each one. */
  const size_t lda = split == 2  ? (gk_round_up(k * sizeof(E), size_t(32)) + 16) / sizeof(E)
                     : split > 2 ? k + 2
                                 : gk_round_up(along_a ? k : m, size_t(8)),
               ldb = gk_round_up(along_b ? k : n, size_t(8));
  const size_t term_a = rows_a * lda, term_b = batch * rows_b * ldb; /* elements */
  const int most = sizeof(O) == 2 ? 1 : 3;
  std::vector<E> a = not_numbers<E>(shift_a + terms * term_a), b = not_numbers<E>(terms * term_b);
  std::vector<O> before = not_numbers<O>(batch * m * ldc + shift), expected(before);
  const auto at_a = [&](size_t term, size_t i, size_t l) {
    return shift_a + term * term_a + (along_a ? i * lda + l : l * lda + i);
  };
  const auto at_b = [&](size_t term, size_t q, size_t j, size_t l) {
    return term * term_b + q * rows_b * ldb + (along_b ? j * ldb + l : l * ldb + j);
  };
  for (size_t term = 0; term < terms; term++)
    for (size_t l = 0; l < k; l++) {
      for (size_t i = 0; i < m; i++) a[at_a(term, i, l)] = make<E>(uniform(66 + 10 * term, i * k + l, -most, most));
      for (size_t q = 0; q < batch; q++)
        for (size_t j = 0; j < n; j++)
          b[at_b(term, q, j, l)] = make<E>(uniform(67 + 10 * term + q, l * n + j, -most, most));
    }
  for (size_t q = 0; q < batch; q++)
    for (size_t i = 0; i < m; i++) {
      std::vector<float> sums(n);
      for (size_t l = 0; l < k; l++)
        for (size_t term = 0; term < terms; term++) {
          const float x = static_cast<float>(plain(a[at_a(term, i, l)]));
          for (size_t other = 0; term + other < terms; other++) /* the smallest products are left out */
            for (size_t j = 0; j < n; j++) sums[j] += x * static_cast<float>(plain(b[at_b(other, q, j, l)]));
        }
      for (size_t j = 0; j < n; j++) {
        const size_t at = shift + (q * m + i) * ldc + j;
        if (has_beta) before[at] = make<O>(uniform(69, at, -8, 8));
        const float sum = static_cast<float>(sums[j] + (has_beta ? 2 * plain(before[at]) : 0));
        expected[at] = make<O>(static_cast<double>(host_functor<Func>()(sum, i, j)));
      }
    }
  device_array<E> device_a(a), device_b(b);
  device_array<O> c(before);
  hook_tensor_args<E, O, Func> p = hook_tensor_args<E, O, Func>();
  p.a.data = device_a.ptr + shift_a, p.a.leading_dim = lda, p.a.k_major = along_a, p.a.stride_term = term_a,
  p.a.split = static_cast<unsigned>(split);
  p.b.data = device_b.ptr, p.b.leading_dim = ldb, p.b.k_major = along_b, p.b.stride_batch = rows_b * ldb,
  p.b.stride_term = term_b, p.b.split = 1;
  p.c = c.ptr + shift, p.ldc = ldc, p.stride_c = m * ldc, p.m = m, p.n = n, p.k = k, p.batch = batch;
  p.alpha = 1, p.beta = has_beta ? 2.0f : 0.0f;
  call_check<Func> calls(&p.func);
  const auto kernel = hook_wgmma_tile_kernel_of<S, E, O, Func>(mma_cols);
  for (const hook_wgmma_cluster &cluster : clusters) {
    if (test_leaves_out<S>(41) || !cluster.has_room(S::mma_rows * mma_cols, mma_cols)) continue;
    /* One cluster computes all tiles; and so many as share the multiprocessors that one cluster has. */
    const unsigned size = cluster.size();
    unsigned sms = size;
    while (hook_clusters_at_once(sms + 1, size) < 2) sms++;
    const hook_product_call on_few(NULL, 0, {static_cast<int>(sms), 0, GK_PLAN_WGMMA});
    for (const bool shares : {false, true}) {
      p.max_blocks = shares ? 0 : size;
      c.set(before);
      calls.begin();
      EXPECT_OK(hook_wgmma_launch(kernel, p, cluster, shares ? on_few : on_132));
      calls.end(batch * m * n);
      EXPECT_SAME(c.get(), expected,
                  "%zu terms, %d x %u, cluster of %u x %u, k by %u, shares %d, trans %d, odd %d, beta %d, split %zu",
                  terms, S::mma_rows, mma_cols, 1u << cluster.row_shift, 1u << cluster.col_shift, cluster.partitions,
                  shares, trans, odd, has_beta, split);
    }
  }
}
/* All sizes of the tiles of a kernel. For tf32 both operands are K-major; the terms of emulated fp32 are not split. */
template <class Tile, int Products, class E, class O, class Func> static void check_tile() {
  const auto tile = Tile::cost(Products, false);
  typedef typename Tile::template shape<Products, false> S;
  for (unsigned i = 0; i < tile.option_count; i++)
    for (int trans = 0; trans < 4; trans++)
      for (int c = 0; c < 4; c++) {
        if (std::is_same<E, float>::value && trans != 2) continue;
        check_tile<S, E, O, Func>(tile.col_options[i], trans, c % 2, c / 2, false);
        if (trans % 2 == 0 && S::terms == 1) check_tile<S, E, O, Func>(tile.col_options[i], trans, c % 2, c / 2, true);
      }
}

template <class E, class O, class Func, int Products, class... Tiles>
static void check_tiles(const hook_wgmma_tiles<Products, false, Tiles...> &) {
  const int checked[] = {(check_tile<Tiles, Products, E, O, Func>(), 0)...};
  (void)checked;
}

TEST(the_tiles_of_half_types) {
  require_wgmma<__half>(GK_PRECISION_DEFAULT);
  const hook_wgmma_tile_set<1, __half> tiles = {};
  check_tiles<__half, __half, hook_identity>(tiles);
  check_tiles<__nv_bfloat16, float, counted_by_place>(tiles);
}
TEST(the_tiles_of_tf32_in_shared_memory) {
  require_wgmma<float>(GK_PRECISION_TF32);
  check_tiles<float, float, hook_identity>(hook_wgmma_tile_set<1, float>::k_major_tiles());
}
TEST(the_tiles_of_emulated_fp32) {
  require_wgmma<float>(GK_PRECISION_EMULATED);
  check_tiles<__nv_bfloat16, float, hook_identity>(hook_wgmma_tile_set<6, __nv_bfloat16>());
}

/* The ring of a block is at least double-buffered, and has room for the partials of a cluster that splits k. */
template <class Tile, int Products, bool InRegisters, class E> static void check_ring() {
  typedef typename Tile::template shape<Products, InRegisters> S;
  const auto tile = Tile::cost(Products, InRegisters);
  for (unsigned i = 0; i < tile.option_count; i++) {
    const auto kernel = hook_wgmma_tile_kernel_of<S, E, float, hook_identity>(tile.col_options[i]);
    for (unsigned blocks = 1; blocks <= kernel.resident; blocks++) {
      EXPECT(kernel.stages(blocks) >= 2);
      EXPECT(kernel.stages(blocks) * kernel.stage_bytes >= S::mma_rows * kernel.mma_cols * sizeof(float));
    }
  }
}
template <class E, int Products, bool InRegisters, class... Tiles>
static void check_rings(const hook_wgmma_tiles<Products, InRegisters, Tiles...> &) {
  const int checked[] = {(check_ring<Tiles, Products, InRegisters, E>(), 0)...};
  (void)checked;
}
TEST(rings_of_stages) {
  check_rings<__half>(hook_wgmma_tile_set<1, __half>());
  check_rings<float>(hook_wgmma_tile_set<1, float>::k_major_tiles());
  check_rings<float>(hook_wgmma_tile_set<1, float>::register_tiles());
  check_rings<__nv_bfloat16>(hook_wgmma_tile_set<6, __nv_bfloat16>());
}

/* Clusters that have tiles beyond C in both directions. The blocks of these must not run ahead of the others because
 * they have nothing to load: about one of a hundred launches did not end. There is a beta, because without one a tile
 * begins in C. With it launches give A B and zeros in turn. */
TEST(a_tile_of_a_cluster_beyond_c) {
  require_wgmma<__half>(GK_PRECISION_DEFAULT);
  const size_t m = 1312, n = 160, k = 3680;
  std::vector<__half> a(k * m), b(k * n);
  for (size_t i = 0; i < a.size(); i++) a[i] = make<__half>(uniform(71, i, -2, 2));
  for (size_t i = 0; i < b.size(); i++) b[i] = make<__half>(uniform(72, i, -2, 2));
  device_array<__half> device_a(a), device_b(b), c(m * n);
  hook_tensor_args<__half, __half> p = hook_tensor_args<__half, __half>();
  p.a.data = device_a.ptr, p.a.leading_dim = m, p.a.split = 1; /* both MN-major */
  p.b.data = device_b.ptr, p.b.leading_dim = n, p.b.split = 1;
  p.c = c.ptr, p.ldc = n, p.m = m, p.n = n, p.k = k, p.batch = 1, p.alpha = 1, p.beta = -1;
  typedef hook_wgmma_shape<1, false, 64, 3, hook_wgmma_cols<64>> shape;
  const auto kernel = hook_wgmma_tile_kernel_of<shape, __half, __half, hook_identity>(64);
  const hook_wgmma_cluster one_tile = {1, 0, 0}, several[] = {{1, 1, 1}, {1, 2, 1}, {1, 1, 2}};
  c.set(std::vector<__half>(m * n));
  EXPECT_OK(hook_wgmma_launch(kernel, p, one_tile, on_132));
  const std::vector<__half> expected = c.get();
  for (const hook_wgmma_cluster &cluster : several)
    for (int round = 0; round < 10; round++) {
      c.set(std::vector<__half>(m * n));
      for (int i = 0; i < 301; i++) EXPECT_OK(hook_wgmma_launch(kernel, p, cluster, on_132));
      EXPECT_SAME(c.get(), expected, "cluster of %u, round %d", cluster.size(), round);
    }
}

#endif

/* Floats whose rows TMA cannot address: every offset of a row from 16 bytes, several tiles and steps of k, both orders
 * in memory, and operands of few rows. */
TEST(rows_at_any_address) {
  for (size_t shift = 0; shift < 4; shift++)
    for (int trans = 0; trans < 4; trans++) {
      const size_t k[] = {100, 45, 16, 3}; /* the last is for other kernels */
      problem p = problem_of(132, 260, k[shift]);
      p.trans_a = trans & 1, p.trans_b = trans >> 1;
      p.shift = shift, p.pad_a = 1 + shift, p.pad_b = 5 - shift;
      if (shift == 2) p.m = 2, p.n = 1;
      if (shift == 1) p.batch = 2, p.one_b = trans == 3;
      check<float, float>(p, {GK_PLAN_AUTO, HOOK_PLAN_HOPPER_128, HOOK_PLAN_HOPPER_64_128, HOOK_PLAN_HOPPER_128_64});
    }
}

/* A C of one row may have any leading dimension. */
TEST(a_leading_dimension_past_what_tma_can_address) {
  const size_t n = on_cpu ? 1024 : 32768, k = 64; /* enough for TMA */
  const std::vector<gk_plan> plans = require_plans<__half, __half>(GK_PRECISION_DEFAULT);
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
