/* Sets up one dtype for the templates that follow.
 * Needs: MF_F32 defined as 1 (float) or 0 (double).
 * Gives: REAL, the dtype; DTYPE, its name f32 or f64; RINT, the integer of its size; V, its vector of LANES entries;
 * VOP(op) and ROP(op), an operation on vectors and on scalars; NAME(x), the symbol mf_x_f32 or mf_x_f64. */
#include "base/common.h"
#include "base/simd.h"

#undef REAL
#undef V
#undef VOP
#undef ROP
#undef NAME
#undef LANES
#undef DTYPE
#undef RINT
#if MF_F32
#define REAL float
#define DTYPE f32
#define RINT int32_t
#define V vf32
#define VOP(op) MF_JOIN(vf32, op)
#define ROP(op) MF_JOIN(f32, op)
#define NAME(x) MF_JOIN(MF_JOIN(mf, x), f32)
#else
#define REAL double
#define DTYPE f64
#define RINT int64_t
#define V vf64
#define VOP(op) MF_JOIN(vf64, op)
#define ROP(op) MF_JOIN(f64, op)
#define NAME(x) MF_JOIN(MF_JOIN(mf, x), f64)
#endif
#define LANES ((int)(MF_VBYTES / sizeof(REAL)))
