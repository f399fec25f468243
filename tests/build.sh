#!/bin/sh
# Builds a program or an object:  build.sh OUTPUT SOURCE [RUNTIME.o] [products.o] [NEED...]
# To see how: sh -x tests/build.sh build/cpu/test_scan tests/arrays/test_scan.cu build/fast/runtime.o
#
# OUTPUT's folder is a configuration. Its file `flags`, which the Makefile writes, has the commands, one a line:
#
#   compile   compiles; it links, too, where there is no line for that
#   plain     compiles, by nvcc, programs that are plain CUDA as users have them
#   link      links $program and $runtime as $output
set -eu
. tests/functions.sh
output=$1 source=$2
shift 2
folder=${output%/*} program=$output.o runtime= once=
compile=$(setting compile) plain=$(setting plain) link=$(setting link)

# What a program needs of nvcc's toolkit. cuBLAS and NCCL are used where they can be linked.
libraries=
for need in "$@"; do
  case $need in
  */products.o) once=-DPRODUCTS_ONCE program="$program $need" ;;
  *.o) runtime=$need ;;
  rdc) libraries='-rdc=true -lcudadevrt' ;;
  lambda) libraries=--extended-lambda ;;
  ptx75) libraries='-gencode arch=compute_75,code=compute_75' ;;
  cublas)
    if run "$plain -shared -x cu /dev/null -o $output.so -lcublas" 2>/dev/null; then
      libraries='-DLESSON_CUBLAS -lcublas'
    fi
    ;;
  nccl)
    if printf '#include <nccl.h>\nint main() { int v; return ncclGetVersion(&v); }\n' |
      run "$plain -x cu - -o $output.nccl -lnccl" 2>/dev/null; then
      libraries='-DLESSON_NCCL -DTEST_NCCL -lnccl'
    else
      echo "$output is built without NCCL: no nccl.h, or nothing to link"
    fi
    ;;
  esac
done

command=$compile
case $output:$source in
*/runtime.o:*) command="$compile -include cuda_runtime.h -x c++" source=/dev/null ;;
*/products.o:*) once='-DPRODUCTS_ONCE -DCUDA_CPU_ELSEWHERE' ;;
*:tests/standin/programs/* | *:tests/standin/mistakes/* | *:tests/lessons/prototypes/* | *:examples/[0-9]*)
  if [ -n "$runtime" ]; then # g++ and clang++ cannot parse <<<>>>
    run "${folder%/*}/host/cuda_to_cpp $source $output.cpp"
    source=$output.cpp
  elif [ "${source#tests/standin/}" != "$source" ] && [ -n "$plain" ]; then
    command=$plain
  fi
  ;;
*/built/*) libraries=$(echo "$libraries" | sed 's/ -l[a-z]*//g') ;;
esac
case $output:$source in
*/built/*:tests/*/test_*) command="$command -cuda" ;; # the stand-in's build has the host compiler's warnings
*/built/*) command="$command -c" ;;
*.o:*) command="$command -c" link= ;;
esac

case $source in tests/*) command="$command -I tests/support" ;; esac
[ "${folder%/*}" = build ] || command="$command -DRESULTS_FOLDER=\\\"${folder%/*}\\\"" # where lessons draw

made=$output
[ -z "$link" ] || made=$output.o
printf '  %-8s %s\n' "$(basename "${command%% *}")" "$output"
command="$command $once ${link:+-c} ${runtime:+-DCUDA_CPU_ELSEWHERE} -MD -MP -MF $output.d -MT $output"
run "$command $source $libraries -o $made"
[ -z "$link" ] || run "$link"
touch "$output" # the host's compiler makes no object of what only has to compile
spent "$output"
