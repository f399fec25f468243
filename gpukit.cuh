/* gpukit.cuh - v0.2.0 - the CUDA utility header: one file, no dependencies but the CUDA Toolkit
 *                       MIT licence or public domain, as you choose: see the end of this file
 *
 * Indexing, error checking, event timing, matmul, reduction and scan, for your own .cu file: as calls that are right by
 * default and fast, and as building blocks for your own kernels.
 *
 * QUICK START: nvcc -O3 -arch=native hello.cu -o hello
 *
 *   #define GPUKIT_IMPLEMENTATION           // in exactly one .cu file of the program
 *   #include "gpukit.cuh"
 *
 *   __global__ void scale(float *x, size_t n, float by) {
 *     GK_FOR_1D(i, n) x[i] *= by;           // grid-stride: any grid, any n
 *   }
 *
 *   int main(void) {
 *     const size_t n = 1000000;
 *     float sum = 0;
 *     gk_array<float> x(n);                 // device memory; a plain cudaMalloc does as well
 *     GK_CHECK(gk_fill(x, n, 0.5f));
 *     GK_TIME("scale", 0, 8.0 * n) GK_LAUNCH(scale, gk_grid_1d(n, 256), 256, 0, 0, x, n, 2.0f);
 *     GK_CHECK(gk_reduce_value(x, &sum, n, gk_op_sum()));
 *     GK_CHECK(gk_scan_inclusive(x, x, n, gk_op_sum()));
 *     return sum == n ? 0 : 1;
 *   }
 *
 * CONTENTS (search for the number and the title, as in "10. ARRAY CALLS")
 *
 *    1. this manual
 *    2. CONFIGURATION         version, requirements, namespaces
 *    3. HOST API              valid C99: errors, devices, timing, scratch, options, typed calls for C
 *    4. CHECKS AND LAUNCHES   C++11 from here on: gk_allclose, gk_array, launches of your own kernels
 *    5. INDEX                 coordinates, ranks, grid-stride loops, grids
 *    6. OPERATORS             sum, prod, min, max, argmin, argmax, and your own
 *    7. WARP                  reduce, scan, shuffle of any type
 *    8. BLOCK                 reduce, scan, Blelloch's scan in shared memory
 *    9. TILE                  the parts of a matmul kernel
 *   10. ARRAY CALLS           reduce, scan, select, matmul of device memory
 *   11. HOST ARRAYS           the same calls on host memory
 *   12. RANKS                 the same calls over several GPUs by NCCL, if GPUKIT_NCCL is defined
 *
 *   The rest is not needed to use gpukit:
 *
 *   13. PTX, 14. CHECKS AND LAUNCHES, 15. BUILDING BLOCKS, 16. BETWEEN BLOCKS, 17. REDUCE, 18. SCAN, SELECT, DATA,
 *   19. MATMUL, 20. COPIES OF HOST ARRAYS, 21. PAST ONE GPU, 22. IMPLEMENTATION, 23. HISTORY, 24. LICENCE
 *
 * CONFIGURATION: macros to define before the #include
 *
 *   GPUKIT_IMPLEMENTATION  in one .cu file: compiles the host functions there
 *   GPUKIT_STATIC          instead, in any number of .cu files: each gets functions, kernels, error handler and error
 *                          detail of its own, with internal linkage; also types such as gk_array, so pass pointers
 *                          from file to file
 *   GPUKIT_DEF             in every file: the specifier of each host function, e.g. a dllexport; default extern. A
 *                          library that exports them must share the CUDA runtime with its users: nvcc -cudart shared
 *   GPUKIT_TAG             in every file of a library: a word that keeps the library's copy of gpukit apart from the
 *                          program's; see SEVERAL COPIES in section 22
 *   GPUKIT_C_API           with GPUKIT_IMPLEMENTATION: also compiles the functions that C files call (gk_reduce_f32,
 *                          ...). That takes half a minute, and needs GCC or clang as the host's compiler
 *   GPUKIT_PRODUCTS_F32    in the implementing file and any others: only the former compiles products (gk_matmul, ...)
 *                          of floats, and the others compile in about a second. All must be for the same GPUs. This
 *                          header itself can be the implementing file: nvcc -x cu -DGPUKIT_IMPLEMENTATION
 *                          -DGPUKIT_PRODUCTS_F32 -c gpukit.cuh -o gpukit.o
 *   GPUKIT_PRODUCTS_F64, _F16, _BF16   the same for double, __half, __nv_bfloat16 (-include cuda_fp16.h, cuda_bf16.h)
 *   GPUKIT_ON_ERROR(e)     in the implementing file: what a failed check does if no handler is set; e is a const
 *                          gk_error *; default: print and abort. #define GPUKIT_ON_ERROR(e) throw my_error(e->detail)
 *   GPUKIT_NVTX            in the implementing file: GK_TIME is also an NVTX range (needs nvtx3/nvToolsExt.h)
 *   GPUKIT_NCCL            in each file that uses section 12, between its #include <nccl.h> (NCCL 2.14.3 or newer) and
 *                          its first #include of this file
 *   GPUKIT_DEBUG=1         an environment variable, not a macro: synchronises after every launch, so that a fault is
 *                          reported for its kernel; and refuses host pointers to calls that need device memory
 *
 *   Editors that define __INTELLISENSE__, __JETBRAINS_IDE__, __CDT_PARSER__ or Q_CREATOR_RUN show the implementation,
 *   too. clangd does so with a file .clangd that says CompileFlags: {Add: [-D__CLANGD__]}
 *
 * API (each call is documented where it is declared)
 *
 *   errors     GK_CHECK GK_CHECK_STATUS GK_TRY GK_LAUNCH GK_CHECK_LAUNCH gk_launch
 *              gk_set_error_handler gk_error_detail gk_error_hint; gk_error gk_error_handler
 *   devices    gk_device_query gk_device_print gk_device_best gk_occupancy gk_occupancy_print gk_block_for;
 *              gk_device_info gk_occupancy_info
 *   timing     GK_TIME gk_time_ms gk_timer_create/start/stop/ready/ms/destroy gk_bench gk_bench_compare
 *              gk_bench_buffers; gk_timer gk_bench_fn gk_bench_opts gk_bench_result
 *   scratch    gk_scratch_create gk_scratch_create_work gk_scratch_destroy gk_reduce_scratch_bytes
 *              gk_matrix_scratch_bytes gk_scan_scratch_bytes gk_matmul_scratch_bytes gk_matmul_work_bytes;
 *              gk_scratch
 *   index      gk_x gk_y gk_z gk_thread_rank gk_block_rank gk_global_rank gk_block_size gk_grid_size gk_global_size
 *              gk_lane gk_warp GK_FOR_1D GK_FOR_2D gk_ceil_div gk_round_up gk_grid_1d/2d/3d gk_grid_shape
 *              GK_DYNAMIC_SHARED
 *   operators  gk_op_sum/prod/min/max/argmin/argmax gk_sum/prod/min/max/argmin/argmax gk_arg;
 *              in C: gk_op GK_OP_SUM/PROD/MIN/MAX/ARGMIN/ARGMAX gk_arg_f32, ...
 *   warp       gk_shuffle gk_warp_reduce gk_warp_scan_inclusive/exclusive
 *   block      gk_block_reduce gk_block_scan_inclusive/exclusive gk_block_scan_blelloch GK_BLELLOCH_SIZE gk_bank
 *   reduce     gk_reduce gk_reduce_sum/prod/min/max/argmin/argmax gk_reduce_value gk_dot gk_computed
 *              gk_reduce_rows gk_reduce_columns; in C also gk_argreduce_f32, ...
 *   scan       gk_scan_inclusive gk_scan_exclusive gk_scan_exclusive_init gk_scan_inclusive_sum/exclusive_sum
 *              gk_scan_rows_inclusive/exclusive
 *   select     gk_select gk_select_flagged
 *   data       gk_copy gk_fill gk_iota gk_random_uniform gk_random_normal gk_print gk_print_matrix
 *   matmul     gk_matmul gk_matmul_scaled gk_matmul_ex gk_matmul_epilogue gk_matmul_plan;
 *              gk_matmul_opts gk_matmul_path gk_factor
 *              gk_plan GK_PLAN_AUTO/SIMT/MMA/WGMMA gk_precision GK_PRECISION_DEFAULT/STRICT/TF32/EMULATED
 *              gk_tile gk_tile_load gk_tile_load_transposed gk_tile_multiply gk_tile_multiply_rows gk_tile_store
 *   arrays     gk_array: device memory that a variable owns
 *   host       gk_host_reduce gk_host_scan_inclusive/exclusive gk_host_matmul gk_allclose; gk_mismatch
 *   ranks      gk_dist_reduce gk_dist_scan_inclusive/exclusive gk_dist_matmul gk_dist_matmul_buffer_bytes
 *              gk_dist_split gk_dist_wait; gk_dist_piece gk_dist_matmul_opts
 *
 *   Order of parameters: inputs, outputs, sizes, operator or options, stream, scratch. Sizes are size_t.
 *
 * GUARANTEES
 *
 *   Errors       A call that can fail returns cudaError_t, and gk_error_detail() then says what was wrong; gk_array,
 *                gk_allclose of one, gk_time_ms and GK_TIME call the handler of GK_CHECK. C++17 and C23 compilers warn
 *                about a status that is ignored, unless it is cast to void. Only GK_TIME, calls with print in their
 *                names and the default handler print. Only the handler ends the program, as it does by default. A
 *                call reports only its own errors, and does not leave them behind as CUDA's last error. Errors of
 *                earlier work are not reported. A call that succeeds leaves them there; one that fails may overwrite
 *                them, because CUDA keeps only one. The exception: after an error that destroys the device's context
 *                every call fails, and the detail says that the error comes from earlier work; if the call waits for
 *                its own kernels, that it may come from these.
 *                (Built with CUDA 12, the first launch of a kernel with more than 48 KiB of dynamic shared memory
 *                clears an error left behind, as cudaFuncSetAttribute does.)
 *   Sizes        0, 1, odd, past 2^32; any alignment that the type allows. A byte count that overflows is an error.
 *   Streams      Work runs on the given stream. Nothing is synchronised unless the call says so. The calls of section
 *                10 may be captured into CUDA graphs, except those that wait. They may run at the same time on
 *                several streams and threads, if no two of these share a scratch.
 *   Overlap      On sm_90 and up, kernels of reduce, scan and matmul start while earlier work of the stream still runs
 *                (programmatic dependent launch), but access no global memory before that has ended. Code compiled from
 *                older PTX, which lacks the wait for it, starts later. Later work waits for them as usual.
 *   Same bits    Reduce, scan and strict matmul with the operators of section 6 give the same bits on every run, every
 *                GPU, every grid, and without a GPU: n (or m, n, k), the types and the operator alone determine the
 *                order of the arithmetic. Products on tensor cores (half types; float where asked for) give the same
 *                bits on every run of one build on one GPU model. They may give other bits if an operand has another
 *                alignment or the batch another size. A NaN is a NaN, of unspecified sign and payload. Builds with
 *                --use_fast_math or -ftz=true are excluded.
 *   Accuracy     A sum of n floats rounds each element at most n / 2^19 + 24 times, and a prefix sum at most n / 2^18 +
 *                110 times, where a loop rounds n times. One rounding error is at most 2^-24 of the sum of magnitudes.
 *                On random data the total error stays below log2(n) times that (tests/arrays/test_accuracy.cu, against
 *                double). The documentation of gk_matmul_ex has the bounds of products.
 *   Nothing lost A call that fails before its first kernel starts leaves outputs and scratch as they were.
 *   Names        All names begin with gk_, GK_ or GPUKIT_, symbols of object files included; gk__ and GK__ are private.
 *                Macros that you define before the #include neither break this file nor are lost, if their names are
 *                upper case (N, SIZE, TILE, but no GK_...), single letters, min, max, swap, or one of rows, cols, row,
 *                col, width, height, size, count, block, grid, tile, threads, warp, lane, step, half, first, zero,
 *                copy, mask, near, far, small, in, out, to, at, on, op, fn, ld, ms, ns (tests/compile has the whole
 *                list). CUDA's headers and the standard library's do not tolerate all of these (in C++20 not copy, at
 *                and op): include <cuda_runtime.h>, <atomic> and <utility> before your macros.
 *
 * REQUIREMENTS  CUDA 12.0 to 13.x, sm_75 and up, C++11 to C++20; the host API from C99. Tensor-core products on Hopper
 *               are fastest in code for sm_90a (-gencode arch=compute_90a,code=sm_90a; not with CUDA 12.0 or -G), which
 *               -arch=native does not make.
 */

/* The file has two halves, the declarations and the implementation. Each is compiled once, at the first inclusion that
 * asks for it; GK__OPEN marks that inclusion. */
#ifdef GPUKIT_STATIC
#ifndef GPUKIT_IMPLEMENTATION
#define GPUKIT_IMPLEMENTATION
#endif
#ifndef GPUKIT_DEF
#define GPUKIT_DEF static inline
#endif
#endif
#if !defined(GPUKIT_CUH) || (defined(GPUKIT_IMPLEMENTATION) && !defined(GPUKIT_IMPLEMENTED))
#define GK__OPEN

/* Macros of the user with names of one letter, or min, max, swap, size, are undefined here and restored at the end.
 * Other names in this file are CamelCase or longer words, which users' macros rarely are. (T, U and swap are for the
 * headers that this file includes: CUDA's and the standard library's.) */
#define GK__PRAGMA(text) _Pragma(#text)
#define GK__PUSH(name) GK__PRAGMA(push_macro(#name))
#define GK__POP(name) GK__PRAGMA(pop_macro(#name))
/* clang-format off */
#define GK__SAVED_MACROS(X)                                                                                            \
  X(a) X(b) X(c) X(d) X(e) X(f) X(g) X(h) X(i) X(j) X(k) X(l) X(m) X(n) X(o) X(p) X(q) X(r) X(s) X(t) X(v) X(w)        \
  X(x) X(y) X(z) X(T) X(U) X(max) X(min) X(swap) X(size)
/* clang-format on */
GK__SAVED_MACROS(GK__PUSH)
#undef a
#undef b
#undef c
#undef d
#undef e
#undef f
#undef g
#undef h
#undef i
#undef j
#undef k
#undef l
#undef m
#undef n
#undef o
#undef p
#undef q
#undef r
#undef s
#undef t
#undef v
#undef w
#undef x
#undef y
#undef z
#undef T
#undef U
#undef max
#undef min
#undef swap
#undef size

/* Inside of extern "C" this template is an error, and the message shows this name. All declarations below the headers
 * are in extern "C++", so that no further errors follow. */
#ifdef __cplusplus
template <class> struct gk_ERROR_gpukit_cuh_is_included_inside_extern_C;
#endif
#endif

#ifndef GPUKIT_CUH
#define GPUKIT_CUH

#define GPUKIT_VERSION_MAJOR 0
#define GPUKIT_VERSION_MINOR 2
#define GPUKIT_VERSION_PATCH 0
#define GPUKIT_VERSION (GPUKIT_VERSION_MAJOR * 10000 + GPUKIT_VERSION_MINOR * 100 + GPUKIT_VERSION_PATCH)

/* ====================================================================================================================
 * 2. CONFIGURATION: checks the compiler, the toolkit and where the #include is, and defines for the declarations below
 *
 *      GK__KERNELS                 if this file is compiled for a GPU or with the CPU stand-in
 *      GK__CHECKED                 begins the declaration of a host function whose status must not be ignored
 *      GK__NAMESPACE(HOST) {       the namespace of host functions and their types
 *      GK__NAMESPACE(TEMPLATES) {  the namespace of gk_array, gk_allclose and what they are made of
 *      GK__NAMESPACE(KERNELS) {    the namespace of kernels, device functions and all other templates
 *
 *    The namespaces keep several copies of gpukit in one program apart (section 22). You never write their names.
 * ==================================================================================================================*/

/* --- Checks and headers ------------------------------------------------------------------------------------------*/

#if defined(__cplusplus) && __cplusplus < 201103L && !defined(_MSC_VER)
#error "gpukit.cuh needs C++11 or newer"
#endif
/* Inside of a namespace the typedef fails, and the message shows this name. It precedes the headers below, which would
 * fail with a hundred messages of their own. */
#ifdef __cplusplus
struct gk_ERROR_gpukit_cuh_is_included_inside_a_namespace;
typedef ::gk_ERROR_gpukit_cuh_is_included_inside_a_namespace gk__included_outside;
#endif

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <cuda_runtime.h>
#include <math.h>
#include <string.h>
#include <type_traits>
#include <utility>
#elif !defined(__has_include)
#include <cuda_runtime_api.h>
#elif __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#elif __has_include("/usr/local/cuda/include/cuda_runtime_api.h")
/* A C compiler that is not given the folder of the toolkit's headers gets them from where NVIDIA's installer puts them.
 * They contain unnamed structs, which C99 does not have. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include "/usr/local/cuda/include/cuda_runtime_api.h"
#pragma GCC diagnostic pop
#else
#error "gpukit.cuh needs the CUDA Toolkit's headers: name their folder, as in gcc -isystem /opt/cuda/include"
#endif
#if defined(GPUKIT_NCCL) && defined(__cplusplus)
#if !defined(NCCL_VERSION_CODE)
#error "GPUKIT_NCCL: include <nccl.h> before gpukit.cuh"
#elif NCCL_VERSION_CODE < 21403
#error "gpukit.cuh needs NCCL 2.14.3 or newer: ncclInProgress is relied on"
#endif
#define GK__NCCL 1
#include <time.h>
#endif

#if CUDART_VERSION < 12000
#error "gpukit.cuh needs CUDA 12.0 or newer: cudaLaunchKernelEx and the capture-safe allocator are relied on"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
#error "gpukit.cuh needs sm_75 or newer: build with -arch=native, or -gencode arch=compute_75,code=sm_75 and up"
#endif

/* Device code needs nvcc, clang in CUDA mode, or the CPU stand-in (tests/cpu), which defines CUDA_ON_CPU. Other files
 * see section 3, and C++ that is compiled without CUDA also gk_array, gk_allclose, gk_time_ms and gk_bench. */
#if defined(__cplusplus) && (defined(__CUDACC__) || defined(CUDA_ON_CPU))
#define GK__KERNELS 1
#endif

/* --- Specifiers --------------------------------------------------------------------------------------------------*/

#ifndef GPUKIT_DEF
#define GPUKIT_DEF extern
#endif

/* [[nodiscard]], in languages that have it. */
#if defined(__cplusplus) && defined(__has_cpp_attribute)
#if __cplusplus >= 201703L && __has_cpp_attribute(nodiscard)
#define GK__NODISCARD [[nodiscard]]
#endif
#elif defined(__STDC_VERSION__) && defined(__has_c_attribute)
#if __STDC_VERSION__ > 201710L && __has_c_attribute(nodiscard)
#define GK__NODISCARD [[nodiscard]]
#endif
#endif
#ifndef GK__NODISCARD
#define GK__NODISCARD
#endif
#define GK__CHECKED GK__NODISCARD GPUKIT_DEF

/* For __launch_bounds__: the blocks of a kernel that a multiprocessor is to hold. In device code for a debugger (-G)
 * functions are not inlined, and CUDA 12 with -rdc refuses a kernel with fewer registers than a function it calls. */
#ifdef __CUDACC_DEBUG__
#define GK__RESIDENT(blocks) 1
#else
#define GK__RESIDENT(blocks) blocks
#endif

/* --- Namespaces --------------------------------------------------------------------------------------------------*/

/* GK__VERSION is gk_v0_2_0, or gk_v0_2_0_TAG with a GPUKIT_TAG; GK__VERSIONED(what) appends _what to it. */
#define GK__VERSION3(major, minor, patch) gk_v##major##_##minor##_##patch
#define GK__VERSION2(major, minor, patch) GK__VERSION3(major, minor, patch)
#define GK__VERSION1 GK__VERSION2(GPUKIT_VERSION_MAJOR, GPUKIT_VERSION_MINOR, GPUKIT_VERSION_PATCH)
#define GK__VERSIONED2(version, what) version##_##what
#define GK__VERSIONED1(version, what) GK__VERSIONED2(version, what)
#ifdef GPUKIT_TAG
#define GK__VERSION GK__VERSIONED1(GK__VERSION1, GPUKIT_TAG)
#else
#define GK__VERSION GK__VERSION1
#endif
#define GK__VERSIONED(what) GK__VERSIONED1(GK__VERSION, what)

/* If an implementation is missing, or there are two, the linker's message shows this name. It is in the symbols of host
 * functions only (GK__LABEL in section 14), because compilers show a namespace in every message about what is in it. A
 * compiler that cannot name symbols gets it as the namespace. */
#define GK__NEEDED GK__VERSIONED(needs_GPUKIT_IMPLEMENTATION_in_exactly_one_cu_file)
#if defined(__GNUC__) || defined(__clang__)
#define GK__HOST GK__VERSION
#else
#define GK__HOST GK__NEEDED
#endif

#define GK__C_API GK__VERSIONED(needs_GPUKIT_IMPLEMENTATION_with_GPUKIT_C_API_in_one_cu_file)

/* The namespace of kernels is also named after the architectures compiled for and the meaning of stream 0, which change
 * the bodies of templates. The linker merges template instances of equal names: without this, a file could launch
 * kernels that were compiled for another one. Templates that launch nothing, such as gk_array, are with the host
 * functions, because files for different GPUs pass their types to each other. With GPUKIT_STATIC no two files share an
 * instance. */
#ifdef __CUDA_ARCH_LIST__
#define GK__ARCHS __CUDA_ARCH_LIST__
#else
#define GK__ARCHS 0
#endif
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define GK__STREAMS _streams_per_thread
#else
#define GK__STREAMS
#endif
#define GK__JOIN(streams, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, ...)                  \
  GK__VERSIONED(sm##a1##a2##a3##a4##a5##a6##a7##a8##a9##a10##a11##a12##a13##a14##a15##a16##streams)
#define GK__NAMED(...) GK__JOIN(__VA_ARGS__)

#define GK__NAMESPACE(which) GK__NAMESPACE_##which
#define GK__NAMESPACE_HOST inline namespace GK__HOST
#ifdef GPUKIT_STATIC
#define GK__NAMESPACE_TEMPLATES namespace
#define GK__NAMESPACE_KERNELS namespace /* nvcc allows no kernels in a namespace that is both inline and unnamed */
#else
#define GK__NAMESPACE_TEMPLATES GK__NAMESPACE_HOST
#define GK__NAMESPACE_KERNELS inline namespace GK__NAMED(GK__STREAMS, GK__ARCHS, , , , , , , , , , , , , , , , , )
#endif

#ifdef __cplusplus
extern "C++" {
#include <atomic> /* here, because its templates would be errors inside of extern "C" */
#endif

/* ====================================================================================================================
 * 3. HOST API: what C and C++ files share, in valid C99: errors, devices, timing, scratch memory, the options of
 *    matmul, and typed calls for C. GUARANTEES in section 1 says what holds for all of them.
 * ==================================================================================================================*/

#ifdef __cplusplus
GK__NAMESPACE(HOST) {
#endif

/* --- Errors ------------------------------------------------------------------------------------------------------*/

/* What a failed check passes to the handler. No pointer is NULL. They are valid until the handler returns. */
typedef struct gk_error {
  const char *file; /* source file and line of the check */
  int line;
  const char *expr;    /* the source text of what was checked */
  int code;            /* the status; for CUDA a cudaError_t */
  const char *name;    /* of the status: "cudaErrorInvalidValue"; "status 7" if no name is known */
  const char *message; /* what the status means, from its own library (cudaGetErrorString); "" if unknown */
  const char *detail;  /* what gpukit adds: which argument, which kernel, which sizes; "" if nothing */
  const char *hint;    /* what to try; "" if nothing */
} gk_error;
typedef void (*gk_error_handler)(const gk_error *error, void *user);

/* Sets the handler that every failed check calls, in the thread of the check and with this `user` pointer. It may
 * throw, longjmp, exit or return; if it returns, the program continues after the check. NULL restores the default:
 * print to stderr and abort. Several threads may set handlers at the same time. */
GPUKIT_DEF void gk_set_error_handler(gk_error_handler handler, void *user);

/* Why the last gk_ call of this thread failed; "" if it did not. The text that the pointer refers to stays the same
 * until the thread's next gk_ call that fails. */
GPUKIT_DEF const char *gk_error_detail(void);
/* What to try about a CUDA error: a static string; "" if there is nothing to say beyond its name. */
GPUKIT_DEF const char *gk_error_hint(cudaError_t code);

/* GK_CHECK(expr)     evaluates expr once, and calls the handler if it failed. In C, expr is a cudaError_t. In C++ it
 *                    may be any integer or enumeration (but no bool) whose zero is success; those of cuBLAS and NCCL
 *                    are reported with their own messages, others by number. The error's detail is that of a gk_ call
 *                    made in expr. If expr contains no call, as in GK_CHECK(status), it is that of this thread's last
 *                    gk_ call that failed, if that returned this status.
 * GK_CHECK_STATUS(expr, to_string)
 *                    the same, in C and C++, for any status that converts to int, such as a class; to_string(status)
 *                    is its message.
 * GK_TRY(expr)       returns from the enclosing function with expr, a cudaError_t, if it is an error.
 * GK_CHECK_LAUNCH()  directly after a kernel<<<...>>>() of your own: checks and clears CUDA's last error. With
 *                    GPUKIT_DEBUG=1 it also waits for stream 0, or in C++ for the stream that it is given. */
#define GK_CHECK_STATUS(expr, to_string)                                                                               \
  do {                                                                                                                 \
    const GK__STATUS_TYPE gk__s = (expr);                                                                              \
    if ((int)gk__s) gk__check_status((int)gk__s, "", to_string(gk__s), #expr, __FILE__, __LINE__);                     \
  } while (0)
#define GK_TRY(...)                                                                                                    \
  do {                                                                                                                 \
    const cudaError_t gk__try = (__VA_ARGS__);                                                                         \
    if (gk__try != cudaSuccess) return gk__try;                                                                        \
  } while (0)
#define GK_CHECK(...) ((void)gk__check_begin(), gk__check((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__))
#ifdef __cplusplus
#define GK_CHECK_LAUNCH(...) gk__check_launch(cudaStream_t{__VA_ARGS__}, __FILE__, __LINE__)
#else
#define GK_CHECK_LAUNCH() gk__check_launch(0, __FILE__, __LINE__)
#endif

/* --- Devices and occupancy ---------------------------------------------------------------------------------------*/

typedef struct gk_device_info {
  int device;
  char name[256];
  int major, minor; /* compute capability */
  int sms;          /* streaming multiprocessors */
  int threads_per_warp;
  int max_threads_per_block, max_threads_per_sm, max_blocks_per_sm;
  int max_block_x, max_block_y, max_block_z;                                                 /* threads */
  int max_grid_x, max_grid_y, max_grid_z;                                                    /* blocks */
  int registers_per_block, registers_per_sm;                                                 /* 32 bits each */
  size_t shared_per_block, shared_per_block_optin, shared_per_sm, shared_reserved_per_block; /* bytes */
  size_t global_bytes, free_bytes, constant_bytes, l2_bytes;
  int clock_khz, memory_khz, bus_bits;
  double peak_gbs; /* theoretical memory bandwidth, 10^9 bytes/s: 2 x memory clock x bus width; 0 if unknown */
  int managed_memory, memory_pools, cooperative_launch, unified_addressing, integrated, async_engines;
} gk_device_info;

/* Fills *info; device -1 is the current one. To learn the free memory it makes a context on the device. The current
 * device stays what it is, unless it cannot be made current again, for instance because another process has it to
 * itself. */
GK__CHECKED cudaError_t gk_device_query(int device, gk_device_info *info);
GK__CHECKED cudaError_t gk_device_print(int device); /* prints a table to stdout */
/* The device with the most SMs x clock; of equal ones, that with the most free memory, then the first. Passes over
 * devices that cannot be used, for instance because another process has one to itself. Makes a context on each. */
GK__CHECKED cudaError_t gk_device_best(int *device);

typedef struct gk_occupancy_info {
  int block_threads;   /* threads per block, as given */
  size_t dynamic_smem; /* bytes per block, as given */
  int registers;       /* per thread */
  size_t static_smem;  /* bytes per block */
  int blocks_per_sm, warps_per_sm, max_warps_per_sm;
  double occupancy;                                 /* warps_per_sm / max_warps_per_sm */
  int by_threads, by_blocks, by_registers, by_smem; /* blocks per SM if this resource were the only limit */
  const char *limit;                                /* "threads", "blocks", "registers" or "shared memory" */
} gk_occupancy_info;

/* On the current device. kernel is the address of a __global__ function; in C++ also the function itself (section 4).
 * smem is a block's dynamic shared memory in bytes. gk_block_for finds the number of threads per block (a multiple of
 * the warp size) with the highest occupancy; of equal ones, the nearest to 256. */
GK__CHECKED cudaError_t gk_occupancy(const void *kernel, int block_threads, size_t smem, gk_occupancy_info *info);
GK__CHECKED cudaError_t gk_occupancy_print(const void *kernel, int block_threads, size_t smem);
GK__CHECKED cudaError_t gk_block_for(const void *kernel, size_t smem, int *block_threads);

/* The grid that covers w x h x d elements, one thread each; cudaErrorInvalidConfiguration if CUDA allows none, or if
 * the block is empty. A block that is too large is found by the launch. */
GK__CHECKED cudaError_t gk_grid_shape(size_t w, size_t h, size_t d, const dim3 *block_dim, dim3 *grid_dim);

/* --- Timing ------------------------------------------------------------------------------------------------------*/

/* Two events on a stream. A zero-initialised timer is valid and empty. */
typedef struct gk_timer {
  cudaEvent_t begin, end;
  cudaStream_t stream;
  int state; /* 0: empty */
} gk_timer;

GK__CHECKED cudaError_t gk_timer_create(gk_timer *timer);                     /* an error if the timer is not empty */
GK__CHECKED cudaError_t gk_timer_start(gk_timer *timer, cudaStream_t stream); /* may be repeated */
GK__CHECKED cudaError_t gk_timer_stop(gk_timer *timer);                       /* on the stream of the start */
GK__CHECKED cudaError_t gk_timer_ready(gk_timer *timer, int *ready);       /* does not wait; *ready = 0 is no error */
GK__CHECKED cudaError_t gk_timer_ms(gk_timer *timer, float *milliseconds); /* waits for the stop */
GK__CHECKED cudaError_t gk_timer_destroy(gk_timer *timer);                 /* leaves it empty; an empty one is fine */

/* GK_TIME("label", stream) { ... } measures the time on the stream from { to }, waits for the stream there, and prints
 * `label: 1.234 ms`. Do not leave the braces by break, continue, return, goto or an exception. GK_TIME("label", stream,
 * bytes) also prints bytes per second, and GK_TIME("label", stream, 0, flops) operations per second: `label: 1.234 ms,
 * 567.8 GB/s`. If GK_LAUNCH or a call of gpukit launched a kernel for the first time there, the line says so, because
 * CUDA may have had to load it. With GPUKIT_NVTX it is an NVTX range as well. */
#define GK_TIME(label, ...) GK__TIME(label, __VA_ARGS__, 0, 0, 0)
#define GK__TIME(label, stream, bytes, flops, ...)                                                                     \
  for (gk__time_scope GK__PASTE(gk__time_, __LINE__) =                                                                 \
           gk__time_begin(label, stream, (double)(bytes), (double)(flops), __FILE__, __LINE__);                        \
       gk__time_next(&GK__PASTE(gk__time_, __LINE__));)

/* gk_bench calls function(user, stream, i) many times and measures how long one call takes on the stream. i counts from
 * 0 to buffers - 1 and starts again, so that the function can use other memory in each call. With as many buffers as
 * gk_bench_buffers returns, every call finds a cold L2; with 0 or 1, a hot one. An error of the function ends the
 * measurement and is returned. Waits for the stream. */
typedef cudaError_t (*gk_bench_fn)(void *user, cudaStream_t stream, size_t i);
typedef struct gk_bench_opts { /* zeros are the defaults; so is opts NULL */
  cudaStream_t stream;
  size_t buffers;      /* 0: 1 */
  int warmup;          /* calls before the first sample; 0: 3 */
  int samples;         /* 0: 30 */
  int calls;           /* back-to-back calls in a sample; 0: as many as take about 1 ms, from 1 to 1000 */
  double bytes, flops; /* bytes moved and operations done by one call, for the rates in the result */
  double *sample_ms;   /* NULL, or an array for ms per call: `samples` (0: 30) for each function, one after the other */
} gk_bench_opts;
typedef struct gk_bench_result {
  double median_ms, min_ms, mean_ms, stddev_ms; /* time of one call, over the samples */
  double noise;                                 /* median absolute deviation / median */
  double gbs, gflops;                           /* 10^9 bytes and operations per second, at the median */
  double peak_percent;                          /* gbs in percent of the device's peak_gbs */
  double ratio; /* median over the samples of time / the first function's time in the same round; first function: 1 */
  int samples, calls;
} gk_bench_result;
GK__CHECKED cudaError_t gk_bench(gk_bench_fn function, void *user, const gk_bench_opts *opts, gk_bench_result *result);
/* Measures several functions in rounds of one sample of each. The order is reversed in every other round. So a change
 * of clocks, temperature or load during the measurement affects all functions equally. fns[f] is called with users[f]
 * (users NULL: with NULL); i continues from one function to the next. fns, users and results have function_count
 * entries. */
GK__CHECKED cudaError_t gk_bench_compare(const gk_bench_fn *fns, void *const *users, int function_count,
                                         const gk_bench_opts *opts, gk_bench_result *results);
/* The number of buffers of this size that together exceed three times the L2; 1 for 0 bytes. */
GK__CHECKED cudaError_t gk_bench_buffers(size_t bytes, size_t *buffers);

/* --- Scratch -----------------------------------------------------------------------------------------------------*/

/* Device memory for what the blocks of reduce, scan and some products pass to each other. With a scratch a reduce or a
 * scan is a single kernel launch. Without one (NULL) the call also allocates, clears and frees memory on the stream,
 * for which the device needs memory pools.
 *
 * One scratch serves calls of any size and type, one after the other on one stream; each stream needs its own. It never
 * grows: if it is too small, the call returns cudaErrorInvalidValue, and the detail names the bytes needed. A
 * zero-initialised gk_scratch is valid and empty: calls that would use it refuse it.
 *
 * It may have a work area, for copies of A and B that tensor cores can read. If it has none, a product that needs one
 * allocates it on the stream. One that is too small for a single product is an error, too. */
typedef struct gk_scratch {
  void *ptr;
  size_t bytes;      /* without the work area */
  size_t work_bytes; /* of the work area */
  int device;
} gk_scratch;

/* Allocates a scratch of at least `bytes` bytes for the current device, and clears it on the stream;
 * gk_scratch_create_work adds a work area of work_bytes bytes. It is an error if *scratch is not empty, or if the
 * stream is being captured. gk_scratch_destroy frees it, which waits for the device, and leaves it empty; if it fails,
 * as during a capture, nothing is changed. */
GK__CHECKED cudaError_t gk_scratch_create(gk_scratch *scratch, size_t bytes, cudaStream_t stream);
GK__CHECKED cudaError_t gk_scratch_create_work(gk_scratch *scratch, size_t bytes, size_t work_bytes,
                                               cudaStream_t stream);
GK__CHECKED cudaError_t gk_scratch_destroy(gk_scratch *scratch);
/* The bytes for reduce, whatever n. */
GPUKIT_DEF size_t gk_reduce_scratch_bytes(void);
/* The bytes for reduce, and for scans and gk_select of up to n items. item_bytes is the size of the largest of the
 * input's, the output's and the working type; for gk_select, of an element. SIZE_MAX if the number overflows. */
GPUKIT_DEF size_t gk_scan_scratch_bytes(size_t n, size_t item_bytes);
/* The bytes for reductions and scans of the rows or columns of a matrix. item_bytes and overflow: as above. */
GPUKIT_DEF size_t gk_matrix_scratch_bytes(size_t row_count, size_t col_count, size_t item_bytes);
/* The bytes for products of any shape and type, on any GPU, and for reduce: a little more than 64 MiB. gk_matmul_plan
 * returns what one call needs, which is often less. */
GPUKIT_DEF size_t gk_matmul_scratch_bytes(void);

/* --- Reduce, scan, matmul: what both languages share -------------------------------------------------------------*/

typedef enum gk_op { GK_OP_SUM, GK_OP_PROD, GK_OP_MIN, GK_OP_MAX, GK_OP_ARGMIN, GK_OP_ARGMAX } gk_op;

/* How a matmul computes. All sum in float, those of doubles in double. GK_PRECISION_STRICT promises the bits of the
 * result. The others promise bounds of the error, which are in section 10, and are computed by tensor cores. Where
 * strict kernels are faster, as for thin products, or where the GPU or the program's code for it has no tensor cores
 * for the type, they are computed as strict. */
typedef enum gk_precision {
  GK_PRECISION_DEFAULT = 0,      /* float and double: strict. Half types: exact products, summed by tensor cores */
  GK_PRECISION_STRICT,           /* IEEE fused multiply-adds, in an order that depends on m, n, k and the type alone */
  GK_PRECISION_TF32,             /* float: A and B are rounded to 11 significant bits, to nearest */
  GK_PRECISION_EMULATED,         /* float: as exact as strict, from six products of bfloat16 parts on tensor cores */
  GK__PRECISION_INT = 0x7fffffff /* so that any int which C passes is a value of the type */
} gk_precision;

/* Which kernels compute a product. It is an error to ask for kernels that the GPU, or the program's code for it, does
 * not have. All strict kernels give the same bits. */
typedef enum gk_plan {
  GK_PLAN_AUTO = 0, /* the fastest, by the planner's estimate */
  /* For tests: a strict kernel with this tile, or with another one if the type or the GPU does not have it. */
  GK__PLAN_TILE_32,
  GK__PLAN_TILE_32_64,
  GK__PLAN_TILE_64,
  GK__PLAN_TILE_64_128,
  GK__PLAN_HOPPER_32_64,
  GK__PLAN_HOPPER_64,
  GK__PLAN_HOPPER_64_128,
  GK__PLAN_HOPPER_128_64,
  GK__PLAN_HOPPER_128,
  GK_PLAN_MMA,   /* tensor cores by mma.sync: every GPU that has them; an error if asked for in code for sm_90a */
  GK_PLAN_WGMMA, /* tensor cores by wgmma: sm_90a */
  GK_PLAN_SIMT,  /* strict kernels, for half types in place of tensor cores */
  GK__PLAN_INT = 0x7fffffff
} gk_plan;

/* alpha or beta of a product: the address of a double in host memory, in C++ also that of a float; NULL is none. It is
 * read before the call returns, and rounded to float, but not for products of doubles. One that rounds to 0 is 0. */
#ifdef __cplusplus
struct gk_factor {
  gk_factor() = default;
  gk_factor(const double *number) : address(reinterpret_cast<uintptr_t>(number)) {}
  template <class Number,
            class = typename std::enable_if<!std::is_same<typename std::remove_cv<Number>::type, double>::value>::type>
  gk_factor(Number *number) : address(reinterpret_cast<uintptr_t>(number) + (number ? 1 : 0)) {
    static_assert(std::is_same<typename std::remove_cv<Number>::type, float>::value,
                  "alpha and beta are addresses of a double or a float, as in opts.alpha = &x");
  }
  template <class Number, class = typename std::enable_if<std::is_floating_point<Number>::value>::type>
  gk_factor(Number) {
    static_assert(sizeof(Number) == 0, "alpha and beta are addresses of a double or a float, as in opts.alpha = &x");
  }
  explicit operator bool() const { return address != 0; } /* whether it is not NULL */
  double operator*() const {                              /* the number */
    if (address % 2) return static_cast<double>(*reinterpret_cast<const float *>(address - 1));
    return *reinterpret_cast<const double *>(address);
  }

private:
  uintptr_t address; /* of a double; of a float plus 1, which is odd, unlike any double's */
};
#else
typedef const double *gk_factor;
#endif

typedef struct gk_matmul_opts { /* zeros are the defaults */
  int trans_a, trans_b;         /* 1: A is stored as k x m, B as n x k */
  size_t lda, ldb, ldc;         /* elements from one stored row to the next; 0: the rows are dense */
  gk_factor alpha, beta;        /* C = alpha A B + beta C; NULL: 1 and 0. With beta 0, C is never read */
  size_t batch;                 /* the number of products; 0: 1 */
  size_t stride_a, stride_b;    /* elements from one product's operand to the next; 0: all use the same */
  size_t stride_c;              /* likewise; 0: m x ldc */
  gk_precision precision;
  gk_plan plan;
  gk_scratch *scratch;
  /* The most blocks on the GPU at the same time, to leave room for other work; 0: no limit. Does not change the bits.
   * The split-K partitions of one tile, and a block for the copy of each operand, run at the same time even if they
   * are more. */
  size_t max_blocks;
} gk_matmul_opts;

/* The bytes of work area that suffice for any product of m x n x k at this precision. GK_PRECISION_STRICT needs none,
 * and GK_PRECISION_DEFAULT only for half types. To compute a whole batch at once, the work area needs as many for each
 * product; with less, the batch is computed in parts, each by launches of its own. gk_matmul_plan returns what one call
 * needs, which may be less. SIZE_MAX if the number of bytes overflows. */
GPUKIT_DEF size_t gk_matmul_work_bytes(gk_precision precision, size_t m, size_t n, size_t k);

/* What gk_matmul_plan returns: how a product would be computed, and with how much memory. */
typedef struct gk_matmul_path {
  gk_plan plan;           /* GK_PLAN_MMA, GK_PLAN_WGMMA, or another one for strict kernels. Not to be passed back:
                           * GK_PLAN_MMA is also that of small products, and of some tf32 in code for sm_90a, where it
                           * is an error if asked for */
  gk_precision precision; /* the one computed: strict, or that of the tensor cores */
  int copies_a, copies_b; /* 1: the operand is copied first, to round, transpose or split it, or to align its rows */
  size_t scratch_bytes;   /* the scratch for one product of the batch; 0: none */
  size_t work_bytes;      /* likewise its work area; with a larger one, more products run at the same time */
} gk_matmul_path;

/* Where two arrays differ: the result of gk_allclose. */
typedef struct gk_mismatch {
  size_t mismatches;                         /* the number of elements that differ; if 0, the rest has no meaning */
  size_t first_index, worst_index;           /* worst: the largest error relative to its tolerance, or a NaN */
  double first_a, first_b, worst_a, worst_b; /* integers past 2^53 are rounded here, but not in gk_error_detail() */
} gk_mismatch;

/* --- Typed calls for C --------------------------------------------------------------------------------------------
 * Each does what the C++ template of the same name does; the documentation is in sections 10, 11 and 4. They exist if
 * the implementing file also defines GPUKIT_C_API. C has no half types: arrays of f16 and bf16 are void *, and the
 * results of gk_reduce and gk_matmul are float.
 *
 *   gk_reduce, gk_argreduce (gk_reduce by GK_OP_ARGMIN or GK_OP_ARGMAX),
 *   gk_scan_inclusive, gk_scan_exclusive                                   _f32 _f64 _i32 _u32 _i64 _u64 _f16 _bf16
 *   gk_scan_exclusive_init, gk_host_reduce, gk_host_scan_inclusive,
 *   gk_host_scan_exclusive; the type gk_arg                                _f32 _f64 _i32 _u32 _i64 _u64
 *   gk_matmul, gk_matmul_ex, gk_matmul_plan                                _f32 _f64 _f16 _bf16
 *   gk_host_matmul, gk_allclose                                            _f32 _f64
 *
 * GK_OP_ARGMIN and GK_OP_ARGMAX are for gk_argreduce alone. */

#define GK__REAL_TYPES(X) X(f32, float) X(f64, double)
#define GK__TYPES(X) GK__REAL_TYPES(X) X(i32, int32_t) X(u32, uint32_t) X(i64, int64_t) X(u64, uint64_t)
#define GK__HALF_TYPES(X) X(f16, __half) X(bf16, __nv_bfloat16)

/* GK__C_BODY(call) is empty here. Section 22 defines the functions, and there it is a body that returns `call`.
 * `item` is C's name of the elements' type, `sum` the type of a sum or product of them, `arg` of value and index. */
#define GK__C_BODY(...)
#define GK__C_ARG(suffix, type)                                                                                        \
  typedef struct gk_arg_##suffix {                                                                                     \
    type value;                                                                                                        \
    size_t index;                                                                                                      \
  } gk_arg_##suffix;
#define GK__C_ARRAY_CALLS(suffix, type, item, sum, arg)                                                                \
  GK__CHECKED cudaError_t gk_reduce_##suffix(const item *input, sum *output, size_t n, gk_op operation,                \
                                             cudaStream_t stream, gk_scratch *scratch)                                 \
      GK__C_BODY(gk__by_op(__func__, operation, gk__call_reduce(), static_cast<const type *>(input), output, n,        \
                           stream, scratch));                                                                          \
  GK__CHECKED cudaError_t gk_argreduce_##suffix(const item *input, arg *output, size_t n, gk_op operation,             \
                                                cudaStream_t stream, gk_scratch *scratch)                              \
      GK__C_BODY(gk__argreduce(__func__, operation, static_cast<const type *>(input), output, n, stream, scratch));    \
  GK__CHECKED cudaError_t gk_scan_exclusive_##suffix(const item *input, item *output, size_t n, gk_op operation,       \
                                                     cudaStream_t stream, gk_scratch *scratch)                         \
      GK__C_BODY(gk__by_op(__func__, operation, gk__call_scan_exclusive(), static_cast<const type *>(input),           \
                           static_cast<type *>(output), n, stream, scratch));                                          \
  GK__CHECKED cudaError_t gk_scan_inclusive_##suffix(const item *input, item *output, size_t n, gk_op operation,       \
                                                     cudaStream_t stream, gk_scratch *scratch)                         \
      GK__C_BODY(gk__by_op(__func__, operation, gk__call_scan_inclusive(), static_cast<const type *>(input),           \
                           static_cast<type *>(output), n, stream, scratch));
#define GK__C_NUMBER_CALLS(suffix, type)                                                                               \
  GK__C_ARRAY_CALLS(suffix, type, type, type, gk_arg_##suffix)                                                         \
  GK__CHECKED cudaError_t gk_scan_exclusive_init_##suffix(const type *input, type *output, size_t n, gk_op operation,  \
                                                          type init, cudaStream_t stream, gk_scratch *scratch)         \
      GK__C_BODY(                                                                                                      \
          gk__by_op(__func__, operation, gk__call_scan_exclusive_init(), input, output, n, init, stream, scratch));    \
  GK__CHECKED cudaError_t gk_host_reduce_##suffix(const type *input, type *output, size_t n, gk_op operation)          \
      GK__C_BODY(gk__by_op(__func__, operation, gk__call_host_reduce(), input, output, n));                            \
  GK__CHECKED cudaError_t gk_host_scan_exclusive_##suffix(const type *input, type *output, size_t n, gk_op operation)  \
      GK__C_BODY(gk__by_op(__func__, operation, gk__call_host_scan_exclusive(), input, output, n));                    \
  GK__CHECKED cudaError_t gk_host_scan_inclusive_##suffix(const type *input, type *output, size_t n, gk_op operation)  \
      GK__C_BODY(gk__by_op(__func__, operation, gk__call_host_scan_inclusive(), input, output, n));
#define GK__C_PRODUCTS(suffix, type, item, sum)                                                                        \
  GK__CHECKED cudaError_t gk_matmul_##suffix(const item *a, const item *b, sum *c, size_t m, size_t n, size_t k,       \
                                             cudaStream_t stream)                                                      \
      GK__C_BODY(gk_matmul(static_cast<const type *>(a), static_cast<const type *>(b), c, m, n, k, stream));           \
  GK__CHECKED cudaError_t gk_matmul_ex_##suffix(const item *a, const item *b, sum *c, size_t m, size_t n, size_t k,    \
                                                const gk_matmul_opts *opts, cudaStream_t stream)                       \
      GK__C_BODY(gk_matmul_ex(static_cast<const type *>(a), static_cast<const type *>(b), c, m, n, k, opts, stream));  \
  GK__CHECKED cudaError_t gk_matmul_plan_##suffix(const item *a, const item *b, sum *c, size_t m, size_t n, size_t k,  \
                                                  const gk_matmul_opts *opts, gk_matmul_path *path)                    \
      GK__C_BODY(gk_matmul_plan(static_cast<const type *>(a), static_cast<const type *>(b), c, m, n, k, opts, path));
#define GK__C_REAL_CALLS(suffix, type)                                                                                 \
  GK__C_PRODUCTS(suffix, type, type, type)                                                                             \
  GK__CHECKED cudaError_t gk_host_matmul_##suffix(const type *a, const type *b, type *c, size_t m, size_t n, size_t k) \
      GK__C_BODY(gk_host_matmul(a, b, c, m, n, k));                                                                    \
  GPUKIT_DEF int gk_allclose_##suffix(const type *a, const type *b, size_t n, double rtol, double atol,                \
                                      gk_mismatch *mismatch) GK__C_BODY(gk_allclose(a, b, n, rtol, atol, mismatch));
#define GK__C_HALF_CALLS(suffix, type)                                                                                 \
  GK__C_ARRAY_CALLS(suffix, type, void, float, gk_arg_f32)                                                             \
  GK__C_PRODUCTS(suffix, type, void, float)
#define GK__C_CALLS() GK__TYPES(GK__C_NUMBER_CALLS) GK__REAL_TYPES(GK__C_REAL_CALLS) GK__HALF_TYPES(GK__C_HALF_CALLS)

#if !defined(GPUKIT_STATIC) || defined(GPUKIT_C_API)
#ifdef __cplusplus
extern "C" {
#endif
GK__TYPES(GK__C_ARG)
GK__C_CALLS()
#ifdef __cplusplus
} /* extern "C" */
#endif
#endif

#ifdef __cplusplus
} // GK__NAMESPACE(HOST)
#endif /* __cplusplus */

/* ====================================================================================================================
 * 4. CHECKS AND LAUNCHES: timing, device arrays, comparing arrays, launching your own kernels. C++11 from here on.
 * ==================================================================================================================*/

#ifdef __cplusplus
GK__NAMESPACE(KERNELS) {

/* The file and line of a call, for error messages: parameters that callers leave out. */
#define GK__CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* --- Timing of callables -----------------------------------------------------------------------------------------*/

/* The milliseconds that the stream takes for the work that function() puts on it. Waits for the stream. function()
 * returns nothing or a cudaError_t. An error goes to the handler of GK_CHECK; if that returns, the result is NaN. A
 * <<<...>>> that fails to launch is not noticed: use GK_LAUNCH.
 *
 *   const float ms = gk_time_ms([&] { GK_LAUNCH(scale, grid, 256, 0, 0, x, n, 2.0f); }); */
template <class Function> float gk_time_ms(Function function, cudaStream_t stream = 0, GK__CALLER);

/* gk_bench (section 3) of a callable that takes nothing: a lambda that puts its work on opts->stream. It returns
 * nothing or a cudaError_t. */
template <class Function>
GK__NODISCARD cudaError_t gk_bench(Function function, const gk_bench_opts *opts, gk_bench_result *result);

} // GK__NAMESPACE(KERNELS)
GK__NAMESPACE(TEMPLATES) {

/* --- Device arrays -----------------------------------------------------------------------------------------------*/

template <class Item> class gk_array;
/* For ranges of Items in host memory: void if Range has data() and size(). */
template <class Item, class Range>
using gk__range_of =
    typename std::enable_if<std::is_same<const Item *, const typename std::remove_pointer<
                                                           decltype(std::declval<Range &>().data())>::type *>::value &&
                            std::is_convertible<decltype(std::declval<Range &>().size()), size_t>::value &&
                            !std::is_same<typename std::remove_const<Range>::type,
                                          gk_array<typename std::remove_const<Item>::type>>::value>::type;
/* For numbers of elements: void. A literal 0 would also be a null pointer. */
template <class Count>
using gk__count_type = typename std::enable_if<std::is_integral<Count>::value || std::is_enum<Count>::value>::type;
/* An array in device memory, which it owns. It can be moved, but not copied. Calls that take pointers to device memory
 * take it, too, and refuse one with fewer elements than they surely use; kernels take it because it converts to Item *.
 *
 *   gk_array<float> x(host), y(n);         // host: a std::vector, or anything else with data() and size()
 *   GK_LAUNCH(saxpy, gk_grid_1d(n, 256), 256, 0, 0, 2.0f, x, y, n);
 *   GK_CHECK(gk_reduce_sum(y, sum, n));    // sum: a gk_array<float> of one element
 *   printf("%g\n", sum.get(0));
 *
 * A lambda of device code captures x.data() and not x, which cannot be copied. New elements are uninitialised. On
 * stream 0 memory comes from cudaMalloc, and cudaFree waits for the device. On other streams it is allocated and freed
 * in the stream's order. The stream must outlive the array, whose destructor frees the memory on it. The array's device
 * must be current whenever it is used. Arrays on stream 0 cannot be destroyed during a capture: their memory would be
 * lost. Copies are on the stream, and functions that copy wait for it. A failure goes to the handler of GK_CHECK. If
 * that returns, an array that was not allocated is empty, and host memory is as it was. Items are trivially copyable.
 */
template <class Item> class gk_array {
public:
  typedef Item value_type;
  gk_array() : items(NULL), item_count(0), stream(0) {}
  explicit gk_array(size_t n, cudaStream_t stream = 0, GK__CALLER);
  template <class Count, class = typename std::enable_if<std::is_floating_point<Count>::value>::type>
  explicit gk_array(Count n, cudaStream_t stream = 0) = delete; /* the number of elements is an integer */
  gk_array(const Item *host, size_t n, cudaStream_t stream = 0, GK__CALLER);
  template <class Range, class = gk__range_of<const Item, const Range>>
  explicit gk_array(const Range &host, cudaStream_t stream = 0, GK__CALLER);
  gk_array(gk_array &&other) noexcept;
  gk_array &operator=(gk_array &&other) noexcept; /* frees what it had */
  ~gk_array();

  size_t size() const { return item_count; }
  Item *data() { return items; }
  const Item *data() const { return items; }
  operator Item *() & { return items; }
  operator const Item *() const & { return items; }
  operator Item *() && = delete; /* a temporary array is freed at the end of the statement */
  template <class Index>
  Item &operator[](Index i) const = delete; /* elements are in device memory: get(i), set(i, x) */
  Item &operator*() const = delete;

  /* All elements, or the first n, from and to host memory. A range must have size() elements: it is not resized. */
  void copy_from(const Item *host, GK__CALLER);
  void copy_to(Item *host, GK__CALLER) const;
  template <class Count, class = gk__count_type<Count>> void copy_from(const Item *host, Count n, GK__CALLER);
  template <class Count, class = gk__count_type<Count>> void copy_to(Item *host, Count n, GK__CALLER) const;
  template <class Range, class = gk__range_of<const Item, const Range>> void copy_from(const Range &host, GK__CALLER);
  template <class Range, class = gk__range_of<Item, Range>> void copy_to(Range &host, GK__CALLER) const;
  template <class Other> void copy_from(const gk_array<Other> &, GK__CALLER) = delete; /* see gk_copy */
  template <class Other> void copy_to(const gk_array<Other> &, GK__CALLER) const = delete;
  /* Read and write one element. One that is read needs a default constructor. */
  Item get(size_t i, GK__CALLER) const;
  void set(size_t i, Item value, GK__CALLER);
  void clear(GK__CALLER); /* sets all bytes to 0; does not wait */

private:
  template <class Other> friend struct gk__device_items;
  Item *items;
  size_t item_count;
  cudaStream_t stream;
};

/* --- Comparing arrays ---------------------------------------------------------------------------------------------*/

/* Returns whether |a[i] - b[i]| <= atol + rtol |b[i]| for every i < n. a and b are host arrays. The tolerances are at
 * least 0. Equal elements are close; an infinity is close to nothing else, and a NaN to nothing. Integers are compared
 * exactly, whatever their types; with rtol and atol 0 they must be equal. All other types are compared in double. If
 * the arrays differ, *mismatch (may be NULL) describes the first and the worst difference, and so does
 * gk_error_detail(). */
template <class Item, class Other>
bool gk_allclose(const Item *a, const Other *b, size_t n, double rtol, double atol, gk_mismatch *mismatch = NULL);

/* gk_allclose of a device array and a second one, or a host array, of the same size; waits for their streams. If a copy
 * or the sizes are in error, the handler is called and the result is false. */
template <class Item, class Other>
bool gk_allclose(const gk_array<Item> &a, const gk_array<Other> &b, double rtol, double atol,
                 gk_mismatch *mismatch = NULL, GK__CALLER);
template <class Item, class Other>
bool gk_allclose(const gk_array<Item> &a, const Other *b, double rtol, double atol, gk_mismatch *mismatch = NULL,
                 GK__CALLER);
template <class Item, class Range, class = gk__range_of<const typename Range::value_type, const Range>>
bool gk_allclose(const gk_array<Item> &a, const Range &b, double rtol, double atol, gk_mismatch *mismatch = NULL,
                 GK__CALLER);
/* With an array the number of elements is not given: it would be taken for rtol. */
template <class Item, class Other, class Tolerance,
          class = typename std::enable_if<std::is_same<Tolerance, int>::value ||
                                          std::is_floating_point<Tolerance>::value>::type>
bool gk_allclose(const gk_array<Item> &a, const Other &b, size_t n, double rtol, Tolerance atol,
                 gk_mismatch *mismatch = NULL) = delete;

} // GK__NAMESPACE(TEMPLATES)
#endif /* __cplusplus */

#ifdef GK__KERNELS
#define GK__HD __host__ __device__ inline
#define GK__D __device__ inline
GK__NAMESPACE(KERNELS) {

/* Launches kernel on the stream. Each argument is converted to the type of the kernel's own parameter. With an empty
 * grid it launches nothing and succeeds. More than 48 KiB of dynamic shared memory needs no extra call. The error is
 * that of this launch, not one left behind by earlier work. */
template <class... Params, class... Args>
GK__NODISCARD cudaError_t gk_launch(void (*kernel)(Params...), dim3 grid_dim, dim3 block_dim, size_t smem,
                                    cudaStream_t stream, Args &&...args);

/* GK_LAUNCH(kernel, grid, block, smem, stream, args...): gk_launch and GK_CHECK in one; the message names the kernel: a
 * name with a comma as a whole if it has parentheses, as in GK_LAUNCH((scale<float, 4>), grid, block, 0, 0, x, n).
 * Arguments are taken by reference: pass a bit-field x, or a static const member that is not defined, as +x. */
#define GK_LAUNCH(...)                                                                                                 \
  ((void)gk__check_begin(),                                                                                            \
   gk__check(gk__launch(#__VA_ARGS__, __VA_ARGS__), "GK_LAUNCH(" #__VA_ARGS__ ")", __FILE__, __LINE__))

/* gk_occupancy, gk_occupancy_print and gk_block_for of section 3, with the kernel itself. */
template <class... Params>
GK__NODISCARD cudaError_t gk_occupancy(void (*kernel)(Params...), int block_threads, size_t smem,
                                       gk_occupancy_info *info) {
  return ::gk_occupancy(reinterpret_cast<const void *>(kernel), block_threads, smem, info);
}
template <class... Params>
GK__NODISCARD cudaError_t gk_occupancy_print(void (*kernel)(Params...), int block_threads, size_t smem) {
  return ::gk_occupancy_print(reinterpret_cast<const void *>(kernel), block_threads, smem);
}
template <class... Params>
GK__NODISCARD cudaError_t gk_block_for(void (*kernel)(Params...), size_t smem, int *block_threads) {
  return ::gk_block_for(reinterpret_cast<const void *>(kernel), smem, block_threads);
}

/* ====================================================================================================================
 * 5. INDEX: the coordinates of a thread, and the elements that belong to it
 * ==================================================================================================================*/

/* a / b rounded up, and a rounded up to a multiple of b. a >= 0 and b > 0; no intermediate result overflows. */
template <class Dividend, class Divisor>
constexpr __host__ __device__ auto gk_ceil_div(Dividend a, Divisor b) -> decltype(a / b) {
  return a / b + (a % b != 0);
}
template <class Dividend, class Divisor>
constexpr __host__ __device__ auto gk_round_up(Dividend a, Divisor b) -> decltype(a / b * b) {
  return gk_ceil_div(a, b) * b;
}

/* The grid that covers n, w x h or w x h x d elements with one thread each. If CUDA has no grid that large, the result
 * is the largest one; GK_FOR_1D and GK_FOR_2D still reach every element. Without elements the grid is empty, and
 * GK_LAUNCH launches nothing. */
inline dim3 gk_grid_1d(size_t n, unsigned block_threads);
inline dim3 gk_grid_2d(size_t w, size_t h, dim3 block_dim);
inline dim3 gk_grid_3d(size_t w, size_t h, size_t d, dim3 block_dim);

/* Coordinates in the whole grid. */
GK__D size_t gk_x() { return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
GK__D size_t gk_y() { return static_cast<size_t>(blockIdx.y) * blockDim.y + threadIdx.y; }
GK__D size_t gk_z() { return static_cast<size_t>(blockIdx.z) * blockDim.z + threadIdx.z; }

/* Ranks count from 0 with x fastest, in blocks and grids of any number of dimensions. Sizes count the threads of a
 * block, the blocks of the grid, and its threads. */
GK__D unsigned gk_block_size() { return blockDim.x * blockDim.y * blockDim.z; }
GK__D unsigned gk_thread_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
GK__D size_t gk_grid_size() { return static_cast<size_t>(gridDim.x) * gridDim.y * gridDim.z; }
GK__D size_t gk_block_rank() {
  return (static_cast<size_t>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}
GK__D size_t gk_global_size() { return gk_grid_size() * gk_block_size(); }
GK__D size_t gk_global_rank() { return gk_block_rank() * gk_block_size() + gk_thread_rank(); }

/* The lane within the warp, and the warp within the block. */
GK__D unsigned gk_lane() { return gk_thread_rank() % 32; }
GK__D unsigned gk_warp() { return gk_thread_rank() / 32; }

/* Grid-stride loops: every i < n, every (x, y) in w x h, exactly once, for any grid and block; in 2D both are flat: 1
 * in z. The 1D loop counts all threads of the grid by their rank; the 2D loop counts them along x and y. The variables
 * have the types of n, w and h, and never overflow. n and h are evaluated once, w once for each row. */
#define GK_FOR_1D(i, n) for (auto i : gk__stride_1d(n))
#define GK_FOR_2D(x, y, w, h)                                                                                          \
  for (auto y : gk__stride_y(h))                                                                                       \
    for (auto x : gk__stride_x(w))

/* GK_DYNAMIC_SHARED(Item, name) declares Item *name, which points to the block's dynamic shared memory, aligned to 16
 * bytes. It works in templates and with several types in one file; `extern __shared__ Item name[]` does not. */
#define GK_DYNAMIC_SHARED(Item, name) Item *name = static_cast<Item *>(gk__dynamic_shared())

} // GK__NAMESPACE(KERNELS)

/* ====================================================================================================================
 * 6. OPERATORS: how two values are combined. Every call that takes an operator takes either
 *
 *    - a tag, such as gk_op_sum(). The working type is chosen to suit the arrays (gk_reduce has a table).
 *    - a functor with Acc operator()(Acc, Acc) const and Acc identity() const, both __host__ __device__. Acc is the
 *      working type: trivially copyable, and with a default constructor. gk_sum<Acc> is a functor, for example; a
 *      struct of your own is another. Calls also apply it to values that are not neighbours, and discard the result.
 * ==================================================================================================================*/

/* A value with its index: the working type and the result of argmin and argmax. */
GK__NAMESPACE(HOST) { /* one type for files of all architectures */
template <class Item> struct gk_arg {
  Item value;
  size_t index;
};
} // GK__NAMESPACE(HOST)

GK__NAMESPACE(KERNELS) {

struct gk_op_sum {};
struct gk_op_prod {};
struct gk_op_min {};
struct gk_op_max {};
struct gk_op_argmin {};
struct gk_op_argmax {};

/* What the functors are made of; section 15 has the bodies. */
template <class Acc, bool Integral = std::is_integral<Acc>::value && sizeof(Acc) <= 8> struct gk__arithmetic;
template <class Acc> GK__HD Acc gk__greatest();
template <class Acc> GK__HD Acc gk__least();
template <bool Greatest, class Acc> GK__HD Acc gk__extreme(const Acc &x, const Acc &y);
template <bool Greatest> GK__HD float gk__extreme(const float &x, const float &y);
template <bool Greatest> GK__HD double gk__extreme(const double &x, const double &y);
template <bool Greatest, class Value> GK__HD gk_arg<Value> gk__extreme(const gk_arg<Value> &x, const gk_arg<Value> &y);

/* Integers wrap. In device code floats are added and multiplied without contraction into fused multiply-adds; on the
 * host, -ffp-contract=off says the same. Identities: 0 and 1. */
template <class Acc> struct gk_sum {
  GK__HD gk_sum() {}
  GK__HD gk_sum(gk_op_sum) {}
  GK__HD Acc identity() const { return Acc(0); }
  GK__HD Acc operator()(const Acc &x, const Acc &y) const { return gk__arithmetic<Acc>::add(x, y); }
};
template <class Acc> struct gk_prod {
  GK__HD gk_prod() {}
  GK__HD gk_prod(gk_op_prod) {}
  GK__HD Acc identity() const { return Acc(1); }
  GK__HD Acc operator()(const Acc &x, const Acc &y) const { return gk__arithmetic<Acc>::mul(x, y); }
};
/* A NaN anywhere makes the result NaN; -0 is less than +0. Identities: the greatest and the least value of the type,
 * which are infinities for float and double. Acc is an integer of up to 64 bits, float or double. */
template <class Acc> struct gk_min {
  GK__HD gk_min() {}
  GK__HD gk_min(gk_op_min) {}
  GK__HD Acc identity() const { return gk__greatest<Acc>(); }
  GK__HD Acc operator()(const Acc &x, const Acc &y) const { return gk__extreme<false>(x, y); }
};
template <class Acc> struct gk_max {
  GK__HD gk_max() {}
  GK__HD gk_max(gk_op_max) {}
  GK__HD Acc identity() const { return gk__least<Acc>(); }
  GK__HD Acc operator()(const Acc &x, const Acc &y) const { return gk__extreme<true>(x, y); }
};
/* The first of equal values; the first NaN before all values. The index of the identity is SIZE_MAX. */
template <class Value> struct gk_argmin {
  GK__HD gk_argmin() {}
  GK__HD gk_argmin(gk_op_argmin) {}
  GK__HD gk_arg<Value> identity() const { return {gk__greatest<Value>(), static_cast<size_t>(-1)}; }
  GK__HD gk_arg<Value> operator()(const gk_arg<Value> &x, const gk_arg<Value> &y) const {
    return gk__extreme<false>(x, y);
  }
};
template <class Value> struct gk_argmax {
  GK__HD gk_argmax() {}
  GK__HD gk_argmax(gk_op_argmax) {}
  GK__HD gk_arg<Value> identity() const { return {gk__least<Value>(), static_cast<size_t>(-1)}; }
  GK__HD gk_arg<Value> operator()(const gk_arg<Value> &x, const gk_arg<Value> &y) const {
    return gk__extreme<true>(x, y);
  }
};

/* ====================================================================================================================
 * 7. WARP: values pass between lanes in registers. The first `lane_count` lanes take part (all 32 by default): all of
 *    them must make the call, and no other lane. Values are combined in the order of the lanes and in a fixed shape:
 *    the operator must be associative but need not commute, and the bits are the same on every run. Tags work in the
 *    values' own type, for half types in float; gk_op_argmin and gk_op_argmax combine values of type gk_arg<...>.
 * ==================================================================================================================*/

/* Acc itself. An argument of this type may be NULL, or a number of another type: Acc is not deduced from it. */
template <class Acc> struct gk__same { typedef Acc type; };

/* Returns the value that lane `from_lane` holds. Acc is any trivially copyable type. */
template <class Acc> GK__D Acc gk_shuffle(const Acc &value, unsigned from_lane, unsigned lane_count = 32);

/* Every lane gets the combination of all values. */
template <class Acc, class Operator> GK__D Acc gk_warp_reduce(Acc value, Operator operation, unsigned lane_count = 32);

/* Lane i gets the combination of lanes 0 ... i (Hillis and Steele, "Data parallel algorithms", 1986); exclusive, that
 * of lanes 0 ... i - 1, and lane 0 the identity. */
template <class Acc, class Operator>
GK__D Acc gk_warp_scan_inclusive(Acc value, Operator operation, unsigned lane_count = 32);
template <class Acc, class Operator>
GK__D Acc gk_warp_scan_exclusive(Acc value, Operator operation, unsigned lane_count = 32);

/* ====================================================================================================================
 * 8. BLOCK: the same for the threads of a block of any shape and size, in the order of gk_thread_rank(). All threads of
 *    the block must make the call; the next call may follow without a barrier. Threads is the size of the block if it
 *    is known at compile time, which makes faster code, or 0. A call takes static shared memory for up to 33 values.
 * ==================================================================================================================*/

/* Every thread gets the combination of all values. */
template <unsigned Threads = 0, class Acc, class Operator> GK__D Acc gk_block_reduce(Acc value, Operator operation);

/* Thread i gets the combination of threads 0 ... i; exclusive, that of threads 0 ... i - 1, and thread 0 the identity.
 * The combination begins with the identity: a sum of -0 alone is +0. Every thread gets the combination of all values in
 * *total, unless total is NULL. */
template <unsigned Threads = 0, class Acc, class Operator>
GK__D Acc gk_block_scan_inclusive(Acc value, Operator operation, typename gk__same<Acc>::type *total = NULL);
template <unsigned Threads = 0, class Acc, class Operator>
GK__D Acc gk_block_scan_exclusive(Acc value, Operator operation, typename gk__same<Acc>::type *total = NULL);

/* The work-efficient exclusive scan of Blelloch ("Prefix sums and their applications", 1990), in place, over n > 0
 * elements in shared memory: 2n operations in 2 log2(n) steps, for any n and any block. Element i is data[gk_bank(i)]:
 * one element of padding for every 32 avoids bank conflicts (Harris, Sengupta and Owens, GPU Gems 3, chapter 39, 2007).
 * data has room for GK_BLELLOCH_SIZE(n) elements. Returns the total to every thread. Begins and ends with a barrier. */
template <class Acc, class Operator> GK__D Acc gk_block_scan_blelloch(Acc *data, unsigned n, Operator operation);
GK__HD constexpr unsigned gk_bank(unsigned i) { return i + i / 32; }
#define GK_BLELLOCH_SIZE(n) (gk_bank(gk__power_of_two(n) - 1) + 1)

/* ====================================================================================================================
 * 9. TILE: the parts of a matmul kernel, for kernels of your own
 *
 *   template <int BM, int BN, int BK, int TM, int TN>
 *   __global__ void my_matmul(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
 *     __shared__ __align__(16) float as[BK][BM + 4], bs[BK][BN + 4];
 *     gk_tile<float, BM, BN, TM, TN> acc;                          // BM x BN accumulators, TM x TN in each thread
 *     const size_t row = BM * (size_t)blockIdx.y, col = BN * (size_t)blockIdx.x;
 *     for (size_t i = 0; i < k; i += BK) {
 *       gk_tile_load_transposed<BM, BK>(as, a, k, row, i, m, k);   // as[i][row]: zeros outside of A
 *       gk_tile_load<BK, BN>(bs, b, n, i, col, k, n);              // bs[i][col]
 *       __syncthreads();
 *       gk_tile_multiply(acc, as, bs, BK);
 *       __syncthreads();
 *     }
 *     gk_tile_store(acc, c, n, row, col, m, n, 1.0f, 0.0f);
 *   }
 *
 * launched with exactly gk_tile<...>::thread_count threads in a block of any shape, and the grid
 * gk_tile<...>::grid_dim(m, n). Accumulators are float or double. Shared tiles are aligned to 16 bytes: __align__(16).
 * ==================================================================================================================*/

/* TileRows x TileCols accumulators, distributed over a block: each thread has ThreadRows x ThreadCols of them. A warp
 * is 4 x 8 threads. A thread's rows and columns are grouped in vectors of up to 16 bytes, so it reads its operands from
 * shared memory by vector loads. The vectors of neighbouring threads alternate, so these loads have no bank conflicts.
 */
template <class Acc, int TileRows, int TileCols, int ThreadRows, int ThreadCols> struct gk_tile {
  static_assert(std::is_same<Acc, float>::value || std::is_same<Acc, double>::value,
                "gk_tile: accumulators are float or double; half types are loaded into tiles of float");
  static const int thread_count = TileRows / ThreadRows * (TileCols / ThreadCols);
  /* Elements of a vector: at most, of A, and of B. */
  static const int vector_limit = 16 / static_cast<int>(sizeof(Acc));
  static const int vector_m = ThreadRows < vector_limit ? ThreadRows : vector_limit,
                   vector_n = ThreadCols < vector_limit ? ThreadCols : vector_limit;
  static_assert(TileRows % (4 * ThreadRows) == 0 && TileCols % (8 * ThreadCols) == 0,
                "gk_tile: a warp covers 4 ThreadRows rows and 8 ThreadCols columns");
  static_assert(ThreadRows % vector_m == 0 && ThreadCols % vector_n == 0 && !(vector_m & (vector_m - 1)) &&
                    !(vector_n & (vector_n - 1)),
                "gk_tile: ThreadRows and ThreadCols must be whole vectors of 16 bytes, or a power of two below one");

  Acc value[ThreadRows][ThreadCols]; /* value[i][j] is the accumulator at (row_idx(i), col_idx(j)) of the tile */
  int first_row, first_col;          /* of this thread */

  /* One block for each tile of an m x n matrix: x along its columns, y along its rows. */
  static dim3 grid_dim(size_t m, size_t n) {
    return dim3(static_cast<unsigned>(gk_ceil_div(n, static_cast<size_t>(TileCols))),
                static_cast<unsigned>(gk_ceil_div(m, static_cast<size_t>(TileRows))));
  }
  GK__D gk_tile(); /* all accumulators are zero */
  GK__D void clear();
  GK__D int row_idx(int i) const { return first_row + i / vector_m * (4 * vector_m) + i % vector_m; }
  GK__D int col_idx(int j) const { return first_col + j / vector_n * (8 * vector_n) + j % vector_n; }
};

/* shared_tile[r][c] = from[row0 + r][col0 + c] for r < LoadRows, c < LoadCols; transposed, shared_tile[c][r]. from is a
 * row_count x col_count matrix with leading_dim elements from row to row; outside of it the tile gets zeros. All
 * threads of the block share the work. A barrier must follow before the tile is read. */
template <int LoadRows, int LoadCols, class Stored, int Rows, int Pitch, class Item>
GK__D void gk_tile_load(Stored (&shared_tile)[Rows][Pitch], const Item *from, size_t leading_dim, size_t row0,
                        size_t col0, size_t row_count, size_t col_count);
template <int LoadRows, int LoadCols, class Stored, int Rows, int Pitch, class Item>
GK__D void gk_tile_load_transposed(Stored (&shared_tile)[Rows][Pitch], const Item *from, size_t leading_dim,
                                   size_t row0, size_t col0, size_t row_count, size_t col_count);

/* acc += the product of the first `depth` rows of a_tile (a_tile[k][row]) and b_tile (b_tile[k][col]), in the order of
 * k. */
template <class Acc, int TileRows, int TileCols, int ThreadRows, int ThreadCols, int TileDepth, int PitchA, int PitchB>
GK__D void gk_tile_multiply(gk_tile<Acc, TileRows, TileCols, ThreadRows, ThreadCols> &acc,
                            const Acc (&a_tile)[TileDepth][PitchA], const Acc (&b_tile)[TileDepth][PitchB], int depth);

/* The same with a_tile[row][k], as gk_tile_load loads it and textbooks have it. A pitch that is not a multiple of 32
 * floats avoids bank conflicts; the transposed form takes fewer loads. */
template <class Acc, int TileRows, int TileCols, int ThreadRows, int ThreadCols, int Rows, int PitchA, int TileDepth,
          int PitchB>
GK__D void gk_tile_multiply_rows(gk_tile<Acc, TileRows, TileCols, ThreadRows, ThreadCols> &acc,
                                 const Acc (&a_tile)[Rows][PitchA], const Acc (&b_tile)[TileDepth][PitchB], int depth);

/* c[row0 + i][col0 + j] = alpha acc[i][j] + beta c[row0 + i][col0 + j], within m x n. With beta 0, c is not read. */
template <class Acc, int TileRows, int TileCols, int ThreadRows, int ThreadCols, class Out>
GK__D void gk_tile_store(const gk_tile<Acc, TileRows, TileCols, ThreadRows, ThreadCols> &acc, Out *c, size_t ldc,
                         size_t row0, size_t col0, size_t m, size_t n, typename gk__same<Acc>::type alpha,
                         typename gk__same<Acc>::type beta);

/* ====================================================================================================================
 * 10. ARRAY CALLS: reduce, scan, select and matmul of device memory. The calls launch work on the stream. Only
 *     gk_reduce_value, gk_print and gk_print_matrix wait for it. With scratch NULL calls allocate and free what they
 *     need on the stream (see Scratch in section 3). Elements are trivially copyable, and have a default constructor
 *     except in gk_copy and gk_fill.
 * ==================================================================================================================*/

/* --- Reduce ------------------------------------------------------------------------------------------------------*/

/* *output = input[0] op input[1] op ... op input[n-1]. input has n elements, output one. n = 0 gives the identity. The
 * operator must be associative and commutative: the order is fixed, but it is not that of the indices. The output of a
 * reduction, of rows and columns as well, must not overlap its input, which is not checked.
 *
 *   operator     input           works in           output (any type that the working type converts to)
 *   sum, prod    i8, i16, u8...  64 bits            a 64-bit integer
 *                f16, bf16       float              float
 *                others          their type         their type; integers wrap
 *   min, max     f16, bf16       float              the type, exactly
 *                others          their type         the type; a NaN anywhere gives NaN
 *   argmin/max   any             value and index    gk_arg<value>; the first of equals, as -0 and +0 are; the first
 *                                                   NaN before all
 *   a functor    any             its Acc            any
 *
 * Elements that are gk_args keep their indices, so argmin can reduce the results of earlier calls. A wide output does
 * not widen a sum or product: for a sum of ints that may exceed 32 bits, use the functor gk_sum<int64_t>(). A sum
 * begins with +0: that of -0 alone is +0. */
template <class Input, class Output, class Operator>
GK__NODISCARD cudaError_t gk_reduce(const Input &input, Output &&output, size_t n, Operator operation,
                                    cudaStream_t stream = 0, const gk_scratch *scratch = NULL);

/* gk_reduce with the operator in the name: gk_reduce_sum(input, output, n, stream = 0, scratch = NULL), and prod, min,
 * max, argmin, argmax. */
#define GK__REDUCE_BY(name)                                                                                            \
  template <class Input, class Output>                                                                                 \
  GK__NODISCARD cudaError_t gk_reduce_##name(const Input &input, Output &&output, size_t n, cudaStream_t stream = 0,   \
                                             const gk_scratch *scratch = NULL) {                                       \
    return gk_reduce(input, output, n, gk_op_##name(), stream, scratch);                                               \
  }
GK__REDUCE_BY(sum)
GK__REDUCE_BY(prod)
GK__REDUCE_BY(min)
GK__REDUCE_BY(max)
GK__REDUCE_BY(argmin)
GK__REDUCE_BY(argmax)
#undef GK__REDUCE_BY

/* A computed input stands for an array of Items whose element i is f(i), where f is a functor or lambda of device code.
 * Reduce, scan, gk_select and gk_copy take it, but not gk_dot, nor gk_select_flagged for its flags; for rows and
 * columns i is row * leading_dim + col. The elements are not stored in memory, and f may be called more than once for
 * an i. f may read the output of gk_copy, if f(i) reads only element i of it.
 *
 *   const float *a = x, *b = y; // of gk_arrays
 *   const auto distance = gk_computed<float>([=] __device__(size_t i) { return fabsf(a[i] - b[i]); });
 *   GK_CHECK(gk_reduce_value(distance, &largest, n, gk_op_max()));
 *
 * (Lambdas of device code need nvcc --extended-lambda.) */
template <class Item, class Func> struct gk__computed;
template <class Item, class Func> gk__computed<Item, Func> gk_computed(Func f);

/* *output = x[0] y[0] + ... + x[n-1] y[n-1]. Each product is rounded, for half types to float; integers of less than 32
 * bits are multiplied in 64. The products are summed as by gk_reduce_sum. x and y have elements of the same type. */
template <class InputX, class InputY, class Output>
GK__NODISCARD cudaError_t gk_dot(const InputX &x, const InputY &y, Output &&output, size_t n, cudaStream_t stream = 0,
                                 const gk_scratch *scratch = NULL);

/* gk_reduce with its result in host memory: writes it to *value, and waits for the stream. It cannot be captured. Even
 * with a scratch it allocates memory for the result and frees it, and CUDA may wait for the device then. Value: as the
 * output above, so a gk_arg<Item> for argmin and argmax.
 *
 *   float largest;
 *   GK_CHECK(gk_reduce_value(x, &largest, n, gk_op_max())); */
template <class Input, class Value, class Operator>
GK__NODISCARD cudaError_t gk_reduce_value(const Input &input, Value *value, size_t n, Operator operation,
                                          cudaStream_t stream = 0, const gk_scratch *scratch = NULL);
template <class Input, class Item, class Operator>
cudaError_t gk_reduce_value(const Input &, const gk_array<Item> &, size_t, Operator, cudaStream_t = 0,
                            const gk_scratch * = NULL) {
  static_assert(sizeof(Item) == 0, "gk_reduce_value: value is in host memory; gk_reduce stores to device memory");
  return cudaErrorInvalidValue;
}

/* --- Rows and columns --------------------------------------------------------------------------------------------*/

/* The reductions of the rows, or of the columns, of a row-major matrix of row_count x col_count elements with
 * leading_dim elements from row to row (0: col_count). Operators and types are those of gk_reduce; the index of an
 * argmin or argmax is the column in the row, or the row in the column.
 *
 *   gk_reduce_rows      output[row] = input[row][0] op ... op input[row][col_count-1], for every row
 *   gk_reduce_columns   output[col] = input[0][col] op ... op input[row_count-1][col], for every column; values of up
 *                       to 188 bytes */
template <class Input, class Output, class Operator>
GK__NODISCARD cudaError_t gk_reduce_rows(const Input &input, Output &&output, size_t row_count, size_t col_count,
                                         size_t leading_dim, Operator operation, cudaStream_t stream = 0,
                                         const gk_scratch *scratch = NULL);
template <class Input, class Output, class Operator>
GK__NODISCARD cudaError_t gk_reduce_columns(const Input &input, Output &&output, size_t row_count, size_t col_count,
                                            size_t leading_dim, Operator operation, cudaStream_t stream = 0,
                                            const gk_scratch *scratch = NULL);

/* --- Scan --------------------------------------------------------------------------------------------------------*/

/* inclusive       output[i] = input[0] op ... op input[i]
 * exclusive       output[i] = input[0] op ... op input[i-1]; output[0] is the identity
 * exclusive_init  output[i] = init op input[0] op ... op input[i-1]; init is converted to the working type
 *
 * input and output have n elements; output may be input if the elements have the same size, but may not overlap it
 * otherwise, which is not checked. n = 0 does nothing. The operator must be associative but need not commute. A tag
 * such as gk_op_sum() works in the type of the output, for f16 and bf16 in float, to which elements are converted
 * before they are combined: give a wider output where sums outgrow the input. A functor works in its Acc. Acc and
 * an element have at most 176 bytes each; if elements of input and output differ in size, 176 bytes together. argmin
 * and argmax need an output of gk_arg<value>. */
template <class Input, class Output, class Operator>
GK__NODISCARD cudaError_t gk_scan_inclusive(const Input &input, Output &&output, size_t n, Operator operation,
                                            cudaStream_t stream = 0, const gk_scratch *scratch = NULL);
template <class Input, class Output, class Operator>
GK__NODISCARD cudaError_t gk_scan_exclusive(const Input &input, Output &&output, size_t n, Operator operation,
                                            cudaStream_t stream = 0, const gk_scratch *scratch = NULL);
template <class Input, class Output, class Operator, class Init>
GK__NODISCARD cudaError_t gk_scan_exclusive_init(const Input &input, Output &&output, size_t n, Operator operation,
                                                 Init init, cudaStream_t stream = 0, const gk_scratch *scratch = NULL);
/* With gk_op_sum(). */
template <class Input, class Output>
GK__NODISCARD cudaError_t gk_scan_inclusive_sum(const Input &input, Output &&output, size_t n, cudaStream_t stream = 0,
                                                const gk_scratch *scratch = NULL) {
  return gk_scan_inclusive(input, output, n, gk_op_sum(), stream, scratch);
}
template <class Input, class Output>
GK__NODISCARD cudaError_t gk_scan_exclusive_sum(const Input &input, Output &&output, size_t n, cudaStream_t stream = 0,
                                                const gk_scratch *scratch = NULL) {
  return gk_scan_exclusive(input, output, n, gk_op_sum(), stream, scratch);
}

/* The scans of all rows of a row-major matrix of row_count x col_count elements with leading_dim elements from row to
 * row, in input and output alike (0: col_count). Each row is scanned on its own. The rest is as above. */
template <class Input, class Output, class Operator>
GK__NODISCARD cudaError_t gk_scan_rows_inclusive(const Input &input, Output &&output, size_t row_count,
                                                 size_t col_count, size_t leading_dim, Operator operation,
                                                 cudaStream_t stream = 0, const gk_scratch *scratch = NULL);
template <class Input, class Output, class Operator>
GK__NODISCARD cudaError_t gk_scan_rows_exclusive(const Input &input, Output &&output, size_t row_count,
                                                 size_t col_count, size_t leading_dim, Operator operation,
                                                 cudaStream_t stream = 0, const gk_scratch *scratch = NULL);

/* --- Select ------------------------------------------------------------------------------------------------------*/

/* output[0], output[1] ... = the elements of input for which keep(element) is true, in their order. *kept_count = how
 * many they are: an integer in device memory. keep is a functor or lambda of device code. output has room for all that
 * are kept, which is not checked. output may be the same pointer as input, if the elements have the same size and keep
 * looks at its argument alone. Apart from that, input and output may not overlap. Elements have at most 176 bytes.
 * *kept_count must be wide enough, which is not checked.
 *
 *   GK_CHECK(gk_select(x, positive, kept_count, n, [] __device__(float value) { return value > 0; }));
 *
 * (See gk_computed for lambdas.) A computed input selects indices: with gk_computed<size_t>(f), where f(i) is i, keep
 * gets the index. Elements are converted to the type of output. With gk_arrays, output.copy_to(host, kept_count.get(0))
 * copies the kept elements to the host. */
template <class Input, class Output, class Count, class Predicate>
GK__NODISCARD cudaError_t gk_select(const Input &input, Output &&output, Count &&kept_count, size_t n, Predicate keep,
                                    cudaStream_t stream = 0, const gk_scratch *scratch = NULL);
/* The same for the elements whose flags are not 0. item_flags has n elements of any integer type, and does not overlap
 * output, which may be input. */
template <class Input, class Flags, class Output, class Count>
GK__NODISCARD cudaError_t gk_select_flagged(const Input &input, const Flags &item_flags, Output &&output,
                                            Count &&kept_count, size_t n, cudaStream_t stream = 0,
                                            const gk_scratch *scratch = NULL);

/* --- Data: copy, fill, random numbers, print ---------------------------------------------------------------------*/

/* output[i] = input[i] for every i < n: a copy, a conversion, or with a computed input any function of i. output may be
 * input if the elements have the same size, but may not overlap it otherwise, which is not checked. Half types are
 * converted from float: doubles and 64-bit integers are rounded to float first. */
template <class Input, class Output>
GK__NODISCARD cudaError_t gk_copy(const Input &input, Output &&output, size_t n, cudaStream_t stream = 0);
/* gk_fill: output[i] = value, converted to the type of output. gk_iota: output[i] = begin + i * increment. All three
 * are converted to that type first, for half types to float; the product and the sum are rounded one after the other.
 */
template <class Output, class Value>
GK__NODISCARD cudaError_t gk_fill(Output &&output, size_t n, Value value, cudaStream_t stream = 0);
template <class Output, class Begin, class Increment>
GK__NODISCARD cudaError_t gk_iota(Output &&output, size_t n, Begin begin, Increment increment, cudaStream_t stream = 0);
/* Random numbers, uniform in [0, 1) or normal with mean 0 and variance 1, for arrays of float, double, __half and
 * __nv_bfloat16. Half types are rounded to nearest, so they are uniform in [0, 1]. Number i depends on the seed and on
 * i alone, and has the same bits on every GPU and on the CPU stand-in. (Philox 4x32-10 of Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", 2011; normal numbers by Wichura's inverse of the distribution, AS 241, 1988.) */
template <class Output>
GK__NODISCARD cudaError_t gk_random_uniform(Output &&output, size_t n, uint64_t seed, cudaStream_t stream = 0);
template <class Output>
GK__NODISCARD cudaError_t gk_random_normal(Output &&output, size_t n, uint64_t seed, cudaStream_t stream = 0);
/* Prints an array, or a row-major matrix (leading_dim 0: col_count), to stdout: of more than 20 rows or columns the
 * first and the last ten. Elements are integers, which char and bool are, too, or floating-point numbers or half types,
 * of which it prints five significant digits. Waits for the stream. */
template <class Input> GK__NODISCARD cudaError_t gk_print(const Input &input, size_t n, cudaStream_t stream = 0);
template <class Input>
GK__NODISCARD cudaError_t gk_print_matrix(const Input &input, size_t row_count, size_t col_count,
                                          size_t leading_dim = 0, cudaStream_t stream = 0);

/* --- Matmul ------------------------------------------------------------------------------------------------------*/

/* C = A B, or C = alpha A B + beta C. Dense row-major device memory: A is m x k, B is k x n, C is m x n and must not
 * overlap A or B. Elements are float, double, __half or __nv_bfloat16. Half types are summed in float by tensor cores,
 * and C may be float; products of float and double are strict (gk_precision). With beta 0, C is never read; with alpha
 * 0, A and B are not. k = 0 gives beta C. Of overlaps only a C that begins where A or B does is found. */
template <class InputA, class InputB, class Output>
GK__NODISCARD cudaError_t gk_matmul(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k,
                                    cudaStream_t stream = 0);
template <class InputA, class InputB, class Output>
GK__NODISCARD cudaError_t gk_matmul_scaled(double alpha, const InputA &a, const InputB &b, double beta, Output &&c,
                                           size_t m, size_t n, size_t k, cudaStream_t stream = 0);

/* The same with all options: transposes, leading dimensions, batches, precision, scratch. NULL: the defaults. op(A) is
 * m x k, and op(B) is k x n.
 *
 * Bounds of an element's error, in units of 2^-24 (doubles: 2^-53) of |A| |B|, the sum of its products' magnitudes:
 *
 *   strict                 k             one rounding for each fused multiply-add; split-K makes it less
 *   half types, tf32       k + 8         plus the rounding of A and B to tf32: up to 2^-10 of each product
 *   emulated fp32          k / 32 + 16   partial sums leave the tensor cores before truncation adds up
 *
 * plus the rounding to C's type. Random data has the square root of that, or less (tests/matmul/test_tensor.cu).
 * Emulated fp32 needs magnitudes from 2^-60 up to below 2^((126 - log2 k) / 2), or zeros. For all other values, NaN and
 * infinities included, the strict kernel computes the product, with the bits of GK_PRECISION_STRICT. The device finds
 * out which of the two is needed, at each replay of a graph, too; such a product takes at least as long as a strict
 * one. In a batch it decides for as many products at once as the work area has room for. */
template <class InputA, class InputB, class Output>
GK__NODISCARD cudaError_t gk_matmul_ex(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k,
                                       const gk_matmul_opts *opts, cudaStream_t stream = 0);
/* The same for one precision, gk_matmul_ex<GK_PRECISION_TF32>(a, b, ...): only its kernels and the strict ones are
 * compiled. The precision of the options is that one, or GK_PRECISION_DEFAULT; any other is an error. */
template <gk_precision Precision, class InputA, class InputB, class Output>
GK__NODISCARD cudaError_t gk_matmul_ex(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k,
                                       const gk_matmul_opts *opts, cudaStream_t stream = 0);

/* C = func(alpha A B + beta C, row, col), in the launch that computes the product: a bias, an activation, any functor
 * or lambda of device code with Acc operator()(Acc value, size_t row, size_t col) const, where Acc is float, or double
 * for products of doubles. func is called once for each element of C, with the value before it is rounded to C's type.
 * row and col count within the product; in a batch, func cannot tell which product that is. Kernels are compiled for
 * one precision.
 *
 *   const auto relu = [=] __device__(float value, size_t, size_t col) { return fmaxf(value + bias[col], 0.0f); };
 *   GK_CHECK(gk_matmul_epilogue(a, b, c, m, n, k, relu)); */
template <gk_precision Precision = GK_PRECISION_DEFAULT, class InputA, class InputB, class Output, class Func>
GK__NODISCARD cudaError_t gk_matmul_epilogue(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k,
                                             Func func, const gk_matmul_opts *opts = NULL, cudaStream_t stream = 0);

/* Which path gk_matmul_ex would take on the current device, and how much memory it would need. Nothing is launched. Of
 * the pointers only the alignment matters. Calls that gk_matmul_ex refuses are refused here, too, but not for their
 * scratch. */
template <class InputA, class InputB, class Output>
GK__NODISCARD cudaError_t gk_matmul_plan(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k,
                                         const gk_matmul_opts *opts, gk_matmul_path *path);

/* ====================================================================================================================
 * 11. HOST ARRAYS in, host arrays out: for a first try, a test, an assignment. Each call allocates device memory,
 *     copies, computes on stream 0, copies back, frees, and waits for all of it. Operators and types are those of
 *     section 10. An output may be an input, or overlap it. The outputs are valid only after success.
 * ==================================================================================================================*/

template <class Item, class Out, class Operator>
GK__NODISCARD cudaError_t gk_host_reduce(const Item *input, Out *output, size_t n, Operator operation);
template <class Item, class Out, class Operator>
GK__NODISCARD cudaError_t gk_host_scan_inclusive(const Item *input, Out *output, size_t n, Operator operation);
template <class Item, class Out, class Operator>
GK__NODISCARD cudaError_t gk_host_scan_exclusive(const Item *input, Out *output, size_t n, Operator operation);
template <class Item, class Out>
GK__NODISCARD cudaError_t gk_host_matmul(const Item *a, const Item *b, Out *c, size_t m, size_t n, size_t k);

/* ====================================================================================================================
 * 12. RANKS: reduce, scan and matmul over the ranks of an NCCL communicator, if GPUKIT_NCCL is defined. Every rank, a
 *     process or a thread with a GPU of its own, makes the same call with its own piece of the data, which may be
 *     empty:
 *
 *       gk_dist_piece mine = gk_dist_split(n, ranks, rank);                  // or any other pieces, in the same order
 *       GK_CHECK(gk_dist_scan_inclusive(x, y, mine.item_count, gk_op_sum(), comm, stream, &scratch));
 *       GK_CHECK(gk_dist_wait(comm, stream, 10000));                         // ms; an error if a rank has died
 *
 *     The calls put their work and NCCL's on the stream, and do not wait for it. Only the first one waits on the host
 *     until NCCL has connected all ranks, and with GPUKIT_DEBUG=1 every call waits for the other ranks. They need the
 *     communicator's device to be the current one, a blocking communicator, and no ncclGroupStart around them. Section
 *     21 says what they cost.
 * ==================================================================================================================*/

#ifdef GPUKIT_NCCL

/* The piece of n elements that belongs to rank, if n is split as evenly as possible: the first n % ranks pieces have
 * one element more. */
struct gk_dist_piece {
  size_t first_index, item_count;
};
inline gk_dist_piece gk_dist_split(size_t n, int ranks, int rank);

/* *output = the reduction of all ranks' pieces, on every rank; otherwise as gk_reduce. n is this rank's number of
 * elements. argmin and argmax count indices through all pieces, in the order of ranks. The values of the pieces are
 * combined in that order: the bits of a floating-point sum depend on how many ranks there are and which elements each
 * has, and on nothing else; with one rank they are those of gk_reduce. Any scratch is large enough for the tags of
 * section 6 and up to 682 ranks; where it is too small, the error names the bytes needed. */
template <class Input, class Output, class Operator>
GK__NODISCARD cudaError_t gk_dist_reduce(const Input &input, Output &&output, size_t n, Operator operation,
                                         ncclComm_t comm, cudaStream_t stream = 0, const gk_scratch *scratch = NULL);

/* As gk_scan_inclusive and gk_scan_exclusive over all ranks' pieces in the order of ranks. Each rank gets the n results
 * for its own piece. An operator of your own need not commute. argmin and argmax count indices through all pieces. The
 * elements are read twice and the results written once. Bits: as gk_dist_reduce. */
template <class Input, class Output, class Operator>
GK__NODISCARD cudaError_t gk_dist_scan_inclusive(const Input &input, Output &&output, size_t n, Operator operation,
                                                 ncclComm_t comm, cudaStream_t stream = 0,
                                                 const gk_scratch *scratch = NULL);
template <class Input, class Output, class Operator>
GK__NODISCARD cudaError_t gk_dist_scan_exclusive(const Input &input, Output &&output, size_t n, Operator operation,
                                                 ncclComm_t comm, cudaStream_t stream = 0,
                                                 const gk_scratch *scratch = NULL);

struct gk_dist_matmul_opts { /* zeros are the defaults */
  gk_matmul_opts matmul;     /* ldb is that of this rank's rows of B; trans_b must be 0, batch 0 or 1. max_blocks
                              * leaves SMs to NCCL. With max_blocks or a scratch, products follow one another */
  const size_t *rank_rows;   /* host array: the number of rows of B on each rank; NULL: gk_dist_split(k, ranks, rank) */
  size_t columns;            /* of B in a part; 0: chosen. The same on every rank */
  cudaStream_t comm_stream;  /* for the transfer of B, of a high priority; 0: one is created for the call */
  cudaStream_t second_stream; /* for every other product; 0: one is created for the call */
  void *buffer;               /* for two parts of B, aligned to 16 bytes; NULL: allocated and freed on the stream */
  size_t buffer_bytes;
};
/* The bytes that a buffer needs for B of k x n elements; columns as in the options. 0 if that overflows. */
inline size_t gk_dist_matmul_buffer_bytes(size_t n, size_t k, size_t item_bytes, size_t columns = 0);

/* C = alpha A B + beta C, where each rank has m rows of A and of C (any number, 0 included) and some rows of B, k x n
 * in all; row-major device memory. n, k, rank_rows and columns are the same on every rank. Each element of C is
 * computed as gk_matmul_ex does for the rank's m, the columns of a part, and k: where its bits do not depend on m and
 * n, those of C depend neither on the number of ranks nor on which rank has which rows. */
template <class InputA, class InputB, class Output>
GK__NODISCARD cudaError_t gk_dist_matmul(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k,
                                         ncclComm_t comm, cudaStream_t stream = 0,
                                         const gk_dist_matmul_opts *opts = NULL);

/* Waits on the host until the stream is done. If another rank has died, failed or never called, the stream would wait
 * forever. Then this call returns an error: cudaErrorTimeout after timeout_ms milliseconds, or cudaErrorUnknown as soon
 * as NCCL itself has noticed. With abort_comm it also aborts the communicator, which ends the wait of the stream's
 * work; the communicator may not be used after that, nor be destroyed. */
GK__NODISCARD inline cudaError_t gk_dist_wait(ncclComm_t comm, cudaStream_t stream, unsigned timeout_ms,
                                              bool abort_comm = false);

#endif /* GPUKIT_NCCL */

} // GK__NAMESPACE(KERNELS)
#endif /* GK__KERNELS */

/* ####################################################################################################################
 * ##                                                                                                                ##
 * ##   Nothing below is needed to use gpukit: this is how it works.                                                 ##
 * ##                                                                                                                ##
 * ###################################################################################################################*/

/* ====================================================================================================================
 * 13. PTX: instructions that CUDA C++ has no function for.
 *
 * Each has a wrapper, which is named after the instruction: gk__ptx_ and its name in PTX, shortened, with _ for every
 * dot. A wrapper does nothing else, but gk__ptx_mbarrier_wait_parity is a loop. Most exist only when code is compiled
 * for an architecture that has the instruction, so their callers have another path for older ones and for the CPU
 * stand-in. The others have a replacement there, which may do nothing. Instructions that read or write memory, or order
 * accesses, are volatile and have the "memory" clobber: the compiler neither removes them nor moves accesses past them.
 * Two have no clobber: a prefetch of data needs none, and wgmma stands between wgmma.fence and wgmma.commit_group,
 * which have one.
 *
 * Uses nothing from above.
 * ==================================================================================================================*/

#ifdef GK__KERNELS
GK__NAMESPACE(KERNELS) {

#ifdef __CUDA_ARCH__
/* Adds 1 to a counter in global memory and returns its value before. Called by lane 0 only. The atomic is asynchronous:
 * its latency is paid at the first use of the result. That needs an operand which the compiler does not know to be the
 * same in all lanes, so it is computed from the lane's number. For a constant the compiler would combine the atomics of
 * a warp into one and distribute its result, which waits for it. */
GK__D unsigned long long gk__ptx_atom_add_relaxed_gpu_u64(unsigned long long *address) {
  unsigned long long before;
  asm volatile("{\n\t.reg .b32 lane;\n\t.reg .b64 one;\n\tmov.u32 lane, %%laneid;\n\tcvt.u64.u32 one, lane;\n\t"
               "add.u64 one, one, 1;\n\tatom.relaxed.gpu.global.add.u64 %0, [%1], one;\n\t}"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
  return before;
}
/* The lower 32 bits of the 64-bit number high:low shifted right by bits % 32. The compiler cannot optimise through it,
 * as it can through __funnelshift_r: it would move the shift behind the branches of gk__align_vectors, and each branch
 * would copy all words. */
GK__D unsigned gk__ptx_shf_r_wrap_b32(unsigned low, unsigned high, unsigned bits) {
  unsigned result;
  asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(bits));
  return result;
}
/* A barrier of Threads threads of a block, by its number; 0 is that of __syncthreads(). */
template <int Threads> GK__D void gk__ptx_bar_sync(unsigned barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(Threads) : "memory");
}
GK__D void gk__ptx_prefetch_global_l2(const void *address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

/* An address in shared memory, as the instructions below take it. */
GK__D unsigned gk__shared_address(const void *shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
/* Loads in program order. For plain loads the compiler would move many together, for which registers do not suffice,
 * and reorder the multiply-adds between them. With ld.volatile ptxas keeps the order, too. */
GK__D void gk__ptx_ld_shared_f64(double *x, unsigned address) {
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(*x) : "r"(address) : "memory");
}
GK__D void gk__ptx_ld_shared_v4_f32(float (&x)[4], unsigned address) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "r"(address)
               : "memory");
}
GK__D void gk__ptx_ld_volatile_shared_v4_f32(float (&x)[4], unsigned address) {
  asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "r"(address)
               : "memory");
}
GK__D void gk__ptx_st_shared_v4_f32(unsigned address, float a, float b, float c, float d) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
GK__D void gk__ptx_ld_shared_v2_b32(unsigned *x, unsigned *y, unsigned address) {
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(*x), "=r"(*y) : "r"(address) : "memory");
}
GK__D void gk__ptx_st_shared_b16(unsigned address, unsigned short x) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(x) : "memory");
}
GK__D void gk__ptx_ld_global_f32(float *x, uintptr_t address) {
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(*x) : "l"(address) : "memory");
}
/* c += a b, in program order, so that the order of the operands in registers is the written one. */
GK__D void gk__ptx_fma_rn_f32(float *c, float a, float b) {
  asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(*c) : "f"(a), "f"(b));
}

/* Matrix fragments, as the PTX ISA describes them. ldmatrix loads four matrices of 8 x 8 elements of 16 bits; with
 * .trans their transposes. mma.sync adds the product of 16 rows of A and 8 columns of B to c, in which a thread has
 * four elements. (m8n8k4 of doubles has 8 rows and two elements.) */
GK__D void gk__ptx_ldmatrix_x4(unsigned (&dest)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(dest[0]), "=r"(dest[1]), "=r"(dest[2]), "=r"(dest[3])
               : "r"(address)
               : "memory");
}
GK__D void gk__ptx_ldmatrix_x4_trans(unsigned (&dest)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(dest[0]), "=r"(dest[1]), "=r"(dest[2]), "=r"(dest[3])
               : "r"(address)
               : "memory");
}
GK__D void gk__ptx_mma_m16n8k8_f16(float (&c)[4], unsigned a0, unsigned a1, unsigned b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(b));
}
#else
GK__D unsigned long long gk__ptx_atom_add_relaxed_gpu_u64(unsigned long long *address) {
  return atomicAdd(address, 1ull);
}
GK__D unsigned gk__ptx_shf_r_wrap_b32(unsigned low, unsigned high, unsigned bits) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> bits);
}
GK__D void gk__ptx_prefetch_global_l2(const void *) {}
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define GK__HAS_CP_ASYNC 1
#define GK__PTX_MMA(name, shape, types)                                                                                \
  GK__D void gk__ptx_mma_##name(float(&c)[4], const unsigned(&a)[4], unsigned b0, unsigned b1) {                       \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." types ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
                 "{%0, %1, %2, %3};"                                                                                   \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                      \
  }
GK__PTX_MMA(m16n8k16_f16, "m16n8k16", "f16.f16")
GK__PTX_MMA(m16n8k16_bf16, "m16n8k16", "bf16.bf16")
GK__PTX_MMA(m16n8k8_tf32, "m16n8k8", "tf32.tf32")
#undef GK__PTX_MMA
GK__D void gk__ptx_mma_m8n8k4_f64(double *c, double a, double b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a), "d"(b));
}

/* cp.async: asynchronous copies from global to shared memory, which a thread waits for in groups. The first form copies
 * 16 bytes, of which only the first `valid` are read; the rest become zeros. .L2::128B: the rest of the 128-byte line
 * is fetched to L2, too. The last form copies 4, 8 or 16 bytes under a predicate: if `condition` is not 0. */
GK__D void gk__ptx_cp_async_cg_16(unsigned dest, const void *source, unsigned valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dest), "l"(source), "r"(valid) : "memory");
}
GK__D void gk__ptx_cp_async_cg_l2_128b_16(unsigned dest, const void *source) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(dest), "l"(source) : "memory");
}
template <int Bytes> GK__D void gk__ptx_cp_async_if(unsigned condition, unsigned dest, const void *source) {
  if (Bytes == 16)
    asm volatile("{.reg .pred p; setp.ne.u32 p, %0, 0; @p cp.async.cg.shared.global [%1], [%2], 16;}" ::"r"(condition),
                 "r"(dest), "l"(source)
                 : "memory");
  else /* Bytes is never below 4, but without optimisation ptxas sees the dead instances for smaller types, too. */
    asm volatile("{.reg .pred p; setp.ne.u32 p, %0, 0; @p cp.async.ca.shared.global [%1], [%2], %3;}" ::"r"(condition),
                 "r"(dest), "l"(source), "n"(Bytes < 4 ? 4 : Bytes)
                 : "memory");
}
GK__D void gk__ptx_cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Waits until at most the last Pending groups of this thread are incomplete. */
template <int Pending> GK__D void gk__ptx_cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
#else
#define GK__HAS_CP_ASYNC 0
GK__D void gk__ptx_cp_async_commit_group() {} /* a copy is complete when gk__copy_async returns */
template <int Pending> GK__D void gk__ptx_cp_async_wait_group() {}
#endif

/* 128-bit accesses to global memory, atomic as a whole (PTX ISA 8.3, sm_70). The address must be a multiple of 16.
 *
 * If some of the loaded words are not used, as padding is not, ptxas (CUDA 13.0) replaces the load by narrower ones of
 * the others, which are not atomic together. gk__ptx_use_b128 uses all words: it passes them to a store whose predicate
 * is always false, because the address is not 0. The store waits for the load, so other loads are issued before it. */
#if defined(__CUDA_ARCH__) && CUDART_VERSION >= 12030
#define GK__PTX_B128 1
GK__D void gk__ptx_st_relaxed_gpu_b128(void *address, const unsigned *word) {
  asm volatile("{\n\t.reg .b64 lo, hi;\n\t.reg .b128 all;\n\t"
               "mov.b64 lo, {%1, %2};\n\tmov.b64 hi, {%3, %4};\n\tmov.b128 all, {lo, hi};\n\t"
               "st.relaxed.gpu.b128 [%0], all;\n\t}" ::"l"(address),
               "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
               : "memory");
}
GK__D void gk__ptx_ld_relaxed_gpu_b128(const void *address, unsigned *word) {
  asm volatile("{\n\t.reg .b64 lo, hi;\n\t.reg .b128 all;\n\t"
               "ld.relaxed.gpu.b128 all, [%4];\n\t"
               "mov.b128 {lo, hi}, all;\n\tmov.b64 {%0, %1}, lo;\n\tmov.b64 {%2, %3}, hi;\n\t}"
               : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
               : "l"(address)
               : "memory");
}
GK__D void gk__ptx_use_b128(const void *address, const unsigned *word) {
  asm volatile("{\n\t.reg .pred never;\n\tsetp.eq.u64 never, %0, 0;\n\t"
               "@never st.v4.b32 [%0], {%1, %2, %3, %4};\n\t}" ::"l"(address),
               "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
               : "memory");
}
#else
#define GK__PTX_B128 0
#endif

/* The result is NaN if x or y is; -0 is less than +0. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
GK__D float gk__ptx_min_nan_f32(float x, float y) {
  float z;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
GK__D float gk__ptx_max_nan_f32(float x, float y) {
  float z;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define GK__BULK 1
/* The nearest tf32, ties to even. */
GK__D unsigned gk__ptx_cvt_rn_tf32_f32(float x) {
  unsigned rounded;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return rounded;
}
/* mma.sync for 16 rows and 8 columns of doubles, and a k of 4 x Quads: 8 or 16. c0, a0: the lane's part of the first
 * eight rows; c1, a1: of the others. */
template <int Quads>
GK__D void gk__ptx_mma_m16n8_f64(double *c0, double *c1, const double *a0, const double *a1, const double *b) {
  const int q1 = 1 % Quads, q2 = 2 % Quads, q3 = 3 % Quads; /* modulo: in range in branches that are not taken */
  if (Quads == 2)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+d"(c0[0]), "+d"(c0[1]), "+d"(c1[0]), "+d"(c1[1])
                 : "d"(a0[0]), "d"(a1[0]), "d"(a0[q1]), "d"(a1[q1]), "d"(b[0]), "d"(b[q1]));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
                 "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
                 : "+d"(c0[0]), "+d"(c0[1]), "+d"(c1[0]), "+d"(c1[1])
                 : "d"(a0[0]), "d"(a1[0]), "d"(a0[q1]), "d"(a1[q1]), "d"(a0[q2]), "d"(a1[q2]), "d"(a0[q3]), "d"(a1[q3]),
                   "d"(b[0]), "d"(b[q1]), "d"(b[q2]), "d"(b[q3]));
}
/* Programmatic dependent launch: see section 14. */
GK__D void gk__ptx_griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
GK__D void gk__ptx_griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* mbarriers and bulk copies: see gk__scan_bulk_copies. They take an address in shared memory as 32 bits. Addresses and
 * sizes of copies must be multiples of 16 bytes. */
GK__D void gk__ptx_mbarrier_init(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/* Makes this thread's initialisation of barriers visible to the cluster, and to the copies that arrive at them. */
GK__D void gk__ptx_fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
GK__D void gk__ptx_mbarrier_arrive_expect_tx(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/* Returns whether the phase of this parity is complete. May suspend the thread for a limited time first. */
GK__D bool gk__ptx_mbarrier_try_wait_parity(unsigned barrier, unsigned parity) {
  unsigned passed;
  asm volatile("{\n\t.reg .pred over;\n\tmbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n\t"
               "selp.u32 %0, 1, 0, over;\n\t}"
               : "=r"(passed)
               : "r"(barrier), "r"(parity)
               : "memory");
  return passed != 0;
}
GK__D void gk__ptx_mbarrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* The same for a barrier of any block of the cluster, whose address is one of mapa. */
GK__D void gk__ptx_mbarrier_arrive_shared_cluster(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* Arrives once this thread's earlier cp.async copies are complete. */
GK__D void gk__ptx_cp_async_mbarrier_arrive_noinc(unsigned barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
/* Returns once the phase is complete. */
GK__D void gk__ptx_mbarrier_wait_parity(unsigned barrier, unsigned parity) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra "
               "again;\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}
GK__D void gk__ptx_cp_async_bulk_load(unsigned dest, const void *from, unsigned bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dest),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
GK__D void gk__ptx_cp_async_bulk_store(void *dest, unsigned from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dest), "r"(from), "r"(bytes)
               : "memory");
}
GK__D void gk__ptx_cp_async_bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* Waits until all but the last Pending groups of bulk stores of this thread have read their shared memory. */
template <int Pending> GK__D void gk__ptx_cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
/* Orders this thread's earlier accesses to shared memory before later ones of the asynchronous proxy. */
GK__D void gk__ptx_fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* True in one thread of the warp, which must be converged. ptxas then knows that a branch is taken by one thread, and
 * needs no loop around an instruction like a load by TMA that is executed once for a warp. */
GK__D bool gk__ptx_elect_sync() {
  unsigned elected;
  asm volatile("{\n\t.reg .pred one;\n\telect.sync _|one, 0xffffffff;\n\tselp.u32 %0, 1, 0, one;\n\t}" : "=r"(elected));
  return elected != 0;
}
/* All threads of all blocks of a cluster arrive at its barrier and wait. A relaxed arrival orders no memory accesses.
 * The warp must be converged. */
GK__D void gk__ptx_barrier_cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
GK__D void gk__ptx_barrier_cluster_wait_acquire() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/* The address in the shared memory of the block of this rank that corresponds to an address in the caller's. */
GK__D unsigned gk__ptx_mapa_shared_cluster(unsigned address, unsigned rank) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}
/* Stores four floats to the shared memory of a block of the cluster. The barrier, which is in the same block, counts
 * the 16 bytes. */
GK__D void gk__ptx_st_async_v4_f32(unsigned address, unsigned barrier, float a, float b, float c, float d) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];" ::"r"(address),
      "r"(barrier), "f"(a), "f"(b), "f"(c), "f"(d)
      : "memory");
}
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* Changes the registers that each thread of a warpgroup has. */
template <int Count> GK__D void gk__ptx_setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count> GK__D void gk__ptx_setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}
GK__D void gk__ptx_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
GK__D void gk__ptx_wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* Waits until at most the last Pending groups of this warpgroup are incomplete. */
template <int Pending> GK__D void gk__ptx_wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
/* TMA: loads the box of a matrix whose first element is in column x and row y, or stores it. The tensor map has four
 * dimensions; the others are the product in the batch, and `part`: a term of an operand, or a matrix of every n-th row
 * of C. */
GK__D void gk__ptx_cp_async_bulk_tensor_4d_load(unsigned dest, const void *tensor_map, unsigned barrier, unsigned x,
                                                unsigned y, unsigned product, unsigned part) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
               "%5, %6}], [%2];" ::"r"(dest),
               "l"(tensor_map), "r"(barrier), "r"(x), "r"(y), "r"(product), "r"(part)
               : "memory");
}
/* The same to the blocks of the cluster whose bits are set in `ranks`: in each, to the same address, and counted by its
 * barrier at the same address. */
GK__D void gk__ptx_cp_async_bulk_tensor_4d_multicast(unsigned dest, const void *tensor_map, unsigned barrier,
                                                     unsigned x, unsigned y, unsigned product, unsigned part,
                                                     unsigned short ranks) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
               "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(dest),
               "l"(tensor_map), "r"(barrier), "r"(x), "r"(y), "r"(product), "r"(part), "h"(ranks)
               : "memory");
}
GK__D void gk__ptx_cp_async_bulk_tensor_4d_store(const void *tensor_map, unsigned from, unsigned x, unsigned y,
                                                 unsigned product, unsigned part) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(tensor_map),
      "r"(from), "r"(x), "r"(y), "r"(product), "r"(part)
      : "memory");
}
GK__D void gk__ptx_stmatrix_x4(unsigned address, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}
GK__D void gk__ptx_prefetch_tensormap(const void *tensor_map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(tensor_map) : "memory");
}
/* wgmma: d = A B + d for 64 x col_count accumulators and 16 k (tf32: 8 k); d = A B where add is 0. */
#define GK__WGMMA_ACC_8(i)                                                                                             \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),          \
      "+f"(d[i + 7])
#define GK__WGMMA_ACC_16(i) GK__WGMMA_ACC_8(i), GK__WGMMA_ACC_8(i + 8)
#define GK__WGMMA_ACC_32(i) GK__WGMMA_ACC_16(i), GK__WGMMA_ACC_16(i + 16)
#define GK__WGMMA_REGS_64                                                                                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                             \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GK__WGMMA_REGS_96                                                                                              \
  GK__WGMMA_REGS_64 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define GK__WGMMA_REGS_128                                                                                             \
  GK__WGMMA_REGS_96 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GK__WGMMA_REGS_160                                                                                             \
  GK__WGMMA_REGS_128 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define GK__WGMMA_REGS_192                                                                                             \
  GK__WGMMA_REGS_160 ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define GK__WGMMA_REGS_224                                                                                             \
  GK__WGMMA_REGS_192 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define GK__WGMMA_REGS_256                                                                                             \
  GK__WGMMA_REGS_224 ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "    \
                     "%127"
#define GK__WGMMA_ASM(col_count, types, a, b, scale_d, trans, ...)                                                     \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " scale_d                                                         \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #col_count types " {" GK__WGMMA_REGS_##col_count              \
               "}, " a ", " b ", add, 1, 1" trans ";\n}"                                                               \
               : __VA_ARGS__)
/* x0 to x5 are the operands behind the accumulators. gk__ptx_wgmma_registers has A in registers. */
#define GK__WGMMA_COLS(col_count, x0, x1, x2, x3, x4, x5, ...)                                                         \
  template <int Kind, int TransA, int TransB>                                                                          \
  GK__D void gk__ptx_wgmma(float(&d)[col_count / 2], uint64_t desc_a, uint64_t desc_b, int add) {                      \
    if (Kind == 0)                                                                                                     \
      GK__WGMMA_ASM(col_count, "k16.f32.f16.f16", x0, x1, x2, ", " x3 ", " x4, __VA_ARGS__                             \
                    : "l"(desc_a), "l"(desc_b), "r"(add), "n"(TransA), "n"(TransB));                                   \
    else if (Kind == 1)                                                                                                \
      GK__WGMMA_ASM(col_count, "k16.f32.bf16.bf16", x0, x1, x2, ", " x3 ", " x4, __VA_ARGS__                           \
                    : "l"(desc_a), "l"(desc_b), "r"(add), "n"(TransA), "n"(TransB));                                   \
    else                                                                                                               \
      GK__WGMMA_ASM(col_count, "k8.f32.tf32.tf32", x0, x1, x2, "", __VA_ARGS__ : "l"(desc_a), "l"(desc_b), "r"(add));  \
  }                                                                                                                    \
  GK__D void gk__ptx_wgmma_registers(float(&d)[col_count / 2], const unsigned(&a)[4], uint64_t desc_b, int add) {      \
    GK__WGMMA_ASM(col_count, "k8.f32.tf32.tf32", "{" x0 ", " x1 ", " x2 ", " x3 "}", x4, x5, "", __VA_ARGS__           \
                  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc_b), "r"(add));                                \
  }
GK__WGMMA_COLS(64, "%32", "%33", "%34", "%35", "%36", "%37", GK__WGMMA_ACC_32(0))
GK__WGMMA_COLS(96, "%48", "%49", "%50", "%51", "%52", "%53", GK__WGMMA_ACC_32(0), GK__WGMMA_ACC_16(32))
GK__WGMMA_COLS(128, "%64", "%65", "%66", "%67", "%68", "%69", GK__WGMMA_ACC_32(0), GK__WGMMA_ACC_32(32))
GK__WGMMA_COLS(160, "%80", "%81", "%82", "%83", "%84", "%85", GK__WGMMA_ACC_32(0), GK__WGMMA_ACC_32(32),
               GK__WGMMA_ACC_16(64))
GK__WGMMA_COLS(192, "%96", "%97", "%98", "%99", "%100", "%101", GK__WGMMA_ACC_32(0), GK__WGMMA_ACC_32(32),
               GK__WGMMA_ACC_32(64))
GK__WGMMA_COLS(224, "%112", "%113", "%114", "%115", "%116", "%117", GK__WGMMA_ACC_32(0), GK__WGMMA_ACC_32(32),
               GK__WGMMA_ACC_32(64), GK__WGMMA_ACC_16(96))
GK__WGMMA_COLS(256, "%128", "%129", "%130", "%131", "%132", "%133", GK__WGMMA_ACC_32(0), GK__WGMMA_ACC_32(32),
               GK__WGMMA_ACC_32(64), GK__WGMMA_ACC_32(96))
#endif
#else
#define GK__BULK 0
GK__D void gk__ptx_griddepcontrol_wait() {}
GK__D void gk__ptx_griddepcontrol_launch_dependents() {}
#endif

} // GK__NAMESPACE(KERNELS)
#endif /* GK__KERNELS */

/* ====================================================================================================================
 * 14. CHECKS AND LAUNCHES: what the macros of sections 3 and 4, and all calls on the host, are made of.
 *
 * Most of it is declared here and defined in section 22, so that a program compiles it once. What depends on a type of
 * the caller is a template and is defined here: gk_array, gk_allclose, gk_time_ms and gk_bench of a callable, GK_CHECK
 * of any status, and the launch of a kernel.
 *
 * From above: the types of sections 3 and 4, and the instructions of section 13: prefetches, and those that make a
 * kernel wait for earlier work.
 * ==================================================================================================================*/

/* --- What the macros of section 3 call ---------------------------------------------------------------------------*/

#ifdef __cplusplus
GK__NAMESPACE(HOST) {
#define GK__STATUS_TYPE auto
#else
#define GK__STATUS_TYPE int
/* Each C file refers to this function, which only an implementation of the same version with GPUKIT_C_API defines. */
GPUKIT_DEF void GK__C_API(void);
#if defined(__GNUC__) || defined(__clang__)
static void (*const gk__c_api)(void) __attribute__((__used__)) = GK__C_API;
#endif
#endif

/* Begins a check: only a detail that is written after this belongs to it. */
GPUKIT_DEF void gk__check_begin(void);
/* End a check: report an error to the handler. gk__check also ends it without an error; C++ overloads it for the
 * statuses of other libraries. gk__check_launch is GK_CHECK_LAUNCH. */
GPUKIT_DEF cudaError_t gk__check(cudaError_t code, const char *expr, const char *file, int line);
GPUKIT_DEF void gk__check_status(int code, const char *name, const char *message, const char *expr, const char *file,
                                 int line);
GPUKIT_DEF cudaError_t gk__check_launch(cudaStream_t stream, const char *file, int line);

/* The variable of GK_TIME's loop. gk__time_next returns 1 the first time, and stops the timer and prints the second. */
typedef struct gk__time_scope {
  gk_timer timer;
  char label[128]; /* a copy: the caller's may be a temporary string */
  const char *file;
  int line, runs;
  double bytes, flops;
  unsigned first_launches; /* of this thread, before */
} gk__time_scope;
GPUKIT_DEF gk__time_scope gk__time_begin(const char *label, cudaStream_t stream, double bytes, double flops,
                                         const char *file, int line);
GPUKIT_DEF int gk__time_next(gk__time_scope *scope);
#define GK__PASTE2(x, y) x##y
#define GK__PASTE(x, y) GK__PASTE2(x, y)

/* --- What the calls of sections 4 to 12 use ----------------------------------------------------------------------*/

#ifdef __cplusplus
static_assert(sizeof(gk_factor) == sizeof(const double *), "to C, a gk_factor is a pointer");

#if defined(__GNUC__) || defined(__clang__)
#define GK__PRINTF(format_idx, first_idx) __attribute__((__format__(__printf__, format_idx, first_idx)))
#else
#define GK__PRINTF(format_idx, first_idx)
#endif
/* Every gk_ call begins with this. */
GPUKIT_DEF void gk__clear_detail(void);
/* Writes the detail, and returns the code. */
GPUKIT_DEF cudaError_t gk__fail(cudaError_t code, const char *format, ...) GK__PRINTF(2, 3);
#define GK__INVALID(...) gk__fail(cudaErrorInvalidValue, __VA_ARGS__) /* of an argument: format, ... */
/* For the status of a call of CUDA's. If it is an error, the detail says that `what` failed: a gk_ call or a kernel. */
GPUKIT_DEF cudaError_t gk__failed(cudaError_t code, const char *what);
/* Likewise, of a call of CUDA's that waited for kernels of ours, which may have failed. */
GPUKIT_DEF cudaError_t gk__failed_later(cudaError_t code, const char *what);
GPUKIT_DEF cudaError_t gk__no_memory(cudaError_t code, const char *what, size_t bytes); /* likewise, of an allocation */
/* After a call of CUDA's whose failure is no failure of ours: clears the last error, which a later GK_CHECK_LAUNCH()
 * would report, unless there was one before. `earlier`: cudaPeekAtLastError() before the call. */
inline void gk__forget_error(cudaError_t earlier) {
  if (earlier == cudaSuccess) cudaGetLastError();
}
/* For the status of a launch: explains an error, and waits for the kernel with GPUKIT_DEBUG=1. */
GPUKIT_DEF cudaError_t gk__after_launch(cudaError_t code, const void *kernel, const char *name,
                                        const cudaLaunchConfig_t &launch);
/* A cache of one value for each device. Its objects are static, so each value is 0 at first: not known. It has no lock:
 * threads that look for a value at the same time find the same. */
#define GK__DEVICES 64
template <class Value> struct gk__per_device {
  std::atomic<Value> known[GK__DEVICES];
  /* Where the value of a device is; NULL for one past GK__DEVICES. */
  std::atomic<Value> *of(int device) { return device < GK__DEVICES ? &known[device] : NULL; }
  /* The value of the current device, which find(device, value) finds if it is not known. After a failure it stays
   * unknown, and so does that of a device past GK__DEVICES. */
  template <class Find> cudaError_t get(Value *value, const Find &find) {
    int device = 0;
    *value = 0;
    GK_TRY(cudaGetDevice(&device));
    std::atomic<Value> *const place = of(device);
    if (place) *value = place->load(std::memory_order_relaxed);
    if (*value != 0) return cudaSuccess;
    GK_TRY(find(device, value));
    if (place) place->store(*value, std::memory_order_relaxed);
    return cudaSuccess;
  }
};
/* What is known of a kernel on each device: whether it may start while earlier work runs (1 or -1), for which
 * architecture its code for this device was compiled (80: compute_80; -1: the body is empty, see section 19), and its
 * limit of dynamic shared memory in bytes. */
struct gk__kernel_cache {
  gk__per_device<signed char> overlaps;
  gk__per_device<int> code, smem_limit;
};
/* Raises the kernel's limit of dynamic shared memory if smem bytes exceed it, or says why that is impossible. To ask
 * CUDA for the limit takes a tenth of the time of a launch, so the cache, if there is one, keeps it. */
GPUKIT_DEF cudaError_t gk__allow_smem(const void *kernel, gk__kernel_cache *cache, const char *name, size_t smem);
/* After a launch that has failed with `code`: cudaDeviceReset takes back the limit that the cache knows. If it is too
 * low now, this raises it, so that the caller launches again; otherwise it returns the code. */
GPUKIT_DEF cudaError_t gk__restore_smem_limit(cudaError_t code, const void *kernel, const char *name, size_t smem);
/* *attribute_count becomes 1 if the kernel may be launched while earlier work runs, and otherwise 0. */
GPUKIT_DEF cudaError_t gk__overlaps(gk__kernel_cache *cache, const void *kernel, unsigned *attribute_count);
/* A scratch has the state of section 16 in front, then the slots of reductions, then those of scans or the partials of
 * products, and then the work area, from gk__work_offset(scratch.bytes) on. Partials are zeroed after use, because
 * scans look for their epochs there. The work area begins with GK__WORK_FRONT bytes for a flag of emulated products
 * (section 19). The copies of A and B follow, aligned to as many bytes. */
#define GK__STATE_BYTES 256u
#define GK__REDUCE_BYTES 32768u
#define GK__SCAN_OFFSET (GK__STATE_BYTES + GK__REDUCE_BYTES) /* where the slots of scans begin, and partials */
#define GK__MATRIX_BYTES (512u << 10) /* limit of the slots of rows and columns, in the same place */
#define GK__WORK_FRONT 256u
#define GK__WORK_EXTRA (2 * GK__WORK_FRONT) /* what a work area has beside copies: the front, and a gap before B's */
inline size_t gk__work_offset(size_t bytes) { return (bytes + GK__WORK_FRONT - 1) / GK__WORK_FRONT * GK__WORK_FRONT; }
/* Allocate on the stream; a scratch is also cleared. `what` is the call that needs the memory. */
GPUKIT_DEF cudaError_t gk__temporary_memory(void **ptr, size_t bytes, const char *what, cudaStream_t stream);
GPUKIT_DEF cudaError_t gk__temporary_scratch(gk_scratch *scratch, size_t bytes, const char *what, cudaStream_t stream);
/* Copies on the stream, and waits for it. */
GPUKIT_DEF cudaError_t gk__copy(void *dest, const void *from, size_t bytes, cudaMemcpyKind kind, const char *call,
                                cudaStream_t stream);
/* An error if the stream is being captured: CUDA's own, in the middle of a call, would end the capture. */
GPUKIT_DEF cudaError_t gk__refuse_capture(const char *call, const char *why, cudaStream_t stream);
/* What gk_array is made of. On failure they call the handler; gk__array_create returns NULL, gk__array_copy false. */
GPUKIT_DEF void *gk__array_create(size_t n, size_t item_bytes, cudaStream_t stream, const char *file, int line);
GPUKIT_DEF void gk__array_destroy(void *items, cudaStream_t stream);
GPUKIT_DEF bool gk__array_copy(void *dest, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                               const char *file, int line);
GPUKIT_DEF void gk__array_clear(void *items, size_t bytes, cudaStream_t stream, const char *file, int line);
/* Returns `has`. If it is false, reports to the handler what was wanted of an array of n elements. */
GPUKIT_DEF bool gk__array_has(bool has, const char *format, size_t wanted, size_t n, const char *file, int line);
/* With GPUKIT_DEBUG=1, an error if the argument `name` of the call is a host pointer. */
GPUKIT_DEF cudaError_t gk__check_memory(const char *call, const char *name, const void *ptr);
/* An element of an array, as gk_allclose compares and gk_print prints it. */
struct gk__number {
  double value;
  unsigned long long magnitude; /* of an integer, exactly */
  bool negative;
  int digits; /* decimal digits that distinguish a float or double from its neighbours; 0: an integer */
};
struct gk__number_pair {
  size_t idx;
  gk__number a, b;
};
struct gk__comparison {
  size_t mismatches;
  gk__number_pair first_pair, worst_pair;
  double worst_excess; /* error / tolerance */
};
GPUKIT_DEF void gk__print_number(const gk__number &x);
GPUKIT_DEF void gk__print_text(const char *text);
/* Compares two elements that are not equal. */
GPUKIT_DEF void gk__compare(const gk__number_pair &pair, double rtol, double atol, gk__comparison *comparison);
/* Returns whether the arrays are close. If not, writes the detail. */
GPUKIT_DEF bool gk__compare_report(size_t n, const gk__comparison &comparison, gk_mismatch *mismatch);

/* Gives each host function a symbol that begins with GK__NEEDED (section 22). This must precede all uses. With
 * GPUKIT_STATIC the linker sees no symbols. */
/* clang-format off */
#define GK__C_HOST_FUNCTIONS(X)                                                                                        \
  X(gk_set_error_handler) X(gk_error_detail) X(gk_error_hint) X(gk__check_begin) X(gk__check)                          \
  X(gk__check_status) X(gk__check_launch) X(gk_device_query) X(gk_device_print) X(gk_device_best) X(gk_occupancy)      \
  X(gk_occupancy_print) X(gk_block_for) X(gk_grid_shape) X(gk_timer_create) X(gk_timer_start) X(gk_timer_stop)         \
  X(gk_timer_ready) X(gk_timer_ms) X(gk_timer_destroy) X(gk__time_begin) X(gk__time_next) X(gk_bench)                  \
  X(gk_bench_compare) X(gk_bench_buffers) X(gk_scratch_create) X(gk_scratch_create_work) X(gk_scratch_destroy)         \
  X(gk_reduce_scratch_bytes) X(gk_matrix_scratch_bytes) X(gk_scan_scratch_bytes) X(gk_matmul_scratch_bytes)            \
  X(gk_matmul_work_bytes)
#define GK__CPP_HOST_FUNCTIONS(X)                                                                                      \
  X(gk__clear_detail) X(gk__fail) X(gk__failed) X(gk__failed_later) X(gk__no_memory) X(gk__allow_smem)                 \
  X(gk__restore_smem_limit) X(gk__after_launch) X(gk__overlaps) X(gk__temporary_memory) X(gk__temporary_scratch)       \
  X(gk__check_memory) X(gk__compare) X(gk__compare_report) X(gk__print_number) X(gk__print_text) X(gk__copy)           \
  X(gk__refuse_capture) X(gk__array_create) X(gk__array_destroy) X(gk__array_copy) X(gk__array_clear)                  \
  X(gk__array_has)
/* clang-format on */
#if !defined(GPUKIT_STATIC) && (defined(__GNUC__) || defined(__clang__))
#define GK__TEXT2(x) #x
#define GK__TEXT(x) GK__TEXT2(x)
#define GK__SYMBOL(name) GK__TEXT(GK__NEEDED) "_for_" #name
#define GK__LABEL(name) extern decltype(name) name __asm__(GK__SYMBOL(name));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
GK__C_HOST_FUNCTIONS(GK__LABEL)
GK__CPP_HOST_FUNCTIONS(GK__LABEL)
#pragma GCC diagnostic pop
#endif
} // GK__NAMESPACE(HOST)

GK__NAMESPACE(TEMPLATES) {

/* The first error of two steps, of which the second one runs even if the first one failed, as one that frees memory
 * does: `status`, whose detail stays, or if that is a success, `code`. */
inline cudaError_t gk__first_error(cudaError_t status, cudaError_t code, const char *what) {
  if (status == cudaSuccess) return gk__failed(code, what);
  if (code != cudaSuccess) gk__forget_error(cudaSuccess);
  return status;
}

/* --- Device arrays -----------------------------------------------------------------------------------------------*/

template <class Item>
gk_array<Item>::gk_array(size_t n, cudaStream_t on_stream, const char *file, int line)
    : items(static_cast<Item *>(gk__array_create(n, sizeof(Item), on_stream, file, line))), item_count(items ? n : 0),
      stream(on_stream) {
  static_assert(std::is_trivially_copyable<Item>::value, "gk_array: elements are copied to the device byte by byte");
}
template <class Item>
gk_array<Item>::gk_array(const Item *host, size_t n, cudaStream_t on_stream, const char *file, int line)
    : gk_array(n, on_stream, file, line) {
  copy_from(host, file, line);
}
template <class Item>
template <class Range, class>
gk_array<Item>::gk_array(const Range &host, cudaStream_t on_stream, const char *file, int line)
    : gk_array(host.data(), static_cast<size_t>(host.size()), on_stream, file, line) {}
template <class Item> gk_array<Item>::gk_array(gk_array &&other) noexcept : gk_array() {
  *this = static_cast<gk_array &&>(other);
}
template <class Item> gk_array<Item> &gk_array<Item>::operator=(gk_array &&other) noexcept {
  if (this == &other) return *this;
  gk__array_destroy(items, stream);
  items = other.items;
  item_count = other.item_count;
  stream = other.stream;
  other.items = NULL;
  other.item_count = 0;
  return *this;
}
template <class Item> gk_array<Item>::~gk_array() { gk__array_destroy(items, stream); }
template <class Item> void gk_array<Item>::copy_from(const Item *host, const char *file, int line) {
  gk__array_copy(items, host, item_count * sizeof(Item), cudaMemcpyHostToDevice, stream, file, line);
}
template <class Item>
template <class Count, class>
void gk_array<Item>::copy_from(const Item *host, Count n, const char *file, int line) {
  const size_t copied = static_cast<size_t>(n);
  if (gk__array_has(copied <= item_count, "gk_array: copy_from of %zu elements, but the array has %zu", copied,
                    item_count, file, line))
    gk__array_copy(items, host, copied * sizeof(Item), cudaMemcpyHostToDevice, stream, file, line);
}
template <class Item>
template <class Count, class>
void gk_array<Item>::copy_to(Item *host, Count n, const char *file, int line) const {
  const size_t copied = static_cast<size_t>(n);
  if (gk__array_has(copied <= item_count, "gk_array: copy_to of %zu elements, but the array has %zu", copied,
                    item_count, file, line))
    gk__array_copy(host, items, copied * sizeof(Item), cudaMemcpyDeviceToHost, stream, file, line);
}
template <class Item> void gk_array<Item>::copy_to(Item *host, const char *file, int line) const {
  gk__array_copy(host, items, item_count * sizeof(Item), cudaMemcpyDeviceToHost, stream, file, line);
}
template <class Item>
template <class Range, class>
void gk_array<Item>::copy_from(const Range &host, const char *file, int line) {
  const size_t copied = static_cast<size_t>(host.size());
  if (gk__array_has(copied == item_count,
                    "gk_array: copy_from a range of %zu elements, but the array has %zu: these must be equal", copied,
                    item_count, file, line))
    copy_from(host.data(), file, line);
}
template <class Item>
template <class Range, class>
void gk_array<Item>::copy_to(Range &host, const char *file, int line) const {
  const size_t copied = static_cast<size_t>(host.size());
  if (gk__array_has(copied == item_count,
                    "gk_array: copy_to a range of %zu elements, but the array has %zu: these must be equal", copied,
                    item_count, file, line))
    copy_to(host.data(), file, line);
}
template <class Item> Item gk_array<Item>::get(size_t i, const char *file, int line) const {
  Item value = Item();
  if (gk__array_has(i < item_count, "gk_array: get of element %zu, but the array has %zu", i, item_count, file, line))
    gk__array_copy(&value, items + i, sizeof(Item), cudaMemcpyDeviceToHost, stream, file, line);
  return value;
}
template <class Item> void gk_array<Item>::set(size_t i, Item value, const char *file, int line) {
  if (gk__array_has(i < item_count, "gk_array: set of element %zu, but the array has %zu", i, item_count, file, line))
    gk__array_copy(items + i, &value, sizeof(Item), cudaMemcpyHostToDevice, stream, file, line);
}
template <class Item> void gk_array<Item>::clear(const char *file, int line) {
  gk__array_clear(items, item_count * sizeof(Item), stream, file, line);
}

/* --- gk_allclose -------------------------------------------------------------------------------------------------*/

/* A value as a double. Half types may have no conversion (__CUDA_NO_HALF_CONVERSIONS__); they have functions then. */
template <class Item> auto gk__as_double(const Item &x, int) -> decltype(static_cast<double>(x)) {
  return static_cast<double>(x);
}
template <class Item> auto gk__as_double(const Item &x, long) -> decltype(static_cast<double>(__half2float(x))) {
  return static_cast<double>(__half2float(x));
}
template <class Item> auto gk__as_double(const Item &x, long) -> decltype(static_cast<double>(__bfloat162float(x))) {
  return static_cast<double>(__bfloat162float(x));
}
template <class Item> double gk__as_double(const Item &, ...) {
  static_assert(sizeof(Item) == 0,
                "gk_print, gk_allclose: elements are integers, floating-point numbers or half types");
  return 0;
}
/* Everything but integers of up to 64 bits is compared as a double. */
template <class Item, bool Integer = std::is_integral<Item>::value && sizeof(Item) <= 8> struct gk__number_of {
  static gk__number from(const Item &x) { return {gk__as_double(x, 0), 0, false, sizeof(Item) > 4 ? 17 : 9}; }
};
template <class Item> struct gk__number_of<Item, true> {
  static gk__number from(Item x) {
    const unsigned long long bits = static_cast<unsigned long long>(x);
    const bool negative = std::is_signed<Item>::value && static_cast<long long>(x) < 0;
    return {static_cast<double>(x), negative ? 0 - bits : bits, negative, 0};
  }
};

/* The elements to compare: in host memory, or in a device array, which is copied to the host part by part. */
enum { GK__ALLCLOSE_PART = 4096 };
template <class Item> struct gk__host_items {
  const Item *items;
  bool fetch(size_t, size_t) {
    if (!items) GK__INVALID("gk_allclose: an array in host memory is NULL");
    return items != NULL;
  }
  const Item &operator[](size_t i) const { return items[i]; }
};
template <class Item> struct gk__device_items {
  const gk_array<Item> &array;
  const char *file;
  int line;
  Item part[GK__ALLCLOSE_PART];
  bool fetch(size_t begin, size_t n) {
    const size_t max_items = GK__ALLCLOSE_PART, remaining = n - begin,
                 part_items = remaining < max_items ? remaining : max_items;
    return gk__array_copy(part, array.items + begin, part_items * sizeof(Item), cudaMemcpyDeviceToHost, array.stream,
                          file, line);
  }
  const Item &operator[](size_t i) const { return part[i % GK__ALLCLOSE_PART]; }
};
template <template <class> class ItemsA, class Item, template <class> class ItemsB, class Other>
bool gk__allclose(ItemsA<Item> &&a, ItemsB<Other> &&b, size_t n, double rtol, double atol, gk_mismatch *mismatch) {
  gk__comparison comparison = gk__comparison();
  comparison.worst_excess = -1;
  if (mismatch) *mismatch = gk_mismatch();
  for (size_t i = 0; i < n; i++) {
    if (i % GK__ALLCLOSE_PART == 0 && (!a.fetch(i, n) || !b.fetch(i, n))) return false;
    const gk__number x = gk__number_of<Item>::from(a[i]), y = gk__number_of<Other>::from(b[i]);
    const bool is_equal = x.value == y.value && (x.digits || y.digits || x.magnitude == y.magnitude);
    if (!is_equal) gk__compare({i, x, y}, rtol, atol, &comparison);
  }
  return gk__compare_report(n, comparison, mismatch);
}
template <class Item, class Other>
bool gk_allclose(const Item *a, const Other *b, size_t n, double rtol, double atol, gk_mismatch *mismatch) {
  return gk__allclose(gk__host_items<Item>{a}, gk__host_items<Other>{b}, n, rtol, atol, mismatch);
}
/* Whether two arrays have the same size. If not, reports an error to the handler. */
inline bool gk__same_size(size_t a_items, size_t b_items, gk_mismatch *mismatch, const char *file, int line) {
  if (a_items == b_items) return true;
  if (mismatch) *mismatch = gk_mismatch();
  gk__check_begin();
  gk__check(GK__INVALID("gk_allclose: one array has %zu elements, the other %zu", a_items, b_items), "gk_allclose",
            file, line);
  return false;
}
template <class Item, class Other>
bool gk_allclose(const gk_array<Item> &a, const gk_array<Other> &b, double rtol, double atol, gk_mismatch *mismatch,
                 const char *file, int line) {
  return gk__same_size(a.size(), b.size(), mismatch, file, line) &&
         gk__allclose(gk__device_items<Item>{a, file, line, {}}, gk__device_items<Other>{b, file, line, {}}, a.size(),
                      rtol, atol, mismatch);
}
template <class Item, class Other>
bool gk_allclose(const gk_array<Item> &a, const Other *b, double rtol, double atol, gk_mismatch *mismatch,
                 const char *file, int line) {
  return gk__allclose(gk__device_items<Item>{a, file, line, {}}, gk__host_items<Other>{b}, a.size(), rtol, atol,
                      mismatch);
}
template <class Item, class Range, class>
bool gk_allclose(const gk_array<Item> &a, const Range &b, double rtol, double atol, gk_mismatch *mismatch,
                 const char *file, int line) {
  return gk__same_size(a.size(), static_cast<size_t>(b.size()), mismatch, file, line) &&
         gk_allclose(a, b.data(), rtol, atol, mismatch, file, line);
}

} // GK__NAMESPACE(TEMPLATES)

GK__NAMESPACE(KERNELS) {

/* --- Timing of callables -----------------------------------------------------------------------------------------*/

/* The status of function(), which returns one or nothing. */
template <class Function> cudaError_t gk__status_of(Function &function, std::true_type) {
  function();
  return cudaSuccess;
}
template <class Function> cudaError_t gk__status_of(Function &function, std::false_type) { return function(); }
template <class Function> cudaError_t gk__status_of(Function &function) {
  return gk__status_of(function, std::is_void<decltype(function())>());
}
/* A timer that is destroyed if a handler or the timed function throws. */
struct gk__owned_timer : gk_timer {
  gk__owned_timer() : gk_timer() {}
  gk__owned_timer(const gk__owned_timer &) = delete;
  ~gk__owned_timer() { /* keeps the error's detail */
    if (!state) return;
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }
};
template <class Function> float gk_time_ms(Function function, cudaStream_t stream, const char *file, int line) {
  gk__owned_timer timer;
  float milliseconds = 0;
  gk__check_begin();
  cudaError_t status = gk_timer_create(&timer);
  if (status == cudaSuccess) status = gk_timer_start(&timer, stream);
  if (status == cudaSuccess) status = gk__status_of(function);
  if (status == cudaSuccess) status = gk_timer_stop(&timer);
  if (status == cudaSuccess) status = gk_timer_ms(&timer, &milliseconds);
  if (status == cudaSuccess) status = gk_timer_destroy(&timer);
  gk__check(status, "gk_time_ms(function)", file, line);
  return status == cudaSuccess ? milliseconds : nanf("");
}
template <class Function> cudaError_t gk_bench(Function function, const gk_bench_opts *opts, gk_bench_result *result) {
  const gk_bench_fn call = [](void *user, cudaStream_t, size_t) -> cudaError_t {
    return gk__status_of(*static_cast<Function *>(user));
  };
  return gk_bench(call, &function, opts, result);
}

/* --- Arrays as arguments -------------------------------------------------------------------------------------------*/

/* The result of a functor that the user gives. */
template <class Result, class Func, class... Args>
__device__ auto gk__call_of(int, const Func &f, const Args &...args) -> decltype(static_cast<Result>(f(args...))) {
  return static_cast<Result>(f(args...));
}
template <class Result, class Func, class... Args> __device__ Result gk__call_of(long, const Func &, const Args &...) {
  static_assert(sizeof(Func) == 0,
                "gk_computed<Item>(f): f(size_t) const is an Item; gk_select: keep(element) const is a bool; "
                "gk_matmul_epilogue: func(value, row, col) const is a value (in device code)");
  return Result();
}
/* In kernels a computed input has those operators of a pointer that they use. */
template <class Item, class Func> struct gk__computed {
  Func f;
  size_t first_idx;
  __host__ __device__ gk__computed(const Func &func, size_t begin_idx) : f(func), first_idx(begin_idx) {}
  __device__ Item operator[](size_t i) const { return gk__call_of<Item>(0, f, first_idx + i); }
  __device__ gk__computed operator+(size_t i) const { return gk__computed(f, first_idx + i); }
};
template <class Item, class Func> gk__computed<Item, Func> gk_computed(Func f) {
  return gk__computed<Item, Func>(f, 0);
}

/* The pointer to the elements of an argument: a pointer itself, or a gk_array. */
template <class Item> typename std::enable_if<!std::is_void<Item>::value, Item>::type *gk__pointer_to(Item *array) {
  return array;
}
template <class Item> Item *gk__pointer_to(gk_array<Item> &array) { return array.data(); }
template <class Item> const Item *gk__pointer_to(const gk_array<Item> &array) { return array.data(); }
template <class Other> float *gk__pointer_to(const Other &) {
  static_assert(!std::is_pointer<Other>::value, "arrays of void have no element type: cast the pointer");
  static_assert(std::is_pointer<Other>::value,
                "arrays are pointers to device memory or gk_array; make one of a host's range by "
                "gk_array<Item>(range), or see gk_host_reduce, gk_host_matmul, ...");
  return NULL;
}

/* --- GK_CHECK of any status ---------------------------------------------------------------------------------------
 * The functions that describe a status of cuBLAS or NCCL are found by argument-dependent lookup where a check is
 * instantiated. So this file needs no header of these libraries. The overload with an int is preferred where the
 * function exists, and that with a long is taken for all other types. */

template <class Status> auto gk__status_text(Status status, int) -> decltype(cublasGetStatusString(status)) {
  return cublasGetStatusString(status);
}
template <class Status> auto gk__status_text(Status status, int) -> decltype(ncclGetErrorString(status)) {
  return ncclGetErrorString(status);
}
template <class Status> const char *gk__status_text(Status, long) { return ""; }

template <class Status> auto gk__status_name(Status status, int) -> decltype(cublasGetStatusName(status)) {
  return cublasGetStatusName(status);
}
template <class Status> const char *gk__status_name(Status, long) { return ""; }

template <class Status> Status gk__check(Status status, const char *expr, const char *file, int line) {
  static_assert((std::is_integral<Status>::value || std::is_enum<Status>::value) && !std::is_same<Status, bool>::value,
                "GK_CHECK takes a status: an integer or an enumeration, but no bool, whose zero is success");
  int code = static_cast<int>(status);
  if (code == 0 && status != Status()) code = -1; /* a failure whose lower 32 bits are zero */
  gk__check(cudaSuccess, expr, file, line);       /* ends the check: the status of another library has no detail */
  if (code) gk__check_status(code, gk__status_name(status, 0), gk__status_text(status, 0), expr, file, line);
  return status;
}

} // GK__NAMESPACE(KERNELS)
#endif /* __cplusplus */

#ifdef GK__KERNELS
GK__NAMESPACE(KERNELS) {

/* --- Launches ----------------------------------------------------------------------------------------------------*/

/* Programmatic dependent launch: the kernel starts while earlier work of the stream still runs, and waits for it by
 * itself. Every thread of such a kernel calls this before it accesses global memory. */
GK__D void gk__wait_for_earlier_work() { gk__ptx_griddepcontrol_wait(); }

/* Allows the next kernel of the stream to start as soon as all blocks of this one have called this or exited. The
 * blocks of that kernel occupy resources while they wait, and are distributed unevenly over the multiprocessors; so
 * only small and persistent grids call this. */
GK__D void gk__let_later_work_start() { gk__ptx_griddepcontrol_launch_dependents(); }

/* Prefetches the elements first_idx ... first_idx + item_count - 1 of n into the L2, one line of 128 bytes for each
 * thread, and no more. This is safe before gk__wait_for_earlier_work(): no value is read, and what earlier work writes
 * goes through the L2, too. If the array does not begin at a line, the last element may be in one line more. If the
 * array is not aligned to 16 bytes, whole_lines is false, and that line is prefetched as well. Otherwise it is not,
 * which costs one miss. */
template <class Item>
GK__D void gk__prefetch_tile(const Item *input, size_t n, size_t first_idx, unsigned item_count,
                             bool whole_lines = true) {
  const unsigned byte = threadIdx.x * 128;
  if (byte < item_count * sizeof(Item) && first_idx + byte / sizeof(Item) < n)
    gk__ptx_prefetch_global_l2(reinterpret_cast<const char *>(input + first_idx) + byte);
  if (!whole_lines && threadIdx.x == blockDim.x - 1 && first_idx < n)
    gk__ptx_prefetch_global_l2(input + (first_idx + item_count < n ? first_idx + item_count : n) - 1);
}
template <class Item, class Func>
GK__D void gk__prefetch_tile(const gk__computed<Item, Func> &, size_t, size_t, unsigned, bool = false) {}

/* Whether each argument of the types As converts to the kernel's parameter in its place, of the types Ps. */
template <class... Ts> struct gk__types {};
template <class Ps, class As> struct gk__all_convert : std::true_type {};
template <class Param, class... Ps, class Arg, class... As>
struct gk__all_convert<gk__types<Param, Ps...>, gk__types<Arg, As...>> {
  static const bool value =
      std::is_convertible<Arg &, Param>::value && gk__all_convert<gk__types<Ps...>, gk__types<As...>>::value;
};

/* A kernel, and what a launch of it depends on. */
template <class... Params> struct gk__kernel {
  void (*function)(Params...);
  gk__kernel_cache *cache; /* NULL: it does not call gk__wait_for_earlier_work */
  unsigned cluster_blocks; /* 0: no clusters */
  const void *address() const { return reinterpret_cast<const void *>(function); }
};
template <class... Params> gk__kernel<Params...> gk__kernel_with(void (*function)(Params...), gk__kernel_cache *cache) {
  return {function, cache, 0};
}
/* The kernel is an argument of the template, so that each has a cache of its own. */
template <class Function, Function Kernel> gk__kernel_cache *gk__cache_of() {
  static gk__kernel_cache cache;
  return &cache;
}
/* GK__KERNEL(kernel<arguments>): for one that calls gk__wait_for_earlier_work. */
#define GK__KERNEL(...) gk__kernel_with(__VA_ARGS__, gk__cache_of<decltype(&__VA_ARGS__), &__VA_ARGS__>())

template <class... Params, class... Args>
cudaError_t gk__launch_kernel(const char *name, const gk__kernel<Params...> &kernel, dim3 grid_dim, dim3 block_dim,
                              size_t smem, cudaStream_t stream, Args &&...args) {
  const void *const address = kernel.address();
  gk__clear_detail();
  if (grid_dim.x == 0 || grid_dim.y == 0 || grid_dim.z == 0) return cudaSuccess;
  GK_TRY(gk__allow_smem(address, kernel.cache, name, smem));
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {grid_dim, block_dim, smem, stream, attributes, 0};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  cudaError_t code = kernel.cache ? gk__overlaps(kernel.cache, address, &config.numAttrs) : cudaSuccess;
  if (kernel.cluster_blocks) {
    cudaLaunchAttribute &cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {kernel.cluster_blocks, 1, 1};
  }
  const auto launch = [&] { return cudaLaunchKernelEx(&config, kernel.function, static_cast<Params>(args)...); };
  if (code == cudaSuccess) code = launch();
  if (code != cudaSuccess && kernel.cache && smem) {
    code = gk__restore_smem_limit(code, address, name, smem);
    if (code == cudaSuccess) code = launch();
  }
  return gk__after_launch(code, address, name, config);
}
template <class... Params, class... Args>
cudaError_t gk__launch_if(std::true_type, const char *name, void (*kernel)(Params...), Args &&...args) {
  return gk__launch_kernel(name, gk__kernel_with(kernel, NULL), static_cast<Args &&>(args)...);
}
template <class... Args> cudaError_t gk__launch_if(std::false_type, Args &&...) { return cudaErrorInvalidValue; }
template <class... Params, class... Args>
cudaError_t gk__launch(const char *name, void (*kernel)(Params...), dim3 grid_dim, dim3 block_dim, size_t smem,
                       cudaStream_t stream, Args &&...args) {
  /* Arguments that do not fit are reported once, and nothing is compiled that would fail again in CUDA's headers. */
  const bool counted = sizeof...(Params) == sizeof...(Args);
  const bool converted = gk__all_convert<gk__types<Params...>, gk__types<Args...>>::value;
  typedef std::integral_constant<bool, counted && converted> fits;
  static_assert(counted, "GK_LAUNCH, gk_launch: the kernel has more parameters, or fewer, than arguments are "
                         "given behind kernel, grid, block, bytes of shared memory and stream");
  static_assert(!counted || converted,
                "GK_LAUNCH, gk_launch: an argument does not convert to the type of the kernel's parameter in its place "
                "(a null pointer is written nullptr)");
  return gk__launch_if(fits(), name, kernel, grid_dim, block_dim, smem, stream, static_cast<Args &&>(args)...);
}

/* Arguments that are no launch at all. */
template <class Name> cudaError_t gk__launch(Name, ...) {
  static_assert(sizeof(Name) == 0,
                "GK_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...): kernel is a __global__ function, "
                "a template with its template arguments");
  return cudaErrorInvalidValue;
}
template <class... Params, class... Args>
cudaError_t gk_launch(void (*kernel)(Params...), dim3 grid_dim, dim3 block_dim, size_t smem, cudaStream_t stream,
                      Args &&...args) {
  return gk__launch("gk_launch", kernel, grid_dim, block_dim, smem, stream, static_cast<Args &&>(args)...);
}

/* ====================================================================================================================
 * 15. BUILDING BLOCKS: the functions of sections 5 to 9, and what they share with reduce, scan and matmul. Uses the
 *     instructions of section 13.
 * ==================================================================================================================*/

/* --- Compiler ----------------------------------------------------------------------------------------------------*/

/* In front of a loop: unrolls it, entirely or by a factor. */
#ifdef __CUDACC__
#define GK__UNROLL GK__PRAGMA(unroll)
#define GK__UNROLL_BY(factor) GK__PRAGMA(unroll(factor))
#else
#define GK__UNROLL
#define GK__UNROLL_BY(factor)
#endif

/* For types through which memory of other types is accessed. */
#if defined(__GNUC__) || defined(__clang__)
#define GK__MAY_ALIAS __attribute__((__may_alias__))
#else
#define GK__MAY_ALIAS
#endif

/* Makes the compiler treat x as a new value here. It then does not keep in registers, through a loop, what it can
 * compute from x again, and does not specialise a loop for the values of x. That of a float also keeps accesses to
 * memory in their order. */
#ifdef __CUDA_ARCH__
template <class Item> GK__D void gk__forget(Item *x) { asm volatile("" : "+r"(*x)); }
template <class Item> GK__D void gk__forget(Item **x) { asm volatile("" : "+l"(*x)); }
GK__D void gk__forget(float *x) { asm volatile("" : "+f"(*x)::"memory"); }
/* The same for a pointer that stays one to global memory. */
template <class Item> GK__D void gk__forget_global(Item **x) {
  gk__forget(x);
  __builtin_assume(__isGlobal(*x));
}
#else
template <class Item> GK__D void gk__forget(Item *) {}
template <class Item> GK__D void gk__forget_global(Item **) {}
#endif

/* --- Index -------------------------------------------------------------------------------------------------------*/

/* The number of blocks that cover n, at most the limit. Blocks of size 0, which CUDA refuses, are taken for 1. */
inline unsigned gk__grid_dim(size_t n, unsigned block_size, unsigned limit) {
  const size_t blocks = gk_ceil_div(n, static_cast<size_t>(block_size ? block_size : 1));
  return blocks < limit ? static_cast<unsigned>(blocks) : limit;
}
inline dim3 gk_grid_3d(size_t w, size_t h, size_t d, dim3 block_dim) {
  return dim3(gk__grid_dim(w, block_dim.x, 0x7fffffffu), gk__grid_dim(h, block_dim.y, 65535u),
              gk__grid_dim(d, block_dim.z, 65535u));
}
inline dim3 gk_grid_2d(size_t w, size_t h, dim3 block_dim) { return gk_grid_3d(w, h, 1, block_dim); }
inline dim3 gk_grid_1d(size_t n, unsigned block_threads) { return gk_grid_3d(n, 1, 1, dim3(block_threads)); }

/* The indices start, start + stride ... below n, of n's type, as a range for a `for` loop. They are counted in an
 * unsigned type, and the last step goes to the end and not past it, so nothing overflows even for the greatest n. */
template <class Index> struct gk__stride {
  static_assert((std::is_integral<Index>::value || std::is_enum<Index>::value) && sizeof(Index) <= 8,
                "GK_FOR_1D, GK_FOR_2D: the number of elements is an integer of up to 64 bits");
  typedef typename std::conditional<(sizeof(Index) > 4), unsigned long long, unsigned>::type Unsigned;
  Unsigned limit, index, distance;
  __device__ gk__stride(Index n, size_t start, size_t stride)
      : limit(n > Index(0) ? static_cast<Unsigned>(n) : 0), index(start < limit ? static_cast<Unsigned>(start) : limit),
        distance(stride < static_cast<Unsigned>(-1) ? static_cast<Unsigned>(stride) : static_cast<Unsigned>(-1)) {}
  __device__ Index operator*() const { return static_cast<Index>(index); }
  __device__ bool operator!=(const gk__stride &) const { return index != limit; }
  __device__ void operator++() { index = limit - index > distance ? index + distance : limit; }
  __device__ gk__stride begin() const { return *this; }
  __device__ gk__stride end() const { return *this; } /* not used: an iterator knows its own end */
};
template <class Index> GK__D gk__stride<Index> gk__stride_1d(Index n) {
  return gk__stride<Index>(n, gk_global_rank(), gk_global_size());
}
template <class Index> GK__D gk__stride<Index> gk__stride_x(Index n) {
  return gk__stride<Index>(n, gk_x(), static_cast<size_t>(gridDim.x) * blockDim.x);
}
template <class Index> GK__D gk__stride<Index> gk__stride_y(Index n) {
  return gk__stride<Index>(n, gk_y(), static_cast<size_t>(gridDim.y) * blockDim.y);
}

GK__D void *gk__dynamic_shared() {
#ifdef CUDA_ON_CPU
  return cuda_cpu_dynamic_shared();
#else
  extern __shared__ __align__(16) unsigned char gk__dynamic_shared_bytes[];
  return gk__dynamic_shared_bytes;
#endif
}

/* --- Types -------------------------------------------------------------------------------------------------------*/

} // GK__NAMESPACE(KERNELS)
GK__NAMESPACE(HOST) {
/* A float as a class. A call with one, such as __float2half_rn(x), is looked up in the namespace of its argument, the
 * global one, when the template is instantiated. So the header of a half type may be included after this file. */
struct gk__f32 {
  float value;
  GK__HD operator float() const { return value; }
};
} // GK__NAMESPACE(HOST)
struct __half; /* defined in cuda_fp16.h and cuda_bf16.h, which only files that use these types include */
struct __nv_bfloat16;
GK__NAMESPACE(KERNELS) {

/* Half types are converted by functions: a build may have disabled the operators (__CUDA_NO_HALF_CONVERSIONS__). */
template <class Item> struct gk__half_traits {
  static const bool is_half = false;
  template <class Other> static GK__HD Other widen(const Other &x) { return x; }
};
template <> struct gk__half_traits<__half> {
  static const bool is_half = true;
  template <class HalfType> static GK__HD float widen(const HalfType &x) { return __half2float(x); }
  template <class Float> static GK__HD auto narrow(Float x) -> decltype(__float2half_rn(x)) {
    return __float2half_rn(x);
  }
};
template <> struct gk__half_traits<__nv_bfloat16> {
  static const bool is_half = true;
  template <class HalfType> static GK__HD float widen(const HalfType &x) { return __bfloat162float(x); }
  template <class Float> static GK__HD auto narrow(Float x) -> decltype(__float2bfloat16_rn(x)) {
    return __float2bfloat16_rn(x);
  }
};

/* gk__known<Item>::type is the type that a call computes with for an array of Items: Item itself without const; but
 * float for a half type whose header is not included, which is an incomplete type. One assertion reports the missing
 * header, and with float the rest of the call compiles, so that no further errors follow. The assertion is in a
 * function, because clang reports a class with a failed assertion once more at each use. */
template <class Item, class = void> struct gk__known {
  static const bool missing = gk__half_traits<typename std::remove_const<Item>::type>::is_half;
  typedef typename std::conditional<missing, float, Item>::type type;
};
template <class Item> struct gk__known<Item, decltype(static_cast<void>(sizeof(Item)))> {
  static const bool missing = false;
  typedef typename std::remove_const<Item>::type type;
};
template <class Item> const typename gk__known<Item>::type *gk__known_array(const Item *array) {
  static_assert(!gk__known<Item>::missing,
                "gk_ calls on __half and __nv_bfloat16 need these types: #include <cuda_fp16.h> "
                "or <cuda_bf16.h> in this file, before or after gpukit.cuh");
  return reinterpret_cast<const typename gk__known<Item>::type *>(array);
}
/* The address of an input, to test its alignment. A computed input has none, and counts as unaligned. */
template <class Item> GK__HD const Item *gk__memory_of(const Item *input) { return input; }
template <class Item, class Func> GK__HD const Item *gk__memory_of(const gk__computed<Item, Func> &) {
  return reinterpret_cast<const Item *>(static_cast<uintptr_t>(1));
}
template <class Item> typename gk__known<Item>::type *gk__known_output(Item *array) {
  static_assert(!std::is_const<Item>::value, "the output is const: inputs come first, then outputs, then sizes");
  return const_cast<typename gk__known<Item>::type *>(gk__known_array(array));
}
/* The arguments of a call as its kernels take them: an input is a pointer or computed, and an output is a pointer. */
template <class Array> auto gk__input_of(const Array &array) -> decltype(gk__known_array(gk__pointer_to(array))) {
  return gk__known_array(gk__pointer_to(array));
}
template <class Item, class Func> gk__computed<Item, Func> gk__input_of(const gk__computed<Item, Func> &input) {
  return input;
}
template <class Input>
using gk__input_type = typename std::decay<decltype(gk__input_of(std::declval<const Input &>()))>::type;
template <class Array>
using gk__item_type = typename std::decay<decltype(std::declval<gk__input_type<Array>>()[0])>::type;
/* Whether the elements of an argument are in memory: those of a computed input are not. */
template <class Array> using gk__is_in_memory = std::is_pointer<gk__input_type<Array>>;
template <class Output> gk__item_type<Output> *gk__output_of(Output &output) {
  return gk__known_output(gk__pointer_to(output));
}

/* Whether static_cast<Target>(x) exists for an x of type From. */
template <class Target, class From, class = void> struct gk__casts : std::false_type {};
template <class Target, class From>
struct gk__casts<Target, From, decltype(static_cast<void>(static_cast<Target>(std::declval<From>())))>
    : std::true_type {};
/* gk__convert<Target, From>::from(x), between types of input, computation and output. Half types come from a float. */
template <class Target, class From, bool Narrow = gk__half_traits<Target>::is_half> struct gk__convert {
  static GK__HD Target from(const From &x) {
    static_assert(gk__casts<Target, decltype(gk__half_traits<From>::widen(x))>::value,
                  "an element, an init value or a result does not convert to the type that the call needs (the results "
                  "of argmin and argmax are of type gk_arg<Item>)");
    return static_cast<Target>(gk__half_traits<From>::widen(x));
  }
};
template <class HalfType, class From> struct gk__convert<HalfType, From, true> {
  static GK__HD HalfType from(const From &x) {
    return gk__half_traits<HalfType>::narrow(gk__f32{static_cast<float>(gk__half_traits<From>::widen(x))});
  }
};
template <class HalfType> struct gk__convert<HalfType, HalfType, true> {
  static GK__HD HalfType from(const HalfType &x) { return x; }
};
template <class Target, class From> struct gk__convert<gk_arg<Target>, gk_arg<From>, false> {
  static GK__HD gk_arg<Target> from(const gk_arg<From> &x) {
    return gk_arg<Target>{gk__convert<Target, From>::from(x.value), x.index};
  }
};

template <class Item> struct gk__is_arg : std::false_type {};
template <class Value> struct gk__is_arg<gk_arg<Value>> : std::true_type {};
template <class Acc, class Item>
struct gk__adds_index : std::integral_constant<bool, gk__is_arg<Acc>::value && !gk__is_arg<Item>::value> {};
/* Element i as a working value. That of argmin and argmax has an index: i, or that of an element that is a gk_arg. */
template <class Acc, class Item, bool AddsIndex = gk__adds_index<Acc, Item>::value> struct gk__lift {
  static GK__HD Acc from(const Item &x, size_t) { return gk__convert<Acc, Item>::from(x); }
};
template <class Value, class Item> struct gk__lift<gk_arg<Value>, Item, true> {
  static GK__HD gk_arg<Value> from(const Item &x, size_t i) {
    return gk_arg<Value>{gk__convert<Value, Item>::from(x), i};
  }
};

/* The types to compute in. gk__carried: float for half types, otherwise the type itself; of a gk_arg, that of its
 * value. gk__widened is for the sums and products of a reduction: 64 bits for integers narrower than 32, otherwise as
 * gk__carried. */
template <class Item> struct gk__carried {
  typedef typename std::conditional<gk__half_traits<Item>::is_half, float, Item>::type type;
};
template <class Value> struct gk__carried<gk_arg<Value>> : gk__carried<Value> {};
template <class Item> struct gk__widened {
  typedef typename std::conditional<std::is_signed<Item>::value, long long, unsigned long long>::type wide;
  typedef typename std::conditional<std::is_integral<Item>::value && (sizeof(Item) < 4), wide,
                                    typename gk__carried<Item>::type>::type type;
};

/* --- Arithmetic --------------------------------------------------------------------------------------------------*/

/* Sums and products that have the same bits everywhere: of floats by intrinsics, which the compiler does not contract
 * into fused multiply-adds; of integers in an unsigned type, because overflow of a signed one is undefined; of half
 * types by functions, because some programs define away their operators (as PyTorch's extensions do), and by those that
 * are not contracted either. */
template <class Acc, bool IsHalf> struct gk__operators {
  static GK__HD Acc add(const Acc &x, const Acc &y) { return x + y; }
  static GK__HD Acc mul(const Acc &x, const Acc &y) { return x * y; }
};
template <class Acc> struct gk__operators<Acc, true> {
  static GK__HD Acc add(const Acc &x, const Acc &y) { return __hadd_rn(x, y); }
  static GK__HD Acc mul(const Acc &x, const Acc &y) { return __hmul_rn(x, y); }
};
template <class Acc, bool Integral> struct gk__arithmetic : gk__operators<Acc, gk__half_traits<Acc>::is_half> {};
template <class Acc> struct gk__arithmetic<Acc, true> {
  typedef unsigned long long Unsigned;
  static GK__HD Acc add(Acc x, Acc y) { return static_cast<Acc>(static_cast<Unsigned>(x) + static_cast<Unsigned>(y)); }
  static GK__HD Acc mul(Acc x, Acc y) { return static_cast<Acc>(static_cast<Unsigned>(x) * static_cast<Unsigned>(y)); }
};
#ifdef __CUDA_ARCH__
template <> struct gk__arithmetic<float, false> {
  static GK__D float add(float x, float y) { return __fadd_rn(x, y); }
  static GK__D float mul(float x, float y) { return __fmul_rn(x, y); }
};
template <> struct gk__arithmetic<double, false> {
  static GK__D double add(double x, double y) { return __dadd_rn(x, y); }
  static GK__D double mul(double x, double y) { return __dmul_rn(x, y); }
};
#endif
template <class Acc> GK__HD Acc gk__mul(Acc x, Acc y) { return gk__arithmetic<Acc>::mul(x, y); }
GK__HD float gk__fma(float x, float y, float z) { return fmaf(x, y, z); }
GK__HD double gk__fma(double x, double y, double z) { return fma(x, y, z); }

template <class Acc> GK__HD bool gk__is_nan(const Acc &) { return false; }
GK__HD bool gk__is_nan(float x) { return x != x; }
GK__HD bool gk__is_nan(double x) { return x != x; }

/* The greatest and the least value of a type, infinities included. */
template <class Acc> GK__HD Acc gk__greatest() {
  static_assert(std::is_integral<Acc>::value && sizeof(Acc) <= 8,
                "gk_min<Acc>, gk_max<Acc>: Acc is an integer, float or double; half types work in float");
  return static_cast<Acc>(~0ull >> (64 - 8 * sizeof(Acc) + (std::is_signed<Acc>::value ? 1 : 0)));
}
template <> GK__HD float gk__greatest<float>() { return static_cast<float>(INFINITY); }
template <> GK__HD double gk__greatest<double>() { return static_cast<double>(INFINITY); }
template <class Acc> GK__HD Acc gk__least() {
  static_assert(std::is_arithmetic<Acc>::value,
                "gk_min<Acc>, gk_max<Acc>: Acc is an integer, float or double; half types work in float");
  return std::is_signed<Acc>::value ? static_cast<Acc>(-gk__greatest<Acc>() - 1) : Acc(0); /* -inf - 1 is -inf */
}

/* Whether x is better than y, in the order of minima (Greatest = false) or maxima; and the same with NaNs before all
 * other values, which is the order of argmin and argmax. */
template <bool Greatest, class Value> GK__HD bool gk__before(const Value &x, const Value &y) {
  static_assert(!gk__half_traits<Value>::is_half,
                "gk_min, gk_max, gk_argmin and gk_argmax of a half type would lose NaNs: take those of float");
  return Greatest ? y < x : x < y;
}
template <bool Greatest, class Value> GK__HD bool gk__before_nan_first(const Value &x, const Value &y) {
  return gk__is_nan(x) ? !gk__is_nan(y) : !gk__is_nan(y) && gk__before<Greatest>(x, y);
}

/* The lesser (Greatest = false) or the greater of two, in either order; NaN if one is a NaN; -0 is less than +0. */
template <bool Greatest, class Acc> GK__HD Acc gk__extreme(const Acc &x, const Acc &y) {
  return gk__before<Greatest>(y, x) ? y : x;
}
template <bool Greatest, class Bits, class Float> GK__HD Float gk__extreme_float(Float x, Float y) {
  Bits a, b;
  memcpy(&a, &x, sizeof(a));
  memcpy(&b, &y, sizeof(b));
  if (x == y) { /* the bits differ only for zeros of both signs */
    a = Greatest ? a & b : a | b;
    memcpy(&x, &a, sizeof(x));
    return x;
  }
  return gk__before_nan_first<Greatest>(y, x) ? y : x;
}
template <bool Greatest> GK__HD double gk__extreme(const double &x, const double &y) {
  return gk__extreme_float<Greatest, unsigned long long>(x, y);
}
template <bool Greatest> GK__HD float gk__extreme(const float &x, const float &y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return Greatest ? gk__ptx_max_nan_f32(x, y) : gk__ptx_min_nan_f32(x, y); /* the same in one instruction */
#else
  return gk__extreme_float<Greatest, unsigned>(x, y);
#endif
}

template <bool Greatest, class Value> GK__HD gk_arg<Value> gk__extreme(const gk_arg<Value> &x, const gk_arg<Value> &y) {
  if (gk__before_nan_first<Greatest>(x.value, y.value)) return x;
  if (gk__before_nan_first<Greatest>(y.value, x.value)) return y;
  return x.index < y.index ? x : y;
}

/* --- Operators ---------------------------------------------------------------------------------------------------*/

/* The type that a functor combines two of its values to. */
template <class Functor>
using gk__combined = decltype(std::declval<const Functor &>()(std::declval<const Functor &>().identity(),
                                                              std::declval<const Functor &>().identity()));
/* Whether Functor is an operator: it has operator() and identity(). If not, an assertion in gk__functor_of says so, and
 * a placeholder, which is a sum, takes its place, so that no further errors follow. */
template <class Functor, class = void> struct gk__is_operator : std::false_type {};
template <class Functor>
struct gk__is_operator<Functor, decltype(static_cast<void>(std::declval<gk__combined<Functor>>()))> : std::true_type {};
template <class Acc> struct gk__placeholder : gk_sum<Acc> {
  template <class Operator> GK__HD gk__placeholder(const Operator &) {}
};
/* The type that a functor works in: that of its identity. */
template <class Functor> struct gk__working {
  typedef typename std::decay<decltype(std::declval<const Functor &>().identity())>::type type;
};

/* Whether values of type Acc suit a functor: it works in that type. Without identity() a functor has no such type. */
template <class Functor, class Acc, bool HasType = gk__is_operator<Functor>::value>
struct gk__works_in : std::true_type {};
template <class Functor, class Acc>
struct gk__works_in<Functor, Acc, true> : std::is_same<typename gk__working<Functor>::type, Acc> {};
template <class Functor, bool HasType = gk__is_operator<Functor>::value> struct gk__is_closed : std::true_type {};
template <class Functor>
struct gk__is_closed<Functor, true> : gk__works_in<Functor, typename std::decay<gk__combined<Functor>>::type> {};

/* What a tag stands for: a functor, in gk__widened or gk__carried types. Indexed: it combines values of type gk_arg. */
template <class Operator> struct gk__tag { static const bool is_tag = false; };
template <template <class> class Functor, template <class> class Reduced, bool Indexed> struct gk__tag_of {
  static const bool is_tag = true, is_indexed = Indexed;
  template <class Item> struct functor {
    typedef Functor<typename Reduced<Item>::type> reduce;
    typedef Functor<typename gk__carried<Item>::type> scan;
  };
};
template <> struct gk__tag<gk_op_sum> : gk__tag_of<gk_sum, gk__widened, false> {};
template <> struct gk__tag<gk_op_prod> : gk__tag_of<gk_prod, gk__widened, false> {};
template <> struct gk__tag<gk_op_min> : gk__tag_of<gk_min, gk__carried, false> {};
template <> struct gk__tag<gk_op_max> : gk__tag_of<gk_max, gk__carried, false> {};
template <> struct gk__tag<gk_op_argmin> : gk__tag_of<gk_argmin, gk__carried, true> {};
template <> struct gk__tag<gk_op_argmax> : gk__tag_of<gk_argmax, gk__carried, true> {};

/* The functor that an operator stands for. Item is the type of the input in a reduction, of the output in a scan. */
template <class Operator, class Item, bool Tag = gk__tag<Operator>::is_tag> struct gk__functor {
  typedef gk__placeholder<typename gk__carried<Item>::type> placeholder;
  typedef typename std::conditional<gk__is_operator<Operator>::value, Operator, placeholder>::type reduce, scan;
};
template <class Tag, class Item> struct gk__functor<Tag, Item, true> : gk__tag<Tag>::template functor<Item> {};
template <class Functor, class Operator> GK__HD Functor gk__functor_of(const Operator &operation) {
  static_assert(gk__tag<Operator>::is_tag || gk__is_operator<Operator>::value,
                "an operator is gk_op_sum() or another tag, or a functor with A operator()(A, A) const and "
                "A identity() const, both __host__ __device__ (section 6 of gpukit.cuh)");
  static_assert(gk__is_closed<Operator>::value, "the functor's operator() and identity() return different types");
  return Functor(operation);
}

/* How a warp or a block combines values of type Acc: it widens them to the working type, applies the functor, and
 * narrows the result. A functor of the user's works in Acc itself. */
template <class Operator, class Acc, bool Tag = gk__tag<Operator>::is_tag> struct gk__combination {
  typedef Operator functor;
  typedef Acc working;
  static GK__D const Acc &widen(const Acc &value) {
    static_assert(
        gk__works_in<Operator, Acc>::value,
        "in a warp or a block a functor combines values of its own type, which identity() returns: cast them");
    return value;
  }
  static GK__D const Acc &narrow(const Acc &value) { return value; }
};
/* A tag stands for the functor for Acc, which for half types works in float. */
template <class Tag, class Acc> struct gk__combination<Tag, Acc, true> {
  static const bool suits = gk__is_arg<Acc>::value || !gk__tag<Tag>::is_indexed;
  typedef typename gk__functor<typename std::conditional<suits, Tag, gk_op_sum>::type, Acc>::scan functor;
  typedef typename gk__working<functor>::type working;
  static GK__D working widen(const Acc &value) {
    static_assert(suits, "gk_op_argmin and gk_op_argmax in a warp or a block combine values that know their indices, "
                         "such as gk_arg<float>{value, index}");
    return gk__convert<working, Acc>::from(value);
  }
  static GK__D Acc narrow(const working &value) { return gk__convert<Acc, working>::from(value); }
};

/* --- Warp --------------------------------------------------------------------------------------------------------*/

/* The mask of the first lanes, for instructions that synchronise these. */
GK__D unsigned gk__lane_mask(unsigned lane_count) { return 0xffffffffu >> (32 - lane_count); }

/* The value of another lane, word by word: of lane `from`; or, with Relative, of lane + `from`, and the lane's own
 * value if there is no such lane. Relative needs a lane_count that is a power of two. */
template <bool Relative, class Acc> GK__D Acc gk__shuffle(const Acc &value, unsigned from, unsigned lane_count) {
  const unsigned words = (sizeof(Acc) + 3) / 4, lane_mask = gk__lane_mask(lane_count);
  unsigned word[words];
  word[words - 1] = 0;
  memcpy(word, &value, sizeof(Acc));
  GK__UNROLL
  for (unsigned i = 0; i < words; i++)
    word[i] = Relative ? __shfl_down_sync(lane_mask, word[i], from, static_cast<int>(lane_count))
                       : __shfl_sync(lane_mask, word[i], static_cast<int>(from));
  Acc result(value);
  memcpy(static_cast<void *>(&result), word, sizeof(Acc));
  return result;
}
template <class Acc> GK__D Acc gk_shuffle(const Acc &value, unsigned from_lane, unsigned lane_count) {
  return gk__shuffle<false>(value, from_lane, lane_count);
}

/* A tree: before each step lane i has combined the lanes i ... i + distance - 1; the step appends the value of lane
 * i + distance. If lane_count is a power of two, lanes for which there is no such lane combine their own value with
 * itself. That takes no test, and the result does not reach lane 0. */
template <class Acc, class Operator>
GK__D Acc gk__warp_reduce(Acc value, const Operator &operation, unsigned lane_count) {
  const unsigned lane_id = gk_lane();
  const bool is_power_of_two = (lane_count & (lane_count - 1)) == 0;
  GK__UNROLL
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const bool combines = is_power_of_two ? distance < lane_count : lane_id + distance < lane_count;
    const Acc other = is_power_of_two ? gk__shuffle<true>(value, distance, lane_count)
                                      : gk__shuffle<false>(value, combines ? lane_id + distance : lane_id, lane_count);
    if (combines) value = operation(value, other);
  }
  return gk_shuffle(value, 0, lane_count);
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* Argmin and argmax of integers of up to 32 bits and of floats use the warp's integer minimum and maximum. The sort key
 * of a value is an integer in the order of gk__before_nan_first: +0 and -0 have the same one, and NaNs the first. */
template <bool Greatest, class Integer> GK__D int gk__sort_key(Integer x) {
  return static_cast<int>(static_cast<unsigned>(x) ^ (std::is_signed<Integer>::value ? 0 : 0x80000000u));
}
template <bool Greatest> GK__D int gk__sort_key(float x) {
  const int bits = __float_as_int(gk__arithmetic<float>::add(x, 0.0f)); /* -0 + 0 is +0 */
  if (gk__is_nan(x)) return Greatest ? 0x7fffffff : -0x7fffffff - 1;
  return bits < 0 ? bits ^ 0x7fffffff : bits;
}
/* First the best key, then the least index among the lanes that have it: its upper half, then its lower one. */
template <bool Greatest, class Value>
GK__D gk_arg<Value> gk__warp_reduce_arg(const gk_arg<Value> &x, unsigned lane_count) {
  const unsigned lane_mask = gk__lane_mask(lane_count);
  const int key = gk__sort_key<Greatest>(x.value);
  const int best_key = Greatest ? __reduce_max_sync(lane_mask, key) : __reduce_min_sync(lane_mask, key);
  const unsigned long long index = x.index, no_index = ~0ull;
  const unsigned upper = static_cast<unsigned>((key == best_key ? index : no_index) >> 32);
  const unsigned least_upper = __reduce_min_sync(lane_mask, upper);
  const bool is_candidate = key == best_key && upper == least_upper;
  const unsigned lower = is_candidate ? static_cast<unsigned>(index) : 0xffffffffu;
  const unsigned least_lower = __reduce_min_sync(lane_mask, lower);
  const unsigned winners = __ballot_sync(lane_mask, is_candidate && lower == least_lower);
  return gk_arg<Value>{gk_shuffle(x.value, 31u - static_cast<unsigned>(__clz(static_cast<int>(winners))), lane_count),
                       static_cast<size_t>(static_cast<unsigned long long>(least_upper) << 32 | least_lower)};
}
template <class Value>
using gk__if_sort_key =
    typename std::enable_if<std::is_same<Value, float>::value || (std::is_integral<Value>::value && sizeof(Value) <= 4),
                            gk_arg<Value>>::type;
template <class Value>
GK__D gk__if_sort_key<Value> gk__warp_reduce(const gk_arg<Value> &x, const gk_argmin<Value> &, unsigned lane_count) {
  return gk__warp_reduce_arg<false>(x, lane_count);
}
template <class Value>
GK__D gk__if_sort_key<Value> gk__warp_reduce(const gk_arg<Value> &x, const gk_argmax<Value> &, unsigned lane_count) {
  return gk__warp_reduce_arg<true>(x, lane_count);
}
#endif
template <class Acc, class Operator> GK__D Acc gk_warp_reduce(Acc value, Operator operation, unsigned lane_count) {
  typedef gk__combination<Operator, Acc> combination;
  return combination::narrow(
      gk__warp_reduce(combination::widen(value), typename combination::functor(operation), lane_count));
}

template <class Acc, class Operator>
GK__D Acc gk_warp_scan_inclusive(Acc value, Operator operation, unsigned lane_count) {
  typedef gk__combination<Operator, Acc> combination;
  const typename combination::functor functor(operation);
  typename combination::working running = combination::widen(value);
  const unsigned lane_id = gk_lane();
  GK__UNROLL
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const auto other = gk_shuffle(running, lane_id < distance ? lane_id : lane_id - distance, lane_count);
    if (lane_id >= distance) running = functor(other, running);
  }
  return combination::narrow(running);
}
/* The value of the lane before; lane 0 gets its own. */
template <class Acc> GK__D Acc gk__previous_lane(const Acc &value, unsigned lane_count = 32) {
  return gk_shuffle(value, gk_lane() ? gk_lane() - 1 : 0, lane_count);
}
template <class Acc, class Operator>
GK__D Acc gk_warp_scan_exclusive(Acc value, Operator operation, unsigned lane_count) {
  typedef gk__combination<Operator, Acc> combination;
  const typename combination::functor functor(operation);
  const auto before =
      gk__previous_lane(gk_warp_scan_inclusive(combination::widen(value), functor, lane_count), lane_count);
  return combination::narrow(gk_lane() ? before : functor.identity());
}

/* --- Block -------------------------------------------------------------------------------------------------------*/

/* Item *name points to item_count Items in shared memory: bytes, as types with constructors cannot be __shared__. */
#define GK__SHARED(Item, name, item_count)                                                                             \
  alignas(16) alignas(Item) __shared__ unsigned char name##_bytes[(item_count) * sizeof(Item)];                        \
  Item *const name = reinterpret_cast<Item *>(name##_bytes)

/* Threads is the number of threads in the block if it is known at compile time, and otherwise 0. */
template <unsigned Threads> GK__D unsigned gk__block_size() { return Threads ? Threads : gk_block_size(); }
/* The number of threads in this warp: less than 32 in the last one if the block's size is no multiple of 32. */
template <unsigned Threads> GK__D unsigned gk__warp_size() {
  if (Threads % 32 == 0 && Threads) return 32;
  const unsigned remaining = gk__block_size<Threads>() - gk_warp() * 32;
  return remaining < 32 ? remaining : 32;
}

/* The first threads of the block, as many as it has warps, get the combination of all values; in a block of one warp
 * all threads do. What others get is not specified. warp_value has room for one value of each warp. If there are
 * several warps, there is one barrier. */
template <unsigned Threads, class Acc, class Operator>
GK__D Acc gk__first_warp_reduce(Acc value, Operator operation, Acc *warp_value) {
  const unsigned warp_count = gk_ceil_div(gk__block_size<Threads>(), 32u);
  value = gk_warp_reduce(value, operation, gk__warp_size<Threads>());
  if (warp_count == 1) return value;
  if (gk_lane() == 0) warp_value[gk_warp()] = value;
  __syncthreads();
  return gk_thread_rank() < warp_count ? gk_warp_reduce(warp_value[gk_lane()], operation, warp_count) : value;
}
/* The next call may follow without a barrier: it writes warp_value after every thread of the first warp has read that
 * here and reached the second barrier, and total_value after a barrier of its own. */
template <unsigned Threads, class Acc, class Operator> GK__D Acc gk_block_reduce(Acc value, Operator operation) {
  typedef gk__combination<Operator, Acc> combination;
  typedef typename combination::working Working;
  GK__SHARED(Working, warp_value, 32);
  GK__SHARED(Working, total_value, 1);
  const typename combination::functor functor(operation);
  const Working total = gk__first_warp_reduce<Threads, Working>(combination::widen(value), functor, warp_value);
  if (gk__block_size<Threads>() <= 32) return combination::narrow(total);
  if (gk_thread_rank() == 0) *total_value = total;
  __syncthreads();
  return combination::narrow(*total_value);
}

/* Each warp scans its values and stores its total in warp_prefix[warp + 1]. The first warp scans these totals, so that
 * warp_prefix[warp] becomes the combination of all warps before. */
template <unsigned Threads, class Acc, class Operator>
GK__D Acc gk__block_scan(const Acc &value, const Operator &operation, Acc *total, bool inclusive) {
  typedef gk__combination<Operator, Acc> combination;
  typedef typename combination::working Working;
  GK__SHARED(Working, warp_prefix, 33);
  const typename combination::functor functor(operation);
  const unsigned warp_count = gk_ceil_div(gk__block_size<Threads>(), 32u), lane_count = gk__warp_size<Threads>();
  const Working own = combination::widen(value), with_own = gk_warp_scan_inclusive(own, functor, lane_count);
  if (gk_lane() == lane_count - 1) warp_prefix[gk_warp() + 1] = with_own;
  const Working before_in_warp = gk__previous_lane(with_own, lane_count);
  __syncthreads();
  if (gk_thread_rank() < warp_count) {
    const Working next_prefix = gk_warp_scan_inclusive(warp_prefix[gk_lane() + 1], functor, warp_count);
    warp_prefix[gk_lane() + 1] = next_prefix;
    if (gk_lane() == 0) warp_prefix[0] = functor.identity();
  }
  __syncthreads();
  const Working prefix = warp_prefix[gk_warp()];
  if (total) *total = combination::narrow(warp_prefix[warp_count]);
  __syncthreads();
  const Working before = gk_lane() ? functor(prefix, before_in_warp) : prefix;
  return combination::narrow(inclusive ? functor(before, own) : before);
}
template <unsigned Threads, class Acc, class Operator>
GK__D Acc gk_block_scan_inclusive(Acc value, Operator operation, typename gk__same<Acc>::type *total) {
  return gk__block_scan<Threads>(value, operation, total, true);
}
template <unsigned Threads, class Acc, class Operator>
GK__D Acc gk_block_scan_exclusive(Acc value, Operator operation, typename gk__same<Acc>::type *total) {
  return gk__block_scan<Threads>(value, operation, total, false);
}

/* The smallest power of two that is at least n: all bits below the highest one of n - 1 are set, then 1 is added. This
 * is not recursive, since nvcc cannot determine the stack size of recursive functions in debug builds. */
constexpr __host__ __device__ unsigned gk__or_shifted(unsigned n, unsigned shift) { return n | n >> shift; }
constexpr __host__ __device__ unsigned gk__power_of_two(unsigned n) {
  return gk__or_shifted(gk__or_shifted(gk__or_shifted(gk__or_shifted(gk__or_shifted(n - 1, 1), 2), 4), 8), 16) + 1;
}
/* A balanced binary tree over the elements, padded with identities to a power of two. On the way up (the first loop)
 * each node's right end gets the combination of its two children. On the way down a node's prefix goes to its left
 * child, and combined with the left child's value to its right one. */
template <class Acc, class Operator> GK__D Acc gk_block_scan_blelloch(Acc *data, unsigned n, Operator operation) {
  typedef gk__combination<Operator, Acc> combination;
  const typename combination::functor functor(operation);
  const auto combine = [&functor](const Acc &x, const Acc &y) {
    return combination::narrow(functor(combination::widen(x), combination::widen(y)));
  };
  const Acc identity = combination::narrow(functor.identity());
  const unsigned rank = gk_thread_rank(), thread_count = gk_block_size(), padded_size = gk__power_of_two(n);
  if (n < padded_size) __syncthreads(); /* other threads may still read what the padding overwrites */
  for (unsigned i = n + rank; i < padded_size; i += thread_count) data[gk_bank(i)] = identity;
  for (unsigned child_size = 1; child_size < padded_size; child_size *= 2) {
    __syncthreads();
    for (unsigned i = rank; i < padded_size / 2 / child_size; i += thread_count) {
      const unsigned left_idx = gk_bank((2 * i + 1) * child_size - 1),
                     right_idx = gk_bank((2 * i + 2) * child_size - 1);
      data[right_idx] = combine(data[left_idx], data[right_idx]);
    }
  }
  __syncthreads();
  const Acc total = data[gk_bank(padded_size - 1)];
  __syncthreads();
  if (rank == 0) data[gk_bank(padded_size - 1)] = identity;
  for (unsigned child_size = padded_size / 2; child_size > 0; child_size /= 2) {
    __syncthreads();
    for (unsigned i = rank; i < padded_size / 2 / child_size; i += thread_count) {
      const unsigned left_idx = gk_bank((2 * i + 1) * child_size - 1),
                     right_idx = gk_bank((2 * i + 2) * child_size - 1);
      const Acc prefix = data[right_idx], left_value = data[left_idx];
      data[left_idx] = prefix;
      data[right_idx] = combine(prefix, left_value);
    }
  }
  __syncthreads();
  return total;
}

/* --- Tile --------------------------------------------------------------------------------------------------------*/

template <bool Transposed, int LoadRows, int LoadCols, class Stored, int Rows, int Pitch, class Item>
GK__D void gk__tile_load(Stored (&shared_tile)[Rows][Pitch], const Item *from, size_t leading_dim, size_t row0,
                         size_t col0, size_t row_count, size_t col_count) {
  static_assert((Transposed ? LoadCols : LoadRows) <= Rows && (Transposed ? LoadRows : LoadCols) <= Pitch,
                "gk_tile_load, gk_tile_load_transposed: the shared tile is smaller than what is to be loaded");
  for (unsigned i = gk_thread_rank(); i < LoadRows * LoadCols; i += gk_block_size()) {
    const unsigned r = i / LoadCols, c = i % LoadCols;
    const size_t row_idx = row0 + r, col_idx = col0 + c;
    const bool is_inside = row_idx < row_count && col_idx < col_count;
    shared_tile[Transposed ? c : r][Transposed ? r : c] =
        is_inside ? gk__convert<Stored, Item>::from(from[row_idx * leading_dim + col_idx])
                  : gk__convert<Stored, float>::from(0.0f);
  }
}
template <int LoadRows, int LoadCols, class Stored, int Rows, int Pitch, class Item>
GK__D void gk_tile_load(Stored (&shared_tile)[Rows][Pitch], const Item *from, size_t leading_dim, size_t row0,
                        size_t col0, size_t row_count, size_t col_count) {
  gk__tile_load<false, LoadRows, LoadCols>(shared_tile, from, leading_dim, row0, col0, row_count, col_count);
}
template <int LoadRows, int LoadCols, class Stored, int Rows, int Pitch, class Item>
GK__D void gk_tile_load_transposed(Stored (&shared_tile)[Rows][Pitch], const Item *from, size_t leading_dim,
                                   size_t row0, size_t col0, size_t row_count, size_t col_count) {
  gk__tile_load<true, LoadRows, LoadCols>(shared_tile, from, leading_dim, row0, col0, row_count, col_count);
}

template <class Acc, int TileRows, int TileCols, int ThreadRows, int ThreadCols>
GK__D gk_tile<Acc, TileRows, TileCols, ThreadRows, ThreadCols>::gk_tile() {
  const int warp_id = static_cast<int>(gk_warp()), lane_id = static_cast<int>(gk_lane());
  const int warps_per_row = TileCols / (8 * ThreadCols);
  first_row = warp_id / warps_per_row * (4 * ThreadRows) + lane_id / 8 * vector_m;
  first_col = warp_id % warps_per_row * (8 * ThreadCols) + lane_id % 8 * vector_n;
  clear();
}
template <class Acc, int TileRows, int TileCols, int ThreadRows, int ThreadCols>
GK__D void gk_tile<Acc, TileRows, TileCols, ThreadRows, ThreadCols>::clear() {
  GK__UNROLL
  for (int i = 0; i < ThreadRows; i++) {
    GK__UNROLL
    for (int j = 0; j < ThreadCols; j++) value[i][j] = Acc(0);
  }
}

/* A vector: Width values, which one instruction loads or stores. */
template <class Acc, int Width> struct GK__MAY_ALIAS __align__(sizeof(Acc) * Width) gk__vector { Acc value[Width]; };

template <class Acc, int TileRows, int TileCols, int ThreadRows, int ThreadCols, int TileDepth, int PitchA, int PitchB>
GK__D void gk_tile_multiply(gk_tile<Acc, TileRows, TileCols, ThreadRows, ThreadCols> &acc,
                            const Acc (&a_tile)[TileDepth][PitchA], const Acc (&b_tile)[TileDepth][PitchB], int depth) {
  typedef gk_tile<Acc, TileRows, TileCols, ThreadRows, ThreadCols> tile_of;
  typedef gk__vector<Acc, tile_of::vector_m> vector_a;
  typedef gk__vector<Acc, tile_of::vector_n> vector_b;
  static_assert(TileRows <= PitchA && TileCols <= PitchB && PitchA % tile_of::vector_m == 0 &&
                    PitchB % tile_of::vector_n == 0,
                "gk_tile_multiply: the rows of a shared tile must hold the tile and keep vectors of 16 bytes aligned");
  GK__UNROLL_BY(ThreadRows * ThreadCols < 64 ? 8 : 2) /* larger factors need more registers than a thread has */
  for (int k = 0; k < depth; k++) {
    vector_a a[ThreadRows / tile_of::vector_m];
    vector_b b[ThreadCols / tile_of::vector_n];
    GK__UNROLL
    for (int i = 0; i < ThreadRows; i += tile_of::vector_m)
      a[i / tile_of::vector_m] = *reinterpret_cast<const vector_a *>(&a_tile[k][acc.row_idx(i)]);
    GK__UNROLL
    for (int j = 0; j < ThreadCols; j += tile_of::vector_n)
      b[j / tile_of::vector_n] = *reinterpret_cast<const vector_b *>(&b_tile[k][acc.col_idx(j)]);
    GK__UNROLL
    for (int i = 0; i < ThreadRows; i++) {
      GK__UNROLL
      for (int j = 0; j < ThreadCols; j++)
        acc.value[i][j] = gk__fma(a[i / tile_of::vector_m].value[i % tile_of::vector_m],
                                  b[j / tile_of::vector_n].value[j % tile_of::vector_n], acc.value[i][j]);
    }
  }
}

template <class Acc, int TileRows, int TileCols, int ThreadRows, int ThreadCols, int Rows, int PitchA, int TileDepth,
          int PitchB>
GK__D void gk_tile_multiply_rows(gk_tile<Acc, TileRows, TileCols, ThreadRows, ThreadCols> &acc,
                                 const Acc (&a_tile)[Rows][PitchA], const Acc (&b_tile)[TileDepth][PitchB], int depth) {
  static_assert(TileRows <= Rows && TileDepth <= PitchA && TileCols <= PitchB,
                "gk_tile_multiply_rows: a_tile[row][k] has the rows of the tile, and b_tile[k][col] its columns");
  GK__UNROLL_BY(ThreadRows * ThreadCols < 64 ? 8 : 2)
  for (int k = 0; k < depth; k++) {
    Acc a[ThreadRows], b[ThreadCols];
    GK__UNROLL
    for (int i = 0; i < ThreadRows; i++) a[i] = a_tile[acc.row_idx(i)][k];
    GK__UNROLL
    for (int j = 0; j < ThreadCols; j++) b[j] = b_tile[k][acc.col_idx(j)];
    GK__UNROLL
    for (int i = 0; i < ThreadRows; i++) {
      GK__UNROLL
      for (int j = 0; j < ThreadCols; j++) acc.value[i][j] = gk__fma(a[i], b[j], acc.value[i][j]);
    }
  }
}

/* Stores whole vectors where all rows of the tile begin at multiples of a vector's size. */
template <class Acc, int TileRows, int TileCols, int ThreadRows, int ThreadCols, class Out>
GK__D void gk_tile_store(const gk_tile<Acc, TileRows, TileCols, ThreadRows, ThreadCols> &acc, Out *c, size_t ldc,
                         size_t row0, size_t col0, size_t m, size_t n, typename gk__same<Acc>::type alpha,
                         typename gk__same<Acc>::type beta) {
  typedef gk_tile<Acc, TileRows, TileCols, ThreadRows, ThreadCols> tile_of;
  typedef gk__vector<Out, tile_of::vector_n> vector_c;
  const bool is_aligned = reinterpret_cast<uintptr_t>(c + col0) % sizeof(vector_c) == 0 && ldc % tile_of::vector_n == 0;
  GK__UNROLL
  for (int i = 0; i < ThreadRows; i++) {
    const size_t row_idx = row0 + static_cast<size_t>(acc.row_idx(i));
    if (row_idx >= m) continue;
    GK__UNROLL
    for (int j = 0; j < ThreadCols; j += tile_of::vector_n) {
      const size_t col_idx = col0 + static_cast<size_t>(acc.col_idx(j));
      Out *const dest = c + row_idx * ldc + col_idx;
      Acc result[tile_of::vector_n];
      GK__UNROLL
      for (int r = 0; r < tile_of::vector_n; r++) {
        result[r] = gk__mul(alpha, acc.value[i][j + r]);
        if (beta != Acc(0) && col_idx + static_cast<size_t>(r) < n)
          result[r] = gk__fma(beta, gk__convert<Acc, Out>::from(dest[r]), result[r]);
      }
      if (is_aligned && col_idx + tile_of::vector_n <= n) {
        vector_c whole;
        GK__UNROLL
        for (int r = 0; r < tile_of::vector_n; r++) whole.value[r] = gk__convert<Out, Acc>::from(result[r]);
        *reinterpret_cast<vector_c *>(dest) = whole;
      } else {
        GK__UNROLL
        for (int r = 0; r < tile_of::vector_n; r++)
          if (col_idx + static_cast<size_t>(r) < n) dest[r] = gk__convert<Out, Acc>::from(result[r]);
      }
    }
  }
}

/* ====================================================================================================================
 * 16. BETWEEN BLOCKS: how the blocks of one launch pass values to each other without a second launch. Used by
 *    sections 17, 18 and 21. Uses the instructions of section 13, and macros of section 15.
 *
 * Ticket. A block first takes a ticket from a counter in the scratch: the number of blocks that have taken one before
 * it. A block waits for lower tickets only. Their blocks are running already, and do not wait for higher ones. So every
 * wait ends, whatever order the hardware starts blocks in and however few fit on the GPU.
 *
 * Epoch. The counter's upper half holds the number of epochs that calls have used. A call uses the next one, 1 at
 * first, and its last block increments the number. It is in device memory, so a replayed graph gets a new one, too.
 *
 * Slot. A value travels in 16-byte words: 12 bytes of the value and the epoch. Each word is written and read by one
 * access, so value and epoch arrive together: no fence, no flag, and nothing to clear between calls. (Code by CUDA
 * before 12.3, which lacks these accesses, writes the epoch last and reads it first, with a fence between.) A cleared
 * slot has epoch 0, which no call uses. After 2^32 - 1 calls epochs start again at 1, and the last block clears all
 * slots first.
 * ==================================================================================================================*/

/* The state at the front of a scratch. The lower half of a counter is the number of tickets taken in this call. Calls
 * whose slots are in the same place share a counter: scan_tickets is also for select and for rows and columns. */
struct gk__state {
  unsigned long long reduce_tickets, scan_tickets;
  unsigned scan_done; /* blocks that have finished; counted only when epochs run out, zero between calls */
};
#define GK__LAST_EPOCH 0xffffffffu
struct gk__ticket {
  unsigned number, epoch;
};
GK__D gk__ticket gk__unpack_ticket(unsigned long long count_before) {
  return {static_cast<unsigned>(count_before), static_cast<unsigned>(count_before >> 32) + 1};
}
/* Called by the one thread that has the last ticket of the call. Resets the number of tickets, and counts the epoch. */
GK__D void gk__reset_tickets(unsigned long long *counter, gk__ticket ticket) {
  atomicExch(counter, ticket.epoch == GK__LAST_EPOCH ? 0ull : static_cast<unsigned long long>(ticket.epoch) << 32);
}

/* 16 bytes of memory, whatever their type. */
struct GK__MAY_ALIAS __align__(16) gk__word16 {
  unsigned word[4];
};

/* A value in 16-byte words, each of which holds 12 bytes of it and the epoch. */
template <class Acc> struct gk__slot {
  static const unsigned word16_count = (sizeof(Acc) + 11) / 12;
  gk__word16 words[word16_count];
};
/* The last parameter of kernels whose blocks pass values: a scratch; or zeros in a launch that passes none. */
template <class Acc> struct gk__slot_memory {
  gk__state *state;
  gk__slot<Acc> *slots;
  size_t capacity; /* of the slots, in 16-byte words */
};
/* One 128-bit access where PTX has it. Elsewhere the epoch is stored last, after a fence, and loaded first. */
GK__D void gk__store_word16(gk__word16 *dest, const gk__word16 &x) {
#if GK__PTX_B128
  gk__ptx_st_relaxed_gpu_b128(dest, x.word);
#else
  volatile unsigned *word = dest->word;
  for (int i = 0; i < 3; i++) word[i] = x.word[i];
  __threadfence();
  word[3] = x.word[3];
#endif
}
/* True if the word has the epoch; its 12 bytes of the value are then in x->word[0 ... 2]. */
GK__D bool gk__load_word16(gk__word16 *x, const gk__word16 *from, unsigned epoch) {
#if GK__PTX_B128
  gk__ptx_ld_relaxed_gpu_b128(from, x->word);
  return x->word[3] == epoch;
#else
  const volatile unsigned *const stored = from->word;
  if (stored[3] != epoch) return false;
  __threadfence();
  for (int i = 0; i < 3; i++) x->word[i] = stored[i];
  return true;
#endif
}
/* gk__pack makes the words of a slot from a value and an epoch, and gk__unpack reads the value from them. */
template <class Value> GK__HD void gk__pack(gk__word16 *words, const Value &value, unsigned epoch) {
  unsigned word[3 * gk__slot<Value>::word16_count] = {};
  memcpy(word, &value, sizeof(Value));
  for (unsigned i = 0; i < gk__slot<Value>::word16_count; i++)
    words[i] = gk__word16{{word[3 * i], word[3 * i + 1], word[3 * i + 2], epoch}};
}
template <class Value> GK__HD void gk__unpack(Value *value, const gk__word16 *words) {
  unsigned word[3 * gk__slot<Value>::word16_count];
  for (unsigned i = 0; i < 3 * gk__slot<Value>::word16_count; i++) word[i] = words[i / 3].word[i % 3];
  memcpy(static_cast<void *>(value), word, sizeof(Value));
}
/* Called by one thread. Whatever the slot held before is overwritten. */
template <class Acc> GK__D void gk__publish(gk__slot<Acc> *slot, const Acc &value, unsigned epoch) {
  gk__word16 x[gk__slot<Acc>::word16_count];
  gk__pack(x, value, epoch);
  GK__UNROLL
  for (unsigned i = 0; i < gk__slot<Acc>::word16_count; i++) gk__store_word16(&slot->words[i], x[i]);
}
/* A load of a slot. end() waits for it, so several loads overlap if all of them begin before the first one ends. */
template <class Acc> struct gk__slot_load {
  static const unsigned word16_count = gk__slot<Acc>::word16_count;
  gk__word16 x[word16_count];
  bool ready;
  GK__D void begin(const gk__slot<Acc> *slot, unsigned epoch) {
    ready = true;
    GK__UNROLL
    for (unsigned i = 0; i < word16_count; i++)
      if (!gk__load_word16(&x[i], &slot->words[i], epoch)) ready = false;
  }
  /* True if the slot held a value of this call, which is then in *value. any_slot: for gk__ptx_use_b128, not NULL. */
  GK__D bool end(const gk__slot<Acc> *any_slot, Acc *value) const {
#if GK__PTX_B128
    GK__UNROLL
    for (unsigned i = 0; i < word16_count; i++) gk__ptx_use_b128(any_slot, x[i].word);
#endif
    (void)any_slot;
    if (ready) gk__unpack(value, x);
    return ready;
  }
};
/* True if the slot holds a value of this call, which is then in *value. Does not wait for one. */
template <class Acc> GK__D bool gk__peek(const gk__slot<Acc> *slot, Acc *value, unsigned epoch) {
  gk__slot_load<Acc> load;
  load.begin(slot, epoch);
  return load.end(slot, value);
}
/* Called by all threads of a block, after the last use of any slot before epochs start again. */
template <class Acc> GK__D void gk__clear_slots(const gk__slot_memory<Acc> &memory) {
  volatile unsigned *const word = memory.slots->words->word;
  GK__UNROLL_BY(1)
  for (size_t i = threadIdx.x; i < 4 * memory.capacity; i += blockDim.x) word[i] = 0;
}
/* A pause between two polls of a slot: 16, 32, then always 64 ns. It leaves issue slots to the other blocks of
 * the SM, which may be those that are waited for. */
GK__D void gk__back_off(unsigned *nanoseconds) {
  __nanosleep(*nanoseconds);
  if (*nanoseconds < 64) *nanoseconds *= 2;
}

/* Called by thread 0 of a block: takes the block's ticket in a scan or a select. The block with the last ticket
 * resets the counter, unless epochs start again: then all slots are to be cleared first. */
GK__D gk__ticket gk__scan_ticket(gk__state *state) {
  const gk__ticket ticket = gk__unpack_ticket(gk__ptx_atom_add_relaxed_gpu_u64(&state->scan_tickets));
  if (ticket.number == gridDim.x - 1 && ticket.epoch != GK__LAST_EPOCH) gk__reset_tickets(&state->scan_tickets, ticket);
  return ticket;
}
/* Called by all threads of each block of the grid, at its end; each took a ticket. Only in the call that uses the last
 * epoch, the last block to get here clears all slots and resets the counter. The fences order each block's use of the
 * slots before its count, and all counts before the clearing. */
template <class Acc> GK__D void gk__restart_epochs(const gk__ticket &ticket, const gk__slot_memory<Acc> &memory) {
  __shared__ bool is_last;
  if (ticket.epoch != GK__LAST_EPOCH) return;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicInc(&memory.state->scan_done, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  gk__clear_slots(memory);
  if (threadIdx.x == 0) gk__reset_tickets(&memory.state->scan_tickets, ticket);
}

/* ====================================================================================================================
 * 17. REDUCE: one launch, in an order that depends on n, the types and the operator alone, so that the bits of a result
 *     do, too. Uses the building blocks of section 15, and the tickets and slots of section 16.
 *
 * n is divided into tiles of a fixed size, and the tiles are dealt to partitions: of P partitions, partition p has the
 * tiles p, p + P, p + 2P ... P depends on n, on the size of an element and on that of a slot. Block p reduces partition
 * p, and publishes the partial in a slot. The block with the last ticket waits for all partials and reduces these.
 *
 * The order, from the elements up (W: the number of elements in a vector of 16 bytes):
 *
 *   vector       Vector i of a tile has its elements iW ... iW + W - 1. Thread t has the vectors t, t + 256, t + 512
 *                and t + 768 of each tile of the partition.
 *   accumulator  A thread has A = min(W, 4) of them. Accumulator a folds the elements a, a + A ... of the thread's
 *                vectors from left to right, vector by vector and tile by tile, beginning with the identity.
 *   thread       The accumulators are folded from left to right.
 *   block        The threads of a warp are reduced by the tree of gk_warp_reduce (lane i appends that of lane i + 1,
 *                then i + 2, i + 4, i + 8, i + 16), and the 8 warps' values by the same tree: the partial.
 *   partials     Thread t of the last block folds the partials t, t + 256 ... from left to right, beginning with the
 *                identity; then come the same two trees.
 *
 * (argmin and argmax, and sums of bytes by gk_op_sum, which are integers, have one accumulator: any order gives them
 * the same bits.) So each element of a sum of n floats is rounded at most n / 2^19 + 24 times, and from 2^28 elements
 * on, with 2048 partitions, n / 2^21 + 30 times. A plain loop rounds it up to n times.
 *
 * An array may begin anywhere that suits its element type. If that is not at a multiple of 16 bytes, a vector is put
 * together from two 16-byte words of memory; which elements it has does not change.
 * ==================================================================================================================*/

/* --- Plan --------------------------------------------------------------------------------------------------------*/

enum {
  GK__REDUCE_THREADS = 256,
  GK__REDUCE_VECTORS = 4, /* of a thread in a tile */
  GK__REDUCE_PARTITIONS = 512,
  GK__REDUCE_MANY_PARTITIONS = 2048
};
/* From this number of tiles on there are many partitions, if their slots have room: several for each block that a GPU
 * holds at once. Memory is not equally fast for all SMs, and an SM that finishes early starts the block of another
 * partition. Slightly more partitions than resident blocks would be worse than slightly fewer. */
#define GK__REDUCE_MANY_TILES 65536u
/* Inputs of at least this many bytes are loaded with an evict-first hint: the L2 would not hold all of them anyway. */
#define GK__REDUCE_STREAMED_BYTES (size_t(64) << 20)
/* The resident blocks per SM for __launch_bounds__. On the architectures named here an SM has 2048 threads, and eight
 * blocks use all of them; other SMs have 1536 or 1024. The pairs of words of an unaligned array, the elements of a
 * computed input and large values need more registers than that leaves. */
template <bool Unaligned, class Input, class Acc> struct gk__reduce_blocks {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ != 900 && __CUDA_ARCH__ != 1000 &&                 \
    __CUDA_ARCH__ != 1030
  static const int per_sm = 4;
#else
  static const int per_sm = Unaligned || !std::is_pointer<Input>::value ? 4 : (sizeof(Acc) > 8 ? 5 : 8);
#endif
};

template <class Item> struct gk__reduce_tile {
  static const unsigned vector_width = 16 % sizeof(Item) ? 1 : 16 / sizeof(Item); /* elements of a vector */
  static const unsigned vector_stride = GK__REDUCE_THREADS * vector_width;        /* between vectors of a thread */
  static const unsigned items = GK__REDUCE_VECTORS * vector_stride;               /* elements of a tile */
};
/* The least of three limits, but at least 1. */
inline unsigned gk__least_of(size_t x, size_t y, size_t z) {
  const size_t smaller = x < y ? x : y, least = smaller < z ? smaller : z;
  return least ? static_cast<unsigned>(least) : 1;
}
/* The number of partitions. Of no elements there is one, whose partial is the identity. */
inline unsigned gk__plan_reduce(size_t n, size_t tile_items, size_t slot_bytes) {
  const size_t tiles = gk_ceil_div(n, tile_items), slots = GK__REDUCE_BYTES / slot_bytes;
  const bool are_many = tiles >= GK__REDUCE_MANY_TILES && slots >= GK__REDUCE_MANY_PARTITIONS;
  return gk__least_of(tiles, slots, are_many ? GK__REDUCE_MANY_PARTITIONS : GK__REDUCE_PARTITIONS);
}

/* --- Vectors -----------------------------------------------------------------------------------------------------*/

/* With an evict-first hint (ld.global.cs), for data that is not expected to be read again soon. */
GK__D gk__word16 gk__load_streaming(const gk__word16 *from) {
#ifdef __CUDA_ARCH__
  const uint4 all = __ldcs(reinterpret_cast<const uint4 *>(from));
  return {{all.x, all.y, all.z, all.w}};
#else
  return *from;
#endif
}

/* gk__align_vectors for a misalignment of FirstWord 32-bit words and `bits`. */
template <unsigned FirstWord, class Item, unsigned Count>
GK__D void gk__align_vectors_from(gk__word16 (&vector)[Count], const gk__word16 (&next)[Count], unsigned bits) {
  GK__UNROLL
  for (unsigned v = 0; v < Count; v++) {
    unsigned word[8];
    memcpy(word, &vector[v], sizeof(gk__word16));
    memcpy(word + 4, &next[v], sizeof(gk__word16));
    GK__UNROLL
    for (unsigned k = 0; k < 4; k++)
      vector[v].word[k] = std::alignment_of<Item>::value < 4
                              ? gk__ptx_shf_r_wrap_b32(word[FirstWord + k], word[FirstWord + k + 1], bits)
                              : word[FirstWord + k];
  }
}
/* Puts a thread's vectors together from pairs of neighbouring 16-byte words: vector[v] and next[v] become, in
 * vector[v], the 16 bytes that begin `misalignment` bytes into the first. All threads take the same branches; selecting
 * each byte by itself would cost as much as the reduction. Nested two-way branches compile to selects where only whole
 * words move; a small array of floats then takes 5 % less time than with a switch, which compiles to jumps. */
template <class Item, unsigned Count>
GK__D void gk__align_vectors(gk__word16 (&vector)[Count], const gk__word16 (&next)[Count], unsigned misalignment) {
  const unsigned bits = misalignment % 4 * 8;
  if (misalignment < 8) {
    if (misalignment < 4)
      gk__align_vectors_from<0, Item>(vector, next, bits);
    else
      gk__align_vectors_from<1, Item>(vector, next, bits);
  } else {
    if (misalignment < 12)
      gk__align_vectors_from<2, Item>(vector, next, bits);
    else
      gk__align_vectors_from<3, Item>(vector, next, bits);
  }
}

/* --- Accumulators ------------------------------------------------------------------------------------------------*/

/* Folds the first item_count elements of a vector onto a thread's accumulators. There are several, so that consecutive
 * operations do not wait for each other. i: the index of the first element. Input: a pointer, or a computed input. */
template <class Acc, unsigned Accumulators, class Input, class Operator>
GK__D void gk__accumulate_items(Acc (&accumulator)[Accumulators], const Input &item, size_t i, size_t item_count,
                                const Operator &operation) {
  typedef gk__item_type<Input> Item;
  GK__UNROLL
  for (unsigned j = 0; j < gk__reduce_tile<Item>::vector_width; j++) {
    Acc &acc = accumulator[j % Accumulators];
    if (j < item_count) acc = operation(acc, gk__lift<Acc, Item>::from(item[j], i + j));
  }
}
template <unsigned Accumulators, class Acc, class Operator>
GK__D Acc gk__fold_accumulators(const Acc (&accumulator)[Accumulators], const Operator &operation) {
  Acc value = accumulator[0];
  GK__UNROLL
  for (unsigned j = 1; j < Accumulators; j++) value = operation(value, accumulator[j]);
  return value;
}
template <class Item> GK__D void gk__unpack_vector(Item *item, const gk__word16 &vector) {
  const size_t bytes = gk__reduce_tile<Item>::vector_width * sizeof(Item);
  memcpy(static_cast<void *>(item), &vector, bytes < sizeof(vector) ? bytes : sizeof(vector));
}

/* Folds the first item_count elements of a vector; the bytes of the others are zero. In general, element by element: */
template <class Operator, class Item> struct gk__accumulate_by_items {
  static const unsigned vector_width = gk__reduce_tile<Item>::vector_width;
  static const unsigned accumulators = vector_width < 4 ? vector_width : 4;
  template <class Acc>
  static GK__D void apply(Acc (&accumulator)[accumulators], const gk__word16 &vector, size_t i, unsigned item_count,
                          const Operator &operation) {
    Item item[vector_width];
    gk__unpack_vector(item, vector);
    gk__accumulate_items(accumulator, item, i, item_count, operation);
  }
};
/* What an operator compares in the place of a value: the value itself, but a key in C calls (section 22). */
template <class Operator, class Value> GK__D Value gk__key(const Operator &, const Value &x) { return x; }
/* argmin and argmax find the best element of the vector first, and compare only that one with the accumulator, a single
 * one, because its values are large. Its index is less than any in the vector, so of equal elements the earlier one is
 * kept, and indices need not be compared. An accumulator that has no element yet takes any. */
template <class Value, bool Greatest, class Item> struct gk__accumulate_best {
  static const unsigned accumulators = 1;
  template <class Operator>
  static GK__D void apply(gk_arg<Value> *accumulator, const gk__word16 &vector, size_t i, unsigned item_count,
                          const Operator &operation) {
    Item item[gk__reduce_tile<Item>::vector_width];
    gk__unpack_vector(item, vector);
    Value best = gk__key(operation, gk__convert<Value, Item>::from(item[0]));
    unsigned best_idx = 0;
    GK__UNROLL
    for (unsigned j = 1; j < gk__reduce_tile<Item>::vector_width; j++) {
      const Value x = gk__key(operation, gk__convert<Value, Item>::from(item[j]));
      const bool better = j < item_count && gk__before_nan_first<Greatest>(x, best);
      best = better ? x : best;
      best_idx = better ? j : best_idx;
    }
    if (gk__before_nan_first<Greatest>(best, gk__key(operation, accumulator->value)) ||
        accumulator->index == static_cast<size_t>(-1))
      *accumulator = gk_arg<Value>{gk__key(operation, best), i + best_idx};
  }
};
/* Sums of bytes: four at a time, in 32 bits, which the sixteen bytes of a vector cannot overflow. */
template <class Acc, class Word> struct gk__accumulate_bytes {
  static const unsigned accumulators = 1;
  static GK__D void apply(Acc *accumulator, const gk__word16 &vector, size_t, unsigned, const gk_sum<Acc> &operation) {
    Word vector_sum = 0;
    GK__UNROLL
    for (int k = 0; k < 4; k++) vector_sum = __dp4a(static_cast<Word>(vector.word[k]), Word(0x01010101), vector_sum);
    accumulator[0] = operation(accumulator[0], static_cast<Acc>(vector_sum));
  }
};
template <class Operator, class Item,
          bool AddsIndex = gk__adds_index<typename gk__working<Operator>::type, Item>::value>
struct gk__accumulation : gk__accumulate_by_items<Operator, Item> {};
template <class Value, class Item>
struct gk__accumulation<gk_argmin<Value>, Item, true> : gk__accumulate_best<Value, false, Item> {};
template <class Value, class Item>
struct gk__accumulation<gk_argmax<Value>, Item, true> : gk__accumulate_best<Value, true, Item> {};
template <> struct gk__accumulation<gk_sum<long long>, signed char, false> : gk__accumulate_bytes<long long, int> {};
template <>
struct gk__accumulation<gk_sum<unsigned long long>, unsigned char, false>
    : gk__accumulate_bytes<unsigned long long, unsigned> {};

/* --- Tiles -------------------------------------------------------------------------------------------------------*/

/* Loads a thread's vectors of a tile: words, or for an unaligned array the pairs of words that gk__align_vectors takes.
 * words: the thread's first word of the tile. n: the elements of the array. */
template <bool Unaligned, class Item>
GK__D void gk__load_vectors(gk__word16 *vector, gk__word16 *next, const gk__word16 *words, size_t n) {
  if (n >= GK__REDUCE_STREAMED_BYTES / sizeof(Item)) {
    GK__UNROLL
    for (unsigned v = 0; v < GK__REDUCE_VECTORS; v++) {
      vector[v] = gk__load_streaming(words + v * GK__REDUCE_THREADS);
      if (Unaligned) next[v] = gk__load_streaming(words + v * GK__REDUCE_THREADS + 1);
    }
  } else {
    GK__UNROLL
    for (unsigned v = 0; v < GK__REDUCE_VECTORS; v++) {
      vector[v] = words[v * GK__REDUCE_THREADS];
      if (Unaligned) next[v] = words[v * GK__REDUCE_THREADS + 1];
    }
  }
}

/* The first tile of an array that begins `misalignment` bytes past a multiple of 16, or its last one or two. first_idx:
 * the index of the tile's first element; available: elements from there on, at most those of a tile and a vector.
 *
 * A word of memory is not read if a byte of it is outside of the array. So the first vector of the array, and the last
 * one or two, cannot be put together from words: these edge vectors go to shared memory element by element, each
 * element loaded by a thread of its own. They are the tile's vector 0 (for the array's first tile), full_end and
 * full_end + 1. All loads of the tile are issued together. */
template <class Operator, class Item, class Acc, unsigned Accumulators>
GK__D void gk__reduce_edge_tile(Acc (&accumulator)[Accumulators], const Item *tile_items, size_t first_idx,
                                unsigned available, unsigned misalignment, const Operator &operation,
                                gk__word16 *edge_vectors) {
  typedef gk__accumulation<Operator, Item> accumulation;
  const unsigned vector_width = gk__reduce_tile<Item>::vector_width, stride = gk__reduce_tile<Item>::vector_stride;
  const unsigned thread = threadIdx.x;
  const int full_begin = first_idx == 0;
  /* The second word of the array's last whole vector may end outside of the array: then it is an edge vector, too. */
  const bool last_is_edge = available % vector_width + misalignment / sizeof(Item) < vector_width;
  const int full_end = static_cast<int>(available / vector_width) - last_is_edge;
  const gk__word16 *const words =
      reinterpret_cast<const gk__word16 *>(reinterpret_cast<const char *>(tile_items) - misalignment) + thread;
  /* The first vector_width threads load the elements of vector 0, and the next ones those from vector full_end on. */
  const unsigned edge_idx =
      thread < vector_width ? thread : thread + static_cast<unsigned>(full_end - 1) * vector_width;
  Item edge_item;
  memset(static_cast<void *>(&edge_item), 0, sizeof(Item));
  if (thread < 3 * vector_width && edge_idx < available) edge_item = tile_items[edge_idx];
  gk__word16 vector[GK__REDUCE_VECTORS], next[GK__REDUCE_VECTORS];
  GK__UNROLL
  for (unsigned v = 0; v < GK__REDUCE_VECTORS; v++) {
    const int vector_idx = static_cast<int>(thread + v * GK__REDUCE_THREADS);
    vector[v] = next[v] = gk__word16();
    if (vector_idx < full_end && (v || vector_idx >= full_begin)) {
      vector[v] = words[v * GK__REDUCE_THREADS];
      next[v] = words[v * GK__REDUCE_THREADS + 1];
    }
  }
  if (thread < 3 * vector_width) reinterpret_cast<Item *>(edge_vectors)[thread] = edge_item;
  __syncthreads(); /* which does not wait for the loads of words */
  gk__align_vectors<Item>(vector, next, misalignment);
  if (static_cast<int>(thread) < full_begin) vector[0] = edge_vectors[0];
  GK__UNROLL
  for (unsigned v = 0; v < GK__REDUCE_VECTORS; v++)
    if (static_cast<int>(thread + v * GK__REDUCE_THREADS) < full_end)
      accumulation::apply(accumulator, vector[v], first_idx + thread * vector_width + v * stride, vector_width,
                          operation);
  /* The vectors full_end and full_end + 1 go to the threads whose vectors they are. */
  const unsigned edge = (thread - static_cast<unsigned>(full_end)) % GK__REDUCE_THREADS;
  const unsigned tile_pos = (static_cast<unsigned>(full_end) + edge) * vector_width;
  if (edge < 2 && tile_pos < available && tile_pos < gk__reduce_tile<Item>::items)
    accumulation::apply(accumulator, edge_vectors[1 + edge], first_idx + tile_pos,
                        available - tile_pos < vector_width ? available - tile_pos : vector_width, operation);
}

/* --- The kernel --------------------------------------------------------------------------------------------------*/

/* What one thread contributes to the partial of its block, element by element: for computed inputs, and for arrays that
 * are not loaded as 16-byte words. The order of operations is that of other arrays. If the elements of a full tile fit
 * into registers, all are loaded or computed before the first is used, so that the loads overlap: sums of float3 take
 * 0.70 of the time. Elements of 40 bytes do not fit: their sums would take 1.4 times as long (H200). */
template <class Input, class Operator, class Acc = typename gk__working<Operator>::type>
GK__D Acc gk__reduce_items(const Input &input, size_t n, const Operator &operation) {
  typedef gk__item_type<Input> Item;
  typedef gk__reduce_tile<Item> tile_of;
  const unsigned vector_width = tile_of::vector_width, vectors = GK__REDUCE_VECTORS;
  const bool fits = vectors * vector_width * sizeof(Item) <= 128;
  Acc accumulator[gk__accumulation<Operator, Item>::accumulators];
  GK__UNROLL
  for (Acc &acc : accumulator) acc = operation.identity();
  for (size_t tile_idx = blockIdx.x; tile_idx * tile_of::items < n; tile_idx += gridDim.x) {
    const size_t i = tile_idx * tile_of::items + threadIdx.x * vector_width;
    const bool is_full = fits && n - tile_idx * tile_of::items >= tile_of::items;
    Item item[vectors][vector_width];
    GK__UNROLL
    for (unsigned e = 0; e < vectors * vector_width && is_full; e++)
      item[e / vector_width][e % vector_width] =
          input[i + e / vector_width * tile_of::vector_stride + e % vector_width];
    GK__UNROLL_BY(fits ? vectors : 1)
    for (unsigned v = 0; v < vectors; v++) {
      const size_t first_idx = i + v * tile_of::vector_stride;
      if (is_full)
        gk__accumulate_items(accumulator, item[v], first_idx, vector_width, operation);
      else if (first_idx < n)
        gk__accumulate_items(accumulator, input + first_idx, first_idx, n - first_idx, operation);
    }
  }
  return gk__fold_accumulators(accumulator, operation);
}

/* The same for an array. Unaligned: the array is not aligned to 16 bytes. Each vector then spans two words, of which
 * the second is the first word of the next thread's vector. */
template <bool Unaligned, class Operator, class Item, class Acc = typename gk__working<Operator>::type>
GK__D Acc gk__reduce_partition(const Item *input, size_t n, const Operator &operation, gk__word16 *edge_vectors) {
  typedef gk__reduce_tile<Item> tile_of;
  typedef gk__accumulation<Operator, Item> accumulation;
  /* If an element's alignment is less than its size, no 16-byte word of memory need begin with an element. */
  const bool in_words = sizeof(Item) < 16 && std::alignment_of<Item>::value == sizeof(Item);
  const bool use_words = 16 % sizeof(Item) == 0 && (!Unaligned || in_words);
  /* The number of elements that fit between the last 16-byte boundary and the array. */
  const unsigned lead_items =
      Unaligned ? static_cast<unsigned>(reinterpret_cast<uintptr_t>(input) % 16 / sizeof(Item)) : 0;
  const unsigned misalignment = lead_items * sizeof(Item), thread_offset = threadIdx.x * tile_of::vector_width;
  if (!use_words) return gk__reduce_items(input, n, operation);
  const gk__word16 *const array_words =
      reinterpret_cast<const gk__word16 *>(reinterpret_cast<const char *>(input) - misalignment) + threadIdx.x;
  Acc accumulator[accumulation::accumulators];
  GK__UNROLL
  for (unsigned j = 0; j < accumulation::accumulators; j++) accumulator[j] = operation.identity();
  for (size_t tile_idx = blockIdx.x; tile_idx * tile_of::items < n; tile_idx += gridDim.x) {
    const size_t i = tile_idx * tile_of::items + thread_offset, available = n - tile_idx * tile_of::items;
    const gk__word16 *const words = array_words + tile_idx * (GK__REDUCE_VECTORS * GK__REDUCE_THREADS);
    const bool is_full = Unaligned ? tile_idx > 0 && available + lead_items >= tile_of::items + tile_of::vector_width
                                   : available >= tile_of::items;
    if (is_full) {
      gk__word16 vector[GK__REDUCE_VECTORS], next[GK__REDUCE_VECTORS];
      gk__load_vectors<Unaligned, Item>(vector, next, words, n);
      if (Unaligned) gk__align_vectors<Item>(vector, next, misalignment);
      GK__UNROLL
      for (unsigned v = 0; v < GK__REDUCE_VECTORS; v++)
        accumulation::apply(accumulator, vector[v], i + v * tile_of::vector_stride, tile_of::vector_width, operation);
    } else if (!Unaligned) {
      /* The partial tile at the array's end: one vector after the other, so as not to need more registers than a full
       * tile. */
      GK__UNROLL_BY(1)
      for (unsigned v = 0; v < GK__REDUCE_VECTORS; v++) {
        const unsigned offset = thread_offset + v * tile_of::vector_stride;
        if (available >= offset + tile_of::vector_width) {
          const gk__word16 vector = words[v * GK__REDUCE_THREADS];
          accumulation::apply(accumulator, vector, i + v * tile_of::vector_stride, tile_of::vector_width, operation);
        } else if (offset < available) {
          gk__accumulate_items(accumulator, input + i + v * tile_of::vector_stride, i + v * tile_of::vector_stride,
                               available - offset, operation);
        }
      }
    } else {
      if (tile_idx != blockIdx.x) __syncthreads(); /* edge_vectors may still be read */
      const unsigned max_available = tile_of::items + tile_of::vector_width;
      gk__reduce_edge_tile(accumulator, input + (i - thread_offset), i - thread_offset,
                           available < max_available ? static_cast<unsigned>(available) : max_available, misalignment,
                           operation, edge_vectors);
    }
  }
  return gk__fold_accumulators(accumulator, operation);
}

template <bool Unaligned, class Operator, class Item, class Func, class Acc = typename gk__working<Operator>::type>
GK__D Acc gk__reduce_partition(const gk__computed<Item, Func> &input, size_t n, const Operator &operation,
                               gk__word16 *) {
  return gk__reduce_items(input, n, operation);
}

/* Folds the slots begin, begin + stride ... below end in this order, and waits for each. Loads AtOnce slots at a time,
 * so that their latencies overlap. */
template <unsigned AtOnce, class Acc, class Operator>
GK__D Acc gk__fold_slots(const gk__slot<Acc> *slots, size_t begin, size_t end, size_t stride, unsigned epoch,
                         const Operator &operation) {
  Acc value = operation.identity();
  unsigned nanoseconds = 16;
  for (size_t i = begin; i < end; i += AtOnce * stride) {
    gk__slot_load<Acc> load[AtOnce];
    Acc partial[AtOnce];
    bool pending[AtOnce], waits = true;
    GK__UNROLL
    for (unsigned k = 0; k < AtOnce; k++) pending[k] = i + k * stride < end;
    while (waits) {
      waits = false;
      GK__UNROLL
      for (unsigned k = 0; k < AtOnce; k++)
        if (pending[k]) load[k].begin(slots + i + k * stride, epoch);
      GK__UNROLL
      for (unsigned k = 0; k < AtOnce; k++) {
        if (pending[k]) pending[k] = !load[k].end(slots, &partial[k]);
        waits = waits || pending[k];
      }
      if (waits) gk__back_off(&nanoseconds);
    }
    GK__UNROLL
    for (unsigned k = 0; k < AtOnce; k++)
      if (i + k * stride < end) value = operation(value, partial[k]);
  }
  return value;
}

/* Input: a pointer, or a computed input. */
template <bool Unaligned, class Input, class Out, class Operator, class Acc = typename gk__working<Operator>::type>
__global__ void __launch_bounds__(GK__REDUCE_THREADS, GK__RESIDENT((gk__reduce_blocks<Unaligned, Input, Acc>::per_sm)))
    gk__reduce_kernel(Input input, Out *output, size_t n, Operator operation, gk__slot_memory<Acc> memory) {
  typedef gk__item_type<Input> Item;
  GK__SHARED(Acc, warp_value, GK__REDUCE_THREADS / 32);
  static_assert(sizeof(warp_value_bytes) <= 48 * 1024 - 256, "gk_reduce: a functor's values have up to 6112 bytes");
  __shared__ gk__ticket ticket;
  __shared__ gk__word16 edge_vectors[3];
  gk__prefetch_tile(input, n, blockIdx.x * static_cast<size_t>(gk__reduce_tile<Item>::items),
                    gk__reduce_tile<Item>::items, !Unaligned);
  gk__wait_for_earlier_work();
  if (gridDim.x < GK__REDUCE_PARTITIONS) gk__let_later_work_start();
  unsigned long long count_before = 0; /* read after the partition: the atomic runs while data is loaded */
  const bool several = gridDim.x > 1;
  if (several && threadIdx.x == 0) count_before = gk__ptx_atom_add_relaxed_gpu_u64(&memory.state->reduce_tickets);
  Acc value = gk__reduce_partition<Unaligned>(input, n, operation, edge_vectors);
  if (several && threadIdx.x == 0) ticket = gk__unpack_ticket(count_before);
  value = gk__first_warp_reduce<GK__REDUCE_THREADS>(value, operation, warp_value);
  if (several && threadIdx.x == 0) gk__publish(memory.slots + blockIdx.x, value, ticket.epoch);
  if (several && ticket.number != gridDim.x - 1) return;

  /* The block with the last ticket waits for the partials and reduces them: all other blocks are running or done. */
  if (several) {
    value = gk__fold_slots<2>(memory.slots, threadIdx.x, gridDim.x, GK__REDUCE_THREADS, ticket.epoch, operation);
    __syncthreads();
    value = gk__first_warp_reduce<GK__REDUCE_THREADS>(value, operation, warp_value);
    if (ticket.epoch == GK__LAST_EPOCH) { /* before the result, which section 21 stores over the slots */
      gk__clear_slots(memory);
      __syncthreads();
    }
    if (threadIdx.x == 0) gk__reset_tickets(&memory.state->reduce_tickets, ticket);
  }
  if (threadIdx.x == 0) *output = gk__convert<Out, Acc>::from(value);
}

/* --- Launch; the checks and the scratch are also for scans -------------------------------------------------------*/

/* x * y and x + y; SIZE_MAX, which no memory has, if they overflow. */
inline size_t gk__saturated_product(size_t x, size_t y) {
  const size_t max_size = static_cast<size_t>(-1);
  return y && x > max_size / y ? max_size : x * y;
}
inline size_t gk__saturated_sum(size_t x, size_t y) { return x + y < x ? static_cast<size_t>(-1) : x + y; }
/* The elements from the first to the last one of `batch` matrices. */
inline size_t gk__matrix_extent(size_t row_count, size_t col_count, size_t leading_dim, size_t stride = 0,
                                size_t batch = 1) {
  if (row_count == 0 || col_count == 0) return 0;
  return gk__saturated_sum(
      gk__saturated_sum(gk__saturated_product(batch - 1, stride),
                        gk__saturated_product(row_count - 1, leading_dim ? leading_dim : col_count)),
      col_count);
}

/* An error if an argument is a gk_array with fewer elements than a call uses. Pointers do not know their size. */
template <class Array> cudaError_t gk__check_size(const char *, const char *, const Array &, size_t) {
  return cudaSuccess;
}
template <class Item>
cudaError_t gk__check_size(const char *call, const char *name, const gk_array<Item> &array, size_t item_count) {
  if (item_count <= array.size()) return cudaSuccess;
  return GK__INVALID("%s: %s is a gk_array of %zu elements, but the call uses %zu", call, name, array.size(),
                     item_count);
}

/* What calls require of an array of which they use item_count elements: a gk_array has as many, a pointer is not null
 * unless that is 0, it is aligned to the element type, and the device can address its memory. An empty array may begin
 * at the end of an allocation. */
template <class Array>
cudaError_t gk__check_array(const char *call, const char *name, const Array &array, size_t item_count) {
  typedef gk__item_type<Array> Item;
  const Item *const memory = gk__memory_of(gk__input_of(array));
  GK_TRY(gk__check_size(call, name, array, item_count));
  if (!gk__is_in_memory<Array>::value) return cudaSuccess;
  if (!memory && item_count)
    return GK__INVALID("%s: %s is NULL, but the call uses %zu of its elements", call, name, item_count);
  if (reinterpret_cast<uintptr_t>(memory) % std::alignment_of<Item>::value)
    return GK__INVALID("%s: %s is not aligned to its elements' %zu bytes", call, name,
                       static_cast<size_t>(std::alignment_of<Item>::value));
  return item_count ? gk__check_memory(call, name, memory) : cudaSuccess;
}
/* Begins a call: clears the detail, and checks that memory can have n elements, and the arrays. n_out: elements of the
 * output. */
template <class Input, class Output>
cudaError_t gk__begin_call(const char *call, const Input &input, size_t n, const Output &output, size_t n_out) {
  const size_t item_bytes = sizeof(gk__item_type<Input>), out_bytes = sizeof(gk__item_type<Output>);
  gk__clear_detail();
  const size_t most_bytes = item_bytes > out_bytes ? item_bytes : out_bytes;
  if (n > static_cast<size_t>(-1) / most_bytes)
    return GK__INVALID("%s: n = %zu elements of %zu bytes are more than memory can address", call, n, most_bytes);
  GK_TRY(gk__check_array(call, "input", input, n));
  GK_TRY(gk__check_array(call, "output", output, n_out));
  const void *const input_memory = gk__memory_of(gk__input_of(input)), *const output_memory = gk__input_of(output);
  if (n > 1 && n_out == n && input_memory == output_memory && item_bytes != out_bytes)
    return GK__INVALID("%s: output is input, but its elements have %zu bytes, and those of input %zu", call, out_bytes,
                       item_bytes);
  return cudaSuccess;
}

/* Whether a caller's scratch, if there is one, belongs to the current device and has `bytes` of state and slots. Every
 * call checks its scratch, even if it needs none: one that works for small arrays should not fail for large ones. */
inline cudaError_t gk__check_scratch(const char *call, const gk_scratch *given, size_t bytes) {
  if (!given) return cudaSuccess;
  int device = 0;
  if (!given->ptr) return GK__INVALID("%s: the scratch is empty: gk_scratch_create it first, or pass NULL", call);
  if (given->bytes < bytes)
    return GK__INVALID("%s: the scratch has %zu bytes, but %zu are needed: create it with at least that many", call,
                       given->bytes, bytes);
  const unsigned alignment = 32; /* of four doubles, which some GPUs load at once */
  if (reinterpret_cast<uintptr_t>(given->ptr) % alignment)
    return GK__INVALID("%s: the scratch's memory is not aligned to %u bytes, as cudaMalloc's is", call, alignment);
  GK_TRY(gk__failed(cudaGetDevice(&device), call));
  if (device != given->device)
    return GK__INVALID("%s: the scratch is of device %d, but device %d is current: each device has its own", call,
                       given->device, device);
  return cudaSuccess;
}

/* A call of a reduce, scan or select: its name, for errors, and what it runs with. */
struct gk__call {
  const char *name;
  cudaStream_t stream;
  const gk_scratch *scratch; /* the caller's, or NULL */
};
/* The scratch to use: the caller's, which must be large enough, or if that is NULL a temporary one. 0 bytes: none. */
inline cudaError_t gk__choose_scratch(const gk__call &call, size_t bytes, gk_scratch *chosen) {
  *chosen = call.scratch && bytes ? *call.scratch : gk_scratch();
  if (call.scratch || bytes == 0) return gk__check_scratch(call.name, call.scratch, bytes);
  return gk__temporary_scratch(chosen, bytes, call.name, call.stream);
}

/* After the launch: frees temporary memory, if there is any, even if the launch failed. Returns the first error. */
inline cudaError_t gk__free_temporary(cudaError_t status, void *memory, const char *call, cudaStream_t stream) {
  return memory ? gk__first_error(status, cudaFreeAsync(memory, stream), call) : status;
}

/* Launches a kernel whose last parameter is gk__slot_memory. slot_offset, in the scratch, is GK__STATE_BYTES in
 * gk_reduce, else GK__SCAN_OFFSET. bytes: of the scratch, or 0 if the kernel needs none. */
template <class Acc, class Kernel, class... Args>
cudaError_t gk__launch_with_slots(const gk__call &call, const Kernel &kernel, size_t blocks, unsigned block_threads,
                                  size_t slot_offset, size_t bytes, const Args &...args) {
  gk_scratch chosen;
  gk__slot_memory<Acc> memory = gk__slot_memory<Acc>();
  GK_TRY(gk__choose_scratch(call, bytes, &chosen));
  unsigned char *const front = static_cast<unsigned char *>(chosen.ptr);
  const size_t slot_end = slot_offset < GK__SCAN_OFFSET ? GK__SCAN_OFFSET : chosen.bytes; /* those of scans follow */
  if (front)
    memory = {reinterpret_cast<gk__state *>(front), reinterpret_cast<gk__slot<Acc> *>(front + slot_offset),
              (slot_end - slot_offset) / sizeof(gk__word16)};
  const unsigned too_many_blocks = 0x80000000u; /* such a launch fails, and says why */
  const cudaError_t status = gk__launch_kernel(call.name, kernel, gk__grid_dim(blocks, 1, too_many_blocks),
                                               block_threads, 0, call.stream, args..., memory);
  return gk__free_temporary(status, call.scratch ? NULL : front, call.name, call.stream);
}

template <class Input, class Out, class Operator>
cudaError_t gk__reduce(const gk__call &call, const Input &input, Out *output, size_t n, Operator operation,
                       unsigned partitions) {
  typedef typename gk__working<Operator>::type Acc;
  typedef gk__item_type<Input> Item;
  /* Where an array cannot be unaligned, or is not loaded as words, both are the aligned kernel. */
  const bool may_be_unaligned =
      std::is_pointer<Input>::value && 16 % sizeof(Item) == 0 && std::alignment_of<Item>::value < 16;
  const auto kernel = may_be_unaligned && reinterpret_cast<uintptr_t>(gk__memory_of(input)) % 16
                          ? GK__KERNEL(gk__reduce_kernel<may_be_unaligned, Input, Out, Operator>)
                          : GK__KERNEL(gk__reduce_kernel<false, Input, Out, Operator>);
  const size_t bytes = partitions > 1 ? gk_reduce_scratch_bytes() : 0;
  return gk__launch_with_slots<Acc>(call, kernel, partitions, GK__REDUCE_THREADS, GK__STATE_BYTES, bytes, input, output,
                                    n, operation);
}

template <class Input, class Output, class Operator>
cudaError_t gk__reduce_array(const gk__call &call, const Input &input, Output &&output, size_t n, Operator operation) {
  typedef gk__item_type<Input> Item;
  typedef typename gk__functor<Operator, Item>::reduce Functor;
  typedef typename gk__working<Functor>::type Acc;
  GK_TRY(gk__begin_call(call.name, input, n, output, 1));
  return gk__reduce(call, gk__input_of(input), gk__output_of(output), n, gk__functor_of<Functor>(operation),
                    gk__plan_reduce(n, gk__reduce_tile<Item>::items, sizeof(gk__slot<Acc>)));
}
template <class Input, class Output, class Operator>
cudaError_t gk_reduce(const Input &input, Output &&output, size_t n, Operator operation, cudaStream_t stream,
                      const gk_scratch *scratch) {
  return gk__reduce_array({"gk_reduce", stream, scratch}, input, output, n, operation);
}
/* Owns the device's copy of an array. The destructor frees it on the way out after an error; after success destroy()
 * frees it, so that an error of cudaFree is returned, too. */
template <class Item> struct gk__device_array {
  typename gk__known<Item>::type *ptr = NULL;
  size_t bytes = 0;
  ~gk__device_array() {
    if (ptr) cudaFree(ptr);
  }
  /* Refuses a host array that is NULL or that no memory can hold, before anything is allocated for it. */
  cudaError_t allocate(const char *call, const char *name, const Item *host, size_t item_count) {
    const bool too_large = item_count > static_cast<size_t>(-1) / sizeof(*ptr);
    if (too_large || (!host && item_count))
      return GK__INVALID("%s: %s, an array of %zu elements, is %s", call, name, item_count,
                         too_large ? "more than memory can address" : "NULL");
    void *memory = NULL;
    bytes = item_count * sizeof(*ptr);
    GK_TRY(gk__no_memory(cudaMalloc(&memory, bytes ? bytes : 1), call, bytes));
    ptr = static_cast<decltype(ptr)>(memory);
    return cudaSuccess;
  }
  cudaError_t copy_in(const char *call, const Item *host) const {
    return gk__failed(cudaMemcpy(ptr, gk__known_array(host), bytes, cudaMemcpyHostToDevice), call);
  }
  cudaError_t destroy(const char *call) {
    void *const freed = ptr;
    ptr = NULL;
    return gk__failed_later(cudaFree(freed), call);
  }
  cudaError_t move_out(const char *call, Item *host, cudaStream_t stream = 0) {
    void *const dest = gk__known_output(host);
    GK_TRY(gk__failed_later(gk__copy(dest, ptr, bytes, cudaMemcpyDeviceToHost, call, stream), call));
    return destroy(call);
  }
};

template <class Input, class Value, class Operator>
cudaError_t gk_reduce_value(const Input &input, Value *value, size_t n, Operator operation, cudaStream_t stream,
                            const gk_scratch *scratch) {
  const char *const call = "gk_reduce_value";
  gk__device_array<Value> result;
  gk__clear_detail();
  GK_TRY(gk__check_size(call, "input", input, n));
  if (!value) return GK__INVALID("%s: value is NULL", call);
  GK_TRY(gk__refuse_capture(call, "it waits for the stream: capture a call with an output on the device", stream));
  GK_TRY(result.allocate(call, "value", value, 1));
  GK_TRY(gk__reduce_array({call, stream, scratch}, input, result.ptr, n, operation));
  return result.move_out(call, value, stream);
}
/* The products of two arrays, rounded. */
template <class Item> struct gk__products {
  typedef typename gk__widened<Item>::type result_type;
  const Item *x, *y;
  GK__D result_type operator()(size_t i) const {
    return gk__arithmetic<result_type>::mul(gk__convert<result_type, Item>::from(x[i]),
                                            gk__convert<result_type, Item>::from(y[i]));
  }
};
template <class InputX, class InputY, class Output>
cudaError_t gk_dot(const InputX &x, const InputY &y, Output &&output, size_t n, cudaStream_t stream,
                   const gk_scratch *scratch) {
  typedef gk__item_type<InputX> Item;
  static_assert(std::is_same<Item, gk__item_type<InputY>>::value, "gk_dot: both arrays have elements of the same type");
  static_assert(gk__is_in_memory<InputX>::value && gk__is_in_memory<InputY>::value,
                "gk_dot: both arrays are in memory; of computed ones, gk_reduce_sum of a gk_computed<Item> product");
  const gk__products<Item> products = {gk__memory_of(gk__input_of(x)),
                                       reinterpret_cast<const Item *>(gk__memory_of(gk__input_of(y)))};
  GK_TRY(gk__check_array("gk_dot", "x", x, n));
  GK_TRY(gk__check_array("gk_dot", "y", y, n));
  return gk__reduce_array({"gk_dot", stream, scratch}, gk_computed<typename gk__products<Item>::result_type>(products),
                          output, n, gk_op_sum());
}

/* --- Rows and columns --------------------------------------------------------------------------------------------
 *
 * A thread has GK__MATRIX_LOADS loads of a vector in flight at a time.
 *
 * Rows: a group of threads reduces one row. The group is a part of a warp, which has a vector of the row for each of
 * its loads; or, where rows are few and long, a block, or several blocks, which are the partitions of the row. Where a
 * row has one or two vectors, the loads of a thread are of several rows.
 *
 * Columns: a thread reduces one vector of columns, in rows at a fixed distance. Neighbouring threads have neighbouring
 * vectors, at least as many as a line of memory has: a stripe. The groups of a block, and the partitions, take rows in
 * turn. There are enough groups for all columns together to keep the memory busy. Several rows of a narrow matrix are
 * read next to each other, and count as one row of that many columns (`folds`).
 *
 * All this, and so the bits, depends on row_count, col_count and the types alone.
 *
 * Blocks of several partitions publish the partial of each output in a slot of the scratch. The block with the last
 * ticket waits for all of them, as that of gk_reduce does, and folds them. */

enum {
  GK__MATRIX_LOADS = 4,    /* vectors that a thread loads at a time */
  GK__MATRIX_LINE = 8,     /* vectors of a line of memory */
  GK__MATRIX_BLOCK = 256,  /* threads of a block that holds several groups */
  GK__ROW_BLOCK = 512,     /* the most threads of a block that reduces a row */
  GK__COLUMN_BLOCK = 1024, /* the most threads of a block that reduces columns */
  GK__SHORT_ROW = 2        /* vectors */
};
/* Plans assume this many SMs and resident threads per SM on every GPU, so the bits do not depend on the device. These
 * keep the memory of a large GPU busy. */
#define GK__MATRIX_SMS 128u
#define GK__MATRIX_SM_THREADS 1024u
#define GK__MATRIX_THREADS (GK__MATRIX_SMS * GK__MATRIX_SM_THREADS)
/* With at least GK__ROWS_OF_WARPS rows, one warp for each row keeps the memory busy. The grid then has at most
 * GK__ROW_BLOCKS blocks, which loop over the rows. */
#define GK__ROWS_OF_WARPS 4096u
#define GK__ROW_BLOCKS 2048u

struct gk__matrix_plan {
  size_t row_count, col_count, leading_dim;
  bool aligned; /* every row, or every group of `folds` rows, begins at a multiple of 16 bytes */
  unsigned block_threads;
  unsigned group_bits; /* a group has 1 << group_bits threads; or, if that is more than the block has, all of it */
  /* Rows: columns between threads, between loads, and to a thread's next loads; rows between loads. */
  unsigned thread_cols, load_cols, pass_cols, load_rows;
  unsigned folds;       /* columns: rows that are read next to each other, a power of two */
  unsigned fold_factor; /* i * fold_factor >> 16 is i / col_count for each element i of these rows; 0 if folds is 1 */
  size_t stripes;       /* columns: in the matrix */
  unsigned partitions;  /* of each row, or column */
  unsigned blocks;
};
/* The exponent of the least power of two of at least x, but at most `most`. */
inline unsigned gk__bits_for(size_t x, unsigned most) {
  unsigned bits = 0;
  while (static_cast<size_t>(1) << bits < x && bits < most) bits++;
  return bits;
}
inline gk__matrix_plan gk__matrix_shape(size_t row_count, size_t col_count, size_t leading_dim) {
  gk__matrix_plan plan = gk__matrix_plan();
  plan.row_count = row_count;
  plan.col_count = col_count;
  plan.leading_dim = leading_dim ? leading_dim : col_count;
  plan.folds = 1;
  return plan;
}
inline gk__matrix_plan gk__plan_rows(gk__matrix_plan plan, unsigned vector_width, size_t slot_bytes) {
  const size_t vectors = gk_ceil_div(plan.col_count, static_cast<size_t>(vector_width));
  const size_t full_threads = gk_ceil_div(vectors, static_cast<size_t>(GK__MATRIX_LOADS)), max_threads = GK__ROW_BLOCK;
  plan.partitions =
      gk__least_of(GK__MATRIX_THREADS / max_threads / plan.row_count, gk_ceil_div(full_threads, max_threads),
                   GK__MATRIX_BYTES / slot_bytes / plan.row_count);
  const size_t blocks_per_sm = gk_ceil_div(plan.row_count * plan.partitions, static_cast<size_t>(GK__MATRIX_SMS));
  /* Blocks of less than 128 threads cost more than a second wave. */
  const size_t fitting_threads = blocks_per_sm < 8 ? GK__MATRIX_SM_THREADS / blocks_per_sm : 128;
  const unsigned row_threads = gk__least_of(fitting_threads, full_threads, max_threads) / 32 * 32;
  plan.thread_cols = vector_width;
  if (row_threads > 32 && plan.row_count < GK__ROWS_OF_WARPS) {
    plan.group_bits = gk__bits_for(max_threads, 10);
    plan.block_threads = row_threads;
    plan.load_cols = plan.partitions * row_threads * vector_width;
    plan.pass_cols = GK__MATRIX_LOADS * plan.load_cols;
    plan.blocks = static_cast<unsigned>(plan.row_count) * plan.partitions;
    return plan;
  }
  const bool is_short = vectors <= GK__SHORT_ROW;
  plan.group_bits = gk__bits_for(is_short ? vectors : full_threads, 5);
  plan.block_threads = GK__MATRIX_BLOCK;
  const unsigned groups = plan.block_threads >> plan.group_bits;
  plan.load_rows = is_short ? groups : 0;
  plan.load_cols = is_short ? 0 : vector_width << plan.group_bits;
  plan.pass_cols = GK__MATRIX_LOADS * vector_width << plan.group_bits;
  if (!is_short && plan.group_bits < 3) { /* few lanes: the vectors of each are next to each other */
    plan.load_cols = vector_width;
    plan.thread_cols = GK__MATRIX_LOADS * vector_width;
  }
  plan.blocks = gk__grid_dim(plan.row_count, is_short ? groups * GK__MATRIX_LOADS : groups, GK__ROW_BLOCKS);
  return plan;
}
inline gk__matrix_plan gk__plan_columns(gk__matrix_plan plan, unsigned vector_width, size_t slot_bytes) {
  const unsigned line = GK__MATRIX_LINE, max_threads = GK__COLUMN_BLOCK, min_threads = GK__MATRIX_BLOCK;
  while (2 * plan.folds * plan.col_count <= line * vector_width && plan.folds < plan.row_count) plan.folds *= 2;
  plan.fold_factor = plan.folds > 1 ? static_cast<unsigned>(65536 / plan.col_count) + 1 : 0;
  const size_t vectors = gk_ceil_div(plan.folds * plan.col_count, static_cast<size_t>(vector_width));
  const size_t steps = gk_ceil_div(plan.row_count, static_cast<size_t>(plan.folds) * GK__MATRIX_LOADS);
  /* The greatest power of two of groups, in all blocks, that each column can have. */
  const unsigned groups = 1u << gk__bits_for(steps, gk__bits_for(GK__MATRIX_THREADS / vectors / 2 + 1, 17));
  const unsigned wanted = groups * line;
  plan.block_threads = wanted < min_threads ? min_threads : wanted < max_threads ? wanted : max_threads;
  plan.group_bits = gk__bits_for(wanted < min_threads ? min_threads / groups : line, 10);
  plan.stripes = gk_ceil_div(vectors, static_cast<size_t>(1) << plan.group_bits);
  plan.partitions = gk__least_of(GK__MATRIX_THREADS / plan.block_threads / plan.stripes,
                                 gk_ceil_div(steps, static_cast<size_t>(plan.block_threads >> plan.group_bits)),
                                 GK__MATRIX_BYTES / slot_bytes / plan.col_count);
  plan.blocks = gk__grid_dim(plan.stripes * plan.partitions, 1, 0x7fffffffu);
  return plan;
}

/* A number of elements or rows as an int. The callers do not distinguish larger ones. */
GK__D int gk__clamped(size_t n) { return n < 0x40000000 ? static_cast<int>(n) : 0x40000000; }
/* Loads the first valid_items elements of a vector: as a word, or one by one, as computed inputs are. */
template <unsigned Width, class Input, class Item>
GK__D void gk__load_items(Item (&item)[Width], const Input &from, int valid_items, bool = false) {
  GK__UNROLL
  for (unsigned j = 0; j < Width; j++)
    if (static_cast<int>(j) < valid_items) item[j] = from[j];
}
template <unsigned Width, class Item>
GK__D void gk__load_items(Item (&item)[Width], const Item *const &from, int valid_items, bool aligned) {
  if (Width * sizeof(Item) != 16 || !aligned || valid_items < static_cast<int>(Width))
    return gk__load_items(item, from, valid_items);
  const gk__word16 word = *reinterpret_cast<const gk__word16 *>(from); /* by one load */
  gk__unpack_vector(item, word);
}
/* Called by one thread: folds its vectors of a row, of which the first one begins at first_col; of short rows one
 * vector each of the rows first_row, first_row + plan.load_rows ... */
template <class Input, class Operator, class Acc>
GK__D void gk__fold_rows(Acc (&accumulator)[GK__MATRIX_LOADS][1], const Input &input, const gk__matrix_plan &plan,
                         size_t first_row, size_t first_col, const Operator &operation) {
  typedef gk__item_type<Input> Item;
  const unsigned loads = GK__MATRIX_LOADS;
  const int rows_left = first_row < plan.row_count ? gk__clamped(plan.row_count - first_row) : 0;
  const size_t load_step = plan.load_rows * plan.leading_dim + plan.load_cols;
  const Input row_items = input + first_row * plan.leading_dim;
  for (size_t i = first_col; i < plan.col_count; i += plan.pass_cols) {
    const int cols_left = gk__clamped(plan.col_count - i);
    Item item[loads][gk__reduce_tile<Item>::vector_width];
    int valid_items[loads];
    GK__UNROLL
    for (unsigned k = 0; k < loads; k++) {
      const bool has_row = static_cast<int>(k * plan.load_rows) < rows_left;
      valid_items[k] = has_row ? cols_left - static_cast<int>(k * plan.load_cols) : 0;
      if (valid_items[k] > 0) gk__load_items(item[k], row_items + (i + k * load_step), valid_items[k], plan.aligned);
    }
    GK__UNROLL
    for (unsigned k = 0; k < loads; k++)
      if (valid_items[k] > 0)
        gk__accumulate_items(accumulator[k], item[k], i + k * plan.load_cols, static_cast<unsigned>(valid_items[k]),
                             operation);
  }
}

/* Reduces the values of a group of `lanes` lanes, a power of two. The group's first lane gets the result. */
template <class Acc, class Operator> GK__D Acc gk__reduce_lanes(Acc value, unsigned lanes, const Operator &operation) {
  for (unsigned distance = 1; distance < lanes; distance *= 2)
    value = operation(value, gk__shuffle<true>(value, distance, 32));
  return value;
}
/* Called by all threads of each block when its partials are published. The block with the last ticket folds all. */
template <class Acc, class Out, class Operator>
GK__D void gk__fold_partitions(Out *output, size_t output_count, const gk__matrix_plan &plan, gk__ticket ticket,
                               const gk__slot_memory<Acc> &memory, const Operator &operation) {
  if (ticket.number == gridDim.x - 1) {
    unsigned lanes = 1;
    while (lanes < 32 && 4 * lanes < plan.partitions) lanes *= 2; /* as many slots as a thread loads at a time */
    const unsigned groups = plan.block_threads / lanes, lane_idx = threadIdx.x % lanes;
    for (size_t first_idx = 0; first_idx < output_count; first_idx += groups) {
      const size_t i = first_idx + threadIdx.x / lanes;
      Acc value = operation.identity();
      if (i < output_count)
        value = gk__fold_slots<4>(memory.slots + i * plan.partitions, lane_idx, plan.partitions, lanes, ticket.epoch,
                                  operation);
      value = gk__reduce_lanes(value, lanes, operation);
      if (lane_idx == 0 && i < output_count) output[i] = gk__convert<Out, Acc>::from(value);
    }
    if (threadIdx.x == 0 && ticket.epoch != GK__LAST_EPOCH) gk__reset_tickets(&memory.state->scan_tickets, ticket);
  }
  gk__restart_epochs(ticket, memory);
}

template <class Input, class Out, class Operator, class Acc = typename gk__working<Operator>::type>
__global__ void __launch_bounds__(GK__ROW_BLOCK, GK__RESIDENT(2))
    gk__reduce_rows_kernel(Input input, Out *output, Operator operation, gk__matrix_plan plan,
                           gk__slot_memory<Acc> memory) {
  GK__SHARED(Acc, warp_value, GK__ROW_BLOCK / 32);
  static_assert(sizeof(warp_value_bytes) <= 48 * 1024 - 256,
                "gk_reduce_rows: a functor's values have up to 3056 bytes");
  __shared__ gk__ticket ticket;
  const bool by_block = plan.group_bits > 5, several = plan.partitions > 1;
  const unsigned thread = threadIdx.x & ((1u << plan.group_bits) - 1);
  const unsigned partition = several ? blockIdx.x % plan.partitions : 0;
  const size_t groups = by_block ? 1 : GK__MATRIX_BLOCK >> plan.group_bits;
  const size_t block_rows = plan.load_rows ? groups * GK__MATRIX_LOADS : groups;
  gk__wait_for_earlier_work();
  unsigned long long count_before = 0; /* read after the row: the atomic runs while data is loaded */
  if (several && threadIdx.x == 0) count_before = gk__ptx_atom_add_relaxed_gpu_u64(&memory.state->scan_tickets);
  for (size_t block_row = (several ? blockIdx.x / plan.partitions : blockIdx.x) * block_rows;
       block_row < plan.row_count; block_row += gridDim.x * block_rows) {
    const size_t first_row = block_row + (threadIdx.x >> plan.group_bits);
    Acc accumulator[GK__MATRIX_LOADS][1]; /* gk__accumulate_items takes an array, here of one */
    GK__UNROLL
    for (auto &acc : accumulator) acc[0] = operation.identity();
    gk__fold_rows(accumulator, input, plan, first_row,
                  (partition * plan.block_threads + thread) * static_cast<size_t>(plan.thread_cols), operation);
    GK__UNROLL
    for (unsigned k = 1; k < GK__MATRIX_LOADS && !plan.load_rows; k++)
      accumulator[0][0] = operation(accumulator[0][0], accumulator[k][0]);
    GK__UNROLL
    for (unsigned k = 0; k < (plan.load_rows ? GK__MATRIX_LOADS : 1); k++) {
      const size_t row_idx = first_row + k * plan.load_rows;
      Acc value = gk__reduce_lanes(accumulator[k][0], 1u << (by_block ? 5 : plan.group_bits), operation);
      if (k == 0 && by_block) { /* then k is always 0 */
        if (gk_lane() == 0) warp_value[gk_warp()] = value;
        if (several && threadIdx.x == 0) ticket = gk__unpack_ticket(count_before);
        __syncthreads();
        value = gk_lane() < plan.block_threads / 32 ? warp_value[gk_lane()] : operation.identity();
        value = gk__reduce_lanes(value, 32, operation);
      }
      if (thread != 0 || row_idx >= plan.row_count) continue;
      if (several)
        gk__publish(memory.slots + row_idx * plan.partitions + partition, value, ticket.epoch);
      else
        output[row_idx] = gk__convert<Out, Acc>::from(value);
    }
  }
  if (several) gk__fold_partitions(output, plan.row_count, plan, ticket, memory, operation);
}

/* Called by one thread: folds its vector of columns in the rows begin, begin + stride ..., where a row is plan.folds
 * rows of the matrix next to each other, and first_col counts in these. */
template <unsigned Width, class Input, class Operator, class Acc>
GK__D void gk__fold_columns(Acc (&accumulator)[Width], const Input &input, const gk__matrix_plan &plan,
                            size_t first_col, size_t begin, unsigned stride, const Operator &operation) {
  typedef gk__item_type<Input> Item;
  const unsigned loads = GK__MATRIX_LOADS, row_step = stride * plan.folds;
  const int folds = static_cast<int>(plan.folds), col_count = gk__clamped(plan.col_count);
  const bool has_vectors = folds == 1 || plan.leading_dim == plan.col_count;
  const size_t gap = plan.leading_dim - plan.col_count; /* between rows */
  const size_t folded_cols = plan.folds * plan.col_count, load_step = row_step * plan.leading_dim;
  if (first_col >= folded_cols) return;
  const int cols_left = gk__clamped(folded_cols - first_col);
  for (size_t first_row = begin * plan.folds; first_row < plan.row_count; first_row += loads * row_step) {
    const int rows_left = gk__clamped(plan.row_count - first_row);
    const Input row_items = input + (first_row * plan.leading_dim + first_col);
    Item item[loads][Width];
    int valid_items[loads]; /* from the vector's first element on */
    GK__UNROLL
    for (unsigned k = 0; k < loads; k++) {
      const int missing_rows = folds - rows_left + static_cast<int>(k * row_step);
      valid_items[k] = missing_rows >= folds ? 0 : cols_left - (missing_rows > 0 ? missing_rows * col_count : 0);
      if (has_vectors) {
        if (valid_items[k] > 0) gk__load_items(item[k], row_items + k * load_step, valid_items[k], plan.aligned);
        continue;
      }
      unsigned factor = plan.fold_factor;
      gk__forget(&factor); /* else the products are kept in registers during the loop */
      GK__UNROLL
      for (unsigned j = 0; j < Width; j++)
        if (static_cast<int>(j) < valid_items[k])
          item[k][j] = row_items[k * load_step + j + ((static_cast<unsigned>(first_col) + j) * factor >> 16) * gap];
    }
    GK__UNROLL
    for (unsigned k = 0; k < loads; k++) {
      GK__UNROLL
      for (unsigned j = 0; j < Width; j++) {
        const unsigned fold = (static_cast<unsigned>(first_col) + j) * plan.fold_factor >> 16;
        if (static_cast<int>(j) < valid_items[k])
          accumulator[j] =
              operation(accumulator[j], gk__lift<Acc, Item>::from(item[k][j], first_row + k * row_step + fold));
      }
    }
  }
}
/* The columns of a vector: few enough for a block's accumulators to fit into its shared memory. */
template <class Item, class Acc> struct gk__column_vector {
  static const unsigned max_width = gk__reduce_tile<Item>::vector_width;
  static const unsigned fitting_width = (32u << 10) / GK__MATRIX_BLOCK / sizeof(Acc);
  static const unsigned vector_width = fitting_width >= max_width ? max_width : fitting_width > 0 ? fitting_width : 1;
};

template <class Input, class Out, class Operator, class Acc = typename gk__working<Operator>::type>
__global__ void __launch_bounds__(GK__COLUMN_BLOCK)
    gk__reduce_columns_kernel(Input input, Out *output, Operator operation, gk__matrix_plan plan,
                              gk__slot_memory<Acc> memory) {
  typedef gk__item_type<Input> Item;
  const unsigned vector_width = gk__column_vector<Item, Acc>::vector_width, block_threads = plan.block_threads;
  GK__SHARED(Acc, shared_value, GK__MATRIX_BLOCK * vector_width);
  static_assert(sizeof(shared_value_bytes) <= 48 * 1024 - 64, "gk_reduce_columns: results of up to 188 bytes");
  __shared__ gk__ticket ticket;
  const bool several = plan.partitions > 1;
  const unsigned group_threads = 1u << plan.group_bits, thread = threadIdx.x & (group_threads - 1);
  const unsigned groups = block_threads >> plan.group_bits, stripe_cols = group_threads * vector_width;
  const unsigned stripes = static_cast<unsigned>(plan.stripes), partition = several ? blockIdx.x / stripes : 0;
  const size_t first_col = (blockIdx.x - partition * stripes) * static_cast<size_t>(stripe_cols);
  gk__wait_for_earlier_work();
  unsigned long long count_before = 0;
  if (several && threadIdx.x == 0) count_before = gk__ptx_atom_add_relaxed_gpu_u64(&memory.state->scan_tickets);
  Acc accumulator[vector_width];
  GK__UNROLL
  for (Acc &acc : accumulator) acc = operation.identity();
  gk__fold_columns(accumulator, input, plan, first_col + thread * vector_width,
                   partition * groups + (threadIdx.x >> plan.group_bits), plan.partitions * groups, operation);
  if (several && threadIdx.x == 0) ticket = gk__unpack_ticket(count_before);

  /* Combines the groups of a warp by shuffles, then the warps, or larger groups, then the rows of a fold. */
  const unsigned lane_bits = plan.group_bits < 5 ? 5 : plan.group_bits;
  GK__UNROLL
  for (unsigned j = 0; j < vector_width; j++) {
    for (unsigned distance = group_threads; distance < 32; distance *= 2)
      accumulator[j] = operation(accumulator[j], gk__shuffle<true>(accumulator[j], distance, 32));
    if ((threadIdx.x & ((1u << lane_bits) - 1)) < group_threads)
      shared_value[(threadIdx.x >> lane_bits) * stripe_cols + thread * vector_width + j] = accumulator[j];
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < stripe_cols; i += block_threads) {
    Acc value = operation.identity();
    GK__UNROLL_BY(8)
    for (unsigned g = 0; g < block_threads >> lane_bits; g++)
      value = operation(value, shared_value[g * stripe_cols + i]);
    shared_value[i] = value;
  }
  if (plan.folds > 1) __syncthreads();
  for (unsigned i = threadIdx.x; i < stripe_cols && first_col + i < plan.col_count; i += block_threads) {
    Acc value = shared_value[i];
    for (size_t k = 1; k < plan.folds; k++) value = operation(value, shared_value[k * plan.col_count + i]);
    if (several)
      gk__publish(memory.slots + (first_col + i) * plan.partitions + partition, value, ticket.epoch);
    else
      output[first_col + i] = gk__convert<Out, Acc>::from(value);
  }
  if (several) gk__fold_partitions(output, plan.col_count, plan, ticket, memory, operation);
}

/* Begins a call on a matrix of this shape: clears the detail, and checks the leading dimension, sizes and arrays. */
template <class Input, class Output>
cudaError_t gk__begin_matrix_call(const char *call, const Input &input, const Output &output,
                                  const gk__matrix_plan &shape, size_t output_count) {
  const size_t item_bytes = sizeof(gk__item_type<Input>), max_size = static_cast<size_t>(-1);
  gk__clear_detail();
  if (shape.leading_dim < shape.col_count)
    return GK__INVALID("%s: the leading dimension is %zu, but rows have %zu elements", call, shape.leading_dim,
                       shape.col_count);
  if (gk__saturated_product(gk__saturated_product(shape.row_count, shape.leading_dim), item_bytes) == max_size ||
      gk__saturated_product(output_count, sizeof(gk__item_type<Output>)) == max_size)
    return GK__INVALID("%s: %zu rows of %zu elements are more than memory can address", call, shape.row_count,
                       shape.leading_dim);
  GK_TRY(gk__check_array(call, "input", input, gk__matrix_extent(shape.row_count, shape.col_count, shape.leading_dim)));
  return gk__check_array(call, "output", output, output_count);
}
template <class Acc, class Kernel, class Input, class Output, class Functor>
cudaError_t gk__launch_matrix(const gk__call &call, const Kernel &kernel, const Input &input, Output &output,
                              gk__matrix_plan plan, size_t output_count, const Functor &operation) {
  /* From a row to the next, if there is one. */
  const size_t row_bytes = plan.row_count > 1 ? plan.leading_dim * sizeof(gk__item_type<Input>) * plan.folds : 0;
  const size_t bytes =
      plan.partitions > 1 ? GK__SCAN_OFFSET + output_count * plan.partitions * sizeof(gk__slot<Acc>) : 0;
  plan.aligned = (reinterpret_cast<uintptr_t>(gk__memory_of(gk__input_of(input))) | row_bytes) % 16 == 0;
  return gk__launch_with_slots<Acc>(call, kernel, plan.blocks, plan.block_threads, GK__SCAN_OFFSET, bytes,
                                    gk__input_of(input), gk__output_of(output), operation, plan);
}

template <class Input, class Output, class Operator>
cudaError_t gk_reduce_rows(const Input &input, Output &&output, size_t row_count, size_t col_count, size_t leading_dim,
                           Operator operation, cudaStream_t stream, const gk_scratch *scratch) {
  typedef gk__item_type<Input> Item;
  typedef typename gk__functor<Operator, Item>::reduce Functor;
  typedef typename gk__working<Functor>::type Acc;
  const gk__matrix_plan shape = gk__matrix_shape(row_count, col_count, leading_dim);
  GK_TRY(gk__begin_matrix_call("gk_reduce_rows", input, output, shape, row_count));
  if (row_count == 0) return cudaSuccess;
  const auto kernel = GK__KERNEL(gk__reduce_rows_kernel<gk__input_type<Input>, gk__item_type<Output>, Functor>);
  return gk__launch_matrix<Acc>({"gk_reduce_rows", stream, scratch}, kernel, input, output,
                                gk__plan_rows(shape, gk__reduce_tile<Item>::vector_width, sizeof(gk__slot<Acc>)),
                                row_count, gk__functor_of<Functor>(operation));
}
template <class Input, class Output, class Operator>
cudaError_t gk_reduce_columns(const Input &input, Output &&output, size_t row_count, size_t col_count,
                              size_t leading_dim, Operator operation, cudaStream_t stream, const gk_scratch *scratch) {
  typedef gk__item_type<Input> Item;
  typedef typename gk__functor<Operator, Item>::reduce Functor;
  typedef typename gk__working<Functor>::type Acc;
  const gk__matrix_plan shape = gk__matrix_shape(row_count, col_count, leading_dim);
  GK_TRY(gk__begin_matrix_call("gk_reduce_columns", input, output, shape, col_count));
  if (col_count == 0) return cudaSuccess;
  const gk__matrix_plan plan =
      gk__plan_columns(shape, gk__column_vector<Item, Acc>::vector_width, sizeof(gk__slot<Acc>));
  if (plan.blocks < plan.stripes)
    return GK__INVALID("gk_reduce_columns: %zu columns need more blocks than a grid has", col_count);
  const auto kernel = GK__KERNEL(gk__reduce_columns_kernel<gk__input_type<Input>, gk__item_type<Output>, Functor>);
  return gk__launch_matrix<Acc>({"gk_reduce_columns", stream, scratch}, kernel, input, output, plan, col_count,
                                gk__functor_of<Functor>(operation));
}

/* ====================================================================================================================
 * 18. SCAN, SELECT, DATA. A scan is one launch and one pass over the data, in an order that depends on n, the types
 *     and the operator alone. Uses the bulk copies of section 13, the building blocks of section 15, the tickets and
 *     slots of section 16, and the checks, the vectors, the shape of a matrix and the launch of section 17.
 *
 * After Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back" (2016). A block takes a
 * ticket, which is the number of its tile, so blocks are working on all earlier tiles already, in whatever order the
 * hardware started them. It loads the tile, publishes the tile's total in a slot, looks back for the prefix of the
 * tile, which is the fold of all earlier tiles, and writes the results.
 *
 * The original's look-back folds the totals and prefixes that happen to be there, so that the order of a float sum
 * depends on timing. Here it is fixed:
 *
 *   thread        A thread's consecutive elements are folded from left to right.
 *   warp          Lane i gets the total of the lanes 0 ... i by gk_warp_scan_inclusive (Hillis and Steele).
 *   tile          The totals of the 8 warps are folded from left to right: prefixes of warps, and the tile's total.
 *   group         32 tiles are a group. Its total is the tree of gk_warp_reduce over the tiles' totals.
 *   group prefix  The initial value and the totals of all earlier groups, folded from left to right.
 *   tile prefix   The group's prefix, then the tree of gk_warp_reduce over the earlier tiles of the group, where the
 *                 identity stands for the tile itself and later ones.
 *   result        The tile's prefix, then the prefix of the thread in the tile, then its elements from left to right.
 *
 * The look-back is decoupled as in the original. The block of a group's last tile publishes the next group's prefix. A
 * tile's block reads the tile totals of its own group and of the few before it (the window), a warp for each group, and
 * folds these groups' totals onto the published prefix of the oldest. That prefix is an old one, so a tile waits for
 * little more than the totals of the tiles that run at the same time. The window's size does not change the order.
 * ==================================================================================================================*/

/* --- Plan --------------------------------------------------------------------------------------------------------*/

enum { GK__SCAN_THREADS = 256, GK__SCAN_WARPS = GK__SCAN_THREADS / 32, GK__SCAN_GROUP = 32 };

/* Bytes of shared memory for an element: its size where results replace inputs, or the sizes of input and output where
 * these differ. A thread has as many elements as fit in 48 bytes up to n = GK__SCAN_SMALL_N, where the latency of a
 * tile counts, and in 176 bytes above, where the bandwidth of the memory does. Both are an odd number of 16-byte words:
 * a warp whose threads read consecutive words, each thread its own, has no bank conflicts. */
template <class Item, class Out> constexpr __host__ __device__ size_t gk__scan_item_bytes() {
  return sizeof(Item) == sizeof(Out) ? sizeof(Item) : sizeof(Item) + sizeof(Out);
}
constexpr __host__ __device__ unsigned gk__items_in(size_t bytes, size_t item_bytes) {
  return item_bytes < bytes ? static_cast<unsigned>(bytes / item_bytes) : 1;
}
constexpr __host__ __device__ unsigned gk__scan_items(size_t item_bytes, bool small_n) {
  return gk__items_in(small_n ? 48 : 176, item_bytes);
}
#define GK__SCAN_SMALL_N (size_t(1) << 21)

/* n and gk__scan_item_bytes decide items_per_thread, tiles and groups, and these the bits. An array is one row. */
struct gk__scan_plan {
  unsigned items_per_thread;
  size_t tiles, groups;
  size_t total_rows() const { return 1; }
  GK__D size_t row_of(unsigned) const { return 0; } /* a ticket's */
  GK__D size_t row_offset(size_t) const { return 0; }
};
inline gk__scan_plan gk__plan_scan_of(size_t n, unsigned items_per_thread) {
  gk__scan_plan plan = gk__scan_plan();
  plan.items_per_thread = items_per_thread;
  plan.tiles = gk_ceil_div(n, static_cast<size_t>(GK__SCAN_THREADS) * items_per_thread);
  plan.groups = gk_ceil_div(plan.tiles, static_cast<size_t>(GK__SCAN_GROUP));
  return plan;
}
inline gk__scan_plan gk__plan_scan(size_t n, size_t item_bytes, size_t most_small_n = GK__SCAN_SMALL_N) {
  return gk__plan_scan_of(n, gk__scan_items(item_bytes, n <= most_small_n));
}
/* For the rows of a matrix: tiles and groups are those of a row. Tickets count the tiles of all rows. */
struct gk__row_scan_plan : gk__scan_plan {
  size_t row_count, leading_dim;
  size_t total_rows() const { return row_count; }
  GK__D size_t row_of(unsigned ticket) const { return ticket / tiles; }
  GK__D size_t row_offset(size_t row_idx) const { return row_idx * leading_dim; }
};
/* A tile by its ticket. n: the elements of a row. */
struct gk__scan_tile {
  size_t row_idx, tile_idx; /* tile_idx: in its row */
  size_t first_idx, offset; /* of the tile's first element in its row, and from the first row on */
  unsigned item_count;
};
template <class Config>
GK__D gk__scan_tile gk__scan_tile_of(const typename Config::Plan &plan, unsigned ticket, size_t n) {
  const size_t row_idx = plan.row_of(ticket), tile_idx = ticket - row_idx * plan.tiles;
  const size_t first_idx = tile_idx * Config::tile_items;
  return gk__scan_tile{row_idx, tile_idx, first_idx, plan.row_offset(row_idx) + first_idx,
                       n - first_idx < Config::tile_items ? static_cast<unsigned>(n - first_idx) : Config::tile_items};
}

/* The bytes of a scratch, which has a slot for each tile and each group; SIZE_MAX where that is too large. */
template <class Plan> size_t gk__scan_bytes(const Plan &plan, size_t slot_bytes) {
  const size_t slots = gk__saturated_product(plan.total_rows(), plan.tiles + plan.groups);
  return gk__saturated_sum(gk__saturated_product(slots, slot_bytes), GK__SCAN_OFFSET);
}

/* The initial value, which precedes the first element, and the index of the first element, for argmin and argmax. These
 * come with the launch; gk__dist_start (section 21) reads them from device memory. */
template <class Acc> struct gk__scan_start {
  Acc initial_value;
  GK__D const Acc &value() const { return initial_value; }
  GK__D size_t index() const { return 0; }
};

/* What a kernel is compiled for: types, whether n is small, and what follows from these. In shared memory each thread
 * has consecutive elements, which it reads and writes as vectors. Results replace the inputs if both have the same
 * size; otherwise they are stored after them. */
template <class InputArray, class OutputItem, class Functor, class Initial, bool SmallN, class TilePlan = gk__scan_plan>
struct gk__scan_config {
  typedef TilePlan Plan;
  typedef InputArray Input; /* a pointer, or a computed input */
  typedef gk__item_type<InputArray> Item;
  typedef OutputItem Out;
  typedef Functor Operator;
  typedef Initial Init;
  typedef typename gk__working<Functor>::type Acc;
  static const unsigned items_per_thread = gk__scan_items(gk__scan_item_bytes<Item, Out>(), SmallN);
  static const unsigned tile_items = items_per_thread * GK__SCAN_THREADS;
  static const bool replaces_inputs = sizeof(Item) == sizeof(Out); /* in shared memory, by the results */
  /* In 16-byte words. While inputs are loaded, up to 127 bytes are before them, see gk__scan_load_offset, and the move
   * reads one word after them. */
  static const unsigned in_words = (tile_items * sizeof(Item) + 15) / 16 + 8;
  static const unsigned out_offset = replaces_inputs ? 0 : in_words;
  static const unsigned word16_count = in_words + (replaces_inputs ? 0 : (tile_items * sizeof(Out) + 15) / 16);
  static const bool has_vectors =
      replaces_inputs && 16 % sizeof(Item) == 0 && items_per_thread * sizeof(Item) % 16 == 0;
  static const unsigned vector_width = has_vectors ? 16 / sizeof(Item) : 1;
  static const bool small_n = SmallN;
  /* Groups in the look-back's window, a warp each. For large n, reading their totals takes bandwidth from the data. */
  static const unsigned window = SmallN ? GK__SCAN_WARPS - 1 : 3;
  /* For __launch_bounds__: enough to have loads in flight at all times. An SM of sm_75 has room for four. Without bulk
   * copies, loads take the registers of a fifth block. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  static const unsigned blocks_per_sm = 4;
#else
  static const unsigned blocks_per_sm = SmallN ? 6 : GK__BULK ? 5 : 4;
#endif
};

/* --- Prefixes ----------------------------------------------------------------------------------------------------*/

/* The exclusive prefix of a warp in its tile, and the tile's total. Every thread folds the totals of the warps by
 * itself, which takes less time than a scan by one warp and a second barrier. */
template <class Acc, class Operator>
GK__D Acc gk__scan_warps(const Acc *warp_total, const Operator &operation, Acc *tile_total) {
  Acc total = warp_total[0], warp_prefix = operation.identity();
  GK__UNROLL
  for (unsigned w = 1; w < GK__SCAN_WARPS; w++) {
    if (w == gk_warp()) warp_prefix = total;
    total = operation(total, warp_total[w]);
  }
  *tile_total = total;
  return warp_prefix;
}
/* Called by all threads of a block: the exclusive prefix of the thread in its tile, and the tile's total. */
template <class Acc, class Operator>
GK__D Acc gk__scan_threads(Acc thread_total, const Operator &operation, Acc *warp_total, Acc *tile_total) {
  const Acc inclusive = gk_warp_scan_inclusive(thread_total, operation);
  if (gk_lane() == 31) warp_total[gk_warp()] = inclusive;
  const Acc prefix_in_warp = gk__previous_lane(inclusive);
  __syncthreads();
  const Acc warp_prefix = gk__scan_warps(warp_total, operation, tile_total);
  return gk_lane() ? operation(warp_prefix, prefix_in_warp) : warp_prefix;
}

template <class Acc> struct gk__scan_slots {
  gk__slot<Acc> *tile_total, *group_prefix;
  unsigned epoch;
};

/* The look-back, by all threads of a block: publishes the tile's total, and returns the tile's prefix. Warp w < Window
 * waits for the tile totals of the group w groups back, or of the tile's own group before the tile, and reduces them.
 * The last warp waits for the prefix of the oldest of these groups. partial: GK__SCAN_WARPS + 1 shared values. */
template <unsigned Window, class Acc, class Init, class Operator>
GK__D Acc gk__tile_prefix(size_t tile_idx, const Acc &tile_total, const Init &init, const Operator &operation,
                          const gk__scan_plan &plan, const gk__scan_slots<Acc> &slots, Acc *partial) {
  const size_t group = tile_idx / GK__SCAN_GROUP;
  const unsigned warp_id = gk_warp(), lane_id = gk_lane(), last_warp = GK__SCAN_WARPS - 1;
  static_assert(Window < GK__SCAN_WARPS, "each group has a warp, and the prefix has one");
  const unsigned oldest = group < Window ? static_cast<unsigned>(group) : Window - 1; /* in groups back */
  const bool ends_group = tile_idx % GK__SCAN_GROUP == GK__SCAN_GROUP - 1 && group + 1 < plan.groups;
  if (threadIdx.x == 0) gk__publish(slots.tile_total + tile_idx, tile_total, slots.epoch);
  unsigned nanoseconds = 16;
  if (warp_id <= oldest) {
    const size_t earlier_tile = (group - warp_id) * GK__SCAN_GROUP + lane_id;
    Acc total = operation.identity();
    if (earlier_tile < tile_idx)
      while (!gk__peek(slots.tile_total + earlier_tile, &total, slots.epoch)) gk__back_off(&nanoseconds);
    __syncwarp();
    const Acc group_total = gk_warp_reduce(total, operation);
    if (lane_id == 0) partial[warp_id] = group_total;
    if (ends_group && warp_id == 0) {
      const Acc own_group_total = gk_warp_reduce(lane_id < GK__SCAN_GROUP - 1 ? total : tile_total, operation);
      if (lane_id == 0) partial[last_warp + 1] = own_group_total;
    }
  } else if (warp_id == last_warp && lane_id == 0) {
    Acc prefix(init.value());
    if (group > oldest)
      while (!gk__peek(slots.group_prefix + (group - oldest), &prefix, slots.epoch)) gk__back_off(&nanoseconds);
    partial[last_warp] = prefix;
  }
  __syncthreads();
  Acc prefix = partial[last_warp];
  for (unsigned w = oldest; w > 0; w--) prefix = operation(prefix, partial[w]);
  if (ends_group && threadIdx.x == 0)
    gk__publish(slots.group_prefix + (group + 1), operation(prefix, partial[last_warp + 1]), slots.epoch);
  return operation(prefix, partial[0]);
}

/* --- A tile in shared memory -------------------------------------------------------------------------------------*/

/* A tile is loaded to shared memory with the alignment that it has in global memory, so that whole 16-byte words are
 * copied, by bulk copies from sm_90 on. Then all threads move it to the front of the shared memory. The function
 * returns how many bytes after the front a tile is loaded.
 *
 * Bulk copies are slower if the two addresses differ modulo 128 bytes. A scan of 49,419,643 floats then takes up to 1.1
 * times as long as with equal ones, but only 1.03 times if they differ by a multiple of 32 bytes (H100). That is about
 * what moving the tile costs, so a tile that begins at a sector of 32 bytes is loaded to the front. */
template <class Item> GK__D unsigned gk__scan_load_offset(const Item *global) {
  const unsigned offset = static_cast<unsigned>(reinterpret_cast<uintptr_t>(global) % 128);
  return offset % (GK__BULK ? 32 : 16) ? offset : 0;
}
template <class Item, class Func> GK__D unsigned gk__scan_load_offset(const gk__computed<Item, Func> &) { return 0; }

/* The 16-byte words of global memory that lie in a tile. Computed elements have none. */
struct gk__whole_words {
  unsigned front, bytes; /* of the tile before the first word, and of all words, in bytes; both 0 if there is none */
  template <class Item> GK__D gk__whole_words(const Item *tile_begin, unsigned item_count) {
    const unsigned tile_bytes = item_count * static_cast<unsigned>(sizeof(Item));
    front = static_cast<unsigned>(-reinterpret_cast<uintptr_t>(tile_begin) % 16);
    bytes = tile_bytes > front ? (tile_bytes - front) / 16 * 16 : 0;
    if (bytes == 0) front = 0;
  }
  template <class Item, class Func> GK__D gk__whole_words(const gk__computed<Item, Func> &, unsigned) {
    front = bytes = 0;
  }
};

/* Called by all threads: loads a tile to dest, but not its whole words if bulk copies load these. No word is read that
 * has bytes outside of the tile, so the first and the last elements are copied one by one, and so are those that lie
 * partly in a whole word. */
template <class Config, class Item, class Input>
GK__D void gk__scan_load_items(Item *dest, const Input &input, unsigned item_count, const gk__whole_words &words) {
  const unsigned item_bytes = static_cast<unsigned>(sizeof(Item));
  if (!GK__BULK) {
    const unsigned words_per_thread = (Config::items_per_thread * item_bytes + 15) / 16;
    gk__word16 *const dest_words = reinterpret_cast<gk__word16 *>(reinterpret_cast<char *>(dest) + words.front);
    const gk__word16 *const from_words =
        reinterpret_cast<const gk__word16 *>(reinterpret_cast<const char *>(gk__memory_of(input)) + words.front);
    GK__UNROLL
    for (unsigned v = 0; v < words_per_thread; v++) {
      const unsigned i = v * GK__SCAN_THREADS + threadIdx.x;
      if (i * 16 < words.bytes) dest_words[i] = from_words[i];
    }
  }
  const unsigned front = (words.front + item_bytes - 1) / item_bytes, end = (words.front + words.bytes) / item_bytes;
  const unsigned loaded = end > front ? end - front : 0;
  GK__UNROLL_BY(4)
  for (unsigned rest_idx = threadIdx.x; rest_idx < item_count - loaded; rest_idx += GK__SCAN_THREADS) {
    const unsigned i = rest_idx < front ? rest_idx : rest_idx + loaded;
    dest[i] = input[i];
  }
}
/* Called by all threads: moves a tile to the front from `offset` bytes after it. A pass reads its words before the
 * barrier and writes them after it. Later passes read only words after those that it writes. */
template <class Config> GK__D void gk__scan_move_tile(gk__word16 *front, unsigned offset, unsigned item_count) {
  typedef typename Config::Item Item;
  const gk__word16 *const loaded = front + offset / 16;
  const unsigned word_count = (item_count * static_cast<unsigned>(sizeof(Item)) + 15) / 16;
  const unsigned at_once = Config::small_n ? 3 : 4;
  GK__UNROLL_BY(1)
  for (unsigned first_idx = threadIdx.x; first_idx - threadIdx.x < word_count;
       first_idx += at_once * GK__SCAN_THREADS) {
    gk__word16 word[at_once], next[at_once];
    GK__UNROLL
    for (unsigned v = 0; v < at_once; v++) {
      const unsigned pos = min(first_idx + v * GK__SCAN_THREADS, word_count - 1);
      word[v] = loaded[pos];
      next[v] = loaded[pos + 1];
    }
    gk__align_vectors<Item>(word, next, offset % 16);
    __syncthreads();
    GK__UNROLL
    for (unsigned v = 0; v < at_once; v++)
      if (first_idx + v * GK__SCAN_THREADS < word_count) front[first_idx + v * GK__SCAN_THREADS] = word[v];
  }
}

/* A word of dest is the 16 bytes that begin `shift` bytes into a word of `from` and end in the next one. By a warp. */
template <unsigned WordsPerLane, class Item>
GK__D void gk__scan_store_shifted(gk__word16 *dest, const gk__word16 *from, unsigned shift, unsigned words) {
  const unsigned at_once = WordsPerLane > 4 ? 2 : 1; /* three would take registers that the folds need */
  GK__UNROLL_BY(1)
  for (unsigned i = gk_lane(); i < words; i += at_once * 32) {
    gk__word16 word[at_once], next[at_once];
    GK__UNROLL
    for (unsigned v = 0; v < at_once; v++) {
      const unsigned pos = i + v * 32 < words ? i + v * 32 : i; /* where there is none, the first again */
      word[v] = from[pos];
      next[v] = from[pos + 1];
    }
    gk__align_vectors<Item>(word, next, shift);
    GK__UNROLL
    for (unsigned v = 0; v < at_once; v++)
      if (i + v * 32 < words) dest[i + v * 32] = word[v];
  }
}
/* Called by a warp: stores elements to global memory, most of them as 16-byte words. If their size divides 16, the
 * words begin at a sector of 32 bytes, else at a multiple of 16 bytes. If no element begins there, all go one by
 * one. */
template <class Config, class Item> GK__D void gk__scan_store_items(Item *dest, const Item *from, unsigned item_count) {
  const unsigned item_bytes = static_cast<unsigned>(sizeof(Item)), begin_at = 16 % item_bytes ? 16 : 32;
  const unsigned words_per_lane = (Config::items_per_thread * item_bytes + 15) / 16;
  unsigned begin = static_cast<unsigned>(-reinterpret_cast<uintptr_t>(dest) % begin_at); /* in bytes */
  unsigned words = 0;
  const unsigned bytes = item_count * item_bytes;
  const unsigned shift = static_cast<unsigned>((reinterpret_cast<uintptr_t>(from) + begin) % 16);
  const unsigned first_word_end = begin + (shift ? 32 - shift : 16); /* of the bytes that it needs */
  if (bytes >= first_word_end && begin % item_bytes == 0) words = (bytes - first_word_end) / 16 + 1;
  if (words == 0) begin = 0;
  gk__word16 *const dest_words = reinterpret_cast<gk__word16 *>(reinterpret_cast<char *>(dest) + begin);
  const gk__word16 *const from_words =
      reinterpret_cast<const gk__word16 *>(reinterpret_cast<const char *>(from) + begin - shift);
  if (shift) {
    gk__scan_store_shifted<words_per_lane, Item>(dest_words, from_words, shift, words);
  } else {
    GK__UNROLL_BY(4)
    for (unsigned i = gk_lane(); i < words; i += 32) dest_words[i] = from_words[i];
  }
  const unsigned front = begin / item_bytes, skipped = (begin + words * 16) / item_bytes - front;
  GK__UNROLL_BY(4)
  for (unsigned rest_idx = gk_lane(); rest_idx < item_count - skipped; rest_idx += 32) {
    const unsigned i = rest_idx < front ? rest_idx : rest_idx + skipped;
    dest[i] = from[i];
  }
}

/* The bulk copies of a block's tile, by the TMA unit: one thread starts a copy of contiguous memory, and no thread
 * needs registers for the data. They copy whole 16-byte words between addresses that are aligned to 16 bytes. */
struct gk__scan_bulk_copies {
#if GK__BULK
  unsigned long long *barrier; /* in shared memory: its first phase ends when the tile has been loaded */

  /* By all threads; then __syncthreads(). */
  GK__D void init(unsigned long long *shared_barrier) {
    barrier = shared_barrier;
    if (threadIdx.x != 0) return;
    gk__ptx_mbarrier_init(gk__shared_address(barrier), 1);
    gk__ptx_fence_mbarrier_init();
  }
  /* By one thread: begins the load of a tile. */
  template <class Input> GK__D void begin_load(gk__word16 *shared, const Input &input, unsigned item_count) const {
    const gk__whole_words words(input, item_count);
    if (words.bytes == 0) return;
    const char *const dest = reinterpret_cast<char *>(shared) + gk__scan_load_offset(input) + words.front;
    const char *const from = reinterpret_cast<const char *>(gk__memory_of(input)) + words.front;
    gk__ptx_mbarrier_arrive_expect_tx(gk__shared_address(barrier), words.bytes);
    gk__ptx_cp_async_bulk_load(gk__shared_address(dest), from, words.bytes, gk__shared_address(barrier));
  }
  /* By all threads. */
  GK__D void wait_for_load(const gk__whole_words &words) const {
    while (words.bytes && !gk__ptx_mbarrier_try_wait_parity(gk__shared_address(barrier), 0)) {}
  }
  /* By all threads of a warp, which have written the elements: stores some if dest begins at a sector of 32 bytes, and
   * returns their number. (Bulk stores to other addresses make a scan take 1.1 to 1.2 times as long, on an H100.) Lane
   * 0 returns when they have been read, the others at once. */
  template <class Out> GK__D unsigned store(Out *dest, const Out *from, unsigned item_count) const {
    const unsigned bytes = item_count * static_cast<unsigned>(sizeof(Out)) / 16 * 16;
    if (reinterpret_cast<uintptr_t>(dest) % 32 || bytes == 0) return 0;
    gk__ptx_fence_proxy_async();
    __syncwarp();
    if (gk_lane() == 0) {
      gk__ptx_cp_async_bulk_store(dest, gk__shared_address(from), bytes);
      gk__ptx_cp_async_bulk_commit_group();
      gk__ptx_cp_async_bulk_wait_group_read<0>();
    }
    return bytes / static_cast<unsigned>(sizeof(Out));
  }
#else /* before sm_90 there are none */
  GK__D void init(unsigned long long *) {}
  template <class Input> GK__D void begin_load(gk__word16 *, const Input &, unsigned) const {}
  GK__D void wait_for_load(const gk__whole_words &) const {}
  template <class Out> GK__D unsigned store(Out *, const Out *, unsigned) const { return 0; }
#endif
};

/* --- A thread's elements -----------------------------------------------------------------------------------------*/

/* Folds a vector of Width elements, of which the first item_count exist, onto the running value, and returns it. i: the
 * index of the first. With Store, *result gets the vector's results. In general, element by element: */
template <class Config, unsigned Width = Config::vector_width> struct gk__scan_vector {
  template <bool Store, class Acc, class Item, class Out, class Operator>
  static GK__D Acc fold(Acc running, Out *result, const Item *x, unsigned item_count, size_t i, bool inclusive,
                        const Operator &operation) {
    GK__UNROLL
    for (unsigned j = 0; j < Width; j++) {
      if (Store) {
        const Acc next = j < item_count ? operation(running, gk__lift<Acc, Item>::from(x[j], i + j)) : running;
        result[j] = gk__convert<Out, Acc>::from(inclusive ? next : running);
        running = next;
      } else if (j < item_count) {
        running = operation(running, gk__lift<Acc, Item>::from(x[j], i + j));
      }
    }
    return running;
  }
};
/* Sums of bytes, which wrap, by words of four. Bytes past the array's end are added, too; they come last, and no sum
 * with them is stored. */
template <class Byte> struct gk__scan_bytes_by_words {
  template <bool Store>
  static GK__D Byte fold(Byte running, Byte *result, const Byte *x, unsigned, size_t, bool inclusive,
                         const gk_sum<Byte> &) {
    unsigned word[4], before = static_cast<unsigned>(running);
    memcpy(word, x, 16);
    GK__UNROLL
    for (unsigned k = 0; k < 4; k++) {
      const unsigned sum1 = __dp4a(word[k], 0x00000001u, before), sum2 = __dp4a(word[k], 0x00000101u, before);
      const unsigned sum3 = __dp4a(word[k], 0x00010101u, before), sum4 = __dp4a(word[k], 0x01010101u, before);
      const unsigned sums = __byte_perm(__byte_perm(sum1, sum2, 0x0040), __byte_perm(sum3, sum4, 0x0040), 0x5410);
      word[k] = inclusive ? sums : __byte_perm(sums, before, 0x2104);
      before = sum4;
    }
    if (Store) memcpy(result, word, 16);
    return static_cast<Byte>(before);
  }
};
template <class Init, bool SmallN>
struct gk__scan_vector<gk__scan_config<const unsigned char *, unsigned char, gk_sum<unsigned char>, Init, SmallN>, 16>
    : gk__scan_bytes_by_words<unsigned char> {};
template <class Init, bool SmallN>
struct gk__scan_vector<gk__scan_config<const signed char *, signed char, gk_sum<signed char>, Init, SmallN>, 16>
    : gk__scan_bytes_by_words<signed char> {};

/* Stores a vector to shared memory: a 16-byte word, or one element. */
template <unsigned Width, class Item> GK__D void gk__store_vector(Item *dest, const Item *item) {
  if (Width * sizeof(Item) == 16) {
    gk__word16 word;
    memcpy(&word, item, Width * sizeof(Item));
    *reinterpret_cast<gk__word16 *>(dest) = word;
  } else {
    dest[0] = item[0];
  }
}

/* Folds all elements of a thread, of which valid_items exist. The loop is unrolled fully if all exist, and not if
 * some do not, to keep the code small, nor if the elements have less than 4 bytes, of which a thread has many. */
template <class Config, bool Store, unsigned Factor, class Acc, class Item, class Out, class Operator>
GK__D Acc gk__scan_fold_unrolled(Acc running, Out *output, const Item *input, unsigned valid_items, size_t i,
                                 int inclusive, const Operator &operation) {
  const unsigned vector_width = Config::vector_width;
  GK__UNROLL_BY(sizeof(Item) < 4 ? 1 : Factor)
  for (unsigned k = 0; k < Config::items_per_thread; k += vector_width) {
    if (Store) gk__forget(&inclusive);
    Item x[vector_width];
    Out result[vector_width];
    gk__load_items(x, input + threadIdx.x * Config::items_per_thread + k, static_cast<int>(vector_width), true);
    running = gk__scan_vector<Config>::template fold<Store>(running, result, x, valid_items > k ? valid_items - k : 0,
                                                            i + k, inclusive, operation);
    if (Store) gk__store_vector<vector_width>(output + threadIdx.x * Config::items_per_thread + k, result);
  }
  return running;
}
template <class Config, bool Store, class Acc, class Item, class Out, class Operator>
GK__D Acc gk__scan_fold(const Acc &running, Out *output, const Item *input, unsigned valid_items, size_t i,
                        bool inclusive, const Operator &operation) {
  const unsigned items = Config::items_per_thread;
  if (valid_items >= items)
    return gk__scan_fold_unrolled<Config, Store, items>(running, output, input, items, i, inclusive, operation);
  return gk__scan_fold_unrolled<Config, Store, 1>(running, output, input, valid_items, i, inclusive, operation);
}

/* --- The kernel --------------------------------------------------------------------------------------------------*/

/* Called by all threads: stores a tile's results to global memory. Each warp stores its own, as soon as it has them. */
template <class Config, class Out>
GK__D void gk__scan_store(Out *output, const Out *shared_out, unsigned item_count, const gk__scan_bulk_copies &bulk) {
  const unsigned max_items = 32 * Config::items_per_thread, warp_offset = gk_warp() * max_items;
  const unsigned remaining = item_count > warp_offset ? item_count - warp_offset : 0,
                 warp_items = remaining < max_items ? remaining : max_items;
  const unsigned copied = bulk.store(output + warp_offset, shared_out + warp_offset, warp_items);
  if (copied < warp_items) {
    const unsigned offset = warp_offset + copied;
    __syncwarp();
    gk__scan_store_items<Config>(output + offset, shared_out + offset, warp_items - copied);
  }
}

/* Called by all threads: ends the load of a tile, loads the elements that bulk copies did not, and moves the tile to
 * the front. */
template <class Config, class Input>
GK__D void gk__scan_finish_load(gk__word16 *shared, const Input &input, unsigned item_count,
                                const gk__scan_bulk_copies &bulk) {
  typedef typename Config::Item Item;
  const gk__whole_words words(input, item_count);
  const unsigned offset = gk__scan_load_offset(input);
  const bool all_by_bulk = GK__BULK && words.bytes == item_count * sizeof(Item);
  /* An element that lies partly in a whole word is loaded both ways. Then the bulk copy has to end before. */
  const bool has_straddling = 16 % sizeof(Item) != 0 || std::alignment_of<Item>::value < sizeof(Item);
  if (has_straddling) bulk.wait_for_load(words);
  if (!all_by_bulk)
    gk__scan_load_items<Config>(reinterpret_cast<Item *>(reinterpret_cast<char *>(shared) + offset), input, item_count,
                                words);
  if (!has_straddling) bulk.wait_for_load(words);
  if (!all_by_bulk) __syncthreads();
  if (offset) {
    gk__scan_move_tile<Config>(shared, offset, item_count);
    __syncthreads();
  }
}

/* Ticket (if a row has several tiles), load, threads' totals, prefixes, results. n: elements of a row. */
template <class Config>
__global__ void __launch_bounds__(GK__SCAN_THREADS, GK__RESIDENT(Config::blocks_per_sm))
    gk__scan_kernel(typename Config::Input input, typename Config::Out *output, size_t n,
                    typename Config::Operator operation, typename Config::Init init, bool inclusive,
                    typename Config::Plan plan, gk__slot_memory<typename Config::Acc> memory) {
  typedef typename Config::Item Item;
  typedef typename Config::Out Out;
  typedef typename Config::Acc Acc;
  __shared__ __align__(128) gk__word16 shared[Config::word16_count];
  __shared__ gk__ticket ticket;
  GK__SHARED(Acc, warp_total, GK__SCAN_WARPS);
  GK__SHARED(Acc, partial, GK__SCAN_WARPS + 1);
  static_assert(sizeof(shared) + sizeof(warp_total_bytes) + sizeof(partial_bytes) < 48 * 1024 - 64,
                "gk_scan: elements of up to 176 bytes, input and output together where their sizes differ");
  Item *const shared_in = reinterpret_cast<Item *>(shared);
  Out *const shared_out = reinterpret_cast<Out *>(shared + Config::out_offset);
  __shared__ unsigned long long barrier;
  gk__scan_bulk_copies bulk = gk__scan_bulk_copies();
  bulk.init(&barrier);
  /* Most blocks get the ticket of their number, and the load of that tile need not wait for it. */
  const gk__scan_tile expected = gk__scan_tile_of<Config>(plan, blockIdx.x, n);
  gk__prefetch_tile(input, expected.offset + expected.item_count, expected.offset, expected.item_count);
  if (GK__BULK) __syncthreads(); /* the barrier of bulk loads is initialised */
  gk__wait_for_earlier_work();
  if (Config::small_n) gk__let_later_work_start();
  if (threadIdx.x == 0) {
    if (plan.tiles > 1)
      ticket = gk__scan_ticket(memory.state);
    else
      ticket.number = blockIdx.x;
    const gk__scan_tile own_tile = gk__scan_tile_of<Config>(plan, ticket.number, n);
    bulk.begin_load(shared, input + own_tile.offset, own_tile.item_count);
  }
  __syncthreads();
  const gk__scan_tile scan_tile = gk__scan_tile_of<Config>(plan, ticket.number, n);
  const unsigned item_count = scan_tile.item_count;
  const unsigned thread_offset = threadIdx.x * Config::items_per_thread;
  const unsigned valid_items = item_count > thread_offset ? item_count - thread_offset : 0; /* of this thread */
  const size_t i = init.index() + scan_tile.first_idx + thread_offset;
  gk__scan_finish_load<Config>(shared, input + scan_tile.offset, item_count, bulk);

  const Acc thread_total =
      gk__scan_fold<Config, false>(operation.identity(), shared_out, shared_in, valid_items, i, inclusive, operation);
  Acc tile_total = operation.identity(), running = gk__scan_threads(thread_total, operation, warp_total, &tile_total);
  if (plan.tiles > 1) {
    const gk__scan_slots<Acc> scan_slots = {memory.slots + scan_tile.row_idx * plan.tiles,
                                            memory.slots + gridDim.x + scan_tile.row_idx * plan.groups, ticket.epoch};
    running = operation(
        gk__tile_prefix<Config::window>(scan_tile.tile_idx, tile_total, init, operation, plan, scan_slots, partial),
        running);
  } else {
    running = operation(init.value(), running);
  }
  gk__scan_fold<Config, true>(running, shared_out, shared_in, valid_items, i, inclusive, operation);
  gk__scan_store<Config>(output + scan_tile.offset, shared_out, item_count, bulk);
  if (plan.tiles > 1) gk__restart_epochs(ticket, memory);
}

/* --- Launch ------------------------------------------------------------------------------------------------------*/

template <class Input, class Out, class Operator, class Init, class Plan>
cudaError_t gk__scan(const gk__call &call, const Input &input, Out *output, size_t n, Operator operation, Init init,
                     bool inclusive, const Plan &plan) {
  typedef typename gk__working<Operator>::type Acc;
  typedef gk__scan_config<Input, Out, Operator, Init, false, Plan> config_for_large_n;
  /* Of elements of more than 88 bytes, a thread has one for any n. Then there is one kernel, that for large n. */
  const unsigned items_for_small_n = gk__scan_items(gk__scan_item_bytes<gk__item_type<Input>, Out>(), true);
  const bool has_small_n = items_for_small_n < config_for_large_n::items_per_thread;
  typedef gk__scan_config<Input, Out, Operator, Init, has_small_n, Plan> config_for_small_n;
  const auto kernel = plan.items_per_thread == items_for_small_n ? GK__KERNEL(gk__scan_kernel<config_for_small_n>)
                                                                 : GK__KERNEL(gk__scan_kernel<config_for_large_n>);
  const size_t bytes = plan.tiles > 1 ? gk__scan_bytes(plan, sizeof(gk__slot<Acc>)) : 0;
  return gk__launch_with_slots<Acc>(call, kernel, gk__saturated_product(plan.tiles, plan.total_rows()),
                                    GK__SCAN_THREADS, GK__SCAN_OFFSET, bytes, input, output, n, operation, init,
                                    inclusive, plan);
}

/* Checks the arrays, plans and launches. init: of the working type. */
template <class Input, class Output, class Functor, class Acc>
cudaError_t gk__scan_call(const gk__call &call, const Input &input, Output &output, size_t n, const Functor &operation,
                          const Acc &init, bool inclusive) {
  GK_TRY(gk__begin_call(call.name, input, n, output, n));
  return gk__scan(call, gk__input_of(input), gk__output_of(output), n, operation, gk__scan_start<Acc>{init}, inclusive,
                  gk__plan_scan(n, gk__scan_item_bytes<gk__item_type<Input>, gk__item_type<Output>>()));
}
template <class Operator, class Output>
using gk__scan_functor = typename gk__functor<Operator, gk__item_type<Output>>::scan;

template <class Input, class Output, class Operator>
cudaError_t gk_scan_inclusive(const Input &input, Output &&output, size_t n, Operator operation, cudaStream_t stream,
                              const gk_scratch *scratch) {
  const auto f = gk__functor_of<gk__scan_functor<Operator, Output>>(operation);
  return gk__scan_call({"gk_scan_inclusive", stream, scratch}, input, output, n, f, f.identity(), true);
}
template <class Input, class Output, class Operator>
cudaError_t gk_scan_exclusive(const Input &input, Output &&output, size_t n, Operator operation, cudaStream_t stream,
                              const gk_scratch *scratch) {
  const auto f = gk__functor_of<gk__scan_functor<Operator, Output>>(operation);
  return gk__scan_call({"gk_scan_exclusive", stream, scratch}, input, output, n, f, f.identity(), false);
}
template <class Input, class Output, class Operator, class Init>
cudaError_t gk_scan_exclusive_init(const Input &input, Output &&output, size_t n, Operator operation, Init init,
                                   cudaStream_t stream, const gk_scratch *scratch) {
  typedef gk__scan_functor<Operator, Output> Functor;
  return gk__scan_call({"gk_scan_exclusive_init", stream, scratch}, input, output, n,
                       gk__functor_of<Functor>(operation),
                       gk__convert<typename gk__working<Functor>::type, Init>::from(init), false);
}

/* --- Rows --------------------------------------------------------------------------------------------------------
 *
 * Short rows, and rows that are many enough to keep the memory busy, are scanned by a warp each: 32 elements at a time,
 * by gk_warp_scan_inclusive, onto the running value. The others are scanned as above, tile by tile. */

#define GK__SCAN_WARP_COLS 1024u
#define GK__SCAN_WARP_ROWS 8192u
#define GK__SCAN_MOST_BLOCKS 8192u
/* Shorter rows have small tiles. */
#define GK__SCAN_LONG_ROW (size_t(1) << 18)

template <class Input, class Out, class Operator>
__global__ void __launch_bounds__(GK__SCAN_THREADS)
    gk__scan_rows_kernel(Input input, Out *output, size_t row_count, size_t col_count, size_t leading_dim,
                         Operator operation, bool inclusive) {
  typedef gk__item_type<Input> Item;
  typedef typename gk__working<Operator>::type Acc;
  const unsigned steps = 4, warps = GK__SCAN_WARPS; /* steps: elements that a thread loads at a time */
  gk__wait_for_earlier_work();
  for (size_t row_idx = static_cast<size_t>(blockIdx.x) * warps + gk_warp(); row_idx < row_count;
       row_idx += static_cast<size_t>(gridDim.x) * warps) {
    Acc running = operation.identity();
    for (size_t first_idx = gk_lane(); first_idx - gk_lane() < col_count; first_idx += 32 * steps) {
      Item item[steps];
      GK__UNROLL
      for (unsigned k = 0; k < steps; k++)
        if (first_idx + 32 * k < col_count) item[k] = input[row_idx * leading_dim + first_idx + 32 * k];
      GK__UNROLL
      for (unsigned k = 0; k < steps; k++) {
        const size_t i = first_idx + 32 * k;
        const Acc value = i < col_count ? gk__lift<Acc, Item>::from(item[k], i) : operation.identity();
        const Acc with_lane = gk_warp_scan_inclusive(value, operation), before_lane = gk__previous_lane(with_lane);
        const Acc exclusive = gk_lane() ? operation(running, before_lane) : running;
        const Acc result = inclusive ? operation(running, with_lane) : exclusive;
        if (i < col_count) output[row_idx * leading_dim + i] = gk__convert<Out, Acc>::from(result);
        running = operation(running, gk_shuffle(with_lane, 31));
      }
    }
  }
}

template <class Input, class Output, class Operator>
cudaError_t gk__scan_rows_call(const gk__call &call, const Input &input, Output &output, const gk__matrix_plan &shape,
                               const Operator &operation, bool inclusive) {
  typedef gk__item_type<Output> Out;
  typedef gk__scan_functor<Operator, Output> Functor;
  const Functor f = gk__functor_of<Functor>(operation);
  const size_t extent = gk__matrix_extent(shape.row_count, shape.col_count, shape.leading_dim);
  GK_TRY(gk__begin_matrix_call(call.name, input, output, shape, extent));
  if (extent == 0) return cudaSuccess;
  if (shape.col_count <= GK__SCAN_WARP_COLS || shape.row_count >= GK__SCAN_WARP_ROWS) {
    GK_TRY(gk__check_scratch(call.name, call.scratch, 0));
    return gk__launch_kernel(call.name, GK__KERNEL(gk__scan_rows_kernel<gk__input_type<Input>, Out, Functor>),
                             gk__grid_dim(shape.row_count, GK__SCAN_WARPS, GK__SCAN_MOST_BLOCKS),
                             static_cast<unsigned>(GK__SCAN_THREADS), 0, call.stream, gk__input_of(input),
                             gk__output_of(output), shape.row_count, shape.col_count, shape.leading_dim, f, inclusive);
  }
  gk__row_scan_plan plan = gk__row_scan_plan();
  static_cast<gk__scan_plan &>(plan) =
      gk__plan_scan(shape.col_count, gk__scan_item_bytes<gk__item_type<Input>, Out>(), GK__SCAN_LONG_ROW);
  plan.row_count = shape.row_count;
  plan.leading_dim = shape.leading_dim;
  return gk__scan(call, gk__input_of(input), gk__output_of(output), shape.col_count, f,
                  gk__scan_start<typename gk__working<Functor>::type>{f.identity()}, inclusive, plan);
}
template <class Input, class Output, class Operator>
cudaError_t gk_scan_rows_inclusive(const Input &input, Output &&output, size_t row_count, size_t col_count,
                                   size_t leading_dim, Operator operation, cudaStream_t stream,
                                   const gk_scratch *scratch) {
  return gk__scan_rows_call({"gk_scan_rows_inclusive", stream, scratch}, input, output,
                            gk__matrix_shape(row_count, col_count, leading_dim), operation, true);
}
template <class Input, class Output, class Operator>
cudaError_t gk_scan_rows_exclusive(const Input &input, Output &&output, size_t row_count, size_t col_count,
                                   size_t leading_dim, Operator operation, cudaStream_t stream,
                                   const gk_scratch *scratch) {
  return gk__scan_rows_call({"gk_scan_rows_exclusive", stream, scratch}, input, output,
                            gk__matrix_shape(row_count, col_count, leading_dim), operation, false);
}

/* --- Select ------------------------------------------------------------------------------------------------------*/

/* A scan of counts: a tile's prefix is the number of elements that the earlier tiles keep. A warp has consecutive
 * elements of the tile, which it loads as vectors of 16 bytes: in each step, neighbouring lanes load neighbouring
 * vectors. So the kept elements of a vector follow those of earlier steps, and of lower lanes in its step. The kept
 * elements of a tile are compacted in shared memory, with the alignment that they will have in the output, and stored
 * from there as 16-byte words.
 *
 * Tiles begin at multiples of 16 bytes of memory. The first begins up to 15 bytes before the array, with `lead` items
 * that do not exist, so that any alignment is as good as any other. Elements of sizes that do not divide 16, and those
 * of computed inputs, are loaded one by one: as vectors of one element.
 *
 * A thread has enough bytes to keep loads in flight, and few enough for several blocks to fit on an SM; for small n it
 * has fewer, so that there are more blocks. On an H200 80 bytes and six blocks are faster than 64, 96 and 128 with as
 * many blocks as fit. Single bytes need more registers for their positions than others. */
#define GK__SELECT_SMALL_BYTES (size_t(1) << 23)
constexpr __host__ __device__ unsigned gk__select_items(size_t item_bytes, bool small_n) {
  return gk__items_in(small_n ? 32 : (item_bytes > 1 ? 80 : 64), item_bytes);
}
template <class Input, bool SmallN> struct gk__select_tile {
  typedef gk__item_type<Input> Item;
  static const unsigned item_bytes = sizeof(Item);
  static const bool has_vectors =
      std::is_pointer<Input>::value && 16 % item_bytes == 0 && std::alignment_of<Item>::value == item_bytes;
  static const unsigned vector_width = has_vectors ? 16 / item_bytes : 1;
  static const unsigned register_bytes = has_vectors || item_bytes > 4 ? item_bytes : 4; /* for an element */
  static const unsigned items_per_thread = gk__select_items(register_bytes, SmallN);
  static const unsigned steps = items_per_thread / vector_width, tile_items = GK__SCAN_THREADS * items_per_thread;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  static const unsigned blocks_per_sm = 4; /* six would spill registers */
#else
  static const unsigned blocks_per_sm = has_vectors ? 6 : 4;
#endif
};
/* Whether to keep an element: a predicate of it, or its flag. */
template <class Predicate> struct gk__keep_if {
  Predicate predicate;
  template <class Item> GK__D bool operator()(const Item &item, size_t) const {
    return gk__call_of<bool>(0, predicate, item);
  }
};
template <class Flag> struct gk__keep_flagged {
  const Flag *item_flags;
  template <class Item> GK__D bool operator()(const Item &, size_t i) const { return item_flags[i] != 0; }
};

/* Loads a thread's elements, and returns bit j set for each element j that is kept. first_idx: the index of the first,
 * which wraps before the array, and is then past n. */
template <class Tile, class Input, class Item, class Keep>
GK__D unsigned long long gk__select_load(Item (&item)[Tile::steps][Tile::vector_width], const Input &input,
                                         size_t first_idx, size_t n, bool is_full, const Keep &keep) {
  const unsigned vector_width = Tile::vector_width;
  unsigned long long kept = 0;
  if (is_full) {
    GK__UNROLL
    for (unsigned v = 0; v < Tile::steps; v++)
      gk__load_items(item[v], input + (first_idx + 32 * vector_width * v), static_cast<int>(vector_width),
                     Tile::has_vectors);
  }
  GK__UNROLL
  for (unsigned j = 0; j < Tile::items_per_thread; j++) {
    const size_t i = first_idx + j % vector_width + 32 * (j - j % vector_width);
    if (!is_full && i < n) item[j / vector_width][j % vector_width] = input[i];
    if ((is_full || i < n) && keep(item[j / vector_width][j % vector_width], i)) kept |= 1ull << j;
  }
  return kept;
}
/* Called by all lanes of a warp: returns how many elements it keeps, and stores in `before` how many it keeps before
 * each of the lane's vectors. Two counts of 16 bits share a word, so that one scan by the warp serves two vectors. */
template <class Tile> GK__D unsigned gk__select_rank(unsigned *before, unsigned long long kept) {
  const unsigned vector_width = Tile::vector_width, one_vector = (1u << vector_width) - 1;
  unsigned warp_kept = 0;
  GK__UNROLL
  for (unsigned v = 0; v < Tile::steps; v += 2) {
    const unsigned bits = static_cast<unsigned>(kept >> v * vector_width), next_bits = bits >> vector_width;
    const unsigned lane_kept =
        static_cast<unsigned>(__popc(bits & one_vector) + (__popc(next_bits & one_vector) << 16));
    const unsigned inclusive = gk_warp_scan_inclusive(lane_kept, gk_sum<unsigned>()), total = gk_shuffle(inclusive, 31);
    before[v / 2] = inclusive - lane_kept + warp_kept * 0x10001u + (total << 16);
    warp_kept += (total & 0xffff) + (total >> 16);
  }
  return warp_kept;
}
/* Called by all threads: stores the elements begin ... end - 1. Width > 1: as words, for which both arrays are aligned,
 * and one by one before the first and after the last of these. */
template <unsigned Width, class Out, class Item>
GK__D void gk__select_store(Out *output, const Item *kept_items, unsigned begin, unsigned end) {
  const unsigned word_begin = (begin + Width - 1) / Width, word_end = end / Width;
  const unsigned words = Width > 1 && word_begin < word_end ? word_end - word_begin : 0;
  for (unsigned w = word_begin + threadIdx.x; w < word_begin + words; w += GK__SCAN_THREADS)
    reinterpret_cast<gk__word16 *>(output)[w] = reinterpret_cast<const gk__word16 *>(kept_items)[w];
  for (unsigned rest_idx = begin + threadIdx.x; rest_idx < end - words * Width; rest_idx += GK__SCAN_THREADS) {
    const unsigned i = rest_idx < word_begin * Width ? rest_idx : rest_idx + words * Width;
    output[i] = gk__convert<Out, Item>::from(kept_items[i]);
  }
}
template <class Tile, class Input, class Out, class Count, class Keep>
__global__ void __launch_bounds__(GK__SCAN_THREADS, GK__RESIDENT(Tile::blocks_per_sm))
    gk__select_kernel(Input input, Out *output, Count *kept_count, size_t n, unsigned lead, Keep keep, bool in_place,
                      gk__scan_plan plan, gk__slot_memory<size_t> memory) {
  typedef typename Tile::Item Item;
  const unsigned vector_width = Tile::vector_width, out_width = std::is_same<Item, Out>::value ? vector_width : 1;
  GK__SHARED(Item, kept_items, Tile::tile_items + out_width - 1);
  __shared__ gk__ticket ticket;
  __shared__ unsigned warp_total[GK__SCAN_WARPS];
  __shared__ size_t partial[GK__SCAN_WARPS + 1];
  static_assert(sizeof(kept_items_bytes) < 48 * 1024 - 256, "gk_select: elements of up to 176 bytes");
  gk__prefetch_tile(input, n, size_t(blockIdx.x) * Tile::tile_items, Tile::tile_items);
  gk__wait_for_earlier_work();
  if (threadIdx.x == 0) ticket = plan.tiles > 1 ? gk__scan_ticket(memory.state) : gk__ticket();
  __syncthreads();
  const size_t tile_idx = ticket.number, tile_begin = tile_idx * Tile::tile_items; /* of lead + n */
  const unsigned thread_offset = gk_warp() * 32 * Tile::items_per_thread + gk_lane() * vector_width;
  const size_t first_idx = tile_begin + thread_offset - lead;
  const bool is_full = tile_begin + Tile::tile_items <= lead + n && (tile_idx > 0 || lead == 0);
  Item item[Tile::steps][vector_width];
  unsigned before[(Tile::steps + 1) / 2], tile_kept = 0;
  const unsigned long long kept = gk__select_load<Tile>(item, input, first_idx, n, is_full, keep);
  /* If output is input, a block that knows this tile's count may overwrite its elements. The count may need none of
   * them (flags), or parts of them: the loads end before it is published. That block needs no fence: where it stores
   * depends on the count that it has loaded. */
  if (in_place) __threadfence();
  const unsigned warp_kept = gk__select_rank<Tile>(before, kept);
  if (gk_lane() == 0) warp_total[gk_warp()] = warp_kept;
  __syncthreads();
  const unsigned warp_prefix = gk__scan_warps(warp_total, gk_sum<unsigned>(), &tile_kept);
  size_t prefix = 0;
  if (plan.tiles > 1) {
    const gk__scan_slots<size_t> scan_slots = {memory.slots, memory.slots + plan.tiles, ticket.epoch};
    prefix = gk__tile_prefix<GK__SCAN_WARPS - 1>(tile_idx, size_t(tile_kept), gk__scan_start<size_t>{0},
                                                 gk_sum<size_t>(), plan, scan_slots, partial);
  }
  const unsigned shift = static_cast<unsigned>(reinterpret_cast<uintptr_t>(output + prefix) / sizeof(Out)) % out_width;
  GK__UNROLL
  for (unsigned v = 0; v < Tile::steps; v++) {
    Item *dest = kept_items + (shift + warp_prefix + (before[v / 2] >> 16 * (v % 2) & 0xffff));
    GK__UNROLL
    for (unsigned j = 0; j < vector_width; j++)
      if (kept >> (v * vector_width + j) & 1) *dest++ = item[v][j];
  }
  __syncthreads();
  gk__select_store<out_width>(output + prefix - shift, kept_items, shift, shift + tile_kept);
  if (tile_idx == plan.tiles - 1 && threadIdx.x == 0) *kept_count = static_cast<Count>(prefix + tile_kept);
  if (plan.tiles > 1) gk__restart_epochs(ticket, memory);
}
template <class Input, class Output, class Count, class Keep>
cudaError_t gk__select(const gk__call &call, const Input &input, Output &output, Count &kept_count, size_t n,
                       const Keep &keep) {
  typedef gk__input_type<Input> Array;
  typedef gk__item_type<Output> Out;
  typedef gk__item_type<Count> Integer;
  static_assert(std::is_integral<Integer>::value, "gk_select: kept_count is an integer");
  typedef gk__select_tile<Array, false> tile_for_large_n;
  typedef gk__select_tile<Array, true> tile_for_small_n;
  const bool small_n = n <= GK__SELECT_SMALL_BYTES / tile_for_small_n::register_bytes;
  const uintptr_t address = reinterpret_cast<uintptr_t>(gk__memory_of(gk__input_of(input)));
  const unsigned lead = static_cast<unsigned>(address / tile_for_small_n::item_bytes % tile_for_small_n::vector_width);
  const size_t extent = gk__saturated_sum(n, lead);
  /* By its pointer: an output that is a gk_array may have fewer than n elements. */
  GK_TRY(gk__begin_call(call.name, input, n, gk__output_of(output), n));
  GK_TRY(gk__check_array(call.name, "kept_count", kept_count, 1));
  const gk__scan_plan plan = gk__plan_scan_of(extent ? extent : 1, small_n ? tile_for_small_n::items_per_thread
                                                                           : tile_for_large_n::items_per_thread);
  if (plan.tiles > 0x7fffffff)
    return GK__INVALID("%s: n = %zu needs more blocks than a grid has; call it for parts", call.name, n);
  const auto kernel = small_n ? GK__KERNEL(gk__select_kernel<tile_for_small_n, Array, Out, Integer, Keep>)
                              : GK__KERNEL(gk__select_kernel<tile_for_large_n, Array, Out, Integer, Keep>);
  const size_t bytes = plan.tiles > 1 ? gk__scan_bytes(plan, sizeof(gk__slot<size_t>)) : 0;
  return gk__launch_with_slots<size_t>(call, kernel, plan.tiles, GK__SCAN_THREADS, GK__SCAN_OFFSET, bytes,
                                       gk__input_of(input), gk__output_of(output), gk__output_of(kept_count), n, lead,
                                       keep, address == reinterpret_cast<uintptr_t>(gk__output_of(output)), plan);
}
template <class Input, class Output, class Count, class Predicate>
cudaError_t gk_select(const Input &input, Output &&output, Count &&kept_count, size_t n, Predicate keep,
                      cudaStream_t stream, const gk_scratch *scratch) {
  return gk__select({"gk_select", stream, scratch}, input, output, kept_count, n, gk__keep_if<Predicate>{keep});
}
template <class Input, class Flags, class Output, class Count>
cudaError_t gk_select_flagged(const Input &input, const Flags &item_flags, Output &&output, Count &&kept_count,
                              size_t n, cudaStream_t stream, const gk_scratch *scratch) {
  static_assert(gk__is_in_memory<Flags>::value,
                "gk_select_flagged: item_flags is in memory; by a computed condition, gk_select selects");
  const gk__keep_flagged<gk__item_type<Flags>> keep = {gk__memory_of(gk__input_of(item_flags))};
  GK_TRY(gk__check_array("gk_select_flagged", "item_flags", item_flags, n));
  return gk__select({"gk_select_flagged", stream, scratch}, input, output, kept_count, n, keep);
}

/* --- Data: copy, fill, random numbers, print ---------------------------------------------------------------------*/

enum { GK__COPY_THREADS = 256 };
template <class Input, class Out>
__global__ void __launch_bounds__(GK__COPY_THREADS) gk__copy_kernel(Input input, Out *output, size_t n) {
  GK_FOR_1D (i, n) output[i] = gk__convert<Out, gk__item_type<Input>>::from(input[i]);
}
template <class Input, class Output>
cudaError_t gk__copy_array(const char *call, const Input &input, Output &output, size_t n, cudaStream_t stream) {
  GK_TRY(gk__begin_call(call, input, n, output, n));
  return gk__launch(call, gk__copy_kernel<gk__input_type<Input>, gk__item_type<Output>>,
                    dim3(gk__grid_dim(n, GK__COPY_THREADS, 1u << 16)), dim3(GK__COPY_THREADS), 0, stream,
                    gk__input_of(input), gk__output_of(output), n);
}
template <class Input, class Output>
cudaError_t gk_copy(const Input &input, Output &&output, size_t n, cudaStream_t stream) {
  return gk__copy_array("gk_copy", input, output, n, stream);
}

template <class Item> struct gk__constant {
  Item value;
  GK__D Item operator()(size_t) const { return value; }
};
template <class Output, class Value> cudaError_t gk_fill(Output &&output, size_t n, Value value, cudaStream_t stream) {
  typedef gk__item_type<Output> Item;
  const gk__constant<Item> constant = {gk__convert<Item, Value>::from(value)};
  return gk__copy_array("gk_fill", gk_computed<Item>(constant), output, n, stream);
}

template <class Item> struct gk__progression {
  Item begin, increment;
  GK__D Item operator()(size_t i) const {
    return gk__arithmetic<Item>::add(begin, gk__arithmetic<Item>::mul(static_cast<Item>(i), increment));
  }
};
template <class Output, class Begin, class Increment>
cudaError_t gk_iota(Output &&output, size_t n, Begin begin, Increment increment, cudaStream_t stream) {
  typedef typename gk__carried<gk__item_type<Output>>::type Acc;
  const gk__progression<Acc> values = {gk__convert<Acc, Begin>::from(begin),
                                       gk__convert<Acc, Increment>::from(increment)};
  return gk__copy_array("gk_iota", gk_computed<Acc>(values), output, n, stream);
}

/* 64 random bits: two words of Philox 4x32-10, of which i is the counter and the seed the key. */
GK__HD uint64_t gk__philox(uint64_t i, uint64_t seed) {
  uint32_t word[4] = {static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32), 0, 0};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; round++) {
    const uint64_t even = uint64_t(0xd2511f53) * word[0], odd = uint64_t(0xcd9e8d57) * word[2];
    word[0] = static_cast<uint32_t>(odd >> 32) ^ word[1] ^ key[0];
    word[1] = static_cast<uint32_t>(odd);
    word[2] = static_cast<uint32_t>(even >> 32) ^ word[3] ^ key[1];
    word[3] = static_cast<uint32_t>(even);
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return word[0] | static_cast<uint64_t>(word[1]) << 32;
}
/* The functions below are made of operations that are rounded alike everywhere: fma, division and square root. */
template <int Count> GK__HD double gk__polynomial(const double (&coefficient)[Count], double x) {
  double sum = coefficient[Count - 1];
  for (int i = Count - 2; i >= 0; i--) sum = gk__fma(sum, x, coefficient[i]);
  return sum;
}
GK__HD double gk__ratio(const double (&coefficient)[2][8], double x) {
  return gk__polynomial(coefficient[0], x) / gk__polynomial(coefficient[1], x);
}
/* ln x of a finite x > 0 that is not subnormal: of its exponent, and of its mantissa m by the series of artanh((m - 1)
 * / (m + 1)). */
GK__HD double gk__natural_log(double x) {
  const double odd_reciprocals[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                    1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  uint64_t bits;
  memcpy(&bits, &x, sizeof(x));
  /* m from sqrt(1/2) to sqrt(2) */
  const int64_t exponent = static_cast<int64_t>(bits - 0x3fe6a09e667f3bcdu) >> 52;
  bits -= static_cast<uint64_t>(exponent) << 52;
  memcpy(&x, &bits, sizeof(x));
  const double quotient = (x - 1) / (x + 1);
  const double mantissa_log = 2 * quotient * gk__polynomial(odd_reciprocals, quotient * quotient);
  return gk__fma(static_cast<double>(exponent), 0.6931471805599453094, mantissa_log);
}
/* The quantile of the standard normal distribution at a probability from 2^-54 to 1/2, negated (AS 241). */
GK__HD double gk__normal_quantile(double probability) {
  const double center[2][8] = {
      {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
       4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3},
      {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
       3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}};
  const double middle[2][8] = {
      {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
       1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
      {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
       1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}};
  const double tail[2][8] = {
      {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
       2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
      {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
       1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15}};
  const double from_center = 0.5 - probability;
  if (from_center <= 0.425) return from_center * gk__ratio(center, gk__fma(-from_center, from_center, 0.180625));
  const double root = sqrt(-gk__natural_log(probability));
  return root <= 5 ? gk__ratio(middle, root - 1.6) : gk__ratio(tail, root - 5);
}
/* Random number i of the type to compute in. A uniform number has as many random bits as the type has digits. */
template <class Acc, bool Normal> struct gk__random {
  uint64_t seed;
  GK__HD Acc operator()(size_t i) const {
    const uint64_t bits = gk__philox(i, seed);
    const double two_to_minus_53 = 1.0 / 9007199254740992.0;
    if (!Normal && sizeof(Acc) == 4) return static_cast<Acc>(bits >> 40) / 16777216;
    if (!Normal) return static_cast<Acc>(static_cast<double>(bits >> 11) * two_to_minus_53);
    /* The highest bit is the sign. */
    const double probability = (static_cast<double>(bits << 1 >> 12) + 0.5) * two_to_minus_53;
    const double magnitude = gk__normal_quantile(probability);
    return static_cast<Acc>(bits >> 63 ? -magnitude : magnitude);
  }
};
template <bool Normal, class Output>
cudaError_t gk__random_array(const char *call, Output &output, size_t n, uint64_t seed, cudaStream_t stream) {
  typedef typename gk__carried<gk__item_type<Output>>::type Acc;
  static_assert(std::is_floating_point<Acc>::value, "random numbers are of float, double, __half or __nv_bfloat16");
  return gk__copy_array(call, gk_computed<Acc>(gk__random<Acc, Normal>{seed}), output, n, stream);
}
template <class Output> cudaError_t gk_random_uniform(Output &&output, size_t n, uint64_t seed, cudaStream_t stream) {
  return gk__random_array<false>("gk_random_uniform", output, n, seed, stream);
}
template <class Output> cudaError_t gk_random_normal(Output &&output, size_t n, uint64_t seed, cudaStream_t stream) {
  return gk__random_array<true>("gk_random_normal", output, n, seed, stream);
}

template <class Item>
cudaError_t gk__print_columns(const char *call, const Item *row_data, size_t begin, size_t end, cudaStream_t stream) {
  typedef typename gk__carried<Item>::type Acc;
  Item item[20];
  GK_TRY(gk__copy(item, row_data + begin, (end - begin) * sizeof(Item), cudaMemcpyDeviceToHost, call, stream));
  for (size_t i = 0; i < end - begin; i++)
    gk__print_number(gk__number_of<Acc>::from(gk__convert<Acc, Item>::from(item[i])));
  return cudaSuccess;
}
/* Of a matrix that has been checked. */
template <class Input>
cudaError_t gk__print_matrix(const char *call, const Input &input, size_t row_count, size_t col_count,
                             size_t leading_dim, cudaStream_t stream) {
  const size_t part = 10;
  const auto array = gk__input_of(input);
  if (row_count == 0 || col_count == 0) return cudaSuccess;
  GK_TRY(gk__refuse_capture(call, "it waits for the stream: print before or after that", stream));
  for (size_t i = 0; i < row_count; i++) {
    if (row_count > 2 * part && i == part) {
      gk__print_text("         ...\n");
      i = row_count - part;
    }
    const bool fits = col_count <= 2 * part;
    GK_TRY(gk__print_columns(call, array + i * leading_dim, 0, fits ? col_count : part, stream));
    if (!fits) gk__print_text("  ...");
    if (!fits) GK_TRY(gk__print_columns(call, array + i * leading_dim, col_count - part, col_count, stream));
    gk__print_text("\n");
  }
  return cudaSuccess;
}
template <class Input>
cudaError_t gk_print_matrix(const Input &input, size_t row_count, size_t col_count, size_t leading_dim,
                            cudaStream_t stream) {
  const gk__matrix_plan shape = gk__matrix_shape(row_count, col_count, leading_dim);
  GK_TRY(gk__begin_matrix_call("gk_print_matrix", input, input, shape, 0));
  return gk__print_matrix("gk_print_matrix", input, row_count, col_count, shape.leading_dim, stream);
}
template <class Input> cudaError_t gk_print(const Input &input, size_t n, cudaStream_t stream) {
  GK_TRY(gk__begin_call("gk_print", input, n, input, 0));
  return gk__print_matrix("gk_print", input, 1, n, n, stream);
}

/* ====================================================================================================================
 * 19. MATMUL: C = alpha op(A) op(B) + beta C, row-major, any size.
 *
 * Each element of a strict product is a sum of partitions of k. A partition is a sequence of fused multiply-adds, or in
 * a thin product 32 of them, which a tree adds up. How many partitions there are, and how long, depends on m, n, k and
 * the type alone, and not on the plan, the device, the transposes and the strides. The shape of the tile, the path of
 * the operands to shared memory and the kernel do not change the order of the additions. So the bits are always the
 * same.
 *
 * The kernels, the code that has them, and what they are for. gk__plan_product decides between strict kernels and
 * tensor cores. Of strict kernels gk__enqueue_strict takes the first that fits, with the tile that gk__plan_tile finds.
 *
 *   gk__thin_kernel             any      strict: a few rows or columns, of every type
 *   gk__warp_kernel             any      strict: batches of small float products, a tile for each warp
 *   gk__f32_hopper_kernel       sm_90a   strict: other floats
 *   gk__f64_kernel              sm_90    strict: other doubles
 *   gk__small_kernel            any      strict: float tiles of 32 x 32 with one partition of k
 *   gk__matmul_kernel           any      strict: all the rest, floats by FMAs, doubles by tensor cores from sm_80 on
 *   gk__small_mma_kernel        sm_80    small products of half types (f16 from sm_75 on) and tf32
 *   gk__mma_kernel              sm_80    half types (f16 from sm_75 on), tf32, emulated fp32
 *   gk__wgmma_kernel            sm_90a   replaces gk__mma_kernel, but for some products of tf32 (gk__mma_pays)
 *   gk__prepare_kernel          any      copies, rounds or splits operands for these two, where they need it
 *   gk__reduce_partials_kernel  any      adds up partitions of k that different blocks have computed
 * ==================================================================================================================*/

/* --- Arguments, epilogue and split-K ---------------------------------------------------------------------------------
 *
 * Every kernel computes tiles of C. If k is split, the partials of a tile are reduced in the order of the partitions,
 * so the bits do not depend on timing: by the groups of a block (gk__reduce_groups), by a block that computes all
 * partitions in turn (gk__end_partition), by the blocks of a cluster (gk__cluster_reduce), or by a second kernel. For
 * that one, a block stores the accumulators of its partition to a matrix in the scratch; gk__reduce_partials_kernel
 * adds up these matrices and applies the epilogue. */

/* If there is a flag, in device memory, a kernel runs only if (*flag != 0) is `wanted`. Emulated fp32 sets the flag
 * if an operand has values that it cannot represent: its kernels then return at once, and the strict ones run. */
struct gk__condition {
  const unsigned *flag; /* NULL: no condition */
  bool wanted;
  GK__D bool holds() const { return !flag || (*flag != 0) == wanted; }
};
/* The default functor of the epilogue: C = f(alpha A B + beta C, row, column). */
struct gk__identity {
  template <class Acc> GK__D Acc operator()(Acc value, size_t, size_t) const { return value; }
};
/* Whether Count elements are contiguous and aligned as a vector, from the beginning of each line of a matrix on. */
template <int Count, class Item> GK__HD bool gk__has_vectors(const Item *from, size_t stride, size_t leading_dim) {
  return stride == 1 && leading_dim % Count == 0 && reinterpret_cast<uintptr_t>(from) / sizeof(Item) % Count == 0;
}
/* Stores accumulators to an m x n matrix: dest = f(alpha acc + beta dest). The functor gets the row and the column in
 * C. The matrix may be a part of C: it begins at (first_row, first_col), and has every row_step-th row.
 *
 * Without a beta a warp runs no instruction for it, not even a load whose predicate is false: such loads delay the
 * stores, and products take up to 1.16 times as long (8192 x 8192 x 64 of half types by mma.sync, H200). */
template <class Out, class Acc, class Func> struct gk__epilogue {
  Out *dest;
  size_t m, n, leading_dim, first_row, first_col, row_step;
  Acc alpha, beta;
  Func func;
  GK__D Acc call(Acc value, size_t row_idx, size_t col_idx) const {
    return gk__call_of<Acc>(0, func, value, first_row + row_idx * row_step, first_col + col_idx);
  }
  /* The epilogue of the part of the matrix that begins at (row_idx, col_idx). */
  GK__D gk__epilogue from(size_t row_idx, size_t col_idx) const {
    gk__epilogue sub = *this;
    sub.dest += row_idx * leading_dim + col_idx;
    sub.m -= row_idx;
    sub.n -= col_idx;
    sub.first_row += row_idx * row_step;
    sub.first_col += col_idx;
    return sub;
  }
  /* Stores Count vectors of Width neighbours in a row, `distance` rows apart, as far as they lie before row_end. They
   * are aligned, and their columns are in the matrix. With a beta all are loaded before the first is stored. */
  template <int Width, int Count, class Row>
  GK__D void store_column(Row row_idx, size_t col_idx, Row distance, Row row_end,
                          const Acc (&acc)[Count][Width]) const {
    typedef gk__vector<Out, Width> vector;
    Acc value[Count][Width];
    GK__UNROLL
    for (int i = 0; i < Count * Width; i++) value[i / Width][i % Width] = gk__mul(alpha, acc[i / Width][i % Width]);
    if (beta != Acc(0)) {
      vector old[Count] = {};
      GK__UNROLL
      for (Row j = 0; j < Count; j++)
        if (row_idx + j * distance < row_end)
          old[j] = *reinterpret_cast<const vector *>(dest + (row_idx + j * distance) * leading_dim + col_idx);
      GK__UNROLL
      for (int i = 0; i < Count * Width; i++) {
        const Acc x = gk__convert<Acc, Out>::from(old[i / Width].value[i % Width]);
        value[i / Width][i % Width] = gk__fma(beta, x, value[i / Width][i % Width]);
      }
    }
    unsigned char *dest_bytes = reinterpret_cast<unsigned char *>(dest + row_idx * leading_dim + col_idx);
    const size_t row_bytes = distance * leading_dim * sizeof(Out);
    GK__UNROLL
    for (Row j = 0; j < Count; j++) {
      if (row_idx + j * distance < row_end) {
        vector x;
        GK__UNROLL
        for (int i = 0; i < Width; i++)
          x.value[i] =
              gk__convert<Out, Acc>::from(call(value[j][i], row_idx + j * distance, col_idx + static_cast<size_t>(i)));
        *reinterpret_cast<vector *>(dest_bytes) = x;
      }
      if (j + 1 == Count) break;
      dest_bytes += row_bytes;
      gk__forget_global(&dest_bytes); /* else the compiler multiplies again for each row */
    }
  }
  /* Stores those of Width neighbours of a row that are in the matrix. */
  template <int Width> GK__D void store(size_t row_idx, size_t col_idx, const Acc (&acc)[Width]) const {
    if (row_idx >= m || col_idx >= n) return;
    if (n - col_idx >= Width && gk__has_vectors<Width>(dest, 1, leading_dim)) {
      store_column(row_idx, col_idx, size_t(0), m, reinterpret_cast<const Acc(&)[1][Width]>(acc));
      return;
    }
    GK__UNROLL
    for (size_t i = 0; i < Width; i++) {
      const Acc one[1][1] = {{acc[i]}};
      if (i < n - col_idx) store_column(row_idx, col_idx + i, size_t(0), m, one);
    }
  }
};

/* The rows of a matrix of partials are padded to whole vectors. */
GK__HD size_t gk__partial_ld(size_t n) { return gk_round_up(n, size_t(4)); }
/* Bytes of one partition's partials of m x n. The result saturates at SIZE_MAX. */
template <class Acc> size_t gk__partial_bytes(size_t m, size_t n) {
  return gk__saturated_product(gk__saturated_product(m, gk__partial_ld(n)), sizeof(Acc));
}

/* Limits the blocks of a launch to max_blocks (0: no limit). */
inline size_t gk__limited_blocks(size_t blocks, size_t max_blocks) {
  return max_blocks && max_blocks < blocks ? max_blocks : blocks;
}
/* C of a product, or of a batch of them, and the partials of a product whose k is split. Strides are in elements. */
template <class Out, class Acc, class Func> struct gk__matmul_output {
  typedef Acc acc_type;
  Out *c = NULL;
  size_t m = 0, n = 0, ldc = 0, stride_c = 0, batch = 0;
  Acc alpha = 0, beta = 0;
  unsigned partitions = 0; /* partitions of k */
  Acc *partials = NULL;    /* matrices of m x n, [product][partition]; NULL: accumulators are stored to C */
  Func func;
  size_t first_row = 0, first_col = 0; /* of this part of C in C */
  gk__condition condition = gk__condition();
  size_t max_blocks = 0; /* of a launch; 0: no limit */
  explicit gk__matmul_output(const Func &f = Func()) : func(f) {}
  size_t limited(size_t blocks) const { return gk__limited_blocks(blocks, max_blocks); }
  /* Work tiles for each tile of C: one for each partition if partials are stored, else one. */
  GK__D unsigned work_partitions() const { return partials ? partitions : 1; }
  /* Bytes of the partials of one product. */
  size_t partial_bytes() const {
    return partitions > 1 ? gk__saturated_product(gk__partial_bytes<Acc>(m, n), partitions) : 0;
  }
  GK__D gk__epilogue<Out, Acc, Func> epilogue_of_c(unsigned product) const {
    return {c + product * stride_c, m, n, ldc, first_row, first_col, 1, alpha, beta, func};
  }
  GK__D gk__epilogue<Acc, Acc, gk__identity> epilogue_of_partial(unsigned product, unsigned partition) const {
    const size_t leading_dim = gk__partial_ld(n);
    Acc *const dest = partials + (static_cast<size_t>(product) * partitions + partition) * m * leading_dim;
    return {dest, m, n, leading_dim, 0, 0, 1, Acc(1), Acc(0), gk__identity()};
  }
};
/* An operand as the caller stores it. */
struct gk__product_operand {
  size_t address, leading_dim, stride; /* stride 0: one matrix for the whole batch */
  bool k_major;                        /* A is stored as m x k, B as n x k */
};
/* A product, or a batch of them, as the strict kernels and gk__small_mma_kernel take it. */
template <class Item, class Out, class Acc, class Func = gk__identity>
struct gk__matmul_args : gk__matmul_output<Out, Acc, Func> {
  typedef Item item_type;
  const Item *a = NULL, *b = NULL;
  size_t k = 0, lda = 0, ldb = 0, stride_a = 0, stride_b = 0;
  bool trans_a = false, trans_b = false;
  int depth = 0; /* of a partition, in k; the last one may be shorter */
  explicit gk__matmul_args(const Func &f = Func()) : gk__matmul_output<Out, Acc, Func>(f) {}
  gk__product_operand operand_a() const { return {reinterpret_cast<uintptr_t>(a), lda, stride_a, !trans_a}; }
  gk__product_operand operand_b() const { return {reinterpret_cast<uintptr_t>(b), ldb, stride_b, trans_b}; }
  /* Moves on to the products of the batch behind the first `products`. */
  void skip(size_t products) {
    a += products * stride_a;
    b += products * stride_b;
    this->c += products * this->stride_c;
  }
  /* Moves on to these rows of A and columns of B. */
  void skip_outer(size_t row_count, size_t col_count) {
    a += row_count * (trans_a ? 1 : lda);
    b += col_count * (trans_b ? ldb : 1);
  }
};
/* The product for the rectangle of C that begins at (row_idx, col_idx), and ends where C does if that is sooner. It has
 * the same partitions of k. */
template <class Args> Args gk__panel(Args p, size_t row_idx, size_t col_idx, size_t row_count, size_t col_count) {
  p.skip_outer(row_idx, col_idx);
  p.c += row_idx * p.ldc + col_idx;
  p.m = p.m - row_idx < row_count ? p.m - row_idx : row_count;
  p.n = p.n - col_idx < col_count ? p.n - col_idx : col_count;
  p.first_row += row_idx;
  p.first_col += col_idx;
  return p;
}

/* The number of tiles, or of other units, that cover an extent of a product, or m x n. */
GK__HD size_t gk__tile_count(size_t extent, size_t tile_extent) { return gk_ceil_div(extent, tile_extent); }
GK__HD size_t gk__tile_count(size_t m, size_t n, size_t tile_m, size_t tile_n) {
  return gk__tile_count(m, tile_m) * gk__tile_count(n, tile_n);
}

/* The plan of a product; or, if it is cut in two, the plans of its first m rows and n columns, and of the rows or the
 * columns that are left. If a product has a little more than some whole waves of tiles, most multiprocessors are idle
 * in its last wave. So it may be faster to compute the whole waves, and the rest by a launch of its own with other
 * tiles. Of 213 products with edges from 32 to 8192, 1 to 13 of each type and build take 0.7 to 0.95 of the time that
 * way: 1383 x 3245 x 1072 takes 0.71 as floats for sm_90a, and 0.73 as bf16 by mma.sync (H100). Plan: has the member
 * `cost`. */
template <class Plan> struct gk__cut_plan {
  typedef decltype(Plan::cost) cost_type;
  size_t all_m, all_n, m, n;
  Plan plan, rest_plan;
  cost_type max_cost; /* of a cut, which has to save 5 %, because the estimates are no more exact */
  explicit gk__cut_plan(size_t product_m = 0, size_t product_n = 0, const Plan &whole = Plan())
      : all_m(product_m), all_n(product_n), m(product_m), n(product_n), plan(whole), rest_plan(),
        max_cost(whole.cost - whole.cost / 20) {}
  bool is_cut() const { return m < all_m || n < all_n; }
  /* Tries to cut the product after its last full wave of tiles, and keeps the cut if it is the fastest so far. Cuts
   * rows if there are at least as many rows of tiles as columns of tiles, else columns. slots: the tiles of a wave;
   * launch_cost: of the second launch; choose(query) returns a plan. */
  template <class Query, class Choose>
  void cut_after_waves(const Query &query, size_t tile_m, size_t tile_n, size_t slots, cost_type launch_cost,
                       const Choose &choose) {
    const size_t tiles_m = gk__tile_count(all_m, tile_m), tiles_n = gk__tile_count(all_n, tile_n);
    const bool by_rows = tiles_m >= tiles_n;
    const size_t waves = slots ? tiles_m * tiles_n / slots : 0, extent = by_rows ? all_m : all_n,
                 panel_extent = waves * slots / (by_rows ? tiles_n : tiles_m) * (by_rows ? tile_m : tile_n);
    if (panel_extent == 0 || panel_extent >= extent) return;
    Query panel = query, rest = query;
    (by_rows ? panel.m : panel.n) = panel_extent;
    (by_rows ? rest.m : rest.n) -= panel_extent;
    const Plan of_panel = choose(panel), of_rest = choose(rest);
    const cost_type cost = of_panel.cost + of_rest.cost + launch_cost;
    if (cost >= max_cost) return;
    m = panel.m;
    n = panel.n;
    plan = of_panel;
    rest_plan = of_rest;
    max_cost = cost;
  }
  /* Calls run_panel(args, plan) for each panel of a product. */
  template <class Args, class Run> cudaError_t run(const Args &p, const Run &run_panel) const {
    if (!is_cut()) return run_panel(p, plan);
    GK_TRY(run_panel(gk__panel(p, 0, 0, m, n), plan));
    return run_panel(gk__panel(p, m < all_m ? m : 0, n < all_n ? n : 0, all_m, all_n), rest_plan);
  }
};

/* A cache of recent plans, one for each host thread: planning may take longer than a small product. The table is
 * direct-mapped by the shape. Each type of Find has a table of its own. Query: has m, n and k, and is comparable. */
#define GK__CACHED_PLANS 61 /* a prime: sizes that are powers of two do not share one entry */
template <class Query, class Find> auto gk__cached_plan(const Query &query, const Find &find) -> decltype(find(query)) {
  struct entry {
    bool known;
    Query query;
    decltype(find(query)) plan;
  };
  static thread_local entry entries[GK__CACHED_PLANS];
  entry &cached = entries[(query.m * 31 + query.n * 7 + query.k) % GK__CACHED_PLANS];
  if (!cached.known || !(cached.query == query)) cached = {true, query, find(query)};
  return cached.plan;
}

template <class Acc, int Rows, int Cols> GK__D void gk__set_all(Acc (&value)[Rows][Cols], Acc x) {
  GK__UNROLL
  for (int i = 0; i < Rows * Cols; i++) value[i / Cols][i % Cols] = x;
}
template <class Acc, int Rows, int Cols> GK__D void gk__clear(Acc (&value)[Rows][Cols]) { gk__set_all(value, Acc(0)); }

/* The range of k of a partition; if `all`, from its begin to the end of k. If there is no such partition, `begin` is
 * past the end of k, and `depth` is not to be used. */
struct gk__partition_range {
  size_t begin;
  int depth;
  template <class Args>
  GK__D gk__partition_range(const Args &p, unsigned partition, bool all = false)
      : begin(partition * static_cast<size_t>(p.depth)),
        depth(all || p.k - begin < static_cast<size_t>(p.depth) ? static_cast<int>(p.k - begin) : p.depth) {}
};

/* Reduces the partials of a batch and stores C. Threads have four adjacent elements each. `clears`: sets the partials
 * to 0 once they are read, because other calls look for their epochs in the same scratch (section 16). */
enum { GK__REDUCE_PARTIALS_THREADS = 128 };
template <class Out, class Acc, class Func>
__global__ void __launch_bounds__(GK__REDUCE_PARTIALS_THREADS)
    gk__reduce_partials_kernel(gk__matmul_output<Out, Acc, Func> p, bool clears) {
  typedef gk__vector<Acc, 4> vector;
  const unsigned loads_at_once = 8;
  gk__wait_for_earlier_work();
  if (!p.condition.holds()) return;
  const unsigned row_vectors = static_cast<unsigned>(gk__partial_ld(p.n) / 4);
  const unsigned matrix_vectors = static_cast<unsigned>(p.m) * row_vectors;
  const unsigned vectors = matrix_vectors * static_cast<unsigned>(p.batch), stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += stride) {
    const unsigned product = i / matrix_vectors, pos = i % matrix_vectors;
    vector *const from =
        reinterpret_cast<vector *>(p.partials) + static_cast<size_t>(product) * p.partitions * matrix_vectors + pos;
    Acc total[4] = {Acc(-0.0f), Acc(-0.0f), Acc(-0.0f), Acc(-0.0f)}; /* the identity of addition, also for -0 */
    GK__UNROLL_BY(1)
    for (unsigned s = 0; s < p.partitions; s += loads_at_once) {
      vector x[loads_at_once];
      GK__UNROLL
      for (unsigned j = 0; j < loads_at_once; j++)
        if (s + j < p.partitions) x[j] = from[static_cast<size_t>(s + j) * matrix_vectors];
      GK__UNROLL
      for (unsigned j = 0; j < loads_at_once; j++) {
        GK__UNROLL
        for (int e = 0; e < 4; e++)
          if (s + j < p.partitions) total[e] = gk__arithmetic<Acc>::add(total[e], x[j].value[e]);
        if (clears && s + j < p.partitions) from[static_cast<size_t>(s + j) * matrix_vectors] = vector();
      }
    }
    p.epilogue_of_c(product).store(pos / row_vectors, pos % row_vectors * 4, total);
  }
}

/* Copies from global to shared memory by cp.async use no registers. Without it (before sm_80, and on a CPU) a copy is
 * complete when the call returns.
 *
 * Copies the first `valid` of Bytes bytes (8 or 16), and sets the others to 0. `valid` may be less than Bytes only
 * if Bytes is 16. (compute-sanitizer memcheck takes the asynchronous form for a read of all 16 bytes, so it reports an
 * array that ends within them.) */
template <int Bytes> GK__D void gk__copy_async(void *dest, const void *source, unsigned valid = Bytes) {
#if GK__HAS_CP_ASYNC
  if (Bytes == 16)
    gk__ptx_cp_async_cg_16(gk__shared_address(dest), source, valid);
  else
    gk__ptx_cp_async_if<Bytes>(1, gk__shared_address(dest), source);
#else
  typedef gk__vector<unsigned, Bytes / 4> vector;
  vector x = {};
  if (valid == Bytes)
    x = *static_cast<const vector *>(source);
  else
    for (unsigned i = 0; i < valid; i += 2) {
      unsigned short half_bits;
      memcpy(&half_bits, static_cast<const unsigned char *>(source) + i, 2);
      x.value[i / 4] |= static_cast<unsigned>(half_bits) << (i % 4 * 8);
    }
  *static_cast<vector *>(dest) = x;
#endif
}

/* The vectors of a tile of Rows x Cols in global memory that thread t copies. In every row_step-th row it has
 * row_vectors vectors of vector_width elements, col_step columns apart. They are numbered row by row; the first one
 * begins at (row_idx(t), col_idx(t)). Here adjacent lanes copy adjacent vectors, and a warp has all of a row longer
 * than 32 vectors: a thread's vectors of that row have one address and constant offsets. */
template <int Rows, int Cols, int Threads, int Width> struct gk__copy_map {
  static const int vector_width = Width, lanes = Cols / Width < 32 ? Cols / Width : 32; /* lanes: side by side */
  static const int row_step = Threads / lanes, col_step = lanes * Width, row_vectors = Cols / col_step;
  static const int vectors = Rows / row_step * row_vectors;
  static __device__ int row_idx(int t) { return t / lanes; }
  static __device__ int col_idx(int t) { return t % lanes * Width; }
};
/* Here a warp copies single elements of four rows and eight columns. */
template <int Rows, int Cols, int Threads> struct gk__transpose_map {
  static const int warps_n = Cols / 8; /* warps side by side */
  static_assert(Threads / 32 % warps_n == 0, "all warps copy whole rows");
  static const int vector_width = 1, row_step = Threads / 32 / warps_n * 4, col_step = Cols, row_vectors = 1;
  static const int vectors = Rows / row_step;
  static __device__ int row_idx(int t) { return t % 32 / 8 + t / 32 / warps_n * 4; }
  static __device__ int col_idx(int t) { return t % 8 + t / 32 % warps_n * 8; }
};
/* How many of the positions 0, pitch, 2 pitch... lie before `end`; at most `most`. */
GK__D int gk__count_before(int end, int pitch, int most) {
  const int positions = (end + pitch - 1) / pitch;
  return positions < 0 ? 0 : positions < most ? positions : most;
}
/* The vectors of a thread, as bits, that lie in the matrix. Its first one begins row_count rows and col_count columns
 * before the edges of the matrix or of the stage, which no vector crosses. */
template <class Map> GK__D unsigned gk__vectors_inside(int row_count, int col_count) {
  static_assert(Map::vectors < 32, "each vector has a bit");
  const int rows_inside = gk__count_before(row_count, Map::row_step, Map::vectors / Map::row_vectors);
  unsigned bits = (1u << gk__count_before(col_count, Map::col_step, Map::row_vectors)) - 1; /* those of a row */
  GK__UNROLL
  for (int v = Map::row_vectors; v < Map::vectors; v *= 2) bits |= bits << v;
  return bits & ((1u << rows_inside * Map::row_vectors) - 1);
}

/* The elements by which the strict kernels pad a row of an operand in shared memory, against bank conflicts. Natural:
 * the operand keeps its layout there. */
template <class Acc, bool Natural> struct gk__row_padding {
  static const int items = (Natural ? 32 : 16) / static_cast<int>(sizeof(Acc));
};

/* Loads one operand to shared memory, one stage at a time: TileDepth of k by Outer rows of A or columns of B.
 *
 * In global memory the operand is K-major (the elements of a row of A or a column of B are contiguous) or MN-major. In
 * shared memory it keeps that layout if Natural, and otherwise is shared_tile[k][outer].
 *
 * A thread copies 16-byte vectors where alignment and leading dimension allow and no vector crosses the edge of the
 * matrix, and single elements otherwise. Doubles are copied by vectors if rows begin at sectors of 32 bytes: copies of
 * 16 bytes bypass the L1 cache, and would read the sectors at the ends of other rows from L2 twice, which takes up to
 * 1.5 times as long (H100). A K-major operand that is not Natural is transposed on the way, element by element: a warp
 * then handles four rows of eight k, which the padding maps to 32 different banks.
 *
 * Elements outside of the matrix are neither read nor written: they only affect accumulators that are not stored, and
 * steps past the end of k are not multiplied. What lies inside is computed once, because a branch in the main loop
 * takes time even if it is never taken: with one that computes the bits of the last stage, and one that copies the ends
 * of rows, products of doubles take up to 1.3 times as long (H200).
 *
 * fetch() starts the asynchronous copies of a stage, or loads the stage to registers; store() then writes these to
 * shared memory. */
template <class Item, class Acc, int Outer, int TileDepth, int Threads, bool Natural> struct gk__operand_loader {
  static const int item_bytes = static_cast<int>(sizeof(Item)), max_vector = 16 / item_bytes;
  static const int thread_items = Outer * TileDepth / Threads;
  static const int vector = thread_items < max_vector ? thread_items : max_vector;
  static const unsigned alignment = item_bytes == 8 ? 32 : item_bytes * vector; /* bytes; of rows copied by vectors */
  static const int pad = gk__row_padding<Acc, Natural>::items;
  static const int pitch_mn_major = Outer + pad, pitch_k_major = TileDepth + pad;
  static const int items_mn_major = TileDepth * pitch_mn_major, items_k_major = Outer * pitch_k_major;
  static const int items = Natural && items_k_major > items_mn_major ? items_k_major : items_mn_major; /* of a stage */
  static const bool async = GK__HAS_CP_ASYNC && std::is_same<Item, Acc>::value;

  enum { by_vector, by_element, transposing };
  template <int Access, bool KMajor>
  struct map_of : std::conditional<Access == transposing, gk__transpose_map<Outer, TileDepth, Threads>,
                                   gk__copy_map<KMajor ? Outer : TileDepth, KMajor ? TileDepth : Outer, Threads,
                                                Access == by_vector ? vector : 1>>::type {};
  const Item *source; /* this thread's first element of the next stage */
  int dest_offset;    /* of that element in a stage of shared memory */
  int access;
  bool k_major, full_outer;     /* full_outer: the tile has all Outer */
  unsigned inside, inside_last; /* the thread's vectors that lie in the matrix; those of the last stage */
  __align__(16) Item held[async ? 1 : thread_items];

  /* For the Outer rows or columns from `outer_begin` on (of `outer_count`), and `depth` k from k_begin on. t: the
   * thread. */
  GK__D gk__operand_loader(const Item *matrix, size_t leading_dim, bool is_k_major, size_t outer_begin,
                           size_t outer_count, size_t k_begin, int depth, int t)
      : source(matrix + (is_k_major ? outer_begin * leading_dim + k_begin : k_begin * leading_dim + outer_begin)),
        k_major(is_k_major) {
    const int tile_outer = outer_count - outer_begin < Outer ? static_cast<int>(outer_count - outer_begin) : Outer;
    const bool aligned = vector > 1 && (k_major ? depth : tile_outer) % vector == 0 &&
                         reinterpret_cast<uintptr_t>(source) % alignment == 0 &&
                         leading_dim * sizeof(Item) % alignment == 0;
    gk__forget(&t); /* else persistent blocks keep what follows from it in registers for their next work tile */
    full_outer = tile_outer == Outer;
    if (k_major) {
      if (!Natural)
        begin<transposing, true>(leading_dim, tile_outer, depth, t);
      else if (aligned)
        begin<by_vector, true>(leading_dim, tile_outer, depth, t);
      else
        begin<by_element, true>(leading_dim, tile_outer, depth, t);
    } else if (aligned) {
      begin<by_vector, false>(leading_dim, tile_outer, depth, t);
    } else {
      begin<by_element, false>(leading_dim, tile_outer, depth, t);
    }
  }
  template <int Access, bool KMajor> GK__D void begin(size_t leading_dim, int tile_outer, int depth, int t) {
    typedef map_of<Access, KMajor> map;
    const int row_idx = map::row_idx(t), col_idx = map::col_idx(t), last_depth = (depth - 1) % TileDepth + 1;
    access = Access;
    source += static_cast<size_t>(row_idx) * leading_dim + static_cast<size_t>(col_idx);
    dest_offset = shared_offset<KMajor>(row_idx, col_idx);
    if (KMajor) {
      inside = gk__vectors_inside<map>(tile_outer - row_idx, TileDepth - col_idx);
      inside_last = gk__vectors_inside<map>(tile_outer - row_idx, last_depth - col_idx);
    } else {
      inside = gk__vectors_inside<map>(TileDepth - row_idx, tile_outer - col_idx);
      inside_last = gk__vectors_inside<map>(last_depth - row_idx, tile_outer - col_idx);
    }
  }
  /* Where an element of the tile is in a stage of shared memory. */
  template <bool KMajor> static GK__D int shared_offset(int row_idx, int col_idx) {
    if (!KMajor) return row_idx * pitch_mn_major + col_idx;
    return Natural ? row_idx * pitch_k_major + col_idx : col_idx * pitch_mn_major + row_idx;
  }

  /* Fetches or stores (if Store) this thread's part of a stage: all vectors, or those with a bit in `copied`. */
  template <int Access, bool KMajor, bool Store, bool All>
  GK__D void transfer(Acc *shared_tile, size_t leading_dim, unsigned copied) {
    typedef map_of<Access, KMajor> map;
    typedef gk__vector<Item, map::vector_width> vector_type;
    Acc *const dest = shared_tile + dest_offset;
    GK__UNROLL
    for (int v = 0; v < map::vectors; v++) {
      const int row_idx = v / map::row_vectors * map::row_step, col_idx = v % map::row_vectors * map::col_step;
      const vector_type *const from = reinterpret_cast<const vector_type *>(
          source + static_cast<size_t>(row_idx) * leading_dim + static_cast<size_t>(col_idx));
      vector_type *const in_registers = reinterpret_cast<vector_type *>(held) + (async ? 0 : v);
      const unsigned condition = All ? 1 : copied & 1u << v;
      if (async) {
#if GK__HAS_CP_ASYNC
        gk__ptx_cp_async_if<static_cast<int>(sizeof(vector_type))>(
            condition, gk__shared_address(dest + shared_offset<KMajor>(row_idx, col_idx)), from);
#endif
      } else if (condition == 0) {
        continue;
      } else if (!Store) {
        *in_registers = *from;
      } else {
        GK__UNROLL
        for (int i = 0; i < map::vector_width; i++)
          dest[shared_offset<KMajor>(row_idx, col_idx + i)] = gk__convert<Acc, Item>::from(in_registers->value[i]);
      }
    }
  }
  /* InLoop: stages that lie in the matrix as a whole have a path without conditions. Without it, products of doubles
   * with odd sizes take up to 1.1 times as long, and large ones of floats up to 1.03 times (H200). */
  template <int Access, bool KMajor, bool Store, bool InLoop>
  GK__D void transfer_stage(Acc *shared_tile, size_t leading_dim, int k_left) {
    const bool full_k = k_left >= TileDepth;
    if (InLoop && full_outer && full_k)
      transfer<Access, KMajor, Store, true>(shared_tile, leading_dim, 0);
    else
      transfer<Access, KMajor, Store, false>(shared_tile, leading_dim, full_k ? inside : inside_last);
  }
  template <bool Store, bool InLoop> GK__D void dispatch(Acc *shared_tile, size_t leading_dim, int k_left) {
    if (k_major) {
      if (!Natural)
        transfer_stage<transposing, true, Store, InLoop>(shared_tile, leading_dim, k_left);
      else if (access == by_vector)
        transfer_stage<by_vector, true, Store, InLoop>(shared_tile, leading_dim, k_left);
      else
        transfer_stage<by_element, true, Store, InLoop>(shared_tile, leading_dim, k_left);
    } else if (access == by_vector) {
      transfer_stage<by_vector, false, Store, InLoop>(shared_tile, leading_dim, k_left);
    } else {
      transfer_stage<by_element, false, Store, InLoop>(shared_tile, leading_dim, k_left);
    }
    if (async || Store) source += k_major ? TileDepth : TileDepth * leading_dim;
  }
  /* The next stage. k_left: the k that are left to load, those of this stage included. */
  GK__D void fetch(Acc *shared_tile, size_t leading_dim, int k_left) {
    dispatch<false, false>(shared_tile, leading_dim, k_left);
  }
  GK__D void fetch_in_loop(Acc *shared_tile, size_t leading_dim, int k_left) {
    dispatch<false, async>(shared_tile, leading_dim, k_left);
  }
  GK__D void store(Acc *shared_tile, size_t leading_dim, int k_left) {
    if (!async) dispatch<true, false>(shared_tile, leading_dim, k_left);
  }
};

/* Adds the products of the rows a and the columns b to accumulators, of which a row has ColVectors vectors. Serpentine
 * order: each FMA shares an operand register with the one before it, also where a row ends. */
template <int RowVectors, int ColVectors>
GK__D void gk__multiply_outer(float (&value)[RowVectors * 4 * ColVectors][4],
                              const gk__vector<float, 4> (&a)[RowVectors],
                              const gk__vector<float, 4> (&b)[ColVectors]) {
  GK__UNROLL
  for (int i = 0; i < RowVectors * 4; i++) {
    GK__UNROLL
    for (int n = 0; n < ColVectors * 4; n++) {
      const int j = i % 2 ? ColVectors * 4 - 1 - n : n;
      float &dest = value[i * ColVectors + j / 4][j % 4];
      dest = gk__fma(a[i / 4].value[i % 4], b[j / 4].value[j % 4], dest);
    }
  }
}

/* The accumulators of one thread of a SIMT tile, TileRows x TileCols. A warp has 4 x 8 threads, and each of them
 * Side x Side accumulators, in squares of 4 x 4 that lie 16 rows and 32 columns from each other.
 * Accumulators are numbered by vectors: `vectors` vectors of `vector_width` neighbours in a row of C. depth: the k of
 * one multiply_step(). natural: operands keep their layout in shared memory (see gk__operand_loader). */
template <int TileRows, int TileCols, int Side> struct gk__accumulators {
  static const int thread_count = TileRows / Side * (TileCols / Side), lane_rows = 4, lane_cols = 8;
  static const int vector_width = 4, vectors = Side * Side / vector_width, depth = 1;
  static const bool natural = false;
  static const int pad = gk__row_padding<float, natural>::items;
  static_assert(TileRows % (lane_rows * Side) == 0 && TileCols % (lane_cols * Side) == 0 && Side % 4 == 0,
                "whole warps");
  __align__(16) float value[vectors][vector_width]; /* loaded and stored as vectors */
  int first_row, first_col;
  const float *a_tile, *b_tile; /* this thread's operands in the current stage */
  typedef gk__vector<float, 4> vector;
  struct fragment {
    vector a[Side / 4], b[Side / 4];
  };
  GK__D explicit gk__accumulators(int t) {
    const int warp_id = t / 32, lane_id = t % 32, tile_warps_n = TileCols / (lane_cols * Side);
    first_row = warp_id / tile_warps_n * (lane_rows * Side) + lane_id / lane_cols * 4;
    first_col = warp_id % tile_warps_n * (lane_cols * Side) + lane_id % lane_cols * 4;
  }
  /* Where vector r is in the tile. */
  GK__D int row_idx(int r) const {
    const int i = r / (Side / 4);
    return first_row + i / 4 * (lane_rows * 4) + i % 4;
  }
  GK__D int col_idx(int r) const { return first_col + r % (Side / 4) * (lane_cols * 4); }
  /* Clears the accumulators. a and b: the operands' first stage. */
  GK__D void begin(const float *a, const float *b, bool, bool) {
    gk__clear(value);
    a_tile = a + first_row;
    b_tile = b + first_col;
  }
  GK__D void load(fragment *f, int k, int) const {
    GK__UNROLL
    for (int i = 0; i < Side / 4; i++)
      f->a[i] = *reinterpret_cast<const vector *>(a_tile + k * (TileRows + pad) + i * lane_rows * 4);
    GK__UNROLL
    for (int j = 0; j < Side / 4; j++)
      f->b[j] = *reinterpret_cast<const vector *>(b_tile + k * (TileCols + pad) + j * lane_cols * 4);
  }
  GK__D void multiply_step(const fragment &f) { gk__multiply_outer(value, f.a, f.b); }
};

/* The same for doubles. A warp multiplies WarpRows x WarpCols, by mma.sync where tensor cores have fp64, else by FMAs.
 * The bits are the same: fp64 tensor cores accumulate by fused multiply-adds in ascending order of k, whatever the k of
 * one instruction is (a test checks this). Instructions with a larger k wait less often for their accumulators. A lane
 * has two neighbouring accumulators in every eighth row and column. Depth is the k of one multiply_step(). */
template <int TileRows, int TileCols, int TileDepth, int WarpRows, int WarpCols, int Depth>
struct gk__accumulators_f64 {
  static const int thread_count = TileRows / WarpRows * (TileCols / WarpCols) * 32, vector_width = 2,
                   mma_cols = WarpCols / 8, vectors = WarpRows / 8 * mma_cols, depth = Depth, quads = Depth / 4;
  static const bool natural = true;
  static_assert(Depth % 4 == 0 && WarpRows % 16 == 0 && WarpCols % 8 == 0, "whole instructions");
  double value[vectors][vector_width];
  int first_row, first_col;
  const double *a_tile, *b_tile; /* this thread's operands in the current stage */
  int a_row, a_k, b_col, b_k;    /* strides in shared memory */
  GK__D explicit gk__accumulators_f64(int t) {
    const int warp_id = t / 32, lane_id = t % 32, tile_warps_n = TileCols / WarpCols;
    first_row = warp_id / tile_warps_n * WarpRows + lane_id / 4;
    first_col = warp_id % tile_warps_n * WarpCols + lane_id % 4 * 2;
  }
  GK__D int row_idx(int r) const { return first_row + r / mma_cols * 8; }
  GK__D int col_idx(int r) const { return first_col + r % mma_cols * 8; }
  GK__D void begin(const double *a, const double *b, bool a_is_k_major, bool b_is_k_major) {
    const int pad = gk__row_padding<double, natural>::items;
    a_row = a_is_k_major ? TileDepth + pad : 1;
    a_k = a_is_k_major ? 1 : TileRows + pad;
    b_col = b_is_k_major ? TileDepth + pad : 1;
    b_k = b_is_k_major ? 1 : TileCols + pad;
    gk__clear(value);
    find_operands(a, b);
  }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 /* tensor cores multiply doubles */
  GK__D void find_operands(const double *a, const double *b) {
    const int lane_id = static_cast<int>(threadIdx.x % 32);
    a_tile = a + first_row * a_row + lane_id % 4 * a_k;
    b_tile = b + (first_col - lane_id % 4 * 2 + lane_id / 4) * b_col + lane_id % 4 * b_k;
  }
  /* A lane holds every fourth k of its rows and columns. */
  struct fragment {
    double a[WarpRows / 8][quads], b[mma_cols][quads];
  };
  /* From k on. Past `end`, A is read as -0 and B as 0: adding their product, which is -0, changes no accumulator. */
  GK__D void load(fragment *f, int k, int end) const {
    GK__UNROLL
    for (int q = 0; q < quads; q++) {
      const int pos = k + q * 4;
      const bool inside = end >= TileDepth || pos + static_cast<int>(threadIdx.x % 4) < end;
      GK__UNROLL
      for (int i = 0; i < WarpRows / 8; i++) {
        const double x = a_tile[pos * a_k + i * 8 * a_row];
        f->a[i][q] = inside ? x : -0.0;
      }
      GK__UNROLL
      for (int j = 0; j < mma_cols; j++) {
        const double x = b_tile[pos * b_k + j * 8 * b_col];
        f->b[j][q] = inside ? x : 0;
      }
    }
  }
#if __CUDA_ARCH__ >= 900
  static const int mma_count = vectors / 2;
  /* The n-th MMA of a step, in serpentine order. */
  GK__D void multiply_one(const fragment &f, int n) {
    const int i = n / mma_cols * 2, j = i / 2 % 2 ? mma_cols - 1 - n % mma_cols : n % mma_cols;
    gk__ptx_mma_m16n8_f64<quads>(value[i * mma_cols + j], value[(i + 1) * mma_cols + j], f.a[i], f.a[i + 1], f.b[j]);
  }
#endif
  GK__D void multiply_step(const fragment &f) {
#if __CUDA_ARCH__ >= 900
    GK__UNROLL
    for (int n = 0; n < mma_count; n++) multiply_one(f, n);
#else
    GK__UNROLL
    for (int q = 0; q < quads; q++) {
      GK__UNROLL
      for (int r = 0; r < vectors; r++) gk__ptx_mma_m8n8k4_f64(value[r], f.a[r / mma_cols][q], f.b[r % mma_cols][q]);
    }
#endif
  }
#else
  GK__D void find_operands(const double *a, const double *b) {
    a_tile = a + first_row * a_row;
    b_tile = b + first_col * b_col;
  }
  /* Each thread has all k of its rows and columns. */
  struct fragment {
    double a[WarpRows / 8][Depth], b[WarpCols / 4][Depth];
    int depth;
  };
  GK__D void load(fragment *f, int k, int end) const {
    f->depth = end - k < Depth ? end - k : Depth;
    for (int l = 0; l < f->depth; l++) {
      for (int i = 0; i < WarpRows / 8; i++) f->a[i][l] = a_tile[(k + l) * a_k + i * 8 * a_row];
      for (int j = 0; j < WarpCols / 4; j++) f->b[j][l] = b_tile[(k + l) * b_k + (j / 2 * 8 + j % 2) * b_col];
    }
  }
  GK__D void multiply_step(const fragment &f) {
    for (int l = 0; l < f.depth; l++)
      for (int r = 0; r < vectors; r++)
        for (int i = 0; i < vector_width; i++)
          value[r][i] = gk__fma(f.a[r / mma_cols][l], f.b[r % mma_cols * 2 + i][l], value[r][i]);
  }
#endif
};

/* The barrier of the main loop: the next stage has arrived, and this one, whose last fragment is in registers, may be
 * overwritten. If a block may have several groups, each has a named barrier of its own, as they may take different
 * branches at the end of a step. */
template <class Config> GK__D void gk__end_of_step() {
  gk__ptx_cp_async_commit_group();
  gk__ptx_cp_async_wait_group<Config::stages - 2>();
#ifdef __CUDA_ARCH__
  if (Config::groups > 1)
    gk__ptx_bar_sync<Config::sums::thread_count>(1 + threadIdx.x / Config::sums::thread_count);
  else
#endif
    __syncthreads();
}

/* Raster order of the tiles of C: groups of rows_at_most rows of tiles, and inside a group column by column. Blocks
 * that run at the same time then share operands in L2. There are fewer than 2^31 tiles. */
struct gk__raster_tile {
  unsigned row_idx, col_idx;
  GK__HD gk__raster_tile(unsigned index, unsigned tiles_m, unsigned tiles_n, unsigned rows_at_most = 8) {
    const unsigned group_rows = tiles_m < rows_at_most ? tiles_m : rows_at_most; /* <= tiles_m: no overflow below */
    const unsigned first_row = index / (group_rows * tiles_n) * group_rows, in_group = index % (group_rows * tiles_n);
    const unsigned row_count = tiles_m - first_row < group_rows ? tiles_m - first_row : group_rows;
    row_idx = first_row + in_group % row_count;
    col_idx = in_group / row_count;
  }
};

/* A work tile: one tile of C and one partition of k. */
struct gk__work_tile {
  unsigned batch, partition;
  size_t row0, col0; /* its first row and column in C */
};
/* The work tiles of a kernel with tiles of Config come in raster order, then partitions, then the batch. */
template <class Config, class Args>
GK__D gk__work_tile gk__work_tile_of(const Args &p, unsigned index, unsigned partitions = 1) {
  const unsigned tiles_m = static_cast<unsigned>(gk__tile_count(p.m, Config::bm)),
                 tiles_n = static_cast<unsigned>(gk__tile_count(p.n, Config::bn)), tiles = tiles_m * tiles_n;
  const gk__raster_tile raster(index % tiles, tiles_m, tiles_n);
  return {index / tiles / partitions, index / tiles % partitions, static_cast<size_t>(raster.row_idx) * Config::bm,
          static_cast<size_t>(raster.col_idx) * Config::bn};
}

/* The stage behind `stage` in a ring of stages that are `pitch` apart and end at ring_end. */
GK__HD int gk__next_stage(int stage, int pitch, int ring_end) { return stage + pitch == ring_end ? 0 : stage + pitch; }
/* Loads the first stages of a ring, all but one, or fewer if `depth` ends before. gk__end_of_step commits the copies of
 * the last of them. Returns how many of `depth` k are then left to load. */
template <class Config, class OperandA, class OperandB, class Item>
GK__D int gk__fill_ring(OperandA &a, OperandB &b, size_t lda, size_t ldb, Item *ring, int stage_items, int depth) {
  GK__UNROLL_BY(1)
  for (int s = 0; s < Config::stages - 1; s++) {
    Item *const stage = ring + s * stage_items;
    if (depth > 0) {
      a.fetch(stage, lda, depth);
      b.fetch(stage + OperandA::items, ldb, depth);
      a.store(stage, lda, depth);
      b.store(stage + OperandA::items, ldb, depth);
    }
    if (s < Config::stages - 2) gk__ptx_cp_async_commit_group();
    depth -= Config::bk;
  }
  return depth;
}

/* For a block that computes all partitions of a tile: adds an accumulator to the sum of the earlier partitions. The
 * last one leaves that sum in the accumulator. */
template <class Acc> GK__D void gk__add_partition(Acc *sum, Acc *acc, bool is_last) {
  *sum = gk__arithmetic<Acc>::add(*sum, *acc);
  *acc = is_last ? *sum : Acc(0);
}
/* Ends a partition. The sum of the earlier ones is in shared memory, and after the last one in the accumulators. A
 * thread reads only what it has stored itself, so this needs no barrier. */
template <class Sums, class Acc> GK__D void gk__end_partition(Sums &acc, Acc *shared, bool is_first, bool is_last) {
  typedef gk__vector<Acc, Sums::vector_width> vector;
  unsigned thread = threadIdx.x;
  gk__forget(&thread); /* the address is computed here, instead of being kept in registers during the main loop */
  vector *const sum = reinterpret_cast<vector *>(shared) + thread;
  GK__UNROLL
  for (int r = 0; r < Sums::vectors; r++) {
    vector x;
    if (!is_first) x = sum[r * Sums::thread_count];
    GK__UNROLL
    for (int i = 0; i < Sums::vector_width; i++) {
      if (is_first) x.value[i] = Acc(-0.0f); /* the identity of addition */
      gk__add_partition(&x.value[i], &acc.value[r][i], is_last);
    }
    if (!is_last) sum[r * Sums::thread_count] = x;
  }
}

/* Accumulates a group's products over `depth` of k. `steps` is that of the block's deepest group: on a CPU the barrier
 * of a step is one of the whole block, so all groups must reach it as often. Config::stages stages of shared memory are
 * used as a ring; those of a group are stage_items elements apart. When a step begins, all but the last stages - 2
 * stages in flight have arrived; during the step the copies of one more stage are issued, to the slot of the step
 * before it. A block with one group may compute several partitions in turn: one ends after every partition_steps
 * steps, because all but the last are a multiple of Config::bk long, and behind the ring is room for the sum. */
template <class Config, class OperandA, class OperandB, class Sums, class Acc>
GK__D void gk__multiply_partitions(Sums &acc, OperandA &a, OperandB &b, size_t lda, size_t ldb, Acc *ring,
                                   int stage_items, int depth, int steps, int partition_steps) {
  const int stages = Config::stages, tile_depth = Config::bk, ring_items = stages * stage_items;
  const int k_steps = tile_depth / Sums::depth;
  static_assert(k_steps % 2 == 0, "the two fragments alternate");
  /* The steps in which copies are issued. Of 16 steps 3 and 13 are the best of 30 pairs that were measured: with 0 and
   * 2, products of floats take 1.01 to 1.03 times as long (H200). */
  const int a_step = k_steps == 16 ? 3 : 0, b_step = k_steps == 16 ? 13 : 0;
  acc.begin(ring, ring + OperandA::items, a.k_major, b.k_major);
  int k_to_load = gk__fill_ring<Config>(a, b, lda, ldb, ring, stage_items, depth);
  gk__end_of_step<Config>();
  typename Sums::fragment fragment[2];
  acc.load(&fragment[0], 0, tile_depth);
  int read_offset = 0, write_offset = (stages - 1) * stage_items;
  for (int i = 0, partition_end = partition_steps; i < steps; i++) {
    if (Config::groups == 1 && i == partition_end) {
      gk__end_partition(acc, ring + ring_items, i == partition_steps, false);
      partition_end += partition_steps;
    }
    const int k_left = k_to_load + (stages - 1) * tile_depth; /* to multiply */
    const int to_next_stage = read_offset + stage_items == ring_items ? stage_items - ring_items : stage_items;
    Acc *const stage = ring + write_offset;
    if (k_left >= tile_depth) {
      /* The fragment of one multiply_step() is loaded while the one before it is multiplied, also across the barrier.
       * The copies to the free stage are issued between multiplications. */
      GK__UNROLL
      for (int s = 0; s < k_steps; s++) {
        if (s == k_steps - 1) {
          if (k_to_load > 0) {
            a.store(stage, lda, k_to_load);
            b.store(stage + OperandA::items, ldb, k_to_load);
          }
          gk__end_of_step<Config>();
          acc.a_tile += to_next_stage;
          acc.b_tile += to_next_stage;
        }
        acc.load(&fragment[(s + 1) % 2], (s + 1) % k_steps * Sums::depth, tile_depth);
        if (s == a_step && k_to_load > 0) a.fetch_in_loop(stage, lda, k_to_load);
        if (s == b_step && k_to_load > 0) b.fetch_in_loop(stage + OperandA::items, ldb, k_to_load);
        acc.multiply_step(fragment[s % 2]);
      }
    } else {
      GK__UNROLL_BY(1)
      for (int k = 0; k < k_left; k += Sums::depth) {
        acc.load(&fragment[0], k, k_left);
        acc.multiply_step(fragment[0]);
      }
      gk__end_of_step<Config>();
    }
    k_to_load -= tile_depth;
    write_offset = gk__next_stage(write_offset, stage_items, ring_items);
    read_offset += to_next_stage;
  }
  if (Config::groups == 1 && steps > partition_steps) gk__end_partition(acc, ring + ring_items, false, true);
}

/* Stores a work tile by Tile::store, to C or to the matrix of its partition. If both have the same type and there is no
 * functor, one instance of Tile::store serves both. */
template <class Tile, class Values, class Out, class Acc, class Func, class... Where>
GK__D void gk__store_work_tile(const Values &values, const gk__matmul_output<Out, Acc, Func> &p,
                               const gk__work_tile &work, Where... where) {
  if (p.partials)
    Tile::store(values, p.epilogue_of_partial(work.batch, work.partition), work.row0, work.col0, where...);
  else
    Tile::store(values, p.epilogue_of_c(work.batch), work.row0, work.col0, where...);
}
template <class Tile, class Values, class Acc, class... Where>
GK__D void gk__store_work_tile(const Values &values, const gk__matmul_output<Acc, Acc, gk__identity> &p,
                               const gk__work_tile &work, Where... where) {
  Tile::store(values, p.partials ? p.epilogue_of_partial(work.batch, work.partition) : p.epilogue_of_c(work.batch),
              work.row0, work.col0, where...);
}

/* Rounds an address in shared memory up to a multiple of Alignment. */
template <unsigned Alignment> GK__D unsigned char *gk__align_shared(void *shared) {
#ifdef __CUDA_ARCH__
  const unsigned address = gk__shared_address(shared);
#else
  const uintptr_t address = reinterpret_cast<uintptr_t>(shared);
#endif
  return static_cast<unsigned char *>(shared) + (Alignment - address % Alignment) % Alignment;
}

/* A tile in the registers of its threads. */
struct gk__register_tile {
  /* Stores a thread's vectors first_idx ... first_idx + vector_count - 1, whose accumulators are acc.value[0],
   * acc.value[1], ... (row0, col0): the tile. */
  template <class Sums, class Epilogue>
  static GK__D void store(const Sums &acc, const Epilogue &epilogue, size_t row0, size_t col0, int first_idx = 0,
                          int vector_count = Sums::vectors) {
    GK__UNROLL
    for (int r = 0; r < Sums::vectors; r++)
      if (r < vector_count)
        epilogue.store(row0 + static_cast<size_t>(acc.row_idx(first_idx + r)),
                       col0 + static_cast<size_t>(acc.col_idx(first_idx + r)), acc.value[r]);
  }
};

/* Rows of Cols floats in shared memory. The padding avoids bank conflicts between accumulators of eight rows. */
template <int Rows, int Cols> struct gk__padded_rows {
  static const int pitch = Cols + 8; /* floats */
  static const int bytes = Rows * pitch * 4;
  static const int batch_vectors = 4; /* of four elements, that a thread loads before it stores the first one to C */
  /* The index of a 16-byte word of a row. */
  static GK__D unsigned word_at(unsigned row_idx, unsigned word_idx) { return row_idx * (pitch / 4) + word_idx; }
};
/* Boxes of 64 rows of 128 bytes, or of another number of rows, whose words are permuted as by the 128-byte swizzle of
 * TMA. */
struct gk__swizzled_boxes {
  static const int box_bytes = 64 * 128;
  static const int batch_vectors = 2; /* fewer, because each of Hopper's kernels has this code beside stores by TMA */
  static GK__D unsigned word_at(unsigned row_idx, unsigned word_idx, unsigned box_rows = 64) {
    return word_idx / 8 * (box_rows * 8) + row_idx * 8 + (word_idx % 8 ^ row_idx % 8);
  }
};
/* A tile of Rows x Cols accumulators in shared memory, from which Threads threads store it in whole rows. The code is a
 * third as long as code that stores accumulators from registers. Rows of C may begin at any address: if they are not
 * aligned, elements are stored one by one. Aligned vectors of C, each put together from two of the tile, take 0.98 to
 * 1.03 of the time (H200). */
template <int Rows, int Cols, int Threads, class Layout = gk__padded_rows<Rows, Cols>> struct gk__shared_tile : Layout {
  /* Stores those vectors of Width elements that are in the matrix, with adjacent threads on adjacent ones. The
   * epilogue's matrix begins at the tile. */
  template <int Width, class Out, class Func>
  static GK__D void store_vectors(const float *c_tile, const gk__epilogue<Out, float, Func> &epilogue) {
    typedef gk__vector<float, Width> vector;
    const unsigned row_vectors = Cols / Width, row_step = Threads / row_vectors,
                   batch = Width == 1 ? 8 : Layout::batch_vectors;
    static_assert(Threads % row_vectors == 0 && Rows % (row_step * batch) == 0,
                  "a thread's vectors are in one column; it has full batches");
    const unsigned row_count = epilogue.m < Rows ? static_cast<unsigned>(epilogue.m) : Rows;
    const unsigned first_row = threadIdx.x % Threads / row_vectors, col_idx = threadIdx.x % row_vectors * Width;
    if (col_idx >= epilogue.n) return;
    GK__UNROLL_BY(1)
    for (unsigned row0 = first_row; row0 < row_count; row0 += row_step * batch) {
      float x[batch][Width];
      GK__UNROLL
      for (unsigned j = 0; j < batch; j++) {
        const unsigned item_idx = Layout::word_at(row0 + j * row_step, col_idx / 4) * 4 + col_idx % 4;
        const vector value = *reinterpret_cast<const vector *>(c_tile + item_idx);
        GK__UNROLL
        for (int i = 0; i < Width; i++) x[j][i] = value.value[i];
      }
      epilogue.store_column(row0, col_idx, row_step, row_count, x);
    }
  }
  template <class Epilogue>
  static GK__D void store(const float *c_tile, const Epilogue &epilogue, size_t row0, size_t col0) {
    const Epilogue of_tile = epilogue.from(row0, col0);
    if (gk__has_vectors<4>(epilogue.dest, 1, epilogue.leading_dim) && (of_tile.n >= Cols || of_tile.n % 4 == 0))
      store_vectors<4>(c_tile, of_tile);
    else
      store_vectors<1>(c_tile, of_tile);
  }
};

template <class Config, class Item, class Acc> struct gk__operand_loaders {
  typedef gk__operand_loader<Item, Acc, Config::bm, Config::bk, Config::sums::thread_count, Config::sums::natural> a;
  typedef gk__operand_loader<Item, Acc, Config::bn, Config::bk, Config::sums::thread_count, Config::sums::natural> b;
  static const int items = a::items + b::items; /* elements of a stage */
};

/* Reduces the partials of the groups of a block, group g having computed partition g, through shared memory. Each group
 * reduces some vectors of every thread: *vector_count from the *first_idx-th on. */
template <class Sums, class Acc>
GK__D void gk__reduce_groups(Sums &acc, Acc *shared, int group, int groups, int t, int *first_idx, int *vector_count) {
  const int thread_items = Sums::vectors * Sums::vector_width, pitch = Sums::thread_count;
  const int most_vectors = (Sums::vectors + 1) / 2; /* there are at least two groups */
  GK__UNROLL
  for (int i = 0; i < thread_items; i++)
    shared[(group * thread_items + i) * pitch + t] = acc.value[i / Sums::vector_width][i % Sums::vector_width];
  __syncthreads();
  *first_idx = Sums::vectors * group / groups;
  *vector_count = Sums::vectors * (group + 1) / groups - *first_idx;
  GK__UNROLL_BY(1)
  for (int s = 0; s < groups; s++) {
    const Acc *const partials = shared + (s * thread_items + *first_idx * Sums::vector_width) * pitch + t;
    GK__UNROLL
    for (int r = 0; r < most_vectors; r++) {
      if (r >= *vector_count) break;
      GK__UNROLL
      for (int i = 0; i < Sums::vector_width; i++) {
        const Acc x = partials[(r * Sums::vector_width + i) * pitch];
        acc.value[r][i] = s == 0 ? x : gk__arithmetic<Acc>::add(acc.value[r][i], x);
      }
    }
  }
}

/* The configuration of a kernel: accumulators, tile of C, groups of a block at most, and the blocks that an SM must be
 * able to hold (of __launch_bounds__). bk: the k of a stage. */
template <class Sums, int TileRows, int TileCols, int Groups, int Resident = 1> struct gk__block_config {
  typedef Sums sums;
  static const int bm = TileRows, bn = TileCols, bk = 16, stages = 3, groups = Groups, resident = Resident;
  /* Stores what a thread has of a work tile. Other configurations use the second parameter, the shared memory of the
   * operands. */
  template <class Acc, class Args>
  static GK__D void store(const Sums &acc, Acc *, const Args &p, const gk__work_tile &work, int first_idx,
                          int vector_count) {
    gk__store_work_tile<gk__register_tile>(acc, p, work, first_idx, vector_count);
  }
};

/* The configuration of blocks with one group. A multiprocessor has 64 barriers, and a kernel with named barriers
 * reserves all 16 of a block, so at most four of its blocks run at the same time. These blocks need one barrier each,
 * and have registers for twelve warps on a multiprocessor. With named barriers 1085 x 522 x 56 takes 1.4 times as long
 * (floats, H200). */
template <class Config> struct gk__one_group : Config {
  static const int groups = 1, resident = 384 / Config::sums::thread_count;
};

/* The kernel: computes one work tile, or in turn all partitions of a tile of C. If the groups of a block have the
 * partitions of a tile, it reduces them. */
template <class Config, class Args>
__global__ void __launch_bounds__(Config::sums::thread_count *Config::groups, GK__RESIDENT(Config::resident))
    gk__matmul_kernel(Args p) {
  typedef typename Args::acc_type Acc;
  typedef typename Config::sums accumulators;
  typedef gk__operand_loaders<Config, typename Args::item_type, Acc> loaders;
  const int stage_items = loaders::items, thread_count = accumulators::thread_count;
  const int groups = static_cast<int>(blockDim.x) / thread_count;
  const int group = static_cast<int>(threadIdx.x) / thread_count, t = static_cast<int>(threadIdx.x) % thread_count;
  GK_DYNAMIC_SHARED(Acc, ring);
  gk__wait_for_earlier_work();
  if (!p.condition.holds()) return;
  /* A block has a group for each partition of a tile; or one group, for one partition, or for all of them in turn. */
  unsigned work_idx = blockIdx.x;
  accumulators acc(t);
  {
    const gk__work_tile work = gk__work_tile_of<Config>(p, work_idx, p.work_partitions());
    /* The first group has the longest partition. */
    const gk__partition_range longest(p, work.partition), range(p, work.partition + static_cast<unsigned>(group));
    int most_k = longest.depth, group_k = range.begin < p.k ? range.depth : 0;
    if (Config::groups == 1 && !p.partials) most_k = group_k = static_cast<int>(p.k);
    typename loaders::a a(p.a + work.batch * p.stride_a, p.lda, !p.trans_a, work.row0, p.m, range.begin, group_k, t);
    typename loaders::b b(p.b + work.batch * p.stride_b, p.ldb, p.trans_b, work.col0, p.n, range.begin, group_k, t);
    gk__multiply_partitions<Config>(acc, a, b, p.lda, p.ldb, ring + group * stage_items, groups * stage_items, group_k,
                                    (most_k + Config::bk - 1) / Config::bk, p.depth / Config::bk);
  }
  gk__forget(&work_idx); /* the work tile is computed again, instead of being kept in registers during the main loop */
  const gk__work_tile work = gk__work_tile_of<Config>(p, work_idx, p.work_partitions());
  int first_idx = 0, vector_count = accumulators::vectors;
  if (Config::groups > 1 && groups > 1) {
    __syncthreads();
    gk__reduce_groups(acc, ring, group, groups, t, &first_idx, &vector_count);
  }
  Config::store(acc, ring, p, work, first_idx, vector_count);
}

/* --- Small products -----------------------------------------------------------------------------------------------
 *
 * float tiles of 32 x 32, for products with one partition of k and neither operand transposed, as most batches are. A
 * keeps its K-major layout in shared memory: a copy has four elements, and one that transposes has one. A thread reads
 * four k of a row with one load. The order of the FMAs is the same as in gk__matmul_kernel. Batches of 32^3 take 1.7
 * times as long without it. */

/* The accumulators of a thread, 4 x 4: like gk__accumulators<32, 32, 4>, but a thread's rows are four apart. */
struct gk__accumulators_small {
  static const int thread_count = 64, vector_width = 4, vectors = 4;
  static const bool natural = true;
  static const int pad = gk__row_padding<float, natural>::items, pitch_a = 16 + pad, pitch_b = 32 + pad;
  typedef gk__vector<float, 4> vector;
  float value[vectors][vector_width];
  int first_row, first_col;
  GK__D explicit gk__accumulators_small(int t) : first_row(t / 32 * 16 + t % 32 / 8), first_col(t % 8 * 4) {
    gk__clear(value);
  }
  GK__D int row_idx(int r) const { return first_row + r * 4; }
  GK__D int col_idx(int) const { return first_col; }
  /* Accumulates the products of a stage, of which k_left of k are left. */
  GK__D void multiply_stage(const float *a_tile, const float *b_tile, int k_left) {
    a_tile += first_row * pitch_a;
    b_tile += first_col;
    GK__UNROLL
    for (int k = 0; k < 16; k += 4) {
      if (k >= k_left) break;
      vector a[4];
      GK__UNROLL
      for (int i = 0; i < 4; i++) a[i] = *reinterpret_cast<const vector *>(a_tile + i * 4 * pitch_a + k);
      GK__UNROLL
      for (int l = 0; l < 4; l++) {
        if (k + l >= k_left) break;
        const vector of_a[1] = {{{a[0].value[l], a[1].value[l], a[2].value[l], a[3].value[l]}}};
        const vector of_b[1] = {*reinterpret_cast<const vector *>(b_tile + (k + l) * pitch_b)};
        gk__multiply_outer(value, of_a, of_b);
      }
    }
  }
};
/* Twelve blocks of 18 KiB fit on a multiprocessor of Hopper. With registers for sixteen, a kernel spills some of them,
 * and batches of 32^3 take 1.03 times as long. */
typedef gk__block_config<gk__accumulators_small, 32, 32, 1, 12> gk__small_block;

template <class Args>
__global__ void __launch_bounds__(gk__small_block::sums::thread_count, GK__RESIDENT(gk__small_block::resident))
    gk__small_kernel(Args p) {
  typedef gk__small_block Config;
  typedef typename Args::item_type Item;
  typedef gk__operand_loaders<Config, Item, Item> loaders;
  const int stages = Config::stages, tile_depth = Config::bk, stage_items = loaders::items;
  GK_DYNAMIC_SHARED(Item, ring);
  gk__wait_for_earlier_work();
  if (!p.condition.holds()) return;
  const int t = static_cast<int>(threadIdx.x), depth = static_cast<int>(p.k);
  const gk__work_tile work = gk__work_tile_of<Config>(p, blockIdx.x);
  typename loaders::a a(p.a + work.batch * p.stride_a, p.lda, true, work.row0, p.m, 0, depth, t);
  typename loaders::b b(p.b + work.batch * p.stride_b, p.ldb, false, work.col0, p.n, 0, depth, t);
  Config::sums acc(t);
  int k_to_load = gk__fill_ring<Config>(a, b, p.lda, p.ldb, ring, stage_items, depth);
  int read_offset = 0, write_offset = (stages - 1) * stage_items;
  GK__UNROLL_BY(1)
  for (int k_left = depth; k_left > 0; k_left -= tile_depth) {
    gk__end_of_step<Config>();
    Item *const stage = ring + write_offset;
    const Item *const a_tile = ring + read_offset, *const b_tile = a_tile + loaders::a::items;
    if (k_to_load > 0) {
      a.fetch(stage, p.lda, k_to_load);
      b.fetch(stage + loaders::a::items, p.ldb, k_to_load);
    }
    if (k_left >= tile_depth)
      acc.multiply_stage(a_tile, b_tile, tile_depth); /* a constant: no comparisons with k_left */
    else
      acc.multiply_stage(a_tile, b_tile, k_left);
    if (k_to_load > 0) {
      a.store(stage, p.lda, k_to_load);
      b.store(stage + loaders::a::items, p.ldb, k_to_load);
    }
    k_to_load -= tile_depth;
    read_offset = gk__next_stage(read_offset, stage_items, stages * stage_items);
    write_offset = gk__next_stage(write_offset, stage_items, stages * stage_items);
  }
  gk__register_tile::store(acc, p.epilogue_of_c(work.batch), work.row0, work.col0);
}

/* --- Many small products ------------------------------------------------------------------------------------------
 *
 * Batches of float products that have several tiles of 64 x 64 for each SM, with neither operand transposed, on GPUs
 * whose blocks have 224 KiB of shared memory (sm_90 and sm_100). The kernel is persistent, and each warp computes tiles
 * on its own: it waits for no block barrier, and issues the copies for its next tile while it stores the accumulators
 * of the current one. So the prologue and epilogue of a tile, a large share of the time of a small product, overlap
 * with the FMAs of other warps.
 *
 * A thread has 16 x 8 accumulators. Both operands are MN-major when they are multiplied, for the sake of the register
 * banks (see "Floats on Hopper"). A is K-major in global memory, so each stage of it is transposed: cp.async
 * writes its rows to a staging buffer, swizzled, and a lane then transposes squares of 4 x 4 to the A tile. The four
 * rows of a square are 16 apart. */

/* The ring of a warp in shared memory: two stages of A as it was loaded, two of A transposed, three of B. */
struct gk__warp_tile {
  static const int bm = 64, bn = 64, bk = 16, warps = 8;
  static const int straight = 8;             /* steps of k that are unrolled: half a stage. k is a multiple of it */
  static const int step_bytes = bm * bk * 4; /* of one operand in a stage */
  static const int transposed_a = 2 * step_bytes, b = 4 * step_bytes, smem = 7 * step_bytes; /* offsets; all bytes */
};
/* Stores a warp's tile to where the epilogue's matrix begins. Accumulator vector r is in row r / 8 * 4 + r / 2 % 4 * 16
 * and column r % 2 * 32 from the first one of its lane on. */
template <class Epilogue>
GK__D void gk__store_warp_tile(const float (&value)[32][4], int lane_id, const Epilogue &epilogue) {
  const unsigned row_count = epilogue.m < 64 ? static_cast<unsigned>(epilogue.m) : 64;
  GK__UNROLL
  for (int i = 0; i < 8; i++) {
    const size_t col_idx = static_cast<size_t>(lane_id % 8 * 4 + i % 2 * 32);
    float column[4][4];
    GK__UNROLL
    for (int j = 0; j < 16; j++) column[j / 4][j % 4] = value[i / 2 * 8 + j / 4 * 2 + i % 2][j % 4];
    if (col_idx < epilogue.n)
      epilogue.store_column(static_cast<unsigned>(lane_id / 8 + i / 2 * 4), col_idx, 16u, row_count, column);
  }
}

/* Loads 16 bytes of shared memory, in program order. */
GK__D gk__vector<float, 4> gk__load_shared_float4(const unsigned char *shared) {
#ifdef __CUDA_ARCH__
  gk__vector<float, 4> x;
  gk__ptx_ld_shared_v4_f32(x.value, gk__shared_address(shared));
  return x;
#else
  return *reinterpret_cast<const gk__vector<float, 4> *>(shared);
#endif
}
/* Copies 16 bytes, and prefetches the 128-byte line that they are in to L2: the rest of it is needed soon. */
GK__D void gk__copy_async_float4(unsigned char *dest, const float *source) {
#if GK__HAS_CP_ASYNC
  gk__ptx_cp_async_cg_l2_128b_16(gk__shared_address(dest), source);
#else
  gk__copy_async<16>(dest, source);
#endif
}

/* A thread's operands for one k. */
struct gk__warp_fragment {
  gk__vector<float, 4> a[4], b[2];
  GK__D void load(const unsigned char *a_tile, const unsigned char *b_tile) {
    GK__UNROLL
    for (int i = 0; i < 4; i++) a[i] = gk__load_shared_float4(a_tile + i * 64);
    GK__UNROLL
    for (int j = 0; j < 2; j++) b[j] = gk__load_shared_float4(b_tile + j * 128);
  }
};

/* Issues the copies of a warp, stage after stage, from one work tile to the next. work_count: the tiles of C, of the
 * whole batch. */
struct gk__warp_loader {
  typedef gk__warp_tile shape;
  const float *a, *b;    /* this lane's first vectors of the next stage */
  int k_left, row_count; /* of the work tile; rows of A from this lane's first row to the edge */
  bool col_exists;       /* whether this lane's columns of B are in the matrix */
  unsigned work_idx;
  int a_offset, b_offset; /* of the next stage in the ring */
  unsigned char *a_dest, *b_dest;
  GK__D gk__warp_loader(unsigned char *ring, unsigned work_begin, int lane_id)
      : a(NULL), b(NULL), k_left(0), row_count(0), col_exists(false), work_idx(work_begin), a_offset(0), b_offset(0) {
    a_dest = ring + lane_id / 4 * (shape::bk * 4) + (lane_id % 4 ^ lane_id / 8 % 4) * 16;
    b_dest = ring + shape::b + lane_id / 16 * (shape::bn * 4) + lane_id % 16 * 16;
  }
  template <class Args> GK__D void begin_tile(const Args &p, unsigned work_count, int lane_id) {
    k_left = 0;
    if (work_idx >= work_count) return;
    const gk__work_tile work = gk__work_tile_of<shape>(p, work_idx);
    const size_t row_idx = work.row0 + static_cast<size_t>(lane_id / 4);
    const size_t col_idx = work.col0 + static_cast<size_t>(lane_id % 16 * 4);
    a = p.a + work.batch * p.stride_a + row_idx * p.lda + static_cast<size_t>(lane_id % 4 * 4);
    b = p.b + work.batch * p.stride_b + static_cast<size_t>(lane_id / 16) * p.ldb + col_idx;
    k_left = static_cast<int>(p.k);
    col_exists = col_idx < p.n;
    row_count = row_idx >= p.m ? 0 : p.m - row_idx < shape::bm ? static_cast<int>(p.m - row_idx) : shape::bm;
  }
  /* Issues the copies of the next stage, if there is one, and commits a group in either case. Elements outside of the
   * matrices are neither read nor written: they only affect accumulators that are not stored, or are not multiplied. */
  template <class Args> GK__D void fetch(const Args &p, unsigned work_count, int lane_id) {
    if (k_left > 0) {
      GK__UNROLL
      for (int v = 0; v < 8; v++)
        if (v * 8 < row_count && lane_id % 4 * 4 < k_left)
          gk__copy_async_float4(a_dest + a_offset + v * (8 * shape::bk * 4), a + static_cast<size_t>(v * 8) * p.lda);
      GK__UNROLL
      for (int v = 0; v < 8; v++)
        if (col_exists && v * 2 + lane_id / 16 < k_left)
          gk__copy_async_float4(b_dest + b_offset + v * (2 * shape::bn * 4), b + static_cast<size_t>(v * 2) * p.ldb);
      a += shape::bk;
      b += shape::bk * p.ldb;
      k_left -= shape::bk;
      if (k_left <= 0) {
        work_idx += gridDim.x * shape::warps;
        begin_tile(p, work_count, lane_id);
      }
    }
    gk__ptx_cp_async_commit_group();
    a_offset ^= shape::step_bytes;
    b_offset = b_offset == 2 * shape::step_bytes ? 0 : b_offset + shape::step_bytes;
  }
};

/* Transposes the stage of A at stage_offset. Each lane handles two squares of four rows, 16 apart, by four k. */
GK__D void gk__transpose_a_stage(unsigned char *ring, int stage_offset, int lane_id) {
  typedef gk__warp_tile shape;
  const unsigned char *const source = ring + stage_offset + lane_id % 16 * (shape::bk * 4);
  unsigned char *const dest = ring + shape::transposed_a + stage_offset + lane_id % 16 * 16;
  GK__UNROLL
  for (int s = 0; s < 2; s++) {
    const int k_quad = lane_id / 16 + s * 2;
    gk__vector<float, 4> x[4];
    GK__UNROLL
    for (int i = 0; i < 4; i++)
      x[i] = gk__load_shared_float4(source + i * (16 * shape::bk * 4) + (k_quad ^ lane_id % 16 / 2 % 4) * 16);
    GK__UNROLL
    for (int k = 0; k < 4; k++) {
      const gk__vector<float, 4> y = {{x[0].value[k], x[1].value[k], x[2].value[k], x[3].value[k]}};
      *reinterpret_cast<gk__vector<float, 4> *>(dest + (k_quad * 4 + k) * (shape::bm * 4)) = y;
    }
  }
}

template <class Args>
__global__ void __launch_bounds__(gk__warp_tile::warps * 32, 1) gk__warp_kernel(Args p, unsigned work_count) {
  typedef gk__warp_tile shape;
  GK_DYNAMIC_SHARED(unsigned char, rings);
  gk__wait_for_earlier_work();
  if (!p.condition.holds()) return;
  const int lane_id = static_cast<int>(threadIdx.x % 32);
  const unsigned warp_id = threadIdx.x / 32;
  unsigned char *const ring = rings + warp_id * static_cast<unsigned>(shape::smem);
  /* Warps that begin together would also store their tiles together, when none of them multiplies. */
  for (const long long start = clock64(); clock64() - start < static_cast<long long>(warp_id) * 1000;) {}
  unsigned work_idx = warp_id * gridDim.x + blockIdx.x;
  gk__warp_loader loader(ring, work_idx, lane_id);
  loader.begin_tile(p, work_count, lane_id);
  GK__UNROLL_BY(1)
  for (int s = 0; s < 2; s++) loader.fetch(p, work_count, lane_id);
  gk__ptx_cp_async_wait_group<1>();
  __syncwarp();
  gk__transpose_a_stage(ring, 0, lane_id);
  __syncwarp();
  const unsigned char *const a_tile = ring + shape::transposed_a + lane_id / 8 * 16;
  const unsigned char *const b_tile = ring + shape::b + lane_id % 8 * 16;
  int a_stage = 0, b_stage = 0;   /* offsets of the current stage */
  int a_offset = 0, b_offset = 0; /* offsets of the fragment that was loaded last */
  gk__warp_fragment fragment[2];
  fragment[0].load(a_tile, b_tile);
  float acc[32][4];
  for (; work_idx < work_count; work_idx += gridDim.x * shape::warps) {
    const gk__work_tile work = gk__work_tile_of<shape>(p, work_idx);
    gk__clear(acc);
    GK__UNROLL_BY(1)
    for (int k_left = static_cast<int>(p.k); k_left > 0; k_left -= shape::bk) {
      loader.fetch(p, work_count, lane_id);
      GK__UNROLL_BY(1)
      for (int halves_left = k_left < shape::bk ? 1 : 2; halves_left > 0; halves_left--) {
        if (halves_left == 1) { /* the next stage arrives half a stage before it is multiplied, to be transposed */
          gk__ptx_cp_async_wait_group<1>();
          __syncwarp();
          gk__transpose_a_stage(ring, a_stage ^ shape::step_bytes, lane_id);
        }
        GK__UNROLL
        for (int k = 0; k < shape::straight; k++) {
          a_offset += shape::bm * 4;
          b_offset += shape::bn * 4;
          if (k == shape::straight - 1 && halves_left == 1) {
            __syncwarp();
            a_stage ^= shape::step_bytes;
            b_stage = b_stage == 2 * shape::step_bytes ? 0 : b_stage + shape::step_bytes;
            a_offset = a_stage;
            b_offset = b_stage;
          }
          fragment[(k + 1) % 2].load(a_tile + a_offset, b_tile + b_offset);
          gk__multiply_outer(acc, fragment[k % 2].a, fragment[k % 2].b);
        }
      }
    }
    gk__store_warp_tile(acc, lane_id, p.epilogue_of_c(work.batch).from(work.row0, work.col0));
  }
}

/* --- Targets of the build ---------------------------------------------------------------------------------------*/

/* GK__HOPPER_BUILD: a target of this build is Hopper. The host's code is compiled for all targets at once, and each
 * kernel costs it time, so other builds have none of Hopper's kernels. GK__PASS_SM_90: nvcc now compiles device code
 * for sm_90 or sm_90a. GK__PASS_SM_90A: for sm_90a. CUDA 12.0 has no st.async, and for a debugger (-G) wgmma would be
 * in functions that are called. So with either of them code for sm_90a is compiled as for sm_90. */
#define GK__IS_HOPPER(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, ...)                      \
  ((a1) / 10 == 90 || (a2) / 10 == 90 || (a3) / 10 == 90 || (a4) / 10 == 90 || (a5) / 10 == 90 || (a6) / 10 == 90 ||   \
   (a7) / 10 == 90 || (a8) / 10 == 90 || (a9) / 10 == 90 || (a10) / 10 == 90 || (a11) / 10 == 90 ||                    \
   (a12) / 10 == 90 || (a13) / 10 == 90 || (a14) / 10 == 90 || (a15) / 10 == 90 || (a16) / 10 == 90)
#define GK__ANY_HOPPER(...) GK__IS_HOPPER(__VA_ARGS__)
#if defined(__NVCC__) && !defined(CUDA_ON_CPU)
#if GK__ANY_HOPPER(GK__ARCHS, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define GK__HOPPER_BUILD 1
#endif
#endif
#if defined(GK__HOPPER_BUILD) && defined(__CUDA_ARCH_FEAT_SM90_ALL) && !defined(__CUDACC_DEBUG__) &&                   \
    CUDART_VERSION >= 12010
#define GK__PASS_SM_90A 1
#endif
#if defined(GK__HOPPER_BUILD) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000
#define GK__PASS_SM_90 1
#endif

/* A kernel that another one replaces in code for an architecture has an empty body there: Hopper's kernels in all other
 * code, and in code for sm_90a gk__mma_kernel, but for one tile. The host recognises it by its static shared memory, of
 * which a functor has less. It asks at run time, because a program may have code for both sm_90 and sm_90a. */
#define GK__EMPTY_BYTES 40960
#define GK__EMPTY_KERNEL                                                                                               \
  __shared__ volatile unsigned char nothing[GK__EMPTY_BYTES];                                                          \
  nothing[threadIdx.x] = 0
/* *code becomes the architecture for which the kernel's code for this device was compiled, or -1 if it is empty. */
template <class... Params> cudaError_t gk__find_code(const gk__kernel<Params...> &kernel, int *code) {
  const auto find = [&kernel](int, int *found) -> cudaError_t {
    cudaFuncAttributes attributes;
    GK_TRY(cudaFuncGetAttributes(&attributes, kernel.address()));
    *found = attributes.sharedSizeBytes < GK__EMPTY_BYTES ? attributes.ptxVersion : -1;
    return cudaSuccess;
  };
  return kernel.cache->code.get(code, find);
}
/* Never launched. Its body is empty in code for sm_90a, so its attributes say whether products run by wgmma. The types
 * are those of the product, because a program may have files with code for sm_90 and for sm_90a, which the linker
 * merges: so the answer is that of the file whose kernels will run. */
template <class Path, class Args> __global__ void __launch_bounds__(32) gk__code_kernel() {
#ifdef GK__PASS_SM_90A
  GK__EMPTY_KERNEL;
#else
  (void)0; /* a body, to the CPU stand-in, which warns about a kernel that has none */
#endif
}

/* --- Doubles on Hopper --------------------------------------------------------------------------------------------
 *
 * Warp-specialised: four or eight warps multiply, and two or four others copy operands to a ring of stages, each with
 * a full and an empty mbarrier. So the tensor cores wait for no address and for no barrier of the block, and the
 * copies for the next tile are in flight while accumulators of this one are stored. The grid is persistent. The order
 * of the FMAs is that of gk__accumulators_f64. */

#ifdef GK__HOPPER_BUILD
/* A tile, of which a multiprocessor computes `Resident` at once. In code for sm_90a, producers keep ProducerRegisters
 * registers each, and give the others to the consumers (setmaxnreg, for whole warpgroups); 0: half as many producers
 * keep what they have. in_turn: a block computes all partitions of a tile, and has their sum in registers; all but the
 * last are a multiple of 16 long.
 *
 * The best plans of 570 products take 1.18 times as long without these kernels (sm_90: 1.12), 1.015 without the tile of
 * 64 x 64, at most 1.31, 1.011 without that of 32 x 64, at most 1.21 (sm_90: 1.022), and 1.034 without both. Batches
 * whose k is split take 1.15 times as long without the tiles in turn (sm_90: 1.11), up to twice (H200). */
template <int Rows, int Cols, int WarpRows, int Resident, int ProducerRegisters, bool InTurn = false>
struct gk__f64_shape {
  static const int bm = Rows, bn = Cols, warp_rows = WarpRows, warp_cols = 32, resident = Resident;
  static const bool in_turn = InTurn;
  static const int producers = ProducerRegisters ? 128 : 64, consumers = Rows * Cols / WarpRows; /* threads */
  /* Registers of a thread: as the block gets them, and once the producers have given theirs to the consumers. */
  static const int registers = 65536 / (producers + consumers) / resident / 8 * 8;
#ifdef GK__PASS_SM_90A
  static const bool moves_registers = ProducerRegisters > 0;
#else
  static const bool moves_registers = false;
#endif
  static const int producer_registers = moves_registers ? ProducerRegisters : registers;
  static const int consumer_registers = registers + (registers - producer_registers) * producers / consumers;
  /* Registers for accumulators, and for each k of a stage: a lane has two fragments of it. A stage is one MMA deep, of
   * 16 k if the fragments fit, else of 8. If these do not fit either, the kernel is empty. */
  static const int sum_registers = warp_rows * warp_cols / 16 * (in_turn ? 2 : 1);
  static const int fragment_registers = (warp_rows + warp_cols) / 8;
  static const int bk = sum_registers + 16 * fragment_registers < consumer_registers ? 16 : 8;
  static const bool fits = sum_registers + bk * fragment_registers < consumer_registers;
  typedef gk__accumulators_f64<bm, bn, bk, warp_rows, warp_cols, bk> sums;
  typedef gk__operand_loader<double, double, bm, bk, producers, true> operand_a;
  typedef gk__operand_loader<double, double, bn, bk, producers, true> operand_b;
  static const int stage_items = operand_a::items + operand_b::items;
  static const int stage_bytes = stage_items * static_cast<int>(sizeof(double));
  /* The rings of a multiprocessor's blocks leave 60 KB for its L1 cache, where the copies of a stage find what those of
   * the last one have read: rows that are not aligned begin and end inside of sectors. With an L1 of 28 KB, 8191 x 8191
   * x 8191 takes 1.47 times as long (H100); with smaller rings, tiles of 64 x 64 take up to 1.6 times as long. */
  static const int ring_bytes = 180 * 1024 / resident;
  static const int stages = ring_bytes / stage_bytes;
};
typedef gk__f64_shape<64, 128, 32, 1, 72> gk__f64_64x128;
typedef gk__f64_shape<64, 64, 32, 2, 48> gk__f64_64x64; /* only for sm_90a */
typedef gk__f64_shape<32, 64, 16, 2, 0> gk__f64_32x64;
typedef gk__f64_shape<64, 128, 32, 1, 72, true> gk__f64_64x128_in_turn; /* only for sm_90a */
typedef gk__f64_shape<32, 64, 16, 2, 0, true> gk__f64_32x64_in_turn;

#ifdef GK__PASS_SM_90
/* A ring of stages in shared memory between producers and consumers: the current stage, and the phase (the parity) that
 * its barriers wait for. Each stage has a full and an empty mbarrier. */
template <int StageBytes> struct gk__pipeline_state {
  unsigned data, barriers; /* addresses of the first stage and of its full barrier */
  unsigned stages, stage_idx, phase;
  GK__D unsigned stage_address() const { return data + stage_idx * StageBytes; }
  GK__D unsigned full_barrier() const { return barriers + stage_idx * 8; }
  GK__D unsigned empty_barrier() const { return barriers + (stages + stage_idx) * 8; }
  GK__D void advance() {
    if (++stage_idx == stages) {
      stage_idx = 0;
      phase ^= 1;
    }
  }
  /* By one thread, before the other threads use a barrier: how many arrivals complete the barriers. */
  GK__D void init_barriers(unsigned full_count, unsigned empty_count) const {
    for (unsigned i = 0; i < stages; i++) {
      gk__ptx_mbarrier_init(barriers + i * 8, full_count);
      gk__ptx_mbarrier_init(barriers + (stages + i) * 8, empty_count);
    }
  }
};

/* The loads and the MMAs of a thread for one stage. The storage order of the operands is known at compile time, so that
 * all loads of a stage have one address and constant offsets. */
template <class Shape, bool KMajorA, bool KMajorB> struct gk__f64_stage {
  typedef typename Shape::sums sums_of;
  typedef typename sums_of::fragment fragment_of;
  typedef gk__pipeline_state<Shape::stage_bytes> pipeline;
  static const int pad = gk__row_padding<double, true>::items;
  static const int a_row = KMajorA ? Shape::bk + pad : 1, a_k = KMajorA ? 1 : Shape::bm + pad;
  static const int b_col = KMajorB ? Shape::bk + pad : 1, b_k = KMajorB ? 1 : Shape::bn + pad;
  static const int quads = sums_of::quads, a_count = Shape::warp_rows / 8 * quads,
                   load_count = a_count + Shape::warp_cols / 8 * quads;
  static const int mma_cols = sums_of::mma_cols, mma_count = sums_of::mma_count;
  static_assert(sums_of::depth == Shape::bk && load_count % mma_count == 0, "a stage is one MMA deep");
  unsigned a_address, b_address; /* of this thread's operands in the first stage */

  GK__D gk__f64_stage(const sums_of &sums, unsigned ring) {
    int lane_id = static_cast<int>(threadIdx.x % 32);
    gk__forget(&lane_id); /* a kernel has four of these, and uses one */
    a_address = ring + static_cast<unsigned>(sums.first_row * a_row + lane_id % 4 * a_k) * 8;
    b_address =
        ring + static_cast<unsigned>(Shape::operand_a::items +
                                     (sums.first_col - lane_id % 4 * 2 + lane_id / 4) * b_col + lane_id % 4 * b_k) *
                   8;
  }
  /* The n-th of a thread's operands: first those of A, then those of B. */
  static GK__D double &operand(fragment_of *f, int n) {
    return n < a_count ? f->a[n / quads][n % quads] : f->b[(n - a_count) / quads][n % quads];
  }
  GK__D void load(fragment_of *f, const pipeline &pipe, int n) const {
    const int i = (n < a_count ? n : n - a_count) / quads * 8, k = n % quads * 4;
    const unsigned offset = static_cast<unsigned>(n < a_count ? i * a_row + k * a_k : i * b_col + k * b_k);
    gk__ptx_ld_shared_f64(&operand(f, n),
                          (n < a_count ? a_address : b_address) + pipe.stage_idx * Shape::stage_bytes + offset * 8);
  }
};
/* A consumer warp's product for one tile. The operands of the next stage are loaded while those of this one are
 * multiplied, a few loads after each MMA, so that the tensor cores wait neither for loads nor for the barrier. The
 * compiler would not find this order. */
template <bool More, class Stage, class Sums, class Fragment>
GK__D void gk__f64_multiply_stage(const Stage &stage, Sums *sums, const Fragment &now, Fragment *next,
                                  typename Stage::pipeline *pipe) {
  const int loads_per_mma = Stage::load_count / Stage::mma_count;
  const unsigned empty = pipe->empty_barrier();
  pipe->advance();
  const bool ready = !More || gk__ptx_mbarrier_try_wait_parity(pipe->full_barrier(), pipe->phase);
  sums->multiply_one(now, 0);
  if (!ready) gk__ptx_mbarrier_wait_parity(pipe->full_barrier(), pipe->phase);
  GK__UNROLL
  for (int n = 0; n < Stage::mma_count; n++) {
    if (n > 0) sums->multiply_one(now, n);
    if (n == Stage::mma_cols - 1) gk__ptx_mbarrier_arrive(empty); /* all operands of the stage are in registers */
    GK__UNROLL
    for (int l = n * loads_per_mma; l < (n + 1) * loads_per_mma; l++)
      if (More) stage.load(next, *pipe, l);
  }
}
template <class Stage, class Sums>
GK__D void gk__f64_consume(const Stage &stage, Sums *sums, typename Stage::pipeline *pipe, int k) {
  typename Sums::fragment fragment[2];
  int stages = k / Sums::depth;
  const int rest = k % Sums::depth;
  if (stages > 0) {
    gk__ptx_mbarrier_wait_parity(pipe->full_barrier(), pipe->phase);
    GK__UNROLL
    for (int l = 0; l < Stage::load_count; l++) stage.load(&fragment[0], *pipe, l);
  }
  GK__UNROLL_BY(1)
  for (; stages > 2; stages -= 2) {
    gk__f64_multiply_stage<true>(stage, sums, fragment[0], &fragment[1], pipe);
    gk__f64_multiply_stage<true>(stage, sums, fragment[1], &fragment[0], pipe);
  }
  if (stages == 2) {
    gk__f64_multiply_stage<true>(stage, sums, fragment[0], &fragment[1], pipe);
    gk__f64_multiply_stage<false>(stage, sums, fragment[1], &fragment[0], pipe);
  } else if (stages == 1) {
    gk__f64_multiply_stage<false>(stage, sums, fragment[0], &fragment[1], pipe);
  }
  if (rest == 0) return;
  /* The last stage, of which only the first `rest` k exist. Past these A is replaced by -0 and B by 0: adding their
   * product changes no accumulator. */
  gk__ptx_mbarrier_wait_parity(pipe->full_barrier(), pipe->phase);
  GK__UNROLL
  for (int l = 0; l < Stage::load_count; l++) {
    stage.load(&fragment[0], *pipe, l);
    if (l % Stage::quads * 4 + static_cast<int>(threadIdx.x % 4) >= rest)
      stage.operand(&fragment[0], l) = l < Stage::a_count ? -0.0 : 0.0;
  }
  sums->multiply_step(fragment[0]);
  gk__ptx_mbarrier_arrive(pipe->empty_barrier());
  pipe->advance();
}
/* Ends a partition where the sums are in registers, too. */
template <class Sums>
GK__D void gk__f64_end_partition(Sums *sums, double (&sum)[Sums::vectors][Sums::vector_width], bool is_last) {
  GK__UNROLL
  for (int i = 0; i < Sums::vectors * Sums::vector_width; i++)
    gk__add_partition(&sum[i / Sums::vector_width][i % Sums::vector_width],
                      &sums->value[i / Sums::vector_width][i % Sums::vector_width], is_last);
}
#endif

/* work_count: the work tiles of the launch. */
template <class Shape, class Args>
__global__ void __launch_bounds__(Shape::producers + Shape::consumers, Shape::resident)
    gk__f64_kernel(Args p, unsigned work_count) {
#ifdef GK__PASS_SM_90
  if (!Shape::fits) {
    GK__EMPTY_KERNEL;
    return;
  }
  const int t = static_cast<int>(threadIdx.x);
  GK_DYNAMIC_SHARED(double, ring);
  __shared__ unsigned long long barriers[2 * Shape::stages];
  gk__pipeline_state<Shape::stage_bytes> pipe = {gk__shared_address(ring), gk__shared_address(barriers), Shape::stages,
                                                 0, 0};
  if (t == 0) pipe.init_barriers(Shape::producers, Shape::consumers);
  __syncthreads();
  gk__wait_for_earlier_work();
  if (t >= Shape::consumers) {
#ifdef GK__PASS_SM_90A
    if (Shape::moves_registers) gk__ptx_setmaxnreg_dec<Shape::producer_registers>();
#endif
    for (unsigned work_idx = blockIdx.x; work_idx < work_count; work_idx += gridDim.x) {
      const gk__work_tile work = gk__work_tile_of<Shape>(p, work_idx, p.work_partitions());
      const gk__partition_range range(p, work.partition, Shape::in_turn);
      typename Shape::operand_a a(p.a + work.batch * p.stride_a, p.lda, !p.trans_a, work.row0, p.m, range.begin,
                                  range.depth, t - Shape::consumers);
      typename Shape::operand_b b(p.b + work.batch * p.stride_b, p.ldb, p.trans_b, work.col0, p.n, range.begin,
                                  range.depth, t - Shape::consumers);
      GK__UNROLL_BY(1)
      for (int left = range.depth; left > 0; left -= Shape::bk) {
        gk__ptx_mbarrier_wait_parity(pipe.empty_barrier(), pipe.phase ^ 1);
        double *dest = ring + static_cast<int>(pipe.stage_idx) * Shape::stage_items;
        gk__forget(&dest); /* otherwise the compiler computes it again for each copy */
        a.fetch_in_loop(dest, p.lda, left);
        b.fetch_in_loop(dest + Shape::operand_a::items, p.ldb, left);
        gk__ptx_cp_async_mbarrier_arrive_noinc(pipe.full_barrier());
        pipe.advance();
      }
    }
  } else {
#ifdef GK__PASS_SM_90A
    if (Shape::moves_registers) gk__ptx_setmaxnreg_inc<Shape::consumer_registers>();
#endif
    typename Shape::sums sums(t);
    for (unsigned work_idx = blockIdx.x; work_idx < work_count; work_idx += gridDim.x) {
      gk__clear(sums.value);
      const gk__work_tile work = gk__work_tile_of<Shape>(p, work_idx, p.work_partitions());
      double sum[Shape::sums::vectors][Shape::sums::vector_width];
      if (Shape::in_turn) gk__set_all(sum, -0.0); /* the identity of addition */
      int left = gk__partition_range(p, work.partition, Shape::in_turn).depth;
      do {
        const int k = Shape::in_turn && left > p.depth ? p.depth : left;
        if (!p.trans_a && !p.trans_b)
          gk__f64_consume(gk__f64_stage<Shape, true, false>(sums, pipe.data), &sums, &pipe, k);
        else if (!p.trans_a)
          gk__f64_consume(gk__f64_stage<Shape, true, true>(sums, pipe.data), &sums, &pipe, k);
        else if (!p.trans_b)
          gk__f64_consume(gk__f64_stage<Shape, false, false>(sums, pipe.data), &sums, &pipe, k);
        else
          gk__f64_consume(gk__f64_stage<Shape, false, true>(sums, pipe.data), &sums, &pipe, k);
        left -= k;
        if (Shape::in_turn) gk__f64_end_partition(&sums, sum, left == 0);
      } while (Shape::in_turn && left > 0);
      gk__store_work_tile<gk__register_tile>(sums, p, work);
    }
  }
#else
  GK__EMPTY_KERNEL;
  (void)p;
  (void)work_count;
#endif
}
#endif /* GK__HOPPER_BUILD */

/* --- Thin products ------------------------------------------------------------------------------------------------
 *
 * One operand has up to four rows (or columns), and nearly all of the time goes into reading the other one, once. A
 * block computes 32 of that one's columns (64 of half types), for one partition of k. Its threads form 32 groups, which
 * divide k (sliced-K): group i multiplies every 32nd quad (four consecutive k), from the i-th on. A group is one lane
 * of each warp if the columns are K-major, and eight consecutive threads if they are MN-major; either way a warp reads
 * whole lines. A tree adds up the accumulators of the groups. */

enum { GK__THIN_THREADS = 256, GK__THIN_COLS = 32, GK__THIN_K_GROUPS = 32, GK__THIN_ROWS = 4 };

/* The columns of a thread and of a block, and for half types the stages of a ring, each with room for what the threads
 * need for one quad of k. The planner counts by GK__THIN_COLS, whatever the type. */
template <class Item, int Rows> struct gk__thin_shape {
  static const int thread_cols = sizeof(Item) == 2 ? 8 : 4, col_count = 8 * thread_cols;
  static const int stage_bytes = (thread_cols + Rows) * 4 * static_cast<int>(sizeof(Item)) * GK__THIN_THREADS;
  static const int stages = 4, ring_bytes = sizeof(Item) == 2 ? stages * stage_bytes : 0;
};

/* One operand of a thin product. Strides are in elements. */
template <class Item> struct gk__thin_operand {
  const Item *data;
  size_t outer, k, batch; /* from one row of A or column of B, from one k and from one product to the next */
};
/* A thin product: the many columns are those of B or, as C^T = B^T A^T, the rows of A. */
template <class Args> struct gk__thin_args {
  Args product;
  gk__thin_operand<typename Args::item_type> x, y; /* x: the few rows; y: the many columns */
  size_t row_count, col_count;
  bool transposed; /* C^T is computed */
  bool in_ring;    /* operands pass through a ring: they are half types, and shared memory has room for it */
  gk__thin_args(const Args &p, bool is_transposed)
      : product(p), row_count(p.m), col_count(p.n), transposed(is_transposed), in_ring(false) {
    x = {p.a, p.trans_a ? 1 : p.lda, p.trans_a ? p.lda : 1, p.stride_a};
    y = {p.b, p.trans_b ? p.ldb : 1, p.trans_b ? 1 : p.ldb, p.stride_b};
    if (!transposed) return;
    std::swap(x, y);
    std::swap(row_count, col_count);
  }
};

/* Count elements of one operand, `stride` apart. */
template <class Item, int Count> struct gk__thin_vector {
  /* copy_bytes: of a copy to the ring, which only half types use. Their vectors have at most 16 bytes. */
  static const int bytes = Count * static_cast<int>(sizeof(Item)), copy_bytes = bytes < 16 ? bytes : 16;
  gk__vector<Item, Count> items;
  /* Loads the first item_count elements; the others become zeros. */
  GK__D void load(const Item *from, size_t stride, int item_count) {
    GK__UNROLL
    for (int i = 0; i < Count; i++)
      items.value[i] = i < item_count ? from[static_cast<size_t>(i) * stride] : gk__convert<Item, float>::from(0.0f);
  }
  /* A whole and aligned one of 16 bytes or more that is not expected to be read again soon. */
  GK__D void load_once(const Item *from) {
    const int word_count = bytes / 16 > 0 ? bytes / 16 : 1;
    gk__word16 words[word_count];
    GK__UNROLL
    for (int i = 0; i < word_count; i++) words[i] = gk__load_streaming(reinterpret_cast<const gk__word16 *>(from) + i);
    memcpy(static_cast<void *>(&items), words, sizeof(items));
  }
  GK__D void load_from_ring(const unsigned char *from) {
    const gk__vector<unsigned, bytes / 4> words = *reinterpret_cast<const gk__vector<unsigned, bytes / 4> *>(from);
    memcpy(static_cast<void *>(&items), &words, sizeof(items));
  }
};

/* A thread's part of one quad of k: four k of Cols of the many columns, K-major or MN-major, and of Rows few rows. */
template <class Item, int Rows, int Cols, bool KMajor> struct gk__thin_quad {
  static const int vector_count = KMajor ? Cols : 4, y_count = KMajor ? 4 : Cols;
  typedef gk__thin_vector<Item, y_count> y_vector;
  typedef gk__thin_vector<Item, 4> x_vector;
  y_vector y[vector_count];
  x_vector x[Rows];
  /* How the few rows are loaded: in vectors of four k; of four rows; or one by one. */
  enum x_access { by_k, by_rows, by_element };
  /* y_step: elements from one vector to the next; y_stride: from one element of a vector to the next. */
  GK__D void load_y(const Item *from, size_t y_step, size_t y_stride, int depth, int col_count) {
    const int vectors = KMajor ? col_count : depth, items = KMajor ? depth : col_count; /* those that exist */
    GK__UNROLL
    for (int i = 0; i < vector_count; i++)
      y[i].load(from + static_cast<size_t>(i) * y_step, y_stride, i < vectors ? items : 0);
  }
  GK__D void load_y_once(const Item *from, size_t y_step) {
    GK__UNROLL
    for (int i = 0; i < vector_count; i++) y[i].load_once(from + static_cast<size_t>(i) * y_step);
  }
  GK__D void load_x(const Item *from, size_t x_row, size_t x_k, int row_count, int depth, x_access access) {
    if (access == by_rows && Rows == 4) {
      GK__UNROLL
      for (int i = 0; i < 4; i++) {
        const gk__vector<Item, 4> quad_rows =
            *reinterpret_cast<const gk__vector<Item, 4> *>(from + static_cast<size_t>(i) * x_k);
        GK__UNROLL
        for (int r = 0; r < Rows; r++) x[r].items.value[i] = quad_rows.value[r];
      }
      return;
    }
    GK__UNROLL
    for (int r = 0; r < Rows; r++) {
      if (r > 0 && r >= row_count) break;
      const Item *const row_data = from + static_cast<size_t>(r) * x_row;
      if (access == by_k)
        x[r].items = *reinterpret_cast<const gk__vector<Item, 4> *>(row_data);
      else
        x[r].load(row_data, x_k, depth);
    }
  }
  /* Adds the products of the first `depth` k. */
  template <class Acc> GK__D void multiply(Acc (&sum)[Rows][Cols], int row_count, int depth) const {
    GK__UNROLL
    for (int r = 0; r < Rows; r++) {
      if (r > 0 && r >= row_count) break;
      GK__UNROLL
      for (int i = 0; i < 4; i++) {
        GK__UNROLL
        for (int j = 0; j < Cols; j++)
          if (i < depth)
            sum[r][j] =
                gk__fma(gk__convert<Acc, Item>::from(x[r].items.value[i]),
                        gk__convert<Acc, Item>::from(KMajor ? y[j].items.value[i] : y[i].items.value[j]), sum[r][j]);
      }
    }
  }
  /* The same by way of the ring, of which each thread uses its own part. */
  static GK__D int y_offset(int i) { return (i * GK__THIN_THREADS + static_cast<int>(threadIdx.x)) * y_vector::bytes; }
  static GK__D int x_offset(int r) {
    return (vector_count * y_vector::bytes + r * x_vector::bytes) * GK__THIN_THREADS +
           static_cast<int>(threadIdx.x) * x_vector::bytes;
  }
  static GK__D void copy_to_ring(unsigned char *stage, const Item *y_from, size_t y_step, const Item *x_from,
                                 size_t x_row, int row_count, bool copies_x) {
    GK__UNROLL
    for (int i = 0; i < vector_count; i++)
      gk__copy_async<y_vector::copy_bytes>(stage + y_offset(i), y_from + static_cast<size_t>(i) * y_step);
    GK__UNROLL
    for (int r = 0; r < Rows; r++)
      if (copies_x && r < row_count)
        gk__copy_async<x_vector::copy_bytes>(stage + x_offset(r), x_from + static_cast<size_t>(r) * x_row);
  }
  GK__D void load_from_ring(const unsigned char *stage, int row_count, bool has_x) {
    GK__UNROLL
    for (int i = 0; i < vector_count; i++) y[i].load_from_ring(stage + y_offset(i));
    if (!has_x) return;
    GK__UNROLL
    for (int r = 0; r < Rows; r++)
      if (r < row_count) x[r].load_from_ring(stage + x_offset(r));
  }
};

/* The sums of one group for a thread's columns. x and y begin at its first k, of which `left` are left in the
 * partition.
 *
 * The number of bytes in flight limits half types. So they pass through a ring in shared memory, with all stages but
 * one in flight. Without room for it `ring` is NULL. Each thread reads only what it copied itself, so it needs no
 * barrier. In registers the elements would have to be packed into words, and packing waits for each load. */
template <bool KMajor, int Rows, int Cols, class Item, class Acc>
GK__D void gk__thin_sums(Acc (&sum)[Rows][Cols], const Item *x, size_t x_row, size_t x_k, int row_count, const Item *y,
                         size_t y_step, size_t y_stride, int col_count, int left, unsigned char *ring) {
  typedef gk__thin_quad<Item, Rows, Cols, KMajor> quad_type;
  typedef gk__thin_shape<Item, Rows> shape;
  const int next_quad = GK__THIN_K_GROUPS * 4, ring_end = shape::stages * shape::stage_bytes;
  const size_t next_x = static_cast<size_t>(next_quad) * x_k,
               next_y = static_cast<size_t>(next_quad) * (KMajor ? y_stride : y_step);
  typename quad_type::x_access access = quad_type::by_element;
  if (gk__has_vectors<4>(x, x_k, row_count > 1 ? x_row : 0))
    access = quad_type::by_k;
  else if (Rows == 4 && sizeof(Item) == 4 && row_count == 4 && gk__has_vectors<4>(x, x_row, x_k))
    access = quad_type::by_rows;
  const bool whole = gk__has_vectors<quad_type::y_count>(y, y_stride, y_step) && col_count >= Cols;
  if (sizeof(Item) == 2 && ring && whole) {
    const bool copies_x = access == quad_type::by_k;
    int to_fetch = left, stage = 0, free_stage = ring_end - shape::stage_bytes;
    const Item *x_ahead = x, *y_ahead = y;
    const auto fetch = [&](int pos) {
      if (to_fetch >= 4) quad_type::copy_to_ring(ring + pos, y_ahead, y_step, x_ahead, x_row, row_count, copies_x);
      gk__ptx_cp_async_commit_group();
      to_fetch -= next_quad;
      x_ahead += next_x;
      y_ahead += next_y;
    };
    GK__UNROLL_BY(1)
    for (int pos = 0; pos < free_stage; pos += shape::stage_bytes) fetch(pos);
    GK__UNROLL_BY(1)
    for (; left >= 4; left -= next_quad) {
      quad_type quad;
      if (!copies_x) quad.load_x(x, x_row, x_k, row_count, 4, access);
      gk__ptx_cp_async_wait_group<shape::stages - 2>();
      quad.load_from_ring(ring + stage, row_count, copies_x);
      fetch(free_stage);
      quad.multiply(sum, row_count, 4);
      free_stage = stage;
      stage = gk__next_stage(stage, shape::stage_bytes, ring_end);
      x += next_x;
      y += next_y;
    }
    gk__ptx_cp_async_wait_group<0>();
  } else if (sizeof(Item) >= 4 && whole && access != quad_type::by_element) {
    GK__UNROLL_BY(Rows == 1 ? 2 : 1)
    for (; left >= 4; left -= next_quad) {
      quad_type quad;
      quad.load_y_once(y, y_step);
      quad.load_x(x, x_row, x_k, row_count, 4, access);
      quad.multiply(sum, row_count, 4);
      x += next_x;
      y += next_y;
    }
  }
  GK__UNROLL_BY(1)
  for (; left > 0; left -= next_quad) {
    quad_type quad;
    quad.load_y(y, y_step, y_stride, left, col_count);
    quad.load_x(x, x_row, x_k, row_count, left, quad_type::by_element);
    quad.multiply(sum, row_count, left);
    x += next_x;
    y += next_y;
  }
}

/* Adds the sums of the 32 groups as a tree, to shared[row][column]. The positions of the sums of a group are permuted
 * by an XOR with its index, so that neighbouring threads of different groups store to different banks. */
template <int Rows, int Cols, class Acc>
GK__D void gk__thin_reduce(const Acc (&sum)[Rows][Cols], Acc *shared, int k_group, int first_col) {
  const int block_cols = 8 * Cols, pitch = Rows * block_cols;
  static_assert(pitch % GK__THIN_K_GROUPS == 0, "an XOR with the index of a group stays within its sums");
  GK__UNROLL
  for (int r = 0; r < Rows; r++) {
    GK__UNROLL
    for (int j = 0; j < Cols; j++) shared[k_group * pitch + ((r * block_cols + first_col + j) ^ k_group)] = sum[r][j];
  }
  __syncthreads();
  for (int distance = GK__THIN_K_GROUPS / 2; distance; distance /= 2) {
    for (int i = static_cast<int>(threadIdx.x); i < distance * pitch; i += GK__THIN_THREADS)
      shared[i] = gk__arithmetic<Acc>::add(shared[i], shared[(i + distance * pitch) ^ distance]);
    __syncthreads();
  }
}

template <int Rows, class Args>
__global__ void __launch_bounds__(GK__THIN_THREADS,
                                  GK__RESIDENT(Rows == 1 && sizeof(typename Args::item_type) == 4 ? 3 : 2))
    gk__thin_kernel(gk__thin_args<Args> p) {
  typedef typename Args::item_type Item;
  typedef typename Args::acc_type Acc;
  const int thread_cols = gk__thin_shape<Item, Rows>::thread_cols, block_cols = gk__thin_shape<Item, Rows>::col_count;
  GK_DYNAMIC_SHARED(unsigned char, ring);
  Acc *const shared = reinterpret_cast<Acc *>(ring); /* the sums of the groups, in the end */
  gk__wait_for_earlier_work();
  if (!p.product.condition.holds()) return;
  const unsigned blocks = static_cast<unsigned>(gk_ceil_div(p.col_count, static_cast<size_t>(block_cols)));
  const unsigned batch = blockIdx.x / (blocks * p.product.partitions),
                 partition = blockIdx.x / blocks % p.product.partitions;
  const gk__partition_range range(p.product, partition);
  const bool k_major = p.y.k == 1; /* then a group is a lane, and each warp has some columns */
  const int t = static_cast<int>(threadIdx.x), k_group = k_major ? t % 32 : t / 8;
  const int first_col = (k_major ? t / 32 : t % 8) * thread_cols;
  const size_t col0 = static_cast<size_t>(blockIdx.x % blocks) * block_cols;
  const size_t group_k = range.begin + static_cast<size_t>(k_group * 4);
  const Item *const x = p.x.data + batch * p.x.batch + group_k * p.x.k;
  const Item *const y =
      p.y.data + batch * p.y.batch + group_k * p.y.k + (col0 + static_cast<size_t>(first_col)) * p.y.outer;
  const int row_count = static_cast<int>(p.row_count),
            col_count = p.col_count - col0 < block_cols ? static_cast<int>(p.col_count - col0) : block_cols;
  Acc sum[Rows][thread_cols];
  gk__clear(sum);
  if (k_major)
    gk__thin_sums<true>(sum, x, p.x.outer, p.x.k, row_count, y, p.y.outer, 1, col_count - first_col,
                        range.depth - k_group * 4, p.in_ring ? ring : NULL);
  else
    gk__thin_sums<false>(sum, x, p.x.outer, p.x.k, row_count, y, p.y.k, p.y.outer, col_count - first_col,
                         range.depth - k_group * 4, p.in_ring ? ring : NULL);
  __syncthreads(); /* the ring has been read */
  gk__thin_reduce(sum, shared, k_group, first_col);
  const int r = t / block_cols, col_idx = t % block_cols;
  if (r >= row_count || col_idx >= col_count) return;
  const Acc value[1] = {shared[r * block_cols + col_idx]};
  const size_t x_idx = static_cast<size_t>(r), y_idx = col0 + static_cast<size_t>(col_idx);
  const size_t c_row = p.transposed ? y_idx : x_idx, c_col = p.transposed ? x_idx : y_idx;
  if (p.product.partials)
    p.product.epilogue_of_partial(batch, partition).store(c_row, c_col, value);
  else
    p.product.epilogue_of_c(batch).store(c_row, c_col, value);
}

/* --- Calls: the GPU, memory for partials, and launches -------------------------------------------------------------
 *
 * What the products of all kernels share on the host. */

/* The partitions of k of a product, at most; thin products have more if k is very long. */
#define GK__MATMUL_PARTITIONS 32
/* The partials that a call has in the scratch at once, at most. No product with k <= 2^30 has more partitions than that
 * allows. With a larger k the length of a partition, an int, may require more; such a product runs in several launches,
 * of some of its tiles each. */
#define GK__PARTIALS_BYTES (size_t(64) << 20)
/* Shared memory of a multiprocessor of Hopper, and what CUDA takes of it for each block, in bytes. */
static const unsigned gk__hopper_smem = 228 * 1024, gk__block_reserve = 1024;
/* What plans depend on: the multiprocessors of the current device, the shared memory of a block in bytes, and the plan
 * of tensor cores for which the program has code: GK_PLAN_MMA, GK_PLAN_WGMMA, or GK_PLAN_AUTO if it has none. */
struct gk__matmul_gpu {
  int sms, smem_limit;
  gk_plan tensor_plan;
  bool has_smem(size_t bytes) const { return bytes <= static_cast<size_t>(smem_limit); }
};
inline cudaError_t gk__find_matmul_gpu(gk__matmul_gpu *gpu) {
  const char *const call = "gk_matmul";
  int device = 0;
  GK_TRY(gk__failed(cudaGetDevice(&device), call));
  GK_TRY(gk__failed(cudaDeviceGetAttribute(&gpu->sms, cudaDevAttrMultiProcessorCount, device), call));
  return gk__failed(cudaDeviceGetAttribute(&gpu->smem_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), call);
}
/* A call: its GPU, its stream, and the memory for its partials. The memory is obtained together with the first launch
 * that needs it, which is the largest one. A call that launches other kernels first, on tensor cores or for the first
 * of two parts, goes through its launches with `measuring` set before that, which launches nothing and records the
 * bytes needed. So a scratch that is too small is refused before C is written. */
struct gk__product_call {
  const gk_scratch *given; /* the caller's, or NULL */
  cudaStream_t stream;
  gk__matmul_gpu gpu;
  bool measuring = false;
  size_t least = 0, most = 0;   /* bytes: the minimum for a launch, and the maximum that is of use */
  void *temporary = NULL;       /* memory that is freed at the end of the call */
  unsigned char *memory = NULL; /* for the partials */
  size_t bytes = 0;
  unsigned char *work = NULL; /* the work area, with room for at_once products */
  size_t at_once = 0;
  gk__product_call(const gk_scratch *scratch, cudaStream_t on_stream, const gk__matmul_gpu &on_gpu = gk__matmul_gpu())
      : given(scratch), stream(on_stream), gpu(on_gpu) {}
  /* Records a launch that computes `products` of a batch at once if the memory allows, and at least one. */
  void measure(size_t product_bytes, size_t products) {
    const size_t fit = GK__PARTIALS_BYTES / product_bytes, all = product_bytes * (products < fit ? products : fit);
    if (least < product_bytes) least = product_bytes;
    if (most < all) most = all;
    if (most < least) most = least;
  }
  /* Ends measuring: takes the caller's scratch, or temporary memory, if any of the launches needs some. */
  cudaError_t begin() {
    const size_t front = GK__SCAN_OFFSET;
    measuring = false;
    if (least == 0) return cudaSuccess;
    if (given) {
      GK_TRY(gk__check_scratch("gk_matmul", given, front + least));
      memory = static_cast<unsigned char *>(given->ptr) + front;
      bytes = given->bytes - front < most ? given->bytes - front : most;
      return cudaSuccess;
    }
    bytes = most;
    GK_TRY(gk__temporary_memory(&temporary, bytes, "gk_matmul", stream));
    memory = static_cast<unsigned char *>(temporary);
    return cudaSuccess;
  }
  cudaError_t end(cudaError_t status) const { return gk__free_temporary(status, temporary, "gk_matmul", stream); }
};
template <class Kernel, class... Params>
cudaError_t gk__launch_product(const gk__product_call &call, const Kernel &kernel, size_t blocks, int thread_count,
                               size_t smem, const Params &...params) {
  return gk__launch_kernel("gk_matmul", kernel, static_cast<unsigned>(blocks), static_cast<unsigned>(thread_count),
                           smem, call.stream, params...);
}
template <class Out, class Acc, class Func>
cudaError_t gk__reduce_partials(const gk__matmul_output<Out, Acc, Func> &p, const gk__product_call &call) {
  const size_t vectors = p.m * (gk__partial_ld(p.n) / 4) * p.batch;
  const unsigned blocks = gk__grid_dim(vectors, GK__REDUCE_PARTIALS_THREADS, 1u << 14);
  return gk__launch_product(call, GK__KERNEL(gk__reduce_partials_kernel<Out, Acc, Func>), p.limited(blocks),
                            GK__REDUCE_PARTIALS_THREADS, 0, p, call.given != NULL);
}
/* Launches the products of a batch, as many at a time as there is memory for partials and grid blocks for. A product
 * takes `blocks` blocks. split: its kernel stores partials, which are then reduced. keeps_limit: `launch` keeps to
 * max_blocks by itself, however many products it is given. */
template <class Args, class Launch>
cudaError_t gk__launch_batches(Args p, size_t blocks, bool split, gk__product_call *call, Launch launch,
                               bool keeps_limit = false) {
  const size_t batch = p.batch, most_blocks = 0x7fffffffu, product_bytes = split ? p.partial_bytes() : 0;
  const size_t products_per_grid = (keeps_limit ? most_blocks : p.limited(most_blocks)) / blocks;
  size_t products_per_launch = products_per_grid > 0 ? products_per_grid : 1;
  if (batch < products_per_launch) products_per_launch = batch;
  if (blocks > most_blocks) return GK__INVALID("gk_matmul: %zu tiles are more than a grid has blocks", blocks);
  if (split && !call->memory) call->measure(product_bytes, products_per_launch);
  if (call->measuring) return cudaSuccess;
  if (split) {
    if (!call->memory) GK_TRY(call->begin());
    const size_t products_that_fit = call->bytes / product_bytes;
    if (products_that_fit == 0) /* a launch that was not measured must not write past the partials */
      return gk__fail(cudaErrorUnknown, "gk_matmul: %zu bytes of partials are needed, but %zu were measured",
                      product_bytes, call->bytes);
    if (products_per_launch > products_that_fit) products_per_launch = products_that_fit;
    p.partials = reinterpret_cast<typename Args::acc_type *>(call->memory);
  }
  for (size_t done = 0; done < batch; done += products_per_launch) {
    p.batch = batch - done < products_per_launch ? batch - done : products_per_launch;
    GK_TRY(launch(p, blocks * p.batch));
    if (split) GK_TRY(gk__reduce_partials(p, *call));
    p.skip(products_per_launch);
  }
  return cudaSuccess;
}
/* Costs of reducing partials with a second kernel, in clocks: the launch; each round of eight partitions, which are
 * loaded at once; 1/100 clock for each KiB of partials, which are written and read. */
struct gk__reduce_costs {
  unsigned launch, round, kib;
};
inline gk__reduce_costs gk__measured_reduce_costs() { return {807, 677, 83}; }
/* The clocks to reduce partials of m x n that a second kernel adds up. */
inline unsigned long long gk__reduction_clocks(const gk__reduce_costs &costs, size_t m, size_t n, size_t batch,
                                               unsigned partitions, size_t item_bytes) {
  if (partitions < 2) return 0;
  const unsigned long long kib = m * n * batch * partitions * item_bytes / 1024;
  return costs.launch + gk_ceil_div(partitions, 8u) * costs.round + kib * costs.kib / 100;
}
/* The same for partials of floats, in microseconds on an H200. */
inline double gk__reduction_us(const gk__reduce_costs &costs, size_t m, size_t n, size_t batch, unsigned partitions) {
  const double clocks_per_us = 1755;
  return static_cast<double>(gk__reduction_clocks(costs, m, n, batch, partitions, sizeof(float))) / clocks_per_us;
}
template <class Acc> bool gk__partials_fit(size_t m, size_t n, unsigned partitions) {
  return partitions < 2 || gk__partial_bytes<Acc>(m, n) <= GK__PARTIALS_BYTES / partitions;
}

/* A strict kernel, and what a launch needs to know of its configuration. Only the kernel is compiled for each
 * configuration, the launch once for all. */
template <class... Params> struct gk__tile_kernel {
  gk__kernel<Params...> kernel, one_group; /* one_group: for blocks with one group */
  size_t bm, bn;                           /* of the tile */
  unsigned groups;                         /* most groups in a block */
  int thread_count;                        /* of a group */
  size_t ring_bytes;                       /* of a group */
  size_t resident;                         /* blocks of Hopper's kernels that a multiprocessor holds at once; else 0 */
};
/* Launches a product in panels of whole tiles, as large as max_blocks and the memory for partials allow. */
template <class Args, class Launch>
cudaError_t gk__launch_panels(const Args &p, size_t tile_m, size_t tile_n, size_t blocks_per_tile,
                              gk__product_call *call, const Launch &launch) {
  typedef typename Args::acc_type Acc;
  const size_t tiles_m = gk_ceil_div(p.m, tile_m), tiles_n = gk_ceil_div(p.n, tile_n);
  size_t most_tiles = p.limited(tiles_m * tiles_n * blocks_per_tile) / blocks_per_tile;
  if (!gk__partials_fit<Acc>(p.m, p.n, static_cast<unsigned>(blocks_per_tile))) {
    const size_t most = GK__PARTIALS_BYTES / (blocks_per_tile * gk__partial_bytes<Acc>(tile_m, tile_n));
    if (most_tiles > most) most_tiles = most;
  }
  if (most_tiles == 0) most_tiles = 1;
  /* Each launch computes up to eight rows of tiles, more if whole rows fit, so that its tiles share operands in L2. */
  const size_t most_rows = most_tiles < 8 ? most_tiles : 8;
  size_t launch_tiles_m = tiles_m < most_rows ? tiles_m : most_rows, launch_tiles_n = most_tiles / launch_tiles_m;
  if (launch_tiles_n >= tiles_n) {
    launch_tiles_n = tiles_n;
    launch_tiles_m = most_tiles / tiles_n; /* at most tiles_m */
  }
  for (size_t row_idx = 0; row_idx < tiles_m; row_idx += launch_tiles_m)
    for (size_t col_idx = 0; col_idx < tiles_n; col_idx += launch_tiles_n) {
      const Args panel =
          gk__panel(p, row_idx * tile_m, col_idx * tile_n, launch_tiles_m * tile_m, launch_tiles_n * tile_n);
      GK_TRY(gk__launch_batches(panel, gk__tile_count(panel.m, panel.n, tile_m, tile_n) * blocks_per_tile,
                                blocks_per_tile > 1, call, launch));
      if (call->measuring) return cudaSuccess; /* no later panel needs more */
    }
  return cudaSuccess;
}
/* The groups of a block each take a partition, if there are no more partitions than groups and their stages fit in
 * shared memory. in_turn: a block has one group, which computes all partitions of a tile. */
template <class Args>
cudaError_t gk__matmul_tiles(const gk__tile_kernel<Args> &tile_kernel, const Args &p, gk__product_call *call,
                             bool in_turn = false) {
  const size_t tile_bytes = tile_kernel.bm * tile_kernel.bn * sizeof(typename Args::acc_type);
  /* Accumulators replace the operands. */
  const size_t group_bytes = tile_kernel.ring_bytes > tile_bytes ? tile_kernel.ring_bytes : tile_bytes;
  size_t groups = p.partitions <= tile_kernel.groups && !in_turn ? p.partitions : 1;
  if (groups > 1 && !call->gpu.has_smem(groups * group_bytes)) groups = 1;
  const size_t block_smem =
      groups > 1 ? groups * group_bytes : tile_kernel.ring_bytes + (in_turn ? tile_bytes : 0); /* the sum */
  const size_t blocks_per_tile = groups > 1 || in_turn ? 1 : p.partitions;
  const gk__kernel<Args> &kernel = groups > 1 ? tile_kernel.kernel : tile_kernel.one_group;
  const auto launch = [=](const Args &sub_batch, size_t blocks) {
    /* If the grid does not fill the multiprocessors, each block requests so much shared memory that the blocks are
     * spread evenly. Without that, the blocks of a launch that overlaps the previous one would go to the
     * multiprocessors that are free first. */
    const size_t blocks_per_sm = gk_ceil_div(blocks, static_cast<size_t>(call->gpu.sms));
    const size_t smem = blocks_per_sm < tile_kernel.resident && gk__hopper_smem / (blocks_per_sm + 1) > block_smem
                            ? gk__hopper_smem / (blocks_per_sm + 1)
                            : block_smem;
    return gk__launch_product(*call, kernel, blocks, static_cast<int>(groups) * tile_kernel.thread_count, smem,
                              sub_batch);
  };
  return gk__launch_panels(p, tile_kernel.bm, tile_kernel.bn, blocks_per_tile, call, launch);
}

/* --- Tensor cores -------------------------------------------------------------------------------------------------
 *
 * Products of half-precision types, of floats rounded to tf32, and of floats split into three bfloat16 terms (emulated
 * fp32). All accumulate in fp32. The hardware defines the order of the additions within one MMA instruction, so the
 * bits of a result are reproducible on one GPU model, but differ between models.
 *
 * The kernels need operands whose base address and rows are 16-byte aligned. An operand that is not aligned, or that
 * is split into terms, is first copied to the work area of the scratch; and so is one of two MN-major operands of tf32
 * for wgmma. This pass runs at memory bandwidth, and costs less than a product that reads such an operand directly. But
 * Hopper's kernels can read an unaligned K-major A, and small products have a kernel that reads any operand. tf32 is
 * rounded as it is loaded, by TMA or by the reader of fragments. */

/* Size in bytes of an element, and the lowest code that has its MMA instruction (80: compute_80). For wgmma: kind, the
 * Kind of gk__ptx_wgmma; map, operand: the CUtensorMapDataType of C, and that of A and B (cuda.h: 6 is FLOAT16, 7
 * FLOAT32, 9 BFLOAT16, and 11 TFLOAT32, to which TMA rounds floats). The half-precision types may be incomplete here:
 * emulated fp32 uses __nv_bfloat16 in files that do not include its header. */
template <class Element> struct gk__tensor_type;
template <> struct gk__tensor_type<__half> { static const int bytes = 2, code = 75, kind = 0, map = 6, operand = 6; };
template <> struct gk__tensor_type<__nv_bfloat16> {
  static const int bytes = 2, code = 80, kind = 1, map = 9, operand = 9;
};
template <> struct gk__tensor_type<float> { static const int bytes = 4, code = 80, kind = 2, map = 7, operand = 11; };
/* The least b with x <= 2^b, at most 63. */
inline unsigned gk__ceil_log2(size_t x) {
  unsigned bits = 0;
  while (bits < 63 && x > size_t(1) << bits) bits++;
  return bits;
}
/* The elements of a product of Items: those that are no half types go to tensor cores as floats, if at all. */
template <class Item>
using gk__tensor_element = typename std::conditional<gk__half_traits<Item>::is_half, Item, float>::type;

/* An operand as the tensor-core kernels read it: the base address and the strides are multiples of 16 bytes, unless it
 * is split. */
template <class Element> struct gk__operand_view {
  const void *data;
  size_t leading_dim;  /* elements from one stored row to the next */
  size_t stride_batch; /* elements from one product to the next; 0: the whole batch shares one matrix */
  size_t stride_term;  /* elements from one bfloat16 term to the next (emulated fp32); else unused */
  int k_major;         /* K-major: A is stored as m x k, B as n x k. Else MN-major: k x m, k x n */
  unsigned split;      /* > 1: A is unaligned; it is read as this many matrices, each of every split-th row */
  void advance(size_t elements) {
    data = static_cast<const unsigned char *>(data) + elements * gk__tensor_type<Element>::bytes;
  }
  /* Moves on to a row of A, or a column of B. */
  void skip_outer(size_t outer) { advance(outer * (k_major ? leading_dim : 1)); }
};
/* A product, or a batch of them, as the tensor-core kernels take it. */
template <class Element, class Out, class Func = gk__identity>
struct gk__tensor_args : gk__matmul_output<Out, float, Func> {
  gk__operand_view<Element> a, b;
  size_t k;
  size_t partition_stages; /* mma.sync: stages of k in a partition; the last partition may have fewer */
  explicit gk__tensor_args(const gk__matmul_output<Out, float, Func> &output = gk__matmul_output<Out, float, Func>())
      : gk__matmul_output<Out, float, Func>(output), a(), b(), k(0), partition_stages(0) {}
  /* Moves on to the products of the batch behind the first `products`. */
  void skip(size_t products) {
    a.advance(products * a.stride_batch);
    b.advance(products * b.stride_batch);
    this->c += products * this->stride_c;
  }
  void skip_outer(size_t row_count, size_t col_count) {
    a.skip_outer(row_count);
    b.skip_outer(col_count);
  }
};
/* The number of bfloat16 terms of a float in emulated fp32. */
#define GK__BF16_TERMS 3

/* --- Tensor cores: operand preparation ---------------------------------------------------------------------------*/

/* A copy has aligned rows, which end with zeros up to a multiple of 16 bytes. It may be transposed. TF32: rounded.
 * BF16_TERMS: split into terms. */
enum { GK__PREPARE_COPY, GK__PREPARE_TF32, GK__PREPARE_BF16_TERMS };

/* How the matrices are divided among blocks. In a work tile, threads_x threads stand side by side and each handles one
 * vector of a row; threads_y threads stand below each other and each handles rows_per_thread rows. At most an eighth of
 * the threads of a block are left over. tiles_x by tiles_y tiles cover a matrix. Work tiles are numbered in 32 bits,
 * because 32-bit division is cheaper. */
static const unsigned gk__prepare_threads = 256;
struct gk__prepare_tiling {
  unsigned threads_x, threads_y, rows_per_thread, tiles_x, tiles_y, tile_count;
};
/* An operand as the caller stores it, and where its prepared copy goes. */
template <class Item> struct gk__raw_operand {
  const Item *from;
  size_t row_count, col_count, leading_dim, stride, batch; /* in elements; batch 0: no preparation is needed */
  unsigned char *dest;
  size_t to_ld, to_stride, to_term; /* of the copy: bytes from row to row, matrix to matrix, term to term */
  bool transposed;                  /* the copy is transposed; a work tile is then a gk__transpose_tile */
  gk__prepare_tiling tiling;
};

/* Count consecutive elements of a row from any address, in 32-bit words. `left` elements of the row remain; those past
 * its end become zeros. load() issues aligned 16-byte loads that cover the elements; shift_and_pad() then shifts the
 * words into place. The two are separate so that a thread can issue all its loads before it waits for the first. Where
 * aligned loads would read outside of the matrix [begin, end), the elements are loaded one by one. */
template <int Count, class Item> struct gk__unaligned_vector {
  static const int words = Count * static_cast<int>(sizeof(Item)) / 4, loads = words / 4 + 1;
  unsigned word[loads * 4], shift;
  GK__D void load(const Item *from, size_t left, const Item *begin, const Item *end) {
    shift = static_cast<unsigned>(reinterpret_cast<uintptr_t>(from) % 16);
    const ptrdiff_t before = static_cast<ptrdiff_t>(shift / sizeof(Item)), all = 16 / static_cast<int>(sizeof(Item));
    if (from - begin >= before && end - from >= Count + (shift ? all - before : 0)) {
      const gk__word16 *const aligned = reinterpret_cast<const gk__word16 *>(from - before);
      GK__UNROLL
      for (int i = 0; i < loads; i++) {
        gk__word16 x = {{0, 0, 0, 0}};
        if (i < loads - 1 || shift) x = aligned[i];
        GK__UNROLL
        for (int j = 0; j < 4; j++) word[i * 4 + j] = x.word[j];
      }
      return;
    }
    shift = 0;
    GK__UNROLL
    for (int i = 0; i < loads * 4; i++) word[i] = 0;
    /* No branches: the loads do not wait for each other. */
    GK__UNROLL
    for (int i = 0; i < Count; i++) {
      const int pos = i * static_cast<int>(sizeof(Item)); /* bytes */
      typename std::conditional<sizeof(Item) == 4, unsigned, unsigned short>::type bits = 0;
      if (static_cast<size_t>(i) < left) memcpy(&bits, from + i, sizeof(Item));
      word[pos / 4] |= static_cast<unsigned>(bits) << (pos % 4 * 8);
    }
  }
  /* After this the first `words` words hold the elements. */
  GK__D void shift_and_pad(size_t left) {
    GK__UNROLL
    for (int i = 0; i < words + 2; i++) word[i] = shift & 8 ? word[i + 2] : word[i];
    GK__UNROLL
    for (int i = 0; i < words + 1; i++) word[i] = shift & 4 ? word[i + 1] : word[i];
    GK__UNROLL
    for (int i = 0; i < words; i++) word[i] = shift & 2 ? __funnelshift_r(word[i], word[i + 1], 16) : word[i];
    if (left < Count) {
      const int bytes = static_cast<int>(left * sizeof(Item));
      GK__UNROLL
      for (int i = 0; i < words; i++) word[i] &= bytes >= 4 * i + 4 ? ~0u : bytes > 4 * i ? 0xffffu : 0;
    }
  }
};

/* The number which, added to the bits of a float before the low 13 are cleared, rounds it to the nearest tf32. Ties go
 * to even, as TMA rounds. Before sm_90 they go away from zero, because even ones would cost mma.sync more instructions
 * for each operand. */
GK__HD unsigned gk__tf32_rounding(unsigned bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  (void)bits;
  return 0x1000u;
#else
  return 0xfffu + (bits >> 13 & 1);
#endif
}
GK__HD unsigned gk__round_to_tf32(unsigned bits) {
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return magnitude > 0x7f800000u ? 0x7fffffffu : bits;
  return (bits + gk__tf32_rounding(bits)) & 0xffffe000u;
}
/* The same for two operands of mma.sync that are in one row of A, or in one column of B. mma.sync ignores the low 13
 * bits. Before sm_90 a number beside a NaN is not rounded: both are multiplied for the same elements of C, which become
 * NaN. (A NaN of which only the low 13 bits are set is read as infinity. Arithmetic makes no such NaN.) */
GK__D void gk__round_mma_operands(unsigned &bits0, unsigned &bits1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  const float x0 = __uint_as_float(bits0), x1 = __uint_as_float(bits1);
  if (x0 != x0 || x1 != x1) return;
  bits0 += gk__tf32_rounding(bits0);
  bits1 += gk__tf32_rounding(bits1);
#elif defined(__CUDA_ARCH__)
  bits0 = gk__ptx_cvt_rn_tf32_f32(__uint_as_float(bits0));
  bits1 = gk__ptx_cvt_rn_tf32_f32(__uint_as_float(bits1));
#else
  bits0 = gk__round_to_tf32(bits0);
  bits1 = gk__round_to_tf32(bits1);
#endif
}
/* Rounds to the nearest bfloat16, ties to even; the result is the upper half of the word. Not for infinity or NaN. */
GK__HD unsigned gk__round_to_bf16(unsigned bits) { return (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u; }
/* Splits a float into the sum of three bfloat16, each in the upper half of its word. The remainders are exact, and the
 * last is 0, because each term takes at least eight of the 24 significant bits. */
GK__D void gk__split_to_bf16(unsigned (&term)[GK__BF16_TERMS], unsigned bits) {
  float rest = __uint_as_float(bits);
  GK__UNROLL
  for (int i = 0; i < GK__BF16_TERMS; i++) {
    term[i] = gk__round_to_bf16(__float_as_uint(rest));
    rest = gk__arithmetic<float>::add(rest, -__uint_as_float(term[i]));
  }
}

/* A vector of prepared elements: it is 16 bytes, or 16 bytes of each term. */
template <int Preparation> struct gk__prepared_vector {
  static const int items = Preparation == GK__PREPARE_TF32 ? 4 : 8, item_bytes = 16 / items;
  /* Rows of which a thread has loads in flight. */
  static const unsigned rows_per_load = Preparation == GK__PREPARE_BF16_TERMS ? 2 : 4;
  /* Whether a copy may be transposed: for tf32, for half types by wgmma, and for emulated fp32 by mma.sync, which code
   * for sm_90a does not have. The transposition, if it is compiled there, costs 6 % of a product of 1024^3 (H200). */
#if defined(GK__PASS_SM_90A)
  static const bool transposes = Preparation != GK__PREPARE_BF16_TERMS;
#elif defined(GK__PASS_SM_90) /* the kernel may stand in for that of sm_90a: see section 22 */
  static const bool transposes = true;
#else
  static const bool transposes = Preparation != GK__PREPARE_COPY;
#endif
};
/* Emulated fp32 is as accurate as fp32 while no bf16 term, and no product of terms that counts, leaves the range of a
 * float. These are the magnitudes, as bits of a float, between which an operand's elements must lie. From 2^-60 on the
 * smallest product is 2^-120, whose first 29 bits are in range. With k products of the largest, 2^((126 - log2 k) / 2),
 * a sum stays below 2^126. */
GK__D unsigned gk__min_split_bits() { return (127u - 60u) << 23; }
inline unsigned gk__max_split_bits(size_t k) { return (127u + (126u - gk__ceil_log2(k)) / 2) << 23; }
/* Whether emulated fp32 cannot represent a float: its magnitude, as bits, is below the least one or reaches `limit`. */
GK__D bool gk__split_excludes(unsigned bits, unsigned limit) {
  const unsigned magnitude = bits & 0x7fffffffu;
  return (magnitude != 0 && magnitude < gk__min_split_bits()) || magnitude >= limit;
}
/* Stores a vector, or each of its terms. Returns whether terms cannot represent one of its elements. */
template <int Preparation>
GK__D bool gk__store_prepared(const unsigned *word, unsigned char *dest, size_t to_term, unsigned limit) {
  const int terms = Preparation == GK__PREPARE_BF16_TERMS ? GK__BF16_TERMS : 1;
  gk__word16 term[terms];
  bool out_of_range = false;
  if (Preparation == GK__PREPARE_BF16_TERMS) {
    GK__UNROLL
    for (int i = 0; i < 8; i += 2) {
      unsigned low[GK__BF16_TERMS], high[GK__BF16_TERMS];
      gk__split_to_bf16(low, word[i]);
      gk__split_to_bf16(high, word[i + 1]);
      GK__UNROLL
      for (int j = 0; j < terms; j++) term[j].word[i / 2] = low[j] >> 16 | high[j];
      out_of_range |= gk__split_excludes(word[i], limit);
      out_of_range |= gk__split_excludes(word[i + 1], limit);
    }
  } else {
    GK__UNROLL
    for (int i = 0; i < 4; i++)
      term[0].word[i] = Preparation == GK__PREPARE_TF32 ? gk__round_to_tf32(word[i]) : word[i];
  }
  GK__UNROLL
  for (int j = 0; j < terms; j++) *reinterpret_cast<gk__word16 *>(dest + static_cast<size_t>(j) * to_term) = term[j];
  return out_of_range;
}

/* Stores tile `in_matrix` of a matrix transposed, by all threads of a block. 32 columns of the matrix become 32 rows of
 * the copy. A thread has eight loads in flight, which keeps the memory busy. Returns what gk__store_prepared returns.
 */
template <int Preparation> struct gk__transpose_tile {
  static const unsigned items = gk__prepared_vector<Preparation>::items;
  static const unsigned col_count = 32, row_count = 64, vectors = row_count / items; /* vectors: of a row of the copy */
  unsigned word[row_count][col_count + 1];                                           /* padded: fewer bank conflicts */
  template <class Item>
  GK__D bool prepare(const gk__raw_operand<Item> &p, size_t matrix, unsigned in_matrix, unsigned limit) {
    const unsigned x = threadIdx.x % col_count, y = threadIdx.x / col_count;
    const size_t row0 = static_cast<size_t>(in_matrix / p.tiling.tiles_x) * row_count;
    const size_t col0 = static_cast<size_t>(in_matrix % p.tiling.tiles_x) * col_count;
    const Item *const from = p.from + matrix * p.stride;
    GK__UNROLL
    for (unsigned i = 0; i < row_count; i += gk__prepare_threads / col_count) {
      unsigned bits = 0;
      if (row0 + y + i < p.row_count && col0 + x < p.col_count)
        memcpy(&bits, from + (row0 + y + i) * p.leading_dim + col0 + x, sizeof(Item));
      word[y + i][x] = bits;
    }
    __syncthreads();
    bool out_of_range = false;
    const size_t row_idx = row0 + threadIdx.x % vectors * items;
    GK__UNROLL
    for (unsigned i = 0; i < col_count; i += gk__prepare_threads / vectors) {
      const unsigned to_row = i + threadIdx.x / vectors;
      unsigned vector[items] = {};
      GK__UNROLL
      for (unsigned j = 0; j < items; j++) { /* two elements of a half type share a word */
        const unsigned pos = j * static_cast<unsigned>(sizeof(Item));
        vector[pos / 4] |= word[threadIdx.x % vectors * items + j][to_row] << pos % 4 * 8;
      }
      if (col0 + to_row >= p.col_count || row_idx >= p.row_count) continue;
      if (gk__store_prepared<Preparation>(vector,
                                          p.dest + matrix * p.to_stride + (col0 + to_row) * p.to_ld +
                                              row_idx * gk__prepared_vector<Preparation>::item_bytes,
                                          p.to_term, limit))
        out_of_range = true;
    }
    __syncthreads();
    return out_of_range;
  }
};
/* Prepares both operands: the first blocks_a blocks prepare A, the others B. If the terms of emulated fp32 cannot
 * represent an element, *strict becomes 1, and a strict kernel computes the product. With a transposition in the code,
 * the compiler would take 97 registers, which leaves room for two blocks on a multiprocessor; 0 is no limit. */
template <int Preparation, class Item>
__global__ void __launch_bounds__(gk__prepare_threads,
                                  GK__RESIDENT(gk__prepared_vector<Preparation>::transposes ? 3 : 0))
    gk__prepare_kernel(gk__raw_operand<Item> a, gk__raw_operand<Item> b, unsigned blocks_a, bool start_early,
                       unsigned limit, unsigned *strict) {
  typedef gk__prepared_vector<Preparation> prepared;
  __shared__ gk__transpose_tile<Preparation> transpose_tile;
  gk__wait_for_earlier_work();
  if (start_early) gk__let_later_work_start();
  const bool is_a = blockIdx.x < blocks_a;
  const gk__raw_operand<Item> p = is_a ? a : b;
  const unsigned block_idx = is_a ? blockIdx.x : blockIdx.x - blocks_a;
  const unsigned blocks = is_a ? blocks_a : gridDim.x - blocks_a;
  bool out_of_range = false;
  for (unsigned tile_idx = block_idx; tile_idx < p.tiling.tile_count; tile_idx += blocks) {
    const unsigned matrix_tiles = p.tiling.tiles_x * p.tiling.tiles_y, in_matrix = tile_idx % matrix_tiles;
    const size_t matrix = tile_idx / matrix_tiles;
    if (p.transposed) {
      /* Only emulated fp32 in code for sm_90a lacks that code. It is called for where a program links code for sm_90
       * and sm_90a of one version and tag (section 22). The strict kernel computes the product then. */
      if (!prepared::transposes || transpose_tile.prepare(p, matrix, in_matrix, limit)) out_of_range = true;
      continue;
    }
    /* The first vector of this thread. */
    const unsigned x = threadIdx.x % p.tiling.threads_x, y = threadIdx.x / p.tiling.threads_x;
    const unsigned rows_per_pass = p.tiling.threads_y, tile_rows = p.tiling.rows_per_thread * rows_per_pass;
    const size_t row_idx = static_cast<size_t>(in_matrix / p.tiling.tiles_x) * tile_rows + y;
    const size_t col_idx =
        (static_cast<size_t>(in_matrix % p.tiling.tiles_x) * p.tiling.threads_x + x) * prepared::items;
    if (col_idx >= p.col_count || y >= rows_per_pass) continue;
    const Item *const begin = p.from + matrix * p.stride;
    const Item *const end = begin + (p.row_count - 1) * p.leading_dim + p.col_count;
    const Item *from = begin + row_idx * p.leading_dim;
    unsigned char *dest = p.dest + matrix * p.to_stride + row_idx * p.to_ld + col_idx * prepared::item_bytes;
    /* Rows from this thread's first one on, at most those of a work tile. Every threads_y-th is its own. */
    const size_t rows_left = p.row_count > row_idx ? p.row_count - row_idx : 0;
    const unsigned row_count = rows_left < tile_rows ? static_cast<unsigned>(rows_left) : tile_rows;
    GK__UNROLL_BY(1)
    for (unsigned done = 0; done < row_count; done += prepared::rows_per_load * rows_per_pass) {
      gk__unaligned_vector<prepared::items, Item> vectors[prepared::rows_per_load];
      /* All loads of these rows are issued before the first store. */
      GK__UNROLL
      for (unsigned i = 0; i < prepared::rows_per_load; i++)
        if (done + i * rows_per_pass < row_count)
          vectors[i].load(from + i * (rows_per_pass * p.leading_dim) + col_idx, p.col_count - col_idx, begin, end);
      GK__UNROLL
      for (unsigned i = 0; i < prepared::rows_per_load; i++) {
        if (done + i * rows_per_pass >= row_count) break;
        vectors[i].shift_and_pad(p.col_count - col_idx);
        if (gk__store_prepared<Preparation>(vectors[i].word, dest + i * (rows_per_pass * p.to_ld), p.to_term, limit))
          out_of_range = true;
      }
      from += prepared::rows_per_load * rows_per_pass * p.leading_dim;
      dest += prepared::rows_per_load * rows_per_pass * p.to_ld;
    }
  }
  if (Preparation == GK__PREPARE_BF16_TERMS && __syncthreads_or(out_of_range) && threadIdx.x == 0)
    atomicExch(strict, 1u);
}

/* The tiling of an operand that is prepared; without tiles if none is needed. */
template <int Preparation, class Item>
gk__prepare_tiling gk__plan_prepare_tiling(const gk__raw_operand<Item> &p, int sms) {
  typedef gk__prepared_vector<Preparation> prepared;
  typedef gk__transpose_tile<Preparation> transpose_tile;
  gk__prepare_tiling t = {1, 1, 16, 1, 1, 0};
  if (p.batch == 0) return t;
  size_t tile_rows = transpose_tile::row_count, tiles_x = gk__tile_count(p.col_count, transpose_tile::col_count);
  if (!p.transposed) {
    const size_t vectors = gk__tile_count(p.col_count, prepared::items), enough = static_cast<size_t>(sms) * 8;
    tiles_x = gk__tile_count(vectors, 32);
    t.threads_x = static_cast<unsigned>(gk_ceil_div(vectors, tiles_x));
    t.threads_y = gk__prepare_threads / t.threads_x;
    while (t.rows_per_thread > prepared::rows_per_load &&
           gk__tile_count(p.row_count, t.threads_y * t.rows_per_thread) * tiles_x * p.batch < enough)
      t.rows_per_thread /= 2;
    tile_rows = t.threads_y * t.rows_per_thread;
  }
  t.tiles_x = static_cast<unsigned>(tiles_x);
  t.tiles_y = static_cast<unsigned>(gk__tile_count(p.row_count, tile_rows));
  t.tile_count = static_cast<unsigned>(t.tiles_x * t.tiles_y * p.batch);
  return t;
}
/* Launches the kernel for both operands, with at most 16 blocks for each multiprocessor and block_limit blocks (0: no
 * limit), but one for each operand. If there are more work tiles than that, each operand gets half of the blocks, or as
 * many as it has work tiles; if the caller limits the blocks, also those that the other one leaves. */
template <int Preparation, class Item>
cudaError_t gk__prepare_operands(gk__raw_operand<Item> a, gk__raw_operand<Item> b, size_t k, unsigned *strict,
                                 bool persistent, size_t block_limit, const gk__product_call &call) {
  a.tiling = gk__plan_prepare_tiling<Preparation>(a, call.gpu.sms);
  b.tiling = gk__plan_prepare_tiling<Preparation>(b, call.gpu.sms);
  const size_t max_blocks = gk__limited_blocks(static_cast<size_t>(call.gpu.sms) * 16, block_limit),
               half_blocks = max_blocks > 1 ? max_blocks / 2 : 1;
  const auto blocks_of = [&](size_t tiles, size_t other_tiles) {
    const size_t most = block_limit && other_tiles < half_blocks ? max_blocks - other_tiles : half_blocks;
    return tiles <= most || tiles + other_tiles <= max_blocks ? tiles : most;
  };
  const size_t blocks_a = blocks_of(a.tiling.tile_count, b.tiling.tile_count),
               blocks_b = blocks_of(b.tiling.tile_count, a.tiling.tile_count);
  /* Let the product kernel start early only where that gains more than its blocks take from this kernel: if it is
   * persistent, and the operands are small. Other kernels have several blocks on an SM; these would fill the SMs that
   * become free first, and leave the others empty (tf32, 512^3 with mma.sync: 25.7 us instead of 13.3). */
  const size_t elements = a.row_count * a.col_count * a.batch + b.row_count * b.col_count * b.batch;
  const bool start_early = persistent && !block_limit && elements <= (size_t(1) << 22);
  return gk__launch_product(call, GK__KERNEL(gk__prepare_kernel<Preparation, Item>), blocks_a + blocks_b,
                            gk__prepare_threads, 0, a, b, static_cast<unsigned>(blocks_a), start_early,
                            gk__max_split_bits(k), strict);
}

/* --- Tensor cores: portable kernels, mma.sync --------------------------------------------------------------------
 *
 * A block computes one tile of C for one partition of k; each of its warps computes a part of the tile. cp.async loads
 * tiles of A and B into a ring of stages in shared memory. They keep their storage order, K-major or MN-major. The
 * 16-byte words of a row are permuted within 128 bytes (word index XOR row index), so that ldmatrix, which reads eight
 * rows at a time, has no bank conflicts in either order. One MMA step covers 32 bytes of k for every type.
 *
 * The CPU stand-in runs the same kernel, with ldmatrix and mma.sync emulated by shuffles. */

/* ldmatrix.x4: loads four matrices of 8 x 8 halves, or 8 x 4 floats. Lane l passes the address of row l % 8 of matrix
 * l / 8. dest[i] is its fragment of matrix i, or with Trans of the transpose of matrix i. */
template <bool Trans> GK__D void gk__ldmatrix_x4(unsigned (&dest)[4], const unsigned char *row_data) {
#ifdef __CUDA_ARCH__
  if (Trans)
    gk__ptx_ldmatrix_x4_trans(dest, gk__shared_address(row_data));
  else
    gk__ptx_ldmatrix_x4(dest, gk__shared_address(row_data));
#else
  const unsigned long long mine = reinterpret_cast<uintptr_t>(row_data);
  const unsigned lane_id = gk_lane();
  for (unsigned i = 0; i < 4; i++) {
    unsigned short half_bits[2];
    for (unsigned j = 0; j < 2; j++) {
      const unsigned pos = lane_id % 4 * 2 + j, row_idx = Trans ? pos : lane_id / 4,
                     col_idx = Trans ? lane_id / 4 : pos;
      const unsigned long long address = __shfl_sync(~0u, mine, static_cast<int>(i * 8 + row_idx));
      memcpy(&half_bits[j], reinterpret_cast<const unsigned char *>(static_cast<uintptr_t>(address)) + col_idx * 2, 2);
    }
    dest[i] = half_bits[0] | static_cast<unsigned>(half_bits[1]) << 16;
  }
#endif
}

/* d += A B for a 16 x 8 tile and 32 bytes of k. The fragments are those of mma.sync.m16n8 (PTX ISA). The planner never
 * chooses bfloat16 or tf32 for code below compute_80, so the function does nothing for them there. */
#ifdef __CUDA_ARCH__
template <class Element> GK__D void gk__mma_sync(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const bool is_f16 = std::is_same<Element, __half>::value;
#if __CUDA_ARCH__ >= 800
  if (is_f16)
    gk__ptx_mma_m16n8k16_f16(d, a, b0, b1);
  else if (std::is_same<Element, __nv_bfloat16>::value)
    gk__ptx_mma_m16n8k16_bf16(d, a, b0, b1);
  else
    gk__ptx_mma_m16n8k8_tf32(d, a, b0, b1);
#else
  for (int i = 0; i < 2 && is_f16; i++) gk__ptx_mma_m16n8k8_f16(d, a[i * 2], a[i * 2 + 1], i ? b1 : b0);
#endif
}
#else
/* Element i of a 32-bit word, as a float. */
template <class Element> GK__D float gk__element_of_word(unsigned word, int i) { /* __half */
  const unsigned short bits = static_cast<unsigned short>(word >> (16 * i));
  Element x;
  memcpy(static_cast<void *>(&x), &bits, 2);
  return gk__convert<float, Element>::from(x);
}
template <> GK__D float gk__element_of_word<__nv_bfloat16>(unsigned word, int i) {
  return __uint_as_float(i ? word & 0xffff0000u : word << 16);
}
template <> GK__D float gk__element_of_word<float>(unsigned word, int) { return __uint_as_float(word); }
/* Emulation for the stand-in: one sequence of FMAs in the order of k for each accumulator. The hardware has another
 * order, so the bits may differ. Lanes 4 g to 4 g + 3 hold rows g and g + 8 of A; four lanes hold a column of B. */
template <class Element> GK__D void gk__mma_sync(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const unsigned lane_id = gk_lane();
  unsigned long long x[2][4], y[2][4]; /* two words each, so that there are fewer shuffles */
  const auto both = [](unsigned low, unsigned high) { return low | static_cast<unsigned long long>(high) << 32; };
  for (unsigned quarter = 0; quarter < 4; quarter++)
    for (unsigned i = 0; i < 2; i++) {
      x[i][quarter] = __shfl_sync(~0u, both(a[i], a[i + 2]), static_cast<int>(lane_id / 4 * 4 + quarter));
      y[i][quarter] = __shfl_sync(~0u, both(b0, b1), static_cast<int>((lane_id % 4 * 2 + i) * 4 + quarter));
    }
  for (unsigned word = 0; word < 8; word++)
    for (int e = 0; e < 4 / gk__tensor_type<Element>::bytes; e++)
      for (int i = 0; i < 4; i++) {
        const unsigned long long of_a = x[i / 2][word % 4] >> word / 4 * 32, of_b = y[i % 2][word % 4] >> word / 4 * 32;
        d[i] = gk__fma(gk__element_of_word<Element>(static_cast<unsigned>(of_a), e),
                       gk__element_of_word<Element>(static_cast<unsigned>(of_b), e), d[i]);
      }
}
#endif

/* The storage order of an operand; GK__ANY_MAJOR: known at run time only. */
enum { GK__MN_MAJOR, GK__K_MAJOR, GK__ANY_MAJOR };
/* A stage of the ring has so many bytes of k of each term of an operand. */
#define GK__STAGE_ROW_BYTES 128
/* A kernel configuration. A block computes TileRows x TileCols of C, and a warp WarpRows x WarpCols. Stages: of the
 * ring, at least 2. Terms: of each element, 3 for emulated fp32. */
template <int Terms, int TileRows, int TileCols, int WarpRows, int WarpCols, int Stages, int OrderA = GK__ANY_MAJOR,
          int OrderB = GK__ANY_MAJOR>
struct gk__mma_config {
  static const unsigned stages = Stages;
  static const int bm = TileRows, bn = TileCols, wm = WarpRows, wn = WarpCols, terms = Terms, order_a = OrderA,
                   order_b = OrderB;
  static const int warps_n = TileCols / WarpCols, thread_count = TileRows / WarpRows * warps_n * 32;
  static const int a_bytes = TileRows * GK__STAGE_ROW_BYTES, b_bytes = TileCols * GK__STAGE_ROW_BYTES; /* of one term */
  typedef gk__shared_tile<TileRows, TileCols, thread_count> shared_tile; /* the accumulators, over the ring */
  static const int b_offset = Terms * a_bytes, stage_bytes = b_offset + Terms * b_bytes;
  static const int k_steps = GK__STAGE_ROW_BYTES / 32; /* MMA steps in a stage */
  static_assert(TileRows % 64 == 0 && TileCols % 64 == 0 && WarpRows % 32 == 0 && WarpCols % 32 == 0 &&
                    WarpRows <= 64 && WarpCols <= 64,
                "rows of 128 bytes or a multiple, for the permutation of 16-byte words, and warps within them");
};

/* The offset of a 16-byte word in a tile in shared memory. K-major: a row has 128 bytes of k. */
GK__D unsigned gk__k_major_offset(unsigned row_idx, unsigned word_idx) {
  return row_idx * GK__STAGE_ROW_BYTES + ((word_idx ^ row_idx % 8) * 16);
}
/* MN-major: a row has one k of Outer elements, which are 128 bytes or more. Elements of two bytes are read by ldmatrix,
 * one word of eight rows at a time; those of four bytes one by one, two words of four rows at a time. */
template <int Outer, int ElementBytes> GK__D unsigned gk__mn_major_offset(unsigned k, unsigned word_idx) {
  return k * (Outer * ElementBytes) + ((word_idx ^ (ElementBytes == 2 ? k % 8 : k % 4 * 2)) * 16);
}

/* A ring is aligned to 128 bytes. A functor may have static shared variables. They come before the dynamic ones, and a
 * 128-byte row that crosses a 128-byte boundary needs two shared-memory wavefronts: with 16 bytes of static ones in
 * front of an unaligned ring, 4096^3 took 414 us instead of 312 (f16, tile of 128 x 256, H200). */
enum { GK__RING_ALIGNMENT = 128 };

/* Loads the tiles of one operand into the ring, stage by stage. The first stage has the end of k, and zeros behind it
 * if k is not a multiple of a stage; so no later stage has to be compared with the end of k. Rows beyond the matrix are
 * not loaded: the accumulators that they contribute to are not stored. */
template <class Element, int Outer, int Threads, int Terms, int Order> struct gk__mma_loader {
  static const int element_bytes = gk__tensor_type<Element>::bytes;
  static const int tile_bytes = Outer * GK__STAGE_ROW_BYTES; /* of one term in one stage */
  static const int words_per_thread = tile_bytes / 16 / Threads;
  static const unsigned stage_depth = GK__STAGE_ROW_BYTES / element_bytes, word_items = 16 / element_bytes;
  static_assert(words_per_thread * Threads * 16 == tile_bytes, "every thread copies the same number of words");
  const unsigned char *from;                      /* this thread's first word in the stage that load() loads */
  size_t word_stride, stride_term, stage_advance; /* bytes from one of its words, terms and stages to the next */
  size_t rest_distance;                           /* bytes from the first k of the partition to the rest */
  unsigned first_k, rest;                         /* k of its first word in a stage; k in the first stage */
  unsigned row_count;                             /* rows of its words to load, counted from its first */
  unsigned bytes;                                 /* valid bytes of each of its words in the first stage */
  unsigned dest, row_step; /* offset of its first word in a stage; rows from one of its words to the next */
  bool k_major;
  GK__D gk__mma_loader(const gk__operand_view<Element> &p, size_t batch, size_t outer0, size_t outer_count,
                       size_t k_begin, size_t k_end) {
    k_major = Order == GK__ANY_MAJOR ? p.k_major != 0 : Order == GK__K_MAJOR;
    stride_term = p.stride_term * element_bytes;
    const unsigned words_per_row = k_major ? GK__STAGE_ROW_BYTES / 16 : Outer * element_bytes / 16;
    const unsigned row_idx = threadIdx.x / words_per_row, word_idx = threadIdx.x % words_per_row;
    row_step = Threads / words_per_row;
    const size_t line_bytes = p.leading_dim * element_bytes; /* from one stored row to the next */
    word_stride = row_step * line_bytes;
    stage_advance = k_major ? static_cast<size_t>(GK__STAGE_ROW_BYTES) : stage_depth * line_bytes;
    dest =
        k_major ? gk__k_major_offset(row_idx, word_idx) : gk__mn_major_offset<Outer, element_bytes>(row_idx, word_idx);
    const size_t whole_stages = k_end > k_begin ? (k_end - k_begin - 1) / stage_depth : 0;
    rest = static_cast<unsigned>(k_end - k_begin - whole_stages * stage_depth);
    rest_distance = whole_stages * stage_advance;
    first_k = k_major ? word_idx * word_items : row_idx;
    const size_t tile_left = outer_count - outer0, k0 = k_begin + first_k;
    const unsigned tile_outer = tile_left < Outer ? static_cast<unsigned>(tile_left) : Outer;
    const unsigned outer_idx = k_major ? row_idx : word_idx * word_items; /* in the tile */
    const unsigned outer_left = outer_idx < tile_outer ? tile_outer - outer_idx : 0;
    row_count = k_major || outer_left == 0 ? outer_left : stage_depth;
    bytes = !k_major && outer_left < word_items ? outer_left * element_bytes : 16;
    const size_t outer = outer0 + outer_idx;
    from = static_cast<const unsigned char *>(p.data) + batch * p.stride_batch * element_bytes +
           (k_major ? outer : k0) * line_bytes + (k_major ? k0 : outer) * element_bytes;
  }
  /* Loads one more stage, or nothing if there is none. First: the first stage, with the rest of k and zeros. There are
   * no branches, so that the compiler can schedule the copies between MMA instructions. A word of an MN-major operand
   * may extend beyond the end of its row: into the next row. Only in the first stage there may be no next row. */
  template <bool First> GK__D void load(unsigned char *stage, bool exists = true) {
    const unsigned row_limit = exists ? row_count : 0, k_left = first_k < rest ? rest - first_k : 0;
    const unsigned valid = !First ? 16 : k_major && k_left < word_items ? k_left * element_bytes : bytes;
    GK__UNROLL
    for (int term = 0; term < Terms; term++) {
      const unsigned char *word = from + (First ? rest_distance : 0) + static_cast<size_t>(term) * stride_term;
      GK__UNROLL_BY(First ? 4 : words_per_thread) /* the first stage runs once: a larger factor costs compile time */
      for (int i = 0; i < words_per_thread; i++) {
        const unsigned row_idx = static_cast<unsigned>(i) * row_step;
        if (row_idx < row_limit)
          gk__copy_async<16>(stage + term * tile_bytes + dest + i * Threads * 16, word,
                             !First || k_major || row_idx < k_left ? valid : 0);
        word += word_stride;
      }
    }
    if (!First) from += stage_advance;
  }
};

/* Reads the fragments of one warp for one k step: OuterRows rows of A, or columns of B. Floats are rounded to tf32. */
template <class Element, int Outer, int OuterRows, bool IsA> struct gk__mma_fragment_reader {
  static const int element_bytes = gk__tensor_type<Element>::bytes, fragments = OuterRows / 16;
  static const int row_bytes = Outer * element_bytes; /* MN-major */
  unsigned offset;
  bool k_major;
  GK__D gk__mma_fragment_reader(unsigned outer0, bool is_k_major) : k_major(is_k_major) {
    const unsigned lane_id = gk_lane(), outer_half = IsA ? lane_id / 8 % 2 : lane_id / 16,
                   k_half = IsA ? lane_id / 16 : lane_id / 8 % 2;
    if (k_major)
      offset = gk__k_major_offset(outer0 + outer_half * 8 + lane_id % 8, k_half);
    else if (element_bytes == 2)
      offset = gk__mn_major_offset<Outer, 2>(k_half * 8 + lane_id % 8, outer0 / 8 + outer_half);
    else
      offset = gk__mn_major_offset<Outer, 4>(lane_id % 4, outer0 / 4 + lane_id / 16) + lane_id / 4 % 4 * 4;
  }
  GK__D void read(unsigned (&dest)[fragments][4], const unsigned char *shared_tile, int k_step) const {
    GK__UNROLL
    for (int i = 0; i < fragments; i++) {
      if (k_major)
        gk__ldmatrix_x4<false>(dest[i], shared_tile + (offset ^ static_cast<unsigned>(k_step * 32)) +
                                            i * 16 * GK__STAGE_ROW_BYTES);
      else if (element_bytes == 2)
        gk__ldmatrix_x4<true>(dest[i],
                              shared_tile + (offset ^ static_cast<unsigned>(i * 32)) + k_step * 16 * row_bytes);
      else
        read_floats(dest[i], shared_tile + k_step * 8 * row_bytes, i);
      if (element_bytes == 4) {
        gk__round_mma_operands(dest[i][0], dest[i][IsA ? 2 : 1]);
        gk__round_mma_operands(dest[i][IsA ? 1 : 2], dest[i][3]);
      }
    }
  }
  /* Fragment i of a k step of floats that are MN-major: ldmatrix cannot transpose them. */
  GK__D void read_floats(unsigned (&dest)[4], const unsigned char *k_rows, int i) const {
    GK__UNROLL
    for (int j = 0; j < 4; j++) {
      const int outer_half = IsA ? j % 2 : j / 2, k_half = IsA ? j / 2 : j % 2, word_idx = i * 4 + outer_half * 2;
      dest[j] = *reinterpret_cast<const unsigned *>(k_rows + (offset ^ static_cast<unsigned>(word_idx % 8 * 16)) +
                                                    word_idx / 8 * 128 + k_half * 4 * row_bytes);
    }
  }
};

/* The accumulators of a warp. */
template <class Config> struct gk__mma_accumulators {
  static const int m = Config::wm / 16, n = Config::wn / 8;
  float value[m * n][4];
  GK__D gk__mma_accumulators() { gk__clear(value); }
  GK__D void add(const gk__mma_accumulators &stage_acc) {
    GK__UNROLL
    for (int i = 0; i < m * n * 4; i++)
      value[i / 4][i % 4] = gk__arithmetic<float>::add(value[i / 4][i % 4], stage_acc.value[i / 4][i % 4]);
  }
  template <class Element> GK__D void multiply(const unsigned (&a)[m][4], const unsigned (&b)[n / 2][4]) {
    GK__UNROLL
    for (int i = 0; i < m; i++) {
      GK__UNROLL
      for (int j = 0; j < n; j++) {
        const int pos = i % 2 ? n - 1 - j : j; /* serpentine order: consecutive MMAs share an operand */
        gk__mma_sync<Element>(value[i * n + pos], a[i], b[pos / 2][pos % 2 * 2], b[pos / 2][pos % 2 * 2 + 1]);
      }
    }
  }
  /* Stores them to a tile in shared memory. row_idx, col_idx: the first row and column of this warp in the tile. */
  GK__D void store_shared(float *c_tile, int pitch, unsigned row_idx, unsigned col_idx) const {
    typedef gk__vector<float, 2> pair;
    const unsigned lane_id = gk_lane();
    float *const dest = c_tile + (row_idx + lane_id / 4) * static_cast<unsigned>(pitch) + col_idx + lane_id % 4 * 2;
    GK__UNROLL
    for (int i = 0; i < m * 2; i++) {
      GK__UNROLL
      for (int j = 0; j < n; j++) {
        const float *const values = value[i / 2 * n + j] + i % 2 * 2;
        *reinterpret_cast<pair *>(dest + i * 8 * pitch + j * 8) = {{values[0], values[1]}};
      }
    }
  }
};

/* The main loop: stage_count stages of k, through the ring. The fragments of the next k step are read while the tensor
 * cores multiply those of this one. Once all fragments of a stage are read, its place in the ring is loaded anew.
 *
 * Emulated fp32 has six products of bfloat16 terms for each k step, and reads each term once for them: if each product
 * read its two, shared memory would take longer than the tensor cores. Only the fragments of the first product are read
 * one k step early, because there are no registers for more. Term i has about 2^-8i of the magnitude of its float, so
 * products with equal sums of term indices are of similar magnitude; the smallest come first. Tensor cores truncate
 * their sums. So each stage has accumulators of its own, which are then added to `acc` with rounding. */
template <class Element, class Config, class LoaderA, class LoaderB, class ReaderA, class ReaderB>
GK__D void gk__mma_multiply(gk__mma_accumulators<Config> &acc, LoaderA &a, LoaderB &b, const ReaderA &reader_a,
                            const ReaderB &reader_b, unsigned char *ring, unsigned stage_count) {
  const int last_term = Config::terms - 1, last_step = Config::k_steps - 1;
  const unsigned char *const ring_end = ring + Config::stages * Config::stage_bytes;
  unsigned a_fragment[2][Config::terms][Config::wm / 16][4], b_fragment[2][Config::terms][Config::wn / 16][4];
  a.template load<true>(ring);
  b.template load<true>(ring + Config::b_offset);
  gk__ptx_cp_async_commit_group();
  GK__UNROLL_BY(1)
  for (unsigned s = 1; s < Config::stages; s++) {
    a.template load<false>(ring + s * Config::stage_bytes, s < stage_count);
    b.template load<false>(ring + s * Config::stage_bytes + Config::b_offset, s < stage_count);
    gk__ptx_cp_async_commit_group();
  }
  gk__ptx_cp_async_wait_group<Config::stages - 1>();
  __syncthreads();
  reader_a.read(a_fragment[0][last_term], ring + last_term * Config::a_bytes, 0);
  reader_b.read(b_fragment[0][0], ring + Config::b_offset, 0);
  unsigned char *stage = ring;
  GK__UNROLL_BY(1)
  for (; stage_count > 0; stage_count--) {
    unsigned char *const next_stage = stage + Config::stage_bytes == ring_end ? ring : stage + Config::stage_bytes;
    gk__mma_accumulators<Config> stage_acc;
    gk__mma_accumulators<Config> &sum = Config::terms > 1 ? stage_acc : acc;
    GK__UNROLL
    for (int k_step = 0; k_step <= last_step; k_step++) {
      const int now = k_step % 2, next = (k_step + 1) % 2, next_step = (k_step + 1) % Config::k_steps;
      GK__UNROLL
      for (int i = 1; i <= last_term; i++) {
        reader_a.read(a_fragment[now][last_term - i], stage + (last_term - i) * Config::a_bytes, k_step);
        reader_b.read(b_fragment[now][i], stage + Config::b_offset + i * Config::b_bytes, k_step);
      }
      if (k_step == last_step) {
        gk__ptx_cp_async_wait_group<Config::stages - 2>();
        __syncthreads();
      }
      const unsigned char *const source = k_step == last_step ? next_stage : stage;
      reader_a.read(a_fragment[next][last_term], source + last_term * Config::a_bytes, next_step);
      reader_b.read(b_fragment[next][0], source + Config::b_offset, next_step);
      if (k_step == last_step) {
        a.template load<false>(stage, stage_count > Config::stages);
        b.template load<false>(stage + Config::b_offset, stage_count > Config::stages);
        gk__ptx_cp_async_commit_group();
      }
      GK__UNROLL
      for (int index_sum = last_term; index_sum >= 0; index_sum--) {
        GK__UNROLL
        for (int i = index_sum; i >= 0; i--)
          sum.template multiply<Element>(a_fragment[now][i], b_fragment[now][index_sum - i]);
      }
    }
    if (Config::terms > 1) acc.add(stage_acc);
    stage = next_stage;
  }
}

/* One tile and one partition of k. The grid has tiles along x and partitions along y: with one index for both, ptxas
 * orders the main loops in another way, and half types with the small tile take 1.01 to 1.07 times as long (H200). */
template <class Element, class Config, class Out, class Func>
GK__D void gk__mma_block(const gk__tensor_args<Element, Out, Func> &p) {
  typedef typename Config::shared_tile shared_tile;
  const size_t stage_depth = GK__STAGE_ROW_BYTES / gk__tensor_type<Element>::bytes;
  GK_DYNAMIC_SHARED(unsigned char, dynamic_shared);
  unsigned char *const ring = gk__align_shared<GK__RING_ALIGNMENT>(dynamic_shared);
  gk__wait_for_earlier_work();
  if (!p.condition.holds()) return;
  gk__work_tile work = gk__work_tile_of<Config>(p, blockIdx.x);
  work.partition = blockIdx.y;
  const unsigned warp_id = threadIdx.x / 32;
  const unsigned row_idx = warp_id / Config::warps_n * Config::wm; /* of the warp in the tile */
  const unsigned col_idx = warp_id % Config::warps_n * Config::wn;
  gk__mma_accumulators<Config> acc;
  {
    const size_t partition_depth = p.partition_stages * stage_depth, k_begin = work.partition * partition_depth;
    const size_t k_end = p.k - k_begin < partition_depth ? p.k : k_begin + partition_depth;
    gk__mma_loader<Element, Config::bm, Config::thread_count, Config::terms, Config::order_a> a(
        p.a, work.batch, work.row0, p.m, k_begin, k_end);
    gk__mma_loader<Element, Config::bn, Config::thread_count, Config::terms, Config::order_b> b(
        p.b, work.batch, work.col0, p.n, k_begin, k_end);
    const gk__mma_fragment_reader<Element, Config::bm, Config::wm, true> reader_a(row_idx, a.k_major);
    const gk__mma_fragment_reader<Element, Config::bn, Config::wn, false> reader_b(col_idx, b.k_major);
    gk__mma_multiply<Element>(acc, a, b, reader_a, reader_b, ring,
                              static_cast<unsigned>(gk_ceil_div(k_end - k_begin, stage_depth)));
  }
  float *const c_tile = reinterpret_cast<float *>(ring);
  __syncthreads(); /* the loop has read fragments behind the last k step from the ring */
  acc.store_shared(c_tile, shared_tile::pitch, row_idx, col_idx);
  __syncthreads();
  gk__store_work_tile<shared_tile>(c_tile, p, work);
}
template <class Element, class Config, class Out, class Func>
__global__ void __launch_bounds__(Config::thread_count) gk__mma_kernel(gk__tensor_args<Element, Out, Func> p) {
#ifdef GK__PASS_SM_90A
  /* Code for sm_90a has only the small tile of tf32 (see gk__mma_pays). */
  if (!std::is_same<Element, float>::value || Config::bm != 64) {
    GK__EMPTY_KERNEL;
    return;
  }
#endif
  gk__mma_block<Element, Config>(p);
}

/* The configurations of a type, in the order of gk__mma_tiles::costs(). Only half types have a middle one. */
enum { GK__LARGE_TILE, GK__SMALL_TILE, GK__MIDDLE_TILE };
/* A plan of the portable tensor-core kernels: the configuration and the split of k. */
struct gk__mma_plan {
  int config;           /* GK__LARGE_TILE ...; -1: none */
  size_t tiles;         /* of C, in the whole batch */
  size_t partitions;    /* of k */
  size_t product_bytes; /* of the partials of one product */
  double cost;          /* the expected time in microseconds */
};
/* What plans and launches need to know of a configuration. smem: bytes of shared memory. */
struct gk__mma_tile {
  size_t bm, bn, stage_depth, smem;
  unsigned thread_count;
};
template <class Element, class Config> gk__mma_tile gk__mma_tile_of() {
  const size_t ring_bytes = Config::stages * Config::stage_bytes, c_bytes = Config::shared_tile::bytes;
  return {Config::bm, Config::bn, GK__STAGE_ROW_BYTES / gk__tensor_type<Element>::bytes,
          (ring_bytes > c_bytes ? ring_bytes : c_bytes) + GK__RING_ALIGNMENT, Config::thread_count};
}

/* The cost model of a configuration, in microseconds on an H200. The time of a kernel is that of its waves of blocks,
 * plus the time to reduce the partials. Of 200 random products of half types, of tf32 and of emulated fp32 that a fit
 * did not see, the chosen plans take 1.2, 1.2 and 0.2 % longer than the best that were measured. `make bench-refit`
 * fits them. */
struct gk__mma_cost {
  double stage;      /* one stage of a block that is alone on its SM */
  double stage_rate; /* one stage of a full SM, divided by the number of its blocks */
  double start;      /* fixed cost of a block */
  double split;      /* what the second launch takes if k is split, beside the reduction */
  unsigned blocks;   /* resident blocks per SM, if its shared memory suffices */
  /* A wave of blocks of so many stages. */
  double wave(size_t stage_count, size_t blocks_per_sm) const {
    const double all_blocks = stage_rate * static_cast<double>(blocks_per_sm);
    return start + static_cast<double>(stage_count) * (all_blocks > stage ? all_blocks : stage);
  }
};
/* Blocks that a multiprocessor holds at once. An estimate: its shared memory is taken to be the limit of a block. */
inline size_t gk__resident_blocks(const gk__mma_tile &mma_tile, const gk__mma_cost &cost, const gk__matmul_gpu &gpu) {
  const size_t fit = static_cast<size_t>(gpu.smem_limit) / mma_tile.smem;
  return fit < cost.blocks ? fit : cost.blocks;
}
/* The cheapest of the plans that it takes. */
struct gk__mma_cheapest {
  gk__mma_plan plan = {-1, 0, 1, 0, 0};
  void take(const gk__mma_plan &other) {
    if (plan.config < 0 || other.cost < plan.cost) plan = other;
  }
};
/* What a plan depends on. */
struct gk__mma_query {
  size_t m, n, k, batch;
  gk__matmul_gpu gpu;
  bool operator==(const gk__mma_query &other) const {
    return m == other.m && n == other.n && k == other.k && batch == other.batch && gpu.sms == other.gpu.sms &&
           gpu.smem_limit == other.gpu.smem_limit && gpu.tensor_plan == other.gpu.tensor_plan;
  }
};
/* Gives *plans every plan with this configuration, if its ring fits into shared memory. A partition has at least three
 * stages, and the partials of the whole batch fit into GK__PARTIALS_BYTES. */
template <class Plans>
void gk__plan_mma_config(Plans *plans, int config, const gk__mma_tile &mma_tile, const gk__mma_cost &cost,
                         const gk__mma_query &query) {
  const size_t m = query.m, n = query.n, k = query.k, batch = query.batch, sms = static_cast<size_t>(query.gpu.sms),
               partial_bytes = gk__partial_bytes<float>(m, n);
  const size_t blocks_per_sm = gk__resident_blocks(mma_tile, cost, query.gpu), wave = sms * blocks_per_sm;
  const size_t k_stages = gk_ceil_div(k, mma_tile.stage_depth);
  const size_t max_partitions = k_stages / 3 < GK__MATMUL_PARTITIONS ? k_stages / 3 : size_t(GK__MATMUL_PARTITIONS);
  const size_t max_tiles = size_t(1) << 48; /* more than any launch has; keeps products below 2^64 */
  const size_t all = gk__saturated_product(
      gk__saturated_product(gk__tile_count(m, mma_tile.bm), gk__tile_count(n, mma_tile.bn)), batch);
  gk__mma_plan plan = {config, all < max_tiles ? all : max_tiles, 1, 0, 0};
  if (blocks_per_sm == 0) return;
  for (; plan.partitions == 1 || plan.partitions <= max_partitions; plan.partitions++) {
    const size_t partition_stages = gk_ceil_div(k_stages, plan.partitions), blocks = plan.tiles * plan.partitions;
    if (k_stages && gk_ceil_div(k_stages, partition_stages) != plan.partitions)
      continue; /* the last one would be empty */
    plan.product_bytes = plan.partitions > 1 ? gk__saturated_product(plan.partitions, partial_bytes) : 0;
    if (gk__saturated_product(batch, plan.product_bytes) > GK__PARTIALS_BYTES) break;
    const size_t left = gk_ceil_div(blocks % wave, sms); /* blocks per SM in the last wave */
    plan.cost = static_cast<double>(blocks / wave) * cost.wave(partition_stages, blocks_per_sm);
    if (left) plan.cost += cost.wave(partition_stages, left);
    if (plan.partitions > 1)
      plan.cost += cost.split +
                   gk__reduction_us(gk__measured_reduce_costs(), m, n, batch, static_cast<unsigned>(plan.partitions));
    plans->take(plan);
  }
}
/* The configurations of a type, and their costs. Products: of terms, 6 for emulated fp32, else 1. Warp tiles of 64 x 64
 * need the fewest reads of shared memory for each multiplication; small tiles fill a GPU with small products. Half
 * types have a tile in the middle, too: of its two blocks on a multiprocessor one multiplies while the other loads or
 * stores, and GPUs whose blocks have 99 KB of shared memory have no room for the large one. With it the best plans of
 * 1,788 random products take 0.977 of the time (0.955 from 1e9 multiply-adds on), and 0.91 of the time of the small
 * tile alone (H200). The large one of half types and tf32 is compiled for each storage order of the operands. */
template <int Products, class Element> struct gk__mma_tiles { /* half types */
  template <int OrderA, int OrderB> using large = gk__mma_config<1, 128, 256, 64, 64, 3, OrderA, OrderB>;
  typedef gk__mma_config<1, 64, 64, 32, 32, 3> small_config;
  typedef gk__mma_config<1, 128, 128, 64, 64, 3> middle_config;
  static const int config_count = 3;
  static const gk__mma_cost *costs() {
    static const gk__mma_cost of_configs[] = {
        {0.794, 0.794, 7.623, 0.650, 1}, {0.302, 0.220, 4.340, 4.617, 4}, {0.139, 0.436, 8.151, 1.441, 2}};
    return of_configs;
  }
};
template <> struct gk__mma_tiles<1, float> { /* tf32 */
  template <int OrderA, int OrderB> using large = gk__mma_config<1, 128, 128, 64, 64, 3, OrderA, OrderB>;
  typedef gk__mma_config<1, 64, 64, 32, 32, 3> small_config;
  typedef small_config middle_config;
  static const int config_count = 2;
  static const gk__mma_cost *costs() {
    static const gk__mma_cost of_configs[] = {{0.513, 0.469, 3.571, 3.324, 2}, {0.081, 0.361, 3.130, 3.303, 4}};
    return of_configs;
  }
};
template <class Element> struct gk__mma_tiles<6, Element> { /* emulated fp32, whose prepared operands are K-major */
  template <int, int> using large = gk__mma_config<GK__BF16_TERMS, 128, 128, 64, 32, 2, GK__K_MAJOR, GK__K_MAJOR>;
  typedef gk__mma_config<GK__BF16_TERMS, 64, 64, 32, 32, 2, GK__K_MAJOR, GK__K_MAJOR> small_config;
  typedef small_config middle_config;
  static const int config_count = 2;
  static const gk__mma_cost *costs() {
    static const gk__mma_cost of_configs[] = {{0.927, 3.067, 3.839, 0.027, 1}, {0.905, 0.834, 2.450, 0.535, 2}};
    return of_configs;
  }
};
/* What plans need to know of a configuration of a type. */
template <int Products, class Element> gk__mma_tile gk__mma_tile_at(int config) {
  typedef gk__mma_tiles<Products, Element> tiles;
  typedef typename tiles::template large<GK__K_MAJOR, GK__K_MAJOR> large;
  if (config == GK__LARGE_TILE) return gk__mma_tile_of<Element, large>();
  if (config == GK__SMALL_TILE) return gk__mma_tile_of<Element, typename tiles::small_config>();
  return gk__mma_tile_of<Element, typename tiles::middle_config>();
}
static_assert(gk__mma_tiles<1, float>::small_config::bm == 64 && gk__mma_tiles<1, float>::large<0, 0>::bm != 64,
              "gk__mma_kernel knows the small tile of tf32 by its rows");
/* Whether the code that a GPU runs has this configuration: code for sm_90a has only the small tile of tf32. */
template <class Element> bool gk__has_mma_tile(int config, const gk__matmul_gpu &gpu) {
  return gpu.tensor_plan != GK_PLAN_WGMMA || (std::is_same<Element, float>::value && config == GK__SMALL_TILE);
}
/* Gives *plans every plan of a product, with its time by such costs. */
template <int Products, class Element, class Plans>
void gk__each_mma_plan(Plans *plans, const gk__mma_cost *costs, const gk__mma_query &query) {
  for (int i = 0; i < gk__mma_tiles<Products, Element>::config_count; i++)
    if (gk__has_mma_tile<Element>(i, query.gpu))
      gk__plan_mma_config(plans, i, gk__mma_tile_at<Products, Element>(i), costs[i], query);
}
/* Runs a plan. */
template <int Products, class Element, class Out, class Func>
cudaError_t gk__mma_run(gk__tensor_args<Element, Out, Func> p, const gk__mma_plan &plan, gk__product_call *call) {
  typedef gk__mma_tiles<Products, Element> tiles;
  typedef typename tiles::template large<GK__K_MAJOR, GK__K_MAJOR> k_k;
  typedef typename tiles::template large<GK__K_MAJOR, GK__MN_MAJOR> k_mn;
  typedef typename tiles::template large<GK__MN_MAJOR, GK__K_MAJOR> mn_k;
  typedef typename tiles::template large<GK__MN_MAJOR, GK__MN_MAJOR> mn_mn;
  const bool a_k_major = p.a.k_major, b_k_major = p.b.k_major;
  auto kernel = GK__KERNEL(gk__mma_kernel<Element, mn_mn, Out, Func>);
  if (a_k_major && b_k_major) kernel = GK__KERNEL(gk__mma_kernel<Element, k_k, Out, Func>);
  if (a_k_major && !b_k_major) kernel = GK__KERNEL(gk__mma_kernel<Element, k_mn, Out, Func>);
  if (!a_k_major && b_k_major) kernel = GK__KERNEL(gk__mma_kernel<Element, mn_k, Out, Func>);
  if (plan.config == GK__SMALL_TILE)
    kernel = GK__KERNEL(gk__mma_kernel<Element, typename tiles::small_config, Out, Func>);
  if (plan.config == GK__MIDDLE_TILE)
    kernel = GK__KERNEL(gk__mma_kernel<Element, typename tiles::middle_config, Out, Func>);
  const gk__mma_tile mma_tile = gk__mma_tile_at<Products, Element>(plan.config);
  p.partitions = static_cast<unsigned>(plan.partitions);
  p.partition_stages = gk_ceil_div(gk_ceil_div(p.k, mma_tile.stage_depth), plan.partitions);
  const auto launch = [=](const gk__tensor_args<Element, Out, Func> &sub_batch, size_t blocks) {
    const dim3 grid_dim(static_cast<unsigned>(blocks / plan.partitions), sub_batch.partitions);
    return gk__launch_kernel("gk_matmul", kernel, grid_dim, mma_tile.thread_count, mma_tile.smem, call->stream,
                             sub_batch);
  };
  return gk__launch_panels(p, mma_tile.bm, mma_tile.bn, plan.partitions, call, launch);
}
template <int Products, class Element> gk__mma_plan gk__cheapest_mma_plan(const gk__mma_query &query) {
  gk__mma_cheapest cheapest;
  gk__each_mma_plan<Products, Element>(&cheapest, gk__mma_tiles<Products, Element>::costs(), query);
  return cheapest.plan;
}
/* The configuration to use; or two, if it is faster to cut the product after whole waves of a tile. */
template <int Products, class Element> gk__cut_plan<gk__mma_plan> gk__cut_mma_plan(const gk__mma_query &query) {
  typedef gk__mma_tiles<Products, Element> tiles;
  const double launch_us = 2;
  const auto choose = gk__cheapest_mma_plan<Products, Element>;
  gk__cut_plan<gk__mma_plan> cut(query.m, query.n, choose(query));
  for (int config = 0; config < tiles::config_count && query.batch == 1; config++) {
    if (config == GK__SMALL_TILE) continue; /* its waves are short */
    if (!gk__has_mma_tile<Element>(config, query.gpu)) continue;
    const gk__mma_tile mma_tile = gk__mma_tile_at<Products, Element>(config);
    const size_t resident = gk__resident_blocks(mma_tile, tiles::costs()[config], query.gpu);
    cut.cut_after_waves(query, mma_tile.bm, mma_tile.bn, static_cast<size_t>(query.gpu.sms) * resident, launch_us,
                        choose);
  }
  return cut;
}
template <int Products, class Element> gk__cut_plan<gk__mma_plan> gk__cached_mma_plan(const gk__mma_query &query) {
  return gk__cached_plan(query, [](const gk__mma_query &asked) { return gk__cut_mma_plan<Products, Element>(asked); });
}
/* Plans a product, and records in the call how many bytes its partials take. The plans are made for the whole batch,
 * even if the work area holds only a part of it, so that the bits of a product do not depend on the scratch (but where
 * the strict kernel computes it in place of emulated fp32: see gk_matmul_ex). */
template <int Products, class Element, class Args>
cudaError_t gk__plan_mma(const Args &p, gk__cut_plan<gk__mma_plan> *cut, gk__product_call *call) {
  *cut = gk__cached_mma_plan<Products, Element>({p.m, p.n, p.k, p.batch, call->gpu});
  if (cut->plan.config < 0)
    return GK__INVALID("gk_matmul: this GPU has %d bytes of shared memory for a block, too few", call->gpu.smem_limit);
  for (const gk__mma_plan *plan : {&cut->plan, &cut->rest_plan})
    if (plan->product_bytes) call->measure(plan->product_bytes, p.batch);
  return cudaSuccess;
}

/* --- Tensor cores: small products -------------------------------------------------------------------------------
 *
 * A block computes a tile of 16 x 16, and its warps divide k. In a step a warp multiplies 16 of k. Its lanes load the
 * elements from global memory to the registers of mma.sync, one by one. So the operands may begin anywhere, and the
 * product is one launch. The block adds up the partials of its warps in the order of the warps, from shared memory. */
struct gk__small_mma_tile {
  static const int bm = 16, bn = 16, depth = 16, most_warps = 16;
  typedef gk__padded_rows<bm, bn> partials; /* of a warp */
};
/* What a lane has of 16 rows of A, or columns of B, in a step: four neighbours in k of row lane / 4, and of the row 8
 * below. mma.sync expects other k there. But the k are the same for both operands, so only the order of the products
 * changes. */
template <class Element> struct gk__small_mma_operand {
  static const int words = static_cast<int>(sizeof(Element)); /* of four elements */
  const Element *from[2];
  size_t k_stride;
  Element items[2][4];
  /* k: the first of this lane. Rows from `end` on are read as the last one. */
  GK__D gk__small_mma_operand(const Element *data, size_t leading_dim, bool k_major, size_t first_row, size_t end,
                              size_t k)
      : k_stride(k_major ? 1 : leading_dim) {
    GK__UNROLL
    for (unsigned i = 0; i < 2; i++) {
      const size_t row_idx = first_row + gk_lane() / 4 + i * 8, last = end - 1;
      from[i] = data + (row_idx < last ? row_idx : last) * (k_major ? leading_dim : 1) + k * k_stride;
    }
  }
  /* Loads the elements of a step, and moves on by k_step. Only the first `left` of four are before the end of k; the
   * others are 0. */
  GK__D void load(int left, size_t k_step) {
    GK__UNROLL
    for (int i = 0; i < 2; i++) {
      GK__UNROLL
      for (int e = 0; e < 4; e++)
        items[i][e] = e < left ? from[i][static_cast<size_t>(e) * k_stride] : gk__convert<Element, float>::from(0.0f);
      from[i] += k_step * k_stride;
    }
  }
  /* The elements as mma.sync takes them. */
  GK__D void get_words(unsigned (&word)[2][words]) const {
    GK__UNROLL
    for (int i = 0; i < 2; i++) {
      memcpy(word[i], items[i], sizeof(word[i]));
      GK__UNROLL
      for (int e = 0; e < words && std::is_same<Element, float>::value; e += 2)
        gk__round_mma_operands(word[i][e], word[i][e + 1]);
    }
  }
};
/* Adds up the warps' partials, and stores the tile. */
template <class Epilogue>
GK__D void gk__store_small_mma_tile(const float *partials, int warps, const Epilogue &epilogue) {
  typedef gk__small_mma_tile shape;
  typedef gk__vector<float, 2> vector;
  const int row_vectors = shape::bn / 2, pitch = shape::partials::pitch / 2, warp_vectors = shape::bm * pitch;
  GK__UNROLL_BY(1)
  for (int i = static_cast<int>(threadIdx.x); i < shape::bm * row_vectors; i += warps * 32) {
    const vector *const from = reinterpret_cast<const vector *>(partials) + i / row_vectors * pitch + i % row_vectors;
    float total[2] = {};
    GK__UNROLL_BY(1)
    for (int base = 0; base < warps; base += 4) {
      GK__UNROLL
      for (int j = base; j < base + 4; j++) { /* no branches: the loads do not wait for each other */
        vector x = {};
        if (j < warps) x = from[j * warp_vectors];
        total[0] = gk__arithmetic<float>::add(total[0], x.value[0]);
        total[1] = gk__arithmetic<float>::add(total[1], x.value[1]);
      }
    }
    epilogue.store(static_cast<size_t>(i / row_vectors), static_cast<size_t>(i % row_vectors * 2), total);
  }
}
template <class Args>
__global__ void __launch_bounds__(gk__small_mma_tile::most_warps * 32) gk__small_mma_kernel(Args p) {
  typedef gk__small_mma_tile shape;
  typedef typename Args::item_type Element;
  typedef gk__small_mma_operand<Element> operand;
  GK_DYNAMIC_SHARED(float, partials);
  const int lane_id = static_cast<int>(gk_lane()), warp_id = static_cast<int>(threadIdx.x / 32),
            warps = static_cast<int>(blockDim.x / 32), block_k = warps * shape::depth, lane_k = lane_id % 4 * 4;
  const gk__work_tile work = gk__work_tile_of<shape>(p, blockIdx.x);
  int left = static_cast<int>(p.k) - warp_id * shape::depth; /* of k, for this warp and those after it */
  const size_t first_k = static_cast<size_t>(warp_id * shape::depth + lane_k), k_step = static_cast<size_t>(block_k);
  operand a(p.a + work.batch * p.stride_a, p.lda, !p.trans_a, work.row0, p.m, first_k);
  operand b(p.b + work.batch * p.stride_b, p.ldb, p.trans_b, work.col0, p.n, first_k);
  gk__wait_for_earlier_work();
  /* A grid that half fills 132 multiprocessors is small. A limit on blocks counts those of the next kernel, too. */
  if (gridDim.x <= (1u << 17) / blockDim.x && !p.max_blocks) gk__let_later_work_start();
  if (left > 0) {
    a.load(left - lane_k, k_step);
    b.load(left - lane_k, k_step);
  }
  float sums[2][4] = {};
  GK__UNROLL_BY(1)
  for (; left > 0; left -= block_k) {
    unsigned of_a[2][operand::words], of_b[2][operand::words];
    a.get_words(of_a);
    b.get_words(of_b);
    if (left > block_k) { /* the loads of the next step run during the products of this one */
      a.load(left - block_k - lane_k, k_step);
      b.load(left - block_k - lane_k, k_step);
    }
    GK__UNROLL
    for (int e = 0; e < operand::words; e += 2) {
      const unsigned a_words[4] = {of_a[0][e], of_a[1][e], of_a[0][e + 1], of_a[1][e + 1]};
      GK__UNROLL
      for (int j = 0; j < 2; j++) gk__mma_sync<Element>(sums[j], a_words, of_b[j][e], of_b[j][e + 1]);
    }
  }
  GK__UNROLL
  for (int i = 0; i < 8; i++) {
    const int row_idx = warp_id * shape::bm + lane_id / 4 + i % 4 / 2 * 8,
              col_idx = i / 4 * 8 + lane_id % 4 * 2 + i % 2;
    partials[row_idx * shape::partials::pitch + col_idx] = sums[i / 4][i % 4];
  }
  __syncthreads();
  gk__store_small_mma_tile(partials, warps, p.epilogue_of_c(work.batch).from(work.row0, work.col0));
}

/* --- Tensor cores: Hopper -----------------------------------------------------------------------------------------
 *
 * One kernel by wgmma. The blocks are warp-specialised: in the producer warpgroup one thread for each operand issues
 * the loads, and one or more consumer warpgroups multiply. TMA loads boxes of 128 bytes by a number of rows, with the
 * 128-byte swizzle, and fills zeros beyond the ends of a matrix. Each stage of the ring has a full barrier and an empty
 * barrier. The blocks are persistent. L2 bounds the loads. So the blocks of a cluster may compute adjacent tiles. Two
 * or four of them then share an operand: each loads a part of it, and multicasts that. If a product has few tiles, the
 * blocks of a cluster split the k of a tile, and reduce their accumulators through distributed shared memory.
 *
 * Operands keep their storage order in shared memory, K-major or MN-major. For 16-bit types wgmma reads either order,
 * so transposed operands need no copy. It reads 32-bit operands from shared memory in K-major order only, but its first
 * operand may come from registers, which a thread can fill from any order. So if one operand of tf32 is K-major and the
 * other one MN-major, the kernel takes the K-major one as a and the MN-major one as b, which is in registers. If that
 * swaps A and B, it computes tiles of C^T. TMA rounds to tf32, so aligned operands need no pass. A wgmma fragment of a
 * thread has rows g and g + 8 of the 16 rows of its warp (g = lane / 4). Which rows of a box these are is free; the
 * kernel takes adjacent ones: one 8-byte load reads both, and half a warp has no bank conflicts.
 *
 * TMA requires that rows begin at multiples of 16 bytes. It reads an additional sector of a row that does not begin at
 * a multiple of 32 bytes. A K-major A need not be aligned to 16 bytes (gk__plan_operands says for which B): rows 2, 4,
 * 8 or 16 apart are a multiple of 32 bytes apart. So A is split into that many matrices of every 2nd, 4th ... row, and
 * each has its own tiles. A tensor map holds them side by side: a row of the map is that many rows of A. The loads of a
 * row begin at the sector that holds its first element. B is loaded from the same k, which may be below 0; TMA fills
 * zeros there and beyond the end of k. The tile of A has elements of other rows in these places. They may be NaN, so
 * the consumers clear them. The k blocks begin at other k than for an aligned A, so the last bits of a result may
 * differ.
 *
 * These instructions exist in code for sm_90a only. */

/* Tiles of a product and its batch, at most. They are numbered in 32 bits, also where a cluster rounds them up, and
 * where a persistent block steps past the last one. */
static const size_t gk__wgmma_max_tiles = 0x7fffffff / 8;

/* The base of paths that a type or a build does not have: it takes nothing, and its run functions are never called. */
struct gk__no_path {
  template <class... Params> static bool takes(const Params &...) { return false; }
  template <class... Params> static unsigned hopper(const Params &...) { return 0; }
  template <class... Params> static cudaError_t run(const Params &...) { return cudaErrorNotSupported; }
  template <class... Params> static cudaError_t run_small(const Params &...) { return cudaErrorNotSupported; }
};

#ifdef GK__HOPPER_BUILD

/* CUtensorMap: describes a matrix to TMA. In words, because cicc splits the parameters of a kernel into their elements,
 * of which bytes would be eight times as many. */
struct __align__(128) gk__tensor_map {
  uint64_t words[16];
};

/* The blocks of a cluster compute 2^row_shift x 2^col_shift adjacent tiles, each by `partitions` blocks that split its
 * k. The tiles of a row share a, those of a column b: each block loads a part of what it shares, and multicasts it. */
struct gk__wgmma_cluster {
  unsigned partitions, row_shift, col_shift; /* row_shift, col_shift: 0 to 2 */
  GK__HD unsigned tile_shift() const { return row_shift + col_shift; }
  GK__HD unsigned size() const { return partitions << tile_shift(); }
  GK__D unsigned rank() const { return blockIdx.x % size(); } /* rows vary fastest, then columns, then k */
  GK__D unsigned row_rank() const { return blockIdx.x & ((1u << row_shift) - 1); }
  GK__D unsigned col_rank() const { return blockIdx.x >> row_shift & ((1u << col_shift) - 1); }
  /* The blocks that load to a stage of this one: first this one, then the others of its row, which share a, then the
   * others of its column, which share b. sharer(i) is the rank of the i-th. */
  GK__D unsigned sharer_count() const { return (1u << row_shift) + (1u << col_shift) - 1; }
  GK__D unsigned sharer(unsigned i) const {
    const unsigned in_row = 1u << col_shift;
    return rank() ^ (i < in_row ? i << row_shift : i - in_row + 1);
  }
  GK__D unsigned tile_rank() const { return blockIdx.x & ((1u << tile_shift()) - 1); }
  GK__D unsigned k_rank() const { return rank() >> tile_shift(); }
  GK__D unsigned cluster_idx() const { return blockIdx.x / size(); }
  GK__D unsigned cluster_count() const { return gridDim.x / size(); }
  /* A block reduces every `partitions`-th quad of a thread, from quad k_rank() on: own_quads of `quads`, and no block
   * more than most_quads. (A thread has at least eight quads, and a cluster at most eight partitions.) */
  GK__HD unsigned most_quads(unsigned quads) const { return (quads + partitions - 1) / partitions; }
  GK__D unsigned own_quads(unsigned quads) const { return most_quads(quads - k_rank()); }
  /* The accumulators that a block reduces, at most; and whether their partials have room in any ring. Clusters split k
   * only if all tiles run at once, with one block on a multiprocessor. The smallest rings then have 144 KiB: three
   * stages of 192 x 192, or two of 128 x 64 of emulated fp32. */
  GK__HD size_t most_items(size_t tile_items, unsigned mma_cols) const {
    return tile_items * most_quads(mma_cols / 8) / (mma_cols / 8);
  }
  GK__HD bool has_room(size_t tile_items, unsigned mma_cols) const {
    return most_items(tile_items, mma_cols) * partitions <= 3 * 48 * 1024 / sizeof(float);
  }
};
/* The kernel computes tiles of A B with rows of A and columns of B; with `swapped`, a and b are B^T and A^T, and the
 * tiles those of C^T. */
struct gk__wgmma_params {
  gk__tensor_map a, longer_a, b, c;
  unsigned k, k_blocks;          /* k_blocks: of one block of a cluster */
  unsigned stages;               /* of the ring of a block */
  unsigned mma_cols;             /* of the tile: see gk__wgmma_shape */
  unsigned row_count, col_count; /* of a and b */
  unsigned a_box, b_box;         /* of a K-major operand: the rows of a, the columns of b, that TMA loads at once */
  unsigned last_row, last_col;   /* tiles begin there at the latest, and overlap if that is before the end of another */
  gk__wgmma_cluster cluster;
  unsigned tiles_m, tiles_n;     /* of one C, in the tiles of a cluster */
  unsigned first_tile, end_tile; /* of this launch, in the tiles of a cluster, numbered through the batch */
  unsigned raster_rows;          /* raster order: groups of this many rows, which share their operands in L2 */
  bool a_k_major, b_k_major, a_batched, b_batched; /* batched: one matrix for each product */
  bool swapped, tma_store;                         /* tma_store: TMA stores C, without a beta; else threads do */
  /* A is split into 2^split_shift matrices, of which the first longer_count ones have one row more and the map
   * longer_a. Row i of a map has row i of each matrix. These begin lda elements apart, the first one at `lead`. */
  unsigned split_shift, longer_count, lead, lda;
  GK__D unsigned row_begin(unsigned matrix_idx) const { return lead + matrix_idx * lda; }
};
/* The argument of a kernel: the parameters, whose type is the same for all kernels, and C, whose type is not. */
template <class Out, class Func> struct gk__wgmma_args : gk__wgmma_params {
  gk__matmul_output<Out, float, Func> output;
  explicit gk__wgmma_args(const gk__matmul_output<Out, float, Func> &of_c) : gk__wgmma_params(), output(of_c) {}
};

/* The numbers of columns for which a kernel has main loops, the most first. The last `fewer` is the type itself. */
template <int... Cols> struct gk__wgmma_cols;
template <int Cols> struct gk__wgmma_cols<Cols> {
  static const unsigned most = Cols;
  static const bool has_fewer = false;
  typedef gk__wgmma_cols fewer;
};
template <int Cols, int Next, int... Fewer> struct gk__wgmma_cols<Cols, Next, Fewer...> {
  static const unsigned most = Cols;
  static const bool has_fewer = true;
  typedef gk__wgmma_cols<Next, Fewer...> fewer;
};
/* A kernel configuration. The accumulators of a tile are MmaRows x mma_cols. The planner chooses mma_cols for each
 * product (gk__wgmma_choose). A multiprocessor holds Resident blocks at most. InRegisters: b, which is MN-major, is the
 * first operand of wgmma and goes through registers. So the accumulators have the columns of the tile as their rows. */
template <int Products, bool InRegisters, int MmaRows, int Resident, class Cols> struct gk__wgmma_shape {
  typedef std::integral_constant<bool, InRegisters> in_registers;
  typedef Cols col_options;
  static const int products = Products, terms = Products > 1 ? GK__BF16_TERMS : 1, resident = Resident;
  static const int mma_rows = MmaRows, most_cols = Cols::most;
  static const int consumers = MmaRows / 64, thread_count = 128 * (consumers + 1); /* a warpgroup has 64 rows */
  static const int acc_count = most_cols / 2;                                      /* accumulators of a thread */
  static const int quad_bytes = consumers * 128 * 16;                             /* four accumulators of each thread */
  static const int staging_bytes = consumers * 2 * gk__swizzled_boxes::box_bytes; /* two boxes of C for each consumer */
  /* setmaxnreg: the producer gives registers to the consumers. A multiprocessor has 65,536, so each thread starts with
   * 168, or 128 if there are three consumers. ptxas does not compile a wgmma that needs more than these, so three
   * consumers have at most 192 columns. Other blocks need no more registers than they start with. */
  static const bool reallocates_registers = consumers > 1 && Resident == 1;
  static const int producer_registers = consumers == 2 ? 40 : 32, consumer_registers = consumers == 2 ? 232 : 160;
  static GK__HD unsigned tile_rows(unsigned mma_cols) { return InRegisters ? mma_cols : MmaRows; }
  static GK__HD unsigned tile_cols(unsigned mma_cols) { return InRegisters ? MmaRows : mma_cols; }
  /* Bytes of one term of a or b in a stage. MN-major boxes have up to 64 rows or columns. */
  static GK__HD unsigned operand_bytes(unsigned extent) { return (extent + 63) / 64 * 64 * 128; }
  static GK__HD unsigned a_bytes(unsigned mma_cols) { return operand_bytes(tile_rows(mma_cols)); }
  static GK__HD unsigned b_bytes(unsigned mma_cols) { return operand_bytes(tile_cols(mma_cols)); }
  static GK__HD unsigned stage_bytes(unsigned mma_cols) { return terms * (a_bytes(mma_cols) + b_bytes(mma_cols)); }
};

#ifdef GK__PASS_SM_90A

/* The matrix descriptor of an operand in shared memory: 128-byte swizzle; 1024 bytes from 8 rows (MN-major: 8 k) to the
 * next; MN-major: one box, 8192 bytes, from 64 rows or columns to the next. */
GK__D uint64_t gk__wgmma_descriptor(unsigned address) {
  return uint64_t(1) << 62 | uint64_t(1024 / 16) << 32 | uint64_t(8192 / 16) << 16 | (address & 0x3ffff) / 16;
}
/* Waits for all wgmma of this warpgroup. gk__forget keeps the compiler from reading the accumulators earlier. */
template <int Count> GK__D void gk__wgmma_wait(float (&acc)[Count]) {
  gk__ptx_wgmma_wait_group<0>();
  GK__UNROLL
  for (int i = 0; i < Count; i++) gk__forget(&acc[i]);
}

/* The pipeline state of a warpgroup. StageBytes is 0, because the size of a stage depends on the tile. */
template <class Shape> struct gk__wgmma_pipeline : gk__pipeline_state<0> {
  unsigned mma_cols, stage_bytes;
  unsigned slabs_stored; /* of C, by this warpgroup */
  /* A stage is released to the blocks that load it: those that share a, and the others that share b. One lane of each
   * consumer warp releases to each. */
  unsigned release_count, release_barriers; /* release_barriers: those of the block that this lane releases to */
  unsigned char *staging;
  typedef gk__pipeline_state<0> base;
  GK__D gk__wgmma_pipeline(unsigned char *shared, const gk__wgmma_params &p)
      : base{gk__shared_address(shared) + Shape::staging_bytes, 0, p.stages, 0, 0},
        mma_cols(Shape::col_options::has_fewer ? p.mma_cols : Shape::most_cols),
        stage_bytes(Shape::stage_bytes(mma_cols)), slabs_stored(0), release_count(p.cluster.sharer_count()),
        staging(shared) {
    barriers = data + stages * stage_bytes;
    release_barriers = gk__ptx_mapa_shared_cluster(
        barriers, p.cluster.sharer(threadIdx.x % 32 < release_count ? threadIdx.x % 32 : 0));
  }
  GK__D unsigned stage_address() const { return data + stage_idx * stage_bytes; }
  /* Completes when all partials of the cluster reduction have arrived. */
  GK__D unsigned reduce_barrier() const { return barriers + stages * 16; }
  /* Called by one thread, before other threads use a barrier. Both producers arrive at a full barrier, and each warp of
   * the consumers of all blocks that use a stage at an empty one. */
  GK__D void init_barriers(const gk__wgmma_cluster &cluster) const {
    base::init_barriers(2, 4 * Shape::consumers * release_count);
    gk__ptx_mbarrier_init(reduce_barrier(), 1);
    gk__ptx_fence_mbarrier_init();
    gk__ptx_mbarrier_arrive_expect_tx(reduce_barrier(),
                                      cluster.own_quads(mma_cols / 8) * cluster.partitions * Shape::quad_bytes);
  }
  /* Called by all lanes of a warp that has read stage idx. */
  GK__D void release(unsigned idx) const {
    if (threadIdx.x % 32 < release_count) gk__ptx_mbarrier_arrive_shared_cluster(release_barriers + (stages + idx) * 8);
  }
};

/* A work tile: the product in the batch, and the first row and column. row_idx is a row of one of the matrices that A
 * is split into. */
struct gk__wgmma_work_tile {
  unsigned batch, matrix_idx, row_idx, col_idx;
};
/* The k blocks of this block. Elements begin ... end - 1, counted from k block 0, are in the row of A. k block 0 begins
 * at a sector of 32 bytes, which is depth / 4 elements. */
struct gk__wgmma_k_range {
  unsigned first_block, block_count, begin, end;
};
template <class Shape> GK__D gk__wgmma_work_tile gk__wgmma_work_tile_of(const gk__wgmma_params &p, unsigned tile_idx) {
  const unsigned product_tiles = p.tiles_m * p.tiles_n;
  const gk__raster_tile work(tile_idx % product_tiles, p.tiles_m, p.tiles_n, p.raster_rows);
  const unsigned row_idx = (work.row_idx >> p.split_shift << p.cluster.row_shift) + p.cluster.row_rank(),
                 col_idx = (work.col_idx << p.cluster.col_shift) + p.cluster.col_rank();
  return {tile_idx / product_tiles, work.row_idx & ((1u << p.split_shift) - 1),
          min(row_idx * Shape::tile_rows(p.mma_cols), p.last_row),
          min(col_idx * Shape::tile_cols(p.mma_cols), p.last_col)};
}
template <class Element>
GK__D gk__wgmma_k_range gk__wgmma_k_range_of(const gk__wgmma_params &p, const gk__wgmma_work_tile &work) {
  const unsigned depth = 128 / gk__tensor_type<Element>::bytes, begin = p.row_begin(work.matrix_idx) % (depth / 4),
                 end = begin + p.k, block_count = (end + depth - 1) / depth,
                 first_block = min(p.cluster.k_rank() * p.k_blocks, block_count);
  return {first_block, min(p.k_blocks, block_count - first_block), begin, end};
}

/* Called by one thread: loads a or b for all work tiles of the block. If other blocks of the cluster share the
 * operand, each of them loads a part of the rows of each box, and multicasts them to all. (For one block alone a
 * multicast takes longer than a load.) Boxes beyond the end of an MN-major operand are not loaded: stale elements in
 * their place only reach accumulators that are not stored. But a tile that is beyond C loads one box of zeros
 * (`left` is at least 1). With nothing to wait for, its block would release a stage again before another block has
 * released it once. */
template <class Shape, class Element, bool OfB>
GK__D void gk__wgmma_produce(const gk__wgmma_params &p, gk__wgmma_pipeline<Shape> &pipe) {
  const unsigned depth = 128 / gk__tensor_type<Element>::bytes, box_outer = depth; /* box_outer: MN-major */
  const unsigned tile_outer = OfB ? Shape::tile_cols(pipe.mma_cols) : Shape::tile_rows(pipe.mma_cols),
                 most_outer = OfB ? Shape::tile_cols(Shape::most_cols) : Shape::tile_rows(Shape::most_cols),
                 term_bytes = Shape::operand_bytes(tile_outer);
  const bool k_major = OfB ? p.b_k_major : p.a_k_major;
  const unsigned share_shift = OfB ? p.cluster.row_shift : p.cluster.col_shift;
  unsigned ranks = 0; /* a mask of the blocks that share it */
  for (unsigned i = 0; i < 1u << share_shift; i++)
    ranks |= 1u << (p.cluster.rank() ^ (i << (OfB ? 0 : p.cluster.row_shift)));
  for (unsigned tile_idx = p.first_tile + p.cluster.cluster_idx(); tile_idx < p.end_tile;
       tile_idx += p.cluster.cluster_count()) {
    const gk__wgmma_work_tile work = gk__wgmma_work_tile_of<Shape>(p, tile_idx);
    const gk__wgmma_k_range range = gk__wgmma_k_range_of<Element>(p, work);
    const gk__tensor_map *map = OfB ? &p.b : &p.a;
    if (!OfB && work.matrix_idx < p.longer_count) map = &p.longer_a;
    const unsigned product = (OfB ? p.b_batched : p.a_batched) ? work.batch : 0,
                   outer = OfB ? work.col_idx : work.row_idx, outer_end = OfB ? p.col_count : p.row_count,
                   left = min(outer_end - min(outer, outer_end - 1), tile_outer),
                   box_rows = k_major ? (OfB ? p.b_box : p.a_box) : depth,
                   row_count = k_major ? box_rows : (left + box_outer - 1) / box_outer * box_outer;
    /* Of each box, if the operand is shared: where the part begins that this block loads. */
    const unsigned first_row = (box_rows >> share_shift) * (OfB ? p.cluster.row_rank() : p.cluster.col_rank());
    unsigned k = range.first_block * depth + (OfB ? 0 : p.row_begin(work.matrix_idx)) - range.begin;
    GK__UNROLL_BY(1)
    for (unsigned k_block = 0; k_block < range.block_count; k_block++, k += depth) {
      gk__ptx_mbarrier_wait_parity(pipe.empty_barrier(), pipe.phase ^ 1);
      const unsigned full = pipe.full_barrier();
      gk__ptx_mbarrier_arrive_expect_tx(full, Shape::terms * row_count * 128);
      GK__UNROLL
      for (unsigned term = 0; term < Shape::terms; term++) {
        const unsigned dest = pipe.stage_address() + (OfB ? Shape::terms * Shape::a_bytes(pipe.mma_cols) : 0) +
                              term * term_bytes + first_row * 128;
        const auto load = [&](unsigned box_dest, unsigned x, unsigned y) {
          if (share_shift > 0)
            gk__ptx_cp_async_bulk_tensor_4d_multicast(box_dest, map, full, x, y + first_row, product, term,
                                                      static_cast<unsigned short>(ranks));
          else
            gk__ptx_cp_async_bulk_tensor_4d_load(box_dest, map, full, x, y, product, term);
        };
        if (k_major) {
          load(dest, k, outer);
          continue;
        }
        GK__UNROLL
        for (unsigned i = 0; i < most_outer; i += box_outer)
          if (i < left) load(dest + i * 128, outer + i, k);
      }
      pipe.advance();
    }
  }
  if (p.cluster.tile_shift() == 0) return;
  /* Other blocks of the cluster arrive at the empty barriers of this one, which must not exit before. */
  GK__UNROLL_BY(1)
  for (unsigned i = 0; i < pipe.stages; i++, pipe.advance())
    gk__ptx_mbarrier_wait_parity(pipe.empty_barrier(), pipe.phase ^ 1);
}

/* Called by all consumers, for k block k_block, which is in the next stage: clears the elements of the tile of A that
 * belong to other rows of A. */
template <class Shape, class Element>
GK__D void gk__wgmma_clear_outside(const gk__wgmma_pipeline<Shape> &pipe, const gk__wgmma_k_range &range,
                                   unsigned k_block) {
  const unsigned bytes = gk__tensor_type<Element>::bytes, depth = 128 / bytes,
                 first_idx = (range.first_block + k_block) * depth;
  const unsigned begin = (range.begin - min(range.begin, first_idx)) * bytes,
                 end = min(range.end - first_idx, depth) * bytes;
  gk__ptx_mbarrier_wait_parity(pipe.full_barrier(), pipe.phase);
  for (unsigned i = threadIdx.x - 128; i < Shape::tile_rows(pipe.mma_cols); i += Shape::consumers * 128) {
    const auto clear = [&](unsigned pos) {
      gk__ptx_st_shared_b16(pipe.stage_address() + i * 128 + (pos ^ i % 8 * 16), 0);
    };
    for (unsigned pos = 0; pos < begin; pos += 2) clear(pos);
    for (unsigned pos = end; pos < 128; pos += 2) clear(pos);
  }
  gk__ptx_fence_proxy_async();
  gk__ptx_bar_sync<Shape::consumers * 128>(1 + Shape::consumers); /* 1 to `consumers`: those of single warpgroups */
}

/* The main loop of a consumer warpgroup, for k blocks first_k_block ... end_k_block - 1 of this block. There is one for
 * each number of columns and pair of storage orders, because wgmma has both in its opcode. A stage is released when the
 * wgmma of the next one have been issued and its own are complete. Emulated fp32: tensor cores truncate their sums, so
 * each k block has accumulators of its own, which are then added with rounding. */
template <class Shape, int Kind, int TransA, int TransB, class Cols = typename Shape::col_options>
GK__D void gk__wgmma_multiply(float (&acc)[Shape::acc_count], gk__wgmma_pipeline<Shape> &pipe, unsigned group,
                              unsigned first_k_block, unsigned end_k_block) {
  if (Cols::has_fewer && pipe.mma_cols < Cols::most)
    return gk__wgmma_multiply<Shape, Kind, TransA, TransB, typename Cols::fewer>(acc, pipe, group, first_k_block,
                                                                                 end_k_block);
  const unsigned step_a = (TransA ? 2048 : 32) / 16, step_b = (TransB ? 2048 : 32) / 16;
  const unsigned a_bytes = Shape::a_bytes(Cols::most), b_bytes = Shape::b_bytes(Cols::most);
  float(&sums)[Cols::most / 2] = reinterpret_cast<float(&)[Cols::most / 2]>(acc); /* the first ones */
  unsigned last_stage = 0;
  GK__UNROLL_BY(1) /* else the compiler makes three copies of the loop, which are no faster */
  for (unsigned k_block = first_k_block; k_block < end_k_block; k_block++) {
    gk__ptx_mbarrier_wait_parity(pipe.full_barrier(), pipe.phase);
    const uint64_t a = gk__wgmma_descriptor(pipe.stage_address() + group * gk__swizzled_boxes::box_bytes);
    const uint64_t b = gk__wgmma_descriptor(pipe.stage_address() + Shape::terms * a_bytes);
    gk__ptx_wgmma_fence();
    if (Shape::products == 1) {
      GK__UNROLL
      for (unsigned i = 0; i < 4; i++)
        gk__ptx_wgmma<Kind, TransA, TransB>(sums, a + i * step_a, b + i * step_b, i > 0 || k_block > 0);
      gk__ptx_wgmma_commit_group();
      if (k_block > first_k_block) {
        gk__ptx_wgmma_wait_group<1>();
        pipe.release(last_stage);
      }
      last_stage = pipe.stage_idx;
    } else {
      float block_sums[Cols::most / 2];
      GK__UNROLL
      for (int index_sum = Shape::terms - 1; index_sum >= 0; index_sum--) { /* as in gk__mma_multiply */
        GK__UNROLL
        for (int i = 0; i < 4 * (index_sum + 1); i++)
          gk__ptx_wgmma<Kind, TransA, TransB>(block_sums, a + i / 4 * (a_bytes / 16) + i % 4 * step_a,
                                              b + (index_sum - i / 4) * (b_bytes / 16) + i % 4 * step_b,
                                              i > 0 || index_sum < Shape::terms - 1);
      }
      gk__ptx_wgmma_commit_group();
      gk__wgmma_wait(block_sums);
      pipe.release(pipe.stage_idx);
      GK__UNROLL
      for (unsigned i = 0; i < Cols::most / 2; i++) sums[i] += block_sums[i];
    }
    pipe.advance();
  }
  if (Shape::products == 1) {
    gk__wgmma_wait(sums);
    if (end_k_block > first_k_block) pipe.release(last_stage);
  }
}

/* The 16-byte word, in a box of 32 rows by 32 k, of the two adjacent rows of a thread's fragment of b. */
GK__D unsigned gk__register_operand_word() {
  return threadIdx.x / 32 % 2 * 2 + threadIdx.x / 16 % 2 + threadIdx.x / 8 % 2 * 4;
}

/* The same with b in registers. Four wgmma of 8 k are in flight, each with its own fragment of b. */
template <class Shape, class Element, class Cols = typename Shape::col_options>
GK__D void gk__wgmma_main_loop(std::true_type in_registers, const gk__wgmma_params &p, float (&acc)[Shape::acc_count],
                               gk__wgmma_pipeline<Shape> &pipe, unsigned group, unsigned first_k_block,
                               unsigned end_k_block) {
  if (Cols::has_fewer && pipe.mma_cols < Cols::most)
    return gk__wgmma_main_loop<Shape, Element, typename Cols::fewer>(in_registers, p, acc, pipe, group, first_k_block,
                                                                     end_k_block);
  float(&sums)[Cols::most / 2] = reinterpret_cast<float(&)[Cols::most / 2]>(acc); /* the first ones */
  /* With gk__forget each main loop computes its addresses. Else those of all are in registers at once, and spill. */
  const bool has_others = Shape::col_options::has_fewer;
  unsigned thread = threadIdx.x;
  if (has_others) gk__forget(&thread);
  const unsigned k = thread % 4;
  unsigned low_address = (group * 2 + thread / 64 % 2) * (32 * 128) + k * 128 + (gk__register_operand_word() ^ k) * 16 +
                         thread / 4 % 2 * 8;
  if (has_others) gk__forget(&low_address);
  unsigned fragment[4][4], last_stage = 0;
  GK__UNROLL_BY(1)
  for (unsigned k_block = first_k_block; k_block < end_k_block; k_block++) {
    gk__ptx_mbarrier_wait_parity(pipe.full_barrier(), pipe.phase);
    const unsigned from = pipe.stage_address() + low_address,
                   high_address = pipe.stage_address() + (low_address ^ 64) + 512; /* k + 4 */
    const uint64_t a = gk__wgmma_descriptor(pipe.stage_address());
    GK__UNROLL
    for (unsigned i = 0; i < 4; i++) {
      gk__ptx_wgmma_wait_group<3>();
      gk__ptx_ld_shared_v2_b32(&fragment[i][0], &fragment[i][1], from + Shape::a_bytes(Cols::most) + i * 1024);
      gk__ptx_ld_shared_v2_b32(&fragment[i][2], &fragment[i][3], high_address + Shape::a_bytes(Cols::most) + i * 1024);
      gk__ptx_wgmma_fence();
      gk__ptx_wgmma_registers(sums, fragment[i], a + i * 2, i > 0 || k_block > 0);
      gk__ptx_wgmma_commit_group();
    }
    if (k_block > first_k_block) pipe.release(last_stage);
    last_stage = pipe.stage_idx;
    pipe.advance();
  }
  gk__wgmma_wait(sums);
  if (end_k_block > first_k_block) pipe.release(last_stage);
}

/* The main loop with both operands in shared memory, for their storage orders. tf32 (kind 2) is K-major there. */
template <class Shape, class Element>
GK__D void gk__wgmma_main_loop(std::false_type, const gk__wgmma_params &p, float (&acc)[Shape::acc_count],
                               gk__wgmma_pipeline<Shape> &pipe, unsigned group, unsigned first_k_block,
                               unsigned end_k_block) {
  const int kind = gk__tensor_type<Element>::kind, mn_major = kind == 2 ? 0 : 1;
  if (kind == 2 || (p.a_k_major && p.b_k_major))
    gk__wgmma_multiply<Shape, kind, 0, 0>(acc, pipe, group, first_k_block, end_k_block);
  else if (p.a_k_major)
    gk__wgmma_multiply<Shape, kind, 0, mn_major>(acc, pipe, group, first_k_block, end_k_block);
  else if (p.b_k_major)
    gk__wgmma_multiply<Shape, kind, mn_major, 0>(acc, pipe, group, first_k_block, end_k_block);
  else
    gk__wgmma_multiply<Shape, kind, mn_major, mn_major>(acc, pipe, group, first_k_block, end_k_block);
}
/* The product of a work tile. If A is split, its first and last k blocks hold elements of other rows, so the main loop
 * runs again for the last one. */
template <class Shape, class Element>
GK__D void gk__wgmma_multiply_tile(const gk__wgmma_params &p, float (&acc)[Shape::acc_count],
                                   gk__wgmma_pipeline<Shape> &pipe, unsigned group, const gk__wgmma_k_range &range) {
  const unsigned block_count = range.block_count;
  /* The first wgmma sets the accumulators. But if they have no value before the loop, ptxas of CUDA 12 makes each wgmma
   * wait for the one before it (C7515), and products of half types take 1.23 times as long (12.4, H200). */
  if (Shape::products > 1 || block_count == 0 || CUDART_VERSION < 13000) {
    GK__UNROLL
    for (int i = 0; i < Shape::acc_count; i++) acc[i] = 0;
  }
  unsigned done = 0;
  do {
    unsigned end = block_count;
    if (Shape::products == 1 && p.split_shift > 0 && block_count > 0) {
      gk__wgmma_clear_outside<Shape, Element>(pipe, range, done);
      if (done + 1 < block_count) end = block_count - 1;
    }
    gk__wgmma_main_loop<Shape, Element>(typename Shape::in_registers(), p, acc, pipe, group, done, end);
    done = end;
  } while (done < block_count);
}

/* Where a thread's accumulators are in a tile of C. wgmma gives a thread a quad of each eight columns: pairs of
 * neighbours in two rows. Quad 0 has its first element in (row_idx, col_idx), and its second pair is row_step rows
 * below the first. The next quads follow every eight columns. If the tile is transposed, the pairs are of two rows
 * each, and the quads follow every eight rows. */
struct gk__quad_layout {
  unsigned row_idx, col_idx, row_step;
  bool transposed;
  GK__D unsigned row_of(unsigned quad, unsigned pair) const {
    return row_idx + pair * row_step + (transposed ? quad * 8 : 0);
  }
  GK__D unsigned col_of(unsigned quad) const { return col_idx + (transposed ? 0 : quad * 8); }
  /* All four are loaded first: an address that depends on `transposed` would keep the accumulators from registers. */
  GK__D gk__vector<float, 2> pair_of(const float *quad, unsigned pair) const {
    const float x[4] = {quad[0], quad[1], quad[2], quad[3]};
    const gk__vector<float, 2> upper = {{x[0], transposed ? x[2] : x[1]}}, lower = {{transposed ? x[1] : x[2], x[3]}};
    return pair == 0 ? upper : lower;
  }
};
/* Stores Quads quads of each thread of a warpgroup to boxes in shared memory: 64 rows, or 64 columns if transposed. */
template <unsigned Quads>
GK__D void gk__store_quads(const float *acc, const gk__quad_layout &layout, unsigned char *boxes) {
  const unsigned box_rows = layout.transposed ? Quads * 8 : 64;
  GK__UNROLL
  for (unsigned i = 0; i < Quads * 2; i++) {
    const unsigned col_idx = layout.col_of(i / 2);
    const unsigned word = gk__swizzled_boxes::word_at(layout.row_of(i / 2, i % 2), col_idx / 4, box_rows);
    *reinterpret_cast<gk__vector<float, 2> *>(boxes + word * 16 + col_idx % 4 * 4) =
        layout.pair_of(acc + i / 2 * 4, i % 2);
  }
}
/* Two elements of a half type in 32 bits, of which x is the lower. */
template <class Element> GK__D unsigned gk__pack_pair(float x, float y) {
  const Element both[2] = {gk__convert<Element, float>::from(x), gk__convert<Element, float>::from(y)};
  unsigned word;
  memcpy(&word, both, sizeof(word));
  return word;
}
/* Stores accumulators of a warpgroup to a slab, 8 KiB of C in shared memory: one box of 64 rows, or two of 32 rows if
 * the tile is transposed. They are those of eight quads of a thread, if they are rounded to half types, else four. */
template <class Out> GK__D void gk__fill_slab(unsigned char *slab, const float *acc, const gk__quad_layout &layout) {
  if (gk__tensor_type<Out>::bytes == 4) {
    gk__store_quads<4>(acc, layout, slab);
    return;
  }
  const unsigned lane_id = threadIdx.x % 32, row_idx = threadIdx.x % 128 / 32 * 16 + lane_id % 16;
  GK__UNROLL
  for (unsigned i = 0; i < 4; i++, acc += 8)
    gk__ptx_stmatrix_x4(gk__shared_address(slab) + gk__swizzled_boxes::word_at(row_idx, 2 * i + lane_id / 16) * 16,
                        gk__pack_pair<Out>(acc[0], acc[1]), gk__pack_pair<Out>(acc[2], acc[3]),
                        gk__pack_pair<Out>(acc[4], acc[5]), gk__pack_pair<Out>(acc[6], acc[7]));
}

/* The tile of C that a consumer warpgroup computes: row_idx and col_idx are those of C, or of the rows of C that belong
 * to the matrix. */
template <class Shape>
GK__D gk__wgmma_work_tile gk__wgmma_group_tile(const gk__wgmma_params &p, gk__wgmma_work_tile work, unsigned group) {
  if (!Shape::in_registers::value) {
    work.row_idx += group * 64;
    return work;
  }
  const unsigned col_idx = work.col_idx + group * 64;
  return {work.batch, work.matrix_idx, p.swapped ? col_idx : work.row_idx, p.swapped ? work.row_idx : col_idx};
}
/* The accumulators of this thread in that tile. With b in registers they are of two adjacent rows of its fragment. */
template <class Shape> GK__D gk__quad_layout gk__wgmma_quad_layout(const gk__wgmma_params &p) {
  const unsigned lane_id = threadIdx.x % 32, pair_idx = lane_id % 4 * 2;
  if (!Shape::in_registers::value) return {threadIdx.x % 128 / 32 * 16 + lane_id / 4, pair_idx, 8, false};
  const unsigned row_idx = threadIdx.x / 64 % 2 * 32 + gk__register_operand_word() * 4 + threadIdx.x / 4 % 2 * 2;
  return {p.swapped ? row_idx : pair_idx, p.swapped ? pair_idx : row_idx, 1, !p.swapped};
}
/* The epilogue of the product, or of the rows of C that belong to the matrix. */
template <class Out, class Func>
GK__D gk__epilogue<Out, float, Func> gk__wgmma_epilogue(const gk__wgmma_args<Out, Func> &p,
                                                        const gk__wgmma_work_tile &work) {
  gk__epilogue<Out, float, Func> epilogue = p.output.epilogue_of_c(work.batch);
  epilogue.row_step = size_t(1) << p.split_shift;
  epilogue.dest += work.matrix_idx * epilogue.leading_dim;
  epilogue.m = (epilogue.m + epilogue.row_step - 1 - work.matrix_idx) >> p.split_shift;
  epilogue.leading_dim *= epilogue.row_step;
  epilogue.first_row += work.matrix_idx;
  return epilogue;
}

/* f(x) of the accumulators of a warpgroup, for the elements that C has. Half of a thread's accumulators are in one line
 * of C, the others in another one: in rows, or in columns if the tile is transposed. If all of a line is in C there are
 * no branches between the loads of a functor, so that they overlap. */
template <class Cols, class Out, class Func>
GK__D void gk__wgmma_apply(const gk__epilogue<Out, float, Func> &epilogue, float *acc, const gk__quad_layout &layout,
                           size_t row0, size_t col0, unsigned mma_cols) {
  if (Cols::has_fewer && mma_cols < Cols::most)
    return gk__wgmma_apply<typename Cols::fewer>(epilogue, acc, layout, row0, col0, mma_cols);
  const bool transposed = layout.transposed;
  const size_t first_idx = transposed ? row0 + layout.row_idx : col0 + layout.col_idx,
               end_idx = transposed ? epilogue.m : epilogue.n, tile_end = (transposed ? row0 : col0) + Cols::most,
               line_count = transposed ? epilogue.n : epilogue.m;
  GK__UNROLL
  for (unsigned j = 0; j < 2; j++) {
    const size_t line_idx = transposed ? col0 + layout.col_idx + j : row0 + layout.row_idx + j * layout.row_step;
    const auto apply = [&](unsigned i, size_t idx) {
      float &x = acc[i / 2 * 4 + j * 2 + i % 2];
      x = epilogue.call(x, transposed ? idx : line_idx, transposed ? line_idx : idx);
    };
    if (line_idx >= line_count) continue;
    if (tile_end <= end_idx) {
      GK__UNROLL
      for (unsigned i = 0; i < Cols::most / 4; i++) apply(i, first_idx + i / 2 * 8 + i % 2);
    } else {
      GK__UNROLL
      for (unsigned i = 0; i < Cols::most / 4; i++)
        if (first_idx + i / 2 * 8 + i % 2 < end_idx) apply(i, first_idx + i / 2 * 8 + i % 2);
    }
  }
}
/* The epilogue of a consumer warpgroup, which has accumulators for 64 rows. It has two slabs of shared memory. Without
 * a beta, where C is aligned as TMA requires, TMA stores one slab while the other one is filled. The last slab of a
 * tile ends with it, so it may store columns a second time. Otherwise both slabs together hold a tile of 64 x 64
 * floats, and threads load and store C in whole rows, which takes 0.6 to 0.9 of the time of loading C by accumulators.
 */
template <class Shape, class Out, class Func, int Count>
GK__D void gk__wgmma_store(const gk__wgmma_args<Out, Func> &p, float (&acc)[Count], const gk__wgmma_work_tile &work,
                           const gk__quad_layout &layout, unsigned group, gk__wgmma_pipeline<Shape> &pipe) {
  typedef gk__shared_tile<64, 64, 128, gk__swizzled_boxes> shared_tile;
  const unsigned slab_bytes = gk__swizzled_boxes::box_bytes, mma_cols = pipe.mma_cols;
  /* A box has as many columns as a slab. */
  const unsigned slab_cols = 128 / gk__tensor_type<Out>::bytes, slab_accs = slab_cols / 2;
  gk__epilogue<Out, float, Func> epilogue = gk__wgmma_epilogue(p, work);
  unsigned char *const staging = pipe.staging + group * (2 * slab_bytes);
  const unsigned down = layout.transposed ? 1 : 0; /* 1: the slabs of a tile are below each other; 0: side by side */
  if (p.tma_store) {
    GK__UNROLL
    for (unsigned i = 0; i < Count; i++) acc[i] = gk__mul(p.output.alpha, acc[i]);
    if (!std::is_same<Func, gk__identity>::value)
      gk__wgmma_apply<typename Shape::col_options>(epilogue, acc, layout, work.row_idx, work.col_idx, mma_cols);
    GK__UNROLL
    for (unsigned i = 0; i < Count; i += slab_accs) {
      if (i * 2 >= mma_cols) break;
      const unsigned left = mma_cols - i * 2, over = left < slab_cols ? slab_cols - left : 0, distance = i * 2 - over;
      unsigned char *const slab = staging + pipe.slabs_stored++ % 2 * slab_bytes;
      if (threadIdx.x % 128 == 0) gk__ptx_cp_async_bulk_wait_group_read<1>();
      gk__ptx_bar_sync<128>(1 + group);
      GK__UNROLL
      for (unsigned j = 0; j <= i && j < slab_accs; j += 16) /* tiles have multiples of 32 columns */
        if (over == j * 2 && i - j + slab_accs <= Count) gk__fill_slab<Out>(slab, acc + i - j, layout);
      gk__ptx_fence_proxy_async();
      gk__ptx_bar_sync<128>(1 + group);
      if (threadIdx.x % 128 == 0) {
        const unsigned row0 = work.row_idx + distance * down, col0 = work.col_idx + distance * (1 - down);
        for (unsigned box = 0; box <= down; box++)
          gk__ptx_cp_async_bulk_tensor_4d_store(&p.c, gk__shared_address(slab) + box * (slab_bytes / 2),
                                                col0 + box * slab_cols, row0, work.batch, work.matrix_idx);
        gk__ptx_cp_async_bulk_commit_group();
      }
    }
  } else {
    /* The last 64 rows or columns end with the tile. */
    if (mma_cols % 64 && layout.transposed) epilogue.m = min(epilogue.m, static_cast<size_t>(work.row_idx) + mma_cols);
    if (mma_cols % 64 && !layout.transposed) epilogue.n = min(epilogue.n, static_cast<size_t>(work.col_idx) + mma_cols);
    GK__UNROLL_BY(1)
    for (unsigned distance = 0; distance < mma_cols; distance += 64) {
      const size_t row0 = work.row_idx + distance * down, col0 = work.col_idx + distance * (1 - down);
      gk__ptx_bar_sync<128>(1 + group);
      gk__store_quads<8>(acc, layout, staging);
      gk__ptx_bar_sync<128>(1 + group);
      if (row0 < epilogue.m && col0 < epilogue.n)
        shared_tile::store(reinterpret_cast<const float *>(staging), epilogue, row0, col0);
      GK__UNROLL
      for (int i = 32; i < Count; i++) acc[i - 32] = acc[i]; /* so each pass has its own in the same registers */
    }
  }
}

/* A barrier of the cluster. Of memory accesses it orders the initialisation of mbarriers alone. */
GK__D void gk__cluster_barrier_relaxed() {
  __syncwarp();
  gk__ptx_barrier_cluster_arrive_relaxed();
  gk__ptx_barrier_cluster_wait_acquire();
}

/* The cluster reduction. Each of the blocks that split the k of a tile has the accumulators of one partition. It sends
 * quad i of each thread to the block of k rank i % partitions, over the operands there. Each block adds the partials of
 * its quads in the order of k, and stores them to C. */
template <class Shape, class Out, class Func, int Count>
GK__D void gk__cluster_reduce(const gk__wgmma_args<Out, Func> &p, const float (&acc)[Count],
                              const gk__wgmma_work_tile &work, const gk__quad_layout &layout,
                              const gk__wgmma_pipeline<Shape> &pipe) {
  const unsigned partitions = p.cluster.partitions, k_rank = p.cluster.k_rank();
  const unsigned quads = pipe.mma_cols / 8, quad_bytes = Shape::quad_bytes,
                 rank_bytes = p.cluster.most_quads(quads) * quad_bytes, own_slot = pipe.data + (threadIdx.x - 128) * 16;
  gk__cluster_barrier_relaxed(); /* all blocks have read their operands: their wgmma are complete */
  unsigned rank = p.cluster.tile_rank(), dest = own_slot + k_rank * rank_bytes;
  GK__UNROLL
  for (unsigned i = 0; i < Count / 4; i++) {
    if (i >= quads) break;
    gk__ptx_st_async_v4_f32(gk__ptx_mapa_shared_cluster(dest, rank),
                            gk__ptx_mapa_shared_cluster(pipe.reduce_barrier(), rank), acc[i * 4], acc[i * 4 + 1],
                            acc[i * 4 + 2], acc[i * 4 + 3]);
    rank += 1u << p.cluster.tile_shift();
    if (rank >= p.cluster.size()) {
      rank -= p.cluster.size();
      dest += quad_bytes;
    }
  }
  gk__ptx_mbarrier_wait_parity(pipe.reduce_barrier(), 0);
  const gk__epilogue<Out, float, Func> epilogue = gk__wgmma_epilogue(p, work);
  GK__UNROLL_BY(1)
  for (unsigned i = 0; i < p.cluster.own_quads(quads); i++) {
    const unsigned quad = k_rank + i * partitions;
    float sum[4] = {0, 0, 0, 0};
    GK__UNROLL_BY(1)
    for (unsigned source_rank = 0; source_rank < partitions; source_rank++) {
      float partial[4];
      gk__ptx_ld_shared_v4_f32(partial, own_slot + source_rank * rank_bytes + i * quad_bytes);
      GK__UNROLL
      for (int j = 0; j < 4; j++) sum[j] += partial[j];
    }
    GK__UNROLL
    for (unsigned pair = 0; pair < 2; pair++)
      epilogue.store(work.row_idx + layout.row_of(quad, pair), work.col_idx + layout.col_of(quad),
                     layout.pair_of(sum, pair).value);
  }
}
#endif /* GK__PASS_SM_90A */

template <class Shape, class Element, class Out, class Func>
__global__ void __launch_bounds__(Shape::thread_count, Shape::resident)
    gk__wgmma_kernel(const __grid_constant__ gk__wgmma_args<Out, Func> p) {
#ifdef GK__PASS_SM_90A
  const unsigned warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
  gk__wgmma_pipeline<Shape> pipe(gk__align_shared<1024>(gk__dynamic_shared()), p);
  if (threadIdx.x == 0) {
    pipe.init_barriers(p.cluster);
    gk__ptx_prefetch_tensormap(&p.a);
    gk__ptx_prefetch_tensormap(&p.b);
    if (p.tma_store) gk__ptx_prefetch_tensormap(&p.c);
  }
  __syncthreads();
  if (p.cluster.tile_shift() > 0) gk__cluster_barrier_relaxed(); /* others release stages at this block's barriers */
  gk__wait_for_earlier_work();
  if (!p.output.max_blocks) gk__let_later_work_start(); /* else the next kernel's blocks would exceed the limit */
  if (Shape::products > 1 && !p.output.condition.holds()) return;
  if (warpgroup == 0) {
    if (Shape::reallocates_registers) gk__ptx_setmaxnreg_dec<Shape::producer_registers>();
    const unsigned warp_id = __shfl_sync(~0u, threadIdx.x / 32, 0);
    if (warp_id == 0 && gk__ptx_elect_sync()) gk__wgmma_produce<Shape, Element, false>(p, pipe);
    if (warp_id == 1 && gk__ptx_elect_sync()) gk__wgmma_produce<Shape, Element, true>(p, pipe);
    if (p.cluster.partitions > 1)
      gk__cluster_barrier_relaxed(); /* matches that in gk__cluster_reduce, at which all threads arrive */
  } else {
    if (Shape::reallocates_registers) gk__ptx_setmaxnreg_inc<Shape::consumer_registers>();
    for (unsigned tile_idx = p.first_tile + p.cluster.cluster_idx(); tile_idx < p.end_tile;
         tile_idx += p.cluster.cluster_count()) {
      const gk__wgmma_work_tile work = gk__wgmma_work_tile_of<Shape>(p, tile_idx);
      const gk__wgmma_k_range range = gk__wgmma_k_range_of<Element>(p, work);
      float acc[Shape::acc_count];
      gk__wgmma_multiply_tile<Shape, Element>(p, acc, pipe, warpgroup - 1, range);
      const gk__wgmma_work_tile own = gk__wgmma_group_tile<Shape>(p, work, warpgroup - 1);
      const gk__quad_layout layout = gk__wgmma_quad_layout<Shape>(p);
      if (p.cluster.partitions > 1)
        gk__cluster_reduce<Shape>(p, acc, own, layout, pipe);
      else
        gk__wgmma_store<Shape>(p, acc, own, layout, warpgroup - 1, pipe);
    }
    /* TMA has to read the staging buffers before the block exits; its writes complete with the kernel. */
    if (threadIdx.x % 128 == 0) gk__ptx_cp_async_bulk_wait_group_read<0>();
  }
#else
  GK__EMPTY_KERNEL;
  (void)p;
#endif
}

/* cuTensorMapEncodeTiled, found at run time, so that programs need not be linked with libcuda. */
typedef int (*gk__tensor_map_encode)(gk__tensor_map *, int type, unsigned tensor_rank, void *, const uint64_t *dims,
                                     const uint64_t *strides, const unsigned *box, const unsigned *steps,
                                     int interleave, int swizzle, int promotion, int fill);
inline gk__tensor_map_encode gk__tensor_map_encoder() {
  static std::atomic<void *> encode;
  if (!encode) {
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    void *found = NULL;
    const cudaError_t earlier = cudaPeekAtLastError();
#if CUDART_VERSION >= 12050
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
#else
    const cudaError_t code = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
    if (code != cudaSuccess) gk__forget_error(earlier);
    if (code == cudaSuccess && result == cudaDriverEntryPointSuccess) encode = found;
  }
  return reinterpret_cast<gk__tensor_map_encode>(encode.load());
}

/* A matrix of `outer` rows of `inner` elements, in boxes of 128 bytes by box_rows rows with the 128-byte swizzle. L2
 * promotion is 128 bytes, because what follows belongs to other blocks. */
inline bool gk__make_tensor_map(gk__tensor_map *map, int type, size_t item_bytes, const void *data, size_t inner,
                                size_t outer, size_t leading_dim, size_t batch, size_t stride_batch, size_t terms,
                                size_t stride_term, unsigned box_rows) {
  const uint64_t dims[] = {inner, outer, batch, terms};
  const uint64_t strides[] = {leading_dim * item_bytes, batch > 1 ? stride_batch * item_bytes : 16,
                              terms > 1 ? stride_term * item_bytes : 16};
  const unsigned sizes[] = {static_cast<unsigned>(128 / item_bytes), box_rows, 1, 1};
  const unsigned steps[] = {1, 1, 1, 1};
  const int swizzle_128 = 3, promote_128 = 2; /* of cuda.h */
  return gk__tensor_map_encoder()(map, type, 4, const_cast<void *>(data), dims, strides, sizes, steps, 0, swizzle_128,
                                  promote_128, 0) == 0;
}
template <class Element>
bool gk__map_operand(gk__tensor_map *map, const gk__operand_view<Element> &v, size_t row_count, size_t k, size_t batch,
                     unsigned terms, unsigned k_major_box, unsigned share_shift) {
  typedef gk__tensor_type<Element> type;
  return gk__make_tensor_map(map, type::operand, type::bytes, v.data, v.k_major ? k : row_count,
                             v.k_major ? row_count : k, v.leading_dim, v.stride_batch ? batch : 1, v.stride_batch,
                             terms, v.stride_term, (v.k_major ? k_major_box : 128u / type::bytes) >> share_shift);
}
/* Encodes the tensor maps of A, which may be split. If its rows are not a multiple of the matrices, the first matrices
 * have one row more than the others. A map must not extend beyond A, so each of the two kinds has its own. If the
 * others have no rows at all, they take the map of the first ones; their tiles are computed, but not stored. */
template <class Element>
bool gk__map_a(gk__wgmma_params *p, gk__operand_view<Element> v, size_t row_count, size_t k, size_t batch,
               unsigned terms) {
  const size_t split = v.split, longer = row_count % split, least_rows = row_count / split;
  const uintptr_t address = reinterpret_cast<uintptr_t>(v.data), lead_bytes = split > 1 ? address % 32 : 0;
  p->split_shift = gk__ceil_log2(split);
  p->longer_count = static_cast<unsigned>(longer);
  p->lead = static_cast<unsigned>(lead_bytes / gk__tensor_type<Element>::bytes);
  p->lda = split > 1 ? static_cast<unsigned>(v.leading_dim) : 0;
  v.data = reinterpret_cast<const void *>(address - lead_bytes);
  v.leading_dim *= split;
  const auto map = [&](gk__tensor_map *dest_map, size_t map_rows, size_t matrices) {
    return gk__map_operand(dest_map, v, map_rows, p->lead + (matrices - 1) * p->lda + k, batch, terms, p->a_box,
                           p->cluster.col_shift);
  };
  if (longer && !map(&p->longer_a, least_rows + 1, longer)) return false;
  if (least_rows) return map(&p->a, least_rows, split);
  p->a = p->longer_a;
  return true;
}

/* How many clusters run at once on so many SMs. The blocks of a cluster share a GPC, which leaves some SMs idle.
 * idle_sms has their number on an H200, by the size of a cluster. With one cluster more than run at once, persistent
 * blocks take twice as long. */
inline unsigned gk__clusters_at_once(unsigned sms, unsigned cluster_size) {
  static const unsigned idle_sms[] = {0, 0, 0, 15, 12, 22, 30, 27, 16};
  const unsigned idle = idle_sms[cluster_size];
  return sms >= idle + cluster_size ? (sms - idle) / cluster_size : 1;
}
/* A kernel, and what a launch needs to know of its shape and of the tile. */
template <class Out, class Func> struct gk__wgmma_tile_kernel {
  gk__kernel<gk__wgmma_args<Out, Func>> kernel;
  unsigned mma_cols, row_count, col_count, terms, thread_count, resident, stage_bytes, staging_bytes;
  bool in_registers;
  /* Dynamic shared memory for the staging buffers and a ring. The swizzle needs boxes aligned to 1024 bytes. */
  unsigned smem(unsigned stages) const { return 1024 + staging_bytes + stages * (stage_bytes + 16) + 8; }
  /* The stages of a ring, if so many blocks share a multiprocessor. */
  unsigned stages(unsigned blocks) const {
    return (gk__hopper_smem / blocks - gk__block_reserve - smem(0)) / (stage_bytes + 16);
  }
  /* How many blocks share a multiprocessor. If it has several tiles to compute and k is short, one block stores its
   * tile while the others multiply: 1000 products of 64 x 64 x 64 of half types take 0.70 of the time, of 80 x 48 x 48
   * 0.84 (H200). But then each block has fewer stages. If they hold less than half of its k, products take longer: 1.10
   * times for 300 of 128 x 128 x 1024. If all tiles run at once, smaller rings leave room for blocks of the next
   * launch, which begins early. That pays if the stages hold all of k: 154 random products of half types take 0.97 of
   * the time, and 56 of them with few tiles 0.93. With twice that k, products take up to 1.17 times as long (CUDA
   * graphs). */
  unsigned blocks_for(unsigned k_blocks, bool one_wave) const {
    unsigned blocks = resident;
    while (blocks > 1 && k_blocks > stages(blocks) * (one_wave ? 1 : 2)) blocks--;
    return blocks;
  }
};
template <class Shape, class Element, class Out, class Func>
gk__wgmma_tile_kernel<Out, Func> gk__wgmma_tile_kernel_of(unsigned mma_cols) {
  return {GK__KERNEL(gk__wgmma_kernel<Shape, Element, Out, Func>),
          mma_cols,
          Shape::tile_rows(mma_cols),
          Shape::tile_cols(mma_cols),
          Shape::terms,
          Shape::thread_count,
          Shape::resident,
          Shape::stage_bytes(mma_cols),
          Shape::staging_bytes,
          Shape::in_registers::value};
}
/* Sets the arguments of the kernel but for the tiles of a launch. Returns false if TMA cannot address the matrices. */
template <class Element, class Out, class Func>
bool gk__wgmma_set_args(gk__wgmma_args<Out, Func> *args, const gk__wgmma_tile_kernel<Out, Func> &tile_kernel,
                        const gk__tensor_args<Element, Out, Func> &x, const gk__wgmma_cluster &cluster, unsigned sms) {
  typedef gk__tensor_type<Out> out_type;
  gk__wgmma_args<Out, Func> &p = *args;
  p.swapped = tile_kernel.in_registers && !x.a.k_major;
  const gk__operand_view<Element> &a = p.swapped ? x.b : x.a, &b = p.swapped ? x.a : x.b;
  const size_t row_count = p.swapped ? x.n : x.m, col_count = p.swapped ? x.m : x.n;
  const size_t split = a.split, part_rows = gk_ceil_div(row_count, split);
  const size_t depth = 128 / gk__tensor_type<Element>::bytes, bytes = out_type::bytes,
               tile_rows = tile_kernel.row_count, tile_cols = tile_kernel.col_count;
  const size_t max_stride = ((size_t(1) << 40) - 16) / bytes; /* tensor maps: 2^40 bytes */
  const size_t stride_c = x.batch > 1 ? x.stride_c : 0;
  const bool transposed = tile_kernel.in_registers && !p.swapped; /* see gk__quad_layout */
  /* TMA takes about 4 ns for a row of zeros beyond an operand, and 1 ns for one of elements (H200). So if a K-major
   * operand has fewer rows than a tile, a box has only these, rounded up to 8. The stale elements in the place of the
   * others only reach accumulators that are not stored. Otherwise the last tile ends with the operand, rounded up to a
   * multiple of four, as vectors of C begin there, and MN-major to 16 bytes, as boxes begin there. It computes elements
   * of the tile before it again, which gives the same bits; but not if that would add C or call a functor twice. */
  const auto box_of = [](size_t extent, size_t tile_extent, unsigned share_shift) {
    return static_cast<unsigned>(extent < tile_extent ? gk_round_up(extent, size_t(8) << share_shift) : tile_extent);
  };
  const bool overlaps = split == 1 && x.beta == 0 && std::is_same<Func, gk__identity>::value;
  const auto last_of = [&](const gk__operand_view<Element> &v, size_t extent, size_t tile_extent) {
    const size_t end = gk_round_up(extent, v.k_major ? size_t(4) : 16 / gk__tensor_type<Element>::bytes);
    return overlaps ? static_cast<unsigned>(end > tile_extent ? end - tile_extent : 0) : ~0u;
  };
  /* TMA stores multiples of 16 bytes. */
  p.tma_store = cluster.partitions == 1 && x.beta == 0 && reinterpret_cast<uintptr_t>(x.c) % 16 == 0 &&
                x.ldc * bytes % 16 == 0 && stride_c * bytes % 16 == 0 && x.n * bytes % 16 == 0 && x.m % split == 0 &&
                x.ldc * split <= max_stride && stride_c <= max_stride;
  p.cluster = cluster;
  p.a_box = box_of(part_rows, tile_rows, cluster.col_shift);
  p.b_box = box_of(col_count, tile_cols, cluster.row_shift);
  p.last_row = last_of(a, row_count, tile_rows);
  p.last_col = last_of(b, col_count, tile_cols);
  p.mma_cols = tile_kernel.mma_cols;
  p.k = static_cast<unsigned>(x.k);
  p.row_count = static_cast<unsigned>(row_count);
  p.col_count = static_cast<unsigned>(col_count);
  p.k_blocks = static_cast<unsigned>(gk_ceil_div(x.k + (split > 1 ? depth / 4 - 1 : 0), depth * cluster.partitions));
  p.tiles_m = static_cast<unsigned>(split * gk__tile_count(part_rows, tile_rows << cluster.row_shift));
  p.tiles_n = static_cast<unsigned>(gk__tile_count(col_count, tile_cols << cluster.col_shift));
  p.raster_rows = 1; /* the tiles in flight are about square, which minimises the operand bytes that they read */
  while (p.raster_rows * p.raster_rows * 2 * tile_rows <= sms * tile_cols) p.raster_rows *= 2;
  p.raster_rows >>= cluster.row_shift;
  if (p.raster_rows == 0) p.raster_rows = 1;
  p.a_k_major = a.k_major;
  p.b_k_major = b.k_major;
  p.a_batched = a.stride_batch && x.batch > 1;
  p.b_batched = b.stride_batch && x.batch > 1;
  return gk__map_a(&p, a, row_count, x.k, x.batch, tile_kernel.terms) &&
         gk__map_operand(&p.b, b, col_count, x.k, x.batch, tile_kernel.terms, p.b_box, cluster.row_shift) &&
         (!p.tma_store || gk__make_tensor_map(&p.c, out_type::map, bytes, x.c, x.n, x.m / split, x.ldc * split, x.batch,
                                              x.stride_c, split, x.ldc, transposed ? 32 : 64));
}
/* Launches the kernel, as often as needed. The blocks are persistent. Those that split the k of their tiles have one
 * each, because gk__cluster_reduce uses its barrier and the room of the operands once. */
template <class Element, class Out, class Func>
cudaError_t gk__wgmma_launch(gk__wgmma_tile_kernel<Out, Func> tile_kernel, const gk__tensor_args<Element, Out, Func> &x,
                             gk__wgmma_cluster cluster, const gk__product_call &call) {
  const unsigned sms = static_cast<unsigned>(call.gpu.sms);
  gk__wgmma_args<Out, Func> p(x);
  if (x.max_blocks > 0 && x.max_blocks < cluster.size()) cluster.row_shift = cluster.col_shift = 0; /* the same bits */
  if (!gk__wgmma_set_args(&p, tile_kernel, x, cluster, sms))
    return GK__INVALID("gk_matmul: %zu x %zu x %zu, %zu times, is too large for TMA", x.m, x.n, x.k, x.batch);
  const unsigned tiles = p.tiles_m * p.tiles_n * static_cast<unsigned>(x.batch), size = cluster.size(),
                 clusters = gk__clusters_at_once(sms, size);
  const unsigned resident = cluster.partitions > 1 ? 1 : tile_kernel.blocks_for(p.k_blocks, tiles <= clusters);
  p.stages = tile_kernel.stages(resident);
  const size_t most = x.limited(size_t(clusters) * size * resident);
  const unsigned at_once = most > size ? static_cast<unsigned>(most / size) : 1;
  /* Blocks that begin together read the same operands from L2 at the same time. Persistent blocks drift apart, so a
   * launch has as many waves of tiles as make 768 k blocks. In one launch, 16384 x 16384 x 16384 takes 1.64 (tf32)
   * and 1.21 (bf16) times as long, 12000 x 12000 x 12000 1.3; of 102 products none takes less than 0.98 (H100). */
  const unsigned launch_k_blocks = 768;
  const unsigned launch_tiles = at_once * (cluster.partitions > 1 ? 1 : gk_ceil_div(launch_k_blocks, p.k_blocks));
  tile_kernel.kernel.cluster_blocks = size;
  for (p.first_tile = 0; p.first_tile < tiles; p.first_tile = p.end_tile) {
    const unsigned left = tiles - p.first_tile, blocks = left < at_once ? left : at_once;
    p.end_tile = left < launch_tiles ? tiles : p.first_tile + launch_tiles;
    GK_TRY(gk__launch_kernel("gk_matmul", tile_kernel.kernel, blocks * size, tile_kernel.thread_count,
                             tile_kernel.smem(p.stages), call.stream, p));
  }
  return cudaSuccess;
}

/* The time of a tile in ns: k_block_time for each 128 bytes of k, and overhead. */
struct gk__wgmma_tile_cost {
  unsigned mma_cols, k_block_time, overhead;
  size_t row_count, col_count;
};
/* The tiles of a kernel: rows and columns of the accumulators, as in gk__wgmma_shape, the most columns first. The times
 * are those of the least and of the most columns; between them they are linear. */
struct gk__wgmma_kernel_cost {
  unsigned mma_rows;
  bool in_registers;
  unsigned least_k_block_time, most_k_block_time, least_overhead, most_overhead;
  unsigned option_count, col_options[8];
  gk__wgmma_tile_cost tile_cost(unsigned option) const {
    const unsigned mma_cols = col_options[option], range = col_options[0] - col_options[option_count - 1];
    const auto between = [&](unsigned least, unsigned most) {
      return range == 0 ? most : most - (most - least) * (col_options[0] - mma_cols) / range;
    };
    return {mma_cols, between(least_k_block_time, most_k_block_time), between(least_overhead, most_overhead),
            in_registers ? mma_cols : mma_rows, in_registers ? mma_rows : mma_cols};
  }
};
/* Whether the rows of an operand begin at multiples of so many bytes, in all matrices of a batch. The stride counts
 * even for a part with one product, so that a part has the plan of the whole. */
template <class Element> bool gk__rows_begin_at(const gk__operand_view<Element> &v, size_t bytes) {
  const size_t items = bytes / gk__tensor_type<Element>::bytes;
  return reinterpret_cast<uintptr_t>(v.data) % bytes == 0 && v.leading_dim % items == 0 && v.stride_batch % items == 0;
}
/* Where the rows of an operand begin, because its load time depends on it: at lines of 128 bytes, at sectors of 32
 * bytes, or elsewhere. Those of a split operand are read from the beginning of a sector. */
enum { GK__AT_LINES, GK__AT_SECTORS, GK__ELSEWHERE };
template <class Element> int gk__rows_begin(const gk__operand_view<Element> &v) {
  if (v.split > 1) return GK__AT_SECTORS;
  return gk__rows_begin_at(v, 128) ? GK__AT_LINES : gk__rows_begin_at(v, 32) ? GK__AT_SECTORS : GK__ELSEWHERE;
}
/* What a k block takes longer for each row of a tile of a, or column of one of b, in 1/100 ns. The tables have three
 * entries, one for each share_shift, for each value of gk__rows_begin. The last three are for operands that begin
 * elsewhere if b is in registers. */
inline unsigned gk__load_time(bool of_b, int rows_begin, bool in_registers, unsigned share_shift) {
  static const unsigned times_of_a[][3] = {{69, 58, 34}, {116, 98, 58}, {172, 107, 70}, {218, 136, 89}},
                        times_of_b[][3] = {{14, 11, 5}, {80, 61, 26}, {128, 73, 34}, {103, 58, 28}};
  const int begin_idx = in_registers && rows_begin == GK__ELSEWHERE ? 3 : rows_begin;
  return (of_b ? times_of_b : times_of_a)[begin_idx][share_shift];
}
struct gk__wgmma_choice {
  int kernel_idx;
  unsigned mma_cols;
  gk__wgmma_cluster cluster;
  unsigned long long cost; /* the expected time in ns */
};
/* What a plan depends on. k: in k blocks; split: how many matrices a is split into; terms: of an operand. */
struct gk__wgmma_query {
  size_t m, n, k, batch, split;
  int a_begins, b_begins; /* gk__rows_begin of the kernel's a and b, which are B^T and A^T if swapped */
  unsigned terms, sms;
  unsigned box_cols; /* the columns of b that TMA loads are a multiple of this */
  bool in_registers, swapped;
  size_t row_count() const { return gk_ceil_div(swapped ? n : m, split); } /* of each of these matrices */
  size_t col_count() const { return swapped ? m : n; }
  bool operator==(const gk__wgmma_query &other) const {
    return m == other.m && n == other.n && k == other.k && batch == other.batch && split == other.split &&
           a_begins == other.a_begins && b_begins == other.b_begins && terms == other.terms && sms == other.sms &&
           box_cols == other.box_cols && in_registers == other.in_registers && swapped == other.swapped;
  }
};
/* The ns in which memory and L2 provide the operands: 4.4 TB/s, less if more groups of tiles read an operand, and if
 * blocks split k. A group is the tiles of a cluster. */
inline double gk__wgmma_read_time(const gk__wgmma_query &query, size_t row_groups, size_t col_groups,
                                  unsigned partitions) {
  const auto time = [&](size_t extent, size_t groups) {
    const double lines = static_cast<double>(extent * query.batch * query.terms) * static_cast<double>(query.k);
    return lines * 128 / 4400 * (1 + .32 * gk__ceil_log2(groups));
  };
  return (time(query.row_count() * query.split, col_groups) + time(query.col_count(), row_groups)) *
         (1 + .05 * gk__ceil_log2(partitions));
}
/* The expected time of a product in ns, if each SM computes one tile at a time; ~0: not by this cluster. A k block
 * takes the time of its wgmma, and some for each row of an operand, because L2 bounds these loads if all SMs load. That
 * is less if the operand is shared, and more if its rows do not begin at lines of 128 bytes. Clusters of more than two
 * blocks leave SMs idle; these and clusters that split k are for products whose tiles all run at once.
 *
 * Fitted on an H200, in CUDA graphs, to the choices among 140,000 plans for 11,000 products of half types and tf32
 * whose rows begin at multiples of 16 bytes; `make bench-refit` fits only the other kernels. Choices take 2.0 % (half
 * types), 2.6 % (tf32 with K-major operands) and 1.3 % (other tf32) longer than the best plan that was measured. The
 * best plan of 23, 22 and 15 % of the products shares an operand among four blocks. It takes 0.96, 0.95 and 0.97 of the
 * time of the best plan with pairs, for one product in a hundred at most 0.87, 0.86 and 0.92. In an earlier fit 2,027
 * products for which it is among the best to split k by 3, 5, 6 or 7 take 0.990 (half types) and 0.984 (tf32) of their
 * time with powers of two alone. */
inline unsigned long long gk__wgmma_time(const gk__wgmma_query &query, const gk__wgmma_tile_cost &of_tile,
                                         const gk__wgmma_cluster &cluster) {
  const size_t row_groups = gk__tile_count(query.row_count(), of_tile.row_count << cluster.row_shift),
               col_groups = gk__tile_count(query.col_count(), of_tile.col_count << cluster.col_shift),
               all = row_groups * col_groups * query.split * query.batch;
  const unsigned cluster_size = cluster.size();
  const size_t at_once = gk__clusters_at_once(query.sms, cluster_size);
  if (cluster_size > 1 && 4 * cluster_size > query.sms) return ~0ull;
  if (all > at_once && (cluster_size > 2 || cluster.partitions > 1)) return ~0ull;
  const size_t tile_items = of_tile.row_count * of_tile.col_count;
  if (!cluster.has_room(tile_items, of_tile.mma_cols)) return ~0ull;
  const size_t busy_sms = (all < at_once ? all : at_once) * cluster_size;
  /* Boxes of an MN-major b have whole lines of 128 bytes. A tile with other columns begins within a line. */
  const int b_begins =
      of_tile.col_count % query.box_cols && query.b_begins == GK__AT_LINES ? GK__AT_SECTORS : query.b_begins;
  const size_t load_time = /* in 1/100 ns */
      (of_tile.row_count * gk__load_time(false, query.a_begins, query.in_registers, cluster.col_shift) +
       gk_round_up(of_tile.col_count, static_cast<size_t>(query.box_cols)) *
           gk__load_time(true, b_begins, query.in_registers, cluster.row_shift)) *
      busy_sms / query.sms;
  const size_t k_block_time = of_tile.k_block_time + load_time / 100;
  /* The barriers. If the blocks split k, also the time of each 1024 accumulators of the tile, which are sent, and of
   * each 1024 that this block reduces. */
  const size_t split_time = 708 + (tile_items * 74 + cluster.most_items(tile_items, of_tile.mma_cols) * 242) / 1024,
               cluster_time = (cluster.tile_shift() > 0 ? 91 : 0) + (cluster.partitions > 1 ? split_time : 0);
  const double tiles_time =
      static_cast<double>(gk_ceil_div(all, at_once) *
                          (gk_ceil_div(query.k, cluster.partitions) * k_block_time + of_tile.overhead + cluster_time));
  /* The two overlap, but not wholly. */
  const double x = tiles_time * tiles_time, y = gk__wgmma_read_time(query, row_groups, col_groups, cluster.partitions);
  return static_cast<unsigned long long>(sqrt(sqrt(x * x + y * y * y * y)));
}
/* The tile and the cluster that take the least time. */
inline gk__wgmma_choice gk__wgmma_choose(const gk__wgmma_kernel_cost *kernel_costs, int kernel_count,
                                         const gk__wgmma_query &query) {
  gk__wgmma_choice best = {0, 0, {1, 0, 0}, ~0ull};
  for (int i = 0; i < kernel_count; i++)
    for (unsigned option = 0; option < kernel_costs[i].option_count; option++) {
      const gk__wgmma_tile_cost of_tile = kernel_costs[i].tile_cost(option);
      for (unsigned shape = 0; shape < 8 * 3 * 3; shape++) { /* 1 to 8 partitions, and two shifts of 0 to 2 */
        const gk__wgmma_cluster cluster = {shape / 9 + 1, shape / 3 % 3, shape % 3};
        if (cluster.size() > 8) continue;
        const unsigned long long time = gk__wgmma_time(query, of_tile, cluster);
        if (time < best.cost) best = {i, of_tile.mma_cols, cluster, time};
      }
    }
  return best;
}
/* A kernel: the rows of its accumulators, the blocks that share a multiprocessor, the times of its tiles (of a k block:
 * for each product of terms), and the numbers of columns. */
template <int MmaRows, int Resident, unsigned LeastKBlockTime, unsigned MostKBlockTime, unsigned LeastOverhead,
          unsigned MostOverhead, int... Cols>
struct gk__wgmma_kernel_tiles {
  template <int Products, bool InRegisters>
  using shape = gk__wgmma_shape<Products, InRegisters, MmaRows, Resident, gk__wgmma_cols<Cols...>>;
  static gk__wgmma_kernel_cost cost(unsigned products, bool in_registers) {
    return {MmaRows,
            in_registers,
            LeastKBlockTime * products,
            MostKBlockTime * products,
            LeastOverhead,
            MostOverhead,
            static_cast<unsigned>(sizeof...(Cols)),
            {Cols...}};
  }
};
/* A set of tiles. k > 0. */
template <int Products, bool InRegisters, class... Tiles> struct gk__wgmma_tiles {
  /* The tile and the cluster to use; or two, if it is faster to cut the product after whole waves of a tile. */
  static gk__cut_plan<gk__wgmma_choice> plan(const gk__wgmma_query &query) {
    const gk__wgmma_kernel_cost kernel_costs[] = {Tiles::cost(Products, InRegisters)...};
    const unsigned long long launch_time = 6000; /* the kernel is persistent: what its tiles overlap is lost */
    const auto choose = [&](const gk__wgmma_query &panel) {
      return gk__wgmma_choose(kernel_costs, static_cast<int>(sizeof...(Tiles)), panel);
    };
    gk__cut_plan<gk__wgmma_choice> cut(query.m, query.n, choose(query));
    if (query.batch == 1 && gk__tile_count(query.m, query.n, 64, 64) > query.sms) /* else the smallest are one wave */
      for (const gk__wgmma_kernel_cost &each_kernel : kernel_costs) {
        const gk__wgmma_tile_cost each_tile = each_kernel.tile_cost(0);
        const size_t tile_rows = each_tile.row_count * query.split, tile_cols = each_tile.col_count;
        cut.cut_after_waves(query, query.swapped ? tile_cols : tile_rows, query.swapped ? tile_rows : tile_cols,
                            query.sms / query.split, launch_time, choose);
      }
    return cut;
  }
  /* The plan is made for the whole batch, of which p may have a part, so that the bits do not depend on the parts. */
  template <class Element, class Out, class Func>
  static cudaError_t run(const gk__tensor_args<Element, Out, Func> &p, size_t whole_batch,
                         const gk__product_call &call) {
    gk__wgmma_tile_kernel<Out, Func> (*const tile_kernels[])(unsigned) = {
        gk__wgmma_tile_kernel_of<typename Tiles::template shape<Products, InRegisters>, Element, Out, Func>...};
    gk__wgmma_query query = gk__wgmma_query();
    query.m = p.m;
    query.n = p.n;
    query.k = gk__tile_count(p.k, 128 / gk__tensor_type<Element>::bytes);
    query.batch = whole_batch;
    query.split = p.a.split;
    query.terms = Products > 1 ? GK__BF16_TERMS : 1;
    query.in_registers = InRegisters;
    query.swapped = InRegisters && !p.a.k_major;
    query.a_begins = gk__rows_begin(query.swapped ? p.b : p.a);
    query.b_begins = gk__rows_begin(query.swapped ? p.a : p.b);
    query.sms = static_cast<unsigned>(call.gpu.sms);
    query.box_cols = InRegisters || p.b.k_major ? 1 : 128 / gk__tensor_type<Element>::bytes;
    const gk__cut_plan<gk__wgmma_choice> cut =
        gk__cached_plan(query, [](const gk__wgmma_query &asked) { return plan(asked); });
    return cut.run(p, [&](const gk__tensor_args<Element, Out, Func> &panel, const gk__wgmma_choice &choice) {
      return gk__wgmma_launch(tile_kernels[choice.kernel_idx](choice.mma_cols), panel, choice.cluster, call);
    });
  }
};

/* The tiles of half-precision types, with both operands in shared memory. Compared with six kernels of one tile each,
 * 64 x 64 to 128 x 256, products of 6 to 100 us whose edges are multiples of 32 take 0.97 of the time, those of tf32
 * likewise; one in twenty takes at most 0.81. Smaller ones take 1.007 and 1.000 (H200, 490 products, both with their
 * own costs). */
template <int Products, class Element>
struct gk__wgmma_tile_set
    : gk__wgmma_tiles<1, false, gk__wgmma_kernel_tiles<192, 1, 402, 627, 1624, 2079, 192, 128>,
                      gk__wgmma_kernel_tiles<128, 1, 180, 552, 1427, 2007, 256, 192, 160, 128, 96>,
                      gk__wgmma_kernel_tiles<64, 2, 131, 221, 536, 1060, 192, 128, 96>,
                      gk__wgmma_kernel_tiles<128, 2, 142, 142, 487, 487, 64>,
                      gk__wgmma_kernel_tiles<64, 3, 92, 92, 248, 248, 64>> {};
/* Emulated fp32. */
template <class Element>
struct gk__wgmma_tile_set<6, Element>
    : gk__wgmma_tiles<6, false, gk__wgmma_kernel_tiles<128, 1, 174, 315, 1272, 2185, 128, 96, 64>,
                      gk__wgmma_kernel_tiles<64, 1, 94, 94, 936, 936, 64>> {};
/* tf32. If both operands are K-major, both are read from shared memory, as for half-precision types. Else b is in
 * registers, and two warpgroups multiply its 128 columns. */
template <> struct gk__wgmma_tile_set<1, float> {
  typedef gk__wgmma_tiles<1, false, gk__wgmma_kernel_tiles<192, 1, 420, 671, 2522, 4971, 192, 128>,
                          gk__wgmma_kernel_tiles<128, 1, 184, 495, 1668, 3808, 256, 192, 160, 128, 96>,
                          gk__wgmma_kernel_tiles<64, 2, 128, 235, 777, 971, 160, 128, 96>,
                          gk__wgmma_kernel_tiles<64, 3, 102, 102, 321, 321, 64>>
      k_major_tiles;
  typedef gk__wgmma_tiles<1, true, gk__wgmma_kernel_tiles<128, 1, 353, 494, 2645, 4501, 256, 224, 192, 160>,
                          gk__wgmma_kernel_tiles<128, 1, 252, 275, 1662, 2348, 128, 96>,
                          gk__wgmma_kernel_tiles<128, 2, 239, 239, 648, 648, 64>>
      register_tiles;
  template <class Args> static cudaError_t run(const Args &p, size_t whole_batch, const gk__product_call &call) {
    return p.a.k_major && p.b.k_major ? k_major_tiles::run(p, whole_batch, call)
                                      : register_tiles::run(p, whole_batch, call);
  }
};

#else

template <int Products, class Element> struct gk__wgmma_tile_set : gk__no_path {};

#endif /* GK__HOPPER_BUILD */

/* --- Floats on Hopper ---------------------------------------------------------------------------------------------
 *
 * A warp-specialised kernel of floats. Consumer threads only multiply: their loop is fused multiply-adds and the
 * shared-memory loads of the fragments, and little else. A register file has two banks. An FMA takes two issue slots if
 * its operands conflict in a bank, or if none of them is in the register reuse cache. With few other instructions in
 * the loop ptxas finds an order in which 19 of 20 FMAs take one slot. The remaining loss is the fragment loads: each
 * takes an issue slot, and the write-back of its four words delays two more. A block alone on a multiprocessor, with
 * all operands in shared memory, reaches 0.98 of the peak FMA rate without the loads and 0.87 with them.
 *
 * In shared memory both operands are MN-major, as tile[k][row or column]. There are as many producer threads as
 * consumers. They load a stage of 16 k to registers before its place in the ring is free: four floats each by four
 * loads, at any alignment, stored as one vector. They give most of their registers to the consumers (setmaxnreg, which
 * only code for sm_90a has), and the two meet only at the mbarriers of the ring. Every instruction of a producer takes
 * an issue slot from the consumers, so each storage order of the operands has a short loop of its own. TMA would not be
 * faster: with operands that it could load, these blocks take the same time. */

/* The accumulators of a thread: eight rows and Fours vectors of four columns, of a warp tile of 32 rows and 32 Fours
 * columns. A block tile has Down x Across warps. The four floats that a producer stores as a vector are neighbours if
 * their operand is K-major; else they are `apart`, a quarter of the tile. */
template <int Down, int Across, int Fours> struct gk__f32_accumulators {
  static const int thread_count = Down * Across * 32, vector_width = 4, row_count = 8, fours = Fours, across = Across;
  static const int bm = Down * 32, bn = Across * Fours * 32;
  float value[row_count][Fours * vector_width];
  int first_row, first_col, next_row, next_four; /* next_row: from one row to the next; next_four: to the fifth */
  bool rows_apart, cols_apart;
  GK__D gk__f32_accumulators(int t, bool are_rows_apart, bool are_cols_apart)
      : rows_apart(are_rows_apart), cols_apart(are_cols_apart) {
    const int lane_id = t % 32, warp_id = t / 32, pos = warp_id / Across * 8 + lane_id / 8;
    first_row = rows_apart ? pos : pos * 4;
    next_row = rows_apart ? Down * 8 : 1;
    next_four = rows_apart ? 4 : 16;
    first_col = warp_id % Across * (Fours * 8) + lane_id % 8; /* in vectors */
  }
  /* Stores the accumulators to a tile in shared memory. */
  GK__D void store_shared(float *c_tile, int pitch) const {
    GK__UNROLL
    for (int i = 0; i < row_count; i++) {
      float *const dest = c_tile + (first_row + i / 4 * next_four + i % 4 * next_row) * pitch;
      GK__UNROLL
      for (int j = 0; j < Fours; j++) {
        const int vector_idx = first_col + j * 8;
        if (cols_apart) {
          GK__UNROLL
          for (int e = 0; e < vector_width; e++) dest[vector_idx + e * (bn / 4)] = value[i][j * vector_width + e];
        } else {
          const float *const four = value[i] + j * vector_width;
          *reinterpret_cast<gk__vector<float, 4> *>(dest + vector_idx * 4) = {{four[0], four[1], four[2], four[3]}};
        }
      }
    }
  }
};
/* A configuration: Down x Across consumer warps, and as many producers. Two blocks are on a multiprocessor. */
template <int Down, int Across, int Fours> struct gk__f32_block {
  typedef gk__f32_accumulators<Down, Across, Fours> sums;
  typedef gk__shared_tile<sums::bm, sums::bn, sums::thread_count> shared_tile;
  static const int bm = sums::bm, bn = sums::bn, depth = 16, stages = 3, resident = 2;
  static const int thread_count = 2 * sums::thread_count;
  /* Registers of a producer thread. With more than 200 for a consumer, or with fewer for a producer, ptxas finds no
   * order of the FMAs without bank conflicts in some of the kernels. */
  static const int producer_registers = 56;
  static const int consumer_registers = 65536 / (thread_count * resident) / 8 * 16 - producer_registers;
  static const int pitch_a = bm * 4, pitch_b = bn * 4, a_bytes = depth * pitch_a; /* bytes */
  static const int stage_bytes = a_bytes + depth * pitch_b, ring_bytes = stages * stage_bytes;
  static const int smem = ring_bytes > shared_tile::bytes ? ring_bytes : shared_tile::bytes;
};

#ifdef GK__HOPPER_BUILD
#ifdef GK__PASS_SM_90A

/* The operand fragments of one k. */
template <int Fours> struct gk__f32_fragment {
  float a[2][4], b[Fours][4];
  /* A last: all of B has arrived then, so the rows can be multiplied in serpentine order. Otherwise ptxas would start
   * each row with the operand that arrives first. */
  GK__D void load(unsigned from_a, unsigned from_b) {
    GK__UNROLL
    for (int j = 0; j < Fours; j++) gk__ptx_ld_volatile_shared_v4_f32(b[j], from_b + static_cast<unsigned>(j) * 128);
    gk__ptx_ld_volatile_shared_v4_f32(a[0], from_a);
    gk__ptx_ld_volatile_shared_v4_f32(a[1], from_a + 64);
  }
  /* Serpentine order: consecutive FMAs share an operand register. The second and the third of four columns are
   * exchanged: with this order ptxas assigns registers with the fewest bank conflicts. */
  template <class Sums> GK__D void multiply(Sums &sums) const {
    const int col_count = Fours * 4;
    GK__UNROLL
    for (int i = 0; i < 8; i++) {
      GK__UNROLL
      for (int idx = 0; idx < col_count; idx++) {
        const int pos = i % 2 ? col_count - 1 - idx : idx;
        const int j = pos % 4 == 1 || pos % 4 == 2 ? pos / 4 * 4 + 3 - pos % 4 : pos;
        gk__ptx_fma_rn_f32(&sums.value[i][j], a[i / 4][i % 4], b[j / 4][j % 4]);
      }
    }
  }
};

/* A producer thread's part of one operand: item_count vectors of four floats that are adjacent in the stage, next_k
 * apart in k. K-major: a vector is one k of four rows, and a warp loads 16 bytes of each of 32 rows. In tiles of half
 * size neighbouring lanes differ in the k that they load: rows of a multiple of 128 bytes have the same k in the same
 * banks of the L1 cache, and it would serve them one after another (up to 5 % of the time). MN-major: a vector is of
 * one k, and its floats are a quarter of the tile apart. Beyond the end of the operand other elements are read instead,
 * or none: their products are not stored. */
template <class Config, int Extent, bool KMajor> struct gk__f32_operand_loader {
  static const int item_count = Extent / 32, next_k = 16 / item_count,
                   lanes = Extent / 4; /* lanes: threads that load one k, MN-major */
  uintptr_t from;
  size_t stride_bytes;    /* bytes between rows (K-major) or between vectors (MN-major) */
  float x[item_count][4]; /* [vector][neighbour] */
  unsigned dest;
  int inside; /* how many of the four are inside the operand */
  GK__D gk__f32_operand_loader(const float *data, size_t leading_dim, size_t first_idx, size_t outer, size_t k0) {
    const int t = static_cast<int>(threadIdx.x % Config::sums::thread_count), warp_id = t / 32, lane_id = t % 32;
    const int quad_idx = (warp_id / item_count) ^ (lane_id % (4 / item_count)); /* the first vector's four k, K-major */
    const int k = KMajor ? quad_idx * 4 + lane_id / 8 : t / lanes,
              vector_idx = KMajor ? warp_id % item_count * 8 + lane_id % 8 : t % lanes;
    const size_t extent_idx = first_idx + static_cast<size_t>(KMajor ? vector_idx * 4 : vector_idx),
                 extent_step = KMajor ? 1 : lanes;
    inside = extent_idx < outer
                 ? static_cast<int>(
                       outer - extent_idx < extent_step * 4 ? (outer - extent_idx + extent_step - 1) / extent_step : 4)
                 : 0;
    const size_t k_idx = k0 + static_cast<size_t>(k), safe_line = inside ? extent_idx : first_idx;
    from = reinterpret_cast<uintptr_t>(data +
                                       (KMajor ? safe_line * leading_dim + k_idx : k_idx * leading_dim + safe_line));
    stride_bytes = (KMajor ? leading_dim : leading_dim * next_k) * sizeof(float);
    dest = static_cast<unsigned>(k * Extent * 4 + vector_idx * 16);
    gk__clear(x);
  }
  /* The last stage ends at the end of k, so it begins earlier. */
  GK__D void shift(int left) {
    from -= static_cast<size_t>(Config::depth - left) * (KMajor ? sizeof(float) : stride_bytes / next_k);
  }
  GK__D void load() {
    uintptr_t address = from;
    GK__UNROLL
    for (int i = 0; i < (KMajor ? 4 : item_count); i++, address += stride_bytes) {
      GK__UNROLL
      for (int j = 0; j < (KMajor ? item_count : 4); j++) {
        const int neighbour = KMajor ? i : j;
        if (neighbour == 0 || neighbour < inside)
          gk__ptx_ld_global_f32(&x[KMajor ? j : i][neighbour],
                                address + (j * (KMajor ? next_k : lanes)) * sizeof(float));
      }
    }
    from = KMajor ? from + Config::depth * sizeof(float) : address;
  }
  GK__D void store_stage(unsigned stage) const {
    GK__UNROLL
    for (int i = 0; i < item_count; i++)
      gk__ptx_st_shared_v4_f32(stage + dest + static_cast<unsigned>(i * next_k * Extent * 4), x[i][0], x[i][1], x[i][2],
                               x[i][3]);
  }
};
/* The producers' loop over one partition. */
template <class Config, bool KMajorA, bool KMajorB, class Args>
GK__D void gk__f32_produce(const Args &p, const gk__work_tile &work, gk__pipeline_state<Config::stage_bytes> pipe,
                           gk__partition_range range) {
  gk__f32_operand_loader<Config, Config::bm, KMajorA> a(p.a + work.batch * p.stride_a, p.lda, work.row0, p.m,
                                                        range.begin);
  gk__f32_operand_loader<Config, Config::bn, KMajorB> b(p.b + work.batch * p.stride_b, p.ldb, work.col0, p.n,
                                                        range.begin);
  for (;;) {
    if (range.depth < Config::depth) {
      a.shift(range.depth);
      b.shift(range.depth);
    }
    a.load();
    b.load();
    gk__ptx_mbarrier_wait_parity(pipe.empty_barrier(), pipe.phase ^ 1);
    a.store_stage(pipe.stage_address());
    b.store_stage(pipe.stage_address() + Config::a_bytes);
    gk__ptx_mbarrier_arrive(pipe.full_barrier());
    range.depth -= Config::depth;
    if (range.depth <= 0) return;
    pipe.advance();
  }
}
/* The consumers' loop over one partition. The fragments of one k are multiplied while those of the next are loaded. */
template <class Config>
GK__D void gk__f32_consume(typename Config::sums &sums, gk__pipeline_state<Config::stage_bytes> pipe, int depth) {
  typedef typename Config::sums sums_of;
  const int stage_depth = Config::depth, straight = 8; /* straight: steps that are unrolled */
  const unsigned t = threadIdx.x, lane_id = t % 32, warp_id = t / 32;
  const unsigned offset_a = (warp_id / sums_of::across * 8 + lane_id / 8) * 16;
  const unsigned offset_b = Config::a_bytes + warp_id % sums_of::across * (sums_of::fours * 128) + lane_id % 8 * 16;
  gk__f32_fragment<sums_of::fours> fragment[2];
  gk__clear(sums.value);
  gk__clear(fragment[1].a); /* so the first multiplication changes no accumulator */
  gk__clear(fragment[1].b);
  GK__UNROLL_BY(1)
  for (int left = depth; left > 0; left -= stage_depth) {
    gk__ptx_mbarrier_wait_parity(pipe.full_barrier(), pipe.phase);
    int todo = left < stage_depth ? left : stage_depth;
    const unsigned skip = static_cast<unsigned>(stage_depth - todo);
    unsigned a = pipe.stage_address() + offset_a + skip * Config::pitch_a,
             b = pipe.stage_address() + offset_b + skip * Config::pitch_b;
    GK__UNROLL_BY(1)
    for (; todo >= straight; todo -= straight) {
      GK__UNROLL
      for (int k = 0; k < straight; k++) {
        fragment[k % 2].load(a + static_cast<unsigned>(k) * Config::pitch_a,
                             b + static_cast<unsigned>(k) * Config::pitch_b);
        fragment[(k + 1) % 2].multiply(sums);
      }
      a += straight * Config::pitch_a;
      b += straight * Config::pitch_b;
    }
    GK__UNROLL_BY(1)
    for (; todo > 0; todo--) {
      fragment[1].multiply(sums);
      fragment[1].load(a, b);
      a += Config::pitch_a;
      b += Config::pitch_b;
    }
    gk__ptx_mbarrier_arrive(pipe.empty_barrier());
    pipe.advance();
  }
  fragment[1].multiply(sums);
}
#endif

/* A block computes one work tile. */
template <class Config, class Args>
__global__ void __launch_bounds__(Config::thread_count, Config::resident)
    gk__f32_hopper_kernel(const __grid_constant__ Args p) {
#ifdef GK__PASS_SM_90A
  typedef typename Config::sums sums_of;
  GK_DYNAMIC_SHARED(float, shared);
  __shared__ unsigned long long bars[2 * Config::stages];
  const gk__pipeline_state<Config::stage_bytes> pipe = {gk__shared_address(shared), gk__shared_address(bars),
                                                        Config::stages, 0, 0};
  if (threadIdx.x == 0) pipe.init_barriers(sums_of::thread_count, sums_of::thread_count);
  __syncthreads();
  gk__wait_for_earlier_work();
  unsigned work_idx = blockIdx.x;
  const gk__work_tile work = gk__work_tile_of<Config>(p, work_idx, p.work_partitions());
  const gk__partition_range range(p, work.partition);
  if (threadIdx.x >= sums_of::thread_count) {
    gk__ptx_setmaxnreg_dec<Config::producer_registers>();
    if (p.trans_a && p.trans_b)
      gk__f32_produce<Config, false, true>(p, work, pipe, range);
    else if (p.trans_a)
      gk__f32_produce<Config, false, false>(p, work, pipe, range);
    else if (p.trans_b)
      gk__f32_produce<Config, true, true>(p, work, pipe, range);
    else
      gk__f32_produce<Config, true, false>(p, work, pipe, range);
    return;
  }
  gk__ptx_setmaxnreg_inc<Config::consumer_registers>();
  sums_of sums(static_cast<int>(threadIdx.x), p.trans_a, !p.trans_b);
  gk__f32_consume<Config>(sums, pipe, range.depth);
  gk__forget(&work_idx); /* the work tile is computed again, instead of being kept in registers during the main loop */
  const gk__work_tile done = gk__work_tile_of<Config>(p, work_idx, p.work_partitions());
  gk__ptx_bar_sync<sums_of::thread_count>(1); /* all consumers have read the operands */
  sums.store_shared(shared, Config::shared_tile::pitch);
  gk__ptx_bar_sync<sums_of::thread_count>(1);
  gk__store_work_tile<typename Config::shared_tile>(shared, p, done);
#else
  GK__EMPTY_KERNEL;
  (void)p;
#endif
}

#endif /* GK__HOPPER_BUILD */

/* --- The planner of strict products ----------------------------------------------------------------------------------
 *
 * One cost model, an estimate of a product's time in clocks, answers two questions: how k is split (gk__plan_split_k),
 * and which tiles compute the product (gk__plan_tiles). The split determines the bits of the result. So it is made for
 * one fixed GPU of 132 multiprocessors, and all estimates are integers, so that every host computes the same one. Tiles
 * do not change the bits, so they depend on the device, too. */

/* Costs of the Hopper kernel of floats, in clocks unless another unit is given. */
struct gk__hopper_costs {
  /* Per 128 multiply-adds, in 1/100 clock. each[i]: of one block while i + 1 blocks share a multiprocessor. after: of a
   * block that has a multiprocessor to itself at the end of a launch of several waves. */
  unsigned each[2], after;
  unsigned begin; /* to begin a block and to end it */
};
/* Costs of the portable kernels of floats, in clocks unless another unit is given, in addition to the multiply-adds. */
struct gk__simt_costs {
  unsigned busy[2];   /* throughput of up to four and up to eight warps, in percent of that of twelve */
  unsigned begin;     /* to begin a block and to end it */
  unsigned groups[2]; /* to reduce a group, in each wave: tiles of up to 2048 elements; more: 1/100 clock for each */
  unsigned once[2];   /* for each product: a constant; 1/100 clock for each element of a tile */
};
/* Costs of the kernels of doubles, in clocks unless another unit is given. */
struct gk__f64_costs {
  unsigned busy;   /* throughput of four warps, in percent of that of eight */
  unsigned item;   /* 1/100 clock for each element of a block's tile */
  unsigned once;   /* for each product */
  unsigned launch; /* of a second kernel, to reduce partials, in addition to gk__reduce_costs */
};
/* All costs. full_tile: Hopper tiles of 128 x 128; half_tile: of half that size. */
struct gk__plan_costs {
  gk__hopper_costs full_tile, half_tile;
  gk__simt_costs floats;
  gk__f64_costs doubles;
  gk__reduce_costs reduce;
};
/* Fitted on an H200 by a random search for choices that lose little and estimates that are close: to 4,000 plans of 218
 * products of floats, those of the bench and random ones, and as many of 235 of doubles, with Hopper's kernels and
 * without. The costs of reducing partials, which all types share, were kept. Of products that a fit does not see, the
 * chosen plan loses 1.6 % of the time to the best measured one for floats, and 2.3 % for doubles. `make bench-refit`
 * fits to half of the products in files of the bench, and prints what the choices lose over either half. */
inline const gk__plan_costs &gk__measured_costs() {
  static const gk__plan_costs costs = {{{129, 243}, 133, 10560},
                                       {{147, 267}, 161, 7561},
                                       {{63, 92}, 910, {550, 27}, {2405, 39}},
                                       {66, 52, 5901, 2449},
                                       gk__measured_reduce_costs()};
  return costs;
}

/* The code that a kernel needs. Each kind also has the kernels of the kinds before it. */
enum gk__hopper_code { GK__ANY_CODE, GK__SM_90_CODE, GK__SM_90A_CODE };
/* A kernel whose blocks compute all partitions of a tile in turn, and its clocks. Fitted on an H200 to 226 batches of
 * floats and 240 of doubles, over which the choices lose 0.6 and 1.0 %. */
struct gk__turn_facts {
  unsigned room;    /* blocks that a multiprocessor holds; 0: the tile has no such kernel */
  unsigned hopper;  /* the code that has the kernel, a gk__hopper_code */
  unsigned percent; /* clocks, in percent of those of this tile if k were not split */
  unsigned once;    /* clocks that a launch adds to them */
};
/* A tile of the planner. The shares were measured on an H200. */
struct gk__tile_facts {
  gk_plan plan;
  size_t row_count, col_count;
  unsigned warps;  /* in one group */
  unsigned groups; /* most groups in a block; a group is a set of warps with a partition of k of its own */
  unsigned room;   /* groups whose registers fit on a multiprocessor */
  size_t bytes;    /* of shared memory that a group of a portable kernel takes */
  unsigned share;  /* multiply-add throughput with enough warps, in percent of the peak; Hopper's floats: not used */
  unsigned hopper; /* the code that has its kernel, a gk__hopper_code */
  const gk__plan_costs *costs;
  gk__turn_facts turn;
  size_t tile_count(size_t m, size_t n) const { return gk__tile_count(m, n, row_count, col_count); }
};
/* How k is split: into `partitions` partitions, each `depth` long but for the last one. */
struct gk__split_k {
  bool thin; /* the kernel of thin products computes C, with 32 sequences of FMAs in each partition */
  unsigned partitions;
  int depth;
  bool operator==(const gk__split_k &other) const {
    return thin == other.thin && partitions == other.partitions && depth == other.depth;
  }
};
/* What the choice of a tile depends on. hopper: the gk__hopper_code whose kernels can compute the product. wanted: the
 * plan that the caller asks for. If the GPU has no Hopper kernels, a tile of theirs that is wanted becomes the portable
 * one of 64 x 128. Any other tile that does not exist becomes the last one of gk__tiles. */
struct gk__plan_query {
  size_t m, n, k, batch;
  gk__split_k order;
  gk_plan wanted;
  int sms;
  unsigned hopper;
  bool can_turn;     /* the type has portable kernels that compute partitions in turn */
  bool is_plain;     /* gk__small_kernel computes its tiles of 32 x 32 (gk__small_kernel_of) */
  size_t smem_limit; /* bytes of shared memory that a block may have */
  bool operator==(const gk__plan_query &other) const {
    return m == other.m && n == other.n && k == other.k && batch == other.batch && wanted == other.wanted &&
           sms == other.sms && hopper == other.hopper && can_turn == other.can_turn && is_plain == other.is_plain &&
           smem_limit == other.smem_limit && order == other.order;
  }
  /* Whether a block reduces all partitions with such a tile. */
  bool in_block(const gk__tile_facts &tile_facts) const {
    return order.partitions == 1 ||
           (order.partitions <= tile_facts.groups && order.partitions * tile_facts.bytes <= smem_limit);
  }
};
inline bool gk__is_hopper_plan(gk_plan plan) { return plan >= GK__PLAN_HOPPER_32_64 && plan <= GK__PLAN_HOPPER_128; }
/* The clocks of a product by the Hopper kernel of floats. */
inline unsigned long long gk__hopper_clocks(const gk__tile_facts &tile_facts, const gk__plan_query &query) {
  const unsigned partitions = query.order.partitions;
  const size_t depth = static_cast<size_t>(query.order.depth), last = query.k - (partitions - 1) * depth;
  const size_t tiles = tile_facts.tile_count(query.m, query.n) * query.batch, sms = static_cast<size_t>(query.sms);
  const size_t tile_items = tile_facts.row_count * tile_facts.col_count;
  const gk__hopper_costs &t = tile_items == 128 * 128 ? tile_facts.costs->full_tile : tile_facts.costs->half_tile;
  const size_t blocks = tiles * partitions, resident = tile_facts.room * sms;
  const size_t full_waves = blocks / resident, rest = blocks % resident;
  const unsigned long long work = tile_items / 128 * (partitions > 1 ? depth : last);
  unsigned long long clocks = full_waves * (work * t.each[tile_facts.room - 1] / 100 + t.begin);
  if (rest > 0) {
    const size_t blocks_per_sm = gk_ceil_div(rest, sms);
    /* The last partitions start last. */
    const size_t rest_depth = partitions > 1 && rest <= tiles ? last : depth;
    const unsigned long long whole =
        work * (full_waves && blocks_per_sm == 1 ? t.after : t.each[blocks_per_sm - 1]) / 100 + t.begin;
    clocks += whole / depth * rest_depth + whole % depth * rest_depth / depth; /* whole * rest_depth may overflow */
  }
  return clocks;
}

/* Throughput of warp_count warps, in percent of that of twelve. A multiprocessor has four schedulers, and the one with
 * the most warps determines the time. */
inline size_t gk__throughput(const gk__simt_costs &costs, size_t warp_count) {
  const size_t slots = gk_round_up(warp_count, size_t(4));
  const size_t percent = slots <= 4 ? costs.busy[0] : slots <= 8 ? costs.busy[1] : 100u;
  return percent * warp_count / slots;
}
/* The same of doubles, which warps multiply on tensor cores: eight warps keep them busy. */
inline size_t gk__throughput(const gk__f64_costs &costs, size_t warp_count) {
  if (warp_count <= 4) return warp_count * costs.busy / 4;
  return warp_count < 8 ? costs.busy + (warp_count - 4) * (100 - costs.busy) / 4 : 100;
}
/* The blocks of a product by a portable kernel, or by a kernel of doubles. */
struct gk__block_load {
  unsigned groups;                /* in a block */
  size_t warps;                   /* in a block */
  size_t resident, blocks_per_sm; /* blocks that a multiprocessor holds at once; that it runs in all */
  unsigned long long work;        /* clocks of a block's multiply-adds, while the multiprocessor is busy */
  gk__block_load(const gk__tile_facts &tile_facts, const gk__plan_query &query) {
    const bool in_block = query.in_block(tile_facts);
    const size_t tiles = tile_facts.tile_count(query.m, query.n) * query.batch;
    groups = in_block ? query.order.partitions : 1;
    resident = tile_facts.room / groups > 0 ? tile_facts.room / groups : 1;
    blocks_per_sm = gk_ceil_div(tiles * (in_block ? 1 : query.order.partitions), static_cast<size_t>(query.sms));
    warps = groups * tile_facts.warps;
    work = tile_facts.row_count * tile_facts.col_count * groups * static_cast<size_t>(query.order.depth) * 100 /
           (128 * tile_facts.share);
  }
  /* The clocks of a multiprocessor. The last blocks are a term of their own: they have it to themselves. */
  template <class Costs> unsigned long long clocks(const Costs &costs) const {
    const size_t rest = blocks_per_sm % resident;
    unsigned long long sum = (blocks_per_sm - rest) * work * 100 / gk__throughput(costs, resident * warps);
    if (rest) sum += rest * work * 100 / gk__throughput(costs, rest * warps);
    return sum;
  }
};
/* The clocks of a product by the portable kernels of floats, approximately: those of its blocks, and to reduce partials
 * of groups in them. */
inline unsigned long long gk__simt_clocks(const gk__tile_facts &tile_facts, const gk__plan_query &query) {
  const gk__simt_costs &costs = tile_facts.costs->floats;
  const gk__block_load load(tile_facts, query);
  const size_t items = tile_facts.row_count * tile_facts.col_count;
  unsigned long long clocks = load.clocks(costs) + load.blocks_per_sm * costs.begin;
  const size_t waves = gk_ceil_div(load.blocks_per_sm, load.resident);
  if (load.groups > 1) clocks += waves * load.groups * (items > 2048 ? items * costs.groups[1] / 100 : costs.groups[0]);
  clocks += costs.once[0] + items * costs.once[1] / 100;
  /* More blocks of gk__small_kernel fit on a multiprocessor: 603 products of 64 x 16 x 48 take 6.6 us, by tiles of 64 x
   * 64 10.8 (H200). The costs were fitted to single products, whose times are those of that kernel. */
  const bool is_small =
      query.is_plain && query.batch > 1 && tile_facts.plan == GK__PLAN_TILE_32 && load.blocks_per_sm > tile_facts.room;
  return is_small ? clocks * 3 / 4 : clocks;
}

template <class Acc> struct gk__tiles {
  static const int item_count = 6;
  /* The shortest k that is split. Small products come in batches: 10,000 of 128^3 are at 1.24, 1.13 and 0.94 of cuBLAS
   * with 1, 2 and 4 partitions (H200). A larger one gains: 550 x 222 x 123 takes 0.6 of the time. */
  static size_t least_k(size_t m, size_t n) { return m * n <= 128 * 128 ? 129 : 64; }
  static size_t least_depth() { return 36; } /* the shortest partition */
  static gk__tile_facts facts(int i) {
    const gk__plan_costs &costs = gk__measured_costs();
    const gk__tile_facts all[] = {
        {GK__PLAN_HOPPER_128, 128, 128, 4, 1, 2, 0, 100, GK__SM_90A_CODE, &costs, {}},
        {GK__PLAN_HOPPER_64_128, 64, 128, 4, 1, 2, 0, 100, GK__SM_90A_CODE, &costs, {}},
        {GK__PLAN_HOPPER_128_64, 128, 64, 4, 1, 2, 0, 100, GK__SM_90A_CODE, &costs, {}},
        {GK__PLAN_TILE_64_128, 64, 128, 4, 3, 3, 38400, 71, GK__ANY_CODE, &costs, {3, GK__ANY_CODE, 84, 7000}},
        {GK__PLAN_TILE_64, 64, 64, 2, 4, 6, 26112, 66, GK__ANY_CODE, &costs, {}},
        {GK__PLAN_TILE_32, 32, 32, 2, 8, 9, 13824, 43, GK__ANY_CODE, &costs, {}}};
    return all[i];
  }
  static unsigned long long kernel_clocks(const gk__tile_facts &tile_facts, const gk__plan_query &query) {
    return tile_facts.hopper ? gk__hopper_clocks(tile_facts, query) : gk__simt_clocks(tile_facts, query);
  }
};
template <> struct gk__tiles<double> {
  static const int item_count = 6;
  /* A larger product with a short k has tiles enough: 288 x 4192 x 64 takes 1.5 times as long with two partitions. Over
   * 1,197 products that is 0.3 % with Hopper's kernels, and 0.1 % without (H100). */
  static size_t least_k(size_t m, size_t n) { return m * n <= 128 * 1024 ? 36 : 200; }
  static size_t least_depth() { return 26; }
  static gk__tile_facts facts(int i) {
    const gk__plan_costs &costs = gk__measured_costs();
    const gk__tile_facts all[] = {
        {GK__PLAN_HOPPER_64_128, 64, 128, 8, 1, 1, 0, 98, GK__SM_90_CODE, &costs, {1, GK__SM_90A_CODE, 82, 500}},
        {GK__PLAN_HOPPER_64, 64, 64, 4, 1, 2, 0, 91, GK__SM_90A_CODE, &costs, {}},
        {GK__PLAN_HOPPER_32_64, 32, 64, 4, 1, 2, 0, 69, GK__SM_90_CODE, &costs, {2, GK__SM_90_CODE, 73, 2800}},
        {GK__PLAN_TILE_64_128, 64, 128, 8, 1, 1, 92160, 65, GK__ANY_CODE, &costs, {}},
        {GK__PLAN_TILE_32, 32, 32, 2, 4, 7, 30720, 51, GK__ANY_CODE, &costs, {}},
        {GK__PLAN_TILE_32_64, 32, 64, 4, 4, 4, 46080, 64, GK__ANY_CODE, &costs, {3, GK__ANY_CODE, 78, 2800}}};
    return all[i];
  }
  static unsigned long long kernel_clocks(const gk__tile_facts &tile_facts, const gk__plan_query &query) {
    const gk__block_load load(tile_facts, query);
    const gk__f64_costs &costs = tile_facts.costs->doubles;
    const size_t items = load.blocks_per_sm * tile_facts.row_count * tile_facts.col_count;
    const bool second_launch = load.groups == 1 && query.order.partitions > 1;
    return load.clocks(costs) + items * costs.item / 100 + costs.once + (second_launch ? costs.launch : 0);
  }
};
/* The clocks of a product with such a tile, and of the reduction of its partials. */
template <class Acc> unsigned long long gk__clocks(const gk__tile_facts &tile_facts, const gk__plan_query &query) {
  return gk__tiles<Acc>::kernel_clocks(tile_facts, query) +
         gk__reduction_clocks(tile_facts.costs->reduce, query.m, query.n, query.batch,
                              query.in_block(tile_facts) ? 1 : query.order.partitions, sizeof(Acc));
}

/* k > 0 in partitions of whole steps of `quantum`, but for the last one; in fewer than wanted if these cover k. */
inline gk__split_k gk__split_evenly(size_t k, size_t partitions, size_t quantum) {
  const size_t depth = gk_round_up(gk_ceil_div(k, partitions), quantum);
  return {false, static_cast<unsigned>(gk_ceil_div(k, depth)), static_cast<int>(depth)};
}
/* The number of partitions with which both the portable tiles alone and all tiles, Hopper's included, take about as
 * little time as they can: a split must serve GPUs with and without Hopper's kernels. */
template <class Acc> unsigned gk__best_partitions(size_t m, size_t n, size_t k, size_t quantum) {
  typedef gk__tiles<Acc> tiles;
  gk__plan_query query = {
      m, n, k, 1, gk__split_k(), GK_PLAN_AUTO, 132, GK__SM_90A_CODE, false, false, gk__hopper_smem - gk__block_reserve};
  unsigned long long clocks[2][GK__MATMUL_PARTITIONS + 1], least[2] = {~0ull, ~0ull}; /* [0]: portable; [1]: all */
  const size_t limit = k / tiles::least_depth();
  const unsigned most = limit < GK__MATMUL_PARTITIONS ? static_cast<unsigned>(limit) : GK__MATMUL_PARTITIONS;
  for (unsigned s = 1; s <= most; s++) {
    query.order = gk__split_evenly(k, s, quantum);
    clocks[0][s] = clocks[1][s] = ~0ull;
    if (query.order.partitions < s || !gk__partials_fit<Acc>(m, n, s)) continue;
    for (int i = 0; i < tiles::item_count; i++) {
      const gk__tile_facts tile_facts = tiles::facts(i);
      const unsigned long long estimate = gk__clocks<Acc>(tile_facts, query);
      for (int set = tile_facts.hopper ? 1 : 0; set < 2; set++)
        if (estimate < clocks[set][s]) clocks[set][s] = estimate;
    }
    for (int set = 0; set < 2; set++)
      if (clocks[set][s] < least[set]) least[set] = clocks[set][s];
  }
  unsigned partitions = 1;
  unsigned long long best = ~0ull;
  for (unsigned s = 1; s <= most; s++) {
    if (clocks[0][s] == ~0ull) continue;
    const unsigned long long cost = clocks[0][s] * 1024 / least[0] + clocks[1][s] * 1024 / least[1];
    if (cost >= best) continue;
    best = cost;
    partitions = s;
  }
  return partitions;
}
/* Whether the kernel of thin products is to compute a product. */
inline bool gk__is_thin(size_t m, size_t n, size_t k) { return (m < n ? m : n) <= GK__THIN_ROWS && k >= 128; }
/* How k is split: a function of m, n, k and the type alone. */
template <class Acc> gk__split_k gk__plan_split_k(size_t m, size_t n, size_t k) {
  const size_t short_dim = m < n ? m : n, long_dim = m < n ? n : m, longest = size_t(1) << 30;
  size_t partitions = 1, quantum = 16;
  const bool thin = short_dim > 0 && gk__is_thin(m, n, k);
  if (thin) {
    const size_t blocks = gk__tile_count(long_dim, GK__THIN_COLS), limit = gk__tile_count(k, 512);
    quantum = 128;
    partitions = blocks < 200 ? gk_ceil_div(size_t(264), blocks) : 1; /* enough for 264 blocks */
    if (partitions > limit) partitions = limit;
  } else if (short_dim > 0 && gk__tile_count(m, n, 128, 128) < 2048 && k >= gk__tiles<Acc>::least_k(m, n)) {
    partitions = gk__best_partitions<Acc>(m, n, k < longest ? k : longest - 1, quantum);
  }
  const size_t fewest = gk_ceil_div(k, longest);
  if (partitions < fewest) partitions = fewest;
  gk__split_k order = {false, 1, 1};
  if (k > 0) order = gk__split_evenly(k, partitions, quantum);
  order.thin = thin;
  return order;
}

/* A tile, and the clocks of a product with it. in_turn: its block computes all partitions. */
struct gk__tile_choice {
  gk__tile_facts tile_facts;
  unsigned long long cost;
  bool in_turn;
};
/* The fastest tile for a given split. Blocks compute all partitions in turn only in batches, whose products have the
 * bits that they have alone, but need no partitions to fill a GPU. By groups or blocks each partition costs the start
 * and the end of a main loop: 1000 products of 256^3 take 1.5 times as long (H200). */
template <class Acc> gk__tile_choice gk__plan_tile(gk__plan_query query) {
  gk__tile_choice best = {gk__tiles<Acc>::facts(0), ~0ull, false};
  const size_t max_batch = size_t(1) << 20, longest = size_t(1) << 24; /* longest: these kernels count k in an int */
  if (query.batch > max_batch) query.batch = max_batch;
  const gk_plan wanted = gk__is_hopper_plan(query.wanted) && !query.hopper ? GK__PLAN_TILE_64_128 : query.wanted;
  const bool turns =
      query.batch > 1 && query.order.partitions > 1 && query.wanted == GK_PLAN_AUTO && query.k <= longest;
  gk__plan_query in_turn = query;
  in_turn.order = {false, 1, static_cast<int>(query.k)};
  const auto consider = [&](const gk__tile_facts &tile_facts, unsigned long long clocks, bool turn) {
    if (clocks < best.cost) best = {tile_facts, clocks, turn};
  };
  for (int i = 0; i < gk__tiles<Acc>::item_count; i++) {
    gk__tile_facts tile_facts = gk__tiles<Acc>::facts(i);
    const bool fallback = i == gk__tiles<Acc>::item_count - 1 && best.cost == ~0ull;
    if (tile_facts.hopper > query.hopper) continue;
    if (wanted != tile_facts.plan && wanted != GK_PLAN_AUTO && !fallback) continue;
    consider(tile_facts, gk__clocks<Acc>(tile_facts, query), false);
    const gk__turn_facts &turn = tile_facts.turn;
    if (!turns || turn.room == 0 || turn.hopper > query.hopper) continue;
    const size_t turn_bytes = tile_facts.bytes + tile_facts.row_count * tile_facts.col_count * sizeof(Acc);
    if (!turn.hopper && (!query.can_turn || query.smem_limit < 2 * turn_bytes)) continue;
    tile_facts.room = turn.room;
    consider(tile_facts, gk__clocks<Acc>(tile_facts, in_turn) * turn.percent / 100 + turn.once, true);
  }
  return best;
}
/* The fastest tile; or two, if it is faster to cut the product after whole waves of a tile. A panel has the partitions
 * of k of the whole product, so its bits are the same. */
template <class Acc> gk__cut_plan<gk__tile_choice> gk__plan_tiles(const gk__plan_query &query) {
  typedef gk__tiles<Acc> tiles;
  const unsigned long long launch_clocks = 3500;
  gk__cut_plan<gk__tile_choice> cut(query.m, query.n, gk__plan_tile<Acc>(query));
  if (query.batch != 1 || query.wanted != GK_PLAN_AUTO) return cut;
  for (int i = 0; i < tiles::item_count; i++) {
    const gk__tile_facts tile_facts = tiles::facts(i);
    if (tile_facts.hopper <= query.hopper)
      cut.cut_after_waves(query, tile_facts.row_count, tile_facts.col_count,
                          static_cast<size_t>(query.sms) * tile_facts.room / query.order.partitions, launch_clocks,
                          gk__plan_tile<Acc>);
  }
  return cut;
}

template <class Acc> gk__split_k gk__cached_split_k(size_t m, size_t n, size_t k) {
  return gk__cached_plan(gk__plan_query{m, n, k, 1, gk__split_k(), GK_PLAN_AUTO, 0, GK__ANY_CODE, false, false, 0},
                         [](const gk__plan_query &query) { return gk__plan_split_k<Acc>(query.m, query.n, query.k); });
}
template <class Acc> gk__cut_plan<gk__tile_choice> gk__cached_tiles(const gk__plan_query &query) {
  return gk__cached_plan(query, [](const gk__plan_query &asked) { return gk__plan_tiles<Acc>(asked); });
}

/* The bytes of the ring of a group. */
template <class Config, class Args> size_t gk__ring_bytes() {
  typedef typename Args::acc_type Acc;
  return sizeof(Acc) * gk__operand_loaders<Config, typename Args::item_type, Acc>::items * Config::stages;
}
/* The portable kernel with this tile. Half types have one kernel for any number of groups. */
template <class Config, class Args> gk__tile_kernel<Args> gk__portable_kernel() {
  const bool only_one = Config::groups == 1 || gk__half_traits<typename Args::item_type>::is_half;
  typedef typename std::conditional<only_one, Config, gk__one_group<Config>>::type one_group;
  return {GK__KERNEL(gk__matmul_kernel<Config, Args>),
          GK__KERNEL(gk__matmul_kernel<one_group, Args>),
          Config::bm,
          Config::bn,
          Config::groups,
          Config::sums::thread_count,
          gk__ring_bytes<Config, Args>(),
          0};
}
/* A thin product is one row or column of tiles. */
template <class Args> cudaError_t gk__matmul_thin(const Args &p, gk__product_call *call) {
  typedef gk__thin_shape<typename Args::item_type, 1> one_row;
  typedef gk__thin_shape<typename Args::item_type, GK__THIN_ROWS> more_rows;
  const bool transposed = p.m > p.n, has_one = p.m == 1 || p.n == 1;
  const size_t block_cols = one_row::col_count;
  const size_t ring_bytes = has_one ? one_row::ring_bytes : more_rows::ring_bytes;
  const size_t acc_bytes =
      GK__THIN_K_GROUPS * (has_one ? 1 : GK__THIN_ROWS) * block_cols * sizeof(typename Args::acc_type);
  const auto kernel = has_one ? GK__KERNEL(gk__thin_kernel<1, Args>) : GK__KERNEL(gk__thin_kernel<GK__THIN_ROWS, Args>);
  const auto launch = [=](const Args &sub_batch, size_t blocks) -> cudaError_t {
    gk__thin_args<Args> thin(sub_batch, transposed);
    thin.in_ring = ring_bytes && call->gpu.has_smem(ring_bytes);
    return gk__launch_product(*call, kernel, blocks, GK__THIN_THREADS,
                              thin.in_ring && ring_bytes > acc_bytes ? ring_bytes : acc_bytes, thin);
  };
  return gk__launch_panels(p, transposed ? block_cols : p.m, transposed ? p.n : block_cols, p.partitions, call, launch);
}

/* Configurations of the portable kernel: blocks of threads that compute FMAs, Side x Side elements each, and blocks of
 * warps that multiply doubles on tensor cores. */
template <int TileRows, int TileCols, int Side, int Groups>
struct gk__fma_block : gk__block_config<gk__accumulators<TileRows, TileCols, Side>, TileRows, TileCols, Groups> {
  typedef gk__accumulators<TileRows, TileCols, Side> sums;
  /* Through a tile in shared memory, in the place of the operands. A second epilogue, which stores aligned rows of C
   * from registers, would take 0.99 of the time of 400 products whose rows are aligned (H200). */
  template <class Args>
  static GK__D void store(const sums &acc, float *c_tile, const Args &p, const gk__work_tile &work, int first_idx,
                          int vector_count) {
    typedef gk__shared_tile<TileRows, TileCols, sums::thread_count> shared_tile;
    typedef gk__vector<float, sums::vector_width> vector;
    static_assert(shared_tile::bytes <= gk__operand_loaders<gk__fma_block, typename Args::item_type, float>::items *
                                            gk__fma_block::stages * static_cast<int>(sizeof(float)),
                  "the tile fits into the ring of the operands");
    __syncthreads();
    GK__UNROLL
    for (int r = 0; r < sums::vectors; r++) {
      float *const dest = c_tile + acc.row_idx(first_idx + r) * shared_tile::pitch + acc.col_idx(first_idx + r);
      if (r < vector_count) *reinterpret_cast<vector *>(dest) = *reinterpret_cast<const vector *>(acc.value[r]);
    }
    __syncthreads();
    if (threadIdx.x < sums::thread_count) gk__store_work_tile<shared_tile>(c_tile, p, work);
  }
};
template <int TileRows, int TileCols, int WarpRows, int Groups>
struct gk__mma_f64_block
    : gk__block_config<gk__accumulators_f64<TileRows, TileCols, 16, WarpRows, 32, 8>, TileRows, TileCols, Groups> {};

/* gk__small_kernel, if it computes the tiles of 32 x 32 of a product; else no kernel. */
template <class Args> gk__kernel<Args> gk__small_kernel_of(const Args &) { return gk__kernel<Args>(); }
template <class Func>
gk__kernel<gk__matmul_args<float, float, float, Func>>
gk__small_kernel_of(const gk__matmul_args<float, float, float, Func> &p) {
  typedef gk__matmul_args<float, float, float, Func> args;
  const bool is_plain = !p.trans_a && !p.trans_b && p.partitions == 1;
  return is_plain ? GK__KERNEL(gk__small_kernel<args>) : gk__kernel<args>();
}
/* The portable kernel that a plan names. The last argument is of the accumulators' type. */
template <class Args>
gk__tile_kernel<Args> gk__portable_kernel_of(const Args &p, gk_plan plan, const gk__matmul_gpu &, float) {
  /* Half types take the tile of 64 x 128 for this one, too: large strict products of them are rare. */
  const bool is_half = gk__half_traits<typename Args::item_type>::is_half;
  typedef gk__fma_block<64, 128, 8, 3> wide_block;
  typedef typename std::conditional<is_half, wide_block, gk__fma_block<64, 64, 8, 4>>::type square_block;
  if (plan == GK__PLAN_TILE_32) {
    gk__tile_kernel<Args> tile_kernel = gk__portable_kernel<gk__fma_block<32, 32, 4, 8>, Args>();
    const gk__kernel<Args> small_kernel = gk__small_kernel_of(p);
    if (!small_kernel.function) return tile_kernel;
    tile_kernel.one_group = small_kernel;
    tile_kernel.ring_bytes = gk__ring_bytes<gk__small_block, Args>();
    return tile_kernel;
  }
  if (plan == GK__PLAN_TILE_64) return gk__portable_kernel<square_block, Args>();
  return gk__portable_kernel<wide_block, Args>();
}
template <class Args>
gk__tile_kernel<Args> gk__portable_kernel_of(const Args &, gk_plan plan, const gk__matmul_gpu &gpu, double) {
  typedef gk__mma_f64_block<64, 128, 32, 1> wide;
  /* Its blocks have 90 KB of shared memory; those of sm_75 have 64 KB at most. Smaller tiles give the same bits. */
  const bool has_wide = gpu.has_smem(gk__ring_bytes<wide, Args>());
  /* Warps of 16 rows: with 32 the tile of 32 x 64 takes 1.15 to 1.34 times as long. The best portable plans of 932
   * products take 1.04 times as long without the tile of 32 x 32, 1.05 without 32 x 64, 1.01 without 64 x 128 (H200).
   */
  if (plan == GK__PLAN_TILE_32) return gk__portable_kernel<gk__mma_f64_block<32, 32, 16, 4>, Args>();
  if (plan == GK__PLAN_TILE_64_128 && has_wide) return gk__portable_kernel<wide, Args>();
  return gk__portable_kernel<gk__mma_f64_block<32, 64, 16, 4>, Args>();
}

/* --- The planner of the tensor cores ---------------------------------------------------------------------------------
 *
 * Chooses the kernel of a product and the preparation of its operands: a function of the call and of a few facts about
 * the GPU. */

struct gk__product {
  size_t item_bytes; /* of an element of A and B, which says the type: 2 for both half types */
  size_t m, n, k, batch;
  gk__product_operand a, b;
  gk_precision precision;
  gk_plan plan;
  bool is_half_type() const { return item_bytes == 2; }
  bool is_float() const { return item_bytes == 4; }
  bool in_terms() const { return precision == GK_PRECISION_EMULATED; } /* elements are split into bf16 terms */
  bool is_thin() const { return gk__is_thin(m, n, k); }
};
/* A prepared copy of an operand, in elements of `bytes` bytes; term and matrix are in bytes. An operand that is split
 * into bf16 terms has them one after the other. */
struct gk__operand_copy {
  bool wanted, transposed, one; /* transposed: in the other storage order; one: a single copy for the whole batch */
  bool k_major;                 /* how the kernel reads the operand, copied or not */
  unsigned split;               /* more than 1: not copied, but read as so many strided matrices */
  size_t row_count, col_count;  /* of what is copied */
  size_t bytes, leading_dim, term, matrix;
  /* Bytes of the copies of so many products. */
  size_t work_bytes(size_t products) const { return wanted ? matrix * (one ? 1 : products) : 0; }
};
inline bool gk__is_tensor(gk_plan plan) { return plan == GK_PLAN_MMA || plan == GK_PLAN_WGMMA; }
struct gk__product_plan {
  gk_plan plan;           /* GK_PLAN_MMA or _WGMMA; else what the caller asked of the strict kernels */
  gk_precision precision; /* GK_PRECISION_STRICT, or that of the tensor-core kernel */
  gk__operand_copy a, b;  /* none for the strict kernels and for small products */
  bool is_small;          /* by gk__small_mma_kernel */
  const char *refused;    /* NULL, or the reason of an error */
  bool tensor() const { return gk__is_tensor(plan); }
  /* Bytes of the work area of so many products. */
  size_t work_bytes(size_t products) const {
    return a.wanted || b.wanted ? GK__WORK_EXTRA + a.work_bytes(products) + b.work_bytes(products) : 0;
  }
};

/* The bytes of a copy, and its leading dimension. Rows are padded to 16 bytes, long ones to cache lines of 128 bytes,
 * so that a box of TMA reads whole lines. The result saturates at a limit, which is far above the memory of any device
 * and low enough that the sum of a few results does not overflow. */
static const size_t gk__max_padded_bytes = static_cast<size_t>(-1) / 64;
inline size_t gk__padded_bytes(size_t row_count, size_t *leading_dim, size_t col_count, size_t bytes) {
  const size_t limit = gk__max_padded_bytes, unit = col_count >= 512 / bytes ? 128 : 16;
  *leading_dim = col_count < limit ? gk_round_up(col_count, unit / bytes) : limit;
  if (row_count >= limit / bytes / *leading_dim) return limit;
  return row_count * *leading_dim * bytes;
}
/* Which copy of an operand a kernel of tensor cores needs. It loads 16 bytes at once. TMA reads an additional sector of
 * a row that does not begin at a multiple of 32 bytes, but a copy takes longer: 3000 x 3000 x 3000 of half types takes
 * 1.1 times as long with one (H200). */
inline gk__operand_copy gk__plan_copy(const gk__product &p, const gk__product_operand &from, size_t outer,
                                      bool transposed) {
  gk__operand_copy dest = gk__operand_copy();
  dest.one = p.batch == 1 || from.stride == 0;
  dest.transposed = transposed;
  dest.k_major = from.k_major != transposed;
  dest.split = 1;
  dest.bytes = p.in_terms() ? 2 : p.item_bytes;
  const size_t align_items = 16 / dest.bytes;
  dest.wanted = p.in_terms() || transposed || from.address % 16 || from.leading_dim % align_items ||
                (!dest.one && from.stride % align_items);
  dest.row_count = from.k_major ? outer : p.k;
  dest.col_count = from.k_major ? p.k : outer;
  dest.term = gk__padded_bytes(dest.k_major ? outer : p.k, &dest.leading_dim, dest.k_major ? p.k : outer, dest.bytes);
  dest.matrix = dest.term * (p.in_terms() ? size_t(GK__BF16_TERMS) : 1);
  return dest;
}
/* The number of matrices of every split-th row as which TMA reads a K-major A that is not aligned: their rows begin at
 * a sector, or less than a sector after one and are read from there. 1: A is copied. Each matrix has its own tiles, of
 * which the last ones are partly empty; this costs less than a copy as long as they are few. */
inline unsigned gk__plan_strided_reads(const gk__product &p) {
  const size_t bytes = p.item_bytes, tile_rows = 128;
  if (!p.a.k_major || p.a.leading_dim >= size_t(1) << 27 || (p.batch > 1 && p.a.stride * bytes % 32)) return 1;
  size_t split = 2;
  while (p.a.leading_dim * bytes * split % 32) split *= 2;
  if (split * gk__tile_count(gk_ceil_div(p.m, split), p.n, 64, 64) > gk__wgmma_max_tiles / p.batch) return 1;
  const size_t extra_rows = split * gk_round_up(gk_ceil_div(p.m, split), tile_rows) - gk_round_up(p.m, tile_rows);
  const double affordable = 200.0 * static_cast<double>(p.m); /* extra multiply-adds for each k */
  return static_cast<double>(extra_rows) * static_cast<double>(p.n) <= affordable ? static_cast<unsigned>(split) : 1;
}

/* Whether sizes and strides are within the limits of tensor maps, and tiles can be numbered in 32 bits. */
inline bool gk__wgmma_fits(const gk__product &p) {
  const size_t max_dim = 0x7fffffff, max_stride = (size_t(1) << 40) / 8; /* elements, padding included */
  return p.m <= max_dim && p.n <= max_dim && p.k <= max_dim && p.a.leading_dim < max_stride &&
         p.b.leading_dim < max_stride && (p.batch == 1 || (p.a.stride < max_stride && p.b.stride < max_stride)) &&
         gk__tile_count(p.m, p.n, 64, 64) <= gk__wgmma_max_tiles / p.batch;
}

/* Whether the call asks for tensor cores by its precision: half types do by default, floats by name. */
inline bool gk__asks_for_tensor(const gk__product &p) {
  return p.is_half_type() ? p.precision == GK_PRECISION_DEFAULT : p.precision >= GK_PRECISION_TF32;
}
/* NULL, or why the precision and the plan of a call are an error on this GPU. */
inline const char *gk__refuse_product(const gk__product &p, const gk__matmul_gpu &gpu) {
  const bool is_half_type = p.is_half_type(), forced = gk__is_tensor(p.plan);
  const bool asked = gk__asks_for_tensor(p), tiled = p.plan != GK_PLAN_AUTO && !forced;
  if (p.precision >= GK_PRECISION_TF32 && !p.is_float())
    return is_half_type ? "this precision is one of float; half types have the tensor cores by default"
                        : "this precision is one of float, and double has none but the strict one";
  if (forced && !asked)
    return "this plan is one of tensor cores, which half types have by default, floats by GK_PRECISION_TF32 or "
           "_EMULATED, and doubles and GK_PRECISION_STRICT not at all";
  if (tiled && asked && !is_half_type)
    return "this plan is one of strict products: with this precision take GK_PLAN_AUTO, _MMA or _WGMMA";
  if (forced && gpu.tensor_plan == GK_PLAN_AUTO)
    return "this plan needs tensor cores for the type: an sm_80 GPU (f16: sm_75), and code for it in the program";
  if (p.plan == GK_PLAN_WGMMA && gpu.tensor_plan != GK_PLAN_WGMMA)
    return "this plan needs an sm_90 GPU, and code for sm_90a in the program";
  if (p.plan == GK_PLAN_MMA && gpu.tensor_plan != GK_PLAN_MMA)
    return "this plan needs other code than that for sm_90a, which has wgmma instead: build the program for sm_90";
  if (p.plan == GK_PLAN_WGMMA && !gk__wgmma_fits(p))
    return "this plan is for m, n and k below 2^31, rows and matrices less than 2^37 elements apart, and fewer than "
           "2^28 tiles of 64 x 64";
  return NULL;
}
/* Whether gk__wgmma_kernel or gk__mma_kernel is faster than the strict kernels. A thin product reads its large operand
 * once, so it gains nothing, except where TMA reads a large operand faster than threads do. Operand preparation and its
 * launches take as long as a small or a thin product (gk__plan_product counts it); splitting an element into bf16 terms
 * takes as long as 128 (wgmma) or 160 strict multiply-adds. Of 150 products of 4e7 to 3e9 multiply-adds, the choices
 * between emulated and strict take 0.5 % (wgmma) and 0.2 % (mma.sync) longer than the better one, at most 1.24 times as
 * long. With a k of 32, 33 and 40, by wgmma, three of 3e8 to 5e8 take 1.06, 1.38 and 1.13 times as long as strict ones
 * (H200).
 *
 * In a batch the multiply-adds of all products count. A tile of 64 x 64 takes as long if a product leaves most of it
 * empty, so tiny ones of tf32 are slower: those below 40^3 (mma.sync: 45^3), and up to 64^3 if wgmma needs copies. Of
 * 1000 products of 40^3 to 64^3 wgmma takes 0.39 to 0.82 of the time of the strict kernels, but 1.3 to 1.45 with
 * copies; of half types, 16^3 to 32^3, 0.92 to 0.65 (H200). */
inline bool gk__tensor_pays(const gk__product &p, const gk__matmul_gpu &gpu) {
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double volume = m * n * k, all = volume * static_cast<double>(p.batch);
  const bool by_wgmma = gpu.tensor_plan == GK_PLAN_WGMMA;
  if (p.is_half_type()) {
    if (all < 1e6) return false;
    if (!p.is_thin() || (p.batch >= 64 && p.m > 1 && p.n > 1)) return true;
    return by_wgmma && p.a.k_major && p.m < p.n && volume >= 1.6e7 * m;
  }
  if (p.is_thin()) return false;
  if (p.precision == GK_PRECISION_TF32) return volume >= 1.5e6 || (all >= 1e7 && volume >= (by_wgmma ? 6e4 : 9e4));
  if (by_wgmma) return all >= 2e8 && m * n >= 128 * (m + n) && k >= 48;
  return all >= 3.5e8 && m * n >= 160 * (m + n) && k >= 96;
}

/* Whether gk__small_mma_kernel takes less time than the others. aligned: tensor cores read both operands as they are.
 * copies: they read copies, or the alternative is a strict kernel. Each tile of the small kernel reads its rows and
 * columns from the caches by itself, so it is for few steps on each multiprocessor. If a batch has products of few
 * tiles, it is for more steps, because other kernels leave most of a tile empty. Without it, random products of up to
 * 6e7 multiply-adds take 1.58 times as long (half types; tf32: 1.34), multiples of 16 1.16 (1.21), all with edges from
 * 32 to 8192 1.17 (1.13), and batches with edges from 16 to 130 1.15 (1.06; H200, CUDA graphs).
 *
 * Where it saves a copy, a launch of its own, it takes as long at 60 steps in a graph, but in a stream, where the
 * launches take longer than the kernels, at 140 (half types; tf32: 70 and 95). At 72 to 84 steps 111 products of half
 * types take 1.15 times as long in a graph, and 0.71 in a stream (tf32: 1.05 and 0.9). Where A is split, and nothing is
 * copied, it takes 1.1 times as long from 24 steps on, and 1.5 times at 60 (half types, in a graph). */
inline bool gk__is_small(const gk__product &p, int sms, bool aligned, bool copies) {
  typedef gk__small_mma_tile shape;
  typedef gk__small_block strict_shape; /* of gk__small_kernel, which keeps full tiles of floats */
  const size_t most_k = aligned ? 512 : 1536;
  if (p.in_terms() || p.is_thin() || p.k > most_k) return false;
  const size_t tiles = gk__tile_count(p.m, p.n, shape::bm, shape::bn), steps = gk__tile_count(p.k, shape::depth);
  const bool full = tiles == 4 * gk__tile_count(p.m, p.n, strict_shape::bm, strict_shape::bn);
  const bool natural = p.a.k_major && !p.b.k_major, by_strict = p.is_float() && natural && full;
  const size_t aligned_steps = p.is_half_type() ? 2 : 8, few_tiles = 8;
  const size_t most_steps = aligned ? aligned_steps : tiles > few_tiles ? (copies ? 80 : 24) : by_strict ? 40 : 300;
  return tiles * p.batch * steps <= most_steps * static_cast<size_t>(sms);
}

/* Whether tensor cores with the copies that they need are faster than kernels without. A copy is a launch of its own,
 * so the product has to be large enough. m and n are rounded up to multiples of 32, because the other kernels compute
 * whole tiles, too. Large copies do not stay in L2: with them a narrow product of tf32 takes longer than a strict one
 * (6378 x 52 x 2598: 1.2 to 1.5 times as long, by storage order; 6378 x 77 x 2598: 0.8; H200). */
inline bool gk__copy_pays(const gk__product &p, const gk__product_plan &plan, bool by_tma) {
  const size_t narrow = 64, large_copy = size_t(20) << 20;
  if (p.precision == GK_PRECISION_TF32 && (p.m <= narrow || p.n <= narrow) && plan.work_bytes(1) >= large_copy)
    return false;
  const double each = 32 * 32 * static_cast<double>(gk__tile_count(p.m, p.n, 32, 32)) * static_cast<double>(p.k);
  if (by_tma && each < (p.is_half_type() ? 3.3e4 : 3e5)) return false; /* in a batch: see gk__tensor_pays */
  const double least_half = by_tma ? 1e7 : 2e7, least_tf32 = by_tma ? 3.5e7 : 5e7;
  return each * static_cast<double>(p.batch) >= (p.is_half_type() ? least_half : least_tf32);
}
/* Plans how the kernel of plan->plan reads the operands. Returns whether one would be copied if A were not split. */
inline bool gk__plan_operands(const gk__product &p, gk__product_plan *plan) {
  const bool by_tma = plan->plan == GK_PLAN_WGMMA;
  const size_t large_a = size_t(6) << 20; /* bytes */
  /* For tf32, wgmma needs one of the operands K-major: the smaller one is transposed. mma.sync takes the operands of
   * emulated fp32, which are copied anyway, K-major: its kernel then has half as many instructions to read them. */
  const bool one_k_major = p.precision == GK_PRECISION_TF32 && by_tma && !p.a.k_major && !p.b.k_major;
  const bool both_k_major = p.in_terms() && !by_tma;
  plan->a = gk__plan_copy(p, p.a, p.m, both_k_major ? !p.a.k_major : one_k_major && p.m <= p.n);
  plan->b = gk__plan_copy(p, p.b, p.n, both_k_major ? !p.b.k_major : one_k_major && p.m > p.n);
  const bool copies = plan->a.wanted || plan->b.wanted;
  /* A split A is loaded from slightly before its rows, and B from the same k. In an MN-major B TMA can begin at any k;
   * in a K-major one at 16-byte words only. Then a transposed copy of a small B saves that of a large A: ten products
   * with 7 to 80 MB of A take 0.46 to 0.99 of the time (half types: nine take 0.47 to 0.92, but 20001 x 31 x 301 takes
   * 1.14; H200). */
  if (by_tma && plan->a.wanted && !p.in_terms()) {
    const bool transposes_b = plan->b.k_major;
    if (!transposes_b || (p.m >= 4 * p.n && p.m * p.k * p.item_bytes >= large_a))
      plan->a.split = gk__plan_strided_reads(p);
    if (plan->a.split > 1) {
      plan->a.wanted = false;
      if (transposes_b) plan->b = gk__plan_copy(p, p.b, p.n, true);
    }
  }
  return copies;
}
/* Whether gk__mma_kernel multiplies tf32 faster than gk__wgmma_kernel in code for sm_90a, which has its small tile. The
 * caller checks that it needs no copies. wgmma needs a K-major operand. If neither is, wgmma waits for a transposed
 * copy: 31 products of at most 16 stages for each multiprocessor take 0.80 of that time by mma.sync, at most 1.16 times
 * as long, and 17 batches with edges of up to 320 take 0.58 to 0.95. Without a graph, two with 16 and 19 stages take
 * 0.75 and 0.79. If one is K-major, 21 products of up to one tile for each multiprocessor and six stages take 0.94 of
 * the time of wgmma (H200, CUDA graphs). */
inline bool gk__mma_pays(const gk__product &p, size_t sms) {
  if (p.precision != GK_PRECISION_TF32 || (p.a.k_major && p.b.k_major)) return false;
  const gk__mma_tile mma_tile = gk__mma_tile_at<1, float>(GK__SMALL_TILE);
  const size_t edge = 320, tiles = gk__tile_count(p.m, p.n, mma_tile.bm, mma_tile.bn),
               stages = gk__tile_count(p.k, mma_tile.stage_depth);
  if (p.a.k_major || p.b.k_major) return p.batch == 1 && tiles <= sms && stages <= 6;
  return tiles * p.batch * stages <= 20 * sms || (p.batch > 1 && p.m <= edge && p.n <= edge);
}
inline gk__product_plan gk__plan_product(const gk__product &p, const gk__matmul_gpu &gpu) {
  gk__product_plan plan = gk__product_plan();
  const bool forced = gk__is_tensor(p.plan), by_tma = gpu.tensor_plan == GK_PLAN_WGMMA;
  plan.plan = forced ? GK_PLAN_AUTO : p.plan;
  plan.precision = GK_PRECISION_STRICT;
  plan.refused = gk__refuse_product(p, gpu);
  if (plan.refused || !gk__asks_for_tensor(p) || plan.plan != GK_PLAN_AUTO || p.k == 0) return plan;
  if (gpu.tensor_plan == GK_PLAN_AUTO || (by_tma && !gk__wgmma_fits(p))) return plan;
  gk__product_plan otherwise = plan; /* by the strict kernels, or by the small one */
  otherwise.is_small = gk__is_small(p, gpu.sms, false, true);
  if (otherwise.is_small) otherwise.precision = p.precision;
  if (!forced && !gk__tensor_pays(p, gpu)) return otherwise;

  plan.precision = p.precision;
  plan.plan = gpu.tensor_plan;
  bool wants_copies = gk__plan_operands(p, &plan);
  if (forced) return plan;
  if (wants_copies && p.is_thin()) return otherwise; /* a copy takes as long as such a product */
  if (by_tma && gk__mma_pays(p, static_cast<size_t>(gpu.sms))) {
    gk__product_plan by_mma = plan;
    by_mma.plan = GK_PLAN_MMA;
    if (!gk__plan_operands(p, &by_mma)) {
      plan = by_mma;
      wants_copies = false;
    }
  }
  const bool copies = plan.a.wanted || plan.b.wanted;
  if (gk__is_small(p, gpu.sms, !wants_copies, copies) || (copies && !gk__copy_pays(p, plan, by_tma))) return otherwise;
  return plan;
}

/* Finds gpu->tensor_plan. least_code: the lowest architecture that has mma.sync for the type. */
template <class Path, class Args> cudaError_t gk__find_tensor_plan(int least_code, gk__matmul_gpu *gpu) {
  int code = 0;
  const auto kernel = GK__KERNEL(gk__code_kernel<Path, Args>);
  GK_TRY(gk__failed(gk__find_code(kernel, &code), "gk_matmul"));
  gpu->tensor_plan = code >= least_code ? GK_PLAN_MMA : GK_PLAN_AUTO;
#ifdef GK__HOPPER_BUILD
  if (code < 0 && gk__tensor_map_encoder()) gpu->tensor_plan = GK_PLAN_WGMMA;
#endif
  return cudaSuccess;
}

/* --- Strict products: launches on Hopper, and by warps -----------------------------------------------------------*/

template <class Args> struct gk__hopper_path : gk__no_path {};
template <class Args> struct gk__warp_tile_path : gk__no_path {};

#ifdef GK__HOPPER_BUILD
/* Whether the device's code has this kernel. If that cannot be found out, another kernel runs instead. */
template <class... Params> bool gk__has_code(const gk__kernel<Params...> &kernel) {
  const cudaError_t earlier = cudaPeekAtLastError();
  int code = 0;
  if (gk__find_code(kernel, &code) != cudaSuccess) gk__forget_error(earlier);
  return code > 0;
}
/* Strict products of floats by the Hopper kernel. */
template <class Func> struct gk__hopper_path<gk__matmul_args<float, float, float, Func>> {
  typedef gk__matmul_args<float, float, float, Func> args;
  typedef gk__f32_block<4, 1, 4> block_128x128;
  /* The code whose tiles can compute the product. */
  static unsigned hopper(const args &p, const gk__matmul_gpu &) {
    const bool takes = p.k >= 16 && !p.max_blocks && !p.condition.flag;
    return takes && gk__has_code(GK__KERNEL(gk__f32_hopper_kernel<block_128x128, args>)) ? GK__SM_90A_CODE
                                                                                         : GK__ANY_CODE;
  }
  template <class Config> static gk__tile_kernel<args> kernel() {
    const auto of_config = GK__KERNEL(gk__f32_hopper_kernel<Config, args>);
    return {of_config, of_config, Config::bm, Config::bn, 1, Config::thread_count, Config::smem, Config::resident};
  }
  static cudaError_t run(const args &p, const gk__tile_choice &choice, gk__product_call *call) {
    const gk_plan plan = choice.tile_facts.plan;
    if (plan == GK__PLAN_HOPPER_64_128) return gk__matmul_tiles(kernel<gk__f32_block<2, 2, 2>>(), p, call);
    if (plan == GK__PLAN_HOPPER_128_64) return gk__matmul_tiles(kernel<gk__f32_block<4, 1, 2>>(), p, call);
    return gk__matmul_tiles(kernel<block_128x128>(), p, call);
  }
};
/* Those of doubles. */
template <class Out, class Func> struct gk__hopper_path<gk__matmul_args<double, Out, double, Func>> {
  typedef gk__matmul_args<double, Out, double, Func> args;
  /* Code for compute_90 also runs on newer GPUs, some of whose blocks have 99 KB of shared memory. */
  static unsigned hopper(const args &p, const gk__matmul_gpu &gpu) {
    const size_t barriers = 1024; /* bytes, at most */
    if (p.k == 0 || p.partial_bytes() > GK__PARTIALS_BYTES || !gpu.has_smem(gk__f64_64x128::ring_bytes + barriers))
      return GK__ANY_CODE;
    if (gk__has_code(GK__KERNEL(gk__f64_kernel<gk__f64_64x64, args>))) return GK__SM_90A_CODE;
    return gk__has_code(GK__KERNEL(gk__f64_kernel<gk__f64_64x128, args>)) ? GK__SM_90_CODE : GK__ANY_CODE;
  }
  template <class Shape> static gk__tile_kernel<args, unsigned> kernel() {
    const auto of_shape = GK__KERNEL(gk__f64_kernel<Shape, args>);
    return {of_shape,          of_shape,       Shape::bm, Shape::bn, 1, Shape::producers + Shape::consumers,
            Shape::ring_bytes, Shape::resident};
  }
  static gk__tile_kernel<args, unsigned> kernel_of(gk_plan plan, bool in_turn) {
    if (plan == GK__PLAN_HOPPER_64) return kernel<gk__f64_64x64>();
    if (plan == GK__PLAN_HOPPER_32_64) return in_turn ? kernel<gk__f64_32x64_in_turn>() : kernel<gk__f64_32x64>();
    return in_turn ? kernel<gk__f64_64x128_in_turn>() : kernel<gk__f64_64x128>();
  }
  static cudaError_t run(const args &p, const gk__tile_choice &choice, gk__product_call *call) {
    const auto tile_kernel = kernel_of(choice.tile_facts.plan, choice.in_turn);
    const unsigned partitions = choice.in_turn ? 1 : p.partitions; /* work tiles for each tile of C */
    const size_t max_grid = p.limited(static_cast<size_t>(call->gpu.sms) * tile_kernel.resident);
    const auto launch = [=](const args &sub_batch, size_t work_count) {
      return gk__launch_product(*call, tile_kernel.kernel, work_count < max_grid ? work_count : max_grid,
                                tile_kernel.thread_count, tile_kernel.ring_bytes, sub_batch,
                                static_cast<unsigned>(work_count));
    };
    return gk__launch_batches(p, choice.tile_facts.tile_count(p.m, p.n) * partitions, partitions > 1, call, launch,
                              true);
  }
};
#endif

/* Batches, by warps that compute a tile each. */
template <class Func> struct gk__warp_tile_path<gk__matmul_args<float, float, float, Func>> {
  typedef gk__matmul_args<float, float, float, Func> args;
  typedef gk__warp_tile tile_type;
  static size_t tiles(const args &p) { return gk__tile_count(p.m, p.n, tile_type::bm, tile_type::bn); }
  static size_t blocks(const args &p, const gk__matmul_gpu &gpu) { return p.limited(static_cast<size_t>(gpu.sms)); }
  /* Conditions: the tiles cover at most 9/5 of C, and there are enough of them for half of the warps. Larger products,
   * whose operands blocks read less often, are as fast this way if k is short and few warps idle at the end. */
  static bool takes(const args &p, gk_plan wanted, const gk__matmul_gpu &gpu) {
    const size_t small_limit = 128, most_k = 192, limit = size_t(1) << 30;
    if ((wanted != GK_PLAN_AUTO && wanted != GK__PLAN_TILE_64) || p.batch < 2 || p.trans_a || p.trans_b || p.k == 0 ||
        p.k > most_k || p.partitions > 1 || p.k % tile_type::straight || p.n % 4 ||
        !gk__has_vectors<4>(p.a, 1, p.lda) || !gk__has_vectors<4>(p.b, 1, p.ldb) ||
        !gk__has_vectors<4>(p.c, 1, p.ldc) || p.stride_a % 4 || p.stride_b % 4 || p.stride_c % 4 ||
        tiles(p) * tile_type::bm * tile_type::bn * 5 > p.m * p.n * 9 || p.batch >= limit / tiles(p) ||
        !gpu.has_smem(tile_type::warps * tile_type::smem))
      return false;
    const size_t work_tiles = p.batch * tiles(p), resident_warps = blocks(p, gpu) * tile_type::warps;
    if (p.m <= small_limit && p.n <= small_limit && p.k <= small_limit) return work_tiles >= resident_warps / 2;
    return work_tiles * 4 >= gk_round_up(work_tiles, resident_warps) * 3;
  }
  static cudaError_t run(const args &p, const gk__product_call &call) {
    return gk__launch_product(call, GK__KERNEL(gk__warp_kernel<args>), blocks(p, call.gpu), tile_type::warps * 32,
                              static_cast<size_t>(tile_type::warps * tile_type::smem), p,
                              static_cast<unsigned>(p.batch * tiles(p)));
  }
};

/* --- Dispatch by type, and the calls -------------------------------------------------------------------------------*/

/* Enqueues a strict product with a given split, or only measures the partials that it needs. whole_batch: of which p
 * has a part; 0: all of it. Tiles are chosen for the whole, so that the partials do not depend on the part. */
template <class Args>
cudaError_t gk__enqueue_strict(Args p, const gk__split_k &order, gk_plan plan, gk__product_call *call,
                               size_t whole_batch = 0) {
  typedef typename Args::acc_type Acc;
  const bool is_half = gk__half_traits<typename Args::item_type>::is_half;
  p.partitions = order.partitions;
  p.depth = order.depth;
  if (order.thin) return gk__matmul_thin(p, call);
  if (gk__warp_tile_path<Args>::takes(p, plan, call->gpu))
    return call->measuring ? cudaSuccess : gk__warp_tile_path<Args>::run(p, *call);
  const gk__cut_plan<gk__tile_choice> cut =
      gk__cached_tiles<Acc>({p.m, p.n, p.k, whole_batch ? whole_batch : p.batch, order, plan, call->gpu.sms,
                             gk__hopper_path<Args>::hopper(p, call->gpu), !is_half,
                             gk__small_kernel_of(p).function != NULL, static_cast<size_t>(call->gpu.smem_limit)});
  const auto run = [&](const Args &panel, const gk__tile_choice &choice) -> cudaError_t {
    const gk__tile_facts &tile_facts = choice.tile_facts;
    if (tile_facts.hopper) return gk__hopper_path<Args>::run(panel, choice, call);
    return gk__matmul_tiles(gk__portable_kernel_of(panel, tile_facts.plan, call->gpu, Acc()), panel, call,
                            choice.in_turn);
  };
  if (cut.is_cut() && order.partitions > 1 && !call->memory && !call->measuring) {
    call->measuring = true; /* the second panel may need partials, and the first one none */
    GK_TRY(cut.run(p, run));
    GK_TRY(call->begin());
  }
  return cut.run(p, run);
}
/* Records in the call how many bytes a product's partials take. */
template <class Args>
cudaError_t gk__measure_partials(const Args &p, const gk__split_k &order, gk_plan plan, gk__product_call *call) {
  if (order.partitions < 2) return cudaSuccess;
  call->measuring = true;
  return gk__enqueue_strict(p, order, plan, call);
}

/* The view of an operand, or of its copy at dest. */
template <class Element>
gk__operand_view<Element> gk__view_operand(const gk__operand_copy &plan, const gk__product_operand &from,
                                           const unsigned char *dest) {
  gk__operand_view<Element> view;
  view.data = plan.wanted ? dest : reinterpret_cast<const void *>(from.address);
  view.leading_dim = plan.wanted ? plan.leading_dim : from.leading_dim;
  view.stride_batch = plan.one ? 0 : plan.wanted ? plan.matrix / plan.bytes : from.stride;
  view.stride_term = plan.wanted ? plan.term / plan.bytes : 0;
  view.k_major = plan.k_major;
  view.split = plan.split;
  return view;
}
/* An operand that is prepared, and its copy at dest; or none, if no copy is wanted. If the matrices of a batch follow
 * each other without gaps, as their copies do, they are prepared as one matrix of more rows. */
template <class Item>
gk__raw_operand<Item> gk__prepared_operand(const gk__operand_copy &plan, const gk__product_operand &from, size_t batch,
                                           unsigned char *dest) {
  gk__raw_operand<Item> raw = gk__raw_operand<Item>();
  if (!plan.wanted) return raw;
  raw.from = reinterpret_cast<const Item *>(from.address);
  raw.row_count = plan.row_count;
  raw.col_count = plan.col_count;
  raw.leading_dim = from.leading_dim;
  raw.stride = from.stride;
  raw.batch = plan.one ? 1 : batch;
  raw.dest = dest;
  raw.to_ld = plan.leading_dim * plan.bytes;
  raw.to_stride = plan.matrix;
  raw.to_term = plan.term;
  raw.transposed = plan.transposed;
  if (!raw.transposed && raw.stride == raw.row_count * raw.leading_dim && raw.to_stride == raw.row_count * raw.to_ld) {
    raw.row_count *= raw.batch;
    raw.batch = 1;
  }
  return raw;
}

/* A scratch without a work area is not an error: the call allocates one. */
inline cudaError_t gk__check_work_area(const gk_scratch *scratch, size_t needed) {
  if (!scratch || !scratch->ptr || !scratch->work_bytes || scratch->work_bytes >= needed) return cudaSuccess;
  return GK__INVALID("gk_matmul: the scratch has a work area of %zu bytes, but %zu are needed: gk_matmul_work_bytes",
                     scratch->work_bytes, needed);
}
/* The work area in the caller's scratch, if it has one; else for how many products a temporary one has room. */
inline cudaError_t gk__plan_work_area(const gk__product_plan &plan, size_t batch, gk__product_call *call) {
  const gk_scratch *const scratch = call->given;
  const size_t needed = plan.work_bytes(1), more = plan.work_bytes(2) - needed, enough = size_t(256) << 20;
  call->at_once = batch;
  if (needed == 0) return cudaSuccess;
  GK_TRY(gk__check_work_area(scratch, needed));
  size_t room = needed < enough ? enough : needed;
  if (scratch && scratch->ptr && scratch->work_bytes) {
    call->work = static_cast<unsigned char *>(scratch->ptr) + gk__work_offset(scratch->bytes);
    room = scratch->work_bytes;
  }
  if (more && (room - needed) / more < batch - 1) call->at_once = 1 + (room - needed) / more;
  return cudaSuccess;
}
/* Measures the partials of the strict kernels that follow an emulated product. The choice of these kernels depends on
 * whether there is a condition. */
template <class Args> cudaError_t gk__measure_fallback(Args p, gk__product_call *call) {
  static const unsigned any = 0;
  p.condition.flag = &any;
  return gk__measure_partials(p, gk__cached_split_k<typename Args::acc_type>(p.m, p.n, p.k), GK_PLAN_AUTO, call);
}

/* Launches the preparation of the operands, the kernel, and for emulated fp32 the strict fallback, for as many products
 * of the batch at a time as the work area has room for. */
template <int Preparation, int Products, class Element, class Item, class Out, class Func>
cudaError_t gk__launch_on_tensor_cores(gk__matmul_args<Item, Out, float, Func> p, const gk__product_plan &plan,
                                       const gk__cut_plan<gk__mma_plan> &mma_cut, gk__product_call *call) {
  const size_t batch = p.batch;
  const auto run_mma = [=](const gk__tensor_args<Element, Out, Func> &panel, const gk__mma_plan &mma_plan) {
    return gk__mma_run<Products>(panel, mma_plan, call);
  };
  unsigned *const fallback_flag =
      Preparation == GK__PREPARE_BF16_TERMS ? reinterpret_cast<unsigned *>(call->work) : NULL;
  p.condition = {fallback_flag, true}; /* of the strict product; the other one has the opposite condition */
  for (size_t done = 0; done < batch; done += call->at_once) {
    p.batch = batch - done < call->at_once ? batch - done : call->at_once;
    gk__tensor_args<Element, Out, Func> q(p);
    const gk__product_operand from_a = p.operand_a(), from_b = p.operand_b();
    unsigned char *const work_a = call->work ? call->work + GK__WORK_FRONT : NULL;
    unsigned char *const work_b = work_a + gk__work_offset(plan.a.work_bytes(p.batch));
    q.a = gk__view_operand<Element>(plan.a, from_a, work_a);
    q.b = gk__view_operand<Element>(plan.b, from_b, work_b);
    q.k = p.k;
    q.condition.wanted = false;
    if (fallback_flag)
      GK_TRY(gk__failed(cudaMemsetAsync(fallback_flag, 0, sizeof(*fallback_flag), call->stream), "gk_matmul"));
    if (plan.a.wanted || plan.b.wanted)
      GK_TRY(gk__prepare_operands<Preparation>(gk__prepared_operand<Item>(plan.a, from_a, p.batch, work_a),
                                               gk__prepared_operand<Item>(plan.b, from_b, p.batch, work_b), p.k,
                                               fallback_flag, plan.plan == GK_PLAN_WGMMA, p.max_blocks, *call));
    GK_TRY(plan.plan == GK_PLAN_WGMMA ? gk__wgmma_tile_set<Products, Element>::run(q, batch, *call)
                                      : mma_cut.run(q, run_mma));
    if (fallback_flag)
      GK_TRY(gk__enqueue_strict(p, gk__cached_split_k<float>(p.m, p.n, p.k), GK_PLAN_AUTO, call, batch));
    p.skip(p.batch);
  }
  return cudaSuccess;
}
/* A kind of product on tensor cores. Arguments are checked and memory is allocated before the first launch. */
template <int Preparation, int Products, class Element> struct gk__tensor_path : gk__no_path {
  template <class Args> static cudaError_t run(const Args &p, const gk__product_plan &plan, gk__product_call *call) {
    gk__cut_plan<gk__mma_plan> mma_cut;
    GK_TRY(gk__plan_work_area(plan, p.batch, call));
    if (plan.plan == GK_PLAN_MMA) GK_TRY((gk__plan_mma<Products, Element>(p, &mma_cut, call)));
    if (Preparation == GK__PREPARE_BF16_TERMS) GK_TRY(gk__measure_fallback(p, call));
    GK_TRY(call->begin());
    const size_t bytes = call->work ? 0 : plan.work_bytes(call->at_once);
    void *temporary = NULL;
    if (bytes) {
      GK_TRY(gk__temporary_memory(&temporary, bytes, "gk_matmul", call->stream));
      call->work = static_cast<unsigned char *>(temporary);
    }
    return gk__free_temporary(gk__launch_on_tensor_cores<Preparation, Products, Element>(p, plan, mma_cut, call),
                              temporary, "gk_matmul", call->stream);
  }
};
/* Half types, and floats rounded to tf32. Small products (gk__is_small) have a kernel of their own, whose operands are
 * not prepared. A power of two of warps shares the k of a tile: enough for one step each, but several only as long as a
 * multiprocessor gets at most 48 warps, which most GPUs hold at once. */
template <int Preparation, class Element> struct gk__rounded_path : gk__tensor_path<Preparation, 1, Element> {
  template <class Args> static cudaError_t run_small(const Args &p, gk__product_call *call) {
    typedef gk__small_mma_tile shape;
    const size_t tiles = gk__tile_count(p.m, p.n, shape::bm, shape::bn) * p.batch,
                 steps = gk__tile_count(p.k, shape::depth);
    int warps = 1;
    while (warps < shape::most_warps && static_cast<size_t>(warps) < steps &&
           tiles * static_cast<size_t>(warps) <= 24 * static_cast<size_t>(call->gpu.sms))
      warps *= 2;
    const auto launch = [=](const Args &panel, size_t blocks) {
      return gk__launch_product(*call, GK__KERNEL(gk__small_mma_kernel<Args>), blocks, warps * 32,
                                static_cast<size_t>(warps * shape::partials::bytes), panel);
    };
    return gk__launch_panels(p, shape::bm, shape::bn, 1, call, launch);
  }
};

/* The kernels by tensor cores that are compiled for a call of this precision. The strict kernels always are: thin
 * products run on them, and all others where there are no tensor cores. */
template <int Precision, class Item>
struct gk__tensor_path_of : std::conditional<gk__half_traits<Item>::is_half && Precision != GK_PRECISION_STRICT,
                                             gk__rounded_path<GK__PREPARE_COPY, Item>, gk__no_path>::type {};
template <> struct gk__tensor_path_of<GK_PRECISION_TF32, float> : gk__rounded_path<GK__PREPARE_TF32, float> {};
template <>
struct gk__tensor_path_of<GK_PRECISION_EMULATED, float> : gk__tensor_path<GK__PREPARE_BF16_TERMS, 6, __nv_bfloat16> {};

/* An error if the rows of a matrix overlap, or the last of `batch` matrices ends beyond the address space. */
inline cudaError_t gk__check_matrix(const char *name, const void *from, size_t row_count, size_t col_count,
                                    size_t leading_dim, size_t stride, size_t batch, size_t item_bytes) {
  if (row_count == 0 || col_count == 0) return cudaSuccess;
  if (!from) return GK__INVALID("gk_matmul: %s is NULL but is %zu x %zu", name, row_count, col_count);
  if (reinterpret_cast<uintptr_t>(from) % item_bytes)
    return GK__INVALID("gk_matmul: %s is not aligned to its elements' %zu bytes", name, item_bytes);
  if (leading_dim < col_count)
    return GK__INVALID(
        "gk_matmul: the leading dimension of %s is %zu, but its stored rows have %zu elements (0: dense rows)", name,
        leading_dim, col_count);
  const size_t max_items = static_cast<size_t>(-1) / item_bytes / 2;
  if (leading_dim > max_items / row_count ||
      (batch > 1 && stride > (max_items - row_count * leading_dim) / (batch - 1)))
    return GK__INVALID("gk_matmul: %s, %zu times %zu x %zu, is more than memory can address", name, batch, row_count,
                       col_count);
  return gk__check_memory("gk_matmul", name, from);
}

/* The arguments of the kernels. As in BLAS, alpha = 0 reads neither A nor B, and with k = 0 the product is 0: both give
 * beta C. The kernels add alpha x 0 to beta C, which leaves it unchanged if alpha is -0. */
template <class Acc, class Item, class Out, class Func>
gk__matmul_args<Item, Out, Acc, Func> gk__args_of_call(const Item *a, const Item *b, Out *c, size_t m, size_t n,
                                                       size_t k, const gk_matmul_opts &opts, const Func &func) {
  gk__matmul_args<Item, Out, Acc, Func> p(func);
  p.a = a;
  p.b = b;
  p.c = c;
  p.m = m;
  p.n = n;
  p.k = k;
  p.trans_a = opts.trans_a != 0;
  p.trans_b = opts.trans_b != 0;
  p.lda = opts.lda ? opts.lda : (p.trans_a ? m : k);
  p.ldb = opts.ldb ? opts.ldb : (p.trans_b ? k : n);
  p.ldc = opts.ldc ? opts.ldc : n;
  p.batch = opts.batch ? opts.batch : 1;
  p.stride_a = opts.stride_a;
  p.stride_b = opts.stride_b;
  p.stride_c = opts.stride_c ? opts.stride_c : gk__saturated_product(m, p.ldc);
  p.alpha = opts.alpha ? static_cast<Acc>(*opts.alpha) : Acc(1);
  p.beta = opts.beta ? static_cast<Acc>(*opts.beta) : Acc(0);
  p.max_blocks = opts.max_blocks;
  if (p.alpha == Acc(0)) p.k = 0;
  if (p.k == 0) p.alpha = p.beta == Acc(0) ? Acc(0) : Acc(-0.0);
  /* Without k nothing is read of A and B, which may be null. C++ knows no offset from a null pointer. */
  if (p.k == 0) p.a = p.b = reinterpret_cast<const Item *>(c);
  return p;
}
/* Names for messages; plan: one that users choose. */
inline const char *gk__name_of(gk_precision precision) {
  const char *const names[] = {"GK_PRECISION_DEFAULT", "GK_PRECISION_STRICT", "GK_PRECISION_TF32",
                               "GK_PRECISION_EMULATED"};
  return static_cast<size_t>(precision) < 4 ? names[precision] : "no gk_precision";
}
inline const char *gk__name_of(gk_plan plan) {
  if (plan == GK_PLAN_AUTO) return "GK_PLAN_AUTO";
  if (plan == GK_PLAN_SIMT) return "GK_PLAN_SIMT";
  if (plan == GK_PLAN_MMA) return "GK_PLAN_MMA";
  return plan == GK_PLAN_WGMMA ? "GK_PLAN_WGMMA" : "a plan for tests";
}
/* Checks the matrices and the options of a call. */
template <class Args> cudaError_t gk__check_call(const Args &p, const gk_matmul_opts &opts) {
  const size_t m = p.m, n = p.n, k = p.k;
  const void *const a = p.a, *const b = p.b, *const c = p.c;
  GK_TRY(gk__check_matrix("A", a, p.trans_a ? k : m, p.trans_a ? m : k, p.lda, p.stride_a, p.batch, sizeof(*p.a)));
  GK_TRY(gk__check_matrix("B", b, p.trans_b ? n : k, p.trans_b ? k : n, p.ldb, p.stride_b, p.batch, sizeof(*p.a)));
  GK_TRY(gk__check_matrix("C", c, m, n, p.ldc, p.stride_c, p.batch, sizeof(*p.c)));
  if (p.batch > 1 && p.stride_c < (m - 1) * p.ldc + n)
    return GK__INVALID("gk_matmul: stride_c is %zu, but each C takes %zu elements; 0 puts one after the other",
                       p.stride_c, (m - 1) * p.ldc + n);
  if (k && (c == a || c == b))
    return GK__INVALID("gk_matmul: C is the same memory as %s; it needs its own", c == a ? "A" : "B");
  if (opts.precision < GK_PRECISION_DEFAULT || opts.precision > GK_PRECISION_EMULATED)
    return GK__INVALID("gk_matmul: precision %d is not a gk_precision", static_cast<int>(opts.precision));
  if (opts.plan < GK_PLAN_AUTO || opts.plan > GK_PLAN_SIMT)
    return GK__INVALID("gk_matmul: plan %d is not a gk_plan", static_cast<int>(opts.plan));
  return cudaSuccess;
}
/* What gk_matmul_plan reports. */
template <class Args>
cudaError_t gk__describe_path(const Args &p, const gk__product_plan &plan, gk_plan strict_plan, gk__product_call *call,
                              gk_matmul_path *path) {
  typedef gk__tensor_element<typename Args::item_type> element_type;
  gk__cut_plan<gk__mma_plan> mma_cut;
  path->plan = plan.is_small ? GK_PLAN_MMA : plan.plan;
  path->precision = plan.precision;
  path->copies_a = plan.a.wanted;
  path->copies_b = plan.b.wanted;
  path->work_bytes = plan.work_bytes(1);
  if (!plan.tensor() && !plan.is_small)
    GK_TRY(gk__measure_partials(p, gk__cached_split_k<typename Args::acc_type>(p.m, p.n, p.k), strict_plan, call));
  else if (plan.precision >= GK_PRECISION_EMULATED)
    GK_TRY(gk__measure_fallback(p, call));
  if (plan.plan == GK_PLAN_MMA)
    GK_TRY(plan.precision == GK_PRECISION_EMULATED ? gk__plan_mma<6, __nv_bfloat16>(p, &mma_cut, call)
                                                   : gk__plan_mma<1, element_type>(p, &mma_cut, call));
  if (call->least) path->scratch_bytes = GK__SCAN_OFFSET + call->least;
  return cudaSuccess;
}

/* With a path, only describes what the call would do. */
template <int Precision, class Item, class Out, class Func>
cudaError_t gk__matmul(const Item *a, const Item *b, Out *c, size_t m, size_t n, size_t k, const gk_matmul_opts *opts,
                       gk_matmul_path *path, cudaStream_t stream, const Func &func) {
  typedef typename gk__carried<Item>::type Acc;
  typedef gk__matmul_args<Item, Out, Acc, Func> args;
  typedef gk__tensor_path_of<Precision, Item> tensor_path;
  gk__clear_detail();
  const gk_matmul_opts options = opts ? *opts : gk_matmul_opts();
  args p = gk__args_of_call<Acc>(a, b, c, m, n, k, options, func);
  if (path) *path = gk_matmul_path();
  if (m == 0 || n == 0) return cudaSuccess;
  GK_TRY(gk__check_call(p, options));

  const gk__product_operand from_a = p.operand_a(), from_b = p.operand_b();
  const gk__product product = {sizeof(Item), m, n, p.k, p.batch, from_a, from_b, options.precision, options.plan};
  gk__matmul_gpu gpu = gk__matmul_gpu();
  GK_TRY(gk__find_matmul_gpu(&gpu));
  if (gk__asks_for_tensor(product))
    GK_TRY((gk__find_tensor_plan<tensor_path, args>(gk__tensor_type<gk__tensor_element<Item>>::code, &gpu)));
  const gk__product_plan plan = gk__plan_product(product, gpu);
  const gk_plan strict_plan = options.plan == GK_PLAN_SIMT ? GK_PLAN_AUTO : options.plan;
  if (plan.refused)
    return GK__INVALID("gk_matmul: %s, %s: %s", gk__name_of(options.precision), gk__name_of(options.plan),
                       plan.refused);
  gk__product_call call(options.scratch, stream, gpu);
  if (path) return gk__describe_path(p, plan, strict_plan, &call, path);
  GK_TRY(gk__check_scratch("gk_matmul", options.scratch, 0));
  if (plan.is_small) return call.end(tensor_path::run_small(p, &call));
  if (plan.tensor()) return call.end(tensor_path::run(p, plan, &call));
  return call.end(gk__enqueue_strict(p, gk__cached_split_k<Acc>(p.m, p.n, p.k), strict_plan, &call));
}

/* An error if a gk_array has fewer elements than a product uses. */
template <class InputA, class InputB, class Output>
cudaError_t gk__check_product_sizes(const InputA &a, const InputB &b, const Output &c, size_t m, size_t n, size_t k,
                                    const gk_matmul_opts &opts) {
  typedef typename gk__carried<gk__item_type<InputA>>::type Acc;
  const auto p = gk__args_of_call<Acc, Acc, Acc>(NULL, NULL, NULL, m, n, k, opts, gk__identity());
  const size_t a_items = gk__matrix_extent(p.trans_a ? p.k : m, p.trans_a ? m : p.k, p.lda, p.stride_a, p.batch);
  const size_t b_items = gk__matrix_extent(p.trans_b ? n : p.k, p.trans_b ? p.k : n, p.ldb, p.stride_b, p.batch);
  if (m == 0 || n == 0) return cudaSuccess;
  GK_TRY(gk__check_size("gk_matmul", "A", a, a_items));
  GK_TRY(gk__check_size("gk_matmul", "B", b, b_items));
  return gk__check_size("gk_matmul", "C", c, gk__matrix_extent(m, n, p.ldc, p.stride_c, p.batch));
}

/* The types of a product. One assertion explains an unsupported combination, so the call continues with types that
 * exist. */
template <class InputA, class InputB, class Output> struct gk__product_types {
  typedef gk__item_type<InputA> In;
  typedef typename gk__carried<In>::type Acc;
  typedef gk__item_type<Output> Out;
  static const bool inputs = gk__is_in_memory<InputA>::value && gk__is_in_memory<InputB>::value &&
                             (std::is_same<Acc, float>::value || std::is_same<Acc, double>::value);
  static const bool output = std::is_same<Out, In>::value || std::is_same<Out, Acc>::value;
  static_assert(std::is_same<In, gk__item_type<InputB>>::value, "gk_matmul: A and B have elements of the same type");
  static_assert(inputs, "gk_matmul: A and B are of float, double, __half or __nv_bfloat16");
  static_assert(!inputs || output, "gk_matmul: C has the type of A and B, or float where these are half types");
  typedef typename std::conditional<inputs, In, float>::type from;
  typedef typename std::conditional<inputs && output, Out, from>::type result_type;
};
/* gk__matmul of what the calls below take: pointers, or gk_arrays, whose sizes are checked. */
template <int Precision, class InputA, class InputB, class Output, class Func = gk__identity>
cudaError_t gk__matmul_call(const InputA &a, const InputB &b, Output &c, size_t m, size_t n, size_t k,
                            const gk_matmul_opts *opts, gk_matmul_path *path, cudaStream_t stream,
                            const Func &func = Func()) {
  typedef gk__product_types<InputA, InputB, Output> types;
  typedef typename types::from from;
  GK_TRY(gk__check_product_sizes(a, b, c, m, n, k, opts ? *opts : gk_matmul_opts()));
  return gk__matmul<Precision>(
      reinterpret_cast<const from *>(gk__input_of(a)), reinterpret_cast<const from *>(gk__input_of(b)),
      reinterpret_cast<typename types::result_type *>(gk__output_of(c)), m, n, k, opts, path, stream, func);
}
template <class InputA, class InputB, class Output>
cudaError_t gk_matmul_ex(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k,
                         const gk_matmul_opts *opts, cudaStream_t stream) {
  /* Of these precisions only floats have kernels. */
  const bool is_float = std::is_same<gk__item_type<InputA>, float>::value;
  const int tf32 = is_float ? GK_PRECISION_TF32 : GK_PRECISION_DEFAULT,
            emulated = is_float ? GK_PRECISION_EMULATED : GK_PRECISION_DEFAULT;
  if (opts && opts->precision == GK_PRECISION_TF32) return gk__matmul_call<tf32>(a, b, c, m, n, k, opts, NULL, stream);
  if (opts && opts->precision == GK_PRECISION_EMULATED)
    return gk__matmul_call<emulated>(a, b, c, m, n, k, opts, NULL, stream);
  return gk__matmul_call<GK_PRECISION_DEFAULT>(a, b, c, m, n, k, opts, NULL, stream);
}
/* The options of a call for one precision. */
inline cudaError_t gk__options_for(const char *call, gk_precision precision, const gk_matmul_opts *opts,
                                   gk_matmul_opts *options) {
  *options = opts ? *opts : gk_matmul_opts();
  if (options->precision == GK_PRECISION_DEFAULT) options->precision = precision;
  if (options->precision == precision) return cudaSuccess;
  return GK__INVALID("%s: the precision of the options is %s, but that of the template argument, for which kernels are "
                     "compiled, is %s; leave one of them out",
                     call, gk__name_of(options->precision), gk__name_of(precision));
}
template <gk_precision Precision, class InputA, class InputB, class Output>
cudaError_t gk_matmul_ex(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k,
                         const gk_matmul_opts *opts, cudaStream_t stream) {
  gk_matmul_opts options;
  GK_TRY(gk__options_for("gk_matmul_ex", Precision, opts, &options));
  return gk__matmul_call<Precision>(a, b, c, m, n, k, &options, NULL, stream);
}
template <gk_precision Precision, class InputA, class InputB, class Output, class Func>
cudaError_t gk_matmul_epilogue(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k, Func func,
                               const gk_matmul_opts *opts, cudaStream_t stream) {
  gk_matmul_opts options;
  GK_TRY(gk__options_for("gk_matmul_epilogue", Precision, opts, &options));
  return gk__matmul_call<Precision>(a, b, c, m, n, k, &options, NULL, stream, func);
}

template <class InputA, class InputB, class Output>
cudaError_t gk_matmul_plan(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k,
                           const gk_matmul_opts *opts, gk_matmul_path *path) {
  if (!path) return GK__INVALID("gk_matmul_plan: path is NULL");
  return gk__matmul_call<GK_PRECISION_DEFAULT>(a, b, c, m, n, k, opts, path, 0);
}

template <class InputA, class InputB, class Output>
cudaError_t gk_matmul(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k, cudaStream_t stream) {
  return gk__matmul_call<GK_PRECISION_DEFAULT>(a, b, c, m, n, k, NULL, NULL, stream);
}

template <class InputA, class InputB, class Output>
cudaError_t gk_matmul_scaled(double alpha, const InputA &a, const InputB &b, double beta, Output &&c, size_t m,
                             size_t n, size_t k, cudaStream_t stream) {
  gk_matmul_opts opts = gk_matmul_opts();
  opts.alpha = &alpha;
  opts.beta = &beta;
  return gk__matmul_call<GK_PRECISION_DEFAULT>(a, b, c, m, n, k, &opts, NULL, stream);
}

/* --- Products that are compiled once -------------------------------------------------------------------------------
 * GPUKIT_PRODUCTS_F32, _F64, _F16 and _BF16 declare the instances of their type. A file that calls them then
 * compiles no kernel of products. The file that also defines GPUKIT_IMPLEMENTATION defines the instances (section
 * 22). */

#if defined(GPUKIT_STATIC) && (defined(GPUKIT_PRODUCTS_F32) || defined(GPUKIT_PRODUCTS_F64) ||                         \
                               defined(GPUKIT_PRODUCTS_F16) || defined(GPUKIT_PRODUCTS_BF16))
#error "GPUKIT_PRODUCTS_...: with GPUKIT_STATIC files share nothing, and so no products either"
#endif
#define GK__PRODUCTS_BY(which, precision, item, out)                                                                   \
  which template cudaError_t gk__matmul<precision>(const item *, const item *, out *, size_t, size_t, size_t,          \
                                                   const gk_matmul_opts *, gk_matmul_path *, cudaStream_t,             \
                                                   const gk__identity &);
#define GK__PRODUCTS_OF(which, item, out)                                                                              \
  GK__PRODUCTS_BY(which, GK_PRECISION_DEFAULT, item, out)                                                              \
  GK__PRODUCTS_BY(which, GK_PRECISION_STRICT, item, out)
#ifdef GPUKIT_PRODUCTS_F32
#define GK__PRODUCTS_F32(which)                                                                                        \
  GK__PRODUCTS_OF(which, float, float)                                                                                 \
  GK__PRODUCTS_BY(which, GK_PRECISION_TF32, float, float)                                                              \
  GK__PRODUCTS_BY(which, GK_PRECISION_EMULATED, float, float)
#else
#define GK__PRODUCTS_F32(which)
#endif
#ifdef GPUKIT_PRODUCTS_F64
#define GK__PRODUCTS_F64(which) GK__PRODUCTS_OF(which, double, double)
#else
#define GK__PRODUCTS_F64(which)
#endif
#ifdef GPUKIT_PRODUCTS_F16
#define GK__PRODUCTS_F16(which) GK__PRODUCTS_OF(which, __half, __half) GK__PRODUCTS_OF(which, __half, float)
#else
#define GK__PRODUCTS_F16(which)
#endif
#ifdef GPUKIT_PRODUCTS_BF16
#define GK__PRODUCTS_BF16(which)                                                                                       \
  GK__PRODUCTS_OF(which, __nv_bfloat16, __nv_bfloat16) GK__PRODUCTS_OF(which, __nv_bfloat16, float)
#else
#define GK__PRODUCTS_BF16(which)
#endif
#define GK__PRODUCTS(which)                                                                                            \
  GK__PRODUCTS_F32(which) GK__PRODUCTS_F64(which) GK__PRODUCTS_F16(which) GK__PRODUCTS_BF16(which)
GK__PRODUCTS(extern)

/* ====================================================================================================================
 * 20. COPIES OF HOST ARRAYS: reduce, scan and matmul of arrays in host memory
 *
 * From above: gk_reduce, gk_scan_inclusive, gk_scan_exclusive and gk_matmul; gk__device_array (section 17).
 * ==================================================================================================================*/

/* gk__call_reduce() and the like are function objects: gk_reduce, a template, cannot be an argument of a function. */
#define GK__CALL(name)                                                                                                 \
  struct gk__call_##name {                                                                                             \
    template <class Operator, class Item, class Out, class... Args>                                                    \
    cudaError_t operator()(Operator operation, const Item *input, Out *output, size_t n, Args... args) const {         \
      return gk_##name(input, output, n, operation, args...);                                                          \
    }                                                                                                                  \
  };
GK__CALL(reduce)
GK__CALL(scan_exclusive)
GK__CALL(scan_inclusive)
template <class Call, class Item, class Out, class Operator>
cudaError_t gk__host_call(const char *name, Call call, Operator operation, const Item *input, size_t n, Out *output,
                          size_t out_count) {
  gk__device_array<Item> device_input;
  gk__device_array<Out> device_output;
  GK_TRY(device_input.allocate(name, "input", input, n));
  GK_TRY(device_output.allocate(name, "output", output, out_count));
  GK_TRY(device_input.copy_in(name, input));
  GK_TRY(call(operation, device_input.ptr, device_output.ptr, n));
  GK_TRY(device_input.destroy(name));
  return device_output.move_out(name, output);
}
template <class Item, class Out, class Operator>
cudaError_t gk_host_reduce(const Item *input, Out *output, size_t n, Operator operation) {
  return gk__host_call("gk_host_reduce", gk__call_reduce(), operation, input, n, output, 1);
}
template <class Item, class Out, class Operator>
cudaError_t gk_host_scan_inclusive(const Item *input, Out *output, size_t n, Operator operation) {
  return gk__host_call("gk_host_scan_inclusive", gk__call_scan_inclusive(), operation, input, n, output, n);
}
template <class Item, class Out, class Operator>
cudaError_t gk_host_scan_exclusive(const Item *input, Out *output, size_t n, Operator operation) {
  return gk__host_call("gk_host_scan_exclusive", gk__call_scan_exclusive(), operation, input, n, output, n);
}
template <class Item, class Out>
cudaError_t gk_host_matmul(const Item *a, const Item *b, Out *c, size_t m, size_t n, size_t k) {
  const char *const name = "gk_host_matmul";
  const size_t max_items = static_cast<size_t>(-1);
  if (m == 0 || n == 0) k = 0; /* no element of A or B is read */
  if ((k && m > max_items / k) || (n && k > max_items / n) || (n && m > max_items / n))
    return GK__INVALID("%s: %zu x %zu x %zu is more than memory can address", name, m, n, k);
  gk__device_array<Item> device_a, device_b;
  gk__device_array<Out> device_c;
  GK_TRY(device_a.allocate(name, "A", a, m * k));
  GK_TRY(device_b.allocate(name, "B", b, k * n));
  GK_TRY(device_c.allocate(name, "C", c, m * n));
  GK_TRY(device_a.copy_in(name, a));
  GK_TRY(device_b.copy_in(name, b));
  GK_TRY(gk_matmul(device_a.ptr, device_b.ptr, device_c.ptr, m, n, k));
  GK_TRY(device_a.destroy(name));
  GK_TRY(device_b.destroy(name));
  return device_c.move_out(name, c);
}

/* ====================================================================================================================
 * 21. PAST ONE GPU: the calls of section 12, over the R ranks of an NCCL communicator
 *
 *   reduce   Each rank reduces its piece (section 17) to a record: the value, and the number of elements where results
 *            have indices. An all-gather brings all records to all ranks, and one warp of each rank folds them in the
 *            order of ranks. Cost: one read of the piece, and an all-gather of 16 to 48 bytes a rank, which is latency
 *            alone. It stops scaling when reading a piece takes less time than the all-gather.
 *   scan     Likewise, but a rank folds the records of the lower ranks. The scan of its piece (section 18) starts at
 *            the result, which it reads on the device, so the host does not wait for it. Cost: two reads and one write
 *            of the piece, where one GPU reads and writes once (the speedup is at most 2/3 R), and one all-gather.
 *   matmul   The rows of B are all-gathered a part at a time, and one part is transferred while another is multiplied
 *            (section 19). Cost: 2 m n k operations for m rows. Meanwhile (R - 1) / R of the n k elements of B arrive.
 *            That is hidden while operations per second x element size < 2 m x bandwidth, so the number of rows
 *            matters, and n and k do not. With fewer rows the call takes as long as the transfer of B. That of the
 *            first part is never hidden.
 *
 * A call takes compute time + latency x steps + bytes / bandwidth. NCCL's all-gather takes R - 1 steps
 * around a ring or log2 R steps in a tree; a step has the latency of the slowest link. The bandwidth is that of the
 * links between the GPUs of a host, and between hosts a GPU's share of the network.
 *
 * A call must not stand between ncclGroupStart and ncclGroupEnd: NCCL would enqueue its collectives at the end of the
 * group, behind the kernels that read what they deliver. For the same reason one thread cannot be several ranks.
 *
 *   Same bits    A result depends on the pieces, hence on the number of ranks, but not on timing, GPU or network.
 *                Integer results, min, max and their indices do not depend on the pieces either.
 *   Lost ranks   NCCL connects the ranks in their first call, on the host. A rank that is lost before it is connected
 *                leaves the others blocked in that call, where gk_dist_wait cannot help, unless NCCL_RUNTIME_CONNECT=0
 *                in the environment makes NCCL (2.22 or newer; older ones always do) connect all ranks when the
 *                communicator is created. CUDA may also wait for the device when it loads the kernels of a first call,
 *                unless CUDA_MODULE_LOADING=EAGER loads them when the program starts.
 *   Graphs       A call that is captured needs the caller's scratch or buffer (matmul also both streams of its
 *                options), and ranks that an earlier call of the same kind has connected.
 *
 * Measured on two H200s of one host (NCCL 2.28 without multicast, tests/bench/dist.cu): an all-gather of 48 bytes takes
 * 8 to 10 us, in which a GPU reads 10 million floats. An all-gather of large parts delivers 273 GB/s, so a product of
 * floats (50 TFLOP/s) hides the transfer of B from 370 rows a rank on. The model gives 2000 rows for 50 GB/s of network
 * per GPU. For 16 hosts in a ring, at 20 us a step, it gives an all-gather of 300 us, in which a GPU reads 340 million
 * floats.
 * ==================================================================================================================*/

#ifdef GPUKIT_NCCL

/* --- Ranks and errors --------------------------------------------------------------------------------------------*/

inline gk_dist_piece gk_dist_split(size_t n, int ranks, int rank) {
  const size_t piece_count = static_cast<size_t>(ranks > 0 ? ranks : 1);
  const size_t wanted_idx = static_cast<size_t>(rank > 0 ? rank : 0);
  const size_t piece_idx = wanted_idx < piece_count ? wanted_idx : piece_count - 1;
  const size_t min_items = n / piece_count, longer_pieces = n % piece_count;
  const size_t longer_before = piece_idx < longer_pieces ? piece_idx : longer_pieces;
  return gk_dist_piece{min_items * piece_idx + longer_before, min_items + (piece_idx < longer_pieces)};
}

struct gk__dist_context {
  const char *call; /* its name, for errors */
  ncclComm_t comm;
  cudaStream_t stream;
  int rank_count, rank, device;

  cudaError_t failed(cudaError_t code) const { return gk__failed(code, call); }
  /* The same for a call to NCCL, with NCCL's message in the detail. */
  cudaError_t failed(ncclResult_t result, const char *what) const {
    if (result == ncclSuccess) return cudaSuccess;
    const char *message = ncclGetLastError(comm);
    cudaError_t code = cudaErrorUnknown;
    if (result == ncclInvalidArgument || result == ncclInvalidUsage) code = cudaErrorInvalidValue;
    if (result == ncclInProgress) {
      code = cudaErrorNotSupported;
      message = "these calls need a communicator that blocks";
    }
    return gk__fail(code, "%s: %s: %s%s%s", call, what, ncclGetErrorString(result), message && message[0] ? ": " : "",
                    message ? message : "");
  }
  /* In place: each rank's `bytes` bytes, those of rank r at buffer + r * bytes, to all ranks. */
  cudaError_t all_gather(void *buffer, size_t bytes, cudaStream_t on_stream) const {
    const char *const own = static_cast<const char *>(buffer) + static_cast<size_t>(rank) * bytes;
    return failed(ncclAllGather(own, buffer, bytes, ncclUint8, comm, on_stream), "ncclAllGather");
  }
};
inline cudaError_t gk__dist_begin(gk__dist_context *ctx, const char *call, ncclComm_t comm, cudaStream_t stream) {
  int current = 0;
  *ctx = gk__dist_context{call, comm, stream, 0, 0, 0};
  if (!comm) return GK__INVALID("%s: the communicator is NULL", call);
  GK_TRY(ctx->failed(ncclCommCount(comm, &ctx->rank_count), "ncclCommCount"));
  GK_TRY(ctx->failed(ncclCommUserRank(comm, &ctx->rank), "ncclCommUserRank"));
  GK_TRY(ctx->failed(ncclCommCuDevice(comm, &ctx->device), "ncclCommCuDevice"));
  GK_TRY(ctx->failed(cudaGetDevice(&current)));
  if (ctx->device == current) return cudaSuccess;
  return gk__fail(cudaErrorInvalidDevice, "%s: rank %d is device %d, but device %d is current", call, ctx->rank,
                  ctx->device, current);
}

/* --- Memory that other ranks' devices can access --------------------------------------------------------------------
 * Where ranks are threads of one process, NCCL has their devices access each other's buffers directly (peer access).
 * Other devices cannot access memory of a device's default memory pool, so each device has a pool of this file's own.
 * The first call on a device creates the pool. It is never destroyed: it has to outlive the work that its memory was
 * given to, and creating one is slow. */

inline cudaError_t gk__create_peer_pool(const gk__dist_context &ctx, cudaMemPool_t *pool) {
  cudaMemPoolProps props = cudaMemPoolProps();
  cudaMemAccessDesc access = cudaMemAccessDesc();
  int device_count = 0;
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = ctx.device;
  access.location.type = cudaMemLocationTypeDevice;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  GK_TRY(ctx.failed(cudaGetDeviceCount(&device_count)));
  GK_TRY(ctx.failed(cudaMemPoolCreate(pool, &props)));
  cudaError_t code = cudaSuccess;
  for (int peer = 0; peer < device_count && code == cudaSuccess; peer++) {
    int can_access = 0;
    if (peer != ctx.device) code = cudaDeviceCanAccessPeer(&can_access, peer, ctx.device);
    access.location.id = peer;
    if (code == cudaSuccess && can_access) code = cudaMemPoolSetAccess(*pool, &access, 1);
  }
  if (code != cudaSuccess) cudaMemPoolDestroy(*pool);
  return ctx.failed(code);
}
/* Memory on the stream, to be freed by cudaFreeAsync. */
inline cudaError_t gk__dist_allocate(const gk__dist_context &ctx, void **ptr, size_t bytes) {
  static std::atomic<cudaMemPool_t> pools[GK__DEVICES];
  int has_pools = 0;
  if (ctx.device < GK__DEVICES)
    GK_TRY(ctx.failed(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, ctx.device)));
  if (!has_pools)
    return gk__fail(cudaErrorNotSupported, "%s: device %d cannot allocate on a stream: pass %zu bytes", ctx.call,
                    ctx.device, bytes);
  cudaMemPool_t pool = pools[ctx.device];
  if (!pool) {
    cudaMemPool_t other_thread = NULL;
    GK_TRY(gk__create_peer_pool(ctx, &pool));
    if (!pools[ctx.device].compare_exchange_strong(other_thread, pool)) {
      GK_TRY(ctx.failed(cudaMemPoolDestroy(pool)));
      pool = other_thread;
    }
  }
  return gk__no_memory(cudaMallocFromPoolAsync(ptr, bytes, pool, ctx.stream), ctx.call, bytes);
}

/* --- Records ------------------------------------------------------------------------------------------------------
 * The records of all ranks are an array in the scratch, instead of section 16's slots. They have the format of slots,
 * with epoch 0, which no call uses. So a later call does not take what is left of a record for a slot of its own, even
 * if a lost rank ends this call early. */

template <class Acc> struct gk__record {
  static const unsigned word16_count = gk__slot<Acc>::word16_count + gk__is_arg<Acc>::value; /* last: item_count() */
  gk__word16 words[word16_count];

  gk__record() = default;
  gk__record(const gk__record &) = default;
  GK__HD explicit gk__record(const Acc &value, size_t item_count = 0) {
    gk__pack(words, value, 0);
    if (gk__is_arg<Acc>::value) gk__pack(words + word16_count - 1, item_count, 0);
  }
  /* The last block of a reduce stores its record over slots that other blocks published and that it has read. It does
   * so with the same kind of store that clears slots. */
  GK__HD gk__record &operator=(const gk__record &x) {
    for (unsigned w = 0; w < word16_count; w++) {
      volatile unsigned *const word = words[w].word;
      for (unsigned k = 0; k < 4; k++) word[k] = x.words[w].word[k];
    }
    return *this;
  }
  GK__HD Acc value() const {
    Acc unpacked;
    gk__unpack(&unpacked, words);
    return unpacked;
  }
  GK__HD size_t item_count() const {
    size_t items = 0;
    if (gk__is_arg<Acc>::value) gk__unpack(&items, words + word16_count - 1);
    return items;
  }
};
/* Stores a rank's number of elements in its record. A template, although Word is always gk__word16: otherwise each
 * file would define the kernel, and the linker would refuse the second one. */
template <class Word> __global__ void gk__item_count_kernel(Word *word, size_t n) { gk__pack(word, n, 0); }

/* A value whose index counts from the first element of its piece, with the index counted from that of all pieces. */
template <class Acc> GK__HD Acc gk__with_offset(const Acc &x, size_t) { return x; }
template <class Value> GK__HD gk_arg<Value> gk__with_offset(const gk_arg<Value> &x, size_t offset) {
  return gk_arg<Value>{x.value, x.index == static_cast<size_t>(-1) ? x.index : x.index + offset};
}

/* Stores the fold of records: as a result, or as a record with the number of their elements. */
template <class Acc, class Out> GK__D void gk__store_fold(Out *output, const Acc &value, size_t) {
  *output = gk__convert<Out, Acc>::from(value);
}
template <class Acc> GK__D void gk__store_fold(gk__record<Acc> *output, const Acc &value, size_t item_count) {
  *output = gk__record<Acc>(value, item_count);
}
/* Called by one warp: *output = the strict left fold of the records, or the identity if there is none. The output may
 * be one of the records: it is stored after all of them have been loaded.
 *
 * The lanes load 32 records at a time. Every lane then combines all of them, one after the other, so the order is that
 * of ranks, and operators need not commute. */
template <class Acc, class Out, class Operator>
__global__ void gk__fold_kernel(const gk__record<Acc> *records, size_t record_count, Operator operation, Out *output) {
  Acc value = operation.identity();
  size_t items_before = 0;
  for (size_t first_idx = 0; first_idx < record_count; first_idx += 32) {
    const unsigned loaded = record_count - first_idx < 32 ? static_cast<unsigned>(record_count - first_idx) : 32;
    Acc own_value = operation.identity();
    size_t own_items = 0;
    if (gk_lane() < loaded) {
      own_value = records[first_idx + gk_lane()].value();
      own_items = records[first_idx + gk_lane()].item_count();
    }
    for (unsigned source = 0; source < loaded; source++) {
      const Acc next = gk__with_offset(gk_shuffle(own_value, source), items_before);
      value = first_idx + source ? operation(value, next) : next;
      items_before += gk_shuffle(own_items, source);
    }
  }
  __syncwarp();
  if (gk_lane() == 0) gk__store_fold(output, value, items_before);
}
template <class Acc, class Out, class Operator>
cudaError_t gk__fold_records(const gk__dist_context &ctx, const gk__record<Acc> *records, size_t record_count,
                             const Operator &operation, Out *output) {
  return gk__launch(ctx.call, gk__fold_kernel<Acc, Out, Operator>, dim3(1), dim3(32), 0, ctx.stream, records,
                    record_count, operation, output);
}

/* --- Reduce and scan -----------------------------------------------------------------------------------------------*/

/* The operators of section 6 commute, so section 17's reduce computes their records. */
template <class Operator> struct gk__commutes : std::false_type {};
template <class Acc> struct gk__commutes<gk_sum<Acc>> : std::true_type {};
template <class Acc> struct gk__commutes<gk_prod<Acc>> : std::true_type {};
template <class Acc> struct gk__commutes<gk_min<Acc>> : std::true_type {};
template <class Acc> struct gk__commutes<gk_max<Acc>> : std::true_type {};
template <class Value> struct gk__commutes<gk_argmin<Value>> : std::true_type {};
template <class Value> struct gk__commutes<gk_argmax<Value>> : std::true_type {};

/* A user's operator in a scan may not commute. This kernel keeps the order: each thread combines adjacent elements,
 * each block adjacent tiles, and the partials of the blocks are folded in their order. A warp's loads are strided, but
 * every byte of a sector that they fetch is used while it is in the L1 cache. */
enum { GK__TOTAL_THREADS = 256 };
template <class Item> struct gk__total_tile {
  static const unsigned items_per_thread = sizeof(Item) < 64 ? 64 / sizeof(Item) : 1;
  static const unsigned items = GK__TOTAL_THREADS * items_per_thread;
};
template <class Item, class Operator, class Acc>
__global__ void __launch_bounds__(GK__TOTAL_THREADS)
    gk__total_kernel(const Item *input, size_t n, size_t items_per_block, Operator operation,
                     gk__record<Acc> *partials) {
  const unsigned items_per_thread = gk__total_tile<Item>::items_per_thread;
  const size_t begin = blockIdx.x * items_per_block, end = n - begin < items_per_block ? n : begin + items_per_block;
  Acc total = operation.identity();
  for (size_t tile_begin = begin; tile_begin < end; tile_begin += gk__total_tile<Item>::items) {
    const size_t first_idx = tile_begin + static_cast<size_t>(threadIdx.x) * items_per_thread;
    Acc value = operation.identity();
    GK__UNROLL
    for (unsigned j = 0; j < items_per_thread; j++)
      if (first_idx + j < end) value = operation(value, gk__lift<Acc, Item>::from(input[first_idx + j], first_idx + j));
    total = operation(total, gk_block_reduce<GK__TOTAL_THREADS>(value, operation));
  }
  if (threadIdx.x == 0) partials[blockIdx.x] = gk__record<Acc>(total);
}

/* A reduce or scan as one fold of records. The scratch has a state, then the slots of a reduce or the records of all
 * ranks, then the slots of a scan. */
template <class Item, class Operator> struct gk__dist_fold {
  typedef typename gk__working<Operator>::type Acc;
  const gk__dist_context &ctx;
  const Item *input;
  size_t n;
  Operator operation;
  const gk_scratch *given; /* the caller's scratch, or NULL */
  gk_scratch scratch;      /* a copy of that, or a temporary one */

  gk__record<Acc> *records() const {
    return reinterpret_cast<gk__record<Acc> *>(static_cast<unsigned char *>(scratch.ptr) + GK__STATE_BYTES);
  }
  /* This rank's record, by an operator that commutes or not. */
  cudaError_t reduce(gk__record<Acc> *record, std::true_type) const {
    const unsigned partitions = gk__plan_reduce(n, gk__reduce_tile<Item>::items, sizeof(gk__slot<Acc>));
    return gk__reduce({ctx.call, ctx.stream, &scratch}, input, record, n, operation, partitions);
  }
  cudaError_t reduce(gk__record<Acc> *record, std::false_type) const {
    const size_t max_blocks = GK__REDUCE_BYTES / sizeof(gk__record<Acc>), tile_items = gk__total_tile<Item>::items;
    const size_t items_per_block = gk_round_up(gk_ceil_div(n, max_blocks), tile_items);
    const size_t blocks = items_per_block ? gk_ceil_div(n, items_per_block) : 0;
    GK_TRY(gk__launch(ctx.call, gk__total_kernel<Item, Operator, Acc>, dim3(static_cast<unsigned>(blocks)),
                      dim3(GK__TOTAL_THREADS), 0, ctx.stream, input, n, items_per_block, operation, records()));
    return gk__fold_records(ctx, records(), blocks, operation, record);
  }

  /* *output = the fold of the first record_count ranks' records. Other ranks may need the record of this one. */
  template <class Commutes, class Out>
  cudaError_t launch(Commutes commutes, bool needs_record, int record_count, Out *output) const {
    if (needs_record) {
      gk__record<Acc> *const own = records() + ctx.rank;
      GK_TRY(reduce(own, commutes));
      if (gk__adds_index<Acc, Item>::value)
        GK_TRY(gk__launch(ctx.call, gk__item_count_kernel<gk__word16>, dim3(1), dim3(1), 0, ctx.stream,
                          own->words + gk__record<Acc>::word16_count - 1, n));
    } else if (ctx.rank_count > 1) { /* what is there may be a slot of an earlier call, with its epoch */
      GK_TRY(ctx.failed(cudaMemsetAsync(records() + ctx.rank, 0, sizeof(gk__record<Acc>), ctx.stream)));
    }
    if (ctx.rank_count > 1) GK_TRY(ctx.all_gather(records(), sizeof(gk__record<Acc>), ctx.stream));
    return gk__fold_records(ctx, records(), static_cast<size_t>(record_count), operation, output);
  }
  /* Chooses a scratch that has so many bytes and room for the records. The other ranks' devices can access a temporary
   * one. */
  cudaError_t begin(size_t bytes) {
    const size_t record_bytes = GK__STATE_BYTES + static_cast<size_t>(ctx.rank_count) * sizeof(gk__record<Acc>);
    if (bytes < record_bytes) bytes = record_bytes;
    if (given || ctx.rank_count == 1) return gk__choose_scratch({ctx.call, ctx.stream, given}, bytes, &scratch);
    scratch = gk_scratch{NULL, bytes, 0, ctx.device};
    GK_TRY(gk__dist_allocate(ctx, &scratch.ptr, bytes));
    const cudaError_t code = cudaMemsetAsync(scratch.ptr, 0, bytes, ctx.stream);
    return code == cudaSuccess ? code : end(ctx.failed(code));
  }
  cudaError_t end(cudaError_t status) const {
    return gk__free_temporary(status, given ? NULL : scratch.ptr, ctx.call, ctx.stream);
  }
};

template <class Input, class Output, class Operator>
cudaError_t gk_dist_reduce(const Input &input, Output &&output, size_t n, Operator operation, ncclComm_t comm,
                           cudaStream_t stream, const gk_scratch *scratch) {
  typedef gk__item_type<Input> Item;
  typedef typename gk__functor<Operator, Item>::reduce Functor;
  const Functor f = gk__functor_of<Functor>(operation);
  gk__dist_context ctx;
  GK_TRY(gk__dist_begin(&ctx, "gk_dist_reduce", comm, stream));
  GK_TRY(gk__begin_call(ctx.call, input, n, output, 1));
  gk__dist_fold<Item, Functor> fold = {ctx, gk__input_of(input), n, f, scratch, gk_scratch()};
  GK_TRY(fold.begin(gk_reduce_scratch_bytes()));
  return fold.end(fold.launch(std::true_type(), true, ctx.rank_count, gk__output_of(output)));
}

/* Where the scan of a piece starts: at the value and the index in a record. */
template <class Acc, bool AddsIndex> struct gk__dist_start {
  const gk__record<Acc> *record;
  GK__D Acc value() const { return record->value(); }
  GK__D size_t index() const { return AddsIndex ? record->item_count() : 0; }
};
template <class Input, class Output, class Operator>
cudaError_t gk__dist_scan(const char *call, bool inclusive, const Input &input, Output &output, size_t n,
                          const Operator &operation, ncclComm_t comm, cudaStream_t stream, const gk_scratch *scratch) {
  typedef gk__item_type<Input> Item;
  typedef gk__scan_functor<Operator, Output> Functor;
  typedef typename gk__working<Functor>::type Acc;
  const Functor f = gk__functor_of<Functor>(operation);
  gk__dist_context ctx;
  GK_TRY(gk__dist_begin(&ctx, call, comm, stream));
  GK_TRY(gk__begin_call(call, input, n, output, n));
  const gk__scan_plan plan = gk__plan_scan(n, gk__scan_item_bytes<Item, gk__item_type<Output>>());
  gk__dist_fold<Item, Functor> fold = {ctx, gk__input_of(input), n, f, scratch, gk_scratch()};
  GK_TRY(fold.begin(gk__scan_bytes(plan, sizeof(gk__slot<Acc>))));
  const gk__dist_start<Acc, gk__adds_index<Acc, Item>::value> start = {fold.records()};
  const bool needs_record = ctx.rank + 1 < ctx.rank_count; /* no rank uses that of the last one */
  cudaError_t status = fold.launch(gk__commutes<Functor>(), needs_record, ctx.rank, fold.records());
  if (status == cudaSuccess)
    status = gk__scan({call, stream, &fold.scratch}, gk__input_of(input), gk__output_of(output), n, f, start, inclusive,
                      plan);
  return fold.end(status);
}
template <class Input, class Output, class Operator>
cudaError_t gk_dist_scan_inclusive(const Input &input, Output &&output, size_t n, Operator operation, ncclComm_t comm,
                                   cudaStream_t stream, const gk_scratch *scratch) {
  return gk__dist_scan("gk_dist_scan_inclusive", true, input, output, n, operation, comm, stream, scratch);
}
template <class Input, class Output, class Operator>
cudaError_t gk_dist_scan_exclusive(const Input &input, Output &&output, size_t n, Operator operation, ncclComm_t comm,
                                   cudaStream_t stream, const gk_scratch *scratch) {
  return gk__dist_scan("gk_dist_scan_exclusive", false, input, output, n, operation, comm, stream, scratch);
}

/* --- Waiting -----------------------------------------------------------------------------------------------------*/

inline unsigned long long gk__now_ms() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<unsigned long long>(t.tv_sec) * 1000 + static_cast<unsigned long long>(t.tv_nsec) / 1000000;
}

inline cudaError_t gk_dist_wait(ncclComm_t comm, cudaStream_t stream, unsigned timeout_ms, bool abort_comm) {
  const gk__dist_context ctx = {"gk_dist_wait", comm, stream, 0, 0, 0};
  const unsigned long long begin_ms = gk__now_ms();
  unsigned long long waited_ms = 0;
  cudaError_t code = cudaSuccess;
  const char *cause = NULL, *outcome = "the communicator has not been aborted, and the stream may wait for ever";
  gk__clear_detail();
  if (!comm) return GK__INVALID("%s: the communicator is NULL", ctx.call);
  int device = 0, current = 0; /* ncclCommCuDevice may return an error of the communicator, which is found below */
  GK_TRY(ctx.failed(cudaGetDevice(&current)));
  if (ncclCommCuDevice(comm, &device) == ncclSuccess && device != current)
    return gk__fail(cudaErrorInvalidDevice, "%s: the communicator is that of device %d, but device %d is current",
                    ctx.call, device, current);
  for (unsigned polls = 0; !cause; polls++) {
    const struct timespec pause = {0, 50000};
    if (polls > 100) nanosleep(&pause, NULL); /* not sooner, so that short waits stay short */
    /* The clock is read before the stream is queried, so work that ended in time is never reported as late. */
    waited_ms = gk__now_ms() - begin_ms;
    const cudaError_t earlier = cudaPeekAtLastError();
    code = cudaStreamQuery(stream);
    if (code != cudaSuccess) gk__forget_error(earlier);
    const bool is_captured = code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread;
    if (code == cudaErrorInvalidResourceHandle || is_captured) return ctx.failed(code);
    if (code != cudaSuccess && code != cudaErrorNotReady) {
      cause = cudaGetErrorString(code);
      outcome = "the communicator has not been aborted"; /* and the stream does not wait */
      break;
    }
    ncclResult_t async_error = ncclSuccess;
    const ncclResult_t queried = ncclCommGetAsyncError(comm, &async_error);
    if (queried == ncclInvalidArgument) return ctx.failed(queried, "ncclCommGetAsyncError"); /* no communicator */
    if (queried != ncclSuccess) async_error = queried;
    if (async_error != ncclSuccess && async_error != ncclInProgress) {
      code = cudaErrorUnknown;
      cause = ncclGetErrorString(async_error);
    } else if (code == cudaSuccess) {
      return cudaSuccess;
    } else if (waited_ms >= timeout_ms) {
      code = cudaErrorTimeout;
      cause = "the stream still waits, perhaps for a rank that has died or failed,";
    }
  }
  const ncclResult_t aborted = abort_comm ? ncclCommAbort(comm) : ncclSuccess;
  const bool abort_failed = aborted != ncclSuccess;
  if (abort_comm) outcome = "the communicator has been aborted, and may not be used any more";
  if (abort_failed) outcome = "ncclCommAbort failed, too: ";
  return gk__fail(code, "%s: %s after %llu ms; %s%s; the results of the work on the stream are not valid", ctx.call,
                  cause, waited_ms, outcome, abort_failed ? ncclGetErrorString(aborted) : "");
}

/* --- Matmul -------------------------------------------------------------------------------------------------------
 * A part is a group of adjacent columns of B with all k rows of them. So an element of C is computed by one product,
 * without adding up partials: the product of A and a part is the call that one GPU would make.
 *
 * The buffer has two stages, each with room for a part. While the part in one stage is multiplied, the communication
 * stream fills the other. And products alternate between the call's stream and a second one, so that the first blocks
 * of one product run beside the last blocks of the product before. */

/* The columns of a part: an eighth of B's, since nothing hides the transfer of the first part; but at least 1024, in
 * multiples of 256, so that a part's product fills a GPU. */
inline size_t gk__dist_columns(size_t n, size_t columns) {
  const size_t eighth = gk_round_up(gk_ceil_div(n, size_t(8)), size_t(256));
  if (columns == 0) columns = eighth < 1024 ? 1024 : eighth;
  return columns < n ? columns : n;
}
inline size_t gk_dist_matmul_buffer_bytes(size_t n, size_t k, size_t item_bytes, size_t columns) {
  const size_t part_columns = gk__dist_columns(n, columns), stages = part_columns < n ? 2 : 1;
  const size_t stage_bytes = gk__saturated_product(k, gk__saturated_product(part_columns, item_bytes));
  return stage_bytes > static_cast<size_t>(-1) / 2 ? 0 : stage_bytes * stages;
}

/* B, of which each rank has some rows, and the streams, events and buffer that gather it. */
struct gk__dist_b {
  const gk__dist_context &ctx;
  const gk_dist_matmul_opts &opts;
  const char *b;
  size_t n, k, item_bytes;
  size_t part_columns;                     /* of each part; the last one may have fewer */
  char *buffer = NULL;                     /* two stages of k rows of part_columns elements */
  cudaStream_t comm_stream, second_stream; /* the second is the call's own unless products alternate */
  cudaStream_t owned[2];                   /* created for the call */
  cudaEvent_t events[3];                   /* 0 and 1: the product has read this stage; 2: for wait_for */
  int owned_count = 0, event_count = 0;
  bool equal_rows = true; /* all ranks have the same number */

  gk__dist_b(const gk__dist_context &call, const gk_dist_matmul_opts &options, const void *own_rows,
             size_t columns_of_b, size_t rows_of_b, size_t bytes)
      : ctx(call), opts(options), b(static_cast<const char *>(own_rows)), n(columns_of_b), k(rows_of_b),
        item_bytes(bytes), part_columns(gk__dist_columns(n, options.columns)) {}
  size_t part_count() const { return gk_ceil_div(n, part_columns); }
  size_t columns(size_t part) const {
    const size_t remaining = n - part * part_columns;
    return remaining < part_columns ? remaining : part_columns;
  }
  char *stage(size_t part) const { return buffer + part % 2 * k * part_columns * item_bytes; }
  gk_dist_piece rows_of(int rank) const {
    if (!opts.rank_rows) return gk_dist_split(k, ctx.rank_count, rank);
    gk_dist_piece piece = {0, opts.rank_rows[rank]};
    for (int r = 0; r < rank; r++) piece.first_index += opts.rank_rows[r];
    return piece;
  }
  /* Checks what gk_matmul_ex does not, since that reads the buffer instead of b. */
  cudaError_t check(const void *c) {
    const size_t own_rows = rows_of(ctx.rank).item_count;
    size_t remaining = k;
    bool fits = true;
    for (int r = 0; r < ctx.rank_count; r++) {
      const size_t rank_rows = rows_of(r).item_count;
      fits = fits && rank_rows <= remaining;
      remaining -= rank_rows;
      equal_rows = equal_rows && rank_rows == own_rows;
    }
    if (opts.matmul.trans_b || opts.matmul.batch > 1)
      return GK__INVALID("%s: B may be neither transposed nor one of a batch", ctx.call);
    if (!fits || remaining != 0)
      return GK__INVALID("%s: the rows of B that the ranks have do not add up to k = %zu", ctx.call, k);
    if (own_rows == 0) return cudaSuccess;
    if (!b) return GK__INVALID("%s: b is NULL, but rank %d has %zu rows of B", ctx.call, ctx.rank, own_rows);
    if (reinterpret_cast<uintptr_t>(b) % item_bytes)
      return GK__INVALID("%s: b is not aligned to its elements' %zu bytes", ctx.call, item_bytes);
    if (opts.matmul.ldb && opts.matmul.ldb < n)
      return GK__INVALID("%s: ldb is %zu, but the rows of B have %zu elements (0: dense rows)", ctx.call,
                         opts.matmul.ldb, n);
    if (b == c) return GK__INVALID("%s: c is the same memory as b; it needs its own", ctx.call);
    return gk__check_memory(ctx.call, "b", b);
  }
  /* The caller's buffer, if it is large enough, or one that the call allocates. */
  cudaError_t choose_buffer() {
    const size_t bytes = gk_dist_matmul_buffer_bytes(n, k, item_bytes, opts.columns);
    void *ptr = opts.buffer;
    if (bytes == 0) return GK__INVALID("%s: B, %zu x %zu, is more than memory can address", ctx.call, k, n);
    if (opts.buffer && opts.buffer_bytes < bytes)
      return GK__INVALID("%s: the buffer has %zu bytes, but %zu are needed: gk_dist_matmul_buffer_bytes", ctx.call,
                         opts.buffer_bytes, bytes);
    if (reinterpret_cast<uintptr_t>(opts.buffer) % 16)
      return GK__INVALID("%s: the buffer is not aligned to 16 bytes", ctx.call);
    if (opts.buffer && opts.buffer == b) return GK__INVALID("%s: the buffer is the same memory as b", ctx.call);
    if (!opts.buffer) GK_TRY(gk__dist_allocate(ctx, &ptr, bytes));
    buffer = static_cast<char *>(ptr);
    return cudaSuccess;
  }
  /* Work enqueued on `waiting` from here on runs after the work that is on `stream` now. */
  cudaError_t wait_for(cudaStream_t waiting, cudaStream_t stream) const {
    const cudaError_t code = cudaEventRecord(events[2], stream);
    return code == cudaSuccess ? cudaStreamWaitEvent(waiting, events[2], 0) : code;
  }
  cudaError_t begin() {
    /* A scratch can serve one product at a time. With max_blocks, two at a time would exceed that limit. */
    const bool alternate = !opts.matmul.scratch && !opts.matmul.max_blocks && part_count() > 1;
    int least = 0, greatest = 0;
    comm_stream = opts.comm_stream;
    second_stream = alternate ? opts.second_stream : ctx.stream;
    if (!comm_stream) { /* of the highest priority, so that NCCL's few blocks do not queue behind a product's many */
      GK_TRY(ctx.failed(cudaDeviceGetStreamPriorityRange(&least, &greatest)));
      GK_TRY(ctx.failed(cudaStreamCreateWithPriority(&comm_stream, cudaStreamNonBlocking, greatest)));
      owned[owned_count++] = comm_stream;
    }
    if (alternate && !second_stream) {
      GK_TRY(ctx.failed(cudaStreamCreateWithFlags(&second_stream, cudaStreamNonBlocking)));
      owned[owned_count++] = second_stream;
    }
    for (; event_count < 3; event_count++)
      GK_TRY(ctx.failed(cudaEventCreateWithFlags(&events[event_count], cudaEventDisableTiming)));
    return ctx.failed(wait_for(comm_stream, ctx.stream));
  }
  /* After an error, too, the call's stream waits for the others: then the caller may use C, and the buffer may be
   * freed. CUDA keeps destroyed streams and events for as long as work needs them. */
  cudaError_t end(cudaError_t status) const {
    if (event_count == 3) {
      status = gk__first_error(status, wait_for(ctx.stream, second_stream), ctx.call);
      status = gk__first_error(status, wait_for(ctx.stream, comm_stream), ctx.call);
    }
    for (int i = 0; i < event_count; i++) status = gk__first_error(status, cudaEventDestroy(events[i]), ctx.call);
    for (int i = 0; i < owned_count; i++) status = gk__first_error(status, cudaStreamDestroy(owned[i]), ctx.call);
    return opts.buffer ? status : gk__first_error(status, cudaFreeAsync(buffer, ctx.stream), ctx.call);
  }
  /* Fills the stage of a part on the communication stream: this rank's rows by a copy, the others by NCCL. Ranks with
   * different numbers of rows take a broadcast each, since an all-gather wants equal ones. */
  cudaError_t gather(size_t part) const {
    const size_t ldb = opts.matmul.ldb ? opts.matmul.ldb : n, row_bytes = columns(part) * item_bytes;
    const gk_dist_piece own = rows_of(ctx.rank);
    if (own.item_count)
      GK_TRY(ctx.failed(cudaMemcpy2DAsync(stage(part) + own.first_index * row_bytes, row_bytes,
                                          b + part * part_columns * item_bytes, ldb * item_bytes, row_bytes,
                                          own.item_count, cudaMemcpyDeviceToDevice, comm_stream)));
    if (equal_rows) return ctx.all_gather(stage(part), own.item_count * row_bytes, comm_stream);
    GK_TRY(ctx.failed(ncclGroupStart(), "ncclGroupStart"));
    cudaError_t status = cudaSuccess;
    for (int r = 0; r < ctx.rank_count && status == cudaSuccess; r++) {
      const gk_dist_piece piece = rows_of(r);
      char *const piece_rows = stage(part) + piece.first_index * row_bytes;
      const size_t bytes = piece.item_count * row_bytes;
      if (bytes)
        status = ctx.failed(ncclBroadcast(piece_rows, piece_rows, bytes, ncclUint8, r, ctx.comm, comm_stream),
                            "ncclBroadcast");
    }
    /* A group that was opened has to be closed, after an error, too. */
    const ncclResult_t ended = ncclGroupEnd();
    return status == cudaSuccess ? ctx.failed(ended, "ncclGroupEnd") : status;
  }
};

template <class Item, class Out> cudaError_t gk__multiply_parts(gk__dist_b *whole, const Item *a, Out *c, size_t m) {
  const gk__dist_context &ctx = whole->ctx;
  const auto part_of_b = [whole](size_t part) { return reinterpret_cast<const Item *>(whole->stage(part)); };
  const auto part_of_c = [whole, c, m](size_t part) { return m ? c + part * whole->part_columns : c; };
  gk_matmul_opts opts = whole->opts.matmul;
  if (!opts.ldc) opts.ldc = whole->n;
  /* A call is refused before anything is launched if the product of any part would be refused. */
  for (size_t part = 0; part < whole->part_count(); part++) {
    gk_matmul_path path;
    opts.ldb = whole->columns(part);
    GK_TRY(gk_matmul_plan(a, part_of_b(part), part_of_c(part), m, opts.ldb, whole->k, &opts, &path));
    GK_TRY(gk__check_scratch("gk_matmul", opts.scratch, path.scratch_bytes));
    GK_TRY(gk__check_work_area(opts.scratch, path.work_bytes));
  }
  GK_TRY(whole->begin());
  for (size_t part = 0; part < whole->part_count(); part++) {
    const cudaStream_t stream = part % 2 ? whole->second_stream : ctx.stream;
    const cudaEvent_t consumed = whole->events[part % 2];
    opts.ldb = whole->columns(part);
    if (part > 1) GK_TRY(ctx.failed(cudaStreamWaitEvent(whole->comm_stream, consumed, 0)));
    GK_TRY(whole->gather(part));
    GK_TRY(ctx.failed(whole->wait_for(stream, whole->comm_stream)));
    GK_TRY(gk_matmul_ex(a, part_of_b(part), part_of_c(part), m, opts.ldb, whole->k, &opts, stream));
    GK_TRY(ctx.failed(cudaEventRecord(consumed, stream)));
  }
  return cudaSuccess;
}

template <class InputA, class InputB, class Output>
cudaError_t gk_dist_matmul(const InputA &a, const InputB &b, Output &&c, size_t m, size_t n, size_t k, ncclComm_t comm,
                           cudaStream_t stream, const gk_dist_matmul_opts *opts) {
  const gk_dist_matmul_opts options = opts ? *opts : gk_dist_matmul_opts();
  gk__dist_context ctx;
  GK_TRY(gk__dist_begin(&ctx, "gk_dist_matmul", comm, stream));
  gk__dist_b whole(ctx, options, gk__pointer_to(b), n, k, sizeof(gk__item_type<InputA>));
  GK_TRY(gk__check_product_sizes(a, gk__pointer_to(b), c, m, n, k, options.matmul)); /* of B a rank has a part */
  GK_TRY(whole.check(gk__pointer_to(c)));
  if (ctx.rank_count == 1 || n == 0 || k == 0) return gk_matmul_ex(a, b, c, m, n, k, &options.matmul, stream);
  GK_TRY(
      gk__check_size(ctx.call, "B", b, gk__matrix_extent(whole.rows_of(ctx.rank).item_count, n, options.matmul.ldb)));
  GK_TRY(whole.choose_buffer());
  return whole.end(gk__multiply_parts(&whole, gk__input_of(a), gk__output_of(c), m));
}
#endif /* GPUKIT_NCCL */

} // GK__NAMESPACE(KERNELS)
#endif /* GK__KERNELS */

#ifdef __cplusplus
} /* extern "C++" */
#endif

/* ====================================================================================================================
 * 22. IMPLEMENTATION: the host functions of section 3, in the file that defines GPUKIT_IMPLEMENTATION
 *
 * SEVERAL COPIES IN ONE PROGRAM. A program may contain copies of gpukit that differ: in their version, in the
 * architectures they are compiled for, in their macros. The linker must not take a function of one for that of another.
 *
 *   C++      Host functions, their types, gk_array, gk_arg and gk_allclose are in an inline namespace named after the
 *            version and GPUKIT_TAG. Symbols of host functions begin with GK__NEEDED (section 2). Other templates and
 *            kernels are in a namespace that is also named after the architectures and the meaning of stream 0. So
 *            files for different architectures share an implementation, while each version needs its own and calls no
 *            other. (Hence do not declare types of gpukit yourself, not even forward: those would be other types.)
 *   C        A C function has one name in all versions, so only one implementation in a program may have GPUKIT_C_API.
 *            Each C file refers to GK__C_API, so that linking fails if that implementation is of another version.
 *   Tags     A library that uses gpukit internally defines the same GPUKIT_TAG in all of its files, one that no other
 *            library has, and is then independent of the program's copy. Files also need a tag of their own if they are
 *            compiled with flags that the preprocessor cannot see: --use_fast_math, PTX alone instead of machine code,
 *            sm_90 instead of sm_90a (which lacks wgmma). Otherwise the linker may merge their kernels with those of
 *            other files. It does so before CUDA 13, and with -static-global-template-stub=false.
 *
 * This section is outside of the include guard, so that a file may define the macro before any of its inclusions of
 * this file. GPUKIT_IMPLEMENTED ensures that it is compiled once.
 *
 * Errors. A function that fails calls gk__fail, which writes the detail into memory of the thread and returns the
 * status. GK_CHECK and the other macros pass a status of CUDA to gk__check. That decides whether the thread's detail is
 * about this status, adds CUDA's message and a hint, and calls the handler. The status of another library, or of
 * GK_CHECK_STATUS, has neither detail nor hint. It is passed to gk__check_status, which calls the handler.
 *
 * From above: the declarations of sections 3 and 14; what a scan or a product needs of a scratch (sections 18 and 19);
 * for C's typed calls the templates of sections 4, 10 and 11.
 * ==================================================================================================================*/
#endif /* GPUKIT_CUH */
#if defined(GPUKIT_NCCL) && defined(__cplusplus) && !defined(GK__NCCL)
#error "GPUKIT_NCCL: define it before gpukit.cuh is included for the first time"
#endif

#if defined(GPUKIT_IMPLEMENTATION) && !defined(GK__KERNELS)
#error                                                                                                                 \
    "GPUKIT_IMPLEMENTATION belongs in a .cu file: compile it with nvcc (or with the CPU stand-in on the include path)"
#endif

/* Editors define one of the last five. They are shown the implementation, which would otherwise be greyed out. */
#if defined(GK__KERNELS) && !defined(GPUKIT_IMPLEMENTED) &&                                                            \
    (defined(GPUKIT_IMPLEMENTATION) || defined(__INTELLISENSE__) || defined(__CLANGD__) ||                             \
     defined(__JETBRAINS_IDE__) || defined(__CDT_PARSER__) || defined(Q_CREATOR_RUN))
#define GPUKIT_IMPLEMENTED
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef GPUKIT_NVTX
#include <nvtx3/nvToolsExt.h>
#endif
#ifdef GPUKIT_C_API
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#endif

extern "C++" {
GK__NAMESPACE(HOST) {

/* --- Errors ------------------------------------------------------------------------------------------------------*/

static thread_local char gk__detail[512]; /* of the last failure, also after later successes */
static thread_local int gk__detail_code;  /* the status that the detail explains */
static thread_local bool gk__detail_is_of_last_call;
/* A check reports the detail only if it was written while the checked expression ran, so the details of a thread are
 * counted. A checked expression may itself contain checks; gk__outer_check_start is the count at the start of the check
 * around the current one, which becomes the current one again. With three nested checks the outermost may miss a
 * detail, but no check reports one that is older than itself. */
static thread_local size_t gk__detail_count;      /* details written so far */
static thread_local size_t gk__check_start;       /* their number at the start of the current check */
static thread_local size_t gk__outer_check_start; /* and of the one around it */

struct gk__handler {
  gk_error_handler function;
  void *user;
};
/* Returns the handler and its user pointer, and sets them unless `next` is NULL. They are read and written together,
 * under a spin lock. */
static gk__handler gk__exchange_handler(const gk__handler *next) {
  static std::atomic_flag locked = ATOMIC_FLAG_INIT;
  static gk__handler current;
  while (locked.test_and_set(std::memory_order_acquire)) {}
  const gk__handler before = current;
  if (next) current = *next;
  locked.clear(std::memory_order_release);
  return before;
}

GPUKIT_DEF void gk_set_error_handler(gk_error_handler handler, void *user) {
  const gk__handler next = {handler, user};
  gk__exchange_handler(&next);
}

GPUKIT_DEF const char *gk_error_detail(void) { return gk__detail_is_of_last_call ? gk__detail : ""; }

/* Debug mode: the environment has GPUKIT_DEBUG with a value other than 0. */
static bool gk__debug(void) {
  static const bool enabled = getenv("GPUKIT_DEBUG") && strcmp(getenv("GPUKIT_DEBUG"), "0") != 0;
  return enabled;
}

/* A GPU does not say which kernel had a fault, so the hint says how to find out. The CPU stand-in has named kernel and
 * thread already. */
#define GK__FAULT(text)                                                                                                \
  gk__debug() ? text ": compute-sanitizer tells the line"                                                              \
              : text ": rerun with GPUKIT_DEBUG=1 to learn which, then under compute-sanitizer for the line"
#define GK__NO_GPU "without a GPU: make cpu FILE=program.cu, where gpukit's Makefile is"
GPUKIT_DEF const char *gk_error_hint(cudaError_t code) {
  switch (code) {
#ifndef CUDA_ON_CPU
  case cudaErrorIllegalAddress: return GK__FAULT("a kernel went out of bounds");
  case cudaErrorMisalignedAddress: return GK__FAULT("a kernel dereferenced a pointer that is not aligned to its type");
  case cudaErrorLaunchFailure:
  case cudaErrorIllegalInstruction: return GK__FAULT("a kernel died");
#endif
  case cudaErrorNoDevice:
    return "no GPU is visible: see what nvidia-smi lists, and what CUDA_VISIBLE_DEVICES leaves of it; " GK__NO_GPU;
  case cudaErrorInsufficientDriver: return "no NVIDIA driver here, or older than this CUDA; " GK__NO_GPU;
  case cudaErrorInitializationError: return "CUDA could not start: a fork() after the first CUDA call is a usual cause";
  case cudaErrorInvalidDevice: return "device numbers go from 0 to cudaGetDeviceCount - 1";
  case cudaErrorMemoryAllocation: return "the device is out of memory: gk_device_print(-1) shows how much it has";
  case cudaErrorInvalidValue:
    return "an argument is out of range; in a launch often a block of more than 1024 threads, a grid of more than "
           "65535 in y or z, or too much shared memory";
  case cudaErrorInvalidConfiguration:
    return "a block has 1 to 1024 threads (z up to 64), a grid at least one block and at most 65535 in y and z";
  case cudaErrorLaunchOutOfResources:
    return "too many registers for so large a block: use a smaller one (gk_block_for), or __launch_bounds__ on the "
           "kernel";
  case cudaErrorNoKernelImageForDevice:
    return "the binary has no code for this GPU: build with -arch=native, or -gencode arch=compute_XY,code=sm_XY for "
           "X.Y";
  case cudaErrorInvalidDeviceFunction:
    return "not a kernel of this binary, or one without code for this GPU: see nvcc's -arch";
  case cudaErrorUnsupportedPtxVersion:
    return "the PTX is newer than the driver: update it, or build for this GPU's own sm_XY";
  case cudaErrorHardwareStackError: return "a kernel overran its stack: deep recursion? see cudaDeviceSetLimit";
  case cudaErrorAssert: return "an assert() in a kernel failed; it printed where";
  case cudaErrorLaunchTimeout: return "a kernel ran longer than the display's watchdog allows: split its work";
  case cudaErrorInvalidResourceHandle: return "a stream or event that was destroyed, or that belongs to another device";
  case cudaErrorNotReady: return "not an error: the work asked about has not finished yet";
  case cudaErrorStreamCaptureUnsupported:
    return "this call may not be made while the stream is being captured into a graph";
  case cudaErrorStreamCaptureImplicit:
    return "the legacy default stream may not be used while another stream is captured: create streams with "
           "cudaStreamNonBlocking";
  case cudaErrorInvalidMemcpyDirection:
    return "the direction of the copy does not fit the pointers: cudaMemcpyDefault decides by itself";
  default: return "";
  }
}
#undef GK__FAULT
#undef GK__NO_GPU

/* Errors that lose the device's context: every later call returns them, whatever it does. The last four are given by
 * number, since not every CUDA from 12.0 on declares their names. */
static bool gk__is_sticky(cudaError_t code) {
  enum { contained = 226, tensor_memory_leak = 721, mps_client_terminated = 810, external_device = 911 };
  const int number = static_cast<int>(code);
  return code == cudaErrorIllegalAddress || code == cudaErrorLaunchFailure || code == cudaErrorAssert ||
         code == cudaErrorIllegalInstruction || code == cudaErrorMisalignedAddress ||
         code == cudaErrorHardwareStackError || code == cudaErrorInvalidAddressSpace || code == cudaErrorInvalidPc ||
         code == cudaErrorLaunchTimeout || code == cudaErrorECCUncorrectable || number == contained ||
         number == tensor_memory_leak || number == mps_client_terminated || number == external_device;
}

GPUKIT_DEF void gk__clear_detail(void) { gk__detail_is_of_last_call = false; }

/* An argument may be the detail itself. */
GPUKIT_DEF cudaError_t gk__fail(cudaError_t code, const char *format, ...) {
  char detail[sizeof(gk__detail)];
  va_list list;
  va_start(list, format);
  vsnprintf(detail, sizeof(detail), format, list);
  va_end(list);
  memcpy(gk__detail, detail, sizeof(detail));
  gk__detail_code = code;
  gk__detail_is_of_last_call = true;
  gk__detail_count++;
  return code;
}

/* CUDA also keeps the error of a call as its last one. The call of gpukit returns it, so a later GK_CHECK_LAUNCH() must
 * not find it again. */
static void gk__forget_returned_error(cudaError_t code) {
  if (!gk__is_sticky(code) && cudaPeekAtLastError() == code) cudaGetLastError();
}
GPUKIT_DEF cudaError_t gk__failed(cudaError_t code, const char *what) {
  if (code == cudaSuccess) return code;
  if (gk__is_sticky(code))
    return gk__fail(code, "%s: this error is from work before this call; the device's context is lost with it", what);
  gk__forget_returned_error(code);
  return gk__fail(code, "%s: %s", what, cudaGetErrorString(code));
}
GPUKIT_DEF cudaError_t gk__failed_later(cudaError_t code, const char *what) {
  if (!gk__is_sticky(code)) return gk__failed(code, what);
  return gk__fail(code,
                  "%s: a kernel of this call has failed, or this error is from work before it; the device's context is "
                  "lost with it",
                  what);
}

GPUKIT_DEF cudaError_t gk__no_memory(cudaError_t code, const char *what, size_t bytes) {
  if (code != cudaErrorMemoryAllocation) return gk__failed(code, what);
  gk__forget_returned_error(code);
  return gk__fail(code, "%s: the device has no %zu bytes left", what, bytes);
}

/* Clears the detail, and refuses a call whose argument of this name is NULL. */
static cudaError_t gk__require(const char *call, const char *name, const void *argument) {
  gk__clear_detail();
  return argument ? cudaSuccess : GK__INVALID("%s: %s is NULL", call, name);
}

/* Passes an error to the handler; without one, to GPUKIT_ON_ERROR or to stderr. */
static void gk__report(const gk_error *error) {
  /* The lock is not held during the call of the handler, which may set another one or not return. */
  const gk__handler handler = gk__exchange_handler(NULL);
  if (handler.function) return handler.function(error, handler.user);
#ifdef GPUKIT_ON_ERROR
  GPUKIT_ON_ERROR(error);
#else
  fflush(stdout);
  fprintf(stderr, "%s:%d: %s: %s%s%s\n", error->file, error->line, error->expr, error->name,
          error->message[0] ? ": " : "", error->message);
  if (error->detail[0]) fprintf(stderr, "  detail: %s\n", error->detail);
  if (error->hint[0]) fprintf(stderr, "  hint: %s\n", error->hint);
  fflush(stderr);
  abort();
#endif
}

GPUKIT_DEF void gk__check_begin(void) {
  gk__outer_check_start = gk__check_start;
  gk__check_start = gk__detail_count;
}

/* The detail belongs to the error if it explains the same status and is new. If the expression has no call in it, it is
 * a status that was stored earlier, whose detail may be older than the check. */
GPUKIT_DEF cudaError_t gk__check(cudaError_t code, const char *expr, const char *file, int line) {
  const bool is_new = gk__detail_count != gk__check_start;
  const bool is_stored_status = !strchr(expr + strspn(expr, "( "), '(');
  gk__check_start = gk__outer_check_start;
  if (code == cudaSuccess) return code;
  const bool has_detail = gk__detail_code == static_cast<int>(code) && (is_new || is_stored_status);
  char detail[sizeof(gk__detail)];
  snprintf(detail, sizeof(detail), "%s", has_detail ? gk__detail : "");
  if (has_detail) gk__detail_code = cudaSuccess; /* reported once; it is not about the next error of this kind */
  const char *const name = cudaGetErrorName(code), *const message = cudaGetErrorString(code);
  /* The hint is about launches. The detail of a call says what is invalid. */
  const bool is_argument = code == cudaErrorInvalidValue && strncmp(detail, "gk_", 3) == 0;
  const char *const hint = is_argument ? "" : gk_error_hint(code);
  /* file: NULL if a caller's literal 0 was taken for it, as in array.copy_to(host, 0). */
  const gk_error error = {file ? file : "", line, expr, static_cast<int>(code), name, message, detail, hint};
  gk__report(&error);
  return code;
}

GPUKIT_DEF void gk__check_status(int code, const char *name, const char *message, const char *expr, const char *file,
                                 int line) {
  char number[32];
  snprintf(number, sizeof(number), "status %d", code);
  const gk_error error = {file, line, expr, code, name && name[0] ? name : number, message ? message : "", "", ""};
  gk__report(&error);
}

/* Waits for the stream in debug mode, but never for one that is being captured, nor for the legacy stream while a
 * blocking stream is: then cudaStreamIsCapturing fails. */
static cudaError_t gk__debug_wait(cudaStream_t stream) {
  if (!gk__debug()) return cudaSuccess;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t earlier = cudaPeekAtLastError(), code = cudaStreamIsCapturing(stream, &capture);
  if (gk__is_sticky(code)) return code; /* the kernel has failed already */
  if (code != cudaSuccess) gk__forget_error(earlier);
  if (code != cudaSuccess || capture != cudaStreamCaptureStatusNone) return cudaSuccess;
  return cudaStreamSynchronize(stream);
}

GPUKIT_DEF cudaError_t gk__check_launch(cudaStream_t stream, const char *file, int line) {
  gk__check_begin();
  cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) {
    if (gk__is_sticky(code))
      gk__failed(code, "CUDA's last error");
    else
      gk__fail(code, "CUDA's last error, now cleared: of this launch or of an earlier call that was not checked");
    return gk__check(code, "kernel launch", file, line);
  }
  code = gk__debug_wait(stream);
  if (code != cudaSuccess) gk__fail(code, "found by GPUKIT_DEBUG=1 when it waited for this kernel");
  return gk__check(code, "kernel", file, line);
}

static cudaError_t gk__device_attribute(const char *call, cudaDeviceAttr attribute, int *value) {
  int device = 0;
  GK_TRY(gk__failed(cudaGetDevice(&device), call));
  return gk__failed(cudaDeviceGetAttribute(value, attribute, device), call);
}

/* In debug mode only, since the query takes longer than many calls. Pageable memory is fine on systems whose GPU can
 * access all host memory. */
GPUKIT_DEF cudaError_t gk__check_memory(const char *call, const char *name, const void *ptr) {
  int pageable = 0;
  cudaPointerAttributes attributes;
  if (!ptr || !gk__debug()) return cudaSuccess;
  GK_TRY(gk__device_attribute(call, cudaDevAttrPageableMemoryAccess, &pageable));
  GK_TRY(gk__failed(cudaPointerGetAttributes(&attributes, ptr), call));
  if (pageable || attributes.type != cudaMemoryTypeUnregistered) return cudaSuccess;
  return GK__INVALID("%s: %s is not in device memory: copy it there first (cudaMalloc, cudaMemcpy)", call, name);
}

/* --- Launches ----------------------------------------------------------------------------------------------------*/

/* The kernel's name is the first of GK_LAUNCH's arguments: the text up to the first comma outside of brackets. All
 * other launches give the name of a call. */
struct gk__kernel_name {
  char text[80];
  explicit gk__kernel_name(const char *arguments) {
    int depth = 0, i = 0;
    for (; arguments[i] && (depth > 0 || arguments[i] != ','); i++) {
      if (strchr("([{", arguments[i])) depth++;
      if (strchr(")]}", arguments[i])) depth--;
    }
    snprintf(text, sizeof(text), "%.*s", i, arguments);
  }
};

/* The limit becomes what a block can have, and not what this launch needs: otherwise launches of the same kernel by
 * several threads would lower the limit for each other. */
static cudaError_t gk__raise_smem_limit(const void *kernel, const char *name, size_t smem, int *limit) {
  const gk__kernel_name kernel_name(name);
  const char *const call = kernel_name.text;
  int max_block_bytes = 0;
  cudaFuncAttributes attributes;
  GK_TRY(gk__failed(cudaFuncGetAttributes(&attributes, kernel), call));
  *limit = attributes.maxDynamicSharedSizeBytes;
  if (smem <= static_cast<size_t>(*limit)) return cudaSuccess;
  GK_TRY(gk__device_attribute(call, cudaDevAttrMaxSharedMemoryPerBlockOptin, &max_block_bytes));
  const int max_dynamic = max_block_bytes - static_cast<int>(attributes.sharedSizeBytes);
  if (smem > static_cast<size_t>(max_dynamic))
    return GK__INVALID("%s: %zu bytes of dynamic shared memory beside %zu static ones; a block of this device has %d",
                       call, smem, attributes.sharedSizeBytes, max_block_bytes);
  *limit = max_dynamic;
#if CUDART_VERSION >= 13000
  /* cudaFuncSetAttribute clears the last error, even one of the caller's. cudaKernelSetAttributeForDevice does not, but
   * it has no effect on a kernel whose attribute the program has set by cudaFuncSetAttribute. */
  if (cudaPeekAtLastError() != cudaSuccess) {
    int device = 0;
    cudaKernel_t handle = NULL;
    GK_TRY(gk__failed(cudaGetDevice(&device), call));
    GK_TRY(gk__failed(cudaGetKernel(&handle, kernel), call));
    return gk__failed(
        cudaKernelSetAttributeForDevice(handle, cudaFuncAttributeMaxDynamicSharedMemorySize, max_dynamic, device),
        call);
  }
#endif
  return gk__failed(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, max_dynamic), call);
}
GPUKIT_DEF cudaError_t gk__allow_smem(const void *kernel, gk__kernel_cache *cache, const char *name, size_t smem) {
  int limit = 0, device = 0;
  if (smem == 0) return cudaSuccess;
  if (cache) GK_TRY(gk__failed(cudaGetDevice(&device), name)); /* kernels with a cache have the name of a call */
  std::atomic<int> *const known = cache ? cache->smem_limit.of(device) : NULL;
  if (known && smem <= static_cast<size_t>(known->load(std::memory_order_acquire))) return cudaSuccess;
  GK_TRY(gk__raise_smem_limit(kernel, name, smem, &limit));
  if (known) known->store(limit, std::memory_order_release); /* after the driver knows it */
  return cudaSuccess;
}
GPUKIT_DEF cudaError_t gk__restore_smem_limit(cudaError_t code, const void *kernel, const char *name, size_t smem) {
  cudaFuncAttributes attributes;
  int limit = 0;
  if (gk__is_sticky(code)) return code;
  GK_TRY(cudaFuncGetAttributes(&attributes, kernel));
  if (smem <= static_cast<size_t>(attributes.maxDynamicSharedSizeBytes)) return code;
  gk__forget_returned_error(code);
  return gk__raise_smem_limit(kernel, name, smem, &limit);
}

/* Programmatic dependent launch: a kernel that starts early must contain gk__wait_for_earlier_work. Code compiled for
 * sm_90 or later does. Code that the driver compiles from older PTX does not, and would race with that work. Drivers
 * before 12.3 cannot capture such launches. */
GPUKIT_DEF cudaError_t gk__overlaps(gk__kernel_cache *cache, const void *kernel, unsigned *attribute_count) {
  signed char answer = 0;
  const cudaError_t code = cache->overlaps.get(&answer, [kernel](int device, signed char *found) -> cudaError_t {
    int major = 0, driver = 0;
    cudaFuncAttributes kernel_code;
    GK_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    GK_TRY(cudaDriverGetVersion(&driver));
    GK_TRY(cudaFuncGetAttributes(&kernel_code, kernel));
    *found = driver >= 12030 && major >= 9 && kernel_code.ptxVersion >= 90 ? 1 : -1;
    return cudaSuccess;
  });
  *attribute_count = answer > 0;
  return code;
}

/* Finds out why a launch of this shape failed, and says so in the detail. */
static cudaError_t gk__explain_launch_error(cudaError_t code, const void *kernel, const char *shape, dim3 grid_dim,
                                            dim3 block_dim) {
  const unsigned long long thread_count = static_cast<unsigned long long>(block_dim.x) * block_dim.y * block_dim.z;
  if (thread_count == 0) return gk__fail(code, "%s: the block is empty", shape);
  if (thread_count > 1024)
    return gk__fail(code, "%s: the block has %llu threads, but 1024 is the most", shape, thread_count);
  if (block_dim.z > 64) return gk__fail(code, "%s: a block has 64 threads in z at most", shape);
  if (grid_dim.x > 0x7fffffff || grid_dim.y > 65535 || grid_dim.z > 65535)
    return gk__fail(code, "%s: a grid has 2147483647 x 65535 x 65535 blocks at most", shape);
  /* This fails, too, if the device has no code for the kernel. */
  cudaFuncAttributes attributes = cudaFuncAttributes();
  const cudaError_t found = cudaFuncGetAttributes(&attributes, kernel);
  gk__forget_returned_error(found);
  if (found == cudaSuccess && thread_count > static_cast<unsigned long long>(attributes.maxThreadsPerBlock))
    return gk__fail(code, "%s: the block has %llu threads, but this kernel (%d registers a thread) can have %d", shape,
                    thread_count, attributes.numRegs, attributes.maxThreadsPerBlock);
  return gk__fail(code, "%s: %s", shape, cudaGetErrorString(code));
}
/* The number of kernels that this thread was the first to launch. The table holds the first few hundred kernels of the
 * program; others count as launched before. */
static thread_local unsigned gk__first_launches;
static void gk__count_first_launch(const void *kernel) {
  static std::atomic<const void *> known[512];
  const size_t hash = reinterpret_cast<uintptr_t>(kernel) / 16 % 512;
  for (size_t i = 0; i < 8; i++) {
    std::atomic<const void *> &entry = known[(hash + i) % 512];
    const void *found = entry.load(std::memory_order_relaxed);
    if (found == NULL && entry.compare_exchange_strong(found, kernel, std::memory_order_relaxed)) {
      gk__first_launches++;
      return;
    }
    if (found == kernel) return;
  }
}

GPUKIT_DEF cudaError_t gk__after_launch(cudaError_t code, const void *kernel, const char *name,
                                        const cudaLaunchConfig_t &launch) {
  const dim3 grid_dim = launch.gridDim, block_dim = launch.blockDim;
  if (code == cudaSuccess) gk__count_first_launch(kernel);
  if (code == cudaSuccess && !gk__debug()) return code;
  char shape[256];
  snprintf(shape, sizeof(shape), "%s: grid %u x %u x %u, block %u x %u x %u, %zu bytes of dynamic shared memory",
           gk__kernel_name(name).text, grid_dim.x, grid_dim.y, grid_dim.z, block_dim.x, block_dim.y, block_dim.z,
           launch.dynamicSmemBytes);
  if (code == cudaSuccess) {
    code = gk__debug_wait(launch.stream);
    if (code == cudaSuccess) return code;
    return gk__fail(code, "%s: GPUKIT_DEBUG=1 waited for this kernel, and it failed", shape);
  }
  if (gk__is_sticky(code)) return gk__failed(code, shape);
  gk__forget_returned_error(code);
  return gk__explain_launch_error(code, kernel, shape, grid_dim, block_dim);
}

/* --- Devices and occupancy ---------------------------------------------------------------------------------------*/

static void gk__describe_device(const cudaDeviceProp &properties, gk_device_info *info) {
  snprintf(info->name, sizeof(info->name), "%s", properties.name);
  info->major = properties.major;
  info->minor = properties.minor;
  info->sms = properties.multiProcessorCount;
  info->threads_per_warp = properties.warpSize;
  info->max_threads_per_block = properties.maxThreadsPerBlock;
  info->max_threads_per_sm = properties.maxThreadsPerMultiProcessor;
  info->max_blocks_per_sm = properties.maxBlocksPerMultiProcessor;
  info->max_block_x = properties.maxThreadsDim[0];
  info->max_block_y = properties.maxThreadsDim[1];
  info->max_block_z = properties.maxThreadsDim[2];
  info->max_grid_x = properties.maxGridSize[0];
  info->max_grid_y = properties.maxGridSize[1];
  info->max_grid_z = properties.maxGridSize[2];
  info->registers_per_block = properties.regsPerBlock;
  info->registers_per_sm = properties.regsPerMultiprocessor;
  info->shared_per_block = properties.sharedMemPerBlock;
  info->shared_per_block_optin = properties.sharedMemPerBlockOptin;
  info->shared_per_sm = properties.sharedMemPerMultiprocessor;
  info->shared_reserved_per_block = properties.reservedSharedMemPerBlock;
  info->constant_bytes = properties.totalConstMem;
  info->l2_bytes = static_cast<size_t>(properties.l2CacheSize);
  info->bus_bits = properties.memoryBusWidth;
  info->managed_memory = properties.managedMemory;
  info->memory_pools = properties.memoryPoolsSupported;
  info->cooperative_launch = properties.cooperativeLaunch;
  info->unified_addressing = properties.unifiedAddressing;
  info->integrated = properties.integrated;
  info->async_engines = properties.asyncEngineCount;
}
/* gk_device_query, on behalf of `call`. */
static cudaError_t gk__query_device(const char *call, int device, gk_device_info *info) {
  int device_count = 0, current = 0;
  cudaDeviceProp properties;
  GK_TRY(gk__require(call, "info", info));
  GK_TRY(gk__failed(cudaGetDeviceCount(&device_count), call));
  GK_TRY(gk__failed(cudaGetDevice(&current), call));
  if (device == -1) device = current;
  if (device < 0 || device >= device_count)
    return gk__fail(cudaErrorInvalidDevice, "%s: device %d of %d: the first one is 0", call, device, device_count);
  gk_device_info found = gk_device_info();
  found.device = device;
  GK_TRY(gk__failed(cudaGetDeviceProperties(&properties, device), call));
  gk__describe_device(properties, &found);
  /* CUDA 13 has no clocks in the properties. */
  GK_TRY(gk__failed(cudaDeviceGetAttribute(&found.clock_khz, cudaDevAttrClockRate, device), call));
  GK_TRY(gk__failed(cudaDeviceGetAttribute(&found.memory_khz, cudaDevAttrMemoryClockRate, device), call));
  /* Double data rate: two transfers in a clock. */
  found.peak_gbs = 2.0 * found.memory_khz * 1e3 * (found.bus_bits / 8.0) * 1e-9;
  /* cudaMemGetInfo is about the current device. */
  cudaError_t code = current != device ? cudaSetDevice(device) : cudaSuccess;
  if (code == cudaSuccess) code = cudaMemGetInfo(&found.free_bytes, &found.global_bytes);
  if (current != device) gk__forget_returned_error(cudaSetDevice(current));
  GK_TRY(gk__failed(code, call));
  *info = found;
  return cudaSuccess;
}
GPUKIT_DEF cudaError_t gk_device_query(int device, gk_device_info *info) {
  return gk__query_device(__func__, device, info);
}

GPUKIT_DEF cudaError_t gk_device_print(int device) {
  gk_device_info d = gk_device_info();
  GK_TRY(gk__query_device(__func__, device, &d));
  printf("device %d: %s, compute capability %d.%d\n", d.device, d.name, d.major, d.minor);
  printf("  %-34s %d x %.0f MHz\n", "multiprocessors", d.sms, d.clock_khz * 1e-3);
  printf("  %-34s %.1f GiB, %.1f free; peak %.0f GB/s (%d bits)\n", "global memory",
         static_cast<double>(d.global_bytes) / (1 << 30), static_cast<double>(d.free_bytes) / (1 << 30), d.peak_gbs,
         d.bus_bits);
  printf("  %-34s %.1f MiB\n", "L2 cache", static_cast<double>(d.l2_bytes) / (1 << 20));
  printf("  %-34s %d (warp %d); %d x %d x %d at most\n", "threads per block", d.max_threads_per_block,
         d.threads_per_warp, d.max_block_x, d.max_block_y, d.max_block_z);
  printf("  %-34s %d x %d x %d at most\n", "blocks per grid", d.max_grid_x, d.max_grid_y, d.max_grid_z);
  printf("  %-34s %d, %d\n", "threads, blocks per multiprocessor", d.max_threads_per_sm, d.max_blocks_per_sm);
  printf("  %-34s %d per block, %d per multiprocessor\n", "registers", d.registers_per_block, d.registers_per_sm);
  printf("  %-34s %zu bytes per block, %zu if asked for, %zu per multiprocessor\n", "shared memory", d.shared_per_block,
         d.shared_per_block_optin, d.shared_per_sm);
  printf("  %-34s %s managed memory, %s memory pools, %s cooperative launch, %d copy engines\n", "features",
         d.managed_memory ? "+" : "no", d.memory_pools ? "+" : "no", d.cooperative_launch ? "+" : "no",
         d.async_engines);
  return cudaSuccess;
}

GPUKIT_DEF cudaError_t gk_device_best(int *device) {
  int device_count = 0;
  GK_TRY(gk__require(__func__, "device", device));
  GK_TRY(gk__failed(cudaGetDeviceCount(&device_count), __func__));
  gk_device_info best = gk_device_info(), next = gk_device_info();
  for (int i = 0; i < device_count; i++) {
    const cudaError_t code = gk__query_device(__func__, i, &next);
    if (code != cudaSuccess && i == device_count - 1 && best.sms == 0) return code; /* none can be used */
    if (code != cudaSuccess) continue;
    const double speed = static_cast<double>(next.sms) * next.clock_khz;
    const double best_speed = static_cast<double>(best.sms) * best.clock_khz;
    if (speed > best_speed || (!(speed < best_speed) && next.free_bytes > best.free_bytes)) best = next;
  }
  gk__clear_detail(); /* of devices that cannot be used */
  *device = best.device;
  return cudaSuccess;
}

/* How many blocks an SM could hold if one resource alone limited them, and the resource that allows the fewest. */
static void gk__occupancy_limits(const gk_device_info &device, gk_occupancy_info *info) {
  const int partitions = 4, registers_unit = 256;
  const size_t smem_unit = 128;
  const int warps = gk_ceil_div(info->block_threads, device.threads_per_warp);
  info->max_warps_per_sm = device.max_threads_per_sm / device.threads_per_warp;
  info->by_threads = info->max_warps_per_sm / warps;
  info->by_blocks = info->by_registers = info->by_smem = device.max_blocks_per_sm;
  /* Registers are allocated to warps in units of 256. A warp runs on one of the four partitions of an SM, each of which
   * has a quarter of the registers. */
  const int warp_registers = gk_round_up(info->registers * device.threads_per_warp, registers_unit);
  if (warp_registers) info->by_registers = device.registers_per_sm / partitions / warp_registers * partitions / warps;
  const size_t used_smem = info->static_smem + info->dynamic_smem + device.shared_reserved_per_block;
  const size_t block_smem = gk_round_up(used_smem, smem_unit);
  if (block_smem) info->by_smem = static_cast<int>(device.shared_per_sm / block_smem);
  const int limits[] = {info->by_threads, info->by_blocks, info->by_registers, info->by_smem};
  static const char *const names[] = {"threads", "blocks", "registers", "shared memory"};
  int fewest_idx = 0;
  for (int i = 1; i < 4; i++)
    if (limits[i] < limits[fewest_idx]) fewest_idx = i;
  info->limit = names[fewest_idx];
}
GPUKIT_DEF cudaError_t gk_occupancy(const void *kernel, int block_threads, size_t smem, gk_occupancy_info *info) {
  gk_device_info device = gk_device_info();
  cudaFuncAttributes attributes;
  gk_occupancy_info found = gk_occupancy_info();
  GK_TRY(gk__require(__func__, "kernel", kernel));
  GK_TRY(gk__require(__func__, "info", info));
  GK_TRY(gk__query_device(__func__, -1, &device));
  if (block_threads < 1 || block_threads > device.max_threads_per_block)
    return GK__INVALID("%s: a block of %d threads; 1 to %d are possible", __func__, block_threads,
                       device.max_threads_per_block);
  GK_TRY(gk__allow_smem(kernel, NULL, __func__, smem));
  GK_TRY(gk__failed(cudaFuncGetAttributes(&attributes, kernel), __func__));
  GK_TRY(gk__failed(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found.blocks_per_sm, kernel, block_threads, smem),
                    __func__));
  found.block_threads = block_threads;
  found.dynamic_smem = smem;
  found.registers = attributes.numRegs;
  found.static_smem = attributes.sharedSizeBytes;
  gk__occupancy_limits(device, &found);
  found.warps_per_sm = found.blocks_per_sm * gk_ceil_div(block_threads, device.threads_per_warp);
  found.occupancy = static_cast<double>(found.warps_per_sm) / found.max_warps_per_sm;
  *info = found;
  return cudaSuccess;
}

GPUKIT_DEF cudaError_t gk_occupancy_print(const void *kernel, int block_threads, size_t smem) {
  gk_occupancy_info o = gk_occupancy_info();
  GK_TRY(gk_occupancy(kernel, block_threads, smem, &o));
  printf("occupancy %.0f %%: %d blocks of %d threads, %d of %d warps on a multiprocessor; limited by %s\n",
         100 * o.occupancy, o.blocks_per_sm, o.block_threads, o.warps_per_sm, o.max_warps_per_sm, o.limit);
  printf("  blocks that each resource allows: threads %d, blocks %d, registers (%d a thread) %d, "
         "shared memory (%zu bytes a block) %d\n",
         o.by_threads, o.by_blocks, o.registers, o.by_registers, o.static_smem + o.dynamic_smem, o.by_smem);
  return cudaSuccess;
}

GPUKIT_DEF cudaError_t gk_block_for(const void *kernel, size_t smem, int *block_threads) {
  cudaFuncAttributes attributes;
  GK_TRY(gk__require(__func__, "kernel", kernel));
  GK_TRY(gk__require(__func__, "block_threads", block_threads));
  GK_TRY(gk__allow_smem(kernel, NULL, __func__, smem));
  GK_TRY(gk__failed(cudaFuncGetAttributes(&attributes, kernel), __func__));
  /* The block size with the most resident threads per SM; of equal ones, the nearest to 256. */
  int best = 0, best_resident = 0;
  for (int candidate = 32; candidate <= attributes.maxThreadsPerBlock; candidate += 32) {
    int blocks = 0;
    GK_TRY(gk__failed(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, candidate, smem), __func__));
    const int resident = blocks * candidate;
    const bool nearer = abs(candidate - 256) < abs(best - 256);
    if (resident > best_resident || (resident == best_resident && nearer)) {
      best = candidate;
      best_resident = resident;
    }
  }
  if (!best_resident) return GK__INVALID("%s: no block fits with %zu bytes of shared memory", __func__, smem);
  *block_threads = best;
  return cudaSuccess;
}

GPUKIT_DEF cudaError_t gk_grid_shape(size_t w, size_t h, size_t d, const dim3 *block_dim, dim3 *grid_dim) {
  GK_TRY(gk__require(__func__, "block_dim", block_dim));
  GK_TRY(gk__require(__func__, "grid_dim", grid_dim));
  if (!block_dim->x || !block_dim->y || !block_dim->z)
    return gk__fail(cudaErrorInvalidConfiguration, "%s: the block is empty", __func__);
  const size_t x = gk_ceil_div(w, size_t(block_dim->x)), y = gk_ceil_div(h, size_t(block_dim->y)),
               z = gk_ceil_div(d, size_t(block_dim->z));
  if (x > 0x7fffffff || y > 65535 || z > 65535)
    return gk__fail(cudaErrorInvalidConfiguration,
                    "%s: %zu x %zu x %zu blocks; a grid has 2147483647 x 65535 x 65535 at most: loop in the kernel",
                    __func__, x, y, z);
  *grid_dim = dim3(static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z));
  return cudaSuccess;
}

/* --- Timing ------------------------------------------------------------------------------------------------------*/

enum { GK__TIMER_EMPTY, GK__TIMER_CREATED, GK__TIMER_STARTED, GK__TIMER_STOPPED };

/* Fails unless the timer has reached this state. */
static cudaError_t gk__check_timer(const gk_timer *timer, int state, const char *call) {
  GK_TRY(gk__require(call, "timer", timer));
  if (timer->state >= state) return cudaSuccess;
  const char *cause = "has not been stopped";
  if (timer->state == GK__TIMER_EMPTY) cause = "is empty: create it first";
  if (timer->state == GK__TIMER_CREATED) cause = "has not been started";
  return GK__INVALID("%s: the timer %s", call, cause);
}
/* Leaves the timer empty, even after an error. */
static cudaError_t gk__destroy_events(gk_timer *timer) {
  if (!timer->state) return cudaSuccess;
  const cudaError_t begin_code = cudaEventDestroy(timer->begin), end_code = cudaEventDestroy(timer->end);
  memset(timer, 0, sizeof(*timer));
  return begin_code != cudaSuccess ? begin_code : end_code;
}

GPUKIT_DEF cudaError_t gk_timer_create(gk_timer *timer) {
  GK_TRY(gk__require(__func__, "timer", timer));
  if (timer->state) return GK__INVALID("%s: the timer is not empty: destroy it first", __func__);
  gk_timer created = {NULL, NULL, 0, GK__TIMER_CREATED};
  GK_TRY(gk__failed(cudaEventCreate(&created.begin), __func__));
  const cudaError_t code = cudaEventCreate(&created.end);
  if (code == cudaSuccess)
    *timer = created;
  else
    gk__forget_returned_error(cudaEventDestroy(created.begin));
  return gk__failed(code, __func__);
}

GPUKIT_DEF cudaError_t gk_timer_start(gk_timer *timer, cudaStream_t stream) {
  GK_TRY(gk__check_timer(timer, GK__TIMER_CREATED, __func__));
  GK_TRY(gk__failed(cudaEventRecord(timer->begin, stream), __func__));
  timer->stream = stream;
  timer->state = GK__TIMER_STARTED;
  return cudaSuccess;
}

GPUKIT_DEF cudaError_t gk_timer_stop(gk_timer *timer) {
  GK_TRY(gk__check_timer(timer, GK__TIMER_STARTED, __func__));
  GK_TRY(gk__failed(cudaEventRecord(timer->end, timer->stream), __func__));
  timer->state = GK__TIMER_STOPPED;
  return cudaSuccess;
}

GPUKIT_DEF cudaError_t gk_timer_ready(gk_timer *timer, int *ready) {
  GK_TRY(gk__check_timer(timer, GK__TIMER_STOPPED, __func__));
  GK_TRY(gk__require(__func__, "ready", ready));
  const cudaError_t earlier = cudaPeekAtLastError(), code = cudaEventQuery(timer->end);
  if (code == cudaSuccess || code == cudaErrorNotReady) *ready = code == cudaSuccess;
  if (code != cudaErrorNotReady) return gk__failed(code, __func__);
  gk__forget_error(earlier);
  return cudaSuccess;
}

GPUKIT_DEF cudaError_t gk_timer_ms(gk_timer *timer, float *milliseconds) {
  GK_TRY(gk__check_timer(timer, GK__TIMER_STOPPED, __func__));
  GK_TRY(gk__require(__func__, "milliseconds", milliseconds));
  GK_TRY(gk__failed(cudaEventSynchronize(timer->end), __func__));
  return gk__failed(cudaEventElapsedTime(milliseconds, timer->begin, timer->end), __func__);
}

GPUKIT_DEF cudaError_t gk_timer_destroy(gk_timer *timer) {
  GK_TRY(gk__require(__func__, "timer", timer));
  return gk__failed(gk__destroy_events(timer), __func__);
}

GPUKIT_DEF gk__time_scope gk__time_begin(const char *label, cudaStream_t stream, double bytes, double flops,
                                         const char *file, int line) {
  gk__time_scope scope = {gk_timer(), "", file, line, 0, bytes, flops, gk__first_launches};
  snprintf(scope.label, sizeof(scope.label), "%s", label);
  gk__check_begin();
  cudaError_t code = gk_timer_create(&scope.timer);
  if (code == cudaSuccess) code = gk_timer_start(&scope.timer, stream);
  if (code != cudaSuccess) (void)gk__destroy_events(&scope.timer); /* the handler may throw */
  gk__check(code, "GK_TIME", file, line);
#ifdef GPUKIT_NVTX
  nvtxRangePushA(label);
#endif
  return scope;
}

GPUKIT_DEF int gk__time_next(gk__time_scope *scope) {
  if (!scope->runs++) return 1;
#ifdef GPUKIT_NVTX
  nvtxRangePop();
#endif
  if (!scope->timer.state) return 0; /* the start has failed, and was reported */
  float milliseconds = 0;
  gk__check_begin();
  cudaError_t code = gk_timer_stop(&scope->timer);
  if (code == cudaSuccess) code = gk_timer_ms(&scope->timer, &milliseconds);
  if (code == cudaSuccess) {
    const double elapsed = static_cast<double>(milliseconds);
    printf("%s: %.3f ms", scope->label, elapsed);
    if (scope->bytes > 0 && elapsed > 0) printf(", %.1f GB/s", scope->bytes / elapsed * 1e-6);
    if (scope->flops > 0 && elapsed > 0) printf(", %.1f GFLOP/s", scope->flops / elapsed * 1e-6);
    printf("%s\n", scope->first_launches != gk__first_launches ? " (with the first launch of a kernel)" : "");
  }
  code = gk__first_error(code, gk__destroy_events(&scope->timer), "gk_timer_destroy");
  gk__check(code, "GK_TIME", scope->file, scope->line);
  return 0;
}

static int gk__compare_doubles(const void *x, const void *y) {
  const double a = *static_cast<const double *>(x), b = *static_cast<const double *>(y);
  return (a > b) - (a < b);
}
/* Sorts the values. */
static double gk__median(double *values, int value_count) {
  qsort(values, static_cast<size_t>(value_count), sizeof(double), gk__compare_doubles);
  return value_count % 2 ? values[value_count / 2] : (values[value_count / 2 - 1] + values[value_count / 2]) / 2;
}

/* A bench: functions whose samples are interleaved, so that a drift of the clocks affects all of them equally. It frees
 * what it owns, also if a function throws. */
struct gk__bench {
  const char *call; /* gk_bench or gk_bench_compare */
  const gk_bench_fn *functions;
  void *const *users; /* NULL: none has user data */
  int function_count;
  gk_bench_opts opts; /* with the defaults filled in, except for calls */
  double peak_gbs;
  gk_timer timer;
  size_t next_call;  /* number of all calls so far: the next one gets buffer next_call % buffers */
  double *sample_ms; /* opts.samples for each function, one function after the other, and as many to work with */
  gk_bench_result *results;
  double *samples_of(int f) const { return sample_ms + static_cast<size_t>(f) * static_cast<size_t>(opts.samples); }
  ~gk__bench() {
    (void)gk__destroy_events(&timer);
    free(sample_ms);
    free(results);
  }
};

/* Calls one function of a bench. If it fails, the error has the detail of the gk_ call that failed in it, but no older
 * detail, and not that of an error which it recovered from (unless both have the same code). */
static cudaError_t gk__bench_call(gk__bench *bench, int f) {
  const size_t details_before = gk__detail_count;
  void *const user = bench->users ? bench->users[f] : NULL;
  const cudaError_t code = bench->functions[f](user, bench->opts.stream, bench->next_call++ % bench->opts.buffers);
  if (code == cudaSuccess) return code;
  const bool has_detail = gk__detail_count != details_before && gk__detail_code == static_cast<int>(code);
  char name[32] = "the function to measure";
  if (bench->function_count > 1) snprintf(name, sizeof(name), "function %d", f);
  return gk__fail(code, "%s: %s failed: %s%s%s", bench->call, name, cudaGetErrorString(code),
                  has_detail ? "; its last gk_ call said: " : "", has_detail ? gk__detail : "");
}

/* One sample: this many calls back to back; *milliseconds is the time of one call. */
static cudaError_t gk__bench_sample(gk__bench *bench, int f, int calls, double *milliseconds) {
  float elapsed = 0;
  GK_TRY(gk_timer_start(&bench->timer, bench->opts.stream));
  for (int i = 0; i < calls; i++) GK_TRY(gk__bench_call(bench, f));
  GK_TRY(gk__failed_later(gk_timer_stop(&bench->timer), bench->call));
  GK_TRY(gk__failed_later(gk_timer_ms(&bench->timer, &elapsed), bench->call));
  *milliseconds = static_cast<double>(elapsed) / calls;
  return cudaSuccess;
}

/* Warms a function up, and chooses how many calls make a sample: a millisecond's worth, from 1 to 1000. */
static cudaError_t gk__bench_prepare(gk__bench *bench, int f) {
  double milliseconds = 0;
  int *const calls = &bench->results[f].calls;
  GK_TRY(gk__bench_sample(bench, f, bench->opts.warmup, &milliseconds));
  *calls = bench->opts.calls;
  if (*calls > 0) return cudaSuccess;
  GK_TRY(gk__bench_sample(bench, f, 3, &milliseconds));
  const double calls_per_ms = milliseconds < 1e-3 ? 1000 : 1 / milliseconds;
  *calls = calls_per_ms > 1 ? static_cast<int>(calls_per_ms) : 1;
  return cudaSuccess;
}

/* The statistics of a function's samples, which are compared with those of the first function, one by one. */
static void gk__bench_summary(const gk__bench *bench, int f) {
  const int sample_count = bench->opts.samples;
  const double *const first_ms = bench->samples_of(0), *const own_ms = bench->samples_of(f);
  double *const work = bench->samples_of(bench->function_count);
  gk_bench_result *const result = &bench->results[f];
  double sum = 0, squares = 0;
  for (int i = 0; i < sample_count; i++) {
    work[i] = own_ms[i];
    sum += own_ms[i];
  }
  result->samples = sample_count;
  result->median_ms = gk__median(work, sample_count);
  result->min_ms = work[0];
  result->mean_ms = sum / sample_count;
  for (int i = 0; i < sample_count; i++) squares += (own_ms[i] - result->mean_ms) * (own_ms[i] - result->mean_ms);
  result->stddev_ms = sample_count > 1 ? sqrt(squares / (sample_count - 1)) : 0;
  for (int i = 0; i < sample_count; i++) work[i] = first_ms[i] > 0 ? own_ms[i] / first_ms[i] : 1;
  result->ratio = gk__median(work, sample_count);
  for (int i = 0; i < sample_count; i++) work[i] = fabs(own_ms[i] - result->median_ms);
  if (result->median_ms > 0) {
    result->noise = gk__median(work, sample_count) / result->median_ms;
    result->gbs = bench->opts.bytes / result->median_ms * 1e-6;
    result->gflops = bench->opts.flops / result->median_ms * 1e-6;
  }
  if (bench->peak_gbs > 0) result->peak_percent = 100 * result->gbs / bench->peak_gbs;
}

/* All samples, and the results. The order of the functions alternates, so that none always runs after the same one. */
static cudaError_t gk__bench_measure(gk__bench *bench) {
  const int function_count = bench->function_count, sample_count = bench->opts.samples;
  for (int f = 0; f < function_count; f++) GK_TRY(gk__bench_prepare(bench, f));
  for (int i = 0; i < sample_count; i++) {
    for (int j = 0; j < function_count; j++) {
      const int f = i % 2 ? function_count - 1 - j : j;
      GK_TRY(gk__bench_sample(bench, f, bench->results[f].calls, bench->samples_of(f) + i));
    }
  }
  for (int f = 0; f < function_count; f++) gk__bench_summary(bench, f);
  return cudaSuccess;
}

static cudaError_t gk__bench_run(const char *call, const gk_bench_fn *functions, void *const *users, int function_count,
                                 const gk_bench_opts *opts, gk_bench_result *results) {
  for (int f = 0; f < function_count; f++)
    if (!functions[f] && function_count > 1) return GK__INVALID("%s: function %d is NULL", call, f);
  GK_TRY(gk__require(call, "function", reinterpret_cast<const void *>(functions[0])));
  GK_TRY(gk__require(call, "result", results));
  gk_device_info device = gk_device_info();
  GK_TRY(gk__query_device(call, -1, &device));
  gk__bench bench = {
      call, functions, users, function_count, opts ? *opts : gk_bench_opts(), device.peak_gbs, gk_timer(),
      0,    NULL,      NULL};
  if (bench.opts.buffers == 0) bench.opts.buffers = 1;
  if (bench.opts.warmup < 0 || bench.opts.samples < 0 || bench.opts.calls < 0)
    return GK__INVALID("%s: %d calls before the first sample, %d samples, %d calls in each: none may be negative", call,
                       bench.opts.warmup, bench.opts.samples, bench.opts.calls);
  if (bench.opts.warmup == 0) bench.opts.warmup = 3;
  if (bench.opts.samples == 0) bench.opts.samples = 30;
  const size_t n = static_cast<size_t>(function_count);
  const size_t row_bytes = gk__saturated_product(sizeof(double), static_cast<size_t>(bench.opts.samples));
  bench.sample_ms = static_cast<double *>(malloc(gk__saturated_product(row_bytes, n + 1)));
  bench.results = static_cast<gk_bench_result *>(calloc(n, sizeof(gk_bench_result)));
  cudaError_t code = cudaSuccess;
  if (!bench.sample_ms || !bench.results)
    code = gk__fail(cudaErrorMemoryAllocation, "%s: no host memory for %d samples", call, bench.opts.samples);
  if (code == cudaSuccess) code = gk_timer_create(&bench.timer);
  if (code == cudaSuccess) code = gk__bench_measure(&bench);
  code = gk__first_error(code, gk__destroy_events(&bench.timer), call);
  if (code == cudaSuccess) {
    if (bench.opts.sample_ms) memcpy(bench.opts.sample_ms, bench.sample_ms, row_bytes * n);
    memcpy(results, bench.results, sizeof(*results) * n);
  }
  return code;
}

GPUKIT_DEF cudaError_t gk_bench(gk_bench_fn function, void *user, const gk_bench_opts *opts, gk_bench_result *result) {
  return gk__bench_run(__func__, &function, &user, 1, opts, result);
}
GPUKIT_DEF cudaError_t gk_bench_compare(const gk_bench_fn *fns, void *const *users, int function_count,
                                        const gk_bench_opts *opts, gk_bench_result *results) {
  GK_TRY(gk__require(__func__, "fns", fns));
  if (function_count < 1) return GK__INVALID("%s: %d functions to compare", __func__, function_count);
  return gk__bench_run(__func__, fns, users, function_count, opts, results);
}

GPUKIT_DEF cudaError_t gk_bench_buffers(size_t bytes, size_t *buffers) {
  int l2_bytes = 0;
  GK_TRY(gk__require(__func__, "buffers", buffers));
  GK_TRY(gk__device_attribute(__func__, cudaDevAttrL2CacheSize, &l2_bytes));
  *buffers = bytes ? 1 + 3 * static_cast<size_t>(l2_bytes) / bytes : 1;
  return cudaSuccess;
}

/* --- Scratch ------------------------------------------------------------------------------------------------------
 * Section 14 has the layout of a scratch. All but the work area is cleared at its creation: zero is the epoch that no
 * call uses. */

static cudaError_t gk__create_scratch(const char *call, gk_scratch *scratch, size_t bytes, size_t work_bytes,
                                      cudaStream_t stream) {
  GK_TRY(gk__require(call, "scratch", scratch));
  if (scratch->ptr) return GK__INVALID("%s: the scratch is not empty: destroy it first", call);
  GK_TRY(gk__refuse_capture(call, "the scratch is to be cleared now: create it before", stream));
  if (bytes < gk_reduce_scratch_bytes()) bytes = gk_reduce_scratch_bytes();
  const size_t front = work_bytes ? gk__work_offset(bytes) : bytes;
  if (front < bytes || work_bytes > static_cast<size_t>(-1) - front)
    return GK__INVALID("%s: %zu and %zu bytes are more than memory can address", call, bytes, work_bytes);
  gk_scratch created = {NULL, bytes, work_bytes, 0};
  GK_TRY(gk__failed(cudaGetDevice(&created.device), call));
  GK_TRY(gk__no_memory(cudaMalloc(&created.ptr, front + work_bytes), call, front + work_bytes));
  const cudaError_t code = cudaMemsetAsync(created.ptr, 0, bytes, stream);
  if (code == cudaSuccess)
    *scratch = created;
  else
    gk__forget_returned_error(cudaFree(created.ptr));
  return gk__failed(code, call);
}

GPUKIT_DEF cudaError_t gk_scratch_create(gk_scratch *scratch, size_t bytes, cudaStream_t stream) {
  return gk__create_scratch(__func__, scratch, bytes, 0, stream);
}
GPUKIT_DEF cudaError_t gk_scratch_create_work(gk_scratch *scratch, size_t bytes, size_t work_bytes,
                                              cudaStream_t stream) {
  return gk__create_scratch(__func__, scratch, bytes, work_bytes, stream);
}
GPUKIT_DEF cudaError_t gk_scratch_destroy(gk_scratch *scratch) {
  GK_TRY(gk__require(__func__, "scratch", scratch));
  /* If cudaFree fails, as it does during a capture, the scratch stays valid, and can be destroyed later. */
  if (scratch->ptr) GK_TRY(gk__failed(cudaFree(scratch->ptr), __func__));
  memset(scratch, 0, sizeof(*scratch));
  return cudaSuccess;
}

GPUKIT_DEF cudaError_t gk__temporary_memory(void **ptr, size_t bytes, const char *what, cudaStream_t stream) {
  int has_pools = 0;
  GK_TRY(gk__device_attribute(what, cudaDevAttrMemoryPoolsSupported, &has_pools));
  if (!has_pools)
    return gk__fail(cudaErrorNotSupported,
                    "%s: this device cannot allocate on a stream: pass a gk_scratch of %zu bytes", what, bytes);
  return gk__no_memory(cudaMallocAsync(ptr, bytes, stream), what, bytes);
}
GPUKIT_DEF cudaError_t gk__temporary_scratch(gk_scratch *scratch, size_t bytes, const char *what, cudaStream_t stream) {
  *scratch = gk_scratch{NULL, bytes, 0, 0};
  GK_TRY(gk__failed(cudaGetDevice(&scratch->device), what));
  GK_TRY(gk__temporary_memory(&scratch->ptr, bytes, what, stream));
  const cudaError_t code = cudaMemsetAsync(scratch->ptr, 0, bytes, stream);
  if (code != cudaSuccess) gk__forget_returned_error(cudaFreeAsync(scratch->ptr, stream));
  return gk__failed(code, what);
}

GPUKIT_DEF cudaError_t gk__copy(void *dest, const void *from, size_t bytes, cudaMemcpyKind kind, const char *call,
                                cudaStream_t stream) {
  GK_TRY(gk__failed(cudaMemcpyAsync(dest, from, bytes, kind, stream), call));
  return gk__failed(cudaStreamSynchronize(stream), call);
}
GPUKIT_DEF cudaError_t gk__refuse_capture(const char *call, const char *why, cudaStream_t stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  GK_TRY(gk__failed(cudaStreamIsCapturing(stream, &capture), call));
  if (capture == cudaStreamCaptureStatusNone) return cudaSuccess;
  return gk__fail(cudaErrorStreamCaptureUnsupported, "%s: the stream is being captured, and %s", call, why);
}
GPUKIT_DEF void *gk__array_create(size_t n, size_t item_bytes, cudaStream_t stream, const char *file, int line) {
  void *items = NULL;
  const size_t bytes = gk__saturated_product(n, item_bytes);
  gk__clear_detail();
  if (n == 0) return NULL;
  gk__check_begin();
  int has_pools = 0;
  cudaError_t code = cudaSuccess;
  if (bytes == static_cast<size_t>(-1))
    code = GK__INVALID("gk_array: %zu elements of %zu bytes are more than memory can address", n, item_bytes);
  else if (stream)
    code = gk__device_attribute("gk_array", cudaDevAttrMemoryPoolsSupported, &has_pools);
  if (code == cudaSuccess)
    code = gk__no_memory(has_pools ? cudaMallocAsync(&items, bytes, stream) : cudaMalloc(&items, bytes), "gk_array",
                         bytes);
  gk__check(code, "gk_array", file, line);
  return code == cudaSuccess ? items : NULL;
}
/* A destructor has no line of the program to report, and after an error of earlier work there is nothing left to free.
 * Such an error stays the last one. Where a device has no memory pools, cudaFreeAsync fails. */
GPUKIT_DEF void gk__array_destroy(void *items, cudaStream_t stream) {
  if (!items) return;
  const cudaError_t earlier = cudaPeekAtLastError();
  const cudaError_t code = stream ? cudaFreeAsync(items, stream) : cudaFree(items);
  if (code == cudaSuccess || gk__is_sticky(code)) return;
  if (stream) cudaFree(items);
  gk__forget_error(earlier);
}
GPUKIT_DEF bool gk__array_copy(void *dest, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                               const char *file, int line) {
  gk__clear_detail();
  if (bytes == 0) return true;
  gk__check_begin();
  cudaError_t code = dest && from ? cudaSuccess : GK__INVALID("gk_array: the host's memory is NULL");
  if (code == cudaSuccess) code = gk__copy(dest, from, bytes, kind, "gk_array", stream);
  gk__check(code, kind == cudaMemcpyHostToDevice ? "gk_array: copy to the device" : "gk_array: copy to the host", file,
            line);
  return code == cudaSuccess;
}
GPUKIT_DEF void gk__array_clear(void *items, size_t bytes, cudaStream_t stream, const char *file, int line) {
  gk__clear_detail();
  if (bytes == 0) return;
  gk__check_begin();
  gk__check(gk__failed(cudaMemsetAsync(items, 0, bytes, stream), "gk_array"), "gk_array: clear", file, line);
}
GPUKIT_DEF bool gk__array_has(bool has, const char *format, size_t wanted, size_t n, const char *file, int line) {
  if (has) return true;
  gk__check_begin();
  gk__check(GK__INVALID(format, wanted, n), "gk_array", file, line);
  return false;
}

static size_t gk__larger(size_t x, size_t y) { return x > y ? x : y; }
GPUKIT_DEF size_t gk_reduce_scratch_bytes(void) { return GK__SCAN_OFFSET; }
GPUKIT_DEF size_t gk_scan_scratch_bytes(size_t n, size_t item_bytes) {
  if (item_bytes < 8) item_bytes = 8; /* gk_select has smaller tiles for these; no scan of smaller items needs more */
  const size_t slot_bytes = gk__saturated_product(gk_ceil_div(item_bytes, size_t(12)), sizeof(gk__word16));
  const size_t max_item_bytes = gk__saturated_product(2, item_bytes); /* input and output */
  /* Scans of up to GK__SCAN_SMALL_N elements have smaller tiles, so one of these may need more slots than one of n. */
  const size_t small_n = n < GK__SCAN_SMALL_N ? n : GK__SCAN_SMALL_N;
  const size_t scan_bytes = gk__larger(gk__scan_bytes(gk__plan_scan(n, max_item_bytes), slot_bytes),
                                       gk__scan_bytes(gk__plan_scan(small_n, max_item_bytes), slot_bytes));
  /* gk_select has other tiles for large n. The first may begin before the array: for items of 8 bytes, by one. */
  const gk__scan_plan select_plan = gk__plan_scan_of(n > small_n ? n + 1 : n, gk__select_items(item_bytes, false));
  return gk__larger(scan_bytes, gk__scan_bytes(select_plan, sizeof(gk__word16)));
}
GPUKIT_DEF size_t gk_matrix_scratch_bytes(size_t row_count, size_t col_count, size_t item_bytes) {
  const size_t scan_bytes = gk_scan_scratch_bytes(col_count, item_bytes);
  const size_t row_bytes = gk__saturated_product(row_count, scan_bytes - GK__SCAN_OFFSET);
  return gk__saturated_sum(gk__larger(row_bytes, GK__MATRIX_BYTES), GK__SCAN_OFFSET);
}
GPUKIT_DEF size_t gk_matmul_scratch_bytes(void) { return GK__SCAN_OFFSET + GK__PARTIALS_BYTES; }
/* Room for A and B as the tensor cores take them: rounded to TF32, or split into GK__BF16_TERMS matrices of bfloat16.
 * Copies of half types (GK_PRECISION_DEFAULT) are smaller than those of TF32, and get as much. The room is that of the
 * larger layout, K-major or MN-major. */
GPUKIT_DEF size_t gk_matmul_work_bytes(gk_precision precision, size_t m, size_t n, size_t k) {
  const bool emulated = precision == GK_PRECISION_EMULATED;
  if (m == 0 || n == 0 || k == 0 || precision == GK_PRECISION_STRICT) return 0;
  size_t bytes = GK__WORK_EXTRA, leading_dim = 0;
  const size_t item_bytes = emulated ? 2 : 4, copies = emulated ? GK__BF16_TERMS : 1, outer[] = {m, n};
  for (const size_t length : outer) {
    const size_t copy_bytes = gk__larger(gk__padded_bytes(length, &leading_dim, k, item_bytes),
                                         gk__padded_bytes(k, &leading_dim, length, item_bytes));
    if (copy_bytes >= gk__max_padded_bytes) return static_cast<size_t>(-1);
    bytes += copies * copy_bytes;
  }
  return bytes;
}

/* --- gk_print and gk_allclose ------------------------------------------------------------------------------------*/

/* A number as text: an integer in full, any other with enough digits to tell it from its neighbours. */
struct gk__number_text {
  char text[40];
  explicit gk__number_text(const gk__number &x) {
    if (x.digits)
      snprintf(text, sizeof(text), "%.*g", x.digits, x.value);
    else
      snprintf(text, sizeof(text), "%s%llu", x.negative ? "-" : "", x.magnitude);
  }
};
GPUKIT_DEF void gk__print_number(const gk__number &x) {
  if (x.digits)
    printf(" %11.5g", x.value);
  else
    printf(" %11s", gk__number_text(x).text);
}
GPUKIT_DEF void gk__print_text(const char *text) { printf("%s", text); }

/* The exact difference of two integers. False if they are not both integers, or if it takes more than 64 bits: then the
 * difference as a double is exact enough. */
static bool gk__integer_difference(const gk__number &a, const gk__number &b, unsigned long long *difference) {
  const unsigned long long x = a.magnitude, y = b.magnitude;
  if (a.digits || b.digits) return false;
  if (a.negative == b.negative) {
    *difference = x > y ? x - y : y - x;
    return true;
  }
  *difference = x + y;
  return *difference >= x;
}
GPUKIT_DEF void gk__compare(const gk__number_pair &pair, double rtol, double atol, gk__comparison *comparison) {
  const gk__number &a = pair.a, &b = pair.b;
  const double infinity = static_cast<double>(INFINITY), allowed = atol + rtol * fabs(b.value);
  double error = fabs(a.value - b.value);
  bool close = error <= allowed && error < infinity;
  unsigned long long difference = 0;
  if (gk__integer_difference(a, b, &difference)) {
    error = static_cast<double>(difference);
    /* An integer is at most `allowed` if it is at most the integer part of that. 2^64 and up allow any difference. */
    close =
        allowed >= 18446744073709551616.0 || (allowed >= 0 && difference <= static_cast<unsigned long long>(allowed));
  }
  if (close) return;
  if (comparison->mismatches++ == 0) comparison->first_pair = pair;
  /* A NaN or an infinite error is the worst. */
  double excess = infinity;
  if (error < infinity) excess = allowed > 0 ? error / allowed : error;
  if (excess > comparison->worst_excess) {
    comparison->worst_excess = excess;
    comparison->worst_pair = pair;
  }
}

GPUKIT_DEF bool gk__compare_report(size_t n, const gk__comparison &comparison, gk_mismatch *mismatch) {
  const gk__number_pair &p = comparison.first_pair, &q = comparison.worst_pair;
  gk__clear_detail();
  if (mismatch) *mismatch = {comparison.mismatches, p.idx, q.idx, p.a.value, p.b.value, q.a.value, q.b.value};
  if (comparison.mismatches)
    gk__fail(cudaErrorUnknown, "gk_allclose: %zu of %zu differ: first [%zu]: %s against %s, worst [%zu]: %s against %s",
             comparison.mismatches, n, p.idx, gk__number_text(p.a).text, gk__number_text(p.b).text, q.idx,
             gk__number_text(q.a).text, gk__number_text(q.b).text);
  return comparison.mismatches == 0;
}

} // GK__NAMESPACE(HOST)

/* Products that are compiled once (section 19). */
GK__NAMESPACE(KERNELS) {
GK__PRODUCTS()
} // GK__NAMESPACE(KERNELS)

/* --- Typed calls for C --------------------------------------------------------------------------------------------
 * GK__C_BODY makes definitions of section 3's declarations. Each calls the C++ template of the same name. */

#ifdef GPUKIT_C_API
GK__NAMESPACE(KERNELS) {

GK__CALL(scan_exclusive_init)
GK__CALL(host_reduce)
GK__CALL(host_scan_exclusive)
GK__CALL(host_scan_inclusive)
/* In C an operator is a value at run time. Kernels take it as data, and signed integers as unsigned ones: with kernels
 * for each operator and type the compilation would take 43 seconds instead of 31. C calls are as fast as C++ ones, with
 * exceptions (H200): argmin and argmax of half types take 1.12 times as long, minima and maxima of 10^6 elements of 64
 * bits 1.07 times, and scans of these 1.26 times.
 *
 * Sums and products of signed integers wrap, so their bits are those of unsigned ones. */
template <class Acc> struct gk__sum_or_prod {
  bool is_prod;
  GK__HD Acc identity() const { return Acc(is_prod ? 1 : 0); }
  GK__HD Acc operator()(const Acc &x, const Acc &y) const {
    return is_prod ? gk_prod<Acc>()(x, y) : gk_sum<Acc>()(x, y);
  }
};
/* A minimum or maximum: Least, which is gk_min or gk_argmin, compares keys in place of values. A key is the value with
 * some bits inverted. For a maximum these are the sign of a float, or all bits of an integer. The highest bit of a
 * signed integer is inverted once more, because kernels take it as unsigned. */
template <class Least> struct gk__least_key {
  typedef typename gk__working<Least>::type acc_type;
  typedef typename gk__carried<acc_type>::type value_type;
  typedef typename std::conditional<sizeof(value_type) == 8, uint64_t, uint32_t>::type bits_type;
  bits_type inverted;
  GK__HD value_type key(value_type x) const {
    bits_type bits;
    memcpy(&bits, &x, sizeof(bits));
    bits ^= inverted;
    memcpy(&x, &bits, sizeof(bits));
    return x;
  }
  GK__HD gk_arg<value_type> key(const gk_arg<value_type> &x) const { return {key(x.value), x.index}; }
  GK__HD acc_type identity() const { return key(Least().identity()); }
  GK__HD acc_type operator()(const acc_type &x, const acc_type &y) const { return key(Least()(key(x), key(y))); }
};
template <class Least, class Value> GK__D Value gk__key(const gk__least_key<Least> &operation, const Value &x) {
  return operation.key(x);
}
template <class Value, class Item>
struct gk__accumulation<gk__least_key<gk_argmin<Value>>, Item, true> : gk__accumulate_best<Value, false, Item> {};
template <class Value>
GK__D gk_arg<Value> gk__warp_reduce(const gk_arg<Value> &value, const gk__least_key<gk_argmin<Value>> &operation,
                                    unsigned lane_count) {
  return operation.key(gk__warp_reduce(operation.key(value), gk_argmin<Value>(), lane_count));
}

/* Values and arrays of signed integers as those of unsigned ones. Other arguments stay as they are. */
template <class Arg> Arg gk__as_unsigned(Arg arg) { return arg; }
inline uint32_t gk__as_unsigned(int32_t x) { return static_cast<uint32_t>(x); }
inline uint64_t gk__as_unsigned(int64_t x) { return static_cast<uint64_t>(x); }
inline uint32_t *gk__as_unsigned(int32_t *x) { return reinterpret_cast<uint32_t *>(x); }
inline uint64_t *gk__as_unsigned(int64_t *x) { return reinterpret_cast<uint64_t *>(x); }
inline const uint32_t *gk__as_unsigned(const int32_t *x) { return reinterpret_cast<const uint32_t *>(x); }
inline const uint64_t *gk__as_unsigned(const int64_t *x) { return reinterpret_cast<const uint64_t *>(x); }
/* The type that kernels compute in for elements of C's type Item, and the bits that a key inverts. */
template <class Item> struct gk__c_order {
  typedef decltype(gk__as_unsigned(typename gk__carried<Item>::type())) acc;
  typedef typename gk__least_key<gk_min<acc>>::bits_type bits_type;
  static bits_type inverted(bool is_greatest) {
    const bits_type all = static_cast<bits_type>(-1), highest = all ^ all >> 1;
    if (!std::is_integral<Item>::value) return is_greatest ? highest : 0;
    return (is_greatest ? all : 0) ^ (std::is_signed<Item>::value ? highest : 0);
  }
};
/* call(functor, input, args...) with the functor of C's operator. */
template <class Call, class Item, class... Args>
cudaError_t gk__by_op(const char *name, gk_op operation, Call call, const Item *input, Args... args) {
  typedef gk__c_order<Item> order;
  const gk__sum_or_prod<typename order::acc> sum_or_prod = {operation == GK_OP_PROD};
  const gk__least_key<gk_min<typename order::acc>> min_or_max = {order::inverted(operation == GK_OP_MAX)};
  switch (operation) {
  case GK_OP_SUM:
  case GK_OP_PROD: return call(sum_or_prod, gk__as_unsigned(input), gk__as_unsigned(args)...);
  case GK_OP_MIN:
  case GK_OP_MAX: return call(min_or_max, gk__as_unsigned(input), gk__as_unsigned(args)...);
  case GK_OP_ARGMIN:
  case GK_OP_ARGMAX:
    return GK__INVALID(
        "%s: argmin and argmax also have an index as a result: gk_argreduce computes both, of device arrays", name);
  default: return GK__INVALID("%s: operator %d is not a gk_op", name, static_cast<int>(operation));
  }
}
/* CArg is C's struct of value and index, such as gk_arg_f32, which has the layout of the C++ template's. */
template <class Item, class CArg>
cudaError_t gk__argreduce(const char *name, gk_op operation, const Item *input, CArg *output, size_t n,
                          cudaStream_t stream, gk_scratch *scratch) {
  typedef gk__c_order<Item> order;
  typedef gk_arg<typename order::acc> Arg;
  static_assert(sizeof(CArg) == sizeof(Arg) && sizeof(CArg::value) == sizeof(Arg::value) &&
                    offsetof(CArg, index) == offsetof(Arg, index),
                "C's struct of value and index has the layout of gk_arg");
  if (operation != GK_OP_ARGMIN && operation != GK_OP_ARGMAX)
    return GK__INVALID("%s: operator %d is neither argmin nor argmax: gk_reduce%s takes the others", name,
                       static_cast<int>(operation), name + strlen("gk_argreduce"));
  const gk__least_key<gk_argmin<typename order::acc>> min_or_max = {order::inverted(operation == GK_OP_ARGMAX)};
  return gk_reduce(gk__as_unsigned(input), reinterpret_cast<Arg *>(output), n, min_or_max, stream, scratch);
}

} // GK__NAMESPACE(KERNELS)

GK__NAMESPACE(HOST) {
extern "C" {
#undef GK__C_BODY
#define GK__C_BODY(...)                                                                                                \
  { return __VA_ARGS__; }
GK__C_CALLS()
} /* extern "C" */
} // GK__NAMESPACE(HOST)

/* The other host functions have symbols with a prefix (GK__LABEL). C files link to these aliases without one. They are
 * in a namespace of their own, which a C symbol does not show: otherwise calls in this file would be ambiguous. All are
 * nothrow, because GCC warns about an alias that is not if it finds that the function is. */
#ifndef GPUKIT_STATIC
namespace gk__c {
extern "C" {
GPUKIT_DEF void GK__C_API(void);
GPUKIT_DEF void GK__C_API(void) {}
#if !defined(__GNUC__) && !defined(__clang__)
#error "GPUKIT_C_API: the host's compiler must be one that makes aliases of symbols, such as GCC or clang"
#elif !defined(__CUDA_ARCH__)
#define GK__ALIAS(name)                                                                                                \
  GPUKIT_DEF decltype(GK__HOST::name) name __attribute__((__nothrow__, __alias__(GK__SYMBOL(name))));
GK__C_HOST_FUNCTIONS(GK__ALIAS)
#undef GK__ALIAS
#endif
} /* extern "C" */
} // namespace gk__c
#endif
#endif /* GPUKIT_C_API */
} /* extern "C++" */
#endif /* implementation */

#ifdef GK__OPEN
#undef GK__OPEN
GK__SAVED_MACROS(GK__POP)
#endif

/* ====================================================================================================================
 * 23. HISTORY
 *
 *   0.2.0   Renamed, because macros of users often have the old names:
 *             gk_device_info           warp_size: threads_per_warp
 *             gk_occupancy_info        block: block_threads
 *             gk_mismatch              count, first, worst: mismatches, first_index, worst_index
 *             gk_dist_piece            first, count: first_index, item_count
 *             gk_dist_matmul_opts      rows, turn_stream: rank_rows, second_stream
 *             gk_tile                  threads, row(i), col(j), zero(): thread_count, row_idx(i), col_idx(j), clear();
 *                                      run_limit, run_m, run_n: vector_limit, vector_m, vector_n
 *             GK_PRECISION_EMULATED_9  GK_PRECISION_EMULATED, which is as exact
 *           gk_matmul_scratch_bytes() is one number for all shapes.
 *           No longer public: gk_reduce_plan, gk_scan_plan, gk_split_k, gk_stride_1d/x/y, gk_time_begin/next/scope,
 *           gk_check_cuda/status/launch.
 *           Refused: a GK_CHECK of what is no integer or enumeration, a functor whose identity() has another type than
 *           its results, or, in a warp or a block, than the values.
 *           Template arguments of array calls are the types of the arguments, which may be gk_array: they are deduced.
 *           New: gk_array, gk_reduce_value, gk_reduce_rows, gk_reduce_columns, gk_computed, gk_dot,
 *           gk_scan_inclusive_sum, gk_scan_exclusive_sum, gk_scan_rows_inclusive, gk_scan_rows_exclusive, gk_select,
 *           gk_select_flagged, gk_copy, gk_fill, gk_iota, gk_random_uniform, gk_random_normal, gk_print,
 *           gk_print_matrix; gk_time_ms, gk_bench of a callable, gk_bench_compare for C, rates of GK_TIME;
 *           gk_matmul_ex<precision>, gk_matmul_epilogue, gk_matmul_scaled, GPUKIT_PRODUCTS_F32...; alpha and beta of
 *           gk_matmul_opts as addresses of floats.
 *           Other bits than before: tensor-core products of few tiles and a long k by mma.sync, emulated ones by
 *           mma.sync, large ones, which may be computed in two parts, batches that tensor cores now compute, those of
 *           tf32 with two MN-major operands or a short k in code for sm_90a, and strict products whose k is split into
 *           other partitions.
 *           GK_PLAN_MMA is an error in code for sm_90a, whose large products run by wgmma.
 *           Fixed: reductions and scans of values with padding, such as gk_arg<float>, could be wrong on GPUs.
 *   0.1.0   the first version
 * ==================================================================================================================*/

/* ====================================================================================================================
 * 24. LICENCE: this software is available under two licences; choose whichever you prefer.
 *
 * ALTERNATIVE A - MIT
 *
 * Copyright (c) 2026 the gpukit authors
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
 * documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
 * rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
 * permit persons to whom the Software is furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
 * Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
 * WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
 * COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
 * OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
 *
 * ALTERNATIVE B - public domain (www.unlicense.org)
 *
 * This is free and unencumbered software released into the public domain.
 *
 * Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software, either in source code form
 * or as a compiled binary, for any purpose, commercial or non-commercial, and by any means.
 *
 * In jurisdictions that recognize copyright laws, the author or authors of this software dedicate any and all copyright
 * interest in the software to the public domain. We make this dedication for the benefit of the public at large and to
 * the detriment of our heirs and successors. We intend this dedication to be an overt act of relinquishment in
 * perpetuity of all present and future rights to this software under copyright law.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
 * WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS BE
 * LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
 * OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
 * ==================================================================================================================*/
