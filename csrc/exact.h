/* The distance that orders neighbours: taken in double from the stored values, in four sums over k mod 4. Every kNN
 * algorithm ranks by it, so they all give the same neighbours, ties included. Symmetric in x and y. */
MF_INLINE double NAME(exact)(const REAL *x, const REAL *y, int64_t p)
{
    double s[4] = {0, 0, 0, 0};
    int64_t k = 0;
    for (; k + 4 <= p; k += 4)
        for (int l = 0; l < 4; l++) {
            double d = (double)x[k + l] - (double)y[k + l];
            s[l] = f64_fma(d, d, s[l]);
        }
    for (int l = 0; k < p; k++, l++) {
        double d = (double)x[k] - (double)y[k];
        s[l] = f64_fma(d, d, s[l]);
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}
