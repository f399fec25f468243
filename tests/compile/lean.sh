#!/bin/sh
# Compiles a file that reduces and scans, and fails if the object has kernels of products, which would take their time in
# every file. It has to have those of a reduction, or else nothing was looked at.
set -u
folder=${BUILD:-build}/compile
object=$folder/lean.o
nvcc=$(sed -n 's/^nvcc //p' "$folder/flags")
$nvcc -std=c++17 -gencode arch=compute_90a,code=sm_90a -c tests/bench/compile/called.cu -o "$object" || exit 1
kernels=$(nm -C "$object" | grep -oE 'gk__[a-z0-9_]*_(kernel|mark)' | sort -u)
case $kernels in
*gk__reduce_kernel*) ;;
*) echo "no kernel of a reduction in $object" && exit 1 ;;
esac
others=$(printf '%s\n' "$kernels" | grep -v -x -E 'gk__(reduce|scan)_kernel')
[ "$others" ] || exit 0
printf 'kernels of products in a file without any: %s\n' "$others"
exit 1
