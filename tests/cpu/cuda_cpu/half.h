/* What __half and __nv_bfloat16 have in common: read once for each, with
 *   CUDA_CPU_T, CUDA_CPU_T2       the types (__half, __half2)
 *   CUDA_CPU_N, CUDA_CPU_N2       their part in names (half, half2: __float2half, __float2half2_rn)
 *   CUDA_CPU_MANTISSA             stored bits of the significand; the exponent has the other 15
 *   CUDA_CPU_OTHER                the other type, which converts explicitly
 *   CUDA_CPU_CONVERSIONS, CUDA_CPU_OPERATORS, CUDA_CPU_OPERATORS2: whether the class has them
 * Arithmetic is exact, or rounded to odd, in double and then rounded once, and any NaN result is 0x7fff, as on a GPU. */

#define CUDA_CPU_PASTE2(a, b) a##b
#define CUDA_CPU_PASTE3(a, b, c) a##b##c
#define CUDA_CPU_P2(a, b) CUDA_CPU_PASTE2(a, b)
#define CUDA_CPU_P3(a, b, c) CUDA_CPU_PASTE3(a, b, c)
#define CUDA_CPU_RAW CUDA_CPU_P2(CUDA_CPU_T, _raw)
#define CUDA_CPU_RAW2 CUDA_CPU_P2(CUDA_CPU_T2, _raw)
#define CUDA_CPU_TO(from, how) CUDA_CPU_PASTE3(from, 2, how)
#define CUDA_CPU_AS_USHORT CUDA_CPU_P3(__, CUDA_CPU_N, _as_ushort)
#define CUDA_CPU_USHORT_AS CUDA_CPU_P2(__ushort_as_, CUDA_CPU_N)
#define CUDA_CPU_TO_FLOAT CUDA_CPU_P3(__, CUDA_CPU_N, 2float)
#define CUDA_CPU_FROM_FLOAT CUDA_CPU_P2(__float2, CUDA_CPU_N)
#define CUDA_CPU_FROM_DOUBLE CUDA_CPU_P2(__double2, CUDA_CPU_N)
#define CUDA_CPU_PAIR CUDA_CPU_P3(__halves2, CUDA_CPU_N2, )

typedef struct __attribute__((aligned(2))) {
  unsigned short x;
} CUDA_CPU_RAW;
typedef struct __attribute__((aligned(4))) {
  unsigned short x, y;
} CUDA_CPU_RAW2;

struct CUDA_CPU_T;
struct CUDA_CPU_T2;

