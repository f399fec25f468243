/* Lesson 2: what a device can do, and which device to take. cudaGetDeviceProperties() has the limits of a launch; most
 * of them follow from the compute capability alone. A launch beyond a limit runs nothing. It returns no error by
 * itself: cudaGetLastError() has it. */
#include <cuda_runtime.h>
#include <stdio.h>

static void print_devices(void) {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) printf("no device can be listed: %s\n", cudaGetErrorString(status));
  for (int d = 0; d < count; d++) {
    cudaDeviceProp p;
    status = cudaGetDeviceProperties(&p, d);
    if (status != cudaSuccess) {
      printf("device %d cannot be queried: %s\n", d, cudaGetErrorString(status));
      continue;
    }
    printf("device %d: %s, compute capability %d.%d, %zu MiB\n", d, p.name, p.major, p.minor, p.totalGlobalMem >> 20);
    printf("  %d multiprocessors (SMs) of at most %d threads and %zu bytes of shared memory\n", p.multiProcessorCount,
           p.maxThreadsPerMultiProcessor, p.sharedMemPerMultiprocessor);
    printf("  a block: %d threads at most, %d x %d x %d at most, %zu bytes of shared memory\n", p.maxThreadsPerBlock,
           p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2], p.sharedMemPerBlock);
    printf("  a grid: %d x %d x %d blocks at most\n", p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2]);
  }
}

/* Counts the blocks that ran. */
__global__ void count_blocks(unsigned *ran) {
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0) atomicAdd(ran, 1u);
}

/* ---- measured --------------------------------------------------------------------------------------------------- *
 *
 * Most limits are tried: a launch just within one has to run all of its blocks, a launch just beyond has to be refused.
 *
 * On an H200 almost every row takes 5.2 us: the cost of clearing a counter and of one launch. 1024 blocks of 1024
 * threads take no longer than 1024 blocks of one warp, since even these are over before the host has launched the next
 * call. Only the highest grid shows: 65535 blocks take 46 us more, 1.4 blocks a nanosecond. Blocks start at such a
 * rate, 1.65 a nanosecond at best (lesson 5), however little they do.
 *
 * With several devices, gk_device_best() takes the one with the most multiprocessors times clock rate; of equals, the
 * one with the most free memory. */
#include "lesson.h"

static const lesson_about about = {"02_device_query",
                                   "the limits of a launch, each of them tried; choosing a device",
                                   "blocks of most launches",
                                   1024,
                                   16,
                                   1,
                                   65535,
                                   "GB/s"};

static const struct {
  int major, minor, threads, blocks, registers, shared_kb, shared_block_kb; /* of a multiprocessor; of a block */
} capabilities[] = {{7, 5, 1024, 16, 65536, 64, 64},    {8, 0, 2048, 32, 65536, 164, 163},
                    {8, 6, 1536, 16, 65536, 100, 99},   {8, 7, 1536, 16, 65536, 164, 163},
                    {8, 9, 1536, 24, 65536, 100, 99},   {9, 0, 2048, 32, 65536, 228, 227},
                    {10, 0, 2048, 32, 65536, 228, 227}, {12, 0, 1536, 24, 65536, 100, 99}};

struct launch {
  const char *name;
  dim3 grid, block;
  size_t shared;
  bool allowed;
};

