/* The usual mistakes, one for each row of README's table: its first column is the argument that makes this program make
 * the mistake, its last one what is said then (tests/standin/mistakes.sh compares). */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#include <stdio.h>
#include <string.h>

__global__ void twice(float *x) {
  if (x) x[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}
__global__ void store(float *x, int i) { x[i] = 1; }

static float *on_device(size_t n) {
  float *p;
  GK_CHECK(cudaMalloc(&p, n * sizeof(float)));
  GK_CHECK(cudaMemset(p, 0, n * sizeof(float)));
  return p;
}

/* Where a mistake of the kernel itself, or of the build, has another outcome without a GPU, the stand-in brings about
 * what a GPU would. */
static void let_fail(const char *what) {
#ifdef CUDA_ON_CPU
  cuda_cpu_fail(what);
#else
  (void)what;
#endif
}

/* --- launches and arguments --- */

static void large_block() { GK_LAUNCH(twice, 1, 2048, 0, 0, on_device(2048)); }
static void tall_grid() { GK_LAUNCH(twice, dim3(1, 100000), 32, 0, 0, on_device(32)); }
static void shared_memory() { GK_LAUNCH(twice, 1, 32, 300000, 0, on_device(32)); }
static void empty_block() { GK_LAUNCH(twice, 1, 0, 0, 0, on_device(32)); }
static void host_array() {
  float x[4] = {1, 2, 3, 4};
  GK_CHECK(gk_reduce_sum(x, on_device(1), 4));
}
static void stale_error() {
  float *const x = on_device(32);
  cudaMemcpy(x, NULL, 4, cudaMemcpyHostToDevice); /* its status is not checked */
  twice<<<1, 32>>>(x);
  GK_CHECK_LAUNCH();
}
static void kernel_fault() {
  let_fail("kernel:1:cudaErrorIllegalAddress");
  GK_LAUNCH(store, 1, 1, 0, 0, static_cast<float *>(NULL), 0);
  GK_LAUNCH(twice, 1, 32, 0, 0, on_device(32));
}
static void small_scratch() {
  gk_scratch scratch = {};
  GK_CHECK(gk_scratch_create(&scratch, 0, 0));
  float *const x = on_device(1 << 20);
  GK_CHECK(gk_scan_inclusive(x, x, 1 << 20, gk_op_sum(), 0, &scratch));
}
static void timer_running() {
  gk_timer timer = {};
  float ms;
  GK_CHECK(gk_timer_create(&timer));
  GK_CHECK(gk_timer_start(&timer, 0));
  GK_CHECK(gk_timer_ms(&timer, &ms));
}
static void foreign_event() {
  cudaEvent_t event;
  cudaStream_t stream;
  GK_CHECK(cudaEventCreate(&event));
  GK_CHECK(cudaSetDevice(1));
  GK_CHECK(cudaStreamCreate(&stream));
  GK_CHECK(cudaEventRecord(event, stream));
}
static void matmul_in_place() {
  float *const a = on_device(64);
  GK_CHECK(gk_matmul(a, on_device(64), a, 8, 8, 8));
}
static void leading_dimension() {
  gk_matmul_opts opts = {};
  opts.lda = 5;
  GK_CHECK(gk_matmul_ex(on_device(64), on_device(64), on_device(64), 8, 8, 8, &opts));
}
static void misaligned() {
  char *const bytes = reinterpret_cast<char *>(on_device(10));
  GK_CHECK(gk_reduce_sum(reinterpret_cast<float *>(bytes + 1), on_device(1), 4));
}
static void no_code() {
  let_fail("launch:1:cudaErrorNoKernelImageForDevice");
  GK_LAUNCH(twice, 1, 32, 0, 0, on_device(32));
}
static void freed_twice() {
  float *const x = on_device(4);
  GK_CHECK(cudaFree(x));
  GK_CHECK(cudaFree(x));
}

/* --- kernels --- */

__global__ void sum_in_a_branch(float *x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 32) {
    s[threadIdx.x] += s[threadIdx.x + 32];
    __syncthreads();
  }
  x[threadIdx.x] = s[0];
}
static void divergent_barrier() {
  sum_in_a_branch<<<1, 64>>>(on_device(64));
  GK_CHECK(cudaDeviceSynchronize());
}
__global__ void shuffle_of_half(float *x) {
  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_down_sync(0xffffffff, x[threadIdx.x], 8);
}
static void absent_lanes() {
  shuffle_of_half<<<1, 32>>>(on_device(32));
  GK_CHECK(cudaDeviceSynchronize());
}
__global__ void sums_in_a_loop(const float *x, float *sum, int n) {
  GK_FOR_1D (i, n) { /* the last threads have no i */
    const float s = gk_block_reduce<128>(x[i], gk_sum<float>());
    if (threadIdx.x == 0) *sum += s;
  }
}
static void reduce_in_a_loop() {
  sums_in_a_loop<<<1, 128>>>(on_device(200), on_device(1), 200);
  GK_CHECK(cudaDeviceSynchronize());
}
__global__ void sum_of_block(const float *x, float *sum) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x == 0)
    for (int i = 0; i < 64; i++) *sum += s[i];
}
static void no_barrier() {
  sum_of_block<<<1, 64>>>(on_device(64), on_device(1));
  GK_CHECK(cudaDeviceSynchronize());
}
__global__ void last_warp(float *x) { /* as in reductions of 2007 */
  volatile __shared__ float s[64];
  const unsigned lane = threadIdx.x;
  s[lane] = x[lane];
  s[lane + 32] = 0;
  __syncthreads();
  for (unsigned d = 16; d; d /= 2) s[lane] += s[lane + d];
  if (lane == 0) *x = s[0];
}
static void in_step() {
  last_warp<<<1, 32>>>(on_device(32));
  GK_CHECK(cudaDeviceSynchronize());
}
__global__ void count(float *x) { *x += 1; }
static void no_atomic() {
  count<<<2, 1>>>(on_device(1));
  GK_CHECK(cudaDeviceSynchronize());
}
__global__ void count_all(float *x) { atomicAdd(x, 1); }
static void no_memset() {
  float *x;
  GK_CHECK(cudaMalloc(&x, sizeof(float)));
  count_all<<<2, 32>>>(x);
  GK_CHECK(cudaDeviceSynchronize());
}
static void out_of_bounds() {
  store<<<1, 1>>>(on_device(100), 100);
  GK_CHECK(cudaDeviceSynchronize());
}
__global__ void beyond_shared(float *x) {
  extern __shared__ float s[];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x + 1];
}
static void shared_out_of_bounds() {
  beyond_shared<<<1, 32, 32 * sizeof(float)>>>(on_device(32));
  GK_CHECK(cudaDeviceSynchronize());
}
static void freed_memory() {
  float *const x = on_device(32);
  GK_CHECK(cudaFree(x));
  store<<<1, 1>>>(x, 0);
  GK_CHECK(cudaDeviceSynchronize());
}
static void host_access() {
  float *const x = on_device(4);
  x[0] = 1;
  GK_CHECK(cudaFree(x));
}
static void null_in_kernel() {
  store<<<1, 1>>>(NULL, 0);
  GK_CHECK(cudaDeviceSynchronize());
}
static void leak() { on_device(100); }
static void host_pointer() {
  float *const x = new float[32]();
  twice<<<1, 32>>>(x);
  GK_CHECK(cudaDeviceSynchronize());
  delete[] x;
}
__global__ void store_value(float *x, const float &value) {
  if (x) *x = value;
}
static void host_reference() {
  const float local = 1;
  store_value<<<1, 1>>>(NULL, local);
  GK_CHECK(cudaDeviceSynchronize());
}
__global__ void store_some(float *x, int n) {
  if (threadIdx.x < static_cast<unsigned>(n)) x[threadIdx.x] = 1;
}
static void freed_pointer() {
  float *const x = on_device(32);
  GK_CHECK(cudaFree(x));
  store_some<<<1, 32>>>(x, 0);
  GK_CHECK(cudaDeviceSynchronize());
}
static void pointer_before_reset() {
  float *const x = on_device(8);
  GK_CHECK(cudaDeviceReset());
  store_some<<<1, 32>>>(x + 7, 0);
  GK_CHECK(cudaDeviceSynchronize());
}
static void large_shared_memory() { twice<<<1, 32, 60000>>>(static_cast<float *>(NULL)); }
static void never_ran() { twice<<<1, 2048>>>(static_cast<float *>(NULL)); }
static void not_waited_for() { twice<<<1, 32>>>(static_cast<float *>(NULL)); }
#ifdef CUDA_ON_CPU /* nvcc refuses it */
__global__ void large_tile(float *x) {
  __shared__ float tile[128][128];
  tile[threadIdx.x][0] = 1;
  if (x) *x = tile[0][0];
}
static void large_variables() { large_tile<<<1, 32>>>(NULL); }
#include "no_launch.h"
#else
static void large_variables() {}
static void no_launch() {}
#endif

