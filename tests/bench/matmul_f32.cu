#include "matmul.h"
#include "plan_times.h"

void matmul_f32(const matmul_peers &peers) {
  if (bench.plan_seconds > 0) return time_plans<float>("f32");
  const cublasComputeType_t single = CUBLAS_COMPUTE_32F;
  matmul_type<float>(peers, {{"f32", GK_PRECISION_DEFAULT, single, GK_PLAN_AUTO, 16, 0},
                             {"tf32", GK_PRECISION_TF32, CUBLAS_COMPUTE_32F_FAST_TF32, GK_PLAN_AUTO, 64, 65536},
                             {"f32emulated", GK_PRECISION_EMULATED, single, GK_PLAN_AUTO, 16, 0}});
}
