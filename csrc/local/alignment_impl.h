/* alignment_begin: how a clique departs from a linear space of `dim` dimensions (LTSA, local regression).
 * Accumulator: double. Workspace: local_space, one per thread.
 * Template. Needs: local/neighborhoods_impl.h. */

/* The leading left singular vectors of centred cliques, each times s / sqrt(s^2 + gamma). */
static void NAME(alignment_work)(local_space *s, const REAL *x, const NAME(local_batch) *batch, const local_plan *plan,
                                 mf_blocks *b)
{
    int64_t k = s->k, dim = plan->dim;
    NAME(local_singular)(s, x, batch, dim, 1);
    vf64 ridge;
    for (int lane = 0; lane < PROBLEMS; lane++) {
        double scale = s->half[lane] * s->scale[lane];
        ridge[lane] = plan->gamma * scale * scale;
    }
    for (int64_t j = 0; plan->gamma > 0 && j < dim; j++) {
        vf64 value = s->values[j];
        vf64 factor = vf64_sqrt(value / (vf64_select(s->null[j], vf64_set(1), value) + ridge));
        for (int64_t a = 0; a < k; a++) s->u[j * k + a] *= factor;
    }
    for (int lane = 0; lane < batch->count; lane++) {
        double *factor = b->factors + (batch->first + lane) * dim * k;
        for (int64_t e = 0; e < dim * k; e++) factor[e] = s->u[e][lane];
    }
}

static mf_status NAME(alignment_begin)(const REAL *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                       int64_t k, int64_t dim, double gamma, mf_blocks **blocks, int64_t *entries,
                                       int64_t *bad, mf_run *run)
{
    mf_status status = clique_blocks_new(n, count, k, dim, blocks);
    mf_blocks *b = *blocks;
    if (status != MF_OK) return status;
    b->offset = -1 / (double)k, b->sign = -1, b->diagonal = 1;
    memcpy(b->members, cliques, (size_t)(count * k) * sizeof(int64_t));
    status = clique_blocks_count(b, bad, run);
    *entries = b->entries;
    if (status != MF_OK || *bad >= 0) return status;
    local_plan plan = {.dim = dim, .gamma = gamma};
    return NAME(local_each)(x, p, cliques, NULL, count, k, dim, NAME(alignment_work), &plan, b, run);
}
