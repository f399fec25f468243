/* Section 3 of the header: checks, handlers, details and hints, launches, and what faults of kernels look like.
 * Tests named provoke_... make CUDA calls that fail, which compute-sanitizer reports as errors of the program. */
#include "hooks.h"
#include "test.h"
#include "child.h"

#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#include "device_array.h"
#include "on_cpu.h"
#include "remembering.h"

#include <atomic>
#include <setjmp.h>
#include <signal.h>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

/* --- GK_CHECK --- */

static int evaluations;
static cudaError_t give(cudaError_t code) {
  evaluations++;
  return code;
}
template <class T, int N> static cudaError_t give_two() { return static_cast<cudaError_t>(N + sizeof(T) * 0); }

TEST(check_evaluates_once_and_gives_its_value) {
  remembering r;
  evaluations = 0;
  EXPECT_EQ(GK_CHECK(give(cudaSuccess)), cudaSuccess);
  EXPECT_EQ(evaluations, 1);
  EXPECT_EQ(r.calls, 0);
  EXPECT_EQ(GK_CHECK(give(cudaErrorInvalidValue)), cudaErrorInvalidValue);
  EXPECT_EQ(evaluations, 2);
  EXPECT_EQ(r.calls, 1);
}

TEST(check_is_one_statement_and_takes_commas) {
  remembering r;
  bool otherwise = true;
  if (r.calls == 0)
    GK_CHECK(give_two<int, 2>());
  else
    otherwise = false;
  EXPECT(otherwise);
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.expr, std::string("give_two<int, 2>()"));
  if (r.calls == 99)
    GK_CHECK(give(cudaSuccess));
  else
    GK_CHECK_STATUS(give(cudaErrorInvalidValue), cudaGetErrorString);
  EXPECT_EQ(r.calls, 2);
  for (int i = 0; i < 3; i++) GK_CHECK(give(cudaSuccess));
  EXPECT_EQ(r.calls, 2);
}

TEST(handler_gets_the_whole_story) {
  remembering r;
  const int line = __LINE__ + 1;
  GK_CHECK(give(cudaErrorInvalidDevice));
  EXPECT_EQ(r.file, std::string(__FILE__));
  EXPECT_EQ(r.line, line);
  EXPECT_EQ(r.expr, std::string("give(cudaErrorInvalidDevice)"));
  EXPECT_EQ(r.code, static_cast<int>(cudaErrorInvalidDevice));
  EXPECT_EQ(r.name, std::string("cudaErrorInvalidDevice"));
  EXPECT_EQ(r.message, std::string(cudaGetErrorString(cudaErrorInvalidDevice)));
  EXPECT_EQ(r.hint, std::string(gk_error_hint(cudaErrorInvalidDevice)));
  EXPECT_EQ(r.detail, std::string());
  gk_device_info info;
  GK_CHECK(gk_device_query(1000, &info));
  EXPECT_HAS(r.detail.c_str(), "gk_device_query: device 1000 of ");
}

__global__ void nothing_to_do() {}

TEST(details_are_not_told_twice_nor_of_other_errors) {
  remembering r;
  dim3 grid;
  GK_CHECK(gk_grid_shape(1, 1, 1, NULL, &grid));
  EXPECT_HAS(r.detail.c_str(), "gk_grid_shape: block_dim is NULL");
  GK_CHECK(give(cudaErrorInvalidValue)); /* of the same code, but nothing of gpukit's */
  EXPECT_EQ(r.detail, std::string());
  EXPECT_EQ(gk_grid_shape(1, 1, 1, NULL, &grid), cudaErrorInvalidValue);
  GK_CHECK(give(cudaErrorMemoryAllocation));
  EXPECT_EQ(r.detail, std::string());
}

