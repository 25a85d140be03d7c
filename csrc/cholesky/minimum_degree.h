/* An elimination order for a sparse symmetric matrix that keeps its factor sparse: approximate minimum degree on a
 * quotient graph, after Amestoy, Davis and Duff (1996), with element absorption, mass elimination and supervariables.
 * One thread, integers only. Workspace: about 11 integers per column and 1.25 times the entries. */
#ifndef MF_CHOLESKY_MINIMUM_DEGREE_H
#define MF_CHOLESKY_MINIMUM_DEGREE_H

#include "base/common.h"

/* The quotient graph. A node is a variable or, once eliminated, an element. The list of a variable is its elements,
 * then its variables; that of an element is the variables of its front. Absorbed nodes have no list. */
typedef struct mf_quotient {
    int32_t n, remaining; /* columns not yet eliminated */
    int32_t early;        /* of them, those that are to be eliminated here */
    int32_t lowest;       /* no node has a degree below */
    int32_t flag, largest;        /* marks that count lie in [flag, flag + largest]: the largest front so far */
    int64_t used, capacity;
    int32_t *lists;
    int64_t *begin;
    int32_t *length, *elements; /* of the list, and of its first part */
    int32_t *weight;            /* columns a node stands for; 0: absorbed; negative: in the front being built */
    int32_t *degree, *mark, *next, *previous, *head, *bucket, *hash;
    int32_t *into; /* the node that absorbed this one, -1 for none */
    unsigned char *is_element, *is_late; /* late: no pivot here, for the caller eliminates it after all others */
    void *memory;
} mf_quotient;

static mf_status mf_quotient_make(mf_quotient *q, int32_t n, const int64_t *indptr, const int32_t *columns)
{
    enum { ARRAYS = 11 };
    memset(q, 0, sizeof *q);
    q->n = q->remaining = n;
    q->capacity = indptr[n] + indptr[n] / 4 + n + 1;
    q->lists = mf_alloc(q->capacity, sizeof(int32_t));
    q->begin = mf_alloc(n, sizeof(int64_t));
    q->is_element = calloc((size_t)n + 1, 1);
    q->is_late = calloc((size_t)n + 1, 1);
    int32_t *part = q->memory = mf_alloc(ARRAYS * ((int64_t)n + 1), sizeof(int32_t));
    if (!q->lists || !q->begin || !q->is_element || !q->is_late || !part) return MF_NO_MEMORY;
    int32_t **arrays[ARRAYS] = {&q->length, &q->elements, &q->weight, &q->degree, &q->mark, &q->next,
                                &q->previous, &q->head, &q->bucket, &q->hash, &q->into};
    for (int a = 0; a < ARRAYS; a++, part += n + 1) *arrays[a] = part;
    for (int32_t i = 0; i < n; i++) {
        q->begin[i] = q->used;
        for (int64_t e = indptr[i]; e < indptr[i + 1]; e++)
            if (columns[e] != i) q->lists[q->used++] = columns[e];
        q->length[i] = q->degree[i] = (int32_t)(q->used - q->begin[i]);
        q->elements[i] = 0, q->weight[i] = 1, q->mark[i] = 1, q->head[i] = q->bucket[i] = q->into[i] = -1;
    }
    q->flag = 2;
    return MF_OK;
}

static void mf_quotient_release(mf_quotient *q)
{
    mf_release(q->lists);
    mf_release(q->begin);
    mf_release(q->memory);
    free(q->is_element);
    free(q->is_late);
}

static inline void mf_quotient_insert(mf_quotient *q, int32_t i)
{
    if (q->is_late[i]) return;
    int32_t degree = q->degree[i], first = q->head[degree];
    q->next[i] = first, q->previous[i] = -1;
    if (first >= 0) q->previous[first] = i;
    q->head[degree] = i;
    if (degree < q->lowest) q->lowest = degree;
}

