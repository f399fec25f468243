// Kernels and their launches in files next to this one.
#include <stdio.h>
#include "parts/sizes.h"
#include "parts/kernels.cuh"
#include "parts/deeper.cuh"

int main() {
  int *p, wrong = 0;
  cudaMallocManaged(&p, items * sizeof(int));
  launch_iota(p);
  int line = line_of_launch(p);
  cudaDeviceSynchronize();
  for (int i = 0; i < items; i++) wrong += p[i] != 5 + items - 1 - i;
  bool ok = !wrong && line == 13 && __LINE__ == 14;
  cudaFree(p);
  printf("%d wrong: %s\n", wrong, ok ? "PASSED" : "FAILED");
  return !ok;
}
