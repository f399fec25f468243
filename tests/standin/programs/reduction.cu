// Sums in dynamic shared memory: of a fixed type, of a template's type, of two types in one kernel, of a struct.
#include <stdio.h>
#include <vector>

extern __shared__ double scratch[];

__global__ void sumDouble(const double *in, double *out, int n) {
  unsigned int tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  scratch[tid] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) scratch[tid] += scratch[tid + s];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = scratch[0];
}

template <typename T> __global__ void sum(const T *in, T *out, int n) {
  extern __shared__ __align__(sizeof(double)) unsigned char memory[];
  T *sdata = reinterpret_cast<T *>(memory);
  unsigned int tid = threadIdx.x, i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
  sdata[tid] = (i < n ? in[i] : T(0)) + (i + blockDim.x < n ? in[i + blockDim.x] : T(0));
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    __syncthreads();
    if (tid < s) sdata[tid] += sdata[tid + s];
  }
  if (tid == 0) atomicAdd(out, sdata[0]);
}

struct Extremes {
  int low, high;
};

__global__ void extremes(const int *in, Extremes *out, int n) {
  extern __shared__ Extremes e[];
  int t = threadIdx.x;
  e[t].low = e[t].high = in[t];
  for (int i = t; i < n; i += blockDim.x) {
    e[t].low = min(e[t].low, in[i]);
    e[t].high = max(e[t].high, in[i]);
  }
  __syncthreads();
  if (t == 0) {
    for (int i = 1; i < blockDim.x; i++) {
      e[0].low = min(e[0].low, e[i].low);
      e[0].high = max(e[0].high, e[i].high);
    }
    *out = e[0];
  }
}

// One buffer cut into parts of two types, and a row of two dimensions.
__global__ void parts(int *out, int n) {
  extern __shared__ int both[];
  int *ints = both;
  float *floats = (float *)&ints[n];
  ints[threadIdx.x] = threadIdx.x;
  floats[threadIdx.x] = 0.5f * threadIdx.x;
  __syncthreads();
  int other = n - 1 - threadIdx.x;
  out[threadIdx.x] = ints[other] + (int)(2 * floats[other]);
}
__global__ void rows(int *out) {
  extern __shared__ int row[][8];
  row[threadIdx.y][threadIdx.x] = 10 * threadIdx.y + threadIdx.x;
  __syncthreads();
  out[threadIdx.y * 8 + threadIdx.x] = row[blockDim.y - 1 - threadIdx.y][7 - threadIdx.x];
}

template <class T> T *upload(const std::vector<T> &v) {
  T *p;
  cudaMalloc(&p, v.size() * sizeof(T));
  cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
  return p;
}
template <class T> std::vector<T> download(const T *p, size_t n) {
  std::vector<T> v(n);
  cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost);
  return v;
}

int main() {
  const int n = 10000, threads = 256, blocks = (n + threads - 1) / threads;
  std::vector<int> ints(n);
  std::vector<float> floats(n);
  std::vector<double> doubles(n);
  long long expected = 0;
  for (int i = 0; i < n; i++) {
    ints[i] = (i * 37) % 101 - 50;
    floats[i] = doubles[i] = ints[i];
    expected += ints[i];
  }
  int *di = upload(ints), *oi = upload(std::vector<int>(64, 0));
  float *df = upload(floats), *of = upload(std::vector<float>(1, 0.f));
  double *dd = upload(doubles), *od = upload(std::vector<double>(blocks));
  Extremes *oe = upload(std::vector<Extremes>(1));

  sumDouble<<<blocks, threads, threads * sizeof(double)>>>(dd, od, n);
  sum<int><<<blocks / 2 + 1, threads, threads * sizeof(int)>>>(di, oi, n);
  sum<<<blocks / 2 + 1, threads, threads * sizeof(float)>>>(df, of, n);
  extremes<<<1, 64, 64 * sizeof(Extremes)>>>(di, oe, n);
  double total = 0;
  for (double d : download(od, blocks)) total += d;
  Extremes e = download(oe, 1)[0];
  bool ok = total == expected && download(oi, 1)[0] == expected && download(of, 1)[0] == (float)expected;
  ok = ok && e.low == -50 && e.high == 50;

  parts<<<1, 32, 32 * (sizeof(int) + sizeof(float))>>>(oi, 32);
  std::vector<int> got = download(oi, 64);
  for (int i = 0; i < 32; i++) ok = ok && got[i] == 2 * (31 - i);
  rows<<<1, dim3(8, 4), 4 * 8 * sizeof(int)>>>(oi);
  got = download(oi, 64);
  for (int i = 0; i < 32; i++) ok = ok && got[i] == 10 * (3 - i / 8) + 7 - i % 8;
  ok = ok && cudaDeviceSynchronize() == cudaSuccess;
  printf("%g of %lld: %s\n", total, expected, ok ? "PASSED" : "FAILED");
  return !ok;
}
