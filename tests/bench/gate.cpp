/* What can be done with the files of the bench without a GPU: see usage. */
#include "gate.h"
#include "goals.h"

#include <fstream>
#include <iostream>
#include <string.h>

static const char usage[] =
    "gate compare THEN.csv NOW.csv [BEST.csv [ACCEPTED.csv]]   what is slower now; the exit status is 1 if it may not "
    "be\n"
    "gate summary FILE.csv...                                  the means, the random shapes and the goals\n"
    "gate merge FILE.csv... >MERGED.csv                        several runs of one build and GPU as one baseline\n"
    "gate best BEST.csv FILE.csv...                            takes over into BEST.csv the means that are better\n";

static int compare(int count, char **paths) {
  bench_file then, now;
  std::vector<gate_known_mean> best, accepted;
  if (count < 2 || count > 4 || !gate_open_rows(paths[0], &then) || !gate_open_rows(paths[1], &now)) return 2;
  if ((count > 2 && !gate_open_means(paths[2], true, &best)) ||
      (count > 3 && !gate_open_means(paths[3], true, &accepted)))
    return 2;
  for (const char *what : {"gpu", "build"})
    if (then.get(what) != now.get(what))
      printf("the %s differs: %s and %s\n", what, then.get(what).c_str(), now.get(what).c_str());
  return !gate_passes(stdout, then.rows, now, best, accepted);
}

static int merge(int count, char **paths) {
  std::vector<bench_file> files(static_cast<size_t>(count));
  for (int i = 0; i < count; i++)
    if (!gate_open_rows(paths[i], &files[static_cast<size_t>(i)])) return 2;
  for (const bench_file &file : files)
    for (const char *what : {"gpu", "build"})
      if (file.get(what) != files[0].get(what))
        return fprintf(stderr, "the %s differs: %s and %s\n", what, files[0].get(what).c_str(), file.get(what).c_str()),
               2;
  write_rows(std::cout, gate_merge(files));
  return 0;
}

static int raise_best(int count, char **paths) {
  std::vector<gate_known_mean> best;
  if (count < 2 || !gate_open_means(paths[0], false, &best)) return 2;
  for (int i = 1; i < count; i++) {
    bench_file file;
    if (!gate_open_rows(paths[i], &file)) return 2;
    gate_raise_best(&best, file);
  }
  std::ofstream to(paths[0]);
  to << gate_best_columns() << "\n";
  for (const gate_known_mean &mean : best) {
    char text[300];
    snprintf(text, sizeof(text), "%s,%s,%s,%zu,%.4f,%.4f,%s", mean.type.c_str(), mean.build.c_str(), mean.gpu.c_str(),
             mean.rows, mean.mean, mean.own_us, mean.note.c_str());
    to << text << "\n";
  }
  to.close();
  return to.fail() ? (perror(paths[0]), 2) : 0;
}

static int summary(int count, char **paths) {
  for (int i = 0; i < count; i++) {
    bench_file file;
    if (!gate_open_rows(paths[i], &file)) return 2;
    for (const std::string &remark : file.remarks) printf("%s\n", remark.c_str());
    printf("\n%-20s %6s %10s %10s\n", "type", "rows", "geo. mean", "own us");
    for (const gate_mean &mean : gate_means(file.rows))
      printf("%-20s %6zu %10.3f %10.2f\n", mean.type.c_str(), mean.rows, mean.mean, mean.own_us);
    print_summary(file.rows);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc >= 3 && !strcmp(argv[1], "compare")) return compare(argc - 2, argv + 2);
  if (argc >= 3 && !strcmp(argv[1], "summary")) return summary(argc - 2, argv + 2);
  if (argc >= 3 && !strcmp(argv[1], "merge")) return merge(argc - 2, argv + 2);
  if (argc >= 3 && !strcmp(argv[1], "best")) return raise_best(argc - 2, argv + 2);
  const bool help = argc == 2 && !strcmp(argv[1], "--help");
  fputs(usage, help ? stdout : stderr);
  return help ? 0 : 2;
}
