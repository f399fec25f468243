/* Lesson 5: occupancy: the warps that a multiprocessor holds, as a share of those that it could hold. Many warps hide
 * latency: while some wait for memory, others run. cudaOccupancyMaxActiveBlocksPerMultiprocessor() says how many blocks
 * of a kernel fit on a multiprocessor. */
#include <cuda_runtime.h>

/* A grid-stride loop: works with any grid. */
__global__ void copy(const float *in, float *out, size_t n) {
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) out[i] = in[i];
}

/* In percent. shared: bytes of dynamic shared memory of a block. */
static double occupancy_of_copy(int block, size_t shared) {
  void (*const kernel)(const float *, float *, size_t) = copy;
  int device, blocks = 0, most_threads = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block, shared);
  const int warps = (block + 31) / 32; /* a warp that is not full takes the place of a full one */
  return 100.0 * blocks * warps * 32 / most_threads;
}

/* The same copy with 16-byte accesses. */
__global__ void copy(const float4 *in, float4 *out, size_t n) {
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) out[i] = in[i];
}

#include "lesson.h"

static const lesson_about about = {"05_occupancy",
                                   "what limits the warps on a multiprocessor, and what they are worth",
                                   "floats that are copied",
                                   1 << 26,
                                   1 << 12,
                                   4,
                                   1 << 29,
                                   "GB/s"};

/* ---- by hand ---------------------------------------------------------------------------------------------------- *
 *
 * Four limits hold at once, and the smallest number of blocks counts:
 *
 *   threads         2048 on many GPUs
 *   blocks          32, however small they are; 16 or 24 on other GPUs (lesson 2)
 *   registers       65,536, given to warps in units of 256, from the quarter that belongs to the warp's scheduler
 *   shared memory   what each block asks for, and 1 KiB for the system */

struct machine { /* the resources of a multiprocessor, and the units in which they are given out */
  int threads, blocks, registers, shared, register_unit, schedulers, shared_unit, reserved;
};
/* As textbooks count, and as GPUs allocate. */
static const machine of_books = {2048, 32, 65536, 96 << 10, 1, 1, 1, 0};
static const machine of_gpus = {2048, 32, 65536, 96 << 10, 256, 4, 128, 1024};

static int round_up(int x, int unit) { return (x + unit - 1) / unit * unit; }

/* The blocks that fit on a multiprocessor. registers: of a thread. */
static int blocks_that_fit(const machine *m, int block, int registers, int shared, const char **limit) {
  const int warps = round_up(block, 32) / 32, of_warp = round_up(32 * registers, m->register_unit);
  const int of_block = round_up(shared + m->reserved, m->shared_unit);
  const struct {
    const char *name;
    int blocks;
  } limits[] = {{"threads", m->threads / 32 / warps},
                {"blocks", m->blocks},
                {"registers", m->registers / m->schedulers / of_warp * m->schedulers / warps},
                {"shared memory", of_block ? m->shared / of_block : m->blocks}};
  int least = limits[0].blocks;
  *limit = limits[0].name;
  for (const auto &l : limits)
    if (l.blocks < least) least = l.blocks, *limit = l.name;
  return least;
}

static const struct {
  int block, registers, shared;
  double answer; /* of the textbooks, in percent */
} exercises[] = {
    {128, 30, 0, 100}, {32, 29, 0, 50}, {256, 34, 0, 87.5}, {64, 27, 4 << 10, 75}, {256, 31, 8 << 10, 100}};

static double percent(const machine *m, int blocks, int block) { return 100.0 * blocks * block / m->threads; }

