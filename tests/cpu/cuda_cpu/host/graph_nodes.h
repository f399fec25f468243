/* Graphs that are made by hand: cudaGraphCreate, cudaGraphAddKernelNode, ... The call that does a node's work on a stream
 * makes the node, as in a capture: while a node is added, every stream is one that captures into the graph. */
#pragma once
#pragma GCC system_header

#include "copies.h"
#include "kernels.h"
#include "memory_pools.h"
#include "streams.h"
#include "texture_objects.h"

namespace cuda_cpu {

/* Nodes run in the order of the list, so that a node has to stand behind all that it depends on. */
inline cudaError_t put_in_order(CUgraph_st *g) {
  for (size_t round = 0; round <= g->nodes; round++) {
    bool moved = false;
    for (size_t i = 0; i < g->edge_count; i++) {
      CUgraphNode_st *from = g->edges[i].from, *to = g->edges[i].to, **place = &g->first;
      while (*place && *place != from && *place != to) place = &(*place)->next;
      if (*place == from) continue;
      if (!*place || from == to) return cudaErrorInvalidValue;
      *place = to->next;
      to->next = from->next;
      from->next = to;
      moved = true;
    }
    g->last = &g->first;
    while (*g->last) g->last = &(*g->last)->next;
    if (!moved) return cudaSuccess;
  }
  return cudaErrorInvalidValue; /* a cycle */
}
inline cudaError_t add_edges(CUgraph_st *g, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count,
                             size_t to_step) {
  if (!g || (count && (!from || !to))) return cudaErrorInvalidValue;
  void *more = realloc(g->edges, (g->edge_count + count + 1) * sizeof *g->edges);
  if (!more) return cudaErrorMemoryAllocation;
  g->edges = static_cast<CUgraphEdge *>(more);
  for (size_t i = 0; i < count; i++) g->edges[g->edge_count++] = {from[i], to[i * to_step]};
  return put_in_order(g);
}

/* Adds the node of the work that a call puts into a stream; work of no bytes makes none, and gets an empty one. */
template <class F> cudaError_t build(CUgraph_st *g, CUgraphNode_st **out, const F &call) {
  CUstream_st s = {};
  s.flags = cudaStreamNonBlocking;
  s.device = device_now;
  s.capture = g;
  const size_t before = g->nodes;
  building = &s;
  const cudaError_t e = call();
  building = nullptr;
  if (e) return e;
  if (g->nodes == before) keep(&s, [] { return cudaSuccess; });
  *out = g->newest;
  return cudaSuccess;
}
template <class F>
cudaError_t add_node(cudaGraphNode_t *out, CUgraph_st *g, const cudaGraphNode_t *from, size_t count,
                     cudaGraphNodeType type, const F &call) {
  if (!out || !g || (count && !from)) return error(cudaErrorInvalidValue);
  if (g->references > 1) return unsupported("a new node in a graph that has been instantiated");
  if (cudaError_t e = build(g, out, call)) return error(e);
  (*out)->type = type;
  return error(add_edges(g, from, out, count, 0));
}
/* Gives the node other work: in an executable graph, or in the graph itself, whose executable forms would see it. */
template <class F> cudaError_t set_node(CUgraphExec_st *exec, CUgraphNode_st *n, const F &call) {
  if (!n) return error(cudaErrorInvalidValue);
  if (!exec && n->graph->references > 1) return unsupported("other parameters in a graph that has been instantiated");
  CUgraph_st scratch = {};
  scratch.last = &scratch.first;
  scratch.status = cudaStreamCaptureStatusActive;
  CUgraphNode_st *made;
  if (cudaError_t e = build(&scratch, &made, call)) return error(e);
  if (exec) {
    made->instead = n;
    made->next = exec->changed;
    exec->changed = made;
    return cudaSuccess;
  }
  if (n->instead) n->instead->destroy(n->instead);
  n->instead = made;
  return cudaSuccess;
}

inline cudaError_t put_kernel(const cudaKernelNodeParams *p) {
  if (!p || p->extra) return error(cudaErrorInvalidValue);
  return launch_pointer(p->func, {p->gridDim, p->blockDim, p->sharedMemBytes, nullptr, nullptr, 0}, p->kernelParams,
                        "a node of a graph");
}
inline cudaError_t put_fill(const cudaMemsetParams *p) {
  if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)) return error(cudaErrorInvalidValue);
  const cudaMemsetParams m = *p;
  const size_t row = m.width * m.elementSize, rows = m.height ? m.height : 1, pitch = rows > 1 ? m.pitch : row;
  if (m.elementSize == 1) return fill(m.dst, pitch, static_cast<int>(m.value), row, rows, nullptr);
  {
    locked lock;
    if (row && !reaches(m.dst, (rows - 1) * pitch + row, true)) return error(cudaErrorInvalidValue);
  }
  return enqueue(nullptr, [=] {
    for (size_t y = 0; y < rows; y++)
      for (size_t x = 0; x < m.width; x++)
        memcpy(static_cast<char *>(m.dst) + y * pitch + x * m.elementSize, &m.value, m.elementSize);
    return cudaSuccess;
  });
}

