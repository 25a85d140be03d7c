"""How far apart rows are, for every `metric`: the one place that neighbours, lengths and widths come from.

Graphs, objectives and fitted maps ask a `Distances` object and do not know the metric:

* "euclidean": plain distances between rows.
* "cosine": 1 - cos of the angle between rows, which is half the squared distance between their unit vectors. A row of
  zeros is at distance 1 from all others and 0 from other rows of zeros.
* "precomputed": X is the n × n matrix of distances itself, dense or with the distances of neighbours stored in a sparse
  matrix, and new rows are their distances to the training rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._prepared import PreparedRows
from manifast._sparse import checked_sparse
from manifast._validation import Array, as_matrix, as_positive, is_sparse, largest_magnitude
from manifast._widths import NEAREST, local_widths
from manifast.graphs.bridges import bridges_of_matrix, bridges_of_rows, stored_bridges
from manifast.graphs.rows import CHUNK, as_rows, on_sphere, pair_distances, scale_of
from manifast.graphs.search import mean_square, mean_square_on_sphere, nearest
from manifast.graphs.weights import complete_graph, weigh
from manifast.kernels import approximate_knn, sq_distances

METRICS = ("euclidean", "cosine", "precomputed")

Lists = tuple[Array, Array]  # distances and indices, both (m, k)
Edges = tuple[Array, Array, Array]  # ends i < j, and lengths


class Distances(ABC):
    """Distances among n training rows, and from new rows to them."""

    n: int
    dtype: Any
    all_known = True  # whether every pair of rows has a distance
    features = 0  # of dense rows, which a search can part into clusters

    @abstractmethod
    def nearest(self, k: int, n_threads: int | None = None) -> Lists:
        """The k nearest others of every training row, ties by index."""

    def nearest_by_clusters(self, k: int) -> tuple[Array, Array, float]:
        """Most of the k nearest others of every training row, and the share of them that was found."""
        raise ValueError(
            "neighbors must not be 'approximate' for a sparse X or a matrix of distances, only for dense rows. Got "
            "'approximate': use None or 'auto'."
        )

    @abstractmethod
    def nearest_to(self, X: Any, k: int) -> Lists:
        """The k nearest training rows of new rows, ties by index."""

    def nearest_and_more(self, X: Any, k: int, more: int) -> tuple[Array, Array, Array]:
        """The same, and the distances to the `more` nearest of them, ascending; 0 comes first where fewer are known."""
        distances, indices = self.nearest_to(X, min(max(k, more), self.n))
        return distances[:, :k], np.ascontiguousarray(indices[:, :k]), distances[:, :more]

    def nearest_for_widths(self) -> Array:
        """Distances that `local_widths` makes the width of every training row from."""
        return self.nearest(min(NEAREST, self.n - 1))[0]

    def searched_for(self, k: int) -> int:
        """How many nearest others to search for where edges to k of them have local widths: one search finds both."""
        return max(k, min(NEAREST, self.n - 1)) if self.all_known else k

    @abstractmethod
    def to(self, X: Any) -> Array:
        """All distances from new rows to training rows, float64 (m, n)."""

    @abstractmethod
    def pairs_within(self, radius: float, n_threads: int | None = None) -> Edges:
        """Pairs of training rows no further apart than a radius."""

    @abstractmethod
    def squares(self, rows: Array) -> Array:
        """Squared distances between some training rows, float64."""

    @abstractmethod
    def mean_square(self) -> float:
        """Mean squared distance over all pairs of different training rows that are known."""

    @abstractmethod
    def bridges(self, count: int, labels: Array, n_threads: int | None = None) -> Edges:
        """The shortest edges that join components; fewer than count - 1 where distances between them are unknown."""

    @abstractmethod
    def complete(self, weights: str, beta: float, n_threads: int | None = None) -> Array:
        """Weights of all pairs of training rows, zero on the diagonal."""

    def reach(self, X: Any, radius: float) -> Lists:
        """Training rows within a radius of new rows, at least the nearest; shorter lists repeat it."""
        ways = self.to(X)
        inside = ways <= radius
        inside[np.arange(len(ways)), ways.argmin(axis=1)] = True
        at, j = np.nonzero(inside)
        return _padded(at, j, ways[at, j], len(ways))

    def heat_width(self, beta: Any, distances: Any = None) -> Any:
        """Width of heat weights; 1 where it is to be the mean squared distance and all rows are equal.

        Neighbour graphs have `distances` to the nearest of each row, or () to search for them: "local" is then an array
        with the root of each row's own width.
        """
        if isinstance(beta, np.ndarray) and beta.ndim:  # found before
            if beta.shape != (self.n,):
                raise ValueError(f"beta must be a positive number or a name. Got an array of shape {beta.shape}.")
            return beta
        if not isinstance(beta, str):
            return as_positive(beta, "beta")
        if beta == "mean":
            return self.mean_square() or 1.0
        if beta != "local" or distances is None:
            known = "'mean'" if distances is None else "'local', 'mean'"
            raise ValueError(f"beta must be {known} or a positive number. Got {beta!r} instead.")
        if self.n < 2:
            return np.ones(self.n)
        return local_widths(self.nearest_for_widths() if np.ndim(distances) < 2 else distances)


class Euclidean(Distances):
    """Distances between rows, dense or sparse, that were checked and stay the same."""

    def __init__(self, X: Any) -> None:
        self._X = X
        self.n, self.dtype = int(X.shape[0]), X.dtype
        self.features = 0 if is_sparse(X) else int(X.shape[1])
        self._rows = None if is_sparse(X) else PreparedRows(X)

    def nearest(self, k: int, n_threads: int | None = None) -> Lists:
        return nearest(self._X, k, n_threads=n_threads)

    def nearest_by_clusters(self, k: int) -> tuple[Array, Array, float]:
        return approximate_knn(self._X, k) if self.features else super().nearest_by_clusters(k)

    def nearest_to(self, X: Any, k: int) -> Lists:
        if self._rows is None or is_sparse(X):
            return nearest(self._X, k, queries=X)
        return self._rows.nearest(X, k)

    def to(self, X: Any) -> Array:
        rows = self._rows or PreparedRows(as_matrix(self._X, "X"))
        squares = rows.sq_distances(as_matrix(X, "X") if is_sparse(X) else X).astype(np.float64, copy=False)
        return np.asarray(np.sqrt(squares, out=squares))

    def pairs_within(self, radius: float, n_threads: int | None = None) -> Edges:
        x = as_matrix(self._X, "X", min_rows=1)
        exponent = scale_of(x)
        scaled = np.ldexp(x.astype(np.float64), -exponent) if exponent else x
        with np.errstate(over="ignore", under="ignore"):
            limit = min(float(np.ldexp(radius, -exponent)), 1e150)
        found = []
        tiny, most = float(np.finfo(scaled.dtype).tiny), float(np.finfo(scaled.dtype).max)
        step = max(1, CHUNK // self.n)
        for begin in range(0, self.n, step):
            near = sq_distances(scaled[begin : begin + step], scaled[begin:], n_threads=n_threads)
            # Screened with slack, then decided on the distance in double, which is the same from either end.
            i, j = np.nonzero(near <= np.clip(limit * limit * 1.01, tiny, most))
            i, j = i[i < j] + begin, j[i < j] + begin
            length = pair_distances(scaled, i, j)
            inside = length <= limit
            found.append((i[inside], j[inside], length[inside]))
        i, j, length = (np.concatenate(parts) for parts in zip(*found, strict=True))
        with np.errstate(over="ignore", under="ignore"):
            return i, j, np.ldexp(length, exponent)

    def squares(self, rows: Array) -> Array:
        return sq_distances(np.asarray(self._X[rows], dtype=np.float64))

    def mean_square(self) -> float:
        return mean_square(self._X)

    def bridges(self, count: int, labels: Array, n_threads: int | None = None) -> Edges:
        return bridges_of_rows(self._X, count, labels, n_threads)

    def complete(self, weights: str, beta: float, n_threads: int | None = None) -> Array:
        return complete_graph(as_matrix(self._X, "X"), weights, beta, n_threads)


class Cosine(Distances):
    """1 - cos of the angle between rows: half the squared Euclidean distance of their unit vectors."""

    def __init__(self, X: Any) -> None:
        self._unit = on_sphere(X)
        self._sphere = Euclidean(self._unit)
        self.n, self.dtype, self.features = self._sphere.n, self._sphere.dtype, self._sphere.features

    def nearest(self, k: int, n_threads: int | None = None) -> Lists:
        chords, indices = self._sphere.nearest(k, n_threads)
        return _half_squares(chords), indices

    def nearest_by_clusters(self, k: int) -> tuple[Array, Array, float]:
        chords, indices, recall = self._sphere.nearest_by_clusters(k)
        return _half_squares(chords), indices, recall

    def nearest_to(self, X: Any, k: int) -> Lists:
        chords, indices = self._sphere.nearest_to(on_sphere(X), k)
        return _half_squares(chords), indices

    def to(self, X: Any) -> Array:
        return _half_squares(self._sphere.to(on_sphere(X)))

    def pairs_within(self, radius: float, n_threads: int | None = None) -> Edges:
        i, j, chords = self._sphere.pairs_within(float(np.sqrt(2 * radius)), n_threads)
        return i, j, _half_squares(chords)

    def squares(self, rows: Array) -> Array:
        return np.square(0.5 * self._sphere.squares(rows))

    def mean_square(self) -> float:
        return mean_square_on_sphere(self._unit)

    def bridges(self, count: int, labels: Array, n_threads: int | None = None) -> Edges:
        i, j, chords = self._sphere.bridges(count, labels, n_threads)
        return i, j, _half_squares(chords)

    def complete(self, weights: str, beta: float, n_threads: int | None = None) -> Array:
        lengths = _half_squares(self._sphere.complete("distance", 1.0, n_threads))
        return _weighed(lengths, weights, beta)


class Precomputed(Distances):
    """A matrix of distances that was checked: dense with all of them, or sparse with those of neighbours.

    A fitted map keeps no matrix but only the number of training rows, and answers for new rows.
    """

    def __init__(self, D: Any, n: int | None = None) -> None:
        self._D = D
        self.n = int(D.shape[0] if n is None else n)
        self.dtype = None if D is None else D.dtype
        self.all_known = not is_sparse(D)

    def nearest(self, k: int, n_threads: int | None = None) -> Lists:
        if is_sparse(self._D):
            others = _off_diagonal(self._D)
            least = int(np.diff(others.indptr).min())
            if least < k:
                raise ValueError(
                    f"n_neighbors must be at most {least}, the fewest distances to others that a row of the sparse X "
                    f"holds. Got {k} instead."
                )
            return _first_stored(others, k)
        distances, indices = np.empty((self.n, k), dtype=self.dtype), np.empty((self.n, k), dtype=np.int64)
        step = max(1, CHUNK // self.n)
        for begin in range(0, self.n, step):
            block = self._D[begin : begin + step].copy()
            rows = np.arange(begin, begin + len(block))
            block[rows - begin, rows] = np.inf
            distances[rows], indices[rows] = _smallest(block, k)
        return distances, indices

    def nearest_to(self, X: Any, k: int) -> Lists:
        self._refuse_negative(X)
        if not is_sparse(X):
            return _smallest(X, k)
        least = int(np.diff(X.indptr).min(initial=k))
        if least < k:
            raise ValueError(f"X must hold the distances to at least {k} training rows in every row. Got {least}.")
        return _first_stored(X, k)

    def nearest_and_more(self, X: Any, k: int, more: int) -> tuple[Array, Array, Array]:
        if not is_sparse(X):
            return super().nearest_and_more(X, k, more)
        return *self.nearest_to(X, k), _shortest_stored(X, more)

    def nearest_for_widths(self) -> Array:
        return _shortest_stored(_off_diagonal(self._D), NEAREST) if is_sparse(self._D) else super().nearest_for_widths()

    def to(self, X: Any) -> Array:
        self._refuse_negative(X)
        if is_sparse(X):
            raise ValueError("X must hold the distances to all training rows. Got a sparse matrix of some.")
        return np.asarray(X, dtype=np.float64)

    def reach(self, X: Any, radius: float) -> Lists:
        if not is_sparse(X):
            return super().reach(X, radius)
        _, first = self.nearest_to(X, 1)
        at = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        inside = (X.data <= radius) | (X.indices == first[at, 0])
        return _padded(at[inside], X.indices[inside], X.data[inside], X.shape[0])

    def pairs_within(self, radius: float, n_threads: int | None = None) -> Edges:
        if not is_sparse(self._D):
            i, j = np.nonzero(np.triu(np.less_equal(self._D, radius), 1))
            return i, j, self._D[i, j]
        stored = sp.coo_array(_off_diagonal(self._D))
        inside = stored.data <= radius
        ends = np.sort(np.column_stack([stored.row[inside], stored.col[inside]]), axis=1).astype(np.int64)
        length = stored.data[inside]
        order = np.lexsort((length, ends[:, 1], ends[:, 0]))
        ends, length = ends[order], length[order]
        first = np.ones(len(ends), dtype=bool)  # of a pair that is stored twice the smaller distance
        first[1:] = (ends[1:] != ends[:-1]).any(axis=1)
        return ends[first, 0], ends[first, 1], length[first]

    def squares(self, rows: Array) -> Array:
        self._refuse_sparse("classical scaling: use Isomap")
        return np.asarray(np.square(self._D[np.ix_(rows, rows)].astype(np.float64)))

    def mean_square(self) -> float:
        sparse = is_sparse(self._D)
        known = _off_diagonal(self._D).data if sparse else self._D  # the diagonal adds nothing
        count = known.size if sparse else self.n * (self.n - 1)
        largest = largest_magnitude(known)
        if count == 0 or largest == 0:
            return 0.0
        total = 0.0
        for part in np.array_split(known.reshape(-1), max(1, known.size // CHUNK)):
            total += float(np.sum(np.square(part.astype(np.float64) / largest)))
        return float(np.clip(total / count * largest * largest, np.nextafter(0, 1), np.finfo(np.float64).max))

    def bridges(self, count: int, labels: Array, n_threads: int | None = None) -> Edges:
        return (stored_bridges if is_sparse(self._D) else bridges_of_matrix)(self._D, count, labels)

    def complete(self, weights: str, beta: float, n_threads: int | None = None) -> Array:
        self._refuse_sparse("a full graph: use n_neighbors")
        lengths = self._D.copy()
        np.fill_diagonal(lengths, 0)
        return _weighed(lengths, weights, beta)

    def _refuse_sparse(self, use: str) -> None:
        if is_sparse(self._D):
            what, _, remedy = use.partition(": ")
            raise ValueError(f"X must hold all distances for {what}. Got a sparse matrix of some: {remedy}.")

    def _refuse_negative(self, X: Any) -> None:
        refuse_negative((X.data if is_sparse(X) else X).min(initial=0.0), "X")


def distances_of(X: Any, metric: str = "euclidean") -> Distances:
    """The distances of rows X in a metric; for "precomputed" X is the matrix of distances."""
    check_metric(metric)
    if metric == "precomputed":
        return Precomputed(checked_distances(X))
    return (Cosine if metric == "cosine" else Euclidean)(X)


def fitted_distances(rows: Any, metric: str, n: int) -> Distances:
    """The same for a fitted map, whose rows were checked; there are none where distances are precomputed."""
    if metric == "precomputed":
        return Precomputed(None, n)
    return (Cosine if metric == "cosine" else Euclidean)(rows)


def check_metric(metric: Any, allowed: tuple[str, ...] = METRICS) -> None:
    """Refuse what is no metric."""
    if not isinstance(metric, str) or metric not in allowed:
        known = " or ".join(map(repr, allowed)) if len(allowed) < 3 else "'euclidean', 'cosine' or 'precomputed'"
        raise ValueError(f"metric must be {known}. Got {metric!r} instead.")


def checked_distances(D: Any, name: str = "X") -> Any:
    """A square matrix of distances, none negative; a dense one is symmetric with zeros on its diagonal."""
    if is_sparse(D):
        D = checked_sparse(D, name, square=True, finite=True)
        entries = D.data
    else:
        entries = D = as_matrix(D, name, min_rows=1)
    if D.shape[0] != D.shape[1]:
        raise ValueError(f"{name} must be a square matrix of distances for metric='precomputed'. Got shape {D.shape}.")
    refuse_negative(entries.min(initial=0.0), name)
    if is_sparse(D):
        return D
    largest = float(entries.max(initial=0.0))
    tolerance = 1e-4 if D.dtype == np.float32 else 1e-7
    own = float(D.diagonal().max())
    if own > np.sqrt(tolerance) * largest:
        raise ValueError(f"{name} must hold distances, 0 on the diagonal. Got up to {own:.3g} there.")
    step = max(1, CHUNK // len(D))
    gap = max(float(np.abs(D[at : at + step] - D[:, at : at + step].T).max()) for at in range(0, len(D), step))
    if gap > tolerance * largest:
        raise ValueError(f"{name} must be a symmetric matrix of distances. Got entries that differ by up to {gap:.3g}.")
    if gap > 0 or own > 0:  # by rounding
        D = np.minimum(D, D.T)
        np.fill_diagonal(D, 0)
    return D


def refuse_negative(least: Any, name: str) -> None:
    if least < 0:
        raise ValueError(f"{name} must hold distances. Negative values in data passed as distances, such as {least}.")


def mean_sq_distance(X: Any, *, metric: str = "euclidean") -> float:
    """Mean squared distance over all pairs of different rows.

    Of Euclidean distances it is twice n / (n - 1) times the mean squared distance to the centroid, and cosine distances
    have a like formula: no distance between two rows is computed.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        For "precomputed" the matrix of distances (n, n); of a sparse one the mean is over the distances it holds.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"

    Returns
    -------
    float
        0 where all rows are equal, and for a single row.

    Examples
    --------
    >>> from manifast.graphs import mean_sq_distance
    >>> round(mean_sq_distance([[0.0], [1.0], [3.0]]), 12)  # (1 + 4 + 9) / 3
    4.666666666667
    """
    return distances_of(as_rows(X), metric).mean_square()


def heat_width(X: Any, beta: Any, metric: str = "euclidean", distances: Any = None) -> Any:
    """`Distances.heat_width` of checked rows."""
    return distances_of(X, metric).heat_width(beta, distances)


def _half_squares(chords: Array) -> Array:
    return np.asarray(chords.dtype.type(0.5) * chords * chords)


def _weighed(lengths: Array, weights: str, beta: float) -> Array:
    made = weigh(lengths, weights, beta).astype(lengths.dtype, copy=False)
    np.fill_diagonal(made, 0)
    return made


def _smallest(block: Array, k: int) -> Lists:
    """The k smallest entries of every row and their columns, ties by column."""
    if 8 * k > block.shape[1]:
        order = np.ascontiguousarray(np.argsort(block, axis=1, kind="stable")[:, :k], dtype=np.int64)
        return np.take_along_axis(block, order, axis=1), order
    bound = np.partition(block, k - 1, axis=1)[:, k - 1 : k]
    i, j = np.nonzero(block <= bound)
    values = block[i, j]
    order = np.lexsort((j, values, i))
    taken = order[np.searchsorted(i, np.arange(len(block)))[:, None] + np.arange(k)]
    return values[taken], j[taken]


def _first_stored(stored: sp.csr_array, k: int) -> Lists:
    """The same of the entries that are stored."""
    rows = np.repeat(np.arange(stored.shape[0]), np.diff(stored.indptr))
    order = np.lexsort((stored.indices, stored.data, rows))
    taken = order[stored.indptr[:-1, None] + np.arange(k)]
    return stored.data[taken], stored.indices[taken].astype(np.int64)


def _shortest_stored(stored: sp.csr_array, count: int) -> Array:
    """The smallest entries that every row stores (m, count), ascending; after zeros where it stores fewer."""
    counts = np.diff(stored.indptr)
    rows = np.repeat(np.arange(stored.shape[0]), counts)
    rank = np.arange(len(rows)) - stored.indptr[rows]
    kept = rank < count
    out = np.zeros((stored.shape[0], count), dtype=stored.dtype)
    columns = rank + count - np.minimum(counts, count)[rows]
    out[rows[kept], columns[kept]] = stored.data[np.lexsort((stored.data, rows))][kept]
    return out


def _off_diagonal(D: sp.csr_array) -> sp.csr_array:
    """Stored distances to others; distances of 0 stay stored."""
    rows = np.repeat(np.arange(D.shape[0]), np.diff(D.indptr))
    others = D.indices != rows
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[others], minlength=D.shape[0]))])
    return sp.csr_array((D.data[others], D.indices[others], indptr), shape=D.shape)


def _padded(at: Array, j: Array, length: Array, m: int) -> Lists:
    """Lists of m rows from entries sorted by row, at least one each; shorter lists repeat their first entry."""
    counts = np.bincount(at, minlength=m)
    starts = np.cumsum(counts) - counts
    places = np.arange(int(counts.max(initial=1)))
    taken = starts[:, None] + np.where(places < counts[:, None], places, 0)
    return length[taken], j[taken].astype(np.int64)
