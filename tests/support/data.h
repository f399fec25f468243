/* What the tests of reduce, scan and matmul share: data that is the same on every machine, device arrays that detect
 * writes outside their bounds, and comparison by bits. Include it after gpukit.cuh. */
#ifndef DATA_H
#define DATA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <limits>
#include <math.h>
#include <stdint.h>
#include <utility>
#include <vector>
#include "hooks.h"
#include "on_cpu.h"
#include "test.h"

/* Every element type, with the name that the C API has for it. Where accesses are checked and not values, or nothing
 * is run, the types of a size are alike. */
#define FLOAT_TYPES(X) X(f16, __half) X(bf16, __nv_bfloat16) X(f32, float) X(f64, double)
#ifdef TEST_FEW_TYPES
#define ALL_TYPES(X) X(u8, uint8_t) X(i16, int16_t) X(i32, int32_t) X(i64, int64_t) X(f16, __half) X(f64, double)
#else
#define ALL_TYPES(X)                                                                                                   \
  X(i8, int8_t)                                                                                                        \
  X(u8, uint8_t)                                                                                                       \
  X(i16, int16_t)                                                                                                      \
  X(u16, uint16_t)                                                                                                     \
  X(i32, int32_t) X(u32, uint32_t) X(i64, int64_t) X(u64, uint64_t) FLOAT_TYPES(X)
#endif

/* --- data: element i of a sequence ---------------------------------------------------------------------------------
 * Integer hashing and exact float operations only, so that every machine has the same bits. */

inline uint64_t mix(uint64_t seed, uint64_t i) { /* splitmix64 */
  uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1342543de82ef95u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
inline int uniform(uint64_t seed, uint64_t i, int low, int high) {
  return low + static_cast<int>(mix(seed, i) % static_cast<uint64_t>(high - low + 1));
}
/* Nearly N(0, 1): twice the sum of three numbers of 21 bits out of [-1/2, 1/2). A float holds each exactly. */
inline double gauss(uint64_t seed, uint64_t i) {
  const uint64_t x = mix(seed, i), part = 0x1fffff;
  const int64_t sum = static_cast<int64_t>((x & part) + (x >> 21 & part) + (x >> 42 & part)) - 3 * 0x100000;
  return static_cast<double>(sum) * (1.0 / 0x100000);
}

/* --- types ---------------------------------------------------------------------------------------------------------*/

template <class T> struct is_half : std::false_type {};
template <> struct is_half<__half> : std::true_type {};
template <> struct is_half<__nv_bfloat16> : std::true_type {};
template <class T> struct is_float : std::integral_constant<bool, !std::is_integral<T>::value> {};

/* The conversions that CUDA's headers offer by other names for each type. */
template <class T> T make(double x) { return static_cast<T>(x); }
template <> inline __half make<__half>(double x) { return __float2half_rn(static_cast<float>(x)); }
template <> inline __nv_bfloat16 make<__nv_bfloat16>(double x) { return __float2bfloat16_rn(static_cast<float>(x)); }

/* An element as a loop on the host computes with it: a half becomes a float. */
template <class T> T plain(T x) { return x; }
inline float plain(__half x) { return __half2float(x); }
inline float plain(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T> using plain_type = decltype(plain(std::declval<T>()));

/* Numbers of many magnitudes that use all bits of T: their sums round at almost every step, so that another order of
 * additions gives other bits. */
template <class T> T rounding(uint64_t seed, uint64_t i) {
  double x = gauss(seed, i);
  if (sizeof(T) == 8) x += gauss(seed + 1000, i) * (1.0 / (1 << 30));
  return make<T>(x * (1.0 / static_cast<double>(1 << mix(seed + 2000, i) % 8)));
}
template <class T> std::vector<T> random_elements(uint64_t seed, size_t n) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; i++) x[i] = rounding<T>(seed, i);
  return x;
}

template <class T> std::vector<T> first_of(const std::vector<T> &x, size_t n) {
  return std::vector<T>(x.data(), x.data() + n);
}
/* A computed input that is what an array is. */
template <class T> struct element_of {
  const T *x;
  __device__ T operator()(size_t i) const { return x[i]; }
};

/* --- comparison by bits, but a NaN is a NaN ------------------------------------------------------------------------*/

template <class V> bool same(const V &x, const V &y) { return memcmp(&x, &y, sizeof(V)) == 0; }
template <> inline bool same(const float &x, const float &y) { return memcmp(&x, &y, 4) == 0 || (x != x && y != y); }
template <> inline bool same(const double &x, const double &y) { return memcmp(&x, &y, 8) == 0 || (x != x && y != y); }
template <> inline bool same(const __half &x, const __half &y) { return same(plain(x), plain(y)); }
template <> inline bool same(const __nv_bfloat16 &x, const __nv_bfloat16 &y) { return same(plain(x), plain(y)); }
template <class V> bool same(const gk_arg<V> &x, const gk_arg<V> &y) {
  return same(x.value, y.value) && x.index == y.index;
}

