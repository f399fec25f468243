/* Lesson 12: the matmul ladder. C = A B, row by row in memory: each of m x n sums has k products. There are 2 m n k
 * operations on few numbers, so that all turns on how often each number is fetched, and from where.
 *
 *   naive            a thread for each element of C, x as the row: the threads of a warp read down a column of A
 *   coalesced        x as the column: they read along a row of B, and all the same element of A
 *   tile 16, tile 32 a block brings square tiles of A and B to shared memory; each number is fetched once for 16 or 32
 *                    uses. That is the textbook's kernel
 *   register blocks  a thread has 8 x 8 elements of C in registers, so that one read of shared memory serves 8
 *                    products, not one. Built of gk_tile_load, gk_tile_multiply and gk_tile_store
 *   vector loads     and global memory is read 16 bytes at a time
 *   pipelined        and the next tiles are on their way while these are multiplied: two buffers, one barrier
 *
 * Then the library, and cuBLAS if the program could be linked with it. "odd" is a product of three sizes, none of which
 * a tile divides: whoever forgets the bounds is wrong there, and rows no longer begin at multiples of 16 bytes.
 *
 * The usual questions of an exam on tiles (how often is each element loaded from global memory?) are answered by a type
 * of matrix that counts its loads, element by element, in the same kernels. */
#include "lesson.h"
#ifdef LESSON_CUBLAS
#include <cublas_v2.h>
#endif

static const lesson_about about = {"12_matmul",
                                   "a product of matrices: from a thread for each element to register blocks",
                                   "rows and columns of each matrix",
                                   2048,
                                   64,
                                   1,
                                   16384,
                                   "GFLOP/s"};

#define DEPTH_ON_CPU 8 /* of both matrices: what a step costs is the same at each depth, and counting is slow */

struct shape {
  size_t m, n, k; /* A is m x k, B is k x n, C is m x n */
};

/* A matrix that counts how often each element is read. */
struct counting {
  const float *values;
  unsigned *loads;
  __device__ float operator[](size_t i) const {
    atomicAdd(&loads[i], 1u);
    return values[i];
  }
};

/* Matrix: const float *, or counting. */
template <class Matrix> __device__ void one_sum(Matrix a, Matrix b, float *c, shape s, size_t row, size_t col) {
  if (row >= s.m || col >= s.n) return;
  float sum = 0;
  for (size_t i = 0; i < s.k; i++) sum += a[row * s.k + i] * b[i * s.n + col];
  c[row * s.n + col] = sum;
}

template <class Matrix> __global__ void naive(Matrix a, Matrix b, float *c, shape s) {
  one_sum(a, b, c, s, (size_t)blockIdx.x * blockDim.x + threadIdx.x, (size_t)blockIdx.y * blockDim.y + threadIdx.y);
}

template <class Matrix> __global__ void coalesced(Matrix a, Matrix b, float *c, shape s) {
  one_sum(a, b, c, s, (size_t)blockIdx.y * blockDim.y + threadIdx.y, (size_t)blockIdx.x * blockDim.x + threadIdx.x);
}

/* TILE x TILE threads. Beyond the edges of A and B the tiles are filled with zeros, which add nothing. */
template <int TILE, class Matrix> __global__ void tiled(Matrix a, Matrix b, float *c, shape s) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  const unsigned x = threadIdx.x, y = threadIdx.y;
  const size_t row = (size_t)blockIdx.y * TILE + y, col = (size_t)blockIdx.x * TILE + x;
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

/* 128 x 128 elements of C for a block of 256 threads, 8 x 8 for each; tiles of A and B are 8 deep. A is
 * transposed in shared memory, so that what a thread needs of it is a vector, too. 4 floats of padding spread what is
 * written there over the banks, and keep each row aligned to 16 bytes. */
#define EDGE 128
#define DEEP 8
#define PITCH (EDGE + 4)
typedef gk_tile<float, EDGE, EDGE, 8, 8> sums;
#define THREADS (EDGE / 8 * EDGE / 8)

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

