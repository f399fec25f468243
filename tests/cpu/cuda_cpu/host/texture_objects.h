/* Arrays, texture and surface objects: cudaMallocArray, cudaMemcpy2DToArray, cudaMemcpy3D, cudaCreateTextureObject, ...
 *
 * An array is a tight block of device memory. An object is a slot of a table whose place in memory never changes, so
 * that kernels look it up without a lock; its handle holds the number of times that the slot has been used, so that an
 * object that is gone is known as such. */
#pragma once
#pragma GCC system_header

#include "../texture_api.h"
#include "../texture_fetch.h"
#include "copies.h"

struct cudaArray {
  char *data;
  /* height 0: one dimension, depth 0: no more than two; depth also counts layers */
  size_t element, width, height, depth;
  cudaChannelFormatDesc desc;
  unsigned flags;
  cudaArray *next;
};

namespace cuda_cpu {

inline size_t at_least_1(size_t n) { return n ? n : 1; }
inline size_t row_bytes(const cudaArray *a) { return a->width * a->element; }
inline size_t row_count(const cudaArray *a) { return at_least_1(a->height) * at_least_1(a->depth); }

/* --- the table of objects --- */

/* With the lock held. */
CUDA_CPU_RARE texture *texture_create() {
  texture_table &t = the_textures;
  unsigned slot = 0;
  while (slot < t.used && t.chunks[slot / texture_chunk][slot % texture_chunk].data) slot++;
  if (slot == t.used) {
    if (slot == texture_chunk * texture_chunks) return nullptr;
    texture *&chunk = t.chunks[slot / texture_chunk];
    if (!chunk) chunk = static_cast<texture *>(calloc(texture_chunk, sizeof(texture)));
    if (!chunk) return nullptr;
    __atomic_store_n(&t.used, slot + 1, __ATOMIC_RELEASE);
  }
  texture *made = &t.chunks[slot / texture_chunk][slot % texture_chunk];
  unsigned long long handle = made->handle ? made->handle + (1 << 20) : slot | 1 << 20;
  *made = texture{};
  made->handle = handle;
  return made;
}

/* Memory is freed: objects that read it become invalid. An array whose memory is freed before it was lost in a reset of
 * the device. */
CUDA_CPU_ENTRY void texture_memory_goes(const void *p, size_t size) {
  texture_table &t = the_textures;
  auto goes = [=](const char *data) {
    return reinterpret_cast<uintptr_t>(data) - reinterpret_cast<uintptr_t>(p) < size;
  };
  for (unsigned i = 0; i < t.used; i++) {
    texture &o = t.chunks[i / texture_chunk][i % texture_chunk];
    if (!o.gone && goes(o.data)) o.gone = o.array ? "whose array has been freed" : "whose memory has been freed";
  }
  for (cudaArray **a = &t.arrays; *a;) {
    cudaArray *lost = *a;
    if (!goes(lost->data)) {
      a = &lost->next;
      continue;
    }
    *a = lost->next;
    free(lost);
  }
}

/* --- formats --- */

/* Bytes of an element; 0: CUDA has no such format, or this stand-in has not. */
CUDA_CPU_RARE size_t format_bytes(const cudaChannelFormatDesc &d) {
  const int bits[4] = {d.x, d.y, d.z, d.w};
  int channels = 0;
  while (channels < 4 && bits[channels]) channels++;
  for (int i = 0; i < 4; i++)
    if (bits[i] != (i < channels ? d.x : 0)) return 0;
  if (!channels || channels == 3 || (d.x != 8 && d.x != 16 && d.x != 32)) return 0;
  if (d.f != cudaChannelFormatKindSigned && d.f != cudaChannelFormatKindUnsigned &&
      (d.f != cudaChannelFormatKindFloat || d.x == 8))
    return 0;
  return static_cast<size_t>(channels * d.x / 8);
}

CUDA_CPU_RARE bool is_array(const cudaArray *array) {
  for (const cudaArray *a = the_textures.arrays; a; a = a->next)
    if (a == array) return true;
  return false;
}

/* --- copies --- */

/* The memory that is no array. */
CUDA_CPU_RARE cudaError_t check_side(const void *p, size_t bytes, cudaMemcpyKind kind, bool to_array) {
  bool on_device;
  if (kind == cudaMemcpyDeviceToDevice)
    on_device = true;
  else if (kind == (to_array ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost))
    on_device = false;
  else if (kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  else
    on_device = find_allocation(p) != nullptr;
  return reaches(p, bytes, on_device) ? cudaSuccess : cudaErrorInvalidValue;
}

/* Is this box, x in bytes, inside the array? */
CUDA_CPU_RARE bool inside(const cudaArray *a, size_t x, size_t y, size_t z, size_t w, size_t h, size_t d) {
  size_t row = row_bytes(a), rows = at_least_1(a->height), slices = at_least_1(a->depth);
  return x <= row && w <= row - x && y <= rows && h <= rows - y && z <= slices && d <= slices - z;
}
inline char *place(const cudaArray *a, size_t x, size_t y, size_t z) {
  return a->data + (z * at_least_1(a->height) + y) * row_bytes(a) + x;
}

struct box {
  char *p;
  size_t pitch, slice;
};
CUDA_CPU_RARE cudaError_t copy_box(box dst, box src, size_t width, size_t height, size_t depth, cudaStream_t stream) {
  return enqueue(stream, [=] {
    for (size_t z = 0; z < depth; z++)
      for (size_t y = 0; y < height; y++)
        memmove(dst.p + z * dst.slice + y * dst.pitch, src.p + z * src.slice + y * src.pitch, width);
    return cudaSuccess;
  });
}

/* A rectangle between an array and pitched memory. */
CUDA_CPU_RARE cudaError_t copy_array(const cudaArray *a, size_t x, size_t y, void *p, size_t pitch, size_t width,
                                     size_t height, cudaMemcpyKind kind, bool to_array, cudaStream_t stream) {
  {
    locked lock;
    if (!is_array(a)) return error(cudaErrorInvalidValue);
    if (!inside(a, x, y, 0, width, height, 1)) return error(cudaErrorInvalidValue);
    if (height > 1 && width > pitch) return error(cudaErrorInvalidPitchValue);
    size_t bytes = width && height ? (height - 1) * pitch + width : 0;
    if (cudaError_t e = check_side(p, bytes, kind, to_array)) return error(e);
    if (!bytes) return cudaSuccess;
  }
  box in_array = {place(a, x, y, 0), row_bytes(a), 0}, in_memory = {static_cast<char *>(p), pitch, 0};
  return copy_box(to_array ? in_array : in_memory, to_array ? in_memory : in_array, width, height, 1, stream);
}

/* Bytes in a row, which go on at the start of the next row. */
CUDA_CPU_RARE cudaError_t copy_run(const cudaArray *a, size_t x, size_t y, void *p, size_t bytes, cudaMemcpyKind kind,
                                   bool to_array, cudaStream_t stream) {
  {
    locked lock;
    if (!is_array(a) || !inside(a, x, y, 0, 0, 0, 1)) return error(cudaErrorInvalidValue);
    if (bytes > (at_least_1(a->height) - y) * row_bytes(a) - x) return error(cudaErrorInvalidValue);
    if (cudaError_t e = check_side(p, bytes, kind, to_array)) return error(e);
    if (!bytes) return cudaSuccess;
  }
  box in_array = {place(a, x, y, 0), 0, 0}, in_memory = {static_cast<char *>(p), 0, 0};
  return copy_box(to_array ? in_array : in_memory, to_array ? in_memory : in_array, bytes, 1, 1, stream);
}

/* --- arrays --- */

CUDA_CPU_CALL cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, cudaExtent extent,
                                unsigned flags) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMalloc3DArray);
  if (!array || !desc) return error(cudaErrorInvalidValue);
  if (flags & ~unsigned{cudaArrayLayered | cudaArraySurfaceLoadStore})
    return unsupported("an array with flags beyond cudaArrayLayered and cudaArraySurfaceLoadStore");
  const size_t element = format_bytes(*desc), w = extent.width, h = extent.height, d = extent.depth;
  const bool layered = flags & cudaArrayLayered;
  if (!element) return error(cudaErrorInvalidChannelDescriptor);
  if (!w || (layered && !d) || (!layered && d && !h)) return error(cudaErrorInvalidValue);
  if (layered ? w > 32768 || h > 32768 || d > 2048 : d ? w > 16384 || h > 16384 || d > 16384 : w > 131072 || h > 65536)
    return error(cudaErrorInvalidValue);
  cudaArray *a = static_cast<cudaArray *>(calloc(1, sizeof(cudaArray)));
  if (!a) return error(cudaErrorMemoryAllocation);
  *a = cudaArray{nullptr, element, w, h, d, *desc, flags, nullptr};
  void *data;
  cudaError_t e = allocate(&data, row_bytes(a) * row_count(a), memory_device, 0);
  if (e) {
    free(a);
    return e;
  }
  locked lock;
  a->data = static_cast<char *>(data);
  a->next = the_textures.arrays;
  the_textures.arrays = a;
  *array = a;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width, size_t height,
                              unsigned flags) {
  if (flags & cudaArrayLayered) return error(cudaErrorInvalidValue);
  return cudaMalloc3DArray(array, desc, make_cudaExtent(width, height, 0), flags);
}
CUDA_CPU_CALL cudaFreeArray(cudaArray_t array) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaFreeArray);
  if (!array) return cudaSuccess;
  locked lock;
  cudaArray **a = &the_textures.arrays;
  while (*a && *a != array) a = &(*a)->next;
  if (!*a) return error(cudaErrorInvalidValue);
  *a = array->next;
  cudaError_t e = release(array->data, false);
  free(array);
  return e;
}
CUDA_CPU_CALL cudaArrayGetInfo(cudaChannelFormatDesc *desc, cudaExtent *extent, unsigned *flags, cudaArray_t array) {
  CUDA_CPU_API(cudaArrayGetInfo);
  locked lock;
  if (!is_array(array)) return error(cudaErrorInvalidValue);
  if (desc) *desc = array->desc;
  if (extent) *extent = make_cudaExtent(array->width, array->height, array->depth);
  if (flags) *flags = array->flags;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGetChannelDesc(cudaChannelFormatDesc *desc, cudaArray_const_t array) {
  CUDA_CPU_API(cudaGetChannelDesc);
  locked lock;
  if (!desc || !is_array(array)) return error(cudaErrorInvalidValue);
  *desc = array->desc;
  return cudaSuccess;
}

CUDA_CPU_CALL cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch,
                                       size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpy2DToArrayAsync);
  return copy_array(dst, wOffset, hOffset, const_cast<void *>(src), spitch, width, height, kind, true, stream);
}
CUDA_CPU_CALL cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch,
                                  size_t width, size_t height, cudaMemcpyKind kind) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMemcpy2DToArray);
  return cudaMemcpy2DToArrayAsync(dst, wOffset, hOffset, src, spitch, width, height, kind, nullptr);
}
CUDA_CPU_CALL cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset,
                                         size_t hOffset, size_t width, size_t height, cudaMemcpyKind kind,
                                         cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpy2DFromArrayAsync);
  return copy_array(src, wOffset, hOffset, dst, dpitch, width, height, kind, false, stream);
}
CUDA_CPU_CALL cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                    size_t width, size_t height, cudaMemcpyKind kind) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMemcpy2DFromArray);
  return cudaMemcpy2DFromArrayAsync(dst, dpitch, src, wOffset, hOffset, width, height, kind, nullptr);
}
CUDA_CPU_CALL cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpyToArrayAsync);
  return copy_run(dst, wOffset, hOffset, const_cast<void *>(src), count, kind, true, stream);
}
CUDA_CPU_CALL cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
                                cudaMemcpyKind kind) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMemcpyToArray);
  return cudaMemcpyToArrayAsync(dst, wOffset, hOffset, src, count, kind, nullptr);
}
CUDA_CPU_CALL cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                                       cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpyFromArrayAsync);
  return copy_run(src, wOffset, hOffset, dst, count, kind, false, stream);
}
CUDA_CPU_CALL cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                                  cudaMemcpyKind kind) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMemcpyFromArray);
  return cudaMemcpyFromArrayAsync(dst, src, wOffset, hOffset, count, kind, nullptr);
}
CUDA_CPU_CALL cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                                       size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height,
                                       cudaMemcpyKind kind) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMemcpy2DArrayToArray);
  if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return error(cudaErrorInvalidMemcpyDirection);
  locked lock;
  if (!is_array(dst) || !is_array(src) || !inside(dst, wOffsetDst, hOffsetDst, 0, width, height, 1) ||
      !inside(src, wOffsetSrc, hOffsetSrc, 0, width, height, 1))
    return error(cudaErrorInvalidValue);
  return copy_box({place(dst, wOffsetDst, hOffsetDst, 0), row_bytes(dst), 0},
                  {place(src, wOffsetSrc, hOffsetSrc, 0), row_bytes(src), 0}, width, height, 1, nullptr);
}

