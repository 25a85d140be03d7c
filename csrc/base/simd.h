/* Vectors of one instruction set, in GCC/Clang vector extensions: the compiler lowers them to SSE2, AVX2, AVX-512 or
 * NEON. The only intrinsics of the project stand here, behind their guards. Rounding: a multiply-add is always written
 * as v*_fma (built with -ffp-contract=off): one rounding with AVX2, AVX-512 and NEON, two with SSE2. Scalar *_fma round
 * as a lane of a vector does.
 *
 * MF_VBYTES is the width of a vector in bytes. A build may define it: the level `wide` has the width of AVX-512 in
 * instructions that every processor runs, so that code for wide vectors can be tested anywhere. */
#ifndef MF_BASE_SIMD_H
#define MF_BASE_SIMD_H

#include <stdint.h>
#include <string.h>

#ifdef MF_VBYTES
#define MF_FMA 0
#elif defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#define MF_VBYTES 64
#define MF_FMA 1
#define MF_AVX512 1
#define MF_AVX 1
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define MF_VBYTES 32
#define MF_FMA 1
#define MF_AVX2 1
#define MF_AVX 1
#elif defined(__aarch64__)
#include <arm_neon.h>
#define MF_VBYTES 16
#define MF_FMA 1
#define MF_NEON 1
#else
#if defined(__SSE2__)
#include <emmintrin.h>
#define MF_SSE2 1
#endif
#define MF_VBYTES 16
#define MF_FMA 0
#endif

#define MF_LANES32 ((int)(MF_VBYTES / sizeof(float)))
#define MF_LANES64 ((int)(MF_VBYTES / sizeof(double)))

#define MF_WIDEST_PANEL (2 * MF_LANES32) /* rows that a packed panel holds at most */

#define MF_INLINE static inline __attribute__((always_inline))

#define MF_DEFINE_VECTOR(V, REAL, INT)                                                                         \
    typedef REAL V __attribute__((vector_size(MF_VBYTES)));                                                    \
    typedef REAL V##_loose __attribute__((vector_size(MF_VBYTES), aligned(sizeof(REAL)), may_alias));          \
    typedef INT V##_mask __attribute__((vector_size(MF_VBYTES)));                                              \
    MF_INLINE V V##_load(const REAL *p) { return *(const V##_loose *)p; }                                      \
    MF_INLINE void V##_store(REAL *p, V v) { *(V##_loose *)p = v; }                                            \
    MF_INLINE V V##_set(REAL a) { return a - (V){0}; }                                                         \
    MF_INLINE V V##_select(V##_mask m, V a, V b) { return (V)((m & (V##_mask)a) | (~m & (V##_mask)b)); }

MF_DEFINE_VECTOR(vf32, float, int32_t)
MF_DEFINE_VECTOR(vf64, double, int64_t)

/* Written for any width: lane by lane, and the larger and the smaller of two by a comparison. */
#define MF_PLAIN_EXTREMES(V)                                                                                   \
    MF_INLINE V V##_max(V a, V b) { return V##_select(a > b, a, b); }                                          \
    MF_INLINE V V##_min(V a, V b) { return V##_select(a < b, a, b); }
#define MF_PLAIN_BITS(V, LANES)                                                                                \
    MF_INLINE unsigned V##_bits(V##_mask m)                                                                    \
    {                                                                                                          \
        unsigned bits = 0;                                                                                     \
        for (int l = 0; l < (LANES); l++) bits |= (unsigned)(m[l] & 1) << l;                                   \
        return bits;                                                                                           \
    }
#define MF_PLAIN_ANY(V) MF_INLINE int V##_any(V##_mask m) { return V##_bits(m) != 0; }
#define MF_PLAIN_TRANSPOSE(V, LANES)                                                                           \
    MF_INLINE void V##_transpose(V *r)                                                                         \
    {                                                                                                          \
        V from[LANES];                                                                                         \
        memcpy(from, r, sizeof(from));                                                                         \
        for (int i = 0; i < (LANES); i++)                                                                      \
            for (int l = 0; l < (LANES); l++) r[i][l] = from[l][i];                                            \
    }

