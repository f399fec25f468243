/* The whole API in one file, to be compiled for every target by every C++ standard; nothing here is ever run. The half
 * types' headers come after gpukit.cuh, which must not mind. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifndef NO_PRODUCTS
template <class T, class O> void matmuls_of(cudaStream_t stream) {
  const T *a = NULL;
  O *c = NULL;
  const double beta = 2;
  const float alpha = 3;
  gk_matmul_opts opts = gk_matmul_opts();
  opts.trans_a = 1;
  opts.alpha = &alpha;
  opts.beta = &beta;
  GK_CHECK(gk_matmul(a, a, c, 30, 20, 10));
  GK_CHECK(gk_matmul_scaled(alpha, a, a, 0, c, 30, 20, 10, stream));
  GK_CHECK(gk_matmul_ex(a, a, c, 30, 20, 10, &opts, stream));
}
void products(cudaStream_t stream) {
  const float *in = NULL;
  float *out = NULL;
  matmuls_of<float, float>(stream);
  matmuls_of<double, double>(stream);
  matmuls_of<__half, __half>(stream);
  matmuls_of<__nv_bfloat16, float>(stream);
  (void)gk_matmul(in, in, out, 1, 1, 1);
}
#endif

/* An operator of a user's own, whose working type is no built-in one: the composition of x -> a x + b. */
struct affine {
  double a, b;
};
struct compose {
  __host__ __device__ affine operator()(const affine &f, const affine &g) const {
    const affine both = {f.a * g.a, f.b * g.a + g.b};
    return both;
  }
  __host__ __device__ affine identity() const {
    const affine same = {1, 0};
    return same;
  }
};

/* ---- device ------------------------------------------------------------------------------------------------------*/

__global__ void nothing() {}

__global__ void index_1d(float *x, size_t n) {
  GK_FOR_1D (i, n) x[i] = static_cast<float>(gk_x() + gk_y() + gk_z() + gk_global_rank() + gk_block_rank());
  GK_FOR_1D (i, 1000) x[i] += static_cast<float>(gk_thread_rank() + gk_lane() + gk_warp());
}
__global__ void index_2d(float *x, int w, int h) {
  GK_FOR_2D (i, j, w, h) x[j * w + i] = static_cast<float>(gk_ceil_div(i, 2) + gk_round_up(j, 32));
}

template <class A, class Op> __global__ void warp_and_block(const A *in, A *out, Op op) {
  GK_DYNAMIC_SHARED(A, data);
  __shared__ A fixed[GK_BLELLOCH_SIZE(100)];
  const unsigned rank = gk_thread_rank();
  const A value = in[rank];
  A total = op.identity();
  out[0] = gk_warp_reduce(value, op);
  out[1] = gk_warp_reduce(value, op, 8);
  out[2] = gk_warp_scan_inclusive(value, op);
  out[3] = gk_warp_scan_exclusive(value, op, 7);
  out[4] = gk_shuffle(value, 3);
  out[5] = gk_block_reduce(value, op);
  out[6] = gk_block_scan_inclusive(value, op);
  out[7] = gk_block_scan_exclusive(value, op, &total);
  data[gk_bank(rank)] = value;
  if (rank < 100) fixed[gk_bank(rank)] = value;
  out[8] = gk_block_scan_blelloch(data, gk_block_size(), op);
  out[9] = gk_block_scan_blelloch(fixed, 100, op);
  out[10] = op(total, data[gk_bank(rank)]);
}

/* The same by a tag. */
template <class A, class Tag> __global__ void warp_and_block_by_tag(const A *in, A *out, Tag tag) {
  GK_DYNAMIC_SHARED(A, data);
  const A value = in[gk_thread_rank()];
  A total = value;
  out[0] = gk_warp_reduce(value, tag, 8);
  out[1] = gk_warp_scan_inclusive(value, tag);
  out[2] = gk_warp_scan_exclusive(value, tag, 7);
  out[3] = gk_block_reduce<64>(value, tag);
  out[4] = gk_block_scan_inclusive(value, tag);
  out[5] = gk_block_scan_exclusive(value, tag, &total);
  data[gk_bank(gk_thread_rank())] = value;
  out[6] = gk_block_scan_blelloch(data, gk_block_size(), tag);
  out[7] = total;
}

template <class T, int BM, int BN, int BK, int TM, int TN>
__global__ void tiles(const T *a, const T *b, T *c, size_t m, size_t n, size_t k) {
  __shared__ __align__(16) T as[BK][BM + 4], bs[BK][BN + 4];
  gk_tile<T, BM, BN, TM, TN> acc;
  const size_t row = BM * static_cast<size_t>(blockIdx.y), col = BN * static_cast<size_t>(blockIdx.x);
  for (size_t i = 0; i < k; i += BK) {
    gk_tile_load_transposed<BM, BK>(as, a, k, row, i, m, k);
    gk_tile_load<BK, BN>(bs, b, n, i, col, k, n);
    __syncthreads();
    gk_tile_multiply(acc, as, bs, BK);
    __syncthreads();
  }
  gk_tile_store(acc, c, n, row, col, m, n, T(1), T(0));
}

