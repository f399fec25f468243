/* The implementation, with the typed entry points, for the plain C of c99.c. */
#define GPUKIT_IMPLEMENTATION
#define GPUKIT_C_API
#ifdef OTHER_VERSION
#include "other/gpukit.cuh"
#else
#include "gpukit.cuh"
#endif
