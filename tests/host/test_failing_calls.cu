/* What gpukit does when CUDA fails it. On the stand-in every call that gpukit makes fails in turn; the rest needs a GPU
 * that is really out of memory, lost, or another one than the stream's. Tests named provoke_... make CUDA calls that
 * fail, which compute-sanitizer reports as errors of the program. */
#include "hooks.h"
#include "test.h"
#include "child.h"

#include <signal.h>

#include "once.h"
#include "data.h"
#include "failing_calls.h"

__global__ void nothing() {}
__global__ void store_one(int *where) { *where = 1; }

/* --- every call in turn --- */

#ifdef CUDA_ON_CPU

static cudaError_t clear_other(void *user, cudaStream_t stream, size_t) {
  const cudaError_t code = cudaMemsetAsync(user, 0, 1, stream);
  return code ? hook_failed(code, "gk_bench's function") : code;
}
static void start_timer(fault_world &w) {
  EXPECT_OK(gk_timer_create(&w.timer));
  EXPECT_OK(gk_timer_start(&w.timer, 0));
}
static void stop_timer(fault_world &w) {
  start_timer(w);
  EXPECT_OK(gk_timer_stop(&w.timer));
}

static const size_t many = fault_world::items;

TEST(each_call_of_devices_timing_and_scratch_fails_in_turn) {
  const void *const kernel = reinterpret_cast<const void *>(nothing);
  const std::vector<fault_subject> subjects = {
      {"gk_device_query", [](fault_world &w) { return gk_device_query(-1, w.to_host<gk_device_info>()); }},
      {"gk_device_best", [](fault_world &w) { return gk_device_best(w.to_host<int>()); }},
      {"gk_occupancy", [=](fault_world &w) { return gk_occupancy(kernel, 64, 100, w.to_host<gk_occupancy_info>()); }},
      {"gk_occupancy, much shared memory",
       [=](fault_world &w) { return gk_occupancy(kernel, 64, 100 << 10, w.to_host<gk_occupancy_info>()); }},
      {"gk_block_for", [=](fault_world &w) { return gk_block_for(kernel, 1, w.to_host<int>()); }},
      {"gk_timer_create", [](fault_world &w) { return gk_timer_create(&w.timer); }},
      {"gk_timer_start", [](fault_world &w) { return gk_timer_start(&w.timer, 0); }, start_timer},
      {"gk_timer_stop", [](fault_world &w) { return gk_timer_stop(&w.timer); }, start_timer},
      {"gk_timer_ready", [](fault_world &w) { return gk_timer_ready(&w.timer, w.to_host<int>()); }, stop_timer},
      {"gk_timer_ms", [](fault_world &w) { return gk_timer_ms(&w.timer, w.to_host<float>()); }, stop_timer},
      {"gk_timer_destroy", [](fault_world &w) { return gk_timer_destroy(&w.timer); }, stop_timer},
      {"gk_bench",
       [](fault_world &w) {
         gk_bench_opts o = gk_bench_opts();
         o.warmup = 1, o.samples = 2, o.bytes = o.flops = 1;
         o.calls = 2;
         return gk_bench(clear_other, w.other, &o, w.to_host<gk_bench_result>());
       }},
      {"gk_bench_buffers", [](fault_world &w) { return gk_bench_buffers(1000, w.to_host<size_t>()); }},
      {"gk_scratch_create", [](fault_world &w) { return gk_scratch_create(&w.made, 1, 0); }},
      {"gk_scratch_destroy", [](fault_world &w) { return gk_scratch_destroy(&w.made); },
       [](fault_world &w) { EXPECT_OK(gk_scratch_create(&w.made, 1, 0)); }},
  };
  EXPECT(fail_each(subjects) > 300);
}

/* Those that print, or tell a handler. */
TEST(each_call_of_what_prints_fails_in_turn) {
  const void *const kernel = reinterpret_cast<const void *>(nothing);
  const std::vector<fault_subject> subjects = {
      {"gk_device_print", [](fault_world &) { return gk_device_print(0); }},
      {"gk_occupancy_print", [=](fault_world &) { return gk_occupancy_print(kernel, 64, 100); }},
      {"GK_TIME", [](fault_world &) {
         struct first_error {
           cudaError_t code;
           std::string detail;
         } first = {cudaSuccess, ""};
         gk_set_error_handler(
             [](const gk_error *e, void *user) {
               first_error *f = static_cast<first_error *>(user);
               if (!f->code) f->code = static_cast<cudaError_t>(e->code), f->detail = e->detail;
             },
             &first);
         GK_TIME ("timed", 0) {}
         gk_set_error_handler(NULL, NULL);
         if (!first.code) return first.code;
         return hook_fail(first.code, "%s", first.detail.c_str());
       }}};
  EXPECT(fail_each(subjects, false) > 20);
}

