/* Sections 6 to 8 of the header: operators, and what warps and blocks do with them. */
#include "hooks.h"
#include "test.h"

#include <cuda_fp16.h>

#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#include "device_array.h"

#include <limits.h>
#include <vector>

/* --- types and operators --- */

/* Composition of affine maps, left one first: associative, not commutative, and any error of order shows. */
template <class Int> struct affine { Int a, b; };
template <class Int> struct compose {
  __host__ __device__ affine<Int> identity() const { return affine<Int>{1, 0}; }
  __host__ __device__ affine<Int> operator()(affine<Int> x, affine<Int> y) const {
    return affine<Int>{static_cast<Int>(x.a * y.a), static_cast<Int>(y.a * x.b + y.b)};
  }
};
/* The same in 4 bits each. */
struct affine_byte {
  unsigned char ab;
};
struct compose_byte {
  __host__ __device__ affine_byte identity() const { return affine_byte{0x10}; }
  __host__ __device__ affine_byte operator()(affine_byte x, affine_byte y) const {
    const unsigned a = (x.ab >> 4) * (y.ab >> 4), b = (y.ab >> 4) * (x.ab & 15u) + (y.ab & 15u);
    return affine_byte{static_cast<unsigned char>((a & 15) << 4 | (b & 15))};
  }
};
/* Runs of neighbours: whatever is joined out of order, twice, or not at all is broken for good. 12 bytes. */
struct run {
  unsigned first, count, broken;
};
struct join {
  __host__ __device__ run identity() const { return run{0, 0, 0}; }
  __host__ __device__ run operator()(run x, run y) const {
    const bool gap = x.count && y.count && x.first + x.count != y.first;
    return run{x.count ? x.first : y.first, x.count + y.count, x.broken | y.broken | gap};
  }
};
/* Triangular matrices: 24 bytes, and without a default constructor. */
struct matrix {
  unsigned long long a, b, c;
  __host__ __device__ matrix(unsigned long long a_, unsigned long long b_, unsigned long long c_)
      : a(a_), b(b_), c(c_) {}
};
struct multiply {
  __host__ __device__ matrix identity() const { return matrix(1, 0, 1); }
  __host__ __device__ matrix operator()(const matrix &x, const matrix &y) const {
    return matrix(x.a * y.a, x.a * y.b + x.b * y.c, x.c * y.c);
  }
};
struct half_sum {
  __host__ __device__ __half identity() const { return __float2half_rn(0); }
  __host__ __device__ __half operator()(__half x, __half y) const {
    return __float2half_rn(__half2float(x) + __half2float(y));
  }
};

static unsigned hash(unsigned i) { return (i + 1) * 2654435761u ^ (i + 3) * 40503u << 7; }
template <class T> static T any(unsigned i) { return static_cast<T>(hash(i) * 0x100000001ull); }
template <class T> static T small(unsigned i) { return static_cast<T>(static_cast<int>(hash(i) % 17) - 8); }
template <class T> static T power(unsigned i) { /* whose products are exact */
  return static_cast<T>(hash(i) % 5 == 0 ? 2 : hash(i) % 5 == 1 ? -0.5 : 1);
}
template <class T> static gk_arg<T> numbered(unsigned i) { return gk_arg<T>{static_cast<T>(hash(i) % 50), i}; }
template <class Int> static affine<Int> map(unsigned i) {
  return affine<Int>{static_cast<Int>(hash(i) | 1), static_cast<Int>(hash(i) >> 9)};
}
static affine_byte map_byte(unsigned i) { return affine_byte{static_cast<unsigned char>(hash(i) >> 5 | 0x10)}; }
static run one(unsigned i) { return run{i, 1, 0}; }
static matrix triangle(unsigned i) { return matrix(hash(i) | 1, i, hash(i + 7) | 1); }
static __half tiny_half(unsigned i) { return __float2half_rn(static_cast<float>(hash(i) % 3) - 1); }

template <class A> static bool equal(const A &x, const A &y) { return memcmp(&x, &y, sizeof(A)) == 0; }
template <class T> static bool equal(const gk_arg<T> &x, const gk_arg<T> &y) {
  return equal(x.value, y.value) && x.index == y.index;
}

