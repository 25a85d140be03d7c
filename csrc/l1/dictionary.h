/* The dictionary in padded rows, double and float, with norms and its few leading directions. Accumulator: double; how
 * good those directions are changes the speed only. */
#ifndef MF_L1_DICTIONARY_H
#define MF_L1_DICTIONARY_H

#include "l1/types.h"
#include "l1/vectors.h"

/* A few leading directions of the unit atoms by subspace iteration; how good they are only changes the speed. */
static int l1_find_head(l1_shared *c, mf_run *run)
{
    enum { PASSES = 3, SAMPLE = 512 };
    int64_t ld = c->ld, step = mf_max(1, c->atoms / SAMPLE);
    double *next = mf_alloc(L1_HEADS * ld, sizeof(double));
    if (!next) return 0;
    for (int64_t i = 0; i < L1_HEADS * ld; i++) c->basis[i] = i % ld < c->p ? l1_hash((uint64_t)i) - 0.25 : 0;
    for (int pass = 0; pass <= PASSES && !mf_poll(run); pass++) {
        for (int64_t k = 0; k < L1_HEADS; k++) {
            double *row = c->basis + k * ld, before = sqrt(l1_dot(row, row, ld)), length = before;
            for (int twice = 0; twice < 2; twice++)
                for (int64_t i = 0; i < k; i++)
                    l1_axpy(row, -l1_dot(row, c->basis + i * ld, ld), c->basis + i * ld, ld);
            length = sqrt(l1_dot(row, row, ld));
            /* The bound relies on an orthonormal head: a direction that is mostly rounding is left out. */
            for (int64_t i = 0; i < ld; i++) row[i] = length > 1e-6 * before ? row[i] / length : 0;
        }
        if (pass == PASSES) break;
        memset(next, 0, (size_t)(L1_HEADS * ld) * sizeof(double));
        for (int64_t j = 0; j < c->atoms; j += step) {
            const double *atom = c->d + j * ld;
            if (!(c->norm[j] > 0)) continue;
            for (int64_t k = 0; k < L1_HEADS; k++)
                l1_axpy(next + k * ld, l1_dot(atom, c->basis + k * ld, ld) / (c->norm[j] * c->norm[j]), atom, ld);
        }
        memcpy(c->basis, next, (size_t)(L1_HEADS * ld) * sizeof(double));
    }
    mf_release(next);
    return 1;
}

static void l1_release_shared(mf_prepared *self)
{
    l1_shared *c = (l1_shared *)self;
    mf_release(c->d), mf_release(c->norm), mf_release(c->basis), mf_release(c->df);
    mf_release(c->limit), mf_release(c->tail), mf_release(c->head);
}

/* The dictionary in padded rows, double and float, with norms; and with the head, which costs a few passes over it,
 * where that pays for `samples` samples. */
static mf_status l1_open(l1_shared *c, const double *d64, const float *d32, int64_t atoms, int64_t p, int64_t samples,
                         mf_run *run)
{
    enum { HEAD_SAMPLES = MF_LIMIT(16, 2), HEAD_ATOMS = MF_LIMIT(256, 8), HEAD_FEATURES = MF_LIMIT(32, 4) };
    *c = (l1_shared){.prepared = {l1_release_shared, 0}, .atoms = atoms, .padded = mf_round_up(atoms, 16), .p = p,
                     .ld = mf_round_up(p, L1_PAIR64), .ldf = mf_round_up(p, L1_PAIR32)};
    int64_t ld = c->ld, ldf = c->ldf;
    c->heads = samples >= HEAD_SAMPLES && atoms >= HEAD_ATOMS && p >= HEAD_FEATURES ? L1_HEADS : 0;
    c->prepared.bytes = (atoms * (ld + 1) + L1_HEADS * ld) * 8 + (atoms * ldf + (2 + c->heads) * c->padded) * 4;
    c->d = mf_alloc(c->atoms * ld, sizeof(double)), c->norm = mf_alloc(c->atoms, sizeof(double));
    c->basis = mf_alloc(L1_HEADS * ld, sizeof(double)), c->df = mf_alloc(c->atoms * ldf, sizeof(float));
    c->limit = mf_alloc(c->padded, sizeof(float)), c->tail = mf_alloc(c->padded, sizeof(float));
    c->head = mf_alloc(c->heads * c->padded, sizeof(float));
    if (!c->d || !c->norm || !c->basis || !c->df || !c->limit || !c->tail || !c->head) return MF_NO_MEMORY;
    double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest) num_threads(run->n_threads)
    for (int64_t j = 0; j < c->atoms; j++)
        for (int64_t i = 0; i < ld; i++) {
            double value = i >= p ? 0 : d64 ? d64[j * p + i] : (double)d32[j * p + i];
            c->d[j * ld + i] = value;
            largest = fmax(largest, fabs(value));
        }
    /* Squares must neither overflow nor vanish, nor theta leave the range of float: atoms are scaled together by a
     * power of two, the largest entry to between 1 and 2. */
    int exponent = largest > 0 ? (int)mf_max(-1000, mf_min(1000, ilogb(largest))) : 0;
    double shrink = ldexp(1, -exponent);
    c->scale = ldexp(1, exponent);
#pragma omp parallel for schedule(static) num_threads(run->n_threads)
    for (int64_t j = 0; j < c->padded; j++) {
        c->limit[j] = FLT_MAX / 8, c->tail[j] = 0;
        if (j >= c->atoms) continue;
        double *atom = c->d + j * ld;
        for (int64_t i = 0; i < p; i++) atom[i] *= shrink;
        double norm = sqrt(l1_dot(atom, atom, ld)), inverse = norm > 0 ? 1 / norm : 0;
        c->norm[j] = norm, c->tail[j] = 1;
        if (norm > 0) c->limit[j] = (float)fmin(FLT_MAX / 8, (1 - 0x1p-22) / norm);
        for (int64_t i = 0; i < ldf; i++) c->df[j * ldf + i] = i < p ? (float)(atom[i] * inverse) : 0;
    }
    if (!c->heads) return run->stop ? MF_INTERRUPTED : MF_OK;
    for (int64_t k = 0; k < c->heads; k++) c->basis_rows[k] = c->basis + k * ld;
    memset(c->head, 0, (size_t)(c->heads * c->padded) * sizeof(float));
    if (!l1_find_head(c, run)) return MF_NO_MEMORY;
#pragma omp parallel for schedule(static) num_threads(run->n_threads)
    for (int64_t j = 0; j < c->atoms; j++) {
        double inside = 0;
        for (int64_t k = 0; k < c->heads && c->norm[j] > 0; k++) {
            double value = l1_dot(c->d + j * ld, c->basis + k * ld, ld) / c->norm[j];
            c->head[(j - j % MF_LANES32) * L1_HEADS + k * MF_LANES32 + j % MF_LANES32] = (float)value;
            inside += value * value;
        }
        c->tail[j] = (float)(sqrt(fmax(0, 1 - inside) + 1e-12) * (1 + 1e-6));
    }
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

#endif
