/* What the tests of matmul share: a problem, a product on the host with the order of additions that the library
 * documents, and calls whose results are compared bit by bit. Include it after gpukit.cuh. */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include <algorithm>
#include "data.h"
#include "hooks.h"

inline hook_matmul_gpu this_gpu() {
  hook_matmul_gpu gpu = hook_matmul_gpu();
  EXPECT_OK(hook_find_matmul_gpu(&gpu));
  return gpu;
}

/* --- problems ------------------------------------------------------------------------------------------------------*/

struct problem { /* zero is valid for every member */
  size_t m, n, k;
  int trans_a, trans_b;
  size_t pad_a, pad_b, pad_c; /* columns of padding */
  double alpha, beta;
  size_t batch, gap_a, gap_b, gap_c; /* gaps: elements between one matrix and the next */
  bool one_a, one_b;                 /* the products of the batch share A, or B */
  size_t max_blocks;
  size_t shift; /* of every matrix from an aligned address, in elements */
  gk_precision precision;

  size_t rows_a() const { return trans_a ? k : m; }
  size_t cols_a() const { return trans_a ? m : k; }
  size_t rows_b() const { return trans_b ? n : k; }
  size_t cols_b() const { return trans_b ? k : n; }
  size_t lda() const { return cols_a() + pad_a; }
  size_t ldb() const { return cols_b() + pad_b; }
  size_t ldc() const { return n + pad_c; }
  size_t batches() const { return batch ? batch : 1; }
  size_t stride_a() const { return one_a ? 0 : rows_a() * lda() + gap_a; }
  size_t stride_b() const { return one_b ? 0 : rows_b() * ldb() + gap_b; }
  size_t stride_c() const { return m * ldc() + gap_c; }
  /* Elements up to the last one: the last row has no padding. */
  size_t size(size_t rows, size_t cols, size_t ld, size_t stride) const {
    return rows && cols ? (batches() - 1) * stride + (rows - 1) * ld + cols : 0;
  }
  size_t size_a() const { return size(rows_a(), cols_a(), lda(), stride_a()); }
  size_t size_b() const { return size(rows_b(), cols_b(), ldb(), stride_b()); }
  size_t size_c() const { return size(m, n, ldc(), stride_c()); }
  size_t at_a(size_t q, size_t i, size_t l) const { return q * stride_a() + (trans_a ? l * lda() + i : i * lda() + l); }
  size_t at_b(size_t q, size_t l, size_t j) const { return q * stride_b() + (trans_b ? j * ldb() + l : l * ldb() + j); }
  size_t at_c(size_t q, size_t i, size_t j) const { return q * stride_c() + i * ldc() + j; }
  /* Sets every option, also where it is the default. alpha and beta are pointers into this problem. */
  gk_matmul_opts opts(gk_plan plan) const {
    gk_matmul_opts o = gk_matmul_opts();
    o.trans_a = trans_a, o.trans_b = trans_b, o.lda = lda(), o.ldb = ldb(), o.ldc = ldc();
    o.alpha = &alpha, o.beta = &beta;
    o.batch = batch, o.stride_a = stride_a(), o.stride_b = stride_b(), o.stride_c = stride_c();
    o.max_blocks = max_blocks, o.precision = precision, o.plan = plan;
    return o;
  }
  std::string text() const {
    char line[256];
    snprintf(line, sizeof(line),
             "%zu x %zu x %zu, trans %d %d, pad %zu %zu %zu, alpha %g, beta %g, batch %zu (one a %d, one b %d, "
             "gaps %zu %zu %zu), shift %zu",
             m, n, k, trans_a, trans_b, pad_a, pad_b, pad_c, alpha, beta, batch, one_a, one_b, gap_a, gap_b, gap_c,
             shift);
    return line;
  }
};
inline problem problem_of(size_t m, size_t n, size_t k, gk_precision precision = GK_PRECISION_DEFAULT) {
  problem p = problem();
  p.m = m, p.n = n, p.k = k, p.alpha = 1, p.precision = precision;
  return p;
}

/* --- strict products: the order of the FMAs determines every bit ---------------------------------------------------*/

template <class T> using acc_type = plain_type<T>;

