#include "the stand-in for CUDA has no tensor cores by wmma (mma.h)"