/* --- the calls --- */

CUDA_CPU_CALL cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags) {
  CUDA_CPU_API(cudaGraphCreate);
  if (!pGraph || flags) return error(cudaErrorInvalidValue);
  CUgraph_st *g = make<CUgraph_st>(held_graph, device_now);
  if (!g) return error(cudaErrorMemoryAllocation);
  g->references = 1;
  g->last = &g->first;
  g->status = cudaStreamCaptureStatusActive;
  *pGraph = g;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                       const cudaGraphEdgeData *, size_t count) {
  CUDA_CPU_API(cudaGraphAddDependencies);
  return error(add_edges(graph, from, to, count, 1));
}
CUDA_CPU_CALL cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
  CUDA_CPU_API(cudaGraphNodeGetType);
  if (!node || !type) return error(cudaErrorInvalidValue);
  *type = node->type;
  return cudaSuccess;
}
#define CUDA_CPU_ADD(name, type, parameter, call)                                                                      \
  CUDA_CPU_CALL name(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *from, size_t count, parameter) { \
    CUDA_CPU_API(name);                                                                                                \
    return add_node(node, graph, from, count, type, [&] { return call; });                                             \
  }
CUDA_CPU_ADD(cudaGraphAddKernelNode, cudaGraphNodeTypeKernel, const cudaKernelNodeParams *p, put_kernel(p))
CUDA_CPU_ADD(cudaGraphAddMemcpyNode, cudaGraphNodeTypeMemcpy, const cudaMemcpy3DParms *p, cudaMemcpy3DAsync(p, nullptr))
CUDA_CPU_ADD(cudaGraphAddMemsetNode, cudaGraphNodeTypeMemset, const cudaMemsetParams *p, put_fill(p))
CUDA_CPU_ADD(cudaGraphAddMemFreeNode, cudaGraphNodeTypeMemFree, void *p, cudaFreeAsync(p, nullptr))
CUDA_CPU_ADD(cudaGraphAddHostNode, cudaGraphNodeTypeHost, const cudaHostNodeParams *p,
             p ? cudaLaunchHostFunc(nullptr, p->fn, p->userData) : cudaErrorInvalidValue)
CUDA_CPU_ADD(cudaGraphAddMemAllocNode, cudaGraphNodeTypeMemAlloc, struct cudaMemAllocNodeParams *p,
             p ? cudaMallocAsync(&p->dptr, p->bytesize, static_cast<cudaStream_t>(nullptr)) : cudaErrorInvalidValue)