/* The sentence is of the error that is reported: by the expression itself, or by the call that gave a stored status. */
static const char *const no_block = "gk_grid_shape: block_dim is NULL";
static cudaError_t fail_with_a_sentence() {
  dim3 grid;
  return gk_grid_shape(1, 1, 1, NULL, &grid);
}
TEST(provoke_details_of_ignored_failures_are_not_told_of_others) {
  remembering r;
  const float *const nothing = NULL;
  float sum;
  (void)gk_reduce_sum(nothing, &sum, 1);
  GK_CHECK(give(cudaErrorInvalidValue));
  EXPECT_EQ(r.calls, 1);
  EXPECT_EQ(r.detail, std::string());
  (void)fail_with_a_sentence();
  GK_CHECK(cudaMemcpy(NULL, &sum, sizeof(sum), cudaMemcpyHostToDevice));
  cudaGetLastError();
  EXPECT_EQ(r.calls, 2);
  EXPECT_EQ(r.detail, std::string());
}
TEST(details_of_stored_statuses_are_told) {
  remembering r;
  const cudaError_t stored = fail_with_a_sentence();
  GK_CHECK(give(cudaSuccess));
  EXPECT_EQ(r.calls, 0);
  GK_CHECK(stored);
  EXPECT_EQ(r.detail, std::string(no_block));
  GK_CHECK(stored); /* once */
  EXPECT_EQ(r.detail, std::string());
}
/* Releasing what a failed call was given succeeds, and is no reason to forget why it failed. */
static cudaError_t fail_and_clean_up() {
  gk_timer timer = gk_timer();
  const cudaError_t status = fail_with_a_sentence();
  EXPECT_OK(gk_timer_create(&timer));
  EXPECT_OK(gk_timer_destroy(&timer));
  EXPECT_EQ(std::string(gk_error_detail()), std::string()); /* of the last call */
  return status;
}
TEST(details_outlive_calls_that_succeed) {
  remembering r;
  GK_CHECK(fail_and_clean_up());
  EXPECT_EQ(r.detail, std::string(no_block));
  const cudaError_t stored = fail_and_clean_up();
  GK_CHECK((stored));
  EXPECT_EQ(r.detail, std::string(no_block));
}
static cudaError_t check_and_fail(bool sentence_first, cudaError_t inner) {
  const cudaError_t status = sentence_first ? fail_with_a_sentence() : cudaErrorInvalidValue;
  GK_CHECK(give(inner));
  return status;
}
TEST(details_of_checks_inside_of_checks) {
  remembering r;
  GK_CHECK(check_and_fail(true, cudaSuccess));
  EXPECT_EQ(r.calls, 1);
  EXPECT_EQ(r.detail, std::string(no_block));
  (void)fail_with_a_sentence();
  GK_CHECK(check_and_fail(false, cudaSuccess));
  EXPECT_EQ(r.calls, 2);
  EXPECT_EQ(r.detail, std::string());
  GK_CHECK(check_and_fail(true, cudaErrorInvalidValue)); /* the inner one fails, of which nothing was said */
  EXPECT_EQ(r.calls, 4);
  EXPECT_EQ(r.detail, std::string(no_block)); /* of the outer one */
  (void)fail_with_a_sentence();
  GK_LAUNCH(nothing_to_do, 0, 1, 0, 0);
  GK_CHECK_LAUNCH();
  GK_CHECK(check_and_fail(false, cudaErrorInvalidValue));
  EXPECT_EQ(r.calls, 6);
  EXPECT_EQ(r.detail, std::string());
}
TEST(details_after_a_check_that_was_left) {
  (void)fail_with_a_sentence();
  const auto leave = []() -> cudaError_t { throw 1; };
  try {
    GK_CHECK(leave());
  } catch (int) {}
  remembering r;
  GK_CHECK(check_and_fail(false, cudaSuccess));
  EXPECT_EQ(r.detail, std::string());
  GK_CHECK(check_and_fail(true, cudaSuccess));
  EXPECT_EQ(r.detail, std::string(no_block));
}

static void throw_it(const gk_error *e, void *) { throw std::runtime_error(e->name); }
static jmp_buf way_out;
static void jump(const gk_error *e, void *user) {
  *static_cast<int *>(user) = e->code;
  longjmp(way_out, 1);
}
static int jump_out_of_check() {
  static int code;
  code = 0;
  gk_set_error_handler(jump, &code);
  if (setjmp(way_out) == 0) {
    GK_CHECK(cudaErrorInvalidValue);
    code = -1; /* must not come here */
  }
  return code;
}
TEST(handler_may_throw_or_jump) {
  gk_set_error_handler(throw_it, NULL);
  std::string caught;
  try {
    GK_CHECK(cudaErrorInvalidPitchValue);
  } catch (const std::runtime_error &e) { caught = e.what(); }
  EXPECT_EQ(caught, std::string("cudaErrorInvalidPitchValue"));
  EXPECT_EQ(jump_out_of_check(), static_cast<int>(cudaErrorInvalidValue));
  remembering r; /* and the next one is served as before */
  GK_CHECK(cudaErrorInvalidValue);
  EXPECT_EQ(r.calls, 1);
}

/* Handler and user are set as a pair, and a check of another thread never meets one of an old and one of a new pair. */
static std::atomic<int> wrong_pairs;
template <int Own> static void expect_own(const gk_error *, void *user) {
  if (*static_cast<const int *>(user) != Own) wrong_pairs++;
}
TEST(handler_and_user_are_a_pair) {
  static int one = 1, two = 2;
  std::atomic<bool> ended(false);
  std::atomic<int> turns(0);
  wrong_pairs = 0;
  gk_set_error_handler(expect_own<1>, &one);
  std::thread setter([&] {
    while (!ended) {
      gk_set_error_handler(expect_own<2>, &two);
      gk_set_error_handler(expect_own<1>, &one);
      turns++;
    }
  });
  for (int i = 0; i < 1000000 || turns < 1000; i++) GK_CHECK(cudaErrorInvalidValue);
  ended = true;
  setter.join();
  gk_set_error_handler(NULL, NULL);
  EXPECT_EQ(wrong_pairs.load(), 0);
}

static void check_inside_handler(const gk_error *e, void *user) {
  gk_device_info info;
  (void)gk_device_query(1000, &info); /* another detail, while the first one is being told */
  *static_cast<std::string *>(user) = e->detail;
}
TEST(handler_may_call_gpukit) {
  std::string detail;
  dim3 grid;
  gk_set_error_handler(check_inside_handler, &detail);
  GK_CHECK(gk_grid_shape(1, 1, 1, NULL, &grid));
  gk_set_error_handler(NULL, NULL);
  EXPECT_EQ(detail, std::string("gk_grid_shape: block_dim is NULL"));
}

