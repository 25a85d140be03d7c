/* The `keep` smallest of a stream of (distance, index) pairs, per row. Short lists are sorted and take a new pair by
 * one pass of vector selects, without a branch on the data. Long ones are unsorted buffers, cut back by quickselect
 * when full, so that a pair costs the same for any k. Order: a pair at the threshold is not taken; with indices
 * ascending, as in a scan, ties thus go to the lower index. Screening settles ties later, by exact distances.
 * Workspace: allocated by reservoir_open.
 * Template. Needs: base/dtype_impl.h. */

#undef SORTED_UP_TO
#define SORTED_UP_TO MF_LIMIT(128, 16) /* above it, shifting a sorted list costs more than quickselect */

typedef struct {
    REAL *distance;  /* rows of `stride`, entry 0 at `offset` */
    RINT *index;
    int32_t *count;  /* pairs in each row of an unsorted list; for sorted ones set by reservoir_cut */
    REAL *threshold; /* pairs below it are taken; readable in whole vectors past the last row */
    int64_t keep, capacity, stride, offset;
} NAME(reservoir);

static int NAME(reservoir_open)(NAME(reservoir) *r, int64_t rows, int64_t keep)
{
    int sorted = keep <= SORTED_UP_TO;
    r->keep = sorted ? mf_round_up(keep, LANES) : keep;
    r->capacity = sorted ? r->keep : 2 * r->keep;
    r->offset = sorted ? LANES : 0;
    r->stride = r->capacity + r->offset;
    r->distance = mf_alloc(rows * r->stride, sizeof(REAL));
    r->index = mf_alloc(rows * r->stride, sizeof(RINT));
    r->count = mf_alloc(rows, sizeof(int32_t));
    r->threshold = mf_alloc(rows + 32, sizeof(REAL));
    return r->distance && r->index && r->count && r->threshold;
}

static void NAME(reservoir_clear)(NAME(reservoir) *r, int64_t rows)
{
    REAL largest = sizeof(REAL) == 4 ? (REAL)3e38 : (REAL)1e308; /* finite: missing points at +inf never enter */
    for (int64_t i = 0; i < rows; i++) {
        r->count[i] = 0;
        for (int64_t j = 0; r->offset && j < r->stride; j++) {
            r->distance[i * r->stride + j] = j < r->offset ? -(REAL)INFINITY : largest;
            r->index[i * r->stride + j] = -1;
        }
    }
    for (int64_t i = 0; i < rows + 32; i++) r->threshold[i] = largest;
}

static void NAME(reservoir_close)(NAME(reservoir) *r)
{
    mf_release(r->distance);
    mf_release(r->index);
    mf_release(r->count);
    mf_release(r->threshold);
}

MF_INLINE int NAME(before)(REAL da, RINT ia, REAL db, RINT ib) { return da < db || (da == db && ia < ib); }

/* Reorders n pairs so that the `keep` smallest come first and the largest of those stands last among them. */
static void NAME(select)(REAL *d, RINT *id, int64_t n, int64_t keep)
{
    int64_t low = 0, high = n - 1, target = keep - 1;
    while (low < high) {
        int64_t mid = low + (high - low) / 2, i = low, j = high;
        /* Median of three as pivot. */
        int64_t a = low, b = mid, c = high, t;
        if (NAME(before)(d[b], id[b], d[a], id[a])) t = a, a = b, b = t;
        if (NAME(before)(d[c], id[c], d[b], id[b])) b = NAME(before)(d[c], id[c], d[a], id[a]) ? a : c;
        REAL pivot = d[b];
        RINT pivot_id = id[b];
        while (i <= j) {
            while (NAME(before)(d[i], id[i], pivot, pivot_id)) i++;
            while (NAME(before)(pivot, pivot_id, d[j], id[j])) j--;
            if (i <= j) {
                REAL swap = d[i];
                RINT swap_id = id[i];
                d[i] = d[j], id[i] = id[j];
                d[j] = swap, id[j] = swap_id;
                i++, j--;
            }
        }
        if (target <= j) high = j;
        else if (target >= i) low = i;
        else break;
    }
}

/* Leaves at most `keep` pairs in a row, and counts them. */
static void NAME(reservoir_cut)(NAME(reservoir) *r, int64_t row)
{
    REAL *d = r->distance + row * r->stride;
    if (r->offset) {
        int64_t count = r->keep;
        while (count && r->index[row * r->stride + r->offset + count - 1] < 0) count--;
        r->count[row] = (int32_t)count;
        return;
    }
    if (r->count[row] <= r->keep) return;
    NAME(select)(d, r->index + row * r->stride, r->count[row], r->keep);
    r->count[row] = (int32_t)r->keep;
    r->threshold[row] = d[r->keep - 1];
}

MF_INLINE void NAME(reservoir_add)(NAME(reservoir) *r, int64_t row, REAL distance, int64_t index)
{
    REAL *d = r->distance + row * r->stride + r->offset;
    RINT *id = r->index + row * r->stride + r->offset;
    if (r->offset && r->keep == LANES) {
        V keys = VOP(load)(d);
        VOP(mask) numbers;
        memcpy(&numbers, id, sizeof(numbers));
        VOP(insert)(&keys, &numbers, distance, (RINT)index);
        VOP(store)(d, keys);
        memcpy(id, &numbers, sizeof(numbers));
        r->threshold[row] = keys[LANES - 1];
    } else if (r->offset) {
        /* What is farther moves up by one; -inf in front of the first entry ends the chain. */
        V x = VOP(set)(distance);
        VOP(mask) number = (RINT)index - (VOP(mask)){0};
        V here = VOP(load)(d + r->keep - LANES);
        VOP(mask) index_here, index_before;
        memcpy(&index_here, id + r->keep - LANES, sizeof(index_here));
        for (int64_t v = r->keep - LANES; v >= 0; v -= LANES) {
            V before = VOP(load)(d + v - LANES), left = VOP(slide)(before, here);
            VOP(mask) moved = here > x, pushed = left > x, index_left;
            if (!VOP(any)(moved)) break;
            memcpy(&index_before, id + v - LANES, sizeof(index_before));
            index_left = (VOP(mask))VOP(slide)((V)index_before, (V)index_here);
            VOP(store)(d + v, VOP(select)(moved, VOP(select)(pushed, left, x), here));
            index_left = (moved & ((pushed & index_left) | (~pushed & number))) | (~moved & index_here);
            memcpy(id + v, &index_left, sizeof(index_left));
            here = before, index_here = index_before;
        }
        r->threshold[row] = d[r->keep - 1];
    } else {
        d[r->count[row]] = distance;
        id[r->count[row]] = (RINT)index;
        if (++r->count[row] == r->capacity) NAME(reservoir_cut)(r, row);
    }
}
