/* Separators for a large graph: halves it again and again by a smooth field between two far ends, until the parts are
 * small. The separators are to be eliminated last, the first one found last of all. One thread; the field is summed in
 * float, in the order of the edges, and decides only the order of elimination.
 * Workspace: a copy of the graph and about 50 bytes per node. */
#ifndef MF_CHOLESKY_NESTED_DISSECTION_H
#define MF_CHOLESKY_NESTED_DISSECTION_H

#include "base/common.h"

enum {
    MF_SMALLEST_PART = MF_LIMIT(400, 8), /* nodes: not halved any more */
    MF_SMOOTHINGS = 8,      /* sweeps that turn the distances, full of ties, into a smooth field */
    MF_REFINEMENTS = 6      /* sweeps that make a separator smaller */
};

/* The graph of one part, its nodes numbered from 0, and what halving it needs. */
typedef struct mf_part {
    int32_t size;
    int64_t *indptr;
    int32_t *columns, *queue, *near, *far;
    float *field, *smoothed, *sorted;
    signed char *side; /* 0 and 1, or 2: separator */
} mf_part;

static void mf_part_release(mf_part *p)
{
    mf_release(p->indptr);
    mf_release(p->columns);
    mf_release(p->queue);
    mf_release(p->near);
    mf_release(p->far);
    mf_release(p->field);
    mf_release(p->smoothed);
    mf_release(p->sorted);
    mf_release(p->side);
}

static int mf_part_make(mf_part *p, int32_t n, int64_t edges)
{
    p->indptr = mf_alloc((int64_t)n + 1, sizeof(int64_t));
    p->columns = mf_alloc(edges, sizeof(int32_t));
    p->queue = mf_alloc(n, sizeof(int32_t));
    p->near = mf_alloc(n, sizeof(int32_t));
    p->far = mf_alloc(n, sizeof(int32_t));
    p->field = mf_alloc(n, sizeof(float));
    p->smoothed = mf_alloc(n, sizeof(float));
    p->sorted = mf_alloc(n, sizeof(float));
    p->side = mf_alloc(n, 1);
    return p->indptr && p->columns && p->queue && p->near && p->far && p->field && p->smoothed && p->sorted && p->side;
}

/* Steps from `start` to every node, -1 where there is no way; returns how many it reaches, p->queue has them. */
static int32_t mf_part_distances(mf_part *p, int32_t start, int32_t *distance)
{
    int32_t reached = 1;
    for (int32_t i = 0; i < p->size; i++) distance[i] = -1;
    distance[start] = 0;
    p->queue[0] = start;
    for (int32_t done = 0; done < reached; done++) {
        int32_t i = p->queue[done];
        for (int64_t e = p->indptr[i]; e < p->indptr[i + 1]; e++) {
            int32_t j = p->columns[e];
            if (distance[j] >= 0) continue;
            distance[j] = distance[i] + 1;
            p->queue[reached++] = j;
        }
    }
    return reached;
}

/* The value of rank `rank` among `count`; shuffles them. */
static float mf_select_rank(float *values, int32_t count, int32_t rank)
{
    int32_t low = 0, high = count - 1;
    while (low < high) {
        float pivot = values[low + (high - low) / 2];
        int32_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot) i++;
            while (values[j] > pivot) j--;
            if (i > j) break;
            float swapped = values[i];
            values[i++] = values[j];
            values[j--] = swapped;
        }
        if (rank <= j) high = j;
        else if (rank >= i) low = i;
        else break;
    }
    return values[rank];
}

/* Moves nodes out of the separator where that takes fewer into it from the other side. */
static void mf_part_refine(mf_part *p, int32_t sizes[3])
{
    int32_t *separator = p->queue, count = 0;
    for (int32_t i = 0; i < p->size; i++)
        if (p->side[i] == 2) separator[count++] = i;
    for (int sweep = 0; sweep < MF_REFINEMENTS; sweep++) {
        int moved = 0;
        for (int32_t f = 0; f < count; f++) {
            int32_t i = separator[f], touching[2] = {0, 0};
            if (p->side[i] != 2) continue;
            for (int64_t e = p->indptr[i]; e < p->indptr[i + 1]; e++)
                if (p->side[p->columns[e]] < 2) touching[p->side[p->columns[e]]]++;
            int smaller = sizes[1] < sizes[0], to = touching[0] == touching[1] ? smaller : touching[1] > touching[0];
            int32_t taken = touching[!to];
            if (taken > 1 || (taken == 1 && to != smaller)) continue;
            if (sizes[to] > (int64_t)p->size * 3 / 5) continue;
            p->side[i] = (signed char)to;
            sizes[to]++, sizes[2]--, moved++;
            for (int64_t e = p->indptr[i]; taken && e < p->indptr[i + 1]; e++) {
                int32_t j = p->columns[e];
                if (p->side[j] != !to) continue;
                p->side[j] = 2;
                sizes[!to]--, sizes[2]++;
                separator[f] = j; /* takes the place of the node that left */
                taken = 0;
            }
        }
        if (!moved) break;
    }
}

