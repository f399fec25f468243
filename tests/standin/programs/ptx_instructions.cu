// The inline PTX that courses show: special registers, and instructions of one result.
#include <stdio.h>

__global__ void lanes(unsigned *p) {
  __shared__ alignas(16) unsigned masks[64];
  unsigned lane, below, bytes, field, first;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  masks[threadIdx.x] = below;
  asm volatile("membar.gl;" ::: "memory");
  __syncthreads();
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(0x33221100u), "r"(0x77665544u), "r"(0x7531u));
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(field) : "r"(bytes), "r"(8), "r"(8));
  asm("bfind.u32 %0, %1;" : "=r"(first) : "r"(masks[threadIdx.x]));
  p[threadIdx.x] = lane << 16 | field << 8 | (first & 0xff);
}

int main() {
  unsigned *p;
  cudaMallocManaged(&p, 64 * sizeof *p);
  lanes<<<1, 64>>>(p);
  bool right = cudaDeviceSynchronize() == cudaSuccess;
  for (unsigned i = 0; i < 64; i++) right = right && p[i] == (i % 32 << 16 | 0x33u << 8 | ((i % 32 - 1) & 0xff));
  printf("%s: %#x %#x\n", right ? "ok" : "wrong", p[0], p[63]);
  cudaFree(p);
  return !right;
}
