/* Lesson 14: the scan. out[i] is the sum of in[0] to in[i - 1]: an exclusive scan. Each sum needs the one before it,
 * and still many threads can compute them at once.
 *
 * A block scans a chunk of 512 elements:
 *
 *   Hillis-Steele  each element adds the one 1, 2, 4 ... before it: 9 steps, 4097 additions in all
 *   Blelloch       a tree of sums upwards, then the sums before each node downwards: 18 steps, 1022 additions. The
 *                  elements of a level of the tree are 2, 4, 8 ... apart, more and more of them in one bank
 *   padded         the same with a word left out after each 32, so that these elements are in different banks
 *   shuffled       Hillis-Steele in the registers of each warp, and once more over the sums of the 16 warps
 *
 * More elements take three kernels: scan the chunks and keep the sum of each; scan these sums (by the same function, if
 * there are many); add to each chunk the sum of what came before it. */
#include <cuda_runtime.h>

#define CHUNK 512
#define WARP 32
#define LEVELS 4 /* 512^4 are more ints than there may be */

__device__ int load(const int *in, unsigned n, unsigned i) { return i < n ? in[i] : 0; }

__global__ void hillis_steele(const int *in, int *out, int *sums, unsigned n) {
  __shared__ int s[2][CHUNK]; /* a step reads one and writes the other */
  const unsigned t = threadIdx.x, i = blockIdx.x * CHUNK + t;
  const int own = load(in, n, i);
  int from = 0;
  s[0][t] = own;
  __syncthreads();
  for (unsigned step = 1; step < CHUNK; step *= 2) {
    s[!from][t] = s[from][t] + (t >= step ? s[from][t - step] : 0);
    from = !from;
    __syncthreads();
  }
  if (i < n) out[i] = s[from][t] - own;
  if (t == CHUNK - 1) sums[blockIdx.x] = s[from][t];
}

/* The index of element i in shared memory. PAD 0: i; 1: one word is left out after each 32. */
template <int PAD> __device__ unsigned at(unsigned i) { return PAD ? i + i / WARP : i; }

/* Half as many threads as elements. */
template <int PAD> __global__ void blelloch(const int *in, int *out, int *sums, unsigned n) {
  __shared__ int s[CHUNK + (PAD ? CHUNK / WARP : 0)];
  const unsigned t = threadIdx.x, first = blockIdx.x * CHUNK + t, second = first + CHUNK / 2;
  s[at<PAD>(t)] = load(in, n, first);
  s[at<PAD>(t + CHUNK / 2)] = load(in, n, second);
  unsigned apart = 1;
  for (unsigned pairs = CHUNK / 2; pairs > 0; pairs /= 2, apart *= 2) { /* up: the right of a pair becomes its sum */
    __syncthreads();
    if (t < pairs) s[at<PAD>(apart * (2 * t + 2) - 1)] += s[at<PAD>(apart * (2 * t + 1) - 1)];
  }
  if (t == 0) { /* the thread that has made the last sum */
    sums[blockIdx.x] = s[at<PAD>(CHUNK - 1)];
    s[at<PAD>(CHUNK - 1)] = 0;
  }
  for (unsigned pairs = 1; pairs < CHUNK; pairs *= 2) { /* down: what comes before the pair, before its right half */
    apart /= 2;
    __syncthreads();
    if (t < pairs) {
      int *const left = &s[at<PAD>(apart * (2 * t + 1) - 1)], *const right = &s[at<PAD>(apart * (2 * t + 2) - 1)];
      const int sum = *left;
      *left = *right;
      *right += sum;
    }
  }
  __syncthreads();
  if (first < n) out[first] = s[at<PAD>(t)];
  if (second < n) out[second] = s[at<PAD>(t + CHUNK / 2)];
}

__device__ int inclusive_in_warp(int value) {
  for (unsigned step = 1; step < WARP; step *= 2) {
    const int before = __shfl_up_sync(~0u, value, step);
    if (threadIdx.x % WARP >= step) value += before;
  }
  return value;
}

__global__ void shuffled(const int *in, int *out, int *sums, unsigned n) {
  __shared__ int of_warp[CHUNK / WARP];
  const unsigned t = threadIdx.x, i = blockIdx.x * CHUNK + t;
  const int own = load(in, n, i), sum = inclusive_in_warp(own);
  if (t % WARP == WARP - 1) of_warp[t / WARP] = sum;
  __syncthreads();
  if (t < WARP) {
    const int all = inclusive_in_warp(t < CHUNK / WARP ? of_warp[t] : 0);
    if (t < CHUNK / WARP) of_warp[t] = all;
  }
  __syncthreads();
  const int before = t < WARP ? 0 : of_warp[t / WARP - 1];
  if (i < n) out[i] = before + sum - own;
  if (t == CHUNK - 1) sums[blockIdx.x] = before + sum;
}

