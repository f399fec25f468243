/* Fibers: a stack each, and a switch that saves what a function call has to keep. A fiber stays on the OS thread that
 * made it, since compilers may keep the address of a thread-local variable across a call. */
#pragma once
#pragma GCC system_header

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../common.h"

#ifdef CUDA_CPU_ASAN
extern "C" {
void __sanitizer_start_switch_fiber(void **fake_stack_save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake_stack_save, const void **bottom_old, size_t *size_old);
void __asan_poison_memory_region(void const volatile *addr, size_t size);
void __asan_unpoison_memory_region(void const volatile *addr, size_t size);
}
#endif

/* A function that several files of a program may define. */
#if defined(__ELF__)
#define CUDA_CPU_ASM_BEGIN                                                                                             \
  ".pushsection .text.cuda_cpu_switch,\"axG\",@progbits,cuda_cpu_switch,comdat\n"                                      \
  ".weak cuda_cpu_switch\n"                                                                                            \
  ".hidden cuda_cpu_switch\n"                                                                                          \
  ".type cuda_cpu_switch,@function\n"                                                                                  \
  "cuda_cpu_switch:\n"
#define CUDA_CPU_ASM_END ".size cuda_cpu_switch,.-cuda_cpu_switch\n.popsection\n"
#elif defined(__MACH__)
#define CUDA_CPU_ASM_BEGIN                                                                                             \
  ".section __TEXT,__text,regular,pure_instructions\n"                                                                 \
  ".globl _cuda_cpu_switch\n"                                                                                          \
  ".weak_definition _cuda_cpu_switch\n"                                                                                \
  ".private_extern _cuda_cpu_switch\n"                                                                                 \
  ".p2align 2\n"                                                                                                       \
  "_cuda_cpu_switch:\n"
#define CUDA_CPU_ASM_END ""
#else
#define CUDA_CPU_UCONTEXT 1
#endif

#if defined(CUDA_CPU_UCONTEXT)
#include <ucontext.h>
#elif defined(__x86_64__)
extern "C" void cuda_cpu_switch(void **save, void *load);
/* `ret` and not `pop; jmp`: threads mostly wait in the same place, so that the return predictor is right here, and
 * stays right for the functions above. */
asm(CUDA_CPU_ASM_BEGIN R"(
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)" CUDA_CPU_ASM_END);
#elif defined(__aarch64__)
extern "C" void cuda_cpu_switch(void **save, void *load);
asm(CUDA_CPU_ASM_BEGIN R"(
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)" CUDA_CPU_ASM_END);
#else
#define CUDA_CPU_UCONTEXT 1
#include <ucontext.h>
#endif

