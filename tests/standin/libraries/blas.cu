// Calls of cuBLAS: vectors, a matrix by a vector, products of matrices in each orientation, and one in a graph.
#include <cublas_v2.h>
#include <math.h>
#include <stdio.h>

static bool same(double a, double b) { return fabs(a - b) < 1e-4 * (1 + fabs(b)); }

int main() {
  enum { m = 3, n = 4, k = 5 };
  float *a, *b, *c, *x, two = 2, half = 0.5f, dot, norm, zero = 0;
  cudaMallocManaged(&a, m * k * sizeof *a);
  cudaMallocManaged(&b, k * n * sizeof *b);
  cudaMallocManaged(&c, m * n * sizeof *c);
  cudaMallocManaged(&x, 16 * sizeof *x);
  for (int i = 0; i < m * k; i++) a[i] = (float)(i % 7) - 2;
  for (int i = 0; i < k * n; i++) b[i] = (float)(i % 5) - 1;
  cublasHandle_t h;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  bool right = cublasCreate(&h) == CUBLAS_STATUS_SUCCESS && cublasSetStream(h, stream) == CUBLAS_STATUS_SUCCESS;

  for (int way = 0; way < 4; way++) {
    const cublasOperation_t ta = way & 1 ? CUBLAS_OP_T : CUBLAS_OP_N, tb = way & 2 ? CUBLAS_OP_T : CUBLAS_OP_N;
    for (int i = 0; i < m * n; i++) c[i] = 1;
    cublasSgemm(h, ta, tb, m, n, k, &two, a, way & 1 ? k : m, b, way & 2 ? n : k, &half, c, m);
    cudaDeviceSynchronize();
    for (int i = 0; i < m; i++)
      for (int j = 0; j < n; j++) {
        double sum = 0;
        for (int p = 0; p < k; p++) sum += a[way & 1 ? p + i * k : i + p * m] * b[way & 2 ? j + p * n : p + j * k];
        if (!same(c[i + j * m], 2 * sum + 0.5))
          right = false, printf("gemm %d: %d,%d is %f\n", way, i, j, c[i + j * m]);
      }
  }

  for (int i = 0; i < 16; i++) x[i] = i < 8 ? (float)(i + 1) : NAN;
  cublasSgemv(h, CUBLAS_OP_N, m, k, &two, a, m, x, 1, &zero, x + 8, 2); // what was there is not read
  cublasSgemv(h, CUBLAS_OP_T, m, k, &two, a, m, x, 1, &zero, c, 1);
  cublasSdot(h, 8, x, 1, x, -1, &dot); // by itself from its end
  cublasSnrm2(h, 3, x, 3, &norm);
  cudaDeviceSynchronize();
  double by_row = 0, by_column = 0;
  for (int p = 0; p < k; p++) by_row += 2 * a[2 + p * m] * x[p];
  for (int p = 0; p < m; p++) by_column += 2 * a[p + 4 * m] * x[p];
  right = right && same(dot, 120) && same(x[12], by_row) && isnan(x[9]) && same(c[4], by_column) &&
          same(norm, sqrt(1 + 16 + 49.0));

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cublasSaxpy(h, 4, &two, x, 1, b, 1);
  cublasSscal(h, 4, &half, b, 1);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  const float before = b[1];
  cudaGraphLaunch(exec, stream);
  cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  right = right && same(b[1], ((before + 2 * x[1]) / 2 + 2 * x[1]) / 2);

  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cublasDestroy(h);
  cudaStreamDestroy(stream);
  cudaFree(a), cudaFree(b), cudaFree(c), cudaFree(x);
  puts(right ? "ok" : "wrong");
  return !right;
}
