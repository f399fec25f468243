/* What a program on the stand-in holds. */
#ifndef RESOURCE_COUNT_H
#define RESOURCE_COUNT_H

#include <cuda_runtime.h>

#ifdef CUDA_ON_CPU
/* Allocations, events and streams, when nothing else runs. */
inline size_t held_now() {
  cuda_cpu::locked lock;
  size_t held = cuda_cpu::ctx.allocation_count;
  for (const CUevent_st *e = cuda_cpu::ctx.events; e; e = e->next) held++;
  for (const CUstream_st *s = cuda_cpu::ctx.streams; s; s = s->next) held++;
  return held;
}
#endif

#endif
