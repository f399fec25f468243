#include "the stand-in for CUDA has cuBLAS by cublas_v2.h alone, not by cublas.h"
