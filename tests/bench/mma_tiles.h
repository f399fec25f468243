/* The types of products that gpukit has mma.sync kernels for, and the tiles of these, as files of plans (plans.h) name
 * them. Include gpukit.cuh first. */
#ifndef BENCH_MMA_TILES_H
#define BENCH_MMA_TILES_H

#include <string>

inline bool is_mma_type(const std::string &type) { return type == "f16" || type == "tf32" || type == "emulated"; }
/* The most configurations that a type has, and those of one type. */
enum { MMA_TILE_COUNT = 3 };
inline int mma_tile_count(const std::string &type) {
  if (type == "emulated") return gk__mma_tiles<6, __nv_bfloat16>::config_count;
  return type == "tf32" ? gk__mma_tiles<1, float>::config_count : gk__mma_tiles<1, __half>::config_count;
}
/* As "128x256". */
inline std::string mma_tile_name(const std::string &type, int config) {
  const gk__mma_tile tile = type == "emulated" ? gk__mma_tile_at<6, __nv_bfloat16>(config)
                            : type == "tf32"   ? gk__mma_tile_at<1, float>(config)
                                               : gk__mma_tile_at<1, __half>(config);
  return std::to_string(tile.bm) + "x" + std::to_string(tile.bn);
}
inline int mma_tile_of(const std::string &type, const std::string &name) {
  for (int config = 0; config < mma_tile_count(type); config++)
    if (mma_tile_name(type, config) == name) return config;
  return -1;
}

#endif
