/* graph_begin and graph_fill: from lists of neighbours to a symmetric CSR graph. Lists are sorted by column; a binary
 * search in the other list tells whether an edge is listed from both sides; those listed from one side only are few
 * and are transposed by counting. A row is then its own list merged with its transposed entries.
 * Order: the smaller of two distances counts and the weight is computed from it, so the graph is symmetric to the bit.
 * Transposed entries are ordered by their source, so nothing depends on the threads. Weights are computed in the
 * dtype.
 * Workspace: mf_graph, about 10 bytes per listed neighbour.
 * Template. Needs: base/exp.h, base/sort.h, base/index_impl.h, graph/neighbor_graph.h. */

typedef INDEX INAME(vindex) __attribute__((vector_size(MF_VBYTES), may_alias));

typedef struct {
    REAL distance;
    INDEX column;
} INAME(entry);

typedef struct {
    REAL distance;
    INDEX column, row; /* as it will stand in `row` */
} INAME(single);

/* Scrambles an edge. Over all entries (i, j), added where i < j and subtracted where i > j, scrambled edges cancel if
 * (i, j) and (j, i) have the same bits throughout, and otherwise but with a chance of 2^-64: one sweep in order tells
 * what would take a look at the far end of every edge. */
MF_INLINE uint64_t INAME(edge_print)(int64_t i, int64_t j, REAL weight)
{
    uint64_t bits = 0, low = (uint64_t)mf_min(i, j), high = (uint64_t)mf_max(i, j), sign = -(uint64_t)(i > j);
    weight += 0; /* -0 is 0 */
    memcpy(&bits, &weight, sizeof(REAL));
    bits ^= (sizeof(INDEX) == 4 ? low << 32 | high : low * 0xff51afd7ed558ccdu + high) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 32) * 0xc4ceb9fe1a85ec53u;
    bits ^= bits >> 29;
    return (bits ^ sign) - sign;
}

/* The distance of entry s of list i. */
MF_INLINE REAL INAME(graph_distance)(const mf_graph *g, int64_t i, int64_t s)
{
    return ((const REAL *)g->distances)[i * g->k + mf_graph_slot(g, i * g->k + s)];
}

/* A list of k <= width distinct neighbours, sorted by counting, without a branch on the columns; `width` is a constant.
 * False, with nothing done that matters, where neighbours repeat, are `row` or out of range, or a distance is not
 * what it should be. */
MF_INLINE int INAME(graph_count_sort)(const REAL *distances, const int64_t *neighbors, int64_t n, int64_t k,
                                      int64_t row, int width, INDEX *columns, uint8_t *slots)
{
    enum { STEP = MF_VBYTES / sizeof(INDEX), MOST = 32 / STEP };
    INAME(vindex) column[MOST], place[MOST];
    INDEX *each = (INDEX *)column;
    const INDEX *places = (const INDEX *)place;
    uint64_t taken = 0;
    int unfit = 0;
    for (int v = 0; v < width / STEP; v++) column[v] = INDEX_MAX - (INAME(vindex)){0}, place[v] = (INAME(vindex)){0};
    for (int64_t s = 0; s < k; s++) {
        unfit |= ((uint64_t)neighbors[s] >= (uint64_t)n) | (neighbors[s] == row);
        each[s] = (INDEX)neighbors[s];
    }
    for (int64_t s = 0; s < k; s++) unfit |= !(distances[s] >= 0);
    for (int64_t r = 0; r < k; r++) {
        INAME(vindex) other = each[r] - (INAME(vindex)){0};
        for (int v = 0; v < width / STEP; v++) place[v] -= (INAME(vindex))(other < column[v]);
    }
    for (int64_t s = 0; s < k; s++) {
        columns[places[s]] = each[s];
        slots[places[s]] = (uint8_t)s;
        taken |= (uint64_t)1 << places[s];
    }
    return !unfit && taken == ((uint64_t)1 << k) - 1;
}

