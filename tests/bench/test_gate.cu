/* The gate of the bench (bench/gate.h), on made-up rows: what it finds slower, and what it lets pass. */
#include "test.h"

#include "tests/bench/gate.h"
#include "tests/bench/goals.h"

#include <sstream>

namespace {

bench_row row(const char *type, const char *size, double ratio, double noise) {
  bench_row r = bench_row();
  r.group = "matmul", r.what = "A B", r.type = type, r.size = size, r.mode = "hot", r.peer = "GemmEx";
  r.peer_us = 100, r.ours_us = 100 / ratio, r.ratio = ratio, r.noise = noise;
  r.unit = "TFLOP/s", r.rate = 1, r.check = "ok", r.sm_mhz = 1800;
  return r;
}
const char *const edges[] = {"128x128x128", "256x256x256", "512x512x512", "1024x1024x1024"};
std::vector<bench_row> rows_of(double ratio, double noise) {
  std::vector<bench_row> rows;
  for (const char *type : {"f32", "bf16"})
    for (const char *edge : edges) rows.push_back(row(type, edge, ratio, noise));
  return rows;
}
/* Our time changes, the peer's does not. */
void set_ratio(bench_row *r, double ratio) {
  r->ours_us *= r->ratio / ratio;
  r->ratio = ratio;
}
bench_file file_of(const std::vector<bench_row> &rows) {
  bench_file file;
  file.remarks = {"gpu: NVIDIA X1", "build: sm_90", "commit: abc"};
  file.rows = rows;
  return file;
}
/* Rows of which gpukit takes own_us, and the peer peer_us. */
std::vector<bench_row> rows_taking(double own_us, double peer_us) {
  std::vector<bench_row> rows = rows_of(peer_us / own_us, 0.004);
  for (bench_row &r : rows) {
    r.ours_us = own_us;
    r.peer_us = peer_us;
  }
  return rows;
}
/* What the gate says of these. */
bool passes(const std::vector<bench_row> &then, const std::vector<bench_row> &now,
            const std::vector<gate_known_mean> &best = {}, const std::vector<gate_known_mean> &accepted = {}) {
  FILE *const nowhere = fopen("/dev/null", "w");
  const bool passed = gate_passes(nowhere, then, file_of(now), best, accepted);
  fclose(nowhere);
  return passed;
}

} // namespace

