/* Split-K: partitions of k, the reduction of their partials, the scratch that holds these, and the functor of the
 * epilogue, which is applied to the reduced sum. */
#include "once.h"

#include "hooks.h"
#include "products.h"

/* Where the partials begin in a scratch. */
static const size_t partials_begin = HOOK_STATE_BYTES + HOOK_REDUCE_BYTES;

/* A product whose k is split. It can be run repeatedly, with any scratch or none. */
struct split_product {
  problem p;
  std::vector<float> a, b, expected;
  explicit split_product(size_t m = 40, size_t n = 50, size_t k = 900, size_t batch = 3) : p(problem_of(m, n, k)) {
    p.batch = batch;
    a = random_elements<float>(31, batch * m * k), b = random_elements<float>(32, batch * k * n);
    expected.resize(batch * m * n);
    multiply_on_host(p, a, b, expected);
    EXPECT(hook_plan_split_k<float>(m, n, k).partitions > 1);
  }
  /* Of a scratch that serves one product of the batch at a time. */
  size_t scratch_bytes() const {
    float *const any = reinterpret_cast<float *>(256), *const out = reinterpret_cast<float *>(512);
    gk_matmul_opts opts = gk_matmul_opts();
    gk_matmul_path path;
    opts.plan = HOOK_PLAN_TILE_64_128;
    EXPECT_OK(gk_matmul_plan(any, any, out, p.m, p.n, p.k, &opts, &path));
    EXPECT(path.scratch_bytes > gk_reduce_scratch_bytes());
    return path.scratch_bytes;
  }
  void run(gk_scratch *scratch, gk_plan plan = HOOK_PLAN_TILE_64_128) const {
    device_array<float> device_a(a), device_b(b), c(expected.size());
    gk_matmul_opts opts = gk_matmul_opts();
    opts.batch = p.batch, opts.stride_a = p.stride_a(), opts.stride_b = p.stride_b();
    opts.scratch = scratch, opts.plan = plan;
    EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, c.ptr, p.m, p.n, p.k, &opts));
    EXPECT_SAME(c.get(), expected, "plan %d", static_cast<int>(plan));
  }
};

TEST(partials_in_any_scratch) {
  const split_product tiles, thin(3, 40, 3000);
  const size_t one = tiles.scratch_bytes(), of_thin = thin.scratch_bytes();
  test_scratch just_one(one), larger(4 * (one > of_thin ? one : of_thin));
  tiles.run(NULL);
  thin.run(NULL);
  tiles.run(&just_one); /* the products of the batch one after the other */
  tiles.run(&larger);
  thin.run(&larger);
  for (gk_plan plan :
       {HOOK_PLAN_TILE_32, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128, HOOK_PLAN_TILE_32_64, HOOK_PLAN_HOPPER_128,
        HOOK_PLAN_HOPPER_64_128, HOOK_PLAN_HOPPER_128_64, HOOK_PLAN_HOPPER_64, HOOK_PLAN_HOPPER_32_64})
    tiles.run(&just_one, plan);
}

/* One size of scratch serves every product on any GPU: all partials fit, or tiles are computed some at a time. */
TEST(partials_fit_a_scratch_of_one_size) {
  EXPECT_EQ(gk_matmul_scratch_bytes(), partials_begin + HOOK_PARTIALS_BYTES);
  EXPECT(gk_matmul_scratch_bytes() <= (size_t(64) << 20) + (size_t(33) << 10)); /* as the header says */
  for (uint64_t i = 0; i < 3000; i++) {
    const auto size = [&](uint64_t of) {
      return static_cast<size_t>(std::exp2(uniform(55, 10 * i + of, 0, i % 2 ? 1300 : 2200) / 100.0));
    };
    const size_t m = size(0), n = size(1), k = size(2);
    const hook_split_k single = hook_plan_split_k<float>(m, n, k), twice = hook_plan_split_k<double>(m, n, k);
    for (const hook_split_k &order : {single, twice}) {
      const size_t depth = static_cast<size_t>(order.depth), quantum = order.thin ? 128 : 16;
      EXPECT(order.partitions >= 1 && depth % quantum == 0);
      EXPECT(depth * order.partitions >= k && depth * (order.partitions - 1) < k); /* none is empty */
    }
    EXPECT(single.thin || hook_partials_fit<float>(m, n, single.partitions));
    EXPECT(twice.thin || hook_partials_fit<double>(m, n, twice.partitions));
  }
}

