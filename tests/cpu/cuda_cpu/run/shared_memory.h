/* Shared memory of a block. Static variables are thread-local ones of the worker; dynamic shared memory is one buffer
 * for each worker, of which only the bytes that the launch asked for may be touched under ASan.
 *
 * Both are poisoned for each block: of the static variables those that the kernel declares. It is not known which others
 * its functions use: those that a look after a block finds changed (at a few of their words) are poisoned again, then and
 * after each further block of the launch. The first blocks of a launch, each 16th and the last one end with such a
 * look. */
#pragma once
#pragma GCC system_header

#include "block.h"
#include "crash.h"
#include "symbols.h"

namespace cuda_cpu {

/* A NaN in every floating-point type, and an unlikely number in every other. */
const uint64_t poison_pattern = 0x7fff7fff7fff7fff;

CUDA_CPU_QUIET void poison(void *p, size_t bytes) {
  char *c = static_cast<char *>(p);
  for (; bytes >= 8; c += 8, bytes -= 8) memcpy(c, &poison_pattern, 8);
  memcpy(c, &poison_pattern, bytes);
}

CUDA_CPU_QUIET bool shared_changed(const shared_variable &v) {
  const char *p = shared_address(v);
  size_t words = v.size / 8, step = words / 8 + 1;
  for (size_t i = 0; i < words; i += step)
    if (memcmp(p + 8 * i, &poison_pattern, 8)) return true;
  if (words && memcmp(p + 8 * (words - 1), &poison_pattern, 8)) return true;
  return memcmp(p + 8 * words, &poison_pattern, v.size % 8) != 0;
}

CUDA_CPU_QUIET void shared_use(worker *w, int i) {
  if (w->shared_used[i]) return;
  w->shared_used[i] = true;
  w->shared_list[w->shared_count++] = i;
}

CUDA_CPU_QUIET void shared_look(worker *w) {
  const symbol_table *t = symbols();
  for (int i = 0; i < t->shared_count; i++)
    if (!w->shared_used[i] && shared_changed(t->shared[i])) {
      shared_use(w, i);
      poison(shared_address(t->shared[i]), t->shared[i].size);
    }
}

CUDA_CPU_QUIET void shared_begin(worker *w, const launch *job) {
  const symbol_table *t = symbols();
  if (!w->shared) {
    void *p = mmap(nullptr, 4096 + shared_capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    w->shared_used = static_cast<bool *>(calloc(static_cast<size_t>(t->shared_count) + 1, sizeof(bool)));
    w->shared_list = static_cast<int *>(calloc(static_cast<size_t>(t->shared_count) + 1, sizeof(int)));
    if (p == MAP_FAILED || !w->shared_used || !w->shared_list) {
      fprintf(stderr, "CUDA stand-in: no memory for shared memory\n");
      abort();
    }
    w->shared = static_cast<char *>(p) + 4096; /* the memory before it is not used */
    for (int i = 0; i < t->shared_count; i++) poison(shared_address(t->shared[i]), t->shared[i].size);
    fence_shared(w, true);
  }
  w->blocks_run = 0;
  auto &own = w->shared_own[reinterpret_cast<uintptr_t>(job->kernel) / 16 % 64];
  if (own.kernel != job->kernel) {
    free(own.list.indices);
    own.list = shared_of(job->kernel);
    own.kernel = job->kernel;
  }
  for (int i = 0; i < own.list.count; i++) shared_use(w, own.list.indices[i]);
#ifdef CUDA_CPU_ASAN
  __asan_unpoison_memory_region(w->shared, shared_capacity);
  __asan_poison_memory_region(w->shared + job->shared_bytes, shared_capacity - job->shared_bytes);
#endif
}

CUDA_CPU_QUIET void shared_before_block(worker *w, const launch *job) { poison(w->shared, job->shared_bytes); }

CUDA_CPU_QUIET void shared_after_block(worker *w) {
  const symbol_table *t = symbols();
  for (int i = 0; i < w->shared_count; i++) {
    const shared_variable &v = t->shared[w->shared_list[i]];
    poison(shared_address(v), v.size);
  }
  if (w->blocks_run < 4 || w->blocks_run % 16 == 0) shared_look(w);
  w->blocks_run++;
}

CUDA_CPU_QUIET void shared_end(worker *w) {
  if (w->blocks_run) shared_look(w);
  while (w->shared_count) w->shared_used[w->shared_list[--w->shared_count]] = false;
}

/* Of a worker that ends. */
CUDA_CPU_QUIET void shared_drop(worker *w) {
  if (!w->shared) return;
#ifdef CUDA_CPU_ASAN
  __asan_unpoison_memory_region(w->shared, shared_capacity);
#endif
  fence_shared(w, false);
  munmap(w->shared - 4096, 4096 + shared_capacity);
  free(w->shared_used);
  free(w->shared_list);
  for (auto &own : w->shared_own) free(own.list.indices);
}

} // namespace cuda_cpu
