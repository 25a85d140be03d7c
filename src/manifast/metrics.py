"""How good an embedding is: which neighbours it keeps, and how far its map for new rows is from what it should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from manifast._ranks import GivenDistances, RowSpace
from manifast._validation import Array, as_count, as_matrix, as_pair
from manifast.kernels import sq_distances

__all__ = [
    "alignment_error",
    "continuity",
    "embedding_error",
    "misclassification_rate",
    "neighborhood_preservation",
    "residual_variance",
    "subspace_distance",
    "trustworthiness",
]


def embedding_error(ref_train: Any, ref_test: Any, train: Any, test: Any) -> float:
    """How much the embedding of test rows moves when they are new instead of trained on (LGRM, Fig. 5).

    A similarity (rotation, scale, shift) is fitted from `train` to `ref_train`, the same rows in both embeddings, and
    applied to `test`; the result is the mean squared distance to `ref_test`, divided by the mean squared norm of
    `ref_test` about the centre of `ref_train`. It measures stability, not quality.

    Parameters
    ----------
    ref_train, ref_test : arrays of shape (n, d) and (m, d)
        Embedding of all rows together.
    train, test : arrays of shape (n, d) and (m, d)
        Embedding of the training rows alone, and what its map makes of the test rows.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.metrics import embedding_error
    >>> Y = np.random.default_rng(0).standard_normal((30, 2))
    >>> turned = 3 * Y @ [[0, 1], [-1, 0]] + 5
    >>> embedding_error(Y[:20], Y[20:], turned[:20], turned[20:]) < 1e-25
    True
    """
    reference, moved = as_matrix(ref_train, "ref_train", dtype=np.float64), as_matrix(train, "train", dtype=np.float64)
    new_reference = as_matrix(ref_test, "ref_test", dtype=np.float64, columns=reference.shape[1])
    new_moved = as_matrix(test, "test", dtype=np.float64, columns=moved.shape[1])
    _same_shape(reference, moved, ("ref_train", "train"))
    _same_shape(new_reference, new_moved, ("ref_test", "test"))
    if not len(reference):
        raise ValueError("ref_train must have at least 1 row. Got none.")
    # In units where no square leaves the range.
    unit, own = (max(float(np.abs(Z).max(initial=0.0)) for Z in pair) or 1.0
                 for pair in ((reference, new_reference), (moved, new_moved)))  # fmt: skip
    reference, new_reference, moved, new_moved = reference / unit, new_reference / unit, moved / own, new_moved / own
    rotation, scale = _similarity(moved - moved.mean(axis=0), reference - reference.mean(axis=0), True)
    target = new_reference - reference.mean(axis=0)
    if not target.any():
        raise ValueError("ref_test must have a row away from the centre of ref_train. Got none.")
    placed = scale * (new_moved - moved.mean(axis=0)) @ rotation
    return float(np.square(placed - target).sum() / np.square(target).sum())


def alignment_error(Y: Any, Y_batch: Any, squared: bool = True, scale: bool = True) -> float:
    """What remains between two embeddings of the same rows after the best similarity (SPARSE, sec. 4.3).

    Parameters
    ----------
    Y : array of shape (n, d)
        Moved onto `Y_batch`.
    Y_batch : array of shape (n, d)
    squared : bool, default True
        The squared Frobenius norm of the difference, as in the paper's table, or its root.
    scale : bool, default True
        Fit a scale beside rotation and shift.

    Returns
    -------
    float
        Relative to the (squared) Frobenius norm of the centred `Y_batch`.

    Examples
    --------
    >>> from manifast.metrics import alignment_error
    >>> round(alignment_error([[0.0], [1.0], [2.0]], [[0.0], [2.0], [4.0]]), 12)
    0.0
    """
    moved, target = as_matrix(Y, "Y", dtype=np.float64), as_matrix(Y_batch, "Y_batch", dtype=np.float64)
    _same_shape(target, moved, ("Y_batch", "Y"))
    if not len(target) or (target == target[0]).all():
        raise ValueError(f"Y_batch must have rows that differ. Got {len(target)} equal rows instead.")
    # In units where no square leaves the range. One unit for both where the scale counts.
    units = [float(np.abs(Z).max()) or 1.0 for Z in (moved, target)]
    own = units[0] if scale else max(units)
    moved, target = moved / own, target / (units[1] if scale else own)
    moved, target = moved - moved.mean(axis=0), target - target.mean(axis=0)
    rotation, factor = _similarity(moved, target, scale)
    error = np.square(factor * moved @ rotation - target).sum() / np.square(target).sum()
    return float(error if squared else np.sqrt(error))


def misclassification_rate(y_true: Any, y_pred: Any) -> float:
    """Share of labels that differ.

    Examples
    --------
    >>> from manifast.metrics import misclassification_rate
    >>> misclassification_rate([0, 1, 1, 0], [0, 1, 0, 0])
    0.25
    """
    truth, guess = np.asarray(y_true), np.asarray(y_pred)
    if truth.ndim != 1 or truth.shape != guess.shape or not len(truth):
        raise ValueError(f"y_pred must have the shape of y_true, ({len(truth)},). Got {guess.shape} instead.")
    return float(np.mean(truth != guess))


def trustworthiness(
    X: Any,
    Y: Any,
    n_neighbors: Any = 5,
    *,
    X_new: Any = None,
    Y_new: Any = None,
    metric: str = "euclidean",
    n_threads: int | None = None,
) -> Any:
    """Whether neighbours in the embedding are neighbours in the data: 1 where all are.

    Each of the k nearest rows in the embedding that is not among the k nearest in the data costs as many places as its
    rank in the data exceeds k (Venna and Kaski, 2001)::

        T(k) = 1 - 2 / (m k (2 n - 3 k - 1)) · Σ_i Σ_{j in N_Y(i)} max(0, rank_X(i, j) - k)

    Parameters
    ----------
    X : array of shape (n, p)
        The data; with ``metric="precomputed"`` their distances, (n, n).
    Y : array of shape (n, d)
        Their embedding.
    n_neighbors : int or array of int, default 5
        k, below n / 2. Several of them cost no more than the largest alone.
    X_new, Y_new : arrays of shape (m, p) and (m, d), optional
        New rows and what a map makes of them: the neighbours of each new row are then sought among the n rows, and the
        rows themselves are not judged. With ``metric="precomputed"`` X_new holds the distances of the new rows to the
        n rows, (m, n).
    metric : {"euclidean", "cosine", "precomputed"}
        How distances in the data are measured; those in the embedding are Euclidean.
    n_threads : int, optional

    Returns
    -------
    float, or array of floats, one per entry of `n_neighbors`

    Notes
    -----
    Equal distances come in the order of their indices. Ranks follow distances in double precision; every pair is looked
    at once, and no n × n matrix is held. The value is that of `sklearn.manifold.trustworthiness` for data without ties.
    With new rows n is one more in the formula, because no row is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.metrics import trustworthiness
    >>> X = np.random.default_rng(0).random((200, 3)) * [10, 10, 0.1]
    >>> trustworthiness(X, X[:, :2], 5) > 0.999
    True
    >>> trustworthiness(X, X[:, :1], [2, 5, 10]).round(3)
    array([0.763, 0.768, 0.772])
    """
    data, embedding, m, n = _spaces(X, Y, X_new, Y_new, metric, n_threads)
    return _at(n_neighbors, n // 2, f" below half of {n + 1} rows", lambda k: _faithful(data, embedding, m, n, k))


def continuity(
    X: Any,
    Y: Any,
    n_neighbors: Any = 5,
    *,
    X_new: Any = None,
    Y_new: Any = None,
    metric: str = "euclidean",
    n_threads: int | None = None,
) -> Any:
    """Whether neighbours in the data are neighbours in the embedding: 1 where all are.

    `trustworthiness` with the data and the embedding exchanged: it falls where the embedding tears apart what belongs
    together, while trustworthiness falls where it puts together what does not.

    Parameters
    ----------
    X, Y, n_neighbors, X_new, Y_new, metric, n_threads
        As in `trustworthiness`.

    Returns
    -------
    float, or array of floats, one per entry of `n_neighbors`

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.metrics import continuity
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> continuity(circle, angle[:, None], 4) < 1  # a circle cut open
    True
    """
    data, embedding, m, n = _spaces(X, Y, X_new, Y_new, metric, n_threads)
    return _at(n_neighbors, n // 2, f" below half of {n + 1} rows", lambda k: _faithful(embedding, data, m, n, k))


def neighborhood_preservation(
    X: Any,
    Y: Any,
    n_neighbors: Any = 5,
    *,
    X_new: Any = None,
    Y_new: Any = None,
    metric: str = "euclidean",
    n_threads: int | None = None,
) -> Any:
    """Share of the k nearest rows in the data that are among the k nearest in the embedding (Lee and Verleysen, 2009).

    Parameters
    ----------
    X, Y, X_new, Y_new, metric, n_threads
        As in `trustworthiness`.
    n_neighbors : int or array of int, default 5
        k, up to the number of other rows.

    Returns
    -------
    float, or array of floats, one per entry of `n_neighbors`
        Two unrelated embeddings reach about k / n.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.metrics import neighborhood_preservation
    >>> X = np.array([[0.0], [1.0], [3.0], [6.0]])
    >>> neighborhood_preservation(X, -2 * X, [1, 2])
    array([1., 1.])
    """
    data, embedding, m, n = _spaces(X, Y, X_new, Y_new, metric, n_threads)

    def shares(largest: int) -> Array:
        ranks = data.ranks(embedding.neighbors(largest))
        last = np.maximum(ranks, np.arange(1, largest + 1))
        shared = np.bincount(np.minimum(last, largest + 1).ravel(), minlength=largest + 2)[1 : largest + 1].cumsum()
        return shared / (m * np.arange(1, largest + 1))

    return _at(n_neighbors, n, f" for {n} other rows", shares)


def residual_variance(X: Any, Y: Any, *, metric: str = "euclidean") -> float:
    """Variance of the distances in the data that those in the embedding leave unexplained: 1 - R² over all pairs.

    Parameters
    ----------
    X : array of shape (n, p)
        The data; with ``metric="precomputed"`` their distances, (n, n), such as `Isomap.dist_matrix_` for the residual
        variance of geodesic distances (Tenenbaum, de Silva and Langford, 2000).
    Y : array of shape (n, d)
        Their embedding.
    metric : {"euclidean", "cosine", "precomputed"}
        How distances in the data are measured.

    Returns
    -------
    float
        0 where the distances are proportional up to a constant. Where all distances in one of the two are equal, 1, and
        0 where they are in both.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.metrics import residual_variance
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> residual_variance(X, 2 * X) < 1e-14
    True
    """
    data, embedding = _rows_of(X, metric, "X"), as_matrix(Y, "Y", dtype=np.float64)
    n = len(data)
    if n < 3 or len(embedding) != n:
        raise ValueError(f"Y must have one row per row of X, and at least 3. Got {len(embedding)} and {n} rows.")
    step = max(1, 2**22 // n)
    moments, middle = np.zeros((2, 2)), np.zeros(2)
    sums = np.zeros(2)
    for begin in range(0, n, step):
        block = slice(begin, min(begin + step, n))
        pair = [
            data[block] if metric == "precomputed" else np.sqrt(sq_distances(data[block], data)),
            np.sqrt(sq_distances(embedding[block], embedding)),
        ]
        others = np.arange(n) != np.arange(block.start, block.stop)[:, None]
        values = np.stack([one[others] for one in pair])
        if begin == 0:
            middle = values.mean(axis=1)
        values -= middle[:, None]
        sums += values.sum(axis=1)
        moments += values @ values.T
    covariance = moments / (n * (n - 1)) - np.outer(sums, sums) / (n * (n - 1)) ** 2
    constant = np.diag(covariance) <= 1e-28 * middle**2
    if constant.any():
        return 0.0 if constant.all() else 1.0
    return float(max(0.0, 1 - covariance[0, 1] ** 2 / (covariance[0, 0] * covariance[1, 1])))


def subspace_distance(U: Any, V: Any) -> float:
    """sin² of the largest angle between the spaces that the columns of U and of V span.

    Eigenvectors of close eigenvalues turn among themselves with every rounding; the space they span does not.

    Parameters
    ----------
    U, V : arrays of shape (n, d)
        Columns need not be orthonormal, but must be independent.

    Returns
    -------
    float
        From 0, the same space, to 1, where one space has a direction orthogonal to the other.

    Examples
    --------
    >>> from manifast.metrics import subspace_distance
    >>> round(subspace_distance([[1.0], [0.0]], [[1.0], [1.0]]), 12)
    0.5
    """
    one, other = as_matrix(U, "U", dtype=np.float64), as_matrix(V, "V", dtype=np.float64)
    _same_shape(one, other, ("U", "V"))
    bases = [_basis(one, "U"), _basis(other, "V")]
    rest = bases[1] - bases[0] @ (bases[0].T @ bases[1])
    return min(1.0, float(np.linalg.norm(rest, 2)) ** 2)


def _basis(columns: Array, name: str) -> Array:
    """Orthonormal columns of the same span."""
    lengths = np.linalg.norm(columns, axis=0)
    scaled = columns / np.where(lengths > 0, lengths, 1.0)
    q, r, _ = scipy.linalg.qr(scaled, mode="economic", pivoting=True)
    if columns.shape[1] > columns.shape[0] or np.abs(np.diag(r)).min() < 1e-12:
        raise ValueError(f"{name} must have independent columns. Got columns that depend on each other.")
    return np.asarray(q)


def _faithful(space: Any, other: Any, m: int, n: int, largest: int) -> Array:
    """1 less the scaled excess of the ranks in `space` of the nearest rows in `other`, for k from 1 to `largest`.

    The t-th neighbour, of rank r, costs r - k for every k from t to r - 1. So r and 1 enter two sums at t and leave
    them at r; both are sums of integers, in any order the same.
    """
    ranks = space.ranks(other.neighbors(largest))
    k = np.arange(1, largest + 1)
    late = ranks > k
    left = np.bincount(np.where(late & (ranks <= largest), ranks, 0).ravel(), minlength=largest + 1)[1:]
    total = (np.where(late, ranks, 0).sum(axis=0) - left * k).cumsum()
    count = (late.sum(axis=0) - left).cumsum()
    scale = 2.0 / (m * k * (2.0 * n - 3.0 * k + 1.0))
    return np.asarray(1.0 - (total - k * count) * scale)


def _at(n_neighbors: Any, largest: int, why: str, curve: Callable[[int], Array]) -> Any:
    """The curve, a function of the largest k, at one k or at several."""
    wanted = [n_neighbors] if np.ndim(n_neighbors) == 0 else list(n_neighbors)
    if not wanted:
        raise ValueError(f"n_neighbors must be an integer or several of them. Got {n_neighbors!r} instead.")
    counts = np.array([as_count(k, "n_neighbors", maximum=max(largest, 1), why=why) for k in wanted])
    values = curve(int(counts.max()))[counts - 1]
    return float(values[0]) if np.ndim(n_neighbors) == 0 else values


def _rows_of(X: Any, metric: str, name: str, columns: int | None = None) -> Array:
    """Rows between which distances are Euclidean, or a square matrix of distances."""
    if metric not in ("euclidean", "cosine", "precomputed"):
        raise ValueError(f"metric must be 'euclidean', 'cosine' or 'precomputed'. Got {metric!r} instead.")
    rows = as_matrix(X, name, min_rows=1, columns=columns)
    if metric == "precomputed":
        if columns is None and rows.shape[0] != rows.shape[1]:
            raise ValueError(f"{name} must be a square matrix of distances. Got shape {rows.shape} instead.")
        if rows.min() < 0:
            raise ValueError(f"{name} must hold distances, none below 0. Got {rows.min():g}.")
    elif metric == "cosine":
        rows = rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(rows.dtype).tiny)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(lengths > 0, lengths, 1)
    return rows


def _spaces(
    X: Any, Y: Any, X_new: Any, Y_new: Any, metric: str, n_threads: int | None
) -> tuple[RowSpace | GivenDistances, RowSpace, int, int]:
    """The data and the embedding as two orders of the same rows, how many rows are judged, and by how many others."""
    data = _rows_of(X, metric, "X")
    if (X_new is None) != (Y_new is None):
        raise ValueError("X_new and Y_new must be given together. Got one of them.")
    embedding, new_embedding = (as_matrix(Y, "Y"), None) if Y_new is None else as_pair(Y, Y_new, ("Y", "Y_new"))
    new = None if X_new is None else _rows_of(X_new, metric, "X_new", columns=data.shape[1])
    if len(data) != len(embedding):
        raise ValueError(f"Y must have one row per row of X, {len(data)}. Got {len(embedding)} instead.")
    if new is not None and new_embedding is not None:
        if len(new) != len(new_embedding) or not len(new):
            raise ValueError(f"Y_new must have one row per row of X_new, {len(new)}. Got {len(new_embedding)} instead.")
        if new.dtype != data.dtype:
            data, new = data.astype(np.float64, copy=False), new.astype(np.float64, copy=False)
    elif len(data) < 3:
        raise ValueError(f"X must have at least 3 rows. Got shape {data.shape} instead.")
    n = len(data) - (new is None)
    given: RowSpace | GivenDistances
    if metric == "precomputed":
        given = GivenDistances(data if new is None else new, new is not None)
    else:
        given = RowSpace(data, new, n_threads)
    return given, RowSpace(embedding, new_embedding, n_threads), len(data) if new is None else len(new), n


def _similarity(moved: Array, target: Array, scale: bool) -> tuple[Array, float]:
    """Orthogonal R and factor c that minimise |c · moved R - target| for centred rows (Procrustes)."""
    left, values, right = np.linalg.svd(moved.T @ target)
    size = np.square(moved).sum()
    return left @ right, float(values.sum() / size) if scale and size > 0 else 1.0


def _same_shape(first: Array, second: Array, names: tuple[str, str]) -> None:
    if first.shape != second.shape:
        raise ValueError(f"{names[1]} must have the shape of {names[0]}, {first.shape}. Got {second.shape} instead.")
