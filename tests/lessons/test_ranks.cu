/* What starts the ranks of a lesson: launchers' variables, and the file by which NCCL's id goes from process to
 * process. */
#include "examples/lesson_ranks.h"

#include "test.h"
#include <map>
#include <stdlib.h>
#include <thread>

static const char *const variables[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MV2_COMM_WORLD_RANK",
                                        "MV2_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALRANKID",
                                        "SLURM_PROCID",
                                        "SLURM_LOCALID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID",
                                        "PMIX_NAMESPACE",
                                        "LESSON_NCCL_ID"};
typedef std::map<std::string, std::string> environment;
static void set_environment(const environment &e) {
  for (const char *name : variables) unsetenv(name);
  for (const auto &v : e) setenv(v.first.c_str(), v.second.c_str(), 1);
}

static void expect_launched(const environment &e, const char *by, int rank, int ranks, int local) {
  set_environment(e);
  const launched l = launched_by_environment();
  EXPECT_EQ(std::string(l.by ? l.by : "nobody"), by);
  EXPECT_EQ(l.rank, rank);
  EXPECT_EQ(l.ranks, ranks);
  EXPECT_EQ(l.local, local);
  set_environment({});
}

TEST(a_process_that_nobody_launched_has_all_ranks) {
  expect_launched({}, "nobody", 0, 1, 0);
  expect_launched({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}, "nobody", 0, 1, 0);
  /* A job's script, which is not one of its steps. */
  expect_launched({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}}, "nobody", 0, 1, 0);
  unsetenv("SLURM_NTASKS");
}
TEST(launchers_tell_the_rank) {
  expect_launched({{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}},
                  "Open MPI", 5, 8, 1);
  expect_launched({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}}, "a launcher with PMI", 3, 4, 1);
  expect_launched({{"SLURM_PROCID", "6"}, {"SLURM_STEP_NUM_TASKS", "7"}, {"SLURM_LOCALID", "2"}}, "Slurm", 6, 7, 2);
  expect_launched({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}}, "torchrun", 1, 2, 1);
  expect_launched({{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "2"}}, "MVAPICH", 1, 2, 1);
}
TEST(one_launcher_within_another) {
  const environment slurm = {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}};
  environment e = slurm; /* mpirun, whose helpers are a step of the job */
  e["OMPI_COMM_WORLD_RANK"] = "5", e["OMPI_COMM_WORLD_SIZE"] = "8", e["OMPI_COMM_WORLD_LOCAL_RANK"] = "2";
  expect_launched(e, "Open MPI", 5, 8, 2);
  e = slurm; /* srun --mpi=pmi2 */
  e["PMI_RANK"] = "1", e["PMI_SIZE"] = "2";
  expect_launched(e, "a launcher with PMI", 1, 2, 0);
}
TEST(variables_that_are_no_ranks) {
  for (const char *rank : {"", "x", "1x", "-1", "4", "99999999999999999999"})
    expect_launched({{"PMI_RANK", rank}, {"PMI_SIZE", "4"}}, "nobody", 0, 1, 0);
  expect_launched({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "here"}}, "a launcher with PMI", 1, 4, 1);
}

#ifdef GPUKIT_NCCL
TEST(the_file_is_named_after_the_job) {
  const lesson_about about = {"name", "", "", 0, 0, 0, 0, ""};
  const auto path = [&](const environment &e) {
    set_environment(e);
    const std::string p = id_path(&about);
    set_environment({});
    return p;
  };
  EXPECT_EQ(path({}), "name." + std::to_string(getppid()) + ".id");
  EXPECT_EQ(path({{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "3"}}), "name.77.3.id");
  EXPECT_EQ(path({{"SLURM_JOB_ID", "77"}, {"PMIX_NAMESPACE", "a/b.1"}}), "name.a_b.1.id");
  EXPECT_EQ(path({{"SLURM_JOB_ID", "77"}, {"LESSON_NCCL_ID", "/shared/id"}}), "/shared/id");
}

/* A folder that is gone, with what is in it, when the test is over. */
struct folder {
  std::string path;
  folder() {
    char name[] = "/tmp/test_ranks.XXXXXX";
    if (mkdtemp(name)) path = name;
    EXPECT(!path.empty());
  }
  ~folder() {
    if (!path.empty() && system(("rm -rf " + path).c_str())) printf("%s is still there\n", path.c_str());
  }
  bool empty() const { return rmdir(path.c_str()) == 0; }
};
static ncclUniqueId id_of(char c) {
  ncclUniqueId id;
  memset(&id, c, sizeof id);
  return id;
}
/* Ranks as threads, each after its own delay in ms. */
static void expect_passed(const std::string &path, const std::vector<int> &delays) {
  std::vector<std::thread> threads;
  std::vector<std::string> why(delays.size());
  std::vector<char> passed(delays.size()), same(delays.size());
  for (size_t r = 0; r < delays.size(); r++)
    threads.emplace_back([&, r] {
      usleep((unsigned)delays[r] * 1000);
      ncclUniqueId id = id_of(r ? 'n' : 'y');
      const ncclUniqueId right = id_of('y');
      passed[r] = pass_id_on(&id, path, (int)r, (int)delays.size(), 20000, &why[r]);
      same[r] = !memcmp(&id, &right, sizeof id);
    });
  for (std::thread &t : threads) t.join();
  for (size_t r = 0; r < delays.size(); r++)
    if (!passed[r] || !same[r])
      test_fail(__FILE__, __LINE__, "rank " + std::to_string(r) + (passed[r] ? " has another id" : ": " + why[r]));
}

TEST(the_id_comes_to_all_in_any_order) {
  for (const std::vector<int> &delays :
       {std::vector<int>{0}, std::vector<int>{0, 30}, std::vector<int>{30, 0}, std::vector<int>{20, 40, 0, 60}}) {
    folder f;
    expect_passed(f.path + "/id", delays);
    EXPECT(f.empty());
  }
}
/* What an earlier run of the same name has left when it was killed: its answer, and what its ranks had asked. */
TEST(files_of_an_earlier_run_mislead_nobody) {
  for (const std::vector<int> &delays : {std::vector<int>{0, 50, 80}, std::vector<int>{80, 0, 40}}) {
    folder f;
    const std::string path = f.path + "/id";
    const ncclUniqueId old = id_of('o');
    const unsigned long long asked[] = {0, 5, 6};
    const std::string bytes((const char *)&old, sizeof old);
    EXPECT(write_file(path, bytes + std::string((const char *)asked, sizeof asked)));
    EXPECT(write_file(path + ".1", std::string((const char *)&asked[1], sizeof asked[1])));
    EXPECT(write_file(path + ".2", std::string((const char *)&asked[2], sizeof asked[2])));
    expect_passed(path, delays);
    EXPECT(f.empty());
  }
}
TEST(a_rank_that_does_not_come_is_missed) {
  folder f;
  const std::string path = f.path + "/id";
  ncclUniqueId id = id_of('y');
  std::string why;
  EXPECT(!pass_id_on(&id, path, 0, 2, 50, &why));
  EXPECT_HAS(why.c_str(), "of 2 ranks not all have come");
  EXPECT(!pass_id_on(&id, path, 1, 2, 50, &why));
  EXPECT_HAS(why.c_str(), "/id has not come");
  EXPECT(f.empty());
  EXPECT(!pass_id_on(&id, "/nowhere/at/all", 1, 2, 50, &why));
  EXPECT_HAS(why.c_str(), "/nowhere/at/all.1 cannot be written: No such file");
}
#else
TEST(the_file_of_the_id) { SKIP("built without NCCL: nccl.h or its library is not here"); }
#endif
