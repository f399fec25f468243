// Philox in kernels has cuRAND's own numbers, which were made by its header on the host.
#include <curand_kernel.h>
#include <math.h>
#include <stdio.h>

struct values {
  unsigned one;
  uint4 four;
  float uniform, normal[3], last;
  double uniform_double;
};

__global__ void draw(values *v) {
  const unsigned long long seed[] = {0, 1234567890123, 42}, subsequence[] = {0, 5, 1ull << 40};
  const unsigned long long offset[] = {0, 7, (1ull << 34) + 2};
  curandStatePhilox4_32_10_t s;
  const int i = threadIdx.x;
  curand_init(seed[i], subsequence[i], offset[i], &s);
  v += i;
  v->one = curand(&s);
  v->four = curand4(&s);
  v->uniform = curand_uniform(&s);
  v->uniform_double = curand_uniform_double(&s);
  for (float &x : v->normal) x = curand_normal(&s);
  for (int k = 0; k < 4; k++) curand_uniform4(&s);
  v->last = curand_normal2(&s).y;
}

static bool near(float a, double b) { return fabs(a - b) < 1e-5; } // a GPU has other sines

int main() {
  values *v;
  cudaMallocManaged(&v, 3 * sizeof *v);
  draw<<<1, 3>>>(v);
  bool right = cudaDeviceSynchronize() == cudaSuccess;
  right = right && v[0].one == 0x6627e8d5 && v[0].four.z == 0x9b00dbd8 && v[0].four.w == 0xf8e4cca4;
  right = right && v[1].one == 0x92422171 && v[1].four.x == 0xc6d4ca44 && v[1].uniform == 0x1.8b585ap-5f;
  right = right && v[2].one == 0xe2ea73cc && v[2].four.y == 0xed0238b6 && v[2].uniform_double == 0x1.2dbd3edep-1;
  right = right && near(v[0].normal[0], 0x1.406818p-2) && near(v[0].normal[1], 0x1.461a7ep+1);
  right = right && near(v[2].normal[2], 0x1.7051fap+0) && near(v[2].last, 0x1.4f07dap-6);
  cudaFree(v);
  puts(right ? "ok" : "wrong");
  return !right;
}
