/* A status that is ignored: [[nodiscard]], which C23 has, makes that a warning. */
#include "gpukit.cuh"

int main(void) {
  gk_device_print(-1);
  return 0;
}
