/* Atomic operations: relaxed, as CUDA's are. Each is also a point where, in the random schedule or after many in a
 * row, other threads get their turn, so that a thread may wait for another one by polling with an atomic. */
#pragma once
#pragma GCC system_header

#include <string.h>
#include "thread.h"

namespace cuda_cpu {

/* The race checker does not see it: to the checker the update that follows is one access. */
template <class Bits> CUDA_CPU_UNTRACED CUDA_CPU_SEPARATE inline Bits first_guess(const Bits *p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* new = f(old), atomically; returns old. Works on the bits, so that any type of 1, 2, 4 or 8 bytes will do. */
template <class Bits, class T, class F> CUDA_CPU_DEVICE T atomic_update(T *address, F f) {
  static_assert(sizeof(Bits) == sizeof(T), "the bits of T");
  atomic_point();
  Bits *p = reinterpret_cast<Bits *>(address), before = first_guess(p), after;
  T old, changed;
  do {
    memcpy(&old, &before, sizeof old);
    changed = f(old);
    memcpy(&after, &changed, sizeof after);
  } while (!__atomic_compare_exchange_n(p, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

} // namespace cuda_cpu

/* Each also as _block and _system, which are no different here. */
#define CUDA_CPU_ATOMIC1(name, T, ...)                                                                                 \
  CUDA_CPU_DEVICE T name(T *address, T value) {                                                                        \
    cuda_cpu::atomic_point();                                                                                          \
    return __VA_ARGS__;                                                                                                \
  }                                                                                                                    \
  CUDA_CPU_DEVICE T name##_block(T *address, T value) { return name(address, value); }                                 \
  CUDA_CPU_DEVICE T name##_system(T *address, T value) { return name(address, value); }
#define CUDA_CPU_UPDATE(name, T, Bits, ...)                                                                            \
  CUDA_CPU_DEVICE T name(T *address, T value) {                                                                        \
    return cuda_cpu::atomic_update<Bits>(address, [=](T old) -> T { return __VA_ARGS__; });                            \
  }                                                                                                                    \
  CUDA_CPU_DEVICE T name##_block(T *address, T value) { return name(address, value); }                                 \
  CUDA_CPU_DEVICE T name##_system(T *address, T value) { return name(address, value); }

#define CUDA_CPU_INTEGER(T, Bits)                                                                                      \
  CUDA_CPU_ATOMIC1(atomicAnd, T, __atomic_fetch_and(address, value, __ATOMIC_RELAXED))                                 \
  CUDA_CPU_ATOMIC1(atomicOr, T, __atomic_fetch_or(address, value, __ATOMIC_RELAXED))                                   \
  CUDA_CPU_ATOMIC1(atomicXor, T, __atomic_fetch_xor(address, value, __ATOMIC_RELAXED))                                 \
  CUDA_CPU_UPDATE(atomicMin, T, Bits, value < old ? value : old)                                                       \
  CUDA_CPU_UPDATE(atomicMax, T, Bits, value > old ? value : old)
CUDA_CPU_INTEGER(int, unsigned)
CUDA_CPU_INTEGER(unsigned, unsigned)
CUDA_CPU_INTEGER(long long, unsigned long long)
CUDA_CPU_INTEGER(unsigned long long, unsigned long long)

#define CUDA_CPU_ADD(T) CUDA_CPU_ATOMIC1(atomicAdd, T, __atomic_fetch_add(address, value, __ATOMIC_RELAXED))
CUDA_CPU_ADD(int)
CUDA_CPU_ADD(unsigned)
CUDA_CPU_ADD(unsigned long long)
CUDA_CPU_UPDATE(atomicAdd, float, unsigned, old + value)
CUDA_CPU_UPDATE(atomicAdd, double, unsigned long long, old + value)
CUDA_CPU_ATOMIC1(atomicSub, int, __atomic_fetch_sub(address, value, __ATOMIC_RELAXED))
CUDA_CPU_ATOMIC1(atomicSub, unsigned, __atomic_fetch_sub(address, value, __ATOMIC_RELAXED))
CUDA_CPU_ATOMIC1(atomicExch, int, __atomic_exchange_n(address, value, __ATOMIC_RELAXED))
CUDA_CPU_ATOMIC1(atomicExch, unsigned, __atomic_exchange_n(address, value, __ATOMIC_RELAXED))
CUDA_CPU_ATOMIC1(atomicExch, unsigned long long, __atomic_exchange_n(address, value, __ATOMIC_RELAXED))
CUDA_CPU_UPDATE(atomicExch, float, unsigned, value)
CUDA_CPU_UPDATE(atomicInc, unsigned, unsigned, old >= value ? 0 : old + 1)
CUDA_CPU_UPDATE(atomicDec, unsigned, unsigned, old == 0 || old > value ? value : old - 1)

#define CUDA_CPU_CAS(T)                                                                                                \
  CUDA_CPU_DEVICE T atomicCAS(T *address, T compare, T value) {                                                        \
    cuda_cpu::atomic_point();                                                                                          \
    __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                  \
    return compare;                                                                                                    \
  }                                                                                                                    \
  CUDA_CPU_DEVICE T atomicCAS_block(T *address, T compare, T value) { return atomicCAS(address, compare, value); }     \
  CUDA_CPU_DEVICE T atomicCAS_system(T *address, T compare, T value) { return atomicCAS(address, compare, value); }
CUDA_CPU_CAS(int)
CUDA_CPU_CAS(unsigned)
CUDA_CPU_CAS(unsigned long long)
CUDA_CPU_CAS(unsigned short)

#undef CUDA_CPU_INTEGER
#undef CUDA_CPU_ADD
#undef CUDA_CPU_CAS
