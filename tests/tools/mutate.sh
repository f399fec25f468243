#!/bin/sh
# Breaks gpukit.cuh in each way that tests/tools/mutations.txt lists, one at a time in a copy, and runs the test that ought to
# notice: mutate.sh [NAME...], of these alone. Prints killed or survived for each; fails if one survived, if a break no
# longer fits the header, or if a test fails without any break. mutate.sh fits: builds and runs nothing, and fails if
# one does not fit. BUILD/*/flags, which the Makefile writes, say how to build. Without GPU what only a GPU notices is
# listed and no more, without SEVERAL what takes two of them and NCCL. JOBS is how many run at once.
set -u
: "${JOBS:=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)}"
export BUILD="${BUILD:-build}" GPU="${GPU-}" SEVERAL="${SEVERAL-}"

# one FOLDER: builds and runs what FOLDER/test names against FOLDER/gpukit.cuh; the verdict goes to FOLDER/verdict.
if [ "${1-}" = one ]; then
  folder=$2
  name=$(cat "$folder/name")
  settings=$(tr ' ' '\n' <"$folder/test" | grep '=' | tr '\n' ' ')
  words=$(tr ' ' '\n' <"$folder/test" | grep -v -e '=' -e '^gpu$')
  test=$(echo "$words" | head -n 1)
  filters=$(echo "$words" | tail -n +2)
  program=$folder/program.o output=$folder/program runtime=
  verdict=killed limit=
  ! command -v timeout >/dev/null || limit='timeout 60'
  # build CONFIGURATION [FLAG...]: with the broken header in front of the other one
  build() {
    compile=$(sed -n 's/^compile //p' "$BUILD/$1/flags") link=$(sed -n 's/^link //p' "$BUILD/$1/flags")
    shift
    # shellcheck disable=SC2086 # flags are words
    if [ -z "$link" ]; then
      ${compile%% *} -w -I "$folder" -I tests/support ${compile#* } tests/*/"$test.cu" "$@" -o "$output"
    else
      ${compile%% *} -w -I "$folder" -I tests/support ${compile#* } -c tests/*/"$test.cu" "$@" -o "$program" && eval "$link"
    fi
  }
  case "$(cat "$folder/test") " in
  'gpu MIXED=1 '*) how=mixed ;;
  'gpu NCCL=1 '*) how='gpu -DTEST_NCCL -lnccl' ;;
  gpu*) how=gpu ;;
  *' RACES=1 '* | 'RACES=1 '*) how=checker ;;
  *) how=cpu ;;
  esac
  if ! build $how >"$folder/log" 2>&1; then
    verdict='does not build'
  elif (cd "$folder" && ulimit -c 0 && env $settings $limit ./program $filters; exit $?) >"$folder/log" 2>&1 \
    </dev/null; then
    verdict=survived
  fi
  rm -f "$folder/program" "$folder/program.o"
  echo "$verdict" >"$folder/verdict"
  [ "$name/$verdict" = 'nothing broken/survived' ] ||
    printf '  %-14s %-34s %s\n' "$verdict" "$name" "$(cat "$folder/test")"
  exit 0
fi

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM

# A folder for each break, with the broken header in it; and one for each test, with the header as it is.
WANTED=" $* " FOLDER=$folder awk '
  function finish() {
    if (name == "") return
    if (wanted ~ /^ +$/ || index(wanted, " " name " ")) {
      at = index(header, old)
      if (old == "" || old == new || !at || index(substr(header, at + 1), old)) {
        printf "  %-14s %-34s its text is %s in gpukit.cuh\n", "does not fit", name, at ? "more than once" : "not"
        unfit = 1
      } else if (fits) {
        fitting++
      } else if (test ~ /^gpu / && ENVIRON["GPU"] == "" || test ~ /^gpu NCCL/ && ENVIRON["SEVERAL"] == "") {
        printf "  %-14s %-34s %s\n", "for a GPU", name, substr(test, 5)
      } else {
        put(name, test, substr(header, 1, at - 1) new substr(header, at + length(old)))
        if (!(test in tests)) put("nothing broken", test, header)
        tests[test] = 1
      }
    }
    name = ""
  }
  function put(name, test, text,    folder) {
    folder = ENVIRON["FOLDER"] "/" ++count
    system("mkdir " folder)
    print name >(folder "/name")
    print test >(folder "/test")
    printf "%s", text >(folder "/gpukit.cuh")
    close(folder "/name"); close(folder "/test"); close(folder "/gpukit.cuh")
    print folder >(ENVIRON["FOLDER"] "/list")
  }
  BEGIN {
    wanted = ENVIRON["WANTED"]
    fits = wanted == " fits "
    if (fits) wanted = "  "
    while ((getline line <"gpukit.cuh") > 0) header = header line "\n"
  }
  /^@ / {
    finish()
    colon = index($0, ": ")
    name = substr($0, 3, colon - 3); test = substr($0, colon + 2)
    old = new = ""; olds = news = 0
    next
  }
  /^-/ { old = old (olds++ ? "\n" : "") substr($0, 2) }
  /^\+/ { new = new (news++ ? "\n" : "") substr($0, 2) }
  END {
    finish()
    if (fits) print fitting + 0 " fit"
    exit unfit
  }' tests/tools/mutations.txt
fits=$?
[ "$*" != fits ] || exit $fits
[ -f "$folder/list" ] || { echo 'nothing to run'; exit $fits; }
xargs -P "$JOBS" -n 1 "$0" one <"$folder/list"

total=0 killed=0 wrong=0
while read -r one; do
  verdict=$(cat "$one/verdict")
  if [ "$(cat "$one/name")" = 'nothing broken' ]; then
    [ "$verdict" = survived ] || { wrong=1; echo "$(cat "$one/test") fails with nothing broken:"; tail -n 5 "$one/log"; }
  else
    total=$((total + 1))
    [ "$verdict" = killed ] && killed=$((killed + 1))
  fi
done <"$folder/list"
echo "$killed of $total killed"
[ $killed -eq $total ] && [ $wrong -eq 0 ] && [ $fits -eq 0 ]