struct __attribute__((aligned(2))) CUDA_CPU_T {
protected:
  unsigned short __x;

public:
  CUDA_CPU_T() = default;
  constexpr CUDA_CPU_T(const CUDA_CPU_RAW &raw) : __x(raw.x) {}
  CUDA_CPU_T &operator=(const CUDA_CPU_RAW &raw) {
    __x = raw.x;
    return *this;
  }
  volatile CUDA_CPU_T &operator=(const CUDA_CPU_RAW &raw) volatile {
    __x = raw.x;
    return *this;
  }
  operator CUDA_CPU_RAW() const { return CUDA_CPU_RAW{__x}; }
  operator CUDA_CPU_RAW() const volatile { return CUDA_CPU_RAW{__x}; }
#if CUDA_CPU_CONVERSIONS
  explicit CUDA_CPU_T(CUDA_CPU_OTHER);
#define CUDA_CPU_FROM(type)                                                                                            \
  CUDA_CPU_T(type v) : __x(cuda_cpu::narrow<CUDA_CPU_MANTISSA>(v)) {}                                                  \
  CUDA_CPU_T &operator=(type v) { return *this = CUDA_CPU_T(v); }
  CUDA_CPU_FROM(float)
  CUDA_CPU_FROM(double)
  CUDA_CPU_FROM(short)
  CUDA_CPU_FROM(unsigned short)
  CUDA_CPU_FROM(int)
  CUDA_CPU_FROM(unsigned)
  CUDA_CPU_FROM(long long)
  CUDA_CPU_FROM(unsigned long long)
#undef CUDA_CPU_FROM
  CUDA_CPU_T(long v) : __x(cuda_cpu::narrow<CUDA_CPU_MANTISSA>(v)) {}
  CUDA_CPU_T(unsigned long v) : __x(cuda_cpu::narrow<CUDA_CPU_MANTISSA>(v)) {}
  operator float() const { return cuda_cpu::widen<CUDA_CPU_MANTISSA>(__x); }
#define CUDA_CPU_INTO(type)                                                                                            \
  operator type() const { return cuda_cpu::float_to<type>(cuda_cpu::widen<CUDA_CPU_MANTISSA>(__x)); }
  CUDA_CPU_INTO(signed char)
  CUDA_CPU_INTO(unsigned char)
  CUDA_CPU_INTO(char)
  CUDA_CPU_INTO(short)
  CUDA_CPU_INTO(unsigned short)
  CUDA_CPU_INTO(int)
  CUDA_CPU_INTO(unsigned)
  CUDA_CPU_INTO(long)
  CUDA_CPU_INTO(unsigned long)
  CUDA_CPU_INTO(long long)
  CUDA_CPU_INTO(unsigned long long)
#undef CUDA_CPU_INTO
  constexpr operator bool() const { return (__x & 0x7fff) != 0; }
#endif
};

struct __attribute__((aligned(4))) CUDA_CPU_T2 {
  CUDA_CPU_T x, y;
  CUDA_CPU_T2() = default;
  constexpr CUDA_CPU_T2(const CUDA_CPU_T &a, const CUDA_CPU_T &b) : x(a), y(b) {}
  CUDA_CPU_T2(const CUDA_CPU_RAW2 &raw) : x(CUDA_CPU_RAW{raw.x}), y(CUDA_CPU_RAW{raw.y}) {}
  operator CUDA_CPU_RAW2() const {
    return CUDA_CPU_RAW2{static_cast<CUDA_CPU_RAW>(x).x, static_cast<CUDA_CPU_RAW>(y).x};
  }
};

/* --- bits and conversions --- */

inline unsigned short CUDA_CPU_AS_USHORT(CUDA_CPU_T h) { return static_cast<CUDA_CPU_RAW>(h).x; }
inline short CUDA_CPU_P3(__, CUDA_CPU_N, _as_short)(CUDA_CPU_T h) { return static_cast<short>(CUDA_CPU_AS_USHORT(h)); }
inline CUDA_CPU_T CUDA_CPU_USHORT_AS(unsigned short i) { return CUDA_CPU_T(CUDA_CPU_RAW{i}); }
inline CUDA_CPU_T CUDA_CPU_P2(__short_as_, CUDA_CPU_N)(short i) {
  return CUDA_CPU_USHORT_AS(static_cast<unsigned short>(i));
}
inline float CUDA_CPU_TO_FLOAT(CUDA_CPU_T h) { return cuda_cpu::widen<CUDA_CPU_MANTISSA>(CUDA_CPU_AS_USHORT(h)); }
inline CUDA_CPU_T CUDA_CPU_FROM_FLOAT(float f) { return CUDA_CPU_USHORT_AS(cuda_cpu::narrow<CUDA_CPU_MANTISSA>(f)); }
inline CUDA_CPU_T CUDA_CPU_FROM_DOUBLE(double f) { return CUDA_CPU_USHORT_AS(cuda_cpu::narrow<CUDA_CPU_MANTISSA>(f)); }

#define CUDA_CPU_INTEGER(name, type)                                                                                   \
  CUDA_CPU_ROUNDED(name, type, rn, nearest)                                                                            \
  CUDA_CPU_ROUNDED(name, type, rz, towards_zero)                                                                       \
  CUDA_CPU_ROUNDED(name, type, rd, down)                                                                               \
  CUDA_CPU_ROUNDED(name, type, ru, up)
