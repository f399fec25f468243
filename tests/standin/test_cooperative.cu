/* Cooperative launches and cooperative groups: the same expectations on a GPU and on the stand-in, whose own messages
 * are at the end. */
#include "test.h"

#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* of which CUDA's header gives some */
#include <cooperative_groups/memcpy_async.h>
#ifndef CUDA_ON_CPU
#include <cuda/barrier> /* cuda::aligned_size_t */
#endif
#pragma GCC diagnostic pop

#include <unistd.h>
#include <thread>
#include "child.h"
#include "device_array.h"
#include "fault.h"

namespace cg = cooperative_groups;

template <class... P, class... A>
static cudaError_t launch_as(bool cooperative, cudaStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block,
                             size_t smem, A... args) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = cooperative;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, args...);
}
template <class... P, class... A> static cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, A... args) {
  return launch_as(false, nullptr, kernel, grid, block, 0, args...);
}
template <class... P, class... A> static cudaError_t cooperate(void (*kernel)(P...), dim3 grid, dim3 block, A... args) {
  return launch_as(true, nullptr, kernel, grid, block, 0, args...);
}

static void need_cooperative() {
  int can = 0;
  EXPECT_OK(cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, 0));
#ifdef CUDA_ON_CPU
  EXPECT_EQ(can, 1);
#endif
  if (!can) SKIP("the device has no cooperative launches");
}

/* --- cooperative launches --- */

/* In each round every thread reads what the one before it, of another block at the ends, has written. */
__global__ void pass_on(int *a, int *b, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  const int n = static_cast<int>(grid.size()), me = static_cast<int>(grid.thread_rank());
  a[me] = me;
  grid.sync();
  for (int r = 0; r < rounds; r++) {
    b[me] = a[(me + n - 1) % n] + 1;
    grid.sync();
    int *swap = a;
    a = b;
    b = swap;
  }
}
static void expect_passed_on(const device_array<int> &x, int rounds) {
  const std::vector<int> got = x.get();
  const int n = static_cast<int>(got.size());
  for (int i = 0; i < n; i++) EXPECT_EQ(got[static_cast<size_t>(i)], ((i - rounds) % n + n) % n + rounds);
}

TEST(every_block_sees_what_the_others_wrote_before_the_barrier) {
  need_cooperative();
  for (unsigned blocks : {1u, 2u, 7u, 64u}) {
    for (unsigned threads : {1u, 33u, 128u}) {
      device_array<int> a(blocks * threads), b(blocks * threads);
      EXPECT_OK(cooperate(pass_on, blocks, threads, a.p, b.p, 8));
      EXPECT_OK(cudaDeviceSynchronize());
      expect_passed_on(a, 8);
    }
  }
}

