/* Fits the planners' costs to measured times of plans (plans.h), and says what the choices by a table lose. Here is what
 * all fits share, and the fit of strict products; that of mma.sync is in refit_mma.h. Plain C++: nothing here needs a
 * GPU. Include gpukit.cuh first.
 *
 * Each type is fitted on its own. Every other shape of a type is fitted to; the others say what the result is worth.
 * What is printed of mma.sync is then fitted to all shapes. */
#ifndef BENCH_REFIT_H
#define BENCH_REFIT_H

#include "plans.h"
#include "random.h"

#include <sstream>

/* --- Choices and what they lose -----------------------------------------------------------------------------------*/

/* Of the plans of a shape that were measured the best, and the one that a table takes for the best (HUGE_VAL: none of
 * them is the planner's). `error`: how far the estimates are off, as a mean of |log(estimate / time)|. `is_measured`:
 * of all plans the table would choose that one, too. */
struct refit_choice {
  double best_us, taken_us, error;
  bool is_measured;
};
/* What the choices lose against the best measured plans: the share of the time that these would save. */
struct refit_losses {
  size_t shapes, not_measured;
  double error, mean, percentile_95, worst;
  std::string worst_at;
};
template <class Table, class Shape> refit_losses refit_losses_by(const Table &table, const std::vector<Shape> &shapes) {
  refit_losses result = {shapes.size(), 0, 0, 0, 0, 0, ""};
  std::vector<double> losses;
  for (const Shape &one : shapes) {
    const refit_choice choice = refit_choose(table, one);
    result.not_measured += !choice.is_measured;
    if (choice.taken_us == HUGE_VAL) continue;
    const double loss = 1 - choice.best_us / choice.taken_us;
    losses.push_back(loss), result.mean += loss, result.error += choice.error;
    if (losses.size() > 1 && loss <= result.worst) continue;
    const plan_shape &shape = one.times.shape;
    char at[120];
    snprintf(at, sizeof(at), "%s %zux%zux%zu%s%s", shape.type.c_str(), shape.m, shape.n, shape.k,
             shape.trans_a ? " A'" : "", shape.trans_b ? " B'" : "");
    result.worst = loss, result.worst_at = at;
  }
  if (losses.empty()) return result;
  std::sort(losses.begin(), losses.end());
  result.mean /= static_cast<double>(losses.size()), result.error /= static_cast<double>(losses.size());
  result.percentile_95 = losses[losses.size() * 95 / 100];
  return result;
}

/* What a fit makes small: what the choices lose, `of_squares` of its squares, so that a large loss counts more than two
 * halves of it, `of_errors` of how far the estimates are off, and `not_measured` for each choice that was not measured.
 * Shapes of which no measured plan is the planner's have no part in it. */
template <class Table, class Shape>
double refit_badness(const Table &table, const std::vector<Shape> &shapes, double not_measured, double of_errors = 0.1,
                     double of_squares = 0) {
  double sum = 0;
  for (const Shape &shape : shapes) {
    const refit_choice choice = refit_choose(table, shape);
    if (choice.taken_us == HUGE_VAL) continue;
    const double lost = log(choice.taken_us / choice.best_us);
    sum += lost + of_squares * lost * lost + of_errors * choice.error + (choice.is_measured ? 0 : not_measured);
  }
  return sum;
}

/* --- The search ---------------------------------------------------------------------------------------------------*/

/* Numbers of a group also take steps together. */
struct refit_number {
  double value;
  size_t group;
};
inline double refit_random(random_numbers *draw) { /* between -1 and 1 */
  return static_cast<double>(draw->below(1 << 20)) * 0x1p-19 - 1;
}
/* A random search. A step multiplies one number, all numbers of a group, or each of them by another random factor, and
 * stays where `badness` of the numbers is smaller. How wide the steps are follows from how often they make it smaller.
 * Once they are very narrow they are wide again, since what choices lose has steps, and stretches without slope. With a
 * `heat` it is simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983): by chance a step also stays where `badness` is
 * larger, at first by about that share of the first badness, in the end by a hundredth of it. */
