/* __nv_bfloat16 and __nv_bfloat162. Conversions give CUDA's bits for every input. */
#pragma once
#pragma GCC system_header

#include "cuda_fp16.h"

#define CUDA_CPU_T __nv_bfloat16
#define CUDA_CPU_T2 __nv_bfloat162
#define CUDA_CPU_N bfloat16
#define CUDA_CPU_N2 bfloat162
#define CUDA_CPU_MANTISSA 7
#define CUDA_CPU_OTHER __half
#ifdef __CUDA_NO_BFLOAT16_CONVERSIONS__
#define CUDA_CPU_CONVERSIONS 0
#else
#define CUDA_CPU_CONVERSIONS 1
#endif
#ifdef __CUDA_NO_BFLOAT16_OPERATORS__
#define CUDA_CPU_OPERATORS 0
#else
#define CUDA_CPU_OPERATORS 1
#endif
#ifdef __CUDA_NO_BFLOAT162_OPERATORS__
#define CUDA_CPU_OPERATORS2 0
#else
#define CUDA_CPU_OPERATORS2 1
#endif
#include "cuda_cpu/half.h"

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#ifndef __CUDA_NO_HALF_CONVERSIONS__
inline __half::__half(__nv_bfloat16 f) : __x(cuda_cpu::narrow<10>(__bfloat162float(f))) {}
#endif
#ifndef __CUDA_NO_BFLOAT16_CONVERSIONS__
inline __nv_bfloat16::__nv_bfloat16(__half f) : __x(cuda_cpu::narrow<7>(__half2float(f))) {}
#endif
