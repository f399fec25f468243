/* Fits the costs of strict products to measured times of plans (plans.h), and says what the choices by a table lose. Plain
 * C++: nothing here needs a GPU. Include gpukit.cuh first.
 *
 * Every other shape of a file is fitted to; the others say what the result is worth. The fit is a pattern search (Hooke
 * and Jeeves, "Direct search" solution of numerical and statistical problems, 1961): each number in turn is made larger
 * or smaller by a share of itself where that is better, and after each round all of them take the round's step once
 * more. At first better means estimates that are less far off. From there on, with the loss of the choices added to that:
 * the loss alone has steps, and stretches without slope. */
#ifndef BENCH_REFIT_H
#define BENCH_REFIT_H

#include "plans.h"

#include <sstream>

/* --- A table that can be changed ----------------------------------------------------------------------------------*/

struct refit_table {
  gk__plan_costs costs;
  unsigned shares[gk__tiles<float>::item_count];
  unsigned shares_f64[gk__tiles<double>::item_count];
};
/* The header's. */
inline refit_table refit_header() {
  refit_table table = {gk__measured_costs(), {}, {}};
  for (int i = 0; i < gk__tiles<float>::item_count; i++) table.shares[i] = gk__tiles<float>::facts(i).share;
  for (int i = 0; i < gk__tiles<double>::item_count; i++) table.shares_f64[i] = gk__tiles<double>::facts(i).share;
  return table;
}
/* The planner is a template over the type of the sums. For these two it plans by this table. */
inline refit_table &refit_in_use() {
  static refit_table table = refit_header();
  return table;
}
inline gk__tile_facts refit_facts(gk__tile_facts tile_facts, unsigned share) {
  tile_facts.share = share;
  tile_facts.costs = &refit_in_use().costs;
  return tile_facts;
}
struct refit_float {
  float value;
};
struct refit_double {
  double value;
};
template <> struct gk__tiles<refit_float> : gk__tiles<float> {
  static gk__tile_facts facts(int i) { return refit_facts(gk__tiles<float>::facts(i), refit_in_use().shares[i]); }
};
template <> struct gk__tiles<refit_double> : gk__tiles<double> {
  static gk__tile_facts facts(int i) { return refit_facts(gk__tiles<double>::facts(i), refit_in_use().shares_f64[i]); }
};

/* All numbers of a table; a name is what stands before the number. */
struct refit_number {
  std::string name;
  unsigned *value;
};
inline void refit_add(std::vector<refit_number> *all, const std::string &name, unsigned *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    all->push_back({count > 1 ? name + "[" + std::to_string(i) + "]" : name, values + i});
}
inline std::vector<refit_number> refit_numbers(refit_table *table) {
  std::vector<refit_number> all;
  gk__plan_costs &costs = table->costs;
  const struct {
    const char *name;
    gk__hopper_costs *times;
  } kinds[] = {{"full_tile.", &costs.full_tile}, {"half_tile.", &costs.half_tile}};
  for (const auto &kind : kinds) {
    const std::string name = kind.name;
    gk__hopper_costs &t = *kind.times;
    refit_add(&all, name + "each", t.each, 2);
    refit_add(&all, name + "after", &t.after, 1);
    refit_add(&all, name + "begin", &t.begin, 1);
    refit_add(&all, name + "once", &t.once, 1);
  }
  gk__simt_costs &floats = costs.floats;
  refit_add(&all, "floats.busy", floats.busy, 2);
  refit_add(&all, "floats.begin", &floats.begin, 1);
  refit_add(&all, "floats.groups", floats.groups, 2);
  refit_add(&all, "floats.once", floats.once, 2);
  refit_add(&all, "floats.unaligned", floats.unaligned, 2);
  refit_add(&all, "doubles.busy", &costs.doubles.busy, 1);
  refit_add(&all, "doubles.begin", &costs.doubles.begin, 1);
  refit_add(&all, "reduce.launch", &costs.reduce.launch, 1);
  refit_add(&all, "reduce.round", &costs.reduce.round, 1);
  refit_add(&all, "reduce.kib", &costs.reduce.kib, 1);
  refit_add(&all, "share", table->shares, gk__tiles<float>::item_count);
  refit_add(&all, "share_f64", table->shares_f64, gk__tiles<double>::item_count);
  return all;
}
/* Whether no estimate divides by 0: the planner divides by the shares and, of two warps of four, by half of `busy`. */
inline bool refit_allowed(const refit_table &table) {
  const gk__plan_costs &costs = table.costs;
  const unsigned least_busy = 10;
  bool allowed = true;
  for (const unsigned busy : {costs.floats.busy[0], costs.floats.busy[1], costs.doubles.busy})
    allowed = allowed && busy >= least_busy && busy <= 100;
  for (const gk__hopper_costs *times : {&costs.full_tile, &costs.half_tile})
    allowed = allowed && times->each[0] > 0 && times->each[1] > 0;
  for (const unsigned share : table.shares) allowed = allowed && share > 0;
  for (const unsigned share : table.shares_f64) allowed = allowed && share > 0;
  return allowed;
}

