/* gk_reduce: the same bits whatever the alignment, the stream and the run; special values, functors of one's
 * own, scratch, streams, graphs, errors. Every operator with every type is in test_reduce_types.cu. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include <algorithm>
#include "data.h"
#include "hooks.h"
#include <float.h>
#include <thread>

/* --- the plan -------------------------------------------------------------------------------------------------------*/

TEST(plan_depends_on_n_and_types_alone) {
  for (size_t slot : {16u, 32u, 48u, 4096u})
    for (size_t n : {size_t(0), size_t(1), size_t(4096), size_t(4097), size_t(1) << 20, SIZE_MAX}) {
      const unsigned partitions = hook_plan_reduce(n, 4096, slot);
      EXPECT(partitions >= 1 && partitions <= n / 4096 + 1);
      EXPECT(partitions * slot <= HOOK_REDUCE_BYTES); /* the partials fit */
    }
}

/* The most elements that give each partition one tile. */
template <class Op, class T> static size_t items_of_all_partitions() {
  typedef typename hook_working<typename hook_functor<Op, T>::reduce>::type A;
  const size_t tile = hook_reduce_tile<T>::items;
  return hook_plan_reduce(4096 * tile, tile, sizeof(A)) * tile;
}

/* --- the same bits --------------------------------------------------------------------------------------------------*/

template <class Op, class T, class O> static void check_bits(const char *name, const std::vector<T> &host) {
  const size_t n = host.size();
  test_scratch scratch;
  test_stream other;
  device_array<T> in(host);
  device_array<O> out(1);
  EXPECT_OK(gk_reduce(in.ptr, out.ptr, n, Op(), 0, &scratch));
  const O expected = out.first();
  for (size_t shift = 1; shift < 16 / sizeof(T); shift++) {
    device_array<T> shifted(host, shift);
    out.clear();
    EXPECT_OK(gk_reduce(shifted.ptr, out.ptr, n, Op(), 0, &scratch));
    EXPECT_SAME(out.first(), expected, "%s, n = %zu, shift %zu", name, n, shift);
  }
  out.clear();
  EXPECT_OK(gk_reduce(in.ptr, out.ptr, n, Op(), other.stream, NULL));
  other.wait();
  EXPECT_SAME(out.first(), expected, "%s, n = %zu, on a stream, without a scratch", name, n);
}
template <class T, class O> static void check_bits_of_type(const char *name) {
  const std::vector<T> host = random_elements<T>(3, 70 * hook_reduce_tile<T>::items + 12);
  for (size_t n : {size_t(1000), size_t(hook_reduce_tile<T>::items + 1), host.size()}) {
    check_bits<gk_op_sum, T, O>((std::string("sum of ") + name).c_str(), first_of(host, n));
    check_bits<gk_op_min, T, T>((std::string("min of ") + name).c_str(), first_of(host, n));
  }
}
#define CHECK_BITS(name, T) check_bits_of_type<T, hook_widened<T>::type>(#name);
TEST(same_bits_at_any_alignment) { FLOAT_TYPES(CHECK_BITS) }

/* Where the ends of an array lie in its vectors, in the chunks of 16 bytes that these are read by, and in the tiles. */
template <class T, class O> static void check_ends_of_type(const char *name) {
  const size_t vector = hook_reduce_tile<T>::vector_width, tile = hook_reduce_tile<T>::items;
  const std::vector<T> host = random_elements<T>(3, 2 * tile + 1);
  test_scratch scratch;
  device_array<T> in(host);
  device_array<O> out(1);
  std::vector<size_t> sizes = {1, 2, vector - 1, vector, vector + 1, 2 * vector - 1, 2 * vector + 1, 2 * tile + 1};
  for (size_t n = tile - vector - 1; n <= tile + vector + 1; n++) sizes.push_back(n);
  for (size_t n : sizes) {
    if (test_leaves_out()) continue;
    EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr, n, 0, &scratch));
    const O expected = out.first();
    for (size_t shift = 1; shift < vector; shift++) {
      device_array<T> shifted(first_of(host, n), shift);
      out.clear();
      EXPECT_OK(gk_reduce_sum(shifted.ptr, out.ptr, n, 0, &scratch));
      EXPECT_SAME(out.first(), expected, "sum of %s, n = %zu, shift %zu", name, n, shift);
    }
  }
}
#define CHECK_ENDS(name, T) check_ends_of_type<T, hook_widened<T>::type>(#name);
TEST(same_bits_wherever_an_array_ends) { FLOAT_TYPES(CHECK_ENDS) CHECK_ENDS(u8, unsigned char) }

