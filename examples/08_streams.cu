/* Lesson 8: streams. What is in one stream runs in order; what is in several may overlap: a GPU has an engine for
 * copies to it, one for copies from it, and its multiprocessors. So data is taken in pieces, and while one is
 * computed, the next is on its way in and the one before on its way out. It needs pinned memory: a copy of pageable
 * memory goes by way of the driver's own, and the host waits for it.
 *
 * There are two orders in which to issue the work: depth first (in, kernel and out of a piece, then the next piece), or
 * breadth first (all ins, all kernels, all outs). Older GPUs had one queue for all streams, and textbooks say for each
 * of them which order to choose. Since Kepler (2012) each stream has its own.
 *
 * Stream 0 is not like the others: it waits for them, and they for it. A program whose threads are to be independent is
 * built with --default-stream per-thread, or says cudaStreamPerThread.
 *
 * The timeline in build/lessons/08_streams.svg is drawn from events around each step. */
#include "lesson_timeline.h"
#include <thread>

static const lesson_about about = {"08_streams", "copies and kernels at the same time, in two orders; a timeline",
                                   "floats",     1 << 24,
                                   1 << 12,      1,
                                   1 << 28,      "GB/s"};

#define BLOCK 256
#define STREAMS 4
#define PIECES 8
#define STARTS 1024 /* different values to start from */

__host__ __device__ inline float compute(float x, int rounds) {
  for (int i = 0; i < rounds; i++) x = fmaf(x, 0.5f, 1);
  return x;
}

__global__ void kernel(float *x, size_t n, int rounds) {
  const size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) x[i] = compute(x[i], rounds);
}

enum step { IN, KERNEL, OUT, STEPS };
static const char *const step_names[] = {"copy in", "kernel", "copy out"};

struct job {
  const float *in; /* on the host */
  float *device, *out;
  size_t n;
  int rounds;
  timeline *line; /* NULL: none is wanted */
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

/* Each host thread has a stream of its own, which it need not even create. */
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

  const struct {
    const char *name;
    order run;
    int streams;
    bool pageable;
  } ways[] = {{"one stream", depth_first, 1, false},
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
      GK_CHECK(cudaDeviceSynchronize()); /* or the next call would begin before this one has ended */
    });
    if (memcmp(j.out, expected.data(), bytes)) lesson_wrong(&l, r, "not all values are right");
    memset(j.out, 0xff, bytes);
  }
  /* What each kind of step takes alone: no order can be faster than the longest. */
  j.in = pinned, j.out = pinned_out;
  double alone[STEPS] = {};
  for (int step = IN; step < STEPS; step++)
    alone[step] = lesson_measure(&l, step_names[step], 0, [=] {
                    for (int piece = 0; piece < PIECES; piece++) issue(&j, piece, step, 0, 0);
                  })->us;
  lesson_table(&l);

  svg picture;
  if (svg_begin(&picture, "build/lessons", about.name, TIMELINE_LEFT + TIMELINE_WIDTH + 20,
                timeline_height(1) + 2 * timeline_height(STREAMS) + 20)) {
    timeline lines[3];
    double last = 0, y = 20;
    for (int w = 0; w < 3; w++) {
      timeline_create(&lines[w]);
      j.line = &lines[w];
      ways[w].run(&j, streams, ways[w].streams);
      timeline_start(&lines[w]);
      ways[w].run(&j, streams, ways[w].streams);
      const double end = timeline_end(&lines[w]);
      if (end > last) last = end;
    }
    for (int w = 0; w < 3; w++)
      y = timeline_draw(&picture, y, &lines[w], ways[w].name, ways[w].streams, step_names, STEPS, last);
    if (l.mode != LESSON_TIMED)
      svg_text(&picture, TIMELINE_LEFT, y, 13, "start", "CPU stand-in: steps run one after the other");
    if (svg_end(&picture)) lesson_say(&l, "The timeline: %s", picture.path);
  }
  for (const cudaStream_t stream : streams) GK_CHECK(cudaStreamDestroy(stream));
  GK_CHECK(cudaFreeHost(pinned));
  GK_CHECK(cudaFreeHost(pinned_out));

  const lesson_row *const r = l.rows;
  if (l.mode == LESSON_TIMED) {
    double longest = alone[IN];
    for (const double us : alone) longest = us > longest ? us : longest;
    lesson_say(&l,
               "4 streams are %.2f times as fast as one; the longest of in, kernel and out alone allows %.2f times.",
               r[0].us / r[1].us, r[0].us / longest);
    lesson_say(&l, "Depth first takes %.2f times as long as breadth first: %s.", r[1].us / r[2].us,
               fabs(r[1].us / r[2].us - 1) < 0.1 ? "the order of older textbooks hardly counts on this GPU"
                                                 : "the order counts on this GPU");
    lesson_say(&l,
               "Threads with their own default streams take %.2f times as long as depth first, pageable memory %.2f.",
               r[3].us / r[1].us, r[4].us / r[1].us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "Each order launches the same work: %.0f requests to memory with one stream, %.0f with 4.",
               r[0].counted.requests, r[1].counted.requests);
  }
  return lesson_end(&l);
}