#define CUDA_CPU_ROUNDED(name, type, how, mode)                                                                        \
  inline CUDA_CPU_T CUDA_CPU_P3(__##name##2, CUDA_CPU_N, _##how)(type i) {                                             \
    return CUDA_CPU_USHORT_AS(cuda_cpu::narrow<CUDA_CPU_MANTISSA>(i, cuda_cpu::mode));                                 \
  }
CUDA_CPU_INTEGER(float, float)
CUDA_CPU_INTEGER(short, short)
CUDA_CPU_INTEGER(ushort, unsigned short)
CUDA_CPU_INTEGER(int, int)
CUDA_CPU_INTEGER(uint, unsigned)
CUDA_CPU_INTEGER(ll, long long)
CUDA_CPU_INTEGER(ull, unsigned long long)
#undef CUDA_CPU_ROUNDED
#define CUDA_CPU_ROUNDED(name, type, how, mode)                                                                        \
  inline type CUDA_CPU_P3(__, CUDA_CPU_N, 2##name##_##how)(CUDA_CPU_T h) {                                             \
    return cuda_cpu::float_to<type>(CUDA_CPU_TO_FLOAT(h), cuda_cpu::mode);                                             \
  }
CUDA_CPU_ROUNDED(char, signed char, rz, towards_zero)
CUDA_CPU_ROUNDED(uchar, unsigned char, rz, towards_zero)
CUDA_CPU_INTEGER(short, short)
CUDA_CPU_INTEGER(ushort, unsigned short)
CUDA_CPU_INTEGER(int, int)
CUDA_CPU_INTEGER(uint, unsigned)
CUDA_CPU_INTEGER(ll, long long)
CUDA_CPU_INTEGER(ull, unsigned long long)
#undef CUDA_CPU_ROUNDED
#undef CUDA_CPU_INTEGER

/* --- arithmetic --- */

#define CUDA_CPU_WIDE(h) static_cast<double>(CUDA_CPU_TO_FLOAT(h))

inline CUDA_CPU_T __hadd(CUDA_CPU_T a, CUDA_CPU_T b) {
  return CUDA_CPU_FROM_DOUBLE(cuda_cpu::add_to_odd(CUDA_CPU_WIDE(a), CUDA_CPU_WIDE(b)));
}
inline CUDA_CPU_T __hsub(CUDA_CPU_T a, CUDA_CPU_T b) {
  return CUDA_CPU_FROM_DOUBLE(cuda_cpu::add_to_odd(CUDA_CPU_WIDE(a), -CUDA_CPU_WIDE(b)));
}
inline CUDA_CPU_T __hmul(CUDA_CPU_T a, CUDA_CPU_T b) {
  return CUDA_CPU_FROM_DOUBLE(CUDA_CPU_WIDE(a) * CUDA_CPU_WIDE(b));
}
inline CUDA_CPU_T __hdiv(CUDA_CPU_T a, CUDA_CPU_T b) {
  return CUDA_CPU_FROM_DOUBLE(CUDA_CPU_WIDE(a) / CUDA_CPU_WIDE(b));
}
inline CUDA_CPU_T __hfma(CUDA_CPU_T a, CUDA_CPU_T b, CUDA_CPU_T c) {
  return CUDA_CPU_FROM_DOUBLE(cuda_cpu::add_to_odd(CUDA_CPU_WIDE(a) * CUDA_CPU_WIDE(b), CUDA_CPU_WIDE(c)));
}
inline CUDA_CPU_T __hadd_rn(CUDA_CPU_T a, CUDA_CPU_T b) { return __hadd(a, b); }
inline CUDA_CPU_T __hsub_rn(CUDA_CPU_T a, CUDA_CPU_T b) { return __hsub(a, b); }
inline CUDA_CPU_T __hmul_rn(CUDA_CPU_T a, CUDA_CPU_T b) { return __hmul(a, b); }
inline bool __hisnan(CUDA_CPU_T a) { return CUDA_CPU_TO_FLOAT(a) != CUDA_CPU_TO_FLOAT(a); }
inline CUDA_CPU_T __hneg(CUDA_CPU_T a) {
  return CUDA_CPU_USHORT_AS(__hisnan(a) ? 0x7fff : CUDA_CPU_AS_USHORT(a) ^ 0x8000);
}
inline CUDA_CPU_T __habs(CUDA_CPU_T a) {
  return CUDA_CPU_USHORT_AS(__hisnan(a) ? 0x7fff : CUDA_CPU_AS_USHORT(a) & 0x7fff);
}
inline int __hisinf(CUDA_CPU_T a) {
  float f = CUDA_CPU_TO_FLOAT(a);
  return f == __builtin_inff() ? 1 : f == -__builtin_inff() ? -1 : 0;
}

