"""Model selection where only some rows have a label: folds, scores and pipelines.

In y, -1, NaN, None and pandas' NA mean that a row has no label. A classifier that does not know this learns a class -1,
a score counts it as an error, and a splitter holds rows out that cannot be scored. `LabeledRows` keeps the rows without
a label from a classifier, `labeled_scorer` from a score, and `LabeledSplit` from the test folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from manifast._labels import labelled_part, read_labels, score_labelled, take_rows
from manifast._links import Documented
from manifast._validation import Array, as_count, whole_or_not_at_all

__all__ = ["LabeledRows", "LabeledSplit", "labeled_scorer"]


class LabeledSplit(BaseCrossValidator):  # type: ignore[misc]
    """Folds of the labelled rows; rows without a label are in every training set.

    The labels of a test fold are hidden completely, as its rows are not in the training set that goes with it.

    Parameters
    ----------
    cv : int or splitter, default 5
        Number of stratified folds, at most as many as the smallest class has labelled rows; or how to split the
        labelled rows, an object such as ``StratifiedKFold(4, shuffle=True, random_state=0)``.

    Examples
    --------
    >>> from manifast.model_selection import LabeledSplit
    >>> y = [0, -1, 1, 0, -1, 1]
    >>> for train, test in LabeledSplit(2).split(y, y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 1 2 4] [3 5]

    Choosing a parameter from 40 labels:

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import GridSearchCV
    >>> from manifast import GFHF
    >>> X, y = load_digits(return_X_y=True)
    >>> few = np.where(np.arange(1000) < 40, y[:1000], -1)
    >>> search = GridSearchCV(GFHF(beta="mean"), {"n_neighbors": [10, 80]}, cv=LabeledSplit(3)).fit(X[:1000], few)
    >>> search.best_params_
    {'n_neighbors': 10}
    """

    def __init__(self, cv: Any = 5) -> None:
        self.cv = cv

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Rows to train on and rows to test on, for each fold; X is not used."""
        rows, known = labelled_part(y)
        splitter = self._splitter(known)
        n = np.shape(y)[0]
        if groups is not None:
            groups = take_rows(np.asarray(groups), rows)
        for _, held in splitter.split(np.zeros((len(rows), 1)), known, groups):
            test = rows[held]
            train = np.ones(n, dtype=bool)
            train[test] = False
            yield np.flatnonzero(train), test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many folds there are, which depends on y."""
        rows, known = labelled_part(y)
        if groups is not None:
            groups = take_rows(np.asarray(groups), rows)
        return int(self._splitter(known).get_n_splits(np.zeros((len(rows), 1)), known, groups))

    def _splitter(self, known: Array) -> Any:
        """What splits the labelled rows."""
        if hasattr(self.cv, "get_n_splits"):
            return self.cv
        folds = as_count(self.cv, "cv")
        classes, sizes = np.unique(known, return_counts=True)
        smallest = int(sizes.argmin())
        if folds < 2 or sizes[smallest] < 2:
            raise ValueError(
                "cv must be at least 2, and every class must have at least 2 labelled rows to hide one of them; rows "
                f"with -1, NaN or None have no label. Got cv = {folds} and class {classes.tolist()[smallest]!r} with "
                f"{sizes[smallest]}."
            )
        return StratifiedKFold(min(folds, int(sizes[smallest])))


class _LabeledScorer:
    """scorer(estimator, X, y) of the rows that have a label."""

    def __init__(self, scoring: Any) -> None:
        self.scoring = scoring

    def __call__(self, estimator: Any, X: Any, y: Any, **options: Any) -> float:
        rows, known = labelled_part(y)
        chosen = {name: take_rows(value, rows) if value is not None else None for name, value in options.items()}
        return float(check_scoring(estimator, self.scoring)(estimator, take_rows(X, rows), known, **chosen))

    def __repr__(self) -> str:
        return f"labeled_scorer({self.scoring!r})"


def labeled_scorer(scoring: Any = "accuracy") -> Callable[..., float]:
    """A scorer that counts the rows with a label only, for ``scoring=`` in grid searches and cross-validation.

    Parameters
    ----------
    scoring : str, callable or None, default "accuracy"
        How the labelled rows are scored: a name that scikit-learn knows, a scorer, or None for the estimator's own
        `score`.

    Returns
    -------
    callable
        scorer(estimator, X, y). It raises a ValueError where no row has a label.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import GFHF
    >>> from manifast.model_selection import labeled_scorer
    >>> X, y = load_digits(return_X_y=True)
    >>> few = y[:1000].copy()
    >>> few[40:] = -1
    >>> scorer = labeled_scorer("balanced_accuracy")
    >>> round(scorer(GFHF().fit(X[:1000], few), X[:1000], few), 2)  # of 40 rows
    1.0
    """
    return _LabeledScorer(scoring)


def _has(method: str) -> Callable[[Any], bool]:
    """Whether the classifier inside has a method."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class LabeledRows(Documented, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is fitted to the rows that have a label, and not told of the others.

    Put it at the end of a pipeline after a semi-supervised embedding: the embedding learns from all rows, the
    classifier from the labelled ones. Otherwise the classifier would learn that -1 is a class.

    Parameters
    ----------
    estimator : classifier
        Of scikit-learn, or one that works as those do.

    Attributes
    ----------
    estimator_ : the fitted classifier
    classes_ : array of shape (classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from manifast import ElasticEmbedding
    >>> from manifast.model_selection import LabeledRows, LabeledSplit, labeled_scorer
    >>> X, y = load_digits(return_X_y=True)
    >>> few = np.where(np.arange(500) < 60, y[:500], -1)
    >>> pipeline = make_pipeline(
    ...     StandardScaler(), ElasticEmbedding(9, kernel="rbf"), LabeledRows(KNeighborsClassifier(1))
    ... )
    >>> grid = {"elasticembedding__mu": [1e-3, 1.0], "labeledrows__estimator__n_neighbors": [1, 3]}
    >>> search = GridSearchCV(pipeline, grid, scoring=labeled_scorer(), cv=LabeledSplit(3)).fit(X[:500], few)
    >>> bool(search.score(X[500:], y[500:]) > 0.7)
    True
    """

    _unlabelled = True

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> LabeledRows:
        """Fit the classifier to the rows of X that have a label in y: not -1, NaN, None or pandas' NA."""
        with whole_or_not_at_all(self):
            if not hasattr(X, "shape"):
                X = np.asarray(X)
            if not X.shape:
                raise ValueError("X must have rows. Got a single value instead.")
            labels = read_labels(self, y, X.shape[0], unlabelled=True)
            rows = labels.labelled
            self.estimator_ = clone(self.estimator).fit(take_rows(X, rows), labels.classes[labels.codes[rows]])
            self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> Array:
        """Classes of new rows."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes of new rows (m, classes)."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Scores of new rows, as the classifier inside gives them."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows with a label whose class is found; rows that have none do not count."""
        return score_labelled(super().score, X, y, sample_weight)

    @property
    def n_features_in_(self) -> int:
        """Number of features of the training rows."""
        check_is_fitted(self)
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, where the training rows had names."""
        return np.asarray(self.estimator_.feature_names_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


class IntegerLabels(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for which -1 alone means unlabelled, behind labels of any kind, as scikit-learn has."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> IntegerLabels:
        """Fit the classifier to numbers of the classes, with -1 for rows without a label."""
        labels = read_labels(self, y, len(X), unlabelled=True)
        self.classes_ = labels.classes
        self.estimator_ = clone(self.estimator).fit(X, labels.codes)
        return self

    def predict(self, X: Any) -> Array:
        """Labels of rows, of the kind that y had."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.estimator_.predict(X)])
