/* Lesson 26: past one GPU. Each GPU is a rank with a piece of the data, and NCCL carries what the ranks have to tell
 * each other. What that costs depends on how much it is: a reduction sends one number, a scan one number and reads its
 * data twice, a product has to bring all of B to everybody, but multiplies one part while the next is on its way.
 *
 * One process has all visible GPUs, a thread for each:
 *
 *   make BACKEND=gpu build/gpu/26_past_one_gpu && build/gpu/26_past_one_gpu
 *
 * or a launcher starts a process for each, here or on many machines:
 *
 *   mpirun -n 4 build/gpu/26_past_one_gpu          srun -n 8 --gpus-per-task=1 build/gpu/26_past_one_gpu
 *
 * Built with MPI (NVCCFLAGS='-DLESSON_MPI -ccbin mpicxx'), ranks and NCCL's id come by MPI. Otherwise the launcher's
 * environment tells the ranks, and the id goes through a file that all of them see: LESSON_NCCL_ID names it; without
 * that it is in the working directory, and named after the job.
 *
 * Every row is one of the calls at the same time on all ranks, and its time that of the slowest. The rows `alone` are
 * what each rank's part takes without the others; so a row / its `alone` is what working together costs. */
#include <cuda_runtime.h>
#if defined(CUDA_ON_CPU) || defined(LESSON_NCCL)
#define GPUKIT_NCCL
#include <nccl.h>
#endif
#ifdef LESSON_MPI
#include <mpi.h>
#endif
#include "lesson.h"
#include <functional>
#include <math.h>
#include <thread>
#include <unistd.h>

static const lesson_about about = {"26_past_one_gpu",
                                   "reduce, scan and matmul over several GPUs, with NCCL",
                                   "numbers of each rank; a product has sqrt(n)/2 rows",
                                   1 << 28,
                                   1 << 12,
                                   4,
                                   size_t(1) << 32,
                                   "GB/s"};

#define TIMEOUT 60000 /* ms, after which a rank that does not come is given up */
#define CALLS 10

/* ---- ranks ------------------------------------------------------------------------------------------------------ */

struct rank_state {
  int rank, ranks, device;
#ifdef GPUKIT_NCCL
  ncclComm_t comm;
#endif
  cudaStream_t stream;
  unsigned *x, *y, *total; /* n, n and 1 */
  float *a, *b, *c, *ms, *slowest;
  size_t m; /* rows of A and C */
  cudaStream_t comm_stream;
  void *buffer; /* for parts of B */
  size_t buffer_bytes;
  gk_scratch scratch;
};
struct launched { /* by whom */
  int rank, ranks, local;
  const char *by; /* NULL: nobody, this process has all ranks */
};

static int number_in(const char *name, int otherwise) {
  const char *const text = getenv(name);
  return text ? atoi(text) : otherwise;
}
static launched find_launcher(int *argc, char ***argv) {
  static const struct {
    const char *by, *rank, *ranks, *local;
  } launchers[] = {{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
                   {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
                   {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}};
  launched l = {0, 1, 0, NULL};
#ifdef LESSON_MPI
  MPI_Comm here;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &l.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &l.ranks);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, l.rank, MPI_INFO_NULL, &here);
  MPI_Comm_rank(here, &l.local);
  MPI_Comm_free(&here);
  if (l.ranks > 1) l.by = "MPI";
#else
  (void)argc, (void)argv;
#endif
  for (const auto &by : launchers)
    if (!l.by && number_in(by.ranks, 1) > 1 && number_in(by.rank, -1) >= 0) {
      l.by = by.by;
      l.rank = number_in(by.rank, 0);
      l.ranks = number_in(by.ranks, 1);
      l.local = number_in(by.local, l.rank);
    }
  return l;
}

