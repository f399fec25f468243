// One address space: copies that find out where memory is, and questions about pointers, kernels and occupancy.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

__global__ void square(int *p) { p[threadIdx.x] *= p[threadIdx.x]; }

#define REQUIRE(condition)                                                                                             \
  if (!(condition)) printf("line %d: %s\n", __LINE__, #condition), ok = false

int main() {
  bool ok = true;
  int count = 0, host[32], *device, *pinned, *managed;
  cudaGetDeviceCount(&count);
  REQUIRE(count >= 1 && cudaSetDevice(0) == cudaSuccess);
  cudaDeviceProp prop;
  REQUIRE(cudaGetDeviceProperties(&prop, 0) == cudaSuccess && prop.unifiedAddressing);
  for (int i = 0; i < 32; i++) host[i] = i;
  cudaMalloc(&device, sizeof(host));
  cudaMallocHost(&pinned, sizeof(host));
  cudaMallocManaged(&managed, sizeof(host));

  cudaMemcpy(device, host, sizeof(host), cudaMemcpyDefault);
  square<<<1, 32>>>(device);
  cudaMemcpy(managed, device, sizeof(host), cudaMemcpyDefault);
  square<<<1, 32>>>(managed);
  cudaMemcpy(pinned, managed, sizeof(host), cudaMemcpyDefault);
  square<<<1, 8>>>(pinned);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 32; i++) {
    int fourth = i * i * i * i;
    REQUIRE(managed[i] == fourth && pinned[i] == (i < 8 ? fourth * fourth : fourth));
  }

  cudaPointerAttributes a;
  REQUIRE(cudaPointerGetAttributes(&a, device + 3) == cudaSuccess && a.type == cudaMemoryTypeDevice && a.device == 0);
  REQUIRE(cudaPointerGetAttributes(&a, pinned) == cudaSuccess && a.type == cudaMemoryTypeHost);
  REQUIRE(cudaPointerGetAttributes(&a, managed) == cudaSuccess && a.type == cudaMemoryTypeManaged);

  int grid, block, blocks;
  REQUIRE(cudaOccupancyMaxPotentialBlockSize(&grid, &block, square, 0, 0) == cudaSuccess && block % 32 == 0);
  REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, square, 256, 0) == cudaSuccess && blocks > 0);
  cudaFuncAttributes f;
  REQUIRE(cudaFuncGetAttributes(&f, square) == cudaSuccess && f.maxThreadsPerBlock > 0);
  REQUIRE(cudaFuncSetCacheConfig(square, cudaFuncCachePreferL1) == cudaSuccess);
  size_t free_bytes, total_bytes;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess && free_bytes <= total_bytes);
  cudaFree(device);
  cudaFree(managed);
  cudaFreeHost(pinned);
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  printf("%s\n", ok ? "PASSED" : "FAILED");
  exit(ok ? EXIT_SUCCESS : EXIT_FAILURE);
}
