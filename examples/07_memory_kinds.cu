/* Lesson 7: kinds of memory. A kernel reads n floats and writes n others. Where do they lie, and how do they get there?
 *
 *   pageable         malloc's or new's: the driver copies it in pieces to memory of its own, and on from there
 *   pinned           cudaMallocHost's, or the program's own after cudaHostRegister: it cannot be swapped out, so that
 *                    the GPU copies it by itself, at the speed of the bus and beside the CPU's work
 *   zero-copy        pinned memory that a kernel uses where it is: each access goes over the bus
 *   managed          one pointer for both sides: pages move when they are touched, each with a fault, or before
 *                    by cudaMemPrefetchAsync, or stay where cudaMemAdvise says
 *   device           cudaMalloc's
 *   stream-ordered   cudaMallocAsync's: device memory out of a pool, which costs next to nothing the second time, while
 *                    cudaMalloc and cudaFree wait for the GPU
 *
 * "in" and "out" are copies to the device and from it. */
#include "lesson.h"

static const lesson_about about = {"07_memory_kinds",
                                   "pageable, pinned, zero-copy, managed, device and stream-ordered",
                                   "floats that a kernel reads, and as many that it writes",
                                   1 << 25,
                                   1 << 12,
                                   1,
                                   1 << 29,
                                   "GB/s"};

#define BLOCK 256

__host__ __device__ inline float result(float x) { return 2 * x + 1; }

__global__ void kernel(const float *in, float *out, size_t n) {
  const size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = result(in[i]);
}

static void launch(const float *in, float *out, size_t n) {
  kernel<<<(unsigned)((n + BLOCK - 1) / BLOCK), BLOCK>>>(in, out, n);
}

