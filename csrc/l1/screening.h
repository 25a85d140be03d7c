/* Which atoms can have reached their bound: the few leading directions of theta are followed exactly, the rest by the
 * length of its path. Accumulator: float for the first look, double for what decides; float results carry a margin for
 * their rounding, so no atom is missed. */
#ifndef MF_L1_SCREENING_H
#define MF_L1_SCREENING_H

#include "l1/types.h"
#include "l1/vectors.h"
#include "l1/active_set.h"

/* Atoms that may have reached their bound when the path is this long, into `due`. */
static void l1_find_due(l1_work *s, double path)
{
    const l1_shared *c = s->c;
    float length = (float)path, margin = (float)((double)(c->heads + 16) * 0x1p-23 * (s->theta_max + path));
    vf32 head[L1_HEADS];
    int64_t count = 0, heads = c->heads;
    for (int64_t k = 0; k < heads; k++) head[k] = vf32_set((float)s->head_end[k]);
    for (int64_t j = 0; j < c->padded; j += MF_LANES32) {
        vf32 sum = vf32_load(s->ref + j), more = {0};
        if (heads) { /* [block of lanes][head] */
            const float *row = c->head + j * L1_HEADS;
            for (int k = 0; k < L1_HEADS; k += 2) {
                sum = vf32_fma(head[k], vf32_load(row + k * MF_LANES32), sum);
                more = vf32_fma(head[k + 1], vf32_load(row + (k + 1) * MF_LANES32), more);
            }
            sum += more;
        }
        vf32 size = vf32_fma(vf32_load(c->tail + j), vf32_set(length), vf32_max(sum, -sum));
        vf32_mask late = ~(vf32_mask)(size <= vf32_load(s->line + j) - vf32_set(margin));
        if (vf32_any(late)) {
            int32_t flags[MF_LANES32];
            memcpy(flags, &late, sizeof flags);
            for (int l = 0; l < MF_LANES32; l++) s->due[count] = j + l, count -= flags[l]; /* a flag is 0 or -1 */
        }
    }
    while (count && s->due[count - 1] >= c->atoms) count--; /* a length beyond float makes padding due: 0 * inf */
    s->due_count = count;
}

/* Looks at the due atoms at theta_end (lam `end`); the one that crosses first on the way there replaces the event.
 * The values seen stay in `seen`. */
static void l1_look(l1_work *s, double end, int settled, l1_event *event)
{
    const l1_shared *c = s->c;
    int64_t ld = c->ld, ldf = c->ldf;
    double *rest = s->v, *slope = s->t, noise = 0, size = sqrt(l1_dot(s->theta_end, s->theta_end, ld));
    float margin = (float)(l1_rounding32(ldf) * size), wide = 0;
    int split = 0;
    s->look_margin = margin;
    for (int64_t i = 0; i < ld; i++) s->theta32[i] = (float)s->theta_end[i];
    for (int64_t n = 0; n < s->due_count; n++) {
        int64_t j = s->due[n];
        const float *unit = c->df + j * ldf;
        if (n + 2 < s->due_count) /* rows are short and scattered: the processor does not fetch them ahead by itself */
            for (int64_t i = 0; i < ldf; i += 16) __builtin_prefetch(c->df + s->due[n + 2] * ldf + i);
        float value = l1_dot32(unit, s->theta32, ldf);
        s->seen[n] = value;
        if (fabsf(value) + margin <= c->limit[j] || s->state[j]) continue;
        /* On the segment d.theta = alpha / lam + beta, with the rest and the slope of the residual. */
        if (!split) {
            split = 1;
            for (int64_t i = 0; i < ld; i += MF_LANES64) {
                vf64 mask = vf64_load(s->mask + i);
                vf64_store(slope + i, vf64_fma(mask, vf64_load(s->slope + i), vf64_load(s->se + i)));
                vf64_store(rest + i, settled ? (vf64){0} : mask * vf64_load(s->rest + i));
            }
            for (int64_t i = 0; i < ld; i++) s->rest32[i] = (float)rest[i], s->slope32[i] = (float)slope[i];
            double length = sqrt(l1_dot(rest, rest, ld));
            noise = settled ? 0 : L1_NOISE * length / end;
            size = length / end + sqrt(l1_dot(slope, slope, ld));
            wide = (float)(l1_rounding32(ldf) * size);
        }
        /* Past its bound, but perhaps surely later than the best so far: then there is no need to know where. */
        float alpha, beta, toward = value < 0 ? -1 : 1;
        l1_two_dots32(unit, s->rest32, s->slope32, ldf, &alpha, &beta);
        float rate = c->limit[j] - toward * beta - wide;
        if (rate > 0 && (double)(toward * alpha) + (double)wide * s->lam < (double)rate * event->lam) continue;
        const double *atom = c->d + j * ld;
        double a = settled ? 0 : l1_dot(atom, rest, ld), b = l1_dot(atom, slope, ld), bound = l1_penalty(s, j);
        double exact = settled ? b : a / end + b;
        s->seen[n] = (float)(exact / c->norm[j]);
        if (fabs(exact) <= bound * (1 + s->eta) + noise * c->norm[j]) continue;
        double sign = exact < 0 ? -1 : 1, den = bound - sign * b, at = den > 0 ? fmin(s->lam, sign * a / den) : s->lam;
        if (at > event->lam) *event = (l1_event){at, s->lam - at, sign, L1_ADD, j};
    }
}

/* What was seen of the due atoms, for the path to come; theta has gone back by `back` from where they were seen. */
static void l1_note(l1_work *s, const double *head_seen, double back)
{
    const l1_shared *c = s->c;
    float length = (float)(s->path - back), head[L1_HEADS];
    for (int64_t k = 0; k < c->heads; k++) head[k] = (float)head_seen[k];
    for (int64_t n = 0; n < s->due_count; n++) {
        int64_t j = s->due[n];
        if (s->state[j]) continue;
        float value = s->seen[n];
        const float *row = c->head + (j - j % MF_LANES32) * L1_HEADS + j % MF_LANES32;
        for (int64_t k = 0; k < c->heads; k++) value = f32_fma(-head[k], row[k * MF_LANES32], value);
        s->ref[j] = value;
        s->line[j] = f32_fma(c->tail[j], length, c->limit[j]) - s->look_margin;
    }
}

#endif
