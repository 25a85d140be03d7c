# Every C declaration of the core; csrc/manifast.h says what each kernel does.
from libc.stdint cimport int32_t, int64_t


cdef extern from "manifast.h" nogil:
    ctypedef enum mf_status:
        MF_OK
        MF_NO_MEMORY
        MF_INTERRUPTED

    ctypedef struct mf_run:
        int n_threads
        int (*interrupted)() noexcept nogil
        int stop
        double pause
        double last_poll

    ctypedef enum mf_weights:
        MF_HEAT
        MF_BINARY
        MF_DISTANCE

    ctypedef enum mf_normalization:
        MF_PLAIN
        MF_SYMMETRIC
        MF_RANDOM_WALK

    ctypedef struct mf_graph:
        pass

    ctypedef struct mf_blocks:
        pass

    ctypedef struct mf_cholesky:
        pass

    ctypedef struct mf_multilevel:
        pass

    ctypedef struct mf_prepared:
        pass

    void mf_prepared_free(mf_prepared *operand) noexcept
    int64_t mf_prepared_bytes(const mf_prepared *operand) noexcept

    ctypedef struct mf_table:
        const char *level
        int64_t int32_max
        mf_status (*sq_distances_f32)(const float *x, int64_t n, const float *y, int64_t m, int64_t p,
                                      float inv_sigma2, float *out, mf_run *run) noexcept nogil
        mf_status (*sq_distances_f64)(const double *x, int64_t n, const double *y, int64_t m, int64_t p,
                                      double inv_sigma2, double *out, mf_run *run) noexcept nogil
        mf_status (*rbf_apply_f32)(const float *x, int64_t n, const float *centers, int64_t m, int64_t p,
                                   const float *coef, int64_t d, float inv_sigma2, float *out, mf_run *run) noexcept nogil
        mf_status (*rbf_apply_f64)(const double *x, int64_t n, const double *centers, int64_t m, int64_t p,
                                   const double *coef, int64_t d, double inv_sigma2, double *out, mf_run *run) noexcept nogil
        mf_status (*heat_mean_f32)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                   const float *y, int64_t d, double beta, int others, double *out,
                                   mf_run *run) noexcept nogil
        mf_status (*heat_mean_f64)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                   const double *y, int64_t d, double beta, int others, double *out,
                                   mf_run *run) noexcept nogil
        mf_status (*affine_f32)(const float *x, int64_t n, int64_t p, const float *w, int64_t d, const float *b,
                                float *out, mf_run *run) noexcept nogil
        mf_status (*affine_f64)(const double *x, int64_t n, int64_t p, const double *w, int64_t d, const double *b,
                                double *out, mf_run *run) noexcept nogil
        void (*l1_collect)(void **blocks, const int64_t *counts, int64_t n, int64_t *indices, double *values) noexcept nogil
        double (*largest_f32)(const float *x, int64_t n) noexcept nogil
        double (*largest_f64)(const double *x, int64_t n) noexcept nogil
        mf_status (*distances_prepare_f32)(const float *y, int64_t m, int64_t p, mf_prepared **made, mf_run *run) noexcept nogil
        mf_status (*distances_prepare_f64)(const double *y, int64_t m, int64_t p, mf_prepared **made, mf_run *run) noexcept nogil
        mf_status (*distances_to_f32)(const mf_prepared *y, const float *x, int64_t n, float inv_sigma2, float *out, mf_run *run) noexcept nogil
        mf_status (*distances_to_f64)(const mf_prepared *y, const double *x, int64_t n, double inv_sigma2, double *out, mf_run *run) noexcept nogil
        mf_status (*rbf_prepare_f32)(const float *centers, int64_t m, int64_t p, const float *coef, int64_t d,
                                    mf_prepared **made, mf_run *run) noexcept nogil
        mf_status (*rbf_prepare_f64)(const double *centers, int64_t m, int64_t p, const double *coef, int64_t d,
                                    mf_prepared **made, mf_run *run) noexcept nogil
        mf_status (*rbf_apply_to_f32)(const mf_prepared *centers, const float *x, int64_t n, float inv_sigma2, float *out,
                                     mf_run *run) noexcept nogil
        mf_status (*rbf_apply_to_f64)(const mf_prepared *centers, const double *x, int64_t n, double inv_sigma2, double *out,
                                     mf_run *run) noexcept nogil
        mf_status (*knn_prepare_f32)(const float *y, int64_t n, int64_t p, mf_prepared **made, mf_run *run) noexcept nogil
        mf_status (*knn_prepare_f64)(const double *y, int64_t n, int64_t p, mf_prepared **made, mf_run *run) noexcept nogil
        mf_status (*knn_to_f32)(const mf_prepared *y, const float *queries, int64_t m, int64_t k, float *distances,
                               int64_t *indices, mf_run *run) noexcept nogil
        mf_status (*knn_to_f64)(const mf_prepared *y, const double *queries, int64_t m, int64_t k, double *distances,
                               int64_t *indices, mf_run *run) noexcept nogil
        mf_status (*kdtree_prepare_f32)(const float *x, int64_t n, int64_t p, mf_prepared **made, mf_run *run) noexcept nogil
        mf_status (*kdtree_prepare_f64)(const double *x, int64_t n, int64_t p, mf_prepared **made, mf_run *run) noexcept nogil
        mf_status (*kdtree_search_f32)(const mf_prepared *x, const float *y, int64_t m, int64_t k, float *distances,
                                      int64_t *indices, mf_run *run) noexcept nogil
        mf_status (*kdtree_search_f64)(const mf_prepared *x, const double *y, int64_t m, int64_t k, double *distances,
                                      int64_t *indices, mf_run *run) noexcept nogil
        mf_status (*l1_prepare_f32)(const float *dictionary, int64_t atoms, int64_t p, int64_t samples,
                                    mf_prepared **made, mf_run *run) noexcept nogil
        mf_status (*l1_prepare_f64)(const double *dictionary, int64_t atoms, int64_t p, int64_t samples,
                                    mf_prepared **made, mf_run *run) noexcept nogil
        mf_status (*l1_code_f32)(const mf_prepared *dictionary, const float *x, int64_t n, double lam, double tol,
                                   const int64_t *exclude, int64_t *counts, void **blocks, float *errors,
                                   signed char *status, mf_run *run) noexcept nogil
        mf_status (*l1_code_f64)(const mf_prepared *dictionary, const double *x, int64_t n, double lam, double tol,
                                   const int64_t *exclude, int64_t *counts, void **blocks, double *errors,
                                   signed char *status, mf_run *run) noexcept nogil
        mf_status (*graph_begin_f32)(const float *distances, const int64_t *neighbors, int64_t n, int64_t k, int mutual,
                                     int wide, mf_graph **graph, int64_t *entries, int64_t *bad, mf_run *run) noexcept nogil
        mf_status (*graph_begin_f64)(const double *distances, const int64_t *neighbors, int64_t n, int64_t k, int mutual,
                                     int wide, mf_graph **graph, int64_t *entries, int64_t *bad, mf_run *run) noexcept nogil
        mf_status (*graph_fill_f32)(const mf_graph *graph, mf_weights weights, float beta, void *indptr, void *columns,
                                    float *values, mf_run *run) noexcept nogil
        mf_status (*graph_fill_f64)(const mf_graph *graph, mf_weights weights, double beta, void *indptr, void *columns,
                                    double *values, mf_run *run) noexcept nogil
        void (*graph_free)(mf_graph *graph) noexcept nogil
        mf_status (*laplacian_begin_f32)(int wide, int64_t n, int64_t entries, const void *indptr, const void *columns,
                                         const float *weights, double *degrees, void *out_indptr, int *flaws,
                                         mf_run *run) noexcept nogil
        mf_status (*laplacian_begin_f64)(int wide, int64_t n, int64_t entries, const void *indptr, const void *columns,
                                         const double *weights, double *degrees, void *out_indptr, int *flaws,
                                         mf_run *run) noexcept nogil
        mf_status (*laplacian_fill_f32)(int wide, int64_t n, const void *indptr, const void *columns, const float *weights,
                                        const double *degrees, const void *out_indptr,
                                        mf_normalization normalization, void *out_columns, float *out, mf_run *run) noexcept nogil
        mf_status (*laplacian_fill_f64)(int wide, int64_t n, const void *indptr, const void *columns, const double *weights,
                                        const double *degrees, const void *out_indptr,
                                        mf_normalization normalization, void *out_columns, double *out, mf_run *run) noexcept nogil

        mf_status (*cholesky_analyse)(int64_t n, int64_t entries, const int64_t *indptr, const int32_t *columns,
                                      double max_flops, mf_cholesky **made, int64_t *factor_entries, double *flops,
                                      int *feasible, int *flaws, mf_run *run) noexcept nogil
        mf_status (*cholesky_factor)(mf_cholesky *factor, const double *values, double shift, const double *shifts,
                                     int64_t *bad, mf_run *run) noexcept nogil
        mf_status (*cholesky_solve)(const mf_cholesky *factor, const double *rhs, int64_t m, double *out,
                                    mf_run *run) noexcept nogil
        void (*cholesky_free)(mf_cholesky *factor) noexcept nogil

        mf_status (*knn_f32)(const float *y, int64_t n, const float *queries, int64_t m, int64_t p, int64_t k,
                             float *distances, int64_t *indices, mf_run *run) noexcept nogil
        mf_status (*knn_f64)(const double *y, int64_t n, const double *queries, int64_t m, int64_t p, int64_t k,
                             double *distances, int64_t *indices, mf_run *run) noexcept nogil
        mf_status (*cluster_candidates_f32)(const float *x, int64_t p, const int64_t *starts, const int64_t *known,
                                            int64_t clusters, const int32_t *members, const double *keys, int64_t k,
                                            int64_t keep, int32_t *candidates, mf_run *run) noexcept nogil
        mf_status (*cluster_candidates_f64)(const double *x, int64_t p, const int64_t *starts, const int64_t *known,
                                            int64_t clusters, const int32_t *members, const double *keys, int64_t k,
                                            int64_t keep, int32_t *candidates, mf_run *run) noexcept nogil
        mf_status (*rank_candidates_f32)(const float *x, int64_t n, int64_t p, const int32_t *order, const int64_t *places,
                                         int64_t m, const int32_t *candidates, int64_t keep, double *keys, int32_t *near,
                                         int64_t k, mf_run *run) noexcept nogil
        mf_status (*rank_candidates_f64)(const double *x, int64_t n, int64_t p, const int32_t *order, const int64_t *places,
                                         int64_t m, const int32_t *candidates, int64_t keep, double *keys, int32_t *near,
                                         int64_t k, mf_run *run) noexcept nogil
        mf_status (*join_neighbors_f32)(const float *x, int64_t n, int64_t p, const int32_t *order, const int32_t *clusters,
                                        int64_t m, const double *keys, const int32_t *near, int64_t k, double *new_keys,
                                        int32_t *new_near, mf_run *run) noexcept nogil
        mf_status (*join_neighbors_f64)(const double *x, int64_t n, int64_t p, const int32_t *order, const int32_t *clusters,
                                        int64_t m, const double *keys, const int32_t *near, int64_t k, double *new_keys,
                                        int32_t *new_near, mf_run *run) noexcept nogil
        mf_status (*neighbor_ranks_f32)(const float *y, int64_t n, const float *queries, int64_t m, int64_t p,
                                        const int64_t *neighbors, int64_t k, int64_t *ranks, mf_run *run) noexcept nogil
        mf_status (*neighbor_ranks_f64)(const double *y, int64_t n, const double *queries, int64_t m, int64_t p,
                                        const int64_t *neighbors, int64_t k, int64_t *ranks, mf_run *run) noexcept nogil
        mf_status (*shortest_paths)(int64_t n, const int64_t *starts, const int32_t *columns, const double *lengths,
                                    const int64_t *sources, int64_t m, double *out, mf_run *run) noexcept nogil
        mf_status (*geodesic_rows_f32)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                       const float *geodesics, int64_t columns, int narrow, void *out, mf_run *run) noexcept nogil
        mf_status (*geodesic_rows_f64)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                       const double *geodesics, int64_t columns, int narrow, void *out, mf_run *run) noexcept nogil
        mf_status (*landmark_map_f32)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                      const float *geodesics, int64_t columns, const double *mean_sq,
                                      const double *projection, int64_t d, const double *offset, double *out, mf_run *run) noexcept nogil
        mf_status (*landmark_map_f64)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                      const double *geodesics, int64_t columns, const double *mean_sq,
                                      const double *projection, int64_t d, const double *offset, double *out, mf_run *run) noexcept nogil

        mf_status (*barycenter_weights_f32)(const float *x, const float *queries, int64_t m, int64_t p,
                                            const int64_t *neighbors, int64_t k, double reg, float *weights, mf_run *run) noexcept nogil
        mf_status (*barycenter_weights_f64)(const double *x, const double *queries, int64_t m, int64_t p,
                                            const int64_t *neighbors, int64_t k, double reg, double *weights, mf_run *run) noexcept nogil
        mf_status (*reconstruct_f32)(const float *x, const float *queries, int64_t m, int64_t p, const int64_t *neighbors,
                                     int64_t k, double reg, const float *y, int64_t d, float *out, mf_run *run) noexcept nogil
        mf_status (*reconstruct_f64)(const double *x, const double *queries, int64_t m, int64_t p, const int64_t *neighbors,
                                     int64_t k, double reg, const double *y, int64_t d, double *out, mf_run *run) noexcept nogil
        mf_status (*lle_begin_f32)(const float *x, int64_t n, int64_t p, const int64_t *neighbors, int64_t k, double reg,
                                   mf_blocks **blocks, int64_t *entries, int64_t *bad, mf_run *run) noexcept nogil
        mf_status (*lle_begin_f64)(const double *x, int64_t n, int64_t p, const int64_t *neighbors, int64_t k, double reg,
                                   mf_blocks **blocks, int64_t *entries, int64_t *bad, mf_run *run) noexcept nogil
        mf_status (*alignment_begin_f32)(const float *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                         int64_t k, int64_t dim, double gamma, mf_blocks **blocks, int64_t *entries,
                                         int64_t *bad, mf_run *run) noexcept nogil
        mf_status (*alignment_begin_f64)(const double *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                         int64_t k, int64_t dim, double gamma, mf_blocks **blocks, int64_t *entries,
                                         int64_t *bad, mf_run *run) noexcept nogil
        mf_status (*hessian_begin_f32)(const float *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                       int64_t k, int64_t dim, mf_blocks **blocks, int64_t *entries, int64_t *bad,
                                       mf_run *run) noexcept nogil
        mf_status (*hessian_begin_f64)(const double *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                       int64_t k, int64_t dim, mf_blocks **blocks, int64_t *entries, int64_t *bad,
                                       mf_run *run) noexcept nogil
        mf_status (*modified_begin_f32)(const float *x, int64_t n, int64_t p, const int64_t *neighbors,
                                        const int64_t *centers, int64_t count, int64_t k, int64_t dim, double reg,
                                        double tol, mf_blocks **blocks, int64_t *entries, int64_t *bad,
                                        mf_run *run) noexcept nogil
        mf_status (*modified_begin_f64)(const double *x, int64_t n, int64_t p, const int64_t *neighbors,
                                        const int64_t *centers, int64_t count, int64_t k, int64_t dim, double reg,
                                        double tol, mf_blocks **blocks, int64_t *entries, int64_t *bad,
                                        mf_run *run) noexcept nogil
        mf_status (*blocks_fill)(const mf_blocks *blocks, int wide, void *indptr, void *columns, double *values,
                                 mf_run *run) noexcept nogil
        void (*blocks_free)(mf_blocks *blocks) noexcept nogil

        mf_status (*multilevel_begin)(int64_t n, const int64_t *start, const int32_t *column, const double *weight,
                                      mf_multilevel **hierarchy, int64_t *reached, mf_run *run) noexcept nogil
        void (*multilevel_free)(mf_multilevel *hierarchy) noexcept nogil
        int64_t (*multilevel_size)(const mf_multilevel *hierarchy, int level) noexcept nogil
        int64_t (*multilevel_entries)(const mf_multilevel *hierarchy, int level) noexcept nogil
        const double *(*multilevel_mass)(const mf_multilevel *hierarchy, int level) noexcept nogil
        const int32_t *(*multilevel_order)(const mf_multilevel *hierarchy) noexcept nogil
        double (*multilevel_scale)(const mf_multilevel *hierarchy) noexcept nogil
        mf_status (*multilevel_product)(const mf_multilevel *hierarchy, int level, const double *x, int64_t width,
                                        double *out, mf_run *run) noexcept nogil
        mf_status (*multilevel_precondition_f32)(mf_multilevel *hierarchy, int level, const double *r, int64_t width,
                                                 const double *scale, double *out, mf_run *run) noexcept nogil
        mf_status (*multilevel_precondition_f64)(mf_multilevel *hierarchy, int level, const double *r, int64_t width,
                                                 const double *scale, double *out, mf_run *run) noexcept nogil
        mf_status (*multilevel_prolong)(const mf_multilevel *hierarchy, int level, const double *coarse, int64_t width,
                                        double *fine, mf_run *run) noexcept nogil
        mf_status (*tall_gram)(int64_t n, const double *const *parts, const int64_t *widths, int count,
                               const double *y, const double *ay, int64_t width, const double *mass, double *gram,
                               mf_run *run) noexcept nogil
        mf_status (*tall_update)(int64_t n, const double *const *parts, const int64_t *widths, int count,
                                 const double *coef, double *const *outs, const int64_t *out_widths, int out_count,
                                 mf_run *run) noexcept nogil
        mf_status (*tall_residual)(int64_t n, const double *x, const double *ax, int64_t width, const double *mass,
                                   const double *values, double *out, double *squares, mf_run *run) noexcept nogil
        mf_status (*tall_center)(int64_t n, double *x, int64_t width, const double *mass, mf_run *run) noexcept nogil

    const mf_table *mf_find_table(const char *name)
    const mf_table *mf_best_table()
    const char *mf_level_name(int level)
    const char *mf_level_why_not(int level)
    int mf_openmp_version()
    int mf_max_threads()
    const char *mf_compiler()
    const char *mf_version()
