/* Select against cub::DeviceSelect, rows and columns of matrices against cub::DeviceSegmentedReduce and DeviceReduce,
 * and inputs that are computed against the same input in memory. */
#include "reference.h"

#include <cub/cub.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

/* --- Select -------------------------------------------------------------------------------------------------------*/

/* Keeps the elements below the limit. */
template <class T> struct select_below {
  T limit;
  __host__ __device__ bool operator()(T x) const { return x < limit; }
};
template <class T> struct select_call {
  const T *in;
  T *out; /* the count of buffer i is the first word of out + i * stride, the elements begin 16 bytes after it */
  size_t n, stride, temp_bytes;
  void *temp;
  select_below<T> keep;
  unsigned long long *count(size_t i) const { return reinterpret_cast<unsigned long long *>(out + i * stride); }
  T *kept(size_t i) const { return out + i * stride + 16 / sizeof(T); }
};
template <class T> cudaError_t select_ours(void *user, cudaStream_t stream, size_t i) {
  const select_call<T> *c = static_cast<select_call<T> *>(user);
  return gk_select(c->in + i * c->stride, c->kept(i), c->count(i), c->n, c->keep, stream, &bench.scratch);
}
template <class T> cudaError_t select_peer(void *user, cudaStream_t stream, size_t i) {
  select_call<T> *c = static_cast<select_call<T> *>(user);
  return cub::DeviceSelect::If(c->temp, c->temp_bytes, c->in + i * c->stride, c->kept(i), c->count(i),
                               static_cast<BENCH_CUB_SIZE>(c->n), c->keep, stream);
}
template <class T> __global__ void select_flags(const T *in, size_t n, select_below<T> keep, unsigned char *flag) {
  GK_FOR_1D (i, n) flag[i] = keep(in[i]);
}
/* Each kept element stands where the number of kept ones before it says. */
template <class T>
__global__ void select_check(const T *in, const T *kept, const unsigned char *flag, size_t n,
                             const unsigned long long *before_chunk, unsigned long long *wrong) {
  const size_t first = (static_cast<size_t>(blockIdx.x) * REFERENCE_THREADS + threadIdx.x) * REFERENCE_EACH;
  const size_t chunk = static_cast<size_t>(blockIdx.x) * REFERENCE_CHUNK;
  unsigned long long place = before_chunk[blockIdx.x], bad = 0;
  for (size_t i = chunk; i < first && i < n; i++) place += flag[i];
  for (size_t i = first; i < first + REFERENCE_EACH && i < n; i++)
    if (flag[i]) bad += kept[place++] != in[i];
  if (bad) atomicAdd(wrong, bad);
}
template <class T> size_t select_wrong(const bench_contestant *who, size_t i) {
  const select_call<T> *c = static_cast<select_call<T> *>(who->user);
  const T *const in = c->in + i * c->stride;
  unsigned char *const flag = reinterpret_cast<unsigned char *>(c->out + (i + 1) * c->stride); /* the next output */
  unsigned long long *const wrong = reinterpret_cast<unsigned long long *>(bench.spare);
  GK_CHECK(cudaMemsetAsync(c->out + i * c->stride, 0xff, c->stride * sizeof(T), bench.stream));
  GK_CHECK(who->fn(who->user, bench.stream, i));
  const unsigned chunks = static_cast<unsigned>(gk_ceil_div(c->n, static_cast<size_t>(REFERENCE_CHUNK)));
  GK_LAUNCH(select_flags<T>, 4096, 256, 0, bench.stream, in, c->n, c->keep, flag);
  const unsigned long long *before = reference_prepare<reference_sum>(flag, c->n);
  GK_CHECK(cudaMemsetAsync(wrong, 0, sizeof(*wrong), bench.stream));
  GK_LAUNCH(select_check<T>, chunks, REFERENCE_THREADS, 0, bench.stream, in, c->kept(i), flag, c->n, before, wrong);
  const size_t found = static_cast<size_t>(reference_fetch(wrong));
  return found + (reference_fetch(c->count(i)) != reference_fetch(before + chunks));
}
template <class T> void select_contest(const bench_size &size, const char *what, T limit) {
  select_call<T> call = {};
  call.n = size.n;
  call.stride = gk_round_up(size.n + 16 / sizeof(T), 256 / sizeof(T));
  call.keep.limit = limit;
  bench_contest c = {};
  c.group = "select", c.what = what, c.type = type_name<T>::value;
  snprintf(c.size, sizeof(c.size), "%s", size.label);
  c.n = static_cast<double>(size.n), c.modes = BENCH_COLD;
  c.bytes = static_cast<double>(size.n * sizeof(T));
  c.rotate_bytes = call.stride * sizeof(T);
  c.most_buffers = bench.capacity / c.rotate_bytes;
  if (!bench_wanted(&c)) return;
  if (c.most_buffers < 2) return bench_skip(&c, "the memory does not suffice");
  c.most_buffers--; /* the check needs one */
  call.in = reinterpret_cast<T *>(bench.in), call.out = reinterpret_cast<T *>(bench.out);
  GK_CHECK(cub::DeviceSelect::If(NULL, call.temp_bytes, call.in, call.kept(0), call.count(0),
                                 static_cast<BENCH_CUB_SIZE>(call.n), call.keep, bench.stream));
  call.temp = bench_temp(call.temp_bytes);
  bench_traffic traffic = {bench.in, bench.out, size.n * sizeof(T), c.rotate_bytes};
  c.ours = {"gpukit", select_ours<T>, &call};
  c.peers[0] = {"CUB", select_peer<T>, &call};
  c.ceilings[0] = {"read", bench_read_all, &traffic};
  c.wrong = select_wrong<T>;
  bench_run(&c);
}
template <class T> void select_type(T middle, T tenth) {
  reference_fill(reinterpret_cast<T *>(bench.in), bench.capacity / sizeof(T), 1);
  for (const bench_size *s = bench_sizes(false); s->n; s++)
    if (s->n <= size_t(1) << 28) select_contest<T>(*s, "half", middle);
  for (const bench_size *s = bench_sizes(true); s->n; s++)
    if (s->n <= size_t(1) << 28) select_contest<T>(*s, "tenth", tenth);
}

