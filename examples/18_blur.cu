/* Lesson 18: blurring a photograph. Each pixel becomes a weighted mean of the 9 x 9 pixels around it; at the edge of
 * the picture the outermost pixel stands for those beyond. The weights are binomial, 1 8 28 56 70 56 28 8 1 in both
 * directions, which is close to a Gaussian. Sums are whole numbers, so that all variants agree in every bit.
 *
 *   naive      81 loads for each pixel, most of which its neighbours make, too
 *   tiled      a block loads its tile once, with a halo of 4 pixels on each side, and reads the 81 from shared memory
 *   separable  the weights are a product, so 9 loads along rows are enough, and 9 along columns of the result: two
 *              launches, with the intermediate sums in memory
 *   fused      both directions in one launch, with the intermediate sums in shared memory
 *
 * The halo is the price of a tile: a tile of 32 x 16 pixels has 40 x 24 with its halo. */
#include "lesson_photo.h"

#define RADIUS 4
#define TILE_X 32
#define TILE_Y 16
#define HALO_X (TILE_X + 2 * RADIUS)
#define HALO_Y (TILE_Y + 2 * RADIUS)
#define WEIGHT_BITS 8 /* in one direction they add up to 1 << 8 */

/* The bytes of a constant: no load, once the compiler has unrolled the loop over d. */
__host__ __device__ inline unsigned weight(int d) {
  return (unsigned)(0x01081c3846ull >> 8 * (d < 0 ? -d : d)) & 0xff; /* 70 56 28 8 1 */
}

typedef struct sums {
  unsigned red, green, blue;
} sums;

/* BITS of a pixel for each colour: 8 in a picture, 16 for sums in one direction, which are 255 << 8 at most. */
template <int BITS, class T> __device__ void add(sums *s, T pixel, unsigned by) {
  const unsigned mask = (1u << BITS) - 1;
  s->red += by * ((unsigned)pixel & mask);
  s->green += by * ((unsigned)(pixel >> BITS) & mask);
  s->blue += by * ((unsigned)(pixel >> 2 * BITS) & mask);
}

__device__ unsigned rounded(sums s) {
  const unsigned half = 1u << (2 * WEIGHT_BITS - 1);
  return (s.red + half) >> 2 * WEIGHT_BITS | (s.green + half) >> 2 * WEIGHT_BITS << 8 |
         (s.blue + half) >> 2 * WEIGHT_BITS << 16;
}

typedef unsigned long long wide_pixel;

__device__ wide_pixel halfway(sums s) {
  return (wide_pixel)s.red | (wide_pixel)s.green << 16 | (wide_pixel)s.blue << 32;
}

__global__ void copy(const unsigned *in, unsigned *out, unsigned w, unsigned h) {
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  if (x < w && y < h) out[(size_t)y * w + x] = in[(size_t)y * w + x];
}

__global__ void naive(const unsigned *in, unsigned *out, unsigned w, unsigned h) {
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  if (x >= w || y >= h) return;
  sums s = {};
#pragma unroll
  for (int j = -RADIUS; j <= RADIUS; j++)
#pragma unroll
    for (int i = -RADIUS; i <= RADIUS; i++) add<8>(&s, in[photo_beside(x, y, i, j, w, h)], weight(i) * weight(j));
  out[(size_t)y * w + x] = rounded(s);
}

/* Loads the block's tile with its halo. Threads without a pixel of their own load, too. */
__device__ void load_tile(unsigned (*tile)[HALO_X], const unsigned *in, unsigned w, unsigned h) {
  for (unsigned t = threadIdx.y * TILE_X + threadIdx.x; t < HALO_X * HALO_Y; t += TILE_X * TILE_Y) {
    const unsigned x = blockIdx.x * TILE_X + t % HALO_X, y = blockIdx.y * TILE_Y + t / HALO_X;
    tile[t / HALO_X][t % HALO_X] = in[photo_beside(x, y, -RADIUS, -RADIUS, w, h)];
  }
}

__global__ void tiled(const unsigned *in, unsigned *out, unsigned w, unsigned h) {
  __shared__ unsigned tile[HALO_Y][HALO_X];
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  load_tile(tile, in, w, h);
  __syncthreads();
  if (x >= w || y >= h) return;
  sums s = {};
#pragma unroll
  for (unsigned j = 0; j <= 2 * RADIUS; j++)
#pragma unroll
    for (unsigned i = 0; i <= 2 * RADIUS; i++)
      add<8>(&s, tile[threadIdx.y + j][threadIdx.x + i], weight((int)i - RADIUS) * weight((int)j - RADIUS));
  out[(size_t)y * w + x] = rounded(s);
}

__global__ void along_rows(const unsigned *in, wide_pixel *out, unsigned w, unsigned h) {
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  if (x >= w || y >= h) return;
  sums s = {};
#pragma unroll
  for (int i = -RADIUS; i <= RADIUS; i++) add<8>(&s, in[photo_beside(x, y, i, 0, w, h)], weight(i));
  out[(size_t)y * w + x] = halfway(s);
}

__global__ void along_columns(const wide_pixel *in, unsigned *out, unsigned w, unsigned h) {
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  if (x >= w || y >= h) return;
  sums s = {};
#pragma unroll
  for (int j = -RADIUS; j <= RADIUS; j++) add<16>(&s, in[photo_beside(x, y, 0, j, w, h)], weight(j));
  out[(size_t)y * w + x] = rounded(s);
}

