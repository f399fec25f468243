/* lesson_timeline.h: when each step of some work ran in its stream, by events before and after it, as a picture.
 *
 *   timeline t;
 *   timeline_create(&t);
 *   work(&t), timeline_start(&t), work(&t);       once to warm up, then to be drawn; and for each step there
 *     timeline_before(&t, lane, kind, stream);    lane: in which row it is drawn; kind: in which colour
 *     ... what is to be timed, in the stream ...
 *     timeline_after(&t, stream);
 *   const double ms = timeline_end(&t);           waits; when the last step has ended
 *   y = timeline_draw(&picture, y, &t, "title", lanes, names_of_kinds, kinds, ms);
 */
#ifndef LESSON_TIMELINE_H
#define LESSON_TIMELINE_H

#include "lesson.h"
#include "svg.h"

enum { TIMELINE_STEPS = 64, TIMELINE_LEFT = 110, TIMELINE_WIDTH = 820, TIMELINE_LANE = 26 };

typedef struct timeline_step {
  int lane, kind;
  cudaEvent_t before, after;
  float begin, end; /* in ms since the start */
} timeline_step;

typedef struct timeline {
  cudaEvent_t start;
  int count;
  timeline_step steps[TIMELINE_STEPS];
} timeline;

/* Events are made beforehand: that takes longer than to record them. */
inline void timeline_create(timeline *t) {
  memset(t, 0, sizeof *t);
  GK_CHECK(cudaEventCreate(&t->start));
  for (timeline_step &s : t->steps) {
    GK_CHECK(cudaEventCreate(&s.before));
    GK_CHECK(cudaEventCreate(&s.after));
  }
}

inline void timeline_start(timeline *t) {
  GK_CHECK(cudaDeviceSynchronize());
  t->count = 0;
  GK_CHECK(cudaEventRecord(t->start, 0));
}

/* Nothing without a timeline, so that the same work runs with one and without; and nothing beyond TIMELINE_STEPS. */
inline void timeline_before(timeline *t, int lane, int kind, cudaStream_t stream) {
  if (!t || t->count == TIMELINE_STEPS) return;
  t->steps[t->count].lane = lane;
  t->steps[t->count].kind = kind;
  GK_CHECK(cudaEventRecord(t->steps[t->count].before, stream));
}

inline void timeline_after(timeline *t, cudaStream_t stream) {
  if (t && t->count < TIMELINE_STEPS) GK_CHECK(cudaEventRecord(t->steps[t->count++].after, stream));
}

/* An event before a step is recorded as soon as the stream's last step is over, while the step itself may have to wait
 * for others of its kind: so it begins when both are over. */
inline double timeline_end(timeline *t) {
  timeline_step *const begin = t->steps, *const end = begin + t->count;
  float last = 0;
  GK_CHECK(cudaDeviceSynchronize());
  for (timeline_step *s = begin; s < end; s++) {
    GK_CHECK(cudaEventElapsedTime(&s->begin, t->start, s->before));
    GK_CHECK(cudaEventElapsedTime(&s->end, t->start, s->after));
    if (s->end > last) last = s->end;
  }
  for (timeline_step *s = begin; s < end; s++)
    for (const timeline_step *other = begin; other < end; other++)
      if (other->kind == s->kind && other->end < s->end && other->end > s->begin) s->begin = other->end;
  GK_CHECK(cudaEventDestroy(t->start));
  for (timeline_step &s : t->steps) {
    GK_CHECK(cudaEventDestroy(s.before));
    GK_CHECK(cudaEventDestroy(s.after));
  }
  return last;
}

/* In so many lanes from y on; where the next begins. last: the time at the right edge. */
inline double timeline_draw(svg *picture, double y, const timeline *t, const char *title, int lanes,
                            const char *const *kinds, int kind_count, double last) {
  const double x = TIMELINE_LEFT, width = TIMELINE_WIDTH, height = TIMELINE_LANE;
  svg_text(picture, x, y + 4, 15, "start", "%s", title);
  for (int i = 0; i < kind_count; i++) {
    svg_box(picture, x + 480 + 120 * i, y - 6, 12, 12, svg_colours[i]);
    svg_text(picture, x + 497 + 120 * i, y + 4, 13, "start", "%s", kinds[i]);
  }
  y += height / 2;
  for (int lane = 0; lane < lanes; lane++)
    svg_text(picture, x - 10, y + 17 + lane * height, 13, "end", "stream %d", lane + 1);
  for (const timeline_step *s = t->steps; s < t->steps + t->count; s++)
    svg_box(picture, x + width * s->begin / last, y + 2 + s->lane * height, width * (s->end - s->begin) / last,
            height - 4, svg_colours[s->kind]);
  return y + (lanes + 1.5) * height;
}

#endif
