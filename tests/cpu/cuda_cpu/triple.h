/* What cuda_to_cpp makes of a CUDA source calls this: launches that were written kernel<<<grid, block>>>(arguments),
 * and dynamic shared memory that was declared extern __shared__. It also includes what nvcc includes by itself.
 *
 * A name before <<< may be that of several kernels, of which the arguments pick one, and a launch may leave arguments
 * to their defaults. So a launch carries two lambdas made from that name: one passes it where a kernel of a certain
 * type is wanted, the other calls it as the source would. Where the name is one kernel with as many parameters as there
 * are arguments, they are converted to these, as for any call of a function. Where it is not, the kernel is looked for
 * whose parameters are the arguments' own types; if there is none, each thread calls the name with copies of the
 * arguments and has the compiler choose. */
#pragma once
#pragma GCC system_header

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wclass-memaccess" /* memset of a struct with a dim3, of which nvcc does not warn */
#endif
#define CUDA_CPU_CUDACC 1 /* what __CUDACC__ becomes */
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 0
/* What __CUDA_ARCH__ becomes in code of the device. */
#ifndef CUDA_CPU_ARCH
#define CUDA_CPU_ARCH 900
#endif

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmath>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>
#include "../cuda_runtime.h"

namespace cuda_cpu {

/* Converts to a reference to any array, of unknown bound too, as `extern __shared__ T x[]` is one. Those of file scope
 * are bound once in each worker, whose buffer stays where it is. */
struct dynamic_shared {
  template <class T> operator T &() const { return *static_cast<T *>(cuda_cpu_dynamic_shared()); }
};

template <class... P> using kernel_pointer = void (*)(P...);
template <class... T> struct types {};

/* Called with the name of a kernel: with exactly one, or with one among several. */
struct any_kernel {
  template <class... P> kernel_pointer<P...> operator()(kernel_pointer<P...> k) const { return k; }
};
template <class... P> struct kernel_of {
  kernel_pointer<P...> operator()(kernel_pointer<P...> k) const { return k; }
};

/* Takes the arguments of a kernel that is known. */
template <class... P> struct bound_launch {
  kernel_pointer<P...> kernel;
  const char *name;
  cudaLaunchConfig_t config;
  void operator()(P... p) const {
    if (!may_launch(name)) return;
    launch_with<P...>(config, kernel, static_cast<P &&>(p)...);
  }
};

/* Looks among the kernels of a name for one with the parameters Done... and then Rest...; a pointer in Rest may also
 * stand for one to const. */
template <class Name, class Done, class Rest> struct search;
template <class Name, class... Done> struct search<Name, types<Done...>, types<>> {
  static constexpr bool found = std::is_invocable_v<Name, kernel_of<Done...>>;
  typedef kernel_of<Done...> type;
};
template <class Name, class... Done, class First, class... Rest>
struct search<Name, types<Done...>, types<First, Rest...>> : search<Name, types<Done..., First>, types<Rest...>> {};
template <class Name, class... Done, class First, class... Rest>
struct search<Name, types<Done...>, types<First *, Rest...>>
    : std::conditional_t<search<Name, types<Done..., First *>, types<Rest...>>::found || std::is_const_v<First>,
                         search<Name, types<Done..., First *>, types<Rest...>>,
                         search<Name, types<Done..., const First *>, types<Rest...>>> {};

/* Takes the arguments of a kernel that they decide on. */
template <class Name, class Call> struct chosen_launch {
  Name give;
  Call call;
  const char *name;
  const void *only; /* the kernel if there is just one, of which arguments are left out */
  cudaLaunchConfig_t config;

  template <class... P> bound_launch<P...> bind(kernel_pointer<P...> k) const { return {k, name, config}; }

  template <class... A> void operator()(A... a) const {
    if constexpr (search<Name, types<>, types<A...>>::found) {
      bind(give(typename search<Name, types<>, types<A...>>::type()))(a...);
    } else {
      static named_address here = {&here, name, nullptr}; /* stands for the kernel's address in messages */
      if (!may_launch(name)) return;
      if (!only) remember_name(&here);
      Call c = call;
      launch_kernel(only ? only : &here, config, [=] { c(a...); });
    }
  }
};

template <class... P> constexpr int parameters(kernel_pointer<P...>) { return static_cast<int>(sizeof...(P)); }

/* A launch with too few or too many parameters in <<<>>> is one error: what it returns takes any arguments. */
constexpr bool can_launch(size_t count) { return count >= 2 && count <= 4; }
struct no_launch {
  template <class... A> void operator()(A &&...) const {}
};
template <size_t count> no_launch refuse_launch() {
  static_assert(can_launch(count), "a launch is kernel<<<blocks, threads[, bytes[, stream]]>>>(...)");
  return {};
}
#define CUDA_CPU_OTHER_LAUNCHES                                                                                        \
  template <class... A, class = std::enable_if_t<!can_launch(sizeof...(A))>> auto operator()(A &&...) const {          \
    return refuse_launch<sizeof...(A)>();                                                                              \
  }

/* A launch that waits for what stands in <<<>>>. */
template <int count, class Name, class Call> struct launch_site {
  Name give;
  Call call;
  const char *name;

  auto operator()(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr) const {
    cudaLaunchConfig_t config = {grid, block, shared, stream, nullptr, 0};
    if constexpr (std::is_invocable_v<Name, any_kernel>) {
      typedef decltype(give(any_kernel())) pointer;
      constexpr int n = parameters(pointer());
      if constexpr (count == n || (count < 0 && n))
        return chosen_launch<Name, Call>{give, call, name, nullptr, config}.bind(give(any_kernel()));
      else
        return chosen_launch<Name, Call>{
            give, call, name, n > count ? reinterpret_cast<const void *>(give(any_kernel())) : nullptr, config};
    } else
      return chosen_launch<Name, Call>{give, call, name, nullptr, config};
  }
  CUDA_CPU_OTHER_LAUNCHES
};
template <int count, class Name, class Call>
launch_site<count, Name, Call> make_launch(std::integral_constant<int, count>, Name give, Call call, const char *name) {
  return {give, call, name};
}

template <class... P> struct pointer_launch {
  kernel_pointer<P...> kernel;
  bound_launch<P...> operator()(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr) const {
    return {kernel, "a kernel", {grid, block, shared, stream, nullptr, 0}};
  }
  CUDA_CPU_OTHER_LAUNCHES
};
template <class... P> pointer_launch<P...> make_pointer_launch(kernel_pointer<P...> k) { return {k}; }
#undef CUDA_CPU_OTHER_LAUNCHES

} // namespace cuda_cpu

