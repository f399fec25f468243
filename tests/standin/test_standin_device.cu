/* The devices that the stand-in pretends: limits of each architecture, and several devices at once. */
#include "test.h"

#include <cuda_runtime.h>

#ifndef CUDA_ON_CPU
TEST(devices_of_the_stand_in) { SKIP("about the stand-in alone"); }
#else

#include <signal.h>
#include <pthread.h>
#include "standin.h"

__global__ void nothing() {}
__global__ void add_one(int *p) { *p += 1; }

/* --- architectures --- */

/* From the CUDA programming guide's table of technical specifications by compute capability. */
struct limits {
  const char *target;
  int capability, threads_sm, blocks_sm, shared_sm_kib, shared_block_kib, reserved, sms;
};
static const limits table[] = {
    {"sm_75", 75, 1024, 16, 64, 64, 0, 40},       {"sm_80", 80, 2048, 32, 164, 163, 1024, 108},
    {"sm_86", 86, 1536, 16, 100, 99, 1024, 82},   {"sm_89", 89, 1536, 24, 100, 99, 1024, 128},
    {"sm_90", 90, 2048, 32, 228, 227, 1024, 132}, {"sm_100", 100, 2048, 32, 228, 227, 1024, 148},
    {"sm_120", 120, 1536, 24, 100, 99, 1024, 170}};

static int attribute(cudaDeviceAttr attr) {
  int value = -1;
  EXPECT_OK(cudaDeviceGetAttribute(&value, attr, 0));
  return value;
}

static void expect_limits(const limits &l) {
  cudaDeviceProp p;
  cudaFuncAttributes f;
  int blocks = 0, grid = 0, block = 0;
  EXPECT_OK(cudaGetDeviceProperties(&p, 0));
  EXPECT_HAS(p.name, l.target);
  EXPECT_EQ(p.major * 10 + p.minor, l.capability);
  EXPECT_EQ(p.maxThreadsPerMultiProcessor, l.threads_sm);
  EXPECT_EQ(p.maxBlocksPerMultiProcessor, l.blocks_sm);
  EXPECT_EQ(p.sharedMemPerMultiprocessor, static_cast<size_t>(l.shared_sm_kib) << 10);
  EXPECT_EQ(p.sharedMemPerBlockOptin, static_cast<size_t>(l.shared_block_kib) << 10);
  EXPECT_EQ(p.reservedSharedMemPerBlock, static_cast<size_t>(l.reserved));
  EXPECT_EQ(p.multiProcessorCount, l.sms);
  EXPECT_EQ(p.sharedMemPerBlock, size_t{49152});
  EXPECT_EQ(p.regsPerMultiprocessor, 65536);
  EXPECT_EQ(p.maxThreadsPerBlock, 1024);

  EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMajor), p.major);
  EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMinor), p.minor);
  EXPECT_EQ(attribute(cudaDevAttrMaxThreadsPerMultiProcessor), l.threads_sm);
  EXPECT_EQ(attribute(cudaDevAttrMaxBlocksPerMultiprocessor), l.blocks_sm);
  EXPECT_EQ(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor), l.shared_sm_kib << 10);
  EXPECT_EQ(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), l.shared_block_kib << 10);
  EXPECT_EQ(attribute(cudaDevAttrReservedSharedMemoryPerBlock), l.reserved);
  EXPECT_EQ(attribute(cudaDevAttrMultiProcessorCount), l.sms);
  EXPECT_EQ(attribute(cudaDevAttrL2CacheSize), p.l2CacheSize);
  EXPECT_EQ(attribute(cudaDevAttrGlobalMemoryBusWidth), p.memoryBusWidth);
  EXPECT(attribute(cudaDevAttrClockRate) > 1000000 && attribute(cudaDevAttrMemoryClockRate) > 1000000);
  EXPECT_EQ(attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio), l.shared_sm_kib > 100 ? 2 : l.sms == 40 ? 32 : 64);

  EXPECT_OK(cudaFuncGetAttributes(&f, nothing));
  EXPECT_EQ(f.binaryVersion, l.capability);
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 32, 0));
  EXPECT_EQ(blocks, l.blocks_sm);
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 256, 0));
  EXPECT_EQ(blocks, l.threads_sm / 256);
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 64, 32 << 10));
  EXPECT_EQ(blocks, (l.shared_sm_kib << 10) / ((32 << 10) + l.reserved));
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, nothing));
  EXPECT_EQ(grid * block, l.threads_sm * l.sms);

  const size_t most = static_cast<size_t>(l.shared_block_kib) << 10;
  EXPECT_EQ(launch(nothing, 1, 32, most), most > 49152 ? cudaErrorInvalidValue : cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most) + 1),
            cudaErrorInvalidValue);
  EXPECT_OK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)));
  EXPECT_OK(launch(nothing, 1, 32, most));
  EXPECT_EQ(launch(nothing, 1, 32, most + 1), cudaErrorInvalidValue);
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 32, most));
  EXPECT_EQ(blocks, 1);
  cudaGetLastError();
}

