/* Approximate neighbours of many rows, in three kernels that Python composes (src/manifast/_clusters.py):
 * cluster_candidates  those nearest to every member of a cluster among the other members, by float32 tiles, as far as
 *                     they are nearer than what its list has,
 * rank_candidates     the candidates of a row from all its clusters, ranked by exact distances,
 * join_neighbors      neighbours of neighbours as candidates.
 *
 * Order: a cluster is the work of one thread, in the order of its members; a list is the k nearest of a set by (exact
 * distance, index). So no result depends on the threads or the schedule. Accumulator: the tile's for candidates, whose
 * cluster is moved to its mean and scaled; double for what ranks. Workspace: per thread one packed cluster and its
 * lists, or a hash table of candidates.
 * Template. Needs: knn/lists.h, and knn/exact_distance_impl.h, knn/screening_impl.h and
 * knn/brute_force_impl.h for both dtypes. */

/* The workspace of a thread for clusters of up to `size` rows. */
typedef struct {
    REAL *rows;
    double *shift;
    float *columns, *norms;
    mf_reservoir_f32 lists;
    mf_screen_work_f32 screen;
} NAME(cluster_work);

static int NAME(cluster_work_open)(NAME(cluster_work) *w, int64_t size, int64_t p, int64_t keep)
{
    int64_t padded = mf_round_up(size, 2 * MF_LANES32);
    w->rows = mf_alloc(size * p, sizeof(REAL));
    w->shift = mf_alloc(p, sizeof(double));
    w->columns = mf_alloc(padded * p, sizeof(float));
    w->norms = mf_alloc(padded, sizeof(float));
    int lists = mf_reservoir_open_f32(&w->lists, size, keep), screen = mf_screen_work_open_f32(&w->screen, p);
    return lists && screen && w->rows && w->shift && w->columns && w->norms;
}

static void NAME(cluster_work_close)(NAME(cluster_work) *w)
{
    mf_release(w->rows);
    mf_release(w->shift);
    mf_release(w->columns);
    mf_release(w->norms);
    mf_reservoir_close_f32(&w->lists);
    mf_screen_work_close_f32(&w->screen);
}

/* Only what is nearer than a row's k-th known neighbour can be a candidate, with the rounding of the tiles allowed for. */
static void NAME(cluster_limits)(NAME(cluster_work) *w, const double *keys, int64_t k, const int32_t *members,
                                 int64_t size, int64_t p, double scale)
{
    mf_reservoir_f32 *lists = &w->lists;
    mf_reservoir_clear_f32(lists, size);
    for (int64_t i = 0; i < size; i++) {
        double known = keys[members[i] * k + k - 1] * scale * scale;
        float limit = (float)NAME(reach)(known, sqrt((double)w->norms[i]), 2 * mf_screen_error_f32(p), p);
        if (!(limit < lists->threshold[i])) continue;
        lists->threshold[i] = limit;
        for (int64_t r = lists->offset; lists->offset && r < lists->stride; r++)
            lists->distance[i * lists->stride + r] = limit;
    }
}

/* One cluster: the `keep` approximately nearest of every member that may enter its list, -1 where there are fewer. The
 * first `known` members have been compared with each other before. */
static void NAME(cluster_lists)(const REAL *x, int64_t p, const int32_t *members, int64_t size, int64_t known,
                                const double *keys, int64_t k, int64_t keep, NAME(cluster_work) *w,
                                int32_t *candidates, mf_run *run)
{
    enum { WIDTH = 2 * MF_LANES32 };
    double largest = 0, share = 1 / (double)size;
    for (int64_t k = 0; k < p; k++) w->shift[k] = 0;
    for (int64_t i = 0; i < size; i++) {
        memcpy(w->rows + i * p, x + members[i] * p, (size_t)p * sizeof(REAL));
        for (int64_t k = 0; k < p; k++) w->shift[k] += share * (double)w->rows[i * p + k];
    }
    for (int64_t i = 0; i < size * p; i += p)
        for (int64_t k = 0; k < p; k++) {
            double away = fabs((double)w->rows[i + k] - w->shift[k]);
            largest = away > largest ? away : largest;
        }
    double scale = largest > 0 ? ldexp(1.0, -ilogb(largest)) : 1.0;
    MF_JOIN(MF_JOIN(mf_fill, DTYPE), f32)(w->rows, size, p, w->shift, scale, 0, w->columns, w->norms);
    NAME(cluster_limits)(w, keys, k, members, size, p, scale);
    mf_screen_pair_f32(w->columns, w->norms, size, p, 0, known, known / WIDTH * WIDTH, size, &w->lists, &w->screen, run);
    mf_screen_pair_f32(w->columns, w->norms, size, p, known, size, 0, size, &w->lists, &w->screen, run);
    for (int64_t i = 0; i < size; i++) {
        mf_candidates_f32(&w->lists, i, keep, size - 1);
        const int32_t *found = w->lists.index + i * w->lists.stride + w->lists.offset;
        for (int64_t r = 0; r < keep; r++)
            candidates[i * keep + r] = r < w->lists.count[i] ? members[found[r]] : -1;
    }
}

