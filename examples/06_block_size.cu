/* Lesson 6: choosing a block size. cudaOccupancyMaxPotentialBlockSize() asks the compiled kernel for the block with the
 * highest occupancy, here one for a kernel with so many registers that the largest block does not even start. */
#include <cuda_runtime.h>

#define HELD 72 /* floats that a thread of pairs() has in registers */

/* Adds each float and its two neighbours, through shared memory, which grows with the block. */
__global__ void stencil(const float *in, float *out, unsigned n) {
  extern __shared__ float s[]; /* blockDim.x + 2: one more at each end */
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 1;
  s[t] = i < n ? in[i] : 0;
  if (threadIdx.x == 0) s[0] = i > 0 && i <= n ? in[i - 1] : 0;
  if (threadIdx.x == blockDim.x - 1) s[t + 1] = i + 1 < n ? in[i + 1] : 0;
  __syncthreads();
  if (i < n) out[i] = s[t - 1] + s[t] + s[t + 1];
}
static size_t stencil_shared(int block) { return ((size_t)block + 2) * sizeof(float); }

/* The sum of the products of all pairs of 72 floats, which are in registers: too many for a block of 1024 threads. */
__global__ void pairs(const float *in, float *out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float held[HELD], sum = 0;
  if (i >= n) return;
#pragma unroll
  for (unsigned j = 0; j < HELD; j++) held[j] = in[(size_t)j * n + i];
#pragma unroll
  for (unsigned j = 0; j < HELD; j++) {
#pragma unroll
    for (unsigned k = 0; k < j; k++) sum += held[j] * held[k];
  }
  out[i] = sum;
}

