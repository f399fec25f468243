/* Lesson 12: the matmul ladder. C = A B, row by row in memory: each of m x n sums has k products. There are 2 m n k
 * operations on few numbers, so that all turns on how often each number is fetched, and from where.
 *
 *   naive            a thread for each element of C, x as the row: the threads of a warp read down a column of A
 *   coalesced        x as the column: they read along a row of B, and all the same element of A
 *   tile 16, tile 32 a block brings square tiles of A and B to shared memory, where each number serves 16 or 32 times:
 *                    the textbook's kernel
 *   register blocks  a thread has 8 x 8 elements of C in registers: a read of shared memory serves 8 products, not one
 *   vector loads     and global memory is read 16 bytes at a time
 *   pipelined        and the next tiles are on their way while these are multiplied: two buffers, one barrier
 *
 * Then the library, and cuBLAS. "odd" is a product of three sizes, none of which a tile divides: whoever forgets the
 * bounds is wrong there. How often each element is loaded from global memory, which exams ask of tiles, is answered by
 * a type of matrix that counts its loads in the same kernels. */
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

/* Naive with x as the row, coalesced with x as the column. Matrix: const float *, or counting, which notes loads. */
template <bool X_IS_ROW, class Matrix> __global__ void one_each(Matrix a, Matrix b, float *c, shape s) {
  const size_t row = X_IS_ROW ? gk_x() : gk_y(), col = X_IS_ROW ? gk_y() : gk_x();
  if (row >= s.m || col >= s.n) return;
  float sum = 0;
  for (size_t i = 0; i < s.k; i++) sum += a[row * s.k + i] * b[i * s.n + col];
  c[row * s.n + col] = sum;
}

/* TILE x TILE threads. Beyond the edges of A and B the tiles are filled with zeros, which add nothing. */
template <int TILE, class Matrix> __global__ void tiled(Matrix a, Matrix b, float *c, shape s) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  const unsigned x = threadIdx.x, y = threadIdx.y;
  const size_t row = gk_y(), col = gk_x();
  float sum = 0;
  for (size_t i = 0; i < s.k; i += TILE) {
    as[y][x] = row < s.m && i + x < s.k ? a[row * s.k + i + x] : 0;
    bs[y][x] = i + y < s.k && col < s.n ? b[(i + y) * s.n + col] : 0;
    __syncthreads(); /* the tiles are there */
    for (int j = 0; j < TILE; j++) sum += as[y][j] * bs[j][x];
    __syncthreads(); /* nobody needs them any more */
  }
  if (row < s.m && col < s.n) c[row * s.n + col] = sum;
}

/* 128 x 128 elements of C for a block of 256 threads; tiles of A and B are 8 deep. A is transposed in shared memory, so
 * that what a thread needs of it is a vector, too. 4 floats of padding spread what is written there over the banks, and
 * keep each row aligned to 16 bytes. */
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

/* Four neighbours of a row, zeros outside of the matrix: by one load, if they and all rows are aligned to 16 bytes. */
__device__ float4 four(const float *from, size_t row, size_t col, size_t rows, size_t cols) {
  const float *const at = from + row * cols + col;
  if (row < rows && col + 3 < cols && cols % 4 == 0) return *(const float4 *)at;
  return make_float4(row < rows && col < cols ? at[0] : 0, row < rows && col + 1 < cols ? at[1] : 0,
                     row < rows && col + 2 < cols ? at[2] : 0, row < rows && col + 3 < cols ? at[3] : 0);
}

/* AHEAD: the next tiles are fetched before these are multiplied, and put where nobody reads. */
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
    if (AHEAD) now = !now; /* whoever is late still reads the other buffer */
  }
  gk_tile_store(sum, c, s.n, row, col, s.m, s.n, 1.0f, 0.0f);
}

enum { NAIVE, COALESCED, TILE_16, TILE_32, REGISTERS, VECTORS, PIPELINED, LIBRARY, CUBLAS, VARIANTS };
static const char *const names[] = {"naive",        "coalesced", "tile 16", "tile 32", "register blocks",
                                    "vector loads", "pipelined", "library", "cuBLAS"};
static void (*const kernels[])(const float *, const float *, float *, shape) = {
    one_each<true>, one_each<false>, tiled<16>, tiled<32>, register_blocks, vectors<false>, vectors<true>};

static void launch(int v, const product &p) {
  if (v == CUBLAS) {
    product_by_cublas(p);
  } else if (v == LIBRARY) {
    GK_CHECK(gk_matmul(p.a, p.b, p.c, p.s.m, p.s.n, p.s.k));
  } else {
    const unsigned edge = v == TILE_16 ? 16 : v < REGISTERS ? 32 : EDGE; /* of what a block computes */
    const dim3 grid = gk_grid_2d(p.s.n, p.s.m, dim3(edge, edge));
    const dim3 block = edge < EDGE ? dim3(edge, edge) : dim3(THREADS);
    kernels[v]<<<v == NAIVE ? dim3(grid.y, grid.x) : grid, block>>>(p.a, p.b, p.c, p.s);
  }
}

