/* All of it comes with cuda_runtime.h. */
#pragma GCC system_header
#include "cuda_runtime.h"
