/* Selection and sorting of doubles, of integers, and of (key, index) pairs: pairs by key, then by index, so no two
 * pairs are equal. In place, without workspace; the result does not depend on the order of the input. */
#ifndef MF_BASE_SORT_H
#define MF_BASE_SORT_H

#include "base/common.h"

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
#include "base/sort_impl.h"
#undef ITEM
#undef BEFORE
#undef ORDER

#define ITEM double
#define BEFORE(a, b) ((a) < (b))
#define ORDER(x) mf_doubles_##x
#include "base/sort_impl.h"
#undef ITEM
#undef BEFORE
#undef ORDER

#define ITEM int64_t
#define BEFORE(a, b) ((a) < (b))
#define ORDER(x) mf_integers_##x
#include "base/sort_impl.h"
#undef ITEM
#undef BEFORE
#undef ORDER

#endif
