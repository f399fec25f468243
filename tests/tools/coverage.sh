#!/bin/sh
# Which lines of gpukit.cuh the tests run:  coverage.sh FOLDER [PROGRAM...]
#
# A program in a folder gpu/ is built with -lineinfo and runs on a GPU. A line of device code counts as run there if a
# kernel instance that the program launches has the line in its line table. All others are built with --coverage and run
# on the CPU. A line counts as run there if any program runs it in any instance of its template. Lines that no test
# instantiates are not counted, and those for a GPU alone (inline PTX, __CUDA_ARCH__) only on a GPU.
#
# Results stay in FOLDER until the next run of the same kind, so that the part for a GPU can be measured elsewhere:
#
#   NAME.lines      of the CPU: `LINE RAN cpu`, where RAN is 0 or 1
#   NAME.launched   of a GPU: the mangled names of the launched instances, by tests/tools/launches.cpp
#   NAME.tables     of a GPU: `INSTANCE LINE...` for each instance in the program, by cuobjdump and readelf
#
# It fails if a program does, if the CPU runs less than 95 % of its lines, or if tests/tools/not_launched.txt does not
# have what no launched instance has.
set -u
export LC_ALL=C
mkdir -p "$1" || exit 1
results=$(cd "$1" && pwd) status=0
shift

