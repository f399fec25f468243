/* The host side of the runtime. Work is done at once: a launch, copy or host function has completed when its call
 * returns, which is one of the orders that streams allow. Only what a stream captures is kept for later. */
#ifndef CUDA_CPU_RUNTIME_H
#define CUDA_CPU_RUNTIME_H
#pragma GCC system_header

#include <time.h>
#include "grid.h"

/* `used`: a C file of the program calls these without seeing their definition. */
#ifdef __clang__
#define CUDA_CPU_EXPORT extern "C" __attribute__((used, noinline, cold)) inline
#else
#define CUDA_CPU_EXPORT extern "C" __attribute__((used, noipa, cold)) inline
#endif
#define CUDA_CPU_OUT_OF_LINE __attribute__((noinline)) inline /* for compile time */
/* Opens every call of the API, and nothing else decides whether a call may go on. */
#define CUDA_CPU_API(name)                                                                                             \
  if (cudaError_t cuda_cpu_error = cuda_cpu::enter(#name)) return cuda_cpu_error

struct CUgraphNode_st {
  cudaError_t (*run)(CUgraphNode_st *);
  void (*destroy)(CUgraphNode_st *);
  CUgraphNode_st *next;
  void *memory; /* of an allocation */
};
struct CUgraph_st {
  int references; /* the user's, and one for each executable graph */
  unsigned long long id;
  CUgraphNode_st *first, **last;
  size_t nodes;
  cudaStreamCaptureStatus status;
  cudaStreamCaptureMode mode;
  CUstream_st *origin;
};
struct CUgraphExec_st {
  CUgraph_st *graph;
};
struct CUstream_st {
  unsigned flags;
  int priority;
  CUgraph_st *capture;
  size_t last_node, joined; /* in the capture: node count after this stream's last one, and at its last join */
  CUstream_st *next;
};
struct CUevent_st {
  unsigned flags;
  bool recorded;
  long long ns;
  CUgraph_st *capture; /* it was last recorded in */
  CUstream_st *stream;
  size_t node;
  CUevent_st *next;
};
struct CUmemPoolHandle_st {
  unsigned long long threshold, used, used_high;
  bool is_default;
};

namespace cuda_cpu {

/* --- the pretended GPU: limits of sm_90 --- */

const int sm_count = 132, registers_per_thread = 32, max_threads = 1024, max_threads_sm = 2048, max_blocks_sm = 32;
const int register_file = 65536;
const size_t shared_default = 48 << 10, shared_optin = 227 << 10, shared_sm = 228 << 10, shared_reserved = 1 << 10;

struct attribute {
  cudaDeviceAttr attr;
  int value;
};
inline const attribute attributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, max_threads},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, shared_default},
    {cudaDevAttrTotalConstantMemory, 65536},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxPitch, 2147483647},
    {cudaDevAttrMaxRegistersPerBlock, register_file},
    {cudaDevAttrClockRate, 1980000},
    {cudaDevAttrMaxTexture1DWidth, 131072},
    {cudaDevAttrMaxTexture2DWidth, 131072},
    {cudaDevAttrMaxTexture2DHeight, 65536},
    {cudaDevAttrMaxTexture3DWidth, 16384},
    {cudaDevAttrMaxTexture3DHeight, 16384},
    {cudaDevAttrMaxTexture3DDepth, 16384},
    {cudaDevAttrMaxTexture1DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture1DLayeredLayers, 2048},
    {cudaDevAttrMaxTexture2DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture2DLayeredHeight, 32768},
    {cudaDevAttrMaxTexture2DLayeredLayers, 2048},
    {cudaDevAttrMaxTexture1DLinearWidth, 268435456},
    {cudaDevAttrMaxTexture2DLinearWidth, 131072},
    {cudaDevAttrMaxTexture2DLinearHeight, 65000},
    {cudaDevAttrMaxTexture2DLinearPitch, 2097120},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrMultiProcessorCount, sm_count},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrEccEnabled, 1},
    {cudaDevAttrMemoryClockRate, 2619000},
    {cudaDevAttrGlobalMemoryBusWidth, 5120},
    {cudaDevAttrL2CacheSize, 52428800},
    {cudaDevAttrMaxThreadsPerMultiProcessor, max_threads_sm},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, shared_sm},
    {cudaDevAttrMaxRegistersPerMultiprocessor, register_file},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrComputePreemptionSupported, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, shared_optin},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrMaxBlocksPerMultiprocessor, max_blocks_sm},
    {cudaDevAttrReservedSharedMemoryPerBlock, shared_reserved},
    {cudaDevAttrMemoryPoolsSupported, 1},
};

