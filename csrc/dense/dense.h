/* The dense kernels for both dtypes: sq_distances, rbf_apply, affine, heat_mean and largest. */
#ifndef MF_DENSE_DENSE_H
#define MF_DENSE_DENSE_H

#include "base/exp.h"
#include "dense/heat_weights.h"

#define MF_TEMPLATE "dense/tile_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "dense/few_rows_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "dense/packed_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "dense/distances_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "dense/rbf_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "dense/affine_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "dense/heat_mean_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "dense/largest_impl.h"
#include "base/both_dtypes_impl.h"

#endif
