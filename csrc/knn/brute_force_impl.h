/* knn: exact nearest neighbours by brute force. Screens in float32, ranks the few candidates by their exact distances,
 * and proves that nothing was missed.
 *
 * For a row x let D be the k-th smallest exact squared distance found. If another point had d^2 <= D, its norm would
 * be at most |x| + sqrt(D) and its approximate distance at most D + err (2|x| + sqrt(D))^2; so where all points
 * outside the candidates lie above that, the answer is proved. Rows without proof (near ties, tight clusters far
 * apart) are screened again in double with more candidates, and what is then still open is scanned point by point, as
 * few queries are from the start.
 *
 * Order: every stage gives the neighbours by (exact distance, index), so the result depends on no block size and no
 * schedule. Workspace: lists of candidates, up to 1 GB for a set against itself; beyond, rounds of 64 MB.
 * Template. Needs: base/sort.h, and dense/tile_impl.h, knn/exact_distance_impl.h, knn/screening_impl.h for both
 * dtypes. */

#undef FEW_QUERIES
#define FEW_QUERIES 8 /* up to here points that are not packed are scanned: faster than screening */
#undef SCREEN
#define SCREEN(type, x) MF_JOIN(MF_JOIN(mf, x), type)

/* What one search shares: points, where they are shifted to, and where results go. */
typedef struct {
    const REAL *y, *queries;
    int64_t n, m, p, k;
    int self;
    const double *shift;
    double scale;
    const float *columns, *norms; /* all points packed for screening, or NULL */
    REAL *distances;
    int64_t *indices;
    char *open; /* per query: 1 while its neighbours are not proved */
} NAME(search);

/* The list of a row whose points have NaN: fewer than k can be ranked, and the rest names point 0, at distance NaN. */
static void NAME(complete_row)(const NAME(search) *s, mf_pair *list, int64_t found)
{
    for (int64_t r = found; r < s->k; r++) list[r] = (mf_pair){NAN, 0};
}

static void NAME(write_row)(const NAME(search) *s, int64_t row, const mf_pair *list)
{
    for (int64_t r = 0; r < s->k; r++) {
        s->distances[row * s->k + r] = (REAL)sqrt(list[r].key);
        s->indices[row * s->k + r] = list[r].index;
    }
    s->open[row] = 0;
}

/* No point within squared distance `square` has an approximate one above this. The last term covers underflow. */
static double NAME(reach)(double square, double norm, double error, int64_t p)
{
    double sum = 2 * norm + sqrt(square);
    return square + error * sum * sum + (double)p * 1e-43;
}

