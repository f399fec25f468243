/* The sum and the maximum of n floats, compared with a loop on the host. sum_max_plain.cu is the same program without
 * gpukit. */
#define GPUKIT_IMPLEMENTATION
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>
#include "gpukit.cuh"

int main() {
  const int n = 100003;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = (float)((long long)i * i % 2003 - 1000);

  const gk_array<float> x(host);
  float sum, most;
  GK_CHECK(gk_reduce_value(x, &sum, n, gk_op_sum()));
  GK_CHECK(gk_reduce_value(x, &most, n, gk_op_max()));
  printf("sum %g, maximum %g of %d\n", sum, most, n);

  float expected_sum = 0, expected_most = -INFINITY;
  for (int i = 0; i < n; i++) {
    expected_sum += host[i];
    expected_most = std::max(expected_most, host[i]);
  }
  if (sum != expected_sum || most != expected_most) {
    fprintf(stderr, "wrong: the host has %g and %g\n", expected_sum, expected_most);
    return 1;
  }
  return 0;
}
