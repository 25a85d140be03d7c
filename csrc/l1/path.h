/* The path from lam_max down: the first event, the next one, and the loop over them. Accumulator: double. */
#ifndef MF_L1_PATH_H
#define MF_L1_PATH_H

#include "l1/events.h"
#include "l1/screening.h"

/* How much lam falls until `room`, which shrinks at this speed, is used up. What is past zero already but comes back
 * within the share `early` of lam is left alone: it has only entered a little early. */
MF_INLINE double l1_until(double room, double speed, double early, double slack)
{
    if (speed > 0) return fmax(room / speed, 0);
    return room - early * speed < -slack ? 0 : INFINITY;
}

/* The next event among coordinates and active atoms. With `settled` the rest on F counts as zero. */
static l1_event l1_next(const l1_work *s, int settled)
{
    l1_event event = {0, s->lam, 0, L1_END, -1};
    double slack = s->eta * s->lam * s->c->scale + L1_NOISE, early = s->early * s->lam, first = s->lam;
    for (int64_t k = 0; k < s->m; k++) {
        if (s->lam > s->pin[k]) continue;
        double at = s->qr ? s->at[k] : f64_fma(-s->lam, s->a1[k], s->a0[k]);
        double after = l1_until(s->sign[k] * at, -s->sign[k] * s->a1[k], early, slack / s->c->norm[s->active[k]]);
        if (after < first) first = after, event = (l1_event){s->lam - after, after, 0, L1_DROP, k};
    }
    if (!s->c->errors) return event;
    vf64 lam = vf64_set(s->lam), zero = {0}, none = vf64_set(INFINITY), best = vf64_set(first);
    int64_t found[8] = {0};
    int any = 0;
    for (int64_t i = 0; i < s->c->ld; i += MF_LANES64) {
        vf64 side = vf64_load(s->side + i), rest = vf64_load(s->rest + i), se = vf64_load(s->se + i);
        vf64 slope = vf64_load(s->slope + i), value = s->qr ? vf64_load(s->full + i) : vf64_fma(lam, slope, rest);
        vf64_mask on_f = (vf64_mask)(side > zero);
        if (settled) value = vf64_select(on_f, lam * slope, value);
        vf64 decides = vf64_select(on_f, settled ? slope : rest, se);
        vf64 sign = vf64_select((vf64_mask)(decides < zero), vf64_set(-1), vf64_set(1));
        vf64 weight = vf64_load(s->weight + i);
        /* On F the distance of the residual from its bound, on E that of the error from zero. */
        vf64 room = side * (lam * weight - sign * value), speed = side * (weight - sign * slope);
        vf64 after = room / speed;
        after = vf64_select((vf64_mask)(after > zero), after, zero);
        vf64 past = vf64_select((vf64_mask)(room - early * speed < vf64_set(-slack)), zero, none);
        after = vf64_select((vf64_mask)(speed > zero), after, past);
        vf64_mask better = (vf64_mask)(after < best);
        if (vf64_any(better)) {
            any = 1;
            for (int l = 0; l < MF_LANES64; l++) found[l] = better[l] ? i + l : found[l];
            best = vf64_select(better, after, best);
        }
    }
    for (int l = 0; l < MF_LANES64 && any; l++)
        if (best[l] < first) {
            int64_t i = found[l];
            double sign = s->mask[i] > 0 ? ((settled ? s->slope[i] : s->rest[i]) < 0 ? -1 : 1) : 0;
            first = best[l], event = (l1_event){s->lam - best[l], best[l], sign, L1_COORDINATE, i};
        }
    return event;
}

/* theta = residual / lam at a lam of the present segment. */
static void l1_theta(const l1_work *s, double lam, int settled, double *theta)
{
    double inverse = settled ? 0 : 1 / lam;
    for (int64_t i = 0; i < s->c->ld; i += MF_LANES64) {
        vf64 mask = vf64_load(s->mask + i);
        vf64 value = vf64_fma(vf64_set(inverse), vf64_load(s->rest + i), vf64_load(s->slope + i));
        vf64_store(theta + i, vf64_fma(mask, value, vf64_load(s->se + i)));
    }
}

