"""Calls of graphs, eigenvectors, metrics, theory and data sets, with an oracle where one is plain."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from tests.fuzz.arrays import Draw, clean, graph, labels, matrix
from tests.fuzz.judge import Failure, check_close, check_finite, check_same
from tests.fuzz.of_kernels import check_graph, check_weights
from tests.fuzz.parameters import parameters, wide
from tests.fuzz.trial import WIDE, Trial, exact_squares, plain, tolerance_of

from manifast import datasets, graphs, kernels, metrics, objectives, spectral, theory

Oracle = Callable[[Draw, Any, tuple[Any, ...], dict[str, Any]], None]


def function(
    target: Callable[..., Any],
    draw_arguments: Callable[[Draw], tuple[Any, ...]],
    oracle: Oracle | None = None,
    finite: bool = True,
    of_any_size: bool = False,
) -> Callable[[Trial], None]:
    """Finite numbers, the same bits on two threads where it takes threads, and what the oracle says.

    `of_any_size`: results are finite also where numbers are near the end of their range.
    """
    names = [name for name, one in inspect.signature(target).parameters.items() if one.kind is one.KEYWORD_ONLY]

    def call(t: Trial) -> None:
        arguments = draw_arguments(t.draw)
        options = parameters(t.draw, names)
        result = t.run(target, *arguments, **options)
        if result is None:
            return
        if finite and (of_any_size or not t.draw.exotic):
            check_finite(result)
        if "n_threads" in names and isinstance(options.get("n_threads"), int | None):
            check_same(result, target(*arguments, **(options | {"n_threads": 2})), "on 2 threads")
        if oracle is not None and not t.draw.exotic:
            oracle(t.draw, result, arguments, options)

    return call


# Arguments


def _rows(draw: Draw) -> tuple[Any, ...]:
    return (matrix(draw),)


def _many_rows(draw: Draw) -> tuple[Any, ...]:
    draw.thousands = True
    return (matrix(draw),)


def _rows_and_count(draw: Draw) -> tuple[Any, ...]:
    draw.thousands = True
    X = matrix(draw)
    return X, int(draw.rng.integers(1, 12))


def _rows_and_labels(draw: Draw, legal: Any = ()) -> tuple[Any, ...]:
    X = matrix(draw, legal=legal)
    return X, labels(draw, draw.n)


def _rows_and_radius(draw: Draw) -> tuple[Any, ...]:
    return matrix(draw), float(10.0 ** draw.rng.uniform(-2, 2))


def _graph_and_rows(draw: Draw) -> tuple[Any, ...]:
    X = matrix(draw)
    return graph(draw, draw.n), X


def _graph(draw: Draw) -> tuple[Any, ...]:
    draw.n = draw.count()
    return (graph(draw, draw.n),)


def _problem(draw: Draw) -> tuple[Any, ...]:
    """A matrix, how many vectors, and now and then the other matrix: a vector, dense or sparse."""
    n = draw.n = draw.count(30)
    A = graph(draw, n)
    k = int(draw.rng.integers(1, 5))
    if draw.chance(0.7):
        return A, k
    weights = np.abs(draw.rng.standard_normal(n)) + 0.1
    weights *= draw.pick(1.0, 1.0, 1e-8, 1e8)
    if draw.chance(0.1) and n:
        weights[0] = draw.pick(0.0, -1.0)
    if draw.chance(0.25):
        return A, k, graph(draw, n)
    return A, k, draw.pick(weights, np.diag(weights), sp.diags_array(weights))


def _low_rank(draw: Draw) -> tuple[Any, ...]:
    """A sparse matrix plus one of low rank, whose parts may not fit."""
    n = draw.n = draw.count(30)
    U, c = clean(draw, n, int(draw.rng.integers(0, 4))), draw.rng.standard_normal(4)
    c = c[: U.shape[1] + draw.pick(0, 0, 0, 0, 1)] if draw.chance(0.95) else np.zeros(U.shape[1])
    return graph(draw, n), U.astype(float), c, int(draw.rng.integers(1, 5))


def _data_and_embedding(draw: Draw) -> tuple[Any, ...]:
    draw.thousands = True
    X = matrix(draw)
    return X, matrix(draw, rows=draw.n, columns=2)


def _two_embeddings(draw: Draw) -> tuple[Any, ...]:
    return (*_data_and_embedding(draw), *draw.pick((), (), (draw.pick(1, 2, 5, [1, 3], 0, 1.5, None),)))


def _compared_embeddings(draw: Draw) -> tuple[Any, ...]:
    X = matrix(draw, columns=2)
    return X, matrix(draw, rows=draw.n, columns=2)


def _four_embeddings(draw: Draw) -> tuple[Any, ...]:
    train, test, d = draw.count(), draw.count(20), int(draw.pick(1, 2, 3))
    return tuple(matrix(draw, rows=n, columns=d) for n in (train, test, train, test))


def _embedding_and_labels(draw: Draw) -> tuple[Any, ...]:
    return (*_rows_and_labels(draw, legal=["vector"]), *draw.pick((), ("distance",), ("linear",)))


def _labels_twice(draw: Draw) -> tuple[Any, ...]:
    n = draw.count()
    return labels(draw, n), labels(draw, n)


def _number(draw: Draw) -> Any:
    """A number of any size, now and then none."""
    return draw.pick(-1.0, 0, float("nan"), float("inf"), "1", None, 10**400) if draw.chance(0.1) else wide(draw)


def _whole(draw: Draw) -> Any:
    return draw.pick(-1, 0, 1.5, None, 10**30) if draw.chance(0.1) else int(draw.rng.integers(1, 300))


def _share(draw: Draw) -> Any:
    return draw.pick(-0.5, 0, 2.0, float("nan"), None, "x") if draw.chance(0.1) else float(draw.rng.random())


_NUMBERS: dict[str, Callable[[Draw], Any]] = {
    **dict.fromkeys(("n", "n_samples", "n_components", "n_class", "q", "n_per_class", "random_state"), _whole),
    **dict.fromkeys(("eta", "noise", "alpha"), _share),
    "kind": lambda draw: draw.pick("quadratic", "gaussian", "nonsense", None),
    "hole": lambda draw: draw.pick(True, False, 2, "x"),
}


def numbers(target: Callable[..., Any], judge: Callable[[Any], bool] = lambda _: True) -> Callable[[Trial], None]:
    """A function of plain numbers alone, all of them given by name."""

    def call(t: Trial) -> None:
        given = {name: _NUMBERS.get(name, _number)(t.draw) for name in inspect.signature(target).parameters}
        result = t.run(target, **given)
        if result is not None and not judge(result):
            raise Failure(f"the result is {result!r}")

    return call


def _is_bound(bound: Any) -> bool:
    """A probability, and no number that is none; -inf says that nothing is left."""
    return 0 <= bound.probability <= 1 and not np.isnan(bound.slack)


# Oracles


def _metric_and_width(options: dict[str, Any]) -> bool:
    """Whether weights are known without the library's own widths."""
    known = options.get("weights", "heat") != "heat" or isinstance(options.get("beta"), float | int)
    return known and options.get("metric", "euclidean") == "euclidean"


