/* Lesson 15: warp primitives. The 32 threads of a warp can exchange values without memory:
 *
 *   __ballot_sync       one bit for each thread's yes or no        __any_sync, __all_sync  their logical OR and AND
 *   __match_any_sync    the threads that have the same value       __match_all_sync        whether all have the same
 *   __shfl_sync         the value of any other thread; _up and _down: of the one that many lanes before or after; _xor:
 *                       of the one whose lane is its own with the bits of a mask flipped
 *   __syncwarp          a barrier of the warp, after which its threads see what the others wrote before it
 *
 * Each takes the mask of the threads that take part, and waits for them. The mask has to be known in advance, for
 * example by a ballot in which all threads take part. __activemask() is not that mask: it says which threads happen to
 * execute this instruction together, and threads that took the same branch may be apart.
 *
 * They are used here for compaction: of n values, those that are wanted are written one after the other. Each needs an
 * index from an atomic counter. */
#include <cuda_runtime.h>

#define WARP 32
#define BLOCK 256
#define ALL 0xffffffffu

/* Below 2^20; two of five are wanted, in each warp. */
__host__ __device__ inline int content(unsigned i) { return (int)(i * 2654435761u >> 12); }
__host__ __device__ inline bool wanted(int x) { return x < 419430; }

__global__ void one_atomic_each(const int *in, int *out, unsigned *count, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n || !wanted(in[i])) return;
  out[atomicAdd(count, 1u)] = in[i];
}

/* How many bits are set before this thread's. */
__device__ unsigned before_me(unsigned ballot) { return (unsigned)__popc(ballot & ((1u << threadIdx.x % WARP) - 1)); }

__global__ void one_atomic_a_warp(const int *in, int *out, unsigned *count, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  const int x = i < n ? in[i] : 0;
  const unsigned ballot = __ballot_sync(ALL, i < n && wanted(x)); /* all threads take part, also those beyond n */
  unsigned first = 0;
  if (threadIdx.x % WARP == 0 && ballot) first = atomicAdd(count, (unsigned)__popc(ballot));
  first = __shfl_sync(ALL, first, 0);
  if (ballot >> threadIdx.x % WARP & 1) out[first + before_me(ballot)] = x;
}

__global__ void one_atomic_a_block(const int *in, int *out, unsigned *count, unsigned n) {
  __shared__ unsigned of_warp[WARP], first;
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  const int x = i < n ? in[i] : 0;
  const unsigned ballot = __ballot_sync(ALL, i < n && wanted(x));
  if (lane == 0) of_warp[warp] = (unsigned)__popc(ballot);
  __syncthreads();
  if (warp == 0) { /* a scan of the warps' counts, by shuffles */
    const unsigned own = lane < BLOCK / WARP ? of_warp[lane] : 0;
    unsigned sum = own;
    for (unsigned step = 1; step < WARP; step *= 2) {
      const unsigned other = __shfl_up_sync(ALL, sum, step);
      if (lane >= step) sum += other;
    }
    if (lane < BLOCK / WARP) of_warp[lane] = sum - own;
    if (lane == WARP - 1) first = atomicAdd(count, sum);
  }
  __syncthreads();
  if (ballot >> lane & 1) out[first + of_warp[warp] + before_me(ballot)] = x;
}

