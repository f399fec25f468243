/* Launches, attributes of kernels and occupancy: cudaLaunchKernel, cudaFuncSetAttribute, ... */
#pragma once
#pragma GCC system_header

#include "../run/grid.h"
#include "memory.h"

namespace cuda_cpu {

struct kernel {
  const void *function;
  int device;
  size_t static_shared;
  int dynamic_limit, carveout; /* cudaFuncSetAttribute */
};

inline kernel find_kernel(const void *function, const kernel *update = nullptr) {
  locked lock;
  size_t i = 0;
  while (i < ctx.kernel_count && (ctx.kernels[i].function != function || ctx.kernels[i].device != device_now)) i++;
  if (i == ctx.kernel_count) {
    size_t fixed = static_shared(function);
    kernel k = {function, device_now, fixed, fixed < shared_default ? static_cast<int>(shared_default - fixed) : 0, -1};
    void *more = realloc(ctx.kernels, (ctx.kernel_count + 1) * sizeof(kernel));
    if (!more) return k;
    ctx.kernels = static_cast<kernel *>(more);
    ctx.kernels[ctx.kernel_count++] = k;
  }
  if (update) ctx.kernels[i] = *update;
  return ctx.kernels[i];
}

inline int blocks_per_sm(const void *function, int block, size_t dynamic) {
  const profile &g = gpu();
  if (block > max_threads || dynamic > g.shared_optin) return 0;
  int warps = (block + 31) / 32, blocks = g.max_threads_sm / 32 / warps;
  int by_registers = register_file / (registers_per_thread * 32) / warps;
  size_t shared = (find_kernel(function).static_shared + dynamic + g.shared_reserved + 127) / 128 * 128;
  int by_shared = shared ? static_cast<int>(g.shared_sm / shared) : g.max_blocks_sm;
  if (by_registers < blocks) blocks = by_registers;
  if (by_shared < blocks) blocks = by_shared;
  return blocks < g.max_blocks_sm ? blocks : g.max_blocks_sm;
}

inline bool is_cooperative(const cudaLaunchConfig_t &c) {
  for (unsigned i = 0; i < c.numAttrs; i++)
    if (c.attrs[i].id == cudaLaunchAttributeCooperative) return c.attrs[i].val.cooperative != 0;
  return false;
}

/* All blocks have to be on the GPU at once. */
inline cudaError_t check_cooperative(const void *function, const cudaLaunchConfig_t &c) {
  unsigned long long blocks = static_cast<unsigned long long>(c.gridDim.x) * c.gridDim.y * c.gridDim.z;
  int threads = static_cast<int>(c.blockDim.x * c.blockDim.y * c.blockDim.z);
  int room = gpu().sm_count * blocks_per_sm(function, threads, c.dynamicSmemBytes);
  if (blocks > static_cast<unsigned long long>(room)) return cudaErrorCooperativeLaunchTooLarge;
  return cudaSuccess;
}

inline cudaError_t check_launch(const void *function, const cudaLaunchConfig_t &c) {
  const dim3 &g = c.gridDim, &b = c.blockDim;
  if (!function) return cudaErrorInvalidDeviceFunction;
  if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z) return cudaErrorInvalidValue;
  if (g.x > 2147483647u || g.y > 65535 || g.z > 65535) return cudaErrorInvalidValue;
  if (b.x > 1024 || b.y > 1024 || b.z > 64 || b.x * b.y * b.z > 1024) return cudaErrorInvalidValue;
  const kernel k = find_kernel(function);
  if (k.static_shared > shared_default) {
    char name[512];
    symbol_name(function, name, sizeof name);
    fprintf(stderr,
            "CUDA stand-in: kernel %s has %zu bytes of __shared__ variables; nvcc allows %zu: more takes extern "
            "__shared__\n"
            "  and cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)\n",
            name, k.static_shared, shared_default);
    return cudaErrorInvalidValue;
  }
  if (c.dynamicSmemBytes > static_cast<size_t>(k.dynamic_limit)) {
    unattended_now.shared = c.dynamicSmemBytes;
    return cudaErrorInvalidValue;
  }
  for (unsigned i = 0; i < c.numAttrs; i++) {
    const cudaLaunchAttribute &a = c.attrs[i];
    if (a.id != cudaLaunchAttributeClusterDimension) continue;
    const auto &d = a.val.clusterDim;
    if (!d.x || !d.y || !d.z) return cudaErrorInvalidValue;
    if (d.x > 1 || d.y > 1 || d.z > 1)
      return unsupported("a launch with thread-block clusters (cudaLaunchAttributeClusterDimension)");
  }
  return is_cooperative(c) ? check_cooperative(function, c) : cudaSuccess;
}

/* The launch, and with it its closure, as a stream's capture keeps them. */
struct kept_launch : CUgraphNode_st {
  const void *function, *closure;
  const closure_type *type;
  dim3 grid, block;
  size_t shared_bytes;
  int device;
  bool cooperative;
};

