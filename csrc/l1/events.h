/* What happens at an event: an atom enters or leaves, a coordinate gets an error or becomes free. Everything moves
 * along one vector. Accumulator: double; `l1_refresh` corrects the drift of many such moves. */
#ifndef MF_L1_EVENTS_H
#define MF_L1_EVENTS_H

#include "l1/factors.h"

/* Moves everything along (q, D_A'q) = (q, t). */
static void l1_shift(l1_work *s, double alpha, double beta)
{
    int64_t wide = mf_round_up(s->m, MF_LANES64), ld = s->c->ld;
    l1_axpy(s->a0, alpha, s->q, wide);
    l1_axpy(s->a1, beta, s->q, wide);
    vf64 a = vf64_set(-alpha), b = vf64_set(beta);
    for (int64_t i = 0; i < ld; i += MF_LANES64) {
        vf64 t = vf64_load(s->t + i);
        vf64_store(s->rest + i, vf64_fma(a, t, vf64_load(s->rest + i)));
        vf64_store(s->slope + i, vf64_fma(b, t, vf64_load(s->slope + i)));
    }
}

/* Coordinate i gets an error of this sign, or becomes free (sign 0). */
static l1_result l1_coordinate(l1_work *s, int64_t i, double sign)
{
    double out = sign != 0 ? 1 : -1, old = s->se[i];
    l1_set_coordinate(s, i, sign);
    if (s->qr) return l1_qr_restart(s);
    if (!s->m) return L1_OK;
    memset(s->g, 0, (size_t)s->capacity * sizeof(double));
    for (int64_t k = 0; k < s->m; k++) s->g[k] = s->rows[k][i];
    l1_apply_inverse(s, s->g, s->q);
    double gamma = 1 - out * l1_dot(s->g, s->q, mf_round_up(s->m, MF_LANES64));
    if (!(gamma > 1e-8)) return l1_qr_restart(s);
    l1_combine(s->rows, s->m, s->q, s->c->ld, s->t);
    double kick = sign != 0 ? s->se[i] : old;
    l1_rank_one(s, s->q, out / gamma);
    l1_shift(s, -out * s->rest[i] / gamma, out * (s->slope[i] - kick) / gamma);
    return L1_OK;
}

/* Atom j enters; L1_DEPENDENT leaves the state as it was, with its combination of the active atoms in u. */
static l1_result l1_add(l1_work *s, int64_t j, double sign)
{
    int64_t ld = s->c->ld, m = s->m;
    const double *atom = s->c->d + j * ld;
    if (!l1_grow(s)) return L1_MEMORY;
    if (!s->qr) {
        l1_multiply(s->v, atom, s->mask, ld);
        double whole = l1_dot(s->v, s->v, ld), schur = whole;
        memcpy(s->t, atom, (size_t)ld * sizeof(double));
        memset(s->q, 0, (size_t)s->capacity * sizeof(double));
        memset(s->g, 0, (size_t)s->capacity * sizeof(double));
        for (int pass = 0; pass < 2 && m && (!pass || schur < 1e-3 * whole); pass++) {
            l1_products(s->rows, m, s->v, ld, s->g);
            l1_apply_inverse(s, s->g, s->u);
            for (int64_t k = 0; k < m; k++) s->q[k] -= s->u[k];
            l1_combine(s->rows, m, s->u, ld, s->v);
            l1_axpy(s->t, -1, s->v, ld);
            l1_multiply(s->v, s->t, s->mask, ld);
            schur = l1_dot(s->v, s->v, ld);
        }
        if (schur > 1e-8 * whole) {
            double alpha = l1_dot(s->v, s->rest, ld) / schur;
            double now = l1_dot(atom, s->se, ld) + l1_dot(atom, l1_multiply(s->v, s->slope, s->mask, ld), ld);
            l1_append(s, j, sign);
            s->q[m] = 1;
            l1_rank_one(s, s->q, 1 / schur);
            l1_shift(s, alpha, (sign * l1_penalty(s, j) - now) / schur);
            return L1_OK;
        }
        l1_result code = l1_qr_restart(s);
        if (code != L1_OK) return code;
    }
    double length = l1_qr_column(s, m, atom);
    if (!(length > 1e-12 * s->c->norm[j])) {
        memcpy(s->u, s->rs + m * s->capacity, (size_t)m * sizeof(double));
        l1_qr_back(s, m, s->u);
        return L1_DEPENDENT;
    }
    for (int64_t i = 0; i < ld; i++) s->qs[m * ld + i] /= length;
    l1_append(s, j, sign);
    l1_qr_direction(s);
    return L1_OK;
}

static l1_result l1_drop(l1_work *s, int64_t k)
{
    if (s->qr) {
        l1_erase(s, k);
        l1_result code = l1_qr_build(s, k);
        if (code == L1_OK) l1_qr_direction(s);
        return code;
    }
    int64_t m = s->m, cap = s->capacity;
    double pivot = s->h[k * cap + k];
    memcpy(s->q, s->h + k * cap, (size_t)cap * sizeof(double));
    l1_combine(s->rows, m, s->q, s->c->ld, s->t);
    l1_rank_one(s, s->q, -1 / pivot);
    l1_shift(s, -s->a0[k] / pivot, -s->a1[k] / pivot);
    for (int64_t i = 0; i < m; i++) { /* the last row and column take the place of number k */
        double *row = s->h + i * cap;
        row[k] = row[m - 1], row[m - 1] = 0;
    }
    memcpy(s->h + k * cap, s->h + (m - 1) * cap, (size_t)cap * sizeof(double));
    memset(s->h + (m - 1) * cap, 0, (size_t)cap * sizeof(double));
    int64_t j = s->active[k];
    s->state[j] = 0, s->line[j] = -FLT_MAX;
    s->active[k] = s->active[m - 1], s->rows[k] = s->rows[m - 1], s->sign[k] = s->sign[m - 1];
    s->a0[k] = s->a0[m - 1], s->a1[k] = s->a1[m - 1], s->a0[m - 1] = s->a1[m - 1] = 0;
    s->pin[k] = s->pin[m - 1];
    s->m--;
    return L1_OK;
}

