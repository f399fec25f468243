/* Copies, fills, random numbers and prints of device arrays. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include <algorithm>
#include "child.h"
#include "data.h"
#include "hooks.h"

template <class T> static std::vector<T> on_host(const gk_array<T> &x) {
  std::vector<T> host(x.size());
  x.copy_to(host);
  return host;
}

struct square {
  const float *x;
  __device__ float operator()(size_t i) const { return x[i] * x[i]; }
};
TEST(copies) {
  for (size_t n : {0u, 1u, 255u, 256u, 257u, 100003u}) {
    std::vector<float> host(n), squares(n);
    std::vector<double> wide(n);
    for (size_t i = 0; i < n; i++)
      host[i] = static_cast<float>(uniform(60, i, -99, 99)), squares[i] = host[i] * host[i], wide[i] = host[i];
    const gk_array<float> x(host);
    gk_array<float> y(n), z(n);
    gk_array<double> w(n);
    gk_array<__half> h(n);
    EXPECT_OK(gk_copy(x, y, n));
    EXPECT_SAME(on_host(y), host, "copy of %zu", n);
    EXPECT_OK(gk_copy(x, w, n));
    EXPECT_SAME(on_host(w), wide, "conversion of %zu", n);
    EXPECT_OK(gk_copy(w, h, n));
    EXPECT_OK(gk_copy(h, y, n));
    EXPECT_SAME(on_host(y), host, "through half, %zu", n);
    EXPECT_OK(gk_copy(gk_computed<float>(square{x.data()}), z, n));
    EXPECT_SAME(on_host(z), squares, "squares of %zu", n);
  }
  gk_array<float> x(10);
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_copy: output is NULL", gk_copy(x, static_cast<float *>(NULL), 10));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_copy: input is NULL", gk_copy(static_cast<float *>(NULL), x, 10));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_copy: output is input, but its elements have 8 bytes, and those of input 4",
               gk_copy(static_cast<float *>(x), reinterpret_cast<double *>(static_cast<float *>(x)), 2));
  EXPECT_OK(gk_copy(static_cast<float *>(x), reinterpret_cast<int *>(static_cast<float *>(x)), 2));
  const gk_array<double> above_tie(std::vector<double>{1 + 0x1p-11 + 0x1p-40}); /* which a float does not hold */
  gk_array<__half> rounded_twice(1);
  EXPECT_OK(gk_copy(above_tie, rounded_twice, 1));
  EXPECT_EQ(plain(rounded_twice.get(0)), 1.0f);
}
TEST(fills_and_progressions) {
  gk_array<float> x(1000);
  gk_array<__half> h(10);
  gk_array<int> k(1000);
  gk_array<unsigned char> bytes(300);
  EXPECT_OK(gk_fill(x, 1000, 2.5));
  EXPECT_SAME(on_host(x), std::vector<float>(1000, 2.5f), "fill");
  EXPECT_OK(gk_fill(x, 1000, -0.0f));
  EXPECT_SAME(on_host(x), std::vector<float>(1000, -0.0f), "fill by -0");
  EXPECT_OK(gk_fill(h, 10, 0.5));
  EXPECT_SAME(on_host(h), std::vector<__half>(10, make<__half>(0.5)), "halves");
  gk_array<gk_arg<float>> args(3);
  EXPECT_OK(gk_fill(args, 3, gk_arg<float>{1.5f, 7}));
  EXPECT_SAME(args.get(2), (gk_arg<float>{1.5f, 7}), "structs");
  EXPECT_OK(gk_iota(k, 1000, -5, 3));
  std::vector<int> expected(1000);
  for (int i = 0; i < 1000; i++) expected[static_cast<size_t>(i)] = 3 * i - 5;
  EXPECT_SAME(on_host(k), expected, "progression");
  std::vector<float> tenths(1000);
  for (size_t i = 0; i < 1000; i++) { /* in double, where a product and a sum of floats are rounded once, by the cast */
    const float product = static_cast<float>(static_cast<double>(i) * static_cast<double>(0.1f));
    tenths[i] = static_cast<float>(static_cast<double>(product) + 1);
  }
  EXPECT_OK(gk_iota(x, 1000, 1.0f, 0.1f));
  EXPECT_SAME(on_host(x), tenths, "a progression that rounds");
  EXPECT_OK(gk_iota(h, 10, 1, 0.1f));
  for (size_t i = 0; i < 10; i++)
    EXPECT_SAME(h.get(i), make<__half>(static_cast<double>(tenths[i])), "half %zu of a progression", i);
  EXPECT_OK(gk_iota(bytes, 300, 0, 1));
  EXPECT_EQ(static_cast<int>(bytes.get(299)), 299 - 256); /* integers wrap */
}

