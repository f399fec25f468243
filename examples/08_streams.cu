/* Lesson 8: streams. Work in one stream runs in order; work in different streams may overlap. Beside its
 * multiprocessors a GPU has copy engines. cudaDeviceProp::asyncEngineCount is how many; with two or more, copies in
 * both directions overlap, too. So the data is cut into pieces: while one is computed, the next one is copied in, and
 * the one before is copied out. The host's arrays have to be pinned. */
#include <cuda_runtime.h>
#include <math.h>

#define BLOCK 256
#define STREAMS 4
#define PIECES 8

/* With a factor near 1 the results still depend on x and on rounds, so that a misplaced piece is noticed. */
__host__ __device__ inline float compute(float x, int rounds) {
  for (int i = 0; i < rounds; i++) x = fmaf(x, 0.999f, 1);
  return x;
}

__global__ void kernel(float *x, size_t n, int rounds) {
  const size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) x[i] = compute(x[i], rounds);
}

static void overlapped(const float *pinned_in, float *pinned_out, float *device, size_t n, int rounds) {
  cudaStream_t streams[STREAMS];
  for (cudaStream_t &s : streams) cudaStreamCreate(&s);
  const size_t piece = (n + PIECES - 1) / PIECES;
  for (size_t first = 0, k = 0; first < n; first += piece, k++) {
    const cudaStream_t s = streams[k % STREAMS];
    const size_t count = n - first < piece ? n - first : piece, bytes = count * sizeof(float);
    cudaMemcpyAsync(device + first, pinned_in + first, bytes, cudaMemcpyHostToDevice, s);
    kernel<<<(unsigned)((count + BLOCK - 1) / BLOCK), BLOCK, 0, s>>>(device + first, count, rounds);
    cudaMemcpyAsync(pinned_out + first, device + first, bytes, cudaMemcpyDeviceToHost, s);
  }
  cudaDeviceSynchronize();
  for (cudaStream_t s : streams) cudaStreamDestroy(s);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * The function above issues depth first: copy in, kernel and copy out of a piece, then the next piece. Breadth first
 * issues all copies in, then all kernels, then all copies out. On an H200, where each kind of step takes 1.2 to 1.3 ms
 * for all pieces together:
 *
 *   one stream     3873 us: the sum of the three kinds
 *   depth first    1749 us with 4 streams, 2.2 times as fast. The longest kind alone would allow 3.0 times; but the
 *                  first copy in, and the last kernel and copy out, have nothing to overlap with
 *   breadth first  2001 us. Each stream has two pieces: the first kernel of a stream waits for the second copy into it,
 *                  since a stream keeps its order, so kernels start one copy later, and copies out one kernel later.
 *                  With a stream for each piece both orders would be the same. GPUs before compute capability 3.5 had
 *                  one queue for all streams, and their textbooks choose the order by that
 *   4 threads      1818 us: each host thread issues its pieces to a stream of its own, cudaStreamPerThread
 *   pageable       18,631 us: the host copies pageable memory through a pinned buffer of the driver (lesson 7) and
 *                  waits meanwhile, so that nothing overlaps
 *
 * Stream 0 waits for all other streams, and they wait for it, but for those made with cudaStreamNonBlocking. A program
 * whose threads should be independent is built with --default-stream per-thread, or uses cudaStreamPerThread.
 *
 * build/lessons/08_streams.svg shows the steps over time, by events before and after each. */
#include "lesson_timeline.h"
#include <thread>

static const lesson_about about = {"08_streams", "copies and kernels at the same time, in two orders; a timeline",
                                   "floats",     1 << 24,
                                   1 << 12,      1,
                                   1 << 28,      "GB/s"};

#define STARTS 1021 /* different initial values: a prime number, so that no two pieces hold the same values */

enum step { IN, KERNEL, OUT, STEPS };
static const char *const step_names[] = {"copy in", "kernel", "copy out"};

struct job {
  const float *in; /* on the host */
  float *device, *out;
  size_t n;
  int rounds;
  timeline *line; /* NULL: no timeline */
};

static void issue(const job *j, int piece, int step, int lane, cudaStream_t stream) {
  const size_t most = (j->n + PIECES - 1) / PIECES, first = (size_t)piece * most;
  if (first >= j->n) return;
  const size_t count = j->n - first < most ? j->n - first : most, bytes = count * sizeof(float);
  timeline_before(j->line, lane, step, stream);
  if (step == IN)
    GK_CHECK(cudaMemcpyAsync(j->device + first, j->in + first, bytes, cudaMemcpyHostToDevice, stream));
  else if (step == OUT)
    GK_CHECK(cudaMemcpyAsync(j->out + first, j->device + first, bytes, cudaMemcpyDeviceToHost, stream));
  else
    kernel<<<(unsigned)((count + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(j->device + first, count, j->rounds);
  timeline_after(j->line, stream);
}

static void depth_first(const job *j, const cudaStream_t *streams, int count) {
  for (int piece = 0; piece < PIECES; piece++)
    for (int step = IN; step < STEPS; step++) issue(j, piece, step, piece % count, streams[piece % count]);
}

static void breadth_first(const job *j, const cudaStream_t *streams, int count) {
  for (int step = IN; step < STEPS; step++)
    for (int piece = 0; piece < PIECES; piece++) issue(j, piece, step, piece % count, streams[piece % count]);
}

/* Each host thread uses a stream of its own, cudaStreamPerThread, which it does not have to create. */
static void by_threads(const job *j, const cudaStream_t *, int count) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; t++)
    threads.emplace_back([=] {
      for (int piece = t; piece < PIECES; piece += count)
        for (int step = IN; step < STEPS; step++) issue(j, piece, step, t, cudaStreamPerThread);
      GK_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    });
  for (std::thread &t : threads) t.join();
}

typedef void (*order)(const job *j, const cudaStream_t *streams, int count);
typedef struct variant {
  const char *name;
  order run;
  int streams;
  bool pageable;
} variant;

/* The timelines of the first three variants, below each other. */
static void draw_timelines(lesson *l, job *j, const variant *ways, const cudaStream_t *streams) {
  svg picture;
  timeline lines[3];
  double last = 0, y = 20;
  if (!svg_begin(&picture, RESULTS_FOLDER "/lessons", about.name, TIMELINE_LEFT + TIMELINE_WIDTH + 20,
                 timeline_height(1) + 2 * timeline_height(STREAMS) + 20))
    return;
  for (int w = 0; w < 3; w++) {
    timeline_create(&lines[w]);
    j->line = &lines[w];
    ways[w].run(j, streams, ways[w].streams);
    timeline_start(&lines[w]);
    ways[w].run(j, streams, ways[w].streams);
    const double end = timeline_end(&lines[w]);
    if (end > last) last = end;
  }
  for (int w = 0; w < 3; w++)
    y = timeline_draw(&picture, y, &lines[w], ways[w].name, ways[w].streams, step_names, STEPS, last);
  if (l->mode != LESSON_TIMED)
    svg_text(&picture, TIMELINE_LEFT, y, 13, "start", "CPU stand-in: steps run one after the other");
  if (svg_end(&picture)) lesson_say(l, "The timeline: %s", picture.path);
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const size_t n = l.n, bytes = n * sizeof(float);
  std::vector<float> values(n), ends(STARTS), expected(n), pageable_out(n);
  float *pinned, *pinned_out;
  cudaStream_t streams[STREAMS];
  job j = {NULL, lesson_array<float>(&l, n), NULL, n, l.mode == LESSON_TIMED ? 2048 : 4, NULL};
  for (size_t i = 0; i < STARTS; i++) ends[i] = compute((float)i, j.rounds);
  for (size_t i = 0; i < n; i++) values[i] = (float)(i % STARTS), expected[i] = ends[i % STARTS];
  GK_CHECK(cudaMallocHost(&pinned, bytes));
  GK_CHECK(cudaMallocHost(&pinned_out, bytes));
  memcpy(pinned, values.data(), bytes);
  for (cudaStream_t &s : streams) GK_CHECK(cudaStreamCreate(&s));

  overlapped(pinned, pinned_out, j.device, n, j.rounds);
  const bool all_right = !memcmp(pinned_out, expected.data(), bytes);
  const variant ways[] = {{"one stream", depth_first, 1, false},
                          {"4 streams depth first", depth_first, STREAMS, false},
                          {"4 streams breadth first", breadth_first, STREAMS, false},
                          {"4 threads with default streams", by_threads, STREAMS, false},
                          {"4 streams pageable", depth_first, STREAMS, true}};
  const cudaStream_t *const s = streams;
  for (const auto &way : ways) {
    const order run = way.run;
    const int count = way.streams;
    j.in = way.pageable ? values.data() : pinned;
    j.out = way.pageable ? pageable_out.data() : pinned_out;
    const lesson_row *const r = lesson_measure(&l, way.name, 2.0 * (double)bytes, [=] {
      run(&j, s, count);
      GK_CHECK(cudaDeviceSynchronize()); /* otherwise the next call would overlap with this one */
    });
    if (memcmp(j.out, expected.data(), bytes)) lesson_wrong(&l, r, "wrong values");
    memset(j.out, 0xff, bytes);
  }
  if (!all_right) lesson_wrong(&l, &l.rows[1], "overlapped() gives wrong values");
  /* Each kind of step alone: no order can be faster than the longest of them. */
  j.in = pinned, j.out = pinned_out;
  double alone[STEPS] = {};
  for (int step = IN; step < STEPS; step++)
    alone[step] = lesson_measure(&l, step_names[step], 0, [=] {
                    for (int piece = 0; piece < PIECES; piece++) issue(&j, piece, step, 0, 0);
                  })->us;
  lesson_table(&l);

  draw_timelines(&l, &j, ways, streams);
  for (const cudaStream_t stream : streams) GK_CHECK(cudaStreamDestroy(stream));
  GK_CHECK(cudaFreeHost(pinned));
  GK_CHECK(cudaFreeHost(pinned_out));

  const lesson_row *const r = l.rows;
  if (l.mode == LESSON_TIMED) {
    double longest = alone[IN];
    for (const double us : alone) longest = us > longest ? us : longest;
    lesson_say(&l, "4 streams are %.2f times as fast as one; the longest kind of step alone would allow %.2f times.",
               r[0].us / r[1].us, r[0].us / longest);
    lesson_say(&l, "Depth first takes %.2f of the time of breadth first.", r[1].us / r[2].us);
    lesson_say(&l, "Host threads with default streams of their own take %.2f times as long as depth first,",
               r[3].us / r[1].us);
    lesson_say(&l, "pageable memory %.2f times as long.", r[4].us / r[1].us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "Each order has the same work: %.0f requests to memory with one stream, %.0f with four.",
               r[0].counted.requests, r[1].counted.requests);
  }
  return lesson_end(&l);
}
