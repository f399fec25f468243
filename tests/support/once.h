/* gpukit.cuh, for tests that call products. Most of such a test's compile time goes into the kernels of products, which
 * are the same in each. So tests/build.sh compiles them once for a configuration (products.cu), and defines PRODUCTS_ONCE
 * in every test that includes this header. Without that macro the test compiles them itself: where it runs on a GPU, and
 * where the header is changed for it. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#ifdef PRODUCTS_ONCE
#define GPUKIT_PRODUCTS_F32
#define GPUKIT_PRODUCTS_F64
#define GPUKIT_PRODUCTS_F16
#define GPUKIT_PRODUCTS_BF16
#else
#define GPUKIT_IMPLEMENTATION
#endif
#include "gpukit.cuh"
