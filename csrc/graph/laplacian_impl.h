/* Laplacians of a symmetric CSR graph with sorted columns: D - W, I - D^-1/2 W D^-1/2, I - D^-1 W. Self-loops are left
 * out of degrees and result, the diagonal is always stored, and it is 0 for a node without edges.
 * Accumulator: degrees are summed in double, in the order of the row.
 * Workspace: n indices to check the symmetry, n scales for the symmetric Laplacian.
 * Template. Needs: base/index_impl.h. */

/* Whether the columns from `low` to `high` of a graph with strictly ascending columns mirror its rows from `low` to
 * `high`, bit by bit except for the sign of zeros. Row i meets those columns j < i, each of which must have i, with the
 * same weight, as its next entry above the diagonal, at next[j]; in the end none may be left over. next[j] is the first
 * of them on entry. A few rows ahead the far ends of edges are fetched. */
static int INAME(laplacian_mirrors)(int64_t n, const INDEX *indptr, const INDEX *columns, const REAL *weights,
                                    INDEX *next, int64_t low, int64_t high, mf_run *run)
{
    enum { BLOCK = MF_LIMIT(16384, 5), AHEAD = 4 };
    INDEX entries = indptr[n];
    int uneven = 0;
    for (int64_t i = low; i < n && !uneven; i++) {
        if (i % BLOCK == 0 && mf_poll(run)) return 0;
        int64_t soon = mf_min(i + AHEAD, n - 1), end = mf_min(i, high);
        for (INDEX e = indptr[soon]; e < indptr[soon + 1] && columns[e] < end; e++) {
            if (columns[e] < low) continue;
            INDEX at = next[columns[e]];
            __builtin_prefetch(columns + at);
            __builtin_prefetch(weights + at);
        }
        for (INDEX e = indptr[i]; e < indptr[i + 1] && columns[e] < end; e++) {
            if (columns[e] < low) continue;
            INDEX at = next[columns[e]]++;
            if (at >= entries) return 0; /* the end of the last row is checked here, those of the others below */
            uneven |= (columns[at] != i) | (weights[at] != weights[e]);
        }
    }
    for (int64_t j = low; j < high; j++) uneven |= next[j] != indptr[j + 1];
    return !uneven;
}

/* Whether a graph is symmetric: every thread looks at columns of its own, with as many entries as the others'. */
static int INAME(laplacian_symmetric)(int64_t n, const INDEX *indptr, const INDEX *columns, const REAL *weights,
                                      INDEX *next, mf_run *run)
{
    enum { MOST = 16 }; /* every thread reads all lower entries */
    int64_t parts = mf_min(run->n_threads, MOST), bounds[MOST + 1] = {0}, upper = 0, seen = 0, part = 1;
    int symmetric = 1;
    for (int64_t j = 0; j < n; j++) upper += indptr[j + 1] - next[j];
    for (int64_t j = 0; j < n && part < parts; j++) {
        seen += indptr[j + 1] - next[j];
        while (part < parts && seen * parts >= upper * part) bounds[part++] = j + 1;
    }
    while (part <= parts) bounds[part++] = n;
#pragma omp parallel for schedule(static, 1) num_threads(run->n_threads) reduction(& : symmetric)
    for (int64_t t = 0; t < parts; t++)
        symmetric &= INAME(laplacian_mirrors)(n, indptr, columns, weights, next, bounds[t], bounds[t + 1], run);
    return symmetric;
}

