/* Section 3 of the header: devices, occupancy, timers, bench, scratch.
 * Tests named provoke_... make CUDA calls that fail, which compute-sanitizer reports as errors of the program. */
#include "test.h"
#include "child.h"

#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#include "data.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

static void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
static double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
/* Where programs share the GPU under a tool, an event in front of what sleeps may be recorded late. */
static bool took(double ms, double least) { return ms > (test_slowed() ? -1 : least); }

__global__ void nothing(float *) {}
__global__ void with_20k_static(float *out) {
  __shared__ float s[5120];
  for (unsigned i = threadIdx.x; i < 5120; i += blockDim.x) s[i] = out[i];
  __syncthreads();
  out[threadIdx.x] = s[5119 - threadIdx.x];
}
__global__ void spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {}
}

/* --- devices --- */

TEST(device_fields_are_the_attributes) {
  int count = 0, current = 0;
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT_OK(cudaGetDevice(&current));
  for (int device = -1; device < count; device++) {
    const int number = device < 0 ? current : device;
    gk_device_info d;
    memset(&d, 0x55, sizeof(d));
    EXPECT_OK(gk_device_query(device, &d));
    EXPECT_EQ(std::string(gk_error_detail()), "");
    const struct {
      size_t value;
      cudaDeviceAttr attribute;
      size_t least, most;
    } fields[] = {{size_t(d.major), cudaDevAttrComputeCapabilityMajor, 5, 20},
                  {size_t(d.minor), cudaDevAttrComputeCapabilityMinor, 0, 9},
                  {size_t(d.sms), cudaDevAttrMultiProcessorCount, 1, 1000},
                  {size_t(d.threads_per_warp), cudaDevAttrWarpSize, 32, 32},
                  {size_t(d.max_threads_per_block), cudaDevAttrMaxThreadsPerBlock, 1024, 1024},
                  {size_t(d.max_threads_per_sm), cudaDevAttrMaxThreadsPerMultiProcessor, 1024, 4096},
                  {size_t(d.max_blocks_per_sm), cudaDevAttrMaxBlocksPerMultiprocessor, 8, 64},
                  {size_t(d.max_block_x), cudaDevAttrMaxBlockDimX, 1024, 1024},
                  {size_t(d.max_block_y), cudaDevAttrMaxBlockDimY, 1024, 1024},
                  {size_t(d.max_block_z), cudaDevAttrMaxBlockDimZ, 64, 64},
                  {size_t(d.max_grid_x), cudaDevAttrMaxGridDimX, 0x7fffffff, 0x7fffffff},
                  {size_t(d.max_grid_y), cudaDevAttrMaxGridDimY, 65535, 65535},
                  {size_t(d.max_grid_z), cudaDevAttrMaxGridDimZ, 65535, 65535},
                  {size_t(d.registers_per_block), cudaDevAttrMaxRegistersPerBlock, 32768, 1 << 20},
                  {size_t(d.registers_per_sm), cudaDevAttrMaxRegistersPerMultiprocessor, 32768, 1 << 20},
                  {d.shared_per_block, cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10, 1 << 20},
                  {d.shared_per_block_optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 48 << 10, 1 << 20},
                  {d.shared_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 48 << 10, 1 << 20},
                  {d.shared_reserved_per_block, cudaDevAttrReservedSharedMemoryPerBlock, 0, 4096},
                  {d.constant_bytes, cudaDevAttrTotalConstantMemory, 65536, 65536},
                  {d.l2_bytes, cudaDevAttrL2CacheSize, 1 << 18, 1 << 30},
                  {size_t(d.clock_khz), cudaDevAttrClockRate, 100000, 10000000},
                  {size_t(d.memory_khz), cudaDevAttrMemoryClockRate, 0, 50000000},
                  {size_t(d.bus_bits), cudaDevAttrGlobalMemoryBusWidth, 0, 65536},
                  {size_t(d.managed_memory), cudaDevAttrManagedMemory, 0, 1},
                  {size_t(d.memory_pools), cudaDevAttrMemoryPoolsSupported, 0, 1},
                  {size_t(d.cooperative_launch), cudaDevAttrCooperativeLaunch, 0, 1},
                  {size_t(d.unified_addressing), cudaDevAttrUnifiedAddressing, 0, 1},
                  {size_t(d.integrated), cudaDevAttrIntegrated, 0, 1},
                  {size_t(d.async_engines), cudaDevAttrAsyncEngineCount, 0, 64}};
    for (auto &f : fields) {
      int value = -1;
      EXPECT_OK(cudaDeviceGetAttribute(&value, f.attribute, number));
      if (f.value != static_cast<size_t>(value) || f.value < f.least || f.value > f.most)
        test_fail(__FILE__, __LINE__,
                  "the field of attribute " + std::to_string(f.attribute) + " is " + std::to_string(f.value));
    }
    EXPECT_EQ(d.device, number);
    EXPECT(strlen(d.name) > 0 && strlen(d.name) < sizeof(d.name));
    EXPECT(d.free_bytes <= d.global_bytes && d.global_bytes > 1 << 28);
    /* double data rate, bits to bytes */
    const double peak = d.memory_khz * 1e3 * 2 * d.bus_bits / 8 / 1e9;
    EXPECT(d.peak_gbs > peak * 0.999 && d.peak_gbs < peak * 1.001 + 1e-9);
    int still = -1;
    EXPECT_OK(cudaGetDevice(&still));
    EXPECT_EQ(still, current);
  }
  size_t free_bytes, total;
  gk_device_info d;
  EXPECT_OK(gk_device_query(-1, &d));
  EXPECT_OK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT_EQ(d.global_bytes, total);
}

