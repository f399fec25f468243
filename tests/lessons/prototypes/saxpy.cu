/* y = a x + y for n floats: timed, and compared with a loop on the host. saxpy_plain.cu is the same program without
 * gpukit. */
#define GPUKIT_IMPLEMENTATION
#include <cstdio>
#include <vector>
#include "gpukit.cuh"

__global__ void saxpy(size_t n, float a, const float *x, float *y) {
  GK_FOR_1D (i, n) y[i] += a * x[i];
}

int main() {
  const size_t n = 100003;
  const float a = 2;
  gk_array<float> x(n), y(n);
  GK_CHECK(gk_iota(x, n, 0.0f, 1.0f));
  GK_CHECK(gk_fill(y, n, 1.0f));
  GK_TIME ("saxpy", 0, 12.0 * n) GK_LAUNCH(saxpy, gk_grid_1d(n, 256), 256, 0, 0, n, a, x, y);

  std::vector<float> expected(n);
  for (size_t i = 0; i < n; i++) expected[i] = 1 + a * (float)i;
  if (!gk_allclose(y, expected.data(), 0, 0)) {
    fprintf(stderr, "%s\n", gk_error_detail());
    return 1;
  }
  printf("%zu elements are right, the last is %g\n", n, y.get(n - 1));
  return 0;
}
