/* Sets up one width of column numbers for the sparse kernels, after real.h: define MF_I32 as 1 or 0, then include.
 * INDEX is the type, INAME(x) the symbol of x for this dtype, level and width. */
#undef INDEX
#undef INDEX_MAX
#undef INAME
#if MF_I32
#define INDEX int32_t
#define INDEX_MAX INT32_MAX
#define INAME(x) MF_JOIN(NAME(x), i32)
#else
#define INDEX int64_t
#define INDEX_MAX INT64_MAX
#define INAME(x) MF_JOIN(NAME(x), i64)
#endif
