/* kdtree_search: exact nearest neighbours in few dimensions. Leaves are full blocks of KD_LEAF points, one feature after
 * the other, so that a query meets a leaf in vectors of points; queries travel in groups, the points of a leaf of a
 * tree of their own (for a set against itself the same tree).
 * Accumulator: double, in the order of knn/sum_squares.h; bounds have the same shape and so hold in floating point.
 * Order: by (exact distance, index), so no choice made here can show in the result.
 * Workspace: two copies of the points while the tree is built; k pairs per query of a group.
 * Template. Needs: base/sort.h, knn/kdtree_nodes.h, knn/exact_distance_impl.h. */

typedef struct {
    mf_prepared head;
    int64_t n, p, leaves;
    REAL *blocks;   /* [leaf][p][KD_LEAF]; what is missing in the last leaf is NaN and passes no comparison */
    REAL *boxes;    /* [node][2][p]: least and greatest coordinates */
    int32_t *ids;   /* [leaf][KD_LEAF] */
    int32_t *first; /* [node] lowest id */
} NAME(kdtree);

/* Points move between two buffers while they are split. */
typedef struct {
    REAL *rows[2];
    int32_t *ids[2];
    double *keys;
} NAME(kd_build);

static void NAME(kd_close)(mf_prepared *self)
{
    NAME(kdtree) *t = (NAME(kdtree) *)self;
    mf_release(t->blocks);
    mf_release(t->boxes);
    mf_release(t->ids);
    mf_release(t->first);
}

/* The key by which points are split; NaN comes last. */
MF_INLINE double NAME(kd_key)(REAL value) { return value == value ? (double)value : INFINITY; }

