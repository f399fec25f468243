/* Lesson 18: blurring a photograph. Each pixel becomes a weighted mean of the 9 x 9 around it, with the pixel at the
 * edge standing in for those beyond it. Weights are the binomial ones, 1 8 28 56 70 56 28 8 1, in both directions: a
 * Gaussian in all but name. Sums are whole numbers, so that all ways have to agree in every bit.
 *
 *   naive       81 loads for each pixel, most of which a neighbour makes, too: the cache has to do
 *   tiled       a block loads its tile once, with a rim of 4 pixels (the halo), and reads the 81 from shared memory
 *   separable   the weights are a product: 9 loads along rows, then 9 along columns of what that gave; two launches,
 *               with the intermediate sums in memory
 *   fused       both directions in one launch, the intermediate sums in shared memory
 *
 * Loads of the rim are the price of a tile: of 32 x 16 pixels, a tile has 40 x 24 with its rim. */
#include "lesson_photo.h"

static const lesson_about about = {
    "18_blur", "a mean of 9 x 9 pixels: tiles with a halo, rows then columns", PHOTO_COUNTS, 6000, 45, 1, 16384, "GB/s",
};

#define RADIUS 4
#define TILE_X 32
#define TILE_Y 16
#define RIM_X (TILE_X + 2 * RADIUS)
#define RIM_Y (TILE_Y + 2 * RADIUS)
#define WEIGHT_BITS 8 /* in one direction they add up to 1 << 8 */

/* A byte of a constant each, and so no load, once the compiler has unrolled the loop that d comes from. */
__host__ __device__ inline unsigned weight(int d) {
  return (unsigned)(0x01081c3846ull >> 8 * (d < 0 ? -d : d)) & 0xff; /* 70 56 28 8 1 */
}

typedef struct sums {
  unsigned red, green, blue;
} sums;

/* Of a pixel with so many bits for each colour: 8 in a picture, 16 for the sums in one direction, 255 << 8 at most. */
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

/* The block's tile with its rim. Threads that have no pixel load, too. */
__device__ void load_tile(unsigned (*tile)[RIM_X], const unsigned *in, unsigned w, unsigned h) {
  for (unsigned t = threadIdx.y * TILE_X + threadIdx.x; t < RIM_X * RIM_Y; t += TILE_X * TILE_Y) {
    const unsigned x = blockIdx.x * TILE_X + t % RIM_X, y = blockIdx.y * TILE_Y + t / RIM_X;
    tile[t / RIM_X][t % RIM_X] = in[photo_beside(x, y, -RADIUS, -RADIUS, w, h)];
  }
}

__global__ void tiled(const unsigned *in, unsigned *out, unsigned w, unsigned h) {
  __shared__ unsigned tile[RIM_Y][RIM_X];
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
  __shared__ unsigned tile[RIM_Y][RIM_X];
  __shared__ wide_pixel between[RIM_Y][TILE_X];
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  load_tile(tile, in, w, h);
  __syncthreads();
  for (unsigned row = threadIdx.y; row < RIM_Y; row += TILE_Y) {
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
    lesson_say(&l, "A tile with its halo is worth a factor of %.2f%s", plain->us / tile->us,
               plain->us / tile->us < 1.2 ? ": the cache does nearly as well by itself." : ".");
    lesson_say(&l, "Sums along rows and columns, 18 terms in place of 81, are worth %.2f; in one launch %.2f.",
               plain->us / twice->us, plain->us / once->us);
    lesson_say(&l, "The best, %s, takes %.2f times as long as a copy of the picture.", best->variant,
               best->us / copied->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "A warp's requests to memory: %.0f naive, %.0f tiled, %.0f separable, %.0f fused, %.0f for a copy.",
               plain->counted.requests, tile->counted.requests, twice->counted.requests, once->counted.requests,
               copied->counted.requests);
    lesson_say(&l, "A tile is %.2f times as large with its rim. All but its loading are requests to shared memory.",
               (double)(RIM_X * RIM_Y) / (TILE_X * TILE_Y));
  }
  return lesson_end(&l);
}
