/* modified_begin: blocks of modified locally linear embedding (Zhang and Wang 2006). A point is rebuilt from its k
 * neighbours in s ways at once: with the singular vectors V of its differences to them that belong to the s smallest
 * values, the barycentric weights w and a = |V'1| / sqrt(s), the weights are the columns of V H + (1 - a) w 1' where
 * the reflection H brings V'1 to a 1. A block, on the point and its neighbours, is the sum over these ways of
 * residuals, and needs neither V nor H: H turns the columns so that one of them is v = V V'1 / |V'1| and the others
 * enter by V V' - v v' alone. With the leading singular vectors U, V V' = I - U U'; so the block is
 *     f f' - v v' - U U' + I, with f = v + (1 - a) sqrt(s) w, and -sqrt(s) at the point, where v, U and I are zero.
 * Accumulator: double. Workspace: local_space, one per thread, and the singular values of all points.
 * Template. Needs: local/modified_lle.h, local/neighborhoods_impl.h. */

/* Singular vectors into the factors, the squares of their values into the plan's. */
static void NAME(modified_work)(local_space *s, const REAL *x, const NAME(local_batch) *batch, const local_plan *plan,
                                mf_blocks *b)
{
    int64_t k = s->k, count = plan->dim;
    NAME(local_singular)(s, x, batch, count, 0);
    for (int lane = 0; lane < batch->count; lane++) {
        int64_t i = batch->first + lane;
        double *factor = b->factors + i * b->rank * (k + 1), *u = factor + MODIFIED_ROWS * (k + 1);
        for (int64_t row = 0; row < b->rank; row++) factor[row * (k + 1)] = 0;
        for (int64_t j = 0; j < count; j++) {
            plan->values[i * count + j] = s->values[j][lane];
            for (int64_t a = 0; a < k; a++) u[j * (k + 1) + 1 + a] = s->u[j * k + a][lane];
        }
    }
}

static mf_status NAME(modified_begin)(const REAL *x, int64_t n, int64_t p, const int64_t *neighbors,
                                      const int64_t *centers, int64_t count, int64_t k, int64_t dim, double reg,
                                      double tol, mf_blocks **blocks, int64_t *entries, int64_t *bad, mf_run *run)
{
    enum { PIECE = MF_LIMIT(64, 2) };
    int64_t vectors = mf_min(k, p), size = (MODIFIED_ROWS + vectors) * (k + 1);
    mf_status status = clique_blocks_new(n, count, k + 1, MODIFIED_ROWS + vectors, blocks);
    mf_blocks *b = *blocks;
    if (status != MF_OK) return status;
    b->sign = -1, b->added = 1, b->diagonal = 1, b->apart = 1;
    for (int64_t i = 0; i < count; i++) {
        b->members[i * (k + 1)] = centers[i];
        memcpy(b->members + i * (k + 1) + 1, neighbors + i * k, (size_t)k * sizeof(int64_t));
    }
    status = clique_blocks_count(b, bad, run);
    *entries = b->entries;
    if (status != MF_OK || *bad >= 0) return status;
    double *values = mf_alloc(count * vectors, sizeof(double)), *ratios = mf_alloc(count, sizeof(double));
    double *weights = mf_alloc(k * run->n_threads, sizeof(double));
    status = values && ratios && weights ? MF_OK : MF_NO_MEMORY;
    if (status == MF_OK) {
        local_plan plan = {.dim = vectors, .values = values};
        status = NAME(local_each)(x, p, neighbors, centers, count, k, vectors, NAME(modified_work), &plan, b, run);
    }
    if (status == MF_OK) {
        for (int64_t i = 0; i < count; i++) ratios[i] = modified_lle_ratio(values + i * vectors, vectors, dim);
        double eta = modified_lle_median(ratios, count);
        reg = fmin(fmax(reg, 1e-14), 1e100);
#pragma omp parallel for schedule(dynamic) num_threads(run->n_threads)
        for (int64_t block = 0; block < mf_ceil_div(count, PIECE); block++) {
            if (mf_poll(run)) continue;
            for (int64_t i = block * PIECE; i < mf_min((block + 1) * PIECE, count); i++)
                modified_lle_factor(values + i * vectors, vectors, k, eta, reg, tol, b->factors + i * size,
                                    weights + omp_get_thread_num() * k);
        }
        if (run->stop) status = MF_INTERRUPTED;
    }
    mf_release(values);
    mf_release(ratios);
    mf_release(weights);
    return status;
}
