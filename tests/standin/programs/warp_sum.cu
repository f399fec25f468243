// Sums within a warp by shuffles, votes, and from there to the whole grid.
#include <sm_20_atomic_functions.h>
#include <stdio.h>

#define FULL_MASK 0xffffffff

__inline__ __device__ int warpReduceSum(int val) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) val += __shfl_down_sync(FULL_MASK, val, offset);
  return val;
}
__inline__ __device__ int blockReduceSum(int val) {
  static __shared__ int shared[32];
  int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
  val = warpReduceSum(val);
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  val = threadIdx.x < blockDim.x / warpSize ? shared[lane] : 0;
  if (wid == 0) val = warpReduceSum(val);
  return val;
}
__global__ void deviceReduce(const int *in, unsigned long long *out, int N) {
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += blockDim.x * gridDim.x) sum += in[i];
  sum = blockReduceSum(sum);
  if (threadIdx.x == 0) atomicAdd(out, (unsigned long long)sum);
}

__global__ void scanWarp(int *p, unsigned *odd) {
  int lane = threadIdx.x & 31, value = p[lane];
  for (int d = 1; d < 32; d *= 2) {
    int other = __shfl_up_sync(FULL_MASK, value, d);
    if (lane >= d) value += other;
  }
  unsigned votes = __ballot_sync(FULL_MASK, value & 1);
  if (lane == __ffs(votes) - 1) *odd = __popc(votes);
  p[lane] = __shfl_xor_sync(FULL_MASK, value, 31);
}

int main() {
  const int N = 100000;
  int *in;
  unsigned long long *out, expected = 0;
  unsigned *odd;
  cudaMallocManaged(&in, N * sizeof(int));
  cudaMallocManaged(&out, sizeof(*out));
  cudaMallocManaged(&odd, sizeof(*odd));
  for (int i = 0; i < N; i++) expected += in[i] = i % 1000;
  *out = 0;
  deviceReduce<<<min((N + 255) / 256, 64), 256>>>(in, out, N);
  scanWarp<<<1, 32>>>(in, odd);
  cudaDeviceSynchronize();
  bool ok = *out == expected && *odd == 16;
  for (int i = 0; i < 32; i++) ok = ok && in[31 - i] == i * (i + 1) / 2;
  printf("%llu, %u: %s\n", *out, *odd, ok ? "PASSED" : "FAILED");
  return !ok;
}
