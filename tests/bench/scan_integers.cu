#include "scan.h"

/* In place with integers: the sums of sums of floats would soon be infinite, those of integers stay as they are, any
 * bits alike. */
void bench_scan_integers() {
  scan_type<long long>();
  scan_type<signed char>();
  scan_type<unsigned char>();
  scan_type<int>();
  for (const bench_size *s = bench_sizes(true); s->n; s++) {
    scan_contest<scan_sum<int, false>>(*s, BENCH_COLD, SCAN_IN_PLACE);
    scan_contest<scan_sum<int, false>>(*s, BENCH_COLD, SCAN_IN_PLACE, true);
  }
}
