/* The host API from plain C99: errors, device, timer, bench, reduce, scan and matmul, checked. c99_implementation.cu
 * holds what it calls. */
#include "gpukit.cuh"
#include "gpukit.cuh"

#include <stdio.h>
#include <string.h>

enum { N = 1000, SIDE = 3 };

typedef struct errors_seen {
  int count, code;
  char message[128], detail[256];
} errors_seen;

static void remember(const gk_error *error, void *user) {
  errors_seen *const seen = (errors_seen *)user;
  seen->count++;
  seen->code = error->code;
  snprintf(seen->message, sizeof(seen->message), "%s", error->message);
  snprintf(seen->detail, sizeof(seen->detail), "%s", error->detail);
}

static int failures;
static void expect(int condition, const char *what) {
  if (condition) return;
  failures++;
  printf("not so: %s (detail: %s)\n", what, gk_error_detail());
}
#define EXPECT(condition) expect((condition), #condition)

static const char *other_library_text(int status) { return status == 7 ? "seven" : "unknown"; }

static cudaError_t null_input(void) {
  float out;
  GK_TRY(gk_host_reduce_f32(NULL, &out, N, GK_OP_SUM));
  return cudaSuccess;
}

static void check_errors(errors_seen *seen) {
  GK_CHECK(cudaSuccess);
  EXPECT(seen->count == 0);
  GK_CHECK(null_input());
  EXPECT(seen->count == 1 && seen->code == (int)cudaErrorInvalidValue);
  EXPECT(strstr(seen->detail, "gk_host_reduce") != NULL);
  GK_CHECK_STATUS(7, other_library_text);
  EXPECT(seen->count == 2 && seen->code == 7 && strcmp(seen->message, "seven") == 0);
  EXPECT(gk_error_hint(cudaErrorNoDevice)[0] != 0 && gk_error_hint(cudaSuccess)[0] == 0);
  seen->count = 0;
}

static void check_device(void) {
  gk_device_info info;
  int best = -1;
  dim3 grid, block;
  GK_CHECK(gk_device_query(-1, &info));
  EXPECT(info.threads_per_warp == 32 && info.sms > 0 && info.name[0] != 0);
  GK_CHECK(gk_device_best(&best));
  EXPECT(best >= 0);
  block.x = 32, block.y = 8, block.z = 1;
  GK_CHECK(gk_grid_shape(100, 100, 1, &block, &grid));
  EXPECT(grid.x == 4 && grid.y == 13 && grid.z == 1);
}

static void check_reduce_and_scan(void) {
  float host[N], result[N], *in = NULL, *out = NULL, sum = 0;
  int32_t ints[3] = {3, -4, 5}, least = 0;
  gk_arg_f32 *best = NULL, best_host;
  gk_scratch scratch = {0};
  gk_timer timer = {0};
  float ms = -1;
  int i, ready = 0;
  for (i = 0; i < N; i++) host[i] = (float)(i % 7);
  GK_CHECK(cudaMalloc((void **)&in, sizeof(host)));
  GK_CHECK(cudaMalloc((void **)&out, sizeof(host)));
  GK_CHECK(cudaMalloc((void **)&best, sizeof(*best)));
  GK_CHECK(cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice));
  GK_CHECK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(N, sizeof(float)), 0));

  GK_CHECK(gk_timer_create(&timer));
  GK_CHECK(gk_timer_start(&timer, 0));
  GK_CHECK(gk_reduce_f32(in, out, N, GK_OP_SUM, 0, &scratch));
  GK_CHECK(gk_timer_stop(&timer));
  GK_CHECK(gk_timer_ms(&timer, &ms));
  GK_CHECK(gk_timer_ready(&timer, &ready));
  EXPECT(ms >= 0 && ready);
  GK_CHECK(gk_timer_destroy(&timer));
  (void)gk_timer_destroy(&timer); /* silent in every C */
  GK_CHECK(cudaMemcpy(&sum, out, sizeof(sum), cudaMemcpyDeviceToHost));
  EXPECT(sum == 2997);

  GK_CHECK(gk_argreduce_f32(in, best, N, GK_OP_ARGMAX, 0, NULL));
  GK_CHECK(cudaMemcpy(&best_host, best, sizeof(best_host), cudaMemcpyDeviceToHost));
  EXPECT(best_host.value == 6 && best_host.index == 6);

  GK_TIME ("scan", 0) { GK_CHECK(gk_scan_exclusive_f32(in, out, N, GK_OP_SUM, 0, &scratch)); }
  GK_CHECK(cudaMemcpy(result, out, sizeof(result), cudaMemcpyDeviceToHost));
  EXPECT(result[0] == 0 && result[7] == 21 && result[N - 1] == 2997 - host[N - 1]);
  GK_CHECK(gk_scan_exclusive_init_f32(in, out, N, GK_OP_SUM, 0.5f, 0, NULL));
  GK_CHECK(cudaMemcpy(result, out, sizeof(result), cudaMemcpyDeviceToHost));
  EXPECT(result[0] == 0.5f);

  GK_CHECK(gk_host_reduce_i32(ints, &least, 3, GK_OP_MIN));
  EXPECT(least == -4);
  GK_CHECK(gk_host_scan_inclusive_i32(ints, ints, 3, GK_OP_SUM));
  EXPECT(ints[0] == 3 && ints[1] == -1 && ints[2] == 4);

  GK_CHECK(gk_scratch_destroy(&scratch));
  GK_CHECK(cudaFree(in));
  GK_CHECK(cudaFree(out));
  GK_CHECK(cudaFree(best));
}

