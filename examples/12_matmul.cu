/* Lesson 12: the matrix product C = A B. Matrices are stored row by row; A is m x k, B is k x n. Each of m x n sums has
 * k products, so there are 2 m n k operations on few numbers: what counts is how often each number is loaded, and from
 * where. */
#include <cuda_runtime.h>

/* A thread for each element of C. With x as the row, the threads of a warp read down a column of A. */
__global__ void naive(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
  const size_t row = (size_t)blockIdx.x * blockDim.x + threadIdx.x, col = (size_t)blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0;
  for (size_t i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}

/* With x as the column, they read along a row of B, and all of them the same element of A. */
__global__ void coalesced(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
  const size_t row = (size_t)blockIdx.y * blockDim.y + threadIdx.y, col = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || col >= n) return;
  float sum = 0;
  for (size_t i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}

/* The textbook's kernel: a block of 32 x 32 threads loads square tiles of A and B into shared memory, where each number
 * is used 32 times. Beyond the edges of A and B the tiles have zeros, which add nothing. */
__global__ void tiled_32(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
  __shared__ float tile_a[32][32], tile_b[32][32];
  const unsigned x = threadIdx.x, y = threadIdx.y;
  const size_t row = (size_t)blockIdx.y * 32 + y, col = (size_t)blockIdx.x * 32 + x;
  float sum = 0;
  for (size_t i = 0; i < k; i += 32) {
    tile_a[y][x] = row < m && i + x < k ? a[row * k + i + x] : 0;
    tile_b[y][x] = i + y < k && col < n ? b[(i + y) * n + col] : 0;
    __syncthreads(); /* the tiles are complete */
    for (int j = 0; j < 32; j++) sum += tile_a[y][j] * tile_b[j][x];
    __syncthreads(); /* the tiles may be overwritten */
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * The kernels above, three more steps, the library and cuBLAS. On an H200, for 2048 x 2048 x 2048, in GFLOP/s:
 *
 *   naive            486: each load of A touches 32 sectors and uses 4 bytes of each
 *   coalesced        5330, 11 times as fast: a load of B touches 4 sectors, a load of A one
 *   tile 16, 32      8051 and 8639: they load 16 and 32 times less from global memory, but are only 1.5 and 1.6 times
 *                    as fast, since the caches had already saved most of that. Now the reads of shared memory limit,
 *                    1.25 for each multiply-add: one for B, and a 16-byte one for four elements of A. Those are the same
 *                    for both tiles
 *   register blocks  17,781: a thread has 8 x 8 elements of C in registers, so 16 reads of shared memory serve 64
 *                    multiply-adds
 *   vector loads     35,121: global memory is read 16 bytes at a time: a quarter of the loads, and of the arithmetic
 *                    for their addresses and bounds
 *   pipelined        41,590: the next tiles are loaded while these are multiplied: two buffers, one barrier a step
 *   library          40,517: gk_matmul in a build without code for sm_90a, so by its portable kernels, which use the
 *                    same steps. tests/bench has the rates of the builds with and without it
 *   cuBLAS           49,978
 *
 * "odd" is a product of 2049 x 2051 times 2051 x 1027, whose sizes no tile divides. A kernel that forgets a bound is
 * wrong there, and every row changes for a reason:
 *
 *   naive odd        1511, three times as fast as before. In the square product the rows of A are 8192 bytes apart. The
 *                    32 sectors that a warp reads down a column then fall on the same few sets of the L1 cache, and are
 *                    evicted before the next 7 iterations have used the rest of them. With 2051 floats in a row they
 *                    spread over all sets, and stay. (Powers of two as leading dimensions are best avoided; padding is
 *                    the usual cure.)
 *   coalesced and    4.5 to 9.5 % slower: rows no longer begin at multiples of 32 bytes, so a row of a tile touches
 *   tiles            five sectors, not four
 *   register blocks  58 % of the rate; vector loads 45 %, pipelined 44 %. Blocks of 128 x 128 are 17 x 9 = 153, and 264
 *                    fit on the GPU at once, so most multiprocessors have one where they had two; 16 % of the elements
 *                    of these blocks are beyond the edge of C; and rows that are not aligned to 16 bytes are read in
 *                    4-byte loads
 *   library, cuBLAS  62 % and 68 %: they can take other tiles for a product of this size */
#include "lesson_product.h"

static const lesson_about about = {
    "12_matmul",
    "a product of matrices: from a thread for each element to register blocks",
    "rows and columns of each matrix",
    2048,
    35,
    1,
    16384,
    "GFLOP/s",
};

/* The same kernels for any tile and any type of matrix: const float *, or counting, which counts the loads of each
 * element. Exams ask how often that is; answer() below runs these to find out. tiled_32() above is tiled<32>, written
 * as textbooks print it. */
template <class Matrix> __global__ void one_each(Matrix a, Matrix b, float *c, shape s) {
  const size_t row = gk_y(), col = gk_x();
  if (row >= s.m || col >= s.n) return;
  float sum = 0;
  for (size_t i = 0; i < s.k; i++) sum += a[row * s.k + i] * b[i * s.n + col];
  c[row * s.n + col] = sum;
}

template <int TILE, class Matrix> __global__ void tiled(Matrix a, Matrix b, float *c, shape s) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  const unsigned x = threadIdx.x, y = threadIdx.y;
  const size_t row = gk_y(), col = gk_x();
  float sum = 0;
  for (size_t i = 0; i < s.k; i += TILE) {
    as[y][x] = row < s.m && i + x < s.k ? a[row * s.k + i + x] : 0;
    bs[y][x] = i + y < s.k && col < s.n ? b[(i + y) * s.n + col] : 0;
    __syncthreads();
    for (int j = 0; j < TILE; j++) sum += as[y][j] * bs[j][x];
    __syncthreads();
  }
  if (row < s.m && col < s.n) c[row * s.n + col] = sum;
}

/* A block of 256 threads computes 128 x 128 elements of C; its tiles of A and B are 8 deep. The tile of A is transposed
 * in shared memory, so that a thread reads vectors of it, too. The 4 floats of padding spread the stores of that tile
 * over the banks, and keep each row aligned to 16 bytes. */
#define EDGE 128
#define DEEP 8
#define PITCH (EDGE + 4)
#define THREADS (EDGE / 8 * EDGE / 8)
typedef gk_tile<float, EDGE, EDGE, 8, 8> sums;

__global__ void __launch_bounds__(THREADS, 2) register_blocks(const float *a, const float *b, float *c, shape s) {
  __shared__ __align__(16) float as[DEEP][PITCH], bs[DEEP][PITCH];
  const size_t row = (size_t)blockIdx.y * EDGE, col = (size_t)blockIdx.x * EDGE;
  sums sum;
  for (size_t i = 0; i < s.k; i += DEEP) {
    gk_tile_load_transposed<EDGE, DEEP>(as, a, s.k, row, i, s.m, s.k);
    gk_tile_load<DEEP, EDGE>(bs, b, s.n, i, col, s.k, s.n);
    __syncthreads();
    gk_tile_multiply(sum, as, bs, DEEP);
    __syncthreads();
  }
  gk_tile_store(sum, c, s.n, row, col, s.m, s.n, 1.0f, 0.0f);
}

/* Four neighbours of a row, zeros outside of the matrix; in one load if all rows are aligned to 16 bytes. */
__device__ float4 four(const float *from, size_t row, size_t col, size_t rows, size_t cols) {
  const float *const at = from + row * cols + col;
  if (row < rows && col + 3 < cols && cols % 4 == 0) return *(const float4 *)at;
  return make_float4(row < rows && col < cols ? at[0] : 0, row < rows && col + 1 < cols ? at[1] : 0,
                     row < rows && col + 2 < cols ? at[2] : 0, row < rows && col + 3 < cols ? at[3] : 0);
}

/* AHEAD: the next tiles are loaded before these are multiplied, and stored to the other buffer. */
template <bool AHEAD>
__global__ void __launch_bounds__(THREADS, 2) vectors(const float *a, const float *b, float *c, shape s) {
  __shared__ __align__(16) float as[AHEAD + 1][DEEP][PITCH], bs[AHEAD + 1][DEEP][PITCH];
  const size_t row = (size_t)blockIdx.y * EDGE, col = (size_t)blockIdx.x * EDGE;
  const unsigned t = threadIdx.x, row_a = t / 2, deep_a = t % 2 * 4, deep_b = t / 32, col_b = t % 32 * 4;
  sums sum;
  float4 of_a = four(a, row + row_a, deep_a, s.m, s.k), of_b = four(b, deep_b, col + col_b, s.k, s.n);
  int now = 0;
  for (size_t i = 0; i < s.k; i += DEEP) {
    as[now][deep_a][row_a] = of_a.x, as[now][deep_a + 1][row_a] = of_a.y;
    as[now][deep_a + 2][row_a] = of_a.z, as[now][deep_a + 3][row_a] = of_a.w;
    *(float4 *)&bs[now][deep_b][col_b] = of_b;
    __syncthreads();
    if (!AHEAD) gk_tile_multiply(sum, as[0], bs[0], DEEP);
    if (!AHEAD) __syncthreads();
    of_a = four(a, row + row_a, i + DEEP + deep_a, s.m, s.k); /* beyond the edge: zeros */
    of_b = four(b, i + DEEP + deep_b, col + col_b, s.k, s.n);
    if (AHEAD) gk_tile_multiply(sum, as[now], bs[now], DEEP);
    if (AHEAD) now = !now; /* slower warps may still read the old buffer */
  }
  gk_tile_store(sum, c, s.n, row, col, s.m, s.n, 1.0f, 0.0f);
}

enum { NAIVE, COALESCED, TILE_16, TILE_32, REGISTERS, VECTORS, PIPELINED, LIBRARY, CUBLAS, VARIANTS };
static const char *const names[] = {"naive",        "coalesced", "tile 16", "tile 32", "register blocks",
                                    "vector loads", "pipelined", "library", "cuBLAS"};
static void launch(int v, const product &p) {
  const shape s = p.s;
  const unsigned edge = v == TILE_16 ? 16 : v < REGISTERS ? 32 : EDGE; /* of the elements of C that a block computes */
  const dim3 grid = gk_grid_2d(s.n, s.m, dim3(edge, edge)), by_row(grid.y, grid.x), block(edge, edge);
  switch (v) {
  case NAIVE: naive<<<by_row, block>>>(p.a, p.b, p.c, s.m, s.n, s.k); break;
  case COALESCED: coalesced<<<grid, block>>>(p.a, p.b, p.c, s.m, s.n, s.k); break;
  case TILE_16: tiled<16><<<grid, block>>>(p.a, p.b, p.c, s); break;
  case TILE_32: tiled_32<<<grid, block>>>(p.a, p.b, p.c, s.m, s.n, s.k); break;
  case REGISTERS: register_blocks<<<grid, THREADS>>>(p.a, p.b, p.c, s); break;
  case VECTORS: vectors<false><<<grid, THREADS>>>(p.a, p.b, p.c, s); break;
  case PIPELINED: vectors<true><<<grid, THREADS>>>(p.a, p.b, p.c, s); break;
  case LIBRARY: GK_CHECK(gk_matmul(p.a, p.b, p.c, s.m, s.n, s.k)); break;
  default: product_by_cublas(p);
  }
}

static lesson_row *measure(lesson *l, int v, const char *suffix, const product &p) {
  char variant[48];
  snprintf(variant, sizeof variant, "%s%s", names[v], suffix);
  const double operations = 2.0 * (double)p.s.m * (double)p.s.n * (double)p.s.k;
  lesson_row *r = &l->rows[v];
  if (l->mode == LESSON_TIMED || !*suffix)
    r = lesson_measure(l, variant, operations, [&] { launch(v, p); });
  else /* only checked: the counters are those of the first product */
    launch(v, p);
  lesson_expect(l, r, p.c, p.expected);
  return r;
}

/* Each element of A has to be loaded once for each column of tiles, each element of B once for each row of tiles. */
static void answer(lesson *l, const lesson_row *row, const product &p) {
  const shape s = p.s;
  lesson_say(l, "Loads from global memory for %zu x %zu times %zu x %zu:", s.m, s.k, s.k, s.n);
  for (const unsigned tile : {1u, 16u, 32u}) {
    const auto kernel = tile == 32 ? tiled<32, counting> : tile == 16 ? tiled<16, counting> : one_each<counting>;
    const dim3 tiles = gk_grid_2d(s.n, s.m, dim3(tile, tile)), block = tile > 1 ? dim3(tile, tile) : dim3(32, 32);
    unsigned *const of_a = lesson_array(l, std::vector<unsigned>(s.m * s.k, 0u));
    unsigned *const of_b = lesson_array(l, std::vector<unsigned>(s.k * s.n, 0u));
    kernel<<<gk_grid_2d(s.n, s.m, block), block>>>(counting{p.a, of_a}, counting{p.b, of_b}, p.c, s);
    GK_CHECK_LAUNCH();
    lesson_expect(l, row, p.c, p.expected);
    lesson_expect(l, row, of_a, std::vector<unsigned>(s.m * s.k, tiles.x));
    lesson_expect(l, row, of_b, std::vector<unsigned>(s.k * s.n, tiles.y));
    const size_t all = s.k * (tiles.x * s.m + tiles.y * s.n);
    char fewer[64] = "";
    if (tile > 1)
      snprintf(fewer, sizeof fewer, ", %.1f times fewer than without tiles",
               (double)(2 * s.m * s.n * s.k) / (double)all);
    lesson_say(l, "  %-8s  each element of A %2u times, of B %2u times; %6zu in all%s",
               tile == 1 ? "no tiles" : names[tile == 16 ? TILE_16 : TILE_32], tiles.x, tiles.y, all, fewer);
  }
}

/* Whether the device code that runs here was compiled for sm_90a, which has Hopper's own instructions. */
__global__ void ask_target(unsigned *sm_90a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  *sm_90a = 1;
#else
  *sm_90a = 0;
#endif
}
static bool built_for_sm_90a(lesson *l) {
  unsigned *const device = lesson_array<unsigned>(l, 1);
  unsigned host = 0;
  ask_target<<<1, 1>>>(device);
  GK_CHECK_LAUNCH();
  GK_CHECK(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
  return host != 0;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const size_t n = l.n, k = l.mode == LESSON_TIMED || n < 8 ? n : 8; /* the cost of a step does not depend on k */
  const product square(&l, shape{n, n, k}), odd(&l, shape{n + 1, n / 2 + 3, k + 3});
  const lesson_row *r[VARIANTS] = {}, *r_odd[VARIANTS] = {};
  const int count = PRODUCT_BY_CUBLAS ? VARIANTS : CUBLAS;
  for (int v = 0; v < count; v++) r[v] = measure(&l, v, "", square);
  for (int v = 0; v < count; v++) r_odd[v] = measure(&l, v, " odd", odd);
  lesson_table(&l);

  answer(&l, r[COALESCED], product(&l, shape{64, 64, k < 64 ? k : 64}));
  answer(&l, r[COALESCED], product(&l, shape{50, 35, 25}));
  const auto gain = [&](int from, int to) { return r[from]->us / r[to]->us; };
  const auto less = [&](int from, int to) { return r[from]->counted.sectors / r[to]->counted.sectors; };
  if (l.mode == LESSON_TIMED) {
    lesson_say(
        &l, "Coalescing makes it %.2f times as fast. Tiles of 16 and 32 load 16 and 32 times less than that, but are",
        gain(NAIVE, COALESCED));
    lesson_say(&l, "only %.2f and %.2f times as fast%s", gain(COALESCED, TILE_16), gain(COALESCED, TILE_32),
               gain(COALESCED, TILE_32) < 8 ? ": the caches had saved most of the loads already." : ".");
    lesson_say(&l,
               "Register blocks are %.2f times as fast as tile 32, vector loads a further %.2f times, the pipeline "
               "%.2f times.",
               gain(TILE_32, REGISTERS), gain(REGISTERS, VECTORS), gain(VECTORS, PIPELINED));
    lesson_say(&l,
               "In the odd product the naive kernel has %.2f times its rate: its rows of A are no power of two apart.",
               r_odd[NAIVE]->rate / r[NAIVE]->rate);
    lesson_say(&l, "There the pipelined kernel keeps %.0f %% of its rate, gk_matmul %.0f %%.",
               100 * r_odd[PIPELINED]->rate / r[PIPELINED]->rate, 100 * r_odd[LIBRARY]->rate / r[LIBRARY]->rate);
    if (l.device.major == 9)
      lesson_say(&l, built_for_sm_90a(&l) ? "This build has code for sm_90a: gk_matmul runs its kernels for Hopper."
                                          : "gk_matmul ran its portable kernels: the build had no code for sm_90a.");
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l,
               "The coalesced kernel loads %.1f times fewer sectors than the naive one, tile 16 %.1f times fewer than "
               "that, tile 32 %.1f:",
               less(NAIVE, COALESCED), less(COALESCED, TILE_16), less(COALESCED, TILE_32));
    lesson_say(&l,
               "not 16 and 32, since the threads of a warp share loads. Registers make %.1f times fewer requests than "
               "tile 32.",
               r[TILE_32]->counted.requests / r[REGISTERS]->counted.requests);
  }
  if (!r[CUBLAS])
    lesson_say(&l, "cuBLAS is not compared: the stand-in has none, or the compiler did not find it.");
  else if (l.mode == LESSON_TIMED)
    lesson_say(&l, "gk_matmul takes %.2f times as long as cuBLAS, in the odd product %.2f times.",
               gain(LIBRARY, CUBLAS), r_odd[LIBRARY]->us / r_odd[CUBLAS]->us);
  return lesson_end(&l);
}
