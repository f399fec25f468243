/* What working together costs: gk_dist_reduce, gk_dist_scan_inclusive and gk_dist_matmul on N GPUs against one, and
 * against the links between them. One process has all visible GPUs, or each process one, as in lesson 26.
 *
 *   make bench-dist BENCHFLAGS='--csv=dist.csv'
 *
 *   --n=N          floats of each GPU in the weak rows, of all together in the strong ones (2^30)
 *   --edge=N       n and k of the products, and m: of each GPU in the weak rows, of all in the strong ones (16384)
 *   --type=f32     of the products; or bf16, with sums in float
 *   --blocks=A,B   products also with at most this many blocks at once
 *   --csv=FILE     the rows; and in FILE_timeline.csv when each step of a product ran
 *   --svg=FOLDER   the same as a picture, dist_timeline.svg
 *   --lose=R       nothing is measured: rank R, a process, ends without a word, and the others tell how soon
 *                  gk_dist_wait says so
 *
 * `one` is what one GPU takes while the others have nothing to do: in weak rows for as much as each has, in strong ones
 * for all. `bound` is what the ranks' own work and the links allow: the local parts of the call, measured alone, and
 * the part of the all-gathers that cannot be hidden by them, at the latency or bandwidth measured. */
#include <cuda_runtime.h>
#if !__has_include(<nccl.h>)
#error "tests/bench/dist.cu measures gk_dist_*, which needs NCCL: nccl.h is not here"
#endif
#include <nccl.h>
#define GPUKIT_NCCL

/* The steps of gk_dist_matmul, seen from outside: what it calls is called by way of these, which record events. */
static ncclResult_t seen_all_gather(const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
static cudaError_t seen_copy(void *, size_t, const void *, size_t, size_t, size_t, cudaMemcpyKind, cudaStream_t);
static cudaError_t seen_wait(cudaStream_t, cudaEvent_t, unsigned);
static cudaError_t seen_record(cudaEvent_t, cudaStream_t);
#define ncclAllGather seen_all_gather
#define cudaMemcpy2DAsync seen_copy
#define cudaStreamWaitEvent seen_wait
#define cudaEventRecord seen_record
#include "gpukit.cuh"
#undef ncclAllGather
#undef cudaMemcpy2DAsync
#undef cudaStreamWaitEvent
#undef cudaEventRecord

#include "examples/lesson_ranks.h"
#include "examples/lesson_timeline.h"
#include <algorithm>
#include <cuda_bf16.h>
#include <signal.h>

enum { PRODUCT, GATHER, COPY, KINDS };
static const char *const kind_names[KINDS] = {"product", "all-gather", "own rows"};
static const char *const lane_names[] = {"stream", "second_stream", "comm_stream"};
static thread_local timeline *seen;               /* NULL: nothing is recorded */
static thread_local cudaStream_t seen_streams[2]; /* of the products */

static ncclResult_t seen_all_gather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                                    cudaStream_t stream) {
  timeline_before(seen, 2, GATHER, stream);
  const ncclResult_t result = ncclAllGather(from, to, count, type, comm, stream);
  timeline_after(seen, stream);
  return result;
}
static cudaError_t seen_copy(void *to, size_t pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                             cudaMemcpyKind kind, cudaStream_t stream) {
  timeline_before(seen, 2, COPY, stream);
  const cudaError_t code = cudaMemcpy2DAsync(to, pitch, from, from_pitch, width, height, kind, stream);
  timeline_after(seen, stream);
  return code;
}
/* A product waits for its part of B, and then lets that be overwritten. */
static thread_local cudaStream_t open_in; /* the stream that has a product which has not ended; 0: none */
static cudaError_t seen_wait(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  const cudaError_t code = cudaStreamWaitEvent(stream, event, flags);
  if (!seen || (stream != seen_streams[0] && stream != seen_streams[1])) return code;
  timeline_before(seen, stream == seen_streams[1], PRODUCT, stream);
  open_in = stream;
  return code;
}
static cudaError_t seen_record(cudaEvent_t event, cudaStream_t stream) {
  if (seen && stream == open_in) timeline_after(seen, stream), open_in = 0;
  return cudaEventRecord(event, stream);
}