template <class A> static std::vector<A> make_input(A (*make)(unsigned), unsigned n) {
  std::vector<A> in;
  for (unsigned i = 0; i < n; i++) in.push_back(make(i));
  return in;
}
/* prefix[i] is what the first i of n elements from `in` amount to. */
template <class Op, class A> static std::vector<A> prefixes(const A *in, size_t n, Op op) {
  std::vector<A> prefix(1, op.identity());
  for (size_t i = 0; i < n; i++) prefix.push_back(op(prefix[i], in[i]));
  return prefix;
}

/* --- warp --- */

enum { WARPS = 3 };
struct warp_kinds {
  enum { reduce, inclusive, exclusive, KINDS };
};

template <class Op, class A> __global__ void warp_kernel(const A *in, A *out, Op op) {
  const unsigned lane = gk_lane(), warp = gk_warp();
  const A value = in[warp * 10 + lane];
  for (unsigned count = 1; count <= 32; count++) {
    if (lane >= count) continue;
    A *const o = out + ((warp * 32 + count - 1) * 32 + lane) * warp_kinds::KINDS;
    o[warp_kinds::reduce] = gk_warp_reduce(value, op, count);
    o[warp_kinds::inclusive] = gk_warp_scan_inclusive(value, op, count);
    o[warp_kinds::exclusive] = gk_warp_scan_exclusive(value, op, count);
  }
}

template <class Op, class A> static void check_warp(const char *name, A (*make)(unsigned)) {
  static const char *const kinds[] = {"reduce", "inclusive scan", "exclusive scan"};
  const Op op = Op();
  const std::vector<A> in = make_input(make, 32 + 10 * WARPS);
  const device_array<A> device_in(in), device_out(WARPS * 32 * 32 * warp_kinds::KINDS);
  for (dim3 block : {dim3(32 * WARPS), dim3(8, 4 * WARPS)}) {
    EXPECT_OK(gk_launch(warp_kernel<Op, A>, 1, block, 0, 0, device_in.p, device_out.p, op));
    const std::vector<A> out = device_out.get(op.identity());
    for (unsigned warp = 0; warp < WARPS; warp++) {
      const std::vector<A> prefix = prefixes(&in[warp * 10], 32, op);
      for (unsigned count = 1; count <= 32; count++)
        for (unsigned lane = 0; lane < count; lane++) {
          const A expected[] = {prefix[count], prefix[lane + 1], prefix[lane]};
          const A *const o = &out[((warp * 32 + count - 1) * 32 + lane) * warp_kinds::KINDS];
          for (int kind = 0; kind < warp_kinds::KINDS; kind++)
            if (!equal(o[kind], expected[kind]))
              test_fail(__FILE__, __LINE__,
                        std::string(name) + ": warp " + kinds[kind] + " of " + std::to_string(count) + ", warp " +
                            std::to_string(warp) + ", lane " + std::to_string(lane));
        }
    }
  }
}

/* --- block --- */

/* Twice over without a barrier of our own between, on values that differ by round and block. */
enum { ROUNDS = 2, BLOCKS = 2 };
struct block_kinds {
  enum { reduce, reduce_again, exclusive, exclusive_total, inclusive, inclusive_total, no_total, KINDS };
};

template <unsigned Threads, class Op, class A>
__global__ void __launch_bounds__(Threads ? Threads : 1024) block_kernel(const A *in, A *out, Op op) {
  const unsigned rank = gk_thread_rank(), block = static_cast<unsigned>(gk_block_rank());
  for (unsigned round = 0; round < ROUNDS; round++) {
    const A value = in[rank + 7 * round + 13 * block];
    A *const o = out + ((block * ROUNDS + round) * gk_block_size() + rank) * block_kinds::KINDS;
    o[block_kinds::reduce] = gk_block_reduce<Threads>(value, op);
    o[block_kinds::reduce_again] = gk_block_reduce<Threads>(in[rank + 7 * round + 13 * block + 5], op);
    o[block_kinds::exclusive] = gk_block_scan_exclusive<Threads>(value, op, &o[block_kinds::exclusive_total]);
    o[block_kinds::inclusive] = gk_block_scan_inclusive<Threads>(value, op, &o[block_kinds::inclusive_total]);
    o[block_kinds::no_total] = gk_block_scan_exclusive<Threads>(value, op);
  }
}

