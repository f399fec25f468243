#!/bin/sh
# Runs programs that use CUDA's libraries by make cpu: the parts that the stand-in has, with the same results, or one
# line that names the package that is missing; and one line for what it does not have.
set -u
. tests/standin/tries.sh

for program in tests/standin/libraries/*.cu; do
  cpu "$program" && grep -qx ok "$temp/out" && continue
  missing=$(sed -n "s/.*fatal error: '*\\(.*apt-get install [a-z-]*\\).*/\\1/p" "$temp/out")
  if [ -n "$missing" ]; then echo "skipped: $program: $missing"; else fail "$program"; fi
done

# refuses TEXT MESSAGE: the only error; clang puts the name of a missing header in quotes
refuses() {
  printf "$1" >"$temp/refused.cu"
  ! cpu "$temp/refused.cu" && [ "$(grep -c 'error:' "$temp/out")" = 1 ] && grep -q "error: '*$2" "$temp/out" ||
    fail "$1 is not refused as: $2"
}
for library in cufft:cuFFT cusparse:cuSPARSE cusolverDn:cuSOLVER cudnn:cuDNN curand:'calls of cuRAND by the host' \
  npp:NPP nvrtc:NVRTC cuda_gl_interop:OpenGL cub/cub:CUB cuda/barrier:libcu++; do
  refuses "#include <${library%%:*}.h>\nnone x;\n" "the stand-in for CUDA has no ${library#*:}"
done
refuses '#include <cublas.h>\nnone x;\n' 'the stand-in for CUDA has cuBLAS by cublas_v2.h alone'
refuses '#include <curand_kernel.h>\n__global__ void k(curandState *s) { curand(s); }\nnone x;\n' \
  'the stand-in for CUDA has no generator of cuRAND but curandStatePhilox4_32_10_t'
refuses '#include <cuda.h>\nint main() { return cuInit(0); }\n' 'the stand-in for CUDA has no calls of the driver'
exit $failed