static const lesson_about about = {
    "dist", "what working together costs", "floats of each GPU", size_t(1) << 30, 1 << 14, 1, size_t(1) << 33, "GB/s"};
static struct {
  size_t n, edge;
  std::vector<size_t> blocks;
  bool bf16;
  std::string csv, svg;
  int lose;
} ask;

/* --- Rows ---------------------------------------------------------------------------------------------------------*/

static FILE *csv;
static double latency_us, link_gbs; /* of an all-gather: of 48 bytes, and what comes in at each rank; 0: one rank */

static void row(const lesson_rank &r, const char *call, bool strong, const std::string &size, size_t max_blocks,
                double one_us, double bound_us, double us) {
  const char *const way = strong ? "strong" : "weak";
  const double efficiency = one_us / (strong ? r.ranks : 1) / us;
  if (r.rank) return;
  printf("%-7s %-7s %-13s %6zu %5d | %11.2f | %11.2f | %11.2f | %10.3f | %10.3f\n", call, way, size.c_str(), max_blocks,
         r.ranks, one_us, bound_us, us, efficiency, bound_us / us);
  if (csv)
    fprintf(csv, "%s,%s,%s,%zu,%d,%.6g,%.6g,%.6g,%.4f,%.4f\n", call, way, size.c_str(), max_blocks, r.ranks, one_us,
            bound_us, us, efficiency, bound_us / us);
}
static double us_of(lesson_rank &r, int calls, const rank_work &call) {
  return 1e3 * (double)time_of(r, calls, 3, call);
}
/* The first rank's time, while the others wait for it. */
static double us_of_one(lesson_rank &r, int calls, const rank_work &call) {
  return us_of(r, calls, [&](lesson_rank &me) {
    if (me.rank == 0) call(me);
  });
}

template <class T> __global__ void fill(T *x, size_t n, unsigned seed) {
  GK_FOR_1D (i, n) {
    unsigned h = (unsigned)i * 2654435761u + seed;
    h = (h ^ h >> 15) * 2246822519u;
    x[i] = gk__convert<T, float>::from((float)((h ^ h >> 13) & 0xffff) / 32768 - 1);
  }
}
template <class T> static T *new_array(const lesson_rank &r, size_t n, unsigned seed) {
  T *x = NULL;
  GK_CHECK(cudaMalloc(&x, (n ? n : 1) * sizeof(T)));
  if (n) GK_LAUNCH(fill<T>, gk_grid_1d(n, 256), 256, 0, r.stream, x, n, seed);
  return x;
}

/* --- The links ----------------------------------------------------------------------------------------------------*/

static void measure_links(lesson_rank &r) {
  const size_t bytes = std::min(ask.n * sizeof(float), size_t(256) << 20), ranks = (size_t)r.ranks;
  unsigned char *const x = new_array<unsigned char>(r, bytes * ranks, 1);
  const auto gather = [=](lesson_rank &me, size_t each) {
    GK_CHECK(ncclAllGather(x + each * (size_t)me.rank, x, each, ncclUint8, me.comm, me.stream));
  };
  const double us = us_of(r, 100, [&](lesson_rank &me) { gather(me, 48); });
  const double large_us = us_of(r, 10, [&](lesson_rank &me) { gather(me, bytes); });
  if (r.rank == 0) {
    latency_us = us, link_gbs = (double)(bytes * (ranks - 1)) / large_us * 1e-3;
    printf("an all-gather of 48 bytes: %.2f us; of %zu MiB from each rank: %.1f GB/s come in\n\n", latency_us,
           bytes >> 20, link_gbs);
    printf("%-7s %-7s %-13s %6s %5s | %11s | %11s | %11s | %10s | %10s\n", "call", "scaling", "size", "blocks", "ranks",
           "one us", "bound us", "us", "efficiency", "of bound");
    if (csv)
      fprintf(csv,
              "# an all-gather of 48 bytes: %.2f us; of %zu MiB from each rank: %.1f GB/s come in\n"
              "call,scaling,size,max_blocks,ranks,one_us,bound_us,us,efficiency,of_bound\n",
              latency_us, bytes >> 20, link_gbs);
  }
  GK_CHECK(cudaFree(x));
}

