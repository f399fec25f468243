/* The stand-in's race checker: races that a GPU would not tell of are named with kernel, threads, lines and variable; and
 * what CUDA's memory model orders is silent, gpukit's own kernels included. Built with the flags of RACES=1. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include <cooperative_groups.h>
#include "fault.h"
#include "hooks.h"
#include "standin.h"
#include "test.h"

static const char *const schedules[] = {"forward", "reversed", "random:1", "random:2", "random:3"};

static void clear(int *p, size_t n) { EXPECT_OK(cudaMemset(p, 0, n * sizeof(int))); }

/* How many accesses race; what is said of them is in `said`. */
template <class F> static unsigned long long races_of(F start) {
  cuda_cpu_take_races();
  said = stderr_of([&] {
    start();
    EXPECT_OK(cudaDeviceSynchronize());
  });
  return cuda_cpu_take_races();
}
/* Races in every schedule; the words of the first stay. */
template <class F> static void expect_race(int line, F start) {
  std::string first;
  for (const char *schedule : schedules) {
    with_settings settings(schedule);
    if (!races_of(start)) test_fail(__FILE__, line, std::string("no race was seen, schedule ") + schedule);
    if (strcmp(schedule, "forward"))
      EXPECT_SAID(("(GPUKIT_CPU_SCHEDULE=" + std::string(schedule) + ")").c_str());
    else
      first = said;
  }
  said = first;
}
template <class F> static void expect_silence(int line, F start) {
  for (const char *schedule : schedules) {
    with_settings settings(schedule);
    if (races_of(start)) test_fail(__FILE__, line, std::string("schedule ") + schedule + ": " + said);
  }
}
#define EXPECT_RACE(...) expect_race(__LINE__, [&] { __VA_ARGS__; })
#define EXPECT_SILENCE(...) expect_silence(__LINE__, [&] { __VA_ARGS__; })

/* --- within a warp, within a block --- */

__global__ void all_write_one(int *out) {
  __shared__ int data[32];
  data[0] = static_cast<int>(threadIdx.x), NOTE(0);
  __syncthreads();
  out[threadIdx.x] = data[0];
}
TEST(threads_of_a_warp_write_one_word) {
  device_array<int> out(32);
  EXPECT_RACE(launch(all_write_one, 1, 32, 0, out.p));
  EXPECT_SAID("race in kernel all_write_one(int*), grid (1,1,1), block (32,1,1)");
  EXPECT_SAID("on byte 0 of __shared__ data");
  EXPECT_SAID("write by block (0,0,0) thread (0,0,0), ");
  EXPECT_SAID("write by block (0,0,0) thread (1,0,0), ");
  EXPECT_SAID_LINE(0);
  EXPECT_SAID("__syncwarp() or __syncthreads() is missing");
}

__global__ void all_write_the_same(int *out) {
  __shared__ int data[32];
  data[0] = 5;
  __syncthreads();
  out[threadIdx.x] = data[0];
}
TEST(equal_values_may_be_written) {
  device_array<int> out(32);
  EXPECT_SILENCE(launch(all_write_the_same, 1, 32, 0, out.p));
}

template <bool Barrier> __global__ void sum_of_block(const int *in, int *out) {
  __shared__ int part[128];
  part[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (unsigned d = 64; d; d /= 2) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d], NOTE(0);
    if (Barrier) __syncthreads();
  }
  if (threadIdx.x == 0) *out = part[0];
}
TEST(a_reduction_without_its_barrier) {
  device_array<int> in(128), out(1);
  in.set(std::vector<int>(128, 1));
  EXPECT_RACE(launch(sum_of_block<false>, 1, 128, 0, in.p, out.p));
  EXPECT_SAID("__shared__ part");
  EXPECT_SAID_LINE(0);
  EXPECT_SILENCE(launch(sum_of_block<true>, 1, 128, 0, in.p, out.p));
  EXPECT_EQ(out.get()[0], 128);
}

__global__ void across_warps(int *out) {
  __shared__ int data[64];
  data[threadIdx.x] = 1;
  __syncwarp();
  out[threadIdx.x] = data[63 - threadIdx.x];
}
TEST(a_warp_barrier_orders_no_other_warp) {
  device_array<int> out(64);
  EXPECT_RACE(launch(across_warps, 1, 64, 0, out.p));
  EXPECT_SAID("a __syncthreads() is missing");
}