# on_cpu NAME PROGRAM
on_cpu() {
  rm -f "$results/$1.gcda" "$results/$1-"*.gcda
  "$2" >"$results/$1.log" 2>&1 </dev/null || {
    echo "$1 fails:"
    tail -n 20 "$results/$1.log"
    exit 1
  }
  # Compilers name these files in one of two ways.
  (cd "$results" && for data in "$1.gcda" "$1-"*.gcda; do
    [ ! -f "$data" ] || ${GCOV:-gcov} -t "$data"
  done) 2>/dev/null | awk -F: '
    / 0:Source:/ { here = $0 ~ /(^|\/|:)gpukit\.cuh$/ }
    here && NF > 2 {
      gsub(/ /, "", $1)
      number = $2 + 0
      if (number && $1 != "-" && $1 != "") print number, ($1 ~ /^[#=]/ ? 0 : 1), "cpu"
    }' >"$results/$1.lines"
}

# hook FOLDER: builds what records launches, by the compiler of FOLDER's programs
hook() {
  nvcc=$(sed -n 's/^plain //p' "$1/flags")
  toolkit=$(command -v "${nvcc%% *}")
  toolkit=${toolkit%/bin/nvcc} where=
  PATH=$PATH:$toolkit/bin
  for tool in cuobjdump readelf; do
    command -v $tool >/dev/null || { echo "coverage on a GPU needs $tool" && return 1; }
  done
  for lib in "$toolkit/lib64" "$toolkit/extras/CUPTI/lib64"; do where="$where -L$lib -Xlinker -rpath=$lib"; done
  # shellcheck disable=SC2086 # words
  $nvcc -shared -Xcompiler -fPIC -I "$toolkit/extras/CUPTI/include" tests/tools/launches.cpp $where -lcupti \
    -o "$results/launches.so"
}

# on_gpu NAME PROGRAM: the launches of a test that fails count, too
on_gpu() {
  : >"$results/$1.launched"
  LAUNCHES=$results/$1.launched CUDA_INJECTION64_PATH=$results/launches.so \
    "$2" >"$results/$1.gpu.log" 2>&1 </dev/null || {
    echo "$1 fails:"
    tail -n 20 "$results/$1.gpu.log"
    status=1
  }
  program=$(cd "${2%/*}" && pwd)/$1
  rm -rf "$results/cubins"
  mkdir "$results/cubins"
  (cd "$results/cubins" && cuobjdump -xelf all "$program" >/dev/null 2>&1)
  for cubin in "$results/cubins"/*; do tables "$cubin"; done >"$results/$1.tables"
}

# tables CUBIN: the sequences of its line table are those of its kernels, by the symbols that their addresses name.
# Opcode 144 is nvcc's own: the next row is of an inlined function, and the call has a row, too.
tables() {
  { readelf -rW "$1"; readelf -wl "$1"; } 2>/dev/null | awk '
    /^Relocation section/ { relocations = /\.debug_line/ }
    relocations && /^[0-9a-f]+ / { kernels[++count] = $(NF - 2) }
    /^Raw dump/ { relocations = 0 }
    /The File Name Table/ { names = 1 }
    / Line Number Statements/ { names = 0 }
    names && $1 ~ /^[0-9]+$/ { files[$1] = $NF }
    /set Address to/ { if (nth) print line_table; line_table = kernels[++nth]; file = number = 1 }
    / Set File Name to entry / { for (i = 1; $i != "entry"; i++); file = $(i + 1) }
    / Line by -?[0-9]+ to / { number = $NF }
    /\] +(Copy|Special opcode)/ && files[file] == "gpukit.cuh" && !seen[nth, number]++ {
      line_table = line_table " " number
    }
    END { if (nth) print line_table }'
}

before=
for program in "$@"; do
  name=${program##*/} kind=cpu
  case $program in */gpu/*) kind=gpu ;; esac
  case $before:$kind in
  gpu:gpu | cpu:cpu) ;;
  *:gpu) rm -f "$results"/*.launched "$results"/*.tables && hook "${program%/*}" || exit 1 ;;
  *:cpu) rm -f "$results"/*.lines ;;
  esac
  before=$kind
  cp gpukit.cuh "$results/$kind.cuh"
  case $kind in
  cpu) on_cpu "$name" "$program" ;;
  gpu) on_gpu "$name" "$program" ;;
  esac
done

# Line numbers of another header say nothing.
{
  ! cmp -s gpukit.cuh "$results/cpu.cuh" || cat "$results"/*.lines
  ! cmp -s gpukit.cuh "$results/gpu.cuh" || for tables in "$results"/*.tables; do
    awk '
      FILENAME ~ /launched$/ { launched[$1]; next }
      { for (i = 2; i <= NF; i++) print $i, ($1 in launched), "gpu" }' "${tables%.tables}.launched" "$tables"
  done
} | sort -u >"$results/lines"

awk '
  # add WHERE NUMBER: counts a line of the header in its section and in all; returns whether it is one that did not run
  function add(where, number) {
    if (!((where, number) in ran)) return 0
    all[where, sections]++
    all[where]++
    good[where, sections] += ran[where, number]
    good[where] += ran[where, number]
    return !ran[where, number]
  }
  function columns(good, all) { return all ? sprintf("%7d of %5d lines  %5.1f %%", good, all, 100 * good / all) : "" }
  function row(title, cpu, gpu,    line) {
    line = sprintf("%-24s%31s%31s", title, cpu, gpu)
    sub(/ +$/, "", line)
    if (cpu gpu != "") print line
  }
  FILENAME ~ /lines$/ { if ($2 >= ran[$3, $1]) ran[$3, $1] = $2; next }
  FILENAME ~ /txt$/ { if (/^[^#]/) { listed[$1] = $2; reason[$1] = $0 }; next }
  /^ \* [0-9]+\. [A-Z][A-Z]/ { # the heading of a section
    title[++sections] = $2 " " tolower($3)
    sub(/[^a-z]+$/, "", title[sections])
  }
  # The function or type that a line is in: the last one that begins in the first column.
  /^[a-z_A-Z]/ && !/^(namespace|extern|static_assert|typedef|using) / {
    text = $0
    while (sub(/template <[^<>]*(<[^<>]*>[^<>]*)*> ?/, "", text));
    gsub(/__launch_bounds__\([^()]*(\([^()]*\))*[^()]*\)/, "", text)
    if (match(text, /^(struct|union|enum|class) +[a-z_A-Z0-9]+/) || match(text, /[a-z_A-Z0-9]+\(/)) {
      unit = substr(text, RSTART, RLENGTH)
      gsub(/.* |\(/, "", unit)
    }
  }
  {
    line = sprintf("%6d  %s\n", FNR, $0)
    if (add("cpu", FNR)) not_run = not_run line
    if (add("gpu", FNR)) {
      if (!lines[unit]++) units[++count] = unit
      text_of[unit] = text_of[unit] line
    }
  }
  END {
    row("", "on the CPU       ", all["gpu"] ? "on a GPU       " : "")
    for (i = 1; i <= sections; i++)
      row(title[i], columns(good["cpu", i], all["cpu", i]), columns(good["gpu", i], all["gpu", i]))
    row("gpukit.cuh", columns(good["cpu"], all["cpu"]), columns(good["gpu"], all["gpu"]))
    if (!all["cpu"] && !all["gpu"]) { print "no lines: was nothing built with --coverage or -lineinfo?"; exit 1 }
    if (not_run != "") printf "not run on the CPU:\n%s", not_run
    if (all["cpu"] && good["cpu"] < 0.95 * all["cpu"]) bad = 1
    if (!all["gpu"]) exit bad
    if (count) print "in no instance that was launched on the GPU:"
    for (i = 1; i <= count; i++) {
      unit = units[i]
      if (lines[unit] == listed[unit]) { print reason[unit]; continue }
      printf "%s %d, not %d as listed:\n%s", unit, lines[unit], listed[unit], text_of[unit]
      bad = 1
    }
    for (unit in listed) if (!lines[unit]) { print unit " is listed, but was launched"; bad = 1 }
    exit bad
  }' "$results/lines" tests/tools/not_launched.txt gpukit.cuh >"$results/report" || status=1
cat "$results/report"
exit $status
