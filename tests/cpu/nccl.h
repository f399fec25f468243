/* A stand-in for NCCL beside that for CUDA: the ranks are threads of one process, each with a pretended GPU of its own
 * (GPUKIT_CPU_DEVICES). It has what gpukit calls, with NCCL's values and signatures.
 *
 * A collective waits in its call until all ranks have made theirs, does the work of its rank, and waits for the others
 * to have done so: one of the orders that streams allow. What stands between ncclGroupStart and ncclGroupEnd happens at
 * the end, so that one thread may have several ranks. On a stream that captures, the graph does it.
 *
 * A rank that never comes leaves the streams of the others as a GPU would: nothing that is put into them any more is
 * done, cudaStreamQuery is cudaErrorNotReady for good, and a wait for them ends the program, which would hang.
 * ncclCommAbort sets them free. It is taken for one that never comes after nccl_cpu_patience(), or at once where it has
 * been aborted or nccl_cpu_kill() has ended it.
 *
 * Arguments are checked further than NCCL does: buffers are device memory of that size which the other ranks' devices
 * may use, too, and ranks that call different things, for which NCCL hangs or gives nonsense, are named on stderr and
 * get ncclInvalidUsage as asynchronous error. */
#pragma once
#pragma GCC system_header

#include <cuda_runtime.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <string>
#include <vector>
#include "cuda_cpu/host/memory.h"
#include "cuda_cpu/host/streams.h"

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)
#define NCCL_UNIQUE_ID_BYTES 128

typedef struct ncclComm *ncclComm_t;
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;
/* clang-format off */
typedef enum {
  ncclSuccess = 0, ncclUnhandledCudaError, ncclSystemError, ncclInternalError, ncclInvalidArgument, ncclInvalidUsage,
  ncclRemoteError, ncclInProgress, ncclNumResults
} ncclResult_t;
typedef enum {
  ncclInt8 = 0, ncclChar = 0, ncclUint8 = 1, ncclInt32 = 2, ncclInt = 2, ncclUint32 = 3, ncclInt64 = 4, ncclUint64 = 5,
  ncclFloat16 = 6, ncclHalf = 6, ncclFloat32 = 7, ncclFloat = 7, ncclFloat64 = 8, ncclDouble = 8, ncclBfloat16 = 9,
  ncclNumTypes = 10
} ncclDataType_t;
/* clang-format on */

namespace nccl_cpu {

/* What a rank is to do of a collective. */
struct part {
  char kind; /* g: all-gather, b: broadcast */
  const void *from;
  void *to;
  size_t bytes;
  int root;
};
typedef std::vector<part> parts;

/* The ranks of one id, and how far each has come. */
struct world {
  ncclUniqueId id;
  int ranks, joined, gone;
  std::vector<ncclComm_t> comm;
  pthread_mutex_t mutex;
  pthread_cond_t moved;
};

} // namespace nccl_cpu

struct ncclComm {
  nccl_cpu::world *all;
  int rank, device;
  bool alive;                    /* not destroyed, aborted or killed */
  bool usable;                   /* by its owner */
  ncclResult_t async;            /* ncclCommGetAsyncError */
  unsigned long long come, done; /* collectives that this rank has come to, and those that it has done */
  nccl_cpu::parts work;          /* of the one that it has come to last */
};

namespace nccl_cpu {

inline pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
inline std::vector<world *> registry;
inline unsigned long long ids;
inline int patience_ms = 20000;

struct pending {
  ncclComm_t comm;
  CUstream_st *stream;
  parts work;
};
inline thread_local std::vector<pending> group;
inline thread_local int group_depth;
inline thread_local int fail_at;
inline thread_local ncclResult_t fail_with;
inline thread_local int calls;
inline thread_local std::string words; /* ncclGetLastError */
inline thread_local ncclResult_t group_error;

struct guard {
  pthread_mutex_t *mutex;
  explicit guard(pthread_mutex_t *m) : mutex(m) { pthread_mutex_lock(m); }
  ~guard() { pthread_mutex_unlock(mutex); }
  guard(const guard &) = delete;
};
inline timespec in_patience() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  const long long ns = t.tv_nsec + __atomic_load_n(&patience_ms, __ATOMIC_RELAXED) * 1000000ll;
  t.tv_sec += ns / 1000000000;
  t.tv_nsec = ns % 1000000000;
  return t;
}

/* Of a call that fails. In a group it lets the group fail. */
inline ncclResult_t say(ncclResult_t result, const std::string &what) {
  words = what;
  if (group_depth) group_error = result;
  return result;
}
inline bool is_comm(ncclComm_t comm) {
  guard lock(&registry_mutex);
  for (const world *w : registry)
    for (const ncclComm_t c : w->comm)
      if (c == comm && c) return c->usable;
  return false;
}
/* Opens every call that can fail. */
inline bool injected() { return ++calls == fail_at; }