/* Elements that have an index may have the same one, and then the last of them is the result, in every type. */
template <class V> static gk_arg<V> least_of_equal_indices() {
  const std::vector<gk_arg<V>> host = {{V(0), 5}, {V(-0.0), 5}};
  device_array<gk_arg<V>> in(host), out(1);
  EXPECT_OK(gk_reduce(in.ptr, out.ptr, 2, gk_op_argmin()));
  return out.first();
}
TEST(equal_indices) {
  EXPECT(std::signbit(least_of_equal_indices<float>().value));
  EXPECT(std::signbit(least_of_equal_indices<double>().value));
}

/* Such elements may lie across two chunks. */
TEST(elements_of_16_bytes_that_are_aligned_to_8) {
  typedef gk_arg<double> element;
  const size_t most = 3 * hook_reduce_tile<element>::items + 5;
  std::vector<element> host(most);
  for (size_t i = 0; i < most; i++) host[i] = element{gauss(5, i), i};
  device_array<element> in(host), out(2);
  device_array<double> room(2 * most + 1);
  element *const between = reinterpret_cast<element *>(room.ptr + 1);
  EXPECT_OK(cudaMemcpy(between, in.ptr, most * sizeof(element), cudaMemcpyDeviceToDevice));
  for (size_t n : {size_t(1), size_t(300), most}) {
    EXPECT_OK(gk_reduce_argmin(in.ptr, out.ptr, n));
    EXPECT_OK(gk_reduce_argmin(between, out.ptr + 1, n));
    EXPECT_SAME(out.get()[1], out.get()[0], "n = %zu", n);
  }
}

TEST(same_bits_of_products) {
  std::vector<float> host(100000);
  for (size_t i = 0; i < host.size(); i++) host[i] = static_cast<float>(1 + gauss(4, i) / 1024);
  check_bits<gk_op_prod, float, float>("product of f32", host);
}

TEST(same_bits_past_one_tile_for_each_partition) {
  const size_t limit = items_of_all_partitions<gk_op_sum, double>();
  const std::vector<double> host = random_elements<double>(3, limit + 3000);
  check_bits<gk_op_sum, double, double>("sum of f64", host);
}

TEST(same_bits_a_hundred_times) {
  const std::vector<float> host = random_elements<float>(3, 9 * hook_reduce_tile<float>::items + 5);
  test_scratch scratch;
  device_array<float> in(host), out(100);
  for (int i = 0; i < 100; i++) EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr + i, host.size(), 0, &scratch));
  EXPECT_SAME(out.get(), std::vector<float>(100, out.first()), "100 sums");
}

/* --- values ---------------------------------------------------------------------------------------------------------*/

/* Around one tile for each partition, where the partitions begin to have more. */
TEST(every_partition_and_tile_is_seen) {
  const size_t limit = items_of_all_partitions<gk_op_sum, int32_t>(), tile = hook_reduce_tile<int32_t>::items;
  std::vector<int32_t> host(limit + tile + 1);
  for (size_t i = 0; i < host.size(); i++) host[i] = static_cast<int32_t>(mix(8, i) >> 33);
  device_array<int32_t> in(host), shifted(host, 1), out(2);
  test_scratch scratch;
  for (size_t n : {limit - 1, limit, limit + 1, limit + tile + 1}) {
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += static_cast<uint32_t>(host[i]);
    EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr, n, 0, &scratch));
    EXPECT_OK(gk_reduce_sum(shifted.ptr, out.ptr + 1, n, 0, &scratch));
    EXPECT_SAME(out.get(), std::vector<int32_t>(2, static_cast<int32_t>(sum)), "n = %zu", n);
  }
  device_array<gk_arg<int32_t>> arg(1);
  in.set(limit + tile, INT32_MAX);
  EXPECT_OK(gk_reduce_argmax(in.ptr, arg.ptr, host.size(), 0, &scratch));
  EXPECT_SAME(arg.first(), (gk_arg<int32_t>{INT32_MAX, limit + tile}), "argmax");
}

