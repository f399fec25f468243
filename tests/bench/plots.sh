#!/bin/sh
# Draws the charts of a CSV file that the bench wrote:  plots.sh FILE.csv FOLDER
# Each script in plots/ reads tables that are made here, so that it has nothing to filter.
set -eu
csv=$1
to=$2
export LC_ALL=C # points in numbers

command -v gnuplot >/dev/null || {
  echo 'make plots needs gnuplot; on Debian: apt-get install gnuplot-nox' >&2
  exit 1
}
[ -r "$csv" ] || {
  echo "make plots: there is no $csv; make bench BENCHFLAGS=--csv=FILE writes one, on a GPU" >&2
  exit 1
}
# The columns by number, as the awk programs below have them.
columns=group,what,type,size,n,mode,gpukit_us,peer,peer_us,ratio,noise,unit,gpukit_rate,ceiling,ceiling_us,check
grep -q "^$columns" "$csv" || {
  echo "make plots: $csv is not of this version of the bench: make bench BENCHFLAGS=--csv=FILE writes one, on a GPU" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$to"
device=$(sed -n 's/^# gpu: //p' "$csv" | head -n 1)
build=$(sed -n 's/^# build: //p' "$csv" | head -n 1 | sed 's/_/\\_/g') # no subscripts
[ -z "$build" ] || device="$device, built for $build"

# Cold, at powers of two: n and the rates of gpukit, the peer and the ceiling; n and the ratio, by type. Of products: the
# shape, and TFLOP/s of gpukit and of cuBLAS.
awk -F, -v work="$work" '
  function among(types) { return index(" " types " ", " " $3 " ") }
  $1 == "reduce" && $2 == "sum" || $1 == "scan" && $2 == "exclusive sum" {
    if ($6 != "cold" || $4 !~ /^2\^/) next
    if ($3 == "f32" && $16 == "ok" && $9 > 0 && $15 > 0) print $5, $13, $13 * $7 / $9, $13 * $7 / $15 >(work "/" $1)
    if ($10 > 0 && among("f32 f64 f16 bf16 i8 u8 i32 i64")) print $5, $10 >(work "/" $1 "." $3)
  }
  $1 == "matmul" && ($2 == "A B" || $2 == "A B odd") && $10 > 0 && among("f32 f32emulated bf16 f16 tf32 f64") {
    gsub(/x/, "×", $4)
    printf "\"%s\" %s %s\n", $4, $13, $13 * $7 / $9 >(work "/matmul." $3)
  }' "$csv"
for table in "$work"/reduce* "$work"/scan*; do [ ! -f "$table" ] || sort -g -o "$table" "$table"; done
cat "$work"/reduce.* "$work"/scan.* >"$work/ratios" 2>/dev/null || :
cat "$work"/matmul.* >"$work/matmul" 2>/dev/null || :

drawn=0
# draw NAME TABLE: a chart, if its table has rows
draw() {
  [ -s "$work/$2" ] || return 0
  LC_ALL=C.UTF-8 gnuplot -e "work = '$work'; out = '$to/$1.png'; device = '$device'" tests/bench/plots/style.gp \
    "tests/bench/plots/$1.gp"
  echo "$to/$1.png"
  drawn=1
}

draw reduce reduce
draw scan scan
draw ratios ratios
draw matmul matmul
[ $drawn = 1 ] || {
  echo "make plots: $csv has none of the rows that the charts show" >&2
  exit 1
}
