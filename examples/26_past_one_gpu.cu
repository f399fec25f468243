/* Lesson 26: past one GPU. Each GPU is a rank with a part of the data, and NCCL carries messages between the ranks. A
 * reduction sends one number a rank. A scan sends one number a rank, and reads its data twice. A product has to bring
 * all of B to every rank, but multiplies one part while the next part arrives.
 *
 * One process has all visible GPUs, with a thread for each:
 *
 *   make BACKEND=gpu build/gpu/26_past_one_gpu && build/gpu/26_past_one_gpu
 *
 * or a launcher starts a process for each GPU, on one or many machines (NVCCFLAGS='-DLESSON_MPI -ccbin mpicxx' builds
 * with MPI; without it the launcher's environment tells the ranks):
 *
 *   mpirun -n 4 build/gpu/26_past_one_gpu          srun -n 8 --gpus-per-task=1 build/gpu/26_past_one_gpu */
#include "lesson_ranks.h"
#include <math.h>

#ifdef GPUKIT_NCCL
/* What gk_dist_reduce() does, step by step. Every rank calls it, with a stream of its device: the sum of its own n
 * numbers, an all-gather of these sums, and their sum. totals: one number for each rank. */
static void sum_of_all_ranks(const unsigned *x, size_t n, unsigned *totals, unsigned *total, int ranks, ncclComm_t comm,
                             cudaStream_t stream) {
  GK_CHECK(gk_reduce_sum(x, total, n, stream));
  GK_CHECK(ncclAllGather(total, totals, 1, ncclUint32, comm, stream));
  GK_CHECK(gk_reduce_sum((const unsigned *)totals, total, (size_t)ranks, stream));
}
#endif

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * Each row is a call on all ranks at once, and its time is that of the slowest rank. The rows `alone` are the work of
 * each rank without the others; the difference is the cost of working together. Rates are of all ranks together, so
 * they may exceed the peak of one GPU. Two H200s, n = 2^28:
 *
 *   reduce  237 us alone, 271 us together: an all-gather of one number a rank, and the wait for the slower rank. It
 *           does not grow with n
 *   scan    826 us alone, which here is a reduce and a scan, since together the data is read twice: 839 us. A single
 *           GPU reads it once, and scans 2^28 numbers in 588 us (dist_bf16.csv): so two GPUs are 1.4 times as fast as
 *           one
 *   matmul  8192 x 8192: 11.6 ms alone for half of the rows, 13.0 ms together. The first part of B arrives before
 *           anything can be multiplied, and later parts share the memory with the product. It has no GB/s; the chart
 *           shows the times of all three */

static const lesson_about about = {"26_past_one_gpu",
                                   "reduce, scan and matmul over several GPUs, with NCCL",
                                   "numbers of each rank; a product has sqrt(n)/2 rows and columns",
                                   1 << 28,
                                   1 << 12,
                                   4,
                                   size_t(1) << 32,
                                   "GB/s"};
#define CALLS 10
struct rank_data {
  unsigned *x, *y, *total; /* n, n and 1 */
  float *a, *b, *c;        /* this rank's rows of A and C, and all of B */
  size_t row, rows;
  cudaStream_t comm_stream;
  void *buffer; /* for the parts of B */
  size_t buffer_bytes;
};

/* work: bytes or operations of all ranks together. */
static lesson_row *measure(lesson *l, std::vector<lesson_rank> &ranks, const char *variant, double work,
                           const rank_work &call) {
  lesson_row *const row = lesson_new_row(l, variant);
#ifdef CUDA_CPU_TRACE
  cuda_cpu_take_counters();
  cuda_cpu_count(true);
#endif
  on_each(ranks, [&](lesson_rank &r) {
    const float ms = l->mode == LESSON_TIMED ? time_of(r, CALLS, 1, call) : (call(r), wait_for(r), 0.0f);
    if (&r != &ranks[0] || l->mode != LESSON_TIMED) return;
    row->us = 1000.0 * (double)ms;
    row->rate = work / (double)ms * 1e-6;
  });
#ifdef CUDA_CPU_TRACE
  cuda_cpu_count(false);
  row->counted = lesson_take_counters();
#endif
  return row;
}

