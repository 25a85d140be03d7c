/* largest: the largest magnitude of an array, and whether all of it is finite, in one pass.
 * Accumulator: four vectors of maxima, which no order changes; and as many of x - x, which is 0 for finite x.
 * Template. Needs: base/dtype_impl.h. */

static double NAME(largest)(const REAL *x, int64_t n)
{
    V most[4] = {{0}}, rest[4] = {{0}};
    REAL largest = 0, odd = 0;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int v = 0; v < 4; v++) {
            V a = VOP(load)(x + i + v * LANES);
            most[v] = VOP(max)(VOP(max)(a, -a), most[v]);
            rest[v] += a - a;
        }
    for (; i < n; i++) {
        REAL a = x[i] < 0 ? -x[i] : x[i];
        largest = a > largest ? a : largest;
        odd += a - a;
    }
    for (int v = 0; v < 4; v++)
        for (int l = 0; l < LANES; l++) {
            largest = most[v][l] > largest ? most[v][l] : largest;
            odd += rest[v][l];
        }
    return odd == 0 ? (double)largest : (double)NAN;
}
