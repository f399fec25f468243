/* Lesson 9: divergence. The 32 threads of a warp share one instruction at a time. If a branch sends some of them
 * this way and some that way, the warp goes both ways, one after the other, and a loop lasts as long as its longest
 * thread. A branch that whole warps agree on costs nothing, however much the warps differ: only what happens within
 * a warp counts.
 *
 * How many warps diverge can be told from the condition alone: exams ask it, and a ballot of each warp answers it.
 *
 * A lock shows the other side of it. Written as on a CPU,
 *
 *   while (atomicCAS(lock, 0, 1)) {}    // wait
 *   ...                                 // one thread is here
 *   atomicExch(lock, 0);
 *
 * it hangs on GPUs before Volta, whose warps run in step: the thread that has the lock waits behind the loop for
 * those of its warp that are still in it. Since Volta each thread makes progress by itself. Whoever takes the lock,
 * works and releases it within one turn of the loop, as in_turn() does, needs no such promise. */
#include "lesson.h"

static const lesson_about about = {"09_divergence", "a warp whose threads go two ways goes both, one after the other",
                                   "threads",       1 << 22,
                                   1 << 10,         1,
                                   1 << 26,         "GFLOP/s"};

#define WARP 32
#define BLOCK 256
#define ROUNDS 256  /* multiply-adds on each way */
#define STARTS 1024 /* different values to start from */

/* Two ways that a compiler cannot make one of. */
__host__ __device__ inline float this_way(float x, int rounds) {
  for (int i = 0; i < rounds; i++) x = fmaf(x, 0.5f, 1);
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

/* Every other group of so many threads goes the other way. */
__global__ void two_ways(float *out, unsigned n, unsigned group) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  if (i / group % 2)
    out[i] = that_way(start_of(i), ROUNDS);
  else
    out[i] = this_way(start_of(i), ROUNDS);
}

/* Loops of 1/32 ... 32/32 of ROUNDS: the neighbours in a warp, or, with group 32, those in a block and further. */
__host__ __device__ inline int rounds_of(unsigned i, unsigned group) {
  return (int)(i / group % WARP + 1) * ROUNDS / WARP;
}
__global__ void loops(float *out, unsigned n, unsigned group) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = this_way(start_of(i), rounds_of(i, group));
}

/* Of the questions below, by number. */
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

__device__ void add_one(volatile unsigned *sum) { *sum = *sum + 1; }

__global__ void in_turn(int *lock, unsigned *sum) {
  for (bool done = false; !done;)
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      add_one(sum);
      __threadfence(); /* what it wrote is seen before the lock is free */
      atomicExch(lock, 0);
      done = true;
    }
}

/* One thread of each warp takes the lock, for all of them. */
__global__ void once_a_warp(int *lock, unsigned *sum) {
  if (gk_lane() == 0) {
    while (atomicCAS(lock, 0, 1)) {}
    __threadfence();
    for (int i = 0; i < WARP; i++) add_one(sum);
    __threadfence();
    atomicExch(lock, 0);
  }
  __syncwarp();
}

__global__ void just_add(int *, unsigned *sum) { atomicAdd(sum, 1u); }

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
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
    lesson_say(&l, "if (%s): %u warps diverge", questions[q].text, diverged);
    if (diverged != by_hand(q)) lesson_wrong(&l, one, "counting by hand gives %u warps", by_hand(q));
  }
  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "Two ways within a warp take %.2f times as long as one, by whole warps %.2f times.",
               by[0]->us / one->us, by[1]->us / one->us);
    lesson_say(&l, "Loops of 1 to 32 parts take %.2f times as long in one warp as sorted into warps of equal length.",
               longest[0]->us / longest[1]->us);
    lesson_say(&l, "For 1024 additions, a lock of each thread takes %.0f us, of each warp %.0f us, atomicAdd %.1f us.",
               locked[0]->us, locked[1]->us, locked[2]->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "Two ways by parity make %.0f of %u warps diverge, by whole warps %.0f.",
               by[0]->counted.diverged_warps, grid * BLOCK / WARP, by[1]->counted.diverged_warps);
    lesson_say(&l, "Loops whose lengths differ within a warp make %.0f warps diverge, sorted by length %.0f.",
               longest[0]->counted.diverged_warps, longest[1]->counted.diverged_warps);
  }
  return lesson_end(&l);
}
