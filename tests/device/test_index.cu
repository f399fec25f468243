/* Section 5 of the header: ranks and coordinates, grid-stride loops, launch shapes, dynamic shared memory. */
#include "hooks.h"
#include "test.h"

#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#include "device_array.h"

#include <limits.h>
#include <vector>

static std::string show(dim3 d) { return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z); }
static bool operator==(dim3 a, dim3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }
#define EXPECT_DIM(a, b) test_eq(show(a), show(b), #a, #b, __FILE__, __LINE__)

/* How often each of n things was counted, if not once. The last counter is for what is out of range. */
static void expect_once(const device_array<unsigned> &count, const std::string &what) {
  const std::vector<unsigned> c = count.get();
  for (size_t i = 0; i < c.size(); i++)
    if (c[i] != (i + 1 < c.size()))
      test_fail(__FILE__, __LINE__, what + ": element " + std::to_string(i) + " visited " + std::to_string(c[i]) + "x");
}

/* --- ranks and coordinates --- */

struct seen {
  size_t x, y, z, block_rank, grid_size, global_size;
  unsigned thread_rank, block_size, lane, warp, visits;
};

__global__ void look(seen *out, size_t room) {
  const size_t rank = gk_global_rank();
  if (rank >= room) return;
  seen &s = out[rank];
  s.x = gk_x(), s.y = gk_y(), s.z = gk_z();
  s.block_rank = gk_block_rank(), s.grid_size = gk_grid_size(), s.global_size = gk_global_size();
  s.thread_rank = gk_thread_rank(), s.block_size = gk_block_size(), s.lane = gk_lane(), s.warp = gk_warp();
  atomicAdd(&s.visits, 1u);
}

/* Walks over the threads as CUDA numbers them, x fastest, and counts along. */
static size_t count_wrong(dim3 grid, dim3 block, const std::vector<seen> &out) {
  size_t rank = 0, block_rank = 0, wrong = 0;
  for (unsigned bz = 0; bz < grid.z; bz++)
    for (unsigned by = 0; by < grid.y; by++)
      for (unsigned bx = 0; bx < grid.x; bx++, block_rank++) {
        unsigned thread = 0;
        for (unsigned tz = 0; tz < block.z; tz++)
          for (unsigned ty = 0; ty < block.y; ty++)
            for (unsigned tx = 0; tx < block.x; tx++, thread++, rank++) {
              const seen &s = out[rank];
              const bool right = s.x == bx * block.x + tx && s.y == by * block.y + ty && s.z == bz * block.z + tz &&
                                 s.block_rank == block_rank && s.thread_rank == thread && s.lane == (thread & 31) &&
                                 s.warp == thread >> 5 && s.block_size == block.x * block.y * block.z &&
                                 s.grid_size == grid.x * grid.y * grid.z && s.global_size == out.size() &&
                                 s.visits == 1;
              wrong += !right;
            }
      }
  return wrong;
}

TEST(ranks_of_every_combination_of_dimensions) {
  const dim3 grids[] = {dim3(1),       dim3(5),       dim3(1, 3),    dim3(1, 1, 2),
                        dim3(3, 2, 1), dim3(2, 1, 3), dim3(1, 2, 2), dim3(2, 3, 4)};
  const dim3 blocks[] = {dim3(1),        dim3(32),   dim3(33),      dim3(1, 7),    dim3(1, 1, 5),
                         dim3(8, 4),     dim3(5, 3), dim3(4, 1, 3), dim3(1, 3, 4), dim3(3, 5, 7),
                         dim3(16, 8, 8), dim3(1024), dim3(1, 1024), dim3(1, 1, 64)};
  for (dim3 grid : grids)
    for (dim3 block : blocks) {
      const size_t threads = size_t{1} * grid.x * grid.y * grid.z * block.x * block.y * block.z;
      device_array<seen> out(threads);
      EXPECT_OK(gk_launch(look, grid, block, 0, 0, out.p, threads));
      const size_t wrong = count_wrong(grid, block, out.get());
      if (wrong)
        test_fail(__FILE__, __LINE__,
                  "grid " + show(grid) + ", block " + show(block) + ": " + std::to_string(wrong) + " threads err");
    }
}

