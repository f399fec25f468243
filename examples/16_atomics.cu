/* Lesson 16: atomics and fences. If many threads do bins[v]++, counts are lost: each reads, adds and writes, and others
 * write in between. atomicAdd() does the three as one operation. Additions to the same address are done one after the
 * other. */
#include <cuda_runtime.h>

#define BINS 256
#define BLOCK 256
#define WARP 32

/* Every value is an addition to one of 256 counters in global memory. */
__global__ void histogram(const unsigned char *values, unsigned *bins, unsigned n) {
  for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) atomicAdd(&bins[values[i]], 1u);
}

/* Each block counts in shared memory, and adds its counters to those of the grid at the end. */
__global__ void histogram_shared(const unsigned char *values, unsigned *bins, unsigned n) {
  __shared__ unsigned of_block[BINS];
  for (unsigned b = threadIdx.x; b < BINS; b += BLOCK) of_block[b] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
    atomicAdd(&of_block[values[i]], 1u);
  __syncthreads();
  for (unsigned b = threadIdx.x; b < BINS; b += BLOCK)
    if (of_block[b]) atomicAdd(&bins[b], of_block[b]);
}

/* Aggregated: one of the threads of a warp that have the same value adds for all of them. */
__device__ void add_aggregated(unsigned *bins, unsigned bin) {
  const unsigned peers = __match_any_sync(~0u, bin);
  if (bin < BINS && threadIdx.x % WARP == (unsigned)__ffs((int)peers) - 1)
    atomicAdd(&bins[bin], (unsigned)__popc(peers));
}

template <bool SHARED> __global__ void histogram_aggregated(const unsigned char *values, unsigned *bins, unsigned n) {
  __shared__ unsigned of_block[BINS];
  for (unsigned b = threadIdx.x; SHARED && b < BINS; b += BLOCK) of_block[b] = 0;
  __syncthreads();
  /* A warp stays in the loop until its first thread has finished: __match_any_sync() is for all 32 threads. */
  for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i - threadIdx.x % WARP < n; i += gridDim.x * BLOCK)
    add_aggregated(SHARED ? of_block : bins, i < n ? values[i] : BINS);
  __syncthreads();
  for (unsigned b = threadIdx.x; SHARED && b < BINS; b += BLOCK)
    if (of_block[b]) atomicAdd(&bins[b], of_block[b]);
}

enum scope { OF_BLOCK, OF_DEVICE, OF_SYSTEM };

/* n additions. Each block has counters of its own in global memory, one for each lane, so that block scope is enough.
 * */
template <scope SCOPE> __global__ void count(unsigned *counters, unsigned n) {
  unsigned *const mine = &counters[blockIdx.x * WARP + threadIdx.x % WARP];
  for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) {
    if (SCOPE == OF_BLOCK) atomicAdd_block(mine, 1u);
    if (SCOPE == OF_DEVICE) atomicAdd(mine, 1u);
    if (SCOPE == OF_SYSTEM) atomicAdd_system(mine, 1u);
  }
}

/* Blocks of one thread: one writes messages, the next one reads them. Blocks start in any order, so each takes a ticket
 * when it starts, and readers wait only for lower tickets. The writer is slow on purpose, so that the reader has the
 * neighbouring words in its cache. */