/* Widths and places are in elements where an array takes part, in bytes of memory where none does. */
CUDA_CPU_CALL cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemcpy3DAsync);
  if (!p || !p->srcArray == !p->srcPtr.ptr || !p->dstArray == !p->dstPtr.ptr) return error(cudaErrorInvalidValue);
  locked lock;
  const cudaArray *from = p->srcArray, *to = p->dstArray;
  if ((from && !is_array(from)) || (to && !is_array(to)) || (from && to && from->element != to->element))
    return error(cudaErrorInvalidValue);
  const size_t element = from ? from->element : to ? to->element : 1;
  const size_t width = p->extent.width * element, height = p->extent.height, depth = p->extent.depth;
  if (!width || !height || !depth) return cudaSuccess;
  box boxes[2];
  size_t bytes[2];
  for (int i = 0; i < 2; i++) {
    const cudaArray *a = i ? from : to;
    const cudaPos &at = i ? p->srcPos : p->dstPos;
    const cudaPitchedPtr &m = i ? p->srcPtr : p->dstPtr;
    if (a) {
      if (!inside(a, at.x * element, at.y, at.z, width, height, depth)) return error(cudaErrorInvalidValue);
      boxes[i] = {place(a, at.x * element, at.y, at.z), row_bytes(a), row_bytes(a) * at_least_1(a->height)};
    } else {
      if ((height > 1 || depth > 1) && at.x + width > m.pitch) return error(cudaErrorInvalidPitchValue);
      if (depth > 1 && at.y + height > m.ysize) return error(cudaErrorInvalidValue);
      size_t slice = m.pitch * m.ysize;
      boxes[i] = {static_cast<char *>(m.ptr) + at.z * slice + at.y * m.pitch + at.x, m.pitch, slice};
      bytes[i] = (depth - 1) * slice + (height - 1) * m.pitch + width;
    }
  }
  cudaError_t e = cudaSuccess;
  if (from && to)
    e = p->kind == cudaMemcpyDeviceToDevice || p->kind == cudaMemcpyDefault ? cudaSuccess
                                                                            : cudaErrorInvalidMemcpyDirection;
  else if (from || to)
    e = check_side(boxes[to ? 1 : 0].p, bytes[to ? 1 : 0], p->kind, to);
  else
    e = check_copy(boxes[0].p, boxes[1].p, bytes[0], bytes[1], p->kind);
  if (e) return error(e);
  return copy_box(boxes[0], boxes[1], width, height, depth, stream);
}
CUDA_CPU_CALL cudaMemcpy3D(const cudaMemcpy3DParms *p) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMemcpy3D);
  return cudaMemcpy3DAsync(p, nullptr);
}

