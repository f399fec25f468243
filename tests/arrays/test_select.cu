/* gk_select and gk_select_flagged against loops on the host. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include <algorithm>
#include "data.h"

struct triple {
  float x, y;
  int idx;
};
template <class T> static T element(size_t i) { return make<T>(static_cast<double>(uniform(70, i, 0, 99))); }
template <> triple element<triple>(size_t i) {
  return triple{static_cast<float>(uniform(70, i, 0, 99)), 0.5f, static_cast<int>(i)};
}

template <> uchar3 element<uchar3>(size_t i) {
  return make_uchar3(static_cast<unsigned char>(i), static_cast<unsigned char>(uniform(70, i, 0, 99)), 7);
}
template <> float4 element<float4>(size_t i) {
  return make_float4(static_cast<float>(uniform(70, i, 0, 99)), 0.5f, static_cast<float>(i), 1);
}

template <class T> static __host__ __device__ float number(const T &x) { return static_cast<float>(x); }
static __host__ __device__ float number(const triple &x) { return x.x; }
static __host__ __device__ float number(const uchar3 &x) { return static_cast<float>(x.y); }
static __host__ __device__ float number(const float4 &x) { return x.x; }
static __host__ __device__ float number(const __half &x) { return __half2float(x); }

struct below {
  float limit;
  template <class T> __host__ __device__ bool operator()(const T &x) const { return number(x) < limit; }
};

/* Sizes around a warp's and a block's elements, and past one tile, a group of tiles, and a window of groups. */
static const size_t sizes[] = {0, 1, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 6143, 6145, 70001, 600011};

template <class T, class Count>
static void check(size_t n, float limit, size_t offset, const gk_scratch *scratch, const char *name) {
  const size_t out_offset = (n + offset) % 4; /* before the output, where nothing is written */
  std::vector<T> host(n + offset), expected, got(n + out_offset);
  std::vector<unsigned char> host_flags(n);
  for (size_t i = 0; i < n; i++) {
    host[i + offset] = element<T>(i);
    host_flags[i] = below{limit}(host[i + offset]) ? static_cast<unsigned char>(1 + i % 255) : 0;
    if (host_flags[i]) expected.push_back(host[i + offset]);
  }
  const gk_array<T> x(host);
  const gk_array<unsigned char> flags(host_flags);
  gk_array<T> output(n + out_offset);
  gk_array<Count> count(1);
  for (int flagged = 0; flagged < 2; flagged++) {
    output.clear();
    if (flagged)
      EXPECT_OK(gk_select_flagged(x.data() + offset, flags, output.data() + out_offset, count, n, 0, scratch));
    else
      EXPECT_OK(gk_select(x.data() + offset, output.data() + out_offset, count, n, below{limit}, 0, scratch));
    EXPECT_EQ(static_cast<size_t>(count.get(0)), expected.size());
    output.copy_to(got);
    std::vector<T> all(n + out_offset); /* nothing is written past the kept elements */
    std::copy(expected.begin(), expected.end(), all.begin() + static_cast<std::ptrdiff_t>(out_offset));
    EXPECT_SAME(got, all, "%s, n = %zu, below %g, flagged %d", name, n, static_cast<double>(limit), flagged);
  }
  for (int flagged = 0; flagged < 2; flagged++) {
    gk_array<T> in_place(host);
    T *const items = in_place.data() + offset;
    if (flagged)
      EXPECT_OK(gk_select_flagged(items, flags, items, count, n, 0, scratch));
    else
      EXPECT_OK(gk_select(items, items, count, n, below{limit}, 0, scratch));
    EXPECT_EQ(static_cast<size_t>(count.get(0)), expected.size());
    std::vector<T> all = host;
    std::copy(expected.begin(), expected.end(), all.begin() + static_cast<std::ptrdiff_t>(offset));
    std::vector<T> found(n + offset);
    in_place.copy_to(found);
    EXPECT_SAME(found, all, "%s, in place, n = %zu, flagged %d", name, n, flagged);
  }
}
template <class T, class Count> static void check_type(const gk_scratch *scratch, const char *name) {
  for (size_t n : sizes)
    for (float limit : {0.0f, 1.0f, 50.0f, 100.0f})
      if ((n < 10000 || limit == 50.0f) && !test_leaves_out()) check<T, Count>(n, limit, n % 3, scratch, name);
}
TEST(every_type_and_size) {
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(600011, sizeof(triple)), 0));
  check_type<float, size_t>(NULL, "floats");
  check_type<float, int>(&scratch, "floats with a scratch");
  check_type<unsigned char, unsigned>(&scratch, "bytes");
  check_type<__half, size_t>(&scratch, "halves");
  check_type<double, long long>(&scratch, "doubles");
  check_type<triple, size_t>(&scratch, "structs");
  check_type<uchar3, size_t>(&scratch, "structs of three bytes");
  check_type<float4, size_t>(NULL, "structs of sixteen bytes");
  /* Scans and selects share the slots of a scratch, one after the other. */
  const std::vector<float> ones(100000, 1.0f);
  const gk_array<float> x(ones);
  gk_array<float> sums(100000);
  EXPECT_OK(gk_scan_inclusive_sum(x, sums, 100000, 0, &scratch));
  EXPECT_EQ(sums.get(99999), 100000.0f);
  check<float, size_t>(70001, 50, 1, &scratch, "after a scan");
  EXPECT_OK(gk_scratch_destroy(&scratch));
}