#define CUDA_CPU_COMPARE(name, op)                                                                                     \
  inline bool __h##name(CUDA_CPU_T a, CUDA_CPU_T b) { return CUDA_CPU_TO_FLOAT(a) op CUDA_CPU_TO_FLOAT(b); }           \
  inline bool __h##name##u(CUDA_CPU_T a, CUDA_CPU_T b) { return __hisnan(a) || __hisnan(b) || __h##name(a, b); }       \
  inline bool __hb##name##2(CUDA_CPU_T2 a, CUDA_CPU_T2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }       \
  inline bool __hb##name##u2(CUDA_CPU_T2 a, CUDA_CPU_T2 b) { return __h##name##u(a.x, b.x) && __h##name##u(a.y, b.y); }
CUDA_CPU_COMPARE(eq, ==)
CUDA_CPU_COMPARE(le, <=)
CUDA_CPU_COMPARE(ge, >=)
CUDA_CPU_COMPARE(lt, <)
CUDA_CPU_COMPARE(gt, >)
#undef CUDA_CPU_COMPARE
inline bool __hneu(CUDA_CPU_T a, CUDA_CPU_T b) { return CUDA_CPU_TO_FLOAT(a) != CUDA_CPU_TO_FLOAT(b); }
inline bool __hne(CUDA_CPU_T a, CUDA_CPU_T b) { return !__hisnan(a) && !__hisnan(b) && __hneu(a, b); }
inline bool __hbneu2(CUDA_CPU_T2 a, CUDA_CPU_T2 b) { return __hneu(a.x, b.x) && __hneu(a.y, b.y); }
inline bool __hbne2(CUDA_CPU_T2 a, CUDA_CPU_T2 b) { return __hne(a.x, b.x) && __hne(a.y, b.y); }

