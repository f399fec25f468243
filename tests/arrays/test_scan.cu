/* gk_scan_inclusive, _exclusive and _exclusive_init: every type, around the edges of tiles and of groups of tiles, in
 * place and misaligned, in the order of the operands, and with the same bits on any stream and run. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "data.h"
#include "hooks.h"
#include <thread>

/* --- what is right: a loop ------------------------------------------------------------------------------------------
 * A rule is an operator for the host: its working type A, what an element and an initial value become there, one step;
 * and elements for which the result is exact in any order. */

template <class Op, class T, class O> struct rule { /* a functor's, by itself */
  typedef typename hook_working<Op>::type A;
  static A identity() { return Op().identity(); }
  static A lift(T x, size_t) { return static_cast<A>(x); }
  static A start(O init) { return init; }
  static A step(A x, A y) { return Op()(x, y); }
  static T element(size_t i) { return T(static_cast<int>(mix(1, i) >> 40)); }
};
template <class T, class O> struct rule<gk_op_sum, T, O> {
  typedef plain_type<O> A;
  static A identity() { return A(0); }
  static A lift(T x, size_t) { return static_cast<A>(plain(x)); }
  static A start(O init) { return plain(init); }
  static A step(A x, A y) {
    if constexpr (is_float<A>::value)
      return x + y;
    else
      return static_cast<A>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)); /* it wraps */
  }
  static T element(size_t i) {
    if constexpr (is_float<T>::value)
      return make<T>(uniform(1, i, -8, 8));
    else
      return static_cast<T>(mix(1, i));
  }
};
template <class T, class O> struct rule<gk_op_prod, T, O> : rule<gk_op_sum, T, O> {
  typedef plain_type<O> A;
  static A identity() { return A(1); }
  static A step(A x, A y) {
    if constexpr (is_float<A>::value)
      return x * y;
    else
      return static_cast<A>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  }
  static T element(size_t i) {
    if constexpr (is_float<T>::value)
      return make<T>((mix(1, i) % 2 ? 1 : -1) * (i % 64 == 5 ? 2.0 : i % 64 == 37 ? 0.5 : 1.0));
    else
      return static_cast<T>(mix(1, i) | 1);
  }
};
template <class T, class O, bool Greatest> struct rule_best : rule<gk_op_sum, T, O> { /* with new records to the end */
  typedef plain_type<O> A;
  typedef std::numeric_limits<A> limits;
  static A identity() {
    if (is_float<A>::value) return Greatest ? -limits::infinity() : limits::infinity();
    return Greatest ? limits::lowest() : limits::max();
  }
  static A step(A x, A y) { return (Greatest ? y > x : y < x) ? y : x; }
  static T element(size_t i) {
    if (sizeof(T) == 1) return make<T>(uniform(1, i, 0, 127));
    const double size = static_cast<double>(i / 1000) + 3 * gauss(1, i);
    return make<T>(Greatest ? size : 1000 - size);
  }
};
template <class T, class O> struct rule<gk_op_min, T, O> : rule_best<T, O, false> {};
template <class T, class O> struct rule<gk_op_max, T, O> : rule_best<T, O, true> {};
template <class T, class V, bool Greatest> struct rule_argbest { /* with many ties */
  typedef gk_arg<V> A;
  static A identity() { return A{rule_best<V, V, Greatest>::identity(), SIZE_MAX}; }
  static A lift(T x, size_t i) { return A{static_cast<V>(plain(x)), i}; }
  static A start(A init) { return init; }
  static A step(A x, A y) {
    if (x.value == y.value) return x.index < y.index ? x : y;
    return (Greatest ? y.value > x.value : y.value < x.value) ? y : x;
  }
  static T element(size_t i) {
    return make<T>((Greatest ? 1 : -1) * (static_cast<int>(i / 2000) + uniform(1, i, 0, 3)));
  }
};
template <class T, class V> struct rule<gk_op_argmin, T, gk_arg<V>> : rule_argbest<T, V, false> {};
template <class T, class V> struct rule<gk_op_argmax, T, gk_arg<V>> : rule_argbest<T, V, true> {};

enum scan_kind { inclusive, exclusive, exclusive_init };
static const char *const kind_name[] = {"inclusive", "exclusive", "exclusive_init"};

template <class Op, class T, class O>
static std::vector<O> scan_in_a_loop(scan_kind kind, const std::vector<T> &x, const O &init) {
  typedef rule<Op, T, O> r;
  typename r::A running = kind == exclusive_init ? r::start(init) : r::identity();
  std::vector<O> out(x.size());
  for (size_t i = 0; i < x.size(); i++) {
    const typename r::A next = r::step(running, r::lift(x[i], i)), &now = kind == inclusive ? next : running;
    if constexpr (is_half<O>::value)
      out[i] = make<O>(static_cast<double>(now));
    else
      out[i] = now;
    running = next;
  }
  return out;
}

template <class Op, class T, class O>
static cudaError_t scan(scan_kind kind, const T *in, O *out, size_t n, const O &init, cudaStream_t stream,
                        const gk_scratch *scratch) {
  if (kind == inclusive) return gk_scan_inclusive(in, out, n, Op(), stream, scratch);
  if (kind == exclusive) return gk_scan_exclusive(in, out, n, Op(), stream, scratch);
  return gk_scan_exclusive_init(in, out, n, Op(), init, stream, scratch);
}

