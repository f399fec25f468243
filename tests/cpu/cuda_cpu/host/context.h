/* The state of the host side of the runtime, and how each call of it begins. Work is done at once: a launch, copy or
 * host function has completed when its call returns, which is one of the orders that streams allow. Only what a stream
 * captures is kept for later. */
#pragma once
#pragma GCC system_header

#include "../calls.h"
#include "../run/crash.h"
#include "gpu_models.h"
#include "injected_failures.h"

struct CUgraphNode_st {
  cudaError_t (*run)(CUgraphNode_st *);
  void (*destroy)(CUgraphNode_st *);
  CUgraphNode_st *next;
  void *memory; /* of an allocation */
};
struct CUgraph_st {
  int references; /* the user's, and one for each executable graph */
  unsigned long long id;
  CUgraphNode_st *first, **last, *newest;
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

struct allocation;
struct kernel;

#ifdef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#define CUDA_CPU_MUTEX PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#elif defined(PTHREAD_RECURSIVE_MUTEX_INITIALIZER)
#define CUDA_CPU_MUTEX PTHREAD_RECURSIVE_MUTEX_INITIALIZER
#else /* musl has no macro: the type comes first */
/* clang-format off */
#define CUDA_CPU_MUTEX {{{PTHREAD_MUTEX_RECURSIVE}}}
/* clang-format on */
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

CUDA_CPU_RARE cudaError_t unsupported(const char *what) {
  fprintf(stderr, "CUDA stand-in: not supported: %s\n", what);
  return error(cudaErrorNotSupported);
}

/* What the program holds besides memory (end_of_program.h). */
enum held_kind { held_stream, held_event, held_graph, held_exec, held_pool, held_kinds };
void hold(const void *p, held_kind kind, int device);
void let_go(const void *p);
template <class T> T *make(held_kind kind, int device) { /* all zero; NULL: no memory */
  T *made = static_cast<T *>(calloc(1, sizeof(T)));
  if (made) hold(made, kind, device);
  return made;
}
/* How many of a list have gone. */
template <class T, class F> int drop_from(T **list, F goes) {
  int dropped = 0;
  for (T **p = list; *p;) {
    T *t = *p;
    if (!goes(t)) {
      p = &t->next;
      continue;
    }
    *p = t->next;
    let_go(t);
    free(t);
    dropped++;
  }
  return dropped;
}

inline thread_local CUstream_st *building; /* takes all work while a node of a graph is made (graph_nodes.h) */
/* NULL: no such stream */
inline CUstream_st *find_stream(cudaStream_t s) {
  if (building) return building;
  if (!s || s == cudaStreamLegacy) return &here().legacy;
  if (s == cudaStreamPerThread) return &here().per_thread;
  locked lock;
  for (CUstream_st *i = ctx.streams; i; i = i->next)
    if (i == s) return i;
  return nullptr;
}
inline bool is_event(cudaEvent_t e) {
  locked lock;
  for (CUevent_st *i = ctx.events; i; i = i->next)
    if (i == e) return true;
  return false;
}

inline bool is_legacy(const CUstream_st *s) { return s == &device(s->device).legacy; }

/* --- how each call begins --- */

CUDA_CPU_ENTRY cudaError_t error(cudaError_t code) {
  if (code != cudaSuccess && (code != cudaErrorNotReady || last_error == cudaSuccess)) last_error = code;
  return code;
}

inline thread_local int call_depth; /* of calls of the API in one another: only the outermost one counts */
inline thread_local const char *call_name = "";

inline cudaError_t enter(const char *name) {
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
inline void move_window(int by);

/* For the end of the program: the last kernel that nothing has waited for, and the last launch that failed with nothing
 * having asked for its error. */
struct unattended {
  const void *kernel, *failed;
  dim3 grid, block;
  size_t shared; /* bytes, if they are why it failed */
  cudaError_t error;
};
inline unattended unattended_now;
inline void attend(const char *call) {
  if (!unattended_now.kernel) return;
  static const char *const waiting[] = {
      "cudaMemcpy",         "cudaMemcpy2D",          "cudaMemcpy3D", "cudaMemcpyFromSymbol",
      "cudaMemcpyToSymbol", "cudaMemcpy2DFromArray", "cudaFree",     "cudaFreeHost",
      "cudaStreamQuery",    "cudaEventQuery"};
  bool waits = strstr(call, "Synchronize") != nullptr;
  for (const char *w : waiting) waits = waits || !strcmp(call, w);
  if (waits) unattended_now.kernel = nullptr;
}
CUDA_CPU_ENTRY cudaError_t begin_call(const char *name) {
  if (!call_depth) attend(name);
  const cudaError_t failed = enter(name);
  if (!call_depth++ && protects()) move_window(1);
  return failed;
}
CUDA_CPU_ENTRY void end_call() {
  if (!--call_depth && protects()) move_window(-1);
}

/* Opens calls that a capture forbids (graphs.h). */
#define CUDA_CPU_API_OUTSIDE_CAPTURE(name)                                                                             \
  CUDA_CPU_API(name);                                                                                                  \
  if (cudaError_t e = forbid_while_capturing()) return error(e)

/* --- errors --- */

CUDA_CPU_CALL cudaPeekAtLastError(void) {
  unattended_now.failed = nullptr;
  cudaError_t sticky = __atomic_load_n(&here().sticky, __ATOMIC_ACQUIRE);
  return sticky ? sticky : last_error;
}
CUDA_CPU_CALL cudaGetLastError(void) {
  cudaError_t e = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return e;
}
struct error_text {
  cudaError_t code;
  const char *name, *text;
};
inline const error_text &text_of(cudaError_t error) {
#define CUDA_CPU_TEXT(name, value, text) {name, #name, text},
  static const error_text texts[] = {CUDA_CPU_ERRORS(CUDA_CPU_TEXT) /* what no code has comes last */
                                     {cudaErrorApiFailureBase, "unrecognized error code", "unrecognized error code"}};
#undef CUDA_CPU_TEXT
  const error_text *t = texts;
  while (t->code != error && t->code != cudaErrorApiFailureBase) t++;
  return *t;
}
CUDA_CPU_EXPORT const char *cudaGetErrorName(cudaError_t error) { return text_of(error).name; }
CUDA_CPU_EXPORT const char *cudaGetErrorString(cudaError_t error) { return text_of(error).text; }

} // namespace cuda_cpu
