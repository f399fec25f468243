# What scripts share that try `make cpu`:  . tests/standin/tries.sh
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT
failed=0
# cpu FILE: what it says is in $temp/out
cpu() { make -s cpu FILE="$1" >"$temp/out" 2>&1; }
# fail TEXT: shows that, and what was said
fail() {
  echo "$*:"
  sed 's/^/    /' "$temp/out" | head -n 20
  failed=1
}