static lesson_row *measure(lesson *l, int v, const char *suffix, const product &p) {
  char variant[48];
  snprintf(variant, sizeof variant, "%s%s", names[v], suffix);
  const double operations = 2.0 * (double)p.s.m * (double)p.s.n * (double)p.s.k;
  lesson_row *r = &l->rows[v];
  if (l->mode == LESSON_TIMED || !*suffix)
    r = lesson_measure(l, variant, operations, [&] { launch(v, p); });
  else /* is it right? More need not be counted. */
    launch(v, p);
  lesson_expect(l, r, p.c, p.expected);
  return r;
}

/* Each element of A is to be loaded once for each column of tiles, each of B once for each row of them. */
static void answer(lesson *l, const lesson_row *row, const product &p) {
  const shape s = p.s;
  lesson_say(l, "Loads from global memory for %zu x %zu times %zu x %zu:", s.m, s.k, s.k, s.n);
  for (const unsigned tile : {1u, 16u, 32u}) {
    const auto kernel = tile == 32 ? tiled<32, counting> : tile == 16 ? tiled<16, counting> : one_each<false, counting>;
    const dim3 tiles = gk_grid_2d(s.n, s.m, dim3(tile, tile)), block = tile > 1 ? dim3(tile, tile) : dim3(32, 32);
    unsigned *const of_a = lesson_array(l, std::vector<unsigned>(s.m * s.k, 0u));
    unsigned *const of_b = lesson_array(l, std::vector<unsigned>(s.k * s.n, 0u));
    kernel<<<gk_grid_2d(s.n, s.m, block), block>>>(counting{p.a, of_a}, counting{p.b, of_b}, p.c, s);
    GK_CHECK_LAUNCH();
    lesson_expect(l, row, p.c, p.expected);
    lesson_expect(l, row, of_a, std::vector<unsigned>(s.m * s.k, tiles.x));
    lesson_expect(l, row, of_b, std::vector<unsigned>(s.k * s.n, tiles.y));
    const size_t all = s.k * (tiles.x * s.m + tiles.y * s.n);
    lesson_say(l, "  %-8s  each element of A %2u times, of B %2u; in all %6zu, one in %.1f of those without tiles",
               tile == 1 ? "no tiles" : names[tile == 16 ? TILE_16 : TILE_32], tiles.x, tiles.y, all,
               (double)(2 * s.m * s.n * s.k) / (double)all);
  }
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const size_t n = l.n, k = l.mode == LESSON_TIMED || n < 8 ? n : 8; /* what a step costs is the same at each depth */
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
    lesson_say(&l, "Tiles of 16 and 32 load 16 and 32 times less, and are worth %.2f and %.2f on coalesced%s",
               gain(COALESCED, TILE_16), gain(COALESCED, TILE_32),
               gain(COALESCED, TILE_32) < 8 ? ": caches did most of that already." : ".");
    lesson_say(&l, "Coalescing is worth %.2f, registers on tile 32 %.2f, vector loads %.2f, the pipeline %.2f.",
               gain(NAIVE, COALESCED), gain(TILE_32, REGISTERS), gain(REGISTERS, VECTORS), gain(VECTORS, PIPELINED));
    lesson_say(&l, "In the odd product the pipelined kernel keeps %.0f %% of its rate, gk_matmul %.0f %%.",
               100 * r_odd[PIPELINED]->rate / r[PIPELINED]->rate, 100 * r_odd[LIBRARY]->rate / r[LIBRARY]->rate);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(
        &l, "Coalesced loads one in %.1f of the sectors of naive, tile 16 one in %.1f of those, tile 32 one in %.1f:",
        less(NAIVE, COALESCED), less(COALESCED, TILE_16), less(COALESCED, TILE_32));
    lesson_say(&l, "not 16 and 32, since a warp's threads share loads. Registers take %.1f times fewer requests.",
               r[TILE_32]->counted.requests / r[REGISTERS]->counted.requests);
  }
  if (!r[CUBLAS])
    lesson_say(&l, "cuBLAS is not compared: there is none for the stand-in, or the compiler has not found it.");
  else if (l.mode == LESSON_TIMED)
    lesson_say(&l, "gk_matmul takes %.2f times as long as cuBLAS, with odd sizes %.2f times.", gain(LIBRARY, CUBLAS),
               r_odd[LIBRARY]->us / r_odd[CUBLAS]->us);
  return lesson_end(&l);
}
