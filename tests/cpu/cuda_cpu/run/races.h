/* The race checker. Compiled with -fsanitize=thread, and linked without it, each load and store of kernel code calls one
 * of the __tsan_ functions at the end of this file: so the accessing thread and the word are known, and a shadow of
 * memory has the earlier accesses.
 *
 * Two accesses of a word by two threads of a launch, one of them a write and not both atomic, are a race unless one
 * happens before the other. What orders them, and nothing else:
 *   - __syncthreads and its variants in a block, __syncwarp among its lanes (shuffles and votes order nothing);
 *   - a signal: write, fence, atomic (or volatile) write of a flag; and atomic (or volatile) read of the flag, fence,
 *     read. An atomic update passes on what earlier ones of the same word have signalled. A fence by each writer before
 *     a barrier serves as well as one by the signalling thread after it.
 *   - the end of a launch.
 * This is CUDA's memory model but for scopes: an atomic or a fence of a block counts like one of the device; and but for
 * data that lanes of a warp exchange through volatile words as if they ran in step, with neither a barrier nor a fence:
 * these count as races, although volatile accesses are no data races by that model.
 *
 * Time is counted for each block, one step at each barrier, warp barrier and fence. So (block, thread, time) names an
 * access, and for most pairs one comparison tells their order: in a block with the time of its last barrier, in a warp
 * with what the lanes last heard of each other. What signals carry is kept in maps from (block, thread) to time.
 *
 * A read of words that still hold the poison of fresh memory, and that no kernel or copy has written, is named, too. Both
 * have to hold: what the host writes into managed memory is not seen, and what a program writes may look like poison. Of
 * a read of several words all have to be so, since it may be that of a structure with padding. Kernels read words of
 * shared memory beyond the edge of their data, and drop what comes of them: so such a read is named when the block stores
 * poison in other memory, which copies and floating-point arithmetic make of it, or if it is part of an atomic update.
 *
 * FastTrack (Flanagan and Freund, 2009) is the source of keeping the last write and as few reads as will do for each
 * word: a plain write, the last atomic one and another that it does not follow, and two reads, of different blocks if
 * there were such. */
#pragma once
#pragma GCC system_header

#include "block.h"
#include "crash.h"
#include "places.h"
#include "shared_memory.h"
#include "symbols.h"

#ifdef CUDA_CPU_TRACE

namespace cuda_cpu {

/* --- what is known about a word --- */

/* An access in 64 bits: its thread and time. Zero is none, since time starts at 1. */
typedef uint64_t access_mark;
const int mark_thread_shift = 26, mark_block_shift = 36;
const access_mark mark_time = (access_mark{1} << 24) - 1, mark_atomic = access_mark{1} << 24,
                  mark_update = access_mark{1} << 25;
const unsigned long long mark_blocks = 1ull << 28;

CUDA_CPU_QUIET uint32_t time_of(access_mark m) { return static_cast<uint32_t>(m & mark_time); }
CUDA_CPU_QUIET int thread_of(access_mark m) { return static_cast<int>(m >> mark_thread_shift & 1023); }
CUDA_CPU_QUIET uint64_t block_of(access_mark m) { return m >> mark_block_shift; }

enum { slot_write, slot_atomic_write, slot_atomic_write_too, slot_read, slot_read_too, slots };

struct alignas(64) cell { /* one line of the cache */
  access_mark who[slots];
  uint32_t where[slots]; /* the place in the code, from the start of the executable */
  uint32_t tag;          /* of the launch, or for shared memory of the block, that the marks belong to */
};
const uint32_t tag_split = 1u << 31;   /* the four bytes of the word have their own cells */
const uint32_t tag_ignored = ~0u >> 1; /* not the program's, but the stand-in's own */

const int page_shift = 16;
const size_t page_words = (size_t{1} << page_shift) / 4;
struct shadow_page {
  cell *words, *bytes;
  bool shared;
  unsigned char *mixed; /* NULL, or where shared memory and other has come to lie in one page: a bit for each word */
  unsigned char written[page_words / 8]; /* words of other memory: by a kernel or a copy, since it was allocated */
};

/* --- what is known about threads --- */

/* From (block, thread), or all of a block, to the time up to which its accesses are known. Shared by threads that know
 * the same, and copied by the first one that learns more. */
struct clock_map {
  unsigned references, count, capacity;
  struct {
    uint64_t key; /* 0: free */
    uint32_t time;
  } entry[1];
};

struct hint { /* a signal was seen, fence or not */
  uint64_t key;
  uint32_t time;
};

struct traced_thread {
  uint32_t block_serial;               /* that the rest belongs to */
  uint32_t fence_time, fence_all;      /* of its last fence, and the block's last barrier before it */
  clock_map *known, *fenced, *pending; /* now; at its last fence; from its next fence on */
  hint seen[4];
  unsigned next_seen;
};

struct thread_log;

/* The volatile accesses of one warp, as far as no barrier orders them: of a word, and of a store in the code. What
 * another word or store that hashes to the same entry did is forgotten. */
struct volatile_word {
  uintptr_t address;
  uint32_t block_serial, wrote_at, read_at[2];
  int warp;
  access_mark write, read[2]; /* by two lanes; a write after a fence is a signal, and not kept */
};
struct volatile_store {
  uintptr_t address;
  uint32_t block_serial, here;
  access_mark who;
  bool several; /* lanes have stored to words of their own */
};

struct tracer {
  access_mark me;
  uint32_t tag[2]; /* of the launch, of the block */
  worker *of;
  uint32_t time, last_barrier, fences; /* since the last barrier */
  bool lanes_used, any_known;
  clock_map *block_known, *all_fenced; /* by barriers; by a fence of every thread, and a barrier after that */
  hint seen[16];                       /* by any thread of the block: for messages only */
  unsigned next_seen;
  /* Two writes of the same value are no race; the second one's value is there when the next access comes. */
  struct {
    bool is;
    access_mark before;
    uint32_t here, there;
    uintptr_t address;
    unsigned size;
    unsigned char value[4];
    access_mark me;
  } same;
  struct {
    access_mark who;
    uint32_t where;
    uintptr_t address;
  } suspects[8]; /* reads of unwritten shared memory in this block, one of each place in the code */
  int suspect_count;
  struct {
    access_mark who;
    uint32_t where;
    uintptr_t address;
    size_t size;
    bool waited;
  } store;                             /* that may be of poison, or of size 0; known when the next access comes */
  thread_log *logs;                    /* for counters.h */
  volatile_word volatile_words[1024];  /* by address and warp */
  volatile_store volatile_stores[256]; /* by place and warp */
  traced_thread threads[1024];
  uint32_t lane_time[1024][32], fenced_lane_time[1024][32];
};

struct sync_word {
  uintptr_t address;
  clock_map *clock;
};
struct race_seen {
  uint32_t here, there;
};
/* A lock that threads get in the order in which they ask, so that one that polls leaves it to the others. */
struct turn_queue {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  struct {
    pthread_cond_t comes = PTHREAD_COND_INITIALIZER;
  } place[16]; /* fewer than 256 threads wake at a time */
  unsigned asked, given;
};
struct trace_state {
  shadow_page **pages; /* by address >> page_shift */
  sync_word *words;    /* by address: what signals there carry, in this launch */
  size_t word_count, word_capacity;
  race_seen seen[64];
  int seen_count;
  uint64_t told[20]; /* lines */
  int reports;
  bool more; /* than are told */
  unsigned long long races;
  uint32_t serial;
  uintptr_t base; /* where the executable lies */
  bool logging;   /* for counters.h */
  turn_queue turn;
};
inline trace_state trace = {nullptr, nullptr, 0, 0, {}, 0, {}, 0, false, 0, 0, 0, false, {}};
inline thread_local tracer *tracing; /* NULL outside kernels */

#define CUDA_CPU_FAST __attribute__((always_inline)) CUDA_CPU_QUIET

void log_access(tracer *tr, uintptr_t address, size_t size, unsigned char kind, bool shared, uint32_t here);
void count_block(worker *w, bool ends);
void count_launch(const launch *job);
void drop_logs(tracer *tr);

CUDA_CPU_COLD void trace_no_memory() {
  fprintf(stderr, "CUDA stand-in: no memory for the race checker\n");
  abort();
}
CUDA_CPU_QUIET void *trace_reserve(size_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) trace_no_memory();
  return p;
}