/* The number, if one of the two is a NaN; +0 is larger than -0. */
inline CUDA_CPU_T __hmax(CUDA_CPU_T a, CUDA_CPU_T b) {
  if (__hisnan(a)) return __hisnan(b) ? CUDA_CPU_USHORT_AS(0x7fff) : b;
  if (__hisnan(b) || __hgt(a, b)) return a;
  return __hlt(a, b) || CUDA_CPU_AS_USHORT(a) >> 15 ? b : a;
}
inline CUDA_CPU_T __hmin(CUDA_CPU_T a, CUDA_CPU_T b) {
  if (__hisnan(a)) return __hisnan(b) ? CUDA_CPU_USHORT_AS(0x7fff) : b;
  if (__hisnan(b) || __hlt(a, b)) return a;
  return __hgt(a, b) || CUDA_CPU_AS_USHORT(b) >> 15 ? b : a;
}
inline CUDA_CPU_T __hmax_nan(CUDA_CPU_T a, CUDA_CPU_T b) {
  return __hisnan(a) || __hisnan(b) ? CUDA_CPU_USHORT_AS(0x7fff) : __hmax(a, b);
}
inline CUDA_CPU_T __hmin_nan(CUDA_CPU_T a, CUDA_CPU_T b) {
  return __hisnan(a) || __hisnan(b) ? CUDA_CPU_USHORT_AS(0x7fff) : __hmin(a, b);
}
namespace cuda_cpu {
inline CUDA_CPU_T saturate(CUDA_CPU_T a) { /* to [0, 1]; NaN to +0 */
  float f = CUDA_CPU_TO_FLOAT(a);
  return f > 0 ? f < 1 ? a : CUDA_CPU_FROM_FLOAT(1) : CUDA_CPU_FROM_FLOAT(0);
}
inline CUDA_CPU_T rectify(CUDA_CPU_T a) { /* NaN stays */
  return CUDA_CPU_TO_FLOAT(a) <= 0 ? CUDA_CPU_FROM_FLOAT(0) : a;
}
} // namespace cuda_cpu
inline CUDA_CPU_T __hadd_sat(CUDA_CPU_T a, CUDA_CPU_T b) { return cuda_cpu::saturate(__hadd(a, b)); }
inline CUDA_CPU_T __hsub_sat(CUDA_CPU_T a, CUDA_CPU_T b) { return cuda_cpu::saturate(__hsub(a, b)); }
inline CUDA_CPU_T __hmul_sat(CUDA_CPU_T a, CUDA_CPU_T b) { return cuda_cpu::saturate(__hmul(a, b)); }
inline CUDA_CPU_T __hfma_sat(CUDA_CPU_T a, CUDA_CPU_T b, CUDA_CPU_T c) { return cuda_cpu::saturate(__hfma(a, b, c)); }
inline CUDA_CPU_T __hfma_relu(CUDA_CPU_T a, CUDA_CPU_T b, CUDA_CPU_T c) { return cuda_cpu::rectify(__hfma(a, b, c)); }

/* Functions: the double's, rounded once. */
#define CUDA_CPU_UNARY(name, ...)                                                                                      \
  inline CUDA_CPU_T h##name(CUDA_CPU_T a) {                                                                            \
    double x = CUDA_CPU_WIDE(a);                                                                                       \
    return CUDA_CPU_FROM_DOUBLE(__VA_ARGS__);                                                                          \
  }                                                                                                                    \
  inline CUDA_CPU_T2 h2##name(CUDA_CPU_T2 a) { return CUDA_CPU_T2(h##name(a.x), h##name(a.y)); }
CUDA_CPU_UNARY(trunc, __builtin_trunc(x))
CUDA_CPU_UNARY(ceil, __builtin_ceil(x))
CUDA_CPU_UNARY(floor, __builtin_floor(x))
CUDA_CPU_UNARY(rint, __builtin_rint(x))
CUDA_CPU_UNARY(sqrt, __builtin_sqrt(x))
CUDA_CPU_UNARY(rsqrt, 1 / __builtin_sqrt(x))
CUDA_CPU_UNARY(rcp, 1 / x)
CUDA_CPU_UNARY(log, __builtin_log(x))
CUDA_CPU_UNARY(log2, __builtin_log2(x))
CUDA_CPU_UNARY(log10, __builtin_log10(x))
CUDA_CPU_UNARY(exp, __builtin_exp(x))
CUDA_CPU_UNARY(exp2, __builtin_exp2(x))
CUDA_CPU_UNARY(exp10, __builtin_pow(10, x))
CUDA_CPU_UNARY(sin, __builtin_sin(x))
CUDA_CPU_UNARY(cos, __builtin_cos(x))
CUDA_CPU_UNARY(tanh, __builtin_tanh(x))
CUDA_CPU_UNARY(tanh_approx, __builtin_tanh(x))
#undef CUDA_CPU_UNARY

/* --- pairs --- */

