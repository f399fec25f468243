/* How the stand-in is compiled. A program compiles cuda_cpu/ in each of its files; cuda_cpu/host and cuda_cpu/run once,
 * since all files but one define CUDA_CPU_ELSEWHERE. */
#pragma once
#pragma GCC system_header

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_CPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_CPU_ASAN 1
#endif
#endif

/* The compiler instruments accesses for the race checker; those of the stand-in itself are of no interest. */
#if defined(__SANITIZE_THREAD__)
#define CUDA_CPU_TRACE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CUDA_CPU_TRACE 1
#endif
#endif
#if defined(CUDA_CPU_TRACE) && defined(__clang__)
#define CUDA_CPU_UNTRACED __attribute__((no_sanitize("thread", "coverage"), disable_sanitizer_instrumentation))
#elif defined(CUDA_CPU_TRACE)
#define CUDA_CPU_UNTRACED __attribute__((no_sanitize("thread"), no_sanitize_coverage))
#else
#define CUDA_CPU_UNTRACED
#endif

#define CUDA_CPU_QUIET CUDA_CPU_UNTRACED inline

/* What the program's files call of cuda_cpu/host and cuda_cpu/run without seeing its definition: CUDA_CPU_CALL are the
 * calls of CUDA, CUDA_CPU_ENTRY is what the stand-in's other headers need. */
#ifdef CUDA_CPU_ELSEWHERE
#define CUDA_CPU_ENTRY inline
#define CUDA_CPU_EXPORT extern "C" inline
#elif defined(__clang__)
#define CUDA_CPU_ENTRY __attribute__((used, noinline)) inline
#define CUDA_CPU_EXPORT extern "C" __attribute__((used, noinline, cold)) inline
#else
#define CUDA_CPU_ENTRY __attribute__((used, noinline)) inline
#define CUDA_CPU_EXPORT extern "C" __attribute__((used, noipa, cold)) inline
#endif
#define CUDA_CPU_CALL CUDA_CPU_EXPORT cudaError_t
#define CUDA_CPU_RARE __attribute__((noinline, cold)) inline /* small, and soon compiled */
