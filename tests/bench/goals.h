/* The rows of a run, what they sum up to, and the goals that they are held against. */
#ifndef BENCH_GOALS_H
#define BENCH_GOALS_H

#include "rows.h"

#include <map>

/* What a goal looks at in the rows that it names. */
enum {
  GOAL_WORST = 0,   /* the smallest ratio */
  GOAL_MEAN = 1,    /* the geometric mean of the ratios over powers of two; of products, over all */
  GOAL_CEILING = 2, /* the smallest share of the ceiling */
  /* and of which products: else of all */
  GOAL_CUBES = 4,   /* of three equal edges */
  GOAL_ALIGNED = 8, /* edges are multiples of 8, but for a single row */
};
struct bench_goal {
  const char *what, *group, *op, *types, *mode; /* types: blank-separated */
  double from, to;                              /* n */
  int figure;
  double floor, aim;  /* aim 0: none */
  double ceiling = 0; /* a share of the ceiling that is as good as the floor; 0: none */
};

static const double goal_all = 1e300;
static const bench_goal goals[] = {
    {"reduce f32, mean", "reduce", "sum", "f32", "cold", 0, goal_all, GOAL_MEAN, 1.45, 1.6},
    {"reduce f32, 2^14 to 2^16", "reduce", "sum", "f32", "cold", 1 << 14, 1 << 16, GOAL_WORST, 2.0, 0},
    {"reduce f32, 2^18", "reduce", "sum", "f32", "cold", 1 << 18, 1 << 18, GOAL_WORST, 1.8, 0},
    {"reduce f32, 2^20", "reduce", "sum", "f32", "cold", 1 << 20, 1 << 20, GOAL_WORST, 1.5, 0},
    {"reduce f32, 2^22", "reduce", "sum", "f32", "cold", 1 << 22, 1 << 22, GOAL_WORST, 1.35, 0},
    {"reduce f32, any n", "reduce", "sum", "f32", "cold", 0, goal_all, GOAL_WORST, 0.98, 0},
    {"reduce f32, 2^30, of reading", "reduce", "sum", "f32", "cold", 1 << 30, 1 << 30, GOAL_CEILING, 0.99, 0},
    {"reduce f32 in a stream, mean", "reduce", "sum", "f32", "stream", 0, goal_all, GOAL_MEAN, 1.2, 0},
    {"reduce, other types, any n", "reduce", "sum", "i8 u8 f16 bf16 f64 i32 i64", "cold", 0, goal_all, GOAL_WORST, 0.98,
     0},
    {"reduce, other types, 2^30, of reading", "reduce", "sum", "i8 u8 f16 bf16 f64 i32 i64", "cold", 1 << 30, 1 << 30,
     GOAL_CEILING, 0.98, 0},
    {"argmin f32, mean", "reduce", "argmin", "f32", "cold", 0, goal_all, GOAL_MEAN, 1.3, 0},
    {"argmax f32, mean", "reduce", "argmax", "f32", "cold", 0, goal_all, GOAL_MEAN, 1.3, 0},
    {"argmin, any n", "reduce", "argmin", "", "cold", 0, goal_all, GOAL_WORST, 0.98, 0},
    {"argmax, any n", "reduce", "argmax", "", "cold", 0, goal_all, GOAL_WORST, 0.98, 0},
    {"reduce, misaligned against aligned", "reduce", "sum misaligned/aligned", "", "cold", 0, goal_all, GOAL_WORST,
     1 / 1.1, 0},
    {"reduce without scratch", "reduce", "sum no scratch", "", "cold", 0, goal_all, GOAL_WORST, 0.98, 0},
    {"scan f32 exclusive, from 2^24", "scan", "exclusive sum", "f32", "cold", 1 << 24, goal_all, GOAL_WORST, 1.1, 1.2},
    {"scan f32 inclusive, from 2^24", "scan", "inclusive sum", "f32", "cold", 1 << 24, goal_all, GOAL_WORST, 1.1, 1.2},
    {"scan f32 exclusive, up to 2^14", "scan", "exclusive sum", "f32", "cold", 0, 1 << 14, GOAL_WORST, 2.2, 0},
    {"scan f32 inclusive, up to 2^14", "scan", "inclusive sum", "f32", "cold", 0, 1 << 14, GOAL_WORST, 2.2, 0},
    {"scan f32 exclusive, 2^16", "scan", "exclusive sum", "f32", "cold", 1 << 16, 1 << 16, GOAL_WORST, 1.9, 0},
    {"scan f32 inclusive, 2^16", "scan", "inclusive sum", "f32", "cold", 1 << 16, 1 << 16, GOAL_WORST, 1.9, 0},
    {"scan f32 exclusive, 2^20", "scan", "exclusive sum", "f32", "cold", 1 << 20, 1 << 20, GOAL_WORST, 1.5, 0},
    {"scan f32 inclusive, 2^20", "scan", "inclusive sum", "f32", "cold", 1 << 20, 1 << 20, GOAL_WORST, 1.5, 0},
    {"scan f32, any n", "scan", "", "f32", "cold", 0, goal_all, GOAL_WORST, 0.98, 0},
    {"scan f16 and bf16, 2^30", "scan", "exclusive sum", "f16 bf16", "cold", 1 << 30, 1 << 30, GOAL_WORST, 1.5, 1.8},
    {"scan i8 and u8, 2^30", "scan", "exclusive sum", "i8 u8", "cold", 1 << 30, 1 << 30, GOAL_WORST, 3, 3.5, 0.92},
    {"scan f64, 2^30", "scan", "exclusive sum", "f64", "cold", 1 << 30, 1 << 30, GOAL_WORST, 1.05, 0},
    {"scan, custom operator beside sum", "scan", "exclusive custom/sum", "", "cold", 0, goal_all, GOAL_WORST, 0.95, 0},
    {"scan, in place beside not", "scan", "exclusive sum in place/sum", "", "cold", 0, goal_all, GOAL_WORST, 0.95, 0},
    {"scan without scratch", "scan", "exclusive sum no scratch", "", "cold", 0, goal_all, GOAL_WORST, 0.98, 0},
    {"select f32, any n", "select", "half", "f32", "cold", 0, goal_all, GOAL_WORST, 1.0, 1.3},
    {"rows f32, any shape", "rows", "sum", "f32", "cold", 0, goal_all, GOAL_WORST, 1.0, 0},
    {"sum of computed squares f32, any n", "reduce", "sum of squares", "f32", "cold", 0, goal_all, GOAL_WORST, 0.98, 0},
    {"matmul f32, mean", "matmul", "A B", "f32", "hot", 0, goal_all, GOAL_MEAN, 1.1, 1.15},
    {"matmul f32, any shape", "matmul", "A B", "f32", "hot", 0, goal_all, GOAL_WORST, 0.98, 0},
    {"matmul f32, up to 256^3", "matmul", "A B", "f32", "hot", 0, 256.0 * 256 * 256, GOAL_WORST | GOAL_CUBES, 1.4, 0},
    {"matmul f32, 1000^3", "matmul", "A B", "f32", "hot", 1e9, 1e9, GOAL_WORST, 1.2, 0},
    {"matmul f32, from 2048^3", "matmul", "A B", "f32", "hot", 2048.0 * 2048 * 2048, goal_all, GOAL_WORST | GOAL_CUBES,
     1.0, 1.1},
    {"matmul f32, 50 random shapes", "matmul", "A B random", "f32", "hot", 0, goal_all, GOAL_WORST, 0.9, 0},
    {"matmul f32, batches", "matmul", "A B batch", "f32", "hot", 0, goal_all, GOAL_WORST, 1.1, 1.3},
    {"matmul f64, 1000^3", "matmul", "A B", "f64", "hot", 1e9, 1e9, GOAL_WORST, 1.05, 0},
    {"matmul f64, from 1024^3", "matmul", "A B", "f64", "hot", 1024.0 * 1024 * 1024, goal_all, GOAL_WORST | GOAL_CUBES,
     0.97, 1.0},
    {"matmul f16 and bf16, aligned shapes, mean", "matmul", "A B", "f16 bf16", "hot", 0, goal_all,
     GOAL_MEAN | GOAL_ALIGNED, 1.0, 1.05},
    {"matmul f16 and bf16, aligned shapes", "matmul", "A B", "f16 bf16", "hot", 0, goal_all, GOAL_WORST | GOAL_ALIGNED,
     0.95, 0},
    {"matmul f16 and bf16, up to 512^3", "matmul", "A B", "f16 bf16", "hot", 0, 512.0 * 512 * 512,
     GOAL_WORST | GOAL_CUBES, 1.1, 1.3},
    {"matmul f16 and bf16, 4095x4097x4099", "matmul", "A B", "f16 bf16", "hot", 4095.0 * 4097 * 4099,
     4095.0 * 4097 * 4099, GOAL_WORST, 3, 4},
    {"matmul f16 and bf16, 2047x333x5001", "matmul", "A B", "f16 bf16", "hot", 2047.0 * 333 * 5001, 2047.0 * 333 * 5001,
     GOAL_WORST, 2.5, 0},
    {"matmul bf16 by mma.sync, 8192^3", "matmul", "A B mma", "bf16", "hot", 0, goal_all, GOAL_WORST, 0.55, 0},
    {"matmul tf32, aligned shapes", "matmul", "A B", "tf32", "hot", 0, goal_all, GOAL_WORST | GOAL_ALIGNED, 1.0, 1.05},
    {"matmul tf32, 4095x4097x4099", "matmul", "A B", "tf32", "hot", 4095.0 * 4097 * 4099, 4095.0 * 4097 * 4099,
     GOAL_WORST, 2, 2.4},
    {"matmul emulated fp32, 1024^3", "matmul", "A B", "f32emulated", "hot", 1024.0 * 1024 * 1024, 1024.0 * 1024 * 1024,
     GOAL_WORST, 1.1, 0},
    {"matmul emulated fp32, 2048^3", "matmul", "A B", "f32emulated", "hot", 2048.0 * 2048 * 2048, 2048.0 * 2048 * 2048,
     GOAL_WORST | GOAL_CUBES, 1.6, 0},
    {"matmul emulated fp32, from 4096^3", "matmul", "A B", "f32emulated", "hot", 4096.0 * 4096 * 4096, goal_all,
     GOAL_WORST | GOAL_CUBES, 1.9, 2.2},
    {"matmul with an epilogue, beside plain", "matmul", "epilogue/plain", "", "hot", 0, goal_all, GOAL_WORST, 0.97, 0},
    {"first call, reduce", "first call", "reduce", "f32", "first", 0, goal_all, GOAL_WORST, 1.0, 0},
    {"first call, scan", "first call", "scan", "f32", "first", 0, goal_all, GOAL_WORST, 1.0, 0},
    {"first call, matmul", "first call", "matmul", "f32", "first", 0, goal_all, GOAL_WORST, 1.0, 0},
    {"host's side of a call, one launch each", "host", "reduce", "f32", "host", 0, 1024, GOAL_WORST, 1.0, 0},
    {"host's side of a call, matmul", "host", "matmul", "f32", "host", 0, goal_all, GOAL_WORST, 1.0, 0},
    {"host's side of a call, the peer's two", "host", "reduce", "f32", "host", 1025, goal_all, GOAL_WORST, 1 / 0.7, 0},
    {"host's side of a scan, the peer's two", "host", "scan", "f32", "host", 0, goal_all, GOAL_WORST, 1 / 0.7, 0},
    {"scan f32, from 2^24, of copying", "scan", "exclusive sum", "f32", "cold", 1 << 24, goal_all, GOAL_CEILING, 0,
     0.95},
};

