/* Batches of small products. */
#include "once.h"

#include "hooks.h"
#include "products.h"

/* The kernel whose warps each compute whole tiles: one tile for each product or several, with tiles cut at both edges;
 * half a step of k, one, two and more; warps with several tiles, one, or none. */
TEST(batches_of_tiles) {
  const size_t edges[][2] = {{64, 64}, {61, 52}, {128, 60}, {100, 124}, {3, 8}};
  for (const auto &edge : edges)
    for (size_t k : {8u, 16u, 24u, 40u}) {
      problem p = problem_of(edge[0], edge[1], k);
      p.batch = edge[0] > 64 ? 5 : 11, p.max_blocks = 1;
      check<float, float>(p, {GK_PLAN_AUTO, HOOK_PLAN_TILE_64});
      p.pad_a = 4, p.pad_b = 8, p.pad_c = k == 16 ? 3 : 4, p.shift = 4, p.gap_c = k == 16 ? 5 : 8;
      p.one_a = k == 16, p.one_b = k == 24, p.alpha = -0.5, p.beta = 2.25;
      check<float, float>(p, {GK_PLAN_AUTO});
    }
  problem p = problem_of(64, 64, 8);
  p.batch = 3, p.max_blocks = 1; /* too few products for it */
  check<float, float>(p, {GK_PLAN_AUTO});
  p.batch = 20, p.k = 12; /* not a multiple of 8 */
  check<float, float>(p, {GK_PLAN_AUTO});
  p.k = 8, p.shift = 1; /* not aligned */
  check<float, float>(p, {GK_PLAN_AUTO});
  p.shift = 0, p.max_blocks = 2;
  check<float, float>(p, {GK_PLAN_AUTO});
  p = problem_of(130, 188, 24); /* nine tiles each, for eight warps */
  p.batch = 7, p.max_blocks = 1;
  check<float, float>(p, {GK_PLAN_AUTO});
  p = problem_of(62, 124, 328); /* k is too long for it, and is split */
  p.batch = 8, p.max_blocks = 1, p.pad_c = 8, p.gap_c = 4;
  check<float, float>(p, {GK_PLAN_AUTO});
  p.beta = 0.5;
  check<float, float>(p, {GK_PLAN_AUTO});
  p.beta = 0, p.alpha = -0.5;
  check<float, float>(p, {GK_PLAN_AUTO});
}
