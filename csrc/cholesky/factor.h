/* cholesky_analyse and cholesky_factor: sparse factorisation L L' of a symmetric positive definite matrix,
 * multifrontal.
 * Accumulator: double. Order: every front sums in one fixed order, so threads change no bit.
 * Workspace: the updates of fronts that wait for their parents, shared and per thread; cholesky_plan counts them.
 *
 * A front's columns of L are a panel cut into blocks of HEIGHT rows; a block is stored column by column, HEIGHT values
 * each, so that all inner loops read memory in order. Its diagonal holds reciprocals. The update that a front hands to
 * its parent is cut into the same blocks, from the block on that has the first row beyond the pivots, and a block
 * stores only the columns up to its own last row. */
#ifndef MF_CHOLESKY_FACTOR_H
#define MF_CHOLESKY_FACTOR_H

#include "base/common.h"
#include "base/simd.h"
#include "cholesky/fronts.h"

/* A tile is HEIGHT rows by WIDTH columns: with four lanes it fills the registers. */
enum { TILE_VECTORS = MF_LANES64 == 4 ? 3 : 2, HEIGHT = TILE_VECTORS * MF_LANES64, WIDTH = 4 };

enum {
    MF_TASK_SHARE = 16,       /* a task has at most this part of the work */
    /* flops of a front that several threads share, and that checks for Ctrl-C */
    MF_LARGE_FRONT = MF_LIMIT(1000000, 100),
    MF_POLL_FRONTS = MF_LIMIT(64, 2)       /* fronts of a solve between two such checks */
};

struct mf_cholesky {
    int32_t n;
    int64_t *diagonal; /* which entry of the matrix it is, -1 where it is not stored */
    mf_fronts fronts;
    int64_t *panel;  /* where a front's panel begins in `factor` */
    int64_t *update; /* where its update goes: in the thread's workspace inside a task, else in the shared one */
    int32_t *root_of;    /* the root of the task that a front belongs to, -1 above all tasks */
    int32_t *task_begin; /* the first front of a task; the rest follow up to its root */
    int64_t *handed;     /* how many rows beyond their own the tasks before a task reach, all together */
    int32_t tasks, most_rows, most_pivots;
    int64_t shared_size, own_size, factor_size;
    double *factor;
};

MF_INLINE int64_t mf_panel_row(int64_t row, int64_t pivots) { return row / HEIGHT * HEIGHT * pivots + row % HEIGHT; }

/* Rows of an update count from the block of the panel that has the first of them. */
MF_INLINE int64_t mf_update_block(int64_t block) { return (int64_t)HEIGHT * HEIGHT * block * (block + 1) / 2; }
MF_INLINE int64_t mf_update_row(int64_t row) { return mf_update_block(row / HEIGHT) + row % HEIGHT; }

static inline int64_t mf_update_size(int64_t pivots, int64_t rows)
{
    return rows == pivots ? 0 : mf_update_block(mf_ceil_div(rows, HEIGHT) - pivots / HEIGHT);
}

static void mf_cholesky_free(mf_cholesky *c)
{
    if (!c) return;
    mf_release(c->diagonal);
    mf_fronts_release(&c->fronts);
    mf_release(c->panel);
    mf_release(c->update);
    mf_release(c->root_of);
    mf_release(c->task_begin);
    mf_release(c->handed);
    mf_release(c->factor);
    free(c);
}

/* Whether the pattern is in range, sorted, free of duplicates and symmetric; all that follows indexes with it. Row i
 * meets the columns j < i, each of which must have i as its next entry above the diagonal, at next[j]. In the end
 * none may be left over. Fills `diagonal`; `next` is work. */
