/* The calls of cuda_runtime_api.h. */
#ifndef CUDA_CPU_API_H
#define CUDA_CPU_API_H
#pragma GCC system_header

#include "context.h"

/* All of this takes long to compile, and one object for a program of several files, or for several programs, is enough
 * to have it: the others say so. */
#ifndef CUDA_CPU_ELSEWHERE

/* --- errors --- */

CUDA_CPU_EXPORT cudaError_t cudaPeekAtLastError(void) {
  cudaError_t sticky = __atomic_load_n(&cuda_cpu::here().sticky, __ATOMIC_ACQUIRE);
  return sticky ? sticky : cuda_cpu::last_error;
}
CUDA_CPU_EXPORT cudaError_t cudaGetLastError(void) {
  cudaError_t e = cudaPeekAtLastError();
  cuda_cpu::last_error = cudaSuccess;
  return e;
}
CUDA_CPU_EXPORT const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define CUDA_CPU_CASE(name, value, text)                                                                               \
  case name: return #name;
    CUDA_CPU_ERRORS(CUDA_CPU_CASE)
#undef CUDA_CPU_CASE
  default: return "unrecognized error code";
  }
}
CUDA_CPU_EXPORT const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define CUDA_CPU_CASE(name, value, text)                                                                               \
  case name: return text;
    CUDA_CPU_ERRORS(CUDA_CPU_CASE)
#undef CUDA_CPU_CASE
  default: return "unrecognized error code";
  }
}

/* --- devices --- */

