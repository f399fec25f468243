#include "reduce.h"

void bench_reduce_integers() {
  reduce_type<int>();
  reduce_type<long long>();
  reduce_type<signed char>();
  reduce_type<unsigned char>();
  for (const bench_size *s = bench_sizes(false); s->n; s++)
    reduce_contest<reduce_sum<unsigned char>>(*s, BENCH_COLD, REDUCE_MISALIGNED_SELF);
}
