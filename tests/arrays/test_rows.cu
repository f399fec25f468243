/* gk_reduce_rows, gk_reduce_columns and gk_scan_rows_* against loops on the host. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "hooks.h"
#include "loops.h"

struct shape {
  size_t rows, cols, padding;
};
/* Rows for a lane, a few lanes, a warp, and a block; partitions of long rows and of few columns; odd leading dimensions.
 */
static const shape shapes[] = {{1, 1, 0},      {3, 5, 0},     {33, 1, 0},    {1, 33, 0},      {257, 4, 0},
                               {100, 7, 2},    {64, 32, 0},   {31, 100, 28}, {7, 513, 0},     {5, 2049, 3},
                               {3, 20000, 0},  {2, 40001, 1}, {5000, 17, 0}, {4100, 1030, 2}, {20000, 3, 13},
                               {9000, 129, 0}, {0, 5, 0},     {5, 0, 0}};

/* Small whole numbers, so that sums are exact in any order. */
template <class T> static T small(size_t i) { return make<T>(uniform(80, i, 0, 9)); }

template <class T, class Acc, class O, class Operator, class Functor>
static void check(const shape &s, size_t offset, Operator operation, Functor functor, bool computed,
                  const gk_scratch *scratch, const char *name) {
  const size_t distance = s.cols + s.padding, n = offset + s.rows * distance;
  std::vector<T> host(n);
  for (size_t i = 0; i < n; i++) host[i] = small<T>(i);
  const gk_array<T> x(host);
  std::vector<O> row_results(s.rows), col_results(s.cols), got_rows(s.rows), got_cols(s.cols);
  for (size_t r = 0; r < s.rows; r++) {
    Acc value = functor.identity();
    for (size_t c = 0; c < s.cols; c++)
      value = functor(value, hook_lift<Acc, T>::from(host[offset + r * distance + c], c));
    row_results[r] = hook_convert<O, Acc>::from(value);
  }
  for (size_t c = 0; c < s.cols; c++) {
    Acc value = functor.identity();
    for (size_t r = 0; r < s.rows; r++)
      value = functor(value, hook_lift<Acc, T>::from(host[offset + r * distance + c], r));
    col_results[c] = hook_convert<O, Acc>::from(value);
  }
  gk_array<O> rows(s.rows), cols(s.cols);
  const size_t given = s.padding ? distance : 0;
  if (computed) {
    const auto input = gk_computed<T>(element_of<T>{x.data() + offset});
    EXPECT_OK(gk_reduce_rows(input, rows, s.rows, s.cols, given, operation, 0, scratch));
    EXPECT_OK(gk_reduce_columns(input, cols, s.rows, s.cols, given, operation, 0, scratch));
  } else {
    EXPECT_OK(gk_reduce_rows(x.data() + offset, rows, s.rows, s.cols, given, operation, 0, scratch));
    EXPECT_OK(gk_reduce_columns(x.data() + offset, cols, s.rows, s.cols, given, operation, 0, scratch));
  }
  rows.copy_to(got_rows);
  cols.copy_to(got_cols);
  EXPECT_SAME(got_rows, row_results, "%s, rows of %zu x %zu, offset %zu", name, s.rows, s.cols, offset);
  EXPECT_SAME(got_cols, col_results, "%s, columns of %zu x %zu, offset %zu", name, s.rows, s.cols, offset);
}
template <class T, class Acc, class O, class Operator, class Functor>
static void check_shapes(Operator operation, Functor functor, const gk_scratch *scratch, const char *name) {
  size_t number = 0;
  for (const shape &s : shapes) {
    number++;
    if (s.rows * s.cols > 1000000 && !std::is_same<Acc, double>::value) continue; /* once: it takes long */
    if (test_leaves_out()) continue;
    check<T, Acc, O>(s, number % 3, operation, functor, false, scratch, name);
    if (s.rows * s.cols < 20000) check<T, Acc, O>(s, 0, operation, functor, number % 2 == 0, scratch, name);
  }
}

TEST(sums) {
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_scratch_create(&scratch, gk_matrix_scratch_bytes(20000, 40001, sizeof(double)), 0));
  check_shapes<float, float, float>(gk_op_sum(), gk_sum<float>(), NULL, "sums of floats");
  check_shapes<double, double, float>(gk_op_sum(), gk_sum<double>(), &scratch, "sums of doubles");
  check_shapes<__half, float, float>(gk_op_sum(), gk_sum<float>(), &scratch, "sums of halves");
  check_shapes<unsigned char, unsigned long long, unsigned>(gk_op_sum(), gk_sum<unsigned long long>(), &scratch,
                                                            "sums of bytes");
  EXPECT_OK(gk_scratch_destroy(&scratch));
}
TEST(extremes) {
  check_shapes<float, float, float>(gk_op_max(), gk_max<float>(), NULL, "maxima of floats");
  check_shapes<short, short, short>(gk_op_min(), gk_min<short>(), NULL, "minima of shorts");
  check_shapes<float, gk_arg<float>, gk_arg<float>>(gk_op_argmax(), gk_argmax<float>(), NULL, "argmax of floats");
  check_shapes<int, gk_arg<int>, gk_arg<int>>(gk_op_argmin(), gk_argmin<int>(), NULL, "argmin of ints");
}