/* To the current device, or to the host. CUDA 13 takes places where earlier ones took numbers. */
static void prefetch(const void *p, size_t bytes, const lesson *l, bool to_device) {
#if CUDART_VERSION >= 13000
  cudaMemLocation place = {};
  place.type = to_device ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost;
  place.id = to_device ? l->device.device : 0;
  GK_CHECK(cudaMemPrefetchAsync(p, bytes, place, 0, 0));
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

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const size_t n = l.n, bytes = n * sizeof(float);
  const double both = 2.0 * (double)bytes;
  if (bytes > l.device.free_bytes / 8)
    lesson_refuse(&about, "--n=%zu: six such arrays take more than %zu MiB of device memory, which are free", n,
                  l.device.free_bytes >> 20);
  std::vector<float> values(n), expected(n), back(n);
  for (size_t i = 0; i < n; i++) values[i] = (float)(i % 8191), expected[i] = result(values[i]);
  float *const in = lesson_array<float>(&l, n), *const out = lesson_array<float>(&l, n);
  float *const spare = lesson_array<float>(&l, n);
  float *pinned = NULL, *pinned_out = NULL, *zero_in = NULL, *zero_out = NULL;
  GK_CHECK(cudaHostAlloc(&pinned, bytes, cudaHostAllocMapped));
  GK_CHECK(cudaHostAlloc(&pinned_out, bytes, cudaHostAllocMapped));
  GK_CHECK(cudaHostGetDevicePointer(&zero_in, pinned, 0));
  GK_CHECK(cudaHostGetDevicePointer(&zero_out, pinned_out, 0));
  memcpy(pinned, values.data(), bytes);

  const lesson_row *const pageable = copy(&l, "pageable in", in, values.data(), cudaMemcpyHostToDevice);
  lesson_expect(&l, pageable, in, values);
  const lesson_row *const pinned_in = copy(&l, "pinned in", in, pinned, cudaMemcpyHostToDevice);
  lesson_expect(&l, pinned_in, in, values);
  GK_CHECK(cudaHostRegister(values.data(), bytes, cudaHostRegisterDefault));
  const lesson_row *r = copy(&l, "pinned by register in", in, values.data(), cudaMemcpyHostToDevice);
  GK_CHECK(cudaHostUnregister(values.data()));

  const lesson_row *const device = lesson_measure(&l, "kernel on device memory", both, [=] { launch(in, out, n); });
  const lesson_row *const out_pageable = copy(&l, "pageable out", back.data(), out, cudaMemcpyDeviceToHost);
  GK_CHECK(cudaDeviceSynchronize());
  if (back != expected) lesson_wrong(&l, out_pageable, "what came back is wrong");
  const lesson_row *const out_pinned = copy(&l, "pinned out", pinned_out, out, cudaMemcpyDeviceToHost);
  lesson_expect_here(&l, out_pinned, pinned_out, expected);
  lesson_expect(&l, device, out, expected);

  const lesson_row *const zero_copy =
      lesson_measure(&l, "kernel on zero-copy memory", both, [=] { launch(zero_in, zero_out, n); });
  lesson_expect_here(&l, zero_copy, pinned_out, expected);

  const lesson_row *faults = NULL, *moved = NULL, *prefetched = NULL;
  int managed = 0;
  GK_CHECK(cudaDeviceGetAttribute(&managed, cudaDevAttrConcurrentManagedAccess, l.device.device));
  if (managed) {
    float *m_in, *m_out;
    const lesson *const lp = &l;
    const float *const source = values.data();
    GK_CHECK(cudaMallocManaged(&m_in, bytes));
    GK_CHECK(cudaMallocManaged(&m_out, bytes));
    const auto touched_by_host = [=] { memcpy(m_in, source, bytes), memset(m_out, 0xff, bytes); };
    faults =
        lesson_measure_fresh(&l, "kernel on managed memory", both, touched_by_host, [=] { launch(m_in, m_out, n); });
    lesson_expect_here(&l, faults, m_out, expected);
    moved = lesson_measure_fresh(&l, "managed prefetched in", both, touched_by_host, [=] {
      prefetch(m_in, bytes, lp, true);
      prefetch(m_out, bytes, lp, true);
    });
    prefetched = lesson_measure(&l, "kernel after prefetch", both, [=] { launch(m_in, m_out, n); });
    lesson_expect_here(&l, prefetched, m_out, expected);
    stay_on_host(m_in, bytes, &l);
    stay_on_host(m_out, bytes, &l);
    r = lesson_measure_fresh(&l, "kernel on managed memory that stays", both, touched_by_host,
                             [=] { launch(m_in, m_out, n); });
    lesson_expect_here(&l, r, m_out, expected);
    GK_CHECK(cudaFree(m_in));
    GK_CHECK(cudaFree(m_out));
  }

  GK_CHECK(cudaMemcpy(in, values.data(), bytes, cudaMemcpyHostToDevice));
  const lesson_row *const kept = lesson_measure(&l, "kernel + copy", 2 * both, [=] {
    launch(in, spare, n);
    GK_CHECK(cudaMemcpyAsync(out, spare, bytes, cudaMemcpyDeviceToDevice, 0));
  });
  lesson_expect(&l, kept, out, expected);
  const lesson_row *const each_time = lesson_measure(&l, "the same with cudaMalloc and cudaFree", 2 * both, [=] {
    float *fresh;
    GK_CHECK(cudaMalloc(&fresh, bytes));
    launch(in, fresh, n);
    GK_CHECK(cudaMemcpyAsync(out, fresh, bytes, cudaMemcpyDeviceToDevice, 0));
    GK_CHECK(cudaFree(fresh));
  });
  lesson_expect(&l, each_time, out, expected);
  const lesson_row *const ordered = lesson_measure(&l, "with cudaMallocAsync and cudaFreeAsync", 2 * both, [=] {
    float *fresh;
    GK_CHECK(cudaMallocAsync(&fresh, bytes, 0));
    launch(in, fresh, n);
    GK_CHECK(cudaMemcpyAsync(out, fresh, bytes, cudaMemcpyDeviceToDevice, 0));
    GK_CHECK(cudaFreeAsync(fresh, 0));
  });
  lesson_expect(&l, ordered, out, expected);
  lesson_table(&l);
  GK_CHECK(cudaFreeHost(pinned));
  GK_CHECK(cudaFreeHost(pinned_out));

  if (!managed) lesson_say(&l, "This device moves no managed memory by itself: those variants are left out.");
  if (l.mode == LESSON_COUNTED)
    lesson_say(&l,
               "Which kind of memory it is makes no difference to what a kernel asks for: %.0f requests, %.0f from "
               "zero-copy memory.",
               device->counted.requests, zero_copy->counted.requests);
  if (l.mode != LESSON_TIMED) return lesson_end(&l);
  lesson_say(&l,
             "Pinned memory is copied in %.2f times as fast as pageable; a course of 2012 had 237 and 87 ms, x %.2f.",
             pageable->us / pinned_in->us, 237.0 / 87);
  lesson_say(
      &l, "A kernel on zero-copy memory takes %.0f times as long as on device memory; in 2012 374 and 8.4 ms, x %.0f.",
      zero_copy->us / device->us, 374 / 8.4);
  lesson_say(&l, "But with the pinned copies in and out the kernel takes %.0f us, and zero-copy takes %.2f of that.",
             pinned_in->us + device->us + out_pinned->us,
             zero_copy->us / (pinned_in->us + device->us + out_pinned->us));
  if (managed)
    lesson_say(&l,
               "Page faults take %.0f us, a prefetch %.0f us; after it the kernel runs %.2f times as long as on device "
               "memory.",
               faults->us, moved->us, prefetched->us / device->us);
  lesson_say(&l, "To allocate and free each time costs %.0f us with cudaMalloc, with cudaMallocAsync %.1f us.",
             each_time->us - kept->us, ordered->us - kept->us);
  return lesson_end(&l);
}
