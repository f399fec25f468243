/* What cuda_to_cpp makes of a CUDA source calls this: launches that were written kernel<<<grid, block>>>(arguments),
 * and dynamic shared memory that was declared extern __shared__. It also includes what nvcc includes by itself.
 *
 * A name before <<< may be that of several kernels, of which the arguments pick one, and a launch may leave arguments
 * to their defaults. So a launch carries two lambdas made from that name: one hands it to whoever asks for a kernel of
 * a certain type, the other calls it as the source would. Where the name is one kernel with as many parameters as there
 * are arguments, they are converted to these, as for any call of a function. Where it is not, the kernel is looked for
 * whose parameters are the arguments' own types; if there is none, each thread calls the name with copies of the
 * arguments and has the compiler choose. */
#pragma once
#pragma GCC system_header

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
    kernel_pointer<P...> k = kernel;
    launch_kernel(reinterpret_cast<const void *>(k), config, [=] { k(p...); });
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
};
template <class... P> pointer_launch<P...> make_pointer_launch(kernel_pointer<P...> k) { return {k}; }

} // namespace cuda_cpu

#define CUDA_CPU_LAUNCH(count, ...)                                                                                    \
  CUDA_CPU_LAUNCH_NULL(count, (const auto &...cuda_cpu_a), (cuda_cpu_a...), __VA_ARGS__)
#define CUDA_CPU_LAUNCH_NULL(count, parameters, values, ...)                                                           \
  (::cuda_cpu::make_launch(                                                                                            \
      ::std::integral_constant<int, count>(),                                                                          \
      [&](auto cuda_cpu_k) -> decltype(cuda_cpu_k(__VA_ARGS__)) { return cuda_cpu_k(__VA_ARGS__); },                   \
      [&] parameters { __VA_ARGS__ values; }, #__VA_ARGS__))
#define CUDA_CPU_LAUNCH_POINTER(...) (::cuda_cpu::make_pointer_launch(__VA_ARGS__))

/* Says, as the call with all arguments does, that this needs the kernel's type. */
inline cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared = 0) {
  return cudaLaunchKernel(func, grid, block, args, shared, nullptr);
}

/* What CUDA 13 has dropped or changed, as most courses still write it. */
inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
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
