/* All of it is in cuda_runtime.h. */
#pragma GCC system_header
#include "cuda_runtime.h"
