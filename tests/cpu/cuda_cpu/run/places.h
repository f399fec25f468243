/* Places in the source: the lines of an address in the code, and those where a thread stands. They come from addr2line,
 * and those of inlined functions from -g. */
#pragma once
#pragma GCC system_header

#include <unistd.h>
#include "block.h"
#include "symbols.h"

namespace cuda_cpu {

/* file:line of a place in the code, the first one outside the stand-in; false if there is none, or nothing is known. */
CUDA_CPU_QUIET bool add_place(text *what, uint32_t where) {
  char command[128], line[1024], own[1024], function[512];
  /* a return address: the call is before it */
  uintptr_t offset = where - 1;
  snprintf(own, sizeof own, "%s", __FILE__);
  if (char *inner = strstr(own, "cuda_cpu/")) *inner = 0; /* tests/cpu/ stays */
  snprintf(command, sizeof command, "addr2line -i -e /proc/%d/exe 0x%zx 2>/dev/null", static_cast<int>(getpid()),
           static_cast<size_t>(offset));
  FILE *pipe = popen(command, "r");
  bool found = false, known = false;
  while (pipe && fgets(line, sizeof line, pipe)) {
    char *end = strpbrk(line, "\n");
    if (end) *end = 0;
    if (char *more = strstr(line, " (discriminator")) *more = 0;
    known = known || line[0] != '?';
    if (found || line[0] == '?' || !strncmp(line, own, strlen(own)) || strstr(line, "cuda_cpu/")) continue;
    char here[1024];
    size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;
    bool inside = length && !strncmp(line, here, length) && line[length] == '/';
    add(what, "%s", inside ? line + length + 1 : line);
    found = true;
  }
  if (pipe) pclose(pipe);
  if (found) return true;
  if (const symbol *f = symbol_around(symbols()->functions, symbols()->function_count, symbols()->base + offset))
    plain_name(f->name, function, sizeof function);
  else
    snprintf(function, sizeof function, "0x%zx", static_cast<size_t>(offset));
  add(what, known ? "%s of the stand-in" : "%s (for lines: -g, and addr2line of binutils)", function);
  return false;
}

} // namespace cuda_cpu
