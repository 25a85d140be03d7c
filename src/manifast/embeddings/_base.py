"""What every embedding shares: input checks, the natural map or another extension, dtype and feature names."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from manifast._validation import Array, as_count, is_sparse
from manifast.extensions import as_extension
from manifast.graphs import bridges_between, connect_components, n_components_of, nearest
from manifast.objectives import Objective
from manifast.spectral import smallest_eigenvectors

NOT_INTERPOLATING = "the map for new rows does not interpolate: transform(X) is close to embedding_, not equal to it"


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Checks of scikit-learn's `check_estimator` that an estimator cannot pass, each with its reason.

    Examples
    --------
    >>> from manifast import LPP, expected_failed_checks
    >>> expected_failed_checks(LPP())
    {}
    """
    if estimator._interpolates and getattr(estimator, "extension", None) is None:
        return {}
    return {
        "check_transformer_general": NOT_INTERPOLATING,
        "check_transformer_data_not_an_array": NOT_INTERPOLATING,
    }


class Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all embeddings: subclasses say how training rows are embedded and which map is natural."""

    _interpolates = False  # whether transform(X) of the training rows is embedding_
    _sparse = False

    def fit(self, X: Any, y: Any = None) -> Embedding:
        """Embed the rows of X and learn the map for new ones; y is ignored."""
        X = self._validate(X, reset=True)
        if getattr(self, "extension", None) is not None:
            as_extension(self.extension)
        self._embed(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Embed the rows of X and return `embedding_`."""
        self.fit(X, y)
        return self.embedding_  # type: ignore[no-any-return]

    def transform(self, X: Any) -> Array:
        """Embedding of new rows; a row's result does not depend on the other rows."""
        check_is_fitted(self)
        return self._map(self._validate(X, reset=False))

    def _embed(self, X: Any) -> None:
        raise NotImplementedError

    def _map(self, X: Any) -> Array:
        return self.extension_.predict(X).astype(X.dtype, copy=False)  # type: ignore[no-any-return]

    def _extend(self, X: Any, natural: Any) -> None:
        """Keep the natural map, or fit the extension that was asked for."""
        if self.extension is None:
            self.extension_ = natural
        else:
            self.extension_ = as_extension(self.extension).fit(X, self.embedding_)

    def _validate(self, X: Any, *, reset: bool) -> Any:
        dtype = (np.float64, np.float32)
        accept = "csr" if self._sparse else False
        X = validate_data(
            self, X, reset=reset, dtype=dtype, order="C", accept_sparse=accept, ensure_min_samples=2 if reset else 1
        )
        return sp.csr_array(X) if is_sparse(X) else X

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = self._sparse
        return tags


def check_neighbors(value: Any, X: Any, *, least: int = 1, others: bool = True) -> int:
    """n_neighbors for these training rows: at most n - 1, or n where a row counts among its own neighbours."""
    n = X.shape[0]
    most = n - 1 if others else n
    k = as_count(value, "n_neighbors", maximum=most, why=f" for n_samples = {n}, n_features = {X.shape[1]}")
    if k < least:
        raise ValueError(f"n_neighbors must be at least {least} for this method. Got {k} instead.")
    return k


def neighbor_lists(given: Any, X: Any, k: int) -> tuple[Array, Array]:
    """Distances and indices of the nearest others: the user's own lists, or an exact search."""
    if given is None:
        return nearest(X, k)
    distances, indices = (np.asarray(part) for part in given)
    if distances.ndim != 2 or distances.shape != indices.shape or len(distances) != X.shape[0]:
        raise ValueError(
            f"neighbors must be (distances, indices), both of shape ({X.shape[0]}, k). Got {distances.shape} and "
            f"{indices.shape} instead."
        )
    return distances, indices.astype(np.int64, copy=False)


def check_components(value: Any, most: int, why: str) -> int:
    return as_count(value, "n_components", maximum=most, why=f", {why}")


def join(W: Any, X: Any, connect: bool, weights: str, beta: Any = None) -> Any:
    """The graph with its components joined, with a warning where there are several; only the warning by choice."""
    if not _disconnected(W, connect, weights):
        return W
    return connect_components(W, X, weights=weights, beta=beta)


def find_bridges(W: Any, X: Any, connect: bool) -> Array:
    """Pairs of rows (m, 2) that would join the components of a graph, with a warning where there are several."""
    if not _disconnected(W, connect, "binary"):
        return np.empty((0, 2), dtype=np.int64)
    return bridges_between(W, X)


def _disconnected(W: Any, connect: bool, weights: str) -> bool:
    count = n_components_of(W, weights)
    if count > 1:
        warn_components(count, "joined by the shortest missing edges" if connect else "left apart")
    return connect and count > 1


def warn_components(count: int, what: str) -> None:
    warnings.warn(
        f"the neighbour graph has {count} connected components, {what}. Use a larger n_neighbors if they belong "
        "together.",
        UserWarning,
        stacklevel=6,
    )


def solve(objective: Objective, A: Any, k: int, dtype: Any, verbose: bool) -> tuple[Array, Array]:
    """min tr(Y'AY) with Y'BY = I and the constant left out: eigenvalues and the embedding in the input's dtype."""
    values, vectors = smallest_eigenvectors(A, k, B=objective.B, null=objective.constant, check=False, verbose=verbose)
    return values, np.ascontiguousarray(vectors, dtype=dtype)
