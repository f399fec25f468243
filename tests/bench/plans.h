/* How long products take by each of many plans, as the bench has measured it on a GPU (--plan-times=FILE): the data that
 * refit.h and refit_mma.h fit the planners' costs to. A plan of a strict product is a tile of gk__tiles, an order of the
 * sums, and the way in which partitions of k are reduced. A plan of the mma.sync kernels (types f16, tf32 and emulated:
 * mma_plans.h) is a tile of gk__mma_tiles and a number of partitions; its other columns are empty or 0.
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
  bool hopper; /* the build and the GPU have Hopper's kernels for this product */
  bool fed;    /* rows are not aligned to 16 bytes, or B is stored along k: of Hopper's kernels those of fed blocks */
  bool operator==(const plan_shape &other) const {
    return type == other.type && m == other.m && n == other.n && k == other.k && trans_a == other.trans_a &&
           trans_b == other.trans_b && hopper == other.hopper && fed == other.fed;
  }
};
struct plan_time {
  int tile_idx; /* in gk__tiles, or in gk__mma_tiles */
  int rest_idx; /* the tile of what is cut, where that is a launch of its own beside the one of whole tiles; else -1 */
  gk__split_k order;
  unsigned joins; /* as gk__hopper_clocks has it; 0 for the other kernels, which have one way */
  double us;      /* of a call; 0: not measured yet */
  bool operator==(const plan_time &other) const {
    return tile_idx == other.tile_idx && rest_idx == other.rest_idx && joins == other.joins &&
           gk__same_split_k(order, other.order);
  }
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
  size_t smem_limit() const { return static_cast<size_t>(strtoull(head.get("smem").c_str(), NULL, 10)); }
};

/* --- Plans and their estimates ------------------------------------------------------------------------------------*/

inline gk__split_k plan_order(size_t k, unsigned partitions, size_t whole_rows, size_t whole_cols) {
  const size_t depth = gk_round_up(gk_ceil_div(k, static_cast<size_t>(partitions)), size_t(16));
  const gk__split_k order = {0, partitions, static_cast<int>(depth), whole_rows, whole_cols};
  return order;
}
/* The orders among which gk__plan_split_k chooses, and some more: every number of partitions, of all of C or of what
 * tiles of the first kind leave that fill the GPU whole. */
template <class Acc> std::vector<gk__split_k> plan_orders(size_t m, size_t n, size_t k) {
  typedef gk__tiles<Acc> tiles;
  std::vector<gk__split_k> orders;
  const auto add = [&](unsigned partitions, size_t whole_rows, size_t whole_cols) {
    const gk__split_k order = plan_order(k, partitions, whole_rows, whole_cols);
    if (gk_ceil_div(k, static_cast<size_t>(order.depth)) == partitions &&
        gk__partials_fit<Acc>(m - whole_rows, n - whole_cols, partitions))
      orders.push_back(order);
  };
  const unsigned most = GK__MATMUL_PARTITIONS;
  for (unsigned partitions = 1; partitions <= most && (partitions == 1 || k / partitions >= tiles::least_part);
       partitions++)
    add(partitions, 0, 0);
  const gk__tile_facts first = tiles::facts(0);
  const size_t tile_rows = gk_ceil_div(m, first.row_count), tile_cols = gk_ceil_div(n, first.col_count);
  const size_t shorter = tile_rows < tile_cols ? tile_rows : tile_cols,
               longer = tile_rows < tile_cols ? tile_cols : tile_rows;
  for (size_t full = tiles::at_once ? tile_rows * tile_cols / tiles::at_once : 0, less = 0; less < 2 && less < full;
       less++) {
    const size_t lines = (full - less) * tiles::at_once / shorter;
    if (lines == 0 || lines >= longer) continue;
    for (unsigned partitions = 2; partitions <= most / 2 && k / partitions >= 64; partitions++)
      add(partitions, tile_rows < tile_cols ? 0 : lines * first.row_count,
          tile_rows < tile_cols ? lines * first.col_count : 0);
  }
  return orders;
}

