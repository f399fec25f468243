#!/bin/sh
# What `make test-ports` does: the header for GPUs that make test-all leaves out; checks of make test by another
# compiler, and cross-compiled for another processor, which is emulated. Each port has a folder of its own,
# BUILD/ports/NAME. One whose tools are not here is skipped.
set -u
unset MAKEFLAGS MFLAGS MAKELEVEL
folder=${BUILD:-build}/ports
failed=0
# port NAME COMPILER EMULATOR CHECK...
port() {
  name=$1 compiler=$2 emulator=$3
  shift 3
  for tool in "$compiler" ${emulator%% *}; do
    command -v "$tool" >/dev/null || { echo "$name is skipped: $tool is not here" && return; }
  done
  echo "$name:"
  # LeakSanitizer cannot look into an emulated process.
  env ${emulator:+TIMEOUT=3000 ASAN_OPTIONS=detect_leaks=0} EMULATOR="$emulator" \
    make test BACKEND=cpu CXX="$compiler" BUILD="$folder/$name" TESTS="$*" || failed=1
}

# cross NAME TARGET [run]: the stand-in and programs by zig, which has the headers and libraries of other systems;
# linked, and run if that is possible here.
cross() {
  name=$1 target=$2 run=${3-} at=$folder/$1
  command -v zig >/dev/null || { echo "$name is skipped: zig is not here" && return; }
  compile="zig c++ -target $target -O1 -UNDEBUG -std=c++17 -ffp-contract=off -I . -I tests/cpu -I tests/cpu/stubs"
  linked=0
  make BACKEND=cpu BUILD="$at" "$at/host/cuda_to_cpp" &&
    $compile -include cuda_runtime.h -x c++ -c /dev/null -o "$at/runtime.o" || failed=1
  for program in hello reduction matmul_tiled histogram; do
    source=tests/standin/programs/$program.cu made=$at/$program
    if "$at/host/cuda_to_cpp" $source "$made.cpp" &&
      $compile -DCUDA_CPU_ELSEWHERE -iquote "${source%/*}" "$made.cpp" "$at/runtime.o" -o "$made" &&
      { [ -z "$run" ] || "$made" >"$made.out"; }; then
      linked=$((linked + 1))
    else
      failed=1
    fi
  done
  echo "$linked of 4 programs compiled and linked${run:+, and run}"
}

# windows NAME COMPILER: what a plain C file sees of the header, which is all that a compiler for Windows is shown here.
windows() {
  name=$1 compiler=$2
  for part in "${compiler%% *}" x86_64-w64-mingw32-gcc; do
    command -v "$part" >/dev/null || { echo "$name is skipped: $part is not here" && return; }
  done
  # shellcheck disable=SC2086 # words
  $compiler -std=c99 -pedantic -Wall -Wextra -Wshadow -Wconversion -Werror -fsyntax-only -isystem tests/cpu -I . \
    tests/compile/c99.c && echo "$name: clean" || failed=1
}
make test-targets || failed=1
tests=$(sed -n 's/^test  *\([^ ]*\) .*/\1/p' tests/checks.txt)
# shellcheck disable=SC2086 # names are words
port clang clang++ '' $tests tour 10_transpose 15_warp_primitives hostile two five shared
# The newest clang++ that has a name of its own, which instruments more than the one above may.
newest=clang++-15
for version in 16 17 18 19 20 21 22 23; do
  ! command -v clang++-$version >/dev/null || newest=clang++-$version
done
port "${newest%++*}${newest#clang++}" "$newest" '' test_races test_counters test_standin_device 10_transpose
port aarch64 aarch64-linux-gnu-g++ 'qemu-aarch64 -L /usr/aarch64-linux-gnu' test_error test_index test_warp_block \
  test_bits test_standin test_standin_device test_standin_memory test_cooperative
cross macos_arm64 aarch64-macos
cross macos_x86_64 x86_64-macos
cross musl x86_64-linux-musl run
windows mingw x86_64-w64-mingw32-gcc
# MSVC's own headers are not to be had here.
headers=$(echo '#include <stdio.h>' | x86_64-w64-mingw32-gcc -E - 2>/dev/null |
  sed -n 's,.*"\(.*\)/stdio.h".*,\1,p' | sed 1q)
windows msvc "clang --target=x86_64-pc-windows-msvc -fms-extensions -isystem $headers"
exit $failed
