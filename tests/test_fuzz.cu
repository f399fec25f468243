/* Random calls of reduce, scan and matmul, on device and host arrays, against plain loops: each case draws an API, types,
 * an operator, sizes (mostly about the edges of tiles), alignments, strides, transposes, a scratch or none, in place or
 * not. All data is such that the result is exact in any order, so one wrong element shows.
 *
 *   GPUKIT_FUZZ_CASES   how many, by default 2000
 *   GPUKIT_FUZZ_SEED    by default 1
 *   GPUKIT_FUZZ_FIRST   the number of the first one: a failing case prints a line that runs it alone
 *   GPUKIT_FUZZ_THREADS each with streams and a scratch: by default one for each core on a GPU, one on the stand-in */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"

#include "data.h"
#include <atomic>
#include <chrono>
#include <thread>

/* What allocates on a GPU waits for all other threads' work, too, so there it is to be rare. */
#ifdef CUDA_ON_CPU
static const size_t most_items = 1 << 19, default_cases = 2000, rarely = 8;
#else
static const size_t most_items = 1 << (test_slowed() ? 17 : 23), default_cases = 20000, rarely = 100;
#endif

/* --- what a case draws ----------------------------------------------------------------------------------------------*/

struct fuzz_case {
  uint64_t seed, number, drawn;
  std::string text; /* what it is, in words */
  bool failed;

  uint64_t draw() { return mix(seed + 0x9e3779b9u * number, drawn++); }
  size_t below(size_t n) { return static_cast<size_t>(draw() % n); }
  bool one_in(size_t n) { return below(n) == 0; }
  template <class... Args> void say(const char *format, Args... args) { text += sentence(format, args...); }
  void expect(bool so, const std::string &what) {
    if (so) return;
    failed = true;
    test_fail(__FILE__, __LINE__, text + ": " + what);
  }
  void ok(cudaError_t code, const char *call) { expect(!code, std::string(call) + ": " + cudaGetErrorString(code)); }
  /* A number of items: few, about the edges of one tile or several, or of everything that one level holds. */
  size_t items(size_t tile, size_t level) {
    const size_t kind = below(1000), off = below(5);
    size_t n = below(300);
    if (kind >= 550) n = tile * (1 + below(2)) + off - 2;
    if (kind >= 750) n = below(2 * tile + 1);
    if (kind >= 900) n = tile * (1 + below(6)) + off - 2;
    if (kind >= 980) n = below(12 * tile);
    if (kind >= 997) n = level + tile * below(2) + off - 2;
    return n < most_items ? n : most_items - off;
  }
};

/* What cases of one thread share: streams, and the scratch that most of them use, whatever their types, since what one
 * has left there must not disturb the next. On a GPU memory too: allocating would take most of the time. */
struct surroundings {
  gk_scratch scratch = gk_scratch();
  cudaStream_t stream = NULL, other = NULL; /* other: for one thread the legacy stream */
#ifndef CUDA_ON_CPU
  unsigned char *area[3] = {}, *pinned[3] = {};
  size_t room[3] = {};
#endif
  explicit surroundings(bool legacy) {
    EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!legacy) EXPECT_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    EXPECT_OK(gk_scratch_create(&scratch, 1 << 20, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
  }
  surroundings(const surroundings &) = delete;
  ~surroundings() {
    EXPECT_OK(gk_scratch_destroy(&scratch));
    EXPECT_OK(cudaStreamDestroy(stream));
    if (other) EXPECT_OK(cudaStreamDestroy(other));
#ifndef CUDA_ON_CPU
    for (int slot = 0; slot < 3; slot++) {
      EXPECT_OK(cudaFree(area[slot]));
      EXPECT_OK(cudaFreeHost(pinned[slot]));
    }
#endif
  }
};

/* Memory of one case, and its image on the host. On the stand-in it is allocated to fit, so that a sanitizer sees every
 * access past it. 256 bytes on either side of an output have to stay as they are. */
struct fuzz_memory {
  static const size_t guard = 256;
  fuzz_case &c;
  unsigned char *base, *host, *ptr;
  size_t size, before, all;
#ifdef CUDA_ON_CPU
  std::vector<unsigned char> image;
#endif

