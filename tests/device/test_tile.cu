/* The parts of a matmul kernel (gk_tile), in kernels as the header's comment has them. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "hooks.h"
#include "products.h"

template <int BM, int BN, int BK, int TM, int TN, class S, class T>
__global__ void my_matmul(const T *a, const T *b, S *c, size_t m, size_t n, size_t k, bool transposed, S beta) {
  __shared__ __align__(16) S as[BK][BM + 4], bs[BK][BN + 4];
  gk_tile<S, BM, BN, TM, TN> acc;
  const size_t row = BM * static_cast<size_t>(blockIdx.y), col = BN * static_cast<size_t>(blockIdx.x);
  for (size_t i = 0; i < k; i += BK) {
    if (transposed) {
      gk_tile_load<BK, BM>(as, a, m, i, row, k, m);
      gk_tile_load_transposed<BN, BK>(bs, b, k, col, i, n, k);
    } else {
      gk_tile_load_transposed<BM, BK>(as, a, k, row, i, m, k);
      gk_tile_load<BK, BN>(bs, b, n, i, col, k, n);
    }
    __syncthreads();
    gk_tile_multiply(acc, as, bs, BK);
    __syncthreads();
  }
  gk_tile_store(acc, c, n, row, col, m, n, S(2), beta);
}

/* The same for operands that are not transposed, with A as textbooks have it. */
template <int BM, int BN, int BK, int TM, int TN, class S, class T>
__global__ void my_matmul_by_rows(const T *a, const T *b, S *c, size_t m, size_t n, size_t k, S beta) {
  __shared__ S as[BM][BK + 1];
  __shared__ __align__(16) S bs[BK][BN + 4];
  gk_tile<S, BM, BN, TM, TN> acc;
  const size_t row = BM * static_cast<size_t>(blockIdx.y), col = BN * static_cast<size_t>(blockIdx.x);
  for (size_t i = 0; i < k; i += BK) {
    gk_tile_load<BM, BK>(as, a, k, row, i, m, k);
    gk_tile_load<BK, BN>(bs, b, n, i, col, k, n);
    __syncthreads();
    gk_tile_multiply_rows(acc, as, bs, BK);
    __syncthreads();
  }
  gk_tile_store(acc, c, n, row, col, m, n, S(2), beta);
}

template <int BM, int BN, int BK, int TM, int TN, class S, class T> static void check_blocks(dim3 block) {
  EXPECT_EQ(static_cast<unsigned>(gk_tile<S, BM, BN, TM, TN>::thread_count), block.x * block.y * block.z);
  const size_t sizes[] = {1, 5, 37, 64, 100};
  for (size_t i = 0; i < 10; i++) {
    problem p = problem_of(sizes[i % 5], sizes[(i + 2) % 5], sizes[(i * 2 + 1) % 5]);
    p.trans_a = p.trans_b = i >= 5;
    p.alpha = 2, p.beta = i % 2 ? -0.5 : 0;
    const std::vector<T> a = random_elements<T>(1, p.m * p.k), b = random_elements<T>(2, p.k * p.n);
    std::vector<S> before(p.m * p.n, p.beta != 0 ? S(3) : S(NAN)), expected(before);
    const hook_split_k one_chain = {0, 1, 1000};
    multiply_on_host(p, a, b, expected, one_chain);
    device_array<T> device_a(a), device_b(b);
    device_array<S> c(before);
    const dim3 grid = gk_tile<S, BM, BN, TM, TN>::grid_dim(p.m, p.n);
    EXPECT(grid.x == gk_ceil_div(p.n, size_t(BN)) && grid.y == gk_ceil_div(p.m, size_t(BM)) && grid.z == 1);
    GK_LAUNCH((my_matmul<BM, BN, BK, TM, TN, S, T>), grid, block, 0, 0, device_a.ptr, device_b.ptr, c.ptr, p.m, p.n,
              p.k, p.trans_a != 0, static_cast<S>(p.beta));
    EXPECT_SAME(c.get(), expected, "%d x %d x %d, %d x %d a thread: %s", BM, BN, BK, TM, TN, p.text().c_str());
    if (p.trans_a) continue;
    c.set(before);
    GK_LAUNCH((my_matmul_by_rows<BM, BN, BK, TM, TN, S, T>), grid, block, 0, 0, device_a.ptr, device_b.ptr, c.ptr, p.m,
              p.n, p.k, static_cast<S>(p.beta));
    EXPECT_SAME(c.get(), expected, "by rows, %d x %d x %d, %d x %d a thread: %s", BM, BN, BK, TM, TN, p.text().c_str());
  }
}

/* A tile may begin at any column. */
__global__ void tiles_from_column(float *c, size_t ldc, size_t col0, size_t m, size_t n) {
  gk_tile<float, 32, 32, 4, 4> acc;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) acc.value[i][j] = static_cast<float>(acc.row_idx(i) * 100 + acc.col_idx(j));
  gk_tile_store(acc, c, ldc, size_t(0), col0, m, n, 1, 0);
}
TEST(tiles_from_any_column) {
  for (size_t col0 = 0; col0 < 6; col0++) {
    const size_t m = 30, n = 36, ldc = 40;
    std::vector<float> expected(m * ldc, 7.0f);
    for (size_t i = 0; i < m; i++)
      for (size_t j = col0; j < n && j < col0 + 32; j++) expected[i * ldc + j] = static_cast<float>(i * 100 + j - col0);
    device_array<float> c(std::vector<float>(m * ldc, 7.0f));
    GK_LAUNCH(tiles_from_column, 1, 64, 0, 0, c.ptr, ldc, col0, m, n);
    EXPECT_SAME(c.get(), expected, "from column %zu", col0);
  }
}

TEST(blocks_16_by_16) { check_blocks<16, 16, 16, 1, 1, float, float>(dim3(16, 16)); }
TEST(blocks_32_by_32) { check_blocks<32, 32, 32, 1, 1, float, float>(dim3(32, 32)); }
TEST(blocks_64_by_64_by_registers) { check_blocks<64, 64, 8, 4, 4, float, float>(dim3(256)); }
TEST(blocks_64_by_32_uneven) { check_blocks<64, 32, 5, 8, 2, float, float>(dim3(8, 4, 4)); }
TEST(blocks_of_double) { check_blocks<32, 32, 8, 2, 4, double, double>(dim3(64, 2)); }
TEST(blocks_of_half) { check_blocks<32, 32, 8, 2, 2, float, __half>(dim3(256)); }