CUDA_CPU_FAST bool is_shared(const shadow_page *page, uintptr_t address) {
  if (__builtin_expect(!page->mixed, 1)) return page->shared;
  const size_t i = (address >> 2) & (page_words - 1);
  return page->mixed[i >> 3] >> (i & 7) & 1;
}
CUDA_CPU_QUIET void mark_shared(shadow_page *page, uintptr_t low, uintptr_t high, bool shared) {
  if (!page->mixed) {
    page->mixed = static_cast<unsigned char *>(malloc(page_words / 8));
    if (!page->mixed) trace_no_memory();
    memset(page->mixed, page->shared ? 0xff : 0, page_words / 8);
  }
  for (uintptr_t p = low & ~uintptr_t{3}; p < high; p += 4) {
    const size_t i = (p >> 2) & (page_words - 1);
    const unsigned char bit = static_cast<unsigned char>(1u << (i & 7));
    page->mixed[i >> 3] = static_cast<unsigned char>(shared ? page->mixed[i >> 3] | bit : page->mixed[i >> 3] & ~bit);
  }
}

CUDA_CPU_FAST void mark_written(shadow_page *page, uintptr_t address, bool written) {
  const size_t i = (address >> 2) & (page_words - 1);
  const unsigned char bit = static_cast<unsigned char>(1u << (i & 7));
  page->written[i >> 3] =
      static_cast<unsigned char>(written ? page->written[i >> 3] | bit : page->written[i >> 3] & ~bit);
}

/* In the 64 KiB pages that they share with others, the others are ignored. */
CUDA_CPU_UNTRACED CUDA_CPU_ENTRY void trace_register(const void *start, size_t bytes, bool shared) {
  if (!trace.pages) trace.pages = static_cast<shadow_page **>(trace_reserve(sizeof(void *) << (48 - page_shift)));
  const uintptr_t low = reinterpret_cast<uintptr_t>(start), high = low + bytes;
  for (uintptr_t i = low >> page_shift; i <= (high - 1) >> page_shift; i++) {
    const uintptr_t page_low = i << page_shift, page_high = page_low + (uintptr_t{1} << page_shift);
    shadow_page *page = trace.pages[i];
    bool fresh = !page;
    if (fresh) {
      page = trace.pages[i] = static_cast<shadow_page *>(calloc(1, sizeof *page));
      if (!page) trace_no_memory();
      page->words = static_cast<cell *>(trace_reserve(page_words * sizeof(cell)));
      page->bytes = static_cast<cell *>(trace_reserve(page_words * 4 * sizeof(cell)));
    }
    const bool whole = low <= page_low && page_high <= high;
    if (fresh || whole) {
      page->shared = shared;
      free(page->mixed);
      page->mixed = nullptr;
    } else if (page->mixed || page->shared != shared) {
      mark_shared(page, low > page_low ? low : page_low, high < page_high ? high : page_high, shared);
    }
    if (whole) {
      if (!fresh) madvise(page->words, page_words * sizeof(cell), MADV_DONTNEED);
      memset(page->written, 0, sizeof page->written);
      continue;
    }
    for (uintptr_t p = page_low; p < page_high; p += 4) {
      cell *c = page->words + ((p >> 2) & (page_words - 1));
      if (p + 4 > low && p < high) {
        c->tag = 0;
        mark_written(page, p, false);
      } else if (fresh)
        c->tag = tag_ignored;
    }
  }
}

/* The memory has been given back: what is there next, a stack perhaps, is not to be traced. */
CUDA_CPU_QUIET void trace_forget(const void *start, size_t bytes) {
  if (!trace.pages || !bytes) return;
  const uintptr_t low = reinterpret_cast<uintptr_t>(start), high = low + bytes;
  for (uintptr_t i = low >> page_shift; i <= (high - 1) >> page_shift; i++) {
    shadow_page *page = trace.pages[i];
    const uintptr_t page_low = i << page_shift, page_high = page_low + (uintptr_t{1} << page_shift);
    if (!page) continue;
    if (low <= page_low && page_high <= high) {
      trace.pages[i] = nullptr;
      munmap(page->words, page_words * sizeof(cell));
      munmap(page->bytes, page_words * 4 * sizeof(cell));
      free(page->mixed);
      free(page);
      continue;
    }
    for (uintptr_t p = low > page_low ? low : page_low; p < high && p < page_high; p += 4)
      page->words[(p >> 2) & (page_words - 1)].tag = tag_ignored;
  }
}

/* --- maps --- */

CUDA_CPU_QUIET uint64_t clock_key(uint64_t block, int thread) { /* thread -1: all of the block */
  return (block << 11 | static_cast<uint64_t>(thread + 1)) + 1;
}
CUDA_CPU_QUIET size_t clock_place(const clock_map *m, uint64_t key) {
  size_t i = (key * 0x9e3779b97f4a7c15u >> 32) & (m->capacity - 1);
  while (m->entry[i].key && m->entry[i].key != key) i = (i + 1) & (m->capacity - 1);
  return i;
}
CUDA_CPU_QUIET uint32_t clock_get(const clock_map *m, uint64_t key) {
  return m ? m->entry[clock_place(m, key)].time : 0;
}
CUDA_CPU_QUIET void clock_drop(clock_map **m) {
  if (*m && !--(*m)->references) free(*m);
  *m = nullptr;
}
CUDA_CPU_QUIET void clock_share(clock_map **to, clock_map *from) {
  if (from) from->references++;
  clock_drop(to);
  *to = from;
}
/* Room for `more` further entries in a map of one's own. */
CUDA_CPU_QUIET void clock_own(clock_map **m, unsigned more) {
  clock_map *old = *m;
  unsigned count = old ? old->count : 0, capacity = old ? old->capacity : 8;
  while ((count + more) * 2 > capacity) capacity *= 2;
  if (old && old->references == 1 && capacity == old->capacity) return;
  clock_map *fresh =
      static_cast<clock_map *>(calloc(1, sizeof(clock_map) + (capacity - 1) * sizeof(clock_map::entry[0])));
  if (!fresh) trace_no_memory();
  fresh->references = 1;
  fresh->count = count;
  fresh->capacity = capacity;
  for (unsigned i = 0; old && i < old->capacity; i++)
    if (old->entry[i].key) fresh->entry[clock_place(fresh, old->entry[i].key)] = old->entry[i];
  clock_drop(m);
  *m = fresh;
}
CUDA_CPU_QUIET void clock_raise(clock_map **m, uint64_t key, uint32_t time) {
  if (!time || clock_get(*m, key) >= time) return;
  clock_own(m, 1);
  size_t i = clock_place(*m, key);
  (*m)->count += !(*m)->entry[i].key;
  (*m)->entry[i].key = key;
  (*m)->entry[i].time = time;
}
CUDA_CPU_QUIET void clock_join(clock_map **to, clock_map *from) {
  if (!from || *to == from) return;
  if (!*to) return clock_share(to, from);
  for (unsigned i = 0; i < from->capacity; i++)
    if (from->entry[i].key) clock_raise(to, from->entry[i].key, from->entry[i].time);
}

/* --- threads, and what orders them --- */

