/* gk_dist_scan_inclusive and _exclusive: every type and operator, uneven and empty pieces, order, bits, graphs. */
#include "ranks.h"

#ifdef GPUKIT_NCCL

/* --- scan --- */

/* One GPU's scans of the pieces, each with what stands before it; the totals by one GPU's reduce, or a loop. */
template <class O, class Op, class T> struct scan_model {
  typedef typename gk__functor<Op, O>::scan F;
  typedef typename gk__working<F>::type A;
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
      if (gk__commutes<F>::value) {
        device_array<T> in(piece_of(x, p, static_cast<int>(r)));
        device_array<A> out(1);
        DEMAND_OK(gk_reduce(static_cast<const T *>(in.ptr), out.ptr, in.n, f));
        total = out.first();
      } else {
        for (size_t i = 0; i < p[r]; i++) total = f(total, gk__lift<A, T>::from(x[n + i], i));
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
    loop[0][i] = gk__convert<O, typename model_type::A>::from(running);
    running = f(running, gk__lift<typename model_type::A, T>::from(x[i], i));
    loop[1][i] = gk__convert<O, typename model_type::A>::from(running);
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
        DEMAND_OK(gk__scan_call("model", from, one.ptr, mine, f, model.before[static_cast<size_t>(me.rank)], inclusive,
                                0, NULL));
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
    const pieces p = exact_pieces<T>(all);
    const std::vector<T> x = make_elements<gk_op_sum, T>(sum(p));
    check_scan<T>(x, p, gk_op_sum(), type);
    check_scan<T>(x, p, gk_op_min(), type);
  }
}
template <class T> static void check_more_scans(const char *type) {
  for (const pieces &all : cases) {
    const pieces p = exact_pieces<T>(all);
    const std::vector<T> x = make_elements<gk_op_sum, T>(sum(p)), factors = make_elements<gk_op_prod, T>(sum(p));
    check_scan<T>(factors, p, gk_op_prod(), type);
    check_scan<T>(x, p, gk_op_max(), type);
    check_scan<gk_arg<plain_type<T>>>(x, p, gk_op_argmin(), type);
    check_scan<gk_arg<plain_type<T>>>(x, p, gk_op_argmax(), type);
  }
}
#define TEST_SCAN(S, T)                                                                                                \
  TEST(scan_of_##S) { check_scans<T>(#S); }
ALL_TYPES(TEST_SCAN)
#define TEST_MORE_SCAN(S, T)                                                                                           \
  TEST(scan_by_every_operator_of_##S) { check_more_scans<T>(#S); }
TEST_MORE_SCAN(u8, uint8_t)
TEST_MORE_SCAN(f16, __half)
TEST_MORE_SCAN(f64, double)

TEST(scan_has_the_bits_of_one_gpu_from_where_it_starts) {
  for (const pieces &p : cases) {
    std::vector<float> x(sum(p));
    for (size_t i = 0; i < x.size(); i++) x[i] = rounding<float>(8, i);
    check_scan<float>(x, p, gk_op_sum(), "floats of many sizes", false);
    check_scan<double>(x, p, gk_op_sum(), "summed in double", false);
  }
}

/* x -> ax + b modulo 2^32, one after the other: does not commute. */
struct affine {
  unsigned a, b;
};
struct then {
  __host__ __device__ affine identity() const { return affine{1, 0}; }
  __host__ __device__ affine operator()(const affine &x, const affine &y) const {
    return affine{x.a * y.a, x.b * y.a + y.b};
  }
};
TEST(scan_keeps_the_order_of_operands) {
  for (const pieces &p : cases) {
    std::vector<affine> x(sum(p));
    for (size_t i = 0; i < x.size(); i++)
      x[i] = affine{static_cast<unsigned>(mix(1, i)) | 1, static_cast<unsigned>(mix(2, i))};
    check_scan<affine>(x, p, then(), "affine maps");
  }
  /* In more parts than a warp has lanes, and the last one short. */
  const pieces many = {size_t(1) << 20, 300001, 5};
  std::vector<affine> x(sum(many));
  for (size_t i = 0; i < x.size(); i++)
    x[i] = affine{static_cast<unsigned>(mix(3, i)) | 1, static_cast<unsigned>(mix(4, i))};
  check_scan<affine>(x, many, then(), "many affine maps");
}

TEST(scan_in_place_and_misaligned) {
  run_ranks(3, [](const rank_of &me) {
    const size_t n = 20011, first = n * static_cast<size_t>(me.rank);
    std::vector<int64_t> x(n);
    for (size_t i = 0; i < n; i++) x[i] = static_cast<int64_t>(first + i);
    device_array<int64_t> both(n, 1);
    both.set(x);
    DEMAND_OK(gk_dist_scan_inclusive(static_cast<const int64_t *>(both.ptr), both.ptr, n, gk_op_sum(), me.comm));
    DEMAND_OK(gk_dist_wait(me.comm, 0, patience));
    const std::vector<int64_t> got = both.get();
    size_t wrong = 0;
    while (wrong < n && got[wrong] == static_cast<int64_t>((first + wrong) * (first + wrong + 1) / 2)) wrong++;
    DEMAND(wrong == n, "element " + std::to_string(wrong));
  });
}

/* A graph of the calls, replayed on other data. */
TEST(calls_in_a_graph) {
  run_ranks(2, [](const rank_of &me) {
    const size_t n = 30000;
    device_array<int> in(n), out(n), all(1);
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    gk_scratch scratch = gk_scratch();
    DEMAND_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DEMAND_OK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(n, 4), stream));
    DEMAND_OK(cudaStreamSynchronize(stream));
    DEMAND_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    DEMAND_OK(gk_dist_reduce(in.ptr, all.ptr, n, gk_op_sum(), me.comm, stream, &scratch));
    DEMAND_OK(gk_dist_scan_exclusive(in.ptr, out.ptr, n, gk_op_sum(), me.comm, stream, &scratch));
    DEMAND_OK(cudaStreamEndCapture(stream, &graph));
    DEMAND_OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int turn = 1; turn < 4; turn++) {
      in.set(std::vector<int>(n, turn));
      DEMAND_OK(cudaGraphLaunch(exec, stream));
      DEMAND_OK(gk_dist_wait(me.comm, stream, patience));
      DEMAND(all.first() == 60000 * turn, "the sum");
      DEMAND(out.get()[n - 1] == (30000 * (me.rank + 1) - 1) * turn, "the last prefix");
    }
    DEMAND_OK(cudaGraphExecDestroy(exec));
    DEMAND_OK(cudaGraphDestroy(graph));
    DEMAND_OK(gk_scratch_destroy(&scratch));
    DEMAND_OK(cudaStreamDestroy(stream));
  });
}
#endif