TEST(provoke_default_handler_prints_and_aborts) {
  if (in_child("provoke_default_handler_prints_and_aborts")) {
    gk_device_info info;
    gk_set_error_handler(throw_it, NULL);
    gk_set_error_handler(NULL, NULL);
    printf("unfinished line: ");
    GK_CHECK(gk_device_query(1000, &info));
    printf("went on\n");
    return;
  }
  const child c = run_child("provoke_default_handler_prints_and_aborts", "");
  EXPECT_EQ(c.signal, SIGABRT);
  const char *out = c.output.c_str();
  EXPECT_HAS(out, "unfinished line: " __FILE__ ":"); /* what was printed before comes before */
  EXPECT_HAS(out, ": gk_device_query(1000, &info): cudaErrorInvalidDevice: ");
  EXPECT_HAS(out, cudaGetErrorString(cudaErrorInvalidDevice));
  EXPECT_HAS(out, "gk_device_query: device 1000 of ");
  EXPECT_HAS(out, gk_error_hint(cudaErrorInvalidDevice));
  EXPECT(!strstr(out, "went on"));
}

/* --- statuses of other libraries, known by the names of their functions. They come after the header here. --- */

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
static const char *cublasGetStatusName(cublasStatus_t) { return "CUBLAS_STATUS_NOT_SUPPORTED"; }
static const char *cublasGetStatusString(cublasStatus_t) { return "not supported, it says"; }
typedef enum { ncclSuccess = 0, ncclInvalidArgument = 4 } ncclResult_t;
static const char *ncclGetErrorString(ncclResult_t s) { return s == ncclInvalidArgument ? "bad argument" : "?"; }
enum someStatus { SOME_FINE = 0, SOME_NOT = 7 }; /* in the same namespace as the functions above */
namespace other {
enum class status : unsigned char { fine, broken = 200 };
}
static const char *some_text(int code) {
  evaluations++;
  return code == 7 ? "seven" : "?";
}

