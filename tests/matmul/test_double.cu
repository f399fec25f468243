/* Products of doubles, on tensor cores where the GPU has them for doubles. */
#include "once.h"

#include "hooks.h"
#include "products.h"

TEST(random_problems_f64) { check_random<double, double>(100, 30); }

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
  check<double, double>(p, {GK_PLAN_AUTO, HOOK_PLAN_TILE_32_64});
}