/* The last warp of the reduction of 2007, which counts on lanes that run in step. */
enum { in_step, with_syncwarp, with_syncthreads };
template <int How> __device__ void add_within_warp(volatile int *s, unsigned lane) {
  for (unsigned d = 16; d; d /= 2) {
    if (How == in_step)
      s[lane] += s[lane + d], NOTE(0);
    else {
      const int x = s[lane + d];
      How == with_syncwarp ? __syncwarp() : __syncthreads();
      s[lane] += x;
      How == with_syncwarp ? __syncwarp() : __syncthreads();
    }
  }
}
template <int How> __global__ void last_warp(const int *in, int *out) {
  __shared__ int part[64];
  part[threadIdx.x] = in[threadIdx.x];
  part[threadIdx.x + 32] = 0;
  __syncthreads();
  add_within_warp<How>(part, threadIdx.x);
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
TEST(volatile_does_not_keep_a_warp_in_step) {
  device_array<int> in(32), out(2);
  in.set(std::vector<int>(32, 1));
  EXPECT_RACE(launch(last_warp<in_step>, 2, 32, 0, in.p, out.p));
  EXPECT_SAID("__shared__ part");
  EXPECT_SAID_LINE(0);
  EXPECT_SAID("volatile does not make them: a __syncwarp()");
  EXPECT_SILENCE(launch(last_warp<with_syncwarp>, 2, 32, 0, in.p, out.p));
  EXPECT_EQ(out.get()[1], 32);
  EXPECT_SILENCE(launch(last_warp<with_syncthreads>, 2, 32, 0, in.p, out.p));
}

__global__ void swap_with_neighbour(volatile int *p) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i] = static_cast<int>(i);
  p[i + 64] = p[i ^ 1];
}
TEST(volatile_words_by_which_lanes_swap) {
  device_array<int> p(128);
  EXPECT_RACE(launch(swap_with_neighbour, 1, 64, 0, p.p));
  EXPECT_SAID("volatile does not make them");
}

/* Each lane waits for the one before it; all look for what one of them finds. */
__global__ void lanes_in_turn(volatile int *done, volatile int *found, int *sum) {
  const unsigned lane = threadIdx.x;
  while (lane && !done[lane - 1]) {}
  __threadfence_block();
  *sum += static_cast<int>(lane);
  __threadfence_block();
  done[lane] = 1;
  for (unsigned i = 0; i < 64 && !*found; i++)
    if (lane * 64 + i == 700) *found = 1;
}
TEST(volatile_flags_of_lanes) {
  device_array<int> p(64);
  EXPECT_SILENCE(clear(p.p, 64); launch(lanes_in_turn, 1, 32, 0, p.p, p.p + 32, p.p + 40));
  EXPECT_EQ(p.get()[40], 31 * 16);
}

/* How: 0 nothing, 1 a shuffle, 2 __syncwarp of all, 3 of each half, 4 of halves and then of others across them */
template <int How> __global__ void reverse_lanes(int *p) {
  __shared__ int data[32];
  const unsigned lane = threadIdx.x, half = lane < 16 ? 0xffffu : 0xffff0000u;
  data[lane] = p[lane];
  if (How == 1) __shfl_sync(~0u, 0, 0);
  if (How == 2) __syncwarp();
  if (How >= 3) __syncwarp(half);
  if (How == 4) __syncwarp(lane / 8 % 2 ? 0xff00ff00u : 0x00ff00ffu);
  p[lane] = data[How == 4 ? lane ^ 24 : 31 - lane];
}
TEST(a_shuffle_orders_no_memory) {
  device_array<int> p(32);
  EXPECT_RACE(launch(reverse_lanes<0>, 1, 32, 0, p.p));
  EXPECT_RACE(launch(reverse_lanes<1>, 1, 32, 0, p.p));
}
TEST(a_warp_barrier_orders_the_lanes_of_its_mask) {
  device_array<int> p(32);
  EXPECT_SILENCE(launch(reverse_lanes<2>, 1, 32, 0, p.p));
  EXPECT_RACE(launch(reverse_lanes<3>, 1, 32, 0, p.p));
  EXPECT_SILENCE(launch(reverse_lanes<4>, 1, 32, 0, p.p)); /* from lane 24 ^ x by way of lane 8 ^ x */
}