/* Pitched memory of three dimensions: no array, but what is copied to and from them. Widths in bytes. */
CUDA_CPU_CALL cudaMalloc3D(cudaPitchedPtr *pitchedDevPtr, cudaExtent extent) {
  CUDA_CPU_API(cudaMalloc3D);
  size_t rows;
  if (!pitchedDevPtr) return error(cudaErrorInvalidValue);
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return error(cudaErrorMemoryAllocation);
  *pitchedDevPtr = make_cudaPitchedPtr(nullptr, 0, extent.width, extent.height);
  return cudaMallocPitch(&pitchedDevPtr->ptr, &pitchedDevPtr->pitch, extent.width, rows);
}
CUDA_CPU_CALL cudaMemset3DAsync(cudaPitchedPtr p, int value, cudaExtent extent, cudaStream_t stream) {
  CUDA_CPU_API(cudaMemset3DAsync);
  const size_t slice = p.pitch * p.ysize;
  if (!extent.width || !extent.height || !extent.depth) return cudaSuccess;
  if (extent.width > p.pitch || (extent.depth > 1 && extent.height > p.ysize)) return error(cudaErrorInvalidValue);
  {
    locked lock;
    if (!reaches(p.ptr, (extent.depth - 1) * slice + (extent.height - 1) * p.pitch + extent.width, true))
      return error(cudaErrorInvalidValue);
  }
  return enqueue(stream, [=] {
    for (size_t z = 0; z < extent.depth; z++)
      for (size_t y = 0; y < extent.height; y++)
        memset(static_cast<char *>(p.ptr) + z * slice + y * p.pitch, value, extent.width);
    return cudaSuccess;
  });
}
CUDA_CPU_CALL cudaMemset3D(cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent) {
  return cudaMemset3DAsync(pitchedDevPtr, value, extent, nullptr);
}

