/* How long random strict products take by each of the plans that the planner takes for good ones, and some others: for
 * --plan-times=FILE, which bench-refit reads. Every result is checked. */
#ifndef BENCH_PLAN_TIMES_H
#define BENCH_PLAN_TIMES_H

#include "matmul.h"
#include "plans.h"

#include <chrono>

/* A product by one plan. matmul_wrong sees the call alone. */
template <class T> struct planned_call : matmul_call<T> {
  gk__matmul_args<T, T, T> args;
  plan_shape shape;
  plan_time plan;
  gk__strict_gpu gpu;
};

#ifdef GK__WGMMA
/* As gk__engine<float, float, float>::run, but for the way in which partitions are reduced. */
inline cudaError_t launch_hopper(const planned_call<float> &call, const gk__tile_facts &tile_facts,
                                 gk__partials *partials, cudaStream_t stream) {
  typedef gk__engine<float, float, float> engine;
  const gk__split_k &order = call.plan.order;
  const auto launch = [&](auto config) {
    return engine::launch<decltype(config)>(call.args, call.plan.joins > 0, order.whole_rows, order.whole_cols,
                                            partials, stream, call.gpu.sms);
  };
  const bool in_groups = call.plan.joins > 1;
  if (tile_facts.plan == GK__PLAN_TILE_64_128_TMA && tile_facts.room == 3) return launch(engine::fed_flat_of_three());
  if (tile_facts.plan == GK__PLAN_TILE_64_128_TMA)
    return in_groups ? launch(engine::flat_groups()) : launch(engine::fed_flat());
  if (tile_facts.plan == GK__PLAN_TILE_128_64_TMA) return launch(engine::fed_tall());
  if (tile_facts.fed) return in_groups ? launch(engine::fed_groups()) : launch(engine::fed());
  return in_groups ? launch(engine::aligned_groups()) : launch(engine::aligned());
}
#endif
template <class T>
cudaError_t launch_hopper(const planned_call<T> &, const gk__tile_facts &, gk__partials *, cudaStream_t) {
  return cudaErrorNotSupported;
}

template <class T> cudaError_t run_plan(void *user, cudaStream_t stream, size_t) {
  planned_call<T> call = *static_cast<planned_call<T> *>(static_cast<matmul_call<T> *>(user));
  const gk__split_k &order = call.plan.order;
  const gk__tile_facts tile_facts = plan_tile<T>(call.shape, call.plan.tile_idx, order.slices);
  gk__partials partials = gk__partials_of(call.scratch, stream);
  call.args.slices = order.slices, call.args.depth = order.depth;
  if (gk__is_engine(tile_facts.plan)) return launch_hopper(call, tile_facts, &partials, stream);
  if (call.plan.rest_idx < 0) return gk__matmul_run(call.args, tile_facts.plan, &partials, call.gpu.smem_limit, stream);
  const plan_part whole = plan_whole(call.shape, order);
  gk__matmul_args<T, T, T> args = call.args.panel(0, 0, whole.m, whole.n);
  args.slices = 1, args.depth = whole.order.depth;
  GK_TRY(gk__matmul_run(args, tile_facts.plan, &partials, call.gpu.smem_limit, stream));
  args = call.args.panel(order.whole_rows, order.whole_cols, call.shape.m, call.shape.n);
  return gk__matmul_run(args, gk__tiles<T>::facts(call.plan.rest_idx).plan, &partials, call.gpu.smem_limit, stream);
}

/* Hopper's kernels, and the panels, which are chosen before any tile is. */
template <class T> bool has_hopper(const gk__matmul_args<T, T, T> &args) { return gk__engine<T, T, T>::takes(args); }
template <class T> bool has_no_tiles(const gk__matmul_args<T, T, T> &args, int sms) {
  gk__matmul_args<T, T, T> whole = args;
  whole.slices = 1;
  return gk__matmul_order<T>(args.m, args.n, args.k).thin || gk__by_panels<T, T, T>::takes(whole, GK_PLAN_AUTO, sms);
}