/* An operator of the user's, on a struct whose size is no power of two. */
struct range {
  float least, greatest;
  int elements;
};
struct join {
  __host__ __device__ range identity() const { return range{1e30f, -1e30f, 0}; }
  __host__ __device__ range operator()(const range &x, const range &y) const {
    return range{x.least < y.least ? x.least : y.least, x.greatest > y.greatest ? x.greatest : y.greatest,
                 x.elements + y.elements};
  }
};
template <> range make<range>(double x) { return range{static_cast<float>(x), static_cast<float>(x), 1}; }
TEST(operators_of_the_user) { check_shapes<range, range, range>(join(), join(), NULL, "ranges"); }

/* The bits depend on the shape alone: not on alignment, leading dimension, scratch, or how the input comes. */
template <class T, class O> static void check_bits(size_t row_count, size_t col_count) {
  std::vector<O> expected_rows, expected_cols;
  for (size_t padding : {0u, 1u, 3u, 16u})
    for (size_t offset : {0u, 1u}) {
      if (padding && test_leaves_out()) continue;
      const size_t distance = col_count + padding;
      std::vector<T> host(offset + row_count * distance, make<T>(1e4));
      for (size_t r = 0; r < row_count; r++)
        for (size_t c = 0; c < col_count; c++) host[offset + r * distance + c] = rounding<T>(81, r * col_count + c);
      const gk_array<T> x(host);
      gk_array<O> rows(row_count), cols(col_count);
      EXPECT_OK(gk_reduce_rows(x.data() + offset, rows, row_count, col_count, distance, gk_op_sum()));
      EXPECT_OK(gk_reduce_columns(x.data() + offset, cols, row_count, col_count, distance, gk_op_sum()));
      std::vector<O> got_rows(row_count), got_cols(col_count);
      rows.copy_to(got_rows);
      cols.copy_to(got_cols);
      if (expected_rows.empty()) expected_rows = got_rows, expected_cols = got_cols;
      EXPECT_SAME(got_rows, expected_rows, "rows of %zu x %zu, padding %zu, offset %zu", row_count, col_count, padding,
                  offset);
      EXPECT_SAME(got_cols, expected_cols, "columns of %zu x %zu, padding %zu, offset %zu", row_count, col_count,
                  padding, offset);
    }
}
TEST(same_bits) {
  check_bits<float, float>(3, 30000);
  check_bits<float, float>(6000, 100);
  check_bits<double, double>(50, 700);
  check_bits<__half, float>(300, 120);
}

/* Scans of rows: by warps, by tiles, by several tiles with a look-back, of both sizes of tiles. */
static const shape scan_shapes[] = {{1, 1, 0},    {3, 5, 2},      {40, 1000, 0},  {9, 1025, 0},
                                    {5, 3073, 3}, {3, 120001, 1}, {2, 270000, 0}, {3000, 9, 0},
                                    {0, 5, 0},    {5, 0, 0},      {2, 280004, 8}};
