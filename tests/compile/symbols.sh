#!/bin/sh
# What an object file must not show to those that it is linked with. nvcc's and the toolkit's own symbols are not ours.
#
#   symbols.sh named OBJECT         all that it defines for others has a name of gpukit's, or lies in its namespace; and
#                                   each host function has the name that says what is missing where it is missing
#   symbols.sh apart OBJECT OBJECT  no two of gpukit's definitions that the linker would merge
#   symbols.sh hidden LIBRARY       a shared library exports none of gpukit's
set -eu
action=$1
shift
defined() { nm --defined-only --extern-only "$1" | awk 'NF == 3 { print $3 }' | sort -u; }

case $action in
named)
  # _ZN and the like, then the length of the outermost name and the name.
  ours='^gk_|^_Z(GV|TI|TS|TV)?Z?N?[VK]*[0-9]+gk_'
  defined "$1" | grep -Eq "$ours" || { echo "$1 defines nothing of gpukit's"; exit 1; }
  toolkit='^DW\.ref\.|^_ZN?(S[tabsiod]|K?St)|^_ZN(19cudaLaunchConfig_st|4dim3)|__device_stub__Z[A-Z]*[0-9]+gk_'
  toolkit="$toolkit|^__cudaRegisterLinkedBinary|^__fatbinwrap|^_ZN9__gnu_cxx"
  if defined "$1" | grep -Ev "$ours|$toolkit"; then
    echo "$1 defines the names above"
    exit 1
  fi
  if nm --defined-only "$1" | grep -E ' T _ZN[0-9]+gk_v[0-9]+_[0-9]+_[0-9]+gk_'; then
    echo "$1 defines the host functions above without GK__LABEL"
    exit 1
  fi
  ;;
apart)
  a=$(mktemp) b=$(mktemp)
  trap 'rm -f "$a" "$b"' EXIT
  for object; do nm --defined-only "$object" | grep -q gk_ || { echo "$object has nothing of gpukit's"; exit 1; }; done
  defined "$1" | grep gk_ >"$a" || : # with GPUKIT_STATIC nothing is for others
  defined "$2" | grep gk_ >"$b" || :
  if comm -12 "$a" "$b" | grep .; then
    echo "$1 and $2 both define the above"
    exit 1
  fi
  ;;
hidden)
  if nm -D --defined-only "$1" | grep gk_; then
    echo "$1 exports the above"
    exit 1
  fi
  ;;
esac