/* A thread's share of the tiles that begin at depth i: four floats of A and four of B. */
struct share {
  float4 a, b;
  __device__ void fetch(const float *from_a, const float *from_b, shape s, size_t row, size_t col, size_t i) {
    const unsigned t = threadIdx.x;
    a = four(from_a, row + t / 2, i + t % 2 * 4, s.m, s.k);
    b = four(from_b, i + t / 32, col + t % 32 * 4, s.k, s.n);
  }
  __device__ void put(float (*as)[PITCH], float (*bs)[PITCH]) const {
    const unsigned t = threadIdx.x, deep = t % 2 * 4;
    as[deep][t / 2] = a.x, as[deep + 1][t / 2] = a.y, as[deep + 2][t / 2] = a.z, as[deep + 3][t / 2] = a.w;
    *(float4 *)&bs[t / 32][t % 32 * 4] = b;
  }
};

/* AHEAD: the next tiles are fetched before these are multiplied, and put where nobody reads. */
template <bool AHEAD>
__global__ void __launch_bounds__(THREADS, 2) vectors(const float *a, const float *b, float *c, shape s) {
  __shared__ __align__(16) float as[AHEAD + 1][DEEP][PITCH], bs[AHEAD + 1][DEEP][PITCH];
  const size_t row = (size_t)blockIdx.y * EDGE, col = (size_t)blockIdx.x * EDGE;
  sums sum;
  share next;
  int now = 0;
  next.fetch(a, b, s, row, col, 0);
  for (size_t i = 0; i < s.k; i += DEEP) {
    next.put(as[now], bs[now]);
    __syncthreads();
    if (AHEAD) next.fetch(a, b, s, row, col, i + DEEP); /* beyond the edge: zeros */
    gk_tile_multiply(sum, as[now], bs[now], DEEP);
    if (AHEAD) {
      now = !now; /* whoever is late still reads the other buffer */
    } else {
      __syncthreads();
      next.fetch(a, b, s, row, col, i + DEEP);
    }
  }
  gk_tile_store(sum, c, s.n, row, col, s.m, s.n, 1.0f, 0.0f);
}

static unsigned ceil_div(size_t n, size_t by) { return (unsigned)((n + by - 1) / by); }

enum variant { NAIVE, COALESCED, TILE_16, TILE_32, REGISTERS, VECTORS, PIPELINED, LIBRARY, CUBLAS, VARIANTS };
static const char *const names[] = {"naive",        "coalesced", "tile 16", "tile 32", "register blocks",
                                    "vector loads", "pipelined", "library", "cuBLAS"};

#ifdef LESSON_CUBLAS
static cublasHandle_t cublas;
#define VARIANTS_HERE VARIANTS
#else
#define VARIANTS_HERE CUBLAS
#endif

/* Of the first four, whose matrices may be of either type. */
template <class Matrix> static void launch_simple(int v, Matrix a, Matrix b, float *c, shape s) {
  const unsigned tile = v == TILE_16 ? 16 : 32;
  const dim3 grid(ceil_div(s.n, tile), ceil_div(s.m, tile)), block(tile, tile);
  switch (v) {
  case NAIVE: naive<<<dim3(grid.y, grid.x), block>>>(a, b, c, s); return;
  case COALESCED: coalesced<<<grid, block>>>(a, b, c, s); return;
  case TILE_16: tiled<16><<<grid, block>>>(a, b, c, s); return;
  default: tiled<32><<<grid, block>>>(a, b, c, s); return;
  }
}

static void launch(int v, const float *a, const float *b, float *c, shape s) {
  const dim3 grid(ceil_div(s.n, EDGE), ceil_div(s.m, EDGE));
  switch (v) {
  case REGISTERS: register_blocks<<<grid, THREADS>>>(a, b, c, s); return;
  case VECTORS: vectors<false><<<grid, THREADS>>>(a, b, c, s); return;
  case PIPELINED: vectors<true><<<grid, THREADS>>>(a, b, c, s); return;
  case LIBRARY: GK_CHECK(gk_matmul(a, b, c, s.m, s.n, s.k)); return;
#ifdef LESSON_CUBLAS
  case CUBLAS: { /* which stores columns: so it is given what it takes for the transposed matrices, and B first */
    const float one = 1, zero = 0;
    const int m = (int)s.m, n = (int)s.n, k = (int)s.k;
    GK_CHECK(cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, a, k, &zero, c, n));
    return;
  }
#endif
  default: launch_simple(v, a, b, c, s); return;
  }
}

