"""The tables behind the recommended methods: their errors beside scikit-learn's, on splits that chose nothing.

    python -m benchmarks.defaults [supervised semisupervised] [--splits 10] [--first 100] [--sets ...] [--methods ...]
                                  [--keep]

Image sets are read from the folder MANIFAST_DATA. Every error is appended to a file of JSON lines, and none is computed
twice; delete lines of a method that has changed. At the end the tables are printed as Markdown; --keep puts their means
into benchmarks/results/defaults.json for the documentation (benchmarks/tables.py). Defaults were chosen on splits of
seeds below 100 and from 1000 on; seeds from 100 on are for reports.

supervised: errors in % of new rows, by `predict` or by the nearest training row in the embedding, for some images per
class. semisupervised: half of the rows (of at most 2500) are there for training, with 1, 2 or 3 labels per class;
errors in % of their unlabelled rows and of the other half. Embeddings classify by the nearest labelled row. "chosen"
are scikit-learn's methods with parameters from a small grid, by labels that are hidden in turn.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

import manifast as mf
from benchmarks.results import FOLDER, keep
from benchmarks.sets import partly_labelled, read, split
from manifast.kernels import knn, sq_distances
from manifast.model_selection import LabeledRows

SUPERVISED = {
    "coil20": (7, 10, 20),
    "orl": (3, 5),
    "yaleb": (6, 10, 20),
    "digits": (10, 50),
    "mnist10k": (10, 50),
}
PARTLY = dict.fromkeys(("orl", "yaleb", "digits", "coil20", "mnist10k"), (1, 2, 3))


class GridSVC:
    """An SVC whose kernel, C and width come from three-fold cross-validation, through kernel matrices.

    The widths are 0.3, 1 and 3 times scikit-learn's gamma="scale".
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> GridSVC:
        self._X, width = X, 1 / (X.shape[1] * X.var())
        grid = [(factor * width, C) for factor in (0.3, 1, 3) for C in (1, 10, 100)] + [(None, C) for C in (0.1, 1, 10)]
        folds = StratifiedKFold(min(3, np.unique(y, return_counts=True)[1].min()), shuffle=True, random_state=0)
        parts = list(folds.split(X, y))
        matrices = {gamma: self._kernel(X, gamma) for gamma, _ in grid}

        def score(gamma: float | None, C: float) -> float:
            K = matrices[gamma]
            right = [
                np.mean(SVC(C=C, kernel="precomputed").fit(K[np.ix_(a, a)], y[a]).predict(K[np.ix_(b, a)]) == y[b])
                for a, b in parts
            ]
            return float(np.mean(right))

        self._gamma, C = max(grid, key=lambda pair: score(*pair))
        self._model = SVC(C=C, kernel="precomputed").fit(matrices[self._gamma], y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._model.predict(self._kernel(X, self._gamma)))

    def _kernel(self, X: np.ndarray, gamma: float | None) -> np.ndarray:
        return X @ self._X.T if gamma is None else np.exp(-gamma * sq_distances(X, self._X))


class Chosen:
    """A semi-supervised classifier whose parameters come from labels that are hidden in turn, in three parts, twice.

    With one label per class none can be hidden: the first parameters are taken, which are scikit-learn's own.
    """

    def __init__(self, make: Callable[..., Any], grid: Sequence[dict[str, Any]]) -> None:
        self._make, self._grid = make, grid

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        known = np.flatnonzero(y != -1)
        parts = min(3, int(np.unique(y[known], return_counts=True)[1].min()))
        scores = np.zeros(len(self._grid))
        if parts > 1:
            splitter = RepeatedStratifiedKFold(n_splits=parts, n_repeats=2, random_state=0)
            for _, held in splitter.split(known, y[known]):
                hidden, some = known[held], y.copy()
                some[hidden] = -1
                models = (self._make(**point).fit(X, some) for point in self._grid)
                scores += [np.sum(labels_of(model, X, hidden) == y[hidden]) for model in models]
        return self._make(**self._grid[int(np.argmax(scores))]).fit(X, y)