TEST(bytes_do_not_overflow) {
  const size_t n = size_t(1) << 22;
  device_array<int8_t> least(n);
  device_array<uint8_t> most(n);
  device_array<long long> out(1);
  device_array<unsigned long long> out_unsigned(1);
  EXPECT_OK(cudaMemset(least.ptr, 0x80, n));
  EXPECT_OK(cudaMemset(most.ptr, 0xff, n));
  EXPECT_OK(gk_reduce_sum(least.ptr, out.ptr, n));
  EXPECT_EQ(out.first(), -(128ll << 22));
  EXPECT_OK(gk_reduce_sum(least.ptr + 1, out.ptr, n - 1));
  EXPECT_EQ(out.first(), -(128ll << 22) + 128);
  EXPECT_OK(gk_reduce_sum(most.ptr, out_unsigned.ptr, n));
  EXPECT_EQ(out_unsigned.first(), 255ull << 22);
}

TEST(integers_wrap) {
  const std::vector<int32_t> most(70001, INT32_MAX);
  device_array<int32_t> in(most), out(1);
  device_array<int64_t> wide(1);
  const uint32_t wrapped = 70001u * static_cast<uint32_t>(INT32_MAX);
  EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr, most.size()));
  EXPECT_EQ(out.first(), static_cast<int32_t>(wrapped));
  EXPECT_OK(gk_reduce_sum(in.ptr, wide.ptr, most.size())); /* works in its type, and is then widened */
  EXPECT_EQ(wide.first(), int64_t(static_cast<int32_t>(wrapped)));
}

/* What a reduction of special values is, for a type with NaN and infinities. */
template <class T> struct special_values {
  typedef plain_type<T> V;
  const V nan = std::numeric_limits<V>::quiet_NaN(), inf = std::numeric_limits<V>::infinity();
  test_scratch scratch;
  device_array<V> sum{1};
  device_array<T> least{1}, most{1};
  device_array<gk_arg<V>> first_least{1}, first_most{1};

  void check(const std::vector<T> &host, V expected_sum, V min, size_t at_min, V max, size_t at_max, const char *what) {
    const size_t n = host.size();
    for (size_t shift : {0u, 1u}) {
      device_array<T> in(host, shift);
      EXPECT_OK(gk_reduce_sum(in.ptr, sum.ptr, n, 0, &scratch));
      EXPECT_OK(gk_reduce_min(in.ptr, least.ptr, n, 0, &scratch));
      EXPECT_OK(gk_reduce_max(in.ptr, most.ptr, n, 0, &scratch));
      EXPECT_OK(gk_reduce_argmin(in.ptr, first_least.ptr, n, 0, &scratch));
      EXPECT_OK(gk_reduce_argmax(in.ptr, first_most.ptr, n, 0, &scratch));
      const gk_arg<V> argmin = first_least.first(), argmax = first_most.first();
      EXPECT_SAME(sum.first(), expected_sum, "sum of %s, n = %zu", what, n);
      EXPECT_SAME(plain(least.first()), min, "min of %s, n = %zu", what, n);
      EXPECT_SAME(plain(most.first()), max, "max of %s, n = %zu", what, n);
      /* of zeros of both signs the first, not the least */
      EXPECT_SAME(argmin.value, n ? plain(host[at_min]) : min, "argmin of %s, n = %zu", what, n);
      EXPECT_SAME(argmax.value, n ? plain(host[at_max]) : max, "argmax of %s, n = %zu", what, n);
      EXPECT_EQ(argmin.index, at_min);
      EXPECT_EQ(argmax.index, at_max);
    }
  }
  void check_all() {
    const size_t none = SIZE_MAX, tile = hook_reduce_tile<T>::items;
    const T zero = make<T>(0), minus_zero = make<T>(-0.0), not_a_number = make<T>(static_cast<double>(nan));
    const T infinite = make<T>(static_cast<double>(inf)), minus_infinite = make<T>(-static_cast<double>(inf));
    check({}, 0, inf, none, -inf, none, "nothing");
    check({zero, minus_zero}, 0, V(-0.0), 0, 0, 0, "0, -0");
    check({minus_zero, zero}, 0, V(-0.0), 0, 0, 0, "-0, 0");
    check(std::vector<T>(40, minus_zero), 0, V(-0.0), 0, V(-0.0), 0, "-0 alone");
    for (size_t n : {size_t(1), size_t(33), tile + 1, 3 * tile}) {
      check(std::vector<T>(n, not_a_number), nan, nan, 0, nan, 0, "NaN alone");
      check(std::vector<T>(n, infinite), inf, inf, 0, inf, 0, "infinity alone");
      check(std::vector<T>(n, minus_infinite), -inf, -inf, 0, -inf, 0, "-infinity alone");
      std::vector<T> host(n, make<T>(-1));
      host[n / 2] = infinite;
      check(host, inf, n > 1 ? -1 : inf, 0, inf, n / 2, "infinity among others");
      host[n - 1] = minus_infinite;
      if (n > 1) check(host, nan, -inf, n - 1, inf, n / 2, "both infinities");
      for (size_t place : {size_t(0), n / 3, n - 1}) {
        std::vector<T> poisoned(host);
        poisoned[place] = not_a_number;
        check(poisoned, nan, nan, place, nan, place, "one NaN");
        poisoned[n - 1] = not_a_number;
        check(poisoned, nan, nan, place, nan, place, "two NaNs");
      }
      for (size_t i = 3; i < n; i += 7) host[i] = not_a_number; /* a thread meets several, not in the order of all */
      if (n > 3) check(host, nan, nan, 3, nan, 3, "many NaNs");
    }
  }
};
TEST(nan_infinity_and_zero_f32) { special_values<float>().check_all(); }
TEST(nan_infinity_and_zero_f16) { special_values<__half>().check_all(); }