/* k past 2^30 has so many partitions that the tiles may have to be computed some at a time. */
template <class T> static void plan_very_long_k() {
  T *const a = reinterpret_cast<T *>(256), *const c = reinterpret_cast<T *>(512);
  for (size_t edge : {size_t(4), size_t(100), size_t(5000)})
    for (size_t k : {(size_t(1) << 30) + 1, size_t(3) << 30, size_t(1) << 34})
      for (size_t max_blocks : {size_t(0), size_t(1), size_t(7)}) {
        gk_matmul_opts opts = gk_matmul_opts();
        gk_matmul_path path;
        opts.max_blocks = max_blocks;
        const hook_split_k order = hook_plan_split_k<T>(edge, edge + 1, k);
        EXPECT(order.partitions >= gk_ceil_div(k, size_t(1) << 30) && order.depth > 0);
        EXPECT(order.partitions * static_cast<size_t>(order.depth) >= k);
        EXPECT_OK(gk_matmul_plan(a, a, c, edge, edge + 1, k, &opts, &path));
        EXPECT(path.scratch_bytes <= gk_matmul_scratch_bytes());
        EXPECT(path.scratch_bytes == 0 || path.scratch_bytes > gk_reduce_scratch_bytes());
        if (k == size_t(1) << 34) EXPECT(path.scratch_bytes > 0); /* more partitions than a block has groups */
      }
}

TEST(partials_of_very_long_k) {
  plan_very_long_k<float>();
  plan_very_long_k<double>();
}

static identity_on_host on_host(hook_identity) { return identity_on_host(); }
static by_place on_host(by_place func) { return func; }

/* A product by a given split, or by the planner's, with a functor in its epilogue. */
template <class T, class O, class Func> struct product_by_order {
  typedef acc_type<T> Acc;
  problem p;
  hook_split_k order;
  std::vector<O> before, expected;
  device_array<T> a, b;
  device_array<O> c;
  hook_matmul_args<T, O, Acc, Func> args;
  explicit product_by_order(const problem &of) : product_by_order(of, hook_plan_split_k<Acc>(of.m, of.n, of.k)) {}
  product_by_order(const problem &of, const hook_split_k &split)
      : p(of), order(split), before(random_elements<O>(13, p.size_c())), expected(before),
        a(random_elements<T>(11, p.size_a()), p.shift), b(random_elements<T>(12, p.size_b()), p.shift),
        c(before, p.shift), args() {
    multiply_on_host(p, a.get(), b.get(), expected, order, on_host(Func()));
    args.a = a.ptr, args.b = b.ptr, args.c = c.ptr, args.m = p.m, args.n = p.n, args.k = p.k;
    args.lda = p.lda(), args.ldb = p.ldb(), args.ldc = p.ldc();
    args.stride_a = p.stride_a(), args.stride_b = p.stride_b(), args.stride_c = p.stride_c();
    args.batch = p.batches(), args.trans_a = p.trans_a != 0, args.trans_b = p.trans_b != 0;
    args.alpha = static_cast<Acc>(p.alpha), args.beta = static_cast<Acc>(p.beta);
  }
  size_t partial_bytes() const {
    hook_matmul_args<T, O, Acc, Func> with_split = args;
    with_split.partitions = order.partitions;
    return with_split.partial_bytes();
  }
  /* The fewest bytes of a scratch for it. */
  size_t least_bytes(gk_plan plan, size_t max_blocks) {
    hook_product_call call(NULL, 0, this_gpu());
    args.max_blocks = max_blocks;
    EXPECT_OK(hook_measure_partials(args, order, plan, &call));
    return call.least;
  }
  cudaError_t launch(gk_plan plan, const gk_scratch *scratch, size_t max_blocks) {
    args.max_blocks = max_blocks;
    hook_product_call call(scratch, 0, this_gpu());
    return call.end(hook_enqueue_strict(args, order, plan, &call));
  }
  void check(gk_plan plan, const gk_scratch *scratch = NULL, size_t max_blocks = 0) {
    if ((on_cpu && hook_is_hopper_plan(plan)) || test_leaves_out<product_by_order>()) return;
    c.set(before);
    EXPECT_OK(launch(plan, scratch, max_blocks));
    EXPECT_SAME(c.get(), expected, "%u partitions, plan %d, %s scratch, max_blocks %zu, %s", order.partitions,
                static_cast<int>(plan), scratch ? "a" : "no", max_blocks, p.text().c_str());
  }
  /* With a caller's scratch that has room for this many products, and slots that other calls have used. */
  void check_scratch(gk_plan plan, size_t products, size_t max_blocks = 0) {
    const size_t bytes = products * partial_bytes();
    if (bytes == 0) return;
    test_scratch scratch(partials_begin + bytes);
    scratch.set_epochs(5);
    check(plan, &scratch, max_blocks);
    EXPECT_EQ(scratch.bytes_not_zero(partials_begin, bytes), size_t(0));
    EXPECT_EQ(scratch.scan_epochs(), 5u);
    EXPECT_EQ(scratch.reduce_epochs(), 5u);
  }
  /* A byte less than it needs is refused before anything is written. */
  void check_refusal(gk_plan plan, size_t max_blocks) {
    const size_t least = least_bytes(plan, max_blocks);
    if (least == 0) return; /* reduced inside of blocks */
    test_scratch scratch(partials_begin + least);
    c.set(before);
    scratch.bytes--;
    EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul: the scratch has", launch(plan, &scratch, max_blocks));
    EXPECT_SAME(c.get(), before, "refused");
    scratch.bytes++;
    check(plan, &scratch, max_blocks);
    EXPECT_EQ(scratch.bytes_not_zero(partials_begin, least), size_t(0));
  }
  void check_all(gk_plan plan) {
    check(plan);
    check_scratch(plan, 1);
    if (p.batches() > 2) check_scratch(plan, 2);
    check_scratch(plan, p.batches(), 7);
    check(plan, NULL, 1);
    check_refusal(plan, order.partitions % 2 ? 0 : 7);
  }
};

