/* lesson_ranks.h: the ranks of a program: one process with all visible GPUs and a thread for each; or processes that a
 * launcher has started, with a GPU for each.
 *
 *   const launched by = find_launcher(&argc, &argv);
 *   let_first_speak(&by, argc, argv);
 *   lesson_begin(&l, &about, argc, argv);
 *   std::vector<lesson_rank> ranks = join_ranks(&l, &by, 0);    those of this process: all, or one
 *   on_each(ranks, [&](lesson_rank &r) { ... });                at the same time, each with its device current
 *   leave_ranks(ranks);
 *
 * Built with MPI (LESSON_MPI), ranks and NCCL's id come by MPI. Otherwise the launcher's environment tells the ranks,
 * and the id goes through a file that all of them see: LESSON_NCCL_ID names it, or else it is in the working directory
 * and named after the job. Without NCCL (LESSON_NCCL, on a GPU) there is one rank. */
#ifndef LESSON_RANKS_H
#define LESSON_RANKS_H

#include <cuda_runtime.h>
#if (defined(CUDA_ON_CPU) || defined(LESSON_NCCL)) && !defined(GPUKIT_NCCL)
#define GPUKIT_NCCL
#include <nccl.h>
#endif
#ifdef LESSON_MPI
#define OMPI_SKIP_MPICXX 1 /* MPI's old C++ classes have casts that warn */
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif
#include "lesson.h"
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>

#define RANKS_TIMEOUT 60000 /* ms to wait for a missing rank */

/* ---- how this process was started ---------------------------------------------------------------------------------*/

struct launched {
  int rank, ranks, local; /* local: among those of this machine */
  const char *by;         /* the launcher; NULL: none, so that this process has all ranks */
};

/* A variable's value, if it is a whole number; else -1. */
inline int number_in(const char *name) {
  const char *const text = name ? getenv(name) : NULL;
  char *end = NULL;
  const long value = text && *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
  return value >= 0 && value <= 0x7fffffff && !*end ? (int)value : -1;
}

/* Slurm is listed after launchers that it may have started, whose processes see its variables, too. */
inline launched launched_by_environment() {
  static const struct {
    const char *by, *rank, *ranks, *local[2];
  } launchers[] = {{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"OMPI_COMM_WORLD_LOCAL_RANK", NULL}},
                   {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", {"MV2_COMM_WORLD_LOCAL_RANK", NULL}},
                   {"a launcher with PMI", "PMI_RANK", "PMI_SIZE", {"MPI_LOCALRANKID", "SLURM_LOCALID"}},
                   {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", {"SLURM_LOCALID", NULL}},
                   {"torchrun", "RANK", "WORLD_SIZE", {"LOCAL_RANK", NULL}}};
  launched l = {0, 1, 0, NULL};
  for (const auto &by : launchers) {
    const int rank = number_in(by.rank), ranks = number_in(by.ranks);
    if (ranks < 2 || rank < 0 || rank >= ranks) continue;
    l.by = by.by, l.rank = l.local = rank, l.ranks = ranks;
    for (int i = 2; i-- > 0;)
      if (number_in(by.local[i]) >= 0) l.local = number_in(by.local[i]);
    break;
  }
  return l;
}

inline launched find_launcher(int *argc, char ***argv) {
#ifdef LESSON_MPI
  launched l = {0, 1, 0, NULL};
  MPI_Comm here;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &l.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &l.ranks);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, l.rank, MPI_INFO_NULL, &here);
  MPI_Comm_rank(here, &l.local);
  MPI_Comm_free(&here);
  if (l.ranks > 1) l.by = "MPI";
  return l;
#else
  (void)argc, (void)argv;
  return launched_by_environment();
#endif
}

/* Only the first process prints and writes the CSV; the others report errors. */
inline void let_first_speak(const launched *by, int argc, char **argv) {
  if (by->rank == 0) return;
  if (!freopen("/dev/null", "w", stdout)) exit(1);
  for (int i = 1; i < argc; i++)
    if (!strncmp(argv[i], "--csv=", 6)) argv[i][5] = 0;
}

/* ---- NCCL's id, from the first process to the others --------------------------------------------------------------*/

#ifdef GPUKIT_NCCL
/* A run that was killed may have left files of the same names. So each rank asks for the id in a file of its own, with
 * a random number, takes only an answer that holds this number, and then removes its file, which the first rank waits
 * for. Files are written under another name and renamed, so that no rank reads an incomplete one. */
struct id_answer {
  ncclUniqueId id;
  std::vector<unsigned long long> asked; /* of each rank */
};
inline bool write_file(const std::string &path, const std::string &bytes) {
  const std::string other = path + ".new";
  FILE *const f = fopen(other.c_str(), "wb");
  const bool written = f && fwrite(bytes.data(), bytes.size(), 1, f) == 1;
  return f && !fclose(f) && written && !rename(other.c_str(), path.c_str());
}
/* Right after write_file() has failed, since errno is of the last call that failed. */
inline bool cannot_write(const std::string &path, std::string *why) {
  *why = path + " cannot be written: " + strerror(errno);
  return false;
}
inline bool read_file(const std::string &path, void *to, size_t bytes) {
  FILE *const f = fopen(path.c_str(), "rb");
  const bool read = f && fread(to, bytes, 1, f) == 1;
  if (f) fclose(f);
  return read;
}

