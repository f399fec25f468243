/* What cannot work, each by its macro: the compiler has to say why. */
#ifdef INSIDE_A_NAMESPACE
namespace mine {
#include "gpukit.cuh"
}
#else
#include "gpukit.cuh"
#endif
