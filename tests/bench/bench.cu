/* gpukit beside CUB, cuBLAS and the memory's ceiling, in one process on one GPU: bench.h says how, --help what to ask
 * for. */
#define GPUKIT_IMPLEMENTATION
#include "bench.h"

#include "goals.h"

#include <cub/version.cuh>
#include <chrono>
#include <math.h>
#include <stdlib.h>
#include <string>
#include <unistd.h>
#include <vector>

bench_state bench;

static std::vector<const char *> filters;
static std::vector<bench_row> rows;
static FILE *csv;
static int wrong_results;
static std::chrono::steady_clock::time_point start;

static double seconds_since(std::chrono::steady_clock::time_point when) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - when).count();
}

/* --- What is asked for --------------------------------------------------------------------------------------------*/

static const struct {
  int mode;
  const char *name;
} modes[] = {{BENCH_COLD, "cold"}, {BENCH_STREAM, "stream"}, {BENCH_HOT, "hot"}};

static std::string row_name(const bench_contest &c, const char *mode) {
  return std::string(c.group) + " " + c.what + " " + c.type + " " + c.size + " " + mode;
}
/* All words of one of the filters, each at the beginning of a word of the name; but not those after a '-'. */
static bool passes(const std::string &name) {
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

void *bench_temp(size_t bytes) {
  if (bytes > bench.temp_bytes) {
    GK_CHECK(cudaStreamSynchronize(bench.stream));
    GK_CHECK(cudaFree(bench.temp));
    GK_CHECK(cudaMalloc(&bench.temp, bytes));
    bench.temp_bytes = bytes;
  }
  return bench.temp;
}

/* --- The ceilings -------------------------------------------------------------------------------------------------*/

/* Blocks for each multiprocessor: those that did best on this device. */
static unsigned read_blocks = 8, copy_blocks = 8;

static __global__ void __launch_bounds__(256) read_kernel(const uint4 *from, size_t count, unsigned *never) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  unsigned sum = 0;
  for (; i + 3 * step < count; i += 4 * step) {
    const uint4 a = __ldg(from + i), b = __ldg(from + i + step), c = __ldg(from + i + 2 * step),
                d = __ldg(from + i + 3 * step);
    sum += (a.x ^ a.y ^ a.z ^ a.w) + (b.x ^ b.y ^ b.z ^ b.w) + (c.x ^ c.y ^ c.z ^ c.w) + (d.x ^ d.y ^ d.z ^ d.w);
  }
  for (; i < count; i += step) {
    const uint4 a = __ldg(from + i);
    sum += a.x ^ a.y ^ a.z ^ a.w;
  }
  if (sum == 0x9e3779b9u) *never = sum; /* hardly ever; but the compiler cannot drop the loads */
}
static __global__ void __launch_bounds__(256) copy_kernel(const uint4 *from, uint4 *to, size_t count) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < count; i += 4 * step) {
    const uint4 a = __ldg(from + i), b = __ldg(from + i + step), c = __ldg(from + i + 2 * step),
                d = __ldg(from + i + 3 * step);
    to[i] = a, to[i + step] = b, to[i + 2 * step] = c, to[i + 3 * step] = d;
  }
  for (; i < count; i += step) to[i] = __ldg(from + i);
}
static unsigned traffic_grid(size_t count, unsigned per_sm) {
  const size_t most = static_cast<size_t>(bench.device.sms) * per_sm, full = gk_ceil_div(count, size_t{256} * 4);
  return static_cast<unsigned>(full < most ? full : most);
}
cudaError_t bench_read_all(void *user, cudaStream_t stream, size_t i) {
  const bench_traffic *t = static_cast<bench_traffic *>(user);
  const size_t count = gk_ceil_div(t->bytes, sizeof(uint4));
  return gk_launch(read_kernel, traffic_grid(count, read_blocks), 256, 0, stream,
                   reinterpret_cast<const uint4 *>(t->in + i * t->stride), count, reinterpret_cast<unsigned *>(t->out));
}
cudaError_t bench_copy_by_kernel(void *user, cudaStream_t stream, size_t i) {
  const bench_traffic *t = static_cast<bench_traffic *>(user);
  const size_t count = gk_ceil_div(t->bytes, sizeof(uint4));
  return gk_launch(copy_kernel, traffic_grid(count, copy_blocks), 256, 0, stream,
                   reinterpret_cast<const uint4 *>(t->in + i * t->stride),
                   reinterpret_cast<uint4 *>(t->out + i * t->stride), count);
}
cudaError_t bench_copy_by_memcpy(void *user, cudaStream_t stream, size_t i) {
  const bench_traffic *t = static_cast<bench_traffic *>(user);
  return cudaMemcpyAsync(t->out + i * t->stride, t->in + i * t->stride, t->bytes, cudaMemcpyDeviceToDevice, stream);
}