#ifdef GPUKIT_NCCL
#ifndef LESSON_MPI
/* Rank 0 writes it under another name first, so that nobody reads half of it. */
static void pass_by_file(ncclUniqueId *id, int rank, char *path, size_t room) {
  const char *const job = getenv("SLURM_JOB_ID"), *const space = getenv("PMIX_NAMESPACE");
  const char *const named = getenv("LESSON_NCCL_ID");
  char other[4200];
  if (named)
    snprintf(path, room, "%s", named);
  else if (job || space)
    snprintf(path, room, "26_past_one_gpu.%s.%d.id", job ? job : space, number_in("SLURM_STEP_ID", 0));
  else /* the launcher's process, which all of this machine's ranks have in common */
    snprintf(path, room, "26_past_one_gpu.%d.id", (int)getppid());
  if (rank == 0) {
    snprintf(other, sizeof other, "%s.new", path);
    FILE *const f = fopen(other, "wb");
    if (!f || fwrite(id, sizeof *id, 1, f) != 1 || fclose(f) || rename(other, path))
      lesson_refuse(&about, "%s cannot be written: %s", path, strerror(errno));
    return;
  }
  for (int wait = 0; wait < TIMEOUT; wait += 10) {
    FILE *const f = fopen(path, "rb");
    const bool read = f && fread(id, sizeof *id, 1, f) == 1;
    if (f) fclose(f);
    if (read) return;
    usleep(10000);
  }
  lesson_refuse(&about, "%s has not come: is it on a disk that rank 0 shares? LESSON_NCCL_ID names another", path);
}
#endif

static void join_launched(rank_state *r, const launched *l) {
  ncclUniqueId id;
  char path[4096] = "";
  memset(&id, 0, sizeof id);
  if (l->rank == 0) GK_CHECK(ncclGetUniqueId(&id));
#ifdef LESSON_MPI
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
  pass_by_file(&id, l->rank, path, sizeof path);
#endif
  GK_CHECK(ncclCommInitRank(&r->comm, l->ranks, id, l->rank));
  if (l->rank == 0 && path[0]) remove(path); /* all have joined, so all have read it */
}
#endif

/* Does the same for every rank of this process at once. */
typedef std::function<void(rank_state &)> rank_work;
static void on_each(std::vector<rank_state> &ranks, const rank_work &work) {
  std::vector<std::thread> threads;
  for (rank_state &r : ranks)
    threads.emplace_back([&] {
      GK_CHECK(cudaSetDevice(r.device));
      work(r);
    });
  for (std::thread &t : threads) t.join();
}

/* A rank that has died is not waited for. */
static void wait_for(const rank_state &r) {
#ifdef GPUKIT_NCCL
  GK_CHECK(gk_dist_wait(r.comm, r.stream, TIMEOUT, true));
#else
  GK_CHECK(cudaStreamSynchronize(r.stream));
#endif
}
/* The greatest of all ranks' numbers. */
static float slowest(const rank_state &r, float ms) {
#ifdef GPUKIT_NCCL
  GK_CHECK(cudaMemcpyAsync(r.ms, &ms, sizeof ms, cudaMemcpyHostToDevice, r.stream));
  GK_CHECK(gk_dist_reduce(r.ms, r.slowest, 1, gk_op_max(), r.comm, r.stream, &r.scratch));
  wait_for(r);
  GK_CHECK(cudaMemcpy(&ms, r.slowest, sizeof ms, cudaMemcpyDeviceToHost));
#else
  (void)r;
#endif
  return ms;
}

/* Where a rank's part of n begins: as gk_dist_split has it, which is not there without NCCL. */
static size_t first_of(size_t n, int ranks, int rank) {
  const size_t of = (size_t)ranks, at = (size_t)rank, more = n % of;
  return n / of * at + (at < more ? at : more);
}

/* ---- the rows --------------------------------------------------------------------------------------------------- */

