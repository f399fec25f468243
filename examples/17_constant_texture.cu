/* Lesson 17: constant and texture memory, two ways to read with a cache of its own and a rule of its own.
 *
 *   constant   64 KB in all, set by the host. It delivers one word at a time: all threads of a warp get the same one as
 *              fast as a register, but if each wants another, they wait for each other. So it is for weights that all
 *              use at the same time (a filter), and not for tables in which each thread looks up something else.
 *   __ldg()    global memory that nobody writes meanwhile: another instruction, today by way of the same cache
 *   shared     32 words at a time, if they lie in 32 banks; each block has to copy them there first
 *   texture    coordinates that are no whole numbers, the mean of the four pixels around them, and what lies outside a
 *              picture, all in one instruction; its cache keeps neighbours in both directions. The weights of that mean
 *              have 8 bits after the point, so that results are a little less exact. */
#include "lesson_photo.h"

static const lesson_about about = {"17_constant_texture",
                                   "weights, tables and pictures in memories made for them",
                                   "pixels in a row; there are two thirds as many rows",
                                   6000,
                                   48,
                                   1,
                                   16384,
                                   "Gpixel/s"};

#define RADIUS 3
#define SIDE (2 * RADIUS + 1)
#define WEIGHTS (SIDE * SIDE)
#define ENTRIES 256 /* of the table */
#define LOOK_UPS 32
#define TILE_X 32
#define TILE_Y 8

enum home { CONSTANT, GLOBAL, LDG, SHARED };
static const char *const homes[] = {"constant", "global", "__ldg", "shared"};

__constant__ float constant_weights[WEIGHTS];
__constant__ unsigned constant_table[ENTRIES];

__host__ __device__ inline int clamp(int i, unsigned n) { return i < 0 ? 0 : i >= (int)n ? (int)n - 1 : i; }

/* Element k, from wherever it is kept. */
template <home HOME, class T> __device__ T kept(const T *constant, const T *global, const T *shared, unsigned k) {
  if (HOME == CONSTANT) return constant[k];
  if (HOME == SHARED) return shared[k];
  return HOME == LDG ? __ldg(&global[k]) : global[k];
}

template <class T> __device__ void to_shared(T *shared, const T *global, unsigned count) {
  for (unsigned k = threadIdx.y * TILE_X + threadIdx.x; k < count; k += TILE_X * TILE_Y) shared[k] = global[k];
  __syncthreads();
}

/* Each weight is used by all threads at once. */
template <home HOME> __global__ void filter(const float *in, const float *weights, float *out, unsigned w, unsigned h) {
  __shared__ float of_block[WEIGHTS];
  if (HOME == SHARED) to_shared(of_block, weights, WEIGHTS);
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  if (x >= w || y >= h) return;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < WEIGHTS; k++) {
    const float by = kept<HOME>(constant_weights, weights, of_block, (unsigned)k);
    sum += by * in[(size_t)clamp((int)y + k / SIDE - RADIUS, h) * w + (size_t)clamp((int)x + k % SIDE - RADIUS, w)];
  }
  out[(size_t)y * w + x] = sum;
}

/* Each thread of a warp begins with another entry, and goes on with the one whose number stands there. */
template <home HOME> __global__ void look_up(const unsigned *table, unsigned *out, unsigned w, unsigned h) {
  __shared__ unsigned of_block[ENTRIES];
  if (HOME == SHARED) to_shared(of_block, table, ENTRIES);
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  if (x >= w || y >= h) return;
  unsigned v = (x + y) % ENTRIES;
  for (int i = 0; i < LOOK_UPS; i++) v = kept<HOME>(constant_table, table, of_block, v);
  out[(size_t)y * w + x] = v;
}

/* Where pixel (x, y) of the rotated picture comes from. */
typedef struct turn {
  float cosine, sine, middle_x, middle_y;
} turn;
__host__ __device__ inline float2 source(turn t, unsigned x, unsigned y) {
  const float right = (float)x - t.middle_x, down = (float)y - t.middle_y;
  return make_float2(t.middle_x + t.cosine * right - t.sine * down, t.middle_y + t.sine * right + t.cosine * down);
}

/* A part of pixel (x, y), which is black outside. */
__host__ __device__ inline void mix(float rgb[3], const unsigned *in, int x, int y, unsigned w, unsigned h, float by) {
  if (x < 0 || y < 0 || x >= (int)w || y >= (int)h) return;
  const unsigned pixel = in[(size_t)y * w + (size_t)x];
  for (int c = 0; c < 3; c++) rgb[c] += by * (float)(pixel >> 8 * c & 0xff);
}

