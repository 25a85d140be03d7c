/* Tall, narrow blocks of vectors: Gram products, updates and residuals for an eigenvalue iteration. Blocks are
 * row-major doubles whose widths are multiples of 4.
 * Accumulator: double. Order: over fixed chunks of rows and then over the chunks in order, so the bits are the same
 * for any number of threads. Workspace: one panel of rows per thread, one sum per chunk. */
#ifndef MF_MULTILEVEL_TALL_BLOCKS_H
#define MF_MULTILEVEL_TALL_BLOCKS_H

#include "base/common.h"
#include "base/simd.h"
#include "multilevel/quads.h"

enum { MF_CHUNK = MF_LIMIT(2048, 10), MF_PANEL = MF_LIMIT(128, 4) };

/* One panel of rows, side by side: the given blocks, `total` columns in all. */
static void mf_tall_pack(const double *const *parts, const int64_t *widths, int count, int64_t total,
                         int64_t begin, int64_t end, double *panel)
{
    for (int part = 0; part < count; part++) {
        int64_t width = widths[part];
        if (width) {
            for (int64_t i = begin; i < end; i++)
                memcpy(panel + (i - begin) * total, parts[part] + i * width, (size_t)width * sizeof(double));
        }
        panel += width;
    }
}

/* gram (rows x columns) += left' right over one panel; columns is a multiple of 8. */
static void mf_tall_panel_gram(const double *left, int64_t rows, const double *right, int64_t columns,
                               int64_t count, double *gram)
{
    for (int64_t r = 0; r < rows; r += 4) {
        for (int64_t c = 0; c < columns; c += 8) {
            vq64 sum[4][2];
            for (int a = 0; a < 4; a++)
                for (int b = 0; b < 2; b++) sum[a][b] = vq64_load(gram + (r + a) * columns + c + b * 4);
            for (int64_t i = 0; i < count; i++) {
                vq64 y[2];
                for (int b = 0; b < 2; b++) y[b] = vq64_load(right + i * columns + c + b * 4);
                for (int a = 0; a < 4; a++) {
                    vq64 x = vq64_set(left[i * rows + r + a]);
                    for (int b = 0; b < 2; b++) sum[a][b] = vq64_fma(x, y[b], sum[a][b]);
                }
            }
            for (int a = 0; a < 4; a++)
                for (int b = 0; b < 2; b++) vq64_store(gram + (r + a) * columns + c + b * 4, sum[a][b]);
        }
    }
}

static mf_status mf_tall_gram(int64_t n, const double *const *parts, const int64_t *widths, int count,
                              const double *y, const double *ay, int64_t width, const double *mass,
                              double *gram, mf_run *run)
{
    int64_t rows = 0, columns = 2 * width, chunks = mf_ceil_div(n, MF_CHUNK);
    for (int part = 0; part < count; part++) rows += widths[part];
    int64_t size = rows * columns;
    int threads = mf_worth_threads(n * size / 4, run);
    double *sums = mf_alloc(chunks * size, sizeof(double));
    double *panels = mf_alloc(threads * MF_PANEL * (rows + columns), sizeof(double));
    if (!sums || !panels) {
        mf_release(sums);
        mf_release(panels);
        return MF_NO_MEMORY;
    }
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        if (mf_poll(run)) continue;
        double *left = panels + omp_get_thread_num() * MF_PANEL * (rows + columns), *right = left + MF_PANEL * rows;
        double *sum = sums + chunk * size;
        memset(sum, 0, (size_t)size * sizeof(double));
        int64_t last = mf_min((chunk + 1) * MF_CHUNK, n);
        for (int64_t begin = chunk * MF_CHUNK; begin < last; begin += MF_PANEL) {
            int64_t end = mf_min(begin + MF_PANEL, last);
            mf_tall_pack(parts, widths, count, rows, begin, end, left);
            for (int64_t i = begin; i < end; i++) {
                double *to = right + (i - begin) * columns;
                for (int64_t c = 0; c < width; c += 4)
                    *(mf_quad_f64 *)(to + c) = mass[i] * *(const mf_quad_f64 *)(y + i * width + c);
                memcpy(to + width, ay + i * width, (size_t)width * sizeof(double));
            }
            mf_tall_panel_gram(left, rows, right, columns, end - begin, sum);
        }
    }
    memset(gram, 0, (size_t)size * sizeof(double));
    if (!run->stop) {
        for (int64_t chunk = 0; chunk < chunks; chunk++)
            for (int64_t c = 0; c < size; c++) gram[c] += sums[chunk * size + c];
    }
    mf_release(sums);
    mf_release(panels);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

/* `height` rows of a panel times `quads` times four columns of coef, both constants here. */
MF_INLINE void mf_tall_tile(const double *panel, int64_t rows, const double *coef, int64_t columns, int height,
                            int quads, double *out)
{
    vq64 sum[4][2];
    for (int a = 0; a < height; a++)
        for (int b = 0; b < quads; b++) sum[a][b] = (vq64){0};
    for (int64_t r = 0; r < rows; r++) {
        for (int a = 0; a < height; a++) {
            vq64 x = vq64_set(panel[a * rows + r]);
            for (int b = 0; b < quads; b++)
                sum[a][b] = vq64_fma(x, vq64_load(coef + r * columns + b * 4), sum[a][b]);
        }
    }
    for (int a = 0; a < height; a++)
        for (int b = 0; b < quads; b++) vq64_store(out + a * columns + b * 4, sum[a][b]);
}

