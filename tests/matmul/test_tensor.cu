/* Products on tensor cores: half types, and floats rounded to tf32. The hardware has its own order of
 * additions: results are compared bit by bit where every order gives the same sum, and by the documented bounds
 * elsewhere. */
#include "once.h"

#include "hooks.h"
#include "products.h"

/* --- exact sums ----------------------------------------------------------------------------------------------------*/

TEST(f16_to_f16) { check_randomly<__half, __half>(0, 20, GK_PRECISION_DEFAULT, 100); }
TEST(f16_to_f32) { check_randomly<__half, float>(100, 20, GK_PRECISION_DEFAULT, 100); }
TEST(bf16_to_bf16) { check_randomly<__nv_bfloat16, __nv_bfloat16>(200, 20, GK_PRECISION_DEFAULT, 100); }
TEST(bf16_to_f32) { check_randomly<__nv_bfloat16, float>(300, 20, GK_PRECISION_DEFAULT, 100); }
TEST(tf32) { check_randomly<float, float>(400, 20, GK_PRECISION_TF32, 100); }

/* Many steps of k, and more than one tile of every size. */
TEST(a_large_c_with_odd_rows) {
  problem p = test_slowed() ? problem_of(270, 269, 33) : problem_of(700, 757, 33);
  check_exactly<__half, __half>(p);
  p.m = 200, p.n = test_slowed() ? 520 : 1500, p.batch = 2, p.k = 17;
  check_exactly<__half, float>(p);
}

/* Products that are too small for the other kernels of tensor cores: warps with no step, one or several, of which the
 * last may be partial, in tiles at the edge. */
template <class T, class O> static void check_small(const problem &p) {
  gk_matmul_path path;
  const gk_matmul_opts o = p.opts(GK_PLAN_AUTO);
  EXPECT_OK(gk_matmul_plan(reinterpret_cast<T *>(256), reinterpret_cast<T *>(256), reinterpret_cast<O *>(512), p.m, p.n,
                           p.k, &o, &path));
  EXPECT(path.plan == GK_PLAN_MMA && path.precision == p.precision && !path.copies_a && !path.copies_b);
  EXPECT_EQ(path.scratch_bytes + path.work_bytes, size_t{0});
  check_exactly<T, O>(p);
}
template <class T, class O> static void check_small(int first_trans, gk_precision precision = GK_PRECISION_DEFAULT) {
  for (size_t k : {1u, 15u, 16u, 17u, 31u, 33u, 95u, 129u, 255u, 273u, 529u}) {
    if (test_slowed() && k % 4 != 1) continue;
    problem p = problem_of(33, 39, k);
    p.trans_a = (first_trans + static_cast<int>(k)) / 2 % 2, p.trans_b = (first_trans + static_cast<int>(k)) % 2;
    p.shift = k % 3, p.pad_a = k % 5, p.pad_c = k % 2, p.alpha = k % 7 ? 1 : 2, p.beta = k % 4 == 3;
    p.batch = k > 100 ? 0 : 2, p.precision = precision;
    check_small<T, O>(p);
    p.max_blocks = 3;
    if (p.k == 129) check_exactly<T, O>(p);
  }
}
TEST(small_products) {
  require_plans<__half, __half>(GK_PRECISION_DEFAULT);
  check_small<__half, __half>(0);
  check_small<__half, float>(1);
  require_plans<__nv_bfloat16, float>(GK_PRECISION_DEFAULT);
  check_small<__nv_bfloat16, __nv_bfloat16>(2);
  check_small<__nv_bfloat16, float>(3);
  check_small<float, float>(0, GK_PRECISION_TF32);
  check_small<float, float>(3, GK_PRECISION_TF32);
}
/* The more tiles, the fewer warps a block has, at last one. */
TEST(many_small_products) {
  require_plans<__half, float>(GK_PRECISION_DEFAULT);
  for (size_t tiles_per_sm : {16u, 32u}) {
    problem p = problem_of(31, 29, 17);
    p.batch = tiles_per_sm * static_cast<size_t>(this_gpu().sms) / 4;
    check_small<__half, float>(p);
  }
}

/* tf32 with two MN-major operands, which wgmma would transpose first: in code for sm_90a these go to mma.sync. The first
 * has a k that is split, the second is a batch. */
TEST(tf32_that_is_not_transposed) {
  problem p = problem_of(36, 40, 1540, GK_PRECISION_TF32);
  p.trans_a = 1, p.beta = 3;
  for (size_t max_blocks : {0u, 3u}) {
    p.max_blocks = max_blocks;
    check_exactly<float, float>(p);
  }
  problem batch = problem_of(36, 68, 68, GK_PRECISION_TF32);
  batch.trans_a = 1, batch.batch = 72, batch.pad_c = 1;
  if (!test_slowed()) check_exactly<float, float>(batch);
}

