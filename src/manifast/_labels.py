"""Labels of rows: classes of any kind in order, the class of every row, and what a method asks of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from manifast._threads import lazy
from manifast._validation import Array, is_sparse
from manifast._warnings import warn, warnings_at_the_user

UNLABELLED = -1
SEMI_SUPERVISED = (
    "ElasticEmbedding, SDA, SDE, TCA, LapRLS and FME, the same with CV at the end of their names, GFHF, LGC and RMGT "
    "learn from rows without a label too"
)
# What "no label" becomes where a file or NumPy turns it into a string.
NO_LABEL_STRINGS = ("", "-1", "-1.0", "nan", "<NA>")


@dataclass(frozen=True)
class Labels:
    """Classes in order, and the number of each row's class there, -1 for rows without a label."""

    classes: Array
    codes: Array

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def sizes(self) -> Array:
        """Rows of each class."""
        return np.bincount(self.codes[self.codes >= 0], minlength=self.count)

    @property
    def labelled(self) -> Array:
        """Rows that have a label, ascending."""
        return np.flatnonzero(self.codes >= 0)

    @lazy
    def members(self) -> list[Array]:
        """Rows of each class, ascending."""
        order = np.argsort(self.codes, kind="stable")
        return np.split(order, np.searchsorted(self.codes[order], np.arange(self.count + 1)))[1:-1]

    @property
    def indicators(self) -> Array:
        """One-hot labels (n, classes); rows without a label are zero."""
        hot: Array = self.codes[:, None] == np.arange(self.count)
        return hot.astype(np.float64)


def read_labels(
    estimator: Any, y: Any, n: int, *, unlabelled: bool = False, least_classes: int = 2, least_members: int = 1
) -> Labels:
    """Labels of n rows, checked; with `unlabelled`, -1, NaN, None and pandas' NA stand for none.

    Messages name the estimator, or what else asks, given by its name. An estimator that takes -1 for a class says so
    in a warning.
    """
    from sklearn.utils.multiclass import check_classification_targets

    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    y, missing = _column(y, name)
    if y.shape[0] != n:
        raise ValueError(f"y must hold one label per row of X, {n}. Got {y.shape[0]} instead.")
    if unlabelled:
        with_label = ~(missing | _equal(y, UNLABELLED))
        known = _known(y, with_label)
        taken = _no_label_string(known)
        if taken is not None:
            raise ValueError(
                f"y must not hold {taken!r} as a class of {name}: use -1 or None for unlabelled rows, and another name "
                f"for a class. Got {int((known == taken).sum())} rows with {taken!r}."
            )
    else:
        with_label = np.ones(n, dtype=bool)
        if missing.any():
            raise ValueError(
                f"y must not hold missing labels for {name}, neither NaN nor None. Got {int(missing.sum())} of them: "
                f"drop those rows, or mark them -1 for a semi-supervised estimator: {SEMI_SUPERVISED}."
            )
        known = _known(y, with_label)
        if not isinstance(estimator, str):
            _warn_of_classes(name, known)
    with warnings_at_the_user():
        check_classification_targets(known)
    classes, inside = np.unique(known, return_inverse=True)
    if len(classes) < least_classes:
        hint = ""
        if unlabelled and _equal(y, UNLABELLED).any():
            hint = (
                f", {classes.tolist()[0]!r}, beside -1, which means unlabelled here: if -1 is a class, recode the "
                "labels, for instance -1 and 1 to 0 and 1"
            )
        raise ValueError(
            f"{name} needs at least {least_classes} classes: y must hold more than one class. "
            f"Got {len(classes)} class{hint or ' instead'}."
        )
    codes = np.full(n, -1, dtype=np.int64)
    codes[with_label] = inside.reshape(-1)
    labels = Labels(classes, codes)
    small = np.flatnonzero(labels.sizes < least_members)
    if len(small):
        raise ValueError(
            f"every class must have at least {least_members} members for {name}. "
            f"Got class {classes[small[0]]!r} with {labels.sizes[small[0]]}."
        )
    return labels


def labelled_part(y: Any) -> tuple[Array, Array]:
    """Rows that have a label, ascending, and their labels; -1, NaN, None and pandas' NA are none."""
    y, missing = _column(y, "the selection of labelled rows")
    with_label = ~(missing | _equal(y, UNLABELLED))
    return np.flatnonzero(with_label), _known(y, with_label)


