/* Capture and graphs: cudaStreamBeginCapture, cudaGraphLaunch, ... What other calls put into a stream goes through
 * enqueue(), which does it or, in a capture, keeps it. */
#pragma once
#pragma GCC system_header

#include "context.h"

namespace cuda_cpu {

inline void release_graph_memory(void *p);

inline void drop_graph(CUgraph_st *g) {
  if (--g->references) return;
  for (CUgraphNode_st *n = g->first, *next; n; n = next) {
    next = n->next;
    if (n->memory) release_graph_memory(n->memory);
    n->destroy(n);
  }
  free(g);
}

/* Nodes run in the order in which they were captured, and so after all that they depend on. */
inline void append(CUstream_st *s, CUgraphNode_st *n) {
  CUgraph_st *g = s->capture;
  *g->last = g->newest = n;
  g->last = &n->next;
  s->last_node = ++g->nodes;
}

inline cudaError_t run_graph(const CUgraph_st *g) {
  for (CUgraphNode_st *n = g->first; n; n = n->next)
    if (cudaError_t e = n->run(n)) return e;
  return cudaSuccess;
}

template <class F> struct node : CUgraphNode_st {
  F work;
  explicit node(const F &f) : CUgraphNode_st(), work(f) {
    run = [](CUgraphNode_st *n) { return static_cast<node *>(n)->work(); };
    destroy = [](CUgraphNode_st *n) { delete static_cast<node *>(n); };
  }
};
template <class F> node<F> *keep(CUstream_st *s, const F &work) {
  node<F> *n = new node<F>(work);
  append(s, n);
  return n;
}

inline void invalidate(CUgraph_st *g) { g->status = cudaStreamCaptureStatusInvalidated; }

/* Fails for the legacy stream while a blocking stream captures, since its work would have to wait for that stream. Such
 * work also invalidates the capture; a question about the stream does not. */
inline cudaError_t check_legacy(CUstream_st *s, bool invalidates) {
  if (!is_legacy(s) || !ctx.capturing) return cudaSuccess;
  locked lock;
  for (CUstream_st *i = ctx.streams; i; i = i->next)
    if (i->capture && i->device == s->device && !(i->flags & cudaStreamNonBlocking)) {
      if (invalidates) invalidate(i->capture);
      return cudaErrorStreamCaptureImplicit;
    }
  return cudaSuccess;
}

/* May work be put into this stream now? */
inline cudaError_t check_stream(CUstream_st *s) {
  if (!s) return cudaErrorInvalidResourceHandle;
  if (s->capture && s->capture->status == cudaStreamCaptureStatusInvalidated) return cudaErrorStreamCaptureInvalidated;
  return check_legacy(s, true);
}

/* Does the work now, or keeps it if the stream captures. */
template <class F> cudaError_t enqueue(cudaStream_t stream, const F &work) {
  CUstream_st *s = find_stream(stream);
  if (cudaError_t e = check_stream(s)) return error(e);
  if (!s->capture) return s->hung ? cudaSuccess : error(work());
  keep(s, work);
  return cudaSuccess;
}

/* For calls that a capture forbids to the thread that began it, unless in the relaxed mode, and in the global mode to
 * every thread that is in the global mode itself. */
inline thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
inline cudaError_t forbid_while_capturing() {
  if (!ctx.capturing || capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  locked lock;
  for (CUstream_st *i = ctx.streams; i; i = i->next)
    if (i->capture && i->capture->mode != cudaStreamCaptureModeRelaxed &&
        (i->capture->thread == &capture_mode ||
         (i->capture->mode == cudaStreamCaptureModeGlobal && capture_mode == cudaStreamCaptureModeGlobal))) {
      invalidate(i->capture);
      return cudaErrorStreamCaptureUnsupported;
    }
  return cudaSuccess;
}

inline void leave_capture(CUstream_st *s) {
  if (s == s->capture->origin) drop_graph(s->capture);
  s->capture = nullptr;
  ctx.capturing--;
}

inline cudaError_t end_capture(CUstream_st *s, CUgraph_st **out) {
  CUgraph_st *g = s->capture;
  if (!g) return cudaErrorIllegalState;
  if (g->origin != s) return cudaErrorStreamCaptureUnmatched;
  cudaError_t result =
      g->status == cudaStreamCaptureStatusInvalidated ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  g->references++; /* kept until this function has decided */
  {
    locked lock;
    for (CUstream_st *i = ctx.streams; i; i = i->next)
      if (i->capture == g) {
        if (i != s && i->last_node > i->joined && !result) result = cudaErrorStreamCaptureUnjoined;
        leave_capture(i);
      }
    for (CUevent_st *e = ctx.events; e; e = e->next)
      if (e->capture == g) e->capture = nullptr;
  }
  *out = nullptr;
  if (result)
    drop_graph(g);
  else
    *out = g;
  return result;
}

/* --- the calls --- */

CUDA_CPU_CALL cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  CUDA_CPU_API(cudaStreamBeginCapture);
  CUstream_st *s = find_stream(stream);
  if (!s) return error(cudaErrorInvalidResourceHandle);
  if (is_legacy(s) || s == &device(s->device).per_thread) return error(cudaErrorStreamCaptureUnsupported);
  if (s->capture) return error(cudaErrorIllegalState);
  CUgraph_st *g = static_cast<CUgraph_st *>(calloc(1, sizeof(CUgraph_st)));
  if (!g) return error(cudaErrorMemoryAllocation);
  g->references = 1;
  g->last = &g->first;
  g->mode = mode;
  g->thread = &capture_mode;
  g->status = cudaStreamCaptureStatusActive;
  g->origin = s;
  locked lock;
  g->id = ++ctx.captures;
  ctx.capturing++;
  s->capture = g;
  s->last_node = s->joined = 0;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph) {
  CUDA_CPU_API(cudaStreamEndCapture);
  if (!pGraph) return error(cudaErrorInvalidValue);
  CUstream_st *s = find_stream(stream);
  if (!s) return error(cudaErrorInvalidResourceHandle);
  if (cudaError_t e = end_capture(s, pGraph)) return error(e);
  hold(*pGraph, held_graph, s->device);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  CUDA_CPU_API(cudaStreamIsCapturing);
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
CUDA_CPU_CALL cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                       unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                       const cudaGraphEdgeData **edges, size_t *count) {
  CUDA_CPU_API(cudaStreamGetCaptureInfo);
  CUstream_st *s = find_stream(stream);
  if (!s) return error(cudaErrorInvalidResourceHandle);
  if (!status) return error(cudaErrorInvalidValue);
  if (cudaError_t e = check_legacy(s, false)) return error(e);
  if (dependencies || edges || count) return unsupported("cudaStreamGetCaptureInfo with dependencies");
  *status = s->capture ? s->capture->status : cudaStreamCaptureStatusNone;
  if (s->capture && id) *id = s->capture->id;
  if (s->capture && graph) *graph = s->capture;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  CUDA_CPU_API(cudaThreadExchangeStreamCaptureMode);
  if (!mode) return error(cudaErrorInvalidValue);
  cudaStreamCaptureMode before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes) {
  CUDA_CPU_API(cudaGraphGetNodes);
  if (!graph || !numNodes) return error(cudaErrorInvalidValue);
  size_t i = 0, room = nodes ? *numNodes : 0;
  for (cudaGraphNode_t n = graph->first; n && i < room; n = n->next) nodes[i++] = n;
  *numNodes = nodes ? i : graph->nodes;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  CUDA_CPU_API(cudaGraphInstantiateWithFlags);
  if (!pGraphExec || !graph) return error(cudaErrorInvalidValue);
  if (flags & cudaGraphInstantiateFlagDeviceLaunch) return unsupported("cudaGraphInstantiateFlagDeviceLaunch");
  CUgraphExec_st *e = make<CUgraphExec_st>(held_exec, device_now);
  if (!e) return error(cudaErrorMemoryAllocation);
  e->graph = graph;
  graph->references++;
  *pGraphExec = e;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  CUDA_CPU_API(cudaGraphInstantiate);
  return cudaGraphInstantiateWithFlags(pGraphExec, graph, flags);
}
CUDA_CPU_CALL cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t) {
  CUDA_CPU_API(cudaGraphUpload);
  return error(graphExec ? cudaSuccess : cudaErrorInvalidValue);
}
CUDA_CPU_CALL cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  CUDA_CPU_API(cudaGraphLaunch);
  if (!graphExec) return error(cudaErrorInvalidValue);
  CUstream_st *s = find_stream(stream);
  if (s && s->capture) return unsupported("cudaGraphLaunch into a capturing stream");
  return enqueue(stream, [=] { return run_graph(graphExec->graph); });
}
CUDA_CPU_CALL cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  CUDA_CPU_API(cudaGraphExecDestroy);
  if (!graphExec) return error(cudaErrorInvalidValue);
  let_go(graphExec);
  drop_graph(graphExec->graph);
  free(graphExec);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGraphDestroy(cudaGraph_t graph) {
  CUDA_CPU_API(cudaGraphDestroy);
  if (!graph) return error(cudaErrorInvalidValue);
  let_go(graph);
  drop_graph(graph);
  return cudaSuccess;
}

} // namespace cuda_cpu