TEST(cooperative_kernel_with_pointers_to_its_arguments) {
  need_cooperative();
  device_array<int> a(6 * 32), b(6 * 32);
  int *pa = a.p, *pb = b.p, rounds = 5;
  void *args[] = {&pa, &pb, &rounds};
  EXPECT_OK(cudaLaunchCooperativeKernel(pass_on, dim3(3, 2), dim3(4, 8), args, 0, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  expect_passed_on(b, 5);
}

TEST(cooperative_launch_in_a_graph) {
  need_cooperative();
  device_array<int> a(4 * 64), b(4 * 64);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(launch_as(true, stream, pass_on, 4, 64, 0, a.p, b.p, 2));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 2; i++) {
    EXPECT_OK(cudaMemset(a.p, 0, 4 * 64 * sizeof(int)));
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    expect_passed_on(a, 2);
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

__global__ void count_in(unsigned *count, unsigned *bad) {
  atomicAdd(count, 1u);
  cg::this_grid().sync();
  if (atomicAdd(count, 0u) != gridDim.x * blockDim.x) atomicAdd(bad, 1u);
}

TEST(as_many_blocks_as_fit_and_no_more) {
  need_cooperative();
  const int smem = 40 << 10;
  int multiprocessors = 0, each = 0;
  EXPECT_OK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, count_in, 32, smem));
  EXPECT(each >= 1);
  const unsigned most = static_cast<unsigned>(multiprocessors * each);
  device_array<unsigned> a(2);
  EXPECT_OK(launch_as(true, nullptr, count_in, most, 32, smem, a.p, a.p + 1));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(a.get()[0], most * 32);
  EXPECT_EQ(a.get()[1], 0u);
  EXPECT_EQ(launch_as(true, nullptr, count_in, most + 1, 32, smem, a.p, a.p + 1), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(a.get()[0], most * 32);
}

/* Each block waits for the one after it, and the last one for the first: none may have to wait for a place. */
__global__ void wait_in_a_ring(unsigned *flags, unsigned *order) {
  if (threadIdx.x) return;
  atomicAdd(flags + blockIdx.x, 1u);
  while (!atomicAdd(flags + (blockIdx.x + 1) % gridDim.x, 0u)) {}
  atomicAdd(order, 1u);
}

TEST(all_blocks_are_there_at_once) {
  need_cooperative();
  device_array<unsigned> flags(50), done(1);
  EXPECT_OK(cooperate(wait_in_a_ring, 50, 32, flags.p, done.p));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(done.get()[0], 50u);
}

__global__ void own_shared(int *out) {
  __shared__ int mine[64];
  const cg::grid_group grid = cg::this_grid();
  int sum = 0;
  for (int round = 0; round < 3; round++) {
    mine[threadIdx.x] = static_cast<int>(blockIdx.x * 1000 + threadIdx.x) + round;
    grid.sync();
    sum += mine[63 - threadIdx.x];
    grid.sync();
  }
  out[grid.thread_rank()] = sum;
}

TEST(each_block_has_its_own_shared_memory) {
  need_cooperative();
  device_array<int> out(20 * 64);
  EXPECT_OK(cooperate(own_shared, 20, 64, out.p));
  EXPECT_OK(cudaDeviceSynchronize());
  const std::vector<int> got = out.get();
  for (int i = 0; i < 20 * 64; i++) EXPECT_EQ(got[static_cast<size_t>(i)], 3 * (i / 64 * 1000 + 63 - i % 64) + 3);
}

/* Block barriers and shuffles between the barriers of the grid; block 1 does more of them than the others. */
__global__ void mixed_barriers(int *out) {
  const cg::grid_group grid = cg::this_grid();
  for (int round = 0; round < 4; round++) {
    int v = static_cast<int>(grid.thread_rank());
    const int times = blockIdx.x == 1 ? 5 : 1;
    for (int i = 0; i < times; i++) {
      __syncthreads();
      v = __shfl_xor_sync(0xffffffffu, v, 16);
    }
    atomicAdd(out + round, v);
    grid.sync();
    if (out[round] != static_cast<int>(grid.size() * (grid.size() - 1) / 2)) atomicAdd(out + 4, 1);
  }
}

TEST(barriers_of_block_and_grid_together) {
  need_cooperative();
  device_array<int> out(5);
  EXPECT_OK(cooperate(mixed_barriers, dim3(2, 3), 96, out.p));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(out.get()[4], 0);
}

__global__ void ask_valid(int *out) { out[blockIdx.x] = cg::this_grid().is_valid() ? 1 : 2; }

TEST(only_the_grid_of_a_cooperative_launch_is_valid) {
  need_cooperative();
  device_array<int> out(2);
  EXPECT_OK(cooperate(ask_valid, 2, 1, out.p));
  EXPECT_EQ(out.get()[1], 1);
#ifdef CUDA_ON_CPU /* CUDA 13 calls every grid valid */
  EXPECT_OK(launch(ask_valid, 2, 1, out.p));
  EXPECT_EQ(out.get()[1], 2);
#endif
}

/* --- ranks and dimensions --- */

__global__ void check_ranks(int *bad) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::grid_group grid = cg::this_grid();
  const unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  bool good = block.thread_rank() == t && block.size() == threads && block.num_threads() == threads;
  good = good && block.thread_index().y == threadIdx.y && block.group_index().z == blockIdx.z;
  good = good && block.group_dim().x == blockDim.x && block.dim_threads().y == blockDim.y;
  good = good && grid.thread_rank() == b * threads + t && grid.block_rank() == b;
  good = good && grid.num_blocks() == gridDim.x * gridDim.y * gridDim.z && grid.size() == grid.num_blocks() * threads;
  good = good && grid.group_dim().y == gridDim.y && grid.dim_blocks().z == gridDim.z;
  good = good && grid.block_index().x == blockIdx.x && grid.num_threads() == grid.size();
  good = good && cg::thread_rank(block) == t && cg::group_size(grid) == grid.size();
  const cg::thread_group any = block, tile = cg::tiled_partition<4>(block);
  good = good && any.size() == threads && any.thread_rank() == t && tile.size() == 4 && tile.thread_rank() == t % 4;
  good = good && cg::this_thread().size() == 1 && cg::this_thread().thread_rank() == 0;
  any.sync();
  cg::sync(block);
  tile.sync();
  block.barrier_wait(block.barrier_arrive());
  if (!good) atomicAdd(bad, 1);
}

TEST(groups_know_ranks_and_dimensions) {
  device_array<int> bad(1);
  EXPECT_OK(launch(check_ranks, dim3(2, 3, 4), dim3(4, 8, 2), bad.p));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(bad.get()[0], 0);
}

/* --- tiles --- */

struct pair_of_words {
  double x;
  int y[6];
};

/* Each collective against what the ranks say it has to give. */
template <unsigned Size> __global__ void check_tile(int *bad) {
  const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
  static_assert(tile.size() == Size, "known at compile time");
  const int n = static_cast<int>(Size), rank = static_cast<int>(threadIdx.x % Size), base = rank * 3 + 100;
  bool good = tile.thread_rank() == threadIdx.x % Size && tile.num_threads() == Size;
  good =
      good && tile.meta_group_rank() == threadIdx.x / Size && tile.meta_group_size() == (blockDim.x + Size - 1) / Size;
  good = good && tile.shfl(base, n / 2) == n / 2 * 3 + 100;
  good = good && tile.shfl_up(base, 2) == (rank < 2 ? rank : rank - 2) * 3 + 100;
  good = good && tile.shfl_down(base, 3) == (rank + 3 >= n ? rank : rank + 3) * 3 + 100;
  good = good && tile.shfl_xor(base, Size / 2) == (rank ^ (n / 2)) * 3 + 100;
  const unsigned all = 0xffffffffu >> (32 - Size);
  good = good && tile.ballot(rank % 3 == 0) == (0x49249249u & all);
  good = good && tile.any(rank == n - 1) && !tile.any(rank == n) && tile.all(rank < n);
  good = good && !!tile.all(rank != 0) == (n == 0);
  good = good && tile.match_any(rank % 2) == (all & (rank % 2 ? 0xaaaaaaaau : 0x55555555u));
  int same = -1;
  good = good && tile.match_all(7, same) == all && same;
  good = good && tile.match_all(rank, same) == (n == 1 ? 1u : 0u) && !!same == (n == 1);
  pair_of_words w = {rank + 0.5, {rank, 2, 3, 4, 5, rank + 1}}, of_last = tile.shfl(w, n - 1);
  good = good && of_last.x == n - 0.5 && of_last.y[0] == n - 1 && of_last.y[5] == n;
  good = good && tile.shfl(static_cast<char>(rank), n - 1) == n - 1;
  const cg::thread_block_tile<Size> plain = tile;
  good = good && plain.meta_group_rank() == tile.meta_group_rank() && plain.shfl(rank, 0) == 0;
  good = good && cg::reduce(tile, rank, cg::plus<int>()) == n * (n - 1) / 2;
  good = good && cg::reduce(tile, base, cg::less<int>()) == 100 && cg::reduce(tile, rank, cg::greater<int>()) == n - 1;
  good = good && cg::reduce(tile, 1u << rank, cg::bit_or<unsigned>()) == all;
  good = good && cg::reduce(tile, ~(1u << rank), cg::bit_and<unsigned>()) == ~all;
  good = good && cg::reduce(tile, 3u << rank, cg::bit_xor<unsigned>()) == ((all << 1) ^ all);
  good = good && cg::reduce(tile, rank + 1.0, [](double a, double b) { return a > b ? a : b; }) == n;
  good = good && cg::inclusive_scan(tile, 2) == 2 * rank + 2 && cg::exclusive_scan(tile, 2) == 2 * rank;
  good = good && cg::inclusive_scan(tile, base, cg::greater<int>()) == base;
  good = good && cg::exclusive_scan(tile, base, cg::greater<int>()) == (rank ? base - 3 : 0);
  const auto half = cg::tiled_partition < (Size + 1) / 2 < Size ? (Size + 1) / 2 : 1 > (tile);
  if (Size > 1) good = good && half.meta_group_size() == 2 && half.meta_group_rank() == tile.thread_rank() / (Size / 2);
  int calls = 0;
  cg::invoke_one(tile, [&] { calls++; });
  good = good && cg::reduce(tile, calls, cg::plus<int>()) == 1;
  good = good && cg::invoke_one_broadcast(tile, [] { return 5; }) == 5;
  tile.sync();
  if (!good) atomicAdd(bad, 1);
}
template <unsigned Size> static void expect_tile() {
  device_array<int> bad(1);
  EXPECT_OK(launch(check_tile<Size>, 2, 96, bad.p));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(bad.get()[0], 0);
}

TEST(tiles_of_2_threads) { expect_tile<2>(); }
TEST(tiles_of_4_threads) { expect_tile<4>(); }
TEST(tiles_of_8_threads) { expect_tile<8>(); }
TEST(tiles_of_16_threads) { expect_tile<16>(); }
TEST(tiles_of_32_threads) { expect_tile<32>(); }

/* The order of the additions shows in the bits: by halves in a tile. */
__host__ __device__ inline float one_over(unsigned i) {
  return 1.0f / static_cast<float>(1 + i * 5 % 32 + i % 3 * 100);
}
__global__ void sum_floats(float *out) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const float v = one_over(tile.thread_rank());
  const float total = cg::reduce(tile, v, cg::plus<float>()), upto = cg::inclusive_scan(tile, v);
  out[tile.thread_rank()] = total;
  out[32 + tile.thread_rank()] = upto;
}

