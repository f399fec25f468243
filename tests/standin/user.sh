#!/bin/sh
# What `make cpu` does: builds the CUDA program $GIVEN_FILE as BUILD/user/NAME, by the commands in BUILD/user/flags, and
# runs it:  user.sh ASAN TRACED RUNTIME.o [ARGUMENT...]   ASAN and TRACED (RACES or STATS) are empty, or what was given.
set -eu
folder=${BUILD:-build}/user asan=$1 traced=$2 runtime=$3
shift 3
fail() {
  printf '%s\n' "$*" >&2
  exit 1
}
[ -n "$GIVEN_FILE" ] || fail 'make cpu needs FILE=, a CUDA source: make cpu FILE=hw.cu'
[ -f "$GIVEN_FILE" ] && [ -r "$GIVEN_FILE" ] || fail "make cpu: $GIVEN_FILE is not there, or cannot be read"
[ -z "$asan" ] || [ -z "$traced" ] || fail 'make cpu: ASAN=1 goes with neither RACES=1 nor STATS=1'
name=${GIVEN_FILE##*/} near=${GIVEN_FILE%/*}
[ "$near" != "$GIVEN_FILE" ] || near=.
output=$folder/${name%.*}
program=$output.o
[ -z "${V-}" ] || set -x
"${BUILD:-build}/host/cuda_to_cpp" "$GIVEN_FILE" "$output.cpp"
eval "$(sed -n 's/^compile //p' "$folder/flags")"' -DCUDA_CPU_ELSEWHERE -iquote "$near/" -c "$output.cpp" -o "$program"'
eval "$(sed -n 's/^link //p' "$folder/flags" | sed 's/\$program/"&"/; s/\$output/"&"/; s/\$runtime/"&"/')"
[ -z "$GIVEN_STATS" ] || export GPUKIT_CPU_STATS="$GIVEN_STATS"
GPUKIT_CPU_LEAKS=${GPUKIT_CPU_LEAKS-1} exec "$output" "$@"