static const unsigned partition_counts[] = {2, 3, 9, 17};

/* The kernels of tiles, also with odd rows of C and of the partials. The last partition is shorter. */
template <class T, class O, class Func>
static void check_split_tiles(size_t m, size_t n, std::initializer_list<gk_plan> plans) {
  for (int i = 0; i < 4; i++) {
    const unsigned partitions = partition_counts[i];
    problem p = problem_of(m, n + static_cast<size_t>(i % 2), 16 * partitions - (i == 2 ? 0 : 5));
    p.trans_a = i & 1, p.trans_b = i >> 1, p.alpha = -0.5, p.beta = i == 1 ? 0 : 2.25;
    p.batch = i == 3 ? 0 : 3, p.one_b = i == 2, p.pad_c = static_cast<size_t>(i), p.gap_c = i == 1 ? 5 : 0;
    product_by_order<T, O, Func> product(p, {0, partitions, 16});
    for (gk_plan plan : plans) product.check_all(plan);
  }
}

TEST(split_tiles_of_floats) {
  check_split_tiles<float, float, hook_identity>(
      69, 134, {HOOK_PLAN_TILE_64_128, HOOK_PLAN_HOPPER_128, HOOK_PLAN_HOPPER_64_128, HOOK_PLAN_HOPPER_128_64});
  check_split_tiles<float, float, by_place>(
      41, 66, {GK_PLAN_AUTO, HOOK_PLAN_TILE_32, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128, HOOK_PLAN_HOPPER_128});
}

TEST(split_tiles_of_doubles) {
  check_split_tiles<double, double, by_place>(35, 66,
                                              {HOOK_PLAN_TILE_32_64, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128,
                                               HOOK_PLAN_HOPPER_32_64, HOOK_PLAN_HOPPER_64, HOOK_PLAN_HOPPER_64_128});
}