/* One element of C. Each partition of k has one accumulator, and in thin products 32, which take four consecutive k
 * each in round-robin order and are then reduced by a tree. The partials are added in the order of the partitions. */
template <class Acc, class Product> Acc sum_by_order(const hook_split_k &order, size_t k, Product product) {
  Acc total = 0;
  for (unsigned s = 0; s < order.partitions; s++) {
    const size_t depth = static_cast<size_t>(order.depth), first = s * depth, end = std::min(k, first + depth);
    Acc accumulator[32] = {};
    for (size_t l = first; l < end; l++) {
      Acc &sum = accumulator[order.thin ? (l - first) / 4 % 32 : 0];
      sum = product(l, sum);
    }
    for (int offset = order.thin ? 16 : 0; offset; offset /= 2)
      for (int i = 0; i < offset; i++) accumulator[i] += accumulator[i + offset];
    total = s == 0 ? accumulator[0] : total + accumulator[0];
  }
  return total;
}

/* A functor for the epilogue. It differs between neighbours, and if it is applied twice. An FMA gives the same bits,
 * because 2 * value is exact. */
struct by_place {
  template <class Acc> __host__ __device__ Acc operator()(Acc value, size_t row, size_t col) const {
    return 2 * value + static_cast<Acc>(row) - static_cast<Acc>(col);
  }
};
/* The epilogue of a call without a functor. */
struct identity_on_host {
  template <class Acc> Acc operator()(Acc value, size_t, size_t) const { return value; }
};

template <class T, class O, class Func = identity_on_host>
void multiply_on_host(const problem &p, const std::vector<T> &a, const std::vector<T> &b, std::vector<O> &c,
                      const hook_split_k &order, const Func &func = Func()) {
  typedef acc_type<T> Acc;
  const Acc alpha = static_cast<Acc>(p.alpha), beta = static_cast<Acc>(p.beta);
  std::vector<Acc> x(p.k), y(p.k * p.n); /* y: op(B), transposed */
  for (size_t q = 0; q < p.batches(); q++) {
    for (size_t l = 0; l < p.k; l++)
      for (size_t j = 0; j < p.n; j++) y[j * p.k + l] = static_cast<Acc>(plain(b[p.at_b(q, l, j)]));
    for (size_t i = 0; i < p.m; i++) {
      for (size_t l = 0; l < p.k; l++) x[l] = plain(a[p.at_a(q, i, l)]);
      for (size_t j = 0; j < p.n; j++) {
        const Acc *const column = y.data() + j * p.k;
        O &to = c[p.at_c(q, i, j)];
        const Acc old = p.beta != 0 ? static_cast<Acc>(plain(to)) : 0;
        Acc result = beta * old; /* the result if k or alpha is 0, down to the sign of a zero */
        if (p.k > 0 && p.alpha != 0) {
          result =
              alpha * sum_by_order<Acc>(order, p.k, [&](size_t l, Acc sum) { return std::fma(x[l], column[l], sum); });
          if (p.beta != 0) result = std::fma(beta, old, result);
        }
        to = make<O>(static_cast<double>(func(result, i, j)));
      }
    }
  }
}

template <class T, class O>
void multiply_on_host(const problem &p, const std::vector<T> &a, const std::vector<T> &b, std::vector<O> &c) {
  multiply_on_host(p, a, b, c, hook_plan_split_k<acc_type<T>>(p.m, p.n, p.k));
}

