/* The kernels of both dtypes, one call each or one chain of calls.
 * Template. Needs: races.h, and REAL, NAME(x) for a kernel, TITLE(x) for what is printed. */

static REAL *NAME(rows)(int64_t n, int64_t p, uint64_t seed)
{
    REAL *made = room(n * p, sizeof(REAL));
    for (int64_t i = 0; i < n * p; i++) made[i] = (REAL)(number(seed + (uint64_t)i) - 0.5);
    return made;
}

static void NAME(dense)(void)
{
    enum { N = 70, M = 90, P = 37, D = 5 };
    REAL *x = NAME(rows)(N, P, 1), *y = NAME(rows)(M, P, 2), *coef = NAME(rows)(M, D, 3);
    REAL *out = room(M * M, sizeof(REAL));
    RACE(TITLE("sq_distances"), out, N * M * sizeof(REAL),
         status = kernels->NAME(sq_distances)(x, N, y, M, P, 0, out, run));
    RACE(TITLE("sq_distances of itself"), out, M * M * sizeof(REAL),
         status = kernels->NAME(sq_distances)(y, M, NULL, M, P, (REAL)0.5, out, run));
    RACE(TITLE("sq_distances, few rows"), out, 3 * M * sizeof(REAL),
         status = kernels->NAME(sq_distances)(x, 3, y, M, P, 0, out, run));
    RACE(TITLE("rbf_apply"), out, N * D * sizeof(REAL),
         status = kernels->NAME(rbf_apply)(x, N, y, M, P, coef, D, (REAL)0.1, out, run));
    RACE(TITLE("rbf_apply, few rows"), out, 3 * D * sizeof(REAL),
         status = kernels->NAME(rbf_apply)(x, 3, y, M, P, coef, D, (REAL)0.1, out, run));
    RACE(TITLE("affine"), out, N * D * sizeof(REAL),
         status = kernels->NAME(affine)(x, N, P, y, D, coef, out, run));
    RACE(TITLE("distances_to"), out, N * M * sizeof(REAL), {
        mf_prepared *made = NULL;
        status = kernels->NAME(distances_prepare)(y, M, P, &made, run);
        if (status == MF_OK) status = kernels->NAME(distances_to)(made, x, N, 0, out, run);
        mf_prepared_free(made);
    });
    RACE(TITLE("rbf_apply_to"), out, N * D * sizeof(REAL), {
        mf_prepared *made = NULL;
        status = kernels->NAME(rbf_prepare)(y, M, P, coef, D, &made, run);
        if (status == MF_OK) status = kernels->NAME(rbf_apply_to)(made, x, N, (REAL)0.1, out, run);
        mf_prepared_free(made);
    });
}

typedef struct {
    REAL *x, *distances;
    double *wide;
    int64_t *indices;
} NAME(neighborhood);

/* Every search; the neighbours of a plane's points for those that follow. */
static NAME(neighborhood) NAME(neighbors)(int64_t n, int64_t p, int64_t k)
{
    enum { M = 40 };
    NAME(neighborhood) s = {NAME(rows)(n, p, 7), room(n * k, sizeof(REAL)), room(n * k, sizeof(double)),
                            room(n * k, sizeof(int64_t))};
    REAL *queries = NAME(rows)(M, p, 8), *found = room(M * k, sizeof(REAL));
    int64_t *indices = room(M * k, sizeof(int64_t)), *ranks = room(n * k, sizeof(int64_t));
    for (int64_t i = 0; i < n; i++) /* a long plane, nearly flat: screening must look twice */
        for (int64_t j = 0; j < p; j++) s.x[i * p + j] = j < 2 ? s.x[i * p + j] * 20 : s.x[i * p + j] / 50;
    memcpy(s.x + p, s.x, (size_t)p * sizeof(REAL));
    RACE(TITLE("knn to others"), indices, M * k * 8,
         status = kernels->NAME(knn)(s.x, n, queries, M, p, k, found, indices, run));
    RACE(TITLE("knn, few queries"), indices, 4 * k * 8,
         status = kernels->NAME(knn)(s.x, n, queries, 4, p, k, found, indices, run));
    RACE(TITLE("knn_to"), indices, M * k * 8, {
        mf_prepared *made = NULL;
        status = kernels->NAME(knn_prepare)(s.x, n, p, &made, run);
        if (status == MF_OK) status = kernels->NAME(knn_to)(made, queries, M, k, found, indices, run);
        if (status == MF_OK) status = kernels->NAME(knn_to)(made, queries, 4, k, found, indices, run);
        mf_prepared_free(made);
    });
    RACE(TITLE("kdtree_search"), indices, M * k * 8, {
        mf_prepared *made = NULL;
        status = kernels->NAME(kdtree_prepare)(s.x, n, p, &made, run);
        if (status == MF_OK) status = kernels->NAME(kdtree_search)(made, queries, M, k, found, indices, run);
        if (status == MF_OK) status = kernels->NAME(kdtree_search)(made, NULL, n, k, s.distances, s.indices, run);
        mf_prepared_free(made);
    });
    RACE(TITLE("knn of itself"), s.indices, n * k * 8,
         status = kernels->NAME(knn)(s.x, n, NULL, n, p, k, s.distances, s.indices, run));
    RACE(TITLE("neighbor_ranks"), ranks, n * k * 8,
         status = kernels->NAME(neighbor_ranks)(s.x, n, NULL, n, p, s.indices, k, ranks, run));
    for (int64_t i = 0; i < n * k; i++) s.wide[i] = (double)s.distances[i];
    return s;
}