__global__ void mark(unsigned *count, size_t w, size_t h, size_t d) {
  if (gk_x() >= w || gk_y() >= h || gk_z() >= d) return;
  atomicAdd(&count[(gk_z() * h + gk_y()) * w + gk_x()], 1u);
}

TEST(covering_grids_reach_each_element_once) {
  const dim3 blocks[] = {dim3(1), dim3(32), dim3(8, 4), dim3(4, 1, 8), dim3(5, 3, 2), dim3(1, 16, 16)};
  const size_t sizes[] = {1, 2, 31, 33};
  for (dim3 block : blocks)
    for (size_t w : sizes)
      for (size_t h : {1u, 7u, 33u})
        for (size_t d : {1u, 3u, 9u}) {
          device_array<unsigned> count(w * h * d + 1);
          GK_LAUNCH(mark, gk_grid_3d(w, h, d, block), block, 0, 0, count.p, w, h, d);
          expect_once(count,
                      std::to_string(w) + "x" + std::to_string(h) + "x" + std::to_string(d) + " by " + show(block));
        }
}

/* The last threads of a grid of more than 2^32, whose coordinates no 32-bit arithmetic can tell. */
__global__ void last_rank(size_t *out) {
  if (gk_x() + 1 == gk_global_size()) out[0] = gk_x(), out[1] = gk_global_rank(), out[2] = gk_global_size();
}
TEST(coordinates_beyond_32_bits) {
  const size_t blocks = (size_t{1} << 22) + 3, threads = blocks * 1024;
#ifdef CUDA_ON_CPU
  /* So many threads would take a CPU long; there the built-in variables can be set by hand. */
  const dim3 grid = gridDim, dim = blockDim;
  const uint3 block = blockIdx, thread = threadIdx;
  gridDim = dim3(static_cast<unsigned>(blocks)), blockDim = dim3(1024);
  blockIdx = uint3{static_cast<unsigned>(blocks) - 1, 0, 0}, threadIdx = uint3{1023, 0, 0};
  size_t out[3] = {0, 0, 0}, y, z;
  last_rank(out);
  gridDim = dim3(1, 65535, 65535), blockDim = dim3(1, 1024, 64);
  blockIdx = uint3{0, 65534, 65534}, threadIdx = uint3{0, 1023, 63};
  y = gk_y(), z = gk_z();
  const size_t rank = gk_global_rank();
  gridDim = grid, blockDim = dim, blockIdx = block, threadIdx = thread;
  EXPECT_EQ(y, size_t{65535} * 1024 - 1);
  EXPECT_EQ(z, size_t{65535} * 64 - 1);
  EXPECT_EQ(rank, size_t{65535} * 65535 * 65536 - 1);
#else
  if (test_slowed()) SKIP("the tool would take too long");
  device_array<size_t> array(3);
  EXPECT_OK(gk_launch(last_rank, dim3(static_cast<unsigned>(blocks)), 1024, 0, 0, array.p));
  const std::vector<size_t> out = array.get();
#endif
  EXPECT_EQ(out[0], threads - 1);
  EXPECT_EQ(out[1], threads - 1);
  EXPECT_EQ(out[2], threads);
}

/* --- grid-stride loops --- */

template <class A, class B> struct same { static const bool value = false; };
template <class A> struct same<A, A> { static const bool value = true; };

template <class N> __global__ void stride_1d(N n, unsigned *count, unsigned room) {
  GK_FOR_1D (i, n) {
    static_assert(same<decltype(i), N>::value, "the index has the type of n");
    atomicAdd(&count[static_cast<size_t>(i) < room ? static_cast<size_t>(i) : room], 1u);
  }
}
template <class N> static void check_1d(const char *type, std::vector<N> sizes) {
  const struct { dim3 grid, block; } shapes[] = {{1, 1}, {3, 32}, {7, 33}, {dim3(3, 2, 2), dim3(5, 3)}, {64, 512}};
  for (N n : sizes)
    for (auto &shape : shapes) {
      const unsigned room = n < N(1) ? 0 : static_cast<unsigned>(n);
      device_array<unsigned> count(room + 1);
      GK_LAUNCH(stride_1d<N>, shape.grid, shape.block, 0, 0, n, count.p, room);
      expect_once(count, std::string(type) + " n = " + std::to_string(n) + ", grid " + show(shape.grid) + ", block " +
                             show(shape.block));
    }
}

