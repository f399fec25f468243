#!/bin/sh
# Builds the cases of cases.txt, by the commands in BUILD/compile/flags, which the Makefile writes:
#
#   drop_in.sh object OUTPUT                   OUTPUT is BUILD/compile/FILE@WAY+WAY.COMPILER.o
#   drop_in.sh link OUTPUT FLAG... OBJECT...   OUTPUT is BUILD/compile/CASE.COMPILER, or a shared library
#   drop_in.sh refused CASE COMPILER           succeeds if the case fails, and says what it has to say
#   drop_in.sh lto                             links a program with -dlto, and runs it
#   drop_in.sh clang_cuda                      the same by clang++ as CUDA's compiler
#   drop_in.sh clang_cpu                       whether clang++ has warnings about tests, on the stand-in
#
# To see how: sh -x tests/compile/drop_in.sh object build/compile/part@impl.nvcc.o
set -euf
export LC_ALL=C
. tests/functions.sh
folder=$BUILD/compile

# nvcc_of COMPILER: the command that is nvcc, or, for nvcc2, nvcc3, ..., the one that NVCCS= names in its place
nvcc_of() {
  number=${1#nvcc}
  [ -n "$number" ] || { setting nvcc_is && return; }
  setting nvccs | cut -d ' ' -f $((number - 1))
}

# flags_of WAYS COMPILER
flags_of() {
  for way in $(echo "$1" | tr + ' '); do
    case $way:$2 in
    [A-Z_]*-*:*) echo "-D${way%-*}=${way##*-}" ;;
    [A-Z_]*:*) echo "-D$way" ;;
    [12][0-9]:*) echo "-std=c++$way" ;;
    sm_*:cpu) echo "-D__CUDA_ARCH_LIST__=${way#sm_}0" ;;
    sm_*a:*) echo "-gencode arch=compute_${way#sm_},code=$way" ;;
    sm_*:*) echo "-arch=$way" ;;
    compute_*:*) echo "-gencode arch=$way,code=$way" ;;
    clang:*) ;;
    *) awk -v way="$way" -v compiler="${2%%[0-9]*}" '$1 == "way" && $2 == way {
         known = 1
         if ($3 == compiler || $3 == "both") for (i = 4; i <= NF; i++) print $i
       }
       END { if (!known) { print "cases.txt has no way " way | "cat >&2"; exit 1 } }' tests/compile/cases.txt ||
      return 1 ;;
    esac
  done
}

# nvcc_flags FILE@WAYS FLAGS: for nvcc and a .cu file.
# Without a GPU what names no target is left as PTX, since ptxas takes a third of the time; but nvlink wants code, and so
# does -dlto. Less effort takes half the time, and is enough for what only has to compile: PTX need not be short for
# ptxas, either. C++17 is as users have it, and so is what a GPU runs or nvlink links, and what -G makes, as functions
# that stay functions need more registers.
nvcc_flags() {
  effort='-Xcicc -O1 -Xptxas -O0' target=
  case "$1 $2 " in
  *' -arch='* | *' -gencode '*) ;;
  part@*' -rdc=true '* | *' -dlto '* | *' -G '*) target=$(setting arch) ;;
  *) target=$(setting arch) && [ "$(setting backend):${1%@*}" = gpu:part ] || target=$(setting ptx) ;;
  esac
  case " $target $2 " in *' -arch=compute_'* | *'code=compute_'*) effort='-Xcicc -O0 -Xptxas -O0' ;; esac
  case "$1 $2 " in *' -std=c++17 '* | part@*' -rdc=true '* | *' -G '*) effort= ;; esac
  case $(setting backend):$1 in
  *:all@*) ;;
  gpu:*) effort= ;;
  esac
  case " $2 " in *' -std='*) ;; *) echo '-std=c++17' ;; esac
  echo "$target $effort"
}

# command_of FILE@WAYS.COMPILER: compiles it, but for -o
command_of() {
  file=${1%%@*} ways=${1#*@} compiler=${1##*.}
  ways=${ways%%.*} source=
  for suffix in cu cpp c; do [ ! -f "tests/compile/$file.$suffix" ] || source=tests/compile/$file.$suffix; done
  [ -n "$source" ] || { echo "tests/compile has no source of $file" >&2 && return 1; }
  flags=$(flags_of "$ways" "$compiler") || return 1
  case +$ways+$compiler in *+merged+*nvcc*) # older ones have no such flag, and merge
    $(nvcc_of "$compiler") --help | grep -q static-global-template-stub ||
      flags=$(echo "$flags" | sed /-static-global-template-stub/d) ;;
  esac
  flags=$(echo "$flags" | tr '\n' ' ')
  case $compiler:$source in
  cpu:*.c) command="$(setting c) $(setting standin)" ;;
  cpu:*.cpp) command=$(setting cpu) ;;
  cpu:*) command="$(setting cpu) -x c++" ;;
  *:*.cu)
    command=$(setting nvcc)
    command="$(nvcc_of "$compiler") ${command#"$(setting nvcc_is)"} $(nvcc_flags "$file@$ways" "$flags" | tr '\n' ' ')"
    # Thrust and cooperative groups of CUDA 12 have warnings of their own.
    case $file:$compiler in libraries:nvcc?*) command=$(echo "$command" | sed 's/-Xcompiler=-Wall[^ ]*//') ;; esac
    ;;
  *) # nvcc itself tells where its headers are: the nvcc in the PATH may be a script that calls another
    toolkit=$($(nvcc_of "$compiler") --dryrun -x cu -c /dev/null -o /dev/null 2>&1 |
      sed -n 's/^.. INCLUDES="-I\([^"]*\)".*/\1/p')
    command="$(setting "${source##*.}") -isystem '$toolkit'"
    ;;
  esac
  case +$ways+ in *+clang+*) command="clang++${command#"$(setting cxx)"}" ;; esac
  # The host's compiler makes no object that is not linked. An object that runs on a GPU, or whose symbols are compared,
  # is compiled as users compile it; the typed functions of the C API take half a minute that way.
  case $(setting backend):$1 in
  *:all@*) command="$(echo "$command" | sed 's/ -O3 / -O0 /') -Xcompiler=-fsyntax-only" ;;
  gpu:* | *:part@*merged* | *:part@static* | *:part@hidden*) ;;
  *) command=$(echo "$command" | sed 's/ -O3 / -O0 /') ;;
  esac
  case " $flags " in *' -cubin '*) ;; *) command="$command -c" ;; esac
  echo "$command $flags $source"
}

