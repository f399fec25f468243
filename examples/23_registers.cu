/* Lesson 23: registers and local memory. A multiprocessor has 65536 registers for all of its threads: the more a thread
 * takes, the fewer threads fit. __launch_bounds__(threads, blocks) asks the compiler to leave room for so many blocks
 * of so many threads; what does not fit into the registers left goes to local memory and back (spills). Local memory
 * is a thread's own by name alone: it lies where all other memory does, behind the same caches.
 *
 * An array lives in registers only if the compiler knows each index, so that it can give each element a name: loops
 * over it have to be unrolled. Registers have no addresses; an index that is known only at run time sends the array to
 * local memory. Shared memory can be indexed, and is near.
 *
 * Each thread keeps 96 numbers and mixes each with its neighbour, again and again. More warps at once hide waiting, but
 * here nothing has to be waited for, unless spills bring it in. */
#include "lesson.h"

static const lesson_about about = {
    "23_registers", "what a thread keeps: in registers, spilled, in local or shared memory",
    "threads",      1 << 20,
    1 << 8,         1,
    1 << 26,        "Gop/s"};

#define BLOCK 128
#define NUMBERS 96 /* for each thread: with 128 threads what static shared memory can be at most */
#define ROUNDS 64
#define STARTS 1024 /* threads that differ in what they begin with */

__host__ __device__ inline unsigned start_of(unsigned i, unsigned k) { return (i % STARTS + 1) * 2654435761u + k; }
__host__ __device__ inline unsigned mixed(unsigned mine, unsigned next) { return mine * 2246822519u + next; }

/* Where known, loops are unrolled, and v's elements are registers, as many as there is room for. */
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

template <int BLOCKS> __global__ void __launch_bounds__(BLOCK, BLOCKS) in_registers(unsigned *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = mix_all<true>(i);
}

__global__ void __launch_bounds__(BLOCK) in_local(unsigned *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = mix_all<false>(i);
}

/* The numbers of a thread are a row of threads apart, so that those of a warp lie in 32 banks. */
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

/* What the compiler has made of a kernel, and how many of its warps fit a multiprocessor. */
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
  } variants[] = {{"no bounds", in_registers<1>},
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
    lesson_say(&l,
               "Without bounds a thread has %.0f registers, and %.0f warps fit; for 8 blocks %.0f, with %.0f bytes "
               "spilled, and %.0f.",
               rows[FREE]->registers, rows[FREE]->warps, rows[BOUNDED]->registers, rows[BOUNDED]->local_bytes,
               rows[BOUNDED]->warps);
    lesson_say(&l, "More warps, but spills: together they take %.2f times as long. The best is: %s.",
               rows[BOUNDED]->us / rows[FREE]->us, rows[best]->variant);
    lesson_say(&l,
               "An index not known, and so local memory, takes %.2f times as long as registers, shared memory %.2f.",
               rows[LOCAL]->us / rows[FREE]->us, rows[SHARED]->us / rows[FREE]->us);
  } else {
    lesson_say(&l, "What a GPU's compiler does with registers is not known here, and local memory is not counted;");
    if (l.mode == LESSON_COUNTED)
      lesson_say(&l, "in shared memory the same work makes %.0f requests, where registers make %.0f.",
                 rows[SHARED]->counted.requests, rows[FREE]->counted.requests);
  }
  return lesson_end(&l);
}
