/* The barrier of a cooperative launch. Inside a block it is one more barrier for the block's fibers; the last of them to
 * arrive then blocks the OS thread, of which such a launch has one for each block, until every block has arrived. */
#pragma once
#pragma GCC system_header

#include <pthread.h>
#include "block.h"

#define CUDA_CPU_COOPERATIVE __attribute__((noinline, cold)) CUDA_CPU_QUIET /* no part of the ordinary path */

namespace cuda_cpu {

enum block_state : unsigned char { block_runs, block_waits, block_has_returned };

struct grid_barrier {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  unsigned long long blocks, waiting, returned, generation;
  unsigned long long first; /* of the waiting blocks, once it is known that they wait in vain */
  bool open, stuck, cannot_start;
  block_state states[1]; /* of all blocks, in order */
};

CUDA_CPU_COOPERATIVE grid_barrier *grid_create(unsigned long long blocks) {
  grid_barrier *g = static_cast<grid_barrier *>(calloc(1, sizeof(grid_barrier) + blocks));
  if (!g) {
    fprintf(stderr, "CUDA stand-in: no memory for a cooperative launch\n");
    abort();
  }
  pthread_mutex_init(&g->mutex, nullptr);
  pthread_cond_init(&g->changed, nullptr);
  g->blocks = blocks;
  return g;
}
/* False: there were not enough OS threads to start it. */
CUDA_CPU_COOPERATIVE bool grid_destroy(grid_barrier *g) {
  const bool started = !g->cannot_start;
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->mutex);
  free(g);
  return started;
}

/* Blocks start when it is clear that all of them can. */
CUDA_CPU_COOPERATIVE void grid_open(grid_barrier *g) {
  pthread_mutex_lock(&g->mutex);
  g->open = true;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->mutex);
}
CUDA_CPU_COOPERATIVE bool grid_start(grid_barrier *g) {
  pthread_mutex_lock(&g->mutex);
  while (!g->open) pthread_cond_wait(&g->changed, &g->mutex);
  pthread_mutex_unlock(&g->mutex);
  return !g->cannot_start;
}

/* With the mutex held. A block that has returned will not come to the barrier any more. */
CUDA_CPU_COOPERATIVE void grid_look(grid_barrier *g) {
  if (!g->waiting || !g->returned || g->waiting + g->returned < g->blocks) return;
  g->stuck = true;
  for (g->first = 0; g->states[g->first] != block_waits;) g->first++;
  pthread_cond_broadcast(&g->changed);
}

CUDA_CPU_COLD void report_absent_blocks(worker *w, const grid_barrier *g) {
  text what = {};
  unsigned long long gone = 0;
  while (g->states[gone] != block_has_returned) gone++;
  const dim3 &grid = w->job->grid;
  add(&what, "divergent threads: no thread can go on\n    ");
  add_thread(&what, w, 0);
  if (w->count > 1) add(&what, " and %d more", w->count - 1);
  if (g->waiting > 1) add(&what, ", and those of %llu more blocks,", g->waiting - 1);
  add(&what, w->count > 1 || g->waiting > 1 ? " wait" : " waits");
  add(&what, " at %s, %s:%d", operation_name(op_grid_sync), w->barrier.file, w->barrier.line);
  add(&what, "\n    block (%llu,%llu,%llu)", gone % grid.x, gone / grid.x % grid.y, gone / grid.x / grid.y);
  if (g->returned > 1) add(&what, " and %llu more", g->returned - 1);
  add(&what, g->returned > 1 ? " have returned" : " has returned");
  fail(w, &what);
}

CUDA_CPU_COOPERATIVE void grid_arrive(worker *w) {
  grid_barrier *g = w->job->cooperative;
  const dim3 &grid = w->job->grid;
  unsigned long long rank = blockIdx.x + grid.x * (blockIdx.y + static_cast<unsigned long long>(grid.y) * blockIdx.z);
  trace_give_turn();
  pthread_mutex_lock(&g->mutex);
  unsigned long long generation = g->generation;
  g->states[rank] = block_waits;
  if (++g->waiting == g->blocks) {
    memset(g->states, block_runs, g->blocks);
    g->waiting = 0;
    g->generation++;
    pthread_cond_broadcast(&g->changed);
  } else
    grid_look(g);
  while (generation == g->generation && !(g->stuck && g->first == rank) &&
         !__atomic_load_n(&w->job->failed, __ATOMIC_RELAXED))
    pthread_cond_wait(&g->changed, &g->mutex);
  bool released = generation != g->generation, stuck = g->stuck && g->first == rank;
  pthread_mutex_unlock(&g->mutex);
  trace_take_turn();
  if (released) return trace_grid_barrier();
  if (stuck) report_absent_blocks(w, g);
  abandon(w);
}

/* The block has returned, or has failed and lets those know that wait for it. */
CUDA_CPU_COOPERATIVE void grid_leave(const launch *job, unsigned long long rank) {
  grid_barrier *g = job->cooperative;
  pthread_mutex_lock(&g->mutex);
  g->states[rank] = block_has_returned;
  g->returned++;
  if (__atomic_load_n(&job->failed, __ATOMIC_RELAXED))
    pthread_cond_broadcast(&g->changed);
  else
    grid_look(g);
  pthread_mutex_unlock(&g->mutex);
}

CUDA_CPU_UNTRACED CUDA_CPU_ENTRY bool in_cooperative_launch() { return this_worker()->job->cooperative; }

/* Of the running thread's grid. */
CUDA_CPU_UNTRACED CUDA_CPU_ENTRY void grid_sync(const char *file, int line) {
  in_kernel(operation_name(op_grid_sync));
  if (!in_cooperative_launch())
    fail_thread(": %s, %s:%d, in a launch that is not cooperative", operation_name(op_grid_sync), file, line);
  barrier(op_grid_sync, 0, file, line);
}

} // namespace cuda_cpu
