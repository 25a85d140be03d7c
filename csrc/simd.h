/* Vectors of one instruction set, in GCC/Clang vector extensions: the compiler lowers them to SSE2, AVX2 or NEON.
 * The only intrinsics of the project stand here, behind their guards: fused multiply-add, the square root and the
 * reading of a mask. Multiply-add is always written as v*_fma (built with -ffp-contract=off), so each level rounds in
 * one known way. */
#ifndef MF_SIMD_H
#define MF_SIMD_H

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
MF_INLINE vf32 vf32_fma(vf32 a, vf32 b, vf32 c) { return (vf32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
MF_INLINE vf64 vf64_fma(vf64 a, vf64 b, vf64 c) { return (vf64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b); }
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

/* Scalars round exactly as a vector lane does. */
#if MF_FMA
MF_INLINE float f32_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
MF_INLINE double f64_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
MF_INLINE float f32_fma(float a, float b, float c) { return a * b + c; }
MF_INLINE double f64_fma(double a, double b, double c) { return a * b + c; }
#endif

#endif
