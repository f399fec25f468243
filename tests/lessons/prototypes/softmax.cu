/* The softmax of every row of a matrix: the maxima of the rows, so that no exponential overflows, the sums of their
 * exponentials, and the quotients. Compared with a loop on the host. softmax_plain.cu is the same program without
 * gpukit. */
#define GPUKIT_IMPLEMENTATION
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>
#include "gpukit.cuh"

int main() {
  const size_t rows = 77, cols = 1001, n = rows * cols;
  gk_array<float> x(n), y(n), maxima(rows), sums(rows);
  GK_CHECK(gk_random_uniform(x, n, 1));
  GK_CHECK(gk_reduce_rows(x, maxima, rows, cols, 0, gk_op_max()));
  const float *from = x, *most = maxima, *sum = sums;
  const auto exponential = [=] __device__(size_t i) { return expf(from[i] - most[i / cols]); };
  const auto quotient = [=] __device__(size_t i) { return exponential(i) / sum[i / cols]; };
  GK_CHECK(gk_reduce_rows(gk_computed<float>(exponential), sums, rows, cols, 0, gk_op_sum()));
  GK_CHECK(gk_copy(gk_computed<float>(quotient), y, n));

  std::vector<float> host(n);
  std::vector<double> expected(n);
  x.copy_to(host);
  for (size_t row = 0; row < rows; row++) {
    const float *in = &host[row * cols];
    const float top = *std::max_element(in, in + cols);
    double total = 0;
    for (size_t col = 0; col < cols; col++) total += exp(in[col] - top);
    for (size_t col = 0; col < cols; col++) expected[row * cols + col] = exp(in[col] - top) / total;
  }
  if (!gk_allclose(y, expected.data(), 1e-5, 0)) {
    fprintf(stderr, "%s\n", gk_error_detail());
    return 1;
  }
  printf("%zu rows of %zu numbers are right\n", rows, cols);
  return 0;
}
