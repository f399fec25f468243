/* Lesson 23: registers and local memory. A multiprocessor has 65,536 registers for all its threads: the more a thread
 * takes, the fewer threads fit. __launch_bounds__(threads, blocks) asks the compiler to leave room for that many blocks
 * of that many threads. Values that then find no register are stored to local memory and loaded again (spills). Local
 * memory is local in name only: it is in the same place as global memory, behind the same caches.
 *
 * An array is in registers only if the compiler knows every index, since registers have no addresses: loops over it
 * have to be unrolled. An index that is known at run time only puts the array into local memory. Shared memory can be
 * indexed, and is near.
 *
 * Here each thread keeps 96 numbers, and mixes each of them with its neighbour, again and again. */
#include <cuda_runtime.h>

#define BLOCK 128
#define NUMBERS 96 /* of each thread; those of 128 threads are all that static shared memory can hold */
#define ROUNDS 64
#define STARTS 1024 /* threads with different initial values */

__host__ __device__ inline unsigned start_of(unsigned i, unsigned k) { return (i % STARTS + 1) * 2654435761u + k; }
__host__ __device__ inline unsigned mixed(unsigned mine, unsigned next) { return mine * 2246822519u + next; }

/* KNOWN: loops are unrolled, so that the elements of v can be registers. */
template <bool KNOWN> __device__ unsigned mix_all(unsigned i) {
  unsigned v[NUMBERS], all = 0;
  if (KNOWN) {
#pragma unroll
    for (int k = 0; k < NUMBERS; k++) v[k] = start_of(i, (unsigned)k);
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++)
#pragma unroll
      for (int k = 0; k < NUMBERS; k++) v[k] = mixed(v[k], v[(k + 1) % NUMBERS]);
#pragma unroll
    for (int k = 0; k < NUMBERS; k++) all ^= v[k];
  } else {
#pragma unroll 1
    for (int k = 0; k < NUMBERS; k++) v[k] = start_of(i, (unsigned)k);
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++)
#pragma unroll 1
      for (int k = 0; k < NUMBERS; k++) v[k] = mixed(v[k], v[(k + 1) % NUMBERS]);
#pragma unroll 1
    for (int k = 0; k < NUMBERS; k++) all ^= v[k];
  }
  return all;
}

__global__ void without_bounds(unsigned *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = mix_all<true>(i);
}

template <int BLOCKS> __global__ void __launch_bounds__(BLOCK, BLOCKS) in_registers(unsigned *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = mix_all<true>(i);
}

__global__ void __launch_bounds__(BLOCK) in_local(unsigned *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = mix_all<false>(i);
}