static void NAME(clusters)(void)
{
    enum { N = 96, P = 11, K = 6, KEEP = 8, CLUSTERS = 12, SIZE = N / CLUSTERS };
    REAL *x = NAME(rows)(N, P, 9);
    int64_t starts[CLUSTERS + 1], known[CLUSTERS] = {0}, *places = room(N, 8);
    int32_t *members = room(N, 4), *candidates = room(N * KEEP, 4), *order = room(N, 4), *cluster = room(N, 4);
    int32_t *near = room(N * K, 4), *near2 = room(N * K, 4);
    double *keys = room(N * K, 8), *keys2 = room(N * K, 8);
    for (int c = 0; c <= CLUSTERS; c++) starts[c] = c * SIZE;
    for (int i = 0; i < N; i++) {
        members[i] = order[i] = i * 5 % N; /* 5 and N have no common divisor */
        places[members[i]] = i, cluster[members[i]] = i / SIZE;
    }
    RACE(TITLE("clusters"), keys2, N * K * 8, {
        for (int i = 0; i < N * K; i++) keys[i] = INFINITY, near[i] = -1;
        status = kernels->NAME(cluster_candidates)(x, P, starts, known, CLUSTERS, members, keys, K, KEEP, candidates,
                                                   run);
        if (status == MF_OK)
            status = kernels->NAME(rank_candidates)(x, N, P, order, places, 1, candidates, KEEP, keys, near, K, run);
        if (status == MF_OK)
            status = kernels->NAME(join_neighbors)(x, N, P, order, cluster, 1, keys, near, K, keys2, near2, run);
    });
}

