#!/bin/sh
# registers.sh TARGET   compiles registers.cu for a target, and fails if a kernel of products has no launch bounds, or
# takes more registers than the blocks have that its bounds promise on one multiprocessor: 65536 from sm_75 on, given out
# to warps by 256. Where that is too few for what a kernel holds, it spills.
set -u
target=$1
folder=${BUILD:-build}/compile/registers_$target
most_spilled=256 # bytes of a thread
rm -rf "$folder"
mkdir -p "$folder"
nvcc=$(sed -n 's/^nvcc //p' "${BUILD:-build}/compile/flags")
$nvcc -std=c++17 -arch="$target" -cubin --keep --keep-dir "$folder" -Xptxas -v tests/compile/registers.cu \
  -o "$folder/registers.cubin" 2>"$folder/log" || { grep -v '^ptxas info' "$folder/log"; exit 1; }
awk -v most_spilled="$most_spilled" '
  function number(pattern) { match($0, pattern); return substr($0, RSTART + 5) + 0 }
  FNR == NR && /\.entry/ { sub(/.*\.entry /, ""); sub(/\(.*/, ""); name = $1 }
  FNR == NR && /^\.maxntid/ { gsub(/[^0-9]+/, " "); threads[name] = $1 * ($2 ? $2 : 1) * ($3 ? $3 : 1) }
  FNR == NR && /^\.minnctapersm/ { blocks[name] = $2 }
  FNR == NR { next }
  /Compiling entry function/ { split($0, quoted, "\047"); name = quoted[2] }
  /bytes spill stores/ { split($0, words, ","); spilled = words[2] + 0 }
  /Used [0-9]+ registers/ {
    kernels++
    registers = number("Used [0-9]+")
    at_once = blocks[name] > 1 ? blocks[name] : 1
    all = int((registers + 7) / 8) * 256 * int((threads[name] + 31) / 32) * at_once
    what = ""
    if (!threads[name] && name !~ /gk__(code_kernel|wgmma_code_probe)/) what = "no launch bounds" # of one warp at most
    if (registers > 255 || all > 65536) what = registers " registers, " threads[name] " threads, " at_once " blocks"
    if (spilled > most_spilled) what = spilled " bytes spilled"
    if (what) { print what ": " name; wrong++ }
  }
  END {
    if (kernels < 45) { print kernels + 0 " kernels only"; wrong++ }
    exit wrong > 0
  }' "$folder/registers.ptx" "$folder/log"
