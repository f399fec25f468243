/* Scan against cub::DeviceScan, for one element type after the other. */
#ifndef BENCH_SCAN_H
#define BENCH_SCAN_H

#include "reference.h"

#include <cub/cub.cuh>
#include <string.h>

template <class T> struct scan_call {
  const T *in;  /* buffer i begins at in + i * stride, and its result at out + i * stride */
  const T *was; /* where the check finds the input of an in-place scan; NULL: in itself */
  T *out;
  size_t n, stride, temp_bytes;
  void *temp;
  const gk_scratch *scratch;
};

/* Ours works in float for the half types, else in the type itself, which wraps. So do CUB's sums, but for the half
 * types, where they would work in the half type; a scan with plus<float> and a float to begin with does not. (For 8
 * bits CUB works in int, which gives the same bits.) */
template <class In, bool Inclusive> struct scan_sum {
  typedef In T;
  typedef reference_sum reference;
  static constexpr bool inclusive = Inclusive;
  static constexpr const char *name = Inclusive ? "inclusive sum" : "exclusive sum";
  static cudaError_t ours(const T *in, T *out, size_t n, cudaStream_t stream, const gk_scratch *scratch) {
    return Inclusive ? gk_scan_inclusive(in, out, n, gk_op_sum(), stream, scratch)
                     : gk_scan_exclusive(in, out, n, gk_op_sum(), stream, scratch);
  }
  static cudaError_t peer(void *temp, size_t &bytes, const T *in, T *out, size_t n, cudaStream_t stream) {
    const BENCH_CUB_SIZE count = static_cast<BENCH_CUB_SIZE>(n);
    if constexpr (Inclusive && sizeof(T) == 2)
      return cub::DeviceScan::InclusiveScanInit(temp, bytes, in, out, cuda::std::plus<float>(), 0.0f, count, stream);
    else if constexpr (Inclusive)
      return cub::DeviceScan::InclusiveSum(temp, bytes, in, out, count, stream);
    else if constexpr (sizeof(T) == 2)
      return cub::DeviceScan::ExclusiveScan(temp, bytes, in, out, cuda::std::plus<float>(), 0.0f, count, stream);
    else
      return cub::DeviceScan::ExclusiveSum(temp, bytes, in, out, count, stream);
  }
};

/* A functor of the user's: the value of the largest magnitude so far, which is associative and does not commute. */
struct farthest_so_far {
  __host__ __device__ float operator()(float x, float y) const { return fabsf(y) > fabsf(x) ? y : x; }
  __host__ __device__ float identity() const { return 0; }
};
struct scan_custom {
  typedef float T;
  typedef reference_largest reference;
  static constexpr bool inclusive = false;
  static constexpr const char *name = "exclusive custom";
  static cudaError_t ours(const T *in, T *out, size_t n, cudaStream_t stream, const gk_scratch *scratch) {
    return gk_scan_exclusive(in, out, n, farthest_so_far(), stream, scratch);
  }
  static cudaError_t peer(void *temp, size_t &bytes, const T *in, T *out, size_t n, cudaStream_t stream) {
    const BENCH_CUB_SIZE count = static_cast<BENCH_CUB_SIZE>(n);
    return cub::DeviceScan::ExclusiveScan(temp, bytes, in, out, farthest_so_far(), 0.0f, count, stream);
  }
};

/* --- The contestants ----------------------------------------------------------------------------------------------*/

template <class P> cudaError_t scan_ours(void *user, cudaStream_t stream, size_t i) {
  const scan_call<typename P::T> *c = static_cast<scan_call<typename P::T> *>(user);
  return P::ours(c->in + i * c->stride, c->out + i * c->stride, c->n, stream, c->scratch);
}
template <class P> cudaError_t scan_peer(void *user, cudaStream_t stream, size_t i) {
  scan_call<typename P::T> *c = static_cast<scan_call<typename P::T> *>(user);
  return P::peer(c->temp, c->temp_bytes, c->in + i * c->stride, c->out + i * c->stride, c->n, stream);
}
/* With temporaries from the stream's pool, as our call without a scratch. */
template <class P> cudaError_t scan_peer_allocating(void *user, cudaStream_t stream, size_t i) {
  scan_call<typename P::T> *c = static_cast<scan_call<typename P::T> *>(user);
  void *temp = NULL;
  size_t bytes = 0;
  GK_TRY(P::peer(NULL, bytes, c->in, c->out, c->n, stream));
  GK_TRY(cudaMallocAsync(&temp, bytes, stream));
  GK_TRY(P::peer(temp, bytes, c->in + i * c->stride, c->out + i * c->stride, c->n, stream));
  return cudaFreeAsync(temp, stream);
}

template <class P> size_t scan_wrong(const bench_contestant *who, size_t i) {
  typedef typename P::T T;
  const scan_call<T> *c = static_cast<scan_call<T> *>(who->user);
  T *const out = c->out + i * c->stride;
  const T *const in = (c->was ? c->was : c->in) + i * c->stride;
  if (c->was)
    GK_CHECK(cudaMemcpyAsync(out, in, c->n * sizeof(T), cudaMemcpyDeviceToDevice, bench.stream));
  else
    GK_CHECK(cudaMemsetAsync(out, 0xff, c->n * sizeof(T), bench.stream));
  GK_CHECK(who->fn(who->user, bench.stream, i));
  return reference_scan_wrong<typename P::reference, P::inclusive>(in, out, c->n);
}

