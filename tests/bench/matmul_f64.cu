#include "matmul.h"
#include "plan_times.h"

void matmul_f64(const matmul_peers &peers) {
  if (bench.plan_seconds > 0) return time_plans<double>("f64");
  matmul_type<double>(peers, {{"f64", GK_PRECISION_DEFAULT, CUBLAS_COMPUTE_64F, GK_PLAN_AUTO, 16, 0}});
}
