/* What a point is to its neighbours: weights that reconstruct it (LLE), and how a clique departs from a space of `dim`
 * dimensions (LTSA, local regression). As many points as a vector has doubles are worked on side by side, all in
 * double; those whose squares would over- or underflow are scaled by a power of two. */
#ifndef LOCAL_NULL
/* Squared singular values up to this share of the largest count as 0: they come from a Gram matrix, whose rounding is
 * of that size. */
#define LOCAL_NULL 1e-13
#define LOCAL_CACHE (24 << 10) /* bytes of differences to hold at once */

/* What one thread works in. z: differences, rows padded with zeros to whole tiles. */
typedef struct {
    int64_t k, p, chunk, rows;
    vf64 *memory, *z, *gram, *leading, *values, *u, *weights, *work;
    vf64_mask *null;
    double half[MF_VBYTES / sizeof(double)], scale[MF_VBYTES / sizeof(double)];
} local_space;

/* For matrices of `count` rows: k points, or p features where they are fewer. */
static int local_open(local_space *s, int64_t k, int64_t p, int64_t count, int64_t dim)
{
    int64_t rows = mf_round_up(count, LANES_TILE);
    int64_t chunk = count < k ? k : mf_max(8, mf_min(p, LOCAL_CACHE / (MF_VBYTES * k)));
    int64_t work = dim ? count * (count + 4) : k;
    int64_t total = rows * chunk + rows * rows + dim * (count + k + 2) + k + work;
    *s = (local_space){.k = k, .p = p, .chunk = chunk, .rows = rows, .memory = mf_alloc(total, sizeof(vf64))};
    if (!s->memory) return 0;
    s->z = s->memory;
    s->gram = s->z + rows * chunk;
    s->leading = s->gram + rows * rows;
    s->u = s->leading + dim * count;
    s->values = s->u + dim * k;
    s->null = (vf64_mask *)(s->values + dim);
    s->weights = s->values + 2 * dim;
    s->work = s->weights + k;
    memset(s->z, 0, (size_t)(rows * chunk) * sizeof(vf64));
    return 1;
}

/* Batches between two looks at Ctrl-C: a fraction of a millisecond or one batch. */
static int64_t local_piece(int64_t k, int64_t p)
{
    double operations = (double)k * (double)k * (double)(k + p);
    return (int64_t)fmax(1, fmin(64, 200000 / operations));
}
#endif

/* Differences of k points to an origin, `count` features from `from` on. */
static void NAME(local_gather)(local_space *s, const REAL *x, const int64_t *const *lists, const REAL *const *origins,
                               int64_t from, int64_t count, int64_t by_point, int64_t by_feature)
{
    for (int lane = 0; lane < PROBLEMS; lane++) {
        double half = s->half[lane], scale = s->scale[lane];
        const REAL *origin = origins[lane] + from;
        for (int64_t a = 0; a < s->k; a++) {
            const REAL *point = x + lists[lane][a] * s->p + from;
            double *to = (double *)(s->z + a * by_point) + lane;
            for (int64_t f = 0; f < count; f++)
                to[f * by_feature * PROBLEMS] = ((double)point[f] * half - (double)origin[f] * half) * scale;
        }
    }
}

/* Scales for lanes whose trace says that squares left the range of doubles; whether there are any. */
static int NAME(local_rescale)(local_space *s, const REAL *x, const int64_t *const *lists, const REAL *const *origins,
                               vf64 trace)
{
    int any = 0;
    for (int lane = 0; lane < PROBLEMS; lane++) {
        if (trace[lane] >= 1e-250 && trace[lane] <= 1e300) continue;
        double half = trace[lane] < 1 ? 1 : 0.5, largest = 0; /* half: the difference itself may overflow */
        int exponent;
        for (int64_t a = 0; a < s->k; a++)
            for (int64_t f = 0; f < s->p; f++)
                largest = fmax(largest, fabs((double)x[lists[lane][a] * s->p + f] * half -
                                             (double)origins[lane][f] * half));
        if (largest == 0) continue;
        frexp(largest, &exponent);
        s->half[lane] = half;
        s->scale[lane] = ldexp(1, -(int)mf_max(exponent, -1000));
        any = 1;
    }
    return any;
}

