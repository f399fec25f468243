#include "scan.h"

void bench_scan_floats() {
  scan_type<double>();
  scan_type<__half>();
  scan_random<__half>();
  scan_type<__nv_bfloat16>();
  scan_type<float>();
  for (const bench_size *s = bench_sizes(true); s->n; s++) {
    scan_contest<scan_custom>(*s, BENCH_COLD);
    scan_contest<scan_custom>(*s, BENCH_COLD, SCAN_PLAIN, true);
    scan_contest<scan_sum<float, false>>(*s, BENCH_COLD | BENCH_STREAM, SCAN_NO_SCRATCH);
  }
  scan_random<float>();
}
