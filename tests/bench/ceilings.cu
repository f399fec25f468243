/* What the GPU can do at most: reading and copying memory, mma.sync on registers. And its clock. */
#include "reference.h"

/* --- Memory -------------------------------------------------------------------------------------------------------*/

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
/* --- mma.sync -----------------------------------------------------------------------------------------------------*/

enum { MMA_MOST_WARPS = 16, MMA_LEAST_SUMS = 2, MMA_MOST_SUMS = 8, MMA_WORDS = 16 /* of operands, of each thread */ };

struct mma_kernel_args {
  const unsigned *operands;
  unsigned steps;
  float *never;
  unsigned long long *elapsed; /* clocks and nanoseconds of the first block */
};

static __device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}
#if __CUDA_ARCH__ >= 800
template <int Kind> __device__ void mma(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  if (Kind == BENCH_MMA_BF16)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
/* Two fragments of A by four of B, as the inner loop of a product has them: one multiplication for each of Sums
 * accumulators in a step. Code for older targets than sm_80 does nothing, and is not called. */
template <int Kind, int Sums>
static __global__ void __launch_bounds__(32 * MMA_MOST_WARPS) mma_kernel(const mma_kernel_args p) {
#if __CUDA_ARCH__ >= 800
  unsigned a[2][4], b[4][2];
  float sums[Sums][4] = {};
  const unsigned *const from = p.operands + threadIdx.x * MMA_WORDS;
  for (int i = 0; i < 8; i++) a[i / 4][i % 4] = from[i], b[i / 2][i % 2] = from[8 + i];
  const unsigned long long began_ns = nanoseconds();
  const long long began = clock64();
#pragma unroll 4
  for (unsigned step = 0; step < p.steps; step++) {
#pragma unroll
    for (int i = 0; i < Sums; i++) mma<Kind>(sums[i], a[i % 2], b[i / 2]);
  }
  float total = 0;
  for (int i = 0; i < Sums; i++) total += sums[i][0] + sums[i][1] + sums[i][2] + sums[i][3];
  if (total == 12345.678f) *p.never = total; /* hardly ever; but the compiler cannot drop the loop */
  const long long ended = clock64();
  if (blockIdx.x == 0 && threadIdx.x == 0)
    p.elapsed[0] = static_cast<unsigned long long>(ended - began), p.elapsed[1] = nanoseconds() - began_ns;
#endif
}

typedef void (*mma_kernel_fn)(mma_kernel_args);
template <int Kind> mma_kernel_fn mma_kernel_of(int sums) {
  static const mma_kernel_fn kernels[] = {mma_kernel<Kind, 2>, mma_kernel<Kind, 3>, mma_kernel<Kind, 4>,
                                          mma_kernel<Kind, 5>, mma_kernel<Kind, 6>, mma_kernel<Kind, 7>,
                                          mma_kernel<Kind, 8>};
  return kernels[sums - MMA_LEAST_SUMS];
}

struct mma_variant {
  bench_mma_kind kind;
  int warps, sums;
  double flops; /* of a call */
};
static mma_variant best_mma[BENCH_MMA_KINDS];
static unsigned *mma_operands[BENCH_MMA_KINDS]; /* of all threads of a block, from N(0, 1) */
static unsigned long long *mma_elapsed;

static mma_kernel_fn kernel_of(const mma_variant &v) {
  return v.kind == BENCH_MMA_BF16 ? mma_kernel_of<BENCH_MMA_BF16>(v.sums) : mma_kernel_of<BENCH_MMA_TF32>(v.sums);
}
static cudaError_t run_mma(void *user, cudaStream_t stream, size_t) {
  const mma_variant &v = *static_cast<mma_variant *>(user);
  const double each = v.kind == BENCH_MMA_BF16 ? 2.0 * 16 * 8 * 16 : 2.0 * 16 * 8 * 8;
  const double steps = v.flops / (each * v.sums * v.warps * bench.device.sms);
  const mma_kernel_args args = {mma_operands[v.kind], steps < 1 ? 1u : static_cast<unsigned>(steps + 0.5),
                                reinterpret_cast<float *>(mma_elapsed + 2), mma_elapsed};
  return gk_launch(kernel_of(v), static_cast<unsigned>(bench.device.sms), static_cast<unsigned>(32 * v.warps), 0,
                   stream, args);
}
cudaError_t bench_run_mma_loop(void *user, cudaStream_t stream, size_t i) {
  const bench_mma_loop *loop = static_cast<bench_mma_loop *>(user);
  mma_variant v = best_mma[loop->kind];
  v.flops = loop->flops;
  return run_mma(&v, stream, i);
}
bool bench_has_mma(bench_mma_kind kind) {
  cudaFuncAttributes attributes;
  const mma_variant any = {kind, 4, MMA_LEAST_SUMS, 0};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(kernel_of(any))) == cudaSuccess &&
         attributes.ptxVersion >= 80;
}

/* Operations that a multiprocessor is listed to do in a clock, dense; 0: not known here. */
static double listed_per_clock(bench_mma_kind kind) {
  const int version = bench.device.major * 10 + bench.device.minor;
  const double bf16 = version == 90 ? 4096 : version == 80 ? 2048 : 0;
  return kind == BENCH_MMA_BF16 ? bf16 : bf16 / 2;
}

/* The fastest variant, all of them in turns after a second of load. On Hopper mma.sync reaches about 0.63 of what is
 * listed for bf16 (published); much less is a wrong loop, and no ceiling. */
