/* l1_code: exact homotopy for 1/2 |x - aD - e|^2 + lam (|a|_1 + |e|_1), followed from lam_max down, with or without e.
 * Included once, for double; the float entry converts rows as it reads and writes them.
 *
 * State: active atoms A with signs, active error coordinates E with signs, F = all other coordinates. On E the residual
 * is lam * sign, so errors are eliminated: with G = D_AF D_AF' everything is linear in lam between two events,
 *     a(lam) = a0 - lam a1,  G a0 = D_AF x_F,  G a1 = s_A - D_AE s_E,
 *     residual on F: rest + lam slope,  errors on E: rest + lam (slope - s),  rest = x - D_A'a0, slope = D_A'a1.
 * Every event (atom in or out, coordinate F->E or E->F) changes a0, a1, rest, slope and H = G^-1 along one vector:
 * (q, t = D_A'q). H only has to be good enough to correct a0 and a1 by their residuals; where it is not (atoms nearly
 * dependent on the active ones) the path goes on with orthogonal factors of D_AF', built with reorthogonalisation.
 *
 * Atoms that are not active are looked at only when they could have reached their bound: |d.theta| with theta =
 * residual / lam moves by no more than |d| times the length of theta's path. The few leading directions of the
 * dictionary are followed exactly (`head`), the rest by that bound, and first looks are in float. All of it errs on
 * the safe side, so the path itself is decided in double and does not depend on it.
 *
 * A result leaves with a certificate: relative duality gap and residual, checked against all atoms. */
#include <float.h>

enum { L1_HEADS = 8, L1_REFRESH = 24, L1_LANES32 = MF_VBYTES / 4 };
enum { L1_GOOD = 0, L1_OUT_OF_REACH = 1, L1_UNCERTIFIED = 2 }; /* what `status` reports per sample */
typedef enum { L1_OK, L1_DEPENDENT, L1_FAIL, L1_MEMORY, L1_STOP } l1_code_t;
typedef enum { L1_END, L1_MOVE, L1_ADD, L1_DROP, L1_COORDINATE } l1_kind;

#define L1_NOISE 2e-14 /* rounding of rest, relative to |x|: below it nothing is decided */

/* What all samples share; rows padded with zeros to whole vectors. */
typedef struct {
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

MF_INLINE double l1_sum(vf64 v)
{
    double total = v[0];
    for (int l = 1; l < LANES; l++) total += v[l];
    return total;
}

/* Sum over padded vectors: four accumulators, joined in a fixed order. */
MF_INLINE double l1_dot(const double *a, const double *b, int64_t n)
{
    vf64 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        s0 = vf64_fma(vf64_load(a + i), vf64_load(b + i), s0);
        s1 = vf64_fma(vf64_load(a + i + LANES), vf64_load(b + i + LANES), s1);
        s2 = vf64_fma(vf64_load(a + i + 2 * LANES), vf64_load(b + i + 2 * LANES), s2);
        s3 = vf64_fma(vf64_load(a + i + 3 * LANES), vf64_load(b + i + 3 * LANES), s3);
    }
    for (; i < n; i += LANES) s0 = vf64_fma(vf64_load(a + i), vf64_load(b + i), s0);
    return l1_sum((s0 + s1) + (s2 + s3));
}

MF_INLINE float l1_sum32(vf32 v)
{
    float total = v[0];
    for (int l = 1; l < L1_LANES32; l++) total += v[l];
    return total;
}

MF_INLINE float l1_dot32(const float *a, const float *b, int64_t n)
{
    vf32 s0 = {0}, s1 = {0};
    for (int64_t i = 0; i < n; i += 2 * L1_LANES32) { /* n is a multiple of 16 */
        s0 = vf32_fma(vf32_load(a + i), vf32_load(b + i), s0);
        s1 = vf32_fma(vf32_load(a + i + L1_LANES32), vf32_load(b + i + L1_LANES32), s1);
    }
    return l1_sum32(s0 + s1);
}

/* a.b and a.c, reading a once. */
MF_INLINE void l1_two_dots32(const float *a, const float *b, const float *c, int64_t n, float *ab, float *ac)
{
    vf32 b0 = {0}, b1 = {0}, c0 = {0}, c1 = {0};
    for (int64_t i = 0; i < n; i += 2 * L1_LANES32) {
        vf32 a0 = vf32_load(a + i), a1 = vf32_load(a + i + L1_LANES32);
        b0 = vf32_fma(a0, vf32_load(b + i), b0);
        b1 = vf32_fma(a1, vf32_load(b + i + L1_LANES32), b1);
        c0 = vf32_fma(a0, vf32_load(c + i), c0);
        c1 = vf32_fma(a1, vf32_load(c + i + L1_LANES32), c1);
    }
    *ab = l1_sum32(b0 + b1);
    *ac = l1_sum32(c0 + c1);
}

