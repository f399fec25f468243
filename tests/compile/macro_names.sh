#!/bin/sh
# macro_names.sh FOLDER   writes what macro_names.cu includes around the header: macro_names_before.h makes a macro of each
#                         name that the manual promises not to mind (all of one and two capitals, all of one letter, and
#                         the words below), and macro_names_after.h ends the compilation if one is lost, and removes them.
set -eu
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
{ cat "$1/macro_names" && printf '%s\n' $calls copy; } |
  sed 's/.*/#ifndef &\n#error "& is lost"\n#endif\n#undef &/' >"$1/macro_names_after.h"
