/* cholesky_solve: solves with the factor of cholesky/factor.h, four right-hand sides at a time.
 * Accumulator: double, over the pivots in order. No column of a solve depends on the columns beside it.
 * Workspace: n values per right-hand side of a thread. */
#ifndef MF_CHOLESKY_SOLVE_H
#define MF_CHOLESKY_SOLVE_H

#include "cholesky/factor.h"

/* Rows of a block, one column of the right-hand sides after the other; rows beyond the front are 0. */
MF_INLINE void mf_cholesky_gather(const double *x, const int32_t *row, int64_t begin, int64_t end, int width,
                                  double block[WIDTH][HEIGHT])
{
    for (int j = 0; j < width; j++)
        for (int64_t i = 0; i < HEIGHT; i++) block[j][i] = 0;
    for (int64_t i = 0; i < end - begin; i++)
        for (int j = 0; j < width; j++) block[j][i] = x[(int64_t)row[begin + i] * width + j];
}

/* x = L^-1 x for one front: its pivots, then what they take from the rows beyond. */
MF_INLINE void mf_forward_front(const mf_cholesky *c, int32_t s, int width, double *x)
{
    const mf_fronts *f = &c->fronts;
    int64_t first = f->first[s], pivots = f->first[s + 1] - first, rows = f->begin[s + 1] - f->begin[s];
    const int32_t *row = f->rows + f->begin[s];
    const double *panel = c->factor + c->panel[s];
    double *head = x + first * width;
    for (int64_t begin = 0; begin < rows; begin += HEIGHT) {
        const double *block = panel + begin * pivots;
        int64_t stop = mf_min(begin + HEIGHT, rows);
        double part[WIDTH][HEIGHT];
        vf64 sum[TILE_VECTORS][WIDTH];
        mf_cholesky_tile(block, head, mf_min(begin, pivots), width, width, sum);
        mf_cholesky_gather(x, row, begin, stop, width, part);
        for (int j = 0; j < width; j++)
            for (int v = 0; v < TILE_VECTORS; v++)
                vf64_store(part[j] + v * MF_LANES64, vf64_load(part[j] + v * MF_LANES64) - sum[v][j]);
        for (int64_t k = begin; k < mf_min(pivots, stop); k++) {
            const double *column = block + k * HEIGHT;
            for (int j = 0; j < width; j++) {
                double value = part[j][k - begin] * column[k - begin];
                for (int v = 0; v < HEIGHT; v += MF_LANES64)
                    vf64_store(part[j] + v, vf64_fma(vf64_load(column + v), vf64_set(-value), vf64_load(part[j] + v)));
                part[j][k - begin] = value;
            }
        }
        for (int64_t i = begin; i < stop; i++)
            for (int j = 0; j < width; j++) x[(int64_t)row[i] * width + j] = part[j][i - begin];
    }
}

/* sums[k][j] += the products of column k of a block with column j of `part`, lane by lane. */
MF_INLINE void mf_transposed_tile(const double *block, int64_t columns, int width, double part[WIDTH][HEIGHT],
                                  vf64 *sums)
{
    vf64 x[WIDTH][TILE_VECTORS];
    for (int j = 0; j < width; j++)
        for (int v = 0; v < TILE_VECTORS; v++) x[j][v] = vf64_load(part[j] + v * MF_LANES64);
    for (int64_t k = 0; k < columns; k++, block += HEIGHT)
        for (int j = 0; j < width; j++) {
            vf64 sum = sums[k * width + j];
            for (int v = 0; v < TILE_VECTORS; v++) sum = vf64_fma(vf64_load(block + v * MF_LANES64), x[j][v], sum);
            sums[k * width + j] = sum;
        }
}

MF_INLINE double mf_cholesky_lanes_sum(vf64 v)
{
    double lanes[MF_LANES64], sum = 0;
    vf64_store(lanes, v);
    for (int i = 0; i < MF_LANES64; i += 2) sum += lanes[i] + lanes[i + 1];
    return sum;
}

