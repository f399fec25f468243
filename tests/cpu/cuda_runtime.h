/* A stand-in for the CUDA runtime: the same .cu sources, compiled as plain C++17, run with no GPU and no toolkit.
 *
 *   g++ -std=c++17 -O2 -x c++ -I tests/cpu file.cu -pthread
 *
 * g++ or clang++, Linux (x86-64, aarch64; other systems through ucontext, without kernel names and poisoned __shared__
 * variables). CUDA_ON_CPU is 1; __CUDACC__ and __CUDA_ARCH__ stay undefined. Kernels are launched with
 * cudaLaunchKernelEx or cudaLaunchKernel: C++ cannot parse <<<>>>.
 *
 * What it covers
 *   kernels     one fiber for each CUDA thread, one block at a time on each core, any grid and block that sm_90 allows
 *   shared      __shared__ variables; dynamic shared memory of the exact size through cuda_cpu_dynamic_shared(), aligned
 *               to 128 bytes, with its end known to ASan
 *   barriers    __syncthreads, _count, _and, _or, __syncwarp
 *   warps       __shfl_*_sync, __any/all/ballot_sync, __match_*_sync, __reduce_*_sync, with masks and widths checked
 *   atomics     all of CUDA's for its types, with _block and _system; fences; __nanosleep
 *   intrinsics  bits, integers, conversions, arithmetic in the four rounding modes, cache hints, min/max, half, bfloat16
 *   runtime     memory (stream-ordered too), copies, fills, symbols, streams, events, capture and graphs, attributes and
 *               occupancy of a pretended GPU with the limits of sm_90; CUDA 13's signatures, error codes and texts
 *   textures    (C++ only) arrays of one to three dimensions and in layers; texture objects of arrays, linear and pitched
 *               memory, all address modes, point and linear filters with weights of 8 fractional bits; surfaces
 *   cooperative launches, with every block on an OS thread of its own and the barrier of the grid checked like the
 *               others; cooperative_groups.h with reduce, scan and memcpy_async
 *
 * What it says
 *   A barrier or warp primitive that cannot be completed (threads that have returned or wait elsewhere, two barriers in
 *   two branches, lanes outside a mask, a shuffle from an absent lane) ends the launch with a message that names kernel,
 *   block, threads, what they wait for and the lines. As after any fault on a GPU, every later call then returns
 *   cudaErrorLaunchFailure until cudaDeviceReset. CUDA would let threads that have returned count as arrived; here that
 *   is an error, since it mostly is one, unless GPUKIT_CPU_EXITED=arrived. At the barrier of the grid it always is one.
 *   A fetch from a texture or surface object that is gone or whose memory is, outside a surface, or as a type that the
 *   object does not give, ends the launch in the same way.
 *   Fresh device memory, and the shared memory of each block, hold 0x7fff in every 16 bits: NaN as half, bfloat16, float
 *   or double, and a large integer.
 *
 * Environment
 *   GPUKIT_CPU_SCHEDULE  forward (default): threads and blocks in order; reversed; random:SEED. Threads switch at
 *                        barriers and warp primitives; at random, at atomics and fences too.
 *   GPUKIT_CPU_THREADS   worker threads, by default one for each core, up to 16
 *   GPUKIT_CPU_EXITED    arrived: see above
 *
 * How it differs from a GPU
 *   - A launch, copy or host function has completed when its call returns; cudaStreamQuery is never cudaErrorNotReady.
 *     A failed kernel is reported by the next call, as on a GPU. Event times are those of the CPU.
 *   - A thread that waits for another one has to poll with an atomic, a fence, __ldcv or __nanosleep in its loop:
 *     a loop over a volatile variable alone is never left, since only these let other threads run.
 *   - A block that waits for a block which comes later in the block order may wait for ever: blocks start in order, and
 *     as many run at once as there are workers. All blocks of a cooperative launch run at once.
 *   - __activemask() is the thread alone, and with it cooperative_groups::coalesced_threads().
 *   - Device memory is the host's: a wild access ends the process, or is found by ASan. printf and assert are the
 *     host's. Kernels run on worker threads, and see none of the caller's thread_local variables.
 *   - Floating point is the host's: fast intrinsics are the plain functions, and functions like expf are libm's. Give
 *     -ffp-contract=off where the compiler could contract.
 *   - Registers are always 32; static shared memory is what the kernel itself declares, not what it calls.
 *
 * What it has not got: clusters of more than one block, tiles of more than 32 threads, kernels that launch kernels,
 * several devices, mipmaps, cube maps, texture gathers and resource views, extern __shared__ arrays (the linker names
 * them), inline PTX. A call that it does not support returns cudaErrorNotSupported and says its name on stderr, or is not
 * declared.
 *
 * What it costs (g++ 12 -O2, each of two 2.6 GHz cores, over which blocks are spread): 7 ns for a trivial thread, 15 to
 * 21 ns a thread for a barrier, 23 ns for a shuffle, 2 to 3 times that under ASan. A small launch takes 0.6 us soon after
 * another one, 60 us after a pause. A cooperative launch takes 0.1 ms for two blocks and 12 ms for 132, with barriers of
 * 64 to 280 ns a thread, and 10 us for each thread beyond 16,384. A fetch takes 25 ns, with a linear filter in two
 * dimensions 65 ns. Including this file costs 0.2 s of compile time, and code that each file emits for
 * the runtime's calls 0.7 s more at -O2. */
#ifndef CUDA_CPU_RUNTIME_HEADER_H
#define CUDA_CPU_RUNTIME_HEADER_H
#pragma GCC system_header

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "tests/cpu/cuda_runtime.h needs C++17; a C file includes cuda_runtime_api.h"
#endif

#include <initializer_list>
#include "cuda_runtime_api.h"
#include "cuda_cpu/api.h"
#include "cuda_cpu/templates.h"
#include "cuda_cpu/warp.h"
#include "cuda_cpu/atomics.h"
#include "cuda_cpu/device_functions.h"
#include "cuda_cpu/texture.h"
#include "cuda_cpu/texture_fetch.h"
#include "vector_functions.h"

/* At block scope thread_local implies static, and each worker runs one block at a time. */
#define __shared__ thread_local

#endif