CUDA_CPU_QUIET void trace_me(tracer *tr) {
  tr->me = (tr->me >> mark_block_shift << mark_block_shift) |
           static_cast<access_mark>(tr->of->current) << mark_thread_shift | tr->time;
}
CUDA_CPU_QUIET void trace_step(tracer *tr) {
  if (++tr->time < mark_time) return trace_me(tr);
  fprintf(stderr, "CUDA stand-in: a block has synchronised 2^24 times: races in the rest of it are not looked for\n");
  tracing = nullptr;
}
CUDA_CPU_QUIET traced_thread *trace_state_of(tracer *tr, int thread) {
  traced_thread *s = tr->threads + thread;
  if (s->block_serial != tr->tag[1]) {
    clock_drop(&s->known);
    clock_drop(&s->fenced);
    clock_drop(&s->pending);
    memset(s, 0, sizeof *s);
    s->block_serial = tr->tag[1];
  }
  return s;
}

__attribute__((noinline)) CUDA_CPU_QUIET bool heard_of(tracer *tr, access_mark m) {
  const int t = tr->of->current, u = thread_of(m);
  clock_map *mine = tr->any_known ? trace_state_of(tr, t)->known : nullptr;
  uint64_t one = clock_key(block_of(m), u), all = clock_key(block_of(m), -1);
  return time_of(m) <= clock_get(tr->block_known, one) || time_of(m) <= clock_get(tr->block_known, all) ||
         time_of(m) <= clock_get(mine, one) || time_of(m) <= clock_get(mine, all);
}
/* Does what the mark stands for happen before what the running thread does now? */
CUDA_CPU_FAST bool happened_before(tracer *tr, access_mark m) {
  if (block_of(m) == block_of(tr->me)) {
    const int t = thread_of(tr->me), u = thread_of(m);
    if (t == u || time_of(m) <= tr->last_barrier) return true;
    if (tr->lanes_used && (t ^ u) < 32 && time_of(m) <= tr->lane_time[t][u % 32]) return true;
  }
  return (tr->any_known || tr->block_known) && heard_of(tr, m);
}

CUDA_CPU_QUIET void trace_barrier(worker *w) {
  tracer *tr = tracing;
  if (!tr) return;
  if (trace.logging) count_block(w, false);
  if (tr->fences >= static_cast<unsigned>(w->count)) {
    bool all = true;
    for (int t = 0; t < w->count; t++) all = all && trace_state_of(tr, t)->fence_time > tr->last_barrier;
    for (int t = 0; all && t < w->count; t++)
      clock_raise(&tr->all_fenced, clock_key(block_of(tr->me), t), trace_state_of(tr, t)->fence_time);
  }
  tr->fences = 0;
  tr->last_barrier = tr->time;
  if (tr->any_known) {
    for (int t = 0; t < w->count; t++) {
      traced_thread *s = trace_state_of(tr, t);
      clock_join(&tr->block_known, s->known);
      clock_drop(&s->known);
    }
    tr->any_known = false;
  }
  trace_step(tr);
}

CUDA_CPU_QUIET void trace_warp_barrier(worker *, int number, unsigned lanes) {
  tracer *tr = tracing;
  if (!tr) return;
  if (!tr->lanes_used) memset(tr->lane_time, 0, sizeof tr->lane_time);
  tr->lanes_used = true;
  uint32_t heard[32] = {};
  clock_map *known = nullptr;
  for (unsigned m = lanes; m; m &= m - 1) {
    int t = number * 32 + __builtin_ctz(m);
    tr->lane_time[t][t % 32] = tr->time;
    for (int i = 0; i < 32; i++) heard[i] = heard[i] > tr->lane_time[t][i] ? heard[i] : tr->lane_time[t][i];
    if (tr->any_known) clock_join(&known, trace_state_of(tr, t)->known);
  }
  for (unsigned m = lanes; m; m &= m - 1) {
    int t = number * 32 + __builtin_ctz(m);
    memcpy(tr->lane_time[t], heard, sizeof heard);
    if (known) clock_share(&trace_state_of(tr, t)->known, known);
  }
  clock_drop(&known);
  trace_step(tr);
}

CUDA_CPU_QUIET void trace_fence() {
  tracer *tr = tracing;
  if (!tr) return;
  int t = tr->of->current;
  traced_thread *s = trace_state_of(tr, t);
  if (s->pending) {
    clock_join(&s->known, s->pending);
    clock_drop(&s->pending);
    tr->any_known = true;
  }
  s->fence_time = tr->time;
  s->fence_all = tr->last_barrier;
  clock_share(&s->fenced, tr->block_known);
  clock_join(&s->fenced, s->known);
  if (tr->lanes_used) memcpy(tr->fenced_lane_time[t], tr->lane_time[t], sizeof tr->lane_time[t]);
  tr->fences++;
  trace_step(tr);
}

/* --- signals --- */

CUDA_CPU_QUIET sync_word *sync_place(uintptr_t address) {
  size_t i = (address * 0x9e3779b97f4a7c15u >> 20) & (trace.word_capacity - 1);
  while (trace.words[i].address && trace.words[i].address != address) i = (i + 1) & (trace.word_capacity - 1);
  return trace.words + i;
}
CUDA_CPU_QUIET void trace_acquire(tracer *tr, uintptr_t address) {
  if (!trace.word_count) return;
  sync_word *s = sync_place(address);
  if (s->address) clock_join(&trace_state_of(tr, tr->of->current)->pending, s->clock);
}
CUDA_CPU_QUIET void trace_release(tracer *tr, uintptr_t address, bool update) {
  int t = tr->of->current;
  traced_thread *from = trace_state_of(tr, t);
  uint32_t all = from->fence_all;
  bool signals = from->fence_time || tr->all_fenced;
  if (!signals && (update || !trace.word_count)) return;
  if (trace.word_count * 2 >= trace.word_capacity) {
    size_t old_capacity = trace.word_capacity;
    sync_word *old = trace.words;
    trace.word_capacity = old_capacity ? old_capacity * 2 : 64;
    trace.words = static_cast<sync_word *>(calloc(trace.word_capacity, sizeof(sync_word)));
    if (!trace.words) trace_no_memory();
    for (size_t i = 0; i < old_capacity; i++)
      if (old[i].address) *sync_place(old[i].address) = old[i];
    free(old);
  }
  sync_word *s = sync_place(address);
  if (!s->address && !signals) return;
  trace.word_count += !s->address;
  s->address = address;
  if (!update) clock_drop(&s->clock); /* a plain store breaks the chain */
  if (!signals) return;
  uint64_t block = block_of(tr->me);
  clock_join(&s->clock, from->fenced);
  clock_join(&s->clock, tr->all_fenced);
  clock_raise(&s->clock, clock_key(block, -1), all);
  clock_raise(&s->clock, clock_key(block, t), from->fence_time);
  if (!tr->lanes_used || !from->fence_time) return;
  for (int i = 0; i < 32; i++)
    if (tr->fenced_lane_time[t][i] > all)
      clock_raise(&s->clock, clock_key(block, t / 32 * 32 + i), tr->fenced_lane_time[t][i]);
}

CUDA_CPU_QUIET void note(hint *list, unsigned count, unsigned *next, uint64_t key, uint32_t time) {
  hint *place = nullptr;
  for (unsigned i = 0; i < count && !place; i++)
    if (list[i].key == key) place = list + i;
  if (!place) place = list + (*next)++ % count;
  if (place->key != key || place->time < time) *place = hint{key, time};
}
/* The thread has seen a signal by this writer, ordered or not. */
CUDA_CPU_QUIET void trace_saw(tracer *tr, access_mark writer) {
  traced_thread *s = trace_state_of(tr, tr->of->current);
  uint64_t key = clock_key(block_of(writer), thread_of(writer));
  note(s->seen, 4, &s->next_seen, key, time_of(writer));
  note(tr->seen, 16, &tr->next_seen, key, time_of(writer));
}
CUDA_CPU_QUIET bool has_seen(const hint *h, int count, access_mark earlier) {
  for (int i = 0; i < count; i++)
    if (h[i].key == clock_key(block_of(earlier), thread_of(earlier)) && h[i].time >= time_of(earlier)) return true;
  return false;
}

