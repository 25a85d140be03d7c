/* Kernels on neighbourhoods for both dtypes: weights and reconstruction (LLE), alignment, Hessian and modified LLE. */
#ifndef MF_LOCAL_LOCAL_H
#define MF_LOCAL_LOCAL_H

#include "local/clique_blocks.h"
#include "local/hessian.h"
#include "local/modified_lle.h"
#include "local/workspace.h"

#define MF_TEMPLATE "local/neighborhoods_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "local/barycenters_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "local/alignment_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "local/hessian_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "local/modified_lle_impl.h"
#include "base/both_dtypes_impl.h"

#endif
