/* The squared distance that defines the order of neighbours: every kNN kernel ranks by these bits.
 * Differences are taken in double, feature k goes to accumulator k % 4 in order, and the four are added pairwise.
 * Swapping x and y changes no bit. Every step is monotone in each |difference|, so a sum of the same shape over
 * differences that are no larger never exceeds it: lower bounds made that way need no slack for rounding. */

/* The sum above over the values DIFFERENCE(k), for doubles or for vectors of doubles (one point per lane). */
#ifndef MF_SUM_SQUARES
#define MF_SUM_SQUARES(TYPE, FMA, total, p, DIFFERENCE)                                                        \
    do {                                                                                                       \
        TYPE s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, d;                                                        \
        int64_t at = 0;                                                                                        \
        for (; at + 4 <= (p); at += 4) {                                                                       \
            d = DIFFERENCE(at), s0 = FMA(d, d, s0);                                                            \
            d = DIFFERENCE(at + 1), s1 = FMA(d, d, s1);                                                        \
            d = DIFFERENCE(at + 2), s2 = FMA(d, d, s2);                                                        \
            d = DIFFERENCE(at + 3), s3 = FMA(d, d, s3);                                                        \
        }                                                                                                      \
        if (at < (p)) d = DIFFERENCE(at), s0 = FMA(d, d, s0);                                                  \
        if (at + 1 < (p)) d = DIFFERENCE(at + 1), s1 = FMA(d, d, s1);                                          \
        if (at + 2 < (p)) d = DIFFERENCE(at + 2), s2 = FMA(d, d, s2);                                          \
        (total) = (s0 + s1) + (s2 + s3);                                                                       \
    } while (0)
#define MF_LANES64 ((int)(MF_VBYTES / sizeof(double)))
#endif

/* MF_LANES64 consecutive values as doubles. */
#if MF_F32
typedef float vf32_narrow __attribute__((vector_size(MF_VBYTES / 2), aligned(sizeof(float)), may_alias));
MF_INLINE vf64 NAME(widen)(const float *x) { return __builtin_convertvector(*(const vf32_narrow *)x, vf64); }
#else
MF_INLINE vf64 NAME(widen)(const double *x) { return vf64_load(x); }
#endif

MF_INLINE double NAME(exact)(const REAL *x, const REAL *y, int64_t p)
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
