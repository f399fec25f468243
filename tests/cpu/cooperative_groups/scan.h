/* Scans over a tile or coalesced group, in CUDA's order of operations: in steps that double, each with what is below as
 * the second argument; and the operations of scans and reductions. */
#pragma once
#pragma GCC system_header

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T> struct plus {
  T operator()(T a, T b) const { return static_cast<T>(a + b); }
};
template <class T> struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
  T operator()(T a, T b) const { return static_cast<T>(a & b); }
};
template <class T> struct bit_or {
  T operator()(T a, T b) const { return static_cast<T>(a | b); }
};
template <class T> struct bit_xor {
  T operator()(T a, T b) const { return static_cast<T>(a ^ b); }
};

template <class G, class T, class F> T inclusive_scan(const G &g, T value, F &&op, CUDA_CPU_SITE) {
  for (unsigned step = 1; step < g.size(); step *= 2) {
    const T below = g.shfl_up(value, step, file, line);
    if (step <= g.thread_rank()) value = op(value, below);
  }
  return value;
}
template <class G, class T> T inclusive_scan(const G &g, T value, CUDA_CPU_SITE) {
  return inclusive_scan(g, value, plus<T>(), file, line);
}

/* The first thread gets T(), whatever the operation. */
template <class G, class T, class F> T exclusive_scan(const G &g, T value, F &&op, CUDA_CPU_SITE) {
  const T below = g.shfl_up(inclusive_scan(g, value, op, file, line), 1, file, line);
  return g.thread_rank() == 0 ? T() : below;
}
template <class G, class T> T exclusive_scan(const G &g, T value, CUDA_CPU_SITE) {
  return exclusive_scan(g, value, plus<T>(), file, line);
}

} // namespace cooperative_groups
