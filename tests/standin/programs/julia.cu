// A Julia set by cuComplex.h, as courses draw it: how many steps each point stays near 0.
#include <cuComplex.h>
#include <cstdio>
#include <cstdlib>

const int width = 64, height = 48, max_steps = 200;

__host__ __device__ int steps_of(int x, int y) {
  cuDoubleComplex z = make_cuDoubleComplex(3.0 * x / width - 1.5, 2.0 * y / height - 1.0);
  const cuDoubleComplex c = make_cuDoubleComplex(-0.8, 0.156);
  int steps = 0;
  while (steps < max_steps && cuCabs(z) < 2) {
    z = cuCadd(cuCmul(z, z), c);
    steps++;
  }
  return steps;
}

__global__ void julia(int *steps) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) steps[y * width + x] = steps_of(x, y);
}
// (a / b) b = a, and conj(a) a is real.
__global__ void quotient(cuFloatComplex a, cuFloatComplex b, cuFloatComplex *result) {
  result[0] = cuCmulf(cuCdivf(a, b), b);
  result[1] = cuCfmaf(cuConjf(a), a, make_cuComplex(1, 0));
}

int main() {
  int *device_steps, steps[width * height];
  cuFloatComplex *device_result, result[2];
  cudaMalloc(&device_steps, sizeof steps);
  cudaMalloc(&device_result, sizeof result);
  julia<<<dim3(width / 16, height / 16), dim3(16, 16)>>>(device_steps);
  quotient<<<1, 1>>>(make_cuFloatComplex(3, -4), make_cuFloatComplex(0.5f, 2), device_result);
  cudaMemcpy(steps, device_steps, sizeof steps, cudaMemcpyDeviceToHost);
  cudaMemcpy(result, device_result, sizeof result, cudaMemcpyDeviceToHost);
  int wrong = 0, most = 0;
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      wrong += abs(steps[y * width + x] - steps_of(x, y)) > 1; // a GPU may round once where the host rounds twice
      most = steps[y * width + x] > most ? steps[y * width + x] : most;
    }
  const bool right = fabsf(cuCrealf(result[0]) - 3) < 1e-5f && fabsf(cuCimagf(result[0]) + 4) < 1e-5f &&
                     cuCrealf(result[1]) == 26 && cuCimagf(result[1]) == 0;
  printf("%d of %d points wrong, %d steps at most, quotient %s\n", wrong, width * height, most,
         right ? "right" : "wrong");
  cudaFree(device_steps);
  cudaFree(device_result);
  return wrong > width * height / 100 || most < 50 || !right;
}
