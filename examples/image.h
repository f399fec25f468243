/* image.h: 8-bit pictures in memory; reads PGM and PPM, writes PGM, PPM and PNG. C99 and C++11, no dependencies.
 *
 *   image picture;
 *   image_error why;
 *   if (!image_read("photo.ppm", &picture, &why)) { fprintf(stderr, "%s\n", why.text); exit(1); }
 *   ... picture.samples[(y * picture.width + x) * picture.channels + c] ...
 *   if (!image_write("photo.png", &picture, &why)) ...       .pgm, .ppm or .png
 *   image_free(&picture);
 *
 * Functions that can fail return 1 for success and 0 for failure, with the reason in the image_error; nothing is left
 * allocated then, and no file is left half written. Read: binary PGM (P5) and PPM (P6), maxval 1 to 65535, comments;
 * samples are scaled to 0..255. Bytes after the picture are ignored, as Netpbm lays down.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef _WIN32
#include <direct.h>
#else
#include <fcntl.h>
#include <unistd.h>
#endif

#ifndef RESULTS_FOLDER
#define RESULTS_FOLDER "build" /* where lessons and the tour put their pictures: make's BUILD= */
#endif
#define IMAGE_MAX_PIXELS ((size_t)1 << 28)
#define IMAGE_MAX_HEADER ((size_t)1 << 16) /* bytes, comments included */

typedef struct image {
  size_t width, height, channels; /* 1: gray, 3: red, green, blue */
  unsigned char *samples;         /* rows from the top, channels interleaved */
} image;

typedef struct image_error {
  char text[2048];
} image_error;

/* Puts the reason into `why`, and is the 0 that says so. */
#define image_fail(why, ...) (snprintf((why)->text, sizeof(why)->text, __VA_ARGS__), 0)

static inline size_t image_bytes(const image *im) { return im->width * im->height * im->channels; }

static inline int image_check_channels(size_t channels, image_error *why) {
  return channels == 1 || channels == 3 || image_fail(why, "a picture has 1 or 3 channels, not %zu", channels);
}

/* All samples zero. */
static inline int image_new(image *im, size_t width, size_t height, size_t channels, image_error *why) {
  image made = {width, height, channels, NULL};
  if (!image_check_channels(channels, why)) return 0;
  if (width == 0 || height == 0) return image_fail(why, "a picture of %zu x %zu has no pixels", width, height);
  if (width > IMAGE_MAX_PIXELS / height)
    return image_fail(why, "%zu x %zu pixels are more than the limit of %zu", width, height, IMAGE_MAX_PIXELS);
  made.samples = (unsigned char *)calloc(image_bytes(&made), 1);
  if (!made.samples) return image_fail(why, "no memory for %zu x %zu pixels", width, height);
  *im = made;
  return 1;
}

static inline void image_free(image *im) {
  free(im->samples);
  im->samples = NULL;
}

/* Fits a picture into the middle of a cell of a colour picture; each sample is the mean of those it stands for. */
static inline void image_place(image *sheet, size_t left, size_t top, size_t cell_w, size_t cell_h, const image *im) {
  size_t w = cell_w, h = cell_w * im->height / im->width;
  if (h > cell_h) {
    w = cell_h * im->width / im->height;
    h = cell_h;
  }
  w += w == 0;
  h += h == 0;
  left += (cell_w - w) / 2;
  top += (cell_h - h) / 2;
  for (size_t y = 0; y < h; y++)
    for (size_t x = 0; x < w; x++)
      for (size_t c = 0; c < 3; c++) {
        const size_t x0 = x * im->width / w, x1 = (x + 1) * im->width / w, y0 = y * im->height / h;
        const size_t y1 = (y + 1) * im->height / h;
        size_t sum = 0, count = 0;
        for (size_t j = y0; j == y0 || j < y1; j++)
          for (size_t i = x0; i == x0 || i < x1; i++, count++)
            sum += im->samples[(j * im->width + i) * im->channels + c % im->channels];
        sheet->samples[((top + y) * sheet->width + left + x) * 3 + c] = (unsigned char)((sum + count / 2) / count);
      }
}

/* A caption in dark grey, letters of 10 x 16 pixels: lower case, digits, space, comma and slash. What does not fit into
 * width pixels, or into the sheet, is left out. */