/* An operator by its functions, so that what follows is compiled once for each pair of types and not for each operator. */
template <class T, class O> struct operation {
  const char *name;
  O init;
  size_t working_bytes;
  T (*element)(size_t i);
  std::vector<O> (*in_a_loop)(scan_kind kind, const std::vector<T> &x, const O &init);
  cudaError_t (*scan)(scan_kind kind, const T *in, O *out, size_t n, const O &init, cudaStream_t, const gk_scratch *);

  static size_t tile() {
    return static_cast<size_t>(HOOK_SCAN_THREADS) * hook_scan_items(hook_scan_item_bytes<T, O>(), true);
  }
  size_t scratch_bytes(size_t n) const {
    const size_t larger = sizeof(T) > sizeof(O) ? sizeof(T) : sizeof(O);
    return gk_scan_scratch_bytes(n, larger > working_bytes ? larger : working_bytes);
  }
  std::vector<T> elements(size_t n) const {
    std::vector<T> x(n);
    for (size_t i = 0; i < n; i++) x[i] = element(i);
    return x;
  }
};
template <class Op, class T, class O> static operation<T, O> operation_of(const char *name, const O &init) {
  typedef rule<Op, T, O> r;
  return operation<T, O>{name, init, sizeof(typename r::A), r::element, scan_in_a_loop<Op, T, O>, scan<Op, T, O>};
}

/* --- sizes, alignments, places --------------------------------------------------------------------------------------*/

/* Each size as each kind of scan, or, under a tool that slows kernels, as one in turn; nothing is written past the end. */
template <class T, class O> static void check_sizes(const operation<T, O> &op, const std::vector<size_t> &sizes) {
  const size_t largest = sizes.back(), behind = 64;
  const std::vector<T> host = op.elements(largest);
  device_array<T> in(host);
  device_array<O> out(largest + behind);
  test_scratch scratch(op.scratch_bytes(largest));
  for (scan_kind kind : {inclusive, exclusive, exclusive_init}) {
    const std::vector<O> expected = op.in_a_loop(kind, host, op.init);
    for (size_t i = 0; i < sizes.size(); i++) {
      const size_t n = sizes[i];
      if (test_slowed() && (i + kind) % 3) continue;
      EXPECT_OK(op.scan(kind, in.ptr, out.ptr, n, op.init, 0, &scratch));
      EXPECT_SAME(out.get(n), first_of(expected, n), "%s %s, n = %zu", op.name, kind_name[kind], n);
      EXPECT_EQ(out.written(out.ptr + n, behind * sizeof(O)), size_t(0));
      out.clear();
    }
  }
}

/* In place. T and O are the same, or nothing is done. */
template <class T, class O> static void check_in_place(const operation<T, O> &, const std::vector<T> &, size_t) {}
template <class T> static void check_in_place(const operation<T, T> &op, const std::vector<T> &host, size_t shift) {
  const scan_kind kind = shift % 2 ? exclusive : inclusive;
  device_array<T> both(host, shift);
  EXPECT_OK(op.scan(kind, both.ptr, both.ptr, host.size(), op.init, 0, NULL));
  EXPECT_SAME(both.get(), op.in_a_loop(kind, host, op.init), "%s %s in place, shift %zu", op.name, kind_name[kind],
              shift);
}

template <class T, class O> static void check_alignments(const operation<T, O> &op) {
  const std::vector<T> host = op.elements(2 * op.tile() + 5);
  const std::vector<O> expected = op.in_a_loop(exclusive, host, op.init);
  test_scratch scratch(op.scratch_bytes(host.size()));
  const size_t smaller = sizeof(T) < sizeof(O) ? sizeof(T) : sizeof(O);
  std::vector<size_t> shifts;
  for (size_t bytes = 0; bytes < 16; bytes += smaller) shifts.push_back(bytes / smaller);
  for (size_t bytes : {16u, 32u, 48u, 64u, 120u}) shifts.push_back((bytes + smaller - 1) / smaller);
  for (size_t shift : shifts) {
    if (test_leaves_out()) continue;
    device_array<T> in(host, shift), aligned_in(host);
    device_array<O> out(host.size(), shift), aligned_out(host.size());
    EXPECT_OK(op.scan(exclusive, in.ptr, out.ptr, host.size(), op.init, 0, &scratch));
    EXPECT_SAME(out.get(), expected, "%s, shift %zu", op.name, shift);
    EXPECT_OK(op.scan(exclusive, in.ptr, aligned_out.ptr, host.size(), op.init, 0, &scratch));
    EXPECT_SAME(aligned_out.get(), expected, "%s, in shifted by %zu", op.name, shift);
    out.clear();
    EXPECT_OK(op.scan(exclusive, aligned_in.ptr, out.ptr, host.size(), op.init, 0, &scratch));
    EXPECT_SAME(out.get(), expected, "%s, out shifted by %zu", op.name, shift);
    check_in_place(op, host, shift);
  }
}

template <class T, class O> static void check(const operation<T, O> &op) {
  const size_t tile = op.tile(), own = tile / HOOK_SCAN_THREADS; /* elements of one thread */
  check_sizes(op,
              {0, 1, 2, 31, 32, 33, own, 32 * own - 1, 32 * own + 1, tile - 1, tile, tile + 1, 2 * tile, 3 * tile - 5});
  check_alignments(op);
}
/* A group is 32 tiles: the prefix of its group reaches a tile from other groups' totals and prefixes. */
template <class T, class O> static void check_groups(const operation<T, O> &op) {
  const size_t tile = op.tile();
  check_sizes(op, {31 * tile + 1, 32 * tile - 1, 32 * tile, 32 * tile + 1, 33 * tile + 1, 64 * tile, 64 * tile + 1,
                   65 * tile + 7});
}