CUDA_CPU_EXPORT cudaError_t cudaGetDeviceCount(int *count) {
  CUDA_CPU_API(cudaGetDeviceCount);
  if (!count) return cuda_cpu::error(cudaErrorInvalidValue);
  *count = cuda_cpu::device_count();
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaGetDevice(int *device) {
  CUDA_CPU_API(cudaGetDevice);
  if (!device) return cuda_cpu::error(cudaErrorInvalidValue);
  *device = cuda_cpu::device_now;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaSetDevice(int device) {
  CUDA_CPU_API(cudaSetDevice);
  if (!cuda_cpu::is_device(device)) return cuda_cpu::error(cudaErrorInvalidDevice);
  cuda_cpu::device_now = device;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) {
  CUDA_CPU_API(cudaInitDevice);
  return cuda_cpu::error(cuda_cpu::is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}
CUDA_CPU_EXPORT cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  CUDA_CPU_API(cudaSetDeviceFlags);
  cuda_cpu::here().flags = flags;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaGetDeviceFlags(unsigned int *flags) {
  CUDA_CPU_API(cudaGetDeviceFlags);
  if (!flags) return cuda_cpu::error(cudaErrorInvalidValue);
  *flags = cuda_cpu::here().flags;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device) {
  CUDA_CPU_API(cudaDeviceGetAttribute);
  if (!cuda_cpu::is_device(device)) return cuda_cpu::error(cudaErrorInvalidDevice);
  if (!value || attr < 1 || attr >= cudaDevAttrMax) return cuda_cpu::error(cudaErrorInvalidValue);
  *value = attr == cudaDevAttrPciBusId ? device : cuda_cpu::attribute_value(attr);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device) {
  CUDA_CPU_API(cudaGetDeviceProperties);
  if (!prop) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!cuda_cpu::is_device(device)) return cuda_cpu::error(cudaErrorInvalidDevice);
  cuda_cpu::fill_properties(prop, device);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop) {
  CUDA_CPU_API(cudaChooseDevice);
  if (!device || !prop) return cuda_cpu::error(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device) {
  CUDA_CPU_API(cudaDeviceGetPCIBusId);
  if (!id || len < 13) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!cuda_cpu::is_device(device)) return cuda_cpu::error(cudaErrorInvalidDevice);
  snprintf(id, static_cast<size_t>(len), "0000:%02x:00.0", static_cast<unsigned>(device));
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceSynchronize(void) {
  CUDA_CPU_API(cudaDeviceSynchronize);
  return cuda_cpu::error(cuda_cpu::forbid_while_capturing());
}
/* Frees what is allocated and clears a failure. Streams and events of before are gone, as on a GPU. */
CUDA_CPU_EXPORT cudaError_t cudaDeviceReset(void) {
  cuda_cpu::reset();
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
  CUDA_CPU_API(cudaDeviceGetLimit);
  if (!value) return cuda_cpu::error(cudaErrorInvalidValue);
  switch (limit) {
  case cudaLimitStackSize: *value = cuda_cpu::here().stack_limit; return cudaSuccess;
  case cudaLimitPrintfFifoSize: *value = cuda_cpu::here().fifo_limit; return cudaSuccess;
  case cudaLimitMallocHeapSize: *value = cuda_cpu::here().heap_limit; return cudaSuccess;
  default: return cuda_cpu::error(cudaErrorUnsupportedLimit);
  }
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  CUDA_CPU_API(cudaDeviceSetLimit);
  switch (limit) {
  case cudaLimitStackSize: cuda_cpu::here().stack_limit = value; return cudaSuccess;
  case cudaLimitPrintfFifoSize: cuda_cpu::here().fifo_limit = value; return cudaSuccess;
  case cudaLimitMallocHeapSize: cuda_cpu::here().heap_limit = value; return cudaSuccess;
  default: return cuda_cpu::error(cudaErrorUnsupportedLimit);
  }
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config) {
  CUDA_CPU_API(cudaDeviceGetCacheConfig);
  if (!config) return cuda_cpu::error(cudaErrorInvalidValue);
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache) {
  CUDA_CPU_API(cudaDeviceSetCacheConfig);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  CUDA_CPU_API(cudaDeviceGetStreamPriorityRange);
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  CUDA_CPU_API(cudaDeviceCanAccessPeer);
  if (!can) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!cuda_cpu::is_device(device) || !cuda_cpu::is_device(peer)) return cuda_cpu::error(cudaErrorInvalidDevice);
  *can = device != peer;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  CUDA_CPU_API(cudaDeviceEnablePeerAccess);
  if (flags) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!cuda_cpu::is_device(peer) || peer == cuda_cpu::device_now) return cuda_cpu::error(cudaErrorInvalidDevice);
  cuda_cpu::locked lock;
  unsigned &peers = cuda_cpu::here().peers, bit = 1u << peer;
  if (peers & bit) return cuda_cpu::error(cudaErrorPeerAccessAlreadyEnabled);
  peers |= bit;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  CUDA_CPU_API(cudaDeviceDisablePeerAccess);
  if (!cuda_cpu::is_device(peer)) return cuda_cpu::error(cudaErrorInvalidDevice);
  cuda_cpu::locked lock;
  unsigned &peers = cuda_cpu::here().peers, bit = 1u << peer;
  if (!(peers & bit)) return cuda_cpu::error(cudaErrorPeerAccessNotEnabled);
  peers &= ~bit;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDriverGetVersion(int *version) {
  if (!version) return cuda_cpu::error(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaRuntimeGetVersion(int *version) {
  if (!version) return cuda_cpu::error(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaProfilerStart(void) {
  CUDA_CPU_API(cudaProfilerStart);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaProfilerStop(void) {
  CUDA_CPU_API(cudaProfilerStop);
  return cudaSuccess;
}

/* --- memory --- */

CUDA_CPU_EXPORT cudaError_t cudaMalloc(void **devPtr, size_t size) {
  CUDA_CPU_API(cudaMalloc);
  if (cudaError_t e = cuda_cpu::forbid_while_capturing()) return cuda_cpu::error(e);
  return cuda_cpu::allocate(devPtr, size, cuda_cpu::memory_device, 0);
}
CUDA_CPU_EXPORT cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height) {
  CUDA_CPU_API(cudaMallocPitch);
  if (cudaError_t e = cuda_cpu::forbid_while_capturing()) return cuda_cpu::error(e);
  if (!devPtr || !pitch) return cuda_cpu::error(cudaErrorInvalidValue);
  size_t padded, bytes;
  if (__builtin_add_overflow(width, size_t{511}, &padded) ||
      __builtin_mul_overflow(padded & ~size_t{511}, height, &bytes))
    return cuda_cpu::error(cudaErrorMemoryAllocation);
  *pitch = padded & ~size_t{511};
  return cuda_cpu::allocate(devPtr, bytes, cuda_cpu::memory_device, 0);
}
CUDA_CPU_EXPORT cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags) {
  CUDA_CPU_API(cudaMallocManaged);
  if (cudaError_t e = cuda_cpu::forbid_while_capturing()) return cuda_cpu::error(e);
  if (!size || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
    return cuda_cpu::error(cudaErrorInvalidValue);
  return cuda_cpu::allocate(devPtr, size, cuda_cpu::memory_managed, flags);
}
CUDA_CPU_EXPORT cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags) {
  CUDA_CPU_API(cudaHostAlloc);
  if (cudaError_t e = cuda_cpu::forbid_while_capturing()) return cuda_cpu::error(e);
  if (flags & ~7u) return cuda_cpu::error(cudaErrorInvalidValue);
  return cuda_cpu::allocate(pHost, size, cuda_cpu::memory_host, flags);
}
CUDA_CPU_EXPORT cudaError_t cudaMallocHost(void **ptr, size_t size) {
  CUDA_CPU_API(cudaMallocHost);
  if (cudaError_t e = cuda_cpu::forbid_while_capturing()) return cuda_cpu::error(e);
  return cuda_cpu::allocate(ptr, size, cuda_cpu::memory_host, cudaHostAllocDefault);
}
CUDA_CPU_EXPORT cudaError_t cudaFree(void *devPtr) {
  CUDA_CPU_API(cudaFree);
  if (cudaError_t e = cuda_cpu::forbid_while_capturing()) return cuda_cpu::error(e);
  return cuda_cpu::release(devPtr, false);
}
CUDA_CPU_EXPORT cudaError_t cudaFreeHost(void *ptr) {
  CUDA_CPU_API(cudaFreeHost);
  if (cudaError_t e = cuda_cpu::forbid_while_capturing()) return cuda_cpu::error(e);
  return cuda_cpu::release(ptr, true);
}
CUDA_CPU_EXPORT cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags) {
  CUDA_CPU_API(cudaHostRegister);
  if (!ptr || !size) return cuda_cpu::error(cudaErrorInvalidValue);
  cuda_cpu::locked lock;
  uintptr_t base = reinterpret_cast<uintptr_t>(ptr);
  size_t i = cuda_cpu::allocation_after(base);
  if (cuda_cpu::find_allocation(ptr) ||
      (i < cuda_cpu::ctx.allocation_count && cuda_cpu::ctx.allocations[i].base - base < size))
    return cuda_cpu::error(cudaErrorHostMemoryAlreadyRegistered);
  return cuda_cpu::error(cuda_cpu::add_allocation({base, size, cuda_cpu::memory_registered, flags, nullptr, false,
                                                   cuda_cpu::device_now, 0, "cudaHostRegister"})
                             ? cudaSuccess
                             : cudaErrorMemoryAllocation);
}
CUDA_CPU_EXPORT cudaError_t cudaHostUnregister(void *ptr) {
  CUDA_CPU_API(cudaHostUnregister);
  if (!ptr) return cuda_cpu::error(cudaErrorInvalidValue);
  cuda_cpu::locked lock;
  cuda_cpu::allocation *a = cuda_cpu::find_allocation(ptr);
  if (!a || a->kind != cuda_cpu::memory_registered || a->base != reinterpret_cast<uintptr_t>(ptr))
    return cuda_cpu::error(cudaErrorHostMemoryNotRegistered);
  cuda_cpu::remove_allocation(a);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags) {
  CUDA_CPU_API(cudaHostGetDevicePointer);
  if (!pDevice || !pHost || flags) return cuda_cpu::error(cudaErrorInvalidValue);
  cuda_cpu::locked lock;
  cuda_cpu::allocation *a = cuda_cpu::find_allocation(pHost);
  if (!a || a->kind == cuda_cpu::memory_device) return cuda_cpu::error(cudaErrorInvalidValue);
  *pDevice = pHost;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaHostGetFlags(unsigned int *pFlags, void *pHost) {
  CUDA_CPU_API(cudaHostGetFlags);
  cuda_cpu::locked lock;
  cuda_cpu::allocation *a = cuda_cpu::find_allocation(pHost);
  if (!pFlags || !a || (a->kind != cuda_cpu::memory_host && a->kind != cuda_cpu::memory_registered))
    return cuda_cpu::error(cudaErrorInvalidValue);
  *pFlags = a->flags;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  CUDA_CPU_API(cudaMemGetInfo);
  if (!free || !total) return cuda_cpu::error(cudaErrorInvalidValue);
  cuda_cpu::locked lock;
  *total = cuda_cpu::device_memory();
  *free = *total - cuda_cpu::here().used;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr) {
  CUDA_CPU_API(cudaPointerGetAttributes);
  if (!attributes || !ptr) return cuda_cpu::error(cudaErrorInvalidValue);
  cuda_cpu::locked lock;
  cuda_cpu::allocation *a = cuda_cpu::find_allocation(ptr);
  cudaPointerAttributes r = {};
  void *p = const_cast<void *>(ptr);
  r.device = -2;
  if (!a) {
    r.hostPointer = p;
  } else {
    r.device = a->device;
    r.devicePointer = p;
    r.type = a->kind == cuda_cpu::memory_device    ? cudaMemoryTypeDevice
             : a->kind == cuda_cpu::memory_managed ? cudaMemoryTypeManaged
                                                   : cudaMemoryTypeHost;
    if (a->kind != cuda_cpu::memory_device) r.hostPointer = p;
  }
  *attributes = r;
  return cudaSuccess;
}

/* --- stream-ordered memory --- */

CUDA_CPU_EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device) {
  CUDA_CPU_API(cudaDeviceGetDefaultMemPool);
  if (!memPool) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!cuda_cpu::is_device(device)) return cuda_cpu::error(cudaErrorInvalidDevice);
  *memPool = &cuda_cpu::device(device).default_pool;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device) {
  CUDA_CPU_API(cudaDeviceGetMemPool);
  if (!memPool) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!cuda_cpu::is_device(device)) return cuda_cpu::error(cudaErrorInvalidDevice);
  cuda_cpu::device_state &d = cuda_cpu::device(device);
  *memPool = d.current_pool ? d.current_pool : &d.default_pool;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool) {
  CUDA_CPU_API(cudaDeviceSetMemPool);
  if (!memPool) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!cuda_cpu::is_device(device)) return cuda_cpu::error(cudaErrorInvalidDevice);
  cuda_cpu::device(device).current_pool = memPool;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *props) {
  CUDA_CPU_API(cudaMemPoolCreate);
  if (!memPool || !props || props->allocType != cudaMemAllocationTypePinned)
    return cuda_cpu::error(cudaErrorInvalidValue);
  const bool placed = props->location.type == cudaMemLocationTypeDevice;
  if (placed && !cuda_cpu::is_device(props->location.id)) return cuda_cpu::error(cudaErrorInvalidValue);
  *memPool = static_cast<cudaMemPool_t>(calloc(1, sizeof(CUmemPoolHandle_st)));
  if (!*memPool) return cuda_cpu::error(cudaErrorMemoryAllocation);
  (*memPool)->device = placed ? props->location.id : cuda_cpu::device_now;
  cuda_cpu::hold(*memPool, cuda_cpu::held_pool, (*memPool)->device, cuda_cpu::call_name);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool) {
  CUDA_CPU_API(cudaMemPoolDestroy);
  if (!memPool || memPool->is_default) return cuda_cpu::error(cudaErrorInvalidValue);
  cuda_cpu::locked lock;
  cuda_cpu::device_state &d = cuda_cpu::device(memPool->device);
  if (d.current_pool == memPool) d.current_pool = nullptr;
  cuda_cpu::let_go(memPool);
  memPool->destroyed = true;
  if (!memPool->used) free(memPool);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const cudaMemAccessDesc *list, size_t count) {
  CUDA_CPU_API(cudaMemPoolSetAccess);
  if (!memPool || !list) return cuda_cpu::error(cudaErrorInvalidValue);
  cuda_cpu::locked lock;
  for (size_t i = 0; i < count; i++)
    if (list[i].location.type != cudaMemLocationTypeDevice || !cuda_cpu::is_device(list[i].location.id) ||
        (list[i].location.id == memPool->device && list[i].flags != cudaMemAccessFlagsProtReadWrite))
      return cuda_cpu::error(cudaErrorInvalidDevice);
  for (size_t i = 0; i < count; i++) {
    const unsigned bit = 1u << list[i].location.id;
    memPool->peers = list[i].flags ? memPool->peers | bit : memPool->peers & ~bit;
  }
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value) {
  CUDA_CPU_API(cudaMemPoolSetAttribute);
  if (!memPool || !value) return cuda_cpu::error(cudaErrorInvalidValue);
  switch (attr) {
  case cudaMemPoolReuseFollowEventDependencies:
  case cudaMemPoolReuseAllowOpportunistic:
  case cudaMemPoolReuseAllowInternalDependencies: return cudaSuccess;
  case cudaMemPoolAttrReleaseThreshold: memcpy(&memPool->threshold, value, 8); return cudaSuccess;
  case cudaMemPoolAttrReservedMemHigh: return cudaSuccess;
  case cudaMemPoolAttrUsedMemHigh: memPool->used_high = memPool->used; return cudaSuccess;
  default: return cuda_cpu::error(cudaErrorInvalidValue);
  }
}
CUDA_CPU_EXPORT cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value) {
  CUDA_CPU_API(cudaMemPoolGetAttribute);
  if (!memPool || !value) return cuda_cpu::error(cudaErrorInvalidValue);
  const int one = 1;
  switch (attr) {
  case cudaMemPoolReuseFollowEventDependencies:
  case cudaMemPoolReuseAllowOpportunistic:
  case cudaMemPoolReuseAllowInternalDependencies: memcpy(value, &one, sizeof one); return cudaSuccess;
  case cudaMemPoolAttrReleaseThreshold: memcpy(value, &memPool->threshold, 8); return cudaSuccess;
  case cudaMemPoolAttrReservedMemCurrent: /* nothing is kept for later use */
  case cudaMemPoolAttrUsedMemCurrent: memcpy(value, &memPool->used, 8); return cudaSuccess;
  case cudaMemPoolAttrReservedMemHigh:
  case cudaMemPoolAttrUsedMemHigh: memcpy(value, &memPool->used_high, 8); return cudaSuccess;
  default: return cuda_cpu::error(cudaErrorInvalidValue);
  }
}
CUDA_CPU_EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t) {
  CUDA_CPU_API(cudaMemPoolTrimTo);
  return cuda_cpu::error(memPool ? cudaSuccess : cudaErrorInvalidValue);
}
CUDA_CPU_EXPORT cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  CUDA_CPU_API(cudaMallocFromPoolAsync);
  if (!ptr || !pool) return cuda_cpu::error(cudaErrorInvalidValue);
  return cuda_cpu::allocate_async(ptr, size, pool, stream);
}
CUDA_CPU_EXPORT cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t stream) {
  CUDA_CPU_API(cudaMallocAsync);
  if (!devPtr) return cuda_cpu::error(cudaErrorInvalidValue);
  const CUstream_st *s = cuda_cpu::find_stream(stream);
  cuda_cpu::device_state &d = cuda_cpu::device(s ? s->device : cuda_cpu::device_now);
  return cuda_cpu::allocate_async(devPtr, size, d.current_pool ? d.current_pool : &d.default_pool, stream);
}
CUDA_CPU_EXPORT cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t stream) {
  CUDA_CPU_API(cudaFreeAsync);
  return cuda_cpu::release_async(devPtr, stream);
}

