/* A hierarchy of ever smaller graph Laplacians by smoothed aggregation (Vanek, Mandel, Brezina 1996). Level 0 holds
 * the nodes in breadth-first order: neighbours lie close in memory. Prolongators have row sums of 1, so every level is
 * a Laplacian with row sums of 0, stored without its diagonal.
 * Accumulator: double, by one thread in the order of the entries. Workspace: a dense row for products of sparse
 * matrices. */
#ifndef MF_MULTILEVEL_HIERARCHY_H
#define MF_MULTILEVEL_HIERARCHY_H

#include "base/common.h"
#include "base/simd.h"
#include "multilevel/quads.h"
#include "multilevel/sparse_matrix.h"
#include "multilevel/sparse_products.h"

/* Found on neighbour graphs of Swiss rolls (5,000 to 200,000 points), digits and MNIST: the least time to solve. */
#define MF_STRENGTH 0.1     /* edges below this share of a node's heaviest one do not shape its prolongation */
#define MF_TRUNCATE 0.05    /* entries of the prolongator below this cost fill and bring little */
#define MF_FILL 3.0         /* coarse levels may have this many times the entries of the finest */
#define MF_SPREAD 4.0       /* the smoother works on the upper 3/4 of the spectrum */
#define MF_BOTTOM_SPREAD 40 /* and more widely where the hierarchy ends early */
enum { MF_MOST_LEVELS = 32, MF_DENSE_LEVEL = MF_LIMIT(96, 12), MF_POWER_STEPS = 6 };
enum { MF_SMOOTHING = 2, MF_BOTTOM_STEPS = 10 };

typedef struct mf_level {
    int64_t n;
    mf_sparse graph;          /* weights: minus the entries of the Laplacian off its diagonal */
    mf_sparse prolong;        /* to this level from the next coarser one; empty on the coarsest */
    mf_sparse restriction;    /* its transpose */
    double *mass;             /* the lumped D of the pencil */
    double *inverse_diagonal; /* of the Laplacian; 0 where it is out of range */
    double *inverse;          /* dense, on a coarsest level that is small enough */
    double spectral_radius;   /* of inverse diagonal times Laplacian, estimated from above */
    void *work[4];            /* vectors of the V-cycle */
} mf_level;

struct mf_multilevel {
    int count;
    int64_t work_size; /* bytes per node of the V-cycle's memory */
    int32_t *order;
    double scale; /* root of the factor on the caller's weights */
    mf_level levels[MF_MOST_LEVELS];
};

static void mf_multilevel_free(mf_multilevel *h)
{
    if (!h) return;
    for (int l = 0; l < MF_MOST_LEVELS; l++) {
        mf_level *level = h->levels + l;
        mf_sparse_free(&level->graph);
        mf_sparse_free(&level->prolong);
        mf_sparse_free(&level->restriction);
        mf_release(level->mass);
        mf_release(level->inverse_diagonal);
        mf_release(level->inverse);
        for (int m = 0; m < 4; m++) mf_release(level->work[m]);
    }
    mf_release(h->order);
    free(h);
}

/* Breadth-first order from node 0; returns how many nodes it reached. Edges of weight 0 do not count. */
static int64_t mf_breadth_first(int64_t n, const int64_t *start, const int32_t *column, const double *weight,
                                        int32_t *order, int32_t *place)
{
    for (int64_t i = 0; i < n; i++) place[i] = -1;
    int64_t reached = 1;
    order[0] = 0, place[0] = 0;
    for (int64_t at = 0; at < reached; at++) {
        int64_t i = order[at];
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            int32_t j = column[e];
            if (place[j] >= 0 || !(weight[e] > 0)) continue;
            place[j] = (int32_t)reached;
            order[reached++] = j;
        }
    }
    return reached;
}