static inline void mf_quotient_remove(mf_quotient *q, int32_t i)
{
    if (q->is_late[i]) return;
    int32_t before = q->previous[i], after = q->next[i];
    if (after >= 0) q->previous[after] = before;
    if (before >= 0) q->next[before] = after;
    else q->head[q->degree[i]] = after;
}

/* Fresh marks: none is at q->flag or above afterwards. A mark of 0 says absorbed and stays. */
static inline void mf_quotient_fresh(mf_quotient *q, int32_t step)
{
    if (q->flag < INT32_MAX / 2 - step) {
        q->flag += step;
        return;
    }
    for (int32_t i = 0; i < q->n; i++) q->mark[i] = q->mark[i] != 0;
    q->flag = 2;
}

/* Room for `extra` more entries: lists of nodes that live are moved together, then the memory grows if it must. */
static mf_status mf_quotient_reserve(mf_quotient *q, int64_t extra)
{
    if (q->used + extra <= q->capacity) return MF_OK;
    int64_t capacity = q->capacity, live = 0, to = 0;
    for (int32_t i = 0; i < q->n; i++) live += q->into[i] < 0 ? q->length[i] : 0;
    if (live + extra > capacity - capacity / 8) capacity = live + extra + capacity / 2;
    int32_t *lists = mf_alloc(capacity, sizeof(int32_t));
    if (!lists) return MF_NO_MEMORY;
    for (int32_t i = 0; i < q->n; i++) {
        if (q->into[i] >= 0) continue;
        memcpy(lists + to, q->lists + q->begin[i], (size_t)q->length[i] * sizeof(int32_t));
        q->begin[i] = to;
        to += q->length[i];
    }
    mf_release(q->lists);
    q->lists = lists, q->used = to, q->capacity = capacity;
    return MF_OK;
}

/* Gathers variables that live from a list into the front that ends at *end; returns their weight. */
static inline int32_t mf_quotient_gather(mf_quotient *q, const int32_t *list, int64_t count, int64_t *end)
{
    int32_t gathered = 0;
    int64_t to = *end;
    for (int64_t e = 0; e < count; e++) {
        int32_t i = list[e], weight = q->weight[i];
        if (weight <= 0) continue;
        gathered += weight;
        q->weight[i] = -weight;
        q->lists[to++] = i;
        mf_quotient_remove(q, i);
    }
    *end = to;
    return gathered;
}

static inline void mf_quotient_absorb(mf_quotient *q, int32_t element, int32_t into)
{
    q->into[element] = into;
    q->mark[element] = 0;
}

/* Merges the variables of the new front that have equal lists; those with one hash stand in one bucket. */
static void mf_quotient_merge(mf_quotient *q, const int32_t *front, int64_t count)
{
    for (int64_t f = 0; f < count; f++) {
        if (q->weight[front[f]] >= 0) continue;
        int32_t i = q->bucket[q->hash[front[f]]];
        q->bucket[q->hash[front[f]]] = -1;
        for (; i >= 0 && q->next[i] >= 0; i = q->next[i]) {
            int32_t length = q->length[i], elements = q->elements[i], last = i;
            const int32_t *list = q->lists + q->begin[i];
            for (int32_t e = 1; e < length; e++) q->mark[list[e]] = q->flag; /* the first is the new element in all */
            for (int32_t j = q->next[i]; j >= 0; j = q->next[j]) {
                int equal = q->length[j] == length && q->elements[j] == elements && q->is_late[i] == q->is_late[j];
                const int32_t *other = q->lists + q->begin[j];
                for (int32_t e = 1; equal && e < length; e++) equal = q->mark[other[e]] == q->flag;
                if (equal) {
                    q->weight[i] += q->weight[j];
                    q->weight[j] = 0;
                    q->into[j] = i;
                    q->next[last] = q->next[j];
                } else last = j;
            }
            mf_quotient_fresh(q, 1);
        }
    }
}

