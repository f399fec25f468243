#include "../cuda_runtime.h" /* has all of it */
