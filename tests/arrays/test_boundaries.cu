/* Reduce and scan one element below, at and above every size at which their plans change: the first tile, the first
 * partition with two tiles, the switch from few to many elements a thread, groups of tiles, and what a tile's look-back
 * reaches. The plans themselves say where that is, so the list follows them. All results are checked on the device. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "hooks.h"
#include "on_device.h"

/* The stand-in goes as far as it takes to have every kind of boundary once. */
static const size_t most = on_cpu ? (size_t(1) << 21) + 300000 : size_t(1) << (test_slowed() ? 17 : 24);

/* The largest n in [from, to] up to which what(n) is what(from). */
template <class F> static size_t last_alike(size_t from, size_t to, const F &what) {
  const auto first = what(from);
  if (what(to) == first) return to;
  while (to - from > 1) {
    const size_t middle = from + (to - from) / 2;
    (what(middle) == first ? from : to) = middle;
  }
  return from;
}
/* n - 1, n and n + 1 of each, none twice, and none too large. */
static std::vector<size_t> around(const std::vector<size_t> &places) {
  std::vector<bool> seen(most + 2);
  for (size_t n : places)
    for (size_t at : {n - 1, n, n + 1})
      if (at <= most) seen[at] = true;
  std::vector<size_t> sizes;
  for (size_t n = 0; n <= most; n++)
    if (seen[n]) sizes.push_back(n);
  return sizes;
}

template <class Op, class T> static std::vector<size_t> boundaries_of_reduce() {
  typedef typename hook_working<typename hook_functor<Op, T>::reduce>::type A;
  typedef hook_reduce_tile<T> tile_of;
  const size_t tile = tile_of::items;
  const size_t all = hook_plan_reduce(4096 * tile, tile, sizeof(hook_slot<A>)) * tile;
  return around({1, tile_of::vector_width, 32 * tile_of::vector_width, tile_of::vector_stride,
                 3 * tile_of::vector_stride, tile, 2 * tile, 32 * tile, HOOK_REDUCE_THREADS * tile, all - tile, all,
                 all + tile, 2 * all});
}
template <class T, class O> static std::vector<size_t> boundaries_of_scan() {
  const auto items = [](size_t n) { return hook_plan_scan(n, hook_scan_item_bytes<T, O>()).items_per_thread; };
  std::vector<size_t> places = {1, 16, 32};
  /* Of each stretch with the same number of elements a thread: its end, and tiles and groups in it. */
  for (size_t from = 1; from < most;) {
    const size_t end = last_alike(from, most, items), own = items(from), tile = own * HOOK_SCAN_THREADS;
    places.insert(places.end(), {own, 32 * own, tile - own, end});
    for (size_t tiles : {1u, 2u, 3u, 31u, 32u, 33u, 64u, 3u * 32, 4u * 32, 5u * 32, 7u * 32, 8u * 32, 65u * 32}) {
      if (tiles * tile > from && tiles * tile <= end) places.push_back(tiles * tile);
    }
    /* a stretch that begins past its first groups: at the next one */
    const size_t group = tile * HOOK_SCAN_GROUP, next = gk_round_up(from + 1, group);
    if (next <= end) places.push_back(next);
    from = end + 1;
  }
  return around(places);
}

template <class Op, class T, class O> static void check_reduce(const char *name) {
  device_array<T> x(most + 1);
  device_array<O> out(1);
  device_array<unsigned long long> total(std::vector<unsigned long long>(1, 0));
  wrong_count wrong;
  test_scratch scratch;
  EXPECT_OK(fill(x.ptr, x.n, 3, 0));
  for (size_t n : boundaries_of_reduce<Op, T>())
    for (size_t shift : {0u, 1u}) { /* there is another element past the end */
      EXPECT_OK(gk_reduce(x.ptr + shift, out.ptr, n, Op(), 0, &scratch));
      EXPECT_OK(check_sum(x.ptr + shift, out.ptr, n, total.ptr, wrong.ptr, 0));
      if (wrong.first()) test_fail(__FILE__, __LINE__, sentence("sum of %s, n = %zu, shift %zu", name, n, shift));
      wrong.set({0});
    }
}
TEST(sums_of_u8) { check_reduce<gk_op_sum, uint8_t, unsigned long long>("u8"); }
TEST(sums_of_f32) { check_reduce<gk_op_sum, float, float>("f32"); }
TEST(sums_of_i64) { check_reduce<gk_op_sum, int64_t, int64_t>("i64"); }

/* Of a functor by itself: its working type is that of the output. */
template <class T, class O, class Op> static void check_scan_of(const char *name, Op op) {
  device_array<T> x(most + 1);
  device_array<O> y(most);
  wrong_count wrong;
  test_scratch scratch(gk_scan_scratch_bytes(most, sizeof(O)));
  EXPECT_OK(fill(x.ptr, x.n, 3, 0));
  for (size_t n : boundaries_of_scan<T, O>()) {
    const size_t shift = n % 2;
    const bool inclusive = n % 3 != 0;
    if (inclusive)
      EXPECT_OK(gk_scan_inclusive(x.ptr + shift, y.ptr, n, op, 0, &scratch));
    else
      EXPECT_OK(gk_scan_exclusive(x.ptr + shift, y.ptr, n, op, 0, &scratch));
    EXPECT_OK(check_scan(x.ptr + shift, y.ptr, n, op, O(op.identity()), inclusive, wrong.ptr, 0));
    if (wrong.first()) test_fail(__FILE__, __LINE__, sentence("scan of %s, n = %zu: %llu", name, n, wrong.first()));
    wrong.set({0});
  }
}
TEST(scans_of_u8) { check_scan_of<uint8_t, uint8_t>("u8", gk_sum<uint8_t>()); }
TEST(scans_of_f32) { check_scan_of<float, float>("f32", gk_sum<float>()); }
TEST(scans_of_affine_maps) { check_scan_of<line, line>("affine maps", compose()); }
TEST(scans_of_i8_in_i64) { check_scan_of<int8_t, int64_t>("i8 in i64", gk_sum<int64_t>()); }

