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
#define MF_I32 1
#include "index.h"
#include "graph.h"
#include "laplacian.h"
#undef MF_I32
#define MF_I32 0
#include "index.h"
#include "graph.h"
#include "laplacian.h"
#undef MF_I32
#include "sparse.h"

#undef MF_F32
#define MF_F32 0
#include "real.h"
#include "exp.h"
#include "tile.h"
#include "distances.h"
#include "rbf.h"
#include "affine.h"
#include "exact.h"
#include "kdtree.h"
#define MF_I32 1
#include "index.h"
#include "graph.h"
#include "laplacian.h"
#undef MF_I32
#define MF_I32 0
#include "index.h"
#include "graph.h"
#include "laplacian.h"
#undef MF_I32
#include "sparse.h"

#define MF_SYMBOL(x) MF_JOIN(mf_##x, MF_LEVEL)
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
};