TEST(each_call_of_a_launch_fails_in_turn) {
  const std::vector<fault_subject> subjects = {
      {"gk_launch", [](fault_world &) { return hook_launch("gk_test", nothing, 1, 32, 0, 0); }},
      {"gk_launch with much shared memory",
       [](fault_world &) { return hook_launch("gk_test", nothing, 1, 32, 100 << 10, 0); }},
  };
  EXPECT(fail_each(subjects) > 5);
}

TEST(each_call_of_reduce_and_scan_fails_in_turn) {
  const auto with = [](fault_world &w) { return &w.scratch; };
  const auto without = [](fault_world &) { return static_cast<gk_scratch *>(NULL); };
  std::vector<fault_subject> subjects;
  const auto each = [&](const std::string &how, size_t n, std::function<gk_scratch *(fault_world &)> s) {
    subjects.emplace_back("gk_reduce_sum of " + how,
                          [=](fault_world &w) { return gk_reduce_sum(w.from<float>(), w.to<double>(), n, 0, s(w)); });
    subjects.emplace_back("gk_scan_exclusive of " + how, [=](fault_world &w) {
      return gk_scan_exclusive(w.from<float>(), w.to<float>(), n, gk_op_sum(), 0, s(w));
    });
    subjects.emplace_back("gk_scan_inclusive of " + how, [=](fault_world &w) {
      return gk_scan_inclusive(w.from<float>(), w.to<float>(), n, gk_op_sum(), 0, s(w));
    });
    subjects.emplace_back("gk_scan_exclusive_init of " + how, [=](fault_world &w) {
      return gk_scan_exclusive_init(w.from<float>(), w.to<float>(), n, gk_op_sum(), 3, 0, s(w));
    });
  };
  each("few items", 5, with);
  each("many items with a scratch", many, with);
  each("many items without a scratch", many, without);
  EXPECT(fail_each(subjects) > 100);
}
struct is_one {
  __device__ bool operator()(unsigned char x) const { return x == 1; }
};
TEST(each_call_of_select_and_matrices_fails_in_turn) {
  std::vector<fault_subject> subjects;
  for (bool with : {false, true}) {
    const auto scratch = [=](fault_world &w) { return with ? &w.scratch : NULL; };
    const std::string how = with ? " with a scratch" : " without a scratch";
    subjects.emplace_back("gk_select" + how, [=](fault_world &w) {
      unsigned char *const to = w.to<unsigned char>();
      return gk_select(w.from<unsigned char>(), to + 16, reinterpret_cast<unsigned *>(to), many, is_one(), 0,
                       scratch(w));
    });
    subjects.emplace_back("gk_select_flagged" + how, [=](fault_world &w) {
      return gk_select_flagged(w.from<float>(), w.from<int>(), w.to<float>() + 2, w.to<size_t>(), 100, 0, scratch(w));
    });
    subjects.emplace_back("gk_reduce_rows" + how, [=](fault_world &w) {
      return gk_reduce_rows(w.from<float>(), w.to<float>(), 3, many / 3, 0, gk_op_sum(), 0, scratch(w));
    });
    subjects.emplace_back("gk_reduce_columns" + how, [=](fault_world &w) {
      return gk_reduce_columns(w.from<float>(), w.to<float>(), many / 3, 3, 0, gk_op_sum(), 0, scratch(w));
    });
    subjects.emplace_back("gk_scan_rows_inclusive" + how, [=](fault_world &w) {
      return gk_scan_rows_inclusive(w.from<int>(), w.to<int>(), 3, many / 3, 0, gk_op_sum(), 0, scratch(w));
    });
  }
  EXPECT(fail_each(subjects) > 40);
}
TEST(each_call_of_argmax_and_host_arrays_fails_in_turn) {
  const std::vector<fault_subject> subjects = {
      {"gk_reduce_value",
       [](fault_world &w) {
         return gk_reduce_value(w.from<int>(), w.to_host<int>(), many, gk_op_max(), 0, &w.scratch);
       }},
      {"gk_reduce_argmax", [](fault_world &w) { return gk_reduce_argmax(w.from<int>(), w.to<gk_arg<int>>(), many); }},
      {"gk_host_reduce",
       [](fault_world &w) { return gk_host_reduce(w.host<int>(), w.to_host<int>(), many, gk_op_max()); }},
      {"gk_host_scan_inclusive",
       [](fault_world &w) { return gk_host_scan_inclusive(w.host<int>(), w.to_host<int>(), 1000, gk_op_sum()); }},
      {"gk_host_scan_exclusive",
       [](fault_world &w) { return gk_host_scan_exclusive(w.host<int>(), w.to_host<int>(), 1000, gk_op_sum()); }}};
  EXPECT(fail_each(subjects) > 60);
}

