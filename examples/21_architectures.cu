/* Lesson 21: architectures. A GPU runs machine code for its own architecture: code for sm_80 runs on 8.0, 8.6 and 8.9,
 * but not on 9.0. PTX is text that the driver compiles for the GPU that it finds (just in time), for its own version
 * and all later ones. So a binary should hold machine code for the GPUs that exist, and PTX for later ones:
 *
 *   nvcc -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
 *
 * cuobjdump --list-elf --list-ptx lists what a binary holds. Code for sm_90a runs on 9.0 only, and so does its PTX. The
 * driver chooses when a kernel is first needed, machine code before PTX. It keeps what it has compiled in
 * ~/.nv/ComputeCache. */
#include <cuda_runtime.h>
#include <stdio.h>

#define BLOCK 256
#define NUMBERS 64
#define ROUNDS 16

/* All loops are unrolled on the device, so that there is much to compile. */
#ifdef __CUDA_ARCH__
#define ARCH __CUDA_ARCH__
#define UNROLLED _Pragma("unroll")
#else
#define ARCH 0
#define UNROLLED
#endif

__host__ __device__ inline unsigned mixed(unsigned i) {
  unsigned v[NUMBERS], all = 0;
  UNROLLED for (int k = 0; k < NUMBERS; k++) v[k] = i * 2654435761u + (unsigned)k;
  UNROLLED for (int r = 0; r < ROUNDS; r++) {
    UNROLLED for (int k = 0; k < NUMBERS; k++) v[k] = v[k] * 2246822519u + v[(k + r + 1) % NUMBERS];
  }
  UNROLLED for (int k = 0; k < NUMBERS; k++) all ^= v[k];
  return all;
}

/* *compiled_for: the architecture that it was compiled for; 900 is 9.0. */
__global__ void mix(unsigned *out, unsigned n, unsigned *compiled_for) {
  const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) out[i] = mixed(i);
  if (i == 0) *compiled_for = ARCH;
}

/* cudaFuncGetAttributes() tells which code runs: 90 is 9.0. */
static void print_code_of_kernel(void) {
  cudaFuncAttributes a;
  if (cudaFuncGetAttributes(&a, mix) == cudaSuccess)
    printf("mix() runs code for sm_%d, made from PTX for compute_%d\n", a.binaryVersion, a.ptxVersion);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * The program starts itself with settings that make the driver ignore machine code, use no cache, or not compile: the
 * first launch of each child is what a user would wait for. On an H200:
 *
 *   later launches           4.2 us
 *   first launch as it is    201 us: the machine code is loaded when the kernel is first needed
 *   with an empty cache,     226 and 186 us: machine code needs no compiler, so the cache makes no difference but noise
 *   with that cache filled
 *   from PTX                 81 ms, again 59 ms: the driver compiles each time, since CUDA_CACHE_DISABLE=1 is set, too.
 *                            The first time it also reads its compiler from disk
 *   if nothing fits          the launch fails; there is no time */
#include "lesson.h"
#include <unistd.h>
#include <string>

static const lesson_about about = {
    "21_architectures", "machine code, PTX, compiling just in time", "threads", 1 << 16, 1 << 8, 1, 1 << 24, "GB/s",
};

/* ---- children ---- */

/* The report of a child: a line of numbers. */
typedef struct report {
  int error;             /* of its first launch */
  int machine, ptx;      /* by cudaFuncGetAttributes(): 90 is 9.0 */
  unsigned compiled_for; /* by the kernel */
  double first_us, next_us;
} report;

/* The context is made before the clock starts: it has nothing to do with the kernel. */
static int child(void) {
  report r = {};
  cudaFuncAttributes a = {};
  unsigned *out = NULL;
  cudaFree(0);
  cudaMalloc(&out, (BLOCK + 1) * sizeof(unsigned));
  cudaDeviceSynchronize();
  double start = lesson_now_us();
  mix<<<1, BLOCK>>>(out, BLOCK, out + BLOCK);
  r.error = cudaGetLastError();
  if (!r.error) r.error = cudaDeviceSynchronize();
  r.first_us = lesson_now_us() - start;
  if (!r.error) {
    start = lesson_now_us();
    mix<<<1, BLOCK>>>(out, BLOCK, out + BLOCK);
    cudaDeviceSynchronize();
    r.next_us = lesson_now_us() - start;
    cudaFuncGetAttributes(&a, mix);
    cudaMemcpy(&r.compiled_for, out + BLOCK, sizeof(unsigned), cudaMemcpyDeviceToHost);
  }
  printf("%d %d %d %u %.3f %.3f\n", r.error, a.binaryVersion, a.ptxVersion, r.compiled_for, r.first_us, r.next_us);
  return 0;
}

static std::string own_path(void) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, (size_t)length) : std::string();
}