/* The graph of level 0: the caller's, in the new order, without loops, its weights scaled by a power of two. */
static mf_status mf_finest_level(int64_t n, const int64_t *start, const int32_t *column, const double *weight,
                                         mf_multilevel *h, const int32_t *place)
{
    mf_level *level = h->levels;
    mf_sparse *graph = &level->graph;
    level->n = n;
    level->mass = mf_alloc(n, sizeof(double));
    if (!level->mass || !mf_sparse_alloc(graph, n, start[n])) return MF_NO_MEMORY;
    double largest = 0;
    for (int64_t e = 0; e < start[n]; e++) largest = weight[e] > largest ? weight[e] : largest;
    int exponent;
    frexp(largest, &exponent);
    h->scale = ldexp(1, exponent < -1000 ? 500 : -(exponent / 2));
    double factor = h->scale * h->scale;
    int64_t at = 0;
    graph->start[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        double degree = 0;
        int64_t from = h->order[i];
        for (int64_t e = start[from]; e < start[from + 1]; e++) {
            if (column[e] == from || !(weight[e] > 0)) continue;
            graph->column[at] = place[column[e]];
            graph->value[at] = factor * weight[e];
            degree += graph->value[at++];
        }
        graph->start[i + 1] = at;
        level->mass[i] = degree;
    }
    return MF_OK;
}

/* The smoother's diagonal and the reach of its inverse times L: by power steps from fixed numbers, and, as those miss
 * what is local, by 1 + sqrt(chance that a walk is back after two steps), which is right for pairs and for stars. An
 * estimate that is too low by a quarter would make the V-cycle indefinite. */
static mf_status mf_measure_level(mf_level *level, mf_run *run)
{
    mf_sparse *graph = &level->graph;
    int64_t n = level->n;
    double *inverse = level->inverse_diagonal = mf_alloc(n, sizeof(double));
    if (!inverse || !mf_sparse_to_float(graph)) return MF_NO_MEMORY;
    double bound = 0, back = 0;
    for (int64_t i = 0; i < n; i++) {
        double diagonal = 0, size = 0;
        for (int64_t e = graph->start[i]; e < graph->start[i + 1]; e++) {
            diagonal += graph->value[e];
            size += fabs(graph->value[e]);
        }
        inverse[i] = diagonal > 1e-30 ? 1 / diagonal : 0;
        if (diagonal > 0 && 1 + size / diagonal > bound) bound = 1 + size / diagonal;
    }
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t e = graph->start[i]; e < graph->start[i + 1]; e++)
            sum += graph->value[e] * graph->value[e] * inverse[graph->column[e]];
        back = sum * inverse[i] > back ? sum * inverse[i] : back;
    }
    float *x = mf_alloc(4 * n, sizeof(float)), *y = mf_alloc(4 * n, sizeof(float));
    if (!x || !y) {
        mf_release(x);
        mf_release(y);
        return MF_NO_MEMORY;
    }
    uint64_t state = 0x9E3779B97F4A7C15u;
    for (int64_t i = 0; i < 4 * n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)((double)(state >> 40) / (1 << 23) - 1);
    }
    double before = 1, after = 1;
    for (int step = 0; step < MF_POWER_STEPS; step++) {
        mf_spmm_args_f32 args = {.n = n, .width = 4, .start = graph->start, .column = graph->column,
                                         .weight = graph->value_f32, .x = x, .out = y};
        mf_spmm_f32(&args, MF_SPMM_PRODUCT, run);
        before = after, after = 0;
        for (int64_t i = 0; i < n; i++) {
            mf_quad_f32 made = *(const mf_quad_f32 *)(y + 4 * i) * (float)inverse[i];
            *(mf_quad_f32 *)(x + 4 * i) = made;
            made *= made;
            after += (double)((made[0] + made[1]) + (made[2] + made[3]));
        }
    }
    mf_release(x);
    mf_release(y);
    double radius = before > 0 ? sqrt(after / before) : 0;
    radius = fmax(1.1 * radius, 1 + sqrt(back));
    level->spectral_radius = radius > 0 && radius < bound ? radius : bound > 0 ? bound : 1;
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