#define CHECK_SUM(name, T) check(operation_of<gk_op_sum, T, T>("sum of " #name, make<T>(7)));
TEST(sum_of_every_type){ALL_TYPES(CHECK_SUM)} TEST(product) {
  check(operation_of<gk_op_prod, int32_t, int32_t>("product of i32", 7));
  check(operation_of<gk_op_prod, float, float>("product of f32", 7));
  check(operation_of<gk_op_prod, __nv_bfloat16, __nv_bfloat16>("product of bf16", make<__nv_bfloat16>(7)));
}
TEST(min_and_max) {
  check(operation_of<gk_op_min, int32_t, int32_t>("min of i32", 990));
  check(operation_of<gk_op_min, float, float>("min of f32", 990));
  check(operation_of<gk_op_min, uint8_t, uint8_t>("min of u8", 80));
  check(operation_of<gk_op_max, int8_t, int8_t>("max of i8", 80));
  check(operation_of<gk_op_max, __half, __half>("max of f16", make<__half>(4)));
  check(operation_of<gk_op_max, double, double>("max of f64", 4));
}
TEST(argmin_and_argmax) {
  check(operation_of<gk_op_argmin, float, gk_arg<float>>("argmin of f32", {-3, 1000000}));
  check(operation_of<gk_op_argmax, int32_t, gk_arg<int32_t>>("argmax of i32", {3, 5}));
  check(operation_of<gk_op_argmax, __half, gk_arg<float>>("argmax of f16", {3, 5}));
}
TEST(wider_and_other_outputs) {
  check(operation_of<gk_op_sum, int8_t, int64_t>("sum of i8 in i64", -1000000));
  check(operation_of<gk_op_sum, uint8_t, uint32_t>("sum of u8 in u32", 9));
  check(operation_of<gk_op_sum, __half, float>("sum of f16 in f32", 0.5f));
  check(operation_of<gk_op_sum, float, double>("sum of f32 in f64", 0.5));
  check(operation_of<gk_op_sum, int32_t, uint8_t>("sum of i32 in u8", 200)); /* in the output's type: modulo 256 */
}

/* --- functors that do not commute -----------------------------------------------------------------------------------*/

/* x -> a x + b: any error of order, and any element lost or seen twice, changes all that follows. */
template <class U> struct affine { /* 8 or 16 bytes */
  U a, b;
  __host__ __device__ affine() {}
  __host__ __device__ affine(int x) : a(static_cast<U>(x) | 1), b(static_cast<U>(x) >> 3) {}
};
template <class U> struct counted : affine<U> { /* 12 or 24 bytes */
  U count;
  __host__ __device__ counted() {}
  __host__ __device__ counted(int x) : affine<U>(x), count(1) {}
};
struct compose {
  template <class F> static __host__ __device__ void then(F *f, const F &g) {
    f->b = g.a * f->b + g.b;
    f->a = g.a * f->a;
  }
};
template <class U> struct compose_affine : compose {
  __host__ __device__ affine<U> identity() const {
    affine<U> same(1);
    return same;
  }
  __host__ __device__ affine<U> operator()(affine<U> f, const affine<U> &g) const {
    this->then(&f, g);
    return f;
  }
};
template <class U> struct compose_counted : compose {
  __host__ __device__ counted<U> identity() const {
    counted<U> same(1);
    same.count = 0;
    return same;
  }
  __host__ __device__ counted<U> operator()(counted<U> f, const counted<U> &g) const {
    this->then(&f, g);
    f.count = f.count + g.count;
    return f;
  }
};
typedef affine<uint32_t> affine8;
typedef counted<uint32_t> affine12;
typedef counted<uint64_t> affine24;
typedef compose_affine<uint32_t> compose8;
typedef compose_counted<uint32_t> compose12;
typedef compose_counted<uint64_t> compose24;

TEST(functors_that_do_not_commute) {
  check(operation_of<compose8, affine8, affine8>("affine maps", affine8(12345)));
  check(operation_of<compose12, affine12, affine12>("affine maps of 12 bytes", affine12(12345)));
  check(operation_of<compose24, affine24, affine24>("affine maps of 24 bytes", affine24(12345)));
  check(operation_of<compose8, int, affine8>("affine maps from int", affine8(12345)));
}

TEST(groups_of_tiles) {
  check_groups(operation_of<compose8, affine8, affine8>("affine maps", affine8(12345)));
  check_groups(operation_of<compose24, affine24, affine24>("affine maps of 24 bytes", affine24(12345)));
}
TEST(groups_of_tiles_f32) { check_groups(operation_of<gk_op_sum, float, float>("sum of f32", 7)); }
TEST(groups_of_tiles_argmin) {
  check_groups(operation_of<gk_op_argmin, float, gk_arg<float>>("argmin of f32", {-30, 1000000}));
}

/* The prefix of a tile, from slots that the test fills: only those that the tile may read get this scan's epoch, and get
 * it while the tile waits; of a slot of several words, the second one first. */