__global__ void fused(const unsigned *in, unsigned *out, unsigned w, unsigned h) {
  __shared__ unsigned tile[HALO_Y][HALO_X];
  __shared__ wide_pixel between[HALO_Y][TILE_X];
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  load_tile(tile, in, w, h);
  __syncthreads();
  for (unsigned row = threadIdx.y; row < HALO_Y; row += TILE_Y) {
    sums s = {};
#pragma unroll
    for (unsigned i = 0; i <= 2 * RADIUS; i++) add<8>(&s, tile[row][threadIdx.x + i], weight((int)i - RADIUS));
    between[row][threadIdx.x] = halfway(s);
  }
  __syncthreads();
  if (x >= w || y >= h) return;
  sums s = {};
#pragma unroll
  for (unsigned j = 0; j <= 2 * RADIUS; j++)
    add<16>(&s, between[threadIdx.y + j][threadIdx.x], weight((int)j - RADIUS));
  out[(size_t)y * w + x] = rounded(s);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, for 6000 x 4000 pixels, in GB/s of pixels read once and written once:
 *
 *   copy       2189: the upper limit for 4-byte accesses
 *   naive      148: 81 loads for each pixel; the L1 cache has the data, but it has to deliver 81 times as much
 *   tiled      254, 1.72 times as fast: 1.9 loads from global memory, 81 from shared memory, whose addresses are simple
 *   separable  502, 3.40 times as fast as naive: 18 loads and multiplications for each colour, not 81. The intermediate
 *              sums of 8 bytes are written and read again
 *   fused      667, 4.51 times as fast: no intermediate sums in memory. Rows of the halo are summed up, too: 24 rows
 *              for a tile of 16 */

static const lesson_about about = {
    "18_blur", "a mean of 9 x 9 pixels: tiles with a halo, rows then columns", PHOTO_COUNTS, 6000, 45, 1, 16384, "GB/s",
};

/* On the host: one colour after the other, first along rows, then along columns. */
static photo blurred(const photo &p) {
  photo out = {p.width, p.height, std::vector<unsigned>(p.pixels.size(), 0u)};
  std::vector<unsigned> sum[2] = {out.pixels, out.pixels};
  for (unsigned shift = 0; shift < 24; shift += 8) {
    for (int columns = 0; columns < 2; columns++)
      for (unsigned y = 0, k = 0; y < p.height; y++)
        for (unsigned x = 0; x < p.width; x++, k++) {
          sum[columns][k] = 0;
          for (int i = -RADIUS; i <= RADIUS; i++) {
            const size_t at = photo_beside(x, y, columns ? 0 : i, columns ? i : 0, p.width, p.height);
            sum[columns][k] += weight(i) * (columns ? sum[0][at] : p.pixels[at] >> shift & 0xff);
          }
        }
    for (size_t k = 0; k < out.pixels.size(); k++)
      out.pixels[k] |= (sum[1][k] + (1u << (2 * WEIGHT_BITS - 1))) >> 2 * WEIGHT_BITS << shift;
  }
  return out;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const photo before = lesson_photo(&l), after = blurred(before);
  const unsigned w = before.width, h = before.height;
  const size_t count = before.pixels.size();
  const unsigned *const in = lesson_array(&l, before.pixels);
  unsigned *const out = lesson_array<unsigned>(&l, count);
  wide_pixel *const between = lesson_array<wide_pixel>(&l, count);
  const dim3 block(TILE_X, TILE_Y), grid = gk_grid_2d(w, h, block);
  const double bytes = 2.0 * (double)count * sizeof(unsigned);

  const lesson_row *const copied = lesson_measure(&l, "copy", bytes, [=] { copy<<<grid, block>>>(in, out, w, h); });
  lesson_expect(&l, copied, out, before.pixels);
  const lesson_row *const plain = lesson_measure(&l, "naive", bytes, [=] { naive<<<grid, block>>>(in, out, w, h); });
  lesson_expect(&l, plain, out, after.pixels);
  const lesson_row *const tile = lesson_measure(&l, "tiled", bytes, [=] { tiled<<<grid, block>>>(in, out, w, h); });
  lesson_expect(&l, tile, out, after.pixels);
  const lesson_row *const twice = lesson_measure(&l, "separable", bytes, [=] {
    along_rows<<<grid, block>>>(in, between, w, h);
    along_columns<<<grid, block>>>(between, out, w, h);
  });
  lesson_expect(&l, twice, out, after.pixels);
  const lesson_row *const once = lesson_measure(&l, "fused", bytes, [=] { fused<<<grid, block>>>(in, out, w, h); });
  lesson_expect(&l, once, out, after.pixels);
  l.base = 1; /* naive */
  lesson_table(&l);

  const photo pair[] = {lesson_corner(before), lesson_corner(after)};
  lesson_picture(&l, "18_blur.png", pair, 2);
  if (l.mode == LESSON_TIMED) {
    const lesson_row *const best = once->us < twice->us ? once : twice;
    lesson_say(&l, "A tile with its halo is %.2f times as fast as naive%s", plain->us / tile->us,
               plain->us / tile->us < 1.2 ? ": the cache does nearly as well by itself." : ".");
    lesson_say(
        &l, "Sums along rows and columns, 18 terms in place of 81, are %.2f times as fast; in one launch %.2f times.",
        plain->us / twice->us, plain->us / once->us);
    lesson_say(&l, "The fastest, %s, takes %.2f times as long as a copy of the picture.", best->variant,
               best->us / copied->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "Requests of warps to memory: naive %.0f, tiled %.0f, separable %.0f, fused %.0f, copy %.0f.",
               plain->counted.requests, tile->counted.requests, twice->counted.requests, once->counted.requests,
               copied->counted.requests);
    lesson_say(&l,
               "A tile is %.2f times as large with its halo. After loading its tile, the tiled kernel reads only "
               "shared memory.",
               (double)(HALO_X * HALO_Y) / (TILE_X * TILE_Y));
  }
  return lesson_end(&l);
}
