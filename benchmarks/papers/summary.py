"""All supervised and all semi-supervised methods over all data sets: what a practitioner reads to choose."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from benchmarks.papers import nsse, see
from benchmarks.papers.choice import Method, validated
from benchmarks.papers.data import Sets
from benchmarks.papers.model import Cell, Experiment, Family
from manifast import LGC, TPTSSR, RBFDiscriminantCV
from manifast.graphs import mean_sq_distance

SUPERVISED = nsse.METHODS | {
    "RBFDiscriminantCV": Method(lambda X, y: RBFDiscriminantCV()),
    "TPTSSR": Method(lambda X, y: TPTSSR()),
    "SVC": Method(lambda X, y: GridSearchCV(SVC(), {"C": [1.0, 10.0, 100.0], "kernel": ["rbf", "linear"]}, cv=2)),
}
SEMI = see.COLUMNS | {
    "LGC": (lambda t, **p: LGC(10), ()),
    "LabelSpreading": (lambda t, **p: LabelSpreading(kernel="knn", n_neighbors=7), ()),
}


def supervised_cell(sets: Sets, row: Mapping[str, Any], method: Method, seed: int, paper: bool) -> Cell:
    return validated(method, *nsse.split_rows(sets, row, seed))


def semi_cell(sets: Sets, row: Mapping[str, Any], column: str, seed: int, paper: bool) -> Cell:
    """Error of new rows; parameters by hidden labels."""
    X, some, y, new, y_new = see.faces(sets, row, seed)
    make, names = SEMI[column]
    point, d = see.chosen((make, names), X, some, see.FEW)
    begin = time.perf_counter()
    model = make(mean_sq_distance(X), **point).fit(X, some)
    fitted = time.perf_counter()
    rows = np.flatnonzero(some == -1)
    pairs = see.accuracies(model, X, some, rows, y[rows], new, y_new)
    begin_map = time.perf_counter()
    model.predict(new) if hasattr(model, "predict") else model.transform(new)
    mapped = time.perf_counter()
    error = 100 - pairs.get(d, list(pairs.values())[-1])[1]
    return {"error": error, "fit_s": fitted - begin, "row_us": 1e6 * (mapped - begin_map) / len(new)}


def _images(name: str, count: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "size": 25, "unit": True, "per_class": count, **more}


FAMILY = Family(
    "summary-supervised",
    supervised_cell,
    SUPERVISED,
    {
        "COIL-20, 7": _images("coil20", 7),
        "COIL-20, 20": _images("coil20", 20),
        "ORL, 5": _images("orl", 5),
        "Ext. Yale, 10": _images("yaleb", 10),
        "MNIST, 20": _images("mnist10k", 20, new=3000),
        "digits, 20": _images("digits", 20),
    },
    nsse.QUICK,
)
SEMI_FAMILY = Family(
    "summary-semi",
    semi_cell,
    {name: name for name in SEMI},
    {
        "COIL-20, 3 labels": {"name": "coil20", "labels": 3},
        "ORL, 2 labels": {"name": "orl", "labels": 2},
        "Ext. Yale, 3 labels": {"name": "yaleb", "labels": 3},
        "digits, 3 labels": {"name": "digits", "labels": 3},
        "MNIST, 3 labels": {"name": "mnist10k", "labels": 3, "part": 0.1, "new": 3000},
    },
    see.QUICK,
)
SHOWS = {
    "error": "misclassified new rows, %",
    "fit_s": "seconds of the last fit",
    "row_us": "microseconds to map or predict one row",
}


EXPERIMENTS = (
    Experiment(
        "summary",
        "Summary: methods that learn from labels",
        FAMILY,
        SHOWS,
        ranked="error",
        ranges={"error": {"RBFDiscriminantCV": (3, 20), "NN": (5, 20)}},
        note="Rows name the data and the training images per class; all parameters are chosen on training rows.",
    ),
    Experiment(
        "summary-semi",
        "Summary: methods that learn from a few labels",
        SEMI_FAMILY,
        SHOWS,
        ranked="error",
        ranges={"error": {"GFHF": (1, 40), "LGC": (1, 40)}},
        note="Rows name the data and the labels per class; parameters are chosen by hiding labels.",
    ),
)
