/* The stand-in's counters, against the numbers that textbooks and profilers give. Built with the flags of STATS=1. */
#include "fault.h"
#include "standin.h"
#include "test.h"

#include <string.h>

template <class F> static cuda_cpu_counters count(F start) {
  cuda_cpu_take_counters();
  cuda_cpu_count(true);
  start();
  EXPECT_OK(cudaDeviceSynchronize());
  cuda_cpu_count(false);
  return cuda_cpu_take_counters();
}

/* --- coalescing --- */

__global__ void copy(const float *in, float *out, unsigned offset, unsigned stride) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i * stride + offset];
}
TEST(sectors_of_offset_and_strided_loads) {
  device_array<float> in(1 << 16), out(1 << 12);
  const struct {
    unsigned offset, stride;
    unsigned long long sectors;
  } cases[] = {{0, 1, 4}, {1, 1, 5}, {8, 1, 4}, {0, 2, 8}, {0, 8, 32}, {0, 32, 32}, {0, 0, 1}};
  for (const auto &c : cases) {
    const cuda_cpu_counters n = count([&] { launch(copy, 4, 128, 0, in.p, out.p, c.offset, c.stride); });
    EXPECT_EQ(n.launches, 1u);
    EXPECT_EQ(n.threads, 512u);
    EXPECT_EQ(n.warps, 16u);
    EXPECT_EQ(n.global_loads, 16u);
    EXPECT_EQ(n.global_load_sectors, 16 * c.sectors);
    EXPECT_EQ(n.global_stores, 16u);
    EXPECT_EQ(n.global_store_sectors, 16u * 4);
    EXPECT_EQ(n.not_counted, 0u);
  }
}

struct particle {
  float x, y, z, w;
};
__global__ void array_of_structures(const particle *p, float *out) { out[threadIdx.x] = p[threadIdx.x].y; }
__global__ void whole_vectors(const float4 *p, float4 *out) { out[threadIdx.x] = p[threadIdx.x]; }
__global__ void some_bytes(const unsigned char *p, unsigned char *out) { out[threadIdx.x] = p[threadIdx.x]; }
TEST(sectors_of_structures_vectors_and_bytes) {
  device_array<particle> p(32);
  device_array<float4> v(32), w(32);
  device_array<float> out(32);
  device_array<unsigned char> b(32), c(32);
  cuda_cpu_counters n = count([&] { launch(array_of_structures, 1, 32, 0, p.p, out.p); });
  EXPECT_EQ(n.global_load_sectors, 16u); /* of which it uses a quarter */
  n = count([&] { launch(whole_vectors, 1, 32, 0, v.p, w.p); });
  EXPECT_EQ(n.global_loads, 1u);
  EXPECT_EQ(n.global_load_sectors, 16u);
  EXPECT_EQ(n.global_store_sectors, 16u);
  n = count([&] { launch(some_bytes, 1, 32, 0, b.p, c.p); });
  EXPECT_EQ(n.global_load_sectors, 1u);
  n = count([&] { launch(copy, 1, 20, 0, out.p, out.p, 0u, 1u); }); /* a part of a warp */
  EXPECT_EQ(n.warps, 1u);
  EXPECT_EQ(n.global_load_sectors, 3u);
}

/* g++ copies a structure of two or three floats as a whole, a GPU each float: half or a third of each sector is used. */
struct point {
  float x, y;
};
struct point_3d {
  float x, y, z;
};
template <class T> __global__ void copy_whole(const T *p, T *q) { q[threadIdx.x] = p[threadIdx.x]; }
template <class T> static void expect_words(unsigned long long requests, unsigned long long sectors, int line) {
  device_array<T> p(32), q(32);
  const cuda_cpu_counters n = count([&] { launch(copy_whole<T>, 1, 32, 0, p.p, q.p); });
  test_eq(n.global_loads, requests, "loads", "requests", __FILE__, line);
  test_eq(n.global_load_sectors, requests * sectors, "sectors loaded", "requests * sectors", __FILE__, line);
  test_eq(n.global_stores, requests, "stores", "requests", __FILE__, line);
  test_eq(n.global_store_sectors, requests * sectors, "sectors stored", "requests * sectors", __FILE__, line);
}
TEST(copies_of_structures_are_of_words) {
  expect_words<point>(2, 8, __LINE__);
  expect_words<point_3d>(3, 12, __LINE__);
#ifndef __clang__ /* which copies it as it does a float4 */
  expect_words<particle>(4, 16, __LINE__);
#endif
  expect_words<float2>(1, 8, __LINE__);
  expect_words<float4>(1, 16, __LINE__);
}

/* --- bank conflicts --- */

