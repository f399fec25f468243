/* The calls on host arrays, and gk_allclose. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "loops.h"

/* --- host arrays ----------------------------------------------------------------------------------------------------*/

static size_t free_bytes() {
  size_t free = 0, total = 0;
  EXPECT_OK(cudaMemGetInfo(&free, &total));
  return free;
}

TEST(host_arrays_go_there_and_back) {
  const size_t n = 30000, before = free_bytes();
  const std::vector<float> x = elements<float>(GK_OP_SUM, n);
  float sum = -1;
  EXPECT_OK(gk_host_reduce(x.data(), &sum, n, gk_op_sum()));
  EXPECT_EQ(sum, reduce_in_a_loop(GK_OP_SUM, x));
  gk_arg<float> most = {0, 0};
  EXPECT_OK(gk_host_reduce(x.data(), &most, n, gk_op_argmax()));
  EXPECT_EQ(most.value, reduce_in_a_loop(GK_OP_MAX, x));
  EXPECT_EQ(x[most.index], most.value);
  std::vector<float> y(n);
  EXPECT_OK(gk_host_scan_inclusive(x.data(), y.data(), n, gk_op_sum()));
  EXPECT_SAME(y, scan_in_a_loop(GK_OP_SUM, true, 0.0f, x), "inclusive");
  EXPECT_OK(gk_host_scan_exclusive(x.data(), y.data(), n, gk_op_max()));
  EXPECT_SAME(y, scan_in_a_loop(GK_OP_MAX, false, -HUGE_VALF, x), "exclusive");
  y = x;
  EXPECT_OK(gk_host_scan_inclusive(y.data(), y.data(), n, gk_op_sum())); /* in place */
  EXPECT_SAME(y, scan_in_a_loop(GK_OP_SUM, true, 0.0f, x), "in place");
  const std::vector<__half> halves(n, make<__half>(0.5));
  EXPECT_OK(gk_host_reduce(halves.data(), &sum, n, gk_op_sum()));
  EXPECT_EQ(sum, 15000.0f);
  EXPECT_EQ(gk_error_detail(), std::string());
#ifdef CUDA_ON_CPU /* a GPU's driver keeps some for itself */
  EXPECT_EQ(free_bytes(), before);
#else
  (void)before;
#endif
}

TEST(host_matmul) {
  const size_t m = 70, n = 37, k = 41;
  std::vector<float> a(m * k), b(k * n), c(m * n), expected(m * n);
  for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(uniform(32, i, -9, 9));
  for (size_t i = 0; i < b.size(); i++) b[i] = static_cast<float>(uniform(33, i, -9, 9));
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++)
      for (size_t l = 0; l < k; l++) expected[i * n + j] += a[i * k + l] * b[l * n + j];
  EXPECT_OK(gk_host_matmul(a.data(), b.data(), c.data(), m, n, k));
  EXPECT_SAME(c, expected, "product");
  EXPECT_OK(gk_host_matmul(a.data(), b.data(), c.data(), m, n, 0));
  EXPECT_SAME(c, std::vector<float>(m * n, 0.0f), "k = 0");
  float *const nothing = NULL;
  EXPECT_OK(gk_host_matmul(nothing, nothing, nothing, 0, n, k));
  EXPECT_OK(gk_host_matmul(nothing, nothing, nothing, m, 0, k));
}

TEST(nothing_on_the_host) {
  const float *const none = NULL;
  float out = -1;
  EXPECT_OK(gk_host_reduce(none, &out, 0, gk_op_min()));
  EXPECT_EQ(out, HUGE_VALF);
  EXPECT_OK(gk_host_scan_inclusive(none, static_cast<float *>(NULL), 0, gk_op_sum()));
}