TEST(each_architecture_has_its_limits) {
  const char *const name = "each_architecture_has_its_limits";
  if (in_child(name)) {
    const char *target = getenv("GPUKIT_CPU_DEVICE");
    for (const limits &l : table)
      if (!strcmp(l.target, target && *target ? target : "sm_90")) expect_limits(l);
    return;
  }
  for (const limits &l : table) EXPECT_PASSED(run_child(name, (std::string("GPUKIT_CPU_DEVICE=") + l.target).c_str()));
  EXPECT_PASSED(run_child(name, "GPUKIT_CPU_DEVICE="));
}

TEST(a_device_that_is_not_known_is_refused) {
  const char *const name = "a_device_that_is_not_known_is_refused";
  int count;
  cudaDeviceProp p;
  if (in_child(name)) {
    cudaGetDeviceCount(&count);
    cudaGetDeviceProperties(&p, 0);
    return;
  }
  child c = run_child(name, "GPUKIT_CPU_DEVICE=sm_35");
  EXPECT_EQ(c.signal, SIGABRT);
  EXPECT_HAS(c.output.c_str(), "GPUKIT_CPU_DEVICE=sm_35 is none of sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120\n");
  for (const char *n : {"0", "9", "two"}) {
    c = run_child(name, (std::string("GPUKIT_CPU_DEVICES=") + n).c_str());
    EXPECT_EQ(c.signal, SIGABRT);
    EXPECT_HAS(c.output.c_str(), "is not a number from 1 to 8\n");
  }
}

/* --- several devices --- */

static void *device_of_a_new_thread(void *device) {
  cudaGetDevice(static_cast<int *>(device));
  cudaSetDevice(2);
  return nullptr;
}

TEST(each_host_thread_has_its_device) {
  RUN_WITH("each_host_thread_has_its_device", "GPUKIT_CPU_DEVICES=3");
  int count = 0, device = -1, other = -1;
  char id[2][20];
  pthread_t thread;
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 3);
  EXPECT_OK(cudaSetDevice(1));
  EXPECT_EQ(pthread_create(&thread, nullptr, device_of_a_new_thread, &other), 0);
  pthread_join(thread, nullptr);
  EXPECT_EQ(other, 0);
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQ(device, 1);
  EXPECT_OK(cudaDeviceGetPCIBusId(id[0], 20, 1));
  EXPECT_OK(cudaDeviceGetPCIBusId(id[1], 20, 2));
  EXPECT(strcmp(id[0], id[1]) != 0);
}

static size_t used() {
  size_t free_bytes = 0, total = 0;
  EXPECT_OK(cudaMemGetInfo(&free_bytes, &total));
  return total - free_bytes;
}