TEST(sums_of_floats_have_one_order) {
  device_array<float> out(64);
  EXPECT_OK(launch(sum_floats, 1, 32, out.p));
  const std::vector<float> got = out.get();
  std::vector<float> v(32), scan(32), other(32);
  for (size_t i = 0; i < 32; i++) v[i] = scan[i] = other[i] = one_over(static_cast<unsigned>(i));
  for (size_t part = 16; part; part /= 2)
    for (size_t i = 0; i < part; i++) v[i] += v[i + part];
  for (size_t step = 1; step < 32; step *= 2)
    for (size_t i = 31; i >= step; i--) scan[i] += scan[i - step];
  for (size_t step = 1; step < 32; step *= 2)
    for (size_t i = 0; i < 32; i += 2 * step) other[i] += other[i + step];
  EXPECT(other[0] != v[0]);
  for (size_t i = 0; i < 32; i++) {
    EXPECT_EQ(got[i], v[0]);
    EXPECT_EQ(got[32 + i], scan[i]);
  }
}

/* --- groups of any lanes --- */

/* Lanes by label (their index modulo 3), with ranks of their own. */
__global__ void check_labels(int *bad) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int lane = static_cast<int>(warp.thread_rank()), label = lane % 3, rank = lane / 3;
  const cg::coalesced_group g = cg::labeled_partition(warp, label);
  const int n = label < 2 ? 11 : 10, first = label;
  bool good = g.size() == static_cast<unsigned>(n) && g.thread_rank() == static_cast<unsigned>(rank);
  good = good && g.meta_group_size() == 3 && g.meta_group_rank() == static_cast<unsigned>(label);
  good = good && g.shfl(lane, 4) == first + 12 && g.shfl(lane, n - 1) == first + 3 * (n - 1);
  good = good && g.shfl_up(lane, 2) == (rank < 2 ? lane : lane - 6);
  good = good && g.shfl_down(lane, 1) == (rank + 1 < n ? lane + 3 : lane);
  good = good && g.ballot(rank < 2 || rank == 9) == 0x203u && g.any(lane == first) && g.all(lane % 3 == label);
  good = good && g.match_any(rank == 5) == (rank == 5 ? 0x20u : ((1u << n) - 1) & ~0x20u);
  int same = 0;
  good = good && g.match_all(label, same) == (1u << n) - 1 && same;
  good = good && cg::reduce(g, rank, cg::plus<int>()) == n * (n - 1) / 2;
  good = good && cg::inclusive_scan(g, 1) == rank + 1 && cg::exclusive_scan(g, 1) == rank;
  const cg::coalesced_group four = cg::tiled_partition(g, 4);
  good = good && four.size() == static_cast<unsigned>(rank < 8 ? 4 : n - 8);
  good = good && four.thread_rank() == static_cast<unsigned>(rank % 4) && four.meta_group_size() == 3;
  good = good && four.shfl(lane, 0) == first + rank / 4 * 12;
  const cg::coalesced_group odd = cg::binary_partition(g, rank % 2 == 1);
  good = good && odd.size() == static_cast<unsigned>(rank % 2 ? n / 2 : (n + 1) / 2);
  good = good && odd.meta_group_size() == 2 && odd.meta_group_rank() == static_cast<unsigned>(rank % 2);
  const cg::coalesced_group everybody = cg::binary_partition(warp, true);
  good = good && everybody.size() == 32 && everybody.meta_group_size() == 1;
  good = good && cg::reduce(everybody, 1, cg::plus<int>()) == 32;
  g.sync();
  if (!good) atomicAdd(bad, 1);
}