TEST(devices_that_do_not_exist) {
  int count = 0;
  EXPECT_OK(cudaGetDeviceCount(&count));
  gk_device_info d;
  memset(&d, 0x55, sizeof(d));
  EXPECT_FAILS(cudaErrorInvalidDevice, "gk_device_query: device ", gk_device_query(count, &d));
  EXPECT_FAILS(cudaErrorInvalidDevice, "device 1000 of ", gk_device_query(1000, &d));
  EXPECT_FAILS(cudaErrorInvalidDevice, "device -2 of ", gk_device_query(-2, &d));
  EXPECT_EQ(d.sms, 0x55555555);
  EXPECT_FAILS(cudaErrorInvalidValue, "info is NULL", gk_device_query(0, NULL));
  EXPECT_FAILS(cudaErrorInvalidValue, "device is NULL", gk_device_best(NULL));
  EXPECT_EQ(printed_by([] { (void)gk_device_print(1000); }), std::string());
  EXPECT_FAILS(cudaErrorInvalidDevice, "gk_device_print: device 1000 of ", gk_device_print(1000));
}

/* Another process has a device to itself. */
TEST(devices_that_cannot_be_used) {
#ifdef CUDA_ON_CPU
  int device_count = 0, best = -1;
  gk_device_info d;
  EXPECT_OK(cudaGetDeviceCount(&device_count));
  if (device_count < 2) SKIP("only with two devices");
  cuda_cpu_fail("cudaMemGetInfo:2:cudaErrorDevicesUnavailable");
  EXPECT_OK(gk_device_best(&best));
  EXPECT_EQ(best, 0);
  EXPECT_EQ(std::string(gk_error_detail()), "");
  cuda_cpu_fail("cudaSetDevice:2:cudaErrorDevicesUnavailable"); /* on the way back */
  EXPECT_OK(gk_device_query(1, &d));
  cuda_cpu_fail(NULL);
  EXPECT_EQ(d.device, 1);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_OK(cudaSetDevice(0));
#else
  SKIP("only on the stand-in: it fails calls");
#endif
}

TEST(device_print) {
  gk_device_info d;
  EXPECT_OK(gk_device_query(-1, &d));
  cudaError_t code = cudaErrorUnknown;
  const std::string text = printed_by([&] { code = gk_device_print(-1); });
  EXPECT_OK(code);
  const std::string parts[] = {d.name,
                               "compute capability " + std::to_string(d.major) + "." + std::to_string(d.minor),
                               std::to_string(d.sms) + " x ",
                               std::to_string(d.shared_per_block_optin),
                               std::to_string(d.registers_per_sm),
                               "L2",
                               "65535"};
  for (auto &part : parts) EXPECT_HAS(text.c_str(), part.c_str());
  EXPECT_EQ(text.empty() ? '?' : text[text.size() - 1], '\n');
}

TEST(best_device) {
  int best = -1, count = 0;
  EXPECT_OK(gk_device_best(&best));
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT(best >= 0 && best < count);
#ifdef CUDA_ON_CPU
  EXPECT_EQ(best, 0); /* the first of several that are alike */
#endif
  gk_device_info b, d;
  EXPECT_OK(gk_device_query(best, &b));
  for (int i = 0; i < count; i++) {
    EXPECT_OK(gk_device_query(i, &d));
    EXPECT(1.0 * d.sms * d.clock_khz <= 1.0 * b.sms * b.clock_khz);
  }
}

/* Of two that are alike the one with more free memory; and no other is current afterwards. */
TEST(best_of_two_equal_devices) {
#ifdef CUDA_ON_CPU
  const char *const name = "best_of_two_equal_devices";
  if (!in_child(name)) {
    EXPECT_PASSED(run_child(name, "GPUKIT_CPU_DEVICES=2"));
    return;
  }
#endif
  gk_device_info first, second;
  int count = 0, best = -1, current = -1;
  void *held = NULL;
  EXPECT_OK(cudaGetDeviceCount(&count));
  if (count < 2) SKIP("one device only");
  EXPECT_OK(gk_device_query(0, &first));
  EXPECT_OK(gk_device_query(1, &second));
  EXPECT_OK(cudaGetDevice(&current));
  EXPECT_EQ(current, 0);
  if (count > 2 || first.sms != second.sms || first.clock_khz != second.clock_khz) SKIP("they are not two alike");
  for (int full = 0; full < 2; full++) {
    EXPECT_OK(cudaSetDevice(full));
    EXPECT_OK(cudaMalloc(&held, size_t{1} << 30));
    EXPECT_OK(cudaSetDevice(0));
    EXPECT_OK(gk_device_best(&best));
    EXPECT_EQ(best, 1 - full);
    EXPECT_OK(cudaGetDevice(&current));
    EXPECT_EQ(current, 0);
    EXPECT_OK(cudaFree(held));
  }
}

/* --- occupancy --- */

TEST(occupancy_of_sm_90_by_hand) {
  gk_device_info d;
  EXPECT_OK(gk_device_query(-1, &d));
  if (d.major != 9 || d.minor != 0) SKIP("the table is for sm_90: 64 warps, 32 blocks and 228 KiB for an SM");
  const struct {
    void (*kernel)(float *);
    int block;
    size_t smem;
    int blocks, warps;
    const char *limit;
  } table[] = {{nothing, 1024, 0, 2, 64, "threads"},
               {nothing, 256, 0, 8, 64, "threads"},
               {nothing, 768, 0, 2, 48, "threads"},
               {nothing, 96, 0, 21, 63, "threads"},
               {nothing, 65, 0, 21, 63, "threads"}, /* 3 warps, too */
               {nothing, 64, 0, 32, 64, "threads"}, /* 32 by blocks, too */
               {nothing, 32, 0, 32, 32, "blocks"},
               {nothing, 1, 0, 32, 32, "blocks"},
               {nothing, 64, 50 << 10, 4, 8, "shared memory"}, /* 51 KiB each with the reserved one */
               {nothing, 64, 56 << 10, 4, 8, "shared memory"}, /* 4 x 57 KiB fit just so */
               {nothing, 64, (56 << 10) + 1, 3, 6, "shared memory"},
               {nothing, 1024, 100 << 10, 2, 64, "threads"}, /* 2 either way */
               {nothing, 1024, 120 << 10, 1, 32, "shared memory"},
               {nothing, 128, 227 << 10, 1, 4, "shared memory"},
               {with_20k_static, 64, 0, 10, 20, "shared memory"},
               {with_20k_static, 64, 30 << 10, 4, 8, "shared memory"}};
  for (auto &t : table) {
    gk_occupancy_info o;
    memset(&o, 0x55, sizeof(o));
    EXPECT_OK(gk_occupancy(t.kernel, t.block, t.smem, &o));
    const bool right = o.blocks_per_sm == t.blocks && o.warps_per_sm == t.warps && !strcmp(o.limit, t.limit) &&
                       o.max_warps_per_sm == 64 && o.block_threads == t.block && o.dynamic_smem == t.smem &&
                       o.static_smem == (t.kernel == nothing ? 0 : 20480);
    if (!right)
      test_fail(__FILE__, __LINE__,
                std::to_string(t.block) + " threads, " + std::to_string(t.smem) +
                    " bytes: " + std::to_string(o.blocks_per_sm) + " blocks, " + std::to_string(o.warps_per_sm) +
                    " warps, limited by " + o.limit + ", " + std::to_string(o.static_smem) + " static bytes");
    EXPECT(o.occupancy > t.warps / 64.0 - 1e-9 && o.occupancy < t.warps / 64.0 + 1e-9);
  }
}

