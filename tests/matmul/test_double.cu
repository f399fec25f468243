/* Products of doubles, on tensor cores where the GPU has them for doubles. */
#include "once.h"

#include "hooks.h"
#include "products.h"

TEST(random_problems_f64) { check_random<double, double>(100, 30); }

/* Enough tiles for the persistent kernel: several for each block, cut at both edges, and with k of less than a step,
 * of several, and not a multiple of one. */
TEST(doubles_of_many_tiles) {
  const size_t m = on_cpu ? 262 : 2070; /* the stand-in has no persistent kernel */
  for (size_t k : {1u, 16u, 37u, 130u})
    for (int trans = k % 2; trans < 4; trans += 2) {
      problem p = problem_of(m, 581 - k % 2, k);
      p.trans_a = trans & 1, p.trans_b = trans >> 1;
      p.shift = k % 3, p.pad_a = static_cast<size_t>(trans), p.pad_c = static_cast<size_t>(k % 2);
      if (trans == 1) p.alpha = -0.5, p.beta = 2.25;
      check<double, double>(
          p, {GK_PLAN_AUTO, HOOK_PLAN_TILE_32, HOOK_PLAN_HOPPER_32_64, HOOK_PLAN_HOPPER_64, HOOK_PLAN_HOPPER_64_128});
    }
  problem p = problem_of(100, 60, 45);
  p.batch = 300, p.one_b = true, p.gap_c = 3;
  check<double, double>(p, {GK_PLAN_AUTO, HOOK_PLAN_TILE_32_64, HOOK_PLAN_HOPPER_32_64, HOOK_PLAN_HOPPER_64});
}