int main(int argc, char **argv) {
  lesson l;
  lesson_begin(&l, &about, argc, argv);
  const gk_device_info *const d = &l.device;
  const unsigned n = (unsigned)l.n, threads = (unsigned)d->max_threads_per_block;
  const unsigned x = (unsigned)d->max_grid_x, y = (unsigned)d->max_grid_y, z = (unsigned)d->max_grid_z;
  const unsigned deep = (unsigned)d->max_block_z;
  unsigned *const ran = lesson_array<unsigned>(&l, 1);
  const size_t optin = d->shared_per_block_optin;

  if (!l.csv_only) print_devices();
  const launch launches[] = {{"a warp for each block", n, d->threads_per_warp, 0, true},
                             {"the largest block", n, threads, 0, true},
                             {"one thread more", n, threads + 1, 0, false},
                             {"the deepest block", n, dim3(1, 1, deep), 0, true},
                             {"one thread deeper", n, dim3(1, 1, deep + 1), 0, false},
                             {l.mode == LESSON_TIMED ? "the highest grid" : "16 blocks high",
                              dim3(1, l.mode == LESSON_TIMED ? y : n), 32, 0, true},
                             {"one block higher", dim3(1, y + 1), 32, 0, false},
                             {"one block deeper", dim3(1, 1, z + 1), 32, 0, false},
                             {"one block wider", x + 1u, 32, 0, false},
                             {"an empty grid", 0, 32, 0, false},
                             {"shared memory without asking", n, 128, d->shared_per_block, true},
                             {"one byte more", n, 128, d->shared_per_block + 1, false},
                             {"shared memory on demand", n, 128, optin, true},
                             {"one byte more than there is", n, 128, optin + 1, false}};
  std::vector<const launch *> refused;
  std::vector<cudaError_t> errors;
  for (const launch &t : launches) {
    if (t.shared >= optin)
      GK_CHECK(cudaFuncSetAttribute(count_blocks, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)optin));
    if (t.allowed) {
      const lesson_row *const r = lesson_measure(&l, t.name, 0, [=] {
        GK_CHECK(cudaMemsetAsync(ran, 0, sizeof *ran, 0));
        count_blocks<<<t.grid, t.block, t.shared>>>(ran);
      });
      lesson_expect(&l, r, ran, std::vector<unsigned>(1, t.grid.x * t.grid.y * t.grid.z));
    } else {
      GK_CHECK(cudaMemset(ran, 0, sizeof *ran));
      count_blocks<<<t.grid, t.block, t.shared>>>(ran);
      refused.push_back(&t), errors.push_back(cudaGetLastError());
      lesson_expect(&l, &l.rows[0], ran, std::vector<unsigned>(1, 0));
      if (errors.back() == cudaSuccess) lesson_wrong(&l, &l.rows[0], "%s is not refused", t.name);
    }
  }
  lesson_table(&l);

  lesson_say(&l, "capability  threads  blocks  registers  KiB an SM  KiB a block");
  bool known = false;
  for (const auto &c : capabilities) {
    const bool here = c.major == d->major && c.minor == d->minor;
    known |= here;
    lesson_say(&l, "%s %5d.%d  %7d  %6d  %9d  %10d  %10d", here ? "this" : "    ", c.major, c.minor, c.threads,
               c.blocks, c.registers, c.shared_kb, c.shared_block_kb);
    if (here &&
        (c.threads != d->max_threads_per_sm || c.blocks != d->max_blocks_per_sm || c.registers != d->registers_per_sm ||
         (size_t)c.shared_kb << 10 != d->shared_per_sm || (size_t)c.shared_block_kb << 10 != optin))
      lesson_wrong(&l, &l.rows[0], "the device reports other limits than the table of capabilities");
  }
  if (!known) lesson_say(&l, "Compute capability %d.%d, that of this device, is not listed.", d->major, d->minor);
  for (size_t i = 0; i < refused.size(); i++)
    lesson_say(&l, "%-27s is refused: %s", refused[i]->name, cudaGetErrorName(errors[i]));

  int devices = 0, best = -1;
  GK_CHECK(cudaGetDeviceCount(&devices));
  GK_CHECK(gk_device_best(&best));
  for (int i = 0; i < devices; i++) {
    gk_device_info info;
    GK_CHECK(gk_device_query(i, &info));
    lesson_say(&l, "device %d of %d: %s, %d multiprocessors at %d MHz, %zu MiB free%s", i, devices, info.name, info.sms,
               info.clock_khz / 1000, info.free_bytes >> 20, i == best ? ": the best" : "");
  }
  if (l.mode == LESSON_TIMED)
    lesson_say(&l,
               "%d multiprocessors hold %d threads at once. %u blocks of %u threads take %.1f us, of a warp %.1f us.",
               d->sms, d->sms * d->max_threads_per_sm, n, threads, l.rows[1].us, l.rows[0].us);
  else
    lesson_say(&l, "%d multiprocessors would hold %d threads at once.", d->sms, d->sms * d->max_threads_per_sm);
  return lesson_end(&l);
}
