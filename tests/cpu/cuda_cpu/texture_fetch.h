/* Texture and surface functions of kernels.
 *
 * Filtering follows the programming guide: at x, with xB = x - 0.5, the texels floor(xB) and floor(xB) + 1 get weights
 * from frac(xB), which is rounded to a multiple of 1/256 (ties up, which the guide does not tell); the sum of up to
 * eight texels is formed in float. Coordinates are exact (in double), a NaN is taken for 0, and no coordinate is too
 * large. In wrap and mirror mode the coordinate is folded first; the neighbours of an edge follow from that. */
#pragma once
#pragma GCC system_header

#include <math.h>
#include "rounding.h"
#include "texture_api.h"
#include "warp.h"

namespace cuda_cpu {

/* Linear memory is read by index. */
enum texture_shape : unsigned char { shape_1d, shape_2d, shape_3d, shape_layered_1d, shape_layered_2d, shape_linear };

struct texture {
  unsigned long long handle;                 /* 0: none yet; one that is gone keeps it */
  const char *gone;                          /* why it cannot be read any more */
  char *data;                                /* NULL: the object has been destroyed */
  size_t width, height, depth, pitch, slice; /* height and depth at least 1; slice: of one layer or depth */
  texture_shape shape;
  bool is_surface, gives_floats, linear, normalized_coords, normalized_values;
  unsigned char channels, bits, element;
  cudaChannelFormatKind format;
  cudaTextureAddressMode address[3];
  float border[4];
  cudaArray *array;
  cudaResourceDesc resource;
  cudaTextureDesc desc;
};

const unsigned texture_chunk = 256, texture_chunks = 4096;
struct texture_table {
  texture *chunks[texture_chunks];
  unsigned used;
  cudaArray *arrays;
};
inline texture_table the_textures;

/* Slot and number of use; NULL: never was one. */
inline texture *texture_slot(unsigned long long handle) {
  unsigned slot = static_cast<unsigned>(handle & 0xfffff);
  if (!handle || slot >= __atomic_load_n(&the_textures.used, __ATOMIC_ACQUIRE)) return nullptr;
  return &the_textures.chunks[slot / texture_chunk][slot % texture_chunk];
}

struct texture_call {
  const char *name, *file;
  int line;
  bool surface;
};

/* Each ends the launch. */
[[noreturn]] void report_object(const texture_call &c, unsigned long long handle, texture_shape shape);
[[noreturn]] void report_type(const texture_call &c, const texture *t, bool floats, int channels, size_t bytes);
[[noreturn]] void report_place(const texture_call &c, int x, int y, int z, size_t bytes);

inline const texture *object_of(const texture_call &c, unsigned long long handle, texture_shape shape) {
  const texture *t = texture_slot(handle);
  if (!self || !t || t->handle != handle || t->gone || t->is_surface != c.surface || t->shape != shape)
    report_object(c, handle, shape);
  return t;
}

/* --- texels --- */

union texel {
  float f[4];    /* of what gives floats */
  uint32_t u[4]; /* of what does not: extended to 32 bits */
};

inline uint32_t texel_bits(const texture *t, const char *p, int channel) {
  const bool is_signed = t->format == cudaChannelFormatKindSigned;
  if (t->bits == 8) {
    unsigned char v = static_cast<unsigned char>(p[channel]);
    return is_signed ? static_cast<uint32_t>(static_cast<signed char>(v)) : v;
  }
  if (t->bits == 16) {
    unsigned short v;
    memcpy(&v, p + 2 * channel, 2);
    return is_signed ? static_cast<uint32_t>(static_cast<short>(v)) : v;
  }
  uint32_t v;
  memcpy(&v, p + 4 * channel, 4);
  return v;
}
inline float texel_float(const texture *t, const char *p, int channel) {
  const uint32_t v = texel_bits(t, p, channel);
  if (!t->normalized_values) {
    if (t->bits == 16) return widen<10>(static_cast<unsigned short>(v));
    float f;
    memcpy(&f, &v, 4);
    return f;
  }
  if (t->format == cudaChannelFormatKindUnsigned) return static_cast<float>(v) / (t->bits == 8 ? 255.0f : 65535.0f);
  const float f = static_cast<float>(static_cast<int32_t>(v)) / (t->bits == 8 ? 127.0f : 32767.0f);
  return f < -1 ? -1 : f; /* the lowest number and the one above it are both -1 */
}

/* An index of -1 is beyond the border. */
inline void texel_read(const texture *t, long long x, long long y, long long z, texel *out) {
  if ((x | y | z) < 0) {
    memcpy(out, t->border, sizeof *out);
    return;
  }
  const char *p = t->data + static_cast<size_t>(z) * t->slice + static_cast<size_t>(y) * t->pitch +
                  static_cast<size_t>(x) * t->element;
  for (int c = 0; c < t->channels; c++)
    if (t->gives_floats)
      out->f[c] = texel_float(t, p, c);
    else
      out->u[c] = texel_bits(t, p, c);
}

/* --- coordinates --- */

struct texture_axis {
  long long index[2]; /* -1: beyond the border */
  float weight;       /* of the second one */
};

inline long long texture_index(long long i, long long n, cudaTextureAddressMode mode) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
  case cudaAddressModeBorder: return -1;
  case cudaAddressModeWrap: return i < 0 ? n - 1 : 0; /* it is folded, and at most one outside */
  default: return i < 0 ? 0 : n - 1;
  }
}

