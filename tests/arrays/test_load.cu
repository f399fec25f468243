/* Reduce, scan and matmul on a GPU that has other work: the same bits while other streams keep it busy, scans that each
 * could fill it side by side, graphs replayed between other calls on one scratch, and eight threads with a stream each.
 *
 *   GPUKIT_SOAK_SECONDS   how long the eight threads go on: by default 2 on a GPU, and a few rounds on the stand-in */
#include "once.h"

#include "hooks.h"
#include "on_device.h"
#include <chrono>
#include <thread>

/* Sizes and counts for a GPU, unless a tool slows it. */
template <class N> static N at_speed(N fast, N slow) { return on_cpu || test_slowed() ? slow : fast; }

/* --- the same bits -------------------------------------------------------------------------------------------------*/

/* Moves memory for a while: loads it, and stores it again. */
__global__ static void busy(float4 *x, size_t n, int times) {
  for (int t = 0; t < times; t++)
    GK_FOR_1D (i, n) x[i].x += 1;
}
/* Streams that are kept at work, each with memory that no L2 holds. */
struct other_work {
  const size_t items = at_speed<size_t>(1 << 23, 1 << 10);
  test_stream streams[3];
  device_array<float4> memory[3] = {device_array<float4>(items), device_array<float4>(items),
                                    device_array<float4>(items)};
  void add() {
    for (int s = 0; s < 3; s++) EXPECT_OK(gk_launch(busy, 200, 256, 0, streams[s].stream, memory[s].ptr, items, 2));
  }
  void wait() {
    for (test_stream &s : streams) s.wait();
  }
  bool done() { return cudaStreamQuery(streams[0].stream) != cudaErrorNotReady; }
};

/* A hundred times, of two copies, one of them misaligned: `call(in, out, ...)`. What the first one, alone, comes to is to
 * come from all. */
template <class T, class O, class Call>
static void check_a_hundred(const char *name, const std::vector<T> &host, size_t outputs, const Call &call) {
  const size_t bytes = outputs * sizeof(O) / 4 * 4;
  device_array<T> in(host), askew(host, 1);
  device_array<O> expected(outputs), out(outputs), out_askew(outputs, 1);
  test_scratch scratch(1 << 20);
  test_stream s;
  wrong_count wrong;
  other_work others;
  EXPECT_OK(call(in.ptr, expected.ptr, s.stream, &scratch));
  s.wait();
  const int times = test_slowed() ? 8 : 100;
  for (int i = 0; i < times; i++) {
    others.add();
    EXPECT_OK(call(i % 3 ? in.ptr : askew.ptr, out.ptr, s.stream, &scratch));
    EXPECT_OK(check_same_bits(out.ptr, expected.ptr, bytes, wrong.ptr, s.stream));
  }
  s.wait();
  EXPECT(at_speed(!others.done(), true)); /* or it was not under load */
  others.wait();
  EXPECT_OK(call(askew.ptr, out_askew.ptr, s.stream, &scratch));
  s.wait();
  EXPECT_SAME(out_askew.get(), expected.get(), "%s, misaligned", name);
  if (wrong.first()) test_fail(__FILE__, __LINE__, sentence("%s: %llu words differ", name, wrong.first()));
}
static const size_t tiles = at_speed<size_t>(300, 9);

template <class T, class O> static void check_reduce_under_load(const char *name) {
  const std::vector<T> host = random_elements<T>(11, tiles * hook_reduce_tile<T>::items + 77);
  check_a_hundred<T, O>(name, host, 1, [&](const T *in, O *out, cudaStream_t stream, const gk_scratch *scratch) {
    return gk_reduce_sum(in, out, host.size(), stream, scratch);
  });
}
template <class T> static void check_scan_under_load(const char *name) {
  const size_t tile = HOOK_SCAN_THREADS * hook_scan_items(sizeof(T), true);
  const std::vector<T> host = random_elements<T>(11, tiles * tile / 2 + 77);
  check_a_hundred<T, T>(name, host, host.size(),
                        [&](const T *in, T *out, cudaStream_t stream, const gk_scratch *scratch) {
                          return gk_scan_inclusive_sum(in, out, host.size(), stream, scratch);
                        });
}
TEST(same_bits_of_sums_under_load) {
  check_reduce_under_load<float, float>("sum of f32");
  check_reduce_under_load<double, double>("sum of f64");
  check_reduce_under_load<__half, float>("sum of f16");
}
TEST(same_bits_of_scans_under_load) {
  check_scan_under_load<float>("scan of f32");
  check_scan_under_load<double>("scan of f64");
  check_scan_under_load<__half>("scan of f16");
}
TEST(same_bits_of_a_product_under_load) {
  const size_t m = 130, n = 97, k = 300;
  device_array<float> b(random_elements<float>(12, k * n));
  check_a_hundred<float, float>("product of f32", random_elements<float>(11, m * k), m * n,
                                [&](const float *in, float *out, cudaStream_t stream, const gk_scratch *) {
                                  return gk_matmul(in, b.ptr, out, m, n, k, stream);
                                });
}