static inline bool goal_fits(const bench_goal &g, const bench_row &r) {
  unsigned m = 0, n = 0, k = 0;
  if (!(g.figure & (GOAL_CUBES | GOAL_ALIGNED))) return true;
  if (sscanf(r.size.c_str(), "%ux%ux%u", &m, &n, &k) != 3) return false;
  return g.figure & GOAL_CUBES ? m == n && n == k : (n | k) % 8 == 0 && (m % 8 == 0 || m == 1);
}
static inline bool goal_names(const bench_goal &g, const bench_row &r) {
  /* gpukit against itself counts where it is named */
  return r.group == g.group && (*g.op ? r.what == g.op : !r.beside_itself()) && r.mode == g.mode && r.n >= g.from &&
         r.n <= g.to && goal_fits(g, r) &&
         (!*g.types || (" " + std::string(g.types) + " ").find(" " + r.type + " ") != std::string::npos);
}
/* The figure, and the row that it comes from. A wrong result of ours counts as 0; false: no row has it. */
static inline bool goal_value(const bench_goal &g, const std::vector<bench_row> &rows, double *value,
                              const bench_row **at) {
  double logs = 0;
  int count = 0;
  *value = 0, *at = NULL;
  for (const bench_row &r : rows) {
    if (!goal_names(g, r)) continue;
    double figure = r.ratio;
    if (g.figure & GOAL_CEILING) figure = r.ceiling_us / r.ours_us;
    if (g.figure & GOAL_MEAN && !r.power_of_two() && r.group != "matmul") continue;
    if (r.check == "wrong" || figure < 0) figure = 0;
    logs += log(figure), count++;
    if (!*at || figure < *value) *value = figure, *at = &r;
  }
  if (g.figure & GOAL_MEAN && count) *value = exp(logs / count);
  return count > 0;
}