TEST(extreme_integers_have_an_index) {
  for (size_t n : {size_t(1), size_t(5000)}) {
    device_array<int32_t> most(std::vector<int32_t>(n, INT32_MAX)), least(std::vector<int32_t>(n, INT32_MIN));
    device_array<gk_arg<int32_t>> out(2);
    EXPECT_OK(gk_reduce_argmin(most.ptr, out.ptr, n));
    EXPECT_OK(gk_reduce_argmax(least.ptr, out.ptr + 1, n));
    EXPECT_SAME(out.get()[0], (gk_arg<int32_t>{INT32_MAX, 0}), "argmin, n = %zu", n);
    EXPECT_SAME(out.get()[1], (gk_arg<int32_t>{INT32_MIN, 0}), "argmax, n = %zu", n);
  }
}

TEST(overflow_and_underflow_follow_ieee) {
  device_array<float> in(std::vector<float>(5000, FLT_MAX)), out(1);
  EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr, 5000));
  EXPECT_SAME(out.first(), HUGE_VALF, "sum of the largest");
  device_array<float> tiny(std::vector<float>(5000, 1e-44f));
  EXPECT_OK(gk_reduce_sum(tiny.ptr, out.ptr, 5000)); /* subnormal numbers add exactly */
  EXPECT_SAME(out.first(), 5000 * 1e-44f, "sum of subnormals");
}

TEST(other_types_of_output) {
  const std::vector<__half> host(1000, make<__half>(60000));
  device_array<__half> in(host), half_out(1);
  device_array<float> float_out(1);
  device_array<double> double_out(1);
  device_array<gk_arg<__half>> arg_out(1);
  EXPECT_OK(gk_reduce_sum(in.ptr, float_out.ptr, 1000));
  EXPECT_EQ(float_out.first(), 6e7f);
  EXPECT_OK(gk_reduce_sum(in.ptr, double_out.ptr, 1000));
  EXPECT_EQ(double_out.first(), 6e7);
  EXPECT_OK(gk_reduce_sum(in.ptr, half_out.ptr, 1000));
  EXPECT_SAME(plain(half_out.first()), HUGE_VALF, "a half cannot hold it");
  EXPECT_OK(gk_reduce_argmin(in.ptr, arg_out.ptr, 1000));
  EXPECT_EQ(plain(arg_out.first().value), 60000.0f);
  EXPECT_EQ(arg_out.first().index, size_t(0));
}

/* The longest chain of roundings is as the header says: n / 2^19 + 24 of half a unit in the last place each. Larger n,
 * and other data, are in test_accuracy.cu. */
TEST(error_of_float_sums_grows_slowly) {
  const size_t largest = size_t(1) << (on_cpu ? (test_slowed() ? 18 : 22) : (test_slowed() ? 20 : 26));
  std::vector<float> host(largest);
  for (size_t i = 0; i < largest; i++) host[i] = static_cast<float>(gauss(5, i) + 3) / 7;
  device_array<float> in(host), out(1);
  for (size_t n : {size_t(1000), std::min(largest, size_t(1) << 20), largest}) {
    double exact = 0;
    for (size_t i = 0; i < n; i++) exact += static_cast<double>(host[i]);
    EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr, n));
    const double error = fabs(static_cast<double>(out.first()) - exact) / exact;
    const double roundings = static_cast<double>(n) / (1 << 19) + 24;
    if (!(error <= roundings / (1 << 24))) test_fail(__FILE__, __LINE__, sentence("n = %zu: error %g", n, error));
  }
}

/* --- functors of one's own ------------------------------------------------------------------------------------------*/

