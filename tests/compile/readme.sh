#!/bin/sh
# Does what README says with the programs that README shows:
#
#   readme.sh cmake      configures and builds one with cmake and nvcc, and runs it where there is a GPU
#   readme.sh programs   builds and runs all of them without a GPU, and compares what they print with what README says
#                        they do, but for lines with times; then the notebook's cell for a machine without a GPU
set -eu
case ${BUILD:-build} in /*) BUILD=${BUILD:-build} ;; *) BUILD=$PWD/${BUILD:-build} ;; esac
export BUILD
folder=$BUILD/readme/$1
setting() { sed -n "s/^$1 //p" "$BUILD/compile/flags"; }
nvcc=$(setting nvcc_is)
if [ "$1" = cmake ]; then
  [ -n "$nvcc" ] || { echo 'nvcc is not here' && exit 77; }
  command -v cmake >/dev/null || { echo 'cmake is not here' && exit 77; }
fi
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that runs this test
rm -rf "$folder"
mkdir -p "$folder"
ln -s "$PWD" "$folder/gpukit"

# The blocks go to 01.LANGUAGE, 02.LANGUAGE, ...; those without a language to .txt.
awk -v folder="$folder" '
  /^```/ && file { close(file); file = ""; next }
  /^```/ { file = sprintf("%s/%02d.%s", folder, ++count, $0 == "```" ? "txt" : substr($0, 4)); next }
  file { print >file }' README.md
cd "$folder"
cp "$(grep -l '__global__ void saxpy' ./*.c | head -n 1)" saxpy.cu

case $1 in
cmake)
  cp "$(grep -l INTERFACE ./*.cmake)" CMakeLists.txt
  architectures=75
  [ "$(setting backend)" = cpu ] || architectures=native
  cmake -B build -DCMAKE_CUDA_ARCHITECTURES="$architectures" -DCMAKE_CUDA_COMPILER="$nvcc" >cmake.log 2>&1 &&
    cmake --build build >>cmake.log 2>&1 || { cat cmake.log; exit 1; }
  [ $architectures = 75 ] || build/saxpy
  ;;
programs)
  programs=0 program=
  for block in ./[0-9]*; do
    case $block in
    *.c)
      grep -q 'int main' "$block" || continue
      program=${block%.c}.cu programs=$((programs + 1))
      cp "$block" "$program"
      make -s -C gpukit cpu FILE="$PWD/$program" >"$program.out"
      ;;
    *.txt) # behind a program: what it prints
      [ -n "$program" ] || continue
      sed '/ ms/d' "$block" | while IFS= read -r line; do
        grep -qxF -e "$line" "$program.out" && continue
        echo "$program does not print: $line"
        cat "$program.out"
        exit 1
      done
      program=
      ;;
    esac
  done
  [ $programs -ge 3 ]
  cell=$(sed -n 's/^!\(make .*\)/\1/p' ./*.txt)
  output=$(eval "$cell")
  echo "$output"
  case $output in *'saxpy: '*' ms'*) ;; *) exit 1 ;; esac
  ;;
esac