TEST(each_call_of_matmul_fails_in_turn) {
  const std::vector<fault_subject> subjects = {
      {"gk_matmul", [](fault_world &w) { return gk_matmul(w.from<float>(), w.from<float>(), w.to<float>(), 9, 8, 7); }},
      {"gk_matmul_ex",
       [](fault_world &w) {
         gk_matmul_opts o = gk_matmul_opts();
         o.plan = HOOK_PLAN_TILE_64, o.batch = 3;
         return gk_matmul_ex(w.from<float>(), w.from<float>(), w.to<float>(), 9, 8, 7, &o);
       }},
      {"gk_matmul_ex, emulated",
       [](fault_world &w) {
         gk_matmul_opts o = gk_matmul_opts();
         o.precision = GK_PRECISION_EMULATED, o.plan = GK_PLAN_MMA;
         return gk_matmul_ex(w.from<float>(), w.from<float>(), w.to<float>(), 9, 8, 7, &o);
       }},
      {"gk_matmul_ex, tf32",
       [](fault_world &w) {
         gk_matmul_opts o = gk_matmul_opts();
         o.precision = GK_PRECISION_TF32, o.plan = GK_PLAN_MMA;
         return gk_matmul_ex(w.from<float>(), w.from<float>(), w.to<float>(), 9, 8, 7, &o);
       }},
      {"gk_matmul_ex of halves",
       [](fault_world &w) {
         gk_matmul_opts o = gk_matmul_opts();
         o.plan = GK_PLAN_MMA;
         return gk_matmul_ex(w.from<__half>(), w.from<__half>(), w.to<__half>(), 9, 8, 7, &o);
       }},
      {"gk_host_matmul",
       [](fault_world &w) { return gk_host_matmul(w.host<float>(), w.host<float>(), w.to_host<float>(), 9, 8, 7); }}};
  EXPECT(fail_each(subjects) > 30);
}

#endif

/* --- the wrong memory, device, stream --- */