TEST(loop_1d_visits_each_element_once_in_each_type) {
  check_1d<int>("int", {INT_MIN, -5, -1, 0, 1, 31, 32, 33, 100, 20000});
  check_1d<unsigned>("unsigned", {0, 1, 33, 1000});
  check_1d<long long>("long long", {LLONG_MIN, -1, 0, 1, 33, 1000});
  check_1d<size_t>("size_t", {0, 1, 33, 1000});
  check_1d<signed char>("signed char", {-128, -1, 0, 1, 127});
  check_1d<unsigned char>("unsigned char", {0, 1, 33, 255});
  check_1d<short>("short", {-32768, -1, 0, 33, 32767});
  check_1d<unsigned short>("unsigned short", {0, 33, 65535});
}

/* At the ends of the types: the indices that a thread far up would see. */
template <class N> __global__ void probe(N n, size_t start, size_t step, N *out, unsigned *count) {
  unsigned found = 0;
  for (N i : hook_stride<N>(n, start, step)) {
    if (found == 4) break;
    out[found++] = i;
  }
  *count = found;
}
template <class N>
static void check_probe(const char *what, N n, size_t start, size_t step, const std::vector<N> &expected) {
  device_array<N> out(4);
  device_array<unsigned> count(1);
  GK_LAUNCH(probe<N>, 1, 1, 0, 0, n, start, step, out.p, count.p);
  std::vector<N> got = out.get();
  got.resize(count.get()[0]);
  if (got == expected) return;
  std::string text = std::string(what) + " n = " + std::to_string(n) + ", start " + std::to_string(start) + ", step " +
                     std::to_string(step) + ":";
  for (N i : got) text += " " + std::to_string(i);
  test_fail(__FILE__, __LINE__, text);
}

TEST(strides_do_not_overflow_at_the_maximum_of_a_type) {
  const size_t big = size_t{1} << 32, all = SIZE_MAX;
  const int m = INT_MAX;
  check_probe<int>("int", m, m - 3, 1, {m - 3, m - 2, m - 1});
  check_probe<int>("int", m, m - 3, 2, {m - 3, m - 1});
  check_probe<int>("int", m, 0, 1u << 30, {0, 1 << 30});
  check_probe<int>("int", m, m - 1, all, {m - 1});
  check_probe<int>("int", m, m, 1, {});
  check_probe<int>("int", 5, big, 1, {});  /* a start that 32 bits would cut to 0 */
  check_probe<int>("int", 5, 1, big, {1}); /* and a step */
  check_probe<int>("int", 5, 1, big + 1, {1});
  const unsigned u = UINT_MAX;
  check_probe<unsigned>("unsigned", u, u - 2, 1, {u - 2, u - 1});
  check_probe<unsigned>("unsigned", u, 0x80000000u, 0x80000000u, {0x80000000u});
  check_probe<unsigned>("unsigned", u, 0, 0x7fffffffu, {0, 0x7fffffffu, 0xfffffffeu});
  check_probe<unsigned>("unsigned", u, 1, big, {1});
  check_probe<long long>("long long", LLONG_MAX, LLONG_MAX - 2, 1, {LLONG_MAX - 2, LLONG_MAX - 1});
  check_probe<long long>("long long", LLONG_MAX, LLONG_MAX - 2, all, {LLONG_MAX - 2});
  check_probe<size_t>("size_t", all, all - 3, 2, {all - 3, all - 1});
  check_probe<size_t>("size_t", all, all - 1, all, {all - 1});
  check_probe<size_t>("size_t", big + 5, big, 3, {big, big + 3});
  check_probe<signed char>("signed char", 127, 120, 4, {120, 124});
  check_probe<unsigned char>("unsigned char", 255, 250, 3, {250, 253});
  check_probe<short>("short", 32767, 32765, 1, {32765, 32766});
}

