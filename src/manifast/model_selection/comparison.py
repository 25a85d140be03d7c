"""One table of methods on the user's own data: errors on held-out rows, times, and scikit-learn's own baselines."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from manifast import classifiers, embeddings
from manifast._labels import labelled_part, take_rows
from manifast._progress import log, verbosity
from manifast._validation import Array, as_count, as_matrix
from manifast._warnings import warn
from manifast.kernels import knn
from manifast.model_selection.labelled import IntegerLabels, LabeledRows, LabeledSplit

_NEAREST = 10  # neighbours whose preservation is measured without labels


@dataclass(frozen=True)
class MethodResult:
    """What one method did: its error on every fold, seconds to fit and to map or predict a fold, or why it failed."""

    name: str
    errors: tuple[float, ...]
    fit_seconds: float
    predict_seconds: float
    failure: str | None = None

    @property
    def error(self) -> float:
        """Mean over the folds; NaN where the method failed."""
        return float(np.mean(self.errors)) if self.failure is None else float("nan")

    @property
    def standard_error(self) -> float:
        """Of the mean, from the spread of the folds."""
        count = len(self.errors)
        return float(np.std(self.errors, ddof=1) / np.sqrt(count)) if count > 1 and self.failure is None else np.nan


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`: methods from best to worst. Print it, or end a notebook cell with it.

    Attributes
    ----------
    results : tuple of `MethodResult`, best first; methods that failed last
    score : str
        What the errors are.
    n_folds : int
    best_name_ : str
    best_estimator_ : estimator, fitted to all rows
    """

    results: tuple[MethodResult, ...]
    score: str
    n_folds: int
    best_name_: str
    best_estimator_: Any

    _HEADER = ("method", "error %", "± s.e.", "fit s", "predict s")

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for row in self.results:
            if row.failure is not None:
                yield row.name, "failed", row.failure, "", ""
                continue
            numbers = (f"{100 * row.error:.2f}", f"{100 * row.standard_error:.2f}")
            yield row.name, *numbers, f"{row.fit_seconds:.3f}", f"{row.predict_seconds:.3f}"

    def __str__(self) -> str:
        lines = [f"{self.score}, {self.n_folds} folds; best: {self.best_name_}"]
        width = max(len(row.name) for row in self.results)
        for name, *cells in (self._HEADER, *self._cells()):
            failed = cells[0] == "failed"
            rest = f"{cells[0]:>8}  {cells[1]}" if failed else " ".join(f"{cell:>9}" for cell in cells)
            lines.append(f"{name:<{width}} {rest}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self._HEADER)
        body = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in cells)}</tr>" for cells in self._cells())
        body = body.replace("<tr><td>", "<tr><td style='text-align: left'>")  # notebooks put cells at the right
        caption = f"<caption>{escape(self.score)}, {self.n_folds} folds; best: {escape(self.best_name_)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name, as a pandas DataFrame takes them."""
        names = ("name", "error", "standard_error", "fit_seconds", "predict_seconds", "failure")
        return {name: [getattr(row, name) for row in self.results] for name in names}


def compare(
    X: Any,
    y: Any = None,
    methods: Any = None,
    cv: Any = 5,
    *,
    n_components: int = 2,
    random_state: int = 0,
    refit: bool = True,
    verbose: bool | int = False,
) -> Comparison:
    """Which method suits these data: cross-validated errors and times of ours and of scikit-learn's baselines.

    Everything is fitted inside each fold, on its training rows only. With labels the error is the share of held-out
    rows that are misclassified: by `predict`, or by the nearest training row in the embedding. With -1, NaN, None or
    pandas' NA for some labels, only labelled rows are held out, and the methods learn from all others. Without labels
    it is the share of the 10 nearest training rows of a held-out row that are not its 10 nearest in the embedding.

    Parameters
    ----------
    X : array of shape (n, p)
    y : array of n labels, optional
    methods : None, sequence of names or estimators, or dict of estimators by name, default None
        None is all that suit the labels: see `default_methods`. Names are keys of that.
    cv : int or splitter, default 5
        Number of folds, stratified by the labels and at most as many as the smallest class has rows, or how to split.
    n_components : int, default 2
        Dimensions of the embeddings without labels. Those by labels have their own default.
    random_state : int, default 0
        Of the folds.
    refit : bool, default True
        Fit the best method to all rows.
    verbose : bool or int, default False
        1 says on stderr which method runs and what it scored.

    Returns
    -------
    Comparison
        Printable. `best_estimator_` is the best method, fitted to all rows (None with ``refit=False``).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifast.model_selection import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> found = compare(X, y, ["RBFDiscriminantCV", "LDE", "1-NN"], cv=3)
    >>> len(found.results), found.n_folds
    (3, 3)
    >>> found.best_estimator_.predict(X[:2]).shape
    (2,)
    """
    rows = as_matrix(X, "X", min_rows=2)
    kind = _kind(y, len(rows))
    chosen = _methods(methods, kind, as_count(n_components, "n_components"))
    folds = _folds(rows, y, cv, random_state, kind)
    with verbosity(verbose, "compare"):
        results = [_run(name, made, rows, y, folds, kind, bool(verbose)) for name, made in chosen.items()]
        # Failed methods last; ties to the faster one.
        results.sort(key=lambda row: (row.failure is not None, row.error, row.fit_seconds))
        best = results[0]
        if best.failure is not None:
            raise ValueError(f"methods must hold one that can be fitted to X. All failed: {best.name}: {best.failure}")
        model = chosen[best.name]
        fitted = (model.fit(rows) if kind == "none" else model.fit(rows, y)) if refit else None
    score = "neighbours of held-out rows that are lost" if kind == "none" else "held-out rows misclassified"
    return Comparison(tuple(results), score, len(folds), best.name, fitted)


