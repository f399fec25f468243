#include "../cuda_cpu/rand.h"
