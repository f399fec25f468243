/* Places in the source: the lines of an address in the code, and those where a thread stands. They come from addr2line,
 * and those of inlined functions from -g. */
#pragma once
#pragma GCC system_header

#include <unistd.h>
#include <unwind.h>
#include "block.h"
#include "symbols.h"

namespace cuda_cpu {

/* file:line of a place in the code: the first one outside the stand-in of those of inlined functions, or the last, which
 * is that of the function itself. False if there is none, or nothing is known. */
CUDA_CPU_QUIET bool add_place(text *what, uint32_t where, bool last = false) {
  char command[128], line[1024], own[1024], function[512];
  const size_t before = what->length;
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
    if ((found && !last) || line[0] == '?' || !strncmp(line, own, strlen(own)) || strstr(line, "cuda_cpu/")) continue;
    char here[1024];
    size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;
    bool inside = length && !strncmp(line, here, length) && line[length] == '/';
    what->length = before;
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

/* The running thread's calls, innermost first. */
CUDA_CPU_QUIET void note_calls(call_places *places) {
  places->count = 0;
  _Unwind_Backtrace(
      [](_Unwind_Context *context, void *to) {
        call_places *p = static_cast<call_places *>(to);
        int exact = 0; /* where a signal has come, and not a return address */
        const uintptr_t address = static_cast<uintptr_t>(_Unwind_GetIPInfo(context, &exact));
        p->address[p->count++] = address + (exact != 0);
        return p->count < most_places ? _URC_NO_REASON : _URC_END_OF_STACK;
      },
      places);
}

/* The kernel's own line among these calls, if it is not the one that has been named: the lines of a library's functions
 * say little to its callers. */
CUDA_CPU_UNTRACED CUDA_CPU_RARE void add_kernel_line(text *what, const launch *job, const call_places &places,
                                                     const char *file, int line) {
  const symbol_table *t = symbols();
  const char *slash = strrchr(file, '/');
  text named = {}, own = {};
  add(&named, "/%s:%d", slash ? slash + 1 : file, line);
  for (int i = 0; i < places.count; i++) {
    const symbol *f = symbol_around(t->functions, t->function_count, places.address[i] - 1);
    if (!f || f->address != reinterpret_cast<uintptr_t>(job->kernel)) continue;
    add(&own, "/");
    const bool found = add_place(&own, static_cast<uint32_t>(places.address[i] - t->base), true);
    if (found && strcmp(strrchr(own.buffer, '/'), named.buffer)) add(what, ", called at %s", own.buffer + 1);
    return;
  }
}

/* The same of a thread that waits. Its fiber answers in suspend(). */
CUDA_CPU_UNTRACED CUDA_CPU_RARE void add_kernel_line_of(text *what, worker *w, int thread, const char *file, int line) {
  if (w->stands[thread] == w->running)
    note_calls(&w->places);
  else {
    w->asker = w->running;
    go(w, w->stands[thread]);
  }
  add_kernel_line(what, w->job, w->places, file, line);
}

} // namespace cuda_cpu
