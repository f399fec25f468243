/* gk_dist_scan_inclusive and _exclusive of the types that test_dist_scan.cu leaves out. */
#include "dist.h"

#ifdef GPUKIT_NCCL
#define TEST_SCAN(S, T)                                                                                                \
  TEST(scan_of_##S) { check_scans<T>(#S); }
TEST_SCAN(i16, int16_t)
TEST_SCAN(f16, __half)
TEST_SCAN(f64, double)
#ifndef TEST_FEW_TYPES /* see ALL_TYPES */
TEST_SCAN(i8, int8_t)
TEST_SCAN(u8, uint8_t)
TEST_SCAN(u16, uint16_t)
TEST_SCAN(i32, int32_t)
TEST_SCAN(u32, uint32_t)
TEST_SCAN(u64, uint64_t)
TEST_SCAN(bf16, __nv_bfloat16)
#endif
#define TEST_MORE_SCAN(S, T)                                                                                           \
  TEST(scan_by_every_operator_of_##S) { check_more_scans<T>(#S); }
TEST_MORE_SCAN(f16, __half)
TEST_MORE_SCAN(f64, double)
#endif