inline bool plan_is_part(const gk__split_k &order) { return order.whole_rows || order.whole_cols; }
/* Of such an order, what is whole or what is cut as a product of its own: its size, and its order. */
struct plan_part {
  size_t m, n;
  gk__split_k order;
};
inline plan_part plan_whole(const plan_shape &shape, const gk__split_k &order) {
  return {order.whole_rows ? order.whole_rows : shape.m, order.whole_cols ? order.whole_cols : shape.n,
          plan_order(shape.k, 1, 0, 0)};
}
inline plan_part plan_rest(const plan_shape &shape, const gk__split_k &order) {
  return {shape.m - order.whole_rows, shape.n - order.whole_cols, plan_order(shape.k, order.slices, 0, 0)};
}

template <class Acc> gk__tile_facts plan_tile(const plan_shape &shape, int tile_idx, unsigned partitions) {
  return gk__tile_for_operands(gk__tiles<Acc>::facts(tile_idx, partitions), shape.fed);
}
template <class Acc> bool plan_is_engine(int tile_idx) { return gk__is_tma_plan(gk__tiles<Acc>::facts(tile_idx).plan); }
/* What the planner takes a plan's time for; ~0: there is no such plan. */
template <class Acc> unsigned long long plan_clocks(const plan_shape &shape, const plan_time &plan, int sms) {
  const gk__tile_facts tile_facts = plan_tile<Acc>(shape, plan.tile_idx, plan.order.slices);
  const size_t m = shape.m, n = shape.n, k = shape.k, all_sms = static_cast<size_t>(sms);
  if (plan.rest_idx >= 0) { /* two launches */
    const plan_part whole = plan_whole(shape, plan.order), rest = plan_rest(shape, plan.order);
    return gk__split_k_clocks<Acc>(tile_facts, whole.order, whole.m, whole.n, k, 1, all_sms, shape.fed) +
           gk__split_k_clocks<Acc>(plan_tile<Acc>(shape, plan.rest_idx, rest.order.slices), rest.order, rest.m, rest.n,
                                   k, 1, all_sms, shape.fed);
  }
  const unsigned long long best = gk__split_k_clocks<Acc>(tile_facts, plan.order, m, n, k, 1, all_sms, shape.fed);
  if (!gk__is_tma_plan(tile_facts.plan) || plan_is_part(plan.order)) return best;
  /* That was by the best way to reduce partitions. */
  const size_t tiles = gk_ceil_div(m, tile_facts.row_count) * gk_ceil_div(n, tile_facts.col_count),
               depth = static_cast<size_t>(plan.order.depth), last = k - (plan.order.slices - 1) * depth;
  const unsigned long long clocks =
      gk__hopper_clocks(tile_facts, tiles, plan.order.slices, depth, last, all_sms, plan.joins);
  unsigned long long least = 0;
  gk__best_reduction(tile_facts, tiles, plan.order.slices, depth, last, all_sms, &least);
  return clocks == ~0ull ? clocks : best - least + clocks;
}
/* Every plan of these orders that there is on such a GPU. */
template <class Acc> std::vector<plan_time> plan_all(const plan_shape &shape, const std::vector<gk__split_k> &orders) {
  const int tile_count = gk__tiles<Acc>::item_count;
  std::vector<plan_time> plans;
  for (const gk__split_k &order : orders)
    for (int tile_idx = 0; tile_idx < tile_count; tile_idx++) {
      const gk__tile_facts tile_facts = plan_tile<Acc>(shape, tile_idx, order.slices);
      if (!gk__is_tma_plan(tile_facts.plan)) {
        if (!plan_is_part(order)) plans.push_back({tile_idx, -1, order, 0, 0});
        for (int rest_idx = 0; rest_idx < tile_count && plan_is_part(order); rest_idx++)
          if (!plan_is_engine<Acc>(rest_idx)) plans.push_back({tile_idx, rest_idx, order, 0, 0});
      } else if (shape.hopper && (shape.k >= 16 || !tile_facts.fed)) {
        plans.push_back({tile_idx, -1, order, 0, 0});
        if (plan_is_part(order) || order.slices < 2) continue;
        plans.push_back({tile_idx, -1, order, 1, 0});
        if (tile_facts.joins > 1) plans.push_back({tile_idx, -1, order, tile_facts.joins, 0});
      }
    }
  return plans;
}
/* The tile that the planner chooses for an order. */
template <class Acc> int plan_chosen_tile(const plan_shape &shape, const plan_part &part, int sms, bool hopper) {
  const bool fed = hopper && shape.fed;
  const gk__tile_facts chosen =
      gk__plan_tile<Acc>(part.order, part.m, part.n, shape.k, 1, sms, hopper, GK_PLAN_AUTO, fed);
  for (int i = 0; i < gk__tiles<Acc>::item_count; i++) {
    const gk__tile_facts tile_facts = gk__tiles<Acc>::facts(i);
    if (tile_facts.plan == chosen.plan && tile_facts.room == chosen.room) return i;
  }
  return -1;
}
/* What the planner chooses by the costs of gk__tiles<Acc>, as gk__enqueue_strict does, for a given order, and for the
 * one that it chooses itself. */
