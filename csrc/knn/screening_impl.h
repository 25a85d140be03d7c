/* Screening for kNN: tiles of approximate squared distances feed reservoirs of candidates. A tile is compared in
 * registers with the current thresholds of its rows (and columns); only a hit leaves the fast path. Points are shifted
 * and scaled by a power of two before they come here, so nothing overflows.
 * Accumulator: the dtype, a new one every MAX_CHAIN features; norms in double. Error: screen_error bounds it.
 * Workspace: screen_team for a team of threads, screen_work for one thread.
 * Template. Needs: dense/tile_impl.h, knn/reservoir_impl.h. */

/* Features per partial sum: it bounds the rounding error of a dot product. */
#undef MAX_CHAIN
#define MAX_CHAIN PANEL_STEP

/* |approximate - exact squared distance| <= screen_error * (|x| + |y|)^2 for shifted, scaled points. The first term is
 * the dot product and what is done once in REAL; the second what is done in double: norms, in pieces of 16 features,
 * and the sums of the exact distance itself. */
static double NAME(screen_error)(int64_t p)
{
    double unit = sizeof(REAL) == 4 ? 0x1p-24 : 0x1p-53;
    double chain = (double)mf_min(p, MAX_CHAIN) + (double)mf_ceil_div(p, MAX_CHAIN) + 16;
    return 1.01 * (unit * chain + 0x1p-53 * (0.5 * (double)p + 32));
}

typedef struct {
    const REAL *row_norms, *column_norms;
    int64_t row0, column0, n_rows, n_columns;
    NAME(reservoir) *lists;
    const int64_t *exclude; /* per row: the column that is the point itself, or NULL */
} NAME(screen_block);

/* One bit per entry of a tile that is below its limit: 16 for each vector, two rows in a word. Found without a branch
 * and visited one by one: most tiles have some, and few. */
#undef HIT_WORDS
#define HIT_WORDS (MR / 2)
#undef FOR_HITS
#define FOR_HITS(hits, i, v, lane)                                                                                    \
    for (int w = 0; w < HIT_WORDS; w++)                                                                               \
        for (uint64_t bits = (hits)[w]; bits; bits &= bits - 1)                                                       \
            for (int at = __builtin_ctzll(bits), i = 2 * w + at / 32, v = at / 16 % 2, lane = at % 16, once = 1; once; \
                 once = 0)

/* Row lists only: queries against data. */
MF_INLINE void NAME(screen_query_done)(void *context, int64_t row, int64_t column, NAME(acc) *t)
{
    const NAME(screen_block) *b = context;
    int64_t i0 = b->row0 + row, j0 = b->column0 + column;
    const REAL *threshold = b->lists->threshold;
    V norms[2] = {VOP(load)(b->column_norms + column), VOP(load)(b->column_norms + column + LANES)};
    uint64_t hits[HIT_WORDS] = {0};
#pragma GCC unroll 12
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
            t->c[i][v] += b->row_norms[row + i] + norms[v];
            hits[i / 2] |= (uint64_t)VOP(below)(t->c[i][v], VOP(set)(threshold[i0 + i])) << (i % 2 * 32 + v * 16);
        }
    FOR_HITS(hits, i, v, lane) {
        int64_t j = j0 + v * LANES + lane;
        REAL d = t->c[i][v][lane];
        if (d < threshold[i0 + i] && row + i < b->n_rows && !(b->exclude && b->exclude[i0 + i] == j))
            NAME(reservoir_add)(b->lists, i0 + i, d, j);
    }
}

/* Panels of factor * scale * (x - shift) and norms of the unfactored points, from rows of either dtype. */
typedef void NAME(fill)(const void *x, int64_t rows, int64_t p, const double *shift, double scale, int rows_side,
                        REAL *panels, REAL *norms);