#ifndef CUDA_ON_CPU
/* Many values alive at once, so that registers are the limit. */
__global__ void hungry(float *data) {
  float v[80];
#pragma unroll
  for (int i = 0; i < 80; i++) v[i] = data[i * 1024 + threadIdx.x];
#pragma unroll 1
  for (int r = 0; r < 10; r++) {
#pragma unroll
    for (int i = 0; i < 80; i++) v[i] = v[i] * v[(i + 7) % 80] + v[(i + 31) % 80];
  }
#pragma unroll
  for (int i = 0; i < 80; i++) data[i * 1024 + threadIdx.x] = v[i];
}
#else
__global__ void hungry(float *) {}
#endif

/* What must hold on any device. */
TEST(occupancy_is_that_of_the_scarcest_resource) {
  void (*const kernels[])(float *) = {nothing, with_20k_static, hungry};
  for (auto kernel : kernels)
    for (int block : {1, 32, 33, 64, 100, 128, 192, 256, 384, 512})
      for (size_t smem : {size_t{0}, size_t{1}, size_t{1000}, size_t{10000}, size_t{20000}, size_t{28 << 10}}) {
        gk_occupancy_info o;
        cudaFuncAttributes attributes;
        EXPECT_OK(gk_occupancy(kernel, block, smem, &o));
        EXPECT_OK(cudaFuncGetAttributes(&attributes, kernel));
        EXPECT_EQ(o.registers, attributes.numRegs);
        EXPECT_EQ(o.static_smem, attributes.sharedSizeBytes);
        const struct {
          int blocks;
          const char *name;
        } limits[] = {{o.by_threads, "threads"},
                      {o.by_blocks, "blocks"},
                      {o.by_registers, "registers"},
                      {o.by_smem, "shared memory"}};
        int least = limits[0].blocks;
        for (auto &l : limits) least = l.blocks < least ? l.blocks : least;
        if (o.blocks_per_sm != least)
          test_fail(__FILE__, __LINE__,
                    std::to_string(block) + " threads, " + std::to_string(smem) + " bytes, " +
                        std::to_string(o.registers) + " registers: " + std::to_string(o.blocks_per_sm) +
                        " blocks, but the least is " + std::to_string(least));
        bool named = false;
        for (auto &l : limits) named |= l.blocks == least && !strcmp(l.name, o.limit);
        EXPECT(named);
        EXPECT_EQ(o.warps_per_sm, o.blocks_per_sm * ((block + 31) / 32));
      }
#ifndef CUDA_ON_CPU
  gk_occupancy_info o;
  EXPECT_OK(gk_occupancy(hungry, 256, 0, &o));
  if (o.registers > 64) EXPECT_EQ(std::string(o.limit), std::string("registers"));
#endif
}

TEST(occupancy_refuses_what_cannot_be) {
  gk_occupancy_info o;
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_occupancy: a block of 0 threads", gk_occupancy(nothing, 0, 0, &o));
  EXPECT_FAILS(cudaErrorInvalidValue, "a block of -1 threads", gk_occupancy(nothing, -1, 0, &o));
  EXPECT_FAILS(cudaErrorInvalidValue, "1 to 1024 are possible", gk_occupancy(nothing, 1025, 0, &o));
  EXPECT_FAILS(cudaErrorInvalidValue, "info is NULL", gk_occupancy(nothing, 32, 0, NULL));
  EXPECT_FAILS(cudaErrorInvalidValue, "kernel is NULL", gk_occupancy(static_cast<const void *>(NULL), 32, 0, &o));
  int block = 7;
  EXPECT_FAILS(cudaErrorInvalidValue, "kernel is NULL", gk_block_for(static_cast<const void *>(NULL), 0, &block));
  EXPECT_FAILS(cudaErrorInvalidValue, "block_threads is NULL", gk_block_for(nothing, 0, NULL));
  EXPECT_EQ(block, 7);
}
TEST(provoke_occupancy_with_too_much_shared_memory) {
  gk_device_info d;
  gk_occupancy_info o;
  int block = 7;
  EXPECT_OK(gk_device_query(-1, &d));
  const size_t much = d.shared_per_block_optin + 1;
  if (gk_occupancy(nothing, 32, much, &o) == cudaSuccess) {
    EXPECT_EQ(o.blocks_per_sm, 0);
    EXPECT_EQ(std::string(o.limit), std::string("shared memory"));
  } else
    EXPECT_HAS(gk_error_detail(), "gk_occupancy");
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_block_for", gk_block_for(nothing, much, &block));
  EXPECT_EQ(block, 7);
  cudaGetLastError();
}

TEST(occupancy_print) {
  cudaError_t code = cudaErrorUnknown;
  const std::string text = printed_by([&] { code = gk_occupancy_print(nothing, 1024, 0); });
  EXPECT_OK(code);
  EXPECT_HAS(text.c_str(), "blocks of 1024 threads");
  EXPECT_HAS(text.c_str(), "limited by threads");
  EXPECT_EQ(printed_by([] { (void)gk_occupancy_print(nothing, 0, 0); }), std::string());
}

