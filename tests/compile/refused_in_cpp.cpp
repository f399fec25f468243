/* The implementation in a file that is no CUDA: the compiler has to say where it belongs. */
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