#undef CUDA_CPU_ADD
CUDA_CPU_CALL cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *from,
                                    size_t count) {
  CUDA_CPU_API(cudaGraphAddEmptyNode);
  return add_node(node, graph, from, count, cudaGraphNodeTypeEmpty, [] { return cudaSuccess; });
}
CUDA_CPU_CALL cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *from,
                                       size_t count, void *dst, const void *src, size_t bytes,
                                       enum cudaMemcpyKind kind) {
  CUDA_CPU_API(cudaGraphAddMemcpyNode1D);
  return add_node(node, graph, from, count, cudaGraphNodeTypeMemcpy,
                  [&] { return cudaMemcpyAsync(dst, src, bytes, kind, nullptr); });
}
/* The child is kept, and runs as it is now. */
CUDA_CPU_CALL cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *from,
                                         size_t count, cudaGraph_t child) {
  CUDA_CPU_API(cudaGraphAddChildGraphNode);
  struct child_node : CUgraphNode_st {
    CUgraph_st *child;
  };
  if (!child || child == graph) return error(cudaErrorInvalidValue);
  return add_node(node, graph, from, count, cudaGraphNodeTypeGraph, [&] {
    child_node *n = new child_node();
    n->child = child;
    child->references++;
    n->run = [](CUgraphNode_st *n) { return run_graph(static_cast<child_node *>(n)->child); };
    n->destroy = [](CUgraphNode_st *n) {
      drop_graph(static_cast<child_node *>(n)->child);
      delete static_cast<child_node *>(n);
    };
    append(building, n);
    return cudaSuccess;
  });
}
CUDA_CPU_CALL cudaGraphClone(cudaGraph_t *pClone, cudaGraph_t graph) {
  CUDA_CPU_API(cudaGraphClone);
  struct clone_node : CUgraphNode_st {
    CUgraphNode_st *of;
  };
  if (!pClone || !graph) return error(cudaErrorInvalidValue);
  if (cudaError_t e = cudaGraphCreate(pClone, 0)) return e;
  (*pClone)->original = graph;
  graph->references++;
  CUstream_st s = {};
  s.capture = *pClone;
  for (CUgraphNode_st *i = graph->first; i; i = i->next) {
    clone_node *n = new clone_node();
    n->of = i;
    n->type = i->type;
    n->run = [](CUgraphNode_st *n) { return run_node(static_cast<clone_node *>(n)->of); };
    n->destroy = [](CUgraphNode_st *n) { delete static_cast<clone_node *>(n); };
    append(&s, n);
  }
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *p) {
  CUDA_CPU_API(cudaGraphKernelNodeSetParams);
  return set_node(nullptr, node, [&] { return put_kernel(p); });
}
CUDA_CPU_CALL cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               const cudaKernelNodeParams *p) {
  CUDA_CPU_API(cudaGraphExecKernelNodeSetParams);
  if (!exec) return error(cudaErrorInvalidValue);
  return set_node(exec, node, [&] { return put_kernel(p); });
}
CUDA_CPU_CALL cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst, const void *src,
                                                 size_t bytes, enum cudaMemcpyKind kind) {
  CUDA_CPU_API(cudaGraphExecMemcpyNodeSetParams1D);
  if (!exec) return error(cudaErrorInvalidValue);
  return set_node(exec, node, [&] { return cudaMemcpyAsync(dst, src, bytes, kind, nullptr); });
}
/* The executable graph becomes that of the other one, which has to have as many nodes. */
CUDA_CPU_CALL cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result) {
  CUDA_CPU_API(cudaGraphExecUpdate);
  if (!exec || !graph || !result) return error(cudaErrorInvalidValue);
  const bool same = exec->graph->nodes == graph->nodes;
  *result = {same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged, nullptr, nullptr};
  if (!same) return error(cudaErrorGraphExecUpdateFailure);
  graph->references++;
  drop_graph(exec->graph);
  exec->graph = graph;
  return cudaSuccess;
}

} // namespace cuda_cpu