__global__ void reuse_shared(int *out) {
  __shared__ int x;
  for (int i = 0; i < 3; i++) {
    if (threadIdx.x == 0) x = i;
    __syncthreads();
    out[threadIdx.x] += x;
  }
}
TEST(shared_memory_reused_before_all_have_read) {
  device_array<int> out(64);
  EXPECT_RACE(launch(reuse_shared, 1, 64, 0, out.p));
  EXPECT_SAID("__shared__ x");
}

__global__ void dynamic_shared(int *out) {
  int *data = static_cast<int *>(cuda_cpu_dynamic_shared());
  data[threadIdx.x] = 1;
  out[threadIdx.x] = data[(threadIdx.x + 1) % 32];
}
TEST(races_on_dynamic_shared_memory) {
  device_array<int> out(32);
  EXPECT_RACE(launch(dynamic_shared, 1, 32, 128, out.p));
  EXPECT_SAID("of the dynamic shared memory");
}

__global__ void zero_then_add(int *p) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) *p = count;
}
TEST(an_atomic_before_the_word_is_set) {
  device_array<int> p(1);
  EXPECT_RACE(launch(zero_then_add, 1, 64, 0, p.p));
  EXPECT_SAID("atomic update by");
}

/* The three patterns of programs that are known to work which the README names, and each without its race. */
template <class T> __device__ T plain(const T &x) { return x; }
template <class T> __device__ T by_volatile(const T &x) { return *static_cast<const volatile T *>(&x); }
template <bool Cured> __global__ void sum_by_cas(unsigned long long *sum) {
  unsigned long long old = Cured ? by_volatile(*sum) : plain(*sum), assumed;
  do {
    assumed = old;
    old = atomicCAS(sum, assumed, assumed + 1);
  } while (old != assumed);
}
template <bool Cured> __global__ void search_level(int *level, int now) {
  const int v = static_cast<int>(threadIdx.x);
  if ((Cured ? by_volatile(level[v]) : plain(level[v])) != now) return;
  for (int w = 0; w < 64; w++) atomicCAS(level + w, 0, now + 1);
}
template <bool Cured> __global__ void shortest_by_way_of(int *d, int k) {
  const unsigned i = threadIdx.y, j = threadIdx.x;
  const int way = d[16 * i + static_cast<unsigned>(k)] + d[16 * static_cast<unsigned>(k) + j];
  if (!Cured || way < d[16 * i + j]) d[16 * i + j] = min(d[16 * i + j], way);
}
TEST(patterns_of_programs_that_work) {
  device_array<unsigned long long> sum(1);
  device_array<int> level(64), d(256);
  std::vector<int> from(64);
  from[0] = 1;
  const auto start = [&](auto add, auto search, auto step, int which) {
    level.set(from);
    if (which == 0) launch(add, 2, 64, 0, sum.p);
    if (which == 1) launch(search, 1, 64, 0, level.p, 1);
    if (which == 2) launch(step, 1, dim3(16, 16), 0, d.p, 3);
  };
  for (int which = 0; which < 3; which++) {
    EXPECT_RACE(start(sum_by_cas<false>, search_level<false>, shortest_by_way_of<false>, which));
    EXPECT_SILENCE(start(sum_by_cas<true>, search_level<true>, shortest_by_way_of<true>, which));
  }
}

__global__ void read_while_added(int *p) {
  __shared__ int count;
  count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  if (threadIdx.x == 0) *p = count;
}
/* An update of floating-point numbers is a loop in the stand-in, and one access all the same. */
template <class T> __global__ void store_and_add(T *p) {
  if (threadIdx.x == 0) *p = 1;
  if (threadIdx.x == 32) atomicAdd(p, T(1));
}
template <class T> static void expect_update() {
  device_array<T> p(1);
  EXPECT_RACE(launch(store_and_add<T>, 1, 64, 0, p.p));
  EXPECT_SAID("write by block (0,0,0) thread (0,0,0), ");
  EXPECT_SAID("atomic update by block (0,0,0) thread (32,0,0), ");
  EXPECT(said.find("volatile read by") == std::string::npos);
}
TEST(an_atomic_and_a_plain_write) {
  expect_update<int>();
  expect_update<float>();
  expect_update<double>();
}