inline CUDA_CPU_T2 CUDA_CPU_PAIR(CUDA_CPU_T a, CUDA_CPU_T b) { return CUDA_CPU_T2(a, b); }
inline CUDA_CPU_T2 CUDA_CPU_P2(make_, CUDA_CPU_N2)(CUDA_CPU_T a, CUDA_CPU_T b) { return CUDA_CPU_T2(a, b); }
inline CUDA_CPU_T2 CUDA_CPU_P3(__float2, CUDA_CPU_N2, _rn)(float a) {
  return CUDA_CPU_T2(CUDA_CPU_FROM_FLOAT(a), CUDA_CPU_FROM_FLOAT(a));
}
inline CUDA_CPU_T2 CUDA_CPU_P3(__floats2, CUDA_CPU_N2, _rn)(float a, float b) {
  return CUDA_CPU_T2(CUDA_CPU_FROM_FLOAT(a), CUDA_CPU_FROM_FLOAT(b));
}
inline CUDA_CPU_T2 CUDA_CPU_P3(__float22, CUDA_CPU_N2, _rn)(float2 a) {
  return CUDA_CPU_T2(CUDA_CPU_FROM_FLOAT(a.x), CUDA_CPU_FROM_FLOAT(a.y));
}
inline float2 CUDA_CPU_P3(__, CUDA_CPU_N2, 2float2)(CUDA_CPU_T2 a) {
  return float2{CUDA_CPU_TO_FLOAT(a.x), CUDA_CPU_TO_FLOAT(a.y)};
}
inline float __low2float(CUDA_CPU_T2 a) { return CUDA_CPU_TO_FLOAT(a.x); }
inline float __high2float(CUDA_CPU_T2 a) { return CUDA_CPU_TO_FLOAT(a.y); }
inline CUDA_CPU_T CUDA_CPU_P2(__low2, CUDA_CPU_N)(CUDA_CPU_T2 a) { return a.x; }
inline CUDA_CPU_T CUDA_CPU_P2(__high2, CUDA_CPU_N)(CUDA_CPU_T2 a) { return a.y; }
inline CUDA_CPU_T2 CUDA_CPU_P2(__low2, CUDA_CPU_N2)(CUDA_CPU_T2 a) { return CUDA_CPU_T2(a.x, a.x); }
inline CUDA_CPU_T2 CUDA_CPU_P2(__high2, CUDA_CPU_N2)(CUDA_CPU_T2 a) { return CUDA_CPU_T2(a.y, a.y); }
inline CUDA_CPU_T2 CUDA_CPU_P2(__lows2, CUDA_CPU_N2)(CUDA_CPU_T2 a, CUDA_CPU_T2 b) { return CUDA_CPU_T2(a.x, b.x); }
inline CUDA_CPU_T2 CUDA_CPU_P2(__highs2, CUDA_CPU_N2)(CUDA_CPU_T2 a, CUDA_CPU_T2 b) { return CUDA_CPU_T2(a.y, b.y); }
inline CUDA_CPU_T2 __lowhigh2highlow(CUDA_CPU_T2 a) { return CUDA_CPU_T2(a.y, a.x); }
inline CUDA_CPU_T2 CUDA_CPU_P3(CUDA_CPU_P3(__, CUDA_CPU_N, 2), CUDA_CPU_N2, )(CUDA_CPU_T a) {
  return CUDA_CPU_T2(a, a);
}
#define CUDA_CPU_BINARY(name, each)                                                                                    \
  inline CUDA_CPU_T2 name(CUDA_CPU_T2 a, CUDA_CPU_T2 b) { return CUDA_CPU_T2(each(a.x, b.x), each(a.y, b.y)); }
