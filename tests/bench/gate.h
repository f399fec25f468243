/* The gate: compares the rows of a run with those of a committed file, and the mean of each type with the best that it
 * ever was. Ratios are compared, not times, so that another machine of the same kind gives the same answer. But a row whose
 * own time did not grow is not slower: then its peer was faster in this process (cuBLAS's choice, where its memory is).
 * Nor is a type under its best mean if its mean own time did not grow.
 *
 *   best.csv       the best geometric means of each type, and the commit that improved one of them last
 *   accepted.csv   the means under those that are accepted, each with its reason */
#ifndef BENCH_GATE_H
#define BENCH_GATE_H

#include "rows.h"

#include <fstream>
#include <map>

/* A row is slower if it lost more than this share of its ratio, and more than so many times the noise of both; and if its
 * own time grew by more than that share of it. Rows shorter than gate_short_us are bound by the host's launches, which took
 * up to 2.7 times as long on the one of two machines of one kind: their own time must grow by gate_launch_us as well, the
 * difference that was measured there. */
static const double gate_row_loss = 0.05, gate_noises = 3, gate_own_growth = 0.025;
static const double gate_short_us = 10, gate_launch_us = 3;
/* A type is under its best if its mean ratio is lower than the best one by more than the first share, and its mean own time
 * is longer than the best one by more than the second. Between two H200s with the same binary the mean ratio of a type
 * differed by up to 11 %, because of short rows and of the peer. Its mean own time, with short rows counted as
 * gate_short_us, differed by at most 0.8 %, and by at most 0.9 % between two headers in each of three builds. */
static const double gate_mean_loss = 0.03, gate_mean_growth = 0.015;

inline double gate_loss(const bench_row &then, const bench_row &now) { return 1 - now.ratio / then.ratio; }
inline bool gate_comparable(const bench_row &then, const bench_row &now) { return then.ratio > 0 && now.ratio > 0; }
inline bool gate_is_slower(const bench_row &then, const bench_row &now) {
  const double noise = sqrt(then.noise * then.noise + now.noise * now.noise);
  const double growth_us = now.ours_us - then.ours_us;
  if (then.ours_us < gate_short_us && growth_us < gate_launch_us) return false;
  return gate_comparable(then, now) && gate_loss(then, now) > gate_row_loss &&
         gate_loss(then, now) > gate_noises * noise && growth_us > gate_own_growth * then.ours_us;
}

/* One measurement out of several of the same row: the medians of ratio and noise. */
inline bench_row gate_middle(const std::vector<bench_row> &measured) {
  std::vector<double> ratios, noises, times;
  for (const bench_row &row : measured) {
    ratios.push_back(row.ratio);
    noises.push_back(row.noise);
    times.push_back(row.ours_us);
  }
  bench_row middle = measured[0];
  middle.ratio = median_of(ratios);
  middle.noise = median_of(noises);
  middle.ours_us = median_of(times);
  return middle;
}

typedef std::map<std::string, bench_row> gate_index;
inline gate_index gate_by_name(const std::vector<bench_row> &rows) {
  gate_index index;
  for (const bench_row &row : rows) index.insert(gate_index::value_type(row.name(), row));
  return index;
}

struct gate_lost_row {
  bench_row then, now;
};
struct gate_rows_result {
  std::vector<gate_lost_row> slower;
  std::vector<std::string> not_measured, new_rows; /* names of rows that only one of the files has, or has a ratio of */
  std::vector<std::string> wrong;                  /* names of rows whose result is wrong now */
  size_t compared, faster;                         /* faster: by as much as would count as slower */
};
inline gate_rows_result gate_compare_rows(const std::vector<bench_row> &then, const std::vector<bench_row> &now) {
  gate_rows_result result = gate_rows_result();
  const gate_index before = gate_by_name(then), after = gate_by_name(now);
  for (const bench_row &old_row : then) {
    const gate_index::const_iterator found = after.find(old_row.name());
    if (found == after.end()) {
      result.not_measured.push_back(old_row.name());
      continue;
    }
    if (old_row.ratio > 0 && !(found->second.ratio > 0)) result.not_measured.push_back(old_row.name());
    if (!gate_comparable(old_row, found->second)) continue;
    result.compared++;
    if (gate_is_slower(old_row, found->second)) result.slower.push_back({old_row, found->second});
    if (gate_is_slower(found->second, old_row)) result.faster++;
  }
  for (const bench_row &row : now) {
    if (!before.count(row.name())) result.new_rows.push_back(row.name());
    if (row.check == "wrong") result.wrong.push_back(row.name());
  }
  return result;
}