TEST(a_plain_read_of_what_others_still_add_to) {
  device_array<int> p(1);
  EXPECT_RACE(launch(read_while_added, 1, 64, 0, p.p));
}

__global__ void bytes(unsigned char *p, bool overlap) {
  p[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
  if (overlap && threadIdx.x == 3) *reinterpret_cast<int *>(p + 8) = 7;
}
TEST(neighbouring_bytes_are_no_race_and_overlapping_ones_are) {
  device_array<unsigned char> p(64);
  EXPECT_SILENCE(launch(bytes, 1, 64, 0, p.p, false));
  EXPECT_RACE(launch(bytes, 1, 64, 0, p.p, true));
}

__global__ void copies(int *p, size_t size) { memcpy(p + threadIdx.x, p + 64, size); }
TEST(memcpy_in_a_kernel_is_seen) {
  device_array<int> p(128);
  std::vector<int> v(128);
  for (int i = 0; i < 128; i++) v[static_cast<size_t>(i)] = i;
  p.set(v);
  EXPECT_RACE(launch(copies, 1, 32, 0, p.p, size_t{8}));
  EXPECT_SILENCE(launch(copies, 1, 32, 0, p.p, size_t{4}));
}

/* --- between blocks --- */

__device__ int global_counter;
__global__ void same_thread_of_each_block(int *p) { p[threadIdx.x] += static_cast<int>(blockIdx.x) + 1, NOTE(0); }
__global__ void count_plainly() { global_counter++; }
TEST(equal_threads_of_different_blocks) {
  device_array<int> p(32);
  EXPECT_RACE(launch(same_thread_of_each_block, 2, 32, 0, p.p));
  EXPECT_SAID("write by block (0,0,0) thread (0,0,0)");
  EXPECT_SAID("read by block (1,0,0) thread (0,0,0)");
  EXPECT_SAID("byte 0 of device memory of 128 bytes, allocation");
  EXPECT_SAID_LINE(0);
  EXPECT_RACE(launch(count_plainly, 4, 1, 0));
  EXPECT_SAID("byte 0 of global_counter");
}

__global__ void set_by_one_block(int *p) {
  if (threadIdx.x == 0 && blockIdx.x == 0) *p = 0;
  __syncthreads();
  atomicAdd(p, 1);
}
TEST(a_counter_set_by_one_of_many_blocks) {
  device_array<int> p(1);
  EXPECT_RACE(launch(set_by_one_block, 4, 32, 0, p.p));
}

__global__ void histogram(const unsigned char *in, int *bins, int n) {
  const int step = static_cast<int>(blockDim.x * gridDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += step) atomicAdd(bins + in[i], 1);
}
TEST(atomics_do_not_race) {
  device_array<unsigned char> in(4096);
  device_array<int> bins(256);
  EXPECT_SILENCE(launch(histogram, 8, 64, 0, in.p, bins.p, 4096));
}

TEST(launches_follow_one_another) {
  device_array<int> p(32);
  EXPECT_SILENCE(launch(same_thread_of_each_block, 1, 32, 0, p.p); launch(same_thread_of_each_block, 1, 32, 0, p.p));
}

TEST(memory_that_is_allocated_again_has_no_past) {
  EXPECT_SILENCE(for (int i = 0; i < 4; i++) {
    device_array<int> p(static_cast<size_t>(64 << (i % 2)));
    launch(same_thread_of_each_block, 1, 32, 0, p.p);
  });
}

/* --- reads of what nothing has written --- */

__global__ void sum_of(const int *in, int *out, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += in[i], NOTE(0);
  if (threadIdx.x == 0) *out = sum;
}
__global__ void count_up(int *p, bool in_shared) {
  __shared__ int count;
  atomicAdd(in_shared ? &count : p, 1);
}
/* Thread 31 reads a word that no thread has written, and stores it if n is 32. */
template <class T> __global__ void shift(T *out, bool all, unsigned n) {
  __shared__ T s[33];
  s[threadIdx.x] = 1;
  if (all && threadIdx.x == 0) s[32] = 1;
  __syncthreads();
  T x;
  x = s[threadIdx.x + 1], NOTE(1);
  if (threadIdx.x < n) out[threadIdx.x] = x;
}
/* Its sum is not a number. */
__global__ void sum_of_too_many(float *out) {
  __shared__ float s[64];
  if (threadIdx.x < 40) s[threadIdx.x] = 1;
  for (unsigned d = 32; d; d /= 2) {
    __syncthreads();
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d], NOTE(2);
  }
  if (threadIdx.x == 0) *out = s[0];
}
TEST(reads_of_what_nothing_has_written) {
  device_array<int> out(32);
  int *p = nullptr, *managed = nullptr;
  EXPECT_OK(cudaMalloc(&p, 400));
  EXPECT_OK(cudaMallocManaged(&managed, 400));
  EXPECT_RACE(launch(sum_of, 1, 1, 0, p, out.p, 100));
  EXPECT_SAID("read of what nothing has written in kernel sum_of(int const*, int*, int)");
  EXPECT_SAID("on byte 0 of device memory of 400 bytes");
  EXPECT_SAID("read by block (0,0,0) thread (0,0,0), ");
  EXPECT_SAID_LINE(0);
  EXPECT_RACE(launch(sum_of, 1, 1, 0, managed, out.p, 100));
  EXPECT_SAID("of managed memory of 400 bytes");
  EXPECT_OK(cudaMemset(p, 0, 396));
  EXPECT_SILENCE(launch(sum_of, 1, 32, 0, p, out.p, 99));
  EXPECT_RACE(launch(sum_of, 1, 1, 0, p, out.p, 100));
  EXPECT_SAID("on byte 396 of device memory");
  EXPECT_RACE(launch(shift<int>, 1, 32, 0, out.p, false, 32u));
  EXPECT_SAID("on byte 128 of __shared__ s");
  EXPECT_SAID("read by block (0,0,0) thread (31,0,0), ");
  EXPECT_SAID_LINE(1);
  EXPECT_SILENCE(launch(shift<int>, 1, 32, 0, out.p, true, 32u));
  EXPECT_SILENCE(launch(shift<int>, 1, 32, 0, out.p, false, 31u));
  device_array<double> wide(32);
  EXPECT_RACE(launch(shift<double>, 1, 32, 0, wide.p, false, 32u));
  device_array<float> sum(1);
  EXPECT_RACE(launch(sum_of_too_many, 1, 64, 0, sum.p));
  EXPECT_SAID("of __shared__ s");
  EXPECT_SAID_LINE(2);
  EXPECT_SAID("store of it by block (0,0,0) thread (0,0,0), ");
  EXPECT_RACE(int *fresh = nullptr; EXPECT_OK(cudaMalloc(&fresh, 4)); launch(count_up, 1, 2, 0, fresh, false);
              EXPECT_OK(cudaFree(fresh)));
  EXPECT_SAID("atomic update by");
  EXPECT_RACE(launch(count_up, 1, 2, 0, out.p, true));
  EXPECT_SAID("on byte 0 of __shared__ count");
  for (int i = 0; i < 100; i++) managed[i] = i;
  EXPECT_SILENCE(launch(sum_of, 1, 32, 0, managed, out.p, 100));
  EXPECT_OK(cudaFree(p));
  EXPECT_OK(cudaFree(managed));
}

