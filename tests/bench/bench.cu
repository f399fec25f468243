/* gpukit beside CUB, cuBLAS and the memory's ceiling, in one process on one GPU: bench.h says how, --help what to ask
 * for. */
#define GPUKIT_IMPLEMENTATION
#include "bench.h"

#include "gate.h"
#include "goals.h"
#include "plans.h"
#include "random.h"

#include <cub/version.cuh>
#include <chrono>
#include <fstream>
#include <map>
#include <math.h>
#include <set>
#include <stdlib.h>
#include <string>
#include <unistd.h>
#include <vector>

/* Which of the builds this is: the Makefile says so. */
#ifndef BENCH_BUILD
#define BENCH_BUILD "unnamed"
#endif

bench_state bench;

static std::vector<const char *> filters;
static bench_file results;             /* of this run, and with --append those of the file */
static std::set<std::string> appended; /* names of rows that the file has already */
static std::ofstream csv, plans_csv;
static size_t measured, wrong_rows, planned_shapes;
static std::chrono::steady_clock::time_point start;

/* Rows that are measured again, by name, while that is what the parts of the bench run for; and what came out. */
static std::set<std::string> again;
static std::map<std::string, std::vector<bench_row>> measured_again;

static double seconds_since(std::chrono::steady_clock::time_point when) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - when).count();
}

/* --- What is asked for --------------------------------------------------------------------------------------------*/

static const struct {
  int mode;
  const char *name;
} modes[] = {
    {BENCH_COLD, "cold"}, {BENCH_STREAM, "stream"}, {BENCH_HOT, "hot"}, {BENCH_FIRST, "first"}, {BENCH_HOST, "host"}};

static std::string row_name(const bench_contest &c, const char *mode) {
  return std::string(c.group) + " " + c.what + " " + c.type + " " + c.size + " " + mode;
}
/* All words of one of the filters, each at the beginning of a word of the name; but not those after a '-'. */
static bool is_named(const std::string &name) {
  if (filters.empty()) return true;
  for (const char *filter : filters) {
    bool all = true;
    for (const char *word = filter; *word && all;) {
      const size_t length = strcspn(word, " ");
      const bool wanted = *word != '-';
      const std::string begin(word + !wanted, length - !wanted);
      all = ((" " + name).find(" " + begin) != std::string::npos) == wanted;
      word += length;
      word += strspn(word, " ");
    }
    if (all) return true;
  }
  return false;
}
static bool passes(const std::string &name) {
  if (!again.empty()) return again.count(name) > 0;
  return is_named(name) && !appended.count(name);
}
bool bench_wanted(const bench_contest *contest) {
  for (const auto &mode : modes)
    if (contest->modes & mode.mode && passes(row_name(*contest, mode.name))) return true;
  return false;
}

const bench_size *bench_sizes(bool few) {
  static const bench_size all[] = {{"2^10", 1u << 10},
                                   {"2^12", 1u << 12},
                                   {"2^14", 1u << 14},
                                   {"2^16", 1u << 16},
                                   {"2^18", 1u << 18},
                                   {"2^20", 1u << 20},
                                   {"2^22", 1u << 22},
                                   {"2^24", 1u << 24},
                                   {"2^26", 1u << 26},
                                   {"2^28", 1u << 28},
                                   {"2^30", 1u << 30},
                                   {"1000", 1000},
                                   {"4097", 4097},
                                   {"99999", 99999},
                                   {"1000003", 1000003},
                                   {"16777217", (1u << 24) + 1},
                                   {"67108863", (1u << 26) - 1},
                                   {"100000007", 100000007},
                                   {"", 0}};
  static const bench_size some[] = {{"2^10", 1u << 10}, {"2^14", 1u << 14}, {"2^18", 1u << 18},   {"2^22", 1u << 22},
                                    {"2^26", 1u << 26}, {"2^30", 1u << 30}, {"1000003", 1000003}, {"", 0}};
  static const bench_size quick_all[] = {{"2^10", 1u << 10}, {"2^14", 1u << 14}, {"2^18", 1u << 18}, {"2^20", 1u << 20},
                                         {"2^24", 1u << 24}, {"2^30", 1u << 30}, {"99999", 99999},   {"", 0}};
  static const bench_size quick_some[] = {{"2^10", 1u << 10}, {"2^20", 1u << 20}, {"2^30", 1u << 30}, {"", 0}};
  return bench.quick ? few ? quick_some : quick_all : few ? some : all;
}