/* The numbers of a thread are BLOCK words apart, so that those of a warp are in 32 banks. */
__global__ void __launch_bounds__(BLOCK) in_shared(unsigned *out, unsigned n) {
  __shared__ unsigned numbers[NUMBERS][BLOCK];
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x, t = threadIdx.x;
  unsigned all = 0;
  for (int k = 0; k < NUMBERS; k++) numbers[k][t] = start_of(i, (unsigned)k);
#pragma unroll 1
  for (int r = 0; r < ROUNDS; r++)
    for (int k = 0; k < NUMBERS; k++) numbers[k][t] = mixed(numbers[k][t], numbers[(k + 1) % NUMBERS][t]);
  for (int k = 0; k < NUMBERS; k++) all ^= numbers[k][t];
  if (i < n) out[i] = all;
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, for 2^20 threads:
 *
 *   no bounds        32,227 Gop/s with 102 registers a thread, so 4 blocks (16 warps) fit on a multiprocessor. They are
 *                    enough: the operations of a thread do not wait for memory
 *   for 4 blocks     the same: 4 blocks fit anyway
 *   for 5 blocks     21,075, 0.65 times: 96 registers, and 40 bytes spilled. More warps do not help, but every round
 *                    now loads and stores spilled values
 *   for 6, 8 blocks  5394 and 3931: 160 and 288 bytes spilled. Twice the warps, an eighth of the rate
 *   index not known  814, 40 times as slow as registers: 11 registers, all 96 numbers in local memory, two loads and a
 *                    store for each mix
 *   shared memory    5391, 6 times as slow as registers: the same accesses, but to shared memory, and without bank
 *                    conflicts */
#include "lesson.h"

static const lesson_about about = {
    "23_registers", "what a thread keeps: in registers, spilled, in local or shared memory",
    "threads",      1 << 20,
    1 << 8,         1,
    1 << 26,        "Gop/s"};

/* The registers and the local memory of a kernel, and how many of its warps fit on a multiprocessor. */
static void describe(lesson_row *r, const void *kernel) {
  cudaFuncAttributes a;
  int blocks;
  GK_CHECK(cudaFuncGetAttributes(&a, kernel));
  GK_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, BLOCK, 0));
  r->registers = a.numRegs;
  r->local_bytes = (double)a.localSizeBytes;
  r->warps = blocks * (BLOCK / 32);
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n, grid = (n + BLOCK - 1) / BLOCK;
  unsigned *const out = lesson_array<unsigned>(&l, n);
  std::vector<unsigned> right(n);
  for (unsigned i = 0; i < n && i < STARTS; i++) {
    unsigned v[NUMBERS];
    for (unsigned k = 0; k < NUMBERS; k++) v[k] = start_of(i, k);
    for (int r = 0; r < ROUNDS; r++)
      for (int k = 0; k < NUMBERS; k++) v[k] = mixed(v[k], v[(k + 1) % NUMBERS]);
    right[i] = 0;
    for (const unsigned x : v) right[i] ^= x;
  }
  for (unsigned i = STARTS; i < n; i++) right[i] = right[i % STARTS];

  const struct {
    const char *name;
    void (*kernel)(unsigned *, unsigned);
  } variants[] = {{"no bounds", without_bounds},
                  {"bounds for 4 blocks", in_registers<4>},
                  {"bounds for 5 blocks", in_registers<5>},
                  {"bounds for 6 blocks", in_registers<6>},
                  {"bounds for 8 blocks", in_registers<8>},
                  {"index not known", in_local},
                  {"shared memory", in_shared}};
  enum { FREE, BOUNDED = 4, LOCAL, SHARED, COUNT };
  lesson_row *rows[COUNT];
  int best = FREE;
  for (int v = 0; v < COUNT; v++) {
    const auto kernel = variants[v].kernel;
    rows[v] =
        lesson_measure(&l, variants[v].name, 2.0 * n * ROUNDS * NUMBERS, [=] { kernel<<<grid, BLOCK>>>(out, n); });
    lesson_expect(&l, rows[v], out, right);
    describe(rows[v], (const void *)kernel);
    if (rows[v]->us < rows[best]->us) best = v;
  }
  lesson_table(&l);

  if (l.mode == LESSON_TIMED) {
    lesson_say(
        &l,
        "Without bounds a thread has %.0f registers, and %.0f warps fit on a multiprocessor. With bounds for 8 blocks",
        rows[FREE]->registers, rows[FREE]->warps);
    lesson_say(
        &l, "it has %.0f registers and %.0f spilled bytes, and %.0f warps fit, but they take %.2f times as long.",
        rows[BOUNDED]->registers, rows[BOUNDED]->local_bytes, rows[BOUNDED]->warps, rows[BOUNDED]->us / rows[FREE]->us);
    lesson_say(&l,
               "The fastest variant: %s. Local memory (index not known) takes %.2f times as long as registers, shared",
               rows[best]->variant, rows[LOCAL]->us / rows[FREE]->us);
    lesson_say(&l, "memory %.2f times.", rows[SHARED]->us / rows[FREE]->us);
  } else {
    lesson_say(&l, "The stand-in knows no registers of a GPU, and does not count local memory.");
    if (l.mode == LESSON_COUNTED)
      lesson_say(&l, "The same work makes %.0f requests in shared memory, %.0f in registers.",
                 rows[SHARED]->counted.requests, rows[FREE]->counted.requests);
  }
  return lesson_end(&l);
}