/* --- Reduce and scan ----------------------------------------------------------------------------------------------*/

static void measure_arrays(lesson_rank &r) {
  float *const x = new_array<float>(r, ask.n, 7), *const y = new_array<float>(r, ask.n, 8);
  float *total = NULL;
  GK_CHECK(cudaMalloc(&total, sizeof(float)));
  const auto reduce = [=](size_t n) -> rank_work {
    return [=](lesson_rank &me) { GK_CHECK(gk_reduce_sum((const float *)x, total, n, me.stream, &me.scratch)); };
  };
  const auto scan = [=](size_t n) -> rank_work {
    return [=](lesson_rank &me) {
      GK_CHECK(gk_scan_inclusive((const float *)x, y, n, gk_op_sum(), me.stream, &me.scratch));
    };
  };
  const double one_reduce = us_of_one(r, 10, reduce(ask.n)), one_scan = us_of_one(r, 10, scan(ask.n));
  for (int strong = 0; strong < 2; strong++) {
    const size_t n = strong ? gk_dist_split(ask.n, r.ranks, r.rank).item_count : ask.n;
    const double own_reduce = us_of(r, 10, reduce(n));
    const double own_both = us_of(r, 10, [&](lesson_rank &me) {
      reduce(n)(me);
      scan(n)(me);
    });
    const double us = us_of(r, 10, [=](lesson_rank &me) {
      GK_CHECK(gk_dist_reduce((const float *)x, total, n, gk_op_sum(), me.comm, me.stream, &me.scratch));
    });
    const double scan_us = us_of(r, 10, [=](lesson_rank &me) {
      GK_CHECK(gk_dist_scan_inclusive((const float *)x, y, n, gk_op_sum(), me.comm, me.stream, &me.scratch));
    });
    row(r, "reduce", strong, std::to_string(ask.n), 0, one_reduce, own_reduce + latency_us, us);
    row(r, "scan", strong, std::to_string(ask.n), 0, one_scan, own_both + latency_us, scan_us);
  }
  for (float *p : {x, y, total}) GK_CHECK(cudaFree(p));
}

/* --- Matmul -------------------------------------------------------------------------------------------------------*/

/* By each rank of this process: its steps. */
static std::vector<timeline> timelines;
static std::vector<double> timeline_ms;

