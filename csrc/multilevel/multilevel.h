/* The multilevel kernels: the hierarchy is made in double, its V-cycle runs in either dtype. */
#ifndef MF_MULTILEVEL_MULTILEVEL_H
#define MF_MULTILEVEL_MULTILEVEL_H

#include "multilevel/hierarchy.h"
#include "multilevel/sparse_products.h"
#include "multilevel/tall_blocks.h"

#define MF_TEMPLATE "multilevel/v_cycle_impl.h"
#include "base/both_dtypes_impl.h"

#endif
