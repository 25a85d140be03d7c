/* Sets up one dtype for the implementation headers that follow: define MF_F32 as 1 or 0, then include this.
 * REAL is the dtype and DTYPE its name, RINT the integer of its size,
 * V its vector, NAME(x) the symbol of x for this dtype and level. */
#undef REAL
#undef V
#undef VOP
#undef ROP
#undef NAME
#undef LANES
#undef DTYPE
#undef RINT
#define MF_JOIN2(a, b) a##_##b
#define MF_JOIN(a, b) MF_JOIN2(a, b)
#if MF_F32
#define REAL float
#define DTYPE f32
#define RINT int32_t
#define V vf32
#define VOP(op) MF_JOIN(vf32, op)
#define ROP(op) MF_JOIN(f32, op)
#define NAME(x) MF_JOIN(MF_JOIN(MF_JOIN(mf, x), f32), MF_LEVEL)
#else
#define REAL double
#define DTYPE f64
#define RINT int64_t
#define V vf64
#define VOP(op) MF_JOIN(vf64, op)
#define ROP(op) MF_JOIN(f64, op)
#define NAME(x) MF_JOIN(MF_JOIN(MF_JOIN(mf, x), f64), MF_LEVEL)
#endif
#define LANES ((int)(MF_VBYTES / sizeof(REAL)))
