#include "the stand-in for CUDA has no calls of cuRAND by the host (curand.h), only Philox in kernels (curand_kernel.h)"