def score_labelled(score: Callable[..., float], X: Any, y: Any, sample_weight: Any = None) -> float:
    """A classifier's own score(X, y, sample_weight), of the rows that have a label."""
    rows, known = labelled_part(y)
    weights = None if sample_weight is None else take_rows(sample_weight, rows)
    return float(score(take_rows(X, rows), known, sample_weight=weights))


def take_rows(X: Any, rows: Array) -> Any:
    """Some rows of a data frame, a sparse matrix or what is an array."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.tocsr()[rows] if is_sparse(X) else np.asarray(X)[rows]


def _column(y: Any, name: str) -> tuple[Array, Array]:
    """Labels as an array with one dimension, and which of them are missing: masked, NaN, None or pandas' NA."""
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    masked = np.ma.getmaskarray(y).reshape(-1) if isinstance(y, np.ma.MaskedArray) else None
    if isinstance(y, list | tuple) and any(isinstance(label, str) for label in y):
        y = np.array(y, dtype=object)  # NumPy would turn -1 and NaN into strings
    elif hasattr(y, "to_numpy"):
        y = y.to_numpy()  # scikit-learn would refuse pandas' NA
    with warnings_at_the_user():
        y = column_or_1d(y, warn=True)
    if y.dtype.kind in "fc":
        missing = np.isnan(y)
        if masked is not None:
            missing |= masked
        if not np.isfinite(y[~missing]).all():
            raise ValueError("y must not hold infinity. Got a label that is not finite.")
        return y, missing
    missing = np.zeros(len(y), dtype=bool) if masked is None else masked
    if y.dtype.kind == "O":
        missing = missing | np.array([_is_missing(label) for label in y.tolist()], dtype=bool)
    return y, missing


def _is_missing(label: Any) -> bool:
    pandas = sys.modules.get("pandas")  # where it was not imported, nothing is its NA
    return label is None or (pandas is not None and label is pandas.NA) or (isinstance(label, Real) and label != label)


def _equal(y: Array, value: int) -> Array:
    """Where labels equal a number."""
    if y.dtype.kind == "O":  # one by one: pandas' NA has no truth value, and other labels compare in their own way
        return np.array([isinstance(label, Real) and label == value for label in y.tolist()], dtype=bool)
    return np.asarray(y == value) if y.dtype.kind in "iufc" else np.zeros(len(y), dtype=bool)


def _known(y: Array, with_label: Array) -> Array:
    """The labels of these rows in their own dtype."""
    if not with_label.any():
        raise ValueError("y must hold at least one label. Got only -1, NaN or None, which mean unlabelled.")
    known = y[with_label]
    return _of_one_kind(known.tolist()) if known.dtype.kind == "O" else known


def _of_one_kind(labels: list[Any]) -> Array:
    """Labels of an object array in their own dtype: strings beside -1 or None are strings again."""
    if any(label != label for label in labels):  # NaT
        raise ValueError("y must not hold dates without a value. Got NaT: use -1 or None for unlabelled rows.")
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        hint = ""
        if any(isinstance(label, Real) and label == UNLABELLED for label in labels):
            hint = f". -1 does not mean unlabelled here: {SEMI_SUPERVISED}"
        raise ValueError(f"y must hold labels of one kind. Got strings and others: use str(label) for all{hint}.")
    return np.array(labels)


def _no_label_string(known: Array) -> str | None:
    """A string among the labels that looks like the mark of a row without one."""
    if known.dtype.kind != "U":
        return None
    return next((mark for mark in NO_LABEL_STRINGS if (known == mark).any()), None)


def _warn_of_classes(name: str, known: Array) -> None:
    """Say that what often marks a row without a label is a class here."""
    taken: Any = UNLABELLED if _equal(known, UNLABELLED).any() else _no_label_string(known)
    if taken is not None:
        warn(
            f"{taken!r} in y is taken as a class by {name}, which needs a label for every row. If it means unlabelled, "
            f"drop those rows, or mark them -1 for a semi-supervised estimator: {SEMI_SUPERVISED}."
        )