template <class T, class O>
void check_elements(const problem &p, const std::vector<T> &a, const std::vector<T> &b,
                    std::initializer_list<gk_plan> plans) {
  /* If beta is 0, C is not read, so its elements begin as NaN. What lies between the rows must not change. */
  std::vector<O> before = random_elements<O>(13, p.size_c());
  if (p.beta == 0)
    for (size_t q = 0; q < p.batches(); q++)
      for (size_t i = 0; i < p.m; i++)
        for (size_t j = 0; j < p.n; j++) before[p.at_c(q, i, j)] = make<O>(NAN);
  std::vector<O> expected(before);
  multiply_on_host(p, a, b, expected);
  device_array<T> device_a(a, p.shift), device_b(b, p.shift);
  device_array<O> device_c(before, p.shift);
  gk_matmul_opts opts = gk_matmul_opts();
  opts.trans_a = p.trans_a, opts.trans_b = p.trans_b;
  opts.lda = p.pad_a ? p.lda() : 0, opts.ldb = p.pad_b ? p.ldb() : 0, opts.ldc = p.pad_c ? p.ldc() : 0;
  if (p.alpha != 1) opts.alpha = &p.alpha;
  if (p.beta != 0) opts.beta = &p.beta;
  opts.batch = p.batch;
  opts.stride_a = p.stride_a(), opts.stride_b = p.stride_b(), opts.stride_c = p.gap_c ? p.stride_c() : 0;
  opts.max_blocks = p.max_blocks;
  opts.precision = GK_PRECISION_STRICT; /* which floats are anyway */
  for (gk_plan plan : plans) {
    if (on_cpu && hook_is_hopper_plan(plan)) continue; /* it would run as another plan */
    opts.plan = plan;
    device_c.set(before);
    EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, device_c.ptr, p.m, p.n, p.k, &opts));
    EXPECT_SAME(device_c.get(), expected, "plan %d, %s", static_cast<int>(plan), p.text().c_str());
  }
}

template <class T, class O> void check(const problem &p, std::initializer_list<gk_plan> plans) {
  if (test_leaves_out<std::pair<T, O>>()) return;
  check_elements<T, O>(p, random_elements<T>(11, p.size_a()), random_elements<T>(12, p.size_b()), plans);
}

template <class T, class O> void check_all_plans(const problem &p) {
  check<T, O>(p, {GK_PLAN_AUTO, HOOK_PLAN_TILE_32, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128, HOOK_PLAN_TILE_32_64,
                  HOOK_PLAN_HOPPER_128, HOOK_PLAN_HOPPER_64_128, HOOK_PLAN_HOPPER_128_64, HOOK_PLAN_HOPPER_64,
                  HOOK_PLAN_HOPPER_32_64});
}

