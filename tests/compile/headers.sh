#!/bin/sh
# headers.sh FOLDER   writes the headers that drop-in cases include:
#
#   macro_names_before.h   makes a macro of each name that the manual promises not to mind (all of one and two capitals,
#                          all of one letter, and the words below); macro_names.cu includes it before the header
#   macro_names_after.h    ends the compilation if one of them is lost, and removes them
#   other/gpukit.cuh       another version of the header: another number, and sums that are products
set -eu
mkdir -p "$1/other"
letters='A B C D E F G H I J K L M N O P Q R S T U V W X Y Z'
words='a b c d e f g h i j k l m n o p q r s t u v w x y z
  size width height rows cols row col block grid tile threads warp lane warp_size step count half first zero kernels mask
  near far small in out to at on as bs op fn ld l2 ms ns Op To CHECK CUDA_CHECK WARP_SIZE BLOCK_SIZE TILE TILE_DIM
  TILE_SIZE BLOCK THREADS ROWS COLS WIDTH HEIGHT SIZE COUNT'
calls='min max swap MIN MAX'
{
  for one in $letters; do
    echo "$one"
    for two in $letters; do echo "$one$two"; done
  done
  printf '%s\n' $words
} >"$1/macro_names"
{
  sed 's/.*/#define & this macro leaked/' "$1/macro_names"
  for name in $calls; do echo "#define $name(...) this macro leaked"; done
  echo '#define copy(a, b, c) this macro leaked'
} >"$1/macro_names_before.h"
for name in $(cat "$1/macro_names") $calls copy; do
  printf '#ifndef %s\n#error "%s is lost"\n#endif\n#undef %s\n' "$name" "$name" "$name"
done >"$1/macro_names_after.h"
sed 's/\(define GPUKIT_VERSION_MINOR\) .*/\1 3/; s/gk__arithmetic<Acc>::add/gk__arithmetic<Acc>::mul/' gpukit.cuh \
  >"$1/other/gpukit.cuh"
: >"$1/headers"