struct spread { /* 12 bytes */
  int count, least, most;
  __host__ __device__ spread() {}
  __host__ __device__ spread(int x) : count(1), least(x), most(x) {}
};
struct join_spreads {
  __host__ __device__ spread identity() const {
    spread none(INT32_MAX);
    none.count = 0, none.most = INT32_MIN;
    return none;
  }
  __host__ __device__ spread operator()(const spread &x, const spread &y) const {
    spread both(0);
    both.count = x.count + y.count;
    both.least = x.least < y.least ? x.least : y.least;
    both.most = x.most > y.most ? x.most : y.most;
    return both;
  }
};
struct moments { /* 24 bytes */
  long long count, sum, squares;
  __host__ __device__ moments() {}
  __host__ __device__ moments(int x) : count(1), sum(x), squares(static_cast<long long>(x) * x) {}
};
struct add_moments {
  __host__ __device__ moments identity() const {
    moments none(0);
    none.count = 0;
    return none;
  }
  __host__ __device__ moments operator()(const moments &x, const moments &y) const {
    moments both(0);
    both.count = x.count + y.count, both.sum = x.sum + y.sum, both.squares = x.squares + y.squares;
    return both;
  }
};
struct tally { /* 40 bytes: the work area has room for fewer partitions than there could be */
  unsigned count[10];
  __host__ __device__ tally() {}
  __host__ __device__ tally(int x) {
    for (int i = 0; i < 10; i++) count[i] = i == (x % 10 + 10) % 10;
  }
};
struct add_tallies {
  __host__ __device__ tally identity() const {
    tally none(0);
    none.count[0] = 0;
    return none;
  }
  __host__ __device__ tally operator()(const tally &x, const tally &y) const {
    tally both(0);
    for (int i = 0; i < 10; i++) both.count[i] = x.count[i] + y.count[i];
    return both;
  }
};

/* A functor over elements that its working type is made from, or over elements of the working type itself. */
template <class T, class Op> static void check_functor(const char *name, bool past_the_partitions) {
  typedef typename hook_working<Op>::type A;
  const size_t tile = hook_reduce_tile<T>::items, limit = items_of_all_partitions<Op, T>();
  const size_t largest = past_the_partitions ? limit + tile + 1 : 9 * tile + 5;
  std::vector<T> host;
  for (size_t i = 0; i < largest; i++) host.push_back(T(uniform(6, i, -1000, 1000)));
  device_array<T> in(host);
  device_array<A> out(1);
  test_scratch scratch;
  std::vector<size_t> sizes = {0, 1, 31, 33, tile - 1, tile, tile + 1, largest};
  if (past_the_partitions) sizes.push_back(limit);
  for (size_t n : sizes) {
    A expected = Op().identity();
    for (size_t i = 0; i < n; i++) expected = Op()(expected, static_cast<A>(host[i]));
    EXPECT_OK(gk_reduce(in.ptr, out.ptr, n, Op(), 0, &scratch));
    EXPECT_SAME(out.first(), expected, "%s, n = %zu", name, n);
  }
}
TEST(functor_on_12_bytes) { check_functor<spread, join_spreads>("spreads", true); }
TEST(functor_on_24_bytes) { check_functor<moments, add_moments>("moments", false); }
TEST(functor_from_another_type) { check_functor<int, add_moments>("moments of int", false); }
TEST(functor_larger_than_the_work_area_likes) { check_functor<int, add_tallies>("tallies of int", true); }

/* With many tiles there are more partitions than resident blocks, and more than a thread of the last block loads at a
 * time. A test may give a plan of fewer tiles as many partitions. */
TEST(many_partitions) {
  const size_t tile = hook_reduce_tile<int>::items, n = (HOOK_REDUCE_MANY_PARTITIONS + 3) * tile - 1;
  const size_t many = size_t(HOOK_REDUCE_MANY_TILES) * tile;
  EXPECT_EQ(hook_plan_reduce(many - tile, tile, sizeof(hook_slot<int>)), unsigned(HOOK_REDUCE_PARTITIONS));
  EXPECT_EQ(hook_plan_reduce(many, tile, sizeof(hook_slot<int>)), unsigned(HOOK_REDUCE_MANY_PARTITIONS));
  EXPECT_EQ(hook_plan_reduce(many, tile, sizeof(hook_slot<gk_arg<int>>)), unsigned(HOOK_REDUCE_PARTITIONS));
  std::vector<int> host(n);
  int expected = 0;
  for (size_t i = 0; i < n; i++) expected += host[i] = uniform(9, i, -1000, 1000);
  device_array<int> in(host), out(1);
  test_scratch scratch;
  EXPECT_OK(hook_reduce({"gk_reduce", 0, &scratch}, in.ptr, out.ptr, n, gk_sum<int>(), HOOK_REDUCE_MANY_PARTITIONS));
  EXPECT_EQ(out.first(), expected);
}