/* --- copies and fills --- */

namespace cuda_cpu {

CUDA_CPU_OUT_OF_LINE cudaError_t copy(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                      size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!width || !height)
    return error(static_cast<unsigned>(kind) > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection : cudaSuccess);
  if (height > 1 && (width > dpitch || width > spitch)) return error(cudaErrorInvalidPitchValue);
  if (cudaError_t e = check_copy(dst, src, (height - 1) * dpitch + width, (height - 1) * spitch + width, kind))
    return error(e);
  return enqueue(stream, [=] {
    for (size_t y = 0; y < height; y++)
      memmove(static_cast<char *>(dst) + y * dpitch, static_cast<const char *>(src) + y * spitch, width);
    return cudaSuccess;
  });
}
CUDA_CPU_OUT_OF_LINE cudaError_t fill(void *p, size_t pitch, int value, size_t width, size_t height,
                                      cudaStream_t stream) {
  if (!width || !height) return cudaSuccess;
  if (height > 1 && width > pitch) return error(cudaErrorInvalidPitchValue);
  {
    locked lock;
    if (!reaches(p, (height - 1) * pitch + width, true)) return error(cudaErrorInvalidValue);
  }
  return enqueue(stream, [=] {
    for (size_t y = 0; y < height; y++) memset(static_cast<char *>(p) + y * pitch, value, width);
    return cudaSuccess;
  });
}

} // namespace cuda_cpu

