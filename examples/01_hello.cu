/* Lesson 1: hello. A kernel is a function that very many threads run at once, in blocks, which make up a grid. What a
 * thread does depends on two numbers alone, which one of its block it is and which block of the grid; each has up to
 * three dimensions, for convenience: x counts fastest.
 *
 *   kernel<<<grid, block>>>(...);     returns at once, and nothing is known yet
 *   cudaDeviceSynchronize();          waits until it is done; what it has printed appears here, in no particular order
 *
 * Grid and block may have any dimensions, so that there are nine combinations, and a formula for each for the number of
 * a thread among all (its rank). In all of them it counts the blocks before this one, times the threads of a block, and
 * the threads before this one in its block. So ranks go through the grid block by block; coordinates go through it row
 * by row. The picture in build/lessons/01_hello.svg shows both: where a thread is, and its rank. */
#include "lesson.h"
#include "svg.h"

static const lesson_about about = {
    "01_hello",
    "a grid of blocks of threads, in one, two and three dimensions: who owns which element",
    "elements, for a thread each",
    64,
    64,
    1,
    1 << 20,
    "GB/s"};

#define THREADS 8      /* of a block, in each shape */
#define DRAWN_MOST 100 /* elements */

__global__ void hello(void) { printf("  hello from thread %u of block %u\n", threadIdx.x, blockIdx.x); }

