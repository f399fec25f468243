/* A small test harness: one executable for each test file, every TEST registered by itself.
 *
 *   #include "test.h"
 *   TEST(sum_of_nothing_is_zero) { EXPECT_EQ(sum(0), 0); }
 *   TEST(needs_two_devices) { if (devices < 2) SKIP("one device only"); ... }
 *
 * An EXPECT that fails is printed with file, line and values, and the test goes on; after ten in one test the rest
 * are counted only. The executable's arguments are substrings: only tests whose names hold one of them run.
 * The last line is `N passed, N failed[, N skipped]`, and the exit code is 0 only if nothing failed and something ran.
 */
#ifndef TEST_H
#define TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <exception>
#include <mutex>
#include <sstream>
#include <string>

struct test_case {
  const char *name;
  void (*run)();
  test_case *next;
};
struct test_skip {
  std::string reason;
};
struct test_state {
  test_case *first, **last;
  int failures; /* of the running test */
  test_state() : first(nullptr), last(&first), failures(0) {}
};
inline test_state &test_get() {
  static test_state state;
  return state;
}
struct test_register {
  test_case entry;
  test_register(const char *name, void (*run)()) : entry{name, run, nullptr} {
    *test_get().last = &entry;
    test_get().last = &entry.next;
  }
};

/* Whether a tool slows every kernel and lets none run beside another (sanitize.sh), or the stand-in has a slow check
 * (checks.txt): tests then take fewer steps. */
inline bool test_slowed() {
  const char *const slowed = getenv("GPUKIT_TEST_SLOWED");
  return slowed && *slowed;
}
/* How often a test repeats what fails rarely, when blocks run at the same time. On the stand-in other tools look for
 * races. */
inline size_t test_repeats_of_races() {
#ifdef CUDA_ON_CPU
  return test_slowed() ? 1 : 10;
#else
  return test_slowed() ? 1 : 5000;
#endif
}
/* Of many cases that are much alike, of each kind by itself, such a tool sees one of seven, or of another prime number,
 * which takes turns with loops over other numbers: whether to leave this one out. */
template <class Kind = void> bool test_leaves_out(unsigned of = 7) {
  static unsigned count;
  return test_slowed() && count++ % of;
}

#define TEST(name)                                                                                                     \
  static void test_run_##name();                                                                                       \
  static test_register test_entry_##name(#name, test_run_##name);                                                      \
  static void test_run_##name()

inline void test_fail(const char *file, int line, const std::string &what) {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  int n = ++test_get().failures;
  if (n <= 10) printf("  %s:%d: %s\n", file, line, what.c_str());
  if (n == 10) printf("  (further failures of this test are only counted)\n");
}

template <class V> std::string test_show(const V &v) {
  std::ostringstream s;
  s.precision(17);
  s << +v;
  return s.str();
}
inline std::string test_show(const std::string &v) { return '"' + v + '"'; }
inline std::string test_show(const char *v) { return v ? '"' + std::string(v) + '"' : "NULL"; }
inline std::string test_show(bool v) { return v ? "true" : "false"; }
template <class V> std::string test_show(V *v) { return v ? "a pointer" : "NULL"; }

/* Functions, since a test of many EXPECTs takes a tenth longer to compile if each puts its message together in place. */
inline void test_not_so(const char *condition, const char *f, int l) {
  test_fail(f, l, std::string("not so: ") + condition);
}
inline void test_ok(int status, const char *call, const char *f, int l) {
  if (status) test_fail(f, l, std::string(call) + ": status " + std::to_string(status));
}
inline void test_unequal(const std::string &a, const std::string &b, const char *sa, const char *sb, const char *f,
                         int l) {
  test_fail(f, l, std::string(sa) + " == " + sb + ": " + a + " against " + b);
}
template <class A, class B> void test_eq(const A &a, const B &b, const char *sa, const char *sb, const char *f, int l) {
  if (!(a == b)) test_unequal(test_show(a), test_show(b), sa, sb, f, l);
}
inline void test_has(const char *text, const char *part, const char *f, int l) {
  if (!text || !strstr(text, part)) test_fail(f, l, test_show(part) + " is not in " + test_show(text));
}

#define EXPECT(...)                                                                                                    \
  do {                                                                                                                 \
    if (!(__VA_ARGS__)) test_not_so(#__VA_ARGS__, __FILE__, __LINE__);                                                 \
  } while (0)
#define EXPECT_EQ(a, b) test_eq(a, b, #a, #b, __FILE__, __LINE__)
#define EXPECT_HAS(text, part) test_has(text, part, __FILE__, __LINE__) /* strstr */
/* any status whose zero is success */
#define EXPECT_OK(...) test_ok((int)(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define SKIP(reason)                                                                                                   \
  throw test_skip { reason }

int main(int argc, char **argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  int passed = 0, failed = 0, skipped = 0;
  for (test_case *t = test_get().first; t; t = t->next) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; i++) wanted |= strstr(t->name, argv[i]) != nullptr;
    if (!wanted) continue;
    test_get().failures = 0;
    try {
      t->run();
    } catch (const test_skip &s) {
      if (!test_get().failures) {
        printf("skipped %s: %s\n", t->name, s.reason.c_str());
        skipped++;
        continue;
      }
    } catch (const std::exception &e) { test_fail(__FILE__, __LINE__, std::string("exception: ") + e.what()); }
    if (test_get().failures) {
      printf("FAILED  %s: %d failed expectation(s)\n", t->name, test_get().failures);
      failed++;
    } else
      passed++;
  }
  printf("%d passed, %d failed", passed, failed);
  if (skipped) printf(", %d skipped", skipped);
  printf("\n");
  return failed || passed + skipped == 0;
}

#endif