template <unsigned Threads, class Op, class A>
static void check_block_shape(const char *name, const std::vector<A> &in, const device_array<A> &device_in,
                              dim3 block) {
  static const char *const kinds[] = {"reduce",
                                      "second reduce",
                                      "exclusive scan",
                                      "total of the exclusive scan",
                                      "inclusive scan",
                                      "total of the inclusive scan",
                                      "exclusive scan without a total"};
  const Op op = Op();
  const unsigned threads = block.x * block.y * block.z;
  const device_array<A> device_out(BLOCKS * ROUNDS * threads * block_kinds::KINDS);
  EXPECT_OK(gk_launch(block_kernel<Threads, Op, A>, BLOCKS, block, 0, 0, device_in.p, device_out.p, op));
  const std::vector<A> out = device_out.get(op.identity());
  const A *o = out.data();
  for (unsigned b = 0; b < BLOCKS; b++)
    for (unsigned round = 0; round < ROUNDS; round++) {
      const std::vector<A> prefix = prefixes(&in[7 * round + 13 * b], threads, op),
                           again = prefixes(&in[7 * round + 13 * b + 5], threads, op);
      for (unsigned rank = 0; rank < threads; rank++, o += block_kinds::KINDS) {
        const A expected[] = {prefix[threads],  again[threads],  prefix[rank], prefix[threads],
                              prefix[rank + 1], prefix[threads], prefix[rank]};
        for (int kind = 0; kind < block_kinds::KINDS; kind++)
          if (!equal(o[kind], expected[kind]))
            test_fail(__FILE__, __LINE__,
                      std::string(name) + ": block " + kinds[kind] + ", " + std::to_string(block.x) + "x" +
                          std::to_string(block.y) + "x" + std::to_string(block.z) + " threads, round " +
                          std::to_string(round) + ", thread " + std::to_string(rank));
      }
    }
}

static const dim3 shapes[] = {dim3(1),    dim3(2),      dim3(31),    dim3(32),      dim3(33),       dim3(63),
                              dim3(64),   dim3(65),     dim3(96),    dim3(100),     dim3(255),      dim3(256),
                              dim3(257),  dim3(511),    dim3(1000),  dim3(1023),    dim3(1024),     dim3(8, 4),
                              dim3(5, 7), dim3(16, 16), dim3(1, 33), dim3(3, 5, 7), dim3(2, 1, 64), dim3(8, 8, 16)};

template <class Op, class A> static void check_block(const char *name, A (*make)(unsigned)) {
  const std::vector<A> in = make_input(make, 1024 + 7 * ROUNDS + 13 * BLOCKS);
  const device_array<A> device_in(in);
  for (dim3 block : shapes)
    if (!test_leaves_out()) check_block_shape<0, Op>(name, in, device_in, block);
}

template <class Op, class A> static void check(const char *name, A (*make)(unsigned)) {
  check_warp<Op>(name, make);
  check_block<Op>(name, make);
}

TEST(sums) {
  check<gk_sum<int>>("int", any<int>);
  check<gk_sum<unsigned long long>>("unsigned long long", any<unsigned long long>);
  check<gk_sum<signed char>>("signed char", any<signed char>);
  check<gk_sum<float>>("float", small<float>);
  check<gk_sum<double>>("double", small<double>);
}
TEST(products) {
  check<gk_prod<unsigned>>("unsigned", any<unsigned>);
  check<gk_prod<short>>("short", any<short>);
  check<gk_prod<float>>("float", power<float>);
  check<gk_prod<double>>("double", power<double>);
}
TEST(minima_and_maxima) {
  check<gk_min<int>>("int", any<int>);
  check<gk_max<unsigned char>>("unsigned char", any<unsigned char>);
  check<gk_max<long long>>("long long", any<long long>);
  check<gk_min<float>>("float", small<float>);
  check<gk_max<double>>("double", small<double>);
}
TEST(indices_of_minima_and_maxima) {
  check<gk_argmin<float>>("float", numbered<float>);
  check<gk_argmax<float>>("float", numbered<float>);
  check<gk_argmin<unsigned char>>("unsigned char", numbered<unsigned char>);
  check<gk_argmax<double>>("double", numbered<double>);
}
/* Few values, so that many are equal, with zeros of both signs, infinities and NaN; and indices past 2^32 that come in
 * no order, but for the identity's. */
