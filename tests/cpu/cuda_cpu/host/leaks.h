/* What the program still holds at its end, for GPUKIT_CPU_LEAKS=1: streams, events, graphs and pools. Allocations are
 * in the table that all calls use. */
#ifndef CUDA_CPU_HELD_H
#define CUDA_CPU_HELD_H
#pragma GCC system_header

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "../run/symbols.h"

namespace cuda_cpu {

enum held_kind { held_stream, held_event, held_graph, held_exec, held_pool, held_kinds };
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

CUDA_CPU_RARE void hold(const void *p, held_kind kind, int device, const char *call) {
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
    held_now.list[held_now.count++] = held{p, kind, device, held_now.made[kind], call};
  pthread_mutex_unlock(&held_now.mutex);
}

CUDA_CPU_RARE void let_go(const void *p) {
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

} // namespace cuda_cpu
#endif