template <class F> __global__ void apply(F f, float *x, size_t n) {
  GK_FOR_1D (i, n) x[i] = f(x[i]);
}

/* ---- host --------------------------------------------------------------------------------------------------------*/

template <class A, class Op> void launch_blocks(const A *in, A *out, Op op, cudaStream_t stream) {
  GK_LAUNCH((warp_and_block<A, Op>), 1, 256, GK_BLELLOCH_SIZE(256) * sizeof(A), stream, in, out, op);
}

void launches(float *x, double *y, int *z, cudaStream_t stream) {
  gk_occupancy_info occupancy;
  int block = 0;
  GK_LAUNCH(nothing, 1, 1, 0, 0);
  GK_LAUNCH(index_1d, gk_grid_1d(1000, 256), 256, 0, stream, x, 1000); /* an int for the kernel's size_t */
  GK_LAUNCH(index_2d, gk_grid_2d(40, 30, dim3(16, 16)), dim3(16, 16), 0, stream, x, 40, 30);
  GK_CHECK(gk_launch(nothing, gk_grid_3d(4, 4, 4, dim3(2, 2, 2)), dim3(2, 2, 2), 0, stream));
  nothing<<<1, 1, 0, stream>>>();
  GK_CHECK_LAUNCH();
  GK_CHECK_LAUNCH(stream);
  launch_blocks(x, x, gk_sum<float>(), stream);
  launch_blocks(y, y, gk_max<double>(), stream);
  launch_blocks(z, z, gk_min<int>(), stream);
  launch_blocks(static_cast<gk_arg<float> *>(NULL), static_cast<gk_arg<float> *>(NULL), gk_argmin<float>(), stream);
  launch_blocks(static_cast<affine *>(NULL), static_cast<affine *>(NULL), compose(), stream);
  GK_LAUNCH((warp_and_block_by_tag<float, gk_op_sum>), 1, 64, 512, stream, x, x, gk_op_sum());
  GK_LAUNCH((warp_and_block_by_tag<__half, gk_op_prod>), 1, 64, 512, stream, nullptr, nullptr, gk_op_prod());
  GK_LAUNCH((warp_and_block_by_tag<gk_arg<int>, gk_op_argmax>), 1, 64, 2048, stream, nullptr, nullptr, gk_op_argmax());
  GK_LAUNCH((tiles<float, 32, 32, 8, 4, 4>), dim3(2, 2), 64, 0, stream, x, x, x, 64, 64, 64);
  GK_LAUNCH((tiles<double, 32, 64, 8, 2, 2>), dim3(2, 2), 512, 0, stream, y, y, y, 64, 64, 64);
  GK_CHECK(gk_occupancy(index_1d, 256, 0, &occupancy));
  GK_CHECK(gk_occupancy_print(tiles<float, 32, 32, 8, 4, 4>, 64, 0));
  GK_CHECK(gk_block_for(nothing, 0, &block));
}

#ifdef __CUDACC_EXTENDED_LAMBDA__
void lambdas(float *x, float by, cudaStream_t stream) {
  const auto scale = [by] __device__(float value) { return by * value; };
  const auto shift = [by] __host__ __device__(float value) { return by + value; };
  GK_LAUNCH(apply<decltype(scale)>, gk_grid_1d(1000, 256), 256, 0, stream, scale, x, 1000);
  GK_CHECK(gk_launch(apply<decltype(shift)>, 1, 256, 0, stream, shift, x, 1000));
}
#endif

/* Every call once in float, and for each other type the calls that treat it differently. */
void reduces(const float *in, float *out, cudaStream_t stream) {
  gk_arg<float> *best = NULL;
  gk_scratch scratch = gk_scratch();
  GK_CHECK(gk_scratch_create(&scratch, gk_reduce_scratch_bytes(), stream));
  GK_CHECK(gk_reduce(in, out, 100, gk_op_sum()));
  GK_CHECK(gk_reduce_sum(in, out, 100, stream, &scratch));
  GK_CHECK(gk_reduce_prod(in, out, 100, stream, &scratch));
  GK_CHECK(gk_reduce_min(in, out, 100, stream, &scratch));
  GK_CHECK(gk_reduce_max(in, out, 100, stream, &scratch));
  GK_CHECK(gk_reduce_argmin(in, best, 100, stream, &scratch));
  GK_CHECK(gk_reduce_argmax(in, best, 100, stream, &scratch));
  GK_CHECK(gk_scratch_destroy(&scratch));
}
template <class T, class Sum> void reduces_of(cudaStream_t stream) {
  const T *in = NULL;
  Sum *sum = NULL;
  T *least = NULL;
  GK_CHECK(gk_reduce_sum(in, sum, 100, stream));
  GK_CHECK(gk_reduce_min(in, least, 100, stream));
}

