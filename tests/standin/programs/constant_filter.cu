// A filter whose weights are in constant memory.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define RADIUS 3
#define BLOCK 128

__constant__ float filter[2 * RADIUS + 1];
__constant__ int shift;
__device__ float scale = 1.0f;

__global__ void convolve(const float *in, float *out, int n) {
  __shared__ float tile[BLOCK + 2 * RADIUS];
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + RADIUS;
  tile[t] = i < n ? in[i] : 0;
  if (threadIdx.x < RADIUS) {
    int left = i - RADIUS, right = i + BLOCK;
    tile[t - RADIUS] = left >= 0 && left < n ? in[left] : 0;
    tile[t + BLOCK] = right < n ? in[right] : 0;
  }
  __syncthreads();
  if (i >= n) return;
  float sum = 0;
  for (int k = -RADIUS; k <= RADIUS; k++) sum += filter[k + RADIUS] * tile[t + k];
  out[i] = scale * sum + shift;
}

int main() {
  const int n = 5000;
  float weights[2 * RADIUS + 1] = {1, 2, 3, 4, 3, 2, 1}, two = 2;
  int seven = 7;
  cudaMemcpyToSymbol(filter, weights, sizeof(weights));
  cudaMemcpyToSymbol(shift, &seven, sizeof(int), 0, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(scale, &two, sizeof two);
  float *last;
  cudaGetSymbolAddress((void **)&last, filter);
  float half = 0.5f, back[2 * RADIUS + 1];
  cudaMemcpyToSymbol(filter, &half, sizeof(float), 2 * RADIUS * sizeof(float));
  cudaMemcpyFromSymbol(back, filter, sizeof(back));
  bool ok = back[0] == 1 && back[2 * RADIUS] == half && last != NULL;

  float *in = (float *)malloc(n * sizeof(float)), *out = (float *)malloc(n * sizeof(float)), *d_in, *d_out;
  for (int i = 0; i < n; i++) in[i] = (float)(i % 17);
  cudaMalloc(&d_in, n * sizeof(float));
  cudaMalloc(&d_out, n * sizeof(float));
  cudaMemcpy(d_in, in, n * sizeof(float), cudaMemcpyHostToDevice);
  convolve<<<(int)ceil(n / (double)BLOCK), BLOCK>>>(d_in, d_out, n);
  cudaMemcpy(out, d_out, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++) {
    float sum = 0;
    for (int k = -RADIUS; k <= RADIUS; k++) sum += i + k >= 0 && i + k < n ? back[k + RADIUS] * in[i + k] : 0;
    ok = ok && out[i] == 2 * sum + 7;
  }
  ok = ok && cudaMemcpyToSymbol(filter, weights, sizeof(weights), 4) == cudaErrorInvalidValue;
  printf("%s\n", ok ? "PASSED" : "FAILED");
  cudaFree(d_in), cudaFree(d_out), free(in), free(out);
  return ok ? 0 : 1;
}
