#!/bin/sh
# Does what README says with the code that README shows:
#
#   readme.sh programs C.o RUNTIME.o
#                            builds and runs all of it without a GPU, and compares what programs print with what README
#                            says they do, but for lines with times. A program in C is linked with both objects
#   readme.sh nvcc           builds all of it but the program in C by nvcc, and runs it where there is a GPU; elsewhere
#                            PTX is enough, as quickly as that can be made
#   readme.sh cmake          configures and builds a program with cmake and nvcc, and runs it where there is a GPU
set -eu
case ${BUILD:-build} in /*) BUILD=${BUILD:-build} ;; *) BUILD=$PWD/${BUILD:-build} ;; esac
export BUILD
folder=$BUILD/readme/$1
setting() { sed -n "s/^$1 //p" "$BUILD/compile/flags"; }
nvcc=$(setting nvcc_is) backend=$(setting backend)
[ "$1" = programs ] || command -v "$nvcc" >/dev/null || { echo 'nvcc is not here' && exit 77; }
[ "$1" != cmake ] || command -v cmake >/dev/null || { echo 'cmake is not here' && exit 77; }
rm -rf "$folder"
mkdir -p "$folder"
ln -s "$PWD" "$folder/gpukit"
ln -s "$PWD/gpukit.cuh" "$folder/gpukit.cuh"

# A program goes to NAME.cu, by the command in its first line, and what is behind it to NAME.expected; the program in C
# to program.c; other code to parts, in braces; and the rest to commands.
awk -v folder="$folder" '
  function end_of_block() {
    if (language == "c" && text ~ /define GPUKIT_IMPLEMENTATION/) {
      program = text
      sub(/\.cu -o .*/, "", program)
      sub(/.* /, "", program)
      printf "%s", text >(folder "/" program ".cu")
      return
    }
    if (language == "" && program != "") printf "%s", text >(folder "/" program ".expected")
    else if (language == "cmake") printf "%s", text >(folder "/CMakeLists.txt")
    else if (language != "c") printf "%s", text >(folder "/commands")
    else if (text ~ /int main/) printf "%s", text >(folder "/program.c")
    else printf "  {\n%s  }\n", text >(folder "/parts")
    program = ""
  }
  /^```/ && inside { end_of_block(); inside = 0; next }
  /^```/ { inside = 1; text = ""; language = substr($0, 4); next }
  inside { text = text $0 "\n" }' README.md
sed -e "/^PARTS\$/r $folder/parts" -e '/^PARTS$/d' tests/compile/readme_parts.cu >"$folder/all_parts.cu"
cd "$folder"
[ "$(ls ./*.expected | wc -l)" -ge 4 ] && [ -s program.c ] && [ -s CMakeLists.txt ] # all were found

# compare NAME: what it has printed
compare() {
  if [ "$1" = all_parts ]; then echo right; else sed '/ ms/d' "$1.expected"; fi | while IFS= read -r line; do
    grep -qxF -e "$line" "$1.out" || { echo "$1 does not print: $line" && cat "$1.out" && exit 1; }
  done
}

case $1 in
cmake)
  architectures=75
  [ "$backend" = cpu ] || architectures=native
  cmake -B build -DCMAKE_CUDA_ARCHITECTURES="$architectures" -DCMAKE_CUDA_COMPILER="$nvcc" >cmake.log 2>&1 &&
    cmake --build build >>cmake.log 2>&1 || { cat cmake.log; exit 1; }
  [ "$backend" = cpu ] || build/saxpy
  ;;
nvcc)
  how='-O3 -arch=native'
  [ "$backend" = gpu ] || how='-O0 -Xcicc -O0 -arch=compute_80'
  for program in ./*.cu; do
    name=$(basename "$program" .cu)
    "$nvcc" $how --extended-lambda "$name.cu" -o "$name"
    [ "$backend" != cpu ] || continue
    "./$name" >"$name.out" || { cat "$name.out" && exit 1; }
    compare "$name"
  done
  ;;
programs)
  for program in ./*.cu; do
    name=$(basename "$program" .cu)
    make -s -C gpukit cpu FILE="$PWD/$name.cu" CXXFLAGS=-O0 >"$name.out" || { cat "$name.out" && exit 1; }
    compare "$name"
  done
  shift
  for object; do
    case $object in *.o) ;; *) continue ;; esac
    case $object in /*) ;; *) object=gpukit/$object ;; esac
    objects="${objects-} $object"
  done
  eval "$(setting c) -I gpukit $(setting standin | sed 's|-I *|&gpukit/|g')" -c program.c -o program.o
  eval "$(setting link)" program.o $objects -ldl -o program
  ./program
  output=$(eval "$(sed -n 's/^!\(make .*\)/\1/p' commands)")
  echo "$output"
  case $output in *'saxpy: '*' ms'*) ;; *) exit 1 ;; esac
  ;;
esac
