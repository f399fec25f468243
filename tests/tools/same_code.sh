#!/bin/sh
# Compares the machine code that gpukit.cuh compiles to at two commits: same_code.sh [-q] OLD [NEW]. Without NEW, the
# header in the working tree is compared with that at OLD. Kernels are matched by their code and not by their names, so
# renaming or moving things is no difference. Prints the kernels whose code only one of the two has. The exit status is
# 0 if the code is the same, 1 if it differs, and 2 if there was nothing to compare: wrong arguments, no nvcc or
# binutils, or a header that does not compile.
#
# The instances are those of tests/tools/same_code.cu, as it is in the working tree, for each architecture below; -q takes
# fewer of both. Of a kernel these count: its instructions, its banks of constants (bank 0 is the parameters), and its
# static shared memory. Bank 4 does not, as it holds addresses. The number of registers is not compared by itself.
#
#   NVCC        the compiler, by default of the PATH or of /usr/local/cuda
#   NVCCFLAGS   further flags for both sides
#   JOBS        how many compilations run at once (default 2)
#
# Cubins are kept in build/same-code, under the hash of the header, the instances, the flags and the compiler's version.
set -u
export LC_ALL=C
# What takes longest to compile comes first.
archs='90a 90 80 75'
parts='matmul_ex_f16 matmul_f16 matmul_bf16 matmul_ex_f32 matmul_f32 matmul_f64 rows scan reduce host arrays device'
quick_archs='90a 80'
quick_parts='matmul_f16 matmul_f32 arrays device'
instances=tests/tools/same_code.cu cache=${BUILD:-build}/same-code

fail() {
  echo "same_code.sh: $*" >&2
  exit 2
}

# kernels CUBIN: a line for each kernel, its hash and its name. A range OFFSET:SIZE, in hexadecimal, is a section's place
# in the file.
kernels() {
  readelf -SW "$1" 2>/dev/null | sed -n 's/^ *\[ *[0-9]*\] \(\.[^ ]*\) .* \([0-9a-f]\{6,\}\) \([0-9a-f]\{6,\}\) .*/\1 \2:\3/p' |
    awk '
      $1 ~ /^\.text\./ { names[++kernel_count] = substr($1, 7) }
      { range[$1] = $2 }
      END {
        for (i = 1; i <= kernel_count; i++) {
          line = names[i] " " range[".text." names[i]]
          for (bank = 0; bank < 18; bank++) {
            section = ".nv.constant" bank "." names[i]
            if (bank != 4 && section in range) line = line " " range[section]
          }
          section = ".nv.shared." names[i]
          if (section in range) line = line " shared" range[section]
          print line
        }
      }' |
    while read -r name ranges; do
      hash=$(for range in $ranges; do
        case $range in
        shared*) echo "${range#*:} bytes of shared memory" ;; # no bytes of it are in the file
        *) tail -c "+$((0x${range%:*} + 1))" "$1" | head -c "$((0x${range#*:}))" ;;
        esac
      done | sha256sum | cut -c 1-16)
      echo "$hash $name"
    done | c++filt -p | sed 's/(anonymous namespace):://g; s/gk_v[0-9]*_[0-9]*_[0-9]*[a-z0-9_]*:://g'
}

# one FOLDER SIDE ARCH PART: the kernels of FOLDER/SIDE/gpukit.cuh go to FOLDER/SIDE.ARCH.PART.
if [ "${1-}" = one ]; then
  header=$2/$3 arch=$4 part=$5 made=$2/$3.$4.$5
  flags="-std=c++17 -O3 -DPART_$part -gencode arch=compute_$arch,code=sm_$arch ${NVCCFLAGS-}"
  key=$({ cat "$header/gpukit.cuh" "$instances"; echo "$flags $COMPILER"; } | sha256sum | cut -c 1-40)
  if [ ! -f "$cache/$key.cubin" ]; then
    # shellcheck disable=SC2086 # flags are words
    "$NVCC" $flags -I "$header" -cubin -o "$made.cubin" "$instances" >"$made.log" 2>&1 || {
      echo "$3: $instances, part $part, does not compile for sm_$arch"
      cat "$made.log"
      exit 255 # no further ones
    } >&2
    mv "$made.cubin" "$cache/$key.cubin"
  fi
  kernels "$cache/$key.cubin" >"$made"
  [ -s "$made" ] && exit 0
  echo "$3: part $part has no kernels for sm_$arch" >&2
  exit 255
fi

if [ "${1-}" = -q ]; then
  parts=$quick_parts archs=$quick_archs
  shift
fi
[ $# -eq 1 ] || [ $# -eq 2 ] || fail 'which commits? same_code.sh [-q] OLD [NEW]'
old=$1 new=${2-}
: "${NVCC:=$(PATH="$PATH:/usr/local/cuda/bin" command -v nvcc)}"
COMPILER=$("$NVCC" --version 2>/dev/null) || fail 'nvcc is not here'
export NVCC COMPILER
for tool in readelf c++filt; do
  command -v $tool >/dev/null || fail "$tool is not here; it comes with binutils"
done

mkdir -p "$cache" || exit 2
folder=$(mktemp -d "$cache/work.XXXXXX") || exit 2
trap 'rm -rf "$folder"' EXIT
trap 'exit 2' INT TERM

# header SIDE COMMIT
header() {
  mkdir -p "$folder/$1"
  git show "$2:gpukit.cuh" >"$folder/$1/gpukit.cuh" || fail "there is no gpukit.cuh at $2"
}
header old "$old"
if [ "$new" ]; then
  header new "$new"
else
  mkdir -p "$folder/new"
  cp gpukit.cuh "$folder/new/" || exit 2
fi
if cmp -s "$folder/old/gpukit.cuh" "$folder/new/gpukit.cuh"; then
  echo 'same code: the headers are the same'
  exit 0
fi

for arch in $archs; do
  for part in $parts; do
    echo "$folder old $arch $part"
    echo "$folder new $arch $part"
  done
done | xargs -n 4 -P "${JOBS:-2}" "$0" one || exit 2

status=0 same=
for arch in $archs; do
  for side in old new; do sort -u "$folder/$side.$arch".* >"$folder/$side.$arch"; done
  if awk -v arch="sm_$arch" '
    { code = $1; name = substr($0, 18) }
    FNR == NR { olds[code]++; old[code, olds[code]] = name; next }
    { news[code]++; new[code, news[code]] = name }
    END {
      for (code in olds) for (i = news[code] + 1; i <= olds[code]; i++) only_old[old[code, i]] = 1
      for (code in news) for (i = olds[code] + 1; i <= news[code]; i++) only_new[new[code, i]] = 1
      for (name in only_old)
        print arch, name in only_new ? "differs: " : "only old:", name
      for (name in only_new)
        if (!(name in only_old)) print arch, "only new:", name
    }' "$folder/old.$arch" "$folder/new.$arch" | sort >"$folder/differences" && [ -s "$folder/differences" ]; then
    cat "$folder/differences"
    status=1
  else
    same="$same${same:+, }$(wc -l <"$folder/new.$arch") kernels for sm_$arch"
  fi
done
[ -z "$same" ] || echo "same code: $same"
exit $status