namespace cuda_cpu {

struct fiber {
#ifdef CUDA_CPU_UCONTEXT
  ucontext_t context;
#else
  void *sp; /* while it is switched out */
#endif
  const void *low; /* the stack, for ASan: of the main context as ASan tells it at the first switch away */
  size_t size;
  void *fake_stack;
  fiber *next; /* in the pool */
  size_t stagger;
  bool guarded;
};

const size_t stack_bytes = 256 << 10; /* of address space: only touched pages take memory */
/* Tops are staggered, over the sets of a second-level cache: equal frames of all fibers would else share a few sets. */
const size_t stack_stagger = 64 << 10;
const size_t stack_guard = 512 << 10; /* below it, so large that a large frame cannot skip it */

inline thread_local fiber *switched_from;

CUDA_CPU_QUIET void fiber_arrive(fiber *self) {
#ifdef CUDA_CPU_ASAN
  fiber *from = switched_from;
  __sanitizer_finish_switch_fiber(self->fake_stack, &from->low, &from->size);
  self->fake_stack = nullptr;
#else
  (void)self;
#endif
}

CUDA_CPU_QUIET void fiber_switch(fiber *from, fiber *to) {
#ifdef CUDA_CPU_ASAN
  __sanitizer_start_switch_fiber(&from->fake_stack, to->low, to->size);
  switched_from = from;
#endif
#ifdef CUDA_CPU_UCONTEXT
  swapcontext(&from->context, &to->context);
#else
  cuda_cpu_switch(&from->sp, to->sp);
#endif
  fiber_arrive(from);
}

/* It will run soon: of its stack, what a thread that waits at a barrier has on it. Inlined: g++ drops calls of a
 * function that does no more than this. */
__attribute__((always_inline)) CUDA_CPU_QUIET void fiber_prefetch(const fiber *f) {
#ifndef CUDA_CPU_UCONTEXT
  const char *stack = static_cast<const char *>(f->sp);
  for (int i = 0; i < 256; i += 64) __builtin_prefetch(stack + i);
#else
  (void)f;
#endif
}

/* (Re)starts a fiber: the next switch to it calls entry, which must not return. */
CUDA_CPU_QUIET void fiber_reset(fiber *f, void (*entry)()) {
  f->fake_stack = nullptr;
#ifdef CUDA_CPU_ASAN
  __asan_unpoison_memory_region(f->low, f->size);
#endif
#ifdef CUDA_CPU_UCONTEXT
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = const_cast<void *>(f->low);
  f->context.uc_stack.ss_size = f->size;
  f->context.uc_link = nullptr;
  makecontext(&f->context, entry, 0);
#else
  char *top = static_cast<char *>(const_cast<void *>(f->low)) + f->size - f->stagger;
#ifdef __x86_64__
  void **sp = reinterpret_cast<void **>(top) - 10;
  memset(sp, 0, 10 * sizeof *sp);
  sp[6] = reinterpret_cast<void *>(entry);
#else
  void **sp = reinterpret_cast<void **>(top) - 20;
  memset(sp, 0, 20 * sizeof *sp);
  sp[11] = reinterpret_cast<void *>(entry);
#endif
  f->sp = sp;
#endif
}

/* Stacks of OS threads that have ended, for others to take. Linux allows some 65,000 mappings in a process, and a guard
 * page makes two of a stack: beyond the first stacks, which only cooperative launches reach, there are none. */
struct spare_fibers {
  pthread_mutex_t mutex;
  fiber *first;
  int count, guarded;
};
inline spare_fibers the_spares = {PTHREAD_MUTEX_INITIALIZER, nullptr, 0, 0};
const int most_spares = 16384, most_guarded = 16384;

CUDA_CPU_QUIET fiber *fiber_create(unsigned number, void (*entry)()) {
  pthread_mutex_lock(&the_spares.mutex);
  if (fiber *spare = the_spares.first) {
    the_spares.first = spare->next;
    the_spares.count--;
    pthread_mutex_unlock(&the_spares.mutex);
    spare->stagger = number * 128 % stack_stagger;
    fiber_reset(spare, entry);
    return spare;
  }
  const bool guarded = the_spares.guarded < most_guarded;
  the_spares.guarded += guarded;
  pthread_mutex_unlock(&the_spares.mutex);
  void *p = mmap(nullptr, stack_guard + stack_bytes + stack_stagger, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  fiber *f = static_cast<fiber *>(calloc(1, sizeof(fiber)));
  if (p == MAP_FAILED || !f || (guarded && mprotect(p, stack_guard, PROT_NONE))) {
    fprintf(stderr, "CUDA stand-in: no memory for the stack of a thread\n");
    abort();
  }
  f->low = static_cast<char *>(p) + stack_guard;
  f->size = stack_bytes + stack_stagger;
  f->stagger = number * 128 % stack_stagger;
  f->guarded = guarded;
  fiber_reset(f, entry);
  return f;
}

/* Of an OS thread that ends. */
CUDA_CPU_QUIET void fiber_release(fiber *f) {
#ifdef CUDA_CPU_ASAN
  __asan_unpoison_memory_region(f->low, f->size);
#endif
  pthread_mutex_lock(&the_spares.mutex);
  bool kept = the_spares.count < most_spares;
  if (kept) {
    f->next = the_spares.first;
    the_spares.first = f;
    the_spares.count++;
  } else
    the_spares.guarded -= f->guarded;
  pthread_mutex_unlock(&the_spares.mutex);
  if (kept) return;
  munmap(static_cast<char *>(const_cast<void *>(f->low)) - stack_guard, stack_guard + f->size);
  free(f);
}

} // namespace cuda_cpu
