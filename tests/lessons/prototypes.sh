#!/bin/sh
# Runs the prototypes, which come in pairs: NAME_plain.cu is plain CUDA, and NAME.cu is the same program with gpukit. Both
# must print the same, except times. NAME.cu has at most two thirds of the tokens of NAME_plain.cu, and no cudaMalloc.
# Prints the numbers of tokens; the table in examples/README.md must have the same ones.
#
#   prototypes.sh PROGRAM...     the built programs, all of one folder
set -u
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT
failed=0
fail() {
  echo "$*"
  failed=1
}

# tokens FILE: the number of identifiers, numbers, strings and operators, without comments and #include
tokens() {
  awk '
    BEGIN {
      count = 0
      part[1] = "^[A-Za-z_][A-Za-z_0-9]*"
      part[2] = "^[.]?[0-9]([eE][-+]|[.A-Za-z_0-9])*"
      part[3] = "^\"([^\"\\\\]|\\\\.)*\""
      part[4] = "^\047([^\047\\\\]|\\\\.)*\047"
      part[5] = "^(<<<|>>>|<<=|>>=|[.][.][.]|->|[+][+]|--|<<|>>|&&|[|][|]|::|##|[-+*/%&|^<>=!]=)"
    }
    in_comment { if (!sub(/^.*\*\//, "")) next; in_comment = 0 }
    /^#include/ { next }
    {
      while (sub(/^[ \t\\]+/, "") || $0 != "") {
        if ($0 == "" || /^\/\//) break
        if (/^\/\*/) {
          if (sub(/^\/\*([^*]|\*+[^*\/])*\*+\//, "")) continue
          in_comment = 1
          break
        }
        length_here = 1
        for (i = 1; i <= 5; i++) if (match($0, part[i])) { length_here = RLENGTH; break }
        $0 = substr($0, length_here + 1)
        count++
      }
    }
    END { print count }' "$1"
}

printf '%-15s %12s %12s %8s\n' program 'plain CUDA' 'with gpukit' ratio
for program; do
  name=${program##*/} source=tests/lessons/prototypes/${program##*/}
  "$program" >"$temp/$name" 2>&1 || fail "$name fails: $(cat "$temp/$name")"
  case $name in *_plain) continue ;; esac
  [ -x "${program}_plain" ] || { fail "$name has no ${name}_plain" && continue; }
  "${program}_plain" >"$temp/plain" 2>&1 # which fails in its turn
  for output in "$temp/$name" "$temp/plain"; do sed 's/[0-9.]* ms.*/... ms/' "$output" >"$output.same"; done
  cmp -s "$temp/$name.same" "$temp/plain.same" ||
    fail "$name prints $(cat "$temp/$name"), and ${name}_plain $(cat "$temp/plain")"
  ! grep -n cudaMalloc "$source.cu" || fail "$source.cu calls cudaMalloc"

  before=$(tokens "${source}_plain.cu") after=$(tokens "$source.cu")
  printf '%-15s %12d %12d %7d%%\n' "$name" "$before" "$after" $((100 * after / before))
  [ $((3 * after)) -le $((2 * before)) ] || fail "$source.cu has more than two thirds of the tokens"
  grep -q "/$name\.cu).* | \[$before\](.*/${name}_plain\.cu) | $after |" examples/README.md ||
    fail "examples/README.md has no row with $name, $before and $after"
done
exit $failed
