/* What the stand-in says of wrong accesses, of uninitialised memory, and of what is still held at the end. */
#include "test.h"

#include <cuda_runtime.h>

#ifndef CUDA_ON_CPU
TEST(memory_of_the_stand_in) { SKIP("about the stand-in alone"); }
#else

#include <assert.h>
#include <signal.h>
#include <string.h>
#include "standin.h"

#ifdef CUDA_CPU_ASAN
static const bool has_asan = true;
#else
static const bool has_asan = false;
#endif

/* A pointer of which the compiler no longer knows what it points to. */
template <class T> static T *unknown(T *p) {
  asm("" : "+r"(p));
  return p;
}

/* --- crashes, with and without a sanitizer --- */

__device__ __attribute__((noinline)) void use_much_stack(int n) {
  volatile char large[400000];
  large[0] = large[n] = 1;
}
__global__ void crash(int how) {
  if (blockIdx.x != 3 || threadIdx.x != 5 || threadIdx.y != 1) return;
  if (how == 0) *unknown(static_cast<volatile int *>(nullptr)) = 1;
  if (how == 1) use_much_stack(7);
  if (how == 2) abort();
  if (how == 3) raise(SIGFPE);
  if (how == 4) raise(SIGSEGV);
}
static void run_crash(const char *how) { launch(crash, 8, dim3(8, 2), 0, atoi(how)); }

TEST(a_crash_in_a_kernel_says_where) {
  const char *const name = "a_crash_in_a_kernel_says_where";
  if (in_child(name)) return run_crash(getenv("HOW"));
  const int signals[] = {SIGSEGV, SIGSEGV, SIGABRT, SIGFPE};
  for (int how = 0; how < 4; how++) {
    if (has_asan && how > 1) continue; /* left to the sanitizers, which do not handle these signals */
    const child c = run_child(name, ("HOW=" + std::to_string(how)).c_str());
    if (has_asan)
      EXPECT_EQ(c.status, 1);
    else
      EXPECT_EQ(c.signal, signals[how]);
    EXPECT_HAS(c.output.c_str(), "in kernel crash(int), grid (8,1,1), block (8,2,1)\n");
    EXPECT_HAS(c.output.c_str(), "block (3,0,0): thread (5,1,0)");
    if (how == 0 && !has_asan) EXPECT_HAS(c.output.c_str(), "wrong access to 0x0 in");
    if (how == 0 && !has_asan) EXPECT_HAS(c.output.c_str(), "a null pointer");
    if (how == 1 && !has_asan) EXPECT_HAS(c.output.c_str(), "the thread's stack of 256 KiB is full");
    if (how == 2) EXPECT_HAS(c.output.c_str(), "abort in kernel");
  }
  EXPECT_HAS(run_child(name, "HOW=0 GPUKIT_CPU_SCHEDULE=random:5").output.c_str(), "(GPUKIT_CPU_SCHEDULE=random:5)\n");
}

static void leave_with_7(int) { _exit(7); }
TEST(the_program_keeps_its_own_handler) {
  const char *const name = "the_program_keeps_its_own_handler";
  if (in_child(name)) {
    signal(SIGSEGV, leave_with_7);
    return run_crash("4");
  }
  const child c = run_child(name, "");
  EXPECT_EQ(c.status, 7);
  EXPECT_EQ(c.output, std::string());
}

