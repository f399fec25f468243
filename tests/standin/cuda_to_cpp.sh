#!/bin/sh
# Tests tests/cpu/cuda_to_cpp.c: cuda_to_cpp.sh PROGRAM. A text of all that is hard to tell apart gives the recorded C++;
# texts that make no sense give an error with their line, and no output. No file of the program is overwritten.
set -u
program=$1
folder=$(dirname "$0")/cuda_to_cpp
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT
failed=0 limit=
! command -v timeout >/dev/null || limit='timeout 10'
fail() {
  echo "$*"
  failed=1
}

"$program" "$folder/nasty.txt" "$temp/nasty.cpp" || fail 'nasty.txt is refused'
sed '2s|".*"|"tests/standin/cuda_to_cpp/nasty.txt"|' "$temp/nasty.cpp" >"$temp/nasty_named.cpp"
diff "$folder/nasty_expected.txt" "$temp/nasty_named.cpp" || fail 'nasty.txt gives other C++ than before (> is new)'
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
    [ "$(cat "$temp/out.cpp")" = old ] || fail "$1: the output has changed"
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
printf '#include "out.cpp.1"\n#include "%s/sub/b.h"\n#include "none.h"\n#include <sub/a.cuh>\n' "$temp" >>"$temp/expected"
diff "$temp/expected" "$temp/out.cpp" || fail 'the names of included files'
printf '#include "cuda_cpu/triple.h"\n#line 1 "%s/sub/a.cuh"\n#include "%s/sub/b.h"\n' "$temp" "$temp" >"$temp/expected"
printf '#include "out.cpp.1"\nvoid f() { CUDA_CPU_LAUNCH(0, k)(1, 1)(); }\n' >>"$temp/expected"
diff "$temp/expected" "$temp/out.cpp.1" || fail 'an included file'
printf '\nk<<<1, 1>>\n' >"$temp/sub/b.h"
rm "$temp/out.cpp" "$temp/out.cpp.1"
"$program" "$temp/in.cu" "$temp/out.cpp" 2>"$temp/err" && fail 'an error in an included file is accepted'
[ "$(cat "$temp/err")" = "$temp/sub/b.h:2: error: there is no >>> for this <<<" ] || fail "$(cat "$temp/err")"
[ -e "$temp/out.cpp" ] || [ -e "$temp/out.cpp.1" ] && fail 'output of an included file is left'

# a file that two paths lead to is translated once, and the source itself is included by the name of its translation
mkdir "$temp/far"
printf '#include "sub/once.cuh"\n#include "sub/../sub/once.cuh"\n#include "far/link.cuh"\n#include "./in.cu"\n' >"$temp/in.cu"
printf '#pragma once\nvoid f() { k<<<1, 1>>>(); }\n' >"$temp/sub/once.cuh"
ln -s ../sub/once.cuh "$temp/far/link.cuh"
"$program" "$temp/in.cu" "$temp/out.cpp" || fail 'several paths to one file are refused'
printf '#include "out.cpp.1"\n#include "out.cpp.1"\n#include "out.cpp.1"\n#include "out.cpp"\n' >"$temp/expected"
tail -n +3 "$temp/out.cpp" | diff "$temp/expected" - || fail 'several paths to one file'
[ -e "$temp/out.cpp.2" ] && fail 'a file is translated twice'

