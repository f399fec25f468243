/* Lesson 20: graphs. A sequence of small kernels is as slow as the CPU that launches them: each launch takes
 * microseconds, whatever the kernel does. A sequence that runs again and again can be recorded once as a graph, and
 * then started by a single call.
 *
 * Recording (stream capture) runs the same code on a stream that only records its work. An event that another stream
 * waits for becomes a branch of the graph; branches may run at the same time. Arguments are recorded with their values
 * at the time of capture, pointers and sizes included. A call that waits for the GPU cannot be captured. */
#include <cuda_runtime.h>

#define BLOCK 256
#define STEPS 20

/* Whole numbers, so that the host's result has the same bits. */
__host__ __device__ inline unsigned smoothed(const unsigned *in, unsigned n, unsigned i) {
  return (in[i ? i - 1 : 0] + 2 * in[i] + in[i + 1 < n ? i + 1 : i]) / 4;
}

__global__ void smooth(const unsigned *in, unsigned *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = smoothed(in, n, i);
}

/* Smooths a row STEPS times, from one buffer to the other, and repeats that. */
static void smooth_as_graph(unsigned *from, unsigned *to, unsigned n, int repeats) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int step = 0; step < STEPS; step += 2) {
    smooth<<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(from, to, n);
    smooth<<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(to, from, n);
  }
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  for (int r = 0; r < repeats; r++) cudaGraphLaunch(ready, stream); /* one call for STEPS kernels */
  cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, for 20 steps over a row of 16,384 numbers, and for four independent rows:
 *
 *   a row waiting          209 us, 10.4 us a step: a launch, its kernel, and the way back to the host
 *   a row                  86.9 us, 4.3 us a step: the time that the host needs for a launch; the kernels are shorter
 *   a row as a graph       21.7 us, 1.1 us a step: now the kernels themselves count, one after the other
 *   four rows in turn      356 us, 4.1 times one row: 80 launches by the host
 *   on four streams        361 us: the rows could overlap, but the host still has to launch 80 kernels, one by one
 *   four rows as a graph   30.8 us, 1.4 times one row as a graph: its four branches run at the same time */
#include "lesson.h"

static const lesson_about about = {"20_graphs",
                                   "a pipeline of small kernels, recorded once and started by one call",
                                   "numbers in a row",
                                   1 << 14,
                                   1 << 10,
                                   1,
                                   1 << 24,
                                   "GB/s"};

#define ROWS 4
#define SUBMISSIONS 20 /* timed on the host; few enough to fit into the queue of a stream */

typedef struct row {
  const unsigned *in;
  unsigned *buffer[2]; /* the last step leaves its result in buffer[(STEPS - 1) % 2] */
} row;

typedef struct pipeline {
  row rows[ROWS];
  unsigned n;
  cudaStream_t stream[ROWS];
  cudaEvent_t begun, done[ROWS];
} pipeline;

static void steps(const row *r, unsigned n, cudaStream_t stream, bool wait) {
  for (int step = 0; step < STEPS; step++) {
    smooth<<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(step ? r->buffer[(step - 1) % 2] : r->in, r->buffer[step % 2],
                                                          n);
    if (wait) GK_CHECK(cudaStreamSynchronize(stream));
  }
}

/* Each row in a stream of its own. All wait for the earlier work of `stream`, which then waits for all of them. */
static void on_streams(const pipeline *p, cudaStream_t stream) {
  GK_CHECK(cudaEventRecord(p->begun, stream));
  for (int k = 0; k < ROWS; k++) {
    GK_CHECK(cudaStreamWaitEvent(p->stream[k], p->begun, 0));
    steps(&p->rows[k], p->n, p->stream[k], false);
    GK_CHECK(cudaEventRecord(p->done[k], p->stream[k]));
    GK_CHECK(cudaStreamWaitEvent(stream, p->done[k], 0));
  }
}

/* The graph of the work that work(stream) launches, ready to be started, and the number of its nodes. */
template <class Work> static cudaGraphExec_t recorded(cudaStream_t stream, size_t *nodes, Work work) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  GK_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  work(stream);
  GK_CHECK(cudaStreamEndCapture(stream, &graph));
  GK_CHECK(cudaGraphGetNodes(graph, NULL, nodes));
  GK_CHECK(cudaGraphInstantiate(&ready, graph, 0));
  GK_CHECK(cudaGraphDestroy(graph)); /* the executable graph does not need it */
  return ready;
}

/* The time that the host needs to submit the work once. */
template <class Work> static double host_us(Work work) {
  work();
  GK_CHECK(cudaDeviceSynchronize());
  const double start = lesson_now_us();
  for (int i = 0; i < SUBMISSIONS; i++) work();
  const double us = (lesson_now_us() - start) / SUBMISSIONS;
  GK_CHECK(cudaDeviceSynchronize());
  return us;
}

static void expect(lesson *l, const lesson_row *r, const pipeline *p, int rows, const std::vector<unsigned> &right) {
  for (int k = 0; k < rows; k++) lesson_expect(l, r, p->rows[k].buffer[(STEPS - 1) % 2], right);
}

/* smooth_as_graph() at the top, once. */
static void check_smooth_as_graph(lesson *l, const lesson_row *of, const std::vector<unsigned> &values,
                                  const std::vector<unsigned> &right) {
  unsigned *const from = lesson_array(l, values), *const to = lesson_array<unsigned>(l, values.size());
  smooth_as_graph(from, to, (unsigned)values.size(), 1);
  GK_CHECK(cudaGetLastError());
  lesson_expect(l, of, from, right);
}