__global__ void write_one(int *p) { *p = 1; }
TEST(protected_memory_is_not_the_hosts) {
  const char *const name = "protected_memory_is_not_the_hosts";
  if (in_child(name)) {
    int *p = nullptr, *other = nullptr, *managed = nullptr, host[4] = {1, 2, 3, 4};
    EXPECT_OK(cudaMalloc(&other, 4));
    EXPECT_OK(cudaMalloc(&p, sizeof host));
    EXPECT_OK(cudaMallocManaged(&managed, 4));
    EXPECT_OK(cudaMemcpy(p, host, sizeof host, cudaMemcpyHostToDevice));
    EXPECT_OK(launch(write_one, 1, 1, 0, p));
    EXPECT_OK(launch(write_one, 1, 1, 0, managed));
    EXPECT_EQ(*managed, 1);
    EXPECT_OK(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT_EQ(host[0] + host[1], 3);
    if (!strcmp(getenv("HOW"), "read")) printf("%d\n", *unknown(static_cast<volatile int *>(p + 2)));
    EXPECT_OK(cudaFree(p));
    if (!strcmp(getenv("HOW"), "freed")) launch(write_one, 1, 1, 0, p);
    return;
  }
  EXPECT_PASSED(run_child(name, "GPUKIT_CPU_PROTECT=1 HOW=none"));
  if (!has_asan) EXPECT_PASSED(run_child(name, "GPUKIT_CPU_PROTECT=0 HOW=read"));
  child c = run_child(name, "GPUKIT_CPU_PROTECT=1 HOW=read");
  EXPECT(has_asan ? c.status == 1 : c.signal == SIGSEGV);
  EXPECT_HAS(c.output.c_str(), "by the host\n  byte 8 of device memory of 16 bytes, allocation 2, by cudaMalloc\n");
  c = run_child(name, "GPUKIT_CPU_PROTECT=1 HOW=freed");
  EXPECT(has_asan ? c.status == 1 : c.signal == SIGSEGV);
  EXPECT_HAS(c.output.c_str(), "in kernel write_one(int*)");
  if (!has_asan) EXPECT_HAS(c.output.c_str(), "byte 0 of freed device memory of 16 bytes, allocation 2, by cudaMalloc");
}

/* --- out of bounds, under ASan --- */

__device__ __attribute__((noinline)) float share_in_a_function(int i) {
  __shared__ float inner[10];
  inner[threadIdx.x % 10] = 1;
  return unknown(inner)[i];
}
template <class T> __global__ void overrun(T *global, const char *where, int i) {
  __shared__ T first[33];
  __shared__ T second[64];
  T *dynamic = static_cast<T *>(cuda_cpu_dynamic_shared());
  unknown(first)[threadIdx.x] = global[0];
  unknown(second)[threadIdx.x] = unknown(first)[threadIdx.x];
  const bool me = blockIdx.x == 6 && threadIdx.x == 9;
  if (me && !strcmp(where, "global")) global[i] = 1;
  if (me && !strcmp(where, "first")) unknown(first)[i] = 1;
  if (me && !strcmp(where, "second")) unknown(second)[i] = 1;
  if (me && !strcmp(where, "declared")) first[i] = 1;
  if (me && !strcmp(where, "dynamic")) unknown(dynamic)[i] = 1;
  if (me && !strcmp(where, "function")) global[1] = static_cast<T>(share_in_a_function(i));
  __syncthreads();
  if (threadIdx.x == 0) global[2] = unknown(second)[1];
}
__global__ void overrun_plainly(int i) {
  __shared__ short only[32];
  unknown(only)[threadIdx.x] = 1;
  if (blockIdx.x == 6 && threadIdx.x == 9) unknown(only)[i] = 1;
}

TEST(asan_sees_every_kind_of_overrun) {
  const char *const name = "asan_sees_every_kind_of_overrun";
  if (!has_asan) SKIP("not built with AddressSanitizer");
  if (in_child(name)) {
    const char *where = getenv("WHERE");
    const int i = atoi(getenv("INDEX"));
    float *p = nullptr;
    double *d = nullptr;
    EXPECT_OK(cudaMalloc(&p, 100 * sizeof *p));
    EXPECT_OK(cudaMalloc(&d, 100 * sizeof *d));
    EXPECT_OK(cudaMemset(p, 0, 100 * sizeof *p));
    EXPECT_OK(cudaMemset(d, 0, 100 * sizeof *d));
    EXPECT_OK(launch(overrun<double>, 8, 32, 20 * sizeof *d, d, "nowhere", 0));
    if (!strcmp(where, "freed")) EXPECT_OK(cudaFree(p));
    if (!strcmp(where, "plain"))
      EXPECT_OK(launch(overrun_plainly, 800, 32, 0, i));
    else
      EXPECT_OK(launch(overrun<float>, 800, 32, 20 * sizeof *p, p, where, i));
    return;
  }
  const struct {
    const char *where;
    int last, beyond;
    const char *said;
  } cases[] = {
      {"global", 99, 100, "byte 400 of device memory of 400 bytes, allocation 1, by cudaMalloc"},
      {"first", 32, 33, "byte 132 of __shared__ overrun<float>(float*, char const*, int)::first, which has 132"},
      {"second", 63, 64, "byte 256 of __shared__ overrun<float>(float*, char const*, int)::second, which has 256"},
      {"declared", 32, 40, "undefined behaviour in kernel void overrun<float>"},
      {"dynamic", 19, 20, "byte 80 of dynamic shared memory, of which the launch asked for 80 bytes"},
      {"dynamic", 0, -1, "4 bytes before dynamic shared memory"},
      {"function", 9, 10, "byte 40 of __shared__ share_in_a_function(int)::inner, which has 40 bytes"},
      {"plain", 31, 32, "byte 64 of __shared__ overrun_plainly(int)::only, which has 64 bytes"},
  };
  for (const auto &k : cases) {
    const std::string where = std::string("GPUKIT_CPU_THREADS=2 WHERE=") + k.where + " INDEX=";
    EXPECT_PASSED(run_child(name, (where + std::to_string(k.last)).c_str()));
    const child c = run_child(name, (where + std::to_string(k.beyond)).c_str());
    EXPECT_EQ(c.status, 1);
    EXPECT_HAS(c.output.c_str(), "\n  block (6,0,0): thread (9,0,0)");
    const size_t at = c.output.find("CUDA stand-in: ");
    EXPECT_HAS(at == std::string::npos ? c.output.c_str() : c.output.substr(at).c_str(), k.said);
  }
  const child c = run_child(name, "WHERE=freed INDEX=0");
  EXPECT_EQ(c.status, 1);
  EXPECT_HAS(c.output.c_str(), "heap-use-after-free");
  EXPECT_HAS(c.output.c_str(), "in kernel void overrun<float>");
}

__global__ void addresses(size_t *out) {
  __shared__ __align__(128) char after[3];
  alignas(64) __shared__ char before[3];
  static __shared__ double twice[5];
  out[0] = reinterpret_cast<size_t>(unknown(after)) % 128;
  out[1] = reinterpret_cast<size_t>(unknown(before)) % 64;
  out[2] = reinterpret_cast<size_t>(unknown(twice)) % 8;
}
TEST(shared_variables_keep_size_and_alignment) {
  device_array<size_t> out(3);
  cudaFuncAttributes a;
  EXPECT_OK(launch(addresses, 1, 1, 0, out.p));
  for (size_t rest : out.get()) EXPECT_EQ(rest, size_t{0});
  EXPECT_OK(cudaFuncGetAttributes(&a, addresses));
  EXPECT_EQ(a.sharedSizeBytes, size_t{3 + 3 + 40});
}

/* --- uninitialised memory --- */

__global__ void count_poison(const unsigned *p, unsigned words, unsigned *count) {
  __shared__ unsigned fixed[70];
  const unsigned *dynamic = static_cast<const unsigned *>(cuda_cpu_dynamic_shared());
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) atomicAdd(count, p[i] == 0x7fff7fff ? 1u : 0u);
  for (unsigned i = threadIdx.x; i < 70; i += blockDim.x) {
    atomicAdd(count + 1, unknown(fixed)[i] == 0x7fff7fff ? 1u : 0u);
    atomicAdd(count + 2, dynamic[i] == 0x7fff7fff ? 1u : 0u);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 70; i += blockDim.x) unknown(fixed)[i] = const_cast<unsigned *>(dynamic)[i] = 0;
}

