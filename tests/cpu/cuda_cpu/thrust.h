/* Before a source that includes Thrust: its algorithms run on the host, by its own C++ backend, and device_vector has
 * memory of malloc's. Thrust comes with CUDA's toolkit, or as a package. */
#pragma once
#pragma GCC system_header

#define THRUST_DEVICE_SYSTEM 4 /* THRUST_DEVICE_SYSTEM_CPP */
#define THRUST_IGNORE_CUB_VERSION_CHECK
#define CCCL_IGNORE_DEPRECATED_CPP_DIALECT
/* Headers of the toolkit for types that the stand-in has in its own. */
#define CCCL_DISABLE_FP16_SUPPORT
#define CCCL_DISABLE_BF16_SUPPORT
#define CCCL_DISABLE_NVFP8_SUPPORT
#define CCCL_DISABLE_NVFP6_SUPPORT
#define CCCL_DISABLE_NVFP4_SUPPORT

#include "triple.h"

#if !__has_include(<thrust/version.h>)
#include "Thrust is not here: it comes with CUDA's toolkit, or by apt-get install libthrust-dev"
#endif
#include <thrust/execution_policy.h>

inline const bool cuda_cpu_uses_thrust = cuda_cpu::foreign_memory() = true;

/* All streams are the host's. */
namespace thrust {
namespace cuda {
struct on_stream : decltype(thrust::device) {
  const on_stream &on(cudaStream_t) const { return *this; }
};
inline const on_stream par{}, par_nosync{};
} // namespace cuda
} // namespace thrust
