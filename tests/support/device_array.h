/* An array on the device for tests that need no more than its values. */
#ifndef DEVICE_ARRAY_H
#define DEVICE_ARRAY_H

#include <cuda_runtime.h>
#include <vector>
#include "test.h"

template <class T> struct device_array { /* starts as zeros */
  T *p;
  size_t n;
  explicit device_array(size_t count) : p(nullptr), n(count) {
    EXPECT_OK(cudaMalloc(&p, (n ? n : 1) * sizeof(T)));
    EXPECT_OK(cudaMemset(p, 0, n * sizeof(T)));
  }
  device_array(const device_array &) = delete;
  ~device_array() {
    const cudaError_t e = cudaFree(p);
    EXPECT(e == cudaSuccess || e == cudaErrorInvalidValue); /* a reset of the device has freed it already */
  }
  std::vector<T> get() const {
    std::vector<T> host(n);
    EXPECT_OK(cudaMemcpy(host.data(), p, n * sizeof(T), cudaMemcpyDefault));
    return host;
  }
  void set(const std::vector<T> &v) { EXPECT_OK(cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice)); }
};

#endif
