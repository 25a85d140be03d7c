/* shortest_paths: lengths of shortest paths from many nodes of a symmetric graph. Sources that lie close together form
 * a batch: one search from its first source gives an order of the nodes that is nearly right for all of them, and
 * sweeps in that order relax all lanes of the batch at once.
 * Accumulator: double, lengths added from the source on. Every value is the minimum over paths, as Dijkstra's
 * algorithm gives it: rounded addition is monotone, so the values that no edge can improve are those minima, whatever
 * the order of the relaxations. Neither batches nor threads show in the result.
 * Workspace: per thread, 16 doubles per node and 12 bytes per edge. */
#ifndef MF_GRAPH_SHORTEST_PATHS_H
#define MF_GRAPH_SHORTEST_PATHS_H

#include "base/common.h"
#include "base/simd.h"

enum { PATH_LANES = 16, PATH_VECTORS = PATH_LANES * (int)sizeof(double) / MF_VBYTES, PATH_ARITY = 4 };

/* Measured at 5,000 points: 8 lanes take 1.8 times as long as 16 on a Swiss roll; 32 take 0.7 times, but 3 times with
 * 1,000 sources and 1.6 times on normal data in 20 dimensions. Following up after 16 or 256 nodes instead of 64 makes
 * 2 to 20 % of difference, only at the end 40 % on the roll. The other numbers are estimates. */
enum {
    PATH_WORTH = 3,   /* fewer sources than this are searched one by one */
    PATH_LIMIT = 12,  /* relaxations of all edges of a full batch that cost as much as its searches one by one */
    PATH_SETTLE = MF_LIMIT(64, 2), /* nodes swept before changes behind the sweep are followed up */
    PATH_REACH = 8,   /* nodes visited per lane, and per node that each source stands for, to find a batch */
    PATH_TURN = 8     /* nodes whose lanes are written to the rows of the result at a time: a cache line of each */
};

typedef struct {
    int64_t n;
    const int64_t *starts;
    const int32_t *columns;
    const double *lengths;
} path_net;

typedef struct {
    double key;
    int32_t node;
} path_front;

/* What one thread works with. */
typedef struct {
    path_front *heap;
    int64_t waiting;       /* entries of the heap */
    double *keys;          /* by node: the shortest length found */
    int32_t *places;       /* by node: where it waits in the heap, or a PATH_* mark */
    int32_t *positions;    /* by node: its number in the order of the batch, -1 where no source reaches it */
    int32_t *order;        /* nodes by number */
    int64_t *starts;       /* by number: edges to lower numbers */
    int32_t *lower;
    double *lengths;
    double *fields;        /* by number: PATH_LANES lengths */
    uint64_t *changed;     /* by number, one bit: lowered since its edges were last relaxed */
} path_work;

enum { PATH_UNSEEN = -1, PATH_DONE = -2 };

MF_INLINE void path_put(path_work *w, int64_t place, path_front entry)
{
    w->heap[place] = entry;
    w->places[entry.node] = (int32_t)place;
}

MF_INLINE void path_rise(path_work *w, int64_t place, path_front entry)
{
    while (place > 0) {
        int64_t parent = (place - 1) / PATH_ARITY;
        if (!(entry.key < w->heap[parent].key)) break;
        path_put(w, place, w->heap[parent]);
        place = parent;
    }
    path_put(w, place, entry);
}

/* Takes the node of least key off the heap. */
MF_INLINE int32_t path_pop(path_work *w)
{
    path_front *heap = w->heap, entry = heap[--w->waiting];
    int32_t top = heap[0].node;
    int64_t place = 0, count = w->waiting;
    w->places[top] = PATH_DONE;
    if (count == 0) return top;
    for (;;) {
        int64_t child = place * PATH_ARITY + 1, last = mf_min(child + PATH_ARITY, count), least = child;
        if (child >= count) break;
        for (int64_t c = child + 1; c < last; c++) least = heap[c].key < heap[least].key ? c : least;
        if (!(heap[least].key < entry.key)) break;
        path_put(w, place, heap[least]);
        place = least;
    }
    path_put(w, place, entry);
    return top;
}

MF_INLINE void path_reach(path_work *w, int32_t node, double key)
{
    int32_t place = w->places[node];
    if (place == PATH_DONE || (place != PATH_UNSEEN && !(key < w->keys[node]))) return;
    w->keys[node] = key;
    path_rise(w, place == PATH_UNSEEN ? w->waiting++ : place, (path_front){key, node});
}

