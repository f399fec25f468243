/* Injected failures on the stand-in: GPUKIT_CPU_FAIL, cuda_cpu_fail and cuda_cpu_calls. */
#include "test.h"

#include <cuda_runtime.h>

#ifndef CUDA_ON_CPU
TEST(faults_of_the_stand_in) { SKIP("about the stand-in alone"); }
#else

#include <signal.h>
#include "standin.h"

typedef unsigned long long u64;

struct fail_for_this_test {
  explicit fail_for_this_test(const char *specification) { cuda_cpu_fail(specification); }
  ~fail_for_this_test() {
    cuda_cpu_fail(nullptr);
    cudaGetLastError();
  }
};

__global__ void add_one(int *p) { atomicAdd(p, 1); }
static void CUDART_CB nothing_on_the_host(void *) {}
static void CUDART_CB nothing_after(cudaStream_t, cudaError_t, void *) {}

TEST(the_third_allocation_fails) {
  fail_for_this_test f("alloc:3");
  void *p[4] = {};
  EXPECT_OK(cudaMalloc(&p[0], 4));
  EXPECT_OK(cudaMallocManaged(&p[1], 4));
  EXPECT_EQ(cudaHostAlloc(&p[2], 4, 0), cudaErrorMemoryAllocation);
  EXPECT(p[2] == nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_OK(cudaMallocAsync(&p[3], 4, nullptr));
  EXPECT_EQ(cuda_cpu_calls("alloc"), u64{4});
  EXPECT_EQ(cuda_cpu_calls("cudaHostAlloc"), u64{1});
  for (void *q : {p[0], p[1], p[3]}) EXPECT_OK(cudaFree(q));
  EXPECT_EQ(cuda_cpu_calls("any"), u64{7});
}

TEST(several_calls_fail_with_chosen_errors) {
  device_array<int> a(1);
  int host = 0;
  cudaStream_t stream = nullptr;
  fail_for_this_test f("copy:2:cudaErrorNotPermitted,launch:1+:304,cudaStreamCreate:1,cudaFuncGetName:1");
  EXPECT_OK(cudaMemcpy(&host, a.p, 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(cudaMemset(a.p, 1, 4), cudaErrorNotPermitted);
  EXPECT_OK(cudaMemcpy(&host, a.p, 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(host, 0);
  for (int i = 0; i < 3; i++) EXPECT_EQ(launch(add_one, 1, 1, 0, a.p), cudaErrorOperatingSystem);
  EXPECT_EQ(cudaStreamCreate(&stream), cudaErrorMemoryAllocation);
  EXPECT(stream == nullptr);
  const char *name = nullptr;
  EXPECT_EQ(cudaFuncGetName(&name, add_one), cudaErrorUnknown);
  EXPECT_OK(cudaFuncGetName(&name, add_one));
  cuda_cpu_fail(nullptr);
  EXPECT_OK(launch(add_one, 1, 1, 0, a.p));
  EXPECT_EQ(a.get()[0], 1);
}

TEST(each_kind_has_an_error_that_fits) {
  cudaStream_t stream;
  cudaEvent_t event;
  cudaGraph_t graph;
  device_array<int> a(1);
  const struct {
    const char *spec;
    cudaError_t expected;
  } cases[] = {{"alloc:1", cudaErrorMemoryAllocation},       {"copy:1", cudaErrorInvalidValue},
               {"launch:1", cudaErrorLaunchOutOfResources},  {"event:1", cudaErrorMemoryAllocation},
               {"event:2", cudaErrorInvalidResourceHandle},  {"stream:1", cudaErrorMemoryAllocation},
               {"stream:2", cudaErrorInvalidResourceHandle}, {"graph:1", cudaErrorMemoryAllocation}};
  for (const auto &k : cases) {
    fail_for_this_test f(k.spec);
    cudaError_t first = cudaSuccess;
    auto note = [&](cudaError_t e) {
      if (!first) first = e;
      return e == cudaSuccess;
    };
    void *p = nullptr;
    if (note(cudaMalloc(&p, 4))) cudaFree(p);
    note(cudaMemset(a.p, 0, 4));
    note(launch(add_one, 1, 1, 0, a.p));
    if (note(cudaEventCreate(&event))) {
      note(cudaEventRecord(event));
      cudaEventDestroy(event);
    }
    if (note(cudaStreamCreate(&stream))) {
      note(cudaStreamSynchronize(stream));
      if (note(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)))
        if (note(cudaStreamEndCapture(stream, &graph))) cudaGraphDestroy(graph);
      cudaStreamDestroy(stream);
    }
    test_eq(first, k.expected, k.spec, "the error that fits", __FILE__, __LINE__);
  }
}

TEST(a_kernel_faults_after_its_launch) {
  int *p = nullptr;
  fail_for_this_test f("kernel:2:cudaErrorIllegalAddress");
  EXPECT_OK(cudaMallocManaged(&p, 4));
  *p = 0;
  EXPECT_OK(launch(add_one, 1, 1, 0, p));
  EXPECT_OK(launch(add_one, 1, 1, 0, p));
  EXPECT_EQ(*p, 1);
  EXPECT_EQ(cuda_cpu_calls("kernel"), u64{2});
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaFree(p), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_OK(cudaDeviceReset());
  EXPECT_OK(cudaDeviceSynchronize());
  cuda_cpu_fail("kernel:1");
  EXPECT_OK(launch(add_one, 1, 1, 0, nullptr));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_OK(cudaDeviceReset());
  cuda_cpu_fail("cudaDeviceSynchronize:1:cudaErrorAssert"); /* as if an earlier kernel had failed */
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorAssert);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorAssert);
  EXPECT_OK(cudaDeviceReset());
}

/* Every call of the API that is made of others, or has several forms. */
TEST(a_call_counts_once) {
  static int symbol;
  int value = 0, grid = 0, block = 0;
  size_t size = 0;
  float *f = nullptr;
  void *address = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr, second = nullptr;
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaFuncAttributes attributes;
  device_array<int> a(1);
  int *p = a.p;
  void *args[] = {&p};
  fail_for_this_test counting(nullptr);
  u64 expected = 0;
#define ONCE(kind, name, ...)                                                                                          \
  do {                                                                                                                 \
    const u64 before = cuda_cpu_calls(#name), of_kind = cuda_cpu_calls(kind);                                          \
    EXPECT_OK(__VA_ARGS__);                                                                                            \
    EXPECT_EQ(cuda_cpu_calls(#name), before + 1);                                                                      \
    EXPECT_EQ(cuda_cpu_calls(kind), of_kind + 1);                                                                      \
    EXPECT_EQ(cuda_cpu_calls("any"), ++expected);                                                                      \
  } while (0)
  ONCE("alloc", cudaMalloc, cudaMalloc(&f, 4));
  ONCE("any", cudaFree, cudaFree(f));
  ONCE("alloc", cudaMallocPitch, cudaMallocPitch(&f, &size, 4, 4));
  ONCE("any", cudaFree, cudaFree(f));
  ONCE("alloc", cudaMallocHost, cudaMallocHost(&f, 4));
  ONCE("any", cudaFreeHost, cudaFreeHost(f));
  ONCE("stream", cudaStreamCreate, cudaStreamCreate(&stream));
  ONCE("stream", cudaStreamDestroy, cudaStreamDestroy(stream));
  ONCE("stream", cudaStreamCreateWithFlags, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ONCE("alloc", cudaMallocAsync, cudaMallocAsync(&f, 4, stream));
  ONCE("any", cudaFreeAsync, cudaFreeAsync(f, stream));
  ONCE("event", cudaEventCreate, cudaEventCreate(&event));
  ONCE("event", cudaEventCreate, cudaEventCreate(&second, cudaEventDisableTiming));
  ONCE("event", cudaEventRecord, cudaEventRecord(event, stream));
  ONCE("stream", cudaStreamWaitEvent, cudaStreamWaitEvent(stream, event, 0));
  ONCE("stream", cudaLaunchHostFunc, cudaLaunchHostFunc(stream, nothing_on_the_host, nullptr));
  ONCE("stream", cudaStreamAddCallback, cudaStreamAddCallback(stream, nothing_after, nullptr, 0));
  ONCE("copy", cudaMemcpyToSymbol, cudaMemcpyToSymbol(symbol, &value, sizeof value));
  ONCE("copy", cudaMemcpyFromSymbol, cudaMemcpyFromSymbol(&value, symbol, sizeof value));
  ONCE("copy", cudaMemcpyToSymbol, cudaMemcpyToSymbol(static_cast<const void *>(&symbol), &value, sizeof value));
  ONCE("any", cudaGetSymbolAddress, cudaGetSymbolAddress(&address, symbol));
  ONCE("graph", cudaStreamIsCapturing, cudaStreamIsCapturing(stream, &status));
  ONCE("graph", cudaStreamBeginCapture, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  ONCE("launch", cudaLaunchKernelEx, launch_on(stream, add_one, 1, 1, 0, p));
  ONCE("graph", cudaStreamEndCapture, cudaStreamEndCapture(stream, &graph));
  ONCE("graph", cudaGraphInstantiate, cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(cuda_cpu_calls("kernel"), u64{0});
  ONCE("graph", cudaGraphLaunch, cudaGraphLaunch(exec, stream));
  EXPECT_EQ(cuda_cpu_calls("kernel"), u64{1});
  ONCE("launch", cudaLaunchKernel, cudaLaunchKernel(add_one, 1, 1, args, 0, nullptr));
  ONCE("any", cudaFuncGetAttributes, cudaFuncGetAttributes(&attributes, add_one));
  ONCE("any", cudaOccupancyMaxActiveBlocksPerMultiprocessor,
       cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, add_one, 32, 0));
  ONCE("any", cudaOccupancyMaxPotentialBlockSize, cudaOccupancyMaxPotentialBlockSize(&grid, &block, add_one));
#undef ONCE
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaEventDestroy(second));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* A program that stops at the first error, and gives back what it has. */
static cudaError_t program(int *result) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  int *a = nullptr, *b = nullptr;
  cudaError_t e = cudaStreamCreate(&stream);
  if (!e) e = cudaEventCreate(&event);
  if (!e) e = cudaMalloc(&a, 4);
  if (!e) e = cudaMallocAsync(&b, 4, stream);
  if (!e) e = cudaMemsetAsync(a, 0, 4, stream);
  if (!e) e = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  if (!e) {
    e = launch_on(stream, add_one, 1, 32, 0, a);
    if (!e) e = cudaMemcpyAsync(b, a, 4, cudaMemcpyDeviceToDevice, stream);
    const cudaError_t end = cudaStreamEndCapture(stream, &graph);
    if (!e) e = end;
  }
  if (!e) e = cudaGraphInstantiate(&exec, graph, 0);
  if (!e) e = cudaGraphLaunch(exec, stream);
  if (!e) e = cudaEventRecord(event, stream);
  if (!e) e = cudaEventSynchronize(event);
  if (!e) e = cudaMemcpy(result, b, 4, cudaMemcpyDeviceToHost);
  cuda_cpu_fail(nullptr);
  if (exec) cudaGraphExecDestroy(exec);
  if (graph) cudaGraphDestroy(graph);
  if (event) cudaEventDestroy(event);
  if (stream) cudaStreamDestroy(stream); /* ends a capture whose end has failed */
  cudaFree(b);
  cudaFree(a);
  return e;
}

TEST(every_call_of_a_program_can_fail_in_turn) {
  size_t before = 0, after = 0, total = 0;
  int k = 1, result = 0;
  EXPECT_OK(cudaMemGetInfo(&before, &total));
  for (;; k++) {
    cuda_cpu_fail(("any:" + std::to_string(k) + ":cudaErrorNotPermitted").c_str());
    result = 0;
    const cudaError_t e = program(&result);
    EXPECT_OK(cudaMemGetInfo(&after, &total));
    EXPECT_EQ(after, before);
    if (!e) break;
    EXPECT_EQ(e, cudaErrorNotPermitted);
    EXPECT_EQ(result, 0);
    if (k > 100) break;
  }
  EXPECT_EQ(k, 15); /* it makes 14 calls */
  EXPECT_EQ(result, 32);
  cudaGetLastError();
}

TEST(the_environment_lets_calls_fail) {
  const char *const name = "the_environment_lets_calls_fail";
  if (in_child(name)) {
    void *p[3] = {};
    for (void *&q : p) printf("%s\n", cudaGetErrorName(cudaMalloc(&q, 4)));
    for (void *q : p) cudaFree(q);
    return;
  }
  EXPECT_HAS(run_child(name, "GPUKIT_CPU_FAIL=alloc:2").output.c_str(),
             "cudaSuccess\ncudaErrorMemoryAllocation\ncudaSuccess\n");
  EXPECT_HAS(run_child(name, "GPUKIT_CPU_FAIL=cudaMalloc:2+:999").output.c_str(),
             "cudaSuccess\ncudaErrorUnknown\ncudaErrorUnknown\n");
  const char *const bad[][2] = {{"alloc", "has no :K"},
                                {"alloc:", "has no number"},
                                {"alloc:0", "count from 1"},
                                {"alloc:x", "has no number"},
                                {"alloc:3x", "has a bad number"},
                                {"alloc:3:cudaErrorNoSuchThing", "has an error that CUDA has not"},
                                {"alloc:3:0", "has an error that CUDA has not"},
                                {"copy:1,cudaMaloc:3", "'cudaMaloc:3' names neither"},
                                {"alocate:1", "names neither a kind of call nor a call of this program"},
                                {"cudaGetLastError:1", "names a call that cannot fail"},
                                {"alloc:1,", "'' has no :K"}};
  for (const auto &b : bad) {
    const child c = run_child(name, (std::string("GPUKIT_CPU_FAIL=") + b[0]).c_str());
    EXPECT_EQ(c.signal, SIGABRT);
    EXPECT_HAS(c.output.c_str(), (std::string("CUDA stand-in: GPUKIT_CPU_FAIL=") + b[0]).c_str());
    EXPECT_HAS(c.output.c_str(), b[1]);
  }
}

#endif