/* --- scans side by side --------------------------------------------------------------------------------------------*/

/* Blocks of one scan wait for blocks of the same scan, while those of another, whose stream goes first, take each place
 * that comes free; and the other way round. */
TEST(two_scans_that_each_could_fill_the_gpu) {
  const size_t n = at_speed<size_t>((1 << 25) + 12345, 70000);
  const int times = at_speed(30, 2);
  int least = 0, greatest = 0;
  EXPECT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t streams[2];
  EXPECT_OK(cudaStreamCreateWithPriority(&streams[0], cudaStreamNonBlocking, least));
  EXPECT_OK(cudaStreamCreateWithPriority(&streams[1], cudaStreamNonBlocking, greatest));
  test_scratch scratch[2] = {test_scratch(gk_scan_scratch_bytes(n, sizeof(line))),
                             test_scratch(gk_scan_scratch_bytes(n, sizeof(line)))};
  device_array<line> in[2] = {device_array<line>(n), device_array<line>(n)};
  device_array<line> out[2] = {device_array<line>(n), device_array<line>(n)};
  wrong_count wrong;
  for (int i = 0; i < times; i++)
    for (int which : {i % 2, 1 - i % 2}) {
      const size_t items = n - static_cast<size_t>(i);
      EXPECT_OK(fill(in[which].ptr, items, static_cast<uint32_t>(2 * i + which), streams[which]));
      EXPECT_OK(gk_scan_inclusive(in[which].ptr, out[which].ptr, items, compose(), streams[which], &scratch[which]));
      EXPECT_OK(
          check_scan(in[which].ptr, out[which].ptr, items, compose(), line{1, 0}, true, wrong.ptr, streams[which]));
    }
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(wrong.first(), 0ull);
  for (cudaStream_t s : streams) EXPECT_OK(cudaStreamDestroy(s));
}

/* --- one stream's calls, each checked on the device ----------------------------------------------------------------*/

/* A stream with a scratch, arrays, and a captured graph of a reduction and two scans. Each call is checked by a later
 * kernel of the stream, so that the host waits at the end only. */
struct lane {
  const size_t most = at_speed<size_t>(1000000, test_slowed() ? 40000 : 60000);
  test_stream s;
  test_scratch scratch;
  wrong_count wrong;
  device_array<unsigned long long> total;
  device_array<int> ints, int_sums, int_sum;
  device_array<float> floats, float_sums, products;
  device_array<line> lines, maps;
  device_array<uint8_t> bytes;
  device_array<unsigned long long> byte_sum;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t ready = NULL;
  std::string failed; /* the first call that did: threads have lanes, and a test's failures are one thread's */

