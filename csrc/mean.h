/* heat_mean: rows averaged with weights that fade with their distance. A result is summed in double, in the order of
 * its neighbours. */
#ifndef MF_HEAT
#define MF_HEAT(x) MF_JOIN(mf_##x##_f64, MF_LEVEL)

/* w[j] = exp(-(d_j^2 - d^2) inverse^2) with d the least of the k distances, from the product of sum and difference: no
 * square overflows, and the nearest weighs 1. Distance 0 weighs nothing with `others`, unless there is no other. w holds
 * whole vectors. Returns the sum of all. */
static double MF_HEAT(heat_weights)(const double *distances, int64_t k, double inverse, int others, double *w)
{
    enum { DOUBLES = MF_VBYTES / sizeof(double) };
    int64_t padded = mf_round_up(k, DOUBLES);
    vf64 infinite = vf64_set((double)INFINITY), closest = infinite, sum = {0};
    double least = (double)INFINITY, total = 0;
    memcpy(w, distances, (size_t)k * sizeof(double));
    for (int64_t j = k; j < padded; j++) w[j] = (double)INFINITY;
    for (int64_t j = 0; j < padded; j += DOUBLES) {
        vf64 d = vf64_load(w + j);
        d = vf64_select(d > (others ? 0.0 : -1.0), d, infinite);
        closest = vf64_min(closest, d);
        vf64_store(w + j, d);
    }
    for (int l = 0; l < DOUBLES; l++) least = closest[l] < least ? closest[l] : least;
    if (isinf(least)) {
        for (int64_t j = 0; j < k; j++) w[j] = 1;
        return (double)k;
    }
    for (int64_t j = 0; j < padded; j += DOUBLES) {
        vf64 d = vf64_load(w + j), apart = (d - least) * inverse;
        vf64 heat = MF_HEAT(exp)(-(apart * ((d + least) * inverse)));
        heat = vf64_select(apart > 0, heat, vf64_set(1));
        heat = vf64_select(d < infinite, heat, (vf64){0});
        sum += heat;
        vf64_store(w + j, heat);
    }
    for (int l = 0; l < DOUBLES; l++) total += sum[l];
    return total;
}
#endif

static mf_status NAME(heat_mean)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                 const REAL *y, int64_t d, double beta, int others, double *out, mf_run *run)
{
    int threads = mf_worth_threads(m * k * (d + 8), run), no_memory = 0;
    int gather = neighbors || sizeof(REAL) == 4; /* else the rows of y are read where they lie */
    double inverse = 1 / sqrt(beta);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        double *w = mf_alloc(k + MF_VBYTES, sizeof(double)), *rows = mf_alloc(gather ? k * d : 0, sizeof(double));
        if (!w || !rows) {
#pragma omp atomic write
            no_memory = 1;
            mf_stop(run);
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < m; i++) {
            if (mf_poll(run)) continue;
            double total = MF_HEAT(heat_weights)(distances + i * k, k, inverse, others, w);
            for (int64_t j = 0; gather && j < k; j++)
                for (int64_t q = 0; q < d; q++) rows[j * d + q] = y[(neighbors ? neighbors[i * k + j] : j) * d + q];
            MF_HEAT(combine)(w, k, gather ? rows : (const double *)y, k, d, out + i * d);
            for (int64_t q = 0; q < d; q++) out[i * d + q] /= total;
        }
        mf_release(w);
        mf_release(rows);
    }
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}