def default_methods(kind: str, n_components: int = 2) -> dict[str, Any]:
    """Methods by name for rows that "all" have a label, "some" or "none" have one; scikit-learn's come last.

    Examples
    --------
    >>> from manifast.model_selection import default_methods
    >>> sorted(default_methods("none"))[:3]
    ['DiffusionMaps', 'Isomap', 'LGRM']
    """
    e, c = embeddings, classifiers
    if kind == "none":
        ours = (
            e.LaplacianEigenmaps, e.DiffusionMaps, e.LocallyLinearEmbedding, e.LTSA, e.LocalRegressionEmbedding,
            e.Isomap, e.LGRM, e.LPP, e.NPE,
        )  # fmt: skip
        return {kind.__name__: kind(n_components) for kind in ours} | {"PCA": PCA(n_components)}
    if kind == "some":
        found = {
            "GFHF": c.GFHF(), "LGC": c.LGC(), "RMGT": c.RMGT(), "LapRLS": c.LapRLS(),
            "LapRLS, kernel": c.LapRLS(kernel="rbf"), "FME": c.FME(), "FME, kernel": c.FME(kernel="rbf"),
            "SDA": e.SDA(), "SDE": e.SDE(), "TCA": e.TCA(), "ElasticEmbedding": e.ElasticEmbedding(),
            "ElasticEmbedding, kernel": e.ElasticEmbedding(kernel="rbf"),
            "LapRLSCV": c.LapRLSCV(), "FMECV": c.FMECV(),
            "RBFDiscriminantCV": LabeledRows(c.RBFDiscriminantCV()),
        }  # fmt: skip
        return found | {
            "LabelSpreading": IntegerLabels(LabelSpreading(kernel="knn", n_neighbors=7)),
            "SelfTraining(SVC)": IntegerLabels(SelfTrainingClassifier(SVC(probability=True, random_state=0))),
            "SVC": LabeledRows(SVC(C=10.0)),
            "1-NN": LabeledRows(KNeighborsClassifier(1)),
        }
    svc = make_pipeline(StandardScaler(), SVC())
    grid = {"svc__C": [1.0, 10.0, 100.0], "svc__kernel": ["rbf", "linear"]}
    return {
        "RBFDiscriminantCV": c.RBFDiscriminantCV(),
        "RBFDiscriminant": c.RBFDiscriminant(),
        "SupervisedLaplacianEigenmaps": e.SupervisedLaplacianEigenmaps(metric="auto"),
        "NSSE": e.NSSE(),
        "LDE": e.LDE(),
        "LFDA": e.LFDA(),
        "SupervisedIsomap": e.SupervisedIsomap(),
        "TPTSSR": c.TPTSSR(),
        "LDA, shrinkage": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "SVC, 3-fold grid": GridSearchCV(svc, grid, cv=3),
        "1-NN": KNeighborsClassifier(1),
    }


def _kind(y: Any, n: int) -> str:
    """Whether "all", "some" or "none" of the rows have a label."""
    if y is None:
        return "none"
    if np.shape(y)[:1] != (n,):
        raise ValueError(f"y must hold one label per row of X, {n}. Got shape {np.shape(y)} instead.")
    rows, known = labelled_part(y)
    if len(np.unique(known)) < 2:
        raise ValueError(f"y must hold labels of at least 2 classes. Got {len(np.unique(known))} instead.")
    return "all" if len(rows) == n else "some"


