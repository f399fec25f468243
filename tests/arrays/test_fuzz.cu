/* Random calls of reduce, scan and matmul, on device and host arrays, against loops: each case draws a call, types, an
 * operator, sizes (mostly about the edges of tiles), alignments, strides, transposes, a scratch or none, in place or
 * not. The data makes every result exact in any order, so that one wrong element is found.
 *
 * On a GPU cases run in batches: one copy takes their data there and one brings it back, the calls between follow each
 * other on a stream without waiting, and the host prepares the next batch meanwhile.
 *
 *   GPUKIT_FUZZ_CASES   how many, by default 2000
 *   GPUKIT_FUZZ_SEED    by default 1
 *   GPUKIT_FUZZ_FIRST   the number of the first one: a failing case prints a line that runs it alone, and one that
 *                       runs what went before it in its batch, too
 *   GPUKIT_FUZZ_THREADS each with two streams and scratches: by default one for each core on a GPU, one on the
 *                       stand-in */
#include "once.h"

#include "hooks.h"
#include "on_device.h"
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <thread>

/* On a GPU allocations must be rare, since each waits for the work of all threads; and so must large sizes. A million
 * cases still have hundreds of them. One case in rare_period allocates; one array in level_period fills a level. */
#ifdef CUDA_ON_CPU
static const size_t most_items = 1 << 19, default_cases = 2000, rare_period = 8, level_period = 333, cases_at_once = 1;
#else
static const size_t most_items = 1 << (test_slowed() ? 17 : 23), default_cases = 20000, rare_period = 500,
                    level_period = 3333, cases_at_once = 32;
#endif

/* --- what a case draws ---------------------------------------------------------------------------------------------*/

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
  /* A number of items: few, or near a multiple of a tile, or near the most that one level can hold. */
  size_t items(size_t tile, size_t level) {
    const size_t kind = below(1000), off = below(5);
    size_t n = below(300);
    if (kind >= 550) n = tile * (1 + below(2)) + off - 2;
    if (kind >= 750) n = below(2 * tile + 1);
    if (kind >= 900) n = tile * (1 + below(6)) + off - 2;
    if (kind >= 980) n = below(12 * tile);
    if (one_in(level_period)) n = level + tile * below(2) + off - 2;
    return n < most_items ? n : most_items - off;
  }
};

/* Memory on the device, and its image on the host: on the stand-in that of one array, allocated to fit, so that a
 * sanitizer sees every access past it; on a GPU that of a batch, which is kept. */
struct imaged_memory {
  unsigned char *device = NULL, *host = NULL;
  size_t room = 0, used = 0;
#ifdef CUDA_ON_CPU
  static cudaError_t host_alloc(unsigned char **ptr, size_t bytes) {
    *ptr = static_cast<unsigned char *>(malloc(bytes));
    return *ptr ? cudaSuccess : cudaErrorMemoryAllocation;
  }
  static cudaError_t host_free(unsigned char *ptr) { return free(ptr), cudaSuccess; }
#else
  static cudaError_t host_alloc(unsigned char **ptr, size_t bytes) { return cudaMallocHost(ptr, bytes); }
  static cudaError_t host_free(unsigned char *ptr) { return cudaFreeHost(ptr); }
#endif
  imaged_memory() = default;
  imaged_memory(const imaged_memory &) = delete;
  ~imaged_memory() { release(); }
  void release() {
    EXPECT_OK(cudaFree(device));
    EXPECT_OK(host_free(host));
  }
  /* To be called where no work uses it. The image stays. */
  void reserve(size_t bytes) {
    if (room >= bytes) return;
    unsigned char *image = NULL;
    EXPECT_OK(host_alloc(&image, bytes));
    if (used) memcpy(image, host, used);
    release();
    host = image;
    EXPECT_OK(cudaMalloc(&device, bytes));
    room = bytes;
    if (!host || !device) abort(); /* no case can go on */
  }
};

/* A stream, the cases whose calls follow each other on it, and the scratch that most of them share, whatever their
 * types: what one call leaves there must not disturb the next. */
