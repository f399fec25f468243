#!/bin/sh
# What `make cpu` does: builds the CUDA program $GIVEN_FILE by the commands in BUILD/user/flags, and runs it:
#
#   user.sh ASAN TRACED RUNTIME.o [ARGUMENT...]     ASAN and TRACED (RACES or STATS) are empty, or what was given
#
# $GIVEN_FILE is a source, or several with spaces between them, of which the first names the program. As with nvcc, .cu
# files are translated; others are plain C++, or C by the command `plain`. $GIVEN_CXXFLAGS are further flags, among
# which -I also tells the translation where headers are; $GIVEN_LDLIBS are libraries. BUILD/user has what is made of a
# source under the source's path, with % for a slash. An object is used again if the same command would make it of the
# same text, and said nothing when it did. The program runs in the folder of its first source, where its data is.
set -eu
. tests/functions.sh
here=$PWD asan=$1 traced=$2 runtime=$3
folder=$BUILD/user
shift 3
fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

folder_of() { case $1 in */*) printf '%s/' "${1%/*}" ;; *) printf './' ;; esac; }
# What is made of a source begins with this.
made_of() {
  near=$(cd "$(folder_of "$1")" && pwd)/
  case $near in "$PWD/"*) near=${near#"$PWD/"} ;; *) near=${near#/} ;; esac
  near=$folder/$(printf %s "$near" | tr / %)${1##*/}
  printf %s "${near%.*}"
}

driver='(^|[^A-Za-z0-9_])cu(Init|(Ctx|DeviceGet|Func|Launch|Library|Link|Mem|Module)[A-Za-z0-9]+) *\('
# Lists the names of CUDA that errors of the compiler, on stdin, call undeclared. What the compiler proposes instead often
# does something else.
undeclared() {
  escape=$(printf '\033')
  sed -nE "s/$escape\[[0-9;]*[mK]//g; /error:.*(declar|does not name a type|unknown type name)/ {
    s/.*error: [^‘']*[‘']((cuda|cublas|curand)[A-Z][A-Za-z0-9_]*|__[a-z][a-z0-9_]*)[’'].*/\1/p
  }" | sort -u | tr '\n' ' ' | sed 's/ $//; s/ /, /g'
}
# object_by COMMAND: makes $object of $input, unless it is there. The command is for eval.
object_by() {
  key= status=0
  if eval "$1 -E"' "$input"' >"$made.i" 2>/dev/null; then
    key=$(printf '%s\n' "$1" "$beside" | cat - "$made.i" | cksum)
  fi
  rm -f "$made.i"
  if [ "$key" ] && [ -f "$object" ] && [ "$(cat "$object.key" 2>/dev/null)" = "$key" ]; then return; fi
  rm -f "$object.key"
  eval "$1 $color"' -c "$input" -o "$object"' >"$made.said" 2>&1 || status=$?
  cat "$made.said" >&2
  if [ "$status" != 0 ]; then
    names=$(undeclared <"$made.said")
    [ -z "$names" ] || fail "make cpu: the stand-in for CUDA has no $names"
    exit "$status"
  fi
  [ -s "$made.said" ] || printf '%s\n' "$key" >"$object.key"
}
compile() {
  object=$made.${1##*.}.o input=$1 beside=$(folder_of "$1")
  ! grep -qE "$driver" "$1" || fail "$1: error: the stand-in for CUDA has no calls of the driver (cuInit, ...)"
  case $1 in
  *.c) object_by "$plain $GIVEN_CXXFLAGS" ;;
  *.cc | *.cpp | *.cxx | *.C) object_by "$compile $GIVEN_CXXFLAGS" ;;
  *)
    eval "\"$BUILD/host/cuda_to_cpp\" $GIVEN_CXXFLAGS"' "$1" "$made.cpp"'
    # Thrust binds references to null pointers.
    ! grep -q '^#include "cuda_cpu/thrust.h"' "$made.cpp" || arch="$arch -fno-sanitize=null"
    input=$made.cpp
    object_by "$compile $arch $GIVEN_CXXFLAGS "'-idirafter "$beside"'
    ;;
  esac
}

# program SOURCE...: compiles them, and links all into $output
program() {
  for source; do
    ! [ -d "$source" ] || fail "make cpu: $source is a folder: FILE= is a CUDA source, or several"
    [ -f "$source" ] && [ -r "$source" ] || fail "make cpu: $source is not there, or cannot be read"
  done
  output=$(made_of "$1") place=$(folder_of "$1")
  for source; do
    made=$(made_of "$source")
    compile "$source"
    shift
    set -- "$@" "$object"
  done
  if cat "$@" | grep -q openblas_set; then libraries=-lopenblas # cuda_cpu/blas.h calls it
  elif cat "$@" | grep -q 8cuda_cpu4blas; then libraries=-lblas; fi # of another package
  link=$(setting link | sed 's/\$program/"$@"/; s/\$output/"&"/; s/\$runtime/"&"/')
  eval "$link $GIVEN_CXXFLAGS $GIVEN_LDLIBS $libraries"
}

[ -n "$GIVEN_FILE" ] || fail 'make cpu needs FILE=, a CUDA source: make cpu FILE=hw.cu'
[ -z "$asan" ] || [ -z "$traced" ] || fail 'make cpu: ASAN=1 goes with neither RACES=1 nor STATS=1'
compile="$(setting compile) ${STD:+-std=$STD} -DCUDA_CPU_ELSEWHERE -isystem '$folder/toolkit'"
plain=$(setting plain) libraries= color=
[ ! -t 2 ] || color=-fdiagnostics-color
# Thrust of CUDA's toolkit, without the other headers there.
for toolkit in "${CUDA_HOME:-/usr/local/cuda}/include/cccl" "${CUDA_HOME:-/usr/local/cuda}/include"; do
  [ -d "$toolkit/thrust" ] && [ ! -e "$folder/toolkit/nv" ] || continue
  mkdir -p "$folder/toolkit"
  for part in thrust cub cuda nv; do ln -s "$toolkit/$part" "$folder/toolkit/" 2>/dev/null || :; done
done
# What __CUDA_ARCH__ is in kernels: 900 for sm_90.
case ${GPUKIT_CPU_DEVICE-} in sm_[0-9]*) arch=-DCUDA_CPU_ARCH=${GPUKIT_CPU_DEVICE#sm_}0 ;; *) arch= ;; esac
[ -z "${V-}" ] || set -x

# A name may have spaces in it: a list is what has a word that is a file.
is_list=
set -f
if ! [ -f "$GIVEN_FILE" ]; then
  for word in $GIVEN_FILE; do ! [ -f "$word" ] || is_list=yes; done
fi
if [ "$is_list" ]; then program $GIVEN_FILE; else program "$GIVEN_FILE"; fi

[ -z "${STATS-}" ] || export GPUKIT_CPU_STATS="$STATS"
export GPUKIT_CPU_LEAKS="${GPUKIT_CPU_LEAKS-1}"
case $output in /*) ;; *) output=$here/$output ;; esac
cd "$place"
status=0
"$output" "$@" || status=$?
# 134, 135, 139: SIGABRT, SIGBUS, SIGSEGV. Most aborts say why: a failed check, an assertion, an exception.
case $status$asan in
134) echo 'make cpu: it was aborted; if the heap is corrupt, ASAN=1 names the first wrong access, with its line' >&2 ;;
135 | 139) echo 'make cpu: it has crashed: with ASAN=1 the first wrong access is named, with its line' >&2 ;;
esac
exit "$status"