/* With many tiles for each multiprocessor, here one, a block computes all partitions of a tile. */
template <class T, class O, class Func> static void check_in_turn(size_t m, size_t n, size_t k, unsigned depth) {
  for (int i = 0; i < 4; i++) {
    problem p = problem_of(m, n, k);
    p.trans_a = i & 1, p.trans_b = i >> 1, p.batch = 16, p.alpha = i ? -0.5 : 1, p.beta = i == 2 ? 0.5 : 0;
    p.pad_a = i, p.pad_c = i == 3 ? 5 : 0, p.shift = i == 1 ? 1 : 0;
    const unsigned partitions = static_cast<unsigned>(gk_ceil_div(k, static_cast<size_t>(depth)));
    product_by_order<T, O, Func> product(p, {false, partitions, static_cast<int>(depth)});
    hook_matmul_gpu gpu = this_gpu();
    gpu.sms = 1;
    hook_plan_query query = {m,    n,     k,     p.batch, product.order, GK_PLAN_AUTO, gpu.sms, HOOK_ANY_CODE,
                             true, false, 232448};
    EXPECT(hook_plan_tile<acc_type<T>>(query).in_turn);
    query.can_turn = false;
    EXPECT(!hook_plan_tile<acc_type<T>>(query).in_turn);
    query.can_turn = true, query.smem_limit = 101376; /* too little for two blocks with their sums */
    EXPECT(!hook_plan_tile<acc_type<T>>(query).in_turn);
    for (int has_smem = 1; has_smem >= 0; has_smem--) { /* without, by blocks or groups */
      if (!has_smem) gpu.smem_limit = 32000;
      hook_product_call call(NULL, 0, gpu);
      product.c.set(product.before);
      EXPECT_OK(call.end(hook_enqueue_strict(product.args, product.order, GK_PLAN_AUTO, &call)));
      EXPECT_SAME(product.c.get(), product.expected, "%u partitions, %d, %s", partitions, has_smem, p.text().c_str());
    }
    typedef hook_tiles<acc_type<T>> tiles;
    typedef hook_hopper_path<decltype(product.args)> hopper_path;
    product.args.partitions = product.order.partitions, product.args.depth = product.order.depth;
    for (int t = 0; t < tiles::item_count; t++) { /* each of Hopper's, whichever is chosen */
      const auto turn = tiles::facts(t).turn;
      if (!turn.hopper || turn.hopper > hopper_path::hopper(product.args, this_gpu())) continue;
      hook_product_call call(NULL, 0, gpu);
      product.c.set(product.before);
      const hook_tile_choice choice = {tiles::facts(t), 0, true};
      EXPECT_OK(call.end(hopper_path::run(product.args, choice, &call)));
      EXPECT_SAME(product.c.get(), product.expected, "%u partitions, kernel %d, %s", partitions, t, p.text().c_str());
    }
  }
}
TEST(partitions_in_turn) {
  check_in_turn<float, float, by_place>(70, 140, 150, 48);
  check_in_turn<float, float, hook_identity>(64, 128, 64, 32);
  check_in_turn<double, double, by_place>(40, 70, 90, 16);
  check_in_turn<double, double, hook_identity>(65, 128, 200, 48);
}

TEST(split_tiles_of_halves) {
  check_split_tiles<__half, __half, hook_identity>(33, 65, {HOOK_PLAN_TILE_32, HOOK_PLAN_TILE_64_128});
}

/* Thin products of few rows, and of few columns. */
template <class T, class O, class Func> static void check_split_thin() {
  for (int i = 0; i < 8; i++) {
    const unsigned partitions = partition_counts[i / 2];
    const size_t few = 1 + static_cast<size_t>(i) % 4, many = partitions > 9 ? 37 : 101;
    problem p = i % 2 ? problem_of(few, many, 128 * partitions - 37) : problem_of(many, few, 128 * partitions - 37);
    p.trans_a = i / 2 % 2, p.trans_b = i / 4, p.alpha = -0.5, p.beta = i % 3 ? 0 : 2.25;
    p.batch = partitions > 9 ? 0 : 3, p.pad_c = i % 3 == 2 ? 2 : 0;
    product_by_order<T, O, Func> product(p, {1, partitions, 128});
    product.check_all(GK_PLAN_AUTO);
  }
}

