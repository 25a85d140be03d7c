/* Symbolic analysis for the sparse Cholesky factorisation: elimination tree, column counts, supernodes merged where
 * dense work on a few zeros is cheaper than another front, and the rows of every front. One thread, integers only.
 * Workspace: 12 integers per column, and the graph once more. */
#ifndef MF_CHOLESKY_FRONTS_H
#define MF_CHOLESKY_FRONTS_H

#include "base/common.h"
#include "cholesky/minimum_degree.h"
#include "cholesky/nested_dissection.h"

/* From so many flops per edge on a dissection, which itself takes time, is tried beside minimum degree; at best it
 * takes this much less. */
#define MF_DISSECT_FLOPS MF_LIMIT(1e4, 10.0)
#define MF_DISSECT_GAIN 3.0

enum { MF_WIDEST_FRONT = MF_LIMIT(256, 7) }; /* pivots: beyond, the square part of a panel leaves the cache */

/* Columns are numbered in elimination order, in which every front's pivots are consecutive and follow those of all
 * fronts below it. Front s has pivots first[s] .. first[s + 1] - 1 and rows rows[begin[s]] .. rows[begin[s + 1] - 1],
 * ascending: its pivots, then what they reach. */
typedef struct mf_fronts {
    int32_t n, count;
    int32_t *order;          /* order[k]: the row of the matrix that is column k */
    int32_t *first, *parent; /* parent: the front that takes the update, -1 for a root */
    int64_t *begin;
    int32_t *rows;
    int32_t *child, *sibling; /* children in ascending order, -1 ends */
    /* The matrix below the diagonal, column by column in elimination order: lower_begin, the row of each entry, and
     * which entry of the given matrix it is. */
    int64_t *lower_begin, *lower_source;
    int32_t *lower_row;
    double flops;
    int64_t entries;
} mf_fronts;

/* A symmetric graph without loops. Nodes are those of the matrix, renumbered breadth first: neighbours are near each
 * other in memory, which is most of the speed of all that follows. `name` is a node's row in the matrix, `source` the
 * entry of the matrix that an edge is. */
typedef struct mf_pattern {
    int32_t n;
    int64_t *indptr, *source;
    int32_t *columns, *name;
} mf_pattern;

static void mf_pattern_release(mf_pattern *g)
{
    mf_release(g->indptr);
    mf_release(g->source);
    mf_release(g->columns);
    mf_release(g->name);
}

static mf_status mf_pattern_make(mf_pattern *g, int32_t n, const int64_t *indptr, const int32_t *columns)
{
    int32_t *number = mf_alloc(n, sizeof(int32_t)), made = 0;
    g->n = n;
    g->name = mf_alloc(n, sizeof(int32_t));
    g->indptr = mf_alloc((int64_t)n + 1, sizeof(int64_t));
    g->columns = mf_alloc(indptr[n], sizeof(int32_t));
    g->source = mf_alloc(indptr[n], sizeof(int64_t));
    if (!number || !g->name || !g->indptr || !g->columns || !g->source) {
        mf_release(number);
        return MF_NO_MEMORY;
    }
    for (int32_t i = 0; i < n; i++) number[i] = -1;
    for (int32_t root = 0, done = 0; root < n; root++) {
        if (number[root] >= 0) continue;
        number[root] = made;
        g->name[made++] = root;
        for (; done < made; done++)
            for (int64_t e = indptr[g->name[done]]; e < indptr[g->name[done] + 1]; e++) {
                int32_t j = columns[e];
                if (number[j] >= 0) continue;
                number[j] = made;
                g->name[made++] = j;
            }
    }
    int64_t to = 0;
    for (int32_t k = 0; k < n; k++) {
        int32_t i = g->name[k];
        g->indptr[k] = to;
        for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
            if (columns[e] == i) continue;
            g->columns[to] = number[columns[e]];
            g->source[to++] = e;
        }
    }
    g->indptr[n] = to;
    mf_release(number);
    return MF_OK;
}