static int mf_is_symmetric(int32_t n, int64_t entries, const int64_t *indptr, const int32_t *columns,
                           int64_t *diagonal, int64_t *next)
{
    if (indptr[0] != 0 || indptr[n] != entries) return 0;
    for (int32_t i = 0; i < n; i++)
        if (indptr[i] > indptr[i + 1]) return 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t last = -1;
        diagonal[i] = -1;
        next[i] = indptr[i + 1];
        for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
            int32_t j = columns[e];
            if (j <= last || j >= n) return 0;
            last = j;
            if (j == i) diagonal[i] = e;
            else if (j > i) next[i] = mf_min(next[i], e);
            else if (next[j] == indptr[j + 1] || columns[next[j]++] != i) return 0;
        }
    }
    for (int32_t i = 0; i < n; i++)
        if (next[i] != indptr[i + 1]) return 0;
    return 1;
}

/* Cuts the tree into subtrees for the threads, the same for any number of them, and says where each update lies.
 * Updates of even and odd depth lie on two stacks: children are read from one while their parent is written on the
 * other. The update of a task's root is needed after the task and has its own place. */
static mf_status mf_cholesky_plan(mf_cholesky *c)
{
    const mf_fronts *f = &c->fronts;
    int32_t count = f->count;
    c->panel = mf_alloc((int64_t)count + 1, sizeof(int64_t));
    c->update = mf_alloc(count, sizeof(int64_t));
    c->root_of = mf_alloc(count, sizeof(int32_t));
    c->task_begin = mf_alloc((int64_t)count + 1, sizeof(int32_t));
    c->handed = mf_alloc((int64_t)count + 1, sizeof(int64_t));
    double *work = mf_alloc(count, sizeof(double));
    unsigned char *odd = mf_alloc(count, 1);
    mf_status status = MF_NO_MEMORY;
    if (!c->panel || !c->update || !c->root_of || !c->task_begin || !c->handed || !work || !odd) goto done;

    double total = 0;
    c->panel[0] = 0;
    for (int32_t s = 0; s < count; s++) {
        int64_t pivots = f->first[s + 1] - f->first[s], rows = f->begin[s + 1] - f->begin[s];
        c->panel[s + 1] = c->panel[s] + mf_round_up(rows, HEIGHT) * pivots;
        c->most_rows = (int32_t)mf_max(c->most_rows, rows);
        c->most_pivots = (int32_t)mf_max(c->most_pivots, pivots);
        work[s] = mf_front_cost((double)pivots, (double)(rows - pivots));
        total += work[s];
        for (int32_t k = f->child[s]; k >= 0; k = f->sibling[k]) work[s] += work[k];
    }
    c->factor_size = c->panel[count];
    for (int32_t s = count - 1; s >= 0; s--) {
        int32_t up = f->parent[s];
        int inside = up >= 0 && c->root_of[up] >= 0;
        odd[s] = up >= 0 && !odd[up];
        c->root_of[s] = inside ? c->root_of[up] : work[s] <= total / MF_TASK_SHARE ? s : -1;
    }
    for (int32_t s = 0; s < count; s++) {
        if (c->root_of[s] < 0) continue;
        if (s == 0 || c->root_of[s - 1] != c->root_of[s]) c->task_begin[c->tasks++] = s;
    }
    c->handed[0] = 0;
    for (int32_t t = 0; t < c->tasks; t++) {
        int32_t root = c->root_of[c->task_begin[t]];
        c->handed[t + 1] = c->handed[t] + f->begin[root + 1] - f->begin[root] - (f->first[root + 1] - f->first[root]);
    }
    int64_t kept = 0, own[2] = {0, 0}, most[2] = {0, 0}, above[2] = {0, 0}, most_above[2] = {0, 0};
    for (int32_t s = 0; s < count; s++) {
        int64_t pivots = f->first[s + 1] - f->first[s], size = mf_update_size(pivots, f->begin[s + 1] - f->begin[s]);
        int is_root = c->root_of[s] == s;
        int64_t *stack = c->root_of[s] < 0 ? above : own, *peak = c->root_of[s] < 0 ? most_above : most;
        for (int32_t k = f->child[s]; k >= 0; k = f->sibling[k]) {
            int64_t child_pivots = f->first[k + 1] - f->first[k];
            if (c->root_of[k] != k) stack[odd[k]] -= mf_update_size(child_pivots, f->begin[k + 1] - f->begin[k]);
        }
        if (is_root) {
            c->update[s] = kept;
            kept += size;
        } else {
            c->update[s] = stack[odd[s]];
            stack[odd[s]] += size;
            peak[odd[s]] = mf_max(peak[odd[s]], stack[odd[s]]);
        }
    }
    for (int32_t s = 0; s < count; s++) {
        if (c->root_of[s] == s) continue;
        if (c->root_of[s] < 0) c->update[s] += kept + (odd[s] ? most_above[0] : 0);
        else c->update[s] += odd[s] ? most[0] : 0;
    }
    c->shared_size = kept + most_above[0] + most_above[1];
    c->own_size = most[0] + most[1];
    status = MF_OK;
done:
    mf_release(work);
    mf_release(odd);
    return status;
}

