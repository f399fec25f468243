/* The C++ side of the runtime: typed forms of the calls, and launches. */
#pragma once
#pragma GCC system_header

#include <tuple>
#include <type_traits>
#include <utility>
#include "calls.h"
#include "thread.h"

template <class T> cudaError_t cudaMalloc(T **devPtr, size_t size) {
  return cudaMalloc(reinterpret_cast<void **>(devPtr), size);
}
template <class T> cudaError_t cudaMallocHost(T **ptr, size_t size, unsigned int flags = 0) {
  CUDA_CPU_API(cudaMallocHost);
  return cudaHostAlloc(reinterpret_cast<void **>(ptr), size, flags);
}
template <class T> cudaError_t cudaHostAlloc(T **ptr, size_t size, unsigned int flags) {
  return cudaHostAlloc(reinterpret_cast<void **>(ptr), size, flags);
}
template <class T> cudaError_t cudaHostGetDevicePointer(T **pDevice, void *pHost, unsigned int flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void **>(pDevice), pHost, flags);
}
template <class T> cudaError_t cudaMallocManaged(T **devPtr, size_t size, unsigned int flags = cudaMemAttachGlobal) {
  return cudaMallocManaged(reinterpret_cast<void **>(devPtr), size, flags);
}
template <class T> cudaError_t cudaMallocPitch(T **devPtr, size_t *pitch, size_t width, size_t height) {
  return cudaMallocPitch(reinterpret_cast<void **>(devPtr), pitch, width, height);
}
template <class T> cudaError_t cudaMallocAsync(T **ptr, size_t size, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void **>(ptr), size, stream);
}
inline cudaError_t cudaMallocAsync(void **ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  CUDA_CPU_API(cudaMallocAsync);
  return cudaMallocFromPoolAsync(ptr, size, pool, stream);
}
template <class T> cudaError_t cudaMallocAsync(T **ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void **>(ptr), size, pool, stream);
}
template <class T> cudaError_t cudaMallocFromPoolAsync(T **ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return cudaMallocFromPoolAsync(reinterpret_cast<void **>(ptr), size, pool, stream);
}

/* Variables of the device are known by their size here, so that a copy beyond their end is an error. */
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *src, size_t count, size_t offset = 0,
                                    cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t stream = nullptr) {
  if (offset > sizeof symbol || count > sizeof symbol - offset) return cuda_cpu::error(cudaErrorInvalidValue);
  return cudaMemcpyToSymbolAsync(const_cast<const void *>(static_cast<const volatile void *>(&symbol)), src, count,
                                 offset, kind, stream);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *src, size_t count, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  CUDA_CPU_API(cudaMemcpyToSymbol);
  return cudaMemcpyToSymbolAsync(symbol, src, count, offset, kind, nullptr);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const T &symbol, size_t count, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t stream = nullptr) {
  if (offset > sizeof symbol || count > sizeof symbol - offset) return cuda_cpu::error(cudaErrorInvalidValue);
  return cudaMemcpyFromSymbolAsync(dst, const_cast<const void *>(static_cast<const volatile void *>(&symbol)), count,
                                   offset, kind, stream);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void *dst, const T &symbol, size_t count, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  CUDA_CPU_API(cudaMemcpyFromSymbol);
  return cudaMemcpyFromSymbolAsync(dst, symbol, count, offset, kind, nullptr);
}
template <class T> cudaError_t cudaGetSymbolAddress(void **devPtr, const T &symbol) {
  return cudaGetSymbolAddress(devPtr, const_cast<const void *>(static_cast<const volatile void *>(&symbol)));
}
template <class T> cudaError_t cudaGetSymbolSize(size_t *size, const T &symbol) {
  CUDA_CPU_API(cudaGetSymbolSize);
  *size = sizeof symbol;
  return cudaSuccess;
}

inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags) {
  CUDA_CPU_API(cudaEventCreate);
  return cudaEventCreateWithFlags(event, flags);
}

