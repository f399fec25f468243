/* svg.h: pictures of rectangles and words, as text that a browser shows.
 *
 *   svg picture;
 *   if (svg_begin(&picture, "build/lessons", "name", 640, 480)) {   the folder is made
 *     svg_box(&picture, x, y, width, height, "#0072b2");
 *     svg_text(&picture, x, y, 14, "middle", "%d of %d", i, n);     x is its start, middle or end
 *     svg_end(&picture);                                            0: it could not be written
 *   }
 */
#ifndef SVG_H
#define SVG_H

#include "image.h"
#include <stdarg.h>

typedef struct svg {
  FILE *file;
  char path[512];
} svg;

/* The palette of Okabe and Ito, whose colours the colour-blind can tell apart. */
static const char *const svg_colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#e69f00", "#56b4e9", "#f0e442", "#8a8a8a"};
enum { SVG_COLOURS = 8 };

/* 0: it cannot be written, and a message says why. */
inline int svg_begin(svg *s, const char *folder, const char *name, double width, double height) {
  image_error why;
  snprintf(s->path, sizeof s->path, "%.200s/%.200s.svg", folder, name);
  if (!image_make_directory(folder, &why)) {
    fprintf(stderr, "no picture: %s\n", why.text);
    return 0;
  }
  s->file = fopen(s->path, "w");
  if (!s->file) {
    fprintf(stderr, "no picture: %s: %s\n", s->path, strerror(errno));
    return 0;
  }
  fprintf(s->file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" font-family=\"sans-serif\" "
          "fill=\"#333333\" stroke=\"none\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
          width, height);
  return 1;
}

inline void svg_box(svg *s, double x, double y, double width, double height, const char *colour) {
  fprintf(s->file, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", x, y, width, height,
          colour);
}

/* The text must not contain markup: <, > or &. */
#ifdef __GNUC__
__attribute__((format(printf, 6, 7)))
#endif
inline void
svg_text(svg *s, double x, double y, int size, const char *anchor, const char *format, ...) {
  va_list args;
  fprintf(s->file, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%d\" text-anchor=\"%s\">", x, y, size, anchor);
  va_start(args, format);
  vfprintf(s->file, format, args);
  va_end(args);
  fprintf(s->file, "</text>\n");
}

/* A short text in the middle of a box of this colour: white on dark colours, black on light ones. */
#ifdef __GNUC__
__attribute__((format(printf, 6, 7)))
#endif
inline void
svg_text_on(svg *s, double x, double y, int size, const char *colour, const char *format, ...) {
  unsigned red = 0, green = 0, blue = 0;
  va_list args;
  sscanf(colour, "#%2x%2x%2x", &red, &green, &blue);
  const bool dark = 0.299 * red + 0.587 * green + 0.114 * blue < 128;
  fprintf(s->file, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%d\" text-anchor=\"middle\" fill=\"%s\">", x, y, size,
          dark ? "#ffffff" : "#000000");
  va_start(args, format);
  vfprintf(s->file, format, args);
  va_end(args);
  fprintf(s->file, "</text>\n");
}

inline int svg_end(svg *s) {
  const int good = fprintf(s->file, "</svg>\n") > 0 && !ferror(s->file);
  return fclose(s->file) == 0 && good;
}

#endif
