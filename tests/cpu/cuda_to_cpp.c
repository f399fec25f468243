/* Turns a CUDA source into C++ that a host compiler reads with the stand-in's headers:
 *
 *   cuda_to_cpp hw.cu hw.cpp && g++ -std=c++17 -I tests/cpu hw.cpp -pthread
 *
 * Only what C++ cannot parse is changed, each piece in its place, so that lines keep their numbers:
 *
 *   kernel<<<grid, block>>>(a, b)          CUDA_CPU_LAUNCH(2, kernel)(grid, block)(a, b)
 *   extern __shared__ float x[];           float (&x)[] = ::cuda_cpu::dynamic_shared();
 *   static __shared__ int n;               __shared__ int n;
 *   (void *)kernel                         ::cuda_cpu::as_pointer(kernel), which knows its parameters later
 *   __CUDA_ARCH__                          CUDA_CPU_ARCH, in code that runs on the device alone
 *   asm("mov.u32 %0, %%laneid;" : "=r"(n))   an error, as for all PTX
 *   #include <cub/cub.cuh>                 an error that ends the compilation: the stand-in has nothing of the kind
 *   #include "kernels.cuh"                 the translation of that file, if it has something to translate
 *
 * The text is taken apart into tokens as a compiler does it, so that strings, comments, numbers and shifts stay what
 * they are. The body of a macro is read by itself. A file that makes no sense (a launch without its end) is an error,
 * and then nothing is written. The C++ side of it is in cuda_cpu/triple.h. With CUDA_TO_CPP_NO_MAIN there is only the
 * function that translates a text, for tests. C99 and POSIX. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef CUDA_TO_CPP_NO_MAIN
#include <sys/stat.h>
#endif

#define NONE ((size_t)-1)

enum kind { kind_name, kind_number, kind_string, kind_operator };

struct token {
  size_t start, end;
  enum kind kind;
  int line;
  int directive; /* 0: in none; else which */
  size_t match;  /* of a bracket: the other one */
  size_t parent; /* the bracket that it stands in */
};

/* Text to put in place of start .. end. */
struct edit {
  size_t start, end, order;
  char text[64];
  char *longer; /* instead of text, if it is not NULL */
};

/* What the translation of a text asks about the files that it includes, with quotes or not. The answer, of malloc, is
 * what to include instead; NULL: the same. *changed: the file has been translated, and not only found. */
struct includes {
  char *(*find)(void *context, const char *name, size_t length, int quoted, int *changed);
  void *context;
};

struct translation {
  const char *text;
  size_t length;
  struct token *tokens;
  size_t count, capacity;
  struct edit *edits;
  size_t edit_count, edit_capacity;
  const struct includes *includes;
  int changed; /* it does not stay what it was */
  int uses_thrust;
  int failed_line; /* 0: none */
  char failure[200];
};

static void fail(struct translation *t, int line, const char *what) {
  if (t->failed_line) return;
  t->failed_line = line;
  snprintf(t->failure, sizeof t->failure, "%s", what);
}

/* Room for one more element; NULL: no memory. */
static void *grow(void *array, size_t count, size_t *capacity, size_t size) {
  size_t more = *capacity ? *capacity * 2 : 256;
  void *p;
  if (count < *capacity) return array;
  if (more > (size_t)-1 / size) return NULL;
  p = realloc(array, more * size);
  if (p) *capacity = more;
  return p;
}

/* --- tokens --- */

struct lexer {
  struct translation *t;
  size_t at;
  int line;
  int directive, directives; /* the running one, and how many there were */
  int line_has_token;        /* a # starts a directive only at the start of a line */
  size_t first_of_directive;
  int dead; /* nested #if within an #if 0; 0: the text counts */
};

static int is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}
static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_name_part(char c) { return is_name_start(c) || is_digit(c); }

static char peek(const struct lexer *l, size_t ahead) {
  return ahead < l->t->length - l->at ? l->t->text[l->at + ahead] : '\0';
}
static int at_end(const struct lexer *l) { return l->at >= l->t->length; }

static void step(struct lexer *l) {
  if (l->t->text[l->at++] == '\n') l->line++;
}
static void step_to(struct lexer *l, size_t end) {
  while (l->at < end) step(l);
}

/* The length of a backslash and the end of line after it, or 0. */
static size_t continuation(const struct lexer *l) {
  if (at_end(l) || peek(l, 0) != '\\') return 0;
  if (peek(l, 1) == '\n') return 2;
  return peek(l, 1) == '\r' && peek(l, 2) == '\n' ? 3 : 0;
}

static int token_is(const struct translation *t, size_t i, const char *text) {
  size_t n = strlen(text);
  return i != NONE && t->tokens[i].end - t->tokens[i].start == n && !memcmp(t->text + t->tokens[i].start, text, n);
}
static int is_any_of(const struct translation *t, size_t i, const char *const *words) {
  for (; *words; words++)
    if (token_is(t, i, *words)) return 1;
  return 0;
}

static void add_token(struct lexer *l, enum kind kind, size_t start, int line) {
  struct translation *t = l->t;
  struct token *tokens = (struct token *)grow(t->tokens, t->count, &t->capacity, sizeof *tokens);
  if (!tokens) {
    fail(t, line, "no memory");
    return;
  }
  t->tokens = tokens;
  t->tokens[t->count].start = start;
  t->tokens[t->count].end = l->at;
  t->tokens[t->count].kind = kind;
  t->tokens[t->count].line = line;
  t->tokens[t->count].directive = l->directive;
  t->tokens[t->count].match = t->tokens[t->count].parent = NONE;
  t->count++;
}

static void skip_line_comment(struct lexer *l) {
  while (!at_end(l) && peek(l, 0) != '\n') step_to(l, l->at + (continuation(l) ? continuation(l) : 1));
}
static void skip_block_comment(struct lexer *l) {
  step_to(l, l->at + 2);
  while (!at_end(l) && !(peek(l, 0) == '*' && peek(l, 1) == '/')) step(l);
  step_to(l, l->at + (at_end(l) ? 0 : 2));
}

/* From the quote to its partner. An end of line ends it too: there are apostrophes in the text of an #error. */
static void skip_quoted(struct lexer *l) {
  char quote = peek(l, 0);
  step(l);
  while (!at_end(l) && peek(l, 0) != '\n') {
    if (continuation(l))
      step_to(l, l->at + continuation(l));
    else if (peek(l, 0) == '\\' && l->at + 1 < l->t->length && peek(l, 1) != '\n')
      step_to(l, l->at + 2);
    else if (peek(l, 0) == quote) {
      step(l);
      return;
    } else
      step(l);
  }
}

/* From the quote after R; 0: this is not a raw string. */
static int skip_raw(struct lexer *l) {
  const char *text = l->t->text;
  size_t open = l->at + 1, delimiter = 0, end;
  while (open + delimiter < l->t->length && delimiter <= 16 && text[open + delimiter] != '(') {
    if (strchr(" )\\\t\v\f\n\r\"", text[open + delimiter])) return 0;
    delimiter++;
  }
  if (delimiter > 16 || open + delimiter >= l->t->length) return 0;
  for (end = open + delimiter + 1; end + delimiter + 1 < l->t->length; end++)
    if (text[end] == ')' && text[end + 1 + delimiter] == '"' && !memcmp(text + end + 1, text + open, delimiter)) {
      step_to(l, end + delimiter + 2);
      return 1;
    }
  step_to(l, l->t->length);
  return 1;
}

