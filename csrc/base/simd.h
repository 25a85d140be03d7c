/* Vectors of one instruction set, in GCC/Clang vector extensions: the compiler lowers them to SSE2, AVX2 or NEON. The
 * only intrinsics of the project stand here, behind their guards: fused multiply-add, the square root, the reading of
 * a mask and the transpose. Rounding: a multiply-add is always written as v*_fma (built with -ffp-contract=off): one
 * rounding with AVX2 and NEON, two with SSE2. Scalar *_fma round as a lane of a vector does. */
#ifndef MF_BASE_SIMD_H
#define MF_BASE_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define MF_VBYTES 32
#define MF_FMA 1
#elif defined(__aarch64__)
#include <arm_neon.h>
#define MF_VBYTES 16
#define MF_FMA 1
#else
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#define MF_VBYTES 16
#define MF_FMA 0
#endif

#define MF_LANES32 ((int)(MF_VBYTES / sizeof(float)))
#define MF_LANES64 ((int)(MF_VBYTES / sizeof(double)))

#define MF_INLINE static inline __attribute__((always_inline))

#define MF_DEFINE_VECTOR(V, REAL, INT)                                                                         \
    typedef REAL V __attribute__((vector_size(MF_VBYTES)));                                                    \
    typedef REAL V##_loose __attribute__((vector_size(MF_VBYTES), aligned(sizeof(REAL)), may_alias));          \
    typedef INT V##_mask __attribute__((vector_size(MF_VBYTES)));                                              \
    MF_INLINE V V##_load(const REAL *p) { return *(const V##_loose *)p; }                                      \
    MF_INLINE void V##_store(REAL *p, V v) { *(V##_loose *)p = v; }                                            \
    MF_INLINE V V##_set(REAL a) { return a - (V){0}; }                                                         \
    MF_INLINE V V##_select(V##_mask m, V a, V b) { return (V)((m & (V##_mask)a) | (~m & (V##_mask)b)); }       \
    MF_INLINE V V##_max(V a, V b) { return V##_select(a > b, a, b); }                                          \
    MF_INLINE V V##_min(V a, V b) { return V##_select(a < b, a, b); }

MF_DEFINE_VECTOR(vf32, float, int32_t)
MF_DEFINE_VECTOR(vf64, double, int64_t)

#if defined(__AVX2__) && defined(__FMA__)
MF_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c) { return (vf32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
MF_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c) { return (vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
MF_INLINE vf64 vf64_sqrt(vf64 a) { return (vf64)_mm256_sqrt_pd((__m256d)a); }
MF_INLINE int vf32_any(vf32_mask m) { return _mm256_movemask_epi8((__m256i)m) != 0; }
MF_INLINE int vf64_any(vf64_mask m) { return _mm256_movemask_epi8((__m256i)m) != 0; }
MF_INLINE unsigned vf32_bits(vf32_mask m) { return (unsigned)_mm256_movemask_ps((__m256)m); }
MF_INLINE unsigned vf64_bits(vf64_mask m) { return (unsigned)_mm256_movemask_pd((__m256d)m); }
#elif defined(__aarch64__)
MF_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c)
{
    return (vf32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
MF_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c)
{
    return (vf64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
MF_INLINE vf64 vf64_sqrt(vf64 a) { return (vf64)vsqrtq_f64((float64x2_t)a); }
MF_INLINE int vf32_any(vf32_mask m) { return vmaxvq_u32((uint32x4_t)m) != 0; }
MF_INLINE int vf64_any(vf64_mask m) { return vmaxvq_u32((uint32x4_t)m) != 0; }
#define MF_PLAIN_BITS
#else
MF_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c) { return a * b + c; }
MF_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c) { return a * b + c; }
#if defined(__SSE2__)
MF_INLINE vf64 vf64_sqrt(vf64 a) { return (vf64)_mm_sqrt_pd((__m128d)a); }
MF_INLINE int vf32_any(vf32_mask m) { return _mm_movemask_epi8((__m128i)m) != 0; }
MF_INLINE int vf64_any(vf64_mask m) { return _mm_movemask_epi8((__m128i)m) != 0; }
MF_INLINE unsigned vf32_bits(vf32_mask m) { return (unsigned)_mm_movemask_ps((__m128)m); }
MF_INLINE unsigned vf64_bits(vf64_mask m) { return (unsigned)_mm_movemask_pd((__m128d)m); }
#else
MF_INLINE vf64 vf64_sqrt(vf64 a) { return (vf64){__builtin_sqrt(a[0]), __builtin_sqrt(a[1])}; }
MF_INLINE int vf32_any(vf32_mask m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }
MF_INLINE int vf64_any(vf64_mask m) { return (m[0] | m[1]) != 0; }
#define MF_PLAIN_BITS
#endif
#endif

#ifdef MF_PLAIN_BITS
MF_INLINE unsigned vf32_bits(vf32_mask m) { return (m[0] & 1u) | (m[1] & 2u) | (m[2] & 4u) | (m[3] & 8u); }
MF_INLINE unsigned vf64_bits(vf64_mask m) { return (unsigned)((m[0] & 1) | (m[1] & 2)); }
#endif

/* A square of vectors, rows become columns. */
#if defined(__AVX2__)
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
MF_INLINE void vf64_transpose(vf64 *r)
{
    vf64 first = r[0];
    r[0] = (vf64){first[0], r[1][0]}, r[1] = (vf64){first[1], r[1][1]};
}
MF_INLINE void vf32_transpose(vf32 *r)
{
    vf32 a = r[0], b = r[1], c = r[2], d = r[3];
    for (int i = 0; i < 4; i++) r[i] = (vf32){a[i], b[i], c[i], d[i]};
}
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
