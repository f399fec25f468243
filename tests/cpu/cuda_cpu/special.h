/* CUDA's mathematical functions that libm has nothing like: inverses of the error function, the scaled one, Bessel
 * functions of imaginary arguments, norms of vectors. To about 1e-14. */
#pragma once
#pragma GCC system_header

#include <math.h>

namespace cuda_cpu {

/* Sergei Winitzki's approximation of the inverse of erf, to about 2e-3, where erfc is y, 0 < y <= 1. */
inline double guess_erfcinv(double y) {
  const double a = 0.147, l = ::log(y * (2 - y)), t = 2 / (M_PI * a) + l / 2;
  return ::sqrt(::sqrt(t * t - l / a) - t);
}
/* A step of Halley's method towards f(x) = 0, where f is erf or -erfc and a constant. */
inline double halley_of_erf(double x, double f) { return x - f / (M_2_SQRTPI * ::exp(-x * x) + x * f); }

} // namespace cuda_cpu

inline double erfinv(double x);
inline double erfcinv(double x) {
  if (!(x >= 0 && x <= 2)) return NAN;
  if (x >= 0.5 && x <= 1.5) return erfinv(1 - x);
  if (x > 1) return -erfcinv(2 - x);
  if (x == 0) return INFINITY;
  double r = cuda_cpu::guess_erfcinv(x);
  for (int i = 0; i < 4; i++) r = cuda_cpu::halley_of_erf(r, x - ::erfc(r));
  return r;
}
inline double erfinv(double x) {
  const double y = ::fabs(x);
  if (y > 0.5 || x != x) return ::copysign(erfcinv(1 - y), x);
  double r = y / M_2_SQRTPI;
  for (int i = 0; i < 4; i++) r = cuda_cpu::halley_of_erf(r, ::erf(r) - y);
  return ::copysign(r, x);
}
inline double normcdfinv(double x) { return -M_SQRT2 * erfcinv(2 * x); }

/* exp(x * x) * erfc(x); for large x by a continued fraction. */
inline double erfcx(double x) {
  if (x < 10) {
    const double square = x * x;
    return ::exp(square) * ::exp(::fma(x, x, -square)) * ::erfc(x);
  }
  double rest = x;
  for (int k = 40; k; k--) rest = x + 0.5 * k / rest;
  return M_2_SQRTPI / 2 / rest;
}

namespace cuda_cpu {
/* The sum over k of (x / 2)^(2k) / (k! (k + order)!), whose terms are all positive. */
inline double bessel_sum(double x, int order) {
  double sum = 0, term = 1;
  for (int k = 1; term > sum * 1e-18 && sum < HUGE_VAL; k++) {
    sum += term;
    term *= x / 2 / k * (x / 2 / (k + order));
  }
  return sum;
}
} // namespace cuda_cpu
inline double cyl_bessel_i0(double x) { return x != x ? x : cuda_cpu::bessel_sum(x, 0); }
inline double cyl_bessel_i1(double x) { return x != x ? x : x / 2 * cuda_cpu::bessel_sum(x, 1); }

inline double norm3d(double a, double b, double c) { return ::hypot(::hypot(a, b), c); }
inline double norm4d(double a, double b, double c, double d) { return ::hypot(norm3d(a, b, c), d); }
inline double norm(int dimensions, const double *p) {
  double r = 0;
  for (int i = 0; i < dimensions; i++) r = ::hypot(r, p[i]);
  return r;
}
inline double rhypot(double a, double b) { return 1 / ::hypot(a, b); }
inline double rnorm3d(double a, double b, double c) { return 1 / norm3d(a, b, c); }
inline double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
inline double rnorm(int dimensions, const double *p) { return 1 / norm(dimensions, p); }

/* --- of float --- */

#define CUDA_CPU_AS_DOUBLE(name, of)                                                                                   \
  inline float name(float x) { return static_cast<float>(of(static_cast<double>(x))); }
CUDA_CPU_AS_DOUBLE(erfinvf, erfinv)
CUDA_CPU_AS_DOUBLE(erfcinvf, erfcinv)
CUDA_CPU_AS_DOUBLE(normcdfinvf, normcdfinv)
CUDA_CPU_AS_DOUBLE(erfcxf, erfcx)
CUDA_CPU_AS_DOUBLE(cyl_bessel_i0f, cyl_bessel_i0)
CUDA_CPU_AS_DOUBLE(cyl_bessel_i1f, cyl_bessel_i1)
CUDA_CPU_AS_DOUBLE(erfinv, erfinv)
CUDA_CPU_AS_DOUBLE(erfcinv, erfcinv)
CUDA_CPU_AS_DOUBLE(normcdfinv, normcdfinv)
CUDA_CPU_AS_DOUBLE(erfcx, erfcx)
CUDA_CPU_AS_DOUBLE(cyl_bessel_i0, cyl_bessel_i0)
CUDA_CPU_AS_DOUBLE(cyl_bessel_i1, cyl_bessel_i1)
#undef CUDA_CPU_AS_DOUBLE
inline float norm3df(float a, float b, float c) { return ::hypotf(::hypotf(a, b), c); }
inline float norm4df(float a, float b, float c, float d) { return ::hypotf(norm3df(a, b, c), d); }
inline float normf(int dimensions, const float *p) {
  float r = 0;
  for (int i = 0; i < dimensions; i++) r = ::hypotf(r, p[i]);
  return r;
}
inline float norm(int dimensions, const float *p) { return normf(dimensions, p); }
inline float rhypotf(float a, float b) { return 1 / ::hypotf(a, b); }
inline float rnorm3df(float a, float b, float c) { return 1 / norm3df(a, b, c); }
inline float rnorm4df(float a, float b, float c, float d) { return 1 / norm4df(a, b, c, d); }
inline float rnormf(int dimensions, const float *p) { return 1 / normf(dimensions, p); }
inline float rnorm(int dimensions, const float *p) { return rnormf(dimensions, p); }
