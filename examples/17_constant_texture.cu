/* Lesson 17: constant and texture memory: two memories with a cache and a rule of their own.
 *
 *   constant  64 KiB in all, written by the host. It delivers one word at a time: to all threads of a warp at once, but
 *             if each thread wants another word, one after the other. So it is for values that all threads use at the
 *             same time, such as the weights of a filter, and not for tables in which each thread looks up something
 *             else
 *   texture   one instruction reads the weighted mean of the four pixels around any point, with a rule for what is
 *             outside of the picture; its cache keeps neighbours in both directions. The weights have 8 bits, so the
 *             mean is slightly less exact */
#include <cuda_runtime.h>

__constant__ float filter_weights[3];

/* Each weight is read by all threads at once. */
__global__ void filter_row(const float *in, float *out, int n) {
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i > 0 && i < n - 1)
    out[i] = filter_weights[0] * in[i - 1] + filter_weights[1] * in[i] + filter_weights[2] * in[i + 1];
}

/* The host writes constant memory by its name. in and out are on the device. */
static void launch_filter_row(const float *in, float *out, int n, const float weights[3]) {
  cudaMemcpyToSymbol(filter_weights, weights, sizeof filter_weights);
  filter_row<<<(n + 255) / 256, 256>>>(in, out, n);
}

/* The value between pixels: (x, y) need not be whole numbers. */
__device__ float4 pixel_at(cudaTextureObject_t picture, float x, float y) {
  return tex2D<float4>(picture, x + 0.5f, y + 0.5f); /* the middle of a pixel is at a half */
}

/* A texture object of w x h pixels of 4 bytes: a picture on the device is copied to an array, which has a layout of its
 * own. */
static cudaTextureObject_t make_texture(const unsigned *pixels, size_t w, size_t h, cudaArray_t *array) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
  const size_t row_bytes = w * sizeof(uchar4);
  cudaTextureObject_t texture = 0;
  cudaMallocArray(array, &format, w, h);
  cudaMemcpy2DToArray(*array, 0, 0, pixels, row_bytes, row_bytes, h, cudaMemcpyDeviceToDevice);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = *array;
  cudaTextureDesc reading = {};
  reading.addressMode[0] = reading.addressMode[1] = cudaAddressModeBorder; /* outside is black */
  reading.filterMode = cudaFilterModeLinear;                               /* the mean of four pixels */
  reading.readMode = cudaReadModeNormalizedFloat;                          /* bytes become 0 to 1 */
  cudaCreateTextureObject(&texture, &resource, &reading, NULL);
  return texture;
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, for a picture of 6000 x 4000 pixels:
 *
 *   filter    7 x 7 weights that all threads read at once: constant memory is 4 to 9 % faster than shared, __ldg() and
 *             global. The differences are small, since each weight goes with a load of a pixel that comes from global
 *             memory in all four
 *   look-ups  32 for each pixel, each thread another entry of 256. Constant memory delivers 32 entries one after the
 *             other: 5909 us. Shared memory has 32 banks: 125 us, 47 times as fast. Global memory and __ldg() go
 *             through the same L1 cache: 192 us
 *   rotation  127 us by plain loads, with bounds and weights computed in the kernel; 89 us by a texture, which does
 *             both in hardware */
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

/* Element k, from the memory HOME. */
template <home HOME, class T> __device__ T kept(const T *constant, const T *global, const T *shared, unsigned k) {
  return HOME == CONSTANT ? constant[k] : HOME == SHARED ? shared[k] : HOME == LDG ? __ldg(&global[k]) : global[k];
}

template <class T> __device__ void to_shared(T *shared, const T *global, unsigned count) {
  for (unsigned k = threadIdx.y * TILE_X + threadIdx.x; k < count; k += TILE_X * TILE_Y) shared[k] = global[k];
  __syncthreads();
}

/* A filter of 7 x 7: each weight is used by all threads at once. */
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

/* Each thread of a warp begins with another entry; an entry holds the index of the next one. */
template <home HOME> __global__ void look_up(const unsigned *table, unsigned *out, unsigned w, unsigned h) {
  __shared__ unsigned of_block[ENTRIES];
  if (HOME == SHARED) to_shared(of_block, table, ENTRIES);
  const unsigned x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  if (x >= w || y >= h) return;
  unsigned v = (x + y) % ENTRIES;
  for (int i = 0; i < LOOK_UPS; i++) v = kept<HOME>(constant_table, table, of_block, v);
  out[(size_t)y * w + x] = v;
}

/* The point of the picture that pixel (x, y) of the rotated picture shows. */
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

/* The weighted mean of the four pixels around a point; outside of the picture is black. */
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
  const float4 rgb = pixel_at(in, at.x, at.y);
  out[(size_t)y * w + x] = rounded(255 * rgb.x, 255 * rgb.y, 255 * rgb.z);
}

