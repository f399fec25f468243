/* What code that depends on types (typed_calls.h, triple.h) asks of the host side of the runtime (host/). */
#pragma once
#pragma GCC system_header

#include "../cuda_runtime_api.h"
#include "common.h"

namespace cuda_cpu {

/* A call of the runtime, from its construction on; `failed` is why it must not run. */
cudaError_t begin_call(const char *name);
void end_call();
struct api_call {
  cudaError_t failed;
  explicit api_call(const char *name) : failed(begin_call(name)) {}
  api_call(const api_call &) = delete;
  ~api_call() { end_call(); }
};
/* Makes it the last error, which it returns. Work that has not ended is the last error only where there is no other. */
cudaError_t error(cudaError_t code);

/* What a launch does with the closure that calls the kernel with its arguments. */
struct closure_type {
  void (*call)(const void *closure);
  void *(*copy)(const void *closure);
  void (*drop)(void *closure);
};
cudaError_t launch_closure(const void *kernel, const cudaLaunchConfig_t &config, const closure_type &type,
                           const void *closure);
template <class F> cudaError_t launch_kernel(const void *kernel, const cudaLaunchConfig_t &config, const F &closure) {
  static constexpr closure_type type = {[](const void *f) { (*static_cast<const F *>(f))(); },
                                        [](const void *f) -> void * { return new F(*static_cast<const F *>(f)); },
                                        [](void *f) { delete static_cast<F *>(f); }};
  return launch_closure(kernel, config, type, &closure);
}

/* A launch of a kernel of which only the address is known, by what knows its parameters. */
typedef cudaError_t (*typed_launch)(const void *kernel, const cudaLaunchConfig_t &config, void **args);
void remember_kernel(const void *kernel, typed_launch launch);

/* Kernels use memory that CUDA's calls have not allocated (thrust.h): then no copy tells host memory from the
 * device's. */
bool &foreign_memory();

/* Says that a pointer or reference, the argument of this number from 1, is one to memory that no kernel can reach: of the
 * host, or freed. */
void check_argument(const void *kernel, int number, const void *p, bool reference);

/* For kernel<<<...>>>(...), whose name is for messages. False: it has ended in an error before it has started. */
bool may_launch(const char *name);
/* A launch that finds its kernel only when a thread calls it has no function's address, and gives one of its own. */
struct named_address {
  const void *address;
  const char *name;
  named_address *next;
};
void remember_name(named_address *a);

} // namespace cuda_cpu

/* Opens every call of the API, and nothing else decides whether a call may go on. */
#define CUDA_CPU_API(name)                                                                                             \
  cuda_cpu::api_call cuda_cpu_call(#name);                                                                             \
  if (cuda_cpu_call.failed) return cuda_cpu_call.failed