template <unsigned Window, class A, class Op>
__global__ void prefix_by_hand(hook_slot<A> *slots, hook_scan_plan plan, size_t tile, unsigned epoch, unsigned *started,
                               const A *total, A prefix, A *out) {
  HOOK_SHARED(A, part, HOOK_SCAN_WARPS + 1);
  __shared__ unsigned order;
  const size_t group = tile / HOOK_SCAN_GROUP, oldest = group >= Window ? group - (Window - 1) : 0;
  const hook_scan_slots<A> at = {slots, slots + plan.tiles, epoch};
  if (threadIdx.x == 0) order = atomicAdd(started, 1u);
  __syncthreads();
  if (order == 0) { /* the first block to start, which waits for no other */
    for (size_t i = oldest * HOOK_SCAN_GROUP + threadIdx.x; i < tile; i += blockDim.x)
      hook_publish(at.tile_total + i, total[i], epoch);
    if (threadIdx.x == 0 && oldest > 0) hook_publish(at.group_prefix + oldest, prefix, epoch);
  } else {
    out[threadIdx.x] = hook_tile_prefix<Window>(tile, total[tile], hook_scan_start<A>{prefix}, Op(), plan, at, part);
    if (threadIdx.x == 0) {
      A seen(prefix);
      const bool ends = tile % HOOK_SCAN_GROUP == HOOK_SCAN_GROUP - 1 && group + 1 < plan.groups;
      out[blockDim.x] = ends && hook_peek(at.group_prefix + (group + 1), &seen, epoch) ? seen : total[tile];
    }
  }
}
template <unsigned Window, class A, class Op> static void check_prefix(const char *name) {
  hook_scan_plan plan = hook_scan_plan();
  plan.groups = 12;
  plan.tiles = plan.groups * HOOK_SCAN_GROUP - 5;
  std::vector<A> total(plan.tiles, A(0));
  for (size_t i = 0; i < plan.tiles; i++) total[i] = A(static_cast<int>(mix(3, i) >> 40));
  for (size_t tile : {0u, 1u, 31u, 32u, 40u, 191u, 192u, 223u, 224u, 255u, 256u, 300u, 351u, 378u}) {
    const size_t group = tile / HOOK_SCAN_GROUP;
    const A prefix(77); /* of the oldest group that the tile reads tile by tile */
    A before(prefix);
    for (size_t i = (group >= Window ? group - (Window - 1) : 0) * HOOK_SCAN_GROUP; i < tile; i++)
      before = Op()(before, total[i]);
    const bool ends = tile % HOOK_SCAN_GROUP == HOOK_SCAN_GROUP - 1;
    device_array<hook_slot<A>> slots(plan.tiles + plan.groups);
    std::vector<hook_slot<A>> stale(plan.tiles + plan.groups);
    memset(static_cast<void *>(stale.data()), 0x5a, stale.size() * sizeof(stale[0]));
    for (size_t i = 0; i < stale.size(); i++) {
      unsigned word[3 * hook_slot<A>::word16_count] = {};
      memcpy(word, i < plan.tiles ? &total[i] : &prefix, sizeof(A));
      stale[i].words[0].word[3] = 4;
      for (unsigned g = 1; g < hook_slot<A>::word16_count; g++) {
        for (unsigned j = 0; j < 3; j++) stale[i].words[g].word[j] = word[3 * g + j];
        stale[i].words[g].word[3] = 5;
      }
    }
    EXPECT_OK(cudaMemcpy(slots.ptr, stale.data(), stale.size() * sizeof(stale[0]), cudaMemcpyHostToDevice));
    device_array<A> totals(total), out(HOOK_SCAN_THREADS + 1);
    device_array<unsigned> started(std::vector<unsigned>(1, 0u));
    GK_LAUNCH((prefix_by_hand<Window, A, Op>), 2, HOOK_SCAN_THREADS, 0, 0, slots.ptr, plan, tile, 5u, started.ptr,
              totals.ptr, prefix, out.ptr);
    std::vector<A> expected(HOOK_SCAN_THREADS + 1, before);
    expected[HOOK_SCAN_THREADS] = ends ? Op()(before, total[tile]) : total[tile];
    EXPECT_SAME(out.get(), expected, "%s, tile %zu", name, tile);
  }
}
TEST(prefixes_from_slots_by_hand) {
  check_prefix<7, affine8, compose8>("affine maps");
  check_prefix<4, affine24, compose24>("affine maps of 24 bytes");
}

template <class T> __device__ bool is_same(const T &x, const T &y) { return x == y; }
template <class T> __device__ bool is_same(const gk_arg<T> &x, const gk_arg<T> &y) {
  return x.value == y.value && x.index == y.index;
}
template <class T> __global__ void count_different(const T *x, const T *y, size_t n, unsigned *count) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (!is_same(x[i], y[i])) atomicAdd(count, 1u);
}
/* Blocks read slots while others write them. Value and epoch must arrive together, also where a slot has padding. The
 * slots are cleared before each scan: what is left of the scan before would be the right value. */
