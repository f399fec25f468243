/* Declarations first, then the implementation, and both once more: in one file, as a chain of includes may have it. */
#include "gpukit.cuh"
#define GPUKIT_IMPLEMENTATION
#include "gpukit.cuh"
#include "gpukit.cuh"

int main() {
  gk_set_error_handler(NULL, NULL);
  return gk_error_detail()[0] != 0;
}
