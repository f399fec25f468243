/* Lesson 19: dynamic parallelism. A kernel may launch kernels. It is meant for work whose amount only the GPU knows.
 * Here rows of numbers are summed up: most have 8 numbers, every 64th has 8192.
 *
 *   a thread for each row  most threads wait for the few that have a long row
 *   a warp for each row    most lanes have nothing to do
 *   launched               a thread sums up a short row, and launches a block for a long one
 *   listed                 the same without launches by the GPU: the indices of long rows go to a list, and a second
 *                          kernel sums up the rows that it finds there
 *
 * Kernels that launch kernels have to be compiled as relocatable device code and linked with the device runtime: nvcc
 * -rdc=true -lcudadevrt. Launches that wait for their turn need memory, which cudaDeviceSetLimit() reserves. Since CUDA
 * 12 a kernel cannot wait for the kernels that it has launched; what follows in the stream, and the host, find their
 * results. */
#include "lesson.h" /* for gk_block_reduce() */

#define BLOCK 256
#define WARP 32
#define SHORT 8
#define LONG 8192
#define EVERY 64 /* rows, one is long */

/* Row i begins at starts[i] and ends where the next one begins. */
__device__ unsigned sum_of(const unsigned *in, unsigned begin, unsigned end, unsigned from, unsigned step) {
  unsigned sum = 0;
  for (unsigned k = begin + from; k < end; k += step) sum += in[k];
  return sum;
}

__global__ void thread_a_row(const unsigned *in, const unsigned *starts, unsigned *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = sum_of(in, starts[i], starts[i + 1], 0, 1);
}

