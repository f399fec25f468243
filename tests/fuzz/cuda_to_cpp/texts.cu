#include "local.h"
#include <thrust/sort.h>
const char *s = "\"<<<", c = '\'', *r = R"x(<<<1,1>>>()")x"; /* <<< */ // >>> \
   still a comment
static __shared__ int n; extern "C" __global__ void f(); auto l = [&] { p->k<<<1, 2>>>(x, {1, 2}); };
