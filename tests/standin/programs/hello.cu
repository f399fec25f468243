// Every thread prints its coordinates.
#include <stdio.h>

__device__ int said[2 * 2 * 2 * 3];

__global__ void hello() {
  int block = blockIdx.y * gridDim.x + blockIdx.x;
  int thread = threadIdx.y * blockDim.x + threadIdx.x;
  printf("Hello from block (%d,%d) of (%d,%d), thread (%d,%d) of (%d,%d)\n", blockIdx.x, blockIdx.y, gridDim.x,
         gridDim.y, threadIdx.x, threadIdx.y, blockDim.x, blockDim.y);
  said[block * blockDim.x * blockDim.y + thread] += 1 + thread + 100 * block;
}

int main() {
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, 0);
  printf("%s: compute capability %d.%d, %d multiprocessors, warps of %d\n", prop.name, prop.major, prop.minor,
         prop.multiProcessorCount, prop.warpSize);
  hello<<<dim3(2, 2), dim3(2, 3)>>>();
  cudaError_t err = cudaDeviceSynchronize();
  int host[24], wrong = 0;
  cudaMemcpyFromSymbol(host, said, sizeof(host));
  for (int i = 0; i < 24; i++) wrong += host[i] != 1 + i % 6 + 100 * (i / 6);
  printf("%s: %s\n", cudaGetErrorString(err), wrong || err ? "FAILED" : "PASSED");
  return wrong || err;
}
