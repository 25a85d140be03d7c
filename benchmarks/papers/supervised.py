"""Supervised methods and their errors on new images: what the tables of NSSE and the summary share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from benchmarks.papers.choice import Method, candidate_errors, product, timed, validated
from benchmarks.papers.data import Sets, per_class
from benchmarks.papers.model import Cell, Family
from manifast import (
    LDE,
    LFDA,
    NSSE,
    NSSECV,
    TPTSSR,
    FisherEmbedding,
    LabelEncoding,
    LaplacianEigenmaps,
    LapRLS,
    RBFDiscriminantCV,
    SupervisedIsomap,
    SupervisedLaplacianEigenmaps,
)
from manifast.extensions import RBF, KernelRidge, Nystrom, SparseCode
from manifast.graphs import mean_sq_distance
from manifast.kernels import sq_distances


def median(X: Any) -> float:
    """Median distance between rows."""
    squares = sq_distances(X)
    return float(np.sqrt(np.median(squares[np.triu_indices(len(X), 1)])))


def nsse(X: Any, y: Any, d: int, mu2: float, mu3: float) -> Any:
    return NSSE(min(d, len(np.unique(y)) - 1), mu2=mu2, mu3=mu3)


def suplap(X: Any, y: Any, scale: float = 1.5) -> Any:
    return SupervisedLaplacianEigenmaps(extension=RBF(scale=scale))


def nystrom(X: Any, y: Any, width: float) -> Any:
    """Laplacian eigenmaps of the full graph with the map of NSSE, section 2.3; `width` in mean squared distances."""
    beta = width * mean_sq_distance(X)
    extension = Nystrom(beta=beta, formula="kernel")
    return LaplacianEigenmaps(min(len(X) - 2, 150), affinity="full", beta=beta, extension=extension)


def sparse(X: Any, y: Any) -> Any:
    """Laplacian eigenmaps of the full graph, with every dimension there is, up to 500, and the map by sparse codes."""
    return LaplacianEigenmaps(min(len(X) - 2, 500), affinity="full", extension=SparseCode(lam=1e-3))


def isokrr(X: Any, y: Any, scale: float, alpha: float) -> Any:
    return SupervisedIsomap(extension=KernelRidge(sigma=scale * median(X), alpha=alpha))


def mreg(X: Any, y: Any, scale: float, gamma_A: float, gamma_I: float) -> Any:
    return LapRLS(gamma_A=gamma_A, gamma_I=gamma_I, kernel="rbf", sigma=scale * median(X))


METHODS = {
    "NSSE": Method(
        lambda X, y: NSSECV(n_splits=3),
        paper_make=nsse,
        paper=product(d=(7, 10, 15, 39), mu2=(0.03, 0.3, 1.0), mu3=(30.0, 300.0)),
    ),
    "SUPLAP": Method(suplap, product(scale=(0.5, 1.0, 1.5, 2.0, 3.0)), nested=True),
    "SVM": Method(lambda X, y, C: LinearSVC(C=C, random_state=0), product(C=(1.0, 10.0, 100.0))),
    "NN": Method(lambda X, y: KNeighborsClassifier(1)),
    "LFDA": Method(lambda X, y, ridge: LFDA(ridge=ridge), product(ridge=(0.1, 0.01, 1.0)), nested=True),
    "LDA": Method(
        lambda X, y, **more: LinearDiscriminantAnalysis(**more),
        # The first where a part has one image per class, and none can be fitted: of two "auto" finds nothing to shrink.
        ({"solver": "svd"}, {"solver": "lsqr", "shrinkage": "auto"}),
    ),
    "LDE": Method(lambda X, y, ridge: LDE(ridge=ridge), product(ridge=(0.1, 0.01, 1.0)), nested=True),
    "NYS": Method(nystrom, product(width=(1.0, 10.0)), nested=True),
    "SPE": Method(sparse, nested=True),
    "IsoKRR": Method(isokrr, product(scale=(1.0, 2.0), alpha=(1e-3, 1e-2)), nested=True),
    "MReg": Method(mreg, product(scale=(1.0, 2.0), gamma_A=(1e-3, 1e-2), gamma_I=(1e-4, 1e-2))),
}
# What the summary shows beside the paper's columns; by the names of the classes.
OTHERS = {
    "RBFDiscriminantCV": Method(lambda X, y: RBFDiscriminantCV(), inside=("sigma", "ridge", "metric")),
    "SUPLAP, metric auto": Method(lambda X, y: SupervisedLaplacianEigenmaps(metric="auto"), inside=("metric",)),
    "LDE, metric auto": Method(lambda X, y: LDE(metric="auto"), inside=("metric",)),
    "FisherEmbedding": Method(
        lambda X, y, scale: FisherEmbedding(extension=RBF(scale=scale)), product(scale=(0.5, 1.0, 2.0)), nested=True
    ),
    "LabelEncoding": Method(
        lambda X, y, scale: LabelEncoding(extension=RBF(scale=scale)), product(scale=(0.5, 1.0, 2.0))
    ),
    "TPTSSR": Method(lambda X, y: TPTSSR()),
    "SVC": Method(lambda X, y: GridSearchCV(SVC(), {"C": [1.0, 10.0, 100.0], "kernel": ["rbf", "linear"]}, cv=2)),
}


def split_rows(sets: Sets, row: Mapping[str, Any], seed: int) -> tuple[Any, Any, Any, Any]:
    """Training and new rows with their labels; `per_class` training rows of each class, at most `new` others."""
    given = {name: value for name, value in row.items() if name not in ("per_class", "new")}
    X, y = sets.rows(**given)
    train, new = per_class(y, row["per_class"], seed)
    new = np.random.default_rng(seed).permutation(new)[: row.get("new", len(new))]
    return X[train], y[train], X[new], y[new]


def error_cell(sets: Sets, row: Mapping[str, Any], method: Method, seed: int, paper: bool) -> Cell:
    X, y, new, truth = split_rows(sets, row, seed)
    if paper:
        return {"error": {"candidates": candidate_errors(method, X, y, new, truth, paper=True)}}
    return validated(method, X, y, new, truth)


def times(sets: Sets, row: Mapping[str, Any], method: Method, seed: int, cell: Cell) -> Cell:
    """Seconds to fit and microseconds a new row, with the parameters that the cell chose."""
    X, y, new, _ = split_rows(sets, row, seed)
    return timed(method, X, y, new, json.loads(cell["chosen"]))


def sizes(name: str, label: str, counts: tuple[int, ...], **more: Any) -> dict[str, dict[str, Any]]:
    return {f"{label}, {n} per class": {"name": name, "size": 25, "unit": True, "per_class": n, **more} for n in counts}


YALE, COIL, ORL = "Ext. Yale", "COIL-20", "ORL"
SIZES = (
    sizes("yaleb", YALE, (6, 10, 15, 20, 30))
    | sizes("coil20", COIL, (7, 10, 15, 20, 30))
    | sizes("orl", ORL, (2, 3, 5))
    | sizes("mnist10k", "MNIST", (20,), new=3000)
    | sizes("digits", "digits", (20,))
)
QUICK = {"digits, 10 per class": {"name": "digits", "unit": True, "per_class": 10, "new": 500}}
ERRORS = Family("supervised", error_cell, METHODS | OTHERS, SIZES, QUICK, paper=True, times=times)
