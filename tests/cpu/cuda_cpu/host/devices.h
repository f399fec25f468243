/* Devices: cudaSetDevice, cudaGetDeviceProperties, cudaDeviceSynchronize, cudaDeviceReset, peers, limits, ... */
#pragma once
#pragma GCC system_header

#include "kernels.h"

namespace cuda_cpu {

/* The current device as at the start of the program. */
inline void reset() {
  locked lock;
  drop_from(&ctx.streams, [](CUstream_st *s) {
    if (s->device == device_now && s->capture) leave_capture(s);
    return s->device == device_now;
  });
  drop_from(&ctx.events, [](CUevent_st *e) { return e->device == device_now; });
  size_t kept = 0;
  for (size_t i = 0; i < ctx.allocation_count; i++) {
    const allocation a = ctx.allocations[i];
    if (a.device != device_now)
      ctx.allocations[kept++] = a;
    else if (a.kind != memory_registered)
      put_memory(a);
  }
  ctx.allocation_count = kept;
  kept = 0;
  for (size_t i = 0; i < ctx.kernel_count; i++)
    if (ctx.kernels[i].device != device_now) ctx.kernels[kept++] = ctx.kernels[i];
  ctx.kernel_count = kept;
  here(); /* sets up all of them, if this is the first call */
  set_up_device(device_now);
  last_error = cudaSuccess;
}

/* --- the calls --- */

CUDA_CPU_CALL cudaGetDeviceCount(int *count) {
  CUDA_CPU_API(cudaGetDeviceCount);
  if (!count) return error(cudaErrorInvalidValue);
  *count = device_count();
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGetDevice(int *device) {
  CUDA_CPU_API(cudaGetDevice);
  if (!device) return error(cudaErrorInvalidValue);
  *device = device_now;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaSetDevice(int device) {
  CUDA_CPU_API(cudaSetDevice);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  device_now = device;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaInitDevice(int device, unsigned int, unsigned int) {
  CUDA_CPU_API(cudaInitDevice);
  return error(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}
CUDA_CPU_CALL cudaSetDeviceFlags(unsigned int flags) {
  CUDA_CPU_API(cudaSetDeviceFlags);
  here().flags = flags;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGetDeviceFlags(unsigned int *flags) {
  CUDA_CPU_API(cudaGetDeviceFlags);
  if (!flags) return error(cudaErrorInvalidValue);
  *flags = here().flags;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device) {
  CUDA_CPU_API(cudaDeviceGetAttribute);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  if (!value || attr < 1 || attr >= cudaDevAttrMax) return error(cudaErrorInvalidValue);
  *value = attr == cudaDevAttrPciBusId ? device : attribute_value(attr);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device) {
  CUDA_CPU_API(cudaGetDeviceProperties);
  if (!prop) return error(cudaErrorInvalidValue);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  fill_properties(prop, device);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaChooseDevice(int *device, const struct cudaDeviceProp *prop) {
  CUDA_CPU_API(cudaChooseDevice);
  if (!device || !prop) return error(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceGetPCIBusId(char *id, int len, int device) {
  CUDA_CPU_API(cudaDeviceGetPCIBusId);
  if (!id || len < 13) return error(cudaErrorInvalidValue);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  snprintf(id, static_cast<size_t>(len), "0000:%02x:00.0", static_cast<unsigned>(device));
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceSynchronize(void) {
  CUDA_CPU_API(cudaDeviceSynchronize);
  return error(forbid_while_capturing());
}
/* Frees what is allocated and clears a failure. Streams and events of before are gone, as on a GPU. */
CUDA_CPU_CALL cudaDeviceReset(void) {
  reset();
  unattended_now.kernel = nullptr;
  return cudaSuccess;
}
inline size_t *limit_here(cudaLimit limit) { /* NULL: not supported */
  switch (limit) {
  case cudaLimitStackSize: return &here().stack_limit;
  case cudaLimitPrintfFifoSize: return &here().fifo_limit;
  case cudaLimitMallocHeapSize: return &here().heap_limit;
  default: return nullptr;
  }
}
CUDA_CPU_CALL cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
  CUDA_CPU_API(cudaDeviceGetLimit);
  if (!value) return error(cudaErrorInvalidValue);
  if (!limit_here(limit)) return error(cudaErrorUnsupportedLimit);
  *value = *limit_here(limit);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  CUDA_CPU_API(cudaDeviceSetLimit);
  if (!limit_here(limit)) return error(cudaErrorUnsupportedLimit);
  *limit_here(limit) = value;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceGetCacheConfig(enum cudaFuncCache *config) {
  CUDA_CPU_API(cudaDeviceGetCacheConfig);
  if (!config) return error(cudaErrorInvalidValue);
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceSetCacheConfig(enum cudaFuncCache) {
  CUDA_CPU_API(cudaDeviceSetCacheConfig);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  CUDA_CPU_API(cudaDeviceGetStreamPriorityRange);
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  CUDA_CPU_API(cudaDeviceCanAccessPeer);
  if (!can) return error(cudaErrorInvalidValue);
  if (!is_device(device) || !is_device(peer)) return error(cudaErrorInvalidDevice);
  *can = device != peer;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int device, int peer) {
  CUDA_CPU_API(cudaDeviceGetP2PAttribute);
  if (!value) return error(cudaErrorInvalidValue);
  if (!is_device(device) || !is_device(peer) || device == peer) return error(cudaErrorInvalidDevice);
  *value = attr != cudaDevP2PAttrPerformanceRank;
  return cudaSuccess;
}
/* There is no L2 cache. */
CUDA_CPU_CALL cudaCtxResetPersistingL2Cache(void) {
  CUDA_CPU_API(cudaCtxResetPersistingL2Cache);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  CUDA_CPU_API(cudaDeviceEnablePeerAccess);
  if (flags) return error(cudaErrorInvalidValue);
  if (!is_device(peer) || peer == device_now) return error(cudaErrorInvalidDevice);
  locked lock;
  unsigned &peers = here().peers, bit = 1u << peer;
  if (peers & bit) return error(cudaErrorPeerAccessAlreadyEnabled);
  peers |= bit;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDeviceDisablePeerAccess(int peer) {
  CUDA_CPU_API(cudaDeviceDisablePeerAccess);
  if (!is_device(peer)) return error(cudaErrorInvalidDevice);
  locked lock;
  unsigned &peers = here().peers, bit = 1u << peer;
  if (!(peers & bit)) return error(cudaErrorPeerAccessNotEnabled);
  peers &= ~bit;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaDriverGetVersion(int *version) {
  if (!version) return error(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaRuntimeGetVersion(int *version) {
  if (!version) return error(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaProfilerStart(void) {
  CUDA_CPU_API(cudaProfilerStart);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaProfilerStop(void) {
  CUDA_CPU_API(cudaProfilerStop);
  return cudaSuccess;
}

} // namespace cuda_cpu
