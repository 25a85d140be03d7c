/* Products and sums of padded vectors for the homotopy.
 * Accumulators: two to eight vectors of the dtype, joined in a fixed order; multiply-adds are fused where the level
 * has them. Workspace: none. */
#ifndef MF_L1_VECTORS_H
#define MF_L1_VECTORS_H

#include "base/common.h"
#include "base/simd.h"

MF_INLINE double l1_sum(vf64 v)
{
    double total = v[0];
    for (int l = 1; l < MF_LANES64; l++) total += v[l];
    return total;
}

/* Sum over padded vectors: four accumulators, joined in a fixed order. */
MF_INLINE double l1_dot(const double *a, const double *b, int64_t n)
{
    vf64 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = 0;
    for (; i + 4 * MF_LANES64 <= n; i += 4 * MF_LANES64) {
        s0 = vf64_fma(vf64_load(a + i), vf64_load(b + i), s0);
        s1 = vf64_fma(vf64_load(a + i + MF_LANES64), vf64_load(b + i + MF_LANES64), s1);
        s2 = vf64_fma(vf64_load(a + i + 2 * MF_LANES64), vf64_load(b + i + 2 * MF_LANES64), s2);
        s3 = vf64_fma(vf64_load(a + i + 3 * MF_LANES64), vf64_load(b + i + 3 * MF_LANES64), s3);
    }
    for (; i < n; i += MF_LANES64) s0 = vf64_fma(vf64_load(a + i), vf64_load(b + i), s0);
    return l1_sum((s0 + s1) + (s2 + s3));
}

MF_INLINE float l1_sum32(vf32 v)
{
    float total = v[0];
    for (int l = 1; l < MF_LANES32; l++) total += v[l];
    return total;
}

MF_INLINE float l1_dot32(const float *a, const float *b, int64_t n)
{
    vf32 s0 = {0}, s1 = {0};
    for (int64_t i = 0; i < n; i += 2 * MF_LANES32) { /* n is a multiple of L1_PAIR32 */
        s0 = vf32_fma(vf32_load(a + i), vf32_load(b + i), s0);
        s1 = vf32_fma(vf32_load(a + i + MF_LANES32), vf32_load(b + i + MF_LANES32), s1);
    }
    return l1_sum32(s0 + s1);
}

/* Bounds the rounding of such a product of n entries, relative to the product of the lengths: that of the lanes' sums,
 * and of the sum over them. */
MF_INLINE double l1_rounding32(int64_t n)
{
    return (double)(n / MF_LANES32 + (MF_LANES32 > 8 ? MF_LANES32 : 8)) * 0x1p-23;
}

/* a.b and a.c, reading a once. */
MF_INLINE void l1_two_dots32(const float *a, const float *b, const float *c, int64_t n, float *ab, float *ac)
{
    vf32 b0 = {0}, b1 = {0}, c0 = {0}, c1 = {0};
    for (int64_t i = 0; i < n; i += 2 * MF_LANES32) {
        vf32 a0 = vf32_load(a + i), a1 = vf32_load(a + i + MF_LANES32);
        b0 = vf32_fma(a0, vf32_load(b + i), b0);
        b1 = vf32_fma(a1, vf32_load(b + i + MF_LANES32), b1);
        c0 = vf32_fma(a0, vf32_load(c + i), c0);
        c1 = vf32_fma(a1, vf32_load(c + i + MF_LANES32), c1);
    }
    *ab = l1_sum32(b0 + b1);
    *ac = l1_sum32(c0 + c1);
}

/* out = sum_k q[k] rows[k], over ld padded entries. */
static void l1_combine(const double *const *rows, int64_t m, const double *q, int64_t ld, double *out)
{
    int64_t i = 0;
    for (; i + 8 * MF_LANES64 <= ld; i += 8 * MF_LANES64) {
        vf64 s[8] = {{0}};
        for (int64_t k = 0; k < m; k++) {
            const double *row = rows[k] + i;
            vf64 f = vf64_set(q[k]);
            for (int v = 0; v < 8; v++) s[v] = vf64_fma(f, vf64_load(row + v * MF_LANES64), s[v]);
        }
        for (int v = 0; v < 8; v++) vf64_store(out + i + v * MF_LANES64, s[v]);
    }
    for (; i < ld; i += 2 * MF_LANES64) { /* ld is a multiple of L1_PAIR64 */
        vf64 s0 = {0}, s1 = {0};
        for (int64_t k = 0; k < m; k++) {
            vf64 f = vf64_set(q[k]);
            s0 = vf64_fma(f, vf64_load(rows[k] + i), s0);
            s1 = vf64_fma(f, vf64_load(rows[k] + i + MF_LANES64), s1);
        }
        vf64_store(out + i, s0);
        vf64_store(out + i + MF_LANES64, s1);
    }
}

/* out[k] = rows[k] . v; four rows share the loads of v. */
static void l1_products(const double *const *rows, int64_t m, const double *v, int64_t ld, double *out)
{
    int64_t k = 0;
    for (; k + 4 <= m; k += 4) {
        const double *r0 = rows[k], *r1 = rows[k + 1], *r2 = rows[k + 2], *r3 = rows[k + 3];
        vf64 a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};
        for (int64_t i = 0; i < ld; i += 2 * MF_LANES64) {
            vf64 v0 = vf64_load(v + i), v1 = vf64_load(v + i + MF_LANES64);
            a0 = vf64_fma(vf64_load(r0 + i), v0, a0), b0 = vf64_fma(vf64_load(r0 + i + MF_LANES64), v1, b0);
            a1 = vf64_fma(vf64_load(r1 + i), v0, a1), b1 = vf64_fma(vf64_load(r1 + i + MF_LANES64), v1, b1);
            a2 = vf64_fma(vf64_load(r2 + i), v0, a2), b2 = vf64_fma(vf64_load(r2 + i + MF_LANES64), v1, b2);
            a3 = vf64_fma(vf64_load(r3 + i), v0, a3), b3 = vf64_fma(vf64_load(r3 + i + MF_LANES64), v1, b3);
        }
        out[k] = l1_sum(a0 + b0), out[k + 1] = l1_sum(a1 + b1);
        out[k + 2] = l1_sum(a2 + b2), out[k + 3] = l1_sum(a3 + b3);
    }
    for (; k < m; k++) out[k] = l1_dot(rows[k], v, ld);
}

/* y += factor x */
MF_INLINE void l1_axpy(double *y, double factor, const double *x, int64_t n)
{
    vf64 f = vf64_set(factor);
    for (int64_t i = 0; i < n; i += MF_LANES64) vf64_store(y + i, vf64_fma(f, vf64_load(x + i), vf64_load(y + i)));
}

MF_INLINE const double *l1_multiply(double *out, const double *a, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += MF_LANES64) vf64_store(out + i, vf64_load(a + i) * vf64_load(b + i));
    return out;
}

/* Number in [0, 1) from an index: the same for every sample and thread. */
MF_INLINE double l1_hash(uint64_t i)
{
    i = (i + 1) * 0x9E3779B97F4A7C15u;
    i = (i ^ (i >> 30)) * 0xBF58476D1CE4E5B9u;
    i = (i ^ (i >> 27)) * 0x94D049BB133111EBu;
    return (double)((i ^ (i >> 31)) >> 11) * 0x1p-53;
}

#endif
