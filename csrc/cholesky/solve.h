/* cholesky_solve: solves with the factor of cholesky/factor.h, four right-hand sides at a time.
 * Accumulator: double, over the pivots of a task in order, then over the tasks in order: threads change no bit. No
 * column of a solve depends on the columns beside it.
 * Workspace: twice n values per right-hand side of a thread, and the rows that tasks hand over. */
#ifndef MF_CHOLESKY_SOLVE_H
#define MF_CHOLESKY_SOLVE_H

#include "cholesky/factor.h"

/* The right-hand sides while they are solved, row by row in elimination order. A task has the rows below `limit` for
 * itself; what it takes from the others is summed in `beyond` and handed over at its end. NULL: all rows are its own. */
typedef struct mf_solve_rows {
    double *x, *beyond;
    int32_t limit;
} mf_solve_rows;

/* Where rows begin .. end - 1 of a front lie, as a number of them that are in x and come first: rows ascend. */
MF_INLINE int64_t mf_solve_inside(const mf_solve_rows x, const int32_t *row, int64_t begin, int64_t end)
{
    while (x.beyond && end > begin && row[end - 1] >= x.limit) end--;
    return end - begin;
}

/* Rows of a block, one column of the right-hand sides after the other; rows beyond the front are 0. */
MF_INLINE void mf_cholesky_gather(const mf_solve_rows x, const int32_t *row, int64_t begin, int64_t end, int width,
                                  double block[WIDTH][HEIGHT])
{
    for (int j = 0; j < width; j++)
        for (int64_t i = 0; i < HEIGHT; i++) block[j][i] = 0;
    int64_t inside = mf_solve_inside(x, row, begin, end);
    for (int64_t i = 0; i < inside; i++)
        for (int j = 0; j < width; j++) block[j][i] = x.x[(int64_t)row[begin + i] * width + j];
    for (int64_t i = inside; i < end - begin; i++)
        for (int j = 0; j < width; j++) block[j][i] = x.beyond[(int64_t)row[begin + i] * width + j];
}

/* x = L^-1 x for one front: its pivots, then what they take from the rows beyond. */
MF_INLINE void mf_forward_front(int width, const mf_cholesky *c, int32_t s, const mf_solve_rows x)
{
    const mf_fronts *f = &c->fronts;
    int64_t first = f->first[s], pivots = f->first[s + 1] - first, rows = f->begin[s + 1] - f->begin[s];
    const int32_t *row = f->rows + f->begin[s];
    const double *panel = c->factor + c->panel[s];
    double *head = x.x + first * width;
    for (int64_t begin = 0; begin < rows; begin += HEIGHT) {
        const double *block = panel + begin * pivots;
        int64_t stop = mf_min(begin + HEIGHT, rows);
        double part[WIDTH][HEIGHT];
        vf64 sum[TILE_VECTORS][WIDTH];
        mf_cholesky_tile(block, head, mf_min(begin, pivots), width, width, sum);
        mf_cholesky_gather(x, row, begin, stop, width, part);
        for (int j = 0; j < width; j++)
            for (int v = 0; v < TILE_VECTORS; v++)
                vf64_store(part[j] + v * MF_LANES64, vf64_load(part[j] + v * MF_LANES64) - sum[v][j]);
        for (int64_t k = begin; k < mf_min(pivots, stop); k++) {
            const double *column = block + k * HEIGHT;
            for (int j = 0; j < width; j++) {
                double value = part[j][k - begin] * column[k - begin];
                for (int v = 0; v < HEIGHT; v += MF_LANES64)
                    vf64_store(part[j] + v, vf64_fma(vf64_load(column + v), vf64_set(-value), vf64_load(part[j] + v)));
                part[j][k - begin] = value;
            }
        }
        int64_t inside = mf_solve_inside(x, row, begin, stop);
        for (int64_t i = 0; i < inside; i++)
            for (int j = 0; j < width; j++) x.x[(int64_t)row[begin + i] * width + j] = part[j][i];
        for (int64_t i = inside; i < stop - begin; i++)
            for (int j = 0; j < width; j++) x.beyond[(int64_t)row[begin + i] * width + j] = part[j][i];
    }
}

/* sums[k][j] += the products of column k of a block with column j of `part`, lane by lane. */
MF_INLINE void mf_transposed_tile(const double *block, int64_t columns, int width, double part[WIDTH][HEIGHT],
                                  vf64 *sums)
{
    vf64 x[WIDTH][TILE_VECTORS];
    for (int j = 0; j < width; j++)
        for (int v = 0; v < TILE_VECTORS; v++) x[j][v] = vf64_load(part[j] + v * MF_LANES64);
    for (int64_t k = 0; k < columns; k++, block += HEIGHT)
        for (int j = 0; j < width; j++) {
            vf64 sum = sums[k * width + j];
            for (int v = 0; v < TILE_VECTORS; v++) sum = vf64_fma(vf64_load(block + v * MF_LANES64), x[j][v], sum);
            sums[k * width + j] = sum;
        }
}

