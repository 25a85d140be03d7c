/* The shape of a kd-tree, which depends on the number of leaves only: no node is stored. */
#ifndef MF_KNN_KDTREE_NODES_H
#define MF_KNN_KDTREE_NODES_H

#include <stdint.h>

#define KD_LEAF 16   /* fastest of 8, 16, 32 for p = 2 to 10; a group's survivors fit a bit mask */
/* Longest list of neighbours kept sorted; longer ones are reservoirs of twice the length. */
#define KD_SORTED MF_LIMIT(48, 6)
#define KD_DEPTH 64
#define KD_ALONE(p) ((p) <= 3 ? 1 : 4) /* points per query from which on queries go alone: measured with k = 3, 10 */

/* A node with the leaves it holds. Nodes are numbered in preorder: the left child is node + 1, and a node of c leaves
 * has 2c - 1 nodes under and including it. */
typedef struct {
    int64_t node, leaf, count;
    double bound; /* squared distance from the box of the queries; while building: not used */
} mf_span;

static inline mf_span mf_left(mf_span s) { return (mf_span){s.node + 1, s.leaf, s.count / 2, 0}; }
static inline mf_span mf_right(mf_span s)
{
    return (mf_span){s.node + 2 * (s.count / 2), s.leaf + s.count / 2, s.count - s.count / 2, 0};
}

#endif