/* One line reads what nothing has written, and races; one races on two variables. */
__global__ void shift_in_place(int *out) {
  __shared__ int s[65];
  out[threadIdx.x] = s[threadIdx.x] = s[threadIdx.x + 1];
}
__global__ void swap_both(int *out) {
  __shared__ int s[64], q[64];
  const unsigned t = threadIdx.x;
  s[t] = q[t] = 0;
  __syncthreads();
  s[t] = static_cast<int>(t) + s[63 - t], q[t] = static_cast<int>(t) + q[63 - t];
  __syncthreads();
  out[t] = s[t] + q[t];
}
TEST(each_kind_and_variable_of_a_line_is_told) {
  device_array<int> out(64);
  EXPECT_RACE(launch(shift_in_place, 1, 64, 0, out.p));
  EXPECT_SAID("read of what nothing has written in kernel shift_in_place");
  EXPECT_SAID("race in kernel shift_in_place");
  EXPECT_RACE(launch(swap_both, 1, 64, 0, out.p));
  EXPECT_SAID(" of __shared__ s\n");
  EXPECT_SAID(" of __shared__ q\n");
}

struct padded {
  double x;
  int n;
};
__global__ void set_members(padded *p, short *most) {
  p[threadIdx.x].x = 1;
  p[threadIdx.x].n = 2;
  for (unsigned i = 0; i < 4; i++) most[4 * threadIdx.x + i] = 0x7fff; /* as poison is */
}
__global__ void copy_whole(const padded *p, padded *q, const short *most, short *sum) {
  q[threadIdx.x] = p[threadIdx.x];
  for (unsigned i = 0; i < 4; i++) sum[threadIdx.x] = static_cast<short>(sum[threadIdx.x] ^ most[4 * threadIdx.x + i]);
}
TEST(padding_and_words_that_look_like_poison) {
  device_array<short> sum(32);
  padded *p = nullptr;
  short *most = nullptr;
  EXPECT_OK(cudaMalloc(&p, 64 * sizeof *p));
  EXPECT_OK(cudaMalloc(&most, 256));
  EXPECT_SILENCE(launch(set_members, 1, 32, 0, p, most); launch(copy_whole, 1, 32, 0, p, p + 32, most, sum.p));
  const std::vector<short> host(128, 0x7fff);
  EXPECT_OK(cudaMemcpy(most, host.data(), 256, cudaMemcpyHostToDevice));
  EXPECT_SILENCE(launch(copy_whole, 1, 32, 0, p, p + 32, most, sum.p));
  EXPECT_OK(cudaFree(p));
  EXPECT_OK(cudaFree(most));
}