__global__ void add_before(int *out, const int *before, unsigned n) {
  const unsigned i = blockIdx.x * CHUNK + threadIdx.x;
  if (i < n) out[i] += before[blockIdx.x];
}

typedef void (*chunk_scan)(const int *in, int *out, int *sums, unsigned n);

/* sums: an array for each level, each with a 512th of the elements of the one before. */
static void scan(chunk_scan kernel, unsigned threads, const int *in, int *out, int *const *sums, unsigned n) {
  const unsigned chunks = (n - 1) / CHUNK + 1;
  kernel<<<chunks, threads>>>(in, out, *sums, n);
  if (chunks == 1) return;
  scan(kernel, threads, *sums, *sums, sums + 1, chunks);
  add_before<<<chunks, CHUNK>>>(out, *sums, n);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200, for 2^25 ints, in GB/s of n ints read and n written:
 *
 *   Hillis-Steele      892. Three kernels read and write everything twice, so half of a copy's rate is the most
 *   Blelloch           642: a quarter of the additions, but 1.39 times the time: bank conflicts, twice the steps and
 *                      barriers, and in most steps most threads are idle. Additions are not what takes the time
 *   Blelloch padded    899, 1.40 times as fast: no bank conflicts, and as fast as Hillis-Steele
 *   shuffled           1036: steps within a warp need neither shared memory nor barriers
 *   gk_scan_exclusive  3390, 3.27 times as fast as shuffled: one kernel, in which each block looks back at the sums
 *                      that earlier blocks have published (decoupled look-back), reads and writes each element once,
 *                      and moves 16 bytes an access */
#include "lesson.h"

static const lesson_about about = {"14_scan", "running sums by Hillis-Steele, Blelloch, shuffles, and in one pass",
                                   "ints",    1 << 25,
                                   1 << 13,   1,
                                   1 << 28,   "GB/s"};

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n;
  std::vector<int> values(n), expected(n);
  unsigned sum = 0;
  for (unsigned i = 0; i < n; i++) {
    values[i] = (int)(i * 2654435761u >> 20) - 2048;
    expected[i] = (int)sum;
    sum += (unsigned)values[i];
  }
  const int *const in = lesson_array(&l, values);
  int *const out = lesson_array<int>(&l, n), *sums[LEVELS];
  size_t chunks = n;
  for (int i = 0; i < LEVELS; i++) {
    chunks = (chunks - 1) / CHUNK + 1;
    sums[i] = lesson_array<int>(&l, chunks);
  }
  const double bytes = 2.0 * n * sizeof(int); /* the least that has to be moved */

  const struct {
    const char *name;
    chunk_scan kernel;
    unsigned threads;
  } ways[] = {{"Hillis-Steele", hillis_steele, CHUNK},
              {"Blelloch", blelloch<0>, CHUNK / 2},
              {"Blelloch padded", blelloch<1>, CHUNK / 2},
              {"shuffled", shuffled, CHUNK}};
  for (const auto &way : ways) {
    const chunk_scan kernel = way.kernel;
    const unsigned threads = way.threads;
    const lesson_row *const r = lesson_measure(&l, way.name, bytes, [=] { scan(kernel, threads, in, out, sums, n); });
    lesson_expect(&l, r, out, expected);
  }
  gk_scratch scratch = {};
  GK_CHECK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(n, sizeof(int)), 0));
  const lesson_row *const library = lesson_measure(
      &l, "gk_scan_exclusive", bytes, [&] { GK_CHECK(gk_scan_exclusive(in, out, n, gk_op_sum(), 0, &scratch)); });
  lesson_expect(&l, library, out, expected);
  GK_CHECK(gk_scratch_destroy(&scratch));
  lesson_table(&l);

  const lesson_row *const steele = &l.rows[0], *const tree = &l.rows[1], *const padded = &l.rows[2];
  const lesson_row *const shuffles = &l.rows[3];
  if (l.mode == LESSON_TIMED) {
    lesson_say(&l, "Blelloch's scan has a quarter of the additions, but takes %.2f times as long as Hillis-Steele's.",
               tree->us / steele->us);
    lesson_say(&l, "Padding makes it %.2f times as fast; textbooks of its time have 1.0 to 1.4 times.",
               tree->us / padded->us);
    lesson_say(&l, "Shuffles are %.2f times as fast as Hillis-Steele; one pass is %.2f times as fast as three kernels.",
               steele->us / shuffles->us, shuffles->us / library->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(
        &l, "Passes for a load from shared memory: %.2f in Blelloch's tree, %.2f with padding, %.2f in Hillis-Steele.",
        tree->counted.load_passes, padded->counted.load_passes, steele->counted.load_passes);
    lesson_say(&l, "Requests to memory: Hillis-Steele %.0f, shuffled %.0f, gk_scan_exclusive %.0f.",
               steele->counted.requests, shuffles->counted.requests, library->counted.requests);
  }
  return lesson_end(&l);
}
