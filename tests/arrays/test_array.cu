/* gk_array, and what comes to the host: gk_array in each call that takes device memory, and gk_reduce_value. */
#include "once.h"

#include <array>
#include <functional>
#include "loops.h"
#include "remembering.h"

struct reports : remembering {
  /* Whether one failure was reported, for this line. */
  void expect(cudaError_t expected, int at_line, const char *text) {
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(code, static_cast<int>(expected));
    EXPECT_EQ(line, at_line);
    EXPECT_HAS(file.c_str(), "test_array");
    EXPECT_HAS(detail.c_str(), text);
    calls = 0;
  }
};

static std::vector<float> counting(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; i++) x[i] = static_cast<float>(i);
  return x;
}

TEST(there_and_back) {
  cudaStream_t own;
  EXPECT_OK(cudaStreamCreate(&own));
  for (cudaStream_t stream : {cudaStream_t(0), own})
    for (size_t n : {1u, 31u, 70001u}) {
      const std::vector<float> x = counting(n);
      const gk_array<float> from_range(x, stream), from_pointer(x.data(), n, stream);
      std::vector<float> y(n), z(n);
      from_range.copy_to(y);
      from_pointer.copy_to(z.data());
      EXPECT_SAME(y, x, "range");
      EXPECT_SAME(z, x, "pointer");
      gk_array<float> a(n, stream);
      EXPECT_EQ(a.size(), n);
      a.copy_from(x);
      EXPECT_EQ(a.get(n - 1), x[n - 1]);
      a.set(n / 2, -1.5f);
      EXPECT_EQ(a.get(n / 2), -1.5f);
      a.clear();
      a.copy_to(y);
      EXPECT_SAME(y, std::vector<float>(n, 0.0f), "cleared");
      a.copy_from(x.data());
      a.copy_to(y);
      EXPECT_SAME(y, x, "copied again");
    }
  EXPECT_OK(cudaStreamDestroy(own));
  const std::array<int, 3> three = {{7, 8, 9}};
  EXPECT_EQ(gk_array<int>(three).get(2), 9);
}

TEST(it_owns_its_memory) {
  const std::vector<float> x = counting(100);
  gk_array<float> a(x), b(5);
  float *const memory = a;
  EXPECT(memory == a.data() && memory != b.data());
  b = std::move(a);
  EXPECT(a.data() == NULL && a.size() == 0);
  EXPECT(b.data() == memory && b.size() == 100);
  gk_array<float> c(std::move(b)), none;
  EXPECT(b.data() == NULL && c.data() == memory);
  EXPECT(none.data() == NULL && none.size() == 0);
  none = gk_array<float>(x);
  EXPECT_EQ(none.get(99), 99.0f);
  static_assert(!std::is_copy_constructible<gk_array<float>>::value, "no copies");
  static_assert(!std::is_convertible<gk_array<float>, float *>::value, "its memory would be freed first");
  static_assert(std::is_convertible<gk_array<float> &, const float *>::value, "a pointer");
  static_assert(!std::is_constructible<gk_array<float>, const gk_array<double> &>::value, "not from device memory");
  static_assert(!std::is_constructible<gk_array<float>, const std::vector<double> &>::value, "another type");
  static_assert(!std::is_constructible<gk_array<float>, double>::value, "no number of elements");
  static_assert(std::is_constructible<gk_array<float>, int>::value, "one");
#ifdef CUDA_ON_CPU
  size_t before = 0, after = 0, total = 0;
  EXPECT_OK(cudaMemGetInfo(&before, &total));
  { const gk_array<double> more(1000), moved(std::move(const_cast<gk_array<double> &>(more))); }
  {
    gk_array<double> kept(1000);
    kept = gk_array<double>(2000); /* frees what it had */
  }
  EXPECT_OK(cudaMemGetInfo(&after, &total));
  EXPECT_EQ(after, before);
#endif
}