#undef DEFINE_FILL
#define DEFINE_FILL(SOURCE, SUFFIX)                                                                                    \
    MF_INLINE void NAME(fill_width_##SUFFIX)(const SOURCE *x, int64_t rows, int64_t p, const double *shift,            \
                                             double scale, double factor, int64_t width, REAL *panels, REAL *norms)    \
    {                                                                                                                  \
        enum { STEP = 16 };                                                                                            \
        for (int64_t r0 = 0; r0 < rows; r0 += width, panels += width * p) {                                            \
            double sum[MF_WIDEST_PANEL] = {0};                                                                         \
            for (int64_t k0 = 0; k0 < p; k0 += STEP)                                                                   \
                for (int64_t r = 0; r < width; r++) {                                                                  \
                    double part = 0;                                                                                   \
                    for (int64_t k = k0; k < mf_min(k0 + STEP, p); k++) {                                              \
                        double v = r0 + r < rows ? ((double)x[(r0 + r) * p + k] - shift[k]) * scale : 0;               \
                        panels[k * width + r] = (REAL)(factor * v);                                                    \
                        part += (double)(REAL)v * (double)(REAL)v;                                                     \
                    }                                                                                                  \
                    sum[r] += part;                                                                                    \
                }                                                                                                      \
            for (int64_t r = 0; r < width; r++) norms[r0 + r] = r0 + r < rows ? (REAL)sum[r] : (REAL)INFINITY;         \
        }                                                                                                              \
    }                                                                                                                  \
    static void NAME(fill_##SUFFIX)(const void *x, int64_t rows, int64_t p, const double *shift, double scale,         \
                                    int rows_side, REAL *panels, REAL *norms)                                          \
    {                                                                                                                  \
        if (rows_side) NAME(fill_width_##SUFFIX)(x, rows, p, shift, scale, -2, MR, panels, norms);                     \
        else NAME(fill_width_##SUFFIX)(x, rows, p, shift, scale, 1, NR, panels, norms);                                \
    }
DEFINE_FILL(float, f32)
DEFINE_FILL(double, f64)

/* Sums between passes, for one thread. */
static NAME(acc) *NAME(partial_open)(int64_t p)
{
    return mf_alloc(p > PANEL_STEP ? NAME(block_rows)(p) / MR * SWEEP_PANELS : 0, sizeof(NAME(acc)));
}

/* What a team shares while it screens queries: all queries packed, and one chunk of the data, or all of it where it was
 * packed before. */
typedef struct {
    REAL *rows, *row_norms, *columns, *column_norms;
    const REAL *all, *all_norms; /* or NULL */
} NAME(screen_team);

static int NAME(screen_team_open)(NAME(screen_team) *t, int64_t m, int64_t p, const REAL *all, const REAL *all_norms)
{
    int64_t padded = mf_round_up(m, MR), width = all ? 0 : NAME(chunk_columns)(p);
    t->all = all, t->all_norms = all_norms;
    t->rows = mf_alloc(padded * p, sizeof(REAL));
    t->row_norms = mf_alloc(padded, sizeof(REAL));
    t->columns = mf_alloc(width * p, sizeof(REAL));
    t->column_norms = mf_alloc(width, sizeof(REAL));
    return t->rows && t->row_norms && t->columns && t->column_norms;
}

static void NAME(screen_team_close)(NAME(screen_team) *t)
{
    mf_release(t->rows);
    mf_release(t->row_norms);
    mf_release(t->columns);
    mf_release(t->column_norms);
}

/* Queries against data, called by all threads of a team; rows of x and y are `size` bytes per entry and go through
 * `fill`. */
static void NAME(screen_queries)(const char *x, int64_t m, const char *y, int64_t n, int64_t p, size_t size,
                                 NAME(fill) *fill, const double *shift, double scale, const int64_t *exclude,
                                 NAME(reservoir) *lists, const NAME(screen_team) *t, NAME(acc) *partial, mf_run *run)
{
    int64_t block = NAME(block_rows)(p), width = NAME(chunk_columns)(p);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < mf_ceil_div(m, MR); i++)
        fill(x + i * MR * p * (int64_t)size, mf_min(MR, m - i * MR), p, shift, scale, 1, t->rows + i * MR * p,
             t->row_norms + i * MR);
    for (int64_t j0 = 0; j0 < n; j0 += width) {
        int64_t columns = mf_min(width, n - j0), panels = mf_ceil_div(columns, NR);
        const REAL *packed = t->all ? t->all + j0 * p : t->columns;
        const REAL *norms = t->all ? t->all_norms + j0 : t->column_norms;
#pragma omp for schedule(static)
        for (int64_t j = 0; j < (t->all ? 0 : panels); j++)
            fill(y + (j0 + j * NR) * p * (int64_t)size, mf_min(NR, columns - j * NR), p, shift, scale, 0,
                 t->columns + j * NR * p, t->column_norms + j * NR);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < mf_ceil_div(m, block); i++) {
            if (mf_poll(run)) continue;
            int64_t row0 = i * block, rows = mf_min(block, m - row0);
            NAME(screen_block) b = {t->row_norms + row0, norms, row0, j0, rows, n, lists, exclude};
            NAME(sweep)(t->rows + row0 * p, mf_ceil_div(rows, MR), packed, panels, p, 1, partial,
                        NAME(screen_query_done), &b);
        }
    }
}

/* The candidates of one row, nearest k first (by approximate distance); returns the distance below which lies
 * nothing that is not among them. */