TEST(memory_is_one_devices) {
  RUN_WITH("memory_is_one_devices", "GPUKIT_CPU_DEVICES=2");
  int *p[2] = {}, *ordered = nullptr, host = 0;
  cudaMemPool_t pool[2] = {}, own = nullptr;
  cudaMemPoolProps props = {};
  cudaPointerAttributes a;
  for (int d = 0; d < 2; d++) {
    EXPECT_OK(cudaSetDevice(d));
    EXPECT_OK(cudaMalloc(&p[d], 4));
    EXPECT_EQ(used(), size_t{4});
    EXPECT_OK(cudaMemset(p[d], d + 1, 4));
    EXPECT_OK(cudaDeviceGetDefaultMemPool(&pool[d], d));
  }
  EXPECT(pool[0] != pool[1]);
  EXPECT_OK(cudaMemcpy(&host, p[0], 4, cudaMemcpyDefault)); /* device 1 is current */
  EXPECT_EQ(host, 0x01010101);
  EXPECT_OK(cudaMemcpy(p[0], p[1], 4, cudaMemcpyDefault));
  EXPECT_OK(cudaMemcpyPeer(&host, 0, p[0], 0, 0));
  EXPECT_OK(cudaMemset(p[1], 7, 4));
  EXPECT_OK(cudaMemcpyPeerAsync(p[0], 0, p[1], 1, 4, nullptr));
  EXPECT_EQ(cudaMemcpyPeer(p[0], 0, p[1], 2, 4), cudaErrorInvalidDevice);
  EXPECT_OK(cudaMemcpy(&host, p[0], 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(host, 0x07070707);
  for (int d = 0; d < 2; d++) {
    EXPECT_OK(cudaPointerGetAttributes(&a, p[d]));
    EXPECT_EQ(a.device, d);
  }
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  EXPECT_OK(cudaMemPoolCreate(&own, &props)); /* of device 0 */
  EXPECT_OK(cudaMallocFromPoolAsync(&ordered, 100, own, nullptr));
  EXPECT_OK(cudaPointerGetAttributes(&a, ordered));
  EXPECT_EQ(a.device, 0);
  EXPECT_EQ(used(), size_t{4});
  EXPECT_OK(cudaFree(p[0])); /* whichever device is current */
  EXPECT_EQ(used(), size_t{4});
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_EQ(used(), size_t{100});
  EXPECT_OK(cudaFreeAsync(ordered, nullptr));
  EXPECT_OK(cudaMemPoolDestroy(own));
  EXPECT_OK(cudaFree(p[1]));
  props.location.id = 2;
  EXPECT_EQ(cudaMemPoolCreate(&own, &props), cudaErrorInvalidValue);
}

TEST(streams_and_events_belong_to_a_device) {
  RUN_WITH("streams_and_events_belong_to_a_device", "GPUKIT_CPU_DEVICES=2");
  cudaStream_t stream;
  cudaEvent_t there, here;
  int device = -1, host = 0;
  float ms;
  device_array<int> a(1);
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaEventCreate(&there));
  EXPECT_OK(cudaEventRecord(there, stream));
  EXPECT_OK(cudaSetDevice(1));
  EXPECT_OK(cudaEventCreate(&here));
  EXPECT_OK(cudaStreamGetDevice(stream, &device));
  EXPECT_EQ(device, 0);
  EXPECT_OK(cudaStreamGetDevice(nullptr, &device));
  EXPECT_EQ(device, 1);
  EXPECT_EQ(launch_on(stream, add_one, 1, 1, 0, a.p), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(here, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(there, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_OK(cudaEventRecord(here, nullptr));
  EXPECT_EQ(cudaEventElapsedTime(&ms, there, here), cudaErrorInvalidResourceHandle);
  /* what CUDA permits */
  EXPECT_OK(cudaMemcpyAsync(&host, a.p, 4, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamWaitEvent(stream, here, 0));
  EXPECT_OK(cudaEventSynchronize(there));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(launch_on(stream, add_one, 1, 1, 0, a.p));
  EXPECT_EQ(a.get()[0], 1);
  EXPECT_OK(cudaEventDestroy(here));
  EXPECT_OK(cudaEventDestroy(there));
  EXPECT_OK(cudaStreamDestroy(stream));
  cudaGetLastError();
}

TEST(peer_access_is_switched_on_and_off) {
  RUN_WITH("peer_access_is_switched_on_and_off", "GPUKIT_CPU_DEVICES=2");
  int can = -1;
  EXPECT_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  EXPECT_OK(cudaDeviceCanAccessPeer(&can, 1, 1));
  EXPECT_EQ(can, 0);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  EXPECT_OK(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(2, 0), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
  EXPECT_OK(cudaSetDevice(1)); /* the other direction is a matter of its own */
  EXPECT_EQ(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(cudaDeviceDisablePeerAccess(1));
  cudaGetLastError();
}

TEST(a_kernel_reaches_protected_memory_of_its_peers_alone) {
  const char *const name = "a_kernel_reaches_protected_memory_of_its_peers_alone";
  if (in_child(name)) {
    int *p = nullptr, value = 0;
    EXPECT_OK(cudaMalloc(&p, 4));
    EXPECT_OK(cudaMemset(p, 0, 4));
    EXPECT_OK(cudaSetDevice(1));
    if (*getenv("HOW") == 'p') EXPECT_OK(cudaDeviceEnablePeerAccess(0, 0));
    EXPECT_OK(launch(add_one, 1, 1, 0, p));
    EXPECT_OK(cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost));
    EXPECT_EQ(value, 1);
    EXPECT_OK(cudaFree(p));
    return;
  }
  EXPECT_PASSED(run_child(name, "GPUKIT_CPU_DEVICES=2 GPUKIT_CPU_PROTECT=1 HOW=peer"));
  const child c = run_child(name, "GPUKIT_CPU_DEVICES=2 GPUKIT_CPU_PROTECT=1 HOW=alone");
  EXPECT(c.signal == SIGSEGV || c.status == 1);
  EXPECT_HAS(c.output.c_str(), "in kernel add_one(int*)");
  EXPECT_HAS(c.output.c_str(), "byte 0 of device memory of 4 bytes, allocation 1, by cudaMalloc, device 0\n");
}

TEST(a_failure_and_a_reset_are_one_devices) {
  RUN_WITH("a_failure_and_a_reset_are_one_devices", "GPUKIT_CPU_DEVICES=2");
  int *p[2] = {};
  cudaStream_t stream[2];
  cudaFuncAttributes f;
  for (int d = 0; d < 2; d++) {
    EXPECT_OK(cudaSetDevice(d));
    EXPECT_OK(cudaMalloc(&p[d], 4));
    EXPECT_OK(cudaStreamCreate(&stream[d]));
    EXPECT_OK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000 + d));
    EXPECT_OK(cudaDeviceSetLimit(cudaLimitStackSize, 2000 + static_cast<size_t>(d)));
  }
  cuda_cpu_fail("kernel:1:cudaErrorIllegalAddress");
  EXPECT_OK(launch(nothing, 1, 1, 0));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  cuda_cpu_fail(nullptr);
  EXPECT_OK(cudaDeviceReset());
  EXPECT_OK(cudaDeviceSynchronize());
  size_t limit = 0;
  EXPECT_OK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  EXPECT_EQ(limit, size_t{1024});
  EXPECT_EQ(cudaStreamDestroy(stream[1]), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaFree(p[1]), cudaErrorInvalidValue);
  EXPECT_OK(cudaFuncGetAttributes(&f, nothing));
  EXPECT_EQ(f.maxDynamicSharedSizeBytes, 49152);
  EXPECT_EQ(used(), size_t{0});
  EXPECT_OK(cudaSetDevice(0)); /* has noticed nothing */
  EXPECT_EQ(used(), size_t{4});
  EXPECT_OK(cudaFuncGetAttributes(&f, nothing));
  EXPECT_EQ(f.maxDynamicSharedSizeBytes, 50000);
  EXPECT_OK(cudaStreamDestroy(stream[0]));
  EXPECT_OK(cudaFree(p[0]));
  cudaGetLastError();
}

TEST(attributes_of_a_kernel_on_another_device) {
  RUN_WITH("attributes_of_a_kernel_on_another_device", "GPUKIT_CPU_DEVICES=2");
  cudaKernel_t handle = nullptr;
  cudaFuncAttributes f;
  const cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_OK(cudaGetKernel(&handle, reinterpret_cast<const void *>(nothing)));
  EXPECT_EQ(cudaKernelSetAttributeForDevice(handle, most, 60000, 2), cudaErrorInvalidDevice);
  EXPECT_OK(cudaKernelSetAttributeForDevice(handle, most, 60000, 1)); /* leaves the error, unlike the other call */
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_OK(cudaFuncGetAttributes(&f, nothing));
  EXPECT_EQ(f.maxDynamicSharedSizeBytes, 49152);
  EXPECT_OK(cudaFuncSetAttribute(nothing, most, 50000));
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaSetDevice(1));
  EXPECT_OK(cudaFuncGetAttributes(&f, nothing));
  EXPECT_EQ(f.maxDynamicSharedSizeBytes, 60000);
}

#endif