/* --- signals --- */

/* Missing: 0 nothing, 1 the fence of the writer, 2 of the reader; 3 both, and the payload is volatile */
template <int Missing> __global__ void pass_message(int *payload, volatile int *flag, int *out) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    if (Missing == 3)
      *static_cast<volatile int *>(payload) = 42;
    else
      *payload = 42, NOTE(0);
    if (Missing == 0 || Missing == 2) __threadfence();
    *flag = 1;
  } else {
    while (!*flag) __nanosleep(10);
    if (Missing == 0 || Missing == 1) __threadfence();
    if (Missing == 3)
      *out = *static_cast<volatile int *>(payload);
    else
      *out = *payload, NOTE(1);
  }
}
template <int Missing> static unsigned long long races_of_message(int *p) {
  return races_of([=] {
    clear(p, 256);
    launch(pass_message<Missing>, 2, 32, 0, p, p + 32, p + 64);
  });
}
TEST(a_message_needs_a_fence_on_either_side) {
  device_array<int> p(256);
  with_settings settings("forward"); /* the reader's block waits for one that must have run */
  EXPECT(!races_of_message<0>(p.p));
  EXPECT(races_of_message<1>(p.p) > 0);
  EXPECT_SAID("a __threadfence() is missing");
  EXPECT_SAID_LINE(0);
  EXPECT_SAID_LINE(1);
  EXPECT(races_of_message<2>(p.p) > 0);
  EXPECT_SAID("a __threadfence() is missing");
  EXPECT(races_of_message<3>(p.p) > 0);
  EXPECT_SAID("a __threadfence() is missing");
}

enum { right, no_fence, fence_before_barrier };
template <int How> __global__ void last_block_sums(const int *in, int *part, unsigned *count, int *out) {
  __shared__ bool last;
  part[blockIdx.x * blockDim.x + threadIdx.x] = in[threadIdx.x];
  if (How == fence_before_barrier) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (How == right) __threadfence();
    last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    if (How != no_fence) __threadfence();
  }
  __syncthreads();
  if (!last) return;
  int sum = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x * blockDim.x; i += blockDim.x) sum += part[i];
  atomicAdd(out, sum);
}
TEST(the_last_block_to_finish_reads_what_all_have_written) {
  device_array<int> in(64), part(512), out(1);
  device_array<unsigned> count(1);
  in.set(std::vector<int>(64, 1));
  EXPECT_SILENCE(launch(last_block_sums<right>, 8, 64, 0, in.p, part.p, count.p, out.p));
  EXPECT_SILENCE(launch(last_block_sums<fence_before_barrier>, 8, 64, 0, in.p, part.p, count.p, out.p));
  EXPECT_EQ(out.get()[0], 2 * 5 * 512);
  EXPECT_RACE(launch(last_block_sums<no_fence>, 8, 64, 0, in.p, part.p, count.p, out.p));
}

