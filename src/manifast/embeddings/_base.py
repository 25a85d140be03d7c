"""What every embedding shares: input checks, the natural map or another extension, dtype and feature names."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from inspect import signature
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from manifast._labels import Labels, read_labels
from manifast._threads import blas_for
from manifast._validation import Array, as_count, is_sparse, largest_magnitude, whole_or_not_at_all
from manifast.extensions import EXTENSIONS, as_extension
from manifast.graphs import (
    bridges_between,
    connect_components,
    full_graph,
    heat_width,
    knn_graph,
    l1_graph,
    n_components_of,
    nearest,
)
from manifast.objectives import Objective
from manifast.spectral import smallest_eigenvectors

NOT_INTERPOLATING = "the map for new rows does not interpolate: transform(X) is close to embedding_, not equal to it"
MINUS_ONE = "-1 in y means that a row has no label: it cannot be a class"


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Checks of scikit-learn's `check_estimator` that an estimator cannot pass, each with its reason.

    Examples
    --------
    >>> from manifast import LPP, expected_failed_checks
    >>> expected_failed_checks(LPP())
    {}
    """
    if isinstance(estimator, ClassifierMixin):
        return {"check_classifiers_classes": MINUS_ONE} if getattr(estimator, "_unlabelled", False) else {}
    if estimator._interpolates and getattr(estimator, "extension", None) is None:
        return {}
    return {
        "check_transformer_general": NOT_INTERPOLATING,
        "check_transformer_data_not_an_array": NOT_INTERPOLATING,
    }


class RowEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of everything fitted to rows X: how they are checked, and brought into the range where squares are safe."""

    _sparse = False

    def _validate(self, X: Any, *, reset: bool) -> Any:
        if not reset and self._plain(X):  # what scikit-learn would find nothing wrong with, and take far longer
            largest = largest_magnitude(X)
            if isfinite(largest):
                return self._in_range(X, largest)
        dtype = (np.float64, np.float32)
        accept = "csr" if self._takes_sparse() else False
        X = validate_data(
            self, X, reset=reset, dtype=dtype, order="C", accept_sparse=accept, ensure_min_samples=2 if reset else 1
        )
        if is_sparse(X):
            if reset:
                self._exponent = 0
            return sp.csr_array(X)
        largest = largest_magnitude(X)
        if reset:
            exponent = int(np.frexp(largest)[1]) if largest else 0
            scaled = abs(exponent) > (300 if X.dtype == np.float64 else 50) and not self._pairwise()
            self._exponent = exponent if scaled else 0
        return self._in_range(X, largest)

    def _plain(self, X: Any) -> bool:
        """Whether new rows are an array as the core takes it, without names, and as wide as the training rows."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype in (np.float64, np.float32)
            and X.flags.c_contiguous
            and X.shape[0] > 0
            and X.shape[1] == getattr(self, "n_features_in_", None)
            and not hasattr(self, "feature_names_in_")
        )

    def _in_range(self, X: Array, largest: float) -> Array:
        """Rows whose squares stay in range: training data beyond it are scaled by a power of two, new rows with them.

        New rows that are still too far away are moved to where all training rows look like one point, too.
        """
        limit = 1e140 if X.dtype == np.float64 else 1e17
        if self._exponent:
            with np.errstate(over="ignore"):
                X = np.ldexp(X, -self._exponent)
            largest = np.inf
        return X if largest < limit else np.clip(X, -limit, limit)

    def _pairwise(self) -> bool:
        """Whether X holds affinities or kernel values instead of features."""
        given = (getattr(self, name, None) for name in ("affinity", "graph", "kernel"))
        return any(isinstance(value, str) and value == "precomputed" for value in given)

    def _in_units(self, value: Any, power: int) -> Any:
        """A parameter in (units of the data)^power, in those that the rows were scaled to."""
        if isinstance(value, Real) and not isinstance(value, bool) and self._exponent:
            with np.errstate(over="ignore", under="ignore"):
                return float(np.ldexp(float(value), -power * self._exponent))
        return value

    def _takes_sparse(self) -> bool:
        """Whether method and map both take sparse rows."""
        extension = getattr(self, "extension", None)
        if isinstance(extension, str):
            extension = EXTENSIONS.get(extension)
        return self._sparse and (extension is None or bool(getattr(extension, "_sparse", False)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise()
        tags.input_tags.sparse = self._takes_sparse()
        return tags


class Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowEstimator, ABC):  # type: ignore[misc]
    """Base of all embeddings: subclasses say how training rows are embedded and which map is natural."""

    _interpolates = False  # whether transform(X) of the training rows is embedding_

    def fit(self, X: Any, y: Any = None) -> Embedding:
        """Embed the rows of X and learn the map for new ones; y is ignored."""
        with whole_or_not_at_all(self):
            X = self._validate(X, reset=True)
            if getattr(self, "extension", None) is not None:
                as_extension(self.extension)
            targets = self._targets(y, X)
            with blas_for(X.shape[0]):
                self._embed(X, targets)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Embed the rows of X and return `embedding_`."""
        self.fit(X, y)
        return self.embedding_  # type: ignore[no-any-return]

    def transform(self, X: Any) -> Array:
        """Embedding of new rows; a row's result does not depend on the other rows."""
        if not hasattr(self, "n_features_in_"):
            check_is_fitted(self)
        return self._map(self._validate(X, reset=False))

    def _targets(self, y: Any, X: Any) -> Any:
        """What `_embed` gets as y: unsupervised embeddings take anything, and ignore it."""
        return y

    @abstractmethod
    def _embed(self, X: Any, y: Any) -> None:
        """Embed checked rows and keep the map."""

    def _map(self, X: Any) -> Array:
        return self.extension_.predict(X).astype(X.dtype, copy=False)  # type: ignore[no-any-return]

    def _extend(self, X: Any, natural: Any) -> None:
        """Keep the natural map, or fit the extension that was asked for."""
        named = EXTENSIONS.get(self.extension) if isinstance(self.extension, str) else None
        if self.extension is None or (named is not None and isinstance(natural, named)):
            self.extension_ = natural  # also under its own name, with the estimator's parameters
        else:
            self.extension_ = as_extension(self.extension).fit(X, self.embedding_)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class SupervisedEmbedding(Embedding):
    """Base of embeddings that need labels: `_embed` gets them as `Labels`, and `classes_` lists them."""

    _unlabelled = False  # whether -1 means that a row has no label
    _least_classes = 2

    def fit(self, X: Any, y: Any = None) -> SupervisedEmbedding:
        """Embed the rows of X by their labels y, and learn the map for new rows."""
        super().fit(X, y)
        return self

    def _targets(self, y: Any, X: Any) -> Labels:
        labels = read_labels(self, y, X.shape[0], unlabelled=self._unlabelled, least_classes=self._least_classes)
        self.classes_ = labels.classes
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def check_neighbors(value: Any, X: Any, *, least: int = 1, others: bool = True) -> int:
    """n_neighbors for these training rows: at most n - 1, or n where a row counts among its own neighbours."""
    n = X.shape[0]
    most = n - 1 if others else n
    k = as_count(value, "n_neighbors", maximum=most, why=f" for n_samples = {n}, n_features = {X.shape[1]}")
    if k < least:
        raise ValueError(f"n_neighbors must be at least {least} for this method. Got {k} instead.")
    return k


def few_enough(estimator: Any, X: Any) -> Any:
    """n_neighbors; a default that nobody chose for so few rows is cut to their number with a warning, by choice."""
    value, most = estimator.n_neighbors, X.shape[0] - 1
    chosen = value != signature(type(estimator)).parameters["n_neighbors"].default
    if chosen or value <= most or not getattr(estimator, "_cuts_neighbors", False):
        return value
    told = f"n_neighbors is cut from its default, {value}, to {most}: there are no more."
    warnings.warn(told, UserWarning, stacklevel=7)
    return most


def neighbor_lists(given: Any, X: Any, k: int) -> tuple[Array, Array]:
    """Distances and indices of the nearest others: the user's own lists, or an exact search."""
    if given is None:
        return nearest(X, k)
    n = X.shape[0]
    shapes = [np.shape(part) for part in given] if isinstance(given, tuple | list) else []
    if len(shapes) != 2 or shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] != n:
        raise ValueError(f"neighbors must be (distances, indices), both of shape ({n}, k). Got {shapes or given!r}.")
    distances, indices = np.asarray(given[0]), np.asarray(given[1])
    if indices.dtype.kind not in "iu":
        raise ValueError(f"neighbors must be (distances, indices) with integer indices. Got {indices.dtype} second.")
    itself = indices == np.arange(n)[:, None]
    if itself.any():
        if not (itself.sum(axis=1) == 1).all() or indices.shape[1] == 1:
            raise ValueError("neighbors must list every row itself or none. Got lists where some rows are.")
        distances, indices = (part[~itself].reshape(n, -1) for part in (distances, indices))
    return distances, np.ascontiguousarray(indices, dtype=np.int64)


