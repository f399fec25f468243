/* Injected failures: GPUKIT_CPU_FAIL=alloc:3 lets the third allocation fail. A specification is WHAT:K[+][:ERROR], or
 * several with commas between them. WHAT is alloc, copy (fills too), launch, event, stream, graph (capture too), any,
 * or the name of a call; K counts from 1, with a + every later one fails too; ERROR is a name or a number. kernel:K
 * lets the K-th launch go well and its kernel fault instead of running, which the next call reports. An ERROR after
 * which a GPU's context is of no use stays until cudaDeviceReset, whichever call it was given to.
 *
 * A call counts once, however it is made of others, and a call that fails has done nothing. */
#pragma once
#pragma GCC system_header

#include <initializer_list>
#include "../run/symbols.h"
#include "../testing.h"

namespace cuda_cpu {

/* clang-format off */
enum call_kind {
  kind_alloc, kind_copy, kind_launch, kind_event, kind_stream, kind_graph, kind_any, kind_kernel, kinds
};
/* clang-format on */
inline const char *const kind_names[] = {"alloc", "copy", "launch", "event", "stream", "graph", "any", "kernel"};

struct fault {
  int kind; /* -1: name */
  char name[64];
  unsigned long long first, seen;
  bool later;        /* all after the first one too */
  cudaError_t error; /* cudaSuccess: the one that fits */
};
struct call_count {
  const char *name;
  unsigned long long count;
};
struct fault_state {
  pthread_mutex_t mutex;
  int armed; /* 0: the environment has not been read, 1: nothing to do, 2: calls are counted */
  fault list[16];
  int count;
  unsigned long long by_kind[kinds];
  call_count by_name[256];
  int names;
};
inline fault_state faults = {PTHREAD_MUTEX_INITIALIZER, 0, {}, 0, {}, {}, 0};

/* Of which kind a call is; kind_any: of no other. */
CUDA_CPU_RARE call_kind kind_of(const char *name) {
  static const struct {
    const char *prefix;
    call_kind kind;
  } table[] = {{"cudaMalloc", kind_alloc},
               {"cudaHostAlloc", kind_alloc},
               {"cudaMemcpy", kind_copy},
               {"cudaMemset", kind_copy},
               {"cudaLaunchHostFunc", kind_stream},
               {"cudaLaunch", kind_launch},
               {"cudaEvent", kind_event},
               {"cudaStreamBeginCapture", kind_graph},
               {"cudaStreamEndCapture", kind_graph},
               {"cudaStreamIsCapturing", kind_graph},
               {"cudaStreamGetCaptureInfo", kind_graph},
               {"cudaThreadExchangeStreamCaptureMode", kind_graph},
               {"cudaStream", kind_stream},
               {"cudaGraph", kind_graph}};
  for (const auto &t : table)
    if (!strncmp(name, t.prefix, strlen(t.prefix))) return t.kind;
  return kind_any;
}

CUDA_CPU_RARE cudaError_t fitting_error(const char *name) {
  switch (kind_of(name)) {
  case kind_alloc: return cudaErrorMemoryAllocation;
  case kind_copy: return cudaErrorInvalidValue;
  case kind_launch: return cudaErrorLaunchOutOfResources;
  case kind_event:
  case kind_stream: return strstr(name, "Create") ? cudaErrorMemoryAllocation : cudaErrorInvalidResourceHandle;
  case kind_graph: return cudaErrorMemoryAllocation;
  default: return cudaErrorUnknown;
  }
}

/* After these a GPU's context is of no use any more. */
CUDA_CPU_RARE bool is_sticky(cudaError_t e) {
  return e == cudaErrorIllegalAddress || e == cudaErrorLaunchTimeout || e == cudaErrorAssert ||
         (e >= cudaErrorHardwareStackError && e <= cudaErrorLaunchFailure) || e == cudaErrorECCUncorrectable ||
         e == cudaErrorContained || e == cudaErrorTensorMemoryLeak || e == cudaErrorMpsClientTerminated ||
         e == cudaErrorExternalDevice;
}

CUDA_CPU_RARE bool parse_error(const char *text, cudaError_t *out) {
  char *end;
  const long number = strtol(text, &end, 10);
  const bool is_number = end != text && !*end;
  for (int code = 1; code < 1000; code++) {
    const char *name = cudaGetErrorName(static_cast<cudaError_t>(code));
    if (strncmp(name, "cuda", 4) || (is_number ? number != code : strcmp(text, name) != 0)) continue;
    *out = static_cast<cudaError_t>(code);
    return true;
  }
  return false;
}

/* Is there such a call in this program? A stripped one cannot tell. */
CUDA_CPU_RARE bool is_call(const char *name) {
  char mangled[96];
  if (strncmp(name, "cuda", 4) || strlen(name) >= sizeof faults.list[0].name) return false;
  const symbol_table *t = symbols();
  const int length = snprintf(mangled, sizeof mangled, "_Z%zu%s", strlen(name), name);
  for (size_t i = 0; i < t->function_count; i++)
    if (!strcmp(t->functions[i].name, name) || !strncmp(t->functions[i].name, mangled, static_cast<size_t>(length)))
      return true;
  return !t->function_count;
}

/* NULL, or what is wrong with `WHAT:K[+][:ERROR]`. */
inline const char *parse_fault(char *text, fault *f) {
  char *k = strchr(text, ':');
  if (!k) return "has no :K";
  *k++ = 0;
  char *error = strchr(k, ':'), *end;
  if (error) *error++ = 0;
  *f = fault{-1, "", 0, 0, false, cudaSuccess};
  for (int i = 0; i < kinds; i++)
    if (!strcmp(text, kind_names[i])) f->kind = i;
  for (const char *never : {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorName", "cudaGetErrorString",
                            "cudaDeviceReset", "cudaDriverGetVersion", "cudaRuntimeGetVersion"})
    if (!strcmp(text, never)) return "names a call that cannot fail";
  if (f->kind < 0) {
    if (!is_call(text)) return "names neither a kind of call nor a call of this program";
    strcpy(f->name, text);
  }
  if (*k < '0' || *k > '9') return "has no number";
  f->first = strtoull(k, &end, 10);
  if (*end == '+') f->later = true, end++;
  if (*end || !f->first) return "has a bad number: they count from 1";
  if (error && !parse_error(error, &f->error)) return "has an error that CUDA has not";
  return nullptr;
}

CUDA_CPU_RARE void set_faults(const char *spec, const char *source) {
  faults.count = faults.names = 0;
  for (unsigned long long &n : faults.by_kind) n = 0;
  if (!spec || !*spec) return;
  char text[1024], original[256];
  snprintf(text, sizeof text, "%s", spec);
  const char *wrong = strlen(spec) < sizeof text ? nullptr : "is too long";
  for (char *part = text, *next; part && !wrong; part = next) {
    next = strchr(part, ',');
    if (next) *next++ = 0;
    snprintf(original, sizeof original, "%s", part);
    if (faults.count == sizeof faults.list / sizeof *faults.list)
      wrong = "is one too many";
    else
      wrong = parse_fault(part, &faults.list[faults.count++]);
  }
  if (!wrong) return;
  fprintf(
      stderr,
      "CUDA stand-in: %s=%s: '%s' %s\n"
      "  WHAT:K[+][:ERROR], with commas between several; WHAT: alloc copy launch event stream graph any kernel, or a "
      "call\n",
      source, spec, strlen(spec) < sizeof text ? original : spec, wrong);
  abort();
}

/* Counts one; the error that it has to fail with, or cudaSuccess. */
CUDA_CPU_RARE cudaError_t strike(fault *f, const char *name) {
  const unsigned long long n = ++f->seen;
  if (n != f->first && !(f->later && n > f->first)) return cudaSuccess;
  return f->error ? f->error : name ? fitting_error(name) : cudaErrorLaunchFailure;
}

CUDA_CPU_RARE cudaError_t count_call(const char *name) { /* NULL: a kernel starts */
  pthread_mutex_lock(&faults.mutex);
  cudaError_t result = cudaSuccess;
  const int kind = name ? kind_of(name) : kind_kernel;
  faults.by_kind[kind]++;
  if (name && kind != kind_any) faults.by_kind[kind_any]++;
  if (name) {
    int i = 0;
    while (i < faults.names && strcmp(faults.by_name[i].name, name)) i++;
    if (i == faults.names && i < static_cast<int>(sizeof faults.by_name / sizeof *faults.by_name))
      faults.by_name[faults.names++] = call_count{name, 0};
    if (i < faults.names) faults.by_name[i].count++;
  }
  for (int i = 0; i < faults.count; i++) {
    fault &f = faults.list[i];
    if (f.kind < 0 ? name && !strcmp(f.name, name) : f.kind == kind || (f.kind == kind_any && name)) {
      const cudaError_t e = strike(&f, name);
      if (!result) result = e;
    }
  }
  pthread_mutex_unlock(&faults.mutex);
  return result;
}

CUDA_CPU_RARE void arm_faults() {
  pthread_mutex_lock(&faults.mutex);
  if (!faults.armed) {
    const char *e = getenv("GPUKIT_CPU_FAIL");
    set_faults(e, "GPUKIT_CPU_FAIL");
    __atomic_store_n(&faults.armed, e && *e ? 2 : 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&faults.mutex);
}

inline cudaError_t injected(const char *name) {
  const int armed = __atomic_load_n(&faults.armed, __ATOMIC_ACQUIRE);
  if (armed == 1) return cudaSuccess;
  if (!armed) arm_faults();
  return __atomic_load_n(&faults.armed, __ATOMIC_ACQUIRE) == 2 ? count_call(name) : cudaSuccess;
}

} // namespace cuda_cpu

CUDA_CPU_ENTRY void cuda_cpu_fail(const char *specification) {
  pthread_mutex_lock(&cuda_cpu::faults.mutex);
  cuda_cpu::set_faults(specification, "cuda_cpu_fail");
  __atomic_store_n(&cuda_cpu::faults.armed, 2, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&cuda_cpu::faults.mutex);
}
CUDA_CPU_ENTRY unsigned long long cuda_cpu_calls(const char *what) {
  cuda_cpu::fault_state &f = cuda_cpu::faults;
  unsigned long long count = 0;
  pthread_mutex_lock(&f.mutex);
  for (int i = 0; i < cuda_cpu::kinds; i++)
    if (!strcmp(what, cuda_cpu::kind_names[i])) count = f.by_kind[i];
  for (int i = 0; i < f.names; i++)
    if (!strcmp(what, f.by_name[i].name)) count = f.by_name[i].count;
  pthread_mutex_unlock(&f.mutex);
  return count;
}
