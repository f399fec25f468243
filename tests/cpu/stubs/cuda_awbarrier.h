#include "the stand-in for CUDA has no asynchronous barriers (cuda_awbarrier.h)"