CUDA_CPU_EXPORT cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind) {
  CUDA_CPU_API(cudaMemcpy);
  if (cudaError_t e = cuda_cpu::forbid_while_capturing()) return cuda_cpu::error(e);
  return cuda_cpu::copy(dst, count, src, count, count, 1, kind, nullptr);
}
CUDA_CPU_EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                                            cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpyAsync);
  return cuda_cpu::copy(dst, count, src, count, count, 1, kind, stream);
}
CUDA_CPU_EXPORT cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                         size_t height, enum cudaMemcpyKind kind) {
  CUDA_CPU_API(cudaMemcpy2D);
  if (cudaError_t e = cuda_cpu::forbid_while_capturing()) return cuda_cpu::error(e);
  return cuda_cpu::copy(dst, dpitch, src, spitch, width, height, kind, nullptr);
}
CUDA_CPU_EXPORT cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpy2DAsync);
  return cuda_cpu::copy(dst, dpitch, src, spitch, width, height, kind, stream);
}
CUDA_CPU_EXPORT cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count) {
  CUDA_CPU_API(cudaMemcpyPeer);
  if (!cuda_cpu::is_device(dstDevice) || !cuda_cpu::is_device(srcDevice))
    return cuda_cpu::error(cudaErrorInvalidDevice);
  return cuda_cpu::copy(dst, count, src, count, count, 1, cudaMemcpyDeviceToDevice, nullptr);
}
CUDA_CPU_EXPORT cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t count,
                                                cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpyPeerAsync);
  if (!cuda_cpu::is_device(dstDevice) || !cuda_cpu::is_device(srcDevice))
    return cuda_cpu::error(cudaErrorInvalidDevice);
  return cuda_cpu::copy(dst, count, src, count, count, 1, cudaMemcpyDeviceToDevice, stream);
}
CUDA_CPU_EXPORT cudaError_t cudaMemset(void *devPtr, int value, size_t count) {
  CUDA_CPU_API(cudaMemset);
  return cuda_cpu::fill(devPtr, count, value, count, 1, nullptr);
}
CUDA_CPU_EXPORT cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemsetAsync);
  return cuda_cpu::fill(devPtr, count, value, count, 1, stream);
}
CUDA_CPU_EXPORT cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height) {
  CUDA_CPU_API(cudaMemset2D);
  return cuda_cpu::fill(devPtr, pitch, value, width, height, nullptr);
}
CUDA_CPU_EXPORT cudaError_t cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width, size_t height,
                                              cudaStream_t stream) {
  CUDA_CPU_API(cudaMemset2DAsync);
  return cuda_cpu::fill(devPtr, pitch, value, width, height, stream);
}
CUDA_CPU_EXPORT cudaError_t cudaGetSymbolAddress(void **devPtr, const void *symbol) {
  CUDA_CPU_API(cudaGetSymbolAddress);
  if (!devPtr) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!symbol || !cuda_cpu::is_static(symbol)) return cuda_cpu::error(cudaErrorInvalidSymbol);
  *devPtr = const_cast<void *>(symbol);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count, size_t offset,
                                                    enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpyToSymbolAsync);
  if (!symbol || !cuda_cpu::is_static(symbol)) return cuda_cpu::error(cudaErrorInvalidSymbol);
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cuda_cpu::error(cudaErrorInvalidMemcpyDirection);
  void *dst = static_cast<char *>(const_cast<void *>(symbol)) + offset;
  return cuda_cpu::copy(dst, count, src, count, count, 1, kind, stream);
}
CUDA_CPU_EXPORT cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset,
                                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpyFromSymbolAsync);
  if (!symbol || !cuda_cpu::is_static(symbol)) return cuda_cpu::error(cudaErrorInvalidSymbol);
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cuda_cpu::error(cudaErrorInvalidMemcpyDirection);
  return cuda_cpu::copy(dst, count, static_cast<const char *>(symbol) + offset, count, count, 1, kind, stream);
}
CUDA_CPU_EXPORT cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
                                               enum cudaMemcpyKind kind) {
  CUDA_CPU_API(cudaMemcpyToSymbol);
  return cudaMemcpyToSymbolAsync(symbol, src, count, offset, kind, nullptr);
}
CUDA_CPU_EXPORT cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
                                                 enum cudaMemcpyKind kind) {
  CUDA_CPU_API(cudaMemcpyFromSymbol);
  return cudaMemcpyFromSymbolAsync(dst, symbol, count, offset, kind, nullptr);
}
CUDA_CPU_EXPORT cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count, struct cudaMemLocation location,
                                                 unsigned int flags, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemPrefetchAsync);
  if (flags || !cuda_cpu::is_managed(devPtr, count)) return cuda_cpu::error(cudaErrorInvalidValue);
  if (location.type == cudaMemLocationTypeDevice && !cuda_cpu::is_device(location.id))
    return cuda_cpu::error(cudaErrorInvalidDevice);
  return cuda_cpu::enqueue(stream, [] { return cudaSuccess; });
}
CUDA_CPU_EXPORT cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise,
                                          struct cudaMemLocation location) {
  CUDA_CPU_API(cudaMemAdvise);
  if (!cuda_cpu::is_managed(devPtr, count)) return cuda_cpu::error(cudaErrorInvalidValue);
  if (location.type == cudaMemLocationTypeDevice && !cuda_cpu::is_device(location.id))
    return cuda_cpu::error(cudaErrorInvalidDevice);
  return cudaSuccess;
}

