#!/bin/sh
# Tests tests/cpu/cuda_to_cpp.c: cuda_to_cpp.sh PROGRAM. A text of all that is hard to tell apart gives the recorded C++;
# texts that make no sense give an error with their line, and no output.
set -u
program=$1
folder=$(dirname "$0")/cuda_to_cpp
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT
failed=0
fail() {
  echo "$*"
  failed=1
}

"$program" "$folder/nasty.txt" "$temp/nasty.cpp" || fail 'nasty.txt is refused'
sed -i '2s|".*"|"tests/cuda_to_cpp/nasty.txt"|' "$temp/nasty.cpp"
diff "$folder/nasty_expected.txt" "$temp/nasty.cpp" || fail 'nasty.txt gives other C++ than before (> is new)'
[ "$(wc -l <"$temp/nasty.cpp")" = $(($(wc -l <"$folder/nasty.txt") + 2)) ] || fail 'lines have moved'

# same TEXT: has nothing to translate
same() {
  printf "$1" >"$temp/in.cu"
  "$program" "$temp/in.cu" "$temp/out.cpp" || fail "refused: $1"
  tail -n +3 "$temp/out.cpp" | cmp -s - "$temp/in.cu" || fail "changed: $1"
}
same ''
same 'int main() {}'
same 'no end of line // k<<<1, 1>>>(x)'
same '/* never closed k<<<1, 1>>>(x)'
same 'R"(never closed k<<<1, 1>>>(x)'
same 'zero \000 byte, ) ] } and \\ at the end \\'
same '#define __shared__ static\n#ifdef __shared__\n#endif\n'
same '#if 0\nk<<<'

# refuses TEXT LINE MESSAGE
refuses() {
  printf "$1" >"$temp/in.cu"
  echo old >"$temp/out.cpp"
  if "$program" "$temp/in.cu" "$temp/out.cpp" 2>"$temp/err"; then
    fail "accepted: $1"
  else
    [ "$(cat "$temp/err")" = "$temp/in.cu:$2: error: $3" ] || fail "$1: $(cat "$temp/err")"
    [ -e "$temp/out.cpp" ] && fail "$1: output is left"
  fi
}
refuses 'void f() {\n  k<<<1, 1>>(x);\n}\n' 2 'there is no >>> for this <<<'
refuses '\n\nk<<<1, (1>>>(x));' 3 'there is no >>> for this <<<'
refuses 'k<<<1, 1' 1 'there is no >>> for this <<<'
refuses '#define K k<<<1,\nk 1>>>(x)\n' 1 'there is no >>> for this <<<'
refuses '{\n<<<1, 1>>>(x);' 2 'there is no kernel before this <<<'
refuses '/*\n*/ return <<<1, 1>>>(x);' 2 'there is no kernel before this <<<'
refuses '\\\nk<<<1, 1>>>;' 2 'there are no arguments in parentheses after this launch'
refuses '\nextern __shared__ float x[' 2 'this declaration of extern __shared__ memory makes no sense'
refuses '{extern __shared__ float x[]}' 1 'this declaration of extern __shared__ memory makes no sense'

# included files: translated where there is something to translate, named where they are, left alone where they are found
mkdir "$temp/sub"
printf '#include "sub/a.cuh"\n#include "sub/b.h"\n#include "none.h"\n#include <sub/a.cuh>\n' >"$temp/in.cu"
printf '#include "b.h"\n#include "a.cuh"\nvoid f() { k<<<1, 1>>>(); }\n' >"$temp/sub/a.cuh"
printf 'int b;\n' >"$temp/sub/b.h"
"$program" "$temp/in.cu" "$temp/out.cpp" || fail 'included files are refused'
printf '#include "cuda_cpu/triple.h"\n#line 1 "%s"\n' "$temp/in.cu" >"$temp/expected"
printf '#include "out.cpp.1"\n#include "sub/b.h"\n#include "none.h"\n#include <sub/a.cuh>\n' >>"$temp/expected"
diff "$temp/expected" "$temp/out.cpp" || fail 'the names of included files'
printf '#include "cuda_cpu/triple.h"\n#line 1 "%s/sub/a.cuh"\n#include "%s/sub/b.h"\n' "$temp" "$temp" >"$temp/expected"
printf '#include "out.cpp.1"\nvoid f() { CUDA_CPU_LAUNCH(0, k)(1, 1)(); }\n' >>"$temp/expected"
diff "$temp/expected" "$temp/out.cpp.1" || fail 'an included file'
printf '\nk<<<1, 1>>\n' >"$temp/sub/b.h"
rm "$temp/out.cpp.1"
"$program" "$temp/in.cu" "$temp/out.cpp" 2>"$temp/err" && fail 'an error in an included file is accepted'
[ "$(cat "$temp/err")" = "$temp/sub/b.h:2: error: there is no >>> for this <<<" ] || fail "$(cat "$temp/err")"
[ -e "$temp/out.cpp" ] || [ -e "$temp/out.cpp.1" ] && fail 'output of an included file is left'

"$program" "$temp" "$temp/out.cpp" 2>/dev/null && fail 'a folder is accepted'
"$program" "$temp/none.cu" "$temp/out.cpp" 2>"$temp/err" && fail 'a missing file is accepted'
grep -q 'none.cu: cannot be read: No such file' "$temp/err" || fail "a missing file: $(cat "$temp/err")"
"$program" "$folder/nasty.txt" "$temp/none/out.cpp" 2>"$temp/err" && fail 'an impossible output is accepted'
grep -q 'cannot be written' "$temp/err" || fail "an impossible output: $(cat "$temp/err")"
exit $failed
