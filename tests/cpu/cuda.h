/* Programs that include the header of the driver often call the runtime only. There are no cu... calls here. */
#pragma GCC system_header
#include "cuda_runtime.h"
