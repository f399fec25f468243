#!/bin/sh
# Runs programs on a GPU under compute-sanitizer's four tools: sanitize.sh PROGRAM..., those of examples/ at small
# sizes; PROGRAM:WORD runs the tests of it that have the word in their names. Prints `tool, program, errors, seconds` as
# a table, and what was reported where it is not clean; fails if anything was reported, or if a program failed or did
# not end. The tools slow kernels 10 to 1000 times and let no kernel run beside another, which GPUKIT_TEST_SLOWED tells
# the tests.
#
#   SANITIZER   compute-sanitizer, by default of the PATH or of /usr/local/cuda
#   TOOLS       by default all four; racecheck, which takes longer than the others together, goes last
#   JOBS        how many programs at once, by default three for four cores, up to 12
#   SECONDS_EACH  that one program has under one tool (default 300)
#   SECONDS_ALL   that all of it has (default 3600): what has not begun by then is listed as not run, which is not clean
#   LOGS        a folder for what they print
set -u
: "${SANITIZER:=$(PATH="$PATH:/usr/local/cuda/bin" command -v compute-sanitizer)}"
: "${TOOLS:=memcheck synccheck initcheck racecheck}" "${LOGS:=${BUILD:-build}/sanitize}"
: "${SECONDS_EACH:=300}" "${SECONDS_ALL:=3600}"
if [ -z "${JOBS-}" ]; then
  JOBS=$((($(nproc 2>/dev/null || echo 2) * 3 + 3) / 4))
  [ $JOBS -le 12 ] || JOBS=12
fi

columns='%-9s | %-26s | %6s | %7s | %s\n'

