// Unified memory: cudaMallocManaged, a managed variable, and a loop over the grid's stride.
#include <cstdio>
#include <iostream>

__managed__ int launches = 0;

__global__ void add(int n, float *x, float *y) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = index; i < n; i += stride) y[i] = x[i] + y[i];
  if (index == 0) launches++;
}

int main() {
  int N = 1 << 18;
  float *x, *y;
  cudaMallocManaged(&x, N * sizeof(float));
  cudaMallocManaged(&y, N * sizeof(float));
  for (int i = 0; i < N; i++) {
    x[i] = 1.0f;
    y[i] = 2.0f;
  }

  int blockSize = 256;
  int numBlocks = (N + blockSize - 1) / blockSize;
  add<<<numBlocks, blockSize>>>(N, x, y);
  add<<<1, 1>>>(N, x, y);
  cudaDeviceSynchronize();

  float maxError = 0.0f;
  for (int i = 0; i < N; i++) maxError = fmax(maxError, fabs(y[i] - 4.0f));
  std::cout << "Max error: " << maxError << ", launches: " << launches << std::endl;
  bool ok = maxError == 0 && launches == 2;
  launches = 40;
  add<<<1, 32>>>(N, x, y);
  cudaDeviceSynchronize();
  ok = ok && launches == 41 && y[N - 1] == 5;
  cudaFree(x);
  cudaFree(y);
  puts(ok ? "PASSED" : "FAILED");
  return !ok;
}
