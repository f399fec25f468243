#!/bin/bash
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
nvcc=${NVCC:-nvcc}
runs=${RUNS:-5}
here=tests/bench/compile
command -v "$nvcc" >/dev/null || { echo 'make bench-compile needs nvcc' >&2 && exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each row: a file, an architecture and what it is.
rows=(
  'bare sm_80 a bare .cu'
  'included sm_80 the header alone'
  'implementation sm_80 ... with the implementation'
  'reduce sm_80 one gk_reduce_sum of floats'
  'scan sm_80 one gk_scan_exclusive of floats'
  'matmul sm_80 gk_matmul of floats'
  'once sm_80 ... compiled once, in another file'
  'matmul_ex sm_80 gk_matmul_ex of floats'
  'matmul_tf32 sm_80 ... for one precision, tf32'
  'c_api sm_80 GPUKIT_C_API'
  'cub sm_80 CUB: reduce and scan of floats'
  'cub_parts sm_80 ... by their own headers'
  'bare sm_90a a bare .cu'
  'matmul sm_90a gk_matmul of floats'
  'matmul_ex sm_90a gk_matmul_ex of floats'
  'matmul_tf32 sm_90a ... for one precision, tf32'
  'cub sm_90a CUB: reduce and scan of floats'
)

wanted() { [ -z "${ONLY:-}" ] || [[ " bare cub $ONLY " == *" $1 "* ]]; }

TIMEFORMAT='%R %U %S'
for ((run = 1; run <= runs; run++)); do
  for row in "${rows[@]}"; do
    read -r file target _ <<<"$row"
    wanted "$file" || continue
    if [ -t 2 ]; then printf '\r%d/%d %-30s' "$run" "$runs" "$file $target" >&2; fi
    { time "$nvcc" -O3 -std=c++17 -gencode "arch=compute_${target#sm_},code=$target" -I . ${NVCCFLAGS:-} -c \
      "$here/$file.cu" -o "$work/$file.o" 2>"$work/errors"; } 2>"$work/time" || { cat "$work/errors" >&2; exit 1; }
    read -r wall user system <"$work/time"
    echo "$wall" >>"$work/$file.$target.wall"
    awk "BEGIN { print $user + $system }" >>"$work/$file.$target.cpu"
    wc -c <"$work/$file.o" >"$work/$file.$target.bytes"
  done
done
if [ -t 2 ]; then printf '\r%40s\r' '' >&2; fi

# median FILE TARGET KIND
median() {
  sort -g "$work/$1.$2.$3" | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

release=$("$nvcc" --version | sed -n 's/.*release \(.*\)/nvcc \1/p')
commit=${COMMIT:-$(git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)}
csv=${1:-/dev/null}
{
  echo "# compiler: $release"
  echo "# commit: $commit"
  echo "# runs: $runs"
  echo 'file,target,what,cpu_s,wall_s,object_bytes,over_cub'
} >"$csv"
echo "$release, medians of $runs, seconds"
printf '%-36s %-7s %10s %10s %10s %10s %10s\n' '' target processor 'over bare' 'over CUB' wall 'object KB'
for row in "${rows[@]}"; do
  read -r file target what <<<"$row"
  wanted "$file" || continue
  cpu=$(median "$file" "$target" cpu) wall=$(median "$file" "$target" wall)
  bytes=$(cat "$work/$file.$target.bytes")
  over_bare=$(awk "BEGIN { print $cpu - $(median bare "$target" cpu) }")
  over_cub=$(awk "BEGIN { print $cpu / $(median cub "$target" cpu) }")
  printf '%-36s %-7s %10.2f %10.2f %10.2f %10.2f %10.0f\n' "$what" "$target" "$cpu" "$over_bare" "$over_cub" "$wall" \
    "$((bytes / 1024))"
  printf '%s,%s,%s,%.3f,%.3f,%d,%.4f\n' "$file" "$target" "$what" "$cpu" "$wall" "$bytes" "$over_cub" >>"$csv"
done
