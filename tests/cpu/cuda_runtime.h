/* A stand-in for the CUDA runtime: the same .cu sources, compiled as plain C++17, run with no GPU and no toolkit.
 *
 *   g++ -std=c++17 -O2 -x c++ -I tests/cpu file.cu -pthread
 *
 * g++ or clang++, Linux (x86-64, aarch64; glibc, musl), macOS (no poisoned __shared__ variables, no lines of source;
 * compiled and linked for it, not run there); other processors through ucontext. CUDA_ON_CPU is 1. Kernels are
 * launched with cudaLaunchKernelEx or cudaLaunchKernel: C++ cannot parse <<<>>>. Sources that have these or extern
 * __shared__ go through cuda_to_cpp first, a small program whose source is next to this file; `make cpu FILE=hw.cu`
 * does it all.
 *
 * Host and device code are one compilation here, so __CUDACC__ and __CUDA_ARCH__ stay undefined except in sources that
 * cuda_to_cpp has translated and that do not mention CUDA_ON_CPU. There __CUDACC__ is defined. __CUDA_ARCH__ is that of
 * GPUKIT_CPU_DEVICE at build time (900) in functions for the device alone, and undefined in those for host and device,
 * whose host part runs in kernels, too. Outside of functions it has that value in a directive with a number, as in
 * `#if __CUDA_ARCH__ < 600`, and is undefined in others. A kernel whose body an #if has emptied is a warning.
 *
 * What it has, and where
 *   cuda_runtime_api.h   types and declarations of the calls, for C too: CUDA 13's signatures, error codes and texts
 *   cuda_cpu/host/       the calls: one object of a program has them, other files define CUDA_CPU_ELSEWHERE
 *     memory.h             cudaMalloc, cudaMallocManaged, cudaHostAlloc, cudaFree, ...; the table of allocations
 *     memory_pools.h       cudaMallocAsync, cudaFreeAsync, pools
 *     copies.h             cudaMemcpy, cudaMemcpyAsync, cudaMemcpyToSymbol, cudaMemset, ...
 *     streams.h            streams, events, host functions
 *     graphs.h             capture, graphs; graph_nodes.h: graphs made by hand
 *     kernels.h            launches, cooperative ones too, attributes of kernels, occupancy
 *     devices.h            several devices, peers, limits; gpu_models.h: those that are pretended
 *     texture_objects.h    arrays of one to three dimensions and in layers, texture and surface objects (C++ only)
 *     context.h            what they share: the state, how each call begins, the last error
 *     injected_failures.h  any call can be made to fail, from the environment or by cuda_cpu_fail()
 *     end_of_program.h     what is still held at the end
 *   cuda_cpu/run/        how a launch runs, in the same object
 *     grid.h, block.h      blocks on OS threads, one at a time on each; a fiber for each CUDA thread, barriers, warps
 *     grid_barrier.h       the barrier of a cooperative launch, with every block on an OS thread of its own
 *     shared_memory.h      __shared__ variables; dynamic shared memory of the exact size; ASan knows the ends of both
 *     crash.h, symbols.h   what a crash says; names of kernels and variables
 *     places.h, watchdog.h lines of the source; launches that stand still
 *     races.h              races in a warp, a block and a grid, and missing fences, by CUDA's memory model
 *     counters.h           what a profiler counts: sectors, bank conflicts, divergent branches, atomics; it and races.h
 *                          need a build of their own: `make cpu FILE=hw.cu STATS=1` or RACES=1
 *   cuda_cpu/            what each file of a program compiles
 *     thread.h, warp.h     threadIdx, ...; barriers and warp primitives, with masks and widths checked
 *     atomics.h            all of CUDA's for its types, with _block and _system
 *     intrinsics.h         bits, integers, conversions, arithmetic in the four rounding modes, cache hints, min/max
 *     special.h, simd.h    inverses of the error function, Bessel functions, norms; parts of a word (__vadd4, ...)
 *     texture_fetch.h      all address modes, point and linear filters with weights of 8 fractional bits; surfaces
 *     typed_calls.h        templates of the calls, launches with arguments; triple.h: what <<<>>> becomes
 *     testing.h            for tests: cuda_cpu_fail(), cuda_cpu_take_races(), cuda_cpu_take_counters(), ...
 *     blas.h, rand.h       the parts of cuBLAS and cuRAND that there are; thrust.h: what Thrust's headers need
 *   cooperative_groups.h, cuda_fp16.h, cuda_bf16.h, nccl.h, ... as CUDA's
 *   cuda_to_cpp.c        makes C++ of plain CUDA: launches of any kernel (also overloaded, of a template with deduced
 *                        arguments, through pointers, in macros), extern __shared__ arrays in functions and outside
 *   stubs/               headers that have nothing of their own, or only say what there is not: a second -I
 *
 * What it says
 *   A barrier or warp primitive that cannot be completed (threads that have returned or wait elsewhere, two barriers in
 *   two branches, lanes outside a mask, a shuffle from an absent lane) ends the launch with a message that names
 *   kernel, block, threads, what they wait for and the lines. As after any fault on a GPU, every later call then
 *   returns cudaErrorLaunchFailure until cudaDeviceReset. CUDA would let threads that have returned count as arrived;
 *   here that is an error, since it usually is a mistake, unless GPUKIT_CPU_EXITED=arrived. At the barrier of the grid
 *   it always is one.
 *   A fetch from a texture or surface object that was destroyed or whose memory was freed, outside a surface, or as a
 *   type that the object does not give, ends the launch in the same way.
 *   A failed assert ends the launch, too; later calls return cudaErrorAssert. Except on Linux it is a crash.
 *   A crash in a kernel (a wild access, a full stack, abort) names kernel, block, thread and, where it is known, the
 *   memory; then the process ends as it would have. Under ASan and UBSan the same comes with their reports, of accesses
 *   outside global memory, freed memory, static and dynamic shared memory too.
 *   A race names kernel, variable, both threads and both lines, and a read of uninitialised memory its thread and line;
 *   a program with either ends with status 66.
 *   A launch in which no thread returns or gets past a barrier for ten seconds goes on, but a message says where it
 *   hangs.
 *   Fresh device memory, and the shared memory of each block, hold 0x7fff in every 16 bits: NaN as half, bfloat16,
 *   float or double, and a large integer.
 *
 * Environment
 *   GPUKIT_CPU_SCHEDULE  forward (default): threads and blocks in order; reversed; random:SEED, or random for a seed
 *                        that is printed. Threads switch at barriers and warp primitives; at random, at atomics and
 *                        fences too.
 *   GPUKIT_CPU_THREADS   worker threads, by default one for each core, up to 16
 *   GPUKIT_CPU_EXITED    arrived: see above
 *   GPUKIT_CPU_DEVICE    sm_75, sm_80, sm_86, sm_89, sm_90 (default), sm_100 or sm_120: which GPU is simulated
 *   GPUKIT_CPU_DEVICES   how many of it, 1 (default) to 8
 *   GPUKIT_CPU_FAIL      alloc:3, copy:1+, launch:2:cudaErrorUnknown, kernel:2:cudaErrorIllegalAddress, cudaFree:1, ...
 *                        with commas between them: which calls fail, and how (cuda_cpu/host/injected_failures.h)
 *   GPUKIT_CPU_LEAKS     1: what is still held at the end of the program is listed, and a launch that failed with nothing
 *                        having asked for its error, and a kernel that nothing has waited for
 *   GPUKIT_CPU_PROTECT   1: the host cannot touch device memory unless a call runs, kernels cannot touch that of other
 *                        devices without peer access, and neither can touch freed memory: what would be a crash on a
 *                        GPU is one here, and named. Costs two system calls for each allocation and call.
 *   GPUKIT_CPU_WATCHDOG  after how many seconds without progress a message says where a launch hangs: 10; 0: never
 *   GPUKIT_CPU_STATS     1: in a build with STATS=1, what a profiler counts, for each kernel; lines: for each line, too
 *
 * How it differs from a GPU
 *   - A launch, copy or host function has completed when its call returns; cudaStreamQuery is never cudaErrorNotReady.
 *     A failed kernel is reported by the next call, as on a GPU. Event times are those of the CPU.
 *   - A thread that waits for another one has to poll with an atomic, a fence, __ldcv or __nanosleep in its loop:
 *     a loop over a volatile variable alone never ends, since only these let other threads run (but see the watchdog).
 *   - Blocks start in order, and as many run at once as there are workers. A block that waits for a later one does so
 *     for half a second; then up to 256 blocks run at once. All blocks of a cooperative launch do from its start.
 *   - __activemask() is the thread alone, and with it cooperative_groups::coalesced_threads().
 *   - A shuffle from a lane outside its mask gives NaN, or -1 as an integer: CUDA leaves the value undefined.
 *   - Device memory is host memory: only ASan finds accesses outside of an allocation, and only GPUKIT_CPU_PROTECT
 *     those by the host, or by a kernel of another device without peer access. A crash ends the process. printf is the
 *     host's. Kernels run on worker threads, and see none of the caller's thread_local variables.
 *   - ASan misses an access before the first, or with some compilers after the last, of a file's __shared__ variables,
 *     one that skips 128 bytes, and one from a variable to another in the same declaration; UBSan finds indices of
 *     declared arrays anyway.
 *   - Floating point is the host's: fast intrinsics are the plain functions, and functions like expf are libm's. Give
 *     -ffp-contract=off where the compiler could contract.
 *   - Registers are always 32; static shared memory is what the kernel itself declares, not what it calls.
 *
 * What it does not support: clusters of more than one block, tiles of more than 32 threads, kernels that launch kernels
 * (an error), mipmaps, cube maps, texture gathers and resource views, inline PTX;
 * extern __shared__ arrays without cuda_to_cpp (the linker names them); the driver's own calls (cuda.h is there, for
 * programs that include it without need); {braced} arguments of a launch whose kernel only its arguments tell. Of the
 * libraries it has cuBLAS by OpenBLAS, Thrust by the CUDA Toolkit's headers, cuRAND's Philox generators in kernels, and
 * what gpukit calls of NCCL; the other headers are an #error each. A call that it does not support returns
 * cudaErrorNotSupported and says its name on stderr, or is not declared.
 *
 * What it costs (g++ 12 -O2, two 2.6 GHz cores with nothing else to do): 170 million trivial threads a second, 4 to 8
 * ns a thread for a barrier; 2 to 3 times that under ASan. A small launch takes 0.6 us soon after another one, 60 us
 * after a pause. A cooperative launch takes 0.1 ms for two blocks and 12 ms for 132, with barriers of 64 to 280 ns a
 * thread, and 10 us for each thread beyond 16,384. A fetch takes 13 ns, with a linear filter in two dimensions 33 ns.
 * The race checker works on one core: from 1.2 times as long (barriers) over 4 (a transpose) to 20 (a blur, a tiled
 * product). Including this file costs 0.1 s of compile time with CUDA_CPU_ELSEWHERE, 2 s without. */
