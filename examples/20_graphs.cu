/* Lesson 20: graphs. A pipeline of small kernels is as slow as the CPU that launches them: each launch takes it
 * microseconds, whatever the kernel does. If the same pipeline runs again and again, it can be recorded once, as a
 * graph of what follows what, and then started by a single call.
 *
 * Recording (capture) is running the same code on a stream that only notes what it is asked for. What an event makes
 * another stream wait for becomes a branch of the graph: these may run at the same time, and the GPU knows so without
 * being told each time. Two things to remember: arguments are noted, too, pointers and sizes included, as they were at
 * capture; and what waits for the GPU cannot be captured.
 *
 * Here a pipeline is 20 steps that smooth a row of numbers, from one buffer to the other; or four such rows, which have
 * nothing to do with each other. */
#include "lesson.h"

static const lesson_about about = {"20_graphs",
                                   "a pipeline of small kernels, recorded once and started by one call",
                                   "numbers in a row",
                                   1 << 14,
                                   1 << 10,
                                   1,
                                   1 << 24,
                                   "GB/s"};

#define BLOCK 256
#define STEPS 20
#define ROWS 4
#define SUBMISSIONS 20 /* whose time on the host is taken; few enough for the queue of a stream to hold them */

/* In whole numbers: the same on the host in every bit. */
__host__ __device__ inline unsigned smoothed(const unsigned *in, unsigned n, unsigned i) {
  return (in[i ? i - 1 : 0] + 2 * in[i] + in[i + 1 < n ? i + 1 : i]) / 4;
}

__global__ void smooth(const unsigned *in, unsigned *out, unsigned n) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = smoothed(in, n, i);
}

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

/* All rows on a stream of their own. They begin after what `stream` has done, which goes on after all of them. */
static void on_streams(const pipeline *p, cudaStream_t stream) {
  GK_CHECK(cudaEventRecord(p->begun, stream));
  for (int k = 0; k < ROWS; k++) {
    GK_CHECK(cudaStreamWaitEvent(p->stream[k], p->begun, 0));
    steps(&p->rows[k], p->n, p->stream[k], false);
    GK_CHECK(cudaEventRecord(p->done[k], p->stream[k]));
    GK_CHECK(cudaStreamWaitEvent(stream, p->done[k], 0));
  }
}

/* The graph of what work(stream) asks for, ready to be launched; the number of its nodes, too. */
template <class Work> static cudaGraphExec_t recorded(cudaStream_t stream, size_t *nodes, Work work) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  GK_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  work(stream);
  GK_CHECK(cudaStreamEndCapture(stream, &graph));
  GK_CHECK(cudaGraphGetNodes(graph, NULL, nodes));
  GK_CHECK(cudaGraphInstantiate(&ready, graph, 0));
  GK_CHECK(cudaGraphDestroy(graph)); /* what is ready does not need it any more */
  return ready;
}

/* What it takes the host to ask for the work once, whenever that may be done. */
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

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  pipeline all = {};
  const unsigned n = all.n = (unsigned)l.n;
  std::vector<unsigned> values(n), right, next(n);
  for (unsigned i = 0; i < n; i++) values[i] = i * 2654435761u >> 12;
  right = values;
  for (int step = 0; step < STEPS; step++, right.swap(next))
    for (unsigned i = 0; i < n; i++) next[i] = smoothed(right.data(), n, i);
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

  /* Not on the default stream, which cannot be captured. */
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
  l.base = 1; /* a row, step by step */
  lesson_table(&l);
  if (one_nodes != STEPS || all_nodes != ROWS * STEPS)
    lesson_wrong(&l, graph, "%zu and %zu nodes, where there are %d and %d launches", one_nodes, all_nodes, STEPS,
                 ROWS * STEPS);

  if (l.mode == LESSON_TIMED) {
    const double by_launches = host_us([=] { one(0); });
    const double by_graph = host_us([=] { GK_CHECK(cudaGraphLaunch(one_graph, 0)); });
    lesson_say(&l, "A step of a row takes %.2f us when the host waits, %.2f us launched, %.2f us in a graph.",
               waiting->us / STEPS, launches->us / STEPS, graph->us / STEPS);
    lesson_say(&l,
               "The host is busy for %.1f us with %d launches and for %.1f us with the graph's one: %.1f times less.",
               by_launches, STEPS, by_graph, by_launches / by_graph);
    lesson_say(&l, "Four rows cost %.2f times one row in turn, %.2f on streams, %.2f as branches of a graph.",
               turns->us / launches->us, streams->us / launches->us, branches->us / graph->us);
    if (by_launches > by_graph)
      lesson_say(&l, "Recording and preparing took %.0f us, which the host has back after %.0f runs.", recording_us,
                 ceil(recording_us / (by_launches - by_graph)));
  } else {
    lesson_say(&l, "The graphs have %zu and %zu nodes: so many launches become one call each.", one_nodes, all_nodes);
    if (l.mode == LESSON_COUNTED)
      lesson_say(&l, "The kernels do the same in both: %.0f requests of a row's steps, %.0f of its graph.",
                 launches->counted.requests, graph->counted.requests);
  }
  GK_CHECK(cudaGraphExecDestroy(one_graph));
  GK_CHECK(cudaGraphExecDestroy(all_graph));
  for (int k = 0; k < ROWS; k++) {
    GK_CHECK(cudaStreamDestroy(all.stream[k]));
    GK_CHECK(cudaEventDestroy(all.done[k]));
  }
  GK_CHECK(cudaEventDestroy(all.begun));
  return lesson_end(&l);
}
