/* Video instructions: the two halves or four bytes of a word, each by itself. */
#pragma once
#pragma GCC system_header

#include <stdint.h>
#include <string.h>

namespace cuda_cpu {

/* f(part of a, part of b) for each part, which is of the type T; what is too large for a part is cut off. */
template <class T, class F> inline unsigned each_part(unsigned a, unsigned b, F f) {
  T x[4 / sizeof(T)], y[4 / sizeof(T)];
  unsigned r;
  memcpy(x, &a, 4);
  memcpy(y, &b, 4);
  for (size_t i = 0; i < 4 / sizeof(T); i++) x[i] = static_cast<T>(f(static_cast<int>(x[i]), static_cast<int>(y[i])));
  memcpy(&r, x, 4);
  return r;
}
template <class T> inline int clamped(int x) {
  const int low = static_cast<T>(-1) < 0 ? -(1 << (8 * sizeof(T) - 1)) : 0;
  const int high = low + (1 << 8 * sizeof(T)) - 1;
  return x < low ? low : x > high ? high : x;
}
inline int distance(int x, int y) { return x > y ? x - y : y - x; }

} // namespace cuda_cpu

#define CUDA_CPU_PARTS1(name, T, ...)                                                                                  \
  inline unsigned name(unsigned a) {                                                                                   \
    return cuda_cpu::each_part<T>(a, 0, [](int x, int) { return __VA_ARGS__; });                                       \
  }
#define CUDA_CPU_PARTS2(name, T, ...)                                                                                  \
  inline unsigned name(unsigned a, unsigned b) {                                                                       \
    return cuda_cpu::each_part<T>(a, b, [](int x, int y) { return __VA_ARGS__; });                                     \
  }
/* Comparisons give all bits of a part, or the number 1. */
#define CUDA_CPU_COMPARISON(name, suffix, T, op)                                                                       \
  CUDA_CPU_PARTS2(__vcmp##name##suffix, T, x op y ? -1 : 0)                                                            \
  CUDA_CPU_PARTS2(__vset##name##suffix, T, x op y)
#define CUDA_CPU_SUM(name, T)                                                                                          \
  inline unsigned name(unsigned a, unsigned b) {                                                                       \
    int sum = 0;                                                                                                       \
    cuda_cpu::each_part<T>(a, b, [&sum](int x, int y) { return sum += cuda_cpu::distance(x, y); });                    \
    return static_cast<unsigned>(sum);                                                                                 \
  }
#define CUDA_CPU_SIMD(parts, T, U)                                                                                     \
  CUDA_CPU_PARTS2(__vadd##parts, U, x + y)                                                                             \
  CUDA_CPU_PARTS2(__vaddss##parts, T, cuda_cpu::clamped<T>(x + y))                                                     \
  CUDA_CPU_PARTS2(__vaddus##parts, U, cuda_cpu::clamped<U>(x + y))                                                     \
  CUDA_CPU_PARTS2(__vsub##parts, U, x - y)                                                                             \
  CUDA_CPU_PARTS2(__vsubss##parts, T, cuda_cpu::clamped<T>(x - y))                                                     \
  CUDA_CPU_PARTS2(__vsubus##parts, U, cuda_cpu::clamped<U>(x - y))                                                     \
  CUDA_CPU_PARTS2(__vmaxs##parts, T, x > y ? x : y)                                                                    \
  CUDA_CPU_PARTS2(__vmaxu##parts, U, x > y ? x : y)                                                                    \
  CUDA_CPU_PARTS2(__vmins##parts, T, x < y ? x : y)                                                                    \
  CUDA_CPU_PARTS2(__vminu##parts, U, x < y ? x : y)                                                                    \
  CUDA_CPU_PARTS2(__vavgs##parts, T, (x + y + (x + y >= 0)) >> 1)                                                      \
  CUDA_CPU_PARTS2(__vavgu##parts, U, (x + y + 1) >> 1)                                                                 \
  CUDA_CPU_PARTS2(__vhaddu##parts, U, (x + y) >> 1)                                                                    \
  CUDA_CPU_PARTS1(__vabs##parts, T, x < 0 ? -x : x)                                                                    \
  CUDA_CPU_PARTS1(__vabsss##parts, T, cuda_cpu::clamped<T>(x < 0 ? -x : x))                                            \
  CUDA_CPU_PARTS1(__vneg##parts, T, -x)                                                                                \
  CUDA_CPU_PARTS1(__vnegss##parts, T, cuda_cpu::clamped<T>(-x))                                                        \
  CUDA_CPU_PARTS2(__vabsdiffs##parts, T, cuda_cpu::distance(x, y))                                                     \
  CUDA_CPU_PARTS2(__vabsdiffu##parts, U, cuda_cpu::distance(x, y))                                                     \
  CUDA_CPU_SUM(__vsads##parts, T)                                                                                      \
  CUDA_CPU_SUM(__vsadu##parts, U)                                                                                      \
  CUDA_CPU_COMPARISON(eq, parts, U, ==)                                                                                \
  CUDA_CPU_COMPARISON(ne, parts, U, !=)                                                                                \
  CUDA_CPU_COMPARISON(gts, parts, T, >)                                                                                \
  CUDA_CPU_COMPARISON(gtu, parts, U, >)                                                                                \
  CUDA_CPU_COMPARISON(ges, parts, T, >=)                                                                               \
  CUDA_CPU_COMPARISON(geu, parts, U, >=)                                                                               \
  CUDA_CPU_COMPARISON(lts, parts, T, <)                                                                                \
  CUDA_CPU_COMPARISON(ltu, parts, U, <)                                                                                \
  CUDA_CPU_COMPARISON(les, parts, T, <=)                                                                               \
  CUDA_CPU_COMPARISON(leu, parts, U, <=)
CUDA_CPU_SIMD(2, int16_t, uint16_t)
CUDA_CPU_SIMD(4, int8_t, uint8_t)
#undef CUDA_CPU_SIMD
#undef CUDA_CPU_SUM
#undef CUDA_CPU_COMPARISON
#undef CUDA_CPU_PARTS1
#undef CUDA_CPU_PARTS2