/* Numbers the nodes by their distance from the first source, then, where sources lie elsewhere, from the next; and
 * collects the edges of each node to lower numbers. Returns how many nodes the sources reach. */
static int64_t path_order(const path_net *net, const int32_t *sources, int64_t count, path_work *w)
{
    int64_t reached = 0, edges = 0;
    for (int64_t i = 0; i < net->n; i++) w->places[i] = PATH_UNSEEN, w->positions[i] = -1;
    for (int64_t s = 0; s < count; s++) {
        path_reach(w, sources[s], 0);
        while (w->waiting) {
            int32_t node = path_pop(w);
            double key = w->keys[node];
            w->starts[reached] = edges;
            for (int64_t e = net->starts[node]; e < net->starts[node + 1]; e++) {
                int32_t other = net->columns[e], position = w->positions[other];
                w->lower[edges] = position;
                w->lengths[edges] = net->lengths[e];
                edges += position >= 0;
                if (position < 0 && other != node) path_reach(w, other, key + net->lengths[e]);
            }
            w->positions[node] = (int32_t)reached;
            w->order[reached++] = node;
        }
    }
    w->starts[reached] = edges;
    return reached;
}

MF_INLINE void path_mark(path_work *w, int64_t position)
{
    w->changed[position / 64] |= (uint64_t)1 << (position % 64);
}

/* Lowers the field at `to` to `field` + length; true where that changed a lane. */
MF_INLINE int path_relax(const vf64 *field, double length, double *to)
{
    vf64 lowered[PATH_VECTORS], step = vf64_set(length);
    vf64 least = {0}; /* of the changes; from infinite to infinite is NaN and no change */
    for (int v = 0; v < PATH_VECTORS; v++) {
        vf64 old = vf64_load(to + v * MF_LANES64), found = field[v] + step;
        least = vf64_min(found - old, least);
        lowered[v] = vf64_min(found, old);
    }
    if (!vf64_any_negative(least)) return 0;
    for (int v = 0; v < PATH_VECTORS; v++) vf64_store(to + v * MF_LANES64, lowered[v]);
    return 1;
}

/* Relaxes the edges of changed nodes, lowest numbers first, among the first `front` nodes until none is changed.
 * Returns the edges relaxed; stops early, with nodes still changed, where they exceed `limit`. */
static int64_t path_settle(const path_net *net, int64_t front, int64_t lowest, int64_t limit, path_work *w)
{
    int64_t relaxed = 0;
    for (int64_t word = lowest / 64; word < mf_ceil_div(front, 64); word++) {
        while (w->changed[word]) {
            int64_t position = word * 64 + __builtin_ctzll(w->changed[word]), back = word;
            w->changed[word] &= w->changed[word] - 1;
            vf64 field[PATH_VECTORS];
            const double *from = w->fields + position * PATH_LANES;
            for (int v = 0; v < PATH_VECTORS; v++) field[v] = vf64_load(from + v * MF_LANES64);
            int32_t node = w->order[position];
            for (int64_t e = net->starts[node]; e < net->starts[node + 1]; e++) {
                int64_t other = w->positions[net->columns[e]];
                if (other >= front) continue;
                if (path_relax(field, net->lengths[e], w->fields + other * PATH_LANES)) {
                    path_mark(w, other);
                    back = mf_min(back, other / 64);
                }
            }
            relaxed += net->starts[node + 1] - net->starts[node];
            if (relaxed > limit) return relaxed;
            word = back;
        }
    }
    return relaxed;
}

/* All lanes of a batch: each node takes the best way over lower numbers, and hands back what is better there. False
 * where it took more relaxations than it is worth. */
static int path_sweep(const path_net *net, int64_t reached, int64_t limit, path_work *w, mf_run *run)
{
    int64_t lowest = INT64_MAX;
    for (int64_t i = 0; i < reached; i++) {
        vf64 field[PATH_VECTORS];
        double *to = w->fields + i * PATH_LANES;
        for (int v = 0; v < PATH_VECTORS; v++) field[v] = vf64_load(to + v * MF_LANES64);
        for (int64_t e = w->starts[i]; e < w->starts[i + 1]; e++) {
            const double *from = w->fields + (int64_t)w->lower[e] * PATH_LANES;
            vf64 step = vf64_set(w->lengths[e]);
            for (int v = 0; v < PATH_VECTORS; v++)
                field[v] = vf64_min(vf64_load(from + v * MF_LANES64) + step, field[v]);
        }
        for (int v = 0; v < PATH_VECTORS; v++) vf64_store(to + v * MF_LANES64, field[v]);
        for (int64_t e = w->starts[i]; e < w->starts[i + 1]; e++)
            if (path_relax(field, w->lengths[e], w->fields + (int64_t)w->lower[e] * PATH_LANES)) {
                path_mark(w, w->lower[e]);
                lowest = mf_min(lowest, w->lower[e]);
            }
        if ((i + 1) % PATH_SETTLE && i + 1 < reached) continue;
        if (mf_poll(run)) return 1;
        if (lowest < INT64_MAX) {
            limit -= path_settle(net, i + 1, lowest, limit, w);
            if (limit < 0) return 0;
            lowest = INT64_MAX;
        }
    }
    return 1;
}

