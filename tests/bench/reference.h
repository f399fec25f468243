/* The bench's data, and results computed plainly to check the contestants by: in f64 for floating types, exactly for
 * integers. Nothing here uses the code that is measured, gpukit's loops and launches aside. */
#ifndef BENCH_REFERENCE_H
#define BENCH_REFERENCE_H

#include "bench.h"

/* --- Types --------------------------------------------------------------------------------------------------------*/

/* R: what a reference is computed in. roundoff: of one operation in the type that sums are made in; for double four
 * times that, since the reference errs, too. */
template <class T> struct reference_type {
  typedef typename std::conditional<std::is_signed<T>::value, long long, unsigned long long>::type R;
  static constexpr double roundoff = 0;
};
template <> struct reference_type<float> {
  typedef double R;
  static constexpr double roundoff = 0x1p-24;
};
template <> struct reference_type<double> {
  typedef double R;
  static constexpr double roundoff = 0x1p-51;
};
template <> struct reference_type<__half> : reference_type<float> {};
template <> struct reference_type<__nv_bfloat16> : reference_type<float> {};

template <class T> struct type_name;
template <> struct type_name<float> { static constexpr const char *value = "f32"; };
template <> struct type_name<double> { static constexpr const char *value = "f64"; };
template <> struct type_name<__half> { static constexpr const char *value = "f16"; };
template <> struct type_name<__nv_bfloat16> { static constexpr const char *value = "bf16"; };
template <> struct type_name<signed char> { static constexpr const char *value = "i8"; };
template <> struct type_name<unsigned char> { static constexpr const char *value = "u8"; };
template <> struct type_name<int> { static constexpr const char *value = "i32"; };
template <> struct type_name<long long> { static constexpr const char *value = "i64"; };

/* Rounds to nearest, which is monotone: what lies between two doubles stays between their roundings. */
template <class T> __host__ __device__ T reference_round(double x) { return static_cast<T>(x); }
template <> __host__ __device__ inline __half reference_round<__half>(double x) { return __double2half(x); }
template <> __host__ __device__ inline __nv_bfloat16 reference_round<__nv_bfloat16>(double x) {
  return __double2bfloat16(x);
}
template <class T> __host__ __device__ auto reference_wide(T x) -> typename reference_type<T>::R {
  if constexpr (std::is_same<T, __half>::value)
    return static_cast<double>(__half2float(x));
  else if constexpr (std::is_same<T, __nv_bfloat16>::value)
    return static_cast<double>(__bfloat162float(x));
  else
    return static_cast<typename reference_type<T>::R>(x);
}

/* Whether `got` is `want` up to `allowed`, rounded to its type. A NaN never is. Integers: exactly, modulo 2^bits. */
template <class O, class R> __host__ __device__ bool reference_agrees(O got, R want, double allowed) {
  if constexpr (std::is_integral<O>::value) {
    return got == static_cast<O>(want);
  } else {
    const double x = reference_wide(got);
    return x >= reference_wide(reference_round<O>(want - allowed)) &&
           x <= reference_wide(reference_round<O>(want + allowed));
  }
}

/* --- Data: N(0, 1) by Box and Muller (1958) over hashed indices; for integers all values alike --------------------*/

static __device__ inline unsigned reference_hash(unsigned x) {
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}
template <class T> __global__ void reference_fill_kernel(T *to, size_t n, unsigned seed) {
  GK_FOR_1D (i, n) {
    const unsigned low = static_cast<unsigned>(i), high = static_cast<unsigned>(i >> 32) + seed * 977u;
    const unsigned first = reference_hash(low ^ reference_hash(high)),
                   second = reference_hash(low + reference_hash(~high));
    if constexpr (std::is_integral<T>::value) {
      to[i] = static_cast<T>(static_cast<unsigned long long>(first) << 32 | second);
    } else {
      const float u = (static_cast<float>(first) + 1.0f) * 0x1p-32f, v = static_cast<float>(second) * 0x1p-32f;
      const float normal = sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
      /* A double has digits beyond those of a float, too. */
      to[i] = reference_round<T>(static_cast<double>(normal) * (1.0 + static_cast<double>(second ^ first) * 0x1p-60));
    }
  }
}
template <class T> void reference_fill(T *to, size_t n, unsigned seed) {
  GK_LAUNCH(reference_fill_kernel<T>, 4096, 256, 0, bench.stream, to, n, seed);
}

