/* The sum of squares that defines the order of neighbours, over the values DIFFERENCE(k), for doubles or for vectors
 * of doubles (one point per lane). Accumulators: four; feature k goes to number k % 4, in order, and the four are
 * added pairwise. Every step is monotone in each |difference|: a sum of the same shape over differences that are no
 * larger never exceeds it, so lower bounds made this way need no allowance for rounding. */
#ifndef MF_KNN_SUM_SQUARES_H
#define MF_KNN_SUM_SQUARES_H

#include "base/common.h"
#include "base/simd.h"

#define MF_SUM_SQUARES(TYPE, FMA, total, p, DIFFERENCE)                                                        \
    do {                                                                                                       \
        TYPE s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, d;                                                        \
        int64_t at = 0;                                                                                        \
        for (; at + 4 <= (p); at += 4) {                                                                       \
            d = DIFFERENCE(at), s0 = FMA(d, d, s0);                                                            \
            d = DIFFERENCE(at + 1), s1 = FMA(d, d, s1);                                                        \
            d = DIFFERENCE(at + 2), s2 = FMA(d, d, s2);                                                        \
            d = DIFFERENCE(at + 3), s3 = FMA(d, d, s3);                                                        \
        }                                                                                                      \
        if (at < (p)) d = DIFFERENCE(at), s0 = FMA(d, d, s0);                                                  \
        if (at + 1 < (p)) d = DIFFERENCE(at + 1), s1 = FMA(d, d, s1);                                          \
        if (at + 2 < (p)) d = DIFFERENCE(at + 2), s2 = FMA(d, d, s2);                                          \
        (total) = (s0 + s1) + (s2 + s3);                                                                       \
    } while (0)

#endif
