/* What is proved of a result: the relative duality gap and the residual, checked against all atoms; and the repair of
 * an end that is not proved. Accumulator: double. */
#ifndef MF_L1_CERTIFICATE_H
#define MF_L1_CERTIFICATE_H

#include "l1/path.h"

typedef struct {
    /* Relative. The residual with a penalty: its distance from the dual point; out of reach: the largest cosine between
     * the rest and an atom. */
    double gap, residual;
    int out_of_reach;
} l1_certificate;

/* One more correction of a0, along which the rest moves: so it is orthogonal to the active atoms on F to rounding of
 * its own size, not that of x, and rest / lam can be part of a dual point. With orthogonal factors it is so already. */
static void l1_clean_rest(l1_work *s)
{
    int64_t ld = s->c->ld;
    if (s->qr || !s->m) return;
    l1_multiply(s->v, s->rest, s->mask, ld);
    l1_products(s->rows, s->m, s->v, ld, s->g);
    l1_apply_inverse(s, s->g, s->u);
    l1_combine(s->rows, s->m, s->u, ld, s->t);
    l1_axpy(s->rest, -1, s->t, ld);
    for (int64_t k = 0; k < s->m; k++) s->a0[k] += s->u[k];
}

/* The solution at lam_end into q (coefficients) and v (errors), and what can be proved for the penalty `target`, with
 * the given dual point or (NULL) that of the active set. The latter has its signs at the active atoms and errors
 * however small lam is; the residual of the stored solution, divided by lam, would have rounding of x there.
 *
 * With code and errors c, residual r = x - c.atoms and a dual point y = target * theta / worst inside all bounds,
 *     primal - dual = target (|c|_1 - (x - r).theta / worst) + 1/2 |r - y|^2. */
static l1_certificate l1_certify(l1_work *s, double target, const double *dual_point)
{
    const l1_shared *c = s->c;
    int64_t ld = c->ld;
    double lam = s->lam_end, size = 0, worst = 1, *code = s->q, *e = s->v, *r = s->t;
    if (target > 0) l1_clean_rest(s);
    int settled = lam == 0 || l1_rest_size(s) == 0;
    for (int64_t k = 0; k < s->m; k++) {
        code[k] = s->qr ? s->at[k] : f64_fma(-lam, s->a1[k], s->a0[k]);
        if (fabs(code[k]) * c->norm[s->active[k]] <= 1e-15 * s->x_norm) code[k] = 0;
        size += fabs(code[k]);
    }
    l1_combine(s->rows, s->m, code, ld, r);
    if (dual_point) memcpy(s->theta, dual_point, (size_t)ld * sizeof(double));
    else l1_theta(s, lam, settled, s->theta);
    double dual = 0, square = 0, y_square = 0, across = 0, rest = 0;
    for (int64_t i = 0; i < ld; i++) {
        double sign = s->se[i] > 0 ? 1 : s->se[i] < 0 ? -1 : 0, whole = s->x[i] - r[i];
        e[i] = s->mask[i] > 0 ? 0 : whole - lam * c->scale * sign;
        if (fabs(e[i]) <= 1e-15 * s->x_norm) e[i] = 0;
        r[i] = whole - e[i];
        size += c->scale * fabs(e[i]);
        square += r[i] * r[i];
        dual += (s->x[i] - r[i]) * s->theta[i];
        across += r[i] * s->theta[i];
        y_square += s->theta[i] * s->theta[i];
        rest += s->mask[i] * s->rest[i] * s->rest[i];
    }
    /* A rest that stays when lam goes to 0 leaves its own rounding in theta = rest / lam + slope. So much is not scaled
     * away but added to the gap: it is that of penalties higher by it. */
    double raw = 1, rounding = target > 0 && !settled ? 8 * DBL_EPSILON * sqrt(rest) / lam : 0;
    for (int64_t i = 0; i < ld && c->errors; i++) {
        raw = fmax(raw, fabs(s->theta[i]) / c->scale);
        worst = fmax(worst, (fabs(s->theta[i]) - rounding) / c->scale);
    }
    for (int64_t i = 0; i < ld; i++) s->theta32[i] = (float)s->theta[i];
    float margin = (float)(l1_rounding32(c->ldf) * sqrt(y_square));
    for (int64_t j = 0; j < c->atoms; j++) {
        float rough = fabsf(l1_dot32(c->df + j * c->ldf, s->theta32, c->ldf));
        if (rough + margin <= c->limit[j] || j == s->excluded) continue;
        double value = fabs(l1_dot(c->d + j * ld, s->theta, ld));
        raw = fmax(raw, value), worst = fmax(worst, value - rounding * c->norm[j]);
    }
    l1_certificate proof = {0, sqrt(square) / s->x_norm, 0};
    if (target > 0) {
        double apart = 0, noise = s->x_norm, step = 1 / worst; /* everything divided by target */
        for (int64_t k = 0; k < s->m; k++) noise += fabs(code[k]) * c->norm[s->active[k]];
        for (int64_t i = 0; i < ld; i++) {
            double difference = r[i] - target * step * s->theta[i];
            apart += difference * difference;
        }
        apart = fmax(0, sqrt(apart) - L1_NOISE * noise); /* r itself is not known better */
        double gap = size - step * dual + size * (raw - worst) + 0.5 * apart * (apart / target);
        proof.gap = gap / (gap + step * (dual + across) - 0.5 * target * step * step * y_square);
        proof.residual = apart / (target * sqrt(y_square)); /* the gap has only its square */
    } else {
        proof.gap = size > 0 ? (size - dual / worst) / size : 0;
        if (!c->errors && proof.residual > fmax(c->tol, 1e-7)) { /* closer than that it may be rounding */
            proof.out_of_reach = 1;
            double noise = s->x_norm, length = sqrt(square);
            across = 0;
            for (int64_t k = 0; k < s->m; k++) noise += fabs(code[k]) * c->norm[s->active[k]];
            for (int64_t j = 0; j < c->atoms; j++)
                if (c->norm[j] > 0 && j != s->excluded)
                    across = fmax(across, fabs(l1_dot(c->d + j * ld, r, ld)) / c->norm[j]);
            proof.residual = fmax(0, across - 16 * DBL_EPSILON * noise) / length;
        }
    }
    return proof;
}

