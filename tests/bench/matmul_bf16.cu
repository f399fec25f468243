#include "matmul.h"

void matmul_bf16(const matmul_peers &peers) {
  matmul_type<__nv_bfloat16>(peers, {{"bf16", GK_PRECISION_DEFAULT, CUBLAS_COMPUTE_32F, GK_PLAN_AUTO, 64, 0},
                                     {"bf16", GK_PRECISION_DEFAULT, CUBLAS_COMPUTE_32F, GK_PLAN_MMA, 64, 0}});
}
