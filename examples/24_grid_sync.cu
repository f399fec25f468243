/* Lesson 24: synchronising a grid. __syncthreads() is a barrier for the threads of a block. There is none for all
 * blocks: blocks run in any order, and if there are more than fit on the GPU, the others start when the first ones have
 * ended, so such a barrier would wait forever. Three ways to do something after all blocks have done something else:
 *
 *   relaunch     the end of a kernel is a barrier for all its blocks, and the next kernel of the stream sees all that
 *                it wrote. It costs a launch
 *   last block   each block counts itself as finished, in a variable of the device, and the block that finds that it is
 *                the last one goes on alone; no block waits. A fence has to be between its result and the counting
 *   cooperative  a cooperative launch starts all blocks at once, or fails if the GPU cannot hold them. It allows a
 *                grid-wide barrier: grid.sync(), or a counter that all blocks wait for
 *
 * Variables of the device are globals with __device__: kernels use them by name, the host by cudaMemcpyToSymbol(), or
 * by the address that cudaGetSymbolAddress() returns. */
#include "lesson.h" /* for gk_block_reduce() */
#include <cooperative_groups.h>

#define BLOCK 256
#define MOST 1024 /* blocks */

__device__ unsigned total, arrived; /* arrived has to be 0 before each launch that counts blocks */
__device__ unsigned partial[MOST];

/* The sum of a block's numbers, in its thread 0. */
__device__ unsigned sum_of(const unsigned *in, unsigned n) {
  unsigned sum = 0;
  for (size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x; i < n; i += (size_t)gridDim.x * BLOCK) sum += in[i];
  return gk_block_reduce(sum, gk_sum<unsigned>());
}

/* Adds up the sums of all blocks, by the threads of one block. */
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
    last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1; /* atomicInc() also resets it to 0 */
    __threadfence();                                            /* other blocks' sums are read after the count */
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

/* A round: the cell of a thread becomes the cell of the same thread of the next block, plus one. */
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

/* The same in a cooperative launch, with a barrier of our own: one thread of each block counts the block as arrived,
 * and waits until all have arrived. */
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

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, with 132 blocks:
 *
 *   sum        of 4 MiB, which needs one barrier: 9.96 us by two launches, 9.32 us by the last block, 9.17 us by a
 *              cooperative launch. The second launch costs only 0.6 to 0.8 us: it is submitted while the first kernel
 *              runs
 *   rounds     100, of which each needs all of the one before, and is over in less than a microsecond. By launches a
 *              round takes 4.52 us, the time that the host needs for a launch. grid.sync() takes 1.22 us, our own
 *              counter 1.50 us: its waiting threads use the same L2 address as the arriving ones */

static const lesson_about about = {"24_grid_sync",
                                   "a barrier for all blocks: launches, the last block, cooperative groups",
                                   "numbers to be summed up",
                                   1 << 20,
                                   1 << 12,
                                   1,
                                   1 << 30,
                                   "GB/s"};

#define ROUNDS 100 /* an even number of rounds, each with a barrier */
#define ROUNDS_ON_CPU 4

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
    GK_CHECK(cudaLaunchCooperativeKernel((const void *)sum_cooperative, blocks, BLOCK, sum_arguments, 0, 0));
  });
  lesson_expect(&l, synced, total_at, sum);

  const lesson_row *const launches = lesson_measure(&l, "rounds by launches", 0, [=] {
    for (unsigned r = 0; r < rounds; r++)
      one_round<<<blocks, BLOCK>>>(r == 0 ? begin : r % 2 ? even : odd, r % 2 ? odd : even);
  });
  lesson_expect(&l, launches, odd, last);
  const lesson_row *const barriers = lesson_measure(&l, "rounds by grid.sync()", 0, [=] {
    GK_CHECK(cudaLaunchCooperativeKernel((const void *)rounds_cooperative, blocks, BLOCK, rounds_arguments, 0, 0));
  });
  lesson_expect(&l, barriers, odd, last);
  const lesson_row *const by_hand = lesson_measure(&l, "rounds by a counter", 0, [=] {
    GK_CHECK(cudaMemsetAsync(arrived_at, 0, sizeof(unsigned), 0)); /* a run before has left its count */
    GK_CHECK(cudaLaunchCooperativeKernel((const void *)rounds_by_hand, blocks, BLOCK, rounds_arguments, 0, 0));
  });
  lesson_expect(&l, by_hand, odd, last);
  lesson_table(&l);

  int room; /* blocks that a multiprocessor can hold */
  GK_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&room, sum_cooperative, BLOCK, 0));
  const unsigned all = (unsigned)(room * l.device.sms);
  const cudaError_t refused =
      cudaLaunchCooperativeKernel((const void *)sum_cooperative, all + 1, BLOCK, sum_arguments, 0, 0);
  cudaGetLastError(); /* clears the error */
  if (refused != cudaErrorCooperativeLaunchTooLarge)
    lesson_wrong(&l, synced, "a cooperative launch of %u blocks gives %s", all + 1, cudaGetErrorName(refused));
  lesson_say(&l, "The GPU holds %u blocks of this kernel at once; a cooperative launch of %u is refused: %s.", all,
             all + 1, cudaGetErrorName(refused));
  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "A barrier takes %.2f us as a launch, %.2f us as grid.sync(), %.2f us as a counter of our own.",
               launches->us / rounds, barriers->us / rounds, by_hand->us / rounds);
    lesson_say(&l,
               "For a single barrier: two launches take %.2f us, the last block %.2f us less, a cooperative launch "
               "%.2f us less.",
               twice->us, twice->us - once->us, twice->us - synced->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(
        &l, "Atomics on the counter: %.0f for the last block; %.0f for %u barriers of our own, %u of them to arrive.",
        once->counted.global_atomics, by_hand->counted.global_atomics, rounds, rounds * blocks);
  }
  return lesson_end(&l);
}