static float *device_ones(size_t n) {
  float *p = NULL;
  const std::vector<float> ones(n, 1.0f);
  EXPECT_OK(cudaMalloc(&p, n * sizeof(float)));
  EXPECT_OK(cudaMemcpy(p, ones.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  return p;
}
static float first_of(const float *p) {
  float x = -1;
  EXPECT_OK(cudaMemcpy(&x, p, sizeof x, cudaMemcpyDeviceToHost));
  return x;
}

TEST(provoke_debug_mode_refuses_host_arrays) {
  const char *const name = "provoke_debug_mode_refuses_host_arrays";
  if (in_child(name)) {
    int device = 0, pageable = 0;
    EXPECT_OK(cudaGetDevice(&device));
    EXPECT_OK(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, device));
    if (pageable) SKIP("this GPU may read the host's memory");
    float *const d = device_ones(64), *pinned = NULL;
    std::vector<float> h(64, 1.0f);
    EXPECT_ERROR(cudaErrorInvalidValue, "gk_reduce: input is not in device memory", gk_reduce_sum(h.data(), d, 64));
    EXPECT_ERROR(cudaErrorInvalidValue, "gk_reduce: output is not in device memory", gk_reduce_sum(d, h.data(), 64));
    EXPECT_ERROR(cudaErrorInvalidValue, "gk_scan_inclusive: input is not in device memory",
                 gk_scan_inclusive(h.data(), d, 64, gk_op_sum()));
    EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul: B is not in device memory", gk_matmul(d, h.data(), d, 8, 8, 8));
    EXPECT_EQ(h[0], 1.0f);
    /* Pinned memory is as good as the device's. */
    EXPECT_OK(cudaMallocHost(&pinned, sizeof(float)));
    EXPECT_OK(gk_reduce_sum(d, pinned, 64));
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_EQ(*pinned, 64.0f);
    /* The address of an empty array need not belong to an allocation: it may be the end of one. */
    EXPECT_OK(gk_reduce_sum(h.data(), pinned, 0));
    EXPECT_OK(gk_scan_inclusive(h.data(), h.data(), 0, gk_op_sum()));
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_EQ(*pinned, 0.0f);
    EXPECT_OK(cudaFreeHost(pinned));
    EXPECT_OK(cudaFree(d));
    return;
  }
  const child c = run_child(name, "GPUKIT_DEBUG=1");
  if (strstr(c.output.c_str(), "1 skipped")) SKIP("this GPU may read the host's memory");
  EXPECT_PASSED(c);
}

TEST(provoke_a_scratch_of_another_device) {
#ifdef CUDA_ON_CPU
  const char *const name = "provoke_a_scratch_of_another_device";
  if (!in_child(name)) {
    EXPECT_PASSED(run_child(name, "GPUKIT_CPU_DEVICES=2"));
    return;
  }
#endif
  int count = 0;
  EXPECT_OK(cudaGetDeviceCount(&count));
  if (count < 2) SKIP("one device only");
  const size_t n = 100000;
  gk_scratch scratch = gk_scratch();
  EXPECT_OK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(n, sizeof(float)), 0));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaSetDevice(1));
  float *const x = device_ones(n);
  EXPECT_ERROR(cudaErrorInvalidValue,
               "gk_reduce: the scratch is of device 0, but device 1 is current: each device has its own",
               gk_reduce_sum(x, x, n, 0, &scratch));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_scan_exclusive: the scratch is of device 0, but device 1 is current",
               gk_scan_exclusive(x, x, n, gk_op_sum(), 0, &scratch));
  /* Calls that have no use for it refuse it, too. */
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_reduce: the scratch is of device 0", gk_reduce_sum(x, x, 1, 0, &scratch));
  EXPECT_ERROR(cudaErrorInvalidValue, "gk_scan_inclusive: the scratch is of device 0",
               gk_scan_inclusive(x, x, 1, gk_op_sum(), 0, &scratch));
  gk_scratch work = gk_scratch();
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(gk_scratch_create_work(&work, 0, size_t(1) << 20, 0));
  EXPECT_OK(cudaSetDevice(1));
  for (gk_precision precision : {GK_PRECISION_STRICT, GK_PRECISION_TF32, GK_PRECISION_EMULATED}) {
    gk_matmul_opts opts = gk_matmul_opts();
    opts.precision = precision, opts.scratch = &work;
    EXPECT_ERROR(cudaErrorInvalidValue, "gk_matmul: the scratch is of device 0",
                 gk_matmul_ex(x, x + 10000, x + 20000, 100, 100, 100, &opts));
  }
  EXPECT_EQ(first_of(x + 20000), 1.0f);
  EXPECT_OK(gk_scratch_destroy(&work));
  EXPECT_EQ(first_of(x), 1.0f);
  EXPECT_OK(cudaFree(x));
  EXPECT_OK(gk_scratch_destroy(&scratch)); /* whichever is current */
  EXPECT_OK(cudaSetDevice(0));
}

