/* lesson.h: the harness of the lessons: arguments, device arrays, measuring, checks and the table.
 *
 *   static const lesson_about about = {"10_transpose", "rows become columns", "rows", 8192, 256, 1, 32768, "GB/s"};
 *   int main(int argc, char **argv) {
 *     lesson l;
 *     lesson_begin(&l, &about, argc, argv);
 *     lesson_row *naive = lesson_measure(&l, "naive", bytes, [=] { transpose<<<grid, block>>>(in, out, l.n); });
 *     lesson_expect(&l, naive, out, expected);
 *     lesson_table(&l);
 *     lesson_say(&l, "...");
 *     return lesson_end(&l);
 *   }
 *
 * On a GPU a row has a time. On the CPU stand-in, whose times say nothing about a GPU, it has what a profiler counts,
 * if the lesson was built for that (`make lessons`, or `make cpu STATS=1`). l.mode tells which of the two.
 * examples/README.md says what the columns are. */
#ifndef LESSON_H
#define LESSON_H

#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vector>

typedef struct lesson_about {
  const char *name, *idea; /* in one line */
  const char *counts;      /* what n is a number of */
  size_t n, n_on_cpu;      /* the defaults */
  size_t least, most;      /* of n */
  const char *unit;        /* of the rates: GB/s or GFLOP/s */
} lesson_about;

/* Of one run: the memory requests of warps, and how many sectors of 32 bytes of global memory, or passes through the
 * banks of shared memory, a request took. */
typedef struct lesson_counters {
  double requests, load_sectors, store_sectors, load_passes, store_passes;
  double branches, divergent, diverged_warps;
  double sectors;                        /* loaded, in all */
  double global_atomics, shared_atomics; /* of single threads */
} lesson_counters;

typedef struct lesson_row {
  char variant[48];
  double us, rate, speedup;             /* on a GPU */
  double registers, local_bytes, warps; /* of a thread; warps of a multiprocessor; 0: not shown */
  lesson_counters counted;              /* on the stand-in */
  double occupancy;                     /* of a multiprocessor, in percent, where a lesson is about it */
  const struct lesson_row *beside;      /* the row with a speedup of 1; NULL: the base of the table */
} lesson_row;

enum lesson_mode { LESSON_TIMED, LESSON_COUNTED, LESSON_CHECKED };
enum { LESSON_ROWS = 96, LESSON_ARRAYS = 32 };

typedef struct lesson {
  const lesson_about *about;
  size_t n;
  lesson_mode mode;
  gk_device_info device;
  lesson_row rows[LESSON_ROWS];
  int row_count, base; /* base: the row with a speedup of 1 */
  /* On the stand-in. By default a table has what accesses cost, and not how branches divide warps. */
  bool hide_accesses, show_branches;
  int failed;
  FILE *csv;    /* NULL: no CSV */
  int csv_only; /* the CSV goes to stdout, in place of the table */
  void *arrays[LESSON_ARRAYS];
  int array_count;
} lesson;

/* ---- arguments, beginning and end ------------------------------------------------------------------------------- */

#ifdef __GNUC__
#define LESSON_PRINTF(nth, first) __attribute__((format(printf, nth, first)))
#else
#define LESSON_PRINTF(nth, first)
#endif

/* Prints a line, in the CSV as a comment; not after a check has failed, since figures of wrong results mean nothing. */
LESSON_PRINTF(2, 3) inline void lesson_say(lesson *l, const char *format, ...) {
  char line[512];
  va_list args;
  if (l->failed) return;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (!l->csv_only) printf("%s\n", line);
  if (l->csv) fprintf(l->csv, "# %s\n", line);
}

LESSON_PRINTF(2, 3) inline void lesson_refuse(const lesson_about *about, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s: ", about->name);
  vfprintf(stderr, format, args);
  fprintf(stderr, "; see --help\n");
  va_end(args);
  exit(2);
}

