/* The part of Hessian eigenmaps that depends on no dtype: products of orthonormal vectors, made orthonormal. */
#ifndef MF_LOCAL_HESSIAN_H
#define MF_LOCAL_HESSIAN_H

#include "local/workspace.h"

#define HESSIAN_PRODUCTS(dim) ((dim) * ((dim) + 1) / 2)

/* Puts the products of `dim` orthonormal vectors without mean after them, orthonormal to the constant and to all before
 * them. A product that depends on those is zero. Rejected twice: what remains of a product may be small. */
static void hessian_products(vf64 *u, int64_t k, int64_t dim)
{
    int64_t made = dim;
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = i; j < dim; j++, made++) {
            vf64 *own = u + made * k, before = {0};
            for (int64_t a = 0; a < k; a++) {
                own[a] = u[i * k + a] * u[j * k + a];
                before = vf64_fma(own[a], own[a], before);
            }
            vf64 once = lanes_reject(own, u, made, k, 1), twice = lanes_reject(own, u, made, k, 1);
            lanes_unit(own, k, twice, (once > LOCAL_NULL * before) & (twice > (vf64){0}));
        }
}

#endif
