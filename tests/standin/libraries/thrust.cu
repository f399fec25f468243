// Vectors of Thrust, whose memory a kernel and a copy take, and algorithms with functors for the device, one in a
// stream.
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <stdio.h>

struct square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
__global__ void twice(int *p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= 2;
}

int main() {
  enum { n = 1000 };
  thrust::host_vector<int> h(n);
  for (int i = 0; i < n; i++) h[i] = (i * 37) % n;
  thrust::device_vector<int> d = h;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  thrust::sort(thrust::cuda::par.on(stream), d.begin(), d.end());
  thrust::transform(d.begin(), d.end(), d.begin(), square());
  twice<<<4, 256>>>(thrust::raw_pointer_cast(d.data()), n);
  bool right = thrust::reduce(d.begin(), d.end()) == 2 * 332833500 && d[3] == 18;

  int *p, first[4];
  cudaMalloc(&p, n * sizeof *p);
  thrust::device_ptr<int> begin(p);
  thrust::copy(d.begin(), d.end(), begin);
  thrust::sort(thrust::device, begin, begin + n, thrust::greater<int>());
  cudaMemcpy(first, p, sizeof first, cudaMemcpyDeviceToHost);
  right = right && first[0] == 2 * 999 * 999 && first[3] == 2 * 996 * 996;
  cudaMemcpy(first, thrust::raw_pointer_cast(d.data()), sizeof first, cudaMemcpyDeviceToHost);
  right = right && first[1] == 2;
  cudaFree(p);
  cudaStreamDestroy(stream);
  puts(right ? "ok" : "wrong");
  return !right;
}