/* List `row`, sorted by column, without the row itself and with each neighbour once, at the smallest distance given for
 * it. What is left over at the end is INDEX_MAX. False where a neighbour is out of range or a distance negative. */
static int INAME(graph_list)(const mf_graph *g, const int64_t *neighbors, int64_t row, mf_pair *work)
{
    int64_t n = g->n, k = g->k, length = 0;
    const REAL *distances = (const REAL *)g->distances + row * k;
    INDEX *columns = (INDEX *)g->columns + row * g->stride;
    uint8_t *slots = (uint8_t *)g->slots + row * k;
    neighbors += row * k;
    for (int64_t s = k; s < g->stride; s++) columns[s] = INDEX_MAX;
    if (k <= 16) {
        if (INAME(graph_count_sort)(distances, neighbors, n, k, row, 16, columns, slots)) return 1;
    } else if (k <= 32) {
        if (INAME(graph_count_sort)(distances, neighbors, n, k, row, 32, columns, slots)) return 1;
    }
    for (int64_t s = 0; s < k; s++) {
        if ((uint64_t)neighbors[s] >= (uint64_t)n || !(distances[s] >= 0)) return 0;
        work[s] = (mf_pair){(double)neighbors[s], s};
    }
    mf_pairs_sort(work, k);
    for (int64_t s = 0; s < k; s++) {
        int64_t slot = work[s].index;
        INDEX column = (INDEX)neighbors[slot];
        if (column == (INDEX)row) continue;
        if (length && columns[length - 1] == column) {
            if (!(distances[slot] < INAME(graph_distance)(g, row, length - 1))) continue;
            length--;
        }
        columns[length] = column;
        if (k <= GRAPH_BYTE_SLOTS) slots[length] = (uint8_t)slot;
        else ((uint32_t *)g->slots)[row * k + length] = (uint32_t)slot;
        length++;
    }
    for (; length < k; length++) columns[length] = INDEX_MAX;
    return 1;
}

/* The place of `wanted` in a sorted list of k, or where it would be inserted. */
MF_INLINE int64_t INAME(graph_find)(const INDEX *columns, int64_t k, INDEX wanted)
{
    const INDEX *base = columns;
    for (int64_t half; k > 1; k -= half) {
        half = k / 2;
        base += half & -(int64_t)(base[half - 1] < wanted);
    }
    return base - columns;
}

/* Bit s: the s-th column of a list padded to whole vectors, at most 32 long, compares so with `other`. */
#undef GRAPH_BITS
#define GRAPH_BITS(bits, columns, stride, COMPARE, other)                                                            \
    do {                                                                                                             \
        INAME(vindex) all = (other) - (INAME(vindex)){0};                                                            \
        (bits) = 0;                                                                                                  \
        for (int64_t at = 0; at < (stride); at += (int64_t)(MF_VBYTES / sizeof(INDEX))) {                            \
            INAME(vindex) mask = (INAME(vindex))(*(const INAME(vindex) *)((columns) + at) COMPARE all);              \
            (bits) |= (uint64_t)(sizeof(INDEX) == 4 ? vf32_bits((vf32_mask)mask) : vf64_bits((vf64_mask)mask)) << at;\
        }                                                                                                            \
    } while (0)

/* Where a list holds `wanted`, or -1. Short lists, padded to whole vectors, are searched at once. */
MF_INLINE int64_t INAME(graph_place)(const INDEX *columns, int64_t k, int64_t stride, INDEX wanted)
{
    if (stride > 32) {
        int64_t at = INAME(graph_find)(columns, k, wanted);
        return columns[at] == wanted ? at : -1;
    }
    uint64_t bits;
    GRAPH_BITS(bits, columns, stride, ==, wanted);
    return bits ? __builtin_ctzll(bits) : -1;
}

/* The distance at which list i has j, which it has. */
MF_INLINE REAL INAME(graph_length)(const mf_graph *g, int64_t i, int64_t j)
{
    const INDEX *columns = (const INDEX *)g->columns + i * g->stride;
    return INAME(graph_distance)(g, i, INAME(graph_find)(columns, g->k, (INDEX)j));
}

