/* Lesson 1: hello. A kernel is a function that many threads run at once. Threads form blocks, and blocks form a grid.
 * A thread knows which thread of its block it is (threadIdx) and which block of the grid it is in (blockIdx). Grid and
 * block have up to three dimensions; x varies fastest.
 *
 * The launch kernel<<<grid, block>>>(...) returns at once. cudaDeviceSynchronize() waits until the kernel has ended;
 * what the kernel printed appears then, in no particular order. */
#include <cuda_runtime.h>
#include <stdio.h>

__global__ void hello(void) { printf("  hello from thread %u of block %u\n", threadIdx.x, blockIdx.x); }

static void say_hello(void) {
  hello<<<2, 3>>>(); /* 2 blocks of 3 threads */
  cudaDeviceSynchronize();
}

/* The number of a thread among all threads of the grid is its rank: the number of blocks before its own, times the
 * threads of a block, plus the number of threads before it in its block. There are nine combinations of dimensions, and
 * courses print a formula for each. They are short forms of the formula below: a dimension that is not given is 1 and
 * its index is 0, so its terms vanish.
 *
 *                     number of the block, or of the thread in its block (with threadIdx and blockDim)
 *   one dimension     blockIdx.x
 *   two dimensions    blockIdx.y * gridDim.x + blockIdx.x
 *   three             (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x
 */
__device__ unsigned rank_of_thread(void) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  return block * (blockDim.x * blockDim.y * blockDim.z) + thread;
}

/* One thread for each of n elements. ranks is indexed by the coordinates of the threads. Coordinates go through the
 * grid row by row, ranks go through it block by block. The last block may have threads without an element. */
__global__ void own(unsigned *ranks, unsigned *owners, unsigned n) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
  const unsigned width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
  const unsigned rank = rank_of_thread();
  ranks[(z * height + y) * width + x] = rank;
  if (rank < n) atomicAdd(&owners[rank], 1u);
}

/* ---- measured and drawn ----------------------------------------------------------------------------------------- *
 *
 * All nine combinations run. Each takes 4.2 to 4.4 us on an H200, which is what a launch costs: a kernel of 64 threads
 * adds almost nothing to it, whatever its dimensions. The last line below the table has longer times, because the host
 * measures them: 7.8 us until the launch call has returned, 14.5 us until the kernel has ended.
 * build/lessons/01_hello.svg shows where each thread is, and its rank. */
#include "lesson.h"
#include "svg.h"

static const lesson_about about = {
    "01_hello",
    "a grid of blocks of threads, in one, two and three dimensions: which thread owns which element",
    "elements, one for each thread",
    64,
    64,
    1,
    (1 << 20) - 16, /* for more, a grid of two dimensions would be higher than 65535 blocks */
    "GB/s"};

#define THREADS 8      /* of a block, in each shape */
#define DRAWN_MOST 100 /* elements */

static const dim3 blocks[] = {dim3(8), dim3(4, 2), dim3(2, 2, 2)};

/* A grid of at least `count` blocks. */
static dim3 grid_of(int dimensions, unsigned count) {
  if (dimensions == 1) return dim3(count);
  if (dimensions == 2) return dim3(2, (count + 1) / 2);
  return dim3(2, 2, (count + 3) / 4);
}

/* What the kernel has to leave, computed by loops: blocks in order, and the threads of each in order. */
static std::vector<unsigned> ranks_by_loops(dim3 g, dim3 b) {
  std::vector<unsigned> ranks((size_t)g.x * g.y * g.z * b.x * b.y * b.z);
  unsigned rank = 0;
  for (unsigned block = 0; block < g.x * g.y * g.z; block++)
    for (unsigned t = 0; t < b.x * b.y * b.z; t++) {
      const unsigned x = block % g.x * b.x + t % b.x, y = block / g.x % g.y * b.y + t / b.x % b.y;
      const unsigned z = block / g.x / g.y * b.z + t / b.x / b.y;
      ranks[(z * g.y * b.y + y) * g.x * b.x + x] = rank++;
    }
  return ranks;
}

static void describe(char *text, size_t size, dim3 d, int dimensions) {
  if (dimensions == 1) snprintf(text, size, "%u", d.x);
  if (dimensions == 2) snprintf(text, size, "%u x %u", d.x, d.y);
  if (dimensions == 3) snprintf(text, size, "%u x %u x %u", d.x, d.y, d.z);
}

#define CELL 22   /* in pixels */
#define ACROSS 16 /* cells: a longer row of the grid continues below, with a gap between */
#define ROOM 21   /* cells beside each other in one of the nine drawings */

/* Draws the elements of one combination: coloured by block, with the rank of the thread. Layers of equal z stand side
 * by side, with their z above. Returns the lower edge. */
