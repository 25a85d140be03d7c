/* Distances from a few rows to many that are read where they lie: for few rows, packing all others costs more than it
 * saves. Vectors of consecutive rows are transposed in registers.
 * Accumulator and order: those of the tile, operation by operation, so every output has the same bits.
 * Workspace: the few rows, packed (few_rows_open allocates it, the caller releases `memory`).
 * Template. Needs: base/exp.h, dense/tile_impl.h. */

#undef FEW_ROWS_MOST
#undef FEW_ROWS_VECTORS
#undef FEW_ROWS_GROUP
#undef FEW_ROWS_BLOCK
#define FEW_ROWS_MOST 4     /* beyond, tiles are faster */
#define FEW_ROWS_VECTORS 4 /* with two sums each: what hides the latency of the multiply-add */
#define FEW_ROWS_GROUP (FEW_ROWS_VECTORS * LANES)
#define FEW_ROWS_BLOCK MF_LIMIT(192, 48) /* rows of one task, a multiple of every group */

/* The few rows: shifted, packed as for the tile, with their norms. */
typedef struct {
    REAL *memory, *shift, *packed, *norms;
    int64_t p;
} NAME(few_rows);

/* Whether the few-row kernels take n rows against m. */
static int NAME(are_few)(int64_t n, int64_t m) { return n <= FEW_ROWS_MOST && m >= FEW_ROWS_GROUP; }

static int NAME(few_rows_open)(NAME(few_rows) *s, const REAL *x, int64_t n, const REAL *y, int64_t m, int64_t p)
{
    s->p = p;
    s->memory = mf_alloc((n + 1) * p + n, sizeof(REAL));
    if (!s->memory) return 0;
    s->shift = s->memory, s->packed = s->shift + p, s->norms = s->packed + n * p;
    NAME(find_shift)(y, m, p, s->shift);
    NAME(pack_panels)(x, n, p, s->shift, p <= DIRECT_UP_TO ? 1 : -2, 1, s->packed, s->norms);
    return 1;
}

/* One step of the sums: feature k of a vector of rows. */
MF_INLINE void NAME(few_rows_step)(int direct, REAL x, REAL shift, V y, V *sum, V *norm)
{
    V v = direct ? x - y : y - shift;
    *sum = VOP(fma)(direct ? v : VOP(set)(x), v, *sum);
    if (!direct) *norm = VOP(fma)(v, v, *norm);
}

/* sum[g] = x.y (or |x - y|^2, direct) and norm[g] = |y|^2 for FEW_ROWS_VECTORS vectors of consecutive rows y. */
MF_INLINE void NAME(few_rows_sums)(int direct, const REAL *restrict x, const REAL *restrict shift,
                                   const REAL *restrict y, int64_t p, V *sum, V *norm)
{
    for (int g = 0; g < FEW_ROWS_VECTORS; g++) sum[g] = norm[g] = VOP(set)(0);
    int64_t k = 0;
    for (; k + LANES <= p; k += LANES)
        for (int g = 0; g < FEW_ROWS_VECTORS; g++) {
            V part[LANES];
            for (int l = 0; l < LANES; l++) part[l] = VOP(load)(y + (g * LANES + l) * p + k);
            VOP(transpose)(part);
            for (int l = 0; l < LANES; l++)
                NAME(few_rows_step)(direct, x[k + l], shift[k + l], part[l], &sum[g], &norm[g]);
        }
    for (; k < p; k++)
        for (int g = 0; g < FEW_ROWS_VECTORS; g++) {
            V part;
            for (int l = 0; l < LANES; l++) part[l] = y[(g * LANES + l) * p + k];
            NAME(few_rows_step)(direct, x[k], shift[k], part, &sum[g], &norm[g]);
        }
}

/* out[j - begin] = |x - y_j|^2 of the i-th row x, or exp(-that * inv_sigma2), for j from begin to end.
 * Needs m >= FEW_ROWS_GROUP. */
static void NAME(few_rows_distances)(const NAME(few_rows) *s, const REAL *x, int64_t i, const REAL *y, int64_t m,
                                     int64_t begin, int64_t end, REAL inv_sigma2, REAL *out)
{
    int64_t p = s->p;
    const REAL *packed = s->packed + i * p;
    for (int64_t j = begin; j < end; j += FEW_ROWS_GROUP) {
        int64_t first = mf_min(j, m - FEW_ROWS_GROUP); /* the last group overlaps the one before it */
        V sum[FEW_ROWS_VECTORS], norm[FEW_ROWS_VECTORS];
        REAL made[FEW_ROWS_GROUP];
        if (p <= DIRECT_UP_TO) NAME(few_rows_sums)(1, packed, s->shift, y + first * p, p, sum, norm);
        else NAME(few_rows_sums)(0, packed, s->shift, y + first * p, p, sum, norm);
        for (int g = 0; g < FEW_ROWS_VECTORS; g++) {
            if (p > DIRECT_UP_TO) {
                V both = s->norms[i] + NAME(safe_norms)(norm[g]);
                sum[g] += both;
                for (unsigned bits = VOP(bits)(NAME(inexact)(sum[g], both, p)); bits; bits &= bits - 1) {
                    int lane = __builtin_ctz(bits);
                    sum[g][lane] = NAME(direct)(x + i * p, y + (first + g * LANES + lane) * p, p);
                }
            }
            if (inv_sigma2 > 0) sum[g] = NAME(exp)(sum[g] * -inv_sigma2);
            VOP(store)(made + g * LANES, sum[g]);
        }
        size_t count = (size_t)mf_min(FEW_ROWS_GROUP - (j - first), end - j);
        memcpy(out + (j - begin), made + (j - first), count * sizeof(REAL));
    }
}
