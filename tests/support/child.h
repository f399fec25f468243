/* Children: a test that has to die, or needs another environment, runs again as a process of its own.
 *
 *   TEST(it_dies) {
 *     if (in_child("it_dies")) abort();
 *     EXPECT_EQ(run_child("it_dies", "NAME=value").signal, SIGABRT);
 *   } */
#ifndef CHILD_H
#define CHILD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <string>
#include "test.h"

struct child {
  std::string output; /* both streams */
  int signal, status;
};
/* Another processor is emulated: other programs see the emulator in /proc/PID/exe, and nothing finds leaks. */
inline bool emulated() {
  const char *emulator = getenv("EMULATOR");
  return emulator && *emulator;
}
inline bool in_child(const char *test) {
  const char *name = getenv("GPUKIT_TEST_CHILD");
  return name && strcmp(name, test) == 0;
}
inline child run_child(const char *test, const char *environment) {
  char path[4096] = "";
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length < 1 || getenv("GPUKIT_TEST_CHILD")) SKIP("cannot start itself as a child");
  const std::string command = std::string("ulimit -c 0; exec env GPUKIT_TEST_CHILD=") + test + " " + environment +
                              " ${EMULATOR-} '" + path + "' " + test + " 2>&1"; /* EMULATOR: words (tests/ports.sh) */
  child c = {"", 0, 0};
  FILE *pipe = popen(command.c_str(), "r");
  EXPECT(pipe != nullptr);
  if (!pipe) return c;
  for (int ch; (ch = fgetc(pipe)) != EOF;) c.output += static_cast<char>(ch);
  const int status = pclose(pipe);
  if (WIFSIGNALED(status)) c.signal = WTERMSIG(status);
  if (WIFEXITED(status)) c.status = WEXITSTATUS(status);
  return c;
}
#define EXPECT_PASSED(c) EXPECT_HAS((c).output.c_str(), "1 passed, 0 failed\n")

/* What f() prints. It must not expect anything: that would be captured, too. */
template <class F> std::string printed_by(F f) {
  std::string text;
  fflush(stdout);
  const int terminal = dup(STDOUT_FILENO);
  FILE *file = tmpfile();
  if (!file || terminal < 0) SKIP("no temporary file");
  dup2(fileno(file), STDOUT_FILENO);
  f();
  fflush(stdout);
  dup2(terminal, STDOUT_FILENO);
  close(terminal);
  rewind(file);
  for (int c; (c = fgetc(file)) != EOF;) text += static_cast<char>(c);
  fclose(file);
  return text;
}

#endif