template <class T> static void measure_products(lesson_rank &r, timeline *steps, double *steps_ms) {
  const size_t n = ask.edge, k = ask.edge, wide = gk__dist_columns(n, 0); /* of a part */
  const gk_dist_piece own = gk_dist_split(k, r.ranks, r.rank);
  T *const a = new_array<T>(r, ask.edge * k, 3), *const b = new_array<T>(r, k * n, 4);
  float *const c = new_array<float>(r, ask.edge * n, 5);
  gk_dist_matmul_opts opts = gk_dist_matmul_opts();
  int least = 0, greatest = 0;
  GK_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  GK_CHECK(cudaStreamCreateWithPriority(&opts.comm_stream, cudaStreamNonBlocking, greatest));
  GK_CHECK(cudaStreamCreateWithFlags(&opts.second_stream, cudaStreamNonBlocking));
  opts.buffer_bytes = gk_dist_matmul_buffer_bytes(n, k, sizeof(T));
  GK_CHECK(cudaMalloc(&opts.buffer, opts.buffer_bytes));
  /* Other ranks' rows of a column; and of the first part, which nothing hides. */
  const double row_us = link_gbs > 0 ? (double)((k - own.item_count) * sizeof(T)) / link_gbs * 1e-3 : 0;
  const double first_us = row_us * (double)wide, all_us = row_us * (double)n;
  const rank_work whole = [=](lesson_rank &me) {
    GK_CHECK(gk_matmul((const T *)a, (const T *)b, c, ask.edge, n, k, me.stream));
  };
  const double one = us_of_one(r, 2, whole);
  for (int strong = 0; strong < 2; strong++) {
    const size_t m = strong ? gk_dist_split(ask.edge, r.ranks, r.rank).item_count : ask.edge;
    const double alone =
        us_of(r, 2, [=](lesson_rank &me) { GK_CHECK(gk_matmul((const T *)a, (const T *)b, c, m, n, k, me.stream)); });
    const double bound = std::max(alone + first_us, all_us);
    for (size_t blocks : ask.blocks) {
      gk_dist_matmul_opts o = opts;
      o.matmul.max_blocks = blocks;
      const rank_work call = [=](lesson_rank &me) {
        GK_CHECK(gk_dist_matmul((const T *)a, (const T *)b + own.first_index * n, c, m, n, k, me.comm, me.stream, &o));
      };
      const double us = us_of(r, 2, call);
      row(r, "matmul", strong, std::to_string(ask.edge) + "^3 " + (ask.bf16 ? "bf16" : "f32"), blocks, one, bound, us);
      if (!strong || blocks != ask.blocks[0]) continue;
      timeline_create(steps);
      meet(r);
      timeline_start(steps);
      seen = steps, seen_streams[0] = r.stream, seen_streams[1] = o.second_stream, open_in = 0;
      call(r);
      seen = NULL;
      wait_for(r);
      *steps_ms = timeline_end(steps);
    }
  }
  for (void *p : {(void *)a, (void *)b, (void *)c, opts.buffer}) GK_CHECK(cudaFree(p));
  for (cudaStream_t s : {opts.comm_stream, opts.second_stream}) GK_CHECK(cudaStreamDestroy(s));
}

/* What of the all-gathers ran while a product did. */
static double hidden(const timeline &t) {
  double all = 0, behind = 0;
  for (const timeline_step *s = t.steps; s < t.steps + t.count; s++) {
    if (s->kind == PRODUCT) continue;
    all += s->end - s->begin;
    for (const timeline_step *p = t.steps; p < t.steps + t.count; p++)
      if (p->kind == PRODUCT) behind += std::max(0.0f, std::min(p->end, s->end) - std::max(p->begin, s->begin));
  }
  return all > 0 ? behind / all : 0;
}
static void show_timelines(const std::vector<lesson_rank> &ranks) {
  double last = 0;
  FILE *const f =
      ask.csv.empty() ? NULL : fopen((ask.csv.substr(0, ask.csv.rfind(".csv")) + "_timeline.csv").c_str(), "w");
  if (f) fprintf(f, "rank,step,begin_ms,end_ms\n");
  for (size_t i = 0; i < ranks.size(); i++) {
    last = std::max(last, timeline_ms[i]);
    printf("rank %d: %.1f%% of the way of B was hidden behind products\n", ranks[i].rank, 100 * hidden(timelines[i]));
    for (int s = 0; f && s < timelines[i].count; s++)
      fprintf(f, "%d,%s,%.4f,%.4f\n", ranks[i].rank, kind_names[timelines[i].steps[s].kind],
              (double)timelines[i].steps[s].begin, (double)timelines[i].steps[s].end);
  }
  if (f) fclose(f);
  svg picture;
  double y = 20;
  const double height = (double)ranks.size() * timeline_height(3) + 10;
  if (ask.svg.empty() ||
      !svg_begin(&picture, ask.svg.c_str(), "dist_timeline", TIMELINE_LEFT + TIMELINE_WIDTH + 20, height))
    return;
  for (size_t i = 0; i < ranks.size(); i++) {
    timelines[i].lane_names = lane_names;
    y = timeline_draw(
        &picture, y, &timelines[i],
        ("gk_dist_matmul " + std::to_string(ask.edge) + "^3, rank " + std::to_string(ranks[i].rank)).c_str(), 3,
        kind_names, KINDS, last);
  }
  svg_end(&picture);
}