template <class T, class O> static void check_slots_in_use(const operation<T, O> &op) {
  const std::vector<T> host = op.elements(64 * op.tile());
  const size_t n = host.size(), repeats = test_repeats_of_races();
  const device_array<T> in(host);
  const device_array<O> expected(op.in_a_loop(inclusive, host, op.init));
  device_array<O> out(n);
  device_array<unsigned> wrong(std::vector<unsigned>(1, 0u));
  const test_scratch scratch(op.scratch_bytes(n));
  for (size_t i = 0; i < repeats; i++) {
    EXPECT_OK(cudaMemsetAsync(scratch.ptr, 0, scratch.bytes, 0));
    EXPECT_OK(op.scan(inclusive, in.ptr, out.ptr, n, op.init, 0, &scratch));
    GK_LAUNCH(count_different<O>, 256, 256, 0, 0, out.ptr, expected.ptr, n, wrong.ptr);
  }
  EXPECT_SAME(wrong.first(), 0u, "%s", op.name);
}
TEST(slots_are_read_while_they_are_written) {
  check_slots_in_use(operation_of<gk_op_argmin, float, gk_arg<float>>("argmin of f32", {}));
  check_slots_in_use(operation_of<gk_op_sum, int32_t, int32_t>("sum of i32", 0));
  check_slots_in_use(operation_of<gk_op_sum, double, double>("sum of f64", 0));
}

/* A scratch of exactly the bytes that the scan needs: nothing is written past its end. */
TEST(scratch_of_just_the_size) {
  const operation<affine8, affine8> op = operation_of<compose8, affine8, affine8>("affine maps", affine8(12345));
  for (size_t tiles : {2u, 32u, 33u, 64u}) {
    const std::vector<affine8> host = op.elements(tiles * op.tile());
    const hook_scan_plan plan = hook_plan_scan(host.size(), sizeof(affine8));
    device_array<unsigned char> memory(hook_scan_bytes(plan, sizeof(hook_slot<affine8>)));
    EXPECT_OK(cudaMemset(memory.ptr, 0, memory.n));
    gk_scratch scratch = gk_scratch();
    scratch.ptr = memory.ptr, scratch.bytes = memory.n;
    device_array<affine8> data(host);
    EXPECT_OK(op.scan(inclusive, data.ptr, data.ptr, host.size(), op.init, 0, &scratch));
    EXPECT_SAME(data.get(), op.in_a_loop(inclusive, host, op.init), "%zu tiles", tiles);
  }
}

/* --- the same bits --------------------------------------------------------------------------------------------------*/

template <class T, class O> static void check_bits(operation<T, O> op) {
  op.element = [](size_t i) { return rounding<T>(2, i); };
  const std::vector<T> host = op.elements(70 * op.tile() + 12);
  const size_t n = host.size();
  test_scratch scratch(op.scratch_bytes(n));
  test_stream other;
  device_array<T> in(host), in_shifted(host, 1);
  device_array<O> out(n), out_shifted(n, 1);
  for (scan_kind kind : {inclusive, exclusive_init}) {
    EXPECT_OK(op.scan(kind, in.ptr, out.ptr, n, op.init, 0, &scratch));
    const std::vector<O> expected = out.get();
    EXPECT_OK(op.scan(kind, in_shifted.ptr, out_shifted.ptr, n, op.init, 0, &scratch));
    EXPECT_SAME(out_shifted.get(), expected, "%s %s, shifted", op.name, kind_name[kind]);
    out.clear();
    EXPECT_OK(op.scan(kind, in.ptr, out.ptr, n, op.init, other.stream, NULL));
    other.wait();
    EXPECT_SAME(out.get(), expected, "%s %s, on a stream, without a scratch", op.name, kind_name[kind]);
    for (int repeat = 0; repeat < (test_slowed() ? 1 : 10); repeat++) {
      EXPECT_OK(op.scan(kind, in.ptr, out.ptr, n, op.init, 0, &scratch));
      if (!EXPECT_SAME(out.get(), expected, "%s %s, repeat %d", op.name, kind_name[kind], repeat)) break;
    }
  }
}
TEST(same_bits_f32) { check_bits(operation_of<gk_op_sum, float, float>("sum of f32", 0.1f)); }
TEST(same_bits_f64) { check_bits(operation_of<gk_op_sum, double, double>("sum of f64", 0.1)); }
TEST(same_bits_f16) { check_bits(operation_of<gk_op_sum, __half, __half>("sum of f16", make<__half>(0.1))); }

/* --- values ---------------------------------------------------------------------------------------------------------*/

/* The longest chain of roundings: a thread's own run, the tree of its block and that of its group, and the groups. */
TEST(error_of_float_prefixes_grows_slowly) {
  const size_t n = (size_t(1) << (test_slowed() ? 17 : 20)) + 77;
  std::vector<float> host(n);
  for (size_t i = 0; i < n; i++) host[i] = static_cast<float>(gauss(5, i) + 3) / 7;
  device_array<float> in(host), out(n);
  EXPECT_OK(gk_scan_inclusive(in.ptr, out.ptr, n, gk_op_sum()));
  const std::vector<float> got = out.get();
  const size_t tile = operation<float, float>::tile();
  double exact = 0;
  for (size_t i = 0; i < n; i++) {
    exact += static_cast<double>(host[i]);
    const double roundings = static_cast<double>(tile / HOOK_SCAN_THREADS + 20 + i / (32 * tile));
    const double error = fabs(static_cast<double>(got[i]) - exact) / exact;
    if (!(error <= roundings / (1 << 24))) test_fail(__FILE__, __LINE__, sentence("[%zu]: error %g", i, error));
  }
}

