/* What a profiler would count, from the accesses that races.h sees: GPUKIT_CPU_STATS=1 prints it for each kernel when
 * the program ends, GPUKIT_CPU_STATS=lines for each line of source, too. The model:
 *
 *   request   the n-th execution of one load, store or atomic by the threads of a warp. Threads run one after the other
 *             here, so that which of their accesses belong together is found by counting: the n-th of each.
 *   sectors   32-byte pieces of global memory that a request touches; 4 are the fewest for 32 floats in a row.
 *   passes    times that shared memory has to be accessed for a request: as often as the busiest of 32 banks of 4 bytes
 *             has different words to deliver. 8-byte accesses go by half warps, 16-byte ones by quarters.
 *   branches  the n-th time that a warp's threads leave one basic block of code; divergent if they do so in different
 *             directions. (Needs -fsanitize-coverage=trace-pc. Where a GPU would select with a predicate, a branch is
 *             counted.)
 *
 * Memory that only its own thread can see is not counted. A constant is read like any other global memory. */
#pragma once
#pragma GCC system_header

#include "races.h"
#ifdef CUDA_CPU_TRACE

#include <unordered_map>
#include <vector>

namespace cuda_cpu {

enum log_kind : unsigned char { log_load, log_store, log_atomic, log_block };
struct log_entry {
  uintptr_t address;
  uint32_t here;
  unsigned char kind, size;
  bool shared;
};
struct thread_log {
  log_entry *entries;
  uint32_t count, capacity;
};
const uint32_t longest_log = 1u << 20;

struct line_counters { /* of one place in the code */
  unsigned char kind, size;
  bool shared;
  unsigned long long requests, cost; /* sectors, passes or (atomics) accesses */
};
struct branch_counters {
  uint32_t first_successor;
  bool two_ways, known, ours; /* ours: code of the stand-in, which a GPU has not got */
  unsigned long long executed, divergent;
};
struct kernel_counters {
  const void *kernel;
  cuda_cpu_counters sum;
  std::unordered_map<uint64_t, line_counters> lines;
  std::unordered_map<uint32_t, branch_counters> branches;
};
struct counting_state {
  bool on, print, by_line; /* on: from the next launch on */
  std::vector<kernel_counters *> kernels;
  kernel_counters *current;
  std::unordered_map<uint32_t, bool> ours; /* of the places asked about so far: each answer is a run of addr2line */
};
inline counting_state *counting;

/* At the first launch, or call of cuda_cpu_count. */
CUDA_CPU_QUIET counting_state *start_counting() {
  if (counting) return counting;
  counting = new counting_state();
  const char *e = getenv("GPUKIT_CPU_STATS");
  counting->on = counting->print = e && *e && strcmp(e, "0") != 0;
  counting->by_line = counting->print && !strcmp(e, "lines");
  return counting;
}

CUDA_CPU_QUIET void log_access(tracer *tr, uintptr_t address, size_t size, unsigned char kind, bool shared,
                               uint32_t here) {
  if (!tr->logs) tr->logs = static_cast<thread_log *>(calloc(1024, sizeof(thread_log)));
  if (!tr->logs) trace_no_memory();
  thread_log *log = tr->logs + tr->of->current;
  if (log->count == log->capacity) {
    if (log->capacity == longest_log) {
      counting->current->sum.not_counted++;
      return;
    }
    log->capacity = log->capacity ? log->capacity * 4 : 64;
    log->entries = static_cast<log_entry *>(realloc(log->entries, log->capacity * sizeof(log_entry)));
    if (!log->entries) trace_no_memory();
  }
  log->entries[log->count++] =
      log_entry{address, here, kind, static_cast<unsigned char>(size < 255 ? size : 255), shared};
}

CUDA_CPU_QUIET void drop_logs(tracer *tr) {
  for (int t = 0; tr->logs && t < 1024; t++) free(tr->logs[t].entries);
  free(tr->logs);
}

/* --- requests --- */

struct request {
  log_entry what;
  unsigned lanes;
  uintptr_t address[32];
};

CUDA_CPU_QUIET unsigned count_sectors(const request &r) {
  uintptr_t sector[32 * 9];
  unsigned n = 0;
  for (unsigned m = r.lanes; m; m &= m - 1) {
    uintptr_t a = r.address[__builtin_ctz(m)];
    for (uintptr_t s = a / 32; s <= (a + r.what.size - 1) / 32; s++) {
      bool seen = false;
      for (unsigned i = n; i-- > 0 && !seen;) seen = sector[i] == s;
      if (!seen) sector[n++] = s;
    }
  }
  return n;
}
CUDA_CPU_QUIET unsigned count_passes(const request &r) {
  const int together = r.what.size > 8 ? 8 : r.what.size > 4 ? 16 : 32;
  unsigned passes = 0;
  for (int first = 0; first < 32; first += together) {
    uintptr_t word[32][64]; /* by bank */
    unsigned words[32] = {}, most = 0;
    for (int lane = first; lane < first + together; lane++) {
      if (!(r.lanes >> lane & 1)) continue;
      for (uintptr_t w = r.address[lane] / 4; w <= (r.address[lane] + r.what.size - 1) / 4; w++) {
        unsigned bank = w % 32;
        bool seen = words[bank] == 64;
        for (unsigned i = 0; i < words[bank] && !seen; i++) seen = word[bank][i] == w;
        if (!seen) word[bank][words[bank]++] = w;
        if (words[bank] > most) most = words[bank];
      }
    }
    passes += most;
  }
  return passes;
}

CUDA_CPU_QUIET void count_request(kernel_counters *k, const request &r) {
  cuda_cpu_counters *c = &k->sum;
  unsigned cost;
  if (r.what.kind == log_atomic) {
    cost = static_cast<unsigned>(__builtin_popcount(r.lanes));
    (r.what.shared ? c->shared_atomics : c->global_atomics) += cost;
  } else if (r.what.shared) {
    cost = count_passes(r);
    (r.what.kind == log_load ? c->shared_loads : c->shared_stores)++;
    (r.what.kind == log_load ? c->shared_load_passes : c->shared_store_passes) += cost;
  } else {
    cost = count_sectors(r);
    (r.what.kind == log_load ? c->global_loads : c->global_stores)++;
    (r.what.kind == log_load ? c->global_load_sectors : c->global_store_sectors) += cost;
  }
  line_counters &line = k->lines[static_cast<uint64_t>(r.what.here) << 8 | r.what.kind << 1 | r.what.shared];
  line.kind = r.what.kind;
  line.size = r.what.size;
  line.shared = r.what.shared;
  line.requests++;
  line.cost += cost;
}

CUDA_CPU_QUIET bool not_of_kernel(branch_counters *b, uint32_t place) {
  if (!b->known) {
    const auto at = counting->ours.emplace(place, false);
    text where = {};
    if (at.second) at.first->second = !add_place(&where, place);
    b->ours = at.first->second;
  }
  b->known = true;
  return b->ours;
}

/* The threads of a warp have left `from` for these places (0: they have not got there). */
CUDA_CPU_QUIET bool count_branch(kernel_counters *k, uint32_t from, const uint32_t *to, int count) {
  branch_counters &b = k->branches[from];
  uint32_t first = 0;
  bool divergent = false;
  for (int i = 0; i < count; i++) {
    if (!to[i]) continue;
    if (!first) first = to[i];
    divergent = divergent || to[i] != first;
  }
  if (!b.first_successor) b.first_successor = first;
  b.two_ways = b.two_ways || divergent || first != b.first_successor;
  b.executed++;
  if (!divergent || not_of_kernel(&b, from)) return false;
  b.divergent++;
  return true;
}

/* --- warps --- */

const uint32_t left_kernel = ~0u; /* where a thread's last basic block leads */

/* Every lane has done the same: its entries stand side by side. */
CUDA_CPU_QUIET bool in_step(const thread_log *logs, int lanes) {
  for (int i = 1; i < lanes; i++) {
    if (logs[i].count != logs[0].count) return false;
    for (uint32_t e = 0; e < logs[0].count; e++)
      if (logs[i].entries[e].here != logs[0].entries[e].here || logs[i].entries[e].kind != logs[0].entries[e].kind)
        return false;
  }
  return true;
}

CUDA_CPU_QUIET void count_in_step(kernel_counters *k, const thread_log *logs, int lanes) {
  uint32_t last = 0;
  for (uint32_t e = 0; e < logs[0].count; e++) {
    const log_entry &what = logs[0].entries[e];
    if (what.kind == log_block) {
      if (last) count_branch(k, last, &what.here, 1);
      last = what.here;
      continue;
    }
    request r;
    r.what = what;
    r.lanes = lanes == 32 ? ~0u : (1u << lanes) - 1;
    for (int i = 0; i < lanes; i++) r.address[i] = logs[i].entries[e].address;
    count_request(k, r);
  }
}

/* Else by counting: the n-th time that each lane comes to a place belongs together. */
CUDA_CPU_QUIET bool count_by_place(kernel_counters *k, const thread_log *logs, int lanes) {
  struct turning { /* a basic block, and where the lanes went from there */
    uint32_t from, to[32];
  };
  std::unordered_map<uint64_t, size_t> request_of, turning_of;
  std::vector<request> requests;
  std::vector<turning> turnings;
  for (int i = 0; i < lanes; i++) {
    std::unordered_map<uint64_t, uint32_t> times;
    turning *last = nullptr;
    size_t last_index = 0;
    for (uint32_t e = 0; e < logs[i].count; e++) {
      const log_entry &what = logs[i].entries[e];
      uint64_t place = static_cast<uint64_t>(what.here) << 2 | what.kind;
      uint64_t key = place << 24 | (times[place]++ & 0xffffff);
      if (what.kind == log_block) {
        if (last) turnings[last_index].to[i] = what.here;
        auto at = turning_of.emplace(key, turnings.size());
        if (at.second) {
          turnings.push_back(turning());
          turnings.back().from = what.here;
        }
        last_index = at.first->second;
        last = &turnings[last_index];
        continue;
      }
      auto at = request_of.emplace(key, requests.size());
      if (at.second) {
        requests.push_back(request());
        requests.back().what = what;
      }
      request &r = requests[at.first->second];
      r.lanes |= 1u << i;
      r.address[i] = what.address;
    }
    if (last) turnings[last_index].to[i] = left_kernel;
  }
  for (const request &r : requests) count_request(k, r);
  bool diverged = false;
  for (const turning &t : turnings)
    if (count_branch(k, t.from, t.to, lanes)) diverged = true;
  return diverged;
}

/* What the block's threads have done since the last barrier. */
CUDA_CPU_QUIET void count_block(worker *w, bool ends) {
  tracer *tr = tracing;
  tracing = nullptr; /* nothing of this is the kernel's */
  kernel_counters *k = counting->current;
  for (int first = 0; first < w->count; first += 32) {
    int lanes = w->count - first < 32 ? w->count - first : 32;
    bool &diverged = w->warps[first / 32].diverged;
    thread_log *logs = tr->logs + first;
    if (!tr->logs)
      ; /* no access so far */
    else if (in_step(logs, lanes))
      count_in_step(k, logs, lanes);
    else if (count_by_place(k, logs, lanes))
      diverged = true;
    for (int i = 0; tr->logs && i < lanes; i++) logs[i].count = 0;
    if (ends) {
      k->sum.warps++;
      k->sum.diverged_warps += diverged;
      diverged = false;
    }
  }
  if (ends) k->sum.threads += static_cast<unsigned>(w->count);
  tracing = tr;
}

CUDA_CPU_QUIET void count_launch(const launch *job) {
  trace.logging = start_counting()->on;
  if (!trace.logging) return;
  counting->current = nullptr;
  for (kernel_counters *k : counting->kernels)
    if (k->kernel == job->kernel) counting->current = k;
  if (!counting->current) {
    counting->kernels.push_back(counting->current = new kernel_counters());
    counting->current->kernel = job->kernel;
  }
  counting->current->sum.launches++;
}

/* --- results --- */

CUDA_CPU_QUIET cuda_cpu_counters counters_of(kernel_counters *k) {
  cuda_cpu_counters c = k->sum;
  for (auto &b : k->branches)
    if (b.second.two_ways && !not_of_kernel(&b.second, b.first)) {
      c.branches += b.second.executed;
      c.divergent_branches += b.second.divergent;
    }
  return c;
}

CUDA_CPU_QUIET void print_ratio(const char *what, unsigned long long requests, unsigned long long cost,
                                const char *unit) {
  if (requests)
    fprintf(stderr, "    %-14s %12llu requests  %8.2f %s each\n", what, requests,
            static_cast<double>(cost) / static_cast<double>(requests), unit);
}
CUDA_CPU_RARE void list_counters() {
  if (!counting || !counting->print) return;
  if (system("command -v addr2line >/dev/null 2>&1"))
    fprintf(stderr, "CUDA stand-in: branches are not counted: which are the kernel's tells addr2line (of binutils)\n");
  for (kernel_counters *k : counting->kernels) {
    char name[512];
    symbol_name(k->kernel, name, sizeof name);
    cuda_cpu_counters c = counters_of(k);
    fprintf(stderr, "CUDA stand-in: %s\n    %llu launches, %llu threads, %llu warps\n", name, c.launches, c.threads,
            c.warps);
    print_ratio("global loads", c.global_loads, c.global_load_sectors, "sectors");
    print_ratio("global stores", c.global_stores, c.global_store_sectors, "sectors");
    print_ratio("shared loads", c.shared_loads, c.shared_load_passes, "passes");
    print_ratio("shared stores", c.shared_stores, c.shared_store_passes, "passes");
    if (c.global_atomics) fprintf(stderr, "    %-14s %12llu by single threads\n", "global atomics", c.global_atomics);
    if (c.shared_atomics) fprintf(stderr, "    %-14s %12llu by single threads\n", "shared atomics", c.shared_atomics);
    if (c.branches)
      fprintf(stderr, "    %-14s %12llu by warps, %llu divergent; %llu warps diverged\n", "branches", c.branches,
              c.divergent_branches, c.diverged_warps);
    if (c.not_counted)
      fprintf(stderr, "    %llu accesses are missing: of threads with more than 2^20 of them without a barrier\n",
              c.not_counted);
    if (!counting->by_line) continue;
    for (const auto &entry : k->lines) {
      text where = {};
      add_place(&where, static_cast<uint32_t>(entry.first >> 8));
      const line_counters &l = entry.second;
      fprintf(stderr, "      %s: %s %s of %u bytes, %llu requests, %.2f %s each\n", where.buffer,
              l.shared ? "shared" : "global",
              l.kind == log_load    ? "load"
              : l.kind == log_store ? "store"
                                    : "atomic",
              l.size, l.requests, static_cast<double>(l.cost) / static_cast<double>(l.requests),
              l.kind == log_atomic ? "threads"
              : l.shared           ? "passes"
                                   : "sectors");
    }
    for (auto &entry : k->branches) {
      text where = {};
      const branch_counters &b = entry.second;
      if (b.two_ways && !b.ours && add_place(&where, entry.first))
        fprintf(stderr, "      %s: branch, %llu by warps, %llu divergent\n", where.buffer, b.executed, b.divergent);
    }
  }
}
} // namespace cuda_cpu

CUDA_CPU_ENTRY void cuda_cpu_count(bool on) { cuda_cpu::start_counting()->on = on; }
CUDA_CPU_ENTRY cuda_cpu_counters cuda_cpu_take_counters() {
  cuda_cpu_counters all = {};
  cuda_cpu::counting_state *s = cuda_cpu::start_counting();
  for (cuda_cpu::kernel_counters *k : s->kernels) {
    cuda_cpu_counters c = cuda_cpu::counters_of(k);
    for (size_t i = 0; i < sizeof c / sizeof(unsigned long long); i++)
      reinterpret_cast<unsigned long long *>(&all)[i] += reinterpret_cast<unsigned long long *>(&c)[i];
    delete k;
  }
  s->kernels.clear();
  s->current = nullptr;
  return all;
}

extern "C" __attribute__((used)) CUDA_CPU_QUIET void __sanitizer_cov_trace_pc() {
  cuda_cpu::tracer *tr = cuda_cpu::tracing;
  if (!tr || !cuda_cpu::trace.logging) return;
  cuda_cpu::log_access(
      tr, 0, 0, cuda_cpu::log_block, false,
      static_cast<uint32_t>(reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - cuda_cpu::trace.base));
}

#endif
