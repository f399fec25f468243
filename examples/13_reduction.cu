/* Lesson 13: the reduction, after Mark Harris' talk "Optimizing Parallel Reduction in CUDA" (2007). n ints are added up
 * in seven steps, each of which removes what limited the one before, and two that came later.
 *
 * Each kernel leaves one sum for each block. It is launched again on these sums until one is left. */
#include <cuda_runtime.h>

#define BLOCK 256
#define WARP 32

__global__ void interleaved(const int *in, int *out, unsigned n) {
  __shared__ int s[BLOCK];
  const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    if (t % (2 * step) == 0) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

__global__ void conflicting(const int *in, int *out, unsigned n) {
  __shared__ int s[BLOCK];
  const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    const unsigned at = 2 * step * t;
    if (at < blockDim.x) s[at] += s[at + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

__device__ int two_of(const int *in, unsigned n, unsigned i, unsigned apart) {
  return (i < n ? in[i] : 0) + (i + apart < n ? in[i + apart] : 0);
}

template <bool FIRST_ADD> __global__ void sequential(const int *in, int *out, unsigned n) {
  __shared__ int s[BLOCK];
  const unsigned t = threadIdx.x, first = blockIdx.x * blockDim.x;
  s[t] = FIRST_ADD ? two_of(in, n, 2 * first + t, blockDim.x) : first + t < n ? in[first + t] : 0;
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    if (t < step) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

/* The sum of s[0] to s[63], in thread 0. Threads read what others write, so each step needs two barriers. */
__device__ int add_in_warp(int *s, unsigned t) {
  int sum = s[t] + s[t + WARP];
  for (unsigned step = WARP / 2; step > 0; step /= 2) {
    s[t] = sum;
    __syncwarp();
    sum += s[t + step];
    __syncwarp();
  }
  return sum;
}

/* The sum of a block's s, in thread 0. KNOWN: the size of the block, or 0 to keep it from the compiler. */
template <unsigned KNOWN> __device__ int add_in_block(int *s, unsigned t) {
  for (unsigned step = (KNOWN ? KNOWN : blockDim.x) / 2; step > WARP; step /= 2) {
    if (t < step) s[t] += s[t + step];
    __syncthreads();
  }
  return t < WARP ? add_in_warp(s, t) : 0;
}

/* The sum of the elements that belong to this thread, in a grid-stride loop. */
__device__ int add_many(const int *in, unsigned n) {
  int sum = 0;
  for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < n; i += (size_t)gridDim.x * BLOCK) sum += in[i];
  return sum;
}

template <unsigned KNOWN, bool MANY> __global__ void last_warp(const int *in, int *out, unsigned n) {
  __shared__ int s[BLOCK];
  const unsigned t = threadIdx.x;
  s[t] = MANY ? add_many(in, n) : two_of(in, n, blockIdx.x * 2 * blockDim.x + t, blockDim.x);
  __syncthreads();
  const int sum = add_in_block<KNOWN>(s, t);
  if (t == 0) out[blockIdx.x] = sum;
}

__device__ int add_by_shuffles(int sum) {
  for (unsigned step = WARP / 2; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  return sum;
}

__global__ void shuffled(const int *in, int *out, unsigned n) {
  __shared__ int of_warp[WARP];
  const unsigned t = threadIdx.x;
  int sum = add_by_shuffles(add_many(in, n));
  if (t % WARP == 0) of_warp[t / WARP] = sum;
  __syncthreads();
  if (t >= WARP) return;
  sum = add_by_shuffles(t < BLOCK / WARP ? of_warp[t] : 0);
  if (t == 0) out[blockIdx.x] = sum;
}

typedef void (*reduction)(const int *in, int *out, unsigned n);

/* Launches the kernel on its own results until one is left, in *sum. Sums of blocks go to spare[0] and spare[1] in
 * turn. */
static void reduce(reduction kernel, const int *in, int *const spare[2], int *sum, unsigned n, unsigned each,
                   unsigned most) {
  for (int turn = 0;; turn ^= 1) {
    unsigned blocks = (n - 1) / each + 1;
    if (blocks > most) blocks = most;
    int *const out = blocks == 1 ? sum : spare[turn];
    kernel<<<blocks, BLOCK>>>(in, out, n);
    if (blocks == 1) return;
    in = out;
    n = blocks;
  }
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, for 2^27 ints; in parentheses the gain over the row before:
 *
 *   interleaved      414 GB/s. The threads that still add are the multiples of 2, 4, 8 ...: every warp diverges
 *   conflicting      673 (1.62). Threads 0, 1, 2 ... add: no divergence, but their elements are 2, 4, 8 ... words
 *                    apart, in the same banks (lesson 11)
 *   sequential       873 (1.30). The upper half is added to the lower: no conflicts. But half of the threads add
 *                    nothing
 *   first add        1644 (1.88). Each thread adds two elements while it loads: half as many blocks for the same ints,
 *                    and a block costs the same
 *   last warp        2210 (1.34). The last 64 sums need no barrier of the block, only __syncwarp() (a GPU of 2007
 *                    needed none), so most warps end after two steps
 *   unrolled         2297 (1.04). The compiler knows the block size and unrolls the loop. Loop instructions cost little
 *                    today: in 2007 this was worth 1.41
 *   many per thread  2473 (1.08). 1056 blocks, not 262,144: each thread adds many elements before its block does
 *   shuffled         2473 (1.00). Sums of a warp through registers. The part that it speeds up is no longer what takes
 *                    the time: each thread has one 4-byte load under way, and that limits the rate (lesson 5)
 *   gk_reduce        4468 (1.81), 93 % of 4814 GB/s: 16-byte loads, several under way in each thread, and one launch.
 *                    The blocks publish their sums; the block that started last waits for all sums and adds them in a
 *                    fixed order */
#include "lesson.h"

static const lesson_about about = {
    "13_reduction", "a sum in nine steps, from the obvious one to the speed of the memory",
    "ints",         1 << 27,
    1 << 13,        1,
    1 << 30,        "GB/s",
};

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  l.show_branches = true;
  const unsigned n = (unsigned)l.n, few = l.mode == LESSON_TIMED ? (unsigned)l.device.sms * 8 : 4;
  std::vector<int> values(n);
  unsigned total = 0;
  for (unsigned i = 0; i < n; i++) {
    values[i] = (int)(i * 2654435761u >> 20) - 2048;
    total += (unsigned)values[i];
  }
  const std::vector<int> expected(1, (int)total);
  const int *const in = lesson_array(&l, values);
  int *const spare[2] = {lesson_array<int>(&l, n / BLOCK + 1), lesson_array<int>(&l, n / BLOCK + 1)};
  int *const sum = lesson_array<int>(&l, 1);
  const double bytes = (double)n * sizeof(int);

  const unsigned all = ~0u;
  const struct {
    const char *name;
    reduction kernel;
    unsigned each, most; /* elements of a block; blocks at most */
    double gbs_2007;     /* of the talk: 2^22 ints on a GeForce 8800 GTX; 0: not in it */
  } steps[] = {{"interleaved", interleaved, BLOCK, all, 2.083},
               {"conflicting", conflicting, BLOCK, all, 4.854},
               {"sequential", sequential<false>, BLOCK, all, 9.741},
               {"first add", sequential<true>, 2 * BLOCK, all, 17.377},
               {"last warp", last_warp<0, false>, 2 * BLOCK, all, 31.289},
               {"unrolled", last_warp<BLOCK, false>, 2 * BLOCK, all, 43.996},
               {"many per thread", last_warp<BLOCK, true>, 2 * BLOCK, few, 62.671},
               {"shuffled", shuffled, 2 * BLOCK, few, 0}};
  const int count = (int)(sizeof steps / sizeof *steps);
  for (const auto &step : steps) {
    const auto run = [&] { reduce(step.kernel, in, spare, sum, n, step.each, step.most); };
    const lesson_row *const r = lesson_measure(&l, step.name, bytes, run);
    lesson_expect(&l, r, sum, expected);
  }
  gk_scratch scratch = {};
  GK_CHECK(gk_scratch_create(&scratch, gk_reduce_scratch_bytes(), 0));
  const lesson_row *const library =
      lesson_measure(&l, "gk_reduce", bytes, [&] { GK_CHECK(gk_reduce_sum(in, sum, n, 0, &scratch)); });
  lesson_expect(&l, library, sum, expected);
  GK_CHECK(gk_scratch_destroy(&scratch));
  lesson_table(&l);

  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "The gain of each step, here and in the talk (GeForce 8800 GTX, 2^22 ints):");
    for (int i = 1; i < count && steps[i].gbs_2007 > 0; i++)
      lesson_say(&l, "  %-15s  %.2f times, in 2007 %.2f times (%.1f GB/s)", steps[i].name,
                 l.rows[i].rate / l.rows[i - 1].rate, steps[i].gbs_2007 / steps[i - 1].gbs_2007, steps[i].gbs_2007);
    lesson_say(&l, "The seven steps together are %.1f times as fast as the first one, in 2007 %.1f times.",
               l.rows[6].rate / l.rows[0].rate, steps[6].gbs_2007 / steps[0].gbs_2007);
    lesson_say(&l, "Shuffles are %.2f times as fast as that, gk_reduce %.2f times as fast as shuffles.",
               l.rows[7].rate / l.rows[6].rate, library->rate / l.rows[7].rate);
  } else if (l.mode == LESSON_COUNTED) {
    const lesson_counters *const a = &l.rows[0].counted, *const b = &l.rows[1].counted, *const c = &l.rows[2].counted;
    lesson_say(&l, "Divergent branches: interleaved %.0f, conflicting %.0f, sequential %.0f.", a->divergent,
               b->divergent, c->divergent);
    lesson_say(&l,
               "Passes for a load from shared memory: %.2f, %.2f, %.2f. The second step removes divergence, but adds",
               a->load_passes, b->load_passes, c->load_passes);
    lesson_say(&l,
               "bank conflicts, which the third removes. Requests to memory: interleaved %.0f, many per thread %.0f,",
               a->requests, l.rows[6].counted.requests);
    lesson_say(&l, "shuffled %.0f.", l.rows[7].counted.requests);
  }
  return lesson_end(&l);
}
