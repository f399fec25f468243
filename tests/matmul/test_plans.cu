/* Plans for other GPUs: each launch must fit. On the stand-in, products are captured into a graph for one GPU model
 * after another, so that everything is planned, every launch is checked against the limits of that GPU, and nothing is
 * computed. */
#include "hooks.h"
#include "test.h"

#include "once.h"

#ifndef CUDA_ON_CPU
TEST(every_plan_fits) { SKIP("only on the stand-in, which pretends to be several GPUs"); }
#else

#include "child.h"

#include <fstream>

namespace {

/* Knuth's 64-bit congruential generator, whose high bits are used. */
struct numbers {
  unsigned long long state;
  size_t below(size_t limit) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<size_t>(state >> 33) % limit;
  }
  /* From 1 to 2^14, as likely below 2^7 as above. */
  size_t edge() {
    const size_t bits = below(15);
    return (size_t{1} << bits) - (bits ? below(size_t{1} << (bits - 1)) : 0);
  }
};

template <class T>
cudaError_t capture_product(numbers *draw, T *memory, gk_precision precision, gk_plan plan, gk_scratch *scratch,
                            cudaStream_t stream, std::string *shape) {
  const size_t m = draw->edge(), n = draw->edge(), k = draw->edge();
  gk_matmul_opts opts = gk_matmul_opts();
  opts.trans_a = draw->below(2) != 0, opts.trans_b = draw->below(2) != 0;
  /* Rows and matrices that begin anywhere, or at multiples of 32 elements. */
  const size_t unit = draw->below(2) ? 1 : 32;
  opts.lda = gk_round_up((opts.trans_a ? m : k) + draw->below(3), unit);
  opts.ldb = gk_round_up((opts.trans_b ? k : n) + draw->below(3), unit);
  opts.ldc = gk_round_up(n + draw->below(3), unit);
  opts.batch = draw->below(8) ? 1 : 1 + draw->below(100);
  opts.stride_a = opts.lda * (opts.trans_a ? k : m), opts.stride_b = opts.ldb * (opts.trans_b ? n : k);
  opts.stride_c = opts.ldc * m;
  opts.precision = precision, opts.plan = plan, opts.scratch = scratch;
  /* Nothing is read or written: C begins after A and B. */
  T *const a = memory + (unit == 1 ? draw->below(4) : 0), *const b = a + opts.stride_a * opts.batch,
           *const c = b + opts.stride_b * opts.batch;
  char text[100];
  snprintf(text, sizeof(text), "%zu x %zu x %zu%s%s, batch %zu, plan %d, precision %d", m, n, k,
           opts.trans_a ? " A'" : "", opts.trans_b ? " B'" : "", opts.batch, static_cast<int>(plan),
           static_cast<int>(precision));
  *shape = text;
  return gk_matmul_ex(a, b, c, m, n, k, &opts, stream);
}

/* Every kind of product in turn, mostly by the plan that the library chooses. */
cudaError_t capture_any(numbers *draw, int i, void *memory, gk_scratch *scratch, cudaStream_t stream,
                        std::string *shape) {
  static const gk_plan plans[] = {
      HOOK_PLAN_TILE_32,      HOOK_PLAN_TILE_32_64, HOOK_PLAN_TILE_64,       HOOK_PLAN_TILE_64_128,
      HOOK_PLAN_HOPPER_32_64, HOOK_PLAN_HOPPER_64,  HOOK_PLAN_HOPPER_64_128, GK_PLAN_AUTO};
  const gk_plan plan = draw->below(4) ? GK_PLAN_AUTO : plans[draw->below(8)];
  float *const floats = static_cast<float *>(memory);
  switch (i % 6) {
  case 0: return capture_product(draw, floats, GK_PRECISION_STRICT, plan, scratch, stream, shape);
  case 1: return capture_product(draw, floats, GK_PRECISION_TF32, GK_PLAN_AUTO, scratch, stream, shape);
  case 2: return capture_product(draw, floats, GK_PRECISION_EMULATED, GK_PLAN_AUTO, scratch, stream, shape);
  case 3:
    return capture_product(draw, static_cast<double *>(memory), GK_PRECISION_STRICT, plan, scratch, stream, shape);
  case 4:
    return capture_product(draw, static_cast<__half *>(memory), GK_PRECISION_DEFAULT, GK_PLAN_AUTO, scratch, stream,
                           shape);
  default:
    return capture_product(draw, static_cast<__nv_bfloat16 *>(memory), GK_PRECISION_DEFAULT, GK_PLAN_AUTO, scratch,
                           stream, shape);
  }
}

} // namespace

