/* Sums of small dense blocks, each on the rows and columns of one clique of points, as a symmetric CSR matrix. Block c
 * is offset + sign F'F + diagonal I with F a rank x width factor, except that the first `added` rows of F are always
 * added and that I is zero for the first `apart` members.
 * Accumulator: double. Order: a row adds its rows of the blocks in ascending order of the cliques, so entries (i, j)
 * and (j, i) are the same sum, for any number of threads. Workspace: n cells per thread. */
#ifndef MF_LOCAL_CLIQUE_BLOCKS_H
#define MF_LOCAL_CLIQUE_BLOCKS_H

#include "base/common.h"
#include "base/simd.h"
#include "base/sort.h"

struct mf_blocks {
    int64_t n, cliques, width, rank, entries, added, apart;
    double offset, sign, diagonal;
    int64_t *members; /* cliques x width */
    double *factors;  /* cliques x rank x width */
    int64_t *starts;  /* of row i, from starts[i] on: */
    int64_t *places;  /* where it stands among the members */
    int64_t *rows;    /* where each row of the matrix begins */
};

/* A column of the row being summed. */
typedef struct {
    double value; /* 0 between two rows */
    int64_t row;  /* the last row that touched it */
} mf_cell;

static void mf_blocks_free(mf_blocks *b)
{
    if (!b) return;
    mf_release(b->members);
    mf_release(b->factors);
    mf_release(b->starts);
    mf_release(b->places);
    mf_release(b->rows);
    free(b);
}

static mf_status clique_blocks_new(int64_t n, int64_t cliques, int64_t width, int64_t rank, mf_blocks **blocks)
{
    mf_blocks *b = *blocks = calloc(1, sizeof(mf_blocks));
    if (!b) return MF_NO_MEMORY;
    b->n = n, b->cliques = cliques, b->width = width, b->rank = rank;
    b->members = mf_alloc(cliques * width, sizeof(int64_t));
    b->factors = mf_alloc(cliques * width, (size_t)rank * sizeof(double));
    b->starts = mf_alloc(n + 1, sizeof(int64_t));
    b->places = mf_alloc(cliques * width, sizeof(int64_t));
    b->rows = mf_alloc(n + 1, sizeof(int64_t));
    return b->members && b->factors && b->starts && b->places && b->rows ? MF_OK : MF_NO_MEMORY;
}

/* The columns of one row, in the order met; sums the values too where there is a `line` (of `width` numbers) to work
 * in. */
MF_INLINE int64_t clique_blocks_row(const mf_blocks *b, int64_t row, mf_cell *cells, int64_t *columns, double *line)
{
    int64_t width = b->width, count = 0;
    for (int64_t e = b->starts[row]; e < b->starts[row + 1]; e++) {
        int64_t clique = b->places[e] / width, place = b->places[e] % width;
        const int64_t *members = b->members + clique * width;
        if (line) {
            const double *factor = b->factors + clique * width * b->rank;
            for (int64_t a = 0; a < width; a++) line[a] = b->offset;
            for (int64_t d = 0; d < b->rank; d++, factor += width) {
                double own = (d < b->added ? 1 : b->sign) * factor[place];
                for (int64_t a = 0; a < width; a++) line[a] = f64_fma(own, factor[a], line[a]);
            }
            if (place >= b->apart) line[place] += b->diagonal;
        }
        for (int64_t a = 0; a < width; a++) {
            mf_cell *cell = cells + members[a];
            columns[count] = members[a]; /* no branch on whether it is new */
            count += cell->row != row;
            cell->row = row;
            if (line) cell->value += line[a];
        }
    }
    return count;
}

/* Where each of a few distinct numbers stands in their order, by counting: no entry waits for the one before it. */
static void clique_blocks_ranks(const int64_t *columns, int64_t count, int64_t *restrict ranks)
{
    for (int64_t e = 0; e < count; e++) ranks[e] = 0;
    for (int64_t other = 0; other < count; other++) {
        int64_t column = columns[other];
        for (int64_t e = 0; e < count; e++) ranks[e] += column < columns[e];
    }
}

