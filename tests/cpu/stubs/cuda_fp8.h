#include "the stand-in for CUDA has no 8-bit floating point (cuda_fp8.h)"