/* The elimination tree of the matrix in a given order; a column's parent is its first row below the diagonal. */
static void mf_elimination_tree(int32_t n, const int64_t *indptr, const int32_t *columns, const int32_t *order,
                                const int32_t *position, int32_t *parent, int32_t *ancestor)
{
    for (int32_t k = 0; k < n; k++) {
        parent[k] = ancestor[k] = -1;
        for (int64_t e = indptr[order[k]]; e < indptr[order[k] + 1]; e++)
            for (int32_t j = position[columns[e]], up; j >= 0 && j < k; j = up) {
                up = ancestor[j];
                ancestor[j] = k;
                if (up < 0) parent[j] = k;
            }
    }
}

/* Numbers the nodes of a forest so that children come before parents and subtrees are consecutive. */
static void mf_postorder(int32_t n, const int32_t *parent, int32_t *post, int32_t *head, int32_t *next, int32_t *stack)
{
    int32_t made = 0;
    for (int32_t j = 0; j < n; j++) head[j] = -1;
    for (int32_t j = n - 1; j >= 0; j--)
        if (parent[j] >= 0) {
            next[j] = head[parent[j]];
            head[parent[j]] = j;
        }
    for (int32_t root = 0; root < n; root++) {
        if (parent[root] >= 0) continue;
        int32_t depth = 0;
        stack[0] = root;
        while (depth >= 0) {
            int32_t node = stack[depth], child = head[node];
            if (child < 0) {
                post[made++] = node;
                depth--;
            } else {
                head[node] = next[child];
                stack[++depth] = child;
            }
        }
    }
}

/* Entries of each column of the factor, for columns in postorder (Gilbert, Ng and Peyton 1994). */
static void mf_column_counts(int32_t n, const int64_t *indptr, const int32_t *columns, const int32_t *order,
                             const int32_t *position, const int32_t *parent, int32_t *count, int32_t *work)
{
    int32_t *descendant = work, *highest = work + n, *leaf = work + 2 * (int64_t)n, *ancestor = work + 3 * (int64_t)n;
    for (int32_t j = 0; j < n; j++) descendant[j] = highest[j] = leaf[j] = -1, ancestor[j] = j;
    for (int32_t j = 0; j < n; j++) {
        count[j] = descendant[j] < 0;
        for (int32_t k = j; k >= 0 && descendant[k] < 0; k = parent[k]) descendant[k] = j;
    }
    for (int32_t j = 0; j < n; j++) {
        if (parent[j] >= 0) count[parent[j]]--;
        for (int64_t e = indptr[order[j]]; e < indptr[order[j] + 1]; e++) {
            int32_t i = position[columns[e]];
            if (i <= j || descendant[j] <= highest[i]) continue; /* j is no leaf of row i's subtree */
            highest[i] = descendant[j];
            count[j]++;
            int32_t previous = leaf[i];
            leaf[i] = j;
            if (previous < 0) continue;
            int32_t root = previous;
            while (root != ancestor[root]) root = ancestor[root];
            for (int32_t k = previous, up; k != root; k = up) {
                up = ancestor[k];
                ancestor[k] = root;
            }
            count[root]--;
        }
        if (parent[j] >= 0) ancestor[j] = parent[j];
    }
    for (int32_t j = 0; j < n; j++)
        if (parent[j] >= 0) count[parent[j]] += count[j];
}

/* Puts an order into postorder of its elimination tree, which changes no entry of the factor, and makes position,
 * parent and column counts to go with it. `work` is for five arrays of n + 1. */
static void mf_postorder_columns(int32_t n, const int64_t *indptr, const int32_t *columns, int32_t *order,
                                 int32_t *position, int32_t *parent, int32_t *count, int32_t *work)
{
    int64_t stride = (int64_t)n + 1;
    int32_t *post = work, *tree = work + stride, *w = work + 2 * stride;
    for (int32_t k = 0; k < n; k++) position[order[k]] = k;
    mf_elimination_tree(n, indptr, columns, order, position, tree, w);
    mf_postorder(n, tree, post, w, w + stride, w + 2 * stride);
    for (int32_t k = 0; k < n; k++) w[post[k]] = k;
    for (int32_t k = 0; k < n; k++) {
        parent[k] = tree[post[k]] < 0 ? -1 : w[tree[post[k]]];
        count[k] = order[post[k]];
    }
    memcpy(order, count, (size_t)n * sizeof(int32_t));
    for (int32_t k = 0; k < n; k++) position[order[k]] = k;
    mf_column_counts(n, indptr, columns, order, position, parent, count, work);
}