template <class Badness>
std::vector<refit_number> refit_search(std::vector<refit_number> best, double smallest, int steps,
                                       const Badness &badness, uint64_t seed = 1, double heat = 0) {
  const double widest = 1, narrowest = 0.002, cooling = exp(log(0.01) / steps);
  double least = badness(best), now = least, temperature = heat * least;
  std::vector<refit_number> current = best;
  random_numbers draw = random_from(seed);
  std::vector<double> widths(best.size() * 3,
                             widest); /* of the logs of the factors, for each number and kind of step */
  for (int step = 0; step < steps; step++) {
    const size_t i = draw.below(best.size()), kind = step % 2 ? 0 : 1 + draw.below(2);
    double &width = widths[kind * best.size() + i];
    std::vector<refit_number> next = current;
    double factor = exp(width * refit_random(&draw));
    for (size_t j = 0; j < next.size(); j++) {
      if (kind > 0 ? next[j].group != next[i].group : j != i) continue;
      if (kind == 2) factor = exp(width * refit_random(&draw));
      next[j].value = next[j].value * factor > smallest ? next[j].value * factor : smallest;
    }
    const double badness_of_next = badness(next);
    const double allowed = heat > 0 ? -temperature * log((1 + refit_random(&draw)) / 2) : 0;
    width *= badness_of_next < now ? 1.5 : 0.9;
    if (width < narrowest) width = widest;
    if (badness_of_next < now + allowed) now = badness_of_next, current = next;
    if (now < least) least = now, best = current;
    temperature *= cooling;
  }
  return best;
}

/* --- A table of strict products -----------------------------------------------------------------------------------*/

template <int Count> struct refit_tile_numbers {
  unsigned shares[Count];
  unsigned least_depth;
};
struct refit_table {
  gk__plan_costs costs;
  refit_tile_numbers<gk__tiles<float>::item_count> f32;
  refit_tile_numbers<gk__tiles<double>::item_count> f64;
};
template <class Acc, int Count> void refit_take_header(refit_tile_numbers<Count> *tiles) {
  for (int i = 0; i < Count; i++) tiles->shares[i] = gk__tiles<Acc>::facts(i).share;
  tiles->least_depth = static_cast<unsigned>(gk__tiles<Acc>::least_depth());
}
inline refit_table refit_header() {
  refit_table table = {gk__measured_costs(), {}, {}};
  refit_take_header<float>(&table.f32);
  refit_take_header<double>(&table.f64);
  return table;
}
/* The planner is a template over the type of the sums. For these two it plans by this table. */
inline refit_table &refit_in_use() {
  static refit_table table = refit_header();
  return table;
}
/* As long as it exists, this table is in use. */
struct refit_use {
  refit_table before;
  explicit refit_use(const refit_table &table) : before(refit_in_use()) { refit_in_use() = table; }
  ~refit_use() { refit_in_use() = before; }
};
struct refit_float {
  float value;
};
struct refit_double {
  double value;
};
template <class Acc, class Numbers, Numbers refit_table::*Of> struct refit_tiles : gk__tiles<Acc> {
  static const Numbers &numbers() { return refit_in_use().*Of; }
  static size_t least_depth() { return numbers().least_depth; }
  static gk__tile_facts facts(int i) {
    gk__tile_facts tile_facts = gk__tiles<Acc>::facts(i);
    tile_facts.share = numbers().shares[i];
    tile_facts.costs = &refit_in_use().costs;
    return tile_facts;
  }
};
template <> struct gk__tiles<refit_float> : refit_tiles<float, decltype(refit_table::f32), &refit_table::f32> {};
template <> struct gk__tiles<refit_double> : refit_tiles<double, decltype(refit_table::f64), &refit_table::f64> {};