/* --- A rank that is lost ------------------------------------------------------------------------------------------*/

static void lose_one(lesson_rank &r) {
  float *const x = new_array<float>(r, 1000, 1), *total = new_array<float>(r, 1, 1);
  slowest(r, 0);
  if (r.rank == ask.lose) raise(SIGKILL);
  const double begin = lesson_now_us();
  cudaError_t code = gk_dist_reduce((const float *)x, total, 1000, gk_op_sum(), r.comm, r.stream, &r.scratch);
  if (code == cudaSuccess) code = gk_dist_wait(r.comm, r.stream, 5000, true);
  fprintf(stderr, "rank %d: %s after %.1f ms: %s\n", r.rank, cudaGetErrorName(code), (lesson_now_us() - begin) * 1e-3,
          gk_error_detail());
  const bool idle = cudaStreamSynchronize(r.stream) == cudaSuccess;
  fflush(stderr);
  _exit(code != cudaSuccess && idle ? 0 : 1);
}

static void read_arguments(int argc, char **argv) {
  ask.n = size_t(1) << 30, ask.edge = 16384, ask.lose = -1;
  ask.blocks.push_back(0);
#ifdef CUDA_ON_CPU
  ask.n = 5000, ask.edge = 64;
#endif
  for (int i = 1; i < argc; i++) {
    const char *const a = argv[i], *const value = strchr(a, '=') ? strchr(a, '=') + 1 : "";
    const std::string name(a, (size_t)(value - a) * !!*value);
    if (name == "--n=")
      ask.n = lesson_number(&about, value);
    else if (name == "--edge=")
      ask.edge = lesson_number(&about, value);
    else if (name == "--blocks=")
      for (const char *v = value; v; v = strchr(v, ',') ? strchr(v, ',') + 1 : NULL)
        ask.blocks.push_back(strtoull(v, NULL, 10));
    else if (name == "--type=" && (!strcmp(value, "f32") || !strcmp(value, "bf16")))
      ask.bf16 = !strcmp(value, "bf16");
    else if (name == "--csv=")
      ask.csv = value;
    else if (name == "--svg=")
      ask.svg = value;
    else if (name == "--lose=")
      ask.lose = atoi(value);
    else
      lesson_refuse(&about, "%s: there is no such argument, or its value is missing; the head of tests/bench/dist.cu",
                    a);
  }
}

int main(int argc, char **argv) {
  lesson l;
  const launched by = find_launcher(&argc, &argv);
  read_arguments(argc, argv);
  let_first_speak(&by, argc, argv);
  lesson_begin(&l, &about, 1, argv);
  std::vector<lesson_rank> ranks = join_ranks(&l, &by, gk_scan_scratch_bytes(ask.n, sizeof(float)));
  if (ask.lose >= 0) on_each(ranks, lose_one);
  if (by.rank == 0 && !ask.csv.empty() && !(csv = fopen(ask.csv.c_str(), "w")))
    lesson_refuse(&about, "%s cannot be written", ask.csv.c_str());
  if (csv)
    fprintf(csv, "# %s, %d ranks, %s\n", l.device.name, ranks[0].ranks,
            by.by ? "each a process" : "each a thread of one process");
  timelines.resize(ranks.size()), timeline_ms.resize(ranks.size());
  on_each(ranks, measure_links);
  on_each(ranks, measure_arrays);
  on_each(ranks, [&](lesson_rank &r) {
    const size_t i = (size_t)(&r - &ranks[0]);
    ask.bf16 ? measure_products<__nv_bfloat16>(r, &timelines[i], &timeline_ms[i])
             : measure_products<float>(r, &timelines[i], &timeline_ms[i]);
  });
  if (by.rank == 0) show_timelines(ranks);
  leave_ranks(ranks);
  if (csv && fclose(csv)) return 1;
  return lesson_end(&l);
}
