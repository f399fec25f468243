/* lesson_photo.h: the photograph in the size that a lesson needs, and pictures of its results in build/lessons/.
 *
 *   const photo before = lesson_photo(&l);           n pixels wide, two thirds of that high
 *   ... lesson_array(&l, before.pixels) ...
 *   const photo shown[] = {lesson_corner(before), lesson_corner(after)};
 *   lesson_picture(&l, "18_blur.png", shown, 2);     side by side
 *
 * A pixel is one unsigned, with red in the lowest byte, then green and blue: one load for each, as of a float. */
#ifndef LESSON_PHOTO_H
#define LESSON_PHOTO_H

#include "image.h"
#include "lesson.h"
#include <string>

#define PHOTO_FILE "examples/data/coffee.ppm"
#define PHOTO_COUNTS "pixels in a row; there are two thirds as many rows" /* as --help says of n */
#define PHOTO_OUT RESULTS_FOLDER "/lessons"
#define PHOTO_WIDTH 600u /* of a picture that is shown, at most */
#define PHOTO_HEIGHT 400u

typedef struct photo {
  unsigned width, height;
  std::vector<unsigned> pixels;
} photo;

__host__ __device__ inline unsigned photo_pixel(unsigned red, unsigned green, unsigned blue) {
  return red | green << 8 | blue << 16;
}

/* The index of the pixel that is so far to the right of (x, y) and below. The outermost pixel stands for those beyond
 * the edge. */
__host__ __device__ inline size_t photo_beside(unsigned x, unsigned y, int right, int down, unsigned w, unsigned h) {
  const int i = (int)x + right, j = (int)y + down;
  const int column = i < 0 ? 0 : i >= (int)w ? (int)w - 1 : i, row = j < 0 ? 0 : j >= (int)h ? (int)h - 1 : j;
  return (size_t)row * w + (size_t)column;
}

/* n pixels wide: the photograph is repeated to the right and downwards, or some of its pixels are left out. */
inline photo lesson_photo(lesson *l) {
  image im;
  image_error why;
  if (!image_read(PHOTO_FILE, &im, &why) || im.channels != 3) {
    fprintf(stderr, "%s: %s; run this in the folder that has examples/\n", l->about->name, why.text);
    exit(1);
  }
  photo p = {(unsigned)l->n, (unsigned)(l->n * 2 / 3), std::vector<unsigned>()};
  p.height += p.height == 0;
  const size_t step = l->n < im.width ? im.width / l->n : 1;
  p.pixels.resize((size_t)p.width * p.height);
  for (size_t y = 0; y < p.height; y++)
    for (size_t x = 0; x < p.width; x++) {
      const unsigned char *const s = im.samples + 3 * (y * step % im.height * im.width + x * step % im.width);
      p.pixels[y * p.width + x] = photo_pixel(s[0], s[1], s[2]);
    }
  image_free(&im);
  return p;
}

/* The largest difference from the right picture, in levels; more than allowed is an error. Overwrites the picture. */
inline int lesson_levels_off(lesson *l, const lesson_row *row, unsigned *device, const photo &right, int allowed) {
  std::vector<unsigned> got(right.pixels.size());
  int most = 0;
  GK_CHECK(cudaMemcpy(got.data(), device, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (size_t k = 0; k < got.size(); k++)
    for (int shift = 0; shift < 24; shift += 8) {
      const int off = abs((int)(got[k] >> shift & 0xff) - (int)(right.pixels[k] >> shift & 0xff));
      if (off > most) most = off;
    }
  if (most > allowed) lesson_wrong(l, row, "%d levels off", most);
  GK_CHECK(cudaMemset(device, 0xff, got.size() * sizeof(unsigned)));
  return most;
}

inline photo lesson_corner(const photo &of) {
  photo p = {of.width < PHOTO_WIDTH ? of.width : PHOTO_WIDTH, of.height < PHOTO_HEIGHT ? of.height : PHOTO_HEIGHT,
             std::vector<unsigned>()};
  for (unsigned y = 0; y < p.height; y++)
    p.pixels.insert(p.pixels.end(), of.pixels.begin() + (ptrdiff_t)((size_t)y * of.width),
                    of.pixels.begin() + (ptrdiff_t)((size_t)y * of.width + p.width));
  return p;
}

/* Writes pictures side by side; those that are too large are reduced. */
inline void lesson_picture(lesson *l, const char *name, const photo *photos, size_t count) {
  const size_t w = photos[0].width < PHOTO_WIDTH ? photos[0].width : PHOTO_WIDTH;
  const size_t h = photos[0].height < PHOTO_HEIGHT ? photos[0].height : PHOTO_HEIGHT;
  const std::string path = std::string(PHOTO_OUT "/") + name;
  image sheet, one;
  image_error why;
  if (l->failed) return;
  int ok = image_new(&sheet, count * w, h, 3, &why);
  for (size_t i = 0; i < count && ok; i++) {
    const photo &p = photos[i];
    ok = image_new(&one, p.width, p.height, 3, &why);
    if (!ok) break;
    for (size_t k = 0; k < p.pixels.size(); k++)
      for (size_t c = 0; c < 3; c++) one.samples[3 * k + c] = (unsigned char)(p.pixels[k] >> 8 * c);
    image_place(&sheet, i * w, 0, w, h, &one);
    image_free(&one);
  }
  ok = ok && image_make_directory(PHOTO_OUT, &why) && image_write(path.c_str(), &sheet, &why);
  if (!ok) {
    fprintf(stderr, "%s: %s\n", l->about->name, why.text);
    exit(1);
  }
  image_free(&sheet);
  lesson_say(l, "The picture is %s.", path.c_str());
}

#endif
