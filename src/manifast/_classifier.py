"""What every classifier shares: rows and labels checked once, one score per class, and the class of the largest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from manifast._labels import Labels, read_labels
from manifast._threads import blas_for
from manifast._validation import Array, whole_or_not_at_all
from manifast.embeddings._base import RowEstimator


class ScoreClassifier(ClassifierMixin, RowEstimator, ABC):  # type: ignore[misc]
    """Base of all: every row gets one score per class, and the class of the largest."""

    _unlabelled = False  # whether -1 means that a row has no label

    def fit(self, X: Any, y: Any) -> ScoreClassifier:
        """Learn from the rows X and their labels y."""
        with whole_or_not_at_all(self):
            X = self._validate(X, reset=True)
            labels = read_labels(self, y, X.shape[0], unlabelled=self._unlabelled)
            self.classes_ = labels.classes
            with blas_for(X.shape[0]):
                self._learn(X, labels)
        return self

    def predict(self, X: Any) -> Array:
        """Classes of new rows."""
        best = self._checked_scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def decision_function(self, X: Any) -> Array:
        """Scores of new rows (m, classes); for two classes (m,), how much the second is ahead of the first."""
        scores = self._checked_scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _checked_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        return self._scores(X).astype(X.dtype, copy=False)

    @abstractmethod
    def _learn(self, X: Any, labels: Labels) -> None:
        """Learn from checked rows and labels."""

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Scores of checked rows (m, classes)."""