static void mf_heaviest(const mf_sparse *graph, double *heaviest)
{
    for (int64_t i = 0; i < graph->rows; i++) {
        heaviest[i] = 0;
        for (int64_t e = graph->start[i]; e < graph->start[i + 1]; e++)
            heaviest[i] = graph->value[e] > heaviest[i] ? graph->value[e] : heaviest[i];
    }
}

/* Whether an edge is strong for a node whose heaviest edge is given. Every node has such an edge. */
MF_INLINE int mf_strong(double weight, double heaviest) { return weight > 0 && weight >= MF_STRENGTH * heaviest; }

/* Aggregates: a node whose strong neighbours are all free takes those for which it is strong as well; then each node
 * left over joins the aggregate of its heaviest neighbour. Returns their number. */
static int64_t mf_aggregate(const mf_sparse *graph, const double *heaviest, int32_t *aggregate)
{
    int64_t n = graph->rows, made = 0;
    for (int64_t i = 0; i < n; i++) aggregate[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        int root = aggregate[i] < 0, followers = 0;
        for (int64_t e = graph->start[i]; root && e < graph->start[i + 1]; e++) {
            int32_t j = graph->column[e];
            if (aggregate[j] >= 0 && mf_strong(graph->value[e], heaviest[i])) root = 0;
            followers += mf_strong(graph->value[e], heaviest[j]);
        }
        if (!root || !followers) continue;
        aggregate[i] = (int32_t)made;
        for (int64_t e = graph->start[i]; e < graph->start[i + 1]; e++) {
            int32_t j = graph->column[e];
            if (aggregate[j] < 0 && mf_strong(graph->value[e], heaviest[j])) aggregate[j] = (int32_t)made;
        }
        made++;
    }
    /* Joined nodes are marked -2 - aggregate until all have chosen. */
    for (int64_t i = 0; i < n; i++) {
        if (aggregate[i] >= 0) continue;
        double best = 0;
        for (int64_t e = graph->start[i]; e < graph->start[i + 1]; e++) {
            int32_t at = aggregate[graph->column[e]];
            if (at >= 0 && graph->value[e] > best) {
                best = graph->value[e];
                aggregate[i] = -2 - at;
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        if (aggregate[i] <= -2) aggregate[i] = -2 - aggregate[i];
        else if (aggregate[i] == -1) aggregate[i] = (int32_t)made++;
    }
    return made;
}

/* P = (I - omega diagonal^-1 L) T over strong edges, T the aggregates' indicator. */
static mf_status mf_make_prolongator(mf_level *level, const double *heaviest, const int32_t *aggregate, int64_t coarse,
                                     double omega)
{
    const mf_sparse *graph = &level->graph;
    int64_t n = level->n, at = 0;
    int64_t *slot = mf_alloc(coarse, sizeof(int64_t));
    if (!slot || !mf_sparse_alloc(&level->prolong, n, graph->start[n] + n)) {
        mf_release(slot);
        return MF_NO_MEMORY;
    }
    mf_sparse *prolong = &level->prolong;
    for (int64_t c = 0; c < coarse; c++) slot[c] = -1;
    prolong->start[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = at;
        double diagonal = 0;
        slot[aggregate[i]] = at;
        prolong->column[at] = aggregate[i];
        prolong->value[at++] = 0;
        for (int64_t e = graph->start[i]; e < graph->start[i + 1]; e++) {
            int32_t j = graph->column[e], to = aggregate[j];
            if (!mf_strong(graph->value[e], heaviest[i])) continue;
            diagonal += graph->value[e];
            if (slot[to] < begin) {
                slot[to] = at;
                prolong->column[at] = to;
                prolong->value[at++] = 0;
            }
            prolong->value[slot[to]] += graph->value[e];
        }
        for (int64_t e = begin; e < at; e++) prolong->value[e] *= diagonal > 0 ? omega / diagonal : 0;
        prolong->value[begin] += diagonal > 0 ? 1 - omega : 1;
        /* Small entries cost fill on the next level and bring little. */
        int64_t kept = begin;
        double sum = 0;
        for (int64_t e = begin; e < at; e++) {
            if (e > begin && prolong->value[e] < MF_TRUNCATE) continue;
            prolong->column[kept] = prolong->column[e];
            prolong->value[kept] = prolong->value[e];
            sum += prolong->value[kept++];
        }
        for (int64_t e = begin; e < kept; e++) prolong->value[e] /= sum;
        at = kept;
        prolong->start[i + 1] = at;
    }
    mf_release(slot);
    return MF_OK;
}

/* Rows of a product of sparse matrices are gathered in a dense row with a list of the places in use. */
typedef struct mf_gather {
    double *sum;
    int64_t *mark;
    int32_t *used;
    int64_t count;
} mf_gather;

MF_INLINE void mf_gather_add(mf_gather *g, int64_t row, int32_t at, double value)
{
    if (g->mark[at] != row) {
        g->mark[at] = row;
        g->used[g->count++] = at;
        g->sum[at] = 0;
    }
    g->sum[at] += value;
}

/* The next level's graph, P' L P off its diagonal. *entries_left is how many entries the products may have; below 0 on
 * return the level was not worth making. */
static mf_status mf_galerkin(const mf_level *level, int64_t coarse, mf_level *next, int64_t *entries_left, mf_run *run)
{
    const mf_sparse *graph = &level->graph, *prolong = &level->prolong, *transposed = &level->restriction;
    int64_t n = level->n, room = 4 * n, at = 0;
    mf_sparse product = {0};
    mf_gather gather = {mf_alloc(coarse, sizeof(double)), mf_alloc(coarse, sizeof(int64_t)),
                        mf_alloc(coarse, sizeof(int32_t)), 0};
    mf_status status = MF_NO_MEMORY;
    next->n = coarse;
    next->mass = mf_alloc(coarse, sizeof(double));
    if (!gather.sum || !gather.mark || !gather.used || !next->mass || !mf_sparse_alloc(&product, n, room)) goto done;

    for (int64_t c = 0; c < coarse; c++) gather.mark[c] = -1;
    product.start[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        gather.count = 0;
        double diagonal = 0;
        for (int64_t e = graph->start[i]; e < graph->start[i + 1]; e++) {
            int64_t j = graph->column[e];
            double weight = graph->value[e];
            diagonal += weight;
            for (int64_t f = prolong->start[j]; f < prolong->start[j + 1]; f++)
                mf_gather_add(&gather, i, prolong->column[f], -weight * prolong->value[f]);
        }
        for (int64_t f = prolong->start[i]; f < prolong->start[i + 1]; f++)
            mf_gather_add(&gather, i, prolong->column[f], diagonal * prolong->value[f]);
        if (!mf_sparse_grow(&product, at, at + gather.count, &room)) goto done;
        for (int64_t c = 0; c < gather.count; c++) {
            product.column[at] = gather.used[c];
            product.value[at++] = gather.sum[gather.used[c]];
        }
        product.start[i + 1] = at;
        if (at > *entries_left) break;
        if (i % 4096 == 0 && mf_poll(run)) break;
    }
    if (run->stop || at > *entries_left) {
        *entries_left = -1;
        status = run->stop ? MF_INTERRUPTED : MF_OK;
        goto done;
    }
    room = at, at = 0;
    if (!mf_sparse_alloc(&next->graph, coarse, room)) goto done;
    for (int64_t c = 0; c < coarse; c++) gather.mark[c] = -1;
    next->graph.start[0] = 0;
    for (int64_t row = 0; row < coarse; row++) {
        gather.count = 0;
        double mass = 0;
        for (int64_t e = transposed->start[row]; e < transposed->start[row + 1]; e++) {
            int64_t i = transposed->column[e];
            double factor = transposed->value[e];
            mass += factor * level->mass[i];
            for (int64_t f = product.start[i]; f < product.start[i + 1]; f++)
                mf_gather_add(&gather, row, product.column[f], -factor * product.value[f]);
        }
        if (!mf_sparse_grow(&next->graph, at, at + gather.count, &room)) goto done;
        for (int64_t c = 0; c < gather.count; c++) {
            if (gather.used[c] == row) continue;
            next->graph.column[at] = gather.used[c];
            next->graph.value[at++] = gather.sum[gather.used[c]];
        }
        next->graph.start[row + 1] = at;
        next->mass[row] = mass;
        if (row % 4096 == 0 && mf_poll(run)) break;
    }
    *entries_left -= at;
    status = run->stop ? MF_INTERRUPTED : MF_OK;
done:
    mf_sparse_free(&product);
    mf_release(gather.sum);
    mf_release(gather.mark);
    mf_release(gather.used);
    return status;
}

/* The inverse of L + c 11' on the coarsest level, by Cholesky; c sends constants where all other vectors go. */
static mf_status mf_invert_coarsest(mf_level *level)
{
    int64_t n = level->n;
    const mf_sparse *graph = &level->graph;
    double *a = mf_alloc(n * n, sizeof(double)), *column = mf_alloc(n, sizeof(double));
    level->inverse = mf_alloc(n * n, sizeof(double));
    if (!a || !column || !level->inverse) {
        mf_release(a);
        mf_release(column);
        return MF_NO_MEMORY;
    }
    memset(a, 0, (size_t)(n * n) * sizeof(double));
    double trace = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t e = graph->start[i]; e < graph->start[i + 1]; e++) {
            a[i * n + graph->column[e]] -= graph->value[e];
            a[i * n + i] += graph->value[e];
        }
        trace += a[i * n + i];
    }
    double shift = trace > 0 ? trace / (double)(n * n) : 1;
    for (int64_t c = 0; c < n * n; c++) a[c] += shift;
    for (int64_t j = 0; j < n; j++) { /* lower triangle, by columns; pivots lost to rounding cut their node off */
        double pivot = a[j * n + j];
        for (int64_t k = 0; k < j; k++) pivot -= a[j * n + k] * a[j * n + k];
        double root = pivot > 1e-15 * a[j * n + j] ? sqrt(pivot) : 0;
        for (int64_t i = j + 1; i < n; i++) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = root > 0 ? sum / root : 0;
        }
        a[j * n + j] = root;
    }
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++) {
            double sum = i == j;
            for (int64_t k = 0; k < i; k++) sum -= a[i * n + k] * column[k];
            column[i] = a[i * n + i] > 0 ? sum / a[i * n + i] : 0;
        }
        for (int64_t i = n - 1; i >= 0; i--) {
            double sum = column[i];
            for (int64_t k = i + 1; k < n; k++) sum -= a[k * n + i] * column[k];
            column[i] = a[i * n + i] > 0 ? sum / a[i * n + i] : 0;
        }
        for (int64_t i = 0; i < n; i++) level->inverse[i * n + j] = column[i];
    }
    mf_release(a);
    mf_release(column);
    return MF_OK;
}

