/* __half and __half2. Conversions give CUDA's bits for every input. */
#pragma once
#pragma GCC system_header

#include "cuda_runtime.h"

struct __nv_bfloat16;

#define CUDA_CPU_T __half
#define CUDA_CPU_T2 __half2
#define CUDA_CPU_N half
#define CUDA_CPU_N2 half2
#define CUDA_CPU_MANTISSA 10
#define CUDA_CPU_OTHER __nv_bfloat16
#ifdef __CUDA_NO_HALF_CONVERSIONS__
#define CUDA_CPU_CONVERSIONS 0
#else
#define CUDA_CPU_CONVERSIONS 1
#endif
#ifdef __CUDA_NO_HALF_OPERATORS__
#define CUDA_CPU_OPERATORS 0
#else
#define CUDA_CPU_OPERATORS 1
#endif
#ifdef __CUDA_NO_HALF2_OPERATORS__
#define CUDA_CPU_OPERATORS2 0
#else
#define CUDA_CPU_OPERATORS2 1
#endif
#include "cuda_cpu/half.h"

#ifndef CUDA_NO_HALF
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
#endif