TEST(split_thin_products_of_floats) { check_split_thin<float, float, by_place>(); }
TEST(split_thin_products_of_doubles) { check_split_thin<double, double, by_place>(); }
TEST(split_thin_products_of_halves) { check_split_thin<__half, __half, hook_identity>(); }

/* The functor is applied once, with rows and columns of all of C, by every kernel whose k is not split; and where the
 * planner splits it. */
template <class T> static void check_functor(const problem &p, std::initializer_list<gk_plan> plans) {
  product_by_order<T, T, by_place> product(p);
  for (gk_plan plan : plans)
    for (size_t max_blocks : {0u, 1u, 7u}) product.check(plan, NULL, max_blocks);
}

TEST(functor_of_the_epilogue) {
  const hook_split_k whole = {0, 1, 48};
  EXPECT(hook_plan_split_k<float>(141, 67, 40) == whole);
  for (int i = 0; i < 4; i++) { /* the kernel of small products where neither operand is transposed */
    problem p = problem_of(141, i % 2 ? 67 : 68, 40);
    p.trans_a = i & 1, p.trans_b = i >> 1, p.alpha = -0.5, p.beta = i ? 0.5 : 0, p.batch = i == 3 ? 2 : 0;
    check_functor<float>(p, {GK_PLAN_AUTO, HOOK_PLAN_TILE_32, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128,
                             HOOK_PLAN_HOPPER_128, HOOK_PLAN_HOPPER_64_128, HOOK_PLAN_HOPPER_128_64,
                             HOOK_PLAN_HOPPER_64, HOOK_PLAN_HOPPER_32_64});
    check_functor<double>(p, {HOOK_PLAN_TILE_32_64, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128, HOOK_PLAN_HOPPER_32_64,
                              HOOK_PLAN_HOPPER_64, HOOK_PLAN_HOPPER_64_128});
  }
  problem p = problem_of(128, 60, 24); /* a batch for warps */
  p.batch = 11, p.beta = 0.5;
  check_functor<float>(p, {GK_PLAN_AUTO, HOOK_PLAN_TILE_64});
  p.n = 128, p.beta = 0; /* of whole tiles */
  check_functor<float>(p, {GK_PLAN_AUTO});
  for (size_t k : {130u, 1500u}) {
    p = problem_of(3, 150, k);
    check_functor<float>(p, {GK_PLAN_AUTO});
    p = problem_of(150, 2, k);
    p.beta = 0.5;
    check_functor<double>(p, {GK_PLAN_AUTO});
  }
  p = problem_of(40, 50, 900);
  check_functor<float>(p, {GK_PLAN_AUTO, HOOK_PLAN_TILE_64});
  p = problem_of(5, 6, 0); /* what it is applied to is beta C */
  p.beta = 0.5;
  check_functor<float>(p, {GK_PLAN_AUTO});
}

/* A product that is cut in two has the bits of the whole, and the functor sees the rows and columns of C. */
template <class T> static void check_parts(size_t part_m, size_t part_n, int trans) {
  problem p = problem_of(100, 90, 300);
  p.trans_a = trans & 1, p.trans_b = trans >> 1, p.pad_a = 1, p.pad_c = 3, p.alpha = -0.5, p.beta = 0.5, p.shift = 1;
  product_by_order<T, T, by_place> product(p);
  hook_cut_plan<hook_tile_choice> parts(p.m, p.n);
  parts.m = part_m, parts.n = part_n;
  EXPECT(product.order.partitions > 1 && parts.is_cut());
  EXPECT_OK(parts.run(product.args, [&](const decltype(product.args) &part, const hook_tile_choice &) {
    hook_product_call call(NULL, 0, this_gpu());
    return call.end(hook_enqueue_strict(part, product.order, GK_PLAN_AUTO, &call));
  }));
  EXPECT_SAME(product.c.get(), product.expected, "first part %zu x %zu, trans %d", part_m, part_n, trans);
}
TEST(parts_have_the_bits_of_the_whole) {
  for (int trans = 0; trans < 4; trans++) {
    check_parts<float>(64, 90, trans);
    check_parts<float>(100, 32, trans);
    check_parts<double>(trans % 2 ? 96 : 100, trans % 2 ? 90 : 64, trans);
  }
}

