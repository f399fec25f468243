/* What the tests of gk_dist_... share: ranks as threads, each with a GPU of its own. The stand-in has eight GPUs. On a
 * machine with fewer, cases of more ranks are skipped; without NCCL all cases are. TEST_NCCL tells nvcc's builds that
 * there is a library to link. Includes gpukit.cuh. */
#ifndef RANKS_H
#define RANKS_H

#if defined(__has_include)
#if __has_include(<nccl.h>) && (!defined(__CUDACC__) || defined(TEST_NCCL))
#define GPUKIT_NCCL
#include <nccl.h>
#endif
#endif
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "data.h"

#ifndef GPUKIT_NCCL
TEST(more_than_one_gpu) { SKIP("built without NCCL: nccl.h or its library is not here"); }
#else
#include <atomic>
#include <functional>
#include <map>
#include <thread>

static const unsigned patience = 60000;                              /* ms, for what is to go well */

#ifdef CUDA_ON_CPU
static const int set_devices = setenv("GPUKIT_CPU_DEVICES", "8", 0); /* before the first call of CUDA's */
#endif
static int device_count() {
  int count = 0;
  EXPECT_OK(cudaGetDeviceCount(&count));
  return count;
}

/* A thread for each communicator, whose device is current there. */
struct rank_of {
  ncclComm_t comm;
  int rank, ranks;
};
typedef std::function<void(const rank_of &)> each_rank;
static void run_on(const std::vector<ncclComm_t> &comms, const each_rank &work) {
  std::vector<std::thread> threads;
  for (size_t r = 0; r < comms.size(); r++)
    threads.emplace_back([&, r] {
      EXPECT_OK(cudaSetDevice(static_cast<int>(r)));
      const rank_of me = {comms[r], static_cast<int>(r), static_cast<int>(comms.size())};
      work(me);
    });
  for (std::thread &t : threads) t.join();
}
static std::vector<ncclComm_t> new_comms(size_t ranks) {
  if (static_cast<int>(ranks) > device_count()) SKIP("needs " + std::to_string(ranks) + " devices");
  std::vector<ncclComm_t> comms(ranks);
  EXPECT_OK(ncclCommInitAll(comms.data(), static_cast<int>(ranks), NULL));
  return comms;
}
/* Setting up takes a GPU a while: communicators that nothing happens to serve all tests. False: too few devices. */
struct kept_comms {
  std::map<size_t, std::vector<ncclComm_t>> of;
  ~kept_comms() {
    for (const auto &comms : of)
      for (ncclComm_t comm : comms.second) EXPECT_OK(ncclCommDestroy(comm));
  }
};
static bool run_ranks(size_t ranks, const each_rank &work) {
  if (static_cast<int>(ranks) > device_count()) return false;
  static kept_comms all; /* made after CUDA's first call, and so gone before CUDA is */
  if (!all.of.count(ranks)) all.of[ranks] = new_comms(ranks);
  run_on(all.of[ranks], work);
  return true;
}
/* EXPECT with a message, and EXPECT_OK with gpukit's detail. */
static void demand(bool so, const char *file, int line, const std::string &what) {
  if (!so) test_fail(file, line, what);
}
#define DEMAND(so, what) demand(so, __FILE__, __LINE__, what)
static void demand_ok(cudaError_t code, const char *file, int line, const char *what) {
  demand(code == cudaSuccess, file, line, std::string(what) + ": " + cudaGetErrorName(code) + ", " + gk_error_detail());
}
#define DEMAND_OK(...) demand_ok(__VA_ARGS__, __FILE__, __LINE__, #__VA_ARGS__)

#define DEMAND_FAILS(code, part, ...)                                                                                  \
  do {                                                                                                                 \
    const cudaError_t demanded = (__VA_ARGS__);                                                                        \
    DEMAND(demanded == (code), std::string(#__VA_ARGS__) + " gives " + cudaGetErrorName(demanded));                    \
    DEMAND(strstr(gk_error_detail(), (part)), std::string(gk_error_detail()) + " does not say " + (part));             \
  } while (0)

/* Pieces of each rank: one rank, even and uneven ones, empty ones at every place, and none that has anything. */
typedef std::vector<size_t> pieces;
static const pieces cases[] = {{1000},
                               {0},
                               {3, 3},
                               {70000, 1},
                               {0, 5000},
                               {12289, 0, 777},
                               {0, 0, 0},
                               {1, 1, 1, 1},
                               {0, 30000, 0, 12288},
                               {5, 0, 0, 0, 9},
                               {1, 2, 3, 20000, 5, 6, 7}};
static size_t sum(const pieces &p) {
  size_t all = 0;
  for (size_t n : p) all += n;
  return all;
}
static std::string name_of(const pieces &p) {
  std::string name = "pieces";
  for (size_t n : p) name += " " + std::to_string(n);
  return name;
}

/* --- elements --- */

/* Small integers and halves of them, positive and negative, with ties; products stay in range, and sums are exact. */
template <class Op> struct elements {
  template <class T> static T at(size_t i) { return make<T>(uniform(3, i, std::is_unsigned<T>::value ? 0 : -9, 9)); }
};
template <> struct elements<gk_op_prod> {
  template <class T> static T at(size_t i) {
    if (!is_float<T>::value) return make<T>(uniform(4, i, 0, 3) * 2 + 1);
    return make<T>(i % 64 == 5 ? -2.0 : i % 64 == 37 ? 0.5 : 1.0);
  }
};
template <class Op, class T> static std::vector<T> make_elements(size_t n) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; i++) x[i] = elements<Op>::template at<T>(i);
  return x;
}
template <class T> static std::vector<T> piece_of(const std::vector<T> &x, const pieces &p, int rank) {
  size_t first = 0;
  for (int r = 0; r < rank; r++) first += p[static_cast<size_t>(r)];
  const auto begin = x.begin() + static_cast<ptrdiff_t>(first);
  return std::vector<T>(begin, begin + static_cast<ptrdiff_t>(p[static_cast<size_t>(rank)]));
}

/* An index counted from the piece's first element counts from the first of all. */
template <class A> static A moved(const A &x, size_t) { return x; }
template <class V> static gk_arg<V> moved(const gk_arg<V> &x, size_t by) {
  return gk_arg<V>{x.value, x.index == SIZE_MAX ? x.index : x.index + by};
}

#endif
#endif
