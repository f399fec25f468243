/* The types of products that gpukit has mma.sync kernels for, and the tiles of these, as files of plans (plans.h) name
 * them. Include gpukit.cuh first. */
#ifndef BENCH_MMA_TILES_H
#define BENCH_MMA_TILES_H

#include <string>

typedef gk__mma_tiles<1, __half> mma_f16_tiles;
typedef gk__mma_tiles<1, float> mma_tf32_tiles;
typedef gk__mma_tiles<6, __nv_bfloat16> mma_emulated_tiles;

inline bool is_mma_type(const std::string &type) { return type == "f16" || type == "tf32" || type == "emulated"; }
inline int mma_tile_count(const std::string &type) {
  if (type == "emulated") return mma_emulated_tiles::config_count;
  return mma_f16_tiles::config_count;
}
template <class Config> std::string mma_tile_name() {
  return std::to_string(Config::bm) + "x" + std::to_string(Config::bn);
}
/* As "128x256", for each value of gk__mma_plan::config. */
inline std::string mma_tile_name(const std::string &type, int config) {
  if (type == "emulated")
    return config == 0 ? mma_tile_name<mma_emulated_tiles::medium>() : mma_tile_name<mma_emulated_tiles::least>();
  if (config == 0) return mma_tile_name<mma_f16_tiles::large>();
  return config == 1 ? mma_tile_name<mma_f16_tiles::medium>() : mma_tile_name<mma_f16_tiles::least>();
}
inline int mma_tile_of(const std::string &type, const std::string &name) {
  for (int config = 0; config < mma_tile_count(type); config++)
    if (mma_tile_name(type, config) == name) return config;
  return -1;
}

#endif
