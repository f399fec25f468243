// Histograms by atomics, in global and in shared memory, and a counter of the device.
#include <stdio.h>
#include <string.h>
#include "local.h"

__device__ unsigned int seen;
__device__ int counts[BINS];

__global__ void histogram_global(const unsigned char *data, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&counts[data[i] % BINS], 1);
    atomicInc(&seen, 0xffffffffu);
  }
}

__global__ void __launch_bounds__(256) histogram_shared(const unsigned char *data, int n, int *out) {
  __shared__ int local[BINS];
  for (int b = threadIdx.x; b < BINS; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(local + data[i] % BINS, 1);
  __syncthreads();
  for (int b = threadIdx.x; b < BINS; b += blockDim.x)
    if (local[b]) atomicAdd(&out[b], local[b]);
}

int main() {
  static unsigned char text[20000];
  int expected[BINS] = {0}, got[BINS], shared[BINS];
  for (int i = 0; i < (int)sizeof(text); i++) expected[(text[i] = (unsigned char)(i * i % 251)) % BINS]++;

  unsigned char *d_text;
  int *d_out;
  cudaMalloc(&d_text, sizeof(text));
  cudaMalloc(&d_out, sizeof(shared));
  cudaMemcpy(d_text, text, sizeof(text), cudaMemcpyHostToDevice);
  cudaMemset(d_out, 0, sizeof(shared));
  histogram_global<<<8, 128>>>(d_text, sizeof(text));
  histogram_shared<<<8, 256>>>(d_text, sizeof(text), d_out);
  unsigned int total;
  cudaMemcpyFromSymbol(&total, seen, sizeof(total));
  cudaMemcpyFromSymbol(got, counts, sizeof(got));
  cudaMemcpy(shared, d_out, sizeof(shared), cudaMemcpyDeviceToHost);
  cudaFree(d_text);
  cudaFree(d_out);
  bool ok = total == sizeof(text) && !memcmp(got, expected, sizeof got) && !memcmp(shared, expected, sizeof shared);
  printf("%u characters: %s\n", total, ok ? "PASSED" : "FAILED");
  return !ok;
}
