/* A launch: blocks are taken in order by worker threads, one worker for each core, or more if blocks wait for later ones.
 * The thread that launches only waits, so that kernels see none of its thread-local variables, `__shared__` ones
 * included. */
#pragma once
#pragma GCC system_header

#include <pthread.h>
#include <time.h>
#include "block.h"
#include "grid_barrier.h"
#include "crash.h"
#include "shared_memory.h"
#include "counters.h"
#include "watchdog.h"
#include "races.h"

namespace cuda_cpu {

const int max_workers = 16;                   /* by the number of cores */
const int most_workers = 256;                 /* where blocks wait for later ones */
const unsigned long long small_launch = 4096; /* threads: fewer stay on one worker, waking another would take longer */

struct pool_worker {
  pthread_cond_t wake;
  int has_job, sleeping;
  bool started;
  worker *state;
  pthread_t thread;
};
struct pool {
  pthread_mutex_t lock;  /* of a launch: one at a time */
  pthread_mutex_t mutex; /* of the fields below */
  pthread_cond_t done;
  launch *job;
  int busy;
  unsigned long long launches;
  const void *waiting_kernel; /* the last one with blocks that waited for later ones */
  bool configured;
  cuda_cpu::settings settings;
  pool_worker workers[most_workers];
};
inline pool the_pool = {PTHREAD_MUTEX_INITIALIZER,
                        PTHREAD_MUTEX_INITIALIZER,
                        PTHREAD_COND_INITIALIZER,
                        nullptr,
                        0,
                        0,
                        nullptr,
                        false,
                        {},
                        {}};

CUDA_CPU_QUIET void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

CUDA_CPU_UNTRACED CUDA_CPU_ENTRY bool set_schedule(settings *s, const char *text) {
  s->seed = 0;
  if (!strcmp(text, "forward"))
    s->schedule = schedule_forward;
  else if (!strcmp(text, "reversed"))
    s->schedule = schedule_reversed;
  else if (!strncmp(text, "random:", 7)) {
    s->schedule = schedule_random;
    s->seed = strtoull(text + 7, nullptr, 0);
  } else
    return false;
  return true;
}

/* The environment is read at the first use. */
CUDA_CPU_UNTRACED CUDA_CPU_ENTRY settings *configure() {
  pool &p = the_pool;
  if (p.configured) return &p.settings;
  settings s = {};
  const char *e = getenv("GPUKIT_CPU_SCHEDULE");
  char chosen[40];
  if (e && !strcmp(e, "random")) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(chosen, sizeof chosen, "random:%ld", (now.tv_sec * 1000 + now.tv_nsec / 1000000) % 1000000);
    fprintf(stderr, "CUDA stand-in: GPUKIT_CPU_SCHEDULE=%s\n", e = chosen);
  }
  if (e && *e && !set_schedule(&s, e)) {
    fprintf(stderr, "CUDA stand-in: GPUKIT_CPU_SCHEDULE=%s is none of forward, reversed, random, random:SEED\n", e);
    abort();
  }
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  e = getenv("GPUKIT_CPU_THREADS");
  if (e && *e) cores = strtol(e, nullptr, 0);
#ifdef CUDA_CPU_TRACE
  cores = 1; /* the checker's shadow of memory has no locks */
#endif
  s.workers = static_cast<int>(cores < 1 ? 1 : cores > max_workers ? max_workers : cores);
  e = getenv("GPUKIT_CPU_EXITED");
  s.exited_arrives = e && !strcmp(e, "arrived");
  e = getenv("GPUKIT_CPU_WATCHDOG");
  s.watchdog_seconds = e && *e ? atoi(e) : 10;
  p.settings = s;
  p.configured = true;
  return &p.settings;
}

CUDA_CPU_QUIET uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* The k-th block to run: a permutation of 0 .. blocks-1 (a few Feistel rounds, walked until inside). */
CUDA_CPU_QUIET unsigned long long block_in_order(const settings &s, const launch *job, unsigned long long k) {
  if (s.schedule == schedule_forward) return k;
  if (s.schedule == schedule_reversed) return job->blocks - 1 - k;
  int half = 1;
  while (half < 32 && job->blocks >> (2 * half)) half++;
  uint64_t mask = (1ull << half) - 1;
  do {
    uint64_t left = k >> half, right = k & mask;
    for (uint64_t round = 0; round < 4; round++) {
      uint64_t next = left ^ (mix(right + (round << 40) + s.seed * 0x9e3779b97f4a7c15u + job->number) & mask);
      left = right;
      right = next;
    }
    k = left << half | right;
  } while (k >= job->blocks);
  return k;
}