/* --- The means of types -------------------------------------------------------------------------------------------*/

struct gate_mean {
  std::string type; /* "matmul f32" */
  size_t rows;
  double mean;   /* geometric, of the ratios */
  double own_us; /* geometric, of gpukit's times, each of them at least gate_short_us */
};
/* Of each group and type that the rows have, in alphabetical order. */
inline std::vector<gate_mean> gate_means(const std::vector<bench_row> &rows) {
  struct sum {
    size_t count;
    double ratio_logs, own_logs;
  };
  std::map<std::string, sum> sums;
  for (const bench_row &row : rows) {
    if (!(row.ratio > 0) || row.type.empty() || row.beside_itself()) continue;
    sum &s = sums[row.group + " " + row.type];
    s.count++;
    s.ratio_logs += log(row.ratio);
    s.own_logs += log(std::max(row.ours_us, gate_short_us));
  }
  std::vector<gate_mean> means;
  for (const auto &s : sums) {
    const double count = double(s.second.count);
    means.push_back({s.first, s.second.count, exp(s.second.ratio_logs / count), exp(s.second.own_logs / count)});
  }
  return means;
}

/* A line of best.csv, or of accepted.csv, whose last field is the reason and not the commit. */
struct gate_known_mean {
  std::string type, build, gpu;
  size_t rows;         /* that the mean is of: means of other numbers of rows are not compared */
  double mean, own_us; /* as of gate_mean */
  std::string note;
};
inline const char *gate_best_columns() { return "type,build,gpu,rows,mean,own_us,commit"; }
inline const char *gate_accepted_columns() { return "type,build,gpu,rows,mean,own_us,reason"; }
/* Lines that begin with '#', and the names of the columns, are skipped. The note may have commas. */
inline bool gate_read_means(std::istream &from, std::vector<gate_known_mean> *means, std::string *bad) {
  for (std::string line; std::getline(from, line);) {
    const std::vector<std::string> f = split_fields(line);
    if (line.empty() || line[0] == '#' || f[0] == "type") continue;
    if (f.size() < 7 || atof(f[4].c_str()) <= 0 || atof(f[5].c_str()) <= 0) {
      *bad = line;
      return false;
    }
    std::string note = f[6];
    for (size_t i = 7; i < f.size(); i++) note += "," + f[i];
    means->push_back(
        {f[0], f[1], f[2], static_cast<size_t>(atof(f[3].c_str())), atof(f[4].c_str()), atof(f[5].c_str()), note});
  }
  return true;
}
inline const gate_known_mean *gate_find_mean(const std::vector<gate_known_mean> &means, const gate_mean &of,
                                             const std::string &build, const std::string &gpu) {
  for (const gate_known_mean &known : means)
    if (known.type == of.type && known.build == build && known.gpu == gpu && known.rows == of.rows) return &known;
  return NULL;
}

struct gate_lost_mean {
  gate_mean now;
  gate_known_mean best;
  std::string reason; /* of its acceptance; empty: it is not accepted */
};
inline bool gate_is_under(const gate_mean &now, const gate_known_mean &known) {
  return now.mean < known.mean * (1 - gate_mean_loss) && now.own_us > known.own_us * (1 + gate_mean_growth);
}
/* The types that are under their best. An accepted loss is a new best in this: the mean may not fall further under it than
 * under a best. */
