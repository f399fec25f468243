#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

__global__ void nothing() {}
int main() {
  float *in = NULL, *out = NULL;
  size_t bytes = 0;
  nothing<<<1, 1>>>();
  cub::DeviceReduce::Sum(NULL, bytes, in, out, size_t{0});
  cub::DeviceScan::ExclusiveSum(NULL, bytes, in, out, size_t{0});
  return cudaDeviceSynchronize() != cudaSuccess;
}
