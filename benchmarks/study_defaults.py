"""The table behind the defaults: errors of recommended methods beside scikit-learn's, on splits that chose nothing.

    python benchmarks/study_defaults.py [--splits 10] [--first 0] [--sets coil20 orl ...] [--methods LDA SVC ...]

Errors in % of new rows: by `predict`, or by the nearest training row in the embedding. Everything was chosen on splits
of seeds from 1000 on; seeds below are for reports. Images as in supervised.py.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.study_graphs import read
from benchmarks.supervised import load, split
from manifast import LDE, NSSE, NSSECV, RBFDiscriminant, RBFDiscriminantCV, SupervisedLaplacianEigenmaps
from manifast.kernels import knn

SETTINGS = {
    "coil20": (7, 10, 20),
    "orl": (3, 5),
    "yaleb": (6, 10, 20),
    "digits": (10, 50),
    "mnist10k": (10, 50),
    "coil20-unit": (7, 20),
    "orl-unit": (3, 5),
}


class GridSVC:
    """An SVC whose kernel, C and width come from three-fold cross-validation."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> GridSVC:
        width = 1 / (X.shape[1] * X.var())
        grid = [
            {"kernel": ["rbf"], "C": [1, 10, 100], "gamma": [0.3 * width, width, 3 * width]},
            {"kernel": ["linear"], "C": [0.1, 1, 10]},
        ]
        folds = StratifiedKFold(min(3, np.unique(y, return_counts=True)[1].min()), shuffle=True, random_state=0)
        self.predict = GridSearchCV(SVC(), grid, cv=folds).fit(X, y).predict
        return self


METHODS: dict[str, Callable[[], Any]] = {
    "LDA": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "SVC": GridSVC,
    "1-NN": lambda: KNeighborsClassifier(1),
    "LDE": LDE,
    "RBFDiscriminant": RBFDiscriminant,
    "RBFDiscriminantCV": RBFDiscriminantCV,
    "its embedding": RBFDiscriminantCV,
    "SUPLAP": SupervisedLaplacianEigenmaps,
    "SUPLAP, auto": lambda: SupervisedLaplacianEigenmaps(metric="auto"),
    "NSSE": NSSE,
    "NSSECV": NSSECV,
}
REFERENCES = ("LDA", "SVC", "1-NN", "LDE", "RBFDiscriminant")


def error(name: str, X: np.ndarray, y: np.ndarray, train: np.ndarray, new: np.ndarray) -> float:
    model = METHODS[name]().fit(X[train], y[train])
    if hasattr(model, "predict") and name != "its embedding":
        found = model.predict(X[new])
    else:
        mapped = np.ascontiguousarray(model.transform(X[new]))
        found = y[train][knn(np.ascontiguousarray(model.embedding_), 1, queries=mapped)[1][:, 0]]
    return 100 * float(np.mean(found != y[new]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors of the recommended methods beside scikit-learn's.")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed; from 1000 on are those that chose")
    parser.add_argument("--sets", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for data in options.sets:
        X, y = load(data, "unit") if data.endswith("-unit") else read(data)
        for count in SETTINGS[data]:
            splits = [split(y, count, seed) for seed in range(options.first, options.first + options.splits)]
            found: dict[str, np.ndarray] = {}
            for name in options.methods:
                begin = time.perf_counter()
                found[name] = np.array([error(name, X, y, *rows) for rows in splits])
                seconds = (time.perf_counter() - begin) / len(splits)
                spread = found[name].std(ddof=1) / np.sqrt(len(splits)) if len(splits) > 1 else np.nan
                print(
                    f"{data}, {count} per class: {name} {found[name].mean():.2f} ± {spread:.2f}, {seconds:.2f} s",
                    flush=True,
                )
            best = min((float(found[name].mean()) for name in REFERENCES if name in found), default=np.nan)
            print(f"{data}, {count} per class: best reference {best:.2f}", flush=True)


if __name__ == "__main__":
    main()
