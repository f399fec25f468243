#!/bin/sh
# Builds a CUDA program for the stand-in and runs it: what `make cpu` does. What the user gives comes through the
# environment, since names of files may contain spaces, quotes and dollar signs.
#
#   GIVEN_FILE        the source; or several with spaces between them, of which the first names the program
#   GIVEN_ARGS        its arguments, words as a shell reads them
#   GIVEN_CXXFLAGS    flags, likewise; -I also tells the translation where headers are
#   COMPILE COMPILE_C LINK LIBRARIES RUNTIME    the commands, what ends the last, and the object that has CUDA's calls
#
# As with nvcc, .cu files are translated, and other sources are plain C++ or C. What is made lies in build/user under the
# path of each source, with % for a slash. The program runs in the folder of its first source, where its data is.
set -eu
die() {
  printf 'make cpu%s\n' "$*" >&2
  exit 1
}
[ "$GIVEN_FILE" ] || die ' needs FILE=, a CUDA source: make cpu FILE=hw.cu'

# A name may have spaces in it. A list is what has a word that is a file.
is_list() {
  [ -f "$GIVEN_FILE" ] && return 1
  for word in $GIVEN_FILE; do [ -f "$word" ] && return; done
  return 1
}
set -f
if is_list; then set -- $GIVEN_FILE; else set -- "$GIVEN_FILE"; fi
set +f
for file; do
  [ -f "$file" ] && [ -r "$file" ] || die ": $file is not there, or cannot be read"
done

folder_of() { case $1 in */*) printf '%s/' "${1%/*}" ;; *) printf './' ;; esac; }
# The start of the names of what is made of a file.
place_of() {
  folder=$(cd "$(folder_of "$1")" && pwd)/
  case $folder in "$PWD/"*) folder=${folder#"$PWD/"} ;; /*) folder=${folder#/} ;; esac
  printf 'build/user/%s%s' "$(printf %s "$folder" | tr / %)" "${1##*/}"
}
quoted() { printf " '%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

# What __CUDA_ARCH__ is in kernels: 900 for sm_90.
case ${GPUKIT_CPU_DEVICE-} in sm_[0-9]*) arch=-DCUDA_CPU_ARCH=${GPUKIT_CPU_DEVICE#sm_}0 ;; *) arch= ;; esac

# Thrust, from the toolkit: its headers without the others there.
for include in "${CUDA_HOME:-/usr/local/cuda}/include/cccl" "${CUDA_HOME:-/usr/local/cuda}/include"; do
  [ -d "$include/thrust" ] && [ ! -e build/thrust ] || continue
  mkdir -p build/thrust
  for part in thrust cub cuda nv; do ln -s "$include/$part" build/thrust/; done
done

mkdir -p build/user
objects=
for file; do
  made=$(place_of "$file") && folder=$(folder_of "$file")
  case $file in
  *.c) eval "$COMPILE_C"' -c "$file" -o "$made.o"' ;;
  *.cc | *.cpp | *.cxx | *.C) eval "$COMPILE"' -c "$file" -o "$made.o"' ;;
  *)
    eval "build/host/cuda_to_cpp $GIVEN_CXXFLAGS"' "$file" "$made.cpp"'
    eval "$COMPILE $arch"' -isystem build/thrust -iquote "$folder" -c "$made.cpp" -o "$made.o"'
    ;;
  esac
  objects="$objects$(quoted "$made.o")"
done
made=$(place_of "$1")
eval "$LINK $objects $RUNTIME"' -o "${made%.*}"'" $LIBRARIES"

program=$PWD/${made%.*}
export GPUKIT_CPU_LEAKS="${GPUKIT_CPU_LEAKS-1}"
cd "$(folder_of "$1")"
eval 'exec "$program"'" $GIVEN_ARGS"