static double best_rate(gk_bench_fn fn, bench_traffic *traffic, double bytes, unsigned *per_sm) {
  static const unsigned choices[] = {2, 4, 8, 16, 32};
  gk_bench_opts opts = gk_bench_opts();
  gk_bench_result result = gk_bench_result();
  double best = 0;
  unsigned chosen = 0;
  opts.stream = bench.stream, opts.samples = 5, opts.bytes = bytes;
  for (const unsigned choice : choices) {
    if (per_sm) *per_sm = choice;
    GK_CHECK(gk_bench(fn, traffic, &opts, &result));
    if (result.gbs > best) best = result.gbs, chosen = choice;
  }
  if (per_sm) *per_sm = chosen;
  return best;
}
static void find_ceilings(FILE *to) {
  bench_traffic traffic = {bench.in, bench.out, gk_round_up(bench.capacity / 4, size_t{256}), 0};
  const double bytes = static_cast<double>(traffic.bytes);
  const double read = best_rate(bench_read_all, &traffic, bytes, &read_blocks);
  const double copy = best_rate(bench_copy_by_kernel, &traffic, 2 * bytes, &copy_blocks);
  const double memcpy_rate = best_rate(bench_copy_by_memcpy, &traffic, 2 * bytes, NULL);
  fprintf(to, "ceilings at %.0f MiB: read %.0f GB/s, copy by kernel %.0f GB/s, by cudaMemcpyAsync %.0f GB/s\n",
          bytes / (1 << 20), read, copy, memcpy_rate);
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

static double median_of(std::vector<double> values) {
  std::vector<double>::iterator middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double upper = *middle;
  return values.size() % 2 ? upper : (upper + *std::max_element(values.begin(), middle)) / 2;
}

static void progress(const std::string &name) {
  if (isatty(2)) fprintf(stderr, "\r%4.0f s, row %zu: %-60.60s", seconds_since(start), rows.size() + 1, name.c_str());
}
static void end_progress() {
  if (isatty(2)) fprintf(stderr, "\r%80s\r", "");
}

static void print_row(const bench_row &r) {
  static std::string heading;
  const bool flops = r.flops > 0;
  if (heading != r.group) {
    heading = r.group;
    printf("\n%-36s %-20s %-6s %11s %-7s %11s %9s %8s %6s %7s\n", r.group.c_str(), "n", "mode", "gpukit us", "peer",
           "us", flops ? "TFLOP/s" : "GB/s", "ceil. %", "ratio", "noise %");
  }
  printf("%-36s %-20s %-6s %11.2f %-7s ", (r.what + " " + r.type).c_str(), r.size.c_str(), r.mode.c_str(), r.ours_us,
         r.peer.c_str());
  r.peer.empty() ? printf("%11s ", "") : printf("%11.2f ", r.peer_us);
  r.rate() > 0 ? printf("%9.1f ", r.rate()) : printf("%9s ", "");
  r.ceiling_us > 0.05 ? printf("%8.1f ", 100 * r.ceiling_us / r.ours_us) : printf("%8s ", "");
  if (r.wrong_ours)
    printf("%6s  %zu results of gpukit are wrong\n", "WRONG", r.wrong_ours);
  else if (r.ratio > 0 && r.wrong_peer)
    printf("%6.2f %7.1f  %zu results of %s are wrong\n", r.ratio, 100 * r.noise, r.wrong_peer, r.peer.c_str());
  else if (r.ratio > 0)
    printf("%6.2f %7.1f\n", r.ratio, 100 * r.noise);
  else
    printf("%6s\n", "");
  fflush(stdout);
}
static void save_row(const bench_row &r) {
  if (!csv) return;
  fprintf(csv, "%s,%s,%s,%s,%.0f,%s,%.4f,%s,%.4f,%.4f,%.4f,%s,%.6g,%s,%.4f,%s\n", r.group.c_str(), r.what.c_str(),
          r.type.c_str(), r.size.c_str(), r.n, r.mode.c_str(), r.ours_us, r.peer.c_str(), r.peer_us, r.ratio, r.noise,
          r.flops > 0 ? "TFLOP/s" : "GB/s", r.rate(), r.ceiling.c_str(), r.ceiling_us,
          r.wrong_ours   ? "wrong"
          : r.wrong_peer ? "peer off"
                         : "ok");
  fflush(csv);
}

/* One who takes part, and the microseconds of a call in each turn. */
struct taking_part {
  bench_contestant who;
  std::vector<double> us;
  double median_us;
};

/* Of those from `first` on, up to before `end`; NULL: nobody. */
static const taking_part *fastest(const std::vector<taking_part> &all, size_t first, size_t end) {
  const taking_part *best = NULL;
  for (size_t i = first; i < end; i++)
    if (!best || all[i].median_us < best->median_us) best = &all[i];
  return best;
}

static void warm(const bench_contestant &who, double seconds) {
  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  while (seconds_since(began) < seconds) {
    for (int i = 0; i < 4; i++) GK_CHECK(who.fn(who.user, bench.stream, 0));
    GK_CHECK(cudaStreamSynchronize(bench.stream));
  }
}

/* Lets all of them take turns, and fills in their times. */
static void take_turns(std::vector<taking_part> *all, bool stream, bool warmed, size_t buffers) {
  const size_t samples = bench.quick ? 11 : 31;
  bench_contestant alone = {"", NULL, NULL};
  std::vector<gk_bench_fn> fns;
  std::vector<void *> users;
  for (taking_part &one : *all) {
    fns.push_back(stream ? after_ordinary : one.who.fn);
    users.push_back(stream ? &one.who : one.who.user);
  }
  if (stream) fns.push_back(after_ordinary), users.push_back(&alone);
  std::vector<double> ms(fns.size() * samples);
  std::vector<gk_bench_result> results(fns.size());
  gk_bench_opts opts = gk_bench_opts();
  opts.stream = bench.stream;
  opts.buffers = buffers;
  opts.warmup = warmed ? 1 : 3;
  opts.samples = static_cast<int>(samples);
  opts.sample_ms = ms.data();
  GK_CHECK(gk_bench_compare(fns.data(), users.data(), static_cast<int>(fns.size()), &opts, results.data()));
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
    if (peer.fn) all.push_back({peer, {}, 0});
  const size_t contestants = all.size();
  for (const bench_contestant &ceiling : c.ceilings)
    if (ceiling.fn) all.push_back({ceiling, {}, 0});
  for (size_t i = 0; i < contestants && c.warm_seconds > 0; i++) warm(all[i].who, c.warm_seconds);
  take_turns(&all, mode == BENCH_STREAM, c.warm_seconds > 0, buffers);
  const taking_part &ours = all[0];
  const taking_part *const peer = fastest(all, 1, contestants);
  const taking_part *const ceiling = fastest(all, contestants, all.size());

  bench_row r = {};
  r.group = c.group, r.what = c.what, r.type = c.type, r.size = c.size, r.mode = mode_name;
  r.n = c.n, r.bytes = c.bytes, r.flops = c.flops;
  r.ours_us = ours.median_us;
  if (ceiling) r.ceiling = ceiling->who.name, r.ceiling_us = ceiling->median_us;
  if (c.ceiling_us > 0) r.ceiling = "arithmetic", r.ceiling_us = c.ceiling_us;
  if (c.wrong) r.wrong_ours = c.wrong(&ours.who, buffers - 1);
  if (peer) {
    r.peer = peer->who.name, r.peer_us = peer->median_us;
    if (c.wrong) r.wrong_peer = c.wrong(&peer->who, buffers - 1);
    std::vector<double> turns;
    for (size_t turn = 0; turn < ours.us.size(); turn++) turns.push_back(peer->us[turn] / ours.us[turn]);
    const double ratio = median_of(turns);
    for (double &turn : turns) turn = fabs(turn - ratio);
    /* What is left after a subtraction may be too little to divide by. */
    if (r.ours_us > 0.05 && r.peer_us > 0.05 && !r.wrong_ours) r.ratio = ratio, r.noise = median_of(turns) / ratio;
  }
  wrong_results += r.wrong_ours > 0;
  rows.push_back(r);
  end_progress();
  print_row(r);
  save_row(r);
}

void bench_run(const bench_contest *contest) {
  for (const auto &mode : modes) {
    const std::string name = row_name(*contest, mode.name);
    if (!(contest->modes & mode.mode) || !passes(name)) continue;
    progress(name);
    run_mode(*contest, mode.mode, mode.name);
  }
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
    "bench [--quick] [--filter=WORDS]... [--csv=FILE]\n"
    "  --quick          fewer sizes and turns: less than a minute\n"
    "  --filter=WORDS   only rows whose name has all of these words, or beginnings of words, as in\n"
    "                   --filter='reduce sum f32 2^20 cold' or --filter=matmul, and none of the words after a '-',\n"
    "                   as in --filter='matmul f32 -f32emulated'; several filters: rows of any of them\n"
    "  --csv=FILE       writes the rows there, too\n"
    "The exit status is 1 if a result of gpukit was wrong.\n";

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
  void *const blocks[] = {bench.in, bench.out, bench.spare, bench.temp, ordinary_x, ordinary_y};
  for (void *block : blocks) GK_CHECK(cudaFree(block));
  GK_CHECK(cudaStreamDestroy(bench.stream));
}

static void print_head(FILE *to, const char *prefix) {
  int driver = 0, runtime = 0;
  GK_CHECK(cudaDriverGetVersion(&driver));
  GK_CHECK(cudaRuntimeGetVersion(&runtime));
  fprintf(to, "%s%s, sm_%d%d, %d SMs at up to %d MHz, memory at %d MHz, L2 %zu MiB\n", prefix, bench.device.name,
          bench.device.major, bench.device.minor, bench.device.sms, bench.device.clock_khz / 1000,
          bench.device.memory_khz / 1000, bench.device.l2_bytes >> 20);
  fprintf(to, "%sdriver %d, runtime %d, CUB %d, cuBLAS %d, gpukit %d.%d.%d, %d turns\n", prefix, driver, runtime,
          CUB_VERSION, bench_cublas_version(), GPUKIT_VERSION_MAJOR, GPUKIT_VERSION_MINOR, GPUKIT_VERSION_PATCH,
          bench.quick ? 11 : 31);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--quick")) {
      bench.quick = 1;
    } else if (!strncmp(argv[i], "--filter=", 9)) {
      filters.push_back(argv[i] + 9);
    } else if (!strncmp(argv[i], "--csv=", 6)) {
      csv = fopen(argv[i] + 6, "w");
      if (!csv) return perror(argv[i] + 6), 1;
    } else {
      const bool help = !strcmp(argv[i], "--help");
      fputs(usage, help ? stdout : stderr);
      return !help;
    }
  }
  /* Nobody's environment turns products of floats into something else. */
  for (const char *name : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATE_DOUBLE_PRECISION",
                           "CUBLAS_EMULATION_STRATEGY"})
    unsetenv(name);
  start = std::chrono::steady_clock::now();
  create();
  print_head(stdout, "");
  find_ceilings(stdout);
  if (csv) {
    print_head(csv, "# ");
    fprintf(csv, "group,what,type,size,n,mode,gpukit_us,peer,peer_us,ratio,noise,unit,gpukit_rate,ceiling,ceiling_us,"
                 "check\n");
  }
  launches();
  bench_reduce_floats();
  bench_reduce_integers();
  bench_scan_floats();
  bench_scan_integers();
  bench_matmul();
  destroy();
  if (rows.empty()) return fputs("bench: no row is named like that\n", stderr), 1;
  print_summary(rows);
  printf("\n%zu rows in %.0f s%s\n", rows.size(), seconds_since(start),
         wrong_results ? "; SOME RESULTS ARE WRONG" : "");
  if (csv && fclose(csv)) return perror("the CSV file"), 1;
  return wrong_results != 0;
}