/* --- reports --- */

CUDA_CPU_QUIET void add_variable(text *what, tracer *tr, uintptr_t address) {
  const char *p = reinterpret_cast<const char *>(address);
  if (p >= tr->of->shared && p < tr->of->shared + shared_capacity) {
    add(what, "byte %zu of the dynamic shared memory", static_cast<size_t>(p - tr->of->shared));
    return;
  }
  const symbol_table *t = symbols();
  for (int i = 0; i < t->shared_count; i++) {
    const char *base = shared_address(t->shared[i]);
    if (p < base || p >= base + t->shared[i].size) continue;
    char name[512];
    plain_name(t->shared[i].name, name, sizeof name);
    const char *last = name; /* of "void kernel<int>(int*)::tile" */
    for (const char *c = name; *c; c++)
      if (c[0] == ':' && c[1] == ':') last = c + 2;
    add(what, "byte %zu of __shared__ %s", static_cast<size_t>(p - base), last);
    return;
  }
  if (const symbol *v = symbol_around(t->variables, t->variable_count, address)) {
    char name[512];
    plain_name(v->name, name, sizeof name);
    add(what, "byte %zu of %s", static_cast<size_t>(address - v->address), name);
    return;
  }
  text where = {};
  describe_device_address(&where, address);
  if (where.length)
    add(what, "%s", where.buffer + strspn(where.buffer, "\n "));
  else
    add(what, "address 0x%zx", static_cast<size_t>(address));
}

CUDA_CPU_QUIET void add_who(text *what, tracer *tr, access_mark m) {
  const dim3 &g = tr->of->job->grid;
  uint64_t b = block_of(m);
  uint3 i = thread_index(tr->of->job->block, thread_of(m));
  add(what, "block (%u,%u,%u) thread (%u,%u,%u)", static_cast<unsigned>(b % g.x), static_cast<unsigned>(b / g.x % g.y),
      static_cast<unsigned>(b / g.x / g.y), i.x, i.y, i.z);
}

CUDA_CPU_QUIET uint64_t text_hash(const char *t, uint64_t hash) {
  for (; *t; t++) hash = (hash ^ static_cast<unsigned char>(*t)) * 0x100000001b3u;
  return hash;
}

enum race_kind {
  unordered,
  late_signal, /* the words of a signal in the wrong order */
  as_in_step,  /* lanes exchange data through volatile words */
  unwritten    /* `before` reads it, if anything does, and `me` has what comes of it */
};
struct race {
  access_mark before, me;
  uint32_t there, here;
  const char *did, *does; /* "write", "read", "atomic update" ...; did: NULL if there is but one access */
  uintptr_t address;
  race_kind kind;
};

CUDA_CPU_QUIET bool is_known_race(uint32_t here, uint32_t there) {
  for (int i = 0; i < trace.seen_count; i++)
    if (trace.seen[i].here == here && trace.seen[i].there == there) return true;
  return false;
}
/* Whether a place, FILE:LINE, is in the same file as another one and on an earlier line. */
static bool is_earlier_line(const char *place, const char *other) {
  const char *colon = strrchr(place, ':');
  if (!colon || strncmp(place, other, static_cast<size_t>(colon - place) + 1)) return false;
  return atoi(colon + 1) < atoi(other + (colon - place) + 1);
}

__attribute__((noinline, cold)) CUDA_CPU_QUIET void report_race(tracer *tr, const race &r) {
  trace.races++;
  if (is_known_race(r.here, r.there)) return;
  text what = {};
  char kernel_name[512];
  const launch *job = tr->of->job;
  symbol_name(job->kernel, kernel_name, sizeof kernel_name);
  add(&what, "CUDA stand-in: %s in kernel %s, grid (%u,%u,%u), block (%u,%u,%u)\n  on ",
      r.kind == unwritten ? "read of what nothing has written" : "race", kernel_name, job->grid.x, job->grid.y,
      job->grid.z, job->block.x, job->block.y, job->block.z);
  text variable = {};
  add_variable(&variable, tr, r.address);
  add(&what, "%s", variable.buffer);
  if (trace.seen_count == 64) return;
  trace.seen[trace.seen_count++] = race_seen{r.here, r.there};
  text there = {}, here = {};
  if (r.did) add_place(&there, r.there);
  add_place(&here, r.here);
  /* Other instances of a template have other places in the code, but the same lines. A line may race on several
   * variables, and read what nothing has written. */
  uint64_t lines = text_hash(there.buffer, text_hash(here.buffer, r.kind));
  if (const char *name = strstr(variable.buffer, " of ")) lines = text_hash(name, lines);
  for (int i = 0; i < trace.reports; i++)
    if (trace.told[i] == lines) return;
  if (trace.reports == 20) {
    trace.more = true;
    return;
  }
  trace.told[trace.reports++] = lines;
  if (r.did) {
    add(&what, "\n    %s by ", r.did);
    add_who(&what, tr, r.before);
    add(&what, ", %s", there.buffer);
  }
  add(&what, "\n    %s by ", r.does);
  add_who(&what, tr, r.me);
  add(&what, ", %s", here.buffer);
  bool same_block = block_of(r.before) == block_of(r.me);
  const traced_thread *s = trace_state_of(tr, thread_of(r.me));
  if (r.kind == unwritten)
    add(&what, "\n  it holds what was in the memory before: on a GPU any value, often zero");
  else if (r.kind == as_in_step)
    add(&what, "\n  threads of a warp need not run in step, and volatile does not make them: a __syncwarp() or"
               "\n  __syncthreads() is missing between");
  else if (r.kind == unordered && !strcmp(r.did, "atomic update") != !strcmp(r.does, "atomic update"))
    add(&what, "\n  one of the two is no atomic: if no barrier belongs between, it has to be one, too. A value that "
               "only begins"
               "\n  a loop of atomicCAS() may be read through a pointer to volatile");
  else if (r.kind == late_signal || has_seen(s->seen, 4, r.before) || has_seen(tr->seen, 16, r.before))
    add(&what, "\n  a signal was passed, but a __threadfence() is missing: between the write and its signal, or between"
               "\n  the reading of the signal and what relies on it");
  else if (!same_block)
    add(&what,
        "\n  blocks of a launch run in any order: use an atomic, a second launch, or a signal with a __threadfence()"
        "\n  before it and one after it has been read");
  else {
    const bool same_warp = thread_of(r.before) / 32 == thread_of(r.me) / 32;
    add(&what, same_warp
                   ? "\n  threads of a warp need not run in step: a __syncwarp() or __syncthreads() is missing between"
                   : "\n  nothing orders these two: a __syncthreads() is missing between");
    if (same_warp && !strcmp(there.buffer, here.buffer))
      add(&what, ", or, where\n  all of them update it, an atomic such as atomicAdd()");
    if (r.did && is_earlier_line(here.buffer, there.buffer))
      add(&what, "\n  the second one is earlier in the source: in a loop, the barrier belongs at the end of a round");
  }
  add_schedule(&what, tr->of->settings);
  fprintf(stderr, "%s\n", what.buffer);
}

/* --- accesses --- */

/* access_words: a structure as a whole, of which a GPU moves each word for itself */
enum {
  access_read = 0,
  access_write = 1,
  access_atomic = 2,
  access_update = 4,
  access_uncounted = 8,
  access_words = 16
};

CUDA_CPU_QUIET const char *did_what(int slot, access_mark m) {
  if (slot == slot_write) return "write";
  if (slot <= slot_atomic_write_too) return m & mark_update ? "atomic update" : "atomic or volatile write";
  return m & mark_atomic ? "atomic or volatile read" : "read";
}
CUDA_CPU_QUIET const char *does_what(int kind) {
  if (kind & access_update) return "atomic update";
  if (kind & access_atomic) return kind & access_write ? "atomic or volatile write" : "atomic or volatile read";
  return kind & access_write ? "write" : "read";
}