template <class V> static gk_arg<V> special(unsigned i) {
  typedef std::numeric_limits<V> limits;
  const V zero = std::is_signed<V>::value ? static_cast<V>(-V(0)) : V(0);
  const V values[] = {V(0), zero, V(1), limits::max(), limits::infinity(), limits::lowest(), V(2)};
  const unsigned any = hash(2 * i);
  const bool nan = limits::has_quiet_NaN && any % 97 == 0;
  const size_t index = any % 31 == 1 ? SIZE_MAX : static_cast<size_t>(any / 128 % 3) << 32 | hash(i / 2) % 16;
  return gk_arg<V>{nan ? limits::quiet_NaN() : values[any % (1 + i / 16 % 7)], index};
}
TEST(indices_of_equal_and_special_values) {
  check<gk_argmin<float>>("float", special<float>);
  check<gk_argmax<float>>("float", special<float>);
  check<gk_argmin<int>>("int", special<int>);
  check<gk_argmax<unsigned>>("unsigned", special<unsigned>);
  check<gk_argmin<signed char>>("signed char", special<signed char>);
}
TEST(users_own_operators_on_types_of_every_size) {
  check<compose_byte>("1 byte", map_byte);
  check<compose<unsigned char>>("2 bytes", map<unsigned char>);
  check<half_sum>("half", tiny_half);
  check<compose<unsigned>>("8 bytes", map<unsigned>);
  check<join>("12 bytes", one);
  check<multiply>("24 bytes", triangle);
}
/* --- tags, such as gk_op_sum(), stand for the functor of the values' own type, of float for half types --- */

template <class A, class B> __device__ void differ(const A &x, const B &y, unsigned *differences) {
  const A expected = hook_convert<A, B>::from(y);
  unsigned char bytes[2][sizeof(A)];
  memcpy(bytes[0], &x, sizeof(A));
  memcpy(bytes[1], &expected, sizeof(A));
  for (size_t i = 0; i < sizeof(A); i++)
    if (bytes[0][i] != bytes[1][i]) atomicAdd(differences, 1u);
}
template <class T, class V> __device__ void differ(const gk_arg<T> &x, const gk_arg<V> &y, unsigned *differences) {
  differ(x.value, y.value, differences);
  differ(x.index, y.index, differences);
}
/* F works in W, which for half types is wider than A. Blelloch's scan combines in another order and keeps the half types'
 * values as such: so it is compared where all values are exact. */
template <bool Exact, class Tag, class F, class W, class A>
__global__ void by_tag_kernel(const A *in, unsigned *differences) {
  __shared__ unsigned char bytes[sizeof(A) * GK_BLELLOCH_SIZE(128)];
  A *const data = reinterpret_cast<A *>(bytes);
  const A value = in[gk_thread_rank()];
  const W wide = hook_convert<W, A>::from(value);
  differ(gk_warp_reduce(value, Tag()), gk_warp_reduce(wide, F()), differences);
  differ(gk_warp_scan_inclusive(value, Tag()), gk_warp_scan_inclusive(wide, F()), differences);
  differ(gk_warp_scan_exclusive(value, Tag()), gk_warp_scan_exclusive(wide, F()), differences);
  if (gk_lane() < 7) differ(gk_warp_reduce(value, Tag(), 7), gk_warp_reduce(wide, F(), 7), differences);
  A total = value;
  W wide_total = wide;
  differ(gk_block_reduce(value, Tag()), gk_block_reduce(wide, F()), differences);
  differ(gk_block_reduce<128>(value, Tag()), gk_block_reduce<128>(wide, F()), differences);
  differ(gk_block_scan_inclusive(value, Tag(), &total), gk_block_scan_inclusive(wide, F(), &wide_total), differences);
  differ(total, wide_total, differences);
  total = value;
  differ(gk_block_scan_exclusive<128>(value, Tag(), &total), gk_block_scan_exclusive<128>(wide, F()), differences);
  differ(total, wide_total, differences);
  if (!Exact) return;
  data[gk_bank(gk_thread_rank())] = value;
  total = gk_block_scan_blelloch(data, 128, Tag());
  differ(data[gk_bank(gk_thread_rank())], gk_block_scan_exclusive(wide, F()), differences);
  differ(total, wide_total, differences);
}
template <class Tag, class F, bool Exact = true, class A> static void check_tag(A (*make)(unsigned)) {
  const device_array<A> in(make_input(make, 128));
  const device_array<unsigned> differences(std::vector<unsigned>(1, 0));
  EXPECT_OK(
      gk_launch(by_tag_kernel<Exact, Tag, F, typename hook_working<F>::type, A>, 1, 128, 0, 0, in.p, differences.p));
  EXPECT_EQ(differences.get(1)[0], 0u);
}
static gk_arg<__half> numbered_half(unsigned i) {
  return gk_arg<__half>{__float2half_rn(static_cast<float>(hash(i) % 50)), i};
}
/* Of both signs: the sums within are coarser than the sum of all. */
static __half uneven_half(unsigned i) {
  const float size = 1 + static_cast<float>(hash(i) % 1000) / 1024;
  return __float2half_rn(i / 32 % 2 ? size : -size);
}
TEST(tags_stand_for_functors) {
  check_tag<gk_op_sum, gk_sum<float>>(small<float>);
  check_tag<gk_op_sum, gk_sum<signed char>>(any<signed char>);
  check_tag<gk_op_sum, gk_sum<unsigned long long>>(any<unsigned long long>);
  check_tag<gk_op_sum, gk_sum<float>>(tiny_half);
  check_tag<gk_op_sum, gk_sum<float>, false>(uneven_half); /* summed in float, and rounded once */
  check_tag<gk_op_prod, gk_prod<double>>(power<double>);
  check_tag<gk_op_min, gk_min<float>>(small<float>);
  check_tag<gk_op_max, gk_max<int>>(any<int>);
  check_tag<gk_op_max, gk_max<float>>(tiny_half);
  check_tag<gk_op_argmin, gk_argmin<float>>(numbered<float>);
  check_tag<gk_op_argmax, gk_argmax<int>>(numbered<int>);
  check_tag<gk_op_argmin, gk_argmin<float>>(numbered_half);
}

