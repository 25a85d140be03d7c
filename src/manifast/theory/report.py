"""`generalization_report`: what the theorems say about a fitted embedding, on one page."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from manifast._labels import Labels
from manifast._lipschitz import LipschitzConstants
from manifast._validation import Array, as_matrix
from manifast.kernels import knn
from manifast.metrics import misclassification_rate
from manifast.theory._rows import labelled_rows
from manifast.theory.balls import within_diameters
from manifast.theory.classifier import linear_classifier
from manifast.theory.fitted_maps import GaussianMap, fitted_map, left_out_error, map_name, measured_rows
from manifast.theory.gaussian_maps import coefficient_bound, condition_parameter
from manifast.theory.margins import separation_margin
from manifast.theory.verdicts import CoveringVerdict, Verdict, conclude, judge, judge_covering

__all__ = ["GeneralizationReport", "generalization_report"]


@dataclass(frozen=True)
class GeneralizationReport:
    """What `generalization_report` found; it prints as one page.

    None stands for what the map does not have. `verdicts` are Theorems 5, 6, 8 and 9, `covering` is Theorem 2.
    `lipschitz` of a linear map holds its spectral norm twice.
    """

    estimator: str
    n_samples: int
    n_components: int
    n_classes: int
    map: str
    interpolation_error: float
    linear_margin: float
    distance_margin: float
    spacing: float
    diameter: float
    sigma: float | None
    coefficient_bound: float | None
    lipschitz: LipschitzConstants | None
    condition_parameter: float | None
    loo_error: float | None
    test_error: float | None
    linear_test_error: float | None
    verdicts: tuple[Verdict, ...]
    covering: CoveringVerdict | None
    conclusion: str

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self._lines())
        lines = [f"{label:<{width}}  {text}" for label, text in self._lines()]
        return "\n".join([self._title(), "", *lines, "", self.conclusion])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td style='text-align:left'>{escape(label)}</td><td style='text-align:left'>{escape(text)}</td></tr>"
            for label, text in self._lines()
        )
        return f"<div><b>{escape(self._title())}</b><table>{cells}</table><p>{escape(self.conclusion)}</p></div>"

    def _title(self) -> str:
        size = f"{self.n_samples} rows, {self.n_classes} classes, d = {self.n_components}"
        return f"Generalization of {self.estimator}: {size}"

    def _lines(self) -> list[tuple[str, str]]:
        lines = [
            ("linear margin", f"{self.linear_margin:.4g}" if self.linear_margin else "0: not linearly separable"),
            ("smallest distance between classes", f"{self.distance_margin:.4g}"),
            ("nearest row of the own class", f"at most {self.spacing:.4g} away in the data"),
            ("rows of one class within twice that", f"up to {self.diameter:.4g} apart in the embedding"),
            ("map", self.map),
            ("map at the training rows", f"off the embedding by {self.interpolation_error:.1e} of its size"),
        ]
        if self.coefficient_bound is not None:
            lines.append(("coefficient bound C", f"{self.coefficient_bound:.4g}"))
        if self.lipschitz is not None:
            looser = f"Proposition 1: {self.lipschitz.proposition:.4g}"
            source = "the spectral norm of its matrix" if self.sigma is None else looser
            lines.append(("Lipschitz constant", f"{self.lipschitz.tight:.4g} ({source})"))
        if self.condition_parameter is not None:
            lines.append(("condition parameter", f"{self.condition_parameter:.4g}"))
        if self.loo_error is not None:
            known = f"{self.loo_error:.2%}; optimistic where labels made the embedding"
            lines.append(("1-NN error of rows left out of the map", known))
        if self.test_error is not None:
            lines.append(("1-NN error on the test rows", f"{self.test_error:.2%}"))
        if self.linear_test_error is not None:
            lines.append(("error of the linear classifier (4) there", f"{self.linear_test_error:.2%}"))
        verdicts = [*([self.covering] if self.covering else []), *self.verdicts]
        return lines + [(verdict.theorem, str(verdict)) for verdict in verdicts]


def generalization_report(
    estimator: Any, X: Any, y: Any, X_test: Any = None, y_test: Any = None
) -> GeneralizationReport:
    """Which theorems apply to a fitted embedding, and by how much the conditions of the others are missed.

    Parameters
    ----------
    estimator : fitted embedding
        All theorems apply to Gaussian maps: extension "rbf", NSSE, and kernel maps with a Gaussian kernel, with or
        without an intercept. Theorems 5 and 6 apply to linear maps: extension "linear", and embeddings with
        `components_` or `coef_`, such as LPP and SDA. The Lipschitz constant of other maps is not known; the report
        then describes the embedding only.
    X : array of shape (n, p)
        The rows the estimator was fitted to.
    y : array of n labels
        Their classes, also where the embedding was fitted without labels; -1 is a class like any other.
    X_test, y_test : array of shape (m, p) and m labels, optional
        New rows and their classes: they add the errors of the nearest neighbour in the embedding and of the linear
        classifier (4), see `linear_classifier`, where the classes can be separated.

    Returns
    -------
    GeneralizationReport
        It prints as one page, and notebooks show it as a table.

    Notes
    -----
    The theorems are about maps with f(x_i) = y_i. Where the map smooths instead, as with a ridge, they are applied to
    f(x_i) in place of y_i, because the map does interpolate these. The free parameters are searched: delta from the
    spacing of the rows upwards, Q up to the size of the smallest class, and the largest epsilon that the condition
    allows. η and covering numbers are estimated, see `ball_probability` and `covering_number`; so every guarantee is an
    estimate as well. With metric="within" all
    distances between rows are those of that metric.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast import OutOfSample
    >>> from manifast.extensions import RBF
    >>> from manifast.theory import generalization_report
    >>> from sklearn.decomposition import PCA
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 100)
    >>> X = 10 * y[:, None] + 0.1 * rng.random((200, 2))
    >>> model = OutOfSample(PCA(n_components=1), extension=RBF(sigma=5.0, ridge=1.0)).fit(X)
    >>> report = generalization_report(model, X, y)
    >>> report.verdicts[0].bound.condition_holds
    True
    >>> print(report)  # doctest: +ELLIPSIS
    Generalization of OutOfSample: 200 rows, 2 classes, d = 1
    ...
    """
    rows, labels = labelled_rows("generalization_report", "X", X, y)
    if not hasattr(estimator, "embedding_") or not hasattr(estimator, "transform"):
        raise ValueError(f"estimator must be a fitted embedding. Got {type(estimator).__name__} without embedding_.")
    embedding = as_matrix(estimator.embedding_, "estimator.embedding_")
    if len(rows) != len(embedding):
        raise ValueError(f"X must hold the rows the estimator was fitted to, {len(embedding)}. Got {len(rows)} rows.")
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test must be given together. Got one of them.")
    image = as_matrix(estimator.transform(X), "estimator.transform(X)")
    missed = float(np.abs(image - embedding).max()) / (float(np.abs(embedding).max()) or 1.0)
    Y = embedding if missed < (1e-3 if embedding.dtype == np.float32 else 1e-6) else image
    rows = measured_rows(estimator, rows)
    spacing = max(float(knn(rows[at], 1)[0].max()) if len(at) > 1 else np.inf for at in labels.members)
    linear, distance = separation_margin(Y, y), separation_margin(Y, y, kind="distance")
    mapping = fitted_map(estimator)
    sums = mapping if isinstance(mapping, GaussianMap) else None
    verdicts: tuple[Verdict, ...] = ()
    covering: CoveringVerdict | None = None
    if mapping and mapping.lipschitz.tight > 0 and np.isfinite(spacing):
        verdicts = judge(rows, Y, labels, spacing, distance, mapping)
        covering = judge_covering(rows, labels, linear, mapping.lipschitz.tight)
    return GeneralizationReport(
        estimator=type(estimator).__name__,
        n_samples=len(rows),
        n_components=Y.shape[1],
        n_classes=labels.count,
        map=str(mapping) if mapping else f"{map_name(estimator)}: Lipschitz constant not known",
        interpolation_error=missed,
        linear_margin=linear,
        distance_margin=distance,
        spacing=spacing,
        diameter=float(within_diameters(rows, Y, labels, [2 * spacing])[0]),
        sigma=sums.sigma if sums else None,
        coefficient_bound=coefficient_bound(sums.coef) if sums else None,
        lipschitz=mapping.lipschitz if mapping else None,
        condition_parameter=condition_parameter(Y, y, sums.coef, sums.sigma) if sums else None,
        loo_error=left_out_error(estimator, rows, embedding, labels),
        test_error=None if X_test is None else _test_error(estimator, Y, labels, X_test, y_test),
        linear_test_error=(
            None
            if X_test is None or linear == 0
            else linear_classifier(Y, y).error(estimator.transform(X_test), y_test)
        ),
        verdicts=verdicts,
        covering=covering,
        conclusion=conclude((*verdicts, *([covering] if covering else [])), mapping is not None, spacing),
    )


def _test_error(estimator: Any, Y: Array, labels: Labels, X_test: Any, y_test: Any) -> float:
    """Share of the new rows whose nearest training row in the embedding is of another class."""
    new = as_matrix(estimator.transform(X_test), "estimator.transform(X_test)", dtype=Y.dtype)
    truth = np.asarray(y_test)
    if truth.shape != (len(new),):
        raise ValueError(f"y_test must hold one label per row of X_test, {len(new)}. Got shape {truth.shape} instead.")
    found = knn(Y, 1, queries=new)[1][:, 0]
    return misclassification_rate(truth, labels.classes[labels.codes[found]])