CUDA_CPU_QUIET void trace_settle(tracer *tr) {
  tr->same.is = false;
  if (!memcmp(reinterpret_cast<const void *>(tr->same.address), tr->same.value, tr->same.size)) return; /* no race */
  report_race(tr, race{tr->same.before, tr->same.me, tr->same.there, tr->same.here, "write", "write", tr->same.address,
                       unordered});
}

/* An atomic update right after a fence, which the running thread knows as a signal: by the order of the word's values it
 * comes before what this thread does now, as when the last block sets the counter of finished blocks to 0. */
__attribute__((noinline)) CUDA_CPU_QUIET bool was_signal(tracer *tr, access_mark m) {
  const uint64_t one = clock_key(block_of(m), thread_of(m));
  const traced_thread *s = trace_state_of(tr, tr->of->current);
  const uint32_t fence = time_of(m) - 1;
  return (m & mark_update) && fence &&
         (fence <= clock_get(s->pending, one) || fence <= clock_get(s->known, one) ||
          fence <= clock_get(tr->block_known, one));
}

/* The slot's access against this one. */
__attribute__((noinline)) CUDA_CPU_QUIET void conflict(tracer *tr, cell *c, int slot, int kind, uint32_t here,
                                                       uintptr_t address, unsigned size) {
  if (slot != slot_write && was_signal(tr, c->who[slot])) return;
  if (slot == slot_write && kind == access_write) {
    if (is_known_race(here, c->where[slot])) return;
    tr->same.is = true;
    tr->same.before = c->who[slot];
    tr->same.me = tr->me;
    tr->same.there = c->where[slot];
    tr->same.here = here;
    tr->same.address = address;
    tr->same.size = size;
    for (unsigned i = 0; i < size; i++)
      tr->same.value[i] = reinterpret_cast<const volatile unsigned char *>(address)[i];
    return;
  }
  report_race(tr, race{c->who[slot], tr->me, c->where[slot], here, did_what(slot, c->who[slot]), does_what(kind),
                       address, unordered});
}

CUDA_CPU_FAST void look(tracer *tr, cell *c, int slot, int kind, uint32_t here, uintptr_t address, unsigned size) {
  if (c->who[slot] && !happened_before(tr, c->who[slot])) conflict(tr, c, slot, kind, here, address, size);
}

/* One access of what one cell stands for. */
CUDA_CPU_FAST void visit(tracer *tr, cell *c, bool shared, int kind, uint32_t here, uintptr_t address, unsigned size) {
  if ((c->tag & ~tag_split) != tr->tag[shared]) {
    if (c->tag == tag_ignored) return;
    memset(c->who, 0, sizeof c->who);
    c->tag = tr->tag[shared];
  }
  access_mark me = tr->me;
  if (kind == access_write) {
    if (c->who[slot_write] == me && !c->who[slot_read]) return;
    for (int slot = 0; slot < slots; slot++) look(tr, c, slot, kind, here, address, size);
    memset(c->who + slot_atomic_write, 0, (slots - slot_atomic_write) * sizeof *c->who);
    c->who[slot_write] = me;
    c->where[slot_write] = here;
    return;
  }
  int slot;
  if (kind == access_read) {
    if (c->who[slot_read] == me || c->who[slot_read_too] == me) return;
    look(tr, c, slot_write, kind, here, address, size);
    look(tr, c, slot_atomic_write, kind, here, address, size);
    look(tr, c, slot_atomic_write_too, kind, here, address, size);
  } else {
    look(tr, c, slot_write, kind, here, address, size);
    access_mark w = c->who[slot_atomic_write];
    if (kind != (access_write | access_atomic)) {
      /* A word, once read as a signal, that names a writer; then a word that the same thread wrote before that one. */
      bool stranger = w && !happened_before(tr, w);
      if (stranger && kind == access_atomic && !(w & mark_update) &&
          has_seen(trace_state_of(tr, tr->of->current)->seen, 4, w + 1))
        report_race(tr, race{w, me, c->where[slot_atomic_write], here, "volatile write", "volatile read", address,
                             late_signal});
      if (stranger) trace_saw(tr, w);
    }
    me |= mark_atomic;
    if (kind & (access_write | access_update)) {
      for (int i = slot_read; i <= slot_read_too; i++)
        if (!(c->who[i] & mark_atomic))
          look(tr, c, i, kind, here, address, size);
        else if (c->who[i] == me) /* the volatile read that began a loop of atomicCAS() */
          c->who[i] = 0;
      if (w && !happened_before(tr, w)) {
        c->who[slot_atomic_write_too] = w;
        c->where[slot_atomic_write_too] = c->where[slot_atomic_write];
      }
      c->who[slot_atomic_write] = me | (kind & access_update ? mark_update : 0);
      c->where[slot_atomic_write] = here;
      return;
    }
  }
  /* A read: instead of one that happened before it, else in a free place, else instead of one of the same block. */
  access_mark a = c->who[slot_read], b = c->who[slot_read_too];
  bool atomic = me & mark_atomic;
  if (atomic && ((a && !(a & mark_atomic)) || (b && !(b & mark_atomic)))) return; /* plain reads tell more */
  if (!a || happened_before(tr, a))
    slot = slot_read;
  else if (!b || happened_before(tr, b) || (block_of(a) == block_of(b) && block_of(me) != block_of(a)))
    slot = slot_read_too;
  else
    return;
  c->who[slot] = me;
  c->where[slot] = here;
}

__attribute__((noinline)) CUDA_CPU_QUIET void visit_bytes(tracer *tr, shadow_page *page, uintptr_t word, unsigned from,
                                                          unsigned to, int kind, uint32_t here) {
  size_t i = (word >> 2) & (page_words - 1);
  cell *c = page->words + i, *bytes = page->bytes + 4 * i;
  if (c->tag == tag_ignored) return;
  const bool shared = is_shared(page, word);
  if (c->tag != (tr->tag[shared] | tag_split)) {
    bool current = c->tag == tr->tag[shared];
    for (int k = 0; k < 4; k++) {
      if (current)
        bytes[k] = *c;
      else
        bytes[k].tag = 0;
    }
    c->tag = tr->tag[shared] | tag_split;
  }
  for (unsigned k = from; k < to; k++) visit(tr, bytes + k, shared, kind, here, word + k, 1);
}

CUDA_CPU_QUIET bool was_written(tracer *tr, uintptr_t word) {
  const shadow_page *page = trace.pages[word >> page_shift];
  if (!page) return true;
  const size_t i = (word >> 2) & (page_words - 1);
  const cell *c = page->words + i;
  if (c->tag == tag_ignored) return true;
  if (!is_shared(page, word)) return page->written[i >> 3] >> (i & 7) & 1;
  if ((c->tag & ~tag_split) != tr->tag[1]) return false;
  if (!(c->tag & tag_split)) return c->who[slot_write] || c->who[slot_atomic_write];
  for (const cell *b = page->bytes + 4 * i, *end = b + 4; b < end; b++)
    if (b->tag == tr->tag[1] && (b->who[slot_write] || b->who[slot_atomic_write])) return true;
  return false;
}
__attribute__((noinline)) CUDA_CPU_QUIET void look_for_unwritten(tracer *tr, uintptr_t address, size_t size, int kind,
                                                                 uint32_t here) {
  for (uintptr_t word = address & ~uintptr_t{3}; word < address + size; word += 4)
    if (*reinterpret_cast<const volatile uint32_t *>(word) != static_cast<uint32_t>(poison_pattern) ||
        was_written(tr, word))
      return;
  if (kind & access_update || !is_shared(trace.pages[address >> page_shift], address))
    return report_race(tr, race{0, tr->me, 0, here, nullptr, does_what(kind), address, unwritten});
  for (int i = 0; i < tr->suspect_count; i++)
    if (tr->suspects[i].where == here) return;
  if (tr->suspect_count < 8) tr->suspects[tr->suspect_count++] = {tr->me, here, address};
}
__attribute__((noinline)) CUDA_CPU_QUIET void trace_stored(tracer *tr) {
  const auto stored = tr->store;
  tr->store.size = 0;
  for (uintptr_t word = stored.address; word < stored.address + stored.size; word += 4) {
    if ((*reinterpret_cast<const volatile uint32_t *>(word) & 0x7fffffff) != static_cast<uint32_t>(poison_pattern))
      continue;
    for (int i = 0; i < tr->suspect_count; i++)
      report_race(tr, race{tr->suspects[i].who, stored.who, tr->suspects[i].where, stored.where, "read", "store of it",
                           tr->suspects[i].address, unwritten});
    return;
  }
}

