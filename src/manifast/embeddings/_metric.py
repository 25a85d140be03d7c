"""metric="euclidean" | "within" | "auto" of methods by labels: one place that whitens rows, and chooses whether to."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from manifast._labels import Labels
from manifast._progress import log, stages
from manifast._validation import Array
from manifast._warnings import warn
from manifast._whitening import check_metric, whitening
from manifast.kernels import knn

_FOLDS = 5
_VALIDATED = 1000  # rows at most that a validation looks at


class ClassMetric:
    """Mixin of estimators by labels with a parameter `metric`: the whole method works on whitened rows."""

    metric: Any
    metric_: str
    _whitening: Any = None

    def _measure(self, X: Any, labels: Labels) -> Any:
        """Training rows in the metric that was asked for, or that validation prefers."""
        check_metric(self.metric)
        if self.metric != "euclidean" and self._pairwise():  # type: ignore[attr-defined]
            raise ValueError(f"metric must be 'euclidean' where X holds kernel values. Got {self.metric!r} instead.")
        self.metric_ = self._better_metric(X, labels) if self.metric == "auto" else self.metric
        self._whitening = self._whiten(X, labels) if self.metric_ == "within" else None
        if self._whitening is None and self.metric_ == "within":
            self.metric_ = "euclidean"
        return self._measure_new(X)

    def _whiten(self, X: Any, labels: Labels) -> Any:
        return whitening(X, labels)

    def _measure_new(self, X: Any) -> Any:
        return X if self._whitening is None else self._whitening.predict(X)

    @property
    def _row_exponent(self) -> int:
        """Whitened rows have no unit."""
        return self._exponent if self._whitening is None else 0  # type: ignore[attr-defined]

    def _better_metric(self, X: Array, labels: Labels) -> str:
        """The metric of fewer errors on rows held out of everything, the whitening too."""

        def error(metric: str, train: Array, held: Array) -> float:
            model = clone(self).set_params(metric=metric, **({"verbose": False} if hasattr(self, "verbose") else {}))
            model.fit(X[train], labels.codes[train])
            if hasattr(model, "embedding_"):
                mapped = np.ascontiguousarray(model.transform(X[held]))
                nearest = knn(np.ascontiguousarray(model.embedding_), 1, queries=mapped)[1][:, 0]
                found = labels.codes[train][nearest]
            else:
                found = model.predict(X[held])
            return float(np.sum(found != labels.codes[held]))

        return better_metric(labels, error)


def better_metric(labels: Labels, error: Callable[[str, Array, Array], float]) -> str:
    """The metric to prefer by the sums of error(metric, train, held) over the folds."""
    total = {"euclidean": 0.0, "within": 0.0}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for train, held in class_folds(labels, _FOLDS):
                for metric in total:
                    total[metric] += error(metric, train, held)
    except ValueError as problem:
        warn(f"metric='auto' took Euclidean distances, as parts of the rows cannot be fitted: {problem}")
        return "euclidean"
    if stages():
        log(f"errors of held-out rows: {total['euclidean']:g} in the Euclidean metric, {total['within']:g} within")
    return preferred(total["euclidean"], total["within"])


def preferred(plain: float, within: float) -> str:
    """ "within" where it makes fewer errors by more than half of what chance explains: it is the riskier metric."""
    return "within" if plain - within > 0.5 * np.sqrt(plain + within) else "euclidean"


def class_folds(labels: Labels, folds: int, most: int = _VALIDATED) -> Iterator[tuple[Array, Array]]:
    """Rows to learn from and rows held out, classes in equal shares, of at most `most` rows.

    Single rows of a class are always learnt from.
    """
    rng = np.random.default_rng(0)
    share = min(1.0, most / len(labels.codes))
    fold = np.full(len(labels.codes), -1)
    for rows in labels.members:
        some = rng.permutation(rows)[: max(min(2, len(rows)), round(share * len(rows)))]
        fold[some] = np.arange(len(some)) % folds if len(some) > 1 else folds
    for k in range(folds):
        held = np.flatnonzero(fold == k)
        if len(held):
            yield np.flatnonzero((fold >= 0) & (fold != k)), held