/* FNV-1a over the elements' bytes: of recorded results */
template <class T> uint64_t hash_of(const std::vector<T> &x) {
  const unsigned char *const byte = reinterpret_cast<const unsigned char *>(x.data());
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < x.size() * sizeof(T); i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
  return hash;
}

/* A value for a message: as a number if it is one, and its bytes, the most significant one first. */
template <class V> std::string show_number(V v, std::true_type) { return test_show(v) + " "; }
template <class V> std::string show_number(const V &, std::false_type) { return ""; }
template <class V> std::string show(const V &v) {
  unsigned char byte[sizeof(V)];
  memcpy(byte, &v, sizeof(V));
  std::string hex;
  char digits[3];
  for (size_t i = sizeof(V); i-- > 0;) {
    snprintf(digits, sizeof(digits), "%02x", byte[i]);
    hex += digits;
  }
  return show_number(v, std::is_arithmetic<V>()) + "(0x" + hex + ")";
}
inline std::string show(const __half &v) { return show(plain(v)); }
inline std::string show(const __nv_bfloat16 &v) { return show(plain(v)); }
template <class V> std::string show(const gk_arg<V> &v) { return show(v.value) + " at " + test_show(v.index); }

inline std::string sentence(const char *text) { return text; }
template <class... Args> std::string sentence(const char *format, Args... args) {
  char text[256];
  snprintf(text, sizeof(text), format, args...);
  return text;
}
template <class V, class... Args>
bool expect_same(const char *file, int line, const V &actual, const V &expected, Args... where) {
  if (same(actual, expected)) return true;
  test_fail(file, line, sentence(where...) + ": " + show(actual) + ", not " + show(expected));
  return false;
}
template <class V, class... Args>
bool expect_same(const char *file, int line, const std::vector<V> &actual, const std::vector<V> &expected,
                 Args... where) {
  if (actual.size() != expected.size()) {
    test_fail(file, line,
              sentence(where...) + ": " + test_show(actual.size()) + " elements, not " + test_show(expected.size()));
    return false;
  }
  size_t wrong = 0, first = 0;
  for (size_t i = actual.size(); i-- > 0;)
    if (!same(actual[i], expected[i])) wrong++, first = i;
  if (!wrong) return true;
  test_fail(file, line,
            sentence(where...) + ": " + test_show(wrong) + " of " + test_show(actual.size()) + " differ, first [" +
                test_show(first) + "]: " + show(actual[first]) + ", not " + show(expected[first]));
  return false;
}
/* EXPECT_SAME(actual, expected, "format for where it was", ...): of values, or of vectors */
#define EXPECT_SAME(actual, expected, ...) expect_same(__FILE__, __LINE__, actual, expected, __VA_ARGS__)

/* A call must fail with this code, and this text must be in the detail. CUDA's last error stays. */
#define EXPECT_FAILS(expected_code, part, ...)                                                                         \
  do {                                                                                                                 \
    EXPECT_EQ((int)(__VA_ARGS__), (int)(expected_code));                                                               \
    EXPECT_HAS(gk_error_detail(), part);                                                                               \
  } while (0)
/* The same, and clears that error. */
#define EXPECT_ERROR(...)                                                                                              \
  do {                                                                                                                 \
    EXPECT_FAILS(__VA_ARGS__);                                                                                         \
    cudaGetLastError();                                                                                                \
  } while (0)

/* --- device memory -------------------------------------------------------------------------------------------------*/

/* n elements that begin `shift` elements past a multiple of 256 bytes. Those made without data are outputs: every byte
 * is 0xa5, and so are 256 bytes on either side, which must still be so at the end. Those made from data end where the
 * allocation ends, so that a sanitizer sees every access past it. */