/* Non-negative least squares (Lawson and Hanson) over the atoms that the dual point in theta_end makes tight: any exact
 * combination of those with their signs is optimal. For samples whose rest is as small as the differences between
 * atoms, which lam no longer distinguishes. Starts from the active set. */
static l1_result l1_tight_fit(l1_work *s)
{
    enum { MOST = 500 };
    const l1_shared *c = s->c;
    int64_t ld = c->ld, tight = 0;
    for (int64_t j = 0; j < c->atoms; j++)
        if (j != s->excluded && tight < MOST && fabs(l1_dot(c->d + j * ld, s->theta_end, ld)) >= 1 - 1e-8)
            s->due[tight++] = j;
    for (int64_t round = 0; round < 3 * tight + 10; round++) {
        l1_combine(s->rows, s->m, s->at, ld, s->t);
        for (int64_t i = 0; i < ld; i++) s->v[i] = s->mask[i] * (s->x[i] - s->t[i]);
        if (l1_dot(s->v, s->v, ld) <= 1e-26 * s->x_norm * s->x_norm) break;
        if (!l1_grow(s)) return L1_MEMORY;
        int64_t enter = -1;
        double best = 1e-14 * s->x_norm, sign = 0, *column = s->qs + s->m * ld;
        for (int64_t n = 0; n < tight; n++) { /* by the part that is new: it alone distinguishes them */
            int64_t j = s->due[n];
            if (s->state[j]) continue;
            if (mf_poll(s->run)) return L1_STOP;
            double side = l1_dot(c->d + j * ld, s->theta_end, ld) < 0 ? -1 : 1;
            double length = l1_qr_column(s, s->m, c->d + j * ld);
            double gain = length > 1e-13 * c->norm[j] ? side * l1_dot(column, s->v, ld) / length : 0;
            if (gain > best) best = gain, enter = n, sign = side;
        }
        if (enter < 0) break;
        int64_t j = s->due[enter];
        double length = l1_qr_column(s, s->m, c->d + j * ld);
        for (int64_t i = 0; i < ld; i++) column[i] /= length;
        l1_append(s, j, sign);
        for (int full = 0; !full && s->m;) {
            l1_multiply(s->v, s->x, s->mask, ld);
            for (int64_t k = 0; k < s->m; k++) {
                s->u[k] = l1_dot(s->qs + k * ld, s->v, ld);
                l1_axpy(s->v, -s->u[k], s->qs + k * ld, ld);
            }
            l1_qr_back(s, s->m, s->u);
            double step = 1;
            for (int64_t k = 0; k < s->m; k++)
                if (s->sign[k] * s->u[k] <= 0) step = fmin(step, s->at[k] / (s->at[k] - s->u[k]));
            full = !(step < 1);
            int64_t first = s->m;
            for (int64_t k = s->m - 1; k >= 0; k--) {
                double moved = s->at[k] + step * (s->u[k] - s->at[k]);
                int gone = s->sign[k] * s->u[k] <= 0 && s->sign[k] * moved <= 1e-15;
                s->at[k] = moved;
                if (gone) l1_erase(s, k), first = k;
            }
            l1_result code = first < s->m ? l1_qr_build(s, first) : L1_OK;
            if (code != L1_OK) return code;
            if (!full && first == s->m && s->at[s->m - 1] == 0) return L1_FAIL;
        }
    }
    return L1_OK;
}

/* The end of a path with orthogonal factors, where the coefficients that came along it are not good enough: those the
 * active set determines, and then without the atoms whose sign is wrong. Rounding decides about such atoms in a
 * dictionary with nearly dependent ones; the dual point of the full set, or of the smaller one, still proves it.
 * Returns L1_OK, with q and v those of the active set that `proof` and `error` are about, or what ends the call. */
static l1_result l1_settle(l1_work *s, double target, l1_certificate *proof, double *error)
{
    int64_t ld = s->c->ld;
    l1_result code = l1_qr_recover(s);
    if (l1_ends_call(code)) return code;
    if (code != L1_OK) return L1_OK; /* q and v are as they were */
    *proof = l1_certify(s, target, NULL);
    *error = fmax(fabs(proof->gap), proof->residual);
    if (target > 0 || *error <= s->c->tol) return L1_OK;
    memcpy(s->theta_end, s->theta, (size_t)ld * sizeof(double));
    for (int64_t before = s->m + 1; s->m < before && code == L1_OK;) {
        before = s->m;
        for (int64_t k = s->m - 1; k >= 0; k--)
            if (s->sign[k] * s->at[k] <= 0) l1_erase(s, k);
        if (s->m < before) code = l1_qr_recover(s);
    }
    for (int step = 0; step < 3 && !(*error <= s->c->tol); step++) {
        if (step == 2 && code == L1_OK) code = l1_tight_fit(s); /* where it fails, `at` still fits the active set */
        else if (step == 2) break;
        if (l1_ends_call(code)) return code;
        *proof = l1_certify(s, target, step == 1 ? NULL : s->theta_end);
        *error = fmax(fabs(proof->gap), proof->residual);
        if (step == 1) memcpy(s->theta_end, s->theta, (size_t)ld * sizeof(double));
    }
    return L1_OK;
}

#endif
