/* Each tile of the mma.sync kernels, with split-K partitions. */
#include "once.h"

#include "hooks.h"
#include "products.h"

/* The configurations for which this GPU has the shared memory. */
struct mma_configs {
  bool fit[3];
  void take(const hook_mma_plan &plan) { fit[plan.config] = true; }
};

/* A tile of the mma.sync kernels for each number of split-K partitions, with room for the partials of one product of
 * the batch or of all. Elements are integers, so that sums are exact in any order. Where an element is split into three
 * parts (Products = 6), the parts whose indices add up to at most 2 are multiplied. */
template <int Products, class Config, class E, class O>
static void check_mma_tile(int config, int trans, size_t stage_count, std::initializer_list<size_t> partition_counts) {
  const size_t m = Config::bm + 8, n = 72, k = stage_count * HOOK_STAGE_ROW_BYTES / sizeof(E) - 8, batch = 2;
  const size_t parts = Products == 6 ? 3 : 1, part_a = batch * m * k, part_b = batch * n * k;
  const size_t odd_n = n - 1, ldc = odd_n + (trans ? 2 : 0); /* rows of C need no alignment */
  hook_tensor_args<E, O> p = hook_tensor_args<E, O>();
  std::vector<E> a(parts * part_a), b(parts * part_b);
  p.a.k_major = !(trans & 1), p.b.k_major = trans >> 1;
  for (size_t i = 0; i < a.size(); i++) a[i] = make<E>(uniform(64, i, -3, 3));
  for (size_t i = 0; i < b.size(); i++) b[i] = make<E>(uniform(65, i, -3, 3));
  device_array<E> device_a(a), device_b(b);
  p.a.data = device_a.ptr, p.a.leading_dim = p.a.k_major ? k : m, p.a.stride_batch = m * k;
  p.a.stride_term = part_a, p.b.stride_term = part_b;
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
        for (size_t pair = 0; pair < parts * parts; pair++) {
          const size_t i_a = pair / parts, i_b = pair % parts;
          if (i_a + i_b >= parts) continue;
          for (size_t l = 0; l < k; l++)
            sum += static_cast<float>(plain(a[i_a * part_a + q * m * k + (p.a.k_major ? i * k + l : l * m + i)])) *
                   static_cast<float>(plain(b[i_b * part_b + q * n * k + (p.b.k_major ? j * k + l : l * n + j)]));
        }
        O &to = expected[(q * m + i) * ldc + j];
        to = make<O>(static_cast<double>(2 * sum + p.beta * static_cast<float>(plain(to))));
      }
  device_array<O> c(before);
  p.c = c.ptr;
  const size_t tiles = gk_ceil_div(m, size_t(Config::bm)) * gk_ceil_div(odd_n, size_t(Config::bn)) * batch;
  const size_t begin = HOOK_STATE_BYTES + HOOK_REDUCE_BYTES;
  const hook_matmul_gpu gpu = this_gpu();
  mma_configs configs = {{}};
  hook_each_mma_plan<Products, E>(&configs, hook_mma_tiles<Products, E>::costs(), {m, odd_n, k, batch, gpu});
  if (!configs.fit[config]) return;
  size_t run = static_cast<size_t>(trans);
  for (size_t partitions : partition_counts) {
    const size_t max_blocks = run++ % 3 * 3; /* 0, 3, 6 */
    if (test_leaves_out<Config>()) continue;
    const size_t partial_bytes = partitions > 1 ? partitions * m * hook_partial_ld(odd_n) * sizeof(float) : 0;
    const size_t room = partial_bytes * (max_blocks ? 1 : batch);
    const hook_mma_plan plan = {config, tiles, partitions, partial_bytes, 0};
    test_scratch scratch(begin + room);
    hook_product_call call(max_blocks == 6 ? NULL : &scratch, 0);
    if (partial_bytes) call.measure(partial_bytes, batch);
    EXPECT_OK(call.begin());
    p.max_blocks = max_blocks;
    c.set(before);
    EXPECT_OK(call.end(hook_mma_run<Products>(p, plan, &call)));
    EXPECT_SAME(c.get(), expected, "tile %d, trans %d, %zu partitions, max_blocks %zu", config, trans, partitions,
                max_blocks);
    EXPECT_EQ(scratch.bytes_not_zero(begin, room), size_t(0));
  }
}

template <class E, class O> static void check_mma_tiles(int trans) {
  typedef hook_mma_tiles<1, E> tiles;
  typedef typename tiles::template large<HOOK_K_MAJOR, HOOK_K_MAJOR> large;
  check_mma_tile<1, large, E, O>(HOOK_LARGE_TILE, trans, 3, {1, 2, 3});
  check_mma_tile<1, typename tiles::small_config, E, O>(HOOK_SMALL_TILE, trans, 9, {1, 2, 3, 5, 9});
  if (tiles::config_count > HOOK_MIDDLE_TILE)
    check_mma_tile<1, typename tiles::middle_config, E, O>(HOOK_MIDDLE_TILE, trans, 6, {1, 3});
}

TEST(tiles_of_mma_sync) {
  if (!has_plan<__half, float>(GK_PRECISION_DEFAULT, GK_PLAN_MMA))
    SKIP("no tensor cores, or code for sm_90a, which refuses GK_PLAN_MMA");
  check_mma_tiles<__half, float>(0);
  check_mma_tiles<__half, float>(3);
  if (!has_plan<float, float>(GK_PRECISION_TF32, GK_PLAN_MMA)) return;
  check_mma_tiles<float, float>(1);
  check_mma_tiles<float, float>(2);
}

TEST(the_large_tile_of_emulated_products) {
  if (!has_plan<float, float>(GK_PRECISION_EMULATED, GK_PLAN_MMA))
    SKIP("no tensor cores, or code for sm_90a, which refuses GK_PLAN_MMA");
  typedef hook_mma_tiles<6, __nv_bfloat16>::large<HOOK_K_MAJOR, HOOK_K_MAJOR> large;
  check_mma_tile<6, large, __nv_bfloat16, float>(HOOK_LARGE_TILE, 2, 3, {1, 2, 3});
}
