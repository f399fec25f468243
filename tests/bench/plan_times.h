/* How long products take by each of many plans, for --plan-times=FILE, which bench-refit reads: strict products by
 * the plans that the planner takes for good ones, and some others; products by mma.sync by those of mma_plans.h. Every
 * result is checked. */
#ifndef BENCH_PLAN_TIMES_H
#define BENCH_PLAN_TIMES_H

#include "matmul.h"
#include "mma_plans.h"

#include <chrono>

/* Whether the filters name "plan times TYPE hot". */
inline bool plan_times_wanted(const char *type) {
  bench_contest c = {};
  c.group = "plan", c.what = "times", c.type = type, c.modes = BENCH_HOT;
  return bench_wanted(&c);
}
/* The i-th shape: first those of the bench, then random ones: two of any edges, two of multiples of 32, and two whose
 * edges up to 5000 are equally likely. */
inline random_shape plan_shape_at(size_t i, random_numbers *draw) {
  const size_t fixed_count = sizeof(shapes) / sizeof(*shapes), most = 5000;
  if (i < fixed_count) return {shapes[i].m, shapes[i].n, shapes[i].k, false, false};
  return i / 2 % 3 < 2 ? next_shape(draw, i / 2 % 3 ? 32 : 1) : next_uniform_shape(draw, most);
}
/* Runs `time_shape` on shapes for bench.plan_seconds, the random ones from the first seed on. It has the memory that a
 * call with any of the plans needs for partials. */
template <class TimeShape> void time_shapes(const TimeShape &time_shape) {
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  gk_scratch scratch = {};
  GK_CHECK(gk_scratch_create(&scratch, gk_matmul_scratch_bytes(), bench.stream));
  random_numbers draw = random_from(bench.seeds[0]);
  for (size_t i = 0; i < bench.random_count && seconds() < bench.plan_seconds; i++) {
    const plan_times times = time_shape(plan_shape_at(i, &draw), &scratch);
    if (!times.plans.empty()) bench_write_plans(times);
  }
  GK_CHECK(gk_scratch_destroy(&scratch));
}

/* --- Strict products ----------------------------------------------------------------------------------------------*/

/* A product by one plan. matmul_wrong sees the call alone. */
template <class T> struct planned_call : matmul_call<T> {
  typedef gk__matmul_args<T, T, T> args_type;
  typedef gk__hopper_path<args_type> hopper_path;
  args_type args;
  plan_time plan;
  gk__matmul_gpu gpu;
};

template <class T> cudaError_t run_plan(void *user, cudaStream_t stream, size_t) {
  const planned_call<T> &call = *static_cast<planned_call<T> *>(static_cast<matmul_call<T> *>(user));
  const gk__tile_facts tile_facts = gk__tiles<T>::facts(call.plan.tile_idx);
  const gk__split_k order = plan_split(call.k, call.plan.partitions);
  gk__product_call product(call.scratch, stream, call.gpu);
  typename planned_call<T>::args_type args = call.args;
  args.partitions = order.partitions;
  args.depth = order.depth;
  const gk__tile_choice choice = {tile_facts, 0, false};
  if (tile_facts.hopper) return planned_call<T>::hopper_path::run(args, choice, &product);
  return gk__matmul_tiles(gk__portable_kernel_of(args, tile_facts.plan, call.gpu, T()), args, &product);
}

/* The times of all of these plans of one shape, which take turns. A plan that the GPU refuses is left out. */
template <class T, class Call> void measure_plans(gk_bench_fn run, std::vector<Call> *calls, plan_times *times) {
  std::vector<gk_bench_fn> fns;
  std::vector<void *> users;
  for (Call &call : *calls) {
    matmul_call<T> *const user = &call;
    if (run(user, bench.stream, 0) != cudaSuccess) {
      cudaGetLastError();
      continue;
    }
    fns.push_back(run);
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
    const bench_contestant one = {"gpukit", run, users[i]};
    times->plans[i].us = 1e3 * found[i].median_ms;
    if (matmul_wrong<T>(&one, 0) == 0)
      right.push_back(times->plans[i]);
    else
      bench_plan_is_wrong(plan_line(*times, times->plans[i]));
  }
  times->plans = right;
}

