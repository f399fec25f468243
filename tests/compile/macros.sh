#!/bin/sh
# macros.sh command...   lists what `command FILE` says of macros (-E -dM) for the header and for the headers that it
#                        includes itself: what the header adds has to have a name of gpukit's.
set -eu
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
for name in math stdarg stddef stdint stdio stdlib string; do echo "#include <$name.h>"; done >"$temp/plain.cu"
printf '#include <%s>\n' atomic type_traits cuda_runtime.h >>"$temp/plain.cu"
{ cat "$temp/plain.cu"; printf '#define GPUKIT_IMPLEMENTATION\n#include "gpukit.cuh"\n'; } >"$temp/gpukit.cu"
for file in plain gpukit; do "$@" "$temp/$file.cu" | grep '^#define' | sort >"$temp/$file"; done
grep -q '^#define GK_CHECK(' "$temp/gpukit" || { echo 'the header defines nothing'; exit 1; }
if comm -3 "$temp/plain" "$temp/gpukit" | grep -vE '^[[:space:]]*#define (GK_|GPUKIT_)'; then
  echo 'the header adds, removes or changes the macros above'
  exit 1
fi
