/* Memory: the table of allocations, and cudaMalloc, cudaMallocManaged, cudaHostAlloc, cudaHostRegister, cudaFree, ... */
#pragma once
#pragma GCC system_header

#include "../run/races.h"
#include "../run/shared_memory.h"
#include "graphs.h"

namespace cuda_cpu {

enum memory_kind { memory_device, memory_host, memory_managed, memory_registered };

struct allocation {
  uintptr_t base;
  size_t size;
  memory_kind kind;
  unsigned flags;
  CUmemPoolHandle_st *pool; /* NULL: not a stream-ordered one */
  bool of_graph;
  int device;                /* that was current, or is the pool's */
  unsigned long long number; /* from 1, in the order of allocation */
  const char *call;          /* that made it */
};

/* Textures of this memory can be read no more. */
void texture_memory_goes(const void *p, size_t size);

inline size_t allocation_after(uintptr_t address) { /* index of the first one that starts beyond address */
  size_t low = 0, high = ctx.allocation_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (ctx.allocations[middle].base <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
inline allocation *find_allocation(const void *p) {
  uintptr_t address = reinterpret_cast<uintptr_t>(p);
  size_t i = allocation_after(address);
  if (!i) return nullptr;
  allocation *a = &ctx.allocations[i - 1];
  return address - a->base < a->size ? a : nullptr;
}
inline bool add_allocation(const allocation &a) {
  if (ctx.allocation_count == ctx.allocation_capacity) {
    size_t capacity = ctx.allocation_capacity * 2 + 64;
    void *more = realloc(ctx.allocations, capacity * sizeof(allocation));
    if (!more) return false;
    ctx.allocations = static_cast<allocation *>(more);
    ctx.allocation_capacity = capacity;
  }
  size_t i = allocation_after(a.base);
  memmove(ctx.allocations + i + 1, ctx.allocations + i, (ctx.allocation_count - i) * sizeof(allocation));
  ctx.allocations[i] = a;
  ctx.allocation_count++;
  trace_memory(reinterpret_cast<const void *>(a.base), a.size);
  if (a.kind == memory_registered) trace_written(reinterpret_cast<const void *>(a.base), a.size);
  return true;
}
inline void remove_allocation(allocation *a) {
  trace_memory_goes(reinterpret_cast<const void *>(a->base), a->size);
  size_t i = static_cast<size_t>(a - ctx.allocations);
  memmove(a, a + 1, (ctx.allocation_count - i - 1) * sizeof(allocation));
  ctx.allocation_count--;
}

/* Large blocks are poisoned at both ends only, so that they do not take more of the machine's memory than is used. */
inline void poison_allocation(void *p, size_t size) {
  const size_t part = size_t{64} << 20;
  if (size <= 4 * part) return poison(p, size);
  poison(p, part);
  poison(static_cast<char *>(p) + (size - part) / 8 * 8, size - (size - part) / 8 * 8);
}

/* What was freed last, for messages. */
struct freed_memory {
  allocation list[256];
  size_t count;
};
inline freed_memory freed;
inline allocation &next_freed() { return freed.list[freed.count++ % (sizeof freed.list / sizeof *freed.list)]; }
/* The latest of those that were there, if any. */
CUDA_CPU_RARE const allocation *find_freed(const void *p) {
  const allocation *found = nullptr;
  for (const allocation &a : freed.list)
    if (reinterpret_cast<uintptr_t>(p) - a.base < a.size && (!found || found->number < a.number)) found = &a;
  return found;
}

/* Protected memory has its own pages, and ends where they end as far as its alignment permits. Under ASan it is poisoned
 * instead, byte by byte. */
#ifdef CUDA_CPU_ASAN
inline void *get_memory(size_t size, memory_kind) {
  void *p;
  return posix_memalign(&p, 256, size) ? nullptr : p;
}
inline void put_memory(const allocation &a) {
  texture_memory_goes(reinterpret_cast<void *>(a.base), a.size);
  next_freed() = a;
  free(reinterpret_cast<void *>(a.base));
}
inline void open_memory(const allocation &a, bool open) {
  (open ? __asan_unpoison_memory_region : __asan_poison_memory_region)(reinterpret_cast<void *>(a.base), a.size);
}
CUDA_CPU_RARE void describe_freed(text *, uintptr_t) {}
#else
CUDA_CPU_RARE size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
CUDA_CPU_RARE uintptr_t first_page(const allocation &a) { return a.base / page() * page(); }
CUDA_CPU_RARE size_t bytes_of_pages(const allocation &a) {
  return (a.base + a.size + page() - 1) / page() * page() - first_page(a);
}
inline void *get_memory(size_t size, memory_kind kind) {
  void *p;
  if (kind != memory_device || !protects()) return posix_memalign(&p, 256, size) ? nullptr : p;
  const size_t pages = (size + page() - 1) / page() * page();
  p = mmap(nullptr, pages + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  char *first = static_cast<char *>(p) + page();
  if (mprotect(first, pages, PROT_READ | PROT_WRITE)) {
    munmap(p, pages + 2 * page());
    return nullptr;
  }
  return first + (pages - size) / 256 * 256;
}

CUDA_CPU_RARE bool has_pages(const allocation &a) { return a.kind == memory_device && protects(); }
/* Protected addresses that are freed stay unused for a while, so that a late access to them is found. */
inline void put_memory(const allocation &a) {
  texture_memory_goes(reinterpret_cast<void *>(a.base), a.size);
  allocation &slot = next_freed();
  if (slot.base && has_pages(slot))
    munmap(reinterpret_cast<void *>(first_page(slot) - page()), bytes_of_pages(slot) + 2 * page());
  slot = a;
  if (!has_pages(a)) return free(reinterpret_cast<void *>(a.base));
  void *p = reinterpret_cast<void *>(first_page(a));
  madvise(p, bytes_of_pages(a), MADV_DONTNEED);
  mprotect(p, bytes_of_pages(a), PROT_NONE);
}
CUDA_CPU_RARE void open_memory(const allocation &a, bool open) {
  mprotect(reinterpret_cast<void *>(first_page(a)), bytes_of_pages(a), open ? PROT_READ | PROT_WRITE : PROT_NONE);
}
CUDA_CPU_RARE void describe_freed(text *t, uintptr_t address) {
  for (const allocation &a : freed.list)
    if (a.base && has_pages(a) && address >= first_page(a) && address < first_page(a) + bytes_of_pages(a))
      add(t, "\n  byte %zd of freed device memory of %zu bytes, allocation %llu, by %s",
          static_cast<intptr_t>(address - a.base), a.size, a.number, a.call);
}
#endif

CUDA_CPU_RARE void move_window(int by) {
  locked lock;
  const int before = ctx.windows;
  ctx.windows += by;
  if (before && ctx.windows) return;
  for (size_t i = 0; i < ctx.allocation_count; i++)
    if (ctx.allocations[i].kind == memory_device) open_memory(ctx.allocations[i], ctx.windows != 0);
}

/* While a kernel runs, memory of other devices is open only to their peers. */
CUDA_CPU_RARE void open_foreign_memory(int owner, bool open) {
  locked lock;
  const unsigned reached = device(owner).peers | 1u << owner;
  for (size_t i = 0; i < ctx.allocation_count; i++) {
    const allocation &a = ctx.allocations[i];
    if (a.kind == memory_device && !(reached >> a.device & 1)) open_memory(a, open);
  }
}

CUDA_CPU_RARE void describe_device_address(text *t, uintptr_t address) {
  if (pthread_mutex_trylock(&ctx.mutex)) return; /* another thread changes the table, and may have been stopped */
  const size_t after = allocation_after(address);
  const allocation *nearest = nullptr;
  uintptr_t least = 256;
  for (size_t i = after ? after - 1 : 0; i <= after && i < ctx.allocation_count; i++) {
    const allocation &a = ctx.allocations[i];
    const uintptr_t end = a.base + a.size;
    const uintptr_t distance = address < a.base ? a.base - address : address < end ? 0 : address - end + 1;
    if (a.kind == memory_registered || distance >= least) continue;
    least = distance;
    nearest = &a;
  }
  if (nearest) {
    const char *kind = nearest->kind == memory_device ? "device" : nearest->kind == memory_host ? "pinned" : "managed";
    add(t, "\n  byte %zd of %s memory of %zu bytes, allocation %llu, by %s",
        static_cast<intptr_t>(address - nearest->base), kind, nearest->size, nearest->number, nearest->call);
    if (device_count() > 1) add(t, ", device %d", nearest->device);
  }
  describe_freed(t, address);
  pthread_mutex_unlock(&ctx.mutex);
}

inline cudaError_t allocate(void **out, size_t size, memory_kind kind, unsigned flags,
                            CUmemPoolHandle_st *pool = nullptr, bool of_graph = false) {
  if (!out) return error(cudaErrorInvalidValue);
  *out = nullptr;
  if (!size) return cudaSuccess;
  locked lock;
  bool on_device = kind == memory_device;
  const int owner = pool ? pool->device : device_now;
  if (on_device && size > device_memory() - device(owner).used) return error(cudaErrorMemoryAllocation);
  void *p = get_memory(size, kind);
  if (!p) return error(cudaErrorMemoryAllocation);
  const allocation made = {reinterpret_cast<uintptr_t>(p), size,     kind, flags, pool, of_graph, owner,
                           ctx.allocations_made + 1,       call_name};
  if (!add_allocation(made)) {
    put_memory(made);
    return error(cudaErrorMemoryAllocation);
  }
  ctx.allocations_made++;
  if (on_device) device(owner).used += size;
  if (pool) {
    pool->used += size;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
  }
  poison_allocation(p, size);
  *out = p;
  return cudaSuccess;
}

inline cudaError_t release(void *p, bool host) {
  if (!p) return cudaSuccess;
  locked lock;
  allocation *a = find_allocation(p);
  if (!a || a->base != reinterpret_cast<uintptr_t>(p) || a->kind == memory_registered ||
      host != (a->kind == memory_host))
    return error(cudaErrorInvalidValue);
  if (a->of_graph) return cudaSuccess; /* whose next run has it again */
  if (a->kind == memory_device) device(a->device).used -= a->size;
  if (a->pool) {
    a->pool->used -= a->size;
    if (a->pool->destroyed && !a->pool->used) free(a->pool);
  }
  const allocation gone = *a;
  remove_allocation(a);
  put_memory(gone);
  return cudaSuccess;
}

inline void release_graph_memory(void *p) {
  {
    locked lock;
    allocation *a = find_allocation(p);
    if (!a || a->base != reinterpret_cast<uintptr_t>(p) || !a->of_graph) return; /* gone with a reset */
    a->of_graph = false;
  }
  release(p, false);
}

#ifdef __ELF__
extern "C" {
extern char __data_start[] __attribute__((weak)), _end[] __attribute__((weak));
}
/* `__device__` and `__constant__` variables are plain ones here. */
inline bool is_static(const void *p) {
  return static_cast<const char *>(p) >= __data_start && static_cast<const char *>(p) < _end;
}
#else
inline bool is_static(const void *) { return true; }
#endif

CUDA_CPU_ENTRY bool &foreign_memory() {
  static bool is_used;
  return is_used;
}

/* May the device (or else the host) touch these bytes? What the table does not know is the host's. */
inline bool reaches(const void *p, size_t bytes, bool device) {
  if (!bytes) return true;
  if (!p) return false;
  allocation *a = find_allocation(p);
  if (!a) return !device || is_static(p) || foreign_memory();
  if (bytes > a->size - (reinterpret_cast<uintptr_t>(p) - a->base)) return false;
  return device || a->kind != memory_device;
}

/* --- the calls --- */

CUDA_CPU_CALL cudaMalloc(void **devPtr, size_t size) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMalloc);
  return allocate(devPtr, size, memory_device, 0);
}
CUDA_CPU_CALL cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMallocPitch);
  if (!devPtr || !pitch) return error(cudaErrorInvalidValue);
  size_t padded, bytes;
  if (__builtin_add_overflow(width, size_t{511}, &padded) ||
      __builtin_mul_overflow(padded & ~size_t{511}, height, &bytes))
    return error(cudaErrorMemoryAllocation);
  *pitch = padded & ~size_t{511};
  return allocate(devPtr, bytes, memory_device, 0);
}
CUDA_CPU_CALL cudaMallocManaged(void **devPtr, size_t size, unsigned int flags) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMallocManaged);
  if (!size || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) return error(cudaErrorInvalidValue);
  return allocate(devPtr, size, memory_managed, flags);
}
CUDA_CPU_CALL cudaHostAlloc(void **pHost, size_t size, unsigned int flags) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaHostAlloc);
  if (flags & ~7u) return error(cudaErrorInvalidValue);
  return allocate(pHost, size, memory_host, flags);
}
CUDA_CPU_CALL cudaMallocHost(void **ptr, size_t size) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaMallocHost);
  return allocate(ptr, size, memory_host, cudaHostAllocDefault);
}
CUDA_CPU_CALL cudaFree(void *devPtr) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaFree);
  return release(devPtr, false);
}
CUDA_CPU_CALL cudaFreeHost(void *ptr) {
  CUDA_CPU_API_OUTSIDE_CAPTURE(cudaFreeHost);
  return release(ptr, true);
}
CUDA_CPU_CALL cudaHostRegister(void *ptr, size_t size, unsigned int flags) {
  CUDA_CPU_API(cudaHostRegister);
  if (!ptr || !size) return error(cudaErrorInvalidValue);
  locked lock;
  uintptr_t base = reinterpret_cast<uintptr_t>(ptr);
  size_t i = allocation_after(base);
  if (find_allocation(ptr) || (i < ctx.allocation_count && ctx.allocations[i].base - base < size))
    return error(cudaErrorHostMemoryAlreadyRegistered);
  return error(add_allocation({base, size, memory_registered, flags, nullptr, false, device_now, 0, "cudaHostRegister"})
                   ? cudaSuccess
                   : cudaErrorMemoryAllocation);
}
CUDA_CPU_CALL cudaHostUnregister(void *ptr) {
  CUDA_CPU_API(cudaHostUnregister);
  if (!ptr) return error(cudaErrorInvalidValue);
  locked lock;
  allocation *a = find_allocation(ptr);
  if (!a || a->kind != memory_registered || a->base != reinterpret_cast<uintptr_t>(ptr))
    return error(cudaErrorHostMemoryNotRegistered);
  remove_allocation(a);
  return cudaSuccess;
}
CUDA_CPU_CALL cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags) {
  CUDA_CPU_API(cudaHostGetDevicePointer);
  if (!pDevice || !pHost || flags) return error(cudaErrorInvalidValue);
  locked lock;
  allocation *a = find_allocation(pHost);
  if (!a || a->kind == memory_device) return error(cudaErrorInvalidValue);
  *pDevice = pHost;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaHostGetFlags(unsigned int *pFlags, void *pHost) {
  CUDA_CPU_API(cudaHostGetFlags);
  locked lock;
  allocation *a = find_allocation(pHost);
  if (!pFlags || !a || (a->kind != memory_host && a->kind != memory_registered)) return error(cudaErrorInvalidValue);
  *pFlags = a->flags;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaMemGetInfo(size_t *free, size_t *total) {
  CUDA_CPU_API(cudaMemGetInfo);
  if (!free || !total) return error(cudaErrorInvalidValue);
  locked lock;
  *total = device_memory();
  *free = *total - here().used;
  return cudaSuccess;
}
CUDA_CPU_CALL cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr) {
  CUDA_CPU_API(cudaPointerGetAttributes);
  if (!attributes || !ptr) return error(cudaErrorInvalidValue);
  locked lock;
  allocation *a = find_allocation(ptr);
  cudaPointerAttributes r = {};
  void *p = const_cast<void *>(ptr);
  r.device = -2;
  if (!a) {
    r.hostPointer = p;
  } else {
    r.device = a->device;
    r.devicePointer = p;
    r.type = a->kind == memory_device    ? cudaMemoryTypeDevice
             : a->kind == memory_managed ? cudaMemoryTypeManaged
                                         : cudaMemoryTypeHost;
    if (a->kind != memory_device) r.hostPointer = p;
  }
  *attributes = r;
  return cudaSuccess;
}

} // namespace cuda_cpu
