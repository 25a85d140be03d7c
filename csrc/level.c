/* All kernels of one instruction set. Compiled once per level with MF_LEVEL and that level's flags. */
#include "common.h"
#include "simd.h"
#include "order.h"

#define MF_F32 1
#include "real.h"
#include "exp.h"
#include "tile.h"
#include "distances.h"
#include "rbf.h"
#include "affine.h"
#include "exact.h"
#include "kdtree.h"
#include "sparse.h"
#include "spmm.h"
#include "reservoir.h"
#include "knn_screen.h"

#undef MF_F32
#define MF_F32 0
#include "real.h"
#include "exp.h"
#include "tile.h"
#include "distances.h"
#include "rbf.h"
#include "affine.h"
#include "l1.h"
#include "exact.h"
#include "kdtree.h"
#include "sparse.h"
#include "spmm.h"
#include "reservoir.h"
#include "knn_screen.h"

/* kNN on either dtype screens in both. */
#include "knn.h"
#undef MF_F32
#define MF_F32 1
#include "real.h"
#include "knn.h"

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
