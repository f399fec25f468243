/* Lesson 17: constant and texture memory, two ways to read with a cache of its own and a rule of its own.
 *
 *   constant   64 KB in all, set by the host. It delivers one word at a time: at once to all threads of a warp, but if
 *              each wants another, they wait for each other. So it is for weights that all use at the same time (a
 *              filter), and not for tables in which each thread looks up something else.
 *   __ldg()    global memory that nobody writes meanwhile: another instruction, today by way of the same cache
 *   shared     32 words at a time, if they lie in 32 banks; each block has to copy them there first
 *   texture    the mean of the four pixels around any point, and what lies outside a picture, in one instruction; its
 *              cache keeps neighbours in both directions. The mean's weights have 8 bits: it is a little less exact. */
#include "lesson_photo.h"

static const lesson_about about = {
    "17_constant_texture", "memories with caches and rules of their own", PHOTO_COUNTS, 6000, 35, 1, 16384, "Gpixel/s",
};

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

/* Element k, from wherever it is kept. */
template <home HOME, class T> __device__ T kept(const T *constant, const T *global, const T *shared, unsigned k) {
  return HOME == CONSTANT ? constant[k] : HOME == SHARED ? shared[k] : HOME == LDG ? __ldg(&global[k]) : global[k];
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
    const size_t at = photo_beside(x, y, k % SIDE - RADIUS, k / SIDE - RADIUS, w, h);
    sum += kept<HOME>(constant_weights, weights, of_block, (unsigned)k) * in[at];
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

__host__ __device__ inline unsigned rounded(float red, float green, float blue) {
  return photo_pixel((unsigned)(red + 0.5f), (unsigned)(green + 0.5f), (unsigned)(blue + 0.5f));
}

/* The mean of the four pixels around a point, the nearer the more; outside the picture is black. */
__host__ __device__ inline unsigned mean(const unsigned *in, unsigned w, unsigned h, float2 at) {
  float rgb[3] = {};
  for (int k = 0; k < 4; k++) {
    const int x = (int)floorf(at.x) + k % 2, y = (int)floorf(at.y) + k / 2;
    if (x < 0 || y < 0 || x >= (int)w || y >= (int)h) continue;
    const float by = (1 - fabsf(at.x - (float)x)) * (1 - fabsf(at.y - (float)y));
    const unsigned pixel = in[(size_t)y * w + (size_t)x];
    for (int c = 0; c < 3; c++) rgb[c] += by * (float)(pixel >> 8 * c & 0xff);
  }
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
  const dim3 block(TILE_X, TILE_Y), grid = gk_grid_2d(w, h, block);

  std::vector<float> green(count), filtered(count), weights(WEIGHTS); /* whole numbers: exact in whatever order */
  for (size_t k = 0; k < count; k++) green[k] = (float)(before.pixels[k] >> 8 & 0xff);
  for (int k = 0; k < WEIGHTS; k++) weights[(size_t)k] = (float)(k * k % 11) - 5;
  for (unsigned at = 0; at < count; at++)
    for (int k = 0; k < WEIGHTS; k++)
      filtered[at] +=
          weights[(size_t)k] * green[photo_beside(at % w, at / w, k % SIDE - RADIUS, k / SIDE - RADIUS, w, h)];
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

  decltype(&filter<CONSTANT>) const filters[] = {filter<CONSTANT>, filter<GLOBAL>, filter<LDG>, filter<SHARED>};
  decltype(&look_up<CONSTANT>) const tables[] = {look_up<CONSTANT>, look_up<GLOBAL>, look_up<LDG>, look_up<SHARED>};
  lesson_row *filter_from[4], *table_from[4], *r;
  const double pixels_done = (double)count;
  char variant[48];
  for (int from = 0; from < 4; from++) {
    snprintf(variant, sizeof variant, "filter by %s weights", homes[from]);
    r = filter_from[from] = lesson_measure(&l, variant, pixels_done,
                                           [=] { filters[from]<<<grid, block>>>(in, global_weights, out, w, h); });
    lesson_expect(&l, r, out, filtered);
  }
  for (int from = 0; from < 4; from++) {
    snprintf(variant, sizeof variant, "look-ups in a %s table", homes[from]);
    r = table_from[from] =
        lesson_measure(&l, variant, pixels_done, [=] { tables[from]<<<grid, block>>>(global_table, found, w, h); });
    lesson_expect(&l, r, found, looked_up);
    r->beside = table_from[CONSTANT];
  }
  const turn by = {0.8660254f, 0.5f, 0.5f * (float)(w - 1), 0.5f * (float)(h - 1)}; /* 30 degrees */
  photo turned = before, shown = before;
  for (unsigned k = 0; k < count; k++) turned.pixels[k] = mean(before.pixels.data(), w, h, source(by, k % w, k / w));

  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
  cudaResourceDesc resource = {};
  cudaTextureDesc reading = {};
  cudaTextureObject_t texture;
  GK_CHECK(cudaMallocArray(&array, &format, w, h));
  const size_t row_bytes = w * sizeof(uchar4);
  GK_CHECK(cudaMemcpy2DToArray(array, 0, 0, pixels, row_bytes, row_bytes, h, cudaMemcpyDeviceToDevice));
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  reading.addressMode[0] = reading.addressMode[1] = cudaAddressModeBorder; /* black outside */
  reading.filterMode = cudaFilterModeLinear;
  reading.readMode = cudaReadModeNormalizedFloat; /* 0 to 1, of a byte */
  GK_CHECK(cudaCreateTextureObject(&texture, &resource, &reading, NULL));

  lesson_row *const by_hand = lesson_measure(&l, "rotation by plain loads", pixels_done,
                                             [=] { rotate_by_hand<<<grid, block>>>(pixels, found, w, h, by); });
  const int off_by_hand = lesson_levels_off(&l, by_hand, found, turned, 1);
  lesson_row *const by_texture = lesson_measure(&l, "rotation by texture", pixels_done,
                                                [=] { rotate_by_texture<<<grid, block>>>(texture, found, w, h, by); });
  GK_CHECK(cudaMemcpy(shown.pixels.data(), found, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  const int off_texture = lesson_levels_off(&l, by_texture, found, turned, 2);
  GK_CHECK(cudaDestroyTextureObject(texture));
  GK_CHECK(cudaFreeArray(array));
  by_hand->beside = by_texture->beside = by_hand;
  lesson_table(&l);

  const photo pair[] = {before, shown};
  lesson_picture(&l, "17_rotated.png", pair, 2);
  if (l.mode == LESSON_TIMED) {
    const double constant = filter_from[CONSTANT]->us, shared = table_from[SHARED]->us;
    lesson_say(&l, "Weights for all at once: global %.2f times as long as constant, __ldg %.2f, shared %.2f.",
               filter_from[GLOBAL]->us / constant, filter_from[LDG]->us / constant, filter_from[SHARED]->us / constant);
    lesson_say(&l, "Another entry for each thread: constant %.1f times as long as shared, global %.2f, __ldg %.2f.",
               table_from[CONSTANT]->us / shared, table_from[GLOBAL]->us / shared, table_from[LDG]->us / shared);
    lesson_say(&l, "Rotating by plain loads takes %.2f times as long as by texture.", by_hand->us / by_texture->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(
        &l, "If each thread looks up another entry, that takes %.1f sectors of global, %.1f passes of shared memory;",
        table_from[GLOBAL]->counted.load_sectors, table_from[SHARED]->counted.load_passes);
    lesson_say(&l, "a constant cache, counted like global memory here, would give one word after the other.");
  }
  lesson_say(&l, "Rotated pixels are %d of 255 levels off at most by plain loads, %d by a texture's 8-bit weights.",
             off_by_hand, off_texture);
  return lesson_end(&l);
}