/* --- Operators ----------------------------------------------------------------------------------------------------*/

struct reference_sum {
  static constexpr bool rounds = true;
  template <class R> static __host__ __device__ R identity() { return R(0); }
  /* Signed integers by way of unsigned ones, which may wrap. */
  static __host__ __device__ long long combine(long long x, long long y) {
    return static_cast<long long>(static_cast<unsigned long long>(x) + static_cast<unsigned long long>(y));
  }
  static __host__ __device__ unsigned long long combine(unsigned long long x, unsigned long long y) { return x + y; }
  static __host__ __device__ double combine(double x, double y) { return x + y; }
};
template <bool Greatest> struct reference_extreme {
  static constexpr bool rounds = false;
  template <class R> static __host__ __device__ R identity() {
    if constexpr (std::is_same<R, double>::value) {
      return Greatest ? -HUGE_VAL : HUGE_VAL;
    } else {
      const unsigned long long top = ~0ull >> (std::is_signed<R>::value ? 1 : 0);
      return static_cast<R>(Greatest ? (std::is_signed<R>::value ? ~top : 0) : top);
    }
  }
  template <class R> static __host__ __device__ R combine(R x, R y) { return (Greatest ? y > x : y < x) ? y : x; }
};
/* Of the largest magnitude, the first: associative, not commutative. */
struct reference_largest {
  static constexpr bool rounds = false;
  template <class R> static __host__ __device__ R identity() { return R(0); }
  static __host__ __device__ double combine(double x, double y) { return fabs(y) > fabs(x) ? y : x; }
};

/* --- Reduction ----------------------------------------------------------------------------------------------------*/

enum { REFERENCE_THREADS = 256, REFERENCE_EACH = 16, REFERENCE_CHUNK = REFERENCE_THREADS * REFERENCE_EACH };

/* The total of each chunk of the input, in the order of the elements. */
template <class Op, class T>
__global__ void reference_totals(const T *in, size_t n, typename reference_type<T>::R *totals) {
  typedef typename reference_type<T>::R R;
  __shared__ R part[REFERENCE_THREADS];
  const size_t from = static_cast<size_t>(blockIdx.x) * REFERENCE_CHUNK + threadIdx.x * REFERENCE_EACH;
  R sum = Op::template identity<R>();
  for (size_t i = from; i < from + REFERENCE_EACH && i < n; i++) sum = Op::combine(sum, reference_wide(in[i]));
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x) return;
  for (int t = 1; t < REFERENCE_THREADS; t++) sum = Op::combine(sum, part[t]);
  totals[blockIdx.x] = sum;
}
/* Exclusive prefixes of the totals, in place; the total of all goes after the last. One block. */
template <class Op, class R> __global__ void reference_offsets(R *totals, size_t chunks) {
  __shared__ R part[1024];
  const size_t each = (chunks + 1023) / 1024, from = threadIdx.x * each;
  R sum = Op::template identity<R>();
  for (size_t i = from; i < from + each && i < chunks; i++) sum = Op::combine(sum, totals[i]);
  part[threadIdx.x] = sum;
  __syncthreads();
  R before = Op::template identity<R>();
  for (unsigned t = 0; t < threadIdx.x; t++) before = Op::combine(before, part[t]);
  for (size_t i = from; i < from + each && i < chunks; i++) {
    const R own = totals[i];
    totals[i] = before;
    before = Op::combine(before, own);
  }
  if (threadIdx.x == 1023) totals[chunks] = before;
}

/* The first 64 bytes of bench.spare hold a count, the rest the totals of 2^20 chunks. */
template <class Op, class T> typename reference_type<T>::R *reference_prepare(const T *in, size_t n) {
  typedef typename reference_type<T>::R R;
  R *const totals = reinterpret_cast<R *>(bench.spare + 64);
  const size_t chunks = gk_ceil_div(n, static_cast<size_t>(REFERENCE_CHUNK));
  GK_LAUNCH((reference_totals<Op, T>), static_cast<unsigned>(chunks), REFERENCE_THREADS, 0, bench.stream, in, n,
            totals);
  GK_LAUNCH((reference_offsets<Op, R>), 1, 1024, 0, bench.stream, totals, chunks);
  return totals;
}

