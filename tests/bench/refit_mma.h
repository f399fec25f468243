/* Fits the costs of mma.sync's tiles (gk__mma_cost) to measured times of plans (plans.h): refit.h says how.
 * Each type has a table; the numbers of a tile are a group of the search. */
#ifndef BENCH_REFIT_MMA_H
#define BENCH_REFIT_MMA_H

#include "mma_plans.h"
#include "refit.h"

/* --- A table, and what it is worth --------------------------------------------------------------------------------*/

struct refit_mma_table {
  gk__reduce_costs reduce; /* common to all products, and fitted to strict ones (refit.h) */
  std::vector<gk__mma_cost> tiles;
};
inline refit_mma_table refit_mma_header(const std::string &type) {
  const mma_tile_list tiles = mma_tiles_of(type);
  return {gk__measured_reduce_costs(), {tiles.costs, tiles.costs + tiles.count}};
}
/* What is fitted of a tile. The blocks of an SM are a fact, and stay. */
enum { REFIT_MMA_NUMBERS = 4 };
inline double *refit_mma_number(refit_mma_table *table, size_t i) {
  gk__mma_cost &cost = table->tiles[i / REFIT_MMA_NUMBERS];
  double *const numbers[] = {&cost.stage, &cost.stage_rate, &cost.start, &cost.split};
  return numbers[i % REFIT_MMA_NUMBERS];
}

struct refit_mma_shape {
  plan_times times;
  gk__matmul_gpu gpu;
};
struct refit_mma_data {
  std::vector<refit_mma_shape> fitted, checked;
};
/* Adds a file's shapes of a type. */
inline void refit_mma_add(refit_mma_data *data, const plan_file &file, const std::string &type) {
  const gk__matmul_gpu gpu = {file.sms(), file.smem_limit(), GK_PLAN_MMA};
  size_t count = 0;
  for (const plan_times &times : file.shapes) {
    if (times.shape.type != type) continue;
    (count % 2 ? data->checked : data->fitted).push_back({times, gpu});
    count++;
  }
}

/* The estimates of a shape's plans by a table; 0: the planner has no such plan. */
struct refit_mma_estimates {
  const refit_mma_table &table;
  const plan_shape &shape;
  double us[MMA_TILE_COUNT][GK__MATMUL_PARTITIONS + 1];
  gk__mma_cheapest cheapest;
  double reduction_us(const gk__reduce_costs &costs, size_t partitions) const {
    return gk__reduction_us(costs, shape.m, shape.n, 1, static_cast<unsigned>(partitions));
  }
  /* The header's costs of the reduction are in the plan's time. */
  void take(gk__mma_plan plan) {
    plan.cost +=
        reduction_us(table.reduce, plan.partitions) - reduction_us(gk__measured_reduce_costs(), plan.partitions);
    us[plan.config][plan.partitions] = plan.cost;
    cheapest.take(plan);
  }
  double of(const plan_time &plan) const {
    return plan.partitions <= GK__MATMUL_PARTITIONS ? us[plan.tile_idx][plan.partitions] : 0;
  }
};
inline refit_mma_estimates refit_mma_estimate(const refit_mma_table &table, const refit_mma_shape &shape) {
  refit_mma_estimates estimates = {table, shape.times.shape, {}, {}};
  mma_each_plan(&estimates, table.tiles.data(), shape.times.shape, shape.gpu);
  return estimates;
}
inline refit_choice refit_choose(const refit_mma_table &table, const refit_mma_shape &shape) {
  const refit_mma_estimates estimates = refit_mma_estimate(table, shape);
  refit_choice choice = {HUGE_VAL, HUGE_VAL, 0, false};
  double least = HUGE_VAL, count = 0;
  for (const plan_time &plan : shape.times.plans) {
    const double us = estimates.of(plan);
    choice.best_us = plan.us < choice.best_us ? plan.us : choice.best_us;
    if (us <= 0) continue;
    choice.error += fabs(log(us / plan.us));
    count++;
    if (us >= least) continue;
    least = us;
    choice.taken_us = plan.us;
  }
  if (count > 0) choice.error /= count;
  choice.is_measured = least <= estimates.cheapest.plan.cost;
  return choice;
}

/* --- The fit ------------------------------------------------------------------------------------------------------*/

/* From the table `start`, the best of three searches by simulated annealing and of as many steps downhill. Numbers that
 * make no difference stay. All have three digits after the point, as in the header. */
inline refit_mma_table refit_mma_fit(const refit_mma_table &start, const std::vector<refit_mma_shape> &shapes,
                                     int steps) {
  const double smallest = 0.001, heat = 0.06, of_errors = 0.01, of_squares = 2;
  const size_t number_count = start.tiles.size() * REFIT_MMA_NUMBERS;
  refit_mma_table table = start;
  std::vector<refit_number> numbers;
  for (size_t i = 0; i < number_count; i++) numbers.push_back({*refit_mma_number(&table, i), i / REFIT_MMA_NUMBERS});
  const auto take = [&](const std::vector<refit_number> &all) {
    for (size_t i = 0; i < number_count; i++) *refit_mma_number(&table, i) = all[i].value;
  };
  const auto badness = [&](const std::vector<refit_number> &all) {
    take(all);
    return refit_badness(table, shapes, 0, of_errors, of_squares);
  };
  std::vector<refit_number> best = numbers;
  double least = badness(numbers);
  for (uint64_t seed = 1; seed <= 3; seed++) {
    const std::vector<refit_number> found =
        refit_search(refit_search(numbers, smallest, steps, badness, seed, heat), smallest, steps, badness, seed);
    const double badness_of_found = badness(found);
    if (badness_of_found < least) least = badness_of_found, best = found;
  }
  for (size_t i = 0; i < number_count; i++) {
    std::vector<refit_number> with_old = best;
    with_old[i].value = numbers[i].value;
    if (badness(with_old) <= least) best = with_old;
  }
  take(best);
  for (size_t i = 0; i < number_count; i++) {
    double *const number = refit_mma_number(&table, i);
    *number = static_cast<double>(lround(*number * 1000)) / 1000;
  }
  return table;
}

/* As it stands in the header, but for the line breaks, which `make format` makes. */
inline std::string refit_mma_initialiser(const refit_mma_table &table) {
  std::string text = "    static const gk__mma_cost of_configs[] = {";
  for (size_t i = 0; i < table.tiles.size(); i++) {
    const gk__mma_cost &cost = table.tiles[i];
    char row[120];
    snprintf(row, sizeof(row), "%s{%.3f, %.3f, %.3f, %.3f, %u}", i ? ", " : "", cost.stage, cost.stage_rate, cost.start,
             cost.split, cost.blocks);
    text += row;
  }
  return text + "};\n";
}

#endif
