/* The active atoms and error coordinates: adding, removing and finding room for them. Workspace doubles as it grows. */
#ifndef MF_L1_ACTIVE_SET_H
#define MF_L1_ACTIVE_SET_H

#include "l1/types.h"
#include "l1/vectors.h"

MF_INLINE double l1_penalty(const l1_work *s, int64_t j)
{
    return s->perturb > 0 ? 1 + s->perturb * l1_hash((uint64_t)j) : 1;
}

/* Room for one more active atom. */
static int l1_grow(l1_work *s)
{
    if (s->m < s->capacity) return 1;
    int64_t old = s->capacity, capacity = mf_max(32, 2 * old), ld = s->c->ld;
    int64_t *active = mf_alloc(capacity, sizeof(int64_t));
    const double **rows = mf_alloc(capacity, sizeof(double *));
    double *vectors = mf_alloc(8 * capacity, sizeof(double)), *h = mf_alloc(capacity * capacity, sizeof(double));
    double *qs = NULL, *rs = NULL;
    int ready = active && rows && vectors && h;
    if (s->qs) {
        qs = mf_alloc(capacity * ld, sizeof(double)), rs = mf_alloc(capacity * capacity, sizeof(double));
        ready = ready && qs && rs;
    }
    if (!ready) {
        mf_release(active), mf_release(rows), mf_release(vectors), mf_release(h), mf_release(qs), mf_release(rs);
        return 0;
    }
    memset(h, 0, (size_t)(capacity * capacity) * sizeof(double));
    memset(vectors, 0, (size_t)(8 * capacity) * sizeof(double));
    double *from[8] = {s->sign, s->a0, s->a1, s->q, s->g, s->u, s->at, s->pin};
    for (int64_t k = 0; k < old; k++) memcpy(h + k * capacity, s->h + k * old, (size_t)old * sizeof(double));
    for (int v = 0; v < 8 && old; v++) memcpy(vectors + v * capacity, from[v], (size_t)old * sizeof(double));
    if (old) {
        memcpy(active, s->active, (size_t)old * sizeof(int64_t));
        memcpy(rows, s->rows, (size_t)old * sizeof(*rows));
    }
    if (qs) {
        memcpy(qs, s->qs, (size_t)(old * ld) * sizeof(double));
        for (int64_t k = 0; k < old; k++) memcpy(rs + k * capacity, s->rs + k * old, (size_t)old * sizeof(double));
    }
    mf_release(s->active), mf_release(s->rows), mf_release(s->sign), mf_release(s->h);
    mf_release(s->qs), mf_release(s->rs);
    s->active = active, s->rows = rows, s->h = h, s->qs = qs, s->rs = rs, s->capacity = capacity;
    s->sign = vectors, s->a0 = vectors + capacity, s->a1 = vectors + 2 * capacity;
    s->q = vectors + 3 * capacity, s->g = vectors + 4 * capacity, s->u = vectors + 5 * capacity;
    s->at = vectors + 6 * capacity, s->pin = vectors + 7 * capacity;
    return 1;
}

static void l1_append(l1_work *s, int64_t j, double sign)
{
    int64_t m = s->m++;
    s->active[m] = j, s->rows[m] = s->c->d + j * s->c->ld, s->sign[m] = sign;
    s->a0[m] = s->a1[m] = s->at[m] = 0, s->pin[m] = INFINITY;
    s->state[j] = 1;
    s->line[j] = FLT_MAX; /* never due */
}

/* Takes atom number k out of the list, keeping the order of the others. */
static void l1_erase(l1_work *s, int64_t k)
{
    int64_t j = s->active[k];
    s->state[j] = 0;
    s->line[j] = -FLT_MAX; /* looked at again at once */
    for (int64_t i = k; i + 1 < s->m; i++) {
        s->active[i] = s->active[i + 1], s->rows[i] = s->rows[i + 1], s->sign[i] = s->sign[i + 1];
        s->a0[i] = s->a0[i + 1], s->a1[i] = s->a1[i + 1], s->at[i] = s->at[i + 1];
        s->pin[i] = s->pin[i + 1];
    }
    s->m--;
    s->a0[s->m] = s->a1[s->m] = s->at[s->m] = 0;
}

static void l1_set_coordinate(l1_work *s, int64_t i, double sign)
{
    int was_free = s->mask[i] > 0;
    s->mask[i] = sign == 0, s->side[i] = sign == 0 ? 1 : -1, s->se[i] = sign * s->weight[i];
    s->free_count += (sign == 0) - was_free;
}

#endif