/* Eliminates a variable: it becomes the element of its front. Returns the size of the front beyond its own columns. */
static mf_status mf_quotient_eliminate(mf_quotient *q, int32_t pivot, int32_t *front_size)
{
    int32_t own = q->elements[pivot], weight = q->weight[pivot], size = 0;
    mf_quotient_remove(q, pivot);
    q->weight[pivot] = -weight;
    q->remaining -= weight;
    q->early -= weight;

    int64_t bound = q->length[pivot], at, end;
    for (int32_t e = 0; e < own; e++) bound += q->length[q->lists[q->begin[pivot] + e]];
    if (own) {
        mf_status status = mf_quotient_reserve(q, mf_min(bound, q->remaining));
        if (status != MF_OK) return status;
        at = end = q->used;
        for (int32_t e = 0; e < own; e++) {
            int32_t element = q->lists[q->begin[pivot] + e];
            size += mf_quotient_gather(q, q->lists + q->begin[element], q->length[element], &end);
            mf_quotient_absorb(q, element, pivot);
        }
        size += mf_quotient_gather(q, q->lists + q->begin[pivot] + own, q->length[pivot] - own, &end);
    } else {
        at = end = q->begin[pivot];
        size = mf_quotient_gather(q, q->lists + at, q->length[pivot], &end);
    }
    q->is_element[pivot] = 1;
    q->begin[pivot] = at;
    q->length[pivot] = (int32_t)(end - at);
    q->degree[pivot] = size;
    mf_quotient_fresh(q, 1);

    /* mark[e] - flag becomes the weight of element e outside the new front. */
    int32_t *lists = q->lists, *mark = q->mark, flag = q->flag;
    for (int64_t f = at; f < end; f++) {
        int32_t i = lists[f], w = -q->weight[i];
        for (int64_t e = q->begin[i]; e < q->begin[i] + q->elements[i]; e++) {
            int32_t element = lists[e];
            if (mark[element] >= flag) mark[element] -= w;
            else if (mark[element]) mark[element] = q->degree[element] + flag - w;
        }
    }

    /* New lists and degree bounds of the front's variables; elements and variables it covers go. */
    if (size > q->largest) q->largest = size;
    for (int64_t f = at; f < end; f++) {
        int32_t i = lists[f], degree = 0, kept;
        int64_t begin = q->begin[i], to = begin, middle = begin + q->elements[i], stop = begin + q->length[i];
        uint32_t hash = 0;
        for (int64_t e = begin; e < middle; e++) {
            int32_t element = lists[e];
            if (!mark[element]) continue;
            int32_t outside = mark[element] - flag;
            if (outside > 0) {
                degree += outside;
                lists[to++] = element;
                hash += (uint32_t)element;
            } else mf_quotient_absorb(q, element, pivot);
        }
        kept = (int32_t)(to - begin);
        for (int64_t e = middle; e < stop; e++) {
            int32_t j = lists[e];
            if (q->weight[j] <= 0) continue;
            degree += q->weight[j];
            lists[to++] = j;
            hash += (uint32_t)j;
        }
        if (to == begin && !q->is_late[i]) { /* nothing outside the front: eliminated with the pivot */
            q->into[i] = pivot;
            size += q->weight[i];
            q->remaining += q->weight[i];
            q->early += q->weight[i];
            q->weight[pivot] += q->weight[i];
            q->weight[i] = 0;
            continue;
        }
        if (degree < q->degree[i]) q->degree[i] = degree;
        lists[to] = lists[begin + kept];
        lists[begin + kept] = lists[begin];
        lists[begin] = pivot;
        q->elements[i] = kept + 1;
        q->length[i] = (int32_t)(to - begin) + 1;
        q->hash[i] = (int32_t)(hash % (uint32_t)q->n);
        q->next[i] = q->bucket[q->hash[i]];
        q->bucket[q->hash[i]] = i;
    }
    q->degree[pivot] = size;
    mf_quotient_fresh(q, q->largest + 1);
    mf_quotient_merge(q, lists + at, end - at);

    int64_t to = at;
    for (int64_t f = at; f < end; f++) {
        int32_t i = lists[f], w = -q->weight[i];
        if (w <= 0) continue;
        q->weight[i] = w;
        int64_t degree = mf_min((int64_t)q->degree[i] + size - w, (int64_t)q->remaining - w);
        q->degree[i] = (int32_t)degree;
        mf_quotient_insert(q, i);
        lists[to++] = i;
    }
    q->weight[pivot] = -q->weight[pivot];
    q->length[pivot] = (int32_t)(to - at);
    if (own) q->used = to;
    *front_size = size;
    return MF_OK;
}