/* What follows from neighbours: graph, Laplacian, weights and matrices of local methods, means and geodesics. */
static void NAME(graphs)(const NAME(neighborhood) *s, int64_t n, int64_t p, int64_t k)
{
    enum { D = 3, LANDMARKS = 21 };
    int64_t most = 2 * n * k, entries = 0, bad = -1, *cliques = room(n * (k + 1), 8), *centers = room(n, 8);
    REAL *values = room(most + n, sizeof(REAL)), *y = NAME(rows)(n, D, 11), *out = room(n * k, sizeof(REAL));
    REAL *geodesics = NAME(rows)(n, LANDMARKS, 13);
    double *degrees = room(n, 8), *wide = room(n * n, 8), *mean = room(n, 8), *projection = room(LANDMARKS * D, 8);
    double offset[D] = {0};
    int64_t *indptr = room(n + 1, 8), *columns = room(most + n, 8);
    for (int64_t i = 0; i < n; i++) {
        centers[i] = cliques[i * (k + 1)] = i;
        memcpy(cliques + i * (k + 1) + 1, s->indices + i * k, (size_t)k * 8);
    }
    for (int64_t i = 0; i < LANDMARKS * D; i++) projection[i] = number((uint64_t)i);
    for (int64_t i = 0; i < n * LANDMARKS; i++) geodesics[i] += 1;
    for (int index = 0; index < 2; index++)
        for (int mutual = 0; mutual < 2; mutual++)
            RACE(TITLE("graph"), values, most * (int64_t)sizeof(REAL), {
                mf_graph *made = NULL;
                status = kernels->NAME(graph_begin)(s->distances, s->indices, n, k, mutual, index, &made, &entries,
                                                    &bad, run);
                if (status == MF_OK && bad < 0)
                    status = kernels->NAME(graph_fill)(made, MF_HEAT, 1, indptr, columns, values, run);
                memset(values + entries, 0, (size_t)(most - entries) * sizeof(REAL));
                kernels->graph_free(made);
            });
    REAL *weights = room(entries, sizeof(REAL)), *filled = room(entries + n, sizeof(REAL));
    int64_t *out_indptr = room(n + 1, 8), *out_columns = room(entries + n, 8);
    memcpy(weights, values, (size_t)entries * sizeof(REAL));
    RACE(TITLE("laplacian"), filled, (entries + n) * (int64_t)sizeof(REAL), {
        int flaws = 0;
        status = kernels->NAME(laplacian_begin)(1, n, entries, indptr, columns, weights, degrees, out_indptr, &flaws,
                                                run);
        if (flaws) fail(TITLE("laplacian"), "found flaws in a good graph");
        if (status == MF_OK)
            status = kernels->NAME(laplacian_fill)(1, n, indptr, columns, weights, degrees, out_indptr, MF_SYMMETRIC,
                                                   out_columns, filled, run);
    });
    RACE(TITLE("heat_mean"), wide, n * D * 8,
         status = kernels->NAME(heat_mean)(s->wide, s->indices, n, k, y, D, 1, 0, wide, run));
    RACE(TITLE("barycenter_weights"), out, n * k * (int64_t)sizeof(REAL),
         status = kernels->NAME(barycenter_weights)(s->x, NULL, n, p, s->indices, k, 1e-3, out, run));
    RACE(TITLE("reconstruct"), out, n * D * (int64_t)sizeof(REAL),
         status = kernels->NAME(reconstruct)(s->x, s->x, n, p, s->indices, k, 1e-3, y, D, out, run));
    RACE(TITLE("geodesic_rows"), wide, n * LANDMARKS * 8,
         status = kernels->NAME(geodesic_rows)(s->wide, s->indices, n, k, geodesics, LANDMARKS, 0, wide, run));
    RACE(TITLE("landmark_map"), wide, n * D * 8,
         status = kernels->NAME(landmark_map)(s->wide, s->indices, n, k, geodesics, LANDMARKS, mean, projection, D,
                                              offset, wide, run));
    for (int method = 0; method < 4; method++) {
        static const char *const titles[] = {TITLE("lle"), TITLE("alignment"), TITLE("hessian"), TITLE("modified")};
        RACE(titles[method], wide, n * n * 8, {
            mf_blocks *made = NULL;
            if (method == 0)
                status = kernels->NAME(lle_begin)(s->x, n, p, s->indices, k, 1e-3, &made, &entries, &bad, run);
            else if (method == 1)
                status = kernels->NAME(alignment_begin)(s->x, n, p, cliques, n, k + 1, 2, 1e-3, &made, &entries, &bad,
                                                        run);
            else if (method == 2)
                status = kernels->NAME(hessian_begin)(s->x, n, p, s->indices, n, k, 2, &made, &entries, &bad, run);
            else
                status = kernels->NAME(modified_begin)(s->x, n, p, s->indices, centers, n, k, 2, 1e-3, 1e-12, &made,
                                                       &entries, &bad, run);
            int64_t *made_indptr = malloc((size_t)(n + 1) * 8);
            int64_t *made_columns = malloc((size_t)(entries + 1) * 8);
            if (status == MF_OK && bad < 0)
                status = kernels->blocks_fill(made, 1, made_indptr, made_columns, wide, run);
            memset(wide + entries, 0, (size_t)(n * n - entries) * 8);
            free(made_indptr), free(made_columns);
            kernels->blocks_free(made);
        });
    }
    if (bad >= 0) fail(TITLE("local methods"), "refused good lists");
}

static void NAME(codes)(void)
{
    enum { N = 24, ATOMS = 50, P = 20 };
    REAL *d = NAME(rows)(ATOMS, P, 17), *x = NAME(rows)(N, P, 18), *errors = room(N * P, sizeof(REAL));
    int64_t *counts = room(N, 8), *indices = room(N * ATOMS, 8);
    void **blocks = room(N, sizeof(void *));
    double *values = room(N * ATOMS, 8);
    signed char *states = room(N, 1);
    RACE(TITLE("l1_code"), values, N * ATOMS * 8, {
        mf_prepared *made = NULL;
        int64_t total = 0;
        status = kernels->NAME(l1_prepare)(d, ATOMS, P, N, &made, run);
        if (status == MF_OK)
            status = kernels->NAME(l1_code)(made, x, N, 0, 1e-9, NULL, counts, blocks, errors, states, run);
        if (status == MF_OK) kernels->l1_collect(blocks, counts, N, indices, values);
        for (int i = 0; i < N; i++) total += counts[i];
        memset(values + total, 0, (size_t)(N * ATOMS - total) * 8);
        mf_prepared_free(made);
    });
}

static void NAME(all)(void)
{
    enum { N = 180, P = 3, K = 8 };
    NAME(dense)();
    NAME(clusters)();
    NAME(codes)();
    NAME(neighborhood) s = NAME(neighbors)(N, P, K);
    NAME(graphs)(&s, N, P, K);
    NAME(neighborhood) deep = NAME(neighbors)(N, 23, 12);
    NAME(graphs)(&deep, N, 23, 12);
}