template <class W, class H> __global__ void stride_2d(W w, H h, unsigned *count) {
  const unsigned width = w > W(0) ? static_cast<unsigned>(w) : 0, height = h > H(0) ? static_cast<unsigned>(h) : 0;
  GK_FOR_2D (x, y, w, h) {
    static_assert(same<decltype(x), W>::value && same<decltype(y), H>::value, "the types of w and h");
    const unsigned ux = static_cast<unsigned>(x), uy = static_cast<unsigned>(y);
    atomicAdd(&count[ux < width && uy < height ? uy * width + ux : width * height], 1u);
  }
}
template <class W, class H> static void check_2d(W w, H h, dim3 grid, dim3 block) {
  device_array<unsigned> count((w > W(0) ? size_t(w) : 0) * (h > H(0) ? size_t(h) : 0) + 1);
  EXPECT_OK(gk_launch(stride_2d<W, H>, grid, block, 0, 0, w, h, count.p));
  expect_once(count, std::to_string(w) + "x" + std::to_string(h) + ", grid " + show(grid) + ", block " + show(block));
}

TEST(loop_2d_visits_each_element_once) {
  const struct {
    dim3 grid, block;
  } shapes[] = {{1, 1}, {1, 64}, {dim3(1, 5), dim3(1, 8)}, {dim3(2, 3), dim3(8, 4)}, {dim3(9, 9), dim3(16, 16)}};
  for (auto &s : shapes) {
    for (int w : {-1, 0, 1, 7, 33, 150})
      for (int h : {-1, 0, 1, 5, 40}) check_2d(w, h, s.grid, s.block);
    check_2d<size_t, int>(33, 7, s.grid, s.block);
    check_2d<int, size_t>(33, 7, s.grid, s.block);
    check_2d<unsigned char, unsigned>(255, 3, s.grid, s.block);
    check_2d<unsigned, short>(3, 300, s.grid, s.block);
  }
  check_2d(1, 70000, gk_grid_2d(1, 70000, dim3(1)), dim3(1)); /* more rows than a grid can have */
}

struct counted_size {
  unsigned n, *evaluated;
  __device__ unsigned get() const {
    atomicAdd(evaluated, 1u);
    return n;
  }
};
__global__ void evaluate(counted_size a, counted_size w, counted_size h) {
  GK_FOR_1D (i, a.get()) (void)i;
  GK_FOR_2D (x, y, w.get(), h.get()) (void)(x + y);
}
TEST(loops_evaluate_their_sizes_once) {
  device_array<unsigned> count(3);
  EXPECT_OK(gk_launch(evaluate, 2, 8, 0, 0, counted_size{100, count.p}, counted_size{50, count.p + 1},
                      counted_size{5, count.p + 2}));
  const std::vector<unsigned> c = count.get();
  EXPECT_EQ(c[0], 16u);
  EXPECT_EQ(c[1], 16u * 5); /* for each row */
  EXPECT_EQ(c[2], 16u);
}

/* --- division and launch shapes --- */

static_assert(gk_ceil_div(INT_MAX, 2) == 1 << 30, "");
static_assert(gk_ceil_div(INT_MAX, INT_MAX) == 1, "");
static_assert(gk_ceil_div(UINT_MAX, 2u) == 1u << 31, "");
static_assert(gk_ceil_div(SIZE_MAX, size_t{1}) == SIZE_MAX, "");
static_assert(gk_ceil_div(SIZE_MAX, size_t{256}) == size_t{1} << 56, "");
static_assert(gk_ceil_div(LLONG_MAX, 2LL) == 1LL << 62, "");
static_assert(gk_ceil_div(static_cast<unsigned char>(255), static_cast<unsigned char>(2)) == 128, "");
static_assert(gk_ceil_div(static_cast<short>(32767), static_cast<short>(32766)) == 2, "");
static_assert(gk_ceil_div(0, 5) == 0, "");
static_assert(same<decltype(gk_ceil_div(10, size_t{3})), size_t>::value, "");
static_assert(gk_round_up(0u, 32u) == 0 && gk_round_up(1u, 32u) == 32 && gk_round_up(64u, 32u) == 64, "");
static_assert(gk_round_up(INT_MAX - 1, 2) == INT_MAX - 1, "");

