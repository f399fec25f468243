/* gk_matmul_epilogue with a bias and a ReLU beside the plain product: what the functor costs. */
#include "reference.h"

struct bias_relu {
  const float *bias;
  __device__ float operator()(float value, size_t, size_t col) const { return fmaxf(value + bias[col], 0.0f); }
};
template <class T> struct epilogue_call {
  const T *a, *b;
  T *c, *plain; /* plain: for the check */
  bias_relu func;
  size_t m, n, k;
  gk_matmul_opts opts;
};
template <class T, gk_precision Precision> static cudaError_t epilogue_ours(void *user, cudaStream_t stream, size_t) {
  const epilogue_call<T> *s = static_cast<epilogue_call<T> *>(user);
  return gk_matmul_epilogue<Precision>(s->a, s->b, s->c, s->m, s->n, s->k, s->func, &s->opts, stream);
}
template <class T, gk_precision Precision> static cudaError_t epilogue_plain(void *user, cudaStream_t stream, size_t) {
  const epilogue_call<T> *s = static_cast<epilogue_call<T> *>(user);
  return gk_matmul_ex<Precision>(s->a, s->b, s->plain, s->m, s->n, s->k, &s->opts, stream);
}
/* The plain product is rounded to T before the bias is added. */
template <class T> static __global__ void epilogue_check(const epilogue_call<T> s, unsigned long long *wrong) {
  const double rounding = sizeof(T) == 2 ? 0x1p-8 : 0x1p-23;
  GK_FOR_1D (i, s.m * s.n) {
    const double plain = reference_wide(s.plain[i]), bias = static_cast<double>(s.func.bias[i % s.n]);
    const double want = plain + bias, allowed = rounding * (fabs(plain) + fabs(bias));
    if (!reference_agrees(s.c[i], want > 0 ? want : 0, allowed)) atomicAdd(wrong, 1ull);
  }
}
template <class T, gk_precision Precision> static size_t epilogue_wrong(const bench_contestant *who, size_t i) {
  const epilogue_call<T> *s = static_cast<epilogue_call<T> *>(who->user);
  unsigned long long *const wrong = reinterpret_cast<unsigned long long *>(bench.spare);
  if (who->fn == epilogue_plain<T, Precision>) return 0; /* the rows of products check it */
  GK_CHECK(cudaMemsetAsync(s->c, 0xff, s->m * s->n * sizeof(T), bench.stream));
  GK_CHECK(cudaMemsetAsync(wrong, 0, sizeof(*wrong), bench.stream));
  GK_CHECK((epilogue_plain<T, Precision>(who->user, bench.stream, i)));
  GK_CHECK(who->fn(who->user, bench.stream, i));
  GK_LAUNCH(epilogue_check<T>, 8192, REFERENCE_THREADS, 0, bench.stream, *s, wrong);
  return static_cast<size_t>(reference_fetch(wrong));
}
template <class T, gk_precision Precision>
static void epilogue_contest(const char *type, size_t m, size_t n, size_t k, bool quick) {
  bench_contest c = {};
  c.group = "matmul", c.what = "epilogue/plain", c.type = type, c.modes = BENCH_HOT;
  snprintf(c.size, sizeof(c.size), "%zux%zux%zu", m, n, k);
  c.n = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  c.flops = 2 * c.n;
  if ((bench.quick && !quick) || !bench_wanted(&c)) return;
  const size_t a_items = gk_round_up(m * k, size_t{64}), b_items = gk_round_up(k * n, size_t{64}),
               c_items = gk_round_up(m * n, size_t{64});
  if ((a_items + b_items) * sizeof(T) + n * sizeof(float) > bench.capacity || 2 * c_items * sizeof(T) > bench.capacity)
    return bench_skip(&c, "the memory does not suffice");
  gk_scratch scratch = {};
  epilogue_call<T> call = {};
  call.a = reinterpret_cast<T *>(bench.in), call.b = call.a + a_items;
  call.func.bias = reinterpret_cast<float *>(bench.in + (a_items + b_items) * sizeof(T));
  call.c = reinterpret_cast<T *>(bench.out), call.plain = call.c + c_items;
  call.m = m, call.n = n, call.k = k;
  call.opts.precision = Precision, call.opts.scratch = &scratch;
  reference_fill(const_cast<T *>(call.a), a_items + b_items, 3);
  reference_fill(const_cast<float *>(call.func.bias), n, 5);
  GK_CHECK(gk_scratch_create_work(&scratch, gk_matmul_scratch_bytes(), gk_matmul_work_bytes(Precision, m, n, k),
                                  bench.stream));
  if (c.n >= 2048.0 * 2048 * 2048) c.warm_seconds = bench.quick ? 0.1 : 0.25;
  c.ours = {"gpukit", epilogue_ours<T, Precision>, &call};
  c.peers[0] = {"plain", epilogue_plain<T, Precision>, &call};
  c.wrong = epilogue_wrong<T, Precision>;
  bench_run(&c);
  GK_CHECK(gk_scratch_destroy(&scratch));
}
template <class T, gk_precision Precision> static void epilogue_type(const char *type) {
  for (const size_t edge : {1024, 2048, 4096, 8192})
    epilogue_contest<T, Precision>(type, edge, edge, edge, edge == 4096);
  epilogue_contest<T, Precision>(type, 4095, 4097, 4099, false);
  epilogue_contest<T, Precision>(type, 8192, 8192, 256, false);
}
void bench_epilogue() {
  epilogue_type<float, GK_PRECISION_STRICT>("f32");
  epilogue_type<float, GK_PRECISION_TF32>("tf32");
  epilogue_type<__nv_bfloat16, GK_PRECISION_DEFAULT>("bf16");
}