template <class T> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attr, T *entry) {
  return cudaFuncGetAttributes(attr, reinterpret_cast<const void *>(entry));
}
template <class T> cudaError_t cudaFuncSetAttribute(T *func, cudaFuncAttribute attr, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void *>(func), attr, value);
}
template <class T> cudaError_t cudaFuncSetCacheConfig(T *func, cudaFuncCache config) {
  return cudaFuncSetCacheConfig(reinterpret_cast<const void *>(func), config);
}
template <class T> cudaError_t cudaFuncGetName(const char **name, T *func) {
  return cudaFuncGetName(name, reinterpret_cast<const void *>(func));
}
template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, T func, int blockSize, size_t dynamic) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, reinterpret_cast<const void *>(func), blockSize,
                                                       dynamic);
}
template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, T func, int blockSize,
                                                                   size_t dynamic, unsigned int flags) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, reinterpret_cast<const void *>(func),
                                                                blockSize, dynamic, flags);
}
template <class T>
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, T *func, int numBlocks, int blockSize) {
  return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, reinterpret_cast<const void *>(func), numBlocks, blockSize);
}
/* The largest block with which a multiprocessor holds most threads. */
template <class F, class T>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *minGridSize, int *blockSize, T func, F sizeToBytes,
                                                           int limit = 0) {
  CUDA_CPU_API(cudaOccupancyMaxPotentialBlockSizeVariableSMem);
  if (!minGridSize || !blockSize || limit < 0) return cuda_cpu::error(cudaErrorInvalidValue);
  const void *f = reinterpret_cast<const void *>(func);
  if (!f) return cuda_cpu::error(cudaErrorInvalidDeviceFunction);
  int most = 0, multiprocessors = 0;
  const int largest = limit && limit < 1024 ? limit : 1024;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  *minGridSize = *blockSize = 0;
  for (int rounded = (largest + 31) / 32 * 32; rounded > 0; rounded -= 32) {
    int block = rounded < largest ? rounded : largest, blocks = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, block, static_cast<size_t>(sizeToBytes(block)));
    if (blocks * block > most) {
      most = blocks * block;
      *blockSize = block;
      *minGridSize = blocks * multiprocessors;
    }
  }
  return cudaSuccess;
}
template <class T>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, T func, size_t dynamic = 0,
                                               int limit = 0) {
  CUDA_CPU_API(cudaOccupancyMaxPotentialBlockSize);
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      minGridSize, blockSize, func, [=](int) { return dynamic; }, limit);
}

/* --- launches --- */

namespace cuda_cpu {
/* What runs the kernel with these arguments. A closure would make constants of references. */
template <class... P> auto bind_arguments(void (*kernel)(P...), P... p) {
  return [kernel, arguments = std::tuple<P...>(static_cast<P &&>(p)...)] { std::apply(kernel, arguments); };
}
template <class P> void check_parameter(const void *kernel, int number, const std::remove_reference_t<P> &p) {
  if constexpr (std::is_reference_v<P>)
    check_argument(kernel, number, const_cast<const void *>(static_cast<const volatile void *>(&p)), true);
  else if constexpr (std::is_pointer_v<P> && !std::is_function_v<std::remove_pointer_t<P>>)
    check_argument(kernel, number, const_cast<const void *>(static_cast<const volatile void *>(p)), false);
}
template <class... P> cudaError_t launch_with(const cudaLaunchConfig_t &config, void (*kernel)(P...), P... p) {
  const void *address = reinterpret_cast<const void *>(kernel);
  int number = 0;
  (check_parameter<P>(address, ++number, p), ...);
  (void)number;
  if constexpr ((std::is_reference_v<P> || ...))
    return launch_kernel(address, config, bind_arguments<P...>(kernel, static_cast<P &&>(p)...));
  else
    return launch_kernel(address, config, [=] { kernel(p...); });
}
template <class... P, size_t... I>
cudaError_t launch_from_pointers(const cudaLaunchConfig_t &config, void (*kernel)(P...), void **args,
                                 std::index_sequence<I...>) {
  (void)args;
  return launch_with<P...>(config, kernel, *static_cast<typename std::remove_reference<P>::type *>(args[I])...);
}
template <class... P> cudaError_t launch_by_address(const void *kernel, const cudaLaunchConfig_t &config, void **args) {
  return launch_from_pointers(config, reinterpret_cast<void (*)(P...)>(const_cast<void *>(kernel)), args,
                              std::index_sequence_for<P...>());
}

/* (void *)kernel, as cuda_to_cpp writes it: its parameters are remembered for cudaLaunchKernel and for nodes of
 * graphs. */
template <class... P> void *as_pointer(void (*kernel)(P...)) {
  remember_kernel(reinterpret_cast<const void *>(kernel), launch_by_address<P...>);
  return reinterpret_cast<void *>(kernel);
}
template <class T> CUDA_CPU_DEVICE void *as_pointer(const T &p) { return (void *)(p); }
} // namespace cuda_cpu

template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void **args, size_t shared = 0,
                             cudaStream_t stream = nullptr) {
  CUDA_CPU_API(cudaLaunchKernel);
  if (sizeof...(P) && !args) return cuda_cpu::error(cudaErrorInvalidValue);
  return cuda_cpu::launch_from_pointers({grid, block, shared, stream, nullptr, 0}, kernel, args,
                                        std::make_index_sequence<sizeof...(P)>());
}

template <class... P>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block, void **args, size_t shared = 0,
                                        cudaStream_t stream = nullptr) {
  CUDA_CPU_API(cudaLaunchCooperativeKernel);
  if (sizeof...(P) && !args) return cuda_cpu::error(cudaErrorInvalidValue);
  cudaLaunchAttribute cooperative = {};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  return cuda_cpu::launch_from_pointers({grid, block, shared, stream, &cooperative, 1}, kernel, args,
                                        std::make_index_sequence<sizeof...(P)>());
}

/* As CUDA's own: a lambda with the kernel's parameter types converts the arguments as a call of the kernel would. Each
 * thread gets its own copy of them. */
template <class... Expected, class... Actual>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Expected...), Actual &&...args) {
  CUDA_CPU_API(cudaLaunchKernelEx);
  if (!config) return cuda_cpu::error(cudaErrorInvalidValue);
  return cuda_cpu::launch_with<Expected...>(*config, kernel, static_cast<Actual &&>(args)...);
}