TEST(check_of_other_libraries_statuses) {
  remembering r;
  EXPECT_EQ(GK_CHECK(CUBLAS_STATUS_SUCCESS), CUBLAS_STATUS_SUCCESS);
  EXPECT(GK_CHECK(other::status::fine) == other::status::fine);
  EXPECT_EQ(GK_CHECK(0), 0);
  EXPECT_EQ(r.calls, 0);
  EXPECT_EQ(GK_CHECK(CUBLAS_STATUS_NOT_SUPPORTED), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(r.name, std::string("CUBLAS_STATUS_NOT_SUPPORTED"));
  EXPECT_EQ(r.message, std::string("not supported, it says"));
  EXPECT_EQ(r.code, 15);
  EXPECT_EQ(r.line, __LINE__ - 4);
  GK_CHECK(ncclInvalidArgument);
  EXPECT_EQ(r.name, std::string("status 4"));
  EXPECT_EQ(r.message, std::string("bad argument"));
  GK_CHECK(SOME_NOT);
  EXPECT_EQ(r.name, std::string("status 7"));
  EXPECT_EQ(r.message, std::string());
  GK_CHECK(other::status::broken);
  EXPECT_EQ(r.code, 200);
  GK_CHECK(-3);
  EXPECT_EQ(r.name, std::string("status -3"));
  EXPECT_EQ(r.hint, std::string());
  EXPECT_EQ(r.detail, std::string());
  EXPECT_EQ(r.calls, 5);
}

/* A check of another library's status inside of a check leaves the outer one its detail. */
static cudaError_t fails_beside_another_library() {
  const cudaError_t status = gk_device_query(1000, NULL);
  GK_CHECK(CUBLAS_STATUS_SUCCESS);
  return status;
}
TEST(checks_of_other_libraries_nest) {
  remembering r;
  GK_CHECK(fails_beside_another_library());
  EXPECT_EQ(r.calls, 1);
  EXPECT_HAS(r.detail.c_str(), "gk_device_query");
}

TEST(check_status_with_a_text_function) {
  remembering r;
  evaluations = 0;
  GK_CHECK_STATUS(0, some_text);
  EXPECT_EQ(evaluations + r.calls, 0); /* the text of a success is not asked for */
  GK_CHECK_STATUS(evaluations++ ? 0 : SOME_NOT, some_text);
  EXPECT_EQ(evaluations, 2); /* the expression and its text, once each */
  EXPECT_EQ(r.calls, 1);
  EXPECT_EQ(r.code, 7);
  EXPECT_EQ(r.message, std::string("seven"));
  EXPECT_EQ(r.name, std::string("status 7"));
  EXPECT_EQ(r.expr, std::string("evaluations++ ? 0 : SOME_NOT"));
}

/* --- GK_TRY --- */

struct cleaner {
  int *count;
  ~cleaner() { ++*count; }
};
static cudaError_t try_two(cudaError_t first, cudaError_t second, int *cleaned, int *reached) {
  const cleaner clean = {cleaned};
  if (reached) GK_TRY(give(first));
  ++*reached;
  GK_TRY(give_two<int, 0>());
  GK_TRY(give(second));
  ++*reached;
  return cudaSuccess;
}
TEST(try_returns_the_first_error) {
  remembering r;
  int cleaned = 0, reached = 0;
  evaluations = 0;
  EXPECT_EQ(try_two(cudaErrorInvalidValue, cudaSuccess, &cleaned, &reached), cudaErrorInvalidValue);
  EXPECT_EQ(evaluations * 100 + cleaned * 10 + reached, 110);
  EXPECT_EQ(try_two(cudaSuccess, cudaErrorInvalidDevice, &cleaned, &reached), cudaErrorInvalidDevice);
  EXPECT_EQ(evaluations * 100 + cleaned * 10 + reached, 321);
  EXPECT_EQ(try_two(cudaSuccess, cudaSuccess, &cleaned, &reached), cudaSuccess);
  EXPECT_EQ(evaluations * 100 + cleaned * 10 + reached, 533);
  EXPECT_EQ(r.calls, 0);
}

/* --- details and hints --- */

TEST(detail_is_of_the_last_call_of_this_thread) {
  dim3 block(1), grid;
  EXPECT_EQ(gk_grid_shape(1, 1, 1, NULL, &grid), cudaErrorInvalidValue);
  const std::string mine = gk_error_detail();
  EXPECT_HAS(mine.c_str(), "gk_grid_shape");
  std::string before, others;
  std::thread other([&] {
    gk_device_info info;
    before = gk_error_detail();
    (void)gk_device_query(1000, &info);
    others = gk_error_detail();
  });
  other.join();
  EXPECT_EQ(before, std::string());
  EXPECT_HAS(others.c_str(), "gk_device_query");
  EXPECT_EQ(std::string(gk_error_detail()), mine);
  EXPECT_OK(gk_grid_shape(1, 1, 1, &block, &grid));
  EXPECT_EQ(std::string(gk_error_detail()), std::string());
}

TEST(hints_for_the_usual_mistakes) {
  const struct {
    cudaError_t code;
    const char *part;
  } expected[] = {
      {cudaErrorNoDevice, "CUDA_VISIBLE_DEVICES"},
      {cudaErrorNoDevice, "without a GPU: make cpu FILE="},
      {cudaErrorInsufficientDriver, "no NVIDIA driver here, or older than this CUDA; without a GPU: make cpu"},
      {cudaErrorInvalidDevice, "cudaGetDeviceCount"},
      {cudaErrorMemoryAllocation, "memory"},
      {cudaErrorInvalidConfiguration, "1024"},
      {cudaErrorLaunchOutOfResources, "registers"},
      {cudaErrorNoKernelImageForDevice, "-arch"},
      {cudaErrorUnsupportedPtxVersion, "driver"}};
  for (auto &e : expected) EXPECT_HAS(gk_error_hint(e.code), e.part);
  EXPECT_EQ(std::string(gk_error_hint(cudaSuccess)), std::string());
  EXPECT_EQ(std::string(gk_error_hint(cudaErrorInvalidPitchValue)), std::string());
}

/* A GPU does not say which kernel it was; the stand-in has said so already, with the line. */
static const cudaError_t of_kernels[] = {cudaErrorIllegalAddress, cudaErrorMisalignedAddress, cudaErrorLaunchFailure,
                                         cudaErrorIllegalInstruction};
TEST(hints_for_faults_of_kernels) {
  if (in_child("hints_for_faults_of_kernels")) { /* which runs in debug mode, and then needs no advice to do so */
    for (cudaError_t code : of_kernels) {
      EXPECT(!strstr(gk_error_hint(code), "GPUKIT_DEBUG"));
      EXPECT_EQ(strstr(gk_error_hint(code), "compute-sanitizer") != NULL, !on_cpu);
    }
    return;
  }
  EXPECT_PASSED(run_child("hints_for_faults_of_kernels", "GPUKIT_DEBUG=1"));
  if (getenv("GPUKIT_DEBUG")) SKIP("this is debug mode");
  for (cudaError_t code : of_kernels) {
    EXPECT_EQ(strstr(gk_error_hint(code), "GPUKIT_DEBUG=1") != NULL, !on_cpu);
    EXPECT_EQ(strstr(gk_error_hint(code), "compute-sanitizer") != NULL, !on_cpu);
  }
}

/* --- launches --- */

__global__ void set(int *out, size_t value) { *out = static_cast<int>(value); }
template <class T, int N> __global__ void store(T *out, const T *in, T factor, long long more) {
  for (int i = 0; i < N; i++) out[i] = in[i] * factor + static_cast<T>(more);
}
__device__ int touched;
__global__ void touch() { touched = 77; }

TEST(launch_converts_arguments_to_the_kernels_own_types) {
  device_array<int> out(1);
  const short seven = 7;
  GK_LAUNCH(set, 1, 1, 0, 0, out.p, 5); /* an int where a size_t is wanted: 4 bytes where 8 are read */
  EXPECT_EQ(out.get()[0], 5);
  EXPECT_OK(gk_launch(set, dim3(1), dim3(1), 0, 0, out.p, seven));
  EXPECT_EQ(out.get()[0], 7);
  device_array<double> f(8);
  GK_LAUNCH((store<double, 4>), 1, 1, 0, 0, f.p, f.p, 2, -200); /* commas; double* for const double*; ints */
  GK_LAUNCH((store<double, 4>), 1, 1, 0, 0, f.p + 4, f.p, 0.5f, 'A');
  EXPECT_EQ(f.get()[3], -200.0);
  EXPECT_EQ(f.get()[7], -35.0);
  GK_LAUNCH(touch, 1, 1, 0, 0);
  EXPECT_OK(gk_launch(touch, 1, 1, 0, cudaStreamPerThread));
  EXPECT_OK(cudaDeviceSynchronize());
  int host = 0;
  EXPECT_OK(cudaMemcpyFromSymbol(&host, touched, sizeof(host)));
  EXPECT_EQ(host, 77);
}

TEST(launch_evaluates_its_arguments_once_and_is_one_statement) {
  device_array<int> out(2);
  unsigned grids = 0, values = 0;
  if (grids == 0)
    GK_LAUNCH(set, ++grids, 1, 0, 0, out.p, ++values);
  else
    values = 99;
  EXPECT_EQ(grids * 10 + values, 11u);
}

__global__ void wide(int *) {}

TEST(provoke_launch_failures_name_kernel_and_sizes) {
  const dim3 one(1);
  device_array<int> out(4);
  gk_device_info d;
  EXPECT_OK(gk_device_query(-1, &d));
  const std::string limit = "has " + std::to_string(d.shared_per_block_optin);
  const struct {
    dim3 grid, block;
    size_t smem;
    std::vector<std::string> parts;
  } bad[] = {{dim3(3), dim3(64, 32), 16, {"grid 3 x 1 x 1", "block 64 x 32 x 1", "2048 threads", "1024", "16 bytes"}},
             {one, dim3(1025), 0, {"1025 threads"}},
             {one, dim3(65536, 65536), 0, {"4294967296 threads"}}, /* 0 in 32 bits */
             {one, dim3(1, 1, 65), 0, {"block 1 x 1 x 65"}},
             {one, dim3(32, 0), 0, {"block is empty"}},
             {dim3(1, 65536), one, 0, {"grid 1 x 65536 x 1", "65535"}},
             {dim3(1, 1, 70000), one, 0, {"grid 1 x 1 x 70000", "65535"}},
             {dim3(0x80000000u), one, 0, {"2147483647"}},
             {one, one, 300000, {"300000 bytes of dynamic shared memory", limit}},
             {one, one, size_t{5} << 30, {"5368709120 bytes of dynamic shared memory", limit}}};
  for (auto &b : bad) {
    remembering r;
    const int line = __LINE__ + 1;
    const cudaError_t code = GK_LAUNCH(wide, b.grid, b.block, b.smem, 0, out.p);
    EXPECT(code != cudaSuccess);
    EXPECT_EQ(r.calls, 1);
    EXPECT_EQ(r.code, static_cast<int>(code));
    EXPECT_EQ(r.line, line);
    EXPECT_EQ(r.detail.substr(0, 6), std::string("wide: "));
    EXPECT_HAS(r.expr.c_str(), "wide, b.grid, b.block, b.smem, 0, out.p");
    for (auto &part : b.parts) EXPECT_HAS(r.detail.c_str(), part.c_str());
    EXPECT(!r.hint.empty()); /* what to try */
    EXPECT_EQ(gk_launch(wide, b.grid, b.block, b.smem, 0, out.p), code);
    EXPECT_EQ(std::string(gk_error_detail(), 11), std::string("gk_launch: "));
    EXPECT_HAS(gk_error_detail(), b.parts[0].c_str());
    EXPECT_EQ(r.calls, 1);                /* gk_launch returns only */
    GK_LAUNCH(set, 1, 1, 0, 0, out.p, 1); /* a failure is over with its call */
    EXPECT_EQ(r.calls, 1);
  }
  remembering r;
  GK_LAUNCH((store<double, 4>), 1, 2000, 0, 0, nullptr, nullptr, 1, 1);
  EXPECT_HAS(r.detail.c_str(), "(store<double, 4>): grid 1 x 1 x 1, block 2000 x 1 x 1");
  cudaGetLastError();
}

#ifndef CUDA_ON_CPU
__global__ void __launch_bounds__(64) bounded(int *out) { out[threadIdx.x] = 1; }
TEST(provoke_launch_beyond_the_kernels_own_bounds) {
  remembering r;
  device_array<int> out(128);
  GK_LAUNCH(bounded, 1, 128, 0, 0, out.p);
  EXPECT_EQ(r.calls, 1);
  EXPECT_HAS(r.detail.c_str(), "bounded: ");
  EXPECT_HAS(r.detail.c_str(), "can have 64");
  cudaGetLastError();
}
#endif

/* --- shared memory beyond what CUDA gives without being asked --- */

static size_t shared_memory_limit() {
  gk_device_info d;
  EXPECT_OK(gk_device_query(-1, &d));
  return d.shared_per_block_optin;
}

__global__ void fill(unsigned *sum, unsigned words) {
  GK_DYNAMIC_SHARED(unsigned, s);
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) s[i] = i;
  __syncthreads();
  unsigned total = 0;
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) total += s[words - 1 - i];
  atomicAdd(sum, total);
}
__global__ void fill_beside_static(unsigned *sum, unsigned words) {
  __shared__ unsigned fixed[2048];
  GK_DYNAMIC_SHARED(unsigned, s);
  for (unsigned i = 0; i < words; i++) s[i] = fixed[i % 2048] = i;
  for (unsigned i = 0; i < words; i++) *sum += s[i] + fixed[i % 2048];
}
static unsigned sum_below(unsigned n) { return static_cast<unsigned>(size_t{n} * (n - 1) / 2); }