/* Plans of the mma.sync kernels: the stages fit the GPU, and the partials a scratch of gk_matmul_scratch_bytes(). */
template <int Products, class Element> static void check_mma_plans() {
  const int limits[] = {64 << 10, 99 << 10, 163 << 10, 227 << 10}, sms[] = {40, 82, 108, 132, 170};
  numbers draw = {Products};
  for (size_t i = 0; i < 20000; i++) {
    const size_t m = draw.edge(), n = draw.edge(), k = draw.edge() * (i % 3 ? 1 : 64), batch = i % 4 ? 1 : draw.edge();
    const bool by_wgmma =
        std::is_same<Element, float>::value && i / 20 % 2; /* code for sm_90a has the small tile of tf32 alone */
    const hook_matmul_gpu gpu = {sms[i % 5], limits[i / 5 % 4], by_wgmma ? GK_PLAN_WGMMA : GK_PLAN_MMA};
    if (Products > 1 && gpu.smem_limit < (99 << 10)) continue; /* such a GPU has no bfloat16 */
    const hook_mma_plan plan = hook_cheapest_mma_plan<Products, Element>({m, n, k, batch, gpu});
    EXPECT(by_wgmma ? plan.config == HOOK_SMALL_TILE : plan.config >= 0);
    EXPECT(plan.partitions >= 1 && plan.partitions <= HOOK_MATMUL_PARTITIONS);
    EXPECT((plan.product_bytes == 0) == (plan.partitions == 1));
    EXPECT(plan.product_bytes <= HOOK_PARTIALS_BYTES / batch);
    EXPECT(HOOK_STATE_BYTES + HOOK_REDUCE_BYTES + plan.product_bytes <= gk_matmul_scratch_bytes());
  }
}
TEST(plans_of_mma_sync) {
  check_mma_plans<1, __half>();
  check_mma_plans<1, float>();
  check_mma_plans<6, __nv_bfloat16>();
}
/* The kernels without launch bounds: one is never launched, the others with at most 32 threads. */
TEST(every_kernel_has_launch_bounds) {
  const char *const unbounded[] = HOOK_KERNELS_WITHOUT_BOUNDS;
  std::ifstream header("gpukit.cuh");
  size_t bounded = 0, others = 0;
  if (!header) SKIP("gpukit.cuh is not here");
  for (std::string line; std::getline(header, line);) {
    const size_t qualifier = line.find("__global__ void ");
    if (qualifier == std::string::npos || line.compare(0, 2, " *") == 0) continue;
    const std::string rest = line.substr(qualifier + strlen("__global__ void "));
    if (rest.compare(0, strlen("__launch_bounds__("), "__launch_bounds__(") == 0) {
      bounded++;
      continue;
    }
    bool known = false;
    for (const char *name : unbounded) known = known || rest.compare(0, strlen(name), name) == 0;
    if (!known) test_fail(__FILE__, __LINE__, "no launch bounds: " + line);
    others++;
  }
  EXPECT(bounded >= 14);
  EXPECT_EQ(others, sizeof(unbounded) / sizeof(*unbounded));
}

/* Shared memory of at most 64 KB on sm_75, 99 KB on sm_86, 89 and 120, 163 KB on sm_80, 227 KB on sm_90 and 100, and
 * blocks of at most 1024 threads: the stand-in refuses launches of more. All of these have 65536 registers for a block;
 * each kernel has launch bounds, by which the compiler keeps to them (compile/inspect.sh looks at what it makes). */
TEST(every_plan_fits) {
  const char *const name = "every_plan_fits";
  const char *const targets[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
  if (!in_child(name)) {
    for (const char *target : targets)
      EXPECT_PASSED(run_child(name, (std::string("GPUKIT_CPU_DEVICE=") + target).c_str()));
    return;
  }
  const int shapes = 100000, at_once = 200;
  gk_scratch scratch = gk_scratch();
  cudaStream_t stream;
  void *memory;
  numbers draw = {1};
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaMalloc(&memory, 4096));
  /* Enough for every product, so that none allocates while it is captured. */
  EXPECT_OK(gk_scratch_create_work(&scratch, size_t{1} << 30, size_t{8} << 30, stream));
  for (int done = 0; done < shapes; done += at_once) {
    cudaGraph_t graph;
    std::string shape;
    EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < at_once; i++) {
      const cudaError_t status = capture_any(&draw, i, memory, &scratch, stream, &shape);
      if (status) test_fail(__FILE__, __LINE__, shape + ": " + gk_error_detail());
    }
    EXPECT_OK(cudaStreamEndCapture(stream, &graph));
    EXPECT_OK(cudaGraphDestroy(graph));
  }
  EXPECT_OK(gk_scratch_destroy(&scratch));
  EXPECT_OK(cudaFree(memory));
  EXPECT_OK(cudaStreamDestroy(stream));
}
#endif