TEST(block_sizes_known_when_compiling) {
  const std::vector<run> in = make_input(one, 1024 + 7 * ROUNDS + 13 * BLOCKS);
  const device_array<run> device_in(in);
  check_block_shape<1, join>("<1>", in, device_in, 1);
  check_block_shape<32, join>("<32>", in, device_in, 32);
  check_block_shape<33, join>("<33>", in, device_in, 33);
  check_block_shape<100, join>("<100>", in, device_in, dim3(10, 10));
  check_block_shape<256, join>("<256>", in, device_in, dim3(16, 16));
  check_block_shape<1024, join>("<1024>", in, device_in, 1024);
}

/* --- shuffle --- */

template <int Size> struct bytes { unsigned char byte[Size]; };
template <int Size> __global__ void shuffle_kernel(unsigned *wrong) {
  const unsigned lane = gk_lane();
  bytes<Size> mine;
  for (unsigned i = 0; i < Size; i++) mine.byte[i] = static_cast<unsigned char>(lane * 37 + i * 11);
  for (unsigned count = 1; count <= 32; count++) {
    if (lane >= count) continue;
    for (unsigned from = 0; from < count; from++) {
      /* all from one lane, and each from another */
      const unsigned source = (lane * 5 + from) % count;
      const bytes<Size> one = gk_shuffle(mine, from, count), other = gk_shuffle(mine, source, count);
      for (unsigned i = 0; i < Size; i++)
        if (one.byte[i] != static_cast<unsigned char>(from * 37 + i * 11) ||
            other.byte[i] != static_cast<unsigned char>(source * 37 + i * 11))
          atomicAdd(wrong, 1u);
    }
  }
}
template <int Size> static void check_shuffle() {
  const device_array<unsigned> wrong(std::vector<unsigned>(1, 0));
  EXPECT_OK(gk_launch(shuffle_kernel<Size>, 1, 64, 0, 0, wrong.p));
  if (wrong.get(0)[0]) test_fail(__FILE__, __LINE__, std::to_string(Size) + " bytes arrive wrong");
}
TEST(shuffle_carries_values_of_any_size) {
  check_shuffle<1>();
  check_shuffle<2>();
  check_shuffle<3>();
  check_shuffle<4>();
  check_shuffle<5>();
  check_shuffle<8>();
  check_shuffle<12>();
  check_shuffle<16>();
  check_shuffle<24>();
  check_shuffle<43>();
}

/* --- Blelloch --- */

/* The second scan follows at once, on data that other threads put there. */
template <class Op, class A> __global__ void blelloch_kernel(const A *in, A *out, A *total, unsigned n, Op op) {
  GK_DYNAMIC_SHARED(A, data);
  const unsigned rank = gk_thread_rank(), threads = gk_block_size();
  for (unsigned i = rank; i < n; i += threads) data[gk_bank(i)] = in[i];
  total[rank] = gk_block_scan_blelloch(data, n, op);
  for (unsigned i = rank; i < n; i += threads) out[i] = data[gk_bank(i)];
  __syncthreads();
  for (unsigned i = threads - 1 - rank; i < n; i += threads) data[gk_bank(i)] = in[i + 5];
  total[threads + rank] = gk_block_scan_blelloch(data, n, op);
  for (unsigned i = rank; i < n; i += threads) out[n + i] = data[gk_bank(i)];
}

