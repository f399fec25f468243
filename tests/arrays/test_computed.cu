/* Computed inputs of reduce and scan: the same bits as an array of the same elements, and gk_dot. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "loops.h"

/* Reads two arrays that begin anywhere. */
template <class T> struct difference {
  const T *x, *y;
  __device__ T operator()(size_t i) const { return static_cast<T>(x[i] - y[i]); }
};
/* No memory at all. */
struct index_modulo {
  unsigned divisor;
  __device__ unsigned operator()(size_t i) const { return static_cast<unsigned>(i % divisor); }
};

static const size_t sizes[] = {0, 1, 31, 1023, 1024, 4096, 4097, 12289, 300007};

template <class T> static bool equal(const T &x, const T &y) { return !memcmp(&x, &y, sizeof(T)); }
template <class T> static bool equal(const gk_arg<T> &x, const gk_arg<T> &y) {
  return x.index == y.index && equal(x.value, y.value);
}
template <class T, class O, class Operator>
static void check_reduce(Operator operation, const char *name, const gk_scratch *scratch) {
  for (size_t n : sizes) {
    const gk_array<T> x(random_elements<T>(50, n));
    gk_array<O> out(2);
    EXPECT_OK(gk_reduce(x, out, n, operation, 0, scratch));
    EXPECT_OK(gk_reduce(gk_computed<T>(element_of<T>{x.data()}), out.data() + 1, n, operation, 0, scratch));
    const O expected = out.get(0), got = out.get(1);
    if (!equal(expected, got)) test_fail(__FILE__, __LINE__, std::string(name) + ", n = " + std::to_string(n));
  }
}
TEST(reductions_have_the_bits_of_arrays) {
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_scratch_create(&scratch, 0, 0));
  for (const gk_scratch *use : {static_cast<const gk_scratch *>(NULL), static_cast<const gk_scratch *>(&scratch)}) {
    check_reduce<float, float>(gk_op_sum(), "sum of floats", use);
    check_reduce<double, double>(gk_op_prod(), "product of doubles", use);
    check_reduce<__half, float>(gk_op_sum(), "sum of halves", use);
    check_reduce<__nv_bfloat16, __nv_bfloat16>(gk_op_max(), "maximum of bfloat16", use);
    check_reduce<signed char, long long>(gk_op_sum(), "sum of bytes", use);
    check_reduce<unsigned short, unsigned short>(gk_op_min(), "minimum of shorts", use);
    check_reduce<float, gk_arg<float>>(gk_op_argmax(), "argmax of floats", use);
    check_reduce<int, gk_arg<int>>(gk_op_argmin(), "argmin of ints", use);
  }
  EXPECT_OK(gk_scratch_destroy(&scratch));
}

/* A tile of doubles has 2048 elements, and there are 512 partitions. */
TEST(more_tiles_than_partitions) {
  const size_t n = 1100003;
  const gk_array<double> x(random_elements<double>(56, n));
  double expected = 0, got = 0;
  EXPECT_OK(gk_reduce_value(x, &expected, n, gk_op_sum()));
  EXPECT_OK(gk_reduce_value(gk_computed<double>(element_of<double>{x.data()}), &got, n, gk_op_sum()));
  EXPECT_EQ(got, expected);
}

template <class T, class Operator> static void check_scan(Operator operation, const char *name) {
  for (size_t n : sizes)
    for (size_t offset : {0u, 1u}) {
      const gk_array<T> x(random_elements<T>(51, n));
      gk_array<T> expected(n + 1), got(n + 1);
      const auto input = gk_computed<T>(element_of<T>{x.data()});
      for (int kind = 0; kind < 3; kind++) {
        T *const dest[] = {expected.data() + offset, got.data() + offset};
        expected.clear();
        got.clear();
        if (kind == 0) {
          EXPECT_OK(gk_scan_inclusive(x, dest[0], n, operation));
          EXPECT_OK(gk_scan_inclusive(input, dest[1], n, operation));
        } else if (kind == 1) {
          EXPECT_OK(gk_scan_exclusive(x, dest[0], n, operation));
          EXPECT_OK(gk_scan_exclusive(input, dest[1], n, operation));
        } else {
          EXPECT_OK(gk_scan_exclusive_init(x, dest[0], n, operation, 3));
          EXPECT_OK(gk_scan_exclusive_init(input, dest[1], n, operation, 3));
        }
        std::vector<T> all_expected(n + 1), all_got(n + 1);
        expected.copy_to(all_expected);
        got.copy_to(all_got);
        EXPECT_SAME(all_got, all_expected, "%s, n = %zu, offset %zu, kind %d", name, n, offset, kind);
      }
    }
}
TEST(scans_have_the_bits_of_arrays) {
  check_scan<float>(gk_op_sum(), "sum of floats");
  check_scan<double>(gk_op_max(), "maximum of doubles");
  check_scan<__half>(gk_op_sum(), "sum of halves");
  check_scan<unsigned char>(gk_op_sum(), "sum of bytes");
  check_scan<int>(gk_op_min(), "minimum of ints");
}

