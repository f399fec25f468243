/* gpukit beside CUB, cuBLAS and the memory's ceiling, in one process on one GPU.
 *
 *   bench [--quick] [--csv FILE] [--filter TEXT]
 *
 * Contestants take turns, sample by sample; each figure is the median of their samples, and a ratio above 1 says that
 * gpukit is the faster. Inputs are N(0, 1) and rotate over three times the L2, so that they come from memory. A result
 * is checked in the same run, and a wrong one is reported as wrong. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include <cublas_v2.h>
#include <cub/cub.cuh>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int quick;
static const char *filter;
static FILE *csv;
static int wrong, rows;
static double log_ratios, worst_ratio = 1e30;
static char worst_name[128];

/* --- Data ----------------------------------------------------------------------------------------------------------*/

__device__ unsigned hash(unsigned x) {
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}
/* Box and Muller (1958) over hashed indices. */
__global__ void fill_normal(float *to, size_t n, unsigned seed) {
  GK_FOR_1D (i, n) {
    const unsigned low = (unsigned)i, high = (unsigned)(i >> 32) + seed * 977u;
    const float u = ((float)hash(low ^ hash(high)) + 1.0f) * 0x1p-32f, v = (float)hash(low + hash(high + 1)) * 0x1p-32f;
    to[i] = sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
  }
}
/* The largest |a - b|, a NaN as infinity. */
__global__ void largest_difference(const float *a, const float *b, size_t n, float *out) {
  float worst = 0;
  GK_FOR_1D (i, n) {
    const float d = fabsf(a[i] - b[i]);
    worst = d <= worst ? worst : isnan(d) ? INFINITY : d;
  }
  worst = gk_block_reduce(worst, gk_max<float>());
  if (gk_thread_rank() == 0)
    atomicMax((int *)out, __float_as_int(worst)); /* of floats >= 0 the order is that of ints */
}
static float difference(const float *a, const float *b, size_t n, float *device_out) {
  float host = 0;
  GK_CHECK(cudaMemset(device_out, 0, sizeof(float)));
  GK_LAUNCH(largest_difference, 1024, 256, 0, 0, a, b, n, device_out);
  GK_CHECK(cudaMemcpy(&host, device_out, sizeof(float), cudaMemcpyDeviceToHost));
  return host;
}

/* --- The contest ---------------------------------------------------------------------------------------------------*/

struct contest {
  char name[128];
  gk_bench_fn ours, peer;
  const char *peer_name;
  double bytes, flops;
  size_t buffers;
};

static int compare(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}
static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof(double), compare);
  return values[count / 2];
}

static void run(const contest &c, void *user, double error, double allowed) {
  enum { most = 64 };
  double ours[most], peer[most];
  const int samples = quick ? 7 : 31;
  gk_bench_opts opts = gk_bench_opts();
  opts.buffers = c.buffers;
  opts.samples = 1;
  gk_bench_result first, result;
  fprintf(stderr, "\r%-60s", c.name);
  opts.warmup = quick ? 3 : 10;
  GK_CHECK(gk_bench(c.ours, user, &opts, &first)); /* how many calls make a sample */
  GK_CHECK(gk_bench(c.peer, user, &opts, &result));
  opts.warmup = 1;
  opts.calls = first.calls > 200 ? 200 : first.calls;
  for (int i = 0; i < samples; i++) {
    GK_CHECK(gk_bench(c.ours, user, &opts, &result));
    ours[i] = result.median_ms;
    GK_CHECK(gk_bench(c.peer, user, &opts, &result));
    peer[i] = result.median_ms;
  }
  const double a = median(ours, samples), b = median(peer, samples), ratio = b / a;
  const bool good = error <= allowed;
  fprintf(stderr, "\r%-60s\r", "");
  printf("%-28s %10.2f us %9.1f %s | %-7s %10.2f us %9.1f | ratio %5.2f %s\n", c.name, a * 1e3,
         c.flops > 0 ? c.flops / a * 1e-6 : c.bytes / a * 1e-6, c.flops > 0 ? "GFLOP/s" : "GB/s   ", c.peer_name,
         b * 1e3, c.flops > 0 ? c.flops / b * 1e-6 : c.bytes / b * 1e-6, ratio, good ? "" : "WRONG");
  fflush(stdout);
  if (csv)
    fprintf(csv, "%s,%.9g,%s,%.9g,%.4f,%.4g,%.4g,%s\n", c.name, a, c.peer_name, b, ratio, error, allowed,
            good ? "ok" : "wrong");
  if (!good) {
    printf("  error %g, allowed %g\n", error, allowed);
    wrong++;
    return;
  }
  rows++;
  log_ratios += log(ratio);
  if (ratio < worst_ratio) worst_ratio = ratio, snprintf(worst_name, sizeof(worst_name), "%s", c.name);
}