std::vector<bench_random_size> bench_random_sizes(size_t item_bytes) {
  std::vector<bench_random_size> sizes;
  for (const uint64_t seed : bench.seeds) {
    random_numbers draw = random_from(seed);
    for (size_t i = 0; i < bench.random_count * 4 / 5; i++) {
      const size_t places = 128 / item_bytes, words = 16 / item_bytes;
      bench_random_size size = {draw.log_uniform(1 << 10, 1 << 28), draw.below(places), 0};
      const size_t difference = words > 1 ? 1 + draw.below(words - 1) : 0;
      size.other_offset = (size.offset + difference + words * draw.below(places / words)) % places;
      sizes.push_back(size);
    }
  }
  return sizes;
}

void *bench_temp(size_t bytes) {
  if (bytes > bench.temp_bytes) {
    GK_CHECK(cudaStreamSynchronize(bench.stream));
    GK_CHECK(cudaFree(bench.temp));
    GK_CHECK(cudaMalloc(&bench.temp, bytes));
    bench.temp_bytes = bytes;
  }
  return bench.temp;
}

/* --- The ordinary kernel of the stream mode -----------------------------------------------------------------------*/

enum { ORDINARY_ITEMS = 1 << 21 };
static float *ordinary_x, *ordinary_y;

static __global__ void ordinary_kernel(const float *x, float *y, size_t n) {
  GK_FOR_1D (i, n) y[i] += x[i];
}
static cudaError_t after_ordinary(void *user, cudaStream_t stream, size_t i) {
  const bench_contestant *who = static_cast<bench_contestant *>(user);
  GK_TRY(gk_launch(ordinary_kernel, ORDINARY_ITEMS / 1024, 256, 0, stream, ordinary_x, ordinary_y,
                   size_t{ORDINARY_ITEMS}));
  return who->fn ? who->fn(who->user, stream, i) : cudaSuccess;
}

/* --- A contest ----------------------------------------------------------------------------------------------------*/

/* A line that stays in place on a terminal; else one every 20 seconds, so that a log shows where it is. */
static void progress(const std::string &name) {
  static double last;
  const double now = seconds_since(start);
  if (isatty(2)) {
    fprintf(stderr, "\r%4.0f s, row %zu: %-60.60s", now, measured + 1, name.c_str());
  } else if (now - last >= 20) {
    last = now;
    fprintf(stderr, "%4.0f s, row %zu: %s\n", now, measured + 1, name.c_str());
  }
}
static void end_progress() {
  if (isatty(2)) fprintf(stderr, "\r%80s\r", "");
}

static void print_row(const bench_row &r, size_t wrong_ours, size_t wrong_peer) {
  static std::string heading;
  if (heading != r.group) {
    heading = r.group;
    printf("\n%-36s %-20s %-6s %11s %-7s %11s %9s %8s %6s %7s\n", r.group.c_str(), "n", "mode", "gpukit us", "peer",
           "us", r.unit.c_str(), "ceil. %", "ratio", "noise %");
  }
  printf("%-36s %-20s %-6s %11.2f %-7s ", (r.what + " " + r.type).c_str(), r.size.c_str(), r.mode.c_str(), r.ours_us,
         r.peer.c_str());
  r.peer.empty() ? printf("%11s ", "") : printf("%11.2f ", r.peer_us);
  r.rate > 0 ? printf("%9.1f ", r.rate) : printf("%9s ", "");
  r.ceiling_us > 0.05 ? printf("%8.1f ", 100 * r.ceiling_us / r.ours_us) : printf("%8s ", "");
  if (wrong_ours)
    printf("%6s  %zu results of gpukit are wrong\n", "WRONG", wrong_ours);
  else if (r.ratio > 0 && wrong_peer)
    printf("%6.2f %7.1f  %zu results of %s are wrong\n", r.ratio, 100 * r.noise, wrong_peer, r.peer.c_str());
  else if (r.ratio > 0)
    printf("%6.2f %7.1f\n", r.ratio, 100 * r.noise);
  else
    printf("%6s\n", "");
  fflush(stdout);
}
/* A contestant, and the microseconds of a call in each round. */
struct taking_part {
  bench_contestant who;
  std::vector<double> us;
  double median_us;
};