template <class Op, class A> static void check_blelloch(const char *name, A (*make)(unsigned)) {
  static const unsigned more[] = {255, 256, 257, 1000, 2048, 3000};
  static const dim3 blocks[] = {dim3(1), dim3(32), dim3(10, 10), dim3(256), dim3(16, 8, 8)};
  const Op op = Op();
  const std::vector<A> in = make_input(make, 3005);
  const device_array<A> device_in(in), device_out(2 * 3000), device_total(2 * 1024);
  for (unsigned i = 0; i < 70 + sizeof(more) / sizeof(*more); i++) {
    const unsigned n = i < 70 ? i + 1 : more[i - 70];
    for (dim3 block : blocks) {
      const unsigned threads = block.x * block.y * block.z;
      EXPECT_OK(gk_launch(blelloch_kernel<Op, A>, 1, block, GK_BLELLOCH_SIZE(n) * sizeof(A), 0, device_in.p,
                          device_out.p, device_total.p, n, op));
      const std::vector<A> out = device_out.get(in[0]), total = device_total.get(in[0]);
      unsigned wrong = 0, wrong_total = 0;
      for (unsigned round = 0; round < 2; round++) {
        const std::vector<A> prefix = prefixes(&in[5 * round], n, op);
        for (unsigned k = 0; k < n; k++) wrong += !equal(out[round * n + k], prefix[k]);
        for (unsigned k = 0; k < threads; k++) wrong_total += !equal(total[round * threads + k], prefix[n]);
      }
      if (wrong || wrong_total)
        test_fail(__FILE__, __LINE__,
                  std::string(name) + ": n = " + std::to_string(n) + ", " + std::to_string(threads) + " threads: " +
                      std::to_string(wrong) + " elements and " + std::to_string(wrong_total) + " totals are wrong");
    }
  }
}
/* A shorter scan pads elements that other threads may still read. */
__global__ void shorter_blelloch_kernel(int *out) {
  __shared__ int data[GK_BLELLOCH_SIZE(128)];
  const unsigned rank = gk_thread_rank();
  data[gk_bank(rank)] = 1;
  gk_block_scan_blelloch(data, 128u, gk_op_sum());
  out[rank] = data[gk_bank(rank)];
  gk_block_scan_blelloch(data, 65u, gk_op_sum());
  out[rank] += gk_block_scan_exclusive(0, gk_op_sum(), NULL); /* without a total */
}
TEST(a_blelloch_scan_may_follow_a_longer_one) {
  const device_array<int> out(128);
  EXPECT_OK(gk_launch(shorter_blelloch_kernel, 1, 128, 0, 0, out.p));
  const std::vector<int> prefix = out.get(0);
  for (int i = 0; i < 128; i++) EXPECT_EQ(prefix[static_cast<size_t>(i)], i);
}

TEST(blelloch_scan) {
  check_blelloch<gk_sum<int>>("int", any<int>);
  check_blelloch<gk_max<double>>("double", small<double>);
  check_blelloch<compose<unsigned>>("8 bytes", map<unsigned>);
  check_blelloch<join>("12 bytes", one);
}

__global__ void blelloch_of_100(int *out) {
  __shared__ int data[GK_BLELLOCH_SIZE(100)];
  if (gk_thread_rank() < 100) data[gk_bank(gk_thread_rank())] = 2;
  const int total = gk_block_scan_blelloch(data, 100, gk_sum<int>());
  if (gk_thread_rank() < 100) out[gk_thread_rank()] = data[gk_bank(gk_thread_rank())] * 1000 + total;
}
TEST(blelloch_scan_in_a_static_array) {
  const device_array<int> out(100);
  EXPECT_OK(gk_launch(blelloch_of_100, 1, 128, 0, 0, out.p));
  const std::vector<int> o = out.get(0);
  for (int i = 0; i < 100; i++) EXPECT_EQ(o[static_cast<size_t>(i)], 2000 * i + 200);
}
/* How many lanes of a warp meet in one bank, at worst, in the steps of a tree over `size` words. */
static int worst_conflict(unsigned size) {
  int worst = 0;
  for (unsigned width = 1; width < size; width *= 2) {
    int lanes[32] = {0};
    for (unsigned i = 0; i < 32 && i < size / 2 / width; i++) lanes[gk_bank((2 * i + 1) * width - 1) % 32]++;
    for (int n : lanes) worst = n > worst ? n : worst;
  }
  return worst;
}
TEST(banks_keep_the_tree_free_of_conflicts) {
  for (unsigned size = 2; size <= 1024; size *= 2) EXPECT_EQ(worst_conflict(size), 1);
  EXPECT_EQ(worst_conflict(2048), 2); /* 32 without padding */
}
TEST(banks_are_distinct_and_within_the_size) {
  for (unsigned n = 1; n <= 4096; n++) {
    EXPECT(gk_bank(n) > gk_bank(n - 1));
    EXPECT(gk_bank(n - 1) < GK_BLELLOCH_SIZE(n));
  }
}

