/* What the local kernels share: differences inside neighbourhoods, their Gram matrices and singular vectors.
 * Accumulator: double, over the features in order. As many points as a vector has doubles are worked on side by side;
 * those whose squares would overflow or underflow are scaled by a power of two. Workspace: local_space, one per
 * thread.
 * Template. Needs: base/dtype_impl.h, local/workspace.h, local/clique_blocks.h. */

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

/* A batch of lists side by side: list `first` and those after it, `count` of them; other lanes repeat the last. */
typedef struct {
    int64_t first;
    int count;
    const int64_t *lists[MF_VBYTES / sizeof(double)];
    const REAL *origins[MF_VBYTES / sizeof(double)];
} NAME(local_batch);

/* The `dim` leading left singular vectors of the differences to the origins, or, centred, to the mean, in s->u, and the
 * squares of their singular values in s->values. Null ones are marked, and zero. */
static void NAME(local_singular)(local_space *s, const REAL *x, const NAME(local_batch) *batch, int64_t dim,
                                 int centred)
{
    int64_t k = s->k, p = s->p, count = mf_min(k, p);
    int features = p < k;
    vf64 trace = NAME(local_gram)(s, x, batch->lists, batch->origins, features, centred);
    vf64 *u = s->u, *leading = features ? s->leading : u;
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
    lanes_orthonormalize(u, k, dim, s->null, centred);
    for (int64_t j = 0; j < dim; j++) s->values[j] = vf64_select(s->null[j], (vf64){0}, s->values[j]);
}

/* Makes the factors of the blocks of one batch. */
typedef void NAME(local_work)(local_space *s, const REAL *x, const NAME(local_batch) *batch, const local_plan *plan,
                              mf_blocks *b);

/* Does the work for `count` lists of k rows of x, seen from the rows `centers`, or each from its first row where that
 * is NULL. A thread has room for `vectors` singular vectors of k entries. */
static mf_status NAME(local_each)(const REAL *x, int64_t p, const int64_t *lists, const int64_t *centers, int64_t count,
                                  int64_t k, int64_t vectors, NAME(local_work) *work, const local_plan *plan,
                                  mf_blocks *b, mf_run *run)
{
    int64_t piece = local_piece(k, p) * PROBLEMS;
    int no_memory = 0;
#pragma omp parallel num_threads(run->n_threads)
    {
        local_space s;
        int ready = local_open(&s, k, p, mf_min(k, p), vectors);
        if (!ready) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < mf_ceil_div(count, piece); block++) {
            if (mf_poll(run) || !ready) continue;
            int64_t end = mf_min((block + 1) * piece, count);
            for (int64_t i0 = block * piece; i0 < end; i0 += PROBLEMS) {
                NAME(local_batch) batch = {.first = i0, .count = (int)mf_min(PROBLEMS, end - i0)};
                for (int lane = 0; lane < PROBLEMS; lane++) {
                    int64_t i = mf_min(i0 + lane, end - 1);
                    batch.lists[lane] = lists + i * k;
                    batch.origins[lane] = x + (centers ? centers[i] : lists[i * k]) * p;
                }
                work(&s, x, &batch, plan, b);
            }
        }
        mf_release(s.memory);
    }
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}
