/* Finds repeats: the indices i with x[i] == x[i + 1], in order, and how many they are. Compared with a loop on the
 * host. repeats_plain.cu is the same program without gpukit. */
#define GPUKIT_IMPLEMENTATION
#include <cstdio>
#include <vector>
#include "gpukit.cuh"

int main() {
  const int n = 100003;
  std::vector<int> host(n), expected;
  for (int i = 0; i < n; i++) host[i] = (int)((long long)i * i % 1009 / 50);

  const gk_array<int> x(host);
  gk_array<int> device_repeats(n), device_count(1);
  const int *items = x;
  const auto index = gk_computed<int>([] __device__(size_t i) { return (int)i; });
  GK_CHECK(gk_select(index, device_repeats, device_count, n - 1,
                     [=] __device__(int i) { return items[i] == items[i + 1]; }));
  const int count = device_count.get(0);
  std::vector<int> repeats(n);
  device_repeats.copy_to(repeats);
  repeats.resize(count);

  for (int i = 0; i + 1 < n; i++) {
    if (host[i] == host[i + 1]) expected.push_back(i);
  }
  if (repeats != expected) {
    fprintf(stderr, "wrong: %d repeats, where the host has %zu\n", count, expected.size());
    return 1;
  }
  printf("%d repeats, the first of which are\n", count);
  GK_CHECK(gk_print(device_repeats, 8));
  return 0;
}
