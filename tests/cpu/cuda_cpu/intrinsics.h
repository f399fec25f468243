/* Intrinsics that concern one thread alone, and CUDA's additions to the mathematical functions. The fast forms
 * (__expf, __fdividef, ...) are the plain ones. */
#pragma once
#pragma GCC system_header

#include <assert.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "rounding.h"
#include "simd.h"
#include "special.h"
#include "thread.h"

/* --- bits --- */

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline unsigned __brev(unsigned x) {
  x = __builtin_bswap32(x);
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  return (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
/* The bit of the mask that is the offset-th from the base on, upwards if the offset is positive. */
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  const int by = offset < 0 ? -1 : 1;
  int left = offset < 0 ? -offset : offset, i = static_cast<int>(base);
  if (!left) return base < 32 && mask >> base & 1 ? base : ~0u;
  for (; i >= 0 && i < 32; i += by)
    if (mask >> i & 1 && !--left) return static_cast<unsigned>(i);
  return ~0u;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  unsigned long long both = static_cast<unsigned long long>(y) << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) r |= (static_cast<unsigned>(both >> (8 * (s >> (4 * i) & 7))) & 255) << (8 * i);
  return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(hi) << 32 | lo) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(hi) << 32 | lo) >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift) {
  return shift >= 32 ? lo : __funnelshift_l(lo, hi, shift);
}
inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift) {
  return shift >= 32 ? hi : __funnelshift_r(lo, hi, shift);
}

/* --- integers --- */

inline int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>((static_cast<__int128>(a) * b) >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __mul24(int a, int b) { /* the lower 24 bits of each, with their sign */
  int x = static_cast<int>(static_cast<unsigned>(a) << 8) >> 8,
      y = static_cast<int>(static_cast<unsigned>(b) << 8) >> 8;
  return static_cast<int>(static_cast<unsigned>(x) * static_cast<unsigned>(y));
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
inline unsigned __sad(int a, int b, unsigned c) {
  unsigned x = static_cast<unsigned>(a), y = static_cast<unsigned>(b);
  return (a > b ? x - y : y - x) + c;
}
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) + b) >> 1);
}
inline unsigned __urhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) + b + 1) >> 1);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
  return c;
}
inline int __dp4a(int a, int b, int c) {
  unsigned sum = static_cast<unsigned>(c);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<unsigned>(static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i));
  return static_cast<int>(sum);
}
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  unsigned x, y;
  memcpy(&x, &a, 4);
  memcpy(&y, &b, 4);
  return __dp4a(x, y, c);
}
inline int __dp4a(char4 a, char4 b, int c) {
  int x, y;
  memcpy(&x, &a, 4);
  memcpy(&y, &b, 4);
  return __dp4a(x, y, c);
}

/* --- reinterpretation --- */

inline int __float_as_int(float x) { return static_cast<int>(cuda_cpu::bits_of(x)); }
inline unsigned __float_as_uint(float x) { return cuda_cpu::bits_of(x); }
inline float __int_as_float(int x) { return cuda_cpu::float_of(static_cast<unsigned>(x)); }
inline float __uint_as_float(unsigned x) { return cuda_cpu::float_of(x); }
inline long long __double_as_longlong(double x) { return static_cast<long long>(cuda_cpu::bits_of(x)); }
inline double __longlong_as_double(long long x) { return cuda_cpu::double_of(static_cast<uint64_t>(x)); }
inline int __double2hiint(double x) { return static_cast<int>(cuda_cpu::bits_of(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(cuda_cpu::bits_of(x)); }
inline double __hiloint2double(int hi, int lo) {
  return cuda_cpu::double_of(static_cast<uint64_t>(static_cast<unsigned>(hi)) << 32 | static_cast<unsigned>(lo));
}

/* --- arithmetic that no compiler may contract or reorder --- */

namespace cuda_cpu {

/* Hides a result from the optimiser, where it could be contracted with the next operation. */
template <class F> inline F opaque(F x) {
#if defined(__x86_64__)
#ifdef __FMA__
  asm("" : "+x"(x));
#endif
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  volatile F y = x;
  x = y;
#endif
  return x;
}

inline int c_rounding(rounding mode) {
  return mode == nearest ? FE_TONEAREST : mode == towards_zero ? FE_TOWARDZERO : mode == up ? FE_UPWARD : FE_DOWNWARD;
}
/* f() in a rounding mode; its operands are volatile, so that it stays between the calls. */
template <class F> inline auto rounded(rounding mode, F f) {
  int before = fegetround();
  fesetround(c_rounding(mode));
  volatile auto r = f();
  fesetround(before);
  return static_cast<decltype(f())>(r);
}

} // namespace cuda_cpu

#define CUDA_CPU_DIRECTED(name, how, mode, T, args, values, ...)                                                       \
  inline T name##_##how args {                                                                                         \
    values;                                                                                                            \
    return cuda_cpu::rounded(cuda_cpu::mode, [&]() -> T { return __VA_ARGS__; });                                      \
  }
#define CUDA_CPU_ARITHMETIC(name, T, args, values, ...)                                                                \
  inline T name##_rn args {                                                                                            \
    values;                                                                                                            \
    return cuda_cpu::opaque(__VA_ARGS__);                                                                              \
  }
