/* Lists of the k nearest rows found so far, and the set of rows already looked at: what approximate searches keep per
 * row. A list has k places, ascending by (key, index); places not used yet come last, with key infinity and index -1.
 * Order: a list is the k first of what it was offered, whatever the order of the offers. Workspace: the caller's. */
#ifndef MF_KNN_LISTS_H
#define MF_KNN_LISTS_H

#include "base/common.h"

static inline void mf_list_clear(double *keys, int32_t *rows, int64_t k)
{
    for (int64_t r = 0; r < k; r++) keys[r] = INFINITY, rows[r] = -1;
}

/* Unsigned, so that an unused place (-1) comes after every row at the same key. */
static inline int mf_list_before(double key, int32_t row, double other_key, int32_t other_row)
{
    return key < other_key || (key == other_key && (uint32_t)row < (uint32_t)other_row);
}

/* Takes a row that is not in the list yet, if it is among the k first. */
static inline void mf_list_offer(double *keys, int32_t *rows, int64_t k, double key, int32_t row)
{
    int64_t r = k - 1;
    if (!mf_list_before(key, row, keys[r], rows[r])) return;
    for (; r > 0 && mf_list_before(key, row, keys[r - 1], rows[r - 1]); r--) {
        keys[r] = keys[r - 1];
        rows[r] = rows[r - 1];
    }
    keys[r] = key;
    rows[r] = row;
}

/* A set of rows with open addressing, at most half full. */
typedef struct {
    int32_t *slots;
    int64_t size;
    int shift;
} mf_row_set;

static inline int mf_row_set_open(mf_row_set *set, int64_t most)
{
    set->size = 64, set->shift = 32 - 6;
    while (set->size < 2 * most) set->size *= 2, set->shift--;
    set->slots = set->shift < 1 ? NULL : mf_alloc(set->size, sizeof(int32_t));
    return set->slots != NULL;
}

static inline void mf_row_set_clear(mf_row_set *set) { memset(set->slots, -1, (size_t)set->size * sizeof(int32_t)); }

/* Whether the row is new to the set, which has it from then on. */
static inline int mf_row_set_add(mf_row_set *set, int32_t row)
{
    int64_t at = ((uint32_t)row * 2654435769u) >> set->shift;
    while (set->slots[at] >= 0) {
        if (set->slots[at] == row) return 0;
        at = (at + 1) & (set->size - 1);
    }
    set->slots[at] = row;
    return 1;
}

#endif