#define CUDA_CPU_LAUNCH(count, ...)                                                                                    \
  CUDA_CPU_LAUNCH_NULL(count, (const auto &...cuda_cpu_a), (cuda_cpu_a...), __VA_ARGS__)
#define CUDA_CPU_LAUNCH_NULL(count, parameters, values, ...)                                                           \
  (::cuda_cpu::make_launch(                                                                                            \
      ::std::integral_constant<int, count>(),                                                                          \
      [&](auto cuda_cpu_k) -> decltype(cuda_cpu_k(__VA_ARGS__)) { return cuda_cpu_k(__VA_ARGS__); },                   \
      [&] parameters { __VA_ARGS__ values; }, #__VA_ARGS__))
#define CUDA_CPU_LAUNCH_POINTER(...) (::cuda_cpu::make_pointer_launch(__VA_ARGS__))

/* What CUDA has dropped, and PTX: one sentence each. */
#define CUDA_CPU_NO_REFERENCES                                                                                         \
  static_assert(false, "texture<> references are gone since CUDA 12: use cudaCreateTextureObject, and tex2D<float>("   \
                       "object, x, y) with a cudaTextureObject_t that the kernel is passed");
#define CUDA_CPU_NO_PTX(...)                                                                                           \
  static_assert(false,                                                                                                 \
                "the stand-in for CUDA has no inline PTX: use an intrinsic, or plain C++ under #ifdef CUDA_ON_CPU")
#define CUDA_CPU_GONE(name, cure)                                                                                      \
  template <class T, class... A> T name(T, A...) {                                                                     \
    static_assert(sizeof(T) == 0, #name " is gone since CUDA 13, and wrong since Volta: use " cure);                   \
  }
CUDA_CPU_GONE(__shfl, "__shfl_sync(0xffffffff, value, lane)")
CUDA_CPU_GONE(__shfl_up, "__shfl_up_sync(0xffffffff, value, delta)")
CUDA_CPU_GONE(__shfl_down, "__shfl_down_sync(0xffffffff, value, delta)")
CUDA_CPU_GONE(__shfl_xor, "__shfl_xor_sync(0xffffffff, value, mask)")
CUDA_CPU_GONE(__any, "__any_sync(0xffffffff, predicate)")
CUDA_CPU_GONE(__all, "__all_sync(0xffffffff, predicate)")
CUDA_CPU_GONE(__ballot, "__ballot_sync(0xffffffff, predicate)")
#undef CUDA_CPU_GONE

/* cuda_to_cpp has a kernel whose body stands in an #if declare this name there, and use it at its end. */
[[deprecated("this kernel does nothing: the #if around its body is false (__CUDA_ARCH__ is that of sm_90, or of "
             "GPUKIT_CPU_DEVICE)")]] constexpr int cuda_cpu_has_body = 0;

/* What CUDA 13 has dropped or changed, as most courses still write it. */
inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph, cudaGraphNode_t *, char *,
                                        size_t) {
  return cudaGraphInstantiate(pGraphExec, graph, 0ull);
}
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                            size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}
template <class T>
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, T *p, size_t length = 0,
                                     unsigned flags = cudaMemAttachSingle) {
  return cudaStreamAttachMemAsync(stream, static_cast<void *>(p), length, flags);
}
/* Shared memory has no banks of a width here, nor the L2 cache a part to keep. */
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault = 0,
  cudaSharedMemBankSizeFourByte,
  cudaSharedMemBankSizeEightByte
};
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config) {
  *config = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}
template <class T> cudaError_t cudaFuncSetSharedMemConfig(T *, cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
inline cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count, int device, cudaStream_t stream = nullptr) {
  cudaMemLocation where = {device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                           device == cudaCpuDeviceId ? 0 : device};
  return cudaMemPrefetchAsync(devPtr, count, where, 0, stream);
}
inline cudaError_t cudaMemAdvise(const void *devPtr, size_t count, cudaMemoryAdvise advice, int device) {
  cudaMemLocation where = {device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                           device == cudaCpuDeviceId ? 0 : device};
  return cudaMemAdvise(devPtr, count, advice, where);
}