/* --- streams --- */

CUDA_CPU_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority) {
  CUDA_CPU_API(cudaStreamCreateWithPriority);
  if (!pStream || flags > cudaStreamNonBlocking) return cuda_cpu::error(cudaErrorInvalidValue);
  CUstream_st *s = static_cast<CUstream_st *>(calloc(1, sizeof(CUstream_st)));
  if (!s) return cuda_cpu::error(cudaErrorMemoryAllocation);
  s->flags = flags;
  s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
  s->device = cuda_cpu::device_now;
  cuda_cpu::hold(s, cuda_cpu::held_stream, s->device, cuda_cpu::call_name);
  cuda_cpu::locked lock;
  s->next = cuda_cpu::ctx.streams;
  cuda_cpu::ctx.streams = s;
  *pStream = s;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags) {
  CUDA_CPU_API(cudaStreamCreateWithFlags);
  return cudaStreamCreateWithPriority(pStream, flags, 0);
}
CUDA_CPU_EXPORT cudaError_t cudaStreamCreate(cudaStream_t *pStream) {
  CUDA_CPU_API(cudaStreamCreate);
  return cudaStreamCreateWithPriority(pStream, cudaStreamDefault, 0);
}
CUDA_CPU_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  CUDA_CPU_API(cudaStreamDestroy);
  cuda_cpu::locked lock;
  for (CUstream_st **p = &cuda_cpu::ctx.streams; *p; p = &(*p)->next)
    if (*p == stream) {
      *p = stream->next;
      if (stream->capture) cuda_cpu::leave_capture(stream);
      cuda_cpu::let_go(stream);
      free(stream);
      return cudaSuccess;
    }
  return cuda_cpu::error(cudaErrorInvalidResourceHandle);
}
CUDA_CPU_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CUDA_CPU_API(cudaStreamSynchronize);
  CUstream_st *s = cuda_cpu::find_stream(stream);
  if (s) cuda_cpu::refuse_to_hang(s->hung, "cudaStreamSynchronize");
  return cuda_cpu::error(cuda_cpu::check_wait(s));
}
CUDA_CPU_EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream) {
  CUDA_CPU_API(cudaStreamQuery);
  CUstream_st *s = cuda_cpu::find_stream(stream);
  if (cudaError_t e = cuda_cpu::check_wait(s)) return cuda_cpu::error(e);
  return cuda_cpu::error(cuda_cpu::ready(s->hung));
}
CUDA_CPU_EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags) {
  CUDA_CPU_API(cudaStreamGetFlags);
  CUstream_st *s = cuda_cpu::find_stream(hStream);
  if (!s || !flags) return cuda_cpu::error(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
  *flags = s->flags;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority) {
  CUDA_CPU_API(cudaStreamGetPriority);
  CUstream_st *s = cuda_cpu::find_stream(hStream);
  if (!s || !priority) return cuda_cpu::error(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
  *priority = s->priority;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int *device) {
  CUDA_CPU_API(cudaStreamGetDevice);
  CUstream_st *s = cuda_cpu::find_stream(hStream);
  if (!s || !device) return cuda_cpu::error(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
  *device = s->device;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData) {
  CUDA_CPU_API(cudaLaunchHostFunc);
  if (!fn) return cuda_cpu::error(cudaErrorInvalidValue);
  return cuda_cpu::enqueue(stream, [=] {
    fn(userData);
    return cudaSuccess;
  });
}
CUDA_CPU_EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *userData,
                                                  unsigned int flags) {
  CUDA_CPU_API(cudaStreamAddCallback);
  if (!callback || flags) return cuda_cpu::error(cudaErrorInvalidValue);
  return cuda_cpu::enqueue(stream, [=] {
    callback(stream, cudaSuccess, userData);
    return cudaSuccess;
  });
}

/* --- events --- */

CUDA_CPU_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  CUDA_CPU_API(cudaEventCreateWithFlags);
  if (!event || flags > 7 || ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming)))
    return cuda_cpu::error(cudaErrorInvalidValue);
  CUevent_st *e = static_cast<CUevent_st *>(calloc(1, sizeof(CUevent_st)));
  if (!e) return cuda_cpu::error(cudaErrorMemoryAllocation);
  e->flags = flags;
  e->device = cuda_cpu::device_now;
  cuda_cpu::hold(e, cuda_cpu::held_event, e->device, cuda_cpu::call_name);
  cuda_cpu::locked lock;
  e->next = cuda_cpu::ctx.events;
  cuda_cpu::ctx.events = e;
  *event = e;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event) {
  CUDA_CPU_API(cudaEventCreate);
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
CUDA_CPU_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
  CUDA_CPU_API(cudaEventDestroy);
  cuda_cpu::locked lock;
  for (CUevent_st **p = &cuda_cpu::ctx.events; *p; p = &(*p)->next)
    if (*p == event) {
      *p = event->next;
      cuda_cpu::let_go(event);
      free(event);
      return cudaSuccess;
    }
  return cuda_cpu::error(cudaErrorInvalidResourceHandle);
}
CUDA_CPU_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  CUDA_CPU_API(cudaEventRecordWithFlags);
  return cuda_cpu::error(cuda_cpu::record(event, stream, flags));
}
CUDA_CPU_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  CUDA_CPU_API(cudaEventRecord);
  return cuda_cpu::error(cuda_cpu::record(event, stream, cudaEventRecordDefault));
}
CUDA_CPU_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  CUDA_CPU_API(cudaStreamWaitEvent);
  return cuda_cpu::error(cuda_cpu::wait(stream, event));
}
CUDA_CPU_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) {
  CUDA_CPU_API(cudaEventQuery);
  if (!cuda_cpu::is_event(event)) return cuda_cpu::error(cudaErrorInvalidResourceHandle);
  return cuda_cpu::error(event->capture ? cudaErrorCapturedEvent : cuda_cpu::ready(event->hung));
}
CUDA_CPU_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  CUDA_CPU_API(cudaEventSynchronize);
  if (!cuda_cpu::is_event(event)) return cuda_cpu::error(cudaErrorInvalidResourceHandle);
  cuda_cpu::refuse_to_hang(event->hung, "cudaEventSynchronize");
  return cuda_cpu::error(event->capture ? cudaErrorCapturedEvent : cudaSuccess);
}
CUDA_CPU_EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  CUDA_CPU_API(cudaEventElapsedTime);
  if (!ms) return cuda_cpu::error(cudaErrorInvalidValue);
  const cudaEvent_t both[] = {start, end};
  for (cudaEvent_t e : both)
    if (!cuda_cpu::is_event(e) || !e->recorded || (e->flags & cudaEventDisableTiming))
      return cuda_cpu::error(cudaErrorInvalidResourceHandle);
  if (start->device != end->device) return cuda_cpu::error(cudaErrorInvalidResourceHandle);
  *ms = static_cast<float>(static_cast<double>(end->ns - start->ns) * 1e-6);
  return cudaSuccess;
}