static double NAME(candidates)(NAME(reservoir) *lists, int64_t row, int64_t k, int64_t available)
{
    NAME(reservoir_cut)(lists, row);
    int64_t at = row * lists->stride, count = lists->count[row];
    double beyond = count < available ? (double)lists->threshold[row] : INFINITY;
    if (!lists->offset && count > k) NAME(select)(lists->distance + at, lists->index + at, count, k);
    return beyond;
}

#if MF_F32 /* a set against itself, and few queries against packed data, are screened in float32 only */
/* One query, -2 times the point, against the packed panels from j0 to j1; candidates go to a row of the lists. */
MF_INLINE void NAME(screen_panels)(int count, const REAL *restrict x, REAL norm, const REAL *restrict columns,
                                   const REAL *norms, int64_t p, int64_t panel, NAME(reservoir) *lists, int64_t row)
{
    V total[4 * (NR / LANES)] = {{0}};
    columns += panel * NR * p, norms += panel * NR;
    for (int64_t k0 = 0; k0 < p; k0 += MAX_CHAIN) {
        V sum[4 * (NR / LANES)] = {{0}};
        for (int64_t k = k0; k < mf_min(k0 + MAX_CHAIN, p); k++) {
            V a = VOP(set)(x[k]);
            for (int g = 0; g < count; g++)
                for (int v = 0; v < NR / LANES; v++) {
                    V b = VOP(load)(columns + (g * p + k) * NR + v * LANES);
                    sum[g * (NR / LANES) + v] = VOP(fma)(a, b, sum[g * (NR / LANES) + v]);
                }
        }
        for (int s = 0; s < count * (NR / LANES); s++) total[s] += sum[s];
    }
    for (int s = 0; s < count * (NR / LANES); s++) {
        V near = total[s] + (norm + VOP(load)(norms + s * LANES));
        for (unsigned bits = VOP(bits)(near < lists->threshold[row]); bits; bits &= bits - 1) {
            int lane = __builtin_ctz(bits);
            if (near[lane] < lists->threshold[row])
                NAME(reservoir_add)(lists, row, near[lane], panel * NR + s * LANES + lane);
        }
    }
}

static void NAME(screen_one)(const REAL *x, REAL norm, const REAL *columns, const REAL *norms, int64_t p, int64_t j0,
                             int64_t j1, NAME(reservoir) *lists, int64_t row)
{
    int64_t j = j0;
    for (; j + 4 <= j1; j += 4) NAME(screen_panels)(4, x, norm, columns, norms, p, j, lists, row);
    for (; j < j1; j++) NAME(screen_panels)(1, x, norm, columns, norms, p, j, lists, row);
}

/* Adds the candidates of another row of the lists. */
static void NAME(screen_join)(NAME(reservoir) *lists, int64_t row, int64_t other)
{
    NAME(reservoir_cut)(lists, other);
    const REAL *distance = lists->distance + other * lists->stride + lists->offset;
    const RINT *index = lists->index + other * lists->stride + lists->offset;
    for (int64_t c = 0; c < lists->count[other]; c++)
        if (distance[c] < lists->threshold[row]) NAME(reservoir_add)(lists, row, distance[c], index[c]);
}

/* Row and column lists: one tile of the upper triangle serves both. */
MF_INLINE void NAME(screen_self_done)(void *context, int64_t row, int64_t column, NAME(acc) *t)
{
    const NAME(screen_block) *b = context;
    int64_t i0 = b->row0 + row, j0 = b->column0 + column;
    const REAL *threshold = b->lists->threshold;
    V norms[2] = {VOP(load)(b->column_norms + column), VOP(load)(b->column_norms + column + LANES)};
    V limits[2] = {VOP(load)(threshold + j0), VOP(load)(threshold + j0 + LANES)};
    uint64_t hits[HIT_WORDS] = {0};
#pragma GCC unroll 12
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
            V limit = VOP(max)(VOP(set)(threshold[i0 + i]), limits[v]);
            t->c[i][v] += b->row_norms[row + i] + norms[v];
            hits[i / 2] |= (uint64_t)VOP(below)(t->c[i][v], limit) << (i % 2 * 32 + v * 16);
        }
    FOR_HITS(hits, i, v, lane) {
        int64_t j = j0 + v * LANES + lane;
        REAL d = t->c[i][v][lane];
        if (j <= i0 + i || j >= b->n_columns || row + i >= b->n_rows) continue;
        if (d < threshold[i0 + i]) NAME(reservoir_add)(b->lists, i0 + i, d, j);
        if (d < threshold[j]) NAME(reservoir_add)(b->lists, j, d, i0 + i);
    }
}

/* Row panels [p][MR] of -2 times points that lie in column panels. The rows of a panel are neighbours there as well,
 * in one column panel or in two. */