TEST(block_for_gives_the_best_block_nearest_to_256) {
  gk_device_info d;
  EXPECT_OK(gk_device_query(-1, &d));
  void (*const kernels[])(float *) = {nothing, with_20k_static, hungry};
  for (auto kernel : kernels)
    for (size_t smem : {size_t{0}, size_t{3000}, size_t{20} << 10, d.shared_per_block_optin / 2}) {
      int block = -1, blocks = 0;
      cudaFuncAttributes attributes;
      EXPECT_OK(gk_block_for(kernel, smem, &block));
      EXPECT_OK(cudaFuncGetAttributes(&attributes, kernel));
      EXPECT(block > 0 && block <= attributes.maxThreadsPerBlock && block % 32 == 0);
      if (block <= 0) continue;
      EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block, smem));
      const int threads = blocks * block;
      for (int other = 32; other <= attributes.maxThreadsPerBlock; other += 32) {
        EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, other, smem));
        EXPECT(blocks * other <= threads);
        if (blocks * other == threads) EXPECT(abs(other - 256) >= abs(block - 256));
      }
    }
  int block = 0;
  EXPECT_OK(gk_block_for(nothing, 0, &block));
  EXPECT_EQ(block, 256);
  EXPECT_OK(gk_launch(nothing, 1, static_cast<unsigned>(block), 0, 0, nullptr));
}

/* --- timer --- */

TEST(timer_life) {
  gk_timer timer = gk_timer();
  cudaStream_t stream;
  float ms = -1;
  int ready = -1;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(gk_timer_create(&timer));
  for (cudaStream_t s : {stream, cudaStream_t(0)}) {
    EXPECT_OK(gk_timer_start(&timer, s));
    EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_ms: the timer has not been stopped", gk_timer_ms(&timer, &ms));
    sleep_ms(5);
    EXPECT_OK(gk_timer_stop(&timer));
    EXPECT_OK(gk_timer_ms(&timer, &ms));
    EXPECT(took(ms, 4.9) && ms < 2000);
    EXPECT_OK(gk_timer_ready(&timer, &ready));
    EXPECT_EQ(ready, 1);
  }
  EXPECT_OK(gk_timer_start(&timer, 0)); /* restarted before it is read */
  sleep_ms(10);
  EXPECT_OK(gk_timer_start(&timer, 0));
  EXPECT_OK(gk_timer_stop(&timer));
  EXPECT_OK(gk_timer_ms(&timer, &ms));
  EXPECT(ms >= 0 && (ms < 9 || test_slowed()));
  EXPECT_OK(gk_timer_destroy(&timer));
  EXPECT_OK(cudaStreamDestroy(stream));
}

TEST(timer_misuse) {
  gk_timer timer = gk_timer();
  float ms = 7;
  int ready = 7;
  EXPECT_OK(gk_timer_destroy(&timer)); /* an empty one */
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_start: the timer is empty", gk_timer_start(&timer, 0));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_stop: the timer is empty", gk_timer_stop(&timer));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_ms: the timer is empty", gk_timer_ms(&timer, &ms));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_ready: the timer is empty", gk_timer_ready(&timer, &ready));
  EXPECT_OK(gk_timer_create(&timer));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_create: the timer is not empty", gk_timer_create(&timer));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_stop: the timer has not been started", gk_timer_stop(&timer));
  EXPECT_FAILS(cudaErrorInvalidValue, "has not been started", gk_timer_ms(&timer, &ms));
  EXPECT_OK(gk_timer_start(&timer, 0));
  EXPECT_FAILS(cudaErrorInvalidValue, "has not been stopped", gk_timer_ready(&timer, &ready));
  EXPECT_FAILS(cudaErrorInvalidValue, "not empty", gk_timer_create(&timer));
  EXPECT_OK(gk_timer_stop(&timer));
  EXPECT_FAILS(cudaErrorInvalidValue, "milliseconds is NULL", gk_timer_ms(&timer, NULL));
  EXPECT_FAILS(cudaErrorInvalidValue, "ready is NULL", gk_timer_ready(&timer, NULL));
  EXPECT_EQ(static_cast<int>(ms) + ready, 14); /* untouched so far */
  EXPECT_OK(gk_timer_ms(&timer, &ms));
  EXPECT_OK(gk_timer_destroy(&timer));
  EXPECT_OK(gk_timer_destroy(&timer));
  EXPECT_FAILS(cudaErrorInvalidValue, "is empty", gk_timer_start(&timer, 0));
  EXPECT_OK(gk_timer_create(&timer)); /* and from the start */
  EXPECT_OK(gk_timer_destroy(&timer));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_create: timer is NULL", gk_timer_create(NULL));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_start: timer is NULL", gk_timer_start(NULL, 0));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_stop: timer is NULL", gk_timer_stop(NULL));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_ms: timer is NULL", gk_timer_ms(NULL, &ms));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_ready: timer is NULL", gk_timer_ready(NULL, &ready));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_timer_destroy: timer is NULL", gk_timer_destroy(NULL));
}

/* Asks about a kernel that runs for 50 ms or so (on the stand-in, where the launch has waited for it, it is said to run
 * still), and gives what cudaPeekAtLastError says then. */
static cudaError_t ask_while_running() {
  gk_timer timer = gk_timer();
  float ms = 0;
  int ready = -1;
  EXPECT_OK(gk_timer_create(&timer));
  EXPECT_OK(gk_timer_start(&timer, 0));
  EXPECT_OK(gk_launch(spin, 1, 1, 0, 0, 100000000));
  EXPECT_OK(gk_timer_stop(&timer));
#ifdef CUDA_ON_CPU
  cuda_cpu_fail("cudaEventQuery:1:cudaErrorNotReady");
#endif
  const double before = now_ms();
  EXPECT_OK(gk_timer_ready(&timer, &ready));
  EXPECT(now_ms() - before < 20);
  const cudaError_t left = cudaPeekAtLastError();
#ifdef CUDA_ON_CPU
  EXPECT_EQ(ready, 0);
  cuda_cpu_fail(NULL);
#endif
  EXPECT_OK(gk_timer_ms(&timer, &ms));
  EXPECT(ms > 5);
  EXPECT_OK(gk_timer_ready(&timer, &ready));
  EXPECT_EQ(ready, 1);
  EXPECT_OK(gk_timer_destroy(&timer));
  return left;
}
TEST(timer_not_ready_is_no_error) {
  EXPECT_OK(cudaPeekAtLastError());
  EXPECT_OK(ask_while_running());
  EXPECT_OK(cudaPeekAtLastError());
}
TEST(provoke_timer_not_ready_keeps_an_older_error) {
  EXPECT_EQ(cudaSetDevice(-99), cudaErrorInvalidDevice);
  EXPECT_EQ(ask_while_running(), cudaErrorInvalidDevice);
  cudaGetLastError();
}

