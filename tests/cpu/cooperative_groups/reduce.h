/* Reductions over a tile or coalesced group. The order of the operations is CUDA's: by halves in a tile, along a scan in
 * a part of a warp, so that sums of floating-point numbers come out with the same bits. */
#pragma once
#pragma GCC system_header

#include "scan.h"

namespace cooperative_groups {

template <unsigned Size, class Parent, class T, class F>
T reduce(const thread_block_tile<Size, Parent> &g, T value, F &&op, CUDA_CPU_SITE) {
  for (unsigned half = Size / 2; half; half /= 2) value = op(value, g.shfl_xor(value, half, file, line));
  return value;
}
template <class T, class F> T reduce(const coalesced_group &g, T value, F &&op, CUDA_CPU_SITE) {
  if (g.size() == 32) {
    for (unsigned half = 16; half; half /= 2)
      value = op(value, g.shfl(value, static_cast<int>(g.thread_rank() ^ half), file, line));
    return value;
  }
  return g.shfl(inclusive_scan(g, value, op, file, line), static_cast<int>(g.size()) - 1, file, line);
}

template <class G, class T, class V, class F>
void reduce_store_async(const G &g, T *dst, V value, F &&op, CUDA_CPU_SITE) {
  const T result = reduce(g, static_cast<T>(value), op, file, line);
  if (g.thread_rank() == 0) *dst = result;
}

} // namespace cooperative_groups
