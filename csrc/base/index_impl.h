/* Sets up one width of column indices for the templates of sparse matrices.
 * Needs: base/dtype_impl.h, and MF_I32 defined as 1 (int32) or 0 (int64).
 * Gives: INDEX, the type; INDEX_MAX, its largest value; INAME(x), the symbol mf_x_f32_i32 and so on. */

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