/* --- What a table is worth ----------------------------------------------------------------------------------------*/

/* Shapes of one file or of several, and on how many multiprocessors they were measured. */
struct refit_shape {
  plan_times times;
  int sms;
  double best_us() const {
    double best = times.plans[0].us;
    for (const plan_time &plan : times.plans) best = plan.us < best ? plan.us : best;
    return best;
  }
};
/* Of each type every other shape is fitted to; the others are checked. */
struct refit_data {
  std::vector<refit_shape> fitted, checked;
};
inline void refit_add(refit_data *data, const plan_file &file) {
  size_t counts[2] = {0, 0};
  for (const plan_times &times : file.shapes) {
    if (is_mma_type(times.shape.type)) continue; /* refit_mma.h */
    const size_t i = counts[times.shape.type == "f64"]++;
    (i % 2 ? data->checked : data->fitted).push_back({times, file.sms()});
  }
}

inline double refit_clocks(const refit_shape &shape, const plan_time &plan) {
  return static_cast<double>(shape.times.shape.type == "f64"
                                 ? plan_clocks<refit_double>(shape.times.shape, plan, shape.sms)
                                 : plan_clocks<refit_float>(shape.times.shape, plan, shape.sms));
}
inline plan_time refit_chosen(const refit_shape &shape) {
  return shape.times.shape.type == "f64" ? plan_chosen<refit_double>(shape.times.shape, shape.sms)
                                         : plan_chosen<refit_float>(shape.times.shape, shape.sms);
}
/* How far the estimates of the table in use are off, as the mean over shapes of the mean over plans of |log(estimate /
 * time)|, where a plan that takes twice as long as the best counts a quarter; and what is lost by the planner's choice
 * (of a plan that was not measured nothing is known: by the plan with the least estimate), as the mean of the share of
 * the time that is lost. */
struct refit_figures {
  double error, loss;
};
inline refit_figures refit_figures_of(const std::vector<refit_shape> &shapes) {
  refit_figures sum = {0, 0};
  for (const refit_shape &shape : shapes) {
    const double best_us = shape.best_us();
    const plan_time chosen = refit_chosen(shape);
    double errors = 0, weights = 0, least = HUGE_VAL, taken_us = best_us;
    for (const plan_time &plan : shape.times.plans) {
      const double clocks = refit_clocks(shape, plan), weight = best_us * best_us / (plan.us * plan.us);
      const double rank = plan == chosen ? 0 : clocks;
      errors += weight * fabs(log(clocks / (plan.us * shape.times.sm_mhz)));
      weights += weight;
      if (rank < least) least = rank, taken_us = plan.us;
    }
    sum.error += errors / weights, sum.loss += 1 - best_us / taken_us;
  }
  const double count = shapes.empty() ? 1 : static_cast<double>(shapes.size());
  return {sum.error / count, sum.loss / count};
}