TEST(failures_go_to_the_handler) {
  reports failures;
  const std::vector<float> x = counting(10);
  std::vector<float> y(11, -1.0f);
  gk_array<float> a(x);
  a.copy_to(y);
  failures.expect(cudaErrorInvalidValue, __LINE__ - 1,
                  "gk_array: copy_to a range of 11 elements, but the array has 10");
  EXPECT_EQ(y[0], -1.0f);
  a.copy_from(y);
  failures.expect(cudaErrorInvalidValue, __LINE__ - 1, "gk_array: copy_from a range of 11 elements");
  EXPECT_EQ(a.get(10), 0.0f);
  failures.expect(cudaErrorInvalidValue, __LINE__ - 1, "gk_array: get of element 10, but the array has 10");
  a.set(size_t(-1), 1.0f);
  failures.expect(cudaErrorInvalidValue, __LINE__ - 1, "gk_array: set of element 18446744073709551615");
  a.copy_to(static_cast<float *>(NULL));
  failures.expect(cudaErrorInvalidValue, __LINE__ - 1, "is NULL");
  a.copy_to(x.size() ? y.data() : NULL);
  EXPECT_EQ(failures.calls, 0);
  EXPECT_EQ(y[9], 9.0f);
  for (size_t n : {static_cast<size_t>(-1), static_cast<size_t>(-1) / 4 + 2, size_t(1) << 60}) {
    const gk_array<float> large(n);
    failures.expect(n == size_t(1) << 60 ? cudaErrorMemoryAllocation : cudaErrorInvalidValue, __LINE__ - 1,
                    n == size_t(1) << 60 ? "gk_array: the device has no" : "are more than memory can address");
    EXPECT(large.data() == NULL && large.size() == 0);
  }
  const std::vector<float> no_elements;
  const gk_array<float> nothing(no_elements.size()), nothing_of_a_range(no_elements);
  EXPECT(nothing.data() == NULL && nothing_of_a_range.size() == 0);
  EXPECT_EQ(failures.calls, 0);
}

#ifdef CUDA_ON_CPU
/* The k-th call to CUDA fails, for each k: one report, and no memory is kept. */
TEST(each_call_fails_in_turn) {
  cudaStream_t own;
  EXPECT_OK(cudaStreamCreate(&own));
  const std::vector<float> x = counting(10);
  for (cudaStream_t stream : {cudaStream_t(0), own}) {
    unsigned long long calls = 0;
    for (unsigned k = 1; k == 1 || calls >= k - 1; k++) {
      remembering failures;
      std::vector<float> y(10, -1.0f);
      size_t before = 0, after = 0, total = 0;
      EXPECT_OK(cudaMemGetInfo(&before, &total));
      {
        cuda_cpu_fail(("any:" + std::to_string(k)).c_str());
        const gk_array<float> a(x, stream);
        if (failures.calls == 0) a.copy_to(y);
        calls = cuda_cpu_calls("any");
        cuda_cpu_fail(NULL);
      }
      EXPECT_EQ(failures.calls, calls >= k ? 1 : 0);
      if (calls >= k)
        EXPECT_HAS(failures.detail.c_str(), "gk_array");
      else
        EXPECT_SAME(y, x, "there and back");
      EXPECT_OK(cudaMemGetInfo(&after, &total));
      EXPECT_EQ(after, before);
      cudaGetLastError();
    }
    EXPECT(calls >= 4);
  }
  EXPECT_OK(cudaStreamDestroy(own));
}

/* cudaFreeAsync fails on a device without memory pools; cudaFree frees the memory then. A destructor can report nothing,
 * so what fails in it must not be the last error either. An error of the caller's stays. */
TEST(a_failing_destructor_leaves_no_error) {
  cudaStream_t own;
  EXPECT_OK(cudaStreamCreate(&own));
  for (const char *failing : {"cudaFreeAsync:1", "cudaFreeAsync:1,cudaFree:1"})
    for (cudaStream_t stream : {cudaStream_t(0), own})
      for (bool has_earlier_error : {false, true}) {
        size_t before = 0, after = 0, total = 0;
        EXPECT_OK(cudaMemGetInfo(&before, &total));
        cuda_cpu_fail(failing);
        float *memory = NULL;
        {
          gk_array<float> a(10, stream);
          memory = a;
          if (has_earlier_error) EXPECT_EQ(cudaSetDevice(-99), cudaErrorInvalidDevice);
        }
        EXPECT_EQ(cuda_cpu_calls("cudaFreeAsync"), stream ? 1u : 0u);
        EXPECT_EQ(cuda_cpu_calls("cudaFree"), 1u);
        cuda_cpu_fail(NULL);
        EXPECT_EQ(cudaGetLastError() != cudaSuccess, has_earlier_error);
        if (strstr(failing, "cudaFree:")) EXPECT_OK(cudaFree(memory));
        EXPECT_OK(cudaMemGetInfo(&after, &total));
        EXPECT_EQ(after, before);
      }
  EXPECT_OK(cudaStreamDestroy(own));
}
#endif

__global__ static void add(const float *x, float *y, size_t n) {
  GK_FOR_1D (i, n) y[i] += x[i];
}