/* --- scratch --------------------------------------------------------------------------------------------------------*/

TEST(one_scratch_serves_all) {
  const std::vector<float> host = random_elements<float>(3, 300000);
  std::vector<int8_t> bytes(host.size());
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<int8_t>(uniform(7, i, -128, 127));
  device_array<float> in(host), sums(1), fresh(1);
  device_array<int8_t> byte_in(bytes);
  device_array<long long> byte_sum(1);
  device_array<gk_arg<float>> arg(1);
  test_scratch scratch;
  for (size_t n : {size_t(300000), size_t(4097), size_t(5), size_t(123457), size_t(0), size_t(300000)}) {
    long long byte_expected = 0;
    gk_arg<float> least = {HUGE_VALF, SIZE_MAX};
    for (size_t i = 0; i < n; i++) {
      byte_expected += bytes[i];
      if (host[i] < least.value) least = gk_arg<float>{host[i], i};
    }
    EXPECT_OK(gk_reduce_sum(in.ptr, fresh.ptr, n));
    EXPECT_OK(gk_reduce_sum(in.ptr, sums.ptr, n, 0, &scratch));
    EXPECT_OK(gk_reduce_argmin(in.ptr, arg.ptr, n, 0, &scratch));
    EXPECT_ERROR(cudaErrorInvalidValue, "input is NULL",
                 gk_reduce_sum(static_cast<const float *>(NULL), sums.ptr, 1, 0, &scratch));
    EXPECT_OK(gk_reduce_sum(byte_in.ptr, byte_sum.ptr, n, 0, &scratch));
    EXPECT_SAME(sums.first(), fresh.first(), "sum, n = %zu", n);
    EXPECT_SAME(arg.first(), least, "argmin, n = %zu", n);
    EXPECT_EQ(byte_sum.first(), byte_expected);
  }
}

/* The last block reads slots while others write them: see the test of this name in test_scan.cu. */
TEST(slots_are_read_while_they_are_written) {
  const std::vector<float> host = random_elements<float>(3, 300000);
  const std::vector<float>::const_iterator least = std::min_element(host.begin(), host.end());
  const gk_arg<float> expected_arg = {*least, static_cast<size_t>(least - host.begin())};
  const size_t repeats = test_repeats_of_races();
  const device_array<float> in(host);
  device_array<float> sums(repeats), expected(1);
  device_array<gk_arg<float>> args(repeats);
  const test_scratch scratch;
  EXPECT_OK(gk_reduce_sum(in.ptr, expected.ptr, host.size(), 0, &scratch));
  for (size_t i = 0; i < repeats; i++) {
    EXPECT_OK(cudaMemsetAsync(scratch.ptr, 0, scratch.bytes, 0));
    EXPECT_OK(gk_reduce_sum(in.ptr, sums.ptr + i, host.size(), 0, &scratch));
    EXPECT_OK(cudaMemsetAsync(scratch.ptr, 0, scratch.bytes, 0));
    EXPECT_OK(gk_reduce_argmin(in.ptr, args.ptr + i, host.size(), 0, &scratch));
  }
  EXPECT_SAME(sums.get(), std::vector<float>(repeats, expected.first()), "sum");
  EXPECT_SAME(args.get(), std::vector<gk_arg<float>>(repeats, expected_arg), "argmin");
}

/* When epochs run out all slots are cleared. */
TEST(epochs_run_out) {
  const std::vector<float> host = random_elements<float>(3, 300000);
  device_array<float> in(host), sum(1), before(1);
  test_scratch scratch;
  EXPECT_OK(gk_reduce_sum(in.ptr, before.ptr, host.size(), 0, &scratch));
  scratch.fill_slots(HOOK_STATE_BYTES, HOOK_REDUCE_BYTES);
  scratch.set_epochs(0xfffffffdu);
  const unsigned epochs[] = {0xfffffffeu, 0, 1, 2};
  for (int i = 0; i < 4; i++) {
    const size_t n = i < 2 ? 5000 : host.size();
    EXPECT_OK(gk_reduce_sum(in.ptr, sum.ptr, n, 0, &scratch));
    if (i >= 2) EXPECT_SAME(sum.first(), before.first(), "sum %d", i);
    EXPECT_EQ(scratch.reduce_epochs(), epochs[i]);
    if (i == 1) EXPECT_EQ(scratch.bytes_not_zero(HOOK_STATE_BYTES, HOOK_REDUCE_BYTES), size_t(0));
  }
}

