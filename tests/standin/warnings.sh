#!/bin/sh
# `make cpu` says of a program what nvcc says, and no more: nothing of parentheses, comments, the order of members or
# comparisons of signed with unsigned, but a function without its return and a format that does not fit.
set -u
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT

cat >"$temp/silent.cu" <<'END'
#include <stdio.h>
#include <string.h>
/* a comment /* in a comment */
struct node {
  int value;
  node *next;
};
class timer {
  double begin, end;
public:
  timer() : end(0), begin(0) {}
  double get() { return end - begin; }
};
__global__ void fill(int *p, int n, bool go, int unused) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, x;
  if (go) x = 1;
  if (i < n & go) p[i] = x;
}
int main(int argc, char **argv) {
  int n = 64, *p, table[256] = {0};
  unsigned count = 0;
  char name[8], c = 'a';
  cudaMalloc((void **)&p, n * sizeof(int));
  fill<<<1, 64>>>(p, n, argc > 0, 0);
  if (argc > 2 && argc < 9 || n < 0) return 1;
  for (int i = 0; i < n; i++) count++;
    if (count != n) return 1;
  if (n > 0)
    if (count == 0) return 1;
    else n += table[c];
  strncpy(name, "a long name", 8);
  while (n = n / 2);
  timer t;
  memset(&t, 0, sizeof t);
  switch (n) {
  case 0: n = 1;
  case 1: n = 2;
  }
  cudaFree(p);
  return t.get() != 0;
}
END
printf '#include <stdio.h>\nint f(int x) { if (x) return 1; }\nint main() { printf("%%d", 1.0); }\n' >"$temp/named.cu"

failed=0
make -s cpu FILE="$temp/named.cu" >"$temp/named" 2>&1
make -s cpu FILE="$temp/silent.cu" >"$temp/out" 2>&1 || failed=1
[ ! -s "$temp/out" ] || failed=1
grep -q 'Wreturn-type' "$temp/named" && grep -q 'Wformat' "$temp/named" || failed=1
[ $failed = 0 ] || cat "$temp/out" "$temp/named"
exit $failed
