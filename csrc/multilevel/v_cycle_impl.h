/* multilevel_precondition: one V-cycle over a hierarchy. Float is enough for a preconditioner unless eigenvalues are
 * near its rounding: the smooth part of a residual, which is amplified by 1 / eigenvalue, must not be noise.
 * Accumulator: the dtype, over the entries of a row in order. Workspace: four blocks of vectors per level, kept in the
 * hierarchy.
 * Template. Needs: multilevel/hierarchy.h, multilevel/sparse_products_impl.h, multilevel/tall_blocks.h. */

#undef VALUE
#if MF_F32
#define VALUE(m) (m)->value_f32
#else
#define VALUE(m) (m)->value
#endif

typedef struct NAME(cycle_vectors) {
    REAL *x, *r, *direction, *spare;
} NAME(cycle_vectors);

/* `steps` steps of the Chebyshev iteration for L x = r over [radius / spread, radius]; from 0 unless `warm`. */
static void NAME(smooth)(const mf_level *level, NAME(cycle_vectors) *v, int64_t width, int steps, double spread,
                         int warm, mf_run *run)
{
    int64_t n = level->n;
    int threads = mf_worth_threads(n * width, run);
    double top = level->spectral_radius, bottom = top / spread;
    double theta = (top + bottom) / 2, delta = (top - bottom) / 2, sigma = theta / delta, rho = 1 / sigma;
    NAME(spmm_args) args = {.n = n, .width = width, .start = level->graph.start, .column = level->graph.column,
                            .weight = VALUE(&level->graph), .inverse_diagonal = level->inverse_diagonal, .r = v->r,
                            .direction = v->direction};
    for (int step = 0; step < steps; step++) {
        double keep = 0, gain = 1 / theta;
        if (step > 0) {
            double next = 1 / (2 * sigma - rho);
            keep = next * rho, gain = 2 * next / delta, rho = next;
        }
        if (step == 0 && !warm) {
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
            for (int64_t i = 0; i < n; i++) {
                REAL scale = (REAL)(gain * level->inverse_diagonal[i]);
                for (int64_t c = i * width; c < (i + 1) * width; c += 4) {
                    QUAD made = scale * *(const QUAD *)(v->r + c);
                    *(QUAD *)(v->x + c) = made;
                    *(QUAD *)(v->direction + c) = made;
                }
            }
            continue;
        }
        args.x = v->x, args.out = v->spare, args.keep = (REAL)keep, args.gain = (REAL)gain;
        NAME(spmm)(&args, MF_SPMM_STEP, run);
        REAL *made = v->spare;
        v->spare = v->x, v->x = made;
    }
}

static NAME(cycle_vectors) NAME(cycle_memory)(const mf_level *level)
{
    return (NAME(cycle_vectors)){level->work[0], level->work[1], level->work[2], level->work[3]};
}

/* About L^+ r for the r in the memory of level `at`. Returns where the result is: there, too. */
static REAL *NAME(cycle)(const mf_multilevel *h, int at, int64_t width, mf_run *run)
{
    const mf_level *level = h->levels + at;
    NAME(cycle_vectors) v = NAME(cycle_memory)(level);
    if (run->stop) return v.x;
    if (level->inverse) {
        for (int64_t i = 0; i < level->n; i++) {
            for (int64_t c = 0; c < width; c += 4) {
                QUAD sum = {0};
                for (int64_t j = 0; j < level->n; j++)
                    sum += (REAL)level->inverse[i * level->n + j] * *(const QUAD *)(v.r + j * width + c);
                *(QUAD *)(v.x + i * width + c) = sum;
            }
        }
        return v.x;
    }
    if (at + 1 == h->count) {
        NAME(smooth)(level, &v, width, MF_BOTTOM_STEPS, MF_BOTTOM_SPREAD, 0, run);
        return v.x;
    }
    const mf_sparse *down = &level->restriction, *up = &level->prolong;
    NAME(smooth)(level, &v, width, MF_SMOOTHING, MF_SPREAD, 0, run);
    NAME(spmm_args) args = {.n = level->n, .width = width, .start = level->graph.start, .column = level->graph.column,
                            .weight = VALUE(&level->graph), .x = v.x, .r = v.r, .out = v.spare};
    NAME(spmm)(&args, MF_SPMM_RESIDUAL, run);
    NAME(sparse_apply)(down->rows, down->start, down->column, VALUE(down), v.spare, width, 0,
                       NAME(cycle_memory)(level + 1).r, run);
    const REAL *correction = NAME(cycle)(h, at + 1, width, run);
    NAME(sparse_apply)(up->rows, up->start, up->column, VALUE(up), correction, width, 1, v.x, run);
    NAME(smooth)(level, &v, width, MF_SMOOTHING, MF_SPREAD, 1, run);
    return v.x;
}

/* One V-cycle from level `at` for L x = r, column by column; r scaled by column so that floats hold it. */
static mf_status NAME(multilevel_precondition)(mf_multilevel *h, int at, const double *r, int64_t width,
                                               const double *scale, double *out, mf_run *run)
{
    if (!mf_multilevel_memory(h, width * (int64_t)sizeof(REAL))) return MF_NO_MEMORY;
    const mf_level *level = h->levels + at;
    int threads = mf_worth_threads(level->n * width, run);
    REAL *to = NAME(cycle_memory)(level).r;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < level->n; i++) {
        for (int64_t c = 0; c < width; c += 4) {
            mf_quad_f64 scaled = *(const mf_quad_f64 *)(r + i * width + c) * *(const mf_quad_f64 *)(scale + c);
            *(QUAD *)(to + i * width + c) = __builtin_convertvector(scaled, QUAD);
        }
    }
    const REAL *x = NAME(cycle)(h, at, width, run);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t c = 0; c < level->n * width; c += 4)
        *(mf_quad_f64 *)(out + c) = __builtin_convertvector(*(const QUAD *)(x + c), mf_quad_f64);
    if (run->stop) return MF_INTERRUPTED;
    return mf_tall_center(level->n, out, width, level->mass, run);
}