/* One level more; *more is 0 where the hierarchy ends here. */
static mf_status mf_coarsen(mf_multilevel *h, int64_t *entries_left, int *more, mf_run *run)
{
    mf_level *level = h->levels + h->count - 1, *next = level + 1;
    int64_t n = level->n;
    *more = 0;
    double *heaviest = mf_alloc(n, sizeof(double));
    int32_t *aggregate = mf_alloc(n, sizeof(int32_t));
    mf_status status = MF_NO_MEMORY;
    if (!heaviest || !aggregate) goto done;
    mf_heaviest(&level->graph, heaviest);
    int64_t coarse = mf_aggregate(&level->graph, heaviest, aggregate);
    status = MF_OK;
    if (4 * coarse > 3 * n) goto done;
    status = mf_make_prolongator(level, heaviest, aggregate, coarse, 4 / (3 * level->spectral_radius));
    if (status != MF_OK) goto done;
    status = mf_sparse_transpose(&level->prolong, coarse, &level->restriction) ? MF_OK : MF_NO_MEMORY;
    if (status == MF_OK) status = mf_galerkin(level, coarse, next, entries_left, run);
    if (status != MF_OK) goto done;
    if (*entries_left < 0) {
        mf_sparse_free(&level->prolong);
        mf_sparse_free(&level->restriction);
        mf_release(next->mass);
        next->mass = NULL;
        goto done;
    }
    if (!mf_sparse_to_float(&level->prolong) || !mf_sparse_to_float(&level->restriction)) status = MF_NO_MEMORY;
    h->count++;
    *more = 1;
done:
    mf_release(heaviest);
    mf_release(aggregate);
    return status;
}