inline cudaError_t run_launch(const kept_launch &l) {
  if (cudaError_t e = injected(nullptr)) {
    __atomic_store_n(&device(l.device).sticky, e, __ATOMIC_RELEASE);
    return cudaSuccess;
  }
  launch job = {};
  job.call = l.type->call;
  job.closure = l.closure;
  job.kernel = l.function;
  job.grid = l.grid;
  job.block = l.block;
  job.shared_bytes = l.shared_bytes;
  job.blocks = static_cast<unsigned long long>(l.grid.x) * l.grid.y * l.grid.z;
  const bool guards = protects() && device_count() > 1;
  if (guards) open_foreign_memory(l.device, false);
  if (l.cooperative) job.cooperative = grid_create(job.blocks);
  unattended_now.kernel = l.function;
  run(&job);
  if (guards) open_foreign_memory(l.device, true);
  if (job.cooperative && !grid_destroy(job.cooperative)) return error(cudaErrorLaunchOutOfResources);
  /* as on a GPU: the launch has gone well, and what comes after it reports the failure */
  if (job.failed) __atomic_store_n(&device(l.device).sticky, static_cast<cudaError_t>(job.failed), __ATOMIC_RELEASE);
  return cudaSuccess;
}

CUDA_CPU_ENTRY cudaError_t launch_closure(const void *function, const cudaLaunchConfig_t &c, const closure_type &type,
                                          const void *closure) {
  const struct window { /* <<<>>> comes here by itself, and other launches in a call of the API */
    window() {
      if (!call_depth++ && protects()) move_window(1);
    }
    ~window() { end_call(); }
  } open;
  unattended_now.shared = 0;
  if (cudaError_t e = check_launch(function, c)) {
    unattended_now.failed = function;
    unattended_now.grid = c.gridDim;
    unattended_now.block = c.blockDim;
    unattended_now.error = e;
    return error(e);
  }
  CUstream_st *s = find_stream(c.stream);
  if (cudaError_t e = check_stream(s)) return error(e);
  if (s->device != device_now) return error(cudaErrorInvalidResourceHandle);
  kept_launch l = {{},        function,         closure, &type, c.gridDim, c.blockDim, c.dynamicSmemBytes,
                   s->device, is_cooperative(c)};
  if (!s->capture) return s->hung ? cudaSuccess : run_launch(l);
  l.closure = type.copy(closure);
  l.run = [](CUgraphNode_st *n) { return run_launch(*static_cast<kept_launch *>(n)); };
  l.destroy = [](CUgraphNode_st *n) {
    kept_launch *kept = static_cast<kept_launch *>(n);
    kept->type->drop(const_cast<void *>(kept->closure));
    delete kept;
  };
  append(s, new kept_launch(l));
  return cudaSuccess;
}

/* One to the end of an array is none to what comes after it. */
CUDA_CPU_ENTRY void check_argument(const void *function, int number, const void *p, bool reference) {
  if (!p || foreign_memory() || is_static(p)) return;
  static const void *told[16];
  static int count;
  locked lock;
  if (find_allocation(p) || find_allocation(static_cast<const char *>(p) - 1)) return;
  for (int i = 0; i < count; i++)
    if (told[i] == function) return;
  if (count == 16) return;
  told[count++] = function;
  char name[512];
  symbol_name(function, name, sizeof name);
  const char *fails = "a kernel on a GPU\n  fails with cudaErrorIllegalAddress where it uses it";
  fprintf(stderr, "CUDA stand-in: argument %d of kernel %s ", number, name);
  if (reference)
    fprintf(stderr, "is a reference to memory of the host: %s. Pass the value\n", fails);
  else if (const allocation *gone = find_freed(p))
    fprintf(stderr,
            "points to memory that was freed: %zu bytes, allocation %llu, by %s\n"
            "  (or to memory of the host that has come to lie there); %s\n",
            gone->size, gone->number, gone->call, fails);
  else
    fprintf(stderr,
            "points to memory of the host (malloc, new, a local variable): %s.\n"
            "  cudaMalloc and cudaMemcpy, or cudaMallocManaged\n",
            fails);
}

CUDA_CPU_ENTRY bool may_launch(const char *name) {
  if (self) fail_thread(" launches %s<<<...>>>: a kernel cannot launch kernels here", name);
  return !enter("a launch");
}

/* --- the calls --- */

CUDA_CPU_CALL cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func) {
  CUDA_CPU_API(cudaFuncGetAttributes);
  if (!attr) return error(cudaErrorInvalidValue);
  if (!func) return error(cudaErrorInvalidDeviceFunction);
  kernel k = find_kernel(func);
  cudaFuncAttributes a = {};
  a.sharedSizeBytes = k.static_shared;
  a.maxThreadsPerBlock = max_threads;
  a.numRegs = registers_per_thread;
  a.ptxVersion = a.binaryVersion = gpu().major * 10 + gpu().minor;
  a.maxDynamicSharedSizeBytes = k.dynamic_limit;
  a.preferredShmemCarveout = k.carveout;
  *attr = a;
  return cudaSuccess;
}
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

