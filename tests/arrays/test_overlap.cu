/* Early launches: a reduction or a scan after a slow kernel sees all that the kernel writes, directly, in a captured
 * graph, and where what runs is made from PTX without the wait: all of it, or (PRODUCER_ELSEWHERE) all but that
 * kernel. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "data.h"

#ifdef PRODUCER_ELSEWHERE
cudaError_t slow_producer(float *x, size_t n, const unsigned *round, cudaStream_t stream);
#else
#include "overlap_producer.cu"
#endif

__global__ static void next_round(unsigned *round) { ++*round; }
/* A later kernel must find the results, and may change the input. */
__global__ static void consumer(float *x, size_t n, const float *sum, const float *scanned, const unsigned *round,
                                unsigned *wrong) {
  const double base = *round, all = base * static_cast<double>(n) + static_cast<double>(n / 7 * 21) +
                                    static_cast<double>(n % 7 * (n % 7 - (n % 7 ? 1 : 0)) / 2);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    const double last = all - (base + static_cast<double>((n - 1) % 7));
    if (!(fabs(*sum - all) <= 1e-5 * all)) atomicAdd(wrong, 1);
    if (!(fabs(scanned[n - 1] - last) <= 1e-5 * all)) atomicAdd(wrong, 1);
    if (scanned[0] != 0) atomicAdd(wrong, 1);
  }
  GK_FOR_1D (i, n) x[i] = -1e30f;
}

static void round_trip(size_t n, float *x, float *sum, float *scanned, unsigned *round, unsigned *wrong,
                       cudaStream_t stream, const gk_scratch *scratch) {
  EXPECT_OK(gk_launch(next_round, 1, 1, 0, stream, round));
  EXPECT_OK(slow_producer(x, n, round, stream));
  EXPECT_OK(gk_reduce_sum(x, sum, n, stream, scratch));
  EXPECT_OK(gk_scan_exclusive(x, scanned, n, gk_op_sum(), stream, scratch));
  EXPECT_OK(gk_launch(consumer, 64, 256, 0, stream, x, n, sum, scanned, round, wrong));
}

static const int rounds = on_cpu ? 3 : test_slowed() ? 4 : 200;
static const size_t sizes[] = {1000, 4096, 20000, 300000, 3000000};

TEST(behind_a_slow_kernel) {
  for (size_t n : sizes) {
    device_array<float> x(n), sum(1), scanned(n);
    device_array<unsigned> counts(std::vector<unsigned>(2, 0));
    test_scratch scratch(gk_scan_scratch_bytes(n, sizeof(float)));
    test_stream s;
    for (int i = 0; i < rounds; i++)
      round_trip(n, x.ptr, sum.ptr, scanned.ptr, counts.ptr, counts.ptr + 1, s.stream, &scratch);
    EXPECT_OK(cudaStreamSynchronize(s.stream));
    EXPECT_EQ(counts.get()[1], 0u);
  }
}

TEST(in_a_captured_graph) {
  for (size_t n : sizes) {
    device_array<float> x(n), sum(1), scanned(n);
    device_array<unsigned> counts(std::vector<unsigned>(2, 0));
    test_scratch scratch(gk_scan_scratch_bytes(n, sizeof(float)));
    test_stream s;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    EXPECT_OK(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 3; i++)
      round_trip(n, x.ptr, sum.ptr, scanned.ptr, counts.ptr, counts.ptr + 1, s.stream, &scratch);
    EXPECT_OK(cudaStreamEndCapture(s.stream, &graph));
    EXPECT_OK(cudaGraphInstantiate(&ready, graph, 0));
    for (int i = 0; i < rounds; i++) EXPECT_OK(cudaGraphLaunch(ready, s.stream));
    EXPECT_OK(cudaStreamSynchronize(s.stream));
    EXPECT_EQ(counts.get()[1], 0u);
    EXPECT_EQ(counts.get()[0], 3u * static_cast<unsigned>(rounds));
    EXPECT_OK(cudaGraphExecDestroy(ready));
    EXPECT_OK(cudaGraphDestroy(graph));
  }
}

/* Calls on one scratch, each with the last one's result as a part of its input. */
TEST(behind_each_other) {
  const size_t n = 300000;
  device_array<float> x(std::vector<float>(n, 1.0f)), y(n), sum(1);
  test_scratch scratch(gk_scan_scratch_bytes(n, sizeof(float)));
  test_stream s;
  for (int i = 0; i < rounds; i++) {
    EXPECT_OK(gk_scan_inclusive(x.ptr, y.ptr, n, gk_op_max(), s.stream, &scratch));
    EXPECT_OK(gk_reduce_sum(y.ptr, sum.ptr, n, s.stream, &scratch));
    EXPECT_OK(gk_scan_inclusive(y.ptr, x.ptr, n, gk_op_max(), s.stream, &scratch));
  }
  EXPECT_OK(cudaStreamSynchronize(s.stream));
  EXPECT_EQ(sum.first(), static_cast<float>(n));
  EXPECT_EQ(x.get()[n - 1], 1.0f);
}
