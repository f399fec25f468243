/* Lesson 3: vector add, the canonical program: c = a + b for n floats. Allocate, copy in, launch, copy out, free. */
#include <cuda_runtime.h>

__global__ void add(const float *a, const float *b, float *c, size_t n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i]; /* the last block has threads beyond n */
}

static void vector_add(const float *a, const float *b, float *c, size_t n) {
  const size_t bytes = n * sizeof(float);
  float *device_a, *device_b, *device_c;
  cudaMalloc(&device_a, bytes);
  cudaMalloc(&device_b, bytes);
  cudaMalloc(&device_c, bytes);
  cudaMemcpy(device_a, a, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(device_b, b, bytes, cudaMemcpyHostToDevice);
  add<<<(unsigned)((n + 255) / 256), 256>>>(device_a, device_b, device_c, n); /* enough blocks to cover n */
  cudaMemcpy(c, device_c, bytes, cudaMemcpyDeviceToHost);                     /* waits for the kernel */
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_c);
}

/* A program should also check for errors. Each of these calls returns an error code. A launch returns nothing: that it
 * was refused is known by cudaGetLastError(), and that its kernel failed by a later call. So check every call, and ask
 * after every launch; GK_CHECK and GK_CHECK_LAUNCH do so below. */

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * Two loads and one store for each addition: only the memory counts. What the table of an H200 shows:
 *
 *   one thread an element   the kernel above: 3434 GB/s of the 4814 GB/s of the specification
 *   grid-stride loop        1.06 times as fast: 1056 blocks start, not 262,144
 *   16-byte accesses        1.26 times as fast: a warp asks for four times the bytes in one request, so more bytes are
 *                           under way at any time, which is what hides the latency of the memory
 *   with the copies         303 times as slow, 11 GB/s: three copies over PCIe, from and to pageable memory. From
 *                           and to pinned memory they would take about 14.8 ms, not 71.0 ms, by the rates of lesson 7.
 *                           That is 4.8 times as fast, but still 60 times slower than the GPU's memory
 *   one CPU core            14 GB/s: faster than the GPU if the data has to be copied for a single addition
 *
 * So a GPU pays if the data stays on it for many kernels. Without copies it wins from 32,768 floats on; below that, the
 * few microseconds of a launch are more than the CPU's whole time. Two events around one launch show more than the
 * median of many launches in a row, since the start of the kernel does not overlap with the kernel before. */
#include "lesson.h"
#include <algorithm>

static const lesson_about about = {"03_vector_add", "c = a + b: the kernel alone, with its copies, and on a CPU core",
                                   "floats",        1 << 26,
                                   1 << 12,         1,
                                   1 << 29,         "GB/s"};

#define BLOCK 256
#define SMALLEST 256 /* n at which the GPU is first compared with a CPU core */

/* Works with any grid: the step of each thread is the number of threads of the grid. */
__global__ void add_in_strides(const float *a, const float *b, float *c, size_t n) {
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) c[i] = a[i] + b[i];
}