/* The known answer of Philox 4x32-10 for a counter and a key of zeros, by its authors: the first two words. And one where
 * both halves of counter and key count, by a program of our own. */
TEST(philox_as_its_authors_have_it) {
  EXPECT_EQ(hook_philox(0, 0), uint64_t(0xe169c58d6627e8d5));
  EXPECT_EQ(hook_philox((uint64_t(1) << 32) + 5, (uint64_t(1) << 40) + 7), uint64_t(0x5fef92f6ee3cd07d));
}

static double probability_below(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }
/* The largest distance between the distribution of the numbers and the wanted one at 2^16 - 1 quantiles, times the square
 * root of their count: above 1.95 with a probability of one in a thousand at most (Kolmogorov and Smirnov). */
template <class Distribution> static double distance_of(const std::vector<float> &x, Distribution wanted) {
  const double n = static_cast<double>(x.size()), bins = 65536;
  std::vector<size_t> counts(65536);
  for (float value : x)
    counts[std::min(size_t{65535}, static_cast<size_t>(wanted(static_cast<double>(value)) * bins))]++;
  double below = 0, most = 0;
  for (size_t i = 0; i + 1 < counts.size(); i++) {
    below += static_cast<double>(counts[i]) / n;
    most = std::max(most, fabs(below - static_cast<double>(i + 1) / bins));
  }
  return most * sqrt(n);
}
TEST(random_numbers_are_distributed_as_they_should_be) {
  const size_t n = test_slowed() ? 100000 : 10000000;
  gk_array<float> x(n);
  for (uint64_t seed : {uint64_t(1), uint64_t(1) << 40}) {
    double moment[4] = {0, 0, 0, 0}, sum = 0, squares = 0;
    EXPECT_OK(gk_random_normal(x, n, seed));
    const std::vector<float> normal = on_host(x);
    for (float value : normal) {
      double power = 1 / static_cast<double>(n);
      for (int k = 0; k < 4; k++) moment[k] += power *= static_cast<double>(value);
    }
    const double error =
        1 / sqrt(static_cast<double>(n)); /* standard deviations of the moments: 1, 1.4, 3.9, 9.8 of it */
    EXPECT(fabs(moment[0]) < 4 * error && fabs(moment[1] - 1) < 6 * error);
    EXPECT(fabs(moment[2]) < 16 * error && fabs(moment[3] - 3) < 40 * error);
    EXPECT(distance_of(normal, probability_below) < 1.95);
    EXPECT_OK(gk_random_uniform(x, n, seed));
    const std::vector<float> even = on_host(x);
    for (float value : even)
      sum += static_cast<double>(value), squares += static_cast<double>(value) * static_cast<double>(value);
    EXPECT(fabs(sum / static_cast<double>(n) - 0.5) < 1.2 * error);
    EXPECT(fabs(squares / static_cast<double>(n) - 1.0 / 3) < 1.2 * error);
    EXPECT(distance_of(even, [](double v) { return v; }) < 1.95);
    EXPECT(*std::min_element(even.begin(), even.end()) >= 0 && *std::max_element(even.begin(), even.end()) < 1);
  }
}
/* The inverse of the distribution, against the C library's error function, far into the tails. */
TEST(quantiles_are_exact) {
  for (double probability = 0.5; probability > 1e-16; probability *= 0.93) {
    const double x = -hook_normal_quantile(probability);
    EXPECT(fabs(probability_below(x) / probability - 1) < 1e-13 * (1 + x * x));
    EXPECT(fabs(hook_natural_log(probability) - log(probability)) <= 4e-16 * fabs(log(probability)) + 1e-16);
  }
}
template <class T> static uint64_t bits_of_random(bool normal, size_t n) {
  gk_array<T> x(n);
  EXPECT_OK(normal ? gk_random_normal(x, n, 42) : gk_random_uniform(x, n, 42));
  return hash_of(on_host(x));
}
#define SAME_BITS(T, normal, expected)                                                                                 \
  if (bits_of_random<T>(normal, 100003) != expected)                                                                   \
  test_fail(__FILE__, __LINE__,                                                                                        \
            sentence("now 0x%llx", static_cast<unsigned long long>(bits_of_random<T>(normal, 100003))))
