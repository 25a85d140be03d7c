/* Sparse Cholesky factorisation L L' of a symmetric positive definite matrix, multifrontal, and solves with it.
 * Every front sums in one fixed order, so threads change no bit; no column of a solve depends on its neighbours.
 *
 * A front's columns of L are a panel cut into blocks of HEIGHT rows; a block is stored column by column, HEIGHT values
 * each, so that all inner loops read memory in order. Its diagonal holds reciprocals. The update that a front hands to
 * its parent is cut into the same blocks, from the block on that has the first row beyond the pivots, and a block
 * stores only the columns up to its own last row. */

/* A tile is HEIGHT rows by WIDTH columns: with four lanes it fills the registers. */
enum { TILE_VECTORS = LANES == 4 ? 3 : 2, HEIGHT = TILE_VECTORS * LANES, WIDTH = 4 };

enum {
    MF_TASK_SHARE = 16,       /* a task has at most this part of the work */
    MF_LARGE_FRONT = 1000000, /* flops of a front that several threads share, and that asks for Ctrl-C on the way */
    MF_POLL_FRONTS = 64       /* fronts of a solve between two such questions */
};

struct mf_cholesky {
    int32_t n;
    int64_t *diagonal; /* which entry of the matrix it is, -1 where it is not stored */
    mf_fronts fronts;
    int64_t *panel;  /* where a front's panel begins in `factor` */
    int64_t *update; /* where its update goes: in the thread's workspace inside a task, else in the shared one */
    int32_t *root_of;    /* the root of the task that a front belongs to, -1 above all tasks */
    int32_t *task_begin; /* the first front of a task; the rest follow up to its root */
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
    mf_release(c->factor);
    free(c);
}

/* Whether the pattern is in range, sorted, free of duplicates and symmetric. Entries (i, j) and (j, i) add and
 * subtract one well-mixed number: a sum of 0 says symmetric, but for one chance in 2^64. */
static int mf_is_symmetric(int32_t n, int64_t entries, const int64_t *indptr, const int32_t *columns,
                           int64_t *diagonal)
{
    if (indptr[0] != 0 || indptr[n] != entries) return 0;
    for (int32_t i = 0; i < n; i++)
        if (indptr[i] > indptr[i + 1]) return 0;
    uint64_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t last = -1;
        diagonal[i] = -1;
        for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
            int32_t j = columns[e];
            if (j <= last || j >= n) return 0;
            last = j;
            if (j == i) {
                diagonal[i] = e;
                continue;
            }
            uint64_t mixed = j < i ? (uint64_t)j << 32 | (uint64_t)i : (uint64_t)i << 32 | (uint64_t)j;
            mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
            mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
            mixed ^= mixed >> 31;
            sum += j < i ? mixed : 0 - mixed;
        }
    }
    return sum == 0;
}

/* Cuts the tree into subtrees for the threads, the same for any number of them, and says where each update lies.
 * Updates of even and odd depth lie on two stacks: children are read from one while their parent is written on the
 * other. The update of a task's root outlives the task and has a place of its own. */
