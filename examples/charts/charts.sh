#!/bin/sh
# Draws the tables of lessons:  charts.sh FOLDER  makes FOLDER/NAME.png of each FOLDER/NAME.csv, as charts.txt has it.
set -eu
folder=$1
case $folder in /*) ;; *) folder=./$folder ;; esac # awk takes a=b/1.csv for an assignment, and -a for an option
here=$(dirname "$0")
style=$here/../../tests/bench/plots/style.gp
export LC_ALL=C # points in numbers

command -v gnuplot >/dev/null || {
  echo 'The charts of the lessons need gnuplot; on Debian: apt-get install gnuplot-nox'
  exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# column FILE NAME: its number, nothing if there is none
column() { awk -F, -v name="$2" '/^#/ { next } { for (i = 1; i <= NF; i++) if ($i == name) print i; exit }' "$1"; }
# rows FILE COLUMN: variant and value, tab between them, of those that have one
rows() { awk -F, -v c="$2" '/^#/ { next } title++ && $c > 0 { printf "%s\t%s\n", $3, $c }' "$1"; }
# Text on its way into gnuplot's quotes, without what gnuplot takes for a quote, a command or markup.
plain() { tr "'\"\`\\\\_^{}@&~" ' '; }

for csv in "$folder"/[0-9]*.csv; do
  [ -r "$csv" ] || continue
  name=$(basename "$csv" .csv)
  set -- $(awk -v name="$name" '$1 == name' "$here/charts.txt")
  kind=${2:-bars}
  along=$(echo "${5:-}" | tr _ ' ')
  [ "$kind" != none ] || continue
  rm -f "$work"/*
  if [ -n "$(column "$csv" time_us)" ]; then
    wanted=${3:-rate}
    where=$(sed -n '2s/^# \(.*\), sm_.*/\1/p' "$csv" | plain)
    unit=$(awk -F, '/^#/ { next } title++ { print $4; exit }' "$csv" | tr "'" ' ')
    [ -n "$(rows "$csv" "$(column "$csv" "$wanted")")" ] || wanted=time_us
  else
    wanted=${4:--}
    where='CPU stand-in'
    unit=
  fi
  [ "$wanted" != - ] || continue
  case $wanted in rate) axis=$unit ;; time_us) axis=µs ;; *) axis=$(echo "$wanted" | tr _ ' ') ;; esac
  rows "$csv" "$(column "$csv" "$wanted")" >"$work/rows"
  [ -s "$work/rows" ] || continue

  heading=$(printf '%s\n' "$name" | plain)
  idea=$(sed -n "1s/^# [^:]*: \(.*\)/\1/p" "$csv" | plain)
  arguments="out = '$work/chart.png'; heading = \"$heading\n{/*0.75 $idea}\n{/*0.75 $where}\"; axis = '$axis'"
  if [ "$kind" != lines ]; then
    awk -F '\t' '{ printf "\"%s\"\t%s\t%d\n", $1, $2, $1 ~ /^(gk|library)/ }' \
      "$work/rows" >"$work/table"
    arguments="$arguments; table = '$work/table'; height = $((150 + 26 * $(wc -l <"$work/table")))"
    arguments="$arguments; logarithmic = $([ "$kind" = log ] && echo 1 || echo 0)"
    kind=bars
  else
    # A line's name is what is left of the variant without its first number, and may be no more than spaces.
    awk -F '\t' -v work="$work" '{
      if (!match($1, /[0-9]+/)) next
      x = substr($1, RSTART, RLENGTH)
      series = substr($1, 1, RSTART - 1) substr($1, RSTART + RLENGTH)
      gsub(/^ +| +$/, "", series); gsub(/[^A-Za-z0-9]+/, "_", series)
      print x, $2 >(work "/line." series)
    }' "$work/rows"
    lines=
    points=
    for line in "$work"/line.*; do
      sort -g "$line" -o "$line"
      if [ "$(wc -l <"$line")" -gt 3 ]; then lines="$lines $line"; else points="$points $line"; fi
    done
    arguments="$arguments; lines = '$lines'; points = '$points'; what = '$along'"
  fi
  LC_ALL=C.UTF-8 gnuplot -e "$arguments" "$style" "$here/$kind.gp"
  mv -f "$work/chart.png" "$folder/$name.png"
  printf '%s\n' "$folder/$name.png"
done
