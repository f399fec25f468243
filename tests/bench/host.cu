/* What the processor spends: on the first call of a process, and on each small call. */
#include "bench.h"

#include <algorithm>
#include <chrono>
#include <cub/cub.cuh>
#include <cublas_v2.h>
#include <string.h>
#include <unistd.h>

typedef std::chrono::steady_clock host_clock;
static double us_since(host_clock::time_point when) {
  return std::chrono::duration<double, std::micro>(host_clock::now() - when).count();
}

/* --- The first call: from the return of cudaFree(0) to the result in host memory, each in a process of its own -------
 *
 * Memory for temporaries is made in it, gpukit's scratch as CUB's storage. Without a scratch gpukit allocates on the
 * stream, and the first such allocation of a process makes the device's memory pool, which takes the driver 8 ms. */

static const size_t first_items = size_t{1} << 20, first_edge = 512;

/* The work of the process: one result in host memory. */
static void first_result(const std::string &what, float *in, float *out, float *result) {
  const int n = static_cast<int>(first_items), edge = static_cast<int>(first_edge);
  void *temp = NULL;
  size_t temp_bytes = 0;
  const float one = 1, zero = 0;
  gk_scratch scratch = {};
  if (what == "gpukit reduce") {
    GK_CHECK(gk_scratch_create(&scratch, gk_reduce_scratch_bytes(), 0));
    GK_CHECK(gk_reduce_sum(in, out, first_items, 0, &scratch));
  } else if (what == "gpukit reduce without a scratch") {
    GK_CHECK(gk_reduce_sum(in, out, first_items));
  } else if (what == "gpukit scan") {
    GK_CHECK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(first_items, sizeof(float)), 0));
    GK_CHECK(gk_scan_inclusive_sum(in, out, first_items, 0, &scratch));
  } else if (what == "gpukit matmul") {
    GK_CHECK(gk_matmul(in, in, out, first_edge, first_edge, first_edge));
  } else if (what == "CUB reduce") {
    GK_CHECK(cub::DeviceReduce::Sum(temp, temp_bytes, in, out, n));
    GK_CHECK(cudaMalloc(&temp, temp_bytes));
    GK_CHECK(cub::DeviceReduce::Sum(temp, temp_bytes, in, out, n));
  } else if (what == "CUB scan") {
    GK_CHECK(cub::DeviceScan::InclusiveSum(temp, temp_bytes, in, out, n));
    GK_CHECK(cudaMalloc(&temp, temp_bytes));
    GK_CHECK(cub::DeviceScan::InclusiveSum(temp, temp_bytes, in, out, n));
  } else {
    cublasHandle_t blas;
    GK_CHECK(cublasCreate(&blas));
    GK_CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, edge, edge, edge, &one, in, edge, in, edge, &zero, out, edge));
  }
  GK_CHECK(cudaMemcpy(result, out, sizeof(*result), cudaMemcpyDeviceToHost));
}
int bench_first_call(const char *what) {
  float *in, *out, result;
  GK_CHECK(cudaFree(0));
  const host_clock::time_point began = host_clock::now();
  GK_CHECK(cudaMalloc(&in, first_items * sizeof(float)));
  GK_CHECK(cudaMalloc(&out, first_items * sizeof(float)));
  GK_CHECK(cudaMemset(in, 0, first_items * sizeof(float)));
  first_result(what, in, out, &result);
  printf("%.1f\n", us_since(began));
  return result != 0; /* sums of zeros */
}
/* Runs such a process. Not a number: it failed, and its result is wrong. */
static double first_sample(const bench_contestant *who) {
  char self[4096], line[64] = "";
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return NAN;
  self[length] = '\0';
  const std::string command =
      "'" + std::string(self) + "' --first-call='" + static_cast<const char *>(who->user) + "' 2>&1";
  FILE *const child = popen(command.c_str(), "r");
  if (!child) return NAN;
  const bool has_line = fgets(line, sizeof(line), child) != NULL;
  return pclose(child) == 0 && has_line ? atof(line) : NAN;
}
static void first_call(const char *what, const char *ours, const char *peer_name, const char *peer) {
  bench_contest c = {};
  c.group = "first call", c.what = what, c.type = "f32", c.modes = BENCH_FIRST;
  snprintf(c.size, sizeof(c.size), "%s", strcmp(what, "matmul") ? "2^20" : "512x512x512");
  c.n = static_cast<double>(first_items);
  c.sample = first_sample;
  c.ours = {"gpukit", NULL, const_cast<char *>(ours)};
  c.peers[0] = {peer_name, NULL, const_cast<char *>(peer)};
  bench_run(&c);
}

/* --- Each call: the time until it returns, on a stream that is drained every hundred calls ----------------------------*/