/* How far apart `to` and `from` are outside the head, rounded up; the head of `to` into `head_to`. */
static double l1_way(l1_work *s, const double *from, const double *head_from, const double *to, double *head_to)
{
    int64_t ld = s->c->ld;
    vf64 sum = {0}, size = {0};
    for (int64_t i = 0; i < ld; i += MF_LANES64) {
        vf64 b = vf64_load(to + i), difference = b - vf64_load(from + i);
        sum = vf64_fma(difference, difference, sum);
        size = vf64_fma(b, b, size);
    }
    double all = l1_sum(sum), inside = 0;
    if (s->c->heads) l1_products(s->c->basis_rows, s->c->heads, to, ld, head_to);
    for (int64_t k = 0; k < s->c->heads; k++) inside += (head_to[k] - head_from[k]) * (head_to[k] - head_from[k]);
    s->theta_max = fmax(s->theta_max, sqrt(l1_sum(size)));
    return sqrt(fmax(0, all - inside) + 1e-12 * all);
}

/* Size of the rest on F relative to the sample: 0 where it is only rounding. Then the residual shrinks with lam and
 * theta stays. */
static double l1_rest_size(const l1_work *s)
{
    if (s->m >= s->free_count) return 0;
    vf64 sum = {0};
    for (int64_t i = 0; i < s->c->ld; i += MF_LANES64) {
        vf64 value = vf64_load(s->mask + i) * vf64_load(s->rest + i);
        sum = vf64_fma(value, value, sum);
    }
    double size = sqrt(l1_sum(sum)) / s->x_norm;
    return size > s->rest_noise ? size : 0;
}

/* Follows the path down to lam_end. On success the active set is that of lam_end. */
static l1_result l1_follow(l1_work *s)
{
    const l1_shared *c = s->c;
    int64_t ld = c->ld, p = c->p, still = 0, steps = 0;
    int64_t most = 400 + 40 * (p + mf_min(p, c->atoms)), most_still = 100 + 4 * p;
    double ratio = 0.9;
    memset(s->theta, 0, (size_t)ld * sizeof(double));
    for (int64_t k = 0; k < L1_HEADS; k++) s->head_theta[k] = 0;
    s->path = 0, s->theta_max = 0;
    for (int64_t j = 0; j < c->padded; j++)
        s->line[j] = j < c->atoms && !s->state[j] ? -FLT_MAX : FLT_MAX, s->ref[j] = 0;
    for (; steps < most && still < most_still; steps++) {
        if ((s->qr || steps % 16 == 0) && mf_poll(s->run)) return L1_STOP;
        if (!s->qr && steps % L1_REFRESH == L1_REFRESH - 1 && !l1_refresh(s, 1)) {
            l1_result code = l1_qr_recover(s);
            if (code == L1_OK && !l1_inverse_from_qr(s)) code = l1_qr_recover(s);
            if (code != L1_OK) return code;
        }
        double size = l1_rest_size(s);
        int settled = size == 0;
        double floor = 1e-14 * s->lam0 * (s->qr && !settled ? fmin(1, size) : 1); /* below it lam is rounding */
        l1_event event = l1_next(s, settled);
        if (event.lam <= fmax(s->lam_end, floor)) event = (l1_event){s->lam_end, s->lam - s->lam_end, 0, L1_END, -1};
        /* Where no coordinate limits the step, theta could run far beyond the next atom: look in shorter steps. */
        if (!settled && (!c->errors || event.kind == L1_END) && event.lam < ratio * s->lam && ratio * s->lam > floor)
            event = (l1_event){ratio * s->lam, s->lam - ratio * s->lam, 0, L1_MOVE, -1};
        double end = fmax(event.lam, floor);
        l1_theta(s, end, settled, s->theta_end);
        double way = l1_way(s, s->theta, s->head_theta, s->theta_end, s->head_end);
        l1_find_due(s, s->path + way);
        l1_look(s, end, settled, &event);
        double head_seen[L1_HEADS], back = 0;
        memcpy(head_seen, s->head_end, sizeof head_seen);
        if (event.kind == L1_ADD) { /* earlier than thought */
            l1_theta(s, fmax(event.lam, floor), settled, s->v);
            back = l1_way(s, s->theta_end, head_seen, s->v, s->head_end);
            memcpy(s->theta_end, s->v, (size_t)ld * sizeof(double));
            way = l1_way(s, s->theta, s->head_theta, s->theta_end, s->head_end);
        }
        s->path += way;
        l1_note(s, head_seen, back);
        double *swap = s->theta;
        s->theta = s->theta_end, s->theta_end = swap;
        memcpy(s->head_theta, s->head_end, sizeof s->head_theta);
        if (event.kind == L1_MOVE) ratio = fmax(ratio * ratio * ratio, 1e-3);
        else if (event.lam < s->lam) ratio = fmin(1 - 1e-2, fmax(0.25, pow(event.lam / s->lam, 4)));
        still = event.lam < s->lam * (1 - 1e-13) ? 0 : still + 1;
        if (!still) s->last_drop = -1;
        if (!still) s->lam_good = s->lam;
        if (s->qr) l1_axpy(s->at, event.step, s->a1, mf_round_up(s->m, MF_LANES64));
        s->lam = event.lam;
        l1_result code = L1_OK;
        if (event.kind == L1_END) return L1_OK;
        if (event.kind == L1_MOVE && s->qr) l1_qr_direction(s);
        if (event.kind == L1_DROP) {
            s->last_drop = s->active[event.index];
            code = l1_drop(s, event.index);
        }
        if (event.kind == L1_COORDINATE) code = l1_coordinate(s, event.index, event.sign);
        if (event.kind == L1_ADD) {
            code = l1_add(s, event.index, event.sign);
            if (code == L1_DEPENDENT) code = l1_exchange(s, event.index, event.sign);
            /* Dropped and added again at the same lam: rounding hides its coefficient, but it is one of the active
             * set. It stays for a while, whatever its sign. */
            if (code == L1_OK && s->qr && still && s->last_drop == event.index) s->pin[s->m - 1] = 0.9 * s->lam;
        }
        if (code != L1_OK) return code == L1_DEPENDENT ? L1_FAIL : code;
    }
    return L1_FAIL;
}

