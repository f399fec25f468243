/* Streams and events: cudaStreamCreate, cudaEventRecord, cudaStreamWaitEvent, cudaLaunchHostFunc, ... */
#pragma once
#pragma GCC system_header

#include <time.h>
#include "graphs.h"

namespace cuda_cpu {

/* Waiting on the host for a stream. */
inline cudaError_t check_wait(CUstream_st *s) {
  if (s && s->capture) {
    invalidate(s->capture);
    return cudaErrorStreamCaptureUnsupported;
  }
  return check_stream(s);
}

/* A stream or event that waits for a collective that cannot complete is never ready, and waiting for it would never
 * end. */
inline cudaError_t ready(const void *hung) { return hung ? cudaErrorNotReady : cudaSuccess; }
inline void refuse_to_hang(const void *hung, const char *call) {
  if (!hung) return;
  fprintf(stderr, "CUDA stand-in: %s would wait for ever: not all ranks have called a collective before it\n", call);
  abort();
}
/* What waited for this stops waiting; the work that was enqueued after it has not run, and never will. */
inline void release_hung(const void *what) {
  locked lock;
  for (device_state &d : ctx.devices)
    for (CUstream_st *s : {&d.legacy, &d.per_thread})
      if (s->hung == what) s->hung = nullptr;
  for (CUstream_st *s = ctx.streams; s; s = s->next)
    if (s->hung == what) s->hung = nullptr;
  for (CUevent_st *e = ctx.events; e; e = e->next)
    if (e->hung == what) e->hung = nullptr;
}

inline long long now_ns() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

inline cudaError_t record(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (!is_event(event)) return cudaErrorInvalidResourceHandle;
  CUstream_st *s = find_stream(stream);
  if (cudaError_t e = check_stream(s)) return e;
  if (event->device != s->device) return cudaErrorInvalidResourceHandle;
  if (s->capture && !(flags & cudaEventRecordExternal)) { /* orders captured work only */
    event->capture = s->capture;
    event->stream = s;
    event->node = s->last_node;
    return cudaSuccess;
  }
  event->hung = s->hung;
  return enqueue(stream, [=] {
    event->capture = nullptr;
    event->recorded = true;
    event->ns = now_ns();
    return cudaSuccess;
  });
}

/* Work is done at once, so only captures have anything to remember: a stream that waits for a captured event joins its
 * capture. */
inline cudaError_t wait(cudaStream_t stream, cudaEvent_t event) {
  if (!is_event(event)) return cudaErrorInvalidResourceHandle;
  CUstream_st *s = find_stream(stream);
  if (cudaError_t e = check_stream(s)) return e;
  if (!event->capture) {
    if (event->hung && !s->capture) s->hung = event->hung;
    if (!s->capture || !event->recorded) return cudaSuccess;
    invalidate(s->capture);
    return cudaErrorStreamCaptureIsolation;
  }
  if (is_legacy(s)) return cudaErrorStreamCaptureImplicit;
  if (s->capture && s->capture != event->capture) {
    invalidate(s->capture);
    invalidate(event->capture);
    return cudaErrorStreamCaptureMerge;
  }
  locked lock;
  if (!s->capture) {
    s->capture = event->capture;
    s->last_node = s->joined = 0;
    ctx.capturing++;
  }
  if (event->stream != s && event->node > event->stream->joined) event->stream->joined = event->node;
  return cudaSuccess;
}

/* --- streams --- */

CUDA_CPU_CALL cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority) {
  CUDA_CPU_API(cudaStreamCreateWithPriority);
  if (!pStream || flags > cudaStreamNonBlocking) return error(cudaErrorInvalidValue);
  CUstream_st *s = make<CUstream_st>(held_stream, device_now);
  if (!s) return error(cudaErrorMemoryAllocation);
  s->flags = flags;
  s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
  s->device = device_now;
  locked lock;
  s->next = ctx.streams;
  ctx.streams = s;
  *pStream = s;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags) {
  CUDA_CPU_API(cudaStreamCreateWithFlags);
  return cudaStreamCreateWithPriority(pStream, flags, 0);
}
CUDA_CPU_CALL cudaStreamCreate(cudaStream_t *pStream) {
  CUDA_CPU_API(cudaStreamCreate);
  return cudaStreamCreateWithPriority(pStream, cudaStreamDefault, 0);
}
CUDA_CPU_CALL cudaStreamDestroy(cudaStream_t stream) {
  CUDA_CPU_API(cudaStreamDestroy);
  locked lock;
  const int dropped = drop_from(&ctx.streams, [=](CUstream_st *s) {
    if (s == stream && s->capture) leave_capture(s);
    return s == stream;
  });
  return error(dropped ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
CUDA_CPU_CALL cudaStreamSynchronize(cudaStream_t stream) {
  CUDA_CPU_API(cudaStreamSynchronize);
  CUstream_st *s = find_stream(stream);
  if (s) refuse_to_hang(s->hung, "cudaStreamSynchronize");
  return error(check_wait(s));
}
CUDA_CPU_CALL cudaStreamQuery(cudaStream_t stream) {
  CUDA_CPU_API(cudaStreamQuery);
  CUstream_st *s = find_stream(stream);
  if (cudaError_t e = check_wait(s)) return error(e);
  return error(ready(s->hung));
}
CUDA_CPU_CALL cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags) {
  CUDA_CPU_API(cudaStreamGetFlags);
  CUstream_st *s = find_stream(hStream);
  if (!s || !flags) return error(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
  *flags = s->flags;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaStreamGetPriority(cudaStream_t hStream, int *priority) {
  CUDA_CPU_API(cudaStreamGetPriority);
  CUstream_st *s = find_stream(hStream);
  if (!s || !priority) return error(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
  *priority = s->priority;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaStreamGetDevice(cudaStream_t hStream, int *device) {
  CUDA_CPU_API(cudaStreamGetDevice);
  CUstream_st *s = find_stream(hStream);
  if (!s || !device) return error(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
  *device = s->device;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData) {
  CUDA_CPU_API(cudaLaunchHostFunc);
  if (!fn) return error(cudaErrorInvalidValue);
  return enqueue(stream, [=] {
    fn(userData);
    return cudaSuccess;
  });
}
/* What a GPU does better with these, it does as well without. */
CUDA_CPU_CALL cudaStreamSetAttribute(cudaStream_t stream, enum cudaLaunchAttributeID,
                                     const cudaLaunchAttributeValue *v) {
  CUDA_CPU_API(cudaStreamSetAttribute);
  return error(!find_stream(stream) ? cudaErrorInvalidResourceHandle : v ? cudaSuccess : cudaErrorInvalidValue);
}
CUDA_CPU_CALL cudaStreamAttachMemAsync(cudaStream_t stream, void *p, size_t, unsigned int) {
  CUDA_CPU_API(cudaStreamAttachMemAsync);
  return error(!find_stream(stream) ? cudaErrorInvalidResourceHandle : p ? cudaSuccess : cudaErrorInvalidValue);
}
CUDA_CPU_CALL cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *userData,
                                    unsigned int flags) {
  CUDA_CPU_API(cudaStreamAddCallback);
  if (!callback || flags) return error(cudaErrorInvalidValue);
  return enqueue(stream, [=] {
    callback(stream, cudaSuccess, userData);
    return cudaSuccess;
  });
}

/* --- events --- */

CUDA_CPU_CALL cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  CUDA_CPU_API(cudaEventCreateWithFlags);
  if (!event || flags > 7 || ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming)))
    return error(cudaErrorInvalidValue);
  CUevent_st *e = make<CUevent_st>(held_event, device_now);
  if (!e) return error(cudaErrorMemoryAllocation);
  e->flags = flags;
  e->device = device_now;
  locked lock;
  e->next = ctx.events;
  ctx.events = e;
  *event = e;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaEventCreate(cudaEvent_t *event) {
  CUDA_CPU_API(cudaEventCreate);
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
CUDA_CPU_CALL cudaEventDestroy(cudaEvent_t event) {
  CUDA_CPU_API(cudaEventDestroy);
  locked lock;
  const int dropped = drop_from(&ctx.events, [=](CUevent_st *e) { return e == event; });
  return error(dropped ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
CUDA_CPU_CALL cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  CUDA_CPU_API(cudaEventRecordWithFlags);
  return error(record(event, stream, flags));
}
CUDA_CPU_CALL cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  CUDA_CPU_API(cudaEventRecord);
  return error(record(event, stream, cudaEventRecordDefault));
}
CUDA_CPU_CALL cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  CUDA_CPU_API(cudaStreamWaitEvent);
  return error(wait(stream, event));
}
CUDA_CPU_CALL cudaEventQuery(cudaEvent_t event) {
  CUDA_CPU_API(cudaEventQuery);
  if (!is_event(event)) return error(cudaErrorInvalidResourceHandle);
  return error(event->capture ? cudaErrorCapturedEvent : ready(event->hung));
}
CUDA_CPU_CALL cudaEventSynchronize(cudaEvent_t event) {
  CUDA_CPU_API(cudaEventSynchronize);
  if (!is_event(event)) return error(cudaErrorInvalidResourceHandle);
  refuse_to_hang(event->hung, "cudaEventSynchronize");
  return error(event->capture ? cudaErrorCapturedEvent : cudaSuccess);
}
CUDA_CPU_CALL cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  CUDA_CPU_API(cudaEventElapsedTime);
  if (!ms) return error(cudaErrorInvalidValue);
  const cudaEvent_t both[] = {start, end};
  for (cudaEvent_t e : both)
    if (!is_event(e) || !e->recorded || (e->flags & cudaEventDisableTiming))
      return error(cudaErrorInvalidResourceHandle);
  if (start->device != end->device) return error(cudaErrorInvalidResourceHandle);
  *ms = static_cast<float>(static_cast<double>(end->ns - start->ns) * 1e-6);
  return cudaSuccess;
}

} // namespace cuda_cpu