/* The block size that CUDA recommends for pairs(), and the launch with it. */
static cudaError_t launch_pairs(const float *in, float *out, unsigned n) {
  int least_grid, block;
  const cudaError_t status = cudaOccupancyMaxPotentialBlockSize(&least_grid, &block, pairs, 0, 0);
  if (status != cudaSuccess) return status;
  pairs<<<(n + (unsigned)block - 1) / (unsigned)block, block>>>(in, out, n);
  return cudaGetLastError();
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * Four ways to choose, and a sweep over twelve sizes that shows what they are worth:
 *
 *   device limits      the smallest whole number of warps with which all threads of a multiprocessor are in use: its
 *                      threads / its blocks. Knows nothing about the kernel
 *   cudaOccupancy...   the call above knows the kernel's registers and shared memory; of several block sizes with the
 *                      highest occupancy it takes the largest
 *   gk_block_for       the same, but of several it takes the one nearest to 256
 *   always 256         needs no call
 *
 * stencil has little work in a block. Up to 128 threads its time is inversely proportional to the block size, since
 * 1.65 blocks start in a nanosecond (lesson 5): the 64 threads of the device limits have 100 % occupancy and take 2.4
 * times as long as 256. Larger blocks lose 4 to 41 %: a block's resources are freed only when its last warp exits, so a
 * large block leaves much of the multiprocessor idle until its successor starts; and where 2048 is not a multiple of
 * the block, fewer fit (768 threads: 75 % occupancy and 41 %; 896: 87.5 % and 25 %; 1024, which CUDA's call takes: 12
 * %).
 *
 * pairs has 72 loads and 2556 multiply-adds in each thread, so starting blocks costs nothing, and sizes up to 384 are
 * within 3 %. Its registers limit it to 24 warps (37.5 %). 512 and 640 threads lose 27 % and 16 %: one block of 16 or
 * 20 warps fits, not 24. 768 threads, which cudaOccupancy... takes, lose 9 %: one block fills a multiprocessor, and the
 * next one starts when its last warp has ended. */
#include "lesson.h"

static const lesson_about about = {
    "06_block_size", "by rules, by the occupancy calls, and by trying twelve", "floats", 1 << 26, 72 << 6, 72, 1 << 28,
    "GB/s"};

typedef void (*kernel_type)(const float *in, float *out, unsigned n);
typedef size_t (*shared_type)(int block);
static size_t pairs_shared(int) { return 0; }

struct trial { /* a kernel, and its row for each block size that has been tried */
  const char *name;
  kernel_type kernel;
  shared_type shared;
  unsigned n;
  const float *in;
  float *out;
  std::vector<float> expected;
  const lesson_row *rows[1024 / 32 + 1];
};

/* NULL: the kernel has too many registers for such a block. */
static const lesson_row *try_block(lesson *l, trial *t, int block) {
  const lesson_row **const slot = &t->rows[block / 32];
  cudaFuncAttributes attributes;
  GK_CHECK(cudaFuncGetAttributes(&attributes, t->kernel));
  if (*slot || block > attributes.maxThreadsPerBlock) return *slot;
  const kernel_type kernel = t->kernel;
  const unsigned n = t->n, grid = (n - 1) / (unsigned)block + 1;
  const float *const in = t->in;
  float *const out = t->out;
  const size_t shared = t->shared(block);
  char variant[48];
  gk_occupancy_info o;
  snprintf(variant, sizeof variant, "%s %d", t->name, block);
  lesson_row *const r = lesson_measure(l, variant, (double)l->n * sizeof(float) + (double)n * sizeof(float),
                                       [=] { kernel<<<grid, block, shared>>>(in, out, n); });
  lesson_expect(l, r, out, t->expected);
  GK_CHECK(gk_occupancy(t->kernel, block, shared, &o));
  r->occupancy = 100 * o.occupancy;
  return *slot = r;
}

enum { BY_DEVICE, BY_CUDA, BY_GPUKIT, BY_HABIT, RULES };
static const char *const rules[] = {"device limits", "cudaOccupancy...", "gk_block_for", "always 256"};

static void choose(const lesson *l, const trial *t, int blocks[RULES]) {
  const gk_device_info *const d = &l->device;
  int grid;
  blocks[BY_DEVICE] = (d->max_threads_per_sm / d->max_blocks_per_sm + 31) / 32 * 32;
  GK_CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &blocks[BY_CUDA], t->kernel, t->shared));
  GK_CHECK(gk_block_for(t->kernel, t->shared(256), &blocks[BY_GPUKIT]));
  blocks[BY_HABIT] = 256;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n;
  std::vector<float> values(l.n);
  for (unsigned i = 0; i < n; i++) values[i] = (float)((i * 2654435761u >> 13) % 4);
  const float *const in = lesson_array(&l, values);
  float *const out = lesson_array<float>(&l, l.n);
  trial trials[] = {{"stencil", stencil, stencil_shared, n, in, out, {}, {}},
                    {"pairs", pairs, pairs_shared, n / HELD, in, out, {}, {}}};
  trials[0].expected.resize(n);
  for (unsigned i = 0; i < n; i++)
    trials[0].expected[i] = (i ? values[i - 1] : 0) + values[i] + (i + 1 < n ? values[i + 1] : 0);
  trials[1].expected.resize(n / HELD);
  for (unsigned i = 0; i < n / HELD; i++) { /* (a + b + ...)^2 has each pair twice, and the squares */
    float sum = 0, squares = 0;
    for (unsigned j = 0; j < HELD; j++) {
      const float v = values[(size_t)j * (n / HELD) + i];
      sum += v, squares += v * v;
    }
    trials[1].expected[i] = (sum * sum - squares) / 2;
  }

  int chosen[2][RULES], largest[2] = {};
  const lesson_row *best[2] = {}, *worst[2] = {};
  for (int k = 0; k < 2; k++) {
    choose(&l, &trials[k], chosen[k]);
    for (const int block : {32, 64, 96, 128, 192, 256, 384, 512, 640, 768, 896, 1024}) {
      const lesson_row *const r = try_block(&l, &trials[k], block);
      if (!r) continue;
      largest[k] = block;
      if (!best[k] || r->us < best[k]->us) best[k] = r;
      if (!worst[k] || r->us > worst[k]->us) worst[k] = r;
    }
    for (const int block : chosen[k]) try_block(&l, &trials[k], block);
  }
  GK_CHECK(launch_pairs(in, out, n / HELD));
  lesson_expect(&l, best[1], out, trials[1].expected);
  lesson_table(&l);

  for (int k = 0; k < 2; k++) {
    for (int rule = 0; rule < RULES; rule++) {
      const lesson_row *const r = try_block(&l, &trials[k], chosen[k][rule]);
      if (!r)
        lesson_say(&l, "%-7s  %-16s  %4d threads: more than the kernel can have", trials[k].name, rules[rule],
                   chosen[k][rule]);
      else if (l.mode == LESSON_TIMED)
        lesson_say(&l, "%-7s  %-16s  %4d threads, occupancy %5.1f %%: %.3f times the best time of the sweep",
                   trials[k].name, rules[rule], chosen[k][rule], r->occupancy, r->us / best[k]->us);
      else
        lesson_say(&l, "%-7s  %-16s  %4d threads, occupancy %5.1f %%", trials[k].name, rules[rule], chosen[k][rule],
                   r->occupancy);
    }
    if (l.mode == LESSON_TIMED)
      lesson_say(&l, "%-7s  best: %s; worst: %s, %.2f times as long; more than %d threads are not possible",
                 trials[k].name, best[k]->variant, worst[k]->variant, worst[k]->us / best[k]->us, largest[k]);
  }
  if (l.mode == LESSON_TIMED) {
    const lesson_row *const small = trials[0].rows[64 / 32], *const large = trials[0].rows[256 / 32];
    lesson_say(&l, "Occupancy at the best block size: %.1f %% for stencil, %.1f %% for pairs.", best[0]->occupancy,
               best[1]->occupancy);
    lesson_say(&l,
               "stencil has %.1f %% with 64 threads and %.1f %% with 256, but takes %.2f times as long with 64: more",
               small->occupancy, large->occupancy, small->us / large->us);
    lesson_say(&l, "blocks have to start. pairs does more in each block: %.0f us at best, %.0f us at worst.",
               best[1]->us, worst[1]->us);
  } else {
    lesson_say(&l, "The stand-in assumes 32 registers for each kernel; on a GPU pairs has many more.");
  }
  return lesson_end(&l);
}