TEST(in_the_place_of_pointers) {
  const size_t n = 5000;
  const std::vector<float> host = counting(n);
  const gk_array<float> x(host);
  gk_array<float> y(host), one(1);
  gk_array<gk_arg<float>> place(1);
  std::vector<float> sums(n);
  GK_LAUNCH(add, gk_grid_1d(n, 256), 256, 0, 0, x, y, n);
  EXPECT_EQ(y.get(n - 1), 2.0f * host[n - 1]);
  EXPECT_OK(gk_launch(add, dim3(1), dim3(32), 0, 0, x, y, n));
  EXPECT_EQ(y.get(2), 6.0f);
  EXPECT_OK(gk_reduce(x, one, n, gk_op_sum()));
  EXPECT_EQ(one.get(0), reduce_in_a_loop(GK_OP_SUM, host));
  EXPECT_OK(gk_reduce_max(x, one, n));
  EXPECT_EQ(one.get(0), host[n - 1]);
  EXPECT_OK(gk_reduce_argmax(x, place, n));
  EXPECT_EQ(place.get(0).index, n - 1);
  EXPECT_OK(gk_scan_inclusive(x, y, n, gk_op_max()));
  y.copy_to(sums);
  EXPECT_SAME(sums, host, "inclusive");
  EXPECT_OK(gk_scan_exclusive(x, y.data(), n, gk_op_sum()));
  EXPECT_EQ(y.get(3), 3.0f);
  EXPECT_OK(gk_scan_exclusive_sum(x, y, n));
  EXPECT_EQ(y.get(4), 6.0f);
  EXPECT_OK(gk_scan_inclusive_sum(x, y, n));
  EXPECT_EQ(y.get(4), 10.0f);
  EXPECT_OK(gk_scan_exclusive_init(x.data(), y, n, gk_op_sum(), 10));
  EXPECT_EQ(y.get(3), 13.0f);
  gk_array<float> c(50 * 60);
  gk_matmul_path path;
  EXPECT_OK(gk_matmul(x, x, c, 50, 60, 2));
  EXPECT_EQ(c.get(61), host[2] * host[1] + host[3] * host[61]);
  EXPECT_OK(gk_matmul_scaled(2, x, x, 0, c, 50, 60, 2));
  EXPECT_EQ(c.get(61), 2 * (host[2] * host[1] + host[3] * host[61]));
  EXPECT_OK(gk_matmul_ex(x, x.data(), c, 50, 60, 2, NULL));
  EXPECT_OK(gk_matmul_ex<GK_PRECISION_STRICT>(x, x, c.data(), 50, 60, 2, NULL));
  EXPECT_EQ(c.get(61), host[2] * host[1] + host[3] * host[61]);
  EXPECT_OK(gk_matmul_plan(x, x, c, 50, 60, 2, NULL, &path));
}

struct is_positive {
  __device__ bool operator()(float x) const { return x > 0; }
};

