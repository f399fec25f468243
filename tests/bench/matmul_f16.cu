#include "matmul.h"
#include "plan_times.h"

void matmul_f16(const matmul_peers &peers) {
  if (bench.plan_seconds > 0)
    return time_mma_plans<GK__PREPARE_COPY, 1, __half, __half>(
        {"f16", GK_PRECISION_DEFAULT, CUBLAS_COMPUTE_32F, GK_PLAN_MMA, 64, 0});
  matmul_type<__half>(peers, {{"f16", GK_PRECISION_DEFAULT, CUBLAS_COMPUTE_32F, GK_PLAN_AUTO, 64, 0}});
}
