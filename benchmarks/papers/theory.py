"""THEORY (Vural and Guillemot 2018): Figures 2 to 10, 12 and 13; Figure 11 needs ETH-80, which is not at hand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from benchmarks.papers.choice import Method, error, ladder, nearest, nearest_errors, product, validated
from benchmarks.papers.data import Sets
from benchmarks.papers.model import Cell, Experiment, Family
from benchmarks.papers.supervised import split_rows, suplap
from manifast import FisherEmbedding, LabelEncoding, SupervisedLaplacianEigenmaps
from manifast.datasets import make_two_surfaces
from manifast.extensions import RBF, LatentVariable
from manifast.graphs import class_graphs
from manifast.theory import condition_parameter, separation_margin, two_class_margin_bound

WITHIN, BETWEEN = 25, 5  # neighbours of the two graphs, K and K/5


def surface_cell(sets: Sets, row: Mapping[str, Any], column: str, seed: int, paper: bool) -> Cell:
    X, y = make_two_surfaces(column, row["n"], random_state=seed)

    def embed(d: int, mu: float) -> Any:
        graphs = {"n_neighbors_within": WITHIN, "n_neighbors_between": BETWEEN}
        return SupervisedLaplacianEigenmaps(d, mu=mu, normalized=True, **graphs).fit(X, y).embedding_

    within, between = class_graphs(X, y, n_neighbors_within=WITHIN, n_neighbors_between=BETWEEN)
    scale = np.sqrt(within.sum(axis=1))[:, None]
    measured = []
    weights = list(np.geomspace(1e-3, 1.0, 10))
    for mu in weights:
        z = (embed(1, mu) / scale)[:, 0]
        one, two = sorted((z[y == 0], z[y == 1]), key=lambda part: float(part.mean()))
        measured.append(float(two.min() - one.max()))
    largest = two_class_margin_bound(within, between, y, 1e-12).slack
    small = list(np.geomspace(1e-4, 0.99, 10) * largest)
    bounds = [two_class_margin_bound(within, between, y, mu).margin for mu in small]
    points = {f"{d}-D": {"points": np.round(embed(d, 0.57), 5), "classes": y} for d in (1, 2, 3)}
    return points | {
        "data": {"points": np.round(X, 3), "classes": y},
        "separation": {"x": weights, "y": measured, "label": "μ"},
        "bound": {"x": [float(f"{mu / largest:.3g}") for mu in small], "y": bounds, "label": "μ / largest allowed μ"},
        "at small mu": measured[0],
        "largest mu": largest,
    }


CLASSIFIERS = {
    "SUPLAP": Method(suplap, product(scale=(0.5, 1.0, 1.5, 2.0, 3.0)), nested=True),
    "SVM": Method(lambda X, y, C: LinearSVC(C=C, random_state=0), product(C=(1.0, 10.0, 100.0))),
    "K-NN": Method(lambda X, y, k: KNeighborsClassifier(k), product(k=(1, 3))),
    "kernel regression": Method(lambda X, y, k: LabelEncoding(extension=LatentVariable(k)), product(k=(3, 10))),
}


def classifier_cell(sets: Sets, row: Mapping[str, Any], method: Method, seed: int, paper: bool) -> Cell:
    return validated(method, *split_rows(sets, row, seed))


def parameter_cell(sets: Sets, row: Mapping[str, Any], column: float, seed: int, paper: bool) -> Cell:
    """Error over d, over μ (as separation) and over the width, each with the others fixed."""
    X, y, new, truth = split_rows(sets, row, seed)
    most = len(np.unique(y)) - 1

    @cache
    def fitted(mu: float, scale: float) -> tuple[Any, Any, float]:
        model = SupervisedLaplacianEigenmaps(
            most, mu=mu, n_neighbors_within=5, n_neighbors_between=5, normalized=True, extension=RBF(scale=scale)
        ).fit(X, y)
        mapped = model.transform(new)
        return model.embedding_, mapped, error(nearest(model.embedding_, y, mapped), truth)

    Y, mapped, _ = fitted(0.01, column)
    dimensions = ladder(most, most)
    errors = nearest_errors(Y, y, mapped, truth, dimensions)
    weights = [1e-4, 1e-3, 1e-2, 0.1, 1.0]
    margins = [separation_margin(fitted(mu, column)[0], y, kind="distance") for mu in weights]
    found = {
        "by dimension": {"x": dimensions, "y": errors, "label": "dimension"},
        "by mu": {"x": weights, "y": [fitted(mu, column)[2] for mu in weights], "label": "μ"},
        "separation by mu": {"x": weights, "y": margins, "label": "μ"},
        "error": errors[-1],
    }
    if column == 1.0:  # the widths do not depend on the column: one shows them
        widths = [0.3, 0.5, 1.0, 1.5, 2.0, 3.0]
        found["by width"] = {"x": widths, "y": [fitted(0.01, scale)[2] for scale in widths], "label": "σ / median"}
    return found


def condition_cell(
    sets: Sets, row: Mapping[str, Any], column: tuple[str, float, float], seed: int, paper: bool
) -> Cell:
    """Error and log10 of κ of an embedding with d = number of classes; widths in medians."""
    X, y, new, truth = split_rows(sets, row, seed)
    kind, scale, ridge = column
    extension, graphs = RBF(scale=scale, ridge=ridge), {"n_neighbors_within": 5, "n_neighbors_between": 5}
    model = {
        "suplap": lambda: SupervisedLaplacianEigenmaps(mu=0.01, normalized=True, extension=extension, **graphs),
        "fisher": lambda: FisherEmbedding(regularization="pinv", normalized=True, extension=extension, **graphs),
        "labels": lambda: LabelEncoding(extension=extension),
    }[kind]().fit(X, y)
    kappa = condition_parameter(model.embedding_, y, model.extension_.coef_, model.extension_.sigma_)
    found = error(nearest(model.embedding_, y, model.transform(new)), truth)
    return {"error": found, "log kappa": float(np.log10(min(kappa, 1e300)))}


def _sizes(name: str, label: str, counts: tuple[int, ...], **more: Any) -> dict[str, dict[str, Any]]:
    return {f"{label}, {n} per class": {"name": name, "size": 20, "unit": True, "per_class": n, **more} for n in counts}


QUICK = {"digits, 10 per class": {"name": "digits", "unit": True, "per_class": 10, "new": 500}}
COIL, YALE = _sizes("coil20", "COIL-20", (5, 10, 20)), _sizes("yaleb", "Ext. Yale", (10, 20))
REDUCED = _sizes("yaleb", "Ext. Yale, 10 people", (6, 10, 20), classes=(0, 9))
MNIST = _sizes("mnist10k", "MNIST", (20, 50), new=3000)
SURFACES = Family(
    "theory-surfaces",
    surface_cell,
    {name: name for name in ("quadratic", "swiss_roll", "sphere")},
    {"200 per class": {"n": 200}},
    {"200 per class": {"n": 200}},
)
COMPARED = Family("theory-classifiers", classifier_cell, CLASSIFIERS, COIL | YALE | REDUCED | MNIST, QUICK)
PARAMETERS = Family(
    "theory-parameters",
    parameter_cell,
    {f"σ = {scale:g} medians": scale for scale in (0.5, 1.0, 2.0)},
    COIL | YALE,
    QUICK,
)
EMBEDDINGS = {
    "SUPLAP": ("suplap", 1.0, 0.0),
    "SUPLAP, regularised": ("suplap", 1.0, 1e-2),
    "SUPLAP, high σ": ("suplap", 3.0, 0.0),
    "label encoding": ("labels", 1.0, 0.0),
    "label encoding, high σ": ("labels", 3.0, 0.0),
    "Fisher": ("fisher", 1.0, 0.0),
}
CONDITIONS = Family("theory-conditions", condition_cell, EMBEDDINGS, COIL | YALE | REDUCED, QUICK)


def _conditions(number: int, label: str, rows: Mapping[str, Any]) -> Experiment:
    return Experiment(
        f"theory-fig{number}",
        f"THEORY, Figure {number}: error and condition parameter on {label}",
        CONDITIONS,
        {"error": "misclassified test images, %", "log kappa": "log10 of the condition parameter"},
        rows=tuple(rows),
        ranges={"error": {"SUPLAP": (4, 20)}, "log kappa": {"label encoding": (0, 8)}},
    )


def _parameters(number: int, title: str, *measures: str) -> Experiment:
    names = {
        "by dimension": "test error, %",
        "by mu": "test error, %",
        "separation by mu": "separation",
        "by width": "test error, %",
    }
    shows = {name: names[name] for name in measures} | {"error": "test error with all dimensions, %"}
    ranges = {"error": {"σ = 1 medians": (4, 25)}}
    logarithmic = "by mu" in measures
    return Experiment(
        f"theory-fig{number}",
        f"THEORY, Figure {number}: {title}",
        PARAMETERS,
        shows,
        columns=("σ = 1 medians",) if "by width" in measures else (),
        ranges=ranges,
        logarithmic=logarithmic,
    )


EXPERIMENTS = (
    Experiment("theory-fig2", "THEORY, Figure 2: two classes on surfaces", SURFACES, {"data": "data"}, splits=1),
    Experiment(
        "theory-fig3",
        "THEORY, Figure 3: embeddings of quadratic surfaces",
        SURFACES,
        {"1-D": "1-D", "2-D": "2-D", "3-D": "3-D"},
        columns=("quadratic",),
        splits=1,
    ),
    Experiment(
        "theory-fig4",
        "THEORY, Figure 4: separation over μ, and the bound of Theorem 14",
        SURFACES,
        {
            "separation": "measured separation",
            "bound": "bound (31)",
            "at small mu": "separation at μ = 0.001",
            "largest mu": "largest μ that Theorem 14 allows",
        },
        logarithmic=True,
        largest=("separation", "bound", "at small mu", "largest mu"),
        ranges={"at small mu": {"quadratic": (1e-4, 1.0), "sphere": (1e-4, 1.0)}},
    ),
    Experiment(
        "theory-fig5",
        "THEORY, Figure 5: supervised eigenmaps beside classifiers",
        COMPARED,
        {"error": "misclassified test images, %"},
        ranges={"error": {"SUPLAP": (4, 20), "SVM": (4, 20), "K-NN": (4, 20)}},
        note="ETH-80 and the features of AlexNet are not at hand.",
    ),
    _parameters(6, "error over the number of training rows (rows of the table)", "by dimension"),
    _parameters(7, "error over the dimension", "by dimension"),
    _parameters(8, "error and separation over μ", "by mu", "separation by mu"),
    _parameters(9, "error over the width", "by width"),
    _conditions(10, "COIL-20", COIL),
    _conditions(12, "Ext. Yale", YALE),
    _conditions(13, "Ext. Yale, 10 people", REDUCED),
)
