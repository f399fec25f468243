/* The main of a program made of parts: runs them, each twice, since the first may have left something behind. It does
 * not know gpukit. The argument is how many there have to be. */
#include <stdio.h>
#include <stdlib.h>
#include "register.h"

namespace {
const int most = 16;
part_check checks[most];
const char *files[most];
int parts;
} // namespace

void part_add(part_check check, const char *file) {
  if (parts < most) checks[parts] = check, files[parts] = file;
  parts++;
}

int main(int argc, char **argv) {
  const int wanted = argc > 1 ? atoi(argv[1]) : 0;
  int failed = parts != wanted;
  if (failed) printf("%d parts, not %d\n", parts, wanted);
  for (int i = 0; !failed && i < 2 * parts; i++) {
    const char *const wrong = checks[i % parts]();
    if (!wrong) continue;
    printf("part %d (%s): %s\n", i % parts, files[i % parts], wrong);
    failed = 1;
  }
  return failed;
}