/* A number of a table. `name` is what stands before it, and what stands before the dot is the name of its group. */
struct refit_entry {
  std::string name;
  unsigned *value;
  bool hopper; /* only Hopper's kernels depend on it */
};
inline void refit_add(std::vector<refit_entry> *all, const std::string &name, unsigned *values, size_t count,
                      bool hopper = false) {
  for (size_t i = 0; i < count; i++)
    all->push_back({count > 1 ? name + "[" + std::to_string(i) + "]" : name, values + i, hopper});
}
template <class Acc, int Count>
void refit_add(std::vector<refit_entry> *all, const std::string &type, refit_tile_numbers<Count> *tiles) {
  for (int i = 0; i < Count; i++) {
    const std::string name = type + "_tile_" + std::to_string(i);
    const bool hopper = gk__tiles<Acc>::facts(i).hopper > 0;
    if (type == "f64" || !hopper) refit_add(all, name + ".share", &tiles->shares[i], 1, hopper);
  }
  refit_add(all, type + "_split.least_depth", &tiles->least_depth, 1);
}
/* Those that products of doubles depend on, or those of floats. The costs of reducing partials are of all types, and
 * fitted to products of floats. */
inline std::vector<refit_entry> refit_entries(refit_table *table, bool doubles) {
  std::vector<refit_entry> all;
  gk__plan_costs &costs = table->costs;
  if (doubles) {
    gk__f64_costs &c = costs.doubles;
    refit_add(&all, "doubles.busy", &c.busy, 1);
    refit_add(&all, "doubles.item", &c.item, 1);
    refit_add(&all, "doubles.once", &c.once, 1);
    refit_add(&all, "doubles.launch", &c.launch, 1);
    refit_add<double>(&all, "f64", &table->f64);
    return all;
  }
  const struct {
    const char *name;
    gk__hopper_costs *times;
  } kinds[] = {{"full_tile.", &costs.full_tile}, {"half_tile.", &costs.half_tile}};
  for (const auto &kind : kinds) {
    const std::string name = kind.name;
    gk__hopper_costs &t = *kind.times;
    refit_add(&all, name + "each", t.each, 2, true);
    refit_add(&all, name + "after", &t.after, 1, true);
    refit_add(&all, name + "begin", &t.begin, 1, true);
  }
  gk__simt_costs &floats = costs.floats;
  refit_add(&all, "floats.busy", floats.busy, 2);
  refit_add(&all, "floats.begin", &floats.begin, 1);
  refit_add(&all, "floats.groups", floats.groups, 2);
  refit_add(&all, "floats.once", floats.once, 2);
  refit_add(&all, "reduce.launch", &costs.reduce.launch, 1);
  refit_add(&all, "reduce.round", &costs.reduce.round, 1);
  refit_add(&all, "reduce.kib", &costs.reduce.kib, 1);
  refit_add<float>(&all, "f32", &table->f32);
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
  for (const unsigned share : table.f32.shares) allowed = allowed && share > 0;
  for (const unsigned share : table.f64.shares) allowed = allowed && share > 0;
  for (const unsigned number : {table.f32.least_depth, table.f64.least_depth}) allowed = allowed && number > 0;
  return allowed;
}

/* --- The fit to strict products -----------------------------------------------------------------------------------*/

/* Shapes of a type, and on how many multiprocessors they were measured. */
struct refit_shape {
  plan_times times;
  int sms;
};
struct refit_data {
  bool doubles;
  std::vector<refit_shape> fitted, checked;
};
/* A shape that was measured with Hopper's kernels is two: the other one is that of a GPU without them. */
inline void refit_add(refit_data *data, const plan_file &file) {
  size_t count = 0;
  for (const plan_times &times : file.shapes) {
    if (times.shape.type != (data->doubles ? "f64" : "f32")) continue;
    std::vector<refit_shape> &half = count++ % 2 ? data->checked : data->fitted;
    half.push_back({times, file.sms()});
    if (!times.shape.hopper) continue;
    refit_shape portable = half.back();
    std::vector<plan_time> &plans = portable.times.plans;
    const auto is_hopper = [&](const plan_time &plan) { return plan_tile(times.shape.type, plan.tile_idx).hopper > 0; };
    plans.erase(std::remove_if(plans.begin(), plans.end(), is_hopper), plans.end());
    portable.times.shape.hopper = 0;
    if (!plans.empty()) half.push_back(portable);
  }
}