inline texture_axis texture_place(const texture *t, int dimension, float coordinate, size_t size) {
  const cudaTextureAddressMode mode = t->address[dimension];
  const double n = static_cast<double>(size);
  double x = static_cast<double>(coordinate);
  if (t->normalized_coords) {
    const double whole = floor(x);
    if (mode == cudaAddressModeWrap) x -= whole;
    if (mode == cudaAddressModeMirror) x = fmod(whole, 2) != 0 ? 1 - (x - whole) : x - whole;
    x *= n;
  }
  if (t->linear) x -= 0.5;
  x = x != x ? 0 : x < -2 ? -2 : x > n + 1 ? n + 1 : x;
  const long long i = static_cast<long long>(floor(x)), count = static_cast<long long>(size);
  texture_axis a = {{texture_index(i, count, mode), 0}, 0};
  if (t->linear) {
    a.index[1] = texture_index(i + 1, count, mode);
    a.weight = static_cast<float>(floor((x - floor(x)) * 256 + 0.5) / 256);
  }
  return a;
}

/* --- fetches --- */

/* At this many coordinates; textures of fewer than three dimensions may have layers. */
template <int Dimensions> void texture_sample(const texture *t, const float *at, long long layer, texel *out) {
  const size_t sizes[3] = {t->width, t->height, t->depth};
  texture_axis axes[3] = {};
  for (int d = 0; d < Dimensions; d++) axes[d] = texture_place(t, d, at[d], sizes[d]);
  if (Dimensions < 3) axes[2].index[0] = axes[2].index[1] = layer;
  if (!t->linear) return texel_read(t, axes[0].index[0], axes[1].index[0], axes[2].index[0], out);
  texel sum = {};
  for (int corner = 0; corner < 1 << Dimensions; corner++) {
    float weight = 1;
    for (int d = 0; d < Dimensions; d++) weight *= corner >> d & 1 ? axes[d].weight : 1 - axes[d].weight;
    texel one;
    texel_read(t, axes[0].index[corner & 1], axes[1].index[corner >> 1 & 1],
               axes[2].index[Dimensions < 3 ? 0 : corner >> 2], &one);
    for (int c = 0; c < t->channels; c++) sum.f[c] += weight * one.f[c];
  }
  for (int c = 0; c < t->channels; c++) {
    /* What is 1D is a row at height 0 to the hardware, and half of what its filter takes lies beyond that row's border. */
    if (Dimensions == 1 && t->address[1] == cudaAddressModeBorder) sum.f[c] = (sum.f[c] + t->border[c]) / 2;
    /* Fractions of integers are filtered in 16 bits. */
    if (t->format == cudaChannelFormatKindUnsigned) sum.f[c] = floorf(sum.f[c] * 65535 + 0.5f) / 65535;
  }
  *out = sum;
}