inline size_t lesson_number(const lesson_about *about, const char *text) {
  char *end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno || value < about->least || value > about->most)
    lesson_refuse(about, "--n=%s: a whole number from %zu to %zu is needed", text, about->least, about->most);
  return (size_t)value;
}

inline void lesson_help(const lesson_about *about) {
  printf("%s: %s\n\n"
         "  --n=N        %s, %zu to %zu; default: %zu on a GPU, %zu on the CPU stand-in\n"
         "  --csv        prints comma-separated values in place of the table\n"
         "  --csv=FILE   writes them to a file, beside the table\n"
         "  --help       prints this\n",
         about->name, about->idea, about->counts, about->least, about->most, about->n, about->n_on_cpu);
  exit(0);
}

/* What the figures of a CSV depend on, besides the GPU. COMMIT is what `make lessons COMMIT=...` is given. */
inline void lesson_origin(const lesson *l) {
  const char *const commit = getenv("COMMIT");
  int driver = 0, runtime = 0;
  if (!l->csv) return;
  GK_CHECK(cudaDriverGetVersion(&driver));
  GK_CHECK(cudaRuntimeGetVersion(&runtime));
  if (commit && *commit) fprintf(l->csv, "# commit: %s\n", commit);
  fprintf(l->csv, "# software: driver %d, runtime %d, gpukit %d.%d.%d\n", driver, runtime, GPUKIT_VERSION_MAJOR,
          GPUKIT_VERSION_MINOR, GPUKIT_VERSION_PATCH);
}

inline void lesson_begin(lesson *l, const lesson_about *about, int argc, char **argv) {
  memset(l, 0, sizeof *l);
  l->about = about;
#ifndef CUDA_ON_CPU
  l->mode = LESSON_TIMED;
#elif defined(CUDA_CPU_TRACE)
  l->mode = LESSON_COUNTED;
#else
  l->mode = LESSON_CHECKED;
#endif
  l->n = l->mode == LESSON_TIMED ? about->n : about->n_on_cpu;
  for (int i = 1; i < argc; i++) {
    const char *const a = argv[i];
    if (!strcmp(a, "--help") || !strcmp(a, "-h"))
      lesson_help(about);
    else if (!strncmp(a, "--n=", 4))
      l->n = lesson_number(about, a + 4);
    else if (!strcmp(a, "--n") && i + 1 < argc)
      l->n = lesson_number(about, argv[++i]);
    else if (!strcmp(a, "--csv"))
      l->csv_only = 1, l->csv = stdout;
    else if (!strncmp(a, "--csv=", 6) && a[6]) {
      l->csv_only = 0, l->csv = fopen(a + 6, "w");
      if (!l->csv) lesson_refuse(about, "%s cannot be written: %s", a + 6, strerror(errno));
    } else
      lesson_refuse(about, "%s: unknown argument, or its value is missing", a);
  }
  GK_CHECK(gk_device_query(-1, &l->device));
  lesson_say(l, "%s: %s", about->name, about->idea);
  if (l->mode == LESSON_TIMED)
    lesson_say(l, "%s, sm_%d%d, %d SMs, %.0f GB/s in theory; n = %zu", l->device.name, l->device.major, l->device.minor,
               l->device.sms, l->device.peak_gbs, l->n);
  else
    lesson_say(l, "CPU stand-in, n = %zu. Its times are not GPU times and are not shown; %s", l->n,
               l->mode == LESSON_COUNTED ? "memory requests of warps are counted" : "only results are checked");
  if (l->mode == LESSON_TIMED) lesson_origin(l);
}

/* The lesson's exit status. */
inline int lesson_end(lesson *l) {
  for (int i = 0; i < l->array_count; i++) GK_CHECK(cudaFree(l->arrays[i]));
  if (l->csv && fflush(l->csv)) {
    fprintf(stderr, "%s: the CSV could not be written: %s\n", l->about->name, strerror(errno));
    l->failed = 1;
  }
  if (l->csv && !l->csv_only) fclose(l->csv);
  return l->failed;
}