  lane()
      : scratch(gk_scan_scratch_bytes(most, sizeof(line))), total(std::vector<unsigned long long>(1, 0)), ints(most),
        int_sums(most), int_sum(1), floats(most), float_sums(most), products(2 * 90 * 70), lines(most), maps(most),
        bytes(most), byte_sum(1) {
    EXPECT_OK(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
    recorded();
    EXPECT_OK(cudaStreamEndCapture(s.stream, &graph));
    EXPECT_OK(cudaGraphInstantiate(&ready, graph, 0));
    /* the same product as ever is to be in the second half */
    expect(fill(floats.ptr, most, 1, s.stream), "fill");
    expect(gk_matmul(floats.ptr, floats.ptr + 20000, products.ptr, 90, 70, 200, s.stream), "gk_matmul");
  }
  ~lane() {
    EXPECT_OK(cudaGraphExecDestroy(ready));
    EXPECT_OK(cudaGraphDestroy(graph));
  }
  void expect(cudaError_t code, const char *what) {
    if (code && failed.empty()) failed = std::string(what) + ": " + cudaGetErrorString(code) + " " + gk_error_detail();
  }
  size_t of_graph() const { return most / 2 + 321; }
  void recorded() {
    const size_t n = of_graph();
    expect(gk_reduce_sum(ints.ptr, int_sum.ptr, n, s.stream, &scratch), "gk_reduce_sum");
    expect(check_sum(ints.ptr, int_sum.ptr, n, total.ptr, wrong.ptr, s.stream), "check_sum");
    expect(gk_scan_exclusive(ints.ptr, int_sums.ptr, n, gk_op_sum(), s.stream, &scratch), "gk_scan_exclusive");
    expect(gk_scan_inclusive(lines.ptr, maps.ptr, n, compose(), s.stream, &scratch), "gk_scan_inclusive");
    expect(check_scan(ints.ptr, int_sums.ptr, n, gk_sum<int>(), 0, false, wrong.ptr, s.stream), "check_scan");
    expect(check_scan(lines.ptr, maps.ptr, n, compose(), line{1, 0}, true, wrong.ptr, s.stream), "check_scan");
  }
  void replay(uint32_t seed) {
    expect(fill(ints.ptr, of_graph(), seed, s.stream), "fill");
    expect(fill(lines.ptr, of_graph(), seed, s.stream), "fill");
    expect(cudaGraphLaunch(ready, s.stream), "cudaGraphLaunch");
  }
  /* One call of another type and size, with the scratch or without. */
  void direct(uint32_t seed) {
    const uint32_t x = scatter(seed, 0);
    const size_t n = x % 4 ? scatter(seed, 1) % (most / 8) : scatter(seed, 1) % most;
    const gk_scratch *const use = x / 4 % 4 ? &scratch : NULL;
    const size_t shift = x / 16 % 4;
    switch (x / 64 % 5) {
    case 0:
      expect(fill(bytes.ptr, most, seed, s.stream), "fill");
      expect(gk_reduce_sum(bytes.ptr + shift, byte_sum.ptr, n, s.stream, use), "gk_reduce_sum");
      expect(check_sum(bytes.ptr + shift, byte_sum.ptr, n, total.ptr, wrong.ptr, s.stream), "check_sum");
      break;
    case 1:
      expect(fill(floats.ptr, most, seed, s.stream), "fill");
      expect(gk_scan_inclusive(floats.ptr + shift, float_sums.ptr, n, gk_op_sum(), s.stream, use), "gk_scan_inclusive");
      expect(check_scan(floats.ptr + shift, float_sums.ptr, n, gk_sum<float>(), 0.0f, true, wrong.ptr, s.stream),
             "check_scan");
      break;
    case 2:
      expect(fill(lines.ptr, most, seed, s.stream), "fill");
      expect(gk_scan_exclusive_init(lines.ptr + shift, maps.ptr, n, compose(), line{3, 4}, s.stream, use),
             "gk_scan_exclusive_init");
      expect(check_scan(lines.ptr + shift, maps.ptr, n, compose(), line{3, 4}, false, wrong.ptr, s.stream),
             "check_scan");
      break;
    case 3:
      expect(fill(ints.ptr, most, seed, s.stream), "fill");
      expect(gk_reduce_sum(ints.ptr + shift, int_sum.ptr, n, s.stream, use), "gk_reduce_sum");
      expect(check_sum(ints.ptr + shift, int_sum.ptr, n, total.ptr, wrong.ptr, s.stream), "check_sum");
      break;
    default:
      expect(fill(floats.ptr, 40000, 1, s.stream), "fill");
      expect(gk_matmul(floats.ptr, floats.ptr + 20000, products.ptr + 90 * 70, 90, 70, 200, s.stream), "gk_matmul");
      expect(check_same_bits(products.ptr, products.ptr + 90 * 70, 90 * 70 * sizeof(float), wrong.ptr, s.stream),
             "check_same_bits");
    }
  }
  void wait() { expect(cudaStreamSynchronize(s.stream), "cudaStreamSynchronize"); }
  void finish(const char *which, size_t number) {
    wait();
    if (!failed.empty()) test_fail(__FILE__, __LINE__, sentence("%s %zu: ", which, number) + failed);
    if (wrong.first()) test_fail(__FILE__, __LINE__, sentence("%s %zu: %llu wrong", which, number, wrong.first()));
  }
};

/* One scratch, whose epochs run out on the way: for reductions and for scans at different times, and in a replay or
 * between. */
TEST(a_thousand_replays_between_other_calls) {
  const unsigned times = test_slowed() ? 8 : at_speed(1000u, 40u);
  lane l;
  for (unsigned before : {0u, times / 2}) {
    l.wait();
    if (before) l.scratch.set_epochs(0xffffffffu - before);
    for (unsigned i = 0; i < times; i++) {
      l.replay(before + i);
      if (i % 3) l.direct(before + 7 * i);
      if (i % 5 == 0) l.direct(before + 7 * i + 1);
      if (i % 64 == 63) l.wait(); /* what the stream has queued is bounded */
    }
  }
  l.finish("stream", 0);
  EXPECT(l.scratch.scan_epochs() < 4 * times); /* they did run out */
  EXPECT(l.scratch.reduce_epochs() < 4 * times);
}

/* Eight threads, each with a stream, a scratch and a graph of its own. */
TEST(eight_streams_and_eight_threads) {
  const char *const text = getenv("GPUKIT_SOAK_SECONDS");
  const double seconds = text && *text ? atof(text) : at_speed(2.0, 0.0);
  typedef std::chrono::steady_clock clock;
  const clock::time_point start = clock::now();
  const size_t count = 8;
  lane lanes[count];
  std::thread threads[count];
  unsigned long long rounds[count] = {};
  for (size_t t = 0; t < count; t++)
    threads[t] = std::thread([&, t] {
      lane &l = lanes[t];
      unsigned i = 0;
      do {
        for (const unsigned end = i + 8; i < end; i++) {
          const uint32_t seed = scatter(static_cast<uint32_t>(t), i);
          if (seed % 3 == 0)
            l.replay(seed);
          else
            l.direct(seed);
        }
        l.wait();
      } while (l.failed.empty() && std::chrono::duration<double>(clock::now() - start).count() < seconds);
      rounds[t] = i;
    });
  for (std::thread &t : threads) t.join();
  unsigned long long all = 0;
  for (size_t t = 0; t < count; t++) lanes[t].finish("thread", t), all += rounds[t];
  printf("%llu calls and replays of 8 threads\n", all);
}