/* The calls of section 10 work on the stream that they are given: a capture records all that they do. */
static void check_captured(const char *name, const std::function<cudaError_t(float *out, cudaStream_t stream)> &call) {
  device_array<float> expected(16), out(16);
  EXPECT_OK(call(expected.ptr, 0));
  replay_graph(
      1, [&](cudaStream_t stream) { EXPECT_OK(call(out.ptr, stream)); }, [&](int) { out.clear(); },
      [&](int) { EXPECT_SAME(out.get(), expected.get(), "%s in a graph", name); });
}
#define CHECK_CAPTURED(name, ...)                                                                                      \
  check_captured(#name, [&](float *out, cudaStream_t stream) { return name(__VA_ARGS__, stream); })
TEST(every_call_is_captured) {
  const size_t rows = 3, cols = 4, n = rows * cols;
  const gk_array<float> array(counting(n));
  const float *const x = array.data();
  gk_array<unsigned> count(1);
  const gk_matmul_opts *const opts = NULL;
  CHECK_CAPTURED(gk_reduce, x, out, n, gk_op_max());
  CHECK_CAPTURED(gk_reduce_sum, x, out, n);
  CHECK_CAPTURED(gk_dot, x, x, out, n);
  CHECK_CAPTURED(gk_reduce_rows, x, out, rows, cols, 0, gk_op_sum());
  CHECK_CAPTURED(gk_reduce_columns, x, out, rows, cols, 0, gk_op_sum());
  CHECK_CAPTURED(gk_scan_inclusive, x, out, n, gk_op_sum());
  CHECK_CAPTURED(gk_scan_exclusive, x, out, n, gk_op_sum());
  CHECK_CAPTURED(gk_scan_exclusive_init, x, out, n, gk_op_sum(), 3);
  CHECK_CAPTURED(gk_scan_inclusive_sum, x, out, n);
  CHECK_CAPTURED(gk_scan_exclusive_sum, x, out, n);
  CHECK_CAPTURED(gk_scan_rows_inclusive, x, out, rows, cols, 0, gk_op_sum());
  CHECK_CAPTURED(gk_scan_rows_exclusive, x, out, rows, cols, 0, gk_op_sum());
  CHECK_CAPTURED(gk_select, x, out, count, n, is_positive());
  CHECK_CAPTURED(gk_select_flagged, x, reinterpret_cast<const int *>(x), out, count, n);
  CHECK_CAPTURED(gk_copy, x, out, n);
  CHECK_CAPTURED(gk_fill, out, n, 2);
  CHECK_CAPTURED(gk_iota, out, n, 1, 2);
  CHECK_CAPTURED(gk_random_uniform, out, n, 1);
  CHECK_CAPTURED(gk_random_normal, out, n, 1);
  CHECK_CAPTURED(gk_matmul, x, x, out, 3, 4, 3);
  CHECK_CAPTURED(gk_matmul_scaled, 2, x, x, 0, out, 3, 4, 3);
  CHECK_CAPTURED(gk_matmul_ex, x, x, out, 3, 4, 3, opts);
  CHECK_CAPTURED(gk_matmul_ex<GK_PRECISION_STRICT>, x, x, out, 3, 4, 3, opts);
}

/* A gk_array of the elements that a call uses is enough, and one with an element less is refused, for each argument. */
TEST(arrays_that_are_too_small) {
  const size_t n = 100, rows = 9, cols = 11, ld = 12, extent = 8 * 12 + 11;
  gk_array<float> x(n), y(n), less(n - 1), one(1), none, a(6), b(8), c(12), matrix(extent), row(rows), col(cols);
  gk_array<unsigned char> flags(n), less_flags(n - 1);
  gk_array<size_t> count(1), no_count;
  gk_array<gk_arg<float>> no_place;
  gk_array<char> bytes(5);
  float value = -1;
  x.clear();
  matrix.clear();
  flags.clear();
  a.clear();
  b.clear();
#define TOO_SMALL(detail, ...) EXPECT_ERROR(cudaErrorInvalidValue, detail, __VA_ARGS__)
  TOO_SMALL("gk_reduce: input is a gk_array of 99 elements, but the call uses 100",
            gk_reduce(less, one, n, gk_op_max()));
  TOO_SMALL("but the call uses 18446744073709551615", gk_reduce(bytes, bytes, SIZE_MAX, gk_op_max()));
  TOO_SMALL("gk_reduce: output is a gk_array of 0 elements, but the call uses 1", gk_reduce(x, none, n, gk_op_max()));
  TOO_SMALL("gk_reduce: output is a gk_array of 0", gk_reduce(x, none, 0, gk_op_max()));
  TOO_SMALL("gk_reduce: input", gk_reduce_sum(less, one, n));
  TOO_SMALL("gk_reduce: output", gk_reduce_argmax(x, no_place, n));
  TOO_SMALL("gk_reduce_value: input", gk_reduce_value(less, &value, n, gk_op_sum()));
  TOO_SMALL("gk_dot: x", gk_dot(less, y, one, n));
  TOO_SMALL("gk_dot: y", gk_dot(x, less, one, n));
  TOO_SMALL("gk_dot: output", gk_dot(x, y, none, n));
  TOO_SMALL("gk_scan_inclusive: input", gk_scan_inclusive(less, y, n, gk_op_sum()));
  TOO_SMALL("gk_scan_inclusive: output", gk_scan_inclusive_sum(x, less, n));
  TOO_SMALL("gk_scan_exclusive: output", gk_scan_exclusive(x, less, n, gk_op_sum()));
  TOO_SMALL("gk_scan_exclusive_init: input", gk_scan_exclusive_init(less, y, n, gk_op_sum(), 1));
  TOO_SMALL("gk_select: input", gk_select(less, y, count, n, is_positive()));
  TOO_SMALL("gk_select: kept_count", gk_select(x, y, no_count, n, is_positive()));
  TOO_SMALL("gk_select_flagged: input", gk_select_flagged(less, flags, y, count, n));
  TOO_SMALL("gk_select_flagged: item_flags", gk_select_flagged(x, less_flags, y, count, n));
  TOO_SMALL("gk_select_flagged: kept_count", gk_select_flagged(x, flags, y, no_count, n));
  TOO_SMALL("gk_copy: input", gk_copy(less, y, n));
  TOO_SMALL("gk_copy: output", gk_copy(x, less, n));
  TOO_SMALL("gk_fill: output", gk_fill(less, n, 1));
  TOO_SMALL("gk_iota: output", gk_iota(less, n, 0, 1));
  TOO_SMALL("gk_random_uniform: output", gk_random_uniform(less, n, 1));
  TOO_SMALL("gk_random_normal: output", gk_random_normal(less, n, 1));
  TOO_SMALL("gk_print: input", gk_print(less, n));
  TOO_SMALL("gk_print_matrix: input", gk_print_matrix(less, 10, 10));
  TOO_SMALL("gk_reduce_rows: input is a gk_array of 99 elements, but the call uses 107",
            gk_reduce_rows(less, row, rows, cols, ld, gk_op_sum()));
  TOO_SMALL("gk_reduce_rows: output", gk_reduce_rows(matrix, none, rows, cols, ld, gk_op_sum()));
  TOO_SMALL("gk_reduce_columns: input", gk_reduce_columns(less, col, rows, cols, ld, gk_op_sum()));
  TOO_SMALL("gk_reduce_columns: output", gk_reduce_columns(matrix, row, rows, cols, ld, gk_op_sum()));
  TOO_SMALL("gk_scan_rows_inclusive: input", gk_scan_rows_inclusive(less, matrix, rows, cols, ld, gk_op_sum()));
  TOO_SMALL("gk_scan_rows_exclusive: output", gk_scan_rows_exclusive(matrix, less, rows, cols, ld, gk_op_sum()));
  TOO_SMALL("gk_matmul: A is a gk_array of 6 elements, but the call uses 8", gk_matmul(a, b, c, 4, 3, 2));
  TOO_SMALL("gk_matmul: B is a gk_array of 6", gk_matmul(a, a, c, 3, 4, 2));
  TOO_SMALL("gk_matmul: C is a gk_array of 8", gk_matmul_scaled(2, a, c, 0, b, 3, 3, 2));
  EXPECT_OK(gk_matmul(a, b, c, 3, 4, 2));
  EXPECT_OK(gk_matmul_scaled(0, none, none, 0, c, 3, 4, 2));     /* reads neither A nor B */
  EXPECT_OK(gk_matmul_scaled(1e-60, none, none, 0, c, 3, 4, 2)); /* nor here: as a float it is 0 */
  EXPECT_OK(gk_matmul(none, none, none, 0, 4, 2));
  gk_matmul_opts opts = gk_matmul_opts();
  opts.lda = 4; /* A: 3 rows of 2 */
  TOO_SMALL("gk_matmul: A is a gk_array of 6 elements, but the call uses 10", gk_matmul_ex(a, b, c, 3, 4, 2, &opts));
  opts.trans_a = 1; /* 2 rows of 3 */
  TOO_SMALL("gk_matmul: A is a gk_array of 6 elements, but the call uses 7", gk_matmul_ex(a, b, c, 3, 4, 2, &opts));
  opts = gk_matmul_opts();
  opts.batch = 2;
  TOO_SMALL("gk_matmul: C is a gk_array of 12 elements, but the call uses 24", gk_matmul_ex(a, b, c, 3, 4, 2, &opts));
  opts.stride_a = static_cast<size_t>(-1) / 2;
  opts.batch = 5; /* the extent is more than a size_t */
  TOO_SMALL("gk_matmul: A is a gk_array of 6 elements, but the call uses 18446744073709551615",
            gk_matmul_ex(a, b, c.data(), 3, 4, 2, &opts));
#undef TOO_SMALL
  EXPECT_OK(gk_reduce_rows(matrix, row, rows, cols, ld, gk_op_sum()));
  EXPECT_OK(gk_reduce_columns(matrix, col, rows, cols, ld, gk_op_sum()));
  EXPECT_OK(gk_scan_rows_inclusive(matrix, matrix, rows, cols, ld, gk_op_sum()));
  EXPECT_OK(gk_select(x, one, count, n, is_positive())); /* keeps nothing: the size of the output is the user's */
  EXPECT_EQ(count.get(0), size_t(0));
}

template <class Item, class Value, class Operator>
static void check_value(size_t n, Operator operation, gk_op op, const gk_scratch *scratch) {
  const std::vector<Item> host = elements<Item>(op, n);
  const gk_array<Item> x(host);
  Value value = Value();
  EXPECT_OK(gk_reduce_value(x, &value, n, operation, 0, scratch));
  EXPECT_EQ(value, reduce_in_a_loop(op, host));
}
TEST(a_value_on_the_host) {
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_scratch_create(&scratch, 0, 0));
  for (const gk_scratch *use : {static_cast<const gk_scratch *>(NULL), static_cast<const gk_scratch *>(&scratch)})
    for (size_t n : {1u, 1000u, 50000u}) {
      check_value<float, float>(n, gk_op_sum(), GK_OP_SUM, use);
      check_value<float, float>(n, gk_op_max(), GK_OP_MAX, use);
      check_value<int, int>(n, gk_op_min(), GK_OP_MIN, use);
    }
  EXPECT_OK(gk_scratch_destroy(&scratch));
  const gk_array<float> x(counting(1000));
  gk_arg<float> most = {0, 0};
  EXPECT_OK(gk_reduce_value(x, &most, 1000, gk_op_argmax()));
  EXPECT_EQ(most.index, size_t(999));
  EXPECT_OK(gk_reduce_value(x, &most, 1000, gk_op_argmin()));
  EXPECT_EQ(most.index, size_t(0));
  float sum = -1;
  EXPECT_OK(gk_reduce_value(x, &sum, 0, gk_op_sum()));
  EXPECT_EQ(sum, 0.0f);
}
TEST(a_value_that_cannot_be) {
  const gk_array<float> x(counting(100));
  float value = -1;
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_reduce_value: value is NULL",
               gk_reduce_value(x, static_cast<float *>(NULL), 100, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_reduce",
               gk_reduce_value(static_cast<float *>(NULL), &value, 100, gk_op_sum()));
  cudaStream_t stream;
  cudaGraph_t graph;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  EXPECT_ERROR(cudaErrorStreamCaptureUnsupported, "is being captured",
               gk_reduce_value(x, &value, 100, gk_op_sum(), stream));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph)); /* the capture goes on */
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_EQ(value, -1.0f);
}

