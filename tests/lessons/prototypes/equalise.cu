/* Histogram equalisation of a dull grey picture: its histogram by atomics in shared memory, the running sum of that,
 * and each pixel replaced by where it stands in that sum. Compared with loops on the host. equalise_plain.cu is the
 * same program without gpukit. */
#define GPUKIT_IMPLEMENTATION
#include <cmath>
#include <cstdio>
#include <vector>
#include "gpukit.cuh"

typedef unsigned char Pixel;

__global__ void histogram(const Pixel *picture, size_t n, unsigned *counts) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  GK_FOR_1D (i, n) atomicAdd(&own[picture[i]], 1);
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

static void print(const char *what, const gk_array<Pixel> &picture) {
  Pixel least, most;
  GK_CHECK(gk_reduce_value(picture, &least, picture.size(), gk_op_min()));
  GK_CHECK(gk_reduce_value(picture, &most, picture.size(), gk_op_max()));
  printf("%s: from %d to %d\n", what, least, most);
}

int main() {
  const int width = 333, height = 251, n = width * height;
  std::vector<Pixel> host(n), expected(n);
  for (int i = 0; i < n; i++) host[i] = (Pixel)(100 + 20 * sin(0.05 * (i % width)) + 20 * cos(0.03 * (i / width)));

  gk_array<Pixel> picture(host), result(n);
  gk_array<unsigned> counts(256), sums(256);
  counts.clear();
  GK_LAUNCH(histogram, 20, 256, 0, 0, picture, n, counts);
  GK_CHECK(gk_scan_inclusive_sum(counts, sums, 256));
  const Pixel *pixels = picture;
  const unsigned *upto = sums;
  const auto equalised = [=] __device__(size_t i) { return (Pixel)(255 * upto[pixels[i]] / n); };
  GK_CHECK(gk_copy(gk_computed<Pixel>(equalised), result, n));
  print("before", picture);
  print("after", result);

  unsigned sum[256] = {};
  for (Pixel pixel : host) sum[pixel]++;
  for (int value = 1; value < 256; value++) sum[value] += sum[value - 1];
  for (int i = 0; i < n; i++) expected[i] = (Pixel)(255 * sum[host[i]] / n);
  if (!gk_allclose(result, expected.data(), 0, 0)) {
    fprintf(stderr, "%s\n", gk_error_detail());
    return 1;
  }
  return 0;
}