struct fuzz_batch {
  cudaStream_t stream = NULL;
  gk_scratch scratch = gk_scratch();
  std::deque<fuzz_case> cases;
  std::deque<gk_scratch> own;
  std::vector<std::function<void()>> calls, checks;
  std::deque<imaged_memory> inputs, outputs; /* what is only read, and what is also copied back */

  explicit fuzz_batch(bool legacy) {
    if (!legacy) EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    EXPECT_OK(gk_scratch_create(&scratch, 1 << 20, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
#ifndef CUDA_ON_CPU
    inputs.resize(1), outputs.resize(1);
    inputs[0].reserve(batch_bytes), outputs[0].reserve(batch_bytes);
#endif
  }
  fuzz_batch(const fuzz_batch &) = delete;
  ~fuzz_batch() {
    EXPECT_OK(gk_scratch_destroy(&scratch));
    if (stream) EXPECT_OK(cudaStreamDestroy(stream));
  }

  /* Reserves `bytes` bytes: returns the memory, and sets the offset. The memory may still move until the calls run. */
  static const size_t batch_bytes = 8 << 20;
  imaged_memory &place(bool output, size_t bytes, size_t *at) {
    std::deque<imaged_memory> &all = output ? outputs : inputs;
#ifdef CUDA_ON_CPU
    all.emplace_back();
    all.back().reserve(bytes);
#endif
    imaged_memory &memory = all.back();
    *at = memory.used;
    if (memory.room < *at + bytes) memory.reserve(2 * (*at + bytes));
#ifdef CUDA_ON_CPU
    memory.used = bytes;
#else
    memory.used += gk_round_up(bytes, 256);
#endif
    return memory;
  }
  bool full() const {
    return cases.size() >= cases_at_once || inputs.back().used >= batch_bytes || outputs.back().used >= batch_bytes;
  }
  /* An error that no case has by itself is one of the whole batch. */
  void ok(cudaError_t code, const char *call) {
    if (code) cases.front().ok(code, call);
  }
  void begin() {
    for (imaged_memory &m : inputs)
      ok(cudaMemcpyAsync(m.device, m.host, m.used, cudaMemcpyHostToDevice, stream), "H2D");
    for (imaged_memory &m : outputs)
      ok(cudaMemcpyAsync(m.device, m.host, m.used, cudaMemcpyHostToDevice, stream), "H2D");
    for (const std::function<void()> &call : calls) call();
    for (imaged_memory &m : outputs)
      ok(cudaMemcpyAsync(m.host, m.device, m.used, cudaMemcpyDeviceToHost, stream), "D2H");
  }
  /* How many cases failed. */
  unsigned end(uint64_t seed) {
    if (cases.empty()) return 0;
    ok(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    for (const std::function<void()> &check : checks) check();
    for (gk_scratch &s : own) ok(gk_scratch_destroy(&s), "gk_scratch_destroy");
    unsigned failed = 0;
    const unsigned long long first = cases.front().number;
    for (const fuzz_case &c : cases) {
      if (!c.failed) continue;
      failed++;
      const unsigned long long number = c.number, before = number - first;
      printf("  again: GPUKIT_FUZZ_SEED=%llu GPUKIT_FUZZ_FIRST=%llu GPUKIT_FUZZ_CASES=1 test_fuzz\n",
             static_cast<unsigned long long>(seed), number);
      if (before)
        printf(
            "  with what went before: GPUKIT_FUZZ_SEED=%llu GPUKIT_FUZZ_FIRST=%llu GPUKIT_FUZZ_CASES=%llu test_fuzz\n",
            static_cast<unsigned long long>(seed), first, before + 1);
    }
    calls.clear(), checks.clear(), own.clear(), cases.clear();
#ifdef CUDA_ON_CPU
    inputs.clear(), outputs.clear();
#else
    inputs[0].used = outputs[0].used = 0;
#endif
    return failed;
  }
};

/* An array of one case. 256 bytes on either side of an output have to stay as they are. */
template <class T> struct fuzz_array {
  static const size_t guard = 256;
  imaged_memory *memory;
  size_t n, at, before, all;

  fuzz_array(fuzz_batch &batch, size_t count, size_t shift, bool output) : n(count), before(guard + shift * sizeof(T)) {
    all = before + n * sizeof(T) + (output ? guard : 0);
    memory = &batch.place(output, all, &at);
    memset(memory->host + at, 0xa5, all);
  }
  fuzz_array(fuzz_batch &batch, const std::vector<T> &values, size_t shift, bool output)
      : fuzz_array(batch, values.size(), shift, output) {
    if (n) memcpy(memory->host + at + before, static_cast<const void *>(values.data()), n * sizeof(T));
  }
  T *get() const { return reinterpret_cast<T *>(memory->device + at + before); }
  /* The elements as they came back, and that nothing beside them was written. */
  void check(fuzz_case &c, const std::vector<T> &expected) const {
    const unsigned char *const image = memory->host + at;
    size_t wrong = 0;
    for (size_t i = 0; i < before; i++) wrong += image[i] != 0xa5;
    for (size_t i = before + n * sizeof(T); i < all; i++) wrong += image[i] != 0xa5;
    c.expect(!wrong, test_show(wrong) + " bytes beside the output were written");
    for (size_t i = 0; i < n; i++) {
      T actual;
      memcpy(static_cast<void *>(&actual), image + before + i * sizeof(T), sizeof(T));
      if (same(actual, expected[i])) continue;
      c.expect(false, "[" + test_show(i) + "] is " + show(actual) + ", not " + show(expected[i]));
      return;
    }
  }
};

/* NULL, the shared scratch (enlarged if need be), or one of the case's own without a byte to spare. */
static const gk_scratch *choose_scratch(fuzz_case &c, fuzz_batch &batch, size_t bytes) {
  const size_t kind = c.one_in(rare_period) ? 0 : 1 + c.below(7);
  c.say(", %s", kind == 0 ? "its own scratch" : kind > 2 ? "shared scratch" : "no scratch");
  if (kind == 0) {
    batch.own.emplace_back();
    c.ok(gk_scratch_create(&batch.own.back(), bytes, batch.stream), "gk_scratch_create");
    return &batch.own.back();
  }
  if (kind <= 2) return NULL;
  if (batch.scratch.bytes < bytes) {
    c.ok(gk_scratch_destroy(&batch.scratch), "gk_scratch_destroy");
    c.ok(gk_scratch_create(&batch.scratch, 2 * bytes, batch.stream), "gk_scratch_create");
  }
  return &batch.scratch;
}

template <class V> static void compare(fuzz_case &c, const std::vector<V> &actual, const std::vector<V> &expected) {
  for (size_t i = 0; i < expected.size(); i++) {
    if (same(actual[i], expected[i])) continue;
    c.expect(false, "[" + test_show(i) + "] is " + show(actual[i]) + ", not " + show(expected[i]));
    return;
  }
}

/* --- types and operators of a user's own ---------------------------------------------------------------------------*/

struct triple { /* 16 bytes are not a multiple of its size */
  uint32_t x, y, z;
};
struct exclusive_or {
  __host__ __device__ triple operator()(const triple &a, const triple &b) const {
    return triple{a.x ^ b.x, a.y ^ b.y, a.z ^ b.z};
  }
  __host__ __device__ triple identity() const { return triple{0, 0, 0}; }
};

/* --- elements, and operators on the host ---------------------------------------------------------------------------*/

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

/* An operator in a loop on the host: the type that it accumulates in, an element in that type, and a step. */
template <class Op> struct reference { /* a functor by itself */
  template <class T, class O> using working = typename hook_working<Op>::type;
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
/* For minima and maxima: sometimes a few NaN and infinities. */
template <class Op, class T> static void sprinkle(fuzz_case &c, std::vector<T> &x) {
  if constexpr (std::is_floating_point<T>::value && !std::is_same<Op, gk_op_sum>::value) {
    if (x.empty() || !c.one_in(3)) return;
    const T odd[] = {static_cast<T>(NAN), static_cast<T>(INFINITY), static_cast<T>(-INFINITY)};
    for (size_t i = 1 + c.below(3); i-- > 0;) x[c.below(x.size())] = odd[c.below(3)];
  }
}
/* Elements from a random place in a table, since drawing each would take most of the time. The length of the table is
 * prime, so that no two tiles are alike. */
template <class T> static std::vector<T> elements(fuzz_case &c, size_t n) {
  static const size_t length = 65537;
  static const std::vector<T> table = [] {
    std::vector<T> all(length);
    for (size_t i = 0; i < length; i++) all[i] = element<T>(7, i);
    return all;
  }();
  std::vector<T> x;
  x.reserve(n);
  for (size_t from = c.below(length); x.size() < n; from = 0) {
    const size_t left = n - x.size(), part = left < length - from ? left : length - from;
    x.insert(x.end(), table.data() + from, table.data() + from + part);
  }
  return x;
}

/* --- reduce --------------------------------------------------------------------------------------------------------*/

template <class Op, class T, class O> static void fuzz_reduce(const char *name, fuzz_case &c, fuzz_batch &batch) {
  typedef reference<Op> right;
  typedef typename right::template working<T, O> A;
  typedef typename hook_working<typename hook_functor<Op, T>::reduce>::type device_working;
  const size_t tile = hook_reduce_tile<T>::items;
  const size_t n = c.items(tile, hook_plan_reduce(4096 * tile, tile, sizeof(device_working)) * tile);
  std::vector<T> x = elements<T>(c, n);
  sprinkle<Op>(c, x);
  A running = right::template identity<A>();
  for (size_t i = 0; i < n; i++) running = right::step(running, right::template lift<A>(x[i], i));
  const std::vector<O> expected(1, result_of<O>(running));
  if (c.one_in(rare_period)) {
    c.say("gk_host_reduce %s, n = %zu", name, n);
    std::vector<O> sum(1);
    c.expect(!gk_host_reduce(x.data(), sum.data(), n, Op()), gk_error_detail());
    compare(c, sum, expected);
    return;
  }
  const size_t shift = c.one_in(2) ? 0 : c.below(17), out_shift = c.below(3);
  c.say("gk_reduce %s, n = %zu, shift %zu and %zu", name, n, shift, out_shift);
  const gk_scratch *const scratch = choose_scratch(c, batch, gk_reduce_scratch_bytes());
  const fuzz_array<T> in(batch, x, shift, false);
  const fuzz_array<O> out(batch, 1, out_shift, true);
  batch.calls.push_back([=, &c, &batch] {
    c.expect(!gk_reduce(in.get(), out.get(), n, Op(), batch.stream, scratch), gk_error_detail());
  });
  batch.checks.push_back([=, &c] { out.check(c, expected); });
}

/* --- scan ----------------------------------------------------------------------------------------------------------*/

template <class T, class O> static size_t scan_tile() { /* the most items that take one tile */
  size_t fits = 1, too_many = size_t{1} << 30;
  while (too_many - fits > 1) {
    const size_t n = (fits + too_many) / 2;
    (hook_plan_scan(n, hook_scan_item_bytes<T, O>()).tiles > 1 ? too_many : fits) = n;
  }
  return fits;
}

template <class Op, class T, class O> static void fuzz_scan(const char *name, fuzz_case &c, fuzz_batch &batch) {
  typedef reference<Op> right;
  typedef typename right::template working<T, O> A;
  static const size_t tile = scan_tile<T, O>();
  const size_t n = c.items(tile, tile * HOOK_SCAN_GROUP);
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
  if (c.one_in(rare_period) && kind < 2) {
    c.say("gk_host_scan_%s %s, n = %zu", kind ? "exclusive" : "inclusive", name, n);
    std::vector<O> y(n);
    c.expect(!(kind ? gk_host_scan_exclusive(x.data(), y.data(), n, Op())
                    : gk_host_scan_inclusive(x.data(), y.data(), n, Op())),
             gk_error_detail());
    compare(c, y, expected);
    return;
  }
  const bool in_place = std::is_same<T, O>::value && c.one_in(3);
  const size_t shift = c.one_in(2) ? 0 : c.below(17), out_shift = c.one_in(2) ? 0 : c.below(17);
  static const char *const kinds[] = {"inclusive", "exclusive", "exclusive_init"};
  c.say("gk_scan_%s %s, n = %zu, shift %zu and %zu%s", kinds[kind], name, n, shift, out_shift,
        in_place ? ", in place" : "");
  const size_t item = sizeof(T) > sizeof(O) ? sizeof(T) : sizeof(O);
  const gk_scratch *const scratch =
      choose_scratch(c, batch, gk_scan_scratch_bytes(n, item > sizeof(A) ? item : sizeof(A)));
  const auto run = [=, &c, &batch](const T *from, O *to) {
    const cudaError_t code = kind == 0   ? gk_scan_inclusive(from, to, n, Op(), batch.stream, scratch)
                             : kind == 1 ? gk_scan_exclusive(from, to, n, Op(), batch.stream, scratch)
                                         : gk_scan_exclusive_init(from, to, n, Op(), init, batch.stream, scratch);
    c.expect(!code, gk_error_detail());
  };
  const fuzz_array<T> in(batch, x, shift, in_place);
  if constexpr (std::is_same<T, O>::value) {
    if (in_place) {
      batch.calls.push_back([=] { run(in.get(), in.get()); });
      batch.checks.push_back([=, &c, expected = std::move(expected)] { in.check(c, expected); });
      return;
    }
  }
  const fuzz_array<O> out(batch, n, out_shift, true);
  batch.calls.push_back([=] { run(in.get(), out.get()); });
  batch.checks.push_back([=, &c, expected = std::move(expected)] { out.check(c, expected); });
}

/* --- rows and columns, select --------------------------------------------------------------------------------------*/

/* A matrix: a few long rows, many short ones, or something between. */
struct fuzz_shape {
  size_t rows, cols, distance;
  explicit fuzz_shape(fuzz_case &c) : rows(1 + c.below(40)), cols(1 + c.below(300)), distance(0) {
    const size_t kind = c.below(10);
    if (kind < 2) rows = 1 + c.below(4), cols = c.below(most_items / 32);
    if (kind >= 2 && kind < 4) rows = c.below(most_items / 32), cols = 1 + c.below(12);
    if (c.one_in(50)) (c.one_in(2) ? rows : cols) = 0;
    distance = cols + (c.one_in(2) ? 0 : c.below(20));
  }
};
template <class Op, class T, class O> static void fuzz_rows(const char *name, fuzz_case &c, fuzz_batch &batch) {
  typedef reference<Op> right;
  typedef typename hook_working<typename hook_functor<Op, T>::reduce>::type device_working;
  typedef typename right::template working<T, O> A;
  const fuzz_shape s(c);
  const size_t kind = c.below(4); /* rows reduced, columns reduced, rows scanned, exclusively */
  if (kind > 1 && (is_half<T>::value || sizeof(T) < sizeof(A))) return fuzz_reduce<Op, T, O>(name, c, batch);
  const size_t n = s.rows && s.cols ? (s.rows - 1) * s.distance + s.cols : 0;
  std::vector<T> x = elements<T>(c, n);
  sprinkle<Op>(c, x);
  const size_t outputs = kind == 0 ? s.rows : kind == 1 ? s.cols : n;
  const size_t lines = kind == 1 ? s.cols : s.rows, along = kind == 1 ? s.rows : s.cols;
  std::vector<O> expected(outputs, kind > 1 ? result_of<O>(right::template identity<A>()) : O());
  std::vector<bool> written(outputs, kind < 2);
  for (size_t row = 0; row < lines; row++) {
    A running = right::template identity<A>();
    for (size_t i = 0; i < along; i++) {
      const size_t at = kind == 1 ? i * s.distance + row : row * s.distance + i;
      const A next = right::step(running, right::template lift<A>(x[at], i));
      if (kind > 1) expected[at] = result_of<O>(kind == 2 ? next : running), written[at] = true;
      running = next;
    }
    if (kind < 2) expected[row] = result_of<O>(running);
  }
  /* The gaps between the rows of an output stay as they were. */
  for (size_t i = 0; i < outputs; i++)
    if (!written[i]) memset(static_cast<void *>(&expected[i]), 0xa5, sizeof(O));
  static const char *const kinds[] = {"reduce_rows", "reduce_columns", "scan_rows_inclusive", "scan_rows_exclusive"};
  const size_t shift = c.one_in(2) ? 0 : c.below(17), out_shift = c.below(3);
  c.say("gk_%s %s, %zu x %zu, leading dimension %zu, shift %zu and %zu", kinds[kind], name, s.rows, s.cols, s.distance,
        shift, out_shift);
  const size_t item = sizeof(device_working) > sizeof(O) ? sizeof(device_working) : sizeof(O);
  const gk_scratch *const scratch = choose_scratch(c, batch, gk_matrix_scratch_bytes(s.rows, s.cols, item));
  const fuzz_array<T> in(batch, x, shift, false);
  const fuzz_array<O> out(batch, outputs, out_shift, true);
  batch.calls.push_back([=, &c, &batch] {
    const auto call = kind == 0   ? gk_reduce_rows<const T *, O *, Op>
                      : kind == 1 ? gk_reduce_columns<const T *, O *, Op>
                      : kind == 2 ? gk_scan_rows_inclusive<const T *, O *, Op>
                                  : gk_scan_rows_exclusive<const T *, O *, Op>;
    c.expect(!call(in.get(), out.get(), s.rows, s.cols, s.distance, Op(), batch.stream, scratch), gk_error_detail());
  });
  batch.checks.push_back([=, &c, expected = std::move(expected)] { out.check(c, expected); });
}

struct odd_bits {
  template <class T> __host__ __device__ bool operator()(const T &x) const {
    unsigned char byte;
    memcpy(&byte, static_cast<const void *>(&x), 1);
    return byte % 2 != 0;
  }
};
template <class T> static void fuzz_select(const char *name, fuzz_case &c, fuzz_batch &batch) {
  const size_t tile = HOOK_SCAN_THREADS * hook_select_items(sizeof(T), true), n = c.items(tile, tile * HOOK_SCAN_GROUP);
  const std::vector<T> x = elements<T>(c, n);
  const bool flagged = c.one_in(2), in_place = c.one_in(3);
  std::vector<int64_t> flags(n);
  std::vector<T> expected;
  for (size_t i = 0; i < n; i++) {
    flags[i] = c.draw() % 3 ? 0 : static_cast<int64_t>(1 + c.draw() % 1000) << 40;
    if (flagged ? flags[i] != 0 : odd_bits()(x[i])) expected.push_back(x[i]);
  }
  const std::vector<size_t> expected_count(1, expected.size());
  const size_t shift = c.one_in(2) ? 0 : c.below(17);
  c.say("gk_select%s of %s, n = %zu, shift %zu%s", flagged ? "_flagged" : "", name, n, shift,
        in_place ? ", in place" : "");
  const gk_scratch *const scratch = choose_scratch(c, batch, gk_scan_scratch_bytes(n, sizeof(T)));
  const fuzz_array<T> in(batch, x, shift, in_place);
  const fuzz_array<int64_t> in_flags(batch, flags, c.below(3), false);
  const fuzz_array<T> out(batch, n, c.below(3), true);
  const fuzz_array<size_t> count(batch, 1, 0, true);
  const fuzz_array<T> &target = in_place ? in : out;
  batch.calls.push_back([=, &c, &batch] {
    T *const to = target.get();
    c.expect(!(flagged ? gk_select_flagged(in.get(), in_flags.get(), to, count.get(), n, batch.stream, scratch)
                       : gk_select(in.get(), to, count.get(), n, odd_bits(), batch.stream, scratch)),
             gk_error_detail());
  });
  /* The output after the kept elements does not change. */
  for (size_t i = expected.size(); i < n; i++) {
    T rest = x[i];
    if (!in_place) memset(static_cast<void *>(&rest), 0xa5, sizeof(T));
    expected.push_back(rest);
  }
  batch.checks.push_back([=, &c, expected = std::move(expected)] {
    target.check(c, expected);
    count.check(c, expected_count);
  });
}

/* --- matmul --------------------------------------------------------------------------------------------------------*/

static size_t matmul_edge(fuzz_case &c) {
  const size_t kind = c.below(100);
  if (kind < 50) return c.below(20);
  if (kind < 70) return 31 + c.below(4);
  if (kind < 90) return 1 + c.below(80);
  return (kind < 97 ? 62 : c.one_in(10) ? 254 : 126) + c.below(5);
}

template <class T, class O> static void fuzz_matmul(const char *name, fuzz_case &c, fuzz_batch &batch) {
  typedef plain_type<T> Acc;
  const size_t m = matmul_edge(c), n = matmul_edge(c), k = matmul_edge(c);
  std::vector<T> a, b;
  if (c.one_in(rare_period)) {
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
  const size_t lda = cols_a + pad_a, ldb = cols_b + pad_b, ldc = n + pad_c, batches = c.one_in(3) ? 1 + c.below(3) : 0;
  const size_t products = batches ? batches : 1, gap = c.one_in(3) ? c.below(5) : 0;
  const size_t stride_a = one_a ? 0 : rows_a * lda, stride_b = one_b ? 0 : rows_b * ldb, stride_c = m * ldc + gap;
  const double factors[] = {1, 0, 2, -1, 0.5}, alpha = factors[c.below(5)], beta = factors[1 + c.below(4)];
  const size_t shift = c.one_in(2) ? 0 : c.below(9);
  /* The elements are small integers, so every precision is exact. double has strict products only. */
  const bool is_float = std::is_same<T, float>::value, strict = sizeof(T) == 8 || c.one_in(2);
  const gk_precision precision = strict     ? GK_PRECISION_STRICT
                                 : is_float ? static_cast<gk_precision>(GK_PRECISION_STRICT + c.below(3))
                                            : GK_PRECISION_DEFAULT;
  const gk_plan plan = precision == GK_PRECISION_STRICT ? static_cast<gk_plan>(c.below(GK_PLAN_MMA))
                       : c.one_in(2)                    ? GK_PLAN_AUTO
                       : c.one_in(2)                    ? GK_PLAN_MMA
                                                        : GK_PLAN_WGMMA;
  c.say("gk_matmul_ex %s, %zu x %zu x %zu, trans %d %d, pad %zu %zu %zu, alpha %g, beta %g, batch %zu (one a %d, one b "
        "%d, gap %zu), shift %zu, precision %d, plan %d",
        name, m, n, k, trans_a, trans_b, pad_a, pad_b, pad_c, alpha, beta, batches, one_a, one_b, gap, shift,
        static_cast<int>(precision), static_cast<int>(plan));
  /* Up to the last element of each, without the padding after it. */
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
        const bool product = k > 0 && (alpha < 0 || alpha > 0), adds = beta < 0 || beta > 0; /* else beta C, or 0 */
        const Acc old = adds ? static_cast<Acc>(beta) * static_cast<Acc>(plain(to)) : 0;
        sum *= static_cast<Acc>(alpha);
        to = result_of<O>(!product ? old : adds ? sum + old : sum);
      }
  const fuzz_array<T> on_a(batch, a, shift, false), on_b(batch, b, c.below(3), false);
  const fuzz_array<O> on_c(batch, before, c.below(5), true);
  batch.calls.push_back([=, &c, &batch] {
    gk_matmul_opts o = gk_matmul_opts();
    o.trans_a = trans_a, o.trans_b = trans_b;
    o.lda = pad_a ? lda : 0, o.ldb = pad_b ? ldb : 0, o.ldc = pad_c ? ldc : 0;
    if (alpha < 1 || alpha > 1) o.alpha = &alpha;
    if (beta < 0 || beta > 0) o.beta = &beta;
    o.batch = batches, o.stride_a = stride_a, o.stride_b = stride_b, o.stride_c = gap ? stride_c : 0;
    o.precision = precision, o.plan = plan;
    gk_matmul_path path; /* not every GPU has tensor cores, and not all take every shape */
    if (plan >= GK_PLAN_MMA && gk_matmul_plan(static_cast<const T *>(on_a.get()), static_cast<const T *>(on_b.get()),
                                              on_c.get(), m, n, k, &o, &path))
      o.plan = GK_PLAN_AUTO;
    c.expect(!gk_matmul_ex(static_cast<const T *>(on_a.get()), static_cast<const T *>(on_b.get()), on_c.get(), m, n, k,
                           &o, batch.stream),
             gk_error_detail());
  });
  batch.checks.push_back([=, &c, expected = std::move(expected)] { on_c.check(c, expected); });
}

/* --- all of them ---------------------------------------------------------------------------------------------------*/

typedef void (*fuzz_function)(const char *name, fuzz_case &c, fuzz_batch &batch);
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
    {"sum of uint8_t", fuzz_rows<gk_op_sum, uint8_t, uint64_t>},
    {"sum of float", fuzz_rows<gk_op_sum, float, float>},
    {"sum of half", fuzz_rows<gk_op_sum, __half, float>},
    {"max of int16_t", fuzz_rows<gk_op_max, int16_t, int16_t>},
    {"argmin of float", fuzz_rows<gk_op_argmin, float, gk_arg<float>>},
    {"own operator of 12 bytes", fuzz_rows<exclusive_or, triple, triple>},
    {"uint8_t", fuzz_select<uint8_t>},
    {"float", fuzz_select<float>},
    {"structs of 12 bytes", fuzz_select<triple>},
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
  const uint64_t default_threads = 1;
#else
  const uint64_t default_threads = std::thread::hardware_concurrency();
#endif
  const uint64_t wanted = setting("GPUKIT_FUZZ_THREADS", default_threads), max_threads = cases / 100 + 1;
  const size_t kinds = sizeof entries / sizeof *entries;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::atomic<uint64_t> next(first);
  std::atomic<unsigned> failed(0);
#ifndef CUDA_ON_CPU /* keep freed memory in the pool, or each call without a scratch would wait for the driver */
  cudaMemPool_t pool;
  uint64_t all = UINT64_MAX;
  EXPECT_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  EXPECT_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
#endif
  std::vector<std::thread> threads(static_cast<size_t>(wanted < 1 ? 1 : wanted < max_threads ? wanted : max_threads));
  for (std::thread &thread : threads)
    thread = std::thread([&, legacy = &thread == &threads[0]] {
      fuzz_batch one(false), two(legacy);
      fuzz_batch *batch = &one, *other = &two;
      for (uint64_t i; failed < 10 && (i = next.fetch_add(cases_at_once)) < first + cases;) {
        for (const uint64_t end = std::min(i + cases_at_once, first + cases); i < end;) {
          for (; i < end && (batch->cases.empty() || !batch->full()); i++) {
            batch->cases.push_back({seed, i, 0, "", false});
            fuzz_case &c = batch->cases.back();
            const fuzz_entry &e = entries[c.below(kinds)];
            e.run(e.name, c, *batch);
          }
          batch->begin();
          std::swap(batch, other);
          failed += batch->end(seed);
        }
      }
      failed += other->end(seed);
    });
  for (std::thread &thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  printf("%llu cases by %zu threads in %.1f s\n", static_cast<unsigned long long>(cases), threads.size(), took.count());
}
