/* Whether the test runs on the stand-in for CUDA, for what both can compile. */
#ifndef ON_CPU_H
#define ON_CPU_H

#include <cuda_runtime.h>

#ifdef CUDA_ON_CPU
static const bool on_cpu = true;
#else
static const bool on_cpu = false;
#endif

#endif
