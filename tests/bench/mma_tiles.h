/* The types of products that gpukit has mma.sync kernels for, and the tiles of these, as files of plans (plans.h) name
 * them. Include gpukit.cuh first. */
#ifndef BENCH_MMA_TILES_H
#define BENCH_MMA_TILES_H

#include <string>

inline bool is_mma_type(const std::string &type) { return type == "f16" || type == "tf32" || type == "emulated"; }
enum { MMA_TILE_COUNT = 3 }; /* the most that a type has */
/* The tiles of a type. */
struct mma_tile_list {
  int count;
  const gk__mma_cost *costs; /* the header's */
  gk__mma_tile (*tile_at)(int config);
};
template <int Products, class Element> mma_tile_list mma_tiles_of() {
  typedef gk__mma_tiles<Products, Element> tiles;
  return {tiles::config_count, tiles::costs(), gk__mma_tile_at<Products, Element>};
}
inline mma_tile_list mma_tiles_of(const std::string &type) {
  if (type == "emulated") return mma_tiles_of<6, __nv_bfloat16>();
  return type == "tf32" ? mma_tiles_of<1, float>() : mma_tiles_of<1, __half>();
}
/* As "128x256". */
inline std::string mma_tile_name(const std::string &type, int config) {
  const gk__mma_tile tile = mma_tiles_of(type).tile_at(config);
  return std::to_string(tile.bm) + "x" + std::to_string(tile.bn);
}
inline int mma_tile_of(const std::string &type, const std::string &name) {
  for (int config = 0; config < mma_tiles_of(type).count; config++)
    if (mma_tile_name(type, config) == name) return config;
  return -1;
}

#endif
