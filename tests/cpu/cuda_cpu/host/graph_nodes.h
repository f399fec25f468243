/* Graphs that are made by hand: cudaGraphCreate, cudaGraphAddKernelNode, ... The call that does a node's work on a
 * stream makes the node, as in a capture: while a node is added, every stream is one that captures into the graph. */
#pragma once
#pragma GCC system_header

#include "copies.h"
#include "kernels.h"
#include "memory_pools.h"
#include "streams.h"
#include "texture_objects.h"

namespace cuda_cpu {

/* Adds the node of the work that a call puts into a stream; work of no bytes makes none, and gets an empty one. What a
 * node depends on is in the graph already, and nodes run in the order of their list. */
template <class F>
cudaError_t add_node(cudaGraphNode_t *out, CUgraph_st *g, const cudaGraphNode_t *from, size_t count, const F &call) {
  if (!out || !g || (count && !from)) return error(cudaErrorInvalidValue);
  if (g->references > 1) return unsupported("a new node in a graph that has been instantiated or cloned");
  CUstream_st s = {};
  s.flags = cudaStreamNonBlocking;
  s.device = device_now;
  s.capture = g;
  const size_t before = g->nodes;
  building = &s;
  const cudaError_t e = call();
  building = nullptr;
  if (e) return error(e);
  if (g->nodes == before) keep(&s, [] { return cudaSuccess; });
  *out = g->newest;
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

/* The child is kept, and runs as it is now, since nothing is added to it any more. */
inline cudaError_t put_child(CUgraph_st *child, CUgraph_st *parent) {
  struct child_node : CUgraphNode_st {
    CUgraph_st *child;
  };
  if (!child || child == parent) return error(cudaErrorInvalidValue);
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
  if (!graph || (count && (!from || !to))) return error(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; i++) {
    CUgraphNode_st *n = from[i];
    while (n && n != to[i]) n = n->next;
    if (!n) return unsupported("cudaGraphAddDependencies of a node on one that was added to the graph after it");
  }
  return cudaSuccess;
}
#define CUDA_CPU_ADD(name, parameter, call)                                                                            \
  CUDA_CPU_CALL name(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *from, size_t count parameter) {  \
    CUDA_CPU_API(name);                                                                                                \
    return add_node(node, graph, from, count, [&] { return call; });                                                   \
  }
#define CUDA_CPU_WITH(...) , __VA_ARGS__
CUDA_CPU_ADD(cudaGraphAddEmptyNode, , cudaSuccess)
CUDA_CPU_ADD(cudaGraphAddKernelNode, CUDA_CPU_WITH(const cudaKernelNodeParams *p), put_kernel(p))
CUDA_CPU_ADD(cudaGraphAddMemcpyNode, CUDA_CPU_WITH(const cudaMemcpy3DParms *p), cudaMemcpy3DAsync(p, nullptr))
CUDA_CPU_ADD(cudaGraphAddMemcpyNode1D, CUDA_CPU_WITH(void *to, const void *p, size_t bytes, enum cudaMemcpyKind kind),
             cudaMemcpyAsync(to, p, bytes, kind, nullptr))
CUDA_CPU_ADD(cudaGraphAddMemsetNode, CUDA_CPU_WITH(const cudaMemsetParams *p), put_fill(p))
CUDA_CPU_ADD(cudaGraphAddHostNode, CUDA_CPU_WITH(const cudaHostNodeParams *p),
             p ? cudaLaunchHostFunc(nullptr, p->fn, p->userData) : cudaErrorInvalidValue)
CUDA_CPU_ADD(cudaGraphAddMemAllocNode, CUDA_CPU_WITH(struct cudaMemAllocNodeParams *p),
             p ? cudaMallocAsync(&p->dptr, p->bytesize, static_cast<cudaStream_t>(nullptr)) : cudaErrorInvalidValue)
CUDA_CPU_ADD(cudaGraphAddMemFreeNode, CUDA_CPU_WITH(void *p), cudaFreeAsync(p, nullptr))
CUDA_CPU_ADD(cudaGraphAddChildGraphNode, CUDA_CPU_WITH(cudaGraph_t child), put_child(child, graph))
#undef CUDA_CPU_ADD
#undef CUDA_CPU_WITH
CUDA_CPU_CALL cudaGraphClone(cudaGraph_t *pClone, cudaGraph_t graph) {
  CUDA_CPU_API(cudaGraphClone);
  if (!pClone || !graph) return error(cudaErrorInvalidValue);
  cudaGraphNode_t whole;
  if (cudaError_t e = cudaGraphCreate(pClone, 0)) return e;
  return cudaGraphAddChildGraphNode(&whole, *pClone, nullptr, 0, graph);
}

} // namespace cuda_cpu
