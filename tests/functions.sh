# What scripts of tests/ share:  . tests/functions.sh
BUILD=${BUILD:-build}

# setting NAME: a command in $folder/flags, which the Makefile writes, one a line
setting() { sed -n "s/^$1 //p" "$folder/flags"; }

# run COMMAND: one in quotes as a shell reads it; V=1 shows it
run() {
  [ -z "${V-}" ] || echo "$*" >&2
  eval "$*"
}

# spent NAME: adds the processor time of all that this script has run to BUILD/times. The second line of `times` has it,
# as 0m1.25s 0m0.10s.
spent() {
  times >"$BUILD/times.$$"
  awk -F '[ms ]+' -v name="$1" 'NR == 2 { printf "%.1f s %s\n", 60 * $1 + $2 + 60 * $3 + $4, name }' \
    "$BUILD/times.$$" >>"$BUILD/times"
  rm "$BUILD/times.$$"
}