template <bool FENCES>
__global__ void messages(int *data, int *flag, unsigned *started, unsigned *stale, unsigned many) {
  const unsigned ticket = atomicAdd(started, 1u), first = ticket / 2 * many;
  if (ticket % 2 == 0) {
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

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, for 2^26 values, in additions a nanosecond:
 *
 *                      random values  equal values
 *   global                       3.9           1.4   256 counters are 1 KiB, in a few slices of the L2. One address
 *                                                    takes 1.36 atomics a nanosecond
 *   global aggregated            4.2            43   a warp of random values has few equal ones, so this saves little;
 *                                                    of equal values one addition in 32 is left, 1.35 a nanosecond
 *   shared                       575           596   each multiprocessor for itself. Equal values are no slower: the
 *                                                    hardware adds up the ones of a warp
 *   shared aggregated            118           540   the match takes longer than the additions that it saves: 4.9 and
 *                                                    1.1 times as slow as shared
 *
 * An atomic has a scope: the threads that it is atomic for. atomicAdd_block() is for the block, atomicAdd() for the
 * device, atomicAdd_system() for other GPUs and the CPU, too. Here all take the same time, since all are done in the
 * L2.
 *
 * An atomic orders no other memory access. A thread that writes a message and then a flag needs a fence between the two
 * writes, or others may see the flag first. A thread that reads the flag and then the message needs a fence between the
 * two reads, or it may read an old value from its cache. Without fences 3584 of 4096 messages were old, 7 of 8: a
 * sector of the L1 has 8 of them, and the first one that was read brought the other 7 along before they were written.
 * On another GPU all may be right by luck. The race checker of the stand-in reports it every time. */
#include "lesson.h"
#include <unistd.h>

static const lesson_about about = {
    "16_atomics",
    "histograms by atomics, with fewer additions to one address; scopes; messages and fences",
    "values of one byte",
    1 << 26,
    1 << 12,
    1,
    1 << 30,
    "Gadd/s"};

#define PAIRS 16     /* of a block that writes messages and a block that reads them */
#define MESSAGES 256 /* from each writer */

/* How many messages were old when their flag was set, and, on the stand-in, how many races its checker has found. */
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

/* The race checker of the stand-in reports on stderr. Its report is what this lesson is about, so it is printed with
 * the rest of the lesson's text. */
static mail send_without_fences(const lesson *l, int *data, unsigned *numbers) {
  if (l->mode != LESSON_COUNTED || l->csv_only) return send<false>(data, numbers);
  printf("What the race checker reports about messages without fences:\n");
  fflush(stdout);
  const int kept = dup(STDERR_FILENO);
  dup2(STDOUT_FILENO, STDERR_FILENO);
  const mail m = send<false>(data, numbers);
  dup2(kept, STDERR_FILENO);
  close(kept);
  printf("\n");
  return m;
}

/* The rows in order: four for random values, four for equal ones, three scopes. */
static void report(lesson *l, mail with, mail without) {
  const lesson_row *const rows = l->rows, *const scopes = l->rows + 8;
  if (l->mode == LESSON_TIMED) {
    lesson_say(l, "Equal values take %.1f times as long as random ones in global memory, %.1f times in shared memory;",
               rows[4 + 0].us / rows[0].us, rows[4 + 2].us / rows[2].us);
    lesson_say(
        l, "aggregated by warps %.2f and %.2f times. For random values in shared memory aggregation takes %.2f times",
        rows[4 + 1].us / rows[1].us, rows[4 + 3].us / rows[3].us, rows[3].us / rows[2].us);
    lesson_say(l, "as long as plain atomics, for equal ones %.2f times.", rows[4 + 3].us / rows[4 + 2].us);
    lesson_say(l, "Scopes: device takes %.2f times as long as block, system %.2f times.", scopes[1].us / scopes[0].us,
               scopes[2].us / scopes[0].us);
    lesson_say(l, "Of %d messages without fences %u were old when their flag was set, with fences %u.%s",
               PAIRS * MESSAGES, without.stale, with.stale,
               without.stale ? "" : " That is luck: nothing guarantees it.");
  } else if (l->mode == LESSON_COUNTED) {
    lesson_say(l, "Random values make %.0f atomics in global memory; with shared memory %.0f are left.",
               rows[0].counted.global_atomics, rows[2].counted.global_atomics);
    lesson_say(l, "Equal values make %.0f atomics in shared memory; aggregated by warps %.0f.",
               rows[4 + 2].counted.shared_atomics, rows[4 + 3].counted.shared_atomics);
    lesson_say(l, "Messages without fences: %u were old, and the race checker reports %llu accesses; with fences none.",
               without.stale, without.races);
  }
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  l.hide_accesses = true;
  const unsigned n = (unsigned)l.n, blocks = l.mode == LESSON_TIMED ? (unsigned)l.device.sms * 8 : 4;
  std::vector<unsigned char> random(n), equal(n, (unsigned char)7);
  unsigned state = 1;
  for (unsigned i = 0; i < n; i++) {
    state = state * 1664525 + 1013904223;
    random[i] = (unsigned char)(state >> 24);
  }
  unsigned *const bins = lesson_array<unsigned>(&l, BINS);

  void (*const ways[])(const unsigned char *, unsigned *, unsigned) = {histogram, histogram_aggregated<false>,
                                                                       histogram_shared, histogram_aggregated<true>};
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
  for (int s = 0; s < 3; s++) {
    const auto kernel = scopes[s];
    const lesson_row *const r = lesson_measure(&l, of[s], n, [=] {
      GK_CHECK(cudaMemsetAsync(counters, 0, places * sizeof(unsigned), 0));
      kernel<<<blocks, BLOCK>>>(counters, n);
    });
    lesson_expect(&l, r, counters, counts);
  }
  lesson_table(&l);

  int *const letters = lesson_array<int>(&l, 2 * PAIRS * MESSAGES);
  unsigned *const numbers = lesson_array<unsigned>(&l, 2);
  const mail with = send<true>(letters, numbers);
  const mail without = send_without_fences(&l, letters, numbers);
  if (with.stale || with.races)
    lesson_wrong(&l, rows[0][0], "with fences, %u messages were old, and %llu accesses raced", with.stale, with.races);
  if (l.mode == LESSON_COUNTED && !without.races)
    lesson_wrong(&l, rows[0][0], "the race checker has not reported the missing fences");

  report(&l, with, without);
  return lesson_end(&l);
}
