/* gk_reduce: every operator with every type, at the sizes that the algorithm has edges at, against a plain loop.
 *
 * The elements are such that sums and products are exact in any order. One element at a time is made special: the result
 * tells whether that one was seen, and seen once. The rest about gk_reduce is in test_reduce.cu. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "data.h"
#include "hooks.h"

/* Sums and products of integers below 32 bits are 64 bits wide, those of half types are floats. */
template <class T> struct widened {
  typedef typename std::conditional<std::is_signed<T>::value, long long, unsigned long long>::type wide;
  typedef typename std::conditional<is_float<T>::value || sizeof(T) >= 4, plain_type<T>, wide>::type type;
};

template <class Op, class T> struct loop;

template <class T> struct loop<gk_op_sum, T> {
  typedef typename widened<T>::type O;
  typename std::conditional<is_float<T>::value, double, uint64_t>::type sum = 0; /* unsigned: it wraps */
  static T element(size_t i) {
    if constexpr (is_float<T>::value)
      return make<T>(uniform(1, i, -8, 8));
    else
      return static_cast<T>(mix(1, i));
  }
  static T special() { return make<T>(11); }
  void take(T x, size_t) { sum += static_cast<decltype(sum)>(plain(x)); }
  O result() const { return static_cast<O>(sum); }
};
template <class T> struct loop<gk_op_prod, T> {
  typedef typename widened<T>::type O;
  typename std::conditional<is_float<T>::value, double, uint64_t>::type product = 1;
  static T element(size_t i) {
    if constexpr (is_float<T>::value)
      return make<T>((mix(1, i) % 2 ? 1 : -1) * (i % 32768 == 5 ? 2.0 : i % 32768 == 77 ? 0.5 : 1.0));
    else
      return static_cast<T>(mix(1, i) | 1);
  }
  static T special() { return make<T>(3); }
  void take(T x, size_t) { product *= static_cast<decltype(product)>(plain(x)); }
  O result() const { return static_cast<O>(product); }
};
template <class T, bool Greatest> struct loop_best {
  typedef T O;
  typedef std::numeric_limits<plain_type<T>> limits;
  plain_type<T> best = Greatest ? (is_float<T>::value ? -limits::infinity() : limits::lowest())
                                : (is_float<T>::value ? limits::infinity() : limits::max());
  static T element(size_t i) { return is_float<T>::value ? make<T>(gauss(1, i)) : make<T>(uniform(1, i, 10, 100)); }
  static T special() { return make<T>(Greatest ? 120 : is_float<T>::value ? -120 : 3); }
  void take(T x, size_t) {
    if (Greatest ? plain(x) > best : plain(x) < best) best = plain(x);
  }
  O result() const {
    if constexpr (is_half<T>::value)
      return make<T>(static_cast<double>(best));
    else
      return best;
  }
};
template <class T> struct loop<gk_op_min, T> : loop_best<T, false> {};
template <class T> struct loop<gk_op_max, T> : loop_best<T, true> {};
template <class T, bool Greatest> struct loop_argbest : loop_best<T, Greatest> { /* with many ties */
  typedef gk_arg<plain_type<T>> O;
  size_t at = SIZE_MAX;
  static T element(size_t i) { return make<T>(uniform(1, i, 10, 60)); }
  void take(T x, size_t i) {
    const plain_type<T> before = this->best;
    loop_best<T, Greatest>::take(x, i);
    if (this->best > before || this->best < before || at == SIZE_MAX) at = i;
  }
  O result() const { return O{this->best, at}; }
};
template <class T> struct loop<gk_op_argmin, T> : loop_argbest<T, false> {};
template <class T> struct loop<gk_op_argmax, T> : loop_argbest<T, true> {};

template <class Op, class T> static typename loop<Op, T>::O in_a_loop(const std::vector<T> &x, size_t n) {
  loop<Op, T> all;
  for (size_t i = 0; i < n; i++) all.take(x[i], i);
  return all.result();
}

