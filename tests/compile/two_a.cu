/* Two translation units of one program: this one holds the implementation, and both use the same template instances. */
#ifndef GPUKIT_STATIC
#define GPUKIT_IMPLEMENTATION
#endif
#include "gpukit.cuh"

#include <stdio.h>

int sum_in_b(const float *in, size_t n, float *sum);

int main() {
  const float in[] = {1, 2, 3, 4, 5};
  float here = 0, there = 0;
  if (gk_host_reduce(in, &here, 5, gk_op_sum()) != cudaSuccess || sum_in_b(in, 5, &there) != 0) {
    fprintf(stderr, "%s\n", gk_error_detail());
    return 1;
  }
  return here != 15.0f || there != 15.0f;
}