/* --- Rows and columns ---------------------------------------------------------------------------------------------*/

struct row_begin {
  size_t cols;
  __host__ __device__ size_t operator()(size_t row) const { return row * cols; }
};
typedef thrust::transform_iterator<row_begin, thrust::counting_iterator<size_t>> row_begins;
template <class T> struct matrix_call {
  const T *in;
  T *out;
  size_t rows, cols, stride, out_stride, temp_bytes;
  void *temp;
};
template <class T, bool Columns> cudaError_t matrix_ours(void *user, cudaStream_t stream, size_t i) {
  const matrix_call<T> *c = static_cast<matrix_call<T> *>(user);
  const T *const in = c->in + i * c->stride;
  T *const out = c->out + i * c->out_stride;
  return Columns ? gk_reduce_columns(in, out, c->rows, c->cols, 0, gk_op_sum(), stream, &bench.scratch)
                 : gk_reduce_rows(in, out, c->rows, c->cols, 0, gk_op_sum(), stream, &bench.scratch);
}
template <class T> cudaError_t matrix_segments(void *user, cudaStream_t stream, size_t i) {
  matrix_call<T> *c = static_cast<matrix_call<T> *>(user);
  const row_begins begins(thrust::counting_iterator<size_t>(0), row_begin{c->cols});
  return cub::DeviceSegmentedReduce::Sum(c->temp, c->temp_bytes, c->in + i * c->stride, c->out + i * c->out_stride,
                                         static_cast<cuda::std::int64_t>(c->rows), begins, begins + 1, stream);
}
template <class T> cudaError_t matrix_each_row(void *user, cudaStream_t stream, size_t i) {
  matrix_call<T> *c = static_cast<matrix_call<T> *>(user);
  for (size_t row = 0; row < c->rows; row++)
    GK_TRY(cub::DeviceReduce::Sum(c->temp, c->temp_bytes, c->in + i * c->stride + row * c->cols,
                                  c->out + i * c->out_stride + row, static_cast<BENCH_CUB_SIZE>(c->cols), stream));
  return cudaSuccess;
}
/* A block for each result. */
template <class T, bool Columns>
__global__ void matrix_check(const T *in, const T *out, size_t rows, size_t cols, unsigned long long *wrong) {
  __shared__ double part[REFERENCE_THREADS];
  for (size_t result = blockIdx.x; result < (Columns ? cols : rows); result += gridDim.x) {
    const size_t n = Columns ? rows : cols, first = Columns ? result : result * cols, step = Columns ? cols : 1;
    double sum = 0;
    for (size_t i = threadIdx.x; i < n; i += REFERENCE_THREADS) sum += reference_wide(in[first + i * step]);
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int t = 1; t < REFERENCE_THREADS; t++) sum += part[t];
      const double allowed = reference_type<T>::roundoff * (64 * sqrt(static_cast<double>(n)) + 8 * fabs(sum));
      if (!reference_agrees(out[result], sum, allowed)) atomicAdd(wrong, 1ull);
    }
    __syncthreads();
  }
}
template <class T, bool Columns> size_t matrix_wrong(const bench_contestant *who, size_t i) {
  const matrix_call<T> *c = static_cast<matrix_call<T> *>(who->user);
  unsigned long long *const wrong = reinterpret_cast<unsigned long long *>(bench.spare);
  GK_CHECK(cudaMemsetAsync(c->out + i * c->out_stride, 0xff, (Columns ? c->cols : c->rows) * sizeof(T), bench.stream));
  GK_CHECK(cudaMemsetAsync(wrong, 0, sizeof(*wrong), bench.stream));
  GK_CHECK(who->fn(who->user, bench.stream, i));
  GK_LAUNCH((matrix_check<T, Columns>), 8192, REFERENCE_THREADS, 0, bench.stream, c->in + i * c->stride,
            c->out + i * c->out_stride, c->rows, c->cols, wrong);
  return static_cast<size_t>(reference_fetch(wrong));
}
template <class T, bool Columns> void matrix_contest(size_t rows, size_t cols) {
  matrix_call<T> call = {};
  call.rows = rows, call.cols = cols;
  call.stride = gk_round_up(rows * cols, 256 / sizeof(T));
  call.out_stride = gk_round_up(Columns ? cols : rows, 256 / sizeof(T));
  bench_contest c = {};
  c.group = Columns ? "columns" : "rows", c.what = "sum", c.type = type_name<T>::value;
  snprintf(c.size, sizeof(c.size), "%zux%zu", rows, cols);
  c.n = static_cast<double>(rows * cols), c.modes = BENCH_COLD;
  c.bytes = static_cast<double>(rows * cols * sizeof(T));
  c.rotate_bytes = call.stride * sizeof(T);
  c.most_buffers = bench.capacity / c.rotate_bytes;
  if (!bench_wanted(&c)) return;
  if (!c.most_buffers) return bench_skip(&c, "the memory does not suffice");
  call.in = reinterpret_cast<T *>(bench.in), call.out = reinterpret_cast<T *>(bench.out);
  bench_traffic traffic = {bench.in, bench.out, rows * cols * sizeof(T), c.rotate_bytes};
  c.ours = {"gpukit", matrix_ours<T, Columns>, &call};
  c.ceilings[0] = {"read", bench_read_all, &traffic};
  c.wrong = matrix_wrong<T, Columns>;
  if (!Columns) { /* temporaries for either peer: a query with a null pointer runs nothing */
    size_t segment_bytes = 0;
    GK_CHECK(cub::DeviceReduce::Sum(NULL, call.temp_bytes, call.in, call.out, static_cast<BENCH_CUB_SIZE>(cols)));
    const size_t reduce_bytes = call.temp_bytes;
    GK_CHECK(matrix_segments<T>(&call, bench.stream, 0));
    segment_bytes = call.temp_bytes;
    call.temp_bytes = reduce_bytes > segment_bytes ? reduce_bytes : segment_bytes;
    call.temp = bench_temp(call.temp_bytes);
    c.peers[0] = {"CUB segmented", matrix_segments<T>, &call};
    if (rows <= 8) c.peers[1] = {"CUB by row", matrix_each_row<T>, &call};
  }
  bench_run(&c);
}
template <class T> void matrix_type(bool every) {
  const size_t n = size_t(1) << 24;
  reference_fill(reinterpret_cast<T *>(bench.in), bench.capacity / sizeof(T), 1);
  for (size_t rows = 1; rows <= n; rows *= every ? 2 : 16) {
    matrix_contest<T, false>(rows, n / rows);
    matrix_contest<T, true>(rows, n / rows);
  }
  const size_t odd[][2] = {{3, 5000001}, {1000, 12345}, {99999, 167}, {1000003, 13}};
  for (const size_t *shape : odd) {
    matrix_contest<T, false>(shape[0], shape[1]);
    matrix_contest<T, true>(shape[0], shape[1]);
  }
}