__attribute__((noinline)) CUDA_CPU_QUIET void trace_words(tracer *tr, uintptr_t address, size_t size, int kind,
                                                          uint32_t here) {
  for (uintptr_t end = address + size, word = address & ~uintptr_t{3}; word < end; word += 4) {
    shadow_page *page = trace.pages[word >> page_shift];
    if (!page) continue;
    cell *c = page->words + ((word >> 2) & (page_words - 1));
    bool whole = word >= address && word + 4 <= end, shared = is_shared(page, word);
    if (kind & (access_write | access_update)) mark_written(page, word, true);
    if (whole && c->tag != (tr->tag[shared] | tag_split))
      visit(tr, c, shared, kind, here, word, 4);
    else
      visit_bytes(tr, page, word, word < address ? static_cast<unsigned>(address - word) : 0,
                  word + 4 > end ? static_cast<unsigned>(end - word) : 4, kind, here);
  }
}

/* A copy of a struct is told as a store and then a load of that size, before either is done: then the store is looked at
 * one access later. */
CUDA_CPU_FAST bool is_source_of_store(tracer *tr, size_t size, int kind) {
  const bool source = !tr->store.waited && !(kind & (access_write | access_update)) && size == tr->store.size;
  tr->store.waited = source;
  return source;
}

CUDA_CPU_FAST void trace_access(uintptr_t address, size_t size, int kind, const void *pc) {
  tracer *tr = tracing;
  if (!tr) return;
  shadow_page *page = trace.pages[address >> page_shift];
  if (!page) return;
  if (tr->same.is) trace_settle(tr);
  if (tr->store.size && !is_source_of_store(tr, size, kind)) trace_stored(tr);
  uint32_t here = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pc) - trace.base);
  cell *c = page->words + ((address >> 2) & (page_words - 1));
  const bool shared = is_shared(page, address);
  if (trace.logging && c->tag != tag_ignored && !(kind & access_uncounted)) {
    const unsigned char as = static_cast<unsigned char>(kind & access_update ? 2 : kind & access_write);
    const bool words = kind & access_words && !(address & 3) && !(size & 3);
    for (size_t done = 0; done < size; done += words ? 4 : size)
      log_access(tr, address + done, words ? 4 : size, as, shared, here);
  }
  const bool looks = !(kind & (access_write | access_uncounted));
  kind &= ~(access_uncounted | access_words);
  if (looks &&
      *reinterpret_cast<const volatile uint32_t *>(address & ~uintptr_t{3}) == static_cast<uint32_t>(poison_pattern))
    look_for_unwritten(tr, address, size, kind, here);
  if (kind & (access_write | access_update)) {
    mark_written(page, address, true);
    if (tr->suspect_count && !shared && c->tag != tag_ignored && !(address & 3))
      tr->store = {tr->me, here, address, size, false};
  }
  if (size == 4 && !(address & 3) && c->tag != (tr->tag[shared] | tag_split))
    visit(tr, c, shared, kind, here, address, 4);
  else
    trace_words(tr, address, size, kind, here);
}

/* An atomic or volatile access. */
__attribute__((noinline)) CUDA_CPU_QUIET void trace_signal(uintptr_t address, size_t size, int kind, const void *pc) {
  tracer *tr = tracing;
  if (!tr || !trace.pages[address >> page_shift]) return;
  if (kind == access_read) atomic_point(); /* a thread that polls a volatile lets others run */
  trace_access(address, size, kind | access_atomic, pc);
  kind &= ~access_uncounted;
  if (kind != access_write) trace_acquire(tr, address);
  if (kind != access_read) trace_release(tr, address, kind & access_update);
  if (kind == access_write) trace_step(tr); /* so that what it wrote before this is known to be earlier */
}

/* Data that lanes exchange as if they ran in step, and no flag: a store by which several lanes write a word each, no
 * fence before it, and another lane that reads such a word. */
CUDA_CPU_QUIET volatile_store *volatile_store_at(tracer *tr, uint32_t here) {
  const int warp = thread_of(tr->me) / 32;
  volatile_store *s = tr->volatile_stores + (here * 31 + static_cast<uint32_t>(warp)) % 256;
  const bool same = s->here == here && s->block_serial == tr->tag[1] && thread_of(s->who) / 32 == warp;
  if (!same) *s = volatile_store{0, tr->tag[1], here, 0, false};
  return s;
}
CUDA_CPU_QUIET bool by_other_lane(tracer *tr, access_mark m) {
  return m && thread_of(m) != thread_of(tr->me) && !happened_before(tr, m);
}
CUDA_CPU_QUIET void trace_in_step(tracer *tr, uintptr_t address, bool writes, uint32_t here) {
  const int t = thread_of(tr->me);
  volatile_word *v = tr->volatile_words + (address / 4 + static_cast<uintptr_t>(t / 32) * 37) % 1024;
  const bool same = v->address == address && v->block_serial == tr->tag[1] && v->warp == t / 32;
  if (!same) *v = volatile_word{address, tr->tag[1], 0, {}, t / 32, 0, {}};
  if (!writes) {
    if (by_other_lane(tr, v->write) && volatile_store_at(tr, v->wrote_at)->several)
      report_race(tr,
                  race{v->write, tr->me, v->wrote_at, here, "volatile write", "volatile read", address, as_in_step});
    const int slot = v->read[0] && thread_of(v->read[0]) != t;
    v->read[slot] = tr->me;
    v->read_at[slot] = here;
    return;
  }
  volatile_store *s = volatile_store_at(tr, here);
  if (!s->who || happened_before(tr, s->who))
    *s = volatile_store{address, tr->tag[1], here, tr->me, s->several && thread_of(s->who) == t};
  s->several = s->several || (thread_of(s->who) != t && s->address != address);
  const bool signals = trace_state_of(tr, t)->fence_time > tr->last_barrier;
  for (int i = 0; i < 2 && s->several && !signals; i++)
    if (by_other_lane(tr, v->read[i]))
      report_race(
          tr, race{v->read[i], tr->me, v->read_at[i], here, "volatile read", "volatile write", address, as_in_step});
  v->write = signals ? 0 : tr->me;
  v->wrote_at = here;
}
__attribute__((noinline)) CUDA_CPU_QUIET void trace_volatile(uintptr_t address, size_t size, int kind, const void *pc) {
  trace_signal(address, size, kind, pc);
  if (tracing && trace.pages[address >> page_shift])
    trace_in_step(tracing, address, kind == access_write,
                  static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pc) - trace.base));
}

/* --- launches, blocks and memory --- */

CUDA_CPU_QUIET void trace_memory(const void *start, size_t bytes) {
  trace_take_turn();
  trace_register(start, bytes, false);
  trace_give_turn();
}
CUDA_CPU_QUIET void trace_written(const void *start, size_t bytes) {
  trace_take_turn();
  const uintptr_t low = reinterpret_cast<uintptr_t>(start);
  for (uintptr_t p = low & ~uintptr_t{3}; trace.pages && p < low + bytes; p += 4)
    if (shadow_page *page = trace.pages[p >> page_shift])
      mark_written(page, p, true);
    else
      p |= (uintptr_t{1} << page_shift) - 4;
  trace_give_turn();
}
CUDA_CPU_QUIET void trace_memory_goes(const void *start, size_t bytes) {
  trace_take_turn();
  trace_forget(start, bytes);
  trace_give_turn();
}

