/* The graph kernels: neighbour graphs and Laplacians, shortest paths, geodesic distances of new points. */
#ifndef MF_GRAPH_GRAPH_H
#define MF_GRAPH_GRAPH_H

#include "base/exp.h"
#include "base/sort.h"
#include "graph/neighbor_graph.h"
#include "graph/shortest_paths.h"

#define MF_TEMPLATE "graph/index_widths_impl.h"
#include "base/both_dtypes_impl.h"
#define MF_TEMPLATE "graph/geodesics_impl.h"
#include "base/both_dtypes_impl.h"

#endif
