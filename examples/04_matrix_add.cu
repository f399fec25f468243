/* Lesson 4: matrix add. A block of two dimensions covers a rectangle of a matrix. The matrix is stored row by row: the
 * element in row y and column x has index y * width + x. Both coordinates need a bounds check, since blocks reach
 * beyond the right and the lower edge. */
#include <cuda_runtime.h>

__global__ void x_is_column(const float *a, const float *b, float *c, unsigned width, unsigned height) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const size_t i = (size_t)y * width + x;
  c[i] = a[i] + b[i];
}

static unsigned ceil_div(unsigned n, unsigned by) { return (n + by - 1) / by; }

static void matrix_add(const float *a, const float *b, float *c, unsigned width, unsigned height, dim3 block) {
  const dim3 grid(ceil_div(width, block.x), ceil_div(height, block.y));
  x_is_column<<<grid, block>>>(a, b, c, width, height);
}

/* A common mistake: the result is right, but neighbouring threads are a row apart. */
__global__ void x_is_row(const float *a, const float *b, float *c, unsigned width, unsigned height) {
  const unsigned y = blockIdx.x * blockDim.x + threadIdx.x, x = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const size_t i = (size_t)y * width + x;
  c[i] = a[i] + b[i];
}

/* One thread for each column. */
__global__ void columns(const float *a, const float *b, float *c, unsigned width, unsigned height) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= width) return;
  for (unsigned y = 0; y < height; y++) {
    const size_t i = (size_t)y * width + x;
    c[i] = a[i] + b[i];
  }
}

/* One thread for each row: again neighbouring threads are a row apart. */
__global__ void rows(const float *a, const float *b, float *c, unsigned width, unsigned height) {
  const unsigned y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= height) return;
  for (unsigned x = 0; x < width; x++) {
    const size_t i = (size_t)y * width + x;
    c[i] = a[i] + b[i];
  }
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * In a block whose width is a multiple of 32, a warp is 32 threads with consecutive x. With x as the column they read
 * 32 consecutive floats: 4 sectors of 32 bytes. On an H200 a block's shape matters by up to eight times, for two
 * reasons:
 *
 *   width    8 floats fill a sector. Blocks 8 or more wide use whole sectors: 8 x 32, 16 x 16 and 32 x 8 reach 2760 to
 *            3287 GB/s. A warp of a block 4 wide uses half of each sector (1673 GB/s), of a block 1 wide an eighth (433
 *            GB/s)
 *   threads  32 x 2 and 32 x 1 read as well as 32 x 8, but at 1271 and 637 GB/s: they need 1.6 and 3.1 million blocks,
 *            and the GPU starts at most 1.7 blocks a nanosecond. In blocks of 1024 threads (32 x 32: 2661 GB/s) only
 *            two fit on a multiprocessor, and nothing new starts until the last warp of one of them has ended
 *
 * So take x as the column, at least 32 wide, and 128 to 512 threads; among such blocks the shape hardly matters (64 x 4
 * and 256 x 1 are 4 % faster than 32 x 8). The other mappings:
 *
 *   x as row           a warp reads 32 sectors for each load, and uses 4 bytes of each. The other warps of the block
 *                      use the rest, partly out of the cache: 4.5 times as slow as x as the column, not 8
 *   a thread a column  coalesced, but 12,288 threads are 5 % of those that fit on the GPU: too few loads are under way
 *   a thread a row     8192 threads and not coalesced, yet faster than the columns: a warp has 32 sectors under way,
 *                      not 4, and the next 7 iterations find theirs in the cache */
#include "lesson.h"

static const lesson_about about = {"04_matrix_add",
                                   "blocks of two dimensions: row-major order, bounds, shapes",
                                   "rows; there are 3/2 as many columns",
                                   8192,
                                   192,
                                   1,
                                   32768,
                                   "GB/s"};

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned height = (unsigned)l.n, width = height + height / 2;
  const size_t count = (size_t)width * height;
  const double bytes = 3.0 * (double)count * sizeof(float);
  std::vector<float> first(count), second(count), sum(count);
  for (size_t i = 0; i < count; i++) {
    first[i] = (float)(i % 4099), second[i] = (float)(i % 1021);
    sum[i] = first[i] + second[i];
  }
  const float *const a = lesson_array(&l, first), *const b = lesson_array(&l, second);
  float *const c = lesson_array<float>(&l, count);

  const dim3 shapes[] = {dim3(32, 8), dim3(16, 16), dim3(8, 32),  dim3(4, 64), dim3(1, 256),
                         dim3(64, 4), dim3(256, 1), dim3(32, 32), dim3(32, 2), dim3(32, 1)};
  const lesson_row *by_shape[sizeof shapes / sizeof *shapes];
  const lesson_row *best = NULL, *worst = NULL, *r;
  char variant[48];
  int k = 0;
  for (const dim3 block : shapes) {
    snprintf(variant, sizeof variant, "block %u x %u", block.x, block.y);
    r = lesson_measure(&l, variant, bytes, [=] { matrix_add(a, b, c, width, height, block); });
    lesson_expect(&l, r, c, sum);
    by_shape[k++] = r;
    if (!best || r->us < best->us) best = r;
    if (!worst || r->us > worst->us) worst = r;
  }
  const dim3 block(32, 8), grid(ceil_div(height, block.x), ceil_div(width, block.y));
  const lesson_row *const wrong =
      lesson_measure(&l, "32 x 8 with x as row", bytes, [=] { x_is_row<<<grid, block>>>(a, b, c, width, height); });
  lesson_expect(&l, wrong, c, sum);
  const lesson_row *const down = lesson_measure(&l, "a thread a column", bytes,
                                                [=] { columns<<<ceil_div(width, 64), 64>>>(a, b, c, width, height); });
  lesson_expect(&l, down, c, sum);
  const lesson_row *const along =
      lesson_measure(&l, "a thread a row", bytes, [=] { rows<<<ceil_div(height, 64), 64>>>(a, b, c, width, height); });
  lesson_expect(&l, along, c, sum);
  lesson_table(&l);

  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "The best shape is %s; the worst, %s, takes %.2f times as long.", best->variant, worst->variant,
               worst->us / best->us);
    lesson_say(
        &l, "Blocks of 32 x 1 take %.2f times as long as 32 x 8: %.1f blocks start in a nanosecond, and no more can.",
        by_shape[9]->us / by_shape[0]->us, (double)ceil_div(width, 32) * (double)height / by_shape[9]->us * 1e-3);
    lesson_say(&l, "With x as the row, blocks of 32 x 8 take %.2f times as long.", wrong->us / by_shape[0]->us);
    lesson_say(
        &l, "A thread for each column takes %.2f times as long as a thread for each element, for each row %.2f times.",
        down->us / by_shape[0]->us, along->us / by_shape[0]->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l,
               "A load of a warp touches %.1f sectors in blocks 32 wide, %.1f in blocks 8 wide, %.1f in blocks 1 wide.",
               by_shape[0]->counted.load_sectors, by_shape[2]->counted.load_sectors, by_shape[4]->counted.load_sectors);
    lesson_say(&l, "With x as the row it touches %.1f in a block of 32 x 8, with x as the column %.1f.",
               wrong->counted.load_sectors, by_shape[0]->counted.load_sectors);
    lesson_say(&l, "With a thread for each column it touches %.1f sectors, with a thread for each row %.1f.",
               down->counted.load_sectors, along->counted.load_sectors);
  }
  return lesson_end(&l);
}