/* By the table in use. A plan that takes twice as long as the best counts a quarter in the error. A choice that was not
 * measured is replaced by the plan with the least estimate. */
template <class Acc> refit_choice refit_choose_in_use(const refit_shape &shape) {
  refit_choice choice = {HUGE_VAL, HUGE_VAL, 0, false};
  for (const plan_time &plan : shape.times.plans) choice.best_us = std::min(choice.best_us, plan.us);
  const plan_time chosen = plan_chosen<Acc>(shape.times.shape, shape.sms);
  double weights = 0, least = HUGE_VAL;
  for (const plan_time &plan : shape.times.plans) {
    const double clocks = static_cast<double>(plan_clocks<Acc>(shape.times.shape, plan, shape.sms));
    const double weight = choice.best_us * choice.best_us / (plan.us * plan.us);
    choice.error += weight * fabs(log(clocks / (plan.us * shape.times.sm_mhz))), weights += weight;
    const bool is_chosen = plan == chosen;
    choice.is_measured = choice.is_measured || is_chosen;
    if (!is_chosen && (choice.is_measured || clocks >= least)) continue;
    least = clocks, choice.taken_us = plan.us;
  }
  choice.error /= weights;
  return choice;
}
inline refit_choice refit_choose(const refit_table &table, const refit_shape &shape) {
  const refit_use use(table);
  return shape.times.shape.type == "f64" ? refit_choose_in_use<refit_double>(shape)
                                         : refit_choose_in_use<refit_float>(shape);
}
/* From the table `start`, this many steps. Numbers whose names begin with `kept` stay, and those of Hopper's kernels if
 * the shapes have no times of these: only the split of k would depend on them. */