CUDA_CPU_QUIET void trace_thread(worker *) {
  if (tracing) trace_me(tracing);
}

/* Accesses from before and after it are as far apart as those of two launches. */
CUDA_CPU_QUIET void trace_grid_barrier() {
  tracer *tr = tracing;
  if (tr && ++tr->tag[0] > trace.serial) trace.serial = tr->tag[0];
}
CUDA_CPU_QUIET void trace_take_turn() {
  turn_queue &q = trace.turn;
  pthread_mutex_lock(&q.mutex);
  const unsigned mine = q.asked++;
  while (q.given != mine) pthread_cond_wait(&q.place[mine % 16].comes, &q.mutex);
  pthread_mutex_unlock(&q.mutex);
}
CUDA_CPU_QUIET void trace_give_turn() {
  turn_queue &q = trace.turn;
  pthread_mutex_lock(&q.mutex);
  pthread_cond_broadcast(&q.place[++q.given % 16].comes);
  pthread_mutex_unlock(&q.mutex);
}

CUDA_CPU_QUIET void trace_drop(worker *w) {
  trace_take_turn();
  for (int t = 0; t < 1024; t++) {
    clock_drop(&w->tracer->threads[t].known);
    clock_drop(&w->tracer->threads[t].fenced);
    clock_drop(&w->tracer->threads[t].pending);
  }
  clock_drop(&w->tracer->block_known);
  clock_drop(&w->tracer->all_fenced);
  drop_logs(w->tracer);
  trace_forget(w->shared, shared_capacity);
  const symbol_table *const table = symbols();
  for (int i = 0; i < table->shared_count; i++) trace_forget(shared_address(table->shared[i]), table->shared[i].size);
  trace_give_turn();
  munmap(w->tracer, sizeof(tracer));
}

CUDA_CPU_QUIET void trace_worker(worker *w) {
  if (w->tracer) return;
  trace.base = symbols()->base;
  w->tracer = static_cast<tracer *>(trace_reserve(sizeof(tracer)));
  w->tracer->of = w;
  trace_register(w->shared, shared_capacity, true);
  const symbol_table *t = symbols();
  for (int i = 0; i < t->shared_count; i++) trace_register(shared_address(t->shared[i]), t->shared[i].size, true);
  for (size_t i = 0; i < t->variable_count; i++)
    trace_register(reinterpret_cast<void *>(t->variables[i].address), t->variables[i].size, false);
}

CUDA_CPU_QUIET void trace_launch(const launch *job) {
  if (job->blocks > mark_blocks)
    fprintf(stderr, "CUDA stand-in: the race checker names the blocks of a grid modulo 2^28\n");
  for (size_t i = 0; i < trace.word_capacity; i++) clock_drop(&trace.words[i].clock);
  if (trace.word_capacity) memset(trace.words, 0, trace.word_capacity * sizeof *trace.words);
  trace.word_count = 0;
  trace.serial++;
  count_launch(job);
}

CUDA_CPU_QUIET void trace_block(worker *w, const launch *job, uint3 index) {
  tracer *tr = w->tracer;
  const dim3 &g = job->grid;
  uint64_t number = index.x + static_cast<uint64_t>(g.x) * (index.y + static_cast<uint64_t>(g.y) * index.z);
  tr->me = (number & (mark_blocks - 1)) << mark_block_shift;
  tr->tag[0] = trace.serial;
  tr->tag[1]++;
  tr->time = 1;
  tr->last_barrier = tr->fences = 0;
  tr->lanes_used = tr->any_known = false;
  tr->suspect_count = 0;
  clock_drop(&tr->block_known);
  clock_drop(&tr->all_fenced);
  memset(tr->seen, 0, sizeof tr->seen);
  tracing = tr;
}
CUDA_CPU_QUIET void trace_block_end() {
  if (tracing && tracing->same.is) trace_settle(tracing);
  if (tracing && tracing->store.size) trace_stored(tracing);
  if (tracing && trace.logging) count_block(tracing->of, true);
  tracing = nullptr;
}

CUDA_CPU_RARE void list_races() { /* a program with races does not succeed */
  if (!trace.races) return;
  fprintf(stderr, "CUDA stand-in: %llu accesses raced, or read what nothing has written, at %d places%s\n", trace.races,
          trace.reports, trace.more ? " and more" : "");
  fflush(nullptr);
  _exit(66);
}

} // namespace cuda_cpu

CUDA_CPU_ENTRY unsigned long long cuda_cpu_take_races() {
  unsigned long long n = cuda_cpu::trace.races;
  cuda_cpu::trace.races = 0;
  cuda_cpu::trace.reports = cuda_cpu::trace.seen_count = 0;
  cuda_cpu::trace.more = false;
  return n;
}

/* --- what the compiler calls --- */

#ifndef CUDA_CPU_ELSEWHERE
#define CUDA_CPU_HOOK extern "C" __attribute__((used)) CUDA_CPU_QUIET
#define CUDA_CPU_PC __builtin_return_address(0)

CUDA_CPU_HOOK void __tsan_init() {}
CUDA_CPU_HOOK void __tsan_func_entry(void *) {}
CUDA_CPU_HOOK void __tsan_func_exit() {}
CUDA_CPU_HOOK void __tsan_vptr_update(void **, void *) {}
CUDA_CPU_HOOK void __tsan_vptr_read(void **) {}

#define CUDA_CPU_ACCESSES(bytes)                                                                                       \
  CUDA_CPU_HOOK void __tsan_read##bytes(void *p) {                                                                     \
    cuda_cpu::trace_access(reinterpret_cast<uintptr_t>(p), bytes, cuda_cpu::access_read, CUDA_CPU_PC);                 \
  }                                                                                                                    \
  CUDA_CPU_HOOK void __tsan_write##bytes(void *p) {                                                                    \
    cuda_cpu::trace_access(reinterpret_cast<uintptr_t>(p), bytes, cuda_cpu::access_write, CUDA_CPU_PC);                \
  }                                                                                                                    \
  CUDA_CPU_HOOK void __tsan_unaligned_read##bytes(void *p) {                                                           \
    cuda_cpu::trace_access(reinterpret_cast<uintptr_t>(p), bytes, cuda_cpu::access_read | cuda_cpu::access_words,      \
                           CUDA_CPU_PC);                                                                               \
  }                                                                                                                    \
  CUDA_CPU_HOOK void __tsan_unaligned_write##bytes(void *p) {                                                          \
    cuda_cpu::trace_access(reinterpret_cast<uintptr_t>(p), bytes, cuda_cpu::access_write | cuda_cpu::access_words,     \
                           CUDA_CPU_PC);                                                                               \
  }                                                                                                                    \
  CUDA_CPU_HOOK void __tsan_volatile_read##bytes(void *p) {                                                            \
    cuda_cpu::trace_volatile(reinterpret_cast<uintptr_t>(p), bytes, cuda_cpu::access_read, CUDA_CPU_PC);               \
  }                                                                                                                    \
  CUDA_CPU_HOOK void __tsan_volatile_write##bytes(void *p) {                                                           \
    cuda_cpu::trace_volatile(reinterpret_cast<uintptr_t>(p), bytes, cuda_cpu::access_write, CUDA_CPU_PC);              \
  }
CUDA_CPU_ACCESSES(1)
CUDA_CPU_ACCESSES(2)
CUDA_CPU_ACCESSES(4)
CUDA_CPU_ACCESSES(8)
CUDA_CPU_ACCESSES(16)
#undef CUDA_CPU_ACCESSES