/* By a rank that has come to a collective: waits until all have, or gives up. */
inline bool all_have(world &w, unsigned long long count, unsigned long long ncclComm::*what) {
  const timespec until = in_patience();
  for (;;) {
    bool all = true, lost = false;
    for (const ncclComm_t c : w.comm)
      if (!c || c->*what < count) {
        all = false;
        lost = lost || (c && !c->alive);
      }
    if (all) return true;
    if (lost || pthread_cond_timedwait(&w.moved, &w.mutex, &until) == ETIMEDOUT) return false;
  }
}

inline bool alike(const parts &a, const parts &b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (a[i].kind != b[i].kind || a[i].bytes != b[i].bytes || a[i].root != b[i].root) return false;
  return true;
}

inline void copy(void *to, const void *from, size_t bytes) {
  if (bytes && to != from) memmove(to, from, bytes);
}
inline void do_part(const world &w, int rank, size_t which) {
  const part &mine = w.comm[static_cast<size_t>(rank)]->work[which];
  if (mine.kind == 'b') return copy(mine.to, w.comm[static_cast<size_t>(mine.root)]->work[which].from, mine.bytes);
  for (size_t r = 0; r < w.comm.size(); r++)
    copy(static_cast<char *>(mine.to) + r * mine.bytes, w.comm[r]->work[which].from, mine.bytes);
}

inline void come(ncclComm_t c, const parts &work) {
  world &w = *c->all;
  guard lock(&w.mutex);
  c->work = work;
  c->come++;
  pthread_cond_broadcast(&w.moved);
}
/* Whether all ranks have come, and the same way; if so this one's part is done. */
inline bool take_part(ncclComm_t c) {
  world &w = *c->all;
  guard lock(&w.mutex);
  if (!c->alive || !all_have(w, c->come, &ncclComm::come)) return false;
  for (const ncclComm_t other : w.comm)
    if (other->come == c->come && !alike(other->work, c->work)) {
      fprintf(stderr, "NCCL stand-in: ranks %d and %d call different things in their collective %llu\n", c->rank,
              other->rank, c->come);
      c->async = ncclInvalidUsage;
      c->done++;
      pthread_cond_broadcast(&w.moved);
      return false;
    }
  for (size_t i = 0; i < c->work.size(); i++) do_part(w, c->rank, i);
  c->done++;
  pthread_cond_broadcast(&w.moved);
  return true;
}
inline bool leave(ncclComm_t c) {
  guard lock(&c->all->mutex);
  return all_have(*c->all, c->come, &ncclComm::done);
}
inline void hang(ncclComm_t c, CUstream_st *s) {
  cuda_cpu::locked lock;
  s->hung = c;
}

inline void run_all(std::vector<pending> list) {
  const auto waits = [](const pending &p) { return p.stream->capture || p.stream->hung; };
  for (const pending &p : list) {
    const pending own = p;
    if (!p.stream->capture) continue;
    cuda_cpu::keep(p.stream, [=] {
      come(own.comm, own.work);
      if (!take_part(own.comm) || !leave(own.comm)) hang(own.comm, own.stream);
      return cudaSuccess;
    });
  }
  for (const pending &p : list)
    if (!waits(p)) come(p.comm, p.work);
  for (const pending &p : list)
    if (!waits(p) && !take_part(p.comm)) hang(p.comm, p.stream);
  for (const pending &p : list)
    if (!waits(p) && !leave(p.comm)) hang(p.comm, p.stream);
}

