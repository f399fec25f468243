/* Arrays, textures and surfaces: the same expectations on a GPU and on the stand-in, whose own messages are at the end.
 * What a texel has to be is worked out by hand, or by the programming guide's formulas. */
#include "test.h"

#include <cuda_runtime.h>
#include <cuda_fp16.h>

#include <math.h>
#include "device_array.h"
#include "fault.h"

template <class... P, class... A> static cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, A... args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  return cudaLaunchKernelEx(&config, kernel, args...);
}

template <class T> static std::vector<T> count_up(size_t n, double first = 0, double step = 1) {
  std::vector<T> v(n);
  for (size_t i = 0; i < n; i++) v[i] = static_cast<T>(first + step * static_cast<double>(i));
  return v;
}

/* An array with the given texels, in the order x, y, z. */
struct array_of {
  cudaArray_t a;
  template <class T>
  array_of(const std::vector<T> &texels, cudaExtent size, unsigned flags = 0,
           cudaChannelFormatDesc desc = cudaCreateChannelDesc<T>())
      : a(nullptr) {
    EXPECT_OK(cudaMalloc3DArray(&a, &desc, size, flags));
    cudaMemcpy3DParms p = {};
    p.extent = make_cudaExtent(size.width, size.height ? size.height : 1, size.depth ? size.depth : 1);
    p.srcPtr = make_cudaPitchedPtr(const_cast<T *>(texels.data()), size.width * sizeof(T), size.width, p.extent.height);
    p.dstArray = a;
    p.kind = cudaMemcpyHostToDevice;
    EXPECT_EQ(texels.size(), p.extent.width * p.extent.height * p.extent.depth);
    EXPECT_OK(cudaMemcpy3D(&p));
  }
  array_of(const array_of &) = delete;
  ~array_of() { cudaFreeArray(a); }
  operator cudaResourceDesc() const {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    return r;
  }
};
template <class T> static cudaResourceDesc linear_of(const device_array<T> &d) {
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeLinear;
  r.res.linear.devPtr = d.p;
  r.res.linear.desc = cudaCreateChannelDesc<T>();
  r.res.linear.sizeInBytes = d.n * sizeof(T);
  return r;
}

struct reading : cudaTextureDesc {
  explicit reading(cudaTextureAddressMode mode = cudaAddressModeClamp, bool linear = false, bool normalized = false)
      : cudaTextureDesc() {
    for (cudaTextureAddressMode &m : addressMode) m = mode;
    filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    normalizedCoords = normalized;
  }
  reading values() const {
    reading r = *this;
    r.readMode = cudaReadModeNormalizedFloat;
    return r;
  }
  reading border(float x, float y = 0, float z = 0, float w = 0) const {
    reading r = *this;
    const float color[] = {x, y, z, w};
    memcpy(r.borderColor, color, sizeof color);
    return r;
  }
};
struct texture_of {
  cudaTextureObject_t t;
  texture_of(const cudaResourceDesc &resource, const cudaTextureDesc &desc) : t(0) {
    EXPECT_OK(cudaCreateTextureObject(&t, &resource, &desc, nullptr));
  }
  texture_of(const texture_of &) = delete;
  ~texture_of() { EXPECT_OK(cudaDestroyTextureObject(t)); }
};

/* The place of a fetch, and how it is made. */
enum fetch_kind { fetch_1d, fetch_2d, fetch_3d, fetch_layered_1d, fetch_layered_2d, fetch_index };
template <class T> __global__ void fetch_all(cudaTextureObject_t t, int kind, const float3 *at, T *out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const float3 p = at[i];
  switch (kind) {
  case fetch_1d: out[i] = tex1D<T>(t, p.x); break;
  case fetch_2d: out[i] = tex2D<T>(t, p.x, p.y); break;
  case fetch_3d: out[i] = tex3D<T>(t, p.x, p.y, p.z); break;
  case fetch_layered_1d: out[i] = tex1DLayered<T>(t, p.x, static_cast<int>(p.z)); break;
  case fetch_layered_2d: out[i] = tex2DLayered<T>(t, p.x, p.y, static_cast<int>(p.z)); break;
  default: out[i] = tex1Dfetch<T>(t, static_cast<int>(p.x));
  }
}
template <class T>
static std::vector<T> fetch(const texture_of &texture, fetch_kind kind, const std::vector<float3> &at) {
  device_array<float3> places(at.size());
  device_array<T> out(at.size());
  places.set(at);
  const int n = static_cast<int>(at.size());
  EXPECT_OK(launch(fetch_all<T>, static_cast<unsigned>(n + 127) / 128, 128, texture.t, static_cast<int>(kind), places.p,
                   out.p, n));
  EXPECT_OK(cudaDeviceSynchronize());
  return out.get();
}
static std::vector<float3> places_1d(const std::vector<float> &x) {
  std::vector<float3> at;
  for (float v : x) at.push_back(make_float3(v, 0, 0));
  return at;
}
static void expect_floats(const std::vector<float> &got, const std::vector<float> &want, const char *what, int line) {
  for (size_t i = 0; i < want.size(); i++)
    if (!(got[i] == want[i]))
      test_fail(__FILE__, line,
                std::string(what) + ", " + std::to_string(i) + ": " + test_show(got[i]) + " against " +
                    test_show(want[i]));
}
#define EXPECT_FLOATS(got, ...) expect_floats(got, std::vector<float> __VA_ARGS__, #got, __LINE__)

/* --- descriptions --- */

template <class T> static void expect_desc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  const cudaChannelFormatDesc d = cudaCreateChannelDesc<T>();
  EXPECT(d.x == x && d.y == y && d.z == z && d.w == w && d.f == f);
}

