/* The vector exponential for both dtypes: mf_exp_f32 and mf_exp_f64. */
#ifndef MF_BASE_EXP_H
#define MF_BASE_EXP_H

#define MF_TEMPLATE "base/exp_impl.h"
#include "base/both_dtypes_impl.h"

#endif
