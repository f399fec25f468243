/* The softmax of every row of a matrix: one block for each row, which reduces in shared memory, first the maximum, so
 * that no exponential overflows, then the sum. Compared with a loop on the host. Plain CUDA; softmax.cu is the same
 * program with gpukit. */
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

__device__ float block_max(float value) {
  __shared__ float most[256];
  const int t = threadIdx.x;
  most[t] = value;
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    __syncthreads();
    if (t < s) most[t] = fmaxf(most[t], most[t + s]);
  }
  __syncthreads();
  return most[0];
}

__device__ float block_sum(float value) {
  __shared__ float sum[256];
  const int t = threadIdx.x;
  sum[t] = value;
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    __syncthreads();
    if (t < s) sum[t] += sum[t + s];
  }
  __syncthreads();
  return sum[0];
}

__global__ void softmax(const float *x, float *y, int cols) {
  const float *row = x + (size_t)blockIdx.x * cols;
  float most = -INFINITY, sum = 0;
  for (int col = threadIdx.x; col < cols; col += blockDim.x) most = fmaxf(most, row[col]);
  most = block_max(most);
  for (int col = threadIdx.x; col < cols; col += blockDim.x) sum += expf(row[col] - most);
  sum = block_sum(sum);
  for (int col = threadIdx.x; col < cols; col += blockDim.x) {
    y[(size_t)blockIdx.x * cols + col] = expf(row[col] - most) / sum;
  }
}

int main() {
  const int rows = 77, cols = 1001, n = rows * cols;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; i++) x[i] = (float)rand() / (float)RAND_MAX;

  float *device_x, *device_y;
  CHECK(cudaMalloc(&device_x, n * sizeof(float)));
  CHECK(cudaMalloc(&device_y, n * sizeof(float)));
  CHECK(cudaMemcpy(device_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  softmax<<<rows, 256>>>(device_x, device_y, cols);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(y.data(), device_y, n * sizeof(float), cudaMemcpyDeviceToHost));

  for (int row = 0; row < rows; row++) {
    const float *from = &x[row * cols];
    const float most = *std::max_element(from, from + cols);
    double sum = 0;
    for (int col = 0; col < cols; col++) sum += exp(from[col] - most);
    for (int col = 0; col < cols; col++) {
      const double expected = exp(from[col] - most) / sum;
      if (!(fabs(y[row * cols + col] - expected) <= 1e-5 * expected)) {
        fprintf(stderr, "element (%d, %d) is wrong\n", row, col);
        return 1;
      }
    }
  }
  printf("%d rows of %d numbers are right\n", rows, cols);
  CHECK(cudaFree(device_x));
  CHECK(cudaFree(device_y));
  return 0;
}