TEST(random_numbers_have_the_same_bits) {
  SAME_BITS(float, false, 0x1016c612ae6d79bf);
  SAME_BITS(double, false, 0xd80f66d5a2f3a710);
  SAME_BITS(float, true, 0xaa2e70a5344be315);
  SAME_BITS(double, true, 0x1e420eeefa2972b9);
  SAME_BITS(__half, true, 0xc823f0aba082018c);
  gk_array<float> some(10), more(1000);
  EXPECT_OK(gk_random_normal(some, 10, 7));
  EXPECT_OK(gk_random_normal(more, 1000, 7));
  EXPECT_EQ(some.get(9), more.get(9)); /* whatever n */
  EXPECT_OK(gk_random_normal(more, 1000, 8));
  EXPECT(some.get(9) != more.get(9));
}
/* Numbers of half types are those of floats, rounded. */
template <class T> static void check_random_halves(const char *name) {
  const size_t n = 10007;
  gk_array<float> x(n);
  gk_array<T> h(n);
  for (bool normal : {false, true}) {
    EXPECT_OK(normal ? gk_random_normal(x, n, 9) : gk_random_uniform(x, n, 9));
    EXPECT_OK(normal ? gk_random_normal(h, n, 9) : gk_random_uniform(h, n, 9));
    std::vector<T> rounded;
    for (const float value : on_host(x)) rounded.push_back(make<T>(static_cast<double>(value)));
    EXPECT_SAME(on_host(h), rounded, "random %s, normal %d", name, normal);
  }
}
TEST(random_halves_are_rounded_floats) {
  check_random_halves<__half>("f16");
  check_random_halves<__nv_bfloat16>("bf16");
}

/* What a call prints, which has to succeed. */
template <class Call> static std::string printed(Call call) {
  cudaError_t status = cudaErrorUnknown;
  const std::string text = printed_by([&] { status = call(); });
  EXPECT_OK(status);
  return text;
}
TEST(prints) {
  std::vector<float> host(30 * 25);
  for (size_t i = 0; i < host.size(); i++) host[i] = static_cast<float>(i) / 4;
  const gk_array<float> x(host);
  const gk_array<long long> whole(std::vector<long long>{-7, 123456789012});
  EXPECT_EQ(printed([&] { return gk_print(whole, 2); }), std::string("          -7 123456789012\n"));
  EXPECT_EQ(printed([&] { return gk_print_matrix(x, 2, 3); }),
            std::string("           0        0.25         0.5\n        0.75           1        1.25\n"));
  EXPECT_EQ(printed([&] { return gk_print_matrix(x, 2, 2, 25); }),
            std::string("           0        0.25\n        6.25         6.5\n"));
  std::string large; /* of 30 x 25 the first and the last ten rows and columns */
  for (size_t row = 0; row < 30; row++) {
    if (row == 10) large += "         ...\n";
    if (row >= 10 && row < 20) continue;
    for (size_t col = 0; col < 25; col++) {
      if (col == 10) large += "  ...";
      if (col < 10 || col >= 15) large += sentence(" %11.5g", static_cast<double>(host[row * 25 + col]));
    }
    large += "\n";
  }
  EXPECT_EQ(printed([&] { return gk_print_matrix(x, 30, 25); }), large);
  EXPECT_EQ(printed([&] { return gk_print(x, 25); }), large.substr(0, large.find('\n') + 1));
  EXPECT(printed([&] { return gk_print(x, 20); }).find("...") == std::string::npos);
  const bool bools[] = {true, false};
  const gk_array<bool> flags(bools, 2);
  const gk_array<char> chars(std::vector<char>{'A', -1});
  const gk_array<__half> halves(std::vector<__half>{make<__half>(0.5), make<__half>(-2)});
  EXPECT_EQ(printed([&] { return gk_print(flags, 2); }), std::string("           1           0\n"));
  EXPECT_EQ(printed([&] { return gk_print(chars, 2); }),
            sentence(" %11d %11d\n", 'A', static_cast<int>(static_cast<char>(-1))));
  EXPECT_EQ(printed([&] { return gk_print(halves, 2); }), std::string("         0.5          -2\n"));
  EXPECT_EQ(printed([&] { return gk_print(x, 0); }), std::string());
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_print_matrix: the leading dimension is 2", gk_print_matrix(x, 2, 3, 2));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_print: input is NULL", gk_print(static_cast<float *>(NULL), 3));
  EXPECT_EQ(printed_by([&] {
              EXPECT_ERROR(cudaErrorInvalidValue,
                           "gk_print: n = 18446744073709551615 elements of 4 bytes are more than memory can address",
                           gk_print(x.data(), static_cast<size_t>(-1)));
              EXPECT_ERROR(cudaErrorInvalidValue, "gk_print_matrix: 2 rows of 4611686018427387904 elements are more",
                           gk_print_matrix(x.data(), 2, static_cast<size_t>(1) << 62));
            }),
            std::string());
}
TEST(printing_does_not_end_a_capture) {
  const gk_array<float> x(std::vector<float>(3));
  cudaStream_t stream;
  cudaGraph_t graph;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_ERROR(cudaErrorStreamCaptureUnsupported, "gk_print: the stream is being captured", gk_print(x, 3, stream));
  EXPECT_ERROR(cudaErrorStreamCaptureUnsupported, "gk_print_matrix: the stream is being captured",
               gk_print_matrix(x, 1, 3, 0, stream));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}