/* The times of all of these plans of one shape, which take turns. A plan that the GPU refuses is left out. */
template <class T> void measure_plans(std::vector<planned_call<T>> *calls, plan_times *times) {
  std::vector<gk_bench_fn> fns;
  std::vector<void *> users;
  for (planned_call<T> &call : *calls) {
    matmul_call<T> *const user = &call;
    if (run_plan<T>(user, bench.stream, 0) != cudaSuccess) {
      cudaGetLastError();
      continue;
    }
    fns.push_back(run_plan<T>);
    users.push_back(user);
    times->plans.push_back(call.plan);
  }
  if (fns.empty()) return;
  std::vector<gk_bench_result> found(fns.size());
  gk_bench_opts opts = gk_bench_opts();
  opts.stream = bench.stream, opts.warmup = 1, opts.samples = 5;
  GK_CHECK(gk_bench_compare(fns.data(), users.data(), static_cast<int>(fns.size()), &opts, found.data()));
  times->sm_mhz = bench_sm_mhz();
  std::vector<plan_time> right;
  for (size_t i = 0; i < fns.size(); i++) {
    const bench_contestant one = {"gpukit", run_plan<T>, users[i]};
    times->plans[i].us = 1e3 * found[i].median_ms;
    if (matmul_wrong<T>(&one, 0) == 0)
      right.push_back(times->plans[i]);
    else
      bench_plan_is_wrong(plan_line(*times, times->plans[i]));
  }
  times->plans = right;
}

/* One shape; no times: tiles have no part in it, or the memory does not suffice. */
template <class T> plan_times time_shape(const matmul_call<T> &given, const char *type) {
  plan_times times = {{type, given.m, given.n, given.k, given.trans_a, given.trans_b, false, false}, 0, {}};
  planned_call<T> call = planned_call<T>();
  static_cast<matmul_call<T> &>(call) = given;
  gk__matmul_args<T, T, T> &args = call.args;
  const size_t a_items = gk_round_up(given.m * given.k, size_t{64}), most = bench.capacity / sizeof(T);
  if (a_items + given.k * given.n > most || given.m * given.n > most) return times;
  call.b = given.a + a_items;
  args.a = call.a, args.b = call.b, args.c = call.c, args.m = call.m, args.n = call.n, args.k = call.k;
  args.trans_a = call.trans_a, args.trans_b = call.trans_b, args.batch = 1, args.alpha = 1, args.beta = 0;
  args.lda = call.trans_a ? call.m : call.k, args.ldb = call.trans_b ? call.k : call.n, args.ldc = call.n;
  args.stride_a = call.m * call.k, args.stride_b = call.k * call.n, args.stride_c = call.m * call.n;
  GK_CHECK(gk__find_strict_gpu(&call.gpu));
  if (has_no_tiles(args, call.gpu.sms)) return times;
  times.shape.fed = call.trans_b || args.lda % 4 || args.ldb % 4 || (!call.trans_a && call.k % 4);
  times.shape.hopper = has_hopper(args);
  call.shape = times.shape;
  std::vector<planned_call<T>> calls;
  for (const plan_time &plan : plans_to_measure<T>(times.shape, call.gpu.sms)) {
    call.plan = plan;
    calls.push_back(call);
  }
  measure_plans(&calls, &times);
  return times;
}

/* Random shapes from the first seed on, for bench.plan_seconds: two of any edges, then two of multiples of 32. */
template <class T> void time_plans(const char *type) {
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  matmul_call<T> call = {};
  gk_scratch scratch = {};
  call.a = reinterpret_cast<T *>(bench.in), call.c = reinterpret_cast<T *>(bench.out);
  call.way.units = 16;
  reference_fill(reinterpret_cast<T *>(bench.in), bench.capacity / sizeof(T), 3);
  GK_CHECK(gk_scratch_create(&scratch, GK__PARTIALS_BYTES + GK__STATE_BYTES + GK__REDUCE_BYTES, bench.stream));
  call.scratch = &scratch, call.batch = 1;
  random_numbers draw = random_from(bench.seeds[0]);
  for (size_t i = 0; i < bench.random_count && seconds() < bench.plan_seconds; i++) {
    const random_shape shape = next_shape(&draw, i / 2 % 2);
    call.m = shape.m, call.n = shape.n, call.k = shape.k;
    call.trans_a = shape.trans_a, call.trans_b = shape.trans_b;
    const plan_times times = time_shape(call, type);
    if (!times.plans.empty()) bench_write_plans(times);
  }
  GK_CHECK(gk_scratch_destroy(&scratch));
}

#endif