TEST(what_no_array_has) {
  const size_t n = 100000;
  std::vector<float> host_x(n + 3), host_y(n + 3);
  double largest = 0;
  for (size_t i = 0; i < n + 3; i++) {
    host_x[i] = static_cast<float>(uniform(52, i, -50, 50));
    host_y[i] = static_cast<float>(uniform(53, i, -50, 50));
  }
  for (size_t i = 0; i < n; i++) largest = std::max(largest, static_cast<double>(host_x[i + 1] - host_y[i + 3]));
  const gk_array<float> x(host_x), y(host_y);
  float most = 0;
  const difference<float> subtract = {x.data() + 1, y.data() + 3};
  EXPECT_OK(gk_reduce_value(gk_computed<float>(subtract), &most, n, gk_op_max()));
  EXPECT_EQ(static_cast<double>(most), largest);
  unsigned long long sum = 0;
  const size_t many = 1000003;
  EXPECT_OK(gk_reduce_value(gk_computed<unsigned>(index_modulo{7}), &sum, many, gk_op_sum()));
  unsigned long long expected = 0;
  for (size_t i = 0; i < many; i++) expected += i % 7;
  EXPECT_EQ(sum, expected);
  gk_array<unsigned> counts(many);
  EXPECT_OK(gk_scan_inclusive(gk_computed<unsigned>(index_modulo{2}), counts, many, gk_op_sum()));
  EXPECT_EQ(counts.get(many - 1), static_cast<unsigned>(many / 2));
  EXPECT_EQ(counts.get(12345), 6173u);
}

template <class T, class O> static void check_dot(O tolerance) {
  for (size_t n : sizes) {
    std::vector<T> host_x(n), host_y(n);
    double expected = 0, magnitude = 0;
    for (size_t i = 0; i < n; i++) {
      host_x[i] = rounding<T>(54, i), host_y[i] = rounding<T>(55, i);
      const double product = static_cast<double>(plain(host_x[i])) * static_cast<double>(plain(host_y[i]));
      expected += product;
      magnitude += fabs(product);
    }
    const gk_array<T> x(host_x), y(host_y);
    gk_array<O> out(1);
    EXPECT_OK(gk_dot(x, y, out, n));
    EXPECT(fabs(static_cast<double>(out.get(0)) - expected) <= static_cast<double>(tolerance) * magnitude);
  }
}
TEST(dot_products) {
  check_dot<float, float>(2e-6f);
  check_dot<double, double>(1e-14);
  check_dot<__half, float>(2e-6f);
  check_dot<__nv_bfloat16, float>(2e-6f);
  check_dot<int, int>(0);
  const gk_array<signed char> bytes(std::vector<signed char>(1000, -100));
  gk_array<long long> wide(1);
  EXPECT_OK(gk_dot(bytes, bytes, wide, 1000));
  EXPECT_EQ(wide.get(0), 10000000LL);
  const gk_array<unsigned short> words(std::vector<unsigned short>(1000, 65535)); /* whose products no int holds */
  gk_array<unsigned long long> sum(1);
  EXPECT_OK(gk_dot(words, words, sum, 1000));
  EXPECT_EQ(sum.get(0), 1000ull * 65535 * 65535);
  const gk_array<float> x(std::vector<float>(10, 2.0f));
  gk_array<float> out(1);
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_dot: y is NULL", gk_dot(x, static_cast<const float *>(NULL), out, 10));
  EXPECT_ERROR(cudaErrorInvalidValue, "output is NULL", gk_dot(x, x, static_cast<float *>(NULL), 10));
}
