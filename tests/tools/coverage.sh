#!/bin/sh
# Which lines of gpukit.cuh the tests run on the CPU, from builds with --coverage: coverage.sh FOLDER [PROGRAM...]. A line
# counts as run if any program ran it in any instance of its template. Lines for a GPU alone (inline PTX, __CUDA_ARCH__)
# are not compiled here, and not counted; neither is what no test instantiates.
set -u
folder=$1
shift
: >"$folder/lines"
for program in "$@"; do
  name=$(basename "$program")
  rm -f "$folder/$name.gcda" "$folder/$name-"*.gcda
  "$program" >"$folder/$name.log" 2>&1 </dev/null || {
    echo "$name fails:"
    tail -n 20 "$folder/$name.log"
    exit 1
  }
  # Compilers name these files in one of two ways.
  (cd "$folder" && for data in "$name.gcda" "$name-"*.gcda; do
    [ ! -f "$data" ] || ${GCOV:-gcov} -t "$data"
  done) >"$folder/gcov" 2>/dev/null
  awk -F: '
    / 0:Source:/ { here = $0 ~ /(^|\/|:)gpukit\.cuh$/ }
    here && NF > 2 {
      gsub(/ /, "", $1)
      number = $2 + 0
      if (number && $1 != "-" && $1 != "") print number, ($1 ~ /^[#=]/ ? 0 : 1)
    }' "$folder/gcov" >>"$folder/lines"
done
awk '
  NR == FNR { if (!($1 in ran) || $2 > ran[$1]) ran[$1] = $2; next }
  FNR in ran {
    section = ""
    for (i = 1; i <= sections; i++) if (FNR >= from[i]) section = title[i]
    all[section]++
    if (ran[FNR]) good[section]++
    else missed = missed sprintf("%6d  %s\n", FNR, $0)
  }
  /^ \* [0-9]+\. [A-Z ]+/ { # the heading of a section
    sections++
    from[sections] = FNR
    title[sections] = $2 " " tolower($3)
    sub(/[^a-z]+$/, "", title[sections])
  }
  END {
    for (i = 1; i <= sections; i++) {
      s = title[i]
      if (!all[s]) continue
      printf "%-24s %5d of %5d lines  %5.1f %%\n", s, good[s], all[s], 100 * good[s] / all[s]
      good_sum += good[s]
      sum += all[s]
    }
    if (!sum) { print "no lines: was nothing built with --coverage?"; exit 1 }
    percent = 100 * good_sum / sum
    printf "%-24s %5d of %5d lines  %5.1f %%\n", "gpukit.cuh", good_sum, sum, percent
    if (missed != "") printf "not run:\n%s", missed
    exit percent < 95
  }' "$folder/lines" gpukit.cuh >"$folder/report"
status=$?
cat "$folder/report"
exit $status