static mf_status mf_multilevel_begin(int64_t n, const int64_t *start, const int32_t *column, const double *weight,
                                     mf_multilevel **hierarchy, int64_t *reached, mf_run *run)
{
    mf_multilevel *h = *hierarchy = calloc(1, sizeof(mf_multilevel));
    int32_t *place = mf_alloc(n, sizeof(int32_t));
    mf_status status = MF_NO_MEMORY;
    if (!h || !place || !(h->order = mf_alloc(n, sizeof(int32_t)))) goto done;
    *reached = mf_breadth_first(n, start, column, weight, h->order, place);
    status = MF_OK;
    if (*reached < n) goto done;
    status = mf_finest_level(n, start, column, weight, h, place);
    if (status != MF_OK) goto done;
    h->count = 1;
    int64_t entries_left = (int64_t)(MF_FILL * (double)h->levels[0].graph.start[n]) + 1000;
    while (status == MF_OK) {
        mf_level *level = h->levels + h->count - 1;
        int more = 0;
        status = mf_measure_level(level, run);
        if (status == MF_OK && level->n > MF_DENSE_LEVEL && h->count < MF_MOST_LEVELS)
            status = mf_coarsen(h, &entries_left, &more, run);
        else if (status == MF_OK && level->n <= MF_DENSE_LEVEL) status = mf_invert_coarsest(level);
        if (!more) break;
    }
done:
    mf_release(place);
    return status;
}