/* Returns false after timeout_ms, with what is missing in `why`. */
inline bool pass_id_on(ncclUniqueId *id, const std::string &path, int rank, int ranks, int timeout_ms,
                       std::string *why) {
  const size_t count = (size_t)ranks, bytes = sizeof *id + count * sizeof(unsigned long long);
  const std::string mine = path + "." + std::to_string(rank);
  std::vector<unsigned long long> asked(count);
  std::string answer(bytes, 0);
  const double end = lesson_now_us() + 1e3 * timeout_ms;
  if (rank) {
    std::random_device source;
    const unsigned long long number = (unsigned long long)source() << 32 | source() | 1;
    bool answered = false;
    if (!write_file(mine, std::string((const char *)&number, sizeof number))) return cannot_write(mine, why);
    while (!answered && lesson_now_us() < end) {
      if (read_file(path, &answer[0], bytes)) memcpy(asked.data(), &answer[sizeof *id], bytes - sizeof *id);
      answered = asked[(size_t)rank] == number;
      if (!answered) usleep(5000);
    }
    remove(mine.c_str());
    memcpy(id, answer.data(), sizeof *id);
    *why = path + " has not come";
    return answered;
  }
  std::vector<bool> done(count);
  for (size_t left = count - 1; left && lesson_now_us() < end; usleep(5000)) {
    bool changed = false;
    for (size_t r = 1; r < count; r++) {
      const std::string from = path + "." + std::to_string(r);
      unsigned long long number = 0;
      if (read_file(from, &number, sizeof number))
        changed = changed || asked[r] != number, asked[r] = number;
      else if (asked[r] && !done[r] && access(from.c_str(), F_OK))
        done[r] = true, left--;
    }
    memcpy(&answer[0], id, sizeof *id);
    memcpy(&answer[sizeof *id], asked.data(), bytes - sizeof *id);
    if (changed && !write_file(path, answer)) return cannot_write(path, why);
  }
  remove(path.c_str());
  *why = "of " + std::to_string(ranks) + " ranks not all have come to " + path;
  for (size_t r = 1; r < count; r++)
    if (!done[r]) return false;
  return true;
}

inline std::string id_path(const lesson_about *about) {
  const char *const job = getenv("SLURM_JOB_ID"), *const space = getenv("PMIX_NAMESPACE");
  const char *const named = getenv("LESSON_NCCL_ID"), *const step = getenv("SLURM_STEP_ID");
  if (named) return named;
  std::string of = space ? space : job ? std::string(job) + "." + (step ? step : "0") : "";
  if (of.empty()) of = std::to_string(getppid()); /* the launcher, which all ranks of this machine share */
  for (char &c : of)
    if (c == '/') c = '_';
  return std::string(about->name) + "." + of + ".id";
}
#endif

/* ---- ranks --------------------------------------------------------------------------------------------------------*/

struct lesson_rank {
  int rank, ranks, device;
#ifdef GPUKIT_NCCL
  ncclComm_t comm;
#endif
  cudaStream_t stream;
  gk_scratch scratch;
  float *ms, *slowest; /* 1 each */
};
typedef std::function<void(lesson_rank &)> rank_work;

/* Does the same for every rank of this process at once. */
inline void on_each(std::vector<lesson_rank> &ranks, const rank_work &work) {
  std::vector<std::thread> threads;
  for (lesson_rank &r : ranks)
    threads.emplace_back([&] {
      GK_CHECK(cudaSetDevice(r.device));
      work(r);
    });
  for (std::thread &t : threads) t.join();
}

