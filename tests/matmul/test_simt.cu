/* Strict products of floats and half types by the kernels of tiles, compared bit by bit with FMAs in the order that the
 * library documents. */
#include "once.h"

#include "hooks.h"
#include "products.h"

TEST(random_problems_f32) { check_random<float, float>(0, 60); }
TEST(random_problems_f16) { check_random<__half, __half>(200, 30); }
TEST(random_problems_f16_f32) { check_random<__half, float>(300, 30); }
TEST(random_problems_bf16) { check_random<__nv_bfloat16, __nv_bfloat16>(400, 20); }
TEST(random_problems_bf16_f32) { check_random<__nv_bfloat16, float>(500, 20); }

/* Sizes around each tile's rows, columns and depth, with all transpositions. */
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
      check<float, float>(p, {HOOK_PLAN_TILE_32, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128});
      check<__half, __half>(p, {HOOK_PLAN_TILE_32, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128});
      check<double, double>(p, {HOOK_PLAN_TILE_64});
    }
}

TEST(larger) {
  check<float, float>(problem_of(300, 517, 1031), {GK_PLAN_AUTO, HOOK_PLAN_TILE_64_128});
  check<double, double>(problem_of(200, 257, 511), {GK_PLAN_AUTO});
  problem p = problem_of(1100, 70, 33); /* more than eight rows of tiles: several raster groups */
  check_all_plans<float, float>(p);
  p = problem_of(40, 1500, 33);
  p.batch = 3;
  check_all_plans<float, float>(p);
}

/* GK_PLAN_SIMT gives the strict product, whatever the type. */
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
