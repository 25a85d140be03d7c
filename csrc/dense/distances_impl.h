/* sq_distances and gaussian: tiles written to a matrix.
 * Accumulator and order: those of the tile; the exponential is taken in the dtype. Without y the result is exactly
 * symmetric. Workspace: all columns packed, and a block of rows per thread.
 * Template. Needs: base/exp.h, dense/packed_impl.h. */

typedef struct {
    const REAL *x, *y, *x_norms, *y_norms;
    int64_t n, m, p, row0, column0;
    REAL inv_sigma2, *out;
    int symmetric;
} NAME(distance_block);

MF_INLINE void NAME(distance_done)(void *context, int64_t row, int64_t column, NAME(acc) *t)
{
    const NAME(distance_block) *b = context;
    int64_t i0 = b->row0 + row, j0 = b->column0 + column;
    if (b->symmetric && j0 + NR <= i0) return;
    int rows = (int)mf_min(MR, b->n - i0), columns = (int)mf_min(NR, b->m - j0);
    NAME(finish_distances)(t, b->x + i0 * b->p, b->x_norms + row, rows, b->y + j0 * b->p, b->y_norms + column, columns,
                           b->p);
    if (b->inv_sigma2 > 0)
        for (int i = 0; i < MR; i++) {
            t->c[i][0] = NAME(exp)(t->c[i][0] * -b->inv_sigma2);
            t->c[i][1] = NAME(exp)(t->c[i][1] * -b->inv_sigma2);
        }
    int mirrored = b->symmetric, diagonal = mirrored && j0 < i0 + MR; /* of a tile on the diagonal the upper part */
    if (rows == MR && columns == NR && !diagonal) {
        for (int i = 0; i < MR; i++) {
            VOP(store)(b->out + (i0 + i) * b->m + j0, t->c[i][0]);
            VOP(store)(b->out + (i0 + i) * b->m + j0 + LANES, t->c[i][1]);
        }
    } else {
        for (int i = 0; i < rows; i++)
            for (int j = diagonal ? (int)mf_max(0, i0 + i - j0) : 0; j < columns; j++)
                b->out[(i0 + i) * b->m + j0 + j] = t->c[i][j / LANES][j % LANES];
    }
    for (int j = 0; mirrored && j < columns; j++)
        for (int i = 0; i < rows && i0 + i < j0 + j; i++)
            b->out[(j0 + j) * b->m + i0 + i] = t->c[i][j / LANES][j % LANES];
}