MF_INLINE double mf_cholesky_lanes_sum(vf64 v)
{
    double lanes[MF_LANES64], sum = 0;
    vf64_store(lanes, v);
    for (int i = 0; i < MF_LANES64; i += 2) sum += lanes[i] + lanes[i + 1];
    return sum;
}

/* x = L^-T x for one front. */
MF_INLINE void mf_backward_front(int width, const mf_cholesky *c, int32_t s, const mf_solve_rows x, vf64 *sums)
{
    const mf_fronts *f = &c->fronts;
    int64_t first = f->first[s], pivots = f->first[s + 1] - first, rows = f->begin[s + 1] - f->begin[s];
    const int32_t *row = f->rows + f->begin[s];
    const double *panel = c->factor + c->panel[s];
    double *head = x.x + first * width;
    memset(sums, 0, (size_t)(pivots * width) * sizeof(vf64));
    for (int64_t begin = pivots / HEIGHT * HEIGHT; begin < rows; begin += HEIGHT) {
        double part[WIDTH][HEIGHT];
        mf_cholesky_gather(x, row, begin, mf_min(begin + HEIGHT, rows), width, part);
        for (int64_t i = begin; i < pivots; i++)
            for (int j = 0; j < width; j++) part[j][i - begin] = 0;
        mf_transposed_tile(panel + begin * pivots, pivots, width, part, sums);
    }
    for (int64_t begin = (pivots - 1) / HEIGHT * HEIGHT; begin >= 0; begin -= HEIGHT) {
        const double *block = panel + begin * pivots;
        double part[WIDTH][HEIGHT] = {{0}};
        for (int64_t k = mf_min(begin + HEIGHT, pivots) - 1; k >= begin; k--) {
            const double *column = block + k * HEIGHT;
            for (int j = 0; j < width; j++) {
                vf64 sum = sums[k * width + j];
                for (int v = 0; v < HEIGHT; v += MF_LANES64)
                    sum = vf64_fma(vf64_load(column + v), vf64_load(part[j] + v), sum);
                double value = (head[k * width + j] - mf_cholesky_lanes_sum(sum)) * column[k - begin];
                head[k * width + j] = part[j][k - begin] = value;
            }
        }
        mf_transposed_tile(block, begin, width, part, sums);
    }
}

/* All fronts from `begin` to `end` that belong to one task (root: its last front), or to none (root -1). */
MF_INLINE void mf_forward_fronts(int width, const mf_cholesky *c, int32_t begin, int32_t end, int32_t root,
                                 const mf_solve_rows x, mf_run *run)
{
    for (int32_t s = begin; s < end && !(s % MF_POLL_FRONTS == 0 && mf_poll(run)); s++)
        if (c->root_of[s] == root) mf_forward_front(width, c, s, x);
}

MF_INLINE void mf_backward_fronts(int width, const mf_cholesky *c, int32_t begin, int32_t end, int32_t root,
                                  const mf_solve_rows x, vf64 *sums, mf_run *run)
{
    for (int32_t s = end - 1; s >= begin && !(s % MF_POLL_FRONTS == 0 && mf_poll(run)); s--)
        if (c->root_of[s] == root) mf_backward_front(width, c, s, x, sums);
}

/* The compiler makes one version of a function per width, its first argument. */
#define MF_BY_WIDTH(width, function, ...)                                                                              \
    do switch (width) {                                                                                                \
        case 1: function(1, __VA_ARGS__); break;                                                                       \
        case 2: function(2, __VA_ARGS__); break;                                                                       \
        case 3: function(3, __VA_ARGS__); break;                                                                       \
        default: function(WIDTH, __VA_ARGS__);                                                                         \
        }                                                                                                              \
    while (0)

/* The right-hand sides, and the workspace of those who solve for some columns of them. */
typedef struct mf_solve_job {
    const mf_cholesky *c;
    const double *rhs;
    double *out;
    int64_t m;
    int width; /* columns that are solved for now */
    double *x, *handed, *beyond; /* beyond and sums: for each thread */
    vf64 *sums;
} mf_solve_job;

/* The rows beyond its own that a task reaches: those of its root. */
static inline const int32_t *mf_rows_beyond(const mf_cholesky *c, int32_t t, int64_t *count)
{
    const mf_fronts *f = &c->fronts;
    *count = c->handed[t + 1] - c->handed[t];
    return f->rows + f->begin[c->root_of[c->task_begin[t]] + 1] - *count;
}

static void mf_forward_task(const mf_solve_job *job, int32_t t, double *beyond, mf_run *run)
{
    const mf_cholesky *c = job->c;
    int32_t root = c->root_of[c->task_begin[t]];
    mf_solve_rows rows = {job->x, beyond, c->fronts.first[root + 1]};
    int64_t count, width = job->width;
    const int32_t *row = mf_rows_beyond(c, t, &count);
    double *handed = job->handed + c->handed[t] * width;
    for (int64_t i = 0; i < count; i++) memset(beyond + row[i] * width, 0, (size_t)width * sizeof(double));
    MF_BY_WIDTH(job->width, mf_forward_fronts, c, c->task_begin[t], root + 1, root, rows, run);
    for (int64_t i = 0; i < count; i++)
        memcpy(handed + i * width, beyond + row[i] * width, (size_t)width * sizeof(double));
}

