/* fp32 emulated by three bf16 parts, and the fallback to strict kernels where these parts are not enough. */
#include "once.h"

#include "hooks.h"
#include "products.h"

#include <float.h>

TEST(emulated) { check_randomly<float, float>(500, 6, GK_PRECISION_EMULATED, 60); }

/* The smallest magnitudes that are split: if the hardware flushed denormal sums to zero, the bound would not hold. */
TEST(small_magnitudes_are_kept) {
  const size_t m = 40, n = 40, k = 64;
  for (gk_plan plan : require_plans<float, float>(GK_PRECISION_EMULATED)) {
    std::vector<float> a = data_of<float>(NORMAL, 73, m, k), b = data_of<float>(NORMAL, 74, k, n);
    for (float &x : a) x = ldexpf(x < 0 ? x - 1 : x + 1, -60);
    for (float &x : b) x = ldexpf(x < 0 ? x - 1 : x + 1, -60);
    EXPECT(worst_error(problem_of(m, n, k, GK_PRECISION_EMULATED), a, b, plan) <= bound_of(GK_PRECISION_EMULATED, k));
  }
}

/* --- three parts of a float ----------------------------------------------------------------------------------------*/

/* Splits x, and returns the flag, which is 1 if an element cannot be split. */
static unsigned split(const std::vector<float> &x, size_t rows, size_t cols, size_t shift,
                      std::vector<uint16_t> *parts) {
  const size_t ld = gk_round_up(cols, size_t(8));
  device_array<float> from(x, shift);
  device_array<uint16_t> to(3 * rows * ld);
  device_array<unsigned> flag(std::vector<unsigned>(1, 0u));
  hook_raw_operand<float> a = hook_raw_operand<float>(), none = a;
  a.from = from.ptr, a.row_count = rows, a.col_count = a.leading_dim = cols, a.batch = 1;
  a.dest = reinterpret_cast<unsigned char *>(to.ptr), a.to_ld = ld * 2, a.to_term = rows * ld * 2;
  EXPECT_OK((hook_prepare_operands<HOOK_PREPARE_BF16_TERMS>(a, none, 100, flag.ptr, true, shift,
                                                            hook_product_call(NULL, 0, {1, 0, GK_PLAN_AUTO}))));
  *parts = to.get();
  return flag.first();
}

/* Every element is the exact sum of its parts, at any alignment of the rows. */
TEST(parts_add_up) {
  std::vector<uint16_t> parts;
  for (size_t cols : {1u, 7u, 8u, 9u, 33u, 64u, 300u, 2100u})
    for (size_t shift : {0u, 1u, 2u, 3u}) {
      const size_t rows = cols > 1000 ? 100 : 5, ld = gk_round_up(cols, size_t(8));
      std::vector<float> x(rows * cols);
      for (size_t i = 0; i < x.size(); i++)
        x[i] =
            ldexpf(from_bits(0x3f800000u | static_cast<unsigned>(mix(75, i) & 0x807fffffu)), uniform(76, i, -60, 58));
      EXPECT_EQ(split(x, rows, cols, shift, &parts), 0u);
      size_t wrong = 0;
      for (size_t i = 0; i < x.size(); i++) {
        double sum = 0;
        for (size_t part = 0; part < 3; part++)
          sum += static_cast<double>(
              from_bits(static_cast<unsigned>(parts[(part * rows + i / cols) * ld + i % cols]) << 16));
        wrong += sum != static_cast<double>(x[i]);
      }
      EXPECT_EQ(wrong, size_t(0));
    }
}

TEST(values_without_parts_are_flagged) {
  std::vector<uint16_t> parts;
  std::vector<float> x(700, 1.0f);
  x[3] = 0, x[4] = -0.0f;
  EXPECT_EQ(split(x, 7, 100, 0, &parts), 0u);
  for (float odd : {NAN, INFINITY, -INFINITY, 1e-40f, -1e-40f, ldexpf(0.999f, -60), ldexpf(1, 59), FLT_MAX})
    for (size_t at : {0u, 99u, 350u, 699u}) {
      x[at] = odd;
      EXPECT_EQ(split(x, 7, 100, at % 2, &parts), 1u);
      x[at] = 1;
    }
  EXPECT_EQ(hook_max_split_bits(1), bits_of(ldexpf(1, 63)));
  EXPECT_EQ(hook_max_split_bits(4096), bits_of(ldexpf(1, 57)));
  EXPECT_EQ(hook_max_split_bits(4097), bits_of(ldexpf(1, 56)));
}