static std::string find_mma(bench_mma_kind kind, const char *name, bool *wrong) {
  const double least_share = 0.58, load_seconds = bench.quick ? 0.3 : 1;
  std::vector<mma_variant> variants;
  for (const int warps : {4, 8, 16})
    for (int sums = MMA_LEAST_SUMS; sums <= MMA_MOST_SUMS; sums++) {
      const double millisecond = 4.5e9 * bench.device.sms * (kind == BENCH_MMA_BF16 ? 1 : 0.5); /* on Hopper, about */
      variants.push_back({kind, warps, sums, millisecond});
    }
  const std::vector<gk_bench_fn> fns(variants.size(), run_mma);
  std::vector<void *> users;
  for (mma_variant &variant : variants) users.push_back(&variant);
  std::vector<gk_bench_result> results(variants.size());
  gk_bench_opts opts = gk_bench_opts();
  opts.stream = bench.stream, opts.samples = 5, opts.calls = 1, opts.warmup = 1;
  best_mma[kind] = {kind, 8, 4, variants[0].flops};
  bench_keep_busy({{name, run_mma, &best_mma[kind]}}, load_seconds);
  GK_CHECK(gk_bench_compare(fns.data(), users.data(), static_cast<int>(fns.size()), &opts, results.data()));
  size_t best = 0;
  for (size_t i = 1; i < variants.size(); i++)
    if (results[i].median_ms < results[best].median_ms) best = i;
  best_mma[kind] = variants[best];

  /* Once more, for the clock. */
  unsigned long long elapsed[2];
  GK_CHECK(gk_bench(run_mma, &best_mma[kind], &opts, &results[0]));
  GK_CHECK(cudaMemcpy(elapsed, mma_elapsed, sizeof(elapsed), cudaMemcpyDeviceToHost));
  const double rate = variants[best].flops / results[0].median_ms * 1e-9;
  const double mhz = elapsed[1] ? 1e3 * static_cast<double>(elapsed[0]) / static_cast<double>(elapsed[1]) : 0;
  const double listed = listed_per_clock(kind) * bench.device.sms * mhz * 1e-6;
  char line[200];
  snprintf(line, sizeof(line), "mma.sync %s: %.1f TFLOP/s at %.0f MHz by %d warps with %d accumulators", name, rate,
           mhz, variants[best].warps, variants[best].sums);
  std::string text = line;
  if (listed > 0) {
    snprintf(line, sizeof(line), ", %.3f of what is listed at that clock", rate / listed);
    text += line;
    if (kind == BENCH_MMA_BF16 && rate < least_share * listed) {
      text += ": ERROR: the loop is wrong, it should reach 0.58 at least";
      *wrong = true;
    }
  }
  return text;
}

/* --- The clock ----------------------------------------------------------------------------------------------------*/

/* Between two ticks of the timer, since it may tick once in a microsecond only. */
static __global__ void clock_kernel(unsigned long long *elapsed) {
  unsigned long long began_ns = nanoseconds(), now_ns = began_ns;
  while (now_ns == began_ns) now_ns = nanoseconds();
  const long long began = clock64();
  began_ns = now_ns;
  while (now_ns - began_ns < 50000) now_ns = nanoseconds();
  elapsed[0] = static_cast<unsigned long long>(clock64() - began), elapsed[1] = now_ns - began_ns;
}
double bench_sm_mhz() {
  unsigned long long elapsed[2];
  if (!mma_elapsed) return 0;
  GK_LAUNCH(clock_kernel, 1, 1, 0, bench.stream, mma_elapsed);
  GK_CHECK(cudaMemcpyAsync(elapsed, mma_elapsed, sizeof(elapsed), cudaMemcpyDeviceToHost, bench.stream));
  GK_CHECK(cudaStreamSynchronize(bench.stream));
  return elapsed[1] ? 1e3 * static_cast<double>(elapsed[0]) / static_cast<double>(elapsed[1]) : 0;
}

/* --- All of them --------------------------------------------------------------------------------------------------*/

std::vector<std::string> bench_find_ceilings(bool *wrong) {
  std::vector<std::string> lines;
  bench_traffic traffic = {bench.in, bench.out, gk_round_up(bench.capacity / 4, size_t{256}), 0};
  const double bytes = static_cast<double>(traffic.bytes);
  const double read = best_rate(bench_read_all, &traffic, bytes, &read_blocks);
  const double copy = best_rate(bench_copy_by_kernel, &traffic, 2 * bytes, &copy_blocks);
  const double memcpy_rate = best_rate(bench_copy_by_memcpy, &traffic, 2 * bytes, NULL);
  char line[200];
  snprintf(line, sizeof(line),
           "memory: at %.0f MiB read %.0f GB/s, copy by kernel %.0f GB/s, by cudaMemcpyAsync %.0f GB/s",
           bytes / (1 << 20), read, copy, memcpy_rate);
  lines.push_back(line);

  const size_t words = 32 * MMA_MOST_WARPS * MMA_WORDS;
  GK_CHECK(cudaMalloc(&mma_elapsed, 4 * sizeof(*mma_elapsed)));
  for (unsigned *&operands : mma_operands) GK_CHECK(cudaMalloc(&operands, words * sizeof(*operands)));
  reference_fill(reinterpret_cast<__nv_bfloat16 *>(mma_operands[BENCH_MMA_BF16]), 2 * words, 5);
  reference_fill(reinterpret_cast<float *>(mma_operands[BENCH_MMA_TF32]), words, 5);
  if (bench_has_mma(BENCH_MMA_BF16)) lines.push_back(find_mma(BENCH_MMA_BF16, "bf16", wrong));
  if (bench_has_mma(BENCH_MMA_TF32)) lines.push_back(find_mma(BENCH_MMA_TF32, "tf32", wrong));
  return lines;
}
void bench_free_ceilings() {
  GK_CHECK(cudaFree(mma_elapsed));
  for (unsigned *operands : mma_operands) GK_CHECK(cudaFree(operands));
}