__host__ __device__ inline unsigned rounded(float red, float green, float blue) {
  return photo_pixel((unsigned)(red + 0.5f), (unsigned)(green + 0.5f), (unsigned)(blue + 0.5f));
}

/* The mean of the four pixels around a point, the nearer the more. */
__host__ __device__ inline unsigned mean(const unsigned *in, unsigned w, unsigned h, float2 at) {
  const float left = floorf(at.x), top = floorf(at.y), dx = at.x - left, dy = at.y - top;
  const int i = (int)left, j = (int)top;
  float rgb[3] = {};
  mix(rgb, in, i, j, w, h, (1 - dx) * (1 - dy));
  mix(rgb, in, i + 1, j, w, h, dx * (1 - dy));
  mix(rgb, in, i, j + 1, w, h, (1 - dx) * dy);
  mix(rgb, in, i + 1, j + 1, w, h, dx * dy);
  return rounded(rgb[0], rgb[1], rgb[2]);
}

__global__ void rotate_by_hand(const unsigned *in, unsigned *out, unsigned w, unsigned h, turn by) {
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  if (x < w && y < h) out[(size_t)y * w + x] = mean(in, w, h, source(by, x, y));
}

__global__ void rotate_by_texture(cudaTextureObject_t in, unsigned *out, unsigned w, unsigned h, turn by) {
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  if (x >= w || y >= h) return;
  const float2 at = source(by, x, y);
  const float4 rgb = tex2D<float4>(in, at.x + 0.5f, at.y + 0.5f); /* pixels have their middles at halves */
  out[(size_t)y * w + x] = rounded(255 * rgb.x, 255 * rgb.y, 255 * rgb.z);
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const photo before = lesson_photo(&l);
  const unsigned w = before.width, h = before.height;
  const size_t count = before.pixels.size();
  const dim3 grid((w + TILE_X - 1) / TILE_X, (h + TILE_Y - 1) / TILE_Y), block(TILE_X, TILE_Y);

  std::vector<float> green(count), filtered(count), weights(WEIGHTS); /* whole numbers: exact in whatever order */
  for (size_t k = 0; k < count; k++) green[k] = (float)(before.pixels[k] >> 8 & 0xff);
  for (int k = 0; k < WEIGHTS; k++) weights[(size_t)k] = (float)(k * k % 11) - 5;
  for (int y = 0, at = 0; y < (int)h; y++)
    for (int x = 0; x < (int)w; x++, at++)
      for (int k = 0; k < WEIGHTS; k++)
        filtered[(size_t)at] +=
            weights[(size_t)k] *
            green[(size_t)clamp(y + k / SIDE - RADIUS, h) * w + (size_t)clamp(x + k % SIDE - RADIUS, w)];
  std::vector<unsigned> table(ENTRIES), looked_up(count);
  for (unsigned v = 0; v < ENTRIES; v++) table[v] = (5 * v + 77) % ENTRIES;
  for (size_t k = 0; k < count; k++) {
    looked_up[k] = (unsigned)(k % w + k / w) % ENTRIES;
    for (int i = 0; i < LOOK_UPS; i++) looked_up[k] = table[looked_up[k]];
  }
  const float *const in = lesson_array(&l, green), *const global_weights = lesson_array(&l, weights);
  const unsigned *const global_table = lesson_array(&l, table), *const pixels = lesson_array(&l, before.pixels);
  float *const out = lesson_array<float>(&l, count);
  unsigned *const found = lesson_array<unsigned>(&l, count);
  GK_CHECK(cudaMemcpyToSymbol(constant_weights, weights.data(), sizeof constant_weights));
  GK_CHECK(cudaMemcpyToSymbol(constant_table, table.data(), sizeof constant_table));

  void (*const filters[])(const float *, const float *, float *, unsigned,
                          unsigned) = {filter<CONSTANT>, filter<GLOBAL>, filter<LDG>, filter<SHARED>};
  void (*const tables[])(const unsigned *, unsigned *, unsigned, unsigned) = {look_up<CONSTANT>, look_up<GLOBAL>,
                                                                              look_up<LDG>, look_up<SHARED>};
  lesson_row *filter_from[4], *table_from[4];
  char variant[48];
  for (int from = 0; from < 4; from++) {
    const auto kernel = filters[from];
    snprintf(variant, sizeof variant, "filter by %s weights", homes[from]);
    filter_from[from] =
        lesson_measure(&l, variant, (double)count, [=] { kernel<<<grid, block>>>(in, global_weights, out, w, h); });
    lesson_expect(&l, filter_from[from], out, filtered);
  }
  for (int from = 0; from < 4; from++) {
    const auto kernel = tables[from];
    snprintf(variant, sizeof variant, "look-ups in a %s table", homes[from]);
    table_from[from] =
        lesson_measure(&l, variant, (double)count, [=] { kernel<<<grid, block>>>(global_table, found, w, h); });
    table_from[from]->beside = table_from[CONSTANT];
    lesson_expect(&l, table_from[from], found, looked_up);
  }

  const float angle = 3.14159265f / 6;
  const turn by = {cosf(angle), sinf(angle), 0.5f * (float)(w - 1), 0.5f * (float)(h - 1)};
  photo turned = before, shown = before;
  for (unsigned k = 0; k < count; k++) turned.pixels[k] = mean(before.pixels.data(), w, h, source(by, k % w, k / w));

  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
  cudaResourceDesc resource = {};
  cudaTextureDesc reading = {};
  cudaTextureObject_t texture;
  GK_CHECK(cudaMallocArray(&array, &format, w, h));
  GK_CHECK(
      cudaMemcpy2DToArray(array, 0, 0, pixels, w * sizeof(uchar4), w * sizeof(uchar4), h, cudaMemcpyDeviceToDevice));
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  reading.addressMode[0] = reading.addressMode[1] = cudaAddressModeBorder; /* black outside */
  reading.filterMode = cudaFilterModeLinear;
  reading.readMode = cudaReadModeNormalizedFloat; /* 0 to 1, of a byte */
  GK_CHECK(cudaCreateTextureObject(&texture, &resource, &reading, NULL));

  lesson_row *const by_hand = lesson_measure(&l, "rotation by plain loads", (double)count,
                                             [=] { rotate_by_hand<<<grid, block>>>(pixels, found, w, h, by); });
  const int off_by_hand = lesson_levels_off(found, turned);
  lesson_row *const by_texture = lesson_measure(&l, "rotation by texture", (double)count,
                                                [=] { rotate_by_texture<<<grid, block>>>(texture, found, w, h, by); });
  GK_CHECK(cudaMemcpy(shown.pixels.data(), found, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  const int off_texture = lesson_levels_off(found, turned);
  GK_CHECK(cudaDestroyTextureObject(texture));
  GK_CHECK(cudaFreeArray(array));
  by_hand->beside = by_texture->beside = by_hand;
  if (off_by_hand > 1) lesson_wrong(&l, by_hand, "%d levels off", off_by_hand);
  if (off_texture > 2) lesson_wrong(&l, by_texture, "%d levels off", off_texture);
  lesson_table(&l);

  const photo pair[] = {before, shown};
  lesson_picture(&l, "17_rotated.png", pair, 2);
  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "Weights for all at once: global %.2f times as long as constant, __ldg %.2f, shared %.2f.",
               filter_from[GLOBAL]->us / filter_from[CONSTANT]->us, filter_from[LDG]->us / filter_from[CONSTANT]->us,
               filter_from[SHARED]->us / filter_from[CONSTANT]->us);
    lesson_say(&l,
               "Another entry for each thread: constant %.1f times as long as shared, global %.2f times, __ldg %.2f.",
               table_from[CONSTANT]->us / table_from[SHARED]->us, table_from[GLOBAL]->us / table_from[SHARED]->us,
               table_from[LDG]->us / table_from[SHARED]->us);
    lesson_say(&l,
               "Rotating by plain loads takes %.2f times as long as by texture; at most %d and %d of 255 levels off.",
               by_hand->us / by_texture->us, off_by_hand, off_texture);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l,
               "Threads that look up another entry each cost %.1f sectors in global and %.1f passes in shared memory;",
               table_from[GLOBAL]->counted.load_sectors, table_from[SHARED]->counted.load_passes);
    lesson_say(&l,
               "a constant cache would give them one word after the other. (It is counted like global memory here.)");
    lesson_say(&l, "Rotated pixels are at most %d of 255 levels off by plain loads, %d by a texture's 8-bit weights.",
               off_by_hand, off_texture);
  }
  return lesson_end(&l);
}