/* The feature with the widest range, over at most SAMPLE rows: it changes the speed only, so an estimate is enough. */
static int64_t NAME(kd_widest)(const REAL *rows, int64_t n, int64_t p)
{
    enum { SAMPLE = 256 };
    int64_t stride = mf_ceil_div(n, SAMPLE), best = 0;
    REAL widest = -1;
    for (int64_t k = 0; k < p; k++) {
        REAL low = rows[k], high = rows[k];
        for (int64_t r = stride; r < n; r += stride) {
            REAL v = rows[r * p + k];
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        if (high - low > widest) widest = high - low, best = k;
    }
    return best;
}

/* Sends the points of a node to its two children, in the other buffer. The partition is stable: ids stay ascending in
 * every node, so equal coordinates are split by id. */
MF_INLINE void NAME(kd_split)(const NAME(kd_build) *b, int64_t n, int64_t p, mf_span s, int side)
{
    int64_t start = s.leaf * KD_LEAF, end = mf_min((s.leaf + s.count) * KD_LEAF, n);
    int64_t left = s.count / 2 * KD_LEAF, size = end - start, feature;
    const REAL *rows = b->rows[side] + start * p;
    const int32_t *ids = b->ids[side] + start;
    double *keys = b->keys + start, middle;
    feature = NAME(kd_widest)(rows, size, p);
    for (int64_t r = 0; r < size; r++) keys[r] = NAME(kd_key)(rows[r * p + feature]);
    mf_doubles_select(keys, size, left);
    middle = keys[left];
    int64_t equal = left; /* how many equal to the middle go left: the first ones */
    for (int64_t r = 0; r < left; r++) equal -= keys[r] < middle;
    REAL *other = b->rows[!side] + start * p;
    int32_t *other_ids = b->ids[!side] + start;
    int64_t to[2] = {left, 0};
    for (int64_t r = 0; r < size; r++) {
        double key = NAME(kd_key)(rows[r * p + feature]);
        int tie = (key == middle) & (equal > 0);
        equal -= tie;
        int64_t at = to[(key < middle) | tie]++;
        for (int64_t k = 0; k < p; k++) other[at * p + k] = rows[r * p + k];
        other_ids[at] = ids[r];
    }
}

static void NAME(kd_split_any)(const NAME(kd_build) *b, int64_t n, int64_t p, mf_span s, int side)
{
    switch (p) { /* constants let the copies unroll */
    case 1: NAME(kd_split)(b, n, 1, s, side); break;
    case 2: NAME(kd_split)(b, n, 2, s, side); break;
    case 3: NAME(kd_split)(b, n, 3, s, side); break;
    case 4: NAME(kd_split)(b, n, 4, s, side); break;
    default: NAME(kd_split)(b, n, p, s, side);
    }
}

static void NAME(kd_leaf)(NAME(kdtree) *t, const NAME(kd_build) *b, mf_span s, int side)
{
    int64_t start = s.leaf * KD_LEAF, size = mf_min(KD_LEAF, t->n - start), p = t->p;
    const REAL *rows = b->rows[side] + start * p;
    REAL *block = t->blocks + start * p, *box = t->boxes + s.node * 2 * p;
    for (int64_t k = 0; k < p; k++) {
        REAL low = (REAL)INFINITY, high = -(REAL)INFINITY; /* of no point: NaN takes no part */
        for (int64_t r = 0; r < KD_LEAF; r++) {
            REAL v = r < size ? rows[r * p + k] : (REAL)NAN;
            block[k * KD_LEAF + r] = v;
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        box[k] = low, box[p + k] = high;
    }
    for (int64_t r = 0; r < KD_LEAF; r++) t->ids[start + r] = r < size ? b->ids[side][start + r] : INT32_MAX;
    t->first[s.node] = b->ids[side][start];
}

/* Boxes and lowest ids of the inner nodes, from the leaves up. */
static void NAME(kd_join)(NAME(kdtree) *t, mf_span s)
{
    if (s.count == 1) return;
    mf_span child[2] = {mf_left(s), mf_right(s)};
    int64_t p = t->p;
    REAL *box = t->boxes + s.node * 2 * p;
    for (int c = 0; c < 2; c++) {
        NAME(kd_join)(t, child[c]);
        const REAL *inner = t->boxes + child[c].node * 2 * p;
        for (int64_t k = 0; k < p; k++) {
            box[k] = c && box[k] < inner[k] ? box[k] : inner[k];
            box[p + k] = c && box[p + k] > inner[p + k] ? box[p + k] : inner[p + k];
        }
    }
    t->first[s.node] = (int32_t)mf_min(t->first[child[0].node], t->first[child[1].node]);
}

static void NAME(kd_subtree)(NAME(kdtree) *t, const NAME(kd_build) *b, mf_span top, int top_side, mf_run *run)
{
    mf_span stack[KD_DEPTH];
    int side[KD_DEPTH], height = 1;
    stack[0] = top, side[0] = top_side;
    while (height) {
        mf_span s = stack[--height];
        int from = side[height];
        if (s.count == 1) {
            NAME(kd_leaf)(t, b, s, from);
            continue;
        }
        if (s.count > 256 && mf_poll(run)) return;
        NAME(kd_split_any)(b, t->n, t->p, s, from);
        stack[height] = mf_right(s), side[height++] = !from;
        stack[height] = mf_left(s), side[height++] = !from;
    }
}

static mf_status NAME(kd_make)(const REAL *x, int64_t n, int64_t p, NAME(kdtree) *t, mf_run *run)
{
    enum { WIDEST = 256 };
    int64_t leaves = mf_ceil_div(n, KD_LEAF), room = leaves * KD_LEAF;
    int64_t bytes = (room + (2 * leaves - 1) * 2) * p * (int64_t)sizeof(REAL) + (room + 2 * leaves - 1) * 4;
    *t = (NAME(kdtree)){{NAME(kd_close), bytes}, n, p, leaves,
                        mf_alloc(room * p, sizeof(REAL)), mf_alloc((2 * leaves - 1) * 2 * p, sizeof(REAL)),
                        mf_alloc(room, sizeof(int32_t)), mf_alloc(2 * leaves - 1, sizeof(int32_t))};
    NAME(kd_build) b = {{mf_alloc(n * p, sizeof(REAL)), mf_alloc(n * p, sizeof(REAL))},
                        {mf_alloc(n, sizeof(int32_t)), mf_alloc(n, sizeof(int32_t))},
                        mf_alloc(n, sizeof(double))};
    int ready = t->blocks && t->boxes && t->ids && t->first && b.rows[0] && b.rows[1] && b.ids[0] && b.ids[1] && b.keys;
    if (ready) {
        /* Whole levels first, until there is work for all threads; then subtrees, each by one thread. */
        mf_span level[WIDEST] = {{0, 0, leaves, 0}}, next[WIDEST];
        int64_t width = 1, enough = run->n_threads > 1 ? mf_min(8 * (int64_t)run->n_threads, WIDEST / 2) : 1;
        int side = 0;
        memcpy(b.rows[0], x, (size_t)(n * p) * sizeof(REAL));
        for (int64_t i = 0; i < n; i++) b.ids[0][i] = (int32_t)i;
        while (width < enough && width * 2 <= leaves && !mf_poll(run)) {
#pragma omp parallel for schedule(dynamic) num_threads(run->n_threads) if (width > 1)
            for (int64_t i = 0; i < width; i++) {
                NAME(kd_split_any)(&b, n, p, level[i], side);
                next[2 * i] = mf_left(level[i]), next[2 * i + 1] = mf_right(level[i]);
            }
            width *= 2, side = !side;
            memcpy(level, next, (size_t)width * sizeof(mf_span));
        }
#pragma omp parallel for schedule(dynamic) num_threads(run->n_threads) if (width > 1)
        for (int64_t i = 0; i < width; i++)
            if (!mf_poll(run)) NAME(kd_subtree)(t, &b, level[i], side, run);
        if (!run->stop) NAME(kd_join)(t, (mf_span){0, 0, leaves, 0});
    }
    for (int i = 0; i < 2; i++) {
        mf_release(b.rows[i]);
        mf_release(b.ids[i]);
    }
    mf_release(b.keys);
    return !ready ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

/* A group of queries under way. Missing queries have a worst of -1: nothing gets past it. */
typedef struct {
    const REAL *queries; /* a block of their tree */
    const REAL *box;
    int64_t k, room;     /* room: entries per list, k where lists are sorted */
    int64_t own;         /* the leaf these queries are, where a point is not its own neighbour; or -1 */
    double worst[KD_LEAF];         /* the k-th best so far, +inf before there are k */
    int64_t worst_index[KD_LEAF];
    int64_t held[KD_LEAF];         /* entries of a list; 0 before the first leaf */
    double farthest;               /* the greatest of worst */
    mf_pair *lists;                /* [KD_LEAF][room] */
} NAME(kd_group);

/* Squared distance between two boxes. */
MF_INLINE double NAME(kd_box_bound)(const REAL *a, const REAL *b, int64_t p)
{
    double total;
    double above, below;
#define KD_GAP(k) (above = (double)a[k] - (double)b[p + (k)], below = (double)b[k] - (double)a[p + (k)], \
                   above = above > below ? above : below, above > 0 ? above : 0)
    MF_SUM_SQUARES(double, f64_fma, total, p, KD_GAP);
#undef KD_GAP
    return total;
}

/* Bit q: query q may have a neighbour in this node. At a distance equal to its worst only a lower id would count. */
MF_INLINE unsigned NAME(kd_survivors)(const NAME(kd_group) *g, const REAL *box, int64_t first, int64_t p)
{
    unsigned nearer = 0, level = 0;
    const vf64 zero = {0};
    for (int q = 0; q < KD_LEAF; q += MF_LANES64) {
        vf64 bound, worst = vf64_load(g->worst + q), x;
#define KD_GAP(k) (x = NAME(widen)(g->queries + (k) * KD_LEAF + q), \
                   vf64_max(vf64_max((double)box[k] - x, x - (double)box[p + (k)]), zero))
        MF_SUM_SQUARES(vf64, vf64_fma, bound, p, KD_GAP);
#undef KD_GAP
        nearer |= vf64_bits((vf64_mask)(bound < worst)) << q;
        level |= vf64_bits((vf64_mask)(bound == worst)) << q;
    }
    for (; level; level &= level - 1) {
        int q = __builtin_ctz(level);
        if (first < g->worst_index[q]) nearer |= 1u << q;
    }
    return nearer;
}

MF_INLINE void NAME(kd_offer)(NAME(kd_group) *g, int q, mf_pair candidate)
{
    mf_pair *list = g->lists + q * g->room;
    int64_t k = g->k, at;
    if (g->room == k) {
        if (!mf_before(candidate, list[k - 1])) return;
        for (at = k - 1; at > 0 && candidate.key < list[at - 1].key; at--) list[at] = list[at - 1];
        for (; at > 0 && mf_before(candidate, list[at - 1]); at--) list[at] = list[at - 1];
        list[at] = candidate;
        g->worst[q] = list[k - 1].key, g->worst_index[q] = list[k - 1].index;
        return;
    }
    if (!mf_before(candidate, (mf_pair){g->worst[q], g->worst_index[q]})) return;
    list[g->held[q]++] = candidate;
    if (g->held[q] == k) {
        mf_pair last = list[0];
        for (at = 1; at < k; at++) last = mf_before(last, list[at]) ? list[at] : last;
        g->worst[q] = last.key, g->worst_index[q] = last.index;
    } else if (g->held[q] == g->room) {
        mf_pairs_select(list, g->room, k - 1);
        g->held[q] = k, g->worst[q] = list[k - 1].key, g->worst_index[q] = list[k - 1].index;
    }
}

/* The first leaf of a sorted list: places come from counting who precedes whom, without a branch. Ids ascend in a
 * leaf, so equal distances keep their order; what is no candidate has distance +inf and id INT64_MAX. */
MF_INLINE void NAME(kd_begin)(NAME(kd_group) *g, int q, const double *distance, const int32_t *ids)
{
    enum { VECTORS = KD_LEAF / MF_LANES64 };
    mf_pair *list = g->lists + q * g->room;
    vf64 key[VECTORS];
    vf64_mask rank[VECTORS] = {{0}}, later = {0};
    int64_t k = g->k;
    for (int v = 0; v < VECTORS; v++) key[v] = vf64_load(distance + v * MF_LANES64);
#pragma GCC unroll 16
    for (int s = 0; s < KD_LEAF; s++) {
        vf64 other = vf64_set(distance[s]);
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++) {
            if (v < s / MF_LANES64) rank[v] -= (vf64_mask)(other < key[v]);
            else if (v > s / MF_LANES64) rank[v] -= (vf64_mask)(other <= key[v]);
            else {
                for (int l = 0; l < MF_LANES64; l++) later[l] = l > s % MF_LANES64 ? -1 : 0;
                rank[v] -= (vf64_mask)(other < key[v]) | ((vf64_mask)(other == key[v]) & later);
            }
        }
    }
    for (int r = 0; r < KD_LEAF; r++) {
        int64_t at = rank[r / MF_LANES64][r % MF_LANES64];
        if (at < k) list[at] = (mf_pair){distance[r], distance[r] < INFINITY ? ids[r] : INT64_MAX};
    }
    for (int64_t i = KD_LEAF; i < k; i++) list[i] = (mf_pair){INFINITY, INT64_MAX};
    g->worst[q] = list[k - 1].key, g->worst_index[q] = list[k - 1].index;
    g->held[q] = mf_min(k, KD_LEAF);
}

