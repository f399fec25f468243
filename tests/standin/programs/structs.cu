// Structs as arguments, vector types, functions called through pointers, memory of the device's heap.
#include <math_constants.h>
#include <assert.h>
#include <stdio.h>

struct Particle {
  float3 position, velocity;
};
struct Params {
  float dt;
  float3 gravity;
  int n;
  float damping[4];
};
enum Boundary { bounce, wrap };

__host__ __device__ inline float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
__host__ __device__ inline float3 operator*(float s, float3 a) { return make_float3(s * a.x, s * a.y, s * a.z); }

__global__ void move(Particle *p, Params params, Boundary b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= params.n) return;
  assert(params.dt > 0);
  p[i].velocity = params.damping[i % 4] * (p[i].velocity + params.dt * params.gravity);
  p[i].position = p[i].position + params.dt * p[i].velocity;
  if (p[i].position.y < 0) p[i].position.y += b == wrap ? 100 : -2 * p[i].position.y;
}

typedef float (*Function)(float);
__device__ float half_of(float x) { return 0.5f * x; }
__device__ float degrees(float x) { return x * (180 / CUDART_PI_F); }
__device__ Function functions[] = {half_of, degrees};
__global__ void call(int which, float *x) { x[threadIdx.x] = functions[which](x[threadIdx.x]); }

__global__ void lists(int *sums) {
  int n = threadIdx.x + 1;
  int *list = (int *)malloc(n * sizeof(int));
  clock_t start = clock();
  long long start64 = clock64();
  if (list == NULL) return;
  for (int i = 0; i < n; i++) list[i] = i + 1;
  int sum = 0;
  for (int i = 0; i < n; i++) sum += list[i];
  free(list);
  sums[threadIdx.x] = sum + (clock64() < start64) + (start == (clock_t)-1);
}

int main() {
  const int n = 100;
  Particle *p;
  cudaMallocManaged(&p, n * sizeof(Particle));
  for (int i = 0; i < n; i++) p[i] = {{(float)i, (float)(i % 10), 0}, {1, 0, 0}};
  Params params = {0.5f, {0, -8, 0}, n, {1, 1, 0.5f, 1}};
  move<<<4, 32>>>(p, params, wrap);
  cudaDeviceSynchronize();
  bool ok = true;
  for (int i = 0; i < n; i++) {
    float d = i % 4 == 2 ? 0.5f : 1, y = i % 10 - 2 * d;
    ok = ok && p[i].position.x == i + 0.5f * d && p[i].position.y == (y < 0 ? y + 100 : y) && p[i].position.z == 0;
  }

  float *x;
  int *sums;
  cudaMallocManaged(&x, 4 * sizeof(float));
  cudaMallocManaged(&sums, 64 * sizeof(int));
  x[0] = 2 * CUDART_PI_F;
  call<<<1, 1>>>(0, x);
  call<<<1, 1>>>(1, x);
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20);
  lists<<<1, 64>>>(sums);
  ok = ok && cudaDeviceSynchronize() == cudaSuccess && fabsf(x[0] - 180) < 1e-3f;
  for (int i = 0; i < 64; i++) ok = ok && sums[i] == (i + 1) * (i + 2) / 2;
  printf("%g degrees: %s\n", x[0], ok ? "PASSED" : "FAILED");
  return !ok;
}
