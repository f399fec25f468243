#!/bin/sh
# How long nvcc takes for each file in tests/bench/compile, and how large the object is: -O3 -std=c++17, machine code of
# one architecture. The figure is the processor time of all of the compiler's passes, user and system, which other work
# on the machine disturbs less than wall time; the median of RUNS rounds (5), in each of which every file has its turn.
# The peer is a file with CUB's reduce and scan, compiled for the same architecture in the same rounds.
#
#   compile.sh [FILE.csv]     writes the rows there, too. NVCC, NVCCFLAGS: as in the Makefile; ONLY='scan matmul': only
#                             these files, beside the bare one and CUB's
# Run from the root of the repository.
set -eu
export LC_ALL=C # a point in the seconds
nvcc=${NVCC:-nvcc} runs=${RUNS:-5} only=${ONLY:-} csv=${1:-/dev/null}
command -v "$nvcc" >/dev/null || { echo 'make bench-compile needs nvcc' >&2 && exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A file, an architecture, and what it is.
while read -r file target what; do
  case " bare cub ${only:-$file} " in *" $file "*) echo "$file $target $what" >>"$work/rows" ;; esac
done <<'END'
bare sm_80 a bare .cu
included sm_80 the header alone
implementation sm_80 ... with the implementation
reduce sm_80 one gk_reduce_sum of floats
scan sm_80 one gk_scan_exclusive of floats
matmul sm_80 gk_matmul of floats
once sm_80 ... compiled once in another file
matmul_ex sm_80 gk_matmul_ex of floats
matmul_tf32 sm_80 ... for tf32 alone
c_api sm_80 GPUKIT_C_API
cub sm_80 CUB: reduce and scan of floats
cub_parts sm_80 ... by their own headers
bare sm_90a a bare .cu
matmul sm_90a gk_matmul of floats
matmul_ex sm_90a gk_matmul_ex of floats
matmul_tf32 sm_90a ... for tf32 alone
cub sm_90a CUB: reduce and scan of floats
END

# The shell's `times` has a second line for what it has run: user and system time, as 0m1.25s 0m0.10s.
run=1
while [ $run -le "$runs" ]; do
  while read -r file target _; do
    [ ! -t 2 ] || printf '\r%d/%d %-30s' $run "$runs" "$file $target" >&2
    (
      # shellcheck disable=SC2086 # flags are words
      "$nvcc" -O3 -std=c++17 -gencode "arch=compute_${target#sm_},code=$target" -I . ${NVCCFLAGS:-} -c \
        "tests/bench/compile/$file.cu" -o "$work/$file.o" >"$work/errors" 2>&1 || { cat "$work/errors" >&2 && exit 1; }
      times >"$work/times"
    )
    awk -F '[ms ]+' 'NR == 2 { print 60 * $1 + $2 + 60 * $3 + $4 }' "$work/times" >>"$work/$file.$target"
    wc -c <"$work/$file.o" >"$work/$file.$target.bytes"
  done <"$work/rows"
  run=$((run + 1))
done
[ ! -t 2 ] || printf '\r%40s\r' '' >&2

median() { sort -n "$work/$1.$2" | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
release=$("$nvcc" --version | sed -n 's/.*release \(.*\)/nvcc \1/p')
commit=${COMMIT:-$(git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)}
printf '# compiler: %s\n# commit: %s\n# runs: %s\nfile,target,what,cpu_s,object_bytes,over_cub\n' "$release" "$commit" \
  "$runs" >"$csv"
echo "$release, medians of $runs, seconds of processor time"
printf '%-36s %-7s %10s %10s %10s %10s\n' '' target seconds 'over bare' 'over CUB' 'object KB'
while read -r file target what; do
  echo "$file|$target|$what|$(median "$file" "$target")|$(cat "$work/$file.$target.bytes")|$(median bare "$target")|$(
    median cub "$target")"
done <"$work/rows" | awk -F '|' -v csv="$csv" '{
  printf "%-36s %-7s %10.2f %10.2f %10.2f %10.0f\n", $3, $2, $4, $4 - $6, $4 / $7, $5 / 1024
  printf "%s,%s,%s,%.3f,%d,%.4f\n", $1, $2, $3, $4, $5, $4 / $7 >>csv
}'