#define CUDA_CPU_ALL_MODES(name, T, args, values, volatiles, ...)                                                      \
  CUDA_CPU_ARITHMETIC(name, T, args, values, __VA_ARGS__)                                                              \
  CUDA_CPU_DIRECTED(name, rz, towards_zero, T, args, volatiles, __VA_ARGS__)                                           \
  CUDA_CPU_DIRECTED(name, ru, up, T, args, volatiles, __VA_ARGS__)                                                     \
  CUDA_CPU_DIRECTED(name, rd, down, T, args, volatiles, __VA_ARGS__)
#define CUDA_CPU_BINARY(name, T, op)                                                                                   \
  CUDA_CPU_ALL_MODES(name, T, (T a, T b), T x = a; T y = b, volatile T x = a; volatile T y = b, x op y)
#define CUDA_CPU_UNARY(name, T, ...) CUDA_CPU_ALL_MODES(name, T, (T a), T x = a, volatile T x = a, __VA_ARGS__)
#define CUDA_CPU_FMA(name, T, f)                                                                                       \
  CUDA_CPU_ALL_MODES(name, T, (T a, T b, T c), T x = a; T y = b; T z = c, volatile T x = a; volatile T y = b;          \
                     volatile T z = c, f(x, y, z))
CUDA_CPU_BINARY(__fadd, float, +)
CUDA_CPU_BINARY(__fsub, float, -)
CUDA_CPU_BINARY(__fmul, float, *)
CUDA_CPU_BINARY(__fdiv, float, /)
CUDA_CPU_BINARY(__dadd, double, +)
CUDA_CPU_BINARY(__dsub, double, -)
CUDA_CPU_BINARY(__dmul, double, *)
CUDA_CPU_BINARY(__ddiv, double, /)
CUDA_CPU_UNARY(__fsqrt, float, __builtin_sqrtf(x))
CUDA_CPU_UNARY(__dsqrt, double, __builtin_sqrt(x))
CUDA_CPU_UNARY(__frcp, float, 1 / x)
CUDA_CPU_UNARY(__drcp, double, 1 / x)
CUDA_CPU_FMA(__fmaf, float, __builtin_fmaf)
CUDA_CPU_FMA(__fma, double, __builtin_fma)
#undef CUDA_CPU_BINARY
#undef CUDA_CPU_UNARY
#undef CUDA_CPU_FMA
inline float __frsqrt_rn(float x) { return static_cast<float>(1 / __builtin_sqrt(static_cast<double>(x))); }

/* --- conversions --- */

#define CUDA_CPU_TO_INTEGER(name, from, to)                                                                            \
  inline to name##_rn(from x) { return cuda_cpu::float_to<to>(x, cuda_cpu::nearest); }                                 \
  inline to name##_rz(from x) { return cuda_cpu::float_to<to>(x, cuda_cpu::towards_zero); }                            \
  inline to name##_ru(from x) { return cuda_cpu::float_to<to>(x, cuda_cpu::up); }                                      \
  inline to name##_rd(from x) { return cuda_cpu::float_to<to>(x, cuda_cpu::down); }
CUDA_CPU_TO_INTEGER(__float2int, float, int)
CUDA_CPU_TO_INTEGER(__float2uint, float, unsigned)
CUDA_CPU_TO_INTEGER(__float2ll, float, long long)
CUDA_CPU_TO_INTEGER(__float2ull, float, unsigned long long)
CUDA_CPU_TO_INTEGER(__double2int, double, int)
CUDA_CPU_TO_INTEGER(__double2uint, double, unsigned)
CUDA_CPU_TO_INTEGER(__double2ll, double, long long)
CUDA_CPU_TO_INTEGER(__double2ull, double, unsigned long long)
#undef CUDA_CPU_TO_INTEGER

#define CUDA_CPU_TO_FLOAT(name, from, to, ...)                                                                         \
  inline to name##_rn(from x) { return static_cast<to>(x); }                                                           \
  inline to name##_rz(from x) { return __VA_ARGS__(x, cuda_cpu::towards_zero); }                                       \
  inline to name##_ru(from x) { return __VA_ARGS__(x, cuda_cpu::up); }                                                 \
  inline to name##_rd(from x) { return __VA_ARGS__(x, cuda_cpu::down); }
