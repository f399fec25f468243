#!/bin/sh
# One check of `make test`: its output goes to build/results/NAME.log, its counts to build/results/NAME, and one line to
# the screen, followed by the output if something failed.
#
#   run.sh program NAME command...   a test program: its last line is `N passed, N failed[, N skipped]`
#   run.sh one NAME [command...]     a single test, which passes if the command does; none: that it was built is the test;
#                                    a line `skipped: why` says that a part of it cannot run here
#   run.sh skip NAME N why           N tests that this machine cannot run
#   run.sh timed WHAT command...     runs the command and notes its seconds
#   run.sh total NAME...             what took longest, and the sum; a NAME without counts could not be built, which is
#                                    one failure
#
# CHECKS is the number of checks in all, TIMEOUT the seconds that one may take.
set -u
results=build/results times=build/results/.times
mkdir -p "$results"
action=$1
shift

if [ "$action" = timed ]; then
  what=$1 start=$(date +%s)
  shift
  "$@"
  status=$?
  echo "$(($(date +%s) - start)) s $what" >>"$times"
  exit $status
fi

# report NAME VERDICT COUNTS [NOTE]: records the counts and prints the line
report() {
  echo "$3" >"$results/$1"
  nth=1 # the first number that no other check has taken
  until mkdir "$results/.$nth" 2>/dev/null; do nth=$((nth + 1)); done
  printf '[%*d/%s] %-7s %-30s %s%s\n' "${#CHECKS}" "$nth" "$CHECKS" "$2" "$1" "$3" "${4:+, $4}"
}

indent() { sed 's/^/        /'; }

case $action in
program | one)
  name=$1
  shift
  log=$results/$name.log
  start=$(date +%s)
  timeout "${TIMEOUT:-300}" "${@:-true}" >"$log" 2>&1 </dev/null
  status=$?
  seconds=$(($(date +%s) - start))
  echo "$seconds s $name" >>"$times"

  counts='1 passed, 0 failed'
  if [ "$action" = program ]; then
    counts=$(tail -n 1 "$log" | grep -xE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?')
  elif grep -q '^skipped: ' "$log"; then
    counts='1 passed, 0 failed, 1 skipped' # a part that this machine cannot run
  fi
  case $status/$counts in
  0/*' passed, 0 failed'*)
    report "$name" ok "$counts" "$seconds s"
    grep '^skipped[: ]' "$log" | indent
    ;;
  *)
    # One that ended badly after good counts, or without any, has failed once.
    case $counts in '' | *' passed, 0 failed'*) counts='0 passed, 1 failed' ;; esac
    report "$name" FAILED "$counts" "exit status $status"
    [ $status -eq 124 ] && echo "stopped after ${TIMEOUT:-300} s" | indent
    head -n 200 "$log" | indent
    ;;
  esac
  ;;
skip)
  report "$1" skipped "0 passed, 0 failed, $2 skipped" "$3"
  ;;
total)
  for name in "$@"; do
    [ -f "$results/$name" ] || report "$name" FAILED '0 passed, 1 failed' 'could not be built'
  done
  : >>"$times"
  echo "Of $(awk '{ sum += $1 } END { print sum + 0 }' "$times") s of compiling and running, these took longest:"
  sort -rn "$times" | head -n 10 | sed 's/^/  /'
  cd "$results" && cat "$@" | awk '
    { passed += $1; failed += $3; skipped += $5 }
    END {
      printf "%d passed, %d failed", passed, failed
      if (skipped) printf ", %d skipped", skipped
      print ""
      exit failed > 0 || passed == 0
    }'
  ;;
esac