TEST(a_call_without_a_scratch_loses_no_memory) {
  device_array<float> in(std::vector<float>(100000, 1.0f)), out(1);
  const uint64_t before = pool_bytes();
  for (int i = 0; i < 3; i++) EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr, 100000));
  EXPECT_EQ(pool_bytes(), before);
}

TEST(errors_are_told_and_change_nothing) {
  const size_t n = 100000;
  device_array<float> in(std::vector<float>(n, 1.0f)), out(1);
  test_scratch scratch;
  const float *const none = NULL, *const askew = reinterpret_cast<const float *>(reinterpret_cast<char *>(in.ptr) + 2);
  float *const askew_out = reinterpret_cast<float *>(reinterpret_cast<char *>(out.ptr) + 1);
  gk_scratch small = scratch, empty = gk_scratch();
  small.bytes = gk_reduce_scratch_bytes() - 1;
  const struct {
    const float *in;
    float *out;
    size_t n;
    const gk_scratch *scratch;
    const char *detail;
  } cases[] = {
      {none, out.ptr, n, &scratch, "gk_reduce: input is NULL, but the call uses 100000 of its elements"},
      {in.ptr, NULL, n, &scratch, "gk_reduce: output is NULL, but the call uses 1 of its elements"},
      {none, NULL, 0, &scratch, "gk_reduce: output is NULL, but the call uses 1 of its elements"},
      {askew, out.ptr, n - 1, &scratch, "gk_reduce: input is not aligned to its elements' 4 bytes"},
      {in.ptr, askew_out, n, &scratch, "gk_reduce: output is not aligned to its elements' 4 bytes"},
      {in.ptr, out.ptr, SIZE_MAX / 4 + 1, &scratch, "n = 4611686018427387904 elements of 4 bytes are more than memory"},
      {in.ptr, out.ptr, SIZE_MAX, NULL, "are more than memory can address"},
      {in.ptr, out.ptr, n, &small,
       "gk_reduce: the scratch has 33023 bytes, but 33024 are needed: create it with at least that many"},
      {in.ptr, out.ptr, n, &empty, "gk_reduce: the scratch is empty: gk_scratch_create it first, or pass NULL"},
      {in.ptr, out.ptr, 1, &empty, "gk_reduce: the scratch is empty"},
  };
  for (const auto &c : cases) {
    EXPECT_ERROR(cudaErrorInvalidValue, c.detail, gk_reduce_sum(c.in, c.out, c.n, 0, c.scratch));
    EXPECT(out.untouched());
    EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr, n, 0, &scratch));
    EXPECT_EQ(gk_error_detail(), std::string());
    EXPECT_EQ(out.first(), 100000.0f);
    out.clear();
  }
  /* 24-byte elements: the count overflows earlier; one that fits in size_t does not */
  device_array<moments> wide(1);
  EXPECT_ERROR(cudaErrorInvalidValue, "of 24 bytes are more than memory",
               gk_reduce(static_cast<const moments *>(wide.ptr), wide.ptr, SIZE_MAX / 24 + 1, add_moments()));
  /* one tile needs no scratch, and none that is too small is minded */
  EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr, 4096, 0, &small));
  EXPECT_EQ(out.first(), 4096.0f);
  EXPECT_OK(gk_reduce_sum(none, out.ptr, 0, 0, &scratch));
  EXPECT_EQ(out.first(), 0.0f);
}

TEST(an_error_from_elsewhere_is_neither_reported_nor_cleared) {
  device_array<float> in(std::vector<float>(10000, 1.0f)), out(1);
  EXPECT(cudaSetDevice(12345) != cudaSuccess);
  EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr, 10000));
  EXPECT_EQ((int)cudaPeekAtLastError(), (int)cudaErrorInvalidDevice);
  EXPECT_EQ((int)cudaGetLastError(), (int)cudaErrorInvalidDevice);
  EXPECT_EQ(out.first(), 10000.0f);
}

/* --- streams, threads, graphs ---------------------------------------------------------------------------------------*/