TEST(provoke_calls_that_a_capture_forbids) {
  gk_scratch scratch = gk_scratch(), made = gk_scratch();
  EXPECT_OK(gk_scratch_create(&made, 1, 0));
  EXPECT_OK(cudaDeviceSynchronize());
  const void *const memory = made.ptr;
  float *const x = device_ones(64), host = -1;
  cudaStream_t stream;
  cudaGraph_t graph = NULL;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int call = 0; call < 3; call++) {
    EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    cudaError_t code = cudaSuccess;
    const char *says = "";
    if (call == 0) code = gk_scratch_create(&scratch, 1, stream), says = "gk_scratch_create: ";
    if (call == 1) code = gk_scratch_destroy(&made), says = "gk_scratch_destroy: ";
    if (call == 2) code = gk_host_reduce(&host, &host, 1, gk_op_sum()), says = "gk_host_reduce: ";
    EXPECT(code != cudaSuccess);
    EXPECT_HAS(gk_error_detail(), says);
    EXPECT(made.ptr == memory && !scratch.ptr);
    EXPECT_EQ(host, -1.0f);
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph); /* which CUDA breaks as a call of its own fails */
    if (call == 0) EXPECT_OK(ended);
    if (graph) EXPECT_OK(cudaGraphDestroy(graph));
    graph = NULL;
    cudaGetLastError();
  }
  EXPECT_OK(gk_reduce_sum(x, x, 64, stream)); /* the stream is good again */
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(first_of(x), 64.0f);
  EXPECT_OK(gk_scratch_destroy(&made));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(x));
}

/* --- what only a GPU does --- */

#define NEEDS_GPU(why)                                                                                                 \
  if (on_cpu) SKIP("only on a GPU: " why)

TEST(provoke_a_lost_context_at_every_call) {
  const char *const name = "provoke_a_lost_context_at_every_call";
  NEEDS_GPU("each_call_... let the stand-in fail so");
  if (!in_child(name)) {
    EXPECT_PASSED(run_child(name, "GPUKIT_DEBUG=0"));
    return;
  }
  const size_t n = 1000000;
  float *const x = device_ones(n);
  float host[4] = {1, 2, 3, 4};
  gk_scratch scratch = gk_scratch(), other = gk_scratch();
  gk_timer timer = gk_timer();
  EXPECT_OK(gk_scratch_create(&scratch, gk_scan_scratch_bytes(n, sizeof(float)), 0));
  EXPECT_OK(gk_launch(store_one, 1, 1, 0, 0, reinterpret_cast<int *>(16)));
  const cudaError_t lost = cudaDeviceSynchronize();
  EXPECT_EQ(static_cast<int>(lost), static_cast<int>(cudaErrorIllegalAddress));
  const char *const older = "from work before this call";
  EXPECT_ERROR(lost, older, gk_reduce_sum(x, x, n, 0, &scratch));
  EXPECT_ERROR(lost, older, gk_reduce_sum(x, x, n));
  EXPECT_ERROR(lost, older, gk_scan_inclusive(x, x, n, gk_op_sum(), 0, &scratch));
  EXPECT_ERROR(lost, older, gk_scan_inclusive(x, x, n, gk_op_sum()));
  EXPECT_ERROR(lost, older, gk_matmul(x, x, x + 100, 8, 8, 8));
  EXPECT_ERROR(lost, older, gk_host_reduce(host, host, 4, gk_op_sum()));
  EXPECT_ERROR(lost, older, gk_scratch_create(&other, 1, 0));
  EXPECT_ERROR(lost, older, gk_scratch_destroy(&scratch));
  EXPECT_ERROR(lost, older, gk_timer_create(&timer));
  EXPECT_EQ(host[0], 1.0f);
}

TEST(provoke_a_device_that_is_full) {
  NEEDS_GPU("each_call_... let the stand-in fail so");
  if (test_slowed()) SKIP("programs that run beside this one would find no memory");
  const size_t n = size_t{1} << 26;
  float *const x = device_ones(n);
  std::vector<void *> hoard;
  for (size_t bytes = size_t{1} << 34; bytes >= 4096;) { /* all that is left, in ever smaller pieces */
    void *p = NULL;
    if (cudaMalloc(&p, bytes) == cudaSuccess)
      hoard.push_back(p);
    else
      bytes /= 2;
  }
  cudaGetLastError();
  gk_scratch scratch = gk_scratch();
  EXPECT_ERROR(cudaErrorMemoryAllocation, "gk_scratch_create: the device has no ",
               gk_scratch_create(&scratch, size_t{1} << 30, 0));
  EXPECT(!scratch.ptr);
  EXPECT_ERROR(cudaErrorMemoryAllocation, "gk_host_reduce: the device has no ",
               gk_host_reduce(std::vector<float>(n).data(), std::vector<float>(1).data(), n, gk_op_sum()));
  /* The pool may still have a page for so small a scratch; if not, the call says so. */
  const cudaError_t code = gk_scan_inclusive(x, x, n, gk_op_sum());
  EXPECT(code == cudaSuccess || strstr(gk_error_detail(), "gk_scan_inclusive: the device has no "));
  cudaGetLastError();
  for (void *p : hoard) EXPECT_OK(cudaFree(p));
  EXPECT_OK(gk_reduce_sum(x, x, 1));
  EXPECT_OK(cudaFree(x));
}

