#!/bin/sh
# Draws the tables of lessons:  charts.sh FOLDER  makes FOLDER/NAME.png of each FOLDER/NAME.csv, as charts.txt has it.
set -eu
folder=$1
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
cd "$(dirname "$0")"

command -v gnuplot >/dev/null || {
  echo 'The charts of the lessons need gnuplot; on Debian: apt-get install gnuplot-nox'
  exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for csv in "$folder"/[0-9]*.csv; do
  [ -r "$csv" ] || continue
  name=$(basename "$csv" .csv)
  rm -f "$work"/*
  # The table through a link, since awk takes a=b.csv for an assignment. Points in numbers, but letters beyond ASCII.
  ln -s "$csv" "$work/table.csv"
  LC_ALL=C awk -v name="$name" -v work="$work" -v out="$work/chart.png" -f charts.awk charts.txt "$work/table.csv" \
    >"$work/commands.gp"
  [ -s "$work/commands.gp" ] || continue
  LC_ALL=C.UTF-8 gnuplot -e "$(tr '\n' ';' <"$work/commands.gp")"
  mv -f "$work/chart.png" "$folder/$name.png"
  printf '%s\n' "$folder/$name.png"
done
