/* The sum and the maximum of n floats, compared with a loop on the host. Each block reduces its elements in shared
 * memory, and the host the results of the blocks. Plain CUDA; sum_max.cu is the same program with gpukit. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    const cudaError_t status = call;                                                                                   \
    if (status != cudaSuccess) {                                                                                       \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));                                  \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

__global__ void reduce(const float *x, int n, float *sums, float *maxima) {
  __shared__ float sum[256], most[256];
  const int t = threadIdx.x;
  sum[t] = 0;
  most[t] = -INFINITY;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {
    sum[t] += x[i];
    most[t] = fmaxf(most[t], x[i]);
  }
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    __syncthreads();
    if (t < s) {
      sum[t] += sum[t + s];
      most[t] = fmaxf(most[t], most[t + s]);
    }
  }
  if (t == 0) {
    sums[blockIdx.x] = sum[0];
    maxima[blockIdx.x] = most[0];
  }
}

int main() {
  const int n = 100003, blocks = 60;
  std::vector<float> x(n), sums(blocks), maxima(blocks);
  for (int i = 0; i < n; i++) x[i] = (float)((long long)i * i % 2003 - 1000);

  float *device_x, *device_sums, *device_maxima;
  CHECK(cudaMalloc(&device_x, n * sizeof(float)));
  CHECK(cudaMalloc(&device_sums, blocks * sizeof(float)));
  CHECK(cudaMalloc(&device_maxima, blocks * sizeof(float)));
  CHECK(cudaMemcpy(device_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  reduce<<<blocks, 256>>>(device_x, n, device_sums, device_maxima);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums.data(), device_sums, blocks * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(maxima.data(), device_maxima, blocks * sizeof(float), cudaMemcpyDeviceToHost));
  float sum = 0, most = -INFINITY;
  for (int b = 0; b < blocks; b++) {
    sum += sums[b];
    most = std::max(most, maxima[b]);
  }
  printf("sum %g, maximum %g of %d\n", sum, most, n);

  float expected_sum = 0, expected_most = -INFINITY;
  for (int i = 0; i < n; i++) {
    expected_sum += x[i];
    expected_most = std::max(expected_most, x[i]);
  }
  if (sum != expected_sum || most != expected_most) {
    fprintf(stderr, "wrong: the host has %g and %g\n", expected_sum, expected_most);
    return 1;
  }
  CHECK(cudaFree(device_x));
  CHECK(cudaFree(device_sums));
  CHECK(cudaFree(device_maxima));
  return 0;
}