/* --- The contests -------------------------------------------------------------------------------------------------*/

enum scan_variant { SCAN_PLAIN, SCAN_NO_SCRATCH, SCAN_IN_PLACE, SCAN_RANDOM_ALIKE, SCAN_RANDOM_DIFFERENTLY };

/* Our own sum out of place, as the peer of what should cost no more. */
template <class P> size_t scan_wrong_beside_sum(const bench_contestant *who, size_t i) {
  typedef scan_sum<typename P::T, P::inclusive> sum;
  return strcmp(who->name, "sum") ? scan_wrong<P>(who, i) : scan_wrong<sum>(who, i);
}

/* Offsets: where random arrays begin, in elements. */
template <class P>
void scan_contest(const bench_size &size, int modes, scan_variant variant = SCAN_PLAIN, bool beside_sum = false,
                  size_t in_offset = 0, size_t out_offset = 0) {
  typedef typename P::T T;
  static const char *const suffix[] = {"", " no scratch", " in place", " random alike", " random differently"};
  char what[40];
  snprintf(what, sizeof(what), "%s%s%s", P::name, suffix[variant], beside_sum ? "/sum" : "");

  scan_call<T> call = {};
  call.n = size.n;
  call.stride = gk_round_up(size.n + (in_offset > out_offset ? in_offset : out_offset), 256 / sizeof(T));
  bench_contest c = {};
  c.group = "scan", c.what = what, c.type = type_name<T>::value;
  snprintf(c.size, sizeof(c.size), "%s", size.label);
  c.n = static_cast<double>(size.n), c.modes = modes;
  c.bytes = 2 * static_cast<double>(size.n * sizeof(T));
  c.rotate_bytes = call.stride * sizeof(T);
  c.most_buffers = bench.capacity / c.rotate_bytes;
  if (!bench_wanted(&c)) return;
  if (!c.most_buffers) return bench_skip(&c, "the memory does not suffice");

  call.in = reinterpret_cast<T *>(bench.in) + in_offset, call.out = reinterpret_cast<T *>(bench.out) + out_offset;
  call.scratch = variant == SCAN_NO_SCRATCH ? NULL : &bench.scratch;
  GK_CHECK(P::peer(NULL, call.temp_bytes, call.in, call.out, call.n, bench.stream));
  call.temp = bench_temp(call.temp_bytes);
  scan_call<T> sum = call;
  if (variant == SCAN_IN_PLACE) {
    call.was = call.in;
    call.in = call.out;
    GK_CHECK(cudaMemcpyAsync(bench.out, bench.in, bench.capacity, cudaMemcpyDeviceToDevice, bench.stream));
  }
  bench_traffic traffic = {bench.in, bench.out, size.n * sizeof(T), c.rotate_bytes};
  c.ours = {"gpukit", scan_ours<P>, &call};
  c.peers[0] = {"CUB", variant == SCAN_NO_SCRATCH ? scan_peer_allocating<P> : scan_peer<P>, &call};
  if (variant != SCAN_RANDOM_ALIKE && variant != SCAN_RANDOM_DIFFERENTLY) {
    c.ceilings[0] = {"copy", bench_copy_by_kernel, &traffic};
    c.ceilings[1] = {"memcpy", bench_copy_by_memcpy, &traffic};
  }
  c.wrong = scan_wrong<P>;
  if (beside_sum) {
    c.peers[0] = {"sum", scan_ours<scan_sum<T, P::inclusive>>, &sum};
    c.wrong = scan_wrong_beside_sum<P>;
  }
  bench_run(&c);
}

template <class T> void scan_type() {
  reference_fill(reinterpret_cast<T *>(bench.in), bench.capacity / sizeof(T), 2);
  for (const bench_size *s = bench_sizes(false); s->n; s++) scan_contest<scan_sum<T, false>>(*s, BENCH_ALL_MODES);
  for (const bench_size *s = bench_sizes(!std::is_same<T, float>::value); s->n; s++)
    scan_contest<scan_sum<T, true>>(*s, std::is_same<T, float>::value ? BENCH_ALL_MODES : BENCH_COLD);
}

template <class T> void scan_random() {
  typedef scan_sum<T, false> sum;
  for (const bench_random_size &random : bench_random_sizes(sizeof(T))) {
    bench_size size = {"", random.n};
    snprintf(size.label, sizeof(size.label), "%zu at %zu", random.n, random.offset);
    scan_contest<sum>(size, BENCH_COLD, SCAN_RANDOM_ALIKE, false, random.offset, random.offset);
    snprintf(size.label, sizeof(size.label), "%zu at %zu and %zu", random.n, random.offset, random.other_offset);
    scan_contest<sum>(size, BENCH_COLD, SCAN_RANDOM_DIFFERENTLY, false, random.offset, random.other_offset);
  }
}

#endif