TEST(allclose_of_arrays) {
  const size_t n = 10000; /* several parts, the last of which is short */
  std::vector<float> host(n);
  std::vector<double> wide(n);
  for (size_t i = 0; i < n; i++) host[i] = rounding<float>(40, i), wide[i] = static_cast<double>(host[i]);
  const gk_array<float> x(host);
  gk_array<double> y(wide);
  EXPECT(gk_allclose(x, y, 0, 0));
  EXPECT(gk_allclose(x, wide.data(), 0, 0));
  EXPECT(gk_allclose(x, wide, 0, 0));
  EXPECT(gk_allclose(gk_array<float>(), gk_array<int>(), 0, 0));
  y.set(9000, wide[9000] + 1);
  y.set(4096, wide[4096] + 2);
  gk_mismatch where = gk_mismatch();
  EXPECT(!gk_allclose(x, y, 0, 1, &where));
  EXPECT_EQ(where.mismatches, 1u);
  EXPECT_EQ(where.first_index, 4096u);
  EXPECT(!gk_allclose(x, y, 0, 0, &where));
  EXPECT_EQ(where.mismatches, 2u);
  EXPECT_EQ(where.worst_index, 4096u);
  reports r;
  EXPECT(!gk_allclose(x, gk_array<float>(3), 0, 0));
  r.expect(cudaErrorInvalidValue, __LINE__ - 1, "one array has 10000 elements, the other 3");
}

TEST(first_elements) {
  const std::vector<int> host = {1, 2, 3, 4, 5};
  gk_array<int> x(host);
  int some[5] = {9, 9, 9, 9, 9};
  x.copy_to(some, host.size() - 2);
  EXPECT(some[2] == 3 && some[3] == 9);
  some[0] = 7;
  x.copy_from(some, host.size() - 4);
  EXPECT(x.get(0) == 7 && x.get(1) == 2);
  reports r;
  x.copy_to(some, host.size() + 1);
  r.expect(cudaErrorInvalidValue, __LINE__ - 1, "gk_array: copy_to of 6 elements, but the array has 5");
  x.copy_from(some, 7);
  r.expect(cudaErrorInvalidValue, __LINE__ - 1, "gk_array: copy_from of 7 elements, but the array has 5");
  std::vector<int> few(3);
  x.copy_to(few, 0); /* 0 is taken for the name of the file */
  EXPECT(r.calls == 1 && r.file.empty());
}