template <class V> V reference_fetch(const V *from) {
  V value;
  GK_CHECK(cudaMemcpyAsync(&value, from, sizeof(V), cudaMemcpyDeviceToHost, bench.stream));
  GK_CHECK(cudaStreamSynchronize(bench.stream));
  return value;
}
template <class Op, class T> typename reference_type<T>::R reference_reduce(const T *in, size_t n) {
  const typename reference_type<T>::R *totals = reference_prepare<Op>(in, n);
  return reference_fetch(totals + gk_ceil_div(n, static_cast<size_t>(REFERENCE_CHUNK)));
}

/* How far a sum of n values of N(0, 1) may be off, whatever its order. Partial sums grow like sqrt(n), so that a thread
 * that adds m values in a row is off by about u m / 2.4, and n / m such threads by u sqrt(n m) / 2.4, where CUB's m is
 * about 800 on this class of GPU at 2^30. One lost value would be seen in nearly every case. */
inline double reference_sum_allowance(double roundoff, size_t n, double sum) {
  return roundoff * (64 * sqrt(static_cast<double>(n)) + 8 * fabs(sum));
}

/* --- The first index of a value -----------------------------------------------------------------------------------*/

template <class T> __global__ void reference_first_kernel(const T *in, size_t n, T value, unsigned long long *first) {
  GK_FOR_1D (i, n) {
    if (reference_wide(in[i]) == reference_wide(value)) atomicMin(first, static_cast<unsigned long long>(i));
  }
}
template <class T> size_t reference_first(const T *in, size_t n, T value) {
  unsigned long long *const first = reinterpret_cast<unsigned long long *>(bench.spare);
  GK_CHECK(cudaMemsetAsync(first, 0xff, sizeof(*first), bench.stream));
  GK_LAUNCH(reference_first_kernel<T>, 2048, 256, 0, bench.stream, in, n, value, first);
  return static_cast<size_t>(reference_fetch(first));
}

/* --- Scan ---------------------------------------------------------------------------------------------------------*/

/* Counts the elements of a scan that are wrong. A sum may be off as in a fold from tile to tile of 3072 elements, which
 * is more than any contestant needs: four times u sqrt(i) sqrt(tiles), and some for the tile's own steps. */
template <class Op, bool Inclusive, class T>
__global__ void reference_scan_kernel(const T *in, const T *out, size_t n, const typename reference_type<T>::R *offsets,
                                      unsigned long long *wrong) {
  typedef typename reference_type<T>::R R;
  __shared__ R part[REFERENCE_THREADS];
  const size_t from = static_cast<size_t>(blockIdx.x) * REFERENCE_CHUNK + threadIdx.x * REFERENCE_EACH;
  R sum = Op::template identity<R>();
  for (size_t i = from; i < from + REFERENCE_EACH && i < n; i++) sum = Op::combine(sum, reference_wide(in[i]));
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    R before = offsets[blockIdx.x];
    for (int t = 0; t < REFERENCE_THREADS; t++) {
      const R own = part[t];
      part[t] = before;
      before = Op::combine(before, own);
    }
  }
  __syncthreads();
  R before = part[threadIdx.x];
  unsigned long long bad = 0;
  for (size_t i = from; i < from + REFERENCE_EACH && i < n; i++) {
    const R after = Op::combine(before, reference_wide(in[i])), want = Inclusive ? after : before;
    const double at = static_cast<double>(i + 1);
    const double allowed = Op::rounds ? reference_type<T>::roundoff *
                                            (8 * fabs(static_cast<double>(want)) + 4 * sqrt(at) * sqrt(32 + at / 3072))
                                      : 0;
    bad += !reference_agrees(out[i], want, allowed);
    before = after;
  }
  if (bad) atomicAdd(wrong, bad);
}
template <class Op, bool Inclusive, class T> size_t reference_scan_wrong(const T *in, const T *out, size_t n) {
  unsigned long long *const wrong = reinterpret_cast<unsigned long long *>(bench.spare);
  GK_CHECK(cudaMemsetAsync(wrong, 0, sizeof(*wrong), bench.stream));
  const typename reference_type<T>::R *offsets = reference_prepare<Op>(in, n);
  GK_LAUNCH((reference_scan_kernel<Op, Inclusive, T>),
            static_cast<unsigned>(gk_ceil_div(n, static_cast<size_t>(REFERENCE_CHUNK))), REFERENCE_THREADS, 0,
            bench.stream, in, out, n, offsets, wrong);
  return static_cast<size_t>(reference_fetch(wrong));
}

#endif
