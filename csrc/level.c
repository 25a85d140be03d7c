/* All kernels of one instruction set. Compiled once per level with MF_LEVEL and that level's flags. */
#include "common.h"
#include "simd.h"
#include "order.h"
#include "lanes.h"

#define MF_F32 1
#include "real.h"
#include "blocks.h"
#include "exp.h"
#include "tile.h"
#include "lone.h"
#include "distances.h"
#include "rbf.h"
#include "affine.h"
#include "exact.h"
#include "kdtree.h"
#include "sparse.h"
#include "local.h"
#include "spmm.h"
#include "reservoir.h"
#include "knn_screen.h"
#include "geodesics.h"

#undef MF_F32
#define MF_F32 0
#include "real.h"
#include "exp.h"
#include "tile.h"
#include "lone.h"
#include "distances.h"
#include "rbf.h"
#include "affine.h"
#include "l1.h"
#include "paths.h"
#include "exact.h"
#include "kdtree.h"
#include "sparse.h"
#include "local.h"
#include "spmm.h"
#include "reservoir.h"
#include "knn_screen.h"
#include "geodesics.h"
#include "ordering.h"
#include "dissection.h"
#include "supernodes.h"
#include "cholesky.h"

/* kNN on either dtype screens in both; means are taken in double. */
#include "knn.h"
#include "mean.h"
#undef MF_F32
#define MF_F32 1
#include "real.h"
#include "knn.h"
#include "mean.h"

/* The multilevel hierarchy is made in double, its V-cycle runs in either. */
#define MF_SYMBOL(x) MF_JOIN(mf_##x, MF_LEVEL)
#include "block.h"
#include "multilevel.h"
#include "vcycle.h"
#undef MF_F32
#define MF_F32 0
#include "real.h"
#include "vcycle.h"

#define MF_STRING2(x) #x
#define MF_STRING(x) MF_STRING2(x)

extern const mf_table MF_JOIN(mf_table, MF_LEVEL);
const mf_table MF_JOIN(mf_table, MF_LEVEL) = {
    .level = MF_STRING(MF_LEVEL),
    .sq_distances_f32 = MF_SYMBOL(sq_distances_f32),
    .sq_distances_f64 = MF_SYMBOL(sq_distances_f64),
    .rbf_apply_f32 = MF_SYMBOL(rbf_apply_f32),
    .rbf_apply_f64 = MF_SYMBOL(rbf_apply_f64),
    .heat_mean_f32 = MF_SYMBOL(heat_mean_f32),
    .heat_mean_f64 = MF_SYMBOL(heat_mean_f64),
    .affine_f32 = MF_SYMBOL(affine_f32),
    .affine_f64 = MF_SYMBOL(affine_f64),
    .knn_f32 = MF_SYMBOL(knn_f32),
    .knn_f64 = MF_SYMBOL(knn_f64),
    .l1_code_f32 = MF_SYMBOL(l1_code_f32),
    .l1_code_f64 = MF_SYMBOL(l1_code_f64),
    .l1_collect = MF_SYMBOL(l1_collect_f64),
    .kdtree_knn_f32 = MF_SYMBOL(kdtree_knn_f32),
    .kdtree_knn_f64 = MF_SYMBOL(kdtree_knn_f64),
    .graph_begin_f32 = MF_SYMBOL(graph_begin_f32),
    .graph_begin_f64 = MF_SYMBOL(graph_begin_f64),
    .graph_fill_f32 = MF_SYMBOL(graph_fill_f32),
    .graph_fill_f64 = MF_SYMBOL(graph_fill_f64),
    .graph_free = MF_SYMBOL(graph_free),
    .laplacian_begin_f32 = MF_SYMBOL(laplacian_begin_f32),
    .laplacian_begin_f64 = MF_SYMBOL(laplacian_begin_f64),
    .laplacian_fill_f32 = MF_SYMBOL(laplacian_fill_f32),
    .laplacian_fill_f64 = MF_SYMBOL(laplacian_fill_f64),
    .shortest_paths = MF_SYMBOL(shortest_paths_f64),
    .geodesic_rows_f32 = MF_SYMBOL(geodesic_rows_f32),
    .geodesic_rows_f64 = MF_SYMBOL(geodesic_rows_f64),
    .landmark_map_f32 = MF_SYMBOL(landmark_map_f32),
    .landmark_map_f64 = MF_SYMBOL(landmark_map_f64),
    .barycenter_weights_f32 = MF_SYMBOL(barycenter_weights_f32),
    .barycenter_weights_f64 = MF_SYMBOL(barycenter_weights_f64),
    .reconstruct_f32 = MF_SYMBOL(reconstruct_f32),
    .reconstruct_f64 = MF_SYMBOL(reconstruct_f64),
    .lle_begin_f32 = MF_SYMBOL(lle_begin_f32),
    .lle_begin_f64 = MF_SYMBOL(lle_begin_f64),
    .alignment_begin_f32 = MF_SYMBOL(alignment_begin_f32),
    .alignment_begin_f64 = MF_SYMBOL(alignment_begin_f64),
    .blocks_fill = MF_SYMBOL(blocks_fill),
    .blocks_free = MF_SYMBOL(blocks_free),
    .cholesky_analyse = mf_cholesky_analyse,
    .cholesky_factor = mf_cholesky_factor,
    .cholesky_solve = mf_cholesky_solve,
    .cholesky_free = mf_cholesky_free,
    .multilevel_begin = mf_multilevel_begin,
    .multilevel_free = mf_multilevel_free,
    .multilevel_size = mf_multilevel_size,
    .multilevel_entries = mf_multilevel_entries,
    .multilevel_mass = mf_multilevel_mass,
    .multilevel_order = mf_multilevel_order,
    .multilevel_scale = mf_multilevel_scale,
    .multilevel_product = mf_multilevel_product,
    .multilevel_precondition_f32 = MF_SYMBOL(multilevel_precondition_f32),
    .multilevel_precondition_f64 = MF_SYMBOL(multilevel_precondition_f64),
    .multilevel_prolong = mf_multilevel_prolong,
    .block_gram = mf_block_gram,
    .block_update = mf_block_update,
    .block_residual = mf_block_residual,
    .block_center = mf_block_center,
};
