/* What tests reach inside gpukit.cuh for. All other names in tests are public: where a name inside changes, this file does,
 * and no test. The names are macros, as C++ has no other second name for a function template or an enumerator. The bench,
 * whose fit of the planner's costs is about names inside, has its own. */
#ifndef HOOKS_H
#define HOOKS_H

/* 3. Host API: plans that users do not choose */
#define HOOK_PLAN_HOPPER_128 GK__PLAN_HOPPER_128
#define HOOK_PLAN_HOPPER_128_64 GK__PLAN_HOPPER_128_64
#define HOOK_PLAN_HOPPER_32_64 GK__PLAN_HOPPER_32_64
#define HOOK_PLAN_HOPPER_64 GK__PLAN_HOPPER_64
#define HOOK_PLAN_HOPPER_64_128 GK__PLAN_HOPPER_64_128
#define HOOK_PLAN_TILE_32 GK__PLAN_TILE_32
#define HOOK_PLAN_TILE_32_64 GK__PLAN_TILE_32_64
#define HOOK_PLAN_TILE_64 GK__PLAN_TILE_64
#define HOOK_PLAN_TILE_64_128 GK__PLAN_TILE_64_128

/* 14. Checks and launches */
#define hook_fail gk__fail
#define hook_failed gk__failed
#define hook_launch gk__launch
#define HOOK_REDUCE_BYTES GK__REDUCE_BYTES
#define HOOK_STAGE_ROW_BYTES GK__STAGE_ROW_BYTES
#define HOOK_STATE_BYTES GK__STATE_BYTES

/* 15. Building blocks */
#define hook_convert gk__convert
#define hook_functor gk__functor
#define hook_lift gk__lift
#define HOOK_SHARED GK__SHARED
#define hook_stride gk__stride
#define hook_widened gk__widened
#define hook_working gk__working

/* 16. Between blocks */
#define hook_peek gk__peek
#define hook_publish gk__publish
#define hook_slot gk__slot
#define hook_state gk__state

/* 17. Reduce */
#define hook_plan_reduce gk__plan_reduce
#define hook_reduce gk__reduce
#define HOOK_REDUCE_MANY_PARTITIONS GK__REDUCE_MANY_PARTITIONS
#define HOOK_REDUCE_MANY_TILES GK__REDUCE_MANY_TILES
#define HOOK_REDUCE_PARTITIONS GK__REDUCE_PARTITIONS
#define HOOK_REDUCE_THREADS GK__REDUCE_THREADS
#define hook_reduce_tile gk__reduce_tile

/* 18. Scan */
#define hook_natural_log gk__natural_log
#define hook_normal_quantile gk__normal_quantile
#define hook_philox gk__philox
#define hook_plan_scan gk__plan_scan
#define hook_scan_bytes gk__scan_bytes
#define hook_scan_call gk__scan_call
#define HOOK_SCAN_GROUP GK__SCAN_GROUP
#define hook_scan_item_bytes gk__scan_item_bytes
#define hook_scan_items gk__scan_items
#define hook_scan_plan gk__scan_plan
#define hook_scan_slots gk__scan_slots
#define hook_scan_start gk__scan_start
#define hook_select_items gk__select_items
#define HOOK_SCAN_THREADS GK__SCAN_THREADS
#define HOOK_SCAN_WARPS GK__SCAN_WARPS
#define hook_tile_prefix gk__tile_prefix

/* 19. Matmul */
#define HOOK_ANY_CODE GK__ANY_CODE
#define hook_cached_plan gk__cached_plan
#define hook_cached_split_k gk__cached_split_k
#define hook_cached_tiles gk__cached_tiles
#define hook_cheapest_mma_plan gk__cheapest_mma_plan
#define hook_clocks gk__clocks
#define hook_code_kernel gk__code_kernel
#define hook_each_mma_plan gk__each_mma_plan
#define hook_enqueue_strict gk__enqueue_strict
#define hook_find_matmul_gpu gk__find_matmul_gpu
#define hook_find_tensor_plan gk__find_tensor_plan
#define hook_hopper_clocks gk__hopper_clocks
#define hook_hopper_path gk__hopper_path
#define hook_identity gk__identity
#define hook_is_hopper_plan gk__is_hopper_plan
#define HOOK_K_MAJOR GK__K_MAJOR
#define HOOK_LARGE_TILE GK__LARGE_TILE
#define HOOK_SMALL_TILE GK__SMALL_TILE
#define HOOK_MIDDLE_TILE GK__MIDDLE_TILE
#define hook_matmul_args gk__matmul_args
#define hook_matmul_output gk__matmul_output
#define HOOK_MATMUL_PARTITIONS GK__MATMUL_PARTITIONS
#define hook_max_split_bits gk__max_split_bits
#define hook_measure_partials gk__measure_partials
#define hook_measured_reduce_costs gk__measured_reduce_costs
#define hook_matmul_gpu gk__matmul_gpu
#define hook_mma_plan gk__mma_plan
#define hook_mma_run gk__mma_run
#define hook_mma_tiles gk__mma_tiles
#define hook_partial_ld gk__partial_ld
#define HOOK_PARTIALS_BYTES GK__PARTIALS_BYTES
#define hook_partials_fit gk__partials_fit
#define hook_cut_plan gk__cut_plan
#define hook_plan_product gk__plan_product
#define hook_plan_query gk__plan_query
#define hook_plan_split_k gk__plan_split_k
#define hook_plan_tile gk__plan_tile
#define hook_plan_tiles gk__plan_tiles
#define hook_portable_kernel_of gk__portable_kernel_of
#define HOOK_PREPARE_BF16_TERMS GK__PREPARE_BF16_TERMS
#define hook_prepare_operands gk__prepare_operands
#define hook_product gk__product
#define hook_product_call gk__product_call
#define hook_product_plan gk__product_plan
#define hook_raster_tile gk__raster_tile
#define hook_raw_operand gk__raw_operand
#define hook_reduce_costs gk__reduce_costs
#define hook_reduce_partials gk__reduce_partials
#define hook_reduction_clocks gk__reduction_clocks
#define hook_round_to_tf32 gk__round_to_tf32
#define hook_split_k gk__split_k
#define hook_tensor_args gk__tensor_args
#define hook_tile_choice gk__tile_choice
#define hook_tile_facts gk__tile_facts
#define hook_tiles gk__tiles
#define hook_clusters_at_once gk__clusters_at_once
#define hook_wgmma_cluster gk__wgmma_cluster
#define hook_wgmma_launch gk__wgmma_launch
#define hook_wgmma_cols gk__wgmma_cols
#define hook_wgmma_shape gk__wgmma_shape
#define hook_wgmma_tile_kernel_of gk__wgmma_tile_kernel_of
#define hook_wgmma_tile_set gk__wgmma_tile_set
#define hook_wgmma_tiles gk__wgmma_tiles
#ifdef GK__HOPPER_BUILD
#define HOOK_WGMMA /* this build may have code for sm_90a */
#endif
/* Kernels of a warp at most, which need no launch bounds. */
#define HOOK_KERNELS_WITHOUT_BOUNDS                                                                                    \
  { "gk__item_count_kernel", "gk__fold_kernel" }

/* 21. Past one GPU */
#define hook_commutes gk__commutes
#define hook_dist_columns gk__dist_columns
#define hook_dist_context gk__dist_context
#define hook_fold_records gk__fold_records
#define hook_record gk__record

#endif