template <class T> __global__ void strided_shared(T *out, unsigned stride) {
  __shared__ T data[32 * 33];
  data[threadIdx.x * stride] = 1;
  __syncthreads();
  out[threadIdx.x] = data[threadIdx.x * stride];
}
static unsigned long long common_factor(unsigned long long a, unsigned long long b) {
  return b ? common_factor(b, a % b) : a;
}
TEST(strides_in_shared_memory) {
  device_array<int> out(32);
  for (unsigned stride = 1; stride <= 33; stride++) {
    const cuda_cpu_counters n = count([&] { launch(strided_shared<int>, 1, 32, 0, out.p, stride); });
    EXPECT_EQ(n.shared_loads, 1u);
    EXPECT_EQ(n.shared_stores, 1u);
    EXPECT_EQ(n.shared_load_passes, common_factor(stride, 32)); /* stride 2: two ways; odd ones: none */
    EXPECT_EQ(n.shared_store_passes, common_factor(stride, 32));
  }
  const cuda_cpu_counters same = count([&] { launch(strided_shared<int>, 1, 32, 0, out.p, 0u); });
  EXPECT_EQ(same.shared_load_passes, 1u); /* one word for all is a broadcast */
}
TEST(bytes_and_doubles_in_shared_memory) {
  device_array<char> bytes(32);
  device_array<double> doubles(32);
  EXPECT_EQ(count([&] { launch(strided_shared<char>, 1, 32, 0, bytes.p, 1u); }).shared_load_passes, 1u);
  EXPECT_EQ(count([&] { launch(strided_shared<double>, 1, 32, 0, doubles.p, 1u); }).shared_load_passes, 2u);
  EXPECT_EQ(count([&] { launch(strided_shared<double>, 1, 32, 0, doubles.p, 2u); }).shared_load_passes, 4u);
}

template <int Pad> __global__ void transpose(const float *in, float *out, unsigned width) {
  __shared__ float tile[32][32 + Pad];
  const unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
  for (unsigned j = threadIdx.y; j < 32; j += 8) tile[j][threadIdx.x] = in[(y + j) * width + x];
  __syncthreads();
  for (unsigned j = threadIdx.y; j < 32; j += 8)
    out[(blockIdx.x * 32 + j) * width + y + threadIdx.x] = tile[threadIdx.x][j];
}
TEST(padding_a_transpose) {
  device_array<float> in(128 * 128), out(128 * 128);
  cuda_cpu_counters n = count([&] { launch(transpose<0>, dim3(4, 4), dim3(32, 8), 0, in.p, out.p, 128u); });
  EXPECT_EQ(n.shared_loads, 512u);
  EXPECT_EQ(n.shared_load_passes, 512u * 32);
  EXPECT_EQ(n.shared_store_passes, 512u);
  EXPECT_EQ(n.global_load_sectors, 512u * 4);
  EXPECT_EQ(n.global_store_sectors, 512u * 4);
  EXPECT_EQ(n.divergent_branches, 0u);
  n = count([&] { launch(transpose<1>, dim3(4, 4), dim3(32, 8), 0, in.p, out.p, 128u); });
  EXPECT_EQ(n.shared_load_passes, 512u);
}

/* --- divergence --- */

