/* Heat weights of one row of distances, relative to the nearest, in double.
 * Accumulator: one vector of doubles; its lanes are added in order at the end. */
#ifndef MF_DENSE_HEAT_WEIGHTS_H
#define MF_DENSE_HEAT_WEIGHTS_H

#include "base/exp.h"

/* w[j] = exp(-(d_j^2 - d^2) inverse^2) with d the least of the k distances, from the product of sum and difference: no
 * square overflows, and the nearest weighs 1. Distance 0 weighs nothing with `others`, unless there is no other.
 * w has room for whole vectors. Returns the sum of the weights. */
static double mf_heat_weights_f64(const double *distances, int64_t k, double inverse, int others, double *w)
{
    enum { DOUBLES = MF_VBYTES / sizeof(double) };
    int64_t padded = mf_round_up(k, DOUBLES);
    vf64 infinite = vf64_set((double)INFINITY), closest = infinite, sum = {0};
    double least = (double)INFINITY, total = 0;
    memcpy(w, distances, (size_t)k * sizeof(double));
    for (int64_t j = k; j < padded; j++) w[j] = (double)INFINITY;
    for (int64_t j = 0; j < padded; j += DOUBLES) {
        vf64 d = vf64_load(w + j);
        d = vf64_select(d > (others ? 0.0 : -1.0), d, infinite);
        closest = vf64_min(closest, d);
        vf64_store(w + j, d);
    }
    for (int l = 0; l < DOUBLES; l++) least = closest[l] < least ? closest[l] : least;
    if (isinf(least)) {
        for (int64_t j = 0; j < k; j++) w[j] = 1;
        return (double)k;
    }
    for (int64_t j = 0; j < padded; j += DOUBLES) {
        vf64 d = vf64_load(w + j), apart = (d - least) * inverse;
        vf64 heat = mf_exp_f64(-(apart * ((d + least) * inverse)));
        heat = vf64_select(apart > 0, heat, vf64_set(1));
        heat = vf64_select(d < infinite, heat, (vf64){0});
        sum += heat;
        vf64_store(w + j, heat);
    }
    for (int l = 0; l < DOUBLES; l++) total += sum[l];
    return total;
}

#endif