inline std::vector<gate_lost_mean> gate_compare_means(const std::vector<gate_mean> &now, const std::string &build,
                                                      const std::string &gpu, const std::vector<gate_known_mean> &best,
                                                      const std::vector<gate_known_mean> &accepted) {
  std::vector<gate_lost_mean> lost;
  for (const gate_mean &mean : now) {
    const gate_known_mean *const known = gate_find_mean(best, mean, build, gpu);
    if (!known || !gate_is_under(mean, *known)) continue;
    const gate_known_mean *const allowed = gate_find_mean(accepted, mean, build, gpu);
    const bool is_allowed = allowed && !gate_is_under(mean, *allowed);
    lost.push_back({mean, *known, is_allowed ? allowed->note : ""});
  }
  return lost;
}
/* Rounds as best.csv does, so that taking over the same file again changes nothing. */
inline double gate_four_decimals(double value) { return round(value * 1e4) / 1e4; }
/* Takes over what the file improves, and adds what is not known yet. The greatest mean and the least own_us are each kept
 * on their own and may come from two runs. A slow peer can raise the mean of a run whose own time grew; if that own time
 * replaced the least one, a slow decay over several baselines would not be found. True: something has changed. */
inline bool gate_raise_best(std::vector<gate_known_mean> *best, const bench_file &file) {
  const std::string build = file.get("build"), gpu = file.get("gpu"), commit = file.get("commit");
  bool changed = false;
  for (const gate_mean &mean : gate_means(file.rows)) {
    gate_known_mean is = {
        mean.type, build, gpu, mean.rows, gate_four_decimals(mean.mean), gate_four_decimals(mean.own_us), commit};
    bool known = false;
    for (gate_known_mean &other : *best) {
      if (other.type != is.type || other.build != build || other.gpu != gpu) continue;
      known = true;
      /* Means of another number of rows are other means, which replace the ones before. */
      if (other.rows == is.rows) {
        if (other.mean >= is.mean && other.own_us <= is.own_us) continue;
        is.mean = std::max(is.mean, other.mean);
        is.own_us = std::min(is.own_us, other.own_us);
      }
      other = is;
      changed = true;
    }
    if (known) continue;
    best->push_back(is);
    changed = true;
  }
  return changed;
}

/* --- Several runs as one baseline ---------------------------------------------------------------------------------*/

/* Ratios differ from process to process and from machine to machine by more than from sample to sample. The baseline of
 * several runs has the medians, and as noise at least a third of the greatest distance from them, so that none of these
 * runs is slower than the baseline. */
inline bench_file gate_merge(const std::vector<bench_file> &files) {
  bench_file merged;
  if (files.empty()) return merged;
  merged.remarks = files[0].remarks;
  merged.remarks.push_back("runs: " + std::to_string(files.size()) + ", of which these are the medians");
  std::map<std::string, std::vector<bench_row>> runs;
  std::vector<std::string> order;
  for (const bench_file &file : files)
    for (const bench_row &row : file.rows) {
      std::vector<bench_row> &same = runs[row.name()];
      if (same.empty()) order.push_back(row.name());
      same.push_back(row);
    }
  for (const std::string &name : order) {
    const std::vector<bench_row> &same = runs[name];
    std::vector<double> peers, ceilings, rates, clocks;
    for (const bench_row &row : same) {
      peers.push_back(row.peer_us), ceilings.push_back(row.ceiling_us);
      rates.push_back(row.rate), clocks.push_back(row.sm_mhz);
    }
    bench_row row = gate_middle(same);
    row.peer_us = median_of(peers), row.ceiling_us = median_of(ceilings);
    row.rate = median_of(rates), row.sm_mhz = median_of(clocks);
    for (const bench_row &one : same) {
      if (row.ratio > 0) row.noise = std::max(row.noise, fabs(one.ratio / row.ratio - 1) / gate_noises);
      if (one.check == "wrong") row.check = "wrong";
    }
    merged.rows.push_back(row);
  }
  return merged;
}

