/* Fits the planners' costs in gpukit.cuh to files of the bench: see usage. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "refit.h"
#include "refit_mma.h"

#include <fstream>
#include <string.h>

static const char usage[] =
    "refit FILE.csv...   fits the planners' costs to half of the shapes in files of `bench --plan-times=FILE.csv`, "
    "and\n"
    "                    prints the tables, and what is lost by the plans that are chosen by them and by those of the\n"
    "                    header against the best plans measured, over either half\n";

static void print_heading(const char *title) {
  printf("\n%s\n%-16s %6s %10s %9s %9s %9s %12s  %s\n", title, "table", "shapes", "estimates", "loses", "95 %", "worst",
         "not measured", "at");
}
static void print_figures(const std::string &name, size_t shapes, double error, double mean, double percentile_95,
                          double worst, size_t not_measured, const std::string &worst_at) {
  printf("%-16s %6zu %9.1f%% %8.2f%% %8.2f%% %8.2f%% %12zu  %s\n", name.c_str(), shapes, 100 * error, 100 * mean,
         100 * percentile_95, 100 * worst, not_measured, worst_at.c_str());
}

/* --- Strict products ----------------------------------------------------------------------------------------------*/

static void print_strict(const std::string &name, const refit_table &table, const std::vector<refit_shape> &shapes) {
  const refit_losses losses = refit_losses_by(table, shapes);
  print_figures(name, losses.shapes, refit_figures_by(table, shapes).error, losses.mean, losses.percentile_95,
                losses.worst, losses.not_measured, losses.worst_at);
}
static void print_half(const char *title, const refit_table &fitted, const std::vector<refit_shape> &shapes) {
  print_heading(title);
  for (const char *type : {"f32", "f64"}) {
    std::vector<refit_shape> of_type;
    for (const refit_shape &shape : shapes)
      if (shape.times.shape.type == type) of_type.push_back(shape);
    if (of_type.empty()) continue;
    print_strict(std::string(type) + " header", refit_header(), of_type);
    print_strict(std::string(type) + " fitted", fitted, of_type);
  }
}
static refit_table fit_strict(const refit_data &data) {
  if (data.fitted.empty()) return refit_header();
  const refit_table fitted = refit_fit(refit_header(), data.fitted, 200);
  printf("\nstrict products, fitted to %zu shapes:\n\n%s\n%s\n%s", data.fitted.size(),
         refit_initialiser(fitted.costs.reduce).c_str(), refit_initialiser(fitted.costs).c_str(),
         refit_tiles(fitted).c_str());
  print_half("shapes that it was not fitted to", fitted, data.checked);
  print_half("shapes that it was fitted to", fitted, data.fitted);
  return fitted;
}

/* --- Products by mma.sync -----------------------------------------------------------------------------------------*/

static void print_mma(const std::string &name, const refit_mma_table &table,
                      const std::vector<refit_mma_shape> &shapes) {
  const refit_mma_losses losses = refit_mma_losses_by(table, shapes);
  print_figures(name, losses.shapes, losses.error, losses.mean, losses.percentile_95, losses.worst, losses.not_measured,
                losses.worst_at);
}
static void print_half(const char *title, const std::string &type, const refit_mma_table &fitted,
                       const std::vector<refit_mma_shape> &shapes) {
  print_heading(title);
  print_mma(type + " header", refit_mma_header(type), shapes);
  print_mma(type + " fitted", fitted, shapes);
}
static void fit_mma(const refit_mma_data &data, const std::string &type, const gk__reduce_costs &reduce) {
  if (data.fitted.empty()) return;
  const refit_mma_table fitted = refit_mma_fit({reduce, refit_mma_header(type).tiles}, data.fitted, 5000);
  printf("\nmma.sync, %s: gk__mma_tiles, fitted to %zu shapes:\n\n%s", type.c_str(), data.fitted.size(),
         refit_mma_initialiser(fitted).c_str());
  print_half("shapes that it was not fitted to", type, fitted, data.checked);
  print_half("shapes that it was fitted to", type, fitted, data.fitted);
}

int main(int argc, char **argv) {
  refit_data strict;
  const char *const mma_types[] = {"f16", "tf32", "emulated"};
  refit_mma_data mma[3];
  if (argc < 2 || argv[1][0] == '-') {
    const bool help = argc > 1 && !strcmp(argv[1], "--help");
    fputs(usage, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  for (int i = 1; i < argc; i++) {
    plan_file file;
    std::string bad;
    std::ifstream from(argv[i]);
    if (!from) return perror(argv[i]), 2;
    if (!read_plans(from, &file, &bad)) return fprintf(stderr, "%s: not a plan: %s\n", argv[i], bad.c_str()), 2;
    if (file.shapes.empty() || file.sms() < 1)
      return fprintf(stderr, "%s: has no plans, or no line \"# sms: \"\n", argv[i]), 2;
    printf("%s: %zu shapes, %s, build %s, commit %s\n", argv[i], file.shapes.size(), file.head.get("gpu").c_str(),
           file.head.get("build").c_str(), file.head.get("commit").c_str());
    refit_add(&strict, file);
    for (size_t type = 0; type < 3; type++) refit_mma_add(&mma[type], file, mma_types[type]);
    for (const plan_times &times : file.shapes)
      if (is_mma_type(times.shape.type) && file.smem_limit() == 0)
        return fprintf(stderr, "%s: has plans of mma.sync, but no line \"# smem: \"\n", argv[i]), 2;
  }
  const gk__reduce_costs reduce = fit_strict(strict).costs.reduce;
  for (size_t type = 0; type < 3; type++) fit_mma(mma[type], mma_types[type], reduce);
  printf(
      "\nestimates: how far they are off, in the mean; loses: the share of the time that the best measured plan would "
      "save;\nnot measured: choices of plans without a time, which are in no figure of strict products. By mma.sync "
      "the "
      "measured plan\nwith the least estimate counts instead\n");
  return 0;
}