static void mf_backward_task(const mf_solve_job *job, int32_t t, vf64 *sums, mf_run *run)
{
    const mf_cholesky *c = job->c;
    int32_t root = c->root_of[c->task_begin[t]];
    mf_solve_rows rows = {job->x, NULL, c->n};
    MF_BY_WIDTH(job->width, mf_backward_fronts, c, c->task_begin[t], root + 1, root, rows, sums, run);
}

/* What the tasks hand over, in their order, and the fronts above them. */
static void mf_solve_above(const mf_solve_job *job, mf_run *run)
{
    const mf_cholesky *c = job->c;
    int32_t fronts = c->fronts.count;
    mf_solve_rows rows = {job->x, NULL, c->n};
    for (int32_t t = 0; t < c->tasks; t++) {
        int64_t count, width = job->width;
        const int32_t *row = mf_rows_beyond(c, t, &count);
        const double *handed = job->handed + c->handed[t] * width;
        for (int64_t i = 0; i < count * width; i++) job->x[row[i / width] * width + i % width] += handed[i];
    }
    MF_BY_WIDTH(job->width, mf_forward_fronts, c, 0, fronts, -1, rows, run);
    MF_BY_WIDTH(job->width, mf_backward_fronts, c, 0, fronts, -1, rows, job->sums, run);
}

/* WIDTH columns from `first` on, or those that are left. */
static void mf_solve_columns(mf_solve_job *job, int64_t first, int n_threads, mf_run *run)
{
    const mf_cholesky *c = job->c;
    const int32_t *order = c->fronts.order;
    int64_t width = job->width = (int)mf_min(WIDTH, job->m - first), most = mf_min(WIDTH, job->m);
#pragma omp parallel num_threads(n_threads) if (n_threads > 1)
    {
        int64_t thread = omp_get_thread_num();
#pragma omp for schedule(static)
        for (int64_t k = 0; k < c->n; k++)
            for (int64_t j = 0; j < width; j++) job->x[k * width + j] = job->rhs[order[k] * job->m + first + j];
#pragma omp for schedule(dynamic, 1)
        for (int32_t t = 0; t < c->tasks; t++)
            if (!mf_poll(run)) mf_forward_task(job, t, job->beyond + thread * c->n * most, run);
        if (thread == 0) mf_solve_above(job, run);
#pragma omp barrier
#pragma omp for schedule(dynamic, 1)
        for (int32_t t = c->tasks - 1; t >= 0; t--)
            if (!mf_poll(run)) mf_backward_task(job, t, job->sums + thread * c->most_pivots * WIDTH, run);
#pragma omp for schedule(static)
        for (int64_t k = 0; k < c->n; k++)
            for (int64_t j = 0; j < width; j++) job->out[order[k] * job->m + first + j] = job->x[k * width + j];
    }
}

/* out = (L L')^-1 rhs, both n x m. Threads share the columns, or the tasks where there are too few columns. */
static mf_status mf_cholesky_solve(const mf_cholesky *c, const double *rhs, int64_t m, double *out, mf_run *run)
{
    int64_t groups = mf_ceil_div(m, WIDTH), width = mf_min(m, WIDTH), handed_size = c->handed[c->tasks] * width;
    int n_threads = run->n_threads, shared = groups < n_threads;
    int64_t jobs = shared ? 1 : n_threads;
    double *x = mf_alloc(jobs * c->n * width, sizeof(double));
    double *handed = mf_alloc(jobs * handed_size, sizeof(double));
    double *beyond = mf_alloc((int64_t)n_threads * c->n * width, sizeof(double));
    vf64 *sums = mf_alloc((int64_t)n_threads * c->most_pivots * WIDTH, sizeof(vf64));
    int starved = !x || !beyond || !handed || !sums;
    mf_solve_job whole = {c, rhs, out, m, 0, x, handed, beyond, sums};
    if (starved) groups = 0;
    /* Not inside a parallel region, even one of a single thread: a team inside another is made anew every time. */
    for (int64_t g = 0; shared && g < groups; g++) mf_solve_columns(&whole, g * WIDTH, n_threads, run);
#pragma omp parallel for schedule(dynamic, 1) num_threads(n_threads) if (n_threads > 1 && !shared)
    for (int64_t g = 0; g < (shared ? 0 : groups); g++) {
        int64_t thread = omp_get_thread_num();
        mf_solve_job own = whole;
        own.x += thread * c->n * width;
        own.handed += thread * handed_size;
        own.beyond += thread * c->n * width;
        own.sums += thread * c->most_pivots * WIDTH;
        if (!mf_poll(run)) mf_solve_columns(&own, g * WIDTH, 1, run);
    }
    mf_release(x);
    mf_release(handed);
    mf_release(beyond);
    mf_release(sums);
    return starved ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

#endif