/* --- special values, for which strict kernels run ------------------------------------------------------------------*/

struct beside_strict {
  problem p;
  std::vector<float> a, b, c;
  device_array<float> on_a, on_b, emulated, strict;
  explicit beside_strict(gk_precision precision, double beta = 0)
      : p(problem_of(37, 50, 70, precision)), a(data_of<float>(NORMAL, 81, p.m, p.k)),
        b(data_of<float>(NORMAL, 82, p.k, p.n)), c(data_of<float>(NORMAL, 83, p.m, p.n)), on_a(a), on_b(b),
        emulated(c.size()), strict(c.size()) {
    p.beta = beta;
  }
  void run(cudaStream_t stream, gk_scratch *scratch = NULL) {
    gk_matmul_opts o = p.opts(plans_of<float, float>(p.precision)[0]);
    o.scratch = scratch;
    EXPECT_OK(gk_matmul_ex(on_a.ptr, on_b.ptr, emulated.ptr, p.m, p.n, p.k, &o, stream));
  }
  void run_strictly() {
    problem same = p;
    same.precision = GK_PRECISION_STRICT;
    const gk_matmul_opts o = same.opts(GK_PLAN_AUTO);
    strict.set(c);
    EXPECT_OK(gk_matmul_ex(on_a.ptr, on_b.ptr, strict.ptr, p.m, p.n, p.k, &o));
  }
};

TEST(special_values_as_in_strict_products) {
  require_plans<float, float>(GK_PRECISION_EMULATED);
  for (float odd : {NAN, INFINITY, -INFINITY, 1e-40f, 3e38f})
    for (int where = 0; where < 2; where++) {
      beside_strict both(GK_PRECISION_EMULATED, where ? 0 : -0.5);
      (where ? both.on_b : both.on_a).set(123, odd);
      both.emulated.set(both.c);
      both.run(0);
      both.run_strictly();
      EXPECT_SAME(both.emulated.get(), both.strict.get(), "%g in %s", static_cast<double>(odd), where ? "B" : "A");
    }
}

/* A graph does not depend on the data: each replay decides again, on the device. */
TEST(a_graph_meets_special_values) {
  require_plans<float, float>(GK_PRECISION_EMULATED);
  for (bool with_scratch : {true, false}) {
    beside_strict both(GK_PRECISION_EMULATED, with_scratch ? 0.5 : 0);
    gk_scratch scratch = gk_scratch();
    EXPECT_OK(
        gk_scratch_create_work(&scratch, 0, gk_matmul_work_bytes(both.p.precision, both.p.m, both.p.n, both.p.k), 0));
    both.emulated.set(both.c);
    both.run(0, &scratch);
    const std::vector<float> usual = both.emulated.get();
    replay_graph(
        4, [&](cudaStream_t stream) { both.run(stream, with_scratch ? &scratch : NULL); },
        [&](int i) {
          both.emulated.set(both.c);
          both.on_a.set(both.a);
          if (i % 2) both.on_a.set(200, i == 1 ? NAN : 3e38f);
        },
        [&](int i) {
          both.run_strictly();
          EXPECT_SAME(both.emulated.get(), i % 2 ? both.strict.get() : usual, "replay %d", i);
          if (i % 2 == 0) EXPECT(usual != both.strict.get());
        });
    EXPECT_OK(gk_scratch_destroy(&scratch));
  }
}

/* A NaN or infinity in A reaches its row of C, and one in B its column, and nothing else. */
TEST(special_values_in_tf32) {
  for (gk_plan plan : require_plans<float, float>(GK_PRECISION_TF32)) {
    beside_strict both(GK_PRECISION_TF32);
    both.on_a.set(3 * both.p.k + 5, NAN);
    both.on_b.set(7 * both.p.n + 9, INFINITY);
    const gk_matmul_opts o = both.p.opts(plan);
    EXPECT_OK(gk_matmul_ex(both.on_a.ptr, both.on_b.ptr, both.emulated.ptr, both.p.m, both.p.n, both.p.k, &o));
    const std::vector<float> c = both.emulated.get();
    size_t wrong = 0;
    for (size_t i = 0; i < both.p.m; i++)
      for (size_t j = 0; j < both.p.n; j++) {
        const float x = c[i * both.p.n + j];
        wrong += i == 3 ? !(x != x) : j == 9 ? !(fabsf(x) > FLT_MAX) : !(fabsf(x) < 100);
      }
    EXPECT_EQ(wrong, size_t(0));
  }
}