CUDA_CPU_BINARY(__hadd2, __hadd)
CUDA_CPU_BINARY(__hsub2, __hsub)
CUDA_CPU_BINARY(__hmul2, __hmul)
CUDA_CPU_BINARY(__hadd2_rn, __hadd)
CUDA_CPU_BINARY(__hsub2_rn, __hsub)
CUDA_CPU_BINARY(__hmul2_rn, __hmul)
CUDA_CPU_BINARY(__hadd2_sat, __hadd_sat)
CUDA_CPU_BINARY(__hsub2_sat, __hsub_sat)
CUDA_CPU_BINARY(__hmul2_sat, __hmul_sat)
CUDA_CPU_BINARY(__h2div, __hdiv)
CUDA_CPU_BINARY(__hmax2, __hmax)
CUDA_CPU_BINARY(__hmin2, __hmin)
CUDA_CPU_BINARY(__hmax2_nan, __hmax_nan)
CUDA_CPU_BINARY(__hmin2_nan, __hmin_nan)
CUDA_CPU_BINARY(__heq2, __heq)
CUDA_CPU_BINARY(__hne2, __hne)
CUDA_CPU_BINARY(__hle2, __hle)
CUDA_CPU_BINARY(__hge2, __hge)
CUDA_CPU_BINARY(__hlt2, __hlt)
CUDA_CPU_BINARY(__hgt2, __hgt)
#undef CUDA_CPU_BINARY
inline CUDA_CPU_T2 __hneg2(CUDA_CPU_T2 a) { return CUDA_CPU_T2(__hneg(a.x), __hneg(a.y)); }
inline CUDA_CPU_T2 __habs2(CUDA_CPU_T2 a) { return CUDA_CPU_T2(__habs(a.x), __habs(a.y)); }
inline CUDA_CPU_T2 __hfma2(CUDA_CPU_T2 a, CUDA_CPU_T2 b, CUDA_CPU_T2 c) {
  return CUDA_CPU_T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
inline CUDA_CPU_T2 __hfma2_sat(CUDA_CPU_T2 a, CUDA_CPU_T2 b, CUDA_CPU_T2 c) {
  return CUDA_CPU_T2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));
}
inline CUDA_CPU_T2 __hfma2_relu(CUDA_CPU_T2 a, CUDA_CPU_T2 b, CUDA_CPU_T2 c) {
  return CUDA_CPU_T2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));
}

/* --- operators --- */

#define CUDA_CPU_ARITHMETIC(T, op, f)                                                                                  \
  inline T operator op(const T &a, const T &b) { return f(a, b); }                                                     \
  inline T &operator op##=(T &a, const T &b) { return a = f(a, b); }
#define CUDA_CPU_STEP(T, op, f, one)                                                                                   \
  inline T &operator op(T &a) { return a = f(a, one); }                                                                \
  inline T operator op(T &a, int) {                                                                                    \
    T before = a;                                                                                                      \
    a = f(a, one);                                                                                                     \
    return before;                                                                                                     \
  }
#define CUDA_CPU_COMPARISON(T, op, f)                                                                                  \
  inline bool operator op(const T &a, const T &b) { return f(a, b); }
