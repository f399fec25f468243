#include "reduce.h"

void bench_reduce_floats() {
  reduce_type<double>();
  reduce_type<__half>();
  for (const bench_size *s = bench_sizes(false); s->n; s++)
    reduce_contest<reduce_sum<__half>>(*s, BENCH_COLD, REDUCE_MISALIGNED_SELF);
  reduce_random<__half>();
  reduce_type<__nv_bfloat16>();
  reduce_type<float>();
  for (const bench_size *s = bench_sizes(true); s->n; s++) {
    reduce_contest<reduce_custom>(*s, BENCH_COLD);
    reduce_contest<reduce_sum<float>>(*s, BENCH_COLD | BENCH_STREAM, REDUCE_NO_SCRATCH);
    reduce_contest<reduce_sum<float>>(*s, BENCH_COLD, REDUCE_MISALIGNED);
  }
  for (const bench_size *s = bench_sizes(false); s->n; s++)
    reduce_contest<reduce_sum<float>>(*s, BENCH_COLD, REDUCE_MISALIGNED_SELF);
  reduce_random<float>();
}
