/* Lesson 16: atomics and fences. bins[v]++ by many threads loses counts: each reads, adds and writes, and another's
 * write falls in between. atomicAdd() does the three as one. The memory does them one after the other for the same
 * address, so that a histogram takes as long as its fullest bin: it gets faster by fewer additions to the same place.
 *
 *   global      every value is an addition to one of 256 places that the whole grid shares
 *   shared      each block counts for itself in shared memory, and adds its bins to the grid's at the end
 *   aggregated  the threads of a warp that have the same value let one of them add for all: __match_any_sync()
 *
 * An atomic has a scope, whose threads it is atomic for: atomicAdd_block(), atomicAdd() for the device,
 * atomicAdd_system() for other GPUs and the CPU, too.
 *
 * An atomic says nothing of other memory. Who writes a message and then a flag needs a fence in between, or others
 * may see the flag first; and who reads the flag and then the message needs one, too, or may read what its cache has
 * had since before. Whether a program without them is right is up to the GPU, its caches and who waits where; the race
 * checker of the stand-in finds it each time. */
#include "lesson.h"

static const lesson_about about = {"16_atomics",
                                   "a histogram with fewer and fewer collisions; scopes; messages with fences",
                                   "values of one byte",
                                   1 << 26,
                                   1 << 12,
                                   1,
                                   1 << 30,
                                   "Gadd/s"};

#define BINS 256
#define BLOCK 256
#define WARP 32
#define PAIRS 16     /* of a block that writes messages and one that reads them */
#define MESSAGES 256 /* from each writer */

template <bool SHARED, bool AGGREGATED>
__global__ void histogram(const unsigned char *values, unsigned *bins, unsigned n) {
  __shared__ unsigned of_block[BINS];
  if (SHARED) {
    for (unsigned b = threadIdx.x; b < BINS; b += BLOCK) of_block[b] = 0;
    __syncthreads();
  }
  unsigned *const to = SHARED ? of_block : bins;
  const unsigned lane = threadIdx.x % WARP;
  /* All of a warp stay in the loop until its first thread is through: __match_any_sync() is for all 32 of them. */
  for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i - lane < n; i += gridDim.x * BLOCK) {
    const unsigned bin = i < n ? values[i] : BINS;
    if (AGGREGATED) {
      const unsigned peers = __match_any_sync(~0u, bin);
      if (bin < BINS && lane == (unsigned)__ffs((int)peers) - 1) atomicAdd(&to[bin], (unsigned)__popc(peers));
    } else if (bin < BINS) {
      atomicAdd(&to[bin], 1u);
    }
  }
  if (SHARED) {
    __syncthreads();
    for (unsigned b = threadIdx.x; b < BINS; b += BLOCK)
      if (of_block[b]) atomicAdd(&bins[b], of_block[b]);
  }
}

enum scope { OF_BLOCK, OF_DEVICE, OF_SYSTEM };

/* n additions. Each block has counters of its own in global memory, one for each lane: the smallest scope will do. */
template <scope SCOPE> __global__ void count(unsigned *counters, unsigned n) {
  unsigned *const mine = &counters[blockIdx.x * WARP + threadIdx.x % WARP];
  for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) {
    if (SCOPE == OF_BLOCK) atomicAdd_block(mine, 1u);
    if (SCOPE == OF_DEVICE) atomicAdd(mine, 1u);
    if (SCOPE == OF_SYSTEM) atomicAdd_system(mine, 1u);
  }
}

/* Blocks of one thread, every other of which writes to the next. Which block starts first nobody knows: so each takes
 * a number when it starts, and readers wait only for those that have started before them. The writer takes its time,
 * so that the reader is there first, and has the neighbouring words in its cache. */
template <bool FENCES>
__global__ void messages(int *data, int *flag, unsigned *started, unsigned *stale, unsigned many) {
  const unsigned number = atomicAdd(started, 1u), first = number / 2 * many;
  if (number % 2 == 0) {
    for (unsigned m = first; m < first + many; m++) {
      __nanosleep(1000);
      data[m] = (int)m + 1;
      if (FENCES) __threadfence();
      atomicExch(&flag[m], 1);
    }
  } else {
    unsigned wrong = 0;
    for (unsigned m = first; m < first + many; m++) {
      while (atomicAdd(&flag[m], 0) == 0) {}
      if (FENCES) __threadfence();
      wrong += data[m] != (int)m + 1;
    }
    atomicAdd(stale, wrong);
  }
}

/* How many messages were not there when their flag was, and, on the stand-in, how many races its checker has seen. */
typedef struct mail {
  unsigned stale;
  unsigned long long races;
} mail;

