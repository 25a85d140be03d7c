"""The table of entries: how often each is called, how its arguments are drawn, and the oracle where one is plain.

An entry's `call` draws its arguments, calls the library through `Trial.run` and judges the result.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from tests.fuzz.arrays import Draw, clean, graph, labels, lists, matrix
from tests.fuzz.judge import Failure, check_close, check_exception, check_finite, check_same, check_unchanged, snapshot
from tests.fuzz.parameters import parameters

import manifast
from manifast import classifiers, embeddings, extensions, graphs, kernels, metrics, spectral, theory

WIDE = np.longdouble


class Trial:
    """One call: its arguments, whether it returned, and the checks that every call gets."""

    def __init__(self, draw: Draw, name: str) -> None:
        self.draw, self.name = draw, name
        self.returned = False
        self.shown: dict[str, Any] = {}

    def run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """The result, or None where the call was refused in words."""
        self.shown = {"arguments": arguments, "options": options}
        held = snapshot([*arguments, *(value for name, value in options.items() if name != "out")])
        try:
            result = function(*arguments, **options)
        except Exception as error:
            check_exception(error)
            check_unchanged(held)
            return None
        self.returned = True
        check_unchanged(held)
        if self.draw.must_fail:
            raise Failure("NaN, infinity, masked entries or no numbers were taken without a word")
        return result


def plain(value: Any) -> Any:
    """The numbers of an argument as the library reads them: C-contiguous, aligned, native float32 or float64."""
    array = np.asarray(value)
    narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return np.array(array, dtype=np.float32 if narrow else np.float64, order="C")


def same_dtype(*arrays: np.ndarray) -> list[np.ndarray]:
    dtype = np.result_type(*arrays)
    return [array.astype(dtype, copy=False) for array in arrays]


def exact_squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared distances in long doubles, whose range no square leaves."""
    difference = x[:, None, :].astype(WIDE) - y[None, :, :].astype(WIDE)
    return np.square(difference).sum(axis=2)


