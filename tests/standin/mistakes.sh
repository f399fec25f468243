#!/bin/sh
# Makes each mistake of README's table, and looks for what the table says is said: mistakes.sh PLAIN ASAN RACES, three
# builds of tests/standin/mistakes/mistakes.cu. The parts of a message, between two …, have to come in this order; ends of lines
# and the spaces about them count as one space. AddressSanitizer's own words, the last part with ASAN=1, may also come first,
# as they do where clang has built.
set -u
plain=$1 asan=$2 races=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
ulimit -c 0

# NAME<tab>SEEN WITH<tab>MESSAGE, one line for each row. The name may hold code; the message is code as a whole.
awk '/^\| mistake \| seen with \|/ { on = 1; next }
     on && !/^\|/ { exit }
     on && !/^\|---/ {
       sub(/^\| */, ""); sub(/ *\|$/, "")
       count = split($0, cell, / *\| */)
       gsub(/`/, "", cell[2]); gsub(/^`|`$/, "", cell[3])
       print cell[1] "\t" cell[2] "\t" (count == 3 ? cell[3] : "")
     }' tests/cpu/README.md >"$folder/table"

failed=0 made=0
while IFS= read -r row; do
  name=$(printf '%s' "$row" | cut -f 1)
  with=$(printf '%s' "$row" | cut -f 2)
  message=$(printf '%s' "$row" | cut -f 3)
  program=$plain
  case $with in
  RACES=1) program=$races with= ;;
  ASAN=1) program=$asan with= ;;
  esac
  (env ${with:+"$with"} "$program" "$name" >"$folder/output" 2>&1 </dev/null; :) 2>/dev/null
  made=$((made + 1))
  if ! MESSAGE=$message awk -v asan="$([ "$program" != "$asan" ] || echo 1)" '
      { sub(/^ +/, ""); sub(/ +$/, ""); text = text $0 " " }
      END {
        count = split(ENVIRON["MESSAGE"], part, / *… */)
        all = text
        for (i = 1; i <= count; i++) {
          if (part[i] == "") continue
          found = 1
          at = index(text, part[i])
          if (!at && asan && i == count && index(all, part[i])) continue
          if (!at) { print "    not said: " part[i]; exit 1 }
          text = substr(text, at + length(part[i]))
        }
        exit !found
      }' "$folder/output"; then
    failed=$((failed + 1))
    echo "README says otherwise of: $name"
    sed 's/^/    /' "$folder/output" | head -n 12
  fi
done <"$folder/table"

echo "$made mistakes, $failed of which say something else than README"
[ "$made" -ge 20 ] && [ "$failed" -eq 0 ]
