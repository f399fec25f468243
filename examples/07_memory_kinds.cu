/* Lesson 7: kinds of memory. A kernel reads n floats and writes n others. Here are three ways to get them to the GPU
 * and back. */
#include <cuda_runtime.h>
#include <string.h>

#define BLOCK 256

__host__ __device__ inline float result(float x) { return 2 * x + 1; }

__global__ void kernel(const float *in, float *out, size_t n) {
  const size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = result(in[i]);
}

static void launch(const float *in, float *out, size_t n) {
  kernel<<<(unsigned)((n + BLOCK - 1) / BLOCK), BLOCK>>>(in, out, n);
}

/* Device memory (cudaMalloc), and copies from and to the host's arrays. */
static void by_copies(const float *host_in, float *host_out, size_t n) {
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(in, host_in, n * sizeof(float), cudaMemcpyHostToDevice);
  launch(in, out, n);
  cudaMemcpy(host_out, out, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(out);
}

/* Pinned memory (cudaMallocHost): it cannot be swapped out, so the kernel may use it where it is (zero-copy). Each
 * access goes over the bus. */
static void by_zero_copy(const float *host_in, float *host_out, size_t n) {
  float *in, *out;
  cudaMallocHost(&in, n * sizeof(float));
  cudaMallocHost(&out, n * sizeof(float));
  memcpy(in, host_in, n * sizeof(float));
  launch(in, out, n);
  cudaDeviceSynchronize(); /* the host must not read before the kernel has ended */
  memcpy(host_out, out, n * sizeof(float));
  cudaFreeHost(in);
  cudaFreeHost(out);
}

/* Managed memory (cudaMallocManaged): one pointer for host and device. The driver moves a page when one of them touches
 * it. */
static void by_managed_memory(const float *host_in, float *host_out, size_t n) {
  float *in, *out;
  cudaMallocManaged(&in, n * sizeof(float));
  cudaMallocManaged(&out, n * sizeof(float));
  memcpy(in, host_in, n * sizeof(float));
  launch(in, out, n);
  cudaDeviceSynchronize();
  memcpy(host_out, out, n * sizeof(float));
  cudaFree(in);
  cudaFree(out);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, whose bus is PCIe 5 with 63 GB/s in each direction in theory:
 *
 *   pageable in, out          memory of malloc() or new: 6.7 and 10 GB/s. The driver copies it through a pinned buffer
 *                             of its own, piece by piece, so the host's own copying limits
 *   pinned in, out            55 GB/s: the GPU copies at the speed of the bus. cudaHostRegister() pins memory
 *                             that exists already, to the same effect
 *   kernel on device memory   2617 GB/s
 *   on zero-copy memory       84 GB/s, 31 times as slow. But it reads over one direction of the bus while it writes
 *                             over the other, so it takes 0.65 of the time of two pinned copies and a kernel
 *   on managed memory         11 GB/s: the kernel's accesses to pages on the host are faults. The driver handles faults
 *                             in groups, and moves their pages
 *   managed prefetched in     47 GB/s for both arrays, without faults: cudaMemPrefetchAsync(). After it the kernel runs
 *                             as fast as on device memory
 *   that stays                83 GB/s: cudaMemAdvise() keeps the pages on the host, so it is zero-copy by another name
 *   kernel + copy             with a temporary array. cudaMalloc() and cudaFree() in each call add 311 us, since they
 *                             wait for the GPU and map memory; cudaMallocAsync() and cudaFreeAsync() take it from a
 *                             pool in the order of the stream, and add 57 us
 *   with memory kept          at each synchronisation a pool returns its unused memory to the system, but for
 *                             cudaMemPoolAttrReleaseThreshold bytes: 0 unless it is set, as it is for this row, which
 *                             adds 1 us
 *
 * "in" is a copy to the device, "out" a copy from it. */
#include "lesson.h"

static const lesson_about about = {"07_memory_kinds",
                                   "pageable, pinned, zero-copy, managed, device and stream-ordered",
                                   "floats that a kernel reads, and as many that it writes",
                                   1 << 25,
                                   1 << 12,
                                   1,
                                   1 << 29,
                                   "GB/s"};

/* To the current device, or to the host. CUDA 13 takes a location where earlier versions took a number. */
static void prefetch(const void *p, size_t bytes, const lesson *l, bool to_device) {
#if CUDART_VERSION >= 13000
  cudaMemLocation location = {};
  location.type = to_device ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost;
  location.id = to_device ? l->device.device : 0;
  GK_CHECK(cudaMemPrefetchAsync(p, bytes, location, 0, 0));
#else
  GK_CHECK(cudaMemPrefetchAsync(p, bytes, to_device ? l->device.device : cudaCpuDeviceId, 0));
#endif
}

static void stay_on_host(const void *p, size_t bytes, const lesson *l) {
#if CUDART_VERSION >= 13000
  cudaMemLocation host = {}, device = {};
  host.type = cudaMemLocationTypeHost;
  device.type = cudaMemLocationTypeDevice, device.id = l->device.device;
#else
  const int host = cudaCpuDeviceId, device = l->device.device;
#endif
  GK_CHECK(cudaMemAdvise(p, bytes, cudaMemAdviseSetPreferredLocation, host));
  GK_CHECK(cudaMemAdvise(p, bytes, cudaMemAdviseSetAccessedBy, device));
}

static lesson_row *copy(lesson *l, const char *variant, float *to, const float *from, cudaMemcpyKind kind) {
  const size_t bytes = l->n * sizeof(float);
  return lesson_measure(l, variant, (double)bytes, [=] { GK_CHECK(cudaMemcpyAsync(to, from, bytes, kind, 0)); });
}

typedef struct managed_rows {
  const lesson_row *faults, *moved, *prefetched;
} managed_rows;

static managed_rows measure_managed(lesson *l, const std::vector<float> &values, const std::vector<float> &expected) {
  const size_t n = values.size(), bytes = n * sizeof(float);
  const double both = 2.0 * (double)bytes;
  const float *const source = values.data();
  managed_rows rows;
  float *in, *out;
  GK_CHECK(cudaMallocManaged(&in, bytes));
  GK_CHECK(cudaMallocManaged(&out, bytes));
  const auto touched_by_host = [=] { memcpy(in, source, bytes), memset(out, 0xff, bytes); };
  const auto run = [=] { launch(in, out, n); };
  rows.faults = lesson_measure_fresh(l, "kernel on managed memory", both, touched_by_host, run);
  lesson_expect_here(l, rows.faults, out, expected);
  rows.moved = lesson_measure_fresh(l, "managed prefetched in", both, touched_by_host, [=] {
    prefetch(in, bytes, l, true);
    prefetch(out, bytes, l, true);
  });
  rows.prefetched = lesson_measure(l, "kernel after prefetch", both, run);
  lesson_expect_here(l, rows.prefetched, out, expected);
  stay_on_host(in, bytes, l);
  stay_on_host(out, bytes, l);
  const lesson_row *const stays =
      lesson_measure_fresh(l, "kernel on managed memory that stays", both, touched_by_host, run);
  lesson_expect_here(l, stays, out, expected);
  GK_CHECK(cudaFree(in));
  GK_CHECK(cudaFree(out));
  return rows;
}

typedef struct allocation_rows {
  const lesson_row *kept, *each_time, *ordered, *ordered_kept;
} allocation_rows;

/* A kernel and a copy of its result, by way of a temporary array. */
static allocation_rows measure_allocations(lesson *l, const float *in, float *out, const std::vector<float> &expected) {
  const size_t n = expected.size(), bytes = n * sizeof(float);
  const double moved = 4.0 * (double)bytes;
  float *const spare = lesson_array<float>(l, n);
  allocation_rows rows;
  rows.kept = lesson_measure(l, "kernel + copy", moved, [=] {
    launch(in, spare, n);
    GK_CHECK(cudaMemcpyAsync(out, spare, bytes, cudaMemcpyDeviceToDevice, 0));
  });
  lesson_expect(l, rows.kept, out, expected);
  rows.each_time = lesson_measure(l, "the same with cudaMalloc and cudaFree", moved, [=] {
    float *fresh;
    GK_CHECK(cudaMalloc(&fresh, bytes));
    launch(in, fresh, n);
    GK_CHECK(cudaMemcpyAsync(out, fresh, bytes, cudaMemcpyDeviceToDevice, 0));
    GK_CHECK(cudaFree(fresh));
  });
  lesson_expect(l, rows.each_time, out, expected);
  const auto from_pool = [=] {
    float *fresh;
    GK_CHECK(cudaMallocAsync(&fresh, bytes, 0));
    launch(in, fresh, n);
    GK_CHECK(cudaMemcpyAsync(out, fresh, bytes, cudaMemcpyDeviceToDevice, 0));
    GK_CHECK(cudaFreeAsync(fresh, 0));
  };
  rows.ordered = lesson_measure(l, "with cudaMallocAsync and cudaFreeAsync", moved, from_pool);
  lesson_expect(l, rows.ordered, out, expected);
  cudaMemPool_t pool;
  unsigned long long threshold = bytes;
  GK_CHECK(cudaDeviceGetDefaultMemPool(&pool, l->device.device));
  GK_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  rows.ordered_kept = lesson_measure(l, "with cudaMallocAsync and memory kept", moved, from_pool);
  lesson_expect(l, rows.ordered_kept, out, expected);
  threshold = 0;
  GK_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  return rows;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const size_t n = l.n, bytes = n * sizeof(float);
  const double both = 2.0 * (double)bytes;
  if (bytes > l.device.free_bytes / 8)
    lesson_refuse(&about, "--n=%zu: six such arrays need more than the %zu MiB of device memory that are free", n,
                  l.device.free_bytes >> 20);
  std::vector<float> values(n), expected(n), back(n);
  for (size_t i = 0; i < n; i++) values[i] = (float)(i % 8191), expected[i] = result(values[i]);
  bool all_right = true;
  for (const auto way : {by_copies, by_zero_copy, by_managed_memory}) {
    way(values.data(), back.data(), n);
    all_right &= back == expected;
    memset(back.data(), 0xff, bytes);
  }
  float *const in = lesson_array<float>(&l, n), *const out = lesson_array<float>(&l, n);
  float *pinned = NULL, *pinned_out = NULL, *zero_in = NULL, *zero_out = NULL;
  GK_CHECK(cudaHostAlloc(&pinned, bytes, cudaHostAllocMapped));
  GK_CHECK(cudaHostAlloc(&pinned_out, bytes, cudaHostAllocMapped));
  GK_CHECK(cudaHostGetDevicePointer(&zero_in, pinned, 0));
  GK_CHECK(cudaHostGetDevicePointer(&zero_out, pinned_out, 0));
  memcpy(pinned, values.data(), bytes);

  const lesson_row *const pageable = copy(&l, "pageable in", in, values.data(), cudaMemcpyHostToDevice);
  lesson_expect(&l, pageable, in, values);
  if (!all_right) lesson_wrong(&l, pageable, "one of the three ways at the top gives wrong values");
  const lesson_row *const pinned_in = copy(&l, "pinned in", in, pinned, cudaMemcpyHostToDevice);
  lesson_expect(&l, pinned_in, in, values);
  GK_CHECK(cudaHostRegister(values.data(), bytes, cudaHostRegisterDefault));
  const lesson_row *const registered = copy(&l, "pinned by register in", in, values.data(), cudaMemcpyHostToDevice);
  lesson_expect(&l, registered, in, values);
  GK_CHECK(cudaHostUnregister(values.data()));
  GK_CHECK(cudaMemcpy(in, values.data(), bytes, cudaMemcpyHostToDevice)); /* the check has overwritten it */

  const lesson_row *const device = lesson_measure(&l, "kernel on device memory", both, [=] { launch(in, out, n); });
  const lesson_row *const out_pageable = copy(&l, "pageable out", back.data(), out, cudaMemcpyDeviceToHost);
  GK_CHECK(cudaDeviceSynchronize());
  if (back != expected) lesson_wrong(&l, out_pageable, "the array copied to the host is wrong");
  const lesson_row *const out_pinned = copy(&l, "pinned out", pinned_out, out, cudaMemcpyDeviceToHost);
  lesson_expect_here(&l, out_pinned, pinned_out, expected);
  lesson_expect(&l, device, out, expected);

  const lesson_row *const zero_copy =
      lesson_measure(&l, "kernel on zero-copy memory", both, [=] { launch(zero_in, zero_out, n); });
  lesson_expect_here(&l, zero_copy, pinned_out, expected);

  int managed = 0;
  GK_CHECK(cudaDeviceGetAttribute(&managed, cudaDevAttrConcurrentManagedAccess, l.device.device));
  const managed_rows m = managed ? measure_managed(&l, values, expected) : managed_rows();

  GK_CHECK(cudaMemcpy(in, values.data(), bytes, cudaMemcpyHostToDevice));
  const allocation_rows a = measure_allocations(&l, in, out, expected);
  lesson_table(&l);
  GK_CHECK(cudaFreeHost(pinned));
  GK_CHECK(cudaFreeHost(pinned_out));

  if (!managed) lesson_say(&l, "This device does not move managed memory on demand: those variants are left out.");
  if (l.mode == LESSON_COUNTED)
    lesson_say(&l,
               "The kernel makes the same requests to any kind of memory: %.0f to device, %.0f to zero-copy memory.",
               device->counted.requests, zero_copy->counted.requests);
  if (l.mode != LESSON_TIMED) return lesson_end(&l);
  lesson_say(&l,
             "Copies from pinned memory are %.2f times as fast as from pageable memory (a course of 2012: %.2f times).",
             pageable->us / pinned_in->us, 237.0 / 87);
  lesson_say(&l, "A kernel on zero-copy memory takes %.0f times as long as on device memory (in 2012: %.0f times),",
             zero_copy->us / device->us, 374 / 8.4);
  lesson_say(&l, "but only %.2f of the time of pinned copy in, kernel and copy out, which is %.0f us.",
             zero_copy->us / (pinned_in->us + device->us + out_pinned->us),
             pinned_in->us + device->us + out_pinned->us);
  if (managed)
    lesson_say(&l,
               "With page faults a kernel takes %.0f us. A prefetch takes %.0f us, the kernel then %.2f times device "
               "memory's.",
               m.faults->us, m.moved->us, m.prefetched->us / device->us);
  lesson_say(&l, "An allocation in each call adds %.0f us with cudaMalloc, %.1f us with cudaMallocAsync,",
             a.each_time->us - a.kept->us, a.ordered->us - a.kept->us);
  lesson_say(&l, "and %.1f us if the pool keeps its memory.", a.ordered_kept->us - a.kept->us);
  return lesson_end(&l);
}
