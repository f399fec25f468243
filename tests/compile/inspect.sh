#!/bin/sh
# Looks at what the header is and compiles to, and fails with what should not be there:  inspect.sh WHAT ARGUMENT...
#
#   names                     public names that the manual's chapter API does not list, or that only it has; and tests
#                             that use names inside the header but by tests/support/hooks.h
#   macros cpu|nvcc           macros without a name of gpukit's that the header adds, removes or changes
#   named OBJECT              names that it defines for others, that are not gpukit's and not in its namespace; and host
#                             functions without the name that says what is missing where they are
#   apart OBJECT OBJECT       definitions of gpukit's that the linker would merge
#   hidden LIBRARY            names of gpukit's that a shared library exports
#   lean                      kernels of products in a file that reduces and scans: they would take time in every file
#   bench                     errors in the sources of the bench, which are compiled as far as PTX that is not optimised
#   overlapping OBJECT        notes of ptxas in OBJECT.log (C7507 to C7520) that it makes the products of Hopper's
#                             tensor cores wait for each other, which is no warning to it; and kernels of these products
#                             that spill registers, which made short ones take 1.3 times as long
#   registers TARGET OBJECT   kernels of products, whose PTX is in the folder OBJECT.kept, without launch bounds, or that
#                             take more registers than the blocks have that their bounds promise on one multiprocessor:
#                             65536 from sm_75 on, given out to warps by 256. Where that is too few for what a kernel
#                             holds, it spills. And kernels that the host launches, but the GPU's code does not have, or
#                             the other way round, because a template argument differs between them. sm_86 and sm_89
#                             share the PTX of sm_80, so conditions in the header that tell them apart are found, too
set -eu
export LC_ALL=C
action=$1
shift
. tests/functions.sh
folder=$BUILD/compile
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
words() { tr -c "A-Za-z0-9_$1" '\n' | sort -u; }
defined() { nm --defined-only --extern-only "$1" | awk 'NF == 3 { print $3 }' | sort -u; }
# no WHAT: there may be no line of input
no() {
  cat >"$temp/found"
  [ ! -s "$temp/found" ] || { echo "$1:" && cat "$temp/found" && exit 1; }
}
# some TEXT FILE: without it nothing was looked at
some() { grep -q -e "$1" "$2" || { echo "there is no $1" && exit 1; }; }

case $action in
names)
  # In the manual, a/b/c stands for alternatives of what follows the last _ of the name before the first /, or, where an
  # alternative has as many parts as the name, of as many parts.
  sed -n '/^ \* API /,/^ \* GUARANTEES/p' gpukit.cuh | words / | awk -F/ '/^(gk|GK)_/ {
    print $1
    for (i = 2; i <= NF; i++) {
      stem = $1
      for (parts = split($i, part, "_"); parts > 0; parts--) sub(/_[^_]*$/, "", stem)
      print stem "_" $i
    }
  }' | sort -u >"$temp/listed"
  # Without comments, texts and what macros paste. Errors that the compiler is to show are named gk_ERROR_.
  tr '\n' '\r' <gpukit.cuh | awk '{
    parts = split($0, part, "/[*]")
    printf "%s", part[1]
    for (i = 2; i <= parts; i++) print substr(part[i], index(part[i], "*/") + 2)
  }' | tr '\r' '\n' | sed 's/"[^"]*"//g; s/[A-Za-z0-9_]*##//g' | words '' | grep -E '^(gk|GK)_' |
    grep -vE '^(gk|GK)__|^gk_ERROR_|_$' >"$temp/declared"
  comm -23 "$temp/declared" "$temp/listed" | no 'declared, but not in the manual'
  for name in $(comm -13 "$temp/declared" "$temp/listed"); do
    # Made by a macro of the header, as gk_reduce_##name by GK__REDUCE_BY(sum).
    grep -q "${name%_*}_##" gpukit.cuh && grep -qE "^GK__[A-Z_]+\(.*${name##*_}[,)]" gpukit.cuh || echo "$name"
  done | no 'in the manual, but not declared'
  grep -li gk__ tests/*/*.cu tests/*/*.h | sed '/^tests\/bench/d; /^tests\/compile/d; /^tests\/tools/d; /hooks.h$/d' |
    no 'these use names inside: tests/support/hooks.h has other names for them'
  ;;
macros)
  case $1 in
  cpu) list="$(setting cpu) -x c++ -E -dM" ;;
  nvcc) list="$(setting nvcc_is) -I . -E -Xcompiler=-dM" ;;
  esac
  for name in math stdarg stddef stdint stdio stdlib string; do echo "#include <$name.h>"; done >"$temp/plain.cu"
  printf '#include <%s>\n' atomic type_traits cuda_runtime.h >>"$temp/plain.cu"
  { cat "$temp/plain.cu"; printf '#define GPUKIT_IMPLEMENTATION\n#include "gpukit.cuh"\n'; } >"$temp/gpukit.cu"
  for file in plain gpukit; do $list "$temp/$file.cu" | grep '^#define' | sort >"$temp/$file"; done
  some '^#define GK_CHECK(' "$temp/gpukit"
  comm -3 "$temp/plain" "$temp/gpukit" | sed '/^[[:space:]]*#define GK_/d; /^[[:space:]]*#define GPUKIT_/d' |
    no 'the header adds, removes or changes'
  ;;
