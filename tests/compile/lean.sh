#!/bin/sh
# lean.sh OBJECT command...   compiles with the command a file that reduces and scans, and fails if the object has
# kernels of products, which would take their time in every file. It has to have those of a reduction, or else nothing
# was looked at.
set -u
object=$1
shift
"$@" -o "$object" || exit 1
kernels=$(nm -C "$object" | grep -o 'gk__[a-z0-9_]*_\(kernel\|mark\)' | sort -u)
case $kernels in
*gk__reduce_kernel*) ;;
*) echo "no kernel of a reduction in $object" && exit 1 ;;
esac
others=$(printf '%s\n' "$kernels" | grep -v -x -E 'gk__(reduce|scan)_kernel')
[ "$others" ] || exit 0
printf 'kernels of products in a file without any: %s\n' "$others"
exit 1
