/* What is said when the program ends: what it still holds (GPUKIT_CPU_LEAKS=1), counters and races. */
#pragma once
#pragma GCC system_header

#include "../run/counters.h"
#include "memory.h"

namespace cuda_cpu {

inline const char *const held_names[] = {"stream", "event", "graph", "executable graph", "memory pool"};

struct held {
  const void *p;
  held_kind kind;
  int device;
  unsigned long long number; /* of its kind, from 1 */
  const char *call;
};
struct held_table {
  pthread_mutex_t mutex;
  held *list;
  size_t count, capacity;
  unsigned long long made[held_kinds];
};
inline held_table held_now = {PTHREAD_MUTEX_INITIALIZER, nullptr, 0, 0, {}};

inline bool leaks_wanted() {
  static const bool wanted = [] {
    const char *e = getenv("GPUKIT_CPU_LEAKS");
    return e && *e && strcmp(e, "0") != 0;
  }();
  return wanted;
}

CUDA_CPU_ENTRY void hold(const void *p, held_kind kind, int device) {
  if (!leaks_wanted()) return;
  pthread_mutex_lock(&held_now.mutex);
  if (held_now.count == held_now.capacity) {
    const size_t capacity = held_now.capacity * 2 + 64;
    if (void *more = realloc(held_now.list, capacity * sizeof(held))) {
      held_now.list = static_cast<held *>(more);
      held_now.capacity = capacity;
    }
  }
  held_now.made[kind]++;
  if (held_now.count < held_now.capacity)
    held_now.list[held_now.count++] = held{p, kind, device, held_now.made[kind], call_name};
  pthread_mutex_unlock(&held_now.mutex);
}

CUDA_CPU_ENTRY void let_go(const void *p) {
  if (!leaks_wanted()) return;
  pthread_mutex_lock(&held_now.mutex);
  size_t i = held_now.count;
  while (i && held_now.list[i - 1].p != p) i--;
  if (i) {
    memmove(held_now.list + i - 1, held_now.list + i, (held_now.count - i) * sizeof(held));
    held_now.count--;
  }
  pthread_mutex_unlock(&held_now.mutex);
}

/* A pool that holds no memory is none: programs keep one for the next allocation. */
inline bool is_leak(const held &h) { return h.kind != held_pool || static_cast<const CUmemPoolHandle_st *>(h.p)->used; }
CUDA_CPU_RARE void list_leaks() {
  if (!leaks_wanted()) return;
  size_t count = 0, bytes = 0;
  for (size_t i = 0; i < held_now.count; i++) count += is_leak(held_now.list[i]);
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
    if (!is_leak(h)) continue;
    fprintf(stderr, "  %s %llu at %p, by %s", held_names[h.kind], h.number, h.p, h.call);
    fprintf(stderr, device_count() > 1 ? ", device %d\n" : "\n", h.device);
  }
}

CUDA_CPU_RARE void list_unattended() {
  if (!leaks_wanted()) return;
  const unattended &u = unattended_now;
  char name[512];
  if (u.failed) {
    symbol_name(u.failed, name, sizeof name);
    fprintf(
        stderr,
        "CUDA stand-in: kernel %s did not run, grid (%u,%u,%u), block (%u,%u,%u): %s, and nothing has asked for it\n"
        "  with cudaGetLastError(). ",
        name, u.grid.x, u.grid.y, u.grid.z, u.block.x, u.block.y, u.block.z, cudaGetErrorName(u.error));
    if (u.shared)
      fprintf(stderr,
              "%zu bytes of dynamic shared memory: more than %zu of a block, together with its __shared__\n"
              "  variables, need cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), and "
              "this\n"
              "  device has %zu\n",
              u.shared, shared_default, gpu().shared_optin);
    else
      fputs("A block has 1 to 1024 threads, a grid at least a block, 65535 of them in y and z\n", stderr);
  }
  if (u.kernel) {
    symbol_name(u.kernel, name, sizeof name);
    fprintf(stderr,
            "CUDA stand-in: the program ends without having waited for kernel %s: on a GPU its results and its printf\n"
            "  may be missing. cudaDeviceSynchronize() waits\n",
            name);
  }
}

/* After all destructors of the program's own objects. */
__attribute__((used, destructor, cold)) inline void end_of_program() {
  static bool ended; /* several files of the program may have this */
  if (ended) return;
  ended = true;
#ifdef CUDA_CPU_TRACE
  list_counters();
  list_races();
#endif
  list_unattended();
  list_leaks();
#ifdef CUDA_CPU_ASAN
  fflush(nullptr); /* a leak that ASan finds ends the program before stdio does this */
#endif
}

} // namespace cuda_cpu

CUDA_CPU_ENTRY size_t cuda_cpu_held() {
  cuda_cpu::locked lock;
  size_t held = cuda_cpu::ctx.allocation_count;
  for (const CUevent_st *e = cuda_cpu::ctx.events; e; e = e->next) held++;
  for (const CUstream_st *s = cuda_cpu::ctx.streams; s; s = s->next) held++;
  return held;
}