/* -2 to 2, and nothing that a row, a column and its neighbour have in common. */
static int digit(size_t i, unsigned seed) { return (int)(((unsigned)i * 2654435761u ^ seed * 40503u) >> 7) % 5 - 2; }

/* A[i][j] = digit(i) + digit(j), B alike: then C is known without k products for each element, and exact in floats,
 * in whatever order it is added up. */
struct product {
  shape s;
  const float *a, *b;
  float *c;
  std::vector<float> expected;

  product(lesson *l, shape size) : s(size), expected(size.m * size.n) {
    std::vector<float> of_a(s.m * s.k), of_b(s.k * s.n);
    long sum_a = 0, sum_b = 0, sum_ab = 0;
    for (size_t i = 0; i < s.k; i++) sum_a += digit(i, 2), sum_b += digit(i, 3), sum_ab += digit(i, 2) * digit(i, 3);
    for (size_t y = 0; y < s.m; y++)
      for (size_t i = 0; i < s.k; i++) of_a[y * s.k + i] = (float)(digit(y, 1) + digit(i, 2));
    for (size_t i = 0; i < s.k; i++)
      for (size_t x = 0; x < s.n; x++) of_b[i * s.n + x] = (float)(digit(i, 3) + digit(x, 4));
    for (size_t y = 0; y < s.m; y++)
      for (size_t x = 0; x < s.n; x++)
        expected[y * s.n + x] = (float)(digit(y, 1) * (sum_b + (long)s.k * digit(x, 4)) + sum_ab + sum_a * digit(x, 4));
    a = lesson_array(l, of_a), b = lesson_array(l, of_b), c = lesson_array<float>(l, s.m * s.n);
  }
};

static lesson_row *measure(lesson *l, int v, const char *suffix, const product &p) {
  char variant[48];
  const float *const a = p.a, *const b = p.b;
  float *const c = p.c;
  const shape s = p.s;
  snprintf(variant, sizeof variant, "%s%s", names[v], suffix);
  lesson_row *const r =
      lesson_measure(l, variant, 2.0 * (double)s.m * (double)s.n * (double)s.k, [=] { launch(v, a, b, c, s); });
  lesson_expect(l, r, c, p.expected);
  return r;
}