/* From these sizes on a thread has more elements. */
template <class T> static void check_large(size_t n, const char *name) {
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(n, sizeof(T)), 0));
  check<T, size_t>(n, 50, 1, &scratch, name);
  EXPECT_OK(gk_scratch_destroy(&scratch));
}
TEST(large) {
  check_large<double>(1050007, "many doubles");
  if (test_slowed()) return;
  check_large<float>(2100007, "many floats");
  check_large<short>(4200007, "many shorts");
  check_large<unsigned char>(8400007, "many bytes");
}

struct index_itself {
  __device__ size_t operator()(size_t i) const { return i; }
};
struct equals_next {
  const int *x;
  __device__ bool operator()(size_t i) const { return x[i] == x[i + 1]; }
};
TEST(indices_of_repeats) {
  const size_t n = 50000;
  std::vector<int> host(n);
  std::vector<unsigned> expected;
  for (size_t i = 0; i < n; i++) host[i] = uniform(71, i, 0, 3);
  for (size_t i = 0; i + 1 < n; i++)
    if (host[i] == host[i + 1]) expected.push_back(static_cast<unsigned>(i));
  const gk_array<int> x(host);
  gk_array<unsigned> indices(n);
  gk_array<size_t> count(1);
  EXPECT_OK(gk_select(gk_computed<size_t>(index_itself()), indices, count, n - 1, equals_next{x.data()}));
  EXPECT_EQ(count.get(0), expected.size());
  std::vector<unsigned> got(n);
  indices.copy_to(got);
  got.resize(expected.size());
  EXPECT_SAME(got, expected, "indices");
}

/* The bytes of a scratch that are promised are as many as a call asks for. */
template <class T> struct converted {
  __device__ T operator()(size_t) const { return T(); }
};
template <class T, class Input> static void check_scratch_bytes_for(const Input &input, size_t n) {
  gk_array<T> output(1);
  gk_array<size_t> count(1);
  gk_scratch none = gk_scratch(); /* of 0 bytes, and of no memory that is used */
  none.ptr = count.data();
  size_t needed = static_cast<size_t>(-1);
  EXPECT_EQ(gk_select(input, output, count, n, below{1}, 0, &none), cudaErrorInvalidValue);
  EXPECT_EQ(sscanf(gk_error_detail(), "gk_select: the scratch has 0 bytes, but %zu are needed", &needed), 1);
  EXPECT(needed <= gk_scan_scratch_bytes(n, sizeof(T)));
}
template <class T> static void check_scratch_bytes() {
  const gk_array<T> x(2);
  for (size_t n = 100000; n < static_cast<size_t>(1) << 34; n = n * 5 / 4)
    for (const size_t multiple : {size_t{1}, size_t{2560}}) {
      check_scratch_bytes_for<T>(gk_computed<T>(converted<T>()), n / multiple * multiple);
      check_scratch_bytes_for<T>(x.data() + 1, n / multiple * multiple); /* which is refused before it is read */
    }
}
TEST(scratch_bytes) {
  check_scratch_bytes<unsigned char>();
  check_scratch_bytes<float>();
  check_scratch_bytes<double>();
  check_scratch_bytes<triple>();
  check_scratch_bytes<float4>();
}

