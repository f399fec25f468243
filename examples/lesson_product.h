/* lesson_product.h: matrices whose product is known without a loop over k for each element, a matrix that counts its
 * loads, and cuBLAS for comparison.
 *
 *   const product p(&l, shape{m, n, k});                         p.a times p.b has to be p.expected, in p.c
 *   if (PRODUCT_BY_CUBLAS) product_by_cublas(p);                 if the program could be linked with it
 */
#ifndef LESSON_PRODUCT_H
#define LESSON_PRODUCT_H

#include "lesson.h"
#ifdef LESSON_CUBLAS
#include <cublas_v2.h>
#endif

typedef struct shape {
  size_t m, n, k; /* A is m x k, B is k x n, C is m x n */
} shape;

/* -2 to 2, different for neighbouring rows and columns. */
inline int product_digit(size_t i, unsigned seed) {
  return (int)(((unsigned)i * 2654435761u ^ seed * 40503u) >> 7) % 5 - 2;
}

/* A[y][i] = digit(y) + digit(i), and B likewise. So each element of the product follows from three sums over i, and is
 * exact in floats in any order of additions. */
struct product {
  shape s;
  const float *a, *b;
  float *c;
  std::vector<float> expected;

  product(lesson *l, shape size) : s(size), expected(size.m * size.n) {
    std::vector<float> of_a(s.m * s.k), of_b(s.k * s.n);
    long sum_a = 0, sum_b = 0, sum_ab = 0;
    for (size_t i = 0; i < s.k; i++) {
      const int in_a = product_digit(i, 2), in_b = product_digit(i, 3);
      for (size_t y = 0; y < s.m; y++) of_a[y * s.k + i] = (float)(product_digit(y, 1) + in_a);
      for (size_t x = 0; x < s.n; x++) of_b[i * s.n + x] = (float)(in_b + product_digit(x, 4));
      sum_a += in_a, sum_b += in_b, sum_ab += in_a * in_b;
    }
    for (size_t y = 0; y < s.m; y++)
      for (size_t x = 0; x < s.n; x++) {
        const long of_row = product_digit(y, 1), of_column = product_digit(x, 4);
        expected[y * s.n + x] = (float)(of_row * (sum_b + (long)s.k * of_column) + sum_ab + sum_a * of_column);
      }
    a = lesson_array(l, of_a), b = lesson_array(l, of_b), c = lesson_array<float>(l, s.m * s.n);
  }
};

/* A matrix that counts how often each element is loaded, for kernels that take any type with an index operator. */
typedef struct counting {
  const float *values;
  unsigned *loads;
  __device__ float operator[](size_t i) const {
    atomicAdd(&loads[i], 1u);
    return values[i];
  }
} counting;

/* cuBLAS stores matrices by columns, so these matrices are transposed ones to it: it computes C' = B' A'. Its handle
 * lasts as long as the program. */
#ifdef LESSON_CUBLAS
enum { PRODUCT_BY_CUBLAS = 1 };
inline void product_by_cublas(const product &p) {
  static cublasHandle_t cublas;
  const float one = 1, zero = 0;
  const int m = (int)p.s.m, n = (int)p.s.n, k = (int)p.s.k;
  if (!cublas) {
    GK_CHECK(cublasCreate(&cublas));
    atexit([] { cublasDestroy(cublas); });
  }
  GK_CHECK(cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, p.b, n, p.a, k, &zero, p.c, n));
}
#else
enum { PRODUCT_BY_CUBLAS = 0 };
inline void product_by_cublas(const product &) {}
#endif

#endif