/* What every thread needs for clique_blocks_row; false where there is no memory. */
static int clique_blocks_workspace(const mf_blocks *b, mf_cell **cells, int64_t **columns, double **line)
{
    *cells = mf_alloc(b->n, sizeof(mf_cell));
    *columns = mf_alloc(b->n + 1, sizeof(int64_t)); /* the last one is written to before it is known to count */
    *line = mf_alloc(b->width, sizeof(double));
    if (!*cells || !*columns || !*line) return 0;
    for (int64_t i = 0; i < b->n; i++) (*cells)[i] = (mf_cell){0, -1};
    return 1;
}

/* From members to the rows of the matrix. *bad is the first clique that names a point twice, or -1. */
static mf_status clique_blocks_count(mf_blocks *b, int64_t *bad, mf_run *run)
{
    enum { BLOCK = MF_LIMIT(64, 3), POLL = MF_LIMIT(1 << 16, 4) };
    int64_t n = b->n, width = b->width, *next = b->rows, *starts = b->starts;
    int no_memory = 0;
    *bad = -1;
    for (int64_t i = 0; i < n; i++) starts[i] = 0, next[i] = -1;
    starts[n] = 0;
    for (int64_t c = 0; c < b->cliques; c++) {
        if (c % POLL == 0 && mf_poll(run)) return MF_INTERRUPTED;
        for (int64_t a = 0; a < width; a++) {
            int64_t member = b->members[c * width + a];
            if (next[member] == c) {
                *bad = c;
                return MF_OK;
            }
            next[member] = c;
            starts[member + 1]++;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        next[i] = starts[i];
        starts[i + 1] += starts[i];
    }
    for (int64_t c = 0; c < b->cliques; c++) {
        if (c % POLL == 0 && mf_poll(run)) return MF_INTERRUPTED;
        for (int64_t e = c * width; e < (c + 1) * width; e++) b->places[next[b->members[e]]++] = e;
    }
#pragma omp parallel num_threads(run->n_threads)
    {
        mf_cell *cells;
        int64_t *columns;
        double *line;
        int ready = clique_blocks_workspace(b, &cells, &columns, &line);
        if (!ready) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < mf_ceil_div(n, BLOCK); block++) {
            if (mf_poll(run) || !ready) continue;
            for (int64_t i = block * BLOCK; i < mf_min((block + 1) * BLOCK, n); i++)
                b->rows[i + 1] = clique_blocks_row(b, i, cells, columns, NULL);
        }
        mf_release(cells);
        mf_release(columns);
        mf_release(line);
    }
    if (no_memory) return MF_NO_MEMORY;
    if (run->stop) return MF_INTERRUPTED;
    b->rows[0] = 0;
    for (int64_t i = 0; i < n; i++) b->rows[i + 1] += b->rows[i];
    b->entries = b->rows[n];
    return MF_OK;
}

static mf_status mf_blocks_fill(const mf_blocks *b, int wide, void *indptr, void *out_columns,
                                double *values, mf_run *run)
{
    enum { BLOCK = MF_LIMIT(64, 3), FEW = MF_LIMIT(128, 12) };
    int64_t n = b->n;
    int no_memory = 0;
#define PUT(array, at, value)                                                                                        \
    do {                                                                                                             \
        if (wide) ((int64_t *)(array))[at] = (value);                                                                \
        else ((int32_t *)(array))[at] = (int32_t)(value);                                                            \
    } while (0)
    for (int64_t i = 0; i <= n; i++) PUT(indptr, i, b->rows[i]);
#pragma omp parallel num_threads(run->n_threads)
    {
        mf_cell *cells;
        int64_t *columns;
        double *line;
        int ready = clique_blocks_workspace(b, &cells, &columns, &line);
        if (!ready) mf_out_of_memory(&no_memory, run);
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < mf_ceil_div(n, BLOCK); block++) {
            if (mf_poll(run) || !ready) continue;
            for (int64_t i = block * BLOCK; i < mf_min((block + 1) * BLOCK, n); i++) {
                int64_t count = clique_blocks_row(b, i, cells, columns, line), begin = b->rows[i];
                int64_t ranks[FEW];
                if (count <= FEW) clique_blocks_ranks(columns, count, ranks);
                else mf_integers_sort(columns, count);
                for (int64_t e = 0; e < count; e++) {
                    int64_t to = begin + (count <= FEW ? ranks[e] : e);
                    PUT(out_columns, to, columns[e]);
                    values[to] = cells[columns[e]].value;
                    cells[columns[e]].value = 0;
                }
            }
        }
        mf_release(cells);
        mf_release(columns);
        mf_release(line);
    }
#undef PUT
    return no_memory ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

#endif