TEST(provoke_a_stream_that_was_destroyed) {
  const char *const name = "provoke_a_stream_that_was_destroyed";
  NEEDS_GPU("what a destroyed stream is good for is the driver's to say");
  if (in_child(name)) {
    float *const x = device_ones(64);
    cudaStream_t stream;
    EXPECT_OK(cudaStreamCreate(&stream));
    EXPECT_OK(cudaStreamDestroy(stream));
    const cudaError_t code = gk_reduce_sum(x, x, 64, stream);
    EXPECT(code != cudaSuccess);
    EXPECT_HAS(gk_error_detail(), "gk_reduce: ");
    return;
  }
  const child c = run_child(name, "GPUKIT_DEBUG=0");
  if (c.signal == SIGSEGV) SKIP("this driver crashes on a destroyed stream, which no caller can forestall");
  EXPECT_PASSED(c);
}

TEST(provoke_a_stream_of_another_device) {
  NEEDS_GPU("whose stream it is, is the driver's to say");
  int count = 0;
  EXPECT_OK(cudaGetDeviceCount(&count));
  if (count < 2) SKIP("one device only");
  cudaStream_t stream;
  EXPECT_OK(cudaSetDevice(1));
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaSetDevice(0));
  float *const x = device_ones(64);
  const cudaError_t code = gk_reduce_sum(x, x, 64, stream);
  if (code == cudaSuccess) {
    cudaSetDevice(1);
    cudaStreamSynchronize(stream); /* whatever came of it there */
    cudaDeviceReset();
    cudaSetDevice(0);
    SKIP("this driver launches on a stream of another device");
  }
  EXPECT_EQ(static_cast<int>(code), static_cast<int>(cudaErrorInvalidResourceHandle));
  EXPECT_HAS(gk_error_detail(), "gk_reduce: grid 1 x 1 x 1");
  EXPECT_HAS(gk_error_hint(cudaErrorInvalidResourceHandle), "another device");
  EXPECT_OK(cudaFree(x));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/* A reset of the device takes back the limits of shared memory that were raised for kernels. This product's kernel has
 * more than 48 KiB in all builds. */
TEST(provoke_launches_after_a_reset) {
  const char *const name = "provoke_launches_after_a_reset";
  const size_t edge = 128;
  if (in_child(name)) {
    const auto multiply = [edge] {
      const device_array<__half> ones(std::vector<__half>(edge * edge, __float2half(1)));
      device_array<float> c(edge * edge);
      EXPECT_OK(gk_matmul(ones.ptr, ones.ptr, c.ptr, edge, edge, edge));
      EXPECT_OK(cudaGetLastError());
      EXPECT(c.get() == std::vector<float>(edge * edge, static_cast<float>(edge)));
    };
    multiply();
    multiply();
    EXPECT_OK(cudaDeviceReset());
    multiply();
    return;
  }
  const child c = run_child(name, "");
  EXPECT_PASSED(c);
}

/* The driver takes neither the machine code nor the PTX of the binary: as if it had none for this GPU. */
TEST(provoke_a_binary_without_code_for_this_gpu) {
  const char *const name = "provoke_a_binary_without_code_for_this_gpu";
  NEEDS_GPU("the stand-in runs what the host runs");
  if (in_child(name)) {
    float x = 1, sum = -1;
    const cudaError_t code = gk_host_reduce(&x, &sum, 1, gk_op_sum());
    EXPECT(code != cudaSuccess);
    EXPECT_HAS(gk_error_detail(), "gk_");
    EXPECT_EQ(sum, -1.0f);
    printf("%s: %s\n", cudaGetErrorName(code), gk_error_detail());
    return;
  }
  const child c = run_child(name, "CUDA_FORCE_PTX_JIT=1 CUDA_DISABLE_PTX_JIT=1");
  EXPECT_PASSED(c);
}