/* Whether a goal of this value is met: by its floor, or by its share of the ceiling. */
static inline bool goal_met(const bench_goal &g, const std::vector<bench_row> &rows, double value) {
  if (value >= g.floor) return true;
  bench_goal by_ceiling = g;
  by_ceiling.figure = GOAL_CEILING;
  double share = 0;
  const bench_row *at = NULL;
  return g.ceiling > 0 && goal_value(by_ceiling, rows, &share, &at) && share >= g.ceiling;
}

/* Geometric mean and worst of the rows of a group in a mode, perhaps of one operator and type at powers of two. */
static inline void print_group(const std::vector<bench_row> &rows, const char *title, const char *group,
                               const char *mode, const char *what, const char *type) {
  double logs = 0;
  int count = 0;
  const bench_row *worst = NULL;
  for (const bench_row &r : rows) {
    if (r.group != group || r.mode != mode || !(r.ratio > 0) || (*type && r.type != type)) continue;
    if (*what && (r.what != what || !r.power_of_two())) continue;
    if (r.beside_itself()) continue;
    logs += log(r.ratio), count++;
    if (!worst || r.ratio < worst->ratio) worst = &r;
  }
  if (count)
    printf("%-44s %4d %9.3f %8.3f  %s %s %s\n", title, count, exp(logs / count), worst->ratio, worst->what.c_str(),
           worst->type.c_str(), worst->size.c_str());
}

