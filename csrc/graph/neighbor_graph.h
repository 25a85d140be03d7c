/* A neighbour graph between its two steps: what graph_begin makes and graph_fill reads. */
#ifndef MF_GRAPH_NEIGHBOR_GRAPH_H
#define MF_GRAPH_NEIGHBOR_GRAPH_H

#include "base/common.h"
#include "base/simd.h"

/* Lists begin at a cache line, or two to a line: the search in another list costs one miss for k < 16. They are whole
 * vectors. */
#define GRAPH_STRIDE(k) ((k) < 8 && MF_LANES32 <= 8 ? 8 : mf_round_up((k) + 1, 16))
#define GRAPH_BYTE_SLOTS MF_LIMIT(256, 32) /* at least the 32 that are sorted by counting */
#define GRAPH_MOST_SLOTS MF_LIMIT(16, 2) /* parts that are transposed side by side, each with n counts of its own */

/* Who lists an edge of a list: this side only; both, ours no longer than theirs; both, and theirs is shorter. */
enum { GRAPH_OURS = 0, GRAPH_BOTH = 1, GRAPH_THEIRS = 2 };

struct mf_graph {
    int64_t n, k, stride;
    int mutual, wide, uneven;  /* uneven: some edge has two distances */
    const void *distances;     /* as given, n x k */
    void *columns;             /* n lists, `stride` apart, sorted, ended by a mark */
    void *slots;               /* n x k: where each entry's distance is among those given; bytes for few of them */
    uint8_t *sides;            /* n x k: who lists the entry */
    void *transposed;          /* of row i from starts[i] on, the last one a mark */
    int64_t *starts, *rows;    /* rows: where each row of the graph begins */
};

static inline int64_t mf_graph_slot(const mf_graph *g, int64_t entry)
{
    return g->k <= GRAPH_BYTE_SLOTS ? ((const uint8_t *)g->slots)[entry] : ((const uint32_t *)g->slots)[entry];
}

static void mf_graph_free(mf_graph *g)
{
    if (!g) return;
    mf_release(g->columns);
    mf_release(g->slots);
    mf_release(g->sides);
    mf_release(g->transposed);
    mf_release(g->starts);
    mf_release(g->rows);
    free(g);
}

#endif
