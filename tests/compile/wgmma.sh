#!/bin/sh
# wgmma.sh LOG OBJECT command...   fails where ptxas said in LOG that it makes the products of Hopper's tensor cores wait
# for each other, or leaves registers where they are (notes C7507 to C7520), which is no warning to it. Before, it has to
# say so of a kernel for which that is true: what the command compiles into OBJECT.
set -u
log=$1 object=$2
shift 2
wrong='C75[0-9][0-9]|Potential Performance Loss|serialized'

said=$("$@" -o "$object" 2>&1)
if ! printf '%s\n' "$said" | grep -E "$wrong" >/dev/null; then
  printf 'no complaint about a kernel that cannot overlap its products:\n%s\n' "$said"
  exit 1
fi
notes=$(grep -E "$wrong" "$log")
[ "$notes" ] || exit 0
printf '%s\n' "$notes"
exit 1