/* Partials are added in the order of the partitions, -0 included. Those in a caller's scratch are cleared, those in
 * temporary memory stay. The padding of their rows is not read. */
TEST(partials_are_reduced_in_their_order) {
  const size_t m = 5, n = 7, ld = hook_partial_ld(n), batch = 2;
  EXPECT_EQ(ld, size_t(8));
  EXPECT_EQ(hook_partial_ld(size_t(8)), size_t(8));
  for (unsigned partitions : {1u, 2u, 3u, 7u, 8u, 9u, 16u, 17u, 32u, 33u})
    for (bool clears : {false, true}) {
      std::vector<float> host = random_elements<float>(17, batch * partitions * m * ld);
      std::vector<float> expected(batch * m * n, -0.0f);
      for (size_t i = 0; i < host.size(); i++) {
        if (i % ld >= n) host[i] = NAN;
        if (i % (m * ld) == 0) host[i] = -0.0f;
      }
      for (size_t q = 0; q < batch; q++)
        for (size_t i = 0; i < m * n; i++)
          for (size_t s = 0; s < partitions; s++) {
            const float x = host[((q * partitions + s) * m + i / n) * ld + i % n];
            float &sum = expected[q * m * n + i];
            sum = s == 0 ? x : sum + x;
          }
      device_array<float> partials(host), c(batch * m * n);
      hook_matmul_output<float, float, hook_identity> output((hook_identity()));
      output.c = c.ptr, output.m = m, output.n = output.ldc = n, output.stride_c = m * n, output.batch = batch;
      output.alpha = 1, output.partitions = partitions, output.partials = partials.ptr;
      output.max_blocks = partitions % 2;
      gk_scratch scratch = gk_scratch();
      EXPECT_OK(hook_reduce_partials(output, hook_product_call(clears ? &scratch : NULL, 0)));
      EXPECT_SAME(c.get(), expected, "%u partitions", partitions);
      EXPECT_SAME(partials.get(), clears ? std::vector<float>(host.size(), 0.0f) : host, "partials");
    }
}

TEST(a_small_scratch_is_an_error_that_changes_nothing) {
  device_array<float> a(std::vector<float>(40 * 900, 1.0f)), b(std::vector<float>(900 * 50, 1.0f)), c(40 * 50);
  test_scratch scratch(gk_reduce_scratch_bytes() + 1000);
  gk_matmul_opts opts = gk_matmul_opts();
  gk_matmul_path path;
  opts.scratch = &scratch, opts.plan = HOOK_PLAN_TILE_64_128;
  EXPECT_OK(gk_matmul_plan(a.ptr, b.ptr, c.ptr, 40, 50, 900, &opts, &path));
  EXPECT_ERROR(cudaErrorInvalidValue,
               ("the scratch has " + std::to_string(scratch.bytes) + " bytes, but " +
                std::to_string(path.scratch_bytes) + " are needed")
                   .c_str(),
               gk_matmul_ex(a.ptr, b.ptr, c.ptr, 40, 50, 900, &opts));
  EXPECT(c.untouched());
}

TEST(a_scratch_off_its_alignment_or_empty) {
  device_array<float> x(std::vector<float>(64, 1.0f)), c(64);
  test_scratch whole(gk_reduce_scratch_bytes() + 64);
  gk_matmul_opts opts = gk_matmul_opts();
  for (const size_t offset : {size_t(4), size_t(16)}) {
    gk_scratch askew = whole;
    askew.ptr = static_cast<char *>(askew.ptr) + offset, askew.bytes -= 64;
    opts.scratch = &askew;
    EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul: the scratch's memory is not aligned to 32 bytes",
                 gk_matmul_ex(x.ptr, x.ptr, c.ptr, 8, 8, 8, &opts));
    EXPECT_ERROR(cudaErrorInvalidValue, "gk_reduce: the scratch's memory is not aligned to 32 bytes",
                 gk_reduce_sum(x.ptr, c.ptr, 64, 0, &askew));
    EXPECT_ERROR(cudaErrorInvalidValue, "gk_scan_inclusive: the scratch's memory is not aligned to 32 bytes",
                 gk_scan_inclusive(x.ptr, c.ptr, 64, gk_op_sum(), 0, &askew));
  }
  gk_scratch empty = gk_scratch();
  opts.scratch = &empty;
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul: the scratch is empty",
               gk_matmul_ex(x.ptr, x.ptr, c.ptr, 8, 8, 8, &opts));
  EXPECT(c.untouched());
}