TEST(time_prints_one_line_and_nests) {
  int outer = 0, inner = 0;
  const std::string text = printed_by([&] {
    GK_TIME ("all of it, 100 %d", 0) {
      outer++;
      for (int i = 0; i < 2; i++)
        GK_TIME ("part", 0) {
          inner++;
          sleep_ms(2);
        }
    }
    if (outer == 0)
      GK_TIME ("never", 0) inner = 99;
    else
      GK_TIME ("without braces", 0) outer++;
  });
  double first = -1, second = -1, all = -1, last = -1;
  int length = 0;
  EXPECT_EQ(sscanf(text.c_str(), "part: %lf ms\npart: %lf ms\nall of it, 100 %%d: %lf ms\nwithout braces: %lf ms\n%n",
                   &first, &second, &all, &last, &length),
            4);
  EXPECT_EQ(static_cast<size_t>(length), text.size());
  EXPECT_EQ(outer * 10 + inner, 22);
  EXPECT(took(first, 1.9) && took(second, 1.9) && all >= first + second - 0.01 && last >= 0);
}

TEST(a_label_may_be_a_temporary) {
  const std::string text = printed_by([] {
    GK_TIME (("a label longer than the strings without memory of their own " + std::to_string(1)).c_str(), 0) {
      const std::string other(70, 'x'); /* where it was */
      EXPECT_EQ(other.size(), size_t{70});
    }
  });
  EXPECT_HAS(text.c_str(), "a label longer than the strings without memory of their own 1: ");
}
/* Handlers and timed functions may throw. */
TEST(provoke_exceptions_leave_no_events) {
#ifdef CUDA_ON_CPU
  const size_t before = cuda_cpu_held();
  gk_bench_result result;
  int caught = 0, reported = 0;
  const auto catching = [&](const std::function<void()> &function) {
    try {
      function();
    } catch (const std::runtime_error &) { caught++; }
  };
  const auto throwing = [](const gk_error *, void *) { throw std::runtime_error("handler"); };
  gk_set_error_handler(throwing, NULL);
  catching([] { (void)gk_time_ms([] { return cudaErrorNotReady; }); });
  catching([] { (void)gk_time_ms([] { throw std::runtime_error("timed"); }); });
  catching([&] { (void)gk_bench([] { throw std::runtime_error("timed"); }, NULL, &result); });
  for (int k = 1; k <= 6; k++) { /* each call of CUDA's in turn */
    cuda_cpu_fail(("any:" + std::to_string(k) + ":cudaErrorUnknown").c_str());
    catching([] {
      GK_TIME ("not begun", 0) {}
    });
    cuda_cpu_fail(NULL);
  }
  EXPECT_EQ(caught, 3 + 6);
  gk_set_error_handler([](const gk_error *, void *user) { ++*static_cast<int *>(user); }, &reported);
  cuda_cpu_fail("cudaEventCreate:1:cudaErrorUnknown");
  GK_TIME ("not begun", 0) {}
  cuda_cpu_fail(NULL);
  EXPECT_EQ(reported, 1); /* and no second error from its end */
  gk_set_error_handler(NULL, NULL);
  EXPECT_EQ(cuda_cpu_held(), before);
#else
  SKIP("only on the stand-in: it counts the events, and fails calls");
#endif
}

