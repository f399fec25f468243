/* Lesson 24: synchronising a grid. __syncthreads() is for the threads of a block. The blocks of a grid run in any
 * order, and more of them than the GPU holds wait for the first to end: a barrier for all would wait for ever. There
 * are three ways to do something once all have done something else:
 *
 *   relaunch      the end of a kernel is a barrier for all of its blocks, and the next one of the stream finds all that
 *                 it wrote. It costs a launch.
 *   last block    each block counts itself as done, in a variable of the device, and the one that finds itself to be
 *                 the last goes on alone: nobody waits. A fence has to be between its results and the counting.
 *   cooperative   a launch that starts all blocks at once, or fails if the GPU cannot hold them all. Then a barrier
 *                 can be: grid.sync(), or by hand, by a counter that all wait for.
 *
 * The variables of the device are globals with __device__ before them: kernels use them by name, the host by
 * cudaMemcpyToSymbol() and its kin, or by the address that cudaGetSymbolAddress() tells. */
#include "lesson.h"
#include <cooperative_groups.h>

static const lesson_about about = {"24_grid_sync",
                                   "a barrier for all blocks: launches, the last block, cooperative groups",
                                   "numbers to be summed up",
                                   1 << 20,
                                   1 << 12,
                                   1,
                                   1 << 30,
                                   "GB/s"};

#define BLOCK 256
#define ROUNDS 100 /* barriers, one after the other: even */
#define ROUNDS_ON_CPU 4
#define MOST 1024 /* blocks */

__device__ unsigned total, arrived; /* arrived is 0 between launches */
__device__ unsigned partial[MOST];

/* The sum of a block's numbers, in its thread 0. */
__device__ unsigned sum_of(const unsigned *in, unsigned n) {
  unsigned sum = 0;
  for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < n; i += (size_t)gridDim.x * BLOCK) sum += in[i];
  return gk_block_reduce(sum, gk_sum<unsigned>());
}

/* Of all blocks' sums, by the threads of one block. */
__device__ void finish(unsigned blocks) {
  unsigned sum = 0;
  for (unsigned b = threadIdx.x; b < blocks; b += BLOCK) sum += partial[b];
  sum = gk_block_reduce(sum, gk_sum<unsigned>());
  if (threadIdx.x == 0) total = sum;
}

__global__ void partial_sums(const unsigned *in, unsigned n) {
  const unsigned sum = sum_of(in, n);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
__global__ void sum_partial_sums(unsigned blocks) { finish(blocks); }

__global__ void sum_last_block(const unsigned *in, unsigned n) {
  __shared__ bool last;
  const unsigned sum = sum_of(in, n);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();                                            /* the sum is seen before its block counts */
    last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1; /* which puts it back to 0, too */
    __threadfence();
  }
  __syncthreads();
  if (last) finish(gridDim.x);
}

__global__ void sum_cooperative(const unsigned *in, unsigned n) {
  const unsigned sum = sum_of(in, n);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0) finish(gridDim.x);
}

/* A round: each thread has a cell, and takes over what the same thread of the next block had there, and one more. */
__device__ void take_over(const unsigned *from, unsigned *to) {
  const unsigned all = gridDim.x * BLOCK, i = blockIdx.x * BLOCK + threadIdx.x;
  to[i] = from[(i + BLOCK) % all] + 1;
}
__global__ void one_round(const unsigned *from, unsigned *to) { take_over(from, to); }

__global__ void rounds_cooperative(const unsigned *in, unsigned *even, unsigned *odd, unsigned rounds) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  for (unsigned r = 0; r < rounds; r++) {
    take_over(r == 0 ? in : r % 2 ? even : odd, r % 2 ? odd : even);
    grid.sync();
  }
}

/* The same in a cooperative launch with a barrier of our own: one thread of each block counts it as arrived, and waits
 * until all have come. */