CUDA_CPU_QUIET void run_blocks(worker *w, launch *job) {
  w->settings = the_pool.settings;
  trace_take_turn();
  shared_begin(w, job);
  trace_worker(w);
  for (;;) {
    unsigned long long k = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
    if (k >= job->blocks || __atomic_load_n(&job->failed, __ATOMIC_RELAXED)) break;
    unsigned long long b = block_in_order(w->settings, job, k), row = b / job->grid.x;
    uint3 index = {static_cast<unsigned>(b % job->grid.x), static_cast<unsigned>(row % job->grid.y),
                   static_cast<unsigned>(row / job->grid.y)};
    shared_before_block(w, job);
    trace_block(w, job, index);
    run_block(w, job, index, mix(w->settings.seed + mix(b + job->number * 0x9e3779b97f4a7c15u)));
    trace_block_end();
    shared_after_block(w);
    if (job->cooperative) grid_leave(job, b);
  }
  shared_end(w);
  trace_give_turn();
}

CUDA_CPU_QUIET worker *make_worker() {
  worker *w = static_cast<worker *>(calloc(1, sizeof(worker)));
  if (w) w->fibers = static_cast<fiber **>(calloc(1025, sizeof(fiber *)));
  if (!w || !w->fibers) {
    fprintf(stderr, "CUDA stand-in: no memory for a worker\n");
    abort();
  }
  self = w;
  watch_signals_of_worker();
  return w;
}

CUDA_CPU_QUIET void finish_job(pool_worker &me) {
  pool &p = the_pool;
  __atomic_store_n(&me.has_job, 0, __ATOMIC_RELAXED);
  if (__atomic_sub_fetch(&p.busy, 1, __ATOMIC_ACQ_REL) == 0) {
    pthread_mutex_lock(&p.mutex);
    pthread_cond_signal(&p.done);
    pthread_mutex_unlock(&p.mutex);
  }
}

/* An OS thread for one block of a cooperative launch. */
CUDA_CPU_QUIET void *cooperate(void *place) {
  pool &p = the_pool;
  pool_worker &me = *static_cast<pool_worker *>(place);
  launch *job = p.job;
  if (!grid_start(job->cooperative)) return nullptr;
  worker *w = make_worker();
  pthread_mutex_lock(&p.mutex); /* the watchdog looks at it */
  me.state = w;
  pthread_mutex_unlock(&p.mutex);
  run_blocks(w, job);
  pthread_mutex_lock(&p.mutex);
  me.state = nullptr;
  pthread_mutex_unlock(&p.mutex);
  finish_job(me);
  for (int i = 0; i < w->fibers_made; i++) fiber_release(w->fibers[i]);
  trace_drop(w);
  shared_drop(w);
  free(w->fibers);
  free(w);
  return nullptr;
}

CUDA_CPU_QUIET void *work(void *number) {
  pool &p = the_pool;
  pool_worker &me = p.workers[reinterpret_cast<intptr_t>(number)];
  worker *w = make_worker();
  me.state = w;
  for (;;) {
    for (int i = 0; i < 2000 && !__atomic_load_n(&me.has_job, __ATOMIC_ACQUIRE); i++) pause_cpu();
    if (!__atomic_load_n(&me.has_job, __ATOMIC_ACQUIRE)) {
      pthread_mutex_lock(&p.mutex);
      me.sleeping = 1;
      while (!me.has_job) pthread_cond_wait(&me.wake, &p.mutex);
      me.sleeping = 0;
      pthread_mutex_unlock(&p.mutex);
    }
    run_blocks(w, p.job);
    finish_job(me);
  }
  return nullptr;
}

/* With p.mutex held. False: the system gives no thread. */
CUDA_CPU_QUIET bool start_worker(int number) {
  pool_worker &it = the_pool.workers[number];
  __atomic_store_n(&it.has_job, 1, __ATOMIC_RELEASE);
  if (it.started) {
    if (it.sleeping) pthread_cond_signal(&it.wake);
    return true;
  }
  pthread_cond_init(&it.wake, nullptr);
  if (pthread_create(&it.thread, nullptr, work, reinterpret_cast<void *>(static_cast<intptr_t>(number)))) {
    it.has_job = 0;
    return false;
  }
  pthread_detach(it.thread);
  return it.started = true;
}

/* With p.mutex held: a worker for each block that has not begun, which may be what the running ones wait for. Later
 * launches of this kernel begin with as many. Returns how many workers there are. */
CUDA_CPU_RARE int add_workers(const launch *job, int count) {
  pool &p = the_pool;
  const unsigned long long begun = __atomic_load_n(&job->next, __ATOMIC_RELAXED);
  if (job->cooperative || begun >= job->blocks) return count;
  p.waiting_kernel = job->kernel;
  for (unsigned long long left = job->blocks - begun; left && count < most_workers; left--, count++) {
    __atomic_add_fetch(&p.busy, 1, __ATOMIC_RELAXED);
    if (start_worker(count)) continue;
    __atomic_sub_fetch(&p.busy, 1, __ATOMIC_RELAXED);
    break;
  }
  return count;
}

