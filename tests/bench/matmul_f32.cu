#include "matmul.h"
#include "plan_times.h"

void matmul_f32(const matmul_peers &peers) {
  const cublasComputeType_t single = CUBLAS_COMPUTE_32F;
  if (bench.plan_seconds > 0) {
    time_plans<float>("f32");
    time_mma_plans<GK__PREPARE_TF32, 1, float, float>({"tf32", GK_PRECISION_TF32, single, GK_PLAN_MMA, 64, 65536});
    time_mma_plans<GK__PREPARE_BF16_TERMS, 6, __nv_bfloat16, float>(
        {"emulated", GK_PRECISION_EMULATED, single, GK_PLAN_MMA, 16, 0});
    return;
  }
  matmul_type<float>(peers, {{"f32", GK_PRECISION_DEFAULT, single, GK_PLAN_AUTO, 16, 0},
                             {"tf32", GK_PRECISION_TF32, CUBLAS_COMPUTE_32F_FAST_TF32, GK_PLAN_AUTO, 64, 65536},
                             {"f32emulated", GK_PRECISION_EMULATED, single, GK_PLAN_AUTO, 16, 0}});
}