/* Element i of all is i, modulo 2^32. */
__global__ void fill(unsigned *x, size_t n, size_t first) {
  GK_FOR_1D (i, n) x[i] = (unsigned)(first + i);
}
__host__ __device__ inline float a_at(size_t i, size_t j) { return (float)((i * 3 + j * 5) % 7) - 3; }
__host__ __device__ inline float b_at(size_t i, size_t j) { return (float)((i * 2 + j * 3) % 5) - 2; }
__global__ void fill_a(float *a, size_t rows, size_t cols, size_t first) {
  GK_FOR_1D (i, rows * cols) a[i] = a_at(first + i / cols, i % cols);
}
__global__ void fill_b(float *b, size_t rows, size_t cols) {
  GK_FOR_1D (i, rows * cols) b[i] = b_at(i / cols, i % cols);
}
/* 0 + 1 + ... + (n - 1), modulo 2^32. */
__host__ __device__ inline unsigned sum_below(unsigned long long n) {
  return (unsigned)(n % 2 ? (n - 1) / 2 * n : n / 2 * (n - 1));
}
/* y[i] has to be from + ... + (first + i). */
__global__ void count_wrong(const unsigned *y, size_t n, size_t from, size_t first, unsigned *wrong) {
  GK_FOR_1D (i, n) {
    if (y[i] != sum_below(first + i + 1) - sum_below(from)) atomicAdd(wrong, 1u);
  }
}

/* Returns *p and overwrites it, so that no later row passes with the result of this one. */
static unsigned take(unsigned *p) {
  const unsigned none = ~0u;
  unsigned x = 0;
  GK_CHECK(cudaMemcpy(&x, p, sizeof x, cudaMemcpyDeviceToHost));
  GK_CHECK(cudaMemcpy(p, &none, sizeof x, cudaMemcpyHostToDevice));
  return x;
}
/* The sum has to be from + ... + (to - 1). */
static void check_total(lesson *l, const lesson_row *row, const rank_data &d, size_t from, size_t to) {
  const unsigned expected = sum_below(to) - sum_below(from), got = take(d.total);
  if (got != expected) lesson_wrong(l, row, "the sum is %u, not %u", got, expected);
}
/* alone: each rank has scanned its own numbers only. */
static void check_prefixes(lesson *l, const lesson_row *row, std::vector<lesson_rank> &ranks, rank_data *data,
                           bool alone) {
  on_each(ranks, [&](lesson_rank &r) {
    const rank_data &d = data[&r - &ranks[0]];
    const size_t first = l->n * (size_t)r.rank;
    GK_CHECK(cudaMemsetAsync(d.total, 0, sizeof(unsigned), r.stream));
    count_wrong<<<gk_grid_1d(l->n, 256), 256, 0, r.stream>>>(d.y, l->n, alone ? first : 0, first, d.total);
    GK_CHECK(cudaMemsetAsync(d.y, 0xff, l->n * sizeof(unsigned), r.stream));
    GK_CHECK(cudaStreamSynchronize(r.stream));
  });
  for (size_t i = 0; i < ranks.size(); i++)
    if (const unsigned wrong = take(data[i].total)) lesson_wrong(l, row, "%u wrong prefixes", wrong);
}
/* Checks some elements, the corners among them. */
static void check_product(lesson *l, const lesson_row *row, const rank_data &d, size_t edge) {
  for (size_t s = 0; s < 16 && d.rows; s++) {
    const size_t i = s < 4 ? s / 2 * (d.rows - 1) : s * 7919 % d.rows,
                 j = s < 4 ? s % 2 * (edge - 1) : s * 104729 % edge;
    float x = 0, got = 0;
    for (size_t k = 0; k < edge; k++) x += a_at(d.row + i, k) * b_at(k, j);
    GK_CHECK(cudaMemcpy(&got, d.c + i * edge + j, sizeof got, cudaMemcpyDeviceToHost));
    if (got != x) lesson_wrong(l, row, "C(%zu, %zu) is %g, not %g", d.row + i, j, (double)got, (double)x);
  }
}

