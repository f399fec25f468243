/* Lesson 25: several GPUs from one thread. Memory, streams, events and launches belong to the device that is current
 * when they are made: cudaSetDevice(). Launches return at once, so one thread keeps all GPUs busy: it starts all of
 * them, and then waits for all.
 *
 * Peer access has to be allowed by the machine and enabled by the program, for each direction. With it a copy goes
 * directly from one GPU to the other, and kernels may use pointers to the other's memory. Without it cudaMemcpyPeer()
 * works, too, through the host.
 *
 * The work is a grid of numbers that is smoothed again and again. Each device has some of the rows, and copies of its
 * neighbours' adjacent rows (the halo), which have to be exchanged after every step. */
#include <cuda_runtime.h>

#define BLOCK 256

__host__ __device__ inline unsigned smoothed(unsigned up, unsigned left, unsigned own, unsigned right, unsigned down) {
  return (up + left + 4 * own + right + down) / 8;
}

/* `rows` rows of n, with one more row above and below. */
__global__ void smooth(const unsigned *in, unsigned *out, unsigned n, unsigned rows) {
  const unsigned x = blockIdx.x * BLOCK + threadIdx.x, y = blockIdx.y + 1;
  if (x >= n || y > rows) return;
  const unsigned *const row = in + (size_t)y * n;
  out[(size_t)y * n + x] = smoothed(*(row - n + x), row[x ? x - 1 : 0], row[x], row[x + 1 < n ? x + 1 : x], row[n + x]);
}

/* One step on two devices: in[d] and out[d] are arrays of rows + 2 rows in the memory of device d. Device 0 has the
 * upper half: its last row goes above the first row of device 1, whose first row goes below the last one of device 0.
 * */
