/* geodesic_rows and landmark_map: distances along the manifold from new points, by the shortest way over one of the
 * point's neighbours, and Landmark Isomap's map of them.
 * Accumulator: double; landmark_map has one vector of accumulators per output that runs over the columns in order.
 * Geodesics of either dtype are read where they lie. Workspace: landmark_map needs up to 1024 x (d vectors and 3
 * lists of neighbours) and a byte per row of geodesics for each thread, and a pair per point.
 * Template. Needs: base/dtype_impl.h, base/sort.h. */

#undef GEODESIC_PART
/* Columns at a time: those of 2 x 10 neighbours stay in the first cache, measured. */
#define GEODESIC_PART MF_LIMIT(128, 8)

/* Four vectors of doubles. */
MF_INLINE void NAME(geodesic_load)(const REAL *from, vf64 *to)
{
    enum { DOUBLES = MF_VBYTES / (int)sizeof(double) };
#if MF_F32
    typedef float half __attribute__((vector_size(MF_VBYTES / 2), aligned(4), may_alias));
    for (int v = 0; v < 4; v++) to[v] = __builtin_convertvector(*(const half *)(from + v * DOUBLES), vf64);
#else
    for (int v = 0; v < 4; v++) to[v] = vf64_load(from + v * DOUBLES);
#endif
}

/* to[c] = min_j distances[j] + geodesics[neighbors[j], c] for `columns` columns. Those of `next` neighbours (NULL: of
 * none) are fetched meanwhile: rows are scattered, and the processor does not see them coming. */
MF_INLINE void NAME(geodesic_part)(const double *distances, const int64_t *neighbors, const int64_t *next, int64_t k,
                                   const REAL *geodesics, int64_t stride, int64_t columns, double *to)
{
    enum { DOUBLES = MF_VBYTES / (int)sizeof(double), STEP = 4 * DOUBLES };
    int64_t c = 0;
    for (; c + STEP <= columns; c += STEP) {
        vf64 least[4], way[4];
        for (int v = 0; v < 4; v++) least[v] = vf64_set((double)INFINITY);
        for (int64_t j = 0; j < k; j++) {
            NAME(geodesic_load)(geodesics + neighbors[j] * stride + c, way);
            for (int line = 0; next && line < STEP * (int)sizeof(REAL); line += 64)
                __builtin_prefetch((const char *)(geodesics + next[j] * stride + c) + line + 63);
            vf64 first = vf64_set(distances[j]);
            for (int v = 0; v < 4; v++) least[v] = vf64_min(way[v] + first, least[v]);
        }
        for (int v = 0; v < 4; v++) vf64_store(to + c + v * DOUBLES, least[v]);
    }
    for (; c < columns; c++) {
        double least = (double)INFINITY;
        for (int64_t j = 0; j < k; j++) {
            double way = (double)geodesics[neighbors[j] * stride + c] + distances[j];
            least = way < least ? way : least;
        }
        to[c] = least;
    }
}

static mf_status NAME(geodesic_rows)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                     const REAL *geodesics, int64_t columns, int narrow, void *out, mf_run *run)
{
    enum { BLOCK = MF_LIMIT(64, 3) };
#pragma omp parallel for schedule(static) num_threads(run->n_threads)
    for (int64_t block = 0; block < mf_ceil_div(m, BLOCK); block++) {
        if (mf_poll(run)) continue;
        for (int64_t i = block * BLOCK; i < mf_min((block + 1) * BLOCK, m); i++)
            for (int64_t c = 0; c < columns; c += GEODESIC_PART) {
                double part[GEODESIC_PART];
                int64_t width = mf_min(GEODESIC_PART, columns - c), at = i * columns + c;
                const int64_t *next = i + 1 < m ? neighbors + (i + 1) * k : NULL;
                NAME(geodesic_part)(distances + i * k, neighbors + i * k, next, k, geodesics + c, columns, width, part);
                if (narrow)
                    for (int64_t j = 0; j < width; j++) ((float *)out)[at + j] = (float)part[j];
                else memcpy((double *)out + at, part, (size_t)width * sizeof(double));
            }
    }
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

#undef LANDMARK_PART
/* Columns at a time for many points at once, measured: those of a thousand neighbours stay in the second cache. */
#define LANDMARK_PART MF_LIMIT(768 / (int)sizeof(REAL), 8)

#undef MANY_POINTS
#define MANY_POINTS MF_LIMIT(64, 4)

/* What a thread works with: the lists of a block of points, the rows that they name, and sums. */
typedef struct {
    vf64 *sums;
    double *distances;
    int64_t *neighbors, *rows, n, found;
    char *seen; /* per row below n: whether it is among them */
} NAME(landmark_work);

static int NAME(landmark_work_open)(NAME(landmark_work) *w, int64_t points, int64_t k, int64_t d, int64_t n)
{
    w->n = n;
    w->seen = mf_alloc(n, 1);
    w->sums = mf_alloc(points * d, sizeof(vf64));
    w->distances = mf_alloc(points * k, sizeof(double));
    w->neighbors = mf_alloc(points * k, sizeof(int64_t));
    w->rows = mf_alloc(points * k, sizeof(int64_t));
    return w->seen && w->sums && w->distances && w->neighbors && w->rows;
}

static void NAME(landmark_work_close)(NAME(landmark_work) *w)
{
    mf_release(w->sums);
    mf_release(w->distances);
    mf_release(w->neighbors);
    mf_release(w->rows);
    mf_release(w->seen);
}

/* The lists of `count` points, and the different rows that they name. */
static void NAME(landmark_block)(NAME(landmark_work) *w, const double *distances, const int64_t *neighbors, int64_t k,
                                 int64_t d, const mf_pair *points, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(w->distances + i * k, distances + points[i].index * k, (size_t)k * sizeof(double));
        memcpy(w->neighbors + i * k, neighbors + points[i].index * k, (size_t)k * sizeof(int64_t));
    }
    memset(w->seen, 0, (size_t)w->n);
    for (int64_t e = 0; e < count * k && w->n; e++) w->seen[w->neighbors[e]] = 1;
    w->found = 0;
    for (const char *at = w->seen; (at = memchr(at, 1, (size_t)(w->seen + w->n - at))); at++)
        w->rows[w->found++] = at - w->seen;
    memset(w->sums, 0, (size_t)(count * d) * sizeof(vf64));
}

