/* CUDA's constants, without the split ones (_HI, _LO) and those for argument reduction. */
#pragma once
#pragma GCC system_header

#include "cuda_runtime.h"

#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_MIN_DENORM_F __int_as_float(1)
#define CUDART_MAX_NORMAL_F __FLT_MAX__
#define CUDART_NEG_ZERO_F (-0.0f)
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f
#define CUDART_SQRT_HALF_F static_cast<float>(CUDART_SQRT_HALF)
#define CUDART_SQRT_TWO_F static_cast<float>(CUDART_SQRT_TWO)
#define CUDART_THIRD_F static_cast<float>(CUDART_THIRD)
#define CUDART_PIO4_F static_cast<float>(CUDART_PIO4)
#define CUDART_PIO2_F static_cast<float>(CUDART_PIO2)
#define CUDART_3PIO4_F static_cast<float>(CUDART_3PIO4)
#define CUDART_2_OVER_PI_F static_cast<float>(CUDART_2_OVER_PI)
#define CUDART_PI_F static_cast<float>(CUDART_PI)
#define CUDART_L2E_F static_cast<float>(CUDART_L2E)
#define CUDART_L2T_F static_cast<float>(CUDART_L2T)
#define CUDART_LG2_F static_cast<float>(CUDART_LG2)
#define CUDART_LGE_F static_cast<float>(CUDART_LGE)
#define CUDART_LN2_F static_cast<float>(CUDART_LN2)
#define CUDART_LNT_F static_cast<float>(CUDART_LNT)
#define CUDART_LNPI_F static_cast<float>(CUDART_LNPI)
#define CUDART_TWO_TO_23_F 0x1p23f
#define CUDART_TWO_TO_24_F 0x1p24f
#define CUDART_TWO_TO_31_F 0x1p31f
#define CUDART_TWO_TO_32_F 0x1p32f
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __longlong_as_double(static_cast<long long>(0xfff8000000000000))
#define CUDART_NEG_ZERO (-0.0)
#define CUDART_MIN_DENORM __longlong_as_double(1)
#define CUDART_ZERO 0.0
#define CUDART_ONE 1.0
#define CUDART_SQRT_TWO 1.4142135623730951
#define CUDART_SQRT_HALF 0.70710678118654757
#define CUDART_THIRD (1.0 / 3.0)
#define CUDART_TWOTHIRD (2.0 / 3.0)
#define CUDART_PIO4 (CUDART_PI / 4)
#define CUDART_PIO2 (CUDART_PI / 2)
#define CUDART_3PIO4 2.3561944901923448
#define CUDART_2_OVER_PI 0.63661977236758138
#define CUDART_PI 3.1415926535897931
#define CUDART_SQRT_2PI 2.5066282746310007
#define CUDART_L2E 1.4426950408889634
#define CUDART_L2T 3.3219280948873622
#define CUDART_LG2 0.3010299956639812
#define CUDART_LGE 0.43429448190325182
#define CUDART_LN2 0.69314718055994529
#define CUDART_LNT 2.3025850929940459
#define CUDART_LNPI 1.1447298858494002
#define CUDART_TWO_TO_23 0x1p23
#define CUDART_TWO_TO_52 0x1p52
#define CUDART_TWO_TO_53 0x1p53
