/* The instances whose machine code tests/tools/same_code.sh compares. Each part is compiled by itself (-DPART_...). The file
 * uses public names only, so that headers of other commits compile with it. Nothing here is ever run. */
#include "gpukit.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* An operator with a working type of its own: the composition of x -> a x + b. */
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

#ifdef PART_device
__global__ void scale(float *x, size_t n, float by) {
  GK_FOR_1D (i, n) x[i] *= by;
}
__global__ void transpose(const float *x, float *y, int w, int h) {
  GK_FOR_2D (i, j, w, h) y[i * h + j] = x[j * w + i];
}
template <class Item, class Op> __global__ void warp_calls(const Item *x, Item *y, Op op) {
  const Item value = x[gk_global_rank()];
  y[0] = gk_warp_reduce(value, op);
  y[1] = gk_warp_reduce(value, op, 8);
  y[2] = gk_warp_scan_inclusive(value, op);
  y[3] = gk_warp_scan_exclusive(value, op, 7);
  y[4] = gk_shuffle(value, 3);
}
template <class Item, class Op> __global__ void block_calls(const Item *x, Item *y, Op op) {
  const Item value = x[gk_global_rank()];
  Item total = op.identity();
  y[0] = gk_block_reduce(value, op);
  y[1] = gk_block_scan_inclusive(value, op);
  y[2] = gk_block_scan_exclusive(value, op, &total);
  y[3] = total;
}
template <class Item, class Op> __global__ void blelloch(const Item *x, Item *y, Op op) {
  GK_DYNAMIC_SHARED(Item, data);
  data[gk_bank(gk_thread_rank())] = x[gk_global_rank()];
  y[0] = gk_block_scan_blelloch(data, gk_block_size(), op);
  y[1 + gk_thread_rank()] = data[gk_bank(gk_thread_rank())];
}
template <class Item, int BM, int BN, int BK, int TM, int TN>
__global__ void multiply(const Item *a, const Item *b, Item *c, size_t m, size_t n, size_t k) {
  __shared__ __align__(16) Item tile_a[BK][BM + 4], tile_b[BK][BN + 4];
  gk_tile<Item, BM, BN, TM, TN> acc;
  const size_t row0 = BM * static_cast<size_t>(blockIdx.y), col0 = BN * static_cast<size_t>(blockIdx.x);
  for (size_t i = 0; i < k; i += BK) {
    gk_tile_load_transposed<BM, BK>(tile_a, a, k, row0, i, m, k);
    gk_tile_load<BK, BN>(tile_b, b, n, i, col0, k, n);
    __syncthreads();
    gk_tile_multiply(acc, tile_a, tile_b, BK);
    __syncthreads();
  }
  gk_tile_store(acc, c, n, row0, col0, m, n, Item(1), Item(0));
}
template <class Item, class Op> void calls(const Item *x, Item *y, Op op) {
  GK_LAUNCH((warp_calls<Item, Op>), 1, 256, 0, 0, x, y, op);
  GK_LAUNCH((block_calls<Item, Op>), 1, 256, 0, 0, x, y, op);
}
void device(float *x, double *y, int *z, affine *f) {
  GK_LAUNCH(scale, 1, 256, 0, 0, x, 100, 2.0f);
  GK_LAUNCH(transpose, 1, 256, 0, 0, x, x, 10, 10);
  calls(x, x, gk_sum<float>());
  calls(z, z, gk_max<int>());
  calls(f, f, compose());
  GK_LAUNCH((blelloch<float, gk_sum<float>>), 1, 256, 4096, 0, x, x, gk_sum<float>());
  GK_LAUNCH((multiply<float, 32, 32, 8, 4, 4>), 1, 64, 0, 0, x, x, x, 64, 64, 64);
  GK_LAUNCH((multiply<double, 32, 64, 8, 2, 2>), 1, 512, 0, 0, y, y, y, 64, 64, 64);
}
#endif

#ifdef PART_arrays
void arrays(const float *x, float *y, const double *u, double *v) {
  GK_CHECK(gk_reduce_sum(x, y, 100));
  GK_CHECK(gk_reduce_max(u, v, 100));
  GK_CHECK(gk_scan_inclusive(x, y, 100, gk_op_sum()));
  GK_CHECK(gk_scan_exclusive(u, v, 100, gk_op_max()));
}
#endif