/* The Gram matrix of a batch, k x k, or p x p for few features. Centred: of differences to the mean. */
static vf64 NAME(local_gram)(local_space *s, const REAL *x, const int64_t *const *lists, const REAL *const *origins,
                             int features, int centred)
{
    int64_t k = s->k, p = s->p, chunk = s->chunk;
    vf64 trace;
    for (int lane = 0; lane < PROBLEMS; lane++) s->half[lane] = s->scale[lane] = 1;
    for (int again = 0;; again = 1) {
        int64_t by_point = features ? 1 : chunk, by_feature = features ? chunk : 1, step = features ? p : chunk;
        for (int64_t from = 0; from < p; from += step) {
            int64_t count = mf_min(step, p - from);
            NAME(local_gather)(s, x, lists, origins, from, count, by_point, by_feature);
            for (int64_t f = 0; centred && f < count; f++) {
                vf64 *z = s->z + f * by_feature, mean = {0};
                for (int64_t a = 0; a < k; a++) mean += z[a * by_point];
                mean /= (double)k;
                for (int64_t a = 0; a < k; a++) z[a * by_point] -= mean;
            }
            lanes_gram(s->z, s->rows, features ? k : count, chunk, from > 0, s->gram);
        }
        trace = lanes_trace(s->gram, s->rows, features ? p : k);
        if (again || !NAME(local_rescale)(s, x, lists, origins, trace)) return trace;
    }
}

/* Barycentric weights of m rows in their neighbours: written to `weights`, or applied to the rows of y, or, after a 1
 * for the row itself and with opposite sign, to `factors`; whichever is given. */
static mf_status NAME(local_weights)(const REAL *x, const REAL *queries, int64_t m, int64_t p, const int64_t *neighbors,
                                     int64_t k, double reg, REAL *weights, const REAL *y, int64_t d, REAL *out,
                                     double *factors, mf_run *run)
{
    int64_t piece = local_piece(k, p) * PROBLEMS;
    int no_memory = 0;
    int threads = mf_worth_threads(m * k * k * (k + p), run);
    reg = fmin(fmax(reg, 1e-14), 1e100);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        local_space s;
        int ready = local_open(&s, k, p, k, 0);
        if (!ready) {
#pragma omp atomic write
            no_memory = 1;
            mf_stop(run);
        }
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < mf_ceil_div(m, piece); block++) {
            if (mf_poll(run) || !ready) continue;
            int64_t end = mf_min((block + 1) * piece, m);
            for (int64_t i0 = block * piece; i0 < end; i0 += PROBLEMS) {
                const int64_t *lists[MF_VBYTES / sizeof(double)];
                const REAL *origins[MF_VBYTES / sizeof(double)];
                for (int lane = 0; lane < PROBLEMS; lane++) {
                    int64_t i = mf_min(i0 + lane, end - 1);
                    lists[lane] = neighbors + i * k;
                    origins[lane] = (queries ? queries : x) + i * p;
                }
                vf64 trace = NAME(local_gram)(&s, x, lists, origins, 0, 0), *w = s.weights;
                lanes_normalize(s.gram, s.rows, k, trace);
                lanes_barycenter(s.gram, s.rows, k, reg, s.work, w);
                for (int lane = 0; lane < mf_min(PROBLEMS, end - i0); lane++) {
                    int64_t i = i0 + lane;
                    if (weights)
                        for (int64_t a = 0; a < k; a++) weights[i * k + a] = (REAL)w[a][lane];
                    if (factors) {
                        factors[i * (k + 1)] = 1;
                        for (int64_t a = 0; a < k; a++) factors[i * (k + 1) + 1 + a] = -w[a][lane];
                    }
                    for (int64_t c = 0; out && c < d; c++) {
                        double sum = 0;
                        for (int64_t a = 0; a < k; a++)
                            sum = f64_fma(w[a][lane], (double)y[lists[lane][a] * d + c], sum);
                        out[i * d + c] = (REAL)sum;
                    }
                }
            }
        }
        mf_release(s.memory);
    }
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

static mf_status NAME(barycenter_weights)(const REAL *x, const REAL *queries, int64_t m, int64_t p,
                                          const int64_t *neighbors, int64_t k, double reg, REAL *weights, mf_run *run)
{
    return NAME(local_weights)(x, queries, m, p, neighbors, k, reg, weights, NULL, 0, NULL, NULL, run);
}

static mf_status NAME(reconstruct)(const REAL *x, const REAL *queries, int64_t m, int64_t p, const int64_t *neighbors,
                                   int64_t k, double reg, const REAL *y, int64_t d, REAL *out, mf_run *run)
{
    return NAME(local_weights)(x, queries, m, p, neighbors, k, reg, NULL, y, d, out, NULL, run);
}

static mf_status NAME(lle_begin)(const REAL *x, int64_t n, int64_t p, const int64_t *neighbors, int64_t k, double reg,
                                 mf_blocks **blocks, int64_t *entries, int64_t *bad, mf_run *run)
{
    mf_status status = blocks_new(n, n, k + 1, 1, blocks);
    mf_blocks *b = *blocks;
    if (status != MF_OK) return status;
    b->sign = 1;
    for (int64_t i = 0; i < n; i++) {
        b->members[i * (k + 1)] = i;
        memcpy(b->members + i * (k + 1) + 1, neighbors + i * k, (size_t)k * sizeof(int64_t));
    }
    status = blocks_count(b, bad, run);
    *entries = b->entries;
    if (status != MF_OK || *bad >= 0) return status;
    return NAME(local_weights)(x, NULL, n, p, neighbors, k, reg, NULL, NULL, 0, NULL, b->factors, run);
}

