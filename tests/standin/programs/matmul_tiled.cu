// Multiplies matrices by tiles in shared memory, and compares with a kernel that has none.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define TILE 16
#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))

typedef struct {
  int width, height;
  float *elements;
} Matrix;

__global__ void MatMulNaive(Matrix A, Matrix B, Matrix C) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= C.height || col >= C.width) return;
  float sum = 0;
  for (int e = 0; e < A.width; ++e) sum += A.elements[row * A.width + e] * B.elements[e * B.width + col];
  C.elements[row * C.width + col] = sum;
}

__global__ void MatMulTiled(Matrix A, Matrix B, Matrix C) {
  static __shared__ float As[TILE][TILE];
  __shared__ float Bs[TILE][TILE + 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  float sum = 0.f;
  for (int m = 0; m < CEIL_DIV(A.width, TILE); ++m) {
    int k = m * TILE;
    As[ty][tx] = row < A.height && k + tx < A.width ? A.elements[row * A.width + k + tx] : 0.f;
    Bs[ty][tx] = k + ty < B.height && col < B.width ? B.elements[(k + ty) * B.width + col] : 0.f;
    __syncthreads();
#pragma unroll
    for (int e = 0; e < TILE; ++e) sum += As[ty][e] * Bs[e][tx];
    __syncthreads();
  }
  if (row < C.height && col < C.width) C.elements[row * C.width + col] = sum;
}

static Matrix make(int width, int height) {
  Matrix m = {width, height, nullptr};
  size_t bytes = sizeof(float) * width * height;
  assert(cudaMalloc(&m.elements, bytes) == cudaSuccess);
  std::vector<float> host(width * height);
  for (float &f : host) f = (float)(rand() % 7 - 3);
  cudaMemcpy(m.elements, host.data(), bytes, cudaMemcpyHostToDevice);
  return m;
}

int main() {
  Matrix A = make(70, 50), B = make(45, 70), C = make(45, 50), D = make(45, 50);
  dim3 block(TILE, TILE), grid(CEIL_DIV(C.width, TILE), CEIL_DIV(C.height, TILE));
  MatMulNaive<<<grid, block>>>(A, B, C);
  MatMulTiled<<<grid, block>>>(A, B, D);
  std::vector<float> c(45 * 50), d(45 * 50);
  cudaMemcpy(c.data(), C.elements, c.size() * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(d.data(), D.elements, d.size() * sizeof(float), cudaMemcpyDeviceToHost);
  bool passed = cudaGetLastError() == cudaSuccess && c == d;
  for (Matrix m : {A, B, C, D}) cudaFree(m.elements);
  printf(passed ? "PASSED\n" : "FAILED\n");
  return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
