/* Any bytes as a picture: what the reader takes, it gives back the same after writing, and PNG can be made of it. */
#include "../../examples/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  image picture, again;
  image_error why;
  if (!image_parse(data, size, &picture, &why)) {
    if (!memchr(why.text, 0, sizeof why.text) || !why.text[0]) abort(); /* a failure gives its reason */
    return 0;
  }
  image_buffer written = {NULL, 0, 0, 0};
  image_encode_pnm(&written, &picture);
  if (!image_parse(written.data, written.size, &again, &why)) abort();
  if (again.width != picture.width || again.height != picture.height || again.channels != picture.channels) abort();
  if (memcmp(again.samples, picture.samples, image_bytes(&picture)) != 0) abort();
  image_free(&again);
  written.size = 0;
  image_encode_png(&written, &picture);
  if (written.failed) abort();
  free(written.data);
  image_free(&picture);
  return 0;
}
