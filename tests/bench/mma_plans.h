/* The plans of mma.sync's kernels: those that the planner knows of a shape, and those that the bench measures. */
#ifndef BENCH_MMA_PLANS_H
#define BENCH_MMA_PLANS_H

#include "plans.h"

/* Gives *plans every plan of a shape, with its time by these costs of the type's tiles. */
template <class Plans>
void mma_each_plan(Plans *plans, const gk__mma_cost *costs, const plan_shape &shape, const gk__matmul_gpu &gpu) {
  if (shape.type == "emulated")
    gk__each_mma_plan<6, __nv_bfloat16>(plans, costs, {shape.m, shape.n, shape.k, 1, gpu});
  else if (shape.type == "tf32")
    gk__each_mma_plan<1, float>(plans, costs, {shape.m, shape.n, shape.k, 1, gpu});
  else
    gk__each_mma_plan<1, __half>(plans, costs, {shape.m, shape.n, shape.k, 1, gpu});
}
/* As it stands in a file. */
inline plan_time mma_plan_time(const gk__mma_plan &plan) {
  return {plan.config, static_cast<unsigned>(plan.partitions), 0};
}

/* What is measured of a shape: what the planner chooses by the header's costs, and then every tile with each of some
 * numbers of partitions, as far as these do not make more than 24 blocks for each multiprocessor. */
struct mma_plan_list {
  const gk__matmul_gpu gpu;
  gk__mma_cheapest cheapest;
  std::vector<gk__mma_plan> plans;
  void take(const gk__mma_plan &plan) {
    const size_t blocks_per_sm = 24, partitions[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    cheapest.take(plan);
    if (std::find(std::begin(partitions), std::end(partitions), plan.partitions) == std::end(partitions)) return;
    if (plan.partitions == 1 || plan.tiles * plan.partitions <= static_cast<size_t>(gpu.sms) * blocks_per_sm)
      plans.push_back(plan);
  }
};
inline std::vector<gk__mma_plan> mma_plans_to_measure(const plan_shape &shape, const gk__matmul_gpu &gpu) {
  mma_plan_list list = {gpu, {}, {}};
  mma_each_plan(&list, mma_tiles_of(shape.type).costs, shape, gpu);
  const gk__mma_plan &chosen = list.cheapest.plan;
  std::vector<gk__mma_plan> plans;
  if (chosen.config >= 0) plans.push_back(chosen);
  for (const gk__mma_plan &plan : list.plans)
    if (plan.config != chosen.config || plan.partitions != chosen.partitions) plans.push_back(plan);
  return plans;
}

#endif
