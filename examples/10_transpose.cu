/* Lesson 10: transpose. Rows of a matrix become columns. Nothing is computed, so the best copy of the same bytes is the
 * limit.
 *
 * The naive kernel reads rows and writes columns. A warp's 32 loads touch 4 sectors of memory; its 32 stores touch 32
 * sectors and write 4 of the 32 bytes of each. A tile in shared memory turns both into rows: the block fills it by
 * rows, and reads it by columns.
 *
 * A column of a tile of 32 x 32 floats lies in a single bank of the shared memory, which delivers one word at a time.
 * So the tile gets a 33rd column that is not used (padding), or the column number is combined with the row number by
 * XOR (swizzling, which needs no memory). Either spreads each column over all banks. */
#include <cuda_runtime.h>

#define TILE 32
#define ROWS 8 /* a block of 32 x 8 threads copies a tile in four steps */

__global__ void naive(const float *in, float *out, unsigned n) {
  const unsigned x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (unsigned i = 0; i < TILE; i += ROWS)
    if (x < n && y + i < n) out[(size_t)x * n + y + i] = in[(size_t)(y + i) * n + x];
}

__global__ void copy(const float *in, float *out, unsigned n) {
  const unsigned x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (unsigned i = 0; i < TILE; i += ROWS)
    if (x < n && y + i < n) out[(size_t)(y + i) * n + x] = in[(size_t)(y + i) * n + x];
}

/* __restrict__ promises that `out` does not overlap `in`, so loads may move before earlier stores. */
__global__ void copy_restrict(const float *__restrict__ in, float *__restrict__ out, unsigned n) {
  const unsigned x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (unsigned i = 0; i < TILE; i += ROWS)
    if (x < n && y + i < n) out[(size_t)(y + i) * n + x] = in[(size_t)(y + i) * n + x];
}