/* Copies of operands, too, keep to max_blocks. */
#ifdef CUDA_ON_CPU
template <class T, class O> static void check_blocks_of_copies(gk_precision) {
  SKIP("the stand-in's graphs do not tell the grids of their kernels");
}
#else
template <class T, class O> static void check_blocks_of_copies(gk_precision precision) {
  const size_t m = 300, n = 200, k = 101;
  const std::vector<gk_plan> plans = require_plans<T, O>(precision);
  device_array<T> a(m * k), b(k * n);
  device_array<O> c(m * n);
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (gk_plan plan : plans) {
    gk_matmul_opts o = gk_matmul_opts();
    gk_matmul_path path;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t nodes[16];
    size_t node_count = 16, kernel_count = 0;
    o.precision = precision, o.plan = plan, o.max_blocks = 3, o.trans_b = 1;
    EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, m, n, k, &o, &path));
    EXPECT(path.copies_b);
    EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, m, n, k, &o, stream));
    EXPECT_OK(cudaStreamEndCapture(stream, &graph));
    EXPECT_OK(cudaGraphGetNodes(graph, NULL, &node_count));
    EXPECT(node_count > 1 && node_count <= 16);
    EXPECT_OK(cudaGraphGetNodes(graph, nodes, &node_count));
    for (size_t i = 0; i < node_count; i++) {
      cudaGraphNodeType type;
      cudaKernelNodeParams params;
      EXPECT_OK(cudaGraphNodeGetType(nodes[i], &type));
      if (type != cudaGraphNodeTypeKernel) continue;
      EXPECT_OK(cudaGraphKernelNodeGetParams(nodes[i], &params));
      EXPECT(params.gridDim.x * params.gridDim.y * params.gridDim.z <= 3);
      kernel_count++;
    }
    EXPECT(kernel_count > 1);
    EXPECT_OK(cudaGraphDestroy(graph));
  }
  EXPECT_OK(cudaStreamDestroy(stream));
}
#endif
TEST(copies_keep_to_max_blocks) {
  check_blocks_of_copies<__half, float>(GK_PRECISION_DEFAULT);
  check_blocks_of_copies<float, float>(GK_PRECISION_TF32);
}

TEST(several_tiles_and_stages) {
  for (int trans = 0; trans < 4; trans++) {
    problem p = problem_of(70, 72, 264);
    p.trans_a = trans & 1, p.trans_b = trans >> 1;
    check_exactly<__half, float>(p);
  }
  for (int trans = 0; trans < 4; trans++)
    for (size_t pad : {0u, 3u}) {
      problem p = problem_of(68, 140, 264, GK_PRECISION_TF32);
      p.trans_a = trans & 1, p.trans_b = trans >> 1, p.pad_a = pad, p.pad_b = pad * 3;
      check_exactly<float, float>(p);
    }
  problem tall = problem_of(1030, 24, 100, GK_PRECISION_TF32); /* A is not aligned, but is not copied */
  tall.pad_a = 1, tall.batch = 2;
  check_exactly<float, float>(tall);
  for (size_t shift : {0u, 5u}) {
    problem odd = problem_of(1030, 24, 101);
    odd.pad_a = 2, odd.shift = shift;
    check_exactly<__half, float>(odd);
    odd.pad_a = 3, odd.trans_b = 1; /* rows of whole 16-byte words; the last word of A is cut */
    if (!test_slowed()) check_exactly<__nv_bfloat16, __nv_bfloat16>(odd); /* a copy of a part: memcheck reads on */
  }
  check_exactly<float, float>(problem_of(130, 20, 70, GK_PRECISION_EMULATED));
}

/* --- accuracy ------------------------------------------------------------------------------------------------------*/

