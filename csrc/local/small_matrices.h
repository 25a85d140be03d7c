/* Small symmetric matrices, one per lane of a vector: Gram matrices, solves, eigenvectors, orthonormal vectors.
 * Matrices are stored entry by entry, lower triangles row by row.
 * Accumulator: double, entries in order. A lane computes what it would compute alone, so a result does not depend on
 * the matrices beside it. Workspace: given by the caller. */
#ifndef MF_LOCAL_SMALL_MATRICES_H
#define MF_LOCAL_SMALL_MATRICES_H

#include "base/common.h"
#include "base/simd.h"

#define PROBLEMS MF_LANES64 /* matrices side by side */
#define LANES_TILE 3 /* rows are padded to whole tiles: 9 sums and 6 operands fit into 16 registers */
#define LANES_JACOBI 12 /* the largest matrix whose eigenvectors come by rotations: measured, even at 13 with AVX2 */

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
        /* Only rounding can bring a pivot below reg. */
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
    /* Only rounding can make the sum negative or 0, where reg is of that size. */
    vf64_mask sound = sum > 0;
    vf64 scale = 1 / vf64_select(sound, sum, vf64_set(1)), equal = vf64_set(1 / (double)k);
    for (int64_t i = 0; i < k; i++) w[i] = vf64_select(sound, w[i] * scale, equal);
}

/* Eigenvectors of matrices of trace 1 or 0 by cyclic Jacobi rotations, which leave the eigenvalues on the diagonal of
 * `a`; row j of `vectors` belongs to the j-th. Lanes that have converged are left as they are. */
