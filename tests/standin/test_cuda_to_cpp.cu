/* tests/cpu/cuda_to_cpp.c, run as a program: a text of all that is hard to tell apart gives the recorded C++; texts
 * that make no sense give an error with their line, and no output. No file of the program is overwritten. The program
 * is BUILD/host/cuda_to_cpp. */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

static std::string read_file(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/* A folder of its own for each test. Paths are relative to it, unless they are absolute. */
struct work_folder {
  fs::path root;
  work_folder() {
    std::string name = fs::temp_directory_path() / "cuda_to_cpp.XXXXXX";
    if (!mkdtemp(&name[0])) throw std::runtime_error("no folder " + name);
    root = name;
  }
  ~work_folder() { fs::remove_all(root); }
  std::string at(const std::string &name) const { return root / name; }
  std::string read(const std::string &name) const { return read_file(at(name)); }
  bool has(const std::string &name) const { return fs::symlink_status(at(name)).type() != fs::file_type::not_found; }
  bool is_link(const std::string &name) const { return fs::is_symlink(at(name)); }
  void write(const std::string &name, const std::string &text) const {
    fs::create_directories(fs::path(at(name)).parent_path());
    std::ofstream(at(name), std::ios::binary) << text;
  }
  void link(const std::string &target, const std::string &name) const {
    fs::create_directories(fs::path(at(name)).parent_path());
    fs::create_symlink(target, at(name));
  }
  /* What the program says: nothing if it succeeds. */
  std::string translate(const std::string &source, const std::string &result, const std::string &also = "") const {
    const char *const build = getenv("BUILD");
    const std::string program = std::string(build ? build : "build") + "/host/cuda_to_cpp", said = at("said");
    const std::string command = program + " " + at(source) + " " + at(result) + " 2>" + said + also;
    const int status = system(command.c_str());
    const std::string message = read_file(said);
    EXPECT_EQ(status != 0, !message.empty());
    return message;
  }
};

static const char triple[] = "#include \"cuda_cpu/triple.h\"\n";
static std::string translation(const std::string &source, const std::string &text) {
  return triple + ("#line 1 \"" + source + "\"\n") + text;
}
static const char a_launch[] = "int main() { k<<<1, 1>>>(); }\n";
static const char a_header[] = "#pragma once\nvoid f() { k<<<1, 1>>>(); }\n";
/* A source whose header has something to translate, which goes to a second file. */
static void write_with_header(const work_folder &folder) {
  folder.write("sub/once.cuh", a_header);
  folder.write("in.cu", "#include \"sub/once.cuh\"\n");
}

TEST(what_is_hard_to_tell_apart) {
  const work_folder folder;
  const std::string source = "tests/standin/cuda_to_cpp/nasty.txt";
  fs::copy_file(source, folder.at("nasty.txt"));
  EXPECT_EQ(folder.translate("nasty.txt", "nasty.cpp"), "");
  std::string text = folder.read("nasty.cpp");
  const size_t name = text.find(folder.at("nasty.txt"));
  EXPECT(name != std::string::npos);
  text.replace(name, folder.at("nasty.txt").size(), source);
  EXPECT_EQ(text, read_file("tests/standin/cuda_to_cpp/nasty_expected.txt"));
  const auto lines = [](const std::string &of) { return std::count(of.begin(), of.end(), '\n'); };
  EXPECT_EQ(lines(text), lines(read_file(source)) + 2);
}

TEST(texts_without_anything_to_translate) {
  const work_folder folder;
  const std::string zero("zero \0 byte, ) ] } and \\ at the end \\", 38);
  for (const std::string &text :
       {std::string(), std::string("int main() {}"), std::string("no end of line // k<<<1, 1>>>(x)"),
        std::string("/* never closed k<<<1, 1>>>(x)"), std::string("R\"(never closed k<<<1, 1>>>(x)"), zero,
        std::string("#define __shared__ static\n#ifdef __shared__\n#endif\n"), std::string("#if 0\nk<<<")}) {
    folder.write("in.cu", text);
    EXPECT_EQ(folder.translate("in.cu", "out.cpp"), "");
    EXPECT_EQ(folder.read("out.cpp"), translation(folder.at("in.cu"), text));
  }
}

TEST(texts_that_make_no_sense) {
  const work_folder folder;
  const char *const no_end = "there is no >>> for this <<<", *const no_kernel = "there is no kernel before this <<<",
                    *const no_arguments = "there are no arguments in parentheses after this launch",
                    *const no_array = "this declaration of extern __shared__ memory makes no sense",
                    *const initialized = "a __shared__ variable has no initializer: assign to it, then __syncthreads()",
                    *const result = "a kernel has no result: __global__ void";
  const struct {
    const char *text;
    int line;
    const char *message;
  } cases[] = {
      {"void f() {\n  k<<<1, 1>>(x);\n}\n", 2, no_end},
      {"\n\nk<<<1, (1>>>(x));", 3, no_end},
      {"k<<<1, 1", 1, no_end},
      {"#define K k<<<1,\nk 1>>>(x)\n", 1, no_end},
      {"{\n<<<1, 1>>>(x);", 2, no_kernel},
      {"/*\n*/ return <<<1, 1>>>(x);", 2, no_kernel},
      {"\\\nk<<<1, 1>>>;", 2, no_arguments},
      {"\nextern __shared__ float x[", 2, no_array},
      {"{extern __shared__ float x[]}", 1, no_array},
      {"k<<<1, 1>> >;", 1, no_end},
      {"{\n__shared__ int a, n = 0;}", 2, initialized},
      {"{__shared__ float x[N == 2]\n= {0, 1};}", 2, initialized},
      {"__global__ int k(float *p) {}", 1, result},
      {"template <class T> unsigned __global__ k(T *p);", 1, result},
      {"__global__ __launch_bounds__(64) void *k() {}", 1, result},
  };
  for (const auto &c : cases) {
    folder.write("in.cu", c.text);
    folder.write("out.cpp", "old");
    EXPECT_EQ(folder.translate("in.cu", "out.cpp"),
              folder.at("in.cu") + ":" + std::to_string(c.line) + ": error: " + c.message + "\n");
    EXPECT_EQ(folder.read("out.cpp"), "old");
  }
}

/* Translated where there is something to translate, named where they are, left alone where they are found. */
TEST(included_files) {
  const work_folder folder;
  folder.write("in.cu", "#include \"sub/a.cuh\"\n#include \"sub/b.h\"\n#include \"none.h\"\n#include <sub/a.cuh>\n");
  folder.write("sub/a.cuh", "#include \"b.h\"\n#include \"a.cuh\"\nvoid f() { k<<<1, 1>>>(); }\n");
  folder.write("sub/b.h", "int b;\n");
  EXPECT_EQ(folder.translate("in.cu", "out.cpp"), "");
  EXPECT_EQ(folder.read("out.cpp"),
            translation(folder.at("in.cu"), "#include \"out.cpp.1\"\n#include \"" + folder.at("sub/b.h") +
                                                "\"\n#include \"none.h\"\n#include <sub/a.cuh>\n"));
  EXPECT_EQ(folder.read("out.cpp.1"),
            translation(folder.at("sub/a.cuh"), "#include \"" + folder.at("sub/b.h") +
                                                    "\"\n#include \"out.cpp.1\"\n"
                                                    "void f() { CUDA_CPU_LAUNCH(0, k)(1, 1)(); }\n"));
  folder.write("sub/b.h", "\nk<<<1, 1>>\n");
  fs::remove(folder.at("out.cpp"));
  fs::remove(folder.at("out.cpp.1"));
  EXPECT_EQ(folder.translate("in.cu", "out.cpp"), folder.at("sub/b.h") + ":2: error: there is no >>> for this <<<\n");
  EXPECT(!folder.has("out.cpp") && !folder.has("out.cpp.1"));
}

TEST(a_file_that_several_paths_lead_to_is_translated_once) {
  const work_folder folder;
  folder.write("in.cu", "#include \"sub/once.cuh\"\n#include \"sub/../sub/once.cuh\"\n#include \"far/link.cuh\"\n"
                        "#include \"./in.cu\"\n");
  folder.write("sub/once.cuh", a_header);
  folder.link("../sub/once.cuh", "far/link.cuh");
  EXPECT_EQ(folder.translate("in.cu", "out.cpp"), "");
  EXPECT_EQ(folder.read("out.cpp"),
            translation(folder.at("in.cu"), "#include \"out.cpp.1\"\n#include \"out.cpp.1\"\n#include \"out.cpp.1\"\n"
                                            "#include \"out.cpp\"\n"));
  EXPECT(!folder.has("out.cpp.2"));
}

TEST(a_result_that_the_program_is_made_of_is_refused) {
  const work_folder folder;
  folder.write("in.cu", "#include \"sub/b.h\"\n#include \"out.2\"\nint main() { k<<<1, 1>>>(); }\n");
  folder.write("sub/b.h", "int b;\n");
  folder.write("out.2", "void f() { k<<<1, 1>>>(); }\n");
  fs::create_hard_link(folder.at("in.cu"), folder.at("hard.cpp"));
  folder.link("in.cu", "soft.cpp");
  const char *const cases[][2] = {
      {"in.cu", "in.cu"},    {"sub/../in.cu", "in.cu"}, {"hard.cpp", "in.cu"},
      {"soft.cpp", "in.cu"}, {"sub/b.h", "sub/b.h"},    {"out", "out.2"}, /* the translation of out.2 would go there */
  };
  for (const auto &c : cases) {
    const std::string kept = folder.read(c[1]);
    EXPECT_HAS(folder.translate("in.cu", c[0]).c_str(),
               ": cannot be written: the program is made of this file, so the C++ needs another name\n");
    EXPECT_EQ(folder.read(c[1]), kept);
  }
  EXPECT(!folder.has("out"));
  folder.write("in.cu", "k<<<1, 1>>\n");
  EXPECT(folder.translate("in.cu", "in.cu") != "");
  EXPECT_EQ(folder.read("in.cu"), "k<<<1, 1>>\n");
}

/* What is no regular file stays what it is, and is written to. */
TEST(pipes) {
  const work_folder folder;
  EXPECT_OK(mkfifo(folder.at("pipe").c_str(), 0600));
  const int both_ends = open(folder.at("pipe").c_str(), O_RDWR | O_NONBLOCK); /* so that no end waits for the other */
  const auto is_pipe = [&] { return fs::is_fifo(folder.at("pipe")); };
  folder.write("in.cu", "k<<<1, 1>>\n");
  EXPECT(folder.translate("in.cu", "pipe") != "");
  EXPECT(is_pipe());
  folder.write("in.cu", a_launch);
  EXPECT_EQ(folder.translate("in.cu", "out.cpp"), "");
  EXPECT_EQ(folder.translate("in.cu", "pipe"), "");
  std::string piped(1000, 0);
  piped.resize(static_cast<size_t>(std::max<ssize_t>(0, read(both_ends, &piped[0], piped.size()))));
  EXPECT_EQ(piped, folder.read("out.cpp"));
  EXPECT(is_pipe());
  write_with_header(folder);
  EXPECT_HAS(folder.translate("in.cu", "pipe").c_str(), "pipe: cannot be written: included files are translated");
  EXPECT(!folder.has("pipe.1"));
  close(both_ends);
}
TEST(devices) {
  const work_folder folder;
  folder.write("in.cu", a_launch);
  EXPECT_EQ(folder.translate("in.cu", "out.cpp"), "");
  folder.link("/dev/stdout", "stdout"); /* a name that is no loss if it is removed */
  EXPECT_EQ(folder.translate("in.cu", "stdout", " | cat >" + folder.at("piped")), "");
  EXPECT_EQ(folder.read("piped"), folder.read("out.cpp"));
  EXPECT(folder.is_link("stdout"));
  folder.link("/dev/null", "null");
  EXPECT_EQ(folder.translate("null", "null"), "");
  EXPECT(folder.is_link("null"));
}
TEST(links) {
  const work_folder folder;
  folder.write("in.cu", a_launch);
  folder.write("target.cpp", "old");
  folder.link("target.cpp", "link.cpp");
  EXPECT_EQ(folder.translate("in.cu", "link.cpp"), "");
  EXPECT(folder.is_link("link.cpp"));
  EXPECT_EQ(folder.translate("in.cu", "out.cpp"), "");
  EXPECT_EQ(folder.read("target.cpp"), folder.read("out.cpp"));
  folder.link("none/none.cpp", "dangling.cpp");
  EXPECT(folder.translate("in.cu", "dangling.cpp") != "");
}

TEST(files_that_cannot_be_read_or_written) {
  const work_folder folder;
  folder.write("in.cu", a_launch);
  EXPECT(folder.translate(".", "out.cpp") != "");
  EXPECT_HAS(folder.translate("none.cu", "out.cpp").c_str(), "none.cu: cannot be read: No such file");
  EXPECT_HAS(folder.translate("in.cu", "none/out.cpp").c_str(), "cannot be written");
  fs::create_directory(folder.at("folder.cpp"));
  EXPECT_HAS(folder.translate("in.cu", "folder.cpp").c_str(), "cannot be written");
}