/* Dijkstra's algorithm from one source; out[v] is infinite where no path leads. */
static void path_single(const path_net *net, int32_t source, double *out, path_work *w)
{
    for (int64_t i = 0; i < net->n; i++) w->places[i] = PATH_UNSEEN, out[i] = (double)INFINITY;
    path_reach(w, source, 0);
    while (w->waiting) {
        int32_t node = path_pop(w);
        out[node] = w->keys[node];
        for (int64_t e = net->starts[node]; e < net->starts[node + 1]; e++)
            path_reach(w, net->columns[e], w->keys[node] + net->lengths[e]);
    }
}

/* The lengths from up to PATH_LANES sources, one row of out each. */
static void path_batch(const path_net *net, const int64_t *sources, const int64_t *rows, int64_t count,
                       double *out, path_work *w, mf_run *run)
{
    int32_t nodes[PATH_LANES];
    int64_t n = net->n;
    for (int64_t s = 0; s < count; s++) nodes[s] = (int32_t)sources[rows[s]];
    int swept = count >= PATH_WORTH;
    if (swept) {
        int64_t reached = path_order(net, nodes, count, w);
        memset(w->changed, 0, (size_t)mf_ceil_div(reached, 64) * sizeof(uint64_t));
        for (int64_t i = 0; i < reached * PATH_LANES; i++) w->fields[i] = (double)INFINITY;
        for (int64_t s = 0; s < count; s++) w->fields[(int64_t)w->positions[nodes[s]] * PATH_LANES + s] = 0;
        swept = path_sweep(net, reached, PATH_LIMIT * count * (net->starts[n] + n) / PATH_LANES, w, run);
    }
    if (!swept) {
        for (int64_t s = 0; s < count && !mf_poll(run); s++) path_single(net, nodes[s], out + rows[s] * n, w);
        return;
    }
    for (int64_t begin = 0; begin < n; begin += PATH_TURN) {
        int64_t end = mf_min(begin + PATH_TURN, n);
        for (int64_t s = 0; s < count; s++)
            for (int64_t i = begin; i < end; i++) {
                int64_t position = w->positions[i];
                out[rows[s] * n + i] = position < 0 ? (double)INFINITY : w->fields[position * PATH_LANES + s];
            }
    }
}

/* Sorts the rows of the result into batches: PATH_LANES at a time, rows of sources that lie close together. A cell
 * grows from the first source, in breadth-first order, that has no cell; those that find too few neighbours left
 * share the last batches. `heads` and `next` list the rows that each node is to fill. */
static void path_cells(const path_net *net, int64_t m, int64_t *heads, int64_t *next, const uint8_t *wanted,
                       int64_t *rows, path_work *w)
{
    int64_t n = net->n, queued = 0, full = 0, rest = m, budget = PATH_REACH * PATH_LANES * mf_ceil_div(n, m);
    for (int64_t i = 0; i < n; i++) w->positions[i] = -1, w->places[i] = PATH_UNSEEN;
    int32_t *settled = w->lower;
    for (int64_t at = 0, root = 0; at < n; at++) {
        if (at == queued) {
            while (w->positions[root] >= 0) root++;
            w->positions[root] = 1;
            w->order[queued++] = (int32_t)root;
        }
        int32_t seed = w->order[at];
        for (int64_t e = net->starts[seed]; e < net->starts[seed + 1]; e++) {
            int32_t other = net->columns[e];
            if (w->positions[other] < 0) w->positions[other] = 1, w->order[queued++] = other;
        }
        while (heads[seed] >= 0) {
            int64_t cell[PATH_LANES], found = 0, touched = 0;
            path_reach(w, seed, 0);
            while (w->waiting && found < PATH_LANES && touched < budget) {
                int32_t node = settled[touched++] = path_pop(w);
                for (; heads[node] >= 0 && found < PATH_LANES; heads[node] = next[heads[node]])
                    cell[found++] = heads[node];
                for (int64_t e = net->starts[node]; e < net->starts[node + 1]; e++) {
                    int32_t other = net->columns[e];
                    if (heads[other] >= 0 || !wanted[other])
                        path_reach(w, other, w->keys[node] + net->lengths[e]);
                }
            }
            for (int64_t i = 0; i < touched; i++) w->places[settled[i]] = PATH_UNSEEN;
            while (w->waiting) w->places[w->heap[--w->waiting].node] = PATH_UNSEEN;
            for (int64_t i = 0; i < found; i++)
                if (found == PATH_LANES) rows[full++] = cell[i];
                else rows[--rest] = cell[i];
        }
    }
}