inline std::vector<lesson_rank> join_ranks(lesson *l, const launched *by, size_t scratch_bytes) {
  int devices = 0;
  GK_CHECK(cudaGetDeviceCount(&devices));
#ifdef GPUKIT_NCCL
  std::vector<lesson_rank> ranks(by->by ? 1 : (size_t)devices);
  std::vector<ncclComm_t> comms(ranks.size());
  if (by->by) {
#ifdef CUDA_ON_CPU
    lesson_refuse(l->about, "the CPU stand-in's ranks are threads of one process: run it without %s", by->by);
#endif
    ncclUniqueId id;
    memset(&id, 0, sizeof id);
    if (by->rank == 0) GK_CHECK(ncclGetUniqueId(&id));
#ifdef LESSON_MPI
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
    std::string why;
    if (!pass_id_on(&id, id_path(l->about), by->rank, by->ranks, RANKS_TIMEOUT, &why))
      lesson_refuse(l->about, "%s: is it on a disk that all ranks share? LESSON_NCCL_ID names another", why.c_str());
#endif
    GK_CHECK(cudaSetDevice(by->local % devices));
    GK_CHECK(ncclCommInitRank(&comms[0], by->ranks, id, by->rank));
    lesson_say(l, "%d ranks, each a process with a GPU of its own, started by %s", by->ranks, by->by);
  } else {
    GK_CHECK(ncclCommInitAll(comms.data(), devices, NULL));
    lesson_say(l,
               devices == 1 ? "one GPU only: %d rank, without others to communicate with"
                            : "%d ranks, each a thread with a GPU of its own",
               devices);
  }
#else
  std::vector<lesson_rank> ranks(1);
  if (by->ranks > 1) lesson_say(l, "built without NCCL: each of the %d processes works alone", by->ranks);
  lesson_say(l, "built without NCCL (nccl.h or the library was not found): one GPU works alone");
#endif
  for (size_t i = 0; i < ranks.size(); i++) {
    lesson_rank *const r = &ranks[i];
    memset(r, 0, sizeof *r);
#ifdef GPUKIT_NCCL
    r->rank = by->by ? by->rank : (int)i;
    r->ranks = by->by ? by->ranks : devices;
    r->comm = comms[i];
#else
    r->ranks = 1;
#endif
    r->device = by->by ? by->local % devices : (int)i;
  }
  on_each(ranks, [=](lesson_rank &r) {
    GK_CHECK(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    GK_CHECK(gk_scratch_create(&r.scratch, scratch_bytes, r.stream));
    for (float **p : {&r.ms, &r.slowest}) GK_CHECK(cudaMalloc(p, sizeof(float)));
    GK_CHECK(cudaStreamSynchronize(r.stream));
  });
  return ranks;
}
inline void leave_ranks(std::vector<lesson_rank> &ranks) {
  on_each(ranks, [](lesson_rank &r) {
    for (float *p : {r.ms, r.slowest}) GK_CHECK(cudaFree(p));
    GK_CHECK(gk_scratch_destroy(&r.scratch));
    GK_CHECK(cudaStreamDestroy(r.stream));
#ifdef GPUKIT_NCCL
    GK_CHECK(ncclCommDestroy(r.comm));
#endif
  });
#ifdef LESSON_MPI
  MPI_Finalize();
#endif
}

/* The part of n that is a rank's. */
inline void rank_piece(size_t n, const lesson_rank &r, size_t *first, size_t *count) {
#ifdef GPUKIT_NCCL
  const gk_dist_piece piece = gk_dist_split(n, r.ranks, r.rank);
  *first = piece.first_index, *count = piece.item_count;
#else
  (void)r;
  *first = 0, *count = n;
#endif
}

/* A rank that has died is not waited for. */
inline void wait_for(const lesson_rank &r) {
#ifdef GPUKIT_NCCL
  GK_CHECK(gk_dist_wait(r.comm, r.stream, RANKS_TIMEOUT, true));
#else
  GK_CHECK(cudaStreamSynchronize(r.stream));
#endif
}
/* What the stream does next begins on all ranks at once. */
inline void meet(const lesson_rank &r) {
#ifdef GPUKIT_NCCL
  GK_CHECK(gk_dist_reduce(r.ms, r.slowest, 1, gk_op_max(), r.comm, r.stream, &r.scratch));
#else
  (void)r;
#endif
}
/* The greatest of all ranks' numbers. */
inline float slowest(const lesson_rank &r, float ms) {
#ifdef GPUKIT_NCCL
  GK_CHECK(cudaMemcpyAsync(r.ms, &ms, sizeof ms, cudaMemcpyHostToDevice, r.stream));
  meet(r);
  wait_for(r);
  GK_CHECK(cudaMemcpy(&ms, r.slowest, sizeof ms, cudaMemcpyDeviceToHost));
#else
  (void)r;
#endif
  return ms;
}
/* By every rank: what a call takes the slowest of them, in ms: all begin at once, after one call to warm up. Of `calls`
 * in a row; the least of `times` such, since nothing makes them faster than they are. Ranks meet twice, so that all
 * hosts are ahead of their GPUs when these begin. */
inline float time_of(lesson_rank &r, int calls, int times, const rank_work &call) {
  gk_timer timer = gk_timer();
  float least = 0;
  GK_CHECK(gk_timer_create(&timer));
  call(r);
  for (int t = 0; t < times; t++) {
    float ms = 0;
    wait_for(r);
    slowest(r, 0);
    meet(r);
    GK_CHECK(gk_timer_start(&timer, r.stream));
    for (int i = 0; i < calls; i++) call(r);
    GK_CHECK(gk_timer_stop(&timer));
    wait_for(r);
    GK_CHECK(gk_timer_ms(&timer, &ms));
    ms = slowest(r, ms / (float)calls);
    if (t == 0 || ms < least) least = ms;
  }
  GK_CHECK(gk_timer_destroy(&timer));
  return least;
}

#endif