# one TOOL PROGRAM: leaves LOGS/TOOL.NAME.log and .row. Children of a program are faults on purpose, and not followed;
# calls that fail on purpose are not reported.
if [ "${1-}" = one ]; then
  tool=$2 program=${3%%:*} only=
  name=$(basename "$3" | tr : .)
  case $3 in *:*) only=${3#*:} ;; esac
  log=$LOGS/$tool.$name.log
  case $name in
  test_*) arguments=$only ;;
  *matmul | *blur | *constant_texture | *bank_conflicts) arguments=--n=77 ;; # whose work grows with the square, or more
  [0-9]*) arguments=--n=777 ;;
  tour) arguments=$LOGS/picture.ppm ;;
  *) arguments= ;;
  esac
  # initcheck does not see what the copy engine writes: so it must not look at what is copied to the host.
  case $tool in
  memcheck) options='--report-api-errors no --leak-check full' ;;
  initcheck) options='--check-api-memory-access no' ;;
  *) options= ;;
  esac
  # NCCL's kernels are thousands, and its own business.
  case $name in test_dist* | 26_*) options="$options --kernel-name-exclude kernel_substring=nccl" ;; esac
  # Under initcheck alone, calls end with status 700 where one stream takes memory by cudaMallocAsync while kernels of
  # others run: on a busy GPU several_streams_at_once of test_reduce in 8 of 20 runs, and plain kernels without gpukit
  # in 8 of 60, but none in 60 runs, of either, whose memory was all there before. So what mixes the two goes kernel by
  # kernel there, with the same accesses.
  waits=0
  case $tool.$name in
  initcheck.test_reduce* | initcheck.test_scan* | initcheck.test_load* | initcheck.test_fuzz*) waits=1 ;;
  esac
  # What a tool cannot look at: an error that is none of the program's.
  skipped=
  case $tool.$name in
  memcheck.*) ;;
  *.19_dynamic_parallelism) skipped='the tool knows no launches by the GPU' ;;
  initcheck.26_* | initcheck.test_dist | initcheck.test_dist.matmul* | initcheck.test_dist_types*)
    skipped="what NCCL's kernels bring, which are left out, counts as written by nobody"
    ;;
  esac
  if [ -n "$skipped" ]; then
    printf "$columns" "$tool" "$name" - - "skipped: $skipped" | tee "$LOGS/$tool.$name.row"
    exit 0
  fi
  start=$(date +%s)
  left=$((END - start))
  [ $left -lt "$SECONDS_EACH" ] || left=$SECONDS_EACH
  if [ $left -le 0 ]; then
    printf "$columns" "$tool" "$name" - - "not run, since $SECONDS_ALL s are over" >"$LOGS/$tool.$name.row"
    exit 0
  fi
  CUDA_LAUNCH_BLOCKING=$waits timeout "$left" "$SANITIZER" --tool "$tool" --target-processes application-only \
    --error-exitcode 86 --print-limit 20 $options "$program" $arguments >"$log" 2>&1 </dev/null
  status=$?
  seconds=$(($(date +%s) - start))
  # "ERROR SUMMARY: 2 errors", or "RACECHECK SUMMARY: 2 hazards displayed (1 errors, 1 warnings)"
  errors=$(sed -n -E 's/^=* *(ERROR|RACECHECK) SUMMARY: ([0-9]*) .*/\2/p' "$log" | tail -n 1)
  verdict=
  # Where no kernel is there, or runs, a tool may end without a summary: then the program by itself has to be right.
  if [ -z "$errors" ] && [ $status -ne 124 ] &&
    { ! grep -q device_stub "$program" || grep -q 'before first instrumented API call' "$log"; } &&
    "$program" $arguments >>"$log" 2>&1 </dev/null; then
    errors=0 status=0
    verdict='no kernels'
  fi
  case $status/$errors in
  0/0) ;;
  124/*) verdict="stopped after $seconds s" ;;
  */) verdict="no summary, exit status $status" ;;
  86/*) ;;
  0/*) ;;
  *) verdict="the program fails, exit status $status" ;;
  esac
  printf "$columns" "$tool" "$name" "${errors:--}" "$seconds" "$verdict" >"$LOGS/$tool.$name.row"
  cat "$LOGS/$tool.$name.row"
  exit 0
fi

[ -n "$SANITIZER" ] || { echo 'make sanitize needs compute-sanitizer, of the CUDA Toolkit' >&2; exit 1; }
[ $# -gt 0 ] || { echo 'sanitize.sh: which programs?' >&2; exit 1; }
mkdir -p "$LOGS" && rm -f "$LOGS"/*.log "$LOGS"/*.row
export SANITIZER LOGS SECONDS_EACH SECONDS_ALL END=$(($(date +%s) + SECONDS_ALL)) GPUKIT_TEST_SLOWED=1
export GPUKIT_FUZZ_CASES="${GPUKIT_FUZZ_CASES:-300}" GPUKIT_FUZZ_THREADS="${GPUKIT_FUZZ_THREADS:-1}"
{ printf 'P6 80 60 255\n'; seq 100000 | head -c 14400; } >"$LOGS/picture.ppm"
printf "$columns" tool program errors seconds ''
all=$(for tool in $TOOLS; do
  for program in "$@"; do echo "$tool $program"; done
done)
# GPUs that wait for each other in kernels get nowhere while other programs take turns with them.
several='/(test_dist|26_)'
printf '%s\n' "$all" | grep -vE "$several" | xargs -r -P "$JOBS" -n 2 "$0" one
printf '%s\n' "$all" | grep -E "$several" | xargs -r -n 2 "$0" one

# Anything but a zero and no remark is not clean.
bad=0 runs=0 skipped=0
for row in "$LOGS"/*.row; do
  if grep -q '| skipped: ' "$row"; then
    skipped=$((skipped + 1))
    continue
  fi
  runs=$((runs + 1))
  case $(cut -d'|' -f3,5 "$row" | tr -d ' |') in 0 | 0nokernels) continue ;; esac
  bad=$((bad + 1))
  echo "$(basename "$row" .row):"
  [ -f "${row%.row}.log" ] || { echo "    $(cut -d'|' -f5 "$row")"; continue; }
  grep -E '^=========|FAILED|:[0-9]+: |passed' "${row%.row}.log" | head -n 40 | sed 's/^/    /'
done
echo "$((runs - bad)) of $runs runs are clean, $skipped are skipped"
[ $bad -eq 0 ]
