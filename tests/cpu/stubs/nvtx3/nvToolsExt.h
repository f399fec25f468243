/* NVTX marks ranges for a profiler, and does nothing else. */
#pragma once
#include <stdint.h>

#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))
enum nvtxColorType_t { NVTX_COLOR_UNKNOWN, NVTX_COLOR_ARGB };
enum nvtxMessageType_t { NVTX_MESSAGE_UNKNOWN, NVTX_MESSAGE_TYPE_ASCII };
typedef uint64_t nvtxRangeId_t;
typedef struct nvtxEventAttributes_v2 {
  uint16_t version, size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t messageType;
  union {
    const char *ascii;
  } message;
} nvtxEventAttributes_t;

static inline int nvtxRangePushA(const char *name) { return (void)name, 0; }
static inline int nvtxRangePushEx(const nvtxEventAttributes_t *a) { return (void)a, 0; }
static inline int nvtxRangePop(void) { return 0; }
static inline void nvtxMarkA(const char *name) { (void)name; }
static inline nvtxRangeId_t nvtxRangeStartA(const char *name) { return (void)name, 0u; }
static inline void nvtxRangeEnd(nvtxRangeId_t id) { (void)id; }
#define nvtxRangePush nvtxRangePushA
#define nvtxMark nvtxMarkA
#define nvtxRangeStart nvtxRangeStartA