/* The plans, and the one that the planner chooses: for a small product its own kernel. */
template <class T> static std::vector<gk_plan> plans_and_auto(gk_precision precision) {
  std::vector<gk_plan> plans = plans_of<T, float>(precision);
  plans.push_back(GK_PLAN_AUTO);
  return plans;
}
/* The bound of the errors, and that of random data. */
static double limit_of(data which, gk_precision precision, size_t k) {
  return which == NORMAL ? sqrt(bound_of(precision, k)) : bound_of(precision, k);
}
TEST(errors_stay_below_the_bounds) {
  const size_t m = 20, n = 24, k = 100;
  for (data which : {NORMAL, UNIFORM, SCALED, CANCELLING})
    for (gk_precision precision : {GK_PRECISION_TF32, GK_PRECISION_EMULATED})
      for (gk_plan plan : plans_and_auto<float>(precision)) {
        problem p = problem_of(m, n, k, precision);
        p.trans_a = which & 1, p.trans_b = which >> 1;
        const double worst = worst_error(p, data_of<float>(which, 71, m, k), data_of<float>(which, 72, k, n), plan);
        if (!(worst <= limit_of(which, precision, k)))
          test_fail(__FILE__, __LINE__,
                    sentence("data %d, precision %d, plan %d: %g of 2^-24", which, precision, plan, worst));
      }
  for (gk_plan plan : plans_and_auto<__half>(GK_PRECISION_DEFAULT)) {
    const problem p = problem_of(m, n, k);
    EXPECT(worst_error(p, data_of<__half>(NORMAL, 71, m, k), data_of<__half>(NORMAL, 72, k, n), plan) <=
           limit_of(NORMAL, GK_PRECISION_DEFAULT, k));
  }
}

/* --- operands are rounded to tf32 ----------------------------------------------------------------------------------*/

TEST(rounding_to_tf32) {
  EXPECT_EQ(hook_round_to_tf32(0x3f800fffu), 0x3f800000u);
  EXPECT_EQ(hook_round_to_tf32(0x3f801000u), 0x3f800000u); /* ties to even */
  EXPECT_EQ(hook_round_to_tf32(0x3f801001u), 0x3f802000u);
  EXPECT_EQ(hook_round_to_tf32(0xbf803000u), 0xbf804000u);
  EXPECT_EQ(hook_round_to_tf32(0xbf805000u), 0xbf804000u);
  EXPECT_EQ(hook_round_to_tf32(0x3fffffffu), 0x40000000u); /* into the exponent */
  EXPECT_EQ(hook_round_to_tf32(0x7f7fffffu), 0x7f800000u); /* and to infinity */
  EXPECT_EQ(hook_round_to_tf32(0x7f7fefffu), 0x7f7fe000u);
  EXPECT_EQ(hook_round_to_tf32(0xff800000u), 0xff800000u);
  EXPECT_EQ(hook_round_to_tf32(0x7f800001u), 0x7fffffffu); /* a NaN stays one */
  EXPECT_EQ(hook_round_to_tf32(0x80000fffu), 0x80000000u); /* denormals too */
}

/* In device code. Before sm_90 ties go away from zero. */
__global__ void round_on_device(unsigned *bits, size_t n) {
  GK_FOR_1D (i, n) bits[i] = hook_round_to_tf32(bits[i]);
}
static std::vector<unsigned> rounded_on_device(const std::vector<unsigned> &bits) {
  device_array<unsigned> on_gpu(bits);
  GK_LAUNCH(round_on_device, 1, 128, 0, 0, on_gpu.ptr, bits.size());
  return on_gpu.get();
}
TEST(rounding_to_tf32_on_the_device) {
  std::vector<unsigned> bits;
  for (size_t i = 0; i < 4096; i++)
    bits.push_back(static_cast<unsigned>(mix(79, i)) & (i % 2 ? ~0u : ~0xfffu)); /* many ties */
  const std::vector<unsigned> got = rounded_on_device(bits);
  for (size_t i = 0; i < bits.size(); i++) {
    const bool tie = (bits[i] & 0x1fffu) == 0x1000u && (bits[i] & 0x7fffffffu) < 0x7f800000u;
    const unsigned even = hook_round_to_tf32(bits[i]);
    EXPECT(got[i] == even || (tie && got[i] == bits[i] + 0x1000u));
  }
}

/* The copy before the product and the product itself round alike: in either operand, K-major or MN-major, in rows that
 * are aligned or not. Each row of A (or column of B) has one value, and the other operand is all ones. */