static mf_status mf_cholesky_analyse(int64_t n, int64_t entries, const int64_t *indptr, const int32_t *columns,
                                     double max_flops, mf_cholesky **made, int64_t *factor_entries, double *flops,
                                     int *feasible, int *flaws, mf_run *run)
{
    mf_cholesky *c = *made = calloc(1, sizeof(mf_cholesky));
    mf_pattern pattern = {0};
    mf_status status = MF_NO_MEMORY;
    *feasible = 0;
    if (!c) return status;
    c->n = (int32_t)n;
    c->diagonal = mf_alloc(n, sizeof(int64_t));
    int64_t *next = mf_alloc(n, sizeof(int64_t));
    if (!c->diagonal || !next) {
        mf_release(next);
        return status;
    }
    *flaws = mf_is_symmetric(c->n, entries, indptr, columns, c->diagonal, next) ? 0 : MF_NOT_SYMMETRIC;
    mf_release(next);
    if (*flaws) return MF_OK;
    status = mf_pattern_make(&pattern, c->n, indptr, columns);
    if (status == MF_OK) status = mf_fronts_make(&c->fronts, &pattern, max_flops, feasible, run);
    mf_pattern_release(&pattern);
    *flops = c->fronts.flops;
    *factor_entries = c->fronts.entries;
    if (status == MF_OK && *feasible) status = mf_cholesky_plan(c);
    return status;
}

/* sum[v][j] = sum over k of x[k][v] y[k][j], k ascending. */
MF_INLINE void mf_cholesky_tile(const double *x, const double *y, int64_t depth, int64_t y_stride, int width,
                                vf64 sum[TILE_VECTORS][WIDTH])
{
    for (int v = 0; v < TILE_VECTORS; v++)
        for (int j = 0; j < width; j++) sum[v][j] = (vf64){0};
    for (int64_t k = 0; k < depth; k++, x += HEIGHT, y += y_stride)
        for (int j = 0; j < width; j++) {
            vf64 b = vf64_set(y[j]);
            for (int v = 0; v < TILE_VECTORS; v++) sum[v][j] = vf64_fma(vf64_load(x + v * MF_LANES64), b, sum[v][j]);
        }
}

/* Factors the diagonal piece of `width` columns from `column` on, in the block that has its rows from `row` on, and
 * solves for all rows of the block. False where a pivot is not positive; *bad says which. */
static int mf_factor_corner(double *block, int64_t column, int64_t row, int64_t width, int64_t *bad)
{
    for (int64_t j = 0; j < width; j++) {
        double *x = block + (column + j) * HEIGHT, pivot = x[row + j];
        if (!(pivot > 0 && pivot < (double)INFINITY)) {
            *bad = column + j;
            return 0;
        }
        double reciprocal = 1 / sqrt(pivot);
        for (int64_t i = 0; i < HEIGHT; i++) x[i] = i > row + j ? x[i] * reciprocal : 0;
        for (int64_t k = j + 1; k < width; k++) {
            double factor = -x[row + k], *y = block + (column + k) * HEIGHT;
            for (int64_t i = 0; i < HEIGHT; i += MF_LANES64)
                vf64_store(y + i, vf64_fma(vf64_load(x + i), vf64_set(factor), vf64_load(y + i)));
        }
        x[row + j] = reciprocal;
    }
    return 1;
}

