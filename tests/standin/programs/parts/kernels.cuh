#pragma once
#include "sizes.h"
#include "deeper.cuh"

__global__ void reverse(int *p) {
  extern __shared__ int copy[];
  copy[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
}
inline int line_of_launch(int *p) {
  reverse<<<1, items, items * sizeof(int)>>>(p);
  return __LINE__;
}