inline refit_table refit_fit(const refit_table &start, const refit_data &data, int steps,
                             const std::string &kept = "nothing") {
  const double smallest = 0.4; /* is rounded to 0, and is not 0, so that a factor makes it larger */
  /* The split of k depends on a few numbers, which would otherwise lead away from the measured plans. */
  const double not_measured = 0.1;
  const double of_errors = 1; /* the choices alone do not determine all of the costs */
  refit_table table = start;
  bool any_hopper = false;
  for (const refit_shape &shape : data.fitted) any_hopper = any_hopper || shape.times.shape.hopper > 0;
  std::vector<refit_entry> entries = refit_entries(&table, data.doubles);
  const auto stays = [&](const refit_entry &entry) {
    return (entry.hopper && !any_hopper) || entry.name.compare(0, kept.size(), kept) == 0;
  };
  entries.erase(std::remove_if(entries.begin(), entries.end(), stays), entries.end());
  std::vector<refit_number> numbers;
  std::string group;
  for (const refit_entry &entry : entries) {
    const std::string its_group = entry.name.substr(0, entry.name.find('.'));
    const size_t last = numbers.empty() ? 0 : numbers.back().group;
    numbers.push_back({*entry.value + 0.0, its_group == group ? last : last + 1});
    group = its_group;
  }
  const auto take = [&](const std::vector<refit_number> &all) {
    for (size_t i = 0; i < all.size(); i++) *entries[i].value = static_cast<unsigned>(lround(all[i].value));
  };
  take(refit_search(numbers, smallest, steps, [&](const std::vector<refit_number> &all) {
    take(all);
    return refit_allowed(table) ? refit_badness(table, data.fitted, not_measured, of_errors) : HUGE_VAL;
  }));
  return table;
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
  return "inline gk__reduce_costs gk__measured_reduce_costs() { return {" + std::to_string(reduce.launch) + ", " +
         std::to_string(reduce.round) + ", " + std::to_string(reduce.kib) + "}; }\n";
}
inline std::string refit_initialiser(const gk__plan_costs &costs) {
  const gk__simt_costs &floats = costs.floats;
  std::string text = "  static const gk__plan_costs costs = {\n";
  for (const gk__hopper_costs *t : {&costs.full_tile, &costs.half_tile})
    text +=
        "      {" + refit_list(t->each, 2) + ", " + std::to_string(t->after) + ", " + std::to_string(t->begin) + "},\n";
  text += "      {" + refit_list(floats.busy, 2) + ", " + std::to_string(floats.begin) + ", " +
          refit_list(floats.groups, 2) + ", " + refit_list(floats.once, 2) + "},\n";
  const gk__f64_costs &f64 = costs.doubles;
  text += "      {" + std::to_string(f64.busy) + ", " + std::to_string(f64.item) + ", " + std::to_string(f64.once) +
          ", " + std::to_string(f64.launch) + "},\n";
  return text + "      gk__measured_reduce_costs()};\n";
}
inline const char *refit_name(gk_plan plan) {
  switch (plan) {
  case GK__PLAN_TILE_32: return "GK__PLAN_TILE_32";
  case GK__PLAN_TILE_32_64: return "GK__PLAN_TILE_32_64";
  case GK__PLAN_TILE_64: return "GK__PLAN_TILE_64";
  case GK__PLAN_TILE_64_128: return "GK__PLAN_TILE_64_128";
  case GK__PLAN_HOPPER_32_64: return "GK__PLAN_HOPPER_32_64";
  case GK__PLAN_HOPPER_64: return "GK__PLAN_HOPPER_64";
  case GK__PLAN_HOPPER_64_128: return "GK__PLAN_HOPPER_64_128";
  case GK__PLAN_HOPPER_128_64: return "GK__PLAN_HOPPER_128_64";
  case GK__PLAN_HOPPER_128: return "GK__PLAN_HOPPER_128";
  default: return "?";
  }
}
/* As they stand in gk__tiles<float> and gk__tiles<double>: of these numbers the shortest partition and the shares are
 * fitted, but for those of Hopper's floats, on which nothing depends. */
template <class Acc> std::string refit_print_tiles(const char *title) {
  typedef gk__tiles<Acc> tiles;
  std::string text = "  static size_t least_depth() { return " + std::to_string(tiles::least_depth()) + "; } /* " +
                     title + " */\n    const gk__tile_facts all[] = {\n";
  for (int i = 0; i < tiles::item_count; i++) {
    const gk__tile_facts f = tiles::facts(i);
    text += std::string("      {") + refit_name(f.plan);
    for (const size_t number :
         {f.row_count, f.col_count, size_t{f.warps}, size_t{f.groups}, size_t{f.room}, f.bytes, size_t{f.share}})
      text += ", " + std::to_string(number);
    static const char *const codes[] = {"GK__ANY_CODE", "GK__SM_90_CODE", "GK__SM_90A_CODE"};
    text += std::string(", ") + codes[f.hopper] + ", &costs, {";
    const gk__turn_facts &turn = f.turn;
    if (turn.room)
      text += std::to_string(turn.room) + ", " + codes[turn.hopper] + ", " + std::to_string(turn.percent) + ", " +
              std::to_string(turn.once);
    text += "}},\n";
  }
  return text;
}
inline std::string refit_print_tiles(const refit_table &table) {
  const refit_use use(table);
  return refit_print_tiles<refit_float>("gk__tiles<float>") + refit_print_tiles<refit_double>("gk__tiles<double>");
}

#endif
