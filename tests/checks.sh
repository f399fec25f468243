#!/bin/sh
# Writes the rules for make of all builds and checks in tests/checks.txt and tests/compile/cases.txt:
#
#   checks.sh BACKEND [NVCC...]     BACKEND is cpu or gpu; the first NVCC is nvcc in the tables, further ones nvcc2, ...
#
# The checks of a group are in the variable checks.test, checks.test-all or checks.test-targets; check/NAME runs one.
set -uf
export LC_ALL=C
IFS=',
 ' # lists in the tables have commas
backend=$1
shift
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for list in first.test first.all first.ports then.test then.all then.ports tests programs examples lessons covered; do
  : >"$work/$list"
done

wrong() {
  echo "$*" >&2
  exit 1
}
# rule TARGET PREREQUISITES RECIPE
rule() { printf '%s: %s\n\t%s\n' "$1" "$2" "$3"; }
# check GROUP NAME PREREQUISITES ACTION [ARGUMENTS]: ACTION is check.sh's. What takes longest goes first.
check() {
  case $2 in registers_* | all@sm_* | *.races | *.asan) echo "$2" >>"$work/first.$1" ;; *) echo "$2" >>"$work/then.$1" ;; esac
  rule "check/$2" "$3" "@tests/check.sh $4 $2${5:+ $5}"
}

# ---- programs --------------------------------------------------------------------------------------------------------

# build CONFIGURATION SOURCE: the rule of a program, unless it is there
build() {
  output=${2##*/} output=$1/${output%.*}
  case " $built " in *" $output "*) return ;; esac
  built="$built $output"
  runtime= # the configuration whose own part of the stand-in it has
  case $1 in
  cpu | fast | plain) runtime=fast ;;
  traced | checker) runtime=traced ;;
  counters) runtime=lesson ;; # as in make cpu STATS=1
  asan | lesson) runtime=$1 ;;
  esac
  [ -z "$runtime" ] || runtime="\$(BUILD)/$runtime/runtime.o \$(BUILD)/host/cuda_to_cpp"
  products= # the configurations that have more than two tests of products: see tests/support/once.h
  case $1 in cpu | traced | asan | built) ! grep -q '"once.h"' "$2" || products="\$(BUILD)/$1/products.o" ;; esac
  rule "\$(BUILD)/$output" "$2 \$(BUILD)/$1/flags $runtime $products" '$(build)'
}
built= smaller=GPUKIT_TEST_SLOWED=1

# way GROUP WAY[:SETTING]...: one way of the row's program
way() {
  way=${2%%:*} settings= configuration=$own where=cpu check=$name.${2%%:*} action=one command=
  case $2 in *:*) settings=$(echo "${2#*:}" | tr : ' ') ;; esac
  case $way in
  run) where=$backend check=$name ;;
  reversed) settings="$settings $smaller GPUKIT_CPU_SCHEDULE=reversed" ;;
  random) settings="$settings GPUKIT_CPU_SCHEDULE=random:1" ;;
  races) settings="$settings $smaller GPUKIT_CPU_SCHEDULE=random:1 TIMEOUT=900" configuration=traced ;;
  ptx | mixed) configuration=$way where=gpu ;;
  asan) settings="$settings $smaller" configuration=asan ;;
  built) configuration=built ;;
  *) wrong "tests/checks.txt: $source: there is no way $way" ;;
  esac
  case $kind in test | checker | counters) action=counts ;; lesson) command=tests/lessons/lesson.sh ;; esac
  build "$configuration" "$source"
  [ "$where" = "$backend" ] || return 0
  output="\$(BUILD)/$configuration/$name"
  case $way:$nvccs in
  built:) ;;
  built:*) check "$1" "$check" "$output" one ;;
  *) check "$1" "$check" "$output" "$action" "$settings $command $output" ;;
  esac
}

# row KIND SOURCE SECTIONS TEST ALL: the last two are lists of ways
row() {
  kind=$1 source=$2 name=${2##*/}
  name=${name%.*}
  case $kind in
  test) own=cpu ;;
  program) own=plain ;;
  example) own=fast ;;
  lesson | checker | counters) own=$kind ;;
  *) wrong "tests/checks.txt: $kind $source: there is no such kind" ;;
  esac
  [ -f "$source" ] || wrong "tests/checks.txt: there is no $source"
  case $kind in
  checker | counters) [ "$backend" = cpu ] || return 0 ;;
  *)
    [ "$backend" = cpu ] || own=gpu
    build gpu "$source"
    grep -qx "$name" "$work/${kind}s" || echo "$name" >>"$work/${kind}s"
    ;;
  esac
  [ "$3" = - ] || { build coverage "$source" && echo "$name" >>"$work/covered"; }
  for each in $4; do [ "$each" = - ] || way test "$each"; done
  for each in $5; do way all "$each"; done
}

# script NAME GROUP COMMAND...
script() {
  name=$1 group=$2 needed='$(BUILD)/compile/flags $(BUILD)/fuzz/flags' command=
  shift 2
  for word in "$@"; do
    case $word in
    build/*) word="\$(BUILD)/${word#build/}" needed="$needed $word" ;;
    example/*) word="\$(BUILD)/$examples_at/${word#example/}" needed="$needed $word" ;;
    *.cu)
      build "$programs_at" "$word"
      word=${word##*/} word="\$(BUILD)/$programs_at/${word%.cu}" needed="$needed $word"
      ;;
    esac
    command="$command $word"
  done
  case $name:$nvccs in
  *.nvcc:) absent=$((absent + 1)) ;;
  *) check "$group" "$name" "$needed" one "$command" ;;
  esac
}

