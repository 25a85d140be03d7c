"""What all extensions share: the checks of rows and embedding, and a fitted map at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from manifast._dask import over_blocks
from manifast._links import Documented
from manifast._threads import one_blas_thread
from manifast._validation import (
    Array,
    as_matrix,
    finite_images,
    is_sparse,
    largest_magnitude,
    own,
    refuse_masked,
    whole_or_not_at_all,
)
from manifast.graphs import as_rows
from manifast.maps import Map, Predictor


class Learner(Predictor, Protocol):
    """An extension of anybody's: it learns from rows and their embedding, and maps new rows."""

    def fit(self, X: Any, Y: Any) -> Any: ...


class Extension(Documented, BaseEstimator, ABC):  # type: ignore[misc]
    """What all extensions share. `map_`, the fitted map, does the work: see `manifast.maps`."""

    map_: Map

    _sparse: ClassVar[bool] = False  # whether X may be a sparse matrix
    _metrics: ClassVar[tuple[str, ...]] = ()  # what the parameter `metric` may be, where there is one
    # Fitted attributes that new rows need, see `manifast.persistence`.
    _stored: ClassVar[dict[str, str]] = {"n_features_in_": "count", "map_": "map"}

    def fit(self, X: Any, Y: Any) -> Extension:
        """Learn the map from rows X (n, p) and their embedding Y (n, d); both are copied."""
        rows, targets = self._check(X, Y)
        return self._learn_rows(own(rows, X), own(targets, Y))

    def _learn_rows(self, X: Any, Y: Array) -> Extension:
        """`fit` from checked rows that nobody else writes to."""
        self._check_rows(X.shape[0])
        with whole_or_not_at_all(self), one_blas_thread():
            self.map_ = self._fitted(X, Y)
            self.n_features_in_ = X.shape[1]
        return self

    @over_blocks
    def predict(self, X: Any) -> Array:
        """Embedding of new rows, in their dtype. Of a Dask array a lazy one."""
        rows = self._new_rows(X)
        if rows.shape[0] == 0:  # shape and dtype are those of any row's
            return self._image(np.zeros((1, self.n_features_in_), rows.dtype))[:0]
        return finite_images(self._image(rows))

    def _new_rows(self, X: Any) -> Any:
        """New rows, checked against those of the fit."""
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit(X, Y) first")
        return self._rows(X, columns=self.n_features_in_)

    def _image(self, rows: Any) -> Array:
        return self.map_.predict(rows)

    def _check(self, X: Any, Y: Any) -> tuple[Any, Array]:
        X = self._rows(X, min_rows=1)
        refuse_masked(Y, "Y")
        Y = np.asarray(Y)
        Y = as_matrix(Y[:, None] if Y.ndim == 1 else Y, "Y")
        if Y.shape[0] != X.shape[0]:
            raise ValueError(f"Y must have one row per row of X, {X.shape[0]}. Got shape {Y.shape} instead.")
        return X, Y

    def _rows(self, X: Any, *, min_rows: int = 0, columns: int | None = None) -> Any:
        return (as_rows if self._sparse else as_matrix)(X, "X", min_rows=min_rows, columns=columns)

    def _fitted(self, X: Any, Y: Array) -> Map:
        """`_fit`, or a sentence where numbers are so large that their squares, or sums of them, are not numbers."""
        size = max(largest_magnitude(X.data if is_sparse(X) else X), largest_magnitude(Y))
        if size < 1e140:
            return self._fit(X, Y)
        try:
            with np.errstate(all="ignore"):
                made = self._fit(X, Y)
            finite = all(np.isfinite(array).all() for array in made.arrays().values() if array.dtype.kind == "f")
        except (ArithmeticError, ValueError):  # also of LAPACK
            finite = False
        if not finite:
            self._fit(_scaled(X), _scaled(Y))  # what is wrong beside the size of the numbers says so itself
            raise ValueError(f"X and Y must have squares in the range of numbers: scale them. Got up to {size:.3g}.")
        return made

    def _check_rows(self, n: int) -> None:
        """Refuse more rows than can be fitted."""

    @abstractmethod
    def _fit(self, X: Any, Y: Array) -> Map:
        """The map of checked rows."""


def _scaled(array: Any) -> Any:
    """With entries up to 1."""
    return array / (largest_magnitude(array.data if is_sparse(array) else array) or 1.0)
