#define GPUKIT_PRODUCTS_F32
#include "matmul.cu"
