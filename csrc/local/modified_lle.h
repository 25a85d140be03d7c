/* The part of modified LLE that depends on no dtype: from singular vectors to the factor of a block, in double. */
#ifndef MF_LOCAL_MODIFIED_LLE_H
#define MF_LOCAL_MODIFIED_LLE_H

#include "base/common.h"
#include "base/simd.h"
#include "base/sort.h"

#define MODIFIED_ROWS 2 /* rows of a factor before the vectors: f and v */

/* The sum of the squares of singular values from the r-th on over that of those before it; 0 for none at all. */
static double modified_lle_ratio(const double *values, int64_t count, int64_t r)
{
    double head = 0, tail = 0;
    for (int64_t j = 0; j < r; j++) head += values[j];
    for (int64_t j = count - 1; j >= r; j--) tail += values[j];
    return head > 0 ? tail / head : 0;
}

/* How many vectors do not count as null: those before the longest tail whose ratio is below eta. */
static int64_t modified_lle_kept(const double *values, int64_t count, double eta)
{
    int64_t r = count;
    while (r > 0 && values[r - 1] == 0) r--;
    while (r > 1 && modified_lle_ratio(values, count, r - 1) < eta) r--;
    return r;
}

static double modified_lle_median(double *ratios, int64_t count)
{
    int64_t upper = count / 2;
    mf_doubles_select(ratios, count, upper);
    if (count % 2) return ratios[upper];
    double lower = ratios[0];
    for (int64_t i = 1; i < upper; i++) lower = fmax(lower, ratios[i]);
    return lower + (ratios[upper] - lower) / 2;
}

/* own -= u u'own for r orthonormal rows, `stride` apart. Twice: what remains may be small. Returns its length. */
static double modified_lle_reject(double *own, const double *u, int64_t r, int64_t stride, int64_t k)
{
    double norm2 = 0;
    for (int64_t j = 0; j < 2 * r; j++) {
        const double *vector = u + j % r * stride;
        double dot = 0;
        for (int64_t a = 0; a < k; a++) dot = f64_fma(own[a], vector[a], dot);
        for (int64_t a = 0; a < k; a++) own[a] = f64_fma(-dot, vector[a], own[a]);
    }
    for (int64_t a = 0; a < k; a++) norm2 = f64_fma(own[a], own[a], norm2);
    return sqrt(norm2);
}

/* w with (Z Z' + ridge I) w = 1 and the sum 1, from all singular vectors of Z that are not null. */
static void modified_lle_weights(const double *values, const double *u, int64_t count, int64_t stride, int64_t k,
                                 double reg, double *w)
{
    double trace = 0, sum = 0;
    for (int64_t a = 0; a < k; a++) w[a] = 1;
    for (int64_t j = 0; j < count; j++) trace += values[j];
    for (int64_t j = 0; j < count && values[j] > 0; j++) {
        const double *vector = u + j * stride;
        double dot = 0;
        for (int64_t a = 0; a < k; a++) dot += vector[a];
        dot /= 1 + reg * (trace / values[j]);
        for (int64_t a = 0; a < k; a++) w[a] = f64_fma(-dot, vector[a], w[a]);
    }
    for (int64_t a = 0; a < k; a++) sum += w[a];
    /* Only rounding can make the sum negative or 0, where reg is of that size. */
    for (int64_t a = 0; a < k; a++) w[a] = sum > 0 ? w[a] / sum : 1 / (double)k;
}

/* The factor of one block from its singular vectors. tol: lengths of V'1 up to it count as zero; any v of V is
 * right then. `w` is room for k numbers. */
static void modified_lle_factor(const double *values, int64_t count, int64_t k, double eta, double reg, double tol,
                                double *factor, double *w)
{
    int64_t stride = k + 1, r = modified_lle_kept(values, count, eta), ways = k - r;
    double *f = factor + 1, *v = f + stride, *u = v + stride, share = 0;
    modified_lle_weights(values, u, count, stride, k, reg, w);
    for (int64_t j = r; j < count; j++) memset(u + j * stride, 0, (size_t)k * sizeof(double));
    for (int64_t a = 0; a < k; a++) v[a] = 1;
    double length = modified_lle_reject(v, u, r, stride, k);
    if (ways && length > tol) share = length / sqrt((double)ways);
    else if (ways) {
        int64_t best = 0;
        double least = INFINITY;
        for (int64_t a = 0; a < k; a++) {
            double taken = 0;
            for (int64_t j = 0; j < r; j++) taken = f64_fma(u[j * stride + a], u[j * stride + a], taken);
            if (taken < least) least = taken, best = a;
        }
        for (int64_t a = 0; a < k; a++) v[a] = a == best;
        length = modified_lle_reject(v, u, r, stride, k);
    }
    double scale = ways ? 1 / length : 0, rest = (1 - share) * sqrt((double)ways);
    f[-1] = -sqrt((double)ways);
    for (int64_t a = 0; a < k; a++) {
        v[a] *= scale;
        f[a] = f64_fma(rest, w[a], v[a]);
    }
}

#endif
