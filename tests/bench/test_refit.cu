/* The fits of the planners' costs (refit.h, refit_mma.h), on made-up times of plans: that they find the tables
 * again by which the times were made, and what they say of the choices. */
#include "test.h"

#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#ifndef CUDA_ON_CPU
TEST(costs_are_found_again) { SKIP("needs no GPU"); }
#else

#include "tests/bench/random.h"
#include "tests/bench/refit.h"
#include "tests/bench/refit_mma.h"

namespace {

const double made_mhz = 1800;

/* Every number of the header's table is between 0.7 and 1.4 times as large. */
refit_table known_table() {
  refit_table table = refit_header();
  random_numbers draw = random_from(5);
  for (const bool doubles : {false, true})
    for (const refit_entry &entry : refit_entries(&table, doubles)) {
      const double factor = 0.7 + 0.7 * static_cast<double>(draw.below(1000)) / 1000;
      *entry.value = static_cast<unsigned>(lround(*entry.value * factor));
    }
  table.costs.floats.busy[0] = 48, table.costs.floats.busy[1] = 81;
  return table;
}
/* So many shapes of a type, whose times are the estimates by the table, up to 1 % more or less. */
template <class Acc, class RefitAcc>
void add_made_up(plan_file *file, const char *type, unsigned hopper, size_t count, const refit_table &table) {
  random_numbers draw = random_from(hopper ? 1 : 2);
  for (size_t i = 0; i < count; i++) {
    const random_shape s = next_shape(&draw, i / 2 % 2 ? 32 : 1);
    plan_times times = {{type, s.m, s.n, s.k, s.trans_a, s.trans_b, hopper}, made_mhz, {}};
    times.plans = plans_to_measure<Acc>(times.shape, 132);
    refit_shape shape = {times, 132};
    refit_in_use() = table;
    for (plan_time &plan : shape.times.plans) {
      const double noise = 0.99 + 0.02 * static_cast<double>(draw.below(1000)) / 1000;
      plan.us = static_cast<double>(plan_clocks<RefitAcc>(times.shape, plan, 132)) / made_mhz * noise;
    }
    refit_in_use() = refit_header();
    file->shapes.push_back(shape.times);
  }
}
plan_file made_up_file(const refit_table &table) {
  plan_file file;
  file.head.remarks = {"gpu: made up", "build: none", "commit: none", "sms: 132"};
  add_made_up<float, refit_float>(&file, "f32", 2, 120, table);
  add_made_up<float, refit_float>(&file, "f32", 0, 80, table);
  add_made_up<double, refit_double>(&file, "f64", 2, 60, table);
  return file;
}

const gk__matmul_gpu mma_gpu = {132, 232448, GK_PLAN_MMA};

/* Every cost of the header's table is between 0.7 and 1.4 times as large. */
refit_mma_table known_mma_table(const std::string &type) {
  refit_mma_table table = refit_mma_header(type);
  random_numbers draw = random_from(7);
  for (size_t i = 0; i < table.tiles.size() * REFIT_MMA_NUMBERS; i++)
    *refit_mma_number(&table, i) *= 0.7 + 0.7 * static_cast<double>(draw.below(1000)) / 1000;
  return table;
}
/* So many shapes of a type, whose times are the estimates by the table, up to 1 % more or less. */
void add_made_up_mma(plan_file *file, const char *type, size_t count) {
  const refit_mma_table table = known_mma_table(type);
  random_numbers draw = random_from(*type == 't' ? 1 : 2);
  for (size_t i = 0; i < count; i++) {
    const random_shape s = next_shape(&draw, i / 2 % 2 ? 32 : 1);
    refit_mma_shape shape = {{{type, s.m, s.n, s.k, false, true, false}, made_mhz, {}}, mma_gpu};
    const refit_mma_estimates estimates = refit_mma_estimate(table, shape);
    for (const gk__mma_plan &plan : mma_plans_to_measure(shape.times.shape, mma_gpu)) {
      plan_time time = mma_plan_time(plan);
      time.us = estimates.of(time) * (0.99 + 0.02 * static_cast<double>(draw.below(1000)) / 1000);
      shape.times.plans.push_back(time);
    }
    file->shapes.push_back(shape.times);
  }
}
plan_file made_up_mma_file() {
  plan_file file;
  file.head.remarks = {"gpu: made up", "build: none", "commit: none", "sms: 132", "smem: 232448"};
  add_made_up_mma(&file, "f16", 80);
  add_made_up_mma(&file, "tf32", 80);
  add_made_up_mma(&file, "emulated", 80);
  return file;
}

} // namespace