/* Random sizes and options; the same number always gives the same problem. */
inline problem random_problem(uint64_t number, int largest) {
  const size_t edges[] = {0, 1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  uint64_t draws = 1000 * number;
  const auto draw = [&](int low, int high) { return static_cast<size_t>(uniform(14, draws++, low, high)); };
  const auto size = [&] { return draw(0, 2) ? draw(1, largest) : edges[draw(0, 17)]; };
  const double factors[] = {1, 1, -0.5, 2.25, 0};
  problem p = problem();
  p.m = size(), p.n = size(), p.k = size();
  p.trans_a = static_cast<int>(draw(0, 1)), p.trans_b = static_cast<int>(draw(0, 1));
  p.pad_a = draw(0, 2) * draw(0, 4), p.pad_b = draw(0, 2) * draw(0, 4), p.pad_c = draw(0, 2) * draw(0, 4);
  p.alpha = factors[draw(0, 4)];
  p.beta = draw(0, 1) ? factors[draw(0, 4)] : 0;
  p.batch = draw(0, 3) ? 0 : draw(1, 4);
  p.one_a = draw(0, 3) == 0, p.one_b = draw(0, 3) == 0;
  p.gap_c = draw(0, 3) ? 0 : draw(1, 9);
  p.shift = draw(0, 1) * draw(0, 15);
  p.gap_a = draw(0, 1) * draw(0, 9), p.gap_b = draw(0, 1) * draw(0, 9);
  return p;
}

template <class T, class O> void check_random(uint64_t first, uint64_t count) {
  for (uint64_t i = first; i < first + count; i++) check_all_plans<T, O>(random_problem(i, 200));
}

/* --- products on tensor cores: small integers, whose sums are exact in any order -----------------------------------*/

/* The same for tensor cores, with factors that keep the sums exact. */
inline problem random_tensor_problem(uint64_t number, gk_precision precision, int largest) {
  uint64_t draws = 1000 * number;
  const auto draw = [&](int low, int high) { return static_cast<size_t>(uniform(54, draws++, low, high)); };
  const double factors[] = {1, 1, -0.5, 2};
  problem p = problem_of(draw(1, largest), draw(1, largest), draw(0, largest), precision);
  p.trans_a = static_cast<int>(draw(0, 1)), p.trans_b = static_cast<int>(draw(0, 1));
  if (draw(0, 3) == 0) p.m = 64, p.n = 72, p.k = 40; /* aligned, so that nothing is copied */
  if (draw(0, 1)) p.pad_a = draw(0, 9), p.pad_b = draw(0, 9), p.pad_c = draw(0, 3);
  p.shift = draw(0, 1) * draw(0, 9);
  p.alpha = factors[draw(0, 3)], p.beta = draw(0, 1) ? factors[draw(0, 3)] : 0;
  p.batch = draw(0, 2) ? 1 : draw(1, 3);
  p.one_a = draw(0, 1), p.one_b = draw(0, 1);
  p.gap_a = draw(0, 1) * draw(0, 9), p.gap_b = draw(0, 1) * draw(0, 9);
  return p;
}

/* The plans of tensor cores that this GPU and this binary support. */
template <class T, class O> std::vector<gk_plan> plans_of(gk_precision precision) {
  std::vector<gk_plan> plans;
  gk_matmul_path path;
  for (gk_plan plan : {GK_PLAN_MMA, GK_PLAN_WGMMA}) {
    gk_matmul_opts o = gk_matmul_opts();
    o.precision = precision, o.plan = plan;
    T *const a = reinterpret_cast<T *>(256);
    if (gk_matmul_plan(a, a, reinterpret_cast<O *>(512), 64, 64, 64, &o, &path) == cudaSuccess) plans.push_back(plan);
  }
  return plans;
}

template <class T, class O> bool has_plan(gk_precision precision, gk_plan plan) {
  const std::vector<gk_plan> plans = plans_of<T, O>(precision);
  return std::find(plans.begin(), plans.end(), plan) != plans.end();
}

/* The same, for tests that check nothing without one: these are skipped. */
template <class T, class O> std::vector<gk_plan> require_plans(gk_precision precision) {
  const std::vector<gk_plan> plans = plans_of<T, O>(precision);
  if (plans.empty()) SKIP("this GPU has no tensor cores for the type");
  return plans;
}

/* Memory between the rows of A and B begins as NaN, and so does a C that must not be read. */
template <class T> std::vector<T> not_numbers(size_t n) { return std::vector<T>(n, make<T>(NAN)); }

template <class T, class O> void check_exactly(const problem &p) {
  std::vector<T> a = not_numbers<T>(p.size_a()), b = not_numbers<T>(p.size_b());
  const int largest = sizeof(O) == 2 ? 1 : 3;
  for (size_t q = 0; q < p.batches(); q++) {
    for (size_t l = 0; l < p.k; l++) {
      for (size_t i = 0; i < p.m; i++) a[p.at_a(q, i, l)] = make<T>(uniform(61, p.at_a(q, i, l), -largest, largest));
      for (size_t j = 0; j < p.n; j++) b[p.at_b(q, l, j)] = make<T>(uniform(62, p.at_b(q, l, j), -largest, largest));
    }
  }
  std::vector<O> before = not_numbers<O>(p.size_c());
  std::vector<O> expected(before);
  for (size_t q = 0; q < p.batches(); q++)
    for (size_t i = 0; i < p.m; i++)
      for (size_t j = 0; j < p.n; j++) {
        float sum = 0;
        for (size_t l = 0; l < p.k; l++)
          sum += static_cast<float>(plain(a[p.at_a(q, i, l)])) * static_cast<float>(plain(b[p.at_b(q, l, j)]));
        sum *= static_cast<float>(p.alpha);
        if (p.beta != 0) {
          const int old = uniform(63, p.at_c(q, i, j), -8, 8);
          before[p.at_c(q, i, j)] = make<O>(old);
          sum += static_cast<float>(p.beta) * static_cast<float>(old);
        }
        expected[p.at_c(q, i, j)] = make<O>(static_cast<double>(sum));
      }
  device_array<T> device_a(a, p.shift), device_b(b, p.shift);
  device_array<O> c(p.size_c(), p.shift);
  std::vector<gk_plan> plans = plans_of<T, O>(p.precision);
  plans.push_back(GK_PLAN_AUTO); /* small products have a kernel of their own, and tf32 some in code for sm_90a */
  for (gk_plan plan : plans) {
    const gk_matmul_opts o = p.opts(plan);
    c.set(before);
    EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, c.ptr, p.m, p.n, p.k, &o));
    EXPECT_SAME(c.get(), expected, "plan %d, %s", static_cast<int>(plan), p.text().c_str());
  }
}

