/* Stream-ordered memory: cudaMallocAsync, cudaFreeAsync and memory pools. */
#pragma once
#pragma GCC system_header

#include "memory.h"

namespace cuda_cpu {

/* In a capture the memory belongs to the graph: its address is the same in each run, and it lives as long. */
inline cudaError_t allocate_async(void **out, size_t size, CUmemPoolHandle_st *pool, cudaStream_t stream) {
  CUstream_st *s = find_stream(stream);
  if (cudaError_t e = check_stream(s)) return error(e);
  if (cudaError_t e = allocate(out, size, memory_device, 0, pool, s->capture != nullptr)) return e;
  if (!s->capture || !size) return cudaSuccess;
  void *p = *out;
  keep(s, [=] {
    poison_allocation(p, size);
    return cudaSuccess;
  })->memory = p;
  return cudaSuccess;
}
inline cudaError_t release_async(void *p, cudaStream_t stream) {
  CUstream_st *s = find_stream(stream);
  if (cudaError_t e = check_stream(s)) return error(e);
  if (!p) return error(cudaErrorInvalidValue);
  if (!s->capture) return release(p, false);
  {
    locked lock;
    allocation *a = find_allocation(p);
    if (!a || a->base != reinterpret_cast<uintptr_t>(p)) return error(cudaErrorInvalidValue);
    if (!a->of_graph) return unsupported("cudaFreeAsync in a capture of memory allocated outside it");
  }
  keep(s, [] { return cudaSuccess; });
  return cudaSuccess;
}

/* --- the calls --- */

CUDA_CPU_CALL cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device) {
  CUDA_CPU_API(cudaDeviceGetDefaultMemPool);
  if (!memPool) return error(cudaErrorInvalidValue);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  *memPool = &cuda_cpu::device(device).default_pool;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device) {
  CUDA_CPU_API(cudaDeviceGetMemPool);
  if (!memPool) return error(cudaErrorInvalidValue);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  device_state &d = cuda_cpu::device(device);
  *memPool = d.current_pool ? d.current_pool : &d.default_pool;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceSetMemPool(int device, cudaMemPool_t memPool) {
  CUDA_CPU_API(cudaDeviceSetMemPool);
  if (!memPool) return error(cudaErrorInvalidValue);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  cuda_cpu::device(device).current_pool = memPool;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *props) {
  CUDA_CPU_API(cudaMemPoolCreate);
  if (!memPool || !props || props->allocType != cudaMemAllocationTypePinned) return error(cudaErrorInvalidValue);
  const bool placed = props->location.type == cudaMemLocationTypeDevice;
  if (placed && !is_device(props->location.id)) return error(cudaErrorInvalidValue);
  const int owner = placed ? props->location.id : device_now;
  *memPool = make<CUmemPoolHandle_st>(held_pool, owner);
  if (!*memPool) return error(cudaErrorMemoryAllocation);
  (*memPool)->device = owner;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaMemPoolDestroy(cudaMemPool_t memPool) {
  CUDA_CPU_API(cudaMemPoolDestroy);
  if (!memPool || memPool->is_default) return error(cudaErrorInvalidValue);
  locked lock;
  device_state &d = device(memPool->device);
  if (d.current_pool == memPool) d.current_pool = nullptr;
  let_go(memPool);
  memPool->destroyed = true;
  if (!memPool->used) free(memPool);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaMemPoolSetAccess(cudaMemPool_t memPool, const cudaMemAccessDesc *list, size_t count) {
  CUDA_CPU_API(cudaMemPoolSetAccess);
  if (!memPool || !list) return error(cudaErrorInvalidValue);
  locked lock;
  for (size_t i = 0; i < count; i++)
    if (list[i].location.type != cudaMemLocationTypeDevice || !is_device(list[i].location.id) ||
        (list[i].location.id == memPool->device && list[i].flags != cudaMemAccessFlagsProtReadWrite))
      return error(cudaErrorInvalidDevice);
  for (size_t i = 0; i < count; i++) {
    const unsigned bit = 1u << list[i].location.id;
    memPool->peers = list[i].flags ? memPool->peers | bit : memPool->peers & ~bit;
  }
  return cudaSuccess;
}
CUDA_CPU_CALL cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value) {
  CUDA_CPU_API(cudaMemPoolSetAttribute);
  if (!memPool || !value) return error(cudaErrorInvalidValue);
  switch (attr) {
  case cudaMemPoolReuseFollowEventDependencies:
  case cudaMemPoolReuseAllowOpportunistic:
  case cudaMemPoolReuseAllowInternalDependencies: return cudaSuccess;
  case cudaMemPoolAttrReleaseThreshold: memcpy(&memPool->threshold, value, 8); return cudaSuccess;
  case cudaMemPoolAttrReservedMemHigh: return cudaSuccess;
  case cudaMemPoolAttrUsedMemHigh: memPool->used_high = memPool->used; return cudaSuccess;
  default: return error(cudaErrorInvalidValue);
  }
}
CUDA_CPU_CALL cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value) {
  CUDA_CPU_API(cudaMemPoolGetAttribute);
  if (!memPool || !value) return error(cudaErrorInvalidValue);
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
  default: return error(cudaErrorInvalidValue);
  }
}
CUDA_CPU_CALL cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t) {
  CUDA_CPU_API(cudaMemPoolTrimTo);
  return error(memPool ? cudaSuccess : cudaErrorInvalidValue);
}
CUDA_CPU_CALL cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  CUDA_CPU_API(cudaMallocFromPoolAsync);
  if (!ptr || !pool) return error(cudaErrorInvalidValue);
  return allocate_async(ptr, size, pool, stream);
}
CUDA_CPU_CALL cudaMallocAsync(void **devPtr, size_t size, cudaStream_t stream) {
  CUDA_CPU_API(cudaMallocAsync);
  if (!devPtr) return error(cudaErrorInvalidValue);
  const CUstream_st *s = find_stream(stream);
  device_state &d = device(s ? s->device : device_now);
  return allocate_async(devPtr, size, d.current_pool ? d.current_pool : &d.default_pool, stream);
}
CUDA_CPU_CALL cudaFreeAsync(void *devPtr, cudaStream_t stream) {
  CUDA_CPU_API(cudaFreeAsync);
  return release_async(devPtr, stream);
}

} // namespace cuda_cpu
