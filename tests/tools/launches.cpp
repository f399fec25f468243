/* Records the kernels that a program launches: their mangled names, one a line, are added to the file that LAUNCHES
 * names. The driver loads this library into each program that runs with CUDA_INJECTION64_PATH, so programs are built as
 * always. CUPTI calls it after each launch, also while a stream is captured. */
#include <cuda.h>
#include <cupti.h>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <string>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

/* Never destroyed: threads may launch kernels until the process ends. */
static std::mutex &mutex = *new std::mutex;
static std::set<std::string> &names = *new std::set<std::string>;
static int file = -1;

static void CUPTIAPI launched(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *data) {
  const CUpti_CallbackData *const call = static_cast<const CUpti_CallbackData *>(data);
  if (call->callbackSite != CUPTI_API_EXIT || !call->symbolName) return;
  if (*static_cast<const CUresult *>(call->functionReturnValue) != CUDA_SUCCESS) return;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!names.insert(call->symbolName).second) return;
  const std::string line = std::string(call->symbolName) + "\n";
  /* One write, since child processes share the file. */
  if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) perror("launches.cpp: LAUNCHES");
}

static bool subscribe() {
  static const CUpti_CallbackId calls[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                           CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                           CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                           CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                                           CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                                           CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz};
  const char *const path = getenv("LAUNCHES");
  file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
  if (file < 0) return false;
  CUpti_SubscriberHandle subscriber;
  if (cuptiSubscribe(&subscriber, launched, nullptr) != CUPTI_SUCCESS) return false;
  for (CUpti_CallbackId call : calls)
    if (cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, call) != CUPTI_SUCCESS) return false;
  return true;
}

/* The driver calls this when it has loaded the library. */
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (!subscribe()) fprintf(stderr, "launches.cpp: launches are not recorded\n");
  return 1;
}