static void check_rounding(gk_plan plan, int trans, size_t pad, bool in_b) {
  const unsigned special[] = {0x3f801000u, 0x3f803000u, 0xbf805000u, 0x3f801001u, 0x3f800fffu, 0x7f7fffffu,
                              0xff7ff000u, 0x7f7fefffu, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffffffffu,
                              0x00801000u, 0x00803000u, 0x00000000u, 0x80000000u};
  const size_t values = 96, others = 20;
  problem p = problem_of(in_b ? others : values, in_b ? values : others, 44, GK_PRECISION_TF32);
  p.trans_a = trans & 1, p.trans_b = trans >> 1, p.pad_a = p.pad_b = pad;
  std::vector<float> a(p.size_a(), in_b ? 1.0f : 0.0f), b(p.size_b(), in_b ? 0.0f : 1.0f);
  std::vector<unsigned> bits(values);
  for (size_t i = 0; i < values; i++) {
    bits[i] = i < 16 ? special[i] : static_cast<unsigned>(mix(78, i) & 0xbfffffffu) | 0x20000000u;
    if (i % 3 == 0 && i >= 16) bits[i] = (bits[i] & ~0xfffu) | 0x1000u; /* half of them ties */
    (in_b ? b[p.at_b(0, i % p.k, i)] : a[p.at_a(0, i, i % p.k)]) = from_bits(bits[i]);
  }
  device_array<float> on_a(a), on_b(b), c(p.size_c());
  const gk_matmul_opts o = p.opts(plan);
  EXPECT_OK(gk_matmul_ex(on_a.ptr, on_b.ptr, c.ptr, p.m, p.n, p.k, &o));
  const std::vector<float> got = c.get();
  const std::vector<unsigned> rounded = rounded_on_device(bits);
  for (size_t i = 0; i < values; i++)
    for (size_t j = 0; j < others; j++) {
      const float x = got[in_b ? p.at_c(0, j, i) : p.at_c(0, i, j)], wanted = from_bits(rounded[i]);
      if (wanted != wanted ? x == x : x != wanted)
        test_fail(
            __FILE__, __LINE__,
            sentence("plan %d, %s: %08x became %08x", static_cast<int>(plan), p.text().c_str(), bits[i], bits_of(x)));
    }
}

TEST(rounding_in_products) {
  require_plans<float, float>(GK_PRECISION_TF32);
  for (gk_plan plan : plans_and_auto<float>(GK_PRECISION_TF32))
    for (int trans = 0; trans < 4; trans++)
      for (size_t pad : {0u, 1u})
        for (bool in_b : {false, true}) check_rounding(plan, trans, pad, in_b);
}

/* --- memory --------------------------------------------------------------------------------------------------------*/

/* Batches whose operands are copied: as one matrix, where the matrices follow each other without gaps, also with padded
 * rows, or one by one; rows of one vector, of a few, and of more than a block's 32. */
TEST(batches_that_are_copied) {
  require_plans<__half, __half>(GK_PRECISION_DEFAULT);
  const size_t shapes[][3] = {{65, 33, 17}, {3, 9, 5}, {20, 301, 1}, {33, 18, 270}};
  for (const auto &shape : shapes)
    for (int transposed = 0; transposed < 4; transposed++) {
      problem p = problem_of(shape[0], shape[1], shape[2]);
      p.batch = 7, p.trans_a = transposed & 1, p.trans_b = transposed >> 1, p.shift = 1;
      check_exactly<__half, __half>(p);
      p.gap_a = 4, p.pad_b = 5;
      check_exactly<__half, float>(p);
      p.precision = GK_PRECISION_TF32, p.gap_b = 1;
      check_exactly<float, float>(p);
      p.precision = GK_PRECISION_DEFAULT, p.gap_a = 0, p.pad_a = 3, p.one_b = transposed == 2;
      check_exactly<__half, float>(p);
    }
}

/* The result is the same with no scratch, without a work area, and with room for one, two or all products. */
TEST(any_work_area) {
  const std::vector<gk_plan> plans = require_plans<float, float>(GK_PRECISION_TF32);
  problem p = problem_of(20, 30, 40, GK_PRECISION_TF32);
  p.batch = 5, p.trans_b = 1;
  for (int one = 0; one < 3; one++) {
    p.one_a = one & 1, p.one_b = one >> 1;
    device_array<float> a(data_of<float>(NORMAL, 91, 5 * p.m, p.k)), b(data_of<float>(NORMAL, 92, 5 * p.k, p.n));
    device_array<float> c(p.size_c());
    gk_matmul_opts o = p.opts(plans[0]);
    gk_matmul_path path;
    const uint64_t used = pool_bytes();
    EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
    const std::vector<float> expected = c.get();
    EXPECT_EQ(pool_bytes(), used);
    EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o, &path));
    EXPECT(path.work_bytes <= gk_matmul_work_bytes(GK_PRECISION_TF32, p.m, p.n, p.k));
    for (size_t room : {size_t(0), path.work_bytes, path.work_bytes * 2, path.work_bytes * 9}) {
      gk_scratch scratch = gk_scratch();
      EXPECT_OK(gk_scratch_create_work(&scratch, 1000, room, 0));
      o.scratch = &scratch;
      for (int again = 0; again < 2; again++) {
        c.clear();
        EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
        EXPECT_SAME(c.get(), expected, "%zu bytes of work area, one %d", room, one);
      }
      /* A reduction can still use the same scratch. */
      device_array<float> sum(1);
      EXPECT_OK(gk_reduce(c.ptr, sum.ptr, c.n, gk_op_sum(), 0, &scratch));
      EXPECT_OK(gk_scratch_destroy(&scratch));
    }
  }
}