static double mf_count_flops(int32_t n, const int32_t *count)
{
    double flops = 0;
    for (int32_t k = 0; k < n; k++) flops += mf_front_flops(1, count[k] - 1);
    return flops;
}

/* Measured, in units of about a nanosecond: see mf_front_cost. */
#ifndef MF_COST_FRONT
#define MF_COST_FRONT 300.0
#define MF_COST_ROW 10.0
#define MF_COST_ENTRY 8.0
#define MF_COST_FLOP 0.1
#define MF_COST_UPDATE 1.0
#endif

/* What a front costs, in units of an entry of the factor: its arithmetic, its share of a few solves, its indices, and
 * handing its update to the parent. */
static inline double mf_front_cost(double pivots, double rest)
{
    return MF_COST_FRONT + MF_COST_ROW * (pivots + rest) + MF_COST_ENTRY * pivots * (pivots / 2 + rest) +
           MF_COST_FLOP * mf_front_flops(pivots, rest) + MF_COST_UPDATE * rest * rest;
}

static void mf_fronts_release(mf_fronts *f)
{
    mf_release(f->order);
    mf_release(f->first);
    mf_release(f->parent);
    mf_release(f->begin);
    mf_release(f->rows);
    mf_release(f->child);
    mf_release(f->sibling);
    mf_release(f->lower_begin);
    mf_release(f->lower_source);
    mf_release(f->lower_row);
}

/* Supernodes of columns in postorder: set[s] .. set[s + 1] - 1 have one pattern below. Returns how many. */
static int32_t mf_supernodes(int32_t n, const int32_t *parent, const int32_t *count, int32_t *set, int32_t *owner)
{
    int32_t made = 0;
    for (int32_t j = 0; j < n; j++) {
        int joins = j > 0 && parent[j - 1] == j && count[j - 1] == count[j] + 1 && j - set[made - 1] < MF_WIDEST_FRONT;
        if (!joins) set[made++] = j;
        owner[j] = made - 1;
    }
    set[made] = n;
    return made;
}

/* Merges children into parents where that is cheaper. Per supernode: pivots and rest of the front it now heads, the
 * front that took it in (`into`, -1 for heads) and, chained by `follows`, the supernodes of a front in order. */
static void mf_merge_supernodes(int32_t count, const int32_t *up, int32_t *pivots, int32_t *rest, int32_t *into,
                                int32_t *begins, int32_t *ends, int32_t *follows, int32_t *child, int32_t *sibling)
{
    for (int32_t s = 0; s < count; s++) into[s] = follows[s] = child[s] = -1, begins[s] = ends[s] = s;
    for (int32_t s = 0; s < count; s++) {
        for (int32_t c = child[s]; c >= 0; c = sibling[c]) {
            double apart = mf_front_cost(pivots[c], rest[c]) + mf_front_cost(pivots[s], rest[s]);
            if (pivots[c] + pivots[s] > MF_WIDEST_FRONT) continue;
            if (mf_front_cost(pivots[c] + pivots[s], rest[s]) > apart) continue;
            pivots[s] += pivots[c];
            into[c] = s;
            follows[ends[c]] = begins[s];
            begins[s] = begins[c];
        }
        if (up[s] >= 0) {
            sibling[s] = child[up[s]]; /* the last child comes first: it has most in common with the parent */
            child[up[s]] = s;
        }
    }
}

/* The better of two orders, in postorder, with its position, parent and column counts; f->flops says what it takes.
 * *feasible: whether that is at most max_flops. `work` is for five arrays of n + 1. */
