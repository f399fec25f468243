/* What a crash in a kernel says: kernel, block, thread and what lies at the address, before the process ends as it
 * would have ended anyway. Under ASan and UBSan these lines come before their reports.
 *
 * ASan puts no red zones around thread-local variables, which `__shared__` ones are here. So under ASan there are
 * fences between them; these and the padding after a variable are poisoned once for each worker. */
#pragma once
#pragma GCC system_header

#include <pthread.h>
#include <signal.h>
#include "block.h"
#include "places.h"

#ifdef CUDA_CPU_ASAN
extern "C" {
int __asan_report_present(void);
void *__asan_get_report_address(void);
void __sanitizer_set_death_callback(void (*callback)(void));
}
#ifdef __ELF__
/* GNU ld puts this section after all other thread-local variables. What follows it is the C library's. */
asm(R"(
  .pushsection .tcommon,"awTG",@nobits,cuda_cpu_fence_end,comdat
  .weak cuda_cpu_fence_end
  .hidden cuda_cpu_fence_end
  .type cuda_cpu_fence_end,@tls_object
  .size cuda_cpu_fence_end,128
  .balign 128
cuda_cpu_fence_end:
  .skip 128
  .popsection
)");
#endif
#endif

namespace cuda_cpu {

const size_t shared_capacity = 228 << 10;

inline char *shared_address(const shared_variable &v) {
  char *p = &anchor_variable;
  asm("" : "+r"(p)); /* no longer known to point to one byte */
  return p + v.offset;
}

CUDA_CPU_RARE void add_demangled(text *t, const char *name) {
  char plain[512];
  plain_name(name, plain, sizeof plain);
  add(t, "%s", plain);
}

/* Which memory of the device holds the address, or held it; defined with the table of allocations. */
CUDA_CPU_RARE void describe_device_address(text *t, uintptr_t address);

/* Where an address lies, as far as the stand-in knows. */
CUDA_CPU_RARE void describe_address(text *t, uintptr_t address) {
  const worker *w = this_worker();
  if (address < 4096) add(t, "\n  a null pointer, or an index to one");
  if (w && w->running != &w->main) {
    const uintptr_t low = reinterpret_cast<uintptr_t>(w->running->low);
    if (address < low && low - address <= stack_guard)
      add(t, "\n  the thread's stack of %zu KiB is full", stack_bytes >> 10);
  }
  if (w && w->shared) {
    const intptr_t offset = static_cast<intptr_t>(address - reinterpret_cast<uintptr_t>(w->shared));
    if (offset < 0 && offset >= -4096)
      add(t, "\n  %zd bytes before dynamic shared memory", static_cast<size_t>(-offset));
    if (offset >= 0 && offset < static_cast<intptr_t>(shared_capacity))
      add(t, "\n  byte %zd of dynamic shared memory, of which the launch asked for %zu bytes", offset,
          w->job->shared_bytes);
    const symbol_table *s = symbols();
    const shared_variable *nearest = nullptr;
    intptr_t nearest_byte = 0, least = 2 * shared_fence;
    for (int i = 0; i < s->shared_count; i++) {
      const shared_variable &v = s->shared[i];
      const intptr_t byte = static_cast<intptr_t>(address - reinterpret_cast<uintptr_t>(shared_address(v)));
      const intptr_t beyond = byte - static_cast<intptr_t>(v.size) + 1, distance = byte < 0 ? -byte : beyond;
      if (distance >= least) continue;
      least = distance;
      nearest = &v;
      nearest_byte = byte;
    }
    if (nearest) {
      add(t, "\n  byte %zd of __shared__ ", nearest_byte);
      add_demangled(t, nearest->name);
      add(t, ", which has %zu bytes", nearest->size);
    }
  }
  describe_device_address(t, address);
}

inline bool in_thread() {
  const worker *w = this_worker();
  return w && w->job && w->running && w->running != &w->main;
}

inline void write_text(const text *t) {
  for (size_t done = 0; done < t->length;) {
    const ssize_t n = write(2, t->buffer + done, t->length - done);
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

/* what: as in "wrong access" */
CUDA_CPU_RARE void report_crash(const char *what, uintptr_t address, bool has_address) {
  text t = {};
  if (in_thread()) {
    const launch *job = this_worker()->job;
    char name[512];
    symbol_name(job->kernel, name, sizeof name);
    add(&t, "CUDA stand-in: %s", what);
    if (has_address) add(&t, " to 0x%zx", static_cast<size_t>(address));
    add(&t, " in kernel %s, grid (%u,%u,%u), block (%u,%u,%u)\n  block (%u,%u,%u): thread (%u,%u,%u)", name,
        job->grid.x, job->grid.y, job->grid.z, job->block.x, job->block.y, job->block.z, blockIdx.x, blockIdx.y,
        blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    if (has_address) describe_address(&t, address);
    add_schedule(&t, this_worker()->settings);
  } else {
    text where = {};
    if (has_address) describe_device_address(&where, address);
    if (!where.length) return; /* none of the device's business */
    add(&t, "CUDA stand-in: %s to 0x%zx by the host%s", what, static_cast<size_t>(address), where.buffer);
  }
  add(&t, "\n");
  write_text(&t);
#ifndef CUDA_CPU_ASAN /* which shows all calls */
  /* Only now: it needs malloc, which the program may have broken. */
  call_places calls;
  note_calls(&calls);
  t.length = 0;
  for (int i = 0; i < calls.count && !t.length; i++) {
    text line = {};
    if (!symbol_around(symbols()->functions, symbols()->function_count, calls.address[i] - 1)) continue;
    if (add_place(&line, static_cast<uint32_t>(calls.address[i] - symbols()->base))) add(&t, "  at %s\n", line.buffer);
  }
  write_text(&t);
#endif
}

#ifdef CUDA_CPU_ASAN
/* Before the sanitizer's own lines. What the program has printed comes before both: it would be lost. */
inline void before_report(bool undefined) {
  static bool reported;
  if (__atomic_exchange_n(&reported, true, __ATOMIC_SEQ_CST)) return;
  fflush(nullptr);
  const uintptr_t address = reinterpret_cast<uintptr_t>(__asan_get_report_address()); /* 0: of a signal, or none */
  report_crash(undefined ? "undefined behaviour" : "wrong access", address, !undefined && address);
}

/* The sanitizers' handlers see the signals. clang's UBSan finds no __ubsan_on_report(): its last act is this callback. */
CUDA_CPU_RARE void watch_signals() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { __sanitizer_set_death_callback([] { before_report(!__asan_report_present()); }); });
}
CUDA_CPU_RARE void watch_signals_of_worker() { watch_signals(); }

/* up: poisons what is between shared variables; otherwise, as the worker ends, allows it again, since another thread
 * may have its variables there. */
inline void fence_shared(const worker *w, bool up) {
  const symbol_table *s = symbols();
  const auto set = up ? __asan_poison_memory_region : __asan_unpoison_memory_region;
  for (int i = 0; i < s->fence_count; i++) set(shared_address(s->fences[i]), s->fences[i].size);
  for (int i = 0; i < s->shared_count; i++) set(shared_address(s->shared[i]) + s->shared[i].size, s->shared[i].padding);
  set(w->shared - 4096, 4096);
}
#else
inline void fence_shared(const worker *, bool) {}

CUDA_CPU_RARE void on_signal(int number, siginfo_t *info, void *) {
  static pthread_t reporter;
  static int reporting;
  if (__atomic_exchange_n(&reporting, 1, __ATOMIC_SEQ_CST)) {
    while (!pthread_equal(reporter, pthread_self())) pause(); /* one report is enough, and ends the process */
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  reporter = pthread_self();
  alarm(10); /* should the fault be one of malloc, which names need */
  const char *what = number == SIGFPE    ? "division by zero or overflow"
                     : number == SIGILL  ? "illegal instruction (compilers put it where behaviour is undefined)"
                     : number == SIGABRT ? "abort"
                                         : "wrong access";
  const bool has_address = (number == SIGSEGV || number == SIGBUS) && info->si_code > 0;
  report_crash(what, reinterpret_cast<uintptr_t>(info->si_addr), has_address);
  alarm(0);
  signal(number, SIG_DFL);
  if (info->si_code <= 0) raise(number); /* sent by somebody; a fault comes again by itself */
}

/* Handlers that the program has installed stay. */
CUDA_CPU_RARE void watch_signals() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      struct sigaction now, action = {};
      if (sigaction(number, nullptr, &now) || (now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL) continue;
      action.sa_sigaction = on_signal;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigaction(number, &action, nullptr);
    }
  });
}
/* A thread that has used up its stack cannot tell so on it. */
CUDA_CPU_RARE void watch_signals_of_worker() {
  watch_signals();
  stack_t stack = {};
  stack.ss_size = 128 << 10;
  stack.ss_sp = mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
}
#endif

} // namespace cuda_cpu

#ifdef CUDA_CPU_ASAN
#define CUDA_CPU_ON_REPORT extern "C" __attribute__((used, no_sanitize("address"))) inline void
CUDA_CPU_ON_REPORT __asan_on_error() { cuda_cpu::before_report(false); }
CUDA_CPU_ON_REPORT __ubsan_on_report() { cuda_cpu::before_report(true); }
#undef CUDA_CPU_ON_REPORT
#endif
