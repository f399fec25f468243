// The average of the six neighbours in a volume, by a grid and blocks of three dimensions.
#include <stdio.h>
#include <string.h>
#include <utility>

#define NX 20
#define NY 14
#define NZ 9
#define IDX(x, y, z) (((z)*NY + (y)) * NX + (x))

__global__ void step(float const *__restrict__ in, float *__restrict__ out) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= NX || y >= NY || z >= NZ) return;
  if (x == 0 || y == 0 || z == 0 || x == NX - 1 || y == NY - 1 || z == NZ - 1) {
    out[IDX(x, y, z)] = in[IDX(x, y, z)];
    return;
  }
  float sum = __ldg(&in[IDX(x - 1, y, z)]) + __ldg(&in[IDX(x + 1, y, z)]);
  sum += in[IDX(x, y - 1, z)] + in[IDX(x, y + 1, z)] + in[IDX(x, y, z - 1)] + in[IDX(x, y, z + 1)];
  out[IDX(x, y, z)] = __fdividef(sum, 6.0f);
}

// From point to point, as the kernel does it
static void reference(const float *in, float *out) {
  for (int z = 0; z < NZ; z++)
    for (int y = 0; y < NY; y++)
      for (int x = 0; x < NX; x++) {
        bool edge = !x || !y || !z || x == NX - 1 || y == NY - 1 || z == NZ - 1;
        out[IDX(x, y, z)] = edge ? in[IDX(x, y, z)]
                                 : (in[IDX(x - 1, y, z)] + in[IDX(x + 1, y, z)] + in[IDX(x, y - 1, z)] +
                                    in[IDX(x, y + 1, z)] + in[IDX(x, y, z - 1)] + in[IDX(x, y, z + 1)]) /
                                       6.0f;
      }
}

int main() {
  static float a[NX * NY * NZ], b[NX * NY * NZ], result[NX * NY * NZ];
  for (int i = 0; i < NX * NY * NZ; i++) a[i] = (float)(i * 31 % 64);
  float *d_in, *d_out;
  cudaMalloc(&d_in, sizeof(a));
  cudaMalloc(&d_out, sizeof(a));
  cudaMemcpy(d_in, a, sizeof(a), cudaMemcpyHostToDevice);
  dim3 block(8, 4, 4), grid((NX + 7) / 8, (NY + 3) / 4, (NZ + 3) / 4);
  for (int i = 0; i < 10; i++) {
    step<<<grid, block>>>(d_in, d_out);
    std::swap(d_in, d_out);
    reference(a, b);
    memcpy(a, b, sizeof(a));
  }
  cudaMemcpy(result, d_in, sizeof(a), cudaMemcpyDeviceToHost);
  float worst = 0;
  for (int i = 0; i < NX * NY * NZ; i++) worst = fmaxf(worst, fabsf(result[i] - a[i]));
  cudaFree(d_in);
  cudaFree(d_out);
  printf("largest difference %g: %s\n", worst, worst < 1e-4f ? "PASSED" : "FAILED");
  return worst < 1e-4f ? 0 : 1;
}
