/* The exclusive scan of Blelloch, for any n: each block scans its elements in shared memory by sweeps up and down a
 * tree, the totals of the blocks are scanned the same way, and added to the elements after them. Compared with a loop
 * on the host. Plain CUDA; scan_blelloch.cu is the same program with gpukit. */
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

#define ITEMS 512 /* of a block */
#define BANK(i) ((i) + (i) / 32)

__global__ void scan_blocks(const int *x, int *y, int *totals, int n) {
  __shared__ int data[BANK(ITEMS)];
  const int t = threadIdx.x, first = blockIdx.x * ITEMS;
  for (int i = t; i < ITEMS; i += blockDim.x) data[BANK(i)] = first + i < n ? x[first + i] : 0;
  for (int stride = 1; stride < ITEMS; stride *= 2) {
    __syncthreads();
    const int right = (t + 1) * 2 * stride - 1;
    if (right < ITEMS) data[BANK(right)] += data[BANK(right - stride)];
  }
  if (t == 0) {
    totals[blockIdx.x] = data[BANK(ITEMS - 1)];
    data[BANK(ITEMS - 1)] = 0;
  }
  for (int stride = ITEMS / 2; stride > 0; stride /= 2) {
    __syncthreads();
    const int right = (t + 1) * 2 * stride - 1;
    if (right < ITEMS) {
      const int left = data[BANK(right - stride)];
      data[BANK(right - stride)] = data[BANK(right)];
      data[BANK(right)] += left;
    }
  }
  __syncthreads();
  for (int i = t; i < ITEMS && first + i < n; i += blockDim.x) y[first + i] = data[BANK(i)];
}

__global__ void add_totals(int *y, const int *totals, int n) {
  const int i = blockIdx.x * ITEMS + threadIdx.x;
  if (i < n) y[i] += totals[blockIdx.x];
}

static void scan(const int *x, int *y, int n) {
  const int blocks = (n + ITEMS - 1) / ITEMS;
  int *totals;
  CHECK(cudaMalloc(&totals, blocks * sizeof(int)));
  scan_blocks<<<blocks, ITEMS / 2>>>(x, y, totals, n);
  CHECK(cudaGetLastError());
  if (blocks > 1) {
    scan(totals, totals, blocks);
    add_totals<<<blocks, ITEMS>>>(y, totals, n);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaFree(totals));
}

int main() {
  const int n = 300007;
  std::vector<int> x(n), y(n);
  for (int i = 0; i < n; i++) x[i] = i % 19;

  int *device_x, *device_y;
  CHECK(cudaMalloc(&device_x, n * sizeof(int)));
  CHECK(cudaMalloc(&device_y, n * sizeof(int)));
  CHECK(cudaMemcpy(device_x, x.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  scan(device_x, device_y, n);
  CHECK(cudaMemcpy(y.data(), device_y, n * sizeof(int), cudaMemcpyDeviceToHost));

  int sum = 0;
  for (int i = 0; i < n; i++) {
    if (y[i] != sum) {
      fprintf(stderr, "element %d is wrong\n", i);
      return 1;
    }
    sum += x[i];
  }
  printf("%d sums are right, the last is %d\n", n, y[n - 1]);
  CHECK(cudaFree(device_x));
  CHECK(cudaFree(device_y));
  return 0;
}
