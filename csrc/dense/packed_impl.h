/* Rows packed into panels once and for all: what sq_distances and rbf_apply read, and few rows against them.
 * Accumulator and order: those of the tile, operation by operation, so every output has the same bits.
 * Workspace: packed_open allocates it, packed_close releases it.
 * Template. Needs: base/exp.h, dense/few_rows_impl.h. */

#undef PANEL_VECTORS
#undef PANELS_AT_ONCE
#define PANEL_VECTORS(width) (((width) + LANES - 1) / LANES) /* the last one may reach into the next feature */
#define PANELS_AT_ONCE(width) (PANEL_VECTORS(width) == 1 ? 8 : 4) /* sums that hide the latency of the multiply-add */

typedef struct {
    mf_prepared head;
    const REAL *rows; /* as they came: distances that cancellation would spoil are summed from these */
    int64_t m, p, width;
    REAL *memory, *shift, *panels, *norms; /* [panel][p][width], missing rows 0 with norm +inf */
} NAME(packed);

static void NAME(packed_close)(mf_prepared *self) { mf_release(((NAME(packed) *)self)->memory); }

/* Panels of `width` rows: NR for columns of the tile, MR for its rows, which carry the factor -2. */
static mf_status NAME(packed_open)(NAME(packed) *s, const REAL *rows, int64_t m, int64_t p, int64_t width, mf_run *run)
{
    int64_t panels = mf_ceil_div(m, width), room = panels * width, size = room * p + LANES;
    int64_t first = mf_round_up(p, MF_ALIGN), second = mf_round_up(size, MF_ALIGN), all = first + second + room + LANES;
    *s = (NAME(packed)){{NAME(packed_close), all * (int64_t)sizeof(REAL)}, rows, m, p, width,
                        mf_alloc(all, sizeof(REAL)), NULL, NULL, NULL};
    if (!s->memory) return MF_NO_MEMORY;
    s->shift = s->memory, s->panels = s->shift + first, s->norms = s->panels + second;
    for (int l = 0; l < LANES; l++) s->panels[room * p + l] = s->norms[room + l] = 0;
    NAME(find_shift)(rows, m, p, s->shift);
    int threads = mf_worth_threads(m * p, run);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t j = 0; j < panels; j++) {
        if (mf_poll(run)) continue; /* fresh memory can take seconds to be mapped on a busy machine */
        int64_t count = mf_min(width, m - j * width);
        if (width == NR)
            NAME(pack_columns)(rows + j * NR * p, count, p, s->shift, s->panels + j * NR * p, s->norms + j * NR);
        else NAME(pack_rows)(rows + j * MR * p, count, p, s->shift, s->panels + j * MR * p, s->norms + j * MR);
    }
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

/* Few rows as the panels need them: shifted, with the factor that the panels lack, and their norms. */
static int NAME(few_rows_against)(NAME(few_rows) *few, const NAME(packed) *s, const REAL *x, int64_t n)
{
    few->p = s->p, few->shift = s->shift;
    few->memory = few->packed = mf_alloc(n * s->p + n, sizeof(REAL));
    if (!few->memory) return 0;
    few->norms = few->packed + n * s->p;
    NAME(pack_panels)(x, n, s->p, s->shift, s->p <= DIRECT_UP_TO || s->width == MR ? 1 : -2, 1, few->packed, few->norms);
    return 1;
}

/* sum[panel][vector] = x.y, or |x - y|^2 (direct), for `count` panels. */
MF_INLINE void NAME(panel_sums)(int direct, int width, int count, const REAL *restrict x, const REAL *restrict panels,
                                int64_t p, V *sum)
{
    for (int s = 0; s < count * PANEL_VECTORS(width); s++) sum[s] = VOP(set)(0);
    for (int64_t k = 0; k < p; k++) {
        V a = VOP(set)(x[k]);
        for (int g = 0; g < count; g++)
            for (int v = 0; v < PANEL_VECTORS(width); v++) {
                V b = VOP(load)(panels + (g * p + k) * width + v * LANES), d = direct ? a - b : b;
                sum[g * PANEL_VECTORS(width) + v] = VOP(fma)(direct ? d : a, d, sum[g * PANEL_VECTORS(width) + v]);
            }
    }
}

/* Distances of one row x to `count` panels from `panel` on, or their exponentials; `out` gets whole vectors. */
MF_INLINE void NAME(panel_distances)(int width, int count, const NAME(packed) *s, const REAL *x, const REAL *few,
                                     REAL norm, int64_t panel, REAL inv_sigma2, REAL *out)
{
    V sum[8 * 4];
    const REAL *panels = s->panels + panel * width * s->p;
    if (s->p <= DIRECT_UP_TO) NAME(panel_sums)(1, width, count, few, panels, s->p, sum);
    else NAME(panel_sums)(0, width, count, few, panels, s->p, sum);
    for (int g = 0; g < count; g++)
        for (int v = 0; v < PANEL_VECTORS(width); v++) {
            V made = sum[g * PANEL_VECTORS(width) + v];
            int64_t j = (panel + g) * width + v * LANES;
            if (s->p > DIRECT_UP_TO) {
                V both = norm + VOP(load)(s->norms + j);
                made += both;
                unsigned bits = VOP(bits)(NAME(inexact)(made, both, s->p));
                for (; bits; bits &= bits - 1) {
                    int lane = __builtin_ctz(bits);
                    if (v * LANES + lane < width && j + lane < s->m)
                        made[lane] = NAME(direct)(x, s->rows + (j + lane) * s->p, s->p);
                }
            }
            if (inv_sigma2 > 0) made = NAME(exp)(made * -inv_sigma2);
            VOP(store)(out + g * width + v * LANES, made);
        }
}

MF_INLINE void NAME(panel_block)(int width, const NAME(packed) *s, const REAL *x, const REAL *few, REAL norm,
                                 int64_t begin, int64_t end, REAL inv_sigma2, REAL *out)
{
    int64_t panel = begin / width, stop = mf_ceil_div(end, width), first = panel;
    for (; panel + PANELS_AT_ONCE(width) <= stop; panel += PANELS_AT_ONCE(width))
        NAME(panel_distances)(width, PANELS_AT_ONCE(width), s, x, few, norm, panel, inv_sigma2,
                              out + (panel - first) * width);
    for (; panel < stop; panel++)
        NAME(panel_distances)(width, 1, s, x, few, norm, panel, inv_sigma2, out + (panel - first) * width);
}

/* out[j - begin] = |x - y_j|^2 of the i-th row x, or exp(-that * inv_sigma2), for j from begin, where a panel begins,
 * to end. Room for whole panels and a vector. */
static void NAME(packed_distances)(const NAME(packed) *s, const NAME(few_rows) *few, const REAL *x, int64_t i,
                                   int64_t begin, int64_t end, REAL inv_sigma2, REAL *out)
{
    const REAL *row = x + i * s->p, *packed = few->packed + i * s->p;
    if (s->width == NR) NAME(panel_block)(NR, s, row, packed, few->norms[i], begin, end, inv_sigma2, out);
    else NAME(panel_block)(MR, s, row, packed, few->norms[i], begin, end, inv_sigma2, out);
}
