/* heat_mean: the mean of rows, with weights that fall with their distance.
 * Accumulator: double, in the order of the neighbours. Workspace: one row of weights and k rows of y per thread.
 * Template. Needs: base/dtype_impl.h, dense/heat_weights.h, and dense/rbf_impl.h for double (mf_combine_f64). */

static mf_status NAME(heat_mean)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                 const REAL *y, int64_t d, double beta, int others, double *out, mf_run *run)
{
    int threads = mf_worth_threads(m * k * (d + 8), run), no_memory = 0;
    int gather = neighbors || sizeof(REAL) == 4; /* else the rows of y are read where they lie */
    double inverse = 1 / sqrt(beta);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        double *w = mf_alloc(k + MF_VBYTES, sizeof(double)), *rows = mf_alloc(gather ? k * d : 0, sizeof(double));
        if (!w || !rows) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < m; i++) {
            if (mf_poll(run)) continue;
            double total = mf_heat_weights_f64(distances + i * k, k, inverse, others, w);
            for (int64_t j = 0; gather && j < k; j++)
                for (int64_t q = 0; q < d; q++) rows[j * d + q] = y[(neighbors ? neighbors[i * k + j] : j) * d + q];
            mf_combine_f64(w, k, gather ? rows : (const double *)y, k, d, out + i * d);
            for (int64_t q = 0; q < d; q++) out[i * d + q] /= total;
        }
        mf_release(w);
        mf_release(rows);
    }
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}