/* An empty active set at lam_max and the first event there. */
static l1_result l1_begin(l1_work *s, int qr, const l1_event *first)
{
    const l1_shared *c = s->c;
    for (int64_t k = 0; k < s->m; k++) s->state[s->active[k]] = 0;
    if (s->excluded >= 0) s->state[s->excluded] = 1;
    s->m = 0, s->free_count = c->p, s->qr = qr, s->lam = s->lam_good = s->lam0, s->last_drop = -1;
    if (!l1_grow(s)) return L1_MEMORY;
    memset(s->h, 0, (size_t)(s->capacity * s->capacity) * sizeof(double));
    memset(s->sign, 0, (size_t)(8 * s->capacity) * sizeof(double)); /* sign, a0, a1, q, g, u, at, pin */
    for (int64_t i = 0; i < c->ld; i++) {
        s->rest[i] = s->x[i], s->slope[i] = 0, s->side[i] = 1, s->mask[i] = 1, s->se[i] = 0;
        s->weight[i] = c->scale * (s->perturb > 0 ? 1 + s->perturb * l1_hash((uint64_t)(c->atoms + i)) : 1);
    }
    if (qr) {
        l1_result code = l1_qr_restart(s);
        if (code != L1_OK) return code;
    }
    return first->kind == L1_ADD ? l1_add(s, first->index, first->sign) : l1_coordinate(s, first->index, first->sign);
}

/* lam_max and what becomes active there. Atoms that cannot be it by their float product are passed over. */
static l1_event l1_first(const l1_work *s)
{
    const l1_shared *c = s->c;
    l1_event first = {0, 0, 0, L1_END, -1};
    float margin = (float)(2 * l1_rounding32(c->ldf) * s->x_norm);
    for (int64_t i = 0; i < c->ld; i++) s->theta32[i] = (float)s->x[i];
    for (int64_t j = 0; j < c->atoms; j++) {
        if (j == s->excluded) continue;
        float rough = fabsf(l1_dot32(c->df + j * c->ldf, s->theta32, c->ldf)) + margin;
        if ((double)rough * c->norm[j] < first.lam) continue;
        double value = l1_dot(c->d + j * c->ld, s->x, c->ld);
        if (fabs(value) > first.lam) first = (l1_event){fabs(value), 0, value < 0 ? -1 : 1, L1_ADD, j};
    }
    for (int64_t i = 0; i < c->p && c->errors; i++) {
        double value = s->x[i] / c->scale;
        if (fabs(value) > first.lam) first = (l1_event){fabs(value), 0, value < 0 ? -1 : 1, L1_COORDINATE, i};
    }
    return first;
}

#endif
