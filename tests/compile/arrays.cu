/* A gk_array is the same type in files of a program that are compiled for different GPUs: one file passes it to another. */
#include "gpukit.cuh"

float first_of_sevens(gk_array<float> &x);

#ifdef MAIN
int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 0;
  gk_array<float> x(3);
  x.clear();
  return first_of_sevens(x) == 7 && gk_allclose(x, x, 0, 0) ? 0 : 1;
}
#else
float first_of_sevens(gk_array<float> &x) {
  x.set(0, 7);
  return x.get(0);
}
#endif