static report run_child(lesson *l, lesson_row *row, const char *settings) {
  report r = {};
  const std::string command = std::string("exec env ") + settings + " '" + own_path() + "' --child";
  FILE *const pipe = popen(command.c_str(), "r");
  if (!pipe ||
      fscanf(pipe, "%d %d %d %u %lf %lf", &r.error, &r.machine, &r.ptx, &r.compiled_for, &r.first_us, &r.next_us) != 6)
    lesson_wrong(l, row, "a child with %s did not report", settings);
  if (pipe) pclose(pipe);
  if (!r.error) row->us = r.first_us;
  return r;
}

int main(int argc, char **argv) {
  lesson l;
  if (argc == 2 && !strcmp(argv[1], "--child")) return child();
  lesson_begin(&l, &about, argc, argv);
  const unsigned n = (unsigned)l.n;
  unsigned *const out = lesson_array<unsigned>(&l, n), *const compiled_for = lesson_array<unsigned>(&l, 1);
  std::vector<unsigned> right(n);
  for (unsigned i = 0; i < n; i++) right[i] = mixed(i);
  if (!l.csv_only && l.mode == LESSON_TIMED) print_code_of_kernel();
  const lesson_row *const later =
      lesson_measure(&l, "later launches", 0, [=] { mix<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(out, n, compiled_for); });
  lesson_expect(&l, later, out, right);
  if (l.mode != LESSON_TIMED) {
    lesson_table(&l);
    lesson_say(&l, "skipped: the kinds of code, and compiling just in time: machine code of the CPU runs here");
    return lesson_end(&l);
  }

  char cache[] = "/tmp/21_architectures_XXXXXX";
  if (!mkdtemp(cache)) lesson_wrong(&l, later, "%s cannot be made", cache);
  const std::string with_cache = std::string("CUDA_CACHE_PATH=") + cache;
  const struct {
    const char *name;
    std::string settings;
  } children[] = {{"first launch as it is", "CUDA_CACHE_DISABLE=1"},
                  {"the same with an empty cache", with_cache},
                  {"the same with that cache filled", with_cache},
                  {"first launch from PTX", "CUDA_FORCE_PTX_JIT=1 CUDA_CACHE_DISABLE=1"},
                  {"first launch from PTX again", "CUDA_FORCE_PTX_JIT=1 CUDA_CACHE_DISABLE=1"},
                  {"first launch if nothing fits", "CUDA_FORCE_PTX_JIT=1 CUDA_DISABLE_PTX_JIT=1 CUDA_CACHE_DISABLE=1"}};
  enum { AS_IT_IS, EMPTY_CACHE, FULL_CACHE, FROM_PTX, AGAIN, NOTHING, CHILDREN };
  report of[CHILDREN];
  for (int c = 0; c < CHILDREN; c++)
    of[c] = run_child(&l, lesson_new_row(&l, children[c].name), children[c].settings.c_str());
  if (system((std::string("rm -r ") + cache).c_str()) != 0) lesson_wrong(&l, later, "%s cannot be removed", cache);
  lesson_table(&l);

  const report *const r = &of[AS_IT_IS], *const jit = &of[AGAIN];
  const bool compiled = !jit->error && r->first_us > jit->first_us / 3; /* there was no machine code for this GPU */
  if (r->error) lesson_wrong(&l, later, "a child has failed: %s", cudaGetErrorName((cudaError_t)r->error));
  if (!of[NOTHING].error) lesson_wrong(&l, later, "a launch without any code has not failed");
  lesson_say(&l, "This GPU is sm_%d%d. Code for sm_%d runs, from PTX for compute_%d (__CUDA_ARCH__ %u), compiled %s.",
             l.device.major, l.device.minor, r->machine, r->ptx, r->compiled_for,
             compiled ? "just in time" : "in advance");
  if (jit->error)
    lesson_say(&l, "There is no PTX for this GPU: if machine code is ignored, the first launch fails.");
  else if (compiled)
    lesson_say(&l, "That takes %.0f us at the first launch, and %.0f us with the driver's cache.", r->first_us,
               of[FULL_CACHE].first_us);
  else
    lesson_say(
        &l,
        "From PTX for compute_%d a first launch takes %.0f us, again %.0f us: %.0f times as long as from machine code.",
        jit->ptx, of[FROM_PTX].first_us, jit->first_us, jit->first_us / r->first_us);
  lesson_say(&l, "With machine code ignored and the compiler switched off, the launch fails: %s (%s).",
             cudaGetErrorName((cudaError_t)of[NOTHING].error), cudaGetErrorString((cudaError_t)of[NOTHING].error));
  return lesson_end(&l);
}