/* max and min return the second operand where the two are equal or either is NaN. bits: one per lane of a mask. */
#ifdef MF_AVX512
MF_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c) { return (vf32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
MF_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c) { return (vf64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
MF_INLINE vf64 vf64_sqrt(vf64 a) { return (vf64)_mm512_sqrt_pd((__m512d)a); }
MF_INLINE vf32 vf32_max(vf32 a, vf32 b) { return (vf32)_mm512_max_ps((__m512)a, (__m512)b); }
MF_INLINE vf64 vf64_max(vf64 a, vf64 b) { return (vf64)_mm512_max_pd((__m512d)a, (__m512d)b); }
MF_INLINE vf32 vf32_min(vf32 a, vf32 b) { return (vf32)_mm512_min_ps((__m512)a, (__m512)b); }
MF_INLINE vf64 vf64_min(vf64 a, vf64 b) { return (vf64)_mm512_min_pd((__m512d)a, (__m512d)b); }
MF_INLINE unsigned vf32_bits(vf32_mask m) { return (unsigned)_mm512_movepi32_mask((__m512i)m); }
MF_INLINE unsigned vf64_bits(vf64_mask m) { return (unsigned)_mm512_movepi64_mask((__m512i)m); }
MF_PLAIN_ANY(vf32)
MF_PLAIN_ANY(vf64)
#elif defined(MF_AVX2)
MF_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c) { return (vf32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
MF_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c) { return (vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
MF_INLINE vf64 vf64_sqrt(vf64 a) { return (vf64)_mm256_sqrt_pd((__m256d)a); }
MF_INLINE vf32 vf32_max(vf32 a, vf32 b) { return (vf32)_mm256_max_ps((__m256)a, (__m256)b); }
MF_INLINE vf64 vf64_max(vf64 a, vf64 b) { return (vf64)_mm256_max_pd((__m256d)a, (__m256d)b); }
MF_INLINE vf32 vf32_min(vf32 a, vf32 b) { return (vf32)_mm256_min_ps((__m256)a, (__m256)b); }
MF_INLINE vf64 vf64_min(vf64 a, vf64 b) { return (vf64)_mm256_min_pd((__m256d)a, (__m256d)b); }
MF_INLINE int vf32_any(vf32_mask m) { return _mm256_movemask_epi8((__m256i)m) != 0; }
MF_INLINE int vf64_any(vf64_mask m) { return _mm256_movemask_epi8((__m256i)m) != 0; }
MF_INLINE unsigned vf32_bits(vf32_mask m) { return (unsigned)_mm256_movemask_ps((__m256)m); }
MF_INLINE unsigned vf64_bits(vf64_mask m) { return (unsigned)_mm256_movemask_pd((__m256d)m); }
#elif defined(MF_NEON)
MF_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c)
{
    return (vf32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
MF_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c)
{
    return (vf64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
MF_INLINE vf64 vf64_sqrt(vf64 a) { return (vf64)vsqrtq_f64((float64x2_t)a); }
MF_PLAIN_EXTREMES(vf32)
MF_PLAIN_EXTREMES(vf64)
MF_INLINE int vf32_any(vf32_mask m) { return vmaxvq_u32((uint32x4_t)m) != 0; }
MF_INLINE int vf64_any(vf64_mask m) { return vmaxvq_u32((uint32x4_t)m) != 0; }
MF_PLAIN_BITS(vf32, MF_LANES32)
MF_PLAIN_BITS(vf64, MF_LANES64)
#else
MF_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c) { return a * b + c; }
MF_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c) { return a * b + c; }
#ifdef MF_SSE2
MF_INLINE vf64 vf64_sqrt(vf64 a) { return (vf64)_mm_sqrt_pd((__m128d)a); }
MF_INLINE vf32 vf32_max(vf32 a, vf32 b) { return (vf32)_mm_max_ps((__m128)a, (__m128)b); }
MF_INLINE vf64 vf64_max(vf64 a, vf64 b) { return (vf64)_mm_max_pd((__m128d)a, (__m128d)b); }
MF_INLINE vf32 vf32_min(vf32 a, vf32 b) { return (vf32)_mm_min_ps((__m128)a, (__m128)b); }
MF_INLINE vf64 vf64_min(vf64 a, vf64 b) { return (vf64)_mm_min_pd((__m128d)a, (__m128d)b); }
MF_INLINE int vf32_any(vf32_mask m) { return _mm_movemask_epi8((__m128i)m) != 0; }
MF_INLINE int vf64_any(vf64_mask m) { return _mm_movemask_epi8((__m128i)m) != 0; }
MF_INLINE unsigned vf32_bits(vf32_mask m) { return (unsigned)_mm_movemask_ps((__m128)m); }
MF_INLINE unsigned vf64_bits(vf64_mask m) { return (unsigned)_mm_movemask_pd((__m128d)m); }
#else
MF_INLINE vf64 vf64_sqrt(vf64 a)
{
    for (int l = 0; l < MF_LANES64; l++) a[l] = __builtin_sqrt(a[l]);
    return a;
}
MF_PLAIN_EXTREMES(vf32)
MF_PLAIN_EXTREMES(vf64)
MF_PLAIN_BITS(vf32, MF_LANES32)
MF_PLAIN_BITS(vf64, MF_LANES64)
MF_PLAIN_ANY(vf32)
MF_PLAIN_ANY(vf64)
#endif
#endif

/* Comparisons whose answer leaves the vectors at once: one bit per lane where a < b; whether a lane is below 0. */
#ifdef MF_AVX512
MF_INLINE unsigned vf32_below(vf32 a, vf32 b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ); }
MF_INLINE unsigned vf64_below(vf64 a, vf64 b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ); }
#else
MF_INLINE unsigned vf32_below(vf32 a, vf32 b) { return vf32_bits(a < b); }
MF_INLINE unsigned vf64_below(vf64 a, vf64 b) { return vf64_bits(a < b); }
#endif
MF_INLINE int vf32_any_negative(vf32 a) { return vf32_below(a, (vf32){0}) != 0; }
MF_INLINE int vf64_any_negative(vf64 a) { return vf64_below(a, (vf64){0}) != 0; }

/* The lanes of `here` moved up by one, the last lane of `before` first: what a load one entry earlier would give,
 * without waiting for stores that it would straddle. */
#ifdef MF_AVX512
MF_INLINE vf32 vf32_slide(vf32 before, vf32 here)
{
    return (vf32)_mm512_alignr_epi32((__m512i)here, (__m512i)before, 15);
}
MF_INLINE vf64 vf64_slide(vf64 before, vf64 here)
{
    return (vf64)_mm512_alignr_epi64((__m512i)here, (__m512i)before, 7);
}
#elif defined(MF_AVX2)
MF_INLINE vf32 vf32_slide(vf32 before, vf32 here)
{
    __m256i middle = _mm256_permute2x128_si256((__m256i)before, (__m256i)here, 0x21);
    return (vf32)_mm256_alignr_epi8((__m256i)here, middle, 12);
}
MF_INLINE vf64 vf64_slide(vf64 before, vf64 here)
{
    __m256i middle = _mm256_permute2x128_si256((__m256i)before, (__m256i)here, 0x21);
    return (vf64)_mm256_alignr_epi8((__m256i)here, middle, 8);
}
#else
#define MF_PLAIN_SLIDE(V, LANES)                                                                               \
    MF_INLINE V V##_slide(V before, V here)                                                                    \
    {                                                                                                          \
        V moved;                                                                                               \
        for (int l = 0; l < (LANES); l++) moved[l] = l ? here[l - 1] : before[(LANES) - 1];                    \
        return moved;                                                                                          \
    }
MF_PLAIN_SLIDE(vf32, MF_LANES32)
MF_PLAIN_SLIDE(vf64, MF_LANES64)
#endif

/* Takes a pair into a vector of pairs that ascend by key, before the first larger key; the last pair falls out. */
#ifdef MF_AVX512
MF_INLINE void vf32_insert(vf32 *keys, vf32_mask *numbers, float key, int32_t number)
{
    __mmask16 larger = _mm512_cmp_ps_mask((__m512)*keys, _mm512_set1_ps(key), _CMP_GT_OQ);
    __mmask16 kept = (__mmask16)~(larger & -larger); /* all but the place of the first larger key */
    *keys = (vf32)_mm512_mask_expand_ps(_mm512_set1_ps(key), kept, (__m512)*keys);
    *numbers = (vf32_mask)_mm512_mask_expand_epi32(_mm512_set1_epi32(number), kept, (__m512i)*numbers);
}
MF_INLINE void vf64_insert(vf64 *keys, vf64_mask *numbers, double key, int64_t number)
{
    __mmask8 larger = _mm512_cmp_pd_mask((__m512d)*keys, _mm512_set1_pd(key), _CMP_GT_OQ);
    __mmask8 kept = (__mmask8)~(larger & -larger);
    *keys = (vf64)_mm512_mask_expand_pd(_mm512_set1_pd(key), kept, (__m512d)*keys);
    *numbers = (vf64_mask)_mm512_mask_expand_epi64(_mm512_set1_epi64(number), kept, (__m512i)*numbers);
}
#else
#define MF_PLAIN_INSERT(V, REAL, INT)                                                                          \
    MF_INLINE void V##_insert(V *keys, V##_mask *numbers, REAL key, INT number)                                \
    {                                                                                                          \
        V x = V##_set(key), left = V##_slide(V##_set(-(REAL)__builtin_inf()), *keys);                          \
        V##_mask moved = *keys > x, pushed = left > x;                                                         \
        V##_mask from = (V##_mask)V##_slide((V)*numbers, (V)*numbers), own = number - (V##_mask){0};           \
        *keys = V##_select(moved, V##_select(pushed, left, x), *keys);                                         \
        *numbers = (moved & ((pushed & from) | (~pushed & own))) | (~moved & *numbers);                        \
    }
MF_PLAIN_INSERT(vf32, float, int32_t)
MF_PLAIN_INSERT(vf64, double, int64_t)
#endif

/* What the exponential of 64-byte vectors is made of. lookup: the entry of a table of 16 that the lowest four bits of
 * each lane's integer name. scale: a 2^floor(n), rounded once. */
#ifdef MF_AVX512
MF_INLINE vf32 vf32_lookup(const float *table, vf32_mask i)
{
    return (vf32)_mm512_permutexvar_ps((__m512i)i, _mm512_load_ps(table));
}
MF_INLINE vf64 vf64_lookup(const double *table, vf64_mask i)
{
    return (vf64)_mm512_permutex2var_pd(_mm512_load_pd(table), (__m512i)i, _mm512_load_pd(table + 8));
}
MF_INLINE vf32 vf32_scale(vf32 a, vf32 n) { return (vf32)_mm512_scalef_ps((__m512)a, (__m512)n); }
MF_INLINE vf64 vf64_scale(vf64 a, vf64 n) { return (vf64)_mm512_scalef_pd((__m512d)a, (__m512d)n); }
#elif MF_VBYTES == 64
#define MF_PLAIN_LOOKUP(V, REAL, LANES)                                                                        \
    MF_INLINE V V##_lookup(const REAL *table, V##_mask i)                                                      \
    {                                                                                                          \
        V found;                                                                                               \
        for (int l = 0; l < (LANES); l++) found[l] = table[i[l] & 15];                                         \
        return found;                                                                                          \
    }                                                                                                          \
    MF_INLINE V V##_scale(V a, V n)                                                                            \
    {                                                                                                          \
        for (int l = 0; l < (LANES); l++) a[l] = (REAL)__builtin_ldexp(a[l], (int)__builtin_floor(n[l]));      \
        return a;                                                                                              \
    }
MF_PLAIN_LOOKUP(vf32, float, MF_LANES32)
MF_PLAIN_LOOKUP(vf64, double, MF_LANES64)
#endif

/* Four doubles, whatever the width of a vector: for results whose order of summation is defined by fours. */
typedef double vq64 __attribute__((vector_size(32)));
typedef double vq64_loose __attribute__((vector_size(32), aligned(8), may_alias));
MF_INLINE vq64 vq64_load(const double *p) { return *(const vq64_loose *)p; }
MF_INLINE void vq64_store(double *p, vq64 v) { *(vq64_loose *)p = v; }
MF_INLINE vq64 vq64_set(double a) { return a - (vq64){0}; }
#ifdef MF_AVX
MF_INLINE vq64 vq64_fma(vq64 a, vq64 b, vq64 c) { return (vq64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
#elif defined(MF_NEON)
MF_INLINE vq64 vq64_fma(vq64 a, vq64 b, vq64 c)
{
    vf64 x[2], y[2], z[2];
    memcpy(x, &a, sizeof(x)), memcpy(y, &b, sizeof(y)), memcpy(z, &c, sizeof(z));
    for (int h = 0; h < 2; h++) z[h] = vf64_fma(x[h], y[h], z[h]);
    memcpy(&c, z, sizeof(z));
    return c;
}
#else
MF_INLINE vq64 vq64_fma(vq64 a, vq64 b, vq64 c) { return a * b + c; }
#endif

/* A square of vectors, rows become columns. */
#ifdef MF_AVX512
/* 128-bit blocks of four registers, rows of a 4 x 4 square, become its columns. */
MF_INLINE void mf_transpose_blocks(__m512d *r)
{
    __m512d a = _mm512_shuffle_f64x2(r[0], r[1], 0x44), b = _mm512_shuffle_f64x2(r[0], r[1], 0xee);
    __m512d c = _mm512_shuffle_f64x2(r[2], r[3], 0x44), d = _mm512_shuffle_f64x2(r[2], r[3], 0xee);
    r[0] = _mm512_shuffle_f64x2(a, c, 0x88), r[1] = _mm512_shuffle_f64x2(a, c, 0xdd);
    r[2] = _mm512_shuffle_f64x2(b, d, 0x88), r[3] = _mm512_shuffle_f64x2(b, d, 0xdd);
}
MF_INLINE void vf64_transpose(vf64 *r)
{
    __m512d even[4], odd[4]; /* columns 2 q and 2 q + 1, by pairs of rows */
    for (int i = 0; i < 4; i++) {
        even[i] = _mm512_unpacklo_pd((__m512d)r[2 * i], (__m512d)r[2 * i + 1]);
        odd[i] = _mm512_unpackhi_pd((__m512d)r[2 * i], (__m512d)r[2 * i + 1]);
    }
    mf_transpose_blocks(even);
    mf_transpose_blocks(odd);
    for (int q = 0; q < 4; q++) r[2 * q] = (vf64)even[q], r[2 * q + 1] = (vf64)odd[q];
}
MF_INLINE void vf32_transpose(vf32 *r)
{
    __m512d part[4][4]; /* columns 4 q + c, by groups of four rows */
    for (int i = 0; i < 4; i++) {
        const vf32 *row = r + 4 * i;
        __m512d low0 = (__m512d)_mm512_unpacklo_ps((__m512)row[0], (__m512)row[1]);
        __m512d low1 = (__m512d)_mm512_unpacklo_ps((__m512)row[2], (__m512)row[3]);
        __m512d high0 = (__m512d)_mm512_unpackhi_ps((__m512)row[0], (__m512)row[1]);
        __m512d high1 = (__m512d)_mm512_unpackhi_ps((__m512)row[2], (__m512)row[3]);
        part[0][i] = _mm512_unpacklo_pd(low0, low1), part[1][i] = _mm512_unpackhi_pd(low0, low1);
        part[2][i] = _mm512_unpacklo_pd(high0, high1), part[3][i] = _mm512_unpackhi_pd(high0, high1);
    }
    for (int c = 0; c < 4; c++) mf_transpose_blocks(part[c]);
    for (int q = 0; q < 4; q++)
        for (int c = 0; c < 4; c++) r[4 * q + c] = (vf32)part[c][q];
}
#elif defined(MF_AVX2)
MF_INLINE void vf64_transpose(vf64 *r)
{
    __m256d low0 = _mm256_unpacklo_pd((__m256d)r[0], (__m256d)r[1]);
    __m256d high0 = _mm256_unpackhi_pd((__m256d)r[0], (__m256d)r[1]);
    __m256d low1 = _mm256_unpacklo_pd((__m256d)r[2], (__m256d)r[3]);
    __m256d high1 = _mm256_unpackhi_pd((__m256d)r[2], (__m256d)r[3]);
    r[0] = (vf64)_mm256_permute2f128_pd(low0, low1, 0x20), r[1] = (vf64)_mm256_permute2f128_pd(high0, high1, 0x20);
    r[2] = (vf64)_mm256_permute2f128_pd(low0, low1, 0x31), r[3] = (vf64)_mm256_permute2f128_pd(high0, high1, 0x31);
}
MF_INLINE void vf32_transpose(vf32 *r)
{
    __m256 pairs[8];
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_ps((__m256)r[i], (__m256)r[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps((__m256)r[i], (__m256)r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { /* columns i/4-th halves: four rows each */
        r[i] = (vf32)_mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
        r[i + 1] = (vf32)_mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
        r[i + 2] = (vf32)_mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
        r[i + 3] = (vf32)_mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        __m256 upper = (__m256)r[i], lower = (__m256)r[i + 4];
        r[i] = (vf32)_mm256_permute2f128_ps(upper, lower, 0x20);
        r[i + 4] = (vf32)_mm256_permute2f128_ps(upper, lower, 0x31);
    }
}
#else
MF_PLAIN_TRANSPOSE(vf64, MF_LANES64)
MF_PLAIN_TRANSPOSE(vf32, MF_LANES32)
#endif

/* Scalars round exactly as a vector lane does. */
#if MF_FMA
MF_INLINE float f32_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
MF_INLINE double f64_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
MF_INLINE float f32_fma(float a, float b, float c) { return a * b + c; }
MF_INLINE double f64_fma(double a, double b, double c) { return a * b + c; }
#endif

#endif
