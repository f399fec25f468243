/* Finds repeats: the indices i with x[i] == x[i + 1], in order, and how many they are. Flags, their exclusive scan by
 * sweeps up and down a tree in global memory, and each flagged index stored where its sum says. Compared with a loop on
 * the host. Plain CUDA; repeats.cu is the same program with gpukit. */
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

__global__ void flag_repeats(const int *x, int n, int *flags, int size) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) flags[i] = i + 1 < n && x[i] == x[i + 1];
}

__global__ void sweep_up(int *sums, int nodes, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, right = (i + 1) * 2 * stride - 1;
  if (i < nodes) sums[right] += sums[right - stride];
}

__global__ void sweep_down(int *sums, int nodes, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, right = (i + 1) * 2 * stride - 1;
  if (i < nodes) {
    const int left = sums[right - stride];
    sums[right - stride] = sums[right];
    sums[right] += left;
  }
}

__global__ void store_repeats(const int *x, int n, const int *sums, int *repeats) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < n && x[i] == x[i + 1]) repeats[sums[i]] = i;
}

int main() {
  const int n = 100003;
  std::vector<int> x(n), expected;
  for (int i = 0; i < n; i++) x[i] = (int)((long long)i * i % 1009 / 50);

  int size = 1;
  while (size < n) size *= 2;
  int *device_x, *sums, *device_repeats;
  CHECK(cudaMalloc(&device_x, n * sizeof(int)));
  CHECK(cudaMalloc(&sums, size * sizeof(int)));
  CHECK(cudaMalloc(&device_repeats, n * sizeof(int)));
  CHECK(cudaMemcpy(device_x, x.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  flag_repeats<<<(size + 255) / 256, 256>>>(device_x, n, sums, size);
  CHECK(cudaGetLastError());
  for (int stride = 1; stride < size; stride *= 2) {
    const int nodes = size / 2 / stride;
    sweep_up<<<(nodes + 255) / 256, 256>>>(sums, nodes, stride);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaMemset(sums + size - 1, 0, sizeof(int)));
  for (int stride = size / 2; stride > 0; stride /= 2) {
    const int nodes = size / 2 / stride;
    sweep_down<<<(nodes + 255) / 256, 256>>>(sums, nodes, stride);
    CHECK(cudaGetLastError());
  }
  store_repeats<<<(n + 255) / 256, 256>>>(device_x, n, sums, device_repeats);
  CHECK(cudaGetLastError());
  int count; /* the last element has no repeat, so its sum is that of all */
  CHECK(cudaMemcpy(&count, sums + n - 1, sizeof(int), cudaMemcpyDeviceToHost));
  std::vector<int> repeats(count);
  CHECK(cudaMemcpy(repeats.data(), device_repeats, count * sizeof(int), cudaMemcpyDeviceToHost));

  for (int i = 0; i + 1 < n; i++) {
    if (x[i] == x[i + 1]) expected.push_back(i);
  }
  if (repeats != expected) {
    fprintf(stderr, "wrong: %d repeats, where the host has %zu\n", count, expected.size());
    return 1;
  }
  printf("%d repeats, the first of which are\n", count);
  for (int i = 0; i < 8; i++) printf("%12d", repeats[i]);
  printf("\n");
  CHECK(cudaFree(device_x));
  CHECK(cudaFree(sums));
  CHECK(cudaFree(device_repeats));
  return 0;
}
