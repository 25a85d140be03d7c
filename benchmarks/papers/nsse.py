"""NSSE (Örnek and Vural 2018): Tables 1 to 3 and 7, Figures 3 to 6."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks.papers.choice import embedded, error, ladder, nearest, nearest_errors
from benchmarks.papers.data import Sets
from benchmarks.papers.model import Cell, Experiment, Family, by_rows
from benchmarks.papers.supervised import COIL, ERRORS, METHODS, ORL, QUICK, SIZES, YALE, split_rows
from manifast import LDE, LFDA, NSSE, SupervisedLaplacianEigenmaps

_COLUMNS = "NSSE SUPLAP SVM NN LFDA LDA LDE NYS SPE IsoKRR MReg"
PRINTED = by_rows(
    _COLUMNS,
    {
        f"{YALE}, 6 per class": "22.09 23.10 29.43 63.48 26.89 35.86 20.05 19.47 63.81 22.58 19.89",
        f"{YALE}, 10 per class": "12.60 12.92 15.17 52.89 40.63 63.97 21.79 11.88 53.19 12.58 12.36",
        f"{YALE}, 15 per class": "7.52 7.95 9.09 43.57 10.78 57.87 7.95 7.84 43.41 7.11 6.90",
        f"{YALE}, 20 per class": "5.02 5.60 6.14 37.51 7.42 52.80 5.16 6.43 38.31 4.61 4.50",
        f"{YALE}, 30 per class": "2.56 2.57 2.99 30.13 3.22 46.43 3.04 4.63 32.46 2.38 2.35",
        f"{COIL}, 7 per class": "8.09 10.97 10.38 13.90 17.93 11.84 20.86 13.87 13.90 11.17 8.49",
        f"{COIL}, 10 per class": "4.97 6.81 6.93 10.22 13.59 7.68 16.84 9.38 10.22 7.07 5.44",
        f"{COIL}, 15 per class": "2.79 3.85 4.60 6.88 11.32 4.22 14.01 5.70 6.88 3.96 3.05",
        f"{COIL}, 20 per class": "1.25 2.04 3.23 4.51 9.53 2.29 12.64 3.34 4.54 2.00 1.31",
        f"{COIL}, 30 per class": "0.53 0.80 2.27 2.31 7.08 0.99 13.28 1.56 2.44 0.79 0.73",
        f"{ORL}, 2 per class": "14.11 16.04 19.74 19.34 27.70 21.18 24.92 17.03 19.34 14.81 14.85",
        f"{ORL}, 3 per class": "8.00 9.49 10.70 12.96 14.89 13.13 12.74 11.06 12.96 8.63 8.38",
        f"{ORL}, 5 per class": "3.90 5.32 4.35 6.92 8.10 7.74 7.05 6.90 6.92 4.23 4.13",
    },
)


def time_cell(sets: Sets, row: Mapping[str, Any], column: str, seed: int, paper: bool) -> Cell:
    """Seconds of one fit with 30 widths, the best of 3."""
    X, y, *_ = split_rows(sets, row, seed)
    taken = []
    for _ in range(3):
        begin = time.perf_counter()
        NSSE(10, sigma_grid=np.geomspace(0.3, 6.0, 30)).fit(X, y)
        taken.append(time.perf_counter() - begin)
    return {"seconds": min(taken), "rows": len(X)}


TIMES = Family(
    "nsse-times",
    time_cell,
    {"NSSE": "30 widths"},
    {f"{COIL}, {20 * n} images": {"name": "coil20", "size": 25, "unit": True, "per_class": n} for n in (7, 15, 30)},
    {f"digits, {10 * n} images": {"name": "digits", "per_class": n} for n in (10, 20)},
)


STEPS = 8  # iterations that are shown


def iteration_cell(sets: Sets, row: Mapping[str, Any], start: float, seed: int, paper: bool) -> Cell:
    """Objective, test error and width after every iteration, from one start."""
    X, y, new, truth = split_rows(sets, row, seed)
    d = min(10, len(np.unique(y)) - 1)
    errors, models = [], []
    for count in range(1, STEPS + 1):
        model = NSSE(d, sigma_init=start, max_iter=count, tol=1e-9).fit(X, y)
        models.append(model)
        errors.append(error(nearest(model.embedding_, y, model.transform(new)), truth))
    last = models[-1]
    steps = list(range(1, STEPS + 1))
    curve = {"x": steps, "label": "iterations"}
    pad = lambda history: [float(history[min(at, len(history) - 1)]) for at in range(STEPS)]  # noqa: E731
    return {
        "objective": curve | {"y": pad(last.objective_history_)},
        "error": curve | {"y": errors},
        "sigma": curve | {"y": [float(model.sigma_) for model in models]},
        "last error": errors[-1],
    }


ITERATIONS = Family(
    "nsse-iterations",
    iteration_cell,
    {"high start, 6 medians": 6.0, "low start, 0.3 medians": 0.3},
    {f"{COIL}, 5 per class": {"name": "coil20", "size": 25, "unit": True, "per_class": 5}},
    {"digits, 10 per class": {"name": "digits", "per_class": 10, "new": 500}},
)


def dimension_cell(sets: Sets, row: Mapping[str, Any], method: str, seed: int, paper: bool) -> Cell:
    """Test error over the dimension, with the library's defaults."""
    X, y, new, truth = split_rows(sets, row, seed)
    most = len(np.unique(y)) - 1
    if method == "NSSE":
        dimensions = ladder(most, most)
        errors = []
        for d in dimensions:
            model = NSSE(d).fit(X, y)
            errors.append(error(nearest(model.embedding_, y, model.transform(new)), truth))
    else:
        wide = min(int(np.linalg.matrix_rank(X - X.mean(axis=0))) - 1, 200)
        # Of two images of a class "auto" finds nothing to shrink, and the covariance stays singular.
        shrunk = {"solver": "eigen", "shrinkage": "auto"} if row["per_class"] > 2 else {}
        made = {
            "SUPLAP": lambda: SupervisedLaplacianEigenmaps(most),
            "LDA": lambda: LinearDiscriminantAnalysis(n_components=most, **shrunk),
            "LFDA": lambda: LFDA(wide),
            "LDE": lambda: LDE(wide),
        }[method]().fit(X, y)
        Y, Z = embedded(made, X), made.transform(new)
        dimensions = ladder(Y.shape[1], most)
        errors = nearest_errors(Y, y, Z, truth, dimensions)
    return {"error": {"x": dimensions, "y": errors, "label": "dimension"}, "smallest": min(errors)}


