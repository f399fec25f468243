/* How far sums and prefix sums of floats are from the same in double: over random data no farther than log2(n) halves
 * of a unit in the last place of the sum of all magnitudes, whatever n; and over the worst data (all elements equal, so
 * that the roundings of a thread go the same way) as far as the chain of roundings lets them, which the manual tells. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "on_device.h"

static const size_t largest = size_t(1) << (on_cpu ? 22 : test_slowed() ? 18 : 30);

/* Around a mean that is a few, one or zero standard deviations off; or the same everywhere. */
enum data_kind { positive, shifted, centred, equal_ones };
static const char *const data_name[] = {"positive numbers", "N(0.5, 1)", "N(0, 1)", "equal numbers"};
__global__ static void fill_data(float *x, size_t n, data_kind kind) {
  GK_FOR_1D (i, n) {
    const float parts = static_cast<float>(scatter(1, i) >> 12) + static_cast<float>(scatter(2, i) >> 12) +
                        static_cast<float>(scatter(3, i) >> 12);
    const float gauss = (parts - 1.5f * 1048576) * (2.0f / 1048576);
    x[i] = kind == equal_ones ? 0.1f : kind == positive ? gauss + 4 : kind == shifted ? gauss + 0.5f : gauss;
  }
}
__global__ static void sum_in_double(const float *x, size_t n, double *sum, double *magnitudes) {
  double all = 0, size = 0;
  GK_FOR_1D (i, n) all += static_cast<double>(x[i]), size += fabs(static_cast<double>(x[i]));
  atomicAdd(sum, all);
  atomicAdd(magnitudes, size);
}
__global__ static void magnitudes_of(const float *x, float *size, size_t n) {
  GK_FOR_1D (i, n) size[i] = fabsf(x[i]);
}
/* The worst error of all prefixes, in sixteenths of half a unit in the last place of the magnitudes summed so far. */
__global__ static void compare_prefixes(const float *y, const double *exact, const double *sizes, size_t n,
                                        unsigned *worst) {
  unsigned mine = 0;
  GK_FOR_1D (i, n) {
    const double error = fabs(static_cast<double>(y[i]) - exact[i]) / sizes[i] * (16 << 24);
    const unsigned rounded = error < 4e9 ? static_cast<unsigned>(error) : 0xffffffffu;
    mine = mine < rounded ? rounded : mine;
  }
  atomicMax(worst, mine);
}

/* Roundings that an element can see one after the other: the manual's bounds. */
static double roundings_of_sum(size_t n) { return static_cast<double>(n) / (1 << 19) + 24; }
static double roundings_of_scan(size_t n) { return static_cast<double>(n) / (1 << 18) + 110; }

static void check(const char *what, data_kind kind, size_t n, double halves, double allowed) {
  printf("%s of %s, n = %zu: %.2f of %.1f\n", what, data_name[kind], n, halves, allowed);
  if (!(halves <= allowed))
    test_fail(__FILE__, __LINE__, sentence("%s of %s, n = %zu: %g, not %g", what, data_name[kind], n, halves, allowed));
}
static void need_bytes(size_t bytes) {
  if (!on_cpu && !test_slowed()) need_device_bytes(bytes);
}

TEST(sums_against_double) {
  need_bytes(2 * largest * sizeof(float));
  device_array<float> x(largest), sum(1);
  device_array<double> exact(2);
  for (data_kind kind : {positive, shifted, centred, equal_ones}) {
    GK_LAUNCH(fill_data, on_device::blocks(largest), on_device::threads, 0, 0, x.ptr, largest, kind);
    for (size_t n = 1024; n <= largest; n *= 4) {
      exact.set({0, 0});
      GK_LAUNCH(sum_in_double, on_device::blocks(n), on_device::threads, 0, 0, x.ptr, n, exact.ptr, exact.ptr + 1);
      EXPECT_OK(gk_reduce_sum(x.ptr, sum.ptr, n));
      const std::vector<double> right = exact.get();
      const double halves = fabs(static_cast<double>(sum.first()) - right[0]) / right[1] * (1 << 24);
      const double allowed = kind == equal_ones ? roundings_of_sum(n) : log2(static_cast<double>(n));
      check("sums", kind, n, halves, allowed);
    }
  }
}

TEST(prefixes_against_double) {
  const size_t most = largest / 4;
  need_bytes(most * 24 + (size_t(1) << 30));
  device_array<float> x(most), y(most);
  device_array<double> exact(most), sizes(most);
  device_array<unsigned> worst(1);
  for (data_kind kind : {positive, shifted, centred, equal_ones}) {
    GK_LAUNCH(fill_data, on_device::blocks(most), on_device::threads, 0, 0, x.ptr, most, kind);
    GK_LAUNCH(magnitudes_of, on_device::blocks(most), on_device::threads, 0, 0, x.ptr, y.ptr, most);
    EXPECT_OK(gk_scan_inclusive(y.ptr, sizes.ptr, most, gk_op_sum()));
    EXPECT_OK(gk_scan_inclusive(x.ptr, exact.ptr, most, gk_op_sum()));
    for (size_t n = 1024; n <= most; n *= 16) {
      worst.set({0});
      EXPECT_OK(gk_scan_inclusive(x.ptr, y.ptr, n, gk_op_sum()));
      GK_LAUNCH(compare_prefixes, on_device::blocks(n), on_device::threads, 0, 0, y.ptr, exact.ptr, sizes.ptr, n,
                worst.ptr);
      const double halves = worst.first() / 16.0;
      check("prefix sums", kind, n, halves, kind == equal_ones ? roundings_of_scan(n) : log2(static_cast<double>(n)));
    }
  }
}