def labels_of(model: Any, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Labels of training rows: those that the fit has found, and predictions where it has left a row without one."""
    if not hasattr(model, "transduction_"):
        return np.asarray(model.predict(X[rows]))
    found = np.array(model.transduction_[rows])
    left = found == -1
    if left.any():  # scikit-learn's self-training labels the rows that it is sure of
        found[left] = model.predict(X[rows[left]])
    return found


class SelfTraining:
    """scikit-learn's self-training of an SVC; `width` is a multiple of gamma="scale" on all rows."""

    def __init__(self, C: float = 1.0, width: float | None = None) -> None:
        self._C, self._width = C, width

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        gamma = "scale" if self._width is None else self._width / (X.shape[1] * X.var())
        return SelfTrainingClassifier(SVC(C=self._C, gamma=gamma, probability=True, random_state=0)).fit(X, y)


def spreading(n_neighbors: int = 7, alpha: float = 0.2) -> Any:
    return LabelSpreading(kernel="knn", n_neighbors=n_neighbors, alpha=alpha)


SPREADINGS = [{}, *({"n_neighbors": k, "alpha": a} for k in (3, 5, 10) for a in (0.2, 0.5, 0.8, 0.95))]
TRAININGS = [{}, *({"C": C, "width": width} for C in (1.0, 10.0, 100.0) for width in (0.3, 1.0, 3.0))]


class Embedding:
    """An estimator judged by the nearest labelled row in its embedding, though it could predict."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> Embedding:
        self._model.fit(X, y)
        known = np.arange(len(y)) if (y != -1).all() else np.flatnonzero(y != -1)
        self._places, self._labels = np.ascontiguousarray(self._model.embedding_[known]), y[known]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        mapped = np.ascontiguousarray(self._model.transform(X))
        return self._labels[knn(self._places, 1, queries=mapped)[1][:, 0]]


METHODS: dict[str, dict[str, Callable[[], Any]]] = {
    "supervised": {
        "LDA": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "SVC": GridSVC,
        "1-NN": lambda: KNeighborsClassifier(1),
        "LDE": lambda: Embedding(mf.LDE()),
        "RBFDiscriminant": mf.RBFDiscriminant,
        "RBFDiscriminantCV": mf.RBFDiscriminantCV,
        "its embedding": lambda: Embedding(mf.RBFDiscriminantCV()),
        "SUPLAP": lambda: Embedding(mf.SupervisedLaplacianEigenmaps()),
        "NSSE": lambda: Embedding(mf.NSSE()),
        "NSSECV": lambda: Embedding(mf.NSSECV()),
    },
    "semisupervised": {
        "LabelSpreading": spreading,
        "SelfTraining(SVC)": SelfTraining,
        "LabelSpreading, chosen": lambda: Chosen(spreading, SPREADINGS),
        "SelfTraining(SVC), chosen": lambda: Chosen(SelfTraining, TRAININGS),
        "1-NN": lambda: LabeledRows(KNeighborsClassifier(1)),
        "GFHF": mf.GFHF,
        "LGC": mf.LGC,
        "RMGT": mf.RMGT,
        "LapRLS": mf.LapRLS,
        "LapRLS, kernel": lambda: mf.LapRLS(kernel="rbf"),
        "LapRLSCV": mf.LapRLSCV,
        "LapRLSCV, kernel": lambda: mf.LapRLSCV(kernel="rbf"),
        "FME": mf.FME,
        "FME, kernel": lambda: mf.FME(kernel="rbf"),
        "FMECV": mf.FMECV,
        "FMECV, kernel": lambda: mf.FMECV(kernel="rbf"),
        "SDA": lambda: Embedding(mf.SDA()),
        "SDACV": lambda: Embedding(mf.SDACV()),
        "ElasticEmbedding": lambda: Embedding(mf.ElasticEmbedding()),
        "ElasticEmbedding, kernel": lambda: Embedding(mf.ElasticEmbedding(kernel="rbf")),
    },
}


def supervised(name: str, X: np.ndarray, y: np.ndarray, count: int, seed: int) -> dict[str, float]:
    train, new = split(y, count, seed)
    begin = time.perf_counter()
    model = METHODS["supervised"][name]().fit(X[train], y[train])
    seconds = time.perf_counter() - begin
    return {"error": 100 * float(np.mean(model.predict(X[new]) != y[new])), "seconds": seconds}


def semisupervised(name: str, X: np.ndarray, y: np.ndarray, count: int, seed: int) -> dict[str, float]:
    train, some, new = partly_labelled(y, count, seed)
    begin = time.perf_counter()
    model = METHODS["semisupervised"][name]().fit(X[train], some)
    seconds = time.perf_counter() - begin
    hidden = np.flatnonzero(some == -1)
    unlabelled = 100 * float(np.mean(labels_of(model, X[train], hidden) != y[train][hidden]))
    new_error = 100 * float(np.mean(model.predict(X[new]) != y[new]))
    return {"error": 0.5 * (unlabelled + new_error), "unlabelled": unlabelled, "new": new_error, "seconds": seconds}


STUDIES: dict[str, tuple[Any, dict[str, tuple[int, ...]]]] = {
    "supervised": (supervised, SUPERVISED),
    "semisupervised": (semisupervised, PARTLY),
}


class Results:
    """Errors by study, set, images per class, seed and method, in a file that only grows."""

    def __init__(self, path: Path) -> None:
        self._path, self.found = path, {}
        if path.is_file():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                self.found[tuple(entry.pop("key"))] = entry

    def add(self, key: tuple[Any, ...], entry: dict[str, float]) -> None:
        self.found[key] = entry
        with self._path.open("a") as file:
            file.write(json.dumps({"key": key, **entry}) + "\n")


def means(study: str, results: Results, seeds: range) -> Iterator[dict[str, Any]]:
    """Mean errors of the settings and methods with all seeds."""
    for data, counts in STUDIES[study][1].items():
        for count, name in product(counts, METHODS[study]):
            keys = [(study, data, count, seed, name) for seed in seeds]
            if not all(key in results.found for key in keys):
                continue
            errors = np.array([results.found[key]["error"] for key in keys])
            spread = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else None
            yield {
                "study": study,
                "set": data,
                "labels": count,
                "method": name,
                "error": round(float(errors.mean()), 3),
                "standard error": None if spread is None else round(float(spread), 3),
                "seeds": [seeds[0], seeds[-1]],
            }


def table(study: str, results: Results, seeds: range, sets: list[str], methods: list[str]) -> Iterator[str]:
    """Mean errors ± standard errors, in %, of the settings with all seeds."""
    settings = [(data, count) for data, counts in STUDIES[study][1].items() if data in sets for count in counts]
    yield "| method | " + " | ".join(f"{data} {count}" for data, count in settings) + " | mean |"
    yield "|---" * (len(settings) + 2) + "|"
    for name in methods:
        cells, means = [], []
        for data, count in settings:
            keys = [(study, data, count, seed, name) for seed in seeds]
            errors = np.array([results.found[key]["error"] for key in keys if key in results.found])
            if len(errors) < len(seeds):
                cells.append("")
                continue
            means.append(errors.mean())
            spread = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
            cells.append(f"{errors.mean():.2f} ± {spread:.2f}")
        if means:
            yield f"| {name} | " + " | ".join(cells) + f" | {np.mean(means):.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors of the recommended methods beside scikit-learn's.")
    parser.add_argument("studies", nargs="*", default=list(STUDIES), help="supervised, semisupervised; both by default")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=100, help="the first seed; from 100 to 999 nothing was chosen")
    parser.add_argument("--sets", nargs="+", help="of the study's; all by default")
    parser.add_argument("--methods", nargs="+", help="of the study's; all by default")
    parser.add_argument("--results", type=Path, default=Path("defaults.jsonl"))
    parser.add_argument("--table", action="store_true", help="only print what is there")
    parser.add_argument("--keep", action="store_true", help="put the means into benchmarks/results/defaults.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = Results(options.results)
    seeds = range(options.first, options.first + options.splits)
    for study in options.studies:
        run, settings = STUDIES[study]
        sets = [data for data in settings if options.sets is None or data in options.sets]
        methods = [name for name in METHODS[study] if options.methods is None or name in options.methods]
        for data in sets if not options.table else ():
            X, y = read(data)
            for count in settings[data]:
                for name in methods:
                    for seed in seeds:
                        key = (study, data, count, seed, name)
                        if key not in results.found:
                            results.add(key, run(name, X, y, count, seed))
        print(f"\n{study}, seeds {seeds[0]} to {seeds[-1]}, error % ± standard error\n")
        for line in table(study, results, seeds, sets, methods):
            print(line, flush=True)
        if options.keep:
            rows = list(means(study, results, seeds))
            keep(FOLDER / "defaults.json", ("study", "set", "labels", "method"), rows)


if __name__ == "__main__":
    main()