/* One query against the points of one leaf. */
MF_INLINE void NAME(kd_scan)(NAME(kd_group) *g, int q, const NAME(kdtree) *t, int64_t leaf, int64_t p)
{
    const REAL *block = t->blocks + leaf * KD_LEAF * p, *query = g->queries + q;
    double distance[KD_LEAF];
    unsigned near = 0;
    for (int r = 0; r < KD_LEAF; r += MF_LANES64) {
        vf64 sum;
#define KD_GAP(k) (NAME(widen)(block + (k) * KD_LEAF + r) - (double)query[(k) * KD_LEAF])
        MF_SUM_SQUARES(vf64, vf64_fma, sum, p, KD_GAP);
#undef KD_GAP
        vf64_store(distance + r, sum);
        near |= vf64_bits((vf64_mask)(sum <= vf64_set(g->worst[q]))) << r;
    }
    if (leaf == g->own) near &= ~(1u << q);
    const int32_t *ids = t->ids + leaf * KD_LEAF;
    if (g->held[q] == 0 && g->room == g->k) {
        for (int r = 0; r < KD_LEAF; r++) distance[r] = near >> r & 1 ? distance[r] : INFINITY;
        NAME(kd_begin)(g, q, distance, ids);
        return;
    }
    for (; near; near &= near - 1) {
        int r = __builtin_ctz(near);
        NAME(kd_offer)(g, q, (mf_pair){distance[r], ids[r]});
    }
}

