// Kernels as void pointers, in launches whose arguments are an array of pointers; and one with a reference.
#include <cooperative_groups.h>
#include <stdio.h>

template <class T> __global__ void add(T *p, T what) { p[threadIdx.x] += what; }

__global__ void twice(int *p, int n) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const unsigned i = (unsigned)grid.thread_rank();
  const int other = p[n - 1 - i];
  grid.sync();
  p[i] = other;
}

__global__ void count(int &counter) { atomicAdd(&counter, 1); }

static cudaError_t launch(const void *kernel, int threads, void **arguments) {
  return cudaLaunchKernel(kernel, dim3(1), dim3(threads), arguments, 0, 0);
}

int main() {
  enum { n = 64 };
  int *p, size = n, three = 3;
  cudaMallocManaged(&p, (n + 1) * sizeof *p);
  for (int i = 0; i <= n; i++) p[i] = i;
  void *arguments[] = {(void *)&p, &three}, *with_size[] = {&p, &size};
  void *kernels[] = {(void *)add<int>, (void *)&add<int>};
  cudaError_t e = launch(kernels[0], n, arguments);
  if (!e) e = launch(kernels[1], n, arguments);
  if (!e) e = cudaLaunchCooperativeKernel((void *)twice, dim3(2), dim3(n / 2), with_size);
  count<<<2, 50>>>(p[n]);
  if (!e) e = cudaDeviceSynchronize();
  bool right = !e && p[n] == n + 100;
  for (int i = 0; i < n; i++) right = right && p[i] == n - 1 - i + 6;
  cudaFree(p);
  puts(right ? "ok" : cudaGetErrorString(e));
  return !right;
}