/* Distances become weights, in place. */
static void INAME(graph_weights)(REAL *values, int64_t count, mf_weights weights, REAL beta)
{
    if (weights == MF_BINARY)
        for (int64_t i = 0; i < count; i++) values[i] = 1;
    if (weights != MF_HEAT) return;
    V scale = VOP(set)(beta);
    for (int64_t i = 0; i < count; i += LANES) {
        REAL last[MF_VBYTES / sizeof(REAL)] = {0};
        int whole = count - i >= LANES;
        if (!whole) memcpy(last, values + i, (size_t)(count - i) * sizeof(REAL));
        V d = VOP(load)(whole ? values + i : last), w = NAME(exp)(-(d * d) / scale);
        if (whole) VOP(store)(values + i, w);
        else {
            VOP(store)(last, w);
            memcpy(values + i, last, (size_t)(count - i) * sizeof(REAL));
        }
    }
}

static mf_status INAME(graph_begin)(const REAL *distances, const int64_t *neighbors, mf_graph *g, int64_t *bad,
                                    mf_run *run)
{
    enum { BLOCK = MF_LIMIT(256, 3), AHEAD = 4 };
    int64_t n = g->n, k = g->k, stride = g->stride = GRAPH_STRIDE(k), total = 0, first_bad = INT64_MAX;
    int64_t slots = mf_min(run->n_threads, GRAPH_MOST_SLOTS);
    int64_t ends[GRAPH_MOST_SLOTS];
    uint64_t print = 0;
    INDEX *columns = g->columns = mf_alloc(n * stride, sizeof(INDEX)), *counts = mf_alloc(n * slots, sizeof(INDEX));
    uint8_t *sides = g->sides = mf_alloc(n * k, 1);
    int64_t *starts = g->starts = mf_alloc(n + 1, sizeof(int64_t)), *rows = g->rows = mf_alloc(n + 1, sizeof(int64_t));
    INAME(single) *singles = mf_alloc(n * k + 1, sizeof(*singles)); /* mostly never touched */
    INAME(entry) *transposed = NULL;
    g->distances = distances;
    g->slots = mf_alloc(n * k, k <= GRAPH_BYTE_SLOTS ? 1 : sizeof(uint32_t));
    int no_memory = !singles || !columns || !counts || !g->slots || !sides || !starts || !rows, mutual = g->mutual;
    *bad = -1;
    if (no_memory) goto done;
#pragma omp parallel num_threads(run->n_threads)
    {
        mf_pair *work = mf_alloc(k, sizeof(mf_pair));
        if (!work) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic, 4) reduction(min : first_bad)
        for (int64_t block = 0; block < mf_ceil_div(n, BLOCK); block++) {
            if (mf_poll(run) || !work) continue;
            for (int64_t i = block * BLOCK; i < mf_min((block + 1) * BLOCK, n); i++)
                if (!INAME(graph_list)(g, neighbors, i, work)) first_bad = mf_min(first_bad, i);
        }
        mf_release(work);
    }
    if (first_bad < INT64_MAX) *bad = first_bad;
    if (no_memory || run->stop || *bad >= 0) goto done;
    /* Every pair is looked up once, from its lower end: sides are bytes that one thread writes. */
    memset(sides, GRAPH_OURS, (size_t)(n * k));
#pragma omp parallel for schedule(dynamic, 4) num_threads(run->n_threads)
    for (int64_t block = 0; block < mf_ceil_div(n, BLOCK); block++) {
        uint8_t nothing;
        if (mf_poll(run)) continue;
        for (int64_t i = block * BLOCK; i < mf_min((block + 1) * BLOCK, n); i++) {
            const INDEX *own = columns + i * stride, *soon = columns + mf_min(i + AHEAD, n - 1) * stride;
            for (int64_t s = k - 1; s >= 0 && soon[s] > i + AHEAD; s--)
                if (soon[s] < INDEX_MAX) __builtin_prefetch(columns + soon[s] * stride);
            for (int64_t s = k - 1; s >= 0 && own[s] > i; s--) {
                if (own[s] == INDEX_MAX) continue;
                int64_t at = INAME(graph_place)(columns + own[s] * stride, k, stride, (INDEX)i);
                *(at < 0 ? &nothing : sides + own[s] * k + at) = GRAPH_BOTH; /* no branch on what the search finds */
                sides[i * k + s] = at < 0 ? GRAPH_OURS : GRAPH_BOTH;
            }
        }
    }
    if (run->stop) goto done;
