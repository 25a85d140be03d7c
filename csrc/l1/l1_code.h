/* l1_code: exact sparse codes of many samples, one thread per sample, in either dtype. Computed in double; float rows
 * are converted as they are read and written. A result leaves with a certificate (l1/certificate.h).
 * Workspace: per thread, a few vectors of p and of atoms; and the square of the number of active atoms. */
#ifndef MF_L1_L1_CODE_H
#define MF_L1_L1_CODE_H

#include "l1/certificate.h"
#include "l1/dictionary.h"

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
static l1_result l1_sample(l1_work *s, int exponent, double lam, void **block, int64_t *count, double *errors,
                           int *status)
{
    /* Fast factors first; then orthogonal ones; then without regard to atoms that differ from active ones, and to a
     * rest, by less than the certificate measures; then with a larger rest left to l1_settle; then with penalties
     * changed by as little, which separates ties that would cycle. */
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
            /* No path came to its end: follow one again to where it was still good. That is the right answer for a
             * larger penalty, and reported as good only if its certificate, which is for the target, says so. */
            if (best < INFINITY || !(reached < s->lam0)) break;
            which = furthest, s->lam_end = reached;
        }
        s->perturb = attempts[which].perturb, s->eta = attempts[which].eta, s->early = attempts[which].early;
        s->rest_noise = attempts[which].rest;
        l1_result code = l1_begin(s, attempts[which].qr, &first);
        if (code == L1_OK) code = l1_follow(s);
        if (code == L1_OK && !s->qr && !l1_refresh(s, 2)) code = l1_qr_recover(s);
        if (l1_ends_call(code)) return code;
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
    const double *x64;
    const float *x32;
    double *errors64;
    float *errors32;
} l1_arrays;

/* Codes in a dictionary that is prepared. */
static mf_status l1_run(const mf_prepared *dictionary, const l1_arrays *io, int64_t n, int errors, double lam,
                        double tol, const int64_t *exclude, int64_t *counts, void **blocks, signed char *status,
                        mf_run *run)
{
    l1_shared c = *(const l1_shared *)dictionary;
    c.errors = errors, c.lam = lam, c.tol = tol;
    int64_t p = c.p;
    int no_memory = 0, done = 0;
    memset(blocks, 0, (size_t)n * sizeof(void *));
    memset(counts, 0, (size_t)n * sizeof(int64_t));
#pragma omp parallel num_threads(run->n_threads) if (run->n_threads > 1 && n > 1)
    {
        l1_work s;
        double *row = mf_alloc(p, sizeof(double));
        int ready = l1_prepare_work(&s, &c, run) && row;
#pragma omp for schedule(dynamic) nowait
        for (int64_t i = 0; i < n; i++) {
            if (mf_poll(run)) continue;
            double largest = 0;
            for (int64_t k = 0; k < p && ready; k++) {
                s.x[k] = io->x64 ? io->x64[i * p + k] : (double)io->x32[i * p + k];
                largest = fmax(largest, fabs(s.x[k]));
                row[k] = 0;
            }
            l1_result code = ready ? L1_OK : L1_MEMORY;
            status[i] = L1_GOOD;
            if (ready && largest > 0) {
                int exponent = ilogb(largest) + 1, verdict;
                for (int64_t k = 0; k < p; k++) s.x[k] = ldexp(s.x[k], -exponent);
                if (s.excluded >= 0) s.state[s.excluded] = 0;
                s.excluded = exclude ? exclude[i] : -1;
                code = l1_sample(&s, exponent, lam, blocks + i, counts + i, row, &verdict);
                status[i] = (signed char)verdict;
            }
            if (code == L1_MEMORY) mf_out_of_memory(&no_memory, run);
            for (int64_t k = 0; k < p && errors && ready; k++) {
                if (io->errors64) io->errors64[i * p + k] = row[k];
                else io->errors32[i * p + k] = (float)row[k];
            }
        }
        mf_release(row);
        l1_release_work(&s);
        /* A sample may take seconds: the calling thread checks for Ctrl-C until the last one is done. */
#pragma omp atomic update
        done++;
        for (int all = 0; omp_get_thread_num() == 0 && !all && !mf_poll(run);) {
#pragma omp atomic read
            all = done;
            all = all == omp_get_num_threads();
            if (!all) mf_doze();
        }
    }
    if (no_memory || run->stop)
        for (int64_t i = 0; i < n; i++) free(blocks[i]), blocks[i] = NULL;
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

static mf_status mf_l1_prepare_f64(const double *dictionary, int64_t atoms, int64_t p, int64_t samples,
                                   mf_prepared **made, mf_run *run)
{
    l1_shared *c = mf_alloc(1, sizeof(*c));
    *made = (mf_prepared *)c;
    return c ? l1_open(c, dictionary, NULL, atoms, p, samples, run) : MF_NO_MEMORY;
}

static mf_status mf_l1_code_f64(const mf_prepared *dictionary, const double *x, int64_t n, double lam, double tol,
                                const int64_t *exclude, int64_t *counts, void **blocks, double *errors,
                                signed char *status, mf_run *run)
{
    l1_arrays io = {.x64 = x, .errors64 = errors};
    return l1_run(dictionary, &io, n, errors != NULL, lam, tol, exclude, counts, blocks, status, run);
}

/* The solver is double throughout: the float entries only read and write float. */
static mf_status mf_l1_prepare_f32(const float *dictionary, int64_t atoms, int64_t p, int64_t samples,
                                   mf_prepared **made, mf_run *run)
{
    l1_shared *c = mf_alloc(1, sizeof(*c));
    *made = (mf_prepared *)c;
    return c ? l1_open(c, NULL, dictionary, atoms, p, samples, run) : MF_NO_MEMORY;
}

static mf_status mf_l1_code_f32(const mf_prepared *dictionary, const float *x, int64_t n, double lam, double tol,
                                const int64_t *exclude, int64_t *counts, void **blocks, float *errors,
                                signed char *status, mf_run *run)
{
    l1_arrays io = {.x32 = x, .errors32 = errors};
    return l1_run(dictionary, &io, n, errors != NULL, lam, tol, exclude, counts, blocks, status, run);
}

/* Moves the blocks into CSR arrays and frees them. */
static void mf_l1_collect(void **blocks, const int64_t *counts, int64_t n, int64_t *indices, double *values)
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

#endif
