/* Fits the costs of mma.sync's tiles (gk__mma_cost) to measured times of plans (plans.h), and says what the choices by a
 * table lose. Plain C++: nothing here needs a GPU. Include gpukit.cuh first.
 *
 * Each type has a table. Every other shape of a type is fitted to; the others say what the result is worth. The fit is a random search: a step multiplies one number, all numbers of a tile, or each of
 * them by another random factor, and stays where the sum of two figures is smaller: what the choices lose, and a tenth
 * of how far the estimates are off. */
#ifndef BENCH_REFIT_MMA_H
#define BENCH_REFIT_MMA_H

#include "mma_plans.h"
#include "random.h"

/* --- A table, and what it is worth --------------------------------------------------------------------------------*/

struct refit_mma_table {
  gk__reduce_costs reduce; /* common to all products, and fitted to strict ones (refit.h) */
  std::vector<gk__mma_cost> tiles;
};
inline refit_mma_table refit_mma_header(const std::string &type) {
  return {gk__measured_reduce_costs(), {mma_costs(type), mma_costs(type) + MMA_TILE_COUNT}};
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
    plan.microseconds +=
        reduction_us(table.reduce, plan.partitions) - reduction_us(gk__measured_reduce_costs(), plan.partitions);
    us[plan.config][plan.partitions] = plan.microseconds;
    cheapest.take(plan);
  }
  double of(const plan_time &plan) const {
    return plan.partitions <= GK__MATMUL_PARTITIONS ? us[plan.tile_idx][plan.partitions] : 0;
  }
};
inline refit_mma_estimates refit_mma_estimate(const refit_mma_table &table, const refit_mma_shape &shape) {
  refit_mma_estimates estimates = {table, shape.times.shape, {}, {{-1, 0, 0, 1, 0, 0}}};
  mma_each_plan(&estimates, table.tiles.data(), shape.times.shape, shape.gpu);
  return estimates;
}
/* Of the plans that were measured the best, and the one that a table takes for the best (HUGE_VAL: none of them is the
 * planner's). `error`: how far the estimates are off, as the mean of |log(estimate / time)|. `is_measured`: of all plans
 * the table would choose that one, too. */
struct refit_mma_choice {
  double best_us, taken_us, error;
  bool is_measured;
};
inline refit_mma_choice refit_mma_choose(const refit_mma_table &table, const refit_mma_shape &shape) {
  const refit_mma_estimates estimates = refit_mma_estimate(table, shape);
  refit_mma_choice choice = {HUGE_VAL, HUGE_VAL, 0, false};
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
  choice.is_measured = least <= estimates.cheapest.plan.microseconds;
  return choice;
}

/* What the choices lose against the best measured plans: the share of the time that these would save. */
struct refit_mma_losses {
  size_t shapes, not_measured;
  double error, mean, percentile_95, worst;
  std::string worst_at;
};
inline refit_mma_losses refit_mma_losses_by(const refit_mma_table &table, const std::vector<refit_mma_shape> &shapes) {
  refit_mma_losses result = {shapes.size(), 0, 0, 0, 0, 0, ""};
  std::vector<double> losses;
  for (const refit_mma_shape &one : shapes) {
    const refit_mma_choice choice = refit_mma_choose(table, one);
    const plan_shape &shape = one.times.shape;
    result.not_measured += !choice.is_measured;
    if (choice.taken_us == HUGE_VAL) continue;
    const double loss = 1 - choice.best_us / choice.taken_us;
    losses.push_back(loss);
    result.mean += loss;
    result.error += choice.error;
    if (losses.size() > 1 && loss <= result.worst) continue;
    result.worst = loss;
    result.worst_at =
        shape.type + " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
  }
  if (losses.empty()) return result;
  std::sort(losses.begin(), losses.end());
  result.mean /= static_cast<double>(losses.size());
  result.error /= static_cast<double>(losses.size());
  result.percentile_95 = losses[losses.size() * 95 / 100];
  return result;
}

/* --- The fit ------------------------------------------------------------------------------------------------------*/

/* Shapes of which no measured plan is the planner's have no part in it. */
inline double refit_mma_badness(const refit_mma_table &table, const std::vector<refit_mma_shape> &shapes) {
  double sum = 0;
  for (const refit_mma_shape &shape : shapes) {
    const refit_mma_choice choice = refit_mma_choose(table, shape);
    if (choice.taken_us < HUGE_VAL) sum += log(choice.taken_us / choice.best_us) + 0.1 * choice.error;
  }
  return sum;
}
inline double refit_mma_random(random_numbers *draw) { /* between -1 and 1 */
  return static_cast<double>(draw->below(1 << 20)) * 0x1p-19 - 1;
}
/* From the table `start`, this many steps. The numbers have three digits after the point, as in the header. */
inline refit_mma_table refit_mma_fit(const refit_mma_table &start, const std::vector<refit_mma_shape> &shapes,
                                     int steps) {
  const double widest = 1, narrowest = 0.002, smallest = 0.001;
  const size_t number_count = start.tiles.size() * REFIT_MMA_NUMBERS;
  refit_mma_table best = start;
  double least = refit_mma_badness(best, shapes);
  random_numbers draw = random_from(1);
  /* Of the logs of the factors, for each number and kind of step. */
  std::vector<double> widths(number_count * 3, widest);
  for (int step = 0; step < steps; step++) {
    const size_t i = draw.below(number_count), kind = step % 2 ? 0 : 1 + draw.below(2);
    const size_t first = i / REFIT_MMA_NUMBERS * REFIT_MMA_NUMBERS;
    double &width = widths[kind * number_count + i];
    refit_mma_table next = best;
    double factor = exp(width * refit_mma_random(&draw));
    for (size_t j = first; j < first + REFIT_MMA_NUMBERS; j++) {
      double *const number = refit_mma_number(&next, j);
      if (kind == 2) factor = exp(width * refit_mma_random(&draw));
      if (kind > 0 || j == i) *number = *number * factor > smallest ? *number * factor : smallest;
    }
    const double badness = refit_mma_badness(next, shapes);
    const bool better = badness < least;
    width *= better ? 1.5 : 0.9;
    if (width < narrowest)
      width = widest; /* from the start again: the losses have steps, and stretches without slope */
    if (!better) continue;
    least = badness;
    best = next;
  }
  for (size_t i = 0; i < number_count; i++) {
    double *const number = refit_mma_number(&best, i);
    *number = static_cast<double>(lround(*number * 1000)) / 1000;
  }
  return best;
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
