// A graph that is made node by node: fills, copies, kernels and a function of the host, in an order that the
// dependencies give. It runs as the child of another, and a clone of it runs as well.
#include <stdio.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t e = (call);                                                                                            \
    if (e != cudaSuccess) {                                                                                            \
      printf("%s: %s\n", #call, cudaGetErrorString(e));                                                                \
      return 1;                                                                                                        \
    }                                                                                                                  \
  } while (0)

__global__ void add(int *p, int n, int what) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += what;
}

static void CUDART_CB count(void *calls) { ++*(int *)calls; }

int main() {
  enum { n = 1000 };
  static int result[n];
  int size = n, what = 3, calls = 0, *p;
  CHECK(cudaMalloc(&p, sizeof result));

  cudaGraph_t graph, clone, parent;
  cudaGraphNode_t fill, kernel, copy, host, last, child;
  CHECK(cudaGraphCreate(&graph, 0));

  cudaMemsetParams zeros;
  memset(&zeros, 0, sizeof zeros);
  zeros.dst = p;
  zeros.elementSize = 4;
  zeros.value = 0x01000002;
  zeros.width = n;
  zeros.height = 1;
  CHECK(cudaGraphAddMemsetNode(&fill, graph, NULL, 0, &zeros));

  void *arguments[] = {&p, &size, &what};
  cudaKernelNodeParams launch;
  memset(&launch, 0, sizeof launch);
  launch.func = (void *)add;
  launch.gridDim = dim3((n + 255) / 256);
  launch.blockDim = dim3(256);
  launch.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &launch));
  CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, NULL, 0, result, p, sizeof result, cudaMemcpyDeviceToHost));
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddDependencies(graph, &kernel, &copy, NULL, 1));
#else
  CHECK(cudaGraphAddDependencies(graph, &kernel, &copy, 1));
#endif
  cudaHostNodeParams function = {count, &calls};
  CHECK(cudaGraphAddHostNode(&host, graph, &copy, 1, &function));
  cudaGraphNode_t both[] = {copy, host};
  CHECK(cudaGraphAddEmptyNode(&last, graph, both, 2));

  what = 100; // the node has the arguments that it was added with
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
  CHECK(cudaGraphClone(&clone, graph));
  cudaGraphExec_t exec, exec_of_clone;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, 0));
  CHECK(cudaDeviceSynchronize());
  bool right = nodes == 5 && calls == 1 && result[0] == 0x01000005 && result[n - 1] == 0x01000005;

  // As a child, and behind it the kernel with its new argument
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphCreate(&parent, 0));
  CHECK(cudaGraphAddChildGraphNode(&child, parent, NULL, 0, graph));
  CHECK(cudaGraphAddKernelNode(&kernel, parent, &child, 1, &launch));
  CHECK(cudaGraphAddMemcpyNode1D(&copy, parent, &kernel, 1, result, p, sizeof result, cudaMemcpyDeviceToHost));
#ifdef CUDA_ON_CPU
  CHECK(cudaGraphInstantiate(&exec, parent, NULL, NULL, 0)); // as before CUDA 12
#else
  CHECK(cudaGraphInstantiate(&exec, parent, 0));
#endif
  CHECK(cudaGraphLaunch(exec, 0));
  CHECK(cudaDeviceSynchronize());
  right = right && calls == 2 && result[7] == 0x01000005 + 100;
  CHECK(cudaGraphDestroy(parent));

  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphInstantiate(&exec_of_clone, clone, 0));
  CHECK(cudaGraphLaunch(exec_of_clone, 0));
  CHECK(cudaDeviceSynchronize());
  right = right && calls == 3 && result[7] == 0x01000005;
  CHECK(cudaGraphExecDestroy(exec_of_clone));
  CHECK(cudaGraphDestroy(clone));
  CHECK(cudaFree(p));
  printf(right ? "ok\n" : "wrong: %d nodes, %d calls, %d\n", (int)nodes, calls, result[0]);
  return !right;
}
