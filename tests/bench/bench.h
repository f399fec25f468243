/* The harness of the bench: contests between gpukit, a peer and the memory's ceiling, and the table of their results.
 *
 * A contest runs in one or more of these modes:
 *
 *   cold     calls back to back; inputs and outputs rotate over at least three times the L2
 *   stream   before each call an ordinary kernel (y += x over 2^21 floats, with nothing to do with the call), as in a
 *            program that does other things, too; inputs and outputs rotate as above. The kernel alone is one more
 *            contestant, and each turn's time of it is subtracted from the others': what is left is by how much a call
 *            makes the program longer
 *   hot      calls back to back on the same input and output
 *   first    the first call of a process, with all that a process does then: wall-clock time (host.cu)
 *   host     what a call costs the processor, until it returns: wall-clock time (host.cu)
 *
 * Contestants take turns in samples of about a millisecond (gk_bench_compare), since events resolve half a microsecond
 * and many calls are shorter than ten. Each has 11 of them, fewer where one call is longer, but at least 5. A figure is
 * the median of a contestant's samples; the ratio is the median, over the turns, of the peer's time over gpukit's in
 * the same turn, so that above 1 gpukit is the faster; the noise is the median distance of the turns' ratios from that,
 * in percent. Where a contest has several peers, or several ceilings, the fastest counts. The clock of the
 * multiprocessors is measured right after the last turn.
 *
 * After the timing each contestant runs once more into an output full of 0xff bytes, and that result is checked. Where
 * gpukit's is wrong there is no ratio; where only the peer's is, the ratio stands, and the row says so. (cuBLAS may round
 * the partial sums of a bfloat16 product, which is faster than what is held to be right.) */
#ifndef BENCH_H
#define BENCH_H

/* Another copy of the header is compared with -DGPUKIT_HEADER='"other.cuh"'. */
#ifndef GPUKIT_HEADER
#define GPUKIT_HEADER "gpukit.cuh"
#endif
#include GPUKIT_HEADER

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <stdio.h>
#include <string>
#include <vector>

/* CUB gets n as gpukit does. With int it takes 32-bit offsets: -DBENCH_CUB_SIZE=int. */
#ifndef BENCH_CUB_SIZE
#define BENCH_CUB_SIZE size_t
#endif

enum bench_modes {
  BENCH_COLD = 1,
  BENCH_STREAM = 2,
  BENCH_HOT = 4,
  BENCH_ALL_MODES = 7,
  BENCH_FIRST = 8, /* the contest brings its own samples */
  BENCH_HOST = 16
};

struct bench_contestant {
  const char *name; /* NULL: none */
  gk_bench_fn fn;
  void *user;
};

struct bench_contest {
  const char *group, *what, *type; /* "reduce", "sum", "f32" */
  char size[40];                   /* "2^20", "1000003", "4096x4096x4096" */
  double n;                        /* elements, for the order and for the goals */
  int modes;                       /* of bench_modes */
  bench_contestant ours, peers[2], ceilings[2];
  double ceiling_us; /* where the ceiling is a calculation */
  double bytes, flops;
  size_t rotate_bytes; /* what one call reads of the arrays that rotate, at distances as they lie in memory */
  size_t most_buffers; /* the memory's room for these */
  /* Where the time is not the GPU's: the microseconds of a sample of one contestant. */
  double (*sample)(const bench_contestant *who);
  double warm_seconds; /* the contestants run in turns for that long before the first sample */
  /* Runs one contestant with buffer i, and says how many of its results are wrong. */
  size_t (*wrong)(const bench_contestant *who, size_t i);
};

struct bench_size {
  char label[40];
  size_t n;
};

/* What every part of the bench uses. */
struct bench_state {
  int quick;
  bool plans;          /* products by every plan that can be asked for, beside the chosen one, and nothing else */
  double plan_seconds; /* for the times of plans of each type, for bench-refit, and nothing else; 0: as usual */
  std::vector<uint64_t> seeds; /* of the random shapes and sizes */
  size_t random_count;         /* shapes from each seed, and half as many by 8; of sizes four fifths of that */
  cudaStream_t stream;
  gk_device_info device;
  char *in, *out;  /* arrays: `capacity` bytes each */
  size_t capacity; /* what cases may need, the padding of rotating buffers included */
  char *spare;     /* 8 MiB of the checks' own */
  void *temp;      /* the peers' temporaries */
  size_t temp_bytes;
  gk_scratch scratch; /* ours: one for all sizes and types */
};
extern bench_state bench;

/* Whether some mode of this contest was asked for: ask before preparing data. */
bool bench_wanted(const bench_contest *contest);
void bench_run(const bench_contest *contest);
/* Says so, once, in the table. */
void bench_skip(const bench_contest *contest, const char *reason);

/* Adds the times of a shape to the file of --plan-times; counts a plan whose result is wrong, and says which. */
struct plan_times;
void bench_write_plans(const plan_times &times);
void bench_plan_is_wrong(const std::string &line);

/* The sizes of reduce and scan, 0-terminated: powers of two, then odd ones; few is a selection for variants. */
const bench_size *bench_sizes(bool few);
/* The random sizes of reduce and scan, and where their arrays begin: so many elements after a multiple of 128 bytes. An
 * output is aligned like the input if it begins at the same place, differently if it begins at the other one, which is
 * another modulo 16 bytes. */
struct bench_random_size {
  size_t n, offset, other_offset;
};
std::vector<bench_random_size> bench_random_sizes(size_t item_bytes);
/* Runs them in turns for so long. */
void bench_keep_busy(const std::vector<bench_contestant> &contestants, double seconds);
/* At least this many bytes of temporaries for the peers. */
void *bench_temp(size_t bytes);

/* --- Ceilings: ceilings.cu ---------------------------------------------------------------------------------------*/

/* Read, or copy, `bytes` bytes from in + i * stride (to out + i * stride). */
struct bench_traffic {
  const char *in;
  char *out;
  size_t bytes, stride;
};
cudaError_t bench_read_all(void *traffic, cudaStream_t stream, size_t i);
cudaError_t bench_copy_by_kernel(void *traffic, cudaStream_t stream, size_t i);
cudaError_t bench_copy_by_memcpy(void *traffic, cudaStream_t stream, size_t i);

/* mma.sync alone on operands in registers, by the fastest of several numbers of warps and accumulators: as many
 * multiply-adds as make up `flops`. user points to a bench_mma_loop. */
enum bench_mma_kind { BENCH_MMA_BF16, BENCH_MMA_TF32, BENCH_MMA_KINDS };
struct bench_mma_loop {
  bench_mma_kind kind;
  double flops;
};
cudaError_t bench_run_mma_loop(void *loop, cudaStream_t stream, size_t i);
/* Whether this build and this GPU have the instructions. */
bool bench_has_mma(bench_mma_kind kind);

/* Finds the fastest variant of each, and returns a line about each: "key: value". Sets *wrong if a loop is so slow that
 * it cannot be a ceiling. */
std::vector<std::string> bench_find_ceilings(bool *wrong);
/* The clock of the multiprocessors, averaged over the 50 microseconds after what the stream does now. */
double bench_sm_mhz();
void bench_free_ceilings();

/* The parts, each in a file of its own so that they compile side by side. */
void bench_reduce_floats();
void bench_reduce_integers();
void bench_scan_floats();
void bench_scan_integers();
void bench_calls();
void bench_epilogue();
void bench_host();
/* The process that a sample of a first call runs: prints its microseconds. Returns the exit status. */
int bench_first_call(const char *what);
void bench_matmul();
int bench_cublas_version();

#endif