def _methods(given: Any, kind: str, n_components: int) -> dict[str, Any]:
    """Fresh estimators by name; embeddings by labels with the nearest training row behind them."""
    known = default_methods(kind, n_components)
    if given is None:
        named: dict[str, Any] = known
    elif isinstance(given, Mapping) and given:
        named = dict(given)
    elif isinstance(given, Sequence) and not isinstance(given, str) and len(given):
        named = {}
        for value in given:
            if isinstance(value, str) and value not in known:
                names = ", ".join(map(repr, known))
                raise ValueError(f"methods must hold estimators or names among {names}. Got {value!r} instead.")
            name = value if isinstance(value, str) else _free_name(type(value).__name__, named)
            named[name] = known[value] if isinstance(value, str) else value
    else:
        raise ValueError(f"methods must be None, a sequence or a dict of estimators. Got {given!r} instead.")
    for name, value in named.items():
        if not hasattr(value, "fit") or not (hasattr(value, "predict") or hasattr(value, "transform")):
            raise ValueError(f"methods must be estimators with predict or transform. Got {value!r} for {name!r}.")
    return {str(name): _complete(clone(value), kind) for name, value in named.items()}


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    count = 2
    free = name
    while free in taken:
        free, count = f"{name} {count}", count + 1
    return free


def _complete(estimator: Any, kind: str) -> Any:
    if kind == "none" or is_classifier(estimator) or not hasattr(estimator, "transform"):
        return estimator
    nearest: Any = KNeighborsClassifier(1)
    return Pipeline([("embed", estimator), ("classify", LabeledRows(nearest) if kind == "some" else nearest)])


def _folds(X: Array, y: Any, cv: Any, seed: int, kind: str) -> list[tuple[Array, Array]]:
    splitter = cv
    if not hasattr(cv, "split"):
        count = as_count(cv, "cv")
        if count < 2:
            raise ValueError(f"cv must be at least 2 folds, or a splitter. Got {cv!r} instead.")
        if kind == "none":
            splitter = KFold(min(count, len(X)), shuffle=True, random_state=seed)
        else:
            classes, sizes = np.unique(labelled_part(y)[1], return_counts=True)
            rarest, smallest = classes.tolist()[int(np.argmin(sizes))], int(sizes.min())
            if smallest < 2:
                raise ValueError(
                    "y must hold at least 2 labelled rows of every class, to hold one out. Got 1 of class "
                    f"{rarest!r}: add rows of it, or leave it out."
                )
            if smallest < count:
                warn(f"cv = {count} folds became {smallest}: class {rarest!r} has {smallest} labelled rows.")
            splitter = StratifiedKFold(min(count, smallest), shuffle=True, random_state=seed)
    if kind == "some" and not isinstance(splitter, LabeledSplit):
        splitter = LabeledSplit(splitter)
    return list(splitter.split(X, None if y is None else np.asarray(y)))


def _run(name: str, made: Any, X: Array, y: Any, folds: list[Any], kind: str, verbose: bool) -> MethodResult:
    errors, fit_seconds, predict_seconds = [], [], []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for train, held in folds:
                model, begin = clone(made), time.perf_counter()
                if kind == "none":
                    embedded = np.asarray(model.fit_transform(X[train]))
                else:
                    model.fit(X[train], take_rows(y if hasattr(y, "iloc") else np.asarray(y), train))
                fitted = time.perf_counter()
                found = model.transform(X[held]) if kind == "none" else model.predict(X[held])
                predict_seconds.append(time.perf_counter() - fitted)
                fit_seconds.append(fitted - begin)
                if kind == "none":
                    errors.append(_lost(X[train], X[held], embedded, np.asarray(found)))
                else:
                    errors.append(float(np.mean(np.asarray(found) != np.asarray(y)[held])))
    except Exception as problem:  # one method that cannot be fitted must not end the comparison of the others
        if verbose:
            log(f"{name} failed: {problem}")
        return MethodResult(name, (), 0.0, 0.0, f"{type(problem).__name__}: {problem}")
    result = MethodResult(name, tuple(errors), float(np.mean(fit_seconds)), float(np.mean(predict_seconds)))
    if verbose:
        log(f"{name}: error {100 * result.error:.2f} %, {result.fit_seconds:.2f} s to fit")
    return result


def _lost(X: Array, new: Array, embedded: Array, mapped: Array) -> float:
    """Share of the nearest training rows of new ones that are not among their nearest in the embedding."""
    k = min(_NEAREST, len(X))
    before = knn(X, k, queries=new)[1]
    after = knn(np.ascontiguousarray(embedded), k, queries=np.ascontiguousarray(mapped.astype(embedded.dtype)))[1]
    kept = (before[:, :, None] == after[:, None, :]).any(axis=2)
    return 1.0 - float(kept.mean())