TEST(launch_asks_for_dynamic_shared_memory_by_itself) {
  const size_t limit = shared_memory_limit();
  for (size_t bytes : {size_t{1024}, size_t{48} << 10, size_t{49} << 10, size_t{100} << 10, limit, size_t{64} << 10}) {
    if (bytes > limit) continue;
    device_array<unsigned> sum(1);
    const unsigned words = static_cast<unsigned>(bytes / 4);
    EXPECT_OK(gk_launch(fill, 1, 128, bytes, 0, sum.p, words));
    EXPECT_EQ(sum.get()[0], sum_below(words));
  }
}
/* CUDA counts static and dynamic bytes together. */
TEST(launch_asks_for_dynamic_shared_memory_beside_static) {
  if (shared_memory_limit() < 56 << 10) SKIP("this device has no more than 48 KiB");
  for (unsigned words : {4u * 2048, 5u * 2048, 6u * 2048}) {
    device_array<unsigned> sum(1);
    EXPECT_OK(gk_launch(fill_beside_static, 1, 1, words * 4, 0, sum.p, words));
    EXPECT_EQ(sum.get()[0], sum_below(words) + words / 2048 * (sum_below(words) - sum_below(words - 2048)));
  }
  device_array<unsigned> sum(1);
  const size_t too_much = shared_memory_limit() - 8192 + 4;
  EXPECT_EQ(gk_launch(fill_beside_static, 1, 1, too_much, 0, sum.p, 1), cudaErrorInvalidValue);
  EXPECT_HAS(gk_error_detail(), " beside 8192 static ones");
}
/* A launch with less must not take away what the user, or a launch of another thread, has asked for. */
TEST(launch_leaves_a_larger_limit_alone) {
  const size_t limit = shared_memory_limit();
  if (limit < 56 << 10) SKIP("this device has no more than 48 KiB");
  device_array<unsigned> sum(1);
  cudaFuncAttributes attributes;
  EXPECT_OK(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(limit)));
  EXPECT_OK(gk_launch(fill, 1, 32, 52 << 10, 0, sum.p, 1));
  EXPECT_OK(cudaFuncGetAttributes(&attributes, fill));
  EXPECT_EQ(static_cast<size_t>(attributes.maxDynamicSharedSizeBytes), limit);
}
/* Of a kernel that no other test launches, since only its first launch asks for so much. */
template <int> __global__ void fill_once(unsigned *sum, unsigned words) {
  GK_DYNAMIC_SHARED(unsigned, s);
  for (unsigned i = 0; i < words; i++) *sum += s[i] = i;
}
TEST(launch_with_much_shared_memory_leaves_an_error_from_elsewhere) {
  if (shared_memory_limit() < 56 << 10) SKIP("this device has no more than 48 KiB");
#if CUDART_VERSION < 13000
  SKIP("before CUDA 13 there is no way around cudaFuncSetAttribute, which clears the error");
#endif
  device_array<unsigned> sum(1);
  const unsigned words = 13 << 10;
  EXPECT(cudaSetDevice(12345) != cudaSuccess);
  EXPECT_OK(gk_launch(fill_once<0>, 1, 1, words * 4, 0, sum.p, words));
  EXPECT_EQ((int)cudaPeekAtLastError(), (int)cudaErrorInvalidDevice);
  EXPECT_OK(gk_launch(fill_once<0>, 1, 1, words * 4, 0, sum.p, words));
  EXPECT_EQ((int)cudaGetLastError(), (int)cudaErrorInvalidDevice);
  EXPECT_EQ(sum.get()[0], 2 * sum_below(words));
}
TEST(launches_of_one_kernel_from_several_threads) {
  const size_t limit = shared_memory_limit();
  if (limit < 56 << 10) SKIP("this device has no more than 48 KiB");
  int failures[4] = {0, 0, 0, 0};
  device_array<unsigned> sum(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      const size_t bytes = t % 2 ? limit : 52 << 10;
      for (int i = 0; i < 300; i++)
        failures[t] += gk_launch(fill, 1, 1, bytes, cudaStreamPerThread, sum.p, 1) != cudaSuccess;
    });
  for (std::thread &t : threads) t.join();
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(failures[0] + failures[1] + failures[2] + failures[3], 0);
}

