/* gk_dist_reduce of the types that test_dist.cu leaves out. */
#include "dist.h"

#ifdef GPUKIT_NCCL
#define TEST_REDUCE(S, T)                                                                                              \
  TEST(reduce_of_every_operator_##S) { check_reduces<T>(#S); }
TEST_REDUCE(i16, int16_t)
TEST_REDUCE(i64, int64_t)
TEST_REDUCE(bf16, __nv_bfloat16)
TEST_REDUCE(f64, double)
#ifndef TEST_FEW_TYPES /* see ALL_TYPES */
TEST_REDUCE(i8, int8_t)
TEST_REDUCE(u16, uint16_t)
TEST_REDUCE(i32, int32_t)
TEST_REDUCE(u32, uint32_t)
TEST_REDUCE(u64, uint64_t)
#endif
#endif