TEST(partitions_by_label_and_predicate) {
  device_array<int> bad(1);
  EXPECT_OK(launch(check_labels, 3, 64, bad.p));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(bad.get()[0], 0);
}

/* The parts are of a size that is known at run time, and the last warp of 40 threads has 8. */
__global__ void check_parts(unsigned *sizes, int *bad) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_group part = cg::tiled_partition(block, 16), smaller = cg::tiled_partition(part, 4);
  if (part.thread_rank() != threadIdx.x % 16 || smaller.thread_rank() != threadIdx.x % 4) atomicAdd(bad, 1);
  sizes[threadIdx.x] = static_cast<unsigned>(part.size() * 100 + smaller.size());
  part.sync();
  smaller.sync();
}

TEST(parts_of_a_size_known_at_run_time) {
  device_array<unsigned> sizes(40);
  device_array<int> bad(1);
  EXPECT_OK(launch(check_parts, 1, 40, sizes.p, bad.p));
  EXPECT_EQ(bad.get()[0], 0);
  EXPECT_EQ(sizes.get()[0], 1604u);
  EXPECT_EQ(sizes.get()[39], 804u);
}

/* One atomic for all active threads, right whatever the size of the group. */
__global__ void count_together(int *count, int *places) {
  if (threadIdx.x % 3 == 1) return;
  const cg::coalesced_group active = cg::coalesced_threads();
  int before = 0;
  if (active.thread_rank() == 0) before = atomicAdd(count, static_cast<int>(active.size()));
  before = active.shfl(before, 0);
  atomicAdd(places + before + static_cast<int>(active.thread_rank()), 1);
}

