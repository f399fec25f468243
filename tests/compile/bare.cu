/* A file that includes the header and calls nothing of it: it wants no implementation, and nothing is said to be unused.
 */
#include "gpukit.cuh"

int main() { return 0; }