static void lanes_jacobi(vf64 *a, int64_t rows, int64_t count, vf64 *vectors)
{
    enum { MOST_SWEEPS = 40 };
    const vf64 negligible = vf64_set(0x1p-60), one = vf64_set(1), zero = {0};
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < count; j++) vectors[i * count + j] = i == j ? one : zero;
    for (int sweep = 0, rotated = 1; rotated && sweep < MOST_SWEEPS; sweep++) {
        rotated = 0;
        for (int64_t q = 1; q < count; q++)
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

/* Householder reflections to tridiagonal form, for matrices of trace 1 or 0: reflection i is I - tau[i] v v' with v in
 * column i of `a`, from row i + 1 on. `work` holds `count` vectors. */
static void lanes_tridiagonalize(vf64 *a, int64_t rows, int64_t count, vf64 *tau, vf64 *diagonal, vf64 *off, vf64 *work)
{
    const vf64 zero = {0}, one = vf64_set(1), negligible = vf64_set(1e-60);
    for (int64_t i = 0; i + 1 < count; i++) {
        vf64 first = a[(i + 1) * rows + i], tail = zero, dot = zero;
        for (int64_t r = i + 2; r < count; r++) tail = vf64_fma(a[r * rows + i], a[r * rows + i], tail);
        vf64_mask active = tail > negligible;
        vf64 norm = vf64_sqrt(vf64_fma(first, first, tail)), beta = vf64_select(first > zero, -norm, norm);
        vf64 scale = vf64_select(active, one / vf64_select(active, first - beta, one), zero);
        off[i] = beta = vf64_select(active, beta, first);
        tau[i] = vf64_select(active, (beta - first) / vf64_select(active, beta, one), zero);
        a[(i + 1) * rows + i] = one;
        for (int64_t r = i + 2; r < count; r++) a[r * rows + i] *= scale;
        for (int64_t r = i + 1; r < count; r++) { /* work = A v, of the lower triangle */
            vf64 v = a[r * rows + i], sum = a[r * rows + r] * v;
            for (int64_t c = i + 1; c < r; c++) {
                sum = vf64_fma(a[r * rows + c], a[c * rows + i], sum);
                work[c] = vf64_fma(a[r * rows + c], v, work[c]);
            }
            work[r] = sum;
        }
        for (int64_t r = i + 1; r < count; r++) {
            work[r] *= tau[i];
            dot = vf64_fma(work[r], a[r * rows + i], dot);
        }
        dot *= tau[i] / 2;
        for (int64_t r = i + 1; r < count; r++) {
            work[r] = vf64_fma(-dot, a[r * rows + i], work[r]);
            for (int64_t c = i + 1; c <= r; c++) {
                vf64 reduced = vf64_fma(-a[r * rows + i], work[c], a[r * rows + c]);
                a[r * rows + c] = vf64_fma(-work[r], a[c * rows + i], reduced);
            }
        }
    }
    for (int64_t i = 0; i < count; i++) diagonal[i] = a[i * rows + i];
}

/* Eigenvalues d of one tridiagonal matrix of trace 1 or 0, in place, and its eigenvectors in the rows of z, by implicit
 * QL steps; off-diagonal entries e, of which the last is room to work in. */
static void tridiagonal_eigen(double *d, double *e, int64_t count, double *z)
{
    enum { MOST_STEPS = 60 };
    const double negligible = 0x1p-60, precision = 0x1p-52;
    for (int64_t i = 0; i < count * count; i++) z[i] = 0;
    for (int64_t i = 0; i < count; i++) z[i * count + i] = 1;
    e[count - 1] = 0;
    for (int64_t l = 0; l < count; l++)
        for (int step = 0; step < MOST_STEPS; step++) {
            int64_t m = l;
            while (m + 1 < count && fabs(e[m]) > fmax(negligible, precision * (fabs(d[m]) + fabs(d[m + 1])))) m++;
            if (m == l) break;
            double g = (d[l + 1] - d[l]) / (2 * e[l]), r = hypot(g, 1), s = 1, c = 1, p = 0;
            int64_t i = m - 1;
            g = d[m] - d[l] + e[l] / (g + copysign(r, g));
            for (; i >= l; i--) {
                double f = s * e[i], b = c * e[i], square = f * f + g * g;
                e[i + 1] = r = square > 1e-250 ? sqrt(square) : hypot(f, g);
                if (r == 0) {
                    d[i + 1] -= p;
                    break;
                }
                s = f / r, c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                double *restrict lower = z + i * count, *restrict upper = lower + count;
                for (int64_t k = 0; k < count; k++) {
                    double before = upper[k];
                    upper[k] = f64_fma(s, lower[k], c * before);
                    lower[k] = f64_fma(c, lower[k], -s * before);
                }
            }
            if (i < l) {
                d[l] -= p;
                e[l] = g;
            }
            e[m] = 0;
        }
}

/* One lane's `dim` largest of the eigenvalues d, in descending order, and their eigenvectors: entry f of the i-th is
 * z[(i * count + f) * step]. Overwrites d. */
static void lanes_pick(int lane, double *d, const double *z, int64_t step, int64_t count, int64_t dim, vf64 *values,
                       vf64 *leading)
{
    for (int64_t j = 0; j < dim; j++) {
        int64_t best = 0;
        for (int64_t i = 1; i < count; i++) best = d[i] > d[best] ? i : best;
        values[j][lane] = d[best];
        for (int64_t f = 0; f < count; f++) leading[j * count + f][lane] = z[(best * count + f) * step];
        d[best] = -INFINITY;
    }
}

/* The eigenvectors of the `dim` largest eigenvalues, in descending order, of matrices of trace 1 or 0; overwrites the
 * matrices. `work` holds count * (count + 4) vectors. Rotations in all lanes at once are faster for small matrices, the
 * fewer operations of the tridiagonal form, one lane after the other, for large ones. */
static void lanes_leading(vf64 *a, int64_t rows, int64_t count, int64_t dim, vf64 *values, vf64 *leading, vf64 *work)
{
    vf64 *tau = work, *diagonal = tau + count, *off = diagonal + count, *z = off + 2 * count;
    double *d = (double *)(off + count), *e = d + count;
    if (count <= LANES_JACOBI) {
        lanes_jacobi(a, rows, count, z);
        for (int lane = 0; lane < PROBLEMS; lane++) {
            for (int64_t i = 0; i < count; i++) d[i] = a[i * rows + i][lane];
            lanes_pick(lane, d, (double *)z + lane, PROBLEMS, count, dim, values, leading);
        }
        return;
    }
    lanes_tridiagonalize(a, rows, count, tau, diagonal, off, off + count);
    for (int lane = 0; lane < PROBLEMS; lane++) {
        for (int64_t i = 0; i < count; i++) d[i] = diagonal[i][lane];
        for (int64_t i = 0; i + 1 < count; i++) e[i] = off[i][lane];
        tridiagonal_eigen(d, e, count, (double *)z);
        lanes_pick(lane, d, (double *)z, 1, count, dim, values, leading);
    }
    for (int64_t j = 0; j < dim; j++)
        for (int64_t i = count - 2; i >= 0; i--) {
            vf64 *y = leading + j * count, dot = {0};
            for (int64_t r = i + 1; r < count; r++) dot = vf64_fma(a[r * rows + i], y[r], dot);
            dot *= tau[i];
            for (int64_t r = i + 1; r < count; r++) y[r] = vf64_fma(-dot, a[r * rows + i], y[r]);
        }
}

/* Takes from a vector of k entries its parts along `count` orthonormal ones and, where centred, its mean; returns the
 * square of its length then. */
static vf64 lanes_reject(vf64 *own, const vf64 *u, int64_t count, int64_t k, int centred)
{
    const vf64 share = vf64_set(1 / (double)k), zero = {0};
    vf64 mean = zero, norm2 = zero;
    for (int64_t i = 0; i < count; i++) {
        vf64 dot = zero;
        for (int64_t a = 0; a < k; a++) dot = vf64_fma(own[a], u[i * k + a], dot);
        for (int64_t a = 0; a < k; a++) own[a] = vf64_fma(-dot, u[i * k + a], own[a]);
    }
    for (int64_t a = 0; centred && a < k; a++) mean += own[a];
    mean *= share;
    for (int64_t a = 0; a < k; a++) {
        own[a] -= mean;
        norm2 = vf64_fma(own[a], own[a], norm2);
    }
    return norm2;
}

/* Brings a vector of k entries to the length 1, or to zero in the lanes that are not kept. */
static void lanes_unit(vf64 *own, int64_t k, vf64 norm2, vf64_mask kept)
{
    const vf64 one = vf64_set(1), zero = {0};
    vf64 scale = one / vf64_sqrt(vf64_select(kept, norm2, one));
    for (int64_t a = 0; a < k; a++) own[a] = vf64_select(kept, own[a] * scale, zero);
}

/* Makes `dim` vectors of k entries orthonormal and, where centred, orthogonal to the constant, those marked null to
 * zero. */
static void lanes_orthonormalize(vf64 *u, int64_t k, int64_t dim, const vf64_mask *null, int centred)
{
    for (int64_t j = 0; j < dim; j++) {
        vf64 norm2 = lanes_reject(u + j * k, u, j, k, centred);
        lanes_unit(u + j * k, k, norm2, ~null[j] & (norm2 > (vf64){0}));
    }
}

#endif