static void NAME(rows_from_columns)(const REAL *columns, const REAL *norms, int64_t row0, int64_t rows, int64_t p,
                                    REAL *panels, REAL *row_norms)
{
    for (int64_t r0 = 0; r0 < rows; r0 += MR, panels += MR * p) {
        int64_t i = row0 + r0, first = mf_min(MR, NR - i % NR), here = mf_min(MR, rows - r0);
        const REAL *one = columns + i / NR * NR * p + i % NR, *other = columns + (i / NR + 1) * NR * p - first;
        for (int64_t r = 0; r < MR; r++) row_norms[r0 + r] = r < here ? norms[i + r] : (REAL)INFINITY;
        if (here == MR && first == MR)
            for (int64_t k = 0; k < p; k++)
                for (int64_t r = 0; r < MR; r++) panels[k * MR + r] = -2 * one[k * NR + r];
        else
            for (int64_t k = 0; k < p; k++) {
                for (int64_t r = 0; r < mf_min(first, here); r++) panels[k * MR + r] = -2 * one[k * NR + r];
                for (int64_t r = first; r < here; r++) panels[k * MR + r] = -2 * other[k * NR + r];
                for (int64_t r = here; r < MR; r++) panels[k * MR + r] = 0;
            }
    }
}

/* The workspace of one thread. */
typedef struct {
    REAL *rows, *row_norms;
    NAME(acc) *partial;
} NAME(screen_work);

static int NAME(screen_work_open)(NAME(screen_work) *w, int64_t p)
{
    int64_t block = NAME(block_rows)(p);
    w->rows = mf_alloc(block * p, sizeof(REAL));
    w->row_norms = mf_alloc(block, sizeof(REAL));
    w->partial = NAME(partial_open)(p);
    return w->rows && w->row_norms && w->partial;
}

static void NAME(screen_work_close)(NAME(screen_work) *w)
{
    mf_release(w->rows);
    mf_release(w->row_norms);
    mf_release(w->partial);
}

/* Pairs of rows [i0, i1) and columns [j0, j1) of one set in column panels, each pair once (above the diagonal). */
static void NAME(screen_pair)(const REAL *columns, const REAL *norms, int64_t n, int64_t p, int64_t i0, int64_t i1,
                              int64_t j0, int64_t j1, NAME(reservoir) *lists, NAME(screen_work) *w, mf_run *run)
{
    int64_t block = NAME(block_rows)(p), chunk = NAME(chunk_columns)(p);
    for (int64_t jc = j0; jc < j1; jc += chunk)
        for (int64_t row0 = i0; row0 < i1 && !mf_poll(run); row0 += block) {
            int64_t size = mf_min(block, i1 - row0), end = mf_min(jc + chunk, j1);
            int64_t start = mf_max(jc, row0 / NR * NR);
            if (start >= end) continue;
            NAME(rows_from_columns)(columns, norms, row0, size, p, w->rows, w->row_norms);
            NAME(screen_block) b = {w->row_norms, norms + start, row0, start, size, n, lists, NULL};
            NAME(sweep)(w->rows, mf_ceil_div(size, MR), columns + start * p, mf_ceil_div(end - start, NR), p, 1,
                        w->partial, NAME(screen_self_done), &b);
        }
}

/* All pairs of a set against itself. The rows fall into 2T groups; in each round of a round-robin tournament every
 * thread takes a pair of groups that no other thread touches, so one set of lists serves all threads. */
static void NAME(screen_self)(const REAL *columns, const REAL *norms, int64_t n, int64_t p, NAME(reservoir) *lists,
                              NAME(screen_work) *w, mf_run *run)
{
    int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    int64_t groups = threads == 1 ? 1 : 2 * threads, unit = NR;
    while (unit % MR) unit += NR; /* no panel of rows or columns has points of two groups */
#define GROUP_START(g) mf_min(mf_ceil_div(n, unit) * (g) / groups * unit, n)
    for (int64_t g = thread; g < groups; g += threads)
        NAME(screen_pair)(columns, norms, n, p, GROUP_START(g), GROUP_START(g + 1), GROUP_START(g), GROUP_START(g + 1),
                          lists, w, run);
    for (int64_t round = 0; round + 1 < groups; round++) {
#pragma omp barrier
        /* Circle method: the last group stays, the others turn. */
        int64_t a = thread == 0 ? groups - 1 : (round + thread) % (groups - 1);
        int64_t b = (round - thread + groups - 1) % (groups - 1);
        int64_t low = mf_min(a, b), high = mf_max(a, b);
        NAME(screen_pair)(columns, norms, n, p, GROUP_START(low), GROUP_START(low + 1), GROUP_START(high),
                          GROUP_START(high + 1), lists, w, run);
    }
#pragma omp barrier
#undef GROUP_START
}
#endif