/* Where freeing fails, too, the call returns the first error, and leaves neither behind. */
TEST(provoke_second_failures) {
#ifdef CUDA_ON_CPU
  gk_timer timer = {};
  gk_scratch scratch = {};
  cuda_cpu_fail("cudaEventCreate:2:cudaErrorMemoryAllocation,cudaEventDestroy:1:cudaErrorUnknown");
  EXPECT_EQ(gk_timer_create(&timer), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cuda_cpu_fail("cudaMemsetAsync:1:cudaErrorUnknown,cudaFree:1:cudaErrorInvalidValue");
  EXPECT_EQ(gk_scratch_create(&scratch, 1, 0), cudaErrorUnknown);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cuda_cpu_fail(NULL);
#else
  SKIP("only on the stand-in: it fails calls");
#endif
}

static __global__ void launched_once() {}
static __global__ void launched_by_another() {}
TEST(time_prints_rates_and_first_launches) {
  const std::string text = printed_by([] {
    GK_TIME ("bytes", 0, 3e9) sleep_ms(2);
    GK_TIME ("flops", cudaStream_t(0), 0, size_t(5) << 30) sleep_ms(2);
    GK_TIME ("both", 0, 1e9, 2e9) sleep_ms(2);
    for (int i = 0; i < 2; i++)
      GK_TIME ("launch", 0) GK_LAUNCH(launched_once, 1, 32, 0, 0);
    GK_TIME ("two", 0, 1) {
      GK_LAUNCH(launched_once, 1, 32, 0, 0);
      GK_LAUNCH(launched_by_another, 1, 32, 0, 0);
    }
  });
  double took_ms[6], rate[5];
  int length = 0;
  EXPECT_EQ(sscanf(text.c_str(),
                   "bytes: %lf ms, %lf GB/s\nflops: %lf ms, %lf GFLOP/s\nboth: %lf ms, %lf GB/s, %lf GFLOP/s\n"
                   "launch: %lf ms (with the first launch of a kernel)\nlaunch: %lf ms\n%n",
                   &took_ms[0], &rate[0], &took_ms[1], &rate[1], &took_ms[2], &rate[2], &rate[3], &took_ms[3],
                   &took_ms[4], &length),
            9);
  EXPECT(length > 0);
  EXPECT_HAS(text.c_str() + length, "two: ");
  EXPECT_HAS(text.c_str() + length, " (with the first launch of a kernel)\n");
  const auto near = [](double x, double y) { return fabs(x - y) < 0.02 * y + 0.1; };
  EXPECT(near(rate[0], 3e3 / took_ms[0]) && near(rate[1], 5.36870912e3 / took_ms[1]));
  EXPECT(near(rate[2], 1e3 / took_ms[2]) && near(rate[3], 2e3 / took_ms[2]));
}
TEST(a_callable_is_timed) {
  int calls = 0;
  const float once = gk_time_ms([&] {
    calls++;
    sleep_ms(2);
  });
  EXPECT(took(static_cast<double>(once), 1.9) && calls == 1);
  static int reported;
  reported = 0;
  gk_set_error_handler(
      [](const gk_error *e, void *) { reported += e->code == cudaErrorInvalidDevice && !e->detail[0] ? 1 : 100; },
      NULL);
  gk_device_info none;
  EXPECT_EQ(gk_device_query(1000, &none), cudaErrorInvalidDevice); /* whose detail is not that of the function */
  EXPECT(isnan(gk_time_ms([] { return cudaErrorInvalidDevice; })));
  EXPECT_EQ(reported, 1);
  gk_set_error_handler(NULL, NULL);
  gk_bench_opts opts = gk_bench_opts();
  gk_bench_result result = gk_bench_result();
  opts.warmup = 1, opts.samples = 3, opts.calls = 2;
  calls = 0;
  EXPECT_OK(gk_bench([&] { calls++; }, &opts, &result));
  EXPECT_EQ(calls, 1 + 3 * 2);
  EXPECT_EQ(result.samples, 3);
  EXPECT_EQ(gk_bench([] { return cudaErrorNotReady; }, &opts, &result), cudaErrorNotReady);
}

/* --- bench --- */

struct fake {
  std::vector<size_t> calls; /* the i of each */
  std::vector<cudaStream_t> streams;
  int sleep;
  size_t fail_at; /* the number of the call, from 1 */
  cudaError_t code;
};
static cudaError_t run_fake(void *user, cudaStream_t stream, size_t i) {
  fake *f = static_cast<fake *>(user);
  f->calls.push_back(i);
  f->streams.push_back(stream);
  if (f->sleep) sleep_ms(f->sleep);
  if (f->calls.size() != f->fail_at) return cudaSuccess;
  if (f->code == cudaErrorInvalidDevice) {
    gk_device_info info;
    return gk_device_query(1000, &info);
  }
  return f->code;
}
static bool about(double x, double y) { return x >= y * 0.9999 && x <= y * 1.0001; }

TEST(bench_calls_as_often_as_asked_and_runs_through_the_buffers) {
  fake f = {{}, {}, 0, 0, cudaSuccess};
  gk_bench_opts o = gk_bench_opts();
  gk_bench_result r;
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreate(&stream));
  o.stream = stream, o.buffers = 3, o.warmup = 2, o.samples = 5, o.calls = 4;
  EXPECT_OK(gk_bench(run_fake, &f, &o, &r));
  EXPECT_EQ(f.calls.size(), size_t{2 + 5 * 4});
  for (size_t i = 0; i < f.calls.size(); i++) EXPECT(f.calls[i] == i % 3 && f.streams[i] == stream);
  EXPECT_EQ(r.samples * 10 + r.calls, 54);
  EXPECT_OK(cudaStreamDestroy(stream));
}

TEST(bench_without_options) {
  fake f = {{}, {}, 0, 0, cudaSuccess};
  gk_bench_result r;
  EXPECT_OK(gk_bench(run_fake, &f, NULL, &r));
  EXPECT_EQ(r.samples, 30);
  EXPECT(took(r.calls, 2) && r.calls <= 1000);                     /* of far less than a millisecond each */
  EXPECT(f.calls.size() >= 3 + 30 * static_cast<size_t>(r.calls)); /* 3 to warm up */
  for (size_t i : f.calls) EXPECT_EQ(i, size_t{0});
  EXPECT(!(r.gbs > 0) && !(r.gflops > 0) && !(r.peak_percent > 0));
}

TEST(bench_computes_times_and_rates) {
  fake f = {{}, {}, 2, 0, cudaSuccess};
  gk_bench_opts o = gk_bench_opts();
  gk_bench_result r;
  gk_device_info d;
  o.warmup = 1, o.samples = 4, o.calls = 3, o.bytes = 5e6, o.flops = 3e7;
  const double start = now_ms();
  EXPECT_OK(gk_bench(run_fake, &f, &o, &r));
  EXPECT(r.mean_ms * 4 * 3 < now_ms() - start); /* of one call, not of a sample's three */
  EXPECT(took(r.median_ms, 1.99));
  EXPECT(took(r.min_ms, 1.99) && r.min_ms <= r.median_ms && r.min_ms <= r.mean_ms);
  EXPECT(r.stddev_ms >= 0 && r.noise >= 0 && r.noise <= 1);
  EXPECT(about(r.gbs, 5e6 / (r.median_ms * 1e-3) / 1e9));
  EXPECT(about(r.gflops, 3e7 / (r.median_ms * 1e-3) / 1e9));
  EXPECT_OK(gk_device_query(-1, &d));
  if (d.peak_gbs > 0) EXPECT(about(r.peak_percent, r.gbs / d.peak_gbs * 100));
  o.samples = 2;
  EXPECT_OK(gk_bench(run_fake, &f, &o, &r));
  EXPECT(about(r.median_ms, r.mean_ms)); /* of an even number: between the middle ones */
  EXPECT(about(r.stddev_ms + 1, (r.mean_ms - r.min_ms) * 1.41421356 + 1));
  EXPECT(about(r.noise * r.median_ms + 1, r.mean_ms - r.min_ms + 1));
  o.samples = 1;
  EXPECT_OK(gk_bench(run_fake, &f, &o, &r));
  EXPECT(about(r.median_ms, r.min_ms) && about(r.mean_ms, r.min_ms));
  EXPECT(!(r.stddev_ms > 0) && !(r.noise > 0));
}

