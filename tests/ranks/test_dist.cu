/* gk_dist_reduce, _matmul and _wait: the bits, uneven and empty pieces, ranks that die, wrong arguments, calls that
 * fail. All types: test_dist_types.cu. */
#include "dist.h"
#include "hooks.h"

#ifdef GPUKIT_NCCL

/* --- reduce --- */

#define TEST_REDUCE(S, T)                                                                                              \
  TEST(reduce_of_every_operator_##S) { check_reduces<T>(#S); }
TEST_REDUCE(u8, uint8_t)
TEST_REDUCE(f16, __half)
TEST_REDUCE(f32, float)

TEST(reduce_has_the_bits_of_the_ranks_in_order) {
  for (const pieces &p : cases) {
    const std::vector<float> x = random_elements<float>(7, sum(p));
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

/* A working value with more bytes than any of section 6 has. */
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
  std::vector<hook_record<A>> record;
  record.push_back(hook_record<A>(A{5, 77}, large));
  record.push_back(hook_record<A>(gk_argmin<float>().identity(), 0));
  record.push_back(hook_record<A>(A{3, large - 1}, large));
  record.push_back(hook_record<A>(A{3, 0}, 1));
  device_array<hook_record<A>> records(record);
  device_array<A> out(1);
  device_array<hook_record<A>> start(std::vector<hook_record<A>>(1, hook_record<A>(A{0, 0})));
  hook_dist_context d = {"test", NULL, 0, 4, 0, 0};
  DEMAND_OK(hook_fold_records(d, records.ptr, 4, gk_argmin<float>(), out.ptr));
  DEMAND(same(out.first(), A{3, 2 * large - 1}), show(out.first()));
  DEMAND_OK(hook_fold_records(d, records.ptr, 3, gk_argmin<float>(), start.ptr));
  DEMAND(start.first().item_count() == 2 * large, test_show(start.first().item_count()));
  DEMAND(same(start.first().value(), A{3, 2 * large - 1}), "the value in a record");
}
/* More ranks than a warp has lanes. */
TEST(records_of_a_hundred_ranks) {
  typedef gk_arg<int> A;
  for (size_t count : {size_t(31), size_t(32), size_t(33), size_t(100)}) {
    std::vector<hook_record<A>> record;
    A expected = gk_argmax<int>().identity();
    size_t before = 0;
    for (size_t i = 0; i < count; i++) {
      const A value = {uniform(1, i, 0, 50), i % 3};
      record.push_back(hook_record<A>(value, i));
      expected = gk_argmax<int>()(expected, moved(value, before));
      before += i;
    }
    device_array<hook_record<A>> records(record);
    device_array<A> out(1);
    hook_dist_context d = {"test", NULL, 0, static_cast<int>(count), 0, 0};
    DEMAND_OK(hook_fold_records(d, records.ptr, count, gk_argmax<int>(), out.ptr));
    DEMAND(same(out.first(), expected), show(out.first()) + " against " + show(expected));
  }
}

/* --- matmul --- */

struct product {
  pieces m, rows; /* of A and C, and of B, at each rank; no rows: as gk_dist_split has them */
  size_t n, k, columns;
  size_t pad; /* of the leading dimensions */
  double alpha, beta;
  bool trans_a, buffer;
  size_t max_blocks = 0;
};
static const product products[] = {
    {{30}, {}, 20, 25, 0, 0, 1, 0, false, false},
    {{17, 40}, {}, 33, 27, 8, 0, 1, 0, false, false},
    {{17, 40}, {14, 14}, 32, 28, 16, 3, 2, -1, false, true},
    {{5, 0, 9}, {}, 50, 31, 50, 1, 1, 1, true, false},
    {{0, 12, 3}, {0, 20, 11}, 37, 31, 4, 0, 1, 0, false, false},
    {{8, 8, 8, 8}, {31, 0, 0, 0}, 40, 31, 7, 0, 0.5, 0, true, true},
    {{1, 2, 3, 4, 5, 6, 7}, {}, 70, 5, 33, 2, 1, 0, false, false},
    {{6, 6}, {}, 11, 0, 4, 0, 1, 3, false, false},
    {{6, 6}, {}, 0, 9, 4, 0, 1, 0, false, false},
    {{70, 66}, {}, 2500, 19, 0, 0, 1, 0, false, false},
    {{70, 66}, {}, 250, 19, 100, 0, 1, 0, false, false, 3},
#ifndef CUDA_ON_CPU /* a product that lasts longer than a part of B takes to come */
    {{8192, 8}, {}, 512, 1024, 64, 0, 1, 0, false, false},
#endif
};

template <class T, class O> static void check_matmul(const product &p, const char *type) {
  const size_t ranks = p.m.size(), ldb = p.n + p.pad, ldc = p.n + p.pad;
  const std::vector<T> b = random_elements<T>(5, p.k * ldb);
  run_ranks(ranks, [&](const rank_of &me) {
    const size_t rank = static_cast<size_t>(me.rank), m = p.m[rank], lda = (p.trans_a ? m : p.k) + p.pad;
    const std::vector<T> a = random_elements<T>(6 + rank, (p.trans_a ? p.k : m) * lda);
    const std::vector<O> before(m * ldc, make<O>(3));
    gk_dist_piece mine = gk_dist_split(p.k, me.ranks, me.rank);
    if (!p.rows.empty()) {
      mine.first_index = 0, mine.item_count = p.rows[rank];
      for (size_t r = 0; r < rank; r++) mine.first_index += p.rows[r];
    }
    const auto from = b.begin() + static_cast<ptrdiff_t>(mine.first_index * ldb);
    device_array<T> all_a(a), all_b(b),
        own_b(std::vector<T>(from, from + static_cast<ptrdiff_t>(mine.item_count * ldb)));
    device_array<O> expected(before), c(before);
    device_array<double> buffer(gk_dist_matmul_buffer_bytes(p.n, p.k, sizeof(T), p.columns) / 8 + 1);
    gk_dist_matmul_opts o = gk_dist_matmul_opts();
    o.matmul.trans_a = p.trans_a;
    o.matmul.lda = lda, o.matmul.ldb = ldb, o.matmul.ldc = ldc;
    o.matmul.alpha = &p.alpha, o.matmul.beta = &p.beta;
    o.rank_rows = p.rows.empty() ? NULL : p.rows.data();
    o.columns = p.columns;
    if (p.buffer) o.buffer = buffer.ptr, o.buffer_bytes = buffer.n * 8;
    const gk_matmul_opts one_gpu = o.matmul;
    o.matmul.max_blocks = p.max_blocks;
    /* The model: one GPU that has all of B, a part's columns at a time. */
    const size_t wide = me.ranks > 1 ? hook_dist_columns(p.n, p.columns) : p.n;
    for (size_t col = 0; col < p.n; col += wide)
      DEMAND_OK(gk_matmul_ex(static_cast<const T *>(all_a.ptr), static_cast<const T *>(all_b.ptr) + col,
                             expected.ptr + col, m, p.n - col < wide ? p.n - col : wide, p.k, &one_gpu));
    cudaStream_t stream;
    DEMAND_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DEMAND_OK(cudaDeviceSynchronize());
    DEMAND_OK(gk_dist_matmul(static_cast<const T *>(all_a.ptr), static_cast<const T *>(own_b.ptr), c.ptr, m, p.n, p.k,
                             me.comm, stream, &o));
    DEMAND_OK(gk_dist_wait(me.comm, stream, patience));
    DEMAND_OK(cudaStreamDestroy(stream));
    const std::vector<O> got = c.get(), wanted = expected.get();
    size_t wrong = 0;
    while (wrong < got.size() && same(got[wrong], wanted[wrong])) wrong++;
    if (wrong < got.size())
      DEMAND(false, std::string(type) + ", " + std::to_string(&p - products) + ", rank " + std::to_string(me.rank) +
                        ", element " + std::to_string(wrong) + ": " + show(got[wrong]) + " against " +
                        show(wanted[wrong]));
  });
}
TEST(matmul_has_the_bits_of_one_gpu) {
  for (const product &p : products) {
    check_matmul<float, float>(p, "f32");
    check_matmul<double, double>(p, "f64");
    check_matmul<__nv_bfloat16, float>(p, "bf16");
    check_matmul<__half, __half>(p, "f16");
  }
}
/* What is right by itself: small integers, in a loop. */
TEST(matmul_of_integers) {
  const size_t m = 37, n = 90, k = 53;
  run_ranks(3, [&](const rank_of &me) {
    const gk_dist_piece mine = gk_dist_split(k, me.ranks, me.rank);
    const uint64_t seed = static_cast<uint64_t>(me.rank);
    std::vector<float> a(m * k), b(mine.item_count * n);
    for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(uniform(10 + seed, i, -9, 9));
    for (size_t i = 0; i < b.size(); i++) b[i] = static_cast<float>(uniform(1, mine.first_index * n + i, -9, 9));
    device_array<float> on_a(a), on_b(b), c(m * n);
    gk_dist_matmul_opts o = gk_dist_matmul_opts();
    o.columns = 20;
    DEMAND_OK(cudaStreamCreateWithFlags(&o.comm_stream, cudaStreamNonBlocking));
    const float *const from_a = on_a.ptr, *const from_b = on_b.ptr;
    for (int turn = 0; turn < 2; turn++) {
      DEMAND_OK(gk_dist_matmul(from_a, from_b, c.ptr, m, n, k, me.comm, 0, turn ? &o : NULL));
      DEMAND_OK(gk_dist_wait(me.comm, 0, patience));
      const std::vector<float> got = c.get();
      for (size_t i = 0; i < m * n; i++) {
        float x = 0;
        for (size_t j = 0; j < k; j++) x += a[i / n * k + j] * static_cast<float>(uniform(1, j * n + i % n, -9, 9));
        if (got[i] != x) DEMAND(false, "element " + std::to_string(i));
      }
      c.clear();
    }
    DEMAND_OK(cudaStreamDestroy(o.comm_stream));
  });
}
/* --- fewer blocks at once --- */

/* Tiles whole and cut, k in one slice, in slices of one block and of several, few rows or columns, and batches. */
static const struct {
  size_t m, n, k, batch;
} capped[] = {{300, 200, 40, 1}, {70, 130, 700, 1}, {64, 64, 3000, 1}, {129, 65, 1000, 2},
              {1000, 33, 40, 1}, {33, 1000, 40, 1}, {3, 5000, 300, 1}, {5000, 2, 300, 1},
              {1, 700, 3000, 2}, {40, 40, 20, 9},   {5, 4, 20000, 1}};
template <class T, class O> static void check_max_blocks(const char *type) {
  for (const auto &p : capped) {
    const std::string name = std::string(type) + ", case " + std::to_string(&p - capped);
    const double beta = 2;
    gk_matmul_opts o = gk_matmul_opts();
    o.trans_a = (&p - capped) & 1, o.trans_b = (&p - capped) >> 1 & 1;
    o.batch = p.batch, o.stride_a = p.m * p.k, o.stride_b = p.k * p.n;
    o.beta = &beta;
    const std::vector<T> a = random_elements<T>(20, p.m * p.k * p.batch);
    const std::vector<T> b = random_elements<T>(21, p.k * p.n * p.batch);
    const std::vector<O> before(p.m * p.n * p.batch, make<O>(3));
    device_array<T> on_a(a), on_b(b);
    const auto product = [&](size_t max_blocks) {
      device_array<O> c(before);
      o.max_blocks = max_blocks;
      EXPECT_OK(
          gk_matmul_ex(static_cast<const T *>(on_a.ptr), static_cast<const T *>(on_b.ptr), c.ptr, p.m, p.n, p.k, &o));
      return c.get();
    };
    const std::vector<O> expected = product(0);
    for (size_t most : {1u, 7u}) {
      const std::vector<O> got = product(most);
      size_t wrong = 0;
      while (wrong < got.size() && same(got[wrong], expected[wrong])) wrong++;
      if (wrong < got.size())
        DEMAND(false, name + ", at most " + std::to_string(most) + " blocks, element " + std::to_string(wrong) + ": " +
                          show(got[wrong]) + " against " + show(expected[wrong]));
    }
  }
}
TEST(fewer_blocks_at_once_make_the_same_bits) {
  check_max_blocks<float, float>("f32");
  check_max_blocks<double, double>("f64");
  check_max_blocks<__nv_bfloat16, float>("bf16");
}
#ifdef CUDA_ON_CPU
/* How many launches, of tiles of 32 x 32, where k is too short to be cut. */
static unsigned long long launches_of(size_t m, size_t n, size_t batch, size_t max_blocks) {
  const size_t k = 8;
  device_array<float> a(m * k * batch), b(k * n * batch), c(m * n * batch);
  gk_matmul_opts o = gk_matmul_opts();
  o.plan = HOOK_PLAN_TILE_32, o.max_blocks = max_blocks;
  o.batch = batch, o.stride_a = m * k, o.stride_b = k * n;
  cuda_cpu_fail(NULL); /* counts from here on */
  EXPECT_OK(gk_matmul_ex(static_cast<const float *>(a.ptr), static_cast<const float *>(b.ptr), c.ptr, m, n, k, &o));
  return cuda_cpu_calls("cudaLaunchKernelEx");
}
TEST(no_launch_has_more_than_max_blocks) {
  EXPECT_EQ(launches_of(320, 320, 1, 0), 1u);
  EXPECT_EQ(launches_of(320, 320, 1, 100), 1u);
  EXPECT_EQ(launches_of(320, 320, 1, 99), 2u);
  EXPECT_EQ(launches_of(320, 320, 1, 8), 2u * 10);
  EXPECT_EQ(launches_of(320, 320, 1, 17), 2u * 5);
  EXPECT_EQ(launches_of(320, 320, 1, 1), 100u);
  EXPECT_EQ(launches_of(32 * 50, 20, 1, 25), 2u);
  EXPECT_EQ(launches_of(20, 32 * 50, 1, 25), 2u);
  EXPECT_EQ(launches_of(64, 64, 10, 9), 5u);
  EXPECT_EQ(launches_of(64, 64, 10, 3), 20u);
}
#endif
TEST(a_matmul_in_a_graph) {
  run_ranks(2, [](const rank_of &me) {
    const size_t edge = 64;
    device_array<float> a(std::vector<float>(edge * edge, 1)), b(edge / 2 * edge), c(edge * edge),
        buffer(2 * edge * 16);
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    gk_dist_matmul_opts o = gk_dist_matmul_opts();
    o.columns = 16;
    o.buffer = buffer.ptr, o.buffer_bytes = gk_dist_matmul_buffer_bytes(edge, edge, sizeof(float), o.columns);
    DEMAND_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DEMAND_OK(cudaStreamCreateWithFlags(&o.comm_stream, cudaStreamNonBlocking));
    DEMAND_OK(cudaStreamCreateWithFlags(&o.second_stream, cudaStreamNonBlocking));
    const auto multiply = [&] {
      DEMAND_OK(gk_dist_matmul(static_cast<const float *>(a.ptr), static_cast<const float *>(b.ptr), c.ptr, edge, edge,
                               edge, me.comm, stream, &o));
    };
    /* NCCL connects the ranks in their first call, which it cannot do while that is captured. */
    multiply();
    DEMAND_OK(gk_dist_wait(me.comm, stream, patience));
    DEMAND_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    multiply();
    DEMAND_OK(cudaStreamEndCapture(stream, &graph));
    DEMAND_OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int turn = 1; turn < 4; turn++) {
      b.set(std::vector<float>(edge / 2 * edge, static_cast<float>(turn)));
      DEMAND_OK(cudaGraphLaunch(exec, stream));
      DEMAND_OK(gk_dist_wait(me.comm, stream, patience));
      for (float x : c.get())
        if (x != static_cast<float>(turn * 64)) DEMAND(false, std::to_string(x));
    }
    DEMAND_OK(cudaGraphExecDestroy(exec));
    DEMAND_OK(cudaGraphDestroy(graph));
    for (cudaStream_t s : {o.comm_stream, o.second_stream, stream}) DEMAND_OK(cudaStreamDestroy(s));
  });
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

/* One rank never calls; the others (two, where there are three devices) abort, and their streams are free. */
TEST(a_rank_that_never_calls) {
  impatient();
  const std::vector<ncclComm_t> comms = new_comms(device_count() < 3 ? 2 : 3);
  std::atomic<int> finished(0);
  run_on(comms, [&](const rank_of &me) {
    cudaStream_t stream;
    DEMAND_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    device_array<int> in(std::vector<int>{1, 2, 3}), out(1);
    /* NCCL connects the ranks in their first call, which itself waits for the others. */
    DEMAND_OK(gk_dist_reduce(in.ptr, out.ptr, 3, gk_op_sum(), me.comm, stream));
    DEMAND_OK(gk_dist_wait(me.comm, stream, patience));
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
      while (finished < me.ranks - 1) std::this_thread::yield();
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

#ifdef CUDA_ON_CPU
/* The stream of the products waits for that of B, so it is the one to look at. */
TEST(a_matmul_without_a_rank_that_has_died) {
  const std::vector<ncclComm_t> comms = new_comms(2);
  nccl_cpu_kill(comms[1], false);
  run_on(comms, [&](const rank_of &me) {
    if (me.rank == 1) {
      EXPECT_OK(ncclCommDestroy(me.comm));
      return;
    }
    device_array<float> a(std::vector<float>(100, 1)), b(std::vector<float>(50, 1)), c(100);
    gk_dist_matmul_opts o = gk_dist_matmul_opts();
    o.columns = 2;
    DEMAND_OK(gk_dist_matmul(static_cast<const float *>(a.ptr), static_cast<const float *>(b.ptr), c.ptr, 10, 10, 10,
                             me.comm, 0, &o));
    DEMAND_FAILS(cudaErrorTimeout, "has died", gk_dist_wait(me.comm, 0, 50, true));
    DEMAND(c.untouched(), "products of what has not come");
  });
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
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_reduce: input is NULL, but the call uses 10",
                 gk_dist_reduce(none, out.ptr, 10, gk_op_sum(), me.comm));
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_reduce: output is NULL",
                 gk_dist_reduce(in.ptr, none, 10, gk_op_sum(), me.comm));
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_reduce: the scratch is empty",
                 gk_dist_reduce(in.ptr, out.ptr, 10, gk_op_sum(), me.comm, 0, &small));
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_wait: the communicator is NULL", gk_dist_wait(NULL, 0, 1));
    DEMAND(out.untouched(), "a call that fails has written");
    cudaStream_t captured;
    cudaGraph_t graph = NULL;
    DEMAND_OK(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
    DEMAND_OK(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
    DEMAND_FAILS(cudaErrorStreamCaptureUnsupported, "gk_dist_wait: ", gk_dist_wait(me.comm, captured, 1, true));
    DEMAND(cudaPeekAtLastError() == cudaSuccess, "an error stays behind");
    cudaStreamEndCapture(captured, &graph);
    cudaGetLastError();
    DEMAND_OK(cudaStreamDestroy(captured));
    if (device_count() > 1) {
      EXPECT_OK(cudaSetDevice(1));
      DEMAND_FAILS(cudaErrorInvalidDevice, "rank 0 is device 0, but device 1 is current",
                   gk_dist_reduce(in.ptr, out.ptr, 10, gk_op_sum(), me.comm));
      DEMAND_FAILS(cudaErrorInvalidDevice,
                   "gk_dist_wait: the communicator is that of device 0, but device 1 is current",
                   gk_dist_wait(me.comm, 0, 1));
      EXPECT_OK(cudaSetDevice(0));
    }
  });
}

TEST(wrong_arguments_of_matmul) {
  run_ranks(2, [](const rank_of &me) {
    device_array<float> a(100), b(100), c(100), buffer(100);
    const float *const none = NULL;
    gk_dist_matmul_opts o = gk_dist_matmul_opts();
    const auto call = [&] { return gk_dist_matmul(a.ptr, b.ptr, c.ptr, 10, 10, 10, me.comm, 0, &o); };
    o.matmul.trans_b = 1;
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_matmul: B may be neither transposed nor one of a batch", call());
    o.matmul.trans_b = 0, o.matmul.batch = 2;
    DEMAND_FAILS(cudaErrorInvalidValue, "nor one of a batch", call());
    o.matmul.batch = 0, o.matmul.ldb = 9;
    DEMAND_FAILS(cudaErrorInvalidValue, "ldb is 9, but the rows of B have 10 elements (0: dense rows)", call());
    o.matmul.ldb = 0;
    for (const pieces &rows : {pieces{5, 4}, pieces{5, 6}, pieces{SIZE_MAX, 11}}) {
      o.rank_rows = rows.data();
      DEMAND_FAILS(cudaErrorInvalidValue, "do not add up to k = 10", call());
    }
    o.rank_rows = NULL, o.buffer = buffer.ptr, o.buffer_bytes = 399;
    DEMAND_FAILS(cudaErrorInvalidValue, "the buffer has 399 bytes, but 400 are needed: gk_dist_matmul_buffer_bytes",
                 call());
    o.buffer = buffer.ptr + 1, o.buffer_bytes = 400;
    DEMAND_FAILS(cudaErrorInvalidValue, "the buffer is not aligned to 16 bytes", call());
    o.buffer = b.ptr;
    DEMAND_FAILS(cudaErrorInvalidValue, "the buffer is the same memory as b", call());
    DEMAND_FAILS(cudaErrorInvalidValue, "b is NULL, but rank", gk_dist_matmul(a.ptr, none, c.ptr, 10, 10, 10, me.comm));
    const gk_array<float> too_few(49); /* of the five rows of this rank */
    DEMAND_FAILS(cudaErrorInvalidValue, "gk_dist_matmul: B is a gk_array of 49 elements, but the call uses 50",
                 gk_dist_matmul(a.ptr, too_few, c.ptr, 10, 10, 10, me.comm));
    DEMAND_FAILS(cudaErrorInvalidValue, "c is the same memory as b",
                 gk_dist_matmul(a.ptr, c.ptr, c.ptr, 10, 10, 10, me.comm));
    DEMAND_FAILS(cudaErrorInvalidValue, "more than memory can address",
                 gk_dist_matmul(a.ptr, b.ptr, c.ptr, 0, SIZE_MAX / 8, 16, me.comm));
    DEMAND_FAILS(cudaErrorInvalidValue, "the communicator is NULL",
                 gk_dist_matmul(a.ptr, b.ptr, c.ptr, 10, 10, 10, NULL));
    DEMAND(c.untouched(), "a call that fails has written");
  });
}

#ifdef CUDA_ON_CPU
TEST(the_stand_in_refuses_what_nccl_would) {
  const std::vector<ncclComm_t> comms = new_comms(2);
  run_on(comms, [&](const rank_of &me) {
    device_array<int> x(100);
    std::vector<int> on_host(100);
    ncclResult_t found = ncclSuccess;
    DEMAND(ncclAllGather(x.ptr, on_host.data(), 50, ncclInt, me.comm, 0) == ncclInvalidArgument, "host memory");
    DEMAND(strstr(ncclGetLastError(me.comm), "not device memory"), ncclGetLastError(me.comm));
    DEMAND(ncclAllGather(x.ptr, x.ptr, 51 + 64, ncclInt, me.comm, 0) == ncclInvalidArgument, "past the end");
    DEMAND(ncclAllGather(x.ptr, x.ptr, 1, ncclNumTypes, me.comm, 0) == ncclInvalidArgument, "no type");
    DEMAND(ncclBroadcast(x.ptr, x.ptr, 1, ncclInt, 2, me.comm, 0) == ncclInvalidArgument, "no root");
    DEMAND(ncclGroupEnd() == ncclInvalidUsage, "no group");
    /* Ranks that disagree are told so by an asynchronous error, and their streams wait. */
    EXPECT_OK(ncclBroadcast(x.ptr, x.ptr, me.rank ? 2 : 1, ncclInt, 0, me.comm, 0));
    DEMAND(cudaStreamQuery(0) == cudaErrorNotReady, "the stream does not wait");
    cudaGetLastError();
    EXPECT_OK(ncclCommGetAsyncError(me.comm, &found));
    DEMAND(found == ncclInvalidUsage, "no error came of it");
    EXPECT_OK(ncclCommAbort(me.comm));
    DEMAND(cudaStreamQuery(0) == cudaSuccess, "the stream still waits");
  });
  ncclComm_t two[2] = {NULL, NULL};
  const int same_device[] = {0, 0};
  EXPECT_EQ(ncclCommInitAll(two, 2, same_device), ncclInvalidUsage);
  EXPECT_HAS(ncclGetLastError(NULL), "Duplicate GPU");
}
#endif

TEST(a_split_leaves_nothing_out) {
  for (size_t n : {size_t(0), size_t(1), size_t(7), size_t(1000), SIZE_MAX})
    for (int ranks = 1; ranks < 9; ranks++) {
      size_t next = 0;
      for (int r = 0; r < ranks; r++) {
        const gk_dist_piece p = gk_dist_split(n, ranks, r);
        EXPECT_EQ(p.first_index, next);
        const size_t count = static_cast<size_t>(ranks), longer = static_cast<size_t>(r) < n % count ? 1 : 0;
        EXPECT_EQ(p.item_count, n / count + longer); /* the first ones have one more */
        next += p.item_count;
      }
      EXPECT_EQ(next, n);
    }
  const gk_dist_piece last = gk_dist_split(10, 2, 1), beyond = gk_dist_split(10, 2, 5); /* no piece past the array */
  EXPECT(beyond.first_index == last.first_index && beyond.item_count == last.item_count);
}

/* --- calls that fail --- */

#ifdef CUDA_ON_CPU
/* An error of the device ends the wait, and aborts as asked. */
TEST(waiting_for_a_device_that_fails) {
  const std::vector<ncclComm_t> comms = new_comms(2);
  for (const bool abort_comm : {false, true})
    for (const ncclComm_t comm : comms) {
      int device = 0;
      ncclCommCuDevice(comm, &device);
      EXPECT_OK(cudaSetDevice(device));
      cuda_cpu_fail("cudaStreamQuery:1:cudaErrorUnknown");
      EXPECT_ERROR(cudaErrorUnknown,
                   abort_comm ? "the communicator has been aborted" : "the communicator has not been aborted",
                   gk_dist_wait(comm, 0, 1000, abort_comm));
      cuda_cpu_fail(NULL);
    }
  EXPECT_OK(cudaSetDevice(0));
  EXPECT(ncclCommAbort(comms[0]) != ncclSuccess); /* there is nothing left to abort */
}

/* The calls of one rank. A reduction of more than one piece, a scan of several tiles, a matmul of three parts. */
static cudaError_t call_one(int which, const rank_of &me, float *in, float *out, bool uneven) {
  const size_t n = 30000, rows[] = {20, 12};
  gk_dist_matmul_opts o = gk_dist_matmul_opts();
  o.columns = 16;
  if (uneven) o.rank_rows = rows;
  const float *const from = in;
  switch (which) {
  case 0: return gk_dist_reduce(from, out, n, gk_op_sum(), me.comm);
  case 1: return gk_dist_scan_inclusive(from, out, n, gk_op_sum(), me.comm);
  case 2: return gk_dist_reduce(from, reinterpret_cast<gk_arg<float> *>(out), n, gk_op_argmin(), me.comm);
  default: return gk_dist_matmul(from, from + 1024, out, 32, 40, 32, me.comm, 0, &o);
  }
}
static const int calls = 5;

/* The k-th of NCCL's calls that rank 0 makes fails: it says so with NCCL's words, and the other one is not left
 * waiting. True: there was such a call. */
static bool fail_nccl(int which, int k) {
  const std::vector<ncclComm_t> comms = new_comms(2);
  const size_t before = cuda_cpu_held();
  bool struck = false;
  run_on(comms, [&](const rank_of &me) {
    device_array<float> in(std::vector<float>(30000, 1)), out(30000);
    if (me.rank == 0) nccl_cpu_fail(k, ncclSystemError);
    cudaError_t code = call_one(which, me, in.ptr, out.ptr, which == 4);
    const std::string detail = gk_error_detail();
    if (me.rank == 0) {
      struck = nccl_cpu_calls() >= k;
      nccl_cpu_fail(0, ncclSuccess);
      DEMAND((code != cudaSuccess) == struck, "call " + std::to_string(k) + ": " + detail);
      if (struck) {
        const std::string where = "call " + std::to_string(k) + " of " + std::to_string(which) + ": " + detail;
        DEMAND(code == cudaErrorUnknown && detail.find("gk_dist_") == 0, where);
        DEMAND(detail.find("unhandled system error") != std::string::npos, where);
        DEMAND(detail.find("injected") != std::string::npos, where);
        DEMAND(ncclGroupEnd() == ncclInvalidUsage, where + ": a group is left open");
        nccl_cpu_kill(me.comm, true);
      }
      EXPECT_OK(ncclCommAbort(me.comm));
    } else {
      if (code == cudaSuccess) code = gk_dist_wait(me.comm, 0, patience, true);
      if (code != cudaErrorUnknown) EXPECT_OK(ncclCommAbort(me.comm));
    }
  });
  DEMAND(cuda_cpu_held() == before,
         "call " + std::to_string(k) + " of " + std::to_string(which) + ": something is still held");
  return struck;
}
TEST(each_call_of_nccl_fails) {
  for (int which = 0; which < calls; which++) {
    int k = 1;
    while (fail_nccl(which, k)) k++;
    DEMAND(k > 4, "only " + std::to_string(k - 1) + " calls were made to fail");
  }
}

/* The k-th of CUDA's calls of both ranks fails. Which one it hits is theirs to settle; it says so, nothing is lost, and
 * the other one is not left waiting. */
TEST(each_call_of_cuda_fails) {
  int provoked = 0;
  for (int which = 0; which < calls; which++)
    for (int k = 1;; k++) {
      const std::vector<ncclComm_t> comms = new_comms(2);
      device_array<float> in(std::vector<float>(30000, 1)), out(30000), in1(1), out1(30000);
      const size_t before = cuda_cpu_held();
      std::atomic<int> failed(0);
      unsigned long long releases = 0;
      std::atomic<int> ready(0);
      run_on(comms, [&](const rank_of &me) {
        if (++ready == 2) {
          cuda_cpu_fail(("any:" + std::to_string(k)).c_str());
          ready++;
        }
        while (ready < 3) std::this_thread::yield();
        const cudaError_t code = call_one(which, me, in.ptr, me.rank ? out1.ptr : out.ptr, which == 4);
        if (code == cudaSuccess) return;
        DEMAND(!strncmp(gk_error_detail(), "gk_", 3), gk_error_detail());
        failed++;
        nccl_cpu_kill(me.comm, true); /* lets the other one go on */
      });
      const bool struck = cuda_cpu_calls("any") >= static_cast<unsigned long long>(k);
      for (const char *call : {"cudaFreeAsync", "cudaEventDestroy", "cudaStreamDestroy"})
        releases += cuda_cpu_calls(call);
      cuda_cpu_fail(NULL);
      cudaGetLastError();
      for (const ncclComm_t comm : comms) EXPECT_OK(ncclCommAbort(comm));
      const std::string where = "call " + std::to_string(k) + " of " + std::to_string(which);
      DEMAND(failed <= 1, where + " makes both fail");
      DEMAND(cuda_cpu_held() <= before + (releases ? 1 : 0), where + ": something is still held");
      if (!struck) break;
      provoked += failed;
    }
  DEMAND(provoked > 50, "only " + std::to_string(provoked) + " failures were provoked");
}
#endif
#endif
