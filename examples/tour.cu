/* tour.cu: a photograph's way through gpukit.
 *
 *   tour [--out DIR] [picture.pgm|picture.ppm]
 *
 * Colour transform, statistics, histogram equalisation, blur, transpose, and a cosine transform of the whole picture:
 * library calls where there is one (matmul, reduce, scan), a small kernel where there is none. Each step is checked
 * against a plain CPU computation, timed, and ends as a row of a table; the pictures go to DIR (build/tour). A failed
 * check, or a picture that cannot be read, makes the exit code non-zero, and then no picture is written.
 *
 * The line `bits:` holds results bit for bit. It is the same on each GPU and on the CPU stand-in: gpukit promises that
 * for its calls, and the kernels here keep to it with fmaf() and integers.
 */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#include "image.h"
#include "tour_reference.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <new>
#include <vector>

static const char *const default_photo = "examples/data/coffee.ppm", *const default_out = RESULTS_FOLDER "/tour";

constexpr size_t BLOCK = 256;         /* threads, where a block has no shape */
constexpr size_t TILE = 32, ROWS = 8; /* elsewhere 32 x 8 of them work on a tile of 32 x 32 samples */
constexpr size_t LEVELS = 256;        /* of gray */
constexpr size_t RADIUS = 12, TAPS = 2 * RADIUS + 1, RIMMED = TILE + 2 * RADIUS; /* of the blur */
constexpr size_t KEEP = 8;        /* the low-pass keeps 1/8 of the frequencies each way */
constexpr size_t LONGEST = 16384; /* side that is transformed: its matrix takes 1 GiB */

enum { PHOTO, LUMA, EQUALISED, HISTOGRAMS, BLURRED, TRANSPOSED, SPECTRUM, LOWPASS, PICTURES };
static const char *const picture_names[PICTURES] = {"photo",   "luma",       "equalised",    "histograms",
                                                    "blurred", "transposed", "dct-spectrum", "dct-lowpass"};

/* Rows make Y, Cb, Cr out of R, G, B, and back (ITU-R BT.601, full range, Cb and Cr around 0). */
static const float to_ycc[9] = {0.299f, 0.587f, 0.114f, -0.168736f, -0.331264f, 0.5f, 0.5f, -0.418688f, -0.081312f};
static const float to_rgb[9] = {1, 0, 1.402f, 1, -0.344136f, -0.714136f, 1, 1.772f, 0};

/* Count, mean and sum of squared deviations of a set of values. */
struct moments {
  double n, mean, squares;
  moments() = default;
  __host__ __device__ moments(float value) : n(1), mean(value), squares(0) {}
  __host__ __device__ moments(double n_, double mean_, double squares_) : n(n_), mean(mean_), squares(squares_) {}
};

/* Two sets join as Chan, Golub and LeVeque have it: nothing cancels, whatever the mean. */
struct join_moments {
  __host__ __device__ moments operator()(moments a, moments b) const {
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    const double apart = b.mean - a.mean, share = b.n / (a.n + b.n);
    return moments(a.n + b.n, fma(apart, share, a.mean), fma(apart * apart, a.n * share, a.squares + b.squares));
  }
  __host__ __device__ moments identity() const { return moments(0, 0, 0); }
};

struct results {
  float sum, least, most;
  gk_arg<float> brightest;
  moments spread;
  unsigned cdf[LEVELS];
  float energy, kept; /* of the coefficients but for the mean's, and of those that the low-pass keeps */
};

struct tour {
  size_t w, h, n, planes; /* n = w * h; planes: 1 (gray: Y) or 3 (Y, Cb, Cr) */
  size_t kw, kh;          /* frequencies that the low-pass keeps */
  image pictures[PICTURES];
  /* on the device: `planes` planes of n samples each; bytes, shown and rgb have the channels interleaved */
  unsigned char *bytes, *shown;
  float *rgb, *ycc, *work, *dct, *result;
  float *to_ycc, *to_rgb, *cosines_w, *cosines_h;
  unsigned *histogram;
  unsigned char *levels;
  results *reduced;
  /* on the host */
  results got;
  float scanned;    /* the last of the energy's running sums */
  size_t most_rows; /* of coefficients, that hold 90 % of it */
  double psnr;
  double moved, flops; /* by the step that ran last: bytes or operations */
  char note[80];       /* what its check found */
};

/* ---- helpers ---------------------------------------------------------------------------------------------------- */

