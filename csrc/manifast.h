/* The one header of the C core: status codes, the run context every kernel takes, and the table of kernels
 * that exists once per instruction set. Kernels know arrays, not methods; matrices are row-major and contiguous. */
#ifndef MANIFAST_H
#define MANIFAST_H

#include <stdint.h>

typedef enum mf_status {
    MF_OK = 0,
    MF_NO_MEMORY = 1,
    MF_INTERRUPTED = 2
} mf_status;

/* What a call may use, and how it asks whether to stop. `interrupted` (may be NULL) is called on the calling
 * thread only, with a pause between two calls; non-zero ends the kernel with MF_INTERRUPTED. */
typedef struct mf_run {
    int n_threads;
    int (*interrupted)(void);
    int stop;         /* set by mf_poll, read by all threads */
    double pause;     /* seconds between two calls of `interrupted`; below 0 every mf_poll is one */
    double last_poll; /* seconds, 0 at first; calling thread only */
} mf_run;

/* What an edge of length d weighs: exp(-d^2 / beta), 1, or d itself. */
typedef enum mf_weights { MF_HEAT = 0, MF_BINARY = 1, MF_DISTANCE = 2 } mf_weights;

typedef enum mf_normalization { MF_PLAIN = 0, MF_SYMMETRIC = 1, MF_RANDOM_WALK = 2 } mf_normalization;

/* Rows or columns out of range; a weight that is negative or not finite; entries (i, j) and (j, i) that differ. */
typedef enum mf_flaw { MF_BAD_STRUCTURE = 1, MF_BAD_WEIGHT = 2, MF_NOT_SYMMETRIC = 4 } mf_flaw;

typedef struct mf_graph mf_graph; /* a graph between its two steps */
typedef struct mf_blocks mf_blocks; /* a sum of blocks on cliques of points, between its two steps */

typedef struct mf_cholesky mf_cholesky; /* a sparse Cholesky factorisation; of one table, and used with that only */

typedef struct mf_multilevel mf_multilevel; /* a graph at all its scales */

/* Rows in the form that a kernel reads, made once and for all by its `prepare`; the kernel gives the same bits as
 * without. Of one table and one dtype, used with those only, by any number of threads at once. It refers to the rows,
 * which must outlive it. Free it in any case, also where `prepare` fails. */
typedef struct mf_prepared mf_prepared;
void mf_prepared_free(mf_prepared *operand);           /* NULL is nothing */
int64_t mf_prepared_bytes(const mf_prepared *operand); /* what it holds beside those rows */

