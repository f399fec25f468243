/* Lesson 9: divergence. The 32 threads of a warp execute one instruction at a time. If a branch sends some of them one
 * way and some the other way, the warp executes both branches, one after the other, and a loop lasts as long as its
 * longest thread. A branch on which whole warps agree costs nothing extra. */
#include <cuda_runtime.h>
#include <math.h>

#define WARP 32
#define BLOCK 256
#define ROUNDS 256  /* multiply-adds in each branch */
#define STARTS 1024 /* different initial values */

/* Two functions that the compiler cannot merge. With a factor near 1 the results of this_way() depend on x and on the
 * number of rounds. */
__host__ __device__ inline float this_way(float x, int rounds) {
  for (int i = 0; i < rounds; i++) x = fmaf(x, 0.999f, 1);
  return x;
}
__host__ __device__ inline float that_way(float x, int rounds) {
  for (int i = 0; i < rounds; i++) x = fmaf(x, x, -0.75f);
  return x;
}
__host__ __device__ inline float start_of(unsigned i) { return (float)(i % STARTS) / STARTS; }

__global__ void one_way(float *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = this_way(start_of(i), ROUNDS);
}

/* Every other group of threads takes the other branch: group 1 splits every warp, group 32 splits none. */
__global__ void two_ways(float *out, unsigned n, unsigned group) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  if (i / group % 2)
    out[i] = that_way(start_of(i), ROUNDS);
  else
    out[i] = this_way(start_of(i), ROUNDS);
}

/* Trip counts of 1/32 to 32/32 of ROUNDS: they differ within each warp, or, with group 32, from warp to warp. */
__host__ __device__ inline int rounds_of(unsigned i, unsigned group) {
  return (int)(i / group % WARP + 1) * ROUNDS / WARP;
}
__global__ void loops(float *out, unsigned n, unsigned group) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = this_way(start_of(i), rounds_of(i, group));
}

/* A lock, taken, used and released within one iteration of a loop. Written as on a CPU,
 *
 *   while (atomicCAS(lock, 0, 1)) {}    // wait
 *   ...                                 // one thread at a time
 *   atomicExch(lock, 0);
 *
 * it hangs on GPUs before Volta, whose warps run in lockstep: the thread that has the lock waits after the loop for the
 * threads of its warp that are still in it. Since Volta every thread makes progress on its own; this loop does not rely
 * on that. */
__device__ void add_one(volatile unsigned *sum) { *sum = *sum + 1; }

__global__ void in_turn(int *lock, unsigned *sum) {
  for (bool done = false; !done;)
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      add_one(sum);
      __threadfence(); /* other threads see the sum before they see the lock free */
      atomicExch(lock, 0);
      done = true;
    }
}

/* One thread of each warp takes the lock, and adds for all 32. */
__global__ void once_a_warp(int *lock, unsigned *sum) {
  if (threadIdx.x % WARP == 0) {
    while (atomicCAS(lock, 0, 1)) {}
    __threadfence();
    for (int i = 0; i < WARP; i++) add_one(sum);
    __threadfence();
    atomicExch(lock, 0);
  }
  __syncwarp();
}

__global__ void just_add(int *, unsigned *sum) { atomicAdd(sum, 1u); }

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200:
 *
 *   one way                37.4 us
 *   two ways by parity     73.8 us, 1.98 times as long: every warp executes both branches
 *   two ways by warp       40.7 us, 9 % longer. That is not divergence: no warp executes both, as the stand-in counts.
 *                          But a thread executes 22 instructions more than the 272 of one way, most of them for the
 *                          division by `group`, which is 8 %
 *   loops as long by lane  58.0 us: each warp runs 256 rounds, as long as its longest thread. That is more than the
 *                          37.4 us of 256 rounds above, where the compiler knows the trip count and unrolls the loop
 *   loops as long by warp  31.3 us: the same work, but warps run 8 to 256 rounds, 132 on average. 1.85 times as fast;
 *                          the ratio of the rounds is 1.94
 *
 * 1024 threads add 1 to a counter. With a lock for each thread that is 1432 us, 1.4 us each: 1024 critical sections,
 * one after the other, each of them several round trips to the L2. With a lock for each warp there are 32 of them, with
 * 32 additions each: 191 us. atomicAdd() takes 6.1 us, which is the cost of clearing the sum and of a launch. The
 * compiler adds up the ones of a warp first (lesson 15), so there are 32 atomics, and the L2 adds without a round trip.
 *
 * How many warps diverge follows from the condition alone. Exams ask it; a ballot of each warp answers it. */
#include "lesson.h"

static const lesson_about about = {"09_divergence", "a warp whose threads take both branches executes both in turn",
                                   "threads",       1 << 22,
                                   1 << 10,         1,
                                   1 << 26,         "GFLOP/s"};

/* The conditions below, by number. */
__host__ __device__ inline bool condition(int question, uint3 thread, uint3 block, dim3 size) {
  const unsigned x = block.x * size.x + thread.x, y = block.y * size.y + thread.y;
  switch (question) {
  case 0: return x < 1000;
  case 1: return thread.x > 2;
  case 2: return thread.x / WARP > 2;
  case 3: return x % 2 == 0;
  default: return x < 76 && y < 62;
  }
}
static const struct {
  const char *text;
  dim3 grid, block;
} questions[] = {{"i < 1000, 4 blocks of 256", 4, 256},
                 {"threadIdx.x > 2, 4 blocks of 256", 4, 256},
                 {"threadIdx.x / 32 > 2, 4 blocks of 256", 4, 256},
                 {"i % 2 == 0, 4 blocks of 256", 4, 256},
                 {"x < 76 && y < 62, 5 x 4 blocks of 16 x 16", dim3(5, 4), dim3(16, 16)}};