template <class Op, class T>
static cudaError_t reduce(const T *in, typename loop<Op, T>::O *out, size_t n, const gk_scratch *scratch) {
  return gk_reduce(in, out, n, Op(), 0, scratch);
}

/* An operator by its functions, so that what follows is compiled once for each pair of types and not for each operator. */
template <class T, class O> struct operation {
  const char *name;
  T special;
  T (*element)(size_t i);
  O (*in_a_loop)(const std::vector<T> &x, size_t n);
  cudaError_t (*reduce)(const T *in, O *out, size_t n, const gk_scratch *);
};

/* One n: with no element special or the one at `place`, aligned and not. */
template <class T, class O>
static void check_size(const operation<T, O> &op, std::vector<T> &host, device_array<T> &in, size_t n, size_t place,
                       bool thorough, const gk_scratch *scratch) {
  device_array<O> out(1);
  const T kept = host[place];
  if (place < n) in.set(place, host[place] = op.special);
  const O expected = op.in_a_loop(host, n);
  EXPECT_OK(op.reduce(in.ptr, out.ptr, n, scratch));
  EXPECT_SAME(out.first(), expected, "%s, n = %zu, special [%zu]", op.name, n, place);
  for (size_t shift = 1; thorough && shift < 16 / sizeof(T); shift++) {
    if (test_leaves_out()) continue;
    device_array<T> shifted(std::vector<T>(host.data(), host.data() + n), shift);
    out.clear();
    EXPECT_OK(op.reduce(shifted.ptr, out.ptr, n, scratch));
    EXPECT_SAME(out.first(), expected, "%s, n = %zu, shift %zu", op.name, n, shift);
  }
  if (place < n) in.set(place, host[place] = kept);
}

template <class T, class O> static void check_sizes(const operation<T, O> &op) {
  const size_t tile = hook_reduce_tile<T>::items, million = test_slowed() ? 1 << 16 : 1 << 20;
  const size_t sizes[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, tile - 1, tile, tile + 1, 3 * tile + 7};
  test_scratch scratch;
  std::vector<T> host(million + 2);
  for (size_t i = 0; i < host.size(); i++) host[i] = op.element(i);
  device_array<T> in(host);
  for (size_t n : sizes) {
    check_size(op, host, in, n, n, n >= 33, &scratch);
    if (n > 0) check_size(op, host, in, n, n - 1, false, &scratch);
    if (n > 2) check_size(op, host, in, n, mix(2, n) % n, false, &scratch);
  }
  for (size_t n : {million - 1, million + 1}) check_size(op, host, in, n, n - 1, false, &scratch);
}
template <class Op, class T> static void check_type(const char *name) {
  typedef typename loop<Op, T>::O O;
  check_sizes(operation<T, O>{name, loop<Op, T>::special(), loop<Op, T>::element, in_a_loop<Op, T>, reduce<Op, T>});
}
#define CHECK_SUM(name, T) check_type<gk_op_sum, T>("sum of " #name);
#define CHECK_PROD(name, T) check_type<gk_op_prod, T>("product of " #name);
#define CHECK_MIN(name, T) check_type<gk_op_min, T>("min of " #name);
#define CHECK_MAX(name, T) check_type<gk_op_max, T>("max of " #name);
#define CHECK_ARGMIN(name, T) check_type<gk_op_argmin, T>("argmin of " #name);
#define CHECK_ARGMAX(name, T) check_type<gk_op_argmax, T>("argmax of " #name);
TEST(sum_of_every_type){ALL_TYPES(CHECK_SUM)} TEST(product_of_every_type){
    ALL_TYPES(CHECK_PROD)} TEST(min_of_every_type){ALL_TYPES(CHECK_MIN)} TEST(max_of_every_type){
    ALL_TYPES(CHECK_MAX)} TEST(argmin_of_every_type){ALL_TYPES(CHECK_ARGMIN)} TEST(argmax_of_every_type) {
  ALL_TYPES(CHECK_ARGMAX)
}
