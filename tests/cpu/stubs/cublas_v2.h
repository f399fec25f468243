#include "../cuda_cpu/blas.h"
