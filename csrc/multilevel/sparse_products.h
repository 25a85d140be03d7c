/* Sparse matrices times blocks of vectors, for both dtypes. */
#ifndef MF_MULTILEVEL_SPARSE_PRODUCTS_H
#define MF_MULTILEVEL_SPARSE_PRODUCTS_H

#include "multilevel/quads.h"

/* What becomes of the product s = L x: it is the result, it is taken from r, or it makes a step of the Chebyshev
 * recurrence, direction = keep * direction + gain * inverse diagonal * (r - s), out = x + direction. */
typedef enum mf_spmm_use { MF_SPMM_PRODUCT, MF_SPMM_RESIDUAL, MF_SPMM_STEP } mf_spmm_use;

#define MF_TEMPLATE "multilevel/sparse_products_impl.h"
#include "base/both_dtypes_impl.h"

#endif
