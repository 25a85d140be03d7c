/* Selecting and sorting numbers, and (key, index) pairs: by key, then by index, so no two pairs are equal. */
#ifndef MF_ORDER_H
#define MF_ORDER_H

#include "common.h"

typedef struct {
    double key;
    int64_t index;
} mf_pair;

static inline int mf_before(mf_pair a, mf_pair b)
{
    return (a.key < b.key) | ((a.key == b.key) & (a.index < b.index));
}

#define ITEM mf_pair
#define BEFORE(a, b) mf_before(a, b)
#define ORDER(x) mf_pairs_##x
#include "select.h"
#undef ITEM
#undef BEFORE
#undef ORDER

#define ITEM double
#define BEFORE(a, b) ((a) < (b))
#define ORDER(x) mf_doubles_##x
#include "select.h"
#undef ITEM
#undef BEFORE
#undef ORDER

#endif