static double draw(svg *s, double left, double top, const char *title, dim3 g, dim3 b, unsigned n,
                   const std::vector<unsigned> &ranks) {
  const unsigned width = g.x * b.x, height = g.y * b.y, layers = g.z * b.z, folded = width > ACROSS ? ACROSS : width;
  const unsigned folds = (width - 1) / ACROSS + 1, beside = (ROOM + 1) / (folded + 1);
  const double layer_high = CELL * (height + 0.5) * folds + 16;
  svg_text(s, left, top, 14, "start", "%s", title);
  for (unsigned z = 0; z < layers && layers > 1; z++)
    svg_text(s, left + CELL * (z % beside * (folded + 1)), top + 20 + layer_high * (z / beside), 12, "start", "z = %u",
             z);
  for (unsigned i = 0; i < ranks.size(); i++) {
    const unsigned x = i % width, y = i / width % height, z = i / width / height;
    const double at_x = left + CELL * (z % beside * (folded + 1) + x % ACROSS);
    const double at_y = top + 26 + layer_high * (z / beside) + CELL * (x / ACROSS * (height + 0.5) + y);
    const char *const colour = ranks[i] < n ? svg_colours[ranks[i] / THREADS % SVG_COLOURS] : "#e4e4e4";
    svg_box(s, at_x, at_y, CELL - 2, CELL - 2, colour);
    svg_text_on(s, at_x + CELL / 2 - 1, at_y + 14, 11, colour, "%u", ranks[i]);
  }
  return top + 26 + layer_high * ((layers - 1) / beside + 1);
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n, count = (n + THREADS - 1) / THREADS;
  const size_t most = ((size_t)count + 4) * THREADS;
  unsigned *const ranks = lesson_array<unsigned>(&l, most), *const owners = lesson_array<unsigned>(&l, n);
  const std::vector<unsigned> one_each(n, 1);
  svg picture;
  const double wide = CELL * (ROOM + 0.5), high = CELL * 10.0 * ((count + 3) / 4 + 1);
  const bool drawn =
      n <= DRAWN_MOST && svg_begin(&picture, RESULTS_FOLDER "/lessons", about.name, 3 * wide + CELL, high);
  double top = 24, bottom[3] = {};
  double launched = 0, done = 0;

  if (!l.csv_only) say_hello(); /* its output would not be comma-separated values */
  for (int g = 1; g <= 3; g++) {
    for (int b = 1; b <= 3; b++) {
      const dim3 grid = grid_of(g, count), block = blocks[b - 1];
      char grid_text[40], block_text[40], variant[48];
      describe(grid_text, sizeof grid_text, grid, g);
      describe(block_text, sizeof block_text, block, b);
      snprintf(variant, sizeof variant, "%.17s blocks of %.17s", grid_text, block_text);
      const lesson_row *const r = lesson_measure(&l, variant, 0, [=] { own<<<grid, block>>>(ranks, owners, n); });
      GK_CHECK(cudaMemset(owners, 0, n * sizeof *owners));
      const double start = lesson_now_us();
      own<<<grid, block>>>(ranks, owners, n);
      GK_CHECK_LAUNCH();
      launched = lesson_now_us() - start;
      GK_CHECK(cudaDeviceSynchronize());
      done = lesson_now_us() - start;
      const std::vector<unsigned> expected = ranks_by_loops(grid, block);
      if (drawn) bottom[b - 1] = draw(&picture, CELL + wide * (b - 1), top, variant, grid, block, n, expected);
      lesson_expect(&l, r, ranks, expected);
      lesson_expect(&l, r, owners, one_each);
    }
    for (const double end : bottom) top = end + 24 > top ? end + 24 : top;
  }
  lesson_table(&l);

  const std::vector<unsigned> plane = ranks_by_loops(dim3(2, 2), blocks[1]);
  lesson_say(&l, "2 x 2 blocks of 4 x 2 threads: the rank of the thread at each place");
  for (size_t y = 0; y < 4; y++)
    lesson_say(&l, "  %2u %2u %2u %2u | %2u %2u %2u %2u", plane[8 * y], plane[8 * y + 1], plane[8 * y + 2],
               plane[8 * y + 3], plane[8 * y + 4], plane[8 * y + 5], plane[8 * y + 6], plane[8 * y + 7]);
  if (drawn && svg_end(&picture)) lesson_say(&l, "A picture of all nine combinations: %s", picture.path);
  if (!drawn) lesson_say(&l, "Grids of more than %d elements are not drawn.", DRAWN_MOST);
  lesson_say(&l, "In all nine, each of %u elements has one thread; with blocks in a line, %u threads have no element.",
             n, count * THREADS - n);
  if (l.mode == LESSON_TIMED)
    lesson_say(&l, "A launch returned after %.1f us, and its kernel had ended after %.1f us.", launched, done);
  else
    lesson_say(&l, "On a GPU a launch returns before its kernel has run; on the stand-in, after.");
  return lesson_end(&l);
}