static void answer(lesson *l) {
  lesson_say(l, "Exercises of textbooks, for a multiprocessor of 2048 threads, 32 blocks, 65536 registers and 96 KiB:");
  for (const auto &e : exercises) {
    const char *book, *gpu;
    const int by_book = blocks_that_fit(&of_books, e.block, e.registers, e.shared, &book);
    const int by_gpu = blocks_that_fit(&of_gpus, e.block, e.registers, e.shared, &gpu);
    const double p = percent(&of_books, by_book, e.block), q = percent(&of_gpus, by_gpu, e.block);
    lesson_say(l, "  %3d threads, %d registers each, %d KiB: %2d blocks, %5.1f %% (%s)%s", e.block, e.registers,
               e.shared >> 10, by_book, p, book, p == q ? "" : "; with a GPU's allocation units:");
    if (p != q) lesson_say(l, "%43d blocks, %5.1f %% (%s)", by_gpu, q, gpu);
    if (p != e.answer) lesson_wrong(l, &l->rows[0], "the answer to an exercise is %g %%, not %g %%", e.answer, p);
  }
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * First one thread for each float, in blocks of 32 to 1024 threads. On an H200:
 *
 *   32 to 128 threads   occupancy is 50 % or 100 %, but the rate is proportional to the block size: it is the rate at
 *                       which blocks start, 1.65 a nanosecond, that limits. 64 threads take 3.1 times as long as 256,
 *                       at the same occupancy. In blocks of 48 a quarter of the lanes is idle, and counts as occupied
 *   256                 the best: 2612 GB/s. Blocks start fast enough, and eight of them fit on a multiprocessor
 *   384, 640, 768       2048 is not a multiple: 93.75 % and 75 % occupancy, and 768 threads are the slowest of the
 *                       large
 *   512, 1024           100 %, but slower than 256: a block's resources are freed only when its last warp exits, so a
 *                       large block leaves much of the multiprocessor idle until its successor starts
 *
 * Then a grid of no more blocks than fit, which loops, so that starting blocks costs nothing. Each block asks for so
 * much shared memory, which it does not use, that 8, 4, 2 or 1 fit. With one 4-byte load under way in each thread the
 * rate falls almost with the number of warps: 3003, 2061, 1175, 632 GB/s. With 16 bytes a thread half of the warps lose
 * 6 % (3962, 3709 GB/s) and an eighth still has 1875 GB/s. What hides latency is bytes under way; warps are one way to
 * have them, wide accesses another. */

struct arrays {
  const float *in;
  float *out;
  std::vector<float> expected;
};

template <class T> static lesson_row *row(lesson *l, arrays *a, int block, int blocks, const char *variant) {
  const size_t n = l->n * sizeof(float) / sizeof(T);
  const T *const in = (const T *)a->in;
  T *const out = (T *)a->out;
  void (*const kernel)(const T *, T *, size_t) = copy;
  /* blocks: how many have to fit, 0: as many as do. Each gets its share of the shared memory, less the system's. */
  const gk_device_info *const d = &l->device;
  size_t shared = 0;
  if (blocks) shared = d->shared_per_sm / (size_t)blocks / 128 * 128 - d->shared_reserved_per_block;
  if (shared > d->shared_per_block_optin) shared = d->shared_per_block_optin;

  gk_occupancy_info o;
  GK_CHECK(gk_occupancy(kernel, block, shared, &o)); /* also allows the kernel this much shared memory */
  const machine here = {d->max_threads_per_sm,
                        d->max_blocks_per_sm,
                        d->registers_per_sm,
                        (int)d->shared_per_sm,
                        256,
                        4,
                        128,
                        (int)d->shared_reserved_per_block};
  const char *limit;
  char name[48];
  const int by_hand = blocks_that_fit(&here, block, o.registers, (int)(o.static_smem + shared), &limit);
  snprintf(name, sizeof name, "%s (%s)", variant, limit);
  const double bytes = 2.0 * (double)n * sizeof(T);
  size_t grid = (n + (size_t)block - 1) / (size_t)block;
  const size_t fit = (size_t)(o.blocks_per_sm * d->sms);
  if (blocks && grid > fit) grid = fit;
  lesson_row *const r = lesson_measure(l, name, bytes, [=] { kernel<<<(unsigned)grid, block, shared>>>(in, out, n); });
  a->expected.resize(n * sizeof(T) / sizeof(float)); /* whole vectors only */
  lesson_expect(l, r, a->out, a->expected);
  r->occupancy = 100 * o.occupancy;
  if (by_hand != o.blocks_per_sm || strcmp(limit, o.limit))
    lesson_wrong(l, r, "by hand %d blocks (%s), but %d (%s)", by_hand, limit, o.blocks_per_sm, o.limit);
  if (sizeof(T) == sizeof(float) && fabs(occupancy_of_copy(block, shared) - 100 * o.occupancy) > 1e-6)
    lesson_wrong(l, r, "occupancy_of_copy() gives %g %%", occupancy_of_copy(block, shared));
  return r;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  arrays a;
  a.expected.resize(l.n);
  for (size_t i = 0; i < l.n; i++) a.expected[i] = (float)(i % 8191);
  a.in = lesson_array(&l, a.expected);
  a.out = lesson_array<float>(&l, l.n);

  const lesson_row *r, *best = NULL, *worst = NULL, *small = NULL, *usual = NULL, *floats[9] = {}, *vectors[9] = {};
  char variant[32];
  for (const int block : {32, 48, 64, 128, 256, 384, 512, 640, 768, 1024}) {
    snprintf(variant, sizeof variant, "block %d", block);
    r = row<float>(&l, &a, block, 0, variant);
    if (block == 64) small = r;
    if (block == 256) usual = r;
    if (!best || r->us < best->us) best = r;
    if (!worst || r->us > worst->us) worst = r;
  }
  for (const int blocks : {8, 4, 2, 1}) {
    snprintf(variant, sizeof variant, "%d x 256", blocks);
    floats[blocks] = row<float>(&l, &a, 256, blocks, variant);
  }
  for (const int blocks : {8, 4, 2, 1}) {
    snprintf(variant, sizeof variant, "%d x 256 by 16 bytes", blocks);
    vectors[blocks] = row<float4>(&l, &a, 256, blocks, variant);
  }
  lesson_table(&l);

  answer(&l);
  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "The best block is %s (%.0f %% occupancy), the worst %s (%.0f %%): it takes %.2f times as long.",
               best->variant, best->occupancy, worst->variant, worst->occupancy, worst->us / best->us);
    lesson_say(&l, "Blocks of 64 threads have %.0f %% occupancy, as blocks of 256 have, but take %.2f times as long:",
               small->occupancy, small->us / usual->us);
    lesson_say(&l, "%zu blocks have to start, and %.2f a nanosecond do.", (l.n + 63) / 64,
               (double)((l.n + 63) / 64) / small->us * 1e-3);
    lesson_say(
        &l, "With no more blocks than fit, %.0f %% of the warps take %.2f times as long as %.0f %%, %.1f %% take %.2f",
        floats[4]->occupancy, floats[4]->us / floats[8]->us, floats[8]->occupancy, floats[1]->occupancy,
        floats[1]->us / floats[8]->us);
    lesson_say(&l, "times as long; with 16-byte accesses %.2f and %.2f times.", vectors[4]->us / vectors[8]->us,
               vectors[1]->us / vectors[8]->us);
  } else {
    lesson_say(&l, "Blocks of 32 threads are limited by the number of blocks on a multiprocessor (%.0f %% occupancy),",
               l.rows[0].occupancy);
    lesson_say(&l, "blocks of 768 by the number of threads: only whole blocks fit (%.0f %%).", l.rows[8].occupancy);
  }
  return lesson_end(&l);
}
