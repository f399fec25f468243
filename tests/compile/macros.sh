#!/bin/sh
# macros.sh COMPILER   lists what cpu or nvcc says of macros (-E -dM) for the header and for the headers that it includes
#                      itself: what the header adds has to have a name of gpukit's.
set -eu
setting() { sed -n "s/^$1 //p" "${BUILD:-build}/compile/flags"; }
case $1 in
cpu) list="$(setting cpu) -x c++ -E -dM" ;;
nvcc) list="$(setting nvcc_is) -I . -E -Xcompiler=-dM" ;;
esac
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
for name in math stdarg stddef stdint stdio stdlib string; do echo "#include <$name.h>"; done >"$temp/plain.cu"
printf '#include <%s>\n' atomic type_traits cuda_runtime.h >>"$temp/plain.cu"
{ cat "$temp/plain.cu"; printf '#define GPUKIT_IMPLEMENTATION\n#include "gpukit.cuh"\n'; } >"$temp/gpukit.cu"
for file in plain gpukit; do $list "$temp/$file.cu" | grep '^#define' | sort >"$temp/$file"; done
grep -q '^#define GK_CHECK(' "$temp/gpukit" || { echo 'the header defines nothing'; exit 1; }
if comm -3 "$temp/plain" "$temp/gpukit" | grep -vE '^[[:space:]]*#define (GK_|GPUKIT_)'; then
  echo 'the header adds, removes or changes the macros above'
  exit 1
fi
