/* C = A B + bias: one call, which adds the bias to each element before it stores it. Compared with a loop on the host.
 * matmul_bias_plain.cu is the same program without gpukit. */
#define GPUKIT_IMPLEMENTATION
#include <cstdio>
#include <vector>
#include "gpukit.cuh"

int main() {
  const size_t m = 77, n = 99, k = 101;
  gk_array<float> a(m * k), b(k * n), bias(n), c(m * n);
  GK_CHECK(gk_random_uniform(a, m * k, 1));
  GK_CHECK(gk_random_uniform(b, k * n, 2));
  GK_CHECK(gk_random_uniform(bias, n, 3));
  const float *biases = bias;
  const auto biased = [=] __device__(float value, size_t, size_t col) { return value + biases[col]; };
  GK_CHECK(gk_matmul_epilogue(a, b, c, m, n, k, biased));

  std::vector<float> host_a(m * k), host_b(k * n), host_bias(n);
  std::vector<double> expected(m * n);
  a.copy_to(host_a);
  b.copy_to(host_b);
  bias.copy_to(host_bias);
  for (size_t row = 0; row < m; row++) {
    for (size_t col = 0; col < n; col++) {
      double sum = host_bias[col];
      for (size_t i = 0; i < k; i++) sum += (double)host_a[row * k + i] * host_b[i * n + col];
      expected[row * n + col] = sum;
    }
  }
  if (!gk_allclose(c, expected.data(), 1e-5, 0)) {
    fprintf(stderr, "%s\n", gk_error_detail());
    return 1;
  }
  printf("%zu x %zu elements are right\n", m, n);
  return 0;
}
