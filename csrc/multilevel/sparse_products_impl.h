/* A graph Laplacian, or a plain sparse matrix, times a block of vectors. Row i of the product with a Laplacian is the
 * sum of w_ij (x_i - x_j), taken as differences, so that smooth vectors lose nothing to cancellation and constant ones
 * give exactly 0. Blocks are row-major, their width a multiple of 4.
 * Accumulator: the dtype, over the entries of the row in order. Workspace: none.
 * Template. Needs: base/dtype_impl.h, multilevel/sparse_products.h (mf_spmm_use), multilevel/quads.h. */

#undef QUAD
#define QUAD NAME(quad)

typedef struct NAME(spmm_args) {
    int64_t n, width;
    const int64_t *start;
    const int32_t *column;
    const REAL *weight, *x, *r;
    const double *inverse_diagonal;
    REAL *direction, *out, keep, gain;
} NAME(spmm_args);

MF_INLINE void NAME(spmm_row)(const NAME(spmm_args) *a, int64_t i, int64_t offset, int quads, mf_spmm_use use)
{
    const REAL *own = a->x + i * a->width + offset;
    QUAD sum[4], center[4];
    for (int q = 0; q < quads; q++) {
        sum[q] = (QUAD){0};
        center[q] = *(const QUAD *)(own + 4 * q);
    }
    for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
        const REAL *other = a->x + a->column[e] * a->width + offset;
        REAL weight = a->weight[e];
        for (int q = 0; q < quads; q++) sum[q] += weight * (center[q] - *(const QUAD *)(other + 4 * q));
    }
    int64_t at = i * a->width + offset;
    for (int q = 0; q < quads; q++, at += 4) {
        if (use == MF_SPMM_PRODUCT) {
            *(QUAD *)(a->out + at) = sum[q];
        } else {
            QUAD rest = *(const QUAD *)(a->r + at) - sum[q];
            if (use == MF_SPMM_RESIDUAL) {
                *(QUAD *)(a->out + at) = rest;
            } else {
                QUAD direction = a->gain * (REAL)a->inverse_diagonal[i] * rest;
                if (a->keep != 0) direction += a->keep * *(const QUAD *)(a->direction + at);
                *(QUAD *)(a->direction + at) = direction;
                *(QUAD *)(a->out + at) = center[q] + direction;
            }
        }
    }
}

MF_INLINE void NAME(spmm_as)(const NAME(spmm_args) *a, mf_spmm_use use, mf_run *run)
{
    enum { BLOCK = MF_LIMIT(512, 3) };
    int threads = mf_worth_threads(a->start[a->n] * a->width, run);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t block = 0; block < mf_ceil_div(a->n, BLOCK); block++) {
        if (mf_poll(run)) continue;
        int64_t end = mf_min((block + 1) * BLOCK, a->n);
        for (int64_t offset = 0; offset < a->width; offset += 16) {
            int64_t quads = mf_min((a->width - offset) / 4, 4);
#define ROWS(QUADS) for (int64_t i = block * BLOCK; i < end; i++) NAME(spmm_row)(a, i, offset, QUADS, use)
            if (quads == 1) ROWS(1);
            else if (quads == 2) ROWS(2);
            else if (quads == 3) ROWS(3);
            else ROWS(4);
#undef ROWS
        }
    }
}

static void NAME(spmm)(const NAME(spmm_args) *a, mf_spmm_use use, mf_run *run)
{
    if (use == MF_SPMM_PRODUCT) NAME(spmm_as)(a, MF_SPMM_PRODUCT, run);
    else if (use == MF_SPMM_RESIDUAL) NAME(spmm_as)(a, MF_SPMM_RESIDUAL, run);
    else NAME(spmm_as)(a, MF_SPMM_STEP, run);
}

/* out = m x for a plain sparse matrix, or out += m x. */
static void NAME(sparse_apply)(int64_t n, const int64_t *start, const int32_t *column, const REAL *value, const REAL *x,
                               int64_t width, int add, REAL *out, mf_run *run)
{
    enum { BLOCK = MF_LIMIT(512, 3) };
    int threads = mf_worth_threads(start[n] * width, run);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t block = 0; block < mf_ceil_div(n, BLOCK); block++) {
        if (mf_poll(run)) continue;
        for (int64_t i = block * BLOCK; i < mf_min((block + 1) * BLOCK, n); i++) {
            for (int64_t offset = 0; offset < width; offset += 4) {
                REAL *to = out + i * width + offset;
                QUAD sum = add ? *(QUAD *)to : (QUAD){0};
                for (int64_t e = start[i]; e < start[i + 1]; e++)
                    sum += value[e] * *(const QUAD *)(x + column[e] * width + offset);
                *(QUAD *)to = sum;
            }
        }
    }
}
