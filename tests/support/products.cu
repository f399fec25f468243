/* The implementation of gpukit.cuh with the products of all types, for tests that include once.h. */
#define GPUKIT_IMPLEMENTATION
#include "once.h"
