#!/bin/sh
# Runs a lesson as it is, and at a size that nothing divides; what it must refuse has to be refused.
#
#   lesson.sh build/lesson/10_transpose
set -u
lesson=$1
odd=77
case $lesson in *matmul | *constant_texture | *blur) odd=39 ;; esac # whose work grows with the square, or faster
file=$(mktemp)
trap 'rm -f "$file"' EXIT
export GPUKIT_CPU_LEAKS=1 # with which the stand-in lists at the end what is still held

fail() {
  echo "lesson.sh: $*"
  exit 1
}

output=$("$lesson" --csv="$file" 2>&1) || fail "it has failed: $output"
echo "$output"
case $output in *' still held '*) fail 'it has not freed all' ;; esac

# A table has a title, and as many fields in each row as there; as many rows stand in the text.
is_table() { grep -v '^#' "$1" | awk -F, 'NR == 1 { n = NF } NF != n { bad = 1 } END { exit bad || NR < 2 || n < 4 }'; }
is_table "$file" || fail "this is no table: $(cat "$file")"
rows=$(echo "$output" | awk '/^variant/ { on = 1 } /^$/ { on = 0 } { rows += on } END { print rows }')
[ "$(grep -vc '^#' "$file")" -eq "$rows" ] || fail "$rows rows in the text, but in the file: $(cat "$file")"

"$lesson" --n "$odd" --csv >"$file" || fail "it has failed with --n $odd"
is_table "$file" || fail "with --n $odd this is no table: $(cat "$file")"

"$lesson" --help | grep -q -e '--n=N' || fail '--help does not help'
for wrong in --n=0 --n=12x --n= --n --n=-1 --n=99999999999999999999 --csv=/nowhere/at/all --what; do
  said=$("$lesson" $wrong 2>&1 >/dev/null)
  [ $? -eq 2 ] || fail "$wrong is not refused"
  case $said in *"$wrong"* | *"${wrong#--csv=}"*) ;; *) fail "$wrong is refused by: $said" ;; esac
done

case $lesson in
*several_gpus) # what it is about needs more than the one device that the stand-in has by itself
  GPUKIT_CPU_DEVICES=3 "$lesson" --n=50 >/dev/null || fail 'it has failed with three devices'
  ;;
esac