static void path_work_free(path_work *w)
{
    mf_release(w->heap);
    mf_release(w->keys);
    mf_release(w->places);
    mf_release(w->positions);
    mf_release(w->order);
    mf_release(w->starts);
    mf_release(w->lower);
    mf_release(w->lengths);
    mf_release(w->fields);
    mf_release(w->changed);
}

static int path_work_make(const path_net *net, path_work *w)
{
    int64_t n = net->n, edges = net->starts[n] + 1; /* half of them where the graph is symmetric, as it should be */
    *w = (path_work){
        .heap = mf_alloc(n, sizeof(path_front)),
        .keys = mf_alloc(n, sizeof(double)),
        .places = mf_alloc(n, sizeof(int32_t)),
        .positions = mf_alloc(n, sizeof(int32_t)),
        .order = mf_alloc(n, sizeof(int32_t)),
        .starts = mf_alloc(n + 1, sizeof(int64_t)),
        .lower = mf_alloc(mf_max(edges, n), sizeof(int32_t)),
        .lengths = mf_alloc(edges, sizeof(double)),
        .fields = mf_alloc(n, PATH_LANES * sizeof(double)),
        .changed = mf_alloc(mf_ceil_div(n, 64), sizeof(uint64_t)),
    };
    return w->heap && w->keys && w->places && w->positions && w->order && w->starts && w->lower && w->lengths &&
           w->fields && w->changed;
}

/* The rows of the result in the order in which batches take them. */
static mf_status path_rows(const path_net *net, const int64_t *sources, int64_t m, int64_t *rows)
{
    int64_t *heads = mf_alloc(net->n, sizeof(int64_t)), *next = mf_alloc(m, sizeof(int64_t));
    uint8_t *wanted = mf_alloc(net->n, 1);
    path_work w;
    mf_status status = path_work_make(net, &w) && heads && next && wanted ? MF_OK : MF_NO_MEMORY;
    if (status == MF_OK) {
        memset(wanted, 0, (size_t)net->n);
        for (int64_t i = 0; i < net->n; i++) heads[i] = -1;
        for (int64_t row = m - 1; row >= 0; row--) {
            next[row] = heads[sources[row]];
            heads[sources[row]] = row;
            wanted[sources[row]] = 1;
        }
        path_cells(net, m, heads, next, wanted, rows, &w);
    }
    path_work_free(&w);
    mf_release(heads);
    mf_release(next);
    mf_release(wanted);
    return status;
}

static mf_status mf_shortest_paths(int64_t n, const int64_t *starts, const int32_t *columns, const double *lengths,
                                   const int64_t *sources, int64_t m, double *out, mf_run *run)
{
    path_net net = {n, starts, columns, lengths};
    if (m == 0) return MF_OK;
    int64_t *rows = mf_alloc(m, sizeof(int64_t));
    mf_status status = rows ? path_rows(&net, sources, m, rows) : MF_NO_MEMORY;
    int starved = 0;
    if (status == MF_OK) {
#pragma omp parallel num_threads(run->n_threads) reduction(| : starved)
        {
            path_work w;
            starved = !path_work_make(&net, &w);
            if (starved) mf_stop(run);
#pragma omp for schedule(dynamic)
            for (int64_t batch = 0; batch < mf_ceil_div(m, PATH_LANES); batch++) {
                if (mf_poll(run)) continue;
                int64_t first = batch * PATH_LANES;
                path_batch(&net, sources, rows + first, mf_min(PATH_LANES, m - first), out, &w, run);
            }
            path_work_free(&w);
        }
        status = starved ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
    }
    mf_release(rows);
    return status;
}

#endif
