/* One block at a time on each worker: its threads, the order in which they run, barriers and warp collectives, and what
 * is said when they do not fit together.
 *
 * A runner (a fiber) starts threads one after the other. When a thread has to wait, its runner becomes that thread's
 * fiber, and the switch goes straight to the next thread that can run: a released one, or a new one on another runner.
 * So a kernel without barriers needs one stack, and a barrier costs one switch a thread. */
#pragma once
#pragma GCC system_header

#include <sched.h>
#include <stdarg.h>
#include "../testing.h"
#include "../thread.h"
#include "fiber.h"
#include "symbols.h"

namespace cuda_cpu {

inline const char *operation_name(int op) {
  static const char *const names[] = {
      "__syncthreads",     "__syncthreads_count", "__syncthreads_and", "__syncthreads_or",  "__syncwarp",
      "__shfl_sync",       "__shfl_up_sync",      "__shfl_down_sync",  "__shfl_xor_sync",   "__ballot_sync",
      "__any_sync",        "__all_sync",          "__match_any_sync",  "__match_all_sync",  "__reduce_add_sync",
      "__reduce_min_sync", "__reduce_max_sync",   "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync",
      "__reduce_or_sync",  "__reduce_xor_sync",   "grid_group::sync"};
  return names[op];
}

struct launch {
  void (*call)(const void *closure); /* runs the kernel once, for the current thread */
  const void *closure;
  const void *kernel;
  dim3 grid, block;
  size_t shared_bytes; /* dynamic */
  unsigned long long blocks, next, number;
  int failed;                       /* the error that later calls return */
  struct grid_barrier *cooperative; /* NULL: an ordinary launch */
};

/* A thread that waits for others of its warp, and what it brought along. */
struct waiting {
  uint64_t value;  /* in; ... */
  uint64_t result; /* ... out */
  const char *file;
  int op, line;
  unsigned mask;
  unsigned arg; /* shuffle: source lane, delta or lane mask */
  int width;    /* shuffle */
};

struct rendezvous {
  int op, wide;
  unsigned mask, arrived;
};

struct warp {
  unsigned present, exited;
  bool diverged; /* for counters.h */
  int meetings;
  rendezvous meeting[32];
};

struct tracer;

const int most_places = 48;
struct call_places { /* return addresses, innermost first */
  uintptr_t address[most_places];
  int count;
};

struct worker : running_block {
  cuda_cpu::tracer *tracer; /* of the race checker */
  /* the running block */
  const cuda_cpu::launch *job;
  cuda_cpu::settings settings;
  int count, started, live, current;
  fiber *running;
  fiber *asker; /* wants to know where the fiber that it switches to stands */
  call_places places;
  uint3 next_index; /* of the next thread to start, in order */
  int idle_spins;
  unsigned meetings; /* that threads have got past */
  uint64_t random;
  struct {
    int arrived, op, line, result, accumulated;
    const char *file;
  } barrier;
  unsigned ready_head, ready_count;
  unsigned short ready[1024], order[1024];
  warp warps[32];
  fiber *stands[1024]; /* of each waiting or ready thread */
  waiting threads[1024];
  unsigned short barrier_queue[1024];
  /* what stays */
  fiber main;
  fiber *pool;
  fiber **fibers;
  int fibers_made;
  bool abandoned;
  bool *shared_used;
  int *shared_list, shared_count; /* static variables that the running launch uses */
  struct {
    const void *kernel;
    cuda_cpu::shared_list list;
  } shared_own[64];              /* those that recent kernels declare */
  unsigned long long blocks_run; /* of the running launch */
};

/* NULL outside a kernel */
CUDA_CPU_QUIET worker *this_worker() { return static_cast<worker *>(self); }

/* What the race checker hears of (races.h); in other builds nothing. */
#ifdef CUDA_CPU_TRACE
#define CUDA_CPU_HEARS(...) CUDA_CPU_QUIET void __VA_ARGS__;
#else
#define CUDA_CPU_HEARS(...)                                                                                            \
  inline void __VA_ARGS__ {}
#endif
CUDA_CPU_HEARS(trace_thread(worker *))                      /* another thread runs now */
CUDA_CPU_HEARS(trace_barrier(worker *))                     /* every thread of the block has arrived */
CUDA_CPU_HEARS(trace_warp_barrier(worker *, int, unsigned)) /* these lanes of this warp have */
CUDA_CPU_HEARS(trace_grid_barrier())                        /* every thread of the grid has; once for each block */
CUDA_CPU_HEARS(trace_take_turn()) /* it knows one OS thread: those of a cooperative launch take turns */
CUDA_CPU_HEARS(trace_give_turn())
CUDA_CPU_HEARS(trace_worker(worker *)) /* makes its tracer, before its first launch */
CUDA_CPU_HEARS(trace_drop(worker *))
CUDA_CPU_HEARS(trace_launch(const launch *))
CUDA_CPU_HEARS(trace_block(worker *, const launch *, uint3))
CUDA_CPU_HEARS(trace_block_end())
CUDA_CPU_HEARS(trace_memory(const void *, size_t))      /* an allocation is made */
CUDA_CPU_HEARS(trace_written(const void *, size_t))     /* ... is written from outside kernels */
CUDA_CPU_HEARS(trace_memory_goes(const void *, size_t)) /* ... and freed */
#undef CUDA_CPU_HEARS

/* --- messages --- */

/* Messages are made out of line: their buffer in the frame of a thread that waits would spread the stacks over twice as
 * many pages. */
#define CUDA_CPU_COLD [[noreturn]] CUDA_CPU_UNTRACED __attribute__((noinline, cold)) inline

struct text {
  char buffer[4096];
  size_t length;
};
__attribute__((format(printf, 2, 0))) inline void add_list(text *t, const char *format, va_list args) {
  int n = vsnprintf(t->buffer + t->length, sizeof t->buffer - t->length, format, args);
  t->length += static_cast<size_t>(n);
  if (t->length >= sizeof t->buffer) t->length = sizeof t->buffer - 1;
}
__attribute__((format(printf, 2, 3))) inline void add(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add_list(t, format, args);
  va_end(args);
}

CUDA_CPU_QUIET uint3 thread_index(const dim3 &block, int t) {
  unsigned i = static_cast<unsigned>(t);
  return uint3{i % block.x, i / block.x % block.y, i / block.x / block.y};
}

CUDA_CPU_QUIET void add_thread(text *t, worker *w, int thread) {
  uint3 i = thread_index(w->job->block, thread);
  add(t, "thread (%u,%u,%u)", i.x, i.y, i.z);
}

/* How to have the same order of threads again; nothing in the usual order. */
CUDA_CPU_QUIET void add_schedule(text *t, const settings &s) {
  if (s.schedule == schedule_reversed) add(t, "\n  (GPUKIT_CPU_SCHEDULE=reversed)");
  if (s.schedule == schedule_random) add(t, "\n  (GPUKIT_CPU_SCHEDULE=random:%llu)", s.seed);
}

CUDA_CPU_QUIET void go(worker *w, fiber *to) {
  fiber *from = w->running;
  w->running = to;
  fiber_switch(from, to);
}

/* Ends the launch with a message: its other blocks stop at the next point where they could wait. */
[[noreturn]] CUDA_CPU_QUIET void abandon(worker *w) {
  w->abandoned = true;
  go(w, &w->main);
  __builtin_unreachable();
}
[[noreturn]] CUDA_CPU_QUIET void fail(worker *w, const text *what, int error = cudaErrorLaunchFailure) {
  int before = 0;
  launch *job = const_cast<launch *>(w->job);
  if (__atomic_compare_exchange_n(&job->failed, &before, error, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    char name[512];
    text schedule = {};
    symbol_name(job->kernel, name, sizeof name);
    add_schedule(&schedule, w->settings);
    fprintf(stderr, "CUDA stand-in: error in kernel %s, grid (%u,%u,%u), block (%u,%u,%u)\n  block (%u,%u,%u): %s%s\n",
            name, job->grid.x, job->grid.y, job->grid.z, job->block.x, job->block.y, job->block.z, blockIdx.x,
            blockIdx.y, blockIdx.z, what->buffer, schedule.buffer);
  }
  abandon(w);
}

CUDA_CPU_UNTRACED CUDA_CPU_ENTRY void fail_thread(const char *format, ...) {
  worker *w = this_worker();
  text what = {};
  va_list args;
  add_thread(&what, w, w->current);
  va_start(args, format);
  add_list(&what, format, args);
  va_end(args);
  fail(w, &what);
}

/* What assert() calls when it fails, in glibc and musl: this one comes before theirs. In a kernel it ends the launch, as
 * on a GPU, and not the process. */
#ifdef __linux__
extern "C" [[noreturn]] void cuda_cpu_assert_fail(const char *, const char *, unsigned,
                                                  const char *) asm("__assert_fail");
extern "C" CUDA_CPU_UNTRACED __attribute__((used)) inline void
cuda_cpu_assert_fail(const char *what, const char *file, unsigned line, const char *function) {
  worker *w = this_worker();
  text said = {};
  if (w) {
    add_thread(&said, w, w->current);
    add(&said, ", ");
  }
  add(&said, "%s:%u: %s: Assertion `%s' failed.", file, line, function, what);
  if (w) fail(w, &said, cudaErrorAssert);
  fprintf(stderr, "%s\n", said.buffer);
  abort();
}
#endif

CUDA_CPU_UNTRACED CUDA_CPU_ENTRY void in_kernel(const char *call) {
  if (self) return;
  fprintf(stderr, "CUDA stand-in: %s called outside a kernel\n", call);
  abort();
}

CUDA_CPU_UNTRACED CUDA_CPU_ENTRY void is_launched(const char *kernel) {
  if (self) return;
  fprintf(stderr, "CUDA stand-in: the kernel %s is called like a function; launch it: %s<<<blocks, threads>>>(...)\n",
          kernel, kernel);
  abort();
}

/* --- which thread runs next --- */

CUDA_CPU_QUIET uint32_t random_below(worker *w, uint32_t n) {
  w->random = w->random * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(((w->random >> 32) * n) >> 32);
}

CUDA_CPU_QUIET void make_ready(worker *w, int thread) {
  w->ready[(w->ready_head + w->ready_count++) % 1024] = static_cast<unsigned short>(thread);
}

/* A ready thread's number, -1: start a new one, -2: none can run. */
CUDA_CPU_QUIET int choose(worker *w, bool spinning) {
  unsigned fresh = static_cast<unsigned>(w->count - w->started);
  if (w->settings.schedule == schedule_random) {
    if (!(fresh + w->ready_count)) return -2;
    unsigned r = random_below(w, w->ready_count + fresh);
    if (r >= w->ready_count) return -1;
    unsigned short &picked = w->ready[(w->ready_head + r) % 1024], &first = w->ready[w->ready_head % 1024];
    unsigned short t = picked;
    picked = first;
    first = t;
  } else if (fresh && (spinning || !w->ready_count))
    return -1;
  else if (!w->ready_count)
    return -2;
  int t = w->ready[w->ready_head];
  w->ready_head = (w->ready_head + 1) % 1024;
  w->ready_count--;
  return t;
}

CUDA_CPU_QUIET void be_patient(worker *w) {
  w->patience = w->settings.schedule == schedule_random ? 1 + static_cast<int>(random_below(w, 8)) : 4096;
}

CUDA_CPU_QUIET void runner();
CUDA_CPU_QUIET fiber *take_runner(worker *w) {
  fiber *f = w->pool;
  if (f) {
    w->pool = f->next;
    return f;
  }
  f = fiber_create(static_cast<unsigned>(w->fibers_made), runner);
  w->fibers[w->fibers_made++] = f; /* at most 1024 threads wait, and one runner runs */
  return f;
}

CUDA_CPU_COLD void report_stuck(worker *w);
CUDA_CPU_QUIET void note_calls(call_places *places);
CUDA_CPU_RARE void add_kernel_line_of(text *what, worker *w, int thread, const char *file, int line);

/* Lets another thread run; the caller has said (make_ready, or in some queue) when this one may go on. Inlined, or each
 * thread that waits would have one more frame in the caches. */
__attribute__((always_inline)) CUDA_CPU_QUIET void suspend(worker *w, bool spinning = false) {
  int t = w->current;
  uint3 index = threadIdx;
  w->stands[t] = w->running;
  int n = choose(w, spinning);
  if (n != t) {
    if (n == -2) report_stuck(w);
    if (w->ready_count) fiber_prefetch(w->stands[w->ready[w->ready_head]]);
    go(w, n < 0 ? take_runner(w) : w->stands[n]);
    while (__builtin_expect(w->asker != nullptr, false)) {
      note_calls(&w->places);
      go(w, __atomic_exchange_n(&w->asker, nullptr, __ATOMIC_RELAXED));
    }
  }
  w->current = t;
  threadIdx = index;
  trace_thread(w);
  be_patient(w);
}

/* By a thread that polls: other threads run first; if all of them poll, the other workers do. */
CUDA_CPU_UNTRACED CUDA_CPU_ENTRY void yield() {
  worker *w = this_worker();
  if (__atomic_load_n(&w->job->failed, __ATOMIC_RELAXED)) abandon(w);
  if (++w->idle_spins > static_cast<int>(w->ready_count) + w->count - w->started) {
    w->idle_spins = 0;
    trace_give_turn();
    sched_yield();
    trace_take_turn();
  }
  make_ready(w, w->current);
  suspend(w, true);
}

/* --- barriers --- */

CUDA_CPU_QUIET void release_barrier(worker *w, bool with_current) {
  trace_barrier(w);
  w->barrier.result = w->barrier.accumulated;
  int n = w->barrier.arrived - (with_current ? 1 : 0);
  w->meetings++;
  w->barrier.arrived = 0;
  w->idle_spins = 0;
  for (int i = 0; i < n; i++) make_ready(w, w->barrier_queue[i]);
}

CUDA_CPU_COLD void report_two_barriers(worker *w, int op, const char *file, int line) {
  text what = {};
  add(&what, "divergent barrier: ");
  add_thread(&what, w, w->current);
  add(&what, " is at %s, %s:%d, while %d other threads wait at %s, %s:%d, the first ", operation_name(op), file, line,
      w->barrier.arrived, operation_name(w->barrier.op), w->barrier.file, w->barrier.line);
  add_thread(&what, w, w->barrier_queue[0]);
  fail(w, &what);
}

/* Every thread of the block waits at the barrier of the grid: waits for the other blocks. */
CUDA_CPU_QUIET void grid_arrive(worker *w);

CUDA_CPU_UNTRACED CUDA_CPU_ENTRY int barrier(int op, int predicate, const char *file, int line) {
  if (!self) in_kernel(operation_name(op));
  worker *w = this_worker();
  int t = w->current;
  auto &b = w->barrier;
  if (!b.arrived) {
    b.op = op;
    b.file = file;
    b.line = line;
    b.accumulated = op == op_syncthreads_and;
  } else if (op != b.op || line != b.line || (file != b.file && strcmp(file, b.file)))
    report_two_barriers(w, op, file, line);
  if (op == op_syncthreads_count)
    b.accumulated += predicate != 0;
  else if (op == op_syncthreads_and)
    b.accumulated &= predicate != 0;
  else
    b.accumulated |= predicate != 0;
  bool lenient = w->settings.exited_arrives && op != op_grid_sync; /* which CUDA wants every thread of the grid for */
  if (++b.arrived == (lenient ? w->live : w->count)) {
    if (op == op_grid_sync) grid_arrive(w);
    release_barrier(w, true);
    make_ready(w, t);
  } else
    w->barrier_queue[b.arrived - 1] = static_cast<unsigned short>(t);
  suspend(w);
  return w->barrier.result;
}

/* --- warp collectives --- */

CUDA_CPU_QUIET int shuffle_source(int op, int lane, unsigned arg, int width) {
  int segment = lane & ~(width - 1), last = segment | (width - 1), b = static_cast<int>(arg & 31), j;
  switch (op) {
  case op_shfl: return segment | (b & (width - 1));
  case op_shfl_up: j = lane - b; return j < segment ? lane : j;
  case op_shfl_down: j = lane + b; return j > last ? lane : j;
  default: j = lane ^ b; return j > last ? lane : j;
  }
}

CUDA_CPU_COLD void report_source(worker *w, int thread, int source) {
  const waiting &s = w->threads[thread];
  text what = {};
  add_thread(&what, w, thread);
  const bool gone = s.mask >> source & 1;
  add(&what, " (lane %d): %s with mask 0x%08x reads lane %d, which %s, %s:%d", thread % 32, operation_name(s.op),
      s.mask, source, gone ? "has returned" : "is not in the mask", s.file, s.line);
  if (!gone) add(&what, "\n  __activemask() is the thread alone here; use 0xffffffff");
  fail(w, &what);
}

/* CUDA makes the value from a lane outside the mask undefined, and many reductions over a part of a warp have one that
 * they never use: here it is NaN, or -1, which overflows in no sum. A mask of one lane is one by __activemask(), with
 * which such code would work on a GPU. */
CUDA_CPU_QUIET uint64_t shuffled(worker *w, int first, int lane, int source, unsigned lanes) {
  const waiting *s = w->threads + first;
  const unsigned mask = s[lane].mask;
  if (lanes >> source & 1) return s[source].value;
  if (mask >> source & 1 || mask == 1u << lane) report_source(w, first + lane, source);
  return ~uint64_t{0};
}

/* The last lane to arrive computes for all of them. */
CUDA_CPU_QUIET void collect(worker *w, int first, int op, unsigned lanes) {
  waiting *s = w->threads + first;
  uint64_t all = 0;
  unsigned votes = 0;
  bool start = true;
  for (unsigned m = lanes; m; m &= m - 1) {
    int i = __builtin_ctz(m);
    uint64_t v = s[i].value;
    int32_t sv = static_cast<int32_t>(v), sall = static_cast<int32_t>(all);
    votes |= v ? 1u << i : 0u;
    switch (op) {
    case op_reduce_add: all += v; break;
    case op_reduce_min: all = start || sv < sall ? v : all; break;
    case op_reduce_max: all = start || sv > sall ? v : all; break;
    case op_reduce_umin: all = start || v < all ? v : all; break;
    case op_reduce_umax: all = start || v > all ? v : all; break;
    case op_reduce_and: all = start ? v : all & v; break;
    case op_reduce_or: all |= v; break;
    case op_reduce_xor: all ^= v; break;
    case op_match_all: all = start || (all && v == s[__builtin_ctz(lanes)].value); break;
    }
    start = false;
  }
  switch (op) {
  case op_syncwarp: return;
  case op_ballot: all = votes; break;
  case op_any: all = votes != 0; break;
  case op_all: all = votes == lanes; break;
  case op_match_all: all = all ? lanes : 0; break;
  }
  for (unsigned m = lanes; m; m &= m - 1) {
    int i = __builtin_ctz(m);
    if (op >= op_shfl && op <= op_shfl_xor) {
      int source = shuffle_source(op, i, s[i].arg, s[i].width);
      s[i].result = shuffled(w, first, i, source, lanes);
    } else if (op == op_match_any) {
      unsigned same = 0;
      for (unsigned k = lanes; k; k &= k - 1)
        if (s[__builtin_ctz(k)].value == s[i].value) same |= k & -k;
      s[i].result = same;
    } else
      s[i].result = all;
  }
}

CUDA_CPU_QUIET void finish_meeting(worker *w, int number, rendezvous *m) {
  warp &wp = w->warps[number];
  rendezvous done = *m;
  *m = wp.meeting[--wp.meetings];
  if (done.op == op_syncwarp) trace_warp_barrier(w, number, done.arrived);
  collect(w, number * 32, done.op, done.arrived);
  w->meetings++;
  w->idle_spins = 0;
  if (w->settings.schedule == schedule_reversed)
    for (unsigned lanes = done.arrived; lanes;) {
      int i = 31 - __builtin_clz(lanes);
      make_ready(w, number * 32 + i);
      lanes &= ~(1u << i);
    }
  else
    for (unsigned lanes = done.arrived; lanes; lanes &= lanes - 1) make_ready(w, number * 32 + __builtin_ctz(lanes));
}

CUDA_CPU_COLD void report_mask(worker *w, int op, unsigned mask, int width, const char *file, int line) {
  int t = w->current, lane = t % 32;
  const warp &wp = w->warps[t / 32];
  unsigned absent = mask & ~wp.present, gone = mask & (~wp.present | wp.exited);
  text what = {};
  add_thread(&what, w, t);
  add(&what, " (lane %d): %s, %s:%d, ", lane, operation_name(op), file, line);
  if (!(mask >> lane & 1))
    add(&what, "is not in its own mask 0x%08x", mask);
  else if (gone && !w->settings.exited_arrives)
    add(&what, "has lanes 0x%08x in its mask 0x%08x that %s (GPUKIT_CPU_EXITED=arrived lets that pass)", gone, mask,
        absent ? "the block has not got" : "have returned");
  else
    add(&what, "has a width of %d, not a power of two up to 32", width);
  fail(w, &what);
}

CUDA_CPU_UNTRACED CUDA_CPU_ENTRY uint64_t collective(int op, int wide, unsigned mask, uint64_t value, unsigned arg,
                                                     int width, const char *file, int line) {
  if (!self) in_kernel(operation_name(op));
  worker *w = this_worker();
  int t = w->current, number = t / 32, lane = t % 32;
  unsigned bit = 1u << lane;
  warp &wp = w->warps[number];
  unsigned gone = ~wp.present | wp.exited;
  unsigned awaited = w->settings.exited_arrives ? mask & ~gone : mask;
  bool shuffles = op >= op_shfl && op <= op_shfl_xor;
  if (!(mask & bit) || (awaited & gone) || (shuffles && (width & (width - 1) || width < 1 || width > 32)))
    report_mask(w, op, mask, width, file, line);
  waiting &s = w->threads[t];
  s.op = op;
  s.file = file;
  s.line = line;
  s.mask = mask;
  s.value = value;
  s.arg = arg;
  s.width = width;
  rendezvous *m = wp.meeting;
  while (m < wp.meeting + wp.meetings && (m->mask != mask || m->op != op || m->wide != wide)) m++;
  if (m == wp.meeting + wp.meetings) {
    wp.meetings++;
    *m = rendezvous{op, wide, mask, 0};
  }
  m->arrived |= bit;
  if (m->arrived == awaited) finish_meeting(w, number, m);
  suspend(w);
  return s.result;
}

/* --- no thread can run --- */

/* Groups the block's threads by what they wait for: one line a group. */
CUDA_CPU_COLD void report_stuck(worker *w) {
  text what = {};
  bool at_barrier[1024] = {}, done[1024] = {};
  int first_gone = -1, gone = 0, groups = 0;
  for (int i = 0; i < w->barrier.arrived; i++) at_barrier[w->barrier_queue[i]] = true;
  add(&what, "divergent threads: no thread can go on");
  for (int t = 0; t < w->count; t++) {
    if (w->warps[t / 32].exited >> t % 32 & 1) {
      if (!gone++) first_gone = t;
      continue;
    }
    if (done[t]) continue;
    const waiting &s = w->threads[t];
    int same = 0;
    for (int u = t; u < w->count; u++) {
      const waiting &o = w->threads[u];
      if (w->warps[u / 32].exited >> u % 32 & 1 || at_barrier[u] != at_barrier[t]) continue;
      if (!at_barrier[t] &&
          (o.op != s.op || o.line != s.line || o.file != s.file || o.mask != s.mask || u / 32 != t / 32))
        continue;
      done[u] = true;
      same++;
    }
    if (++groups > 12) continue;
    add(&what, "\n    ");
    add_thread(&what, w, t);
    if (same > 1)
      add(&what, " and %d more wait", same - 1);
    else
      add(&what, " waits");
    const int line = at_barrier[t] ? w->barrier.line : s.line;
    const char *file = at_barrier[t] ? w->barrier.file : s.file;
    add(&what, " at %s, %s:%d", operation_name(at_barrier[t] ? w->barrier.op : s.op), file, line);
    add_kernel_line_of(&what, w, t, file, line);
    if (!at_barrier[t]) {
      unsigned here = 0;
      for (int i = 0; i < w->warps[t / 32].meetings; i++) {
        rendezvous &m = w->warps[t / 32].meeting[i];
        if (m.arrived >> t % 32 & 1) here = m.arrived;
      }
      add(&what, ", mask 0x%08x, lanes missing 0x%08x", s.mask, s.mask & ~here);
    }
  }
  if (groups > 12) add(&what, "\n    and %d more groups", groups - 12);
  if (gone) {
    add(&what, "\n    ");
    add_thread(&what, w, first_gone);
    if (gone > 1) add(&what, " and %d more", gone - 1);
    add(&what, gone > 1 ? " have returned" : " has returned");
  }
  fail(w, &what);
}

/* --- threads and blocks --- */

/* A thread has returned: where such threads count as arrived, the others may now go on. */
CUDA_CPU_QUIET void after_exit(worker *w, int t) {
  if (w->barrier.arrived && w->barrier.arrived == w->live && w->barrier.op != op_grid_sync) release_barrier(w, false);
  warp &wp = w->warps[t / 32];
  for (int i = 0; i < wp.meetings;) {
    rendezvous &m = wp.meeting[i];
    if ((m.mask & ~wp.exited & wp.present) == m.arrived)
      finish_meeting(w, t / 32, &m);
    else
      i++;
  }
}

CUDA_CPU_QUIET void run_thread(worker *w) {
  int i = w->started++, t = i;
  const dim3 &block = w->job->block;
  if (w->settings.schedule == schedule_forward) {
    threadIdx = w->next_index;
    if (++w->next_index.x == block.x) {
      w->next_index.x = 0;
      if (++w->next_index.y == block.y) {
        w->next_index.y = 0;
        w->next_index.z++;
      }
    }
  } else {
    t = w->settings.schedule == schedule_reversed ? w->count - 1 - i : w->order[i];
    threadIdx = thread_index(block, t);
  }
  w->current = t;
  trace_thread(w);
  be_patient(w);
  w->job->call(w->job->closure);
  w->warps[t / 32].exited |= 1u << t % 32;
  w->live--;
  if (w->settings.exited_arrives) after_exit(w, t);
}

CUDA_CPU_QUIET void runner() {
  worker *w = this_worker();
  fiber *me = w->running;
  fiber_arrive(me);
  for (;;) {
    int n;
    do {
      run_thread(w);
      n = choose(w, false);
    } while (n == -1);
    w->idle_spins = 0;
    if (n == -2 && w->live) report_stuck(w);
    me->next = w->pool;
    w->pool = me;
    go(w, n < 0 ? &w->main : w->stands[n]);
  }
}

CUDA_CPU_QUIET void run_block(worker *w, const launch *job, uint3 index, uint64_t seed) {
  int count = static_cast<int>(job->block.x * job->block.y * job->block.z);
  w->job = job;
  w->count = w->live = count;
  w->started = 0;
  w->next_index = uint3{0, 0, 0};
  w->ready_head = w->ready_count = 0;
  w->barrier.arrived = 0;
  w->idle_spins = 0;
  for (int i = 0; i < (count + 31) / 32; i++) {
    warp &wp = w->warps[i];
    wp.present = count - i * 32 < 32 ? (1u << (count - i * 32)) - 1 : ~0u;
    wp.exited = 0;
    wp.meetings = 0;
  }
  if (w->settings.schedule == schedule_random) {
    w->random = seed;
    for (int i = 0; i < 4; i++) random_below(w, 2);
    for (int i = 0; i < count; i++) {
      unsigned j = random_below(w, static_cast<uint32_t>(i + 1));
      w->order[i] = w->order[j];
      w->order[j] = static_cast<unsigned short>(i);
    }
  }
  blockIdx = index;
  blockDim = job->block;
  gridDim = job->grid;
  w->running = &w->main;
  go(w, take_runner(w));
  if (w->abandoned) {
    w->abandoned = false;
    w->pool = nullptr;
    for (int i = 0; i < w->fibers_made; i++) {
      fiber_reset(w->fibers[i], runner);
      w->fibers[i]->next = w->pool;
      w->pool = w->fibers[i];
    }
  }
}

} // namespace cuda_cpu
