/* gk_dist_scan_inclusive and _exclusive: every operator, uneven and empty pieces, order, bits, graphs. All types:
 * test_dist_scan_types.cu. */
#include "dist.h"

#ifdef GPUKIT_NCCL

/* --- scan --- */

#define TEST_SCAN(S, T)                                                                                                \
  TEST(scan_of_##S) { check_scans<T>(#S); }
TEST_SCAN(f32, float)
TEST_SCAN(i64, int64_t)
TEST(scan_by_every_operator_of_u8) { check_more_scans<uint8_t>("u8"); }

TEST(scan_has_the_bits_of_one_gpu_from_where_it_starts) {
  for (const pieces &p : cases) {
    const std::vector<float> x = random_elements<float>(8, sum(p));
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

/* Ranks send each other records that have the format of slots. None may have the epoch of a call: a later one would
 * take it for a slot of its own. That of the last rank is sent, too, though no rank needs it. */
TEST(scan_sends_no_slots_of_earlier_calls) {
  run_ranks(2, [](const rank_of &me) {
    const size_t n = 1 << 16;
    device_array<float> in(std::vector<float>(n, 1.0f)), out(n), all(1);
    gk_scratch scratch = gk_scratch();
    DEMAND_OK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(n, 4), 0));
    for (int i = 0; i < (me.rank ? 3 : 1); i++) DEMAND_OK(gk_reduce_sum(in.ptr, all.ptr, n, 0, &scratch));
    DEMAND_OK(gk_dist_scan_inclusive(in.ptr, out.ptr, n, gk_op_sum(), me.comm, 0, &scratch));
    DEMAND_OK(gk_dist_wait(me.comm, 0, patience));
    unsigned words[2][4];
    DEMAND_OK(
        cudaMemcpy(words, static_cast<char *>(scratch.ptr) + HOOK_STATE_BYTES, sizeof(words), cudaMemcpyDeviceToHost));
    DEMAND(words[0][3] == 0 && words[1][3] == 0, "an epoch in a record");
    DEMAND_OK(gk_scratch_destroy(&scratch));
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
    /* NCCL connects the ranks in their first call, which it cannot do while that is captured. */
    DEMAND_OK(gk_dist_reduce(in.ptr, all.ptr, n, gk_op_sum(), me.comm, stream, &scratch));
    DEMAND_OK(gk_dist_wait(me.comm, stream, patience));
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