MF_INLINE void NAME(kd_visit)(NAME(kd_group) *g, unsigned queries, const NAME(kdtree) *t, int64_t leaf, int64_t p)
{
    for (; queries; queries &= queries - 1) NAME(kd_scan)(g, __builtin_ctz(queries), t, leaf, p);
    g->farthest = -1;
    for (int q = 0; q < KD_LEAF; q++) g->farthest = g->worst[q] > g->farthest ? g->worst[q] : g->farthest;
}

MF_INLINE mf_span NAME(kd_bounded)(const NAME(kd_group) *g, const NAME(kdtree) *t, mf_span s, int64_t p)
{
    s.bound = NAME(kd_box_bound)(g->box, t->boxes + s.node * 2 * p, p);
    return s;
}

/* All neighbours of one group, nearest nodes first. */
MF_INLINE void NAME(kd_search)(NAME(kd_group) *g, const NAME(kdtree) *t, unsigned everyone, int64_t p)
{
    mf_span stack[2 * KD_DEPTH], s = {0, 0, t->leaves, 0};
    int height = 0;
    if (g->own >= 0) { /* from the own leaf outwards */
        while (s.count > 1) {
            mf_span left = mf_left(s), right = mf_right(s);
            int below = g->own < right.leaf;
            stack[height++] = NAME(kd_bounded)(g, t, below ? right : left, p);
            s = below ? left : right;
        }
        NAME(kd_visit)(g, everyone, t, g->own, p);
    } else stack[height++] = NAME(kd_bounded)(g, t, s, p);
    while (height) {
        s = stack[--height];
        if (s.bound > g->farthest) continue;
        if (s.count == 1 || p > 3) { /* with few features the bound of the whole group does for inner nodes */
            unsigned queries = NAME(kd_survivors)(g, t->boxes + s.node * 2 * p, t->first[s.node], p);
            if (!queries) continue;
            if (s.count == 1) {
                NAME(kd_visit)(g, queries, t, s.leaf, p);
                continue;
            }
        }
        mf_span left = NAME(kd_bounded)(g, t, mf_left(s), p), right = NAME(kd_bounded)(g, t, mf_right(s), p);
        int left_first = left.bound < right.bound ||
                         (left.bound == right.bound && t->first[left.node] < t->first[right.node]);
        stack[height++] = left_first ? right : left;
        stack[height++] = left_first ? left : right;
    }
}

