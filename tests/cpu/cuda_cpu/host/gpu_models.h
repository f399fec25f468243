/* The GPU that GPUKIT_CPU_DEVICE asks for, and how many of them GPUKIT_CPU_DEVICES: limits by compute capability from
 * the tables of the CUDA programming guide, the rest from one well-known GPU of each. */
#pragma once
#pragma GCC system_header

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../cuda_runtime_api.h"
#include "../run/symbols.h"

namespace cuda_cpu {

/* Equal on all of them. */
const int registers_per_thread = 32, max_threads = 1024, register_file = 65536, max_devices = 8;
const size_t shared_default = 48 << 10;

struct profile {
  const char *target, *name;
  int major, minor, sm_count, max_threads_sm, max_blocks_sm;
  size_t shared_sm, shared_optin, shared_reserved;
  int l2_bytes, clock_khz, memory_clock_khz, bus_bits, memory_gib;
  int single_to_double, copy_engines, ecc;
};
inline const profile profiles[] = {
    {"sm_75", "T4", 7, 5, 40, 1024, 16, 64 << 10, 64 << 10, 0, 4 << 20, 1590000, 5001000, 256, 15, 32, 3, 1},
    {"sm_80", "A100", 8, 0, 108, 2048, 32, 164 << 10, 163 << 10, 1024, 40 << 20, 1410000, 1215000, 5120, 40, 2, 3, 1},
    {"sm_86", "RTX 3090", 8, 6, 82, 1536, 16, 100 << 10, 99 << 10, 1024, 6 << 20, 1695000, 9751000, 384, 24, 64, 2, 0},
    {"sm_89", "RTX 4090", 8, 9, 128, 1536, 24, 100 << 10, 99 << 10, 1024, 72 << 20, 2520000, 10501000, 384, 24, 64, 2,
     0},
    {"sm_90", "H200", 9, 0, 132, 2048, 32, 228 << 10, 227 << 10, 1024, 60 << 20, 1980000, 3201000, 6144, 140, 2, 3, 1},
    {"sm_100", "B200", 10, 0, 148, 2048, 32, 228 << 10, 227 << 10, 1024, 253 << 19, 1965000, 3996000, 7680, 178, 2, 4,
     1},
    {"sm_120", "RTX 5090", 12, 0, 170, 1536, 24, 100 << 10, 99 << 10, 1024, 96 << 20, 2407000, 14001000, 512, 31, 64, 2,
     0},
};

inline const profile *find_profile(const char *target) {
  for (const profile &p : profiles)
    if (!strcmp(p.target, target)) return &p;
  return nullptr;
}

inline const profile &gpu() {
  static const profile *const chosen = [] {
    const char *e = getenv("GPUKIT_CPU_DEVICE");
    const profile *p = find_profile(e && *e ? e : "sm_90");
    if (!p) {
      fprintf(stderr, "CUDA stand-in: GPUKIT_CPU_DEVICE=%s is none of", e);
      for (const profile &known : profiles) fprintf(stderr, " %s", known.target);
      fprintf(stderr, "\n");
      abort();
    }
    return p;
  }();
  return *chosen;
}

CUDA_CPU_RARE int device_count() {
  static const int count = [] {
    const char *e = getenv("GPUKIT_CPU_DEVICES");
    char *end = nullptr;
    const long n = e && *e ? strtol(e, &end, 10) : 1;
    if ((end && *end) || n < 1 || n > max_devices) {
      fprintf(stderr, "CUDA stand-in: GPUKIT_CPU_DEVICES=%s is not a number from 1 to %d\n", e, max_devices);
      abort();
    }
    return static_cast<int>(n);
  }();
  return count;
}

/* As much as the GPU has, but at most half of the machine's. */
CUDA_CPU_RARE size_t device_memory() {
  static const size_t bytes = [] {
    const size_t half = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) / 2 * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t most = static_cast<size_t>(gpu().memory_gib) << 30;
    return half < most ? half : most;
  }();
  return bytes;
}

struct attribute {
  cudaDeviceAttr attr;
  int value;
};
/* clang-format off */
inline const attribute attributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, max_threads}, {cudaDevAttrMaxBlockDimX, 1024}, {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64}, {cudaDevAttrMaxGridDimX, 2147483647}, {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535}, {cudaDevAttrMaxSharedMemoryPerBlock, shared_default},
    {cudaDevAttrTotalConstantMemory, 65536}, {cudaDevAttrWarpSize, 32}, {cudaDevAttrMaxPitch, 2147483647},
    {cudaDevAttrMaxRegistersPerBlock, register_file}, {cudaDevAttrMaxTexture1DWidth, 131072},
    {cudaDevAttrMaxTexture2DWidth, 131072}, {cudaDevAttrMaxTexture2DHeight, 65536},
    {cudaDevAttrMaxTexture3DWidth, 16384}, {cudaDevAttrMaxTexture3DHeight, 16384},
    {cudaDevAttrMaxTexture3DDepth, 16384}, {cudaDevAttrMaxTexture1DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture1DLayeredLayers, 2048}, {cudaDevAttrMaxTexture2DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture2DLayeredHeight, 32768}, {cudaDevAttrMaxTexture2DLayeredLayers, 2048},
    {cudaDevAttrMaxTexture1DLinearWidth, 268435456}, {cudaDevAttrMaxTexture2DLinearWidth, 131072},
    {cudaDevAttrMaxTexture2DLinearHeight, 65000}, {cudaDevAttrMaxTexture2DLinearPitch, 2097120},
    {cudaDevAttrTextureAlignment, 512}, {cudaDevAttrTexturePitchAlignment, 32}, {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrGpuOverlap, 1}, {cudaDevAttrCanMapHostMemory, 1}, {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrUnifiedAddressing, 1}, {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1}, {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrMaxRegistersPerMultiprocessor, register_file}, {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrConcurrentManagedAccess, 1}, {cudaDevAttrComputePreemptionSupported, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1}, {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrHostRegisterSupported, 1}, {cudaDevAttrMemoryPoolsSupported, 1},
};
/* clang-format on */

