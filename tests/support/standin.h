/* What the tests of the stand-in's own features share. */
#ifndef STANDIN_H
#define STANDIN_H

#include <cuda_runtime.h>
#include <string>
#include "child.h"
#include "device_array.h"

template <class... P, class... A>
static cudaError_t launch_on(cudaStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block, size_t smem, A... args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, args...);
}
template <class... P, class... A>
static cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t smem, A... args) {
  return launch_on(nullptr, kernel, grid, block, smem, args...);
}

/* The rest of the test runs in a child with these variables in its environment, and has to pass there. */
#define RUN_WITH(name, environment)                                                                                    \
  if (!in_child(name)) {                                                                                               \
    EXPECT_PASSED(run_child(name, environment));                                                                       \
    return;                                                                                                            \
  }

#endif
