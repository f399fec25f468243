/* Copies and fills: cudaMemcpy, cudaMemcpyAsync, cudaMemcpy2D, cudaMemcpyToSymbol, cudaMemset, ... ; those of arrays are in
 * texture_objects.h. */
#pragma once
#pragma GCC system_header

#include "memory.h"

namespace cuda_cpu {

inline cudaError_t check_copy(const void *dst, const void *src, size_t dst_bytes, size_t src_bytes,
                              cudaMemcpyKind kind) {
  if (static_cast<unsigned>(kind) > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (!dst_bytes) return cudaSuccess;
  if (!dst || !src) return cudaErrorInvalidValue;
  locked lock;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) {
    to_device = find_allocation(dst) != nullptr;
    from_device = find_allocation(src) != nullptr;
  }
  return reaches(dst, dst_bytes, to_device) && reaches(src, src_bytes, from_device) ? cudaSuccess
                                                                                    : cudaErrorInvalidValue;
}

inline bool is_managed(const void *p, size_t bytes) {
  locked lock;
  allocation *a = p ? find_allocation(p) : nullptr;
  return a && a->kind == memory_managed && bytes && bytes <= a->size - (reinterpret_cast<uintptr_t>(p) - a->base);
}

inline cudaError_t copy(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                        cudaMemcpyKind kind, cudaStream_t stream) {
  if (!width || !height)
    return error(static_cast<unsigned>(kind) > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection : cudaSuccess);
  if (height > 1 && (width > dpitch || width > spitch)) return error(cudaErrorInvalidPitchValue);
  if (cudaError_t e = check_copy(dst, src, (height - 1) * dpitch + width, (height - 1) * spitch + width, kind))
    return error(e);
  return enqueue(stream, [=] {
    for (size_t y = 0; y < height; y++) {
      trace_written(static_cast<char *>(dst) + y * dpitch, width);
      memmove(static_cast<char *>(dst) + y * dpitch, static_cast<const char *>(src) + y * spitch, width);
    }
    return cudaSuccess;
  });
}
inline cudaError_t fill(void *p, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  if (!width || !height) return cudaSuccess;
  if (height > 1 && width > pitch) return error(cudaErrorInvalidPitchValue);
  {
    locked lock;
    if (!reaches(p, (height - 1) * pitch + width, true)) return error(cudaErrorInvalidValue);
  }
  return enqueue(stream, [=] {
    for (size_t y = 0; y < height; y++) {
      trace_written(static_cast<char *>(p) + y * pitch, width);
      memset(static_cast<char *>(p) + y * pitch, value, width);
    }
    return cudaSuccess;
  });
}

CUDA_CPU_CALL cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMemcpy);
  return copy(dst, count, src, count, count, 1, kind, nullptr);
}
CUDA_CPU_CALL cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpyAsync);
  return copy(dst, count, src, count, count, 1, kind, stream);
}
CUDA_CPU_CALL cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                           enum cudaMemcpyKind kind) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMemcpy2D);
  return copy(dst, dpitch, src, spitch, width, height, kind, nullptr);
}
CUDA_CPU_CALL cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                                enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpy2DAsync);
  return copy(dst, dpitch, src, spitch, width, height, kind, stream);
}
CUDA_CPU_CALL cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count) {
  CUDA_CPU_API(cudaMemcpyPeer);
  if (!is_device(dstDevice) || !is_device(srcDevice)) return error(cudaErrorInvalidDevice);
  return copy(dst, count, src, count, count, 1, cudaMemcpyDeviceToDevice, nullptr);
}
CUDA_CPU_CALL cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t count,
                                  cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpyPeerAsync);
  if (!is_device(dstDevice) || !is_device(srcDevice)) return error(cudaErrorInvalidDevice);
  return copy(dst, count, src, count, count, 1, cudaMemcpyDeviceToDevice, stream);
}
CUDA_CPU_CALL cudaMemset(void *devPtr, int value, size_t count) {
  CUDA_CPU_API(cudaMemset);
  return fill(devPtr, count, value, count, 1, nullptr);
}
CUDA_CPU_CALL cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemsetAsync);
  return fill(devPtr, count, value, count, 1, stream);
}
CUDA_CPU_CALL cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height) {
  CUDA_CPU_API(cudaMemset2D);
  return fill(devPtr, pitch, value, width, height, nullptr);
}
CUDA_CPU_CALL cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width, size_t height,
                                cudaStream_t stream) {
  CUDA_CPU_API(cudaMemset2DAsync);
  return fill(devPtr, pitch, value, width, height, stream);
}
CUDA_CPU_CALL cudaGetSymbolAddress(void **devPtr, const void *symbol) {
  CUDA_CPU_API(cudaGetSymbolAddress);
  if (!devPtr) return error(cudaErrorInvalidValue);
  if (!symbol || !is_static(symbol)) return error(cudaErrorInvalidSymbol);
  *devPtr = const_cast<void *>(symbol);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpyToSymbolAsync);
  if (!symbol || !is_static(symbol)) return error(cudaErrorInvalidSymbol);
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return error(cudaErrorInvalidMemcpyDirection);
  void *dst = static_cast<char *>(const_cast<void *>(symbol)) + offset;
  return copy(dst, count, src, count, count, 1, kind, stream);
}
CUDA_CPU_CALL cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset,
                                        enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpyFromSymbolAsync);
  if (!symbol || !is_static(symbol)) return error(cudaErrorInvalidSymbol);
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return error(cudaErrorInvalidMemcpyDirection);
  return copy(dst, count, static_cast<const char *>(symbol) + offset, count, count, 1, kind, stream);
}
CUDA_CPU_CALL cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
                                 enum cudaMemcpyKind kind) {
  CUDA_CPU_API(cudaMemcpyToSymbol);
  return cudaMemcpyToSymbolAsync(symbol, src, count, offset, kind, nullptr);
}
CUDA_CPU_CALL cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
                                   enum cudaMemcpyKind kind) {
  CUDA_CPU_API(cudaMemcpyFromSymbol);
  return cudaMemcpyFromSymbolAsync(dst, symbol, count, offset, kind, nullptr);
}
CUDA_CPU_CALL cudaMemPrefetchAsync(const void *devPtr, size_t count, struct cudaMemLocation location,
                                   unsigned int flags, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemPrefetchAsync);
  if (flags || !is_managed(devPtr, count)) return error(cudaErrorInvalidValue);
  if (location.type == cudaMemLocationTypeDevice && !is_device(location.id)) return error(cudaErrorInvalidDevice);
  return enqueue(stream, [] { return cudaSuccess; });
}
CUDA_CPU_CALL cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise, struct cudaMemLocation location) {
  CUDA_CPU_API(cudaMemAdvise);
  if (!is_managed(devPtr, count)) return error(cudaErrorInvalidValue);
  if (location.type == cudaMemLocationTypeDevice && !is_device(location.id)) return error(cudaErrorInvalidDevice);
  return cudaSuccess;
}

} // namespace cuda_cpu
