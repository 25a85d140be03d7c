"""What classifiers share: rows and labels checked once, one score per class, and graphs of the training rows.

What comes from the embeddings' base is imported here only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from manifast._dask import over_blocks
from manifast._labels import Labels, read_labels, score_labelled
from manifast._progress import stage, verbosity
from manifast._rows import OF_LABELS, GraphChoice, Rows, join, refuse_neighbors, without_diagonal
from manifast._threads import one_blas_thread
from manifast._validation import Array, own, whole_or_not_at_all
from manifast._warnings import warn
from manifast.embeddings._base import RowEstimator
from manifast.embeddings._metric import ClassMetric, class_folds, preferred
from manifast.graphs import distances_of, given_graph, heat_width

__all__ = [
    "GRAPHS",
    "ClassMetric",
    "GraphClassifier",
    "ScoreClassifier",
    "class_folds",
    "in_bounds",
    "preferred",
    "visible_ridge",
]

GRAPHS = ("heat", "binary", "full", "l1")  # graphs made from the rows


class ScoreClassifier(ClassifierMixin, RowEstimator, ABC):  # type: ignore[misc]
    """Base of all classifiers: every row gets one score per class, and the class of the largest score."""

    _stored: ClassVar[dict[str, str]] = RowEstimator._stored | {"classes_": "labels"}

    _unlabelled = False  # whether -1 and missing labels mean that a row is unlabelled

    def fit(self, X: Any, y: Any) -> ScoreClassifier:
        """Learn from the rows X and their labels y."""
        with verbosity(getattr(self, "verbose", False), type(self).__name__), whole_or_not_at_all(self):
            X = own(self._validate(X, reset=True), X)
            labels = read_labels(self, y, X.shape[0], unlabelled=self._unlabelled)
            self.classes_ = labels.classes
            with one_blas_thread(), stage(f"fit to {X.shape[0]} rows of {X.shape[1]} features"):
                self._learn(self._measure(X, labels), labels)
        return self

    @over_blocks
    def predict(self, X: Any) -> Array:
        """Classes of new rows. Of a Dask array a lazy one, as all results."""
        best = self._checked_scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @over_blocks
    def decision_function(self, X: Any) -> Array:
        """Scores of new rows (m, classes); for two classes the second score minus the first (m,)."""
        scores = self._checked_scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _checked_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = self._measure_new(self._validate(X, reset=False))
        return self._scores(X).astype(X.dtype, copy=False)

    @abstractmethod
    def _learn(self, X: Any, labels: Labels) -> None:
        """Learn from checked rows and labels."""

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Scores of checked rows (m, classes)."""


class GraphClassifier(ScoreClassifier):
    """Base of label propagation: it finds the graph of the training rows, and keeps their scores and classes."""

    _unlabelled = True
    _weighs_graph = False  # whether the Laplacian is one term of a sum

    def fit(self, X: Any, y: Any) -> GraphClassifier:
        """Learn from the rows X and their labels y; -1, NaN, None and pandas' NA mean that a row is unlabelled."""
        super().fit(X, y)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the labelled rows; unlabelled rows do not count."""
        return score_labelled(super().score, X, y, sample_weight)

    def _learn(self, X: Any, labels: Labels) -> None:
        scores = self._propagate(X, labels)
        self.scores_ = np.ascontiguousarray(scores, dtype=X.dtype)
        self.transduction_ = np.asarray(self.classes_[scores.argmax(axis=1)])

    @abstractmethod
    def _propagate(self, X: Any, labels: Labels) -> Array:
        """Scores of the training rows (n, classes)."""

    def _by_rows(self) -> bool:
        """Whether the graph is made from the rows, and not given."""
        return isinstance(self.graph, str) and self.graph != "precomputed"

    def _graph(self, X: Any) -> Any:
        """The weights in float64, without self-loops; `_width` keeps the width of heat weights of the rows."""
        self.__dict__.pop("graph_recall_", None)  # of a fit with other parameters
        if not self._by_rows():
            refuse_neighbors(self.neighbors, "a graph that is given")
        if not isinstance(self.graph, str):
            W = without_diagonal(given_graph(self.graph, X.shape[0]))
            self._width = heat_width(X, "local" if self.beta is None else self._in_units(self.beta, 2), distances=())
        elif self.graph == "precomputed":
            W = without_diagonal(given_graph(X, X.shape[0], "X"))
        elif self.graph in GRAPHS:
            choice = GraphChoice(
                self.graph, self.n_neighbors, self.beta, neighbors=self.neighbors, unit=self._weighs_graph
            )
            rows = Rows(X, self._exponent)
            W, self._width = choice.weights(rows)
            self.__dict__.update(rows.recall)
        else:
            names = ", ".join(map(repr, (*GRAPHS, "precomputed")))
            raise ValueError(f"graph must be one of {names}, or a matrix. Got {self.graph!r} instead.")
        return W.astype(np.float64, copy=False)

    def _joined(self, W: Any, X: Any) -> Any:
        """The graph with its components joined by the shortest missing edges, with a warning."""
        weights = "heat" if self.graph == "full" else self.graph
        return join(W, distances_of(X), True, weights, self._width, advice=OF_LABELS).astype(np.float64, copy=False)


def in_bounds(value: float) -> float:
    """The nearest number whose reciprocal and square root are finite and not 0."""
    return min(max(value, 1e-280), 1e280)


def visible_ridge(ridge: float, matrix: Array, name: str, remedy: str) -> float:
    """A ridge that does not vanish in the rounding of the matrix it is added to; a warning says if it was raised."""
    least = 10 * np.finfo(float).eps * float(np.abs(matrix).sum(axis=0).max())
    if ridge < least:
        warn(
            f"{name} = {ridge:.2g} is less than the rounding of the other terms: {least:.1g} was used instead. Use "
            f"{remedy}.",
        )
    return max(ridge, least)
