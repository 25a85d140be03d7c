/* The tile that every dense kernel is made of: products of MR rows with 2 vectors of columns.
 * Accumulator: one per output, in the dtype, over the p features in order. An output's bits depend on its two rows
 * only: not on the batch, the threads, the block sizes, or which of the two rows is called row and which column.
 * Error: distances come as |x|^2 + |y|^2 - 2 x.y; where that loses digits, they are summed from differences instead
 * (finish_distances), so the relative error stays a small multiple of p roundings.
 * Workspace: packed rows and columns, given by the caller.
 * Template. Needs: base/dtype_impl.h.
 *
 * Data are shifted by a point near the mean of y. The shift lies on a grid of powers of two: integer-valued data stay
 * integer-valued (up to a power of two) and their distances exact. Rows of x are packed as panels [p][MR] and
 * multiplied by -2, rows of y as panels [p][NR]; missing rows are zero with norm +inf. Squared norms use the order and
 * rounding of the tile, so equal rows cancel to exactly 0. */

#undef MR
#undef NR
#undef DIRECT_UP_TO
#undef PANEL_STEP
/* A divisor of 96 and 192. The sums are most of the 32 registers that AVX-512 has, or of 16. */
#define MR (MF_VBYTES == 64 ? 12 : 6)
#define NR (2 * LANES)
/* Features per pass: beyond it partial sums rest in memory, at full precision. Found on a 512 KB L2: one pass is
 * faster than several up to here. */
#define PANEL_STEP ((int64_t)(MF_LIMIT(8192, 64) / sizeof(REAL)))

typedef struct {
    V c[MR][2];
} NAME(acc);

