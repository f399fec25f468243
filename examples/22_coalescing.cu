/* Lesson 22: coalescing. Global memory is read in sectors of 32 bytes, four of which are a cache line of 128. The 32
 * loads of a warp are one request, which costs as many sectors as it touches: 4 if the threads read 32 consecutive
 * floats, in any order; 32 if no two of the floats are in one sector. The other bytes of a sector are wasted, unless a
 * later request finds them in a cache. So neighbouring threads should read neighbouring floats.
 *
 * In an array of structures the same member of the next structure is a whole structure away. In a structure of arrays
 * it is the next float. If a thread needs the whole structure, one 16-byte load of it is as good. The compiler makes
 * that load only if it knows that the structure is aligned to 16 bytes. */
#include <cuda_runtime.h>

#define BLOCK 256

struct particle { /* aligned to 4 bytes, as a float is */
  float x, y, z, mass;
};
struct __align__(16) aligned_particle {
  float x, y, z, mass;
};

__global__ void read_strided(const float *in, float *out, unsigned n, unsigned stride, unsigned offset) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = in[(size_t)i * stride + offset];
}

/* The index of the float that thread i reads, in no order. */
__host__ __device__ inline unsigned scattered(unsigned i, unsigned n) { return (i * 2654435761u) % n; }

__global__ void read_scattered(const float *in, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = in[scattered(i, n)];
}

/* Backwards within each warp. */
__global__ void read_backwards(const float *in, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = in[i ^ 31];
}

__global__ void one_member(const particle *p, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = p[i].x;
}

/* Four 4-byte loads of a particle, one 16-byte load of an aligned_particle. */
template <class Particle> __global__ void all_members(const Particle *p, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  const Particle q = p[i];
  out[i] = q.x + q.y + q.z + q.mass;
}

__global__ void all_arrays(const float *x, const float *y, const float *z, const float *mass, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i] + z[i] + mass[i];
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, in GB/s of useful bytes: the floats that are read and the float that is written. n is 2^24.
 *
 *   offset 0                2522. One 4-byte load in each thread is too little to reach the limit of the memory
 *   offset 1 to 16          2454, 3 % less: a request touches two cache lines, not one, and with offsets 1 and
 *                           4 also a fifth sector. The next warp finds the surplus bytes in the cache. On a G80 (2006)
 *                           such an offset made 16 transactions of one
 *   stride 2, 4, 8          2270, 1626, 966: 8, 16, 32 sectors for each request. At stride 4 this already is the limit:
 *                           with the unused bytes 4065 GB/s are read and written
 *   stride 16, 32           516, 451: each float has a sector of its own, as at stride 8. But the memory delivers 64
 *                           bytes at a time, of which stride 8 uses both sectors
 *   backwards               2563: the same sectors in another order
 *   scattered               447: a sector for each float, in no order
 *   x of structures         1632, as stride 4. As an array of its own: 2522
 *   structures by member    4057: four requests of 16 sectors each for all four members. Three of them find their
 *                           sectors in the L1; the memory is still the limit
 *   structures by 16 bytes  4079: the same source with a structure that is aligned to 16 bytes, so one request of 16
 *                           sectors
 *   all arrays              4079: four requests of 4 sectors */
#include "lesson.h"

static const lesson_about about = {"22_coalescing",
                                   "neighbouring threads should read neighbouring floats",
                                   "floats that are written, each by a thread",
                                   1 << 24,
                                   1 << 12,
                                   1,
                                   1 << 26,
                                   "GB/s"};

#define MOST 32 /* the largest stride and offset */

__host__ __device__ inline float content(size_t i) { return (float)(i & 0xffff); }

__global__ void fill(float *in, size_t count) {
  GK_FOR_1D (i, count) in[i] = content(i);
}

/* The values that the threads have to write, by the index that each of them reads. */
template <class Index> static std::vector<float> reading(size_t n, Index index) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; i++) v[i] = content(index(i));
  return v;
}

