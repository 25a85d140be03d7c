/* hessian_begin: blocks of Hessian eigenmaps (Donoho and Grimes 2003), which say how far functions on a clique are
 * from affine ones to second order. With the `dim` leading singular vectors u of the centred clique, the columns 1,
 * u_i and u_i u_j are made orthonormal in this order; those of the products are the rows of a block's factor. Their
 * sums are zero, as they are orthogonal to the first.
 * Accumulator: double. Workspace: local_space, one per thread.
 * Template. Needs: local/hessian.h, local/neighborhoods_impl.h. */

static void NAME(hessian_work)(local_space *s, const REAL *x, const NAME(local_batch) *batch, const local_plan *plan,
                               mf_blocks *b)
{
    NAME(local_singular)(s, x, batch, plan->dim, 1);
    hessian_products(s->u, s->k, plan->dim);
    const vf64 *products = s->u + plan->dim * s->k;
    int64_t size = b->rank * s->k;
    for (int lane = 0; lane < batch->count; lane++) {
        double *factor = b->factors + (batch->first + lane) * size;
        for (int64_t e = 0; e < size; e++) factor[e] = products[e][lane];
    }
}

static mf_status NAME(hessian_begin)(const REAL *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                     int64_t k, int64_t dim, mf_blocks **blocks, int64_t *entries, int64_t *bad,
                                     mf_run *run)
{
    int64_t products = HESSIAN_PRODUCTS(dim);
    mf_status status = clique_blocks_new(n, count, k, products, blocks);
    mf_blocks *b = *blocks;
    if (status != MF_OK) return status;
    b->sign = 1;
    memcpy(b->members, cliques, (size_t)(count * k) * sizeof(int64_t));
    status = clique_blocks_count(b, bad, run);
    *entries = b->entries;
    if (status != MF_OK || *bad >= 0) return status;
    local_plan plan = {.dim = dim};
    return NAME(local_each)(x, p, cliques, NULL, count, k, dim + products, NAME(hessian_work), &plan, b, run);
}