#pragma omp parallel for schedule(static, 1) num_threads(run->n_threads) reduction(+ : print)
    for (int64_t slot = 0; slot < slots; slot++) {
        INDEX *count = counts + slot * n;
        memset(count, 0, (size_t)n * sizeof(INDEX));
        INAME(single) *last = singles + n * slot / slots * k;
        for (int64_t i = n * slot / slots; i < n * (slot + 1) / slots; i++) {
            if (i % BLOCK == 0 && mf_poll(run)) break;
            const INDEX *own = columns + i * stride;
            int64_t edges = 0;
            for (int64_t s = 0; own[s] != INDEX_MAX; s++) { /* no branch on the side */
                int both = sides[i * k + s];
                REAL length = INAME(graph_distance)(g, i, s);
                print += INAME(edge_print)(i, own[s], length) & -(uint64_t)both;
                *last = (INAME(single)){length, (INDEX)i, own[s]};
                last += !both & !mutual;
                edges += both | !mutual;
            }
            rows[i + 1] = edges;
        }
        ends[slot] = last - singles;
        for (const INAME(single) *s = singles + n * slot / slots * k; s < last; s++) count[s->row]++;
    }
    if (run->stop) goto done;
    g->uneven = print != 0;
    if (g->uneven) {
#pragma omp parallel for schedule(dynamic, 4) num_threads(run->n_threads)
        for (int64_t block = 0; block < mf_ceil_div(n, BLOCK); block++) {
            if (mf_poll(run)) continue;
            for (int64_t i = block * BLOCK; i < mf_min((block + 1) * BLOCK, n); i++)
                for (int64_t s = 0; columns[i * stride + s] != INDEX_MAX; s++) {
                    uint8_t *side = sides + i * k + s;
                    if (*side != GRAPH_BOTH) continue;
                    REAL theirs = INAME(graph_length)(g, columns[i * stride + s], i);
                    if (theirs < INAME(graph_distance)(g, i, s)) *side = GRAPH_THEIRS;
                }
        }
    }
    /* Counts become offsets inside the transposed entries of a row, which end with a mark. */
#pragma omp parallel for schedule(static) num_threads(run->n_threads)
    for (int64_t j = 0; j < n; j++) {
        INDEX sum = 0;
        for (int64_t slot = 0; slot < slots; slot++) {
            INDEX c = counts[slot * n + j];
            counts[slot * n + j] = sum;
            sum += c;
        }
        starts[j + 1] = sum;
    }
    starts[0] = rows[0] = 0;
    for (int64_t j = 0; j < n; j++) {
        total += rows[j + 1] + starts[j + 1];
        rows[j + 1] = total;
        starts[j + 1] += starts[j] + 1;
    }
    transposed = g->transposed = mf_alloc(starts[n], sizeof(*transposed));
    if (!transposed) {
        no_memory = 1;
        goto done;
    }
#pragma omp parallel for schedule(static, 1) num_threads(run->n_threads)
    for (int64_t slot = 0; slot < slots; slot++) {
        INDEX *offset = counts + slot * n;
        for (int64_t j = 0; j < n; j++) offset[j] += (INDEX)starts[j];
        for (int64_t i = n * slot / slots; i < n * (slot + 1) / slots; i++)
            transposed[starts[i + 1] - 1] = (INAME(entry)){0, INDEX_MAX};
        for (int64_t s = n * slot / slots * k; s < ends[slot]; s++)
            transposed[offset[singles[s].row]++] = (INAME(entry)){singles[s].distance, singles[s].column};
    }