inline size_t device_memory() { /* half of the machine's, at most 80 GiB */
  static const size_t bytes = [] {
    size_t half = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) / 2 * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t most = size_t{80} << 30;
    return half < most ? half : most;
  }();
  return bytes;
}

/* --- state --- */

enum memory_kind { memory_device, memory_host, memory_managed, memory_registered };

struct allocation {
  uintptr_t base;
  size_t size;
  memory_kind kind;
  unsigned flags;
  CUmemPoolHandle_st *pool; /* NULL: not a stream-ordered one */
  bool of_graph;
};

struct kernel {
  const void *function;
  size_t static_shared;
  int dynamic_limit, carveout; /* cudaFuncSetAttribute */
};

struct context {
  pthread_mutex_t mutex;
  cudaError_t sticky;
  allocation *allocations; /* by address */
  size_t allocation_count, allocation_capacity, device_used;
  kernel *kernels;
  size_t kernel_count;
  CUstream_st *streams, legacy, per_thread;
  CUevent_st *events;
  CUmemPoolHandle_st default_pool, *current_pool;
  unsigned long long captures;
  int capturing; /* streams */
  unsigned device_flags;
  size_t heap_limit, stack_limit, fifo_limit;
};
#ifdef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#define CUDA_CPU_MUTEX PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#else
#define CUDA_CPU_MUTEX PTHREAD_RECURSIVE_MUTEX_INITIALIZER
#endif
inline context ctx = {CUDA_CPU_MUTEX, cudaSuccess,     nullptr, 0, 0, 0, nullptr, 0,    nullptr, {}, {},
                      nullptr,        {0, 0, 0, true}, nullptr, 0, 0, 0, 8 << 20, 1024, 1 << 20};
inline thread_local cudaError_t last_error = cudaSuccess;

struct locked {
  locked() { pthread_mutex_lock(&ctx.mutex); }
  ~locked() { pthread_mutex_unlock(&ctx.mutex); }
  locked(const locked &) = delete;
};

inline cudaError_t error(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}
inline cudaError_t unsupported(const char *what) {
  fprintf(stderr, "CUDA stand-in: not supported: %s\n", what);
  return error(cudaErrorNotSupported);
}
CUDA_CPU_OUT_OF_LINE cudaError_t enter(const char *name) {
  if (self) {
    fprintf(stderr, "CUDA stand-in: not supported: %s called in a kernel\n", name);
    return cudaErrorNotSupported;
  }
  return error(__atomic_load_n(&ctx.sticky, __ATOMIC_ACQUIRE));
}

/* --- memory --- */

/* What reads memory has to know when that goes; NULL as long as there are no arrays and textures. */
inline void (*memory_goes)(const void *p, size_t size);
inline void tell_textures(const void *p, size_t size) {
  if (memory_goes) memory_goes(p, size);
}

