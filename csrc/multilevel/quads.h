/* Four consecutive numbers of a row, at any address: blocks of vectors have widths that are multiples of 4. */
#ifndef MF_MULTILEVEL_QUADS_H
#define MF_MULTILEVEL_QUADS_H

typedef float mf_quad_f32 __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef double mf_quad_f64 __attribute__((vector_size(4 * sizeof(double)), aligned(sizeof(double)), may_alias));

#endif