TEST(errors_on_the_host_change_nothing) {
  const size_t before = free_bytes(), huge = size_t(1) << 46;
  const float *const none = NULL, x[4] = {1, 2, 3, 4};
  float y[4] = {-1, -1, -1, -1}, *const nowhere = NULL;
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_reduce: input, an array of 4 elements, is NULL",
               gk_host_reduce(none, y, 4, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_reduce: output, an array of 1 elements, is NULL",
               gk_host_reduce(x, nowhere, 4, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "is more than memory can address",
               gk_host_reduce(x, y, SIZE_MAX / 4 + 1, gk_op_sum()));
  EXPECT_ERROR(cudaErrorMemoryAllocation, "the device has no 281474976710656 bytes left",
               gk_host_reduce(x, y, huge, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_scan_inclusive: input, an array of 4 elements, is NULL",
               gk_host_scan_inclusive(none, y, 4, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_scan_exclusive: output, an array of 4 elements, is NULL",
               gk_host_scan_exclusive(x, nowhere, 4, gk_op_sum()));
  EXPECT_ERROR(cudaErrorMemoryAllocation, "the device has no 281474976710656 bytes left",
               gk_host_scan_exclusive(x, y, huge, gk_op_sum()));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_matmul: A, an array of 4 elements, is NULL",
               gk_host_matmul(none, x, y, 2, 2, 2));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_matmul: C, an array of 4 elements, is NULL",
               gk_host_matmul(x, x, nowhere, 2, 2, 2));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_host_matmul: 4294967296 x 4294967296 x 1 is more than memory can address",
               gk_host_matmul(x, x, y, size_t(1) << 32, size_t(1) << 32, 1));
  for (float v : y) EXPECT_EQ(v, -1.0f);
#ifdef CUDA_ON_CPU
  EXPECT_EQ(free_bytes(), before);
#else
  (void)before;
#endif
}

/* --- gk_allclose ----------------------------------------------------------------------------------------------------*/

TEST(allclose_is_relative_to_the_second) {
  const struct {
    double a, b, rtol, atol;
    bool close;
  } cases[] = {
      {1, 1, 0, 0, true},           {1, 1.25, 0, 0.25, true},         {1, 1.25, 0, 0.24, false},
      {100, 110, 0.1, 0, true},                                /* 10 <= 11 */
      {110, 100, 0.0999, 0, false}, {111, 100, 0.1, 0, false}, /* 11 > 10 */
      {111, 100, 0.1, 1, true},     {-100, -110, 0.1, 0, true},       {0.0, -0.0, 0, 0, true},
      {1e-300, 0, 0.5, 0, false},   {HUGE_VAL, HUGE_VAL, 0, 0, true}, {-HUGE_VAL, HUGE_VAL, 1, 1, false},
      {1, HUGE_VAL, 1, 1, false},   {HUGE_VAL, 1, 1, 1, false},       {HUGE_VAL, HUGE_VAL, 0, HUGE_VAL, true},
      {1, 2, 0, HUGE_VAL, true},    {NAN, NAN, 1, 1, false},          {NAN, 1, 1, HUGE_VAL, false},
      {1, NAN, 1, 1, false},
  };
  for (const auto &c : cases)
    if (gk_allclose(&c.a, &c.b, 1, c.rtol, c.atol) != c.close)
      test_fail(__FILE__, __LINE__, sentence("%g against %g, rtol %g, atol %g", c.a, c.b, c.rtol, c.atol));
}

TEST(allclose_tells_where) {
  const float a[] = {1, 2, 3, 4, 5, 6};
  const double b[] = {1, 2.5, 3, 2, 5, 9};
  gk_mismatch where = {9, 9, 9, 9, 9, 9, 9};
  EXPECT(!gk_allclose(a, b, 6, 0, 0.25, &where));
  EXPECT_EQ(where.mismatches, size_t(3));
  EXPECT_EQ(where.first_index, size_t(1));
  EXPECT_EQ(where.first_a, 2.0);
  EXPECT_EQ(where.first_b, 2.5);
  EXPECT_EQ(where.worst_index, size_t(5));
  EXPECT_EQ(where.worst_a, 6.0);
  EXPECT_EQ(where.worst_b, 9.0);
  EXPECT_EQ(gk_error_detail(),
            std::string("gk_allclose: 3 of 6 differ: first [1]: 2 against 2.5, worst [5]: 6 against 9"));
  /* over its allowance: [3] differs by 2 of 0.2, [5] by 3 of 0.9 */
  EXPECT(!gk_allclose(a, b, 6, 0.1, 0, &where));
  EXPECT_EQ(where.worst_index, size_t(3));
  /* no allowance: by the difference alone */
  EXPECT(!gk_allclose(a, b, 6, 0, 0, &where));
  EXPECT_EQ(where.worst_index, size_t(5));
  /* success: all is zero, and the detail gone */
  EXPECT(gk_allclose(a, b, 6, 1, 0, &where));
  EXPECT_EQ(where.mismatches, size_t(0));
  EXPECT_EQ(gk_error_detail(), std::string());
  EXPECT(gk_allclose(a, b, 0, 0, 0));
  EXPECT(!gk_allclose(a, b, 6, 0, 0)); /* without where */
}

