/* Recorded bits: reduce, scan and matmul of data that every machine makes alike. Each GPU, the CPU stand-in and every run
 * must come to exactly these. A change of the order of arithmetic changes them, and is then to be a decision: the test
 * prints the new lines to put here. */
#include "once.h"

#include "data.h"

template <class T> static uint64_t bits_of(const T &x) {
  uint64_t bits = 0;
  memcpy(&bits, &x, sizeof(T));
  return bits;
}

/* A failure shows the line as it would have to be. */
static void expect_bits(int line, const std::string &given, uint64_t recorded, uint64_t actual) {
  if (recorded != actual)
    test_fail(__FILE__, line, "now " + given + sentence(", 0x%llx", static_cast<unsigned long long>(actual)));
}
static void expect_bits(int line, const std::string &given, uint64_t recorded_last, uint64_t last,
                        uint64_t recorded_all, uint64_t all) {
  if (recorded_last != last || recorded_all != all)
    test_fail(
        __FILE__, line,
        "now " + given +
            sentence(", 0x%llx, 0x%llx", static_cast<unsigned long long>(last), static_cast<unsigned long long>(all)));
}

/* --- reduce ---------------------------------------------------------------------------------------------------------*/

template <class T, class O, class Op> static uint64_t reduced(size_t n, Op op) {
  std::vector<T> host = random_elements<T>(21, n);
  if (std::is_same<Op, gk_op_prod>::value)
    for (T &x : host) x = make<T>(1 + static_cast<double>(plain(x)) / 4096); /* near 1: the product stays finite */
  device_array<T> in(host);
  device_array<O> out(1);
  EXPECT_OK(gk_reduce(in.ptr, out.ptr, n, op));
  return bits_of(out.first());
}
/* Under a tool that slows kernels: whether as many elements take too long. */
static bool too_many(size_t n) { return test_slowed() && n > 100000; }

