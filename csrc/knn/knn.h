/* The kNN kernels for both dtypes: knn (brute force, proved), kdtree_search, neighbor_ranks, and the parts of the
 * approximate search by clusters. */
#ifndef MF_KNN_KNN_H
#define MF_KNN_KNN_H

#include "base/sort.h"
#include "dense/dense.h"
#include "knn/kdtree_nodes.h"
#include "knn/lists.h"
#include "knn/sum_squares.h"

#define MF_TEMPLATE "knn/exact_distance_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "knn/kdtree_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "knn/reservoir_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "knn/screening_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "knn/brute_force_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "knn/clusters_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "knn/ranks_impl.h"
#include "base/both_dtypes_impl.h"

#endif