link() { # link OUTPUT COMPILER FLAG... OBJECT...
  output=$1 compiler=$2
  shift 2
  command=$(setting link)
  [ "$compiler" = cpu ] || command="$(nvcc_of "$compiler") -Werror all-warnings $(setting arch)"
  shared=
  case $output in *.so) shared=-shared ;; esac
  run "$command $shared $* $([ "$compiler" != cpu ] || echo -ldl) -o $output"
}

# object OUTPUT: what nvcc says of it stays in OUTPUT.log, and the PTX of registers.cu in OUTPUT.kept
object() {
  name=${1##*/}
  name=${name%.o}
  command=$(command_of "$name")
  case $name in registers@*) mkdir -p "$1.kept" && command="$command --keep --keep-dir $1.kept" ;; esac
  run "$command -MD -MP -MF $1.d -MT $1 -o $1" >"$1.log" 2>&1 || { cat "$1.log" && return 1; }
  touch "$1"
}

action=$1
shift
case $action in
object)
  printf '  %-8s %s\n' "$(command=${1%.o} && echo "${command##*.}")" "$1"
  object "$1"
  spent "$1"
  ;;
link)
  output=$1
  shift
  compiler=${output%.so}
  link "$output" "${compiler##*.}" "$@"
  ;;
refused)
  row=$(awk -v name="$1" '$1 == "refused" && $2 == name' tests/compile/cases.txt)
  IFS=' ' read -r _ _ _ objects lines text <<END
$row
END
  case $lines:$2 in -:* | nvcc:*:cpu) lines=1000000 ;; esac
  lines=${lines#nvcc:} output=$folder/refused_$1.$2
  # CUDA 12.0 has two lines for each template, and names the line of gpukit.cuh, or the types, instead of a declaration.
  release=
  case $2 in nvcc*) release=$("$(nvcc_of "$2")" --version) ;; esac
  case $release in
  *'release 12.0,'*)
    lines=$((2 * lines))
    case $1 in
    extern_c) text='gpukit.cuh([0-9]*): error: this declaration may not have extern' ;;
    mistake) text=gk_device_info ;;
    esac
    ;;
  esac
  case $objects in
  *,*)
    files=$(echo "$objects" | tr , '\n' | sed "s|.*|$folder/&.$2.o|")
    [ "$2" != cpu ] || files="$files $BUILD/fast/runtime.o"
    said=$(link "$output" "$2" $files 2>&1) && failed= || failed=1
    ;;
  *) said=$(run "$(command_of "$objects.$2") -o $output" 2>&1) && failed= || failed=1 ;;
  esac
  wrong=
  [ -n "$failed" ] || wrong='it did not fail'
  printf '%s\n' "$said" | grep -q -e "$text" || wrong="it does not say '$text'"
  [ "$(printf '%s\n' "$said" | wc -l)" -le "$lines" ] || wrong="it takes more than $lines lines"
  case $text in
  *needs_GPUKIT*) ;; # a missing implementation is named by nothing but a message about that
  *) ! printf '%s\n' "$said" | grep -q needs_GPUKIT_IMPLEMENTATION || wrong='it reads like a missing implementation' ;;
  esac
  [ -z "$wrong" ] || { printf '%s, but:\n%s\n' "$wrong" "$said" && exit 1; }
  ;;
lto)
  echo 'int main() { return 0; }' >"$folder/lto.cu"
  "$(setting nvcc_is)" -rdc=true -dlto "$folder/lto.cu" -o "$folder/lto" 2>/dev/null ||
    { echo 'this toolkit links no program with -dlto' && exit 77; } # one without all of its parts
  files=
  for name in parts@ part@lto+impl part@lto; do
    object "$folder/$name.nvcc.o"
    files="$files $folder/$name.nvcc.o"
  done
  link "$folder/lto.nvcc" nvcc -rdc=true -dlto $files
  [ "$(setting backend)" = cpu ] || "$folder/lto.nvcc" 2
  ;;
clang_cuda)
  clang=$(setting clang_cuda)
  echo '__global__ void k() {} int main() { k<<<1, 1>>>(); }' >"$folder/clang.cu"
  $clang -c "$folder/clang.cu" -o "$folder/clang.o" 2>"$folder/clang.log" ||
    { head -n 1 "$folder/clang.log" && echo 'no clang++ here compiles CUDA with this toolkit' && exit 77; }
  for file in all bare twice; do $clang -c "tests/compile/$file.cu" -o "$folder/clang.$file.o"; done
  ;;
clang_cpu)
  command -v clang++ >/dev/null || { echo 'clang++ is not here' && exit 77; }
  for file in host/test_device arrays/test_rows matmul/test_simt; do $(setting clang_cpu) "tests/$file.cu"; done
  ;;
esac
