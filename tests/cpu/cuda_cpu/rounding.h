/* Conversions between number formats, with CUDA's rounding modes, saturation and NaNs. */
#pragma once
#pragma GCC system_header

#include <stdint.h>
#include <string.h>
#include <type_traits>

namespace cuda_cpu {

enum rounding { nearest, towards_zero, down, up };

inline uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}
inline float float_of(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
inline uint64_t bits_of(double f) {
  uint64_t u;
  memcpy(&u, &f, 8);
  return u;
}
inline double double_of(uint64_t u) {
  double f;
  memcpy(&f, &u, 8);
  return f;
}

/* m * 2^e (and a bit more, if sticky is set in m's last bit), m not zero, to the 16-bit format with M stored bits. */
template <int M> inline unsigned short encode(bool negative, uint64_t m, int e, rounding mode) {
  const int bias = M == 10 ? 15 : 127, smallest = 1 - bias - M; /* exponent of the last bit of subnormals */
  int top = 63 - __builtin_clzll(m), drop = top - M;
  if (e + drop < smallest) drop = smallest - e;
  uint64_t kept;
  if (drop <= 0)
    kept = m << -drop;
  else {
    uint64_t rest, half;
    if (drop > 64)
      kept = 0, rest = 1, half = 2; /* far below half of the last bit */
    else if (drop == 64)
      kept = 0, rest = m >> 1 | (m & 1), half = uint64_t{1} << 62;
    else
      kept = m >> drop, rest = m & ((uint64_t{1} << drop) - 1), half = uint64_t{1} << (drop - 1);
    bool away = mode == nearest ? rest > half || (rest == half && (kept & 1))
                                : rest && (mode == up ? !negative : mode == down && negative);
    kept += away;
  }
  int exponent = e + drop - smallest;                         /* 0 for subnormals and the first normal binade */
  uint64_t r = (static_cast<uint64_t>(exponent) << M) + kept; /* a normal number's leading bit adds one */
  const uint64_t infinity = 0x7fff >> M << M;
  if (r >= infinity) r = mode == nearest || mode == (negative ? down : up) ? infinity : infinity - 1;
  return static_cast<unsigned short>(r | (negative ? 0x8000 : 0));
}

template <int M> inline unsigned short narrow(double f, rounding mode = nearest) {
  uint64_t u = bits_of(f), m = u & 0xfffffffffffff;
  int exponent = static_cast<int>(u >> 52 & 0x7ff);
  if (exponent == 0x7ff) return m ? 0x7fff : static_cast<unsigned short>(u >> 63 << 15 | 0x7fff >> M << M);
  if (exponent)
    m |= uint64_t{1} << 52;
  else
    exponent = 1;
  return m ? encode<M>(u >> 63, m, exponent - 1075, mode) : static_cast<unsigned short>(u >> 63 << 15);
}

/* Round to nearest from float, the common case, in few operations. */
inline unsigned short narrow_half(float f) {
  uint32_t u = bits_of(f), sign = u >> 16 & 0x8000;
  u &= 0x7fffffff;
  if (u > 0x7f800000) return 0x7fff;
  if (u >= 0x47800000) return static_cast<unsigned short>(sign | 0x7c00); /* from 2^16 */
  if (u < 0x38800000) {                                                   /* below 2^-14: the adder rounds */
    u = bits_of(float_of(u) + 0.5f) - 0x3f000000;
    return static_cast<unsigned short>(sign | u);
  }
  u += 0xfff + (u >> 13 & 1) - 0x38000000;
  return static_cast<unsigned short>(sign | u >> 13);
}
inline unsigned short narrow_bfloat16(float f) {
  uint32_t u = bits_of(f);
  if ((u & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<unsigned short>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
template <int M> inline unsigned short narrow(float f, rounding mode = nearest) {
  if (mode != nearest) return narrow<M>(static_cast<double>(f), mode);
  return M == 10 ? narrow_half(f) : narrow_bfloat16(f);
}
template <int M, class T> inline unsigned short narrow(T i, rounding mode = nearest) {
  static_assert(std::is_integral<T>::value, "an integer");
  if (!i) return 0;
  bool negative = i < 0;
  uint64_t m = static_cast<uint64_t>(static_cast<long long>(i));
  if (!std::is_signed<T>::value) m = static_cast<uint64_t>(i);
  return encode<M>(negative, negative ? 0 - m : m, 0, mode);
}

/* A half's NaN is 0x7fffffff as a float; a bfloat16 is the upper half of a float, NaNs included. */
template <int M> inline float widen(unsigned short h) {
  uint32_t u = h;
  if (M == 7) return float_of(u << 16);
  uint32_t sign = (u & 0x8000) << 16;
  u &= 0x7fff;
  if (u > 0x7c00) return float_of(0x7fffffff);
  if (u == 0x7c00) return float_of(sign | 0x7f800000);
  if (u >= 0x0400) return float_of(sign | (u + (112 << 10)) << 13);
  return float_of(sign | bits_of(static_cast<float>(u) * 0x1p-24f));
}

/* The double next to a + b whose last bit is odd, unless the sum is exact: rounding it once more, to a format with at
 * least two bits less, gives what rounding a + b would. */
inline double add_to_odd(double a, double b) {
  double s = a + b, t = s - a, error = (a - (s - t)) + (b - t);
  uint64_t u = bits_of(s);
  if (error == 0 || error != error || (u & 1)) return s;
  return double_of(u + (((error > 0) == (s > 0)) ? 1 : uint64_t(-1)));
}

inline float next_to(float x, float y) { return __builtin_nextafterf(x, y); }
inline double next_to(double x, double y) { return __builtin_nextafter(x, y); }

/* nearest is x rounded to nearest, and is off from it to this side: 1 if it is too large. Integers and doubles compare
 * exactly with what they were rounded to, so that no rounding mode has to be set, which compilers do not respect. */
template <class F> inline F redirect(F nearest, int off, rounding mode) {
  const F infinity = static_cast<F>(__builtin_inf());
  bool negative = nearest < 0 || (nearest == 0 && off > 0);
  if (mode == towards_zero) mode = negative ? up : down;
  if (mode == up && off < 0) return next_to(nearest, infinity);
  if (mode == down && off > 0) return next_to(nearest, -infinity);
  return nearest;
}
template <class F, class T> inline F integer_to(T x, rounding mode) {
  F f = static_cast<F>(x);
  __int128 back = static_cast<__int128>(f);
  return redirect(f, back > x ? 1 : back < x ? -1 : 0, mode);
}
inline float double_to_float(double x, rounding mode) {
  float f = static_cast<float>(x);
  return redirect(f, static_cast<double>(f) > x ? 1 : static_cast<double>(f) < x ? -1 : 0, mode);
}

template <class F> inline F round_in(F f, rounding mode) {
  switch (mode) {
  case nearest: return static_cast<F>(__builtin_rint(static_cast<double>(f)));
  case towards_zero: return static_cast<F>(__builtin_trunc(static_cast<double>(f)));
  case down: return static_cast<F>(__builtin_floor(static_cast<double>(f)));
  default: return static_cast<F>(__builtin_ceil(static_cast<double>(f)));
  }
}

/* Out of range: the nearest value of the type. NaN: 0, or the upper bit alone where one of the two has 64 bits. */
template <class T, class F> inline T float_to(F f, rounding mode = towards_zero) {
  const int bits = static_cast<int>(sizeof(T)) * 8 - (std::is_signed<T>::value ? 1 : 0);
  const T most = static_cast<T>(~uint64_t{0} >> (64 - bits));
  const T least = std::is_signed<T>::value ? static_cast<T>(-most - 1) : T{0};
  if (f != f) return sizeof(T) == 8 || sizeof(F) == 8 ? static_cast<T>(uint64_t{1} << (8 * sizeof(T) - 1)) : T{0};
  double r = static_cast<double>(round_in(f, mode));
  if (r >= __builtin_ldexp(1, bits)) return most;
  if (r <= static_cast<double>(least)) return least;
  return static_cast<T>(r);
}

} // namespace cuda_cpu