/* filter_row() at the top, against a loop. */
static void check_filter_row(lesson *l, const lesson_row *row, const float *in, float *out,
                             const std::vector<float> &values) {
  const float weights[] = {-1, 3, -1};
  std::vector<float> got(values.size());
  launch_filter_row(in, out, (int)values.size(), weights);
  GK_CHECK_LAUNCH();
  GK_CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (size_t k = 1; k + 1 < values.size(); k++)
    if (got[k] != 3 * values[k] - values[k - 1] - values[k + 1])
      return lesson_wrong(l, row, "filter_row() gives %g for element %zu", (double)got[k], k);
}

typedef struct rotation {
  lesson_row *by_hand, *by_texture;
  int levels_by_hand, levels_by_texture; /* the largest errors */
} rotation;

/* Both rotations of *shown, whose pixels are on the device, too. *shown becomes the picture that the texture gave. */
static rotation measure_rotation(lesson *l, photo *shown, const unsigned *pixels, unsigned *out) {
  const unsigned w = shown->width, h = shown->height;
  const size_t count = shown->pixels.size();
  const dim3 block(TILE_X, TILE_Y), grid = gk_grid_2d(w, h, block);
  const turn by = {0.8660254f, 0.5f, 0.5f * (float)(w - 1), 0.5f * (float)(h - 1)}; /* 30 degrees */
  photo turned = *shown;
  for (unsigned k = 0; k < count; k++) turned.pixels[k] = mean(shown->pixels.data(), w, h, source(by, k % w, k / w));
  cudaArray_t array;
  const cudaTextureObject_t texture = make_texture(pixels, w, h, &array);
  GK_CHECK(cudaGetLastError());

  rotation r;
  r.by_hand = lesson_measure(l, "rotation by plain loads", (double)count,
                             [=] { rotate_by_hand<<<grid, block>>>(pixels, out, w, h, by); });
  r.levels_by_hand = lesson_levels_off(l, r.by_hand, out, turned, 1);
  r.by_texture = lesson_measure(l, "rotation by texture", (double)count,
                                [=] { rotate_by_texture<<<grid, block>>>(texture, out, w, h, by); });
  GK_CHECK(cudaMemcpy(shown->pixels.data(), out, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  r.levels_by_texture = lesson_levels_off(l, r.by_texture, out, turned, 2);
  r.by_hand->beside = r.by_texture->beside = r.by_hand;
  GK_CHECK(cudaDestroyTextureObject(texture));
  GK_CHECK(cudaFreeArray(array));
  return r;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const photo before = lesson_photo(&l);
  const unsigned w = before.width, h = before.height;
  const size_t count = before.pixels.size();
  const dim3 block(TILE_X, TILE_Y), grid = gk_grid_2d(w, h, block);

  std::vector<float> green(count), filtered(count), weights(WEIGHTS); /* whole numbers: exact in any order */
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
  check_filter_row(&l, filter_from[CONSTANT], in, out, green);
  for (int from = 0; from < 4; from++) {
    snprintf(variant, sizeof variant, "look-ups in a %s table", homes[from]);
    r = table_from[from] =
        lesson_measure(&l, variant, pixels_done, [=] { tables[from]<<<grid, block>>>(global_table, found, w, h); });
    lesson_expect(&l, r, found, looked_up);
    r->beside = table_from[CONSTANT];
  }
  photo shown = before;
  const rotation rotated = measure_rotation(&l, &shown, pixels, found);
  lesson_table(&l);

  const photo pair[] = {before, shown};
  lesson_picture(&l, "17_rotated.png", pair, 2);
  if (l.mode == LESSON_TIMED) {
    const double constant = filter_from[CONSTANT]->us, shared = table_from[SHARED]->us;
    lesson_say(
        &l,
        "If all threads read the same weight: global takes %.2f times as long as constant, __ldg %.2f, shared %.2f.",
        filter_from[GLOBAL]->us / constant, filter_from[LDG]->us / constant, filter_from[SHARED]->us / constant);
    lesson_say(
        &l, "If each thread reads another entry: constant takes %.1f times as long as shared, global %.2f, __ldg %.2f.",
        table_from[CONSTANT]->us / shared, table_from[GLOBAL]->us / shared, table_from[LDG]->us / shared);
    lesson_say(&l, "Rotation by plain loads takes %.2f times as long as by texture.",
               rotated.by_hand->us / rotated.by_texture->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l,
               "If each thread reads another entry, a load takes %.1f sectors of global, %.1f passes of shared memory.",
               table_from[GLOBAL]->counted.load_sectors, table_from[SHARED]->counted.load_passes);
    lesson_say(&l, "Constant memory, which is counted as global memory here, would deliver one word after the other.");
    lesson_say(&l,
               "The stand-in samples a texture by code of its own, whose loads are counted: a GPU makes one request.");
  }
  lesson_say(
      &l,
      "Largest error of a rotated pixel, in levels of 255: %d by plain loads, %d by the 8-bit weights of the texture.",
      rotated.levels_by_hand, rotated.levels_by_texture);
  return lesson_end(&l);
}