/* What the planner itself chooses, and how much longer that takes than the best plan measured. */
struct refit_losses {
  size_t shapes, not_measured; /* of these choices nothing is known, and they are in no figure */
  double mean, percentile_95, worst;
  std::string worst_at;
};
inline refit_losses refit_losses_of(const std::vector<refit_shape> &shapes) {
  refit_losses result = {shapes.size(), 0, 0, 0, 0, ""};
  std::vector<double> losses;
  for (const refit_shape &one : shapes) {
    const plan_shape &shape = one.times.shape;
    const plan_time chosen = refit_chosen(one);
    const auto found = std::find(one.times.plans.begin(), one.times.plans.end(), chosen);
    if (found == one.times.plans.end()) {
      result.not_measured++;
      continue;
    }
    const double loss = 1 - one.best_us() / found->us;
    losses.push_back(loss), result.mean += loss;
    if (losses.size() > 1 && loss <= result.worst) continue;
    char at[120];
    snprintf(at, sizeof(at), "%s %zux%zux%zu%s%s", shape.type.c_str(), shape.m, shape.n, shape.k,
             shape.trans_a ? " A'" : "", shape.trans_b ? " B'" : "");
    result.worst = loss, result.worst_at = at;
  }
  std::sort(losses.begin(), losses.end());
  if (losses.empty()) return result;
  result.mean /= static_cast<double>(losses.size());
  result.percentile_95 = losses[losses.size() * 95 / 100];
  return result;
}
inline refit_losses refit_losses_by(const refit_table &table, const std::vector<refit_shape> &shapes) {
  const refit_table before = refit_in_use();
  refit_in_use() = table;
  const refit_losses losses = refit_losses_of(shapes);
  refit_in_use() = before;
  return losses;
}
inline refit_figures refit_figures_by(const refit_table &table, const std::vector<refit_shape> &shapes) {
  const refit_table before = refit_in_use();
  refit_in_use() = table;
  const refit_figures figures = refit_figures_of(shapes);
  refit_in_use() = before;
  return figures;
}

/* --- The fit ------------------------------------------------------------------------------------------------------*/

inline double refit_badness(const refit_table &table, const std::vector<refit_shape> &shapes, bool with_loss) {
  if (!refit_allowed(table)) return HUGE_VAL;
  const refit_figures figures = refit_figures_by(table, shapes);
  return figures.error + (with_loss ? figures.loss : 0);
}
/* A number by a share of itself more or less, and by at least one. */
inline unsigned refit_stepped(unsigned value, double share) {
  const double stepped = value * (1 + share), least = share > 0 ? value + 1.0 : value - 1.0;
  const double next = fabs(stepped - value) < 1 ? least : stepped;
  return next < 0 ? 0 : static_cast<unsigned>(lround(next));
}
/* The steps to begin with. A number on which no estimate depends has none, and stays as it is, even if a choice does: the
 * split of k depends on the costs of kernels that the file has no times of. */
inline std::vector<double> refit_first_steps(refit_table table, const std::vector<refit_shape> &shapes) {
  const double error = refit_figures_by(table, shapes).error;
  std::vector<double> steps;
  for (const refit_number &number : refit_numbers(&table)) {
    const unsigned value = *number.value;
    bool depends = false;
    for (const double share : {0.3, -0.3}) {
      *number.value = refit_stepped(value, share);
      depends = depends || (refit_allowed(table) && refit_figures_by(table, shapes).error != error);
    }
    *number.value = value;
    steps.push_back(depends ? 0.2 : 0);
  }
  return steps;
}
/* Once more what a round has changed. */
inline refit_table refit_onwards(refit_table before, const refit_table &after) {
  refit_table next = after;
  const std::vector<refit_number> from = refit_numbers(&before), numbers = refit_numbers(&next);
  for (size_t i = 0; i < numbers.size(); i++) {
    const unsigned value = *numbers[i].value, old = *from[i].value;
    *numbers[i].value = value >= old ? value + (value - old) : value - (old - value < value ? old - value : value);
  }
  return next;
}
/* From the table `start`, at most `rounds` rounds. */
inline refit_table refit_search(const refit_table &start, const std::vector<refit_shape> &shapes, int rounds,
                                bool with_loss) {
  const double smallest = 0.002;
  refit_table best = start;
  double least = refit_badness(best, shapes, with_loss);
  std::vector<double> steps = refit_first_steps(start, shapes); /* negative: at first downwards */
  const std::vector<refit_number> numbers = refit_numbers(&best);
  for (int round = 0; round < rounds; round++) {
    const refit_table before = best;
    bool ended = true;
    for (size_t i = 0; i < numbers.size(); i++) {
      const unsigned value = *numbers[i].value;
      if (fabs(steps[i]) < smallest) continue;
      ended = false;
      bool better = false;
      for (const double share : {steps[i], -steps[i]}) {
        *numbers[i].value = refit_stepped(value, share);
        const double badness = refit_badness(best, shapes, with_loss);
        better = badness < least;
        if (better) {
          least = badness, steps[i] = share;
          break;
        }
        *numbers[i].value = value;
      }
      if (!better) steps[i] /= 2;
    }
    if (ended) break;
    const refit_table onwards = refit_onwards(before, best);
    const double badness = refit_badness(onwards, shapes, with_loss);
    if (badness < least) least = badness, best = onwards;
  }
  return best;
}
inline refit_table refit_fit(const refit_table &start, const std::vector<refit_shape> &shapes, int rounds) {
  return refit_search(refit_search(start, shapes, rounds, false), shapes, rounds, true);
}