#define REDUCE(T, O, op, n, bits)                                                                                      \
  if (!too_many(n)) expect_bits(__LINE__, #T ", " #O ", " #op ", " #n, bits, reduced<T, O>(n, op()))

TEST(bits_of_reductions) {
  REDUCE(float, float, gk_op_sum, 1000, 0x40f58d84);
  REDUCE(float, float, gk_op_sum, 12293, 0xc266d798);
  REDUCE(float, float, gk_op_sum, 1048576, 0x42b9d40c);
  REDUCE(float, float, gk_op_sum, 4206649, 0xc4b17faf);
  REDUCE(float, float, gk_op_prod, 50000, 0x3f7bbdad);
  REDUCE(double, double, gk_op_sum, 1000, 0x401eb1b14caa23d2);
  REDUCE(double, double, gk_op_sum, 1048577, 0x405739ddd11538fc);
  REDUCE(__half, float, gk_op_sum, 1000, 0x40f5b210);
  REDUCE(__half, float, gk_op_sum, 1048577, 0x42b9e131);
  REDUCE(__half, __half, gk_op_sum, 100000, 0x4f90);
  REDUCE(__nv_bfloat16, float, gk_op_sum, 100000, 0x41f317a8);
}

/* A functor may add bytes in a type that rounds: vectors of them are no integers to it, wherever the array begins. */
TEST(bits_of_sums_of_bytes_at_any_alignment) {
  const size_t n = 16383;
  std::vector<signed char> host(n + 2);
  uint64_t aligned = 0;
  for (size_t shift = 0; shift < 3; shift++) {
    for (size_t v = 255; v < 1024; v += 256) /* one vector of each thread that has them */
      for (size_t j = 0; j < 16 && v * 16 + j < n; j++) host[shift + v * 16 + j] = 127;
    const device_array<signed char> in(host);
    device_array<__half> out(1);
    EXPECT_OK(gk_reduce(in.ptr + shift, out.ptr, n, gk_sum<__half>()));
    if (shift == 0) aligned = bits_of(out.first());
    EXPECT_EQ(bits_of(out.first()), aligned);
    std::fill(host.begin(), host.end(), static_cast<signed char>(0));
  }
}

template <class T, class O> static uint64_t dotted(size_t n) {
  const device_array<T> x(random_elements<T>(21, n)), y(random_elements<T>(23, n));
  device_array<O> out(1);
  EXPECT_OK(gk_dot(x.ptr, y.ptr, out.ptr, n));
  return bits_of(out.first());
}
#define DOT(T, O, n, bits) expect_bits(__LINE__, #T ", " #O ", " #n, bits, dotted<T, O>(n))

TEST(bits_of_dot_products) {
  DOT(float, float, 1000, 0x411c0c2b);
  DOT(float, float, 12293, 0xc0e6abdf);
  DOT(double, double, 100003, 0xc02c3d3373933032);
  DOT(__half, float, 100003, 0xc162020e);
}

/* --- scan -----------------------------------------------------------------------------------------------------------*/

template <class T, class O> struct scanned {
  uint64_t last, all;
  scanned(size_t n, bool with_init) {
    device_array<T> in(random_elements<T>(22, n));
    device_array<O> out(n);
    if (with_init)
      EXPECT_OK(gk_scan_exclusive_init(in.ptr, out.ptr, n, gk_op_sum(), make<O>(0.375)));
    else
      EXPECT_OK(gk_scan_inclusive(in.ptr, out.ptr, n, gk_op_sum()));
    const std::vector<O> got = out.get();
    last = bits_of(got[n - 1]), all = hash_of(got);
  }
};
#define SCAN(T, O, init, n, bits_of_last, hash_of_all)                                                                 \
  if (!too_many(n)) {                                                                                                  \
    const scanned<T, O> now(n, init);                                                                                  \
    expect_bits(__LINE__, #T ", " #O ", " #init ", " #n, bits_of_last, now.last, hash_of_all, now.all);                \
  }

TEST(bits_of_scans) {
  SCAN(float, float, false, 1000, 0xc0c41c50, 0x2dd3ea30c005ef50);
  SCAN(float, float, false, 18433, 0xc094eb80, 0x38870c0d00ac1132);
  SCAN(float, float, true, 304129, 0xc35c7a6e, 0x79fe1794cb00532);
  SCAN(float, float, false, 1048575, 0xc35bcdca, 0x1eeb4a9217bb374d);
  SCAN(float, float, false, 2200000, 0xc3e3608f, 0x7b46442474d3487e);
  SCAN(double, double, false, 500000, 0xc069872220bdb3e9, 0xc24d22c341721426);
  SCAN(__half, __half, false, 100000, 0xd0c0, 0x55bec13eec5bceac);
  SCAN(float, double, true, 100000, 0xc042ee8a92800000, 0x824e0f0334794630);
}

/* --- matmul ---------------------------------------------------------------------------------------------------------*/

template <class T, class O> static uint64_t multiplied(size_t m, size_t n, size_t k, double alpha, double beta) {
  device_array<T> a(random_elements<T>(23, m * k)), b(random_elements<T>(24, k * n));
  device_array<O> c(random_elements<O>(25, m * n));
  gk_matmul_opts opts = gk_matmul_opts();
  opts.alpha = &alpha, opts.beta = &beta, opts.precision = GK_PRECISION_STRICT;
  EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, m, n, k, &opts));
  return hash_of(c.get());
}
#define MATMUL(T, O, m, n, k, alpha, beta, hash)                                                                       \
  if (!too_many(m * n))                                                                                                \
  expect_bits(__LINE__, #T ", " #O ", " #m ", " #n ", " #k ", " #alpha ", " #beta, hash,                               \
              multiplied<T, O>(m, n, k, alpha, beta))

TEST(bits_of_products) {
  MATMUL(float, float, 1, 1, 5000, 1, 0, 0x429c940c32afed6e);
  MATMUL(float, float, 100, 70, 333, 1, 0, 0xf9ce6f55feb57719);
  MATMUL(float, float, 257, 129, 65, -0.3125, 1.7, 0x27c7bd083ffa9886);
  MATMUL(float, float, 512, 384, 200, 1, 0, 0xd2b7b8accb53a212);
  MATMUL(double, double, 100, 70, 333, 0.1, -0.7, 0x6a54ef8d80e9a6ea);
  MATMUL(double, double, 1100, 520, 70, 1, 0, 0xa0115e6989590e8e);
  MATMUL(__half, float, 100, 70, 333, 1, 0, 0xf4691af9561883b9);
  MATMUL(__nv_bfloat16, __nv_bfloat16, 100, 70, 333, 1, 0, 0xeefed0a45ebab857);
}
