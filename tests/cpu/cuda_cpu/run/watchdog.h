/* A launch in which no thread starts, returns or gets past a barrier for some seconds: which threads run, and at which
 * lines. They may compute for that long, or wait for what no running thread will write: so it is said once, and the
 * launch goes on. */
#pragma once
#pragma GCC system_header

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include "block.h"
#include "places.h"

namespace cuda_cpu {

const int looks_per_second = 4;

struct watchdog {
  int patience;      /* seconds */
  int looks;         /* without progress */
  uint64_t progress; /* a hash */
};

CUDA_CPU_RARE uint64_t progress_of(const worker *w) {
  const uint64_t started = static_cast<unsigned>(w->started), live = static_cast<unsigned>(w->live);
  return started << 44 ^ live << 32 ^ w->meetings;
}

struct standing { /* where a worker is */
  uint3 block, thread;
  call_places calls;
  int known;
};
inline standing the_standing;

/* In the worker. By SIGURG, since programs that do not know it ignore it. */
CUDA_CPU_UNTRACED CUDA_CPU_RARE void tell_standing(int) {
  the_standing.block = blockIdx;
  the_standing.thread = threadIdx;
  note_calls(&the_standing.calls);
  __atomic_store_n(&the_standing.known, 1, __ATOMIC_RELEASE);
}

CUDA_CPU_RARE void add_standing(text *what, pthread_t worker_thread, const launch *job) {
  struct sigaction action = {}, before;
  const timespec pause = {0, 1000000};
  text where = {};
  action.sa_handler = tell_standing;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(SIGURG, &action, &before);
  for (int tries = 0; tries < 50 && !where.length; tries++) { /* none is known where fibers are switched */
    __atomic_store_n(&the_standing.known, 0, __ATOMIC_RELEASE);
    pthread_kill(worker_thread, SIGURG);
    for (int i = 0; i < 100 && !__atomic_load_n(&the_standing.known, __ATOMIC_ACQUIRE); i++) nanosleep(&pause, nullptr);
    if (__atomic_load_n(&the_standing.known, __ATOMIC_ACQUIRE)) add_kernel_line(&where, job, the_standing.calls, "", 0);
  }
  sigaction(SIGURG, &before, nullptr);
  const uint3 b = the_standing.block, t = the_standing.thread;
  add(what, "\n    block (%u,%u,%u) thread (%u,%u,%u) is%s", b.x, b.y, b.z, t.x, t.y, t.z,
      where.length ? where.buffer + 8 : " at an unknown line"); /* ", called" */
}

CUDA_CPU_RARE void report_standing(const text *standing, const watchdog *dog, const launch *job) {
  char name[512];
  symbol_name(job->kernel, name, sizeof name);
  fprintf(stderr,
          "CUDA stand-in: for %d s no thread has returned or got past a barrier in kernel %s%s\n"
          "  If it waits there for what another thread writes: only barriers, atomics, fences, __ldcv and __nanosleep\n"
          "  let other threads of its block run, and at most 256 blocks run at once. (GPUKIT_CPU_WATCHDOG=SECONDS, 0 "
          "for never)\n",
          dog->patience, name, standing->buffer);
}

} // namespace cuda_cpu
