// The places that a launch can stand in, what can stand in it, and launches that are refused.
#include <stdio.h>
#include <stdlib.h>

__managed__ int total;
__global__ void add(int n) { atomicAdd(&total, n); }
__global__ void sizes(size_t bytes, float f, const int *p, char c) { total += (int)bytes + (int)f + (p == 0) + c; }
__global__ void none() {}

#define CONFIG 1, 1
#define ADD(n) add<<<1, 1>>>(n)
#define LAUNCH(kernel, ...) kernel<<<1, 1>>>(__VA_ARGS__)
#define SHAPED(kernel, grid, block) kernel<<<grid, block>>>
#define CHECK_KERNEL(launch)                                                                                           \
  do {                                                                                                                 \
    launch;                                                                                                            \
    cudaError_t e = cudaGetLastError();                                                                                \
    if (e != cudaSuccess) printf("line %d: %s\n", __LINE__, cudaGetErrorString(e)), errors++;                          \
  } while (0)

static int errors, evaluated;
static int next() { return ++evaluated; }
static dim3 shape(int x, int y) { return dim3(x, y); }

static bool expect(int value, int line) {
  cudaDeviceSynchronize();
  if (total != value) printf("line %d: %d, not %d\n", line, total, value);
  bool same = total == value;
  total = 0;
  return same;
}
#define EXPECT(value) ok = expect(value, __LINE__) && ok

// CUDA 13 calls them invalid values, older ones invalid configurations.
static bool no_such_shape(cudaError_t e) { return e == cudaErrorInvalidValue || e == cudaErrorInvalidConfiguration; }

int main(int argc, char **argv) {
  bool ok = true;
  ADD(3);
  LAUNCH(add, 4);
  LAUNCH(none);
  SHAPED(add, 2, dim3(2, 2))(1);
  CHECK_KERNEL((add<<<1, 1>>>(5)));
  add<<<CONFIG>>>(6);
  EXPECT(3 + 4 + 8 + 5 + 6);

  if (argc > 100)
    add<<<1, 1>>>(1000);
  else
    add<<<1, 1>>>(1);
  for (int i = 0; i < 3; i++) add<<<1, i + 1>>>(i);
  add<<<1, 1>>>(10), add<<<1, 1>>>(20);
  argc > 100 ? add<<<1, 1>>>(1000) : add<<<2, 1>>>(2);
  auto later = [&](int n) { add<<<1, n>>>(n); };
  later(5);
  [] { add<<<1, 1>>>(100); }();
  EXPECT(1 + (1 * 2 + 2 * 3) + 30 + 4 + 25 + 100);

  // clang-format off
  add <<< shape(2, 2), 4 >> 1 >>> ( 1 << 2 );
  add<<<{2, 2}, {2}, 0, 0>>>(int{3});
  add // a launch over several lines
      <<<(argc < 100 ? 1 : 2), // blocks
         dim3(2, 1, 1)         /* threads >>> */
      >>>
      (7);
  add<<<argc < 100 ? 1 : 2, argc > 100 ? 2 : 1>>>(1'000 % 7);
  // clang-format on
  EXPECT(4 * 2 * 4 + 4 * 2 * 3 + 14 + 6);

  add<<<4, 8>>>(next()); // once, on the host
  EXPECT(32);
  sizes<<<1, 1>>>(3, 4, 0, 'a');
  sizes<<<1, 1>>>(3.9, 4.9, NULL, 97);
  sizes<<<1, 1>>>(sizeof(double), -1, nullptr, 0);
  EXPECT(3 * 2 + 4 * 2 + 3 + 97 * 2 + 8 - 1);

  const char *text = "add<<<1, 1>>>(1000);"; // add<<<1, 1>>>(1000);
  puts(text);
  none<<<1, 2048>>>();
  ok = ok && no_such_shape(cudaGetLastError()) && cudaGetLastError() == cudaSuccess;
  none<<<0, 32>>>();
  ok = ok && no_such_shape(cudaPeekAtLastError());
  ok = ok && no_such_shape(cudaGetLastError());
  none<<<1, 1, 1 << 20>>>();
  ok = ok && cudaGetLastError() == cudaErrorInvalidValue;
  CHECK_KERNEL((add<<<1, 1025>>>(1)));
  CHECK_KERNEL((add<<<1, 1024>>>(1)));
  EXPECT(1024);
  ok = ok && errors == 1;
  printf("%s\n", ok ? "PASSED" : "FAILED");
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
