/* Devices: cudaSetDevice, cudaGetDeviceProperties, cudaDeviceSynchronize, cudaDeviceReset, peers, limits, ... */
#ifndef CUDA_CPU_DEVICES_H
#define CUDA_CPU_DEVICES_H
#pragma GCC system_header

#include "kernels.h"

namespace cuda_cpu {

/* The current device as at the start of the program. */
CUDA_CPU_OUT_OF_LINE void reset() {
  locked lock;
  for (CUstream_st **p = &ctx.streams; *p;) {
    CUstream_st *s = *p;
    if (s->device != device_now) {
      p = &s->next;
      continue;
    }
    *p = s->next;
    if (s->capture) leave_capture(s);
    let_go(s);
    free(s);
  }
  for (CUevent_st **p = &ctx.events; *p;) {
    CUevent_st *e = *p;
    if (e->device != device_now) {
      p = &e->next;
      continue;
    }
    *p = e->next;
    let_go(e);
    free(e);
  }
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

CUDA_CPU_EXPORT cudaError_t cudaGetDeviceCount(int *count) {
  CUDA_CPU_API(cudaGetDeviceCount);
  if (!count) return error(cudaErrorInvalidValue);
  *count = device_count();
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaGetDevice(int *device) {
  CUDA_CPU_API(cudaGetDevice);
  if (!device) return error(cudaErrorInvalidValue);
  *device = device_now;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaSetDevice(int device) {
  CUDA_CPU_API(cudaSetDevice);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  device_now = device;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) {
  CUDA_CPU_API(cudaInitDevice);
  return error(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}
CUDA_CPU_EXPORT cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  CUDA_CPU_API(cudaSetDeviceFlags);
  here().flags = flags;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaGetDeviceFlags(unsigned int *flags) {
  CUDA_CPU_API(cudaGetDeviceFlags);
  if (!flags) return error(cudaErrorInvalidValue);
  *flags = here().flags;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device) {
  CUDA_CPU_API(cudaDeviceGetAttribute);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  if (!value || attr < 1 || attr >= cudaDevAttrMax) return error(cudaErrorInvalidValue);
  *value = attr == cudaDevAttrPciBusId ? device : attribute_value(attr);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device) {
  CUDA_CPU_API(cudaGetDeviceProperties);
  if (!prop) return error(cudaErrorInvalidValue);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  fill_properties(prop, device);
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop) {
  CUDA_CPU_API(cudaChooseDevice);
  if (!device || !prop) return error(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device) {
  CUDA_CPU_API(cudaDeviceGetPCIBusId);
  if (!id || len < 13) return error(cudaErrorInvalidValue);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  snprintf(id, static_cast<size_t>(len), "0000:%02x:00.0", static_cast<unsigned>(device));
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceSynchronize(void) {
  CUDA_CPU_API(cudaDeviceSynchronize);
  return error(forbid_while_capturing());
}
/* Frees what is allocated and clears a failure. Streams and events of before are gone, as on a GPU. */
CUDA_CPU_EXPORT cudaError_t cudaDeviceReset(void) {
  reset();
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
  CUDA_CPU_API(cudaDeviceGetLimit);
  if (!value) return error(cudaErrorInvalidValue);
  switch (limit) {
  case cudaLimitStackSize: *value = here().stack_limit; return cudaSuccess;
  case cudaLimitPrintfFifoSize: *value = here().fifo_limit; return cudaSuccess;
  case cudaLimitMallocHeapSize: *value = here().heap_limit; return cudaSuccess;
  default: return error(cudaErrorUnsupportedLimit);
  }
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  CUDA_CPU_API(cudaDeviceSetLimit);
  switch (limit) {
  case cudaLimitStackSize: here().stack_limit = value; return cudaSuccess;
  case cudaLimitPrintfFifoSize: here().fifo_limit = value; return cudaSuccess;
  case cudaLimitMallocHeapSize: here().heap_limit = value; return cudaSuccess;
  default: return error(cudaErrorUnsupportedLimit);
  }
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config) {
  CUDA_CPU_API(cudaDeviceGetCacheConfig);
  if (!config) return error(cudaErrorInvalidValue);
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
  if (!can) return error(cudaErrorInvalidValue);
  if (!is_device(device) || !is_device(peer)) return error(cudaErrorInvalidDevice);
  *can = device != peer;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  CUDA_CPU_API(cudaDeviceEnablePeerAccess);
  if (flags) return error(cudaErrorInvalidValue);
  if (!is_device(peer) || peer == device_now) return error(cudaErrorInvalidDevice);
  locked lock;
  unsigned &peers = here().peers, bit = 1u << peer;
  if (peers & bit) return error(cudaErrorPeerAccessAlreadyEnabled);
  peers |= bit;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  CUDA_CPU_API(cudaDeviceDisablePeerAccess);
  if (!is_device(peer)) return error(cudaErrorInvalidDevice);
  locked lock;
  unsigned &peers = here().peers, bit = 1u << peer;
  if (!(peers & bit)) return error(cudaErrorPeerAccessNotEnabled);
  peers &= ~bit;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaDriverGetVersion(int *version) {
  if (!version) return error(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
CUDA_CPU_EXPORT cudaError_t cudaRuntimeGetVersion(int *version) {
  if (!version) return error(cudaErrorInvalidValue);
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

} // namespace cuda_cpu
#endif