/* The fastest of the contestants first ... end - 1; NULL: there is none. */
static const taking_part *fastest(const std::vector<taking_part> &all, size_t first, size_t end) {
  const taking_part *best = NULL;
  for (size_t i = first; i < end; i++)
    if (!best || all[i].median_us < best->median_us) best = &all[i];
  return best;
}

void bench_keep_busy(const std::vector<bench_contestant> &contestants, double seconds) {
  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  while (seconds_since(began) < seconds)
    for (const bench_contestant &who : contestants) {
      for (int i = 0; i < 4; i++) GK_CHECK(who.fn(who.user, bench.stream, 0));
      GK_CHECK(cudaStreamSynchronize(bench.stream));
    }
}

/* Samples of about a millisecond, or of one call: as many as take 11 ms of a contestant, at most 11 and at least 5; in
 * a quick run less than half of that. An odd number, of which one is the median. */
static size_t samples_for(double longest_ms) {
  const double each = longest_ms > 1 ? longest_ms : 1, all = bench.quick ? 5 : 11;
  const size_t least = bench.quick ? 3 : 5, samples = static_cast<size_t>(all / each);
  return (samples < least ? least : samples) | 1;
}

/* Lets all of them take turns, and fills in their times. */
static void take_turns(std::vector<taking_part> *all, bool stream, size_t buffers) {
  bench_contestant alone = {"", NULL, NULL};
  std::vector<gk_bench_fn> fns;
  std::vector<void *> users;
  for (taking_part &one : *all) {
    fns.push_back(stream ? after_ordinary : one.who.fn);
    users.push_back(stream ? &one.who : one.who.user);
  }
  if (stream) fns.push_back(after_ordinary), users.push_back(&alone);
  std::vector<gk_bench_result> found(fns.size());
  gk_bench_opts opts = gk_bench_opts();
  opts.stream = bench.stream, opts.buffers = buffers, opts.warmup = 1;
  opts.samples = opts.calls = 1;
  double longest_ms = 0;
  for (size_t i = 0; i < fns.size(); i++) {
    GK_CHECK(gk_bench(fns[i], users[i], &opts, &found[i]));
    longest_ms = std::max(longest_ms, found[i].median_ms);
  }
  const size_t samples = samples_for(longest_ms);
  std::vector<double> ms(fns.size() * samples);
  opts.samples = static_cast<int>(samples), opts.calls = 0, opts.sample_ms = ms.data();
  GK_CHECK(gk_bench_compare(fns.data(), users.data(), static_cast<int>(fns.size()), &opts, found.data()));
  for (size_t i = 0; i < all->size(); i++) {
    taking_part &one = (*all)[i];
    for (size_t turn = 0; turn < samples; turn++)
      one.us.push_back(1e3 * (ms[i * samples + turn] - (stream ? ms[all->size() * samples + turn] : 0)));
    one.median_us = median_of(one.us);
  }
}

