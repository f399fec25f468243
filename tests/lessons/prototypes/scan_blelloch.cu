/* The exclusive scan of Blelloch, for any n: each block scans its elements in shared memory, the totals of the blocks
 * are scanned the same way, and added to the elements after them. Compared with a loop on the host.
 * scan_blelloch_plain.cu is the same program without gpukit. */
#define GPUKIT_IMPLEMENTATION
#include <cstdio>
#include <vector>
#include "gpukit.cuh"

#define ITEMS 512 /* of a block */

__global__ void scan_blocks(const int *x, int *y, int *totals, size_t n) {
  __shared__ int data[GK_BLELLOCH_SIZE(ITEMS)];
  const unsigned t = threadIdx.x;
  const size_t i = gk_x();
  data[gk_bank(t)] = i < n ? x[i] : 0;
  const int total = gk_block_scan_blelloch(data, ITEMS, gk_op_sum());
  if (i < n) y[i] = data[gk_bank(t)];
  if (t == 0) totals[blockIdx.x] = total;
}

__global__ void add_totals(int *y, const int *totals, size_t n) {
  GK_FOR_1D (i, n) y[i] += totals[i / ITEMS];
}

static void scan(const int *x, int *y, size_t n) {
  gk_array<int> totals(gk_ceil_div(n, ITEMS));
  GK_LAUNCH(scan_blocks, gk_grid_1d(n, ITEMS), ITEMS, 0, 0, x, y, totals, n);
  if (totals.size() == 1) return;
  scan(totals, totals, totals.size());
  GK_LAUNCH(add_totals, gk_grid_1d(n, ITEMS), ITEMS, 0, 0, y, totals, n);
}

int main() {
  const size_t n = 300007;
  std::vector<int> host(n), expected(n);
  for (size_t i = 0; i < n; i++) host[i] = (int)(i % 19);

  const gk_array<int> x(host);
  gk_array<int> y(n);
  scan(x, y, n);

  for (size_t i = 1; i < n; i++) expected[i] = expected[i - 1] + host[i - 1];
  if (!gk_allclose(y, expected.data(), 0, 0)) {
    fprintf(stderr, "%s\n", gk_error_detail());
    return 1;
  }
  printf("%zu sums are right, the last is %d\n", n, y.get(n - 1));
  return 0;
}
