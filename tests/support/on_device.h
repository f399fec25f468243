/* Data that the device makes, and results that it checks by itself, so that a test can queue thousands of calls without
 * a wait, with gigabytes where it has to. What is wrong is counted in device memory. Include it after gpukit.cuh. */
#ifndef ON_DEVICE_H
#define ON_DEVICE_H

#include "data.h"

/* x -> a x + b, whose composition does not commute: any error of order changes all that follows. */
struct line {
  uint32_t a, b;
};
struct compose {
  __host__ __device__ line operator()(const line &f, const line &g) const { return line{f.a * g.a, f.b * g.a + g.b}; }
  __host__ __device__ line identity() const { return line{1, 0}; }
};

/* Element i of a sequence; sums of at most 2^20 floats are exact in any order. */
__host__ __device__ inline uint32_t scatter(uint32_t seed, size_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 0x9e3779b9u + static_cast<uint32_t>(i >> 32) + seed * 0x85ebca6bu;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}
template <class T> struct drawn { /* integers and floats */
  static __host__ __device__ T value(uint32_t seed, size_t i) {
    return static_cast<T>(static_cast<int>(scatter(seed, i) % 15) - (static_cast<T>(-1) < static_cast<T>(0) ? 7 : 0));
  }
};
template <> struct drawn<line> {
  static __host__ __device__ line value(uint32_t seed, size_t i) {
    const uint32_t x = scatter(seed, i);
    return line{x | 1, x >> 3};
  }
};
template <> struct drawn<__half> {
  static __host__ __device__ __half value(uint32_t seed, size_t i) {
    return __float2half_rn(drawn<float>::value(seed, i));
  }
};

/* A number of what is wrong, in device memory. */
struct wrong_count : device_array<unsigned long long> {
  wrong_count() : device_array<unsigned long long>(std::vector<unsigned long long>(1, 0)) {}
};

namespace on_device {
const unsigned threads = 256;
template <class T> __global__ void fill(T *x, size_t n, uint32_t seed) {
  GK_FOR_1D (i, n) x[i] = drawn<T>::value(seed, i);
}
template <class T> __host__ __device__ bool equal(const T &x, const T &y) { return !(x < y) && !(y < x); }
inline __host__ __device__ bool equal(const line &x, const line &y) { return x.a == y.a && x.b == y.b; }
template <class V> __host__ __device__ bool equal(const gk_arg<V> &x, const gk_arg<V> &y) {
  return equal(x.value, y.value) && x.index == y.index;
}
/* What element i is to the operator: itself, or with its place. */
template <class A, class T> struct lifted {
  static __host__ __device__ A from(const T &x, size_t) { return static_cast<A>(x); }
};
template <class V, class T> struct lifted<gk_arg<V>, T> {
  static __host__ __device__ gk_arg<V> from(const T &x, size_t i) { return gk_arg<V>{static_cast<V>(x), i}; }
};
/* y is the scan of x if it begins as it has to, and each element is one step from the one before. */
template <class T, class A, class Op>
__global__ void check_scan(const T *x, const A *y, size_t n, Op op, A init, bool inclusive, unsigned long long *wrong) {
  GK_FOR_1D (i, n) {
    const A here = lifted<A, T>::from(x[inclusive ? i : i ? i - 1 : 0], inclusive ? i : i ? i - 1 : 0);
    const A expected = i ? op(y[i - 1], here) : inclusive ? op(init, here) : init;
    if (!equal(y[i], expected)) atomicAdd(wrong, 1ull);
  }
}
/* Whole words: what has the same bits has none that differ. */
__global__ static void check_words(const unsigned *x, const unsigned *y, size_t n, unsigned long long *wrong) {
  GK_FOR_1D (i, n) {
    if (x[i] != y[i]) atomicAdd(wrong, 1ull);
  }
}
template <class T> __global__ void add_up(const T *x, size_t n, unsigned long long *total) {
  long long mine = 0;
  GK_FOR_1D (i, n) mine += static_cast<long long>(x[i]);
  atomicAdd(total, static_cast<unsigned long long>(mine));
}
/* Takes the total away again, for the next check. */
template <class O> __global__ void check_total(const O *sum, unsigned long long *total, unsigned long long *wrong) {
  if (!equal(*sum, static_cast<O>(static_cast<long long>(*total)))) atomicAdd(wrong, 1ull);
  *total = 0;
}
inline unsigned blocks(size_t n) {
  const size_t wanted = gk_ceil_div(n, static_cast<size_t>(threads));
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted < 2048 ? wanted : 2048);
}
} // namespace on_device

template <class T> cudaError_t fill(T *x, size_t n, uint32_t seed, cudaStream_t stream) {
  return gk_launch(on_device::fill<T>, on_device::blocks(n), on_device::threads, 0, stream, x, n, seed);
}
template <class T, class A, class Op>
cudaError_t check_scan(const T *x, const A *y, size_t n, Op op, A init, bool inclusive, unsigned long long *wrong,
                       cudaStream_t stream) {
  return gk_launch(on_device::check_scan<T, A, Op>, on_device::blocks(n), on_device::threads, 0, stream, x, y, n, op,
                   init, inclusive, wrong);
}
/* Of integers, or of floats that are integers; *total is zero before and after. */
template <class T, class O>
cudaError_t check_sum(const T *x, const O *sum, size_t n, unsigned long long *total, unsigned long long *wrong,
                      cudaStream_t stream) {
  const cudaError_t code =
      gk_launch(on_device::add_up<T>, on_device::blocks(n), on_device::threads, 0, stream, x, n, total);
  return code ? code : gk_launch(on_device::check_total<O>, 1, 1, 0, stream, sum, total, wrong);
}
inline cudaError_t check_same_bits(const void *x, const void *y, size_t bytes, unsigned long long *wrong,
                                   cudaStream_t stream) {
  return gk_launch(on_device::check_words, on_device::blocks(bytes / 4), on_device::threads, 0, stream,
                   static_cast<const unsigned *>(x), static_cast<const unsigned *>(y), bytes / 4, wrong);
}

#endif