/* The `dim` leading left singular vectors of a batch of centred cliques, each times s / sqrt(s^2 + gamma), in s->u. */
static void NAME(local_directions)(local_space *s, const REAL *x, const int64_t *const *lists, int64_t dim,
                                   double gamma)
{
    int64_t k = s->k, p = s->p, count = mf_min(k, p);
    int features = p < k;
    const REAL *origins[MF_VBYTES / sizeof(double)];
    for (int lane = 0; lane < PROBLEMS; lane++) origins[lane] = x + lists[lane][0] * p;
    vf64 trace = NAME(local_gram)(s, x, lists, origins, features, 1), *u = s->u, *leading = features ? s->leading : u;
    lanes_normalize(s->gram, s->rows, count, trace);
    lanes_leading(s->gram, s->rows, count, dim, s->values, leading, s->work);
    for (int64_t j = 0; j < dim; j++) {
        if (!features) {
            s->values[j] *= trace;
            continue;
        }
        /* s u = Z v, and its length is more accurate than the eigenvalue. */
        for (int64_t a = 0; a < k; a++) u[j * k + a] = (vf64){0};
        for (int64_t f = 0; f < p; f++)
            for (int64_t a = 0; a < k; a++)
                u[j * k + a] = vf64_fma(s->z[f * s->chunk + a], leading[j * p + f], u[j * k + a]);
        s->values[j] = (vf64){0};
        for (int64_t a = 0; a < k; a++) s->values[j] = vf64_fma(u[j * k + a], u[j * k + a], s->values[j]);
    }
    for (int64_t j = 0; j < dim; j++) s->null[j] = ~(s->values[j] > LOCAL_NULL * s->values[0]);
    lanes_orthonormalize(u, k, dim, s->null);
    if (gamma == 0) return;
    vf64 ridge;
    for (int lane = 0; lane < PROBLEMS; lane++) {
        double scale = s->half[lane] * s->scale[lane];
        ridge[lane] = gamma * scale * scale;
    }
    for (int64_t j = 0; j < dim; j++) {
        vf64 value = vf64_select(s->null[j], (vf64){0}, s->values[j]);
        vf64 factor = vf64_sqrt(value / (vf64_select(s->null[j], vf64_set(1), value) + ridge));
        for (int64_t a = 0; a < k; a++) u[j * k + a] *= factor;
    }
}

static mf_status NAME(alignment_begin)(const REAL *x, int64_t n, int64_t p, const int64_t *cliques, int64_t count,
                                       int64_t k, int64_t dim, double gamma, mf_blocks **blocks, int64_t *entries,
                                       int64_t *bad, mf_run *run)
{
    mf_status status = blocks_new(n, count, k, dim, blocks);
    mf_blocks *b = *blocks;
    if (status != MF_OK) return status;
    b->offset = -1 / (double)k, b->sign = -1, b->diagonal = 1;
    memcpy(b->members, cliques, (size_t)(count * k) * sizeof(int64_t));
    status = blocks_count(b, bad, run);
    *entries = b->entries;
    if (status != MF_OK || *bad >= 0) return status;
    int64_t piece = local_piece(k, p) * PROBLEMS;
    int no_memory = 0;
#pragma omp parallel num_threads(run->n_threads)
    {
        local_space s;
        int ready = local_open(&s, k, p, mf_min(k, p), dim);
        if (!ready) {
#pragma omp atomic write
            no_memory = 1;
            mf_stop(run);
        }
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < mf_ceil_div(count, piece); block++) {
            if (mf_poll(run) || !ready) continue;
            int64_t end = mf_min((block + 1) * piece, count);
            for (int64_t i0 = block * piece; i0 < end; i0 += PROBLEMS) {
                const int64_t *lists[MF_VBYTES / sizeof(double)];
                for (int lane = 0; lane < PROBLEMS; lane++) lists[lane] = cliques + mf_min(i0 + lane, end - 1) * k;
                NAME(local_directions)(&s, x, lists, dim, gamma);
                for (int lane = 0; lane < mf_min(PROBLEMS, end - i0); lane++) {
                    double *factor = b->factors + (i0 + lane) * dim * k;
                    for (int64_t e = 0; e < dim * k; e++) factor[e] = s.u[e][lane];
                }
            }
        }
        mf_release(s.memory);
    }
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}
