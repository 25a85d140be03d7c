/* rbf_apply: out = exp(-|x - c|^2 / sigma^2) coef, without a kernel matrix. Samples are the columns of the tile,
 * centers its rows; kernel values go from the exponential straight into the sums over centers.
 * Accumulator: the dtype inside a block of centers, double over the blocks. Order: by the number of the center,
 * always.
 * Workspace: all centers packed, and a block of samples per thread.
 * Template. Needs: base/exp.h, dense/few_rows_impl.h. */

#undef CENTER_BLOCK
#define CENTER_BLOCK FEW_ROWS_BLOCK

typedef struct {
    const REAL *x, *centers, *center_norms, *x_norms, *coef;
    int64_t rows, m, p, d;
    REAL inv_sigma2, *sums;
} NAME(rbf_block);

/* sums[column panel][d][NR] += kernel of the tile times coef, packed as [center panel][d][MR]. */
MF_INLINE void NAME(rbf_done)(void *context, int64_t center, int64_t column, NAME(acc) *t)
{
    const NAME(rbf_block) *b = context;
    NAME(finish_distances)(t, b->centers + center * b->p, b->center_norms + center, b->m - center,
                           b->x + column * b->p, b->x_norms + column, b->rows - column, b->p);
    V e[MR][2];
    for (int i = 0; i < MR; i++) {
        e[i][0] = NAME(exp)(t->c[i][0] * -b->inv_sigma2);
        e[i][1] = NAME(exp)(t->c[i][1] * -b->inv_sigma2);
    }
    REAL *sum = b->sums + column * b->d;
    const REAL *coef = b->coef + center * b->d;
    for (int64_t q = 0; q < b->d; q++, sum += NR, coef += MR) {
        V s0 = VOP(load)(sum), s1 = VOP(load)(sum + LANES);
        for (int i = 0; i < MR; i++) {
            V w = VOP(set)(coef[i]);
            s0 = VOP(fma)(e[i][0], w, s0);
            s1 = VOP(fma)(e[i][1], w, s1);
        }
        VOP(store)(sum, s0);
        VOP(store)(sum + LANES, s1);
    }
}

/* sum[q] = sum_j e[j] coef[j, q] over `count` of the `left` rows of coef that follow, in order. */
static void NAME(combine)(const REAL *e, int64_t count, const REAL *coef, int64_t left, int64_t d, REAL *sum)
{
    enum { WIDTH = 4 * LANES };
    for (int64_t q = 0; q < d; q += WIDTH) {
        V s[4] = {{0}};
        REAL row[WIDTH] = {0};
        /* Rows from which a whole WIDTH may be read, on into the next ones; the last few are copied first. */
        int64_t whole = mf_max(0, mf_min(count, left - mf_ceil_div(q + WIDTH, d) + 1)), j = 0;
        for (; j < whole; j++)
            for (int v = 0; v < 4; v++) s[v] = VOP(fma)(VOP(set)(e[j]), VOP(load)(coef + j * d + q + v * LANES), s[v]);
        for (; j < count; j++) {
            memcpy(row, coef + j * d + q, (size_t)mf_min(WIDTH, d - q) * sizeof(REAL));
            for (int v = 0; v < 4; v++) s[v] = VOP(fma)(VOP(set)(e[j]), VOP(load)(row + v * LANES), s[v]);
        }
        for (int v = 0; v < 4; v++) VOP(store)(row + v * LANES, s[v]);
        memcpy(sum + q, row, (size_t)mf_min(WIDTH, d - q) * sizeof(REAL));
    }
}