/* The row of values, smoothed STEPS times on the host. */
static std::vector<unsigned> smoothed_on_host(std::vector<unsigned> right) {
  const unsigned n = (unsigned)right.size();
  std::vector<unsigned> next(n);
  for (int step = 0; step < STEPS; step++, right.swap(next))
    for (unsigned i = 0; i < n; i++) next[i] = smoothed(right.data(), n, i);
  return right;
}

static void release(const pipeline *p) {
  for (int k = 0; k < ROWS; k++) {
    GK_CHECK(cudaStreamDestroy(p->stream[k]));
    GK_CHECK(cudaEventDestroy(p->done[k]));
  }
  GK_CHECK(cudaEventDestroy(p->begun));
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  pipeline all = {};
  const unsigned n = all.n = (unsigned)l.n;
  std::vector<unsigned> values(n);
  for (unsigned i = 0; i < n; i++) values[i] = i * 2654435761u >> 12;
  const std::vector<unsigned> right = smoothed_on_host(values);
  for (int k = 0; k < ROWS; k++) {
    all.rows[k].in = lesson_array(&l, values);
    for (unsigned *&b : all.rows[k].buffer) b = lesson_array<unsigned>(&l, n);
    GK_CHECK(cudaStreamCreateWithFlags(&all.stream[k], cudaStreamNonBlocking));
    GK_CHECK(cudaEventCreateWithFlags(&all.done[k], cudaEventDisableTiming));
  }
  GK_CHECK(cudaEventCreateWithFlags(&all.begun, cudaEventDisableTiming));
  const pipeline *const p = &all;
  const auto one = [=](cudaStream_t s) { steps(&p->rows[0], n, s, false); };
  const auto one_waiting = [=](cudaStream_t s) { steps(&p->rows[0], n, s, true); };
  const auto in_turn = [=](cudaStream_t s) {
    for (int k = 0; k < ROWS; k++) steps(&p->rows[k], n, s, false);
  };
  const auto at_once = [=](cudaStream_t s) { on_streams(p, s); };

  /* The legacy default stream cannot be captured. */
  cudaStream_t capturing;
  GK_CHECK(cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking));
  size_t one_nodes, all_nodes;
  const double start = lesson_now_us();
  const cudaGraphExec_t one_graph = recorded(capturing, &one_nodes, one);
  const double recording_us = lesson_now_us() - start;
  const cudaGraphExec_t all_graph = recorded(capturing, &all_nodes, at_once);
  GK_CHECK(cudaStreamDestroy(capturing));

  const double bytes = 2.0 * STEPS * n * sizeof(unsigned);
  const lesson_row *const waiting = lesson_measure(&l, "a row waiting for each step", bytes, [=] { one_waiting(0); });
  expect(&l, waiting, p, 1, right);
  check_smooth_as_graph(&l, waiting, values, right);
  const lesson_row *const launches = lesson_measure(&l, "a row", bytes, [=] { one(0); });
  expect(&l, launches, p, 1, right);
  const lesson_row *const graph =
      lesson_measure(&l, "a row as a graph", bytes, [=] { GK_CHECK(cudaGraphLaunch(one_graph, 0)); });
  expect(&l, graph, p, 1, right);
  const lesson_row *const turns = lesson_measure(&l, "four rows in turn", ROWS * bytes, [=] { in_turn(0); });
  expect(&l, turns, p, ROWS, right);
  const lesson_row *const streams = lesson_measure(&l, "four rows on four streams", ROWS * bytes, [=] { at_once(0); });
  expect(&l, streams, p, ROWS, right);
  const lesson_row *const branches =
      lesson_measure(&l, "four rows as a graph", ROWS * bytes, [=] { GK_CHECK(cudaGraphLaunch(all_graph, 0)); });
  expect(&l, branches, p, ROWS, right);
  l.base = 1; /* a row */
  lesson_table(&l);
  if (one_nodes != STEPS || all_nodes != ROWS * STEPS)
    lesson_wrong(&l, graph, "%zu and %zu nodes, where there are %d and %d launches", one_nodes, all_nodes, STEPS,
                 ROWS * STEPS);

  if (l.mode == LESSON_TIMED) {
    const double by_launches = host_us([=] { one(0); });
    const double by_graph = host_us([=] { GK_CHECK(cudaGraphLaunch(one_graph, 0)); });
    lesson_say(&l, "A step takes %.2f us if the host waits for each, %.2f us if it does not, %.2f us in a graph.",
               waiting->us / STEPS, launches->us / STEPS, graph->us / STEPS);
    lesson_say(&l, "The host needs %.1f us for %d launches, and %.1f us to start the graph: %.1f times less.",
               by_launches, STEPS, by_graph, by_launches / by_graph);
    lesson_say(&l,
               "Four rows take %.2f times as long as one row in one stream, %.2f times in four, %.2f times as a graph.",
               turns->us / launches->us, streams->us / launches->us, branches->us / graph->us);
    if (by_launches > by_graph)
      lesson_say(&l, "Recording and instantiating the graph took %.0f us, which the host saves in %.0f runs.",
                 recording_us, ceil(recording_us / (by_launches - by_graph)));
  } else {
    lesson_say(&l, "The graphs have %zu and %zu nodes: each graph replaces that many launches by one call.", one_nodes,
               all_nodes);
    if (l.mode == LESSON_COUNTED)
      lesson_say(&l, "The kernels do the same work in both: %.0f requests launched, %.0f as a graph.",
                 launches->counted.requests, graph->counted.requests);
  }
  GK_CHECK(cudaGraphExecDestroy(one_graph));
  GK_CHECK(cudaGraphExecDestroy(all_graph));
  release(&all);
  return lesson_end(&l);
}