static mf_status NAME(cluster_candidates)(const REAL *x, int64_t p, const int64_t *starts, const int64_t *known,
                                          int64_t clusters, const int32_t *members, const double *keys, int64_t k,
                                          int64_t keep, int32_t *candidates, mf_run *run)
{
    int no_memory = 0;
    int64_t largest = 1;
    for (int64_t c = 0; c < clusters; c++) largest = mf_max(largest, starts[c + 1] - starts[c]);
#pragma omp parallel num_threads(run->n_threads)
    {
        NAME(cluster_work) w;
        int ready = NAME(cluster_work_open)(&w, largest, p, keep);
        if (!ready) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic)
        for (int64_t c = 0; c < clusters; c++) {
            if (!ready || mf_poll(run) || starts[c] == starts[c + 1]) continue;
            NAME(cluster_lists)(x, p, members + starts[c], starts[c + 1] - starts[c], known[c], keys, k, keep, &w,
                                candidates + starts[c] * keep, run);
        }
        NAME(cluster_work_close)(&w);
    }
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

/* What one thread needs to rank candidates: those of the row at hand, each once. */
typedef struct {
    mf_row_set seen;
    int32_t *rows;
} NAME(rank_work);

static int NAME(rank_work_open)(NAME(rank_work) *w, int64_t most)
{
    w->rows = mf_alloc(most, sizeof(int32_t));
    return mf_row_set_open(&w->seen, most) && w->rows;
}

static void NAME(rank_work_close)(NAME(rank_work) *w)
{
    mf_release(w->seen.slots);
    mf_release(w->rows);
}

/* Offers `count` rows to the list of another; they were gathered first, so that they can be fetched ahead. */
static void NAME(rank_rows)(const REAL *x, int64_t p, int64_t row, const int32_t *rows, int64_t count, double *keys,
                            int32_t *near, int64_t k)
{
    enum { AHEAD = 6, LINE = 64 };
    for (int64_t c = 0; c < count; c++) {
        if (c + AHEAD < count)
            for (int64_t at = 0; at < p * (int64_t)sizeof(REAL); at += LINE)
                __builtin_prefetch((const char *)(x + rows[c + AHEAD] * p) + at);
        mf_list_offer(keys, near, k, NAME(exact_sq_distance)(x + row * p, x + rows[c] * p, p), rows[c]);
    }
}

/* The candidates of every row at its `m` places among the members of clusters, added to its list. Rows are visited in
 * `order`, in which neighbours are close together. */
static mf_status NAME(rank_candidates)(const REAL *x, int64_t n, int64_t p, const int32_t *order,
                                       const int64_t *places, int64_t m, const int32_t *candidates, int64_t keep,
                                       double *keys, int32_t *near, int64_t k, mf_run *run)
{
    int no_memory = 0;
#pragma omp parallel num_threads(run->n_threads)
    {
        NAME(rank_work) w;
        int ready = NAME(rank_work_open)(&w, m * keep + k + 1);
        if (!ready) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic, 256)
        for (int64_t o = 0; o < n; o++) {
            if (!ready || mf_poll(run)) continue;
            int64_t row = order[o], count = 0;
            mf_row_set_clear(&w.seen);
            for (int64_t r = 0; r < k && near[row * k + r] >= 0; r++) mf_row_set_add(&w.seen, near[row * k + r]);
            for (int64_t s = 0; s < m; s++) {
                const int32_t *found = candidates + places[row * m + s] * keep;
                for (int64_t r = 0; r < keep && found[r] >= 0; r++)
                    if (mf_row_set_add(&w.seen, found[r])) w.rows[count++] = found[r];
            }
            NAME(rank_rows)(x, p, row, w.rows, count, keys + row * k, near + row * k, k);
        }
        NAME(rank_work_close)(&w);
    }
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

/* Whether two rows share one of their m clusters, and so have been compared. */
MF_INLINE int NAME(share_cluster)(const int32_t *one, const int32_t *other, int64_t m)
{
    for (int64_t s = 0; s < m; s++)
        for (int64_t t = 0; t < m; t++)
            if (one[s] == other[t]) return 1;
    return 0;
}

/* Lists that also know the neighbours of their neighbours: `keys` and `near` are read, `new_keys` and `new_near`
 * written. Rows that share one of their `m` clusters have been compared. */
static mf_status NAME(join_neighbors)(const REAL *x, int64_t n, int64_t p, const int32_t *order,
                                      const int32_t *clusters, int64_t m, const double *keys, const int32_t *near,
                                      int64_t k, double *new_keys, int32_t *new_near, mf_run *run)
{
    int no_memory = 0;
#pragma omp parallel num_threads(run->n_threads)
    {
        NAME(rank_work) w;
        int ready = NAME(rank_work_open)(&w, k * k + k + 1);
        if (!ready) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic, 256)
        for (int64_t o = 0; o < n; o++) {
            if (!ready || mf_poll(run)) continue;
            int64_t row = order[o], count = 0;
            const int32_t *own = near + row * k;
            mf_row_set_clear(&w.seen);
            mf_row_set_add(&w.seen, (int32_t)row);
            for (int64_t r = 0; r < k && own[r] >= 0; r++) mf_row_set_add(&w.seen, own[r]);
            for (int64_t r = 0; r < k && own[r] >= 0; r++) {
                const int32_t *their = near + own[r] * k;
                for (int64_t t = 0; t < k && their[t] >= 0; t++)
                    if (!NAME(share_cluster)(clusters + row * m, clusters + their[t] * m, m) &&
                        mf_row_set_add(&w.seen, their[t]))
                        w.rows[count++] = their[t];
            }
            memcpy(new_keys + row * k, keys + row * k, (size_t)k * sizeof(double));
            memcpy(new_near + row * k, own, (size_t)k * sizeof(int32_t));
            NAME(rank_rows)(x, p, row, w.rows, count, new_keys + row * k, new_near + row * k, k);
        }
        NAME(rank_work_close)(&w);
    }
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}