TEST(equal_rows_pass) {
  const std::vector<bench_row> rows = rows_of(1.1, 0.004);
  const gate_rows_result result = gate_compare_rows(rows, rows);
  EXPECT_EQ(result.compared, rows.size());
  EXPECT(result.slower.empty() && result.not_measured.empty() && result.new_rows.empty() && result.faster == 0);
  EXPECT(passes(rows, rows));
}
TEST(a_slowdown_of_six_percent_is_found) {
  const std::vector<bench_row> then = rows_of(1.1, 0.004);
  std::vector<bench_row> now = then;
  set_ratio(&now[5], 0.94 * now[5].ratio);
  const gate_rows_result result = gate_compare_rows(then, now);
  EXPECT_EQ(result.slower.size(), size_t(1));
  if (result.slower.size() == 1) {
    EXPECT_EQ(result.slower[0].now.name(), "matmul A B bf16 256x256x256 hot");
    EXPECT(fabs(gate_loss(result.slower[0].then, result.slower[0].now) - 0.06) < 1e-9);
  }
  EXPECT(!passes(then, now));
  set_ratio(&now[5], then[5].ratio * 0.96); /* not yet too much */
  EXPECT(passes(then, now));
}
TEST(what_is_faster_passes) {
  const std::vector<bench_row> then = rows_of(1.1, 0.004), now = rows_of(1.3, 0.004);
  EXPECT_EQ(gate_compare_rows(then, now).faster, then.size());
  EXPECT(passes(then, now));
}
/* Ratios count, not times: another machine may be slower as a whole. */
TEST(times_do_not_count) {
  const std::vector<bench_row> then = rows_of(1.1, 0.004);
  std::vector<bench_row> now = then;
  for (bench_row &r : now) r.ours_us *= 1.5, r.peer_us *= 1.5;
  EXPECT(passes(then, now));
}
TEST(noise_of_either_side_is_respected) {
  const std::vector<bench_row> quiet = rows_of(1, 0.001), loud = rows_of(1, 0.03);
  std::vector<bench_row> slower = quiet, slower_and_loud = loud;
  for (bench_row &r : slower) set_ratio(&r, 0.92);
  for (bench_row &r : slower_and_loud) set_ratio(&r, 0.92);
  EXPECT(!passes(quiet, slower));
  EXPECT(passes(loud, slower));
  EXPECT(passes(quiet, slower_and_loud));
  for (bench_row &r : slower) set_ratio(&r, 0.8); /* more than three times this noise */
  EXPECT(!passes(loud, slower));
}
/* The ratio also falls when the peer is faster in this process, as cuBLAS is by the algorithm that it happens to choose. */
TEST(a_faster_peer_is_no_loss) {
  const std::vector<bench_row> then = rows_of(1.1, 0.004);
  std::vector<bench_row> now = then;
  for (bench_row &r : now) r.ratio *= 0.9, r.peer_us *= 0.9;
  EXPECT(gate_compare_rows(then, now).slower.empty());
  now[0].ours_us *= 1.03;
  EXPECT_EQ(gate_compare_rows(then, now).slower.size(), size_t(1));
}
/* What the host takes for a launch differs between machines, and short rows are made of that. */
TEST(short_rows_may_take_a_slow_hosts_launch_longer) {
  std::vector<bench_row> then = rows_of(1, 0.004), now;
  for (bench_row &r : then) r.ours_us = r.peer_us = 4;
  now = then;
  for (bench_row &r : now) r.ours_us = 6.5, r.ratio = 4 / 6.5;
  EXPECT(gate_compare_rows(then, now).slower.empty());
  for (bench_row &r : now) r.ours_us = 7.5, r.ratio = 4 / 7.5;
  EXPECT_EQ(gate_compare_rows(then, now).slower.size(), then.size());
}
/* The median of three measurements counts: one bad one is none. */
TEST(measured_again) {
  const bench_row then = row("f32", edges[0], 1, 0.005);
  const std::vector<bench_row> once_slow = {row("f32", edges[0], 0.9, 0.005), row("f32", edges[0], 0.99, 0.006),
                                            row("f32", edges[0], 1.01, 0.004)};
  const std::vector<bench_row> slow = {row("f32", edges[0], 0.94, 0.005), row("f32", edges[0], 0.99, 0.006),
                                       row("f32", edges[0], 0.93, 0.004)};
  EXPECT_EQ(gate_middle(once_slow).ratio, 0.99);
  EXPECT(!gate_is_slower(then, gate_middle(once_slow)));
  EXPECT_EQ(gate_middle(slow).ratio, 0.94);
  EXPECT(gate_is_slower(then, gate_middle(slow)));
}
TEST(rows_of_one_side_alone_are_listed_and_pass) {
  std::vector<bench_row> then = rows_of(1.1, 0.004), now = then;
  now.pop_back();
  now.push_back(row("tf32", edges[0], 0.5, 0.004));
  const gate_rows_result result = gate_compare_rows(then, now);
  EXPECT_EQ(result.not_measured.size(), size_t(1));
  EXPECT_EQ(result.new_rows.size(), size_t(1));
  EXPECT_EQ(result.compared, then.size() - 1);
  EXPECT_EQ(result.not_measured[0], "matmul A B bf16 1024x1024x1024 hot");
  EXPECT_EQ(result.new_rows[0], "matmul A B tf32 128x128x128 hot");
  EXPECT(passes(then, now));
  /* Without a ratio there is nothing to compare, and the row is listed. */
  now[0].ratio = 0;
  EXPECT_EQ(gate_compare_rows(then, now).compared, then.size() - 2);
  EXPECT_EQ(gate_compare_rows(then, now).not_measured.size(), size_t(2));
  EXPECT(passes(then, now));
  now[0].check = "wrong";
  EXPECT(!passes(then, now));
}
TEST(means_of_types) {
  std::vector<bench_row> rows = {row("f32", edges[0], 1, 0), row("f32", edges[1], 4, 0), row("f64", edges[0], 3, 0)};
  rows.push_back(row("f32", edges[2], 100, 0));
  rows.back().what = "sum misaligned/aligned"; /* gpukit against itself */
  const std::vector<gate_mean> means = gate_means(rows);
  EXPECT_EQ(means.size(), size_t(2));
  EXPECT_EQ(means[0].type, "matmul f32");
  EXPECT_EQ(means[0].rows, size_t(2));
  EXPECT(fabs(means[0].mean - 2) < 1e-9);
  EXPECT_EQ(means[1].type, "matmul f64");
}
TEST(own_times_of_types) {
  std::vector<bench_row> rows = {row("f32", edges[0], 1, 0), row("f32", edges[1], 1, 0)};
  rows[0].ours_us = 20;
  rows[1].ours_us = 80;
  EXPECT(fabs(gate_means(rows)[0].own_us - 40) < 1e-9);
  rows[0].ours_us = 2; /* short rows count as gate_short_us */
  EXPECT(fabs(gate_means(rows)[0].own_us - sqrt(gate_short_us * 80)) < 1e-9);
}
/* A loss of one percent at each step passes the comparison with the last baseline, but not that with the best ever. */
TEST(means_stay_near_the_best_ever) {
  const std::vector<gate_known_mean> best = {{"matmul f32", "sm_90", "NVIDIA X1", 4, 1.1, 100 / 1.1, "abc"},
                                             {"matmul bf16", "sm_90", "NVIDIA X1", 4, 1.0, 100, "def"}};
  const std::vector<bench_row> above = rows_of(1.1 * 0.98, 0.004), under = rows_of(1.1 * 0.96, 0.004);
  EXPECT(passes(above, above, best));
  EXPECT(!passes(under, under, best));
  std::vector<bench_row> more = under;
  more.push_back(row("f32", "64x64x64", 2, 0.004));
  EXPECT(!passes(under, more, best)); /* of the rows that both have, it is the same mean */
  EXPECT_EQ(gate_compare_means(gate_means(under), "sm_90", "NVIDIA X1", best, {}).size(), size_t(1));
  /* Of another GPU, build or number of rows it is another mean. */
  EXPECT(gate_compare_means(gate_means(under), "sm_90", "NVIDIA X2", best, {}).empty());
  EXPECT(gate_compare_means(gate_means(under), "sm_90a", "NVIDIA X1", best, {}).empty());
  const std::vector<bench_row> fewer(under.begin(), under.begin() + 3);
  EXPECT(gate_compare_means(gate_means(fewer), "sm_90", "NVIDIA X1", best, {}).empty());
}
/* A mean is under its best by its ratio and its own time together. */
TEST(a_mean_falls_by_its_own_time_alone) {
  std::vector<gate_known_mean> best;
  gate_raise_best(&best, file_of(rows_taking(100, 110)));
  const auto passes_best = [&](double own_us, double peer_us) {
    const std::vector<bench_row> now = rows_taking(own_us, peer_us);
    return passes(now, now, best);
  };
  EXPECT(passes_best(100, 99));   /* the peer alone is faster by a tenth */
  EXPECT(passes_best(101, 99));   /* and the own time differs as between two machines */
  EXPECT(passes_best(104, 114));  /* another machine is slower as a whole */
  EXPECT(!passes_best(104, 110)); /* the own time grew by 4 %, and the ratio fell by as much */
  EXPECT(!passes_best(102, 106)); /* the own time grew by 2 %, and the ratio fell by 5 % */
}
TEST(short_rows_move_no_mean_under_its_best) {
  std::vector<gate_known_mean> best;
  gate_raise_best(&best, file_of(rows_taking(4, 5)));
  const std::vector<bench_row> now = rows_taking(9, 10);
  EXPECT(passes(now, now, best));
}
/* Each of three baselines passes beside the one before, but the third does not beside the best of all. */
TEST(a_slow_decay_is_found) {
  std::vector<gate_known_mean> best;
  std::vector<bench_row> before = rows_taking(100, 110);
  gate_raise_best(&best, file_of(before));
  for (int baseline = 1; baseline <= 3; baseline++) {
    std::vector<gate_known_mean> best_before;
    const std::vector<bench_row> now = rows_taking(100 * pow(1.014, baseline), 110);
    gate_raise_best(&best_before, file_of(before));
    EXPECT(passes(before, now, best_before));
    EXPECT_EQ(passes(before, now, best), baseline < 3);
    gate_raise_best(&best, file_of(now));
    before = now;
  }
}
/* The run with the greatest mean had a slow peer, and its own time does not replace a shorter one. */
TEST(a_slow_peer_hides_no_decay) {
  std::vector<gate_known_mean> best;
  gate_raise_best(&best, file_of(rows_taking(100, 110)));
  gate_raise_best(&best, file_of(rows_taking(101.4, 121)));
  EXPECT(fabs(best[0].mean - 121 / 101.4) < 1e-4);
  EXPECT_EQ(best[0].own_us, 100.0);
  const std::vector<bench_row> now = rows_taking(102.8, 110);
  EXPECT(!passes(now, now, best));
  /* Nor does a shorter own time beside a fast peer lower the mean. */
  EXPECT(gate_raise_best(&best, file_of(rows_taking(98, 99))));
  EXPECT(fabs(best[0].mean - 121 / 101.4) < 1e-4);
  EXPECT_EQ(best[0].own_us, 98.0);
}
TEST(accepted_losses_pass_with_their_reason) {
  const std::vector<gate_known_mean> best = {{"matmul f32", "sm_90", "NVIDIA X1", 4, 1.1, 100 / 1.1, "abc"}};
  const std::vector<gate_known_mean> accepted = {
      {"matmul f32", "sm_90", "NVIDIA X1", 4, 1.04, 100 / 1.04, "fewer kernels"}};
  const std::vector<bench_row> is = rows_of(1.04, 0.004), under = rows_of(1.0, 0.004);
  EXPECT(!passes(is, is, best));
  EXPECT(passes(is, is, best, accepted));
  EXPECT_EQ(gate_compare_means(gate_means(is), "sm_90", "NVIDIA X1", best, accepted)[0].reason, "fewer kernels");
  EXPECT(!passes(under, under, best, accepted)); /* further than was accepted */
}
TEST(the_best_is_raised_and_never_lowered) {
  std::vector<gate_known_mean> best;
  bench_file file = file_of(rows_of(1.1, 0.004));
  EXPECT(gate_raise_best(&best, file));
  EXPECT_EQ(best.size(), size_t(2));
  EXPECT(!gate_raise_best(&best, file));
  file.rows = rows_of(1.0, 0.004);
  EXPECT(!gate_raise_best(&best, file));
  file.rows = rows_of(1.2, 0.004);
  file.remarks[2] = "commit: def";
  EXPECT(gate_raise_best(&best, file));
  EXPECT_EQ(best.size(), size_t(2));
  EXPECT(fabs(best[0].mean - 1.2) < 1e-9);
  EXPECT_EQ(best[0].note, "def");
  EXPECT_EQ(best[0].gpu, "NVIDIA X1");
  /* best.csv has four decimals; taking over the same file again changes nothing. */
  const std::vector<bench_row> odd = rows_taking(77.12341, 99.98765);
  std::vector<gate_known_mean> of_odd;
  EXPECT(gate_raise_best(&of_odd, file_of(odd)));
  EXPECT_EQ(of_odd[0].own_us, 77.1234);
  EXPECT(!gate_raise_best(&of_odd, file_of(odd)));
  /* Means of fewer rows replace those of more, even where they are worse. */
  file.rows = rows_of(1.0, 0.004);
  file.rows.resize(3);
  EXPECT(gate_raise_best(&best, file));
  for (const gate_known_mean &mean : best) {
    if (mean.type != "matmul f32") continue;
    EXPECT_EQ(mean.rows, size_t(3));
    EXPECT_EQ(mean.mean, 1.0);
    EXPECT_EQ(mean.own_us, 100.0);
  }
}
TEST(means_are_read) {
  std::istringstream text("# of the bench\ntype,build,gpu,rows,mean,own_us,reason\n"
                          "matmul f32,sm_90,NVIDIA X1,4,1.04,96.15,fewer kernels, shorter code\n");
  std::vector<gate_known_mean> means;
  std::string bad;
  EXPECT(gate_read_means(text, &means, &bad));
  EXPECT_EQ(means.size(), size_t(1));
  EXPECT_EQ(means[0].note, "fewer kernels, shorter code");
  EXPECT_EQ(means[0].rows, size_t(4));
  EXPECT_EQ(means[0].mean, 1.04);
  EXPECT_EQ(means[0].own_us, 96.15);
  /* Lines with missing fields, such as those from before own_us was a column, are errors. */
  for (const char *line : {"matmul f32,sm_90,NVIDIA X1", "matmul f32,sm_90,NVIDIA X1,4,1.04,abc",
                           "matmul f32,sm_90,NVIDIA X1,4,1.04,fewer kernels, shorter code"}) {
    std::istringstream wrong(line);
    EXPECT(!gate_read_means(wrong, &means, &bad));
    EXPECT_EQ(bad, line);
  }
}
/* None of the runs that a baseline is made of is slower than it. */
TEST(several_runs_are_one_baseline) {
  std::vector<bench_file> runs;
  for (double ratio : {1.0, 1.2, 1.1}) runs.push_back(file_of(rows_of(ratio, 0.001)));
  runs[1].rows.push_back(row("tf32", edges[0], 0.7, 0.002));
  const bench_file merged = gate_merge(runs);
  EXPECT_EQ(merged.rows.size(), runs[1].rows.size());
  EXPECT_EQ(merged.rows[0].ratio, 1.1);
  EXPECT_EQ(merged.rows.back().ratio, 0.7);
  EXPECT_EQ(merged.get("gpu"), "NVIDIA X1");
  for (const bench_file &run : runs) EXPECT(gate_compare_rows(merged.rows, run.rows).slower.empty());
  EXPECT(!gate_compare_rows(merged.rows, rows_of(0.8, 0.001)).slower.empty());
}
TEST(files_are_written_and_read) {
  bench_file file = file_of(rows_of(1.25, 0.0075)), read;
  std::ostringstream text;
  std::string bad;
  file.rows[3].check = "peer off";
  write_rows(text, file);
  std::istringstream from(text.str());
  EXPECT(read_rows(from, &read, &bad));
  EXPECT_EQ(read.get("build"), "sm_90");
  EXPECT_EQ(read.get("commit"), "abc");
  EXPECT_EQ(read.get("clock"), "");
  EXPECT_EQ(read.rows.size(), file.rows.size());
  for (size_t i = 0; i < read.rows.size(); i++) EXPECT_EQ(row_line(read.rows[i]), row_line(file.rows[i]));
  EXPECT(read.find(file.rows[2].name()) && !read.find("matmul A B f32 1x1x1 hot"));
  /* From before the clock was a column. */
  std::istringstream older(
      "# NVIDIA X1\ngroup,what,type,size\nscan,sum,f32,2^10,1024,cold,1,CUB,2,2,0,GB/s,3,copy,4,ok\n");
  bench_file old;
  EXPECT(read_rows(older, &old, &bad));
  EXPECT_EQ(old.rows.size(), size_t(1));
  EXPECT_EQ(old.rows[0].ratio, 2.0);
  std::istringstream broken("group,what,type,size\nscan,sum\n");
  EXPECT(!read_rows(broken, &old, &bad));
  EXPECT_EQ(bad, "scan,sum");
}
TEST(figures_of_random_shapes) {
  std::vector<bench_row> rows;
  for (int i = 0; i < 100; i++) rows.push_back(row("f32", edges[i % 4], i < 10 ? 0.5 + 0.01 * i : 2, 0));
  std::vector<const bench_row *> all, few;
  for (const bench_row &r : rows) all.push_back(&r);
  few.assign(all.begin() + 8, all.begin() + 12);
  const random_figures f = random_figures_of(all), g = random_figures_of(few);
  EXPECT_EQ(f.count, size_t(100));
  EXPECT(fabs(f.share - 0.9) < 1e-9);
  EXPECT(fabs(f.fifth - 0.55) < 1e-9 && fabs(f.lowest - 0.51) < 1e-9);
  EXPECT(fabs(g.lowest - 0.58) < 1e-9);
  EXPECT(fabs(g.mean - sqrt(sqrt(0.58 * 0.59 * 4))) < 1e-9);
  /* Logarithms of 0.58, 0.59, 2, 2: a standard deviation of 0.7093, over the root of four. */
  EXPECT(fabs(g.error / g.mean - 0.3546) < 1e-3);
}
TEST(a_goal_is_met_by_its_floor_or_by_its_share_of_the_ceiling) {
  bench_goal goal = {"8-bit scan", "scan", "exclusive sum", "u8", "cold", 0, goal_all, GOAL_WORST, 3, 0};
  bench_row r = row("u8", "2^30", 2.9, 0.004);
  r.group = "scan", r.what = "exclusive sum", r.mode = "cold", r.ours_us = 100, r.ceiling_us = 93;
  EXPECT(!goal_met(goal, {r}, 2.9));
  goal.ceiling = 0.92;
  EXPECT(goal_met(goal, {r}, 2.9));
  r.ceiling_us = 91;
  EXPECT(!goal_met(goal, {r}, 2.9));
  EXPECT(goal_met(goal, {r}, 3));
}