/* --- texture and surface objects --- */

CUDA_CPU_RARE void texture_of_array(texture *t, cudaArray *a) {
  const bool layered = a->flags & cudaArrayLayered;
  t->array = a;
  t->data = a->data;
  t->width = a->width;
  t->height = at_least_1(a->height);
  t->depth = at_least_1(a->depth);
  t->pitch = row_bytes(a);
  t->slice = t->pitch * t->height;
  t->shape = layered     ? a->height ? shape_layered_2d : shape_layered_1d
             : a->depth  ? shape_3d
             : a->height ? shape_2d
                         : shape_1d;
}

CUDA_CPU_RARE void texture_format(texture *t, const cudaChannelFormatDesc &d) {
  t->format = d.f;
  t->bits = static_cast<unsigned char>(d.x);
  t->element = static_cast<unsigned char>(format_bytes(d));
  t->channels = static_cast<unsigned char>(t->element * 8 / t->bits);
}

/* Where the memory is and what it holds. */
CUDA_CPU_RARE cudaError_t texture_resource(texture *t, const cudaResourceDesc &r) {
  if (r.flags) return cudaErrorInvalidValue;
  switch (r.resType) {
  case cudaResourceTypeArray:
    if (!is_array(r.res.array.array)) return cudaErrorInvalidValue;
    texture_of_array(t, r.res.array.array);
    texture_format(t, t->array->desc);
    return cudaSuccess;
  case cudaResourceTypeLinear: {
    const auto &l = r.res.linear;
    const size_t element = format_bytes(l.desc), n = element ? l.sizeInBytes / element : 0;
    if (!element) return cudaErrorInvalidChannelDescriptor;
    if (!n || n > 268435456 || reinterpret_cast<uintptr_t>(l.devPtr) % element || !reaches(l.devPtr, n * element, true))
      return cudaErrorInvalidValue;
    t->data = static_cast<char *>(l.devPtr);
    t->width = n;
    t->height = t->depth = 1;
    t->pitch = t->slice = n * element;
    t->shape = shape_linear;
    texture_format(t, l.desc);
    return cudaSuccess;
  }
  case cudaResourceTypePitch2D: {
    const auto &p = r.res.pitch2D;
    const size_t element = format_bytes(p.desc);
    if (!element) return cudaErrorInvalidChannelDescriptor;
    if (!p.width || !p.height || p.width > 131072 || p.height > 65000 || p.pitchInBytes > 2097120 ||
        p.pitchInBytes % 32 || p.pitchInBytes < p.width * element || reinterpret_cast<uintptr_t>(p.devPtr) % 32 ||
        !reaches(p.devPtr, (p.height - 1) * p.pitchInBytes + p.width * element, true))
      return cudaErrorInvalidValue;
    t->data = static_cast<char *>(p.devPtr);
    t->width = p.width;
    t->height = p.height;
    t->depth = 1;
    t->pitch = p.pitchInBytes;
    t->slice = p.height * p.pitchInBytes;
    t->shape = shape_2d;
    texture_format(t, p.desc);
    return cudaSuccess;
  }
  case cudaResourceTypeMipmappedArray: return unsupported("a texture object of a mipmapped array");
  default: return cudaErrorInvalidValue;
  }
}

