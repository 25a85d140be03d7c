/* affine: x w + b, the last step of every linear transform.
 * Accumulator: one per output, in the dtype, over the p features in order; b is added last.
 * Workspace: w packed in panels of 1 to 3 vectors; rows of x are read where they lie.
 * Template. Needs: base/dtype_impl.h. */

#undef AFFINE_TILE
#define AFFINE_TILE(ROWS, VECTORS)                                                                              \
    MF_INLINE void NAME(affine_##ROWS##x##VECTORS)(const REAL *restrict x, int64_t p, const REAL *restrict w,   \
                                                   V c[ROWS][VECTORS])                                          \
    {                                                                                                           \
        for (int i = 0; i < ROWS; i++)                                                                          \
            for (int v = 0; v < VECTORS; v++) c[i][v] = VOP(set)(0);                                            \
        for (int64_t k = 0; k < p; k++, w += VECTORS * LANES) {                                                 \
            V b[VECTORS];                                                                                       \
            for (int v = 0; v < VECTORS; v++) b[v] = VOP(load)(w + v * LANES);                                  \
            for (int i = 0; i < ROWS; i++) {                                                                    \
                V s = VOP(set)(x[i * p + k]);                                                                   \
                for (int v = 0; v < VECTORS; v++) c[i][v] = VOP(fma)(s, b[v], c[i][v]);                         \
            }                                                                                                   \
        }                                                                                                       \
    }
AFFINE_TILE(4, 3)
AFFINE_TILE(4, 2)
AFFINE_TILE(4, 1)
AFFINE_TILE(1, 3)
AFFINE_TILE(1, 2)
AFFINE_TILE(1, 1)

MF_INLINE void NAME(affine_tile)(int rows, int vectors, const REAL *x, int64_t p, const REAL *w, V *c)
{
    if (rows == 4) {
        if (vectors == 3) NAME(affine_4x3)(x, p, w, (V(*)[3])c);
        else if (vectors == 2) NAME(affine_4x2)(x, p, w, (V(*)[2])c);
        else NAME(affine_4x1)(x, p, w, (V(*)[1])c);
    } else {
        if (vectors == 3) NAME(affine_1x3)(x, p, w, (V(*)[3])c);
        else if (vectors == 2) NAME(affine_1x2)(x, p, w, (V(*)[2])c);
        else NAME(affine_1x1)(x, p, w, (V(*)[1])c);
    }
}

static mf_status NAME(affine)(const REAL *x, int64_t n, int64_t p, const REAL *w, int64_t d, const REAL *b, REAL *out,
                       mf_run *run)
{
    enum { BLOCK = MF_LIMIT(256, 5), WIDEST = 3 };
    if (n == 0 || d == 0) return MF_OK;
    int64_t vectors = mf_ceil_div(d, LANES);
    REAL *packed = mf_alloc(vectors * LANES * p, sizeof(REAL));
    if (!packed) return MF_NO_MEMORY;
    for (int64_t v0 = 0; v0 < vectors; v0 += WIDEST) {
        int64_t width = mf_min(WIDEST, vectors - v0) * LANES;
        REAL *panel = packed + v0 * LANES * p;
        for (int64_t k = 0; k < p; k++)
            for (int64_t j = 0; j < width; j++)
                panel[k * width + j] = v0 * LANES + j < d ? w[k * d + v0 * LANES + j] : 0;
    }
    int threads = mf_worth_threads(n * p * d, run);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t block = 0; block < mf_ceil_div(n, BLOCK); block++) {
        if (mf_poll(run)) continue;
        int64_t end = mf_min((block + 1) * BLOCK, n);
        for (int64_t v0 = 0; v0 < vectors; v0 += WIDEST) {
            int wide = (int)mf_min(WIDEST, vectors - v0);
            int64_t j0 = v0 * LANES, columns = mf_min(wide * LANES, d - j0);
            for (int64_t i = block * BLOCK; i < end;) {
                int rows = end - i >= 4 ? 4 : 1;
                V c[4 * WIDEST];
                NAME(affine_tile)(rows, wide, x + i * p, p, packed + j0 * p, c);
                for (int r = 0; r < rows; r++)
                    for (int64_t j = 0; j < columns; j++) {
                        REAL value = c[r * wide + j / LANES][j % LANES];
                        out[(i + r) * d + j0 + j] = b ? value + b[j0 + j] : value;
                    }
                i += rows;
            }
        }
    }
    mf_release(packed);
    return run->stop ? MF_INTERRUPTED : MF_OK;
}
