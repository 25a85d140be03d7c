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

MF_INLINE double NAME(exact_sq_distance)(const REAL *x, const REAL *y, int64_t p)
{
    enum { PARTS = 4 / MF_LANES64 }; /* vectors that hold the four accumulators */
    vf64 sum[PARTS] = {{0}};
    double lane[4];
    int64_t k = 0;
    for (; k + 4 <= p; k += 4)
        for (int v = 0; v < PARTS; v++) {
            vf64 d = NAME(widen)(x + k + v * MF_LANES64) - NAME(widen)(y + k + v * MF_LANES64);
            sum[v] = vf64_fma(d, d, sum[v]);
        }
    for (int l = 0; l < 4; l++) lane[l] = sum[l / MF_LANES64][l % MF_LANES64];
    for (int l = 0; k + l < p; l++) {
        double d = (double)x[k + l] - (double)y[k + l];
        lane[l] = f64_fma(d, d, lane[l]);
    }
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}
