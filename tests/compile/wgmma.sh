#!/bin/sh
# wgmma.sh OBJECT command...   compiles with the command, and fails where ptxas says that it makes the products of Hopper's
# tensor cores wait for each other (notes C7507 to C7520), which is no warning to it. First it has to say so of a kernel
# for which that is true.
set -u
object=$1
shift
said() { "$@" -o "$object" 2>&1 || echo 'cannot be compiled'; }
wrong='C75[0-9][0-9]|serialized|cannot be compiled'

if ! said "$@" -DSERIALISED | grep -E 'C75[0-9][0-9]|serialized' >/dev/null; then
  echo 'no complaint about a kernel that cannot overlap its products:'
  said "$@" -DSERIALISED
  exit 1
fi
notes=$(said "$@" | grep -E "$wrong")
[ "$notes" ] || exit 0
printf '%s\n' "$notes"
exit 1
