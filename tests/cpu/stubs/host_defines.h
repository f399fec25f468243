#include "../cuda_runtime_api.h" /* has all of it */
