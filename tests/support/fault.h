/* Kernels that are meant to fail on the stand-in, and what is said of them. */
#ifndef FAULT_H
#define FAULT_H

#include <cuda_runtime.h>
#include "test.h"

#ifdef CUDA_ON_CPU
#include <unistd.h>

/* A schedule, number of workers or rule for the rest of a test. */
struct with_settings {
  cuda_cpu::settings before;
  explicit with_settings(const char *schedule, int workers = 0) : before(*cuda_cpu::configure()) {
    EXPECT(cuda_cpu::set_schedule(cuda_cpu::configure(), schedule));
    if (workers) cuda_cpu::configure()->workers = workers;
  }
  with_settings(const with_settings &) = delete;
  ~with_settings() { *cuda_cpu::configure() = before; }
};

inline std::string said; /* by the last failing launch */
template <class F> std::string stderr_of(F f) {
  fflush(stderr);
  FILE *log = tmpfile();
  const int before = dup(2);
  dup2(fileno(log), 2);
  f();
  fflush(stderr);
  dup2(before, 2);
  close(before);
  rewind(log);
  char buffer[8192];
  const size_t n = fread(buffer, 1, sizeof buffer, log);
  fclose(log);
  return std::string(buffer, n);
}

/* The launch goes well, and what it launches fails; in each schedule, the last one's words stay. A reset frees all. */
template <class F> void expect_fault(const char *file, int line, F start) {
  for (const char *schedule : {"reversed", "random:1", "random:2", "forward"}) {
    with_settings settings(schedule);
    cudaError_t launched = cudaErrorUnknown;
    said = stderr_of([&] { launched = start(); });
    test_eq(launched, cudaSuccess, "the launch itself", "cudaSuccess", file, line);
    test_eq(cudaDeviceSynchronize(), cudaErrorLaunchFailure, schedule, "cudaErrorLaunchFailure", file, line);
    test_eq(cudaDeviceReset(), cudaSuccess, "the reset", "cudaSuccess", file, line);
  }
}
#define EXPECT_FAULT(...) expect_fault(__FILE__, __LINE__, [&] { return __VA_ARGS__; })
#define EXPECT_SAID(part) EXPECT_HAS(said.c_str(), part)
/* A call in a kernel notes its line, which the message has to name. */
inline int lines[4];
#define NOTE(n) lines[n] = __LINE__
#define EXPECT_SAID_LINE(n) EXPECT_HAS(said.c_str(), (std::string(__FILE__) + ":" + std::to_string(lines[n])).c_str())

#endif
#endif
