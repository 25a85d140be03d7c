/* Sparse matrices that own their memory, in double with a copy in float on demand. */
#ifndef MF_MULTILEVEL_SPARSE_MATRIX_H
#define MF_MULTILEVEL_SPARSE_MATRIX_H

#include "base/common.h"

typedef struct mf_sparse {
    int64_t rows;
    int64_t *start;
    int32_t *column;
    double *value;
    float *value_f32;
} mf_sparse;

static void mf_sparse_free(mf_sparse *m)
{
    mf_release(m->start);
    mf_release(m->column);
    mf_release(m->value);
    mf_release(m->value_f32);
    memset(m, 0, sizeof(*m));
}

static int mf_sparse_alloc(mf_sparse *m, int64_t rows, int64_t entries)
{
    m->rows = rows;
    m->start = mf_alloc(rows + 1, sizeof(int64_t));
    m->column = mf_alloc(entries, sizeof(int32_t));
    m->value = mf_alloc(entries, sizeof(double));
    m->value_f32 = NULL;
    return m->start && m->column && m->value;
}

/* Makes room for `entries` where there is room for *room. */
static int mf_sparse_grow(mf_sparse *m, int64_t used, int64_t entries, int64_t *room)
{
    if (entries <= *room) return 1;
    int64_t more = mf_max(entries, 2 * *room);
    int32_t *column = mf_alloc(more, sizeof(int32_t));
    double *value = mf_alloc(more, sizeof(double));
    if (!column || !value) {
        mf_release(column);
        mf_release(value);
        return 0;
    }
    memcpy(column, m->column, (size_t)used * sizeof(int32_t));
    memcpy(value, m->value, (size_t)used * sizeof(double));
    mf_release(m->column);
    mf_release(m->value);
    m->column = column, m->value = value, *room = more;
    return 1;
}

static int mf_sparse_to_float(mf_sparse *m)
{
    int64_t entries = m->start[m->rows];
    m->value_f32 = mf_alloc(entries, sizeof(float));
    if (!m->value_f32) return 0;
    for (int64_t e = 0; e < entries; e++) m->value_f32[e] = (float)m->value[e];
    return 1;
}

static int mf_sparse_transpose(const mf_sparse *m, int64_t columns, mf_sparse *out)
{
    if (!mf_sparse_alloc(out, columns, m->start[m->rows])) return 0;
    memset(out->start, 0, (size_t)(columns + 1) * sizeof(int64_t));
    for (int64_t e = 0; e < m->start[m->rows]; e++) out->start[m->column[e] + 1]++;
    for (int64_t j = 0; j < columns; j++) out->start[j + 1] += out->start[j];
    for (int64_t i = 0; i < m->rows; i++) {
        for (int64_t e = m->start[i]; e < m->start[i + 1]; e++) {
            int64_t to = out->start[m->column[e]]++;
            out->column[to] = (int32_t)i;
            out->value[to] = m->value[e];
        }
    }
    for (int64_t j = columns; j > 0; j--) out->start[j] = out->start[j - 1];
    out->start[0] = 0;
    return 1;
}

#endif