/* --- capture and graphs --- */

CUDA_CPU_EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  CUDA_CPU_API(cudaStreamBeginCapture);
  CUstream_st *s = cuda_cpu::find_stream(stream);
  if (!s) return cuda_cpu::error(cudaErrorInvalidResourceHandle);
  if (cuda_cpu::is_legacy(s) || s == &cuda_cpu::device(s->device).per_thread)
    return cuda_cpu::error(cudaErrorStreamCaptureUnsupported);
  if (s->capture) return cuda_cpu::error(cudaErrorIllegalState);
  CUgraph_st *g = static_cast<CUgraph_st *>(calloc(1, sizeof(CUgraph_st)));
  if (!g) return cuda_cpu::error(cudaErrorMemoryAllocation);
  g->references = 1;
  g->last = &g->first;
  g->mode = mode;
  g->thread = &cuda_cpu::capture_mode;
  g->status = cudaStreamCaptureStatusActive;
  g->origin = s;
  cuda_cpu::locked lock;
  g->id = ++cuda_cpu::ctx.captures;
  cuda_cpu::ctx.capturing++;
  s->capture = g;
  s->last_node = s->joined = 0;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph) {
  CUDA_CPU_API(cudaStreamEndCapture);
  if (!pGraph) return cuda_cpu::error(cudaErrorInvalidValue);
  CUstream_st *s = cuda_cpu::find_stream(stream);
  if (!s) return cuda_cpu::error(cudaErrorInvalidResourceHandle);
  if (cudaError_t e = cuda_cpu::end_capture(s, pGraph)) return cuda_cpu::error(e);
  cuda_cpu::hold(*pGraph, cuda_cpu::held_graph, s->device, cuda_cpu::call_name);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  CUDA_CPU_API(cudaStreamIsCapturing);
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
CUDA_CPU_EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                                     unsigned long long *id, cudaGraph_t *graph,
                                                     const cudaGraphNode_t **dependencies,
                                                     const cudaGraphEdgeData **edges, size_t *count) {
  CUDA_CPU_API(cudaStreamGetCaptureInfo);
  CUstream_st *s = cuda_cpu::find_stream(stream);
  if (!s) return cuda_cpu::error(cudaErrorInvalidResourceHandle);
  if (!status) return cuda_cpu::error(cudaErrorInvalidValue);
  if (dependencies || edges || count) return cuda_cpu::unsupported("cudaStreamGetCaptureInfo with dependencies");
  *status = s->capture ? s->capture->status : cudaStreamCaptureStatusNone;
  if (s->capture && id) *id = s->capture->id;
  if (s->capture && graph) *graph = s->capture;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  CUDA_CPU_API(cudaThreadExchangeStreamCaptureMode);
  if (!mode) return cuda_cpu::error(cudaErrorInvalidValue);
  cudaStreamCaptureMode before = cuda_cpu::capture_mode;
  cuda_cpu::capture_mode = *mode;
  *mode = before;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes) {
  CUDA_CPU_API(cudaGraphGetNodes);
  if (!graph || !numNodes) return cuda_cpu::error(cudaErrorInvalidValue);
  size_t i = 0, room = nodes ? *numNodes : 0;
  for (cudaGraphNode_t n = graph->first; n && i < room; n = n->next) nodes[i++] = n;
  *numNodes = nodes ? i : graph->nodes;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                                          unsigned long long flags) {
  CUDA_CPU_API(cudaGraphInstantiateWithFlags);
  if (!pGraphExec || !graph) return cuda_cpu::error(cudaErrorInvalidValue);
  if (flags & cudaGraphInstantiateFlagDeviceLaunch)
    return cuda_cpu::unsupported("cudaGraphInstantiateFlagDeviceLaunch");
  CUgraphExec_st *e = static_cast<CUgraphExec_st *>(calloc(1, sizeof(CUgraphExec_st)));
  if (!e) return cuda_cpu::error(cudaErrorMemoryAllocation);
  e->graph = graph;
  graph->references++;
  cuda_cpu::hold(e, cuda_cpu::held_exec, cuda_cpu::device_now, cuda_cpu::call_name);
  *pGraphExec = e;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                                 unsigned long long flags) {
  CUDA_CPU_API(cudaGraphInstantiate);
  return cudaGraphInstantiateWithFlags(pGraphExec, graph, flags);
}
CUDA_CPU_EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t) {
  CUDA_CPU_API(cudaGraphUpload);
  return cuda_cpu::error(graphExec ? cudaSuccess : cudaErrorInvalidValue);
}
CUDA_CPU_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  CUDA_CPU_API(cudaGraphLaunch);
  if (!graphExec) return cuda_cpu::error(cudaErrorInvalidValue);
  CUstream_st *s = cuda_cpu::find_stream(stream);
  if (s && s->capture) return cuda_cpu::unsupported("cudaGraphLaunch into a capturing stream");
  return cuda_cpu::enqueue(stream, [=] {
    for (CUgraphNode_st *n = graphExec->graph->first; n; n = n->next)
      if (cudaError_t e = n->run(n)) return e;
    return cudaSuccess;
  });
}
CUDA_CPU_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  CUDA_CPU_API(cudaGraphExecDestroy);
  if (!graphExec) return cuda_cpu::error(cudaErrorInvalidValue);
  cuda_cpu::let_go(graphExec);
  cuda_cpu::drop_graph(graphExec->graph);
  free(graphExec);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  CUDA_CPU_API(cudaGraphDestroy);
  if (!graph) return cuda_cpu::error(cudaErrorInvalidValue);
  cuda_cpu::let_go(graph);
  cuda_cpu::drop_graph(graph);
  return cudaSuccess;
}

