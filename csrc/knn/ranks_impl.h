/* neighbor_ranks: which place given rows of y take in the order of all rows of y by distance from a query. Screens in
 * float32 and takes the exact distance wherever that cannot tell two rows apart, so the ranks are those of the order
 * (exact distance in double, index) that knn ranks by.
 *
 * The k targets of a query, sorted by (distance, index), cut the line of distances into k + 1 parts. Every row of y is
 * counted in the part it falls into; the rank of a target is 1 plus the counts of all parts before it. Rows beyond the
 * farthest target are settled by one comparison. A few targets are compared with every distance, in registers. For
 * many, their range is divided into cells, and a table says for each cell into which part its distances fall, or that a
 * target lies in it. The cell of a distance is a monotone function of it, rounding included, so the table is rigorous.
 * Where screening cannot tell on which side of a target a row lies, its exact distance does.
 *
 * Accumulator: screening in float32, norms and exact distances in double, counts in integers: the result is the same
 * for any order of work. Workspace: y packed in float32, and per thread tables and targets of one block of queries.
 * Template. Needs: base/sort.h, and dense/tile_impl.h, knn/exact_distance_impl.h, knn/screening_impl.h,
 * knn/brute_force_impl.h for both dtypes. */

/* Copies of each counter: lanes of a vector do not wait for each other's store. */
#undef RANK_BANKS
#define RANK_BANKS MF_LANES32
#undef RANK_FEW
/* Up to so many targets are compared with every distance: 100 take half the time of a table. */
#define RANK_FEW MF_LIMIT(128, 4)

typedef struct {
    float limit, base, steps; /* beyond `limit` lies no target; the cell of a is (a - base) * steps */
} NAME(rank_line);

/* One block of queries: what the tiles are compared with, and what they are counted in. */
typedef struct {
    const REAL *y, *x; /* all rows, and the first query of the block */
    int64_t n, p, k, cells, n_rows, column0;
    int64_t row0; /* the row of y that the first query is, or a number below all */
    const float *row_norms, *column_norms;
    NAME(rank_line) *lines;
    int32_t *parts;        /* per query and cell: the part, or -1 */
    mf_pair *targets;      /* per query: (squared distance, index), ascending */
    float *low, *high;     /* per query and target: approximate distances below or above are surely less or greater */
    int64_t *counts;       /* per query: rows in each of its k + 1 parts */
    int32_t *recent;       /* the same for the rows of a tile, RANK_BANKS copies; or rows before each target */
} NAME(rank_block);

MF_INLINE int64_t NAME(rank_cell)(const NAME(rank_line) *line, float a, int64_t cells)
{
    float place = (a - line->base) * line->steps;
    place = place > 0 ? place : 0;
    return (int64_t)(place < (float)(cells - 1) ? place : (float)(cells - 1));
}