/* PITCH is the length of a row of the tile: 32, or 33 with padding. */
template <int PITCH> __global__ void tiled(const float *in, float *out, unsigned n) {
  __shared__ float tile[TILE][PITCH];
  unsigned x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (unsigned i = 0; i < TILE; i += ROWS)
    if (x < n && y + i < n) tile[threadIdx.y + i][threadIdx.x] = in[(size_t)(y + i) * n + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (unsigned i = 0; i < TILE; i += ROWS)
    if (x < n && y + i < n) out[(size_t)(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}

__global__ void swizzled(const float *in, float *out, unsigned n) {
  __shared__ float tile[TILE][TILE]; /* element (row, column) is at [row][column ^ row] */
  unsigned x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (unsigned i = 0; i < TILE; i += ROWS) {
    const unsigned row = threadIdx.y + i;
    if (x < n && y + i < n) tile[row][threadIdx.x ^ row] = in[(size_t)(y + i) * n + x];
  }
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (unsigned i = 0; i < TILE; i += ROWS) {
    const unsigned column = threadIdx.y + i;
    if (x < n && y + i < n) out[(size_t)(y + i) * n + x] = tile[threadIdx.x][column ^ threadIdx.x];
  }
}

/* A thread moves four neighbours at once, so that a block of 8 x 32 threads copies a tile in one step. n has to be a
 * multiple of 4: then each row begins at a multiple of 16 bytes, and four neighbours are inside or outside together. */
__global__ void copy_16_bytes(const float *in, float *out, unsigned n) {
  const unsigned x = blockIdx.x * TILE + 4 * threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x < n && y < n) *(float4 *)&out[(size_t)y * n + x] = *(const float4 *)&in[(size_t)y * n + x];
}

__global__ void padded_16_bytes(const float *in, float *out, unsigned n) {
  __shared__ float tile[TILE][TILE + 1];
  const unsigned four = 4 * threadIdx.x, one = threadIdx.y;
  unsigned x = blockIdx.x * TILE + four, y = blockIdx.y * TILE + one;
  if (x < n && y < n) {
    const float4 v = *(const float4 *)&in[(size_t)y * n + x];
    tile[one][four] = v.x, tile[one][four + 1] = v.y, tile[one][four + 2] = v.z, tile[one][four + 3] = v.w;
  }
  __syncthreads();
  x = blockIdx.y * TILE + four;
  y = blockIdx.x * TILE + one;
  if (x < n && y < n)
    *(float4 *)&out[(size_t)y * n + x] =
        make_float4(tile[four][one], tile[four + 1][one], tile[four + 2][one], tile[four + 3][one]);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, for 8192 x 8192 floats:
 *
 *   copy             3031 GB/s. The compiler has to assume that `out` overlaps `in`, so the second load of a thread
 *                    comes after its first store, and that one waits for the first load
 *   copy restrict    3637 GB/s, 1.20 times as fast: nvcc issues three of the four loads before the first store
 *   naive            491 GB/s: eight times the sectors in its stores
 *   tiled            1730 GB/s, 3.5 times as fast: rows on both sides, but 32 passes for each load of a tile's column
 *   padded           3545 GB/s, 2.05 times as fast again: one pass
 *   swizzled         3459 GB/s: one pass, too, and a little more arithmetic
 *   copy 16 bytes    4087 GB/s: four floats in each access, so more bytes are under way (lesson 3)
 *   padded 16 bytes  3595 GB/s: 16-byte accesses to global memory; the tile is still written and read by single words
 *
 * A transpose can be faster than the first copy: the four loads of a thread of padded are under way together, since its
 * stores are to shared memory. */
#include "lesson.h"

static const lesson_about about = {"10_transpose",
                                   "rows become columns: through shared memory, without bank conflicts",
                                   "rows and columns of the matrix",
                                   8192,
                                   256,
                                   1,
                                   32768,
                                   "GB/s"};

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n;
  const size_t count = l.n * l.n;
  std::vector<float> same(count), turned(count);
  for (size_t i = 0; i < count; i++) same[i] = (float)(i % 16777213); /* each exact as a float */
  for (size_t y = 0; y < n; y++)
    for (size_t x = 0; x < n; x++) turned[x * n + y] = same[y * n + x];
  const float *const in = lesson_array(&l, same);
  float *const out = lesson_array<float>(&l, count);
  const double bytes = 2.0 * (double)count * sizeof(float);
  const dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), block(TILE, ROWS), block_16_bytes(TILE / 4, TILE);

  lesson_row *const copied = lesson_measure(&l, "copy", bytes, [=] { copy<<<grid, block>>>(in, out, n); });
  lesson_expect(&l, copied, out, same);
  lesson_row *const restricted =
      lesson_measure(&l, "copy restrict", bytes, [=] { copy_restrict<<<grid, block>>>(in, out, n); });
  lesson_expect(&l, restricted, out, same);
  lesson_row *const plain = lesson_measure(&l, "naive", bytes, [=] { naive<<<grid, block>>>(in, out, n); });
  lesson_expect(&l, plain, out, turned);
  lesson_row *const tile = lesson_measure(&l, "tiled", bytes, [=] { tiled<TILE><<<grid, block>>>(in, out, n); });
  lesson_expect(&l, tile, out, turned);
  lesson_row *const pad = lesson_measure(&l, "padded", bytes, [=] { tiled<TILE + 1><<<grid, block>>>(in, out, n); });
  lesson_expect(&l, pad, out, turned);
  lesson_row *const mixed = lesson_measure(&l, "swizzled", bytes, [=] { swizzled<<<grid, block>>>(in, out, n); });
  lesson_expect(&l, mixed, out, turned);
  const lesson_row *best = mixed->us < pad->us ? mixed : pad,
                   *ceiling = restricted->us < copied->us ? restricted : copied;
  if (n % 4 == 0) {
    lesson_row *r =
        lesson_measure(&l, "copy 16 bytes", bytes, [=] { copy_16_bytes<<<grid, block_16_bytes>>>(in, out, n); });
    lesson_expect(&l, r, out, same);
    if (r->us < ceiling->us) ceiling = r;
    r = lesson_measure(&l, "padded 16 bytes", bytes, [=] { padded_16_bytes<<<grid, block_16_bytes>>>(in, out, n); });
    lesson_expect(&l, r, out, turned);
    if (r->us < best->us) best = r;
  }
  l.base = (int)(plain - l.rows);
  lesson_table(&l);

  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "The best transpose, %s, takes %.2f times as long as the best copy; naive takes %.2f times as long.",
               best->variant, best->us / ceiling->us, plain->us / ceiling->us);
    lesson_say(&l, "A tile in shared memory makes it %.2f times as fast, avoiding bank conflicts a further %.2f times.",
               plain->us / tile->us, tile->us / (mixed->us < pad->us ? mixed->us : pad->us));
  } else if (l.mode == LESSON_COUNTED) {
    const lesson_counters *const a = &plain->counted, *const b = &tile->counted, *const c = &pad->counted;
    lesson_say(&l, "A naive store touches %.1f sectors, a tiled one %.1f: %.1f times the traffic for the same matrix.",
               a->store_sectors, b->store_sectors, a->store_sectors / b->store_sectors);
    lesson_say(&l, "A load of a column of the tile takes %.1f passes; with padding %.1f, with a swizzle %.1f.",
               b->load_passes, c->load_passes, mixed->counted.load_passes);
    if (n % 4) lesson_say(&l, "The variants with 16-byte accesses need an n that is a multiple of 4.");
  }
  return lesson_end(&l);
}