TEST(bench_chooses_how_many_calls_make_a_sample) {
  fake f = {{}, {}, 2, 0, cudaSuccess};
  gk_bench_opts o = gk_bench_opts();
  gk_bench_result r;
  o.samples = 2;
  EXPECT_OK(gk_bench(run_fake, &f, &o, &r));
  EXPECT_EQ(r.calls, 1); /* of 2 ms each */
}

TEST(bench_returns_the_error_of_the_function) {
  gk_bench_opts o = gk_bench_opts();
  gk_bench_result r;
  o.warmup = 2, o.samples = 3, o.calls = 2;
  for (size_t fail_at : {1u, 2u, 3u, 5u, 8u}) {
    fake f = {{}, {}, 0, fail_at, cudaErrorInvalidDevice};
    EXPECT_FAILS(cudaErrorInvalidDevice, "gk_device_query: device 1000 of ", gk_bench(run_fake, &f, &o, &r));
    EXPECT_EQ(f.calls.size(), fail_at); /* and no call more */
    fake silent = {{}, {}, 0, fail_at, cudaErrorNotSupported};
    EXPECT_FAILS(cudaErrorNotSupported, "gk_bench", gk_bench(run_fake, &silent, &o, &r)); /* it has said nothing */
  }
  fake f = {{}, {}, 0, 0, cudaSuccess};
  EXPECT_OK(gk_bench(run_fake, &f, &o, &r));
  EXPECT_EQ(std::string(gk_error_detail()), std::string());
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_bench: function is NULL", gk_bench(NULL, &f, &o, &r));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_bench: result is NULL", gk_bench(run_fake, &f, &o, NULL));
  for (int gk_bench_opts::*number : {&gk_bench_opts::warmup, &gk_bench_opts::samples, &gk_bench_opts::calls}) {
    gk_bench_opts negative = o;
    negative.*number = -3;
    EXPECT_FAILS(cudaErrorInvalidValue, "none may be negative", gk_bench(run_fake, &f, &negative, &r));
  }
}

/* What the function was told of errors that it went on after is not why it failed. */
TEST(bench_tells_an_error_of_the_function_from_those_before) {
  gk_bench_opts o = gk_bench_opts();
  gk_bench_result r;
  static cudaError_t last;
  static int failing_call;
  o.warmup = 2, o.samples = 1, o.calls = 1; /* both calls are in one sample */
  const gk_bench_fn ignore_one = [](void *user, cudaStream_t, size_t) {
    int *const calls = static_cast<int *>(user);
    gk_device_info info;
    if (++*calls == failing_call) (void)gk_device_query(1000, &info);
    return *calls == 2 ? last : cudaSuccess;
  };
  for (cudaError_t code : {cudaErrorInvalidDevice, cudaErrorNotSupported})
    for (int failing : {1, 2}) {
      int calls = 0;
      failing_call = failing;
      last = code;
      EXPECT_FAILS(code, "gk_bench: the function to measure failed: ", gk_bench(ignore_one, &calls, &o, &r));
      EXPECT_HAS(gk_error_detail(), cudaGetErrorString(code));
      /* Of the same call and code it may be the reason: so it is said to be the last that the function heard. */
      const bool told = strstr(gk_error_detail(), "; its last gk_ call said: gk_device_query: device 1000") != NULL;
      EXPECT_EQ(told, failing == 2 && code == cudaErrorInvalidDevice);
    }
}

TEST(bench_compare_takes_turns) {
  fake f = {{}, {}, 0, 0, cudaSuccess};
  std::string order;
  struct named {
    fake *f;
    std::string *order;
    char name;
  } a = {&f, &order, 'a'}, b = {&f, &order, 'b'}, c = {&f, &order, 'c'};
  const gk_bench_fn call = [](void *user, cudaStream_t stream, size_t i) {
    named *n = static_cast<named *>(user);
    *n->order += n->name;
    return run_fake(n->f, stream, i);
  };
  const gk_bench_fn fns[] = {call, call, call};
  void *const users[] = {&a, &b, &c};
  gk_bench_opts o = gk_bench_opts();
  gk_bench_result r[3];
  o.buffers = 5, o.warmup = 1, o.samples = 3, o.calls = 2;
  EXPECT_OK(gk_bench_compare(fns, users, 3, &o, r));
  EXPECT_EQ(order, std::string("abc"
                               "aabbcc"
                               "ccbbaa"
                               "aabbcc"));
  for (size_t i = 0; i < f.calls.size(); i++) EXPECT_EQ(f.calls[i], i % 5); /* never back to a buffer still warm */
  EXPECT_EQ(r[2].samples * 10 + r[2].calls, 32);
}
TEST(bench_compare_tells_the_ratio_and_every_sample) {
  fake fast = {{}, {}, 1, 0, cudaSuccess}, slow = {{}, {}, 5, 0, cudaSuccess};
  const gk_bench_fn fns[] = {run_fake, run_fake};
  void *const users[] = {&fast, &slow};
  double ms[2][3];
  gk_bench_opts o = gk_bench_opts();
  gk_bench_result r[2];
  o.warmup = 1, o.samples = 3, o.calls = 1, o.bytes = 1e6, o.sample_ms = ms[0];
  EXPECT_OK(gk_bench_compare(fns, users, 2, &o, r));
  for (int i = 0; i < 3; i++) EXPECT(took(ms[0][i], 0.99) && took(ms[1][i], 4.99));
  double ratio[3], away[3];
  for (int i = 0; i < 3; i++) ratio[i] = ms[1][i] / ms[0][i], away[i] = fabs(ms[1][i] - r[1].median_ms);
  std::sort(ratio, ratio + 3), std::sort(away, away + 3);
  EXPECT(about(r[0].ratio, 1));
  EXPECT(about(r[1].ratio, ratio[1]) && about(r[1].noise, away[1] / r[1].median_ms)); /* medians */
  EXPECT(took(r[1].ratio, 1)); /* it may be far from 5 where the machine is busy */
  EXPECT(took(r[1].min_ms, 4.99) && about(r[1].gbs, 1e6 / (r[1].median_ms * 1e-3) / 1e9));
  EXPECT(took(r[1].median_ms, r[0].median_ms));
}
TEST(bench_compare_rejects_what_it_cannot_run) {
  fake f = {{}, {}, 0, 0, cudaSuccess};
  const gk_bench_fn fns[] = {run_fake, NULL};
  void *const users[] = {&f, &f};
  gk_bench_result r[2];
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_bench_compare: fns is NULL", gk_bench_compare(NULL, users, 1, NULL, r));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_bench_compare: function 1 is NULL", gk_bench_compare(fns, users, 2, NULL, r));
  EXPECT_FAILS(cudaErrorInvalidValue, "result is NULL", gk_bench_compare(fns, users, 1, NULL, NULL));
  EXPECT_FAILS(cudaErrorInvalidValue, "0 functions to compare", gk_bench_compare(fns, users, 0, NULL, r));
  EXPECT(f.calls.empty());
  const gk_bench_fn unaware[] = {
      [](void *user, cudaStream_t, size_t) { return user ? cudaErrorInvalidValue : cudaSuccess; }};
  EXPECT_OK(gk_bench_compare(unaware, NULL, 1, NULL, r));
}
TEST(bench_buffers_cover_the_cache_three_times) {
  gk_device_info d;
  EXPECT_OK(gk_device_query(-1, &d));
  for (size_t bytes :
       {size_t{1}, size_t{1000}, size_t{1} << 20, d.l2_bytes, 3 * d.l2_bytes, size_t{1} << 40, SIZE_MAX}) {
    size_t buffers = 0;
    EXPECT_OK(gk_bench_buffers(bytes, &buffers));
    EXPECT(buffers >= 1 && (buffers >= SIZE_MAX / bytes || buffers * bytes >= 3 * d.l2_bytes));
    EXPECT(buffers <= 2 || (buffers - 2) * bytes < 3 * d.l2_bytes);
  }
  size_t buffers = 0;
  EXPECT_OK(gk_bench_buffers(0, &buffers));
  EXPECT_EQ(buffers, size_t{1});
  EXPECT_FAILS(cudaErrorInvalidValue, "buffers is NULL", gk_bench_buffers(1, NULL));
}