static void expect_poison(unsigned *p, unsigned words) {
  device_array<unsigned> count(3);
  EXPECT_OK(launch(count_poison, 10, 32, 280, p, words, count.p));
  EXPECT_EQ(count.get()[0], words * 10);
  EXPECT_EQ(count.get()[1], 700u);
  EXPECT_EQ(count.get()[2], 700u);
  EXPECT_OK(cudaMemset(p, 0, words * 4));
}

TEST(fresh_memory_is_poison) {
  unsigned *p = nullptr;
  cudaMemPool_t pool = nullptr;
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  EXPECT_OK(cudaMemPoolCreate(&pool, &props));
  for (int again = 0; again < 3; again++) { /* at addresses that were used before, too */
    EXPECT_OK(cudaMalloc(&p, 4000));
    expect_poison(p, 1000);
    EXPECT_OK(cudaFree(p));
    EXPECT_OK(cudaMallocAsync(&p, 4000, nullptr));
    expect_poison(p, 1000);
    EXPECT_OK(cudaFreeAsync(p, nullptr));
    EXPECT_OK(cudaMallocFromPoolAsync(&p, 4000, pool, nullptr));
    expect_poison(p, 1000);
    EXPECT_OK(cudaFreeAsync(p, nullptr));
    EXPECT_OK(cudaMallocHost(&p, 4000));
    expect_poison(p, 1000);
    EXPECT_OK(cudaFreeHost(p));
    EXPECT_OK(cudaMallocManaged(&p, 4000));
    expect_poison(p, 1000);
    EXPECT_OK(cudaFree(p));
  }
  EXPECT_OK(cudaMemPoolDestroy(pool));
}

__global__ void write_one_word(unsigned *stale) {
  __shared__ unsigned sparse[1000];
  if (threadIdx.x == 0 && unknown(sparse)[17] != 0x7fff7fff) atomicAdd(stale, 1u);
  __syncthreads();
  unknown(sparse)[17] = 1;
}
TEST(one_word_of_the_last_block_is_poison_again) {
  device_array<unsigned> stale(1);
  for (int i = 0; i < 3; i++) EXPECT_OK(launch(write_one_word, 100, 64, 0, stale.p));
  EXPECT_EQ(stale.get()[0], 0u);
}

/* --- what is still held at the end --- */

struct late_owner { /* made before the first call, so destroyed after what later calls have registered */
  void *p = nullptr;
  ~late_owner() {
    if (p) cudaFree(p);
  }
};
static late_owner late;

