// What the stand-in says about launches that it cannot run, and launches that a graph keeps. A GPU has nothing of this.
#include <cuda_runtime.h>
#include <stdio.h>

#ifdef CUDA_ON_CPU
#include <string.h>
#include <unistd.h>

__global__ void inner(int *p) { *p += 1; }
__global__ void outer(int *p) {
  *p += 1;
  if (threadIdx.x == 1) inner<<<1, 1>>>(p);
  __syncthreads();
}
template <class T> __global__ void half_wait(T *p, const float *unused) {
  if (threadIdx.x < 16) __syncthreads();
  *p = 1;
}
template <class T> __global__ void add(T *p, size_t n) { *p += (T)n; }
extern __shared__ char bytes[];
__global__ void shared_size(int *p) { *p = bytes[0] != 0; }

static FILE *said; // what the program has written to stderr

static bool says(cudaError_t expected, const char *text) {
  static char buffer[10000];
  cudaError_t e = cudaDeviceSynchronize();
  fflush(stderr);
  ssize_t n = pread(fileno(said), buffer, sizeof buffer - 1, 0);
  buffer[n > 0 ? n : 0] = '\0';
  bool ok = e == expected && strstr(buffer, text);
  if (!ok) printf("%s, not %s:\n%s", cudaGetErrorName(e), text, buffer);
  cudaDeviceReset();
  return ok;
}

int main() {
  said = tmpfile();
  bool ok = said && dup2(fileno(said), STDERR_FILENO) >= 0;
  int *p;
  cudaMallocManaged(&p, sizeof(int));
  outer<<<1, 4>>>(p);
  ok = ok && cudaGetLastError() == cudaErrorLaunchFailure;
  inner<<<1, 1>>>(p);
  ok = ok && cudaGetLastError() == cudaErrorLaunchFailure;
  ok = says(cudaErrorLaunchFailure, "thread (1,0,0) launches inner<<<...>>>: a kernel cannot launch kernels") && ok;

  // the name of a kernel that is chosen when a thread calls it
  cudaMallocManaged(&p, sizeof(int));
  half_wait<<<1, 32>>>(p, NULL);
  ok = says(cudaErrorLaunchFailure, "error in kernel half_wait, grid (1,1,1), block (32,1,1)") && ok;
  cudaMallocManaged(&p, sizeof(int));
  half_wait<int><<<1, 32>>>(p, NULL);
  ok = says(cudaErrorLaunchFailure, "error in kernel void half_wait<int>(int*, float const*)") && ok;

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaMallocManaged(&p, sizeof(int));
  *p = 0;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int i = 1; i < 3; i++) {
    add<<<1, 1, 0, stream>>>(p, i);
    add<int><<<1, 1, 0, stream>>>(p, 10 * i);
    inner<<<1, 1, 0, stream>>>(p);
  }
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  ok = ok && *p == 0;
  for (int i = 0; i < 2; i++) cudaGraphLaunch(exec, stream);
  ok = ok && cudaStreamSynchronize(stream) == cudaSuccess && *p == 2 * (3 + 30 + 2);

  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);

  // more dynamic shared memory than a kernel may have without asking
  shared_size<<<1, 1, 65536>>>(p);
  ok = ok && cudaGetLastError() == cudaErrorInvalidValue;
  cudaFuncSetAttribute(shared_size, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  shared_size<<<1, 1, 65536>>>(p);
  ok = ok && cudaDeviceSynchronize() == cudaSuccess && *p == 1;
  printf("%s\n", ok ? "PASSED" : "FAILED");
  return !ok;
}
#else
int main() { puts("PASSED"); }
#endif