template <class T, class Acc, class O, class Operator, class Functor>
static void check_scan(const shape &s, size_t offset, bool inclusive, Operator operation, Functor functor,
                       const gk_scratch *scratch, const char *name) {
  const size_t distance = s.cols + s.padding, n = offset + s.rows * distance;
  std::vector<T> host(n);
  for (size_t i = 0; i < n; i++) host[i] = small<T>(i);
  std::vector<O> expected(n), got(n);
  for (size_t r = 0; r < s.rows; r++) {
    Acc value = functor.identity();
    for (size_t c = 0; c < s.cols; c++) {
      const size_t i = offset + r * distance + c;
      const Acc next = functor(value, hook_lift<Acc, T>::from(host[i], c));
      expected[i] = hook_convert<O, Acc>::from(inclusive ? next : value);
      value = next;
    }
  }
  const gk_array<T> x(host);
  gk_array<O> y(n);
  y.clear();
  if (inclusive)
    EXPECT_OK(
        gk_scan_rows_inclusive(x.data() + offset, y.data() + offset, s.rows, s.cols, distance, operation, 0, scratch));
  else
    EXPECT_OK(
        gk_scan_rows_exclusive(x.data() + offset, y.data() + offset, s.rows, s.cols, distance, operation, 0, scratch));
  y.copy_to(got);
  EXPECT_SAME(got, expected, "%s, %zu x %zu, offset %zu, inclusive %d", name, s.rows, s.cols, offset, inclusive);
}
template <class T, class Acc, class O, class Operator, class Functor>
static void check_scans(Operator operation, Functor functor, const gk_scratch *scratch, const char *name) {
  size_t number = 0;
  for (const shape &s : scan_shapes) {
    number++;
    if (s.rows * s.cols > 100000 && test_leaves_out()) continue;
    check_scan<T, Acc, O>(s, number % 3, number % 2 == 0, operation, functor, scratch, name);
    if (s.rows * s.cols < 50000) check_scan<T, Acc, O>(s, 0, number % 2 == 1, operation, functor, scratch, name);
  }
}
TEST(scans) {
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_scratch_create(&scratch, gk_matrix_scratch_bytes(3, 280004, sizeof(gk_arg<float>)), 0));
  check_scans<float, float, float>(gk_op_sum(), gk_sum<float>(), NULL, "sums of floats");
  check_scans<unsigned char, unsigned, unsigned>(gk_op_sum(), gk_sum<unsigned>(), NULL, "sums of bytes");
  check_scans<float, gk_arg<float>, gk_arg<float>>(gk_op_argmax(), gk_argmax<float>(), &scratch, "argmax of floats");
  check_scans<range, range, range>(join(), join(), NULL, "ranges");
  EXPECT_OK(gk_scratch_destroy(&scratch));
  /* So many groups of tiles that a look-back begins at the prefix of an earlier one. */
  const size_t long_row = test_slowed() ? 600011 : 2000003;
  check_scan<float, float, float>(shape{2, long_row, 0}, 0, true, gk_op_sum(), gk_sum<float>(), NULL, "long rows");
  gk_array<double> x(10000);
  EXPECT_OK(gk_fill(x, 10000, 1));
  EXPECT_OK(gk_scan_rows_inclusive(x, x, 4, 2500, 0, gk_op_sum()));
  for (size_t i : {0u, 2499u, 2500u, 9999u}) EXPECT_EQ(x.get(i), static_cast<double>(i % 2500 + 1));
}

TEST(bad_input) {
  gk_array<float> x(100), y(100);
  float *const nowhere = NULL;
  const gk_scratch empty = gk_scratch();
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_reduce_rows: the scratch is empty",
               gk_reduce_rows(x, y, 2, 5, 0, gk_op_sum(), 0, &empty));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_scan_rows_inclusive: the scratch is empty",
               gk_scan_rows_inclusive(x, y, 2, 5, 0, gk_op_sum(), 0, &empty));
  EXPECT_ERROR(cudaErrorInvalidValue, "the leading dimension is 4, but rows have 5 elements",
               gk_reduce_rows(x, y, 2, 5, 4, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_reduce_columns: input is NULL",
               gk_reduce_columns(nowhere, y, 2, 5, 0, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_reduce_rows: output is NULL, but the call uses 2 of its elements",
               gk_reduce_rows(x, nowhere, 2, 5, 0, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "more than memory can address",
               gk_reduce_rows(x, y.data(), static_cast<size_t>(1) << 40, static_cast<size_t>(1) << 30, 0, gk_op_sum()));
  EXPECT_OK(gk_reduce_rows(nowhere, nowhere, 0, 5, 0, gk_op_sum()));
  EXPECT_OK(gk_reduce_rows(nowhere, y, 3, 0, 0, gk_op_prod()));
  EXPECT_EQ(y.get(2), 1.0f);
}

/* Elements that vector instructions of a CPU load at once where they are aligned to 32 bytes. */
struct alignas(32) four {
  double x, y, z, w;
};
struct add_fours {
  __host__ __device__ four identity() const { return {0, 0, 0, 0}; }
  __host__ __device__ four operator()(const four &a, const four &b) const {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
  }
};
TEST(elements_aligned_to_32_bytes) {
  const size_t row_count = 300, col_count = 10, n = row_count * col_count;
  const gk_array<four> in(std::vector<four>(n, four{1, 2, 3, 4}));
  gk_array<four> all(1), columns(col_count), running(n);
  EXPECT_OK(gk_reduce(in, all, n, add_fours()));
  EXPECT_EQ(all.get(0).w, 4.0 * n);
  EXPECT_OK(gk_reduce_columns(in, columns, row_count, col_count, col_count, add_fours()));
  EXPECT_EQ(columns.get(col_count - 1).z, 3.0 * row_count);
  EXPECT_OK(gk_scan_inclusive(in, running, n, add_fours()));
  EXPECT_EQ(running.get(n - 1).y, 2.0 * n);
}