/* --- errors of others --- */

TEST(provoke_a_stale_error_concerns_nobody_but_check_launch) {
  remembering r;
  device_array<int> out(1);
  gk_device_info info;
  gk_timer timer = gk_timer();
  gk_scratch scratch = gk_scratch();
  gk_occupancy_info occupancy;
  float ms;
  int ready, block, best;
  size_t buffers;
  EXPECT_EQ(cudaSetDevice(-99), cudaErrorInvalidDevice);
  EXPECT_EQ(GK_LAUNCH(set, 1, 1, 0, 0, out.p, 3), cudaSuccess);
  EXPECT_OK(gk_launch(set, 0, 1, 0, 0, out.p, 4));
  EXPECT_OK(gk_device_query(-1, &info));
  EXPECT_OK(gk_device_best(&best));
  EXPECT_OK(gk_occupancy(set, 64, 0, &occupancy));
  EXPECT_OK(gk_block_for(set, 0, &block));
  EXPECT_OK(gk_bench_buffers(1 << 20, &buffers));
  EXPECT_OK(gk_timer_create(&timer));
  EXPECT_OK(gk_timer_start(&timer, 0));
  EXPECT_OK(gk_timer_stop(&timer));
  EXPECT_OK(gk_timer_ms(&timer, &ms));
  EXPECT_OK(gk_timer_ready(&timer, &ready));
  EXPECT_OK(gk_timer_destroy(&timer));
  EXPECT_OK(gk_scratch_create(&scratch, 1, 0));
  EXPECT_OK(gk_scratch_destroy(&scratch));
  EXPECT_EQ(out.get()[0], 3);
  EXPECT_EQ(r.calls, 0);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice); /* nor has anybody cleared it */
  const int line = __LINE__ + 1;
  EXPECT_EQ(GK_CHECK_LAUNCH(), cudaErrorInvalidDevice);
  EXPECT_EQ(r.calls, 1);
  EXPECT_EQ(r.code, static_cast<int>(cudaErrorInvalidDevice));
  EXPECT_EQ(r.line, line);
  EXPECT_HAS(r.detail.c_str(), "earlier"); /* that it may be older than the launch */
  EXPECT_OK(cudaPeekAtLastError());
  EXPECT_EQ(GK_CHECK_LAUNCH(cudaStreamPerThread), cudaSuccess);
  EXPECT_EQ(r.calls, 1);
}