def check_components(value: Any, most: int, why: str) -> int:
    return as_count(value, "n_components", maximum=most, why=f", {why}")


def join(W: Any, X: Any, connect: bool, weights: str, beta: Any = None) -> Any:
    """The graph with its components joined, with a warning where there are several; only the warning by choice."""
    if not disconnected(W, connect, weights):
        return W
    return connect_components(W, X, weights=weights, beta=beta)


def affinity_graph(estimator: Any, X: Any, kind: str, beta: Any, *, mode: str = "union") -> tuple[Any, float]:
    """The estimator's graph of rows, its components joined, and the width of its heat weights; see `named_graph`."""
    W, width = named_graph(estimator, X, kind, beta, mode=mode)
    if kind == "full" and np.partition(W, 1, axis=1)[:, 1].min() > 0:  # no weight but the diagonal's is zero
        return W, width
    return join(W, X, estimator.connect, "heat" if kind == "full" else kind, width), width


def named_graph(estimator: Any, X: Any, kind: str, beta: Any, *, mode: str = "union") -> tuple[Any, float]:
    """The estimator's graph of rows as it comes, and the width of its heat weights.

    `kind` is "heat" or "binary" for neighbour graphs, "full" or "l1".
    """
    if kind == "l1":
        return l1_graph(X, verbose=estimator.verbose), 1.0
    width = heat_width(X, estimator._in_units(beta, 2))
    if kind == "full":
        return full_graph(X, beta=width), width
    k = check_neighbors(few_enough(estimator, X), X)
    lists = neighbor_lists(estimator.neighbors, X, k)
    return knn_graph(X, k, weights=kind, beta=width, mode=mode, neighbors=lists), width


def find_bridges(W: Any, X: Any, connect: bool) -> Array:
    """Pairs of rows (m, 2) that would join the components of a graph, with a warning where there are several."""
    if not disconnected(W, connect, "binary"):
        return np.empty((0, 2), dtype=np.int64)
    return bridges_between(W, X)


def disconnected(W: Any, connect: bool, weights: str) -> bool:
    """Whether there are components to join; a warning says what becomes of them."""
    count = n_components_of(W, weights)
    if count > 1:
        warn_components(count, "joined by the shortest missing edges" if connect else "left apart")
    return connect and count > 1


def warn_components(count: int, what: str, advice: str = "Use a larger n_neighbors if they belong together.") -> None:
    warnings.warn(
        f"the graph has {count} connected components, {what}. {advice}",
        UserWarning,
        stacklevel=6,
    )


def solve(objective: Objective, A: Any, k: int, dtype: Any, verbose: bool) -> tuple[Array, Array]:
    """min tr(Y'AY) with Y'BY = I: eigenvalues and the embedding in the input's dtype."""
    values, vectors = smallest_eigenvectors(A, k, B=objective.B, null=objective.null, check=False, verbose=verbose)
    return values, np.ascontiguousarray(vectors, dtype=dtype)