/* --- scratch --- */

TEST(scratch_life) {
  gk_scratch s = gk_scratch();
  int current = -1;
  EXPECT_OK(cudaGetDevice(&current));
  EXPECT_OK(gk_scratch_destroy(&s)); /* an empty one */
  for (size_t bytes : {size_t{0}, size_t{1}, gk_reduce_scratch_bytes(), size_t{1000001}}) {
    EXPECT_OK(gk_scratch_create(&s, bytes, 0));
    EXPECT(s.ptr && s.bytes >= bytes && s.bytes >= gk_reduce_scratch_bytes()); /* every reduction fits */
    EXPECT_EQ(s.device, current);
    std::vector<unsigned char> host(s.bytes, 1);
    EXPECT_OK(cudaMemcpy(host.data(), s.ptr, s.bytes, cudaMemcpyDeviceToHost));
    size_t dirty = 0;
    for (unsigned char byte : host) dirty += byte != 0;
    EXPECT_EQ(dirty, size_t{0});
    const gk_scratch before = s;
    EXPECT_FAILS(cudaErrorInvalidValue, "gk_scratch_create: the scratch is not empty", gk_scratch_create(&s, 100, 0));
    EXPECT(s.ptr == before.ptr && s.bytes == before.bytes);
    EXPECT_OK(gk_scratch_destroy(&s));
    EXPECT(!s.ptr && !s.bytes);
    EXPECT_OK(gk_scratch_destroy(&s));
  }
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_scratch_create: scratch is NULL", gk_scratch_create(NULL, 100, 0));
  EXPECT_FAILS(cudaErrorInvalidValue, "gk_scratch_destroy: scratch is NULL", gk_scratch_destroy(NULL));
}

TEST(provoke_scratch_that_no_device_has_room_for) {
  gk_scratch s = gk_scratch();
  EXPECT_FAILS(cudaErrorMemoryAllocation, "1125899906842624 bytes", gk_scratch_create(&s, size_t{1} << 50, 0));
  EXPECT(!s.ptr && !s.bytes);
  cudaGetLastError();
  EXPECT_OK(gk_scratch_create(&s, 1, 0));
  EXPECT_OK(gk_scratch_destroy(&s));
}

TEST(scratch_too_small_names_the_bytes_needed_and_survives) {
  const size_t n = 3000000, safe = gk_scan_scratch_bytes(n, sizeof(int));
  size_t needed = 0;
  gk_scratch small = gk_scratch(), large = gk_scratch();
  int *data = nullptr, last = 0;
  EXPECT_OK(cudaMalloc(&data, n * sizeof(int)));
  EXPECT_OK(cudaMemset(data, 0, n * sizeof(int)));
  EXPECT_OK(cudaMemset(data, 1, 1)); /* 1, 0, 0, ... */
  EXPECT_OK(gk_scratch_create(&small, 1, 0));
  EXPECT_FAILS(cudaErrorInvalidValue, " are needed", gk_scan_inclusive(data, data, n, gk_op_sum(), 0, &small));
  const char *but = strstr(gk_error_detail(), "but ");
  EXPECT(but && sscanf(but, "but %zu are needed", &needed) == 1);
  EXPECT(needed > small.bytes && needed <= safe);
  EXPECT_OK(gk_scratch_create(&large, needed, 0));
  EXPECT_OK(gk_scan_inclusive(data, data, n, gk_op_sum(), 0, &large));
  EXPECT_OK(cudaMemcpy(&last, data + n - 1, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT_EQ(last, 1);
  EXPECT_OK(gk_scan_inclusive(data, data, 1000, gk_op_sum(), 0, &small)); /* still good for what fits */
  EXPECT_OK(cudaMemcpy(&last, data + 999, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT_EQ(last, 1000);
  EXPECT_OK(gk_scratch_destroy(&small));
  EXPECT_OK(gk_scratch_destroy(&large));
  EXPECT_OK(cudaFree(data));
}