/* A panel of rows times coef (rows of coef x columns); columns is a multiple of 4. */
static void mf_tall_panel_update(const double *panel, int64_t rows, const double *coef, int64_t columns, int64_t count,
                                 double *out)
{
    for (int64_t c = 0; c < columns; c += 8) {
        int whole = c + 8 <= columns;
        int64_t i = 0;
        for (; i + 4 <= count; i += 4) {
            if (whole) mf_tall_tile(panel + i * rows, rows, coef + c, columns, 4, 2, out + i * columns + c);
            else mf_tall_tile(panel + i * rows, rows, coef + c, columns, 4, 1, out + i * columns + c);
        }
        for (; i < count; i++) {
            if (whole) mf_tall_tile(panel + i * rows, rows, coef + c, columns, 1, 2, out + i * columns + c);
            else mf_tall_tile(panel + i * rows, rows, coef + c, columns, 1, 1, out + i * columns + c);
        }
    }
}

static mf_status mf_tall_update(int64_t n, const double *const *parts, const int64_t *widths, int count,
                                const double *coef, double *const *outs, const int64_t *out_widths,
                                int out_count, mf_run *run)
{
    int64_t rows = 0, columns = 0;
    for (int part = 0; part < count; part++) rows += widths[part];
    for (int part = 0; part < out_count; part++) columns += out_widths[part];
    int threads = mf_worth_threads(n * rows * columns / 4, run);
    double *panels = mf_alloc(threads * MF_PANEL * (rows + columns), sizeof(double));
    if (!panels) return MF_NO_MEMORY;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t block = 0; block < mf_ceil_div(n, MF_PANEL); block++) {
        if (mf_poll(run)) continue;
        double *panel = panels + omp_get_thread_num() * MF_PANEL * (rows + columns), *made = panel + MF_PANEL * rows;
        int64_t begin = block * MF_PANEL, end = mf_min(begin + MF_PANEL, n);
        mf_tall_pack(parts, widths, count, rows, begin, end, panel);
        mf_tall_panel_update(panel, rows, coef, columns, end - begin, made);
        for (int part = 0; part < out_count; part++) {
            for (int64_t i = begin; i < end; i++)
                memcpy(outs[part] + i * out_widths[part], made + (i - begin) * columns,
                       (size_t)out_widths[part] * sizeof(double));
            made += out_widths[part];
        }
    }
    mf_release(panels);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

static mf_status mf_tall_residual(int64_t n, const double *x, const double *ax, int64_t width,
                                  const double *mass, const double *values, double *out, double *squares,
                                  mf_run *run)
{
    int64_t chunks = mf_ceil_div(n, MF_CHUNK);
    double *sums = mf_alloc(chunks * width, sizeof(double));
    if (!sums) return MF_NO_MEMORY;
    int threads = mf_worth_threads(n * width, run);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        if (mf_poll(run)) continue;
        double *sum = sums + chunk * width;
        memset(sum, 0, (size_t)width * sizeof(double));
        for (int64_t i = chunk * MF_CHUNK; i < mf_min((chunk + 1) * MF_CHUNK, n); i++) {
            double inverse = 1 / mass[i];
            for (int64_t c = 0; c < width; c += 4) {
                int64_t at = i * width + c;
                mf_quad_f64 rest = *(const mf_quad_f64 *)(ax + at) -
                               *(const mf_quad_f64 *)(values + c) * (mass[i] * *(const mf_quad_f64 *)(x + at));
                *(mf_quad_f64 *)(out + at) = rest;
                *(mf_quad_f64 *)(sum + c) += rest * rest * inverse;
            }
        }
    }
    memset(squares, 0, (size_t)width * sizeof(double));
    if (!run->stop) {
        for (int64_t chunk = 0; chunk < chunks; chunk++)
            for (int64_t c = 0; c < width; c++) squares[c] += sums[chunk * width + c];
    }
    mf_release(sums);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

/* x -= its weighted mean, column by column. */
static mf_status mf_tall_center(int64_t n, double *x, int64_t width, const double *mass, mf_run *run)
{
    int64_t chunks = mf_ceil_div(n, MF_CHUNK), stride = width + 1;
    double *sums = mf_alloc((chunks + 1) * stride, sizeof(double));
    if (!sums) return MF_NO_MEMORY;
    int threads = mf_worth_threads(n * width, run);
    double *mean = sums + chunks * stride;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        double *sum = sums + chunk * stride;
        memset(sum, 0, (size_t)stride * sizeof(double));
        for (int64_t i = chunk * MF_CHUNK; i < mf_min((chunk + 1) * MF_CHUNK, n); i++) {
            for (int64_t c = 0; c < width; c += 4)
                *(mf_quad_f64 *)(sum + c) += mass[i] * *(const mf_quad_f64 *)(x + i * width + c);
            sum[width] += mass[i];
        }
    }
    memset(mean, 0, (size_t)stride * sizeof(double));
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        for (int64_t c = 0; c < stride; c++) mean[c] += sums[chunk * stride + c];
    for (int64_t c = 0; c < width; c++) mean[c] /= mean[width];
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        for (int64_t i = chunk * MF_CHUNK; i < mf_min((chunk + 1) * MF_CHUNK, n); i++)
            for (int64_t c = 0; c < width; c += 4)
                *(mf_quad_f64 *)(x + i * width + c) -= *(const mf_quad_f64 *)(mean + c);
    }
    mf_release(sums);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

#endif