/* The same for few rows x. */
static mf_status NAME(rbf_apply_few)(const REAL *x, int64_t n, const REAL *centers, int64_t m, int64_t p,
                                     const REAL *coef, int64_t d, REAL inv_sigma2, REAL *out, mf_run *run)
{
    NAME(few_rows) rows;
    int64_t blocks = mf_ceil_div(m, CENTER_BLOCK);
    REAL *sums = mf_alloc(n * blocks * d, sizeof(REAL));
    if (!NAME(few_rows_open)(&rows, x, n, centers, m, p) || !sums) {
        mf_release(rows.memory);
        mf_release(sums);
        return MF_NO_MEMORY;
    }
#pragma omp parallel for schedule(static) num_threads(run->n_threads) if (run->n_threads > 1)
    for (int64_t task = 0; task < n * blocks; task++) {
        if (mf_poll(run)) continue;
        int64_t i = task / blocks, c = task % blocks * CENTER_BLOCK, end = mf_min(c + CENTER_BLOCK, m);
        REAL e[CENTER_BLOCK];
        NAME(few_rows_distances)(&rows, x, i, centers, m, c, end, inv_sigma2, e);
        NAME(combine)(e, end - c, coef + c * d, m - c, d, sums + task * d);
    }
    for (int64_t i = 0; i < n && !run->stop; i++)
        for (int64_t q = 0; q < d; q++) {
            double total = 0;
            for (int64_t b = 0; b < blocks; b++) total += sums[(i * blocks + b) * d + q];
            out[i * d + q] = (REAL)total;
        }
    mf_release(rows.memory);
    mf_release(sums);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

static mf_status NAME(rbf_apply)(const REAL *x, int64_t n, const REAL *centers, int64_t m, int64_t p, const REAL *coef,
                          int64_t d, REAL inv_sigma2, REAL *out, mf_run *run)
{
    if (n == 0 || d == 0) return MF_OK;
    run->n_threads = mf_worth_threads(n * m * (p + d), run);
    if (NAME(are_few)(n, m)) return NAME(rbf_apply_few)(x, n, centers, m, p, coef, d, inv_sigma2, out, run);
    /* Samples per task: they rest in L3 while blocks of centers pass through L2. */
    int64_t block = mf_min(mf_min(NAME(chunk_columns)(p) / 2, 256), mf_round_up(mf_ceil_div(n, run->n_threads), NR));
    block = mf_round_up(block, NR);
    int64_t step = mf_min(NAME(block_rows)(p), CENTER_BLOCK), center_panels = mf_ceil_div(m, MR);
    int64_t tasks = mf_ceil_div(n, block);
    int no_memory = 0;
    REAL *shift = mf_alloc(p, sizeof(REAL)), *rows = mf_alloc(center_panels * MR * p, sizeof(REAL));
    REAL *norms = mf_alloc(center_panels * MR, sizeof(REAL));
    REAL *packed_coef = mf_alloc(center_panels * MR * d, sizeof(REAL));
    if (shift && rows && norms && packed_coef) {
        NAME(find_shift)(centers, m, p, shift);
        for (int64_t i = 0; i < center_panels; i++)
            for (int64_t q = 0; q < d; q++)
                for (int64_t r = 0; r < MR; r++)
                    packed_coef[(i * d + q) * MR + r] = i * MR + r < m ? coef[(i * MR + r) * d + q] : 0;
#pragma omp parallel num_threads(run->n_threads)
        {
            REAL *columns = mf_alloc(block * p, sizeof(REAL)), *x_norms = mf_alloc(block, sizeof(REAL));
            REAL *sums = mf_alloc(block * d, sizeof(REAL));
            double *totals = mf_alloc(block * d, sizeof(double));
            NAME(acc) *partial = mf_alloc(p > PANEL_STEP ? CENTER_BLOCK / MR * SWEEP_PANELS : 0, sizeof(NAME(acc)));
            int ready = columns && x_norms && sums && totals && partial;
            if (!ready) {
#pragma omp atomic write
                no_memory = 1;
                mf_stop(run);
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < center_panels; i++)
                NAME(pack_rows)(centers + i * MR * p, mf_min(MR, m - i * MR), p, shift, rows + i * MR * p,
                                norms + i * MR);
#pragma omp for schedule(dynamic)
            for (int64_t task = 0; task < tasks; task++) {
                if (!ready) continue;
                int64_t row0 = task * block, size = mf_min(block, n - row0), column_panels = mf_ceil_div(size, NR);
                NAME(pack_columns)(x + row0 * p, size, p, shift, columns, x_norms);
                memset(totals, 0, (size_t)(block * d) * sizeof(double));
                for (int64_t c0 = 0; c0 < m && !mf_poll(run); c0 += CENTER_BLOCK) {
                    memset(sums, 0, (size_t)(block * d) * sizeof(REAL));
                    int64_t end = mf_min(c0 + CENTER_BLOCK, m);
                    for (int64_t c = c0; c < end; c += step) {
                        NAME(rbf_block) b = {x + row0 * p, centers + c * p, norms + c, x_norms, packed_coef + c * d,
                                             size, m - c, p, d, inv_sigma2, sums};
                        NAME(sweep)(rows + c * p, mf_ceil_div(mf_min(step, end - c), MR), columns, column_panels, p, 0,
                                    partial, NAME(rbf_done), &b);
                    }
                    for (int64_t s = 0; s < column_panels * NR * d; s++) totals[s] += sums[s];
                }
                for (int64_t r = 0; r < size; r++)
                    for (int64_t q = 0; q < d; q++)
                        out[(row0 + r) * d + q] = (REAL)totals[(r / NR * d + q) * NR + r % NR];
            }
            mf_release(columns);
            mf_release(x_norms);
            mf_release(sums);
            mf_release(totals);
            mf_release(partial);
        }
    }
    else no_memory = 1;
    mf_release(shift);
    mf_release(rows);
    mf_release(norms);
    mf_release(packed_coef);
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}