/* Allocates and fills the data of a rank. */
static void prepare(const lesson_rank &r, rank_data *d, size_t n, size_t edge) {
  rank_piece(edge, r, &d->row, &d->rows);
  for (unsigned **p : {&d->x, &d->y}) GK_CHECK(cudaMalloc(p, n * sizeof(unsigned)));
  GK_CHECK(cudaMalloc(&d->total, sizeof(unsigned)));
  GK_CHECK(cudaMemsetAsync(d->y, 0xff, n * sizeof(unsigned), r.stream)); /* so that missing prefixes are wrong */
  for (float **p : {&d->a, &d->c}) GK_CHECK(cudaMalloc(p, (d->rows ? d->rows : 1) * edge * sizeof(float)));
  GK_CHECK(cudaMalloc(&d->b, edge * edge * sizeof(float)));
  fill<<<gk_grid_1d(n, 256), 256, 0, r.stream>>>(d->x, n, n * (size_t)r.rank);
  fill_b<<<gk_grid_1d(edge * edge, 256), 256, 0, r.stream>>>(d->b, edge, edge);
  if (d->rows) fill_a<<<gk_grid_1d(d->rows * edge, 256), 256, 0, r.stream>>>(d->a, d->rows, edge, d->row);
#ifdef GPUKIT_NCCL
  int least = 0, greatest = 0;
  GK_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  GK_CHECK(cudaStreamCreateWithPriority(&d->comm_stream, cudaStreamNonBlocking, greatest));
  d->buffer_bytes = gk_dist_matmul_buffer_bytes(edge, edge, sizeof(float));
  GK_CHECK(cudaMalloc(&d->buffer, d->buffer_bytes));
#endif
  GK_CHECK(cudaStreamSynchronize(r.stream));
}

static void release(const rank_data &d) {
  for (void *p : {(void *)d.x, (void *)d.y, (void *)d.total, (void *)d.a, (void *)d.b, (void *)d.c, d.buffer})
    GK_CHECK(cudaFree(p));
  if (d.comm_stream) GK_CHECK(cudaStreamDestroy(d.comm_stream));
}

#ifdef GPUKIT_NCCL
/* sum_of_all_ranks() at the top, once. */
static void reduce_by_hand(const lesson_rank &r, const rank_data &d, size_t n) {
  unsigned *totals;
  GK_CHECK(cudaMalloc(&totals, (size_t)r.ranks * sizeof(unsigned)));
  sum_of_all_ranks(d.x, n, totals, d.total, r.ranks, r.comm, r.stream);
  wait_for(r);
  GK_CHECK(cudaFree(totals));
}
#endif

