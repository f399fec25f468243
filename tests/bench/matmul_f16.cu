#include "matmul.h"

void matmul_f16(const matmul_peers &peers) {
  matmul_type<__half>(peers, {{"f16", GK_PRECISION_DEFAULT, CUBLAS_COMPUTE_32F, GK_PLAN_AUTO, 64, 0}});
}