DIMENSIONS = Family(
    "nsse-dimensions",
    dimension_cell,
    {name: name for name in ("NSSE", "SUPLAP", "LDA", "LFDA", "LDE")},
    {name: SIZES[name] for name in (f"{YALE}, 10 per class", f"{COIL}, 10 per class", f"{ORL}, 2 per class")},
    QUICK,
)


def plane_cell(sets: Sets, row: Mapping[str, Any], make: Any, seed: int, paper: bool) -> Cell:
    """Two dimensions: training and test rows, and the 1-NN error of these."""
    X, y, new, truth = split_rows(sets, row, seed)
    model = {"NSSE": NSSE(2), "SUPLAP": SupervisedLaplacianEigenmaps(2)}[make].fit(X, y)
    mapped = model.transform(new)
    return {
        "training": {"points": np.round(model.embedding_, 4), "classes": y},
        "test": {"points": np.round(mapped[:600], 4), "classes": truth[:600]},
        "error": error(nearest(model.embedding_, y, mapped), truth),
    }


PLANE = Family(
    "nsse-plane",
    plane_cell,
    {"NSSE": "NSSE", "SUPLAP": "SUPLAP"},
    {f"{COIL}, 10 classes": {"name": "coil20", "size": 25, "unit": True, "classes": (0, 9), "per_class": 7}},
    {"digits": {"name": "digits", "per_class": 10, "new": 500}},
)


def _table(number: int, label: str) -> Experiment:
    rows = tuple(name for name in SIZES if name.startswith(label))
    ranges = {
        "NSSE": (5, 20),
        "SUPLAP": (4, 20),
        "SVM": (5, 20),
        "NN": (5, 20),
        "LFDA": (4, 25),
        "LDA": (5, 25),
        "LDE": (4, 25),
        "NYS": (5, 45),
        "SPE": (5, 45),
        "IsoKRR": (4, 20),
        "MReg": (4, 20),
    }
    return Experiment(
        f"nsse-table{number}",
        f"NSSE, Table {number}: misclassification on {label}",
        ERRORS,
        {"error": "misclassified test images, %"},
        columns=tuple(METHODS),
        rows=rows,
        printed={"error": {row: PRINTED[row] for row in rows}},
        ranges={"error": ranges},
    )


EXPERIMENTS = (
    _table(1, YALE),
    _table(2, COIL),
    _table(3, ORL),
    Experiment(
        "nsse-table7",
        "NSSE, Table 7: running times",
        TIMES,
        {"seconds": "seconds of one fit"},
        splits=1,
        printed={"seconds": {f"{COIL}, {n} images": {"NSSE": s} for n, s in ((140, 0.81), (300, 1.45), (600, 5.45))}},
        ranges={"seconds": {"NSSE": (0, 20)}},
        note="FEI and ROBOTICS-CSIE are not at hand.",
    ),
    Experiment(
        "nsse-fig3",
        "NSSE, Figure 3: objective, error and width over the iterations",
        ITERATIONS,
        {
            "objective": "objective (10)",
            "error": "test error, %",
            "sigma": "width",
            "last error": "test error after the last iteration, %",
        },
        ranges={"last error": {"high start, 6 medians": (4, 30), "low start, 0.3 medians": (4, 30)}},
        note="The paper takes FEI, which is not at hand.",
    ),
    Experiment(
        "nsse-fig4",
        "NSSE, Figure 4: error over the dimension, NSSE, SUPLAP and LDA",
        DIMENSIONS,
        {"error": "test error, %", "smallest": "smallest error over the dimension, %"},
        columns=("NSSE", "SUPLAP", "LDA"),
        ranges={"smallest": {"NSSE": (4, 20), "SUPLAP": (4, 20), "LDA": (4, 25)}},
    ),
    Experiment(
        "nsse-fig5",
        "NSSE, Figure 5: error over the dimension, LFDA and LDE",
        DIMENSIONS,
        {"error": "test error, %", "smallest": "smallest error over the dimension, %"},
        columns=("LFDA", "LDE"),
        ranges={"smallest": {"LFDA": (4, 25), "LDE": (4, 25)}},
    ),
    Experiment(
        "nsse-fig6",
        "NSSE, Figure 6: two dimensions by NSSE and SUPLAP",
        PLANE,
        {"training": "training", "test": "test", "error": "1-NN error of test rows in two dimensions, %"},
        ranges={"error": {"NSSE": (10, 70), "SUPLAP": (10, 85)}},
        note="The paper takes ROBOTICS-CSIE, which is not at hand.",
    ),
)
