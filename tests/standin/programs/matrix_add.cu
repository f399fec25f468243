// Adds two matrices by a grid of two dimensions; rows are padded by cudaMallocPitch.
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include <stdio.h>

const int M = 75, N = 133;

__global__ void MatAdd(const float *A, const float *B, float *C, size_t pitch) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < M && col < N) {
    const float *a = (const float *)((const char *)A + row * pitch);
    const float *b = (const float *)((const char *)B + row * pitch);
    float *c = (float *)((char *)C + row * pitch);
    c[col] = a[col] + b[col];
  }
}

static float a[M][N], b[M][N], c[M][N];

int main() {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      a[i][j] = i * 1000.0f + j;
      b[i][j] = j * 3.0f;
    }

  float *dA, *dB, *dC;
  size_t pitch, pitchB, pitchC, width = N * sizeof(float);
  cudaMallocPitch((void **)&dA, &pitch, width, M);
  cudaMallocPitch(&dB, &pitchB, width, M);
  cudaMallocPitch(&dC, &pitchC, width, M);
  cudaMemcpy2D(dA, pitch, a, width, width, M, cudaMemcpyHostToDevice);
  cudaMemcpy2D(dB, pitch, b, width, width, M, cudaMemcpyHostToDevice);

  dim3 threadsPerBlock(16, 16);
  dim3 numBlocks((N + threadsPerBlock.x - 1) / threadsPerBlock.x, (M + threadsPerBlock.y - 1) / threadsPerBlock.y);
  MatAdd<<<numBlocks, threadsPerBlock>>>(dA, dB, dC, pitch);
  cudaMemcpy2D(c, width, dC, pitchC, width, M, cudaMemcpyDeviceToHost);

  int wrong = pitch != pitchB || pitch != pitchC;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) wrong += c[i][j] != a[i][j] + b[i][j];
  cudaFree(dA);
  cudaFree(dB);
  cudaFree(dC);
  printf("%d wrong: %s\n", wrong, wrong ? "FAILED" : "PASSED");
  return wrong != 0;
}