/* Called looks_per_second times a second while a launch runs. */
CUDA_CPU_RARE void watch(watchdog *dog, const launch *job, const pool_worker *workers, int *workers_now) {
  const int count = *workers_now;
  uint64_t progress = __atomic_load_n(&job->next, __ATOMIC_RELAXED);
  for (int i = 0; i < count; i++)
    if (const worker *w = workers[i].state) progress = mix(progress + progress_of(w));
  dog->looks = progress == dog->progress ? dog->looks + 1 : 0;
  dog->progress = progress;
  if (dog->looks == looks_per_second / 2) *workers_now = add_workers(job, count);
  if (!dog->patience || dog->looks != dog->patience * looks_per_second) return;
  text what = {};
  for (int i = 0, said = 0; i < count && said < 12; i++)
    if (__atomic_load_n(&workers[i].has_job, __ATOMIC_ACQUIRE)) {
      add_standing(&what, workers[i].thread, job);
      said++;
    }
  report_standing(&what, dog, job);
}

/* With p.mutex held: until all of these have finished. */
CUDA_CPU_QUIET void wait_for_workers(const launch *job, const pool_worker *workers, int count) {
  pool &p = the_pool;
  watchdog dog = {p.settings.watchdog_seconds, 0, 0};
  while (__atomic_load_n(&p.busy, __ATOMIC_ACQUIRE)) {
    timespec next_look;
    clock_gettime(CLOCK_REALTIME, &next_look);
    next_look.tv_nsec += 1000000000 / looks_per_second;
    next_look.tv_sec += next_look.tv_nsec / 1000000000;
    next_look.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&p.done, &p.mutex, &next_look) == ETIMEDOUT) watch(&dog, job, workers, &count);
  }
}

/* All blocks at once, each on an OS thread of its own, since each has to be able to wait for every other one. */
CUDA_CPU_COOPERATIVE void run_cooperative(launch *job) {
  pool &p = the_pool;
  grid_barrier *g = job->cooperative;
  pool_worker *workers = static_cast<pool_worker *>(calloc(job->blocks, sizeof(pool_worker)));
  unsigned long long made = 0;
  p.job = job;
  while (workers && made < job->blocks) {
    workers[made].has_job = 1;
    if (pthread_create(&workers[made].thread, nullptr, cooperate, &workers[made])) break;
    made++;
  }
  g->cannot_start = made < job->blocks;
  if (g->cannot_start)
    fprintf(stderr,
            "CUDA stand-in: the system gives %llu of the %llu OS threads for the blocks of a cooperative launch\n",
            made, job->blocks);
  pthread_mutex_lock(&p.mutex);
  p.busy = g->cannot_start ? 0 : static_cast<int>(made);
  grid_open(g);
  wait_for_workers(job, workers, static_cast<int>(made));
  pthread_mutex_unlock(&p.mutex);
  for (unsigned long long i = 0; i < made; i++) pthread_join(workers[i].thread, nullptr);
  free(workers);
}

/* Runs all blocks; job->failed if the kernel failed. */
CUDA_CPU_QUIET void run(launch *job) {
  pool &p = the_pool;
  pthread_mutex_lock(&p.lock);
  configure();
  symbols();
  job->number = p.launches++;
  trace_launch(job);
  if (job->cooperative && job->blocks > 1) {
    run_cooperative(job);
    pthread_mutex_unlock(&p.lock);
    return;
  }
  unsigned long long threads = job->blocks * job->block.x * job->block.y * job->block.z;
  int workers = p.settings.workers;
  if (threads < small_launch) workers = 1;
  if (job->kernel == p.waiting_kernel) workers = most_workers;
  if (static_cast<unsigned long long>(workers) > job->blocks) workers = static_cast<int>(job->blocks);
  pthread_mutex_lock(&p.mutex);
  p.job = job;
  p.busy = workers;
  for (int i = 0; i < workers; i++)
    if (!start_worker(i)) {
      fprintf(stderr, "CUDA stand-in: cannot start a worker thread\n");
      abort();
    }
  pthread_mutex_unlock(&p.mutex);
  for (int i = 0; i < 500 && __atomic_load_n(&p.busy, __ATOMIC_ACQUIRE); i++) pause_cpu();
  pthread_mutex_lock(&p.mutex);
  wait_for_workers(job, p.workers, workers);
  pthread_mutex_unlock(&p.mutex);
  pthread_mutex_unlock(&p.lock);
}

} // namespace cuda_cpu