static void run_mode(const bench_contest &c, int mode, const char *mode_name) {
  size_t buffers = 1;
  if (mode != BENCH_HOT && c.rotate_bytes) {
    GK_CHECK(gk_bench_buffers(c.rotate_bytes, &buffers));
    if (buffers > c.most_buffers) return bench_skip(&c, "the memory does not suffice to rotate");
  }
  /* gpukit, then its peers, then the ceilings */
  std::vector<taking_part> all(1, {c.ours, {}, 0});
  for (const bench_contestant &peer : c.peers)
    if (peer.name) all.push_back({peer, {}, 0});
  const size_t contestants = all.size();
  for (const bench_contestant &ceiling : c.ceilings)
    if (ceiling.fn) all.push_back({ceiling, {}, 0});
  std::vector<bench_contestant> everyone;
  for (const taking_part &one : all) everyone.push_back(one.who);
  if (c.sample) {
    for (int turn = 0; turn < (bench.quick ? 5 : 21); turn++)
      for (taking_part &one : all) one.us.push_back(c.sample(&one.who));
    for (taking_part &one : all) one.median_us = median_of(one.us);
  } else {
    bench_keep_busy(everyone, c.warm_seconds);
    take_turns(&all, mode == BENCH_STREAM, buffers);
  }
  const taking_part &ours = all[0];
  const taking_part *const peer = fastest(all, 1, contestants);
  const taking_part *const ceiling = fastest(all, contestants, all.size());

  bench_row r = bench_row();
  r.sm_mhz = bench_sm_mhz();
  r.group = c.group, r.what = c.what, r.type = c.type, r.size = c.size, r.mode = mode_name;
  r.n = c.n;
  r.ours_us = ours.median_us;
  r.unit = c.flops > 0 ? "TFLOP/s" : "GB/s";
  if (r.ours_us > 0) r.rate = c.flops > 0 ? c.flops / r.ours_us * 1e-6 : c.bytes / r.ours_us * 1e-3;
  if (ceiling) r.ceiling = ceiling->who.name, r.ceiling_us = ceiling->median_us;
  if (c.ceiling_us > 0) r.ceiling = "arithmetic", r.ceiling_us = c.ceiling_us;
  size_t wrong_ours = 0, wrong_peer = 0;
  if (c.wrong) wrong_ours = c.wrong(&ours.who, buffers - 1);
  if (ours.median_us != ours.median_us) wrong_ours = 1;
  if (peer) {
    r.peer = peer->who.name, r.peer_us = peer->median_us;
    if (c.wrong) wrong_peer = c.wrong(&peer->who, buffers - 1);
    std::vector<double> turns;
    for (size_t turn = 0; turn < ours.us.size(); turn++) turns.push_back(peer->us[turn] / ours.us[turn]);
    const double ratio = median_of(turns);
    for (double &turn : turns) turn = fabs(turn - ratio);
    /* What is left after a subtraction may be too little to divide by. */
    if (r.ours_us > 0.05 && r.peer_us > 0.05 && !wrong_ours) r.ratio = ratio, r.noise = median_of(turns) / ratio;
  }
  r.check = wrong_ours ? "wrong" : wrong_peer ? "peer off" : "ok";
  measured++, wrong_rows += wrong_ours > 0;
  end_progress();
  print_row(r, wrong_ours, wrong_peer);
  if (!again.empty()) {
    measured_again[r.name()].push_back(r);
    return;
  }
  results.rows.push_back(r);
  if (csv.is_open()) csv << row_line(r) << std::endl; /* at once, in case that the run is ended early */
}

void bench_run(const bench_contest *contest) {
  for (const auto &mode : modes) {
    const std::string name = row_name(*contest, mode.name);
    if (!(contest->modes & mode.mode) || !passes(name)) continue;
    progress(name);
    run_mode(*contest, mode.mode, mode.name);
  }
}
void bench_write_plans(const plan_times &times) {
  const plan_shape &shape = times.shape;
  planned_shapes++, measured += times.plans.size();
  progress("plans of " + shape.type + " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
           std::to_string(shape.k));
  write_plans(plans_csv, times);
  plans_csv.flush(); /* in case that the run is ended early */
}
void bench_plan_is_wrong(const std::string &line) {
  wrong_rows++;
  fprintf(stderr, "results of gpukit are wrong: %s\n", line.c_str());
}
void bench_skip(const bench_contest *contest, const char *reason) {
  end_progress();
  printf("%-36s %-20s skipped: %s\n", (std::string(contest->what) + " " + contest->type).c_str(), contest->size,
         reason);
}

/* --- Launches -----------------------------------------------------------------------------------------------------*/

static __global__ void empty_kernel() {}
static cudaError_t launch_ours(void *, cudaStream_t stream, size_t) {
  return gk_launch(empty_kernel, 1, 32, 0, stream);
}
static cudaError_t launch_plainly(void *, cudaStream_t stream, size_t) {
  empty_kernel<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}
static void launches() {
  bench_contest c = {};
  c.group = "launch", c.what = "empty kernel", c.type = "", c.modes = BENCH_STREAM | BENCH_HOT;
  snprintf(c.size, sizeof(c.size), "1 warp");
  c.ours = {"gpukit", launch_ours, NULL};
  c.peers[0] = {"<<<>>>", launch_plainly, NULL};
  bench_run(&c);
}

/* --- All of it ----------------------------------------------------------------------------------------------------*/