TEST(active_threads_can_share_an_atomic) {
  device_array<int> count(1), places(4 * 40);
  EXPECT_OK(launch(count_together, 4, 60, count.p, places.p));
  EXPECT_EQ(count.get()[0], 160);
  for (int x : places.get()) EXPECT_EQ(x, 1);
}

/* --- copies --- */

__global__ void copy_in(const int *in, int *out, int n) {
  __shared__ __align__(16) int tile[2][128];
  const cg::thread_block block = cg::this_thread_block();
  tile[1][threadIdx.x] = -7;
  block.sync();
  cg::memcpy_async(block, tile[0], in, sizeof(int) * static_cast<size_t>(n));
  cg::memcpy_async(block, tile[1], 128, in, static_cast<size_t>(n - 3));
  cg::wait_prior<1>(block);
  const int first = tile[0][n - 1 - static_cast<int>(threadIdx.x)];
  cg::wait(block);
  out[threadIdx.x] = first + 1000 * tile[1][threadIdx.x];
  block.sync();
  cg::memcpy_async(block, tile[0], in, cuda::aligned_size_t<16>(64));
  cg::wait(block);
  if (threadIdx.x < 16 && tile[0][threadIdx.x] != in[threadIdx.x]) out[threadIdx.x] = -1;
}

TEST(a_block_copies_together) {
  const int n = 101;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[static_cast<size_t>(i)] = i;
  device_array<int> in(n), out(n);
  EXPECT_OK(cudaMemcpy(in.p, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  EXPECT_OK(launch(copy_in, 1, n, in.p, out.p, n));
  const std::vector<int> got = out.get();
  for (int i = 0; i < n; i++) EXPECT_EQ(got[static_cast<size_t>(i)], n - 1 - i + 1000 * (i < n - 3 ? i : -7));
}

/* --- clusters --- */

__global__ void nothing() {}

static cudaError_t launch_clusters(unsigned x, unsigned y, unsigned z) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = x;
  attribute.val.clusterDim.y = y;
  attribute.val.clusterDim.z = z;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(4, 4);
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, nothing);
}