def tolerance_of(squares: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a squared distance may be off: a share of itself, of the data's extent, and what is below the range."""
    info = np.finfo(x.dtype)
    both = np.concatenate([x, y]).astype(WIDE)
    extent = np.square(both - both.mean(axis=0)).sum(axis=1).max() if len(both) else WIDE(0)
    p = x.shape[1]
    return 8 * (p + 8) * WIDE(info.eps) * squares + 64 * WIDE(info.eps) ** 2 * extent + 4 * p * WIDE(info.tiny)


# Kernels


def sq_distances(t: Trial) -> None:
    draw = t.draw
    X = matrix(draw)
    p = np.shape(X)[1] if np.ndim(X) == 2 else 3
    Y = None if draw.chance(0.5) else matrix(draw, columns=p if draw.chance(0.95) else p + 1)
    options: dict[str, Any] = parameters(draw, ["n_threads"])
    kind = draw.rng.random()
    if kind < 0.1 and np.ndim(X) == 2 and not isinstance(X, list):
        rows = len(X) if Y is None else len(Y)
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
    expected = exact_squares(x, y)
    check_close(result, expected, tolerance_of(expected, x, y), "sq_distances")
    check_same(result, kernels.sq_distances(x, None if Y is None else y, n_threads=2), "for plain copies on 2 threads")


def gaussian(t: Trial) -> None:
    draw = t.draw
    X = matrix(draw)
    p = np.shape(X)[1] if np.ndim(X) == 2 else 3
    Y = None if draw.chance(0.5) else matrix(draw, columns=p)
    options = {"sigma": 1.0} | parameters(draw, ["sigma", "n_threads"])
    result = t.run(kernels.gaussian, X, Y, **options)
    if result is None:
        return
    check_finite(result)
    x, y = (plain(X), plain(X)) if Y is None else same_dtype(plain(X), plain(Y))
    sigma = WIDE(float(options["sigma"]))
    squares = exact_squares(x, y)
    with np.errstate(all="ignore"):
        exponent = squares / sigma**2
        expected = np.exp(-exponent)
        slack = tolerance_of(squares, x, y) / sigma**2
    info = np.finfo(x.dtype)
    check_close(
        result,
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
    X = matrix(draw)
    p = np.shape(X)[1] if np.ndim(X) == 2 else 3
    C = matrix(draw, columns=p)
    m = len(C) if np.ndim(C) == 2 else 2
    coef = matrix(draw, rows=m if draw.chance(0.97) else m + 1, tame=draw.chance(0.9))
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
    X = matrix(draw)
    n, p = np.shape(X) if np.ndim(X) == 2 else (5, 3)
    queries = None if draw.chance(0.5) else matrix(draw, columns=p)
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
    squares = exact_squares(rows, x)
    if len(rows) and (indices.min() < 0 or indices.max() >= len(x)):
        raise Failure("an index is out of range")
    if q is None and (indices == np.arange(len(x))[:, None]).any():
        raise Failure("a row is its own neighbour")
    if any(len(set(row)) < len(row) for row in indices.tolist()):
        raise Failure("a neighbour is listed twice")
    info = np.finfo(x.dtype)
    own = np.sqrt(np.take_along_axis(squares, indices, axis=1))
    check_close(distances, own, 4 * (p + 4) * info.eps * own + 4 * WIDE(info.tiny) * info.eps, "distances")
    if q is None:
        squares[np.arange(len(x)), np.arange(len(x))] = np.inf
    best = np.sqrt(np.sort(squares, axis=1)[:, :k])
    eps = WIDE(np.finfo(float).eps)
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
    options = parameters(draw, ["errors", "lam", "n_threads"]) | {"tol": 1e300}
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
    W, d, near = made.toarray(), plain(distances), np.asarray(indices)
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
    length = np.minimum(smallest, smallest.T)
    kind = options.get("weights", "heat")
    with np.errstate(all="ignore"):
        beta = WIDE(float(options["beta"])) if kind == "heat" else WIDE(1)
        weight = {
            "heat": np.exp(-np.square(length.astype(WIDE)) / beta),
            "binary": np.ones((n, n)),
            "distance": length,
        }[kind]
        argument = (
            np.where(joined, np.square(np.where(joined, length, 0).astype(WIDE)) / beta, 0) if kind == "heat" else 0
        )
    expected = np.where(joined, weight, 0).astype(WIDE)
    eps = np.finfo(W.dtype).eps
    check_close(W, expected, 16 * eps * (1 + argument) * expected + 4 * np.finfo(W.dtype).tiny, "weights")


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


# Graphs, eigenvectors, metrics, theory


def function(target: Callable[..., Any], draw_arguments: Callable[[Draw], tuple[Any, ...]]) -> Callable[[Trial], None]:
    """An entry without a plain oracle: finite numbers, and the same bits on two threads where it takes threads."""
    names = [name for name, one in inspect.signature(target).parameters.items() if one.kind is one.KEYWORD_ONLY]

    def call(t: Trial) -> None:
        arguments = draw_arguments(t.draw)
        options = parameters(t.draw, names)
        result = t.run(target, *arguments, **options)
        if result is None:
            return
        if not t.draw.exotic:
            check_finite(result)
        if "n_threads" in names and isinstance(options.get("n_threads"), int | None):
            check_same(result, target(*arguments, **(options | {"n_threads": 2})), "on 2 threads")

    return call


def _rows(draw: Draw) -> tuple[Any, ...]:
    return (matrix(draw),)


def _rows_and_count(draw: Draw) -> tuple[Any, ...]:
    X = matrix(draw)
    return X, int(draw.rng.integers(1, 12))


def _rows_and_labels(draw: Draw) -> tuple[Any, ...]:
    X = matrix(draw)
    return X, labels(draw, draw.n)


def _rows_and_radius(draw: Draw) -> tuple[Any, ...]:
    return matrix(draw), float(10.0 ** draw.rng.uniform(-2, 2))


def _graph_and_rows(draw: Draw) -> tuple[Any, ...]:
    X = matrix(draw)
    return graph(draw, draw.n), X


def _matrix_and_count(draw: Draw) -> tuple[Any, ...]:
    n = draw.n = draw.count(30)
    return graph(draw, n), int(draw.rng.integers(1, 5))


def _two_embeddings(draw: Draw) -> tuple[Any, ...]:
    X = matrix(draw)
    return X, matrix(draw, rows=draw.n, columns=2)


def _compared_embeddings(draw: Draw) -> tuple[Any, ...]:
    X = matrix(draw, columns=2)
    return X, matrix(draw, rows=draw.n, columns=2)


def _embedding_and_labels(draw: Draw) -> tuple[Any, ...]:
    return (*_rows_and_labels(draw), *draw.pick((), ("distance",), ("linear",)))


def _labels_twice(draw: Draw) -> tuple[Any, ...]:
    n = draw.count()
    return labels(draw, n), labels(draw, n)


# Estimators


def estimator(cls: type, *, supervised: str = "") -> Callable[[Trial], None]:
    """A fit, then rows that it has never seen: the same bits in one batch and in two, from copies and from a file."""
    names = [name for name in inspect.signature(cls).parameters if name not in ("embedder", "verbose", "basis")]
    grids = cls.__name__.endswith("CV") and cls.__name__ != "RBFDiscriminantCV"
    if grids:
        names = [name for name in names if name != "graph"]

    def call(t: Trial) -> None:
        draw = t.draw
        draw.most_rows = 40
        X = matrix(draw, rows=draw.count(40) if draw.chance(0.1) else int(draw.rng.integers(8, 41)))
        options = parameters(draw, names, 0.2, illegal=0.02, grids=grids)
        options |= {"embedder": embeddings.ClassicalMDS()} if cls is embeddings.OutOfSample else {}
        if options.get("metric") == "precomputed" and np.ndim(X) == 2 and draw.chance(0.9):
            x = clean(draw, draw.n, 3)
            X = np.sqrt(np.asarray(exact_squares(x, x), dtype=x.dtype))
        model = cls(**options)
        y = (labels(draw, draw.n, some=supervised == "some"),) if supervised else ()
        before = dict(model.__dict__)
        if cls in EXTENSIONS:
            y = (matrix(draw, rows=draw.n, columns=int(draw.pick(1, 2, 3))),)
        if t.run(model.fit, X, *y) is None:
            if model.__dict__.keys() != before.keys():
                raise Failure(f"a fit that failed left {sorted(model.__dict__.keys() - before.keys())}")
            return
        _use(t, model, X)

    return call


def _use(t: Trial, model: Any, X: Any) -> None:
    draw = t.draw
    apply = next(getattr(model, name) for name in ("transform", "predict") if hasattr(model, name))
    if hasattr(model, "embedding_") and not draw.exotic:
        check_finite(model.embedding_)
    new = matrix(draw, rows=draw.count(12), columns=np.shape(X)[1] if np.ndim(X) == 2 else None)
    image = t.run(apply, new)
    if image is None:
        return
    if not draw.exotic:
        check_finite(image)
    rows = plain(new)
    if getattr(new, "dtype", None) == np.float16:  # estimators read it as float64, kernels as float32
        return
    check_same(apply(rows), image, "for a plain copy")
    if len(rows) > 1:
        check_same(np.concatenate([apply(rows[:1]), apply(rows[1:])]), image, "in two batches")
    if draw.chance(0.05):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            if t.run(manifast.save, model, path) is None and not path.exists():
                return
            loaded = manifast.load(path)
            check_same(getattr(loaded, apply.__name__)(rows), image, "from a file")
    if draw.chance(0.03):
        clone(model)


EXTENSIONS = tuple(getattr(extensions, name) for name in (
    "RBF", "KernelRidge", "LandmarkIsomap", "LatentVariable", "Linear", "Nystrom", "Reconstruction", "SparseCode",
))  # fmt: skip
SOME_LABELS = ("SDA", "SDACV", "SDE", "SDECV", "TCA", "TCACV", "ElasticEmbedding", "ElasticEmbeddingCV",
               "ComposedEmbedding", "FME", "FMECV", "GFHF", "LGC", "RMGT", "LapRLS", "LapRLSCV")  # fmt: skip
LABELS = ("LDE", "LFDA", "NSSE", "NSSECV", "FisherEmbedding", "LabelEncoding", "SupervisedLaplacianEigenmaps",
          "SupervisedIsomap", "TPTSSR", "RBFDiscriminant", "RBFDiscriminantCV")  # fmt: skip

# name: (weight, call). The weights are chosen so that most calls are cheap; estimators get about a tenth.
ENTRIES: dict[str, tuple[float, Callable[[Trial], None]]] = {
    "kernels.sq_distances": (12, sq_distances),
    "kernels.gaussian": (12, gaussian),
    "kernels.rbf_apply": (12, rbf_apply),
    "kernels.knn": (12, knn),
    "kernels.approximate_knn": (4, approximate_knn),
    "kernels.l1_code": (8, l1_code),
    "kernels.neighbor_graph": (10, neighbor_graph),
    "kernels.laplacian": (10, laplacian),
    "graphs.knn_graph": (4, function(graphs.knn_graph, _rows_and_count)),
    "graphs.radius_graph": (3, function(graphs.radius_graph, _rows_and_radius)),
    "graphs.full_graph": (3, function(graphs.full_graph, _rows)),
    "graphs.l1_graph": (0.5, function(graphs.l1_graph, _rows)),
    "graphs.class_graphs": (3, function(graphs.class_graphs, _rows_and_labels)),
    "graphs.connect_components": (3, function(graphs.connect_components, _graph_and_rows)),
    "graphs.n_components": (2, function(graphs.n_components, lambda draw: (graph(draw, draw.count()),))),
    "graphs.mean_sq_distance": (2, function(graphs.mean_sq_distance, _rows)),
    "spectral.smallest_eigenvectors": (3, function(spectral.smallest_eigenvectors, _matrix_and_count)),
    "metrics.trustworthiness": (2, function(metrics.trustworthiness, _two_embeddings)),
    "metrics.continuity": (2, function(metrics.continuity, _two_embeddings)),
    "metrics.neighborhood_preservation": (2, function(metrics.neighborhood_preservation, _two_embeddings)),
    "metrics.residual_variance": (2, function(metrics.residual_variance, _two_embeddings)),
    "metrics.alignment_error": (2, function(metrics.alignment_error, _compared_embeddings)),
    "metrics.subspace_distance": (2, function(metrics.subspace_distance, _compared_embeddings)),
    "metrics.misclassification_rate": (1, function(metrics.misclassification_rate, _labels_twice)),
    "theory.separation_margin": (0.5, function(theory.separation_margin, _embedding_and_labels)),
    "theory.ball_probability": (1, function(theory.ball_probability, lambda draw: (*_rows_and_labels(draw), 1.0))),
    "theory.coefficient_bound": (1, function(theory.coefficient_bound, _rows)),
    "theory.linear_lipschitz": (1, function(theory.linear_lipschitz, _rows)),
    **{
        f"extensions.{cls.__name__}": (0.6, estimator(cls))
        for cls in EXTENSIONS
    },
    **{
        f"{module.__name__.rpartition('.')[2]}.{name}": (
            0.05 if name.endswith("CV") else 0.3,
            estimator(getattr(module, name), supervised="some" if name in SOME_LABELS else "all" if name in LABELS else ""),  # noqa: E501
        )
        for module in (embeddings, classifiers)
        for name in module.__all__
        if isinstance(getattr(module, name), type)
    },
}  # fmt: skip