/* Fetches `columns` columns of some rows: the lines that hold them but for a first one that begins with columns before,
 * which was fetched with those. */
MF_INLINE void NAME(fetch_rows)(const REAL *geodesics, int64_t stride, const int64_t *rows, int64_t count,
                                int64_t columns)
{
    enum { LINE = 64 / (int)sizeof(REAL) };
    for (int64_t r = 0; r < count; r++) {
        const char *ends = (const char *)(geodesics + rows[r] * stride) + 63;
        for (int64_t c = 0; c < columns; c += LINE) __builtin_prefetch(ends + c * (int64_t)sizeof(REAL));
    }
}

/* The farthest column from row `one`, or from the nearer of two rows. */
static int64_t NAME(farthest_column)(const REAL *geodesics, int64_t columns, int64_t one, int64_t other)
{
    int64_t best = 0;
    REAL most = -1;
    for (int64_t c = 0; c < columns; c++) {
        REAL a = geodesics[one * columns + c], b = geodesics[other * columns + c], near = a < b ? a : b;
        if (near > most) most = near, best = c;
    }
    return best;
}

/* Points in an order in which those that follow one another mostly have neighbours in common: by stripes of equal
 * distance from one end of the manifold, up and down along them. It decides how long memory takes, and no result. */
static void NAME(order_points)(const int64_t *neighbors, int64_t m, int64_t k, const REAL *geodesics, int64_t columns,
                               mf_pair *order)
{
    for (int64_t i = 0; i < m; i++) order[i] = (mf_pair){(double)i, i};
    if (m < MANY_POINTS || k == 0) return;
#define GEODESIC(i, column) ((double)geodesics[neighbors[(i) * k] * columns + (column)])
    int64_t end = NAME(farthest_column)(geodesics, columns, neighbors[0], neighbors[0]), near = 0, far = 0;
    for (int64_t i = 1; i < m; i++) {
        if (GEODESIC(i, end) < GEODESIC(near, end)) near = i;
        if (GEODESIC(i, end) > GEODESIC(far, end)) far = i;
    }
    int64_t side = NAME(farthest_column)(geodesics, columns, neighbors[near * k], neighbors[far * k]);
    double stripes = floor(sqrt((double)m / 4)), length = GEODESIC(far, end), least = GEODESIC(near, end), broad = 0;
    for (int64_t i = 0; i < m; i++) broad = fmax(broad, GEODESIC(i, side));
    for (int64_t i = 0; i < m; i++) {
        double stripe = floor(stripes * (GEODESIC(i, end) - least) / (length - least));
        double along = 0.999 * GEODESIC(i, side) / broad, key = stripe + (fmod(stripe, 2) == 0 ? along : 0.999 - along);
        order[i].key = isfinite(key) ? key : -1;
    }
#undef GEODESIC
    mf_pairs_sort(order, m);
}

