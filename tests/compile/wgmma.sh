#!/bin/sh
# wgmma.sh OBJECT   fails where ptxas said in OBJECT.log that it makes the products of Hopper's tensor cores wait for each
#                   other, or leaves registers where they are (notes C7507 to C7520), which is no warning to it. Before, it
#                   has to say so of a kernel for which that is true: that of wgmma.cu.
set -u
folder=${BUILD:-build}/compile log=$1.log
wrong='C75[0-9][0-9]|Potential Performance Loss|serialized'

nvcc=$(sed -n 's/^nvcc //p' "$folder/flags")
said=$($nvcc -std=c++17 -gencode arch=compute_90a,code=sm_90a -c tests/compile/wgmma.cu -o "$folder/wgmma.o" 2>&1)
if ! printf '%s\n' "$said" | grep -E "$wrong" >/dev/null; then
  printf 'no complaint about a kernel that cannot overlap its products:\n%s\n' "$said"
  exit 1
fi
notes=$(grep -E "$wrong" "$log")
[ "$notes" ] || exit 0
printf '%s\n' "$notes"
exit 1
