/* C = A B + bias: a tiled kernel with a thread for each element of C, then a kernel that adds the bias to every row.
 * Compared with a loop on the host. Plain CUDA; matmul_bias.cu is the same program with gpukit. */
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

#define TILE 16

__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  const int ty = threadIdx.y, tx = threadIdx.x, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  float sum = 0;
  for (int first = 0; first < k; first += TILE) {
    as[ty][tx] = row < m && first + tx < k ? a[row * k + first + tx] : 0;
    bs[ty][tx] = first + ty < k && col < n ? b[(first + ty) * n + col] : 0;
    __syncthreads();
    for (int i = 0; i < TILE; i++) sum += as[ty][i] * bs[i][tx];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

__global__ void add_bias(float *c, const float *bias, int m, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) c[row * n + col] += bias[col];
}

static std::vector<float> random_numbers(int n) {
  std::vector<float> numbers(n);
  for (float &number : numbers) number = (float)rand() / (float)RAND_MAX;
  return numbers;
}

int main() {
  const int m = 77, n = 99, k = 101;
  const std::vector<float> a = random_numbers(m * k), b = random_numbers(k * n), bias = random_numbers(n);
  std::vector<float> c(m * n);

  float *device_a, *device_b, *device_bias, *device_c;
  CHECK(cudaMalloc(&device_a, m * k * sizeof(float)));
  CHECK(cudaMalloc(&device_b, k * n * sizeof(float)));
  CHECK(cudaMalloc(&device_bias, n * sizeof(float)));
  CHECK(cudaMalloc(&device_c, m * n * sizeof(float)));
  CHECK(cudaMemcpy(device_a, a.data(), m * k * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), k * n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_bias, bias.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  const dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  matmul<<<grid, block>>>(device_a, device_b, device_c, m, n, k);
  CHECK(cudaGetLastError());
  add_bias<<<grid, block>>>(device_c, device_bias, m, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), device_c, m * n * sizeof(float), cudaMemcpyDeviceToHost));

  for (int row = 0; row < m; row++) {
    for (int col = 0; col < n; col++) {
      double expected = bias[col];
      for (int i = 0; i < k; i++) expected += (double)a[row * k + i] * b[i * n + col];
      if (!(fabs(c[row * n + col] - expected) <= 1e-5 * expected)) {
        fprintf(stderr, "element (%d, %d) is wrong\n", row, col);
        return 1;
      }
    }
  }
  printf("%d x %d elements are right\n", m, n);
  CHECK(cudaFree(device_a));
  CHECK(cudaFree(device_b));
  CHECK(cudaFree(device_bias));
  CHECK(cudaFree(device_c));
  return 0;
}