/* Halves a part: fills p->side and sizes. False where it has no small separator. */
static int mf_part_halve(mf_part *p, int32_t sizes[3])
{
    int32_t n = p->size, reached = mf_part_distances(p, 0, p->near);
    sizes[0] = sizes[1] = sizes[2] = 0;
    if (reached < n) {
        for (int32_t i = 0; i < n; i++) p->side[i] = p->near[i] < 0;
        sizes[0] = reached, sizes[1] = n - reached;
        return 1;
    }
    int32_t end = p->queue[n - 1];
    mf_part_distances(p, end, p->near);
    mf_part_distances(p, p->queue[n - 1], p->far);
    for (int32_t i = 0; i < n; i++) p->field[i] = (float)(p->near[i] - p->far[i]);
    for (int sweep = 0; sweep < MF_SMOOTHINGS; sweep++) {
        for (int32_t i = 0; i < n; i++) {
            float sum = p->field[i];
            for (int64_t e = p->indptr[i]; e < p->indptr[i + 1]; e++) sum += p->field[p->columns[e]];
            p->smoothed[i] = sum / (float)(p->indptr[i + 1] - p->indptr[i] + 1);
        }
        float *swapped = p->field;
        p->field = p->smoothed;
        p->smoothed = swapped;
    }
    memcpy(p->sorted, p->field, (size_t)n * sizeof(float));
    float middle = mf_select_rank(p->sorted, n, n / 2);
    for (int32_t i = 0; i < n; i++) p->side[i] = p->field[i] >= middle;

    /* The separator: the nodes of one side that touch the other, from the side that has fewer of them. */
    int32_t touching[2] = {0, 0};
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < n; i++) {
            int side = p->side[i], touches = 0;
            if (pass && side != (touching[1] < touching[0])) continue;
            for (int64_t e = p->indptr[i]; e < p->indptr[i + 1] && !touches; e++)
                touches = p->side[p->columns[e]] == !side;
            if (pass == 0) touching[side] += touches;
            else if (touches) p->side[i] = 2;
        }
    for (int32_t i = 0; i < n; i++) sizes[p->side[i]]++;
    mf_part_refine(p, sizes);
    return mf_min(sizes[0], sizes[1]) > n / 5 && sizes[2] < n / 4;
}

/* Nodes of all separators, *count of them, in the order in which to eliminate them after all others. */
static mf_status mf_dissect(int32_t n, const int64_t *indptr, const int32_t *columns, int32_t *separators,
                            int32_t *count, mf_run *run)
{
    mf_part part = {0}, *p = &part;
    int32_t *nodes = mf_alloc(n, sizeof(int32_t)), *scratch = mf_alloc(n, sizeof(int32_t));
    int32_t *number = mf_alloc(n, sizeof(int32_t)), *stack = mf_alloc(2 * ((int64_t)n + 2), sizeof(int32_t));
    int32_t depth = 0, last = n;
    mf_status status = MF_NO_MEMORY;
    if (!mf_part_make(p, n, indptr[n]) || !nodes || !scratch || !number || !stack) goto done;
    status = MF_OK;
    for (int32_t i = 0; i < n; i++) nodes[i] = i, number[i] = -1;
    stack[0] = 0, stack[1] = n, depth = 1;
    while (depth > 0) {
        int32_t begin = stack[2 * --depth], end = stack[2 * depth + 1], sizes[3];
        p->size = end - begin;
        if (p->size <= MF_SMALLEST_PART) continue;
        if (mf_poll(run)) {
            status = MF_INTERRUPTED;
            goto done;
        }
        int64_t edges = 0;
        for (int32_t i = 0; i < p->size; i++) number[nodes[begin + i]] = i;
        for (int32_t i = 0; i < p->size; i++) {
            int32_t node = nodes[begin + i];
            p->indptr[i] = edges;
            for (int64_t e = indptr[node]; e < indptr[node + 1]; e++)
                if (number[columns[e]] >= 0) p->columns[edges++] = number[columns[e]];
        }
        p->indptr[p->size] = edges;
        int halved = mf_part_halve(p, sizes);
        for (int32_t i = 0; i < p->size; i++) number[nodes[begin + i]] = -1;
        if (!halved) continue;
        int32_t to[2] = {0, sizes[0]};
        memcpy(scratch, nodes + begin, (size_t)p->size * sizeof(int32_t));
        for (int32_t i = p->size - 1; i >= 0; i--)
            if (p->side[i] == 2) separators[--last] = scratch[i];
        for (int32_t i = 0; i < p->size; i++)
            if (p->side[i] < 2) nodes[begin + to[p->side[i]]++] = scratch[i];
        stack[2 * depth] = begin, stack[2 * depth + 1] = begin + sizes[0];
        depth++;
        stack[2 * depth] = begin + sizes[0], stack[2 * depth + 1] = begin + sizes[0] + sizes[1];
        depth++;
    }
    *count = n - last;
    memmove(separators, separators + last, (size_t)*count * sizeof(int32_t));
done:
    mf_part_release(p);
    mf_release(nodes);
    mf_release(scratch);
    mf_release(number);
    mf_release(stack);
    return status;
}

#endif