/* One block of rows of a panel whose earlier blocks are done. */
static int mf_factor_block(double *panel, int64_t pivots, int64_t begin, int64_t *bad)
{
    double *block = panel + begin * pivots;
    int64_t columns = mf_min(pivots, begin + HEIGHT);
    for (int64_t k = 0; k < columns; k += WIDTH) {
        int64_t width = mf_min(WIDTH, pivots - k);
        const double *corner = panel + mf_panel_row(k, pivots);
        vf64 sum[TILE_VECTORS][WIDTH];
        mf_cholesky_tile(block, corner, k, HEIGHT, WIDTH, sum);
        corner += k * HEIGHT;
        if (k >= begin) {
            for (int64_t j = 0; j < width; j++)
                for (int v = 0; v < TILE_VECTORS; v++) {
                    double *x = block + (k + j) * HEIGHT + v * MF_LANES64;
                    vf64_store(x, vf64_load(x) - sum[v][j]);
                }
            if (!mf_factor_corner(block, k, k - begin, width, bad)) return 0;
            continue;
        }
        for (int v = 0; v < TILE_VECTORS; v++) {
            double *x = block + k * HEIGHT + v * MF_LANES64;
            vf64 solved[WIDTH];
            for (int j = 0; j < WIDTH; j++) {
                if (j >= width) break;
                vf64 value = vf64_load(x + j * HEIGHT) - sum[v][j];
                for (int i = 0; i < j; i++) value = vf64_fma(-solved[i], vf64_set(corner[i * HEIGHT + j]), value);
                solved[j] = value * vf64_set(corner[j * HEIGHT + j]);
                vf64_store(x + j * HEIGHT, solved[j]);
            }
        }
    }
    return 1;
}

/* One block of rows of the update: minus the product of the panel's rows beyond the pivots. */
static void mf_update_rows(const double *panel, int64_t pivots, int64_t begin, int64_t rows, double *update)
{
    int64_t origin = pivots / HEIGHT * HEIGHT, last = mf_min(mf_round_up(rows, WIDTH), begin + HEIGHT);
    const double *block = panel + begin * pivots;
    double *out = update + mf_update_block((begin - origin) / HEIGHT);
    for (int64_t j = pivots / WIDTH * WIDTH; j < last; j += WIDTH) {
        vf64 sum[TILE_VECTORS][WIDTH];
        mf_cholesky_tile(block, panel + mf_panel_row(j, pivots), pivots, HEIGHT, WIDTH, sum);
        for (int k = 0; k < WIDTH; k++)
            for (int v = 0; v < TILE_VECTORS; v++)
                vf64_store(out + (j - origin + k) * HEIGHT + v * MF_LANES64, -sum[v][k]);
    }
}

/* What is left of a large front once the square part of its panel is done, by several threads. */
static void mf_factor_large(double *panel, int64_t pivots, int64_t rows, double *update, int n_threads, mf_run *run)
{
#pragma omp parallel num_threads(n_threads) if (n_threads > 1)
    {
        int64_t unused;
#pragma omp for schedule(dynamic, 2)
        for (int64_t begin = mf_round_up(pivots, HEIGHT); begin < rows; begin += HEIGHT)
            if (!mf_poll(run)) mf_factor_block(panel, pivots, begin, &unused);
#pragma omp for schedule(dynamic, 1)
        for (int64_t begin = pivots / HEIGHT * HEIGHT; begin < (pivots < rows ? rows : 0); begin += HEIGHT)
            if (!mf_poll(run)) mf_update_rows(panel, pivots, begin, rows, update);
    }
}

typedef struct mf_cholesky_job {
    mf_cholesky *c;
    const double *values, *shifts; /* shifts: added to the diagonal, `shift` times */
    double shift;
    double *shared;
} mf_cholesky_job;