/* sums[i, o] += (delta_c^2 - mean_sq[c]) projection[o, c] over all columns of the points of a block, column c in lane c
 * modulo the lanes. A part of the columns of all rows is fetched, row by row, while the part before is worked on:
 * fetched for one point after the other it takes memory longer. */
static void NAME(landmark_sums)(NAME(landmark_work) *w, int64_t count, int64_t k, const REAL *geodesics,
                                int64_t columns, const double *mean_sq, const double *projection, int64_t stride,
                                int64_t d)
{
    enum { DOUBLES = MF_VBYTES / (int)sizeof(double) };
    int64_t share = mf_ceil_div(w->found, count); /* of the rows, fetched beside each point */
    for (int64_t c = 0; c < columns; c += LANDMARK_PART) {
        int64_t width = mf_min(LANDMARK_PART, columns - c), vectors = mf_ceil_div(width, DOUBLES);
        int64_t following = mf_min(LANDMARK_PART, columns - c - width);
        for (int64_t i = 0; i < count; i++) {
            double part[LANDMARK_PART];
            const int64_t *own = w->neighbors + i * k, *next = i + 1 < count ? own + k : NULL;
            int64_t first = mf_min(i * share, w->found), fetched = mf_min(share, w->found - first);
            NAME(fetch_rows)(geodesics + c + width, columns, w->rows + first, fetched, following);
            NAME(geodesic_part)(w->distances + i * k, own, next, k, geodesics + c, columns, width, part);
            for (int64_t j = 0; j < width; j++) part[j] = part[j] * part[j] - mean_sq[c + j];
            for (int64_t j = width; j < vectors * DOUBLES; j++) part[j] = 0;
            for (int64_t o = 0; o < d; o++) {
                vf64 sum = w->sums[i * d + o];
                for (int64_t v = 0; v < vectors; v++)
                    sum = vf64_fma(vf64_load(part + v * DOUBLES),
                                   vf64_load(projection + o * stride + c + v * DOUBLES), sum);
                w->sums[i * d + o] = sum;
            }
        }
    }
}

/* out[i, :] = offset - 1/2 sum_c (delta_c^2 - mean_sq[c]) projection[c, :], delta the row of `geodesic_rows` that is
 * never stored whole. Each output has one vector of accumulators that runs over the columns in order. A part of the
 * columns of all neighbours is fetched row by row while the part before is worked on: in the order of the points memory
 * would take twice as long. */
static mf_status NAME(landmark_map)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                    const REAL *geodesics, int64_t columns, const double *mean_sq,
                                    const double *projection, int64_t d, const double *offset, double *out,
                                    mf_run *run)
{
    enum { LARGEST = MF_LIMIT(1024, 2), DOUBLES = MF_VBYTES / (int)sizeof(double) };
    int64_t padded = mf_round_up(columns, DOUBLES), block_rows = mf_min(LARGEST, mf_ceil_div(m, run->n_threads));
    double *transposed = mf_alloc(d * padded, sizeof(double)); /* projection by output; zeros at the end */
    mf_pair *order = mf_alloc(m, sizeof(*order));
    int starved = !transposed || !order;
    int64_t n = 0; /* rows that may be named, where points are so many that fetching them ahead is worth it */
    for (int64_t e = 0; e < m * k && m >= MANY_POINTS; e++) n = mf_max(n, neighbors[e] + 1);
    if (!starved) {
        NAME(order_points)(neighbors, m, k, geodesics, columns, order);
        for (int64_t o = 0; o < d; o++)
            for (int64_t c = 0; c < padded; c++) transposed[o * padded + c] = c < columns ? projection[c * d + o] : 0;
#pragma omp parallel num_threads(run->n_threads) reduction(| : starved)
        {
            NAME(landmark_work) w;
            starved = !NAME(landmark_work_open)(&w, block_rows, k, d, n);
            if (starved) mf_stop(run);
#pragma omp for schedule(dynamic)
            for (int64_t block = 0; block < mf_ceil_div(m, block_rows); block++) {
                if (mf_poll(run)) continue;
                const mf_pair *points = order + block * block_rows;
                int64_t count = mf_min(block_rows, m - block * block_rows);
                NAME(landmark_block)(&w, distances, neighbors, k, d, points, count);
                NAME(landmark_sums)(&w, count, k, geodesics, columns, mean_sq, transposed, padded, d);
                for (int64_t i = 0; i < count; i++)
                    for (int64_t o = 0; o < d; o++) {
                        double sum = 0;
                        for (int v = 0; v < DOUBLES; v++) sum += w.sums[i * d + o][v];
                        out[points[i].index * d + o] = offset[o] - 0.5 * sum;
                    }
            }
            NAME(landmark_work_close)(&w);
        }
    }
    mf_release(transposed);
    mf_release(order);
    return starved ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}
