#!/bin/sh
# Tests that make takes files of any name: a program (FILE) and the files that it includes, a photograph (PHOTO), tables
# (TABLES, CSV). The names contain spaces, quotes and dollar signs, and no part of them may run as a command. A variable
# that make does not have is named.
#
#   given_names.sh build/fast/tour    the program that make run builds
set -u
backend=cpu
case $1 in */gpu/*) backend=gpu ;; esac
temp=$(mktemp -d) || exit 1
odd="a \"b\" \$(touch $temp/ran) \$\$ '; touch $temp/ran; '"
name=$(printf '%s' "$odd $$" | tr / _) # of a file
translated="given_names.$$ it's" # C++ cannot include a file with a double quote in its name
made=${BUILD:-build}/user/$(printf %s "${temp#/}" | tr / %) # what make cpu makes of files there begins with it
trap 'rm -rf "$temp" "$made"*' EXIT
failed=0
fail() {
  echo "$*"
  failed=1
}
# expect TEXT: a line of the last output
expect() { grep -qxF -e "$1" "$temp/out" || fail "no line '$1': $(cat "$temp/out")"; }

folder="$temp/my '\$folder'"
mkdir "$folder"
cat >"$folder/$name.cu" <<'END'
#include "x.h"
#include <stdio.h>
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) printf("%d %s\n", X, argv[i]);
}
END
echo '#define X 42' >"$folder/x.h"
make -s cpu FILE="$folder/$name.cu" ARGS='"a b" $$((1 + 2))' >"$temp/out" 2>&1
expect '42 a b'
expect '42 3'

printf '#include "k.cuh"\nint main() { return launch() == 42 ? 0 : 1; }\n' >"$folder/$translated.cu"
printf '#include "x.h"\n__global__ void k() {}\ninline int launch() { k<<<1, 1>>>(); return X; }\n' >"$folder/k.cuh"
make -s cpu FILE="$folder/$translated.cu" >"$temp/out" 2>&1 || fail "a translated header: $(cat "$temp/out")"

# Several sources: .cu files, one of them with a launch in a header that -I finds, C++, and C; data in the folder of the
# first; a library; and another program of the same name.
mkdir "$temp/one" "$temp/two" "$temp/one/kernels"
cat >"$temp/one/main.cu" <<'END'
#include <scale.cuh>
#include <stdio.h>
extern "C" int from_c(int);
int from_cpp(int), from_cu(int);
int main() {
  FILE *f = fopen("data.txt", "r");
  int n = 0;
  if (!f || fscanf(f, "%d", &n) != 1) return 1;
  printf("%d %d\n", scaled(from_c(from_cpp(from_cu(n)))), (int)(__cplusplus > 201703L));
  return fclose(f);
}
END
cat >"$temp/one/kernels/scale.cuh" <<'END'
static __global__ void scale(int *p) { *p *= 10; }
inline int scaled(int n) {
  int *p, result = 0;
  cudaMallocManaged(&p, sizeof *p);
  *p = n;
  scale<<<1, 1>>>(p);
  if (cudaDeviceSynchronize() == cudaSuccess) result = *p;
  cudaFree(p);
  return result;
}
END
printf '#include <scale.cuh>\nint from_cu(int n) { return scaled(n); }\n' >"$temp/one/other.cu"
printf '#include <omp.h>\n#ifdef __CUDACC__\n#error\n#endif\nint from_cpp(int n) { return n + omp_in_parallel(); }\n' >"$temp/one/part.cpp"
printf '#include <math.h>\n#if !__has_include("gpukit.cuh")\n#error\n#endif\n' >"$temp/one/kernels/part.c"
echo 'int from_c(int n) { int class = 2; return class + (int)cbrt(n + 0.); }' >>"$temp/one/kernels/part.c"
echo 80 >"$temp/one/data.txt"
printf '#include <stdio.h>\nint main() { puts("two"); }\n' >"$temp/two/main.cu"
sources="$temp/one/main.cu $temp/one/other.cu $temp/one/part.cpp $temp/one/kernels/part.c"
make -s cpu FILE="$sources" CXXFLAGS="-fopenmp -I$temp/one/kernels" STD=c++20 LDLIBS=-lm >"$temp/out" 2>&1
expect '110 1'
make -s cpu FILE="$temp/two/main.cu" >"$temp/out" 2>&1
expect two
"$made%one%main" >"$temp/out" 2>&1
grep -q two "$temp/out" && fail 'programs of the same name overwrite each other'
make -s cpu FILE="$temp/two/main.cu $temp/two/none.cu" >"$temp/out" 2>&1 && fail 'make cpu without its second file'
expect "make cpu: $temp/two/none.cu is not there, or cannot be read"

make cpu FILE="$temp/two" >"$temp/out" 2>&1 && fail 'make cpu of a folder'
expect "make cpu: $temp/two is a folder: FILE= is a CUDA source, or several"
make -s cpu FILE="$temp/two/main.cu" RACES=0 ASAN=0 STATS=0 >"$temp/out" 2>&1
expect two
make cpu FILE="$odd" >"$temp/out" 2>&1 && fail 'make cpu without its file'
expect "make cpu: $odd is not there, or cannot be read"
make run BACKEND=$backend PHOTO="$odd" >"$temp/out" 2>&1 && fail 'make run without its photograph'
expect "tour: $odd: No such file or directory"

# A gnuplot that draws nothing, but makes the file, and keeps what it was asked for.
mkdir "$temp/bin" "$folder/tables"
cat >"$temp/bin/gnuplot" <<'END'
#!/bin/sh
printf '%s\n' "$2" >>"$(dirname "$0")/asked"
: >"$(printf '%s\n' "$2" | sed -n "s/.*out = '\([^']*\)'.*/\1/p")"
END
chmod +x "$temp/bin/gnuplot"
PATH=$temp/bin:$PATH
cat >"$folder/tables/01_it's.csv" <<'END'
# 01 it's: `touch ran` and "so on"
# A GPU "of `touch ran`, sm_90
lesson,n,variant,unit,rate,time_us
1,2,one,it's,4,5
END
make charts TABLES="$folder/tables" >"$temp/out" 2>&1 || fail 'make charts fails'
expect "$folder/tables/01_it's.png"
[ -e "$folder/tables/01_it's.png" ] || fail 'make charts draws elsewhere'
grep -q '`' "$temp/bin/asked" && fail "gnuplot is to run a command: $(cat "$temp/bin/asked")"
make plots CSV="$odd" >"$temp/out" 2>&1 && fail 'make plots without its file'
expect "make plots: there is no $odd; make bench BENCHFLAGS=--csv=FILE writes one, on a GPU"

make help BUILD_FOR=sm_90 >"$temp/out" 2>&1 && fail 'make help takes any variable'
grep -q 'There is no variable BUILD_FOR=' "$temp/out" || fail "BUILD_FOR= is not named: $(cat "$temp/out")"

[ -e "$temp/ran" ] && fail 'a part of a name ran as a command'
exit $failed