/* What GK_CHECK has reported is not found again, as an error of a launch that is fine. */
TEST(provoke_failures_do_not_stay_as_cudas_last_error) {
  remembering r;
  device_array<int> out(1);
  GK_LAUNCH(set, 1, 2048, 0, 0, out.p, 3);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT(gk_launch(static_cast<void (*)(int *, int)>(NULL), 1, 1, 0, 0, out.p, 3) != cudaSuccess);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  gk_array<char> too_large(size_t(1) << 60);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(gk_device_query(99, NULL), cudaErrorInvalidValue);
  gk_device_info info;
  EXPECT_EQ(gk_device_query(99, &info), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(r.calls, 2);
  EXPECT_EQ(GK_CHECK_LAUNCH(), cudaSuccess);
}

/* --- faults --- */

/* A fault in both worlds. */
__global__ void fault_here(int *where) {
#ifdef CUDA_ON_CPU
  (void)where;
  __trap();
#else
  *where = 1;
#endif
}
static int *nowhere() { return reinterpret_cast<int *>(16); }

TEST(provoke_debug_mode_names_the_kernel_at_fault) {
  if (in_child("provoke_debug_mode_names_the_kernel_at_fault")) {
    device_array<int> out(1);
    GK_LAUNCH(set, 1, 1, 0, 0, out.p, 1);
    GK_LAUNCH(fault_here, 1, 1, 0, 0, nowhere());
    GK_LAUNCH(set, 1, 1, 0, 0, out.p, 2);
    return;
  }
  const child c = run_child("provoke_debug_mode_names_the_kernel_at_fault", "GPUKIT_DEBUG=1");
  const char *out = c.output.c_str();
  EXPECT_EQ(c.signal, SIGABRT);
  EXPECT_HAS(out, ": GK_LAUNCH(fault_here, 1, 1, 0, 0, nowhere()): cudaError");
  EXPECT_HAS(out, "  detail: fault_here: grid 1 x 1 x 1, block 1 x 1 x 1");
  EXPECT_HAS(out, "GPUKIT_DEBUG=1 waited for this kernel, and it failed");
  EXPECT_EQ(strstr(out, "compute-sanitizer") != NULL, !on_cpu);
  EXPECT(!strstr(out, "rerun with GPUKIT_DEBUG=1"));
}

/* Of these CUDA's reference says that all work from then on returns the same error; and of what ECC cannot correct it is
 * known. */
TEST(errors_that_lose_the_context_are_told_from_others) {
  const int lose_it[] = {cudaErrorECCUncorrectable,
                         226, /* cudaErrorContained */
                         cudaErrorIllegalAddress,
                         cudaErrorLaunchTimeout,
                         cudaErrorAssert,
                         cudaErrorHardwareStackError,
                         cudaErrorIllegalInstruction,
                         cudaErrorMisalignedAddress,
                         cudaErrorInvalidAddressSpace,
                         cudaErrorInvalidPc,
                         cudaErrorLaunchFailure,
                         721 /* cudaErrorTensorMemoryLeak */,
                         810 /* cudaErrorMpsClientTerminated */,
                         911 /* cudaErrorExternalDevice */};
  for (int code = 1; code < 1000; code++) {
    bool expected = false;
    for (int one : lose_it) expected = expected || one == code;
    EXPECT_EQ(static_cast<int>(hook_failed(static_cast<cudaError_t>(code), "gk_test")), code);
    if ((strstr(gk_error_detail(), "gk_test: this error is from work before this call") != NULL) == expected) continue;
    test_fail(__FILE__, __LINE__, std::to_string(code));
  }
}

/* The launch itself succeeds; the later call that finds the error did not cause it. */
TEST(provoke_sticky_errors_are_said_to_be_older) {
  if (in_child("provoke_sticky_errors_are_said_to_be_older")) {
    EXPECT_OK(gk_launch(fault_here, 1, 1, 0, 0, nowhere()));
    const cudaError_t lost = cudaDeviceSynchronize();
    EXPECT(lost != cudaSuccess);
    EXPECT_EQ(strstr(gk_error_hint(lost), "GPUKIT_DEBUG=1") != NULL, !on_cpu);
    gk_device_info info;
    gk_timer timer = gk_timer();
    gk_scratch scratch = gk_scratch();
#define EXPECT_LOST(call, name)                                                                                        \
  do {                                                                                                                 \
    EXPECT_EQ(call, lost);                                                                                             \
    EXPECT_HAS(gk_error_detail(), name);                                                                               \
    EXPECT_HAS(gk_error_detail(), "from work before this call");                                                       \
  } while (0)
    EXPECT_LOST(gk_launch(touch, 1, 1, 0, 0), "grid 1 x 1 x 1");
    EXPECT_LOST(gk_launch(touch, 1, 1, 100 << 10, 0), "");
    EXPECT_LOST(gk_scratch_create(&scratch, 1, 0), "gk_scratch_create");
    EXPECT_LOST(gk_timer_create(&timer), "gk_timer_create");
    EXPECT_LOST(gk_device_query(-1, &info), "gk_device_query");
    remembering r;
    GK_LAUNCH(touch, 1, 1, 0, 0);
    EXPECT_EQ(r.code, static_cast<int>(lost));
    EXPECT_HAS(r.detail.c_str(), "touch: grid 1 x 1 x 1");
    EXPECT_HAS(r.detail.c_str(), "from work before this call");
    EXPECT_EQ(GK_CHECK_LAUNCH(), lost);
    return;
  }
  EXPECT_PASSED(run_child("provoke_sticky_errors_are_said_to_be_older", "GPUKIT_DEBUG=0"));
}

/* GK_CHECK_LAUNCH after a launch by the CUDA runtime. */
TEST(provoke_debug_mode_waits_at_check_launch) {
  if (in_child("provoke_debug_mode_waits_at_check_launch")) {
    remembering r;
    cudaLaunchConfig_t config = cudaLaunchConfig_t();
    config.gridDim = config.blockDim = dim3(1);
    EXPECT_OK(cudaLaunchKernelEx(&config, touch));
    EXPECT_EQ(GK_CHECK_LAUNCH(), cudaSuccess);
    EXPECT_OK(cudaLaunchKernelEx(&config, fault_here, nowhere()));
    EXPECT(GK_CHECK_LAUNCH() != cudaSuccess);
    EXPECT_EQ(r.calls, 1);
    return;
  }
  EXPECT_PASSED(run_child("provoke_debug_mode_waits_at_check_launch", "GPUKIT_DEBUG=1"));
}

TEST(debug_mode_does_not_wait_for_captures) {
  if (in_child("debug_mode_does_not_wait_for_captures")) {
    device_array<int> out(1);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    GK_LAUNCH(set, 1, 1, 0, stream, out.p, 42);
    EXPECT_EQ(GK_CHECK_LAUNCH(stream), cudaSuccess);
    EXPECT_OK(cudaStreamEndCapture(stream, &graph));
    EXPECT_EQ(out.get()[0], 0);
    EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(out.get()[0], 42);
    EXPECT_OK(cudaGraphExecDestroy(exec));
    EXPECT_OK(cudaGraphDestroy(graph));
    EXPECT_OK(cudaStreamDestroy(stream));
    return;
  }
  EXPECT_PASSED(run_child("debug_mode_does_not_wait_for_captures", "GPUKIT_DEBUG=1"));
}

/* Whether the legacy stream is captured cannot be asked while a blocking stream is: the question is an error. */
TEST(provoke_debug_mode_beside_a_capture_leaves_no_error) {
  const char *const name = "provoke_debug_mode_beside_a_capture_leaves_no_error";
  if (in_child(name)) {
    remembering r;
    cudaStream_t stream;
    cudaGraph_t graph;
    EXPECT_OK(cudaStreamCreate(&stream));
    EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 2; i++) EXPECT_EQ(GK_CHECK_LAUNCH(), cudaSuccess);
    EXPECT_EQ(r.calls, 0);
    EXPECT_OK(cudaPeekAtLastError());
    EXPECT_OK(cudaStreamEndCapture(stream, &graph));
    EXPECT_OK(cudaGraphDestroy(graph));
    EXPECT_OK(cudaStreamDestroy(stream));
    return;
  }
  EXPECT_PASSED(run_child(name, "GPUKIT_DEBUG=1"));
}

TEST(provoke_no_device) {
  if (in_child("provoke_no_device")) {
    gk_device_info info;
    int device = 5;
    const cudaError_t code = gk_device_query(-1, &info);
    EXPECT_EQ(code, cudaErrorNoDevice);
    EXPECT_HAS(gk_error_detail(), "gk_device_query");
    EXPECT_EQ(gk_device_best(&device), cudaErrorNoDevice);
    EXPECT_EQ(device, 5);
    remembering r;
    GK_LAUNCH(touch, 1, 1, 0, 0);
    EXPECT_EQ(r.code, static_cast<int>(cudaErrorNoDevice));
    EXPECT_HAS(r.hint.c_str(), "CUDA_VISIBLE_DEVICES");
    return;
  }
#ifdef CUDA_ON_CPU
  SKIP("the stand-in always has a device");
#else
  EXPECT_PASSED(run_child("provoke_no_device", "CUDA_VISIBLE_DEVICES="));
#endif
}
