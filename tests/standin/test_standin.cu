/* The stand-in for the CUDA runtime in tests/cpu, without gpukit. What is about CUDA itself runs on a GPU too, where the
 * same expectations and recorded values have to hold; what is about the stand-in alone is at the end. */
#include "device_array.h"
#include "fault.h"
#include "standin.h"
#include "test.h"

#include <thread>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <vector>

typedef unsigned long long u64;

__host__ __device__ inline u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* A fingerprint of f(0), ..., f(n - 1): the same for every order of threads. */
template <class F> __global__ void take_fingerprint(F f, u64 n, u64 *out) {
  u64 sum = 0, step = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) sum += mix(f(i) ^ mix(i));
  atomicAdd(out, sum);
}
template <class F> static u64 fingerprint(F f, u64 n) {
  device_array<u64> out(1);
  EXPECT_OK(launch(take_fingerprint<F>, 64, 256, 0, f, n, out.p));
  return out.get()[0];
}
static void expect_fingerprint(u64 got, u64 recorded, const char *what, int line) {
  char text[100];
  snprintf(text, sizeof text, "fingerprint of %s: 0x%016llx, recorded 0x%016llx", what, got, recorded);
  if (got != recorded) test_fail(__FILE__, line, text);
}
#define EXPECT_FINGERPRINT(f, n, recorded) expect_fingerprint(fingerprint(f(), n), recorded, #f, __LINE__)

/* --- errors --- */

TEST(errors_have_names_and_texts) {
  EXPECT_EQ(std::string(cudaGetErrorName(cudaSuccess)), "cudaSuccess");
  EXPECT_EQ(std::string(cudaGetErrorString(cudaSuccess)), "no error");
  EXPECT_EQ(std::string(cudaGetErrorName(cudaErrorInvalidConfiguration)), "cudaErrorInvalidConfiguration");
  EXPECT_EQ(std::string(cudaGetErrorString(cudaErrorInvalidConfiguration)), "invalid configuration argument");
  EXPECT_EQ(std::string(cudaGetErrorString(cudaErrorLaunchFailure)), "unspecified launch failure");
  EXPECT_EQ(std::string(cudaGetErrorName(static_cast<cudaError_t>(10))), "unrecognized error code");
  EXPECT_EQ(static_cast<int>(cudaErrorNotReady), 600);
}