/* The same for few rows x. */
static mf_status NAME(sq_distances_few)(const REAL *x, int64_t n, const REAL *y, int64_t m, int64_t p, REAL inv_sigma2,
                                        REAL *out, mf_run *run)
{
    NAME(few_rows) rows;
    if (!NAME(few_rows_open)(&rows, x, n, y, m, p)) return MF_NO_MEMORY;
    int64_t blocks = mf_ceil_div(m, FEW_ROWS_BLOCK);
#pragma omp parallel for schedule(static) num_threads(run->n_threads) if (run->n_threads > 1)
    for (int64_t task = 0; task < n * blocks; task++) {
        if (mf_poll(run)) continue;
        int64_t i = task / blocks, begin = task % blocks * FEW_ROWS_BLOCK;
        int64_t end = mf_min(begin + FEW_ROWS_BLOCK, m);
        NAME(few_rows_distances)(&rows, x, i, y, m, begin, end, inv_sigma2, out + i * m + begin);
    }
    mf_release(rows.memory);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

/* The same against packed columns; `symmetric`: they are the rows x. */
static mf_status NAME(sq_distances_against)(const NAME(packed) *s, const REAL *x, int64_t n, int symmetric,
                                            REAL inv_sigma2, REAL *out, mf_run *run)
{
    int64_t m = s->m, p = s->p;
    /* Where writing is a good part of the work, rows are written from left to right, and a chunk of columns rests in
     * L2 instead of L3; with very few features mirroring half of the matrix does not pay either. */
    int narrow = p <= 128;
    int64_t panels = mf_ceil_div(m, NR), block = NAME(block_rows)(p), chunk = NAME(chunk_columns)(p) / NR;
    if (narrow) chunk = mf_min(512, (int64_t)(192 * 1024 / sizeof(REAL)) / (p * NR));
    int64_t blocks = mf_ceil_div(n, block), tasks = blocks * mf_ceil_div(panels, chunk);
    int no_memory = 0;
#pragma omp parallel num_threads(run->n_threads) if (run->n_threads > 1)
    {
        REAL *rows = mf_alloc(block * p, sizeof(REAL)), *row_norms = mf_alloc(block, sizeof(REAL));
        NAME(acc) *partial = mf_alloc(p > PANEL_STEP ? block / MR * SWEEP_PANELS : 0, sizeof(NAME(acc)));
        int ready = rows && row_norms && partial;
        if (!ready) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            if (!ready || mf_poll(run)) continue;
            int64_t row0 = task % blocks * block, size = mf_min(block, n - row0);
            int64_t j0 = task / blocks * chunk, j1 = mf_min(j0 + chunk, panels);
            if (symmetric) j0 = mf_max(j0, row0 / NR);
            if (j0 >= j1) continue;
            NAME(pack_rows)(x + row0 * p, size, p, s->shift, rows, row_norms);
            int64_t group = narrow ? MR : block;
            for (int64_t r0 = 0; r0 < size; r0 += group) {
                NAME(distance_block) b = {x, s->rows, row_norms + r0, s->norms + j0 * NR, n, m, p, row0 + r0, j0 * NR,
                                          inv_sigma2, out, symmetric};
                NAME(sweep)(rows + r0 * p, mf_ceil_div(mf_min(group, size - r0), MR), s->panels + j0 * NR * p, j1 - j0,
                            p, 0, partial, NAME(distance_done), &b);
            }
        }
        mf_release(rows);
        mf_release(row_norms);
        mf_release(partial);
    }
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

static mf_status NAME(sq_distances)(const REAL *x, int64_t n, const REAL *y, int64_t m, int64_t p, REAL inv_sigma2,
                                    REAL *out, mf_run *run)
{
    int symmetric = y == NULL && p > 16;
    if (!y) y = x, m = n;
    if (n == 0 || m == 0) return MF_OK;
    run->n_threads = mf_worth_threads(n * m * p, run);
    if (NAME(are_few)(n, m)) return NAME(sq_distances_few)(x, n, y, m, p, inv_sigma2, out, run);
    NAME(packed) s;
    mf_status status = NAME(packed_open)(&s, y, m, p, NR, run);
    if (status == MF_OK) status = NAME(sq_distances_against)(&s, x, n, symmetric, inv_sigma2, out, run);
    mf_release(s.memory);
    return status;
}

/* The prepared operand: columns packed for good. */
static mf_status NAME(distances_prepare)(const REAL *y, int64_t m, int64_t p, mf_prepared **made, mf_run *run)
{
    NAME(packed) *s = mf_alloc(1, sizeof(*s));
    *made = (mf_prepared *)s;
    return s ? NAME(packed_open)(s, y, m, p, NR, run) : MF_NO_MEMORY;
}

static mf_status NAME(distances_to)(const mf_prepared *made, const REAL *x, int64_t n, REAL inv_sigma2, REAL *out,
                                    mf_run *run)
{
    const NAME(packed) *s = (const NAME(packed) *)made;
    NAME(few_rows) few;
    int64_t m = s->m, blocks = mf_ceil_div(m, FEW_ROWS_BLOCK);
    run->n_threads = mf_worth_threads(n * m * s->p, run);
    if (n > FEW_ROWS_MOST) return NAME(sq_distances_against)(s, x, n, 0, inv_sigma2, out, run);
    if (!NAME(few_rows_against)(&few, s, x, n)) return MF_NO_MEMORY;
#pragma omp parallel for schedule(static) num_threads(run->n_threads) if (run->n_threads > 1)
    for (int64_t task = 0; task < n * blocks; task++) {
        if (mf_poll(run)) continue;
        REAL part[FEW_ROWS_BLOCK + NR + LANES];
        int64_t i = task / blocks, begin = task % blocks * FEW_ROWS_BLOCK;
        int64_t end = mf_min(begin + FEW_ROWS_BLOCK, m);
        NAME(packed_distances)(s, &few, x, i, begin, end, inv_sigma2, part);
        memcpy(out + i * m + begin, part, (size_t)(end - begin) * sizeof(REAL));
    }
    mf_release(few.memory);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}
