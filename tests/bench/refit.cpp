/* Fits the planners' costs in gpukit.cuh to files of the bench: see usage. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "refit.h"
#include "refit_mma.h"

#include <fstream>
#include <string.h>

static const char usage[] =
    "refit [--keep=reduce.] FILE.csv...\n"
    "    Fits the planners' costs to half of the shapes in files of `bench --plan-times=FILE.csv`. Prints the tables,\n"
    "    and what the plans that are chosen by them and by those of the header lose against the best plans measured,\n"
    "    over either half. --keep=reduce. keeps the costs of reducing partials, on which products by mma.sync depend,\n"
    "    too: for files that have no such products.\n";

static void print_heading(const char *title) {
  printf("\n%s\n%-16s %6s %10s %9s %9s %9s %12s  %s\n", title, "table", "shapes", "estimates", "loses", "95 %", "worst",
         "not measured", "at");
}
template <class Table, class Shape>
static void print_losses(const std::string &name, const Table &table, const std::vector<Shape> &shapes) {
  const refit_losses losses = refit_losses_by(table, shapes);
  printf("%-16s %6zu %9.1f%% %8.2f%% %8.2f%% %8.2f%% %12zu  %s\n", name.c_str(), losses.shapes, 100 * losses.error,
         100 * losses.mean, 100 * losses.percentile_95, 100 * losses.worst, losses.not_measured,
         losses.worst_at.c_str());
}
template <class Table, class Shapes>
static void print_half(const char *title, const std::string &type, const Table &header, const Table &fitted,
                       const Shapes &shapes) {
  print_heading(title);
  print_losses(type + " header", header, shapes);
  print_losses(type + " fitted", fitted, shapes);
}
/* Fits the numbers of one type, in `table`. */
static void fit_strict(const refit_data &data, const std::string &kept, refit_table *table) {
  if (data.fitted.empty()) return;
  *table = refit_fit(*table, data, 20000, kept);
  const char *const type = data.doubles ? "f64" : "f32";
  print_half("shapes that it was not fitted to", type, refit_header(), *table, data.checked);
  print_half("shapes that it was fitted to", type, refit_header(), *table, data.fitted);
}
static void fit_mma(const refit_mma_data &data, const std::string &type, const gk__reduce_costs &reduce) {
  if (data.fitted.empty()) return;
  const refit_mma_table header = refit_mma_header(type);
  const int steps = 8000;
  const refit_mma_table start = {reduce, header.tiles}, fitted = refit_mma_fit(start, data.fitted, steps);
  std::vector<refit_mma_shape> all = data.fitted;
  all.insert(all.end(), data.checked.begin(), data.checked.end());
  printf("\nmma.sync, %s: gk__mma_tiles, fitted to all %zu shapes; below, what a fit to half of them is worth:\n\n%s",
         type.c_str(), all.size(), refit_mma_initialiser(refit_mma_fit(start, all, steps)).c_str());
  print_half("shapes that it was not fitted to", type, header, fitted, data.checked);
  print_half("shapes that it was fitted to", type, header, fitted, data.fitted);
}

int main(int argc, char **argv) {
  refit_data floats = {false, {}, {}}, doubles = {true, {}, {}};
  std::string kept = "nothing";
  const char *const mma_types[] = {"f16", "tf32", "emulated"};
  refit_mma_data mma[3];
  if (argc < 2 || (argv[1][0] == '-' && strncmp(argv[1], "--keep=", 7))) {
    const bool help = argc > 1 && !strcmp(argv[1], "--help");
    fputs(usage, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  for (int i = 1; i < argc; i++) {
    if (!strncmp(argv[i], "--keep=", 7)) {
      kept = argv[i] + 7;
      continue;
    }
    plan_file file;
    std::string bad;
    std::ifstream from(argv[i]);
    if (!from) return perror(argv[i]), 2;
    if (!read_plans(from, &file, &bad)) return fprintf(stderr, "%s: not a plan: %s\n", argv[i], bad.c_str()), 2;
    if (file.shapes.empty() || file.sms() < 1)
      return fprintf(stderr, "%s: has no plans, or no line \"# sms: \"\n", argv[i]), 2;
    printf("%s: %zu shapes, %s, build %s, commit %s\n", argv[i], file.shapes.size(), file.head.get("gpu").c_str(),
           file.head.get("build").c_str(), file.head.get("commit").c_str());
    refit_add(&floats, file);
    refit_add(&doubles, file);
    for (size_t type = 0; type < 3; type++) refit_mma_add(&mma[type], file, mma_types[type]);
    for (const plan_times &times : file.shapes)
      if (is_mma_type(times.shape.type) && file.smem_limit() == 0)
        return fprintf(stderr, "%s: has plans of mma.sync, but no line \"# smem: \"\n", argv[i]), 2;
  }
  refit_table table = refit_header();
  fit_strict(floats, kept, &table);
  fit_strict(doubles, kept, &table);
  if (!floats.fitted.empty() || !doubles.fitted.empty())
    printf("\nstrict products:\n\n%s\n%s\n%s", refit_initialiser(table.costs.reduce).c_str(),
           refit_initialiser(table.costs).c_str(), refit_print_tiles(table).c_str());
  for (size_t type = 0; type < 3; type++) fit_mma(mma[type], mma_types[type], table.costs.reduce);
  printf(
      "\nestimates: how far they are off, in the mean; loses: the share of the time that the best measured plan would "
      "save;\nnot measured: choices of plans without a time; the measured plan with the least estimate counts "
      "instead\n");
  return 0;
}
