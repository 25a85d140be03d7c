"""A `transform` for anybody's embedder: its embedding of the training rows, and one of our maps for all others."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.manifold import SpectralEmbedding
from sklearn.utils import get_tags

from manifast._progress import stage
from manifast._validation import Array, as_count, is_sparse
from manifast._warnings import warn
from manifast.embeddings._base import Embedding
from manifast.embeddings.composed import check_map_of_distances
from manifast.extensions import EXTENSIONS, Extension, as_extension, check_rows, fit_owned, representatives
from manifast.kernels import sq_distances

__all__ = ["OutOfSample"]

_SAMPLE_PER_CENTER = 20  # rows that k-means and the farthest rows are chosen from, for each landmark
_LEAST_JUDGED = 10  # landmarks of which a fifth can be held out
# Error of held-out landmarks from which on they are too few. Of digits and a Swiss roll, embedded by five methods, it
# was 0.03 to 0.28 with 700 landmarks chosen in three ways, and 0.16 to 1.0 with 60.
_TOO_FAR = 0.4


class OutOfSample(Embedding):
    """Give any scikit-learn-style embedder a map for new rows.

    The embedder gives Y for the training rows, or for landmarks among them; `extension` fits f with f(x_i) ≈ y_i, and
    y = f(x) places new rows.

    Parameters
    ----------
    embedder : estimator with `fit_transform`
        t-SNE, MDS, SpectralEmbedding, UMAP, or one of ours; it is cloned, and need not have a `transform`.
    extension : str or extension, default "lvm"
        The map: a short name or an instance of `manifast.extensions`, or any object with `fit(X, Y)` and `predict(X)`.
        A name takes neighbours and widths from the embedder's own graph where it has one: "nystrom" around
        `LaplacianEigenmaps` is its natural map. It also takes the embedder's `metric` where that is "cosine" or
        "precomputed" and the map has it; an instance has its own.
    landmarks : int, float or None, default None
        Embed only that many rows, or that share of them, and carry all others over by the map: how a million rows are
        embedded where the embedder itself can take a few thousand.
    landmark_method : {"random", "kmeans", "farthest"}, default "random"
        Rows drawn at random; those nearest to the centres of k-means; or one after another the row that is farthest
        from all before it, which reaches every corner, outliers first.
    random_state : int, default 0
        Of the choice of landmarks.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, also those of an embedder of this library; 2 also says what the
        solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, d)
        What the embedder gave; with landmarks, for the other rows, what the map gives.
    embedder_ : the fitted embedder
    extension_ : the fitted map
    landmarks_ : int array
        Rows that the embedder saw.
    landmark_error_ : float
        With landmarks: how well the map reproduces embedded rows that it was not fitted to. A fifth of the landmarks is
        held out of a map of the others; it is the root mean square of the misses relative to the spread of the
        embedding: 0 is perfect, 1 no better than the mean. NaN with fewer than 10 landmarks. Beyond 0.4 a warning says
        that there are too few.

    Notes
    -----
    Cost: `fit` takes what the embedder takes for its rows, or for the m landmarks, and the map: O(m²p) for the default
    one, O(m³) for Gaussian ones. A new row takes O(mp).

    Sparse rows are passed on where both the embedder and the map take them: of the maps "lvm", "nystrom" and
    "landmark_isomap" do.

    The default was the best of seven maps in 18 of 30 trials, six embedders on five data sets. The mean
    accuracy of the nearest neighbour among mapped rows (for a Swiss roll R² of its parameters) was 0.765; it was 0.750
    for "reconstruction", 0.712 for "kernel_ridge" and 0.705 for "rbf". "reconstruction" is ahead where an embedding
    keeps distances (PCA, Isomap); "rbf" interpolates, which the default does not.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.manifold import SpectralEmbedding
    >>> from manifast import OutOfSample
    >>> X = load_digits().data
    >>> model = OutOfSample(SpectralEmbedding(n_components=3, random_state=0)).fit(X[:500])
    >>> model.transform(X[500:]).shape
    (1297, 3)
    """

    def __init__(
        self,
        embedder: Any,
        extension: Any = "lvm",
        *,
        landmarks: float | None = None,
        landmark_method: str = "random",
        random_state: int = 0,
        verbose: bool | int = False,
    ) -> None:
        self.embedder = embedder
        self.extension = extension
        self.landmarks = landmarks
        self.landmark_method = landmark_method
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> OutOfSample:
        """Embed the rows of X and learn the map for new ones; y goes to the embedder where given."""
        super().fit(X, y)
        return self

    def _validate(self, X: Any, *, reset: bool) -> Any:
        if is_sparse(X):
            self._refuse_sparse()
        return super()._validate(X, reset=reset)

    def _refuse_sparse(self) -> None:
        if not _sparse_map(self.extension):
            fit_for_it = ", ".join(repr(name) for name, kind in EXTENSIONS.items() if kind._sparse)
            raise ValueError(
                f"X must be dense for the map {self.extension!r}: use X.toarray(), or one of {fit_for_it}, which take "
                "sparse rows. Got a sparse matrix."
            )
        if not _sparse_embedder(self.embedder):
            raise ValueError(
                f"X must be dense for the embedder {type(self.embedder).__name__}, which takes no sparse rows: use "
                "X.toarray(). Got a sparse matrix."
            )

    def _takes_sparse(self) -> bool:
        return _sparse_map(self.extension) and _sparse_embedder(self.embedder)

    def _metric(self) -> Any:
        metric = getattr(self.embedder, "metric", None)
        return metric if isinstance(metric, str) else None

    def _embed(self, X: Any, y: Any) -> None:
        if not hasattr(self.embedder, "fit_transform"):
            raise ValueError(f"embedder must have fit_transform. Got {type(self.embedder).__name__} instead.")
        extension = as_extension(self.extension, self._metric(), optional=False)
        if self._metric() == "precomputed":
            check_map_of_distances(extension, self.extension)
            if self.landmarks is not None:
                raise ValueError(
                    f"landmarks must be None where X holds distances, as for metric='precomputed' of the embedder. Got "
                    f"{self.landmarks!r} instead."
                )
        chosen = self._choose(X)
        check_rows(extension, len(chosen))
        some = len(chosen) < X.shape[0]
        rows = X[chosen] if some else X
        embedder = clone(self.embedder)
        # One of ours has a map by that name with the parameters of its own graph.
        mapped = isinstance(self.extension, str) and isinstance(embedder, Embedding) and hasattr(embedder, "extension")
        if mapped:
            embedder.set_params(extension=self.extension)
        labels = None if y is None else np.asarray(y)[chosen]
        with stage(f"embedding of {len(chosen)} rows by {type(embedder).__name__}"):
            Y = np.asarray(embedder.fit_transform(rows) if labels is None else embedder.fit_transform(rows, labels))
        if Y.ndim != 2 or len(Y) != len(chosen):
            raise ValueError(f"embedder must give one row per row of X. Got shape {Y.shape} for {len(chosen)} rows.")
        Y = np.ascontiguousarray(Y, dtype=X.dtype)
        if mapped:
            self.extension_ = embedder.extension_
        else:
            if self.extension == "nystrom":
                extension.set_params(**_graph_of(embedder))
            with stage("map for new rows"):
                self.extension_ = fit_owned(extension, rows, Y)
        self.embedder_, self.landmarks_ = embedder, chosen
        self.__dict__.pop("landmark_error_", None)
        if some:
            self._judge(extension, rows, Y)
            with stage(f"map of the other {X.shape[0] - len(chosen)} rows"):
                self.embedding_ = self.extension_.predict(X).astype(X.dtype, copy=False)
            self.embedding_[chosen] = Y
        else:
            self.embedding_ = Y

    def _judge(self, extension: Any, rows: Any, Y: Array) -> None:
        """How well a map of some landmarks places the others, with a warning where it is far off."""
        fitted = self.extension_ if isinstance(self.extension_, Extension) else extension
        with stage("map of held-out landmarks"):
            self.landmark_error_ = held_out_error(fitted, rows, Y)
        if self.landmark_error_ > _TOO_FAR:
            warn(
                f"{len(Y)} landmarks are too few for this map: held-out ones are placed with an error of "
                f"{self.landmark_error_:.2f} of the embedding's spread. Use more of them, or another extension."
            )

    def _check_extension(self, X: Any) -> None:
        """The map is fitted to the landmarks alone, which are not chosen yet."""

    def _choose(self, X: Array) -> Array:
        n = X.shape[0]
        if self.landmark_method not in ("random", "kmeans", "farthest"):
            raise ValueError(
                f"landmark_method must be 'random', 'kmeans' or 'farthest'. Got {self.landmark_method!r} instead."
            )
        if self.landmarks is None:
            return np.arange(n)
        count = self.landmarks
        if isinstance(count, Real) and not isinstance(count, bool) and 0 < count < 1:
            count = max(2, round(float(count) * n))
        count = as_count(count, "landmarks", maximum=n, why=f" for {n} rows, or a share between 0 and 1")
        rng = np.random.default_rng(self.random_state)
        if self.landmark_method == "random" or count == n:
            return np.sort(rng.choice(n, count, replace=False))
        sample = np.sort(rng.choice(n, min(n, _SAMPLE_PER_CENTER * count), replace=False))
        if self.landmark_method == "farthest":
            return sample[farthest_rows(X[sample], count)]
        return sample[representatives(X[sample], count, self.random_state)]


def farthest_rows(X: Any, count: int) -> Array:
    """Numbers of rows, ascending: the farthest from the mean, then always the farthest from those before."""
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if is_sparse(X) else None

    def to_row(row: Any) -> Array:
        if squares is None:
            return sq_distances(X, row.reshape(1, -1))[:, 0]
        return np.asarray(squares - 2.0 * (X @ row) + row @ row)

    chosen = [int(np.argmax(to_row(np.asarray(X.mean(axis=0)).ravel().astype(X.dtype))))]
    nearest = np.full(X.shape[0], np.inf)
    while len(chosen) < count:
        row = X[[chosen[-1]]].toarray().ravel() if squares is not None else X[chosen[-1]]
        nearest = np.minimum(nearest, to_row(row))
        nearest[chosen[-1]] = -np.inf  # also where all others are copies
        chosen.append(int(np.argmax(nearest)))
    return np.sort(chosen)


def held_out_error(extension: Any, rows: Any, Y: Array) -> float:
    """Root mean square of the misses of a map on every fifth row, fitted to the others, relative to their spread."""
    if len(Y) < _LEAST_JUDGED:
        return float("nan")
    held = np.arange(len(Y)) % 5 == 4
    kept = np.flatnonzero(~held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the map of all landmarks has said it
        try:
            map_of_some = clone(extension).fit(rows[kept], Y[kept])
            missed = np.asarray(map_of_some.predict(rows[np.flatnonzero(held)])) - Y[held]
        except (ValueError, np.linalg.LinAlgError):  # a map that needs more rows than are left
            return float("nan")
    spread = Y[held] - Y[held].mean(axis=0)
    return float(np.linalg.norm(missed) / (np.linalg.norm(spread) or 1.0))


def _sparse_map(extension: Any) -> bool:
    """Whether a map takes sparse rows; an object that does not say so may find out itself."""
    return bool(getattr(EXTENSIONS.get(extension) if isinstance(extension, str) else extension, "_sparse", True))


def _sparse_embedder(embedder: Any) -> bool:
    """Whether an embedder takes sparse rows; those of other libraries seldom say so, and may find out themselves."""
    known = type(embedder).__module__.partition(".")[0] in ("manifast", "sklearn")
    return bool(get_tags(embedder).input_tags.sparse) if known and isinstance(embedder, BaseEstimator) else True


def _graph_of(embedder: Any) -> dict[str, Any]:
    """Parameters of `Nystrom` for the graph of a fitted SpectralEmbedding of scikit-learn; none for other embedders."""
    if isinstance(embedder, SpectralEmbedding) and embedder.affinity == "nearest_neighbors":
        others = max(1, embedder.n_neighbors_ - 1)  # it counts a row among its own neighbours
        return {"n_neighbors": others, "weights": "binary"}
    if isinstance(embedder, SpectralEmbedding) and embedder.affinity == "rbf":
        return {"beta": 1.0 / embedder.gamma_, "formula": "laplacian"}
    return {}