/* Four floats in each access. The first threads add the one to three floats that are left over. */
__global__ void add_16_bytes(const float *a, const float *b, float *c, size_t n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, whole = n / 4;
  if (i < whole) {
    const float4 x = ((const float4 *)a)[i], y = ((const float4 *)b)[i];
    ((float4 *)c)[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
  if (i < n % 4) c[4 * whole + i] = a[4 * whole + i] + b[4 * whole + i];
}

static unsigned ceil_div(size_t n, size_t by) { return (unsigned)((n + by - 1) / by); }

/* The shortest of five runs on one CPU core. */
static double cpu_us(const float *a, const float *b, float *c, size_t n) {
  double best = 1e30;
  for (int run = 0; run < 5; run++) {
    const double start = lesson_now_us();
    for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];
    const double us = lesson_now_us() - start;
    if (us < best) best = us;
  }
  return best;
}

/* As vector_add() above, without the allocations. */
static void with_copies(const float *a, const float *b, float *c, float *const device[3], size_t n) {
  GK_CHECK(cudaMemcpyAsync(device[0], a, n * sizeof(float), cudaMemcpyHostToDevice, 0));
  GK_CHECK(cudaMemcpyAsync(device[1], b, n * sizeof(float), cudaMemcpyHostToDevice, 0));
  add<<<ceil_div(n, BLOCK), BLOCK>>>(device[0], device[1], device[2], n);
  GK_CHECK(cudaMemcpyAsync(c, device[2], n * sizeof(float), cudaMemcpyDeviceToHost, 0));
}

/* Few runs, since each takes long. */
static lesson_row *measure_with_copies(lesson *l, const float *a, const float *b, float *c, float *const device[3],
                                       size_t n) {
  const double bytes = 3.0 * (double)n * sizeof(float);
  return lesson_measure_fresh(
      l, "with the copies", bytes, [] {}, [=] { with_copies(a, b, c, device, n); });
}

/* The first power of two from which on the GPU is faster; 0: none up to n. The search begins at the largest one, so
 * that it ends at the first size at which the GPU is slower. */
static size_t faster_from(lesson *l, const float *a, const float *b, float *c, float *const device[3], bool copies) {
  size_t from = 0, n = SMALLEST;
  while (n <= l->n / 2) n *= 2;
  for (; n >= SMALLEST && n <= l->n; n /= 2) {
    lesson trial = *l; /* its rows stay out of the table */
    trial.row_count = 0;
    const lesson_row *const gpu =
        copies ? measure_with_copies(&trial, a, b, c, device, n) : lesson_measure(&trial, "trial", 0, [=] {
          add<<<ceil_div(n, BLOCK), BLOCK>>>(device[0], device[1], device[2], n);
        });
    if (gpu->us >= cpu_us(a, b, c, n)) break;
    from = n;
  }
  return from;
}

/* One launch between two events, as most first programs measure. */
static float by_events_us(const float *a, const float *b, float *c, size_t n) {
  cudaEvent_t start, stop;
  float ms = 0;
  GK_CHECK(cudaEventCreate(&start));
  GK_CHECK(cudaEventCreate(&stop));
  GK_CHECK(cudaEventRecord(start));
  add<<<ceil_div(n, BLOCK), BLOCK>>>(a, b, c, n);
  GK_CHECK_LAUNCH();
  GK_CHECK(cudaEventRecord(stop));
  GK_CHECK(cudaEventSynchronize(stop));
  GK_CHECK(cudaEventElapsedTime(&ms, start, stop));
  GK_CHECK(cudaEventDestroy(start));
  GK_CHECK(cudaEventDestroy(stop));
  return 1000 * ms;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const size_t n = l.n;
  const double bytes = 3.0 * (double)n * sizeof(float);
  std::vector<float> a(n), b(n), c(n), sum(n);
  for (size_t i = 0; i < n; i++) {
    a[i] = (float)(i % 1000), b[i] = (float)(i % 77);
    sum[i] = a[i] + b[i];
  }
  float *const d[3] = {lesson_array(&l, a), lesson_array(&l, b), lesson_array<float>(&l, n)};
  const float *const da = d[0], *const db = d[1], *const ha = a.data(), *const hb = b.data();
  float *const dc = d[2], *const hc = c.data();
  const unsigned few = l.mode == LESSON_TIMED ? (unsigned)l.device.sms * 8 : 4; /* blocks */

  vector_add(ha, hb, hc, n);
  const bool all_right = c == sum;
  std::fill(c.begin(), c.end(), 0.0f);

  const lesson_row *const plain =
      lesson_measure(&l, "one thread an element", bytes, [=] { add<<<ceil_div(n, BLOCK), BLOCK>>>(da, db, dc, n); });
  lesson_expect(&l, plain, dc, sum);
  if (!all_right) lesson_wrong(&l, plain, "vector_add() has left wrong sums");
  const lesson_row *r =
      lesson_measure(&l, "grid-stride loop", bytes, [=] { add_in_strides<<<few, BLOCK>>>(da, db, dc, n); });
  lesson_expect(&l, r, dc, sum);
  const lesson_row *const best = r->us < plain->us ? r : plain;
  r = lesson_measure(&l, "16-byte accesses", bytes,
                     [=] { add_16_bytes<<<ceil_div(n, 4 * BLOCK), BLOCK>>>(da, db, dc, n); });
  lesson_expect(&l, r, dc, sum);
  const lesson_row *const fastest = r->us < best->us ? r : best;
  r = measure_with_copies(&l, ha, hb, hc, d, n);
  lesson_expect(&l, r, dc, sum);
  if (c != sum) lesson_wrong(&l, r, "the sums copied to the host are wrong");
  if (l.mode == LESSON_TIMED) {
    lesson_row *const core = lesson_new_row(&l, "one CPU core");
    core->us = cpu_us(ha, hb, hc, n);
    core->rate = bytes / core->us * 1e-3;
  }
  lesson_table(&l);

  add<<<1, 2048>>>(da, db, dc, n); /* deliberately: no block has more than 1024 threads */
  const cudaError_t refused = cudaGetLastError();
  if (refused == cudaSuccess) lesson_wrong(&l, plain, "a block of 2048 threads is not refused");
  lesson_say(&l, "A launch with blocks of 2048 threads runs nothing, and cudaGetLastError() returns %s (%s).",
             cudaGetErrorName(refused), cudaGetErrorString(refused));
  if (l.mode == LESSON_TIMED) {
    lesson_say(&l,
               "The fastest kernel, %s, reaches %.1f %% of %.0f GB/s; two events around one launch measure %.1f us.",
               fastest->variant, l.device.peak_gbs > 0 ? 100 * fastest->rate / l.device.peak_gbs : 0, l.device.peak_gbs,
               by_events_us(da, db, dc, n));
    lesson_say(&l, "With its copies the kernel takes %.0f times as long.", r->us / plain->us);
    for (int copies = 0; copies < 2; copies++) {
      const size_t from = faster_from(&l, ha, hb, hc, d, copies);
      if (from)
        lesson_say(&l, "With%s copies the GPU is faster than one CPU core from n = %zu on.", copies ? "" : "out", from);
      else
        lesson_say(&l, "With%s copies the GPU is not faster than one CPU core for any n up to %zu.",
                   copies ? "" : "out", n);
    }
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(
        &l,
        "With 16-byte accesses there are %.0f requests, not %.0f; each touches %.0f sectors, not %.0f: as many in all.",
        l.rows[2].counted.requests, plain->counted.requests, l.rows[2].counted.load_sectors,
        plain->counted.load_sectors);
  }
  return lesson_end(&l);
}