inline size_t size_of(ncclDataType_t type) {
  static const size_t size[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return type >= 0 && type < ncclNumTypes ? size[type] : 0;
}

/* Ranks of one process read each other's buffers themselves, which memory of a pool does not allow by itself. */
inline bool peers_reach(const void *p, const ncclComm *comm) {
  const cuda_cpu::allocation *const a = cuda_cpu::find_allocation(p);
  for (const ncclComm_t c : comm->all->comm)
    if (a && a->pool && c && c->device != comm->device && !(a->pool->peers >> c->device & 1)) return false;
  return true;
}

inline ncclResult_t add(ncclComm_t comm, const part &what, size_t to_bytes, cudaStream_t stream) {
  const int before = cuda_cpu::device_now;
  cuda_cpu::device_now = comm->device;
  CUstream_st *const s = cuda_cpu::find_stream(stream);
  cuda_cpu::device_now = before;
  if (!s || s->device != comm->device)
    return say(ncclUnhandledCudaError, "the stream is none of the communicator's device");
  {
    cuda_cpu::locked lock;
    if ((what.bytes && (!what.to || !cuda_cpu::reaches(what.to, to_bytes, true))) ||
        (what.bytes && (what.kind == 'g' || what.root == comm->rank) &&
         (!what.from || !cuda_cpu::reaches(what.from, what.bytes, true))))
      return say(ncclInvalidArgument, "a buffer is not device memory of that size");
    if (!peers_reach(what.to, comm) || !peers_reach(what.from, comm))
      return say(ncclUnhandledCudaError, "a buffer is memory of a pool that the other ranks' devices may not use");
  }
  if (group_depth == 0) {
    run_all({{comm, s, {what}}});
    return ncclSuccess;
  }
  for (pending &p : group)
    if (p.comm == comm && p.stream == s) {
      p.work.push_back(what);
      return ncclSuccess;
    }
  group.push_back({comm, s, {what}});
  return ncclSuccess;
}

inline ncclResult_t join(ncclComm_t *comm, int ranks, const ncclUniqueId &id, int rank, int device, bool wait) {
  if (!comm || ranks < 1 || rank < 0 || rank >= ranks) return say(ncclInvalidArgument, "no such rank");
  world *w = nullptr;
  {
    guard lock(&registry_mutex);
    for (world *i : registry)
      if (!memcmp(&i->id, &id, sizeof id)) w = i;
    if (!w) {
      w = new world{id, ranks, 0, 0, std::vector<ncclComm_t>(static_cast<size_t>(ranks)), {}, {}};
      pthread_mutex_init(&w->mutex, nullptr);
      pthread_cond_init(&w->moved, nullptr);
      registry.push_back(w);
    }
    if (w->ranks != ranks || w->comm[static_cast<size_t>(rank)])
      return say(ncclInvalidUsage, "ranks that disagree on their number, or two of the same one");
    for (const ncclComm_t c : w->comm)
      if (c && c->device == device)
        return say(ncclInvalidUsage, "Duplicate GPU detected: two ranks use device " + std::to_string(device));
    w->comm[static_cast<size_t>(rank)] = *comm = new ncclComm{w, rank, device, true, true, ncclSuccess, 0, 0, {}};
  }
  guard lock(&w->mutex);
  w->joined++;
  pthread_cond_broadcast(&w->moved);
  const timespec until = in_patience();
  while (wait && w->joined < ranks)
    if (pthread_cond_timedwait(&w->moved, &w->mutex, &until) == ETIMEDOUT && w->joined < ranks)
      return say(ncclSystemError, "not all ranks came (all have to be threads of this process)");
  return ncclSuccess;
}

/* The owner has no more use for it. The last one of a world takes all down. */
inline void depart(ncclComm_t comm) {
  world *const w = comm->all;
  cuda_cpu::release_hung(comm);
  bool last;
  {
    guard lock(&registry_mutex);
    guard inner(&w->mutex);
    comm->alive = comm->usable = false;
    last = ++w->gone == w->ranks;
    pthread_cond_broadcast(&w->moved);
    for (size_t i = 0; last && i < registry.size(); i++)
      if (registry[i] == w) registry.erase(registry.begin() + static_cast<ptrdiff_t>(i));
  }
  if (!last) return;
  for (const ncclComm_t c : w->comm) delete c;
  pthread_mutex_destroy(&w->mutex);
  pthread_cond_destroy(&w->moved);
  delete w;
}

} // namespace nccl_cpu

#define NCCL_CPU_API()                                                                                                 \
  if (nccl_cpu::injected()) return nccl_cpu::say(nccl_cpu::fail_with, "injected")
#define NCCL_CPU_API_OF(comm)                                                                                          \
  if (!nccl_cpu::is_comm(comm)) return nccl_cpu::say(ncclInvalidArgument, "not a communicator");                       \
  NCCL_CPU_API()

inline ncclResult_t ncclGetVersion(int *version) {
  if (!version) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
inline const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess: return "no error";
  case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
  case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
  case ncclInternalError: return "internal error - please report this issue to the NCCL developers";
  case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
  case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
  case ncclRemoteError: return "remote process exited or there was a network error";
  case ncclInProgress: return "NCCL operation in progress";
  default: return "unknown result code";
  }
}
inline const char *ncclGetLastError(ncclComm_t) { return nccl_cpu::words.c_str(); }

inline ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  NCCL_CPU_API();
  if (!id) return ncclInvalidArgument;
  memset(id, 0, sizeof *id);
  const unsigned long long number = __atomic_add_fetch(&nccl_cpu::ids, 1, __ATOMIC_RELAXED);
  memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}