/* The same for one query of the group: the bound of a node is its own. */
MF_INLINE mf_span NAME(kd_bounded_one)(const NAME(kd_group) *g, int q, const NAME(kdtree) *t, mf_span s, int64_t p)
{
    const REAL *box = t->boxes + s.node * 2 * p, *query = g->queries + q;
    double above, below, x;
#define KD_GAP(k) (x = (double)query[(k) * KD_LEAF], above = (double)box[k] - x, below = x - (double)box[p + (k)], \
                   above = above > below ? above : below, above > 0 ? above : 0)
    MF_SUM_SQUARES(double, f64_fma, s.bound, p, KD_GAP);
#undef KD_GAP
    return s;
}

MF_INLINE void NAME(kd_search_one)(NAME(kd_group) *g, int q, const NAME(kdtree) *t, int64_t p)
{
    mf_span stack[2 * KD_DEPTH];
    int height = 0;
    stack[height++] = NAME(kd_bounded_one)(g, q, t, (mf_span){0, 0, t->leaves, 0}, p);
    while (height) {
        mf_span s = stack[--height];
        /* Down to a leaf by the nearer child; at the distance of the worst only a lower id would count. */
        while (s.bound < g->worst[q] || (s.bound == g->worst[q] && t->first[s.node] < g->worst_index[q])) {
            if (s.count == 1) {
                NAME(kd_scan)(g, q, t, s.leaf, p);
                break;
            }
            mf_span left = NAME(kd_bounded_one)(g, q, t, mf_left(s), p);
            mf_span right = NAME(kd_bounded_one)(g, q, t, mf_right(s), p);
            int left_first = left.bound < right.bound ||
                             (left.bound == right.bound && t->first[left.node] < t->first[right.node]);
            stack[height++] = left_first ? right : left;
            s = left_first ? left : right;
        }
    }
}

/* Where points are many for each query, a group of queries is wide and comes by many leaves that few of them need. */
static void NAME(kd_search_any)(NAME(kd_group) *g, const NAME(kdtree) *t, int64_t size, int alone)
{
    unsigned everyone = (1u << size) - 1;
    for (int q = 0; alone && q < size; q++)
        switch (t->p) {
        case 1: NAME(kd_search_one)(g, q, t, 1); break;
        case 2: NAME(kd_search_one)(g, q, t, 2); break;
        case 3: NAME(kd_search_one)(g, q, t, 3); break;
        case 4: NAME(kd_search_one)(g, q, t, 4); break;
        default: NAME(kd_search_one)(g, q, t, t->p);
        }
    if (alone) return;
    switch (t->p) {
    case 1: NAME(kd_search)(g, t, everyone, 1); break;
    case 2: NAME(kd_search)(g, t, everyone, 2); break;
    case 3: NAME(kd_search)(g, t, everyone, 3); break;
    case 4: NAME(kd_search)(g, t, everyone, 4); break;
    default: NAME(kd_search)(g, t, everyone, t->p);
    }
}