TEST(a_cluster_of_one_block_is_a_plain_launch) {
  int major = 0;
  EXPECT_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  if (major < 9) SKIP("clusters need sm_90");
  EXPECT_OK(launch_clusters(1, 1, 1));
  EXPECT_OK(cudaDeviceSynchronize());
}

/* --- the stand-in's own --- */

#ifdef CUDA_ON_CPU

TEST(clusters_are_named_as_not_supported) {
  said = stderr_of([] { EXPECT_EQ(launch_clusters(2, 1, 1), cudaErrorNotSupported); });
  EXPECT_SAID("cudaLaunchAttributeClusterDimension");
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
  said = stderr_of([] {
    const void *untyped = reinterpret_cast<const void *>(nothing);
    EXPECT_EQ(cudaLaunchCooperativeKernel(untyped, 1, 1, nullptr, 0, nullptr), cudaErrorNotSupported);
  });
  EXPECT_SAID("not supported: cudaLaunchCooperativeKernel ");
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST(barriers_of_the_grid_in_every_schedule) {
  for (const char *schedule : {"forward", "reversed", "random:1", "random:2", "random:3"}) {
    with_settings settings(schedule);
    device_array<int> a(9 * 64), b(9 * 64), out(5);
    EXPECT_OK(cooperate(pass_on, 9, 64, a.p, b.p, 6));
    expect_passed_on(a, 6);
    EXPECT_OK(cooperate(mixed_barriers, dim3(2, 3), 96, out.p));
    EXPECT_EQ(out.get()[4], 0);
  }
}

enum lacking { lacks_threads, lacks_blocks, lacks_warp_in_block, lacks_nothing, traps };

__global__ void incomplete_grid(int what) {
  const cg::grid_group grid = cg::this_grid();
  NOTE(0), grid.sync();
  const bool here = blockIdx.x == 2 && blockIdx.y == 1;
  if (what == lacks_threads && here && threadIdx.x >= 40) return;
  if (what == lacks_blocks && blockIdx.x == 2) return;
  if (what == lacks_warp_in_block && here && threadIdx.x < 32) {
    NOTE(2), __syncthreads();
    return;
  }
  if (what == traps && here && threadIdx.x == 5) __trap();
  NOTE(1), grid.sync();
}

TEST(threads_missing_at_a_barrier_of_the_grid_are_named) {
  EXPECT_FAULT(cooperate(incomplete_grid, dim3(3, 2), 64, static_cast<int>(lacks_threads)));
  EXPECT_SAID("incomplete_grid(int)");
  EXPECT_SAID("block (2,1,0): divergent threads");
  EXPECT_SAID("thread (0,0,0) and 39 more wait at grid_group::sync, ");
  EXPECT_SAID("thread (40,0,0) and 23 more have returned");
  EXPECT_SAID_LINE(1);
}

TEST(threads_missing_at_a_barrier_of_the_grid_never_count_as_arrived) {
  with_settings settings("forward");
  cuda_cpu::configure()->exited_arrives = true;
  EXPECT_FAULT(cooperate(incomplete_grid, dim3(3, 2), 64, static_cast<int>(lacks_threads)));
  EXPECT_SAID("thread (0,0,0) and 39 more wait at grid_group::sync, ");
}

TEST(blocks_missing_at_a_barrier_of_the_grid_are_named) {
  EXPECT_FAULT(cooperate(incomplete_grid, dim3(3, 2), 64, static_cast<int>(lacks_blocks)));
  EXPECT_SAID("block (0,0,0): divergent threads");
  EXPECT_SAID("thread (0,0,0) and 63 more, and those of 3 more blocks, wait at grid_group::sync, ");
  EXPECT_SAID("block (2,0,0) and 1 more have returned");
  EXPECT_SAID_LINE(1);
}

TEST(two_kinds_of_barrier_are_named) {
  EXPECT_FAULT(cooperate(incomplete_grid, dim3(3, 2), 64, static_cast<int>(lacks_warp_in_block)));
  EXPECT_SAID("block (2,1,0): divergent barrier: thread (32,0,0) is at grid_group::sync, ");
  EXPECT_SAID("while 32 other threads wait at __syncthreads, ");
  EXPECT_SAID_LINE(1);
  EXPECT_SAID_LINE(2);
}

TEST(a_trap_ends_the_blocks_that_wait_at_the_barrier_of_the_grid) {
  EXPECT_FAULT(cooperate(incomplete_grid, dim3(3, 2), 64, static_cast<int>(traps)));
  EXPECT_SAID("block (2,1,0): thread (5,0,0): __trap");
}

TEST(a_barrier_of_the_grid_needs_a_cooperative_launch) {
  EXPECT_FAULT(launch(incomplete_grid, dim3(3, 2), 64, static_cast<int>(lacks_nothing)));
  EXPECT_SAID("grid_group::sync, ");
  EXPECT_SAID("in a launch that is not cooperative");
  EXPECT_SAID_LINE(0);
}

__global__ void incomplete_tile(int what) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  if (what == 0 && threadIdx.x == 20) return;
  if (what == 1) cg::tiled_partition(cg::this_thread_block(), 12);
  if (what == 2) {
    const cg::coalesced_group g = cg::binary_partition(tile, threadIdx.x % 2);
    NOTE(0), g.shfl(1, 8);
  }
  if (what == 3) cg::tiled_partition(cg::thread_group(cg::this_grid()), 4);
  if (what == 0) NOTE(0), tile.shfl_xor(1, 1);
}