/* --- Random shapes ------------------------------------------------------------------------------------------------*/

/* What the rows of one kind of random shapes amount to. */
struct random_figures {
  size_t count;
  double mean, error;   /* the geometric mean and its standard error */
  double share;         /* of the rows, at 0.98 and above */
  double fifth, lowest; /* the 5th percentile; the worst, of 100 rows and more the 1st percentile */
  std::string at;       /* the worst row */
};
/* A percentile of the ratios of rows that are in order. */
inline double percentile(const std::vector<const bench_row *> &in_order, double percent) {
  return in_order[static_cast<size_t>(percent / 100 * static_cast<double>(in_order.size()))]->ratio;
}
inline random_figures random_figures_of(std::vector<const bench_row *> rows) {
  random_figures f = random_figures();
  double logs = 0, squares = 0;
  const double count = static_cast<double>(rows.size());
  if (rows.empty()) return f;
  std::sort(rows.begin(), rows.end(), [](const bench_row *x, const bench_row *y) { return x->ratio < y->ratio; });
  for (const bench_row *row : rows) logs += log(row->ratio), f.share += row->ratio >= 0.98 ? 1 / count : 0;
  for (const bench_row *row : rows) squares += (log(row->ratio) - logs / count) * (log(row->ratio) - logs / count);
  f.count = rows.size(), f.mean = exp(logs / count);
  f.error = rows.size() > 1 ? f.mean * sqrt(squares / (count - 1) / count) : 0;
  f.fifth = percentile(rows, 5), f.lowest = rows.size() < 100 ? rows[0]->ratio : percentile(rows, 1);
  f.at = rows[0]->size;
  return f;
}

/* The kinds of random shapes, each by itself and for each type; of products also multiples of 32 and any together. */
struct random_kind {
  const char *title, *group;
  const char *what[2]; /* rows of either; NULL: none */
};
static const random_kind random_kinds[] = {
    {"reduce, any n and alignment", "reduce", {"sum random", NULL}},
    {"scan, in and out aligned alike", "scan", {"exclusive sum random alike", NULL}},
    {"scan, in and out aligned differently", "scan", {"exclusive sum random differently", NULL}},
    {"matmul, up to 5000", "matmul", {"A B random", NULL}},
    {"matmul, multiples of 32", "matmul", {"A B log-uniform by 32", NULL}},
    {"matmul, multiples of 8", "matmul", {"A B log-uniform by 8", NULL}},
    {"matmul, any", "matmul", {"A B log-uniform", NULL}},
    {"matmul, both", "matmul", {"A B log-uniform by 32", "A B log-uniform"}},
};
inline void print_random(const std::vector<bench_row> &rows) {
  bool headed = false;
  for (const random_kind &kind : random_kinds)
    for (const char *type : {"f32", "f64", "f16", "bf16", "tf32", "f32emulated"}) {
      std::vector<const bench_row *> found;
      for (const bench_row &row : rows)
        if (row.group == kind.group && row.type == type && row.ratio > 0 &&
            (row.what == kind.what[0] || (kind.what[1] && row.what == kind.what[1])))
          found.push_back(&row);
      if (found.empty()) continue;
      if (!headed)
        printf("\n%-38s %-12s %4s %9s %7s %7s %7s %7s  %s\n", "random shapes", "type", "rows", "geo. mean", "error",
               ">= 0.98", "5 %", "worst", "at");
      headed = true;
      const random_figures f = random_figures_of(found);
      printf("%-38s %-12s %4zu %9.3f %7.3f %6.0f%% %7.3f %7.3f%s %s\n", kind.title, type, f.count, f.mean, f.error,
             100 * f.share, f.fifth, f.lowest, f.count < 100 ? " " : "*", f.at.c_str());
    }
  if (headed) printf("worst: of 100 rows and more (*) the 1st percentile\n");
}