static void check_matmul(void) {
  const float a[SIDE * SIDE] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, two[SIDE * SIDE] = {2, 0, 0, 0, 2, 0, 0, 0, 2};
  const float transposed[SIDE * SIDE] = {1, 4, 7, 2, 5, 8, 3, 6, 9};
  const double half = 0.5;
  float c[SIDE * SIDE], *device[3] = {NULL, NULL, NULL};
  gk_matmul_opts opts = {0};
  gk_matmul_path path;
  gk_scratch scratch = {0};
  gk_mismatch where;
  int i;
  GK_CHECK(gk_host_matmul_f32(a, two, c, SIDE, SIDE, SIDE));
  EXPECT(c[0] == 2 && c[4] == 10 && c[8] == 18);
  EXPECT(!gk_allclose_f32(c, a, SIDE * SIDE, 1e-6, 0, &where) && where.first_index == 0);

  for (i = 0; i < 3; i++) GK_CHECK(cudaMalloc((void **)&device[i], sizeof(c)));
  GK_CHECK(cudaMemcpy(device[0], a, sizeof(a), cudaMemcpyHostToDevice));
  GK_CHECK(cudaMemcpy(device[1], two, sizeof(two), cudaMemcpyHostToDevice));
  opts.trans_a = 1;
  opts.alpha = &half;
  GK_CHECK(gk_matmul_ex_f32(device[0], device[1], device[2], SIDE, SIDE, SIDE, &opts, 0));
  GK_CHECK(cudaMemcpy(c, device[2], sizeof(c), cudaMemcpyDeviceToHost));
  EXPECT(gk_allclose_f32(c, transposed, SIDE * SIDE, 0, 0, NULL));
  opts.precision = GK_PRECISION_EMULATED; /* so small, it is strict all the same */
  GK_CHECK(gk_matmul_plan_f32(device[0], device[1], device[2], SIDE, SIDE, SIDE, &opts, &path));
  EXPECT(path.precision == GK_PRECISION_STRICT && path.plan == GK_PLAN_AUTO && path.work_bytes == 0);
  GK_CHECK(gk_scratch_create_work(&scratch, 0, gk_matmul_work_bytes(opts.precision, SIDE, SIDE, SIDE), 0));
  EXPECT(scratch.work_bytes > 0);
  opts.scratch = &scratch;
  GK_CHECK(gk_matmul_ex_f32(device[0], device[1], device[2], SIDE, SIDE, SIDE, &opts, 0));
  GK_CHECK(gk_scratch_destroy(&scratch));
  for (i = 0; i < 3; i++) GK_CHECK(cudaFree(device[i]));
}

static cudaError_t one_matmul(void *user, cudaStream_t stream, size_t i) {
  float *const memory = (float *)user;
  (void)i;
  return gk_matmul_f32(memory, memory + SIDE, memory + 2 * SIDE, 1, 1, SIDE, stream);
}

static void check_bench(void) {
  gk_bench_opts opts = {0};
  gk_bench_result result;
  const gk_bench_fn function = one_matmul;
  float *memory = NULL;
  void *user;
  opts.samples = 3;
  opts.calls = 2;
  opts.flops = 2.0 * (double)SIDE;
  GK_CHECK(cudaMalloc((void **)&memory, 3 * SIDE * sizeof(float)));
  GK_CHECK(cudaMemset(memory, 0, 3 * SIDE * sizeof(float)));
  user = memory;
  GK_CHECK(gk_bench(one_matmul, memory, &opts, &result));
  EXPECT(result.samples == 3 && result.calls == 2 && result.median_ms > 0);
  GK_CHECK(gk_bench_compare(&function, &user, 1, &opts, &result));
  EXPECT(result.samples == 3 && result.ratio == 1);
  GK_CHECK(cudaFree(memory));
}

int main(void) {
  errors_seen seen;
  memset(&seen, 0, sizeof(seen));
  gk_set_error_handler(remember, &seen);
  check_errors(&seen);
  check_device();
  check_reduce_and_scan();
  check_matmul();
  check_bench();
  if (seen.count) printf("%d failed call(s), the last: %s, %s\n", seen.count, seen.message, seen.detail);
  return failures || seen.count;
}