static void step_on_two(unsigned *const in[2], unsigned *const out[2], unsigned n, unsigned rows) {
  const size_t bytes = n * sizeof(unsigned);
  for (int d = 0; d < 2; d++) {
    cudaSetDevice(d);
    smooth<<<dim3((n + BLOCK - 1) / BLOCK, rows), BLOCK>>>(in[d], out[d], n, rows); /* returns at once */
  }
  for (int d = 0; d < 2; d++) {
    cudaSetDevice(d);
    cudaDeviceSynchronize();
  }
  cudaMemcpyPeer(out[1], 1, out[0] + (size_t)rows * n, 0, bytes);
  cudaMemcpyPeer(out[0] + (size_t)(rows + 1) * n, 0, out[1] + n, 1, bytes);
  cudaSetDevice(0);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * The same for any number of devices, and without waiting on the host: events order the streams of neighbours. Two
 * H200s, 10 steps over 8192 x 8192 numbers:
 *
 *   1 GPU                     2485 us, 249 us a step
 *   2 GPUs, through the host  1655 us, 0.67 of that, where half would be perfect: a step of half the rows takes 124 us,
 *                             and 41 us more pass until its borders of 32 KiB have arrived and the next step may begin
 *   2 GPUs, peer access       1528 us, 0.61 of one GPU: 28 us more in each step. The borders are small, so most of it
 *                             is latency: of launches, events and copies
 *   a copy of the whole grid  38 GB/s through the host, 391 GB/s by peer access: NVLink, not PCIe twice */
#include "lesson.h"
#include <string>

static const lesson_about about = {
    "25_several_gpus", "one thread keeps several GPUs busy", "rows and columns", 8192, 96, 1, 16384, "GB/s"};

#define STEPS 10
#define MOST 8 /* devices */

typedef struct part {
  int device;
  unsigned first, rows;
  unsigned *buffer[2]; /* rows + 2 of them */
  cudaStream_t stream;
  cudaEvent_t computed, taken; /* after the rows of this step; after the neighbours' border rows */
} part;

typedef struct field {
  unsigned n;
  int count;
  part parts[MOST];
} field;

static unsigned *row_of(const field *f, const part *p, int buffer, size_t row) {
  return p->buffer[buffer] + row * f->n;
}

/* One step from a buffer to the other, then the exchange. Devices wait for their neighbours, the host does not wait. */
static void step(const field *f, int from) {
  const int to = 1 - from;
  const size_t bytes = f->n * sizeof(unsigned);
  const part *const last = f->parts + f->count - 1;
  for (const part *p = f->parts; p <= last; p++) {
    GK_CHECK(cudaSetDevice(p->device));
    /* The neighbours may still be reading the rows that are to be overwritten. */
    if (p > f->parts) GK_CHECK(cudaStreamWaitEvent(p->stream, p[-1].taken, 0));
    if (p < last) GK_CHECK(cudaStreamWaitEvent(p->stream, p[1].taken, 0));
    smooth<<<dim3((f->n + BLOCK - 1) / BLOCK, p->rows), BLOCK, 0, p->stream>>>(p->buffer[from], p->buffer[to], f->n,
                                                                               p->rows);
    GK_CHECK(cudaEventRecord(p->computed, p->stream));
  }
  for (const part *p = f->parts; p <= last; p++) {
    const part *const up = p > f->parts ? p - 1 : p, *const down = p < last ? p + 1 : p;
    GK_CHECK(cudaSetDevice(p->device));
    GK_CHECK(cudaStreamWaitEvent(p->stream, up->computed, 0));
    GK_CHECK(cudaStreamWaitEvent(p->stream, down->computed, 0));
    /* At the edges of the grid the outermost row stands for the one beyond it. */
    GK_CHECK(cudaMemcpyPeerAsync(row_of(f, p, to, 0), p->device, row_of(f, up, to, up == p ? 1 : up->rows), up->device,
                                 bytes, p->stream));
    GK_CHECK(cudaMemcpyPeerAsync(row_of(f, p, to, p->rows + 1), p->device, row_of(f, down, to, down == p ? p->rows : 1),
                                 down->device, bytes, p->stream));
    GK_CHECK(cudaEventRecord(p->taken, p->stream));
  }
}

/* All steps, after the earlier work of stream 0 of the first device, which then waits for all steps. */
static void steps(const field *f) {
  GK_CHECK(cudaSetDevice(0));
  GK_CHECK(cudaEventRecord(f->parts[0].computed, 0));
  for (int k = 0; k < f->count; k++) GK_CHECK(cudaStreamWaitEvent(f->parts[k].stream, f->parts[0].computed, 0));
  for (int s = 0; s < STEPS; s++) step(f, s % 2);
  GK_CHECK(cudaSetDevice(0)); /* stream 0 is that of the current device */
  for (int k = 0; k < f->count; k++) GK_CHECK(cudaStreamWaitEvent(0, f->parts[k].taken, 0));
}

static field split(unsigned n, int parts, const std::vector<unsigned> &start) {
  field f = {n, parts, {}};
  for (int k = parts; k-- > 0;) { /* device 0 is the last one, so that it stays current */
    part *const p = &f.parts[k];
    p->device = k;
    p->first = (unsigned)((size_t)n * (size_t)k / (size_t)parts);
    p->rows = (unsigned)((size_t)n * (size_t)(k + 1) / (size_t)parts) - p->first;
    GK_CHECK(cudaSetDevice(k));
    const size_t bytes = (size_t)(p->rows + 2) * n * sizeof(unsigned);
    for (unsigned *&b : p->buffer) GK_CHECK(cudaMalloc(&b, bytes));
    GK_CHECK(cudaMemcpy(p->buffer[0], &start[(size_t)p->first * n], bytes, cudaMemcpyHostToDevice));
    GK_CHECK(cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    for (cudaEvent_t *e : {&p->computed, &p->taken}) GK_CHECK(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
  }
  return f;
}

static void release(const field *f) {
  for (const part *p = f->parts; p < f->parts + f->count; p++) {
    GK_CHECK(cudaSetDevice(p->device));
    for (unsigned *b : p->buffer) GK_CHECK(cudaFree(b));
    GK_CHECK(cudaStreamDestroy(p->stream));
    for (const cudaEvent_t e : {p->computed, p->taken}) GK_CHECK(cudaEventDestroy(e));
  }
  GK_CHECK(cudaSetDevice(0));
}

/* Enables peer access where the machine allows it. Returns the number of directions. */
static int allow_peers(int devices) {
  int ways = 0;
  for (int from = 0; from < devices; from++)
    for (int to = 0; to < devices; to++) {
      int can = 0;
      if (from != to) GK_CHECK(cudaDeviceCanAccessPeer(&can, from, to));
      if (can) GK_CHECK(cudaSetDevice(from));
      if (can) GK_CHECK(cudaDeviceEnablePeerAccess(to, 0));
      ways += can;
    }
  GK_CHECK(cudaSetDevice(0));
  return ways;
}

/* Measures the work on `parts` devices; then checks it from `start`, which has a row more above and below. */
static const lesson_row *measure(lesson *l, int parts, const char *how, const std::vector<unsigned> &start,
                                 const std::vector<unsigned> &right) {
  const field f = split((unsigned)l->n, parts, start);
  const size_t n = l->n, row = n * sizeof(unsigned);
  const std::string variant = std::to_string(parts) + (parts == 1 ? " GPU" : " GPUs") + how;
  const lesson_row *const r = lesson_measure(l, variant.c_str(), 2.0 * STEPS * (double)(n * row), [&] { steps(&f); });
  for (const part *p = f.parts; p < f.parts + parts; p++)
    GK_CHECK(cudaMemcpy(p->buffer[0], &start[p->first * n], (p->rows + 2) * row, cudaMemcpyHostToDevice));
  steps(&f);
  GK_CHECK(cudaDeviceSynchronize());
  for (const part *p = f.parts; p < f.parts + parts; p++)
    lesson_expect(l, r, row_of(&f, p, STEPS % 2, 1),
                  std::vector<unsigned>(&right[p->first * n], &right[p->first * n] + p->rows * n));
  release(&f);
  return r;
}

/* Measures a copy of the whole grid from the first device to the second. */
static const lesson_row *measure_copy(lesson *l, const char *how, const std::vector<unsigned> &values) {
  const size_t bytes = values.size() * sizeof(unsigned);
  unsigned *const from = lesson_array(l, values);
  GK_CHECK(cudaSetDevice(1));
  unsigned *const to = lesson_array<unsigned>(l, values.size());
  GK_CHECK(cudaSetDevice(0));
  const auto copy = [=] { GK_CHECK(cudaMemcpyPeerAsync(to, 1, from, 0, bytes, 0)); };
  const lesson_row *const r =
      lesson_measure(l, (std::string("copy to another GPU") + how).c_str(), (double)bytes, copy);
  GK_CHECK(cudaMemcpyPeer(from, 0, to, 1, bytes));
  lesson_expect(l, r, from, values);
  return r;
}

/* Compares one step of step_on_two() with a loop on the host. start has a row more above and below. */
static void check_step_on_two(lesson *l, const std::vector<unsigned> &start) {
  const size_t n = l->n, rows = n / 2, bytes = (rows + 2) * n * sizeof(unsigned);
  unsigned *in[2], *out[2];
  std::vector<unsigned> got((rows + 2) * n);
  size_t wrong = 0;
  for (int d = 0; d < 2; d++) {
    GK_CHECK(cudaSetDevice(d));
    GK_CHECK(cudaMalloc(&in[d], bytes));
    GK_CHECK(cudaMalloc(&out[d], bytes));
    GK_CHECK(cudaMemcpy(in[d], &start[(size_t)d * rows * n], bytes, cudaMemcpyHostToDevice));
  }
  step_on_two(in, out, (unsigned)n, (unsigned)rows);
  GK_CHECK(cudaGetLastError());
  for (int d = 0; d < 2; d++) {
    GK_CHECK(cudaSetDevice(d));
    GK_CHECK(cudaMemcpy(got.data(), out[d], bytes, cudaMemcpyDeviceToHost));
    const size_t first = d == 0 ? 1 : 0; /* the row that came from the other device is checked, too */
    for (size_t y = first; y < first + rows + 1; y++)
      for (size_t x = 0; x < n; x++) {
        const size_t i = ((size_t)d * rows + y) * n + x;
        wrong += got[y * n + x] !=
                 smoothed(start[i - n], start[x ? i - 1 : i], start[i], start[x + 1 < n ? i + 1 : i], start[i + n]);
      }
    GK_CHECK(cudaFree(in[d]));
    GK_CHECK(cudaFree(out[d]));
  }
  GK_CHECK(cudaSetDevice(0));
  if (wrong) lesson_wrong(l, lesson_new_row(l, "step_on_two()"), "%zu values are wrong", wrong);
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const size_t n = l.n;
  int devices, ways = 0;
  GK_CHECK(cudaGetDeviceCount(&devices));
  if (devices > MOST) devices = MOST;
  const int parts = (size_t)devices < n ? devices : (int)n; /* each has at least one row */
  std::vector<unsigned> start((n + 2) * n), right(n * n), next(n * n);
  for (size_t i = 0; i < right.size(); i++) right[i] = (unsigned)i * 2654435761u >> 4;
  for (size_t i = 0; i < start.size(); i++) start[i] = right[i < n ? i : i - n < n * n ? i - n : i - 2 * n];
  for (int s = 0; s < STEPS; s++, right.swap(next))
    for (size_t i = 0; i < right.size(); i++)
      next[i] = smoothed(right[i < n ? i : i - n], right[i % n ? i - 1 : i], right[i], right[i % n + 1 < n ? i + 1 : i],
                         right[i + n < n * n ? i + n : i]);
  if (devices > 1 && n % 2 == 0) check_step_on_two(&l, start);
  const char *const hows[] = {" by way of the host", " with peer access"};
  const lesson_row *const one = measure(&l, 1, "", start, right), *split_up[2] = {}, *copied[2] = {};
  for (int how = 0; how < 2 && devices > 1; how++) {
    if (how == 1 && (ways = allow_peers(devices)) == 0) break;
    split_up[how] = measure(&l, parts, hows[how], start, right);
    copied[how] = measure_copy(&l, hows[how], right);
  }
  lesson_table(&l);
  if (devices < 2)
    lesson_say(&l, "There is one device only. (The stand-in has two with GPUKIT_CPU_DEVICES=2.)");
  else
    lesson_say(&l, "%d devices; peer access in %d of %d directions.", devices, ways, devices * (devices - 1));
  if (split_up[0] && l.mode == LESSON_TIMED)
    lesson_say(&l, "With borders copied through the host, the work takes %.2f of the time of one GPU.",
               split_up[0]->us / one->us);
  if (split_up[1] && l.mode == LESSON_TIMED)
    lesson_say(&l,
               "With peer access it takes %.2f; a copy to another GPU then has %.0f GB/s, and is %.1f times as fast.",
               split_up[1]->us / one->us, copied[1]->rate, copied[0]->us / copied[1]->us);
  if (split_up[0] && l.mode == LESSON_COUNTED)
    lesson_say(&l, "All devices together make %.0f requests, one device makes %.0f: only borders are copied, %d times.",
               split_up[0]->counted.requests, one->counted.requests, STEPS);
  return lesson_end(&l);
}
