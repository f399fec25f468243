/* The rows of the bench, and the CSV files that hold them. Plain C++: nothing here needs a GPU.
 *
 * A file begins with lines "# key: value", which name the GPU, the build and the commit and say how it was measured;
 * then come the names of the columns, then one line for each row. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <algorithm>
#include <istream>
#include <math.h>
#include <ostream>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>

struct bench_row {
  std::string group, what, type, size, mode; /* "reduce", "sum", "f32", "2^20", "cold" */
  double n;                                  /* elements, or multiply-adds */
  double ours_us;
  std::string peer; /* empty: none */
  double peer_us;
  double ratio, noise; /* the peer's time over gpukit's, 0: none; and how far its samples are from it, as a share */
  std::string unit;    /* of the rate */
  double rate;
  std::string ceiling; /* empty: none */
  double ceiling_us;
  std::string check; /* "ok", "wrong", or "peer off" */
  double sm_mhz;     /* the clock right after the samples; 0: not known */

  std::string name() const { return group + " " + what + " " + type + " " + size + " " + mode; }
  bool power_of_two() const { return size.compare(0, 2, "2^") == 0; }
  /* gpukit against itself, as in "sum misaligned/aligned" */
  bool beside_itself() const { return what.find('/') != std::string::npos; }
};

struct bench_file {
  std::vector<std::string> remarks; /* "key: value" */
  std::vector<bench_row> rows;

  /* The value of a remark; empty: there is none. */
  std::string get(const std::string &key) const {
    for (const std::string &remark : remarks)
      if (remark.compare(0, key.size() + 2, key + ": ") == 0) return remark.substr(key.size() + 2);
    return "";
  }
  const bench_row *find(const std::string &name) const {
    for (const bench_row &row : rows)
      if (row.name() == name) return &row;
    return NULL;
  }
};

inline const char *bench_columns() {
  return "group,what,type,size,n,mode,gpukit_us,peer,peer_us,ratio,noise,unit,gpukit_rate,ceiling,ceiling_us,check,"
         "sm_mhz";
}
inline std::vector<std::string> split_fields(const std::string &line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',')
      fields.push_back("");
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}
inline std::string row_line(const bench_row &r) {
  char text[512];
  snprintf(text, sizeof(text), "%s,%s,%s,%s,%.0f,%s,%.4f,%s,%.4f,%.4f,%.4f,%s,%.6g,%s,%.4f,%s,%.0f", r.group.c_str(),
           r.what.c_str(), r.type.c_str(), r.size.c_str(), r.n, r.mode.c_str(), r.ours_us, r.peer.c_str(), r.peer_us,
           r.ratio, r.noise, r.unit.c_str(), r.rate, r.ceiling.c_str(), r.ceiling_us, r.check.c_str(), r.sm_mhz);
  return text;
}
/* Lines from before sm_mhz was a column have no such field. */
inline bool parse_row(const std::string &line, bench_row *row) {
  const std::vector<std::string> f = split_fields(line);
  if (f.size() < 16) return false;
  const auto number = [&](size_t i) { return i < f.size() ? atof(f[i].c_str()) : 0; };
  row->group = f[0], row->what = f[1], row->type = f[2], row->size = f[3], row->n = number(4), row->mode = f[5];
  row->ours_us = number(6), row->peer = f[7], row->peer_us = number(8), row->ratio = number(9), row->noise = number(10);
  row->unit = f[11], row->rate = number(12), row->ceiling = f[13], row->ceiling_us = number(14), row->check = f[15];
  row->sm_mhz = number(16);
  return true;
}
/* False: a line is none of the bench's, and *bad is that line. */
inline bool read_rows(std::istream &from, bench_file *file, std::string *bad) {
  bool in_rows = false;
  for (std::string line; std::getline(from, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    bench_row row;
    if (line[0] == '#') {
      file->remarks.push_back(
          line.substr(line.find_first_not_of("# ") == std::string::npos ? line.size() : line.find_first_not_of("# ")));
    } else if (!in_rows && line.compare(0, 11, "group,what,") == 0) {
      in_rows = true;
    } else if (in_rows && parse_row(line, &row)) {
      file->rows.push_back(row);
    } else {
      *bad = line;
      return false;
    }
  }
  return true;
}
inline void write_rows(std::ostream &to, const bench_file &file) {
  for (const std::string &remark : file.remarks) to << "# " << remark << "\n";
  to << bench_columns() << "\n";
  for (const bench_row &row : file.rows) to << row_line(row) << "\n";
}

/* The middle of the values, of an even number of them the mean of both; 0 of none. */
inline double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::vector<double>::iterator middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double upper = *middle;
  return values.size() % 2 ? upper : (upper + *std::max_element(values.begin(), middle)) / 2;
}

#endif