static int64_t mf_multilevel_size(const mf_multilevel *h, int level)
{
    return level < h->count ? h->levels[level].n : 0;
}

static int64_t mf_multilevel_entries(const mf_multilevel *h, int level)
{
    return h->levels[level].graph.start[h->levels[level].n];
}
static const double *mf_multilevel_mass(const mf_multilevel *h, int level) { return h->levels[level].mass; }
static const int32_t *mf_multilevel_order(const mf_multilevel *h) { return h->order; }
static double mf_multilevel_scale(const mf_multilevel *h) { return h->scale; }

static mf_status mf_multilevel_product(const mf_multilevel *h, int at, const double *x, int64_t width, double *out,
                                       mf_run *run)
{
    const mf_level *level = h->levels + at;
    mf_spmm_args_f64 args = {.n = level->n, .width = width, .start = level->graph.start, .x = x, .out = out,
                                     .column = level->graph.column, .weight = level->graph.value};
    mf_spmm_f64(&args, MF_SPMM_PRODUCT, run);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

static mf_status mf_multilevel_prolong(const mf_multilevel *h, int at, const double *coarse, int64_t width,
                                       double *fine, mf_run *run)
{
    const mf_sparse *prolong = &h->levels[at].prolong;
    mf_sparse_apply_f64(prolong->rows, prolong->start, prolong->column, prolong->value, coarse, width, 0, fine,
                        run);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

/* Memory for the vectors of a V-cycle, kept from call to call. */
static int mf_multilevel_memory(mf_multilevel *h, int64_t size)
{
    if (size <= h->work_size) return 1;
    h->work_size = 0;
    for (int l = 0; l < h->count; l++) {
        for (int m = 0; m < 4; m++) {
            mf_release(h->levels[l].work[m]);
            h->levels[l].work[m] = mf_alloc(h->levels[l].n, (size_t)size);
            if (!h->levels[l].work[m]) return 0;
        }
    }
    h->work_size = size;
    return 1;
}

#endif
