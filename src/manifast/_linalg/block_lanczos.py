"""Block Lanczos: the largest eigenvalues of an operator, with their multiplicity, from products alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manifast._validation import Array

Operator = Callable[[Array], Array]

_BLOCK = 4  # vectors per step: Krylov spaces of few vectors grow deeper for the same work
_CLUSTER = 1e-4  # eigenvalues this close, relatively, count as copies of one


def largest_pairs(
    operator: Operator,
    n: int,
    k: int,
    inner: Operator | None,
    null: Array,
    tol: float,
    max_iter: int,
    *,
    relative: bool = False,
) -> tuple[Array, Array]:
    """The k largest eigenvalues of an operator that is symmetric in the inner product of `inner`, by block Lanczos.

    A block finds as many copies of a repeated eigenvalue as it has vectors. So a small block will do unless that many
    eigenvalues come out nearly equal: then there may be more, and a block of k vectors starts over.
    """
    small = min(_BLOCK, k + 1)
    values, vectors = _lanczos(operator, n, k, small, inner, null, tol, max_iter, relative)
    if small < k:
        first, last = values[: len(values) - small + 1], values[small - 1 :]
        if len(values) < k or (first - last <= _CLUSTER * np.abs(first)).any():
            values, vectors = _lanczos(operator, n, k, k + max(2, k // 8), inner, null, tol, max_iter, relative)
    return values, vectors


def _lanczos(
    operator: Operator,
    n: int,
    k: int,
    block: int,
    inner: Operator | None,
    null: Array,
    tol: float,
    max_iter: int,
    relative: bool,
) -> tuple[Array, Array]:
    """Block Lanczos with every direction orthogonalised against all others, twice.

    When the basis is full it is restarted from its best Ritz vectors. `relative`: residuals are measured against each
    eigenvalue, else against the largest.
    """
    locked = null.shape[1]  # the first columns of the basis, which the operator's image is cleared of and no more
    block = min(block, n - locked)
    most = min(max(6 * block, 3 * k, 40), n - locked) + locked
    image = (lambda v: v) if inner is None else inner
    basis = np.empty((n, most), order="F")
    images = basis if inner is None else np.empty((n, most), order="F")
    basis[:, :locked] = null
    images[:, :locked] = image(null)
    projected = np.zeros((most - locked, most - locked))
    size, theta, ritz = locked, np.empty(0), np.empty((0, 0))
    refill = inner is None  # where B is singular, vectors may run out
    start = np.random.default_rng(0).standard_normal((n, block))
    if inner is not None:
        start = operator(start)  # out of the null space of B
    fresh = _orthonormal(start, basis[:, :size], images[:, :size], image, refill)
    for step in range(max_iter):
        if fresh.shape[1] == 0:
            break
        new, size = slice(size - locked, size - locked + fresh.shape[1]), size + fresh.shape[1]
        basis[:, size - fresh.shape[1] : size] = fresh
        if inner is not None:
            images[:, size - fresh.shape[1] : size] = image(fresh)
        result = operator(fresh)
        coefficients = images[:, :size].T @ result
        result = result - basis[:, :size] @ coefficients
        projected[: new.stop, new] = coefficients[locked:]
        projected[new, : new.stop] = coefficients[locked:].T
        full = size >= n
        restart = not full and size + min(block, n - size) > most
        if full or restart or step == max_iter - 1 or (new.stop >= k + block and step % 2 == 0):
            theta, ritz = np.linalg.eigh(projected[: new.stop, : new.stop])
            theta, ritz = theta[::-1], ritz[:, ::-1]
            # |operator y - θ y| of a Ritz vector is what the last block adds to it.
            rest = result @ ritz[new, :k]
            residual = _lengths(rest, image(rest))
            largest = np.abs(theta).max()
            allowed = np.maximum(tol * np.abs(theta[:k]), 1e-15 * largest) if relative else tol * largest
            if full or (new.stop >= k and (residual <= allowed).all()):
                break
        if restart:
            keep = min(k + block, new.stop - 1, most - locked - block)
            for part in (basis,) if inner is None else (basis, images):
                part[:, locked : locked + keep] = part[:, locked:size] @ ritz[:, :keep]
            projected[:] = 0.0
            projected[np.arange(keep), np.arange(keep)] = theta[:keep]
            size = locked + keep
        width = min(block, n - size, most - size)
        fresh = _orthonormal(result[:, :width], basis[:, :size], images[:, :size], image, refill)
    if len(ritz) != size - locked:
        theta, ritz = np.linalg.eigh(projected[: size - locked, : size - locked])
        theta, ritz = theta[::-1], ritz[:, ::-1]
    return theta[:k].copy(), basis[:, locked:size] @ ritz[:, :k]


def _orthonormal(block: Array, basis: Array, images: Array, image: Operator, refill: bool) -> Array:
    """An orthonormal block (in the inner product of `image`) orthogonal to the basis.

    Directions that vanish against these are replaced by others from a fixed sequence (`refill`), or dropped.
    """
    orthonormal: Array = block[:, :0]
    for attempt in range(4):
        before = _lengths(block, image(block))
        block = block - basis @ (images.T @ block)
        product = image(block)
        gram = block.T @ product
        lengths = np.sqrt(np.maximum(gram.diagonal(), 0.0))
        sound = lengths > 1e-12 * before
        gram = gram[sound][:, sound] / np.outer(lengths[sound], lengths[sound])
        values, vectors = np.linalg.eigh(gram) if sound.any() else (np.empty(0), np.empty((0, 0)))
        good = values > 1e-8
        mixing = np.zeros((len(sound), int(good.sum())))
        mixing[sound] = vectors[:, good] / np.sqrt(values[good]) / lengths[sound][:, None]
        orthonormal = block @ mixing
        missing = len(sound) - orthonormal.shape[1] if refill else 0
        # Well conditioned and hardly shortened by the projections: orthogonal to rounding.
        if missing == 0 and values[good].min(initial=1.0) > 1e-3 and (lengths[sound] > 0.1 * before[sound]).all():
            return orthonormal
        block = orthonormal
        if missing:
            others = np.random.default_rng(1 + attempt).standard_normal((block.shape[0], missing))
            block = np.hstack([block, others])
    return orthonormal


def _lengths(block: Array, product: Array) -> Array:
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,ij->j", block, product), 0.0)))