TEST(nan_and_infinity) {
  const float nan = NAN, inf = HUGE_VALF;
  const size_t n = 3 * operation<float, float>::tile(), place = n / 2 + 3;
  std::vector<float> host(n, 1.0f);
  host[place] = nan, host[place + 2] = nan;
  host[place - 2] = inf, host[place - 1] = -inf;
  device_array<float> in(host), sums(n), least(n);
  device_array<gk_arg<float>> first_least(n);
  EXPECT_OK(gk_scan_inclusive(in.ptr, sums.ptr, n, gk_op_sum()));
  EXPECT_OK(gk_scan_exclusive(in.ptr, least.ptr, n, gk_op_min()));
  EXPECT_OK(gk_scan_inclusive(in.ptr, first_least.ptr, n, gk_op_argmin()));
  std::vector<float> expected_sums(n, nan), expected_least(n, nan);
  std::vector<gk_arg<float>> expected_first(n, gk_arg<float>{nan, place});
  for (size_t i = 0; i < place; i++) {
    expected_sums[i] = i < place - 2 ? static_cast<float>(i + 1) : i < place - 1 ? inf : nan;
    expected_least[i] = i ? 1.0f : inf;
    expected_first[i] = i < place - 1 ? gk_arg<float>{1, 0} : gk_arg<float>{-inf, place - 1};
  }
  expected_least[place] = -inf;
  EXPECT_SAME(sums.get(), expected_sums, "sums");
  EXPECT_SAME(least.get(), expected_least, "min");
  EXPECT_SAME(first_least.get(), expected_first, "argmin");
}

TEST(an_init_of_another_type) {
  device_array<int32_t> in(std::vector<int32_t>(5000, 1)), out(5000);
  EXPECT_OK(gk_scan_exclusive_init(in.ptr, out.ptr, 5000, gk_op_sum(), 41.5));
  EXPECT_EQ(out.get()[4999], 41 + 4999);
}

/* --- scratch --------------------------------------------------------------------------------------------------------*/

/* Scans of several types and sizes with one scratch, reductions in between. */
struct mixed_scans {
  operation<float, float> sums;
  operation<affine24, affine24> maps;
  operation<uint8_t, uint8_t> bytes;
  std::vector<float> sums_in;
  std::vector<affine24> maps_in;
  std::vector<uint8_t> bytes_in;

  explicit mixed_scans(size_t tiles)
      : sums(operation_of<gk_op_sum, float, float>("sum of f32", 7)),
        maps(operation_of<compose24, affine24, affine24>("affine maps of 24 bytes", affine24(12345))),
        bytes(operation_of<gk_op_sum, uint8_t, uint8_t>("sum of u8", 7)) {
    sums_in = sums.elements(tiles * sums.tile());
    maps_in = maps.elements(tiles * maps.tile());
    bytes_in = bytes.elements(tiles * bytes.tile());
  }
  size_t scratch_bytes() const { return maps.scratch_bytes(maps_in.size()); }
  template <class T>
  static void run_one(const operation<T, T> &op, const std::vector<T> &all, size_t tiles, const gk_scratch *scratch) {
    const std::vector<T> host = first_of(all, tiles * op.tile() - 3);
    device_array<T> data(host);
    EXPECT_OK(op.scan(exclusive_init, data.ptr, data.ptr, host.size(), op.init, 0, scratch));
    EXPECT_SAME(data.get(), op.in_a_loop(exclusive_init, host, op.init), "%s, %zu tiles", op.name, tiles);
  }
  void run(size_t which, size_t tiles, const gk_scratch *scratch) const {
    if (which % 3 == 0) run_one(sums, sums_in, tiles, scratch);
    if (which % 3 == 1) run_one(maps, maps_in, tiles, scratch);
    if (which % 3 == 2) run_one(bytes, bytes_in, tiles, scratch);
    device_array<float> in(sums_in), out(1);
    EXPECT_OK(gk_reduce_max(in.ptr, out.ptr, tiles * 3000, 0, scratch));
    EXPECT_EQ(out.first(), 8.0f);
  }
};

TEST(one_scratch_serves_all) {
  const mixed_scans scans(70);
  test_scratch scratch(scans.scratch_bytes());
  const unsigned before = scratch.scan_epochs();
  for (size_t i = 0; i < 12; i++) scans.run(i, i % 4 ? 2 + 5 * i : 70, &scratch);
  EXPECT_EQ(scratch.scan_epochs(), before + 12);
  /* a scan of one tile needs no scratch, and leaves it alone */
  device_array<float> few(first_of(scans.sums_in, 1000));
  EXPECT_OK(gk_scan_inclusive(few.ptr, few.ptr, 1000, gk_op_sum(), 0, &scratch));
  EXPECT_EQ(scratch.scan_epochs(), before + 12);
}

/* When epochs run out all slots are cleared, those of larger scans too. */
TEST(epochs_run_out) {
  const mixed_scans scans(70);
  test_scratch scratch(scans.scratch_bytes());
  const size_t slots = HOOK_STATE_BYTES + HOOK_REDUCE_BYTES;
  for (size_t i = 0; i < 3; i++) scans.run(i, 70, &scratch);
  scratch.fill_slots(slots, scratch.bytes - slots);
  scratch.set_epochs(0xfffffffdu);
  const unsigned epochs[] = {0xfffffffeu, 0, 1, 2, 3, 4};
  for (size_t i = 0; i < 6; i++) {
    scans.run(i, i < 2 ? 3 : 70 - i, &scratch);
    EXPECT_EQ(scratch.scan_epochs(), epochs[i]);
    if (i == 1) EXPECT_EQ(scratch.bytes_not_zero(slots, (scratch.bytes - slots) / 16 * 16), size_t(0));
  }
}