TEST(allclose_finds_nan_the_worst) {
  const double a[] = {0, 1e300, NAN, HUGE_VAL, 5}, b[] = {0, -1e300, 1, 1, 5};
  gk_mismatch where;
  EXPECT(!gk_allclose(a, b, 5, 1e-6, 0, &where));
  EXPECT_EQ(where.mismatches, size_t(3));
  EXPECT_EQ(where.first_index, size_t(1));
  EXPECT_EQ(where.worst_index, size_t(2)); /* the first of the infinitely wrong */
  EXPECT_HAS(gk_error_detail(), "worst [2]: nan against 1");
  const int64_t i[] = {1, 2, 3}, j[] = {1, 2, 4};
  EXPECT(!gk_allclose(i, j, 3, 0, 0, &where));
  EXPECT_EQ(where.worst_index, size_t(2));
}

template <class T, class U> static bool close(T a, U b, double rtol, double atol) {
  return gk_allclose(&a, &b, 1, rtol, atol);
}
TEST(allclose_of_integers_is_exact) {
  const int64_t big = int64_t(1) << 53, least = INT64_MIN, most = INT64_MAX;
  const uint64_t unsigned_most = UINT64_MAX;
  EXPECT(!close(big + 1, big, 0, 0));
  EXPECT(!close(big, big + 1, 0, 0));
  EXPECT(!close(most, most - 1, 0, 0));
  EXPECT(!close(unsigned_most, unsigned_most - 1, 0, 0));
  EXPECT(!close(least, least + 1, 0, 0));
  EXPECT(close(least, least, 0, 0) && close(most, most, 0, 0) && close(unsigned_most, unsigned_most, 0, 0));
  EXPECT(!close(unsigned_most, int64_t(-1), 0, 0)); /* of one bit pattern */
  EXPECT(!close(int64_t(-1), unsigned_most, 0, 0));
  EXPECT(close(5, uint64_t(5), 0, 0) && !close(-5, uint64_t(5), 0, 0) && close(short(-3), int64_t(-3), 0, 0));
  /* The allowance is one of whole numbers. */
  EXPECT(close(big + 3, big, 0, 3) && !close(big + 4, big, 0, 3) && !close(big + 4, big, 0, 3.75));
  EXPECT(close(most, most - 3, 0, 3) && !close(most, most - 4, 0, 3));
  EXPECT(close(big << 7, 0, 0, 0x1p60) && !close((big << 7) + 1, 0, 0, 0x1p60));
  EXPECT(close(110, 100, 0.1, 0) && !close(111, 100, 0.1, 0) && close(-111, -100, 0.1, 1));
  /* Differences of 64 bits and more. */
  EXPECT(!close(least, most, 0, 1e19) && close(least, most, 0, 2e19));
  EXPECT(!close(least, most, 0, 18446744073709549568.0)); /* the double below 2^64 - 1 */
  EXPECT(close(least, most, 0, 18446744073709551616.0));
  EXPECT(!close(least, unsigned_most, 0, 2.7e19) && close(least, unsigned_most, 0, 2.8e19));
  EXPECT(close(unsigned_most, least, 3.01, 0) && !close(unsigned_most, least, 2.99, 0));
  EXPECT(!close(3, 4, 0, -1) && !close(3, 4, NAN, 0) && close(3, 3, NAN, 0) && close(3, 4, 0, HUGE_VAL));
  /* With a float on one side both are doubles. */
  EXPECT(close(static_cast<double>(big), big + 1, 0, 0) && close(3, 3.0, 0, 0) && !close(3, 3.5f, 0, 0.25));
  const int64_t a[] = {1, big + 1, least}, b[] = {1, big, most};
  gk_mismatch where;
  EXPECT(!gk_allclose(a, b, 3, 0, 0, &where));
  EXPECT_EQ(where.mismatches, size_t(2));
  EXPECT_EQ(where.first_index, size_t(1));
  EXPECT_EQ(where.worst_index, size_t(2));
  EXPECT_EQ(gk_error_detail(),
            std::string("gk_allclose: 2 of 3 differ: first [1]: 9007199254740993 against 9007199254740992, worst [2]: "
                        "-9223372036854775808 against 9223372036854775807"));
  const double x = 1, y = 1 + 0x1p-52;
  EXPECT(!gk_allclose(&x, &y, 1, 0, 0));
  EXPECT_HAS(gk_error_detail(), "1 against 1.0000000000000002"); /* enough digits for them to differ */
}
