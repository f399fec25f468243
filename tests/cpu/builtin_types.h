/* All of it is in cuda_runtime_api.h. */
#pragma GCC system_header
#include "cuda_runtime_api.h"