/* 0 if neither the profile nor the table names it: the device does not have it. */
CUDA_CPU_RARE int attribute_value(cudaDeviceAttr attr) {
  const profile &p = gpu();
  switch (attr) {
  case cudaDevAttrComputeCapabilityMajor: return p.major;
  case cudaDevAttrComputeCapabilityMinor: return p.minor;
  case cudaDevAttrMultiProcessorCount: return p.sm_count;
  case cudaDevAttrMaxThreadsPerMultiProcessor: return p.max_threads_sm;
  case cudaDevAttrMaxBlocksPerMultiprocessor: return p.max_blocks_sm;
  case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return static_cast<int>(p.shared_sm);
  case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(p.shared_optin);
  case cudaDevAttrReservedSharedMemoryPerBlock: return static_cast<int>(p.shared_reserved);
  case cudaDevAttrL2CacheSize: return p.l2_bytes;
  case cudaDevAttrClockRate: return p.clock_khz;
  case cudaDevAttrMemoryClockRate: return p.memory_clock_khz;
  case cudaDevAttrGlobalMemoryBusWidth: return p.bus_bits;
  case cudaDevAttrSingleToDoublePrecisionPerfRatio: return p.single_to_double;
  case cudaDevAttrAsyncEngineCount: return p.copy_engines;
  case cudaDevAttrEccEnabled: return p.ecc;
  default: break;
  }
  for (const attribute &a : attributes)
    if (a.attr == attr) return a.value;
  return 0;
}

CUDA_CPU_RARE void fill_properties(cudaDeviceProp *out, int device) {
  cudaDeviceProp p = {};
  const profile &g = gpu();
  snprintf(p.name, sizeof p.name, "CPU stand-in (%s, %s)", g.name, g.target);
  snprintf(p.uuid.bytes, sizeof p.uuid.bytes, "gpukit-%s.%d", g.target, device);
  p.totalGlobalMem = device_memory();
  p.sharedMemPerBlock = shared_default;
  p.regsPerBlock = p.regsPerMultiprocessor = register_file;
  p.warpSize = 32;
  p.memPitch = static_cast<size_t>(attribute_value(cudaDevAttrMaxPitch));
  p.maxThreadsPerBlock = max_threads;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = static_cast<size_t>(attribute_value(cudaDevAttrTotalConstantMemory));
  p.maxTexture1D = p.maxTexture2D[0] = p.maxTexture2DLinear[0] = p.maxSurface2D[0] = 131072;
  p.maxTexture2D[1] = p.maxSurface2D[1] = 65536;
  p.maxTexture2DLinear[1] = attribute_value(cudaDevAttrMaxTexture2DLinearHeight);
  p.maxTexture2DLinear[2] = attribute_value(cudaDevAttrMaxTexture2DLinearPitch);
  for (int i = 0; i < 3; i++) p.maxTexture3D[i] = p.maxSurface3D[i] = 16384;
  for (int i = 0; i < 2; i++) p.maxTexture2DLayered[i] = p.maxSurface2DLayered[i] = 32768;
  p.maxTexture1DLayered[0] = p.maxSurface1D = p.maxSurface1DLayered[0] = 32768;
  p.maxTexture1DLayered[1] = p.maxTexture2DLayered[2] = p.maxSurface1DLayered[1] = p.maxSurface2DLayered[2] = 2048;
  p.major = g.major;
  p.minor = g.minor;
  p.pciBusID = device;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = g.sm_count;
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = 1;
  p.ECCEnabled = g.ecc;
  p.asyncEngineCount = g.copy_engines;
  p.memoryBusWidth = g.bus_bits;
  p.l2CacheSize = g.l2_bytes;
  p.maxThreadsPerMultiProcessor = g.max_threads_sm;
  p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = p.managedMemory = 1;
  p.sharedMemPerMultiprocessor = g.shared_sm;
  p.concurrentManagedAccess = p.computePreemptionSupported = p.canUseHostPointerForRegisteredMem = 1;
  p.sharedMemPerBlockOptin = g.shared_optin;
  p.maxBlocksPerMultiProcessor = g.max_blocks_sm;
  p.reservedSharedMemPerBlock = g.shared_reserved;
  p.hostRegisterSupported = p.memoryPoolsSupported = p.cooperativeLaunch = 1;
  p.clockRate = attribute_value(cudaDevAttrClockRate);
  p.memoryClockRate = attribute_value(cudaDevAttrMemoryClockRate);
  p.deviceOverlap = attribute_value(cudaDevAttrGpuOverlap);
  *out = p;
}

} // namespace cuda_cpu