#ifdef PART_reduce
void reduce(const float *x, gk_arg<float> *best, const affine *f, affine *g) {
  double *v = NULL;
  long long *sum = NULL;
  const signed char *bytes = NULL;
  const unsigned short *words = NULL;
  unsigned short *least = NULL;
  const __half *halves = NULL;
  float *y = NULL;
  const __nv_bfloat16 *values = NULL;
  __nv_bfloat16 *largest = NULL;
  GK_CHECK(gk_reduce_argmax(x, best, 100));
  GK_CHECK(gk_reduce_prod(x, v, 100));
  GK_CHECK(gk_reduce_sum(bytes, sum, 100));
  GK_CHECK(gk_reduce_min(words, least, 100));
  GK_CHECK(gk_reduce_sum(halves, y, 100));
  GK_CHECK(gk_reduce_max(values, largest, 100));
  GK_CHECK(gk_reduce(f, g, 100, compose()));
}
#endif

#ifdef PART_scan
void scan(const float *x, gk_arg<float> *best, const affine *f, affine *g) {
  double *v = NULL;
  long long *sums = NULL;
  const unsigned char *bytes = NULL;
  unsigned *words = NULL;
  __half *halves = NULL;
  GK_CHECK(gk_scan_inclusive(x, best, 100, gk_op_argmin()));
  GK_CHECK(gk_scan_exclusive_init(x, v, 100, gk_op_sum(), 1));
  GK_CHECK(gk_scan_inclusive(bytes, words, 100, gk_op_sum()));
  GK_CHECK(gk_scan_exclusive(sums, sums, 100, gk_op_max()));
  GK_CHECK(gk_scan_inclusive(halves, halves, 100, gk_op_sum()));
  GK_CHECK(gk_scan_inclusive(f, g, 100, compose()));
}
#endif

#ifdef PART_rows
struct is_positive {
  __device__ bool operator()(float x) const { return x > 0; }
};
void rows(const float *x, float *y, gk_arg<float> *best, size_t *count, const unsigned char *flags) {
  const __half *halves = NULL;
  GK_CHECK(gk_reduce_rows(x, y, 30, 20, 0, gk_op_sum()));
  GK_CHECK(gk_reduce_rows(x, best, 30, 20, 0, gk_op_argmax()));
  GK_CHECK(gk_reduce_columns(x, y, 30, 20, 0, gk_op_sum()));
  GK_CHECK(gk_reduce_columns(halves, y, 30, 20, 0, gk_op_max()));
  GK_CHECK(gk_scan_rows_inclusive(x, y, 30, 20, 0, gk_op_sum()));
  GK_CHECK(gk_select(x, y, count, 100, is_positive()));
  GK_CHECK(gk_select_flagged(x, flags, y, count, 100));
  GK_CHECK(gk_random_normal(y, 100, 1));
}
#endif

#ifdef PART_host
void host(const float *x, float *y, const int *z, int *w) {
  GK_CHECK(gk_host_reduce(x, y, 100, gk_op_prod()));
  GK_CHECK(gk_host_reduce(z, w, 100, gk_op_sum()));
  GK_CHECK(gk_host_scan_exclusive(x, y, 100, gk_op_min()));
  GK_CHECK(gk_host_scan_inclusive(z, w, 100, gk_op_sum()));
}
#endif

/* One type of operands and one of C each. gk_matmul_ex has more kernels than gk_matmul. */
template <class Item, class Out> void matmul(const Item *a, Out *c) { GK_CHECK(gk_matmul(a, a, c, 30, 20, 10)); }
template <class Item, class Out> void matmul_ex(const Item *a, Out *c) {
  const gk_matmul_opts opts = gk_matmul_opts();
  GK_CHECK(gk_matmul_ex(a, a, c, 30, 20, 10, &opts));
}
#ifdef PART_matmul_f32
template void matmul(const float *, float *);
#endif
#ifdef PART_matmul_f64
template void matmul(const double *, double *);
#endif
#ifdef PART_matmul_f16
template void matmul(const __half *, __half *);
#endif
#ifdef PART_matmul_bf16
template void matmul(const __nv_bfloat16 *, float *);
#endif
#ifdef PART_matmul_ex_f32
template void matmul_ex(const float *, float *);
#endif
#ifdef PART_matmul_ex_f16
template void matmul_ex(const __half *, float *);
#endif