TEST(what_groups_cannot_do_is_named) {
  EXPECT_FAULT(launch(incomplete_tile, 1, 64, 0));
  EXPECT_SAID("__shfl_xor_sync, ");
  EXPECT_SAID("has lanes 0x00100000 in its mask 0xffff0000 that have returned");
  EXPECT_SAID_LINE(0);
  EXPECT_FAULT(launch(incomplete_tile, 1, 64, 1));
  EXPECT_SAID("thread (0,0,0): tiled_partition, ");
  EXPECT_SAID("the size of a part is 12, not a power of two up to 32");
  EXPECT_FAULT(launch(incomplete_tile, 1, 64, 2));
  EXPECT_SAID("coalesced_group::shfl, ");
  EXPECT_SAID("rank 8 is not in the group of 8 threads");
  EXPECT_SAID_LINE(0);
  EXPECT_FAULT(launch(incomplete_tile, 1, 64, 3));
  EXPECT_SAID("a grid is not divided into parts of 4");
}

/* Block 0 waits for what nothing writes, and the others at the barrier. */
__global__ void wait_before_the_barrier(volatile int *flag) {
  if (blockIdx.x == 0) NOTE(0);
  while (blockIdx.x == 0 && !*flag)
    ;
  cg::this_grid().sync();
}

TEST(a_cooperative_launch_that_waits_in_vain) {
  const char *const name = "a_cooperative_launch_that_waits_in_vain";
  if (!in_child(name)) {
    EXPECT_PASSED(run_child(name, "GPUKIT_CPU_WATCHDOG=1"));
    return;
  }
  int *flag = nullptr;
  EXPECT_OK(cudaMallocManaged(&flag, sizeof *flag));
  *flag = 0;
  std::thread rescuer([=] {
    sleep(3);
    *const_cast<volatile int *>(flag) = 1;
  });
  said = stderr_of([=] { cooperate(wait_before_the_barrier, 3, 32, flag); });
  rescuer.join();
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_SAID(
      "for 1 s no thread has returned or got past a barrier in kernel wait_before_the_barrier(int volatile*)\n");
  EXPECT_SAID("    block (0,0,0) thread (");
  EXPECT_SAID("    block (2,0,0) thread (");
  lines[0]++;
  if (!emulated()) EXPECT_SAID_LINE(0);
  EXPECT_EQ(said.find("for 1 s"), said.rfind("for 1 s"));
  EXPECT_OK(cudaFree(flag));
}

/* Stacks beyond those with guard pages, and then the next launch with those that are left. */
TEST(many_threads_at_a_barrier_of_the_grid) {
  for (int i = 0; i < 2; i++) {
    device_array<unsigned> a(2);
    EXPECT_OK(cooperate(count_in, 66, 512, a.p, a.p + 1));
    EXPECT_EQ(a.get()[0], 66u * 512);
    EXPECT_EQ(a.get()[1], 0u);
  }
}

#endif
