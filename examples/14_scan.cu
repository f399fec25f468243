/* Lesson 14: the scan ladder. out[i] is the sum of in[0] to in[i - 1]: an exclusive scan. Each sum needs the one
 * before, and yet it can be done by many threads at once.
 *
 * Within a chunk of 512 elements, which is a block's:
 *
 *   Hillis-Steele    each element adds the one 1, 2, 4, ... before it: 9 steps, 4097 additions in all
 *   Blelloch         a tree of sums upwards, then their shares downwards: 1022 additions, but the elements of a level
 *                    of it lie 2, 4, 8, ... apart, more and more of them in the same bank
 *   padded           the same with a hole after each 32 elements, so that such elements lie in different banks
 *   shuffled         Hillis-Steele in each warp's registers, and once more over the sums of the 16 warps
 *
 * For more than a chunk there are three kernels: scan the chunks and keep the sum of each, scan these sums (by the
 * same way, if they are many), add to each chunk what came before it. So each element is read and written twice.
 * gk_scan_exclusive does it in one launch: a block looks back at what earlier ones have already published, and
 * touches each element once. */
#include "lesson.h"

static const lesson_about about = {"14_scan", "running sums by Hillis-Steele, Blelloch, shuffles, and in one pass",
                                   "ints",    1 << 25,
                                   1 << 13,   1,
                                   1 << 28,   "GB/s"};

#define CHUNK 512
#define WARP 32
#define LEVELS 4 /* 512^4 are more ints than there may be */

__device__ int load(const int *in, unsigned n, unsigned i) { return i < n ? in[i] : 0; }

__global__ void hillis_steele(const int *in, int *out, int *sums, unsigned n) {
  __shared__ int s[2][CHUNK]; /* read from one, write to the other */
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

/* Where element i lies. PAD 0: there; 1: with a hole after each 32. */
template <int PAD> __device__ unsigned at(unsigned i) { return PAD ? i + i / WARP : i; }

/* By half as many threads as there are elements. */
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
  if (t == 0) { /* who has last made a sum */
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

/* sums: an array for each level, of which each has a 512th of the one before. */
static void scan(chunk_scan kernel, unsigned threads, const int *in, int *out, int *const *sums, unsigned n) {
  const unsigned chunks = (n - 1) / CHUNK + 1;
  kernel<<<chunks, threads>>>(in, out, *sums, n);
  if (chunks == 1) return;
  scan(kernel, threads, *sums, *sums, sums + 1, chunks);
  add_before<<<chunks, CHUNK>>>(out, *sums, n);
}

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
  const double bytes = 2.0 * n * sizeof(int); /* the least there is to move */

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
    lesson_say(&l, "Blelloch does a quarter of the additions, and takes %.2f times as long as Hillis-Steele.",
               tree->us / steele->us);
    lesson_say(&l, "Padding makes it x %.2f; textbooks of its time have 1.0 to 1.4.", tree->us / padded->us);
    lesson_say(&l, "Shuffles are x %.2f on Hillis-Steele, and one pass over memory is x %.2f on three kernels.",
               steele->us / shuffles->us, shuffles->us / library->us);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(
        &l, "Passes for a load from shared memory: %.2f in Blelloch's tree, %.2f with padding, %.2f in Hillis-Steele.",
        tree->counted.load_passes, padded->counted.load_passes, steele->counted.load_passes);
    lesson_say(&l, "Requests to memory: %.0f by Hillis-Steele, %.0f by shuffles, %.0f by gk_scan_exclusive.",
               steele->counted.requests, shuffles->counted.requests, library->counted.requests);
  }
  return lesson_end(&l);
}
