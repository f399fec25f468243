#!/bin/sh
# Which lines of gpukit.cuh the tests run:  coverage.sh FOLDER BUILD PROGRAM...
#
# BUILD is cpu, or the target of programs for a GPU:
#
#   cpu      built with --coverage. A line counts as run if any program runs it in any instance of its template.
#   sm_90    and so on: built with -lineinfo. A line of device code counts as run if a kernel instance that a program
#            launches has the line in its line table. The kernels of an older target are run on a newer GPU in its
#            machine code: ARCH='-gencode arch=compute_80,code=sm_90' makes it from compute_80's PTX, and is called
#            compute_80 here. PTX that the driver compiles has no line tables.
#
# Lines that no test instantiates are not counted, and those for a GPU alone (inline PTX, __CUDA_ARCH__) only on a GPU.
# The report is about all builds together, so that a line for some targets counts where it is compiled. The results of
# each program stay in FOLDER/BUILD as long as gpukit.cuh is the same, and may come from another machine:
#
#   NAME.lines      of the CPU: `LINE RAN cpu`, where RAN is 0 or 1
#   NAME.launched   of a GPU: the mangled names of the launched instances, by tests/tools/launches.cpp
#   NAME.tables     of a GPU: `INSTANCE LINE...` for each instance in the program, by cuobjdump and readelf
#
# It fails if a program does, if the CPU runs less than 95 % of its lines, or if tests/tools/not_launched.txt does not
# have what no launched instance has in the builds that the list is about.
set -u
export LC_ALL=C
mkdir -p "$1" || exit 1
folder=$(cd "$1" && pwd) build=$2 status=0
results=$folder/$build
shift 2
# Line numbers of another header say nothing.
for each in "$folder"/*/gpukit.cuh; do cmp -s gpukit.cuh "$each" || rm -rf "${each%/*}"; done
mkdir -p "$results" && cp gpukit.cuh "$results" || exit 1

# on_cpu NAME PROGRAM
on_cpu() {
  rm -f "$folder/$1.gcda" "$folder/$1-"*.gcda
  "$2" >"$results/$1.log" 2>&1 </dev/null || {
    echo "$1 fails:"
    tail -n 20 "$results/$1.log"
    exit 1
  }
  # Compilers name these files in one of two ways.
  (cd "$folder" && for data in "$1.gcda" "$1-"*.gcda; do
    [ ! -f "$data" ] || ${GCOV:-gcov} -t "$data"
  done) 2>/dev/null | awk -F: '
    / 0:Source:/ { here = $0 ~ /(^|\/|:)gpukit\.cuh$/ }
    here && NF > 2 {
      gsub(/ /, "", $1)
      number = $2 + 0
      if (number && $1 != "-" && $1 != "") print number, ($1 ~ /^[#=]/ ? 0 : 1), "cpu"
    }' >"$results/$1.lines"
}

# hook PROGRAM: builds what records launches, by the compiler of the program
hook() {
  nvcc=$(sed -n 's/^plain //p' "${1%/*}/flags")
  toolkit=$(command -v "${nvcc%% *}")
  toolkit=${toolkit%/bin/nvcc} where=
  PATH=$PATH:$toolkit/bin
  for tool in cuobjdump readelf; do
    command -v $tool >/dev/null || { echo "coverage on a GPU needs $tool, of CUDA's toolkit or binutils" && return 1; }
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
  [ -s "$results/$1.tables" ] || [ ! -s "$results/$1.launched" ] ||
    { echo "$1 has no line tables: ARCH=$build has no machine code" && status=1; }
}

# tables CUBIN: the sequences of its line table are those of its kernels, by the symbols that relocations put into them.
# Opcode 144 is nvcc's own: the next row is of an inlined function, and the call has a row, too.
tables() {
  {
    # OFFSET INFO TYPE VALUE NAME[ + ADDEND]: before sm_90 there are no addends, and the order is another
    readelf -rW "$1" | awk '
      /^Relocation section/ { relocations = /\.debug_line/ }
      relocations && /^[0-9a-f]+ / { sub(/ \+ [0-9a-f]+$/, ""); print $1, $NF }' | sort
    readelf -wl "$1"
  } 2>/dev/null | awk '
    /^Raw dump/ { all = 1 }
    !all { kernels[++count] = $2 }
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

case $build in
cpu) on=on_cpu ;;
*) on=on_gpu && hook "$1" || exit 1 ;;
esac
for program in "$@"; do $on "${program##*/}" "$program"; done

builds=$(cd "$folder" && ls -d -- */gpukit.cuh | sed 's,/.*,,; /^cpu$/d' | xargs)
{
  cat "$folder"/cpu/*.lines
  for tables in "$folder"/*/*.tables; do
    awk '
      FILENAME ~ /launched$/ { launched[$1]; next }
      { for (i = 2; i <= NF; i++) print $i, ($1 in launched), "gpu" }' "${tables%.tables}.launched" "$tables"
  done
} 2>/dev/null | sort -u >"$folder/lines"

awk -v builds="$builds" '
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
  FILENAME ~ /txt$/ && sub(/^builds +/, "") { list_is_about = $0; next }
  FILENAME ~ /txt$/ { if (/^[^#]/) { listed[$1] = $2; reason[$1] = $0 }; next }
  /^ \* [0-9]+\. [A-Z][A-Z]/ { # the heading of a section
    title[++sections] = $2 " " tolower($3)
    sub(/[^a-z]+$/, "", title[sections])
  }
  # The function or type that a line is in: the last one that begins in the first column.
  head != "" || (/^[a-z_A-Z]/ && !/^(namespace|extern|static_assert|typedef|using) /) {
    text = head $0
    while (sub(/template <[^<>]*(<[^<>]*>[^<>]*)*> ?/, "", text));
    gsub(/__launch_bounds__\([^()]*(\([^()]*\))*[^()]*\)/, "", text)
    if (match(text, /^(struct|union|enum|class) +[a-z_A-Z0-9]+/) || match(text, /[a-z_A-Z0-9]+\(/)) {
      unit = substr(text, RSTART, RLENGTH)
      gsub(/.* |\(/, "", unit)
      head = ""
    } else
      head = /^__global__/ ? text : "" # the name is on the next line
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
    print "in no instance that a GPU launched, built for " builds ":"
    for (i = 1; i <= count; i++) {
      unit = units[i]
      if (lines[unit] == listed[unit]) { print reason[unit]; continue }
      printf "%s %d, not %d as listed:\n%s", unit, lines[unit], listed[unit], text_of[unit]
      differs = 1
    }
    for (unit in listed) if (!lines[unit]) { print unit " is listed, but is not among them"; differs = 1 }
    if (differs && builds != list_is_about) print "The list is about builds for " list_is_about " together."
    exit bad || (differs && builds == list_is_about)
  }' "$folder/lines" tests/tools/not_launched.txt gpukit.cuh >"$folder/report" || status=1
cat "$folder/report"
exit $status
