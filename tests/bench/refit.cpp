/* Fits the planner's costs in gpukit.cuh to files of the bench: see usage. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "refit.h"

#include <fstream>
#include <string.h>

static const char usage[] = "refit FILE.csv...   fits the planner's costs to half of the shapes in files of `bench "
                            "--plan-times=FILE.csv`, and\n"
                            "                    prints the table, and what is lost by the plans that the planner "
                            "chooses by it and by that of\n"
                            "                    the header against the best plans measured, over the other half\n";

static void print_figures(const char *name, const refit_table &table, const std::vector<refit_shape> &shapes) {
  const refit_losses losses = refit_losses_by(table, shapes);
  printf("%-12s %6zu %9.1f%% %8.2f%% %8.2f%% %8.2f%% %12zu  %s\n", name, losses.shapes,
         100 * refit_figures_by(table, shapes).error, 100 * losses.mean, 100 * losses.percentile_95, 100 * losses.worst,
         losses.not_measured, losses.worst_at.c_str());
}
static void print_half(const char *title, const refit_table &fitted, const std::vector<refit_shape> &shapes) {
  printf("\n%s\n%-12s %6s %10s %9s %9s %9s %12s  %s\n", title, "table", "shapes", "estimates", "loses", "95 %", "worst",
         "not measured", "at");
  for (const char *type : {"f32", "f64"}) {
    std::vector<refit_shape> of_type;
    for (const refit_shape &shape : shapes)
      if (shape.times.shape.type == type) of_type.push_back(shape);
    if (of_type.empty()) continue;
    print_figures((std::string(type) + " header").c_str(), refit_header(), of_type);
    print_figures((std::string(type) + " fitted").c_str(), fitted, of_type);
  }
}

int main(int argc, char **argv) {
  refit_data data;
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
    refit_add(&data, file);
  }
  const refit_table fitted = refit_fit(refit_header(), data.fitted, 200);
  printf("\nfitted to %zu shapes:\n\n%s\n%s", data.fitted.size(), refit_initialiser(fitted).c_str(),
         refit_tiles(fitted).c_str());
  print_half("shapes that it was not fitted to", fitted, data.checked);
  print_half("shapes that it was fitted to", fitted, data.fitted);
  printf(
      "\nestimates: how far they are off, in the mean; loses: the share of the time that the best measured plan would "
      "save\n");
  return 0;
}