def _knn_graph(draw: Draw, W: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    X, k = arguments
    x = plain(X)
    if options.get("neighbors") is None and _metric_and_width(options) and len(x) < 200:
        check_graph(W, *kernels.knn(x, k), options)


def _radius_graph(draw: Draw, W: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    x, radius = plain(arguments[0]), arguments[1]
    if not _metric_and_width(options):
        return
    squares = exact_squares(x, x)
    slack = tolerance_of(squares, x, x)
    np.fill_diagonal(squares, np.inf)
    joined = np.zeros(W.shape, bool)
    joined[np.repeat(np.arange(len(x)), np.diff(W.indptr)), W.indices] = True
    wrong = (joined & (squares > WIDE(radius) ** 2 + slack)) | (~joined & (squares < WIDE(radius) ** 2 - slack))
    if wrong.any():
        raise Failure(f"the pair {np.argwhere(wrong)[0].tolist()} is on the wrong side of the radius")
    np.fill_diagonal(squares, 0)
    check_weights(W.toarray(), np.sqrt(squares), joined, options, slack)


def _full_graph(draw: Draw, W: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    x = plain(arguments[0])
    if _metric_and_width(options) and len(x) < 200:
        squares = exact_squares(x, x)
        check_weights(W, np.sqrt(squares), ~np.eye(len(x), dtype=bool), options, tolerance_of(squares, x, x))


def _mean_sq_distance(draw: Draw, mean: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    x = plain(arguments[0])
    if options.get("metric", "euclidean") == "euclidean" and 1 < len(x) < 200:
        squares = exact_squares(x, x)
        slack = tolerance_of(squares, x, x).max()
        expected = squares.sum() / (len(x) * (len(x) - 1))
        check_close(mean, expected, 1e-12 * expected + slack, "mean_sq_distance")


def _dense(W: Any) -> np.ndarray:
    return np.asarray(W.toarray() if hasattr(W, "toarray") else W, dtype=float)


def _n_components(draw: Draw, count: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    if options.get("weights") != "distance":
        expected = connected_components(sp.csr_array(_dense(arguments[0]) != 0), directed=False)[0]
        if count != expected:
            raise Failure(f"{count} components instead of {expected}")


def _connect_components(draw: Draw, joined: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    W = _dense(arguments[0])
    if graphs.n_components(joined, weights=options.get("weights", "heat")) > 1:
        raise Failure("the graph has several components after all")
    if not np.array_equal(np.where(W != 0, _dense(joined), 0), W.astype(joined.dtype)):
        raise Failure("a link that was there has another weight")


def _class_graphs(draw: Draw, pair: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    y = np.asarray(arguments[1]).ravel()
    same = y[:, None] == y
    np.fill_diagonal(same, False)
    counts = options.get("n_neighbors_within"), options.get("n_neighbors_between")
    for made, where, complete in zip(pair, (same, y[:, None] != y), counts, strict=True):
        stored = _dense(sp.csr_array((np.ones(made.nnz), made.indices, made.indptr), shape=made.shape)) > 0
        if (stored & ~where).any() or (stored != stored.T).any():
            raise Failure("a link joins rows that it must not join, or goes one way only")
        if complete is None and stored.sum() != where.sum():
            raise Failure("a complete graph lacks links")


def _eigenvectors(draw: Draw, found: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Against LAPACK in double precision, for a matrix that is symmetric, with B = I."""
    A, tol = _dense(arguments[0]), options.get("tol", 0.0)
    strict = isinstance(tol, float) and tol <= 1e-10 and options.get("max_iter", 300) >= 20
    if strict and len(arguments) == 2 and options.get("check", True) and np.array_equal(A, A.T):
        check_pairs(A, found)


def check_pairs(A: np.ndarray, found: Any) -> None:
    values, vectors = found
    size = np.abs(A).max(initial=0.0) * len(A)
    check_close(values, np.linalg.eigvalsh(A / (size or 1))[: len(values)] * size, 1e-9 * size, "eigenvalues")
    check_close(vectors.T @ vectors, np.eye(len(values)), 1e-8, "products of vectors")
    check_close(A @ vectors, vectors * values, 1e-7 * size, "A times vectors")


def low_rank_sum(t: Trial) -> None:
    """Eigenvectors of a sparse matrix plus one of low rank."""
    S, U, c, k = _low_rank(t.draw)
    given = spectral.LowRankSum(S, U, c)
    found = t.run(spectral.smallest_eigenvectors, given, k)
    if found is not None:
        A = _dense(S) + (U * c) @ U.T
        if np.array_equal(_dense(S), _dense(S).T):
            check_pairs(A, found)


def fix_signs(t: Trial) -> None:
    V = matrix(t.draw, legal=["no columns"])
    fixed = t.run(spectral.fix_signs, V)
    if fixed is not None and np.asarray(fixed).size:
        v, f = np.asarray(plain(V)), np.asarray(fixed)
        check_same(np.abs(f), np.abs(v.astype(f.dtype)), "beside their signs")


def _quality(draw: Draw, value: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Between 0 and 1."""
    if ((np.asarray(value) < -1e-12) | (np.asarray(value) > 1 + 1e-12)).any():
        raise Failure(f"the value {value} is not between 0 and 1")


def _ranked(first: int) -> Oracle:
    """Trustworthiness (first=1: neighbours of Y, ranks of X) or continuity, by sorting all distances."""

    def judge(draw: Draw, value: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        _quality(draw, value, arguments, options)
        k = arguments[2] if len(arguments) > 2 else 5
        pair = [plain(arguments[0]), plain(arguments[1])]
        n = len(pair[0])
        if set(options) - {"n_threads"} or not isinstance(k, int) or n > 200:
            return
        orders = []
        for x in pair:
            squares = exact_squares(x.astype(float), x.astype(float))
            np.fill_diagonal(squares, -1)
            gaps = np.diff(np.sort(squares, axis=1), axis=1)
            if gaps.size and gaps.min() <= 1e-9 * squares.max():  # which comes first is a matter of rounding
                return
            orders.append(np.argsort(squares, axis=1))
        ranks = np.argsort(orders[1 - first], axis=1)  # a row itself has 0
        excess = np.maximum(np.take_along_axis(ranks, orders[first][:, 1 : k + 1], axis=1) - k, 0).sum()
        check_close(value, 1 - 2 * excess / (n * k * (2 * n - 3 * k - 1)), 1e-12, "the value")

    return judge


def _misclassified(draw: Draw, rate: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    first, second = (np.asarray(labels).ravel().tolist() for labels in arguments)
    expected = np.mean([one != other for one, other in zip(first, second, strict=True)])
    check_close(rate, expected, 1e-12, "the rate")


def _margin(draw: Draw, margin: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """The smallest distance between classes."""
    if len(arguments) == 3 and arguments[2] == "distance":
        x, y = plain(arguments[0]), np.asarray(arguments[1]).ravel()
        squares = np.where(y[:, None] == y, np.inf, exact_squares(x, x))
        expected = np.sqrt(squares.min())
        slack = tolerance_of(squares.min(), x, x)
        check_close(margin, expected, 1e-6 * expected + np.sqrt(slack), "margin")


def linear_classifier(t: Trial) -> None:
    t.run(theory.linear_classifier, *_rows_and_labels(t.draw, legal=["vector"]))


def report(t: Trial) -> None:
    """A report on an embedding of rows of any kind."""
    from manifast import LPP, NSSE

    draw = t.draw
    draw.most_rows = 40
    X, y = _rows_and_labels(draw)
    try:
        model = draw.pick(NSSE, LPP)().fit(X, y)
    except (ValueError, TypeError, MemoryError):
        model = NSSE()
    made = t.run(theory.generalization_report, model, X, y)
    if made is not None and not str(made):
        raise Failure("a report without a word")


def _graphs_and_labels(draw: Draw) -> tuple[Any, ...]:
    n = draw.n = draw.count(20)
    W = graph(draw, n)
    other = graph(draw, n) if draw.chance(0.5) else W
    return W, other, draw.rng.integers(0, 2, n) if draw.chance(0.7) else labels(draw, n)


# name: (weight, call)
FUNCTIONS: dict[str, tuple[float, Callable[[Trial], None]]] = {
    "graphs.knn_graph": (4, function(graphs.knn_graph, _rows_and_count, _knn_graph, of_any_size=True)),
    "graphs.radius_graph": (3, function(graphs.radius_graph, _rows_and_radius, _radius_graph, of_any_size=True)),
    "graphs.full_graph": (3, function(graphs.full_graph, _many_rows, _full_graph, of_any_size=True)),
    "graphs.l1_graph": (0.5, function(graphs.l1_graph, _rows, of_any_size=True)),
    "graphs.class_graphs": (3, function(graphs.class_graphs, _rows_and_labels, _class_graphs, of_any_size=True)),
    "graphs.connect_components": (3, function(
        graphs.connect_components, _graph_and_rows, _connect_components, of_any_size=True)),
    "graphs.n_components": (2, function(graphs.n_components, _graph, _n_components)),
    "graphs.mean_sq_distance": (2, function(graphs.mean_sq_distance, _many_rows, _mean_sq_distance)),
    "graphs.nearest": (1, function(graphs.nearest, _rows_and_count)),
    "spectral.smallest_eigenvectors": (3, function(spectral.smallest_eigenvectors, _problem, _eigenvectors)),
    "spectral.LowRankSum": (1, low_rank_sum),
    "spectral.fix_signs": (1, fix_signs),
    "metrics.trustworthiness": (2, function(metrics.trustworthiness, _two_embeddings, _ranked(1))),
    "metrics.continuity": (2, function(metrics.continuity, _two_embeddings, _ranked(0))),
    "metrics.neighborhood_preservation": (2, function(metrics.neighborhood_preservation, _two_embeddings, _quality)),
    "metrics.residual_variance": (2, function(metrics.residual_variance, _data_and_embedding, _quality)),
    "metrics.alignment_error": (2, function(metrics.alignment_error, _compared_embeddings)),
    "metrics.subspace_distance": (2, function(metrics.subspace_distance, _compared_embeddings)),
    "metrics.embedding_error": (1, function(metrics.embedding_error, _four_embeddings)),
    "metrics.misclassification_rate": (1, function(metrics.misclassification_rate, _labels_twice, _misclassified)),
    "objectives.sample_margins": (1, function(objectives.sample_margins, _rows_and_labels, finite=False)),
    "theory.separation_margin": (0.5, function(theory.separation_margin, _embedding_and_labels, _margin)),
    "theory.q_mean_margin": (0.5, function(
        theory.q_mean_margin, lambda draw: (*_rows_and_labels(draw, legal=["vector"]), _whole(draw)))),
    "theory.ball_probability": (1, function(theory.ball_probability, lambda draw: (*_rows_and_labels(draw), 1.0))),
    "theory.within_diameter": (0.5, function(
        theory.within_diameter, lambda draw: (matrix(draw), matrix(draw, rows=draw.n, columns=2, legal=["vector"]),
                                              labels(draw, draw.n), _number(draw)))),
    "theory.coefficient_bound": (1, function(theory.coefficient_bound, lambda draw: (matrix(draw, legal=["vector"]),))),
    "theory.linear_lipschitz": (1, function(theory.linear_lipschitz, lambda draw: (matrix(draw, legal=["vector"]),))),
    "theory.rbf_lipschitz": (0.5, function(
        theory.rbf_lipschitz, lambda draw: (matrix(draw, legal=["vector"]), _number(draw)))),
    "theory.condition_parameter": (0.5, function(
        theory.condition_parameter, lambda draw: (
            *_rows_and_labels(draw, legal=["vector"]), matrix(draw, rows=draw.n, legal=["vector"]), _number(draw)),
        finite=False)),  # classes that touch have no margin
    "theory.origin_distance_bound": (0.5, function(
        theory.origin_distance_bound, lambda draw: (*_graphs_and_labels(draw), _number(draw)))),
    "theory.two_class_margin_bound": (0.5, function(
        theory.two_class_margin_bound, lambda draw: (*_graphs_and_labels(draw), _number(draw)))),
    "theory.category_conditions": (0.5, function(
        theory.category_conditions, lambda draw: (*_graphs_and_labels(draw)[:2], _number(draw)),
        finite=False)),  # one row has no gap between eigenvalues
    "theory.category_margin": (0.3, function(theory.category_margin, lambda draw: (
        _graph(draw)[0], labels(draw, draw.n), labels(draw, draw.n), *draw.pick((), (1,), (_whole(draw),))),
        finite=False)),
    "theory.category_objectives": (0.3, function(theory.category_objectives, lambda draw: (
        *_graphs_and_labels(draw)[:2], labels(draw, draw.n), _number(draw)))),
    "theory.covering_number": (0.3, function(theory.covering_number, lambda draw: (
        *_rows_and_labels(draw), _number(draw)))),
    "theory.inverse_growth": (0.3, function(theory.inverse_growth, _rows)),
    "theory.linear_classifier": (0.2, linear_classifier),
    "theory.optimal_sigma": (0.5, numbers(theory.optimal_sigma, lambda sigma: 0 < sigma < np.inf)),
    **{
        f"theory.{name}": (0.3, numbers(getattr(theory, name), _is_bound))
        for name in theory.__all__
        if name.endswith(("linear_bound", "neighbor_bound", "covering_bound"))
    },
    "theory.generalization_report": (0.2, report),
    **{
        f"datasets.{name}": (0.2, numbers(getattr(datasets, name)))
        for name in ("make_moons", "make_s_curve", "make_swiss_roll", "make_two_surfaces")
    },
}  # fmt: skip