/* *t = *from (or 0) plus the products. */
MF_INLINE void NAME(tile)(int64_t p, const REAL *restrict a, const REAL *restrict b, const NAME(acc) *from,
                          NAME(acc) *t)
{
    V c[MR][2];
#pragma GCC unroll 12
    for (int i = 0; i < MR; i++) {
        c[i][0] = from ? from->c[i][0] : VOP(set)(0);
        c[i][1] = from ? from->c[i][1] : VOP(set)(0);
    }
    for (int64_t k = 0; k < p; k++, a += MR, b += NR) {
        V b0 = VOP(load)(b), b1 = VOP(load)(b + LANES);
#pragma GCC unroll 12
        for (int i = 0; i < MR; i++) {
            V s = VOP(set)(a[i]);
            c[i][0] = VOP(fma)(s, b0, c[i][0]);
            c[i][1] = VOP(fma)(s, b1, c[i][1]);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < MR; i++) t->c[i][0] = c[i][0], t->c[i][1] = c[i][1];
}

/* The same sums taken from differences, for very few features: nothing cancels, so it needs no norms and no shift. */
#define DIRECT_UP_TO 8
MF_INLINE void NAME(tile_direct)(int64_t p, const REAL *restrict a, const REAL *restrict b, NAME(acc) *t)
{
    enum { GROUP = 3 }; /* rows that share the loads of a column */
    for (int i = 0; i < MR; i += GROUP) {
        V c[GROUP][2] = {{{0}}};
        for (int64_t k = 0; k < p; k++) {
            V b0 = VOP(load)(b + k * NR), b1 = VOP(load)(b + k * NR + LANES);
            for (int g = 0; g < GROUP; g++) {
                V s = VOP(set)(a[k * MR + i + g]), d0 = s - b0, d1 = s - b1;
                c[g][0] = VOP(fma)(d0, d0, c[g][0]);
                c[g][1] = VOP(fma)(d1, d1, c[g][1]);
            }
        }
        for (int g = 0; g < GROUP; g++) t->c[i + g][0] = c[g][0], t->c[i + g][1] = c[g][1];
    }
}

/* Per-feature shift from at most 256 rows of y, evenly spread: their mean, rounded to a power of two no larger than
 * their standard deviation. It depends on y alone, so the result for a row of x does not depend on
 * the other rows of x. Sums of differences need no shift. */
static void NAME(find_shift)(const REAL *y, int64_t m, int64_t p, REAL *shift)
{
    enum { SAMPLE = 256, WIDTH = 64 };
    if (p <= DIRECT_UP_TO) {
        for (int64_t k = 0; k < p; k++) shift[k] = 0;
        return;
    }
    int64_t rows = mf_min(m, SAMPLE);
    for (int64_t k0 = 0; k0 < p; k0 += WIDTH) {
        int64_t width = mf_min(WIDTH, p - k0);
        double sum[WIDTH] = {0}, square[WIDTH] = {0};
        const REAL *first = y + k0;
        for (int64_t r = 0; r < rows; r++) {
            const REAL *row = y + (m * r / rows) * p + k0;
            for (int64_t k = 0; k < width; k++) {
                double v = (double)row[k] - (double)first[k];
                sum[k] += v;
                square[k] += v * v;
            }
        }
        for (int64_t k = 0; k < width; k++) {
            double mean = sum[k] / (double)rows, variance = square[k] / (double)rows - mean * mean;
            double center = (double)first[k] + mean;
            if (variance > 0) {
                double step = ldexp(1.0, ilogb(sqrt(variance)));
                center = nearbyint(center / step) * step;
            }
            shift[k0 + k] = isfinite(center) ? (REAL)center : 0;
        }
    }
}

/* `rows` rows as a panel [p][width] of factor * (row - shift); what is missing becomes 0. */
MF_INLINE void NAME(pack)(const REAL *restrict x, int64_t rows, int64_t p, const REAL *restrict shift, REAL factor,
                          int64_t width, REAL *restrict panel)
{
    enum { STEP = 16 };
    for (int64_t k0 = 0; k0 < p; k0 += STEP) {
        int64_t k1 = mf_min(k0 + STEP, p);
        for (int64_t r = 0; r < width; r++)
            for (int64_t k = k0; k < k1; k++) panel[k * width + r] = r < rows ? factor * (x[r * p + k] - shift[k]) : 0;
    }
}

#undef LARGEST_NORM
#define LARGEST_NORM ((sizeof(REAL) == 4 ? (REAL)3e38 : (REAL)1e308) / 8)
MF_INLINE V NAME(safe_norms)(V norms) { return VOP(select)(norms < LARGEST_NORM, norms, VOP(set)((REAL)NAN)); }

/* Panels of `width` rows each and their squared norms; the norm of a missing row is +inf, one so large that sums
 * with it might overflow is NaN. Packed rows carry `factor`, a power of two up to sign; norms do not. */
MF_INLINE void NAME(pack_panels)(const REAL *x, int64_t rows, int64_t p, const REAL *shift, REAL factor,
                                 int64_t width, REAL *panels, REAL *norms)
{
    REAL unscale = 1 / factor;
    for (int64_t r0 = 0; r0 < rows; r0 += width, panels += width * p) {
        REAL sum[MF_WIDEST_PANEL] = {0};
        NAME(pack)(x + r0 * p, mf_min(width, rows - r0), p, shift, factor, width, panels);
        for (int64_t k = 0; k < p; k++)
            for (int64_t r = 0; r < width; r++) {
                REAL v = unscale * panels[k * width + r];
                sum[r] = ROP(fma)(v, v, sum[r]);
            }
        for (int64_t r = 0; r < width; r++)
            norms[r0 + r] = r0 + r >= rows ? (REAL)INFINITY : sum[r] < LARGEST_NORM ? sum[r] : (REAL)NAN;
    }
}

static void NAME(pack_rows)(const REAL *x, int64_t rows, int64_t p, const REAL *shift, REAL *panels, REAL *norms)
{
    NAME(pack_panels)(x, rows, p, shift, p <= DIRECT_UP_TO ? 1 : -2, MR, panels, norms);
}

static void NAME(pack_columns)(const REAL *y, int64_t rows, int64_t p, const REAL *shift, REAL *panels, REAL *norms)
{
    NAME(pack_panels)(y, rows, p, shift, 1, NR, panels, norms);
}

/* Rows per block: what is packed of them fills a good part of a 512 KB L2. */
static int64_t NAME(block_rows)(int64_t p)
{
    int64_t fit = (int64_t)(192 * 1024 / sizeof(REAL)) / mf_min(p, PANEL_STEP);
    return mf_max(1, mf_min(fit, MF_LIMIT(96, 12)) / MR) * MR;
}

/* Columns per chunk: about 4 MB of them, which rest in L3 while blocks of rows pass. */
static int64_t NAME(chunk_columns)(int64_t p)
{
    int64_t fit = (int64_t)(4 * 1024 * 1024 / sizeof(REAL)) / p;
    return mf_max(MF_LIMIT(8, 4), mf_min(fit, MF_LIMIT(4096, 64)) / NR) * NR;
}

/* Columns that are swept together when p needs several passes. */
#define SWEEP_PANELS MF_LIMIT(16, 2)

typedef void NAME(tile_done)(void *context, int64_t row, int64_t column, NAME(acc) *t);

/* All tiles of row panels times column panels; `done` gets each finished one with its first row and column.
 * `partial` holds sums between passes: row_panels * SWEEP_PANELS tiles. A pass continues the sum of the one before or,
 * with `separate`, starts at zero and is added to it: other bits, shorter chains of rounding. With few features
 * tiles hold distances already (not with `separate`). */
MF_INLINE void NAME(sweep)(const REAL *rows, int64_t row_panels, const REAL *columns, int64_t column_panels, int64_t p,
                           int separate, NAME(acc) *partial, NAME(tile_done) *done, void *context)
{
    if (p <= DIRECT_UP_TO && !separate) {
        for (int64_t j = 0; j < column_panels; j++)
            for (int64_t i = 0; i < row_panels; i++) {
                NAME(acc) t;
                NAME(tile_direct)(p, rows + i * p * MR, columns + j * p * NR, &t);
                done(context, i * MR, j * NR, &t);
            }
        return;
    }
    for (int64_t j0 = 0; j0 < column_panels; j0 += SWEEP_PANELS) {
        int64_t j1 = mf_min(j0 + SWEEP_PANELS, column_panels);
        for (int64_t k0 = 0; k0 < p; k0 += PANEL_STEP) {
            int64_t step = mf_min(PANEL_STEP, p - k0);
            for (int64_t j = j0; j < j1; j++) {
                for (int64_t i = 0; i < row_panels; i++) {
                    NAME(acc) t, *rest = partial + i * SWEEP_PANELS + (j - j0);
                    NAME(tile)(step, rows + (i * p + k0) * MR, columns + (j * p + k0) * NR,
                               k0 && !separate ? rest : NULL, &t);
                    if (k0 && separate)
                        for (int r = 0; r < MR; r++) t.c[r][0] += rest->c[r][0], t.c[r][1] += rest->c[r][1];
                    if (k0 + step < p) *rest = t;
                    else done(context, i * MR, j * NR, &t);
                }
            }
        }
    }
}

/* |x - y|^2 without cancellation, lanes in a fixed order. */
static REAL NAME(direct)(const REAL *x, const REAL *y, int64_t p)
{
    V sum = {0};
    int64_t k = 0;
    for (; k + LANES <= p; k += LANES) {
        V d = VOP(load)(x + k) - VOP(load)(y + k);
        sum = VOP(fma)(d, d, sum);
    }
    REAL total = 0;
    for (; k < p; k++) total = ROP(fma)(x[k] - y[k], x[k] - y[k], total);
    for (int l = 0; l < LANES; l++) total += sum[l];
    return total;
}

/* Where |x|^2 + |y|^2 - 2x.y, with `both` the sum of the norms, has lost too many digits to cancellation or underflow,
 * or might overflow. */
#undef NEAR
#define NEAR (sizeof(REAL) == 4 ? (REAL)1e-2 : (REAL)1e-3)
MF_INLINE VOP(mask) NAME(inexact)(V square, V both, int64_t p)
{
    /* Below `small` products of single features may be subnormal and round in their own way. */
    REAL tiny = sizeof(REAL) == 4 ? 0x1p-126f : (REAL)0x1p-1022, eps = sizeof(REAL) == 4 ? 0x1p-23f : (REAL)0x1p-52;
    V near = VOP(set)(NEAR), small = VOP(set)((REAL)p * 8 * (tiny / eps));
    return ~(VOP(mask))(square >= VOP(fma)(near, both, small));
}

/* Tiles of products turned into distances, where they are not yet: |x|^2 + |y|^2 - 2x.y, and where that is inexact the
 * sum of squared differences; which of the two depends on the pair alone. x are the rows of the tile, y its columns; n
 * and m how many of them there are. */
MF_INLINE void NAME(finish_distances)(NAME(acc) *t, const REAL *x, const REAL *x_norms, int64_t n, const REAL *y,
                                      const REAL *y_norms, int64_t m, int64_t p)
{
    if (p <= DIRECT_UP_TO) return;
    V ny[2] = {VOP(load)(y_norms), VOP(load)(y_norms + LANES)};
    VOP(mask) poor = {0};
    for (int i = 0; i < MR; i++)
        for (int v = 0; v < 2; v++) {
            V both = x_norms[i] + ny[v];
            t->c[i][v] += both;
            poor |= NAME(inexact)(t->c[i][v], both, p);
        }
    if (!VOP(any)(poor)) return;
    for (int i = 0; i < MR && i < n; i++)
        for (int v = 0; v < 2; v++)
            for (unsigned bits = VOP(bits)(NAME(inexact)(t->c[i][v], x_norms[i] + ny[v], p)); bits; bits &= bits - 1) {
                int lane = __builtin_ctz(bits), j = v * LANES + lane;
                if (j < m) t->c[i][v][lane] = NAME(direct)(x + i * p, y + j * p, p);
            }
}