static const char usage[] =
    "bench [--quick | --one-of-each | --plans] [--filter=WORDS]... [--csv=FILE [--append]] [--against=FILE]\n"
    "  --quick          fewer sizes, shapes and samples: less than a minute\n"
    "  --one-of-each    one row of each operation and type\n"
    "  --plans          products of random shapes by each plan that can be asked for, beside the one that is chosen;\n"
    "                   and what the choice loses against the best of them\n"
    "  --plan-times=FILE  writes there how long products of fixed and random shapes take by many plans, for\n"
    "                   bench-refit, and measures nothing else: strict products, and those by mma.sync (f16, tf32,\n"
    "                   emulated). --filter='tf32' names the types\n"
    "  --seconds=N      for each type of that, 60 unless given\n"
    "  --filter=WORDS   only rows whose name has all of these words, or beginnings of words, as in\n"
    "                   --filter='reduce sum f32 2^20 cold' or --filter=matmul, and none of the words after a '-',\n"
    "                   as in --filter='matmul f32 -f32emulated'; several filters: rows of any of them\n"
    "  --seed=N         where random shapes and sizes begin, 1 unless given; several seeds: the shapes of all of them\n"
    "  --random=N       random shapes of each type from each seed, 50 unless given; 4/5 as many sizes\n"
    "  --csv=FILE       writes the rows there, too\n"
    "  --append         keeps the rows that FILE has, and measures only what it lacks\n"
    "  --against=FILE   compares the rows with those of a committed file. A row that is slower is measured twice "
    "again;\n"
    "                   what stays slower is listed\n"
    "  --best=FILE      the best mean of each type, unless given tests/bench/best.csv\n"
    "  --accepted=FILE  the losses against that which are accepted, unless given tests/bench/accepted.csv\n"
    "  --commit=NAME    of what is measured, for the CSV file\n"
    "The exit status is 1 if a result of gpukit was wrong, a ceiling was, or the gate is not passed.\n";

static void create() {
  GK_CHECK(gk_device_query(-1, &bench.device));
  GK_CHECK(cudaStreamCreateWithFlags(&bench.stream, cudaStreamNonBlocking));
  /* 2^30 elements of 8 bytes, and what the rotation adds to the smaller ones; or 40 % of what is free, for input and
   * output each. */
  const size_t want = (size_t{8} << 30) + 4 * bench.device.l2_bytes;
  const size_t most = bench.device.free_bytes / 5 * 2;
  bench.capacity = (want < most ? want : most) / 4096 * 4096;
  GK_CHECK(cudaMalloc(&bench.in, bench.capacity + (16 << 20) + 4096));
  GK_CHECK(cudaMalloc(&bench.out, bench.capacity + (16 << 20) + 4096));
  GK_CHECK(cudaMalloc(&bench.spare, 8 << 20));
  GK_CHECK(cudaMalloc(&ordinary_x, ORDINARY_ITEMS * sizeof(float)));
  GK_CHECK(cudaMalloc(&ordinary_y, ORDINARY_ITEMS * sizeof(float)));
  GK_CHECK(cudaMemsetAsync(ordinary_x, 0, ORDINARY_ITEMS * sizeof(float), bench.stream));
  GK_CHECK(cudaMemsetAsync(ordinary_y, 0, ORDINARY_ITEMS * sizeof(float), bench.stream));
  GK_CHECK(cudaMemsetAsync(bench.in, 0, bench.capacity, bench.stream));
  GK_CHECK(gk_scratch_create(&bench.scratch, gk_scan_scratch_bytes(size_t{1} << 30, 8), bench.stream));
  /* Else the pool would be emptied at each end of a burst, and the first allocation of the next would pay for it. */
  cudaMemPool_t pool;
  unsigned long long keep = ~0ull;
  GK_CHECK(cudaDeviceGetDefaultMemPool(&pool, bench.device.device));
  GK_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
}
static void destroy() {
  GK_CHECK(gk_scratch_destroy(&bench.scratch));
  bench_free_ceilings();
  void *const blocks[] = {bench.in, bench.out, bench.spare, bench.temp, ordinary_x, ordinary_y};
  for (void *block : blocks) GK_CHECK(cudaFree(block));
  GK_CHECK(cudaStreamDestroy(bench.stream));
}

