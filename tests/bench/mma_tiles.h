/* The types of products that gpukit has mma.sync kernels for, and the tiles of these, as files of plans (plans.h) name
 * them. Include gpukit.cuh first. */
#ifndef BENCH_MMA_TILES_H
#define BENCH_MMA_TILES_H

#include <string>

typedef gk__mma_tiles<1, __half> mma_f16_tiles;
typedef gk__mma_tiles<1, float> mma_tf32_tiles;
typedef gk__mma_tiles<6, __nv_bfloat16> mma_emulated_tiles;

inline bool is_mma_type(const std::string &type) { return type == "f16" || type == "tf32" || type == "emulated"; }
enum { MMA_TILE_COUNT = 2 };
template <class Tiles> std::string mma_tile_name(int config) {
  typedef typename Tiles::template large<GK__K_MAJOR, GK__K_MAJOR> large;
  const int rows = config == 0 ? large::bm : Tiles::small_config::bm,
            cols = config == 0 ? large::bn : Tiles::small_config::bn;
  return std::to_string(rows) + "x" + std::to_string(cols);
}
/* As "128x256", for each value of gk__mma_plan::config. */
inline std::string mma_tile_name(const std::string &type, int config) {
  if (type == "emulated") return mma_tile_name<mma_emulated_tiles>(config);
  return type == "tf32" ? mma_tile_name<mma_tf32_tiles>(config) : mma_tile_name<mma_f16_tiles>(config);
}
inline int mma_tile_of(const std::string &type, const std::string &name) {
  for (int config = 0; config < MMA_TILE_COUNT; config++)
    if (mma_tile_name(type, config) == name) return config;
  return -1;
}

#endif
