#!/bin/sh
# What `make cpu` says of programs that nvcc would refuse, or that use what the stand-in does not have; and that it
# compiles again what has changed, and nothing else.
set -u
. tests/standin/tries.sh
it=$temp/it.cu
has() { grep -qF "$1" "$temp/out" || fail "not said: $1"; }

# refuses TEXT MESSAGE: in the body of main, where p is a pointer to int
refuses() {
  printf '__global__ void k(int *p) { *p = 1; }\nint main() {\n  int *p = nullptr;\n  %s\n}\n' "$1" >"$it"
  ! cpu "$it" || fail "not refused: $1"
  has "$2"
}
shape='a launch is kernel<<<blocks, threads[, bytes[, stream]]>>>(...)'
refuses 'k<<<1>>>(p);' "$shape"
refuses 'k<<<1, 1, 0, 0, 0>>>(p);' "$shape"
refuses 'void (*const f[])(int *) = {k}; f[0]<<<1>>>(p);' "$shape"
[ "$(grep -c 'error:' "$temp/out")" = 1 ] || fail 'more than one error'
refuses 'cudaGraphNodeGetType(0, 0); cudaIpcMemHandle_t h; *p = __vabs7(1); other(p);' \
  'make cpu: the stand-in for CUDA has no __vabs7, cudaGraphNodeGetType, cudaIpcMemHandle_t'
refuses 'none(p);' 'none'
! grep -q 'the stand-in for CUDA has no' "$temp/out" || fail "a name that is not CUDA's"
# A local variable that is not initialised has no value that happens to be right.
cat >"$it" <<'END'
#include <stdio.h>
__global__ void k() {
  float sum;
  for (int i = 0; i < 3; i++) sum += 1;
  printf("%g.\n", sum);
}
int main() {
  k<<<1, 1>>>();
  cudaDeviceSynchronize();
}
END
cpu "$it" || fail 'a local variable that is not initialised'
! grep -q '^3[.]' "$temp/out" || fail 'a sum from nowhere is right'

# compiles yes|no FLAGS WHY: whether make cpu makes the object of it.cu again, which is given the date of an old one
compiles() {
  object=$(ls "${BUILD:-build}"/user/*"${temp##*/}%it.cu.o")
  touch -t 200001010000 "$object" "$temp/old"
  make -s cpu FILE="$it" CXXFLAGS="$2" >"$temp/out" 2>&1 || fail "$3: it fails"
  again=no
  [ -z "$(find "$object" -newer "$temp/old")" ] || again=yes
  [ "$again" = "$1" ] || fail "$3: compiled: $again"
}
printf '#include "it.h"\n#include <stdio.h>\nint main() { printf("%%d\\n", IT); }\n' >"$it"
echo '#define IT 1' >"$temp/it.h"
cpu "$it"
compiles no '' 'nothing has changed'
echo '#define IT 2 /* a comment */' >"$temp/it.h"
compiles yes '' 'another text'
has 2
echo '#define IT 2 /* none */' >"$temp/it.h"
compiles no '' 'another comment'
compiles yes -DOTHER 'another command'
printf 'int main() { int n; }\n' >"$it"
compiles yes '' 'a warning'
has 'unused variable'
compiles yes '' 'a warning before'
has 'unused variable'
printf 'int main() { return none; }\n' >"$it"
! cpu "$it" && ! cpu "$it" || fail 'an error that the second call does not have'
exit $failed