TEST(channel_descriptions_of_types) {
  expect_desc<char>(8, 0, 0, 0, cudaChannelFormatKindSigned);
  expect_desc<unsigned char>(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
  expect_desc<uchar4>(8, 8, 8, 8, cudaChannelFormatKindUnsigned);
  expect_desc<char2>(8, 8, 0, 0, cudaChannelFormatKindSigned);
  expect_desc<short1>(16, 0, 0, 0, cudaChannelFormatKindSigned);
  expect_desc<ushort2>(16, 16, 0, 0, cudaChannelFormatKindUnsigned);
  expect_desc<int>(32, 0, 0, 0, cudaChannelFormatKindSigned);
  expect_desc<uint4>(32, 32, 32, 32, cudaChannelFormatKindUnsigned);
  expect_desc<float>(32, 0, 0, 0, cudaChannelFormatKindFloat);
  expect_desc<float2>(32, 32, 0, 0, cudaChannelFormatKindFloat);
  const cudaChannelFormatDesc half2s = cudaCreateChannelDescHalf2();
  EXPECT(half2s.x == 16 && half2s.y == 16 && !half2s.z && half2s.f == cudaChannelFormatKindFloat);
}

/* --- arrays --- */

TEST(arrays_know_what_they_are) {
  const array_of flat(count_up<float>(15), make_cudaExtent(5, 3, 0));
  const array_of deep(count_up<short>(24), make_cudaExtent(2, 3, 4), cudaArraySurfaceLoadStore);
  cudaChannelFormatDesc d = {};
  cudaExtent size = {};
  unsigned flags = 9;
  EXPECT_OK(cudaArrayGetInfo(&d, &size, &flags, flat.a));
  EXPECT(d.x == 32 && d.f == cudaChannelFormatKindFloat && size.width == 5 && size.height == 3 && size.depth == 0);
  EXPECT_EQ(flags, 0u);
  EXPECT_OK(cudaArrayGetInfo(nullptr, &size, &flags, deep.a));
  EXPECT(size.width == 2 && size.height == 3 && size.depth == 4);
  EXPECT_EQ(flags, static_cast<unsigned>(cudaArraySurfaceLoadStore));
  EXPECT_OK(cudaGetChannelDesc(&d, deep.a));
  EXPECT(d.x == 16 && d.y == 0 && d.f == cudaChannelFormatKindSigned);
}

TEST(rectangles_to_and_from_arrays) {
  const cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
  cudaArray_t a, b;
  EXPECT_OK(cudaMallocArray(&a, &desc, 6, 4));
  EXPECT_OK(cudaMallocArray(&b, &desc, 6, 4));
  const std::vector<int> zeros(24), some = count_up<int>(12, 1);
  EXPECT_OK(cudaMemcpy2DToArray(a, 0, 0, zeros.data(), 24, 24, 4, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy2DToArray(b, 0, 0, zeros.data(), 24, 24, 4, cudaMemcpyHostToDevice));
  /* 2 x 3 of a 4 x 3 picture to (3, 1), then on to (1, 0) of the other array */
  EXPECT_OK(cudaMemcpy2DToArray(a, 3 * 4, 1, some.data() + 1, 16, 2 * 4, 3, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy2DArrayToArray(b, 1 * 4, 0, a, 3 * 4, 1, 2 * 4, 3));
  std::vector<int> got(24, -1);
  EXPECT_OK(cudaMemcpy2DFromArray(got.data(), 24, b, 0, 0, 24, 4, cudaMemcpyDeviceToHost));
  const int want[24] = {0, 2, 3, 0, 0, 0, 0, 6, 7, 0, 0, 0, 0, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  for (size_t i = 0; i < 24; i++) EXPECT_EQ(got[i], want[i]);

  device_array<int> device(6);
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaMemcpy2DFromArrayAsync(device.p, 8, b, 4, 0, 8, 3, cudaMemcpyDeviceToDevice, stream));
  EXPECT_OK(cudaMemcpy2DToArrayAsync(a, 0, 0, device.p, 8, 8, 2, cudaMemcpyDefault, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.get()[5], 11);
  EXPECT_OK(cudaMemcpy2DFromArray(got.data(), 8, a, 0, 0, 8, 2, cudaMemcpyDeviceToHost));
  EXPECT_EQ(got[3], 7);
  EXPECT_OK(cudaStreamDestroy(stream));

  EXPECT_EQ(cudaMemcpy2DToArray(a, 20, 0, some.data(), 16, 8, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2DToArray(a, 0, 3, some.data(), 16, 8, 2, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2DToArray(a, 0, 0, some.data(), 4, 8, 2, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaMemcpy2DToArray(a, 0, 0, some.data(), 16, 8, 2, cudaMemcpyDeviceToHost),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_OK(cudaFreeArray(a));
  EXPECT_OK(cudaFreeArray(b));
  EXPECT_OK(cudaFreeArray(nullptr));
  cudaGetLastError();
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#ifdef __CUDACC__
#pragma nv_diag_suppress 1444
#endif
/* Without a pitch the bytes go on at the start of the next row. */
TEST(runs_to_and_from_arrays) {
  const array_of a(std::vector<int>(12), make_cudaExtent(4, 3, 0));
  const std::vector<int> some = count_up<int>(5, 1);
  EXPECT_OK(cudaMemcpyToArray(a.a, 8, 1, some.data(), 20, cudaMemcpyHostToDevice));
  std::vector<int> got(12, -1);
  EXPECT_OK(cudaMemcpyFromArray(got.data(), a.a, 0, 0, 48, cudaMemcpyDeviceToHost));
  const int want[12] = {0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0};
  for (size_t i = 0; i < 12; i++) EXPECT_EQ(got[i], want[i]);
  EXPECT_OK(cudaMemcpyFromArray(got.data(), a.a, 4, 2, 8, cudaMemcpyDeviceToHost));
  EXPECT_EQ(got[0], 4);
  EXPECT_EQ(cudaMemcpyToArray(a.a, 8, 2, some.data(), 12, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  cudaGetLastError();
}
#pragma GCC diagnostic pop

TEST(boxes_to_and_from_arrays) {
  const array_of a(count_up<short>(4 * 3 * 2), make_cudaExtent(4, 3, 2));
  std::vector<short> got(5 * 4 * 3, -1);
  cudaMemcpy3DParms p = {};
  p.srcArray = a.a;
  p.srcPos = make_cudaPos(1, 1, 0);
  p.dstPtr = make_cudaPitchedPtr(got.data(), 10, 10, 4);
  p.dstPos = make_cudaPos(0, 1, 1);
  p.extent = make_cudaExtent(3, 2, 2);
  p.kind = cudaMemcpyDeviceToHost;
  EXPECT_OK(cudaMemcpy3D(&p));
  for (int z = 0; z < 3; z++)
    for (int y = 0; y < 4; y++)
      for (int x = 0; x < 5; x++) {
        const bool copied = x < 3 && y >= 1 && y < 3 && z >= 1;
        EXPECT_EQ(got[static_cast<size_t>((z * 4 + y) * 5 + x)], copied ? ((z - 1) * 3 + y) * 4 + x + 1 : -1);
      }
  p.extent.width = 4;
  EXPECT_EQ(cudaMemcpy3D(&p), cudaErrorInvalidValue);
  cudaGetLastError();
}

/* Fills all, then a box of 3 x 2 x 2 in a corner, and sends it to an array and back. */
TEST(pitched_memory_of_three_dimensions) {
  const cudaExtent all = make_cudaExtent(5, 3, 2);
  cudaPitchedPtr d;
  EXPECT_OK(cudaMalloc3D(&d, all));
  EXPECT(d.pitch >= 5 && d.xsize == 5 && d.ysize == 3);
  EXPECT_OK(cudaMemset3D(d, 7, all));
  EXPECT_OK(cudaMemset3D(d, 9, make_cudaExtent(3, 2, 2)));
  const array_of a(std::vector<unsigned char>(30), all);
  std::vector<unsigned char> got(30, 1);
  cudaMemcpy3DParms p = {};
  p.srcPtr = d;
  p.dstArray = a.a;
  p.extent = all;
  p.kind = cudaMemcpyDeviceToDevice;
  EXPECT_OK(cudaMemcpy3D(&p));
  p = cudaMemcpy3DParms();
  p.srcArray = a.a;
  p.dstPtr = make_cudaPitchedPtr(got.data(), 5, 5, 3);
  p.extent = all;
  p.kind = cudaMemcpyDeviceToHost;
  EXPECT_OK(cudaMemcpy3D(&p));
  for (size_t i = 0; i < 30; i++) EXPECT_EQ(got[i], i % 5 < 3 && i / 5 % 3 < 2 ? 9 : 7);
  std::vector<unsigned char> again(30, 1);
  p = cudaMemcpy3DParms();
  p.srcPtr = d;
  p.dstPtr = make_cudaPitchedPtr(again.data(), 5, 5, 3);
  p.extent = all;
  p.kind = cudaMemcpyDeviceToHost;
  EXPECT_OK(cudaMemcpy3D(&p));
  for (size_t i = 0; i < 30; i++) EXPECT_EQ(again[i], got[i]);
  EXPECT_OK(cudaFree(d.ptr));
}

/* --- points --- */

TEST(every_type_reads_as_it_is) {
  const std::vector<float3> at = places_1d({0, 1, 2});
  const std::vector<char> chars = {-128, 127, 5};
  EXPECT_EQ(fetch<char>(texture_of(array_of(chars, make_cudaExtent(3, 0, 0)), reading()), fetch_1d, at)[0], -128);
  const std::vector<unsigned char> uchars = {0, 255, 5};
  EXPECT_EQ(fetch<unsigned char>(texture_of(array_of(uchars, make_cudaExtent(3, 0, 0)), reading()), fetch_1d, at)[1],
            255);
  const std::vector<short2> shorts = {make_short2(-32768, 32767), make_short2(-1, 1), make_short2(3, 4)};
  const short2 s = fetch<short2>(texture_of(array_of(shorts, make_cudaExtent(3, 0, 0)), reading()), fetch_1d, at)[0];
  EXPECT(s.x == -32768 && s.y == 32767);
  const std::vector<ushort4> ushorts = {make_ushort4(65535, 2, 3, 4), make_ushort4(0, 0, 0, 65534),
                                        make_ushort4(1, 1, 1, 1)};
  const ushort4 u = fetch<ushort4>(texture_of(array_of(ushorts, make_cudaExtent(3, 0, 0)), reading()), fetch_1d, at)[1];
  EXPECT(u.x == 0 && u.w == 65534);
  const std::vector<int4> ints = {make_int4(1, 2, 3, -2147483647 - 1), make_int4(5, 6, 7, 8), make_int4(9, 9, 9, 9)};
  EXPECT_EQ(fetch<int4>(texture_of(array_of(ints, make_cudaExtent(3, 0, 0)), reading()), fetch_1d, at)[0].w,
            -2147483647 - 1);
  const std::vector<unsigned> uints = {4294967295u, 1, 0x7fffffff};
  EXPECT_EQ(fetch<unsigned>(texture_of(array_of(uints, make_cudaExtent(3, 0, 0)), reading()), fetch_1d, at)[0],
            4294967295u);
  const std::vector<float4> floats = {make_float4(1, 2, 3, 4), make_float4(5, 6, 7, 8.5f), make_float4(9, 9, 9, 9)};
  const float4 f = fetch<float4>(texture_of(array_of(floats, make_cudaExtent(3, 0, 0)), reading()), fetch_1d, at)[1];
  EXPECT(f.x == 5 && f.y == 6 && f.z == 7 && f.w == 8.5f);
  std::vector<__half> halves = {__float2half(0.5f), __float2half(-65504.0f), __float2half(6e-8f)};
  const array_of h(halves, make_cudaExtent(3, 0, 0), 0, cudaCreateChannelDescHalf());
  EXPECT_FLOATS(fetch<float>(texture_of(h, reading()), fetch_1d, at), {0.5f, -65504.0f, 0x1p-24f});
}

TEST(linear_memory_reads_by_index) {
  device_array<float> d(5);
  d.set({10, 20, 30, 40, 50});
  const texture_of t(linear_of(d), reading());
  EXPECT_FLOATS(fetch<float>(t, fetch_index, places_1d({0, 4, 2, 5, -1, 1000000})), {10, 50, 30, 0, 0, 0});
  device_array<uchar4> c(2);
  c.set({make_uchar4(1, 2, 3, 4), make_uchar4(255, 128, 0, 51)});
  EXPECT_EQ(fetch<uchar4>(texture_of(linear_of(c), reading()), fetch_index, places_1d({1}))[0].y, 128);
  const float4 v = fetch<float4>(texture_of(linear_of(c), reading().values()), fetch_index, places_1d({1}))[0];
  EXPECT(v.x == 1 && v.z == 0 && fabsf(v.w - 0.2f) < 6e-8f && fabsf(v.y - 128.0f / 255) < 6e-8f);
}

/* Texels 10, 20, 30, 40, at places in texels; x as CUDA takes it is a quarter of that. */
static const std::vector<float> beyond = {-5.5f, -0.5f, 0.5f, 3.5f, 4.5f, 6.5f, 9.5f};
static std::vector<float3> quarters(std::vector<float> x) {
  for (float &v : x) v /= 4;
  return places_1d(x);
}

TEST(points_beyond_the_ends) {
  const array_of a(count_up<float>(4, 10, 10), make_cudaExtent(4, 0, 0));
  const texture_of wrap(a, reading(cudaAddressModeWrap, false, true)),
      mirror(a, reading(cudaAddressModeMirror, false, true));
  const texture_of clamp(a, reading(cudaAddressModeClamp, false, true));
  const texture_of border(a, reading(cudaAddressModeBorder, false, true).border(7));
  EXPECT_FLOATS(fetch<float>(wrap, fetch_1d, quarters(beyond)), {30, 40, 10, 40, 10, 30, 20});
  EXPECT_FLOATS(fetch<float>(mirror, fetch_1d, quarters(beyond)), {30, 10, 10, 40, 40, 20, 20});
  EXPECT_FLOATS(fetch<float>(clamp, fetch_1d, quarters(beyond)), {10, 10, 10, 40, 40, 40, 40});
  EXPECT_FLOATS(fetch<float>(border, fetch_1d, quarters(beyond)), {7, 7, 10, 40, 7, 7, 7});
}

/* Without normalised coordinates there are clamp and border only. */
TEST(points_beyond_the_ends_in_texels) {
  const array_of a(count_up<float>(4, 10, 10), make_cudaExtent(4, 0, 0));
  for (cudaTextureAddressMode mode : {cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror})
    EXPECT_FLOATS(fetch<float>(texture_of(a, reading(mode)), fetch_1d, places_1d(beyond)),
                  {10, 10, 10, 40, 40, 40, 40});
  const texture_of border(a, reading(cudaAddressModeBorder).border(7));
  EXPECT_FLOATS(fetch<float>(border, fetch_1d, places_1d(beyond)), {7, 7, 10, 40, 7, 7, 7});
  EXPECT_FLOATS(fetch<float>(border, fetch_1d, places_1d({0, 0.99f, 1, 3.99f, 4})), {10, 10, 20, 40, 7});
}

/* Each dimension has a mode of its own. */
TEST(points_in_two_and_three_dimensions) {
  const array_of flat(count_up<float>(12), make_cudaExtent(4, 3, 0)), deep(count_up<int>(24), make_cudaExtent(4, 3, 2));
  reading r(cudaAddressModeWrap, false, true);
  r.addressMode[1] = cudaAddressModeMirror;
  const texture_of t(flat, r);
  /* texels (1, 2), (-1, 1) and (6, -2) */
  EXPECT_FLOATS(
      fetch<float>(t, fetch_2d,
                   {make_float3(0.375f, 2.5f / 3, 0), make_float3(-0.125f, 0.5f, 0), make_float3(1.625f, -0.5f, 0)}),
      {9, 7, 6});
  const texture_of cube(deep, reading());
  const std::vector<int> got = fetch<int>(cube, fetch_3d, {make_float3(2.5f, 1.5f, 1.5f), make_float3(-3, 9, 0.5f)});
  EXPECT_EQ(got[0], 12 + 4 + 2);
  EXPECT_EQ(got[1], 8);
}

TEST(borders_have_colors) {
  const std::vector<uchar4> texels = {make_uchar4(1, 2, 3, 4)};
  const array_of a(texels, make_cudaExtent(1, 1, 0));
  const reading r = reading(cudaAddressModeBorder).values().border(0.25f, -3, 1000, 0.125f);
  const std::vector<float3> outside = {make_float3(-1, 0.5f, 0), make_float3(0.5f, 1.5f, 0)};
  for (float4 v : fetch<float4>(texture_of(a, r), fetch_2d, outside)) {
    EXPECT_EQ(v.x, 64 / 255.0f); /* as a texel of 8 bits would have it */
    EXPECT_EQ(v.w, 32 / 255.0f);
  }
  for (uchar4 v : fetch<uchar4>(texture_of(a, reading(cudaAddressModeBorder)), fetch_2d, outside)) EXPECT_EQ(v.y, 0);
}

/* --- values from -1 or 0 to 1 --- */

template <class T> static void expect_normalized(const std::vector<T> &texels, const std::vector<float> &want) {
  const array_of a(texels, make_cudaExtent(texels.size(), 0, 0));
  std::vector<float> at;
  for (size_t i = 0; i < texels.size(); i++) at.push_back(static_cast<float>(i) + 0.5f);
  const std::vector<float> got = fetch<float>(texture_of(a, reading().values()), fetch_1d, places_1d(at));
  for (size_t i = 0; i < want.size(); i++) EXPECT(fabsf(got[i] - want[i]) < 6e-8f);
}

TEST(integers_read_as_fractions) {
  expect_normalized<unsigned char>({0, 1, 51, 254, 255}, {0, 1 / 255.0f, 0.2f, 254 / 255.0f, 1});
  expect_normalized<signed char>({0, 1, 127, -127, -128, -64}, {0, 1 / 127.0f, 1, -1, -1, -64 / 127.0f});
  expect_normalized<unsigned short>({0, 1, 13107, 65535}, {0, 1 / 65535.0f, 0.2f, 1});
  expect_normalized<short>({0, 1, 32767, -32767, -32768}, {0, 1 / 32767.0f, 1, -1, -1});
}

/* --- filters --- */

TEST(weights_are_multiples_of_1_256th) {
  const array_of a(std::vector<float>{3, 1027, 515}, make_cudaExtent(3, 0, 0));
  std::vector<float> at, want;
  for (int k = 0; k < 512; k++) {
    at.push_back(0.5f + static_cast<float>(k) / 256);
    want.push_back(k < 256 ? 3 + 4.0f * static_cast<float>(k) : 1027 - 2.0f * static_cast<float>(k - 256));
  }
  const texture_of t(a, reading(cudaAddressModeClamp, true));
  expect_floats(fetch<float>(t, fetch_1d, places_1d(at)), want, "weights", __LINE__);
}

TEST(filters_beyond_the_ends) {
  const array_of a(count_up<float>(4, 10, 10), make_cudaExtent(4, 0, 0));
  const texture_of wrap(a, reading(cudaAddressModeWrap, true, true)),
      mirror(a, reading(cudaAddressModeMirror, true, true));
  const texture_of clamp(a, reading(cudaAddressModeClamp, true, true));
  const texture_of border(a, reading(cudaAddressModeBorder, true, true).border(100));
  const std::vector<float3> at = quarters({0, 4, 1.25f, 0.25f, -0.25f, 5.25f, -8});
  EXPECT_FLOATS(fetch<float>(wrap, fetch_1d, at), {25, 25, 17.5f, 17.5f, 32.5f, 17.5f, 25});
  EXPECT_FLOATS(fetch<float>(mirror, fetch_1d, at), {10, 40, 17.5f, 10, 10, 32.5f, 10});
  EXPECT_FLOATS(fetch<float>(clamp, fetch_1d, at), {10, 40, 17.5f, 10, 10, 40, 10});
  EXPECT_FLOATS(fetch<float>(border, fetch_1d, at),
                {77.5f, 85, 58.75f, 66.25f, 88.75f, 100, 100}); /* of the row, too */
  reading row = reading(cudaAddressModeBorder, true, true).border(100);
  row.addressMode[1] = cudaAddressModeClamp;
  const texture_of one(a, row);
  EXPECT_FLOATS(fetch<float>(one, fetch_1d, at), {55, 70, 17.5f, 32.5f, 77.5f, 100, 100});
}

TEST(filters_in_two_dimensions) {
  const array_of a(std::vector<float>{16, 32, 64, 128}, make_cudaExtent(2, 2, 0));
  const texture_of t(a, reading(cudaAddressModeClamp, true));
  /* at (3/4, 1/4) between the centers: .75 * (.25 * 16 + .75 * 32) + .25 * (.25 * 64 + .75 * 128) */
  EXPECT_FLOATS(fetch<float>(t, fetch_2d,
                             {make_float3(1.25f, 0.75f, 0), make_float3(0.5f, 1.5f, 0), make_float3(1, 1, 0),
                              make_float3(0.5f, 1, 0)}),
                {49, 64, 60, 40});
}

TEST(filters_in_three_dimensions) {
  const array_of a(count_up<float>(8, 0, 8), make_cudaExtent(2, 2, 2));
  const texture_of t(a, reading(cudaAddressModeClamp, true));
  /* the texels grow by 8, 16 and 32 along x, y and z */
  EXPECT_FLOATS(
      fetch<float>(t, fetch_3d,
                   {make_float3(1, 0.5f, 0.5f), make_float3(0.75f, 1.25f, 1.5f), make_float3(1.25f, 1, 0.75f)}),
      {4, 2 + 12 + 32, 6 + 8 + 8});
}

TEST(filters_of_fractions_and_halves) {
  const array_of c(std::vector<unsigned char>{0, 255}, make_cudaExtent(2, 0, 0));
  EXPECT_FLOATS(
      fetch<float>(texture_of(c, reading(cudaAddressModeClamp, true).values()), fetch_1d, places_1d({0.75f, 1, 1.5f})),
      {16384 / 65535.0f, 32768 / 65535.0f, 1});
  const array_of h(std::vector<__half>{__float2half(1), __float2half(3)}, make_cudaExtent(2, 0, 0), 0,
                   cudaCreateChannelDescHalf());
  EXPECT_FLOATS(fetch<float>(texture_of(h, reading(cudaAddressModeClamp, true)), fetch_1d, places_1d({0.75f, 1})),
                {1.5f, 2});
}

TEST(filters_of_pitched_memory) {
  float *p;
  size_t pitch;
  EXPECT_OK(cudaMallocPitch(&p, &pitch, 3 * sizeof(float), 2));
  const std::vector<float> texels = {0, 4, 8, 100, 104, 108};
  EXPECT_OK(cudaMemcpy2D(p, pitch, texels.data(), 12, 12, 2, cudaMemcpyHostToDevice));
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypePitch2D;
  r.res.pitch2D.devPtr = p;
  r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  r.res.pitch2D.width = 3;
  r.res.pitch2D.height = 2;
  r.res.pitch2D.pitchInBytes = pitch;
  {
    const texture_of t(r, reading(cudaAddressModeClamp, true));
    EXPECT_FLOATS(fetch<float>(t, fetch_2d, {make_float3(1, 0.5f, 0), make_float3(2.5f, 1, 0), make_float3(9, 9, 0)}),
                  {2, 58, 108});
    cudaResourceDesc back = {};
    cudaTextureDesc how = {};
    EXPECT_OK(cudaGetTextureObjectResourceDesc(&back, t.t));
    EXPECT_OK(cudaGetTextureObjectTextureDesc(&how, t.t));
    EXPECT(back.resType == cudaResourceTypePitch2D && back.res.pitch2D.devPtr == p);
    EXPECT(how.filterMode == cudaFilterModeLinear && how.addressMode[1] == cudaAddressModeClamp);
  }
  r.res.pitch2D.pitchInBytes = 13;
  cudaTextureObject_t none;
  const reading plain;
  EXPECT_EQ(cudaCreateTextureObject(&none, &r, &plain, nullptr), cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaFree(p));
}

TEST(layers_are_not_filtered) {
  const array_of rows(count_up<float>(6, 0, 10), make_cudaExtent(2, 0, 3), cudaArrayLayered);
  const array_of planes(count_up<float>(8, 0, 8), make_cudaExtent(2, 2, 2), cudaArrayLayered);
  const reading linear(cudaAddressModeClamp, true);
  EXPECT_FLOATS(fetch<float>(texture_of(rows, linear), fetch_layered_1d,
                             {make_float3(1, 0, 0), make_float3(1, 0, 2), make_float3(0.5f, 0, 9)}),
                {5, 45, 40});
  EXPECT_FLOATS(fetch<float>(texture_of(planes, linear), fetch_layered_2d,
                             {make_float3(1, 1, 0), make_float3(1, 1, 1), make_float3(0.5f, 1, -5)}),
                {12, 44, 40});
}

TEST(no_coordinate_is_too_large) {
  const array_of a(count_up<float>(4, 10, 10), make_cudaExtent(4, 0, 0));
  const std::vector<float> at = {1e30f, -1e30f,        3.4e38f,        -3.4e38f, INFINITY, -INFINITY,
                                 NAN,   2147483648.0f, -2147483904.0f, 1e-40f,   9.3e18f,  16777216.0f};
  for (int mode = cudaAddressModeWrap; mode <= cudaAddressModeBorder; mode++)
    for (int how = 0; how < 4; how++) {
      const texture_of t(a, reading(static_cast<cudaTextureAddressMode>(mode), how & 1, how & 2).border(50));
      for (float v : fetch<float>(t, fetch_1d, places_1d(at))) EXPECT(v >= 10 && v <= 50);
    }
  const texture_of clamp(a, reading(cudaAddressModeClamp, true));
  EXPECT_FLOATS(fetch<float>(clamp, fetch_1d, places_1d({1e30f, -1e30f, INFINITY, -INFINITY})), {40, 10, 40, 10});
}

/* --- wrong combinations --- */

static cudaError_t try_texture(const cudaResourceDesc &r, const cudaTextureDesc &d) {
  cudaTextureObject_t t = 0;
  const cudaError_t e = cudaCreateTextureObject(&t, &r, &d, nullptr);
  if (!e) EXPECT_OK(cudaDestroyTextureObject(t));
  cudaGetLastError();
  return e;
}

TEST(what_cannot_be_a_texture) {
  const array_of ints(count_up<int>(4), make_cudaExtent(4, 0, 0)), chars(count_up<char>(4), make_cudaExtent(4, 0, 0));
  const reading linear(cudaAddressModeClamp, true);
  EXPECT(try_texture(ints, linear) != cudaSuccess);
  EXPECT(try_texture(ints, reading().values()) != cudaSuccess);
  EXPECT(try_texture(chars, linear) != cudaSuccess);
  EXPECT_OK(try_texture(chars, linear.values()));
  cudaTextureObject_t t;
  const cudaResourceDesc r = ints;
  const reading plain;
  EXPECT_EQ(cudaCreateTextureObject(nullptr, &r, &plain, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaCreateTextureObject(&t, nullptr, &plain, nullptr), cudaErrorInvalidValue);
  EXPECT(cudaCreateTextureObject(&t, &r, nullptr, nullptr) != cudaSuccess);
  cudaArray_t a;
  const cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>(),
                              three = {32, 32, 32, 0, cudaChannelFormatKindFloat};
  EXPECT_EQ(cudaMallocArray(&a, &desc, 0, 0), cudaErrorInvalidValue);
  EXPECT(cudaMallocArray(&a, &three, 4, 4) != cudaSuccess);
  EXPECT(cudaMallocArray(&a, &desc, 1 << 20, 0) != cudaSuccess);
#ifdef CUDA_ON_CPU /* a GPU may let it pass, though the array was not made for it */
  cudaSurfaceObject_t s;
  EXPECT_EQ(cudaCreateSurfaceObject(&s, &r), cudaErrorInvalidValue);
#endif
  cudaGetLastError();
}

/* --- surfaces --- */

/* Turns a picture of w x h upside down, from one surface to another. */
__global__ void turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int w, int h) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  if (x >= w || y >= h) return;
  short2 pixel;
  surf2Dread(&pixel, from, x * 4, y);
  surf2Dwrite(pixel, to, x * 4, h - 1 - y);
}
/* What is beyond the edges, by the mode that is asked for. */
__global__ void read_edges(cudaSurfaceObject_t s, int *out) {
  out[0] = surf2Dread<int>(s, -4, 0, cudaBoundaryModeZero);
  out[1] = surf2Dread<int>(s, 0, 3, cudaBoundaryModeZero);
  out[2] = surf2Dread<int>(s, 12, 1, cudaBoundaryModeZero);
  out[3] = surf2Dread<int>(s, 8, 1, cudaBoundaryModeZero);
  out[4] = surf2Dread<int>(s, 400, 1, cudaBoundaryModeClamp);
  out[5] = surf2Dread<int>(s, -8, -3, cudaBoundaryModeClamp);
  surf2Dwrite(-1, s, 12, 0, cudaBoundaryModeZero);
  surf2Dwrite(-2, s, 400, 77, cudaBoundaryModeClamp);
  out[6] = surf2Dread<int>(s, 0, 1);
  out[7] = surf2Dread<int>(s, 8, 1);
}
__global__ void fill_box(cudaSurfaceObject_t s, cudaSurfaceObject_t line) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y), z = static_cast<int>(threadIdx.z);
  surf3Dwrite(static_cast<unsigned char>(x + 10 * y + 100 * z), s, x, y, z);
  if (!y && !z) surf1Dwrite(static_cast<float>(x) / 4, line, x * 4);
}

struct surface_of {
  cudaSurfaceObject_t s;
  explicit surface_of(const cudaResourceDesc &r) : s(0) { EXPECT_OK(cudaCreateSurfaceObject(&s, &r)); }
  surface_of(const surface_of &) = delete;
  ~surface_of() { EXPECT_OK(cudaDestroySurfaceObject(s)); }
};

TEST(surfaces_are_read_and_written) {
  std::vector<short2> picture;
  for (short i = 0; i < 15; i++) picture.push_back(make_short2(i, static_cast<short>(-i)));
  const array_of a(picture, make_cudaExtent(5, 3, 0), cudaArraySurfaceLoadStore);
  const array_of b(picture, make_cudaExtent(5, 3, 0), cudaArraySurfaceLoadStore);
  {
    const surface_of from(a), to(b);
    EXPECT_OK(launch(turn, 1, dim3(8, 4), from.s, to.s, 5, 3));
    EXPECT_OK(cudaDeviceSynchronize());
  }
  const std::vector<short2> got = fetch<short2>(texture_of(b, reading()), fetch_2d,
                                                {make_float3(0, 0, 0), make_float3(4, 0, 0), make_float3(2, 2, 0)});
  EXPECT(got[0].x == 10 && got[0].y == -10 && got[1].x == 14 && got[2].x == 2 && got[2].y == -2);
}

TEST(surfaces_have_edges) {
  const array_of a(count_up<int>(6, 1), make_cudaExtent(3, 2, 0), cudaArraySurfaceLoadStore);
  const surface_of s(a);
  device_array<int> out(8);
  EXPECT_OK(launch(read_edges, 1, 1, s.s, out.p));
  const int want[8] = {0, 0, 0, 6, 6, 1, 4, -2};
  const std::vector<int> got = out.get();
  for (size_t i = 0; i < 8; i++) EXPECT_EQ(got[i], want[i]);
}

TEST(surfaces_of_one_and_three_dimensions) {
  const array_of box(std::vector<unsigned char>(24), make_cudaExtent(4, 3, 2), cudaArraySurfaceLoadStore);
  const array_of line(std::vector<float>(4), make_cudaExtent(4, 0, 0), cudaArraySurfaceLoadStore);
  {
    const surface_of s(box), l(line);
    EXPECT_OK(launch(fill_box, 1, dim3(4, 3, 2), s.s, l.s));
    EXPECT_OK(cudaDeviceSynchronize());
  }
  const std::vector<unsigned char> got =
      fetch<unsigned char>(texture_of(box, reading()), fetch_3d, {make_float3(3, 2, 1), make_float3(1, 0, 1)});
  EXPECT_EQ(got[0], 123);
  EXPECT_EQ(got[1], 101);
  EXPECT_FLOATS(fetch<float>(texture_of(line, reading()), fetch_1d, places_1d({0, 3})), {0, 0.75f});
}

/* --- the stand-in's own --- */

#ifdef CUDA_ON_CPU

/* What the guide leaves open: the nearest multiple, and ties up. */
TEST(weights_are_rounded_to_the_nearest_multiple) {
  const array_of a(std::vector<float>{0, 256, 0}, make_cudaExtent(3, 0, 0));
  const texture_of t(a, reading(cudaAddressModeClamp, true));
  const float step = 1.0f / 256;
  EXPECT_FLOATS(fetch<float>(t, fetch_1d,
                             places_1d({0.5f + 0.49f * step, 0.5f + 0.51f * step, 0.5f + 1.5f * step,
                                        0.5f + 9.25f * step, 1.5f - 0.49f * step, 1.5f - 0.51f * step})),
                {0, 1, 2, 9, 256, 255});
}

TEST(errors_of_wrong_combinations) {
  const array_of ints(count_up<int>(4), make_cudaExtent(4, 0, 0));
  EXPECT_EQ(try_texture(ints, reading(cudaAddressModeClamp, true)), cudaErrorInvalidFilterSetting);
  EXPECT_EQ(try_texture(ints, reading().values()), cudaErrorInvalidNormSetting);
  device_array<float> d(4);
  cudaResourceDesc r = linear_of(d);
  r.res.linear.sizeInBytes = 20;
  EXPECT_EQ(try_texture(r, reading()), cudaErrorInvalidValue);
  r = linear_of(d);
  r.res.linear.desc.y = 16;
  EXPECT_EQ(try_texture(r, reading()), cudaErrorInvalidChannelDescriptor);
  r.resType = cudaResourceTypeMipmappedArray;
  said = stderr_of([&] { EXPECT_EQ(try_texture(r, reading()), cudaErrorNotSupported); });
  EXPECT_SAID("mipmapped");
  cudaArray_t a = nullptr;
  const cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
  said = stderr_of([&] {
    EXPECT_EQ(cudaMalloc3DArray(&a, &desc, make_cudaExtent(4, 4, 6), cudaArrayCubemap), cudaErrorNotSupported);
  });
  EXPECT_SAID("not supported: an array with flags");
  EXPECT_EQ(cudaFreeArray(reinterpret_cast<cudaArray_t>(d.p)), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDestroyTextureObject(12345), cudaErrorInvalidValue);
  cudaGetLastError();
}

static int anywhere[4];
__global__ void fetch_wrongly(int what, cudaTextureObject_t t) {
  if (threadIdx.x != 3) return;
  switch (what) {
  case 0: NOTE(0), anywhere[0] = static_cast<int>(tex2D<float>(t, 0, 0)); break;
  case 1: NOTE(0), anywhere[0] = tex1D<int>(t, 0); break;
  case 2: NOTE(0), anywhere[0] = static_cast<int>(tex1D<float4>(t, 0).w); break;
  case 3: NOTE(0), anywhere[0] = surf1Dread<int>(t, 0); break;
  case 4: NOTE(0), anywhere[0] = surf1Dread<int>(t, 16); break;
  case 5: NOTE(0), anywhere[0] = surf1Dread<int>(t, 2); break;
  case 6: NOTE(0), anywhere[0] = tex1D<unsigned char>(t, 0); break;
  case 7: NOTE(0), anywhere[0] = static_cast<int>(tex1Dfetch<float>(t, 0)); break;
  default: NOTE(0), anywhere[0] = static_cast<int>(tex1D<float>(t, 0));
  }
}

/* Each schedule needs objects of its own, since a reset ends them. */
template <class T, class F> static void expect_bad_fetch(int what, unsigned flags, F prepare) {
  expect_fault(__FILE__, __LINE__, [&] {
    array_of a(count_up<T>(4), make_cudaExtent(4, 0, 0), flags);
    const cudaTextureObject_t t = prepare(a);
    const cudaError_t launched = launch(fetch_wrongly, 2, 4, what, t);
    a.a = nullptr;
    return launched;
  });
  EXPECT_SAID("fetch_wrongly(int, unsigned long long)");
  EXPECT_SAID("): thread (3,0,0): ");
  EXPECT_SAID_LINE(0);
}
static cudaTextureObject_t plain_texture(const cudaResourceDesc &r) {
  cudaTextureObject_t t = 0;
  const reading d;
  EXPECT_OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
  return t;
}
static cudaSurfaceObject_t plain_surface(const cudaResourceDesc &r) {
  cudaSurfaceObject_t s = 0;
  EXPECT_OK(cudaCreateSurfaceObject(&s, &r));
  return s;
}

TEST(a_fetch_from_an_object_that_is_gone_is_named) {
  expect_bad_fetch<float>(-1, 0, [](array_of &a) {
    const cudaTextureObject_t t = plain_texture(a);
    EXPECT_OK(cudaDestroyTextureObject(t));
    return t;
  });
  EXPECT_SAID("tex1D, ");
  EXPECT_SAID("of a texture object that has been destroyed");
  expect_bad_fetch<float>(-1, 0, [](array_of &a) { /* its place has gone to another one */
                                                   const cudaTextureObject_t t = plain_texture(a);
                                                   EXPECT_OK(cudaDestroyTextureObject(t));
                                                   EXPECT(plain_texture(a) != t);
                                                   return t;
  });
  EXPECT_SAID("of a texture object that has been destroyed");
  expect_bad_fetch<float>(-1, 0, [](array_of &a) {
    const cudaTextureObject_t t = plain_texture(a);
    EXPECT_OK(cudaFreeArray(a.a));
    return t;
  });
  EXPECT_SAID("of a texture object whose array has been freed");
  expect_bad_fetch<float>(7, 0, [](array_of &) {
    float *p = nullptr;
    EXPECT_OK(cudaMalloc(&p, 16));
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear = {p, cudaCreateChannelDesc<float>(), 16};
    const cudaTextureObject_t t = plain_texture(r);
    EXPECT_OK(cudaFree(p));
    return t;
  });
  EXPECT_SAID("tex1Dfetch, ");
  EXPECT_SAID("of a texture object whose memory has been freed");
  expect_bad_fetch<float>(-1, 0, [](array_of &a) { /* a reset takes the memory, and with it the array */
                                                   const cudaTextureObject_t t = plain_texture(a);
                                                   EXPECT_OK(cudaDeviceReset());
                                                   cudaExtent size;
                                                   EXPECT_EQ(cudaArrayGetInfo(nullptr, &size, nullptr, a.a),
                                                             cudaErrorInvalidValue);
                                                   cudaGetLastError();
                                                   return t;
  });
  EXPECT_SAID("of a texture object whose array has been freed");
  expect_bad_fetch<float>(-1, 0, [](array_of &) { return 0; });
  EXPECT_SAID("of a texture object that never was, 0x0");
}

TEST(a_fetch_that_does_not_fit_the_object_is_named) {
  expect_bad_fetch<float>(0, 0, [](array_of &a) { return plain_texture(a); });
  EXPECT_SAID("tex2D, ");
  EXPECT_SAID("of a texture object of a 1D array, not of a 2D array or pitched memory");
  expect_bad_fetch<float>(1, 0, [](array_of &a) { return plain_texture(a); });
  EXPECT_SAID("as integers, of a texture object that gives float");
  expect_bad_fetch<int>(-1, 0, [](array_of &a) { return plain_texture(a); });
  EXPECT_SAID("as float, of a texture object that gives integers");
  expect_bad_fetch<float>(2, 0, [](array_of &a) { return plain_texture(a); });
  EXPECT_SAID("as 4 channels, of a texture object with 1");
  expect_bad_fetch<int>(6, 0, [](array_of &a) { return plain_texture(a); });
  EXPECT_SAID("as integers of 8 bits, of a texture object with 32");
  expect_bad_fetch<int>(3, 0, [](array_of &a) { return plain_texture(a); });
  EXPECT_SAID("surf1Dread, ");
  EXPECT_SAID("of a texture object");
}

TEST(a_place_outside_a_surface_is_named) {
  expect_bad_fetch<int>(4, cudaArraySurfaceLoadStore, [](array_of &a) { return plain_surface(a); });
  EXPECT_SAID("at (16,0,0), x in bytes, outside the surface (cudaBoundaryModeTrap)");
  expect_bad_fetch<int>(5, cudaArraySurfaceLoadStore, [](array_of &a) { return plain_surface(a); });
  EXPECT_SAID("at byte 2, no multiple of the 4 bytes of the type");
}

#endif
