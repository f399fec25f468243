/* Plain loops of reduce and scan by the numbers that the C API has for operators. Include it after gpukit.cuh. */
#ifndef LOOPS_H
#define LOOPS_H

#include "data.h"

static const gk_op value_ops[] = {GK_OP_SUM, GK_OP_PROD, GK_OP_MIN, GK_OP_MAX};
inline const char *name_of(gk_op op) {
  switch (op) {
  case GK_OP_SUM: return "sum";
  case GK_OP_PROD: return "product";
  case GK_OP_MIN: return "min";
  case GK_OP_MAX: return "max";
  case GK_OP_ARGMIN: return "argmin";
  case GK_OP_ARGMAX: return "argmax";
  }
  return "no operator";
}

template <class A> A identity_of(gk_op op) {
  typedef std::numeric_limits<A> limits;
  if (op == GK_OP_MIN) return is_float<A>::value ? limits::infinity() : limits::max();
  if (op == GK_OP_MAX) return is_float<A>::value ? -limits::infinity() : limits::lowest();
  return op == GK_OP_SUM ? A(0) : A(1);
}
template <class A> A combine(gk_op op, A x, A y) {
  typedef typename std::conditional<is_float<A>::value, A, uint64_t>::type U; /* unsigned integers wrap */
  if (op == GK_OP_SUM) return static_cast<A>(static_cast<U>(x) + static_cast<U>(y));
  if (op == GK_OP_PROD) return static_cast<A>(static_cast<U>(x) * static_cast<U>(y));
  return (op == GK_OP_MIN ? y < x : y > x) ? y : x;
}
template <class T> plain_type<T> reduce_in_a_loop(gk_op op, const std::vector<T> &x) {
  plain_type<T> all = identity_of<plain_type<T>>(op);
  for (const T &v : x) all = combine(op, all, plain(v));
  return all;
}
template <class T> std::vector<T> scan_in_a_loop(gk_op op, bool inclusive, plain_type<T> running, std::vector<T> x) {
  for (T &v : x) {
    const plain_type<T> next = combine(op, running, plain(v));
    v = make<T>(0);
    if constexpr (is_half<T>::value)
      v = make<T>(static_cast<double>(inclusive ? next : running));
    else
      v = inclusive ? next : running;
    running = next;
  }
  return x;
}
/* Exact in any order; the extreme elements come late. */
template <class T> std::vector<T> elements(gk_op op, size_t n) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; i++) {
    if (op == GK_OP_PROD) {
      x[i] = make<T>(i % 128 == 9 ? 2 : i % 128 == 77 && is_float<T>::value ? 0.5 : 1);
    } else if (is_float<T>::value || op != GK_OP_SUM) {
      const int any = i == n - 3 ? 49 : i == n - 2 ? 11 : uniform(31, i, 20, 40);
      x[i] = make<T>(op == GK_OP_SUM ? any - 30 : any);
    } else {
      /* CUDA 12.0 makes no half of a uint64_t. */
      typedef typename std::conditional<is_float<T>::value, int, uint64_t>::type integer;
      x[i] = static_cast<T>(static_cast<integer>(mix(31, i)));
    }
  }
  return x;
}

#endif