template <class Acc> plan_time plan_chosen(const plan_shape &shape, const gk__split_k &order, int sms) {
  plan_time plan = {plan_chosen_tile<Acc>(shape, {shape.m, shape.n, order}, sms, shape.hopper), -1, order, 0, 0};
  if (!plan_is_engine<Acc>(plan.tile_idx)) {
    if (!plan_is_part(order)) return plan;
    plan.tile_idx = plan_chosen_tile<Acc>(shape, plan_whole(shape, order), sms, false);
    plan.rest_idx = plan_chosen_tile<Acc>(shape, plan_rest(shape, order), sms, false);
  } else if (!plan_is_part(order)) {
    const gk__tile_facts tile_facts = plan_tile<Acc>(shape, plan.tile_idx, order.slices);
    const size_t tiles = gk_ceil_div(shape.m, tile_facts.row_count) * gk_ceil_div(shape.n, tile_facts.col_count),
                 depth = static_cast<size_t>(order.depth);
    unsigned long long clocks = 0;
    plan.joins = gk__best_reduction(tile_facts, tiles, order.slices, depth, shape.k - (order.slices - 1) * depth,
                                    static_cast<size_t>(sms), &clocks);
  }
  return plan;
}
template <class Acc> plan_time plan_chosen(const plan_shape &shape, int sms) {
  return plan_chosen<Acc>(shape, gk__plan_split_k<Acc>(shape.m, shape.n, shape.k), sms);
}

/* What is measured of a shape: what the planner chooses; every tile by that order, and by its own best one; and then
 * what the planner takes for the fastest, by up to twice as long as the best. */
template <class Acc> std::vector<plan_time> plans_to_measure(const plan_shape &shape, int sms) {
  const size_t most = 28;
  struct estimate {
    unsigned long long clocks;
    plan_time plan;
  };
  const plan_time chosen = plan_chosen<Acc>(shape, sms);
  std::vector<estimate> all;
  for (const plan_time &plan : plan_all<Acc>(shape, plan_orders<Acc>(shape.m, shape.n, shape.k)))
    all.push_back({plan_clocks<Acc>(shape, plan, sms), plan});
  std::sort(all.begin(), all.end(), [](const estimate &x, const estimate &y) { return x.clocks < y.clocks; });
  std::vector<plan_time> plans(1, chosen);
  const auto add = [&](const estimate &one, unsigned long long limit) {
    if (one.clocks / limit < all[0].clocks && std::find(plans.begin(), plans.end(), one.plan) == plans.end())
      plans.push_back(one.plan);
  };
  for (int tile_idx = 0; tile_idx < gk__tiles<Acc>::item_count; tile_idx++) {
    const auto is_of_tile = [&](const estimate &one) { return one.plan.tile_idx == tile_idx; };
    const auto is_of_order = [&](const estimate &one) {
      return is_of_tile(one) && gk__same_split_k(one.plan.order, chosen.order);
    };
    const auto best = std::find_if(all.begin(), all.end(), is_of_tile),
               same_order = std::find_if(all.begin(), all.end(), is_of_order);
    if (best != all.end()) add(*best, 3);
    if (same_order != all.end()) add(*same_order, 3);
  }
  for (const estimate &one : all)
    if (plans.size() < most) add(one, 2);
  return plans;
}