/* ---- device arrays and checks ----------------------------------------------------------------------------------- */

/* Device memory, freed by lesson_end(). All bits are ones: NaN as float or double, -1 as int. */
template <class T> T *lesson_array(lesson *l, size_t count) {
  T *p = NULL;
  if (l->array_count == LESSON_ARRAYS) lesson_refuse(l->about, "more than %d arrays", (int)LESSON_ARRAYS);
  GK_CHECK(cudaMalloc(&p, (count ? count : 1) * sizeof(T)));
  GK_CHECK(cudaMemset(p, 0xff, count * sizeof(T)));
  l->arrays[l->array_count++] = p;
  return p;
}

template <class T> T *lesson_array(lesson *l, const std::vector<T> &from) {
  T *const p = lesson_array<T>(l, from.size());
  GK_CHECK(cudaMemcpy(p, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}

LESSON_PRINTF(3, 4) inline void lesson_wrong(lesson *l, const lesson_row *row, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s: %s: ", l->about->name, row->variant);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  l->failed = 1;
}

/* Checks the device's values, and overwrites them, so that no later variant passes with the results of this one. */
template <class T> void lesson_expect(lesson *l, const lesson_row *row, T *device, const std::vector<T> &expected) {
  std::vector<T> got(expected.size());
  size_t wrong = 0, first = 0;
  GK_CHECK(cudaMemcpy(got.data(), device, got.size() * sizeof(T), cudaMemcpyDeviceToHost));
  for (size_t i = got.size(); i-- > 0;)
    if (!(got[i] == expected[i])) wrong++, first = i;
  if (wrong)
    lesson_wrong(l, row, "%zu of %zu values are wrong, the first at %zu: %.9g, not %.9g", wrong, got.size(), first,
                 (double)got[first], (double)expected[first]);
  memset(static_cast<void *>(got.data()), 0xff, got.size() * sizeof(T)); /* cudaMemset() is for the current GPU only */
  GK_CHECK(cudaMemcpy(device, got.data(), got.size() * sizeof(T), cudaMemcpyHostToDevice));
}

/* The same for memory that the host can access, after waiting for the device. */
template <class T> void lesson_expect_here(lesson *l, const lesson_row *row, T *host, const std::vector<T> &expected) {
  GK_CHECK(cudaDeviceSynchronize());
  size_t i = 0;
  while (i < expected.size() && host[i] == expected[i]) i++;
  if (i < expected.size()) lesson_wrong(l, row, "value %zu is %.9g, not %.9g", i, (double)host[i], (double)expected[i]);
  memset(host, 0xff, expected.size() * sizeof(T));
}

/* ---- measuring -------------------------------------------------------------------------------------------------- */

#ifdef CUDA_CPU_TRACE
inline lesson_counters lesson_take_counters() {
  const cuda_cpu_counters c = cuda_cpu_take_counters();
  const auto each = [](unsigned long long cost, unsigned long long requests) {
    return requests ? (double)cost / (double)requests : 0;
  };
  lesson_counters k;
  k.requests = (double)(c.global_loads + c.global_stores + c.shared_loads + c.shared_stores);
  k.load_sectors = each(c.global_load_sectors, c.global_loads);
  k.store_sectors = each(c.global_store_sectors, c.global_stores);
  k.load_passes = each(c.shared_load_passes, c.shared_loads);
  k.store_passes = each(c.shared_store_passes, c.shared_stores);
  k.branches = (double)c.branches;
  k.divergent = (double)c.divergent_branches;
  k.diverged_warps = (double)c.diverged_warps;
  k.sectors = (double)c.global_load_sectors;
  k.global_atomics = (double)c.global_atomics;
  k.shared_atomics = (double)c.shared_atomics;
  return k;
}
#endif

template <class Launch> cudaError_t lesson_launch(void *launch, cudaStream_t, size_t) {
  (*(Launch *)launch)();
  return cudaGetLastError();
}

inline lesson_row *lesson_new_row(lesson *l, const char *variant) {
  if (l->row_count == LESSON_ROWS) lesson_refuse(l->about, "more than %d variants", (int)LESSON_ROWS);
  lesson_row *const row = &l->rows[l->row_count++];
  snprintf(row->variant, sizeof row->variant, "%s", variant);
  return row;
}

/* Measures one row: launch() starts the variant's kernels on the default stream, and is called many times. work: the
 * bytes or operations of one call, by the unit of the lesson; 0: the row has no rate. */
template <class Launch> lesson_row *lesson_measure(lesson *l, const char *variant, double work, Launch launch) {
  lesson_row *const row = lesson_new_row(l, variant);
  if (l->mode == LESSON_TIMED) {
    gk_bench_opts opts = {};
    gk_bench_result result = {};
    opts.bytes = work; /* or operations: the rate is in the unit of the lesson */
    if (getenv("GPUKIT_TEST_SLOWED")) opts.warmup = opts.samples = opts.calls = 1; /* under compute-sanitizer */
    GK_CHECK(gk_bench(lesson_launch<Launch>, &launch, &opts, &result));
    row->us = 1000 * result.median_ms;
    row->rate = result.gbs;
    return row;
  }
#ifdef CUDA_CPU_TRACE
  cuda_cpu_take_counters();
  cuda_cpu_count(true);
#endif
  GK_CHECK(lesson_launch<Launch>(&launch, 0, 0));
  GK_CHECK(cudaDeviceSynchronize());
#ifdef CUDA_CPU_TRACE
  cuda_cpu_count(false);
  row->counted = lesson_take_counters();
#endif
  return row;
}

/* The same for work that needs a preparation before each run, which is not timed: the median of five runs. */
template <class Ready, class Launch>
lesson_row *lesson_measure_fresh(lesson *l, const char *variant, double work, Ready ready, Launch launch) {
  double us[5];
  const int runs = (int)(sizeof us / sizeof *us);
  if (l->mode != LESSON_TIMED) {
    ready();
    return lesson_measure(l, variant, work, launch);
  }
  lesson_row *const row = lesson_new_row(l, variant);
  gk_timer timer = {};
  GK_CHECK(gk_timer_create(&timer));
  for (double &sample : us) {
    float ms;
    ready();
    GK_CHECK(cudaDeviceSynchronize());
    GK_CHECK(gk_timer_start(&timer, 0));
    GK_CHECK(lesson_launch<Launch>(&launch, 0, 0));
    GK_CHECK(gk_timer_stop(&timer));
    GK_CHECK(gk_timer_ms(&timer, &ms));
    sample = 1000 * ms;
  }
  GK_CHECK(gk_timer_destroy(&timer));
  for (int i = 1; i < runs; i++)
    for (int j = i; j > 0 && us[j] < us[j - 1]; j--) {
      const double t = us[j];
      us[j] = us[j - 1], us[j - 1] = t;
    }
  row->us = us[runs / 2];
  row->rate = work / row->us * 1e-3;
  return row;
}

/* The host's clock, for work of the host. */
inline double lesson_now_us(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

typedef struct lesson_column {
  const char *title, *csv_title;
  int decimals;
  size_t offset; /* of a double in a row */
  bool hidden;   /* in the text; a CSV has all columns */
} lesson_column;

inline double lesson_value(const lesson_row *row, const lesson_column *c) {
  return *(const double *)((const char *)row + c->offset);
}

/* The text leaves out columns of zeros; a row without a rate has a dash. */
inline void lesson_columns(lesson *l, const lesson_column *columns, int count) {
  int width = (int)strlen("variant"), shown[16];
  for (int i = 0; i < l->row_count; i++)
    if ((int)strlen(l->rows[i].variant) > width) width = (int)strlen(l->rows[i].variant);
  for (int c = 0; c < count; c++) {
    shown[c] = 0;
    for (int i = 0; i < l->row_count && !columns[c].hidden; i++)
      shown[c] |= lesson_value(&l->rows[i], &columns[c]) != 0;
  }
  if (!l->csv_only) {
    printf("\n%-*s", width, "variant");
    for (int c = 0; c < count; c++)
      if (shown[c]) printf(" | %13s", columns[c].title);
    for (int i = 0; i < l->row_count; i++) {
      printf("\n%-*s", width, l->rows[i].variant);
      for (int c = 0; c < count; c++)
        if (shown[c] && l->mode == LESSON_TIMED && lesson_value(&l->rows[i], &columns[c]) == 0)
          printf(" | %13s", "-");
        else if (shown[c])
          printf(" | %13.*f", columns[c].decimals, lesson_value(&l->rows[i], &columns[c]));
    }
    printf("\n\n");
  }
  if (l->csv) {
    const int timed = l->mode == LESSON_TIMED;
    fprintf(l->csv, "lesson,n,variant%s", timed ? ",unit" : "");
    for (int c = 0; c < count; c++) fprintf(l->csv, ",%s", columns[c].csv_title);
    for (int i = 0; i < l->row_count; i++) {
      fprintf(l->csv, "\n%s,%zu,%s%s%s", l->about->name, l->n, l->rows[i].variant, timed ? "," : "",
              timed ? l->about->unit : "");
      for (int c = 0; c < count; c++) fprintf(l->csv, ",%.6g", lesson_value(&l->rows[i], &columns[c]));
    }
    fprintf(l->csv, "\n");
  }
}

inline void lesson_table(lesson *l) {
  const lesson_column times[] = {
      {"time us", "time_us", 2, offsetof(lesson_row, us), false},
      {l->about->unit, "rate", 1, offsetof(lesson_row, rate), false},
      {"speedup", "speedup", 2, offsetof(lesson_row, speedup), false},
      {"occupancy %", "occupancy", 1, offsetof(lesson_row, occupancy), false},
      {"registers", "registers", 0, offsetof(lesson_row, registers), false},
      {"local bytes", "local_bytes", 0, offsetof(lesson_row, local_bytes), false},
      {"warps/SM", "warps_per_sm", 0, offsetof(lesson_row, warps), false},
  };
  const lesson_column counters[] = {
      {"occupancy %", "occupancy", 1, offsetof(lesson_row, occupancy), false},
      {"requests", "requests", 0, offsetof(lesson_row, counted.requests), false},
      {"sectors/load", "sectors_per_load", 2, offsetof(lesson_row, counted.load_sectors), l->hide_accesses},
      {"sectors/store", "sectors_per_store", 2, offsetof(lesson_row, counted.store_sectors), l->hide_accesses},
      {"passes/load", "passes_per_load", 2, offsetof(lesson_row, counted.load_passes), l->hide_accesses},
      {"passes/store", "passes_per_store", 2, offsetof(lesson_row, counted.store_passes), l->hide_accesses},
      {"branches", "branches", 0, offsetof(lesson_row, counted.branches), !l->show_branches},
      {"divergent", "divergent_branches", 0, offsetof(lesson_row, counted.divergent), !l->show_branches},
      {"diverged warps", "diverged_warps", 0, offsetof(lesson_row, counted.diverged_warps), !l->show_branches},
      {"global atomics", "global_atomics", 0, offsetof(lesson_row, counted.global_atomics), false},
      {"shared atomics", "shared_atomics", 0, offsetof(lesson_row, counted.shared_atomics), false},
  };
  for (int i = 0; i < l->row_count; i++) {
    const lesson_row *const base = l->rows[i].beside ? l->rows[i].beside : &l->rows[l->base];
    if (base->rate > 0) l->rows[i].speedup = l->rows[i].rate / base->rate;
  }
  if (l->mode == LESSON_TIMED) lesson_columns(l, times, (int)(sizeof times / sizeof *times));
  if (l->mode == LESSON_COUNTED) lesson_columns(l, counters, (int)(sizeof counters / sizeof *counters));
}

#endif