/* --- The report ---------------------------------------------------------------------------------------------------*/

inline void gate_print_names(FILE *to, const char *what, const std::vector<std::string> &names) {
  const size_t most = 10;
  if (names.empty()) return;
  fprintf(to, "%zu rows %s:\n", names.size(), what);
  for (size_t i = 0; i < names.size() && i < most; i++) fprintf(to, "  %s\n", names[i].c_str());
  if (names.size() > most) fprintf(to, "  and %zu more\n", names.size() - most);
}
/* Prints what was found; true: nothing is slower that may not be. */
inline bool gate_report(FILE *to, const gate_rows_result &rows, const std::vector<gate_lost_mean> &means) {
  bool passes = rows.slower.empty() && rows.wrong.empty();
  gate_print_names(to, "have wrong results", rows.wrong);
  gate_print_names(to, "were not measured now", rows.not_measured);
  gate_print_names(to, "are new", rows.new_rows);
  fprintf(to, "%zu rows compared with the committed ones: %zu slower, %zu faster\n", rows.compared, rows.slower.size(),
          rows.faster);
  for (const gate_lost_row &row : rows.slower)
    fprintf(to, "  SLOWER %-56s %.3f of the peer, was %.3f: -%.1f %%, noise %.1f %% and %.1f %%\n",
            row.now.name().c_str(), row.now.ratio, row.then.ratio, 100 * gate_loss(row.then, row.now),
            100 * row.now.noise, 100 * row.then.noise);
  for (const gate_lost_mean &mean : means) {
    fprintf(to, "  %s %-20s mean of %zu rows %.3f, best %.3f; own time %.2f us, best %.2f (%s)%s%s\n",
            mean.reason.empty() ? "UNDER ITS BEST" : "accepted loss", mean.now.type.c_str(), mean.now.rows,
            mean.now.mean, mean.best.mean, mean.now.own_us, mean.best.own_us, mean.best.note.c_str(),
            mean.reason.empty() ? "" : ": ", mean.reason.c_str());
    if (mean.reason.empty()) passes = false;
  }
  fprintf(to, "the gate %s\n", passes ? "is passed" : "IS NOT PASSED");
  return passes;
}
/* The same of all that is compared. The means are of the rows that both have. */
inline bool gate_passes(FILE *to, const std::vector<bench_row> &then, const bench_file &now,
                        const std::vector<gate_known_mean> &best, const std::vector<gate_known_mean> &accepted) {
  const gate_index before = gate_by_name(then);
  std::vector<bench_row> common;
  for (const bench_row &row : now.rows)
    if (before.count(row.name())) common.push_back(row);
  return gate_report(to, gate_compare_rows(then, now.rows),
                     gate_compare_means(gate_means(common), now.get("build"), now.get("gpu"), best, accepted));
}

/* --- Files --------------------------------------------------------------------------------------------------------*/

/* False, and a message: it is not there, or cannot be read as what it should be. */
inline bool gate_open_rows(const std::string &path, bench_file *file) {
  std::string bad;
  std::ifstream from(path);
  if (!from) return perror(path.c_str()), false;
  if (read_rows(from, file, &bad)) return true;
  fprintf(stderr, "%s: not a row of the bench: %s\n", path.c_str(), bad.c_str());
  return false;
}
/* A file that need not exist, and does not, has no means. */
inline bool gate_open_means(const std::string &path, bool must_exist, std::vector<gate_known_mean> *means) {
  std::string bad;
  std::ifstream from(path);
  if (!from) return must_exist ? (perror(path.c_str()), false) : true;
  if (gate_read_means(from, means, &bad)) return true;
  fprintf(stderr, "%s: not a mean: %s\n", path.c_str(), bad.c_str());
  return false;
}

#endif