# refuses_result RESULT FILE: RESULT is FILE, of which the program is made
refuses_result() {
  cp "$2" "$temp/kept"
  "$program" "$temp/in.cu" "$1" 2>"$temp/err" && fail "$1 is accepted, which is $2"
  case $(cat "$temp/err") in
  *': cannot be written: the program is made of this file, so the C++ needs another name') ;;
  *) fail "$1: $(cat "$temp/err")" ;;
  esac
  cmp "$temp/kept" "$2" || fail "$1 has changed $2"
}
printf '#include "sub/b.h"\n#include "out.2"\nint main() { k<<<1, 1>>>(); }\n' >"$temp/in.cu"
printf 'int b;\n' >"$temp/sub/b.h"
printf 'void f() { k<<<1, 1>>>(); }\n' >"$temp/out.2"
ln "$temp/in.cu" "$temp/hard.cpp"
ln -s in.cu "$temp/soft.cpp"
refuses_result "$temp/in.cu" "$temp/in.cu"
refuses_result "$temp/sub/../in.cu" "$temp/in.cu"
refuses_result "$temp/hard.cpp" "$temp/in.cu"
refuses_result "$temp/soft.cpp" "$temp/in.cu"
refuses_result "$temp/sub/b.h" "$temp/sub/b.h"
refuses_result "$temp/out" "$temp/out.2" # which would get the translation of out.2 itself
[ -e "$temp/out" ] && fail 'some output is left'
printf 'k<<<1, 1>>\n' >"$temp/in.cu"
cp "$temp/in.cu" "$temp/kept"
"$program" "$temp/in.cu" "$temp/in.cu" 2>/dev/null && fail 'a source that makes no sense is its own result'
cmp "$temp/kept" "$temp/in.cu" || fail 'a source that makes no sense has changed'

# what is no regular file stays what it is, and is written to
mkfifo "$temp/pipe"
"$program" "$temp/in.cu" "$temp/pipe" 2>/dev/null && fail 'an error is accepted'
[ -p "$temp/pipe" ] || fail 'an error removes a pipe'
printf 'int main() { k<<<1, 1>>>(); }\n' >"$temp/in.cu"
"$program" "$temp/in.cu" "$temp/out.cpp" || fail 'a launch is refused'
$limit cat "$temp/pipe" >"$temp/piped" &
$limit "$program" "$temp/in.cu" "$temp/pipe" || fail 'a pipe is refused'
wait
cmp "$temp/out.cpp" "$temp/piped" || fail 'a pipe gets something else'
[ -p "$temp/pipe" ] || fail 'a pipe has become something else'
ln -s /dev/stdout "$temp/stdout" # a name that is no loss if it is removed
"$program" "$temp/in.cu" "$temp/stdout" | cmp "$temp/out.cpp" - || fail '/dev/stdout gets something else'
[ -h "$temp/stdout" ] || fail '/dev/stdout has become something else'
ln -s /dev/null "$temp/null"
"$program" "$temp/null" "$temp/null" || fail 'a device is refused that is read, too'
[ -h "$temp/null" ] || fail 'a link to a device has become something else'
echo old >"$temp/target.cpp"
ln -s target.cpp "$temp/link.cpp"
"$program" "$temp/in.cu" "$temp/link.cpp" || fail 'a link is refused'
[ -h "$temp/link.cpp" ] || fail 'a link has become something else'
cmp "$temp/out.cpp" "$temp/target.cpp" || fail 'the file behind a link gets something else'
printf '#include "sub/once.cuh"\n' >"$temp/in.cu"
$limit "$program" "$temp/in.cu" "$temp/pipe" 2>"$temp/err" && fail 'a header is translated beside a pipe'
grep -q 'pipe: cannot be written: included files are translated' "$temp/err" || fail "$(cat "$temp/err")"
[ -e "$temp/pipe.1" ] && fail 'something is left beside a pipe'

mkdir "$temp/folder.cpp"
"$program" "$temp/in.cu" "$temp/folder.cpp" 2>/dev/null && fail 'a folder is overwritten'
"$program" "$temp" "$temp/out.cpp" 2>/dev/null && fail 'a folder is accepted'
"$program" "$temp/none.cu" "$temp/out.cpp" 2>"$temp/err" && fail 'a missing file is accepted'
grep -q 'none.cu: cannot be read: No such file' "$temp/err" || fail "a missing file: $(cat "$temp/err")"
"$program" "$folder/nasty.txt" "$temp/none/out.cpp" 2>"$temp/err" && fail 'an impossible output is accepted'
grep -q 'cannot be written' "$temp/err" || fail "an impossible output: $(cat "$temp/err")"
exit $failed