/* --- What is printed ----------------------------------------------------------------------------------------------*/

/* Without the zeros at the end. */
inline std::string refit_list(const unsigned *values, size_t count) {
  while (count > 1 && values[count - 1] == 0) count--;
  std::string text = "{";
  for (size_t i = 0; i < count; i++) text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "}";
}
/* As they stand in the header, but for the line breaks, which `make format` makes. */
inline std::string refit_initialiser(const gk__reduce_costs &reduce) {
  return "  const gk__reduce_costs costs = {" + std::to_string(reduce.launch) + ", " + std::to_string(reduce.round) +
         ", " + std::to_string(reduce.kib) + "};\n";
}
inline std::string refit_initialiser(const gk__plan_costs &costs) {
  const gk__simt_costs &floats = costs.floats;
  std::string text = "  static const gk__plan_costs costs = {\n";
  for (const gk__hopper_costs *t : {&costs.full_tile, &costs.half_tile})
    text += "      {" + refit_list(t->each, 2) + ", " + std::to_string(t->after) + ", " + std::to_string(t->begin) +
            ", " + std::to_string(t->once) + "},\n";
  text += "      {" + refit_list(floats.busy, 2) + ", " + std::to_string(floats.begin) + ", " +
          refit_list(floats.groups, 2) + ", " + refit_list(floats.once, 2) + ", " + refit_list(floats.unaligned, 2) +
          "},\n";
  return text + "      {" + std::to_string(costs.doubles.busy) + ", " + std::to_string(costs.doubles.begin) +
         "},\n      gk__measured_reduce_costs()};\n";
}
inline const char *refit_name(gk_plan plan) {
  switch (plan) {
  case GK__PLAN_TILE_32: return "GK__PLAN_TILE_32";
  case GK__PLAN_TILE_32_64: return "GK__PLAN_TILE_32_64";
  case GK__PLAN_TILE_64: return "GK__PLAN_TILE_64";
  case GK__PLAN_TILE_64_128: return "GK__PLAN_TILE_64_128";
  case GK__PLAN_HOPPER_64_128: return "GK__PLAN_HOPPER_64_128";
  case GK__PLAN_HOPPER_128_64: return "GK__PLAN_HOPPER_128_64";
  case GK__PLAN_HOPPER_128: return "GK__PLAN_HOPPER_128";
  default: return "?";
  }
}
inline std::string refit_tile_row(const gk__tile_facts &f, unsigned share) {
  const size_t numbers[] = {f.row_count, f.col_count, f.warps, f.groups, f.room, share};
  std::string text = std::string("      {") + refit_name(f.plan);
  for (const size_t number : numbers) text += ", " + std::to_string(number);
  return text + (f.hopper ? ", true" : ", false") + ", &costs},\n";
}
/* As they stand in gk__tiles<float> and gk__tiles<double>: of these numbers the shares are fitted. */
inline std::string refit_tiles(const refit_table &table) {
  std::string text = "    const gk__tile_facts all[] = { /* gk__tiles<float> */\n";
  for (int i = 0; i < gk__tiles<float>::item_count; i++)
    text += refit_tile_row(gk__tiles<float>::facts(i), table.shares[i]);
  text += "    const gk__tile_facts all[] = { /* gk__tiles<double> */\n";
  for (int i = 0; i < gk__tiles<double>::item_count; i++)
    text += refit_tile_row(gk__tiles<double>::facts(i), table.shares_f64[i]);
  return text;
}

#endif
