/* Complex numbers as CUDA's header has them. */
#pragma once
#pragma GCC system_header

#include <math.h>
#include "../vector_functions.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define CUDA_CPU_COMPLEX(C, T, f, F)                                                                                   \
  inline C make_cu##F##Complex(T x, T y) { return C{x, y}; }                                                           \
  inline T cuCreal##f(C x) { return x.x; }                                                                             \
  inline T cuCimag##f(C x) { return x.y; }                                                                             \
  inline C cuConj##f(C x) { return C{x.x, -x.y}; }                                                                     \
  inline C cuCadd##f(C x, C y) { return C{x.x + y.x, x.y + y.y}; }                                                     \
  inline C cuCsub##f(C x, C y) { return C{x.x - y.x, x.y - y.y}; }                                                     \
  inline C cuCmul##f(C x, C y) { return C{x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x}; }                             \
  inline C cuCdiv##f(C x, C y) {                                                                                       \
    const T scale = 1 / (::fabs##f(y.x) + ::fabs##f(y.y)), a = x.x * scale, b = x.y * scale, c = y.x * scale,          \
            d = y.y * scale, s = 1 / (c * c + d * d);                                                                  \
    return C{(a * c + b * d) * s, (b * c - a * d) * s};                                                                \
  }                                                                                                                    \
  inline T cuCabs##f(C x) { return ::hypot##f(x.x, x.y); }                                                             \
  inline C cuCfma##f(C x, C y, C z) { return cuCadd##f(cuCmul##f(x, y), z); }
CUDA_CPU_COMPLEX(cuFloatComplex, float, f, Float)
CUDA_CPU_COMPLEX(cuDoubleComplex, double, , Double)
#undef CUDA_CPU_COMPLEX

inline cuComplex make_cuComplex(float x, float y) { return cuComplex{x, y}; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) { return cuDoubleComplex{x.x, x.y}; }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) {
  return cuFloatComplex{static_cast<float>(x.x), static_cast<float>(x.y)};
}