static std::vector<std::string> describe(const char *commit) {
  int driver = 0, runtime = 0;
  char line[300];
  std::vector<std::string> remarks;
  GK_CHECK(cudaDriverGetVersion(&driver));
  GK_CHECK(cudaRuntimeGetVersion(&runtime));
  remarks.push_back(std::string("gpu: ") + bench.device.name);
  remarks.push_back("build: " BENCH_BUILD);
  remarks.push_back(std::string("commit: ") + commit);
  snprintf(line, sizeof(line), "device: sm_%d%d, %d SMs at up to %d MHz, memory at %d MHz, L2 %zu MiB",
           bench.device.major, bench.device.minor, bench.device.sms, bench.device.clock_khz / 1000,
           bench.device.memory_khz / 1000, bench.device.l2_bytes >> 20);
  remarks.push_back(line);
  snprintf(line, sizeof(line), "software: driver %d, runtime %d, CUB %d, cuBLAS %d, gpukit %d.%d.%d", driver, runtime,
           CUB_VERSION, bench_cublas_version(), GPUKIT_VERSION_MAJOR, GPUKIT_VERSION_MINOR, GPUKIT_VERSION_PATCH);
  remarks.push_back(line);
  std::string seeds = "random: " + std::to_string(bench.random_count) + " shapes from each of the seeds";
  for (const uint64_t seed : bench.seeds) seeds += " " + std::to_string(seed);
  remarks.push_back(seeds);
  return remarks;
}

/* Ratios of another GPU or of another build are other ratios. */
static bool same_kind(const std::string &path, const bench_file &file) {
  if (file.get("gpu") == results.get("gpu") && file.get("build") == results.get("build")) return true;
  fprintf(stderr, "%s is of build %s on %s; this is build %s on %s\n", path.c_str(), file.get("build").c_str(),
          file.get("gpu").c_str(), results.get("build").c_str(), results.get("gpu").c_str());
  return false;
}

/* Opens the CSV file, and takes over the rows that it has. */
static bool open_csv(const std::string &path, bool append) {
  bench_file old;
  const bool exists = append && access(path.c_str(), F_OK) == 0;
  if (exists && (!gate_open_rows(path, &old) || !same_kind(path, old))) return false;
  if (exists && !old.rows.empty()) {
    for (const bench_row &row : old.rows) appended.insert(row.name()), wrong_rows += row.check == "wrong";
    results.rows = old.rows;
    printf("%zu rows are in %s already\n", old.rows.size(), path.c_str());
    const std::vector<std::string> remarks = results.remarks;
    results.remarks = old.remarks;
    if (old.get("commit") != bench_file{remarks, {}}.get("commit"))
      results.remarks.push_back("later rows: " + remarks[2]);
  }
  csv.open(path);
  if (!csv) return perror(path.c_str()), false;
  write_rows(csv, results);
  csv.flush();
  return true;
}

static void run_parts() {
  if (bench.plans) return bench_matmul();
  launches();
  bench_reduce_floats();
  bench_reduce_integers();
  bench_scan_floats();
  bench_scan_integers();
  bench_calls();
  bench_epilogue();
  bench_host();
  bench_matmul();
}

/* The exit status. */
static int run_plan_times(const std::string &path) {
  plans_csv.open(path);
  if (!plans_csv) return perror(path.c_str()), 2;
  plan_file file;
  file.head.remarks = results.remarks;
  file.head.remarks.push_back("sms: " + std::to_string(bench.device.sms));
  gk__matmul_gpu gpu = {};
  GK_CHECK(gk__find_matmul_gpu(&gpu));
  file.head.remarks.push_back("smem: " + std::to_string(gpu.smem_limit));
  write_plans(plans_csv, file);
  bench_matmul();
  end_progress();
  plans_csv.close();
  printf("%zu plans of %zu shapes in %.0f s%s\n", measured, planned_shapes, seconds_since(start),
         wrong_rows ? "; SOME RESULTS ARE WRONG" : "");
  return plans_csv.fail() ? (perror(path.c_str()), 2) : wrong_rows > 0;
}

/* Of the committed rows those that this run was to measure. */
static std::vector<bench_row> named_rows(const std::vector<bench_row> &rows) {
  std::vector<bench_row> named;
  for (const bench_row &row : rows)
    if (is_named(row.name())) named.push_back(row);
  return named;
}

/* Rows that are slower are measured twice again, in this process; the medians of three count. */
static bool passes_gate(const bench_file &committed, const std::vector<gate_known_mean> &best,
                        const std::vector<gate_known_mean> &accepted) {
  const std::vector<bench_row> then = named_rows(committed.rows);
  bench_file now = results;
  for (const gate_lost_row &row : gate_compare_rows(then, now.rows).slower) again.insert(row.now.name());
  if (!again.empty()) {
    printf("\n%zu rows look slower than the committed ones, and are measured twice again\n", again.size());
    run_parts();
    run_parts();
    again.clear();
    for (bench_row &row : now.rows) {
      std::vector<bench_row> measurements = measured_again[row.name()];
      measurements.push_back(row);
      row = gate_middle(measurements);
    }
  }
  printf("\n");
  return gate_passes(stdout, then, now, best, accepted);
}