/* --- Files --------------------------------------------------------------------------------------------------------*/

/* As "128x128", "64x128tma" and "64x128tma3", of which three share a multiprocessor. */
inline std::string plan_tile_name(const gk__tile_facts &tile_facts) {
  const bool engine = gk__is_tma_plan(tile_facts.plan);
  return std::to_string(tile_facts.row_count) + "x" + std::to_string(tile_facts.col_count) + (engine ? "tma" : "") +
         (engine && tile_facts.room > 2 ? std::to_string(tile_facts.room) : "");
}
template <class Acc> int plan_tile_of(const std::string &name) {
  for (int i = 0; i < gk__tiles<Acc>::item_count; i++)
    if (plan_tile_name(gk__tiles<Acc>::facts(i)) == name) return i;
  return -1;
}
inline const char *plan_columns() {
  return "type,m,n,k,trans_a,trans_b,hopper,fed,tile,rest,partitions,whole_rows,whole_cols,joins,us,sm_mhz";
}
inline std::string plan_line(const plan_times &times, const plan_time &plan) {
  const plan_shape &shape = times.shape;
  const auto name = [&](int i) {
    if (i < 0) return std::string();
    if (is_mma_type(shape.type)) return mma_tile_name(shape.type, i);
    return plan_tile_name(shape.type == "f64" ? gk__tiles<double>::facts(i) : gk__tiles<float>::facts(i));
  };
  char text[300];
  snprintf(text, sizeof(text), "%s,%zu,%zu,%zu,%d,%d,%d,%d,%s,%s,%u,%zu,%zu,%u,%.4f,%.0f", shape.type.c_str(), shape.m,
           shape.n, shape.k, shape.trans_a, shape.trans_b, shape.hopper, shape.fed, name(plan.tile_idx).c_str(),
           name(plan.rest_idx).c_str(), plan.order.slices, plan.order.whole_rows, plan.order.whole_cols, plan.joins,
           plan.us, times.sm_mhz);
  return text;
}
inline bool parse_plan(const std::string &line, plan_times *times, plan_time *plan) {
  const std::vector<std::string> f = split_fields(line);
  if (f.size() != 16 || (f[0] != "f32" && f[0] != "f64" && !is_mma_type(f[0]))) return false;
  const auto number = [&](size_t i) { return static_cast<size_t>(strtoull(f[i].c_str(), NULL, 10)); };
  const auto tile = [&](size_t i) {
    if (is_mma_type(f[0])) return mma_tile_of(f[0], f[i]);
    return f[0] == "f64" ? plan_tile_of<double>(f[i]) : plan_tile_of<float>(f[i]);
  };
  const plan_shape shape = {f[0],           number(1),      number(2),      number(3),
                            number(4) != 0, number(5) != 0, number(6) != 0, number(7) != 0};
  const unsigned partitions = static_cast<unsigned>(number(10));
  if (!shape.m || !shape.n || !shape.k || !partitions) return false;
  times->shape = shape, times->sm_mhz = atof(f[15].c_str());
  plan->tile_idx = tile(8), plan->rest_idx = tile(9);
  plan->order = plan_order(shape.k, partitions, number(11), number(12));
  plan->joins = static_cast<unsigned>(number(13)), plan->us = atof(f[14].c_str());
  return plan->tile_idx >= 0 && (plan->rest_idx >= 0) == !f[9].empty() && plan->us > 0 && times->sm_mhz > 0;
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