/* |x - shift|^2, for bounds that allow for any order of the sum. */
static double NAME(shifted_norm)(const REAL *x, const double *shift, int64_t p)
{
    vq64 sum = {0};
    int64_t k = 0;
    for (; k + 4 <= p; k += 4) {
        vq64 d = NAME(widen_four)(x + k) - vq64_load(shift + k);
        sum += d * d;
    }
    for (int l = 0; k + l < p; l++) sum[l] += ((double)x[k + l] - shift[k + l]) * ((double)x[k + l] - shift[k + l]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Exact squared distances of a query to the points that `list` names. */
static void NAME(rank_pairs)(const NAME(search) *s, const REAL *x, mf_pair *list, int64_t count)
{
    int64_t c = 0;
    for (; c + 4 <= count; c += 4) {
        const REAL *y[4];
        double squares[4];
        for (int l = 0; l < 4; l++) y[l] = s->y + list[c + l].index * s->p;
        NAME(exact_sq_distance_four)(x, y, s->p, squares);
        for (int l = 0; l < 4; l++) list[c + l].key = squares[l];
    }
    for (; c < count; c++) list[c].key = NAME(exact_sq_distance)(x, s->y + list[c].index * s->p, s->p);
}

/* Ranks the candidates of a query (approximately nearest k first) and writes the row if the ranking is proved:
 * everything else is farther than `beyond` by an approximation good to error * (|x| + |y|)^2. */
#undef SCREEN_INDEX_f32
#undef SCREEN_INDEX_f64
#define SCREEN_INDEX_f32 int32_t
#define SCREEN_INDEX_f64 int64_t
#undef DEFINE_SETTLE
#define DEFINE_SETTLE(TYPE, T)                                                                                      \
    static void NAME(settle_##T)(const NAME(search) *s, int64_t row, SCREEN(T, reservoir) *lists, int64_t list_row, \
                                 mf_pair *list)                                                                     \
    {                                                                                                               \
        const REAL *x = s->queries + row * s->p;                                                                    \
        double beyond = SCREEN(T, candidates)(lists, list_row, s->k, s->n - s->self);                               \
        const TYPE *approximate = lists->distance + list_row * lists->stride + lists->offset;                       \
        const SCREEN_INDEX_##T *index = lists->index + list_row * lists->stride + lists->offset;                    \
        double square = s->scale * s->scale, error = SCREEN(T, screen_error)(s->p), worst = 0;                      \
        double norm = sqrt(NAME(shifted_norm)(x, s->shift, s->p) * square);                                         \
        if (lists->count[list_row] < s->k || !isfinite(norm)) return;                                               \
        int64_t count = s->k, all = lists->count[list_row];                                                         \
        for (int64_t c = 0; c < count; c++) list[c].index = index[c];                                               \
        NAME(rank_pairs)(s, x, list, count);                                                                        \
        for (int64_t c = 0; c < count; c++)                                                                         \
            if (list[c].key > worst) worst = list[c].key;                                                           \
        double reach = NAME(reach)(worst * square, norm, error, s->p);                                              \
        for (int64_t c = s->k; c < all; c++)                                                                        \
            if (approximate[c] <= reach) list[count++].index = index[c];                                            \
        NAME(rank_pairs)(s, x, list + s->k, count - s->k);                                                          \
        mf_pairs_sort(list, count);                                                                                 \
        if (beyond > NAME(reach)(list[s->k - 1].key * square, norm, error, s->p)) NAME(write_row)(s, row, list);    \
    }

DEFINE_SETTLE(float, f32)
DEFINE_SETTLE(double, f64)

/* Largest |y - shift|, as a power of two to divide by. */
static double NAME(unit_scale)(const REAL *y, int64_t n, int64_t p, const double *shift, int threads)
{
    double largest = 0;
    (void)threads;
#pragma omp parallel for reduction(max : largest) num_threads(threads)
    for (int64_t i = 0; i < n; i++) {
        vf64 most = {0};
        int64_t k = 0;
        for (; k + MF_LANES64 <= p; k += MF_LANES64) {
            vf64 d = NAME(widen)(y + i * p + k) - vf64_load(shift + k);
            most = vf64_max(vf64_max(d, -d), most); /* NaN is left out */
        }
        for (; k < p; k++) largest = fmax(largest, fabs((double)y[i * p + k] - shift[k]));
        for (int l = 0; l < MF_LANES64; l++) largest = fmax(largest, most[l]);
    }
    return largest > 0 && isfinite(largest) ? ldexp(1.0, -ilogb(largest)) : 1.0;
}

/* The panels of one screening dtype filled from this dtype. */
#undef FILL
#undef FILL_ONE
#define FILL(T) SCREEN(T, MF_JOIN(fill, DTYPE))
#define FILL_ONE(T) SCREEN(T, MF_JOIN(fill_width, DTYPE))

/* All points packed for screening, and where they were shifted and scaled to. */
typedef struct {
    mf_prepared head;
    const REAL *y;
    int64_t n, p;
    double *shift, scale;
    float *columns, *norms;
} NAME(points);

#undef POINTS_WIDTH
#define POINTS_WIDTH ((int64_t)(2 * MF_VBYTES / sizeof(float)))

static void NAME(points_close)(mf_prepared *self)
{
    NAME(points) *s = (NAME(points) *)self;
    mf_release(s->shift);
    mf_release(s->columns);
    mf_release(s->norms);
}

/* Where points are shifted and scaled to, so that nothing overflows. Returns 0 when memory runs out. */
static int NAME(find_place)(const REAL *y, int64_t n, int64_t p, double *shift, double *scale, int threads)
{
    REAL *shift_real = mf_alloc(p, sizeof(REAL));
    if (!shift_real) return 0;
    NAME(find_shift)(y, n, p, shift_real);
    for (int64_t j = 0; j < p; j++) shift[j] = shift_real[j];
    *scale = NAME(unit_scale)(y, n, p, shift, threads);
    mf_release(shift_real);
    return 1;
}

/* The prepared operand. */
static mf_status NAME(knn_prepare)(const REAL *y, int64_t n, int64_t p, mf_prepared **made, mf_run *run)
{
    int64_t panels = mf_ceil_div(n, POINTS_WIDTH), room = panels * POINTS_WIDTH;
    NAME(points) *s = mf_alloc(1, sizeof(*s));
    *made = (mf_prepared *)s;
    if (!s) return MF_NO_MEMORY;
    *s = (NAME(points)){{NAME(points_close), room * (p + 1) * 4 + p * 8}, y, n, p, mf_alloc(p, sizeof(double)), 1,
                        mf_alloc(room * p, sizeof(float)), mf_alloc(room, sizeof(float))};
    if (!s->shift || !s->columns || !s->norms) return MF_NO_MEMORY;
    int threads = mf_worth_threads(n * p, run);
    if (!NAME(find_place)(y, n, p, s->shift, &s->scale, threads)) return MF_NO_MEMORY;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t j = 0; j < panels; j++)
        if (!mf_poll(run))
            FILL(f32)(y + j * POINTS_WIDTH * p, mf_min(POINTS_WIDTH, n - j * POINTS_WIDTH), p, s->shift, s->scale, 0,
                      s->columns + j * POINTS_WIDTH * p, s->norms + j * POINTS_WIDTH);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

/* Few queries against packed points, one after the other: the team shares the points. */
static int NAME(screen_few)(const NAME(search) *s, int64_t keep, mf_run *run)
{
    int64_t panels = mf_ceil_div(s->n, POINTS_WIDTH), p = s->p;
    SCREEN(f32, reservoir) lists;
    float *x = mf_alloc(p + 1, sizeof(float)), *norm = x + p;
    mf_pair *list = mf_alloc(keep + 64, sizeof(*list));
    int no_memory = !SCREEN(f32, reservoir_open)(&lists, run->n_threads, keep) || !x || !list;
    for (int64_t row = 0; row < s->m && !no_memory && !mf_poll(run); row++) {
        FILL_ONE(f32)(s->queries + row * p, 1, p, s->shift, s->scale, -2, 1, x, norm);
        SCREEN(f32, reservoir_clear)(&lists, run->n_threads);
#pragma omp parallel num_threads(run->n_threads) if (run->n_threads > 1)
        {
            int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
            SCREEN(f32, screen_one)(x, *norm, s->columns, s->norms, p, panels * thread / threads,
                                    panels * (thread + 1) / threads, &lists, thread);
        }
        for (int64_t t = 1; t < run->n_threads; t++) SCREEN(f32, screen_join)(&lists, 0, t);
        NAME(settle_f32)(s, row, &lists, 0, list);
    }
    SCREEN(f32, reservoir_close)(&lists);
    mf_release(x);
    mf_release(list);
    return no_memory;
}

/* Stage 1 for a set against itself, float32 tiles of half the matrix. Returns 1 when memory runs out. */
static int NAME(search_self)(const NAME(search) *s, int64_t keep, mf_run *run)
{
    enum { WIDTH = POINTS_WIDTH };
    int64_t panels = mf_ceil_div(s->n, WIDTH);
    int no_memory = 0;
    SCREEN(f32, reservoir) lists;
    float *columns = mf_alloc(panels * WIDTH * s->p, sizeof(float)), *norms = mf_alloc(panels * WIDTH, sizeof(float));
    if (!SCREEN(f32, reservoir_open)(&lists, s->n, keep) || !columns || !norms) no_memory = 1;
    else {
        SCREEN(f32, reservoir_clear)(&lists, s->n);
#pragma omp parallel num_threads(run->n_threads)
        {
            SCREEN(f32, screen_work) w;
            mf_pair *list = mf_alloc(keep + 64, sizeof(*list));
            if (!SCREEN(f32, screen_work_open)(&w, s->p) || !list) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(static)
            for (int64_t j = 0; j < panels; j++)
                FILL(f32)(s->y + j * WIDTH * s->p, mf_min(WIDTH, s->n - j * WIDTH), s->p, s->shift, s->scale, 0,
                          columns + j * WIDTH * s->p, norms + j * WIDTH);
            SCREEN(f32, screen_self)(columns, norms, s->n, s->p, &lists, &w, run);
#pragma omp for schedule(dynamic, 64)
            for (int64_t row = 0; row < s->n; row++)
                if (!mf_poll(run)) NAME(settle_f32)(s, row, &lists, row, list);
            SCREEN(f32, screen_work_close)(&w);
            mf_release(list);
        }
    }
    SCREEN(f32, reservoir_close)(&lists);
    mf_release(columns);
    mf_release(norms);
    return no_memory;
}

/* A stage for `count` queries x that are the rows `rows` of the search, screened in TYPE. Points are packed before in
 * float only. */
#undef ALL_f32
#undef ALL_f64
#define ALL_f32(packed) (packed)
#define ALL_f64(packed) NULL
#undef DEFINE_STAGE
#define DEFINE_STAGE(TYPE, T)                                                                                          \
    static int NAME(stage_##T)(const NAME(search) *s, const REAL *x, const int64_t *rows, int64_t count, int64_t keep, \
                              mf_run *run)                                                                             \
    {                                                                                                                  \
        int no_memory = 0;                                                                                             \
        SCREEN(T, reservoir) lists;                                                                                    \
        SCREEN(T, screen_team) team;                                                                                   \
        int ready = SCREEN(T, reservoir_open)(&lists, count, keep);                                                    \
        if (!SCREEN(T, screen_team_open)(&team, count, s->p, ALL_##T(s->columns), ALL_##T(s->norms)) || !ready)        \
            no_memory = 1;                                                                                             \
        else {                                                                                                         \
            SCREEN(T, reservoir_clear)(&lists, count);                                                                 \
            _Pragma("omp parallel num_threads(run->n_threads)")                                                        \
            {                                                                                                          \
                SCREEN(T, acc) *partial = SCREEN(T, partial_open)(s->p);                                               \
                mf_pair *list = mf_alloc(keep + 64, sizeof(*list));                                                    \
                if (!partial || !list) mf_out_of_memory(&no_memory, run);                                              \
                SCREEN(T, screen_queries)((const char *)x, count, (const char *)s->y, s->n, s->p, sizeof(REAL),        \
                                          FILL(T), s->shift, s->scale, s->self ? rows : NULL, &lists, &team, partial,  \
                                          run);                                                                        \
                _Pragma("omp for schedule(dynamic, 64)")                                                               \
                for (int64_t i = 0; i < count; i++)                                                                    \
                    if (!mf_poll(run)) NAME(settle_##T)(s, rows[i], &lists, i, list);                                  \
                mf_release(partial);                                                                                   \
                mf_release(list);                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        SCREEN(T, reservoir_close)(&lists);                                                                            \
        SCREEN(T, screen_team_close)(&team);                                                                           \
        return no_memory;                                                                                              \
    }
DEFINE_STAGE(float, f32)
DEFINE_STAGE(double, f64)

/* The last stage, and the only one for few queries: all rows still open against every point, by exact distance. The
 * team shares the points of each row. */
static int NAME(scan_open)(const NAME(search) *s, mf_run *run)
{
    enum { PART = MF_LIMIT(512, 4) };
    int no_memory = 0;
    mf_pair *list = mf_alloc(run->n_threads * s->k, sizeof(*list)); /* each thread's nearest */
    int64_t *counts = mf_alloc(run->n_threads, sizeof(*counts));
#pragma omp parallel num_threads(run->n_threads) if (run->n_threads > 1)
    {
        SCREEN(f64, reservoir) own;
        int ready = SCREEN(f64, reservoir_open)(&own, 1, s->k) && list && counts;
        int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        if (!ready) mf_out_of_memory(&no_memory, run);
        for (int64_t row = 0; row < s->m; row++) {
            if (!s->open[row]) continue;
            const REAL *x = s->queries + row * s->p;
            if (ready) SCREEN(f64, reservoir_clear)(&own, 1);
#pragma omp for schedule(static) nowait
            for (int64_t part = 0; part < mf_ceil_div(s->n, PART); part++) {
                if (mf_poll(run) || !ready) continue;
                for (int64_t j = part * PART; j < mf_min((part + 1) * PART, s->n); j++) {
                    double d = NAME(exact_sq_distance)(x, s->y + j * s->p, s->p);
                    if (d < own.threshold[0] && !(s->self && j == row)) SCREEN(f64, reservoir_add)(&own, 0, d, j);
                }
            }
            /* A place for each thread instead of a lock: in a process forked now a lock could stay taken for ever. */
            if (ready) {
                SCREEN(f64, candidates)(&own, 0, s->k, s->n);
                counts[thread] = mf_min(own.count[0], s->k);
                for (int64_t c = 0; c < counts[thread]; c++)
                    list[thread * s->k + c] = (mf_pair){own.distance[own.offset + c], own.index[own.offset + c]};
            }
#pragma omp barrier
#pragma omp single
            if (!mf_poll(run)) {
                int64_t found = counts[0];
                for (int64_t t = 1; t < threads; t++)
                    for (int64_t c = 0; c < counts[t]; c++) list[found++] = list[t * s->k + c];
                mf_pairs_sort(list, found);
                NAME(complete_row)(s, list, found);
                NAME(write_row)(s, row, list);
            }
        }
        SCREEN(f64, reservoir_close)(&own);
    }
    mf_release(list);
    mf_release(counts);
    return no_memory;
}

/* The stages that screen: they leave open what they could not prove. */
static int NAME(screen)(NAME(search) *s, mf_run *run)
{
    /* Memory for lists, and for one round of queries. */
    enum { SELF_LIST_BYTES = MF_LIMIT(1 << 30, 1 << 16), ROUND_BYTES = MF_LIMIT(64 << 20, 1 << 14) };
    int no_memory = 0;
    int64_t n = s->n, m = s->m, p = s->p, keep = mf_min(s->k + 4 + s->k / 8, n), keep_more = mf_min(2 * s->k + 64, n);
    int64_t round = mf_max(MF_LIMIT(256, 48), ROUND_BYTES / mf_max((keep_more * 2 + 32) * 12, p * (int64_t)sizeof(REAL)));
    round = mf_min(round, m);
    REAL *gathered = NULL;
    double *shift = s->shift ? NULL : mf_alloc(p, sizeof(double));
    int64_t *rows = mf_alloc(round, sizeof(int64_t));
    if (!rows || (!s->shift && (!shift || !NAME(find_place)(s->y, n, p, shift, &s->scale, run->n_threads))))
        no_memory = 1;
    else {
        if (!s->shift) s->shift = shift;
        if (s->self && n * (2 * keep + 32) * 8 <= SELF_LIST_BYTES) no_memory = NAME(search_self)(s, keep, run);
        else if (s->columns && m <= FEW_QUERIES) no_memory = NAME(screen_few)(s, keep, run);
        else
            for (int64_t q0 = 0; q0 < m && !no_memory && !run->stop; q0 += round) {
                int64_t count = mf_min(round, m - q0);
                for (int64_t i = 0; i < count; i++) rows[i] = q0 + i;
                no_memory = NAME(stage_f32)(s, s->queries + q0 * p, rows, count, keep, run);
            }
        for (int64_t q = 0; q < m && !no_memory && !run->stop;) {
            int64_t count = 0;
            for (; q < m && count < round; q++) {
                if (!s->open[q]) continue;
                if (!gathered && !(gathered = mf_alloc(round * p, sizeof(REAL)))) break;
                memcpy(gathered + count * p, s->queries + q * p, (size_t)p * sizeof(REAL));
                rows[count++] = q;
            }
            if (count && gathered) no_memory = NAME(stage_f64)(s, gathered, rows, count, keep_more, run);
            else no_memory = q < m;
        }
    }
    mf_release(shift);
    mf_release(rows);
    mf_release(gathered);
    return no_memory;
}

/* All stages of a search that has its points and queries. */
static mf_status NAME(find_neighbors)(NAME(search) *s, mf_run *run)
{
    if (s->m == 0 || s->k == 0) return MF_OK;
    run->n_threads = mf_worth_threads(s->m * s->n * s->p, run);
    s->open = mf_alloc(s->m, 1);
    if (!s->open) return MF_NO_MEMORY;
    memset(s->open, 1, (size_t)s->m);
    int no_memory = (s->m > FEW_QUERIES || s->columns) && NAME(screen)(s, run);
    if (!no_memory && !run->stop && memchr(s->open, 1, (size_t)s->m)) no_memory = NAME(scan_open)(s, run);
    mf_release(s->open);
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

/* k nearest of y for each query (NULL: for each row of y, itself left out); k <= n, or n - 1 without queries. */
static mf_status NAME(knn)(const REAL *y, int64_t n, const REAL *queries, int64_t m, int64_t p, int64_t k,
                           REAL *distances, int64_t *indices, mf_run *run)
{
    int self = queries == NULL;
    NAME(search) s = {.y = y, .queries = self ? y : queries, .n = n, .m = self ? n : m, .p = p, .k = k, .self = self,
                      .distances = distances, .indices = indices};
    return NAME(find_neighbors)(&s, run);
}

static mf_status NAME(knn_to)(const mf_prepared *made, const REAL *queries, int64_t m, int64_t k, REAL *distances,
                              int64_t *indices, mf_run *run)
{
    const NAME(points) *points = (const NAME(points) *)made;
    NAME(search) s = {.y = points->y, .queries = queries, .n = points->n, .m = m, .p = points->p, .k = k,
                      .shift = points->shift, .scale = points->scale, .columns = points->columns,
                      .norms = points->norms, .distances = distances, .indices = indices};
    return NAME(find_neighbors)(&s, run);
}
