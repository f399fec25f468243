/* How long products take by each of many plans, as the bench has measured it on a GPU (--plan-times=FILE): the data that
 * refit.h and refit_mma.h fit the planners' costs to. A plan is a tile and a number of partitions of k: for a strict
 * product a tile of gk__tiles, and for the mma.sync kernels (types f16, tf32 and emulated: mma_plans.h) one of
 * gk__mma_tiles.
 *
 * A file begins with lines "# key: value", as those of rows.h do. Then come the names of the columns, and one line for
 * each plan; those of a shape follow one another. Include gpukit.cuh first. */
#ifndef BENCH_PLANS_H
#define BENCH_PLANS_H

#include "mma_tiles.h"
#include "rows.h"

struct plan_shape {
  std::string type; /* "f32" or "f64"; by mma.sync "f16", "tf32" or "emulated" */
  size_t m, n, k;
  bool trans_a, trans_b;
  unsigned hopper; /* the Hopper kernels that the build and the GPU have for it, as in gk__plan_query */
  /* Of contiguous operands. */
  size_t lda() const { return trans_a ? m : k; }
  size_t ldb() const { return trans_b ? k : n; }
  bool operator==(const plan_shape &other) const {
    return type == other.type && m == other.m && n == other.n && k == other.k && trans_a == other.trans_a &&
           trans_b == other.trans_b && hopper == other.hopper;
  }
};
struct plan_time {
  int tile_idx; /* in gk__tiles, or in gk__mma_tiles */
  unsigned partitions;
  double us; /* of a call; 0: not measured yet */
  bool operator==(const plan_time &other) const { return tile_idx == other.tile_idx && partitions == other.partitions; }
};
struct plan_times {
  plan_shape shape;
  double sm_mhz; /* the clock after the last of its plans was measured */
  std::vector<plan_time> plans;
};
struct plan_file {
  bench_file head; /* of which only the remarks are used: "gpu", "build", "commit", "sms", "smem" */
  std::vector<plan_times> shapes;
  int sms() const { return atoi(head.get("sms").c_str()); }
  /* Bytes of shared memory that a block may have; 0 in files without mma.sync's plans. */
  int smem_limit() const { return atoi(head.get("smem").c_str()); }
};

/* --- Plans and their estimates ------------------------------------------------------------------------------------*/

/* Into fewer partitions if these cover k. */
inline gk__split_k plan_split(size_t k, unsigned partitions) {
  const size_t quantum = 16;
  return gk__split_evenly(k, partitions, quantum);
}
/* The planner's estimate. */
template <class Acc> unsigned long long plan_clocks(const plan_shape &shape, const plan_time &plan, int sms) {
  const gk__split_k order = plan_split(shape.k, plan.partitions);
  return gk__clocks<Acc>(gk__tiles<Acc>::facts(plan.tile_idx),
                         {shape.m, shape.n, shape.k, 1, order, GK_PLAN_AUTO, sms, shape.hopper, false, false, 232448});
}
/* Every plan of a shape: each tile with each number of partitions that gk__plan_split_k chooses from, and some more. */
template <class Acc> std::vector<plan_time> plan_all(const plan_shape &shape) {
  typedef gk__tiles<Acc> tiles;
  std::vector<plan_time> plans;
  for (unsigned partitions = 1; partitions <= GK__MATMUL_PARTITIONS; partitions++) {
    if (partitions > 1 && shape.k / partitions < tiles::least_depth()) break;
    if (plan_split(shape.k, partitions).partitions < partitions) continue;
    if (!gk__partials_fit<Acc>(shape.m, shape.n, partitions)) continue;
    for (int tile_idx = 0; tile_idx < tiles::item_count; tile_idx++)
      if (tiles::facts(tile_idx).hopper <= shape.hopper) plans.push_back({tile_idx, partitions, 0});
  }
  return plans;
}
/* What the planner chooses by the costs of gk__tiles<Acc>, as gk__enqueue_strict does. */
template <class Acc> plan_time plan_chosen(const plan_shape &shape, int sms) {
  const gk__split_k order = gk__plan_split_k<Acc>(shape.m, shape.n, shape.k);
  const gk__tile_facts chosen =
      gk__plan_tile<Acc>({shape.m, shape.n, shape.k, 1, order, GK_PLAN_AUTO, sms, shape.hopper, false, false, 232448})
          .tile_facts;
  plan_time plan = {-1, order.partitions, 0};
  for (int i = 0; i < gk__tiles<Acc>::item_count; i++)
    if (gk__tiles<Acc>::facts(i).plan == chosen.plan) plan.tile_idx = i;
  return plan;
}

/* What is measured of a shape: what the planner chooses; every tile with as many partitions, and with its own best
 * number of them; and then the plans with the least estimates, up to twice the least one. */
