/* A file full of names that gpukit.cuh would like to use, too: macros whose expansion is an error wherever it happens,
 * functions, shared arrays. The header must compile, its calls must work, and the macros must still be there after it;
 * with BELOW they are defined only there. */
#ifdef BELOW
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#endif
#include <cuda_runtime.h> /* which nvcc includes by itself */
#include <stdio.h>
#include <string.h>
#include <algorithm>
#include <vector>
using namespace std;

#define CHECK(...) this macro leaked
#define CUDA_CHECK(...) this macro leaked
#define WARP_SIZE this macro leaked
#define BLOCK_SIZE this macro leaked
#define TILE this macro leaked
#define TILE_DIM this macro leaked
#define MIN(...) this macro leaked
#define MAX(...) this macro leaked
#define min(...) this macro leaked
#define max(...) this macro leaked
#define swap(...) this macro leaked
#define mask this macro leaked
#define near this macro leaked
#define far this macro leaked
#define small this macro leaked
#define A this macro leaked
#define B this macro leaked
#define I this macro leaked
#define K this macro leaked
#define M this macro leaked
#define N this macro leaked
#define T this macro leaked
#define u this macro leaked
#define BM this macro leaked
#define BN this macro leaked
#define BK this macro leaked
#define TM this macro leaked
#define TN this macro leaked
#define E this macro leaked
#define F this macro leaked
#define H this macro leaked
#define e this macro leaked
#define f this macro leaked
#define g this macro leaked
#define o this macro leaked
#define p this macro leaked
#define r this macro leaked
#define ld this macro leaked
#define v this macro leaked

#ifndef BELOW
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#endif

#define TEXT2(...) #__VA_ARGS__
#define TEXT(...) TEXT2(__VA_ARGS__)
static int lost;
static void expect_leaked(const char *name, const char *text) {
  if (strcmp(text, "this macro leaked") == 0) return;
  printf("%s has become %s\n", name, text);
  lost++;
}
#define STILL_THERE(name) expect_leaked(#name, TEXT(name))
#define STILL_THERE_CALL(name) expect_leaked(#name, TEXT(name()))

int ceil_div(int x, int y);
int ceil_div(int x, int y) { return (x + y - 1) / y; }
struct GpuTimer {
  int started;
};
__device__ inline float warpReduceSum(float x) { return x; }
static cudaError_t checkCuda(cudaError_t status) {
  GK_TRY(status);
  return cudaSuccess;
}
static const char *text_of(int) { return "never shown"; }

#ifndef CUDA_ON_CPU /* which has no other dynamic shared memory than GK_DYNAMIC_SHARED */
__global__ void shared_floats() {
  extern __shared__ float sdata[];
  sdata[gk_thread_rank()] = 1;
}
__global__ void shared_doubles() {
  extern __shared__ double smem[];
  smem[gk_thread_rank()] = 1;
}
__global__ void shared_chars() {
  extern __shared__ char shared[];
  shared[gk_thread_rank()] = 1;
}
#endif
__global__ void fill_2d(int *out, int width, int height) {
  GK_FOR_2D (x, y, width, height) out[y * width + x] = 7;
}

template <class Item> __global__ void copy_by_shared(const Item *in, Item *out, int n) {
  GK_DYNAMIC_SHARED(Item, sdata);
  GK_FOR_1D (i, n) sdata[gk_thread_rank()] = in[i];
  __syncthreads();
  GK_FOR_1D (i, n) out[i] = sdata[gk_thread_rank()];
}
__global__ void sum_by_block(const float *in, float *out) {
  __shared__ float smem[32];
  smem[gk_thread_rank()] = warpReduceSum(in[gk_x()]);
  __syncthreads();
  const float all = gk_block_reduce(smem[gk_thread_rank()], gk_sum<float>());
  if (gk_thread_rank() == 0) *out = all;
}

