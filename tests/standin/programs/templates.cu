// Templates with all, some and none of their arguments written, overloads, default arguments, pointers to kernels.
#include <stdio.h>
#include <vector>

template <typename T, int N> __global__ void fill(T *p, T value) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) p[i] = value;
}
template <typename T> __global__ void scale(T *p, T factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= factor;
}
template <typename In, typename Out> __global__ void convert(const In *in, Out *out, size_t n, int *count) {
  for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
    out[i] = (Out)in[i];
    if (count) atomicAdd(count, 1);
  }
}
template <class Op, class T> __global__ void apply(Op op, T *p) { p[threadIdx.x] = op(p[threadIdx.x], threadIdx.x); }

__global__ void kind(int *p) { *p = 1; }
__global__ void kind(float *p) { *p = 2; }
__global__ void kind(int *p, float) { *p = 3; }
__global__ void with_default(int *p, int value = 7) { *p = value; }

struct AddIndex {
  int start;
  __host__ __device__ int operator()(int x, int i) const { return x + start + i; }
};
namespace outer {
namespace inner {
template <bool Up> __global__ void step(int *p) { *p += Up ? 1 : -1; }
__global__ void twice(int *p) { *p *= 2; }
} // namespace inner
} // namespace outer

template <typename T> bool generic(T *p) {
  fill<T, 8><<<1, 4>>>(p, T(3));
  scale<T><<<2, 4>>>(p, T(2), 8);
  scale<<<dim3(2), dim3(4, 1)>>>(p, (T)0.5, 7);
  cudaDeviceSynchronize();
  return p[0] == T(3) * T(2) * (T)0.5 && p[7] == 6;
}

int main() {
  int *n, *count;
  float *f;
  double *d;
  cudaMallocManaged(&n, 64 * sizeof(int));
  cudaMallocManaged(&f, 64 * sizeof(float));
  cudaMallocManaged(&d, 64 * sizeof(double));
  cudaMallocManaged(&count, sizeof(int));
  bool ok = generic(f) && generic(d) && generic(n);

  fill<float, 16><<<1, 32>>>(f, 1.5f);
  *count = 0;
  convert<<<1, 4>>>(f, d, 16, count);
  convert<float, int><<<1, 4>>>(f, n, 16, NULL);
  convert<<<1, 4>>>(f, n, 16, 0);
  convert<float><<<1, 4>>>(f, n, 16, nullptr);
  cudaDeviceSynchronize();
  ok = ok && d[15] == 1.5 && n[15] == 1 && *count == 16;
  apply<<<1, 16>>>(AddIndex{100}, n);
  cudaDeviceSynchronize();
  ok = ok && n[0] == 101 && n[15] == 116;

  kind<<<1, 1>>>(n);
  kind<<<1, 1>>>(f);
  kind<<<1, 1>>>(n + 1, 1.0f);
  with_default<<<1, 1>>>(n + 2);
  with_default<<<1, 1>>>(n + 3, 8);
  cudaDeviceSynchronize();
  ok = ok && n[0] == 1 && f[0] == 2 && n[1] == 3 && n[2] == 7 && n[3] == 8;

  n[0] = 10;
  outer::inner::step<true><<<1, 1>>>(n);
  ::outer::inner::step<(1 > 2)><<<1, 1>>>(n + 1);
  using namespace outer;
  inner::twice<<<1, 1>>>(n);
  void (*kernel)(int *) = inner::twice, (*table[])(int *) = {inner::step<true>, inner::twice};
  kernel<<<1, 1>>>(n);
  (*kernel)<<<1, 1>>>(n);
  for (int i = 0; i < 2; i++) table[i]<<<1, 1>>>(n);
  (inner::twice)<<<1, 1>>>(n);
  cudaDeviceSynchronize();
  ok = ok && n[0] == (11 * 2 * 2 * 2 + 1) * 2 * 2 && n[1] == 2;
  ok = ok && cudaGetLastError() == cudaSuccess;
  printf("%d %d: %s\n", n[0], n[1], ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
