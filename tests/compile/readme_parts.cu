/* What the parts of README that are no whole programs take for granted. readme.sh puts each of them, in braces, in the
 * place of the line PARTS. */
#define GPUKIT_IMPLEMENTATION
#include <cstdio>
#include <vector>
#include "gpukit.cuh"

__global__ void scale(float *x, size_t n) {
  GK_FOR_1D (i, n) x[i] *= 2;
}

int main() {
  const size_t n = 24, m = 8, k = 40;
  const dim3 grid = gk_grid_1d(n, 256);
  const cudaStream_t stream = 0;
  gk_array<float> x(n), sums(n), a(16 * m * k), b(16 * n * k), c(16 * m * n), biases(n);
  GK_CHECK(gk_fill(x, n, 1.0f));
  GK_CHECK(gk_fill(a, a.size(), 1.0f));
  GK_CHECK(gk_fill(b, b.size(), 0.5f));
  GK_CHECK(gk_iota(biases, n, 0.0f, 1.0f));
  const float *const bias = biases;

  /* clang-format off */
PARTS
  /* clang-format on */
  const std::vector<float> ones(n, 8.0f); // scaled three times
  const bool right = gk_allclose(x, ones.data(), 0, 0) && sums.get(n - 1) == 23 && c.get(m * n - 1) == 20 + 23;
  printf("%s\n", right ? "right" : gk_error_detail());
  return !right;
}
