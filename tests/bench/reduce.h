/* Reduce against cub::DeviceReduce, for one element type after the other. */
#ifndef BENCH_REDUCE_H
#define BENCH_REDUCE_H

#include "reference.h"

#include <cub/cub.cuh>

template <class T> struct reduce_call {
  const T *in; /* buffer i begins at in + i * stride */
  char *out;   /* results of up to 16 bytes: that of buffer i at out + 16 i */
  T *aligned;  /* room for a copy of a misaligned buffer; NULL: not asked for */
  size_t n, stride, temp_bytes;
  void *temp;
  const gk_scratch *scratch;
};

/* Each operator: the type of the result, our call, CUB's that does the same arithmetic, and the check of a result. */

/* Ours works in 64 bits for 8-bit integers, in float for the half types, else in the type itself. So does CUB's Sum,
 * whose working type is that of the output; it cannot add a half to a float, which Reduce with plus<float> can. */
template <class In> struct reduce_sum {
  typedef In T;
  typedef typename gk__widened<T>::type O;
  static constexpr const char *name = "sum";
  static cudaError_t ours(const T *in, O *out, size_t n, cudaStream_t stream, const gk_scratch *scratch) {
    return gk_reduce_sum(in, out, n, stream, scratch);
  }
  static cudaError_t peer(void *temp, size_t &bytes, const T *in, O *out, size_t n, cudaStream_t stream) {
    const BENCH_CUB_SIZE count = static_cast<BENCH_CUB_SIZE>(n);
    if constexpr (sizeof(T) == 2)
      return cub::DeviceReduce::Reduce(temp, bytes, in, out, count, cuda::std::plus<float>(), 0.0f, stream);
    else
      return cub::DeviceReduce::Sum(temp, bytes, in, out, count, stream);
  }
  static bool right(const T *in, O *out, size_t n) {
    const auto want = reference_reduce<reference_sum>(in, n);
    const double allowed = reference_sum_allowance(reference_type<T>::roundoff, n, static_cast<double>(want));
    return reference_agrees(reference_fetch(out), want, allowed);
  }
};

/* Min and Max of CUB have no rule for NaN, of which the data has none. */
template <class In, bool Greatest> struct reduce_extreme {
  typedef In T, O;
  static constexpr const char *name = Greatest ? "max" : "min";
  static cudaError_t ours(const T *in, O *out, size_t n, cudaStream_t stream, const gk_scratch *scratch) {
    return Greatest ? gk_reduce_max(in, out, n, stream, scratch) : gk_reduce_min(in, out, n, stream, scratch);
  }
  static cudaError_t peer(void *temp, size_t &bytes, const T *in, O *out, size_t n, cudaStream_t stream) {
    const BENCH_CUB_SIZE count = static_cast<BENCH_CUB_SIZE>(n);
    return Greatest ? cub::DeviceReduce::Max(temp, bytes, in, out, count, stream)
                    : cub::DeviceReduce::Min(temp, bytes, in, out, count, stream);
  }
  static bool right(const T *in, O *out, size_t n) {
    return reference_agrees(reference_fetch(out), reference_reduce<reference_extreme<Greatest>>(in, n), 0);
  }
};

/* Of equal values both give the first. CUB's takes n as 64 bits always, and has two outputs. */
template <class In, bool Greatest> struct reduce_arg {
  typedef In T;
  typedef typename gk__carried<T>::type V;
  typedef gk_arg<V> O;
  static constexpr const char *name = Greatest ? "argmax" : "argmin";
  static cudaError_t ours(const T *in, O *out, size_t n, cudaStream_t stream, const gk_scratch *scratch) {
    return Greatest ? gk_reduce_argmax(in, out, n, stream, scratch) : gk_reduce_argmin(in, out, n, stream, scratch);
  }
  static cudaError_t peer(void *temp, size_t &bytes, const T *in, O *out, size_t n, cudaStream_t stream) {
    V *const value = reinterpret_cast<V *>(out);
    long long *const index = reinterpret_cast<long long *>(reinterpret_cast<char *>(out) + offsetof(O, index));
    const cuda::std::int64_t count = static_cast<cuda::std::int64_t>(n);
    return Greatest ? cub::DeviceReduce::ArgMax(temp, bytes, in, value, index, count, stream)
                    : cub::DeviceReduce::ArgMin(temp, bytes, in, value, index, count, stream);
  }
  static bool right(const T *in, O *out, size_t n) {
    const O got = reference_fetch(out);
    const auto want = reference_reduce<reference_extreme<Greatest>>(in, n);
    if (got.index >= n || !reference_agrees(got.value, want, 0)) return false;
    return got.index == reference_first(in, n, reference_fetch(in + got.index)) &&
           reference_wide(reference_fetch(in + got.index)) == want;
  }
};