static mf_status INAME(laplacian_begin)(int64_t n, int64_t entries, const INDEX *indptr, const INDEX *columns,
                                        const REAL *weights, double *degrees, INDEX *out_indptr, int *flaws,
                                        mf_run *run)
{
    enum { BLOCK = MF_LIMIT(1024, 3) };
    int found = indptr[0] != 0 || indptr[n] > entries ? MF_BAD_STRUCTURE : 0;
    for (int64_t i = 0; i < n; i++) found |= indptr[i] > indptr[i + 1] ? MF_BAD_STRUCTURE : 0;
    if (found) {
        *flaws = found;
        return MF_OK;
    }
    INDEX *next = mf_alloc(n, sizeof(INDEX)); /* the first entry of each row beyond the diagonal */
    if (!next) return MF_NO_MEMORY;
#pragma omp parallel for schedule(dynamic) num_threads(run->n_threads)
    for (int64_t block = 0; block < mf_ceil_div(n, BLOCK); block++) {
        if (mf_poll(run)) continue;
        int flaw = 0;
        for (int64_t i = block * BLOCK; i < mf_min((block + 1) * BLOCK, n); i++) {
            double degree = 0;
            INDEX begin = indptr[i], end = indptr[i + 1], loops = 0, lower = 0;
            int64_t last = -1;
            int outside = 0, unfit = 0;
            for (INDEX e = begin; e < end; e++) {
                int64_t j = columns[e];
                outside |= (j <= last) | (j >= n);
                last = j;
                unfit |= !(weights[e] >= 0) | !(weights[e] < (REAL)INFINITY);
                loops += j == i;
                lower += j < i;
                degree += j == i ? 0 : (double)weights[e];
            }
            flaw |= (outside ? MF_BAD_STRUCTURE : 0) | (unfit ? MF_BAD_WEIGHT : 0);
            degrees[i] = degree;
            next[i] = begin + lower + loops;
            out_indptr[i + 1] = end - begin - loops + 1;
        }
        if (flaw) {
#pragma omp atomic
            found |= flaw;
        }
    }
    if (!run->stop) { /* else some blocks were left out: their counts are not set */
        out_indptr[0] = 0;
        for (int64_t i = 0; i < n; i++) out_indptr[i + 1] += out_indptr[i];
        if (!found && !INAME(laplacian_symmetric)(n, indptr, columns, weights, next, run)) found = MF_NOT_SYMMETRIC;
    }
    mf_release(next);
    *flaws = found;
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

/* One row; `normalization` is a constant here. */
MF_INLINE void INAME(laplacian_row)(const INDEX *columns, const REAL *weights, int64_t count, int64_t row,
                                    double degree, const double *scale, mf_normalization normalization,
                                    INDEX *out_columns, REAL *out)
{
    int64_t at = 0, lower = 0;
    for (int64_t e = 0; e < count; e++) {
        int64_t j = columns[e], to = at + (j > row); /* a self-loop goes where the diagonal will overwrite it */
        double w = (double)weights[e], value;
        if (normalization == MF_PLAIN) value = w;
        else if (normalization == MF_RANDOM_WALK) value = degree > 0 ? w / degree : 0;
        else { /* the lower node's factor first: entries (i, j) and (j, i) get the same bits, and nothing overflows */
            double r = scale[row], c = scale[j];
            value = w * (j < row ? c : r) * (j < row ? r : c);
        }
        out_columns[to] = (INDEX)j;
        out[to] = (REAL)(0 - value);
        at += j != row;
        lower += j < row;
    }
    out_columns[lower] = (INDEX)row;
    out[lower] = normalization == MF_PLAIN ? (REAL)degree : degree > 0;
}

static mf_status INAME(laplacian_fill)(int64_t n, const INDEX *indptr, const INDEX *columns, const REAL *weights,
                                       const double *degrees, const INDEX *out_indptr, mf_normalization normalization,
                                       INDEX *out_columns, REAL *out, mf_run *run)
{
    enum { BLOCK = MF_LIMIT(1024, 3) };
    double *scale = normalization == MF_SYMMETRIC ? mf_alloc(n, sizeof(double)) : NULL;
    if (normalization == MF_SYMMETRIC && !scale) return MF_NO_MEMORY;
#pragma omp parallel num_threads(run->n_threads)
    {
        if (scale) {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) scale[i] = degrees[i] > 0 ? 1 / sqrt(degrees[i]) : 0;
        }
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < mf_ceil_div(n, BLOCK); block++) {
            if (mf_poll(run)) continue;
#define ROW(NORMALIZATION)                                                                                           \
    INAME(laplacian_row)(columns + indptr[i], weights + indptr[i], indptr[i + 1] - indptr[i], i, degrees[i], scale,  \
                         NORMALIZATION, out_columns + out_indptr[i], out + out_indptr[i])
            for (int64_t i = block * BLOCK; i < mf_min((block + 1) * BLOCK, n); i++) {
                if (normalization == MF_PLAIN) ROW(MF_PLAIN);
                else if (normalization == MF_SYMMETRIC) ROW(MF_SYMMETRIC);
                else ROW(MF_RANDOM_WALK);
            }
#undef ROW
        }
    }
    mf_release(scale);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}
