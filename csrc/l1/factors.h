/* Two ways to solve with the active atoms: H, the inverse of their Gram matrix on F, changed by rank one; and, where
 * atoms are nearly dependent, orthogonal factors D_AF' = Q R with the columns of Q as rows of `qs`, column k of R at
 * rs + k * capacity. Accumulator: double; Gram-Schmidt is repeated until nothing is left to remove. */
#ifndef MF_L1_FACTORS_H
#define MF_L1_FACTORS_H

#include "l1/active_set.h"

/* out = H g; H is symmetric, its rows and g are zero beyond m. */
static void l1_apply_inverse(const l1_work *s, const double *g, double *out)
{
    int64_t wide = mf_round_up(s->m, 8), i = 0;
    for (; i + 8 * MF_LANES64 <= wide; i += 8 * MF_LANES64) {
        vf64 c[8] = {{0}};
        for (int64_t k = 0; k < s->m; k++) {
            const double *row = s->h + k * s->capacity + i;
            vf64 f = vf64_set(g[k]);
            for (int v = 0; v < 8; v++) c[v] = vf64_fma(f, vf64_load(row + v * MF_LANES64), c[v]);
        }
        for (int v = 0; v < 8; v++) vf64_store(out + i + v * MF_LANES64, c[v]);
    }
    for (; i < wide; i += MF_LANES64) {
        vf64 c = {0};
        for (int64_t k = 0; k < s->m; k++) c = vf64_fma(vf64_set(g[k]), vf64_load(s->h + k * s->capacity + i), c);
        vf64_store(out + i, c);
    }
}

/* H += factor q q' */
static void l1_rank_one(l1_work *s, const double *q, double factor)
{
    int64_t wide = mf_round_up(s->m, MF_LANES64);
    for (int64_t k = 0; k < s->m; k++) {
        double *row = s->h + k * s->capacity;
        vf64 f = vf64_set(factor * q[k]);
        for (int64_t i = 0; i < wide; i += MF_LANES64)
            vf64_store(row + i, vf64_fma(f, vf64_load(q + i), vf64_load(row + i)));
    }
}

/* Column k of the factors from the masked atom in v: Gram-Schmidt, repeated until nothing is left to remove. Returns
 * the length of what is new in the atom. Uses u and t; the coefficients of the rest are in column k of R. */
static double l1_qr_column(l1_work *s, int64_t k, const double *atom)
{
    int64_t ld = s->c->ld;
    double *column = s->rs + k * s->capacity, *out = s->qs + k * ld;
    l1_multiply(out, atom, s->mask, ld);
    memset(column, 0, (size_t)s->capacity * sizeof(double));
    double before = sqrt(l1_dot(out, out, ld)), after = before;
    for (int pass = 0; pass < 4 && k; pass++) {
        for (int64_t i = 0; i < k; i++) {
            double f = l1_dot(s->qs + i * ld, out, ld);
            column[i] += f;
            l1_axpy(out, -f, s->qs + i * ld, ld);
        }
        after = sqrt(l1_dot(out, out, ld));
        if (after > 0.5 * before || after == 0) break;
        before = after;
    }
    column[k] = after;
    return after;
}

static l1_result l1_qr_build(l1_work *s, int64_t from)
{
    int64_t ld = s->c->ld;
    if (!s->qs) {
        s->qs = mf_alloc(s->capacity * ld, sizeof(double));
        s->rs = mf_alloc(s->capacity * s->capacity, sizeof(double));
        if (!s->qs || !s->rs) return L1_MEMORY;
    }
    for (int64_t k = from; k < s->m; k++) {
        if (mf_poll(s->run)) return L1_STOP; /* many columns of many rows: seconds in all */
        double length = l1_qr_column(s, k, s->rows[k]);
        if (!(length > 1e-14 * s->c->norm[s->active[k]])) return L1_FAIL;
        for (int64_t i = 0; i < ld; i++) s->qs[k * ld + i] /= length;
    }
    return L1_OK;
}

/* R z = b in place, the leading m columns. */
static void l1_qr_back(const l1_work *s, int64_t m, double *z)
{
    for (int64_t k = m - 1; k >= 0; k--) {
        const double *column = s->rs + k * s->capacity;
        z[k] /= column[k];
        for (int64_t i = 0; i < k; i++) z[i] = f64_fma(-z[k], column[i], z[i]);
    }
}

/* a1, slope and rest from the factors. Nothing is solved for the coefficients at lam themselves, they come along the
 * path: among nearly dependent atoms they are ill determined, and a jump there would look like an event. */
static void l1_qr_direction(l1_work *s)
{
    int64_t ld = s->c->ld, m = s->m;
    double *y = s->g;
    memset(s->slope, 0, (size_t)ld * sizeof(double));
    for (int64_t k = 0; k < m; k++) {
        const double *column = s->rs + k * s->capacity, *qk = s->qs + k * ld;
        double b = s->sign[k] * l1_penalty(s, s->active[k]) - l1_dot(s->rows[k], s->se, ld);
        for (int64_t i = 0; i < k; i++) b = f64_fma(-column[i], y[i], b);
        y[k] = b / column[k];
        l1_axpy(s->slope, y[k], qk, ld);
    }
    memcpy(s->a1, y, (size_t)m * sizeof(double));
    l1_qr_back(s, m, s->a1);
    if (s->free_count < s->c->p) { /* on E through the coefficients, on F through the factors */
        l1_combine(s->rows, m, s->a1, ld, s->t);
        for (int64_t i = 0; i < ld; i++) s->slope[i] = s->mask[i] > 0 ? s->slope[i] : s->t[i];
    }
    l1_combine(s->rows, m, s->at, ld, s->t);
    l1_multiply(s->v, s->x, s->mask, ld);
    for (int twice = 0; twice < 2; twice++) /* so that a small rest is orthogonal to rounding of its own size */
        for (int64_t k = 0; k < m; k++) l1_axpy(s->v, -l1_dot(s->qs + k * ld, s->v, ld), s->qs + k * ld, ld);
    for (int64_t i = 0; i < ld; i++) {
        s->full[i] = s->x[i] - s->t[i];
        if (s->mask[i] > 0) s->full[i] = f64_fma(s->lam, s->slope[i], s->v[i]);
        s->rest[i] = s->mask[i] > 0 ? s->v[i] : s->full[i] - s->lam * s->slope[i];
    }
}

/* From H to orthogonal factors, at the coefficients of the present lam. */
static l1_result l1_qr_restart(l1_work *s)
{
    if (!s->qr)
        for (int64_t k = 0; k < s->m; k++) s->at[k] = s->a0[k] - s->lam * s->a1[k];
    s->qr = 1;
    l1_result code = l1_qr_build(s, 0);
    if (code == L1_OK) l1_qr_direction(s);
    return code;
}

/* The same where a0 and a1 are no longer trusted: everything is solved for anew. */
static l1_result l1_qr_recover(l1_work *s)
{
    int64_t ld = s->c->ld;
    s->qr = 1;
    l1_result code = l1_qr_build(s, 0);
    if (code != L1_OK) return code;
    l1_qr_direction(s);
    l1_multiply(s->v, s->x, s->mask, ld);
    for (int64_t k = 0; k < s->m; k++) {
        s->a0[k] = l1_dot(s->qs + k * ld, s->v, ld);
        l1_axpy(s->v, -s->a0[k], s->qs + k * ld, ld);
    }
    l1_qr_back(s, s->m, s->a0);
    for (int64_t k = 0; k < s->m; k++) s->at[k] = s->a0[k] - s->lam * s->a1[k];
    l1_qr_direction(s);
    return L1_OK;
}

#endif