inline ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
  NCCL_CPU_API();
  return nccl_cpu::join(comm, nranks, id, rank, cuda_cpu::device_now, nccl_cpu::group_depth == 0);
}
inline ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices) {
  ncclUniqueId id;
  NCCL_CPU_API();
  if (!comms || count < 1) return ncclInvalidArgument;
  if (ncclResult_t e = ncclGetUniqueId(&id)) return e;
  for (int i = 0; i < count; i++) {
    const int device = devices ? devices[i] : i;
    if (!cuda_cpu::is_device(device)) return nccl_cpu::say(ncclInvalidArgument, "no such device");
    if (ncclResult_t e = nccl_cpu::join(comms + i, count, id, i, device, false)) return e;
  }
  return ncclSuccess;
}
inline ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  NCCL_CPU_API_OF(comm);
  nccl_cpu::depart(comm);
  return ncclSuccess;
}
inline ncclResult_t ncclCommAbort(ncclComm_t comm) {
  NCCL_CPU_API_OF(comm);
  nccl_cpu::depart(comm);
  return ncclSuccess;
}
inline ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  NCCL_CPU_API_OF(comm);
  if (!error) return ncclInvalidArgument;
  nccl_cpu::guard lock(&comm->all->mutex);
  *error = comm->async;
  return ncclSuccess;
}
inline ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  NCCL_CPU_API_OF(comm);
  if (!count) return ncclInvalidArgument;
  *count = comm->all->ranks;
  return ncclSuccess;
}
inline ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  NCCL_CPU_API_OF(comm);
  if (!device) return ncclInvalidArgument;
  *device = comm->device;
  return ncclSuccess;
}
inline ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  NCCL_CPU_API_OF(comm);
  if (!rank) return ncclInvalidArgument;
  *rank = comm->rank;
  return ncclSuccess;
}

inline ncclResult_t ncclGroupStart() {
  NCCL_CPU_API();
  nccl_cpu::group_depth++;
  return ncclSuccess;
}
/* If a call of the group has failed, so does this, and nothing of the group is done. */
inline ncclResult_t ncclGroupEnd() {
  if (!nccl_cpu::group_depth) return nccl_cpu::say(ncclInvalidUsage, "no group was started");
  if (--nccl_cpu::group_depth) return ncclSuccess;
  std::vector<nccl_cpu::pending> list;
  list.swap(nccl_cpu::group);
  const ncclResult_t failed = nccl_cpu::group_error;
  nccl_cpu::group_error = ncclSuccess;
  if (failed) return failed;
  NCCL_CPU_API();
  nccl_cpu::run_all(list);
  return ncclSuccess;
}
inline ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                                  cudaStream_t stream) {
  NCCL_CPU_API_OF(comm);
  const size_t bytes = count * nccl_cpu::size_of(type);
  if (!nccl_cpu::size_of(type)) return nccl_cpu::say(ncclInvalidArgument, "no such type");
  return nccl_cpu::add(comm, {'g', from, to, bytes, 0}, bytes * static_cast<size_t>(comm->all->ranks), stream);
}
inline ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                                  ncclComm_t comm, cudaStream_t stream) {
  NCCL_CPU_API_OF(comm);
  const size_t bytes = count * nccl_cpu::size_of(type);
  if (!nccl_cpu::size_of(type)) return nccl_cpu::say(ncclInvalidArgument, "no such type");
  if (root < 0 || root >= comm->all->ranks) return nccl_cpu::say(ncclInvalidArgument, "no such root");
  return nccl_cpu::add(comm, {'b', from, to, bytes, root}, bytes, stream);
}

/* --- for tests --- */

/* How long a collective waits for the other ranks before its stream hangs. */
inline void nccl_cpu_patience(int ms) { __atomic_store_n(&nccl_cpu::patience_ms, ms, __ATOMIC_RELAXED); }
/* Ends a rank, as a crash of its process would; heard: the others get ncclRemoteError. Its own handle stays valid. */
inline void nccl_cpu_kill(ncclComm_t comm, bool heard) {
  nccl_cpu::guard lock(&comm->all->mutex);
  comm->alive = false;
  for (const ncclComm_t c : comm->all->comm)
    if (heard && c != comm) c->async = ncclRemoteError;
  pthread_cond_broadcast(&comm->all->moved);
}
/* The k-th call of this thread from now on does nothing and returns the error; 0: none. */
inline void nccl_cpu_fail(int k, ncclResult_t error) {
  nccl_cpu::calls = 0;
  nccl_cpu::fail_at = k;
  nccl_cpu::fail_with = error;
}
/* How many calls this thread has made since nccl_cpu_fail. */
inline int nccl_cpu_calls() { return nccl_cpu::calls; }
