/* The host side of the runtime. Work is done at once: a launch, copy or host function has completed when its call
 * returns, which is one of the orders that streams allow. Only what a stream captures is kept for later. */
#ifndef CUDA_CPU_RUNTIME_H
#define CUDA_CPU_RUNTIME_H
#pragma GCC system_header

#include <time.h>
#include "injected_failures.h"
#include "../run/grid.h"
#include "leaks.h"
#include "gpu_models.h"

/* `used`: a C file of the program calls these without seeing their definition. */
#ifdef __clang__
#define CUDA_CPU_EXPORT extern "C" __attribute__((used, noinline, cold)) inline
#else
#define CUDA_CPU_EXPORT extern "C" __attribute__((used, noipa, cold)) inline
#endif
/* Opens every call of the API, and nothing else decides whether a call may go on. */
#define CUDA_CPU_API(name)                                                                                             \
  cuda_cpu::api_call cuda_cpu_call(#name);                                                                             \
  if (cuda_cpu_call.failed) return cuda_cpu_call.failed

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
  const void *thread; /* that began it, by its capture_mode */
  CUstream_st *origin;
};
struct CUgraphExec_st {
  CUgraph_st *graph;
};
struct CUstream_st {
  unsigned flags;
  int priority, device;
  CUgraph_st *capture;
  size_t last_node, joined; /* in the capture: node count after this stream's last one, and at its last join */
  CUstream_st *next;
  const void *hung; /* what its work waits for in vain (nccl.h); NULL: nothing */
};
struct CUevent_st {
  unsigned flags;
  int device;
  bool recorded;
  long long ns;
  CUgraph_st *capture; /* it was last recorded in */
  CUstream_st *stream;
  size_t node;
  CUevent_st *next;
  const void *hung; /* as of the stream that it was recorded on */
};
struct CUmemPoolHandle_st {
  unsigned long long threshold, used, used_high;
  bool is_default;
  int device;
  unsigned peers; /* a bit for each other device that may use its memory (cudaMemPoolSetAccess) */
  bool destroyed; /* by the user; the last release of its memory ends it */
};