TEST(a_call_without_a_scratch_loses_no_memory) {
  const size_t n = 10 * operation<float, float>::tile();
  device_array<float> data(std::vector<float>(n, 1.0f));
  const uint64_t before = pool_bytes();
  for (int i = 0; i < 3; i++) EXPECT_OK(gk_scan_exclusive(data.ptr, data.ptr, n, gk_op_max()));
  EXPECT_EQ(pool_bytes(), before);
}

/* --- errors ---------------------------------------------------------------------------------------------------------*/

TEST(errors_are_told_and_change_nothing) {
  const operation<float, float> op = operation_of<gk_op_sum, float, float>("sum", 0);
  const size_t n = 10 * op.tile(), huge = size_t(1) << 61;
  device_array<float> in(std::vector<float>(n, 1.0f)), out(n);
  test_scratch scratch(op.scratch_bytes(n));
  const float *const none = NULL, *const askew = reinterpret_cast<const float *>(reinterpret_cast<char *>(in.ptr) + 2);
  float *const askew_out = reinterpret_cast<float *>(reinterpret_cast<char *>(out.ptr) + 1);
  gk_scratch small = scratch, empty = gk_scratch();
  small.bytes = hook_scan_bytes(hook_plan_scan(n, sizeof(float)), sizeof(hook_slot<float>)) - 1;
  const std::string small_detail =
      sentence("the scratch has %zu bytes, but %zu are needed", small.bytes, small.bytes + 1);
  const struct {
    const float *in;
    float *out;
    size_t n;
    const gk_scratch *scratch;
    const char *detail;
  } cases[] = {
      {none, out.ptr, n, &scratch, "input is NULL, but the call uses 30720"},
      {in.ptr, NULL, n, &scratch, "output is NULL, but the call uses 30720"},
      {askew, out.ptr, n - 1, &scratch, "input is not aligned to its elements' 4 bytes"},
      {in.ptr, askew_out, n, &scratch, "output is not aligned to its elements' 4 bytes"},
      {in.ptr, out.ptr, SIZE_MAX / 4 + 1, &scratch, "n = 4611686018427387904 elements of 4 bytes are more than memory"},
      {in.ptr, out.ptr, n, &small, small_detail.c_str()},
      {in.ptr, out.ptr, n, &empty, "the scratch is empty: gk_scratch_create it first, or pass NULL"},
      {in.ptr, out.ptr, 1, &empty, "the scratch is empty"},
      {in.ptr, out.ptr, huge, &scratch, "bytes, but "},
  };
  const char *const calls[] = {"gk_scan_inclusive: ", "gk_scan_exclusive: ", "gk_scan_exclusive_init: "};
  for (const auto &c : cases)
    for (scan_kind kind : {inclusive, exclusive, exclusive_init}) {
      EXPECT_ERROR(cudaErrorInvalidValue, c.detail, op.scan(kind, c.in, c.out, c.n, 0, 0, c.scratch));
      EXPECT_HAS((op.scan(kind, c.in, c.out, c.n, 0, 0, c.scratch), gk_error_detail()), calls[kind]);
      EXPECT(out.untouched());
      EXPECT_EQ(scratch.state().scan_tickets, 0u);
    }
  EXPECT_OK(gk_scan_inclusive(in.ptr, out.ptr, n, gk_op_sum(), 0, &scratch));
  EXPECT_EQ(gk_error_detail(), std::string());
  EXPECT_EQ(out.get()[n - 1], static_cast<float>(n));
  out.clear();
  /* without a scratch, and no memory for a temporary one */
  EXPECT(gk_scan_inclusive(in.ptr, out.ptr, huge, gk_op_sum()) != cudaSuccess);
  EXPECT_HAS(gk_error_detail(), "bytes left");
  EXPECT(out.untouched());
  cudaGetLastError();
  /* the wider type decides what is too much */
  device_array<int8_t> bytes(std::vector<int8_t>(1, int8_t(1)));
  device_array<int64_t> wide(1);
  EXPECT_ERROR(cudaErrorInvalidValue, "are more than memory can address",
               gk_scan_inclusive(bytes.ptr, wide.ptr, SIZE_MAX / 8 + 1, gk_op_sum()));
  /* nothing to do, nothing needed */
  EXPECT_OK(gk_scan_inclusive(none, static_cast<float *>(NULL), 0, gk_op_sum(), 0, &small));
}

TEST(an_error_from_elsewhere_is_neither_reported_nor_cleared) {
  const size_t n = 5 * operation<float, float>::tile();
  device_array<float> in(std::vector<float>(n, 1.0f));
  EXPECT(cudaSetDevice(12345) != cudaSuccess);
  EXPECT_OK(gk_scan_exclusive(in.ptr, in.ptr, n, gk_op_sum()));
  EXPECT_EQ((int)cudaPeekAtLastError(), (int)cudaErrorInvalidDevice);
  EXPECT_EQ((int)cudaGetLastError(), (int)cudaErrorInvalidDevice);
  EXPECT_EQ(in.get()[n - 1], static_cast<float>(n - 1));
}

/* --- streams, threads, graphs ---------------------------------------------------------------------------------------*/