/* One shape; no times: the kernel of thin products computes it, without tiles, or the memory does not suffice. */
template <class T> plan_times time_shape(const matmul_call<T> &given, const char *type) {
  plan_times times = {{type, given.m, given.n, given.k, given.trans_a, given.trans_b, false}, 0, {}};
  planned_call<T> call = planned_call<T>();
  static_cast<matmul_call<T> &>(call) = given;
  typename planned_call<T>::args_type &args = call.args;
  const size_t a_items = gk_round_up(given.m * given.k, size_t{64}), most = bench.capacity / sizeof(T);
  if (a_items + given.k * given.n > most || given.m * given.n > most) return times;
  call.b = given.a + a_items;
  args.a = call.a, args.b = call.b, args.c = call.c, args.m = call.m, args.n = call.n, args.k = call.k;
  args.trans_a = call.trans_a, args.trans_b = call.trans_b, args.batch = 1, args.alpha = 1, args.beta = 0;
  args.partitions = 1, args.depth = static_cast<int>(call.k);
  args.lda = times.shape.lda(), args.ldb = times.shape.ldb(), args.ldc = call.n;
  args.stride_a = call.m * call.k, args.stride_b = call.k * call.n, args.stride_c = call.m * call.n;
  GK_CHECK(gk__find_matmul_gpu(&call.gpu));
  if (gk__plan_split_k<T>(call.m, call.n, call.k).thin) return times;
  times.shape.hopper = planned_call<T>::hopper_path::hopper(args, call.gpu);
  std::vector<planned_call<T>> calls;
  for (const plan_time &plan : plans_to_measure<T>(times.shape, call.gpu.sms)) {
    call.plan = plan;
    calls.push_back(call);
  }
  measure_plans<T>(run_plan<T>, &calls, &times);
  return times;
}

template <class T> void time_plans(const char *type) {
  if (!plan_times_wanted(type)) return;
  matmul_call<T> call = {};
  call.a = reinterpret_cast<T *>(bench.in), call.c = reinterpret_cast<T *>(bench.out);
  call.way.units = 16, call.batch = 1;
  reference_fill(reinterpret_cast<T *>(bench.in), bench.capacity / sizeof(T), 3);
  time_shapes([&](const random_shape &shape, gk_scratch *scratch) {
    call.m = shape.m, call.n = shape.n, call.k = shape.k, call.scratch = scratch;
    call.trans_a = shape.trans_a, call.trans_b = shape.trans_b;
    return time_shape(call, type);
  });
}

/* --- Products by mma.sync -----------------------------------------------------------------------------------------*/

/* A product by one plan, on operands that are prepared. matmul_wrong sees the call, on operands as they are given. */
template <class Element, class T> struct mma_call : matmul_call<T> {
  gk__tensor_args<Element, T> args;
  gk__mma_plan mma_plan;
  plan_time plan;
};
template <int Products, class Element, class T> cudaError_t run_mma_plan(void *user, cudaStream_t stream, size_t) {
  const mma_call<Element, T> &call = *static_cast<mma_call<Element, T> *>(static_cast<matmul_call<T> *>(user));
  gk__product_call product(call.scratch, stream);
  if (call.mma_plan.product_bytes) product.measure(call.mma_plan.product_bytes, 1);
  GK_TRY(product.begin());
  return gk__mma_run<Products>(call.args, call.mma_plan, &product);
}

