/* Programs that include the header of the driver often call the runtime only. There are no cu... calls here. */
#include "../cuda_runtime.h"
