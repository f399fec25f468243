#include "the stand-in for CUDA has no asynchronous copies (cuda_pipeline.h)"