static inline void image_text(image *sheet, size_t left, size_t top, size_t width, const char *text) {
  static const char known[] = " ,/0123456789abcdefghijklmnopqrstuvwxyz";
  static const unsigned char columns[][5] = {
      /* of each letter: five columns, the lowest bit is the upper pixel */
      {0x00, 0x00, 0x00, 0x00, 0x00}, {0x00, 0x80, 0x70, 0x30, 0x00}, {0x20, 0x10, 0x08, 0x04, 0x02},
      {0x3e, 0x51, 0x49, 0x45, 0x3e}, {0x00, 0x42, 0x7f, 0x40, 0x00}, {0x72, 0x49, 0x49, 0x49, 0x46},
      {0x21, 0x41, 0x49, 0x4d, 0x33}, {0x18, 0x14, 0x12, 0x7f, 0x10}, {0x27, 0x45, 0x45, 0x45, 0x39},
      {0x3c, 0x4a, 0x49, 0x49, 0x31}, {0x41, 0x21, 0x11, 0x09, 0x07}, {0x36, 0x49, 0x49, 0x49, 0x36},
      {0x46, 0x49, 0x49, 0x29, 0x1e}, {0x20, 0x54, 0x54, 0x78, 0x40}, {0x7f, 0x28, 0x44, 0x44, 0x38},
      {0x38, 0x44, 0x44, 0x44, 0x28}, {0x38, 0x44, 0x44, 0x28, 0x7f}, {0x38, 0x54, 0x54, 0x54, 0x18},
      {0x00, 0x08, 0x7e, 0x09, 0x02}, {0x18, 0xa4, 0xa4, 0x9c, 0x78}, {0x7f, 0x08, 0x04, 0x04, 0x78},
      {0x00, 0x44, 0x7d, 0x40, 0x00}, {0x20, 0x40, 0x40, 0x3d, 0x00}, {0x7f, 0x10, 0x28, 0x44, 0x00},
      {0x00, 0x41, 0x7f, 0x40, 0x00}, {0x7c, 0x04, 0x78, 0x04, 0x78}, {0x7c, 0x08, 0x04, 0x04, 0x78},
      {0x38, 0x44, 0x44, 0x44, 0x38}, {0xfc, 0x18, 0x24, 0x24, 0x18}, {0x18, 0x24, 0x24, 0x18, 0xfc},
      {0x7c, 0x08, 0x04, 0x04, 0x08}, {0x48, 0x54, 0x54, 0x54, 0x24}, {0x04, 0x04, 0x3f, 0x44, 0x24},
      {0x3c, 0x40, 0x40, 0x20, 0x7c}, {0x1c, 0x20, 0x40, 0x20, 0x1c}, {0x3c, 0x40, 0x30, 0x40, 0x3c},
      {0x44, 0x28, 0x10, 0x28, 0x44}, {0x4c, 0x90, 0x90, 0x90, 0x7c}, {0x44, 0x64, 0x54, 0x4c, 0x44}};
  const size_t scale = 2, advance = 6 * scale;
  for (size_t k = 0; text[k] && (k + 1) * advance <= width; k++) {
    const char *const found = strchr(known, text[k]);
    if (!found) continue;
    for (size_t i = 0; i < 5 * 8 * scale * scale; i++) {
      const size_t x = i % (5 * scale), y = i / (5 * scale), at_x = left + k * advance + x, at_y = top + y;
      if (!(columns[found - known][x / scale] >> y / scale & 1) || at_x >= sheet->width || at_y >= sheet->height)
        continue;
      for (size_t c = 0; c < 3; c++) sheet->samples[(at_y * sheet->width + at_x) * 3 + c] = 0x33;
    }
  }
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

typedef struct image_header {
  size_t width, height, channels, maxval;
  size_t offset, size; /* where the samples begin in the file, and how many bytes they take */
} image_header;

static inline int image_is_space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Reads a number of a header, with the blanks and comments before it. */
static inline int image_number(const unsigned char *data, size_t size, size_t *at, const char *name, size_t limit,
                               size_t *number, image_error *why) {
  size_t i = *at, value = 0;
  for (; i < size && (image_is_space(data[i]) || data[i] == '#'); i++)
    if (data[i] == '#')
      while (i + 1 < size && data[i] != '\n' && data[i] != '\r') i++;
  if (i == size) return image_fail(why, "the header ends before its %s", name);
  if (data[i] == '-') return image_fail(why, "the %s is negative", name);
  if (data[i] < '0' || data[i] > '9') return image_fail(why, "the %s is not a number", name);
  for (; i < size && data[i] >= '0' && data[i] <= '9'; i++) {
    value = value * 10 + (size_t)(data[i] - '0');
    if (value > limit) return image_fail(why, "the %s is larger than %zu", name, limit);
  }
  if (value == 0) return image_fail(why, "the %s is 0", name);
  *at = i;
  *number = value;
  return 1;
}

static inline int image_parse_header(const void *file, size_t size, image_header *header, image_error *why) {
  const unsigned char *data = (const unsigned char *)file;
  image_header h = {0, 0, 0, 0, 2, 0};
  if (size == 0) return image_fail(why, "the file is empty");
  if (size >= 2 && data[0] == 'P' && data[1] >= '1' && data[1] <= '7' && data[1] != '5' && data[1] != '6')
    return image_fail(why, "P%c pictures are not read, only binary PGM (P5) and PPM (P6)", data[1]);
  if (size < 2 || data[0] != 'P' || (data[1] != '5' && data[1] != '6'))
    return image_fail(why, "not a PGM or PPM picture: it does not begin with P5 or P6");
  if (size > 2 && !image_is_space(data[2]) && data[2] != '#')
    return image_fail(why, "not a PGM or PPM picture: no blank after P%c", data[1]);
  h.channels = data[1] == '6' ? 3 : 1;
  if (!image_number(data, size, &h.offset, "width", IMAGE_MAX_PIXELS, &h.width, why)) return 0;
  if (!image_number(data, size, &h.offset, "height", IMAGE_MAX_PIXELS, &h.height, why)) return 0;
  if (!image_number(data, size, &h.offset, "maxval", 65535, &h.maxval, why)) return 0;
  if (h.width > IMAGE_MAX_PIXELS / h.height)
    return image_fail(why, "%zu x %zu pixels are more than the limit of %zu", h.width, h.height, IMAGE_MAX_PIXELS);
  if (h.offset < size && data[h.offset] == '#') /* a comment's line end is the blank that ends the header */
    while (h.offset < size && data[h.offset] != '\n' && data[h.offset] != '\r') h.offset++;
  if (h.offset == size) return image_fail(why, "the header ends after its maxval");
  if (!image_is_space(data[h.offset])) return image_fail(why, "no blank between the maxval and the samples");
  h.offset++; /* one blank exactly: the next byte is a sample, whatever its value */
  h.size = h.width * h.height * h.channels * (h.maxval > 255 ? 2 : 1);
  *header = h;
  return 1;
}

/* A PGM or PPM file that lies in memory. */
static inline int image_parse(const void *file, size_t size, image *im, image_error *why) {
  image_header h;
  image made;
  if (!image_parse_header(file, size, &h, why)) return 0;
  if (size - h.offset < h.size)
    return image_fail(why, "truncated: %zu x %zu pixels take %zu bytes, and only %zu are there", h.width, h.height,
                      h.size, size - h.offset);
  if (!image_new(&made, h.width, h.height, h.channels, why)) return 0;
  const unsigned char *in = (const unsigned char *)file + h.offset;
  for (size_t i = 0, n = image_bytes(&made); i < n; i++) {
    size_t v = h.maxval > 255 ? (size_t)in[2 * i] << 8 | in[2 * i + 1] : in[i];
    if (v > h.maxval) {
      image_free(&made);
      return image_fail(why, "sample %zu is %zu, above the maxval of %zu", i, v, h.maxval);
    }
    made.samples[i] = (unsigned char)((v * 255 + h.maxval / 2) / h.maxval);
  }
  *im = made;
  return 1;
}

/* The header is judged before the samples are read, so that a file that is huge, endless or no picture costs nothing.
 */
static inline int image_read(const char *path, image *im, image_error *why) {
  image_error inner;
  image_header h;
  inner.text[0] = 0;
  FILE *f = fopen(path, "rb");
  if (!f) return image_fail(why, "%s: %s", path, strerror(errno));
  unsigned char *data = (unsigned char *)malloc(IMAGE_MAX_HEADER), *more;
  size_t size = 0;
  int ok = data || image_fail(&inner, "no memory for its header");
  errno = 0;
  if (ok) size = fread(data, 1, IMAGE_MAX_HEADER, f);
  if (ok && ferror(f)) ok = image_fail(&inner, "%s", strerror(errno));
  ok = ok && image_parse_header(data, size, &h, &inner);
  if (ok && size == IMAGE_MAX_HEADER && h.size > size - h.offset) {
    more = (unsigned char *)realloc(data, h.offset + h.size);
    ok = more || image_fail(&inner, "no memory for %zu x %zu pixels", h.width, h.height);
    if (more) {
      data = more;
      size += fread(data + size, 1, h.offset + h.size - size, f);
      if (ferror(f)) ok = image_fail(&inner, "%s", strerror(errno));
    }
  }
  fclose(f);
  ok = ok && image_parse(data, size, im, &inner);
  free(data);
  return ok || image_fail(why, "%.600s: %.400s", path, inner.text);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* A growing row of bytes. After a failed allocation it takes no more, and `failed` says so. */
typedef struct image_buffer {
  unsigned char *data;
  size_t size, capacity;
  int failed;
} image_buffer;

static inline void image_put(image_buffer *b, const void *data, size_t size) {
  if (b->failed) return;
  if (size > b->capacity - b->size) {
    size_t capacity = b->size + size + b->capacity / 2 + 64;
    unsigned char *grown = (unsigned char *)realloc(b->data, capacity);
    b->failed = !grown;
    if (!grown) return;
    b->data = grown;
    b->capacity = capacity;
  }
  if (size) memcpy(b->data + b->size, data, size);
  b->size += size;
}

static inline void image_put_byte(image_buffer *b, unsigned value) {
  unsigned char byte = (unsigned char)value;
  image_put(b, &byte, 1);
}

static inline void image_put_u32(image_buffer *b, uint32_t v) { /* big-endian, as PNG has it */
  for (int shift = 24; shift >= 0; shift -= 8) image_put_byte(b, v >> shift & 255);
}

static inline void image_encode_pnm(image_buffer *b, const image *im) {
  char header[80];
  int length =
      snprintf(header, sizeof header, "P%c\n%zu %zu\n255\n", im->channels == 3 ? '6' : '5', im->width, im->height);
  image_put(b, header, (size_t)length);
  image_put(b, im->samples, image_bytes(im));
}

/* The checksum of PNG, gzip and Ethernet, four bits at a time. Start with crc = 0; chains over pieces. */
static inline uint32_t image_crc32(uint32_t crc, const void *data, size_t size) {
  static const uint32_t nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                      0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                      0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  const unsigned char *p = (const unsigned char *)data;
  crc = ~crc;
  for (size_t i = 0; i < size; i++) {
    crc ^= p[i];
    crc = crc >> 4 ^ nibble[crc & 15];
    crc = crc >> 4 ^ nibble[crc & 15];
  }
  return ~crc;
}

static inline uint32_t image_adler32(const void *data, size_t size) {
  const unsigned char *p = (const unsigned char *)data;
  uint32_t a = 1, b = 0;
  for (size_t i = 0; i < size; i++) {
    a = (a + p[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

/* Deflate packs bits from the low end of each byte. */
typedef struct image_bits {
  image_buffer *out;
  uint32_t held;
  int count;
} image_bits;

static inline void image_put_bits(image_bits *s, uint32_t value, int count) {
  s->held |= value << s->count;
  for (s->count += count; s->count >= 8; s->count -= 8) {
    image_put_byte(s->out, s->held & 255);
    s->held >>= 8;
  }
}

/* Huffman codes of n symbols: lengths of at most `limit` bits, 0 for a symbol that never occurs, and the codes with
 * their bits reversed, as deflate wants them. Counts are flattened until the tree is low enough, which costs
 * a hair against the best limited code. */
static inline void image_huffman(const size_t *count, int n, int limit, unsigned char *length, uint16_t *code) {
  enum { MAX = 288 };
  size_t weight[2 * MAX], flat = 0;
  int parent[2 * MAX], nodes, longest, next = 0;
  do {
    for (int i = 0; i < n; i++) weight[i] = count[i] ? (count[i] >> flat) + 1 : 0;
    flat += 2;
    for (nodes = n;; nodes++) { /* join the two lightest until one is left; weight 0: absent, or joined already */
      int a = -1, b = -1;
      for (int i = 0; i < nodes; i++) {
        if (!weight[i]) continue;
        if (a < 0 || weight[i] < weight[a])
          b = a, a = i;
        else if (b < 0 || weight[i] < weight[b])
          b = i;
      }
      parent[nodes] = -1;
      if (b < 0) break;
      weight[nodes] = weight[a] + weight[b];
      weight[a] = weight[b] = 0;
      parent[a] = parent[b] = nodes;
    }
    longest = 0;
    for (int i = 0; i < n; i++) {
      int depth = 0;
      for (int at = i; count[i] && parent[at] >= 0; at = parent[at]) depth++;
      length[i] = (unsigned char)depth;
      if (depth > longest) longest = depth;
    }
  } while (longest > limit);
  for (int bits = 1; bits <= longest; bits++, next <<= 1) /* canonical: short codes first, then by symbol */
    for (int i = 0; i < n; i++) {
      if (length[i] != bits) continue;
      code[i] = 0;
      for (int k = 0; k < bits; k++) code[i] = (uint16_t)(code[i] | (next >> k & 1) << (bits - 1 - k));
      next++;
    }
}

/* A zlib stream of one deflate block: Huffman codes fitted to the data and no matches, which after PNG's row filters
 * are worth little in a photograph. */
static inline void image_deflate(image_buffer *out, const unsigned char *data, size_t size) {
  static const unsigned char order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  size_t count[257] = {0};
  unsigned char length[257];
  uint16_t code[257];
  image_bits bits = {out, 0, 0};
  for (size_t i = 0; i < size; i++) count[data[i]]++;
  count[256] = 1; /* the end of the block */
  image_huffman(count, 257, 15, length, code);
  image_put(out, "\x78\x01", 2);
  image_put_bits(&bits, 1 | 2 << 1, 3);                                   /* last block, its own codes */
  image_put_bits(&bits, (257 - 257) | (1 - 1) << 5 | (19 - 4) << 10, 14); /* 257 symbols, 1 distance, 19 lengths */
  for (int i = 0; i < 19; i++)
    image_put_bits(&bits, order[i] < 16 ? 4 : 0, 3); /* lengths 0..15 as plain 4-bit codes, */
  for (int i = 0; i <= 257; i++) {                   /* which are sent from the high bit */
    unsigned v = i < 257 ? length[i] : 0;            /* the distance code is never used */
    image_put_bits(&bits, (v & 1) << 3 | (v & 2) << 1 | (v & 4) >> 1 | (v & 8) >> 3, 4);
  }
  for (size_t i = 0; i < size; i++) image_put_bits(&bits, code[data[i]], length[data[i]]);
  image_put_bits(&bits, code[256], length[256]);
  image_put_bits(&bits, 0, 7); /* fills the last byte */
  image_put_u32(out, image_adler32(data, size));
}

/* PNG predicts each byte from its left (a), upper (b) and upper left (c) neighbours, in one of five ways. */
static inline int image_predict(int filter, int a, int b, int c) {
  int pa = abs(b - c), pb = abs(a - c), pc = abs(a + b - 2 * c);
  switch (filter) {
  case 0: return 0;
  case 1: return a;
  case 2: return b;
  case 3: return (a + b) / 2;
  default: return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
  }
}

static inline void image_put_chunk(image_buffer *b, const char *type, const void *data, size_t size) {
  image_put_u32(b, (uint32_t)size);
  image_put(b, type, 4);
  image_put(b, data, size);
  image_put_u32(b, image_crc32(image_crc32(0, type, 4), data, size));
}

static inline void image_encode_png(image_buffer *b, const image *im) {
  size_t row = im->width * im->channels, step = im->channels;
  image_buffer head = {NULL, 0, 0, 0}, rows = {NULL, 0, 0, 0}, packed = {NULL, 0, 0, 0};
  image_put_u32(&head, (uint32_t)im->width);
  image_put_u32(&head, (uint32_t)im->height);
  image_put(&head, im->channels == 3 ? "\x08\x02\0\0\0" : "\x08\0\0\0\0", 5); /* 8 bits, colour or gray */
  for (size_t y = 0; y < im->height; y++) {
    const unsigned char *at = im->samples + y * row, *up = y ? at - row : NULL;
    size_t least = SIZE_MAX, cost;
    int best = 0;
    for (int filter = 0; filter < 6; filter++) { /* try the five, then write the best: small residuals pack well */
      int writing = filter == 5;
      if (writing) image_put_byte(&rows, (unsigned)best);
      cost = 0;
      for (size_t i = 0; i < row; i++) {
        int a = i < step ? 0 : at[i - step], c = i < step || !up ? 0 : up[i - step];
        int residual = (at[i] - image_predict(writing ? best : filter, a, up ? up[i] : 0, c)) & 255;
        if (writing) image_put_byte(&rows, (unsigned)residual);
        cost += (size_t)(residual < 128 ? residual : 256 - residual);
      }
      if (!writing && cost < least) least = cost, best = filter;
    }
  }
  if (!rows.failed) image_deflate(&packed, rows.data, rows.size);
  image_put(b, "\x89PNG\r\n\x1a\n", 8);
  image_put_chunk(b, "IHDR", head.data, head.size);
  image_put_chunk(b, "IDAT", packed.data, packed.size);
  image_put_chunk(b, "IEND", NULL, 0);
  b->failed |= head.failed | rows.failed | packed.failed;
  free(head.data);
  free(rows.data);
  free(packed.data);
}

/* Creates a file of these bytes. 0, with the reason in errno: there is none, or it exists already (EEXIST). */
static inline int image_create(const char *path, const image_buffer *b) {
#ifdef _WIN32
  FILE *f = fopen(path, "wb");
  int ok = f && fwrite(b->data, 1, b->size, f) == b->size;
  if (f) ok = !fclose(f) && ok;
  if (f && !ok) remove(path);
  return ok;
#else
  /* With O_EXCL a symbolic link is an existing file. So a link with this name cannot send the bytes elsewhere. */
  const int f = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  size_t done = 0;
  int reason = 0;
  if (f < 0) return 0;
  while (done < b->size && !reason) {
    const ssize_t n = write(f, b->data + done, b->size - done);
    if (n > 0)
      done += (size_t)n;
    else if (n == 0 || errno != EINTR)
      reason = n == 0 ? EIO : errno;
  }
  if (close(f) && !reason) reason = errno;
  if (reason) remove(path);
  errno = reason;
  return !reason;
#endif
}

/* Writes to a new file first, and then renames it, so that the name never stands for half a file. The new file is
 * PATH.part. If that exists, because another program writes the same picture or was stopped while it did, it is
 * PATH.part1 ... PATH.part99. */
static inline int image_write_bytes(const char *path, const image_buffer *b, image_error *why) {
  const size_t size = strlen(path) + sizeof ".part99";
  char *part = (char *)malloc(size);
  int ok = 0, created;
  if (!part) return image_fail(why, "%s: no memory to write it", path);
  errno = EEXIST;
  for (int i = 0; i < 100 && !ok && errno == EEXIST; i++) {
    snprintf(part, size, i ? "%s.part%d" : "%s.part", path, i);
    ok = image_create(part, b);
  }
  created = ok;
#ifdef _WIN32
  if (created) remove(path); /* rename replaces nothing there */
#endif
  ok = created && rename(part, path) == 0;
  if (!ok) {
    ok = image_fail(why, "%s: %s", path, strerror(errno));
    if (created) remove(part);
  }
  free(part);
  return ok;
}

/* By the name's ending: .pgm (gray), .ppm (colour) or .png. */
static inline int image_write(const char *path, const image *im, image_error *why) {
  const char *dot = strrchr(path, '.'), *wanted = im->channels == 3 ? ".ppm" : ".pgm";
  image_buffer b = {NULL, 0, 0, 0};
  image_error inner;
  int ok, png = dot && strcmp(dot, ".png") == 0;
  if (!image_check_channels(im->channels, &inner)) return image_fail(why, "%.600s: %.400s", path, inner.text);
  if (!png && (!dot || strcmp(dot, wanted) != 0))
    return image_fail(why, "%s: the name must end in %s or .png", path, wanted);
  if (png)
    image_encode_png(&b, im);
  else
    image_encode_pnm(&b, im);
  ok = b.failed ? image_fail(why, "%s: no memory to write it", path) : image_write_bytes(path, &b, why);
  free(b.data);
  return ok;
}

static inline int image_is_directory(const char *path) {
#ifdef _WIN32
  struct _stat found;
  return _stat(path, &found) == 0 && (found.st_mode & _S_IFDIR);
#else
  struct stat found;
  return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
#endif
}

/* Makes a directory and those above it; one that is there already is fine. */
static inline int image_make_directory(const char *path, image_error *why) {
  char part[1024];
  size_t length = strlen(path);
  if (length == 0) return image_fail(why, "the name of the directory is empty");
  if (length >= sizeof part) return image_fail(why, "%.100s...: the name is too long", path);
  for (size_t i = 1; i <= length; i++) {
    if (i < length && path[i] != '/' && path[i] != '\\') continue;
    memcpy(part, path, i);
    part[i] = 0;
#ifdef _WIN32
    int failed = _mkdir(part);
#else
    int failed = mkdir(part, 0777);
#endif
    if (failed && i == length) {
      const int reason = errno; /* EEXIST for anything of this name, so a file is told from a directory */
      if (!image_is_directory(path)) return image_fail(why, "%s: %s", path, strerror(reason));
    }
  }
  return 1;
}

#endif
