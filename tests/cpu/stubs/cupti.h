#include "the stand-in for CUDA has no CUPTI"