CUDA_CPU_RARE cudaError_t texture_reading(texture *t, const cudaTextureDesc &d) {
  const bool floats = t->format == cudaChannelFormatKindFloat;
  for (int i = 0; i < 3; i++) {
    if (static_cast<unsigned>(d.addressMode[i]) > cudaAddressModeBorder) return cudaErrorInvalidValue;
    t->address[i] = d.addressMode[i];
    if (!d.normalizedCoords && t->address[i] != cudaAddressModeBorder) t->address[i] = cudaAddressModeClamp;
  }
  if (static_cast<unsigned>(d.filterMode) > cudaFilterModeLinear ||
      static_cast<unsigned>(d.readMode) > cudaReadModeNormalizedFloat)
    return cudaErrorInvalidValue;
  t->normalized_values = d.readMode == cudaReadModeNormalizedFloat && !floats;
  if (t->normalized_values && t->bits == 32) return cudaErrorInvalidNormSetting;
  t->gives_floats = floats || t->normalized_values;
  t->linear = d.filterMode == cudaFilterModeLinear && t->shape != shape_linear;
  if (t->linear && !t->gives_floats) return cudaErrorInvalidFilterSetting;
  if (d.sRGB) return unsupported("a texture object with sRGB conversion");
  t->normalized_coords = d.normalizedCoords != 0;
  memcpy(t->border, d.borderColor, sizeof t->border);
  if (d.readMode == cudaReadModeNormalizedFloat &&
      t->format != cudaChannelFormatKindFloat) /* kept as a texel would be */
    for (float &b : t->border) {
      const bool is_signed = t->format == cudaChannelFormatKindSigned;
      const float most = static_cast<float>((1 << (t->bits - is_signed)) - 1), least = is_signed ? -1 : 0;
      b = floorf((b < least ? least : b > 1 ? 1 : b) * most + 0.5f) / most;
    }
  return cudaSuccess;
}

