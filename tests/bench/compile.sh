#!/bin/bash
# How long nvcc takes for each file in tests/bench/compile, for sm_90: medians of ROUNDS rounds (5), in each of which
# every file has its turn; wall time, and the processor time of all of the compiler's passes, which other work on the
# machine disturbs less. NVCC, NVCCFLAGS: as in the Makefile. Run from the root of the repository.
set -eu
export LC_ALL=C # a point in the seconds
nvcc=${NVCC:-nvcc}
rounds=${ROUNDS:-5}
here=tests/bench/compile
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

files=(bare included called sums matmul cub cub_parts)
declare -A title=(
  [bare]='a bare .cu'
  [included]='gpukit included'
  [called]='... and f32 reduce and scan called'
  [sums]='the same, with the implementation'
  [matmul]='... and f32 matmul called'
  [cub]='<cub/cub.cuh>, f32 reduce and scan'
  [cub_parts]='the same from the two headers alone'
)

TIMEFORMAT='%R %U %S'
for ((round = 1; round <= rounds; round++)); do
  for file in "${files[@]}"; do
    if [ -t 2 ]; then printf '\r%d/%d %-20s' "$round" "$rounds" "$file" >&2; fi
    { time "$nvcc" -O3 -std=c++17 -arch=sm_90 -I . ${NVCCFLAGS:-} -c "$here/$file.cu" -o "$work/$file.o" \
      2>"$work/$file.errors"; } 2>"$work/time" || { cat "$work/$file.errors" >&2; exit 1; }
    read -r wall user system <"$work/time"
    echo "$wall" >>"$work/$file.wall"
    awk "BEGIN { print $user + $system }" >>"$work/$file.cpu"
  done
done
if [ -t 2 ]; then printf '\r%30s\r' '' >&2; fi

# median FILE KIND
median() {
  sort -g "$work/$1.$2" | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

"$nvcc" --version | sed -n 's/.*release \(.*\)/nvcc \1/p'
printf '%-40s %10s %10s %10s %10s\n' "medians of $rounds, seconds" wall 'over bare' processor 'over bare'
for file in "${files[@]}"; do
  printf '%-40s %10.2f %10.2f %10.2f %10.2f\n' "${title[$file]}" "$(median "$file" wall)" \
    "$(awk "BEGIN { print $(median "$file" wall) - $(median bare wall) }")" "$(median "$file" cpu)" \
    "$(awk "BEGIN { print $(median "$file" cpu) - $(median bare cpu) }")"
done
echo
# share FILE PEER KIND: what FILE takes over bare, in percent of what PEER takes over bare
share() {
  awk "BEGIN {
    printf \"%.1f\", 100 * ($(median "$1" "$3") - $(median bare "$3")) / ($(median "$2" "$3") - $(median bare "$3"))
  }"
}
for file in included called sums matmul; do
  for peer in cub cub_parts; do
    printf '%-40s %5s %% in wall time, %5s %% in processor time, of %s\n' "${title[$file]}" \
      "$(share "$file" "$peer" wall)" "$(share "$file" "$peer" cpu)" "${title[$peer]}"
  done
done