named)
  # _ZN and the like, then the length of the outermost name and the name.
  ours='^gk_|^_Z(GV|TI|TS|TV)?Z?N?[VK]*[0-9]+gk_'
  toolkit='^DW\.ref\.|^_ZN?(S[tabsiod]|K?St)|^_ZN(19cudaLaunchConfig_st|4dim3)|__device_stub__Z[A-Z]*[0-9]+gk_'
  toolkit="$toolkit|^__cudaRegisterLinkedBinary|^__fatbinwrap|^_ZN9__gnu_cxx"
  defined "$1" >"$temp/all"
  some gk_ "$temp/all"
  grep -Ev "$ours|$toolkit" "$temp/all" | no "$1 defines"
  nm --defined-only "$1" | sed -n '/ T _ZN[0-9]*gk_v[0-9]*_[0-9]*_[0-9]*gk_/p' | no "$1 defines, without GK__LABEL"
  ;;
apart)
  for object; do
    nm --defined-only "$object" >"$temp/all"
    some gk_ "$temp/all"
  done
  # With GPUKIT_STATIC nothing is for others.
  for object; do defined "$object" | sed -n /gk_/p; done | sort | uniq -d | no "$* all define"
  ;;
hidden) nm -D --defined-only "$1" | sed -n /gk_/p | no "$1 exports" ;;
lean)
  $(setting nvcc) -std=c++17 -gencode arch=compute_90a,code=sm_90a -c tests/bench/compile/called.cu -o "$temp/lean.o"
  nm -C "$temp/lean.o" | words '' | sed -n '/^gk__.*_kernel$/p; /^gk__.*_mark$/p' >"$temp/all"
  some gk__reduce_kernel "$temp/all"
  sed '/^gk__reduce_kernel$/d; /^gk__scan_kernel$/d' "$temp/all" | no 'kernels of products in a file without any'
  ;;
bench)
  echo '#include <cublas_v2.h>' >"$temp/cublas.cu"
  $(setting nvcc) -E "$temp/cublas.cu" >"$temp/out" 2>&1 || { echo 'the headers of cuBLAS are not here' && exit 77; }
  for source in tests/bench/*.cu; do
    case $source in
    */test_* | */dist.cu) ;; # built by themselves
    *) $(setting nvcc) -std=c++17 -arch=compute_90a -Xcicc -O0 -DBENCH_BUILD='"none"' -ptx "$source" -o "$temp/bench.ptx" ;;
    esac
  done
  ;;
overlapping)
  notes='/C75[0-9][0-9]/p; /Potential Performance Loss/p; /serialized/p'
  $(setting nvcc) -std=c++17 -gencode arch=compute_90a,code=sm_90a -c tests/compile/wgmma.cu -o "$temp/wgmma.o" \
    >"$temp/log" 2>&1 || : # a kernel that cannot overlap its products
  sed -n "$notes" "$temp/log" >"$temp/notes"
  some . "$temp/notes"
  sed -n "$notes" "$1.log" | no 'products wait for each other'
  awk '/Compiling entry function/ { split($0, quoted, "\047"); name = quoted[2] }
    /bytes spill stores/ && name ~ /wgmma_kernel/ { split($0, part, ","); print part[2] + 0, name }' "$1.log" \
    >"$temp/spilled"
  some '^0 .*wgmma_kernel' "$temp/spilled"
  grep -v '^0 ' "$temp/spilled" | no 'bytes spilled'
  ;;
registers)
  grep -nE '__CUDA_ARCH__ *[<>=]+ *8[1-9]' gpukit.cuh | no 'their PTX is not that of sm_80'
  ptx=$2.kept/registers.ptx
  $(setting nvcc) -arch="$1" -cubin -Xptxas -v "$ptx" -o "$temp/cubin" >"$temp/log" 2>&1 ||
    { grep -v '^ptxas info' "$temp/log"; exit 1; }
  # Mangled names of the two differ, because the host's are static.
  instances() { c++filt | sed -n 's/^[^<]*::\(gk__[a-z0-9_]*_kernel<.*>\)(.*$/\1/p' | sort -u; }
  nm --defined-only "$2" | awk '$2 == "t" { print $3 }' | instances >"$temp/host"
  sed -n 's/.*\.entry \([A-Za-z0-9_]*\).*/\1/p' "$ptx" | instances >"$temp/device"
  some gk__mma_kernel "$temp/host"
  comm -3 "$temp/host" "$temp/device" | no "for the host or the GPU ($1) alone"
  awk -v most_spilled=256 '
    function number(pattern) { match($0, pattern); return substr($0, RSTART + 5) + 0 }
    FNR == NR && /\.entry/ { sub(/.*\.entry /, ""); sub(/\(.*/, ""); name = $1 }
    FNR == NR && /^\.maxntid/ { gsub(/[^0-9]+/, " "); threads[name] = $1 * ($2 ? $2 : 1) * ($3 ? $3 : 1) }
    FNR == NR && /^\.minnctapersm/ { blocks[name] = $2 }
    FNR == NR { next }
    /Compiling entry function/ { split($0, quoted, "\047"); name = quoted[2] }
    /bytes spill stores/ { split($0, part, ","); spilled = part[2] + 0 } # of a thread
    /Used [0-9]+ registers/ {
      kernels++
      registers = number("Used [0-9]+")
      at_once = blocks[name] > 1 ? blocks[name] : 1
      all = int((registers + 7) / 8) * 256 * int((threads[name] + 31) / 32) * at_once
      if (!threads[name]) print "no launch bounds:", name
      if (registers > 255 || all > 65536)
        print registers " registers, " threads[name] " threads, " at_once " blocks:", name
      if (spilled > most_spilled) print spilled " bytes spilled:", name
    }
    END { if (kernels < 45) print kernels + 0 " kernels only" }' "$ptx" "$temp/log" | no "for $1"
  ;;
*)
  echo "inspect.sh: there is no $action" && exit 1
  ;;
esac