namespace cuda_cpu {

/* --- state --- */

enum memory_kind { memory_device, memory_host, memory_managed, memory_registered };

struct allocation {
  uintptr_t base;
  size_t size;
  memory_kind kind;
  unsigned flags;
  CUmemPoolHandle_st *pool; /* NULL: not a stream-ordered one */
  bool of_graph;
  int device;                /* that was current, or is the pool's */
  unsigned long long number; /* from 1, in the order of allocation */
  const char *call;          /* that made it */
};

struct kernel {
  const void *function;
  int device;
  size_t static_shared;
  int dynamic_limit, carveout; /* cudaFuncSetAttribute */
};

#ifdef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#define CUDA_CPU_MUTEX PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#else
#define CUDA_CPU_MUTEX PTHREAD_RECURSIVE_MUTEX_INITIALIZER
#endif
struct device_state {
  CUstream_st legacy, per_thread;
  CUmemPoolHandle_st default_pool, *current_pool;
  size_t used;
  cudaError_t sticky;
  unsigned flags, peers; /* peers: a bit for each device whose memory kernels of this one may use */
  size_t heap_limit, stack_limit, fifo_limit;
};
struct context {
  pthread_mutex_t mutex = CUDA_CPU_MUTEX;
  bool ready = false; /* devices are set up */
  device_state devices[max_devices] = {};
  allocation *allocations = nullptr; /* by address */
  size_t allocation_count = 0, allocation_capacity = 0;
  unsigned long long allocations_made = 0;
  kernel *kernels = nullptr;
  size_t kernel_count = 0;
  CUstream_st *streams = nullptr;
  CUevent_st *events = nullptr;
  unsigned long long captures = 0;
  int capturing = 0; /* streams */
  int windows = 0;   /* calls that run: device memory is accessible, see GPUKIT_CPU_PROTECT */
};
inline context ctx;
inline thread_local int device_now = 0; /* cudaSetDevice */
inline thread_local cudaError_t last_error = cudaSuccess;

struct locked {
  locked() { pthread_mutex_lock(&ctx.mutex); }
  ~locked() { pthread_mutex_unlock(&ctx.mutex); }
  locked(const locked &) = delete;
};

inline void set_up_device(int number) {
  device_state &d = ctx.devices[number];
  d = device_state{};
  d.legacy.device = d.per_thread.device = d.default_pool.device = number;
  d.default_pool.is_default = true;
  d.heap_limit = 8 << 20;
  d.stack_limit = 1024;
  d.fifo_limit = 1 << 20;
}
inline device_state &device(int number) {
  if (!__atomic_load_n(&ctx.ready, __ATOMIC_ACQUIRE)) {
    locked lock;
    for (int i = 0; i < max_devices && !ctx.ready; i++) set_up_device(i);
    __atomic_store_n(&ctx.ready, true, __ATOMIC_RELEASE);
  }
  return ctx.devices[number];
}
inline device_state &here() { return device(device_now); }
inline bool is_device(int number) { return number >= 0 && number < device_count(); }

/* Work that has not ended is the last error only where there is no other. */
inline cudaError_t error(cudaError_t code) {
  if (code != cudaSuccess && (code != cudaErrorNotReady || last_error == cudaSuccess)) last_error = code;
  return code;
}
inline cudaError_t unsupported(const char *what) {
  fprintf(stderr, "CUDA stand-in: not supported: %s\n", what);
  return error(cudaErrorNotSupported);
}

/* --- calls --- */

inline thread_local int call_depth; /* of calls of the API in one another: only the outermost one counts */
inline thread_local const char *call_name = "";

CUDA_CPU_OUT_OF_LINE cudaError_t enter(const char *name) {
  if (self) {
    fprintf(stderr, "CUDA stand-in: not supported: %s called in a kernel\n", name);
    return cudaErrorNotSupported;
  }
  if (!call_depth) {
    call_name = name;
    if (cudaError_t e = injected(name)) {
      if (is_sticky(e)) __atomic_store_n(&here().sticky, e, __ATOMIC_RELEASE);
      return error(e);
    }
  }
  return error(__atomic_load_n(&here().sticky, __ATOMIC_ACQUIRE));
}

/* GPUKIT_CPU_PROTECT=1: the host cannot touch device memory unless a call runs. */
inline int protection; /* 0: the environment has not been read, 1: off, 2: on */
CUDA_CPU_RARE void choose_protection() {
  const char *e = getenv("GPUKIT_CPU_PROTECT");
  const bool on = e && *e && strcmp(e, "0") != 0;
  if (on) watch_signals();
  __atomic_store_n(&protection, on ? 2 : 1, __ATOMIC_RELEASE);
}
inline bool protects() {
  if (!__atomic_load_n(&protection, __ATOMIC_ACQUIRE)) choose_protection();
  return __atomic_load_n(&protection, __ATOMIC_RELAXED) == 2;
}
CUDA_CPU_RARE void move_window(int by);

struct api_call {
  cudaError_t failed;
  __attribute__((noinline)) explicit api_call(const char *name) : failed(enter(name)) {
    if (!call_depth++ && protects()) move_window(1);
  }
  __attribute__((noinline)) ~api_call() {
    if (!--call_depth && protects()) move_window(-1);
  }
  api_call(const api_call &) = delete;
};

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
  trace_take_turn();
  trace_register(reinterpret_cast<const void *>(a.base), a.size, false);
  trace_give_turn();
  return true;
}
CUDA_CPU_OUT_OF_LINE void remove_allocation(allocation *a) {
  trace_take_turn();
  trace_forget(reinterpret_cast<const void *>(a->base), a->size);
  trace_give_turn();
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

/* Protected memory has its own pages, and ends where they end as far as its alignment permits. Under ASan it is poisoned
 * instead, byte by byte. */
#ifdef CUDA_CPU_ASAN
inline void *get_memory(size_t size, memory_kind) {
  void *p;
  return posix_memalign(&p, 256, size) ? nullptr : p;
}
inline void put_memory(const allocation &a) {
  tell_textures(reinterpret_cast<void *>(a.base), a.size);
  free(reinterpret_cast<void *>(a.base));
}
inline void open_memory(const allocation &a, bool open) {
  (open ? __asan_unpoison_memory_region : __asan_poison_memory_region)(reinterpret_cast<void *>(a.base), a.size);
}
CUDA_CPU_RARE void describe_freed(text *, uintptr_t) {}
#else
CUDA_CPU_RARE size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
CUDA_CPU_RARE uintptr_t first_page(const allocation &a) { return a.base / page() * page(); }
CUDA_CPU_RARE size_t bytes_of_pages(const allocation &a) {
  return (a.base + a.size + page() - 1) / page() * page() - first_page(a);
}
CUDA_CPU_OUT_OF_LINE void *get_memory(size_t size, memory_kind kind) {
  void *p;
  if (kind != memory_device || !protects()) return posix_memalign(&p, 256, size) ? nullptr : p;
  const size_t pages = (size + page() - 1) / page() * page();
  p = mmap(nullptr, pages + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  char *first = static_cast<char *>(p) + page();
  if (mprotect(first, pages, PROT_READ | PROT_WRITE)) {
    munmap(p, pages + 2 * page());
    return nullptr;
  }
  return first + (pages - size) / 256 * 256;
}

/* Addresses that are freed stay unused for a while, so that a late access to them is found. */
struct freed_memory {
  allocation list[256];
  size_t count;
};
inline freed_memory freed;
CUDA_CPU_OUT_OF_LINE void put_memory(const allocation &a) {
  tell_textures(reinterpret_cast<void *>(a.base), a.size);
  if (a.kind != memory_device || !protects()) return free(reinterpret_cast<void *>(a.base));
  allocation &slot = freed.list[freed.count++ % (sizeof freed.list / sizeof *freed.list)];
  if (slot.base) munmap(reinterpret_cast<void *>(first_page(slot) - page()), bytes_of_pages(slot) + 2 * page());
  slot = a;
  void *p = reinterpret_cast<void *>(first_page(a));
  madvise(p, bytes_of_pages(a), MADV_DONTNEED);
  mprotect(p, bytes_of_pages(a), PROT_NONE);
}
CUDA_CPU_RARE void open_memory(const allocation &a, bool open) {
  mprotect(reinterpret_cast<void *>(first_page(a)), bytes_of_pages(a), open ? PROT_READ | PROT_WRITE : PROT_NONE);
}
CUDA_CPU_RARE void describe_freed(text *t, uintptr_t address) {
  for (const allocation &a : freed.list)
    if (a.base && address >= first_page(a) && address < first_page(a) + bytes_of_pages(a))
      add(t, "\n  byte %zd of freed device memory of %zu bytes, allocation %llu, by %s",
          static_cast<intptr_t>(address - a.base), a.size, a.number, a.call);
}
#endif

CUDA_CPU_RARE void move_window(int by) {
  locked lock;
  const int before = ctx.windows;
  ctx.windows += by;
  if (before && ctx.windows) return;
  for (size_t i = 0; i < ctx.allocation_count; i++)
    if (ctx.allocations[i].kind == memory_device) open_memory(ctx.allocations[i], ctx.windows != 0);
}

/* While a kernel runs, memory of other devices is open only to their peers. */
CUDA_CPU_RARE void open_foreign_memory(int owner, bool open) {
  locked lock;
  const unsigned reached = device(owner).peers | 1u << owner;
  for (size_t i = 0; i < ctx.allocation_count; i++) {
    const allocation &a = ctx.allocations[i];
    if (a.kind == memory_device && !(reached >> a.device & 1)) open_memory(a, open);
  }
}

CUDA_CPU_RARE void describe_device_address(text *t, uintptr_t address) {
  if (pthread_mutex_trylock(&ctx.mutex)) return; /* another thread changes the table, and may have been stopped */
  const size_t after = allocation_after(address);
  const allocation *nearest = nullptr;
  uintptr_t least = 256;
  for (size_t i = after ? after - 1 : 0; i <= after && i < ctx.allocation_count; i++) {
    const allocation &a = ctx.allocations[i];
    const uintptr_t end = a.base + a.size;
    const uintptr_t distance = address < a.base ? a.base - address : address < end ? 0 : address - end + 1;
    if (a.kind == memory_registered || distance >= least) continue;
    least = distance;
    nearest = &a;
  }
  if (nearest) {
    const char *kind = nearest->kind == memory_device ? "device" : nearest->kind == memory_host ? "pinned" : "managed";
    add(t, "\n  byte %zd of %s memory of %zu bytes, allocation %llu, by %s",
        static_cast<intptr_t>(address - nearest->base), kind, nearest->size, nearest->number, nearest->call);
    if (device_count() > 1) add(t, ", device %d", nearest->device);
  }
  describe_freed(t, address);
  pthread_mutex_unlock(&ctx.mutex);
}

CUDA_CPU_OUT_OF_LINE cudaError_t allocate(void **out, size_t size, memory_kind kind, unsigned flags,
                                          CUmemPoolHandle_st *pool = nullptr, bool of_graph = false) {
  if (!out) return error(cudaErrorInvalidValue);
  *out = nullptr;
  if (!size) return cudaSuccess;
  locked lock;
  bool on_device = kind == memory_device;
  const int owner = pool ? pool->device : device_now;
  if (on_device && size > device_memory() - device(owner).used) return error(cudaErrorMemoryAllocation);
  void *p = get_memory(size, kind);
  if (!p) return error(cudaErrorMemoryAllocation);
  const allocation made = {reinterpret_cast<uintptr_t>(p), size,     kind, flags, pool, of_graph, owner,
                           ctx.allocations_made + 1,       call_name};
  if (!add_allocation(made)) {
    put_memory(made);
    return error(cudaErrorMemoryAllocation);
  }
  ctx.allocations_made++;
  if (on_device) device(owner).used += size;
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
  if (a->kind == memory_device) device(a->device).used -= a->size;
  if (a->pool) {
    a->pool->used -= a->size;
    if (a->pool->destroyed && !a->pool->used) free(a->pool);
  }
  const allocation gone = *a;
  remove_allocation(a);
  put_memory(gone);
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
  if (!s || s == cudaStreamLegacy) return &here().legacy;
  if (s == cudaStreamPerThread) return &here().per_thread;
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

inline bool is_legacy(const CUstream_st *s) { return s == &device(s->device).legacy; }
inline void invalidate(CUgraph_st *g) { g->status = cudaStreamCaptureStatusInvalidated; }

/* May work be put into this stream now? */
CUDA_CPU_OUT_OF_LINE cudaError_t check_stream(CUstream_st *s) {
  if (!s) return cudaErrorInvalidResourceHandle;
  if (s->capture && s->capture->status == cudaStreamCaptureStatusInvalidated) return cudaErrorStreamCaptureInvalidated;
  if (is_legacy(s) && ctx.capturing) { /* it would have to wait for blocking streams that capture */
    locked lock;
    for (CUstream_st *i = ctx.streams; i; i = i->next)
      if (i->capture && i->device == s->device && !(i->flags & cudaStreamNonBlocking)) {
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
  if (!s->capture) return s->hung ? cudaSuccess : error(work());
  keep(s, work);
  return cudaSuccess;
}

/* For calls that a capture forbids to the thread that began it, unless in the relaxed mode, and in the global mode to
 * every thread that is in the global mode itself. */
inline thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
CUDA_CPU_OUT_OF_LINE cudaError_t forbid_while_capturing() {
  if (!ctx.capturing || capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  locked lock;
  for (CUstream_st *i = ctx.streams; i; i = i->next)
    if (i->capture && i->capture->mode != cudaStreamCaptureModeRelaxed &&
        (i->capture->thread == &capture_mode ||
         (i->capture->mode == cudaStreamCaptureModeGlobal && capture_mode == cudaStreamCaptureModeGlobal))) {
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

/* A stream or event that waits in vain is never ready, and who waits for it would wait for ever. */
inline cudaError_t ready(const void *hung) { return hung ? cudaErrorNotReady : cudaSuccess; }
CUDA_CPU_OUT_OF_LINE void refuse_to_hang(const void *hung, const char *call) {
  if (!hung) return;
  fprintf(stderr, "CUDA stand-in: %s would wait for ever: not all ranks have called a collective before it\n", call);
  abort();
}
/* What waited for this waits no more; what was put behind it has not been done, and never is. */
CUDA_CPU_OUT_OF_LINE void release_hung(const void *what) {
  locked lock;
  for (device_state &d : ctx.devices)
    for (CUstream_st *s : {&d.legacy, &d.per_thread})
      if (s->hung == what) s->hung = nullptr;
  for (CUstream_st *s = ctx.streams; s; s = s->next)
    if (s->hung == what) s->hung = nullptr;
  for (CUevent_st *e = ctx.events; e; e = e->next)
    if (e->hung == what) e->hung = nullptr;
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
  if (event->device != s->device) return cudaErrorInvalidResourceHandle;
  if (s->capture && !(flags & cudaEventRecordExternal)) { /* orders captured work only */
    event->capture = s->capture;
    event->stream = s;
    event->node = s->last_node;
    return cudaSuccess;
  }
  event->hung = s->hung;
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
    if (event->hung && !s->capture) s->hung = event->hung;
    if (!s->capture || !event->recorded) return cudaSuccess;
    invalidate(s->capture);
    return cudaErrorStreamCaptureIsolation;
  }
  if (is_legacy(s)) return cudaErrorStreamCaptureImplicit;
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

/* GPUKIT_CPU_LEAKS=1: after all destructors of the program's own objects. */
__attribute__((used, destructor, cold)) inline void list_leaks() {
  static bool listed;
  if (!leaks_wanted() || listed) return;
  listed = true;
  size_t count = held_now.count, bytes = 0;
  for (size_t i = 0; i < ctx.allocation_count; i++)
    if (ctx.allocations[i].kind != memory_registered) count++, bytes += ctx.allocations[i].size;
  if (!count) return;
  fprintf(stderr, "CUDA stand-in: %zu still held at the end of the program, %zu bytes of memory\n", count, bytes);
  for (size_t i = 0; i < ctx.allocation_count; i++) {
    const allocation &a = ctx.allocations[i];
    static const char *const kind[] = {"device", "pinned", "managed"};
    if (a.kind == memory_registered) continue;
    fprintf(stderr, "  %s memory at 0x%zx, %zu bytes, allocation %llu, by %s", kind[a.kind],
            static_cast<size_t>(a.base), a.size, a.number, a.call);
    fprintf(stderr, device_count() > 1 ? ", device %d\n" : "\n", a.device);
  }
  for (size_t i = 0; i < held_now.count; i++) {
    const held &h = held_now.list[i];
    fprintf(stderr, "  %s %llu at %p, by %s", held_names[h.kind], h.number, h.p, h.call);
    fprintf(stderr, device_count() > 1 ? ", device %d\n" : "\n", h.device);
  }
}

/* --- kernels --- */

CUDA_CPU_OUT_OF_LINE kernel find_kernel(const void *function, const kernel *update = nullptr) {
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

CUDA_CPU_OUT_OF_LINE int blocks_per_sm(const void *function, int block, size_t dynamic) {
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
CUDA_CPU_OUT_OF_LINE cudaError_t check_cooperative(const void *function, const cudaLaunchConfig_t &c) {
  unsigned long long blocks = static_cast<unsigned long long>(c.gridDim.x) * c.gridDim.y * c.gridDim.z;
  int threads = static_cast<int>(c.blockDim.x * c.blockDim.y * c.blockDim.z);
  int room = gpu().sm_count * blocks_per_sm(function, threads, c.dynamicSmemBytes);
  if (blocks > static_cast<unsigned long long>(room)) return cudaErrorCooperativeLaunchTooLarge;
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
  int device;
  bool cooperative;
};

CUDA_CPU_OUT_OF_LINE cudaError_t run_launch(const erased_launch &l, const void *closure) {
  if (cudaError_t e = injected(nullptr)) {
    __atomic_store_n(&device(l.device).sticky, e, __ATOMIC_RELEASE);
    return cudaSuccess;
  }
  launch job = {};
  job.call = l.call;
  job.closure = closure;
  job.kernel = l.function;
  job.grid = l.grid;
  job.block = l.block;
  job.shared_bytes = l.shared_bytes;
  job.blocks = static_cast<unsigned long long>(l.grid.x) * l.grid.y * l.grid.z;
  const bool guards = protects() && device_count() > 1;
  if (guards) open_foreign_memory(l.device, false);
  if (l.cooperative) job.cooperative = grid_create(job.blocks);
  const bool well = run(&job);
  if (guards) open_foreign_memory(l.device, true);
  if (job.cooperative && !grid_destroy(job.cooperative)) return error(cudaErrorLaunchOutOfResources);
  /* as on a GPU: the launch has gone well, and what comes after it reports the failure */
  if (!well) __atomic_store_n(&device(l.device).sticky, cudaErrorLaunchFailure, __ATOMIC_RELEASE);
  return cudaSuccess;
}

CUDA_CPU_OUT_OF_LINE cudaError_t prepare_launch(const void *function, const cudaLaunchConfig_t &c, CUstream_st **s) {
  if (cudaError_t e = check_launch(function, c)) return error(e);
  *s = find_stream(c.stream);
  if (cudaError_t e = check_stream(*s)) return error(e);
  return error((*s)->device == device_now ? cudaSuccess : cudaErrorInvalidResourceHandle);
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
                     s->device,
                     is_cooperative(c)};
  if (!s->capture) return s->hung ? cudaSuccess : run_launch(l, &closure);
  keep(s, [=] { return run_launch(l, &closure); });
  return cudaSuccess;
}

} // namespace cuda_cpu
#endif