/* desc NULL: a surface object */
CUDA_CPU_RARE cudaError_t object_create(unsigned long long *handle, const cudaResourceDesc *r,
                                        const cudaTextureDesc *d) {
  texture checked = {};
  locked lock;
  if (cudaError_t e = texture_resource(&checked, *r)) return error(e);
  if (d) {
    if (cudaError_t e = texture_reading(&checked, *d)) return error(e);
    checked.desc = *d;
  } else if (!checked.array || !(checked.array->flags & cudaArraySurfaceLoadStore))
    return error(cudaErrorInvalidValue);
  texture *made = texture_create();
  if (!made) return error(cudaErrorMemoryAllocation);
  checked.handle = made->handle;
  checked.resource = *r;
  checked.is_surface = !d;
  *made = checked;
  *handle = made->handle;
  return cudaSuccess;
}

/* With the lock held. NULL: no such object (any more). */
CUDA_CPU_RARE texture *object_find(unsigned long long handle, bool is_surface) {
  texture *t = texture_slot(handle);
  return t && t->handle == handle && t->data && t->is_surface == is_surface ? t : nullptr;
}

/* CUDA does not tell of an object that there never was; here it is an error. */
CUDA_CPU_RARE cudaError_t object_destroy(unsigned long long handle, bool is_surface) {
  locked lock;
  texture *t = object_find(handle, is_surface);
  if (!t) return error(cudaErrorInvalidValue);
  t->gone = "that has been destroyed";
  t->data = nullptr;
  return cudaSuccess;
}