/* --- kernels --- */

CUDA_CPU_EXPORT cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func) {
  CUDA_CPU_API(cudaFuncGetAttributes);
  if (!attr) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!func) return cuda_cpu::error(cudaErrorInvalidDeviceFunction);
  cuda_cpu::kernel k = cuda_cpu::find_kernel(func);
  cudaFuncAttributes a = {};
  a.sharedSizeBytes = k.static_shared;
  a.maxThreadsPerBlock = cuda_cpu::max_threads;
  a.numRegs = cuda_cpu::registers_per_thread;
  a.ptxVersion = a.binaryVersion = cuda_cpu::gpu().major * 10 + cuda_cpu::gpu().minor;
  a.maxDynamicSharedSizeBytes = k.dynamic_limit;
  a.preferredShmemCarveout = k.carveout;
  *attr = a;
  return cudaSuccess;
}
namespace cuda_cpu {
/* Of the kernel on the device that is current. */
CUDA_CPU_RARE cudaError_t set_attribute(const void *func, cudaFuncAttribute attr, int value) {
  kernel k = find_kernel(func);
  switch (attr) {
  case cudaFuncAttributeMaxDynamicSharedMemorySize:
    if (value < 0 || static_cast<size_t>(value) + k.static_shared > gpu().shared_optin)
      return error(cudaErrorInvalidValue);
    k.dynamic_limit = value;
    break;
  case cudaFuncAttributePreferredSharedMemoryCarveout:
    if (value < -1 || value > 100) return error(cudaErrorInvalidValue);
    k.carveout = value;
    break;
  case cudaFuncAttributeNonPortableClusterSizeAllowed: break;
  default: return unsupported("an attribute of a kernel about the size of clusters");
  }
  find_kernel(func, &k);
  return cudaSuccess;
}
} // namespace cuda_cpu

