"""What every embedding shares: input checks, the natural map or another extension, dtype and feature names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import isfinite
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from manifast._dask import over_blocks
from manifast._labels import Labels, read_labels
from manifast._links import Documented
from manifast._progress import stage, verbosity
from manifast._sparse import checked_sparse
from manifast._threads import one_blas_thread
from manifast._validation import (
    Array,
    contiguous,
    finite_images,
    in_other_units,
    is_plain,
    is_sparse,
    largest_magnitude,
    own,
    refuse_masked,
    whole_or_not_at_all,
)
from manifast.extensions import EXTENSIONS, as_extension, check_rows, fit_owned
from manifast.maps import Predictor

NOT_INTERPOLATING = "the map for new rows does not interpolate: transform(X) is close to embedding_, not equal to it"
_OBJECTS = {"objective": "objectives", "smoother": "smoothers"}  # where the objects of a parameter are
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


class RowEstimator(Documented, BaseEstimator):  # type: ignore[misc]
    """Base of everything fitted to rows X: how they are checked, and brought into the range where squares are safe."""

    _sparse = False  # whether rows may be a sparse matrix
    _some_distances = True  # whether a matrix of distances may be sparse, with those of neighbours alone
    # Fitted attributes that new rows need, and what each is: what a saved model holds, see `manifast.persistence`.
    _stored: ClassVar[dict[str, str]] = {
        "n_features_in_": "count",
        "feature_names_in_": "names",
        "_exponent": "power",
        "_whitening": "map",
    }

    def _validate(self, X: Any, *, reset: bool) -> Any:
        if not reset and self._plain(X):  # what scikit-learn would find nothing wrong with, and take far longer
            largest = largest_magnitude(X)
            if isfinite(largest):
                return self._in_range(X, largest)
        if is_sparse(X) and self._takes_sparse():
            X = checked_sparse(X, "X")
        dtype = (np.float64, np.float32)
        accept = "csr" if self._takes_sparse() else False
        refuse_masked(X, "X")
        if isinstance(X, np.ndarray) and X.dtype.kind in "mM":  # scikit-learn would take times for numbers
            raise ValueError(f"X must hold real numbers. Got dtype {X.dtype} instead.")
        if isinstance(X, np.ndarray) and X.dtype.kind == "f":  # float32 of the other byte order is float32
            X = X.astype(X.dtype.newbyteorder("="), copy=False)
        X = validate_data(
            self, X, reset=reset, dtype=dtype, order="C", accept_sparse=accept, ensure_min_samples=2 if reset else 1
        )
        X = sp.csr_array(X) if is_sparse(X) else contiguous(X)
        largest = largest_magnitude(X.data if is_sparse(X) else X)
        if reset:
            exponent = int(np.frexp(largest)[1]) if largest else 0
            scaled = abs(exponent) > (300 if X.dtype == np.float64 else 50) and self._lengths()
            self._exponent = exponent if scaled else 0
        return self._in_range(X, largest)

    def _plain(self, X: Any) -> bool:
        """Whether new rows are an array as the core takes it, without names, and as wide as the training rows."""
        columns = getattr(self, "n_features_in_", -1)
        return is_plain(X, columns) and X.shape[0] > 0 and not hasattr(self, "feature_names_in_")

    def _in_range(self, X: Any, largest: float) -> Any:
        """Rows whose squares stay in range: training data beyond it are scaled by a power of two, new rows with them.

        New rows that are still too far away are moved to where all training rows look like one point, too.
        """
        limit = 1e140 if X.dtype == np.float64 else 1e17
        if (not self._exponent and largest < limit) or not self._lengths():
            return X
        if is_sparse(X):
            return sp.csr_array((self._in_range(X.data, largest), X.indices, X.indptr), shape=X.shape)
        if self._exponent:
            with np.errstate(over="ignore"):
                X = np.ldexp(X, -self._exponent)
        return np.clip(X, -limit, limit)

    def _metric(self) -> Any:
        """What distances between rows are; "precomputed" where X holds them."""
        metric = getattr(self, "metric", None)
        return metric if isinstance(metric, str) else None

    def _pairwise(self) -> bool:
        """Whether X holds affinities, kernel values or distances instead of features."""
        given = (self._metric(), *(getattr(self, name, None) for name in ("affinity", "graph", "kernel")))
        return any(isinstance(value, str) and value == "precomputed" for value in given)

    def _lengths(self) -> bool:
        """Whether X holds features or distances, which may be scaled, and not affinities or kernel values."""
        return self._metric() == "precomputed" or not self._pairwise()

    def _in_units(self, value: Any, power: int) -> Any:
        """A parameter in (units of the data)^power, in those that the rows were scaled to."""
        return in_other_units(value, power, self._exponent)

    def _measure(self, X: Any, targets: Any) -> Any:
        """Training rows in the metric of the estimator, see `ClassMetric`."""
        return X

    def _measure_new(self, X: Any) -> Any:
        """New rows in the metric of the training rows."""
        return X

    @property
    def _row_exponent(self) -> int:
        """The power of two that the rows were divided by when they were checked."""
        return self._exponent

    def _takes_sparse(self) -> bool:
        """Whether X may be a sparse matrix: of rows, for the method and the map, or of distances."""
        if self._metric() == "precomputed":
            return self._some_distances
        extension = getattr(self, "extension", None)
        if isinstance(extension, str):
            extension = EXTENSIONS.get(extension)
        return self._sparse and (extension is None or bool(getattr(extension, "_sparse", False)))

    def set_params(self, **params: Any) -> RowEstimator:
        """Set parameters, `part__name` those of a part that is an object."""
        for key in params:
            part, nested, _ = key.partition("__")
            value = params.get(part, getattr(self, part, None))
            if nested and part in self.get_params(deep=False) and not hasattr(value, "set_params"):
                raise ValueError(
                    f"{part} must be an object with parameters of its own to set {key}. Got {part}={value!r}: pass the "
                    f"object that the name stands for, from manifast.{_OBJECTS.get(part, 'extensions')}."
                )
        super().set_params(**params)
        return self

    def _of_map(self, kind: Any, name: str) -> Any:
        """The fitted map, where it is of that kind and so has the attribute asked for."""
        mapping = self.__dict__.get("map_")
        if not isinstance(mapping, kind):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}: its map has no such coefficients.")
        return mapping

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise()
        tags.input_tags.positive_only = self._metric() == "precomputed"
        tags.input_tags.sparse = self._takes_sparse()
        return tags


class Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowEstimator, ABC):  # type: ignore[misc]
    """Base of all embeddings: subclasses say how training rows are embedded and which map is natural."""

    _interpolates = False  # whether transform(X) of the training rows is embedding_
    _stored: ClassVar[dict[str, str]] = RowEstimator._stored | {"_n_out": "count", "extension_": "map"}

    def fit(self, X: Any, y: Any = None) -> Embedding:
        """Embed the rows of X and learn the map for new ones; y is ignored."""
        with verbosity(getattr(self, "verbose", False), type(self).__name__), whole_or_not_at_all(self):
            X = own(self._validate(X, reset=True), X)
            if getattr(self, "extension", None) is not None:
                self._check_extension(X)
            targets = self._targets(y, X)
            with one_blas_thread(), stage(f"fit to {X.shape[0]} rows of {X.shape[1]} features"):
                self._embed(self._measure(X, targets), targets)
            finite_images(self.embedding_)
            self._n_out = int(self.embedding_.shape[1])
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Embed the rows of X and return `embedding_`."""
        self.fit(X, y)
        return self.embedding_  # type: ignore[no-any-return]

    @over_blocks
    def transform(self, X: Any) -> Array:
        """Embedding of new rows; a row's result does not depend on the other rows. Of a Dask array a lazy one."""
        if not hasattr(self, "n_features_in_"):
            check_is_fitted(self)
        return finite_images(self._map(self._measure_new(self._validate(X, reset=False))))

    def _check_extension(self, X: Any) -> None:
        """Refuse what is no map, and more rows than the map can take, before the embedding takes its time."""
        check_rows(as_extension(self.extension, self._metric()), X.shape[0])

    def _targets(self, y: Any, X: Any) -> Any:
        """What `_embed` gets as y: unsupervised embeddings take anything, and ignore it."""
        return y

    @abstractmethod
    def _embed(self, X: Any, y: Any) -> None:
        """Embed checked rows and keep the map."""

    def _map(self, X: Any) -> Array:
        return self.extension_.predict(X).astype(X.dtype, copy=False)

    def _extend(self, X: Any, natural: Callable[[], Predictor], name: str | None = None) -> None:
        """Keep the natural map, or fit the extension that was asked for; `name` is the natural one's."""
        if self.extension is None or (isinstance(self.extension, str) and self.extension == name):
            self.extension_ = natural()  # also under its own name, with the estimator's parameters
        else:
            with stage("map for new rows"):
                self.extension_ = fit_owned(as_extension(self.extension, self._metric()), X, self.embedding_)

    @property
    def _n_features_out(self) -> int:
        return self._n_out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class SupervisedEmbedding(Embedding):
    """Base of embeddings that need labels: `_embed` gets them as `Labels`, and `classes_` lists them."""

    _stored: ClassVar[dict[str, str]] = Embedding._stored | {"classes_": "labels"}
    _unlabelled = False  # whether -1 and missing labels mean that a row has none
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
