/* For tests of programs on the stand-in, and of the stand-in itself: failures, the order of threads, what is held, races
 * and counters. */
#pragma once
#pragma GCC system_header

#include <stddef.h>
#include "common.h"

/* Replaces what GPUKIT_CPU_FAIL or the last call said (host/injected_failures.h), and counts from here on. NULL: nothing
 * fails. */
void cuda_cpu_fail(const char *specification);
/* How many calls of a kind, or of one name, there have been since cuda_cpu_fail. */
unsigned long long cuda_cpu_calls(const char *what);
/* How many allocations, events and streams there are. */
size_t cuda_cpu_held();

namespace cuda_cpu {

enum schedule { schedule_forward, schedule_reversed, schedule_random };
struct settings {
  enum schedule schedule;
  unsigned long long seed;
  int workers;
  int watchdog_seconds; /* 0: none */
  bool exited_arrives;  /* a thread that has returned counts as arrived at barriers and in masks, as on sm_70 and up */
};
/* What the environment asks for, for the next launch. */
settings *configure();
/* "forward", "reversed", "random:SEED"; false: none of these */
bool set_schedule(settings *s, const char *text);

} // namespace cuda_cpu

#ifdef CUDA_CPU_TRACE
/* How many accesses have raced so far; forgets them. */
unsigned long long cuda_cpu_take_races();

/* What a profiler counts (run/counters.h), in warps' requests and branches. */
struct cuda_cpu_counters {
  unsigned long long launches, threads, warps;
  unsigned long long global_loads, global_load_sectors, global_stores, global_store_sectors;
  unsigned long long shared_loads, shared_load_passes, shared_stores, shared_store_passes;
  unsigned long long global_atomics, shared_atomics; /* of single threads */
  unsigned long long branches, divergent_branches, diverged_warps;
  unsigned long long not_counted; /* accesses of threads that made more than 2^20 between two barriers */
};
/* Counts from now on, or no longer. */
void cuda_cpu_count(bool on);
/* All kernels since the last call. */
cuda_cpu_counters cuda_cpu_take_counters();

namespace cuda_cpu {
/* Accesses of these bytes will be looked at. */
void trace_register(const void *start, size_t bytes, bool shared);
} // namespace cuda_cpu
#endif
