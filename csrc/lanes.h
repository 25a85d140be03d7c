/* Small symmetric problems, one per lane of a vector: matrices are stored entry by entry, lower triangles row by row.
 * A lane computes what it would compute alone, so a result does not depend on its company. */
#ifndef MF_LANES_H
#define MF_LANES_H

#include "common.h"
#include "simd.h"

#define PROBLEMS ((int)(MF_VBYTES / sizeof(double)))
#define LANES_TILE 3 /* rows are padded to whole tiles: 9 sums and 6 operands fit into 16 registers */

MF_INLINE vf64 lanes_abs(vf64 a) { return vf64_max(a, -a); }

/* g = z z' (or g + z z') for `rows` rows, a multiple of the tile, `stride` apart. */
static void lanes_gram(const vf64 *z, int64_t rows, int64_t length, int64_t stride, int add, vf64 *g)
{
    enum { TILE = LANES_TILE };
    for (int64_t a = 0; a < rows; a += TILE)
        for (int64_t b = 0; b <= a; b += TILE) {
            const vf64 *left = z + a * stride, *right = z + b * stride;
            vf64 sum[TILE][TILE];
            for (int i = 0; i < TILE; i++)
                for (int j = 0; j < TILE; j++) sum[i][j] = (vf64){0};
            for (int64_t f = 0; f < length; f++)
                for (int i = 0; i < TILE; i++)
                    for (int j = 0; j < TILE; j++)
                        sum[i][j] = vf64_fma(left[i * stride + f], right[j * stride + f], sum[i][j]);
            for (int i = 0; i < TILE; i++)
                for (int j = 0; j < TILE; j++) {
                    vf64 *to = g + (a + i) * rows + b + j;
                    *to = add ? *to + sum[i][j] : sum[i][j];
                }
        }
}

static vf64 lanes_trace(const vf64 *g, int64_t rows, int64_t count)
{
    vf64 sum = {0};
    for (int64_t a = 0; a < count; a++) sum += g[a * rows + a];
    return sum;
}

/* Lower triangle of g divided by its trace; zero matrices stay zero. */
static void lanes_normalize(vf64 *g, int64_t rows, int64_t count, vf64 trace)
{
    vf64_mask some = trace > 0;
    vf64 factor = vf64_select(some, 1 / vf64_select(some, trace, vf64_set(1)), (vf64){0});
    for (int64_t a = 0; a < count; a++)
        for (int64_t b = 0; b <= a; b++) g[a * rows + b] *= factor;
}

/* Solves (g + reg I) w = 1 for a positive semidefinite g of trace 1 or 0, by L D L', and brings w to the sum 1.
 * Overwrites g; `column` holds k vectors. */
static void lanes_barycenter(vf64 *g, int64_t rows, int64_t k, double reg, vf64 *column, vf64 *w)
{
    vf64 least = vf64_set(reg), sum = {0};
    for (int64_t j = 0; j < k; j++) {
        /* No pivot is below reg but by rounding. */
        vf64 inverse = 1 / vf64_max(g[j * rows + j] + least, least);
        for (int64_t i = j + 1; i < k; i++) {
            vf64 raw = g[i * rows + j], factor = raw * inverse;
            column[i] = raw;
            for (int64_t b = j + 1; b <= i; b++) g[i * rows + b] = vf64_fma(-factor, column[b], g[i * rows + b]);
            g[i * rows + j] = factor;
        }
        g[j * rows + j] = inverse;
    }
    for (int64_t i = 0; i < k; i++) {
        vf64 y = vf64_set(1);
        for (int64_t j = 0; j < i; j++) y = vf64_fma(-g[i * rows + j], w[j], y);
        w[i] = y;
    }
    for (int64_t i = 0; i < k; i++) w[i] *= g[i * rows + i];
    for (int64_t i = k - 1; i >= 0; i--) {
        for (int64_t j = 0; j < i; j++) w[j] = vf64_fma(-g[i * rows + j], w[i], w[j]);
        sum += w[i];
    }
    /* The sum is positive but by rounding, for a reg of its size. */
    vf64_mask sound = sum > 0;
    vf64 scale = 1 / vf64_select(sound, sum, vf64_set(1)), equal = vf64_set(1 / (double)k);
    for (int64_t i = 0; i < k; i++) w[i] = vf64_select(sound, w[i] * scale, equal);
}

/* Eigenvectors of matrices of trace 1 or 0 by cyclic Jacobi rotations, which leave the eigenvalues on the diagonal of
 * `a`; row j of `vectors` belongs to the j-th. Lanes that have converged are left as they are. */