/* A number that were left out would never be fitted. */
TEST(all_numbers_of_the_table_are_fitted) {
  refit_table table = refit_header();
  std::vector<refit_entry> entries = refit_entries(&table, false);
  for (const refit_entry &entry : refit_entries(&table, true)) entries.push_back(entry);
  for (int i = 0; i < gk__tiles<float>::item_count; i++)
    if (gk__tiles<float>::facts(i).hopper) entries.push_back({"not used", &table.f32.shares[i], true});
  EXPECT_EQ(entries.size() * sizeof(unsigned), sizeof(table));
  for (const refit_entry &entry : entries) (*entry.value)++;
  const refit_table header = refit_header();
  unsigned before[sizeof(table) / sizeof(unsigned)], after[sizeof(table) / sizeof(unsigned)];
  memcpy(before, &header, sizeof(table));
  memcpy(after, &table, sizeof(table));
  for (size_t i = 0; i < entries.size(); i++) EXPECT_EQ(after[i], before[i] + 1);
}
TEST(all_costs_of_mma_sync_are_fitted) {
  refit_mma_table table = refit_mma_header("f16");
  const refit_mma_table header = table;
  EXPECT_EQ(sizeof(gk__mma_cost), REFIT_MMA_NUMBERS * sizeof(double) + sizeof(double)); /* and the blocks of an SM */
  for (size_t i = 0; i < table.tiles.size() * REFIT_MMA_NUMBERS; i++) *refit_mma_number(&table, i) += 1;
  for (size_t i = 0; i < table.tiles.size(); i++) {
    const gk__mma_cost &is = table.tiles[i], &was = header.tiles[i];
    EXPECT(is.stage == was.stage + 1 && is.stage_rate == was.stage_rate + 1 && is.start == was.start + 1 &&
           is.split == was.split + 1);
    EXPECT_EQ(is.blocks, was.blocks);
  }
}
TEST(files_of_plans_are_written_and_read) {
  plan_file file = made_up_file(known_table());
  const plan_file mma_file = made_up_mma_file();
  file.head = mma_file.head;
  file.shapes.insert(file.shapes.end(), mma_file.shapes.begin(), mma_file.shapes.end());
  std::stringstream text;
  plan_file read;
  std::string bad;
  write_plans(text, file);
  EXPECT(read_plans(text, &read, &bad));
  EXPECT_EQ(read.sms(), 132);
  EXPECT_EQ(read.smem_limit(), 232448);
  EXPECT_EQ(read.head.get("gpu"), "made up");
  EXPECT_EQ(read.shapes.size(), file.shapes.size());
  for (size_t i = 0; i < read.shapes.size() && i < file.shapes.size(); i++) {
    EXPECT(read.shapes[i].shape == file.shapes[i].shape);
    EXPECT(read.shapes[i].plans == file.shapes[i].plans);
  }
  for (const char *line : {"f32,1,2,3", "f32,64,64,64,0,0,0,7x7,1,1.0,1800", "f32,64,64,64,0,0,0,64x64,1,0,1800",
                           "f32,64,64,64,0,0,0,64x64,0,1,1800", "f64,64,64,64,0,0,0,48x32,1,1,1800",
                           "f32,64,64,64,0,0,0,64x64,5,1,1800", "f16,64,64,64,0,0,0,32x64,1,1,1800",
                           "emulated,64,64,64,0,0,0,128x256,1,1,1800", "bf16,64,64,64,0,0,0,64x64,1,1,1800"}) {
    std::istringstream wrong(line);
    EXPECT(!read_plans(wrong, &read, &bad));
    EXPECT_EQ(bad, line);
  }
}
/* Whatever the planner chooses is among the plans that are measured. */
TEST(chosen_plans_are_measured) {
  random_numbers draw = random_from(3);
  for (size_t i = 0; i < 300; i++) {
    const random_shape s = next_shape(&draw, i / 2 % 2 ? 32 : 1);
    const plan_shape shape = {i % 7 ? "f32" : "f64", s.m, s.n, s.k, s.trans_a, s.trans_b, i % 3 ? 2u : 0u};
    const std::vector<plan_time> all = i % 7 ? plan_all<float>(shape) : plan_all<double>(shape);
    const std::vector<plan_time> plans =
        i % 7 ? plans_to_measure<float>(shape, 132) : plans_to_measure<double>(shape, 132);
    const plan_time chosen = i % 7 ? plan_chosen<float>(shape, 132) : plan_chosen<double>(shape, 132);
    EXPECT(plans[0] == chosen);
    EXPECT(plans.size() > 2 && plans.size() <= 40);
    for (const plan_time &plan : plans) EXPECT_EQ(std::count(all.begin(), all.end(), plan), 1);
    /* By the header's table a replaced one chooses the same. */
    EXPECT((i % 7 ? plan_chosen<refit_float>(shape, 132) : plan_chosen<refit_double>(shape, 132)) == chosen);
  }
}
TEST(losses_of_choices) {
  const plan_shape shape = {"f32", 512, 512, 512, false, false, false};
  plan_times times = {shape, made_mhz, plans_to_measure<float>(shape, 132)};
  for (plan_time &plan : times.plans) plan.us = 10; /* the first one is the planner's */
  times.plans[1].us = 8;
  std::vector<refit_shape> shapes(4, {times, 132});
  shapes[1].times.plans[1].us = 20;
  shapes[2].times.plans.erase(shapes[2].times.plans.begin());
  shapes[2].times.plans[0].us = 10; /* the plan with the least estimate is no better or worse than the others */
  shapes[3].times.plans[2].us = 5;
  const refit_losses losses = refit_losses_by(refit_header(), shapes);
  EXPECT_EQ(losses.shapes, size_t(4));
  EXPECT_EQ(losses.not_measured, size_t(1));
  EXPECT(fabs(losses.mean - (0.2 + 0 + 0 + 0.5) / 4) < 1e-9);
  EXPECT(fabs(losses.worst - 0.5) < 1e-9 && fabs(losses.percentile_95 - 0.5) < 1e-9);
  EXPECT_EQ(losses.worst_at, "f32 512x512x512");
  const double lost = log(10.0 / 8) + log(10.0 / 5), off = 4 * losses.error;
  EXPECT(off > 0 && fabs(refit_badness(refit_header(), shapes, 0.3) - lost - 0.1 * off - 0.3) < 1e-9);
  /* All estimates are equally wrong. */
  for (plan_time &plan : shapes[0].times.plans)
    plan.us = 3 * static_cast<double>(plan_clocks<float>(shape, plan, 132)) / made_mhz;
  shapes.resize(1);
  EXPECT(fabs(refit_losses_by(refit_header(), shapes).error - log(3)) < 1e-9);
}
/* Of a shape that was measured with Hopper's kernels the choice without them is fitted, too. */
TEST(shapes_of_hopper_are_also_portable_ones) {
  refit_data data = {false, {}, {}};
  refit_add(&data, made_up_file(refit_header()));
  EXPECT_EQ(data.fitted.size(), size_t(60 + 60 + 40));
  EXPECT_EQ(data.checked.size(), size_t(60 + 60 + 40));
  for (size_t i = 0; i < 120; i++) {
    const plan_shape &shape = data.fitted[i].times.shape;
    EXPECT_EQ(shape.hopper, i % 2 ? 0u : 2u);
    EXPECT_EQ(shape.m, data.fitted[i - i % 2].times.shape.m);
    for (const plan_time &plan : data.fitted[i].times.plans)
      EXPECT(shape.hopper || !gk__tiles<float>::facts(plan.tile_idx).hopper);
  }
}
TEST(costs_are_found_again) {
  refit_table known = known_table();
  for (const bool is_doubles : {false, true}) {
    refit_data data = {is_doubles, {}, {}};
    refit_add(&data, made_up_file(known));
    refit_table fitted = refit_fit(refit_header(), data, 8000);
    /* Over shapes that it was not fitted to. The times have up to 1 % of noise. */
    const refit_losses header_loses = refit_losses_by(refit_header(), data.checked),
                       fitted_loses = refit_losses_by(fitted, data.checked),
                       known_loses = refit_losses_by(known, data.checked);
    EXPECT(header_loses.error > 0.05 && fitted_loses.error < header_loses.error / 3);
    EXPECT(known_loses.mean < header_loses.mean); /* not 0: the planner splits k for the tiles of all GPUs */
    EXPECT(fitted_loses.mean < known_loses.mean + 0.005);
    EXPECT(fitted_loses.percentile_95 < known_loses.percentile_95 + 0.02);
    /* What most of the time depends on, and nothing else can stand for. */
    const std::vector<refit_entry> is = refit_entries(&fitted, is_doubles), was = refit_entries(&known, is_doubles);
    size_t found = 0;
    for (size_t i = 0; i < is.size(); i++)
      for (const char *name :
           {"full_tile.each[1]", "half_tile.each[0]", "half_tile.each[1]", "f64_tile_0.share", "f64_tile_2.share"})
        if (is[i].name == name) {
          found++;
          EXPECT(fabs(double(*is[i].value) / *was[i].value - 1) < 0.06);
        }
    EXPECT_EQ(found, is_doubles ? size_t(2) : size_t(3));
  }
}
/* Every plan that is measured is one of the planner's, the chosen one is the first, and none is there twice. */
TEST(chosen_plans_of_mma_sync_are_measured) {
  random_numbers draw = random_from(3);
  for (size_t i = 0; i < 300; i++) {
    const random_shape s = next_shape(&draw, i / 2 % 2 ? 32 : 1);
    const char *const type = i % 3 == 0 ? "f16" : i % 3 == 1 ? "tf32" : "emulated";
    const refit_mma_shape shape = {{{type, s.m, s.n, s.k, false, true, false}, made_mhz, {}}, mma_gpu};
    const std::vector<gk__mma_plan> plans = mma_plans_to_measure(shape.times.shape, mma_gpu);
    const gk__mma_plan chosen = i % 3 == 0   ? gk__cheapest_mma_plan<1, __half>({s.m, s.n, s.k, 1, mma_gpu})
                                : i % 3 == 1 ? gk__cheapest_mma_plan<1, float>({s.m, s.n, s.k, 1, mma_gpu})
                                             : gk__cheapest_mma_plan<6, __nv_bfloat16>({s.m, s.n, s.k, 1, mma_gpu});
    EXPECT(plans[0].config == chosen.config && plans[0].partitions == chosen.partitions);
    EXPECT(plans.size() >= static_cast<size_t>(mma_tiles_of(type).count) && plans.size() <= 31);
    const refit_mma_estimates estimates = refit_mma_estimate(refit_mma_header(type), shape);
    std::vector<plan_time> times;
    for (const gk__mma_plan &plan : plans) {
      times.push_back(mma_plan_time(plan));
      EXPECT(estimates.of(times.back()) == plan.cost);
      EXPECT_EQ(mma_tile_of(type, mma_tile_name(type, plan.config)), plan.config);
      EXPECT_EQ(std::count(times.begin(), times.end(), times.back()), 1);
    }
  }
}
TEST(losses_of_choices_of_mma_sync) {
  refit_mma_shape shape = {{{"f16", 512, 512, 2048, false, true, false}, made_mhz, {}}, mma_gpu};
  for (const gk__mma_plan &plan : mma_plans_to_measure(shape.times.shape, mma_gpu)) {
    shape.times.plans.push_back(mma_plan_time(plan));
    shape.times.plans.back().us = 10;
  }
  std::vector<refit_mma_shape> shapes(4, shape);
  shapes[0].times.plans[1].us = 8; /* the first one is the planner's */
  shapes[1].times.plans[1].us = 20;
  shapes[2].times.plans.erase(shapes[2].times.plans.begin());
  shapes[3].times.plans[2].us = 5;
  const refit_losses losses = refit_losses_by(refit_mma_header("f16"), shapes);
  EXPECT_EQ(losses.shapes, size_t(4));
  EXPECT_EQ(losses.not_measured, size_t(1));
  EXPECT(fabs(losses.mean - (0.2 + 0 + 0 + 0.5) / 4) < 1e-9);
  EXPECT(fabs(losses.worst - 0.5) < 1e-9 && fabs(losses.percentile_95 - 0.5) < 1e-9);
  EXPECT_EQ(losses.worst_at, "f16 512x512x2048 B'");
  const double lost = log(10.0 / 8) + log(10.0 / 5), off = 4 * losses.error;
  EXPECT(off > 0 && fabs(refit_badness(refit_mma_header("f16"), shapes, 0) - lost - 0.1 * off) < 1e-9);
  /* All estimates are equally wrong. */
  const refit_mma_estimates estimates = refit_mma_estimate(refit_mma_header("f16"), shape);
  for (plan_time &plan : shapes[0].times.plans) plan.us = 3 * estimates.of(plan);
  shapes.resize(1);
  EXPECT(fabs(refit_losses_by(refit_mma_header("f16"), shapes).error - log(3)) < 1e-9);
  EXPECT(fabs(refit_badness(refit_mma_header("f16"), shapes, 0) - 0.1 * log(3)) < 1e-9);
}
TEST(costs_of_mma_sync_are_found_again) {
  const plan_file file = made_up_mma_file();
  for (const std::string type : {"f16", "tf32", "emulated"}) {
    refit_mma_data data;
    refit_mma_add(&data, file, type);
    EXPECT_EQ(data.fitted.size(), size_t(40));
    EXPECT_EQ(data.checked.size(), data.fitted.size());
    refit_mma_table known = known_mma_table(type), fitted = refit_mma_fit(refit_mma_header(type), data.fitted, 4000);
    /* Over shapes that it was not fitted to. The times have up to 1 % of noise. */
    const refit_losses header_loses = refit_losses_by(refit_mma_header(type), data.checked),
                       fitted_loses = refit_losses_by(fitted, data.checked);
    EXPECT(header_loses.error > 0.05 && header_loses.mean > fitted_loses.mean);
    EXPECT(fitted_loses.error < 0.006 && fitted_loses.mean < 0.001 && fitted_loses.worst < 0.02);
    for (size_t i = 0; i < known.tiles.size(); i++) {
      const gk__mma_cost &is = fitted.tiles[i], &was = known.tiles[i];
      const auto full_stage = [](const gk__mma_cost &cost) {
        const double rate = cost.stage_rate * cost.blocks;
        return rate > cost.stage ? rate : cost.stage;
      };
      EXPECT(fabs(full_stage(is) / full_stage(was) - 1) < 0.02);
      EXPECT(fabs(is.start / was.start - 1) < 0.03);
      EXPECT_EQ(is.blocks, was.blocks);
    }
  }
}
/* The costs of the reduction are those of the table. */
TEST(costs_of_mma_sync_with_other_reductions) {
  const refit_mma_shape shape = {{{"f16", 512, 512, 2048, false, true, false}, made_mhz, {}}, mma_gpu};
  const refit_mma_table header = refit_mma_header("f16");
  refit_mma_table other = header;
  other.reduce.launch += 1755; /* clocks of a microsecond */
  const refit_mma_estimates was = refit_mma_estimate(header, shape), is = refit_mma_estimate(other, shape);
  EXPECT(is.us[1][1] == was.us[1][1]);
  EXPECT(fabs(is.us[1][2] - was.us[1][2] - 1) < 1e-9);
  EXPECT(is.cheapest.plan.cost >= was.cheapest.plan.cost);
}
/* Costs of a tile of which nothing is known stay, and a plan that the planner does not have is no harm. */
TEST(costs_of_mma_sync_without_data_stay) {
  plan_file file = made_up_mma_file();
  refit_mma_data data;
  for (plan_times &times : file.shapes) {
    const auto is_large = [](const plan_time &plan) { return plan.tile_idx == 0; };
    times.plans.erase(std::remove_if(times.plans.begin(), times.plans.end(), is_large), times.plans.end());
  }
  file.shapes[0].plans.assign(1, {1, 31, 1});
  refit_mma_add(&data, file, "f16");
  refit_mma_table fitted = refit_mma_fit(refit_mma_header("f16"), data.fitted, 1000), header = refit_mma_header("f16");
  for (size_t i = 0; i < REFIT_MMA_NUMBERS; i++) EXPECT(*refit_mma_number(&fitted, i) == *refit_mma_number(&header, i));
  EXPECT(refit_losses_by(fitted, data.checked).error < refit_losses_by(header, data.checked).error / 2);
  data.fitted.resize(1);
  data.fitted[0].times.plans[0].partitions = 1000;
  EXPECT_EQ(refit_losses_by(header, data.fitted).not_measured, size_t(1));
  EXPECT(refit_badness(header, data.fitted, 0) == 0);
}
/* Costs of kernels without times stay, and those that are to be kept. */
TEST(costs_without_data_stay) {
  plan_file file;
  refit_data data = {false, {}, {}};
  file.head.remarks = {"sms: 132"};
  add_made_up<float, refit_float>(&file, "f32", 0, 80, known_table());
  refit_add(&data, file);
  refit_table fitted = refit_fit(refit_header(), data, 1000, "reduce."), header = refit_header();
  EXPECT(refit_losses_by(fitted, data.checked).error < refit_losses_by(header, data.checked).error / 2);
  for (const bool doubles : {false, true}) {
    const std::vector<refit_entry> is = refit_entries(&fitted, doubles), was = refit_entries(&header, doubles);
    size_t changed = 0;
    for (size_t i = 0; i < is.size(); i++) {
      const bool stays = doubles || is[i].hopper || is[i].name.compare(0, 7, "reduce.") == 0;
      if (*is[i].value != *was[i].value) changed++;
      if (stays) EXPECT_EQ(*is[i].value, *was[i].value);
    }
    EXPECT_EQ(changed > 0, !doubles);
  }
}
/* Times that no table can meet end in some table by which the planner can plan. */
TEST(any_times_end_the_fit) {
  refit_data data = {false, {}, {}};
  plan_file file = made_up_file(refit_header());
  random_numbers draw = random_from(7);
  for (plan_times &times : file.shapes)
    for (plan_time &plan : times.plans) plan.us = static_cast<double>(draw.log_uniform(1, 1e6));
  file.shapes.resize(20);
  refit_add(&data, file);
  const refit_table fitted = refit_fit(refit_header(), data, 2000);
  EXPECT(refit_allowed(fitted));
  EXPECT(refit_badness(fitted, data.fitted, 0.1) < refit_badness(refit_header(), data.fitted, 0.1));
  EXPECT_EQ(refit_losses_by(fitted, data.checked).shapes, data.checked.size());
}
/* What is printed is what stands in the header: make bench-refit prints it with other numbers. */
TEST(the_table_is_printed_as_it_stands_in_the_header) {
  const auto squeezed = [](const std::string &text) {
    std::string result;
    for (const char c : text)
      if (!isspace(static_cast<unsigned char>(c))) result += c;
    return result;
  };
  FILE *const source = fopen("gpukit.cuh", "r");
  if (!source) SKIP("gpukit.cuh is not here");
  std::string header;
  for (int c; (c = fgetc(source)) != EOF;) header += static_cast<char>(c);
  fclose(source);
  const std::string all = squeezed(header);
  const gk__plan_costs costs = refit_header().costs;
  EXPECT(all.find(squeezed(refit_initialiser(costs))) != std::string::npos);
  EXPECT(all.find(squeezed(refit_initialiser(costs.reduce))) != std::string::npos);
  for (const char *type : {"f16", "tf32", "emulated"})
    EXPECT(all.find(squeezed(refit_mma_initialiser(refit_mma_header(type)))) != std::string::npos);
  std::istringstream rows(refit_print_tiles(refit_header()));
  for (std::string row; std::getline(rows, row);) {
    const std::string text = squeezed(row.substr(0, row.find(" /*")));
    EXPECT(all.find(text.back() == ',' ? text.substr(0, text.size() - 1) : text) != std::string::npos);
  }
}
#endif