/* Row j by its exact distance: the first target that it precedes. */
static int64_t NAME(exact_part)(const NAME(rank_block) *b, int64_t i, int64_t j)
{
    const mf_pair *targets = b->targets + i * b->k;
    mf_pair row = {NAME(exact_sq_distance)(b->x + i * b->p, b->y + j * b->p, b->p), j};
    int64_t low = 0, high = b->k;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (mf_before(row, targets[middle])) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* Distances of a tile, with infinity where a row meets itself. Whether any is within the limits. */
MF_INLINE int NAME(rank_distances)(const NAME(rank_block) *b, int64_t row, int64_t column, mf_acc_f32 *t)
{
    enum { WIDTH = MF_LANES32 };
    vf32 n0 = vf32_load(b->column_norms + column), n1 = vf32_load(b->column_norms + column + WIDTH);
    vf32_mask hit = {0};
    int64_t itself = b->row0 + row - b->column0 - column;
    for (int i = 0; i < MR; i++) {
        t->c[i][0] += b->row_norms[row + i] + n0;
        t->c[i][1] += b->row_norms[row + i] + n1;
    }
    if (itself > -MR && itself < 2 * WIDTH)
        for (int64_t i = mf_max(0, -itself); i < MR && itself + i < 2 * WIDTH; i++)
            t->c[i][(itself + i) / WIDTH][(itself + i) % WIDTH] = INFINITY;
    for (int i = 0; i < MR; i++) {
        vf32 limit = vf32_set(b->lines[row + i].limit);
        hit |= (vf32_mask)(t->c[i][0] <= limit) | (vf32_mask)(t->c[i][1] <= limit);
    }
    return vf32_any(hit);
}

/* Few targets: each is compared with every distance. */
MF_INLINE void NAME(rank_few_done)(void *context, int64_t row, int64_t column, mf_acc_f32 *t)
{
    enum { WIDTH = MF_LANES32 };
    const NAME(rank_block) *b = context;
    if (!NAME(rank_distances)(b, row, column, t)) return;
    for (int i = 0; i < MR && row + i < b->n_rows; i++) {
        const float *low = b->low + (row + i) * b->k, *high = b->high + (row + i) * b->k;
        int32_t *before = b->recent + i * b->k * RANK_BANKS;
        vf32 a0 = t->c[i][0], a1 = t->c[i][1];
        vf32_mask open0 = {0}, open1 = {0};
        for (int64_t r = 0; r < b->k; r++) {
            vf32 below = vf32_set(low[r]), above = vf32_set(high[r]);
            vf32_mask less0 = a0 < below, less1 = a1 < below, sum;
            memcpy(&sum, before + r * RANK_BANKS, sizeof(sum));
            sum -= less0 + less1;
            memcpy(before + r * RANK_BANKS, &sum, sizeof(sum));
            open0 |= (vf32_mask)(a0 <= above) ^ less0;
            open1 |= (vf32_mask)(a1 <= above) ^ less1;
        }
        for (int v = 0; v < 2; v++)
            for (unsigned bits = vf32_bits(v ? open1 : open0); bits; bits &= bits - 1) {
                int lane = __builtin_ctz(bits);
                float a = t->c[i][v][lane];
                int64_t part = NAME(exact_part)(b, row + i, b->column0 + column + v * WIDTH + lane);
                for (int64_t r = part; r < b->k; r++) before[r * RANK_BANKS] += !(a < low[r]);
            }
    }
}

/* The part of a distance in a cell with targets. */
static int64_t NAME(close_part)(const NAME(rank_block) *b, int64_t i, int64_t j, float a)
{
    const float *low = b->low + i * b->k, *at = low;
    for (int64_t length = b->k; length > 1;) { /* how many targets are not surely farther; no branch */
        int64_t half = length / 2;
        at += at[half - 1] <= a ? half : 0;
        length -= half;
    }
    int64_t part = at - low + (*at <= a);
    return part && a <= b->high[i * b->k + part - 1] ? NAME(exact_part)(b, i, j) : part;
}

/* Many targets: the table of a row says where a distance falls. */
MF_INLINE void NAME(rank_many_done)(void *context, int64_t row, int64_t column, mf_acc_f32 *t)
{
    enum { WIDTH = MF_LANES32 };
    const NAME(rank_block) *b = context;
    if (!NAME(rank_distances)(b, row, column, t)) return;
    vf32 most = vf32_set((float)(b->cells - 1));
    for (int i = 0; i < MR && row + i < b->n_rows; i++) {
        const NAME(rank_line) *line = b->lines + row + i;
        const int32_t *parts = b->parts + (row + i) * b->cells;
        int32_t *counts = b->recent + i * RANK_BANKS * (b->k + 1);
        for (int v = 0; v < 2; v++) {
            vf32 a = t->c[i][v], place = (a - line->base) * line->steps;
            if (!vf32_any(a <= line->limit)) continue;
            /* Rows beyond the limit lie in the last cell or behind all targets: its part is k, or -1 and settled. */
            vf32_mask cell = __builtin_convertvector(vf32_min(vf32_max(place, vf32_set(0)), most), vf32_mask);
            for (int lane = 0; lane < WIDTH; lane++) {
                int64_t part = parts[cell[lane]];
                if (part < 0) part = NAME(close_part)(b, row + i, b->column0 + column + v * WIDTH + lane, a[lane]);
                counts[lane * (b->k + 1) + part]++;
            }
        }
    }
}

/* Sorts the targets of query i and fills its table. */
static void NAME(rank_table)(NAME(rank_block) *b, int64_t i, const int64_t *neighbors, double error, double scale2)
{
    const REAL *x = b->x + i * b->p;
    mf_pair *targets = b->targets + i * b->k;
    NAME(rank_line) *line = b->lines + i;
    int32_t *parts = b->parts + i * b->cells;
    for (int64_t t = 0; t < b->k; t++)
        targets[t] = (mf_pair){NAME(exact_sq_distance)(x, b->y + neighbors[t] * b->p, b->p), neighbors[t]};
    mf_pairs_sort(targets, b->k);
    /* With s = |x| + |y|: a >= (s - 2|x|)^2 - error s^2, so rows within `limit` have s (1 - sqrt(error)) <= 2|x| +
     * sqrt(limit), and their distances are good to error s^2. The last term covers underflow. */
    double norm = 1.0001 * sqrt((double)b->row_norms[i]), last = targets[b->k - 1].key * scale2;
    line->limit = nextafterf((float)NAME(reach)(last, norm, error, b->p), INFINITY);
    double widest = (2 * norm + sqrt((double)line->limit)) / (1 - sqrt(error));
    double slack = 1.01 * error * widest * widest + (double)b->p * 1e-43;
    for (int64_t t = 0; t < b->k; t++) {
        b->low[i * b->k + t] = nextafterf((float)(targets[t].key * scale2 - slack), -INFINITY);
        b->high[i * b->k + t] = nextafterf((float)(targets[t].key * scale2 + slack), INFINITY);
    }
    if (b->k <= RANK_FEW) return;
    line->base = b->low[i * b->k];
    double range = (double)line->limit - (double)line->base;
    line->steps = (float)((double)b->cells / range);
    if (!(line->steps < 1e30f)) line->steps = 1e30f;
    int64_t at = 0;
    for (int64_t t = 0; t < b->k; t++) {
        int64_t begin = NAME(rank_cell)(line, b->low[i * b->k + t], b->cells);
        int64_t end = NAME(rank_cell)(line, b->high[i * b->k + t], b->cells);
        for (; at < begin; at++) parts[at] = (int32_t)t;
        for (; at <= end; at++) parts[at] = -1;
    }
    for (; at < b->cells; at++) parts[at] = (int32_t)b->k;
}

/* The targets' ranks in the order in which they were given. */
static void NAME(write_ranks)(const NAME(rank_block) *b, int64_t i, const int64_t *neighbors, int64_t *ranks)
{
    int64_t *counts = b->counts + i * (b->k + 1);
    for (int64_t t = 1; t < b->k && b->k > RANK_FEW; t++) counts[t] += counts[t - 1];
    for (int64_t t = 0; t < b->k; t++) ranks[t] = counts[NAME(exact_part)(b, i, neighbors[t]) - 1] + 1;
}

/* All tiles of the block's rows with `panels` panels of columns, six rows at a time: their tables and counters stay in
 * the nearest cache. */
static void NAME(rank_sweep)(NAME(rank_block) *b, const float *rows, const float *columns, int64_t panels,
                             mf_acc_f32 *partial)
{
    int few = b->k <= RANK_FEW;
    int64_t own = few ? b->k : b->k + 1, per_row = RANK_BANKS * own;
    for (int64_t r0 = 0; r0 < b->n_rows; r0 += MR) {
        NAME(rank_block) part = *b;
        int64_t size = mf_min(MR, b->n_rows - r0);
        part.x += r0 * b->p, part.n_rows = size, part.row0 += r0, part.row_norms += r0, part.lines += r0;
        part.parts += r0 * b->cells, part.targets += r0 * b->k, part.low += r0 * b->k, part.high += r0 * b->k;
        memset(b->recent, 0, (size_t)(MR * per_row) * sizeof(*b->recent));
        if (few) mf_sweep_f32(rows + r0 * b->p, 1, columns, panels, b->p, 1, partial, NAME(rank_few_done), &part);
        else mf_sweep_f32(rows + r0 * b->p, 1, columns, panels, b->p, 1, partial, NAME(rank_many_done), &part);
        for (int64_t i = 0; i < size; i++)
            for (int64_t c = 0; c < per_row; c++)
                b->counts[(r0 + i) * (b->k + 1) + (few ? c / RANK_BANKS : c % own)] += b->recent[i * per_row + c];
    }
}

/* ranks[i, t]: 1 + how many rows of y precede row neighbors[i, t] by (distance, index), seen from query i; queries ==
 * NULL: from each row of y, itself left out. Neighbours are rows of y, without queries never the row itself. */
static mf_status NAME(neighbor_ranks)(const REAL *y, int64_t n, const REAL *queries, int64_t m, int64_t p,
                                      const int64_t *neighbors, int64_t k, int64_t *ranks, mf_run *run)
{
    enum { WIDTH = 2 * MF_LANES32, FEWEST = 2048, MOST = 8192 }; /* cells: about 32 for a target */
    int self = queries == NULL, no_memory = 0;
    if (self) queries = y, m = n;
    if (m == 0 || k == 0) return MF_OK;
    run->n_threads = mf_worth_threads(m * n * p, run);
    int64_t panels = mf_ceil_div(n, WIDTH), block = mf_block_rows_f32(p), cells = FEWEST;
    int64_t chunk = mf_max(1, mf_min(512, (int64_t)(192 * 1024 / sizeof(float)) / (p * WIDTH)));
    while (cells < MOST && cells < 32 * k) cells *= 2;
    REAL *shift_real = mf_alloc(p, sizeof(REAL));
    double *shift = mf_alloc(p, sizeof(double)), scale = 1, error = mf_screen_error_f32(p);
    float *columns = mf_alloc(panels * WIDTH * p, sizeof(float)), *norms = mf_alloc(panels * WIDTH, sizeof(float));
    if (!shift_real || !shift || !columns || !norms) no_memory = 1;
    else {
        NAME(find_shift)(y, n, p, shift_real);
        for (int64_t j = 0; j < p; j++) shift[j] = shift_real[j];
        scale = NAME(unit_scale)(y, n, p, shift, run->n_threads);
        if (!self) scale = fmin(scale, NAME(unit_scale)(queries, m, p, shift, run->n_threads));
#pragma omp parallel num_threads(run->n_threads)
        {
            float *rows = mf_alloc(block * p, sizeof(float)), *row_norms = mf_alloc(block, sizeof(float));
            mf_acc_f32 *partial = mf_partial_open_f32(p);
            NAME(rank_block) b = {.y = y, .n = n, .p = p, .k = k, .cells = cells, .row_norms = row_norms};
            b.lines = mf_alloc(block + MR, sizeof(*b.lines));
            b.parts = mf_alloc(k > RANK_FEW ? block * cells : 0, sizeof(*b.parts));
            b.low = mf_alloc(block * k, sizeof(*b.low));
            b.high = mf_alloc(block * k, sizeof(*b.high));
            b.targets = mf_alloc(block * k, sizeof(*b.targets));
            b.counts = mf_alloc(block * (k + 1), sizeof(*b.counts));
            b.recent = mf_alloc(MR * RANK_BANKS * (k + 1), sizeof(*b.recent));
            int ready = rows && row_norms && partial && b.lines && b.parts && b.targets && b.low && b.high && b.counts &&
                        b.recent;
            if (!ready) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(static)
            for (int64_t j = 0; j < panels; j++) {
                if (mf_poll(run)) continue;
                FILL(f32)(y + j * WIDTH * p, mf_min(WIDTH, n - j * WIDTH), p, shift, scale, 0, columns + j * WIDTH * p,
                          norms + j * WIDTH);
            }
#pragma omp for schedule(dynamic)
            for (int64_t task = 0; task < mf_ceil_div(m, block); task++) {
                if (!ready || mf_poll(run)) continue;
                int64_t row0 = task * block, size = mf_min(block, m - row0);
                b.x = queries + row0 * p, b.n_rows = size, b.row0 = self ? row0 : -m;
                FILL(f32)(b.x, size, p, shift, scale, 1, rows, row_norms);
                for (int64_t i = size; i < size + MR; i++) b.lines[i].limit = -1;
                memset(b.counts, 0, (size_t)(size * (k + 1)) * sizeof(*b.counts));
                for (int64_t i = 0; i < size; i++)
                    NAME(rank_table)(&b, i, neighbors + (row0 + i) * k, error, scale * scale);
                for (int64_t j = 0; j < panels && !mf_poll(run); j += chunk) {
                    b.column0 = j * WIDTH, b.column_norms = norms + j * WIDTH;
                    NAME(rank_sweep)(&b, rows, columns + j * WIDTH * p, mf_min(chunk, panels - j), partial);
                }
                for (int64_t i = 0; i < size; i++)
                    NAME(write_ranks)(&b, i, neighbors + (row0 + i) * k, ranks + (row0 + i) * k);
            }
            mf_release(rows);
            mf_release(row_norms);
            mf_release(partial);
            mf_release(b.lines);
            mf_release(b.parts);
            mf_release(b.targets);
            mf_release(b.low);
            mf_release(b.high);
            mf_release(b.counts);
            mf_release(b.recent);
        }
    }
    mf_release(shift_real);
    mf_release(shift);
    mf_release(columns);
    mf_release(norms);
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}
