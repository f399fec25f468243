/* tour_reference.h: what tour.cu computes on the GPU, once more in plain loops on the CPU, in double and with libm.
 * Each function compares a result with its own and returns the largest error, or the number of wrong values.
 */
#ifndef TOUR_REFERENCE_H
#define TOUR_REFERENCE_H

#include <math.h>
#include <stddef.h>
#include <vector>

/* The larger of two errors. A NaN counts as larger than any number; fmax() would drop it. */
static inline double larger_error(double a, double b) { return a >= b || a != a ? a : b; }

/* What separates a value from its reference, against the larger of the reference and 1. */
static inline double relative_error(double value, double reference) {
  return fabs(value - reference) / fmax(fabs(reference), 1);
}

/* Planes out of interleaved samples: one of them a copy, or three by the rows of a 3 x 3 matrix. */
static inline double check_planes(const unsigned char *in, const float *matrix, const float *out, size_t n,
                                  size_t planes) {
  double worst = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t p = 0; p < planes; p++) {
      double sum = planes == 1 ? in[i] : 0;
      for (size_t c = 0; c < planes && planes > 1; c++) sum += (double)matrix[p * 3 + c] * in[i * 3 + c];
      worst = larger_error(worst, fabs(out[p * n + i] - sum));
    }
  return worst;
}

struct reference_statistics {
  double sum, squares; /* of all values; of what separates them from the mean */
  size_t least, most;  /* indices, the first ones */
};

static inline reference_statistics statistics_of(const float *y, size_t n) {
  reference_statistics s = {0, 0, 0, 0};
  for (size_t i = 0; i < n; i++) {
    s.sum += y[i];
    if (y[i] < y[s.least]) s.least = i;
    if (y[i] > y[s.most]) s.most = i;
  }
  for (size_t i = 0; i < n; i++) s.squares += (y[i] - s.sum / (double)n) * (y[i] - s.sum / (double)n);
  return s;
}

static inline std::vector<size_t> histogram_of(const float *y, size_t n) {
  std::vector<size_t> count(256);
  for (size_t i = 0; i < n; i++) count[(size_t)lrintf(y[i] < 0 ? 0 : y[i] > 255 ? 255 : y[i])]++;
  return count;
}

static inline size_t check_histogram_of(const float *y, const unsigned *histogram, size_t n) {
  const std::vector<size_t> count = histogram_of(y, n);
  size_t wrong = 0;
  for (size_t v = 0; v < 256; v++) wrong += histogram[v] != count[v];
  return wrong;
}

static inline size_t check_equalised(const float *y, const float *out, const unsigned *cdf, size_t n) {
  const std::vector<size_t> count = histogram_of(y, n);
  size_t upto = 0, first = 0, wrong = 0;
  float level[256];
  for (size_t v = 0; v < 256; v++) {
    upto += count[v];
    if (first == 0) first = upto;
    wrong += cdf[v] != upto;
    level[v] = (float)(n == first ? v : upto == 0 ? 0 : ((upto - first) * 255 + (n - first) / 2) / (n - first));
  }
  for (size_t i = 0; i < n; i++) wrong += out[i] != level[lrintf(y[i] < 0 ? 0 : y[i] > 255 ? 255 : y[i])];
  return wrong;
}

/* Weights (2r over k) / 4^r along one line of samples; its ends go on. */
template <class T> static void blur_line(const T *in, double *out, size_t n, size_t stride, int radius) {
  for (size_t x = 0; x < n; x++) {
    double sum = 0, weight = ldexp(1, -2 * radius);
    for (int k = 0; k <= 2 * radius; k++) {
      const double at = fmin(fmax((double)x + k - radius, 0), (double)n - 1);
      sum += weight * in[(size_t)at * stride];
      weight = weight * (2 * radius - k) / (k + 1);
    }
    out[x * stride] = sum;
  }
}

static inline double check_blurred(const float *in, const float *out, size_t w, size_t h, int radius) {
  std::vector<double> rows(w * h), both(w * h);
  double worst = 0;
  for (size_t y = 0; y < h; y++) blur_line(in + y * w, &rows[y * w], w, 1, radius);
  for (size_t x = 0; x < w; x++) blur_line(&rows[x], &both[x], h, w, radius);
  for (size_t i = 0; i < w * h; i++) worst = larger_error(worst, fabs(out[i] - both[i]));
  return worst;
}

static inline size_t check_transposed(const float *in, const float *out, size_t w, size_t h) {
  size_t wrong = 0;
  for (size_t y = 0; y < h; y++)
    for (size_t x = 0; x < w; x++) wrong += out[x * h + y] != in[y * w + x];
  return wrong;
}

/* The orthonormal DCT of n samples: sample x of wave k. */
struct reference_waves {
  size_t n;
  std::vector<double> wave;
  explicit reference_waves(size_t n_) : n(n_), wave(4 * n_) {
    for (size_t j = 0; j < 4 * n; j++) wave[j] = sqrt(2 / (double)n) * cos(acos(-1.0) / 2 / (double)n * (double)j);
  }
  double at(size_t k, size_t x) const { return wave[(2 * x + 1) * k % (4 * n)] * (k ? 1 : sqrt(0.5)); }
};

/* All of a DCT would take too long, so some columns are summed, each in all its rows: from w x h samples to their
 * coefficients, or back from the first kw x kh coefficients to samples. */
static inline double check_dct_columns(const float *in, const float *out, size_t w, size_t h, size_t kw, size_t kh,
                                       bool back) {
  const size_t columns = w < 16 ? w : 16, in_w = back ? kw : w, in_h = back ? kh : h;
  const reference_waves wave_w(w), wave_h(h);
  std::vector<double> row(h);
  double worst = 0;
  for (size_t s = 0; s < columns; s++) {
    const size_t column = columns > 1 ? s * (w - 1) / (columns - 1) : 0;
    for (size_t y = 0; y < in_h; y++) {
      row[y] = 0;
      for (size_t x = 0; x < in_w; x++) row[y] += in[y * w + x] * (back ? wave_w.at(x, column) : wave_w.at(column, x));
    }
    for (size_t y = 0; y < h; y++) {
      double sum = 0;
      for (size_t i = 0; i < in_h; i++) sum += row[i] * (back ? wave_h.at(i, y) : wave_h.at(y, i));
      worst = larger_error(worst, fabs(out[y * w + column] - sum));
    }
  }
  return worst;
}

/* Running sums of the squares of all but the first, and the part of the first kw x kh: errors against the whole. */
static inline double energy_error(const float *in, const float *upto, float all, float kept, size_t w, size_t h,
                                  size_t kw, size_t kh) {
  double sum = 0, part = 0, worst = 0;
  for (size_t i = 0; i < w * h; i++) {
    const double energy = i ? (double)in[i] * in[i] : 0;
    sum += energy;
    if (i % w < kw && i / w < kh) part += energy;
    worst = larger_error(worst, fabs(upto[i] - sum));
  }
  return larger_error(worst, larger_error(fabs(all - sum), fabs(kept - part))) / fmax(sum, 1);
}

#endif
