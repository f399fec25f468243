/* Random shapes and sizes, the same ones from the same seed on every machine. */
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Knuth's 64-bit congruential generator, of which the high bits are used. */
struct random_numbers {
  uint64_t state;
  uint64_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  }
  size_t below(uint64_t limit) { return static_cast<size_t>(next() % limit); }
  /* As likely between 32 and 64 as between 4096 and 8192. */
  size_t log_uniform(double least, double most) {
    const double share = static_cast<double>(next()) * 0x1p-31;
    return static_cast<size_t>(lround(least * exp2(share * log2(most / least))));
  }
};
/* The seed is hashed (the finaliser of splitmix64), since neighbouring states of the generator are correlated. */
inline random_numbers random_from(uint64_t seed) {
  seed = (seed + 1) * 0x9e3779b97f4a7c15u;
  seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
  return random_numbers{seed ^ seed >> 31};
}

struct random_shape {
  size_t m, n, k;
  bool trans_a, trans_b;
};
/* Edges are multiples of `unit`, a divisor of 32. */
inline random_shape next_shape(random_numbers *numbers, size_t unit) {
  random_shape shape = {};
  size_t *const edges[] = {&shape.m, &shape.n, &shape.k};
  for (size_t *edge : edges) {
    *edge = numbers->log_uniform(32, 8192);
    *edge -= *edge % unit;
  }
  shape.trans_a = numbers->below(2), shape.trans_b = numbers->below(2);
  return shape;
}
/* Edges up to `most`, all equally likely. */
inline random_shape next_uniform_shape(random_numbers *numbers, size_t most) {
  random_shape shape = {};
  shape.m = 1 + numbers->below(most), shape.n = 1 + numbers->below(most), shape.k = 1 + numbers->below(most);
  shape.trans_a = numbers->below(2), shape.trans_b = numbers->below(2);
  return shape;
}

#endif