/* The nine formulas: of thread and block by their number of dimensions. */
template <int GRID, int BLOCK> __device__ unsigned rank_of_thread(void) {
  const unsigned block = GRID == 1   ? blockIdx.x
                         : GRID == 2 ? blockIdx.y * gridDim.x + blockIdx.x
                                     : (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned threads = BLOCK == 1   ? blockDim.x
                           : BLOCK == 2 ? blockDim.x * blockDim.y
                                        : blockDim.x * blockDim.y * blockDim.z;
  const unsigned thread = BLOCK == 1   ? threadIdx.x
                          : BLOCK == 2 ? threadIdx.y * blockDim.x + threadIdx.x
                                       : (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  return block * threads + thread;
}

/* ranks: by coordinates. The last block has threads for which there is no element. */
template <int GRID, int BLOCK> __global__ void own(unsigned *ranks, unsigned *owners, unsigned n) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
  const unsigned width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
  const unsigned rank = rank_of_thread<GRID, BLOCK>();
  ranks[(z * height + y) * width + x] = rank;
  if (rank < n) atomicAdd(&owners[rank], 1u);
}

typedef void (*kernel_type)(unsigned *ranks, unsigned *owners, unsigned n);
static const kernel_type kernels[3][3] = {
    {own<1, 1>, own<1, 2>, own<1, 3>}, {own<2, 1>, own<2, 2>, own<2, 3>}, {own<3, 1>, own<3, 2>, own<3, 3>}};
static const dim3 blocks[] = {dim3(8), dim3(4, 2), dim3(2, 2, 2)};

/* So many blocks, or a few more. */
static dim3 grid_of(int dimensions, unsigned count) {
  if (dimensions == 1) return dim3(count);
  if (dimensions == 2) return dim3(2, (count + 1) / 2);
  return dim3(2, 2, (count + 3) / 4);
}

/* What the kernel should leave, by loops: blocks in order, and in each its threads in order. */
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
#define ACROSS 16 /* cells */

/* All elements of one combination: coloured by block, with the rank of the thread. Layers of equal z lie beside each
 * other where there is room, otherwise below; what is too wide is folded. Returns where it ends. */
static double draw(svg *s, double left, double top, const char *title, dim3 g, dim3 b, unsigned n,
                   const std::vector<unsigned> &ranks) {
  const unsigned width = g.x * b.x, height = g.y * b.y, folds = (width - 1) / ACROSS + 1;
  const unsigned beside = width < ACROSS ? (ACROSS + 1) / (width + 1) : 1;
  double bottom = top;
  svg_text(s, left, top, 14, "start", "%s", title);
  for (unsigned i = 0; i < ranks.size(); i++) {
    const unsigned x = i % width, y = i / width % height, layer = i / width / height;
    const unsigned column = layer % beside * (width + 1) + x % ACROSS, line = layer / beside * folds + x / ACROSS;
    const double at_x = left + CELL * column, at_y = top + 8 + CELL * (line * height + y) + CELL / 2 * line;
    svg_box(s, at_x, at_y, CELL - 2, CELL - 2,
            ranks[i] < n ? svg_colours[ranks[i] / THREADS % SVG_COLOURS] : "#e4e4e4");
    svg_text(s, at_x + CELL / 2 - 1, at_y + 14, 10, "middle", "%u", ranks[i]);
    if (at_y + CELL > bottom) bottom = at_y + CELL;
  }
  return bottom;
}

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n, count = (n + THREADS - 1) / THREADS;
  const size_t most = ((size_t)count + 4) * THREADS;
  unsigned *const ranks = lesson_array<unsigned>(&l, most), *const owners = lesson_array<unsigned>(&l, n);
  const std::vector<unsigned> one_each(n, 1);
  svg picture;
  const double wide = CELL * (ACROSS + 2), high = CELL * 9.0 * ((count + 3) / 4 + 1);
  const bool drawn =
      n <= DRAWN_MOST && svg_begin(&picture, RESULTS_FOLDER "/lessons", about.name, 3 * wide, 1.5 * high);
  double top = 24, bottom[3] = {};
  double launched = 0, done = 0;

  if (!l.csv_only) { /* whose output is no comma-separated values */
    hello<<<2, 3>>>();
    GK_CHECK_LAUNCH();
    GK_CHECK(cudaDeviceSynchronize());
  }
  for (int g = 1; g <= 3; g++) {
    for (int b = 1; b <= 3; b++) {
      const dim3 grid = grid_of(g, count), block = blocks[b - 1];
      const kernel_type kernel = kernels[g - 1][b - 1];
      char grid_text[40], block_text[40], variant[48];
      describe(grid_text, sizeof grid_text, grid, g);
      describe(block_text, sizeof block_text, block, b);
      snprintf(variant, sizeof variant, "%.17s blocks of %.17s", grid_text, block_text);
      const lesson_row *const r = lesson_measure(&l, variant, 0, [=] { kernel<<<grid, block>>>(ranks, owners, n); });
      const double start = lesson_now_us();
      GK_CHECK(cudaMemset(owners, 0, n * sizeof *owners));
      kernel<<<grid, block>>>(ranks, owners, n);
      GK_CHECK_LAUNCH();
      launched = lesson_now_us() - start;
      GK_CHECK(cudaDeviceSynchronize());
      done = lesson_now_us() - start;
      const std::vector<unsigned> expected = ranks_by_loops(grid, block);
      if (drawn) bottom[b - 1] = draw(&picture, CELL + wide * (b - 1), top, variant, grid, block, n, expected);
      lesson_expect(&l, r, ranks, expected);
      lesson_expect(&l, r, owners, one_each);
    }
    for (const double end : bottom) top = end + 30 > top ? end + 30 : top;
  }
  lesson_table(&l);

  const std::vector<unsigned> plane = ranks_by_loops(dim3(2, 2), blocks[1]);
  lesson_say(&l, "2 x 2 blocks of 4 x 2 threads: their ranks, where they are");
  for (size_t y = 0; y < 4; y++)
    lesson_say(&l, "  %2u %2u %2u %2u | %2u %2u %2u %2u", plane[8 * y], plane[8 * y + 1], plane[8 * y + 2],
               plane[8 * y + 3], plane[8 * y + 4], plane[8 * y + 5], plane[8 * y + 6], plane[8 * y + 7]);
  if (drawn && svg_end(&picture)) lesson_say(&l, "The picture of all nine: %s", picture.path);
  if (!drawn) lesson_say(&l, "More than %d elements are not drawn.", DRAWN_MOST);
  lesson_say(&l,
             "All nine combinations give each of %u elements to one thread; %u threads of a line of blocks have none.",
             n, count * THREADS - n);
  if (l.mode == LESSON_TIMED)
    lesson_say(&l, "A launch came back after %.1f us, and its kernel was done after %.1f us.", launched, done);
  else
    lesson_say(&l, "On a GPU a launch comes back before its kernel has run; on the stand-in, after.");
  return lesson_end(&l);
}