struct host_call {
  size_t n;
  float *in, *out;
  void *temp;
  size_t temp_bytes;
  cublasHandle_t blas;
};
static cudaError_t host_reduce(void *user, cudaStream_t stream, size_t) {
  const host_call *c = static_cast<host_call *>(user);
  return gk_reduce_sum(c->in, c->out, c->n, stream, &bench.scratch);
}
static cudaError_t host_reduce_peer(void *user, cudaStream_t stream, size_t) {
  host_call *c = static_cast<host_call *>(user);
  return cub::DeviceReduce::Sum(c->temp, c->temp_bytes, c->in, c->out, static_cast<BENCH_CUB_SIZE>(c->n), stream);
}
static cudaError_t host_scan(void *user, cudaStream_t stream, size_t) {
  const host_call *c = static_cast<host_call *>(user);
  return gk_scan_inclusive_sum(c->in, c->out, c->n, stream, &bench.scratch);
}
static cudaError_t host_scan_peer(void *user, cudaStream_t stream, size_t) {
  host_call *c = static_cast<host_call *>(user);
  return cub::DeviceScan::InclusiveSum(c->temp, c->temp_bytes, c->in, c->out, static_cast<BENCH_CUB_SIZE>(c->n),
                                       stream);
}
static cudaError_t host_matmul(void *user, cudaStream_t stream, size_t) {
  const host_call *c = static_cast<host_call *>(user);
  return gk_matmul(c->in, c->in, c->out, c->n, c->n, c->n, stream);
}
static cudaError_t host_matmul_peer(void *user, cudaStream_t, size_t) {
  const host_call *c = static_cast<host_call *>(user);
  const int edge = static_cast<int>(c->n);
  const float one = 1, zero = 0;
  GK_CHECK(cublasSgemm(c->blas, CUBLAS_OP_N, CUBLAS_OP_N, edge, edge, edge, &one, c->in, edge, c->in, edge, &zero,
                       c->out, edge));
  return cudaSuccess;
}
/* The median of some thousand calls, in microseconds. */
static double host_sample(const bench_contestant *who) {
  std::vector<double> us(bench.quick ? 1000 : 10000);
  for (size_t i = 0; i < us.size(); i++) {
    if (i % 100 == 0) GK_CHECK(cudaStreamSynchronize(bench.stream));
    const host_clock::time_point began = host_clock::now();
    GK_CHECK(who->fn(who->user, bench.stream, 0));
    us[i] = us_since(began);
  }
  GK_CHECK(cudaStreamSynchronize(bench.stream));
  std::nth_element(us.begin(), us.begin() + static_cast<std::ptrdiff_t>(us.size() / 2), us.end());
  return us[us.size() / 2];
}
static void host_contest(const char *what, const char *size, host_call call, gk_bench_fn ours, gk_bench_fn peer) {
  bench_contest c = {};
  c.group = "host", c.what = what, c.type = "f32", c.modes = BENCH_HOST;
  snprintf(c.size, sizeof(c.size), "%s", size);
  c.n = static_cast<double>(call.n);
  c.sample = host_sample;
  c.ours = {"gpukit", ours, &call};
  c.peers[0] = {call.blas ? "cuBLAS" : "CUB", peer, &call};
  if (!bench_wanted(&c)) return;
  call.in = reinterpret_cast<float *>(bench.in), call.out = reinterpret_cast<float *>(bench.out);
  if (!call.blas) { /* a query with a null pointer runs nothing */
    GK_CHECK(peer(&call, bench.stream, 0));
    call.temp = bench_temp(call.temp_bytes);
  }
  bench_run(&c);
}

void bench_host() {
  first_call("reduce", "gpukit reduce", "CUB", "CUB reduce");
  first_call("reduce no scratch", "gpukit reduce without a scratch", "CUB", "CUB reduce");
  first_call("scan", "gpukit scan", "CUB", "CUB scan");
  first_call("matmul", "gpukit matmul", "cuBLAS", "cuBLAS matmul");
  host_call call = {};
  call.n = 1024;
  host_contest("reduce", "2^10", call, host_reduce, host_reduce_peer);
  host_contest("scan", "2^10", call, host_scan, host_scan_peer);
  call.n = size_t{1} << 16;
  host_contest("reduce", "2^16", call, host_reduce, host_reduce_peer);
  host_contest("scan", "2^16", call, host_scan, host_scan_peer);
  call.n = 128;
  GK_CHECK(cublasCreate(&call.blas));
  GK_CHECK(cublasSetStream(call.blas, bench.stream));
  host_contest("matmul", "128x128x128", call, host_matmul, host_matmul_peer);
  GK_CHECK(cublasDestroy(call.blas));
}