template <class Acc> std::vector<plan_time> plans_to_measure(const plan_shape &shape, int sms) {
  const size_t most = 28;
  struct estimate {
    unsigned long long clocks;
    plan_time plan;
  };
  const plan_time chosen = plan_chosen<Acc>(shape, sms);
  std::vector<estimate> all;
  for (const plan_time &plan : plan_all<Acc>(shape)) all.push_back({plan_clocks<Acc>(shape, plan, sms), plan});
  std::stable_sort(all.begin(), all.end(), [](const estimate &x, const estimate &y) { return x.clocks < y.clocks; });
  std::vector<plan_time> plans(1, chosen);
  const auto add = [&](const estimate &one, unsigned long long limit) {
    if (one.clocks / limit < all[0].clocks && std::find(plans.begin(), plans.end(), one.plan) == plans.end())
      plans.push_back(one.plan);
  };
  for (int tile_idx = 0; tile_idx < gk__tiles<Acc>::item_count; tile_idx++) {
    const auto is_of_tile = [&](const estimate &one) { return one.plan.tile_idx == tile_idx; };
    const auto is_split_alike = [&](const estimate &one) {
      return is_of_tile(one) && one.plan.partitions == chosen.partitions;
    };
    const auto best = std::find_if(all.begin(), all.end(), is_of_tile),
               split_alike = std::find_if(all.begin(), all.end(), is_split_alike);
    if (best != all.end()) add(*best, 3);
    if (split_alike != all.end()) add(*split_alike, 3);
  }
  for (const estimate &one : all)
    if (plans.size() < most) add(one, 2);
  return plans;
}

/* --- Files --------------------------------------------------------------------------------------------------------*/

/* Of a strict product. */
inline gk__tile_facts plan_tile(const std::string &type, int tile_idx) {
  return type == "f64" ? gk__tiles<double>::facts(tile_idx) : gk__tiles<float>::facts(tile_idx);
}
/* As "64x128", or "64x128tma" on Hopper. */
inline std::string plan_tile_name(const gk__tile_facts &tile_facts) {
  return std::to_string(tile_facts.row_count) + "x" + std::to_string(tile_facts.col_count) +
         (tile_facts.hopper ? "tma" : "");
}
template <class Acc> int plan_tile_of(const std::string &name) {
  for (int i = 0; i < gk__tiles<Acc>::item_count; i++)
    if (plan_tile_name(gk__tiles<Acc>::facts(i)) == name) return i;
  return -1;
}
inline const char *plan_columns() { return "type,m,n,k,trans_a,trans_b,hopper,tile,partitions,us,sm_mhz"; }
inline std::string plan_line(const plan_times &times, const plan_time &plan) {
  const plan_shape &shape = times.shape;
  std::string tile;
  if (is_mma_type(shape.type))
    tile = mma_tile_name(shape.type, plan.tile_idx);
  else
    tile = plan_tile_name(plan_tile(shape.type, plan.tile_idx));
  char text[300];
  snprintf(text, sizeof(text), "%s,%zu,%zu,%zu,%d,%d,%u,%s,%u,%.4f,%.0f", shape.type.c_str(), shape.m, shape.n, shape.k,
           shape.trans_a, shape.trans_b, shape.hopper, tile.c_str(), plan.partitions, plan.us, times.sm_mhz);
  return text;
}
inline bool parse_plan(const std::string &line, plan_times *times, plan_time *plan) {
  const std::vector<std::string> f = split_fields(line);
  if (f.size() != 11 || (f[0] != "f32" && f[0] != "f64" && !is_mma_type(f[0]))) return false;
  const auto number = [&](size_t i) { return static_cast<size_t>(strtoull(f[i].c_str(), NULL, 10)); };
  times->shape = {
      f[0], number(1), number(2), number(3), number(4) != 0, number(5) != 0, static_cast<unsigned>(number(6))};
  times->sm_mhz = atof(f[10].c_str());
  const plan_shape &shape = times->shape;
  if (is_mma_type(f[0]))
    plan->tile_idx = mma_tile_of(f[0], f[7]);
  else
    plan->tile_idx = f[0] == "f64" ? plan_tile_of<double>(f[7]) : plan_tile_of<float>(f[7]);
  plan->partitions = static_cast<unsigned>(number(8));
  plan->us = atof(f[9].c_str());
  if (shape.m == 0 || shape.n == 0 || shape.k == 0 || plan->tile_idx < 0 || plan->partitions == 0) return false;
  const bool covers_k = is_mma_type(f[0]) || plan_split(shape.k, plan->partitions).partitions == plan->partitions;
  return covers_k && plan->us > 0 && times->sm_mhz > 0;
}
/* False: a line is no plan, or of a tile that the planner does not have, and *bad is that line. */
inline bool read_plans(std::istream &from, plan_file *file, std::string *bad) {
  for (std::string line; std::getline(from, line);) {
    plan_times times;
    plan_time plan;
    if (line.empty() || line == plan_columns()) continue;
    if (line.compare(0, 2, "# ") == 0) {
      file->head.remarks.push_back(line.substr(2));
    } else if (parse_plan(line, &times, &plan)) {
      if (file->shapes.empty() || !(file->shapes.back().shape == times.shape)) file->shapes.push_back(times);
      file->shapes.back().plans.push_back(plan);
    } else {
      *bad = line;
      return false;
    }
  }
  return true;
}
inline void write_plans(std::ostream &to, const plan_times &times) {
  for (const plan_time &plan : times.plans) to << plan_line(times, plan) << "\n";
}
inline void write_plans(std::ostream &to, const plan_file &file) {
  for (const std::string &remark : file.head.remarks) to << "# " << remark << "\n";
  to << plan_columns() << "\n";
  for (const plan_times &times : file.shapes) write_plans(to, times);
}

#endif