/* work: bytes or operations of all ranks together. */
static lesson_row *measure(lesson *l, std::vector<rank_state> &ranks, const char *variant, double work,
                           const rank_work &call) {
  lesson_row *const row = lesson_new_row(l, variant);
#ifdef CUDA_CPU_TRACE
  cuda_cpu_take_counters();
  cuda_cpu_count(true);
#endif
  on_each(ranks, [&](rank_state &r) {
    call(r);
    wait_for(r);
    if (l->mode != LESSON_TIMED) return;
    gk_timer timer = gk_timer();
    float ms = 0;
    GK_CHECK(gk_timer_create(&timer));
    slowest(r, 0); /* lets all begin at once */
    GK_CHECK(gk_timer_start(&timer, r.stream));
    for (int i = 0; i < CALLS; i++) call(r);
    GK_CHECK(gk_timer_stop(&timer));
    wait_for(r);
    GK_CHECK(gk_timer_ms(&timer, &ms));
    GK_CHECK(gk_timer_destroy(&timer));
    ms = slowest(r, ms / CALLS);
    if (&r != &ranks[0]) return;
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
__global__ void fill_b(float *b, size_t rows, size_t cols, size_t first) {
  GK_FOR_1D (i, rows * cols) b[i] = b_at(first + i / cols, i % cols);
}
/* Sums of 0 ... first + i, and of all that are here. */
__global__ void count_wrong(const unsigned *y, size_t n, size_t first, unsigned *wrong) {
  GK_FOR_1D (i, n) {
    const unsigned long long at = first + i;
    if (y[i] != (unsigned)((at % 2 ? (at + 1) / 2 * at : at / 2 * (at + 1)))) atomicAdd(wrong, 1u);
  }
}

static unsigned read_back(const unsigned *p) {
  unsigned x = 0;
  GK_CHECK(cudaMemcpy(&x, p, sizeof x, cudaMemcpyDeviceToHost));
  return x;
}
static void check_total(lesson *l, const lesson_row *row, std::vector<rank_state> &ranks, size_t from, size_t to) {
  const unsigned long long n = to - from, ends = from + to - 1;
  const unsigned expected = (unsigned)(n % 2 ? ends / 2 * n : n / 2 * ends);
  for (const rank_state &r : ranks)
    if (read_back(r.total) != expected)
      lesson_wrong(l, row, "rank %d has %u, not %u", r.rank, read_back(r.total), expected);
}
static void check_prefixes(lesson *l, const lesson_row *row, std::vector<rank_state> &ranks) {
  on_each(ranks, [&](rank_state &r) {
    GK_CHECK(cudaMemsetAsync(r.total, 0, sizeof(unsigned), r.stream));
    count_wrong<<<gk_grid_1d(l->n, 256), 256, 0, r.stream>>>(r.y, l->n, l->n * (size_t)r.rank, r.total);
    GK_CHECK(cudaStreamSynchronize(r.stream));
  });
  for (const rank_state &r : ranks)
    if (read_back(r.total)) lesson_wrong(l, row, "rank %d has %u wrong prefixes", r.rank, read_back(r.total));
}
/* Some elements, the corners among them. */
static void check_product(lesson *l, const lesson_row *row, std::vector<rank_state> &ranks, size_t edge, int of) {
  for (const rank_state &r : ranks)
    for (size_t s = 0; s < 16 && r.m; s++) {
      const size_t i = s < 2   ? 0
                       : s < 4 ? r.m - 1
                               : s * 7919 % r.m,
                   j = s % 2   ? edge - 1
                       : s < 4 ? 0
                               : s * 104729 % edge;
      const size_t first = first_of(edge, of, r.rank);
      float x = 0, got = 0;
      for (size_t k = 0; k < edge; k++) x += a_at(first + i, k) * b_at(k, j);
      GK_CHECK(cudaMemcpy(&got, r.c + i * edge + j, sizeof got, cudaMemcpyDeviceToHost));
      if (got != x) lesson_wrong(l, row, "rank %d: C(%zu, %zu) is %g, not %g", r.rank, i, j, (double)got, (double)x);
    }
}

int main(int argc, char **argv) {
  lesson l;
  const launched by = find_launcher(&argc, &argv);
  int devices = 0, all = by.ranks;
  if (by.rank != 0) { /* one of them speaks, and writes the file */
    if (!freopen("/dev/null", "w", stdout)) return 1;
    for (int i = 1; i < argc; i++)
      if (!strncmp(argv[i], "--csv=", 6)) argv[i][5] = 0;
  }
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  cudaGetLastError();
  if (by.by && devices) GK_CHECK(cudaSetDevice(by.local % devices));
  lesson_begin(&l, &about, argc, argv);
  std::vector<rank_state> ranks(by.by || devices < 1 ? 1 : (size_t)devices);
  const size_t n = l.n, edge = (size_t)(sqrt((double)n) / 2);
#ifdef GPUKIT_NCCL
  if (by.by) {
    join_launched(&ranks[0], &by);
    lesson_say(&l, "%d ranks, each a process with a GPU of its own, started by %s", all, by.by);
  } else {
    std::vector<ncclComm_t> comms(ranks.size());
    GK_CHECK(ncclCommInitAll(comms.data(), (int)comms.size(), NULL));
    for (size_t r = 0; r < ranks.size(); r++) ranks[r].comm = comms[r];
    all = (int)ranks.size();
    lesson_say(&l,
               all == 1 ? "one GPU is all there is here: %d rank, which has nobody to talk to"
                        : "%d ranks, each a thread with a GPU of its own",
               all);
  }
#else
  ranks.resize(1);
  all = 1;
  lesson_say(&l, "built without NCCL, whose nccl.h or library was not found: so this is one GPU by itself");
#endif
  for (size_t r = 0; r < ranks.size(); r++) {
    ranks[r].rank = by.by ? by.rank : (int)r;
    ranks[r].ranks = all;
    ranks[r].device = by.by ? by.local % devices : (int)r;
  }

  on_each(ranks, [&](rank_state &r) {
    const size_t from = first_of(edge, all, r.rank), to = first_of(edge, all, r.rank + 1);
    r.m = to - from;
    GK_CHECK(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
#ifdef GPUKIT_NCCL
    int least = 0, greatest = 0;
    GK_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    GK_CHECK(cudaStreamCreateWithPriority(&r.comm_stream, cudaStreamNonBlocking, greatest));
    r.buffer_bytes = gk_dist_matmul_buffer_bytes(edge, edge, sizeof(float));
    GK_CHECK(cudaMalloc(&r.buffer, r.buffer_bytes));
#endif
    GK_CHECK(gk_scratch_create(&r.scratch, gk_scan_scratch_bytes(n, sizeof(unsigned)), r.stream));
    for (unsigned **p : {&r.x, &r.y}) GK_CHECK(cudaMalloc(p, n * sizeof(unsigned)));
    GK_CHECK(cudaMalloc(&r.total, sizeof(unsigned)));
    for (float **p : {&r.ms, &r.slowest}) GK_CHECK(cudaMalloc(p, sizeof(float)));
    for (float **p : {&r.a, &r.c}) GK_CHECK(cudaMalloc(p, (r.m ? r.m : 1) * edge * sizeof(float)));
    GK_CHECK(cudaMalloc(&r.b, edge * edge * sizeof(float)));
    fill<<<gk_grid_1d(n, 256), 256, 0, r.stream>>>(r.x, n, n * (size_t)r.rank);
    fill_b<<<gk_grid_1d(edge * edge, 256), 256, 0, r.stream>>>(r.b, edge, edge, 0);
    if (r.m) fill_a<<<gk_grid_1d(r.m * edge, 256), 256, 0, r.stream>>>(r.a, r.m, edge, from);
    GK_CHECK(cudaStreamSynchronize(r.stream));
  });

  /* What each rank has to do, alone and together. Bytes and operations are those of all ranks. */
  const double bytes = (double)n * sizeof(unsigned) * all, flops = 2 * (double)edge * (double)edge * (double)edge;
  const rank_work reduce = [n](rank_state &r) {
    GK_CHECK(gk_reduce_sum((const unsigned *)r.x, r.total, n, r.stream, &r.scratch));
  };
  const rank_work scan = [n](rank_state &r) {
    GK_CHECK(gk_scan_inclusive((const unsigned *)r.x, r.y, n, gk_op_sum(), r.stream, &r.scratch));
  };
  const rank_work multiply = [edge](rank_state &r) {
    GK_CHECK(gk_matmul((const float *)r.a, (const float *)r.b, r.c, r.m, edge, edge, r.stream));
  };
  const lesson_row *const reduce_alone = measure(&l, ranks, "reduce alone", bytes, reduce);
  const lesson_row *const both_alone = measure(&l, ranks, "reduce and scan alone", 3 * bytes, [&](rank_state &r) {
    reduce(r);
    scan(r);
  });
  const lesson_row *const multiply_alone = measure(&l, ranks, "matmul alone", 0, multiply);
  check_product(&l, multiply_alone, ranks, edge, all);
#ifdef GPUKIT_NCCL
  const lesson_row *const reduced = measure(&l, ranks, "reduce", bytes, [n](rank_state &r) {
    GK_CHECK(gk_dist_reduce((const unsigned *)r.x, r.total, n, gk_op_sum(), r.comm, r.stream, &r.scratch));
  });
  check_total(&l, reduced, ranks, 0, n * (size_t)all);
  const lesson_row *const scanned = measure(&l, ranks, "scan", 3 * bytes, [n](rank_state &r) {
    GK_CHECK(gk_dist_scan_inclusive((const unsigned *)r.x, r.y, n, gk_op_sum(), r.comm, r.stream, &r.scratch));
  });
  check_prefixes(&l, scanned, ranks);
  const lesson_row *const multiplied = measure(&l, ranks, "matmul", 0, [edge](rank_state &r) {
    const float *const rows = r.b + first_of(edge, r.ranks, r.rank) * edge;
    gk_dist_matmul_opts opts = gk_dist_matmul_opts(); /* the call would make and free these by itself, each time */
    opts.buffer = r.buffer;
    opts.buffer_bytes = r.buffer_bytes;
    opts.comm_stream = r.comm_stream;
    GK_CHECK(gk_dist_matmul((const float *)r.a, rows, r.c, r.m, edge, edge, r.comm, r.stream, &opts));
  });
  check_product(&l, multiplied, ranks, edge, all);
  lesson_table(&l);
  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "alone / together: reduce %.3f, scan %.3f, matmul %.3f of %zu x %zu (%.0f GFLOP/s)",
               reduce_alone->us / reduced->us, both_alone->us / scanned->us, multiply_alone->us / multiplied->us, edge,
               edge, flops / multiplied->us * 1e-3);
    lesson_say(&l, "a scan over ranks reads all twice, so that against one GPU's it can at best be as 2 to 3");
  }
#else
  check_total(&l, reduce_alone, ranks, 0, n);
  check_prefixes(&l, both_alone, ranks);
  lesson_table(&l);
  if (l.mode == LESSON_TIMED) lesson_say(&l, "matmul: %.0f GFLOP/s", flops / multiply_alone->us * 1e-3);
#endif

  on_each(ranks, [&](rank_state &r) {
    for (void *p : {(void *)r.x, (void *)r.y, (void *)r.total, (void *)r.ms, (void *)r.slowest, (void *)r.a,
                    (void *)r.b, (void *)r.c})
      GK_CHECK(cudaFree(p));
    GK_CHECK(gk_scratch_destroy(&r.scratch));
    GK_CHECK(cudaStreamDestroy(r.stream));
#ifdef GPUKIT_NCCL
    GK_CHECK(cudaFree(r.buffer));
    GK_CHECK(cudaStreamDestroy(r.comm_stream));
    GK_CHECK(ncclCommDestroy(r.comm));
#endif
  });
#ifdef LESSON_MPI
  MPI_Finalize();
#endif
  return lesson_end(&l);
}