int main(int argc, char **argv) {
  lesson l;
  const launched by = find_launcher(&argc, &argv);
  let_first_speak(&by, argc, argv);
  lesson_begin(&l, &about, argc, argv);
  const size_t n = l.n, edge = (size_t)(sqrt((double)n) / 2);
  std::vector<lesson_rank> ranks = join_ranks(&l, &by, gk_scan_scratch_bytes(n, sizeof(unsigned)));
  std::vector<rank_data> data(ranks.size());
  const auto of = [&](const lesson_rank &r) -> rank_data & { return data[(size_t)(&r - &ranks[0])]; };
  const size_t all = (size_t)ranks[0].ranks;
  on_each(ranks, [&](lesson_rank &r) { prepare(r, &of(r), n, edge); });

  /* The work of each rank, alone and together. Bytes and operations are those of all ranks. */
  const double bytes = (double)(n * all * sizeof(unsigned)), flops = 2 * (double)edge * (double)edge * (double)edge;
  const rank_work reduce = [&](lesson_rank &r) {
    GK_CHECK(gk_reduce_sum((const unsigned *)of(r).x, of(r).total, n, r.stream, &r.scratch));
  };
  const rank_work scan = [&](lesson_rank &r) {
    GK_CHECK(gk_scan_inclusive((const unsigned *)of(r).x, of(r).y, n, gk_op_sum(), r.stream, &r.scratch));
  };
  const lesson_row *const reduce_alone = measure(&l, ranks, "reduce alone", bytes, reduce);
  for (const lesson_rank &r : ranks)
    check_total(&l, reduce_alone, data[(size_t)(&r - &ranks[0])], n * (size_t)r.rank, n * (size_t)(r.rank + 1));
  const lesson_row *const both_alone = measure(&l, ranks, "reduce and scan alone", 3 * bytes, [&](lesson_rank &r) {
    reduce(r);
    scan(r);
  });
  check_prefixes(&l, both_alone, ranks, data.data(), true);
  const rank_work multiply = [&](lesson_rank &r) {
    const rank_data &d = of(r);
    GK_CHECK(gk_matmul((const float *)d.a, (const float *)d.b, d.c, d.rows, edge, edge, r.stream));
  };
  const lesson_row *const multiply_alone = measure(&l, ranks, "matmul alone", 0, multiply);
  for (const rank_data &d : data) check_product(&l, multiply_alone, d, edge);
#ifdef GPUKIT_NCCL
  const lesson_row *const reduced = measure(&l, ranks, "reduce", bytes, [&](lesson_rank &r) {
    const rank_data &d = of(r);
    GK_CHECK(gk_dist_reduce((const unsigned *)d.x, d.total, n, gk_op_sum(), r.comm, r.stream, &r.scratch));
  });
  for (const rank_data &d : data) check_total(&l, reduced, d, 0, n * all);
  on_each(ranks, [&](lesson_rank &r) { reduce_by_hand(r, of(r), n); });
  for (const rank_data &d : data) check_total(&l, reduced, d, 0, n * all);
  const lesson_row *const scanned = measure(&l, ranks, "scan", 3 * bytes, [&](lesson_rank &r) {
    const rank_data &d = of(r);
    GK_CHECK(gk_dist_scan_inclusive((const unsigned *)d.x, d.y, n, gk_op_sum(), r.comm, r.stream, &r.scratch));
  });
  check_prefixes(&l, scanned, ranks, data.data(), false);
  on_each(ranks, [&](lesson_rank &r) { GK_CHECK(cudaMemsetAsync(of(r).c, 0xff, of(r).rows * edge * 4, r.stream)); });
  const lesson_row *const multiplied = measure(&l, ranks, "matmul", 0, [&](lesson_rank &r) {
    const rank_data &d = of(r);
    gk_dist_matmul_opts opts = gk_dist_matmul_opts(); /* otherwise each call creates and frees these */
    opts.buffer = d.buffer, opts.buffer_bytes = d.buffer_bytes, opts.comm_stream = d.comm_stream;
    GK_CHECK(gk_dist_matmul((const float *)d.a, (const float *)d.b + d.row * edge, d.c, d.rows, edge, edge, r.comm,
                            r.stream, &opts));
  });
  for (const rank_data &d : data) check_product(&l, multiplied, d, edge);
  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "time alone / time together: reduce %.3f, scan %.3f, matmul %.3f (%zu x %zu, %.0f GFLOP/s)",
               reduce_alone->us / reduced->us, both_alone->us / scanned->us, multiply_alone->us / multiplied->us, edge,
               edge, flops / multiplied->us * 1e-3);
    lesson_say(&l, "A scan over ranks reads its data twice and writes it once; the scan of one GPU reads it once.");
  }
#else
  if (l.mode == LESSON_TIMED) lesson_say(&l, "matmul: %.0f GFLOP/s", flops / multiply_alone->us * 1e-3);
#endif
  if (l.mode == LESSON_TIMED && all > 1)
    lesson_say(&l, "Rates are of all %zu GPUs together; the %.0f GB/s in theory are of one.", all, l.device.peak_gbs);
  lesson_table(&l);

  on_each(ranks, [&](lesson_rank &r) { release(of(r)); });
  leave_ranks(ranks);
  return lesson_end(&l);
}
