/* Copies by all threads of a group. Each thread copies its share at once; that all have, the group's wait tells. */
#pragma once
#pragma GCC system_header

#include "../cooperative_groups.h"

namespace cuda {

/* A number of bytes that the caller knows to be a multiple of Alignment, as pointers given with it are. */
template <size_t Alignment> struct aligned_size_t {
  static constexpr size_t align = Alignment;
  size_t value;
  explicit constexpr aligned_size_t(size_t bytes) : value(bytes) {}
  constexpr operator size_t() const { return value; }
};

} // namespace cuda

namespace cuda_cpu {

template <class Size> struct alignment_of_size { static constexpr size_t value = 1; };
template <size_t Alignment> struct alignment_of_size<cuda::aligned_size_t<Alignment>> {
  static constexpr size_t value = Alignment;
};

template <class G>
void copy_share(const G &g, void *dst, const void *src, size_t bytes, size_t alignment, const char *file, int line) {
  if ((reinterpret_cast<uintptr_t>(dst) | reinterpret_cast<uintptr_t>(src) | bytes) % alignment)
    report_group("memcpy_async", "pointers or size are no multiples of the %u bytes of aligned_size_t",
                 static_cast<unsigned>(alignment), 0, file, line);
  const size_t part = alignment < 16 ? 16 : alignment, step = static_cast<size_t>(g.size()) * part;
  for (size_t at = static_cast<size_t>(g.thread_rank()) * part; at < bytes; at += step)
    memcpy(static_cast<char *>(dst) + at, static_cast<const char *>(src) + at, bytes - at < part ? bytes - at : part);
}

} // namespace cuda_cpu

namespace cooperative_groups {

/* `size` in bytes */
template <class G, class T, class Size>
void memcpy_async(const G &g, T *dst, const T *src, const Size &size, CUDA_CPU_SITE) {
  cuda_cpu::copy_share(g, dst, src, static_cast<size_t>(size), cuda_cpu::alignment_of_size<Size>::value, file, line);
}
/* Counts of elements: the smaller one is copied. */
template <class G, class T, class DstCount, class SrcCount>
void memcpy_async(const G &g, T *dst, const DstCount &dst_count, const T *src, const SrcCount &src_count,
                  CUDA_CPU_SITE) {
  const size_t d = static_cast<size_t>(dst_count), s = static_cast<size_t>(src_count);
  cuda_cpu::copy_share(g, dst, src, (d < s ? d : s) * sizeof(T), 1, file, line);
}
template <class G> void wait(const G &g, CUDA_CPU_SITE) { g.sync(file, line); }
template <unsigned Stages, class G> void wait_prior(const G &g, CUDA_CPU_SITE) { g.sync(file, line); }

} // namespace cooperative_groups
