// Copies and kernels in streams, from pinned memory, with events and a callback.
#include <stdio.h>

__global__ void increment(int *p, int n, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += by;
}

static int calls;
static void CUDART_CB finished(cudaStream_t stream, cudaError_t status, void *data) {
  if (status == cudaSuccess) calls += *(int *)data;
}

int main() {
  const int nStreams = 4, streamSize = 3000, n = nStreams * streamSize, blockSize = 256;
  const int streamBytes = streamSize * sizeof(int);
  int *a, *d_a, one = 1;
  cudaMallocHost((void **)&a, n * sizeof(int));
  cudaMalloc((void **)&d_a, n * sizeof(int));
  for (int i = 0; i < n; i++) a[i] = i;

  cudaStream_t stream[nStreams];
  cudaEvent_t startEvent, stopEvent, firstDone;
  cudaEventCreate(&startEvent);
  cudaEventCreate(&stopEvent);
  cudaEventCreateWithFlags(&firstDone, cudaEventDisableTiming);
  for (int i = 0; i < nStreams; ++i) cudaStreamCreate(&stream[i]);

  cudaEventRecord(startEvent, 0);
  for (int i = 0; i < nStreams; ++i) {
    int offset = i * streamSize;
    cudaMemcpyAsync(&d_a[offset], &a[offset], streamBytes, cudaMemcpyHostToDevice, stream[i]);
    increment<<<(streamSize + blockSize - 1) / blockSize, blockSize, 0, stream[i]>>>(d_a + offset, streamSize, 5);
    cudaMemcpyAsync(&a[offset], &d_a[offset], streamBytes, cudaMemcpyDeviceToHost, stream[i]);
    cudaStreamAddCallback(stream[i], finished, &one, 0);
    if (i == 0) cudaEventRecord(firstDone, stream[0]);
  }
  cudaStreamWaitEvent(stream[1], firstDone, 0);
  cudaEventRecord(stopEvent, 0);
  cudaEventSynchronize(stopEvent);
  for (int i = 0; i < nStreams; ++i) cudaStreamSynchronize(stream[i]);
  float ms;
  cudaEventElapsedTime(&ms, startEvent, stopEvent);

  int wrong = 0;
  for (int i = 0; i < n; i++) wrong += a[i] != i + 5;
  bool ok = !wrong && calls == nStreams && ms >= 0 && cudaStreamQuery(stream[0]) == cudaSuccess;
  for (int i = 0; i < nStreams; ++i) cudaStreamDestroy(stream[i]);
  cudaEventDestroy(startEvent);
  cudaEventDestroy(stopEvent);
  cudaEventDestroy(firstDone);

  int *mapped, *alias;
  cudaHostAlloc((void **)&mapped, 4, cudaHostAllocMapped);
  cudaHostGetDevicePointer((void **)&alias, mapped, 0);
  *mapped = 1;
  increment<<<1, 1>>>(alias, 1, 41);
  cudaDeviceSynchronize();
  ok = ok && *mapped == 42;
  cudaFreeHost(mapped);
  cudaFree(d_a);
  cudaFreeHost(a);
  printf("%d wrong, %d callbacks: %s\n", wrong, calls, ok ? "PASSED" : "FAILED");
  return !ok;
}