void scans(const float *in, float *out, cudaStream_t stream) {
  gk_arg<float> *best = NULL;
  gk_scratch scratch = gk_scratch();
  GK_CHECK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(100, sizeof(gk_arg<float>)), stream));
  GK_CHECK(gk_scan_exclusive(in, out, 100, gk_op_sum()));
  GK_CHECK(gk_scan_inclusive(in, out, 100, gk_op_max(), stream, &scratch));
  GK_CHECK(gk_scan_inclusive(in, best, 100, gk_op_argmin(), stream, &scratch));
  GK_CHECK(gk_scan_exclusive_init(in, out, 100, gk_op_sum(), 1, stream, &scratch));
  GK_CHECK(gk_scratch_destroy(&scratch));
}
template <class T, class O> void scans_of(cudaStream_t stream) {
  const T *in = NULL;
  O *out = NULL;
  GK_CHECK(gk_scan_exclusive_init(in, out, 100, gk_op_sum(), 1, stream));
}

void own_operator(const affine *in, affine *out, cudaStream_t stream) {
  GK_CHECK(gk_reduce(in, out, 100, compose(), stream));
  GK_CHECK(gk_scan_inclusive(in, out, 100, compose(), stream));
}

void other_types(cudaStream_t stream) {
  reduces_of<double, double>(stream);
  reduces_of<int, int>(stream);
  reduces_of<signed char, long long>(stream);
  reduces_of<unsigned char, unsigned long long>(stream);
  reduces_of<__half, float>(stream);
  reduces_of<__nv_bfloat16, __nv_bfloat16>(stream);
  scans_of<float, double>(stream);
  scans_of<unsigned char, unsigned>(stream);
  scans_of<long long, long long>(stream);
  scans_of<__half, __half>(stream);
}

cudaError_t host_arrays(const float *in, float *out) {
  gk_mismatch where;
  GK_TRY(gk_host_reduce(in, out, 100, gk_op_sum()));
  GK_TRY(gk_host_scan_exclusive(in, out, 100, gk_op_sum()));
  GK_TRY(gk_host_scan_inclusive(in, out, 100, gk_op_max()));
  GK_TRY(gk_host_matmul(in, in, out, 10, 10, 10));
  return gk_allclose(in, out, 100, 1e-5, 1e-6) && gk_allclose(in, out, 100, 0, 0, &where) ? cudaSuccess
                                                                                          : cudaErrorUnknown;
}

enum other_status { OTHER_SUCCESS, OTHER_FAILURE };
const char *other_text(other_status status) { return status ? "failure" : "success"; }

/* Who does not want a status says so, which is silent by every standard; to C++11 and 14 no status is special. */
void statuses_nobody_reads(const float *in, float *out, cudaStream_t stream) {
  gk_timer timer = gk_timer();
  (void)gk_timer_destroy(&timer);
  (void)gk_launch(nothing, 1, 1, 0, stream);
  (void)gk_reduce_sum(in, out, 1);
  (void)gk_scan_inclusive(in, out, 1, gk_op_sum());
#if __cplusplus < 201703L
  gk_timer_destroy(&timer);
  gk_reduce_sum(in, out, 1);
#endif
}

void errors_devices_timing(cudaStream_t stream) {
  gk_device_info device;
  gk_timer timer = gk_timer();
  gk_bench_result result;
  size_t buffers = 0;
  int best = 0, ready = 0;
  float ms = 0;
  dim3 grid, block(32, 8);
  gk_set_error_handler(NULL, NULL);
  GK_CHECK(OTHER_SUCCESS);
  GK_CHECK_STATUS(OTHER_FAILURE, other_text);
  GK_CHECK(gk_device_query(-1, &device));
  GK_CHECK(gk_device_print(0));
  GK_CHECK(gk_device_best(&best));
  GK_CHECK(gk_grid_shape(100, 100, 100, &block, &grid));
  GK_CHECK(gk_timer_create(&timer));
  GK_CHECK(gk_timer_start(&timer, stream));
  GK_CHECK(gk_timer_stop(&timer));
  GK_CHECK(gk_timer_ready(&timer, &ready));
  GK_CHECK(gk_timer_ms(&timer, &ms));
  GK_CHECK(gk_timer_destroy(&timer));
  GK_TIME ("outer", stream) {
    GK_TIME ("inner", stream) GK_LAUNCH(nothing, 1, 1, 0, stream);
  }
  GK_CHECK(gk_bench_buffers(1 << 20, &buffers));
  const gk_bench_fn empty = [](void *, cudaStream_t on, size_t) { return gk_launch(nothing, 1, 1, 0, on); };
  GK_CHECK(gk_bench(empty, NULL, NULL, &result));
  GK_CHECK(gk_bench_compare(&empty, NULL, 1, NULL, &result));
  if (gk_error_detail()[0] || gk_error_hint(cudaErrorNoDevice)[0]) GK_CHECK(cudaErrorUnknown);
  if (gk_matmul_scratch_bytes()) GK_CHECK(cudaErrorUnknown);
}
