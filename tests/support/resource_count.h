/* What a program on the stand-in holds. */
#ifndef RESOURCE_COUNT_H
#define RESOURCE_COUNT_H

#include <cuda_runtime.h>

#ifdef CUDA_ON_CPU
/* Allocations, events and streams, when nothing else runs. */
inline size_t held_now() { return cuda_cpu_held(); }
#endif

#endif