/* The compiler does not unroll the loop over a thread's elements where they are a constant. */
TEST(a_constant) {
  const size_t n = 70001;
  gk_array<double> output(n);
  gk_array<size_t> count(1);
  std::vector<double> got(n);
  EXPECT_OK(gk_fill(output, n, 1.0));
  EXPECT_OK(gk_select(gk_computed<double>(converted<double>()), output, count, n, below{1}));
  EXPECT_EQ(count.get(0), n);
  output.copy_to(got);
  EXPECT_SAME(got, std::vector<double>(n), "zeros");
}

TEST(bad_input) {
  gk_array<float> x(10), y(10);
  gk_array<int> count(1);
  float *const nowhere = NULL;
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_select: input is NULL", gk_select(nowhere, y, count, 10, below{1}));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_select: output is NULL", gk_select(x, nowhere, count, 10, below{1}));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_select: kept_count is NULL",
               gk_select(x, y, static_cast<int *>(NULL), 10, below{1}));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_select_flagged: item_flags is NULL",
               gk_select_flagged(x, static_cast<int *>(NULL), y, count, 10));
  EXPECT_ERROR(cudaErrorInvalidValue, "more blocks than a grid has",
               gk_select(gk_computed<size_t>(index_itself()), y, count, static_cast<size_t>(1) << 44, below{1}));
  gk_scratch small = gk_scratch();
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_select: the scratch is empty",
               gk_select(x, y, count, 10, below{1}, 0, &small));
  EXPECT_OK(gk_scratch_create(&small, 0, 0));
  gk_array<float> many(100000), selected(100000);
  EXPECT_ERROR(cudaErrorInvalidValue, "create it with at least that many",
               gk_select(many, selected, count, 100000, below{1}, 0, &small));
  EXPECT_OK(gk_fill(x, 10, 0.5f));
  EXPECT_OK(gk_select(x, y, count, 10, below{1}, 0, &small));
  EXPECT_EQ(count.get(0), 10);
  EXPECT_OK(gk_scratch_destroy(&small));
}

/* --- graphs --- */

/* What a graph has recorded works on the elements that are there at each launch. */
TEST(captured) {
  const size_t n = 30000;
  std::vector<float> host(n);
  gk_array<float> x(n), kept(n), flagged(n);
  gk_array<int> item_flags(n);
  gk_array<unsigned> count(2);
  gk_scratch scratch = {};
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(n, sizeof(float)), stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_OK(gk_fill(kept, n, -1.0f, stream));
  EXPECT_OK(gk_copy(x, item_flags, n, stream));
  EXPECT_OK(gk_select(x, kept, count.data(), n, below{50}, stream, &scratch));
  EXPECT_OK(gk_select_flagged(x, item_flags, flagged, count.data() + 1, n, stream, &scratch));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphInstantiate(&ready, graph, 0));
  for (uint64_t launch = 0; launch < 3; launch++) {
    for (size_t i = 0; i < n; i++) host[i] = static_cast<float>(uniform(71 + launch, i, 0, 99));
    EXPECT_OK(cudaMemcpy(x.data(), host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    EXPECT_OK(cudaGraphLaunch(ready, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    std::vector<float> low, nonzero;
    for (const float value : host) {
      if (value < 50) low.push_back(value);
      if (static_cast<int>(value) != 0) nonzero.push_back(value);
    }
    EXPECT_EQ(count.get(0), low.size());
    EXPECT_EQ(count.get(1), nonzero.size());
    nonzero.resize(n), low.resize(n, -1.0f);
    std::vector<float> by_value(n), by_flags(n);
    kept.copy_to(by_value);
    flagged.copy_to(by_flags);
    std::fill(by_flags.begin() + static_cast<std::ptrdiff_t>(count.get(1)), by_flags.end(), 0.0f);
    EXPECT_SAME(by_value, low, "launch %d", static_cast<int>(launch));
    EXPECT_SAME(by_flags, nonzero, "launch %d, by flags", static_cast<int>(launch));
  }
  EXPECT_OK(cudaGraphExecDestroy(ready));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(gk_scratch_destroy(&scratch));
  EXPECT_OK(cudaStreamDestroy(stream));
}