/* The last block sets the counter to 0 by a store, which comes behind all updates that made it the last one. */
template <bool Fence> __global__ void last_block_resets(int *part, unsigned *count, int *out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = 1;
    if (Fence) __threadfence();
    last = atomicInc(count, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x) return;
  *out = 0;
  for (unsigned i = 0; i < gridDim.x; i++) *out += part[i];
  *count = 0;
}
__global__ void count_and_read(unsigned *count, unsigned *out) {
  atomicInc(count, 1u << 20);
  if (blockIdx.x == 0 && threadIdx.x == 31) *out = *count; /* without a signal */
}
TEST(a_store_behind_the_last_update) {
  device_array<int> part(8), out(1);
  device_array<unsigned> count(1), found(1);
  EXPECT_SILENCE(launch(last_block_resets<true>, 8, 64, 0, part.p, count.p, out.p));
  EXPECT_EQ(out.get()[0], 8);
  EXPECT_RACE(launch(last_block_resets<false>, 8, 64, 0, part.p, count.p, out.p));
  EXPECT_RACE(launch(count_and_read, 4, 32, 0, count.p, found.p));
  EXPECT_SAID("one of the two is no atomic");
}

/* A scan over blocks: each waits for the sum of those before it. */
template <bool Fence> __global__ void look_back(const int *in, int *sums, int *state, int *out) {
  __shared__ int ticket, before;
  if (threadIdx.x == 0) {
    ticket = atomicAdd(state, 1);
    before = 0;
    if (ticket) {
      volatile int *flag = state + ticket;
      while (!*flag) __nanosleep(10);
      if (Fence) __threadfence();
      before = sums[ticket - 1];
    }
    sums[ticket] = before + in[ticket];
    if (Fence) __threadfence();
    atomicExch(state + ticket + 1, 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) out[ticket] = before;
}
TEST(look_back_needs_its_fences) {
  device_array<int> in(8), sums(8), out(8), state(16);
  in.set({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_SILENCE(clear(state.p, 16); launch(look_back<true>, 8, 32, 0, in.p, sums.p, state.p, out.p));
  EXPECT(out.get() == std::vector<int>({0, 1, 3, 6, 10, 15, 21, 28}));
  EXPECT_RACE(clear(state.p, 16); launch(look_back<false>, 8, 32, 0, in.p, sums.p, state.p, out.p));
  EXPECT_SAID("a __threadfence() is missing");
}

/* --- between the barriers of a grid --- */

/* How: 0 nothing, 1 grid.sync(), 2 a barrier of atomics as one writes it by hand */
template <int How> __global__ void two_phases(int *in, int *out, unsigned *arrived) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  in[i] = static_cast<int>(i);
  if (How == 1) cooperative_groups::this_grid().sync();
  if (How == 2) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(arrived, 1);
      while (atomicAdd(arrived, 0) < gridDim.x) __nanosleep(10);
      __threadfence();
    }
    __syncthreads();
  }
  out[i] = in[n - 1 - i];
}
template <int How> static void phases(int *in, int *out, unsigned *arrived) {
  EXPECT_OK(cudaMemset(arrived, 0, sizeof(unsigned)));
  void *args[] = {&in, &out, &arrived};
  EXPECT_OK(cudaLaunchCooperativeKernel(two_phases<How>, dim3(4), dim3(64), args, 0, nullptr));
}
TEST(a_grid_barrier_orders_all_threads) {
  device_array<int> in(256), out(256);
  device_array<unsigned> arrived(1);
  EXPECT_SILENCE(phases<1>(in.p, out.p, arrived.p));
  EXPECT_EQ(out.get()[0], 255);
  EXPECT_SILENCE(phases<2>(in.p, out.p, arrived.p));
  EXPECT_EQ(out.get()[0], 255);
  EXPECT_RACE(phases<0>(in.p, out.p, arrived.p));
}

