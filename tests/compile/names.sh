#!/bin/sh
# Compares the public names in gpukit.cuh, all words that begin with gk_ or GK_ but not with gk__ or GK__, with the list in
# the manual's chapter API. There a/b/c stands for alternatives of what follows the last _ of the name before the first /,
# or, where an alternative has as many parts as the name, of as many parts. C's typed calls, made by a macro that ends
# their names with the type, are not compared. Names of errors that the compiler is to show begin with gk_ERROR_.
set -u
header=${1:-gpukit.cuh}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

sed -n '/^ \* API /,/^ \* GUARANTEES/p' "$header" | grep -oE '(gk|GK)_[A-Za-z0-9_/]+' | awk -F/ '
  {
    print $1
    for (i = 2; i <= NF; i++) {
      stem = $1
      for (parts = split($i, part, "_"); parts > 0; parts--) sub(/_[^_]*$/, "", stem)
      print stem "_" $i
    }
  }' | sort -u >"$folder/listed"

# Without comments: what stands between /* and */, also where that is a line of its own.
awk '
  { line = $0; text = "" }
  {
    while (line != "") {
      if (inside) {
        at = index(line, "*/")
        if (!at) break
        line = substr(line, at + 2); inside = 0
      } else {
        at = index(line, "/*")
        if (!at) { text = text line; break }
        text = text substr(line, 1, at - 1); line = substr(line, at + 2); inside = 1
      }
    }
    print text
  }' "$header" | sed 's/"[^"]*"//g; s/[A-Za-z0-9_]*##//g' | grep -oE '(^|[^A-Za-z0-9_])(gk|GK)_[A-Za-z0-9_]+' | sed 's/^[^gG]//' |
  grep -vE '^(gk|GK)__|^gk_ERROR_|_$' | sort -u >"$folder/declared"

status=0
for name in $(comm -23 "$folder/declared" "$folder/listed"); do
  echo "$name is declared, but the manual does not list it" && status=1
done
for name in $(comm -13 "$folder/declared" "$folder/listed"); do
  # Made by a macro of the header, as gk_reduce_##name by GK__REDUCE_BY(sum).
  grep -q "${name%_*}_##" "$header" && grep -qE "^GK__[A-Z_]+\(.*${name##*_}[,)]" "$header" && continue
  echo "$name is in the manual, but not declared" && status=1
done
exit $status
