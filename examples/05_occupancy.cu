/* Lesson 5: occupancy, the warps that a multiprocessor holds as a share of those that it could hold. It hides waiting:
 * while some warps wait for memory, others compute. How many blocks fit is limited four times:
 *
 *   threads         2048 on most GPUs
 *   blocks          32, however small they are
 *   registers       65,536, given to warps 256 at a time, out of the quarter that the warp's scheduler has
 *   shared memory   what each block asked for, and 1 KiB that the system takes
 *
 * The least of the four counts. Below, a copy runs in blocks of many sizes, a thread for each float: its occupancy
 * stands beside its time. But so many blocks take time to start, too. So it runs again by no more blocks than fit,
 * which loop. Each asks for so much shared memory, without use for it, that 1, 2, 4 or 8 fit. And once more with 16
 * bytes for each thread: what has to be under way is bytes, not warps, and fewer warps can have as many. */
#include "lesson.h"

static const lesson_about about = {"05_occupancy",
                                   "what limits the warps on a multiprocessor, and what they are worth",
                                   "floats that are copied",
                                   1 << 26,
                                   1 << 12,
                                   4,
                                   1 << 29,
                                   "GB/s"};

/* T is float, or float4. Any grid will do. */
template <class T> __global__ void copy(const T *in, T *out, size_t n) {
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) out[i] = in[i];
}

/* ---- by hand ---------------------------------------------------------------------------------------------------- */

struct machine { /* what a multiprocessor has, and in which units it is given out */
  int threads, blocks, registers, shared, register_unit, schedulers, shared_unit, reserved;
};
/* As textbooks count, and as GPUs do. */
static const machine of_books = {2048, 32, 65536, 96 << 10, 1, 1, 1, 0};
static const machine of_gpus = {2048, 32, 65536, 96 << 10, 256, 4, 128, 1024};

static int round_up(int x, int unit) { return (x + unit - 1) / unit * unit; }

/* The blocks that fit. registers: of a thread. */
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
  double answer; /* of the books, in percent */
} exercises[] = {
    {128, 30, 0, 100}, {32, 29, 0, 50}, {256, 34, 0, 87.5}, {64, 27, 4 << 10, 75}, {256, 31, 8 << 10, 100}};

static double percent(const machine *m, int blocks, int block) { return 100.0 * blocks * block / m->threads; }

static void answer(lesson *l) {
  lesson_say(l, "Of 2048 threads, 32 blocks, 65536 registers and 96 KiB, as in exercises of textbooks:");
  for (const auto &e : exercises) {
    const char *book, *gpu;
    const int by_book = blocks_that_fit(&of_books, e.block, e.registers, e.shared, &book);
    const int by_gpu = blocks_that_fit(&of_gpus, e.block, e.registers, e.shared, &gpu);
    const double p = percent(&of_books, by_book, e.block), q = percent(&of_gpus, by_gpu, e.block);
    lesson_say(l, "  %3d threads, %d registers each, %d KiB: %2d blocks, %5.1f %% (%s)%s", e.block, e.registers,
               e.shared >> 10, by_book, p, book, p == q ? "" : ", or in whole units of a GPU:");
    if (p != q) lesson_say(l, "%43d blocks, %5.1f %% (%s)", by_gpu, q, gpu);
    if (p != e.answer) lesson_wrong(l, &l->rows[0], "the answer to an exercise is %g %%, not %g %%", e.answer, p);
  }
}

/* ---- by measuring ----------------------------------------------------------------------------------------------- */

struct arrays {
  const float *in;
  float *out;
  std::vector<float> expected;
};

template <class T> static lesson_row *row(lesson *l, arrays *a, int block, int blocks, const char *variant) {
  const size_t n = l->n * sizeof(float) / sizeof(T);
  const T *const in = (const T *)a->in;
  T *const out = (T *)a->out;
  /* blocks: how many are to fit, 0: whatever does. Each gets its share of the shared memory, but for the system's. */
  const gk_device_info *const d = &l->device;
  size_t shared = 0;
  if (blocks) shared = d->shared_per_sm / (size_t)blocks / 128 * 128 - d->shared_reserved_per_block;
  if (shared > d->shared_per_block_optin) shared = d->shared_per_block_optin;

  gk_occupancy_info o;
  GK_CHECK(gk_occupancy(copy<T>, block, shared, &o)); /* lets the kernel have as much, too */
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
  lesson_row *const r = lesson_measure(l, name, bytes, [=] { copy<T><<<(unsigned)grid, block, shared>>>(in, out, n); });
  a->expected.resize(n * sizeof(T) / sizeof(float)); /* what whole vectors hold */
  lesson_expect(l, r, a->out, a->expected);
  r->occupancy = 100 * o.occupancy;
  if (by_hand != o.blocks_per_sm || strcmp(limit, o.limit))
    lesson_wrong(l, r, "by hand %d blocks (%s), but %d (%s)", by_hand, limit, o.blocks_per_sm, o.limit);
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
    lesson_say(&l, "The best block is %s (%.0f %%), the worst %s (%.0f %%): it takes %.2f times as long.",
               best->variant, best->occupancy, worst->variant, worst->occupancy, worst->us / best->us);
    lesson_say(
        &l,
        "Blocks of 64 threads have an occupancy of %.0f %%, as have those of 256 with %.0f %%; they take %.2f times as",
        small->occupancy, usual->occupancy, small->us / usual->us);
    lesson_say(&l, "long: %zu blocks have to be started, %.1f in a nanosecond at most.", (l.n + 63) / 64,
               (double)((l.n + 63) / 64) / small->us * 1e-3);
    lesson_say(
        &l,
        "By no more blocks than fit, %.0f %% of the warps take %.2f times as long as %.0f %%, %.0f %% take %.2f times;",
        floats[4]->occupancy, floats[4]->us / floats[8]->us, floats[8]->occupancy, floats[1]->occupancy,
        floats[1]->us / floats[8]->us);
    lesson_say(&l, "with 16 bytes for each thread, %.2f and %.2f times.", vectors[4]->us / vectors[8]->us,
               vectors[1]->us / vectors[8]->us);
  } else {
    lesson_say(&l,
               "What limits a block of 32 threads are blocks (%.0f %%), one of 768 whole blocks of threads (%.0f %%).",
               l.rows[0].occupancy, l.rows[8].occupancy);
  }
  return lesson_end(&l);
}