/* One table per instruction set; suffixes name the dtype. */
typedef struct mf_table {
    const char *level;
    int64_t int32_max; /* indices of sparse matrices are int32 below it; less than there could be in `small` */

    /* out[i, j] = |x_i - y_j|^2, or exp(-that * inv_sigma2) where inv_sigma2 > 0.
     * y == NULL: y is x, and the result exactly symmetric. */
    mf_status (*sq_distances_f32)(const float *x, int64_t n, const float *y, int64_t m, int64_t p,
                                  float inv_sigma2, float *out, mf_run *run);
    mf_status (*sq_distances_f64)(const double *x, int64_t n, const double *y, int64_t m, int64_t p,
                                  double inv_sigma2, double *out, mf_run *run);

    /* out[i, :] = sum_j exp(-|x_i - c_j|^2 * inv_sigma2) coef[j, :] */
    mf_status (*rbf_apply_f32)(const float *x, int64_t n, const float *centers, int64_t m, int64_t p,
                               const float *coef, int64_t d, float inv_sigma2, float *out, mf_run *run);
    mf_status (*rbf_apply_f64)(const double *x, int64_t n, const double *centers, int64_t m, int64_t p,
                               const double *coef, int64_t d, double inv_sigma2, double *out, mf_run *run);

    /* out[i, :] = the mean of the rows neighbors[i, :] of y (NULL: of its first k rows), weighted by exp(-d^2 / beta)
     * relative to the nearest; an infinite beta weighs all alike. `others`: rows at distance 0 have no part in it,
     * unless all k are. */
    mf_status (*heat_mean_f32)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k, const float *y,
                               int64_t d, double beta, int others, double *out, mf_run *run);
    mf_status (*heat_mean_f64)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k, const double *y,
                               int64_t d, double beta, int others, double *out, mf_run *run);

    /* out = x w + b with one accumulator per output that runs over p in order; b may be NULL. */
    mf_status (*affine_f32)(const float *x, int64_t n, int64_t p, const float *w, int64_t d, const float *b,
                            float *out, mf_run *run);
    mf_status (*affine_f64)(const double *x, int64_t n, int64_t p, const double *w, int64_t d, const double *b,
                            double *out, mf_run *run);

    /* k nearest rows of y for each query, ascending by (distance, index); queries == NULL: for each row of y, itself
     * left out. Exact: ranked by distances taken in double. k <= n, or n - 1 without queries. */
    mf_status (*knn_f32)(const float *y, int64_t n, const float *queries, int64_t m, int64_t p, int64_t k,
                         float *distances, int64_t *indices, mf_run *run);
    mf_status (*knn_f64)(const double *y, int64_t n, const double *queries, int64_t m, int64_t p, int64_t k,
                         double *distances, int64_t *indices, mf_run *run);

    /* Approximate neighbours of many rows, in parts. Clusters are given by their members: those of cluster c are
     * members[starts[c]] to members[starts[c + 1] - 1]; the first known[c] have been compared with each other before.
     * A list of k rows has keys (squared distances in double) ascending, ties by index; unused places have key infinity
     * and index -1. `cluster_candidates` writes for every member (keep each, -1 where there are fewer) the rows
     * nearest to it among the others of its cluster that are nearer than the last of its list, by float32.
     * `rank_candidates` adds to the list of every row its candidates at `m` places among the members; `join_neighbors`
     * makes new lists from the old ones and the neighbours of neighbours, less those that share one of the row's `m`
     * clusters. `order` is a permutation of the rows: the order in which they are visited changes no bit. */
    mf_status (*cluster_candidates_f32)(const float *x, int64_t p, const int64_t *starts, const int64_t *known,
                                        int64_t clusters, const int32_t *members, const double *keys, int64_t k,
                                        int64_t keep, int32_t *candidates, mf_run *run);
    mf_status (*cluster_candidates_f64)(const double *x, int64_t p, const int64_t *starts, const int64_t *known,
                                        int64_t clusters, const int32_t *members, const double *keys, int64_t k,
                                        int64_t keep, int32_t *candidates, mf_run *run);
    mf_status (*rank_candidates_f32)(const float *x, int64_t n, int64_t p, const int32_t *order, const int64_t *places,
                                     int64_t m, const int32_t *candidates, int64_t keep, double *keys, int32_t *near,
                                     int64_t k, mf_run *run);
    mf_status (*rank_candidates_f64)(const double *x, int64_t n, int64_t p, const int32_t *order, const int64_t *places,
                                     int64_t m, const int32_t *candidates, int64_t keep, double *keys, int32_t *near,
                                     int64_t k, mf_run *run);
    mf_status (*join_neighbors_f32)(const float *x, int64_t n, int64_t p, const int32_t *order, const int32_t *clusters,
                                    int64_t m, const double *keys, const int32_t *near, int64_t k, double *new_keys,
                                    int32_t *new_near, mf_run *run);
    mf_status (*join_neighbors_f64)(const double *x, int64_t n, int64_t p, const int32_t *order, const int32_t *clusters,
                                    int64_t m, const double *keys, const int32_t *near, int64_t k, double *new_keys,
                                    int32_t *new_near, mf_run *run);
    /* ranks[i, t] = 1 + #{j : (|q_i - y_j|, j) before (|q_i - y_r|, r)} with r = neighbors[i, t]; queries == NULL: q is
     * y, and row i has no part in its own ranks. Exact: distances in double. Neighbours are numbers in [0, n). */
    mf_status (*neighbor_ranks_f32)(const float *y, int64_t n, const float *queries, int64_t m, int64_t p,
                                    const int64_t *neighbors, int64_t k, int64_t *ranks, mf_run *run);
    mf_status (*neighbor_ranks_f64)(const double *y, int64_t n, const double *queries, int64_t m, int64_t p,
                                    const int64_t *neighbors, int64_t k, int64_t *ranks, mf_run *run);

    /* Sparse codes of the rows of x in a dictionary that is prepared (for as many samples; it gets what pays for so
     * many): min 1/2 |x - a D - e|^2 + lam (|a|_1 + |e|_1); errors == NULL: without e. lam == 0 is the limit. exclude
     * (may be NULL): the atom a sample may not use, -1 for none. The code of sample i comes as a block of counts[i]
     * indices and values for l1_collect, which moves the blocks of all samples into CSR arrays and frees them.
     * status[i]: 0 certified, 1 out of reach (least squares), 2 not certified to tol. */
    mf_status (*l1_prepare_f32)(const float *dictionary, int64_t atoms, int64_t p, int64_t samples, mf_prepared **made,
                              mf_run *run);
    mf_status (*l1_prepare_f64)(const double *dictionary, int64_t atoms, int64_t p, int64_t samples, mf_prepared **made,
                              mf_run *run);
    mf_status (*l1_code_f32)(const mf_prepared *dictionary, const float *x, int64_t n, double lam, double tol,
                           const int64_t *exclude, int64_t *counts, void **blocks, float *errors, signed char *status,
                           mf_run *run);
    mf_status (*l1_code_f64)(const mf_prepared *dictionary, const double *x, int64_t n, double lam, double tol,
                           const int64_t *exclude, int64_t *counts, void **blocks, double *errors, signed char *status,
                           mf_run *run);
    void (*l1_collect)(void **blocks, const int64_t *counts, int64_t n, int64_t *indices, double *values);

    /* knn by a kd-tree, which is prepared, for few features; y == NULL: of the tree's own rows. n, m < 2^31. */
    mf_status (*kdtree_prepare_f32)(const float *x, int64_t n, int64_t p, mf_prepared **made, mf_run *run);
    mf_status (*kdtree_prepare_f64)(const double *x, int64_t n, int64_t p, mf_prepared **made, mf_run *run);
    mf_status (*kdtree_search_f32)(const mf_prepared *x, const float *y, int64_t m, int64_t k, float *distances,
                                 int64_t *indices, mf_run *run);
    mf_status (*kdtree_search_f64)(const mf_prepared *x, const double *y, int64_t m, int64_t k, double *distances,
                                 int64_t *indices, mf_run *run);

    /* sq_distances, rbf_apply and knn against rows that are prepared. */
    mf_status (*distances_prepare_f32)(const float *y, int64_t m, int64_t p, mf_prepared **made, mf_run *run);
    mf_status (*distances_prepare_f64)(const double *y, int64_t m, int64_t p, mf_prepared **made, mf_run *run);
    mf_status (*distances_to_f32)(const mf_prepared *y, const float *x, int64_t n, float inv_sigma2, float *out,
                                mf_run *run);
    mf_status (*distances_to_f64)(const mf_prepared *y, const double *x, int64_t n, double inv_sigma2, double *out,
                                mf_run *run);
    mf_status (*rbf_prepare_f32)(const float *centers, int64_t m, int64_t p, const float *coef, int64_t d,
                               mf_prepared **made, mf_run *run);
    mf_status (*rbf_prepare_f64)(const double *centers, int64_t m, int64_t p, const double *coef, int64_t d,
                               mf_prepared **made, mf_run *run);
    mf_status (*rbf_apply_to_f32)(const mf_prepared *centers, const float *x, int64_t n, float inv_sigma2, float *out,
                                mf_run *run);
    mf_status (*rbf_apply_to_f64)(const mf_prepared *centers, const double *x, int64_t n, double inv_sigma2, double *out,
                                mf_run *run);
    mf_status (*knn_prepare_f32)(const float *y, int64_t n, int64_t p, mf_prepared **made, mf_run *run);
    mf_status (*knn_prepare_f64)(const double *y, int64_t n, int64_t p, mf_prepared **made, mf_run *run);
    mf_status (*knn_to_f32)(const mf_prepared *y, const float *queries, int64_t m, int64_t k, float *distances,
                          int64_t *indices, mf_run *run);
    mf_status (*knn_to_f64)(const mf_prepared *y, const double *queries, int64_t m, int64_t k, double *distances,
                          int64_t *indices, mf_run *run);

    /* The largest |entry| of n numbers, 0 for none; NaN where one is not finite. */
    double (*largest_f32)(const float *x, int64_t n);
    double (*largest_f64)(const double *x, int64_t n);

    /* Lists of k neighbours and their distances to a symmetric CSR graph, in two steps: `begin` makes *graph and says
     * how many entries it has, `fill` writes it; `free` in any case. An edge joins i and j where either lists
     * the other, or where both do (mutual). `wide`: indptr and columns are int64, else int32; 2 n k must fit.
     * *bad is the first row with a neighbour outside [0, n) or a distance that is negative or NaN, or -1.
     * `fill` reads the distances once more. */
    mf_status (*graph_begin_f32)(const float *distances, const int64_t *neighbors, int64_t n, int64_t k, int mutual,
                                 int wide, mf_graph **graph, int64_t *entries, int64_t *bad, mf_run *run);
    mf_status (*graph_begin_f64)(const double *distances, const int64_t *neighbors, int64_t n, int64_t k, int mutual,
                                 int wide, mf_graph **graph, int64_t *entries, int64_t *bad, mf_run *run);
    mf_status (*graph_fill_f32)(const mf_graph *graph, mf_weights weights, float beta, void *indptr, void *columns,
                                float *values, mf_run *run);
    mf_status (*graph_fill_f64)(const mf_graph *graph, mf_weights weights, double beta, void *indptr, void *columns,
                                double *values, mf_run *run);
    void (*graph_free)(mf_graph *graph);

    /* The Laplacian of a CSR graph with sorted columns, in two steps: `begin` fills degrees and
     * out_indptr and says what is wrong with the graph (a sum of mf_flaw), `fill` writes the entries. */
    mf_status (*laplacian_begin_f32)(int wide, int64_t n, int64_t entries, const void *indptr, const void *columns,
                                     const float *weights, double *degrees, void *out_indptr, int *flaws,
                                     mf_run *run);
    mf_status (*laplacian_begin_f64)(int wide, int64_t n, int64_t entries, const void *indptr, const void *columns,
                                     const double *weights, double *degrees, void *out_indptr, int *flaws,
                                     mf_run *run);
    mf_status (*laplacian_fill_f32)(int wide, int64_t n, const void *indptr, const void *columns, const float *weights,
                                    const double *degrees, const void *out_indptr,
                                    mf_normalization normalization, void *out_columns, float *out, mf_run *run);
    mf_status (*laplacian_fill_f64)(int wide, int64_t n, const void *indptr, const void *columns, const double *weights,
                                    const double *degrees, const void *out_indptr,
                                    mf_normalization normalization, void *out_columns, double *out, mf_run *run);

    /* out[i, v] = length of the shortest path from sources[i] to v in a symmetric CSR graph with lengths of at least 0,
     * infinite where there is none: exactly what Dijkstra's algorithm gives. */
    mf_status (*shortest_paths)(int64_t n, const int64_t *starts, const int32_t *columns, const double *lengths,
                                const int64_t *sources, int64_t m, double *out, mf_run *run);

    /* out[i, :] = min_j distances[i, j] + geodesics[neighbors[i, j], :], rows of m points with k neighbours each among
     * those of geodesics. out is float where `narrow`, else double. */
    mf_status (*geodesic_rows_f32)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                   const float *geodesics, int64_t columns, int narrow, void *out, mf_run *run);
    mf_status (*geodesic_rows_f64)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                   const double *geodesics, int64_t columns, int narrow, void *out, mf_run *run);

    /* out = -1/2 (delta^2 - mean_sq) projection + offset with the rows delta of geodesic_rows, in a fixed order of
     * summation; projection is columns x d. */
    mf_status (*landmark_map_f32)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                  const float *geodesics, int64_t columns, const double *mean_sq,
                                  const double *projection, int64_t d, const double *offset, double *out, mf_run *run);
    mf_status (*landmark_map_f64)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                  const double *geodesics, int64_t columns, const double *mean_sq,
                                  const double *projection, int64_t d, const double *offset, double *out, mf_run *run);

    /* Weights w that reconstruct each query (queries == NULL: each of the first m rows of x) from its k neighbours
     * among the rows of x: (G + reg tr(G) I) w = 1 with the Gram matrix G of the differences, brought to the sum 1. */
    mf_status (*barycenter_weights_f32)(const float *x, const float *queries, int64_t m, int64_t p,
                                        const int64_t *neighbors, int64_t k, double reg, float *weights, mf_run *run);
    mf_status (*barycenter_weights_f64)(const double *x, const double *queries, int64_t m, int64_t p,
                                        const int64_t *neighbors, int64_t k, double reg, double *weights, mf_run *run);

    /* out[i, :] = the neighbours' rows of y, n x d, in those weights */
    mf_status (*reconstruct_f32)(const float *x, const float *queries, int64_t m, int64_t p, const int64_t *neighbors,
                                 int64_t k, double reg, const float *y, int64_t d, float *out, mf_run *run);
    mf_status (*reconstruct_f64)(const double *x, const double *queries, int64_t m, int64_t p, const int64_t *neighbors,
                                 int64_t k, double reg, const double *y, int64_t d, double *out, mf_run *run);

    /* (I - W)'(I - W) with those weights, and the alignment matrix: over the cliques of k points, the sum of
     * I - 11'/k - U diag(s^2 / (s^2 + gamma)) U' with the `dim` leading singular vectors of the centred clique. Either
     * begins with *blocks and the number of entries; `blocks_fill` writes CSR arrays (indptr and columns are int64
     * where wide, else int32), `blocks_free` in any case. *bad is the first row that names a point twice (for LLE,
     * its own number counts), or -1. */
    mf_status (*lle_begin_f32)(const float *x, int64_t n, int64_t p, const int64_t *neighbors, int64_t k, double reg,
                               mf_blocks **blocks, int64_t *entries, int64_t *bad, mf_run *run);
    mf_status (*lle_begin_f64)(const double *x, int64_t n, int64_t p, const int64_t *neighbors, int64_t k, double reg,
                               mf_blocks **blocks, int64_t *entries, int64_t *bad, mf_run *run);
    mf_status (*alignment_begin_f32)(const float *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                     int64_t k, int64_t dim, double gamma, mf_blocks **blocks, int64_t *entries,
                                     int64_t *bad, mf_run *run);
    mf_status (*alignment_begin_f64)(const double *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                     int64_t k, int64_t dim, double gamma, mf_blocks **blocks, int64_t *entries,
                                     int64_t *bad, mf_run *run);

    /* The same for Hessian eigenmaps: over the cliques, the sum of H'H with the products of the `dim` leading singular
     * vectors of the centred clique in the rows of H, made orthonormal after the constant and those vectors. Needs
     * k > dim + dim (dim + 1) / 2. */
    mf_status (*hessian_begin_f32)(const float *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                   int64_t k, int64_t dim, mf_blocks **blocks, int64_t *entries, int64_t *bad,
                                   mf_run *run);
    mf_status (*hessian_begin_f64)(const double *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                   int64_t k, int64_t dim, mf_blocks **blocks, int64_t *entries, int64_t *bad,
                                   mf_run *run);

    /* And for modified LLE: residuals of the points `centers`, each in its list of neighbours, under all the weights
     * that local/modified_lle_impl.h describes. For *bad, its own center counts. */
    mf_status (*modified_begin_f32)(const float *x, int64_t n, int64_t p, const int64_t *neighbors,
                                    const int64_t *centers, int64_t count, int64_t k, int64_t dim, double reg,
                                    double tol, mf_blocks **blocks, int64_t *entries, int64_t *bad, mf_run *run);
    mf_status (*modified_begin_f64)(const double *x, int64_t n, int64_t p, const int64_t *neighbors,
                                    const int64_t *centers, int64_t count, int64_t k, int64_t dim, double reg,
                                    double tol, mf_blocks **blocks, int64_t *entries, int64_t *bad, mf_run *run);
    mf_status (*blocks_fill)(const mf_blocks *blocks, int wide, void *indptr, void *columns, double *values,
                             mf_run *run);
    void (*blocks_free)(mf_blocks *blocks);

    /* Sparse Cholesky factorisation of a symmetric matrix in three steps, each after the one before it succeeded:
     * `analyse` orders the columns and counts entries and flops of the factor (*feasible is 0, and nothing may follow,
     * where flops exceed max_flops or *flaws says that the pattern, both triangles with sorted columns, is not
     * symmetric; n < 2^30), `factor` takes values of that pattern, any number of times, with shift * diag(shifts) added
     * (shifts == NULL: shift * I; *bad is the row whose pivot is not positive, or -1, and then there is no factor),
     * `solve` solves for the m columns of rhs, n x m. `free` in any case. */
    mf_status (*cholesky_analyse)(int64_t n, int64_t entries, const int64_t *indptr, const int32_t *columns,
                                  double max_flops, mf_cholesky **made, int64_t *factor_entries, double *flops,
                                  int *feasible, int *flaws, mf_run *run);
    mf_status (*cholesky_factor)(mf_cholesky *factor, const double *values, double shift, const double *shifts,
                                 int64_t *bad, mf_run *run);
    mf_status (*cholesky_solve)(const mf_cholesky *factor, const double *rhs, int64_t m, double *out, mf_run *run);
    void (*cholesky_free)(mf_cholesky *factor);

    /* A hierarchy of graph Laplacians by smoothed aggregation, finest first: level 0 is D - W for a symmetric graph
     * with sorted columns, its nodes in an order of their own and its weights scaled by a power of two. *reached < n:
     * the graph is not connected, and there is no hierarchy. Free it in any case. */
    mf_status (*multilevel_begin)(int64_t n, const int64_t *start, const int32_t *column, const double *weight,
                                  mf_multilevel **hierarchy, int64_t *reached, mf_run *run);
    void (*multilevel_free)(mf_multilevel *hierarchy);
    int64_t (*multilevel_size)(const mf_multilevel *hierarchy, int level);    /* nodes; 0 beyond the coarsest level */
    int64_t (*multilevel_entries)(const mf_multilevel *hierarchy, int level); /* off the diagonal */
    const double *(*multilevel_mass)(const mf_multilevel *hierarchy, int level);
    const int32_t *(*multilevel_order)(const mf_multilevel *hierarchy); /* node of the caller at each place */
    double (*multilevel_scale)(const mf_multilevel *hierarchy);         /* root of the factor on the weights */

    /* Blocks of vectors are row-major, their width a multiple of 4. out = L x; out ~ L^+ (r scaled by columns) by one
     * V-cycle in float or double, orthogonal to constants by mass; from level + 1 to level. */
    mf_status (*multilevel_product)(const mf_multilevel *hierarchy, int level, const double *x, int64_t width,
                                    double *out, mf_run *run);
    mf_status (*multilevel_precondition_f32)(mf_multilevel *hierarchy, int level, const double *r, int64_t width,
                                             const double *scale, double *out, mf_run *run);
    mf_status (*multilevel_precondition_f64)(mf_multilevel *hierarchy, int level, const double *r, int64_t width,
                                             const double *scale, double *out, mf_run *run);
    mf_status (*multilevel_prolong)(const mf_multilevel *hierarchy, int level, const double *coarse, int64_t width,
                                    double *fine, mf_run *run);

    /* gram = [parts]' [mass y, ay], (sum of widths) x (2 width). */
    mf_status (*tall_gram)(int64_t n, const double *const *parts, const int64_t *widths, int count, const double *y,
                           const double *ay, int64_t width, const double *mass, double *gram, mf_run *run);
    /* [outs] = [parts] coef, row by row: outs may be among the parts. */
    mf_status (*tall_update)(int64_t n, const double *const *parts, const int64_t *widths, int count,
                             const double *coef, double *const *outs, const int64_t *out_widths, int out_count,
                             mf_run *run);
    /* out = ax - mass x values, and the squares of its columns' norms by 1 / mass. */
    mf_status (*tall_residual)(int64_t n, const double *x, const double *ax, int64_t width, const double *mass,
                               const double *values, double *out, double *squares, mf_run *run);
    /* x less its mean by mass, column by column. */
    mf_status (*tall_center)(int64_t n, double *x, int64_t width, const double *mass, mf_run *run);
} mf_table;

/* The table of a level by name ("baseline", "avx2", "avx512"), NULL where this build or this machine lacks it;
 * mf_best_table() is the fastest one that runs here. */
const mf_table *mf_find_table(const char *name);
const mf_table *mf_best_table(void);

/* The levels built in, best first: the name, NULL past the last one; and why this machine does not run it, or NULL. */
const char *mf_level_name(int level);
const char *mf_level_why_not(int level);

int mf_openmp_version(void);  /* 0: built without OpenMP */
/* What OpenMP would use here: OMP_NUM_THREADS, affinity, threadpoolctl; 1 in a parallel region. */
int mf_max_threads(void);
const char *mf_compiler(void);
const char *mf_version(void);

#endif