static mf_status mf_choose_order(mf_fronts *f, const mf_pattern *g, double max_flops, int32_t *position,
                                 int32_t *parent, int32_t *count, int32_t *work, int *feasible, mf_run *run)
{
    int32_t n = g->n, *other = NULL, late;
    int64_t stride = (int64_t)n + 1;
    double many = MF_DISSECT_FLOPS * (double)g->indptr[n], flops;
    double limit = max_flops > many ? MF_DISSECT_GAIN * max_flops : max_flops;
    mf_status status = mf_minimum_degree(n, g->indptr, g->columns, NULL, 0, limit, f->order, &f->flops, run);
    *feasible = 0;
    if (status != MF_OK || f->flops > limit) return status;
    mf_postorder_columns(n, g->indptr, g->columns, f->order, position, parent, count, work);
    f->flops = mf_count_flops(n, count);
    if (f->flops > many) {
        other = mf_alloc(2 * stride, sizeof(int32_t));
        status = other ? mf_dissect(n, g->indptr, g->columns, other, &late, run) : MF_NO_MEMORY;
        int32_t *order = other ? other + stride : NULL;
        if (status == MF_OK)
            status = mf_minimum_degree(n, g->indptr, g->columns, other, late, INFINITY, order, &flops, run);
        if (status == MF_OK) {
            mf_postorder_columns(n, g->indptr, g->columns, order, position, parent, count, work);
            flops = mf_count_flops(n, count);
            if (flops < f->flops) {
                memcpy(f->order, order, (size_t)n * sizeof(int32_t));
                f->flops = flops;
            } else mf_postorder_columns(n, g->indptr, g->columns, f->order, position, parent, count, work);
        }
        mf_release(other);
    }
    *feasible = status == MF_OK && f->flops <= max_flops;
    return status;
}

/* Turns supernodes into fronts and renumbers the columns, f->order, to match. Heads keep the order of the supernodes,
 * so a front still follows all fronts below it. `front` and `moved` are work. */
static mf_status mf_lay_out_fronts(mf_fronts *f, int32_t sets, const int32_t *set, const int32_t *up,
                                   const int32_t *pivots, const int32_t *rest, const int32_t *into,
                                   const int32_t *begins, const int32_t *follows, int32_t *front, int32_t *moved)
{
    int32_t fronts = 0, at = 0;
    for (int32_t s = 0; s < sets; s++) fronts += into[s] < 0;
    f->count = fronts;
    f->first = mf_alloc((int64_t)fronts + 1, sizeof(int32_t));
    f->parent = mf_alloc(fronts, sizeof(int32_t));
    f->begin = mf_alloc((int64_t)fronts + 1, sizeof(int64_t));
    f->child = mf_alloc(fronts, sizeof(int32_t));
    f->sibling = mf_alloc(fronts, sizeof(int32_t));
    if (!f->first || !f->parent || !f->begin || !f->child || !f->sibling) return MF_NO_MEMORY;
    fronts = 0;
    f->begin[0] = 0;
    for (int32_t s = 0; s < sets; s++) {
        if (into[s] >= 0) continue;
        f->first[fronts] = at;
        f->begin[fronts + 1] = f->begin[fronts] + pivots[s] + rest[s];
        for (int32_t t = begins[s]; t >= 0; t = follows[t]) {
            front[t] = fronts;
            for (int32_t k = set[t]; k < set[t + 1]; k++) moved[at++] = f->order[k];
        }
        fronts++;
    }
    f->first[fronts] = f->n;
    memcpy(f->order, moved, (size_t)f->n * sizeof(int32_t));
    for (int32_t s = 0; s < sets; s++)
        if (into[s] < 0) f->parent[front[s]] = up[s] < 0 ? -1 : front[up[s]];
    for (int32_t s = 0; s < fronts; s++) f->child[s] = -1;
    for (int32_t s = fronts - 1; s >= 0; s--) {
        f->sibling[s] = -1;
        if (f->parent[s] < 0) continue;
        f->sibling[s] = f->child[f->parent[s]];
        f->child[f->parent[s]] = s;
    }
    return MF_OK;
}

/* The rows of every front, and the matrix below the diagonal. Row i reaches the fronts on the way up from each of its
 * entries: filled row by row, the lists come out sorted. `home` and `seen` are work. */
