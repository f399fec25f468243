/* lesson_timeline.h: when each step of some work ran in its stream, by events before and after it, as a picture.
 *
 *   timeline t;
 *   timeline_create(&t);
 *   work(&t), timeline_start(&t), work(&t);       the first run warms up; in the second one, for each step:
 *     timeline_before(&t, lane, kind, stream);    lane: the row that it is drawn in; kind: its colour
 *     ... the step, in the stream ...
 *     timeline_after(&t, stream);
 *   const double ms = timeline_end(&t);           waits; returns the end of the last step
 *   y = timeline_draw(&picture, y, &t, "title", lanes, names_of_kinds, kinds, ms);
 */
#ifndef LESSON_TIMELINE_H
#define LESSON_TIMELINE_H

#include "lesson.h"
#include "svg.h"

#include <math.h>

enum { TIMELINE_STEPS = 64, TIMELINE_LEFT = 130, TIMELINE_WIDTH = 820, TIMELINE_LANE = 26 };

typedef struct timeline_step {
  int lane, kind;
  cudaEvent_t before, after;
  float begin, end; /* in ms since the start */
} timeline_step;

typedef struct timeline {
  cudaEvent_t start;
  int count;
  timeline_step steps[TIMELINE_STEPS];
  const char *const *lane_names; /* NULL: "stream 1", "stream 2", ... */
} timeline;

/* Creates all events first: that takes longer than to record them. */
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

/* Does nothing if t is NULL, so that the same work runs with and without a timeline; nothing beyond TIMELINE_STEPS. */
inline void timeline_before(timeline *t, int lane, int kind, cudaStream_t stream) {
  if (!t || t->count == TIMELINE_STEPS) return;
  t->steps[t->count].lane = lane;
  t->steps[t->count].kind = kind;
  GK_CHECK(cudaEventRecord(t->steps[t->count].before, stream));
}

inline void timeline_after(timeline *t, cudaStream_t stream) {
  if (t && t->count < TIMELINE_STEPS) GK_CHECK(cudaEventRecord(t->steps[t->count++].after, stream));
}

/* The event before a step is recorded as soon as the stream's previous step has ended, but the step itself may still
 * wait for a step of the same kind in another stream. So it begins when both have ended. */
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

/* The height of one diagram with this many lanes, in pixels. */
inline double timeline_height(int lanes) { return (lanes + 2.6) * TIMELINE_LANE; }

/* An axis of 0 to last ms at y: about eight ticks, at 1, 2 or 5 times a power of ten. */
inline void timeline_axis(svg *picture, double y, double last) {
  const double x = TIMELINE_LEFT, width = TIMELINE_WIDTH, power = pow(10, floor(log10(last / 8)));
  const double step = power * (last / power <= 8 ? 1 : last / power <= 20 ? 2 : last / power <= 50 ? 5 : 10);
  svg_box(picture, x, y, width, 1, "#8a8a8a");
  for (double ms = 0; ms < last * 0.96; ms += step) {
    svg_box(picture, x + width * ms / last, y, 1, 5, "#8a8a8a");
    svg_text(picture, x + width * ms / last, y + 18, 12, "middle", "%.*f", step < 1 ? 1 : 0, ms);
  }
  svg_text(picture, x + width, y + 18, 12, "end", "%.2f ms", last);
}

/* Draws the lanes from y on, and the time axis below. last: the time at the right edge, in ms. Returns the y of the
 * next diagram. */
inline double timeline_draw(svg *picture, double y, const timeline *t, const char *title, int lanes,
                            const char *const *kinds, int kind_count, double last) {
  const double x = TIMELINE_LEFT, width = TIMELINE_WIDTH, height = TIMELINE_LANE, next = y + timeline_height(lanes);
  svg_text(picture, x, y + 4, 15, "start", "%s", title);
  for (int i = 0; i < kind_count; i++) {
    svg_box(picture, x + 480 + 120 * i, y - 6, 12, 12, svg_colours[i]);
    svg_text(picture, x + 497 + 120 * i, y + 4, 13, "start", "%s", kinds[i]);
  }
  y += height / 2;
  for (int lane = 0; lane < lanes; lane++) {
    const double line = y + 17 + lane * height;
    if (t->lane_names)
      svg_text(picture, x - 10, line, 13, "end", "%s", t->lane_names[lane]);
    else
      svg_text(picture, x - 10, line, 13, "end", "stream %d", lane + 1);
  }
  for (const timeline_step *s = t->steps; s < t->steps + t->count; s++)
    svg_box(picture, x + width * s->begin / last, y + 2 + s->lane * height, width * (s->end - s->begin) / last,
            height - 4, svg_colours[s->kind]);
  timeline_axis(picture, y + lanes * height + 2, last);
  return next;
}

#endif
