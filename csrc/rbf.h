/* rbf_apply: samples on the vector side, centers as tile rows. The kernel values of a tile go from the exponential
 * straight into the sums over centers; no kernel matrix exists. Sums over a block of centers are taken in the dtype,
 * the blocks are added in double; both orders are fixed by the center's number alone. */
#undef CENTER_BLOCK
#define CENTER_BLOCK 192

typedef struct {
    const REAL *x, *centers, *center_norms, *x_norms, *coef;
    int64_t rows, m, p, d;
    REAL inv_sigma2, *sums;
} NAME(rbf_block);

/* sums[column panel][d][NR] += kernel of the tile times coef, packed as [center panel][d][MR]. */
MF_INLINE void NAME(rbf_done)(void *context, int64_t center, int64_t column, NAME(acc) *t)
{
    const NAME(rbf_block) *b = context;
    V near = VOP(set)(NEAR), nx0 = VOP(load)(b->x_norms + column), nx1 = VOP(load)(b->x_norms + column + LANES);
    VOP(mask) fine = {0};
    fine = ~fine;
    for (int i = 0; i < MR; i++) {
        V s0 = b->center_norms[center + i] + nx0, s1 = b->center_norms[center + i] + nx1;
        t->c[i][0] += s0, t->c[i][1] += s1;
        fine &= (VOP(mask))(t->c[i][0] >= near * s0) & (VOP(mask))(t->c[i][1] >= near * s1);
    }
    if (VOP(any)(~fine)) {
        int rows = (int)mf_min(MR, b->m - center), columns = (int)mf_min(NR, b->rows - column);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) {
                REAL d = t->c[i][j / LANES][j % LANES];
                if (!(d >= NEAR * (b->center_norms[center + i] + b->x_norms[column + j])))
                    t->c[i][j / LANES][j % LANES] =
                        NAME(direct)(b->x + (column + j) * b->p, b->centers + (center + i) * b->p, b->p);
            }
    }
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

static mf_status NAME(rbf_apply)(const REAL *x, int64_t n, const REAL *centers, int64_t m, int64_t p, const REAL *coef,
                          int64_t d, REAL inv_sigma2, REAL *out, mf_run *run)
{
    if (n == 0 || d == 0) return MF_OK;
    int64_t block = mf_max(1, mf_min(NAME(block_rows)(p) / NR, mf_ceil_div(n, NR))) * NR; /* samples per task */
    int64_t center_panels = mf_ceil_div(m, MR), tasks = mf_ceil_div(n, block);
    int no_memory = 0;
    REAL *shift = mf_alloc(p, sizeof(REAL)), *rows = mf_alloc(center_panels * MR * p, sizeof(REAL));
    REAL *norms = mf_alloc(center_panels * MR, sizeof(REAL)), *packed_coef = mf_alloc(center_panels * MR * d, sizeof(REAL));
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
                NAME(pack_rows)(centers + i * MR * p, mf_min(MR, m - i * MR), p, shift, rows + i * MR * p, norms + i * MR);
#pragma omp for schedule(dynamic)
            for (int64_t task = 0; task < tasks; task++) {
                if (!ready) continue;
                int64_t row0 = task * block, size = mf_min(block, n - row0), column_panels = mf_ceil_div(size, NR);
                NAME(pack_columns)(x + row0 * p, size, p, shift, columns, x_norms);
                memset(totals, 0, (size_t)(block * d) * sizeof(double));
                for (int64_t c0 = 0; c0 < m && !mf_poll(run); c0 += CENTER_BLOCK) {
                    memset(sums, 0, (size_t)(block * d) * sizeof(REAL));
                    NAME(rbf_block) b = {x + row0 * p, centers + c0 * p, norms + c0, x_norms, packed_coef + c0 * d,
                                         size, m - c0, p, d, inv_sigma2, sums};
                    NAME(sweep)(rows + c0 * p, mf_ceil_div(mf_min(CENTER_BLOCK, m - c0), MR), columns, column_panels, p, 0,
                                partial, NAME(rbf_done), &b);
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