__global__ void warp_a_row(const unsigned *in, const unsigned *starts, unsigned *out, unsigned n) {
  const unsigned i = (blockIdx.x * BLOCK + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
  if (i >= n) return; /* the same for all threads of a warp */
  unsigned sum = sum_of(in, starts[i], starts[i + 1], lane, WARP);
  for (unsigned step = WARP / 2; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (lane == 0) out[i] = sum;
}

__global__ void block_of_row(const unsigned *in, const unsigned *starts, unsigned *out, unsigned i) {
  const unsigned sum = gk_block_reduce(sum_of(in, starts[i], starts[i + 1], threadIdx.x, BLOCK), gk_sum<unsigned>());
  if (threadIdx.x == 0) out[i] = sum;
}

#ifndef CUDA_ON_CPU
__global__ void dynamic(const unsigned *in, const unsigned *starts, unsigned *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  if (starts[i + 1] - starts[i] <= SHORT)
    out[i] = sum_of(in, starts[i], starts[i + 1], 0, 1);
  else /* to a stream without order: the launches are independent of each other */
    block_of_row<<<1, BLOCK, 0, cudaStreamFireAndForget>>>(in, starts, out, i);
}
#endif

/* list[0] is the number of long rows. */
__global__ void list_long_rows(const unsigned *in, const unsigned *starts, unsigned *out, unsigned n, unsigned *list) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  if (starts[i + 1] - starts[i] <= SHORT)
    out[i] = sum_of(in, starts[i], starts[i + 1], 0, 1);
  else
    list[1 + atomicAdd(list, 1u)] = i;
}
__global__ void listed(const unsigned *in, const unsigned *starts, unsigned *out, const unsigned *list) {
  for (unsigned k = blockIdx.x; k < list[0]; k += gridDim.x) {
    const unsigned i = list[1 + k];
    const unsigned sum = gk_block_reduce(sum_of(in, starts[i], starts[i + 1], threadIdx.x, BLOCK), gk_sum<unsigned>());
    if (threadIdx.x == 0) out[i] = sum;
  }
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, for 65,536 rows, 1024 of them long:
 *
 *   a thread for each row  222 us: 8192 additions of one thread, one after the other
 *   a warp for each row    31.5 us, 7 times as fast: 256 steps for a long row, and 3/4 of the lanes idle in short ones
 *   long rows listed       15.9 us, 14 times as fast: 32 steps of 256 threads for a long row
 *   long rows launched     263 us: 1024 launches by the GPU, 0.26 us each. That is less than the 3.8 us of a launch by
 *                          the host (`one long row alone`), but it is paid for every long row, and the list is not */

static const lesson_about about = {"19_dynamic_parallelism",
                                   "rows of uneven lengths: kernels that launch kernels, or a list",
                                   "rows",
                                   1 << 16,
                                   1 << 8,
                                   1,
                                   1 << 20,
                                   "GB/s"};

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n, grid = (n + BLOCK - 1) / BLOCK;
  const unsigned few = l.mode == LESSON_TIMED ? (unsigned)l.device.sms * 8 : 4, longs = (n + EVERY - 1) / EVERY;
  std::vector<unsigned> row_starts(1, 0u), values, sums(n, 0u);
  for (unsigned i = 0; i < n; i++) {
    for (unsigned k = 0; k < (i % EVERY == 0 ? LONG : SHORT); k++) {
      values.push_back((unsigned)values.size() * 2654435761u);
      sums[i] += values.back();
    }
    row_starts.push_back((unsigned)values.size());
  }
  const unsigned *const in = lesson_array(&l, values), *const starts = lesson_array(&l, row_starts);
  unsigned *const out = lesson_array<unsigned>(&l, n), *const list = lesson_array<unsigned>(&l, 1 + longs);
  const double bytes = (double)values.size() * sizeof(unsigned);

  const lesson_row *const threads =
      lesson_measure(&l, "a thread for each row", bytes, [=] { thread_a_row<<<grid, BLOCK>>>(in, starts, out, n); });
  lesson_expect(&l, threads, out, sums);
  const unsigned warps_grid = (n + BLOCK / WARP - 1) / (BLOCK / WARP);
  const lesson_row *const warps =
      lesson_measure(&l, "a warp for each row", bytes, [=] { warp_a_row<<<warps_grid, BLOCK>>>(in, starts, out, n); });
  lesson_expect(&l, warps, out, sums);
  const lesson_row *const by_list = lesson_measure(&l, "long rows listed", bytes, [=] {
    GK_CHECK(cudaMemsetAsync(list, 0, sizeof(unsigned), 0));
    list_long_rows<<<grid, BLOCK>>>(in, starts, out, n, list);
    listed<<<few, BLOCK>>>(in, starts, out, list);
  });
  lesson_expect(&l, by_list, out, sums);
  const lesson_row *const one = lesson_measure(&l, "one long row alone", (double)LONG * sizeof(unsigned),
                                               [=] { block_of_row<<<1, BLOCK>>>(in, starts, out, 0); });
  lesson_expect(&l, one, out, std::vector<unsigned>(1, sums[0]));
#ifdef CUDA_ON_CPU
  lesson_table(&l);
  if (l.mode == LESSON_COUNTED)
    lesson_say(&l,
               "A thread for each row makes %.0f requests, most of them by a single lane; a warp for each row %.0f.",
               threads->counted.requests, warps->counted.requests);
  lesson_say(&l, "skipped: launches by kernels, which the stand-in does not have");
#else
  GK_CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, longs + 1));
  const lesson_row *const launched =
      lesson_measure(&l, "long rows launched", bytes, [=] { dynamic<<<grid, BLOCK>>>(in, starts, out, n); });
  lesson_expect(&l, launched, out, sums);
  lesson_table(&l);
  const lesson_row *const plain = threads->us < warps->us ? threads : warps;
  lesson_say(&l, "%u launches by the GPU take %.2f times as long as %s, and %.2f times as long as a list:", longs,
             launched->us / plain->us, plain->variant, launched->us / by_list->us);
  lesson_say(&l, "%.2f us for each, where a launch of one such row by the host takes %.2f us.", launched->us / longs,
             one->us);
  if (launched->us > by_list->us)
    lesson_say(&l, "Here a list in memory and one more launch by the host is faster, and needs no -rdc=true.");
#endif
  return lesson_end(&l);
}
