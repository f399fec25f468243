/* gk_dist_reduce and _scan of every kind of pieces against what one GPU makes of them, or a loop on the host. */
#ifndef DIST_H
#define DIST_H

#include "hooks.h"
#include "ranks.h"

#ifdef GPUKIT_NCCL

/* --- reduce --- */

/* What one GPU makes of each piece, put together in a loop on the host. */
template <class O, class F, class Op, class T> static O model_reduce(const std::vector<T> &x, const pieces &p, Op op) {
  typedef typename hook_working<F>::type A;
  const F f(op);
  A all = f.identity();
  size_t first = 0;
  for (size_t r = 0; r < p.size(); r++) {
    device_array<T> in(piece_of(x, p, static_cast<int>(r)));
    device_array<A> out(1);
    DEMAND_OK(gk_reduce(static_cast<const T *>(in.ptr), out.ptr, in.n, f));
    all = r ? f(all, moved(out.first(), first)) : moved(out.first(), first);
    first += p[r];
  }
  return hook_convert<O, A>::from(all);
}

template <class O, class Op, class T>
static void check_reduce(const std::vector<T> &x, const pieces &p, Op op, const char *what, bool exact = true) {
  typedef typename hook_functor<Op, T>::reduce F;
  const O expected = model_reduce<O, F>(x, p, op);
  if (exact) { /* and one GPU by itself agrees */
    device_array<T> in(x);
    device_array<O> out(1);
    DEMAND_OK(gk_reduce(static_cast<const T *>(in.ptr), out.ptr, in.n, op));
    DEMAND(same(out.first(), expected), std::string(what) + ", " + name_of(p) + ": the model itself is wrong");
  }
  run_ranks(p.size(), [&](const rank_of &me) {
    device_array<T> in(piece_of(x, p, me.rank));
    device_array<O> out(1);
    gk_scratch scratch = gk_scratch();
    DEMAND_OK(gk_scratch_create(&scratch, 0, 0));
    for (int turn = 0; turn < 3; turn++) {
      out.clear();
      DEMAND_OK(gk_dist_reduce(static_cast<const T *>(in.ptr), out.ptr, in.n, op, me.comm, 0, turn ? &scratch : NULL));
      DEMAND_OK(gk_dist_wait(me.comm, 0, patience));
      const O got = out.first();
      DEMAND(same(got, expected), std::string(what) + ", " + name_of(p) + ", rank " + std::to_string(me.rank) + ": " +
                                      show(got) + " against " + show(expected));
    }
    DEMAND_OK(gk_scratch_destroy(&scratch));
  });
}

/* Results of sum and prod in the type that is asked of gk_reduce. */
template <class T> struct total_of { typedef typename hook_widened<T>::type type; };
template <class T> static void check_reduces(const char *type) {
  for (const pieces &p : cases) {
    const std::vector<T> x = make_elements<gk_op_sum, T>(sum(p)), factors = make_elements<gk_op_prod, T>(sum(p));
    check_reduce<typename total_of<T>::type>(x, p, gk_op_sum(), type);
    check_reduce<typename total_of<T>::type>(factors, p, gk_op_prod(), type);
    check_reduce<T>(x, p, gk_op_min(), type);
    check_reduce<T>(x, p, gk_op_max(), type);
    check_reduce<gk_arg<T>>(x, p, gk_op_argmin(), type);
    check_reduce<gk_arg<T>>(x, p, gk_op_argmax(), type);
  }
}
/* --- scan --- */

/* One GPU's scans of the pieces, each with what stands before it; the totals by one GPU's reduce, or a loop. */
template <class O, class Op, class T> struct scan_model {
  typedef typename hook_functor<Op, O>::scan F;
  typedef typename hook_working<F>::type A;
  std::vector<A> before; /* of each rank */
  std::vector<size_t> first;
  scan_model(const std::vector<T> &x, const pieces &p, Op op) {
    const F f(op);
    A all = f.identity();
    size_t n = 0;
    for (size_t r = 0; r < p.size(); r++) {
      before.push_back(all);
      first.push_back(n);
      A total = f.identity();
      if (hook_commutes<F>::value) {
        device_array<T> in(piece_of(x, p, static_cast<int>(r)));
        device_array<A> out(1);
        DEMAND_OK(gk_reduce(static_cast<const T *>(in.ptr), out.ptr, in.n, f));
        total = out.first();
      } else {
        for (size_t i = 0; i < p[r]; i++) total = f(total, hook_lift<A, T>::from(x[n + i], i));
      }
      all = r ? f(all, moved(total, n)) : moved(total, n);
      n += p[r];
    }
  }
};