/* What a thread needs: where a row stands in the current front, and where a child's rows go. */
typedef struct mf_cholesky_space {
    int32_t *place, *target;
    int64_t *panel_row, *update_row;
    double *own;
} mf_cholesky_space;

static void mf_cholesky_space_release(mf_cholesky_space *space)
{
    mf_release(space->place);
    mf_release(space->target);
    mf_release(space->panel_row);
    mf_release(space->update_row);
    mf_release(space->own);
}

static int mf_cholesky_space_make(mf_cholesky_space *space, const mf_cholesky *c, int64_t own_size)
{
    space->place = mf_alloc(c->n, sizeof(int32_t));
    space->target = mf_alloc(c->most_rows, sizeof(int32_t));
    space->panel_row = mf_alloc(c->most_rows, sizeof(int64_t));
    space->update_row = mf_alloc(c->most_rows, sizeof(int64_t));
    space->own = mf_alloc(own_size, sizeof(double));
    return space->place && space->target && space->panel_row && space->update_row && space->own;
}

static inline double *mf_update_place(const mf_cholesky_job *job, int32_t s, const mf_cholesky_space *space)
{
    int32_t root = job->c->root_of[s];
    return (root < 0 || root == s ? job->shared : space->own) + job->c->update[s];
}

/* Adds the columns of a child's update that are pivots of the parent to its panel (update == NULL), or the others
 * to its update. space->place holds the parent's rows. */
static void mf_add_child(const mf_fronts *f, int32_t child, const double *from, int64_t pivots, double *panel,
                         double *update, mf_cholesky_space *space)
{
    int64_t own = f->first[child + 1] - f->first[child], rows = f->begin[child + 1] - f->begin[child];
    int64_t origin = own / HEIGHT * HEIGHT, parent_origin = pivots / HEIGHT * HEIGHT, split = own;
    const int32_t *row = f->rows + f->begin[child];
    int32_t *target = space->target;
    int64_t *offset = update ? space->update_row : space->panel_row;
    for (int64_t i = own; i < rows; i++) {
        target[i] = space->place[row[i]];
        split += target[i] < pivots;
        offset[i] = !update ? mf_panel_row(target[i], pivots)
                            : target[i] < pivots ? 0 : mf_update_row(target[i] - parent_origin);
    }
    double *to = update ? update - parent_origin * HEIGHT : panel;
    int64_t first = update ? split : own, end = update ? rows : split;
    for (int64_t begin = origin; begin < rows; begin += HEIGHT) {
        const double *block = from + mf_update_block((begin - origin) / HEIGHT) - origin * HEIGHT;
        int64_t stop = mf_min(begin + HEIGHT, rows);
        for (int64_t j = first; j < mf_min(end, stop); j++) {
            double *column = to + (int64_t)target[j] * HEIGHT;
            const double *values = block + j * HEIGHT - begin;
            for (int64_t i = mf_max(begin, j); i < stop; i++) column[offset[i]] += values[i];
        }
    }
}