static mf_status mf_fill_fronts(mf_fronts *f, const mf_pattern *g, const int32_t *position, int32_t *home,
                                int32_t *seen)
{
    int64_t below = 0, edges = g->indptr[f->n];
    int64_t *end = mf_alloc(f->count, sizeof(int64_t));
    f->rows = mf_alloc(f->begin[f->count], sizeof(int32_t));
    f->lower_begin = mf_alloc((int64_t)f->n + 1, sizeof(int64_t));
    f->lower_row = mf_alloc(edges / 2, sizeof(int32_t));
    f->lower_source = mf_alloc(edges / 2, sizeof(int64_t));
    if (!end || !f->rows || !f->lower_begin || !f->lower_row || !f->lower_source) {
        mf_release(end);
        return MF_NO_MEMORY;
    }
    for (int32_t s = 0; s < f->count; s++) {
        end[s] = f->begin[s];
        seen[s] = -1;
        for (int32_t k = f->first[s]; k < f->first[s + 1]; k++) home[k] = s;
    }
    for (int32_t i = 0; i < f->n; i++) {
        int32_t node = f->order[i];
        f->rows[end[home[i]]++] = i;
        f->lower_begin[i] = below;
        for (int64_t e = g->indptr[node]; e < g->indptr[node + 1]; e++) {
            int32_t j = position[g->columns[e]];
            if (j > i) {
                f->lower_row[below] = j;
                f->lower_source[below++] = g->source[e];
                continue;
            }
            for (int32_t s = home[j]; s != home[i] && seen[s] != i; s = f->parent[s]) {
                seen[s] = i;
                f->rows[end[s]++] = i;
            }
        }
    }
    f->lower_begin[f->n] = below;
    mf_release(end);
    return MF_OK;
}

/* Order, fronts and their rows. *feasible is 0, and the fronts are not made, where the factor takes more than
 * max_flops. */
static mf_status mf_fronts_make(mf_fronts *f, const mf_pattern *g, double max_flops, int *feasible, mf_run *run)
{
    enum { ARRAYS = 12 };
    int32_t n = f->n = g->n, *w[ARRAYS];
    int64_t stride = (int64_t)n + 1;
    f->order = mf_alloc(n, sizeof(int32_t));
    int32_t *work = mf_alloc(ARRAYS * stride, sizeof(int32_t));
    mf_status status = MF_NO_MEMORY;
    *feasible = 0;
    if (!f->order || !work) goto done;
    for (int a = 0; a < ARRAYS; a++) w[a] = work + a * stride;

    int32_t *parent = w[0], *count = w[1], *position = w[11];
    status = mf_choose_order(f, g, max_flops, position, parent, count, w[2], feasible, run);
    if (status != MF_OK || !*feasible) goto done;

    int32_t *set = w[2], *owner = w[3], *up = w[4], *pivots = w[5], *rest = w[6], *into = w[7];
    int32_t *begins = w[8], *ends = w[9], *follows = w[10];
    int32_t sets = mf_supernodes(n, parent, count, set, owner);
    for (int32_t s = 0; s < sets; s++) {
        int32_t last = set[s + 1] - 1;
        up[s] = parent[last] < 0 ? -1 : owner[parent[last]];
        pivots[s] = set[s + 1] - set[s];
        rest[s] = count[last] - 1;
    }
    mf_merge_supernodes(sets, up, pivots, rest, into, begins, ends, follows, w[0], w[1]);
    status = mf_lay_out_fronts(f, sets, set, up, pivots, rest, into, begins, follows, w[0], w[1]);
    if (status != MF_OK) goto done;
    for (int32_t k = 0; k < n; k++) position[f->order[k]] = k;
    status = mf_fill_fronts(f, g, position, w[2], w[3]);
    for (int32_t k = 0; k < n; k++) f->order[k] = g->name[f->order[k]];

    f->flops = 0;
    f->entries = 0;
    for (int32_t s = 0; s < f->count; s++) {
        int64_t own = f->first[s + 1] - f->first[s], beyond = f->begin[s + 1] - f->begin[s] - own;
        f->flops += mf_front_flops((double)own, (double)beyond);
        f->entries += own * (own + 1) / 2 + own * beyond;
    }
done:
    mf_release(work);
    return status;
}

#endif
