/* A program's parts make themselves known to its main. */
#ifndef REGISTER_H
#define REGISTER_H

#ifdef __GNUC__
#define PART_SHARED __attribute__((__visibility__("default"))) /* whatever -fvisibility says */
#else
#define PART_SHARED
#endif

typedef const char *(*part_check)(); /* NULL, or what went wrong */
PART_SHARED void part_add(part_check check, const char *file);

struct part_registered {
  part_registered(part_check check, const char *file) { part_add(check, file); }
};

#endif