static bool wanted(const char *name) { return !filter || strstr(name, filter); }

/* --- Reduce and scan -----------------------------------------------------------------------------------------------*/

struct arrays {
  const float *in;
  float *out, *peer_out;
  size_t n;
  gk_scratch scratch;
  void *temp;
  size_t temp_bytes;
};

static cudaError_t our_reduce(void *user, cudaStream_t stream, size_t i) {
  arrays *a = (arrays *)user;
  return gk_reduce_sum(a->in + i * a->n, a->out, a->n, stream, &a->scratch);
}
static cudaError_t cub_reduce(void *user, cudaStream_t stream, size_t i) {
  arrays *a = (arrays *)user;
  return cub::DeviceReduce::Sum(a->temp, a->temp_bytes, a->in + i * a->n, a->peer_out, a->n, stream);
}
static cudaError_t our_scan(void *user, cudaStream_t stream, size_t i) {
  arrays *a = (arrays *)user;
  return gk_scan_exclusive(a->in + i * a->n, a->out + i * a->n, a->n, gk_op_sum(), stream, &a->scratch);
}
static cudaError_t cub_scan(void *user, cudaStream_t stream, size_t i) {
  arrays *a = (arrays *)user;
  return cub::DeviceScan::ExclusiveSum(a->temp, a->temp_bytes, a->in + i * a->n, a->peer_out + i * a->n, a->n, stream);
}

static void reduce_and_scan(float *in, float *out, float *peer_out, float *spare, size_t capacity, int largest) {
  arrays a = {in, out, peer_out, 0, gk_scratch(), NULL, 0};
  const size_t top = (size_t)1 << largest;
  GK_CHECK(gk_scratch_create(&a.scratch, gk_scan_scratch_bytes(top, sizeof(float)), 0));
  GK_CHECK(cub::DeviceScan::ExclusiveSum(NULL, a.temp_bytes, in, out, top));
  size_t reduce_bytes = 0;
  GK_CHECK(cub::DeviceReduce::Sum(NULL, reduce_bytes, in, out, top));
  if (reduce_bytes > a.temp_bytes) a.temp_bytes = reduce_bytes;
  GK_CHECK(cudaMalloc(&a.temp, a.temp_bytes));
  for (int lg = 10; lg <= largest; lg += 2) {
    a.n = (size_t)1 << lg;
    const size_t cover = (size_t)192 << 20, buffers = cover / (a.n * sizeof(float)) + 1;
    const double scale = sqrt((double)a.n);
    contest c = {"",
                 our_reduce,
                 cub_reduce,
                 "CUB",
                 (double)a.n * sizeof(float),
                 0,
                 buffers * a.n > capacity ? capacity / a.n : buffers};
    snprintf(c.name, sizeof(c.name), "reduce f32 sum 2^%d", lg);
    if (wanted(c.name)) {
      GK_CHECK(our_reduce(&a, 0, 0));
      GK_CHECK(cub_reduce(&a, 0, 0));
      run(c, &a, difference(a.out, a.peer_out, 1, spare), 1e-5 * scale);
    }
    snprintf(c.name, sizeof(c.name), "scan f32 sum exclusive 2^%d", lg);
    c.ours = our_scan, c.peer = cub_scan, c.bytes *= 2;
    if (wanted(c.name)) {
      GK_CHECK(our_scan(&a, 0, 0));
      GK_CHECK(cub_scan(&a, 0, 0));
      run(c, &a, difference(a.out, a.peer_out, a.n, spare), 2e-5 * scale);
    }
  }
  GK_CHECK(gk_scratch_destroy(&a.scratch));
  GK_CHECK(cudaFree(a.temp));
}

/* --- Matmul --------------------------------------------------------------------------------------------------------*/

struct matrices {
  const float *a, *b;
  float *c, *peer_c;
  size_t m, n, k;
  cublasHandle_t blas;
};

