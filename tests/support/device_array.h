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
  explicit device_array(const std::vector<T> &host) : device_array(host.size()) { set(host); }
  device_array(const device_array &) = delete;
  ~device_array() {
    const cudaError_t e = cudaFree(p);
    EXPECT(e == cudaSuccess || e == cudaErrorInvalidValue); /* a reset of the device has freed it already */
  }
  std::vector<T> get(const T &filler = T()) const { /* filler: for a type without a default constructor */
    std::vector<T> host(n, filler);
    EXPECT_OK(cudaMemcpy(static_cast<void *>(host.data()), p, n * sizeof(T), cudaMemcpyDefault));
    return host;
  }
  void set(const std::vector<T> &v) { EXPECT_OK(cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice)); }
};

#endif