#if CUDA_CPU_OPERATORS
CUDA_CPU_ARITHMETIC(CUDA_CPU_T, +, __hadd)
CUDA_CPU_ARITHMETIC(CUDA_CPU_T, -, __hsub)
CUDA_CPU_ARITHMETIC(CUDA_CPU_T, *, __hmul)
CUDA_CPU_ARITHMETIC(CUDA_CPU_T, /, __hdiv)
CUDA_CPU_STEP(CUDA_CPU_T, ++, __hadd, CUDA_CPU_FROM_FLOAT(1))
CUDA_CPU_STEP(CUDA_CPU_T, --, __hsub, CUDA_CPU_FROM_FLOAT(1))
inline CUDA_CPU_T operator+(const CUDA_CPU_T &a) { return a; }
inline CUDA_CPU_T operator-(const CUDA_CPU_T &a) { return __hneg(a); }
CUDA_CPU_COMPARISON(CUDA_CPU_T, ==, __heq)
CUDA_CPU_COMPARISON(CUDA_CPU_T, !=, __hneu)
CUDA_CPU_COMPARISON(CUDA_CPU_T, <, __hlt)
CUDA_CPU_COMPARISON(CUDA_CPU_T, <=, __hle)
CUDA_CPU_COMPARISON(CUDA_CPU_T, >, __hgt)
CUDA_CPU_COMPARISON(CUDA_CPU_T, >=, __hge)
#endif
#if CUDA_CPU_OPERATORS2
CUDA_CPU_ARITHMETIC(CUDA_CPU_T2, +, __hadd2)
CUDA_CPU_ARITHMETIC(CUDA_CPU_T2, -, __hsub2)
CUDA_CPU_ARITHMETIC(CUDA_CPU_T2, *, __hmul2)
CUDA_CPU_ARITHMETIC(CUDA_CPU_T2, /, __h2div)
CUDA_CPU_STEP(CUDA_CPU_T2, ++, __hadd2, (CUDA_CPU_T2(CUDA_CPU_FROM_FLOAT(1), CUDA_CPU_FROM_FLOAT(1))))
CUDA_CPU_STEP(CUDA_CPU_T2, --, __hsub2, (CUDA_CPU_T2(CUDA_CPU_FROM_FLOAT(1), CUDA_CPU_FROM_FLOAT(1))))
inline CUDA_CPU_T2 operator+(const CUDA_CPU_T2 &a) { return a; }
inline CUDA_CPU_T2 operator-(const CUDA_CPU_T2 &a) { return __hneg2(a); }
CUDA_CPU_COMPARISON(CUDA_CPU_T2, ==, __hbeq2)
CUDA_CPU_COMPARISON(CUDA_CPU_T2, !=, __hbneu2)
CUDA_CPU_COMPARISON(CUDA_CPU_T2, <, __hblt2)
CUDA_CPU_COMPARISON(CUDA_CPU_T2, <=, __hble2)
CUDA_CPU_COMPARISON(CUDA_CPU_T2, >, __hbgt2)
CUDA_CPU_COMPARISON(CUDA_CPU_T2, >=, __hbge2)
#endif

/* --- what other headers offer for every type --- */

CUDA_CPU_SHUFFLE(CUDA_CPU_T)
CUDA_CPU_SHUFFLE(CUDA_CPU_T2)
template <> inline constexpr bool cuda_cpu::loadable<CUDA_CPU_T> = true;
template <> inline constexpr bool cuda_cpu::loadable<CUDA_CPU_T2> = true;
inline CUDA_CPU_T atomicAdd(CUDA_CPU_T *address, CUDA_CPU_T value) {
  return cuda_cpu::atomic_update<unsigned short>(address, [=](CUDA_CPU_T old) { return __hadd(old, value); });
}
inline CUDA_CPU_T2 atomicAdd(CUDA_CPU_T2 *address, CUDA_CPU_T2 value) {
  return cuda_cpu::atomic_update<unsigned>(address, [=](CUDA_CPU_T2 old) { return __hadd2(old, value); });
}

#undef CUDA_CPU_ARITHMETIC
#undef CUDA_CPU_STEP
#undef CUDA_CPU_COMPARISON
#undef CUDA_CPU_WIDE
#undef CUDA_CPU_PASTE2
#undef CUDA_CPU_PASTE3
#undef CUDA_CPU_P2
#undef CUDA_CPU_P3
#undef CUDA_CPU_RAW
#undef CUDA_CPU_RAW2
#undef CUDA_CPU_TO
#undef CUDA_CPU_AS_USHORT
#undef CUDA_CPU_USHORT_AS
#undef CUDA_CPU_TO_FLOAT
#undef CUDA_CPU_FROM_FLOAT
#undef CUDA_CPU_FROM_DOUBLE
#undef CUDA_CPU_PAIR
#undef CUDA_CPU_T
#undef CUDA_CPU_T2
#undef CUDA_CPU_N
#undef CUDA_CPU_N2
#undef CUDA_CPU_MANTISSA
#undef CUDA_CPU_OTHER
#undef CUDA_CPU_CONVERSIONS
#undef CUDA_CPU_OPERATORS
#undef CUDA_CPU_OPERATORS2
