/* CUDA's vector types: C99 and C++. Sizes and alignments are CUDA's, so that vector loads from a user's struct and
 * arrays shared with a real GPU build look the same. */
#pragma once
#pragma GCC system_header

#define CUDA_CPU_VECTORS(name, type, align2, align4)                                                                   \
  struct name##1 {                                                                                                     \
    type x;                                                                                                            \
  };                                                                                                                   \
  struct __attribute__((aligned(align2))) name##2 {                                                                    \
    type x, y;                                                                                                         \
  };                                                                                                                   \
  struct name##3 {                                                                                                     \
    type x, y, z;                                                                                                      \
  };                                                                                                                   \
  struct __attribute__((aligned(align4))) name##4 {                                                                    \
    type x, y, z, w;                                                                                                   \
  };                                                                                                                   \
  typedef struct name##1 name##1;                                                                                      \
  typedef struct name##2 name##2;                                                                                      \
  typedef struct name##3 name##3;                                                                                      \
  typedef struct name##4 name##4

CUDA_CPU_VECTORS(char, signed char, 2, 4);
CUDA_CPU_VECTORS(uchar, unsigned char, 2, 4);
CUDA_CPU_VECTORS(short, short, 4, 8);
CUDA_CPU_VECTORS(ushort, unsigned short, 4, 8);
CUDA_CPU_VECTORS(int, int, 8, 16);
CUDA_CPU_VECTORS(uint, unsigned int, 8, 16);
CUDA_CPU_VECTORS(long, long, 2 * sizeof(long), 16);
CUDA_CPU_VECTORS(ulong, unsigned long, 2 * sizeof(long), 16);
CUDA_CPU_VECTORS(longlong, long long, 16, 16);
CUDA_CPU_VECTORS(ulonglong, unsigned long long, 16, 16);
CUDA_CPU_VECTORS(float, float, 8, 16);
CUDA_CPU_VECTORS(double, double, 16, 16);

/* CUDA 13's names for the 4-vectors of 8-byte elements, whose alignment CUDA 12 left at 16 */
#define CUDA_CPU_VECTOR4(name, type, align)                                                                            \
  struct __attribute__((aligned(align))) name##4_##align##a {                                                          \
    type x, y, z, w;                                                                                                   \
  };                                                                                                                   \
  typedef struct name##4_##align##a name##4_##align##a

CUDA_CPU_VECTOR4(long, long, 16);
CUDA_CPU_VECTOR4(long, long, 32);
CUDA_CPU_VECTOR4(ulong, unsigned long, 16);
CUDA_CPU_VECTOR4(ulong, unsigned long, 32);
CUDA_CPU_VECTOR4(longlong, long long, 16);
CUDA_CPU_VECTOR4(longlong, long long, 32);
CUDA_CPU_VECTOR4(ulonglong, unsigned long long, 16);
CUDA_CPU_VECTOR4(ulonglong, unsigned long long, 32);
CUDA_CPU_VECTOR4(double, double, 16);
CUDA_CPU_VECTOR4(double, double, 32);

struct dim3 {
  unsigned int x, y, z;
#ifdef __cplusplus
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
#endif
};
typedef struct dim3 dim3;

#undef CUDA_CPU_VECTORS
#undef CUDA_CPU_VECTOR4