int main() {
  STILL_THERE_CALL(CHECK);
  STILL_THERE_CALL(CUDA_CHECK);
  STILL_THERE(WARP_SIZE);
  STILL_THERE(BLOCK_SIZE);
  STILL_THERE(TILE);
  STILL_THERE(TILE_DIM);
  STILL_THERE(BM);
  STILL_THERE(BN);
  STILL_THERE(BK);
  STILL_THERE(TM);
  STILL_THERE(TN);
  STILL_THERE(E);
  STILL_THERE(F);
  STILL_THERE(H);
  STILL_THERE(e);
  STILL_THERE(f);
  STILL_THERE(g);
  STILL_THERE(o);
  STILL_THERE(p);
  STILL_THERE(r);
  STILL_THERE(ld);
  STILL_THERE_CALL(MIN);
  STILL_THERE_CALL(MAX);
  STILL_THERE_CALL(min);
  STILL_THERE_CALL(max);
  STILL_THERE_CALL(swap);
  STILL_THERE(mask);
  STILL_THERE(near);
  STILL_THERE(far);
  STILL_THERE(small);
  STILL_THERE(A);
  STILL_THERE(B);
  STILL_THERE(I);
  STILL_THERE(K);
  STILL_THERE(M);
  STILL_THERE(N);
  STILL_THERE(T);
  STILL_THERE(u);
  STILL_THERE(v);

  const GpuTimer timer = {ceil_div(7, 2)};
  vector<float> ones(32, 1.0f);
  vector<int> counted(32);
  for (int i = 0; i < 32; i++) counted[static_cast<size_t>(i)] = i;
  float *floats = NULL, sum = 0;
  int *ints = NULL, total = 0, sevens = 0;
  GK_CHECK(cudaMalloc(reinterpret_cast<void **>(&floats), 64 * sizeof(float)));
  GK_CHECK(cudaMalloc(reinterpret_cast<void **>(&ints), 64 * sizeof(int)));
  GK_CHECK(cudaMemcpy(floats, ones.data(), 32 * sizeof(float), cudaMemcpyHostToDevice));
  GK_CHECK(cudaMemcpy(ints, counted.data(), 32 * sizeof(int), cudaMemcpyHostToDevice));
  GK_LAUNCH(copy_by_shared<float>, 1, 32, 32 * sizeof(float), 0, floats, floats + 32, 32);
  GK_LAUNCH(copy_by_shared<int>, 1, 32, 32 * sizeof(int), 0, ints, ints + 32, 32);
  GK_LAUNCH(sum_by_block, 1, 32, 0, 0, floats + 32, floats);
  GK_CHECK(gk_scan_inclusive(ints, ints, 64, gk_op_max()));
  GK_CHECK(gk_reduce_sum(ints + 32, ints, 32));
  GK_CHECK(cudaMemcpy(&sum, floats, sizeof(sum), cudaMemcpyDeviceToHost));
  GK_CHECK(cudaMemcpy(&total, ints, sizeof(total), cudaMemcpyDeviceToHost));
  GK_TIME ("hostile", 0) {
    GK_LAUNCH(fill_2d, gk_grid_2d(8, 4, dim3(4, 4)), dim3(4, 4), 0, 0, ints, 8, 4);
    GK_CHECK_LAUNCH();
  }
  GK_CHECK(gk_reduce_sum(ints, ints + 32, 32));
  GK_CHECK(cudaMemcpy(&sevens, ints + 32, sizeof(sevens), cudaMemcpyDeviceToHost));
  GK_CHECK_STATUS(0, text_of);
  GK_CHECK(checkCuda(cudaSuccess));
#ifndef CUDA_ON_CPU
  GK_LAUNCH(shared_floats, 1, 32, 32 * sizeof(float), 0);
  GK_LAUNCH(shared_doubles, 1, 32, 32 * sizeof(double), 0);
  GK_LAUNCH(shared_chars, 1, 32, 32, 0);
#endif
  GK_CHECK(cudaFree(floats));
  GK_CHECK(cudaFree(ints));
  return lost || timer.started != 4 || sum != 32.0f || total != 31 * 32 || sevens != 7 * 32;
}