/* x = L^-T x for one front. */
MF_INLINE void mf_backward_front(const mf_cholesky *c, int32_t s, int width, double *x, vf64 *sums)
{
    const mf_fronts *f = &c->fronts;
    int64_t first = f->first[s], pivots = f->first[s + 1] - first, rows = f->begin[s + 1] - f->begin[s];
    const int32_t *row = f->rows + f->begin[s];
    const double *panel = c->factor + c->panel[s];
    double *head = x + first * width;
    memset(sums, 0, (size_t)(pivots * width) * sizeof(vf64));
    for (int64_t begin = pivots / HEIGHT * HEIGHT; begin < rows; begin += HEIGHT) {
        double part[WIDTH][HEIGHT];
        mf_cholesky_gather(x, row, begin, mf_min(begin + HEIGHT, rows), width, part);
        for (int64_t i = begin; i < pivots; i++)
            for (int j = 0; j < width; j++) part[j][i - begin] = 0;
        mf_transposed_tile(panel + begin * pivots, pivots, width, part, sums);
    }
    for (int64_t begin = (pivots - 1) / HEIGHT * HEIGHT; begin >= 0; begin -= HEIGHT) {
        const double *block = panel + begin * pivots;
        double part[WIDTH][HEIGHT] = {{0}};
        for (int64_t k = mf_min(begin + HEIGHT, pivots) - 1; k >= begin; k--) {
            const double *column = block + k * HEIGHT;
            for (int j = 0; j < width; j++) {
                vf64 sum = sums[k * width + j];
                for (int v = 0; v < HEIGHT; v += MF_LANES64)
                    sum = vf64_fma(vf64_load(column + v), vf64_load(part[j] + v), sum);
                double value = (head[k * width + j] - mf_cholesky_lanes_sum(sum)) * column[k - begin];
                head[k * width + j] = part[j][k - begin] = value;
            }
        }
        mf_transposed_tile(block, begin, width, part, sums);
    }
}

/* Columns from `first` on, `width` of them. */
MF_INLINE void mf_solve_columns(const mf_cholesky *c, const double *rhs, int64_t m, int64_t first, int width,
                                double *out, double *x, vf64 *sums, mf_run *run)
{
    const mf_fronts *f = &c->fronts;
    for (int64_t k = 0; k < c->n; k++)
        for (int j = 0; j < width; j++) x[k * width + j] = rhs[f->order[k] * m + first + j];
    for (int32_t s = 0; s < f->count && !(s % MF_POLL_FRONTS == 0 && mf_poll(run)); s++)
        mf_forward_front(c, s, width, x);
    for (int32_t s = f->count - 1; s >= 0 && !(s % MF_POLL_FRONTS == 0 && mf_poll(run)); s--)
        mf_backward_front(c, s, width, x, sums);
    for (int64_t k = 0; k < c->n; k++)
        for (int j = 0; j < width; j++) out[f->order[k] * m + first + j] = x[k * width + j];
}

/* out = (L L')^-1 rhs, both n x m. */
static mf_status mf_cholesky_solve(const mf_cholesky *c, const double *rhs, int64_t m, double *out, mf_run *run)
{
    int starved = 0, n_threads = (int)mf_min(run->n_threads, mf_ceil_div(m, WIDTH));
#pragma omp parallel num_threads(n_threads) if (n_threads > 1) reduction(| : starved)
    {
        double *x = mf_alloc((int64_t)c->n * mf_min(m, WIDTH), sizeof(double));
        vf64 *sums = mf_alloc((int64_t)c->most_pivots * WIDTH, sizeof(vf64));
        starved = !x || !sums;
        if (starved) mf_stop(run);
#pragma omp for schedule(dynamic, 1)
        for (int64_t first = 0; first < m; first += WIDTH) {
            if (mf_poll(run)) continue;
            switch (mf_min(WIDTH, m - first)) {
            case 1: mf_solve_columns(c, rhs, m, first, 1, out, x, sums, run); break;
            case 2: mf_solve_columns(c, rhs, m, first, 2, out, x, sums, run); break;
            case 3: mf_solve_columns(c, rhs, m, first, 3, out, x, sums, run); break;
            default: mf_solve_columns(c, rhs, m, first, 4, out, x, sums, run);
            }
        }
        mf_release(x);
        mf_release(sums);
    }
    return starved ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}

#endif