done:
    mf_release(counts);
    mf_release(singles);
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

/* One row where lists are short, all edges count and have one distance: places by counting, so that no entry waits for
 * the one before it. */
MF_INLINE void INAME(graph_short_row)(const mf_graph *g, int64_t stride, int64_t row, INDEX *out_columns, REAL *values)
{
    const INDEX *own = (const INDEX *)g->columns + row * stride;
    const INAME(entry) *other = (const INAME(entry) *)g->transposed + g->starts[row];
    int64_t others = g->starts[row + 1] - g->starts[row] - 1;
    INDEX place[32] __attribute__((aligned(MF_ALIGN)));
    for (int64_t s = 0; s < stride; s++) place[s] = (INDEX)s;
    for (int64_t u = 0; u < others; u++) {
        INDEX column = other[u].column;
        uint64_t lower;
        for (int64_t s = 0; s < stride; s++) place[s] += column < own[s];
        GRAPH_BITS(lower, own, stride, <, column);
        int64_t to = u + __builtin_popcountll(lower);
        out_columns[to] = column;
        values[to] = other[u].distance;
    }
    for (int64_t s = 0; own[s] != INDEX_MAX; s++) {
        out_columns[place[s]] = own[s];
        values[place[s]] = INAME(graph_distance)(g, row, s);
    }
}

/* One row of the graph; `mutual` and `uneven` are constants here. */
MF_INLINE void INAME(graph_row)(const mf_graph *g, int64_t row, int mutual, int uneven, INDEX *out_columns,
                                REAL *values)
{
    const INDEX *first = (const INDEX *)g->columns + row * g->stride, *own = first;
    const uint8_t *side = g->sides + row * g->k;
    const INAME(entry) *other = (const INAME(entry) *)g->transposed + g->starts[row];
    for (;;) {
        INDEX ours = *own, theirs = other->column;
        int from_own = ours < theirs; /* the two have no column in common */
        if (!from_own && theirs == INDEX_MAX) return;
        REAL d = from_own ? INAME(graph_distance)(g, row, own - first) : other->distance;
        if (uneven && from_own && *side == GRAPH_THEIRS) d = INAME(graph_length)(g, ours, row);
        if (!mutual || *side != GRAPH_OURS) { /* mutual: nothing is transposed */
            *out_columns++ = from_own ? ours : theirs;
            *values++ = d;
        }
        own += from_own, side += from_own, other += !from_own;
    }
}

static mf_status INAME(graph_fill)(const mf_graph *g, mf_weights weights, REAL beta, INDEX *indptr, INDEX *columns,
                                   REAL *values, mf_run *run)
{
    enum { BLOCK = MF_LIMIT(256, 3) };
    int64_t n = g->n;
    const int64_t *rows = g->rows;
    indptr[0] = 0;
#pragma omp parallel for schedule(dynamic, 4) num_threads(run->n_threads)
    for (int64_t block = 0; block < mf_ceil_div(n, BLOCK); block++) {
        if (mf_poll(run)) continue;
        int64_t begin = block * BLOCK, end = mf_min(begin + BLOCK, n);
        for (int64_t i = begin; i < end; i++) {
            if (g->mutual) INAME(graph_row)(g, i, 1, 1, columns + rows[i], values + rows[i]);
            else if (g->uneven) INAME(graph_row)(g, i, 0, 1, columns + rows[i], values + rows[i]);
            else if (g->stride > 32) INAME(graph_row)(g, i, 0, 0, columns + rows[i], values + rows[i]);
            else if (g->stride == 16) INAME(graph_short_row)(g, 16, i, columns + rows[i], values + rows[i]);
            else INAME(graph_short_row)(g, g->stride, i, columns + rows[i], values + rows[i]);
            indptr[i + 1] = (INDEX)rows[i + 1];
        }
        INAME(graph_weights)(values + rows[begin], rows[end] - rows[begin], weights, beta);
    }
    return run->stop ? MF_INTERRUPTED : MF_OK;
}
