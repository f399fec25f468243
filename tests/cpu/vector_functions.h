/* make_float4, make_int2 ... */
#pragma once
#pragma GCC system_header

#include "vector_types.h"

#define CUDA_CPU_MAKE(name, T)                                                                                         \
  inline name##1 make_##name##1(T x) { return name##1 {x}; }                                                           \
  inline name##2 make_##name##2(T x, T y) { return name##2 {x, y}; }                                                   \
  inline name##3 make_##name##3(T x, T y, T z) { return name##3 {x, y, z}; }                                           \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return name##4 {x, y, z, w}; }
CUDA_CPU_MAKE(char, signed char)
CUDA_CPU_MAKE(uchar, unsigned char)
CUDA_CPU_MAKE(short, short)
CUDA_CPU_MAKE(ushort, unsigned short)
CUDA_CPU_MAKE(int, int)
CUDA_CPU_MAKE(uint, unsigned int)
CUDA_CPU_MAKE(long, long)
CUDA_CPU_MAKE(ulong, unsigned long)
CUDA_CPU_MAKE(longlong, long long)
CUDA_CPU_MAKE(ulonglong, unsigned long long)
CUDA_CPU_MAKE(float, float)
CUDA_CPU_MAKE(double, double)
#undef CUDA_CPU_MAKE

#define CUDA_CPU_MAKE4(name, T)                                                                                        \
  inline name##4_16a make_##name##4_16a(T x, T y, T z, T w) { return name##4_16a {x, y, z, w}; }                       \
  inline name##4_32a make_##name##4_32a(T x, T y, T z, T w) { return name##4_32a {x, y, z, w}; }
CUDA_CPU_MAKE4(long, long)
CUDA_CPU_MAKE4(ulong, unsigned long)
CUDA_CPU_MAKE4(longlong, long long)
CUDA_CPU_MAKE4(ulonglong, unsigned long long)
CUDA_CPU_MAKE4(double, double)
#undef CUDA_CPU_MAKE4