TEST(a_plain_error_is_kept_until_it_is_asked_for) {
  cudaGetLastError();
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

__global__ void nothing() {}

/* Which of the two depends on the driver. */
static bool refused(cudaError_t code) { return code == cudaErrorInvalidValue || code == cudaErrorInvalidConfiguration; }

TEST(a_launch_checks_its_shape) {
  EXPECT_EQ(launch(nothing, 1, 1024, 0), cudaSuccess);
  EXPECT_EQ(launch(nothing, 1, dim3(1, 16, 64), 0), cudaSuccess);
  EXPECT_EQ(launch(nothing, dim3(1, 65535, 2), 1, 0), cudaSuccess);
  EXPECT(refused(launch(nothing, 0, 1, 0)));
  EXPECT(refused(launch(nothing, 1, 0, 0)));
  EXPECT(refused(launch(nothing, 1, 1025, 0)));
  EXPECT(refused(launch(nothing, 1, dim3(33, 32), 0)));
  EXPECT(refused(launch(nothing, 1, dim3(1, 1, 65), 0)));
  EXPECT(refused(launch(nothing, dim3(1, 65536), 1, 0)));
  EXPECT(refused(launch(nothing, dim3(1, 1, 65536), 1, 0)));
  EXPECT_EQ(launch(nothing, 1, 1, 49153), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

/* --- memory --- */

TEST(allocations_that_cannot_be) {
  size_t free_bytes, total;
  void *p = nullptr;
  EXPECT_OK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT(free_bytes <= total);
  EXPECT_EQ(cudaMalloc(&p, total + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(static_cast<void **>(nullptr), 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(memory_is_freed_once) {
  int *p = nullptr, local = 0;
  EXPECT_OK(cudaMalloc(&p, 1000));
  EXPECT_EQ(cudaFree(p + 1), cudaErrorInvalidValue);
  EXPECT_OK(cudaFree(p));
  EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(&local), cudaErrorInvalidValue);
  EXPECT_OK(cudaFree(nullptr));
  EXPECT_OK(cudaFreeHost(nullptr));
  cudaGetLastError();
}

TEST(pointers_know_their_memory) {
  char *device, *managed, *pinned, *mapped = nullptr, plain[4] = "";
  cudaPointerAttributes a;
  EXPECT_OK(cudaMalloc(&device, 100));
  EXPECT_OK(cudaMallocManaged(&managed, 100));
  EXPECT_OK(cudaMallocHost(&pinned, 100));
  EXPECT_OK(cudaPointerGetAttributes(&a, device + 99));
  EXPECT_EQ(static_cast<int>(a.type), static_cast<int>(cudaMemoryTypeDevice));
  EXPECT(a.devicePointer == device + 99);
  EXPECT_OK(cudaPointerGetAttributes(&a, managed));
  EXPECT_EQ(static_cast<int>(a.type), static_cast<int>(cudaMemoryTypeManaged));
  EXPECT_OK(cudaPointerGetAttributes(&a, pinned));
  EXPECT_EQ(static_cast<int>(a.type), static_cast<int>(cudaMemoryTypeHost));
  EXPECT_OK(cudaPointerGetAttributes(&a, plain));
  EXPECT_EQ(static_cast<int>(a.type), static_cast<int>(cudaMemoryTypeUnregistered));
  EXPECT_OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
  EXPECT(mapped == pinned);
  EXPECT_OK(cudaFree(device));
  EXPECT_OK(cudaFree(managed));
  EXPECT_OK(cudaFreeHost(pinned));
}

TEST(copies_check_their_arguments) {
  device_array<int> a(4);
  int host[4] = {1, 2, 3, 4}, back[4] = {};
  EXPECT_OK(cudaMemcpy(a.p, host, sizeof host, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy(back, a.p, sizeof back, cudaMemcpyDefault));
  EXPECT_EQ(back[3], 4);
  EXPECT_OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaMemcpy(a.p, host, 4, static_cast<cudaMemcpyKind>(7)), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
#ifdef CUDA_ON_CPU /* a GPU that reaches all of the host's memory may let these pass */
  EXPECT_EQ(cudaMemcpy(host, back, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(back, host, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, a.p, 4, cudaMemcpyHostToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(a.p + 2, host, sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host, 0, 4), cudaErrorInvalidValue);
#endif
  cudaGetLastError();
}

TEST(copies_and_fills_in_two_dimensions) {
  char *p, back[2][3];
  size_t pitch = 0;
  EXPECT_OK(cudaMallocPitch(&p, &pitch, 5, 2));
  EXPECT(pitch >= 5);
  EXPECT_OK(cudaMemset2D(p, pitch, 7, 5, 2));
  EXPECT_OK(cudaMemset2D(p + 1, pitch, 9, 1, 2));
  EXPECT_OK(cudaMemcpy2D(back, 3, p, pitch, 3, 2, cudaMemcpyDeviceToHost));
  for (int y = 0; y < 2; y++)
    for (int x = 0; x < 3; x++) EXPECT_EQ(static_cast<int>(back[y][x]), x == 1 ? 9 : 7);
  EXPECT_EQ(cudaMemcpy2D(back, 2, p, pitch, 3, 2, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
  cudaGetLastError();
  EXPECT_OK(cudaFree(p));
}

TEST(stream_ordered_memory) {
  cudaMemPool_t pool = nullptr;
  u64 keep = ~u64{0}, kept = 0;
  int *p = nullptr, back = 0;
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  EXPECT_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  EXPECT_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
  EXPECT_EQ(kept, keep);
  EXPECT_OK(cudaMallocAsync(&p, sizeof *p, stream));
  EXPECT_OK(cudaMemsetAsync(p, 1, sizeof *p, stream));
  EXPECT_OK(cudaMemcpyAsync(&back, p, sizeof *p, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaFreeAsync(p, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(back, 0x01010101);
  EXPECT_OK(cudaMemPoolTrimTo(pool, 0));
  EXPECT_OK(cudaStreamDestroy(stream));
}

__constant__ int constants[4] = {1, 2, 3, 4};
__device__ int counter = 5;
__device__ volatile int flag_of_all;
__global__ void use_symbols() { counter += constants[1] * 10 + constants[3]; }

TEST(variables_of_the_device) {
  int two[2] = {7, 8}, back[4] = {}, count = 0;
  EXPECT_OK(cudaMemcpyToSymbol(constants, two, sizeof two, sizeof(int)));
  EXPECT_OK(launch(use_symbols, 1, 1, 0));
  EXPECT_OK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  EXPECT_EQ(count, 5 + 70 + 4);
  EXPECT_OK(cudaMemcpyFromSymbol(back, constants, sizeof back));
  EXPECT_EQ(back[0] * 1000 + back[1] * 100 + back[2] * 10 + back[3], 1784);
  EXPECT_OK(cudaMemcpyToSymbol(flag_of_all, two, sizeof(int)));
  EXPECT_OK(cudaMemcpyFromSymbol(back, flag_of_all, sizeof(int)));
  EXPECT_EQ(back[0], 7);
  EXPECT(cudaMemcpyToSymbol(constants, two, sizeof two, 3 * sizeof(int)) != cudaSuccess);
  cudaGetLastError();
  void *p = nullptr;
  EXPECT_OK(cudaGetSymbolAddress(&p, counter));
  EXPECT_OK(cudaMemset(p, 0, sizeof count));
  EXPECT_OK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  EXPECT_EQ(count, 0);
}

/* --- streams, events, graphs --- */

TEST(events_tell_time_only_when_recorded) {
  cudaEvent_t a, b, untimed;
  float ms = -1;
  EXPECT_OK(cudaEventCreate(&a));
  EXPECT_OK(cudaEventCreate(&b));
  EXPECT_OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  EXPECT_OK(cudaEventQuery(a));
  EXPECT_OK(cudaEventSynchronize(a));
  EXPECT_EQ(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
  EXPECT_OK(cudaEventRecord(a, nullptr));
  EXPECT_OK(launch(nothing, 1000, 256, 0));
  EXPECT_OK(cudaEventRecord(b, nullptr));
  EXPECT_OK(cudaEventRecord(untimed, nullptr));
  EXPECT_OK(cudaEventSynchronize(b));
  EXPECT_OK(cudaEventElapsedTime(&ms, a, b));
  EXPECT(ms > 0 && ms < 10000);
  EXPECT_EQ(cudaEventElapsedTime(&ms, a, untimed), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  EXPECT_OK(cudaEventDestroy(a));
  EXPECT_OK(cudaEventDestroy(b));
  EXPECT_OK(cudaEventDestroy(untimed));
}

__global__ void add_to(int *p, int value) { *p += value; }
static void CUDART_CB count_call(void *p) { ++*static_cast<int *>(p); }

TEST(streams_do_their_work_in_order) {
  cudaStream_t stream;
  device_array<int> a(1);
  int back = 0, calls = 0;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(launch_on(stream, add_to, 1, 1, 0, a.p, 3));
  EXPECT_OK(cudaLaunchHostFunc(stream, count_call, &calls));
  EXPECT_OK(cudaMemcpyAsync(&back, a.p, sizeof back, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaStreamQuery(stream));
  EXPECT_EQ(back, 3);
  EXPECT_EQ(calls, 1);
  EXPECT_OK(cudaStreamDestroy(stream));
}

TEST(a_captured_graph_runs_as_often_as_it_is_launched) {
  cudaStream_t stream, other;
  cudaEvent_t fork, join;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamCaptureStatus status;
  device_array<int> a(2);
  int *scratch = nullptr;
  size_t nodes = 0;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  EXPECT_OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  EXPECT_OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT_EQ(static_cast<int>(status), static_cast<int>(cudaStreamCaptureStatusActive));
  EXPECT_OK(launch_on(stream, add_to, 1, 1, 0, a.p, 1));
  EXPECT_OK(cudaEventRecord(fork, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, fork, 0));
  EXPECT_OK(launch_on(other, add_to, 1, 1, 0, a.p + 1, 10));
  EXPECT_OK(cudaEventRecord(join, other));
  EXPECT_OK(cudaStreamWaitEvent(stream, join, 0));
  EXPECT_OK(cudaMallocAsync(&scratch, 4, stream));
  EXPECT_OK(cudaMemcpyAsync(scratch, a.p + 1, 4, cudaMemcpyDeviceToDevice, stream));
  EXPECT_OK(cudaMemcpyAsync(a.p, scratch, 4, cudaMemcpyDeviceToDevice, stream));
  EXPECT_OK(cudaFreeAsync(scratch, stream));
  EXPECT_OK(launch_on(stream, add_to, 1, 1, 0, a.p, 1));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, size_t{7});
  EXPECT_EQ(a.get()[0], 0); /* nothing has run yet */
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaGraphDestroy(graph));
  for (int i = 1; i <= 3; i++) {
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(a.get()[0], 10 * i + 1);
    EXPECT_EQ(a.get()[1], 10 * i);
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaEventDestroy(fork));
  EXPECT_OK(cudaEventDestroy(join));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaStreamDestroy(other));
}

TEST(a_capture_of_one_thread_leaves_others_free) {
  cudaStream_t stream;
  cudaGraph_t graph = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (cudaStreamCaptureMode mode : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeGlobal}) {
    cudaError_t allocated = cudaErrorUnknown;
    EXPECT_OK(cudaStreamBeginCapture(stream, mode));
    std::thread([&] {
      void *memory = nullptr;
      allocated = cudaMalloc(&memory, 4);
      if (!allocated) EXPECT_OK(cudaFree(memory));
    }).join();
    const bool local = mode == cudaStreamCaptureModeThreadLocal;
    EXPECT_EQ(static_cast<int>(allocated), local ? 0 : static_cast<int>(cudaErrorStreamCaptureUnsupported));
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph) == cudaSuccess, local);
    if (local) EXPECT_OK(cudaGraphDestroy(graph));
  }
  EXPECT_OK(cudaStreamDestroy(stream));
}
TEST(a_capture_is_ended_by_what_it_forbids) {
  cudaStream_t stream;
  cudaGraph_t graph = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) != cudaSuccess);
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(launch_on(stream, nothing, 1, 1, 0), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT(graph == nullptr);
  cudaGetLastError();
  EXPECT_OK(launch_on(stream, nothing, 1, 1, 0));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* --- launches --- */

__global__ void converted(double a, size_t b, const float *c, bool d, float *out) {
  out[0] = static_cast<float>(a + static_cast<double>(b)) + c[1] + (d ? 100 : 0);
  a = -1; /* each thread has its own copy of the arguments */
  out[1] = static_cast<float>(a);
}
__global__ void own_copy(int n, int *out) {
  n += static_cast<int>(threadIdx.x);
  out[threadIdx.x] = n;
}

TEST(arguments_convert_as_in_a_call) {
  device_array<float> c(2);
  c.set({1, 2});
  device_array<float> out(2);
  EXPECT_OK(launch(converted, 1, 1, 0, 1.5f, 3, c.p, 1, out.p));
  EXPECT_EQ(out.get()[0], 106.5f);
  device_array<int> ids(70);
  EXPECT_OK(launch(own_copy, 1, 70, 0, static_cast<short>(5), ids.p));
  for (int i = 0; i < 70; i++) EXPECT_EQ(ids.get()[static_cast<size_t>(i)], 5 + i);
}

__global__ void coordinates(uint4 *out) {
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  __syncthreads(); /* coordinates stay right where threads wait for each other */
  out[block * threads + thread] =
      make_uint4(threadIdx.x | threadIdx.y << 8 | threadIdx.z << 16, blockIdx.x | blockIdx.y << 8 | blockIdx.z << 16,
                 blockDim.x | blockDim.y << 8 | blockDim.z << 16, gridDim.x | gridDim.y << 8 | gridDim.z << 16);
}

TEST(threads_know_where_they_are) {
  const dim3 shapes[][2] = {
      {dim3(1), dim3(1)}, {dim3(3), dim3(65)}, {dim3(2, 3, 4), dim3(5, 6, 7)}, {dim3(1, 1, 5), dim3(1, 9, 4)}};
  for (const auto &shape : shapes) {
    const dim3 g = shape[0], b = shape[1];
    device_array<uint4> out(g.x * g.y * g.z * b.x * b.y * b.z);
    EXPECT_OK(launch(coordinates, g, b, 0, out.p));
    const std::vector<uint4> r = out.get();
    size_t i = 0;
    for (unsigned z = 0; z < g.z; z++)
      for (unsigned y = 0; y < g.y; y++)
        for (unsigned x = 0; x < g.x; x++)
          for (unsigned w = 0; w < b.z; w++)
            for (unsigned v = 0; v < b.y; v++)
              for (unsigned u = 0; u < b.x; u++, i++) {
                EXPECT_EQ(r[i].x, u | v << 8 | w << 16);
                EXPECT_EQ(r[i].y, x | y << 8 | z << 16);
                EXPECT_EQ(r[i].z, b.x | b.y << 8 | b.z << 16);
                EXPECT_EQ(r[i].w, g.x | g.y << 8 | g.z << 16);
              }
  }
}

/* --- shared memory and barriers --- */

__device__ void *dynamic_shared() {
#ifdef CUDA_ON_CPU
  return cuda_cpu_dynamic_shared();
#else
  extern __shared__ float4 dynamic[];
  return dynamic;
#endif
}

template <int N> __global__ void reverse_static(int *p) {
  __shared__ int s[N];
  unsigned t = threadIdx.x;
  s[t] = p[t];
  __syncthreads();
  p[t] = s[N - 1 - t];
}
__global__ void reverse_dynamic(int *p) {
  int *s = static_cast<int *>(dynamic_shared());
  unsigned t = threadIdx.x, n = blockDim.x;
  p += blockIdx.x * n;
  s[t] = p[t];
  __syncthreads();
  p[t] = s[n - 1 - t];
}

TEST(shared_memory_belongs_to_the_block) {
  std::vector<int> v(1000);
  for (int i = 0; i < 1000; i++) v[static_cast<size_t>(i)] = i;
  device_array<int> a(100), b(1000);
  a.set(std::vector<int>(v.begin(), v.begin() + 100));
  EXPECT_OK(launch(reverse_static<100>, 1, 100, 0, a.p));
  for (int i = 0; i < 100; i++) EXPECT_EQ(a.get()[static_cast<size_t>(i)], 99 - i);
  b.set(v);
  EXPECT_OK(launch(reverse_dynamic, 10, 100, 400, b.p));
  const std::vector<int> r = b.get();
  for (int i = 0; i < 1000; i++) EXPECT_EQ(r[static_cast<size_t>(i)], i / 100 * 100 + 99 - i % 100);
}

__global__ void ends_of_dynamic(unsigned bytes, unsigned *out) {
  unsigned char *s = static_cast<unsigned char *>(dynamic_shared());
  s[0] = 1;
  s[bytes - 1] = 2;
  __syncthreads();
  out[0] = s[0] + s[bytes - 1] + static_cast<unsigned>(reinterpret_cast<uintptr_t>(s) % 16);
}

TEST(more_shared_memory_has_to_be_asked_for) {
  int most = 0;
  device_array<unsigned> out(1);
  EXPECT_OK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  EXPECT(most > 49152);
  const unsigned bytes = static_cast<unsigned>(most);
  EXPECT_EQ(launch(ends_of_dynamic, 1, 1, bytes, bytes, out.p), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(ends_of_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1),
            cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaFuncSetAttribute(ends_of_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
  EXPECT_OK(launch(ends_of_dynamic, 1, 1, bytes, bytes, out.p));
  EXPECT_EQ(out.get()[0], 3u);
  EXPECT_OK(launch(ends_of_dynamic, 1, 1, 7, 7, out.p));
  EXPECT_EQ(out.get()[0], 3u);
}

__global__ void voting_barriers(int *out) {
  int t = static_cast<int>(threadIdx.x);
  int count = __syncthreads_count(t % 3 == 0 ? 2 : 0);
  int none = __syncthreads_or(0), some = __syncthreads_or(t == 77);
  int all = __syncthreads_and(t >= 0), not_all = __syncthreads_and(t != 5);
  out[t] = count * 10000 + none * 1000 + some * 100 + all * 10 + not_all;
}

TEST(barriers_that_vote) {
  device_array<int> out(100);
  EXPECT_OK(launch(voting_barriers, 1, 100, 0, out.p));
  for (int v : out.get()) EXPECT_EQ(v, 340110);
}

/* Waiting for another thread of the block, and for an earlier block. */
__global__ void wait_within_block(unsigned *flags, unsigned *out) {
  volatile unsigned *flag = flags;
  unsigned t = threadIdx.x;
  if (t == 0)
    while (!flag[0]) __nanosleep(20);
  if (t == 1)
    while (!atomicAdd(&flags[1], 0u)) {}
  if (t == 40) {
    atomicExch(&flags[0], 1u);
    atomicExch(&flags[1], 1u);
  }
  atomicAdd(out, 1u);
}
__global__ void wait_for_predecessor(unsigned *ticket, unsigned *done, unsigned *sum) {
  __shared__ unsigned mine;
  if (threadIdx.x == 0) mine = atomicAdd(ticket, 1u);
  __syncthreads();
  if (threadIdx.x == 0) {
    volatile unsigned *v = done;
    while (*v != mine) __nanosleep(20);
    __threadfence();
    *sum = *sum * 31 + mine;
    __threadfence();
    atomicAdd(done, 1u);
  }
}

TEST(threads_may_wait_for_each_other) {
  device_array<unsigned> flags(2), count(1), order(3);
  EXPECT_OK(launch(wait_within_block, 1, 64, 0, flags.p, count.p));
  EXPECT_EQ(count.get()[0], 64u);
  EXPECT_OK(launch(wait_for_predecessor, 300, 32, 0, order.p, order.p + 1, order.p + 2));
  unsigned sum = 0;
  for (unsigned i = 0; i < 300; i++) sum = sum * 31 + i;
  EXPECT_EQ(order.get()[2], sum);
}

/* --- warp primitives --- */

template <class T> __global__ void shuffle_all(T *out, int width, unsigned arg) {
  unsigned lane = threadIdx.x % 32;
  T v = static_cast<T>(lane + 1);
  out += blockIdx.x * 128 + lane;
  out[0] = __shfl_sync(0xffffffff, v, static_cast<int>(arg), width);
  out[32] = __shfl_up_sync(0xffffffff, v, arg, width);
  out[64] = __shfl_down_sync(0xffffffff, v, arg, width);
  out[96] = __shfl_xor_sync(0xffffffff, v, static_cast<int>(arg), width);
}

template <class T> static void check_shuffles(const char *type) {
  device_array<T> out(128);
  for (int width = 1; width <= 32; width *= 2)
    for (int arg = 0; arg < 32; arg += width < 32 ? 3 : 1) {
      EXPECT_OK(launch(shuffle_all<T>, 1, 32, 0, out.p, width, static_cast<unsigned>(arg)));
      const std::vector<T> r = out.get();
      for (int lane = 0; lane < 32; lane++) {
        const int begin = lane / width * width, end = begin + width;
        const int from[4] = {begin + arg % width, lane - arg < begin ? lane : lane - arg,
                             lane + arg >= end ? lane : lane + arg, (lane ^ arg) >= end ? lane : lane ^ arg};
        for (int k = 0; k < 4; k++) {
          const double got = static_cast<double>(r[static_cast<size_t>(k * 32 + lane)]);
          if (got != from[k] + 1)
            test_fail(__FILE__, __LINE__,
                      std::string(type) + ": shuffle " + std::to_string(k) + ", width " + std::to_string(width) +
                          ", argument " + std::to_string(arg) + ", lane " + std::to_string(lane) + ": value of lane " +
                          std::to_string(got - 1));
        }
      }
    }
}

TEST(shuffles_of_every_type_width_and_distance) {
  check_shuffles<int>("int");
  check_shuffles<unsigned>("unsigned");
  check_shuffles<long>("long");
  check_shuffles<unsigned long>("unsigned long");
  check_shuffles<long long>("long long");
  check_shuffles<u64>("unsigned long long");
  check_shuffles<float>("float");
  check_shuffles<double>("double");
}

__global__ void shuffle_halves(unsigned *out) {
  float lane = static_cast<float>(threadIdx.x);
  __half h = __shfl_xor_sync(0xffffffff, __float2half(lane), 1);
  __nv_bfloat16 b = __shfl_down_sync(0xffffffff, __float2bfloat16(lane), 2);
  __half2 h2 = __shfl_sync(0xffffffff, __floats2half2_rn(lane, -lane), 7);
  out[threadIdx.x] = static_cast<unsigned>(__half2float(h)) | static_cast<unsigned>(__bfloat162float(b)) << 8 |
                     static_cast<unsigned>(__low2float(h2) - __high2float(h2)) << 16;
}

TEST(shuffles_of_16_bit_floats) {
  device_array<unsigned> out(32);
  EXPECT_OK(launch(shuffle_halves, 1, 32, 0, out.p));
  for (unsigned i = 0; i < 32; i++) EXPECT_EQ(out.get()[i], (i ^ 1) | (i + 2 < 32 ? i + 2 : i) << 8 | 14u << 16);
}

struct votes {
  unsigned ballot, any, all, match, match_all_same, match_all_other, sum, least, most, conjunction, disjunction, parity;
  int all_same, all_other, signed_least, signed_most;
};
__global__ void vote(votes *out, unsigned split) {
  unsigned lane = threadIdx.x, begin = lane < split ? 0 : split, mask = lane < split ? (1u << split) - 1 : ~0u << split;
  votes v;
  if (lane < split) { /* two groups in two branches */
    v.ballot = __ballot_sync(mask, lane & 1);
    v.any = static_cast<unsigned>(__any_sync(mask, lane == 0));
  } else {
    v.any = static_cast<unsigned>(__any_sync(mask, lane == 0));
    v.ballot = __ballot_sync(mask, lane & 1);
  }
  v.all = static_cast<unsigned>(__all_sync(mask, lane < split));
  if (!__all_sync(mask, lane != begin)) v.all += 2;
  v.match = __match_any_sync(mask, lane % 3);
  v.match_all_same = __match_all_sync(mask, 42.0, &v.all_same);
  v.match_all_other = __match_all_sync(mask, static_cast<u64>(lane) << 40, &v.all_other);
#if defined(CUDA_ON_CPU) || __CUDA_ARCH__ >= 800
  v.sum = __reduce_add_sync(mask, lane);
  v.least = __reduce_min_sync(mask, lane ^ 0x80000000);
  v.most = __reduce_max_sync(mask, lane ^ 0x80000000);
  v.signed_least = __reduce_min_sync(mask, static_cast<int>(lane) - 20);
  v.signed_most = __reduce_max_sync(mask, static_cast<int>(lane) - 20);
  v.conjunction = __reduce_and_sync(mask, lane | 64);
  v.disjunction = __reduce_or_sync(mask, lane);
  v.parity = __reduce_xor_sync(mask, lane);
#endif
  out[lane] = v;
}

TEST(votes_matches_and_reductions_by_mask) {
  cudaFuncAttributes attributes;
  EXPECT_OK(cudaFuncGetAttributes(&attributes, vote));
  const bool reduces = attributes.ptxVersion >= 80;
  for (unsigned split : {1u, 5u, 16u, 31u}) {
    device_array<votes> out(32);
    EXPECT_OK(launch(vote, 1, 32, 0, out.p, split));
    const std::vector<votes> r = out.get();
    for (unsigned lane = 0; lane < 32; lane++) {
      const votes &v = r[lane];
      unsigned begin = lane < split ? 0 : split, end = lane < split ? split : 32, mask = 0, odd = 0, same = 0, sum = 0;
      unsigned conjunction = ~0u, disjunction = 0, parity = 0;
      for (unsigned i = begin; i < end; i++) {
        mask |= 1u << i;
        odd |= (i & 1) << i;
        same |= (i % 3 == lane % 3 ? 1u : 0u) << i;
        sum += i;
        conjunction &= i | 64;
        disjunction |= i;
        parity ^= i;
      }
      EXPECT_EQ(v.ballot, odd);
      EXPECT_EQ(v.any, begin == 0 ? 1u : 0u);
      EXPECT_EQ(v.all, begin == 0 ? 3u : 2u);
      EXPECT_EQ(v.match, same);
      EXPECT_EQ(v.match_all_same, mask);
      EXPECT_EQ(v.all_same, 1);
      EXPECT_EQ(v.match_all_other, end - begin == 1 ? mask : 0u);
      EXPECT_EQ(v.all_other, end - begin == 1 ? 1 : 0);
      if (!reduces) continue;
      EXPECT_EQ(v.sum, sum);
      EXPECT_EQ(v.least, begin ^ 0x80000000);
      EXPECT_EQ(v.most, (end - 1) ^ 0x80000000);
      EXPECT_EQ(v.signed_least, static_cast<int>(begin) - 20);
      EXPECT_EQ(v.signed_most, static_cast<int>(end) - 21);
      EXPECT_EQ(v.conjunction, conjunction);
      EXPECT_EQ(v.disjunction, disjunction);
      EXPECT_EQ(v.parity, parity);
    }
  }
}

__global__ void sum_partial_warp(unsigned *out) {
  unsigned lane = threadIdx.x % 32, left = blockDim.x - threadIdx.x / 32 * 32, lanes = left < 32 ? left : 32;
  unsigned mask = lanes == 32 ? 0xffffffff : (1u << lanes) - 1, v = threadIdx.x;
  for (unsigned d = 16; d; d /= 2) {
    unsigned other = __shfl_down_sync(mask, v, lane + d < lanes ? d : 0);
    if (lane + d < lanes) v += other;
  }
  __syncwarp(mask);
  if (lane == 0) out[threadIdx.x / 32] = v;
}

TEST(partial_warps) {
  for (unsigned n : {1u, 31u, 33u, 48u, 95u}) {
    device_array<unsigned> out(3);
    EXPECT_OK(launch(sum_partial_warp, 1, n, 0, out.p));
    unsigned sum[3] = {};
    for (unsigned i = 0; i < n; i++) sum[i / 32] += i;
    for (unsigned i = 0; i < 3; i++) EXPECT_EQ(out.get()[i], sum[i]);
  }
}

__global__ void active(unsigned *out) { out[threadIdx.x] = __activemask() >> threadIdx.x & 1; }

TEST(a_thread_is_active_itself) {
  device_array<unsigned> out(32);
  EXPECT_OK(launch(active, 1, 32, 0, out.p));
  for (unsigned v : out.get()) EXPECT_EQ(v, 1u);
}

/* --- atomics --- */

struct counters {
  int i, i_min, i_max, sub, exchanged;
  unsigned u, u_min, u_max, inc, dec, conjunction, disjunction, parity, tries;
  u64 l, l_min, l_max, l_or;
  long long sl_min, sl_max;
  float f;
  double d;
  __half2 h2;
  __half h;
  __nv_bfloat16 b;
  int lock, locked;
};
__global__ void count_atomically(counters *c) {
  int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned u = static_cast<unsigned>(t);
  atomicAdd(&c->i, -t);
  atomicSub(&c->sub, t);
  atomicMin(&c->i_min, t - 100);
  atomicMax(&c->i_max, t - 100);
  atomicExch(&c->exchanged, 7);
  atomicAdd_system(&c->u, u);
  atomicMin(&c->u_min, u + 3);
  atomicMax_block(&c->u_max, u * 0x10000);
  atomicInc(&c->inc, 99);
  atomicDec(&c->dec, 99);
  atomicAnd(&c->conjunction, ~(1u << t % 32));
  atomicOr(&c->disjunction, 1u << t % 32);
  atomicXor(&c->parity, u);
  atomicAdd(&c->l, static_cast<u64>(u) << 33);
  atomicMin(&c->l_min, ~u64{0} - u);
  atomicMax(&c->l_max, ~u64{0} - u);
  atomicMin(&c->sl_min, -(static_cast<long long>(t) << 33));
  atomicMax(&c->sl_max, static_cast<long long>(t) << 33);
  atomicOr(&c->l_or, u64{1} << t % 64);
  atomicAdd(&c->f, 0.5f);
  atomicAdd(&c->d, 0.25);
  if (t < 32) {
    atomicAdd(&c->h, __float2half(0.5f));
    atomicAdd(&c->b, __float2bfloat16(2));
    atomicAdd(&c->h2, __floats2half2_rn(1, -1));
  }
  unsigned seen = c->tries, expected;
  do {
    expected = seen;
    seen = atomicCAS(&c->tries, expected, expected + 2);
  } while (seen != expected);
  if (threadIdx.x == 0) {
    while (atomicCAS(&c->lock, 0, 1)) {}
    __threadfence();
    int before = *static_cast<volatile int *>(&c->locked);
    *static_cast<volatile int *>(&c->locked) = before + 1;
    __threadfence();
    atomicExch(&c->lock, 0);
  }
}

TEST(atomics_lose_nothing) {
  const unsigned n = 50 * 100, sum = n * (n - 1) / 2;
  unsigned parity = 0;
  for (unsigned i = 0; i < n; i++) parity ^= i;
  device_array<counters> c(1);
  counters zero;
  memset(static_cast<void *>(&zero), 0, sizeof zero);
  zero.u_min = zero.conjunction = ~0u;
  zero.l_min = ~u64{0};
  EXPECT_OK(cudaMemcpy(c.p, &zero, sizeof zero, cudaMemcpyHostToDevice));
  EXPECT_OK(launch(count_atomically, 50, 100, 0, c.p));
  const counters r = c.get()[0];
  EXPECT_EQ(r.i, -static_cast<int>(sum));
  EXPECT_EQ(r.sub, -static_cast<int>(sum));
  EXPECT_EQ(r.i_min, -100);
  EXPECT_EQ(r.i_max, static_cast<int>(n) - 101);
  EXPECT_EQ(r.exchanged, 7);
  EXPECT_EQ(r.u, sum);
  EXPECT_EQ(r.u_min, 3u);
  EXPECT_EQ(r.u_max, (n - 1) * 0x10000);
  EXPECT_EQ(r.inc, n % 100);
  EXPECT_EQ(r.dec, (100 - n % 100) % 100);
  EXPECT_EQ(r.conjunction, 0u);
  EXPECT_EQ(r.disjunction, ~0u);
  EXPECT_EQ(r.parity, parity);
  EXPECT_EQ(r.l, static_cast<u64>(sum) << 33);
  EXPECT_EQ(r.l_min, ~u64{0} - (n - 1));
  EXPECT_EQ(r.l_max, ~u64{0});
  EXPECT_EQ(r.sl_min, -(static_cast<long long>(n - 1) << 33));
  EXPECT_EQ(r.sl_max, static_cast<long long>(n - 1) << 33);
  EXPECT_EQ(r.l_or, ~u64{0});
  EXPECT_EQ(r.f, 2500.0f);
  EXPECT_EQ(r.d, 1250.0);
  EXPECT_EQ(__half2float(r.h), 16.0f);
  EXPECT_EQ(__bfloat162float(r.b), 64.0f);
  EXPECT_EQ(__low2float(r.h2), 32.0f);
  EXPECT_EQ(__high2float(r.h2), -32.0f);
  EXPECT_EQ(r.tries, 2 * n);
  EXPECT_EQ(r.locked, 50);
}

__global__ void old_values(unsigned *p, float *f) {
  p[1] = atomicAdd(p, 5u);
  p[2] = atomicSub(p, 1u);
  p[3] = atomicExch(p, 100u);
  p[4] = atomicCAS(p, 100u, 7u);
  p[5] = atomicCAS(p, 100u, 8u);
  p[6] = atomicInc(p, 7u);
  p[7] = atomicDec(p, 9u);
  p[8] = atomicMax(p, 50u);
  p[9] = atomicDec(p, 3u);
  f[1] = atomicAdd(f, 1.5f);
  f[2] = atomicExch(f, -2.0f);
}

TEST(atomics_return_what_was_there) {
  device_array<unsigned> p(10);
  device_array<float> f(3);
  EXPECT_OK(launch(old_values, 1, 1, 0, p.p, f.p));
  const unsigned expected[] = {3, 0, 5, 4, 100, 7, 7, 0, 9, 50};
  for (size_t i = 0; i < 10; i++) EXPECT_EQ(p.get()[i], expected[i]);
  EXPECT_EQ(f.get()[0], -2.0f);
  EXPECT_EQ(f.get()[1], 0.0f);
  EXPECT_EQ(f.get()[2], 1.5f);
}

/* --- intrinsics: fingerprints over pseudo-random arguments, the same on a GPU --- */

struct bit_functions {
  __device__ u64 operator()(u64 i) const {
    u64 a = mix(i), b = mix(a);
    if (i % 8 == 0) a &= 0xff;
    if (i % 8 == 1) a <<= 40;
    if (i % 64 == 2) a = 0;
    unsigned x = static_cast<unsigned>(a), y = static_cast<unsigned>(a >> 32), s = static_cast<unsigned>(b);
    int m = static_cast<int>(x), n = static_cast<int>(y), o = static_cast<int>(s);
    u64 r = static_cast<u64>(__popc(x) + 100 * __popcll(a) + 10000 * __ffs(m) + 1000000 * __clz(n));
    r = mix(r ^ static_cast<u64>(__ffsll(static_cast<long long>(a)) * 100 + __clzll(static_cast<long long>(a))));
    r = mix(r ^ __brev(x) ^ __brevll(a));
    r = mix(r ^ __byte_perm(x, y, s));
    r = mix(r ^ __funnelshift_l(x, y, s) ^ static_cast<u64>(__funnelshift_r(x, y, s)) << 32);
    r = mix(r ^ __funnelshift_lc(x, y, s % 64) ^ static_cast<u64>(__funnelshift_rc(x, y, s % 64)) << 32);
    r = mix(r ^ __dp4a(x, y, s) ^ static_cast<u64>(static_cast<unsigned>(__dp4a(m, n, o))) << 32);
    r = mix(r ^ __umulhi(x, s) ^ static_cast<u64>(static_cast<unsigned>(__mulhi(m, o))) << 32);
    r = mix(r ^ __umul64hi(a, b));
    r = mix(r ^ static_cast<u64>(__mul64hi(static_cast<long long>(a), static_cast<long long>(b))));
    r = mix(r ^ __umul24(x, s) ^ static_cast<u64>(static_cast<unsigned>(__mul24(m, o))) << 32);
    r = mix(r ^ __usad(x, y, s) ^ static_cast<u64>(__sad(m, n, s)) << 32);
    r = mix(r ^ __uhadd(x, s) ^ static_cast<u64>(__urhadd(x, s)) << 32);
    return mix(r ^ static_cast<unsigned>(__hadd(m, o)) ^ static_cast<u64>(static_cast<unsigned>(__rhadd(m, o))) << 32);
  }
};

/* NaNs are equal, whatever their payload and sign. */
__device__ inline u64 bits(float f) { return f != f ? 0x7fffffff : static_cast<unsigned>(__float_as_int(f)); }
__device__ inline u64 bits(double f) { return f != f ? 0x7fffffffffffffff : static_cast<u64>(__double_as_longlong(f)); }
/* Any float, or (mostly) one near 1, where sums and products do not leave the range. */
__device__ inline float any_float(u64 r) {
  unsigned u = static_cast<unsigned>(r);
  if (r >> 32 & 15) u = (u & 0x807fffff) | (112 + (u >> 23) % 32) << 23;
  return __uint_as_float(u);
}
__device__ inline double any_double(u64 r) {
  u64 u = r;
  if (mix(r) & 15) u = (u & 0x800fffffffffffff) | (1000 + (u >> 52) % 46) << 52;
  return __longlong_as_double(static_cast<long long>(u));
}

#define ALL_MODES(r, f, ...)                                                                                           \
  r = mix(r ^ bits(f##_rn(__VA_ARGS__)));                                                                              \
  r = mix(r ^ bits(f##_rz(__VA_ARGS__)));                                                                              \
  r = mix(r ^ bits(f##_ru(__VA_ARGS__)));                                                                              \
  r = mix(r ^ bits(f##_rd(__VA_ARGS__)))

struct float_arithmetic {
  __device__ u64 operator()(u64 i) const {
    float a = any_float(mix(3 * i)), b = any_float(mix(3 * i + 1)), c = any_float(mix(3 * i + 2));
    u64 r = 0;
    ALL_MODES(r, __fadd, a, b);
    ALL_MODES(r, __fsub, a, b);
    ALL_MODES(r, __fmul, a, b);
    ALL_MODES(r, __fdiv, a, b);
    ALL_MODES(r, __fmaf, a, b, c);
    ALL_MODES(r, __fsqrt, a);
    ALL_MODES(r, __frcp, a);
    return r;
  }
};
struct double_arithmetic {
  __device__ u64 operator()(u64 i) const {
    double a = any_double(mix(3 * i)), b = any_double(mix(3 * i + 1)), c = any_double(mix(3 * i + 2));
    u64 r = 0;
    ALL_MODES(r, __dadd, a, b);
    ALL_MODES(r, __dsub, a, b);
    ALL_MODES(r, __dmul, a, b);
    ALL_MODES(r, __ddiv, a, b);
    ALL_MODES(r, __fma, a, b, c);
    ALL_MODES(r, __dsqrt, a);
    ALL_MODES(r, __drcp, a);
    return r;
  }
};

/* Floats and doubles around every power of two, and their fractions around 1/2. */
template <class T> __device__ inline T to_convert(u64 i) {
  u64 r = mix(i);
  T f = static_cast<T>(static_cast<float>(static_cast<int>(r & 255) - 128)) / 4;
  int e = static_cast<int>(r >> 8) % 80 - 4;
  f = static_cast<T>(ldexp(static_cast<double>(f), e < 0 ? 0 : e));
  if (i % 50 == 0) f = static_cast<T>(__int_as_float(0x7f800000));
  if (i % 50 == 1) f = -static_cast<T>(__int_as_float(0x7f800000));
  if (i % 50 == 2) f = static_cast<T>(__int_as_float(0x7fffffff));
  return f;
}
#define TO_INTEGER(r, f, x)                                                                                            \
  r = mix(r ^ static_cast<u64>(static_cast<long long>(f##_rn(x))));                                                    \
  r = mix(r ^ static_cast<u64>(static_cast<long long>(f##_rz(x))));                                                    \
  r = mix(r ^ static_cast<u64>(static_cast<long long>(f##_ru(x))));                                                    \
  r = mix(r ^ static_cast<u64>(static_cast<long long>(f##_rd(x))))
struct conversions_to_integers {
  __device__ u64 operator()(u64 i) const {
    float f = to_convert<float>(i);
    double d = to_convert<double>(i);
    u64 r = 0;
    TO_INTEGER(r, __float2int, f);
    TO_INTEGER(r, __float2uint, f);
    TO_INTEGER(r, __float2ll, f);
    TO_INTEGER(r, __float2ull, f);
    TO_INTEGER(r, __double2int, d);
    TO_INTEGER(r, __double2uint, d);
    TO_INTEGER(r, __double2ll, d);
    TO_INTEGER(r, __double2ull, d);
    return r;
  }
};
struct conversions_to_floats {
  __device__ u64 operator()(u64 i) const {
    u64 u = mix(i) >> mix(i + 1) % 64, r = 0;
    long long s = static_cast<long long>(i & 1 ? u : 0 - u);
    ALL_MODES(r, __int2float, static_cast<int>(s));
    ALL_MODES(r, __uint2float, static_cast<unsigned>(u));
    ALL_MODES(r, __ll2float, s);
    ALL_MODES(r, __ull2float, u);
    ALL_MODES(r, __double2float, any_double(mix(u)));
    ALL_MODES(r, __ll2double, s);
    ALL_MODES(r, __ull2double, u);
    return mix(r ^ bits(__int2double_rn(static_cast<int>(s))));
  }
};
struct reinterpretations {
  __device__ u64 operator()(u64 i) const {
    u64 u = mix(i) & 0xbfefffffbfefffff; /* no NaN, which a move may change */
    double d = __longlong_as_double(static_cast<long long>(u));
    float f = __uint_as_float(static_cast<unsigned>(u)), g = __int_as_float(static_cast<int>(u >> 32));
    u64 r = __float_as_uint(f) ^ static_cast<u64>(static_cast<unsigned>(__float_as_int(g))) << 32;
    r = mix(r ^ static_cast<unsigned>(__double2hiint(d)) ^
            static_cast<u64>(static_cast<unsigned>(__double2loint(d))) << 32);
    return mix(r ^ bits(__hiloint2double(__double2hiint(d), __double2loint(d))));
  }
};
struct extremes {
  __device__ u64 operator()(u64 i) const {
    float f = any_float(mix(2 * i)), g = any_float(mix(2 * i + 1));
    double d = any_double(mix(2 * i)), e = any_double(mix(2 * i + 1));
    u64 u = mix(i), v = mix(u), r = 0;
    int m = static_cast<int>(u), n = static_cast<int>(v);
    unsigned x = static_cast<unsigned>(u), y = static_cast<unsigned>(v);
    r = mix(r ^ bits(min(f, g)) ^ bits(max(f, g)) << 32);
    r = mix(r ^ bits(min(d, e)) ^ mix(bits(max(d, e))));
    r = mix(r ^ static_cast<unsigned>(min(m, n)) ^ static_cast<u64>(static_cast<unsigned>(max(m, n))) << 32);
    r = mix(r ^ min(x, y) ^ static_cast<u64>(max(x, y)) << 32);
    r = mix(r ^ min(m, y) ^ static_cast<u64>(max(x, n)) << 32);
    r = mix(r ^ min(u, v) ^ mix(max(u, v)));
    r = mix(r ^ static_cast<u64>(min(static_cast<long long>(u), static_cast<long long>(v))));
    return mix(r ^ bits(__saturatef(f)));
  }
};

TEST(intrinsics_give_recorded_bits) {
  EXPECT_FINGERPRINT(bit_functions, 100000, 0x0fba18ba10471ff9);
  EXPECT_FINGERPRINT(float_arithmetic, 50000, 0x20360f28a4a7972a);
  EXPECT_FINGERPRINT(double_arithmetic, 50000, 0xfcd851f41ac3c418);
  EXPECT_FINGERPRINT(conversions_to_integers, 50000, 0x1f8f44ac62d9c046);
  EXPECT_FINGERPRINT(conversions_to_floats, 50000, 0x4b93100f5ebaae50);
  EXPECT_FINGERPRINT(reinterpretations, 10000, 0xd890aee350d1c9ed);
  EXPECT_FINGERPRINT(extremes, 10000, 0xe47687ed97637af1);
}

/* Values by mpmath. */
__global__ void special_functions(double *d, float *f) {
  const double v[4] = {1, 2, 4, 10};
  const float w[4] = {1, 2, 4, 10};
  double r[] = {erfinv(0.3),         erfinv(-0.999),       erfcinv(1e-100), erfcinv(1.7), normcdfinv(0.975),
                normcdfinv(1e-10),   erfcx(1.0),           erfcx(-5.0),     erfcx(30.0),  cyl_bessel_i0(5.0),
                cyl_bessel_i1(-3.0), cyl_bessel_i0(500.0), norm(4, v),      rnorm(4, v),  rnorm3d(2, 3, 6),
                rnorm4d(2, 4, 5, 6), cyl_bessel_i1(1e-10)};
  float s[] = {erfinvf(0.3f), erfcinvf(1.7f),     normcdfinvf(0.975f), erfcxf(1),         cyl_bessel_i0f(5),
               normf(4, w),   cyl_bessel_i1f(-3), rnormf(4, w),        rnorm3df(2, 3, 6), rnorm4df(2, 4, 5, 6)};
  for (int i = 0; i < 17; i++) d[i] = r[i];
  for (int i = 0; i < 10; i++) f[i] = s[i];
}
TEST(special_functions_have_their_values) {
  const double expected[] = {0.27246271472675434,
                             -2.3267537655135246,
                             15.065574702592646,
                             -0.7328690779592168,
                             1.9599639845400536,
                             -6.3613409024040562,
                             0.42758357615580701,
                             144009798674.66104,
                             0.018795888861416751,
                             27.239871823604442,
                             -3.953370217402609,
                             2.504809476570078e+215,
                             11,
                             1.0 / 11,
                             1.0 / 7,
                             1.0 / 9,
                             5e-11};
  const double of_float[] = {0.27246271472675434,
                             -0.7328690779592168,
                             1.9599639845400536,
                             0.42758357615580701,
                             27.239871823604442,
                             11,
                             -3.953370217402609,
                             1.0 / 11,
                             1.0 / 7,
                             1.0 / 9};
  device_array<double> d(17);
  device_array<float> f(10);
  EXPECT_OK(launch(special_functions, 1, 1, 0, d.p, f.p));
  const std::vector<double> got = d.get();
  const std::vector<float> single = f.get();
  for (size_t i = 0; i < 17; i++) EXPECT(fabs(got[i] / expected[i] - 1) < 2e-14);
  for (size_t i = 0; i < 10; i++) EXPECT(fabs(static_cast<double>(single[i]) / of_float[i] - 1) < 2e-6);
}

__global__ void parts_of_words(unsigned *out) {
  const unsigned a = 0x80ff017f, b = 0x80017f7f;
  const unsigned r[] = {__vadd4(a, b),
                        __vadd2(a, b),
                        __vaddss4(a, b),
                        __vaddus4(a, b),
                        __vsub4(a, b),
                        __vsubss2(a, b),
                        __vmaxs4(a, b),
                        __vmaxu4(a, b),
                        __vminu2(a, b),
                        __vavgu4(a, b),
                        __vabs4(a),
                        __vabsss4(a),
                        __vneg2(a),
                        __vnegss4(a),
                        __vabsdiffs4(a, b),
                        __vabsdiffu4(a, b),
                        __vsadu4(a, b),
                        __vsads2(a, b),
                        __vcmpeq4(a, b),
                        __vcmpgts4(a, b),
                        __vcmpgtu4(a, b),
                        __vsetltu4(a, b),
                        __vhaddu4(a, b),
                        __vcmples2(a, b),
                        __fns(a, 0, 3),
                        __fns(a, 31, -2),
                        __fns(a, 7, 0),
                        __fns(a, 6, 0),
                        __fns(a, 25, 1),
                        __fns(0, 0, 1),
                        __vavgs2(0x0001ffff, 0)};
  for (unsigned i = 0; i < 31; i++) out[i] = r[i];
}
TEST(parts_of_words_are_apart) {
  device_array<unsigned> out(31);
  EXPECT_OK(launch(parts_of_words, 1, 1, 0, out.p));
  const std::vector<unsigned> expected = {
      0x000080fe, 0x010080fe, 0x80007f7f, 0xffff80fe, 0x00fe8200, 0x00fe8200, 0x80017f7f, 0x80ff7f7f,
      0x8001017f, 0x8080407f, 0x8001017f, 0x7f01017f, 0x7f01fe81, 0x7f01ff81, 0x00027e00, 0x00fe7e00,
      0x17c,      0x7efe,     0xff0000ff, 0,          0x00ff0000, 0x00000100, 0x8080407f, 0x0000ffff,
      2,          23,         ~0u,        6,          31,         ~0u,        0x0001ffff};
  for (size_t i = 0; i < expected.size(); i++) EXPECT_EQ(out.get()[i], expected[i]);
}

template <class T> __global__ void through_hints(const T *in, T *out) {
  T v[6] = {__ldg(in), __ldca(in + 1), __ldcg(in + 2), __ldcs(in + 3), __ldlu(in + 4), __ldcv(in + 5)};
  __stwb(out, v[0]);
  __stcg(out + 1, v[1]);
  __stcs(out + 2, v[2]);
  __stwt(out + 3, v[3]);
  out[4] = v[4];
  out[5] = v[5];
}
template <class T> static void check_hints() {
  device_array<T> in(6), out(6);
  std::vector<unsigned char> bytes(6 * sizeof(T)), back(6 * sizeof(T));
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<unsigned char>(i + 1);
  EXPECT_OK(cudaMemcpy(in.p, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  EXPECT_OK(launch(through_hints<T>, 1, 1, 0, static_cast<const T *>(in.p), out.p));
  EXPECT_OK(cudaMemcpy(back.data(), out.p, back.size(), cudaMemcpyDeviceToHost));
  EXPECT(bytes == back);
}

TEST(loads_and_stores_with_hints) {
  check_hints<signed char>();
  check_hints<unsigned short>();
  check_hints<int>();
  check_hints<u64>();
  check_hints<float>();
  check_hints<double>();
  check_hints<float2>();
  check_hints<float4>();
  check_hints<int4>();
  check_hints<uchar4>();
  check_hints<double2>();
  check_hints<ulonglong2>();
  check_hints<__half>();
  check_hints<__nv_bfloat162>();
}

template <class T> static std::string layout() {
  struct after_a_byte {
    char c;
    T v;
  };
  return std::to_string(sizeof(T)) + "/" + std::to_string(sizeof(after_a_byte) - sizeof(T));
}

TEST(vector_types_have_their_size_and_alignment) {
  EXPECT_EQ(layout<char2>() + " " + layout<char3>() + " " + layout<char4>(), "2/2 3/1 4/4");
  EXPECT_EQ(layout<ushort2>() + " " + layout<ushort3>() + " " + layout<short4>(), "4/4 6/2 8/8");
  EXPECT_EQ(layout<int1>() + " " + layout<int2>() + " " + layout<uint3>() + " " + layout<uint4>(),
            "4/4 8/8 12/4 16/16");
  EXPECT_EQ(layout<float2>() + " " + layout<float3>() + " " + layout<float4>(), "8/8 12/4 16/16");
  EXPECT_EQ(layout<longlong2>() + " " + layout<ulonglong2>() + " " + layout<long2>(), "16/16 16/16 16/16");
  EXPECT_EQ(layout<double1>() + " " + layout<double2>() + " " + layout<double3>(), "8/8 16/16 24/8");
  EXPECT_EQ(layout<__half2>() + " " + layout<__nv_bfloat162>() + " " + layout<__half>(), "4/4 4/4 2/2");
  EXPECT_EQ(make_float4(1, 2, 3, 4).w + static_cast<float>(make_longlong2(5, 6).y), 10.0f);
}

/* --- half and bfloat16 --- */

struct half_to_float {
  __device__ u64 operator()(u64 i) const {
    return static_cast<unsigned>(__float_as_int(__half2float(__ushort_as_half(static_cast<unsigned short>(i)))));
  }
};
struct bfloat16_to_float {
  __device__ u64 operator()(u64 i) const {
    return static_cast<unsigned>(
        __float_as_int(__bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(i)))));
  }
};
const unsigned stride = 41; /* over all floats: a prime, so that every exponent and many patterns are met */
struct float_to_half {
  __device__ u64 operator()(u64 i) const {
    return __half_as_ushort(__float2half(__uint_as_float(static_cast<unsigned>(i) * stride)));
  }
};
struct float_to_bfloat16 {
  __device__ u64 operator()(u64 i) const {
    return __bfloat16_as_ushort(__float2bfloat16(__uint_as_float(static_cast<unsigned>(i) * stride)));
  }
};
/* Around the middle between any two neighbours, and around each of them: i is value * 8 + which. */
template <int shift> __host__ __device__ inline unsigned near_tie(u64 i, unsigned wide) {
  const unsigned step = 1u << shift, which = static_cast<unsigned>(i & 7);
  const unsigned add[8] = {0, 1, step - 1, step / 2 - 1, step / 2, step / 2 + 1, step / 4, step / 2 + step / 4};
  return wide + add[which];
}
struct half_ties {
  __device__ u64 operator()(u64 i) const {
    unsigned wide = __float_as_uint(__half2float(__ushort_as_half(static_cast<unsigned short>(i >> 3))));
    return __half_as_ushort(__float2half(__uint_as_float(near_tie<13>(i, wide))));
  }
};
struct bfloat16_ties {
  __device__ u64 operator()(u64 i) const {
    return __bfloat16_as_ushort(
        __float2bfloat16(__uint_as_float(near_tie<16>(i, static_cast<unsigned>(i >> 3) << 16))));
  }
};
struct other_roundings {
  __device__ u64 operator()(u64 i) const {
    float f = any_float(mix(i));
    u64 r = __half_as_ushort(__float2half_rz(f)) | static_cast<u64>(__half_as_ushort(__float2half_ru(f))) << 16 |
            static_cast<u64>(__half_as_ushort(__float2half_rd(f))) << 32;
    r = mix(r ^ __bfloat16_as_ushort(__float2bfloat16_rz(f)) ^
            static_cast<u64>(__bfloat16_as_ushort(__float2bfloat16_ru(f))) << 16 ^
            static_cast<u64>(__bfloat16_as_ushort(__float2bfloat16_rd(f))) << 32);
    double d = any_double(mix(i));
    if (d != d) d = 1; /* a NaN stays one, but with which payload is open */
    r = mix(r ^ __half_as_ushort(__double2half(d)) ^
            static_cast<u64>(__bfloat16_as_ushort(__double2bfloat16(d))) << 16);
    u64 u = mix(i) >> i % 64;
    long long s = static_cast<long long>(i & 1 ? u : 0 - u);
    r = mix(r ^ __half_as_ushort(__int2half_rn(static_cast<int>(s))) ^
            static_cast<u64>(__half_as_ushort(__ll2half_rn(s))) << 16 ^
            static_cast<u64>(__half_as_ushort(__uint2half_rn(static_cast<unsigned>(u)))) << 32);
    return mix(r ^ __bfloat16_as_ushort(__int2bfloat16_rn(static_cast<int>(s))) ^
               static_cast<u64>(__bfloat16_as_ushort(__ll2bfloat16_rn(s))) << 16 ^
               static_cast<u64>(__bfloat16_as_ushort(__ull2bfloat16_rn(u))) << 32);
  }
};
struct halves_to_integers {
  __device__ u64 operator()(u64 i) const {
    __half h = __ushort_as_half(static_cast<unsigned short>(i));
    __nv_bfloat16 b = __ushort_as_bfloat16(static_cast<unsigned short>(i));
    u64 r = static_cast<unsigned>(__half2int_rz(h)) ^ static_cast<u64>(__half2uint_rz(h)) << 32;
    r = mix(r ^ static_cast<unsigned>(__half2int_rn(h)) ^
            static_cast<u64>(static_cast<unsigned>(__half2int_ru(h))) << 32);
    r = mix(r ^ static_cast<u64>(__half2ll_rz(h)) ^ mix(__half2ull_rz(h)));
    r = mix(r ^ static_cast<unsigned short>(__half2short_rz(h)) ^ static_cast<u64>(__half2ushort_rz(h)) << 16);
    r = mix(r ^ static_cast<unsigned>(__bfloat162int_rz(b)) ^ static_cast<u64>(__bfloat162uint_rz(b)) << 32);
    r = mix(r ^ static_cast<u64>(__bfloat162ll_rz(b)) ^ mix(__bfloat162ull_rz(b)));
    return mix(r ^ static_cast<unsigned short>(__bfloat162short_rz(b)));
  }
};

TEST(conversions_of_16_bit_floats_give_recorded_bits) {
  EXPECT_FINGERPRINT(half_to_float, 65536, 0x3096c0eb935042cd);
  EXPECT_FINGERPRINT(bfloat16_to_float, 65536, 0x5e4187b9f79af9af);
  EXPECT_FINGERPRINT(float_to_half, (u64{1} << 32) / stride + 1, 0x0fffe43bac90dc2a);
  EXPECT_FINGERPRINT(float_to_bfloat16, (u64{1} << 32) / stride + 1, 0x09483081c15b91ce);
  EXPECT_FINGERPRINT(half_ties, 8 * 65536, 0xe764b4a723406002);
  EXPECT_FINGERPRINT(bfloat16_ties, 8 * 65536, 0x1019d7eeb3eb2f21);
  EXPECT_FINGERPRINT(other_roundings, 100000, 0x696a01019a08865d);
  EXPECT_FINGERPRINT(halves_to_integers, 65536, 0xd4dbee5fb689f53d);
}

__device__ inline u64 raw(__half h) { return __hisnan(h) ? 0x7fff : __half_as_ushort(h); }
__device__ inline u64 raw(__nv_bfloat16 h) { return __hisnan(h) ? 0x7fff : __bfloat16_as_ushort(h); }
__device__ inline void make(unsigned u, __half *h) { *h = __ushort_as_half(static_cast<unsigned short>(u)); }
__device__ inline void make(unsigned u, __nv_bfloat16 *h) { *h = __ushort_as_bfloat16(static_cast<unsigned short>(u)); }

__device__ inline __half fused(__half a, __half b, __half c) { return __hfma(a, b, c); }
__device__ inline __nv_bfloat16 fused(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
#if defined(CUDA_ON_CPU) || __CUDA_ARCH__ >= 800
  return __hfma(a, b, c);
#else
  return a * b + c;
#endif
}

template <class T> struct arithmetic_of_16_bits {
  __device__ u64 operator()(u64 i) const {
    T a, b, c;
    u64 u = mix(i);
    if (i % 4) u = (u & 0x8fff8fff8fff) | 0x300030003000; /* mostly operands of one size */
    make(static_cast<unsigned>(u), &a);
    make(static_cast<unsigned>(u >> 16), &b);
    make(static_cast<unsigned>(u >> 32), &c);
    u64 r = raw(a + b) | raw(a - b) << 16 | raw(a * b) << 32 | raw(fused(a, b, c)) << 48;
    r = mix(r ^ raw(__hmax(a, b)) ^ raw(__hmin(a, b)) << 16 ^ raw(-a) << 32 ^ raw(__habs(b)) << 48);
    r = mix(r ^ static_cast<u64>((a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a > b) + 32 * (a >= b)));
    r = mix(r ^
            static_cast<u64>(__hltu(a, b) + 2 * __hequ(a, b) + 4 * __hneu(a, b) + 8 * __hne(a, b) + 16 * __hisnan(a)));
    a += c;
    b *= c;
    return mix(r ^ raw(a) ^ raw(b) << 16 ^ raw(hsqrt(__habs(c))) << 32 ^ raw(htrunc(c)) << 48);
  }
};

TEST(arithmetic_of_16_bit_floats_gives_recorded_bits) {
  cudaFuncAttributes attributes;
  EXPECT_OK(cudaFuncGetAttributes(&attributes, take_fingerprint<arithmetic_of_16_bits<__nv_bfloat16>>));
  EXPECT_FINGERPRINT(arithmetic_of_16_bits<__half>, 200000, 0x8b73f813a054b1ca);
  if (attributes.ptxVersion >= 80) EXPECT_FINGERPRINT(arithmetic_of_16_bits<__nv_bfloat16>, 200000, 0x5c6111f947c3066a);
}

template <class T> __host__ __device__ inline float used_as_a_number(T a) {
  T b = 2.0f, c(3), d = static_cast<T>(0.5), e;
  e = 4;
  float f = a;
  b += static_cast<T>(f);
  c = a * b + c - d / e;
  int i = static_cast<int>(c);
  if (a > b || !(a == a)) i = 0;
  ++e;
  return static_cast<float>(c) + static_cast<float>(i) + static_cast<float>(-e) + (a ? 100.0f : 0.0f);
}
template <class T> __global__ void use_as_numbers(float *out) { *out = used_as_a_number(static_cast<T>(1.5f)); }

TEST(sixteen_bit_floats_are_numbers) {
  device_array<float> out(1);
  EXPECT_OK(launch(use_as_numbers<__half>, 1, 1, 0, out.p));
  EXPECT_EQ(out.get()[0], 8.125f + 8 - 5 + 100);
  EXPECT_OK(launch(use_as_numbers<__nv_bfloat16>, 1, 1, 0, out.p));
  EXPECT_EQ(out.get()[0], 8.125f + 8 - 5 + 100);
  EXPECT_EQ(used_as_a_number(__float2half(1.5f)), 8.125f + 8 - 5 + 100);
  EXPECT_EQ(__low2float(__hadd2(__floats2half2_rn(1, 2), __float2half2_rn(3))), 4.0f);
  EXPECT_EQ(__bfloat162float(__nv_bfloat16(__float2half(1.5f))), 1.5f);
}

/* --- kernels and devices --- */

__global__ void with_shared(float *p) {
  __shared__ float s[300];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

TEST(kernels_have_attributes) {
  cudaFuncAttributes a;
  int blocks = 0, grid = 0, block = 0;
  EXPECT_OK(cudaFuncGetAttributes(&a, with_shared));
  EXPECT_EQ(a.sharedSizeBytes, size_t{1200});
  EXPECT_EQ(a.maxThreadsPerBlock, 1024);
  EXPECT(a.numRegs > 0 && a.binaryVersion >= 75);
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 256, 0));
  EXPECT(blocks >= 4 && blocks <= 8);
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 256, 40000));
  EXPECT(blocks >= 1 && blocks <= 5);
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, with_shared, 0, 0));
  EXPECT(block >= 256 && block <= 1024 && grid > 0);
}

TEST(devices_have_properties) {
  int count = 0, device = -1, value = 0;
  cudaDeviceProp p;
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT(count >= 1);
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
  EXPECT_OK(cudaGetDeviceProperties(&p, 0));
  EXPECT_EQ(p.warpSize, 32);
  EXPECT_EQ(p.maxThreadsPerBlock, 1024);
  EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  EXPECT_EQ(value, p.multiProcessorCount);
  EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  EXPECT_EQ(static_cast<size_t>(value), p.sharedMemPerBlockOptin);
  EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrL2CacheSize, 0));
  EXPECT_EQ(value, p.l2CacheSize);
  EXPECT_EQ(cudaGetDeviceProperties(&p, count), cudaErrorInvalidDevice);
  cudaGetLastError();
}

/* --- the stand-in alone --- */

#ifdef CUDA_ON_CPU

#include <pthread.h>
#include <unistd.h>

/* As EXPECT_FAULT, and the failure stays until the reset. */
template <class... P, class... A>
static void expect_failure(const char *file, int line, void (*kernel)(P...), dim3 grid, dim3 block, A... args) {
  for (const char *schedule : {"reversed", "random:1", "random:2", "forward"}) { /* the last one's words stay */
    with_settings settings(schedule);
    cudaError_t launched = cudaErrorUnknown;
    void *p = nullptr;
    said = stderr_of([&] { launched = launch(kernel, grid, block, 0, args...); });
    test_eq(launched, cudaSuccess, "the launch itself", "cudaSuccess", file, line);
    test_eq(cudaDeviceSynchronize(), cudaErrorLaunchFailure, schedule, "cudaErrorLaunchFailure", file, line);
    test_eq(cudaMalloc(&p, 4), cudaErrorLaunchFailure, "a later call", "cudaErrorLaunchFailure", file, line);
    test_eq(cudaGetLastError(), cudaErrorLaunchFailure, "the last error", "cudaErrorLaunchFailure", file, line);
    test_eq(cudaGetLastError(), cudaErrorLaunchFailure, "and again", "cudaErrorLaunchFailure", file, line);
    test_eq(cudaDeviceReset(), cudaSuccess, "the reset", "cudaSuccess", file, line);
    test_eq(launch(nothing, 1, 1, 0), cudaSuccess, "a launch after the reset", "cudaSuccess", file, line);
    test_eq(cudaDeviceSynchronize(), cudaSuccess, "its end", "cudaSuccess", file, line);
  }
}
static int anywhere[64]; /* for results of broken kernels: each failure frees what is allocated */
#define EXPECT_FAILURE(...) expect_failure(__FILE__, __LINE__, __VA_ARGS__)

/* --- broken kernels --- */

/* The error is CUDA's own for it, and the process goes on. On the host an assert ends it, as ever. */
__global__ void assert_below(int n) { NOTE(0), assert(static_cast<int>(threadIdx.x) < n); }

TEST(a_failed_assert_ends_the_launch) {
  if (in_child("a_failed_assert_ends_the_launch")) {
    assert(strlen("on the host") == 3);
    return;
  }
  said = stderr_of([&] { EXPECT_OK(launch(assert_below, 2, 32, 0, 28)); });
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorAssert);
  EXPECT_EQ(cudaGetLastError(), cudaErrorAssert);
  EXPECT_OK(cudaDeviceReset());
  EXPECT_SAID("error in kernel assert_below(int), grid (2,1,1), block (32,1,1)");
  EXPECT_SAID(": thread (28,0,0), ");
  EXPECT_SAID("Assertion `static_cast<int>(threadIdx.x) < n' failed.");
  EXPECT_SAID_LINE(0);
  EXPECT_OK(launch(assert_below, 2, 32, 0, 32));
  EXPECT_OK(cudaDeviceSynchronize());
  const child c = run_child("a_failed_assert_ends_the_launch", "");
  EXPECT_EQ(c.signal, SIGABRT);
  EXPECT_HAS(c.output.c_str(), "Assertion `strlen(\"on the host\") == 3' failed.");
}

template <class T> __global__ void early_return(T *p) {
  if (threadIdx.y == 3 && threadIdx.z == 1) return;
  NOTE(0), __syncthreads();
  if (p) *p = 1;
}

TEST(a_barrier_after_a_return_is_named) {
  EXPECT_FAILURE(early_return<float>, dim3(1, 1, 1), dim3(8, 4, 2), static_cast<float *>(nullptr));
  EXPECT_SAID("early_return<float>(float*)");
  EXPECT_SAID("grid (1,1,1), block (8,4,2)");
  EXPECT_SAID("block (0,0,0): divergent threads");
  EXPECT_SAID("thread (0,0,0) and 55 more wait at __syncthreads, ");
  EXPECT_SAID_LINE(0);
  EXPECT_SAID("thread (0,3,1) and 7 more have returned");
}

__global__ void block_that_diverges(int which) {
  if (blockIdx.x == 4 && blockIdx.y == 1 && threadIdx.x == 33) {
    if (which == 0) return;
    if (which == 1) NOTE(1), __syncthreads();
  } else
    NOTE(0), __syncthreads();
}

TEST(the_block_of_a_divergent_barrier_is_named) {
  EXPECT_FAILURE(block_that_diverges, dim3(7, 3), 64, 0);
  EXPECT_SAID("block (4,1,0): ");
  EXPECT_SAID("thread (33,0,0) has returned");
}

TEST(two_barriers_in_two_branches_are_named) {
  EXPECT_FAILURE(block_that_diverges, dim3(7, 3), 64, 1);
  EXPECT_SAID("block (4,1,0): divergent barrier: thread (33,0,0) is at __syncthreads, ");
  EXPECT_SAID("while 33 other threads wait at __syncthreads, ");
  EXPECT_SAID("the first thread (0,0,0)");
  EXPECT_SAID_LINE(0);
  EXPECT_SAID_LINE(1);
  EXPECT(lines[0] != lines[1]);
}

__global__ void absent_lanes() {
  if (threadIdx.x == 0) return;
  NOTE(0), __syncwarp();
}

TEST(absent_lanes_in_a_mask_are_named) {
  EXPECT_FAILURE(absent_lanes, 1, 5);
  EXPECT_SAID("thread (1,0,0) (lane 1): __syncwarp, ");
  EXPECT_SAID("has lanes 0xffffffe1 in its mask 0xffffffff that the block has not got");
  EXPECT_FAILURE(absent_lanes, 1, 32);
  EXPECT_SAID("has lanes 0x00000001 in its mask 0xffffffff that have returned");
  EXPECT_SAID_LINE(0);
}

__global__ void waits_everywhere() {
  if (threadIdx.x < 3)
    NOTE(0), __syncthreads();
  else if (threadIdx.x < 6)
    NOTE(1), __any_sync(0xff, 1);
  else
    NOTE(2), __shfl_xor_sync(0xff, 1.0f, 1);
}

__global__ void shuffle_two_sizes() {
  if (threadIdx.x < 16)
    __shfl_xor_sync(0xffffffff, 1.0f, 16);
  else
    __shfl_xor_sync(0xffffffff, 1.0, 16);
}

TEST(a_shuffle_of_two_sizes_does_not_fit) {
  EXPECT_FAILURE(shuffle_two_sizes, 1, 32);
  EXPECT_SAID("thread (0,0,0) and 15 more wait at __shfl_xor_sync");
  EXPECT_SAID("thread (16,0,0) and 15 more wait at __shfl_xor_sync");
}

TEST(each_group_of_waiting_threads_is_listed) {
  EXPECT_FAILURE(waits_everywhere, 1, 8);
  EXPECT_SAID("thread (0,0,0) and 2 more wait at __syncthreads, ");
  EXPECT_SAID("thread (3,0,0) and 2 more wait at __any_sync, ");
  EXPECT_SAID("mask 0x000000ff, lanes missing 0x000000c7");
  EXPECT_SAID("thread (6,0,0) and 1 more wait at __shfl_xor_sync, ");
  EXPECT_SAID_LINE(0);
  EXPECT_SAID_LINE(1);
  EXPECT_SAID_LINE(2);
}

__global__ void broken_shuffle(int which, int *out) {
  int lane = static_cast<int>(threadIdx.x % 32), v = lane;
  if (which == 0 && lane < 16) NOTE(0), v = __shfl_down_sync(__activemask(), v, 1);
  if (which == 2) NOTE(0), v = __shfl_sync(0xfffffffe, v, 1);
  if (which == 3) NOTE(0), v = __shfl_sync(0xffffffff, v, 1, 24);
  if (which == 4 && lane == 9) return;
  if (which == 4) NOTE(0), v = __shfl_xor_sync(0xffffffff, v, 1);
  out[threadIdx.x] = v;
}

TEST(a_shuffle_from_an_absent_lane_is_named) {
  EXPECT_FAILURE(broken_shuffle, 3, 64, 0, anywhere);
  EXPECT_SAID("broken_shuffle(int, int*)");
  EXPECT_SAID("thread (0,0,0) (lane 0): __shfl_down_sync with mask 0x00000001 reads lane 1, which is not in the mask");
  EXPECT_SAID("__activemask() is the thread alone here; use 0xffffffff");
  EXPECT_SAID_LINE(0);
  EXPECT_FAILURE(broken_shuffle, 1, 64, 2, anywhere);
  EXPECT_SAID("(lane 0): __shfl_sync");
  EXPECT_SAID("is not in its own mask 0xfffffffe");
  EXPECT_FAILURE(broken_shuffle, 1, 64, 3, anywhere);
  EXPECT_SAID("a width of 24");
  EXPECT_FAILURE(broken_shuffle, 1, 64, 4, anywhere);
  EXPECT_SAID("thread (10,0,0) (lane 10): __shfl_xor_sync, ");
  EXPECT_SAID("has lanes 0x00000200 in its mask 0xffffffff that have returned");
}

__global__ void sum_of_half(int *out) {
  if (threadIdx.x >= 16) return;
  int v = static_cast<int>(threadIdx.x);
  out[16 + threadIdx.x] = __shfl_down_sync(0xffff, v, 8);
  for (int d = 8; d; d /= 2) v += __shfl_down_sync(0xffff, v, d); /* lanes 8 to 15 have no use for their sums */
  out[threadIdx.x] = v;
}

TEST(a_lane_outside_the_mask_gives_no_value) {
  device_array<int> out(32);
  EXPECT_OK(launch(sum_of_half, 1, 32, 0, out.p));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(out.get()[0], 120);
  EXPECT_EQ(out.get()[16 + 7], 15);
  for (int lane = 8; lane < 16; lane++) EXPECT_EQ(out.get()[static_cast<size_t>(16 + lane)], -1);
}

__global__ void traps(int at) {
  if (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) == at) NOTE(0), __trap();
}

TEST(a_trap_ends_the_launch) {
  EXPECT_FAILURE(traps, 1000, 64, 64 * 500 + 7);
  EXPECT_SAID("block (500,0,0): thread (7,0,0): __trap");
  EXPECT_SAID_LINE(0);
}

__global__ void spins_on_a_failed_block(unsigned *ticket, volatile int *flag) {
  if (atomicAdd(ticket, 1u) == 0) __trap();
  while (!*flag) __nanosleep(100);
}

TEST(a_failure_ends_blocks_that_wait_for_the_failed_one) {
  for (const char *schedule : {"forward", "reversed", "random:1"})
    for (int workers = 1; workers < 4; workers++) {
      with_settings several(schedule, workers);
      device_array<unsigned> a(2);
      said = stderr_of([&] {
        EXPECT_OK(launch(spins_on_a_failed_block, 200, 64, 0, a.p, reinterpret_cast<volatile int *>(a.p + 1)));
      });
      EXPECT_SAID("__trap");
      EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
      EXPECT_OK(cudaDeviceReset());
    }
}

__global__ void returned_lanes(unsigned *out) {
  if (threadIdx.x % 2) return;
  if (threadIdx.x % 4) return;
  __syncthreads();
  unsigned sum = __reduce_add_sync(0xffffffff, threadIdx.x) + __shfl_sync(0xffffffff, threadIdx.x, 4);
  __syncthreads();
  out[threadIdx.x] = sum;
}

TEST(returned_threads_may_count_as_arrived) {
  device_array<unsigned> out(48);
  with_settings relaxed("forward");
  cuda_cpu::configure()->exited_arrives = true;
  EXPECT_OK(launch(returned_lanes, 1, 48, 0, out.p));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(out.get()[28], 112u + 4);
  EXPECT_EQ(out.get()[32], 152u + 36);
  EXPECT_EQ(out.get()[30], 0u);
  EXPECT_FAILURE(broken_shuffle, 1, 32, 4, anywhere);
  EXPECT_SAID("(lane 8): __shfl_xor_sync with mask 0xffffffff reads lane 9, which has returned");
}

TEST(what_is_not_supported_says_so) {
  said = stderr_of([&] {
    const void *untyped = reinterpret_cast<const void *>(nothing);
    EXPECT_EQ(cudaLaunchKernel(untyped, 1, 1, nullptr, 0, nullptr), cudaErrorNotSupported);
  });
  EXPECT_SAID("not supported: cudaLaunchKernel ");
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(a_typed_kernel_takes_pointers_to_its_arguments) {
  device_array<int> a(1);
  int *p = a.p, value = 9;
  void *args[] = {&p, &value};
  EXPECT_OK(cudaLaunchKernel(add_to, 1, 1, args, 0, nullptr));
  EXPECT_EQ(a.get()[0], 9);
}

/* --- schedules and workers --- */

__global__ void note_order(unsigned *turn, unsigned *order, int barriers) {
  for (int i = 0; i < barriers; i++) __syncthreads();
  unsigned n = blockDim.x * blockDim.y;
  order[atomicAdd(turn, 1u)] = blockIdx.x * n + threadIdx.y * blockDim.x + threadIdx.x;
}
static std::vector<unsigned> order_of(const char *schedule, unsigned blocks, dim3 block, int barriers) {
  with_settings s(schedule, 1);
  device_array<unsigned> turn(1), order(blocks * block.x * block.y);
  EXPECT_OK(launch(note_order, blocks, block, 0, turn.p, order.p, barriers));
  return order.get();
}
static bool is_permutation(std::vector<unsigned> v) {
  std::vector<bool> seen(v.size());
  for (unsigned i : v)
    if (i >= v.size() || seen[i])
      return false;
    else
      seen[i] = true;
  return true;
}

TEST(schedules_order_threads_and_blocks) {
  for (int barriers = 0; barriers < 3; barriers++) {
    const std::vector<unsigned> f = order_of("forward", 3, dim3(20, 5), barriers);
    const std::vector<unsigned> r = order_of("reversed", 3, dim3(20, 5), barriers);
    for (unsigned i = 0; i < 300; i++) {
      EXPECT_EQ(f[i], i);
      EXPECT_EQ(r[i], 299 - i);
    }
    const std::vector<unsigned> a = order_of("random:1", 1, 200, barriers), b = order_of("random:2", 1, 200, barriers);
    EXPECT(is_permutation(a));
    EXPECT(is_permutation(b));
    EXPECT(a != b);
  }
  const std::vector<unsigned> blocks = order_of("random:3", 100, 1, 0);
  EXPECT(is_permutation(blocks));
  unsigned in_place = 0;
  for (unsigned i = 0; i < 100; i++) in_place += blocks[i] == i;
  EXPECT(in_place < 20);
}

__global__ void leans_on_lockstep(unsigned *out) {
  __shared__ volatile unsigned s[32]; /* unsigned: poison may overflow */
  unsigned t = threadIdx.x;
  s[t] = 1;
  for (unsigned d = 16; d; d /= 2) /* no __syncwarp */
    if (t < d) s[t] += s[t + d];
  if (t == 0) *out = s[0];
}
__global__ void lost_update(int *p) {
  int v = *p;
  atomicAdd(p + 1, 1);
  *p = v + 1;
}

TEST(what_leans_on_lockstep_or_luck_fails_under_some_schedule) {
  device_array<unsigned> out(1);
  {
    with_settings s("forward");
    EXPECT_OK(launch(leans_on_lockstep, 1, 32, 0, out.p));
    EXPECT(out.get()[0] != 32u);
  }
  int wrong = 0;
  for (int seed = 0; seed < 8; seed++) {
    with_settings s(("random:" + std::to_string(seed)).c_str(), 1);
    device_array<int> p(2);
    EXPECT_OK(launch(lost_update, 1, 64, 0, p.p));
    EXPECT_EQ(p.get()[1], 64);
    wrong += p.get()[0] != 64;
  }
  EXPECT(wrong > 0);
}

static std::string output_of(const std::string &environment, const std::string &test) {
  char self[1000] = "", text[4000];
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return "";
  FILE *f = popen((environment + " ${EMULATOR-} '" + self + "' " + test + " 2>&1").c_str(), "r");
  const size_t n = f ? fread(text, 1, sizeof text, f) : 0;
  if (f) pclose(f);
  return std::string(text, n);
}

TEST(reports_its_settings_to_a_parent) {
  const cuda_cpu::settings *s = cuda_cpu::configure();
  if (getenv("TEST_STANDIN_CHILD"))
    printf("schedule %d seed %llu workers %d exited %d\n", s->schedule, s->seed, s->workers, s->exited_arrives);
}

TEST(the_environment_chooses_schedule_and_workers) {
  const std::string name = "reports_its_settings_to_a_parent", child = "TEST_STANDIN_CHILD=1 ";
  const std::string none = "env -u GPUKIT_CPU_SCHEDULE -u GPUKIT_CPU_THREADS -u GPUKIT_CPU_EXITED " + child;
  EXPECT_HAS(output_of(none, name).c_str(), "schedule 0 seed 0");
  EXPECT_HAS(output_of(none, name).c_str(), "exited 0");
  EXPECT_HAS(output_of("GPUKIT_CPU_SCHEDULE=reversed GPUKIT_CPU_THREADS=3 " + child, name).c_str(),
             "schedule 1 seed 0 workers 3");
  EXPECT_HAS(output_of("GPUKIT_CPU_SCHEDULE=random:42 GPUKIT_CPU_EXITED=arrived " + child, name).c_str(),
             "schedule 2 seed 42");
  EXPECT_HAS(output_of("GPUKIT_CPU_SCHEDULE=sideways " + child, name).c_str(),
             "GPUKIT_CPU_SCHEDULE=sideways is none of forward, reversed, random, random:SEED");
  const std::string some = output_of("GPUKIT_CPU_SCHEDULE=random " + child, name);
  EXPECT_HAS(some.c_str(), "CUDA stand-in: GPUKIT_CPU_SCHEDULE=random:"); /* to be tried again */
  EXPECT_HAS(some.c_str(), "schedule 2 seed ");
}

__global__ void note_worker(pthread_t *out) {
  if (threadIdx.x == 0) out[blockIdx.x] = pthread_self();
}

TEST(blocks_spread_over_workers_and_keep_off_the_caller) {
  with_settings two("forward", 2);
  device_array<pthread_t> who(20000);
  EXPECT_OK(launch(note_worker, 20000, 256, 0, who.p));
  const std::vector<pthread_t> w = who.get();
  size_t first = 0;
  for (pthread_t t : w) {
    EXPECT(!pthread_equal(t, pthread_self()));
    first += pthread_equal(t, w[0]) != 0;
  }
  EXPECT(first < w.size());
  EXPECT_OK(launch(note_worker, 10, 32, 0, who.p));
  for (size_t i = 0; i < 10; i++) EXPECT(pthread_equal(who.get()[i], who.get()[0]));
}

static void *launch_many(void *p) {
  for (int i = 0; i < 200; i++) launch(add_to, 1, 1, 0, static_cast<int *>(p), 1);
  return nullptr;
}

TEST(several_host_threads_may_launch) {
  device_array<int> a(1);
  pthread_t threads[4];
  for (pthread_t &t : threads) EXPECT_EQ(pthread_create(&t, nullptr, launch_many, a.p), 0);
  for (pthread_t &t : threads) pthread_join(t, nullptr);
  EXPECT_EQ(a.get()[0], 800);
}

/* Each block waits for the next one. */
template <bool Atomic> __global__ void wait_for_next_block(int *done) {
  volatile int *const next = done + blockIdx.x + 1;
  if (threadIdx.x == 0 && blockIdx.x + 1 < gridDim.x)
    while (Atomic ? !atomicAdd(done + blockIdx.x + 1, 0) : !*next) {}
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(done + blockIdx.x, 1);
}
TEST(blocks_may_wait_for_later_ones) {
  with_settings one("forward", 1);
  for (const unsigned blocks : {2u, 100u, 3u, 100u}) {
    device_array<int> done(blocks);
    EXPECT_OK(launch(blocks == 3 ? wait_for_next_block<false> : wait_for_next_block<true>, blocks, 32, 0, done.p));
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_EQ(done.get()[0], 1);
  }
}

/* --- the watchdog --- */

__global__ void wait_for_flag(volatile int *flag) {
  NOTE(0);
  while (!*flag)
    ;
}
TEST(a_kernel_that_waits_in_vain) {
  RUN_WITH("a_kernel_that_waits_in_vain", "GPUKIT_CPU_WATCHDOG=1");
  int *flag = nullptr;
  EXPECT_OK(cudaMallocManaged(&flag, sizeof *flag));
  *flag = 0;
  std::thread rescuer([=] {
    sleep(3);
    *const_cast<volatile int *>(flag) = 1;
  });
  said = stderr_of([=] { launch(wait_for_flag, 1, 32, 0, flag); });
  rescuer.join();
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_SAID("for 1 s no thread has returned or got past a barrier in kernel wait_for_flag(int volatile*)\n    block "
              "(0,0,0) ");
  lines[0]++;
  if (!emulated()) EXPECT_SAID("    block (0,0,0) thread (0,0,0) is at ");
  if (!emulated()) EXPECT_SAID_LINE(0);
  EXPECT_EQ(said.find("for 1 s"), said.rfind("for 1 s"));
  EXPECT_OK(cudaFree(flag));
}

/* --- poison --- */

template <class T> __global__ void look_before_writing(unsigned *stale, unsigned *fresh) {
  __shared__ T s[200];
  unsigned *words = reinterpret_cast<unsigned *>(s), *dynamic = static_cast<unsigned *>(cuda_cpu_dynamic_shared());
  const unsigned n = static_cast<unsigned>(200 * sizeof(T) / 4);
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
    atomicAdd(words[i] == 0x7fff7fff ? fresh : stale, 1u);
    words[i] = blockIdx.x;
  }
  for (unsigned i = threadIdx.x; i < 50; i += blockDim.x) {
    atomicAdd(dynamic[i] == 0x7fff7fff ? fresh : stale, 1u);
    dynamic[i] = 1;
  }
}

TEST(memory_is_poisoned_for_each_block_and_allocation) {
  device_array<unsigned> count(2);
  for (int i = 0; i < 3; i++) {
    EXPECT_OK(launch(look_before_writing<float>, 100, 64, 200, count.p, count.p + 1));
    EXPECT_OK(launch(look_before_writing<double>, 100, 64, 200, count.p, count.p + 1));
  }
  EXPECT_EQ(count.get()[0], 0u);
  EXPECT_EQ(count.get()[1], 3u * 100 * (200 + 50 + 400 + 50));
  float *p, f;
  double d;
  EXPECT_OK(cudaMalloc(&p, 1001));
  memcpy(&f, reinterpret_cast<char *>(p) + 996, 4);
  memcpy(&d, p, 8);
  EXPECT(f != f);
  EXPECT(d != d);
  EXPECT_OK(cudaFree(p));
}

#ifdef CUDA_CPU_ASAN
extern "C" int __asan_address_is_poisoned(void const volatile *);
__global__ void look_beyond(int bytes, int *out) {
  const char *s = static_cast<const char *>(cuda_cpu_dynamic_shared());
  out[0] = __asan_address_is_poisoned(s + bytes - 1);
  out[1] = __asan_address_is_poisoned(s + bytes);
}
TEST(asan_sees_the_end_of_dynamic_shared_memory) {
  device_array<int> out(2);
  for (int bytes : {1, 7, 400, 20000}) {
    EXPECT_OK(launch(look_beyond, 1, 1, static_cast<size_t>(bytes), bytes, out.p));
    EXPECT_EQ(out.get()[0], 0);
    EXPECT_EQ(out.get()[1], 1);
  }
}
#endif

/* --- the pretended device --- */

TEST(limits_are_those_of_sm_90) {
  cudaFuncAttributes a;
  cudaDeviceProp p;
  int blocks = 0, grid = 0, block = 0;
  size_t bytes = 0;
  EXPECT_OK(cudaGetDeviceProperties(&p, 0));
  EXPECT_EQ(std::string(p.name), "CPU stand-in (H200, sm_90)");
  EXPECT_EQ(p.major * 10 + p.minor, 90);
  EXPECT_EQ(p.multiProcessorCount, 132);
  EXPECT_EQ(p.sharedMemPerBlockOptin, size_t{232448});
  EXPECT_OK(cudaFuncGetAttributes(&a, nothing));
  EXPECT_EQ(a.numRegs, 32);
  EXPECT_EQ(a.ptxVersion, 90);
  EXPECT_EQ(a.maxDynamicSharedSizeBytes, 49152);
  const int expected[][3] = {{32, 0, 32}, {256, 0, 8}, {1024, 0, 2}, {96, 0, 21}, {256, 40000, 5}, {256, 232448, 1}};
  for (const auto &e : expected) {
    EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, e[0], static_cast<size_t>(e[1])));
    EXPECT_EQ(blocks, e[2]);
  }
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, nothing, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 264);
  EXPECT_OK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, nothing, 2, 256));
  EXPECT_EQ(bytes, size_t{115712});
}

/* --- is what was recorded true? An independent reference for conversions and roundings --- */

/* f to a format with this many bits of significand (the leading one included) and this least exponent, by exact
 * arithmetic in double and the rounding of nearbyint. */
static unsigned slow_narrow(float f, int significand, int least_exponent) {
  const unsigned sign = signbit(f) ? 0x8000 : 0, infinity = significand == 11 ? 0x7c00 : 0x7f80;
  int exponent;
  if (f == 0) return sign;
  if (isnan(f)) return 0x7fff;
  if (isinf(f)) return sign | infinity;
  frexp(static_cast<double>(f), &exponent);
  if (exponent - 1 < least_exponent) exponent = least_exponent + 1;
  const double last = ldexp(1, exponent - significand), r = nearbyint(fabs(static_cast<double>(f)) / last);
  /* r counts units of the last bit, and in bits a binade is 2^(significand - 1) such units */
  const double bits16 = r + (exponent - 1 - least_exponent) * ldexp(1, significand - 1);
  return sign | (bits16 > infinity ? infinity : static_cast<unsigned>(bits16));
}
static double slow_widen(unsigned h, int significand, int least_exponent) {
  const unsigned low = h & ((1u << (significand - 1)) - 1), exponent = (h & 0x7fff) >> (significand - 1);
  double v = exponent
                 ? ldexp(low + ldexp(1, significand - 1), static_cast<int>(exponent) + least_exponent - significand)
                 : ldexp(low, least_exponent - significand + 1);
  return h & 0x8000 ? -v : v;
}
static void check_narrow(unsigned u) {
  const float f = cuda_cpu::float_of(u);
  const unsigned h = __half_as_ushort(__float2half(f)), b = __bfloat16_as_ushort(__float2bfloat16(f));
  if (h != slow_narrow(f, 11, -14)) test_fail(__FILE__, __LINE__, "half of float " + std::to_string(u));
  if (b != slow_narrow(f, 8, -126)) test_fail(__FILE__, __LINE__, "bfloat16 of float " + std::to_string(u));
}

TEST(conversions_match_a_slow_reference) {
  for (unsigned i = 0; i < 65536; i++) {
    const float h = __half2float(__ushort_as_half(static_cast<unsigned short>(i)));
    const float b = __bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(i)));
    if ((i & 0x7c00) == 0x7c00)
      EXPECT(i & 0x3ff ? cuda_cpu::bits_of(h) == 0x7fffffff : isinf(h) && (h < 0) == (i >> 15));
    else
      EXPECT_EQ(static_cast<double>(h), slow_widen(i, 11, -14));
    if ((i & 0x7f80) == 0x7f80)
      EXPECT(i & 0x7f ? cuda_cpu::bits_of(b) == i << 16 : isinf(b) && (b < 0) == (i >> 15));
    else
      EXPECT_EQ(static_cast<double>(b), slow_widen(i, 8, -126));
    for (u64 k = 0; k < 8; k++) {
      check_narrow(near_tie<13>(k, cuda_cpu::bits_of(h)));
      check_narrow(near_tie<16>(k, i << 16));
    }
  }
  for (u64 u = 0; u < u64{1} << 32; u += 65521 * 7) check_narrow(static_cast<unsigned>(u));
}

TEST(directed_roundings_enclose_the_exact_result) {
  for (u64 i = 0; i < 20000; i++) {
    /* exponents so close that sums and products of floats are exact in double */
    const float a = cuda_cpu::float_of((static_cast<unsigned>(mix(2 * i)) & 0x803fffff) | 0x3f000000);
    const float b = cuda_cpu::float_of((static_cast<unsigned>(mix(2 * i + 1)) & 0x83bfffff) | 0x3c000000);
    const double exact[] = {static_cast<double>(a) + static_cast<double>(b),
                            static_cast<double>(a) * static_cast<double>(b)};
    const float rounded[][4] = {{__fadd_rd(a, b), __fadd_ru(a, b), __fadd_rn(a, b), __fadd_rz(a, b)},
                                {__fmul_rd(a, b), __fmul_ru(a, b), __fmul_rn(a, b), __fmul_rz(a, b)}};
    for (int k = 0; k < 2; k++) {
      const float *r = rounded[k];
      const double low = static_cast<double>(r[0]), high = static_cast<double>(r[1]);
      EXPECT(low <= exact[k] && exact[k] <= high);
      EXPECT(low == high ? low == exact[k] : nextafterf(r[0], INFINITY) == r[1]);
      EXPECT_EQ(r[2], static_cast<float>(exact[k]));
      EXPECT_EQ(r[3], exact[k] < 0 ? r[1] : r[0]);
    }
  }
}

#endif