static const struct {
  const char *name;
  void (*make)();
} mistakes[] = {
    {"a block of 2048 threads", large_block},
    {"a grid of 100000 blocks in y", tall_grid},
    {"an empty block", empty_block},
    {"more shared memory than a block has", shared_memory},
    {"a binary built for another GPU", no_code},
    {"a host array where a device array belongs", host_array},
    {"a pointer into the middle of an element", misaligned},
    {"an earlier error that was not checked", stale_error},
    {"a kernel that dies, noticed calls later", kernel_fault},
    {"a timer read before it was stopped", timer_running},
    {"an event on a stream of another device", foreign_event},
    {"a scratch for fewer elements", small_scratch},
    {"a product stored over its operand", matmul_in_place},
    {"a leading dimension that is none", leading_dimension},
    {"memory freed twice", freed_twice},
    {"memory never freed", leak},
    {"a barrier in a branch", divergent_barrier},
    {"a shuffle in a branch", absent_lanes},
    {"a block reduction inside `GK_FOR_1D`", reduce_in_a_loop},
    {"a forgotten `__syncthreads`", no_barrier},
    {"a last warp without barriers", in_step},
    {"a sum that does not start at zero", no_memset},
    {"`+=` by two blocks", no_atomic},
    {"an index past the end", out_of_bounds},
    {"an index past shared memory", shared_out_of_bounds},
    {"memory used after it was freed", freed_memory},
    {"the host dereferences a device pointer", host_access},
    {"a null pointer in a kernel", null_in_kernel},
    {"an array of the host in a kernel", host_pointer},
    {"a reference parameter of a kernel", host_reference},
    {"a pointer to freed memory in a kernel", freed_pointer},
    {"a pointer from before cudaDeviceReset", pointer_before_reset},
    {"a launch that never ran", never_ran},
    {"a launch with 60,000 bytes of shared memory", large_shared_memory},
    {"an end before the kernel's", not_waited_for},
    {"64 KiB of `__shared__` variables", large_variables},
    {"a kernel called like a function", no_launch},
};

int main(int argc, char **argv) {
  for (const auto &m : mistakes)
    if (argc == 2 && !strcmp(argv[1], m.name)) {
      m.make();
      return 0;
    }
  fprintf(stderr, "no such mistake: %s\n", argc == 2 ? argv[1] : "");
  return 1;
}