template <class T, class O> void check_randomly(uint64_t first, uint64_t count, gk_precision precision, int largest) {
  require_plans<T, O>(precision);
  for (uint64_t i = first; i < first + (test_slowed() ? count / 5 : count); i++)
    check_exactly<T, O>(random_tensor_problem(i, precision, largest));
}

/* --- accuracy ------------------------------------------------------------------------------------------------------*/

enum data { NORMAL, UNIFORM, SCALED, CANCELLING };

inline float from_bits(unsigned bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

inline unsigned bits_of(float x) {
  unsigned bits;
  memcpy(&bits, &x, 4);
  return bits;
}

/* Moves a float off the midpoint of two TF32 values, where rounding depends on the target: away from zero before sm_90,
 * to even from sm_90 on. */
template <class T> T without_tie(T x) { return x; }
inline float without_tie(float x) { return (bits_of(x) & 0x1fffu) == 0x1000u ? from_bits(bits_of(x) + 1) : x; }

template <class T> std::vector<T> data_of(data which, uint64_t seed, size_t rows, size_t cols) {
  std::vector<T> x(rows * cols);
  for (size_t i = 0; i < x.size(); i++) {
    const double g = gauss(seed, i);
    if (which == NORMAL) x[i] = make<T>(g);
    if (which == UNIFORM) x[i] = make<T>(static_cast<double>(uniform(seed, i, 1, 1 << 24)) * 0x1p-24);
    if (which == SCALED) x[i] = make<T>((g < 0 ? g - 1 : g + 1) * ldexp(1, uniform(seed + 9, i, -50, 50)));
    if (which == CANCELLING)
      x[i] = make<T>(i % 2 && seed % 2 ? -static_cast<double>(plain(x[i - 1])) : seed % 2 ? g : 1 + g * 0x1p-12);
    x[i] = without_tie(x[i]);
  }
  return x;
}

/* What TF32 keeps of a float, by arithmetic rather than by bits as the library has it. */
inline float to_11_bits(float x) {
  int exponent;
  const double fraction = static_cast<double>(frexpf(x, &exponent));
  return static_cast<float>(ldexp(nearbyint(ldexp(fraction, 11)), -11)) * static_cast<float>(ldexp(1, exponent));
}

/* The largest |error| / (|A| |B|) of a product, in units of 2^-24, against double. */
template <class T>
double worst_error(const problem &p, const std::vector<T> &a, const std::vector<T> &b, gk_plan plan) {
  device_array<T> device_a(a), device_b(b);
  device_array<float> c(p.size_c());
  const gk_matmul_opts o = p.opts(plan);
  EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, c.ptr, p.m, p.n, p.k, &o));
  const std::vector<float> got = c.get();
  double worst = 0;
  for (size_t i = 0; i < p.m; i++)
    for (size_t j = 0; j < p.n; j++) {
      double sum = 0, size = 0;
      for (size_t l = 0; l < p.k; l++) {
        float x = static_cast<float>(plain(a[p.at_a(0, i, l)])), y = static_cast<float>(plain(b[p.at_b(0, l, j)]));
        if (p.precision == GK_PRECISION_TF32) x = to_11_bits(x), y = to_11_bits(y);
        sum += static_cast<double>(x) * static_cast<double>(y);
        size += fabs(static_cast<double>(x) * static_cast<double>(y));
      }
      const double error = fabs(static_cast<double>(got[p.at_c(0, i, j)]) - sum) / (size > 0 ? size : 1);
      if (!(error <= worst)) worst = error < HUGE_VAL ? error : HUGE_VAL; /* which also keeps a NaN */
    }
  return worst * 0x1p24;
}

/* The error bounds that gk_matmul_ex documents. */
inline double bound_of(gk_precision precision, size_t k) {
  return precision == GK_PRECISION_EMULATED ? static_cast<double>(k) / 32 + 16 : static_cast<double>(k) + 8;
}

#endif