template <class T> T texture_value(const texture_call &c, const texture *t, const texel &from) {
  typedef texel_type<T> type;
  static_assert(type::channels && type::channels != 3,
                "textures have elements of 1, 2 or 4 channels of 8, 16 or 32 bits");
  typedef typename type::channel channel;
  constexpr bool floats = type::kind == cudaChannelFormatKindFloat;
  if (floats != t->gives_floats || type::channels > t->channels || (!floats && sizeof(channel) * 8 < t->bits))
    report_type(c, t, floats, type::channels, sizeof(channel));
  channel values[type::channels];
  for (int i = 0; i < type::channels; i++)
    if constexpr (floats)
      values[i] = from.f[i];
    else
      values[i] = static_cast<channel>(from.u[i]);
  T result;
  static_assert(sizeof result == sizeof values, "channels without gaps");
  memcpy(&result, values, sizeof result);
  return result;
}

template <class T, int Dimensions>
T texture_fetch(const texture_call &c, unsigned long long handle, texture_shape shape, const float *at, int layer = 0) {
  const texture *t = object_of(c, handle, shape);
  const int layers = static_cast<int>(shape == shape_3d ? 1 : t->depth);
  texel out;
  /* the index counts as unsigned: a negative one is beyond the end */
  texture_sample<Dimensions>(t, at, layer >= 0 && layer < layers ? layer : layers - 1, &out);
  return texture_value<T>(c, t, out);
}

/* --- surfaces --- */

/* NULL: outside, where zeros are read and nothing is written */
inline char *surface_place(const texture_call &c, unsigned long long handle, texture_shape shape, int x, int y, int z,
                           size_t bytes, cudaSurfaceBoundaryMode mode) {
  const texture *t = object_of(c, handle, shape);
  if (x % static_cast<int>(bytes)) report_place(c, x, y, z, bytes);
  const int row = static_cast<int>(t->width * t->element), last = row - static_cast<int>(bytes);
  const int height = static_cast<int>(t->height), depth = static_cast<int>(t->depth);
  if (x < 0 || x > last || y < 0 || y >= height || z < 0 || z >= depth) {
    if (mode == cudaBoundaryModeTrap || last < 0) report_place(c, x, y, z, bytes);
    if (mode == cudaBoundaryModeZero) return nullptr;
    x = x < 0 ? 0 : x > last ? last : x;
    y = y < 0 ? 0 : y >= height ? height - 1 : y;
    z = z < 0 ? 0 : z >= depth ? depth - 1 : z;
  }
  return t->data + static_cast<size_t>(z) * t->slice + static_cast<size_t>(y) * t->pitch + static_cast<size_t>(x);
}
template <class T>
T surface_read(const texture_call &c, unsigned long long handle, texture_shape shape, int x, int y, int z,
               cudaSurfaceBoundaryMode mode) {
  static_assert(sizeof(T) <= 16 && !(sizeof(T) & (sizeof(T) - 1)), "surfaces have elements of 1, 2, 4, 8 or 16 bytes");
  T value;
  memset(static_cast<void *>(&value), 0, sizeof value);
  const char *p = surface_place(c, handle, shape, x, y, z, sizeof(T), mode);
  if (p) memcpy(static_cast<void *>(&value), p, sizeof value);
  return value;
}
template <class T>
void surface_write(const texture_call &c, unsigned long long handle, texture_shape shape, int x, int y, int z,
                   cudaSurfaceBoundaryMode mode, const T &value) {
  static_assert(sizeof(T) <= 16 && !(sizeof(T) & (sizeof(T) - 1)), "surfaces have elements of 1, 2, 4, 8 or 16 bytes");
  char *p = surface_place(c, handle, shape, x, y, z, sizeof(T), mode);
  if (p) memcpy(p, &value, sizeof value);
}

} // namespace cuda_cpu

#define CUDA_CPU_HERE(surface)                                                                                         \
  cuda_cpu::texture_call { __func__, file, line, surface }

