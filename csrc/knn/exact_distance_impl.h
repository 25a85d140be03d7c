/* The squared distance that every kNN kernel ranks by. Swapping x and y changes no bit.
 * Accumulator: double, in the order of knn/sum_squares.h.
 * Template. Needs: base/dtype_impl.h, knn/sum_squares.h. */

/* MF_LANES64 consecutive values as doubles. */
#if MF_F32
typedef float vf32_narrow __attribute__((vector_size(MF_VBYTES / 2), aligned(sizeof(float)), may_alias));
MF_INLINE vf64 NAME(widen)(const float *x) { return __builtin_convertvector(*(const vf32_narrow *)x, vf64); }
#else
MF_INLINE vf64 NAME(widen)(const double *x) { return vf64_load(x); }
#endif

/* Four consecutive values as doubles. */
#if MF_F32
typedef float vf32_four __attribute__((vector_size(16), aligned(sizeof(float)), may_alias));
MF_INLINE vq64 NAME(widen_four)(const float *x) { return __builtin_convertvector(*(const vf32_four *)x, vq64); }
#else
MF_INLINE vq64 NAME(widen_four)(const double *x) { return vq64_load(x); }
#endif

MF_INLINE double NAME(exact_sq_distance)(const REAL *x, const REAL *y, int64_t p)
{
    vq64 sum = {0};
    int64_t k = 0;
    for (; k + 4 <= p; k += 4) {
        vq64 d = NAME(widen_four)(x + k) - NAME(widen_four)(y + k);
        sum = vq64_fma(d, d, sum);
    }
    for (int l = 0; k + l < p; l++) {
        double d = (double)x[k + l] - (double)y[k + l];
        sum[l] = f64_fma(d, d, sum[l]);
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The same to four points at once: a single sum waits for itself, and for memory. */
MF_INLINE void NAME(exact_sq_distance_four)(const REAL *x, const REAL *const *y, int64_t p, double *squares)
{
    vq64 sum[4] = {{0}};
    int64_t k = 0;
    for (; k + 4 <= p; k += 4) {
        vq64 here = NAME(widen_four)(x + k);
        for (int c = 0; c < 4; c++) {
            vq64 d = here - NAME(widen_four)(y[c] + k);
            sum[c] = vq64_fma(d, d, sum[c]);
        }
    }
    for (int c = 0; c < 4; c++) {
        for (int l = 0; k + l < p; l++) {
            double d = (double)x[k + l] - (double)y[c][k + l];
            sum[c][l] = f64_fma(d, d, sum[c][l]);
        }
        squares[c] = (sum[c][0] + sum[c][1]) + (sum[c][2] + sum[c][3]);
    }
}