# ---- the drop-in cases -----------------------------------------------------------------------------------------------

# case_by COMPILER GROUP: the row's case. $kind, $name, $objects and $rest are the row's.
case_by() {
  files= flags= parts=0
  for object in $objects; do
    case $object in part@* | product@*) parts=$((parts + 1)) ;; esac
    case $object in
    -*) flags="$flags $object" ;;
    *.so) files="$files \$(BUILD)/compile/${object%.so}.$1.so" ;;
    *) files="$files \$(BUILD)/compile/$object.$1.o" ;;
    esac
  done
  output="\$(BUILD)/compile/$name.$1"
  # The stand-in's own part is compiled once, but for one case.
  case $1:$kind:$name,$objects in
  cpu:linked:alone,*) ;;
  cpu:linked:* | cpu:refused:*,*,*) files="$files \$(BUILD)/fast/runtime.o" ;;
  esac
  case $kind in
  linked)
    rule "$output" "$files tests/compile/cases.txt" "@tests/compile/drop_in.sh link \$@$flags \$(filter %.o %.so,\$^)"
    # Without a GPU, that nvcc has linked it is the test.
    case $1:$backend in cpu:* | *:gpu) parts="$output $parts" ;; *) parts= ;; esac
    check "$2" "$name.$1" "$output" one "$parts"
    ;;
  refused) # a single object must not compile; several must not link
    case $objects in *,*) ;; *) files='$(BUILD)/compile/flags' ;; esac
    check "$2" "refused_$name.$1" "$files" one "tests/compile/drop_in.sh refused $name $1"
    ;;
  symbols) check "$2" "symbols_$name.$1" "$files" one "tests/compile/inspect.sh $rest $files" ;;
  whole)
    case $name in sm_90a+cubin+17) wgmma="tests/compile/inspect.sh overlapping $files" ;; *) wgmma= ;; esac
    [ "$1" = nvcc ] && suffix= || suffix=.$1
    check "$2" "all@$name$suffix" "$files" one "$wgmma"
    ;;
  *) wrong "tests/compile/cases.txt: $kind $name: there is no such kind" ;;
  esac
}

# unfit TARGETS: why nvcc, whose targets these are, cannot compile the row's case
unfit() {
  for way in $(echo "$objects" | tr '@+' ' '); do
    case $way:" $1 " in
    sm_*:*" ${way%a} "*) ;;
    sm_*) echo "this nvcc does not know $way" && return ;;
    every:*' sm_50 '*) echo 'this nvcc has targets that gpukit refuses' && return ;;
    esac
  done
}

# ---- the tables ------------------------------------------------------------------------------------------------------

nvccs= count=0 absent=0 examples_at=fast programs_at=plain
[ "$backend" = cpu ] || examples_at=gpu programs_at=gpu
for nvcc in "$@"; do
  count=$((count + 1)) id=nvcc$count
  [ $count -gt 1 ] || id=nvcc
  nvccs="$nvccs $id"
  "$nvcc" --list-gpu-arch 2>/dev/null | sed 's/compute_/sm_/' | tr '\n' ' ' >"$work/targets.$id"
done
echo '# Made by tests/checks.sh of tests/checks.txt and tests/compile/cases.txt.'
while IFS=' ' read -r kind source third fourth rest; do
  case $kind in
  '' | '#'*) ;;
  needs) for each in $source; do echo "\$(BUILD)/gpu/$each \$(BUILD)/built/$each: needs = $third"; done ;;
  build) for each in $third $fourth $rest; do build "$each" "$source"; done ;;
  script)
    set +f
    script "$source" "$third" $fourth $rest
    set -f
    ;;
  *)
    set +f
    for each in $source; do row "$kind" "$each" "$third" "$fourth" "$rest"; done
    set -f
    ;;
  esac
done <tests/checks.txt
while IFS=' ' read -r kind name compilers objects rest; do
  case $kind in '' | '#'* | way) continue ;; esac
  [ "$kind" != whole ] || objects=all@$name
  for compiler in $compilers; do
    group=test
    case $compiler in
    *++) group=ports compiler=${compiler%++} ;;
    *+) group=all compiler=${compiler%+} ;;
    esac
    case $compiler in
    cpu) case_by cpu $group; continue ;;
    nvcc) ;;
    *) wrong "tests/compile/cases.txt: $kind $name: there is no compiler $compiler" ;;
    esac
    [ -n "$nvccs" ] || absent=$((absent + 1))
    for id in $nvccs; do
      [ "$id" = nvcc ] || [ $group = ports ] || group=all
      reason=$(unfit "$(cat "$work/targets.$id")")
      if [ -z "$reason" ]; then case_by "$id" $group; else
        check $group "${kind}_$name.$id" '' skip "1 '$reason'"
      fi
    done
  done
done <tests/compile/cases.txt
[ $absent -eq 0 ] || check test nvcc '' skip "$absent 'nvcc is not here'"
[ $count -gt 1 ] || check all nvccs '' skip "1 'NVCCS= names no further nvcc'"

echo "checks.test :=" $(cat "$work/first.test" "$work/then.test")
echo "checks.test-all :=" $(cat "$work/first.all" "$work/first.test" "$work/then.test" "$work/then.all")
echo "checks.test-targets :=" $(cat "$work/first.ports" "$work/then.ports")
for list in tests programs examples lessons covered; do echo "$list :=" $(cat "$work/$list"); done