static void quit(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fflush(stdout);
  fputs("tour: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

/* Device memory until the end, filled from the host or left as it is. */
static std::vector<void *> owned;

template <class T> static T *own(size_t count, const T *from = NULL) {
  void *p = NULL;
  const cudaError_t code = cudaMalloc(&p, count * sizeof(T));
  if (code == cudaErrorMemoryAllocation)
    quit("no %zu bytes left on the device: a smaller picture may fit", count * sizeof(T));
  GK_CHECK(code);
  if (from) GK_CHECK(cudaMemcpy(p, from, count * sizeof(T), cudaMemcpyHostToDevice));
  owned.push_back(p);
  return (T *)p;
}

template <class T> static std::vector<T> fetch(const T *device, size_t count) {
  std::vector<T> host(count);
  GK_CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

static int within(tour *t, double error, double tolerance) {
  snprintf(t->note, sizeof t->note, "error %.1e, allowed %.1e", error, tolerance);
  return error <= tolerance; /* NaN is not */
}

static int exact(tour *t, size_t wrong, const char *what) {
  if (wrong)
    snprintf(t->note, sizeof t->note, "%zu %s wrong", wrong, what);
  else
    snprintf(t->note, sizeof t->note, "all %s equal", what);
  return wrong == 0;
}

/* The nearest of 256 levels, ties to even: the same on every machine. */
static inline __host__ __device__ unsigned char level_of(float value) {
  return (unsigned char)rintf(fminf(fmaxf(value, 0), 255));
}

/* A tile for each block, numbered along the grid's x, because y and z end at 65535 blocks. */
struct tile_origin {
  size_t plane, x, y;
};

static __device__ tile_origin tile_of_block(size_t w, size_t h) {
  const size_t across = gk_ceil_div(w, TILE), down = gk_ceil_div(h, TILE), b = gk_block_rank();
  return tile_origin{b / (across * down), b % across * TILE, b / across % down * TILE};
}

static dim3 tiles(const tour *t) {
  return dim3((unsigned)(t->planes * gk_ceil_div(t->w, TILE) * gk_ceil_div(t->h, TILE)));
}

/* ---- colour: the photograph's bytes to Y, Cb, Cr, and back ------------------------------------------------------ */

__global__ void unpack(const unsigned char *bytes, float *values, size_t count) {
  GK_FOR_1D (i, count) values[i] = bytes[i];
}

__global__ void pack(const float *planes, unsigned char *bytes, size_t n, size_t channels) {
  GK_FOR_1D (i, n) {
    for (size_t c = 0; c < channels; c++) bytes[i * channels + c] = level_of(planes[c * n + i]);
  }
}

/* A 3 x 3 matrix times n x 3 samples, transposed: out come three planes. A gray picture is its own luma. */
static cudaError_t run_colour(void *user, cudaStream_t stream, size_t) {
  tour *t = (tour *)user;
  const size_t count = t->n * t->planes;
  gk_matmul_opts opts = {};
  opts.trans_b = 1;
  t->moved = (t->planes == 3 ? 13.0 : 5.0) * (double)count;
  if (t->planes == 1) return gk_launch(unpack, gk_grid_1d(count, BLOCK), BLOCK, 0, stream, t->bytes, t->ycc, count);
  GK_TRY(gk_launch(unpack, gk_grid_1d(count, BLOCK), BLOCK, 0, stream, t->bytes, t->rgb, count));
  return gk_matmul_ex(t->to_ycc, t->rgb, t->ycc, 3, t->n, 3, &opts, stream);
}

static image blank(size_t w, size_t h, size_t channels) {
  image made;
  image_error why;
  if (!image_new(&made, w, h, channels, &why)) quit("%s", why.text);
  return made;
}

/* Planes of w x h, the picture's own size or turned, to a picture on the host. */
static image develop(const tour *t, const float *planes, size_t w, size_t h) {
  image made = blank(w, h, t->planes);
  if (t->planes == 3) GK_CHECK(gk_matmul(t->to_rgb, planes, t->rgb, 3, t->n, 3));
  GK_LAUNCH(pack, gk_grid_1d(t->n, BLOCK), BLOCK, 0, 0, t->planes == 3 ? t->rgb : planes, t->shown, t->n, t->planes);
  GK_CHECK(cudaMemcpy(made.samples, t->shown, image_bytes(&made), cudaMemcpyDeviceToHost));
  return made;
}

static int check_colour(tour *t) {
  const unsigned char *photo = t->pictures[PHOTO].samples;
  double worst = check_planes(photo, to_ycc, fetch(t->ycc, t->n * t->planes).data(), t->n, t->planes);
  image back = develop(t, t->ycc, t->w, t->h); /* and then not one sample may be a level off */
  if (memcmp(back.samples, photo, image_bytes(&back)) != 0) worst = INFINITY;
  image_free(&back);
  return within(t, worst, 3 * 255 * FLT_EPSILON); /* three roundings of values up to 255 */
}

/* ---- statistics of the luma ------------------------------------------------------------------------------------- */

static cudaError_t run_statistics(void *user, cudaStream_t stream, size_t) {
  tour *t = (tour *)user;
  results *r = t->reduced;
  t->moved = 20.0 * (double)t->n;
  GK_TRY(gk_reduce_sum(t->ycc, &r->sum, t->n, stream));
  GK_TRY(gk_reduce_min(t->ycc, &r->least, t->n, stream));
  GK_TRY(gk_reduce_max(t->ycc, &r->most, t->n, stream));
  GK_TRY(gk_reduce_argmax(t->ycc, &r->brightest, t->n, stream));
  return gk_reduce(t->ycc, &r->spread, t->n, join_moments(), stream);
}

/* The error bounds below are worst-case bounds. They hold for a flat picture, too, whose rounding errors all have the
 * same sign; a bound for random signs does not. A value that is rounded k times is off by at most this share of itself
 * (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1). A sum of such values is off by at most this
 * share of the sum of their magnitudes. */
static double share_lost(double roundings) {
  const double unit = FLT_EPSILON / 2;
  return roundings * unit / (1 - roundings * unit);
}

/* Of a sum of n values >= 0, relative. gk_scan_inclusive() adds to a value at most 110 times, and once more for each
 * group of tiles before it. A group has 360448 values; up to 2^21 values it has fewer, but then a value takes part in
 * at most 70 additions. gk_reduce_sum() has shorter paths. */
static double sum_tolerance(const tour *t) { return share_lost(112 + 3e-6 * (double)t->n); }

static int check_statistics(tour *t) {
  const std::vector<float> y = fetch(t->ycc, t->n);
  const reference_statistics s = statistics_of(y.data(), t->n);
  const results r = t->got = fetch(t->reduced, 1)[0];
  const int same = r.least == y[s.least] && r.most == y[s.most] && r.brightest.value == y[s.most] &&
                   r.brightest.index == s.most && r.spread.n == (double)t->n;
  const double sum = relative_error(r.sum, s.sum), squares = relative_error(r.spread.squares, s.squares);
  const double mean = relative_error(r.spread.mean, s.sum / (double)t->n);
  return within(t, same ? larger_error(sum, larger_error(mean, squares)) : INFINITY, sum_tolerance(t));
}

/* ---- histogram and equalisation --------------------------------------------------------------------------------- */

/* Counts in shared memory, where threads that meet at a level cost little, and adds up what the blocks found. */
__global__ void count_levels(const float *y, unsigned *histogram, size_t n) {
  __shared__ unsigned count[LEVELS];
  for (unsigned v = gk_thread_rank(); v < LEVELS; v += BLOCK) count[v] = 0;
  __syncthreads();
  GK_FOR_1D (i, n) atomicAdd(&count[level_of(y[i])], 1u);
  __syncthreads();
  for (unsigned v = gk_thread_rank(); v < LEVELS; v += BLOCK)
    if (count[v]) atomicAdd(&histogram[v], count[v]);
}

static cudaError_t run_histogram(void *user, cudaStream_t stream, size_t) {
  tour *t = (tour *)user;
  const dim3 grid = gk_grid_1d(gk_ceil_div(t->n, (size_t)16), BLOCK); /* 16 pixels for each thread */
  t->moved = 4.0 * (double)t->n;
  GK_TRY(cudaMemsetAsync(t->histogram, 0, LEVELS * sizeof *t->histogram, stream));
  return gk_launch(count_levels, grid, BLOCK, 0, stream, t->ycc, t->histogram, t->n);
}

static int check_histogram(tour *t) {
  const size_t wrong = check_histogram_of(fetch(t->ycc, t->n).data(), fetch(t->histogram, LEVELS).data(), t->n);
  return exact(t, wrong, "bins");
}

/* One block with a thread for each level. The lowest level that occurs goes to 0 and the highest to 255; in between, a
 * level rises with the number of pixels up to it. A picture of a single level stays as it is. */
__global__ void spread_levels(const unsigned *cdf, unsigned char *levels, size_t n) {
  const unsigned v = threadIdx.x, upto = cdf[v], first = gk_block_reduce(upto ? upto : ~0u, gk_min<unsigned>());
  const size_t span = n - first, above = upto > first ? upto - first : 0;
  levels[v] = (unsigned char)(span ? (above * 255 + span / 2) / span : v);
}

__global__ void map_levels(const float *y, const unsigned char *levels, float *out, size_t n) {
  GK_FOR_1D (i, n) out[i] = levels[level_of(y[i])];
}

/* The luma is spread, the colours stay. */
static cudaError_t run_equalise(void *user, cudaStream_t stream, size_t) {
  tour *t = (tour *)user;
  const size_t rest = t->n * (t->planes - 1) * sizeof(float);
  t->moved = 8.0 * (double)(t->n * t->planes);
  GK_TRY(gk_scan_inclusive(t->histogram, t->reduced->cdf, LEVELS, gk_op_sum(), stream));
  GK_TRY(gk_launch(spread_levels, 1, LEVELS, 0, stream, t->reduced->cdf, t->levels, t->n));
  GK_TRY(gk_launch(map_levels, gk_grid_1d(t->n, BLOCK), BLOCK, 0, stream, t->ycc, t->levels, t->result, t->n));
  return rest ? cudaMemcpyAsync(t->result + t->n, t->ycc + t->n, rest, cudaMemcpyDeviceToDevice, stream) : cudaSuccess;
}

static int check_equalise(tour *t) {
  const std::vector<float> in = fetch(t->ycc, t->n * t->planes), out = fetch(t->result, t->n * t->planes);
  t->got = fetch(t->reduced, 1)[0];
  size_t wrong = check_equalised(in.data(), out.data(), t->got.cdf, t->n);
  for (size_t i = t->n; i < in.size(); i++) wrong += out[i] != in[i];
  return exact(t, wrong, "sums and samples");
}

/* ---- blur: binomial weights are a Gaussian in all but name, and exact in float ---------------------------------- */

struct blur_weights {
  float at[TAPS];
};

__global__ void blur_tile(const float *in, float *out, size_t w, size_t h, blur_weights weights) {
  __shared__ float tile[RIMMED][RIMMED], rows[RIMMED][TILE];
  const tile_origin at = tile_of_block(w, h);
  const size_t i = threadIdx.x;
  in += at.plane * w * h;
  out += at.plane * w * h;
  for (size_t j = threadIdx.y; j < RIMMED; j += ROWS)
    for (size_t k = i; k < RIMMED; k += TILE) { /* outside of the picture, its border goes on */
      const size_t x = at.x + k > RADIUS ? at.x + k - RADIUS : 0, y = at.y + j > RADIUS ? at.y + j - RADIUS : 0;
      tile[j][k] = in[(y < h ? y : h - 1) * w + (x < w ? x : w - 1)];
    }
  __syncthreads();
  for (size_t j = threadIdx.y; j < RIMMED; j += ROWS) {
    float sum = 0;
    for (size_t k = 0; k < TAPS; k++) sum = fmaf(weights.at[k], tile[j][i + k], sum);
    rows[j][i] = sum;
  }
  __syncthreads();
  for (size_t j = threadIdx.y; j < TILE; j += ROWS) {
    float sum = 0;
    for (size_t k = 0; k < TAPS; k++) sum = fmaf(weights.at[k], rows[j + k][i], sum);
    if (at.x + i < w && at.y + j < h) out[(at.y + j) * w + at.x + i] = sum;
  }
}

/* Pascal's triangle, halved from row to row, which rounds nothing off. The weights go to the kernel as a parameter:
 * parameters lie in constant memory, and the threads of a warp all read the same one at a time. */
static cudaError_t run_blur(void *user, cudaStream_t stream, size_t) {
  tour *t = (tour *)user;
  blur_weights weights = {{1}};
  for (size_t row = 1; row < TAPS; row++) {
    for (size_t k = row; k > 0; k--) weights.at[k] = (weights.at[k] + weights.at[k - 1]) / 2;
    weights.at[0] /= 2;
  }
  t->moved = 8.0 * (double)(t->n * t->planes);
  return gk_launch(blur_tile, tiles(t), dim3(TILE, ROWS), 0, stream, t->ycc, t->result, t->w, t->h, weights);
}

static int check_blur(tour *t) {
  const std::vector<float> in = fetch(t->ycc, t->n * t->planes), out = fetch(t->result, t->n * t->planes);
  double worst = 0;
  for (size_t p = 0; p < in.size(); p += t->n)
    worst = larger_error(worst, check_blurred(&in[p], &out[p], t->w, t->h, RADIUS));
  return within(t, worst, 255 * TAPS * FLT_EPSILON); /* two times, a rounding at each tap */
}

/* ---- transpose -------------------------------------------------------------------------------------------------- */

/* Reads rows and writes rows: the turn happens in shared memory, where rows of 33 spread a column over all banks. */
__global__ void transpose_tile(const float *in, float *out, size_t w, size_t h) {
  __shared__ float tile[TILE][TILE + 1];
  const tile_origin at = tile_of_block(w, h);
  const size_t i = threadIdx.x;
  in += at.plane * w * h;
  out += at.plane * w * h;
  for (size_t j = threadIdx.y; j < TILE; j += ROWS)
    if (at.x + i < w && at.y + j < h) tile[j][i] = in[(at.y + j) * w + at.x + i];
  __syncthreads();
  for (size_t j = threadIdx.y; j < TILE; j += ROWS)
    if (at.y + i < h && at.x + j < w) out[(at.x + j) * h + at.y + i] = tile[i][j];
}

static cudaError_t run_transpose(void *user, cudaStream_t stream, size_t) {
  tour *t = (tour *)user;
  t->moved = 8.0 * (double)(t->n * t->planes);
  return gk_launch(transpose_tile, tiles(t), dim3(TILE, ROWS), 0, stream, t->ycc, t->result, t->w, t->h);
}

static int check_transpose(tour *t) {
  const std::vector<float> in = fetch(t->ycc, t->n * t->planes), out = fetch(t->result, t->n * t->planes);
  size_t wrong = 0;
  for (size_t p = 0; p < in.size(); p += t->n) wrong += check_transposed(&in[p], &out[p], t->w, t->h);
  return exact(t, wrong, "samples");
}

/* ---- cosine transform (DCT-II) of the whole picture: cosines_h x picture x cosines_w transposed ------------------ */

/* cos(2 pi j / 4n) for j <= 4n. Each libm rounds cosines in its own way, and the line `bits:` depends on them. So the
 * angle is brought below pi / 4 in integers, and a Taylor sum follows whose every operation IEEE 754 rounds in one way
 * only: there is no product beside a sum that a compiler could fuse. */
static double cosine(size_t j, size_t n) {
  double sign = 1;
  if (j > 2 * n) j = 4 * n - j;
  if (j > n) {
    j = 2 * n - j;
    sign = -1;
  }
  const int sine = 2 * j > n; /* of what is left to a right angle */
  const double angle = (double)(sine ? n - j : j) * 1.5707963267948966 / (double)n;
  double sum = 1;
  for (int k = 18; k > 0; k -= 2) sum = fma(-angle * angle / (k * (sine ? k + 1 : k - 1)), sum, 1);
  return sign * (sine ? angle * sum : sum);
}

/* Orthonormal: row k is a wave of k half periods. */
static float *cosine_matrix(size_t n) {
  std::vector<double> wave(4 * n);
  std::vector<float> matrix(n * n);
  for (size_t j = 0; j < 4 * n; j++) wave[j] = cosine(j, n);
  for (size_t k = 0; k < n; k++)
    for (size_t x = 0; x < n; x++)
      matrix[k * n + x] = (float)(sqrt((k ? 2.0 : 1.0) / (double)n) * wave[(2 * x + 1) * k % (4 * n)]);
  return own(n * n, matrix.data());
}

/* The planes are a batch; the stride of 0 that a zeroed struct has gives the same cosines to all of them. */
static cudaError_t run_dct(void *user, cudaStream_t stream, size_t) {
  tour *t = (tour *)user;
  gk_matmul_opts columns = {}, rows = {};
  columns.batch = rows.batch = t->planes;
  columns.stride_b = columns.stride_c = rows.stride_a = rows.stride_c = t->n;
  rows.trans_b = 1;
  t->flops = 2.0 * (double)(t->n * t->planes) * (double)(t->w + t->h);
  GK_TRY(gk_matmul_ex(t->cosines_h, t->ycc, t->work, t->h, t->w, t->h, &columns, stream));
  return gk_matmul_ex(t->work, t->cosines_w, t->dct, t->h, t->w, t->w, &rows, stream);
}

/* Back from the low frequencies alone: a corner of the coefficients is a matrix, too, with a leading dimension. */
static cudaError_t run_lowpass(void *user, cudaStream_t stream, size_t) {
  tour *t = (tour *)user;
  gk_matmul_opts columns = {}, rows = {};
  columns.batch = rows.batch = t->planes;
  columns.trans_a = 1;
  columns.lda = t->h;
  columns.ldb = t->w;
  columns.stride_b = columns.stride_c = rows.stride_a = rows.stride_c = t->n;
  t->flops = 2.0 * (double)(t->h * t->planes * t->kw) * (double)(t->kh + t->w);
  GK_TRY(gk_matmul_ex(t->cosines_h, t->dct, t->work, t->h, t->kw, t->kh, &columns, stream));
  return gk_matmul_ex(t->work, t->cosines_w, t->result, t->h, t->w, t->kw, &rows, stream);
}

/* A sample is at most 255, but for the rounding of Y. */
static const double LARGEST_SAMPLE = 256;

/* How far a coefficient may be off. It is the sum of w h terms cosines_h[i][y] sample[y][x] cosines_w[j][x]. Each term
 * is rounded twice in the matrices, at most h times in the first product, and at most w times in the second. A row of a
 * matrix has the length 1, so its magnitudes add up to at most the root of their number (Cauchy-Schwarz), and the
 * magnitudes of all terms to at most LARGEST_SAMPLE sqrt(w h). */
static double dct_tolerance(const tour *t) {
  return share_lost((double)(t->w + t->h + 2)) * LARGEST_SAMPLE * sqrt((double)t->n);
}

/* How far a sample may be off that comes back from some coefficients. Its terms are rounded like those of a coefficient.
 * No entry of a matrix is larger than sqrt(2 / w) or sqrt(2 / h), so the magnitudes of the terms add up to at most
 * 2 / sqrt(w h) times those of the coefficients. */
static double lowpass_tolerance(const tour *t, const std::vector<float> &dct) {
  double most = 0;
  for (size_t p = 0; p < t->planes; p++) {
    double sum = 0;
    for (size_t y = 0; y < t->kh; y++)
      for (size_t x = 0; x < t->kw; x++) sum += fabs(dct[p * t->n + y * t->w + x]);
    most = fmax(most, sum);
  }
  return share_lost((double)(t->kw + t->kh + 2)) * most * 2 / sqrt((double)t->n);
}

static double worst_in_columns(tour *t, const std::vector<float> &in, const std::vector<float> &out, bool back) {
  double worst = 0;
  for (size_t p = 0; p < in.size(); p += t->n)
    worst = larger_error(worst, check_dct_columns(&in[p], &out[p], t->w, t->h, t->kw, t->kh, back));
  return worst;
}

static int check_dct(tour *t) {
  const std::vector<float> in = fetch(t->ycc, t->n * t->planes), out = fetch(t->dct, t->n * t->planes);
  return within(t, worst_in_columns(t, in, out, false), dct_tolerance(t));
}

static int check_lowpass(tour *t) {
  const std::vector<float> y = fetch(t->ycc, t->n), out = fetch(t->result, t->n * t->planes);
  const std::vector<float> dct = fetch(t->dct, t->n * t->planes);
  double squares = 0;
  for (size_t i = 0; i < t->n; i++) squares += pow((double)out[i] - y[i], 2);
  t->psnr = 10 * log10(255.0 * 255.0 * (double)t->n / squares);
  return within(t, worst_in_columns(t, dct, out, true), lowpass_tolerance(t, dct));
}

/* ---- energy: the squares of the luma's coefficients, all but the mean's ----------------------------------------- */

__global__ void square(const float *dct, float *all, float *kept, size_t w, size_t h, size_t kw, size_t kh) {
  GK_FOR_2D (x, y, w, h) {
    const size_t i = y * w + x;
    all[i] = i ? dct[i] * dct[i] : 0;
    kept[i] = x < kw && y < kh ? all[i] : 0;
  }
}

static cudaError_t run_energy(void *user, cudaStream_t stream, size_t) {
  tour *t = (tour *)user;
  float *all = t->work, *kept = t->work + t->n;
  const dim3 block(TILE, ROWS), grid = gk_grid_2d(t->w, t->h, block);
  t->moved = 28.0 * (double)t->n;
  GK_TRY(gk_launch(square, grid, block, 0, stream, t->dct, all, kept, t->w, t->h, t->kw, t->kh));
  GK_TRY(gk_reduce_sum(all, &t->reduced->energy, t->n, stream));
  GK_TRY(gk_reduce_sum(kept, &t->reduced->kept, t->n, stream));
  return gk_scan_inclusive(all, all, t->n, gk_op_sum(), stream);
}

static int check_energy(tour *t) {
  const std::vector<float> upto = fetch(t->work, t->n);
  const results r = t->got = fetch(t->reduced, 1)[0];
  double worst = energy_error(fetch(t->dct, t->n).data(), upto.data(), r.energy, r.kept, t->w, t->h, t->kw, t->kh);
  /* Parseval: the coefficients vary as much as the pixels, but for the errors of all of them, a vector of length e, and
   * for those of both sums. */
  const double e = dct_tolerance(t) * sqrt((double)t->n), squares = r.spread.squares;
  const double allowed = e * e + 2 * e * sqrt(squares) + 2 * sum_tolerance(t) * fmax(squares, 1);
  if (!(fabs(r.energy - squares) <= allowed)) worst = INFINITY;
  t->scanned = upto.back();
  for (t->most_rows = 1; upto[t->most_rows * t->w - 1] < 0.9f * t->scanned;) t->most_rows++;
  return within(t, worst, sum_tolerance(t));
}

/* ---- the steps -------------------------------------------------------------------------------------------------- */

static const struct step {
  const char *name, *what;
  gk_bench_fn run;
  int (*check)(tour *);
  int picture;   /* that can be drawn afterwards; 0: none */
  int transform; /* left out if the picture is too large for it */
} steps[] = {
    {"colour", "RGB to Y Cb Cr: matmul by 3 x 3", run_colour, check_colour, LUMA, 0},
    {"statistics", "sum, min, max, argmax, moments: reduce", run_statistics, check_statistics, 0, 0},
    {"histogram", "of the luma: shared-memory atomics", run_histogram, check_histogram, 0, 0},
    {"equalise", "by the histogram's running sum: scan", run_equalise, check_equalise, EQUALISED, 0},
    {"blur", "25 x 25 taps, separable, tiles with a halo", run_blur, check_blur, BLURRED, 0},
    {"transpose", "in padded tiles", run_transpose, check_transpose, TRANSPOSED, 0},
    {"dct", "of the whole picture: batched matmul", run_dct, check_dct, SPECTRUM, 1},
    {"energy", "of its coefficients: reduce, scan", run_energy, check_energy, 0, 1},
    {"low-pass", "back from 1/64 of them: batched matmul", run_lowpass, check_lowpass, LOWPASS, 1},
};
enum { STEPS = sizeof steps / sizeof *steps };

/* ---- pictures --------------------------------------------------------------------------------------------------- */

/* How often each level occurs: before equalisation above, after it below. */
static image draw_histograms(const tour *t) {
  const size_t bar = 3, height = 250, gap = 12;
  image made = blank(LEVELS * bar, 2 * height + gap, 1);
  memset(made.samples, 255, image_bytes(&made));
  for (size_t panel = 0; panel < 2; panel++) {
    const std::vector<size_t> count = histogram_of(fetch(panel ? t->result : t->ycc, t->n).data(), t->n);
    size_t most = 0;
    for (size_t v = 0; v < LEVELS; v++) most = count[v] > most ? count[v] : most;
    for (size_t y = 0; y < height; y++)
      for (size_t v = 0; v < LEVELS; v++)
        memset(made.samples + ((panel * (height + gap) + y) * LEVELS + v) * bar,
               (height - y) * most <= count[v] * height ? 230 : 40, bar);
  }
  return made;
}

/* Of coefficients the logarithms; the low frequencies are at the upper left. */
static image draw_plane(const tour *t, const float *plane, bool logarithms) {
  image made = blank(t->w, t->h, 1);
  const double most = log1p(255 * sqrt((double)t->n));
  const std::vector<float> value = fetch(plane, t->n);
  for (size_t i = 0; i < t->n; i++)
    made.samples[i] = level_of(logarithms ? (float)(255 / most * log1p(fabs(value[i]))) : value[i]);
  return made;
}

static void draw(tour *t, int picture) {
  image *made = &t->pictures[picture];
  if (picture == LUMA) *made = draw_plane(t, t->ycc, false);
  if (picture == SPECTRUM) *made = draw_plane(t, t->dct, true);
  if (picture == EQUALISED) t->pictures[HISTOGRAMS] = draw_histograms(t);
  if (picture == EQUALISED || picture == BLURRED || picture == LOWPASS) *made = develop(t, t->result, t->w, t->h);
  if (picture == TRANSPOSED) *made = develop(t, t->result, t->h, t->w);
}

/* All pictures at a glance, in two rows, each with a caption below. */
static image contact_sheet(const tour *t) {
  static const char *const captions[PICTURES] = {
      "photograph",       "luma",       "histogram equalised", "luma, before and after",
      "blurred, 25 x 25", "transposed", "cosine coefficients", "from 1/64 of these"};
  const size_t margin = 10, caption = 34, across = PICTURES / 2;
  const double scale = 320 / (double)(t->w > t->h ? t->w : t->h);
  const size_t w = (size_t)fmax(1, scale * (double)t->w), h = (size_t)fmax(1, scale * (double)t->h);
  image sheet = blank(across * (w + margin) + margin, 2 * (h + caption) + margin, 3);
  memset(sheet.samples, 255, image_bytes(&sheet));
  for (size_t p = 0; p < PICTURES; p++) {
    const size_t left = margin + p % across * (w + margin), top = margin + p / across * (h + caption);
    if (!t->pictures[p].samples) continue;
    image_place(&sheet, left, top, w, h, &t->pictures[p]);
    image_text(&sheet, left, top + h + 5, w, captions[p]);
  }
  return sheet;
}

static void save(const char *folder, const char *name, const char *ending, const image *picture) {
  char path[1200];
  image_error why;
  snprintf(path, sizeof path, "%s/%s.%s", folder, name, ending);
  if (!image_write(path, picture, &why)) quit("%s", why.text);
}

/* ---- the tour --------------------------------------------------------------------------------------------------- */

static unsigned bits(float value) {
  unsigned word;
  memcpy(&word, &value, sizeof word);
  return word;
}

static unsigned long long bits(double value) {
  unsigned long long word;
  memcpy(&word, &value, sizeof word);
  return word;
}

static unsigned checksum(const float *device, size_t count) {
  return image_crc32(0, fetch(device, count).data(), count * sizeof *device);
}

static void report(const tour *t, int transformed) {
  const results *r = &t->got;
  const size_t count = t->n * t->planes, at = r->brightest.index;
  printf("luma: mean %.2f, deviation %.2f, from %.2f to %.2f; the first of the brightest is at x = %zu, y = %zu\n",
         r->spread.mean, sqrt(r->spread.squares / (double)t->n), r->least, r->most, at % t->w, at / t->w);
  if (transformed)
    printf("dct: %zu x %zu of the %zu x %zu coefficients hold %.1f %% of the energy, and bring the picture back with a "
           "PSNR of %.1f dB;\n     the lowest %zu rows of %zu hold 90 %%\n",
           t->kw, t->kh, t->w, t->h, r->energy > 0 ? 100.0 * r->kept / r->energy : 100, t->psnr, t->most_rows, t->h);
  printf("bits: sum %08x min %08x max %08x argmax %08x:%zu mean %016llx squares %016llx ycc %08x cdf %08x",
         bits(r->sum), bits(r->least), bits(r->most), bits(r->brightest.value), at, bits(r->spread.mean),
         bits(r->spread.squares), checksum(t->ycc, count), image_crc32(0, r->cdf, sizeof r->cdf));
  if (transformed)
    printf(" dct %08x energy %08x kept %08x scan %08x low-pass %08x", checksum(t->dct, count), bits(r->energy),
           bits(r->kept), bits(t->scanned), checksum(t->result, count));
  printf("\n");
}

/* Not if the matrices would outgrow the memory of most devices, nor if the stand-in would take minutes. */
static int is_transformed(const image *photo, int stand_in) {
  const double w = (double)photo->width, h = (double)photo->height,
               flops = 2 * w * h * (w + h) * (double)photo->channels;
  return photo->width <= LONGEST && photo->height <= LONGEST && !(stand_in && flops > 1e11);
}

static void prepare(tour *t, int transformed) {
  const image *photo = &t->pictures[PHOTO];
  t->w = photo->width;
  t->h = photo->height;
  t->n = t->w * t->h;
  t->planes = photo->channels;
  t->kw = gk_ceil_div(t->w, KEEP);
  t->kh = gk_ceil_div(t->h, KEEP);
  const size_t count = t->n * t->planes;
  const results none = {};
  t->bytes = own(count, photo->samples);
  t->shown = own<unsigned char>(count);
  t->rgb = own<float>(count);
  t->ycc = own<float>(count);
  t->work = own<float>(count + t->n);
  t->result = own<float>(count);
  t->to_ycc = own(9, to_ycc);
  t->to_rgb = own(9, to_rgb);
  t->histogram = own<unsigned>(LEVELS);
  t->levels = own<unsigned char>(LEVELS);
  t->reduced = own(1, &none);
  if (!transformed) return;
  t->dct = own<float>(count);
  t->cosines_w = cosine_matrix(t->w);
  t->cosines_h = cosine_matrix(t->h);
}

static const char *const usage = "usage: %s [--out DIR] [picture.pgm|picture.ppm]\n"
                                 "Takes a picture (%s) through gpukit, checks and times each step,\n"
                                 "and writes what comes out to DIR (%s).\n";

struct row {
  double ms, rate;
  const char *unit;
  char note[100];
};

/* Runs, checks and times a step. On the stand-in once must do: there a step may take seconds. */
static int run_step(tour *t, const step *s, int stand_in, row *r) {
  gk_bench_opts opts = {};
  gk_bench_result took = {};
  t->moved = t->flops = 0;
  GK_CHECK(s->run(t, 0, 0));
  const int ok = s->check(t);
  if (ok) draw(t, s->picture);
  opts.bytes = t->moved;
  opts.flops = t->flops;
  if (stand_in) opts.warmup = opts.calls = opts.samples = 1;
  GK_CHECK(gk_bench(s->run, t, &opts, &took));
  r->ms = took.median_ms;
  r->rate = t->flops > 0 ? took.gflops : took.gbs;
  r->unit = t->flops > 0 ? "GFLOP/s" : "GB/s";
  snprintf(r->note, sizeof r->note, "%s: %s", ok ? "ok" : "FAILED", t->note);
  return ok;
}

int main(int argc, char **argv) {
  const char *path = default_photo, *out = default_out;
  tour t = {};
  row rows[STEPS] = {};
  int failed = 0;
  image_error why;
  gk_device_info device;
  std::set_new_handler([] { quit("no memory left on the host: a smaller picture may fit"); });
  for (int i = 1; i < argc; i++) {
    const char *arg = argv[i];
    if (strcmp(arg, "--help") == 0) return printf(usage, argv[0], default_photo, default_out) < 0;
    if (strcmp(arg, "--out") == 0 && i + 1 < argc && *argv[i + 1])
      out = argv[++i];
    else if (arg[0] == '-' || path != default_photo)
      quit("what does %s mean? --help lists the arguments", arg);
    else
      path = arg;
  }

  GK_CHECK(gk_device_query(-1, &device));
  const int stand_in = strstr(device.name, "CPU stand-in") != NULL;
  printf("gpukit %d.%d.%d on %s\n", GPUKIT_VERSION_MAJOR, GPUKIT_VERSION_MINOR, GPUKIT_VERSION_PATCH, device.name);
  if (!image_read(path, &t.pictures[PHOTO], &why))
    quit("%s%s", why.text, path == default_photo ? "; run this where examples/ is, or name another picture" : "");
  const int transformed = is_transformed(&t.pictures[PHOTO], stand_in);
  prepare(&t, transformed);
  printf("%s: %zu x %zu, %s\n", path, t.w, t.h, t.planes == 3 ? "colour" : "gray");

  for (int i = 0; i < STEPS; i++) {
    printf("[%2d/%d] %-11s ", i + 1, STEPS, steps[i].name);
    fflush(stdout);
    if (steps[i].transform && !transformed)
      snprintf(rows[i].note, sizeof rows[i].note, "left out: too large a picture for it");
    else
      failed += !run_step(&t, &steps[i], stand_in, &rows[i]);
    puts(rows[i].note);
  }
  if (failed) quit("%d of %d steps failed; no picture is written", failed, STEPS);
  report(&t, transformed);

  if (!image_make_directory(out, &why)) quit("%s", why.text);
  for (int p = LUMA; p < PICTURES; p++)
    if (t.pictures[p].samples) save(out, picture_names[p], t.pictures[p].channels == 3 ? "ppm" : "pgm", &t.pictures[p]);
  image sheet = contact_sheet(&t);
  save(out, "tour", "ppm", &sheet);
  save(out, "tour", "png", &sheet);
  printf("pictures: %s/tour.png shows them all\n\n", out);

  printf(stand_in ? "Times of the stand-in, on this computer's CPU: they say nothing about any GPU.\n"
                  : "Times on the GPU, caches warm: medians of 30 samples.\n");
  printf("%-11s | %-42s | %10s | %15s | %s\n", "step", "what", "time ms", "rate", "check");
  for (int i = 0; i < STEPS; i++) {
    char ms[32] = "", rate[32] = "";
    if (rows[i].ms > 0) {
      snprintf(ms, sizeof ms, "%.4f", rows[i].ms);
      snprintf(rate, sizeof rate, "%.*f %s", rows[i].rate < 1 ? 3 : 1, rows[i].rate, rows[i].unit);
    }
    printf("%-11s | %-42s | %10s | %15s | %s\n", steps[i].name, steps[i].what, ms, rate, rows[i].note);
  }

  image_free(&sheet);
  for (int p = 0; p < PICTURES; p++) image_free(&t.pictures[p]);
  for (void *p : owned) GK_CHECK(cudaFree(p));
  return 0;
}