/* Beyond its ends linear memory reads as 0. */
template <class T> T tex1Dfetch(cudaTextureObject_t texObject, int x, CUDA_CPU_SITE) {
  const cuda_cpu::texture *t = cuda_cpu::object_of(CUDA_CPU_HERE(false), texObject, cuda_cpu::shape_linear);
  cuda_cpu::texel out = {};
  if (x >= 0 && static_cast<size_t>(x) < t->width) cuda_cpu::texel_read(t, x, 0, 0, &out);
  return cuda_cpu::texture_value<T>(CUDA_CPU_HERE(false), t, out);
}
template <class T> T tex1D(cudaTextureObject_t texObject, float x, CUDA_CPU_SITE) {
  return cuda_cpu::texture_fetch<T, 1>(CUDA_CPU_HERE(false), texObject, cuda_cpu::shape_1d, &x);
}
template <class T> T tex2D(cudaTextureObject_t texObject, float x, float y, CUDA_CPU_SITE) {
  const float at[] = {x, y};
  return cuda_cpu::texture_fetch<T, 2>(CUDA_CPU_HERE(false), texObject, cuda_cpu::shape_2d, at);
}
template <class T> T tex3D(cudaTextureObject_t texObject, float x, float y, float z, CUDA_CPU_SITE) {
  const float at[] = {x, y, z};
  return cuda_cpu::texture_fetch<T, 3>(CUDA_CPU_HERE(false), texObject, cuda_cpu::shape_3d, at);
}
template <class T> T tex1DLayered(cudaTextureObject_t texObject, float x, int layer, CUDA_CPU_SITE) {
  return cuda_cpu::texture_fetch<T, 1>(CUDA_CPU_HERE(false), texObject, cuda_cpu::shape_layered_1d, &x, layer);
}
template <class T> T tex2DLayered(cudaTextureObject_t texObject, float x, float y, int layer, CUDA_CPU_SITE) {
  const float at[] = {x, y};
  return cuda_cpu::texture_fetch<T, 2>(CUDA_CPU_HERE(false), texObject, cuda_cpu::shape_layered_2d, at, layer);
}

/* x in bytes; y and z where the surface has them */
#define CUDA_CPU_SURFACE(name, shape, parameters, y, z)                                                                \
  template <class T>                                                                                                   \
  T name##read(cudaSurfaceObject_t surfObject, CUDA_CPU_UNPACK parameters,                                             \
               cudaSurfaceBoundaryMode boundaryMode = cudaBoundaryModeTrap, CUDA_CPU_SITE) {                           \
    return cuda_cpu::surface_read<T>(CUDA_CPU_HERE(true), surfObject, cuda_cpu::shape, x, y, z, boundaryMode);         \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  void name##read(T *data, cudaSurfaceObject_t surfObject, CUDA_CPU_UNPACK parameters,                                 \
                  cudaSurfaceBoundaryMode boundaryMode = cudaBoundaryModeTrap, CUDA_CPU_SITE) {                        \
    *data = cuda_cpu::surface_read<T>(CUDA_CPU_HERE(true), surfObject, cuda_cpu::shape, x, y, z, boundaryMode);        \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  void name##write(T val, cudaSurfaceObject_t surfObject, CUDA_CPU_UNPACK parameters,                                  \
                   cudaSurfaceBoundaryMode boundaryMode = cudaBoundaryModeTrap, CUDA_CPU_SITE) {                       \
    cuda_cpu::surface_write(CUDA_CPU_HERE(true), surfObject, cuda_cpu::shape, x, y, z, boundaryMode, val);             \
  }
#define CUDA_CPU_UNPACK(...) __VA_ARGS__
CUDA_CPU_SURFACE(surf1D, shape_1d, (int x), 0, 0)
CUDA_CPU_SURFACE(surf2D, shape_2d, (int x, int y), y, 0)
CUDA_CPU_SURFACE(surf3D, shape_3d, (int x, int y, int z), y, z)
CUDA_CPU_SURFACE(surf1DLayered, shape_layered_1d, (int x, int layer), 0, layer)
CUDA_CPU_SURFACE(surf2DLayered, shape_layered_2d, (int x, int y, int layer), y, layer)
#undef CUDA_CPU_UNPACK
#undef CUDA_CPU_SURFACE
#undef CUDA_CPU_HERE