/* Flops of eliminating `pivots` columns of a front with `rest` rows beyond them. */
static inline double mf_front_flops(double pivots, double rest)
{
    return pivots * (rest * rest + rest * (pivots + 1) + (pivots + 1) * (2 * pivots + 1) / 6);
}

/* order[k] is the column to eliminate k-th; the last ones are late[0], late[1], ..., as they come. Ends early with
 * *flops above max_flops once that many are certain. */
static mf_status mf_minimum_degree(int32_t n, const int64_t *indptr, const int32_t *columns, const int32_t *late,
                                   int32_t late_count, double max_flops, int32_t *order, double *flops, mf_run *run)
{
    mf_quotient quotient, *q = &quotient;
    int32_t *pivots = mf_alloc((int64_t)n, sizeof(int32_t)), *count = mf_alloc((int64_t)n + 1, sizeof(int32_t));
    mf_status status = mf_quotient_make(q, n, indptr, columns);
    if (!pivots || !count) status = MF_NO_MEMORY;
    if (status != MF_OK) goto done;

    /* Nearly full rows go last and count nowhere: they would join every front. */
    int32_t dense = (int32_t)fmin(fmax(16, 10 * sqrt((double)n)), (double)n - 1), made = 0, last = n - late_count;
    for (int32_t k = 0; k < late_count; k++) {
        q->is_late[late[k]] = 1;
        order[last + k] = late[k];
    }
    for (int32_t i = 0; i < n; i++) {
        if (q->degree[i] <= dense || q->is_late[i]) continue;
        q->weight[i] = 0;
        q->remaining--;
        last--;
    }
    q->lowest = n;
    for (int32_t i = n - 1; i >= 0; i--)
        if (q->weight[i]) mf_quotient_insert(q, i);

    q->early = last;
    double dense_rows = n - late_count - last;
    *flops = mf_front_flops(dense_rows, 0);
    while (q->early > 0 && *flops <= max_flops) {
        while (q->head[q->lowest] < 0) q->lowest++;
        int32_t pivot = q->head[q->lowest], rest;
        status = mf_quotient_eliminate(q, pivot, &rest);
        if (status == MF_OK && made % 64 == 0 && mf_poll(run)) status = MF_INTERRUPTED;
        if (status != MF_OK) goto done;
        *flops += mf_front_flops(q->weight[pivot], rest + dense_rows);
        pivots[made++] = pivot;
    }
    if (*flops > max_flops) goto done;

    /* Columns follow the pivot that took them in, dense rows follow all. */
    int32_t *rank = q->degree, *start = count;
    for (int32_t k = 0; k < made; k++) rank[pivots[k]] = k;
    memset(start, 0, ((size_t)made + 1) * sizeof(int32_t));
    for (int32_t i = 0; i < n; i++) {
        int32_t root = i;
        q->hash[i] = -1;
        if (q->is_late[i]) continue;
        if (!q->weight[i] && q->into[i] < 0) {
            order[last++] = i;
            continue;
        }
        while (!q->is_element[root]) root = q->into[root];
        for (int32_t j = i, up; !q->is_element[j]; j = up) {
            up = q->into[j];
            q->into[j] = root;
        }
        q->hash[i] = rank[root];
        start[rank[root] + 1]++;
    }
    for (int32_t k = 0; k < made; k++) start[k + 1] += start[k];
    for (int32_t i = 0; i < n; i++)
        if (q->hash[i] >= 0) order[start[q->hash[i]]++] = i;
done:
    mf_quotient_release(q);
    mf_release(pivots);
    mf_release(count);
    return status;
}

#endif
