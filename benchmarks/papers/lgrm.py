"""LGRM (Yang et al. 2010): Figures 1, 2 and 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LinearRegression

from benchmarks.papers.choice import embedded
from benchmarks.papers.data import Sets
from benchmarks.papers.model import Cell, Experiment, Family
from manifast import LGRM, LPP, LTSA, Isomap, LaplacianEigenmaps, LocallyLinearEmbedding
from manifast.datasets import make_swiss_roll
from manifast.metrics import embedding_error

SIGMA = 10.0  # width of the paper's kernels on rolls
COLUMNS: dict[str, Callable[..., Any]] = {
    "LGRM": lambda k, paper, sigma: (
        LGRM(n_neighbors=k, mu=1e-5, gamma=1e-4, gamma_local=1e-4, sigma=sigma) if paper else LGRM(n_neighbors=k)
    ),
    "LTSA": lambda k, paper, sigma: LTSA(n_neighbors=k, extension="reconstruction"),
    "LLE": lambda k, paper, sigma: LocallyLinearEmbedding(n_neighbors=k, extension="reconstruction"),
    "Isomap": lambda k, paper, sigma: Isomap(n_neighbors=k),
    "LE": lambda k, paper, sigma: LaplacianEigenmaps(n_neighbors=k, beta="mean" if paper else None),
    "KPCA": lambda k, paper, sigma: KernelPCA(2, kernel="rbf", gamma=1 / sigma**2),
    "KLPP": lambda k, paper, sigma: LPP(n_neighbors=k, kernel="rbf", sigma=sigma, alpha=1e-6),
}


def chart_cell(sets: Sets, row: Mapping[str, Any], column: str, seed: int, paper: bool) -> Cell:
    """R² of the chart from the embedding, of training and of new rows, by linear regression on the training rows."""
    X, chart = make_swiss_roll(row["n"] + row["new"], hole=row["hole"], random_state=seed)
    n = row["n"]
    model = COLUMNS[column](row["k"], paper, SIGMA).fit(X[:n])
    Y, Z = embedded(model, X[:n]), model.transform(X[n:])
    line = LinearRegression().fit(Y, chart[:n])
    color = np.digitize(chart[:n, 0], np.quantile(chart[:n, 0], np.linspace(0, 1, 9)[1:-1]))
    return {
        "training": line.score(Y, chart[:n]),
        "new": line.score(Z, chart[n:]),
        "embedding": {"points": np.round(Y[:500], 4), "classes": color[:500]},
    }


def error_cell(sets: Sets, row: Mapping[str, Any], column: str, seed: int, paper: bool) -> Cell:
    """Embedding error: how test rows move when they are new instead of trained on."""
    if row["data"] == "frey":
        X, sigma = sets.rows("frey")[0] * 255, 100.0
    elif row["data"] == "digits":
        X, sigma = sets.rows("digits")[0], 3.0
    else:
        X, sigma = make_swiss_roll(1000, random_state=seed)[0], SIGMA
    order = np.random.default_rng(seed).permutation(len(X))[: row["n"] + 200]
    X = X[order]
    n = len(X) - 200
    make = COLUMNS[column]
    batch = embedded(make(row["k"], paper, sigma).fit(X), X)
    model = make(row["k"], paper, sigma).fit(X[:n])
    return {"error": embedding_error(batch[:n], batch[n:], embedded(model, X[:n]), model.transform(X[n:]))}


NAMES = {name: name for name in COLUMNS}
CHARTS = Family(
    "lgrm-charts",
    chart_cell,
    NAMES,
    {
        "Swiss roll": {"n": 1000, "new": 1000, "k": 8, "hole": False},
        "Swiss roll with a hole": {"n": 1000, "new": 1000, "k": 8, "hole": True},
    },
    {"Swiss roll": {"n": 1000, "new": 200, "k": 8, "hole": False}},
    paper=True,
)
ERRORS = Family(
    "lgrm-errors",
    error_cell,
    {name: name for name in ("LGRM", "LTSA", "LLE", "Isomap", "LE")},
    {
        "Swiss roll, k = 8": {"data": "roll", "n": 800, "k": 8},
        "Swiss roll, k = 12": {"data": "roll", "n": 800, "k": 12},
        "Frey faces, k = 12": {"data": "frey", "n": 1565, "k": 12},
    },
    {"Swiss roll, k = 8": {"data": "roll", "n": 800, "k": 8}},
    paper=True,
)
SHOWS = {"training": "R² of the chart, training rows", "new": "R² of the chart, new rows", "embedding": "embedding"}
RANGES = {"new": {"LGRM": (0.95, 1.0), "LTSA": (0.95, 1.0), "Isomap": (0.9, 1.0)}}


def _figure(number: int, title: str, row: str) -> Experiment:
    return Experiment(
        f"lgrm-fig{number}",
        f"LGRM, Figure {number}: {title}",
        CHARTS,
        SHOWS,
        rows=(row,),
        ranges=RANGES,
        largest=("training", "new"),
    )


EXPERIMENTS = (
    _figure(1, "Swiss roll in two dimensions", "Swiss roll"),
    _figure(2, "Swiss roll with a hole", "Swiss roll with a hole"),
    Experiment(
        "lgrm-fig5",
        "LGRM, Figure 5: embedding error",
        ERRORS,
        {"error": "embedding error"},
        ranges={"error": {"LGRM": (0, 0.05), "Isomap": (0, 0.1)}},
    ),
)