/* The value of an argument "--name=value"; NULL: it is another one. */
static const char *value_of(const char *argument, const char *name) {
  const size_t length = strlen(name);
  return strncmp(argument, name, length) ? NULL : argument + length;
}

int main(int argc, char **argv) {
  std::string csv_path, plans_path, against_path, best_path = "tests/bench/best.csv",
                                                  accepted_path = "tests/bench/accepted.csv";
  const char *commit = "unknown", *value;
  bool append = false;
  double plan_seconds = 60;
  for (int i = 1; i < argc; i++) {
    if ((value = value_of(argv[i], "--first-call="))) return bench_first_call(value);
    if (!strcmp(argv[i], "--quick")) {
      bench.quick = 1;
    } else if (!strcmp(argv[i], "--one-of-each")) {
      for (const char *filter :
           {"reduce sum 2^24 cold -misaligned", "scan exclusive sum 2^24 cold", "matmul A B 1024x1024x1024"})
        filters.push_back(filter);
    } else if (!strcmp(argv[i], "--plans")) {
      bench.plans = true;
    } else if ((value = value_of(argv[i], "--plan-times="))) {
      plans_path = value;
    } else if ((value = value_of(argv[i], "--seconds="))) {
      plan_seconds = atof(value);
    } else if (!strcmp(argv[i], "--append")) {
      append = true;
    } else if ((value = value_of(argv[i], "--filter="))) {
      filters.push_back(value);
    } else if ((value = value_of(argv[i], "--seed="))) {
      bench.seeds.push_back(strtoull(value, NULL, 10));
    } else if ((value = value_of(argv[i], "--random="))) {
      bench.random_count = static_cast<size_t>(strtoull(value, NULL, 10));
    } else if ((value = value_of(argv[i], "--csv="))) {
      csv_path = value;
    } else if ((value = value_of(argv[i], "--against="))) {
      against_path = value;
    } else if ((value = value_of(argv[i], "--best="))) {
      best_path = value;
    } else if ((value = value_of(argv[i], "--accepted="))) {
      accepted_path = value;
    } else if ((value = value_of(argv[i], "--commit="))) {
      commit = value;
    } else {
      const bool help = !strcmp(argv[i], "--help");
      fputs(usage, help ? stdout : stderr);
      return help ? 0 : 2;
    }
  }
  if (bench.seeds.empty()) bench.seeds.push_back(1);
  if (!bench.random_count) bench.random_count = !plans_path.empty() ? 100000 : bench.quick ? 8 : 50;
  /* Nobody's environment turns products of floats into something else. */
  for (const char *name : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATE_DOUBLE_PRECISION",
                           "CUBLAS_EMULATION_STRATEGY"})
    unsetenv(name);
  start = std::chrono::steady_clock::now();
  create();
  results.remarks = describe(commit);
  bench_file committed;
  std::vector<gate_known_mean> best, accepted;
  if (!against_path.empty() &&
      (!gate_open_rows(against_path, &committed) || !same_kind(against_path, committed) ||
       !gate_open_means(best_path, false, &best) || !gate_open_means(accepted_path, false, &accepted)))
    return 2;
  bool wrong_ceiling = false;
  for (const std::string &line : bench_find_ceilings(&wrong_ceiling)) results.remarks.push_back(line);
  for (const std::string &remark : results.remarks) printf("%s\n", remark.c_str());
  if (!plans_path.empty()) {
    bench.plan_seconds = plan_seconds > 1 ? plan_seconds : 1;
    return run_plan_times(plans_path);
  }
  if (!csv_path.empty() && !open_csv(csv_path, append)) return 2;
  run_parts();
  if (results.rows.empty()) return fputs("bench: no row is named like that\n", stderr), 2;
  print_summary(results.rows);
  const bool passed = against_path.empty() || passes_gate(committed, best, accepted);
  destroy();
  printf("\n%zu rows in %.0f s%s%s\n", results.rows.size(), seconds_since(start),
         wrong_rows ? "; SOME RESULTS ARE WRONG" : "", wrong_ceiling ? "; A CEILING IS WRONG" : "");
  if (csv.is_open() && (csv.close(), csv.fail())) return perror(csv_path.c_str()), 2;
  return wrong_rows || wrong_ceiling || !passed;
}
