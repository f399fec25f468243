/* The thread that runs: its coordinates, and what code of kernels asks of the block that runs it (run/block.h). */
#pragma once
#pragma GCC system_header

#include "../cuda_runtime_api.h"
#include "common.h"

/* Under ASan none of them may come to lie between a __shared__ variable and its fence, where a compiler could put what
 * it meets for the first time. */
#ifdef CUDA_CPU_ASAN
__attribute__((used)) inline thread_local uint3 threadIdx, blockIdx;
__attribute__((used)) inline thread_local dim3 blockDim, gridDim;
#else
inline thread_local uint3 threadIdx, blockIdx;
inline thread_local dim3 blockDim, gridDim;
#endif
inline constexpr int warpSize = 32;

/* The race checker tells places by return addresses: what reads and writes memory for a kernel has to be part of the
 * kernel. */
#ifdef CUDA_CPU_TRACE
#define CUDA_CPU_DEVICE __attribute__((always_inline)) inline
#define CUDA_CPU_SEPARATE __attribute__((noinline)) /* its branches are not the kernel's */
#else
#define CUDA_CPU_DEVICE inline
#define CUDA_CPU_SEPARATE
#endif

namespace cuda_cpu {

/* What a thread can wait for. */
/* clang-format off */
enum operation {
  op_syncthreads, op_syncthreads_count, op_syncthreads_and, op_syncthreads_or, op_syncwarp,
  op_shfl, op_shfl_up, op_shfl_down, op_shfl_xor, op_ballot, op_any, op_all, op_match_any, op_match_all,
  op_reduce_add, op_reduce_min, op_reduce_max, op_reduce_umin, op_reduce_umax, op_reduce_and, op_reduce_or,
  op_reduce_xor, op_grid_sync
};
/* clang-format on */
int barrier(int op, int predicate, const char *file, int line);
uint64_t collective(int op, int wide, unsigned mask, uint64_t value, unsigned arg, int width, const char *file,
                    int line);
void grid_sync(const char *file, int line);
bool in_cooperative_launch();

/* Ends the program outside a kernel. */
void in_kernel(const char *call);
/* The same where a kernel begins: cuda_to_cpp has every kernel's body begin with this. */
void is_launched(const char *kernel);
#define CUDA_CPU_IS_LAUNCHED ::cuda_cpu::is_launched(__func__)
/* Ends the launch with a message that begins with the running thread. */
[[noreturn]] void fail_thread(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
/* Lets other threads run. */
void yield();

/* The part of a worker that code of kernels uses. */
struct running_block {
  int patience; /* atomics until the running thread lets others run */
  char *shared; /* dynamic shared memory */
};
inline thread_local running_block *self; /* NULL outside a kernel */

/* Called by every atomic and fence. */
CUDA_CPU_UNTRACED CUDA_CPU_SEPARATE inline void atomic_point() {
  if (self && --self->patience <= 0) yield();
}

} // namespace cuda_cpu

/* The start of the block's dynamic shared memory, aligned to 128 bytes at least. */
CUDA_CPU_UNTRACED inline void *cuda_cpu_dynamic_shared() {
  if (!cuda_cpu::self) cuda_cpu::in_kernel("dynamic shared memory");
  return cuda_cpu::self->shared;
}