static void lex_number(struct lexer *l) {
  while (!at_end(l)) {
    char c = peek(l, 0), next = peek(l, 1);
    if ((c == 'e' || c == 'E' || c == 'p' || c == 'P') && (next == '+' || next == '-'))
      step_to(l, l->at + 2);
    else if (is_name_part(c) || c == '.' || (c == '\'' && is_name_part(next)))
      step(l);
    else
      return;
  }
}

static void lex_name_or_string(struct lexer *l) {
  static const char *const prefixes[] = {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R", NULL};
  size_t start = l->at, n;
  int line = l->line, i;
  while (!at_end(l) && is_name_part(peek(l, 0))) step(l);
  n = l->at - start;
  if (peek(l, 0) == '"' || peek(l, 0) == '\'')
    for (i = 0; prefixes[i]; i++)
      if (strlen(prefixes[i]) == n && !memcmp(l->t->text + start, prefixes[i], n)) {
        if (prefixes[i][n - 1] != 'R')
          skip_quoted(l);
        else if (peek(l, 0) != '"' || !skip_raw(l))
          continue;
        add_token(l, kind_string, start, line);
        return;
      }
  add_token(l, kind_name, start, line);
}

/* The length of <<<, also with blanks in it, as in `<< <`, which nothing else has; 0: it is not there. */
static size_t launch_length(const struct lexer *l) {
  size_t n = 0, ahead = 0;
  for (; n < 3; ahead++) {
    if (peek(l, ahead) == '<')
      n++;
    else if (!n || peek(l, ahead) != ' ')
      return 0;
  }
  return ahead;
}

/* Operators that matter here, the longest first. Runs of > are one token, of which a reader takes what it needs: how
 * many belong together depends on what was opened before. */
static void lex_operator(struct lexer *l) {
  static const char *const operators[] = {"...", "<<=", "<=>", "->*", "##", "::", "->",
                                          "<<",  "<=",  ">=",  "&&",  "||", NULL};
  size_t start = l->at, run = launch_length(l);
  int line = l->line, i;
  while (peek(l, 0) == '>' && peek(l, run) == '>') run++;
  if (run == 2 && peek(l, 2) == '=')
    run = 3; /* >>= */
  else if (run == 1 && peek(l, 1) == '=')
    run = 2;
  for (i = 0; !run && operators[i]; i++) {
    size_t n = strlen(operators[i]);
    if (n <= l->t->length - l->at && !memcmp(l->t->text + l->at, operators[i], n)) run = n;
  }
  step_to(l, l->at + (run ? run : 1));
  add_token(l, kind_operator, start, line);
}

/* A directive has been read: keeps count of #if 0, whose text need not be C++ at all. */
static void end_directive(struct lexer *l) {
  struct translation *t = l->t;
  static const char *const ifs[] = {"if", "ifdef", "ifndef", NULL};
  static const char *const elses[] = {"else", "elif", "elifdef", "elifndef", NULL};
  size_t name = l->first_of_directive + 1;
  l->directive = 0;
  if (name >= t->count) return;
  if (l->dead) {
    if (is_any_of(t, name, ifs))
      l->dead++;
    else if (token_is(t, name, "endif") || (l->dead == 1 && is_any_of(t, name, elses)))
      l->dead--;
    if (l->dead) t->count = l->first_of_directive;
  } else if (token_is(t, name, "if") && t->count == name + 2 && token_is(t, name + 1, "0"))
    l->dead = 1;
}

/* <a/b'c.h> is one thing, whatever is in it. */
static int lex_header_name(struct lexer *l) {
  static const char *const includes[] = {"include", "include_next", "import", NULL};
  size_t end = l->at + 1, start = l->at, name = l->first_of_directive + 1;
  int line = l->line;
  if (!l->directive || l->t->count != name + 1 || !is_any_of(l->t, name, includes)) return 0;
  while (end < l->t->length && l->t->text[end] != '>' && l->t->text[end] != '\n') end++;
  if (end >= l->t->length || l->t->text[end] != '>') return 0;
  step_to(l, end + 1);
  add_token(l, kind_string, start, line);
  return 1;
}

static void lex(struct translation *t) {
  struct lexer l = {NULL, 0, 1, 0, 0, 0, 0, 0};
  l.t = t;
  while (!at_end(&l) && !t->failed_line) {
    char c = peek(&l, 0), next = peek(&l, 1);
    size_t start = l.at, before = t->count;
    int line = l.line;
    if (continuation(&l))
      step_to(&l, l.at + continuation(&l));
    else if (c == '\n') {
      if (l.directive) end_directive(&l);
      l.line_has_token = 0;
      step(&l);
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f')
      step(&l);
    else if (c == '/' && next == '/')
      skip_line_comment(&l);
    else if (c == '/' && next == '*')
      skip_block_comment(&l);
    else {
      if (c == '#' && !l.line_has_token) {
        if (l.directives == INT_MAX) {
          fail(t, line, "too many directives");
          return;
        }
        l.directive = ++l.directives;
        l.first_of_directive = t->count;
      }
      l.line_has_token = 1;
      if (is_name_start(c))
        lex_name_or_string(&l);
      else if (is_digit(c) || (c == '.' && is_digit(next))) {
        lex_number(&l);
        add_token(&l, kind_number, start, line);
      } else if (c == '"' || c == '\'') {
        skip_quoted(&l);
        add_token(&l, kind_string, start, line);
      } else if (c != '<' || !lex_header_name(&l))
        lex_operator(&l);
      if (l.dead && !l.directive) t->count = before;
    }
  }
  if (l.directive && !t->failed_line) end_directive(&l);
}

/* --- brackets --- */

static char bracket(const struct translation *t, size_t i) {
  const struct token *k = &t->tokens[i];
  char c = t->text[k->start];
  return k->kind == kind_operator && k->end - k->start == 1 && strchr("()[]{}", c) ? c : '\0';
}

/* Closes the innermost bracket that fits; what was left open inside it stays without a partner. */
static size_t close_bracket(struct translation *t, size_t top, size_t i, char c) {
  char open = c == ')' ? '(' : c == ']' ? '[' : '{';
  size_t o = top;
  while (o != NONE && bracket(t, o) != open) {
    if (bracket(t, o) == '{') return top;
    o = t->tokens[o].parent;
  }
  if (o == NONE) return top;
  t->tokens[o].match = i;
  t->tokens[i].match = o;
  t->tokens[i].parent = t->tokens[o].parent;
  return t->tokens[o].parent;
}

/* Pairs brackets, of the text and of each directive by itself. The branches of an #if all start with what is open at
 * the #if, since each may open or close the same brace. */
static void pair_brackets(struct translation *t) {
  static const char *const ifs[] = {"if", "ifdef", "ifndef", NULL};
  static const char *const elses[] = {"else", "elif", "elifdef", "elifndef", NULL};
  size_t *saved = NULL, depth = 0, capacity = 0, top = NONE, inner = NONE, i;
  int directive = 0;
  for (i = 0; i < t->count; i++) {
    struct token *k = &t->tokens[i];
    size_t *mine = k->directive ? &inner : &top;
    char c = bracket(t, i);
    if (k->directive && k->directive != directive) {
      size_t name = i + 1 < t->count && t->tokens[i + 1].directive == k->directive ? i + 1 : NONE;
      directive = k->directive;
      inner = NONE;
      if (is_any_of(t, name, ifs)) {
        size_t *more = (size_t *)grow(saved, depth, &capacity, sizeof *saved);
        if (!more) {
          fail(t, k->line, "no memory");
          break;
        }
        saved = more;
        saved[depth++] = top;
      } else if (is_any_of(t, name, elses) && depth)
        top = saved[depth - 1];
      else if (token_is(t, name, "endif") && depth)
        depth--;
    }
    k->parent = *mine;
    if (c == '(' || c == '[' || c == '{')
      *mine = i;
    else if (c)
      *mine = close_bracket(t, *mine, i, c);
  }
  free(saved);
}

/* --- neighbours --- */

/* Tokens of the text do not see those of directives between them; the tokens of a directive see each other only. */
static size_t next_token(const struct translation *t, size_t i) {
  int directive = t->tokens[i].directive;
  size_t k = i + 1;
  while (k < t->count && !directive && t->tokens[k].directive) k++;
  return k < t->count && t->tokens[k].directive == directive ? k : NONE;
}
static size_t previous_token(const struct translation *t, size_t i) {
  int directive = t->tokens[i].directive;
  size_t k = i;
  while (k > 0 && !directive && t->tokens[k - 1].directive) k--;
  return k > 0 && t->tokens[k - 1].directive == directive ? k - 1 : NONE;
}
static int is_name(const struct translation *t, size_t i) { return i != NONE && t->tokens[i].kind == kind_name; }

/* How many > the token is a run of; 0: it is something else. */
static size_t closing_run(const struct translation *t, size_t i) {
  const struct token *k;
  if (i == NONE) return 0;
  k = &t->tokens[i];
  if (k->kind != kind_operator || t->text[k->start] != '>' || t->text[k->end - 1] != '>') return 0;
  return k->end - k->start;
}

/* <<<, perhaps with blanks in it */
static int is_launch(const struct translation *t, size_t i) {
  const struct token *k = &t->tokens[i];
  return k->kind == kind_operator && k->end - k->start > 2 && !memcmp(t->text + k->start, "<", 1) &&
         t->text[k->end - 1] == '<';
}

/* --- edits --- */

static void put(struct translation *t, size_t start, size_t end, const char *text) {
  struct edit *edits = (struct edit *)grow(t->edits, t->edit_count, &t->edit_capacity, sizeof *edits);
  if (!edits) {
    fail(t, 1, "no memory");
    return;
  }
  t->edits = edits;
  t->edits[t->edit_count].start = start;
  t->edits[t->edit_count].end = end;
  t->edits[t->edit_count].order = t->edit_count;
  t->edits[t->edit_count].longer = NULL;
  snprintf(t->edits[t->edit_count].text, sizeof t->edits->text, "%s", text);
  t->edit_count++;
}
static void insert_before(struct translation *t, size_t i, const char *text) {
  put(t, t->tokens[i].start, t->tokens[i].start, text);
}
static void insert_after(struct translation *t, size_t i, const char *text) {
  put(t, t->tokens[i].end, t->tokens[i].end, text);
}
static void replace(struct translation *t, size_t first, size_t last, const char *text) {
  put(t, t->tokens[first].start, t->tokens[last].end, text);
}

static int compare_edits(const void *a, const void *b) {
  const struct edit *x = (const struct edit *)a, *y = (const struct edit *)b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  if (x->order != y->order) return x->order < y->order ? -1 : 1;
  return 0;
}

/* --- launches --- */

/* Words before which an operand ends. */
static int is_statement_word(const struct translation *t, size_t i) {
  static const char *const words[] = {"return", "else",   "do",       "case",     "goto", "throw", "if",
                                      "while",  "for",    "switch",   "new",      "and",  "or",    "not",
                                      "delete", "sizeof", "co_yield", "co_await", NULL};
  return is_any_of(t, i, words);
}
static int is_operand_name(const struct translation *t, size_t i) { return is_name(t, i) && !is_statement_word(t, i); }

/* Of the > that ends a template's arguments: the name before them, or NONE. */
static size_t template_name(const struct translation *t, size_t i) {
  size_t depth = closing_run(t, i);
  while (depth) {
    i = previous_token(t, i);
    if (i == NONE || token_is(t, i, ";")) return NONE;
    if (bracket(t, i)) {
      if (t->tokens[i].match == NONE || t->tokens[i].match > i) return NONE;
      i = t->tokens[i].match;
    } else if (token_is(t, i, "<"))
      depth--;
    else
      depth += closing_run(t, i);
  }
  i = previous_token(t, i);
  return is_operand_name(t, i) ? i : NONE;
}

/* The start of the qualified name that ends at i: ns::name<T>; NONE: there is none. */
static size_t name_start(const struct translation *t, size_t i) {
  size_t start = NONE;
  for (;;) {
    size_t before;
    if (closing_run(t, i)) i = template_name(t, i);
    if (!is_operand_name(t, i)) return start;
    start = i;
    before = previous_token(t, i);
    while (before != NONE && token_is(t, before, "##") && is_name(t, previous_token(t, before))) {
      start = i = previous_token(t, before);
      before = previous_token(t, i);
    }
    if (before != NONE && token_is(t, before, "template")) {
      start = before;
      before = previous_token(t, before);
    }
    if (before == NONE || !token_is(t, before, "::")) return start;
    start = before;
    i = previous_token(t, before);
    if (i == NONE || (!is_operand_name(t, i) && !closing_run(t, i))) return start;
  }
}

/* Does a group in parentheses hold a name and nothing else? */
static int holds_a_name(const struct translation *t, size_t open, size_t close) {
  size_t first, last;
  do {
    first = next_token(t, open);
    last = previous_token(t, close);
    open = first;
    close = last;
  } while (first != NONE && last != NONE && first < last && bracket(t, first) == '(' && t->tokens[first].match == last);
  return first != NONE && last != NONE && first <= last && name_start(t, last) == first;
}

/* The start of the expression before <<<; *named: it is the name of a function, perhaps of several. */
static size_t kernel_start(const struct translation *t, size_t i, int *named) {
  static const char *const controls[] = {"if", "while", "for", "switch", "constexpr", NULL};
  *named = 1;
  while (i != NONE) {
    size_t start, before;
    char c = bracket(t, i);
    if (c == ')' || c == ']') {
      size_t open = t->tokens[i].match;
      if (open == NONE) return NONE;
      before = previous_token(t, open);
      if (before != NONE && (bracket(t, before) == ')' || bracket(t, before) == ']') &&
          t->tokens[before].match != NONE) {
        size_t word = previous_token(t, t->tokens[before].match);
        if (c == ']' || word == NONE || !is_any_of(t, word, controls)) {
          *named = 0;
          i = before;
          continue;
        }
      } else if (is_operand_name(t, before) || (closing_run(t, before) && name_start(t, before) != NONE)) {
        *named = 0;
        i = before;
        continue;
      }
      if (c == ']') return NONE;
      *named = *named && holds_a_name(t, open, i);
      start = open;
    } else {
      start = name_start(t, i);
      if (start == NONE) return NONE;
    }
    before = previous_token(t, start);
    if (before == NONE || !(token_is(t, before, ".") || token_is(t, before, "->"))) return start;
    *named = 0;
    i = previous_token(t, before);
  }
  return NONE;
}

/* The first and last token of `>> >`, before the arguments of a launch. */
static size_t spaced_end(const struct translation *t, size_t open, size_t *first) {
  size_t i = open;
  while ((i = next_token(t, i)) != NONE && !token_is(t, i, ";")) {
    size_t n = 0, last = i, k = i;
    for (; closing_run(t, k); k = next_token(t, k)) n += closing_run(t, last = k);
    if (n == 3 && k != NONE && bracket(t, k) == '(') {
      *first = i;
      return last;
    }
    if (bracket(t, i) && t->tokens[i].match != NONE && t->tokens[i].match > i) i = t->tokens[i].match;
  }
  return NONE;
}

/* The token whose last three characters are the >>> of a launch. `a < b` and a template's `a<b` look alike here: a run
 * of > that can close what has been opened does so, unless that leaves too few for the launch. */
static size_t launch_end(const struct translation *t, size_t open) {
  size_t i = open, opened = 0;
  while ((i = next_token(t, i)) != NONE) {
    size_t run = closing_run(t, i);
    char c = bracket(t, i);
    if (c == '(' || c == '[' || c == '{') {
      if (t->tokens[i].match == NONE) return NONE;
      i = t->tokens[i].match;
    } else if (c || token_is(t, i, ";") || is_launch(t, i))
      return NONE;
    else if (token_is(t, i, "<"))
      opened += is_operand_name(t, previous_token(t, i)) ? 1u : 0u;
    else if (token_is(t, i, "?") || token_is(t, i, "&&") || token_is(t, i, "||"))
      opened = 0;
    else if (run >= 3 && (run >= opened + 3 || run > opened))
      return i;
    else
      opened -= run < opened ? run : opened;
  }
  return NONE;
}

/* At the < of what may be a template's arguments within `end`: the token of its >, or NONE if it is a comparison. */
static size_t template_end(const struct translation *t, size_t i, size_t end) {
  size_t depth = 1;
  if (!is_operand_name(t, previous_token(t, i))) return NONE;
  while ((i = next_token(t, i)) != NONE && i < end) {
    size_t run = closing_run(t, i);
    char c = bracket(t, i);
    if (c == '(' || c == '[' || c == '{') {
      if (t->tokens[i].match == NONE || t->tokens[i].match > end) return NONE;
      i = t->tokens[i].match;
    } else if (c || token_is(t, i, ";") || token_is(t, i, "&&") || token_is(t, i, "||"))
      return NONE;
    else if (token_is(t, i, "<"))
      depth++;
    else if (run >= depth) {
      size_t after = next_token(t, i);
      int follows = after == end || token_is(t, after, ",") || token_is(t, after, "::") ||
                    (after != NONE && (bracket(t, after) || token_is(t, after, ";")));
      return run == depth && follows ? i : NONE;
    } else
      depth -= run;
  }
  return NONE;
}

/* 0, NULL: null pointers only as long as they are spelled so. */
static int is_null(const struct translation *t, size_t i) {
  size_t n = t->tokens[i].end - t->tokens[i].start;
  const char *s = t->text + t->tokens[i].start;
  if (token_is(t, i, "NULL")) return 1;
  if (t->tokens[i].kind != kind_number || *s != '0' || n > 4) return 0;
  while (n > 1 && strchr("uUlL", s[n - 1])) n--;
  return n == 1;
}

enum { max_null_arguments = 16 };

struct arguments {
  int count; /* -1: not known from the text alone */
  size_t nulls[max_null_arguments];
  int is_null[max_null_arguments];
  int any_null;
};

static void read_arguments(const struct translation *t, size_t open, struct arguments *a) {
  size_t close = t->tokens[open].match, i = next_token(t, open), first = i;
  int n = 0;
  memset(a, 0, sizeof *a);
  if (i == close) return;
  for (; i != NONE; i = next_token(t, i)) {
    if (i == close || token_is(t, i, ",")) {
      size_t last = previous_token(t, i);
      if (n < max_null_arguments && first == last && is_null(t, first)) {
        a->nulls[n] = first;
        a->is_null[n] = a->any_null = 1;
      }
      n++;
      if (i == close) break;
      first = next_token(t, i);
    } else if (token_is(t, i, "...") || token_is(t, i, "__VA_ARGS__")) {
      n = -1;
      a->any_null = 0;
      break;
    } else if (token_is(t, i, "<")) {
      size_t end = template_end(t, i, close);
      if (end != NONE) i = end;
    } else if (strchr("([{", bracket(t, i)) && bracket(t, i)) {
      if (t->tokens[i].match == NONE || t->tokens[i].match > close) break;
      i = t->tokens[i].match;
    }
  }
  a->count = n;
}

/* Before the kernel: CUDA_CPU_LAUNCH(count, or, where a 0 or NULL has to stay what it is for a kernel whose parameters
 * only the call tells, CUDA_CPU_LAUNCH_NULL(count, (parameters of a lambda), (what it calls the kernel with), */
static void put_kernel(struct translation *t, size_t first, size_t last, const struct arguments *a) {
  char text[64];
  int i;
  if (a->any_null && a->count <= max_null_arguments) {
    snprintf(text, sizeof text, "CUDA_CPU_LAUNCH_NULL(%d, (", a->count);
    insert_before(t, first, text);
    for (i = 0; i < a->count; i++) {
      snprintf(text, sizeof text, a->is_null[i] ? "%sconst auto &" : "%sconst auto &cuda_cpu_%d", i ? ", " : "", i);
      insert_before(t, first, text);
    }
    insert_before(t, first, "), (");
    for (i = 0; i < a->count; i++) {
      const struct token *k = &t->tokens[a->is_null[i] ? a->nulls[i] : first];
      if (a->is_null[i])
        snprintf(text, sizeof text, "%s%.*s", i ? ", " : "", (int)(k->end - k->start), t->text + k->start);
      else
        snprintf(text, sizeof text, "%scuda_cpu_%d", i ? ", " : "", i);
      insert_before(t, first, text);
    }
    insert_before(t, first, "), ");
  } else {
    snprintf(text, sizeof text, "CUDA_CPU_LAUNCH(%d, ", a->count);
    insert_before(t, first, text);
  }
  insert_after(t, last, ")");
}

static void translate_launch(struct translation *t, size_t open) {
  size_t last = previous_token(t, open), first, close, call, closing = NONE;
  int named, line = t->tokens[open].line;
  if (token_is(t, last, "operator")) return; /* operator<< of a template, with its arguments */
  first = last == NONE ? NONE : kernel_start(t, last, &named);
  if (first == NONE) {
    fail(t, line, "there is no kernel before this <<<");
    return;
  }
  close = token_is(t, open, "<<<") ? launch_end(t, open) : NONE;
  if (close == NONE) close = spaced_end(t, open, &closing);
  if (close == NONE) {
    fail(t, line, "there is no >>> for this <<<");
    return;
  }
  call = next_token(t, close);
  if (call != NONE && bracket(t, call) != '(') call = NONE;
  if (call == NONE && !t->tokens[open].directive) { /* in a macro the arguments may come with its use */
    fail(t, line, "there are no arguments in parentheses after this launch");
    return;
  }
  if (named) {
    struct arguments a;
    memset(&a, 0, sizeof a);
    a.count = -1;
    if (call != NONE && t->tokens[call].match != NONE) read_arguments(t, call, &a);
    put_kernel(t, first, last, &a);
  } else {
    insert_before(t, first, "CUDA_CPU_LAUNCH_POINTER(");
    insert_after(t, last, ")");
  }
  replace(t, open, open, "(");
  put(t, closing == NONE ? t->tokens[close].end - 3 : t->tokens[closing].start, t->tokens[close].end, ")");
}

/* (void *)name, (void *)&ns::name<T> where the expression ends: ::cuda_cpu::as_pointer(name), which learns what the
 * parameters of a kernel are. */
static void translate_pointer(struct translation *t, size_t open) {
  static const char *const ends[] = {",", ")", ";", "}", NULL};
  size_t i = next_token(t, open), before = previous_token(t, open), close = t->tokens[open].match, last = NONE;
  if (before != NONE && (is_operand_name(t, before) || bracket(t, before) == ')' || closing_run(t, before))) return;
  if (token_is(t, i, "const")) i = next_token(t, i);
  if (!token_is(t, i, "void") || !token_is(t, next_token(t, i), "*")) return;
  if (close == NONE || next_token(t, next_token(t, i)) != close) return;
  i = next_token(t, close);
  if (token_is(t, i, "&")) i = next_token(t, i);
  for (; is_operand_name(t, i) || token_is(t, i, "::") || token_is(t, i, "<"); i = next_token(t, i)) {
    if (token_is(t, i, "<")) i = template_end(t, i, t->count);
    if (i == NONE) return;
    last = i;
  }
  if (last == NONE || (i != NONE && !is_any_of(t, i, ends))) return;
  replace(t, open, close, "::cuda_cpu::as_pointer(");
  insert_after(t, last, ")");
}

/* --- shared memory --- */

/* Does the token stand outside every function and class? */
static int at_file_scope(const struct translation *t, size_t i) {
  if (t->tokens[i].directive) return 0;
  for (i = t->tokens[i].parent; i != NONE; i = t->tokens[i].parent) {
    size_t before = previous_token(t, i);
    if (bracket(t, i) != '{') return 0;
    if (before != NONE && t->tokens[before].kind == kind_string) { /* extern "C" { */
      if (!token_is(t, previous_token(t, before), "extern")) return 0;
      continue;
    }
    while (before != NONE && !token_is(t, before, "namespace") && (token_is(t, before, "::") || is_name(t, before)))
      before = previous_token(t, before);
    if (!token_is(t, before, "namespace")) return 0;
  }
  return 1;
}

/* __align__(16), alignas(16), __attribute__((aligned(16))), [[...]]: its last token, or NONE. */
static size_t attribute_end(const struct translation *t, size_t i) {
  static const char *const words[] = {"__align__", "alignas", "__attribute__", NULL};
  size_t open = is_any_of(t, i, words) ? next_token(t, i) : i;
  if (open == NONE || t->tokens[open].match == NONE || t->tokens[open].match < open) return NONE;
  if (open != i) return bracket(t, open) == '(' ? t->tokens[open].match : NONE;
  i = next_token(t, open);
  return bracket(t, open) == '[' && i != NONE && bracket(t, i) == '[' ? t->tokens[open].match : NONE;
}

/* The first token of the declaration that i stands in. */
static size_t declaration_start(const struct translation *t, size_t i) {
  for (;;) {
    size_t before = previous_token(t, i);
    if (before != NONE && (bracket(t, before) == ')' || bracket(t, before) == ']')) {
      size_t open = t->tokens[before].match, word = open == NONE ? NONE : previous_token(t, open);
      if (open == NONE) return i;
      if (word != NONE && attribute_end(t, word) == before)
        before = word;
      else if (attribute_end(t, open) == before)
        before = open;
      else
        return i;
    } else if (closing_run(t, before) && template_name(t, before) != NONE)
      before = template_name(t, before);
    else if (!is_operand_name(t, before) &&
             !(before != NONE && (token_is(t, before, "::") || token_is(t, before, "*"))))
      return i;
    i = before;
  }
}

/* extern __shared__ T x[], y[][4];  becomes  T (&x)[] = ..., (&y)[][4] = ...; Aligned it is anyway. */
static void translate_extern_shared(struct translation *t, size_t first, size_t extern_at, size_t shared_at) {
  int file_scope = at_file_scope(t, shared_at), depth = 0, line = t->tokens[shared_at].line;
  size_t i, name = NONE, last = NONE, end;
  if (file_scope) {
    replace(t, extern_at, extern_at, "static");
    replace(t, shared_at, shared_at, "thread_local");
  } else {
    replace(t, extern_at, extern_at, "");
    replace(t, shared_at, shared_at, "");
  }
  for (i = first;; i = next_token(t, i)) {
    size_t run = closing_run(t, i);
    int ends = i == NONE || (!depth && (token_is(t, i, ";") || token_is(t, i, ",")));
    if (ends) {
      if (name == NONE || last == NONE) break;
      insert_before(t, name, "(&");
      insert_after(t, name, ")");
      insert_after(t, last, " = ::cuda_cpu::dynamic_shared()");
      if (i == NONE ? t->tokens[first].directive : token_is(t, i, ";")) return;
      if (i == NONE) break;
      name = NONE;
      continue;
    }
    end = attribute_end(t, i);
    if (end != NONE) {
      replace(t, i, end, "");
      i = end;
      continue; /* not `last`: the initializer would go away with it */
    }
    if (strchr("([{", bracket(t, i)) && bracket(t, i)) {
      if (t->tokens[i].match == NONE) break;
      i = t->tokens[i].match;
    } else if (bracket(t, i) || token_is(t, i, "="))
      break;
    else if (token_is(t, i, "<"))
      depth++;
    else if (run)
      depth -= (int)run < depth ? (int)run : depth;
    else if (!depth && i != extern_at && i != shared_at && is_name(t, i))
      name = i;
    if (i != extern_at && i != shared_at) last = i;
  }
  fail(t, line, "this declaration of extern __shared__ memory makes no sense");
}

/* nvcc refuses __shared__ int n = 0; here it would be one more variable that keeps its value from block to block. `==` is
 * two tokens. */
static void refuse_initializer(struct translation *t, size_t shared_at) {
  size_t i = shared_at, last = i;
  while ((i = next_token(t, i)) != NONE && !token_is(t, i, ";")) {
    int follows = is_name(t, last) || bracket(t, last) == ']';
    if (token_is(t, i, "=") && follows && !token_is(t, next_token(t, i), "="))
      fail(t, t->tokens[i].line, "a __shared__ variable has no initializer: assign to it, then __syncthreads()");
    if (bracket(t, i)) {
      if (t->tokens[i].match == NONE || t->tokens[i].match < i) return;
      i = t->tokens[i].match;
    }
    last = i;
  }
}

static void translate_shared(struct translation *t, size_t shared_at) {
  static const char *const about_the_name[] = {"define", "undef", "ifdef", "ifndef", NULL};
  size_t first, i, extern_at = NONE, static_at = NONE;
  if (t->tokens[shared_at].directive && is_any_of(t, previous_token(t, shared_at), about_the_name)) return;
  first = declaration_start(t, shared_at);
  for (i = first; i != NONE; i = next_token(t, i)) {
    size_t end = i == shared_at ? NONE : attribute_end(t, i);
    if (end != NONE)
      i = end;
    else if (token_is(t, i, "extern"))
      extern_at = i;
    else if (token_is(t, i, "static"))
      static_at = i;
    else if (token_is(t, i, ";") || token_is(t, i, "=") || bracket(t, i))
      break;
  }
  if (extern_at != NONE)
    translate_extern_shared(t, first, extern_at, shared_at);
  else {
    refuse_initializer(t, shared_at);
    if (static_at != NONE) replace(t, static_at, static_at, "");
    i = next_token(t, shared_at);
    if (i != NONE && token_is(t, i, "alignas")) replace(t, i, i, "__align__"); /* may stand behind other words */
  }
}

/* --- __CUDA_ARCH__ --- */

enum { on_host = 1, on_device = 2 };

/* Where the function may run whose body holds the directive or token i: 0: it is in none that says so. A body is known
 * by the words between the end of what is before it and its brace. */
static int runs_where(const struct translation *t, size_t i) {
  int where = 0;
  size_t k = i;
  while (k > 0 && t->tokens[k].directive) k--;
  if (t->tokens[k].directive) return 0;
  if (k == i || !strchr("([{", bracket(t, k)) || !bracket(t, k)) k = t->tokens[k].parent;
  for (; k != NONE; k = t->tokens[k].parent) {
    size_t word = k;
    if (bracket(t, k) != '{') continue;
    while ((word = previous_token(t, word)) != NONE && !token_is(t, word, ";")) {
      char c = bracket(t, word);
      if (c == '{' || c == '}') break;
      if (c && t->tokens[word].match != NONE && t->tokens[word].match < word) word = t->tokens[word].match;
      if (token_is(t, word, "__global__") || token_is(t, word, "__device__")) where |= on_device;
      if (token_is(t, word, "__host__")) where |= on_host;
    }
    if (where) return where;
  }
  return 0;
}

static int knows_of_stand_in(const struct translation *t) {
  size_t i;
  for (i = 0; i < t->count; i++)
    if (token_is(t, i, "CUDA_ON_CPU")) return 1;
  return 0;
}

/* Host and device are one compilation here, and __CUDA_ARCH__ is undefined in it. In the body of a function for the
 * device alone it becomes CUDA_CPU_ARCH; in one for both it stays undefined, as what is for the host runs anywhere.
 * Elsewhere it has its value where it is compared, so that what old GPUs lack is not made up for, and is undefined
 * where it is only asked for. __CUDACC__ is defined in the program's files, but not in headers of the system, which
 * would take the compiler for nvcc. A file that knows of the stand-in is left alone. */
static void translate_arch(struct translation *t) {
  size_t i, k;
  for (i = 0; i < t->count && !t->failed_line; i++) {
    int where, compared = 0;
    if (token_is(t, i, "__CUDACC__")) replace(t, i, i, "CUDA_CPU_CUDACC");
    if (!token_is(t, i, "__CUDA_ARCH__")) continue;
    where = t->tokens[i].directive ? runs_where(t, i) : on_device;
    for (k = i; !where && previous_token(t, k) != NONE; k = previous_token(t, k)) {}
    for (; !where && k != NONE; k = next_token(t, k)) compared |= t->tokens[k].kind == kind_number;
    if (where ? where == on_device : compared) replace(t, i, i, "CUDA_CPU_ARCH");
  }
}

/* The bracket that begins the body of a kernel; NONE if it is only declared. */
static size_t kernel_body(const struct translation *t, size_t global) {
  size_t open = global;
  while (open != NONE && bracket(t, open) != '{') {
    size_t match = t->tokens[open].match;
    if (token_is(t, open, ";") || (match != NONE && match < open)) return NONE;
    open = next_token(t, match == NONE ? open : match);
  }
  return open == NONE || t->tokens[open].match == NONE || t->tokens[open].directive ? NONE : open;
}
/* A kernel all of whose body stands in one #if without #else: at its end a name is used that the body declares. Where
 * the condition is false that name is one of which the compiler warns. */
static void mark_body(struct translation *t, size_t open) {
  static const char *const ifs[] = {"if", "ifdef", "ifndef", NULL};
  size_t close = t->tokens[open].match, i, first = NONE;
  int depth = 0, directive = 0;
  for (i = open + 1; i < close; i++) {
    const struct token *k = &t->tokens[i];
    if (!k->directive) {
      if (!depth) return;
      if (first == NONE) first = i;
    } else if (k->directive != directive) {
      directive = k->directive;
      if (is_any_of(t, i + 1, ifs)) {
        if (!depth++ && first != NONE) return;
      } else if (token_is(t, i + 1, "endif"))
        depth--;
      else if (depth == 1 && !token_is(t, i + 1, "pragma") && !token_is(t, i + 1, "define"))
        return;
    }
  }
  if (first == NONE || depth) return;
  insert_before(t, first, "enum { cuda_cpu_has_body }; ");
  insert_before(t, close, "(void)cuda_cpu_has_body; ");
}

/* __global__ int k(), int __global__ k(), __global__ void *k(). A type that is not the language's own may be void. */
static void refuse_result(struct translation *t, size_t global) {
  static const char *const types[] = {"bool",     "char",   "short",  "int",    "long", "float",
                                      "unsigned", "signed", "size_t", "double", NULL};
  size_t i = global, before = previous_token(t, global);
  int result = is_any_of(t, before, types);
  while ((i = next_token(t, i)) != NONE && !token_is(t, i, ";") && !token_is(t, i, "<")) {
    char c = bracket(t, i);
    if (c == '(' && token_is(t, previous_token(t, i), "__launch_bounds__"))
      i = t->tokens[i].match;
    else if (attribute_end(t, i) != NONE)
      i = attribute_end(t, i);
    else if (c)
      break;
    if (i == NONE) return;
    result |= is_any_of(t, i, types) || (token_is(t, i, "void") && token_is(t, next_token(t, i), "*"));
  }
  if (result) fail(t, t->tokens[global].line, "a kernel has no result: __global__ void");
}

/* A kernel that is called like a function says so when it runs: nvcc refuses the call. A file that knows of the
 * stand-in is left alone. */
static void translate_kernel(struct translation *t, size_t global, int knows) {
  size_t open = kernel_body(t, global);
  if (open == NONE) return;
  if (!knows) insert_after(t, open, " CUDA_CPU_IS_LAUNCHED;");
  mark_body(t, open);
}

/* --- what there is not --- */

/* texture<float, 2> image; */
static void refuse_texture(struct translation *t, size_t i) {
  static const char *const own[] = {"struct", "class", "typename", "using", "::", ".", "->", NULL};
  size_t after = next_token(t, i), before = previous_token(t, i);
  if (t->tokens[i].directive || !token_is(t, after, "<") || !at_file_scope(t, i) || is_any_of(t, before, own)) return;
  insert_before(t, i, "CUDA_CPU_NO_REFERENCES ");
}

/* curandState, curandStateXORWOW_t, curandStateMRG32k3a, ... */
static void refuse_random(struct translation *t, size_t i) {
  const char *name = t->text + t->tokens[i].start;
  size_t length = t->tokens[i].end - t->tokens[i].start;
  if (length >= 11 && !memcmp(name, "curandState", 11) && (length < 17 || memcmp(name + 11, "Philox", 6)) &&
      strchr("XMS_", length > 11 ? name[11] : '_') && !t->tokens[i].directive)
    fail(t, t->tokens[i].line, "the stand-in for CUDA has no generator of cuRAND but curandStatePhilox4_32_10_t");
}

/* Inline PTX has a dot in an instruction, or stands in a function for the device alone; "" only stops the compiler. */
static void refuse_asm(struct translation *t, size_t word) {
  static const char *const before[] = {"volatile", "__volatile__", "__volatile", "(", NULL};
  size_t i = next_token(t, word), length;
  while (i != NONE && is_any_of(t, i, before)) i = next_token(t, i);
  if (i == NONE || t->tokens[i].kind != kind_string) return;
  length = t->tokens[i].end - t->tokens[i].start;
  if (length > 2 && (memchr(t->text + t->tokens[i].start, '.', length) || runs_where(t, word) == on_device))
    replace(t, word, previous_token(t, i), "CUDA_CPU_NO_PTX(");
}

/* --- headers --- */

/* Names the translation of an included file instead of it, or says more exactly where it is: 1 if so. */
static int include_instead(struct translation *t, size_t file) {
  size_t start = t->tokens[file].start + 1, end = t->tokens[file].end - 1, n;
  int changed = 0, quoted = t->text[start - 1] == '"';
  char *instead, *whole;
  if (!t->includes || end <= start || t->text[end] != (quoted ? '"' : '>')) return 0;
  if (memchr(t->text + start, '\n', end - start)) return 0; /* a name over two lines would make a third of them */
  instead = t->includes->find(t->includes->context, t->text + start, end - start, quoted, &changed);
  if (!instead) return 0;
  n = strlen(instead);
  whole = (char *)malloc(n + 3);
  if (whole) snprintf(whole, n + 3, "\"%s\"", instead);
  free(instead);
  put(t, start - 1, end + 1, "");
  if (!whole)
    fail(t, t->tokens[file].line, "no memory");
  else if (t->failed_line)
    free(whole);
  else
    t->edits[t->edit_count - 1].longer = whole;
  if (changed) t->changed = 1;
  return 1;
}

/* Libraries of many headers that the stand-in has nothing of: the compiler says so, and only where it gets there. A
 * source that includes Thrust begins with cuda_cpu/thrust.h. */
static void translate_include(struct translation *t, size_t hash) {
  static const struct {
    const char *folder, *instead;
  } missing[] = {
      {"thrust/system/cuda/execution_policy.h", "include <thrust/execution_policy.h>"},
      {"cub/", "include \"the stand-in for CUDA has no CUB\""},
      {"cuda/", "include \"the stand-in for CUDA has no libcu++\""},
      {"cutlass/", "include \"the stand-in for CUDA has no CUTLASS\""},
  };
  size_t name = next_token(t, hash), file = name == NONE ? NONE : next_token(t, name), i;
  if (file == NONE || !token_is(t, name, "include") || t->tokens[file].kind != kind_string) return;
  if (include_instead(t, file) || t->text[t->tokens[file].start] == '"') return;
  for (i = 0; i < sizeof missing / sizeof *missing; i++) {
    size_t n = strlen(missing[i].folder);
    if (t->tokens[file].end - t->tokens[file].start > 8 && !memcmp(t->text + t->tokens[file].start, "<thrust/", 8))
      t->uses_thrust = t->changed = 1;
    if (t->tokens[file].end - t->tokens[file].start > n + 1 &&
        !memcmp(t->text + t->tokens[file].start + 1, missing[i].folder, n))
      replace(t, name, file, missing[i].instead);
  }
}

/* --- the whole --- */

static void translate(struct translation *t) {
  int directive = 0, knows = knows_of_stand_in(t);
  size_t i;
  for (i = 0; i < t->count && !t->failed_line; i++) {
    if (t->tokens[i].directive && t->tokens[i].directive != directive) {
      directive = t->tokens[i].directive;
      translate_include(t, i);
    }
    if (is_launch(t, i)) translate_launch(t, i);
    if (bracket(t, i) == '(') translate_pointer(t, i);
    if (token_is(t, i, "__shared__")) translate_shared(t, i);
    if (token_is(t, i, "asm") || token_is(t, i, "__asm__") || token_is(t, i, "__asm")) refuse_asm(t, i);
    if (token_is(t, i, "texture")) refuse_texture(t, i);
    refuse_random(t, i);
    if (token_is(t, i, "__global__") && !t->tokens[i].directive) {
      refuse_result(t, i);
      translate_kernel(t, i, knows);
    }
  }
  if (!knows) translate_arch(t);
  for (i = 0; i < t->edit_count; i++)
    if (!t->edits[i].longer) t->changed = 1;
}

struct output {
  char *bytes;
  size_t length, capacity;
  int failed;
};
static void write_bytes(struct output *o, const char *bytes, size_t n) {
  if (o->failed) return;
  if (n > o->capacity - o->length) {
    size_t capacity = o->capacity * 2 + n;
    char *more = capacity < n ? NULL : (char *)realloc(o->bytes, capacity);
    if (!more) {
      o->failed = 1;
      return;
    }
    o->bytes = more;
    o->capacity = capacity;
  }
  if (n) memcpy(o->bytes + o->length, bytes, n);
  o->length += n;
}
static void write_text(struct output *o, const char *text) { write_bytes(o, text, strlen(text)); }

/* What is taken away leaves its ends of lines, and the backslashes before them. */
static void write_line_ends(struct output *o, const char *text, size_t start, size_t end) {
  size_t i;
  for (i = start; i < end; i++)
    if (text[i] == '\n') {
      size_t from = i > start && text[i - 1] == '\r' ? i - 1 : i;
      if (from > start && text[from - 1] == '\\') from--;
      write_bytes(o, text + from, i + 1 - from);
    }
}

/* The C++ of a CUDA text of any bytes, to be freed; NULL: an error, of which *line and message (200 characters) tell.
 * The result is not terminated by a zero. *changed: there was something to translate. */
char *cuda_to_cpp(const char *text, size_t length, const char *name, const struct includes *includes,
                  size_t *result_length, int *changed, int *line, char *message) {
  struct translation t;
  struct output o = {NULL, 0, 0, 0};
  size_t at = length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0, i;
  memset(&t, 0, sizeof t);
  t.text = text + at;
  t.length = length - at;
  t.includes = includes;
  lex(&t);
  if (!t.failed_line) pair_brackets(&t);
  if (!t.failed_line) translate(&t);
  if (t.edit_count) qsort(t.edits, t.edit_count, sizeof *t.edits, compare_edits);

  write_text(&o, t.uses_thrust ? "#include \"cuda_cpu/thrust.h\"\n" : "#include \"cuda_cpu/triple.h\"\n");
  write_text(&o, "#line 1 \"");
  for (; *name; name++) {
    if (*name == '"' || *name == '\\') write_text(&o, "\\");
    write_bytes(&o, name, 1);
  }
  write_text(&o, "\"\n");
  for (at = i = 0; i < t.edit_count; i++) {
    const struct edit *e = &t.edits[i];
    if (e->start < at) continue;
    write_bytes(&o, t.text + at, e->start - at);
    write_text(&o, e->longer ? e->longer : e->text);
    write_line_ends(&o, t.text, e->start, e->end);
    at = e->end;
  }
  write_bytes(&o, t.text + at, t.length - at);

  if (o.failed) fail(&t, 1, "no memory");
  free(t.tokens);
  for (i = 0; i < t.edit_count; i++) free(t.edits[i].longer);
  free(t.edits);
  *changed = t.changed;
  *line = t.failed_line;
  memcpy(message, t.failure, sizeof t.failure);
  *result_length = o.length;
  if (!t.failed_line) return o.bytes;
  free(o.bytes);
  return NULL;
}

#ifndef CUDA_TO_CPP_NO_MAIN
/* --- files --- */

static char *read_file(const char *name, size_t *length, struct stat *status) {
  FILE *f = fopen(name, "rb");
  char *text = NULL;
  size_t capacity = 0, n;
  *length = 0;
  if (!f) return NULL;
  do {
    char *more = (char *)realloc(text, capacity += 65536);
    if (!more) break;
    text = more;
    n = fread(text + *length, 1, capacity - *length, f);
    *length += n;
  } while (n);
  if (ferror(f) || !feof(f) || fstat(fileno(f), status)) {
    free(text);
    text = NULL;
  }
  fclose(f);
  return text;
}

/* The program's files: the source, and those next to it that it includes. */
struct file {
  char *name;         /* as it is read */
  struct stat status; /* of what is read */
  char *written;      /* the name of its translation; NULL: it needs none */
  char *result;       /* its translation */
  size_t result_length;
  int busy;     /* it is being translated, and a file that it includes ... */
  int promised; /* ... includes it, behind some guard, by the name of the translation */
};
struct program {
  const char *result;
  char **flags; /* of the compiler, of which only -I matters */
  int flag_count;
  struct file *files;
  size_t count, capacity;
  size_t current, depth;
  int failed;
};

/* Two texts and a number, if it is not 0, one after the other. */
static char *join(const char *a, size_t a_length, const char *b, size_t b_length, size_t number) {
  char digits[24] = "", *s;
  if (number) snprintf(digits, sizeof digits, "%lu", (unsigned long)number);
  s = (char *)malloc(a_length + b_length + strlen(digits) + 1);
  if (!s) return NULL;
  memcpy(s, a, a_length);
  memcpy(s + a_length, b, b_length);
  strcpy(s + a_length + b_length, digits);
  return s;
}

/* The number of a file that the program has read already, or p->count. Device and inode tell, since several paths may
 * lead to one file. Two translations of it would be two files, and a #pragma once in each would not see the other. */
static size_t find_file(const struct program *p, const struct stat *status) {
  size_t i = 0;
  while (i < p->count && (p->files[i].status.st_dev != status->st_dev || p->files[i].status.st_ino != status->st_ino))
    i++;
  return i;
}

static void translate_file(struct program *p, const char *text, size_t length);

/* The file of a program that has this name, which it becomes if it is new; p->count: there is no such file. */
static size_t enter_file(struct program *p, const char *folder, size_t folder_length, const char *quoted,
                         size_t quoted_length) {
  char *name = join(folder, folder_length, quoted, quoted_length, 0), *text;
  struct stat status;
  struct file *files;
  size_t length, i, outer = p->current;
  if (!name) return p->count;
  i = stat(name, &status) == 0 && S_ISREG(status.st_mode) ? find_file(p, &status) : p->count;
  text = i == p->count ? read_file(name, &length, &status) : NULL;
  files = text ? (struct file *)grow(p->files, p->count, &p->capacity, sizeof *files) : NULL;
  if (!files) {
    free(text);
    free(name);
    return i;
  }
  p->files = files;
  memset(&p->files[i], 0, sizeof p->files[i]);
  p->files[i].name = name;
  p->files[i].status = status;
  p->count++;
  p->current = i;
  p->depth++;
  translate_file(p, text, length);
  p->depth--;
  p->current = outer;
  free(text);
  return i;
}

/* An included file: looked for next to the one that includes it, if its name is quoted, and in the folders of -I. What
 * is translated lies elsewhere, and names what it includes by the way from the current folder. */
static char *find_include(void *context, const char *name, size_t length, int quoted, int *changed) {
  struct program *p = (struct program *)context;
  const char *from = p->files[p->current].name, *slash = strrchr(from, '/');
  size_t folder = slash && *name != '/' ? (size_t)(slash + 1 - from) : 0, i = NONE;
  int beside = 0, k;
  if (p->failed || p->depth > 100 || memchr(name, '\0', length)) return NULL;
  if (quoted) {
    i = enter_file(p, from, folder, name, length);
    beside = i < p->count;
  }
  for (k = 0; k < p->flag_count && i >= p->count; k++) {
    const char *flag = p->flags[k];
    char *with_slash;
    if (strncmp(flag, "-I", 2)) continue;
    flag += 2;
    if (!*flag && ++k < p->flag_count) flag = p->flags[k];
    with_slash = join(flag, strlen(flag), "/", 1, 0);
    if (!with_slash) return NULL;
    i = enter_file(p, with_slash, strlen(with_slash), name, length);
    free(with_slash);
  }
  if (i >= p->count) return NULL;
  if (p->files[i].busy) p->files[i].promised = 1;
  *changed = p->files[i].written || p->files[i].promised;
  if (!*changed) return beside ? join(p->files[i].name, strlen(p->files[i].name), "", 0, 0) : NULL;
  slash = strrchr(p->result, '/');
  from = slash ? slash + 1 : p->result;
  return join(from, strlen(from), ".", i ? 1 : 0, i); /* it lies next to the C++ that includes it */
}

/* Translates the current file, and before it those that it includes. Nothing is written yet: only at the end it is
 * known which files the program has, and that all of them make sense. */
static void translate_file(struct program *p, const char *text, size_t length) {
  size_t number = p->current, result_length;
  struct includes includes;
  char message[200], *result;
  int line, changed;
  includes.find = find_include;
  includes.context = p;
  p->files[number].busy = 1;
  result = cuda_to_cpp(text, length, p->files[number].name, &includes, &result_length, &changed, &line, message);
  p->files[number].busy = 0;
  if (!result) {
    if (!p->failed) fprintf(stderr, "%s:%d: error: %s\n", p->files[number].name, line, message);
    p->failed = 1;
  } else if (!p->failed && (changed || number == 0 || p->files[number].promised)) {
    p->files[number].written = join(p->result, strlen(p->result), ".", number ? 1 : 0, number);
    p->files[number].result = result;
    p->files[number].result_length = result_length;
    if (!p->files[number].written) p->failed = 1;
    return;
  }
  free(result);
}

/* --- writing --- */

static void fail_to_write(struct program *p, const char *name, const char *why) {
  if (!p->failed) fprintf(stderr, "%s: cannot be written: %s\n", name, why);
  p->failed = 1;
}

/* Sees that the translation of file i may be written where it belongs. */
static void check_place(struct program *p, size_t i) {
  const char *name = p->files[i].written;
  struct stat status;
  if (stat(name, &status) == 0 && S_ISREG(status.st_mode) && find_file(p, &status) < p->count)
    fail_to_write(p, name, "the program is made of this file, so the C++ needs another name");
  if ((i || p->files[i].promised) && stat(p->result, &status) == 0 && !S_ISREG(status.st_mode))
    fail_to_write(p, p->result, "included files are translated, and only a regular file can have those next to it");
}

/* The C++ of the source comes last. */
static void write_program(struct program *p) {
  size_t i;
  for (i = 0; i < p->count; i++)
    if (p->files[i].written) check_place(p, i);
  for (i = p->count; i-- && !p->failed;) {
    const struct file *file = &p->files[i];
    FILE *f = file->written ? fopen(file->written, "wb") : NULL;
    int written = f && fwrite(file->result, 1, file->result_length, f) == file->result_length;
    if (f && fclose(f)) written = 0;
    if (file->written && !written) fail_to_write(p, file->written, strerror(errno));
  }
}

int main(int argc, char **argv) {
  struct program p;
  struct stat status;
  size_t length, i;
  char *text;
  const char *source;
  memset(&p, 0, sizeof p);
  if (argc < 3) {
    fprintf(stderr, "usage: %s [FLAGS...] FILE.cu RESULT.cpp\n", argv[0]);
    return 2;
  }
  p.flags = argv + 1;
  p.flag_count = argc - 3;
  source = argv[argc - 2];
  text = read_file(source, &length, &status);
  if (!text) {
    fprintf(stderr, "%s: cannot be read: %s\n", source, strerror(errno));
    return 1;
  }
  p.result = argv[argc - 1];
  p.files = (struct file *)grow(NULL, 0, &p.capacity, sizeof *p.files);
  if (!p.files) return 1;
  memset(p.files, 0, sizeof *p.files);
  p.files[0].status = status;
  p.files[p.count++].name = join(source, strlen(source), "", 0, 0);
  if (!p.files[0].name) return 1;
  translate_file(&p, text, length);
  if (!p.failed) write_program(&p);
  for (i = 0; i < p.count; i++) {
    free(p.files[i].written);
    free(p.files[i].result);
    free(p.files[i].name);
  }
  free(p.files);
  free(text);
  return p.failed;
}
#endif