/* With bits: as one GPU scans each piece from its start; else (indices, which that cannot have): a loop on the host. */
template <class O, class Op, class T>
static void check_scan(const std::vector<T> &x, const pieces &p, Op op, const char *what, bool exact = true) {
  typedef scan_model<O, Op, T> model_type;
  const typename model_type::F f(op);
  const model_type model(x, p, op);
  const size_t n = x.size();
  std::vector<O> loop[2] = {std::vector<O>(n), std::vector<O>(n)};
  typename model_type::A running = f.identity();
  for (size_t i = 0; i < n && exact; i++) {
    loop[0][i] = hook_convert<O, typename model_type::A>::from(running);
    running = f(running, hook_lift<typename model_type::A, T>::from(x[i], i));
    loop[1][i] = hook_convert<O, typename model_type::A>::from(running);
  }
  run_ranks(p.size(), [&](const rank_of &me) {
    const size_t mine = p[static_cast<size_t>(me.rank)], first = model.first[static_cast<size_t>(me.rank)];
    device_array<T> in(piece_of(x, p, me.rank));
    device_array<O> out(mine), one(mine);
    gk_scratch scratch = gk_scratch();
    DEMAND_OK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(mine, sizeof(O)), 0));
    const T *const from = in.ptr;
    for (int turn = 0; turn < 4; turn++) {
      const bool inclusive = turn % 2;
      const gk_scratch *const use = turn < 2 ? NULL : &scratch;
      out.clear();
      DEMAND_OK(inclusive ? gk_dist_scan_inclusive(from, out.ptr, mine, op, me.comm, 0, use)
                          : gk_dist_scan_exclusive(from, out.ptr, mine, op, me.comm, 0, use));
      DEMAND_OK(gk_dist_wait(me.comm, 0, patience));
      std::vector<O> expected(mine);
      if (exact)
        for (size_t i = 0; i < mine; i++) expected[i] = loop[inclusive][first + i];
      else {
        DEMAND_OK(hook_scan_call({"model", 0, NULL}, from, one.ptr, mine, f, model.before[static_cast<size_t>(me.rank)],
                                 inclusive));
        expected = one.get();
      }
      const std::vector<O> got = out.get();
      size_t wrong = 0;
      while (wrong < mine && same(got[wrong], expected[wrong])) wrong++;
      if (wrong == mine) continue;
      DEMAND(false, std::string(what) + ", " + name_of(p) + ", rank " + std::to_string(me.rank) + ", turn " +
                        std::to_string(turn) + ", element " + std::to_string(wrong) + ": " + show(got[wrong]) +
                        " against " + show(expected[wrong]));
    }
    DEMAND_OK(gk_scratch_destroy(&scratch));
  });
}

/* Of halves few, as sums of many are not exact. */
template <class T> static pieces exact_pieces(pieces p) {
  for (size_t &n : p) n = is_half<T>::value && n > 20 ? 20 + n % 7 : n;
  return p;
}
template <class T> static void check_scans(const char *type) {
  for (const pieces &all : cases) {
    if (test_leaves_out()) continue;
    const pieces p = exact_pieces<T>(all);
    const std::vector<T> x = make_elements<gk_op_sum, T>(sum(p));
    check_scan<T>(x, p, gk_op_sum(), type);
    check_scan<T>(x, p, gk_op_min(), type);
  }
}
template <class T> static void check_more_scans(const char *type) {
  for (const pieces &all : cases) {
    if (test_leaves_out()) continue;
    const pieces p = exact_pieces<T>(all);
    const std::vector<T> x = make_elements<gk_op_sum, T>(sum(p)), factors = make_elements<gk_op_prod, T>(sum(p));
    check_scan<T>(factors, p, gk_op_prod(), type);
    check_scan<T>(x, p, gk_op_max(), type);
    check_scan<gk_arg<plain_type<T>>>(x, p, gk_op_argmin(), type);
    check_scan<gk_arg<plain_type<T>>>(x, p, gk_op_argmax(), type);
  }
}

#endif
#endif
