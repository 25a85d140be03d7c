/* All kernels of one instruction set. Compiled once per level, with MF_LEVEL and that level's flags. Every function is
 * static: a level exports its table alone, so names do not have to tell levels apart. */
#include "cholesky/solve.h"
#include "dense/dense.h"
#include "graph/graph.h"
#include "knn/knn.h"
#include "l1/l1_code.h"
#include "local/local.h"
#include "multilevel/multilevel.h"

#define MF_STRING2(x) #x
#define MF_STRING(x) MF_STRING2(x)

extern const mf_table MF_JOIN(mf_table, MF_LEVEL);
const mf_table MF_JOIN(mf_table, MF_LEVEL) = {
    .level = MF_STRING(MF_LEVEL),
    .sq_distances_f32 = mf_sq_distances_f32,
    .sq_distances_f64 = mf_sq_distances_f64,
    .rbf_apply_f32 = mf_rbf_apply_f32,
    .rbf_apply_f64 = mf_rbf_apply_f64,
    .heat_mean_f32 = mf_heat_mean_f32,
    .heat_mean_f64 = mf_heat_mean_f64,
    .affine_f32 = mf_affine_f32,
    .affine_f64 = mf_affine_f64,
    .knn_f32 = mf_knn_f32,
    .knn_f64 = mf_knn_f64,
    .neighbor_ranks_f32 = mf_neighbor_ranks_f32,
    .neighbor_ranks_f64 = mf_neighbor_ranks_f64,
    .l1_code_f32 = mf_l1_code_f32,
    .l1_code_f64 = mf_l1_code_f64,
    .l1_collect = mf_l1_collect,
    .kdtree_knn_f32 = mf_kdtree_knn_f32,
    .kdtree_knn_f64 = mf_kdtree_knn_f64,
    .graph_begin_f32 = mf_graph_begin_f32,
    .graph_begin_f64 = mf_graph_begin_f64,
    .graph_fill_f32 = mf_graph_fill_f32,
    .graph_fill_f64 = mf_graph_fill_f64,
    .graph_free = mf_graph_free,
    .laplacian_begin_f32 = mf_laplacian_begin_f32,
    .laplacian_begin_f64 = mf_laplacian_begin_f64,
    .laplacian_fill_f32 = mf_laplacian_fill_f32,
    .laplacian_fill_f64 = mf_laplacian_fill_f64,
    .shortest_paths = mf_shortest_paths,
    .geodesic_rows_f32 = mf_geodesic_rows_f32,
    .geodesic_rows_f64 = mf_geodesic_rows_f64,
    .landmark_map_f32 = mf_landmark_map_f32,
    .landmark_map_f64 = mf_landmark_map_f64,
    .barycenter_weights_f32 = mf_barycenter_weights_f32,
    .barycenter_weights_f64 = mf_barycenter_weights_f64,
    .reconstruct_f32 = mf_reconstruct_f32,
    .reconstruct_f64 = mf_reconstruct_f64,
    .lle_begin_f32 = mf_lle_begin_f32,
    .lle_begin_f64 = mf_lle_begin_f64,
    .alignment_begin_f32 = mf_alignment_begin_f32,
    .alignment_begin_f64 = mf_alignment_begin_f64,
    .hessian_begin_f32 = mf_hessian_begin_f32,
    .hessian_begin_f64 = mf_hessian_begin_f64,
    .modified_begin_f32 = mf_modified_begin_f32,
    .modified_begin_f64 = mf_modified_begin_f64,
    .blocks_fill = mf_blocks_fill,
    .blocks_free = mf_blocks_free,
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
    .multilevel_precondition_f32 = mf_multilevel_precondition_f32,
    .multilevel_precondition_f64 = mf_multilevel_precondition_f64,
    .multilevel_prolong = mf_multilevel_prolong,
    .tall_gram = mf_tall_gram,
    .tall_update = mf_tall_update,
    .tall_residual = mf_tall_residual,
    .tall_center = mf_tall_center,
};