/* The same in order: flags, their scan, and each wanted value to the index that its sum gives. */
__global__ void flag(const int *in, unsigned *flags, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) flags[i] = wanted(in[i]);
}
__global__ void scatter(const int *in, const unsigned *places, int *out, unsigned *count, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  if (wanted(in[i])) out[places[i]] = in[i];
  if (i == n - 1) *count = places[i] + wanted(in[i]);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, for 2^25 values of which two of five are wanted:
 *
 *   an atomic for each     818 us. The compiler adds the ones of a warp up by itself, so this already is an atomic for
 *                          each warp
 *   an atomic for a warp   817 us: 1,048,576 atomics to one address, 1.3 a nanosecond, which is what the L2 can do.
 *                          Older textbooks, whose compilers did not do that, gain a lot here
 *   an atomic for a block  152 us, 5.4 times as fast: an eighth of the atomics, which no longer limit
 *   scan in order          342 us: the others write the values in any order. Flags, their scan and a scatter keep the
 *                          order, and move the data three times */
#include "lesson.h"
#include <algorithm>

static const lesson_about about = {
    "15_warp_primitives", "ballot, match, shuffles and masks; compaction", "ints", 1 << 25, 1 << 12, 1, 1 << 28, "GB/s",
};

/* One warp calls all of them. answers: WARP for each question. */
enum question { BALLOT, ANY, ALL_OF_THEM, MATCH, SAME, FROM_3, UP, DOWN, XOR, NEIGHBOUR, ACTIVE, QUESTIONS };
static const char *const questions[] = {"__ballot_sync(all, lane % 2 == 0)",   "__any_sync(all, lane == 7)",
                                        "__all_sync(all, lane == 7)",          "__match_any_sync(all, lane / 8)",
                                        "__match_all_sync(all, lane / 8)",     "__shfl_sync(all, 100 + lane, 3)",
                                        "__shfl_up_sync(all, 100 + lane, 1)",  "__shfl_down_sync(all, 100 + lane, 2)",
                                        "__shfl_xor_sync(all, 100 + lane, 1)", "stored, __syncwarp(), next one loaded"};

__global__ void ask(unsigned *answers) {
  __shared__ unsigned s[WARP];
  const unsigned lane = threadIdx.x, value = 100 + lane;
  int same;
  answers[BALLOT * WARP + lane] = __ballot_sync(ALL, lane % 2 == 0);
  answers[ANY * WARP + lane] = __any_sync(ALL, lane == 7) != 0;
  answers[ALL_OF_THEM * WARP + lane] = __all_sync(ALL, lane == 7) != 0;
  answers[MATCH * WARP + lane] = __match_any_sync(ALL, lane / 8);
  answers[SAME * WARP + lane] = __match_all_sync(ALL, lane / 8, &same);
  answers[FROM_3 * WARP + lane] = __shfl_sync(ALL, value, 3);
  answers[UP * WARP + lane] = __shfl_up_sync(ALL, value, 1);
  answers[DOWN * WARP + lane] = __shfl_down_sync(ALL, value, 2);
  answers[XOR * WARP + lane] = __shfl_xor_sync(ALL, value, 1);
  s[lane] = value;
  __syncwarp();
  answers[NEIGHBOUR * WARP + lane] = s[(lane + 1) % WARP];
  if (lane % 2) answers[ACTIVE * WARP + lane] = __activemask();
}

static unsigned by_hand(int question, unsigned lane) {
  switch (question) {
  case BALLOT: return 0x55555555;
  case ANY: return 1;
  case MATCH: return 0xffu << lane / 8 * 8;
  case FROM_3: return 103;
  case UP: return 100 + (lane ? lane - 1 : 0); /* without such a lane a thread gets its own value */
  case DOWN: return 100 + (lane + 2 < WARP ? lane + 2 : lane);
  case XOR: return 100 + (lane ^ 1);
  case NEIGHBOUR: return 100 + (lane + 1) % WARP;
  default: return 0;
  }
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n, grid = (n + BLOCK - 1) / BLOCK;
  std::vector<int> values(n), kept;
  for (unsigned i = 0; i < n; i++) {
    values[i] = content(i);
    if (wanted(values[i])) kept.push_back(values[i]);
  }
  std::vector<int> sorted = kept;
  std::sort(sorted.begin(), sorted.end());
  const int *const in = lesson_array(&l, values);
  int *const out = lesson_array<int>(&l, n);
  unsigned *const flags = lesson_array<unsigned>(&l, n), *const places = lesson_array<unsigned>(&l, n);
  unsigned *const count = lesson_array<unsigned>(&l, 1);
  gk_scratch scratch = {};
  GK_CHECK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(n, sizeof(unsigned)), 0));
  const double bytes = ((double)n + (double)kept.size()) * sizeof(int);

  decltype(&one_atomic_each) const ways[] = {one_atomic_each, one_atomic_a_warp, one_atomic_a_block};
  const char *const names[] = {"an atomic for each", "an atomic for a warp", "an atomic for a block", "scan in order"};
  for (int w = 0; w < 4; w++) {
    const lesson_row *const r = lesson_measure(&l, names[w], bytes, [&] {
      GK_CHECK(cudaMemsetAsync(count, 0, sizeof *count, 0));
      if (w < 3) {
        ways[w]<<<grid, BLOCK>>>(in, out, count, n);
        return;
      }
      flag<<<grid, BLOCK>>>(in, flags, n);
      GK_CHECK(gk_scan_exclusive(flags, places, n, gk_op_sum(), 0, &scratch));
      scatter<<<grid, BLOCK>>>(in, places, out, count, n);
    });
    std::vector<int> got(kept.size());
    GK_CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(int), cudaMemcpyDeviceToHost));
    if (w < 3) std::sort(got.begin(), got.end()); /* they come in any order */
    if (got != (w < 3 ? sorted : kept)) lesson_wrong(&l, r, "these are not the wanted values");
    lesson_expect(&l, r, count, std::vector<unsigned>(1, (unsigned)kept.size()));
    GK_CHECK(cudaMemset(out, 0xff, n * sizeof(int)));
  }
  GK_CHECK(gk_scratch_destroy(&scratch));
  lesson_table(&l);

  unsigned *const answers = lesson_array<unsigned>(&l, QUESTIONS * WARP);
  std::vector<unsigned> got(QUESTIONS * WARP);
  ask<<<1, WARP>>>(answers);
  GK_CHECK_LAUNCH();
  GK_CHECK(cudaMemcpy(got.data(), answers, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  lesson_say(&l, "What lanes 0, 1 and 31 of a warp get:");
  for (int q = 0; q < ACTIVE; q++) {
    const unsigned *const a = &got[(size_t)q * WARP];
    lesson_say(&l, q < FROM_3 ? "  %-40s %8x %8x %8x" : "  %-40s %8u %8u %8u", questions[q], a[0], a[1], a[31]);
    for (unsigned lane = 0; lane < WARP; lane++)
      if (a[lane] != by_hand(q, lane))
        lesson_wrong(&l, &l.rows[0], "%s gives lane %u %x, not %x", questions[q], lane, a[lane], by_hand(q, lane));
  }
  lesson_say(&l,
             "__activemask() in a branch of the 16 odd lanes was %x for lane 1; any subset of aaaaaaaa is possible.",
             got[ACTIVE * WARP + 1]);
  const lesson_row *const r = l.rows;
  if (l.mode == LESSON_TIMED) {
    lesson_say(
        &l, "An atomic for a warp is %.2f times as fast as an atomic for each value, an atomic for a block %.2f times.",
        r[0].us / r[1].us, r[0].us / r[2].us);
    if (r[0].us < 2 * r[1].us)
      lesson_say(&l,
                 "The compiler combines the atomics of a warp by itself, so the ballot gains less than in textbooks.");
    lesson_say(&l, "Keeping the order takes %.2f times as long as the fastest variant that does not.",
               r[3].us / (r[1].us < r[2].us ? r[1].us : r[2].us));
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "%zu of %u values are wanted: as many atomics, or at most %u for warps, or %u for blocks.",
               kept.size(), n, grid * BLOCK / WARP, grid);
    lesson_say(&l, "Keeping the order takes %.2f times the requests of an atomic for each warp, and two more launches.",
               r[3].counted.requests / r[1].counted.requests);
  }
  return lesson_end(&l);
}