/* A functor of the user's: the largest magnitude. */
struct largest_magnitude {
  __host__ __device__ float operator()(float x, float y) const { return fmaxf(fabsf(x), fabsf(y)); }
  __host__ __device__ float identity() const { return 0; }
};
struct reference_magnitude : reference_largest {
  static __host__ __device__ double combine(double x, double y) { return fmax(fabs(x), fabs(y)); }
};
struct reduce_custom {
  typedef float T, O;
  static constexpr const char *name = "custom";
  static cudaError_t ours(const T *in, O *out, size_t n, cudaStream_t stream, const gk_scratch *scratch) {
    return gk_reduce(in, out, n, largest_magnitude(), stream, scratch);
  }
  static cudaError_t peer(void *temp, size_t &bytes, const T *in, O *out, size_t n, cudaStream_t stream) {
    const BENCH_CUB_SIZE count = static_cast<BENCH_CUB_SIZE>(n);
    return cub::DeviceReduce::Reduce(temp, bytes, in, out, count, largest_magnitude(), 0.0f, stream);
  }
  static bool right(const T *in, O *out, size_t n) {
    return reference_agrees(reference_fetch(out), reference_reduce<reference_magnitude>(in, n), 0);
  }
};

/* --- The contestants ----------------------------------------------------------------------------------------------*/

template <class P> typename P::O *reduce_result(const reduce_call<typename P::T> *c, size_t i) {
  return reinterpret_cast<typename P::O *>(c->out + 16 * i);
}
template <class P> cudaError_t reduce_ours(void *user, cudaStream_t stream, size_t i) {
  const reduce_call<typename P::T> *c = static_cast<reduce_call<typename P::T> *>(user);
  return P::ours(c->in + i * c->stride, reduce_result<P>(c, i), c->n, stream, c->scratch);
}
template <class P> cudaError_t reduce_peer(void *user, cudaStream_t stream, size_t i) {
  reduce_call<typename P::T> *c = static_cast<reduce_call<typename P::T> *>(user);
  return P::peer(c->temp, c->temp_bytes, c->in + i * c->stride, reduce_result<P>(c, i), c->n, stream);
}
/* With temporaries from the stream's pool, as our call without a scratch. */
template <class P> cudaError_t reduce_peer_allocating(void *user, cudaStream_t stream, size_t i) {
  reduce_call<typename P::T> *c = static_cast<reduce_call<typename P::T> *>(user);
  void *temp = NULL;
  size_t bytes = 0;
  GK_TRY(P::peer(NULL, bytes, c->in, reduce_result<P>(c, i), c->n, stream));
  GK_TRY(cudaMallocAsync(&temp, bytes, stream));
  GK_TRY(P::peer(temp, bytes, c->in + i * c->stride, reduce_result<P>(c, i), c->n, stream));
  return cudaFreeAsync(temp, stream);
}

template <class P> size_t reduce_wrong(const bench_contestant *who, size_t i) {
  const reduce_call<typename P::T> *c = static_cast<reduce_call<typename P::T> *>(who->user);
  GK_CHECK(cudaMemsetAsync(reduce_result<P>(c, i), 0xff, sizeof(typename P::O), bench.stream));
  GK_CHECK(who->fn(who->user, bench.stream, i));
  return !P::right(c->in + i * c->stride, reduce_result<P>(c, i), c->n);
}
/* The same, and that an aligned copy of the misaligned input gives the same bits. */
template <class P> size_t reduce_wrong_misaligned(const bench_contestant *who, size_t i) {
  typedef typename P::T T;
  reduce_call<T> c = *static_cast<reduce_call<T> *>(who->user);
  size_t wrong = reduce_wrong<P>(who, i);
  if (!c.aligned) return wrong;
  const auto got = reference_fetch(reduce_result<P>(&c, i));
  const T *from = c.in + i * c.stride;
  GK_CHECK(cudaMemcpyAsync(c.aligned, from, c.n * sizeof(T), cudaMemcpyDeviceToDevice, bench.stream));
  GK_CHECK(P::ours(c.aligned, reduce_result<P>(&c, i), c.n, bench.stream, c.scratch));
  const auto moved = reference_fetch(reduce_result<P>(&c, i));
  return wrong + (memcmp(&got, &moved, sizeof(got)) != 0);
}

