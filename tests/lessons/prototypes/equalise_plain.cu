/* Histogram equalisation of a dull grey picture: its histogram by atomics in shared memory, the running sum of that by
 * the scan of Hillis and Steele in one block, and each pixel replaced by where it stands in that sum. Compared with
 * loops on the host. Plain CUDA; equalise.cu is the same program with gpukit. */
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

typedef unsigned char Pixel;

__global__ void histogram(const Pixel *picture, int n, unsigned *counts) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&own[picture[i]], 1);
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

__global__ void inclusive_scan(const unsigned *counts, unsigned *sums) {
  __shared__ unsigned sum[256];
  const int t = threadIdx.x;
  sum[t] = counts[t];
  __syncthreads();
  for (int s = 1; s < 256; s *= 2) {
    const unsigned left = t >= s ? sum[t - s] : 0;
    __syncthreads();
    sum[t] += left;
    __syncthreads();
  }
  sums[t] = sum[t];
}

__global__ void equalise(const Pixel *picture, const unsigned *sums, Pixel *result, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) result[i] = (Pixel)(255 * sums[picture[i]] / n);
}

static void print(const char *what, const std::vector<Pixel> &picture) {
  int least = 255, most = 0;
  for (int pixel : picture) {
    least = pixel < least ? pixel : least;
    most = pixel > most ? pixel : most;
  }
  printf("%s: from %d to %d\n", what, least, most);
}

int main() {
  const int width = 333, height = 251, n = width * height;
  std::vector<Pixel> picture(n), result(n);
  for (int i = 0; i < n; i++) picture[i] = (Pixel)(100 + 20 * sin(0.05 * (i % width)) + 20 * cos(0.03 * (i / width)));

  Pixel *device_picture, *device_result;
  unsigned *counts, *sums;
  CHECK(cudaMalloc(&device_picture, n));
  CHECK(cudaMalloc(&device_result, n));
  CHECK(cudaMalloc(&counts, 256 * sizeof(unsigned)));
  CHECK(cudaMalloc(&sums, 256 * sizeof(unsigned)));
  CHECK(cudaMemcpy(device_picture, picture.data(), n, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(counts, 0, 256 * sizeof(unsigned)));
  histogram<<<20, 256>>>(device_picture, n, counts);
  CHECK(cudaGetLastError());
  inclusive_scan<<<1, 256>>>(counts, sums);
  CHECK(cudaGetLastError());
  equalise<<<(n + 255) / 256, 256>>>(device_picture, sums, device_result, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result.data(), device_result, n, cudaMemcpyDeviceToHost));
  print("before", picture);
  print("after", result);

  unsigned expected[256] = {};
  for (Pixel pixel : picture) expected[pixel]++;
  for (int value = 1; value < 256; value++) expected[value] += expected[value - 1];
  for (int i = 0; i < n; i++) {
    if (result[i] != 255 * expected[picture[i]] / n) {
      fprintf(stderr, "pixel %d is wrong\n", i);
      return 1;
    }
  }
  CHECK(cudaFree(device_picture));
  CHECK(cudaFree(device_result));
  CHECK(cudaFree(counts));
  CHECK(cudaFree(sums));
  return 0;
}
