// The inline PTX that courses show: special registers.
#include <stdio.h>

__global__ void lanes(unsigned *p) {
  __shared__ alignas(16) unsigned masks[64];
  unsigned lane, before, after;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(before) : : "memory");
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(masks[threadIdx.x]));
  __syncthreads();
  asm volatile("mov.u32 %0, %%clock;" : "=r"(after));
  p[threadIdx.x] = lane << 16 | (unsigned)__popc(masks[threadIdx.x]) | (after - before) >> 31;
}

int main() {
  unsigned *p;
  cudaMallocManaged(&p, 64 * sizeof *p);
  lanes<<<1, 64>>>(p);
  bool right = cudaDeviceSynchronize() == cudaSuccess;
  for (unsigned i = 0; i < 64; i++) right = right && p[i] == (i % 32 << 16 | i % 32);
  printf("%s: %#x %#x\n", right ? "ok" : "wrong", p[0], p[63]);
  cudaFree(p);
  return !right;
}
