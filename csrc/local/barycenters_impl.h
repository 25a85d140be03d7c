/* barycenter_weights, reconstruct and lle_begin: weights that reconstruct a point from its neighbours.
 * Accumulator: double, in the order of the neighbours. Workspace: local_space, one per thread.
 * Template. Needs: local/neighborhoods_impl.h. */

/* Barycentric weights of m rows in their neighbours: written to `weights`, or applied to the rows of y, or, after a 1
 * for the row itself and with opposite sign, to `factors`; whichever is given. */
static mf_status NAME(local_weights)(const REAL *x, const REAL *queries, int64_t m, int64_t p, const int64_t *neighbors,
                                     int64_t k, double reg, REAL *weights, const REAL *y, int64_t d, REAL *out,
                                     double *factors, mf_run *run)
{
    int64_t piece = local_piece(k, p) * PROBLEMS;
    int no_memory = 0;
    int threads = mf_worth_threads(m * k * k * (k + p), run);
    reg = fmin(fmax(reg, 1e-14), 1e100);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        local_space s;
        int ready = local_open(&s, k, p, k, 0);
        if (!ready) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < mf_ceil_div(m, piece); block++) {
            if (mf_poll(run) || !ready) continue;
            int64_t end = mf_min((block + 1) * piece, m);
            for (int64_t i0 = block * piece; i0 < end; i0 += PROBLEMS) {
                const int64_t *lists[MF_VBYTES / sizeof(double)];
                const REAL *origins[MF_VBYTES / sizeof(double)];
                for (int lane = 0; lane < PROBLEMS; lane++) {
                    int64_t i = mf_min(i0 + lane, end - 1);
                    lists[lane] = neighbors + i * k;
                    origins[lane] = (queries ? queries : x) + i * p;
                }
                vf64 trace = NAME(local_gram)(&s, x, lists, origins, 0, 0), *w = s.weights;
                lanes_normalize(s.gram, s.rows, k, trace);
                lanes_barycenter(s.gram, s.rows, k, reg, s.work, w);
                for (int lane = 0; lane < mf_min(PROBLEMS, end - i0); lane++) {
                    int64_t i = i0 + lane;
                    if (weights)
                        for (int64_t a = 0; a < k; a++) weights[i * k + a] = (REAL)w[a][lane];
                    if (factors) {
                        factors[i * (k + 1)] = 1;
                        for (int64_t a = 0; a < k; a++) factors[i * (k + 1) + 1 + a] = -w[a][lane];
                    }
                    for (int64_t c = 0; out && c < d; c++) {
                        double sum = 0;
                        for (int64_t a = 0; a < k; a++)
                            sum = f64_fma(w[a][lane], (double)y[lists[lane][a] * d + c], sum);
                        out[i * d + c] = (REAL)sum;
                    }
                }
            }
        }
        mf_release(s.memory);
    }
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

static mf_status NAME(barycenter_weights)(const REAL *x, const REAL *queries, int64_t m, int64_t p,
                                          const int64_t *neighbors, int64_t k, double reg, REAL *weights, mf_run *run)
{
    return NAME(local_weights)(x, queries, m, p, neighbors, k, reg, weights, NULL, 0, NULL, NULL, run);
}

static mf_status NAME(reconstruct)(const REAL *x, const REAL *queries, int64_t m, int64_t p, const int64_t *neighbors,
                                   int64_t k, double reg, const REAL *y, int64_t d, REAL *out, mf_run *run)
{
    return NAME(local_weights)(x, queries, m, p, neighbors, k, reg, NULL, y, d, out, NULL, run);
}

static mf_status NAME(lle_begin)(const REAL *x, int64_t n, int64_t p, const int64_t *neighbors, int64_t k, double reg,
                                 mf_blocks **blocks, int64_t *entries, int64_t *bad, mf_run *run)
{
    mf_status status = clique_blocks_new(n, n, k + 1, 1, blocks);
    mf_blocks *b = *blocks;
    if (status != MF_OK) return status;
    b->sign = 1;
    for (int64_t i = 0; i < n; i++) {
        b->members[i * (k + 1)] = i;
        memcpy(b->members + i * (k + 1) + 1, neighbors + i * k, (size_t)k * sizeof(int64_t));
    }
    status = clique_blocks_count(b, bad, run);
    *entries = b->entries;
    if (status != MF_OK || *bad >= 0) return status;
    return NAME(local_weights)(x, NULL, n, p, neighbors, k, reg, NULL, NULL, 0, NULL, b->factors, run);
}
