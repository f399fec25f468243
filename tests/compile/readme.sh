#!/bin/sh
# Does what README says of a CMake project and of a notebook, with the program that README shows:
#
#   readme.sh cmake      configures and builds it with cmake and nvcc, and runs it where there is a GPU
#   readme.sh notebook   runs the cell for a machine without a GPU
#   readme.sh programs   builds and runs the whole programs that README shows, without a GPU, and compares what they print
#                        with what README says they do, but for lines with times; then the notebook's cell, because
#                        two runs of make at once would get into each other's way
set -eu
what=$1 repository=$PWD
case ${BUILD:-build} in /*) BUILD=${BUILD:-build} ;; *) BUILD=$PWD/${BUILD:-build} ;; esac
export BUILD
folder=$BUILD/readme/$what
setting() { sed -n "s/^$1 //p" "$BUILD/compile/flags"; }
if [ "$what" = cmake ]; then
  nvcc=$(setting nvcc_is)
  [ -n "$nvcc" ] || { echo 'nvcc is not here' && exit 77; }
  command -v cmake >/dev/null || { echo 'cmake is not here' && exit 77; }
fi
unset MAKEFLAGS MFLAGS MAKELEVEL # the cell's make is nobody's part
rm -rf "$folder"
mkdir -p "$folder"

# The first block of README.md in language $1 that holds the text $2.
block() {
  awk -v language="$1" -v text="$2" '
    inside && /^```$/ { if (this == language && index(block, text)) { printf "%s", block; exit } inside = 0; next }
    inside { block = block $0 "\n"; next }
    /^```/ { inside = 1; this = substr($0, 4); block = "" }' README.md
}
block c '__global__ void saxpy' >"$folder/saxpy.cu"
grep -q 'int main' "$folder/saxpy.cu"
ln -s "$repository" "$folder/gpukit"

case $what in
cmake)
  block cmake 'INTERFACE' >"$folder/CMakeLists.txt"
  architectures=75
  [ "$(setting backend)" = cpu ] || architectures=native
  cd "$folder"
  cmake -B build -DCMAKE_CUDA_ARCHITECTURES="$architectures" -DCMAKE_CUDA_COMPILER="$nvcc" >cmake.log 2>&1 &&
    cmake --build build >>cmake.log 2>&1 || { cat cmake.log; exit 1; }
  [ $architectures = 75 ] || build/saxpy
  ;;
notebook)
  cell=$(block '' '!make' | sed -n 's/^!\(make .*\)/\1/p')
  [ -n "$cell" ]
  cd "$folder"
  PWD=$(pwd)
  output=$(eval "$cell")
  echo "$output"
  case $output in *'saxpy: '*' ms'*) ;; *) exit 1 ;; esac
  ;;
programs)
  # Blocks of C with main() go to 1.cu, 2.cu ..., and each block behind one to 1.txt, 2.txt ...
  awk -v folder="$folder" '
    inside && /^```$/ {
      if (this == "c" && index(block, "int main")) { number++; printf "%s", block >(folder "/" number ".cu"); waits = 1 }
      else if (this == "" && waits) { printf "%s", block >(folder "/" number ".txt"); waits = 0 }
      inside = 0
      next
    }
    inside { block = block $0 "\n"; next }
    /^```/ { inside = 1; this = substr($0, 4); block = "" }' README.md
  [ -f "$folder/3.cu" ] && [ -f "$folder/3.txt" ]
  for program in "$folder"/*.cu; do
    wanted=${program%.cu}.txt
    make -s cpu FILE="$program" >"$program.out"
    sed '/ ms/d' "$wanted" | while IFS= read -r line; do
      grep -qxF -e "$line" "$program.out" || { echo "$program does not print: $line" && cat "$program.out" && exit 1; }
    done
  done
  sh tests/compile/readme.sh notebook
  ;;
esac
