#include "the stand-in for CUDA has no 4-bit floating point"