/* Preorder number of a leaf. */
static int64_t NAME(kd_leaf_node)(int64_t leaves, int64_t leaf)
{
    mf_span s = {0, 0, leaves, 0};
    while (s.count > 1) s = leaf < mf_right(s).leaf ? mf_left(s) : mf_right(s);
    return s.node;
}

/* The group that leaf `leaf` of the queries' tree is, from empty lists to finished rows of the output. */
static void NAME(kd_answer)(NAME(kd_group) *g, const NAME(kdtree) *t, const NAME(kdtree) *queries, int64_t leaf,
                            REAL *distances, int64_t *indices)
{
    int64_t size = mf_min(KD_LEAF, queries->n - leaf * KD_LEAF), k = g->k;
    g->queries = queries->blocks + leaf * KD_LEAF * t->p;
    g->box = queries->boxes + NAME(kd_leaf_node)(queries->leaves, leaf) * 2 * t->p;
    g->own = t == queries ? leaf : -1;
    g->farthest = INFINITY;
    for (int q = 0; q < KD_LEAF; q++) {
        g->worst[q] = q < size ? INFINITY : -1;
        g->worst_index[q] = INT64_MAX;
        g->held[q] = 0;
    }
    NAME(kd_search_any)(g, t, size, t != queries && t->n > KD_ALONE(t->p) * queries->n);
    for (int q = 0; q < size; q++) {
        mf_pair *list = g->lists + q * g->room;
        /* Points with NaN are never neighbours: where too few others are left, the rest is point 0, distance NaN. */
        for (int64_t i = g->held[q]; i < k && (g->room > k || !g->held[q]); i++)
            list[i] = (mf_pair){INFINITY, INT64_MAX};
        if (g->room > k) {
            if (g->held[q] > k) mf_pairs_select(list, g->held[q], k - 1);
            mf_pairs_sort(list, k);
        }
        int64_t row = (int64_t)queries->ids[leaf * KD_LEAF + q] * k;
        for (int64_t i = 0; i < k; i++) distances[row + i] = (REAL)sqrt(list[i].key);
        for (int64_t i = 0; i < k; i++) indices[row + i] = list[i].index;
        for (int64_t i = k; i > 0 && indices[row + i - 1] == INT64_MAX; i--)
            distances[row + i - 1] = (REAL)NAN, indices[row + i - 1] = 0;
    }
}

/* Neighbours of the points of another tree, or (y == NULL) of the tree's own, among those of the tree. */
static mf_status NAME(kdtree_search)(const mf_prepared *made, const REAL *y, int64_t m, int64_t k, REAL *distances,
                                     int64_t *indices, mf_run *run)
{
    const NAME(kdtree) *tree = (const NAME(kdtree) *)made, *queries = tree;
    NAME(kdtree) other = {0};
    mf_status status = MF_OK;
    int no_memory = 0;
    if (y) {
        queries = &other;
        status = NAME(kd_make)(y, m, tree->p, &other, run);
    }
    if (status == MF_OK) {
        int64_t room = k <= KD_SORTED ? k : 2 * k;
#pragma omp parallel num_threads(run->n_threads) if (queries->leaves > 1)
        {
            NAME(kd_group) g = {.k = k, .room = room, .lists = mf_alloc(KD_LEAF * room, sizeof(mf_pair))};
            if (!g.lists) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic, 4)
            for (int64_t leaf = 0; leaf < queries->leaves; leaf++)
                if (!mf_poll(run)) NAME(kd_answer)(&g, tree, queries, leaf, distances, indices);
            mf_release(g.lists);
        }
        status = no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
    }
    NAME(kd_close)(&other.head);
    return status;
}

/* The prepared operand: the tree. */
static mf_status NAME(kdtree_prepare)(const REAL *x, int64_t n, int64_t p, mf_prepared **made, mf_run *run)
{
    NAME(kdtree) *t = mf_alloc(1, sizeof(*t));
    *made = (mf_prepared *)t;
    return t ? NAME(kd_make)(x, n, p, t, run) : MF_NO_MEMORY;
}