template <class T> struct device_array {
  static const size_t guard = 256;
  unsigned char *base;
  size_t n, before, bytes;
  T *ptr;

  explicit device_array(size_t count, size_t shift = 0) { create(count, shift, guard); }
  explicit device_array(const std::vector<T> &host, size_t shift = 0) {
    create(host.size(), shift, 0);
    set(host);
  }
  device_array(const device_array &) = delete;
  device_array &operator=(const device_array &) = delete;
  ~device_array() {
    const size_t end = before + n * sizeof(T);
    const size_t wrong = written(base, before) + written(base + end, bytes - end);
    if (wrong) test_fail(__FILE__, __LINE__, test_show(wrong) + " bytes beside a device array were written");
    EXPECT_OK(cudaFree(base));
  }
  static size_t written(const void *from, size_t count) { /* bytes that are no longer 0xa5 */
    std::vector<unsigned char> now(count);
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(now.data(), from, count, cudaMemcpyDeviceToHost));
    size_t wrong = 0;
    for (unsigned char byte : now) wrong += byte != 0xa5;
    return wrong;
  }
  void create(size_t count, size_t shift, size_t after) {
    n = count;
    before = guard + shift * sizeof(T);
    bytes = before + n * sizeof(T) + after;
    EXPECT_OK(cudaMalloc(&base, bytes));
    EXPECT_OK(cudaMemset(base, 0xa5, bytes));
    EXPECT_OK(cudaStreamSynchronize(0)); /* other streams do not wait for it */
    ptr = reinterpret_cast<T *>(base + before);
  }
  void set(const std::vector<T> &host) {
    EXPECT_OK(cudaMemcpy(ptr, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  void set(size_t i, const T &value) { EXPECT_OK(cudaMemcpy(ptr + i, &value, sizeof(T), cudaMemcpyHostToDevice)); }
  void clear() { EXPECT_OK(cudaMemset(ptr, 0xa5, n * sizeof(T))); }
  std::vector<T> get(size_t count) const { /* waits for all work before */
    std::vector<T> host(count);
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(host.data(), ptr, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  std::vector<T> get() const { return get(n); }
  T first() const { return get(1)[0]; }
  bool untouched() const { return written(ptr, n * sizeof(T)) == 0; }
};

/* A scratch for the length of a test. At its end the state must be as the header promises: zero but for the epochs. */
struct test_scratch : gk_scratch {
  explicit test_scratch(size_t wanted = gk_reduce_scratch_bytes()) : gk_scratch() {
    EXPECT_OK(gk_scratch_create(this, wanted, 0));
    EXPECT_OK(cudaDeviceSynchronize());
  }
  test_scratch(const test_scratch &) = delete;
  test_scratch &operator=(const test_scratch &) = delete;
  hook_state state() const {
    hook_state now;
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(&now, ptr, sizeof(now), cudaMemcpyDeviceToHost));
    return now;
  }
  /* Sets the epochs as if this many reductions and scans had used the scratch. */
  void set_epochs(unsigned used) const {
    hook_state now = state();
    now.reduce_tickets = now.scan_tickets = static_cast<unsigned long long>(used) << 32;
    EXPECT_OK(cudaMemcpy(ptr, &now, sizeof(now), cudaMemcpyHostToDevice));
  }
  /* Fills the slots from a byte on, as if calls with small epochs had used them: none is zero. */
  void fill_slots(size_t from, size_t count) const {
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemset(static_cast<unsigned char *>(ptr) + from, 1, count));
    EXPECT_OK(cudaDeviceSynchronize());
  }
  unsigned reduce_epochs() const { return static_cast<unsigned>(state().reduce_tickets >> 32); }
  unsigned scan_epochs() const { return static_cast<unsigned>(state().scan_tickets >> 32); }
  size_t bytes_not_zero(size_t from, size_t count) const {
    std::vector<unsigned char> host(count);
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(host.data(), static_cast<unsigned char *>(ptr) + from, count, cudaMemcpyDeviceToHost));
    size_t nonzero = 0;
    for (unsigned char byte : host) nonzero += byte != 0;
    return nonzero;
  }
  ~test_scratch() {
    const hook_state now = state();
    EXPECT_EQ(now.reduce_tickets & 0xffffffffu, 0u);
    EXPECT_EQ(now.scan_tickets & 0xffffffffu, 0u);
    EXPECT_EQ(now.scan_done, 0u);
    EXPECT_OK(gk_scratch_destroy(this));
  }
};

struct test_stream {
  cudaStream_t stream;
  test_stream() { EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  test_stream(const test_stream &) = delete;
  test_stream &operator=(const test_stream &) = delete;
  ~test_stream() { EXPECT_OK(cudaStreamDestroy(stream)); }
  void wait() { EXPECT_OK(cudaStreamSynchronize(stream)); }
};

/* Bytes that stream-ordered allocations hold. A call without a scratch that leaks changes this. */
inline uint64_t pool_bytes() {
  cudaMemPool_t pool;
  uint64_t used = 0;
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  EXPECT_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  return used;
}

/* Captures the work that `work(stream)` enqueues, and replays it this many times, each between `prepare(i)` and
 * `check(i)`. */
template <class Work, class Prepare, class Check>
void replay_graph(int times, const Work &work, const Prepare &prepare, const Check &check) {
  test_stream s;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  EXPECT_OK(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
  work(s.stream);
  EXPECT_OK(cudaStreamEndCapture(s.stream, &graph));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < times; i++) {
    prepare(i);
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaGraphLaunch(exec, s.stream));
    s.wait();
    check(i);
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
}

/* For sizes past 2^32: skips the test unless a GPU has so much free memory. */
inline void need_device_bytes(size_t bytes) {
  if (on_cpu) SKIP("only on a GPU: it takes gigabytes");
  if (test_slowed()) SKIP("the tool would take too long");
  size_t free = 0, total = 0;
  EXPECT_OK(cudaMemGetInfo(&free, &total));
  if (free < bytes) SKIP("the device has too little free memory");
}

#endif