static mf_status mf_cholesky_plan(mf_cholesky *c)
{
    const mf_fronts *f = &c->fronts;
    int32_t count = f->count;
    c->panel = mf_alloc((int64_t)count + 1, sizeof(int64_t));
    c->update = mf_alloc(count, sizeof(int64_t));
    c->root_of = mf_alloc(count, sizeof(int32_t));
    c->task_begin = mf_alloc((int64_t)count + 1, sizeof(int32_t));
    double *work = mf_alloc(count, sizeof(double));
    unsigned char *odd = mf_alloc(count, 1);
    mf_status status = MF_NO_MEMORY;
    if (!c->panel || !c->update || !c->root_of || !c->task_begin || !work || !odd) goto done;

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
    if (!c->diagonal) return status;
    *flaws = mf_is_symmetric(c->n, entries, indptr, columns, c->diagonal) ? 0 : MF_NOT_SYMMETRIC;
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
MF_INLINE void mf_tile(const double *x, const double *y, int64_t depth, int64_t y_stride, int width,
                       V sum[TILE_VECTORS][WIDTH])
{
    for (int v = 0; v < TILE_VECTORS; v++)
        for (int j = 0; j < width; j++) sum[v][j] = (V){0};
    for (int64_t k = 0; k < depth; k++, x += HEIGHT, y += y_stride)
        for (int j = 0; j < width; j++) {
            V b = VOP(set)(y[j]);
            for (int v = 0; v < TILE_VECTORS; v++) sum[v][j] = VOP(fma)(VOP(load)(x + v * LANES), b, sum[v][j]);
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
            for (int64_t i = 0; i < HEIGHT; i += LANES)
                VOP(store)(y + i, VOP(fma)(VOP(load)(x + i), VOP(set)(factor), VOP(load)(y + i)));
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
        V sum[TILE_VECTORS][WIDTH];
        mf_tile(block, corner, k, HEIGHT, WIDTH, sum);
        corner += k * HEIGHT;
        if (k >= begin) {
            for (int64_t j = 0; j < width; j++)
                for (int v = 0; v < TILE_VECTORS; v++) {
                    double *x = block + (k + j) * HEIGHT + v * LANES;
                    VOP(store)(x, VOP(load)(x) - sum[v][j]);
                }
            if (!mf_factor_corner(block, k, k - begin, width, bad)) return 0;
            continue;
        }
        for (int v = 0; v < TILE_VECTORS; v++) {
            double *x = block + k * HEIGHT + v * LANES;
            V solved[WIDTH];
            for (int j = 0; j < WIDTH; j++) {
                if (j >= width) break;
                V value = VOP(load)(x + j * HEIGHT) - sum[v][j];
                for (int i = 0; i < j; i++) value = VOP(fma)(-solved[i], VOP(set)(corner[i * HEIGHT + j]), value);
                solved[j] = value * VOP(set)(corner[j * HEIGHT + j]);
                VOP(store)(x + j * HEIGHT, solved[j]);
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
        V sum[TILE_VECTORS][WIDTH];
        mf_tile(block, panel + mf_panel_row(j, pivots), pivots, HEIGHT, WIDTH, sum);
        for (int k = 0; k < WIDTH; k++)
            for (int v = 0; v < TILE_VECTORS; v++)
                VOP(store)(out + (j - origin + k) * HEIGHT + v * LANES, -sum[v][k]);
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

static void mf_space_release(mf_cholesky_space *space)
{
    mf_release(space->place);
    mf_release(space->target);
    mf_release(space->panel_row);
    mf_release(space->update_row);
    mf_release(space->own);
}

static int mf_space_make(mf_cholesky_space *space, const mf_cholesky *c, int64_t own_size)
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
#pragma omp parallel num_threads(run->n_threads) if (run->n_threads > 1) reduction(min : worst) reduction(| : starved)
    {
        mf_cholesky_space space;
        starved = !mf_space_make(&space, c, c->own_size);
        if (starved) mf_stop(run);
#pragma omp for schedule(dynamic, 1)
        for (int32_t t = 0; t < c->tasks; t++) {
            int64_t failed = -1;
            int32_t root = c->root_of[c->task_begin[t]];
            for (int32_t s = c->task_begin[t]; s <= root && failed < 0 && !mf_poll(run); s++)
                mf_factor_front(&job, s, &space, 1, &failed, run);
            if (failed >= 0) worst = mf_min(worst, failed);
        }
        mf_space_release(&space);
    }
    mf_cholesky_space space;
    starved = !mf_space_make(&space, c, 0) || starved;
    for (int32_t s = 0; s < c->fronts.count && worst == INT64_MAX && !starved && !mf_poll(run); s++) {
        int64_t failed = -1;
        if (c->root_of[s] >= 0) continue;
        mf_factor_front(&job, s, &space, run->n_threads, &failed, run);
        if (failed >= 0) worst = failed;
    }
    mf_space_release(&space);
    mf_release(shared);
    if (worst < INT64_MAX) *bad = c->fronts.order[worst];
    return starved ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

/* Rows of a block, one column of the right-hand sides after the other; rows beyond the front are 0. */
MF_INLINE void mf_block_gather(const double *x, const int32_t *row, int64_t begin, int64_t end, int width,
                               double block[WIDTH][HEIGHT])
{
    for (int j = 0; j < width; j++)
        for (int64_t i = 0; i < HEIGHT; i++) block[j][i] = 0;
    for (int64_t i = 0; i < end - begin; i++)
        for (int j = 0; j < width; j++) block[j][i] = x[(int64_t)row[begin + i] * width + j];
}

/* x = L^-1 x for one front: its pivots, then what they take from the rows beyond. */
MF_INLINE void mf_forward_front(const mf_cholesky *c, int32_t s, int width, double *x)
{
    const mf_fronts *f = &c->fronts;
    int64_t first = f->first[s], pivots = f->first[s + 1] - first, rows = f->begin[s + 1] - f->begin[s];
    const int32_t *row = f->rows + f->begin[s];
    const double *panel = c->factor + c->panel[s];
    double *head = x + first * width;
    for (int64_t begin = 0; begin < rows; begin += HEIGHT) {
        const double *block = panel + begin * pivots;
        int64_t stop = mf_min(begin + HEIGHT, rows);
        double part[WIDTH][HEIGHT];
        V sum[TILE_VECTORS][WIDTH];
        mf_tile(block, head, mf_min(begin, pivots), width, width, sum);
        mf_block_gather(x, row, begin, stop, width, part);
        for (int j = 0; j < width; j++)
            for (int v = 0; v < TILE_VECTORS; v++)
                VOP(store)(part[j] + v * LANES, VOP(load)(part[j] + v * LANES) - sum[v][j]);
        for (int64_t k = begin; k < mf_min(pivots, stop); k++) {
            const double *column = block + k * HEIGHT;
            for (int j = 0; j < width; j++) {
                double value = part[j][k - begin] * column[k - begin];
                for (int v = 0; v < HEIGHT; v += LANES)
                    VOP(store)(part[j] + v, VOP(fma)(VOP(load)(column + v), VOP(set)(-value), VOP(load)(part[j] + v)));
                part[j][k - begin] = value;
            }
        }
        for (int64_t i = begin; i < stop; i++)
            for (int j = 0; j < width; j++) x[(int64_t)row[i] * width + j] = part[j][i - begin];
    }
}

/* sums[k][j] += the products of column k of a block with column j of `part`, lane by lane. */
MF_INLINE void mf_transposed_tile(const double *block, int64_t columns, int width, double part[WIDTH][HEIGHT], V *sums)
{
    V x[WIDTH][TILE_VECTORS];
    for (int j = 0; j < width; j++)
        for (int v = 0; v < TILE_VECTORS; v++) x[j][v] = VOP(load)(part[j] + v * LANES);
    for (int64_t k = 0; k < columns; k++, block += HEIGHT)
        for (int j = 0; j < width; j++) {
            V sum = sums[k * width + j];
            for (int v = 0; v < TILE_VECTORS; v++) sum = VOP(fma)(VOP(load)(block + v * LANES), x[j][v], sum);
            sums[k * width + j] = sum;
        }
}

MF_INLINE double mf_lanes_sum(V v)
{
    double lanes[LANES], sum = 0;
    VOP(store)(lanes, v);
    for (int i = 0; i < LANES; i += 2) sum += lanes[i] + lanes[i + 1];
    return sum;
}

/* x = L^-T x for one front. */
MF_INLINE void mf_backward_front(const mf_cholesky *c, int32_t s, int width, double *x, V *sums)
{
    const mf_fronts *f = &c->fronts;
    int64_t first = f->first[s], pivots = f->first[s + 1] - first, rows = f->begin[s + 1] - f->begin[s];
    const int32_t *row = f->rows + f->begin[s];
    const double *panel = c->factor + c->panel[s];
    double *head = x + first * width;
    memset(sums, 0, (size_t)(pivots * width) * sizeof(V));
    for (int64_t begin = pivots / HEIGHT * HEIGHT; begin < rows; begin += HEIGHT) {
        double part[WIDTH][HEIGHT];
        mf_block_gather(x, row, begin, mf_min(begin + HEIGHT, rows), width, part);
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
                V sum = sums[k * width + j];
                for (int v = 0; v < HEIGHT; v += LANES)
                    sum = VOP(fma)(VOP(load)(column + v), VOP(load)(part[j] + v), sum);
                double value = (head[k * width + j] - mf_lanes_sum(sum)) * column[k - begin];
                head[k * width + j] = part[j][k - begin] = value;
            }
        }
        mf_transposed_tile(block, begin, width, part, sums);
    }
}

/* Columns from `first` on, `width` of them. */
MF_INLINE void mf_solve_columns(const mf_cholesky *c, const double *rhs, int64_t m, int64_t first, int width,
                                double *out, double *x, V *sums, mf_run *run)
{
    const mf_fronts *f = &c->fronts;
    for (int64_t k = 0; k < c->n; k++)
        for (int j = 0; j < width; j++) x[k * width + j] = rhs[f->order[k] * m + first + j];
    for (int32_t s = 0; s < f->count && !(s % MF_POLL_FRONTS == 0 && mf_poll(run)); s++)
        mf_forward_front(c, s, width, x);
    for (int32_t s = f->count - 1; s >= 0 && !(s % MF_POLL_FRONTS == 0 && mf_poll(run)); s--)
        mf_backward_front(c, s, width, x, sums);
    for (int64_t k = 0; k < c->n; k++)
        for (int j = 0; j < width; j++) out[f->order[k] * m + first + j] = x[k * width + j];
}

/* out = (L L')^-1 rhs, both n x m. */
static mf_status mf_cholesky_solve(const mf_cholesky *c, const double *rhs, int64_t m, double *out, mf_run *run)
{
    int starved = 0, n_threads = (int)mf_min(run->n_threads, mf_ceil_div(m, WIDTH));
#pragma omp parallel num_threads(n_threads) if (n_threads > 1) reduction(| : starved)
    {
        double *x = mf_alloc((int64_t)c->n * mf_min(m, WIDTH), sizeof(double));
        V *sums = mf_alloc((int64_t)c->most_pivots * WIDTH, sizeof(V));
        starved = !x || !sums;
        if (starved) mf_stop(run);
#pragma omp for schedule(dynamic, 1)
        for (int64_t first = 0; first < m; first += WIDTH) {
            if (mf_poll(run)) continue;
            switch (mf_min(WIDTH, m - first)) {
            case 1: mf_solve_columns(c, rhs, m, first, 1, out, x, sums, run); break;
            case 2: mf_solve_columns(c, rhs, m, first, 2, out, x, sums, run); break;
            case 3: mf_solve_columns(c, rhs, m, first, 3, out, x, sums, run); break;
            default: mf_solve_columns(c, rhs, m, first, 4, out, x, sums, run);
            }
        }
        mf_release(x);
        mf_release(sums);
    }
    return starved ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}