/* --- Elements that begin at a multiple of less than their size: 8 bytes at 4, so that no 16-byte word begins with one --*/

struct couple {
  float low, high;
};
struct add_couples {
  __host__ __device__ couple identity() const { return couple{0, 0}; }
  __host__ __device__ couple operator()(couple x, couple y) const { return couple{x.low + y.low, x.high + y.high}; }
};
struct has_high {
  __device__ bool operator()(couple x) const { return x.high > 0; }
};
TEST(elements_aligned_to_half_their_size) {
  const size_t most_couples = 30000, width = 100;
  std::vector<float> host(2 * most_couples + 3), got(host.size());
  for (size_t i = 0; i < host.size(); i++) host[i] = static_cast<float>(i % 7) - 2;
  for (size_t shift : {0u, 1u, 2u, 3u}) {
    const gk_array<float> x(host);
    gk_array<float> y(host.size());
    gk_array<size_t> kept(1);
    const couple *const in = reinterpret_cast<const couple *>(x.data() + shift);
    couple *const out = reinterpret_cast<couple *>(y.data() + (shift + 1) % 4);
    const auto expect = [&](const char *what, size_t n, const std::vector<couple> &expected) {
      y.copy_to(got);
      size_t wrong = 0;
      for (size_t i = 0; i < 2 * expected.size(); i++) {
        const couple &pair = expected[i / 2];
        wrong += !(got[(shift + 1) % 4 + i] - (i % 2 ? pair.high : pair.low) == 0);
      }
      if (wrong) test_fail(__FILE__, __LINE__, sentence("%s, n = %zu, shift %zu: %zu wrong", what, n, shift, wrong));
    };
    for (size_t n : {1u, 255u, 1024u, 4097u, 30000u}) {
      std::vector<couple> each(n), before(n), selected, of_rows(n / width);
      couple total = {0, 0};
      for (size_t i = 0; i < n; i++) {
        each[i] = couple{host[shift + 2 * i], host[shift + 2 * i + 1]};
        before[i] = total;
        total = add_couples()(total, each[i]);
        if (each[i].high > 0) selected.push_back(each[i]);
        if (i / width < of_rows.size()) of_rows[i / width] = add_couples()(of_rows[i / width], each[i]);
      }
      EXPECT_OK(gk_reduce(in, out, n, add_couples()));
      expect("sum", n, {total});
      EXPECT_OK(gk_scan_exclusive(in, out, n, add_couples()));
      expect("scan", n, before);
      EXPECT_OK(gk_select(in, out, kept, n, has_high()));
      expect("selection", n, selected);
      EXPECT_OK(gk_reduce_rows(in, out, n / width, width, 0, add_couples()));
      expect("sums of rows", n, of_rows);
    }
  }
}

/* --- past 2^32 -----------------------------------------------------------------------------------------------------*/

struct marks { /* places of ones among zeros */
  size_t at[6];
};
__global__ static void count_wrong_steps(const __half *y, size_t n, marks ones, unsigned long long *wrong) {
  GK_FOR_1D (i, n) {
    int before = 0;
    for (size_t place : ones.at) before += place <= i;
    if (!on_device::equal(__half2float(y[i]), static_cast<float>(before))) atomicAdd(wrong, 1ull);
  }
}
TEST(more_than_2_to_the_32_halves) {
  const size_t two_32 = size_t(1) << 32, n = two_32 + 77777;
  need_device_bytes(2 * n + (size_t(1) << 30));
  device_array<__half> x(n);
  device_array<float> sum(1);
  device_array<gk_arg<float>> best(1);
  wrong_count wrong;
  test_scratch scratch(gk_scan_scratch_bytes(n, sizeof(float)));
  const marks ones = {{0, two_32 / 2 + 5, two_32 - 1, two_32, two_32 + 1, n - 1}};
  EXPECT_OK(cudaMemset(x.ptr, 0, n * sizeof(__half)));
  for (size_t place : ones.at) x.set(place, make<__half>(1));
  EXPECT_OK(gk_reduce_sum(x.ptr, sum.ptr, n, 0, &scratch));
  EXPECT_EQ(sum.first(), 6.0f);
  EXPECT_OK(gk_reduce_sum(x.ptr + 1, sum.ptr, n - 1, 0, &scratch));
  EXPECT_EQ(sum.first(), 5.0f);
  x.set(n - 2, make<__half>(2));
  EXPECT_OK(gk_reduce_argmax(x.ptr, best.ptr, n, 0, &scratch));
  EXPECT_SAME(best.first(), (gk_arg<float>{2, n - 2}), "argmax");
  x.set(n - 2, make<__half>(0));
  EXPECT_OK(gk_scan_inclusive(x.ptr, x.ptr, n, gk_op_sum(), 0, &scratch));
  EXPECT_OK(gk_launch(count_wrong_steps, 2048, 256, 0, 0, x.ptr, n, ones, wrong.ptr));
  EXPECT_EQ(wrong.first(), 0ull);
}
