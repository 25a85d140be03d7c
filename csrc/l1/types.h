/* The homotopy for 1/2 |x - aD - e|^2 + lam (|a|_1 + |e|_1): its state, and what all samples share. Everything is
 * double except first looks at atoms, which are float and err on the safe side.
 *
 * State: active atoms A with signs, active error coordinates E with signs, F = all other coordinates. On E the
 * residual is lam * sign, so errors are eliminated: with G = D_AF D_AF' everything is linear in lam between two
 * events,
 *     a(lam) = a0 - lam a1,  G a0 = D_AF x_F,  G a1 = s_A - D_AE s_E,
 *     residual on F: rest + lam slope,  errors on E: rest + lam (slope - s),  rest = x - D_A'a0, slope = D_A'a1.
 * Every event (atom in or out, coordinate F->E or E->F) changes a0, a1, rest, slope and H = G^-1 along one vector: (q,
 * t = D_A'q). H only has to be good enough to correct a0 and a1 by their residuals; where it is not (atoms nearly
 * dependent on the active ones) the path goes on with orthogonal factors of D_AF', built with reorthogonalisation.
 *
 * Atoms that are not active are looked at only when they could have reached their bound: |d.theta| with theta =
 * residual / lam moves by no more than |d| times the length of theta's path. The few leading directions of the
 * dictionary are followed exactly (`head`), the rest by that bound, and first looks are in float. All of it errs on
 * the safe side, so the path itself is decided in double and does not depend on it. */
#ifndef MF_L1_TYPES_H
#define MF_L1_TYPES_H

#include <float.h>
#include "base/common.h"
#include "base/simd.h"

/* Rows are padded to whole pairs of vectors, of every level up to AVX2 to the same length. */
enum { L1_PAIR64 = MF_LANES64 > 4 ? 2 * MF_LANES64 : 8, L1_PAIR32 = MF_LANES32 > 8 ? 2 * MF_LANES32 : 16 };
enum { L1_HEADS = 8, L1_REFRESH = 24 };
enum { L1_GOOD = 0, L1_OUT_OF_REACH = 1, L1_UNCERTIFIED = 2 }; /* what `status` reports per sample */
typedef enum { L1_OK, L1_DEPENDENT, L1_FAIL, L1_MEMORY, L1_STOP } l1_result;
typedef enum { L1_END, L1_MOVE, L1_ADD, L1_DROP, L1_COORDINATE } l1_kind;

MF_INLINE int l1_ends_call(l1_result code) { return code == L1_MEMORY || code == L1_STOP; }

#define L1_NOISE 2e-14 /* rounding of rest, relative to |x|: below it nothing is decided */

/* What all samples share; rows padded with zeros to whole pairs of vectors. A prepared operand: `errors`, `lam` and
 * `tol` are those of a call, the rest is the dictionary's. */
typedef struct {
    mf_prepared prepared;
    int64_t atoms, padded, p, ld, ldf, heads;
    int errors;
    double lam, tol, scale; /* atoms are divided by `scale`, so an error costs `scale` times what a coefficient does */
    double *d, *norm, *basis;     /* atoms x ld, atoms, heads x ld */
    const double *basis_rows[L1_HEADS];
    float *df, *limit, *tail, *head; /* unit atoms x ldf, 1 / norm, part outside the head, heads by blocks of atoms */
} l1_shared;

/* What one thread needs for one sample at a time. */
typedef struct {
    const l1_shared *c;
    mf_run *run;
    int64_t m, capacity, free_count, excluded;
    int qr;
    double lam, lam0, lam_end, lam_good, eta, perturb, early, rest_noise, x_norm;
    /* coordinates (ld): x, x - D_A'a0, D_A'a1, +1 on F and -1 on E, 1 on F and 0 on E, sign * weight on E, weight */
    double *x, *rest, *slope, *side, *mask, *se, *weight, *t, *v, *theta, *theta_end, *full;
    /* active atoms (capacity) */
    int64_t *active;
    const double **rows;
    double *sign, *a0, *a1, *q, *g, *u;
    double *at, *pin; /* with orthogonal factors: the coefficients at lam; down to which lam an atom stays */
    int64_t last_drop;
    double *h;       /* capacity x capacity, zero beyond m */
    double *qs, *rs; /* orthonormal rows (capacity x ld) and columns of R (capacity x capacity) */
    /* atoms */
    signed char *state; /* 1: active or excluded */
    float *ref, *line, *seen;
    int64_t *due;
    float *theta32, *rest32, *slope32;
    double head_theta[L1_HEADS], head_end[L1_HEADS], path, theta_max;
    float look_margin;
    int64_t due_count;
} l1_work;

typedef struct {
    double lam, step, sign; /* where it is, and how far from here: the difference would lose what steep paths need */
    l1_kind kind;
    int64_t index;
} l1_event;

#endif
