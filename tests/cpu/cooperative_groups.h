/* Cooperative groups, with CUDA's names: thread_block, grid_group, thread_block_tile, coalesced_group, thread_group.
 * reduce, scan and memcpy_async are in cooperative_groups/.
 *
 * Tiles of a size that is known at compile time have up to 32 threads here; a larger one ends the launch.
 * coalesced_threads() is the calling thread alone, since __activemask() is: CUDA promises no more, and what then has to
 * hold for any group that it may return (an atomic by its first thread for all of it) is run with the smallest one.
 * binary_partition, labeled_partition and tiled_partition make groups of many lanes. A grid's barrier_arrive does not
 * let go on before barrier_wait what waits for it. Clusters are not supported. */
#pragma once
#pragma GCC system_header

#include "cuda_runtime.h"

namespace cuda_cpu {

inline unsigned rank_in_block() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
inline unsigned threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned long long rank_in_grid() {
  return blockIdx.x + gridDim.x * (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
}

/* Values that are larger than what a lane brings to a shuffle go in several. */
template <class T>
T shuffle_any(int op, unsigned mask, const T &value, unsigned arg, int width, const char *file, int line) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 32,
                "groups shuffle plain types of up to 32 bytes");
  T result = value;
  for (size_t at = 0; at < sizeof(T); at += 8) {
    const size_t part = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
    uint64_t bits = 0;
    memcpy(&bits, reinterpret_cast<const char *>(&value) + at, part);
    bits = collective(op, sizeof(T) > 4, mask, bits, arg, width, file, line);
    memcpy(reinterpret_cast<char *>(&result) + at, &bits, part);
  }
  return result;
}

[[noreturn]] CUDA_CPU_UNTRACED CUDA_CPU_RARE void report_group(const char *call, const char *why, unsigned a,
                                                               unsigned b, const char *file, int line) {
  in_kernel(call);
  char because[128];
  snprintf(because, sizeof because, why, a, b); /* a literal with two %u */
  fail_thread(": %s, %s:%d, %s", call, file, line, because);
}

} // namespace cuda_cpu

namespace cooperative_groups {

class thread_block;
class coalesced_group;

/* What every group can be passed on as: it knows its threads, and can wait for them. */
class thread_group {
public:
  unsigned long long size() const {
    return kind == of_grid    ? gridDim.x * 1ull * gridDim.y * gridDim.z * cuda_cpu::threads_of_block()
           : kind == of_block ? cuda_cpu::threads_of_block()
                              : static_cast<unsigned>(__builtin_popcount(mask));
  }
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const {
    if (kind == of_lanes) return rank_of_lane();
    unsigned long long rank = cuda_cpu::rank_in_block();
    return kind == of_grid ? rank + cuda_cpu::rank_in_grid() * cuda_cpu::threads_of_block() : rank;
  }
  void sync(CUDA_CPU_SITE) const {
    if (kind == of_grid)
      cuda_cpu::grid_sync(file, line);
    else if (kind == of_block)
      __syncthreads(file, line);
    else
      __syncwarp(mask, file, line);
  }

protected:
  enum group_kind : unsigned char { of_block, of_grid, of_lanes };
  group_kind kind;
  unsigned mask; /* of the lanes of its warp that belong to it */
  unsigned meta_rank, meta_size;

  explicit thread_group(group_kind k, unsigned lanes = 0, unsigned rank = 0, unsigned groups = 1)
      : kind(k), mask(lanes), meta_rank(rank), meta_size(groups) {}
  friend struct partition;
  static unsigned lane() { return cuda_cpu::rank_in_block() % 32; }
  unsigned rank_of_lane() const { return static_cast<unsigned>(__builtin_popcount(mask & ((1u << lane()) - 1))); }

  friend thread_group tiled_partition(const thread_group &parent, unsigned size, const char *file, int line);
  friend coalesced_group tiled_partition(const coalesced_group &parent, unsigned size, const char *file, int line);
};

/* --- the block --- */

class thread_block : public thread_group {
public:
  struct arrival_token {};