TEST(ceil_div_and_round_up) {
  for (int a = 0; a < 100; a++)
    for (int b = 1; b < 40; b++) {
      int quotient = 0;
      while (quotient * b < a) quotient++;
      EXPECT_EQ(gk_ceil_div(a, b), quotient);
      EXPECT_EQ(gk_round_up(static_cast<size_t>(a), static_cast<size_t>(b)), static_cast<size_t>(quotient * b));
    }
}

TEST(grids) {
  EXPECT_DIM(gk_grid_1d(0, 256), dim3(0));
  EXPECT_DIM(gk_grid_1d(1, 256), dim3(1));
  EXPECT_DIM(gk_grid_1d(256, 256), dim3(1));
  EXPECT_DIM(gk_grid_1d(257, 256), dim3(2));
  EXPECT_DIM(gk_grid_1d(size_t{0x7fffffff} * 256, 256), dim3(0x7fffffff));
  EXPECT_DIM(gk_grid_1d(size_t{0x7fffffff} * 256 + 1, 256), dim3(0x7fffffff)); /* the largest there is */
  EXPECT_DIM(gk_grid_1d(SIZE_MAX, 1), dim3(0x7fffffff));
  EXPECT_DIM(gk_grid_2d(33, 9, dim3(16, 8)), dim3(3, 2));
  EXPECT_DIM(gk_grid_2d(33, 0, dim3(16, 8)), dim3(3, 0));
  EXPECT_DIM(gk_grid_2d(1, SIZE_MAX, dim3(16, 8)), dim3(1, 65535));
  EXPECT_DIM(gk_grid_3d(5, 5, 5, dim3(4, 2, 1)), dim3(2, 3, 5));
  EXPECT_DIM(gk_grid_3d(0, 5, SIZE_MAX, dim3(4, 2, 1)), dim3(0, 3, 65535));
}

TEST(grid_shape_and_its_errors) {
  dim3 block(16, 8, 2), grid(77);
  EXPECT_OK(gk_grid_shape(33, 9, 5, &block, &grid));
  EXPECT_DIM(grid, dim3(3, 2, 3));
  EXPECT_EQ(std::string(gk_error_detail()), "");
  EXPECT_OK(gk_grid_shape(0, 9, 5, &block, &grid));
  EXPECT_DIM(grid, dim3(0, 2, 3));
  EXPECT_OK(gk_grid_shape(size_t{0x7fffffff} * 16, size_t{65535} * 8, size_t{65535} * 2, &block, &grid));
  EXPECT_DIM(grid, dim3(0x7fffffff, 65535, 65535));
  const struct {
    size_t w, h, d;
    dim3 block;
    const char *detail;
  } bad[] = {{size_t{0x7fffffff} * 16 + 1, 1, 1, block, "2147483648 x 1 x 1 blocks"},
             {1, size_t{65535} * 8 + 1, 1, block, "1 x 65536 x 1 blocks"},
             {1, 1, size_t{65535} * 2 + 1, block, "1 x 1 x 65536 blocks"},
             {SIZE_MAX, SIZE_MAX, SIZE_MAX, block, "blocks"},
             {1, 1, 1, dim3(0, 8, 2), "block is empty"},
             {1, 1, 1, dim3(16, 8, 0), "block is empty"}};
  for (auto &b : bad) {
    grid = dim3(77);
    EXPECT_EQ(gk_grid_shape(b.w, b.h, b.d, &b.block, &grid), cudaErrorInvalidConfiguration);
    EXPECT_HAS(gk_error_detail(), "gk_grid_shape");
    EXPECT_HAS(gk_error_detail(), b.detail);
    EXPECT(grid == dim3(77));
  }
  EXPECT_EQ(gk_grid_shape(1, 1, 1, nullptr, &grid), cudaErrorInvalidValue);
  EXPECT_HAS(gk_error_detail(), "block_dim is NULL");
  EXPECT_EQ(gk_grid_shape(1, 1, 1, &block, nullptr), cudaErrorInvalidValue);
  EXPECT_HAS(gk_error_detail(), "grid_dim is NULL");
}