/* How often each element of the matrix has been loaded, which is expected to be the same for all of them. */
static unsigned loads_of(lesson *l, const lesson_row *row, const unsigned *loads, size_t count, size_t expected) {
  std::vector<unsigned> times(count);
  GK_CHECK(cudaMemcpy(times.data(), loads, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  size_t i = 0;
  while (i < count && times[i] == expected) i++;
  if (i < count) lesson_wrong(l, row, "element %zu is loaded %u times, not %zu times", i, times[i], expected);
  return times[0];
}

static void answer(lesson *l, const product &p) {
  const size_t count_a = p.s.m * p.s.k, count_b = p.s.k * p.s.n;
  unsigned *const of_a = lesson_array<unsigned>(l, count_a), *const of_b = lesson_array<unsigned>(l, count_b);
  double without = 0;
  for (const int v : {COALESCED, TILE_16, TILE_32}) {
    const size_t tile = v == TILE_16 ? 16 : v == TILE_32 ? 32 : 1;
    const lesson_row *const row = &l->rows[v];
    GK_CHECK(cudaMemset(of_a, 0, count_a * sizeof *of_a));
    GK_CHECK(cudaMemset(of_b, 0, count_b * sizeof *of_b));
    launch_simple(v, counting{p.a, of_a}, counting{p.b, of_b}, p.c, p.s);
    GK_CHECK_LAUNCH();
    lesson_expect(l, row, p.c, p.expected);
    const unsigned a = loads_of(l, row, of_a, count_a, ceil_div(p.s.n, tile));
    const unsigned b = loads_of(l, row, of_b, count_b, ceil_div(p.s.m, tile));
    const double all = (double)p.s.k * ((double)a * (double)p.s.m + (double)b * (double)p.s.n);
    if (v == COALESCED) without = all;
    lesson_say(l,
               "  %-9s  each element of A %3u times, of B %3u times; %8.0f loads, one in %.1f of those without tiles",
               v == COALESCED ? "no tiles" : names[v], a, b, all, without / all);
  }
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const size_t n = l.n, k = l.mode == LESSON_TIMED || n < DEPTH_ON_CPU ? n : DEPTH_ON_CPU;
  const product square(&l, shape{n, n, k}), odd(&l, shape{n + 1, n / 2 + 3, k + 3});
  const lesson_row *r[VARIANTS] = {}, *r_odd[VARIANTS] = {};
#ifdef LESSON_CUBLAS
  GK_CHECK(cublasCreate(&cublas));
#endif
  for (int v = 0; v < VARIANTS_HERE; v++) r[v] = measure(&l, v, "", square);
  for (int v = 0; v < VARIANTS_HERE; v++)
    if (l.mode == LESSON_TIMED) {
      r_odd[v] = measure(&l, v, " odd", odd);
    } else { /* is it right? */
      launch(v, odd.a, odd.b, odd.c, odd.s);
      GK_CHECK_LAUNCH();
      lesson_expect(&l, r[v], odd.c, odd.expected);
    }
#ifdef LESSON_CUBLAS
  GK_CHECK(cublasDestroy(cublas));
#endif
  lesson_table(&l);

  const shape questions[] = {{64, 64, 64}, {50, 35, 25}};
  for (const shape &s : questions) {
    lesson_say(&l, "Loads from global memory, %zu x %zu times %zu x %zu, by the questions on tiled matmul:", s.m, s.k,
               s.k, s.n);
    answer(&l, product(&l, s));
  }
  if (l.mode == LESSON_TIMED) {
    const double tile_16 = r[COALESCED]->us / r[TILE_16]->us, tile_32 = r[COALESCED]->us / r[TILE_32]->us;
    lesson_say(&l,
               "Tiles of 16 and 32 load 16 and 32 times less, and are worth a factor of %.2f and %.2f on coalesced%s",
               tile_16, tile_32, tile_32 < 8 ? ": on this GPU caches" : ".");
    if (tile_32 < 8) lesson_say(&l, "already hold what neighbours share, which textbooks do not count on.");
    lesson_say(&l,
               "Coalescing alone is worth %.2f, register blocks on tile 32 %.2f, vector loads %.2f, the pipeline %.2f.",
               r[NAIVE]->us / r[COALESCED]->us, r[TILE_32]->us / r[REGISTERS]->us, r[REGISTERS]->us / r[VECTORS]->us,
               r[VECTORS]->us / r[PIPELINED]->us);
    lesson_say(&l,
               "In the odd product, with half as many blocks, the pipelined kernel keeps %.0f %% of its rate, "
               "gk_matmul %.0f %%.",
               100 * r_odd[PIPELINED]->rate / r[PIPELINED]->rate, 100 * r_odd[LIBRARY]->rate / r[LIBRARY]->rate);
  } else if (l.mode == LESSON_COUNTED) {
    const double sectors = r[COALESCED]->counted.sectors;
    lesson_say(&l,
               "In sectors of 32 bytes naive loads %.1f times as much as coalesced, which loads %.1f times as much as",
               r[NAIVE]->counted.sectors / sectors, sectors / r[TILE_16]->counted.sectors);
    lesson_say(&l, "tile 16 and %.1f times as much as tile 32: not 16 and 32, since the threads of a warp share loads.",
               sectors / r[TILE_32]->counted.sectors);
    lesson_say(&l, "Registers take %.1f times fewer requests than tile 32.",
               r[TILE_32]->counted.requests / r[REGISTERS]->counted.requests);
  }
  if (!r[CUBLAS])
    lesson_say(&l, "cuBLAS is not compared: there is none for the stand-in, or the compiler has not found it.");
  else if (l.mode == LESSON_TIMED)
    lesson_say(&l, "gk_matmul takes %.2f times as long as cuBLAS, with odd sizes %.2f times.",
               r[LIBRARY]->us / r[CUBLAS]->us, r_odd[LIBRARY]->us / r_odd[CUBLAS]->us);
  return lesson_end(&l);
}
