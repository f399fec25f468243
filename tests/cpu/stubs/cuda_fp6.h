#include "the stand-in for CUDA has no 6-bit floating point"