CUDA_CPU_CALL cudaCreateTextureObject(cudaTextureObject_t *pTexObject, const cudaResourceDesc *pResDesc,
                                      const cudaTextureDesc *pTexDesc, const cudaResourceViewDesc *pResViewDesc) {
  CUDA_CPU_API(cudaCreateTextureObject);
  if (!pTexObject || !pResDesc) return error(cudaErrorInvalidValue);
  if (!pTexDesc) return error(cudaErrorInvalidResourceHandle); /* as CUDA 13 has it */
  if (pResViewDesc) return unsupported("cudaCreateTextureObject with a resource view");
  return object_create(pTexObject, pResDesc, pTexDesc);
}
CUDA_CPU_CALL cudaDestroyTextureObject(cudaTextureObject_t texObject) {
  CUDA_CPU_API(cudaDestroyTextureObject);
  return object_destroy(texObject, false);
}
CUDA_CPU_CALL cudaGetTextureObjectResourceDesc(cudaResourceDesc *pResDesc, cudaTextureObject_t texObject) {
  CUDA_CPU_API(cudaGetTextureObjectResourceDesc);
  locked lock;
  const texture *t = object_find(texObject, false);
  if (!pResDesc || !t) return error(cudaErrorInvalidValue);
  *pResDesc = t->resource;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaGetTextureObjectTextureDesc(cudaTextureDesc *pTexDesc, cudaTextureObject_t texObject) {
  CUDA_CPU_API(cudaGetTextureObjectTextureDesc);
  locked lock;
  const texture *t = object_find(texObject, false);
  if (!pTexDesc || !t) return error(cudaErrorInvalidValue);
  *pTexDesc = t->desc;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaCreateSurfaceObject(cudaSurfaceObject_t *pSurfObject, const cudaResourceDesc *pResDesc) {
  CUDA_CPU_API(cudaCreateSurfaceObject);
  if (!pSurfObject || !pResDesc) return error(cudaErrorInvalidValue);
  return object_create(pSurfObject, pResDesc, nullptr);
}
CUDA_CPU_CALL cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject) {
  CUDA_CPU_API(cudaDestroySurfaceObject);
  return object_destroy(surfObject, true);
}
CUDA_CPU_CALL cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *pResDesc, cudaSurfaceObject_t surfObject) {
  CUDA_CPU_API(cudaGetSurfaceObjectResourceDesc);
  locked lock;
  const texture *t = object_find(surfObject, true);
  if (!pResDesc || !t) return error(cudaErrorInvalidValue);
  *pResDesc = t->resource;
  return cudaSuccess;
}

/* --- what kernels do wrong --- */

inline const char *shape_name(texture_shape shape) {
  static const char *const names[] = {"a 1D array",          "a 2D array or pitched memory", "a 3D array",
                                      "layers of 1D arrays", "layers of 2D arrays",          "linear memory"};
  return names[shape];
}

[[noreturn]] CUDA_CPU_RARE void texture_fault(const texture_call &c, const text &why) {
  in_kernel(c.name);
  fail_thread(": %s, %s:%d, %s", c.name, c.file, c.line, why.buffer);
}

[[noreturn]] CUDA_CPU_UNTRACED CUDA_CPU_ENTRY void report_object(const texture_call &c, unsigned long long handle,
                                                                 texture_shape shape) {
  const texture *t = texture_slot(handle);
  const char *kind = c.surface ? "surface" : "texture";
  text why = {};
  if (!t || t->handle < handle)
    add(&why, "of a %s object that never was, 0x%llx", kind, handle);
  else if (t->handle > handle || t->gone)
    add(&why, "of a %s object %s", kind, t->handle > handle ? "that has been destroyed" : t->gone);
  else if (t->is_surface != c.surface)
    add(&why, "of a %s object", t->is_surface ? "surface" : "texture");
  else
    add(&why, "of a %s object of %s, not of %s", kind, shape_name(t->shape), shape_name(shape));
  texture_fault(c, why);
}

[[noreturn]] CUDA_CPU_UNTRACED CUDA_CPU_ENTRY void report_type(const texture_call &c, const texture *t, bool floats,
                                                               int channels, size_t bytes) {
  text why = {};
  if (floats != t->gives_floats)
    add(&why, "as %s, of a texture object that gives %s", floats ? "float" : "integers",
        t->gives_floats ? "float" : "integers (cudaReadModeElementType)");
  else if (channels > t->channels)
    add(&why, "as %d channels, of a texture object with %d", channels, t->channels);
  else
    add(&why, "as integers of %zu bits, of a texture object with %d", bytes * 8, t->bits);
  texture_fault(c, why);
}

[[noreturn]] CUDA_CPU_UNTRACED CUDA_CPU_ENTRY void report_place(const texture_call &c, int x, int y, int z,
                                                                size_t bytes) {
  text why = {};
  if (x % static_cast<int>(bytes))
    add(&why, "at byte %d, no multiple of the %zu bytes of the type", x, bytes);
  else
    add(&why, "at (%d,%d,%d), x in bytes, outside the surface (cudaBoundaryModeTrap)", x, y, z);
  texture_fault(c, why);
}

} // namespace cuda_cpu
