/* geodesic_rows and landmark_map: distances along the manifold from new points, by the shortest way over one of the
 * point's neighbours, and Landmark Isomap's map of them.
 * Accumulator: double; landmark_map has one vector of accumulators per output that runs over the columns in order.
 * Geodesics of either dtype are read where they lie. Workspace: landmark_map needs up to 1024 x d vectors per thread.
 * Template. Needs: base/dtype_impl.h. */

#undef GEODESIC_PART
/* Columns at a time: those of 2 x 10 neighbours stay in the first cache, measured. */
#define GEODESIC_PART MF_LIMIT(128, 8)

/* Four vectors of doubles. */
MF_INLINE void NAME(geodesic_load)(const REAL *from, vf64 *to)
{
    enum { DOUBLES = MF_VBYTES / (int)sizeof(double) };
#if MF_F32
    typedef float half __attribute__((vector_size(MF_VBYTES / 2), aligned(4), may_alias));
    for (int v = 0; v < 4; v++) to[v] = __builtin_convertvector(*(const half *)(from + v * DOUBLES), vf64);
#else
    for (int v = 0; v < 4; v++) to[v] = vf64_load(from + v * DOUBLES);
#endif
}

/* to[c] = min_j distances[j] + geodesics[neighbors[j], c] for `columns` columns. Those of `next` neighbours (NULL: of
 * none) are fetched meanwhile: rows are scattered, and the processor does not see them coming. */
MF_INLINE void NAME(geodesic_part)(const double *distances, const int64_t *neighbors, const int64_t *next, int64_t k,
                                   const REAL *geodesics, int64_t stride, int64_t columns, double *to)
{
    enum { DOUBLES = MF_VBYTES / (int)sizeof(double), STEP = 4 * DOUBLES };
    int64_t c = 0;
    for (; c + STEP <= columns; c += STEP) {
        vf64 least[4], way[4];
        for (int v = 0; v < 4; v++) least[v] = vf64_set((double)INFINITY);
        for (int64_t j = 0; j < k; j++) {
            NAME(geodesic_load)(geodesics + neighbors[j] * stride + c, way);
            for (int line = 0; next && line < STEP * (int)sizeof(REAL); line += 64)
                __builtin_prefetch((const char *)(geodesics + next[j] * stride + c) + line);
            vf64 first = vf64_set(distances[j]);
            for (int v = 0; v < 4; v++) least[v] = vf64_min(way[v] + first, least[v]);
        }
        for (int v = 0; v < 4; v++) vf64_store(to + c + v * DOUBLES, least[v]);
    }
    for (; c < columns; c++) {
        double least = (double)INFINITY;
        for (int64_t j = 0; j < k; j++) {
            double way = (double)geodesics[neighbors[j] * stride + c] + distances[j];
            least = way < least ? way : least;
        }
        to[c] = least;
    }
}

static mf_status NAME(geodesic_rows)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                     const REAL *geodesics, int64_t columns, int narrow, void *out, mf_run *run)
{
    enum { BLOCK = MF_LIMIT(64, 3) };
#pragma omp parallel for schedule(static) num_threads(run->n_threads)
    for (int64_t block = 0; block < mf_ceil_div(m, BLOCK); block++) {
        if (mf_poll(run)) continue;
        for (int64_t i = block * BLOCK; i < mf_min((block + 1) * BLOCK, m); i++)
            for (int64_t c = 0; c < columns; c += GEODESIC_PART) {
                double part[GEODESIC_PART];
                int64_t width = mf_min(GEODESIC_PART, columns - c), at = i * columns + c;
                const int64_t *next = i + 1 < m ? neighbors + (i + 1) * k : NULL;
                NAME(geodesic_part)(distances + i * k, neighbors + i * k, next, k, geodesics + c, columns, width, part);
                if (narrow)
                    for (int64_t j = 0; j < width; j++) ((float *)out)[at + j] = (float)part[j];
                else memcpy((double *)out + at, part, (size_t)width * sizeof(double));
            }
    }
    return run->stop ? MF_INTERRUPTED : MF_OK;
}

/* out[i, :] = offset - 1/2 sum_c (delta_c^2 - mean_sq[c]) projection[c, :], delta the row of `geodesic_rows` that is
 * never stored whole. Each output has one vector of accumulators that runs over the columns in order. */
static mf_status NAME(landmark_map)(const double *distances, const int64_t *neighbors, int64_t m, int64_t k,
                                    const REAL *geodesics, int64_t columns, const double *mean_sq,
                                    const double *projection, int64_t d, const double *offset, double *out,
                                    mf_run *run)
{
    enum { LARGEST = MF_LIMIT(1024, 2), DOUBLES = MF_VBYTES / (int)sizeof(double) };
    int64_t padded = mf_round_up(columns, DOUBLES), block_rows = mf_min(LARGEST, mf_ceil_div(m, run->n_threads));
    double *transposed = mf_alloc(d * padded, sizeof(double)); /* projection by output; zeros at the end */
    int starved = !transposed;
    if (starved) return MF_NO_MEMORY;
    for (int64_t o = 0; o < d; o++)
        for (int64_t c = 0; c < padded; c++) transposed[o * padded + c] = c < columns ? projection[c * d + o] : 0;
#pragma omp parallel num_threads(run->n_threads) reduction(| : starved)
    {
        vf64 *sums = mf_alloc(block_rows * d, sizeof(vf64));
        starved = !sums;
        if (starved) mf_stop(run);
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < mf_ceil_div(m, block_rows); block++) {
            if (mf_poll(run)) continue;
            int64_t begin = block * block_rows, end = mf_min(begin + block_rows, m);
            memset(sums, 0, (size_t)(block_rows * d) * sizeof(vf64));
            for (int64_t c = 0; c < columns; c += GEODESIC_PART) {
                int64_t width = mf_min(GEODESIC_PART, columns - c), vectors = mf_ceil_div(width, DOUBLES);
                for (int64_t i = begin; i < end; i++) {
                    double part[GEODESIC_PART];
                    const int64_t *next = i + 1 < end ? neighbors + (i + 1) * k : NULL;
                    NAME(geodesic_part)(distances + i * k, neighbors + i * k, next, k, geodesics + c, columns, width,
                                        part);
                    for (int64_t j = 0; j < width; j++) part[j] = part[j] * part[j] - mean_sq[c + j];
                    for (int64_t j = width; j < vectors * DOUBLES; j++) part[j] = 0;
                    for (int64_t o = 0; o < d; o++) {
                        vf64 sum = sums[(i - begin) * d + o];
                        for (int64_t v = 0; v < vectors; v++)
                            sum = vf64_fma(vf64_load(part + v * DOUBLES),
                                           vf64_load(transposed + o * padded + c + v * DOUBLES), sum);
                        sums[(i - begin) * d + o] = sum;
                    }
                }
            }
            for (int64_t i = begin; i < end; i++)
                for (int64_t o = 0; o < d; o++) {
                    double sum = 0;
                    for (int v = 0; v < DOUBLES; v++) sum += sums[(i - begin) * d + o][v];
                    out[i * d + o] = offset[o] - 0.5 * sum;
                }
        }
        mf_release(sums);
    }
    mf_release(transposed);
    return starved ? MF_NO_MEMORY : run->stop ? MF_INTERRUPTED : MF_OK;
}