/* Of rows of --plans: what the chosen plan loses against the best one measured, in percent of the time. */
inline void print_plans(const std::vector<bench_row> &rows) {
  struct best_plan {
    double ratio;
    std::string name;
  };
  std::map<std::string, std::map<std::string, best_plan>> types; /* of each shape */
  for (const bench_row &row : rows) {
    if (row.group != "plan" || !(row.ratio > 0)) continue;
    best_plan &best = types[row.type].insert({row.size, {1, "the chosen one"}}).first->second;
    if (row.ratio > best.ratio) best = {row.ratio, row.what};
  }
  if (types.empty()) return;
  printf("\n%-12s %6s %10s %12s %8s %8s  %s\n", "the choice", "shapes", "loses", "within 2 %", "95 %", "worst", "at");
  for (const auto &type : types) {
    std::vector<std::pair<double, std::string>> losses;
    double sum = 0, near = 0;
    for (const auto &shape : type.second) {
      const double loss = 1 - 1 / shape.second.ratio;
      sum += loss, near += loss <= 0.02;
      losses.push_back({loss, shape.first + " by " + shape.second.name});
    }
    std::sort(losses.begin(), losses.end());
    const size_t count = losses.size();
    printf("%-12s %6zu %9.1f%% %11.0f%% %7.1f%% %7.1f%%  %s\n", type.first.c_str(), count,
           100 * sum / static_cast<double>(count), 100 * near / static_cast<double>(count),
           100 * losses[count * 95 / 100].first, 100 * losses.back().first, losses.back().second.c_str());
  }
}

static inline void print_summary(const std::vector<bench_row> &rows) {
  printf("\n%-44s %4s %9s %8s  %s\n", "the peer's time / gpukit's", "rows", "geo. mean", "worst", "at");
  print_group(rows, "reduce f32 sum, cold, 2^10 ... 2^30", "reduce", "cold", "sum", "f32");
  print_group(rows, "reduce f32 sum, in a stream, 2^10 ... 2^30", "reduce", "stream", "sum", "f32");
  print_group(rows, "scan f32 exclusive sum, cold, 2^10 ... 2^30", "scan", "cold", "exclusive sum", "f32");
  for (const char *group : {"reduce", "scan"})
    for (const char *mode : {"cold", "stream", "hot"})
      print_group(rows, (std::string(group) + ", all, " + mode).c_str(), group, mode, "", "");
  print_group(rows, "matmul f32", "matmul", "hot", "", "f32");
  print_group(rows, "matmul f64", "matmul", "hot", "", "f64");
  print_random(rows);
  print_plans(rows);

  printf("\n%-40s %-8s %8s %8s %6s  %s\n", "goal", "", "is", "floor", "aim", "at");
  for (const bench_goal &g : goals) {
    double value = 0;
    const bench_row *at = NULL;
    const bool known = goal_value(g, rows, &value, &at);
    const bool met = goal_met(g, rows, value), aimed = g.aim > 0 && value >= g.aim;
    printf("%-40s %-8s ", g.what,
           !known        ? "-"
           : !met        ? "NOT MET"
           : aimed       ? "aim met"
           : g.floor > 0 ? "met"
                         : "not yet");
    known ? printf("%8.3f ", value) : printf("%8s ", "no rows");
    g.floor > 0 ? printf("%8.3f ", g.floor) : printf("%8s ", "");
    g.aim > 0 ? printf("%6.2f  ", g.aim) : printf("%6s  ", "");
    if (known) printf("%s %s", at->type.c_str(), g.figure & GOAL_MEAN ? "" : at->size.c_str());
    printf("\n");
  }
}

#endif
