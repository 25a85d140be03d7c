"""Calls of kernels, each with a plain oracle in long doubles."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from tests.fuzz.arrays import graph, lists, matrix
from tests.fuzz.judge import Failure, check_close, check_finite, check_same
from tests.fuzz.parameters import parameters
from tests.fuzz.trial import WIDE, Trial, exact_squares, plain, same_dtype, tolerance_of

from manifast import kernels


def sq_distances(t: Trial) -> None:
    draw = t.draw
    draw.thousands = True
    X = matrix(draw)
    p = np.shape(X)[1] if np.ndim(X) == 2 else 3
    Y = None if draw.chance(0.5) else matrix(draw, columns=p if draw.chance(0.95) else p + 1, legal=[None])
    options: dict[str, Any] = parameters(draw, ["n_threads"])
    kind = draw.rng.random()
    if kind < 0.1 and np.ndim(X) == 2 and not isinstance(X, list):
        rows = len(np.atleast_1d(X if Y is None else Y))
        held = np.zeros(max(len(X) * rows, X.size if isinstance(X, np.ndarray) else 0) + 4)
        options["out"] = held[: len(X) * rows].reshape(len(X), rows)
        if kind < 0.03 and isinstance(X, np.ndarray) and X.dtype == np.float64 and X.size:
            X = np.copyto(view := held[2 : 2 + X.size].reshape(X.shape), X) or view  # overlaps with out
        elif kind < 0.05:
            options["out"] = draw.pick(options["out"].astype(np.float32), options["out"].T, np.zeros(3), "out", [[0.0]])
    result = t.run(kernels.sq_distances, X, Y, **options)
    if result is None:
        return
    x, y = (plain(X), plain(X)) if Y is None else same_dtype(plain(X), plain(Y))
    some = draw.some_rows(len(x))
    expected = exact_squares(x[some], y)
    check_close(result[some], expected, tolerance_of(expected, x, y), "sq_distances")
    check_same(result, kernels.sq_distances(x, None if Y is None else y, n_threads=2), "for plain copies on 2 threads")


def gaussian(t: Trial) -> None:
    draw = t.draw
    draw.thousands = True
    X = matrix(draw)
    p = np.shape(X)[1] if np.ndim(X) == 2 else 3
    Y = None if draw.chance(0.5) else matrix(draw, columns=p, legal=[None])
    options = {"sigma": 1.0} | parameters(draw, ["sigma", "n_threads"])
    result = t.run(kernels.gaussian, X, Y, **options)
    if result is None:
        return
    check_finite(result)
    x, y = (plain(X), plain(X)) if Y is None else same_dtype(plain(X), plain(Y))
    sigma = WIDE(float(options["sigma"]))
    some = draw.some_rows(len(x))
    squares = exact_squares(x[some], y)
    with np.errstate(all="ignore"):
        exponent = squares / sigma**2
        expected = np.exp(-exponent)
        slack = tolerance_of(squares, x, y) / sigma**2
    info = np.finfo(x.dtype)
    check_close(
        result[some],
        expected,
        expected * np.expm1(np.minimum(slack, 5)) + 8 * info.eps * expected * (1 + exponent) + 4 * info.tiny,
        "gaussian",
    )
    check_same(
        result,
        kernels.gaussian(x, None if Y is None else y, sigma=options["sigma"], n_threads=2),
        "for plain copies on 2 threads",
    )


def rbf_apply(t: Trial) -> None:
    draw = t.draw
    draw.thousands = True
    X = matrix(draw)
    p = np.shape(X)[1] if np.ndim(X) == 2 else 3
    C = matrix(draw, columns=p)
    m = len(C) if np.ndim(C) == 2 else 2
    coef = matrix(draw, rows=m if draw.chance(0.97) else m + 1, tame=draw.chance(0.9), legal=["vector"])
    options = {"sigma": 1.0} | parameters(draw, ["sigma", "n_threads"])
    result = t.run(kernels.rbf_apply, X, C, coef, **options)
    if result is None:
        return
    x, c = same_dtype(plain(X), plain(C))
    check_same(
        result,
        kernels.rbf_apply(x, c, plain(coef), sigma=options["sigma"], n_threads=2),
        "for plain copies on 2 threads",
    )
    if len(x) > 1 and len(c):
        whole = kernels.rbf_apply(x, c, plain(coef), sigma=options["sigma"])
        check_same(whole[1:2], kernels.rbf_apply(x[1:2], c, plain(coef), sigma=options["sigma"]), "for one row alone")
    if draw.exotic:
        return
    check_finite(result)
    K = kernels.gaussian(x.astype(float), c.astype(float), sigma=options["sigma"]).astype(WIDE)
    w = plain(coef).astype(WIDE)
    extent = float(np.square(np.vstack([x, c]) - np.vstack([x, c]).mean(axis=0)).max(initial=0.0)) * x.shape[1]
    eps = float(np.finfo(result.dtype).eps)
    slack = 64 * eps * (len(c) + x.shape[1] + 20) * (1 + extent / WIDE(float(options["sigma"])) ** 2)
    check_close(
        result,
        K @ w,
        slack * (np.abs(K) @ np.abs(w)) + slack * np.abs(w).sum(axis=0) + np.finfo(result.dtype).tiny,
        "rbf_apply",
    )


def knn(t: Trial) -> None:
    draw = t.draw
    draw.thousands = True
    X = matrix(draw)
    n, p = np.shape(X) if np.ndim(X) == 2 else (5, 3)
    queries = None if draw.chance(0.5) else matrix(draw, columns=p, legal=[None])
    k = int(draw.rng.integers(1, max(min(n, 20), 2) + draw.pick(0, 0, 0, 0, 2)))
    options = parameters(draw, ["algorithm", "n_threads", "recall", "random_state"])
    found = t.run(kernels.knn, X, k, queries=queries, **options)
    if found is None:
        return
    distances, indices = found
    x, q = (plain(X), None) if queries is None else same_dtype(plain(X), plain(queries))
    if options.get("algorithm") != "clusters":
        for algorithm in ("brute", "tree"):
            check_same(
                found, kernels.knn(x, k, queries=q, algorithm=algorithm, n_threads=2), f"by {algorithm} on 2 threads"
            )
    rows = x if q is None else q
    some = draw.some_rows(len(rows))
    squares = exact_squares(rows[some], x)
    if len(rows) and (indices.min() < 0 or indices.max() >= len(x)):
        raise Failure("an index is out of range")
    if q is None and (indices == np.arange(len(x))[:, None]).any():
        raise Failure("a row is its own neighbour")
    if any(len(set(row)) < len(row) for row in indices.tolist()):
        raise Failure("a neighbour is listed twice")
    info = np.finfo(x.dtype)
    own = np.sqrt(np.take_along_axis(squares, indices[some], axis=1))
    check_close(distances[some], own, 4 * (p + 4) * info.eps * own + 4 * WIDE(info.tiny) * info.eps, "distances")
    if q is None:
        squares[np.arange(len(some)), some] = np.inf
    best = np.sqrt(np.sort(squares, axis=1)[:, :k])
    eps = WIDE(np.finfo(float).eps)
    if options.get("algorithm") != "clusters":  # which finds most of them
        check_close(own, best, 8 * (p + 4) * eps * best + 4 * WIDE(np.finfo(float).tiny) * eps, "neighbours")


def approximate_knn(t: Trial) -> None:
    draw = t.draw
    X = matrix(draw, rows=int(draw.rng.integers(2500, 4000)) if draw.chance(0.003) else None)
    options = parameters(draw, ["recall", "random_state", "n_threads"])
    found = t.run(kernels.approximate_knn, X, int(draw.rng.integers(1, 9)), **options)
    if found is not None and not draw.exotic:
        check_finite(found[0])


def l1_code(t: Trial) -> None:
    draw = t.draw
    D = matrix(draw, rows=int(draw.rng.integers(1, 30)))
    p = np.shape(D)[1] if np.ndim(D) == 2 else 3
    X = matrix(draw, rows=int(draw.rng.integers(0, 5)), columns=p)
    options = parameters(draw, ["errors", "lam", "n_threads"])
    if draw.chance(0.2):
        options["exclude"] = draw.rng.integers(
            -1, max(len(np.atleast_1d(D)), 1) + draw.pick(0, 0, 2), len(np.atleast_1d(X))
        )
    found = t.run(kernels.l1_code, X, D, **options)
    if found is None:
        return
    codes, e = found
    check_finite(found)
    x, d = same_dtype(plain(X), plain(D))
    again = kernels.l1_code(x, d, **(options | {"n_threads": 2}))
    check_same(found, again, "for plain copies on 2 threads")
    if draw.exotic or x.dtype != np.float64:
        return
    lam, errors = float(options.get("lam", 0.0)), bool(options.get("errors", True))
    a = codes.toarray()
    value = 0.5 * np.square(x - a @ d - (e if errors else 0)).sum(axis=1) + lam * (
        np.abs(a).sum(axis=1) + (np.abs(e).sum(axis=1) if errors else 0)
    )
    nothing = 0.5 * np.square(x).sum(axis=1)
    if lam > 0 and (value > nothing * (1 + 1e-9) + 1e-300).any():
        with warnings.catch_warnings(record=True) as told:  # nearly dependent atoms: it says so
            warnings.simplefilter("always")
            kernels.l1_code(x, d, **options)
        if not any("could not be certified" in str(one.message) for one in told):
            raise Failure("a code is worse than no code at all")


def neighbor_graph(t: Trial) -> None:
    draw = t.draw
    n = draw.n = draw.count()
    distances, indices = lists(draw, n, int(draw.rng.integers(1, 9)))
    options = parameters(draw, ["weights", "beta", "mode", "n_threads"], 0.5)
    made = t.run(kernels.neighbor_graph, distances, indices, **options)
    if made is None:
        return
    check_finite(made)
    check_graph(made, distances, indices, options)


def check_graph(made: Any, distances: Any, indices: Any, options: dict[str, Any]) -> None:
    """The graph of neighbour lists, link by link."""
    W, d, near = made.toarray(), plain(distances), np.asarray(indices)
    n = len(d)
    if not np.array_equal(W, W.T):
        raise Failure("the graph is not symmetric")
    smallest = np.full((n, n), np.inf)
    for i in range(n):
        for j, length in zip(near[i], d[i], strict=True):
            smallest[i, int(j)] = min(smallest[i, int(j)], length)
    np.fill_diagonal(smallest, np.inf)
    listed = np.isfinite(smallest)
    joined = listed & listed.T if options.get("mode") == "mutual" else listed | listed.T
    if made.nnz != joined.sum():
        raise Failure(f"the graph has {made.nnz} edges instead of {joined.sum()}")
    length = np.where(joined, np.minimum(smallest, smallest.T), 0).astype(WIDE)
    check_weights(W, length, joined, options)


def check_weights(
    W: np.ndarray, length: np.ndarray, joined: Any, options: dict[str, Any], slack: Any = 0.0
) -> None:
    """Weights of the links that are there, from the lengths of all pairs, whose squares may be off by `slack`."""
    kind = options.get("weights", "heat")
    with np.errstate(all="ignore"):
        argument = np.square(length) / WIDE(float(options["beta"])) if kind == "heat" else np.zeros(length.shape, WIDE)
        weight = {"heat": np.exp(-argument), "binary": np.ones(length.shape), "distance": length}[kind]
        moved = slack / WIDE(float(options["beta"])) if kind == "heat" else WIDE(0)
        off = {"heat": weight * np.expm1(np.minimum(moved, 5)), "distance": np.sqrt(length**2 + slack) - length}
    expected = np.where(joined, weight, 0).astype(WIDE)
    info = np.finfo(W.dtype)
    rounding = 16 * info.eps * (1 + argument) * expected + 4 * info.tiny
    check_close(W, expected, rounding + off.get(kind, 0), "weights")


def laplacian(t: Trial) -> None:
    draw = t.draw
    n = draw.n = draw.count()
    W = graph(draw, n)
    options = parameters(draw, ["normalization", "n_threads"], 0.6)
    made = t.run(kernels.laplacian, W, **options)
    if made is None:
        return
    check_finite(made)
    L, degrees = made
    full = np.array(W.toarray() if hasattr(W, "toarray") else W, dtype=WIDE)
    np.fill_diagonal(full, 0)
    expected = full.sum(axis=1)
    eps = WIDE(np.finfo(L.dtype).eps)
    check_close(degrees, expected, 4 * (n + 4) * eps * expected, "degrees")
    linked = expected > 0
    scale = np.where(linked, expected, 1)
    kind = options.get("normalization")
    plainly = np.diag(expected) - full
    if kind == "sym":
        plainly /= np.sqrt(scale)[:, None] * np.sqrt(scale)
    elif kind == "rw":
        plainly /= scale[:, None]
    rounding = (1e-5 if L.dtype == np.float32 else 1e-10) * np.abs(full).max(initial=WIDE(0))
    if not draw.must_fail and np.abs(full - full.T).max(initial=0) == 0 < rounding + 1:
        check_close(
            L.toarray(),
            plainly,
            16 * (n + 4) * eps * (np.abs(plainly) + np.diag(np.diag(np.abs(plainly)))),
            "Laplacian",
        )
