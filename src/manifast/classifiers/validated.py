"""LapRLS and FME with their weights chosen by labels that are hidden in turn."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la

from manifast._choices import WEIGHTS, Hidden, Tried, WeightSearch, defaults_of
from manifast._gram import Kernel
from manifast._labels import Labels
from manifast._linalg import dense
from manifast._linalg.condensed import by_product, mean_degree, regressions_on, shifted
from manifast._linalg.smooth_gram import SmoothGram, root_of
from manifast._validation import Array, as_positive
from manifast.classifiers.base import in_bounds
from manifast.classifiers.regression import FME, LapRLS, laplacian_of
from manifast.smoothers.ridge import KernelRidgeSmoother, LinearRidgeSmoother

__all__ = ["FMECV", "LapRLSCV"]


class _Searched(WeightSearch):
    """Of every graph all weights are tried."""

    def _search(
        self,
        X: Array,
        grids: dict[str, list[float]],
        hidden: list[Hidden],
        tried: Callable[[Any, Kernel | None], Tried],
    ) -> tuple[tuple[Any, Kernel | None], dict[str, float]]:
        """Graph and kernel, and the weights, that find the most hidden labels."""
        graphs = self._graphs()
        only = self._with_graph(X, graphs[0]) if len(graphs) == 1 else None

        def of_graphs() -> Tried:
            for graph in graphs:
                for pair, found in tried(*(only or self._with_graph(X, graph))):
                    yield (*pair, *graph.values()), found

        chosen = self._choose(grids, hidden, of_graphs)
        best = {name: chosen[name] for name in graphs[0]}
        return only or self._with_graph(X, best), {name: chosen[name] for name in grids}

    def _with_graph(self, X: Array, graph: dict[str, Any]) -> tuple[Any, Kernel | None]:
        other = copy(self)
        vars(other).update(graph)
        found: tuple[Any, Kernel | None] = other._graph_and_kernel(X)  # type: ignore[attr-defined]
        self.__dict__.pop("graph_recall_", None)  # of a fit with other parameters
        if "graph_recall_" in vars(other):
            vars(self)["graph_recall_"] = vars(other)["graph_recall_"]
        return found


class LapRLSCV(_Searched, LapRLS):
    """LapRLS with its two weights chosen by validation on the labelled rows.

    The map f minimises Σ_labelled |f(x_i) - y_i|² + γ_A |f|² + γ_I tr(f'Lf) as in `LapRLS`.

    In turn a part of the labels is hidden, and predicted from the others. One eigendecomposition serves all weights
    and all parts: what is left for each are systems as large as the labelled rows are many.

    A row is unlabelled where y is -1, NaN, None or pandas' NA.

    Parameters
    ----------
    gamma_A, gamma_I : float or sequence of floats, default (1e-6, 1e-4, ..., 1e6)
        What the weights are chosen from, each more than 0. A warning says where the best one is at the edge.
    cv : int, default 5
        Parts that the labels are split into, at most as many as the smallest class has. Where no class has two labels
        the defaults of `LapRLS` are taken, with a warning.
    n_repeats : int, default 5
        Times that they are split, each time anew: with few labels a single split says little. Of weights that predict
        equally many labels the pair in the middle of them is taken.
    random_state : int, default 0
        Of the splits.
    n_neighbors, beta
        As in `LapRLS`, or sequences of such values: then the graph is chosen, too.
    kernel, sigma, degree, coef0, graph, neighbors, verbose
        As in `LapRLS`.

    Attributes
    ----------
    best_params_ : dict
        gamma_A and gamma_I, and what was chosen of the graph: what to give to a `LapRLS`.
    best_score_ : float
        Share of hidden labels that were predicted.
    cv_results_ : dict of arrays
        One entry per pair of weights: gamma_A, gamma_I and score.
    classes_, coef_, dual_coef_, intercept_, scores_, transduction_
        Of `LapRLS` with the best weights and all labels.

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(np(k + p)) and O(p³) once, then
    O(l³) for every pair of weights and part of the l labelled rows; with a kernel O(n³) and n × n matrices. A new row
    takes O(pM) for M classes, with a kernel O(n(p + M)).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import LapRLSCV
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> model = LapRLSCV(kernel="rbf").fit(X[:1000], some)
    >>> sorted(model.best_params_)
    ['gamma_A', 'gamma_I']
    >>> bool(np.mean(model.predict(X[1000:]) == y[1000:]) > 0.9)
    True
    """

    _defaults: ClassVar[dict[str, float]] = defaults_of(LapRLS, "gamma_A", "gamma_I")

    def __init__(
        self,
        n_neighbors: Any = None,
        beta: Any = None,
        gamma_A: Any = WEIGHTS,
        gamma_I: Any = WEIGHTS,
        *,
        kernel: str | None = None,
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        graph: Any = "heat",
        neighbors: Any = None,
        cv: int = 5,
        n_repeats: int = 5,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_neighbors,
            beta,
            gamma_A,
            gamma_I,
            kernel=kernel,
            sigma=sigma,
            degree=degree,
            coef0=coef0,
            graph=graph,
            neighbors=neighbors,
            verbose=verbose,
        )
        self.cv = cv
        self.n_repeats = n_repeats
        self.random_state = random_state

    def _propagate(self, X: Array, labels: Labels) -> Array:
        grids, hidden = self._plan(labels)

        def tried(W: Any, kernel: Kernel | None) -> Tried:
            F = X - X.mean(axis=0, dtype=np.float64) if kernel is None else root_of(kernel.matrix(X))[0]
            gram = SmoothGram(F, laplacian_of(W), labels.labelled)
            codes = labels.codes[labels.labelled]
            for gamma_I in grids["gamma_I"]:
                for gamma_A in grids["gamma_A"]:
                    ridge = gamma_A if kernel is not None else in_bounds(self._in_units(gamma_A, 2))
                    G = gram(gamma_I, ridge)
                    yield (gamma_A, gamma_I), sum(predicted(G, codes, *part, bias=kernel is None) for part in hidden)

        (W, kernel), weights = self._search(X, grids, hidden, tried)
        return self._fit_map(X, labels, W, kernel, **weights)


def predicted(G: Array, codes: Array, known: Array, hidden: Array, bias: bool) -> int:
    """Hidden labels that least squares on the known ones predicts, by inner products G and a ridge of 1."""
    target = (codes[known][:, None] == np.arange(codes.max() + 1)).astype(np.float64)
    inside, across = G[np.ix_(known, known)], G[np.ix_(hidden, known)]
    share = target.mean(axis=0) if bias else np.zeros(target.shape[1])
    if bias:  # which is not penalised: it centres the known rows and their labels
        middle = inside.mean(axis=0)
        across = across - middle
        across -= across.mean(axis=1, keepdims=True)
        inside = inside - middle
        inside -= inside.mean(axis=1, keepdims=True)
    scores = across @ _with_ridge_of_1(inside, target - share) + share
    return int(np.sum(scores.argmax(axis=1) == codes[hidden]))


def _with_ridge_of_1(G: Array, B: Array) -> Array:
    """(G + I)^-1 B; by the eigenvectors of G where a ridge of 1 is lost in its rounding."""
    system = G + np.eye(len(G))
    if dense.factor(system):
        return dense.solve(system, B)
    values, vectors = la.eigh(G, check_finite=False)
    return np.asarray(vectors @ ((vectors.T @ B) / (np.maximum(values, 0.0) + 1.0)[:, None]))


class FMECV(_Searched, FME):
    """FME with its two weights chosen by validation on the labelled rows.

    F = (U + L + R)^-1 UY as in `FME`.

    In turn a part of the labels is hidden, and predicted by the map that is learnt from the others. For one regression,
    μ and γ, all parts are problems of the labelled rows alone; linear maps share the factorisation also between
    regressions of the same μγ.

    A row is unlabelled where y is -1, NaN, None or pandas' NA.

    Parameters
    ----------
    mu, gamma : float or sequence of floats, default (1e-6, 1e-4, ..., 1e6)
        What the weights are chosen from, each more than 0. A warning says where the best one is at the edge.
    label_weight : float, default 1e9
    cv, n_repeats, random_state
        As in `LapRLSCV`.
    n_neighbors, beta
        As in `FME`, or sequences of such values: then the graph is chosen, too.
    kernel, sigma, degree, coef0, graph, neighbors, verbose
        As in `FME`.

    Attributes
    ----------
    best_params_ : dict
        mu and gamma, and what was chosen of the graph: what to give to an `FME`.
    best_score_ : float
        Share of hidden labels that were predicted.
    cv_results_ : dict of arrays
        One entry per pair of weights: mu, gamma and score.
    classes_, coef_, dual_coef_, intercept_, scores_, transduction_
        Of `FME` with the best weights and all labels.

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, and one system of all rows with a
    right-hand side per labelled row for every regression, as in `FME`; with a kernel O(n³) and n × n matrices. A new
    row takes O(pM) for M classes, with a kernel O(n(p + M)).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import FMECV
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> model = FMECV().fit(X[:1000], some)
    >>> sorted(model.best_params_)
    ['gamma', 'mu']
    >>> bool(np.mean(model.predict(X[1000:]) == y[1000:]) > 0.85)
    True
    """

    _defaults: ClassVar[dict[str, float]] = defaults_of(FME, "mu", "gamma")

    def __init__(
        self,
        n_neighbors: Any = None,
        beta: Any = None,
        mu: Any = WEIGHTS,
        gamma: Any = WEIGHTS,
        label_weight: float = 1e9,
        *,
        kernel: str | None = None,
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        graph: Any = "heat",
        neighbors: Any = None,
        cv: int = 5,
        n_repeats: int = 5,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_neighbors,
            beta,
            mu,
            gamma,
            label_weight,
            kernel=kernel,
            sigma=sigma,
            degree=degree,
            coef0=coef0,
            graph=graph,
            neighbors=neighbors,
            verbose=verbose,
        )
        self.cv = cv
        self.n_repeats = n_repeats
        self.random_state = random_state

    def _propagate(self, X: Array, labels: Labels) -> Array:
        grids, hidden = self._plan(labels)
        weight = as_positive(self.label_weight, "label_weight")

        def tried(W: Any, kernel: Kernel | None) -> Tried:
            L, rows = laplacian_of(W), labels.labelled
            shift, codes = mean_degree(L), labels.codes[rows]
            S = shifted(L, rows, np.ones(len(rows)), shift)
            for heaviness, pairs, smoothers in self._groups(X, kernel, grids):
                parts = regressions_on(S, rows, heaviness, smoothers)
                for pair, (block, image) in zip(pairs, parts, strict=True):
                    found = (propagated(block, image, shift, weight, codes, *part) for part in hidden)
                    yield pair, sum(found)

        (W, kernel), weights = self._search(X, grids, hidden, tried)
        return self._fit_map(X, labels, W, kernel, weight=weight, **weights)

    def _groups(self, X: Array, kernel: Kernel | None, grids: dict[str, list[float]]) -> Any:
        """The weight of a regression, pairs (μ, γ) that have it, and their smoothers, which share a factorisation."""
        if kernel is None:
            smoother = LinearRidgeSmoother(X.astype(np.float64), 1.0)
            for heaviness, pairs in by_product(grids["mu"], grids["gamma"]):
                ridges = [in_bounds(self._in_units(1.0 / gamma, 2)) for _, gamma in pairs]
                yield heaviness, pairs, [smoother.with_ridge(ridge) for ridge in ridges]
            return
        for gamma in grids["gamma"]:
            of_kernel = KernelRidgeSmoother(kernel.matrix(X), 1.0 / gamma, bias=False)
            for mu in grids["mu"]:
                yield mu * gamma, [(mu, gamma)], [of_kernel]


def propagated(
    block: Array, image: Array, shift: float, weight: float, codes: Array, known: Array, hidden: Array
) -> int:
    """Hidden labels that the map predicts, from the labelled block of the inverse that holds all labels by `shift`."""
    target = np.zeros((len(codes), int(codes.max()) + 1))
    target[known, codes[known]] = weight
    change = np.full(len(codes), -(1.0 - 1e-10) * shift)  # not all of it, in case nothing else holds a hidden row
    change[known] = weight - shift
    unit = np.maximum(np.abs(change), 1.0)[:, None]
    turned = la.solve((np.eye(len(block)) + change[:, None] * block) / unit, target / unit, check_finite=False)
    return int(np.sum((image[hidden] @ turned).argmax(axis=1) == codes[hidden]))
