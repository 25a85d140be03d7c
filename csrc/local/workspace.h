/* What one thread works in for the neighbourhoods of as many points as a vector has doubles. */
#ifndef MF_LOCAL_WORKSPACE_H
#define MF_LOCAL_WORKSPACE_H

#include "base/common.h"
#include "base/simd.h"
#include "local/small_matrices.h"

/* Squared singular values up to this share of the largest count as 0: they come from a Gram matrix, whose rounding is
 * of that size. */
#define LOCAL_NULL 1e-13
#define LOCAL_CACHE MF_LIMIT(24 << 10, 1 << 10) /* bytes of differences to hold at once */

/* What one thread works in. z: differences, rows padded with zeros to whole tiles. */
typedef struct {
    int64_t k, p, chunk, rows;
    vf64 *memory, *z, *gram, *leading, *values, *u, *weights, *work;
    vf64_mask *null;
    double half[MF_VBYTES / sizeof(double)], scale[MF_VBYTES / sizeof(double)];
} local_space;

/* What a kernel asks of local_each: gamma for the alignment, `values` (lists x dim) to be filled by modified LLE. */
typedef struct {
    int64_t dim;
    double gamma;
    double *values;
} local_plan;

/* For matrices of `count` rows: k points, or p features where they are fewer. */
static int local_open(local_space *s, int64_t k, int64_t p, int64_t count, int64_t dim)
{
    int64_t rows = mf_round_up(count, LANES_TILE);
    int64_t chunk = count < k ? k : mf_max(8, mf_min(p, LOCAL_CACHE / (MF_VBYTES * k)));
    int64_t work = dim ? count * (count + 4) : k;
    int64_t total = rows * chunk + rows * rows + dim * (count + k + 2) + k + work;
    *s = (local_space){.k = k, .p = p, .chunk = chunk, .rows = rows, .memory = mf_alloc(total, sizeof(vf64))};
    if (!s->memory) return 0;
    s->z = s->memory;
    s->gram = s->z + rows * chunk;
    s->leading = s->gram + rows * rows;
    s->u = s->leading + dim * count;
    s->values = s->u + dim * k;
    s->null = (vf64_mask *)(s->values + dim);
    s->weights = s->values + 2 * dim;
    s->work = s->weights + k;
    memset(s->z, 0, (size_t)(rows * chunk) * sizeof(vf64));
    return 1;
}

/* Batches between two looks at Ctrl-C: a fraction of a millisecond or one batch. */
static int64_t local_piece(int64_t k, int64_t p)
{
    double operations = (double)k * (double)k * (double)(k + p);
    return (int64_t)fmax(1, fmin(64, MF_LIMIT(200000, 1) / operations));
}

#endif
