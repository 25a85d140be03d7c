/* The graph and Laplacian kernels as the table has them: column indices are 32 or 64 bits wide, the caller says which.
 * Template. Needs: base/exp.h, base/sort.h, base/dtype_impl.h, graph/neighbor_graph.h. */
#define MF_I32 1
#include "base/index_impl.h"
#include "graph/neighbor_graph_impl.h"
#include "graph/laplacian_impl.h"
#undef MF_I32
#define MF_I32 0
#include "base/index_impl.h"
#include "graph/neighbor_graph_impl.h"
#include "graph/laplacian_impl.h"
#undef MF_I32

static mf_status NAME(graph_begin)(const REAL *distances, const int64_t *neighbors, int64_t n, int64_t k, int mutual,
                                   int wide, mf_graph **graph, int64_t *entries, int64_t *bad, mf_run *run)
{
    mf_graph *g = *graph = calloc(1, sizeof(mf_graph));
    if (!g) return MF_NO_MEMORY;
    g->n = n, g->k = k, g->mutual = mutual, g->wide = wide;
    mf_status status = wide ? MF_JOIN(NAME(graph_begin), i64)(distances, neighbors, g, bad, run)
                            : MF_JOIN(NAME(graph_begin), i32)(distances, neighbors, g, bad, run);
    *entries = status == MF_OK && *bad < 0 ? g->rows[n] : 0;
    return status;
}

static mf_status NAME(graph_fill)(const mf_graph *g, mf_weights weights, REAL beta, void *indptr, void *columns,
                                  REAL *values, mf_run *run)
{
    return g->wide ? MF_JOIN(NAME(graph_fill), i64)(g, weights, beta, indptr, columns, values, run)
                   : MF_JOIN(NAME(graph_fill), i32)(g, weights, beta, indptr, columns, values, run);
}

static mf_status NAME(laplacian_begin)(int wide, int64_t n, int64_t entries, const void *indptr, const void *columns,
                                       const REAL *weights, double *degrees, void *out_indptr, int *flaws,
                                       mf_run *run)
{
    return wide ? MF_JOIN(NAME(laplacian_begin), i64)(n, entries, indptr, columns, weights, degrees, out_indptr, flaws,
                                                      run)
                : MF_JOIN(NAME(laplacian_begin), i32)(n, entries, indptr, columns, weights, degrees, out_indptr, flaws,
                                                      run);
}

static mf_status NAME(laplacian_fill)(int wide, int64_t n, const void *indptr, const void *columns, const REAL *weights,
                                      const double *degrees, const void *out_indptr,
                                      mf_normalization normalization, void *out_columns, REAL *out, mf_run *run)
{
    return wide ? MF_JOIN(NAME(laplacian_fill), i64)(n, indptr, columns, weights, degrees, out_indptr, normalization,
                                                     out_columns, out, run)
                : MF_JOIN(NAME(laplacian_fill), i32)(n, indptr, columns, weights, degrees, out_indptr, normalization,
                                                     out_columns, out, run);
}