TEST(several_streams_and_threads_at_once) {
  const operation<float, float> op = operation_of<gk_op_sum, float, float>("sum of f32", 7);
  const size_t lanes = 4, largest = 20 * op.tile();
  const std::vector<float> host = op.elements(largest), expected = op.in_a_loop(inclusive, host, 0);
  device_array<float> in(host), out(lanes * largest);
  test_stream streams[lanes];
  test_scratch scratch[2] = {test_scratch(op.scratch_bytes(largest)), test_scratch(op.scratch_bytes(largest))};
  std::thread threads[2];
  int failed[2] = {0, 0};
  for (size_t t = 0; t < 2; t++)
    threads[t] = std::thread(
        [&, t] { /* each thread with two streams, of which one goes without a scratch */
                 for (size_t i = 1; i <= 20; i++)
                   for (size_t lane : {2 * t, 2 * t + 1})
                     failed[t] += gk_scan_inclusive(in.ptr, out.ptr + lane * largest, i * op.tile() - i, gk_op_sum(),
                                                    streams[lane].stream, lane % 2 ? NULL : &scratch[t]) != cudaSuccess;
        });
  for (std::thread &t : threads) t.join();
  EXPECT_EQ(failed[0] + failed[1], 0);
  const std::vector<float> got = out.get();
  const size_t n = largest - 20;
  for (size_t lane = 0; lane < lanes; lane++) {
    const float *const from = got.data() + lane * largest;
    EXPECT_SAME(std::vector<float>(from, from + n), first_of(expected, n), "stream %zu", lane);
  }
}

static void check_graph(const gk_scratch *scratch, int times) {
  const operation<affine8, affine8> op = operation_of<compose8, affine8, affine8>("affine maps", affine8(1));
  const std::vector<affine8> host = op.elements(5 * op.tile() + 100);
  const size_t n = host.size() - 99;
  device_array<affine8> in(host), out(n);
  replay_graph(
      times,
      [&](cudaStream_t stream) { EXPECT_OK(gk_scan_inclusive(in.ptr, out.ptr, n, compose8(), stream, scratch)); },
      [&](int i) { /* the elements from another place on */
                   EXPECT_OK(cudaMemcpy(in.ptr, host.data() + i % 100, n * sizeof(affine8), cudaMemcpyHostToDevice));
                   out.clear();
      },
      [&](int i) {
        const affine8 *const from = host.data() + i % 100;
        EXPECT_SAME(out.get(), op.in_a_loop(inclusive, std::vector<affine8>(from, from + n), op.init), "replay %d", i);
      });
}
TEST(graph_with_a_scratch) {
  test_scratch scratch(gk_scan_scratch_bytes(100000, 8));
#ifdef CUDA_ON_CPU
  check_graph(&scratch, 50);
#else
  check_graph(&scratch, test_slowed() ? 50 : 1000);
#endif
}
TEST(graph_across_the_wrap) {
  test_scratch scratch(gk_scan_scratch_bytes(100000, 8));
  scratch.set_epochs(0xfffffffbu);
  check_graph(&scratch, 10);
}
TEST(graph_without_a_scratch) { check_graph(NULL, 20); }

/* --- past 2^32 ------------------------------------------------------------------------------------------------------*/

__global__ static void count_wrong(const uint8_t *x, size_t n, unsigned long long *wrong) {
  GK_FOR_1D (i, n) {
    if (x[i] != static_cast<uint8_t>(i + 1)) atomicAdd(wrong, 1ull);
  }
}
TEST(more_than_2_to_the_32_elements) {
  const size_t n = (size_t(1) << 32) + 77777;
  need_device_bytes(n + (size_t(1) << 30));
  device_array<uint8_t> data(n);
  device_array<unsigned long long> wrong(std::vector<unsigned long long>(1, 0));
  EXPECT_OK(cudaMemset(data.ptr, 1, n));
  EXPECT_OK(gk_scan_inclusive(data.ptr, data.ptr, n, gk_op_sum()));
  GK_LAUNCH(count_wrong, gk_grid_1d(n, 256), 256, 0, 0, data.ptr, n, wrong.ptr);
  EXPECT_EQ(wrong.first(), 0ull);
}

/* Sizes too large for any array give byte counts too large for any memory. */
TEST(scratch_bytes_of_any_sizes) {
  const size_t most = SIZE_MAX, middle = most / 2 + 1;
  const size_t few = gk_scan_scratch_bytes(1000, 4);
  EXPECT(few > gk_reduce_scratch_bytes());
  for (size_t n : {size_t(0), size_t(1), size_t(1) << 32, middle, most}) {
    size_t before = 0;
    for (size_t item :
         {size_t(0), size_t(1), size_t(4), size_t(1) << 32, middle - 1, middle, most / 4 * 3, most - 10, most}) {
      const size_t bytes = gk_scan_scratch_bytes(n, item);
      EXPECT(bytes >= gk_reduce_scratch_bytes());
      EXPECT(n > 256 ? bytes >= before : true); /* of a single tile nothing is kept */
      if (n > 1 && item >= middle) EXPECT_EQ(bytes, most);
      before = item >= 256 ? bytes : 0; /* up to there larger items may have tiles of fewer */
    }
  }
  EXPECT_EQ(gk_scan_scratch_bytes(1000, 0), gk_scan_scratch_bytes(1000, 1));
  gk_scratch scratch = gk_scratch();
  EXPECT_EQ(gk_scratch_create(&scratch, gk_scan_scratch_bytes(most, most), 0), cudaErrorMemoryAllocation);
  EXPECT(!scratch.ptr);
  cudaGetLastError();
}