/* As CUDA's does, it clears the last error when it succeeds, and nothing else does that by the way. */
CUDA_CPU_CALL cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value) {
  CUDA_CPU_API(cudaFuncSetAttribute);
  if (!func) return error(cudaErrorInvalidDeviceFunction);
  const cudaError_t code = set_attribute(func, attr, value);
  if (code == cudaSuccess) last_error = code;
  return code;
}
/* A kernel's handle is its address. */
CUDA_CPU_CALL cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr) {
  CUDA_CPU_API(cudaGetKernel);
  if (!kernelPtr) return error(cudaErrorInvalidValue);
  if (!entryFuncAddr) return error(cudaErrorInvalidDeviceFunction);
  *kernelPtr = static_cast<cudaKernel_t>(const_cast<void *>(entryFuncAddr));
  return cudaSuccess;
}
CUDA_CPU_CALL cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr, int value, int device) {
  CUDA_CPU_API(cudaKernelSetAttributeForDevice);
  if (!kernel) return error(cudaErrorInvalidResourceHandle);
  if (!is_device(device)) return error(cudaErrorInvalidDevice);
  const int current = device_now;
  device_now = device;
  const cudaError_t code = set_attribute(kernel, attr, value);
  device_now = current;
  return code;
}
CUDA_CPU_CALL cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache) {
  CUDA_CPU_API(cudaFuncSetCacheConfig);
  return error(func ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}
CUDA_CPU_CALL cudaFuncGetName(const char **name, const void *func) {
  CUDA_CPU_API(cudaFuncGetName);
  if (!name) return error(cudaErrorInvalidValue);
  *name = mangled_name(func);
  return error(*name ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

struct known_kernel {
  const void *kernel;
  typed_launch launch;
  known_kernel *next;
};
inline known_kernel *known_kernels;
inline typed_launch launch_of(const void *kernel) {
  locked lock;
  for (known_kernel *k = known_kernels; k; k = k->next)
    if (k->kernel == kernel) return k->launch;
  return nullptr;
}
CUDA_CPU_ENTRY void remember_kernel(const void *kernel, typed_launch launch) {
  if (launch_of(kernel)) return;
  locked lock;
  known_kernels = new known_kernel{kernel, launch, known_kernels};
}
inline cudaError_t launch_pointer(const void *kernel, const cudaLaunchConfig_t &config, void **args, const char *call) {
  if (!kernel) return error(cudaErrorInvalidDeviceFunction);
  if (typed_launch launch = launch_of(kernel)) return launch(kernel, config, args);
  fprintf(stderr,
          "CUDA stand-in: not supported: %s of a pointer that was not written (void *)kernel in a .cu file, so "
          "that its parameters are not known: pass the kernel itself\n",
          call);
  return error(cudaErrorNotSupported);
}
CUDA_CPU_CALL cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream) {
  CUDA_CPU_API(cudaLaunchKernel);
  return launch_pointer(func, {grid, block, shared, stream, nullptr, 0}, args, "cudaLaunchKernel");
}
CUDA_CPU_CALL cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                                          cudaStream_t stream) {
  CUDA_CPU_API(cudaLaunchCooperativeKernel);
  cudaLaunchAttribute cooperative = {};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  return launch_pointer(func, {grid, block, shared, stream, &cooperative, 1}, args, "cudaLaunchCooperativeKernel");
}
CUDA_CPU_CALL cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args) {
  CUDA_CPU_API(cudaLaunchKernelExC);
  if (!config) return error(cudaErrorInvalidValue);
  return launch_pointer(func, *config, args, "cudaLaunchKernelExC");
}
CUDA_CPU_CALL cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, const void *func, int blockSize,
                                                                     size_t dynamic, unsigned int) {
  CUDA_CPU_API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
  if (!numBlocks || blockSize < 1) return error(cudaErrorInvalidValue);
  if (!func) return error(cudaErrorInvalidDeviceFunction);
  *numBlocks = blocks_per_sm(func, blockSize, dynamic);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func, int blockSize,
                                                            size_t dynamic) {
  CUDA_CPU_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor);
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamic, 0);
}
CUDA_CPU_CALL cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *func, int numBlocks, int blockSize) {
  CUDA_CPU_API(cudaOccupancyAvailableDynamicSMemPerBlock);
  if (!bytes || numBlocks < 1 || blockSize < 1) return error(cudaErrorInvalidValue);
  if (!func) return error(cudaErrorInvalidDeviceFunction);
  if (blocks_per_sm(func, blockSize, 0) < numBlocks) return error(cudaErrorInvalidValue);
  const profile &g = gpu();
  size_t each = g.shared_sm / static_cast<size_t>(numBlocks) / 128 * 128 - g.shared_reserved;
  if (each > g.shared_optin) each = g.shared_optin;
  *bytes = each - find_kernel(func).static_shared;
  return cudaSuccess;
}

} // namespace cuda_cpu