/* --- operators --- */

template <class T> static void check_identities(const char *type, const std::vector<T> &values) {
  const gk_sum<T> sum = gk_sum<T>();
  const gk_prod<T> prod = gk_prod<T>();
  const gk_min<T> min = gk_min<T>();
  const gk_max<T> max = gk_max<T>();
  const gk_argmin<T> argmin = gk_argmin<T>();
  const gk_argmax<T> argmax = gk_argmax<T>();
  for (size_t i = 0; i < values.size(); i++) {
    const T x = values[i];
    const gk_arg<T> numbered = {x, i}, least = argmin.identity(), greatest = argmax.identity();
    const bool right[] = {equal(sum(x, sum.identity()), x),
                          equal(sum(sum.identity(), x), x),
                          equal(prod(x, prod.identity()), x),
                          equal(prod(prod.identity(), x), x),
                          equal(min(x, min.identity()), x),
                          equal(min(min.identity(), x), x),
                          equal(max(x, max.identity()), x),
                          equal(max(max.identity(), x), x),
                          equal(argmin(numbered, least), numbered),
                          equal(argmin(least, numbered), numbered),
                          equal(argmax(numbered, greatest), numbered),
                          equal(argmax(greatest, numbered), numbered)};
    static const char *const names[] = {"sum", "prod", "min", "max", "argmin", "argmax"};
    for (size_t k = 0; k < sizeof(right) / sizeof(*right); k++)
      if (!right[k])
        test_fail(__FILE__, __LINE__,
                  std::string("the identity of ") + names[k / 2] + "<" + type + "> changes " + test_show(x));
  }
  EXPECT_EQ(argmin.identity().index, SIZE_MAX);
  EXPECT_EQ(argmax.identity().index, SIZE_MAX);
}
TEST(identities) {
  const float inf = INFINITY;
  check_identities<float>("float", {0, 1, -1, 3.4e38f, -3.4e38f, 1e-45f, inf, -inf});
  check_identities<double>("double", {0, 1, -1, 1.7e308, -1.7e308, 5e-324, inf, -inf});
  check_identities<int>("int", {0, 1, -1, INT_MAX, INT_MIN});
  check_identities<unsigned>("unsigned", {0, 1, UINT_MAX});
  check_identities<long long>("long long", {0, 1, -1, LLONG_MAX, LLONG_MIN});
  check_identities<unsigned long>("unsigned long", {0, 1, ULONG_MAX});
  check_identities<short>("short", {0, 1, -1, SHRT_MAX, SHRT_MIN});
  check_identities<unsigned short>("unsigned short", {0, 1, USHRT_MAX});
  check_identities<signed char>("signed char", {0, 1, -1, 127, -128});
  check_identities<unsigned char>("unsigned char", {0, 1, 255});
  check_identities<char>("char", {0, 1, CHAR_MIN, CHAR_MAX});
  EXPECT_EQ(gk_min<bool>().identity(), true);
  EXPECT_EQ(gk_max<bool>().identity(), false);
}

TEST(integers_wrap) {
  EXPECT_EQ(gk_sum<int>()(INT_MAX, 1), INT_MIN);
  EXPECT_EQ(gk_sum<int>()(INT_MIN, -1), INT_MAX);
  EXPECT_EQ(gk_sum<long long>()(LLONG_MAX, 1), LLONG_MIN);
  EXPECT_EQ(gk_sum<unsigned>()(UINT_MAX, 2u), 1u);
  EXPECT_EQ(gk_sum<signed char>()(127, 1), static_cast<signed char>(-128));
  EXPECT_EQ(gk_sum<short>()(-32768, -1), static_cast<short>(32767));
  EXPECT_EQ(gk_prod<int>()(INT_MIN, -1), INT_MIN);
  EXPECT_EQ(gk_prod<int>()(65536, 65536), 0);
  EXPECT_EQ(gk_prod<long long>()(LLONG_MIN, -1), LLONG_MIN);
  EXPECT_EQ(gk_prod<unsigned short>()(65535, 65535), static_cast<unsigned short>(1));
}

