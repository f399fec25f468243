/* The Philox generator of curand_kernel.h, with the same numbers. Of others cuda_to_cpp says that there are none. */
#pragma once
#pragma GCC system_header

#include <math.h>
#include "../cuda_runtime.h"
#include "triple.h"

struct curandStatePhilox4_32_10 {
  unsigned long long seed, subsequence, position;
  unsigned block[4]; /* the four numbers of which the next is one */
  float normal;
  bool has_normal;
};
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

namespace cuda_cpu {
inline void philox(curandStatePhilox4_32_10_t *s) {
  unsigned key = static_cast<unsigned>(s->seed), key2 = static_cast<unsigned>(s->seed >> 32), *b = s->block;
  const unsigned long long counter[] = {s->position / 4, s->subsequence};
  for (int i = 0; i < 4; i++) b[i] = static_cast<unsigned>(counter[i / 2] >> i % 2 * 32);
  for (int round = 0; round < 10; round++, key += 0x9E3779B9, key2 += 0xBB67AE85) {
    const unsigned long long p = 0xD2511F53ull * b[0], q = 0xCD9E8D57ull * b[2];
    b[0] = static_cast<unsigned>(q >> 32) ^ b[1] ^ key;
    b[2] = static_cast<unsigned>(p >> 32) ^ b[3] ^ key2;
    b[1] = static_cast<unsigned>(q);
    b[3] = static_cast<unsigned>(p);
  }
}
} // namespace cuda_cpu

#define CURAND_CALL __host__ __device__ inline
CURAND_CALL void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                             curandStatePhilox4_32_10_t *s) {
  *s = {seed, subsequence, offset, {}, 0, false};
  cuda_cpu::philox(s);
}
CURAND_CALL unsigned curand(curandStatePhilox4_32_10_t *s) {
  const unsigned r = s->block[s->position++ % 4];
  if (s->position % 4 == 0) cuda_cpu::philox(s);
  return r;
}
CURAND_CALL uint4 curand4(curandStatePhilox4_32_10_t *s) {
  const unsigned x = curand(s), y = curand(s), z = curand(s);
  return make_uint4(x, y, z, curand(s));
}
CURAND_CALL float curand_uniform(curandStatePhilox4_32_10_t *s) {
  return static_cast<float>(curand(s)) * 2.3283064e-10f + 2.3283064e-10f / 2;
}
CURAND_CALL float4 curand_uniform4(curandStatePhilox4_32_10_t *s) {
  const float x = curand_uniform(s), y = curand_uniform(s), z = curand_uniform(s);
  return make_float4(x, y, z, curand_uniform(s));
}
CURAND_CALL double curand_uniform_double(curandStatePhilox4_32_10_t *s) { return (curand(s) + 1.0) * 0x1p-32; }
/* By Box and Muller, as there. */
CURAND_CALL float2 curand_normal2(curandStatePhilox4_32_10_t *s) {
  const float turn = 2.3283064e-10f * 6.2831855f, radius = sqrtf(-2.0f * logf(curand_uniform(s)));
  const float angle = static_cast<float>(curand(s)) * turn + turn / 2;
  return make_float2(radius * sinf(angle), radius * cosf(angle));
}
CURAND_CALL float curand_normal(curandStatePhilox4_32_10_t *s) {
  if ((s->has_normal = !s->has_normal)) {
    const float2 both = curand_normal2(s);
    s->normal = both.y;
    return both.x;
  }
  return s->normal;
}
CURAND_CALL float4 curand_normal4(curandStatePhilox4_32_10_t *s) {
  const float2 a = curand_normal2(s), b = curand_normal2(s);
  return make_float4(a.x, a.y, b.x, b.y);
}
CURAND_CALL float curand_log_normal(curandStatePhilox4_32_10_t *s, float mean, float deviation) {
  return expf(mean + deviation * curand_normal(s));
}
#undef CURAND_CALL