CUDA_CPU_HOOK void __tsan_read_range(void *p, size_t bytes) {
  cuda_cpu::trace_access(reinterpret_cast<uintptr_t>(p), bytes, cuda_cpu::access_read | cuda_cpu::access_words,
                         CUDA_CPU_PC);
}
CUDA_CPU_HOOK void __tsan_write_range(void *p, size_t bytes) {
  cuda_cpu::trace_access(reinterpret_cast<uintptr_t>(p), bytes, cuda_cpu::access_write | cuda_cpu::access_words,
                         CUDA_CPU_PC);
}

/* Calls of memcpy, memmove and memset: clang from 15 on calls __tsan_memcpy for them; else they are seen if the program
 * is linked with -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset. */
#ifdef __APPLE__ /* whose linker has no --wrap */
#define CUDA_CPU_REAL(name) name
#else
#define CUDA_CPU_REAL(name) __real_##name
extern "C" {
void *__real_memcpy(void *to, const void *from, size_t bytes) __attribute__((weak));
void *__real_memmove(void *to, const void *from, size_t bytes) __attribute__((weak));
void *__real_memset(void *to, int value, size_t bytes) __attribute__((weak));
}
#endif
/* clang copies a float4 like this, too. */
#define CUDA_CPU_AS(bytes) (bytes == 16 ? 0 : cuda_cpu::access_words)
#define CUDA_CPU_COPY_HOOK(hook, name)                                                                                 \
  CUDA_CPU_HOOK void *hook(void *to, const void *from, size_t bytes) {                                                 \
    cuda_cpu::trace_access(reinterpret_cast<uintptr_t>(from), bytes, cuda_cpu::access_read | CUDA_CPU_AS(bytes),       \
                           CUDA_CPU_PC);                                                                               \
    cuda_cpu::trace_access(reinterpret_cast<uintptr_t>(to), bytes, cuda_cpu::access_write | CUDA_CPU_AS(bytes),        \
                           CUDA_CPU_PC);                                                                               \
    return CUDA_CPU_REAL(name)(to, from, bytes);                                                                       \
  }
#define CUDA_CPU_FILL_HOOK(name)                                                                                       \
  CUDA_CPU_HOOK void *name(void *to, int value, size_t bytes) {                                                        \
    cuda_cpu::trace_access(reinterpret_cast<uintptr_t>(to), bytes, cuda_cpu::access_write | CUDA_CPU_AS(bytes),        \
                           CUDA_CPU_PC);                                                                               \
    return CUDA_CPU_REAL(memset)(to, value, bytes);                                                                    \
  }
CUDA_CPU_COPY_HOOK(__wrap_memcpy, memcpy)
CUDA_CPU_COPY_HOOK(__wrap_memmove, memmove)
CUDA_CPU_COPY_HOOK(__tsan_memcpy, memcpy)
CUDA_CPU_COPY_HOOK(__tsan_memmove, memmove)
CUDA_CPU_FILL_HOOK(__wrap_memset)
CUDA_CPU_FILL_HOOK(__tsan_memset)
#undef CUDA_CPU_AS
#undef CUDA_CPU_REAL
#undef CUDA_CPU_COPY_HOOK
#undef CUDA_CPU_FILL_HOOK

/* These do what they stand for, too. Loads and stores are parts of the stand-in's own updates. */
#define CUDA_CPU_SIGNAL(p, kind) cuda_cpu::trace_signal(reinterpret_cast<uintptr_t>(p), sizeof *p, kind, CUDA_CPU_PC)
#define CUDA_CPU_UPDATE_HOOK(bits, name)                                                                               \
  CUDA_CPU_HOOK uint##bits##_t __tsan_atomic##bits##_##name(volatile void *a, uint##bits##_t v, int) {                 \
    volatile uint##bits##_t *p = static_cast<volatile uint##bits##_t *>(a);                                            \
    CUDA_CPU_SIGNAL(p, cuda_cpu::access_update);                                                                       \
    return __atomic_##name(p, v, __ATOMIC_SEQ_CST);                                                                    \
  }
#define CUDA_CPU_COMPARE_HOOK(bits, strength, weak)                                                                    \
  CUDA_CPU_HOOK bool __tsan_atomic##bits##_compare_exchange_##strength(volatile void *a, void *expected,               \
                                                                       uint##bits##_t v, int, int) {                   \
    volatile uint##bits##_t *p = static_cast<volatile uint##bits##_t *>(a);                                            \
    CUDA_CPU_SIGNAL(p, cuda_cpu::access_update);                                                                       \
    return __atomic_compare_exchange_n(p, static_cast<uint##bits##_t *>(expected), v, weak, __ATOMIC_SEQ_CST,          \
                                       __ATOMIC_SEQ_CST);                                                              \
  }
#define CUDA_CPU_COMPARE_VALUE_HOOK(bits)                                                                              \
  CUDA_CPU_HOOK uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile void *a, uint##bits##_t expected,   \
                                                                          uint##bits##_t v, int, int) {                \
    volatile uint##bits##_t *p = static_cast<volatile uint##bits##_t *>(a);                                            \
    CUDA_CPU_SIGNAL(p, cuda_cpu::access_update);                                                                       \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                           \
    return expected;                                                                                                   \
  }
#define CUDA_CPU_ATOMIC_HOOKS(bits)                                                                                    \
  CUDA_CPU_HOOK uint##bits##_t __tsan_atomic##bits##_load(const volatile void *a, int) {                               \
    const volatile uint##bits##_t *p = static_cast<const volatile uint##bits##_t *>(a);                                \
    CUDA_CPU_SIGNAL(p, cuda_cpu::access_read | cuda_cpu::access_uncounted);                                            \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                       \
  }                                                                                                                    \
  CUDA_CPU_HOOK void __tsan_atomic##bits##_store(volatile void *a, uint##bits##_t v, int) {                            \
    volatile uint##bits##_t *p = static_cast<volatile uint##bits##_t *>(a);                                            \
    CUDA_CPU_SIGNAL(p, cuda_cpu::access_write | cuda_cpu::access_uncounted);                                           \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                          \
  }                                                                                                                    \
  CUDA_CPU_HOOK uint##bits##_t __tsan_atomic##bits##_exchange(volatile void *a, uint##bits##_t v, int) {               \
    volatile uint##bits##_t *p = static_cast<volatile uint##bits##_t *>(a);                                            \
    CUDA_CPU_SIGNAL(p, cuda_cpu::access_update);                                                                       \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                                                \
  }                                                                                                                    \
  CUDA_CPU_UPDATE_HOOK(bits, fetch_add)                                                                                \
  CUDA_CPU_UPDATE_HOOK(bits, fetch_sub)                                                                                \
  CUDA_CPU_UPDATE_HOOK(bits, fetch_and)                                                                                \
  CUDA_CPU_UPDATE_HOOK(bits, fetch_or)                                                                                 \
  CUDA_CPU_UPDATE_HOOK(bits, fetch_xor)                                                                                \
  CUDA_CPU_COMPARE_HOOK(bits, strong, false)                                                                           \
  CUDA_CPU_COMPARE_HOOK(bits, weak, true)                                                                              \
  CUDA_CPU_COMPARE_VALUE_HOOK(bits)
CUDA_CPU_ATOMIC_HOOKS(8)
CUDA_CPU_ATOMIC_HOOKS(16)
CUDA_CPU_ATOMIC_HOOKS(32)
CUDA_CPU_ATOMIC_HOOKS(64)
#undef CUDA_CPU_ATOMIC_HOOKS
#undef CUDA_CPU_COMPARE_HOOK
#undef CUDA_CPU_COMPARE_VALUE_HOOK
#undef CUDA_CPU_UPDATE_HOOK
#undef CUDA_CPU_SIGNAL

CUDA_CPU_HOOK void __tsan_atomic_thread_fence(int) { cuda_cpu::trace_fence(); }
CUDA_CPU_HOOK void __tsan_atomic_signal_fence(int) {}

#endif

#endif