/* --- gpukit's kernels --- */

template <class T> struct random_input : device_array<T> {
  explicit random_input(size_t n) : device_array<T>(n) {
    std::vector<T> v(n);
    unsigned x = 1;
    for (T &e : v) e = static_cast<T>(static_cast<int>((x = x * 1664525u + 1013904223u) >> 28));
    this->set(v);
  }
};

TEST(reduce_is_silent) {
  random_input<float> in(100000);
  random_input<signed char> small(50000);
  random_input<double> wide(3000);
  device_array<float> out(1);
  device_array<long long> sum(1);
  device_array<gk_arg<float>> arg(1);
  device_array<double> most(1);
  for (size_t n : {size_t{0}, size_t{1}, size_t{4097}, size_t{99999}})
    EXPECT_SILENCE(EXPECT_OK(gk_reduce(in.p + 1, out.p, n, gk_sum<float>())));
  EXPECT_SILENCE(EXPECT_OK(gk_reduce_sum(small.p, sum.p, small.n)));
  EXPECT_SILENCE(EXPECT_OK(gk_reduce_argmax(in.p, arg.p, in.n)));
  EXPECT_SILENCE(EXPECT_OK(gk_reduce_max(wide.p, most.p, wide.n)));
}

TEST(scan_is_silent) {
  random_input<float> in(100000);
  random_input<signed char> small(50000);
  device_array<float> out(100000);
  device_array<int> wide(50000);
  for (size_t n : {size_t{1}, size_t{9217}, size_t{100000}})
    EXPECT_SILENCE(EXPECT_OK(gk_scan_exclusive(in.p, out.p, n, gk_sum<float>())));
  EXPECT_SILENCE(EXPECT_OK(gk_scan_inclusive(in.p, in.p, in.n, gk_max<float>())));
  EXPECT_SILENCE(EXPECT_OK(gk_scan_exclusive_init(small.p, wide.p, wide.n, gk_sum<int>(), 7)));
}

TEST(matmul_is_silent) {
  random_input<float> a(150 * 70), b(70 * 133);
  device_array<float> c(150 * 133);
  random_input<double> da(40 * 40), db(40 * 40);
  device_array<double> dc(40 * 40);
  EXPECT_SILENCE(EXPECT_OK(gk_matmul(a.p, b.p, c.p, 150, 133, 70)));
  EXPECT_SILENCE(EXPECT_OK(gk_matmul(da.p, db.p, dc.p, 40, 40, 40)));
  for (gk_plan plan : {HOOK_PLAN_TILE_32, HOOK_PLAN_TILE_64, HOOK_PLAN_TILE_64_128}) {
    gk_matmul_opts options = {};
    options.plan = plan;
    EXPECT_SILENCE(EXPECT_OK(gk_matmul_ex(a.p, b.p, c.p, 70, 100, 70, &options)));
  }
  for (gk_precision precision : {GK_PRECISION_TF32, GK_PRECISION_EMULATED}) {
    gk_matmul_opts options = {};
    options.precision = precision, options.plan = GK_PLAN_MMA;
    EXPECT_SILENCE(EXPECT_OK(gk_matmul_ex(a.p, b.p, c.p, 70, 60, 150, &options)));
  }
}

__global__ void block_primitives(int *out) {
  __shared__ int data[GK_BLELLOCH_SIZE(200)];
  const int rank = static_cast<int>(gk_thread_rank());
  int total = 0, x = gk_block_reduce<128>(rank, gk_sum<int>());
  x += gk_block_scan_exclusive<128>(rank, gk_sum<int>(), &total);
  x += gk_block_reduce<128>(x, gk_max<int>());
  for (int i = rank; i < 200; i += 128) data[gk_bank(static_cast<unsigned>(i))] = i;
  total += gk_block_scan_blelloch(data, 200, gk_sum<int>());
  out[gk_global_rank()] = x + total + data[gk_bank(static_cast<unsigned>(rank))];
}
TEST(block_primitives_are_silent) {
  device_array<int> out(256);
  EXPECT_SILENCE(launch(block_primitives, 2, 128, 0, out.p));
}