/* Prepares both operands in bench.out, behind C. False: the memory does not suffice, or this build has no such kernels. */
template <int Making, class Element, class T> bool prepare_operands(mma_call<Element, T> *call) {
  const size_t m = call->m, n = call->n, k = call->k, front = gk_round_up(m * n * sizeof(T), size_t{GK__WORK_FRONT});
  gk__matmul_gpu gpu = gk__matmul_gpu();
  GK_CHECK(gk__find_matmul_gpu(&gpu));
  GK_CHECK((gk__find_tensor_plan<int, int>(80, &gpu)));
  const gk__product product = {sizeof(T),
                               m,
                               n,
                               k,
                               1,
                               {reinterpret_cast<uintptr_t>(call->a), k, 0, true},
                               {reinterpret_cast<uintptr_t>(call->b), k, 0, true},
                               call->way.precision,
                               GK_PLAN_MMA};
  const gk__product_plan plan = gk__plan_product(product, gpu);
  if (plan.plan != GK_PLAN_MMA || front + plan.work_bytes(1) > bench.capacity) return false;
  gk__tensor_args<Element, T> &args = call->args;
  unsigned *const outside = reinterpret_cast<unsigned *>(bench.out + front);
  unsigned char *const work_a = reinterpret_cast<unsigned char *>(bench.out) + front + GK__WORK_FRONT;
  unsigned char *const work_b = work_a + gk__work_offset(plan.a.work_bytes(1));
  args.a = gk__view_operand<Element>(plan.a, product.a, work_a);
  args.b = gk__view_operand<Element>(plan.b, product.b, work_b);
  args.c = call->c, args.ldc = n, args.stride_c = m * n;
  args.m = m, args.n = n, args.k = k, args.batch = 1, args.alpha = 1, args.beta = 0;
  args.max_blocks = 0;
  if (plan.a.wanted || plan.b.wanted)
    GK_CHECK(gk__prepare_operands<Making>(gk__prepared_operand<T>(plan.a, product.a, 1, work_a),
                                          gk__prepared_operand<T>(plan.b, product.b, 1, work_b), k, outside, false, 0,
                                          gk__product_call(NULL, bench.stream, gpu)));
  return true;
}

/* One shape with both operands along k, which all types take; no times: see prepare_operands. */
template <int Making, int Products, class Element, class T> plan_times time_mma_shape(const matmul_call<T> &given) {
  plan_times times = {{given.way.name, given.m, given.n, given.k, false, true, false}, 0, {}};
  mma_call<Element, T> call = mma_call<Element, T>();
  static_cast<matmul_call<T> &>(call) = given;
  const size_t a_items = gk_round_up(given.m * given.k, size_t{64});
  if (a_items + given.k * given.n > bench.capacity / sizeof(T)) return times;
  call.b = given.a + a_items;
  if (!prepare_operands<Making>(&call)) return times;
  gk__matmul_gpu gpu = {};
  GK_CHECK(gk__find_matmul_gpu(&gpu));
  std::vector<mma_call<Element, T>> calls;
  for (const gk__mma_plan &plan : mma_plans_to_measure(times.shape, gpu)) {
    call.mma_plan = plan;
    call.plan = mma_plan_time(plan);
    calls.push_back(call);
  }
  measure_plans<T>(run_mma_plan<Products, Element, T>, &calls, &times);
  return times;
}

template <int Making, int Products, class Element, class T> void time_mma_plans(const matmul_way &way) {
  if (!plan_times_wanted(way.name)) return;
  matmul_call<T> call = {};
  call.a = reinterpret_cast<T *>(bench.in), call.c = reinterpret_cast<T *>(bench.out);
  call.way = way, call.batch = 1, call.trans_b = true;
  reference_fill(reinterpret_cast<T *>(bench.in), bench.capacity / sizeof(T), 3);
  time_shapes([&](const random_shape &shape, gk_scratch *scratch) {
    call.m = shape.m, call.n = shape.n, call.k = shape.k, call.scratch = scratch;
    return time_mma_shape<Making, Products, Element>(call);
  });
}

#endif