  fuzz_memory(fuzz_case &whose, surroundings &around, int slot, size_t bytes, size_t shift, bool output)
      : c(whose), base(NULL), host(NULL), size(bytes), before(guard + shift),
        all(before + size + (output ? guard : 0)) {
#ifdef CUDA_ON_CPU
    (void)around, (void)slot;
    c.ok(cudaMalloc(&base, all), "cudaMalloc");
    image.resize(all);
    host = image.data();
#else
    if (around.room[slot] < all) {
      c.ok(cudaFree(around.area[slot]), "cudaFree");
      c.ok(cudaFreeHost(around.pinned[slot]), "cudaFreeHost");
      around.room[slot] = all < 65536 ? 131072 : 2 * all;
      c.ok(cudaMalloc(&around.area[slot], around.room[slot]), "cudaMalloc");
      c.ok(cudaMallocHost(&around.pinned[slot], around.room[slot]), "cudaMallocHost");
      if (c.failed) abort(); /* no case can go on after a fault */
    }
    base = around.area[slot], host = around.pinned[slot];
#endif
    memset(host, 0xa5, all);
    ptr = base + before;
  }
  fuzz_memory(const fuzz_memory &) = delete;
  ~fuzz_memory() {
#ifdef CUDA_ON_CPU
    c.ok(cudaFree(base), "cudaFree");
#endif
  }
  template <class T> void set(const std::vector<T> &values) {
    if (size) memcpy(host + before, static_cast<const void *>(values.data()), size);
  }
  void upload(cudaStream_t stream) {
    c.ok(cudaMemcpyAsync(base, host, all, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
  }
  /* The elements, if nothing beside them was written. */
  template <class T> std::vector<T> download(cudaStream_t stream) {
    c.ok(cudaMemcpyAsync(host, base, all, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    c.ok(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    size_t wrong = 0;
    for (size_t i = 0; i < before; i++) wrong += host[i] != 0xa5;
    for (size_t i = before + size; i < all; i++) wrong += host[i] != 0xa5;
    c.expect(!wrong, test_show(wrong) + " bytes beside the output were written");
    std::vector<T> values(size / sizeof(T));
    if (size) memcpy(static_cast<void *>(values.data()), host + before, size);
    return values;
  }
  template <class T> T *as() { return reinterpret_cast<T *>(ptr); }
};

/* NULL, the shared one (grown as it has to be), or one of its own with not a byte more than is asked for. */
struct chosen_scratch {
  fuzz_case &c;
  gk_scratch own;
  const gk_scratch *use;
  chosen_scratch(fuzz_case &whose, surroundings &around, size_t bytes, cudaStream_t stream)
      : c(whose), own(gk_scratch()), use(NULL) {
    const size_t kind = c.one_in(rarely) ? 0 : 1 + c.below(7);
    if (kind == 0) {
      c.ok(gk_scratch_create(&own, bytes, stream), "gk_scratch_create");
      use = &own;
    } else if (kind > 2) {
      if (around.scratch.bytes < bytes) {
        c.ok(gk_scratch_destroy(&around.scratch), "gk_scratch_destroy");
        c.ok(gk_scratch_create(&around.scratch, 2 * bytes, stream), "gk_scratch_create");
      }
      use = &around.scratch;
    }
    c.say(", %s", kind == 0 ? "its own scratch" : use ? "shared scratch" : "no scratch");
  }
  ~chosen_scratch() {
    if (own.ptr) c.ok(gk_scratch_destroy(&own), "gk_scratch_destroy");
  }
};

template <class V> static void compare(fuzz_case &c, const std::vector<V> &actual, const std::vector<V> &expected) {
  for (size_t i = 0; i < expected.size(); i++) {
    if (same(actual[i], expected[i])) continue;
    c.expect(false, "[" + test_show(i) + "] is " + show(actual[i]) + ", not " + show(expected[i]));
    return;
  }
}

/* --- types and operators of a user's own ----------------------------------------------------------------------------*/

struct triple { /* of no size that fits into 16 bytes a whole number of times */
  uint32_t x, y, z;
};
struct exclusive_or {
  __host__ __device__ triple operator()(const triple &a, const triple &b) const {
    return triple{a.x ^ b.x, a.y ^ b.y, a.z ^ b.z};
  }
  __host__ __device__ triple identity() const { return triple{0, 0, 0}; }
};
struct line { /* x -> a x + b, whose composition does not commute */
  uint32_t a, b;
};
struct compose {
  __host__ __device__ line operator()(const line &f, const line &g) const { return line{f.a * g.a, f.b * g.a + g.b}; }
  __host__ __device__ line identity() const { return line{1, 0}; }
};

/* --- elements, and what is right ------------------------------------------------------------------------------------*/

template <class T> static T element(uint64_t seed, size_t i) { /* sums of these are exact */
  if constexpr (is_float<T>::value)
    return make<T>(uniform(seed, i, -8, 8));
  else
    return static_cast<T>(mix(seed, i));
}
template <> triple element<triple>(uint64_t seed, size_t i) {
  return triple{static_cast<uint32_t>(mix(seed, i)), static_cast<uint32_t>(i), static_cast<uint32_t>(seed)};
}
template <> line element<line>(uint64_t seed, size_t i) {
  return line{static_cast<uint32_t>(mix(seed, i)), static_cast<uint32_t>(mix(seed + 1, i))};
}

/* An operator in a plain loop: what it works in, what an element is there, and a step. */
template <class Op> struct reference { /* a functor by itself */
  template <class T, class O> using working = typename gk__working<Op>::type;
  template <class A> static A identity() { return Op().identity(); }
  template <class A, class T> static A lift(const T &x, size_t) { return x; }
  template <class A> static A step(const A &x, const A &y) { return Op()(x, y); }
};
struct reference_of_numbers {
  template <class A, class T> static A lift(const T &x, size_t) { return static_cast<A>(plain(x)); }
};
template <> struct reference<gk_op_sum> : reference_of_numbers {
  template <class T, class O> using working = plain_type<O>;
  template <class A> static A identity() { return A(0); }
  template <class A> static A step(A x, A y) {
    if constexpr (is_float<A>::value)
      return x + y;
    else
      return static_cast<A>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)); /* it wraps */
  }
};
template <bool Greatest> struct reference_best : reference_of_numbers {
  template <class T, class O> using working = plain_type<O>;
  template <class A> static A identity() {
    typedef std::numeric_limits<A> limits;
    if (is_float<A>::value) return Greatest ? -limits::infinity() : limits::infinity();
    return Greatest ? limits::lowest() : limits::max();
  }
  template <class A> static A step(A x, A y) {
    if (x != x || y != y) return x != x ? x : y;
    return (Greatest ? y > x : y < x) ? y : x;
  }
};
template <> struct reference<gk_op_min> : reference_best<false> {};
template <> struct reference<gk_op_max> : reference_best<true> {};
template <bool Greatest> struct reference_argbest {
  template <class T, class O> using working = O;
  template <class A> static A identity() {
    return A{reference_best<Greatest>::template identity<decltype(A::value)>(), SIZE_MAX};
  }
  template <class A, class T> static A lift(const T &x, size_t i) {
    return A{static_cast<decltype(A::value)>(plain(x)), i};
  }
  template <class A> static A step(const A &x, const A &y) {
    const bool nan_x = x.value != x.value, nan_y = y.value != y.value;
    if (nan_x != nan_y) return nan_x ? x : y;
    if (nan_x || x.value == y.value) return x.index < y.index ? x : y;
    return (Greatest ? y.value > x.value : y.value < x.value) ? y : x;
  }
};
template <> struct reference<gk_op_argmin> : reference_argbest<false> {};
template <> struct reference<gk_op_argmax> : reference_argbest<true> {};

template <class O, class A> static O result_of(const A &x) {
  if constexpr (is_half<O>::value)
    return make<O>(static_cast<double>(x));
  else
    return x;
}
/* Some elements out of the ordinary, where the operator is one that chooses. */
template <class Op, class T> static void sprinkle(fuzz_case &c, std::vector<T> &x) {
  if constexpr (std::is_floating_point<T>::value && !std::is_same<Op, gk_op_sum>::value) {
    if (x.empty() || !c.one_in(3)) return;
    const T odd[] = {static_cast<T>(NAN), static_cast<T>(INFINITY), static_cast<T>(-INFINITY)};
    for (size_t i = 1 + c.below(3); i-- > 0;) x[c.below(x.size())] = odd[c.below(3)];
  }
}
template <class T> static std::vector<T> elements(fuzz_case &c, size_t n) {
  const uint64_t seed = c.draw();
  std::vector<T> x(n);
  for (size_t i = 0; i < n; i++) x[i] = element<T>(seed, i);
  return x;
}

/* --- reduce ---------------------------------------------------------------------------------------------------------*/

template <class Op, class T, class O> static void fuzz_reduce(const char *name, fuzz_case &c, surroundings &around) {
  typedef reference<Op> right;
  typedef typename right::template working<T, O> A;
  typedef typename gk__working<typename gk__functor<Op, T>::reduce>::type device_working;
  const size_t tile = gk__reduce_tile<T>::items;
  const size_t n = c.items(tile, gk__plan_reduce(4096 * tile, tile, sizeof(device_working)).pieces * tile);
  std::vector<T> x = elements<T>(c, n);
  sprinkle<Op>(c, x);
  A running = right::template identity<A>();
  for (size_t i = 0; i < n; i++) running = right::step(running, right::template lift<A>(x[i], i));
  const std::vector<O> expected(1, result_of<O>(running));
  if (c.one_in(rarely)) {
    c.say("gk_host_reduce %s, n = %zu", name, n);
    std::vector<O> sum(1);
    c.expect(!gk_host_reduce(x.data(), sum.data(), n, Op()), gk_error_detail());
    compare(c, sum, expected);
    return;
  }
  const size_t shift = c.one_in(2) ? 0 : c.below(17), out_shift = c.below(3);
  const bool aside = c.one_in(2);
  const cudaStream_t stream = aside ? around.stream : around.other;
  c.say("gk_reduce %s, n = %zu, shift %zu and %zu%s", name, n, shift, out_shift, aside ? ", another stream" : "");
  chosen_scratch scratch(c, around, gk_reduce_scratch_bytes(), stream);
  fuzz_memory in(c, around, 0, n * sizeof(T), shift * sizeof(T), false),
      out(c, around, 1, sizeof(O), out_shift * sizeof(O), true);
  in.set(x);
  in.upload(stream);
  out.upload(stream);
  c.expect(!gk_reduce(in.as<const T>(), out.as<O>(), n, Op(), stream, scratch.use), gk_error_detail());
  compare(c, out.download<O>(stream), expected);
}

/* --- scan -----------------------------------------------------------------------------------------------------------*/

template <class T, class O> static size_t scan_tile() { /* the most items that take one tile */
  size_t fits = 1, too_many = size_t{1} << 30;
  while (too_many - fits > 1) {
    const size_t n = (fits + too_many) / 2;
    (gk__plan_scan(n, gk__scan_item_bytes<T, O>()).tiles > 1 ? too_many : fits) = n;
  }
  return fits;
}

template <class Op, class T, class O> static void fuzz_scan(const char *name, fuzz_case &c, surroundings &around) {
  typedef reference<Op> right;
  typedef typename right::template working<T, O> A;
  static const size_t tile = scan_tile<T, O>();
  const size_t n = c.items(tile, tile * GK__SCAN_GROUP);
  const size_t kind = c.below(3); /* inclusive, exclusive, exclusive with an initial value */
  std::vector<T> x = elements<T>(c, n);
  sprinkle<Op>(c, x);
  const O init = result_of<O>(right::template lift<A>(element<T>(c.draw(), 0), 7));
  A running = right::template identity<A>();
  if (kind == 2) {
    if constexpr (is_half<O>::value)
      running = plain(init);
    else
      running = init;
  }
  std::vector<O> expected(n);
  for (size_t i = 0; i < n; i++) {
    const A next = right::step(running, right::template lift<A>(x[i], i));
    expected[i] = result_of<O>(kind == 0 ? next : running);
    running = next;
  }
  if (c.one_in(rarely) && kind < 2) {
    c.say("gk_host_scan_%s %s, n = %zu", kind ? "exclusive" : "inclusive", name, n);
    std::vector<O> y(n);
    c.expect(!(kind ? gk_host_scan_exclusive(x.data(), y.data(), n, Op())
                    : gk_host_scan_inclusive(x.data(), y.data(), n, Op())),
             gk_error_detail());
    compare(c, y, expected);
    return;
  }
  const bool in_place = std::is_same<T, O>::value && c.one_in(3), aside = c.one_in(2);
  const size_t shift = c.one_in(2) ? 0 : c.below(17), out_shift = c.one_in(2) ? 0 : c.below(17);
  static const char *const kinds[] = {"inclusive", "exclusive", "exclusive_init"};
  c.say("gk_scan_%s %s, n = %zu, shift %zu and %zu%s%s", kinds[kind], name, n, shift, out_shift,
        in_place ? ", in place" : "", aside ? ", another stream" : "");
  const size_t item = sizeof(T) > sizeof(O) ? sizeof(T) : sizeof(O);
  const cudaStream_t stream = aside ? around.stream : around.other;
  chosen_scratch scratch(c, around, gk_scan_scratch_bytes(n, item > sizeof(A) ? item : sizeof(A)), stream);
  fuzz_memory in(c, around, 0, n * sizeof(T), shift * sizeof(T), in_place),
      out(c, around, 1, n * sizeof(O), out_shift * sizeof(O), true);
  in.set(x);
  in.upload(stream);
  out.upload(stream);
  O *const to = in_place ? in.as<O>() : out.as<O>();
  const cudaError_t code = kind == 0 ? gk_scan_inclusive(in.as<const T>(), to, n, Op(), stream, scratch.use)
                           : kind == 1
                               ? gk_scan_exclusive(in.as<const T>(), to, n, Op(), stream, scratch.use)
                               : gk_scan_exclusive_init(in.as<const T>(), to, n, Op(), init, stream, scratch.use);
  c.expect(!code, gk_error_detail());
  compare(c, (in_place ? in : out).template download<O>(stream), expected);
}

/* --- matmul ---------------------------------------------------------------------------------------------------------*/

static size_t matmul_edge(fuzz_case &c) {
  const size_t kind = c.below(100);
  if (kind < 50) return c.below(20);
  if (kind < 70) return 31 + c.below(4);
  if (kind < 90) return 1 + c.below(80);
  return (kind < 97 ? 62 : 126) + c.below(5);
}

template <class T, class O> static void fuzz_matmul(const char *name, fuzz_case &c, surroundings &around) {
  typedef plain_type<T> Acc;
  const size_t m = matmul_edge(c), n = matmul_edge(c), k = matmul_edge(c);
  std::vector<T> a, b;
  if (c.one_in(rarely)) {
    c.say("gk_host_matmul %s, %zu x %zu x %zu", name, m, n, k);
    a = elements<T>(c, m * k), b = elements<T>(c, k * n);
    std::vector<O> product(m * n), expected(m * n);
    for (size_t i = 0; i < m; i++)
      for (size_t j = 0; j < n; j++) {
        Acc sum = 0;
        for (size_t l = 0; l < k; l++) sum += static_cast<Acc>(plain(a[i * k + l]) * plain(b[l * n + j]));
        expected[i * n + j] = result_of<O>(sum);
      }
    c.expect(!gk_host_matmul(a.data(), b.data(), product.data(), m, n, k), gk_error_detail());
    compare(c, product, expected);
    return;
  }
  const bool trans_a = c.one_in(2), trans_b = c.one_in(2), one_a = c.one_in(3), one_b = c.one_in(3);
  const size_t rows_a = trans_a ? k : m, cols_a = trans_a ? m : k, rows_b = trans_b ? n : k, cols_b = trans_b ? k : n;
  const size_t pad_a = c.one_in(2) ? c.below(9) : 0, pad_b = c.one_in(2) ? c.below(9) : 0,
               pad_c = c.one_in(2) ? c.below(9) : 0;
  const size_t lda = cols_a + pad_a, ldb = cols_b + pad_b, ldc = n + pad_c, batch = c.one_in(3) ? 1 + c.below(3) : 0;
  const size_t products = batch ? batch : 1, gap = c.one_in(3) ? c.below(5) : 0;
  const size_t stride_a = one_a ? 0 : rows_a * lda, stride_b = one_b ? 0 : rows_b * ldb, stride_c = m * ldc + gap;
  const double factors[] = {1, 0, 2, -1, 0.5}, alpha = factors[c.below(5)], beta = factors[1 + c.below(4)];
  const size_t shift = c.one_in(2) ? 0 : c.below(9);
  /* Small integers: exact whatever the precision. Tiles are those of strict products, and so is double. */
  const bool is_float = std::is_same<T, float>::value, strict = sizeof(T) == 8 || c.one_in(2);
  const gk_precision precision = strict     ? GK_PRECISION_STRICT
                                 : is_float ? static_cast<gk_precision>(GK_PRECISION_STRICT + c.below(4))
                                            : GK_PRECISION_DEFAULT;
  const gk_plan plan = precision == GK_PRECISION_STRICT ? static_cast<gk_plan>(c.below(4))
                       : c.one_in(2)                    ? GK_PLAN_AUTO
                                                        : GK_PLAN_MMA;
  c.say("gk_matmul_ex %s, %zu x %zu x %zu, trans %d %d, pad %zu %zu %zu, alpha %g, beta %g, batch %zu (one a %d, one b "
        "%d, gap %zu), shift %zu, precision %d, plan %d",
        name, m, n, k, trans_a, trans_b, pad_a, pad_b, pad_c, alpha, beta, batch, one_a, one_b, gap, shift,
        static_cast<int>(precision), static_cast<int>(plan));
  /* To the last element of each, without the padding behind it. */
  const auto size = [&](size_t rows, size_t cols, size_t ld, size_t stride) {
    return rows && cols ? (products - 1) * stride + (rows - 1) * ld + cols : 0;
  };
  a = elements<T>(c, size(rows_a, cols_a, lda, stride_a)), b = elements<T>(c, size(rows_b, cols_b, ldb, stride_b));
  std::vector<O> before = elements<O>(c, size(m, n, ldc, stride_c)), expected;
  if (!(beta < 0 || beta > 0)) before.assign(before.size(), make<O>(NAN)); /* C is not to be read */
  expected = before;
  for (size_t q = 0; q < products; q++)
    for (size_t i = 0; i < m; i++)
      for (size_t j = 0; j < n; j++) {
        Acc sum = 0;
        for (size_t l = 0; l < k; l++)
          sum += static_cast<Acc>(plain(a[q * stride_a + (trans_a ? l * lda + i : i * lda + l)]) *
                                  plain(b[q * stride_b + (trans_b ? j * ldb + l : l * ldb + j)]));
        O &to = expected[q * stride_c + i * ldc + j];
        sum *= static_cast<Acc>(alpha);
        if (beta < 0 || beta > 0) sum += static_cast<Acc>(beta) * static_cast<Acc>(plain(to));
        to = result_of<O>(sum);
      }
  const cudaStream_t stream = c.one_in(2) ? around.stream : around.other;
  fuzz_memory on_a(c, around, 0, a.size() * sizeof(T), shift * sizeof(T), false),
      on_b(c, around, 1, b.size() * sizeof(T), c.below(3) * sizeof(T), false),
      on_c(c, around, 2, before.size() * sizeof(O), c.below(5) * sizeof(O), true);
  on_a.set(a), on_b.set(b), on_c.set(before);
  on_a.upload(stream), on_b.upload(stream), on_c.upload(stream);
  gk_matmul_opts o = gk_matmul_opts();
  o.trans_a = trans_a, o.trans_b = trans_b;
  o.lda = pad_a ? lda : 0, o.ldb = pad_b ? ldb : 0, o.ldc = pad_c ? ldc : 0;
  if (alpha < 1 || alpha > 1) o.alpha = &alpha;
  if (beta < 0 || beta > 0) o.beta = &beta;
  o.batch = batch, o.stride_a = stride_a, o.stride_b = stride_b, o.stride_c = gap ? stride_c : 0;
  o.precision = precision, o.plan = plan;
  gk_matmul_path path; /* not every GPU has the tensor cores */
  if (plan == GK_PLAN_MMA && gk_matmul_plan(on_a.as<const T>(), on_b.as<const T>(), on_c.as<O>(), m, n, k, &o, &path))
    o.plan = GK_PLAN_AUTO;
  c.expect(!gk_matmul_ex(on_a.as<const T>(), on_b.as<const T>(), on_c.as<O>(), m, n, k, &o, stream), gk_error_detail());
  compare(c, on_c.download<O>(stream), expected);
}

/* --- all of them ----------------------------------------------------------------------------------------------------*/

typedef void (*fuzz_function)(const char *name, fuzz_case &c, surroundings &around);
struct fuzz_entry {
  const char *name;
  fuzz_function run;
};
static const fuzz_entry entries[] = {
    {"sum of int8_t", fuzz_reduce<gk_op_sum, int8_t, int64_t>},
    {"sum of uint8_t", fuzz_reduce<gk_op_sum, uint8_t, uint64_t>},
    {"sum of int", fuzz_reduce<gk_op_sum, int32_t, int32_t>},
    {"sum of float", fuzz_reduce<gk_op_sum, float, float>},
    {"sum of double", fuzz_reduce<gk_op_sum, double, double>},
    {"sum of half", fuzz_reduce<gk_op_sum, __half, float>},
    {"min of float", fuzz_reduce<gk_op_min, float, float>},
    {"max of uint16_t", fuzz_reduce<gk_op_max, uint16_t, uint16_t>},
    {"argmax of float", fuzz_reduce<gk_op_argmax, float, gk_arg<float>>},
    {"argmin of int8_t", fuzz_reduce<gk_op_argmin, int8_t, gk_arg<int8_t>>},
    {"own operator of 12 bytes", fuzz_reduce<exclusive_or, triple, triple>},
    {"sum of uint8_t in uint32_t", fuzz_scan<gk_op_sum, uint8_t, uint32_t>},
    {"sum of int", fuzz_scan<gk_op_sum, int32_t, int32_t>},
    {"sum of float", fuzz_scan<gk_op_sum, float, float>},
    {"sum of double", fuzz_scan<gk_op_sum, double, double>},
    {"sum of bfloat16 in half", fuzz_scan<gk_op_sum, __nv_bfloat16, __half>},
    {"max of int16_t", fuzz_scan<gk_op_max, int16_t, int16_t>},
    {"argmin of float", fuzz_scan<gk_op_argmin, float, gk_arg<float>>},
    {"own operator that does not commute", fuzz_scan<compose, line, line>},
    {"own operator of 12 bytes", fuzz_scan<exclusive_or, triple, triple>},
    {"of float", fuzz_matmul<float, float>},
    {"of double", fuzz_matmul<double, double>},
    {"of half in float", fuzz_matmul<__half, float>},
};

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

TEST(random_calls_are_right) {
  const uint64_t seed = setting("GPUKIT_FUZZ_SEED", 1), cases = setting("GPUKIT_FUZZ_CASES", default_cases),
                 first = setting("GPUKIT_FUZZ_FIRST", 0);
#ifdef CUDA_ON_CPU
  const uint64_t usual = 1;
#else
  const uint64_t usual = std::thread::hardware_concurrency();
#endif
  const uint64_t wanted = setting("GPUKIT_FUZZ_THREADS", usual), most = cases / 100 + 1;
  const size_t kinds = sizeof entries / sizeof *entries;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::atomic<uint64_t> next(first);
  std::atomic<unsigned> failed(0);
  std::vector<std::thread> threads(static_cast<size_t>(wanted < 1 ? 1 : wanted < most ? wanted : most));
  for (std::thread &thread : threads)
    thread = std::thread([&, legacy = &thread == &threads[0]] {
      surroundings around(legacy);
      for (uint64_t i; failed < 10 && (i = next++) < first + cases;) {
        fuzz_case c = {seed, i, 0, "", false};
        const fuzz_entry &e = entries[c.below(kinds)];
        e.run(e.name, c, around);
        if (!c.failed) continue;
        printf("  again: GPUKIT_FUZZ_SEED=%llu GPUKIT_FUZZ_FIRST=%llu GPUKIT_FUZZ_CASES=1 test_fuzz\n",
               static_cast<unsigned long long>(seed), static_cast<unsigned long long>(i));
        failed++;
      }
    });
  for (std::thread &thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  printf("%llu cases by %zu threads in %.1f s\n", static_cast<unsigned long long>(cases), threads.size(), took.count());
}
