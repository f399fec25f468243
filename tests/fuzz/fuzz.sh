#!/bin/sh
# Feeds any bytes to fuzz_WHAT.c:  fuzz.sh WHAT SECONDS. What a run finds new stays in BUILD/fuzz, for the next one; one
# that fails leaves the bytes that it failed on there. BUILD/fuzz/flags, by the Makefile, says how to compile.
set -eu
what=$1 seconds=$2
here=$(dirname "$0")
program=${BUILD:-build}/fuzz/fuzz_$what
compile=$(sed -n 's/^compile //p' "${program%/*}/flags")
mkdir -p "$program.corpus"
printf 'int LLVMFuzzerTestOneInput(const char *x, unsigned long n);
  int LLVMFuzzerTestOneInput(const char *x, unsigned long n) { return x && !n; }\n' >"$program.probe.c"
$compile "$program.probe.c" -o "$program.probe" 2>/dev/null || { echo 'no clang with libFuzzer here' && exit 77; }
$compile "$here/fuzz_$what.c" -o "$program"
programs=
[ "$what" != cuda_to_cpp ] || programs=tests/standin/programs
"$program" -max_total_time="$seconds" -timeout=10 -max_len=2000 -verbosity=0 -print_final_stats=1 \
  -artifact_prefix="$program-" "$program.corpus" "$here/$what" $programs >"$program.log" 2>&1 ||
  { grep -v '# Uses:' "$program.log" && exit 1; }
sed -n "s/^stat::number_of_executed_units/$what: inputs/p" "$program.log"