template <bool FENCES> static mail send(int *data, unsigned *numbers) {
  mail m = {};
  GK_CHECK(cudaMemset(data, 0, 2 * PAIRS * MESSAGES * sizeof(int)));
  GK_CHECK(cudaMemset(numbers, 0, 2 * sizeof(unsigned)));
  messages<FENCES><<<2 * PAIRS, 1>>>(data, data + PAIRS * MESSAGES, numbers, numbers + 1, MESSAGES);
  GK_CHECK_LAUNCH();
  GK_CHECK(cudaMemcpy(&m.stale, numbers + 1, sizeof m.stale, cudaMemcpyDeviceToHost));
#ifdef CUDA_CPU_TRACE
  m.races = cuda_cpu_take_races();
#endif
  return m;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n, blocks = l.mode == LESSON_TIMED ? (unsigned)l.device.sms * 8 : 4;
  std::vector<unsigned char> random(n), equal(n, (unsigned char)7);
  unsigned state = 1;
  for (unsigned i = 0; i < n; i++) {
    state = state * 1664525 + 1013904223;
    random[i] = (unsigned char)(state >> 24);
  }
  unsigned *const bins = lesson_array<unsigned>(&l, BINS);

  void (*const ways[])(const unsigned char *, unsigned *, unsigned) = {histogram<false, false>, histogram<false, true>,
                                                                       histogram<true, false>, histogram<true, true>};
  const char *const names[] = {"global", "global aggregated", "shared", "shared aggregated"};
  const lesson_row *rows[2][4];
  for (int same = 0; same < 2; same++) {
    const std::vector<unsigned char> &values = same ? equal : random;
    const unsigned char *const in = lesson_array(&l, values);
    std::vector<unsigned> expected(BINS, 0u);
    for (const unsigned char v : values) expected[v]++;
    for (int w = 0; w < 4; w++) {
      const auto kernel = ways[w];
      char variant[48];
      snprintf(variant, sizeof variant, "%s of %s", names[w], same ? "equal values" : "random values");
      rows[same][w] = lesson_measure(&l, variant, n, [=] {
        GK_CHECK(cudaMemsetAsync(bins, 0, BINS * sizeof(unsigned), 0));
        kernel<<<blocks, BLOCK>>>(in, bins, n);
      });
      lesson_expect(&l, rows[same][w], bins, expected);
    }
  }

  const size_t places = (size_t)blocks * WARP;
  unsigned *const counters = lesson_array<unsigned>(&l, places);
  std::vector<unsigned> counts(places, 0u);
  for (unsigned i = 0; i < n; i++) counts[i / BLOCK % blocks * WARP + i % WARP]++;
  void (*const scopes[])(unsigned *, unsigned) = {count<OF_BLOCK>, count<OF_DEVICE>, count<OF_SYSTEM>};
  const char *const of[] = {"counters of block scope", "counters of device scope", "counters of system scope"};
  const lesson_row *by_scope[3];
  for (int s = 0; s < 3; s++) {
    const auto kernel = scopes[s];
    by_scope[s] = lesson_measure(&l, of[s], n, [=] {
      GK_CHECK(cudaMemsetAsync(counters, 0, places * sizeof(unsigned), 0));
      kernel<<<blocks, BLOCK>>>(counters, n);
    });
    lesson_expect(&l, by_scope[s], counters, counts);
  }
  lesson_table(&l);

  int *const letters = lesson_array<int>(&l, 2 * PAIRS * MESSAGES);
  unsigned *const numbers = lesson_array<unsigned>(&l, 2);
  const mail with = send<true>(letters, numbers);
  if (l.mode == LESSON_COUNTED) fprintf(stderr, "What the race checker says of messages without fences:\n");
  const mail without = send<false>(letters, numbers);
  if (with.stale || with.races)
    lesson_wrong(&l, rows[0][0], "with fences, %u messages were stale, and %llu accesses raced", with.stale,
                 with.races);
  if (l.mode == LESSON_COUNTED && !without.races)
    lesson_wrong(&l, rows[0][0], "the race checker has not seen that the fences are missing");

  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "Equal values take %.1f times as long as random ones in global memory, %.1f times in shared memory;",
               rows[1][0]->us / rows[0][0]->us, rows[1][2]->us / rows[0][2]->us);
    lesson_say(&l,
               "aggregated by warps %.2f and %.2f times. For random values aggregation itself costs a factor of %.2f.",
               rows[1][1]->us / rows[0][1]->us, rows[1][3]->us / rows[0][3]->us, rows[0][3]->us / rows[0][2]->us);
    if (rows[0][2]->us < rows[0][3]->us && rows[1][2]->us < rows[1][3]->us)
      lesson_say(
          &l,
          "So in shared memory it is not worth it any more: adding 1 there is done for a whole warp by the hardware.");
    lesson_say(&l, "Scopes: device takes %.2f times as long as block, system %.2f times.",
               by_scope[1]->us / by_scope[0]->us, by_scope[2]->us / by_scope[0]->us);
    lesson_say(&l, "Of %d messages without fences %u were not there when their flag was, of those with fences %u.%s",
               PAIRS * MESSAGES, without.stale, with.stale,
               without.stale ? "" : " Luck: nothing promises that it stays so.");
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "Of %.0f atomics in global memory for random values, %.0f are left with shared memory;",
               rows[0][0]->counted.global_atomics, rows[0][2]->counted.global_atomics);
    lesson_say(&l, "for equal ones warps make %.0f of %.0f in shared memory.", rows[1][3]->counted.shared_atomics,
               rows[1][2]->counted.shared_atomics);
    lesson_say(&l,
               "Messages without fences: all came, and the race checker names %llu wrong accesses; with fences none.",
               without.races);
  }
  return lesson_end(&l);
}