/* --- The contests -------------------------------------------------------------------------------------------------*/

enum reduce_variant { REDUCE_PLAIN, REDUCE_NO_SCRATCH, REDUCE_MISALIGNED, REDUCE_MISALIGNED_SELF, REDUCE_RANDOM };

/* offset: where a random input begins, in elements. */
template <class P>
void reduce_contest(const bench_size &size, int modes, reduce_variant variant = REDUCE_PLAIN, size_t offset = 0) {
  typedef typename P::T T;
  if (variant == REDUCE_MISALIGNED || variant == REDUCE_MISALIGNED_SELF) offset = 1;
  static const char *const suffix[] = {"", " no scratch", " misaligned", " misaligned/aligned", " random"};
  char what[40];
  snprintf(what, sizeof(what), "%s%s", P::name, suffix[variant]);

  reduce_call<T> call = {};
  call.n = size.n;
  call.stride = gk_round_up(size.n + offset, 256 / sizeof(T));
  bench_contest c = {};
  c.group = "reduce", c.what = what, c.type = type_name<T>::value;
  snprintf(c.size, sizeof(c.size), "%s", size.label);
  c.n = static_cast<double>(size.n), c.modes = modes;
  c.bytes = static_cast<double>(size.n * sizeof(T));
  c.rotate_bytes = call.stride * sizeof(T);
  c.most_buffers = bench.capacity / c.rotate_bytes;
  if (!bench_wanted(&c)) return;
  if (!c.most_buffers) return bench_skip(&c, "the memory does not suffice");

  call.in = reinterpret_cast<T *>(bench.in), call.out = bench.out;
  call.scratch = variant == REDUCE_NO_SCRATCH ? NULL : &bench.scratch;
  GK_CHECK(P::peer(NULL, call.temp_bytes, call.in, reduce_result<P>(&call, 0), call.n, bench.stream));
  call.temp = bench_temp(call.temp_bytes);
  reduce_call<T> aligned = call;
  call.in += offset;
  if (variant == REDUCE_MISALIGNED_SELF) /* after the results */
    call.aligned = reinterpret_cast<T *>(bench.out + (16 << 20));

  bench_traffic traffic = {bench.in, bench.out, size.n * sizeof(T), c.rotate_bytes};
  c.ours = {"gpukit", reduce_ours<P>, &call};
  c.wrong = reduce_wrong<P>;
  if (variant == REDUCE_MISALIGNED_SELF) {
    c.peers[0] = {"aligned", reduce_ours<P>, &aligned};
    c.wrong = reduce_wrong_misaligned<P>;
  } else {
    c.peers[0] = {"CUB", variant == REDUCE_NO_SCRATCH ? reduce_peer_allocating<P> : reduce_peer<P>, &call};
  }
  if (variant != REDUCE_RANDOM) c.ceilings[0] = {"read", bench_read_all, &traffic};
  bench_run(&c);
}

template <class T> void reduce_fill() {
  reference_fill(reinterpret_cast<T *>(bench.in), bench.capacity / sizeof(T), 1);
}
template <class T> void reduce_type() {
  reduce_fill<T>();
  for (const bench_size *s = bench_sizes(false); s->n; s++) reduce_contest<reduce_sum<T>>(*s, BENCH_ALL_MODES);
  for (const bench_size *s = bench_sizes(true); s->n; s++) {
    reduce_contest<reduce_arg<T, false>>(*s, BENCH_COLD);
    reduce_contest<reduce_arg<T, true>>(*s, BENCH_COLD);
    reduce_contest<reduce_extreme<T, false>>(*s, BENCH_COLD);
    reduce_contest<reduce_extreme<T, true>>(*s, BENCH_COLD);
  }
}

template <class T> void reduce_random() {
  for (const bench_random_size &random : bench_random_sizes(sizeof(T))) {
    bench_size size = {"", random.n};
    snprintf(size.label, sizeof(size.label), "%zu at %zu", random.n, random.offset);
    reduce_contest<reduce_sum<T>>(size, BENCH_COLD, REDUCE_RANDOM, random.offset);
  }
}

#endif
