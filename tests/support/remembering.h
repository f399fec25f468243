/* An error handler that remembers the last error, for the length of a block. Include it after gpukit.cuh. */
#ifndef REMEMBERING_H
#define REMEMBERING_H

#include <string>

struct remembering {
  int calls = 0, line = 0, code = 0;
  std::string file, expr, name, message, detail, hint;
  remembering() { gk_set_error_handler(remember, this); }
  remembering(const remembering &) = delete;
  ~remembering() { gk_set_error_handler(NULL, NULL); }
  static void remember(const gk_error *e, void *user) {
    remembering *r = static_cast<remembering *>(user);
    r->calls++;
    r->line = e->line, r->code = e->code;
    r->file = e->file, r->expr = e->expr, r->name = e->name, r->message = e->message;
    r->detail = e->detail, r->hint = e->hint;
  }
};

#endif