/* --- memory --------------------------------------------------------------------------------------------------------*/

TEST(a_small_work_area_is_an_error_that_changes_nothing) {
  const std::vector<gk_plan> plans = require_plans<float, float>(GK_PRECISION_EMULATED);
  const problem p = problem_of(20, 30, 40, GK_PRECISION_EMULATED);
  device_array<float> a(data_of<float>(NORMAL, 91, p.m, p.k)), b(data_of<float>(NORMAL, 92, p.k, p.n)), c(p.size_c());
  gk_matmul_opts o = p.opts(plans[0]);
  gk_matmul_path path;
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o, &path));
  EXPECT_OK(gk_scratch_create_work(&scratch, 0, path.work_bytes - 1, 0));
  o.scratch = &scratch;
  EXPECT_ERROR(cudaErrorInvalidValue,
               ("but " + std::to_string(path.work_bytes) + " are needed: gk_matmul_work_bytes").c_str(),
               gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
  EXPECT(c.untouched());
  EXPECT_OK(gk_scratch_destroy(&scratch));
}

/* With room for one, two and all products of a batch. Products that share a work area fall back together. */
TEST(a_batch_in_parts) {
  const std::vector<gk_plan> plans = require_plans<float, float>(GK_PRECISION_EMULATED);
  problem p = problem_of(20, 30, 40, GK_PRECISION_EMULATED);
  p.batch = 5;
  const size_t size_c = p.m * p.n;
  device_array<float> a(data_of<float>(NORMAL, 91, 5 * p.m, p.k)), b(data_of<float>(NORMAL, 92, 5 * p.k, p.n));
  device_array<float> c(p.size_c());
  for (gk_plan plan : plans) {
    gk_matmul_opts o = p.opts(plan);
    gk_matmul_path path;
    a.set(data_of<float>(NORMAL, 91, 5 * p.m, p.k));
    EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o, &path));
    EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
    const std::vector<float> usual = c.get();
    a.set(2 * p.m * p.k + 7, HUGE_VALF); /* in the third product */
    EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
    const std::vector<float> strict = c.get();
    EXPECT(!std::equal(usual.begin(), usual.begin() + static_cast<std::ptrdiff_t>(size_c), strict.begin()));
    for (const size_t at_once : {size_t{1}, size_t{2}, size_t{5}}) {
      gk_scratch scratch = gk_scratch();
      EXPECT_OK(gk_scratch_create_work(&scratch, path.scratch_bytes, path.work_bytes * at_once, 0));
      o.scratch = &scratch;
      for (bool odd : {false, true}) {
        a.set(2 * p.m * p.k + 7, odd ? HUGE_VALF : data_of<float>(NORMAL, 91, 5 * p.m, p.k)[2 * p.m * p.k + 7]);
        std::vector<float> expected = usual;
        for (size_t i = 0; odd && i < 5; i++)
          if (i / at_once == 2 / at_once) std::copy_n(&strict[i * size_c], size_c, &expected[i * size_c]);
        c.clear();
        EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
        EXPECT_SAME(c.get(), expected, "%zu at once, plan %d, odd %d", at_once, static_cast<int>(plan), odd);
      }
      EXPECT_OK(gk_scratch_destroy(&scratch));
    }
  }
}

/* Whatever the part of a batch that the work area has room for, gk_matmul_plan's scratch is enough. The tile of the
 * fallback, and so its partials, would be others for one product than for three. */
TEST(a_batch_in_parts_takes_the_planned_scratch) {
  const size_t m = 332, n = 388, k = 352, batch = 3;
  device_array<float> a(std::vector<float>(batch * m * k, 1.0f)), b(std::vector<float>(batch * k * n, 1.0f)),
      c(batch * m * n);
  for (gk_plan plan : require_plans<float, float>(GK_PRECISION_EMULATED)) {
    gk_matmul_opts opts = gk_matmul_opts();
    opts.batch = batch, opts.stride_a = m * k, opts.stride_b = k * n;
    opts.precision = GK_PRECISION_EMULATED, opts.plan = plan;
    gk_matmul_path path;
    EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, m, n, k, &opts, &path));
    for (size_t at_once = 1; at_once <= batch; at_once++) {
      gk_scratch scratch = gk_scratch();
      EXPECT_OK(gk_scratch_create_work(&scratch, path.scratch_bytes, path.work_bytes * at_once, 0));
      opts.scratch = &scratch;
      EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, m, n, k, &opts));
      EXPECT_OK(gk_scratch_destroy(&scratch));
    }
  }
}