__global__ void by_parity(float *p) {
  if (threadIdx.x % 2)
    p[threadIdx.x] = 1;
  else
    p[threadIdx.x + 1024] *= 2;
}
__global__ void by_warp(float *p) {
  if (threadIdx.x / 32 % 2)
    p[threadIdx.x] = 1;
  else
    p[threadIdx.x + 1024] *= 2;
}
__global__ void within_bounds(float *p, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = 1;
}
__global__ void as_often_as_the_lane_says(float *p) {
  for (unsigned i = 0; i < threadIdx.x % 32; i++) p[threadIdx.x + 64 * i] = 1;
}
__global__ void product(const float *a, const float *b, float *c, unsigned n) {
  const unsigned row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (unsigned k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}
TEST(a_uniform_loop_does_not_diverge) {
  device_array<float> a(1024), b(1024), c(1024);
  const cuda_cpu_counters n = count([&] { launch(product, dim3(2, 2), dim3(16, 16), 0, a.p, b.p, c.p, 32u); });
  EXPECT_EQ(n.branches, 32u * 33);
  EXPECT_EQ(n.divergent_branches, 0u);
  EXPECT_EQ(n.diverged_warps, 0u);
}
TEST(branches_that_diverge) {
  device_array<float> p(4096);
  cuda_cpu_counters n = count([&] { launch(by_parity, 1, 128, 0, p.p); });
  EXPECT_EQ(n.divergent_branches, 4u);
  EXPECT_EQ(n.diverged_warps, 4u);
  EXPECT_EQ(n.warps, 4u);
  n = count([&] { launch(by_warp, 1, 128, 0, p.p); });
  EXPECT_EQ(n.divergent_branches, 0u);
  EXPECT_EQ(n.diverged_warps, 0u);
  n = count([&] { launch(within_bounds, 4, 256, 0, p.p, 1000u); }); /* 31 warps inside, one on the edge, none outside */
  EXPECT_EQ(n.diverged_warps, 1u);
  n = count([&] { launch(within_bounds, 4, 256, 0, p.p, 992u); });
  EXPECT_EQ(n.diverged_warps, 0u);
  n = count([&] { launch(as_often_as_the_lane_says, 1, 64, 0, p.p); });
  EXPECT_EQ(n.diverged_warps, 2u);
  EXPECT(n.divergent_branches >= 2 * 31);
}

/* --- neighbours --- */

/* The system may put an allocation right behind the shared memory of a worker, or in front of it. */
alignas(1 << 16) static int neighbours[1 << 14]; /* a page of the shadow that says what is traced */
__global__ void fill_pages(int *p) { p[threadIdx.x] = 1; }
TEST(shared_memory_and_other_in_one_page) {
  int *const shared = neighbours, *const device = neighbours + 256;
  const auto stores = [&](int *p) { return count([&] { launch(fill_pages, 1, 64, 0, p); }); };
  for (int turn = 0; turn < 2; turn++) {
    cuda_cpu::trace_register(turn ? device : shared, 1024, turn == 0);
    cuda_cpu::trace_register(turn ? shared : device, 1024, turn != 0);
    EXPECT_EQ(stores(shared).shared_stores, 2u);
    EXPECT_EQ(stores(shared).global_stores, 0u);
    EXPECT_EQ(stores(device).global_stores, 2u);
    EXPECT_EQ(stores(device).shared_stores, 0u);
  }
  cuda_cpu::trace_register(neighbours, sizeof neighbours, false);
  EXPECT_EQ(stores(shared).global_stores, 2u);
}

/* --- atomics --- */

__global__ void add(int *p, float *q) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, 1);
  atomicAdd(q, 1.0f); /* a loop here, one instruction on a GPU */
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(p, sum);
}
TEST(atomics_are_counted_by_thread) {
  device_array<int> p(1);
  device_array<float> q(1);
  const cuda_cpu_counters n = count([&] { launch(add, 2, 96, 0, p.p, q.p); });
  EXPECT_EQ(n.shared_atomics, 192u);
  EXPECT_EQ(n.global_atomics, 192u + 2);
  EXPECT_EQ(n.global_loads, 0u);
  EXPECT_EQ(n.global_stores, 0u);
}

/* --- what is printed --- */

TEST(prints_for_each_kernel_at_the_end) {
  const char *const name = "prints_for_each_kernel_at_the_end";
  if (in_child(name)) {
    device_array<float> in(1 << 12), out(1 << 12);
    launch(copy, 4, 128, 0, in.p, out.p, 1u, 1u);
    launch(copy, 4, 128, 0, in.p, out.p, 1u, 1u);
    launch(by_parity, 1, 128, 0, out.p);
    return;
  }
  child c = run_child(name, "GPUKIT_CPU_STATS=1");
  EXPECT_HAS(c.output.c_str(), "CUDA stand-in: copy(float const*, float*, unsigned int, unsigned int)\n"
                               "    2 launches, 1024 threads, 32 warps\n"
                               "    global loads             32 requests      5.00 sectors each\n"
                               "    global stores            32 requests      4.00 sectors each\n");
  EXPECT_HAS(c.output.c_str(), "CUDA stand-in: by_parity(float*)\n    1 launches, 128 threads, 4 warps\n");
  EXPECT_HAS(c.output.c_str(), "4 divergent; 4 warps diverged\n");
  EXPECT(!strstr(c.output.c_str(), "test_counters.cu:"));
  c = run_child(name, "GPUKIT_CPU_STATS=lines");
  EXPECT_HAS(c.output.c_str(), "test_counters.cu:");
  EXPECT_HAS(c.output.c_str(), "global load of 4 bytes, 32 requests, 5.00 sectors each\n");
  EXPECT(!strstr(c.output.c_str(), "branches are not counted"));
  EXPECT(!strstr(run_child(name, "GPUKIT_CPU_STATS=0").output.c_str(), "launches"));
  EXPECT_HAS(run_child(name, "GPUKIT_CPU_STATS=1 PATH=/").output.c_str(), "branches are not counted: ");
}
