#include "matmul.h"

void matmul_f64(const matmul_peers &peers) {
  matmul_type<double>(peers, {{"f64", GK_PRECISION_DEFAULT, CUBLAS_COMPUTE_64F, GK_PLAN_AUTO, 16, 0}});
}