TEST(what_is_held_at_the_end_is_listed) {
  const char *const name = "what_is_held_at_the_end_is_listed";
  if (in_child(name)) {
    const bool leaks = !strcmp(getenv("HOW"), "leaks");
    void *p[4];
    cudaStream_t stream[2];
    cudaEvent_t event;
    cudaGraph_t graph;
    static cudaGraphExec_t exec; /* static: LeakSanitizer shall not look for it too */
    static cudaMemPool_t empty_pool, pool;
    cudaMemPoolProps of_device = cudaMemPoolProps();
    of_device.allocType = cudaMemAllocationTypePinned;
    of_device.location.type = cudaMemLocationTypeDevice;
    EXPECT_OK(cudaMemPoolCreate(&empty_pool, &of_device));
    EXPECT_OK(cudaMemPoolCreate(&pool, &of_device));
    EXPECT_OK(cudaMalloc(&late.p, 1));
    EXPECT_OK(cudaMalloc(&p[0], 1000));
    EXPECT_OK(cudaHostAlloc(&p[1], 200, 0));
    EXPECT_OK(cudaMallocManaged(&p[2], 30));
    EXPECT_OK(cudaMallocFromPoolAsync(&p[3], 4, pool, nullptr));
    EXPECT_OK(cudaStreamCreate(&stream[0]));
    EXPECT_OK(cudaStreamCreateWithFlags(&stream[1], cudaStreamNonBlocking));
    EXPECT_OK(cudaEventCreate(&event));
    EXPECT_OK(cudaStreamBeginCapture(stream[1], cudaStreamCaptureModeGlobal));
    EXPECT_OK(cudaStreamEndCapture(stream[1], &graph));
    EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_OK(cudaStreamDestroy(stream[0]));
    if (leaks) return;
    EXPECT_OK(cudaFree(p[0]));
    EXPECT_OK(cudaFreeHost(p[1]));
    EXPECT_OK(cudaFree(p[2]));
    EXPECT_OK(cudaFreeAsync(p[3], nullptr));
    EXPECT_OK(cudaStreamDestroy(stream[1]));
    EXPECT_OK(cudaEventDestroy(event));
    EXPECT_OK(cudaGraphDestroy(graph));
    EXPECT_OK(cudaGraphExecDestroy(exec));
    return;
  }
  const std::string quiet = "1 passed, 0 failed\n";
  EXPECT_EQ(run_child(name, "HOW=leaks").output, quiet);
  EXPECT_EQ(run_child(name, "GPUKIT_CPU_LEAKS=1 HOW=none").output, quiet);
  const child c = run_child(name, "GPUKIT_CPU_LEAKS=1 HOW=leaks");
  EXPECT_EQ(c.status, 0);
  EXPECT_HAS(c.output.c_str(), "9 still held at the end of the program, 1234 bytes of memory\n");
  EXPECT_HAS(c.output.c_str(), "1000 bytes, allocation 2, by cudaMalloc\n");
  EXPECT_HAS(c.output.c_str(), "200 bytes, allocation 3, by cudaHostAlloc\n");
  EXPECT_HAS(c.output.c_str(), "30 bytes, allocation 4, by cudaMallocManaged\n");
  EXPECT_HAS(c.output.c_str(), "4 bytes, allocation 5, by cudaMallocFromPoolAsync\n");
  EXPECT_HAS(c.output.c_str(), "  stream 2 at ");
  EXPECT_HAS(c.output.c_str(), ", by cudaStreamCreateWithFlags\n");
  EXPECT_HAS(c.output.c_str(), "  event 1 at ");
  EXPECT_HAS(c.output.c_str(), "  memory pool 2 at ");
  EXPECT(!strstr(c.output.c_str(), "  memory pool 1 at ")); /* which has no memory */
  EXPECT_HAS(c.output.c_str(), "  graph 1 at ");
  EXPECT_HAS(c.output.c_str(), ", by cudaStreamEndCapture\n");
  EXPECT_HAS(c.output.c_str(), "  executable graph 1 at ");
}

#ifdef CUDA_CPU_ASAN
TEST(what_the_program_printed_comes_before_a_leak) {
  const char *const name = "what_the_program_printed_comes_before_a_leak";
  if (emulated()) SKIP("LeakSanitizer cannot look into an emulated process");
  if (in_child(name)) {
    atexit([] { /* the test itself has no buffer */
                setvbuf(stdout, nullptr, _IOFBF, 4096);
                printf("printed\n");
    });
    *unknown(static_cast<char *>(malloc(13))) = 1;
    return;
  }
  const child c = run_child(name, "ASAN_OPTIONS=detect_leaks=1");
  EXPECT_HAS(c.output.c_str(), "LeakSanitizer: detected memory leaks");
  EXPECT(c.output.find("printed\n") < c.output.find("LeakSanitizer"));
}
#endif

#endif
