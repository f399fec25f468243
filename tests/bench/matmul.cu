#include "matmul.h"

void bench_matmul() {
  matmul_peers peers;
  void *gemm_workspace;
  GK_CHECK(cublasCreate(&peers.blas));
  GK_CHECK(cublasLtCreate(&peers.lt));
  GK_CHECK(cudaMalloc(&gemm_workspace, workspace_bytes));
  GK_CHECK(cudaMalloc(&peers.lt_workspace, workspace_bytes));
  GK_CHECK(cublasSetStream(peers.blas, bench.stream));
  GK_CHECK(cublasSetWorkspace(peers.blas, gemm_workspace, workspace_bytes));
  matmul_f32(peers);
  matmul_f64(peers);
  matmul_f16(peers);
  matmul_bf16(peers);
  GK_CHECK(cudaStreamSynchronize(bench.stream));
  GK_CHECK(cublasDestroy(peers.blas));
  GK_CHECK(cublasLtDestroy(peers.lt));
  GK_CHECK(cudaFree(gemm_workspace));
  GK_CHECK(cudaFree(peers.lt_workspace));
}

int bench_cublas_version() {
  int version = 0;
  cublasHandle_t blas;
  GK_CHECK(cublasCreate(&blas));
  GK_CHECK(cublasGetVersion(blas, &version));
  GK_CHECK(cublasDestroy(blas));
  return version;
}
