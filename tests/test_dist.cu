/* gk_dist_reduce, _matmul and _wait: the bits, uneven and empty pieces, ranks that die, wrong arguments, calls that fail. */
#include "ranks.h"

#ifdef GPUKIT_NCCL

/* --- reduce --- */

/* What one GPU makes of each piece, put together in a loop on the host. */
template <class O, class F, class Op, class T> static O model_reduce(const std::vector<T> &x, const pieces &p, Op op) {
  typedef typename gk__working<F>::type A;
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
  return gk__convert<O, A>::from(all);
}

template <class O, class Op, class T>
static void check_reduce(const std::vector<T> &x, const pieces &p, Op op, const char *what, bool exact = true) {
  typedef typename gk__functor<Op, T>::reduce F;
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
template <class T> struct total_of { typedef typename gk__widened<T>::type type; };
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
#define TEST_REDUCE(S, T)                                                                                              \
  TEST(reduce_of_every_operator_##S) { check_reduces<T>(#S); }
ALL_TYPES(TEST_REDUCE)

TEST(reduce_has_the_bits_of_the_ranks_in_order) {
  for (const pieces &p : cases) {
    std::vector<float> x(sum(p));
    for (size_t i = 0; i < x.size(); i++) x[i] = rounding<float>(7, i);
    check_reduce<float>(x, p, gk_op_sum(), "floats of many sizes", false);
  }
}
TEST(reduce_keeps_nan_and_minus_zero) {
  const pieces p = {3, 0, 2};
  check_reduce<float>(std::vector<float>{1, NAN, 2, -5, 4}, p, gk_op_min(), "a NaN");
  check_reduce<gk_arg<float>>(std::vector<float>{1, 2, 3, NAN, NAN}, p, gk_op_argmax(), "the first NaN");
  check_reduce<float>(std::vector<float>{-0.0f}, pieces{1}, gk_op_sum(), "minus zero");
  check_reduce<float>(std::vector<float>{0, 0, 0, -0.0f, 0}, p, gk_op_min(), "minus zero as the least");
}

/* A working value with more bytes than any of section 5 has. */
struct extent {
  double low[4], high[4];
};
struct union_of {
  __host__ __device__ extent identity() const {
    extent e;
    for (int i = 0; i < 4; i++) e.low[i] = 1e300, e.high[i] = -1e300;
    return e;
  }
  __host__ __device__ extent operator()(const extent &x, const extent &y) const {
    extent e;
    for (int i = 0; i < 4; i++) {
      e.low[i] = x.low[i] < y.low[i] ? x.low[i] : y.low[i];
      e.high[i] = x.high[i] > y.high[i] ? x.high[i] : y.high[i];
    }
    return e;
  }
};
TEST(reduce_by_a_functor_with_large_values) {
  run_ranks(3, [](const rank_of &me) {
    const size_t n = 1000;
    std::vector<extent> x(n);
    for (size_t i = 0; i < n; i++)
      for (int k = 0; k < 4; k++)
        x[i].low[k] = x[i].high[k] =
            uniform(static_cast<uint64_t>(k), i + n * static_cast<size_t>(me.rank), -1000, 1000);
    extent expected = union_of().identity();
    for (int r = 0; r < 3; r++)
      for (size_t i = 0; i < n; i++) {
        extent e;
        for (int k = 0; k < 4; k++)
          e.low[k] = e.high[k] = uniform(static_cast<uint64_t>(k), i + n * static_cast<size_t>(r), -1000, 1000);
        expected = union_of()(expected, e);
      }
    device_array<extent> in(x), out(1);
    DEMAND_OK(gk_dist_reduce(static_cast<const extent *>(in.ptr), out.ptr, n, union_of(), me.comm));
    DEMAND_OK(gk_dist_wait(me.comm, 0, patience));
    DEMAND(same(out.first(), expected), "the extent of all");
  });
}

/* No test has memory for that many elements; but the indices add up where the pieces are only said to be that long. */
TEST(indices_past_four_billion) {
  typedef gk_arg<float> A;
  const size_t large = size_t(1) << 33;
  std::vector<gk__record<A>> record;
  record.push_back(gk__record<A>(A{5, 77}, large));
  record.push_back(gk__record<A>(gk_argmin<float>().identity(), 0));
  record.push_back(gk__record<A>(A{3, large - 1}, large));
  record.push_back(gk__record<A>(A{3, 0}, 1));
  device_array<gk__record<A>> records(record);
  device_array<A> out(1);
  device_array<gk__record<A>> start(std::vector<gk__record<A>>(1, gk__record<A>(A{0, 0})));
  gk__dist d = {"test", NULL, 0, 4, 0};
  DEMAND_OK(gk__fold(d, records.ptr, 4, gk_argmin<float>(), out.ptr));
  DEMAND(same(out.first(), A{3, 2 * large - 1}), show(out.first()));
  DEMAND_OK(gk__fold(d, records.ptr, 3, gk_argmin<float>(), start.ptr));
  DEMAND(start.first().elements() == 2 * large, test_show(start.first().elements()));
  DEMAND(same(gk__value_of(start.first().value, A()), A{3, 2 * large - 1}), "the value in a record");
}
/* More ranks than a warp has lanes. */
TEST(records_of_a_hundred_ranks) {
  typedef gk_arg<int> A;
  for (size_t count : {size_t(31), size_t(32), size_t(33), size_t(100)}) {
    std::vector<gk__record<A>> record;
    A expected = gk_argmax<int>().identity();
    size_t before = 0;
    for (size_t i = 0; i < count; i++) {
      const A value = {uniform(1, i, 0, 50), i % 3};
      record.push_back(gk__record<A>(value, i));
      expected = gk_argmax<int>()(expected, moved(value, before));
      before += i;
    }
    device_array<gk__record<A>> records(record);
    device_array<A> out(1);
    gk__dist d = {"test", NULL, 0, static_cast<int>(count), 0};
    DEMAND_OK(gk__fold(d, records.ptr, count, gk_argmax<int>(), out.ptr));
    DEMAND(same(out.first(), expected), show(out.first()) + " against " + show(expected));
  }
}

/* --- waiting for ranks that never come --- */

static void impatient() {
#ifdef CUDA_ON_CPU
  nccl_cpu_patience(20);
#endif
}
static void patient() {
#ifdef CUDA_ON_CPU
  nccl_cpu_patience(static_cast<int>(patience));
#endif
}

TEST(waiting_for_what_is_done) {
  run_ranks(2, [](const rank_of &me) {
    cudaStream_t stream;
    DEMAND_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    device_array<int> in(std::vector<int>{1, 2, 3}), out(1);
    DEMAND_OK(gk_dist_wait(me.comm, stream, 0));
    DEMAND_OK(gk_dist_reduce(in.ptr, out.ptr, 3, gk_op_sum(), me.comm, stream));
    DEMAND_OK(gk_dist_wait(me.comm, stream, patience, true));
    DEMAND(out.first() == 12, "the sum");
    DEMAND(!gk_error_detail()[0], "a success says something");
    DEMAND_OK(cudaStreamDestroy(stream));
  });
}

/* One of three never calls; the others abort, and their streams are free. */
TEST(a_rank_that_never_calls) {
  impatient();
  const std::vector<ncclComm_t> comms = new_comms(3);
  std::atomic<int> finished(0);
  run_on(comms, [&](const rank_of &me) {
    cudaStream_t stream;
    DEMAND_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    device_array<int> in(std::vector<int>{1, 2, 3}), out(1);
    cudaGetLastError();
    if (me.rank != 1) {
      DEMAND_OK(gk_dist_reduce(in.ptr, out.ptr, 3, gk_op_sum(), me.comm, stream));
      DEMAND_FAILS(cudaErrorTimeout, "perhaps for a rank that has died or failed, after",
                   gk_dist_wait(me.comm, stream, 100));
      DEMAND(strstr(gk_error_detail(), "has not been aborted, and the stream may wait for ever"), gk_error_detail());
      DEMAND(cudaStreamQuery(stream) == cudaErrorNotReady, "the stream is done");
      cudaGetLastError();
      DEMAND_FAILS(cudaErrorTimeout, "the communicator has been aborted, and may not be used any more",
                   gk_dist_wait(me.comm, stream, 100, true));
      DEMAND(cudaPeekAtLastError() == cudaSuccess, "cudaErrorNotReady is left behind");
      finished++;
    } else {
      while (finished < 2) std::this_thread::yield();
      DEMAND_OK(static_cast<cudaError_t>(ncclCommAbort(me.comm)));
    }
    DEMAND_OK(cudaStreamSynchronize(stream));
    DEMAND_OK(cudaStreamDestroy(stream));
  });
  patient();
}

#ifdef CUDA_ON_CPU
/* Before the others' calls, or while they wait; noticed by NCCL or not. */
TEST(a_rank_that_dies) {
  for (const bool heard : {false, true})
    for (const bool before : {false, true}) {
      const std::vector<ncclComm_t> comms = new_comms(4);
      std::atomic<int> finished(0);
      if (before) nccl_cpu_kill(comms[2], heard);
      run_on(comms, [&](const rank_of &me) {
        if (me.rank == 2) {
          if (!before) { /* when the others may be waiting already */
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            nccl_cpu_kill(me.comm, heard);
          }
          while (finished < 3) std::this_thread::yield();
          EXPECT_OK(ncclCommDestroy(me.comm));
          return;
        }
        device_array<float> in(std::vector<float>(1000, 1.0f)), out(1000);
        DEMAND_OK(gk_dist_scan_inclusive(in.ptr, out.ptr, 1000, gk_op_sum(), me.comm));
        DEMAND_FAILS(heard ? cudaErrorUnknown : cudaErrorTimeout, heard ? "remote process exited" : "has died",
                     gk_dist_wait(me.comm, 0, heard ? patience : 50, true));
        DEMAND(out.untouched(), "what waits for a dead rank is written");
        DEMAND_FAILS(cudaErrorInvalidValue, "not a communicator",
                     gk_dist_scan_inclusive(in.ptr, out.ptr, 1000, gk_op_sum(), me.comm));
        finished++;
      });
    }
}
#endif

/* --- wrong arguments --- */

TEST(wrong_arguments_of_reduce) {
  run_ranks(1, [](const rank_of &me) {
    device_array<int> in(10), out(1);
    gk_scratch small = gk_scratch();
    int *const none = NULL;
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_reduce: the communicator is NULL",
                 gk_dist_reduce(in.ptr, out.ptr, 10, gk_op_sum(), NULL));
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_reduce: in is NULL but n = 10",
                 gk_dist_reduce(none, out.ptr, 10, gk_op_sum(), me.comm));
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_reduce: out is NULL",
                 gk_dist_reduce(in.ptr, none, 10, gk_op_sum(), me.comm));
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_reduce: the scratch has 0 bytes, but",
                 gk_dist_reduce(in.ptr, out.ptr, 10, gk_op_sum(), me.comm, 0, &small));
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_wait: the communicator is NULL", gk_dist_wait(NULL, 0, 1));
    DEMAND(out.untouched(), "a call that fails has written");
    if (device_count() > 1) {
      EXPECT_OK(cudaSetDevice(1));
      DEMAND_FAILS(cudaErrorInvalidDevice, "rank 0 is device 0, but device 1 is current",
                   gk_dist_reduce(in.ptr, out.ptr, 10, gk_op_sum(), me.comm));
      EXPECT_OK(cudaSetDevice(0));
    }
  });
}

TEST(a_split_leaves_nothing_out) {
  for (size_t n : {size_t(0), size_t(1), size_t(7), size_t(1000), SIZE_MAX})
    for (int ranks = 1; ranks < 9; ranks++) {
      size_t next = 0;
      for (int r = 0; r < ranks; r++) {
        const gk_dist_piece p = gk_dist_split(n, ranks, r);
        EXPECT_EQ(p.first, next);
        EXPECT(p.count == n / static_cast<size_t>(ranks) || p.count == n / static_cast<size_t>(ranks) + 1);
        next += p.count;
      }
      EXPECT_EQ(next, n);
    }
}
#endif