/* --- Inputs that are computed ---------------------------------------------------------------------------------------*/

struct square_of {
  const float *x;
  __device__ float operator()(size_t i) const { return __fmul_rn(x[i], x[i]); }
};
struct computed_call {
  const float *in; /* buffer i begins at in + i * stride */
  char *out;
  size_t n, stride, temp_bytes;
  void *temp;
};
static cudaError_t computed_ours(void *user, cudaStream_t stream, size_t i) {
  const computed_call *c = static_cast<computed_call *>(user);
  return gk_reduce_sum(gk_computed<float>(square_of{c->in + i * c->stride}), reinterpret_cast<float *>(c->out + 16 * i),
                       c->n, stream, &bench.scratch);
}
static cudaError_t computed_peer(void *user, cudaStream_t stream, size_t i) {
  computed_call *c = static_cast<computed_call *>(user);
  const auto squares =
      thrust::make_transform_iterator(thrust::counting_iterator<size_t>(0), square_of{c->in + i * c->stride});
  return cub::DeviceReduce::Reduce(c->temp, c->temp_bytes, squares, reinterpret_cast<float *>(c->out + 16 * i),
                                   static_cast<BENCH_CUB_SIZE>(c->n), cuda::std::plus<float>(), 0.0f, stream);
}
/* The reduction of the same numbers in memory. */
static cudaError_t computed_array(void *user, cudaStream_t stream, size_t i) {
  const computed_call *c = static_cast<computed_call *>(user);
  return gk_reduce_sum(c->in + i * c->stride, reinterpret_cast<float *>(c->out + 16 * i), c->n, stream, &bench.scratch);
}
static size_t computed_wrong(const bench_contestant *who, size_t i) {
  const computed_call *c = static_cast<computed_call *>(who->user);
  float *const out = reinterpret_cast<float *>(c->out + 16 * i);
  GK_CHECK(cudaMemsetAsync(out, 0xff, sizeof(float), bench.stream));
  GK_CHECK(who->fn(who->user, bench.stream, i));
  /* The sum of n squares of N(0, 1) is about n; all terms are positive, so that roundings grow with the sum. */
  const float *const in = c->in + i * c->stride;
  const double n = static_cast<double>(c->n);
  const bool is_array = who->fn == computed_array;
  const double want = is_array ? reference_reduce<reference_sum>(in, c->n) : n;
  const double allowed = is_array ? reference_sum_allowance(0x1p-24, c->n, want) : 12 * sqrt(2 * n) + n * 0x1p-16;
  return !reference_agrees(reference_fetch(out), want, allowed);
}
static void computed_contest(const bench_size &size, bool beside_array) {
  computed_call call = {};
  call.n = size.n;
  call.stride = gk_round_up(size.n, size_t{64});
  bench_contest c = {};
  c.group = "reduce", c.what = beside_array ? "sum computed/array" : "sum of squares", c.type = "f32";
  snprintf(c.size, sizeof(c.size), "%s", size.label);
  c.n = static_cast<double>(size.n), c.modes = BENCH_COLD;
  c.bytes = static_cast<double>(size.n * sizeof(float));
  c.rotate_bytes = call.stride * sizeof(float);
  c.most_buffers = bench.capacity / c.rotate_bytes;
  if (!bench_wanted(&c)) return;
  if (!c.most_buffers) return bench_skip(&c, "the memory does not suffice");
  call.in = reinterpret_cast<float *>(bench.in), call.out = bench.out;
  GK_CHECK(computed_peer(&call, bench.stream, 0));
  call.temp = bench_temp(call.temp_bytes);
  bench_traffic traffic = {bench.in, bench.out, size.n * sizeof(float), c.rotate_bytes};
  c.ours = {"gpukit", computed_ours, &call};
  c.peers[0] =
      beside_array ? bench_contestant{"array", computed_array, &call} : bench_contestant{"CUB", computed_peer, &call};
  c.ceilings[0] = {"read", bench_read_all, &traffic};
  c.wrong = computed_wrong;
  bench_run(&c);
}

void bench_calls() {
  select_type<unsigned char>(128, 26);
  select_type<double>(0, -1.28);
  select_type<float>(0, -1.28f);
  matrix_type<double>(false);
  matrix_type<float>(true);
  reference_fill(reinterpret_cast<float *>(bench.in), bench.capacity / sizeof(float), 1);
  for (const bench_size *s = bench_sizes(false); s->n; s++) computed_contest(*s, false);
  for (const bench_size *s = bench_sizes(true); s->n; s++) computed_contest(*s, true);
}