/* The strict kernel that may follow an emulated product is refused with it. */
TEST(a_fallback_without_slots_is_an_error_that_changes_nothing) {
  const std::vector<gk_plan> plans = require_plans<float, float>(GK_PRECISION_EMULATED);
  const problem p = problem_of(64, 64, 5000, GK_PRECISION_EMULATED);
  device_array<float> a(data_of<float>(NORMAL, 91, p.m, p.k)), b(data_of<float>(NORMAL, 92, p.k, p.n)), c(p.size_c());
  gk_matmul_opts o = p.opts(plans[0]);
  gk_matmul_path path;
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o, &path));
  EXPECT(path.scratch_bytes > gk_reduce_scratch_bytes());
  EXPECT_OK(gk_scratch_create_work(&scratch, path.scratch_bytes - 1, path.work_bytes, 0));
  o.scratch = &scratch;
  EXPECT_ERROR(cudaErrorInvalidValue, (" bytes, but " + std::to_string(path.scratch_bytes) + " are needed").c_str(),
               gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
  EXPECT(c.untouched());
  EXPECT_OK(gk_scratch_destroy(&scratch));
  EXPECT_OK(gk_scratch_create_work(&scratch, path.scratch_bytes, path.work_bytes, 0));
  EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
  EXPECT_OK(gk_scratch_destroy(&scratch));
}

/* The fallback may run other kernels than a strict product, which need slots where those of the product need none. An
 * infinity makes the fallback run; it gives the bits of the strict product. */
TEST(a_fallback_where_strict_products_need_no_slots) {
  const std::vector<gk_plan> plans = require_plans<float, float>(GK_PRECISION_EMULATED);
  const size_t shapes[][3] = {{132, 260, 352}, {64, 64, 640}, {250, 130, 1000}, {100, 100, 100}};
  for (const auto &s : shapes) {
    const problem p = problem_of(s[0], s[1], s[2], GK_PRECISION_EMULATED);
    std::vector<float> host = data_of<float>(NORMAL, 91, p.m, p.k);
    host[p.k] = HUGE_VALF;
    device_array<float> a(host), b(data_of<float>(NORMAL, 92, p.k, p.n)), c(p.size_c()), strict(p.size_c());
    EXPECT_OK(gk_matmul(a.ptr, b.ptr, strict.ptr, p.m, p.n, p.k));
    for (gk_plan plan : plans) {
      const gk_matmul_opts o = p.opts(plan);
      c.clear();
      EXPECT_OK(gk_matmul_ex(a.ptr, b.ptr, c.ptr, p.m, p.n, p.k, &o));
      EXPECT_SAME(c.get(), strict.get(), "%s, plan %d", p.text().c_str(), static_cast<int>(plan));
    }
  }
}

TEST(sizes_of_work_areas) {
  gk_scratch scratch = gk_scratch();
  EXPECT_ERROR(cudaErrorInvalidValue, "more than memory can address",
               gk_scratch_create_work(&scratch, 1000, static_cast<size_t>(-1), 0));
  EXPECT(scratch.ptr == NULL);
  EXPECT_EQ(gk_matmul_work_bytes(GK_PRECISION_STRICT, 1001, 1001, 1001), size_t(0));
  EXPECT_EQ(gk_matmul_work_bytes(GK_PRECISION_TF32, 100, 0, 100), size_t(0));
  EXPECT_EQ(gk_matmul_work_bytes(GK_PRECISION_TF32, size_t(1) << 33, size_t(1) << 33, size_t(1) << 33), SIZE_MAX);
  EXPECT_EQ(gk_matmul_work_bytes(GK_PRECISION_TF32, 64, 64, 64), size_t(512 + 2 * 64 * 64 * 4));
  EXPECT_EQ(gk_matmul_work_bytes(GK_PRECISION_EMULATED, 64, 64, 64), size_t(512 + 6 * 64 * 64 * 2));
}
