#!/bin/sh
# Tests that make takes files of any name: a program (FILE) and the files that it includes, a photograph (PHOTO), tables
# (TABLES, CSV). The names contain spaces, quotes and dollar signs, and no part of them may run as a command.
#
#   given_names.sh build/fast/tour    the program that make run builds
set -u
build=${BUILD:-build} backend=cpu
case $1 in */gpu/*) backend=gpu ;; esac
make() { command make BUILD="$build" "$@"; }
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that runs this test
temp=$(mktemp -d) || exit 1
odd="a \"b\" \$(touch $temp/ran) \$\$ '; touch $temp/ran; '"
name=$(printf '%s' "$odd $$" | tr / _) # of a file
translated="given_names.$$ it's" # C++ cannot include a file with a double quote in its name
trap 'rm -rf "$temp" "$build/user/$name"* "$build/user/$translated"*' EXIT
failed=0
fail() {
  echo "$*"
  failed=1
}
# expect TEXT: a line of the last output
expect() { grep -qxF -e "$1" "$temp/out" || fail "no line '$1': $(cat "$temp/out")"; }

folder="$temp/my '\$folder'"
mkdir "$folder"
cat >"$folder/$name.cu" <<'END'
#include "x.h"
#include <stdio.h>
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) printf("%d %s\n", X, argv[i]);
}
END
echo '#define X 42' >"$folder/x.h"
make -s cpu FILE="$folder/$name.cu" ARGS='"a b" $$((1 + 2))' >"$temp/out" 2>&1
expect '42 a b'
expect '42 3'

printf '#include "k.cuh"\nint main() { return launch() == 42 ? 0 : 1; }\n' >"$folder/$translated.cu"
printf '#include "x.h"\n__global__ void k() {}\ninline int launch() { k<<<1, 1>>>(); return X; }\n' >"$folder/k.cuh"
make -s cpu FILE="$folder/$translated.cu" >"$temp/out" 2>&1 || fail "a translated header: $(cat "$temp/out")"

make cpu FILE="$odd" >"$temp/out" 2>&1 && fail 'make cpu without its file'
expect "make cpu: $odd is not there, or cannot be read"
make run BACKEND=$backend PHOTO="$odd" >"$temp/out" 2>&1 && fail 'make run without its photograph'
expect "tour: $odd: No such file or directory"

# A gnuplot that draws nothing, but makes the file, and keeps what it was asked for.
mkdir "$temp/bin" "$folder/tables"
cat >"$temp/bin/gnuplot" <<'END'
#!/bin/sh
printf '%s\n' "$2" >>"$(dirname "$0")/asked"
: >"$(printf '%s\n' "$2" | sed -n "s/.*out = '\([^']*\)'.*/\1/p")"
END
chmod +x "$temp/bin/gnuplot"
PATH=$temp/bin:$PATH
cat >"$folder/tables/01_it's.csv" <<'END'
# 01 it's: `touch ran` and "so on"
# A GPU "of `touch ran`, sm_90
lesson,n,variant,unit,rate,time_us
1,2,one,it's,4,5
END
make charts TABLES="$folder/tables" >"$temp/out" 2>&1 || fail 'make charts fails'
expect "$folder/tables/01_it's.png"
[ -e "$folder/tables/01_it's.png" ] || fail 'make charts draws elsewhere'
grep -q '`' "$temp/bin/asked" && fail "gnuplot is to run a command: $(cat "$temp/bin/asked")"
make plots CSV="$odd" >"$temp/out" 2>&1 && fail 'make plots without its file'
expect "make plots: there is no $odd; make bench BENCHFLAGS=--csv=FILE writes one, on a GPU"

[ -e "$temp/ran" ] && fail 'a part of a name ran as a command'
exit $failed
