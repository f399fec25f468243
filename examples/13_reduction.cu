/* Lesson 13: the reduction ladder, after Mark Harris' talk "Optimizing Parallel Reduction in CUDA" (2007). A sum of
 * n ints is done in seven steps, each of which removes what held up the one before, and two that came later.
 *
 * Each kernel leaves one sum for each block; it is launched again on these until one is left. What a step is about:
 *
 *   interleaved      the threads that still add are the multiples of 2, 4, 8, ...: all warps diverge
 *   conflicting      threads 0, 1, 2, ... do the same additions: no divergence, but strides of 2, 4, 8, ... in banks
 *   sequential       the upper half is added to the lower: no conflicts either, but half the threads add nothing at all
 *   first add        so each block takes twice as much, and adds once while it loads
 *   last warp        32 threads need no barrier of the block, only __syncwarp (which a GPU of 2007 did without)
 *   unrolled         the size of a block is known to the compiler: no loop is left
 *   many per thread  a few blocks, each thread adds up many before a block does: less of the slow part
 *   shuffled         the last part through registers, with one pass through shared memory in place of eight
 *   gk_reduce        one launch: the last block to finish adds what the others have left */
#include "lesson.h"

static const lesson_about about = {
    "13_reduction", "a sum in nine steps, from the obvious one to the speed of the memory",
    "ints",         1 << 27,
    1 << 13,        1,
    1 << 30,        "GB/s",
};

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
  const unsigned t = threadIdx.x, first = blockIdx.x * blockDim.x, i = first + t;
  s[t] = FIRST_ADD ? two_of(in, n, first + i, blockDim.x) : i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    if (t < step) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

/* The sum of s[0] to s[63], in thread 0. A thread reads what its neighbour writes, hence two barriers for each step. */
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

/* The sum of all of a block's s, in thread 0. KNOWN: the size of the block, 0 if the compiler is not to know it. */
template <unsigned KNOWN> __device__ int add_in_block(int *s, unsigned t) {
  for (unsigned step = (KNOWN ? KNOWN : blockDim.x) / 2; step > WARP; step /= 2) {
    if (t < step) s[t] += s[t + step];
    __syncthreads();
  }
  return t < WARP ? add_in_warp(s, t) : 0;
}

/* The sum of a thread's share of all. */
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

/* Again and again, on what the blocks have left, which goes to spare[0] and spare[1] in turn and at the end to sum. */
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

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
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
    unsigned each, most; /* of elements for a block; of blocks */
    double gbs_2007;     /* on a GeForce 8800 GTX, for 2^22 ints, as in the talk; 0: not in it */
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
    lesson_say(&l, "What each step gained, here and on the GeForce 8800 GTX of the talk, with 2^22 ints:");
    for (int i = 1; i < count && steps[i].gbs_2007 > 0; i++)
      lesson_say(&l, "  %-15s  x %.2f, then x %.2f (%.1f GB/s)", steps[i].name, l.rows[i].rate / l.rows[i - 1].rate,
                 steps[i].gbs_2007 / steps[i - 1].gbs_2007, steps[i].gbs_2007);
    lesson_say(&l, "In all x %.1f, then x %.1f; shuffles give x %.2f more, and one launch with wide loads x %.2f.",
               l.rows[6].rate / l.rows[0].rate, steps[6].gbs_2007 / steps[0].gbs_2007, l.rows[7].rate / l.rows[6].rate,
               library->rate / l.rows[7].rate);
  } else if (l.mode == LESSON_COUNTED) {
    const lesson_counters *const a = &l.rows[0].counted, *const b = &l.rows[1].counted, *const c = &l.rows[2].counted;
    lesson_say(&l, "Divergent branches: %.0f interleaved, %.0f with neighbouring threads, %.0f when sequential.",
               a->divergent, b->divergent, c->divergent);
    lesson_say(&l,
               "Passes for a load from shared memory: %.2f, %.2f and %.2f: a step mends what one has broken before.",
               a->load_passes, b->load_passes, c->load_passes);
    lesson_say(&l, "Requests to memory: %.0f at first, %.0f with many per thread, %.0f with shuffles.", a->requests,
               l.rows[6].counted.requests, l.rows[7].counted.requests);
  }
  return lesson_end(&l);
}
