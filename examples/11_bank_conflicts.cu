/* Lesson 11: bank conflicts. Shared memory has 32 banks of 4 bytes: word w is in bank w % 32. An access of a warp takes
 * one pass if each bank has to deliver at most one word (to as many threads as want it), two passes if some bank has to
 * deliver two, and so on.
 *
 * Thread t reads element t * stride. With 4-byte elements the threads t and t + 32 / gcd(stride, 32) use the same bank,
 * so the access takes gcd(stride, 32) passes: odd strides take one, stride 32 takes 32. */
#include <cuda_runtime.h>

#define WARP 32
#define BLOCK 256
#define MOST 33                      /* the largest stride */
#define SIZE ((WARP - 1) * MOST + 1) /* elements */

/* The value of element i; small enough for a char. */
__host__ __device__ inline unsigned content(unsigned i) { return i % 101; }

/* Thread t of each warp reads element t * stride, n times. volatile, or the compiler would read it once. */
template <class T> __device__ void read_strided(T *data, unsigned *out, unsigned stride, unsigned n) {
  for (unsigned i = threadIdx.x; i < SIZE; i += BLOCK) data[i] = (T)content(i);
  __syncthreads();
  const volatile T *const mine = data + threadIdx.x % WARP * stride;
  T sum = 0;
  for (unsigned i = 0; i < n; i++) sum = (T)(sum + *mine);
  out[blockIdx.x * BLOCK + threadIdx.x] = (unsigned)sum;
}

template <class T> __global__ void in_static(unsigned *out, unsigned stride, unsigned n) {
  __shared__ T data[SIZE];
  read_strided(data, out, stride, n);
}

template <class T> __global__ void in_dynamic(unsigned *out, unsigned stride, unsigned n) {
  extern __shared__ double memory[]; /* aligned for the largest of the types */
  read_strided((T *)memory, out, stride, n);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * On an H200 the time is proportional to the number of passes, apart from 4 us for everything else:
 *
 *   int     136 us for every odd stride, 269 for 2, 6, 10 ..., 535 for 4, 12 ..., up to 4243 us for 32: 31.1 times as
 *           long as stride 1
 *   char    four chars share a word, so strides up to 4 take one pass, and stride 32 takes 8: 1065 us. A byte costs as
 *           much as a word: a quarter of the rate of ints in bytes
 *   double  two words. A pass serves 16 threads at best: 268 us at stride 1, for twice the bytes of ints, which is the
 *           same rate. At stride 16 the elements are 32 words apart, all in the same bank: 32 passes, and stride 32 is
 *           no worse
 *
 * Whether the size of the shared memory is declared (static) or given by the launch (dynamic) makes no difference. */
#include "lesson.h"

static const lesson_about about = {"11_bank_conflicts",
                                   "strides through shared memory, for elements of 1, 4 and 8 bytes",
                                   "reads of each thread",
                                   4096,
                                   32,
                                   1,
                                   65536,
                                   "GB/s"};

template <class T>
static lesson_row *row(lesson *l, const char *type, unsigned stride, bool dynamic, unsigned *out, unsigned blocks) {
  const unsigned n = (unsigned)l->n;
  const double bytes = (double)blocks * BLOCK * n * sizeof(T);
  char variant[48];
  snprintf(variant, sizeof variant, "%s stride %u%s", type, stride, dynamic ? " dynamic" : "");
  lesson_row *const r = lesson_measure(l, variant, bytes, [=] {
    if (dynamic)
      in_dynamic<T><<<blocks, BLOCK, SIZE * sizeof(T)>>>(out, stride, n);
    else
      in_static<T><<<blocks, BLOCK>>>(out, stride, n);
  });
  std::vector<unsigned> sums(blocks * BLOCK);
  for (unsigned i = 0; i < sums.size(); i++) sums[i] = (unsigned)(T)(n * content(i % WARP * stride));
  lesson_expect(l, r, out, sums);
  return r;
}

static unsigned common_factor(unsigned a, unsigned b) { return b ? common_factor(b, a % b) : a; }

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  /* Enough blocks to keep the shared memory of each SM busy; counting needs only one. */
  const unsigned blocks = l.mode == LESSON_TIMED ? (unsigned)l.device.sms * 8 : 1;
  unsigned *const out = lesson_array<unsigned>(&l, blocks * BLOCK);
  const unsigned some[] = {1, 2, 4, 8, 16, 32, 33}, few[] = {1, 32, 33};
  const lesson_row *ints[MOST + 1], *chars[MOST + 1] = {}, *doubles[MOST + 1] = {};

  for (unsigned s = 1; s <= MOST; s++) {
    ints[s] = row<int>(&l, "int", s, false, out, blocks);
    if (l.mode == LESSON_COUNTED && ints[s]->counted.load_passes != common_factor(s, WARP))
      lesson_wrong(&l, ints[s], "%g passes, not gcd(%u, %d) of them", ints[s]->counted.load_passes, s, WARP);
  }
  for (const unsigned s : some) chars[s] = row<unsigned char>(&l, "char", s, false, out, blocks);
  for (const unsigned s : some) doubles[s] = row<double>(&l, "double", s, false, out, blocks);
  double farthest = 0; /* between static and dynamic */
  for (const unsigned s : few) {
    const lesson_row *const pairs[][2] = {{ints[s], row<int>(&l, "int", s, true, out, blocks)},
                                          {chars[s], row<unsigned char>(&l, "char", s, true, out, blocks)},
                                          {doubles[s], row<double>(&l, "double", s, true, out, blocks)}};
    for (const auto &p : pairs) {
      const double a = l.mode == LESSON_TIMED ? p[0]->us : p[0]->counted.load_passes;
      const double b = l.mode == LESSON_TIMED ? p[1]->us : p[1]->counted.load_passes;
      if (a > 0 && fabs(b / a - 1) > farthest) farthest = fabs(b / a - 1);
    }
  }
  lesson_table(&l);

  if (l.mode == LESSON_TIMED) {
    double odd = 0;
    for (unsigned s = 1; s <= MOST; s += 2) odd = ints[s]->us > odd ? ints[s]->us : odd;
    lesson_say(
        &l,
        "Ints: stride 32 takes %.1f times as long as stride 1 (32 passes), stride 2 %.2f times, stride 33 %.2f times.",
        ints[32]->us / ints[1]->us, ints[2]->us / ints[1]->us, ints[33]->us / ints[1]->us);
    lesson_say(&l, "No odd stride takes more than %.2f times as long as stride 1: padding by one word is enough.",
               odd / ints[1]->us);
    lesson_say(&l, "In bytes per second, doubles are read at %.2f times the rate of ints, chars at %.2f times.",
               doubles[1]->rate / ints[1]->rate, chars[1]->rate / ints[1]->rate);
  } else if (l.mode == LESSON_COUNTED) {
    lesson_say(&l, "Ints take gcd(stride, 32) passes: %.0f for 32, %.0f for 33. So padding by one word is enough.",
               ints[32]->counted.load_passes, ints[33]->counted.load_passes);
    lesson_say(
        &l,
        "Four chars share a word: %.0f pass at stride 4, %.0f at 32. A double has two words: %.0f passes at stride 1.",
        chars[4]->counted.load_passes, chars[32]->counted.load_passes, doubles[1]->counted.load_passes);
  }
  if (l.mode != LESSON_CHECKED)
    lesson_say(&l, "Static and dynamic shared memory differ by %.1f %% at most, in %s.", 100 * farthest,
               l.mode == LESSON_TIMED ? "time" : "passes");
  return lesson_end(&l);
}