static cudaError_t our_matmul(void *user, cudaStream_t stream, size_t) {
  matrices *s = (matrices *)user;
  return gk_matmul(s->a, s->b, s->c, s->m, s->n, s->k, stream);
}
/* Row-major C = A B is column-major C' = B' A'. */
static cudaError_t blas_matmul(void *user, cudaStream_t, size_t) {
  matrices *s = (matrices *)user;
  const float one = 1, zero = 0;
  GK_CHECK(cublasGemmEx(s->blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)s->n, (int)s->m, (int)s->k, &one, s->b, CUDA_R_32F,
                        (int)s->n, s->a, CUDA_R_32F, (int)s->k, &zero, s->peer_c, CUDA_R_32F, (int)s->n,
                        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  return cudaSuccess;
}

static void matmul(float *in, float *out, float *peer_out, float *spare) {
  static const size_t shapes[][3] = {{256, 256, 256},    {512, 512, 512},    {1024, 1024, 1024},
                                     {2048, 2048, 2048}, {4096, 4096, 4096}, {4095, 4097, 4099}};
  matrices s = {in, NULL, out, peer_out, 0, 0, 0, NULL};
  void *workspace = NULL;
  GK_CHECK(cublasCreate(&s.blas));
  GK_CHECK(cudaMalloc(&workspace, (size_t)32 << 20));
  GK_CHECK(cublasSetWorkspace(s.blas, workspace, (size_t)32 << 20));
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
    s.m = shapes[i][0], s.n = shapes[i][1], s.k = shapes[i][2];
    s.b = in + gk_round_up(s.m * s.k, (size_t)64);
    contest c = {"", our_matmul, blas_matmul, "cuBLAS", 0, 2.0 * (double)s.m * (double)s.n * (double)s.k, 1};
    snprintf(c.name, sizeof(c.name), "matmul f32 %zux%zux%zu", s.m, s.n, s.k);
    if (!wanted(c.name)) continue;
    GK_CHECK(our_matmul(&s, 0, 0));
    GK_CHECK(blas_matmul(&s, 0, 0));
    run(c, &s, difference(s.c, s.peer_c, s.m * s.n, spare), 4e-6 * sqrt((double)s.k) * log2((double)s.k));
  }
  GK_CHECK(cudaFree(workspace));
  GK_CHECK(cublasDestroy(s.blas));
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--quick")) {
      quick = 1;
    } else if (!strcmp(argv[i], "--filter") && i + 1 < argc) {
      filter = argv[++i];
    } else if (!strcmp(argv[i], "--csv") && i + 1 < argc) {
      csv = fopen(argv[++i], "w");
      if (!csv) return perror(argv[i]), 1;
    } else {
      fprintf(stderr, "usage: bench [--quick] [--csv FILE] [--filter TEXT]\n");
      return 1;
    }
  }
  int driver = 0, runtime = 0, blas = 0;
  GK_CHECK(gk_device_print(-1));
  GK_CHECK(cudaDriverGetVersion(&driver));
  GK_CHECK(cudaRuntimeGetVersion(&runtime));
  cublasHandle_t handle;
  GK_CHECK(cublasCreate(&handle));
  GK_CHECK(cublasGetVersion(handle, &blas));
  GK_CHECK(cublasDestroy(handle));
  printf("  %-34s driver %d, runtime %d, CUB %d, cuBLAS %d\n\n", "versions", driver, runtime, CUB_VERSION, blas);
  if (csv) fprintf(csv, "case,gpukit_ms,peer,peer_ms,ratio,error,allowed,check\n");

  const int largest = quick ? 26 : 28;
  const size_t capacity = (size_t)1 << largest;
  float *in, *out, *peer_out, *spare;
  GK_CHECK(cudaMalloc(&in, capacity * sizeof(float)));
  GK_CHECK(cudaMalloc(&out, capacity * sizeof(float)));
  GK_CHECK(cudaMalloc(&peer_out, capacity * sizeof(float)));
  GK_CHECK(cudaMalloc(&spare, 256));
  GK_LAUNCH(fill_normal, 2048, 256, 0, 0, in, capacity, 1u);
  reduce_and_scan(in, out, peer_out, spare, capacity, largest);
  matmul(in, out, peer_out, spare);
  GK_CHECK(cudaFree(in));
  GK_CHECK(cudaFree(out));
  GK_CHECK(cudaFree(peer_out));
  GK_CHECK(cudaFree(spare));
  if (rows)
    printf("\n%d cases: geometric mean of the ratios %.3f, worst %.3f (%s)%s\n", rows, exp(log_ratios / rows),
           worst_ratio, worst_name, wrong ? "; SOME RESULTS ARE WRONG" : "");
  if (csv) fclose(csv);
  return wrong != 0;
}