  void sync(CUDA_CPU_SITE) const { __syncthreads(file, line); }
  arrival_token barrier_arrive() const { return {}; }
  void barrier_wait(arrival_token &&, CUDA_CPU_SITE) const { __syncthreads(file, line); }
  static unsigned size() { return cuda_cpu::threads_of_block(); }
  static unsigned num_threads() { return size(); }
  static unsigned thread_rank() { return cuda_cpu::rank_in_block(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }

private:
  thread_block() : thread_group(of_block) {}
  friend thread_block this_thread_block();
};
inline thread_block this_thread_block() {
  cuda_cpu::in_kernel("this_thread_block");
  return {};
}

/* Memory for tiles of several warps, which end the launch here. */
template <unsigned MaxBlockSize = 1024> struct block_tile_memory { unsigned unused; };
template <unsigned Size> thread_block this_thread_block(block_tile_memory<Size> &) { return this_thread_block(); }

/* --- the grid --- */

class grid_group : public thread_group {
public:
  using arrival_token = unsigned;

  bool is_valid() const { return cuda_cpu::in_cooperative_launch(); }
  void sync(CUDA_CPU_SITE) const { cuda_cpu::grid_sync(file, line); }
  arrival_token barrier_arrive() const { return 0; }
  void barrier_wait(arrival_token &&, CUDA_CPU_SITE) const { cuda_cpu::grid_sync(file, line); }
  static unsigned long long size() { return num_blocks() * cuda_cpu::threads_of_block(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long thread_rank() {
    return block_rank() * cuda_cpu::threads_of_block() + cuda_cpu::rank_in_block();
  }
  static dim3 thread_index() {
    return dim3(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
                blockIdx.z * blockDim.z + threadIdx.z);
  }
  static dim3 dim_threads() { return dim3(gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return blockIdx; }
  static unsigned long long num_blocks() { return gridDim.x * 1ull * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() { return cuda_cpu::rank_in_grid(); }

private:
  grid_group() : thread_group(of_grid) {}
  friend grid_group this_grid();
};
inline grid_group this_grid() {
  cuda_cpu::in_kernel("this_grid");
  return {};
}

template <bool clusters = false> void this_cluster() {
  static_assert(clusters, "this_cluster: the CPU stand-in has no thread-block clusters");
}

/* --- some lanes of a warp, with ranks of their own --- */

class coalesced_group : public thread_group {
public:
  void sync(CUDA_CPU_SITE) const { __syncwarp(mask, file, line); }
  unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return rank_of_lane(); }
  unsigned meta_group_rank() const { return meta_rank; }
  unsigned meta_group_size() const { return meta_size; }

  template <class T> T shfl(T value, int rank, CUDA_CPU_SITE) const {
    if (static_cast<unsigned>(rank) >= size())
      cuda_cpu::report_group("coalesced_group::shfl", "rank %u is not in the group of %u threads",
                             static_cast<unsigned>(rank), size(), file, line);
    return from_rank(value, static_cast<unsigned>(rank), file, line);
  }
  template <class T> T shfl_up(T value, unsigned delta, CUDA_CPU_SITE) const {
    const unsigned me = rank_of_lane();
    return from_rank(value, delta > me ? me : me - delta, file, line);
  }
  template <class T> T shfl_down(T value, unsigned delta, CUDA_CPU_SITE) const {
    const unsigned me = rank_of_lane();
    return from_rank(value, delta >= size() - me ? me : me + delta, file, line);
  }
  int any(int predicate, CUDA_CPU_SITE) const { return __any_sync(mask, predicate, file, line); }
  int all(int predicate, CUDA_CPU_SITE) const { return __all_sync(mask, predicate, file, line); }
  unsigned ballot(int predicate, CUDA_CPU_SITE) const { return ranks(__ballot_sync(mask, predicate, file, line)); }
  template <class T> unsigned match_any(T value, CUDA_CPU_SITE) const {
    static_assert(std::is_arithmetic<T>::value, "match_any compares numbers");
    return ranks(cuda_cpu::match_any(mask, value, file, line));
  }
  template <class T> unsigned match_all(T value, int &predicate, CUDA_CPU_SITE) const {
    static_assert(std::is_arithmetic<T>::value, "match_all compares numbers");
    return ranks(cuda_cpu::match_all(mask, value, &predicate, file, line));
  }

private:
  explicit coalesced_group(unsigned lanes, unsigned rank = 0, unsigned groups = 1)
      : thread_group(of_lanes, lanes, rank, groups) {}

  template <class T> T from_rank(const T &value, unsigned rank, const char *file, int line) const {
    unsigned rest = mask;
    while (rank--) rest &= rest - 1;
    return cuda_cpu::shuffle_any(cuda_cpu::op_shfl, mask, value, static_cast<unsigned>(__builtin_ctz(rest)), 32, file,
                                 line);
  }
  unsigned ranks(unsigned lanes) const { /* bits of lanes to bits of ranks */
    unsigned r = 0, bit = 1;
    for (unsigned rest = mask; rest; rest &= rest - 1, bit += bit)
      if (lanes & rest & -rest) r |= bit;
    return r;
  }

  friend coalesced_group coalesced_threads();
  friend struct partition;
  friend coalesced_group tiled_partition(const coalesced_group &parent, unsigned size, const char *file, int line);
};
inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

/* --- tiles --- */

template <unsigned Size, class Parent = void> class thread_block_tile;

template <unsigned Size> class thread_block_tile<Size, void> : public thread_group {
  static_assert(Size && !(Size & (Size - 1)), "the size of a tile is a power of two");

public:
  void sync(CUDA_CPU_SITE) const { __syncwarp(mask, file, line); }
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned thread_rank() { return cuda_cpu::rank_in_block() % Size; }
  unsigned meta_group_rank() const { return meta_rank; }
  unsigned meta_group_size() const { return meta_size; }

  template <class T> T shfl(T value, int rank, CUDA_CPU_SITE) const {
    return shuffle(cuda_cpu::op_shfl, value, static_cast<unsigned>(rank), file, line);
  }
  template <class T> T shfl_up(T value, unsigned delta, CUDA_CPU_SITE) const {
    return shuffle(cuda_cpu::op_shfl_up, value, delta, file, line);
  }
  template <class T> T shfl_down(T value, unsigned delta, CUDA_CPU_SITE) const {
    return shuffle(cuda_cpu::op_shfl_down, value, delta, file, line);
  }
  template <class T> T shfl_xor(T value, unsigned lane_mask, CUDA_CPU_SITE) const {
    return shuffle(cuda_cpu::op_shfl_xor, value, lane_mask, file, line);
  }
  int any(int predicate, CUDA_CPU_SITE) const { return __any_sync(mask, predicate, file, line); }
  int all(int predicate, CUDA_CPU_SITE) const { return __all_sync(mask, predicate, file, line); }
  unsigned ballot(int predicate, CUDA_CPU_SITE) const { return __ballot_sync(mask, predicate, file, line) >> first(); }
  template <class T> unsigned match_any(T value, CUDA_CPU_SITE) const {
    static_assert(std::is_arithmetic<T>::value, "match_any compares numbers");
    return cuda_cpu::match_any(mask, value, file, line) >> first();
  }
  template <class T> unsigned match_all(T value, int &predicate, CUDA_CPU_SITE) const {
    static_assert(std::is_arithmetic<T>::value, "match_all compares numbers");
    return cuda_cpu::match_all(mask, value, &predicate, file, line) >> first();
  }

protected:
  thread_block_tile(unsigned rank, unsigned groups) : thread_group(of_lanes, all_lanes() << first(), rank, groups) {
    if (Size > 32)
      cuda_cpu::report_group("tiled_partition", "a tile of %u threads; here they have %u at most", Size, 32,
                             __builtin_FILE(), __builtin_LINE());
  }

private:
  static constexpr unsigned all_lanes() { return Size < 32 ? (1u << Size % 32) - 1 : ~0u; }
  static unsigned first() { return lane() & ~(Size - 1); }
  template <class T> T shuffle(int op, const T &value, unsigned arg, const char *file, int line) const {
    return cuda_cpu::shuffle_any(op, mask, value, arg, static_cast<int>(Size), file, line);
  }

  friend thread_block_tile<1, void> this_thread();
  friend struct partition;
};

/* A tile that knows what it is a part of. */
template <unsigned Size, class Parent> class thread_block_tile : public thread_block_tile<Size, void> {
  explicit thread_block_tile(const Parent &g)
      : thread_block_tile<Size, void>(g.thread_rank() / Size, (g.size() + Size - 1) / Size) {}
  template <unsigned S, class P> friend thread_block_tile<S, P> tiled_partition(const P &parent);
};

template <unsigned Size, class Parent> thread_block_tile<Size, Parent> tiled_partition(const Parent &parent) {
  return thread_block_tile<Size, Parent>(parent);
}
inline thread_block_tile<1, void> this_thread() {
  cuda_cpu::in_kernel("this_thread");
  return thread_block_tile<1, void>(0, 1);
}

/* --- parts of a size that is known at run time --- */

inline coalesced_group tiled_partition(const coalesced_group &parent, unsigned size, CUDA_CPU_SITE) {
  if (!size || (size & (size - 1)))
    cuda_cpu::report_group("tiled_partition", "the size of a part is %u, not a power of two", size, 0, file, line);
  const unsigned me = parent.rank_of_lane(), number = me / size;
  unsigned rest = parent.mask, lanes = 0;
  for (unsigned rank = 0; rest; rank++, rest &= rest - 1)
    if (rank / size == number) lanes |= rest & -rest;
  return coalesced_group(lanes, number, (parent.size() + size - 1) / size);
}
inline thread_group tiled_partition(const thread_group &parent, unsigned size, CUDA_CPU_SITE) {
  if (!size || (size & (size - 1)) || size > 32)
    cuda_cpu::report_group("tiled_partition", "the size of a part is %u, not a power of two up to 32", size, 0, file,
                           line);
  if (parent.kind == thread_group::of_grid)
    cuda_cpu::report_group("tiled_partition", "a grid is not divided into parts of %u", size, 0, file, line);
  const unsigned lane = thread_group::lane(), all = cuda_cpu::threads_of_block(), me = cuda_cpu::rank_in_block();
  unsigned lanes = ~0u >> (32 - size) << (lane & ~(size - 1));
  if (all - (me - lane) < 32) lanes &= (1u << (all - (me - lane))) - 1; /* the last warp may have fewer threads */
  if (parent.kind == thread_group::of_block)
    return thread_group(thread_group::of_lanes, lanes, me / size, (all + size - 1) / size);
  const unsigned rank = parent.rank_of_lane(), count = static_cast<unsigned>(parent.size());
  unsigned rest = parent.mask;
  lanes = 0;
  for (unsigned r = 0; rest; r++, rest &= rest - 1)
    if (r / size == rank / size) lanes |= rest & -rest;
  return thread_group(thread_group::of_lanes, lanes, rank / size, (count + size - 1) / size);
}

/* The threads that agree with the calling one. */
struct partition {
  static coalesced_group binary(const thread_group &g, bool predicate, const char *file, int line) {
    const unsigned set = __ballot_sync(g.mask, predicate, file, line);
    if (!set || set == g.mask) return coalesced_group(g.mask);
    return coalesced_group(predicate ? set : g.mask & ~set, predicate, 2);
  }
  template <class L> static coalesced_group labeled(const thread_group &g, L label, const char *file, int line) {
    const unsigned same = cuda_cpu::match_any(g.mask, label, file, line), first = same & -same;
    const unsigned firsts = __ballot_sync(g.mask, 1u << g.lane() == first, file, line);
    return coalesced_group(same, static_cast<unsigned>(__builtin_popcount(firsts & (first - 1))),
                           static_cast<unsigned>(__builtin_popcount(firsts)));
  }
};
inline coalesced_group binary_partition(const coalesced_group &g, bool predicate, CUDA_CPU_SITE) {
  return partition::binary(g, predicate, file, line);
}
template <unsigned Size, class Parent>
coalesced_group binary_partition(const thread_block_tile<Size, Parent> &g, bool predicate, CUDA_CPU_SITE) {
  return partition::binary(g, predicate, file, line);
}
template <class G, class L> coalesced_group labeled_partition(const G &g, L label, CUDA_CPU_SITE) {
  static_assert(std::is_integral<L>::value || std::is_pointer<L>::value, "a label is an integer or a pointer");
  if constexpr (std::is_same<L, bool>::value)
    return binary_partition(g, label, file, line);
  else
    return partition::labeled(g, label, file, line);
}

/* --- for every group --- */

template <class G> void sync(const G &g, CUDA_CPU_SITE) { g.sync(file, line); }
template <class G> auto thread_rank(const G &g) -> decltype(g.thread_rank()) { return g.thread_rank(); }
template <class G> auto group_size(const G &g) -> decltype(g.num_threads()) { return g.num_threads(); }

template <class G, class F, class... A> void invoke_one(const G &g, F &&f, A &&...args) {
  if (g.thread_rank() == 0) static_cast<F &&>(f)(static_cast<A &&>(args)...);
}
template <class G, class F, class... A>
auto invoke_one_broadcast(const G &g, F &&f, A &&...args)
    -> std::decay_t<decltype(static_cast<F &&>(f)(static_cast<A &&>(args)...))> {
  std::decay_t<decltype(static_cast<F &&>(f)(static_cast<A &&>(args)...))> result{};
  if (g.thread_rank() == 0) result = static_cast<F &&>(f)(static_cast<A &&>(args)...);
  return g.shfl(result, 0);
}

} // namespace cooperative_groups
