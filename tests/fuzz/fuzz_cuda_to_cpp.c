/* Any bytes as a CUDA source: the translation ends, and keeps the number of lines, or tells a line and a reason. */
#define CUDA_TO_CPP_NO_MAIN
#include "../cpu/cuda_to_cpp.c"
#include <stdint.h>

static size_t lines(const char *text, size_t length) {
  size_t count = 0, i;
  for (i = 0; i < length; i++) count += text[i] == '\n';
  return count;
}

/* Some files are there and translated, some are there, some are not. */
static char *find(void *context, const char *name, size_t length, int quoted, int *changed) {
  char *answer;
  (void)context, (void)quoted;
  *changed = length % 3 == 0;
  if (length % 3 == 2) return NULL;
  answer = (char *)malloc(length + 5);
  if (!answer) return NULL;
  memcpy(answer, name, length);
  memcpy(answer + length, ".cpp", 5);
  return answer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const struct includes includes = {find, NULL};
  /* Of the exact size, so that a sanitizer sees a read of the byte after it. */
  char *text = (char *)malloc(size ? size : 1), message[200], *result;
  size_t length = 0;
  int changed = 0, line = 0;
  if (size) memcpy(text, data, size);
  result = cuda_to_cpp(text, size, "f\"uzz.cu", &includes, &length, &changed, &line, message);
  if (result) {
    if (line || lines(result, length) != lines(text, size) + 2) abort();
  } else if (line < 1 || (size_t)line > lines(text, size) + 1 || !message[0]) {
    abort();
  }
  free(result);
  free(text);
  return 0;
}