static void lanes_eigen(vf64 *a, int64_t rows, int64_t count, vf64 *vectors, mf_run *run)
{
    enum { MOST_SWEEPS = 40, LARGE = 32 };
    const vf64 negligible = vf64_set(0x1p-60), one = vf64_set(1), zero = {0};
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < count; j++) vectors[i * count + j] = i == j ? one : zero;
    for (int sweep = 0, rotated = 1; rotated && sweep < MOST_SWEEPS; sweep++) {
        rotated = 0;
        for (int64_t q = 1; q < count; q++) {
            if (count > LARGE && mf_poll(run)) return;
            for (int64_t p = 0; p < q; p++) {
                vf64 *row_p = a + p * rows, *row_q = a + q * rows;
                vf64 off = row_q[p], gap = row_q[q] - row_p[p];
                vf64_mask active = lanes_abs(off) > negligible;
                if (!vf64_any(active)) continue;
                rotated = 1;
                vf64 root = vf64_sqrt(vf64_fma(gap, gap, 4 * off * off)) + lanes_abs(gap);
                vf64 t = vf64_select(gap < zero, -2 * off, 2 * off) / vf64_select(active, root, one);
                t = vf64_select(active, t, zero);
                vf64 c = one / vf64_sqrt(vf64_fma(t, t, one)), s = t * c;
                row_p[p] = vf64_fma(-t, off, row_p[p]);
                row_q[q] = vf64_fma(t, off, row_q[q]);
                row_q[p] = vf64_select(active, zero, off);
#define ROTATE(x, y)                                                                                                 \
    do {                                                                                                             \
        vf64 before = (x);                                                                                           \
        (x) = vf64_fma(c, before, -s * (y));                                                                         \
        (y) = vf64_fma(s, before, c * (y));                                                                          \
    } while (0)
                for (int64_t r = 0; r < p; r++) ROTATE(row_p[r], row_q[r]);
                for (int64_t r = p + 1; r < q; r++) ROTATE(a[r * rows + p], row_q[r]);
                for (int64_t r = q + 1; r < count; r++) ROTATE(a[r * rows + p], a[r * rows + q]);
                for (int64_t r = 0; r < count; r++) ROTATE(vectors[p * count + r], vectors[q * count + r]);
#undef ROTATE
            }
        }
    }
}

/* The eigenvectors of the `dim` largest eigenvalues, in descending order, with their values. */
static void lanes_leading(const vf64 *a, int64_t rows, int64_t count, const vf64 *vectors, int64_t dim, vf64 *values,
                          vf64 *leading, double *work)
{
    for (int lane = 0; lane < PROBLEMS; lane++) {
        for (int64_t i = 0; i < count; i++) work[i] = a[i * rows + i][lane];
        for (int64_t j = 0; j < dim; j++) {
            int64_t best = 0;
            for (int64_t i = 1; i < count; i++) best = work[i] > work[best] ? i : best;
            values[j][lane] = work[best];
            for (int64_t f = 0; f < count; f++) leading[j * count + f][lane] = vectors[best * count + f][lane];
            work[best] = -INFINITY;
        }
    }
}

/* Makes `dim` vectors of k entries orthonormal and orthogonal to the constant, those marked null to zero. */
static void lanes_orthonormalize(vf64 *u, int64_t k, int64_t dim, const vf64_mask *null)
{
    const vf64 share = vf64_set(1 / (double)k), one = vf64_set(1), zero = {0};
    for (int64_t j = 0; j < dim; j++) {
        vf64 *own = u + j * k, mean = zero, norm2 = zero;
        for (int64_t i = 0; i < j; i++) {
            vf64 dot = zero;
            for (int64_t a = 0; a < k; a++) dot = vf64_fma(own[a], u[i * k + a], dot);
            for (int64_t a = 0; a < k; a++) own[a] = vf64_fma(-dot, u[i * k + a], own[a]);
        }
        for (int64_t a = 0; a < k; a++) mean += own[a];
        mean *= share;
        for (int64_t a = 0; a < k; a++) {
            own[a] -= mean;
            norm2 = vf64_fma(own[a], own[a], norm2);
        }
        vf64_mask kept = ~null[j] & (norm2 > zero);
        vf64 scale = one / vf64_sqrt(vf64_select(kept, norm2, one));
        for (int64_t a = 0; a < k; a++) own[a] = vf64_select(kept, own[a] * scale, zero);
    }
}

#endif