/* The sums of four members: element i begins at i * step, and its members are `apart` floats apart. */
static std::vector<float> sums_of_four(size_t n, size_t step, size_t apart) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; i++)
    v[i] =
        content(i * step) + content(i * step + apart) + content(i * step + 2 * apart) + content(i * step + 3 * apart);
  return v;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n, grid = (n + BLOCK - 1) / BLOCK;
  const size_t count = l.n * MOST + MOST;
  float *const in = lesson_array<float>(&l, count), *const out = lesson_array<float>(&l, l.n);
  fill<<<gk_grid_1d(count, BLOCK), BLOCK>>>(in, count);
  GK_CHECK_LAUNCH();
  const particle *const structures = (const particle *)in;
  const aligned_particle *const aligned = (const aligned_particle *)in;
  const double one = (double)n * 2 * sizeof(float), four = (double)n * 5 * sizeof(float); /* useful bytes */
  char variant[48];
  const lesson_row *offset_1 = NULL, *strides[MOST + 1] = {};

  for (const unsigned offset : {0u, 1u, 4u, 8u, 16u}) {
    snprintf(variant, sizeof variant, "offset %u", offset);
    const lesson_row *r =
        lesson_measure(&l, variant, one, [=] { read_strided<<<grid, BLOCK>>>(in, out, n, 1, offset); });
    lesson_expect(&l, r, out, reading(n, [=](size_t i) { return i + offset; }));
    if (offset == 0) strides[1] = r;
    if (offset == 1) offset_1 = r;
  }
  for (unsigned stride = 2; stride <= MOST; stride *= 2) {
    snprintf(variant, sizeof variant, "stride %u", stride);
    strides[stride] = lesson_measure(&l, variant, one, [=] { read_strided<<<grid, BLOCK>>>(in, out, n, stride, 0); });
    lesson_expect(&l, strides[stride], out, reading(n, [=](size_t i) { return i * stride; }));
  }
  const lesson_row *r = lesson_measure(&l, "backwards", one, [=] { read_backwards<<<grid, BLOCK>>>(in, out, n); });
  lesson_expect(&l, r, out, reading(n, [](size_t i) { return i ^ 31; }));
  const lesson_row *const scatter =
      lesson_measure(&l, "scattered", one, [=] { read_scattered<<<grid, BLOCK>>>(in, out, n); });
  lesson_expect(&l, scatter, out, reading(n, [=](size_t i) { return scattered((unsigned)i, n); }));

  const lesson_row *const aos_x =
      lesson_measure(&l, "x of structures", one, [=] { one_member<<<grid, BLOCK>>>(structures, out, n); });
  lesson_expect(&l, aos_x, out, reading(n, [](size_t i) { return 4 * i; }));
  const lesson_row *const soa_x = strides[1]; /* x as an array of its own is read as with offset 0 */

  const lesson_row *const aos =
      lesson_measure(&l, "structures by member", four, [=] { all_members<<<grid, BLOCK>>>(structures, out, n); });
  lesson_expect(&l, aos, out, sums_of_four(l.n, 4, 1));
  const lesson_row *const whole =
      lesson_measure(&l, "structures by 16 bytes", four, [=] { all_members<<<grid, BLOCK>>>(aligned, out, n); });
  lesson_expect(&l, whole, out, sums_of_four(l.n, 4, 1));
  const size_t m = l.n;
  const lesson_row *const soa = lesson_measure(
      &l, "all arrays", four, [=] { all_arrays<<<grid, BLOCK>>>(in, in + m, in + 2 * m, in + 3 * m, out, n); });
  lesson_expect(&l, soa, out, sums_of_four(l.n, 1, l.n));
  lesson_table(&l);

  if (l.mode == LESSON_TIMED) {
    lesson_say(
        &l, "Stride 2 takes %.2f times as long as stride 1, 8 %.2f times, 32 %.2f times, scattered reads %.2f times.",
        strides[2]->us / strides[1]->us, strides[8]->us / strides[1]->us, strides[32]->us / strides[1]->us,
        scatter->us / strides[1]->us);
    lesson_say(&l,
               "An offset of one float costs %.1f %%: the next warp finds the rest of the second line in the cache.",
               100 * (offset_1->us / strides[1]->us - 1));
    lesson_say(
        &l, "For one member, arrays are %.2f times as fast as structures. For all four members they are %.2f times as",
        aos_x->us / soa_x->us, aos->us / soa->us);
    lesson_say(&l, "fast as 4-byte loads of structures, and %.2f times as fast as 16-byte loads.", whole->us / soa->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(
        &l,
        "Of the 32 bytes of a sector, stride 1 uses %.0f, stride 2 %.0f, stride 8 and more %.0f, an offset of 1 %.0f.",
        128 / strides[1]->counted.load_sectors, 128 / strides[2]->counted.load_sectors,
        128 / strides[8]->counted.load_sectors, 128 / offset_1->counted.load_sectors);
    lesson_say(&l, "One member takes %.0f sectors in structures, %.0f in an array.", aos_x->counted.load_sectors,
               soa_x->counted.load_sectors);
    lesson_say(&l, "All four members take %.0f sectors member by member, %.0f in 16-byte loads, %.0f in arrays.",
               4 * aos->counted.load_sectors, whole->counted.load_sectors, 4 * soa->counted.load_sectors);
  }
  return lesson_end(&l);
}