CUDA_CPU_TO_FLOAT(__int2float, int, float, cuda_cpu::integer_to<float>)
CUDA_CPU_TO_FLOAT(__uint2float, unsigned, float, cuda_cpu::integer_to<float>)
CUDA_CPU_TO_FLOAT(__ll2float, long long, float, cuda_cpu::integer_to<float>)
CUDA_CPU_TO_FLOAT(__ull2float, unsigned long long, float, cuda_cpu::integer_to<float>)
CUDA_CPU_TO_FLOAT(__ll2double, long long, double, cuda_cpu::integer_to<double>)
CUDA_CPU_TO_FLOAT(__ull2double, unsigned long long, double, cuda_cpu::integer_to<double>)
CUDA_CPU_TO_FLOAT(__double2float, double, float, cuda_cpu::double_to_float)
#undef CUDA_CPU_TO_FLOAT
#undef CUDA_CPU_ALL_MODES
#undef CUDA_CPU_ARITHMETIC
#undef CUDA_CPU_DIRECTED
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }

/* --- mathematics --- */

inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; } /* NaN: 0 */
inline float saturate(float x) { return __saturatef(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline double fdivide(double a, double b) { return a / b; }
inline float __expf(float x) { return ::expf(x); }
inline float __exp10f(float x) { return static_cast<float>(::pow(10.0, static_cast<double>(x))); }
inline float __logf(float x) { return ::logf(x); }
inline float __log2f(float x) { return ::log2f(x); }
inline float __log10f(float x) { return ::log10f(x); }
inline float __powf(float x, float y) { return ::powf(x, y); }
inline float __sinf(float x) { return ::sinf(x); }
inline float __cosf(float x) { return ::cosf(x); }
inline float __tanf(float x) { return ::tanf(x); }
inline float __tanhf(float x) { return ::tanhf(x); }
#ifndef __APPLE__ /* whose math.h has it */
inline void __sincosf(float x, float *s, float *c) {
  *s = ::sinf(x);
  *c = ::cosf(x);
}
#endif
#ifndef _GNU_SOURCE
inline void sincosf(float x, float *s, float *c) { __sincosf(x, s, c); }
inline void sincos(double x, double *s, double *c) {
  *s = ::sin(x);
  *c = ::cos(x);
}
inline float exp10f(float x) { return __exp10f(x); }
inline double exp10(double x) { return ::pow(10.0, x); }
#endif
inline float rsqrtf(float x) { return 1 / ::sqrtf(x); }
inline double rsqrt(double x) { return 1 / ::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1 / ::cbrtf(x); }
inline double rcbrt(double x) { return 1 / ::cbrt(x); }
inline double sinpi(double x) {
  double r = ::remainder(x, 2.0); /* exact; and so are the folds to [-1/4, 1/4] below */
  if (r == 0 || ::fabs(r) == 1) return ::copysign(0.0, x);
  if (::fabs(r) > 0.5) r = ::copysign(1 - ::fabs(r), r);
  return ::fabs(r) <= 0.25 ? ::sin(r * M_PI) : ::copysign(::cos((0.5 - ::fabs(r)) * M_PI), r);
}
inline double cospi(double x) {
  double r = ::fabs(::remainder(x, 2.0));
  if (r == 0.5) return 0;
  if (r <= 0.25) return ::cos(r * M_PI);
  return r < 0.75 ? ::sin((0.5 - r) * M_PI) : -::cos((1 - r) * M_PI);
}
inline float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
inline void sincospif(float x, float *s, float *c) {
  *s = sinpif(x);
  *c = cospif(x);
}
inline void sincospi(double x, double *s, double *c) {
  *s = sinpi(x);
  *c = cospi(x);
}
inline float normcdff(float x) { return 0.5f * ::erfcf(-x * 0.70710678f); }
inline double normcdf(double x) { return 0.5 * ::erfc(-x * M_SQRT1_2); }

#define CUDA_CPU_MIN_MAX(result, a, b)                                                                                 \
  inline result min(a x, b y) {                                                                                        \
    return static_cast<result>(x) < static_cast<result>(y) ? static_cast<result>(x) : static_cast<result>(y);          \
  }                                                                                                                    \
  inline result max(a x, b y) {                                                                                        \
    return static_cast<result>(x) > static_cast<result>(y) ? static_cast<result>(x) : static_cast<result>(y);          \
  }
#define CUDA_CPU_MIN_MAX_INTEGER(T, U)                                                                                 \
  CUDA_CPU_MIN_MAX(T, T, T)                                                                                            \
  CUDA_CPU_MIN_MAX(U, U, U)                                                                                            \
  CUDA_CPU_MIN_MAX(U, T, U)                                                                                            \
  CUDA_CPU_MIN_MAX(U, U, T)
CUDA_CPU_MIN_MAX_INTEGER(int, unsigned)
CUDA_CPU_MIN_MAX_INTEGER(long, unsigned long)
CUDA_CPU_MIN_MAX_INTEGER(long long, unsigned long long)
#undef CUDA_CPU_MIN_MAX_INTEGER
#undef CUDA_CPU_MIN_MAX
/* A NaN, a signalling one too, loses against a number, and -0 is less than +0: libm's functions promise neither. */
#define CUDA_CPU_MIN_MAX(T)                                                                                            \
  inline T min(T x, T y) { return x < y || y != y ? x : x > y || x != x || __builtin_signbit(y) ? y : x; }             \
  inline T max(T x, T y) { return x > y || y != y ? x : x < y || x != x || !__builtin_signbit(y) ? y : x; }
CUDA_CPU_MIN_MAX(float)
CUDA_CPU_MIN_MAX(double)
#undef CUDA_CPU_MIN_MAX
inline double min(float x, double y) { return min(static_cast<double>(x), y); }
inline double min(double x, float y) { return min(x, static_cast<double>(y)); }
inline double max(float x, double y) { return max(static_cast<double>(x), y); }
inline double max(double x, float y) { return max(x, static_cast<double>(y)); }
inline unsigned umin(unsigned x, unsigned y) { return x < y ? x : y; }
inline unsigned umax(unsigned x, unsigned y) { return x > y ? x : y; }
inline long long llmin(long long x, long long y) { return x < y ? x : y; }
inline long long llmax(long long x, long long y) { return x > y ? x : y; }
inline unsigned long long ullmin(unsigned long long x, unsigned long long y) { return x < y ? x : y; }
inline unsigned long long ullmax(unsigned long long x, unsigned long long y) { return x > y ? x : y; }

/* --- loads and stores with cache hints --- */

namespace cuda_cpu {
template <class T> inline constexpr bool loadable = std::is_arithmetic<T>::value && sizeof(T) <= 8;
#define CUDA_CPU_LOADABLE(name)                                                                                        \
  template <> inline constexpr bool loadable<name##2> = true;                                                          \
  template <> inline constexpr bool loadable<name##4> = true;
CUDA_CPU_LOADABLE(char)
CUDA_CPU_LOADABLE(uchar)
CUDA_CPU_LOADABLE(short)
CUDA_CPU_LOADABLE(ushort)
CUDA_CPU_LOADABLE(int)
CUDA_CPU_LOADABLE(uint)
CUDA_CPU_LOADABLE(float)
#undef CUDA_CPU_LOADABLE
template <> inline constexpr bool loadable<double2> = true;
template <> inline constexpr bool loadable<longlong2> = true;
template <> inline constexpr bool loadable<ulonglong2> = true;
template <class T> struct same { /* not deduced from, so that a literal converts */
  typedef T type;
};
} // namespace cuda_cpu

#define CUDA_CPU_LOAD(name)                                                                                            \
  template <class T> CUDA_CPU_DEVICE T name(const T *p) {                                                              \
    static_assert(cuda_cpu::loadable<T>, #name " has no form for this type");                                          \
    return *p;                                                                                                         \
  }
CUDA_CPU_LOAD(__ldg)
CUDA_CPU_LOAD(__ldca)
CUDA_CPU_LOAD(__ldcg)
CUDA_CPU_LOAD(__ldcs)
CUDA_CPU_LOAD(__ldlu)
#undef CUDA_CPU_LOAD
template <class T> CUDA_CPU_DEVICE T __ldcv(const T *p) { /* what others may be changing: a poll lets them */
  static_assert(cuda_cpu::loadable<T>, "__ldcv has no form for this type");
  cuda_cpu::atomic_point();
  if constexpr (std::is_arithmetic<T>::value) return *const_cast<const volatile T *>(p);
  return *p;
}
#define CUDA_CPU_STORE(name)                                                                                           \
  template <class T> CUDA_CPU_DEVICE void name(T *p, typename cuda_cpu::same<T>::type value) {                         \
    static_assert(cuda_cpu::loadable<T>, #name " has no form for this type");                                          \
    *p = value;                                                                                                        \
  }
CUDA_CPU_STORE(__stwb)
CUDA_CPU_STORE(__stcg)
CUDA_CPU_STORE(__stcs)
CUDA_CPU_STORE(__stwt)
#undef CUDA_CPU_STORE

/* --- clocks, hints --- */

inline long long clock64() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}
inline void __brkpt() { __builtin_trap(); }
inline void __assume(bool condition) {
  if (!condition) __builtin_unreachable();
}
#ifndef __clang__
#define __builtin_assume(...) __assume(__VA_ARGS__)
#endif
