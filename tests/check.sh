#!/bin/sh
# One check of `make test`: its output goes to build/results/NAME.log, its counts to build/results/NAME, and one line to
# the screen, followed by the output if something failed.
#
#   check.sh begin NAME...            the checks that there will be
#   check.sh counts NAME command...   a test program: its last line is `N passed, N failed[, N skipped]`
#   check.sh one NAME [command...]    a single test, which passes if the command does; none: that it was built is the
#                                     test. Status 77 is a skip, and the last line of the output is its reason
#   check.sh skip NAME N why          N tests that this machine cannot run
#   check.sh total                    what took most processor time, and the sum. A check without counts could not be
#                                     built, which is one failure
#
# Before the command, NAME=VALUE sets a variable of the environment that is not set; all/NAME=VALUE in make test-all
# only, gpu/NAME=VALUE in make test-all on a GPU only. TIMEOUT is the seconds that the check may take; the command
# $alone lets one program at a time have the GPU; the command $EMULATOR runs test programs.
set -u
. tests/functions.sh
results=$BUILD/results times=$BUILD/times
action=$1
shift

# report NAME VERDICT COUNTS [NOTE]: records the counts, and prints a line; the last ones of a group say what is left
report() {
  echo "$3" >"$results/$1"
  line=$(printf '%-7s %-30s %s%s' "$2" "$1" "$3" "${4:+, $4}")
  [ -n "${GROUP-}" ] || { echo "$line" && return; }
  echo "$1" >>"$results/.done"
  nth=$(($(wc -l <"$results/.done"))) total=$(($(wc -l <"$results/.all")))
  printf '[%3d/%3d] %s\n' "$nth" "$total" "$line"
  left=$((total - nth))
  [ $left -gt 0 ] && [ $left -le 8 ] || return 0
  echo "        left: $(while read -r name; do [ -f "$results/$name" ] || printf '%s ' "$name"; done <"$results/.all")"
}
indent() { sed 's/^/        /'; }

mkdir -p "$results"
[ -f "$results/.all" ] || : >"$results/.all"
case $action in
begin)
  [ $# -gt 0 ] || { echo "no check of TESTS=${TESTS-}: make checks lists all, some of test-all" >&2 && exit 1; }
  rm -rf "$results" "$times"
  mkdir -p "$results"
  printf '%s\n' "$@" >"$results/.all"
  echo "$# checks; output, and what they are built with, is in $BUILD/"
  ;;
counts | one)
  name=$1
  shift
  while [ $# -gt 0 ]; do
    setting=$1
    case $setting in
    all/*=*) [ "${GROUP-}" = test-all ] || setting= ;;
    gpu/*=*) [ "${GROUP-}/${backend-}" = test-all/gpu ] || setting= ;;
    *=*) ;;
    *) break ;;
    esac
    shift
    setting=${setting#*/}
    [ -z "$setting" ] || printenv "${setting%%=*}" >/dev/null || export "$setting"
  done
  log=$results/$name.log limit=${TIMEOUT:-300}
  unset MAKEFLAGS MFLAGS MAKELEVEL # for commands that run make
  start=$(date +%s)
  case " $* " in *" $BUILD/gpu/"* | *" $BUILD/ptx/"* | *" $BUILD/mixed/"* | *'.nvcc '*) set -- ${alone-} "$@" ;; esac
  [ "$action" = one ] || set -- ${EMULATOR-} "$@" # words
  ! command -v timeout >/dev/null || set -- timeout "$limit" "${@:-true}"
  "${@:-true}" >"$log" 2>&1 </dev/null
  status=$?
  seconds=$(($(date +%s) - start))
  spent "$name"

  counts='1 passed, 0 failed'
  if [ "$action" = counts ]; then
    counts=$(tail -n 1 "$log" | grep -xE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?')
  elif grep -q '^skipped: ' "$log"; then
    counts='1 passed, 0 failed, 1 skipped' # a part that this machine cannot run
  fi
  case $status/$counts in
  77/*)
    report "$name" skipped '0 passed, 0 failed, 1 skipped' "$(tail -n 1 "$log")"
    ;;
  0/*' passed, 0 failed'*)
    report "$name" ok "$counts" "$seconds s"
    grep '^skipped[: ]' "$log" | indent
    ;;
  *)
    # One that ended badly after good counts, or without any, has failed once.
    case $counts in '' | *' passed, 0 failed'*) counts='0 passed, 1 failed' ;; esac
    report "$name" FAILED "$counts" "exit status $status"
    [ $status -eq 124 ] && echo "stopped after $limit s" | indent
    head -n 200 "$log" | indent
    ;;
  esac
  ;;
skip)
  report "$1" skipped "0 passed, 0 failed, $2 skipped" "$3"
  ;;
total)
  while read -r name; do
    [ -f "$results/$name" ] || report "$name" FAILED '0 passed, 1 failed' 'could not be built'
  done <"$results/.all"
  : >>"$times"
  echo "Of $(awk '{ sum += $1 } END { printf "%.0f", sum }' "$times") s of processor time, these took most:"
  sort -rn "$times" | head -n 10 | sed 's/^/  /'
  cd "$results" && xargs cat <.all | awk '
    { passed += $1; failed += $3; skipped += $5 }
    END {
      printf "%d passed, %d failed", passed, failed
      if (skipped) printf ", %d skipped", skipped
      print ""
      exit failed > 0 || passed == 0
    }'
  ;;
esac