TEST(several_streams_at_once) {
  const std::vector<float> host = random_elements<float>(3, 200000);
  device_array<float> in(host), alone(20), out(80);
  for (size_t i = 0; i < 20; i++) EXPECT_OK(gk_reduce_sum(in.ptr, alone.ptr + i, 10000 * (i + 1)));
  const std::vector<float> expected = alone.get();
  test_stream streams[4];
  test_scratch scratch[3];
  for (size_t i = 0; i < 20; i++)
    for (size_t s = 0; s < 4; s++) /* the last stream goes without */
      EXPECT_OK(
          gk_reduce_sum(in.ptr, out.ptr + 20 * s + i, 10000 * (i + 1), streams[s].stream, s < 3 ? &scratch[s] : NULL));
  const std::vector<float> got = out.get();
  for (size_t s = 0; s < 4; s++)
    EXPECT_SAME(std::vector<float>(got.data() + 20 * s, got.data() + 20 * s + 20), expected, "stream %zu", s);
}

TEST(two_threads_at_once) {
  const std::vector<float> host = random_elements<float>(3, 100000);
  device_array<float> in(host), alone(30), out(60);
  for (size_t i = 0; i < 30; i++) EXPECT_OK(gk_reduce_max(in.ptr, alone.ptr + i, 3000 * i + 1));
  test_stream streams[2];
  test_scratch scratch[2];
  cudaError_t status[2] = {cudaSuccess, cudaSuccess};
  std::string detail[2];
  std::thread threads[2];
  for (size_t t = 0; t < 2; t++)
    threads[t] = std::thread([&, t] {
      for (size_t i = 0; i < 30 && status[t] == cudaSuccess; i++)
        status[t] = gk_reduce_max(in.ptr, out.ptr + 30 * t + i, 3000 * i + 1, streams[t].stream, &scratch[t]);
      /* each thread has its own detail */
      if (t == 1) (void)gk_reduce_max(in.ptr, static_cast<float *>(NULL), 1);
      detail[t] = gk_error_detail();
    });
  for (std::thread &t : threads) t.join();
  const std::vector<float> got = out.get(), expected = alone.get();
  for (size_t t = 0; t < 2; t++) {
    EXPECT_OK(status[t]);
    EXPECT_SAME(std::vector<float>(got.data() + 30 * t, got.data() + 30 * t + 30), expected, "thread %zu", t);
  }
  EXPECT_EQ(detail[0], "");
  EXPECT_HAS(detail[1].c_str(), "output is NULL");
}

static void check_graph(const gk_scratch *scratch) {
  const size_t n = 100000;
  std::vector<int32_t> host(n);
  device_array<int32_t> in(host), out(2);
  replay_graph(
      20,
      [&](cudaStream_t stream) {
        EXPECT_OK(gk_reduce_sum(in.ptr, out.ptr, n, stream, scratch));
        EXPECT_OK(gk_reduce_max(in.ptr, out.ptr + 1, n, stream, scratch));
      },
      [&](int i) {
        for (size_t j = 0; j < n; j++) host[j] = uniform(static_cast<uint64_t>(i), j, -1000000, 1000000);
        in.set(host);
        out.clear();
      },
      [&](int i) {
        int32_t sum = 0, most = INT32_MIN;
        for (int32_t x : host) {
          sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(x));
          most = x > most ? x : most;
        }
        EXPECT_SAME(out.get(), (std::vector<int32_t>{sum, most}), "replay %d", i);
      });
}
TEST(graph_with_a_scratch) {
  test_scratch scratch;
  check_graph(&scratch);
}
TEST(graph_without_a_scratch) { check_graph(NULL); }

/* --- past 2^32 ------------------------------------------------------------------------------------------------------*/

TEST(more_than_2_to_the_32_elements) {
  const size_t n = (size_t(1) << 32) + 77777, place = n - 5;
  need_device_bytes(n + (size_t(1) << 30));
  device_array<uint8_t> in(n);
  device_array<unsigned long long> sum(1);
  device_array<gk_arg<uint8_t>> arg(1);
  EXPECT_OK(cudaMemset(in.ptr, 1, n));
  in.set(place, 3);
  EXPECT_OK(gk_reduce_sum(in.ptr, sum.ptr, n));
  EXPECT_EQ(sum.first(), n + 2);
  EXPECT_OK(gk_reduce_argmax(in.ptr, arg.ptr, n));
  EXPECT_SAME(arg.first(), (gk_arg<uint8_t>{3, place}), "argmax");
  EXPECT_OK(gk_reduce_argmax(in.ptr + 1, arg.ptr, n - 1));
  EXPECT_SAME(arg.first(), (gk_arg<uint8_t>{3, place - 1}), "argmax, misaligned");
}
