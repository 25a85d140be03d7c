/* rbf_apply: out = exp(-|x - c|^2 / sigma^2) coef, without a kernel matrix. Samples are the columns of the tile,
 * centers its rows; kernel values go from the exponential straight into the sums over centers.
 * Accumulator: the dtype inside a block of centers, double over the blocks. Order: by the number of the center,
 * always.
 * Workspace: all centers packed, and a block of samples per thread.
 * Template. Needs: base/exp.h, dense/packed_impl.h. */

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

/* The same for few rows x; the centers may be packed (else NULL). */
static mf_status NAME(rbf_apply_few)(const NAME(packed) *packed, const REAL *x, int64_t n, const REAL *centers,
                                     int64_t m, int64_t p, const REAL *coef, int64_t d, REAL inv_sigma2, REAL *out,
                                     mf_run *run)
{
    NAME(few_rows) rows;
    int64_t blocks = mf_ceil_div(m, CENTER_BLOCK);
    REAL *sums = mf_alloc(n * blocks * d, sizeof(REAL));
    int ready = packed ? NAME(few_rows_against)(&rows, packed, x, n) : NAME(few_rows_open)(&rows, x, n, centers, m, p);
    if (!ready || !sums) {
        mf_release(rows.memory);
        mf_release(sums);
        return MF_NO_MEMORY;
    }
#pragma omp parallel for schedule(static) num_threads(run->n_threads) if (run->n_threads > 1)
    for (int64_t task = 0; task < n * blocks; task++) {
        if (mf_poll(run)) continue;
        int64_t i = task / blocks, c = task % blocks * CENTER_BLOCK, end = mf_min(c + CENTER_BLOCK, m);
        REAL e[CENTER_BLOCK + MR + LANES];
        if (packed) NAME(packed_distances)(packed, &rows, x, i, c, end, inv_sigma2, e);
        else NAME(few_rows_distances)(&rows, x, i, centers, m, c, end, inv_sigma2, e);
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

/* Centers and coefficients, packed. */
typedef struct {
    NAME(packed) centers;
    const REAL *coef; /* as they came, m x d */
    int64_t d;
    REAL *packed_coef; /* [center panel][d][MR] */
} NAME(rbf_map);

static void NAME(rbf_close)(mf_prepared *self)
{
    NAME(rbf_map) *s = (NAME(rbf_map) *)self;
    mf_release(s->centers.memory);
    mf_release(s->packed_coef);
}

static mf_status NAME(rbf_open)(NAME(rbf_map) *s, const REAL *centers, int64_t m, int64_t p, const REAL *coef,
                                int64_t d, mf_run *run)
{
    int64_t panels = mf_ceil_div(m, MR);
    mf_status status = NAME(packed_open)(&s->centers, centers, m, p, MR, run);
    s->coef = coef, s->d = d, s->packed_coef = mf_alloc(panels * MR * d, sizeof(REAL));
    s->centers.head.close = NAME(rbf_close), s->centers.head.bytes += panels * MR * d * (int64_t)sizeof(REAL);
    if (!s->packed_coef) return MF_NO_MEMORY;
    for (int64_t i = 0; i < panels; i++)
        for (int64_t q = 0; q < d; q++)
            for (int64_t r = 0; r < MR; r++)
                s->packed_coef[(i * d + q) * MR + r] = i * MR + r < m ? coef[(i * MR + r) * d + q] : 0;
    return status;
}

/* Rows x in any number against packed centers. */
static mf_status NAME(rbf_apply_many)(const NAME(rbf_map) *s, const REAL *x, int64_t n, REAL inv_sigma2, REAL *out,
                                      mf_run *run)
{
    const NAME(packed) *c = &s->centers;
    int64_t m = c->m, p = c->p, d = s->d;
    /* Samples per task: they rest in L3 while blocks of centers pass through L2. */
    int64_t most = mf_min(NAME(chunk_columns)(p) / 2, MF_LIMIT(256, NR));
    int64_t block = mf_min(most, mf_round_up(mf_ceil_div(n, run->n_threads), NR));
    block = mf_round_up(block, NR);
    int64_t step = mf_min(NAME(block_rows)(p), CENTER_BLOCK), tasks = mf_ceil_div(n, block);
    int no_memory = 0;
#pragma omp parallel num_threads(run->n_threads) if (run->n_threads > 1)
    {
        REAL *columns = mf_alloc(block * p, sizeof(REAL)), *x_norms = mf_alloc(block, sizeof(REAL));
        REAL *sums = mf_alloc(block * d, sizeof(REAL));
        double *totals = mf_alloc(block * d, sizeof(double));
        NAME(acc) *partial = mf_alloc(p > PANEL_STEP ? CENTER_BLOCK / MR * SWEEP_PANELS : 0, sizeof(NAME(acc)));
        int ready = columns && x_norms && sums && totals && partial;
        if (!ready) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            if (!ready) continue;
            int64_t row0 = task * block, size = mf_min(block, n - row0), column_panels = mf_ceil_div(size, NR);
            NAME(pack_columns)(x + row0 * p, size, p, c->shift, columns, x_norms);
            memset(totals, 0, (size_t)(block * d) * sizeof(double));
            for (int64_t c0 = 0; c0 < m && !mf_poll(run); c0 += CENTER_BLOCK) {
                memset(sums, 0, (size_t)(block * d) * sizeof(REAL));
                int64_t end = mf_min(c0 + CENTER_BLOCK, m);
                for (int64_t at = c0; at < end; at += step) {
                    NAME(rbf_block) b = {x + row0 * p, c->rows + at * p, c->norms + at, x_norms,
                                         s->packed_coef + at * d, size, m - at, p, d, inv_sigma2, sums};
                    NAME(sweep)(c->panels + at * p, mf_ceil_div(mf_min(step, end - at), MR), columns, column_panels, p,
                                0, partial, NAME(rbf_done), &b);
                }
                for (int64_t q = 0; q < column_panels * NR * d; q++) totals[q] += sums[q];
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
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

static mf_status NAME(rbf_apply)(const REAL *x, int64_t n, const REAL *centers, int64_t m, int64_t p, const REAL *coef,
                                 int64_t d, REAL inv_sigma2, REAL *out, mf_run *run)
{
    if (n == 0 || d == 0) return MF_OK;
    run->n_threads = mf_worth_threads(n * m * (p + d), run);
    if (NAME(are_few)(n, m)) return NAME(rbf_apply_few)(NULL, x, n, centers, m, p, coef, d, inv_sigma2, out, run);
    NAME(rbf_map) s;
    mf_status status = NAME(rbf_open)(&s, centers, m, p, coef, d, run);
    if (status == MF_OK) status = NAME(rbf_apply_many)(&s, x, n, inv_sigma2, out, run);
    NAME(rbf_close)(&s.centers.head);
    return status;
}

/* The prepared operand: centers and coefficients packed for good. */
static mf_status NAME(rbf_prepare)(const REAL *centers, int64_t m, int64_t p, const REAL *coef, int64_t d,
                                   mf_prepared **made, mf_run *run)
{
    NAME(rbf_map) *s = mf_alloc(1, sizeof(*s));
    *made = (mf_prepared *)s;
    return s ? NAME(rbf_open)(s, centers, m, p, coef, d, run) : MF_NO_MEMORY;
}

static mf_status NAME(rbf_apply_to)(const mf_prepared *made, const REAL *x, int64_t n, REAL inv_sigma2, REAL *out,
                                    mf_run *run)
{
    const NAME(rbf_map) *s = (const NAME(rbf_map) *)made;
    const NAME(packed) *c = &s->centers;
    run->n_threads = mf_worth_threads(n * c->m * (c->p + s->d), run);
    if (n > FEW_ROWS_MOST) return NAME(rbf_apply_many)(s, x, n, inv_sigma2, out, run);
    return NAME(rbf_apply_few)(c, x, n, c->rows, c->m, c->p, s->coef, s->d, inv_sigma2, out, run);
}