/* out = sum_k q[k] rows[k], over ld padded entries. */
static void l1_combine(const double *const *rows, int64_t m, const double *q, int64_t ld, double *out)
{
    int64_t i = 0;
    for (; i + 8 * LANES <= ld; i += 8 * LANES) {
        vf64 s[8] = {{0}};
        for (int64_t k = 0; k < m; k++) {
            const double *row = rows[k] + i;
            vf64 f = vf64_set(q[k]);
            for (int v = 0; v < 8; v++) s[v] = vf64_fma(f, vf64_load(row + v * LANES), s[v]);
        }
        for (int v = 0; v < 8; v++) vf64_store(out + i + v * LANES, s[v]);
    }
    for (; i < ld; i += 2 * LANES) { /* ld is a multiple of 8 */
        vf64 s0 = {0}, s1 = {0};
        for (int64_t k = 0; k < m; k++) {
            vf64 f = vf64_set(q[k]);
            s0 = vf64_fma(f, vf64_load(rows[k] + i), s0);
            s1 = vf64_fma(f, vf64_load(rows[k] + i + LANES), s1);
        }
        vf64_store(out + i, s0);
        vf64_store(out + i + LANES, s1);
    }
}

/* out[k] = rows[k] . v; four rows share the loads of v. */
static void l1_products(const double *const *rows, int64_t m, const double *v, int64_t ld, double *out)
{
    int64_t k = 0;
    for (; k + 4 <= m; k += 4) {
        const double *r0 = rows[k], *r1 = rows[k + 1], *r2 = rows[k + 2], *r3 = rows[k + 3];
        vf64 a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};
        for (int64_t i = 0; i < ld; i += 2 * LANES) {
            vf64 v0 = vf64_load(v + i), v1 = vf64_load(v + i + LANES);
            a0 = vf64_fma(vf64_load(r0 + i), v0, a0), b0 = vf64_fma(vf64_load(r0 + i + LANES), v1, b0);
            a1 = vf64_fma(vf64_load(r1 + i), v0, a1), b1 = vf64_fma(vf64_load(r1 + i + LANES), v1, b1);
            a2 = vf64_fma(vf64_load(r2 + i), v0, a2), b2 = vf64_fma(vf64_load(r2 + i + LANES), v1, b2);
            a3 = vf64_fma(vf64_load(r3 + i), v0, a3), b3 = vf64_fma(vf64_load(r3 + i + LANES), v1, b3);
        }
        out[k] = l1_sum(a0 + b0), out[k + 1] = l1_sum(a1 + b1);
        out[k + 2] = l1_sum(a2 + b2), out[k + 3] = l1_sum(a3 + b3);
    }
    for (; k < m; k++) out[k] = l1_dot(rows[k], v, ld);
}

/* out = H g; H is symmetric, its rows and g are zero beyond m. */
static void l1_apply_inverse(const l1_work *s, const double *g, double *out)
{
    int64_t wide = mf_round_up(s->m, 8), i = 0;
    for (; i + 8 * LANES <= wide; i += 8 * LANES) {
        vf64 c[8] = {{0}};
        for (int64_t k = 0; k < s->m; k++) {
            const double *row = s->h + k * s->capacity + i;
            vf64 f = vf64_set(g[k]);
            for (int v = 0; v < 8; v++) c[v] = vf64_fma(f, vf64_load(row + v * LANES), c[v]);
        }
        for (int v = 0; v < 8; v++) vf64_store(out + i + v * LANES, c[v]);
    }
    for (; i < wide; i += LANES) {
        vf64 c = {0};
        for (int64_t k = 0; k < s->m; k++) c = vf64_fma(vf64_set(g[k]), vf64_load(s->h + k * s->capacity + i), c);
        vf64_store(out + i, c);
    }
}

/* H += factor q q' */
static void l1_rank_one(l1_work *s, const double *q, double factor)
{
    int64_t wide = mf_round_up(s->m, LANES);
    for (int64_t k = 0; k < s->m; k++) {
        double *row = s->h + k * s->capacity;
        vf64 f = vf64_set(factor * q[k]);
        for (int64_t i = 0; i < wide; i += LANES)
            vf64_store(row + i, vf64_fma(f, vf64_load(q + i), vf64_load(row + i)));
    }
}