/* Atom j is past its bound but a combination (u) of the active atoms on F: exchange it at this lam, moving along the
 * direction that leaves the residual as it is until a coefficient or an error becomes zero. */
static l1_result l1_exchange(l1_work *s, int64_t j, double sign)
{
    int64_t ld = s->c->ld, leave = -1, leave_coordinate = -1;
    double best = INFINITY;
    const double *atom = s->c->d + j * ld;
    for (int64_t k = 0; k < s->m; k++) {
        double toward = s->sign[k] * sign * s->u[k], size = s->sign[k] * s->at[k];
        if (toward * s->c->norm[s->active[k]] > 1e-9 * s->c->norm[j] && fmax(size, 0) < best * toward)
            best = fmax(size, 0) / toward, leave = k;
    }
    l1_combine(s->rows, s->m, s->u, ld, s->t);
    for (int64_t i = 0; i < s->c->p; i++) {
        if (s->mask[i] > 0) continue;
        double e_sign = s->se[i] > 0 ? 1 : -1, toward = e_sign * sign * (atom[i] - s->t[i]);
        double size = e_sign * (s->full[i] - s->lam * s->se[i]);
        if (toward > 1e-9 * s->c->norm[j] && fmax(size, 0) < best * toward)
            best = fmax(size, 0) / toward, leave = -1, leave_coordinate = i;
    }
    if (leave < 0 && leave_coordinate < 0) return L1_FAIL;
    for (int64_t k = 0; k < s->m; k++) s->at[k] -= best * sign * s->u[k];
    l1_result code = leave >= 0 ? l1_drop(s, leave) : l1_coordinate(s, leave_coordinate, 0);
    if (code == L1_OK) code = l1_add(s, j, sign);
    if (code != L1_OK) return code;
    s->at[s->m - 1] = best * sign;
    l1_qr_direction(s);
    return L1_OK;
}

/* Corrects a0 and a1 by their residuals and recomputes what follows from them. False where H is not good enough. */
static int l1_refresh(l1_work *s, int passes)
{
    int64_t ld = s->c->ld, m = s->m;
    if (!m) return 1;
    double first = 0;
    memset(s->g, 0, (size_t)s->capacity * sizeof(double));
    for (int pass = 0; pass <= passes; pass++) {
        l1_combine(s->rows, m, s->a0, ld, s->t);
        for (int64_t i = 0; i < ld; i++) s->rest[i] = s->x[i] - s->t[i];
        l1_combine(s->rows, m, s->a1, ld, s->slope);
        if (pass == passes) break;
        l1_multiply(s->v, s->rest, s->mask, ld);
        l1_products(s->rows, m, s->v, ld, s->g);
        l1_apply_inverse(s, s->g, s->q);
        for (int64_t k = 0; k < m; k++) s->a0[k] += s->q[k];
        l1_multiply(s->v, s->slope, s->mask, ld);
        for (int64_t i = 0; i < ld; i++) s->v[i] += s->se[i];
        l1_products(s->rows, m, s->v, ld, s->g);
        double worst = 0;
        for (int64_t k = 0; k < m; k++) {
            s->g[k] = s->sign[k] * l1_penalty(s, s->active[k]) - s->g[k];
            worst = fmax(worst, fabs(s->g[k]));
        }
        l1_apply_inverse(s, s->g, s->q);
        for (int64_t k = 0; k < m; k++) s->a1[k] += s->q[k];
        if (!(worst <= 1e-6)) return 0; /* drift: the path may go wrong, so build it anew */
        if (pass && !(worst <= fmax(1e-3 * first, 1e-10))) return 0;
        first = worst;
    }
    return 1;
}

/* H from the factors, where they are well conditioned. */
static int l1_inverse_from_qr(l1_work *s)
{
    int64_t m = s->m;
    for (int64_t k = 0; k < m; k++)
        if (!(s->rs[k * s->capacity + k] > 1e-4 * s->c->norm[s->active[k]])) return 0;
    memset(s->h, 0, (size_t)(s->capacity * s->capacity) * sizeof(double));
    for (int64_t k = 0; k < m; k++) { /* H e_k = R^-1 R^-T e_k */
        if (mf_poll(s->run)) return 0;
        double *z = s->h + k * s->capacity;
        for (int64_t r = k; r < m; r++) {
            const double *column = s->rs + r * s->capacity;
            double b = r == k;
            for (int64_t i = k; i < r; i++) b = f64_fma(-column[i], z[i], b);
            z[r] = b / column[r];
        }
        l1_qr_back(s, m, z);
    }
    for (int64_t k = 0; k < m; k++)
        for (int64_t i = 0; i < k; i++) {
            double mean = 0.5 * (s->h[k * s->capacity + i] + s->h[i * s->capacity + k]);
            s->h[k * s->capacity + i] = s->h[i * s->capacity + k] = mean;
        }
    s->qr = 0;
    return l1_refresh(s, 1);
}

#endif