/* As CUDA's does, it clears the last error when it succeeds, and nothing else does that by the way. */
CUDA_CPU_EXPORT cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value) {
  CUDA_CPU_API(cudaFuncSetAttribute);
  if (!func) return cuda_cpu::error(cudaErrorInvalidDeviceFunction);
  const cudaError_t code = cuda_cpu::set_attribute(func, attr, value);
  if (code == cudaSuccess) cuda_cpu::last_error = code;
  return code;
}
/* A kernel's handle is its address. */
CUDA_CPU_EXPORT cudaError_t cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr) {
  CUDA_CPU_API(cudaGetKernel);
  if (!kernelPtr) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!entryFuncAddr) return cuda_cpu::error(cudaErrorInvalidDeviceFunction);
  *kernelPtr = static_cast<cudaKernel_t>(const_cast<void *>(entryFuncAddr));
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr, int value,
                                                            int device) {
  CUDA_CPU_API(cudaKernelSetAttributeForDevice);
  if (!kernel) return cuda_cpu::error(cudaErrorInvalidResourceHandle);
  if (!cuda_cpu::is_device(device)) return cuda_cpu::error(cudaErrorInvalidDevice);
  const int current = cuda_cpu::device_now;
  cuda_cpu::device_now = device;
  const cudaError_t code = cuda_cpu::set_attribute(kernel, attr, value);
  cuda_cpu::device_now = current;
  return code;
}
CUDA_CPU_EXPORT cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache) {
  CUDA_CPU_API(cudaFuncSetCacheConfig);
  return cuda_cpu::error(func ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}
CUDA_CPU_EXPORT cudaError_t cudaFuncGetName(const char **name, const void *func) {
  CUDA_CPU_API(cudaFuncGetName);
  if (!name) return cuda_cpu::error(cudaErrorInvalidValue);
  *name = cuda_cpu::mangled_name(func);
  return cuda_cpu::error(*name ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}
CUDA_CPU_EXPORT cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t) {
  CUDA_CPU_API(cudaLaunchKernel);
  return cuda_cpu::unsupported(
      "cudaLaunchKernel of a const void *, which tells no argument types: pass the kernel itself");
}
CUDA_CPU_EXPORT cudaError_t cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t) {
  CUDA_CPU_API(cudaLaunchCooperativeKernel);
  return cuda_cpu::unsupported(
      "cudaLaunchCooperativeKernel of a const void *, which tells no argument types: pass the kernel itself");
}
CUDA_CPU_EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **) {
  CUDA_CPU_API(cudaLaunchKernelExC);
  return cuda_cpu::unsupported("cudaLaunchKernelExC, which is told no argument types: use cudaLaunchKernelEx");
}
CUDA_CPU_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, const void *func,
                                                                                   int blockSize, size_t dynamic,
                                                                                   unsigned int) {
  CUDA_CPU_API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
  if (!numBlocks || blockSize < 1) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!func) return cuda_cpu::error(cudaErrorInvalidDeviceFunction);
  *numBlocks = cuda_cpu::blocks_per_sm(func, blockSize, dynamic);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func,
                                                                          int blockSize, size_t dynamic) {
  CUDA_CPU_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor);
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamic, 0);
}
CUDA_CPU_EXPORT cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *func, int numBlocks,
                                                                      int blockSize) {
  CUDA_CPU_API(cudaOccupancyAvailableDynamicSMemPerBlock);
  if (!bytes || numBlocks < 1 || blockSize < 1) return cuda_cpu::error(cudaErrorInvalidValue);
  if (!func) return cuda_cpu::error(cudaErrorInvalidDeviceFunction);
  if (cuda_cpu::blocks_per_sm(func, blockSize, 0) < numBlocks) return cuda_cpu::error(cudaErrorInvalidValue);
  const cuda_cpu::profile &g = cuda_cpu::gpu();
  size_t each = g.shared_sm / static_cast<size_t>(numBlocks) / 128 * 128 - g.shared_reserved;
  if (each > g.shared_optin) each = g.shared_optin;
  *bytes = each - cuda_cpu::find_kernel(func).static_shared;
  return cudaSuccess;
}

#endif
#endif