/* Scans and reductions poll for their epochs where the partials were, so partials that look like them must be cleared. */
TEST(a_scratch_shared_with_scans_and_reduces) {
  const split_product tiles, thin(3, 40, 3000, 2);
  const size_t n = 50000;
  const std::vector<unsigned> ones(n, 1);
  device_array<unsigned> in(ones), out(n), sum(1);
  test_scratch scratch(gk_matmul_scratch_bytes());
  float looks_like_an_epoch;
  for (unsigned i = 0; i < 3; i++) {
    tiles.run(&scratch);
    thin.run(&scratch);
    EXPECT_OK(gk_scan_inclusive(in.ptr, out.ptr, n, gk_op_sum(), 0, &scratch));
    EXPECT_EQ(out.get()[n - 1], static_cast<unsigned>(n));
    EXPECT_OK(gk_reduce_sum(in.ptr, sum.ptr, n, 0, &scratch));
    EXPECT_EQ(sum.first(), static_cast<unsigned>(n));
    const unsigned epoch = scratch.scan_epochs() + 1;
    memcpy(&looks_like_an_epoch, &epoch, sizeof(epoch));
    const size_t k = 1024; /* each partial is this number, of a row of A that is 0 but for the starts of partitions */
    const hook_split_k order = hook_plan_split_k<float>(1, 160, k);
    EXPECT(order.thin && order.partitions > 1);
    std::vector<float> a(k, 0.0f), b(k * 160, looks_like_an_epoch);
    for (size_t l = 0; l < k; l += static_cast<size_t>(order.depth)) a[l] = 1;
    device_array<float> device_a(a), device_b(b), c(160);
    gk_matmul_opts opts = gk_matmul_opts();
    opts.scratch = &scratch;
    EXPECT_OK(gk_matmul_ex(device_a.ptr, device_b.ptr, c.ptr, 1, 160, k, &opts));
    EXPECT_OK(gk_scan_inclusive(in.ptr, out.ptr, n, gk_op_sum(), 0, &scratch));
    EXPECT_EQ(out.get()[n - 1], static_cast<unsigned>(n));
  }
  EXPECT_EQ(scratch.scan_epochs(), 6u); /* products take none */
}

/* Used slots and temporary memory may hold anything. */
TEST(partials_in_memory_that_is_not_zero) {
  const split_product tiles;
  const size_t bytes = tiles.scratch_bytes();
  test_scratch scratch(bytes);
  scratch.fill_slots(partials_begin, bytes - partials_begin);
  tiles.run(&scratch);
  EXPECT_EQ(scratch.bytes_not_zero(partials_begin, (bytes - partials_begin) / 16 * 16), size_t(0));
  for (int i = 0; i < 2; i++) {
    void *memory = NULL;
    EXPECT_OK(cudaMallocAsync(&memory, 3 * bytes, 0));
    EXPECT_OK(cudaMemsetAsync(memory, 0xff, 3 * bytes, 0));
    EXPECT_OK(cudaFreeAsync(memory, 0));
    tiles.run(NULL);
  }
}

TEST(a_hundred_runs) {
  const split_product tiles(70, 60, 700, 1);
  test_scratch scratch(tiles.scratch_bytes());
  const int runs = test_slowed() ? 12 : on_cpu ? 24 : 100; /* the stand-in and the sanitizer vary less */
  for (int i = 0; i < runs; i++) tiles.run(&scratch, static_cast<gk_plan>(i % GK_PLAN_MMA));
}

TEST(a_product_without_a_scratch_loses_no_memory) {
  const split_product tiles;
  const uint64_t before = pool_bytes();
  for (int i = 0; i < 3; i++) tiles.run(NULL);
  EXPECT_EQ(pool_bytes(), before);
}