__global__ void rounds_by_hand(const unsigned *in, unsigned *even, unsigned *odd, unsigned rounds) {
  for (unsigned r = 0; r < rounds; r++) {
    take_over(r == 0 ? in : r % 2 ? even : odd, r % 2 ? odd : even);
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(&arrived, 1u);
      while (atomicAdd(&arrived, 0u) < (r + 1) * gridDim.x) __nanosleep(20);
      __threadfence();
    }
    __syncthreads();
  }
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  unsigned n = (unsigned)l.n, blocks = l.mode == LESSON_TIMED ? (unsigned)l.device.sms : 4;
  if (blocks > MOST) blocks = MOST;
  const unsigned cells = blocks * BLOCK;
  unsigned rounds = l.mode == LESSON_TIMED ? ROUNDS : ROUNDS_ON_CPU;
  std::vector<unsigned> values(n), first(cells), last(cells), sum(1, 0u);
  for (unsigned i = 0; i < n; i++) sum[0] += values[i] = i * 2654435761u;
  for (unsigned i = 0; i < cells; i++) first[i] = i * 2246822519u;
  for (unsigned i = 0; i < cells; i++) last[i] = first[(i + rounds * BLOCK) % cells] + rounds;
  const unsigned *in = lesson_array(&l, values), *begin = lesson_array(&l, first);
  unsigned *even = lesson_array<unsigned>(&l, cells), *odd = lesson_array<unsigned>(&l, cells);
  unsigned *total_at, *arrived_at;
  GK_CHECK(cudaGetSymbolAddress((void **)&total_at, total));
  GK_CHECK(cudaGetSymbolAddress((void **)&arrived_at, arrived));
  void *of_sum[] = {&in, &n},
       *of_rounds[] = {&begin, &even, &odd, &rounds}; /* arguments, as a cooperative launch takes them */
  void **const sum_arguments = of_sum, **const rounds_arguments = of_rounds;
  const double bytes = (double)n * sizeof(unsigned);

  const lesson_row *const twice = lesson_measure(&l, "sum by two launches", bytes, [=] {
    partial_sums<<<blocks, BLOCK>>>(in, n);
    sum_partial_sums<<<1, BLOCK>>>(blocks);
  });
  lesson_expect(&l, twice, total_at, sum);
  const lesson_row *const once =
      lesson_measure(&l, "sum by the last block", bytes, [=] { sum_last_block<<<blocks, BLOCK>>>(in, n); });
  lesson_expect(&l, once, total_at, sum);
  const lesson_row *const synced = lesson_measure(&l, "sum by a cooperative launch", bytes, [=] {
    GK_CHECK(cudaLaunchCooperativeKernel(sum_cooperative, blocks, BLOCK, sum_arguments, 0, 0));
  });
  lesson_expect(&l, synced, total_at, sum);

  const lesson_row *const launches = lesson_measure(&l, "rounds by launches", 0, [=] {
    for (unsigned r = 0; r < rounds; r++)
      one_round<<<blocks, BLOCK>>>(r == 0 ? begin : r % 2 ? even : odd, r % 2 ? odd : even);
  });
  lesson_expect(&l, launches, odd, last);
  const lesson_row *const barriers = lesson_measure(&l, "rounds by grid.sync()", 0, [=] {
    GK_CHECK(cudaLaunchCooperativeKernel(rounds_cooperative, blocks, BLOCK, rounds_arguments, 0, 0));
  });
  lesson_expect(&l, barriers, odd, last);
  const lesson_row *const by_hand = lesson_measure(&l, "rounds by a counter", 0, [=] {
    GK_CHECK(cudaMemsetAsync(arrived_at, 0, sizeof(unsigned), 0));
    GK_CHECK(cudaLaunchCooperativeKernel(rounds_by_hand, blocks, BLOCK, rounds_arguments, 0, 0));
  });
  lesson_expect(&l, by_hand, odd, last);
  lesson_table(&l);

  int room; /* blocks that a multiprocessor can hold */
  GK_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&room, sum_cooperative, BLOCK, 0));
  const unsigned all = (unsigned)(room * l.device.sms);
  const cudaError_t refused = cudaLaunchCooperativeKernel(sum_cooperative, all + 1, BLOCK, sum_arguments, 0, 0);
  cudaGetLastError(); /* which is the same, and is forgotten now */
  if (refused != cudaErrorCooperativeLaunchTooLarge)
    lesson_wrong(&l, synced, "a cooperative launch of %u blocks gives %s", all + 1, cudaGetErrorName(refused));
  lesson_say(&l, "The GPU holds %u blocks of this kernel at once; a cooperative launch of %u is refused: %s.", all,
             all + 1, cudaGetErrorName(refused));
  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "A barrier costs %.2f us as a launch, %.2f us as grid.sync(), %.2f us as a counter of our own.",
               launches->us / rounds, barriers->us / rounds, by_hand->us / rounds);
    lesson_say(
        &l, "For one barrier, the last block saves %.2f us of the %.2f us of two launches, a cooperative launch %.2f.",
        twice->us - once->us, twice->us, twice->us - synced->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "Atomics on the counter: %.0f for the last block; %.0f for %u barriers by hand, %u of which arrive.",
               once->counted.global_atomics, by_hand->counted.global_atomics, rounds, rounds * blocks);
  }
  return lesson_end(&l);
}
