/* Lesson 22: coalescing. Global memory comes in sectors of 32 bytes, 4 of them to a line of 128. The 32 loads of a
 * warp are one request, which costs as many sectors as it touches: 4 if the threads read 32 floats in a row, in
 * whatever order, and 32 if no two of the floats share a sector. What a sector brings beyond the floats asked for is
 * wasted, unless a later request finds it in a cache.
 *
 * So neighbours in a warp should be neighbours in memory. An array of structures puts a member of the next structure
 * a whole structure away; a structure of arrays keeps the same member of all in a row. If a thread needs the whole
 * structure, then one 16-byte load of it is as good. */
#include "lesson.h"

static const lesson_about about = {"22_coalescing",
                                   "neighbouring threads should read neighbouring floats",
                                   "floats that are written, each by a thread",
                                   1 << 24,
                                   1 << 12,
                                   1,
                                   1 << 26,
                                   "GB/s"};

#define BLOCK 256
#define MOST 32 /* the largest stride and offset */

struct particle {
  float x, y, z, mass;
};

__host__ __device__ inline float content(size_t i) { return (float)(i & 0xffff); }

__global__ void fill(float *in, size_t count) {
  GK_FOR_1D (i, count) in[i] = content(i);
}

__global__ void read_strided(const float *in, float *out, unsigned n, unsigned stride, unsigned offset) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = in[(size_t)i * stride + offset];
}

/* Which float the thread of number i reads, in no order that a warp could make use of. */
__host__ __device__ inline unsigned scattered(unsigned i, unsigned n) { return (i * 2654435761u) % n; }

__global__ void read_scattered(const float *in, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = in[scattered(i, n)];
}

/* Backwards within each warp: the same sectors. */
__global__ void read_backwards(const float *in, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = in[i ^ 31];
}

__global__ void one_member(const particle *p, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = p[i].x;
}

__global__ void all_members(const particle *p, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  const volatile particle *const q = p + i; /* volatile: a load for each member, even if the compiler knows better */
  out[i] = q->x + q->y + q->z + q->mass;
}

__global__ void whole_structures(const float4 *p, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  const float4 q = p[i];
  out[i] = q.x + q.y + q.z + q.w;
}

__global__ void all_arrays(const float *x, const float *y, const float *z, const float *mass, float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i] + z[i] + mass[i];
}

/* What the threads should have written, by the index of what each of them reads. */
template <class Index> static std::vector<float> reading(size_t n, Index index) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; i++) v[i] = content(index(i));
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
  const float4 *const vectors = (const float4 *)in;
  const double one = (double)n * 2 * sizeof(float), four = (double)n * 5 * sizeof(float); /* bytes that are of use */
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
  const lesson_row *const soa_x =
      lesson_measure(&l, "x of arrays", one, [=] { read_strided<<<grid, BLOCK>>>(in, out, n, 1, 0); });
  lesson_expect(&l, soa_x, out, reading(n, [](size_t i) { return i; }));

  std::vector<float> of_structure(n), of_arrays(n);
  for (size_t i = 0; i < n; i++) {
    of_structure[i] = content(4 * i) + content(4 * i + 1) + content(4 * i + 2) + content(4 * i + 3);
    of_arrays[i] = content(i) + content(i + n) + content(i + 2 * l.n) + content(i + 3 * l.n);
  }
  const lesson_row *const aos =
      lesson_measure(&l, "structures by member", four, [=] { all_members<<<grid, BLOCK>>>(structures, out, n); });
  lesson_expect(&l, aos, out, of_structure);
  const lesson_row *const whole =
      lesson_measure(&l, "structures by 16 bytes", four, [=] { whole_structures<<<grid, BLOCK>>>(vectors, out, n); });
  lesson_expect(&l, whole, out, of_structure);
  const size_t m = l.n;
  const lesson_row *const soa = lesson_measure(
      &l, "all arrays", four, [=] { all_arrays<<<grid, BLOCK>>>(in, in + m, in + 2 * m, in + 3 * m, out, n); });
  lesson_expect(&l, soa, out, of_arrays);
  lesson_table(&l);

  if (l.mode == LESSON_TIMED) {
    lesson_say(
        &l, "Stride 2 takes %.2f times as long as stride 1, 8 %.2f times, 32 %.2f times, scattered reads %.2f times.",
        strides[2]->us / strides[1]->us, strides[8]->us / strides[1]->us, strides[32]->us / strides[1]->us,
        scatter->us / strides[1]->us);
    lesson_say(&l, "A wrong offset costs %.1f %%: neighbouring warps share the fifth sector by way of the cache.",
               100 * (offset_1->us / strides[1]->us - 1));
    lesson_say(
        &l, "One member: arrays are %.2f times as fast as structures. All: %.2f times; with 16-byte loads %.2f times.",
        aos_x->us / soa_x->us, aos->us / soa->us, whole->us / soa->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(
        &l,
        "Of each sector, stride 1 uses %.0f of 32 bytes, stride 2 %.0f, stride 8 and more %.0f; an offset of 1 %.0f.",
        128 / strides[1]->counted.load_sectors, 128 / strides[2]->counted.load_sectors,
        128 / strides[8]->counted.load_sectors, 128 / offset_1->counted.load_sectors);
    lesson_say(&l, "One member costs %.0f sectors in structures and %.0f in an array.", aos_x->counted.load_sectors,
               soa_x->counted.load_sectors);
    lesson_say(&l, "All four members cost a warp %.0f sectors member by member, %.0f in 16-byte loads, %.0f in arrays.",
               4 * aos->counted.load_sectors, whole->counted.load_sectors, 4 * soa->counted.load_sectors);
  }
  return lesson_end(&l);
}
