/* Products of few rows, or of few columns. */
#include "once.h"

#include "hooks.h"
#include "products.h"

TEST(thin_products) {
  for (size_t few : {1u, 2u, 4u, 5u})
    for (size_t many : {1u, 31u, 33u, 70u})
      for (size_t k : {127u, 128u, 130u, 511u, 1500u})
        for (int trans = 0; trans < 4; trans++) {
          problem p = problem_of(trans & 1 ? few : many, trans & 1 ? many : few, k);
          p.trans_a = trans & 1, p.trans_b = trans >> 1;
          p.shift = k % 3, p.pad_b = k % 4, p.batch = k % 2 + 1, p.beta = k % 2 ? 0.5 : 0;
          check<float, float>(p, {GK_PLAN_AUTO, HOOK_PLAN_TILE_64});
          if (trans == 2) check<double, double>(p, {GK_PLAN_AUTO});
          if (trans == 1) check<__half, float>(p, {GK_PLAN_AUTO});
          if (trans == 3) check<__nv_bfloat16, __nv_bfloat16>(p, {GK_PLAN_AUTO});
          if (trans == 0) check<__nv_bfloat16, float>(p, {GK_PLAN_AUTO});
        }
}

/* Columns in whole 16-byte words, a last block with few columns, and a partition of k that takes more steps than the
 * pipeline has stages. */
TEST(thin_products_of_whole_vectors) {
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
