#!/bin/sh
# Runs the tour on pictures at the edge of what it takes: flat ones, whose rounding errors all have one sign, and ones
# that are one pixel wide or high. Every check of the tour has to hold, and the pictures have to be written.
#
#   tour.sh build/cpu/tour
set -u
tour=$1
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT
failed=0

# flat MAGIC WIDTH HEIGHT OCTAL: a picture whose samples are all the same. MAGIC: P5 for gray, P6 for colour.
flat() {
  channels=1
  [ "$1" = P5 ] || channels=3
  printf '%s %d %d 255\n' "$1" "$2" "$3" >"$temp/picture"
  head -c $(($2 * $3 * channels)) /dev/zero | tr '\000' "\\$4" >>"$temp/picture"
  rm -rf "$temp/out"
  "$tour" --out "$temp/out" "$temp/picture" >"$temp/log" 2>&1 && [ -s "$temp/out/tour.png" ] || {
    printf 'the tour fails on a %s picture of %s x %s samples that are all %s (octal):\n' "$1" "$2" "$3" "$4"
    cat "$temp/log"
    failed=1
  }
}

for magic in P5 P6; do
  flat $magic 77 50 377 # white
  flat $magic 77 50 000 # black
  flat $magic 1 75 377
  flat $magic 75 1 376
  flat $magic 1 1 377
done
flat P5 640 480 376
flat P6 300 200 376
exit $failed
