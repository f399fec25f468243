/* y = a x + y for n floats: timed by events, and compared with a loop on the host. Plain CUDA; saxpy.cu is the same
 * program with gpukit. */
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

__global__ void saxpy(int n, float a, const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

int main() {
  const int n = 100003;
  const float a = 2;
  std::vector<float> x(n), y(n), result(n);
  for (int i = 0; i < n; i++) x[i] = (float)i, y[i] = 1;

  float *device_x, *device_y;
  CHECK(cudaMalloc(&device_x, n * sizeof(float)));
  CHECK(cudaMalloc(&device_y, n * sizeof(float)));
  CHECK(cudaMemcpy(device_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_y, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));

  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(begin));
  saxpy<<<(n + 255) / 256, 256>>>(n, a, device_x, device_y);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(end));
  CHECK(cudaEventSynchronize(end));
  float ms;
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  printf("saxpy: %.3f ms, %.1f GB/s\n", ms, 12e-6 * n / ms);
  CHECK(cudaMemcpy(result.data(), device_y, n * sizeof(float), cudaMemcpyDeviceToHost));

  for (int i = 0; i < n; i++) {
    if (result[i] != y[i] + a * x[i]) {
      fprintf(stderr, "element %d is wrong\n", i);
      return 1;
    }
  }
  printf("%d elements are right, the last is %g\n", n, result[n - 1]);
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaFree(device_x));
  CHECK(cudaFree(device_y));
  return 0;
}