inline size_t allocation_after(uintptr_t address) { /* index of the first one that starts beyond address */
  size_t low = 0, high = ctx.allocation_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (ctx.allocations[middle].base <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
CUDA_CPU_OUT_OF_LINE allocation *find_allocation(const void *p) {
  uintptr_t address = reinterpret_cast<uintptr_t>(p);
  size_t i = allocation_after(address);
  if (!i) return nullptr;
  allocation *a = &ctx.allocations[i - 1];
  return address - a->base < a->size ? a : nullptr;
}
CUDA_CPU_OUT_OF_LINE bool add_allocation(const allocation &a) {
  if (ctx.allocation_count == ctx.allocation_capacity) {
    size_t capacity = ctx.allocation_capacity * 2 + 64;
    void *more = realloc(ctx.allocations, capacity * sizeof(allocation));
    if (!more) return false;
    ctx.allocations = static_cast<allocation *>(more);
    ctx.allocation_capacity = capacity;
  }
  size_t i = allocation_after(a.base);
  memmove(ctx.allocations + i + 1, ctx.allocations + i, (ctx.allocation_count - i) * sizeof(allocation));
  ctx.allocations[i] = a;
  ctx.allocation_count++;
  return true;
}
CUDA_CPU_OUT_OF_LINE void remove_allocation(allocation *a) {
  size_t i = static_cast<size_t>(a - ctx.allocations);
  memmove(a, a + 1, (ctx.allocation_count - i - 1) * sizeof(allocation));
  ctx.allocation_count--;
}

/* Large blocks are poisoned at both ends only, so that they do not take more of the machine's memory than is used. */
CUDA_CPU_OUT_OF_LINE void poison_allocation(void *p, size_t size) {
  const size_t part = size_t{64} << 20;
  if (size <= 4 * part) return poison(p, size);
  poison(p, part);
  poison(static_cast<char *>(p) + (size - part) / 8 * 8, size - (size - part) / 8 * 8);
}

CUDA_CPU_OUT_OF_LINE cudaError_t allocate(void **out, size_t size, memory_kind kind, unsigned flags,
                                          CUmemPoolHandle_st *pool = nullptr, bool of_graph = false) {
  if (!out) return error(cudaErrorInvalidValue);
  *out = nullptr;
  if (!size) return cudaSuccess;
  locked lock;
  bool on_device = kind == memory_device;
  if (on_device && size > device_memory() - ctx.device_used) return error(cudaErrorMemoryAllocation);
  void *p;
  if (posix_memalign(&p, 256, size)) return error(cudaErrorMemoryAllocation);
  if (!add_allocation({reinterpret_cast<uintptr_t>(p), size, kind, flags, pool, of_graph})) {
    free(p);
    return error(cudaErrorMemoryAllocation);
  }
  if (on_device) ctx.device_used += size;
  if (pool) {
    pool->used += size;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
  }
  poison_allocation(p, size);
  *out = p;
  return cudaSuccess;
}

CUDA_CPU_OUT_OF_LINE cudaError_t release(void *p, bool host) {
  if (!p) return cudaSuccess;
  locked lock;
  allocation *a = find_allocation(p);
  if (!a || a->base != reinterpret_cast<uintptr_t>(p) || a->kind == memory_registered ||
      host != (a->kind == memory_host) || a->of_graph)
    return error(cudaErrorInvalidValue);
  if (a->kind == memory_device) ctx.device_used -= a->size;
  if (a->pool) a->pool->used -= a->size;
  const size_t size = a->size;
  remove_allocation(a);
  tell_textures(p, size);
  free(p);
  return cudaSuccess;
}

CUDA_CPU_OUT_OF_LINE void release_graph_memory(void *p) {
  {
    locked lock;
    allocation *a = find_allocation(p);
    if (!a || a->base != reinterpret_cast<uintptr_t>(p) || !a->of_graph) return; /* gone with a reset */
    a->of_graph = false;
  }
  release(p, false);
}

#ifdef __ELF__
extern "C" {
extern char __data_start[] __attribute__((weak)), _end[] __attribute__((weak));
}
/* `__device__` and `__constant__` variables are plain ones here. */
inline bool is_static(const void *p) {
  return static_cast<const char *>(p) >= __data_start && static_cast<const char *>(p) < _end;
}
#else
inline bool is_static(const void *) { return true; }
#endif

/* May the device (or else the host) touch these bytes? What the table does not know is the host's. */
CUDA_CPU_OUT_OF_LINE bool reaches(const void *p, size_t bytes, bool device) {
  if (!bytes) return true;
  if (!p) return false;
  allocation *a = find_allocation(p);
  if (!a) return !device || is_static(p);
  if (bytes > a->size - (reinterpret_cast<uintptr_t>(p) - a->base)) return false;
  return device || a->kind != memory_device;
}

CUDA_CPU_OUT_OF_LINE cudaError_t check_copy(const void *dst, const void *src, size_t dst_bytes, size_t src_bytes,
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

/* --- streams, capture --- */

/* NULL: no such stream */
CUDA_CPU_OUT_OF_LINE CUstream_st *find_stream(cudaStream_t s) {
  if (!s || s == cudaStreamLegacy) return &ctx.legacy;
  if (s == cudaStreamPerThread) return &ctx.per_thread;
  locked lock;
  for (CUstream_st *i = ctx.streams; i; i = i->next)
    if (i == s) return i;
  return nullptr;
}
CUDA_CPU_OUT_OF_LINE bool is_event(cudaEvent_t e) {
  locked lock;
  for (CUevent_st *i = ctx.events; i; i = i->next)
    if (i == e) return true;
  return false;
}

CUDA_CPU_OUT_OF_LINE void drop_graph(CUgraph_st *g) {
  if (--g->references) return;
  for (CUgraphNode_st *n = g->first, *next; n; n = next) {
    next = n->next;
    if (n->memory) release_graph_memory(n->memory);
    n->destroy(n);
  }
  free(g);
}

template <class F> struct node : CUgraphNode_st {
  F work;
  explicit node(const F &f) : work(f) {
    run = [](CUgraphNode_st *n) { return static_cast<node *>(n)->work(); };
    destroy = [](CUgraphNode_st *n) { delete static_cast<node *>(n); };
    next = nullptr;
    memory = nullptr;
  }
};

template <class F> node<F> *keep(CUstream_st *s, const F &work) {
  CUgraph_st *g = s->capture;
  node<F> *n = new node<F>(work);
  *g->last = n;
  g->last = &n->next;
  s->last_node = ++g->nodes;
  return n;
}

inline void invalidate(CUgraph_st *g) { g->status = cudaStreamCaptureStatusInvalidated; }

/* May work be put into this stream now? */
CUDA_CPU_OUT_OF_LINE cudaError_t check_stream(CUstream_st *s) {
  if (!s) return cudaErrorInvalidResourceHandle;
  if (s->capture && s->capture->status == cudaStreamCaptureStatusInvalidated) return cudaErrorStreamCaptureInvalidated;
  if (s == &ctx.legacy && ctx.capturing) { /* it would have to wait for blocking streams that capture */
    locked lock;
    for (CUstream_st *i = ctx.streams; i; i = i->next)
      if (i->capture && !(i->flags & cudaStreamNonBlocking)) {
        invalidate(i->capture);
        return cudaErrorStreamCaptureImplicit;
      }
  }
  return cudaSuccess;
}

/* Does the work now, or keeps it if the stream captures. */
template <class F> cudaError_t enqueue(cudaStream_t stream, const F &work) {
  CUstream_st *s = find_stream(stream);
  if (cudaError_t e = check_stream(s)) return error(e);
  if (!s->capture) return error(work());
  keep(s, work);
  return cudaSuccess;
}

/* For calls that a capture in the global mode forbids to every thread that is not in the relaxed mode. */
inline thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
CUDA_CPU_OUT_OF_LINE cudaError_t forbid_while_capturing() {
  if (!ctx.capturing || capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  locked lock;
  for (CUstream_st *i = ctx.streams; i; i = i->next)
    if (i->capture && i->capture->mode != cudaStreamCaptureModeRelaxed) {
      invalidate(i->capture);
      return cudaErrorStreamCaptureUnsupported;
    }
  return cudaSuccess;
}

CUDA_CPU_OUT_OF_LINE void leave_capture(CUstream_st *s) {
  if (s == s->capture->origin) drop_graph(s->capture);
  s->capture = nullptr;
  ctx.capturing--;
}

CUDA_CPU_OUT_OF_LINE cudaError_t end_capture(CUstream_st *s, CUgraph_st **out) {
  CUgraph_st *g = s->capture;
  if (!g) return cudaErrorIllegalState;
  if (g->origin != s) return cudaErrorStreamCaptureUnmatched;
  cudaError_t result =
      g->status == cudaStreamCaptureStatusInvalidated ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  g->references++; /* kept until this function has decided */
  {
    locked lock;
    for (CUstream_st *i = ctx.streams; i; i = i->next)
      if (i->capture == g) {
        if (i != s && i->last_node > i->joined && !result) result = cudaErrorStreamCaptureUnjoined;
        leave_capture(i);
      }
    for (CUevent_st *e = ctx.events; e; e = e->next)
      if (e->capture == g) e->capture = nullptr;
  }
  *out = nullptr;
  if (result)
    drop_graph(g);
  else
    *out = g;
  return result;
}

/* Waiting on the host for a stream. */
CUDA_CPU_OUT_OF_LINE cudaError_t check_wait(CUstream_st *s) {
  if (s && s->capture) {
    invalidate(s->capture);
    return cudaErrorStreamCaptureUnsupported;
  }
  return check_stream(s);
}

inline long long now_ns() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

CUDA_CPU_OUT_OF_LINE cudaError_t record(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (!is_event(event)) return cudaErrorInvalidResourceHandle;
  CUstream_st *s = find_stream(stream);
  if (cudaError_t e = check_stream(s)) return e;
  if (s->capture && !(flags & cudaEventRecordExternal)) { /* orders captured work only */
    event->capture = s->capture;
    event->stream = s;
    event->node = s->last_node;
    return cudaSuccess;
  }
  return enqueue(stream, [=] {
    event->capture = nullptr;
    event->recorded = true;
    event->ns = now_ns();
    return cudaSuccess;
  });
}

/* Work is done at once, so only captures have anything to remember: a stream that waits for a captured event joins its
 * capture. Nodes run in the order in which they were captured, and so after all that they depend on. */
CUDA_CPU_OUT_OF_LINE cudaError_t wait(cudaStream_t stream, cudaEvent_t event) {
  if (!is_event(event)) return cudaErrorInvalidResourceHandle;
  CUstream_st *s = find_stream(stream);
  if (cudaError_t e = check_stream(s)) return e;
  if (!event->capture) {
    if (!s->capture || !event->recorded) return cudaSuccess;
    invalidate(s->capture);
    return cudaErrorStreamCaptureIsolation;
  }
  if (s == &ctx.legacy) return cudaErrorStreamCaptureImplicit;
  if (s->capture && s->capture != event->capture) {
    invalidate(s->capture);
    invalidate(event->capture);
    return cudaErrorStreamCaptureMerge;
  }
  locked lock;
  if (!s->capture) {
    s->capture = event->capture;
    s->last_node = s->joined = 0;
    ctx.capturing++;
  }
  if (event->stream != s && event->node > event->stream->joined) event->stream->joined = event->node;
  return cudaSuccess;
}

/* --- stream-ordered memory --- */

/* In a capture the memory belongs to the graph: its address is the same in each run, and it lives as long. */
CUDA_CPU_OUT_OF_LINE cudaError_t allocate_async(void **out, size_t size, CUmemPoolHandle_st *pool,
                                                cudaStream_t stream) {
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
CUDA_CPU_OUT_OF_LINE cudaError_t release_async(void *p, cudaStream_t stream) {
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

CUDA_CPU_OUT_OF_LINE bool is_managed(const void *p, size_t bytes) {
  locked lock;
  allocation *a = p ? find_allocation(p) : nullptr;
  return a && a->kind == memory_managed && bytes && bytes <= a->size - (reinterpret_cast<uintptr_t>(p) - a->base);
}

/* The context as at the start of the program. */
CUDA_CPU_OUT_OF_LINE void reset() {
  locked lock;
  for (CUstream_st *s = ctx.streams, *next; s; s = next) {
    next = s->next;
    if (s->capture) leave_capture(s);
    free(s);
  }
  for (CUevent_st *e = ctx.events, *next; e; e = next) {
    next = e->next;
    free(e);
  }
  for (size_t i = 0; i < ctx.allocation_count; i++)
    if (ctx.allocations[i].kind != memory_registered) {
      void *p = reinterpret_cast<void *>(ctx.allocations[i].base);
      tell_textures(p, ctx.allocations[i].size);
      free(p);
    }
  ctx.streams = nullptr;
  ctx.events = nullptr;
  ctx.current_pool = nullptr;
  ctx.default_pool = CUmemPoolHandle_st{0, 0, 0, true};
  ctx.allocation_count = ctx.kernel_count = ctx.device_used = 0;
  ctx.sticky = last_error = cudaSuccess;
}

/* --- kernels --- */

CUDA_CPU_OUT_OF_LINE kernel find_kernel(const void *function, const kernel *update = nullptr) {
  locked lock;
  size_t i = 0;
  while (i < ctx.kernel_count && ctx.kernels[i].function != function) i++;
  if (i == ctx.kernel_count) {
    size_t fixed = static_shared(function);
    kernel k = {function, fixed, fixed < shared_default ? static_cast<int>(shared_default - fixed) : 0, -1};
    void *more = realloc(ctx.kernels, (ctx.kernel_count + 1) * sizeof(kernel));
    if (!more) return k;
    ctx.kernels = static_cast<kernel *>(more);
    ctx.kernels[ctx.kernel_count++] = k;
  }
  if (update) ctx.kernels[i] = *update;
  return ctx.kernels[i];
}

CUDA_CPU_OUT_OF_LINE int blocks_per_sm(const void *function, int block, size_t dynamic) {
  if (block > max_threads || dynamic > shared_optin) return 0;
  int warps = (block + 31) / 32, blocks = max_threads_sm / 32 / warps;
  int by_registers = register_file / (registers_per_thread * 32) / warps;
  size_t shared = (find_kernel(function).static_shared + dynamic + shared_reserved + 127) / 128 * 128;
  int by_shared = static_cast<int>(shared_sm / shared);
  if (by_registers < blocks) blocks = by_registers;
  if (by_shared < blocks) blocks = by_shared;
  return blocks < max_blocks_sm ? blocks : max_blocks_sm;
}

inline bool is_cooperative(const cudaLaunchConfig_t &c) {
  for (unsigned i = 0; i < c.numAttrs; i++)
    if (c.attrs[i].id == cudaLaunchAttributeCooperative) return c.attrs[i].val.cooperative != 0;
  return false;
}

/* All blocks have to be on the GPU at once. */
CUDA_CPU_OUT_OF_LINE cudaError_t check_cooperative(const void *function, const cudaLaunchConfig_t &c) {
  unsigned long long blocks = static_cast<unsigned long long>(c.gridDim.x) * c.gridDim.y * c.gridDim.z;
  int threads = static_cast<int>(c.blockDim.x * c.blockDim.y * c.blockDim.z);
  int room = sm_count * blocks_per_sm(function, threads, c.dynamicSmemBytes);
  if (blocks > static_cast<unsigned long long>(room)) return cudaErrorCooperativeLaunchTooLarge;
#ifdef CUDA_CPU_TRACE
  if (blocks > 1)
    return unsupported("a cooperative launch of several blocks under the race checker, which knows one OS thread");
#endif
#ifdef CUDA_CPU_SHARED_IS_STATIC
  if (blocks > 1 && find_kernel(function).static_shared)
    return unsupported("a cooperative launch of several blocks whose kernel has static __shared__ variables, of which "
                       "there is one for all blocks in a build with sanitizers");
#endif
  return cudaSuccess;
}

CUDA_CPU_OUT_OF_LINE cudaError_t check_launch(const void *function, const cudaLaunchConfig_t &c) {
  const dim3 &g = c.gridDim, &b = c.blockDim;
  if (!function) return cudaErrorInvalidDeviceFunction;
  if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z) return cudaErrorInvalidValue;
  if (g.x > 2147483647u || g.y > 65535 || g.z > 65535) return cudaErrorInvalidValue;
  if (b.x > 1024 || b.y > 1024 || b.z > 64 || b.x * b.y * b.z > 1024) return cudaErrorInvalidValue;
  if (c.dynamicSmemBytes > static_cast<size_t>(find_kernel(function).dynamic_limit)) return cudaErrorInvalidValue;
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

struct erased_launch {
  void (*call)(const void *closure);
  const void *function;
  dim3 grid, block;
  size_t shared_bytes;
  bool cooperative;
};

CUDA_CPU_OUT_OF_LINE cudaError_t run_launch(const erased_launch &l, const void *closure) {
  launch job = {};
  job.call = l.call;
  job.closure = closure;
  job.kernel = l.function;
  job.grid = l.grid;
  job.block = l.block;
  job.shared_bytes = l.shared_bytes;
  job.blocks = static_cast<unsigned long long>(l.grid.x) * l.grid.y * l.grid.z;
  if (l.cooperative) job.cooperative = grid_create(job.blocks);
  const bool well = run(&job);
  if (job.cooperative && !grid_destroy(job.cooperative)) return error(cudaErrorLaunchOutOfResources);
  /* as on a GPU: the launch has gone well, and what comes after it reports the failure */
  if (!well) __atomic_store_n(&ctx.sticky, cudaErrorLaunchFailure, __ATOMIC_RELEASE);
  return cudaSuccess;
}

CUDA_CPU_OUT_OF_LINE cudaError_t prepare_launch(const void *function, const cudaLaunchConfig_t &c, CUstream_st **s) {
  if (cudaError_t e = check_launch(function, c)) return error(e);
  *s = find_stream(c.stream);
  return error(check_stream(*s));
}

/* closure() calls the kernel with the launch's arguments. */
template <class F> cudaError_t launch_kernel(const void *function, const cudaLaunchConfig_t &c, const F &closure) {
  CUstream_st *s;
  if (cudaError_t e = prepare_launch(function, c, &s)) return e;
  erased_launch l = {[](const void *f) { (*static_cast<const F *>(f))(); },
                     function,
                     c.gridDim,
                     c.blockDim,
                     c.dynamicSmemBytes,
                     is_cooperative(c)};
  if (!s->capture) return run_launch(l, &closure);
  keep(s, [=] { return run_launch(l, &closure); });
  return cudaSuccess;
}

} // namespace cuda_cpu
#endif
