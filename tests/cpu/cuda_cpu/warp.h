/* Barriers and warp primitives. The source line of each call comes along, for messages. */
#pragma once
#pragma GCC system_header

#include "thread.h"

#define CUDA_CPU_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(CUDA_CPU_SITE) { cuda_cpu::barrier(cuda_cpu::op_syncthreads, 0, file, line); }
inline int __syncthreads_count(int predicate, CUDA_CPU_SITE) {
  return cuda_cpu::barrier(cuda_cpu::op_syncthreads_count, predicate, file, line);
}
inline int __syncthreads_and(int predicate, CUDA_CPU_SITE) {
  return cuda_cpu::barrier(cuda_cpu::op_syncthreads_and, predicate, file, line);
}
inline int __syncthreads_or(int predicate, CUDA_CPU_SITE) {
  return cuda_cpu::barrier(cuda_cpu::op_syncthreads_or, predicate, file, line);
}
inline void __syncwarp(unsigned mask = 0xffffffff, CUDA_CPU_SITE) {
  cuda_cpu::collective(cuda_cpu::op_syncwarp, 0, mask, 0, 0, 32, file, line);
}

inline int __any_sync(unsigned mask, int predicate, CUDA_CPU_SITE) {
  return static_cast<int>(cuda_cpu::collective(cuda_cpu::op_any, 0, mask, predicate != 0, 0, 32, file, line));
}
inline int __all_sync(unsigned mask, int predicate, CUDA_CPU_SITE) {
  return static_cast<int>(cuda_cpu::collective(cuda_cpu::op_all, 0, mask, predicate != 0, 0, 32, file, line));
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_CPU_SITE) {
  return static_cast<unsigned>(cuda_cpu::collective(cuda_cpu::op_ballot, 0, mask, predicate != 0, 0, 32, file, line));
}
/* Threads of a warp do not run in step here: each is alone, which is one of the answers that CUDA allows. */
inline unsigned __activemask() {
  cuda_cpu::in_kernel("__activemask");
  return 1u << (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}

namespace cuda_cpu {

template <class T> inline uint64_t to_bits(T value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T> inline T from_bits(uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
inline T shuffle(int op, unsigned mask, T value, unsigned arg, int width, const char *file, int line) {
  return from_bits<T>(collective(op, sizeof(T) > 4, mask, to_bits(value), arg, width, file, line));
}
template <class T> inline unsigned match_any(unsigned mask, T value, const char *file, int line) {
  return static_cast<unsigned>(collective(op_match_any, sizeof(T) > 4, mask, to_bits(value), 0, 32, file, line));
}
template <class T> inline unsigned match_all(unsigned mask, T value, int *predicate, const char *file, int line) {
  unsigned r = static_cast<unsigned>(collective(op_match_all, sizeof(T) > 4, mask, to_bits(value), 0, 32, file, line));
  *predicate = r != 0;
  return r;
}

} // namespace cuda_cpu

#define CUDA_CPU_SHUFFLE(T)                                                                                            \
  inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_CPU_SITE) {                            \
    return cuda_cpu::shuffle(cuda_cpu::op_shfl, mask, value, static_cast<unsigned>(source), width, file, line);        \
  }                                                                                                                    \
  inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_CPU_SITE) {                     \
    return cuda_cpu::shuffle(cuda_cpu::op_shfl_up, mask, value, delta, width, file, line);                             \
  }                                                                                                                    \
  inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_CPU_SITE) {                   \
    return cuda_cpu::shuffle(cuda_cpu::op_shfl_down, mask, value, delta, width, file, line);                           \
  }                                                                                                                    \
  inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, CUDA_CPU_SITE) {                     \
    return cuda_cpu::shuffle(cuda_cpu::op_shfl_xor, mask, value, static_cast<unsigned>(lane_mask), width, file, line); \
  }
#define CUDA_CPU_MATCH(T)                                                                                              \
  inline unsigned __match_any_sync(unsigned mask, T value, CUDA_CPU_SITE) {                                            \
    return cuda_cpu::match_any(mask, value, file, line);                                                               \
  }                                                                                                                    \
  inline unsigned __match_all_sync(unsigned mask, T value, int *predicate, CUDA_CPU_SITE) {                            \
    return cuda_cpu::match_all(mask, value, predicate, file, line);                                                    \
  }
#define CUDA_CPU_ALL(M)                                                                                                \
  M(int) M(unsigned) M(long) M(unsigned long) M(long long) M(unsigned long long) M(float) M(double)
CUDA_CPU_ALL(CUDA_CPU_SHUFFLE)
CUDA_CPU_ALL(CUDA_CPU_MATCH)
#undef CUDA_CPU_MATCH
#undef CUDA_CPU_ALL

#define CUDA_CPU_REDUCE(name, T, op)                                                                                   \
  inline T name(unsigned mask, T value, CUDA_CPU_SITE) {                                                               \
    return static_cast<T>(                                                                                             \
        cuda_cpu::collective(cuda_cpu::op, 0, mask, static_cast<unsigned>(value), 0, 32, file, line));                 \
  }
CUDA_CPU_REDUCE(__reduce_add_sync, unsigned, op_reduce_add)
CUDA_CPU_REDUCE(__reduce_add_sync, int, op_reduce_add)
CUDA_CPU_REDUCE(__reduce_min_sync, unsigned, op_reduce_umin)
CUDA_CPU_REDUCE(__reduce_min_sync, int, op_reduce_min)
CUDA_CPU_REDUCE(__reduce_max_sync, unsigned, op_reduce_umax)
CUDA_CPU_REDUCE(__reduce_max_sync, int, op_reduce_max)
CUDA_CPU_REDUCE(__reduce_and_sync, unsigned, op_reduce_and)
CUDA_CPU_REDUCE(__reduce_or_sync, unsigned, op_reduce_or)
CUDA_CPU_REDUCE(__reduce_xor_sync, unsigned, op_reduce_xor)
#undef CUDA_CPU_REDUCE

/* --- fences, and waiting for others --- */

inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  cuda_cpu::atomic_point();
}
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) {
  cuda_cpu::in_kernel("__nanosleep");
  cuda_cpu::yield();
}

/* Ends the launch. */
[[noreturn]] inline void __trap(CUDA_CPU_SITE) {
  cuda_cpu::in_kernel("__trap");
  cuda_cpu::fail_thread(": __trap, %s:%d", file, line);
}