TEST(an_empty_grid_launches_nothing_and_succeeds) {
  device_array<unsigned> count(1);
  const dim3 block(8, 4);
  const dim3 empty[] = {gk_grid_1d(0, 256), gk_grid_2d(0, 9, block), gk_grid_2d(9, 0, block),
                        gk_grid_3d(9, 9, 0, block)};
  for (dim3 grid : empty) {
    EXPECT_OK(GK_LAUNCH(mark, grid, block, 0, 0, count.p, 1, 1, 1));
    EXPECT_OK(gk_launch(mark, grid, block, 0, 0, count.p, 1, 1, 1));
  }
  EXPECT_EQ(count.get()[0], 0u);
  EXPECT_OK(cudaPeekAtLastError());
}

/* --- dynamic shared memory --- */

struct three {
  short a, b, c;
};
static bool operator==(three x, three y) { return x.a == y.a && x.b == y.b && x.c == y.c; }

/* One name with several types: what `extern __shared__ T s[]` does not compile with. */
template <class T> __global__ void reversed(T *data, unsigned *misaligned) {
  GK_DYNAMIC_SHARED(T, s);
  if (reinterpret_cast<size_t>(s) % 16) atomicAdd(misaligned, 1u);
  const unsigned i = gk_thread_rank(), n = gk_block_size();
  s[i] = data[i];
  __syncthreads();
  data[i] = s[n - 1 - i];
}
template <class T> static void check_reversed(T (*make)(unsigned), unsigned n) {
  std::vector<T> host(n);
  for (unsigned i = 0; i < n; i++) host[i] = make(i);
  device_array<T> data(n);
  device_array<unsigned> misaligned(1);
  EXPECT_OK(cudaMemcpy(data.p, host.data(), n * sizeof(T), cudaMemcpyDefault));
  GK_LAUNCH(reversed<T>, 1, n, n * sizeof(T), 0, data.p, misaligned.p);
  const std::vector<T> got = data.get();
  for (unsigned i = 0; i < n; i++) EXPECT(got[i] == make(n - 1 - i));
  EXPECT_EQ(misaligned.get()[0], 0u);
}

TEST(dynamic_shared_memory_of_several_types_in_one_template) {
  check_reversed<float>([](unsigned i) { return static_cast<float>(i); }, 96);
  check_reversed<double>([](unsigned i) { return i + 0.25; }, 256);
  check_reversed<unsigned char>([](unsigned i) { return static_cast<unsigned char>(i * 7); }, 33);
  check_reversed<three>(
      [](unsigned i) {
        return three{static_cast<short>(i), 1, static_cast<short>(-2 * int(i))};
      },
      77);
  check_reversed<unsigned long long>([](unsigned i) { return ~0ull - i; }, 1000);
}

/* Two typed views of one block's memory, the second after the first. */
__global__ void two_views(unsigned *wrong) {
  GK_DYNAMIC_SHARED(float, f);
  GK_DYNAMIC_SHARED(int, bits);
  const unsigned n = gk_block_size(), i = gk_thread_rank();
  f[i] = static_cast<float>(i);
  bits[n + i] = static_cast<int>(i);
  __syncthreads();
  if (static_cast<int>(f[n - 1 - i]) != bits[2 * n - 1 - i]) atomicAdd(wrong, 1u);
}
TEST(dynamic_shared_memory_seen_as_two_types) {
  device_array<unsigned> wrong(1);
  EXPECT_OK(gk_launch(two_views, 3, 128, 128 * (sizeof(float) + sizeof(int)), 0, wrong.p));
  EXPECT_EQ(wrong.get()[0], 0u);
}