#pragma once
#pragma GCC system_header

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "tests/cpu/cuda_runtime.h needs C++17; a C file includes cuda_runtime_api.h"
#endif

#define __CUDA_RUNTIME_H__
#define __VECTOR_FUNCTIONS_H__
#include "cuda_runtime_api.h"
#include "vector_functions.h"
#include "cuda_cpu/atomics.h"
#include "cuda_cpu/intrinsics.h"
#include "cuda_cpu/testing.h"
#include "cuda_cpu/texture_api.h"
#include "cuda_cpu/texture_fetch.h"
#include "cuda_cpu/thread.h"
#include "cuda_cpu/typed_calls.h"
#include "cuda_cpu/warp.h"
#ifndef CUDA_CPU_ELSEWHERE
#include "cuda_cpu/host/copies.h"
#include "cuda_cpu/host/devices.h"
#include "cuda_cpu/host/end_of_program.h"
#include "cuda_cpu/host/graph_nodes.h"
#include "cuda_cpu/host/memory_pools.h"
#include "cuda_cpu/host/streams.h"
#include "cuda_cpu/host/texture_objects.h"
#endif

/* At block scope thread_local implies static, and each worker runs one block at a time. Under ASan a fence (see
 * run/crash.h) lies before each variable. One more comes from a function, which no one calls, and so behind the last
 * variable with compilers that keep the order. Each variable is aligned as dynamic shared memory is, since an alignment
 * that is written before __shared__ goes to the fence. */
#ifdef CUDA_CPU_ASAN
#define CUDA_CPU_JOIN(a, b) a##b
#define CUDA_CPU_FENCE(number)                                                                                         \
  __attribute__((used, aligned(128))) thread_local char CUDA_CPU_JOIN(cuda_cpu_fence_, number)[128];                   \
  struct CUDA_CPU_JOIN(cuda_cpu_fenced_, number) {                                                                     \
    __attribute__((used)) static void last() {                                                                         \
      __attribute__((used, aligned(128))) static thread_local char cuda_cpu_fence_[128];                               \
    }                                                                                                                  \
  };                                                                                                                   \
  __attribute__((aligned(128))) thread_local
#define __shared__ CUDA_CPU_FENCE(__COUNTER__)
#else
#define __shared__ thread_local
#endif
