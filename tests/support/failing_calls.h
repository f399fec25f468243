/* Lets every call of CUDA's that a call of gpukit's makes fail in turn, on the stand-in: the first one, then the second,
 * until none is left. Include it after gpukit.cuh. */
#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

#include <functional>
#include <string>
#include <string.h>
#include <vector>
#include "test.h"

#ifdef CUDA_ON_CPU

/* What the calls work on, new for each attempt. Every output lies in `host_out` or `out` and starts as 0xa5. */
struct fault_world {
  static const size_t items = 2 * 256 * 48 + 3; /* more than a tile of any reduction or scan has */
  static const size_t out_bytes = items * 16;
  unsigned char host_out[4096];
  std::vector<unsigned char> host_in; /* of ones, whatever the type: the bytes 1, or as each subject likes */
  void *in, *out, *other;             /* device memory; `other` is for subjects that write beside their output */
  gk_scratch scratch, made;           /* `made` is for calls that make one */
  gk_timer timer;
  bool lost; /* a reset has freed it all */

  fault_world() : host_in(out_bytes, 1), in(NULL), out(NULL), other(NULL), lost(false) {
    scratch = made = gk_scratch();
    timer = gk_timer();
    EXPECT_OK(cudaMalloc(&in, out_bytes));
    EXPECT_OK(cudaMalloc(&out, out_bytes));
    EXPECT_OK(cudaMalloc(&other, out_bytes));
    EXPECT_OK(cudaMemset(in, 1, out_bytes));
    EXPECT_OK(cudaMemset(out, 0xa5, out_bytes));
    memset(host_out, 0xa5, sizeof host_out);
    EXPECT_OK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(items, 16), 0));
  }
  fault_world(const fault_world &) = delete;
  ~fault_world() {
    if (lost) return;
    if (made.ptr) EXPECT_OK(gk_scratch_destroy(&made));
    if (timer.state) EXPECT_OK(gk_timer_destroy(&timer));
    EXPECT_OK(gk_scratch_destroy(&scratch));
    for (void *p : {in, out, other}) EXPECT_OK(cudaFree(p));
  }
  template <class T> T *to_host() { return reinterpret_cast<T *>(host_out); }
  template <class T> const T *from() const { return static_cast<const T *>(in); }
  template <class T> T *to() const { return static_cast<T *>(out); }
  template <class T> const T *host() const { return reinterpret_cast<const T *>(host_in.data()); }
  bool untouched() const { /* the stand-in's device memory is the host's */
    const unsigned char *device = static_cast<const unsigned char *>(out);
    for (unsigned char byte : host_out)
      if (byte != 0xa5) return false;
    for (size_t i = 0; i < out_bytes; i++)
      if (device[i] != 0xa5) return false;
    return true;
  }
};

/* One call. `prepare` brings about what the call needs, with nothing failing yet. */
struct fault_subject {
  std::string name;
  std::function<cudaError_t(fault_world &)> call;
  std::function<void(fault_world &)> prepare;
  fault_subject(const std::string &what, std::function<cudaError_t(fault_world &)> does,
                std::function<void(fault_world &)> before = nullptr)
      : name(what), call(does), prepare(before) {}
};

/* A reduction and a scan with the scratch still give what they should. */
inline bool scratch_is_good(const fault_world &w) {
  const size_t n = fault_world::items;
  unsigned *const numbers = static_cast<unsigned *>(w.other), sum = 0, last = 0;
  const unsigned one = 0x01010101u;
  if (gk_reduce_sum(w.from<unsigned>(), numbers, n, 0, &w.scratch)) return false;
  if (cudaMemcpy(&sum, numbers, sizeof sum, cudaMemcpyDeviceToHost)) return false;
  if (gk_scan_inclusive(w.from<unsigned>(), numbers, n, gk_op_sum(), 0, &w.scratch)) return false;
  if (cudaMemcpy(&last, numbers + n - 1, sizeof last, cudaMemcpyDeviceToHost)) return false;
  return sum == static_cast<unsigned>(n) * one && last == sum;
}

/* The k-th call fails with `error` (NULL: with one that fits it); how many calls there were, or 0 if the k-th is one
 * too many and all went well. */
inline unsigned long long fail_once(const fault_subject &s, unsigned k, const char *error, bool sticky) {
  const size_t before_all = cuda_cpu_held();
  unsigned long long calls = 0;
  {
    fault_world w;
    if (s.prepare) s.prepare(w);
    const size_t before = cuda_cpu_held();
    cuda_cpu_fail(("any:" + std::to_string(k) + (error ? error : "")).c_str());
    const cudaError_t code = s.call(w);
    const std::string detail = gk_error_detail();
    const unsigned long long releases = cuda_cpu_calls("cudaFree") + cuda_cpu_calls("cudaFreeAsync") +
                                        cuda_cpu_calls("cudaEventDestroy"),
                             kernels = cuda_cpu_calls("kernel");
    calls = cuda_cpu_calls("any");
    cuda_cpu_fail(NULL);
    const std::string where = s.name + ", call " + std::to_string(k) + " failing" + (error ? error : "");
    const auto demand = [&](bool so, const std::string &what) {
      if (!so) test_fail(__FILE__, __LINE__, where + ": " + what);
    };
    const bool struck = calls >= k;
    if (!struck) {
      demand(code == cudaSuccess, "it fails though nothing else does: " + detail);
      demand(detail.empty(), "it succeeds, and says " + detail);
      calls = 0;
    } else if (code == cudaSuccess) {
      demand(false, "it succeeds all the same");
    } else {
      demand(!detail.compare(0, 3, "gk_"), "the detail names no call: " + detail);
      /* An event that there is no memory for has no number of bytes to tell. */
      const bool told = sticky
                            ? strstr(detail.c_str(), "from work before ") != NULL
                            : strstr(detail.c_str(), cudaGetErrorString(code)) ||
                                  (code == cudaErrorMemoryAllocation && strstr(detail.c_str(), "the device has no "));
      demand(told, "the detail names no cause: " + detail);
      if (!kernels) demand(w.untouched(), "outputs were written before it failed");
    }
    cudaGetLastError();
    if (sticky && struck) {
      EXPECT_OK(cudaDeviceReset());
      w.lost = true;
    } else if (struck) {
      /* Only a release that failed may leave what it was to release; these fail with no other errors. */
      const bool release = releases && (code == cudaErrorUnknown || code == cudaErrorInvalidResourceHandle);
      const size_t allowed = before + (release ? 1 : 0);
      demand(cuda_cpu_held() <= allowed,
             std::to_string(cuda_cpu_held() - before) + " things are held that were not before");
      demand(scratch_is_good(w), "the scratch is of no use afterwards");
    }
  }
  /* What a failed release has left goes with the device, so that one subject does not fall on the next. */
  if (cuda_cpu_held() != before_all) EXPECT_OK(cudaDeviceReset());
  cudaGetLastError();
  return calls;
}

/* All calls of all subjects; the number of failures that were provoked. */
inline unsigned fail_each(const std::vector<fault_subject> &subjects, bool all_errors = true) {
  unsigned provoked = 0;
  for (const fault_subject &s : subjects)
    for (const char *error : {"", ":cudaErrorUnknown", ":cudaErrorIllegalAddress"}) {
      if (error[0] && !all_errors) continue;
      const bool sticky = strstr(error, "IllegalAddress") != NULL;
      for (unsigned k = 1; fail_once(s, k, error[0] ? error : NULL, sticky); k++) {
        provoked++;
        if (test_get().failures > 200) return provoked;
      }
    }
  return provoked;
}

#endif
#endif