__global__ void ask(int question, unsigned *diverged) {
  const unsigned ballot = __ballot_sync(~0u, condition(question, threadIdx, blockIdx, blockDim));
  if (gk_lane() == 0 && ballot != 0 && ballot != ~0u) atomicAdd(diverged, 1u);
}

static unsigned by_hand(int question) {
  const dim3 g = questions[question].grid, b = questions[question].block;
  unsigned diverged = 0;
  for (unsigned block = 0; block < g.x * g.y; block++)
    for (unsigned first = 0; first < b.x * b.y; first += WARP) {
      unsigned yes = 0;
      for (unsigned t = first; t < first + WARP; t++)
        yes += condition(question, make_uint3(t % b.x, t / b.x, 0), make_uint3(block % g.x, block / g.x, 0), b);
      diverged += yes != 0 && yes != WARP;
    }
  return diverged;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  l.show_branches = true;
  const unsigned n = (unsigned)l.n, grid = (n + BLOCK - 1) / BLOCK;
  const double flops = 2.0 * n * ROUNDS;
  float *const out = lesson_array<float>(&l, l.n);
  std::vector<float> ends[2] = {std::vector<float>(STARTS), std::vector<float>(STARTS)}, expected(n);
  for (unsigned i = 0; i < STARTS; i++) {
    ends[0][i] = this_way(start_of(i), ROUNDS);
    ends[1][i] = that_way(start_of(i), ROUNDS);
  }

  const lesson_row *const one = lesson_measure(&l, "one way", flops, [=] { one_way<<<grid, BLOCK>>>(out, n); });
  for (unsigned i = 0; i < n; i++) expected[i] = ends[0][i % STARTS];
  lesson_expect(&l, one, out, expected);
  const lesson_row *by[2], *longest[2];
  for (int warps = 0; warps < 2; warps++) {
    const unsigned group = warps ? WARP : 1;
    by[warps] = lesson_measure(&l, warps ? "two ways by warp" : "two ways by parity", flops,
                               [=] { two_ways<<<grid, BLOCK>>>(out, n, group); });
    for (unsigned i = 0; i < n; i++) expected[i] = ends[i / group % 2][i % STARTS];
    lesson_expect(&l, by[warps], out, expected);
  }
  for (int warps = 0; warps < 2; warps++) {
    const unsigned group = warps ? WARP : 1;
    longest[warps] = lesson_measure(&l, warps ? "loops as long by warp" : "loops as long by lane",
                                    flops * (WARP + 1) / (2 * WARP), [=] { loops<<<grid, BLOCK>>>(out, n, group); });
    for (unsigned i = 0; i < n; i++)
      expected[i] = i < WARP * STARTS ? this_way(start_of(i), rounds_of(i, group)) : expected[i % (WARP * STARTS)];
    lesson_expect(&l, longest[warps], out, expected);
  }

  unsigned *const sum = lesson_array<unsigned>(&l, 1);
  int *const lock = lesson_array<int>(&l, 1);
  GK_CHECK(cudaMemset(lock, 0, sizeof(int)));
  void (*const ways[])(int *, unsigned *) = {in_turn, once_a_warp, just_add};
  const char *const names[] = {"lock of each thread", "lock of each warp", "atomicAdd"};
  const lesson_row *locked[3];
  for (int i = 0; i < 3; i++) {
    const auto kernel = ways[i];
    locked[i] = lesson_measure(&l, names[i], 0, [=] {
      GK_CHECK(cudaMemsetAsync(sum, 0, sizeof *sum, 0));
      kernel<<<4, BLOCK>>>(lock, sum);
    });
    lesson_expect(&l, locked[i], sum, std::vector<unsigned>(1, 4 * BLOCK));
  }
  lesson_table(&l);

  for (int q = 0; q < (int)(sizeof questions / sizeof *questions); q++) {
    unsigned diverged;
    GK_CHECK(cudaMemset(sum, 0, sizeof *sum));
    ask<<<questions[q].grid, questions[q].block>>>(q, sum);
    GK_CHECK_LAUNCH();
    GK_CHECK(cudaMemcpy(&diverged, sum, sizeof diverged, cudaMemcpyDeviceToHost));
    lesson_say(&l, "if (%s): %u warp%s", questions[q].text, diverged, diverged == 1 ? " diverges" : "s diverge");
    if (diverged != by_hand(q)) lesson_wrong(&l, one, "a count by hand gives %u warps", by_hand(q));
  }
  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "Two branches within each warp take %.2f times as long as one, by whole warps %.2f times.",
               by[0]->us / one->us, by[1]->us / one->us);
    lesson_say(&l,
               "Loops whose trip counts differ within a warp take %.2f times as long as if they differ between warps.",
               longest[0]->us / longest[1]->us);
    lesson_say(&l,
               "1024 additions take %.0f us with a lock for each thread, %.0f us for each warp, %.1f us by atomicAdd.",
               locked[0]->us, locked[1]->us, locked[2]->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "Two branches by parity make %.0f of %u warps diverge, by whole warps %.0f.",
               by[0]->counted.diverged_warps, grid * BLOCK / WARP, by[1]->counted.diverged_warps);
    lesson_say(&l, "Loops whose trip counts differ within a warp make %.0f warps diverge, between warps %.0f.",
               longest[0]->counted.diverged_warps, longest[1]->counted.diverged_warps);
  }
  return lesson_end(&l);
}