/* Every special value against every other one, on host and device. */
template <class T> struct verdict {
  T min, max;
  size_t argmin, argmax;
};
template <class T> __host__ __device__ inline verdict<T> judge(T x, T y) {
  return verdict<T>{gk_min<T>()(x, y), gk_max<T>()(x, y), gk_argmin<T>()(gk_arg<T>{y, 8}, gk_arg<T>{x, 5}).index,
                    gk_argmax<T>()(gk_arg<T>{y, 8}, gk_arg<T>{x, 5}).index};
}
template <class T> __global__ void judge_kernel(const T *in, verdict<T> *out, unsigned n) {
  GK_FOR_1D (i, n * n) out[i] = judge(in[i / n], in[i % n]);
}
template <class T> static void check_special() {
  const T inf = INFINITY, nan = NAN, tiny = std::is_same<T, float>::value ? T(1e-45) : T(5e-324);
  const std::vector<T> in = {-inf, -1, -tiny, T(-0.0), 0, tiny, 1, inf, nan}; /* ascending, up to NaN */
  const unsigned n = static_cast<unsigned>(in.size());
  const device_array<T> device_in(in);
  const device_array<verdict<T>> device_out(n * n);
  EXPECT_OK(gk_launch(judge_kernel<T>, 1, 32, 0, 0, device_in.p, device_out.p, n));
  const std::vector<verdict<T>> out = device_out.get(verdict<T>());
  for (unsigned i = 0; i < n * n; i++) {
    const T x = in[i / n], y = in[i % n];
    for (const verdict<T> &v : {judge(x, y), out[i]}) {
      if (i / n == n - 1 || i % n == n - 1) {
        EXPECT(v.min != v.min && v.max != v.max);
        const size_t first_nan = i / n == n - 1 ? 5 : 8;
        EXPECT_EQ(v.argmin, first_nan);
        EXPECT_EQ(v.argmax, first_nan);
      } else {
        EXPECT(equal(v.min, in[i / n < i % n ? i / n : i % n])); /* by bits: -0 is less than +0 */
        EXPECT(equal(v.max, in[i / n > i % n ? i / n : i % n]));
        EXPECT_EQ(v.argmin, size_t(y < x ? 8 : 5)); /* of equal ones, -0 and +0 among them, the first index */
        EXPECT_EQ(v.argmax, size_t(y > x ? 8 : 5));
      }
    }
  }
}
TEST(nan_infinities_and_zeros) {
  check_special<float>();
  check_special<double>();
}

/* One NaN (or two, or none) somewhere in a block. */
__global__ void nan_kernel(unsigned first, unsigned second, float other, float *value, size_t *index) {
  const unsigned rank = gk_thread_rank();
  const float x = rank == first || rank == second ? NAN : other;
  const gk_arg<float> arg = {x, rank};
  const float min = gk_block_reduce(x, gk_min<float>()), max = gk_block_reduce(x, gk_max<float>());
  const gk_arg<float> least = gk_block_reduce(arg, gk_argmin<float>()), most = gk_block_reduce(arg, gk_argmax<float>());
  if (rank == gk_block_size() - 1) value[0] = min, value[1] = max, index[0] = least.index, index[1] = most.index;
}
TEST(a_nan_anywhere_in_a_block) {
  const device_array<float> value(2);
  const device_array<size_t> index(2);
  for (unsigned threads : {1u, 31u, 33u, 100u})
    for (float other : {-INFINITY, 1.0f, INFINITY})
      for (unsigned first = 0; first <= threads; first++) { /* the last: none */
        const unsigned second = first + (threads - first) / 2;
        EXPECT_OK(gk_launch(nan_kernel, 1, threads, 0, 0, first, second, other, value.p, index.p));
        const std::vector<float> v = value.get(0);
        const std::vector<size_t> i = index.get(0);
        if (first == threads)
          EXPECT(v[0] == other && v[1] == other && i[0] == 0 && i[1] == 0);
        else
          EXPECT(v[0] != v[0] && v[1] != v[1] && i[0] == first && i[1] == first);
      }
}
