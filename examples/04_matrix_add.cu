/* Lesson 4: matrix add. Blocks of two dimensions cover a matrix that lies in memory row by row: the element in row y
 * and column x is number y * width + x. Both coordinates have bounds, since blocks reach beyond both edges.
 *
 * Threads are numbered with x first. So x has to be the column: then the 32 threads of a warp, which have
 * neighbouring x, read neighbouring floats. If x is the row, they read a column, each float from another sector of
 * memory. For the same reason a block should be at least 32 wide, or 8, which fills a sector: less is waste,
 * whatever the number of threads. The height, and how many threads a block has, matter much less. */
#include "lesson.h"

static const lesson_about about = {"04_matrix_add",
                                   "blocks of two dimensions: row-major order, bounds, shapes",
                                   "rows; there are half as many columns again",
                                   8192,
                                   192,
                                   1,
                                   32768,
                                   "GB/s"};

__global__ void x_is_column(const float *a, const float *b, float *c, unsigned width, unsigned height) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const size_t i = (size_t)y * width + x;
  c[i] = a[i] + b[i];
}

/* The mistake: it is right, and slow. */
__global__ void x_is_row(const float *a, const float *b, float *c, unsigned width, unsigned height) {
  const unsigned y = blockIdx.x * blockDim.x + threadIdx.x, x = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const size_t i = (size_t)y * width + x;
  c[i] = a[i] + b[i];
}

/* Each thread goes down a column. */
__global__ void columns(const float *a, const float *b, float *c, unsigned width, unsigned height) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= width) return;
  for (unsigned y = 0; y < height; y++) {
    const size_t i = (size_t)y * width + x;
    c[i] = a[i] + b[i];
  }
}

/* Each thread goes along a row: again its neighbours are a row apart. */
__global__ void rows(const float *a, const float *b, float *c, unsigned width, unsigned height) {
  const unsigned y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= height) return;
  for (unsigned x = 0; x < width; x++) {
    const size_t i = (size_t)y * width + x;
    c[i] = a[i] + b[i];
  }
}

static unsigned ceil_div(unsigned n, unsigned by) { return (n + by - 1) / by; }

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
    const dim3 grid(ceil_div(width, block.x), ceil_div(height, block.y));
    r = lesson_measure(&l, variant, bytes, [=] { x_is_column<<<grid, block>>>(a, b, c, width, height); });
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
    lesson_say(&l, "With x as the row a block of 32 x 8 takes %.2f times as long.", wrong->us / by_shape[0]->us);
    lesson_say(&l,
               "A thread for each column takes %.2f times as long as one for each element, for each row %.2f times.",
               down->us / by_shape[0]->us, along->us / by_shape[0]->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "A load costs %.1f sectors in blocks 32 wide, %.1f in those 8 wide, %.1f in those 1 wide.",
               by_shape[0]->counted.load_sectors, by_shape[2]->counted.load_sectors, by_shape[4]->counted.load_sectors);
    lesson_say(&l, "With x as the row it costs %.1f, in a block of the same shape as the %.1f.",
               wrong->counted.load_sectors, by_shape[0]->counted.load_sectors);
    lesson_say(&l, "A thread for each column has %.1f sectors a load, one for each row %.1f.",
               down->counted.load_sectors, along->counted.load_sectors);
  }
  return lesson_end(&l);
}