/* Assembles and factors one front. *bad: the first column whose pivot is not positive, or -1. */
static void mf_factor_front(const mf_cholesky_job *job, int32_t s, mf_cholesky_space *space, int n_threads,
                            int64_t *bad, mf_run *run)
{
    mf_cholesky *c = job->c;
    const mf_fronts *f = &c->fronts;
    int64_t first = f->first[s], pivots = f->first[s + 1] - first, rows = f->begin[s + 1] - f->begin[s];
    const int32_t *row = f->rows + f->begin[s];
    double *panel = c->factor + c->panel[s];
    double *update = mf_update_place(job, s, space);
    for (int64_t i = 0; i < rows; i++) space->place[row[i]] = (int32_t)i;

    for (int64_t begin = 0; begin < rows; begin += HEIGHT)
        memset(panel + begin * pivots, 0, (size_t)(HEIGHT * mf_min(pivots, begin + HEIGHT)) * sizeof(double));
    for (int64_t k = 0; k < pivots; k++) {
        int32_t original = f->order[first + k];
        double *column = panel + k * HEIGHT, shift = job->shifts ? job->shift * job->shifts[original] : job->shift;
        for (int64_t e = f->lower_begin[first + k]; e < f->lower_begin[first + k + 1]; e++)
            column[mf_panel_row(space->place[f->lower_row[e]], pivots)] = job->values[f->lower_source[e]];
        int64_t diagonal = c->diagonal[original];
        column[mf_panel_row(k, pivots)] = diagonal < 0 ? shift : job->values[diagonal] + shift;
    }
    for (int32_t k = f->child[s]; k >= 0; k = f->sibling[k])
        mf_add_child(f, k, mf_update_place(job, k, space), pivots, panel, NULL, space);

    int64_t square = mf_min(mf_round_up(pivots, HEIGHT), rows), failed = -1;
    int large = (double)pivots * (double)rows * (double)rows > MF_LARGE_FRONT;
    for (int64_t begin = 0; begin < square && !(large && mf_poll(run)); begin += HEIGHT)
        if (!mf_factor_block(panel, pivots, begin, &failed)) {
            *bad = first + failed;
            return;
        }
    if (large) mf_factor_large(panel, pivots, rows, update, n_threads, run);
    else {
        for (int64_t begin = square; begin < rows; begin += HEIGHT) mf_factor_block(panel, pivots, begin, &failed);
        for (int64_t begin = pivots / HEIGHT * HEIGHT; begin < rows && pivots < rows; begin += HEIGHT)
            mf_update_rows(panel, pivots, begin, rows, update);
    }
    for (int32_t k = f->child[s]; k >= 0; k = f->sibling[k])
        mf_add_child(f, k, mf_update_place(job, k, space), pivots, panel, update, space);
}

/* Factors the matrix with these values, shift * diag(shifts) added (shifts == NULL: shift * I). *bad is the row of the
 * matrix whose pivot is not positive, or -1. */
static mf_status mf_cholesky_factor(mf_cholesky *c, const double *values, double shift, const double *shifts,
                                    int64_t *bad, mf_run *run)
{
    *bad = -1;
    if (!c->factor) c->factor = mf_alloc(c->factor_size, sizeof(double));
    double *shared = mf_alloc(c->shared_size, sizeof(double));
    if (!c->factor || !shared) {
        mf_release(shared);
        return MF_NO_MEMORY;
    }
    mf_cholesky_job job = {c, values, shifts, shift, shared};
    int64_t worst = INT64_MAX;
    int starved = 0;
#pragma omp parallel num_threads(run->n_threads) if (run->n_threads > 1) reduction(min : worst)
    {
        mf_cholesky_space space;
        if (!mf_cholesky_space_make(&space, c, c->own_size)) {
            /* A second reduction would take a lock of OpenMP, which a fork would leave taken in the child. */
#pragma omp atomic write
            starved = 1;
            mf_stop(run);
        }
#pragma omp for schedule(dynamic, 1)
        for (int32_t t = 0; t < c->tasks; t++) {
            int64_t failed = -1;
            int32_t root = c->root_of[c->task_begin[t]];
            for (int32_t s = c->task_begin[t]; s <= root && failed < 0 && !mf_poll(run); s++)
                mf_factor_front(&job, s, &space, 1, &failed, run);
            if (failed >= 0) worst = mf_min(worst, failed);
        }
        mf_cholesky_space_release(&space);
    }
    mf_cholesky_space space;
    starved = !mf_cholesky_space_make(&space, c, 0) || starved;
    for (int32_t s = 0; s < c->fronts.count && worst == INT64_MAX && !starved && !mf_poll(run); s++) {
        int64_t failed = -1;
        if (c->root_of[s] >= 0) continue;
        mf_factor_front(&job, s, &space, run->n_threads, &failed, run);
        if (failed >= 0) worst = failed;
    }
    mf_cholesky_space_release(&space);
    mf_release(shared);
    if (worst < INT64_MAX) *bad = c->fronts.order[worst];
    return starved ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

#endif