/* y += factor x */
MF_INLINE void l1_axpy(double *y, double factor, const double *x, int64_t n)
{
    vf64 f = vf64_set(factor);
    for (int64_t i = 0; i < n; i += LANES) vf64_store(y + i, vf64_fma(f, vf64_load(x + i), vf64_load(y + i)));
}

MF_INLINE const double *l1_multiply(double *out, const double *a, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) vf64_store(out + i, vf64_load(a + i) * vf64_load(b + i));
    return out;
}

/* Number in [0, 1) from an index: the same perturbation for everybody who asks. */
MF_INLINE double l1_hash(uint64_t i)
{
    i = (i + 1) * 0x9E3779B97F4A7C15u;
    i = (i ^ (i >> 30)) * 0xBF58476D1CE4E5B9u;
    i = (i ^ (i >> 27)) * 0x94D049BB133111EBu;
    return (double)((i ^ (i >> 31)) >> 11) * 0x1p-53;
}

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

/* --- Orthogonal factors: D_AF' = Q R with the columns of Q as rows of `qs`, column k of R at rs + k * capacity. --- */

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

static l1_code_t l1_qr_build(l1_work *s, int64_t from)
{
    int64_t ld = s->c->ld;
    if (!s->qs) {
        s->qs = mf_alloc(s->capacity * ld, sizeof(double));
        s->rs = mf_alloc(s->capacity * s->capacity, sizeof(double));
        if (!s->qs || !s->rs) return L1_MEMORY;
    }
    for (int64_t k = from; k < s->m; k++) {
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
static l1_code_t l1_qr_restart(l1_work *s)
{
    if (!s->qr)
        for (int64_t k = 0; k < s->m; k++) s->at[k] = s->a0[k] - s->lam * s->a1[k];
    s->qr = 1;
    l1_code_t code = l1_qr_build(s, 0);
    if (code == L1_OK) l1_qr_direction(s);
    return code;
}

/* The same where a0 and a1 are no longer trusted: everything is solved for anew. */
static l1_code_t l1_qr_recover(l1_work *s)
{
    int64_t ld = s->c->ld;
    s->qr = 1;
    l1_code_t code = l1_qr_build(s, 0);
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

/* --- Events --- */

/* Moves everything along (q, D_A'q) = (q, t). */
static void l1_shift(l1_work *s, double alpha, double beta)
{
    int64_t wide = mf_round_up(s->m, LANES), ld = s->c->ld;
    l1_axpy(s->a0, alpha, s->q, wide);
    l1_axpy(s->a1, beta, s->q, wide);
    vf64 a = vf64_set(-alpha), b = vf64_set(beta);
    for (int64_t i = 0; i < ld; i += LANES) {
        vf64 t = vf64_load(s->t + i);
        vf64_store(s->rest + i, vf64_fma(a, t, vf64_load(s->rest + i)));
        vf64_store(s->slope + i, vf64_fma(b, t, vf64_load(s->slope + i)));
    }
}

/* Coordinate i gets an error of this sign, or becomes free (sign 0). */
static l1_code_t l1_coordinate(l1_work *s, int64_t i, double sign)
{
    double out = sign != 0 ? 1 : -1, old = s->se[i];
    l1_set_coordinate(s, i, sign);
    if (s->qr) return l1_qr_restart(s);
    if (!s->m) return L1_OK;
    memset(s->g, 0, (size_t)s->capacity * sizeof(double));
    for (int64_t k = 0; k < s->m; k++) s->g[k] = s->rows[k][i];
    l1_apply_inverse(s, s->g, s->q);
    double gamma = 1 - out * l1_dot(s->g, s->q, mf_round_up(s->m, LANES));
    if (!(gamma > 1e-8)) return l1_qr_restart(s);
    l1_combine(s->rows, s->m, s->q, s->c->ld, s->t);
    double kick = sign != 0 ? s->se[i] : old;
    l1_rank_one(s, s->q, out / gamma);
    l1_shift(s, -out * s->rest[i] / gamma, out * (s->slope[i] - kick) / gamma);
    return L1_OK;
}

/* Atom j enters; L1_DEPENDENT leaves the state as it was, with its combination of the active atoms in u. */
static l1_code_t l1_add(l1_work *s, int64_t j, double sign)
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
        l1_code_t code = l1_qr_restart(s);
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

static l1_code_t l1_drop(l1_work *s, int64_t k)
{
    if (s->qr) {
        l1_erase(s, k);
        l1_code_t code = l1_qr_build(s, k);
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
static l1_code_t l1_exchange(l1_work *s, int64_t j, double sign)
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
    l1_code_t code = leave >= 0 ? l1_drop(s, leave) : l1_coordinate(s, leave_coordinate, 0);
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
        if (!(worst <= 1e-6)) return 0; /* drift: the path is at risk, build anew */
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

/* --- Search --- */

typedef struct {
    double lam, step, sign; /* where it is, and how far from here: the difference would lose what steep paths need */
    l1_kind kind;
    int64_t index;
} l1_event;

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
    for (int64_t i = 0; i < s->c->ld; i += LANES) {
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
            for (int l = 0; l < LANES; l++) found[l] = better[l] ? i + l : found[l];
            best = vf64_select(better, after, best);
        }
    }
    for (int l = 0; l < LANES && any; l++)
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
    for (int64_t i = 0; i < s->c->ld; i += LANES) {
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
    for (int64_t i = 0; i < ld; i += LANES) {
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

/* Atoms that may have reached their bound when the path is this long, into `due`. */
static void l1_find_due(l1_work *s, double path)
{
    const l1_shared *c = s->c;
    float length = (float)path, margin = (float)((double)(c->heads + 16) * 0x1p-23 * (s->theta_max + path));
    vf32 head[L1_HEADS];
    int64_t count = 0, heads = c->heads;
    for (int64_t k = 0; k < heads; k++) head[k] = vf32_set((float)s->head_end[k]);
    for (int64_t j = 0; j < c->padded; j += L1_LANES32) {
        vf32 sum = vf32_load(s->ref + j), more = {0};
        if (heads) { /* [block of lanes][head] */
            const float *row = c->head + j * L1_HEADS;
            for (int k = 0; k < L1_HEADS; k += 2) {
                sum = vf32_fma(head[k], vf32_load(row + k * L1_LANES32), sum);
                more = vf32_fma(head[k + 1], vf32_load(row + (k + 1) * L1_LANES32), more);
            }
            sum += more;
        }
        vf32 size = vf32_fma(vf32_load(c->tail + j), vf32_set(length), vf32_max(sum, -sum));
        vf32_mask late = ~(vf32_mask)(size <= vf32_load(s->line + j) - vf32_set(margin));
        if (vf32_any(late)) {
            int32_t flags[L1_LANES32];
            memcpy(flags, &late, sizeof flags);
            for (int l = 0; l < L1_LANES32; l++) s->due[count] = j + l, count -= flags[l]; /* a flag is 0 or -1 */
        }
    }
    s->due_count = count;
}

/* Looks at the due atoms at theta_end (lam `end`); the one that crosses first on the way there replaces the event.
 * The values seen stay in `seen`. */
static void l1_look(l1_work *s, double end, int settled, l1_event *event)
{
    const l1_shared *c = s->c;
    int64_t ld = c->ld, ldf = c->ldf;
    double *rest = s->v, *slope = s->t, noise = 0, size = sqrt(l1_dot(s->theta_end, s->theta_end, ld));
    float margin = (float)((double)(ldf / L1_LANES32 + 8) * 0x1p-23 * size), wide = 0;
    int split = 0;
    s->look_margin = margin;
    for (int64_t i = 0; i < ld; i++) s->theta32[i] = (float)s->theta_end[i];
    for (int64_t n = 0; n < s->due_count; n++) {
        int64_t j = s->due[n];
        const float *unit = c->df + j * ldf;
        if (n + 2 < s->due_count) /* rows are short and scattered: the hardware sees them too late */
            for (int64_t i = 0; i < ldf; i += 16) __builtin_prefetch(c->df + s->due[n + 2] * ldf + i);
        float value = l1_dot32(unit, s->theta32, ldf);
        s->seen[n] = value;
        if (fabsf(value) + margin <= c->limit[j] || s->state[j]) continue;
        /* On the segment d.theta = alpha / lam + beta, with the rest and the slope of the residual. */
        if (!split) {
            split = 1;
            for (int64_t i = 0; i < ld; i += LANES) {
                vf64 mask = vf64_load(s->mask + i);
                vf64_store(slope + i, vf64_fma(mask, vf64_load(s->slope + i), vf64_load(s->se + i)));
                vf64_store(rest + i, settled ? (vf64){0} : mask * vf64_load(s->rest + i));
            }
            for (int64_t i = 0; i < ld; i++) s->rest32[i] = (float)rest[i], s->slope32[i] = (float)slope[i];
            double length = sqrt(l1_dot(rest, rest, ld));
            noise = settled ? 0 : L1_NOISE * length / end;
            size = length / end + sqrt(l1_dot(slope, slope, ld));
            wide = (float)((double)(ldf / L1_LANES32 + 8) * 0x1p-23 * size);
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
        const float *row = c->head + (j - j % L1_LANES32) * L1_HEADS + j % L1_LANES32;
        for (int64_t k = 0; k < c->heads; k++) value = f32_fma(-head[k], row[k * L1_LANES32], value);
        s->ref[j] = value;
        s->line[j] = f32_fma(c->tail[j], length, c->limit[j]) - s->look_margin;
    }
}

/* --- One sample --- */

/* Size of the rest on F relative to the sample: 0 where it is only rounding. Then the residual shrinks with lam and
 * theta stays. */
static double l1_rest_size(const l1_work *s)
{
    if (s->m >= s->free_count) return 0;
    vf64 sum = {0};
    for (int64_t i = 0; i < s->c->ld; i += LANES) {
        vf64 value = vf64_load(s->mask + i) * vf64_load(s->rest + i);
        sum = vf64_fma(value, value, sum);
    }
    double size = sqrt(l1_sum(sum)) / s->x_norm;
    return size > s->rest_noise ? size : 0;
}

/* Follows the path down to lam_end. On success the active set is that of lam_end. */
static l1_code_t l1_follow(l1_work *s)
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
        if (steps % 16 == 0 && mf_poll(s->run)) return L1_STOP;
        if (!s->qr && steps % L1_REFRESH == L1_REFRESH - 1 && !l1_refresh(s, 1)) {
            l1_code_t code = l1_qr_recover(s);
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
        if (s->qr) l1_axpy(s->at, event.step, s->a1, mf_round_up(s->m, LANES));
        s->lam = event.lam;
        l1_code_t code = L1_OK;
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
            /* Dropped here and wanted back at once: its coefficient is lost in rounding, its place in the active set is
             * not. It stays for a while, whatever its sign. */
            if (code == L1_OK && s->qr && still && s->last_drop == event.index) s->pin[s->m - 1] = 0.9 * s->lam;
        }
        if (code != L1_OK) return code == L1_DEPENDENT ? L1_FAIL : code;
    }
    return L1_FAIL;
}

/* An empty active set at lam_max and the first event there. */
static l1_code_t l1_begin(l1_work *s, int qr, const l1_event *first)
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
        l1_code_t code = l1_qr_restart(s);
        if (code != L1_OK) return code;
    }
    return first->kind == L1_ADD ? l1_add(s, first->index, first->sign) : l1_coordinate(s, first->index, first->sign);
}

/* lam_max and what becomes active there. Atoms that cannot be it by their float product are passed over. */
static l1_event l1_first(const l1_work *s)
{
    const l1_shared *c = s->c;
    l1_event first = {0, 0, 0, L1_END, -1};
    float margin = (float)((double)(c->ldf / L1_LANES32 + 8) * 0x1p-22 * s->x_norm);
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
    float margin = (float)((double)(c->ldf / L1_LANES32 + 8) * 0x1p-23 * sqrt(y_square));
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
 * atoms, where lam no longer tells them apart. Starts from the active set. */
static l1_code_t l1_tight_fit(l1_work *s)
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
        for (int64_t n = 0; n < tight; n++) { /* by what is new in them: that is all that tells them apart */
            int64_t j = s->due[n];
            if (s->state[j]) continue;
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
            l1_code_t code = first < s->m ? l1_qr_build(s, first) : L1_OK;
            if (code != L1_OK) return code;
            if (!full && first == s->m && s->at[s->m - 1] == 0) return L1_FAIL;
        }
    }
    return L1_OK;
}

/* The end of a path with orthogonal factors, where the coefficients that came along it are not good enough: those the
 * active set determines, and then without the atoms whose sign is wrong. Rounding decides about such atoms in a
 * dictionary with nearly dependent ones; the dual point of the full set, or of the smaller one, still proves it.
 * Returns L1_OK, with q and v those of the active set that `proof` and `error` are about, or L1_MEMORY. */
static l1_code_t l1_settle(l1_work *s, double target, l1_certificate *proof, double *error)
{
    int64_t ld = s->c->ld;
    l1_code_t code = l1_qr_recover(s);
    if (code != L1_OK) return code == L1_MEMORY ? code : L1_OK; /* q and v are as they were */
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
        if (code == L1_MEMORY) return code;
        *proof = l1_certify(s, target, step == 1 ? NULL : s->theta_end);
        *error = fmax(fabs(proof->gap), proof->residual);
        if (step == 1) memcpy(s->theta_end, s->theta, (size_t)ld * sizeof(double));
    }
    return L1_OK;
}

/* Coefficients as one block: `count` indices in ascending order, then the values. */
static void *l1_pack(const l1_work *s, double scale, int64_t *count)
{
    int64_t n = 0;
    for (int64_t k = 0; k < s->m; k++) n += s->q[k] != 0;
    *count = n;
    int64_t *index = malloc((size_t)mf_max(n, 1) * 2 * sizeof(int64_t));
    if (!index) return NULL;
    double *value = (double *)(index + n);
    int64_t filled = 0;
    for (int64_t k = 0; k < s->m; k++) {
        if (s->q[k] == 0) continue;
        int64_t at = filled++;
        for (; at > 0 && index[at - 1] > s->active[k]; at--) index[at] = index[at - 1], value[at] = value[at - 1];
        index[at] = s->active[k], value[at] = s->q[k] * scale;
    }
    return index;
}

/* One sample that x already holds, scaled by 2^-exponent. `errors` (p, may be NULL) comes zeroed. */
static l1_code_t l1_sample(l1_work *s, int exponent, double lam, void **block, int64_t *count, double *errors,
                           int *status)
{
    /* Fast factors first; then orthogonal ones; then blind to atoms that differ from active ones, and to a rest, by
     * less than the certificate sees; then with a larger rest left to l1_settle; then with penalties moved apart by as
     * little, which parts ties that would cycle. */
    static const struct {
        int qr;
        double perturb, eta, early, rest;
    } attempts[] = {{0, 0, 1e-11, 1e-5, L1_NOISE}, {1, 0, 1e-12, 1e-5, L1_NOISE}, {1, 0, 4e-10, 1e-4, 1e-11},
                    {1, 0, 4e-10, 1e-4, 4e-10},    {1, 0, 1e-12, 1e-5, 3e-8},     {1, 0, 4e-10, 1e-4, 1e-6},
                    {1, 1e-10, 1e-13, 1e-5, 1e-11}, {1, 4e-10, 1e-13, 1e-3, 4e-10}};
    enum { ATTEMPTS = sizeof attempts / sizeof *attempts };
    const l1_shared *c = s->c;
    double best = INFINITY, reached = INFINITY;
    int furthest = 0;
    s->x_norm = sqrt(l1_dot(s->x, s->x, c->ld));
    double target = s->lam_end = ldexp(lam, -exponent) / c->scale;
    l1_event first = l1_first(s);
    s->lam0 = first.lam;
    *status = L1_GOOD;
    if (!(first.lam > s->lam_end)) {
        if (lam == 0 && s->x_norm > 0) *status = L1_OUT_OF_REACH;
        return L1_OK;
    }
    *status = L1_UNCERTIFIED;
    for (int n = 0; n <= ATTEMPTS; n++) {
        int which = n;
        if (n == ATTEMPTS) {
            /* No path came to its end: go once more to where one was still good. That is the right answer for a larger
             * penalty, and reported as good only if its certificate, which is for the target, says so. */
            if (best < INFINITY || !(reached < s->lam0)) break;
            which = furthest, s->lam_end = reached;
        }
        s->perturb = attempts[which].perturb, s->eta = attempts[which].eta, s->early = attempts[which].early;
        s->rest_noise = attempts[which].rest;
        l1_code_t code = l1_begin(s, attempts[which].qr, &first);
        if (code == L1_OK) code = l1_follow(s);
        if (code == L1_OK && !s->qr && !l1_refresh(s, 2)) code = l1_qr_recover(s);
        if (code == L1_MEMORY || code == L1_STOP) return code;
        if (code != L1_OK) {
            if (s->lam_good < reached) reached = s->lam_good, furthest = n;
            continue;
        }
        l1_certificate proof = l1_certify(s, target, NULL);
        double error = fmax(fabs(proof.gap), proof.residual);
        if (s->qr && !(error <= c->tol)) code = l1_settle(s, target, &proof, &error);
        if (code != L1_OK) return code;
        if (!(error < best) && n < ATTEMPTS) continue;
        best = error;
        free(*block);
        *block = l1_pack(s, ldexp(1 / c->scale, exponent), count);
        if (!*block) return L1_MEMORY;
        for (int64_t i = 0; i < c->p && errors; i++) errors[i] = ldexp(s->v[i], exponent);
        if (error <= c->tol) {
            *status = proof.out_of_reach ? L1_OUT_OF_REACH : L1_GOOD;
            break;
        }
    }
    return L1_OK;
}

/* --- Set-up --- */

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

static void l1_release_shared(l1_shared *c)
{
    mf_release(c->d), mf_release(c->norm), mf_release(c->basis), mf_release(c->df);
    mf_release(c->limit), mf_release(c->tail), mf_release(c->head);
}

/* The dictionary in padded rows, double and float, with norms and head. */
static mf_status l1_prepare(l1_shared *c, const double *d64, const float *d32, int use_head, mf_run *run)
{
    int64_t ld = c->ld, ldf = c->ldf, p = c->p;
    c->heads = use_head ? L1_HEADS : 0;
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
    /* Squares must neither overflow nor vanish: atoms far from 1 are scaled together by a power of two. */
    int exponent = largest > 0 ? ilogb(largest) : 0;
    if (abs(exponent) < 60) exponent = 0;
    exponent = (int)mf_max(-1000, mf_min(1000, exponent));
    c->scale = ldexp(1, exponent);
#pragma omp parallel for schedule(static) num_threads(run->n_threads)
    for (int64_t j = 0; j < c->padded; j++) {
        c->limit[j] = FLT_MAX / 8, c->tail[j] = 0;
        if (j >= c->atoms) continue;
        double *atom = c->d + j * ld;
        for (int64_t i = 0; i < p && exponent; i++) atom[i] = ldexp(atom[i], -exponent);
        double norm = sqrt(l1_dot(atom, atom, ld)), inverse = norm > 0 ? 1 / norm : 0;
        c->norm[j] = norm, c->tail[j] = 1;
        if (norm > 0) c->limit[j] = (float)fmin(FLT_MAX / 8, (1 - 0x1p-22) / norm);
        for (int64_t i = 0; i < ldf; i++) c->df[j * ldf + i] = i < p ? (float)(atom[i] * inverse) : 0;
    }
    if (!c->heads) return MF_OK;
    for (int64_t k = 0; k < c->heads; k++) c->basis_rows[k] = c->basis + k * ld;
    memset(c->head, 0, (size_t)(c->heads * c->padded) * sizeof(float));
    if (!l1_find_head(c, run)) return MF_NO_MEMORY;
#pragma omp parallel for schedule(static) num_threads(run->n_threads)
    for (int64_t j = 0; j < c->atoms; j++) {
        double inside = 0;
        for (int64_t k = 0; k < c->heads && c->norm[j] > 0; k++) {
            double value = l1_dot(c->d + j * ld, c->basis + k * ld, ld) / c->norm[j];
            c->head[(j - j % L1_LANES32) * L1_HEADS + k * L1_LANES32 + j % L1_LANES32] = (float)value;
            inside += value * value;
        }
        c->tail[j] = (float)(sqrt(fmax(0, 1 - inside) + 1e-12) * (1 + 1e-6));
    }
    return MF_OK;
}

static void l1_release_work(l1_work *s)
{
    mf_release(s->x), mf_release(s->active), mf_release(s->rows), mf_release(s->sign), mf_release(s->h);
    mf_release(s->qs), mf_release(s->rs), mf_release(s->state), mf_release(s->ref), mf_release(s->due);
}

static int l1_prepare_work(l1_work *s, const l1_shared *c, mf_run *run)
{
    enum { VECTORS = 12 };
    int64_t ld = c->ld;
    *s = (l1_work){.c = c, .run = run, .excluded = -1};
    double *block = s->x = mf_alloc(VECTORS * ld + 2 * c->ldf, sizeof(double));
    float *floats = s->ref = mf_alloc(3 * c->padded, sizeof(float));
    s->state = mf_alloc(c->padded, 1), s->due = mf_alloc(c->padded + 1, sizeof(int64_t));
    if (!block || !floats || !s->state || !s->due) return 0;
    memset(block, 0, (size_t)(VECTORS * ld + 2 * c->ldf) * sizeof(double));
    memset(s->state, 0, (size_t)c->padded);
    double **vectors[VECTORS] = {&s->x, &s->rest, &s->slope, &s->side, &s->mask, &s->se,
                                 &s->weight, &s->t, &s->v, &s->theta, &s->theta_end, &s->full};
    for (int v = 0; v < VECTORS; v++) *vectors[v] = block + v * ld;
    s->theta32 = (float *)(block + VECTORS * ld), s->rest32 = s->theta32 + c->ldf, s->slope32 = s->rest32 + c->ldf;
    s->line = floats + c->padded, s->seen = floats + 2 * c->padded;
    return 1;
}

typedef struct {
    const double *x64, *d64;
    const float *x32, *d32;
    double *errors64;
    float *errors32;
} l1_arrays;

static mf_status l1_run(const l1_arrays *io, int64_t n, int64_t atoms, int64_t p, int errors, double lam, double tol,
                        const int64_t *exclude, int64_t *counts, void **blocks, signed char *status, mf_run *run)
{
    /* The head costs a few passes over the dictionary: it pays from this many samples on, in as many atoms. */
    enum { HEAD_SAMPLES = 16, HEAD_ATOMS = 256, HEAD_FEATURES = 32 };
    l1_shared c = {.atoms = atoms, .padded = mf_round_up(atoms, 16), .p = p, .ld = mf_round_up(p, 8),
                   .ldf = mf_round_up(p, 16), .errors = errors, .lam = lam, .tol = tol};
    memset(blocks, 0, (size_t)n * sizeof(void *));
    memset(counts, 0, (size_t)n * sizeof(int64_t));
    int use_head = n >= HEAD_SAMPLES && atoms >= HEAD_ATOMS && p >= HEAD_FEATURES;
    mf_status result = l1_prepare(&c, io->d64, io->d32, use_head, run);
    int no_memory = result == MF_NO_MEMORY;
    if (!no_memory) {
#pragma omp parallel num_threads(run->n_threads)
        {
            l1_work s;
            double *row = mf_alloc(p, sizeof(double));
            int ready = l1_prepare_work(&s, &c, run) && row;
#pragma omp for schedule(dynamic)
            for (int64_t i = 0; i < n; i++) {
                if (mf_poll(run)) continue;
                double largest = 0;
                for (int64_t k = 0; k < p && ready; k++) {
                    s.x[k] = io->x64 ? io->x64[i * p + k] : (double)io->x32[i * p + k];
                    largest = fmax(largest, fabs(s.x[k]));
                    row[k] = 0;
                }
                l1_code_t code = ready ? L1_OK : L1_MEMORY;
                status[i] = L1_GOOD;
                if (ready && largest > 0) {
                    int exponent = ilogb(largest) + 1, verdict;
                    for (int64_t k = 0; k < p; k++) s.x[k] = ldexp(s.x[k], -exponent);
                    if (s.excluded >= 0) s.state[s.excluded] = 0;
                    s.excluded = exclude ? exclude[i] : -1;
                    code = l1_sample(&s, exponent, lam, blocks + i, counts + i, row, &verdict);
                    status[i] = (signed char)verdict;
                }
                if (code == L1_MEMORY) {
#pragma omp atomic write
                    no_memory = 1;
                    mf_stop(run);
                }
                for (int64_t k = 0; k < p && errors && ready; k++) {
                    if (io->errors64) io->errors64[i * p + k] = row[k];
                    else io->errors32[i * p + k] = (float)row[k];
                }
            }
            mf_release(row);
            l1_release_work(&s);
        }
    }
    l1_release_shared(&c);
    if (no_memory || run->stop)
        for (int64_t i = 0; i < n; i++) free(blocks[i]), blocks[i] = NULL;
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

static mf_status NAME(l1_code)(const double *x, int64_t n, const double *dictionary, int64_t atoms, int64_t p,
                               double lam, double tol, const int64_t *exclude, int64_t *counts, void **blocks,
                               double *errors, signed char *status, mf_run *run)
{
    l1_arrays io = {.x64 = x, .d64 = dictionary, .errors64 = errors};
    return l1_run(&io, n, atoms, p, errors != NULL, lam, tol, exclude, counts, blocks, status, run);
}

/* The solver is double throughout: the float entry only reads and writes float. */
static mf_status MF_JOIN(mf_l1_code_f32, MF_LEVEL)(const float *x, int64_t n, const float *dictionary, int64_t atoms,
                                                   int64_t p, double lam, double tol, const int64_t *exclude,
                                                   int64_t *counts, void **blocks, float *errors, signed char *status,
                                                   mf_run *run)
{
    l1_arrays io = {.x32 = x, .d32 = dictionary, .errors32 = errors};
    return l1_run(&io, n, atoms, p, errors != NULL, lam, tol, exclude, counts, blocks, status, run);
}

/* Moves the blocks into CSR arrays and frees them. */
static void NAME(l1_collect)(void **blocks, const int64_t *counts, int64_t n, int64_t *indices, double *values)
{
    for (int64_t i = 0; i < n; i++) {
        if (counts[i] && blocks[i]) {
            memcpy(indices, blocks[i], (size_t)counts[i] * sizeof(int64_t));
            memcpy(values, (int64_t *)blocks[i] + counts[i], (size_t)counts[i] * sizeof(double));
        }
        indices += counts[i], values += counts[i];
        free(blocks[i]);
        blocks[i] = NULL;
    }
}
