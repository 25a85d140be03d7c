"""Embeddings of rows of which only some have a label; -1 stands for none.

Graphs of all rows say what belongs together, labels what is to be kept apart. The elastic embedding and TCA add the
smoother that predicts new rows; the discriminant projections are linear maps to begin with.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from manifast import objectives
from manifast._gram import Kernel, kernel_features, settle
from manifast._labels import Labels
from manifast._validation import Array, as_count, as_number, as_positive, is_sparse
from manifast.embeddings._base import (
    SupervisedEmbedding,
    affinity_graph,
    check_components,
    warn_components,
)
from manifast.embeddings.linear import Projected, in_span, most_separating
from manifast.graphs import given_graph, mean_sq_distance, n_components_of
from manifast.kernels import _affine_product
from manifast.smoothers import KernelRidgeSmoother, LinearRidgeSmoother
from manifast.spectral import fix_signs, smallest_eigenvectors
from manifast.systems import PenalizedSystem, raised

__all__ = ["SDA", "SDE", "TCA", "ElasticEmbedding", "ElasticEmbeddingCV"]

GRAPHS = ("heat", "binary", "full", "l1")
GRID = (1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9)  # of every weight, SEE section 5
_COLUMNS = 128  # right-hand sides solved together
_SPREAD = 1e4  # of eigenvalues: beyond, the large ones have lost too many digits beside the small ones
_CHUNK = 1 << 20  # distances held at once


class _SemiSupervised(SupervisedEmbedding):
    """Base: labels where y is not -1, and the Laplacian of a graph of all rows."""

    _unlabelled = True
    _cuts_neighbors = True  # its default, on few rows

    def _heat_width(self) -> Any:
        """The parameter for the width of the heat weights, where there is one."""
        return "mean"

    def _in_squares(self, ridge: float) -> float:
        """A ridge in squared units of the data, in those that the rows were scaled to, as far as numbers reach."""
        return float(np.clip(self._in_units(ridge, 2), 1e-290, 1e290))

    def _laplacian(self, X: Array) -> Any:
        """The Laplacian of the graph that was asked for, sparse, or dense for a full graph."""
        graph = self.graph
        if isinstance(graph, str):
            if graph not in GRAPHS:
                raise ValueError(
                    f"graph must be one of {', '.join(map(repr, GRAPHS))} or a matrix. Got {graph!r} instead."
                )
            rows = kernel_features(X) if self._pairwise() else X
            W, _ = affinity_graph(self, rows, graph, self._heat_width())
        else:
            W = given_graph(graph, len(X))
            count = n_components_of(W)
            if count > 1:
                warn_components(count, "which a given graph leaves as they are", "")
        return objectives.laplacian_eigenmaps(W).A


class Condensed:
    """min tr Z'(A + λM̃)Z with Z'D̃Z = I (SEE eqs. 9 and 13), the unlabelled rows eliminated.

    M̃ and D̃ are zero but for their labelled block, M and diag(D). So all finite eigenvalues follow from the labelled
    rows alone: with P the labelled block of (A + τD̃)^-1 the Schur complement of A is P^-1 - τD. Small eigenvalues are
    lost in it beside large ones. They are taken from the inverse, on what is orthogonal to the eigenvectors of the
    large ones: 1/θ - τ of the largest θ of C(I + λC'MC)^-1C' for P = CC'. All of that in units in which D is I.

    In P in turn the large ones are lost beside the small ones, and with them the way from the labelled rows to the
    others. Where that is so, `with_far` adds the P of a τ as large as the largest eigenvalue: that is well conditioned.
    """

    def __init__(self, block: Array, M: Array, D: Array, shift: float) -> None:
        self._root, self._shift = np.sqrt(D), shift
        self._M = M / self._root / self._root[:, None]
        values, self._axes = la.eigh(0.5 * (block + block.T) * self._root * self._root[:, None], check_finite=False)
        self._values = np.maximum(values, np.finfo(float).eps * values[-1])
        self._C = self._axes * np.sqrt(self._values)
        self._far = self

    @cached_property
    def _schur(self) -> Array:
        return np.asarray((self._axes * (1.0 / self._values - self._shift)) @ self._axes.T)

    def with_far(self, far: Condensed) -> Condensed:
        """The same with another τ to take large eigenvalues and the unlabelled rows from."""
        other = copy(self)
        other._far = far
        return other

    def far_shift(self) -> float | None:
        """τ for a problem that holds the large eigenvalues, None where this one does."""
        spread = self._values[-1] / self._values[0]
        return float(1.0 / self._values[0]) if spread > _SPREAD else None

    def eigenvectors(self, lam: float, d: int) -> tuple[Array, Array, Array]:
        """The d smallest eigenvalues, Z of the labelled rows, and T (l, d) with Z = (A + τD̃)^-1 E T of all rows.

        E are the columns of the identity that belong to labelled rows; τ is that of `far` where there is one.
        """
        far, margins = self._far, lam * self._M
        values, vectors = la.eigh(far._schur + margins, check_finite=False)
        largest = 1.0 / far._values[0] + float(np.abs(margins).sum(axis=0).max())
        small = vectors[:, values < np.sqrt(largest / self._values[-1])]  # below, the inverse keeps more digits
        if k := small.shape[1]:
            inside = self._C.T @ margins @ self._C
            inside.flat[:: len(inside) + 1] += 1.0
            image = self._C.T @ small
            inverse = image.T @ la.solve(inside, image, assume_a="pos", check_finite=False)
            theta, turn = la.eigh(inverse, check_finite=False)
            values[:k], vectors[:, :k] = 1.0 / theta[::-1] - self._shift, small @ turn[:, ::-1]
        scaled = vectors[:, :d]
        mixing = self._root[:, None] * (far._axes @ ((far._axes.T @ scaled) / far._values[:, None]))
        return np.maximum(values[:d], 0.0), scaled / self._root[:, None], mixing


class _Elastic(_SemiSupervised):
    """What the elastic embedding and its search share: kernel, smoother, and the fit for given weights."""

    def _heat_width(self) -> Any:
        return self.beta

    def _kernel_of(self, X: Array, sigma: Any) -> Kernel | None:
        if self.kernel is None:
            return None
        return Kernel.of(self.kernel, X, sigma=self._in_units(sigma, 1), degree=self.degree, coef0=self.coef0)

    def _smoother(self, X: Array, kernel: Kernel | None, gamma: float) -> Any:
        """Ridge regression of weight 1/γ: linear with bias (SEE eq. 10), with a kernel without (eq. 14)."""
        if kernel is None:
            return LinearRidgeSmoother(X.astype(np.float64), self._ridge(gamma))
        return KernelRidgeSmoother(kernel.matrix(X), self._ridge(gamma), bias=False)

    def _ridge(self, gamma: float) -> float:
        """1/γ, which is in squared units of the rows but for kernels of their own scale."""
        if self.kernel in (None, "linear"):
            return self._in_squares(1.0 / gamma)
        return 1.0 / gamma

    def _solve(
        self, X: Array, labels: Labels, L: Any, kernel: Kernel | None, lam: float, mu: float, gamma: float, d: int
    ) -> None:
        """The embedding of all rows and its map."""
        rows = labels.labelled
        M, D = objectives.margins(labels.codes[rows], labels.count)
        smoother = self._smoother(X, kernel, gamma)
        penalty, shift = smoother.penalty(mu * gamma), _mean_degree(L)
        response = _responses(PenalizedSystem(_shifted(L, rows, D, shift), penalty, verbose=self.verbose), rows)
        condensed = Condensed(response[rows], M, D, shift)
        far = condensed.far_shift()
        if far is not None:
            response = _responses(PenalizedSystem(_shifted(L, rows, D, far), penalty, verbose=self.verbose), rows)
            condensed = condensed.with_far(Condensed(response[rows], M, D, far))
        self.eigenvalues_, inside, mixing = condensed.eigenvectors(lam, d)
        Z = _embedded(response, mixing, rows, inside)
        coef, intercept = smoother.fit(Z)
        self.embedding_ = Z.astype(X.dtype, copy=False)
        self._kernel = kernel
        self._X = None if kernel is None or kernel.name == "precomputed" else X
        self._offset = intercept
        for name in ("coef_", "intercept_", "dual_coef_"):  # of a fit with another kernel
            self.__dict__.pop(name, None)
        if kernel is None:
            self.coef_, self.intercept_ = np.ascontiguousarray(coef), intercept.astype(X.dtype)
        else:
            self.dual_coef_ = settle(coef, Z, X.dtype)

    def _map(self, X: Array) -> Array:
        if self._kernel is not None:
            mapped = self._kernel.apply(X, self._X, self.dual_coef_, self._offset)
        else:
            mapped = _affine_product(X.astype(np.float64), self.coef_, self._offset)
        return mapped.astype(X.dtype, copy=False)


def _mean_degree(L: Any) -> float:
    """A τ of the size of the graph's weights."""
    return float(L.diagonal().mean()) or 1.0


def _shifted(L: Any, rows: Array, D: Array, shift: float) -> Any:
    """L + τD̃, positive definite where every component has a label."""
    diagonal = np.zeros(L.shape[0])
    diagonal[rows] = shift * D
    return raised(L, diagonal)


def _responses(system: PenalizedSystem, rows: Array) -> Array:
    """Columns of the system's inverse (n, l) that belong to some rows."""
    response = np.empty((system.n, len(rows)))
    for begin in range(0, len(rows), _COLUMNS):
        response[:, begin : begin + _COLUMNS] = system.solve(_unit(system.n, rows[begin : begin + _COLUMNS]))
    return response


def _unit(n: int, rows: Array) -> Array:
    """Columns of the identity (n, n) that belong to some rows."""
    columns = np.zeros((n, len(rows)))
    columns[rows, np.arange(len(rows))] = 1.0
    return columns


def _embedded(response: Array, mixing: Array, rows: Array, inside: Array) -> Array:
    """response @ mixing, its labelled rows as they are known, with signs fixed; in place where the shapes agree."""
    d = mixing.shape[1]
    Z = response if d == response.shape[1] else np.empty((len(response), d))
    for begin in range(0, len(Z), 4096):
        Z[begin : begin + 4096] = response[begin : begin + 4096] @ mixing
    Z[rows] = inside
    for begin in range(0, d, 64):
        Z[:, begin : begin + 64] = fix_signs(Z[:, begin : begin + 64])
    return Z


class ElasticEmbedding(_Elastic):
    """Margin-based semi-supervised elastic embedding (Dornaika and El Traboulsi), linear or with a kernel.

    An embedding of all rows and the map that predicts it, learnt together from a graph of all rows and the labels of
    some: min tr Z'(L + λM̃ + R)Z with Z'D̃Z = I (SEE eqs. 10 to 15). M̃ and D̃ hold the margins between the classes of the
    labelled rows, R is what is left of the regression μ(\\|W\\|² + γ\\|XW + 1b' - Z\\|²) once its W and b are optimal.

    Parameters
    ----------
    n_components : int or None, default None
        At most the number l of labelled rows, as the constraint holds on these alone; None keeps all l.
    lam : float, default 100.0
        Weight λ of the margins between classes. With fewer than all l dimensions a large one pays: then the first
        classes - 1 columns hold the classes.
    mu, gamma : float, default 1.0 and 10.0
        Weights of the regression: μ of all of it, γ of the residual against the size of the coefficients.
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
        None is the linear map of the features, with bias; kernel maps have none. For "precomputed" X is the kernel
        matrix, and `transform` takes the kernel of new rows with the training rows.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    n_neighbors : int, default 10
        For the neighbour graphs: an edge joins two rows where either is among the nearest of the other.
    graph : {"heat", "binary", "full", "l1"} or matrix of shape (n, n), default "heat"
        Neighbour graph with heat or unit weights, full graph with heat weights, the graph of sparse codes, or symmetric
        affinities of the training rows.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    connect : bool, default True
        Join the components of a disconnected graph by the shortest missing edges, with a warning. A given matrix is
        left as it is.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        Z'D̃Z = I; of the labelled rows alone that is, the others follow from them.
    eigenvalues_ : array of shape (n_components,)
        Ascending.
    coef_ : array of shape (p, n_components), for kernel=None
    intercept_ : array of shape (n_components,), for kernel=None
    dual_coef_ : array of shape (n, n_components), for a kernel
    classes_ : array

    Notes
    -----
    Unlabelled rows are eliminated: the work is one linear system of all rows with l right-hand sides and an l × l
    eigenproblem. With all l dimensions λ has no effect on distances, and with one label per class the embedding holds
    the same as the scores of flexible manifold embedding (FME).

    `transform` of the training rows is the regression of `embedding_`, which it does not interpolate.

    γ is in units of the rows, so their scale matters. For faces under changing light, rows of unit length before and
    after a whitened PCA and a graph of 5 neighbours raise the accuracy (Extended Yale, 3 labels each) from 62 to 87 %:
    ``make_pipeline(Normalizer(), PCA(0.98, whiten=True), Normalizer(), ElasticEmbedding(n_neighbors=5))``. Elsewhere
    that can hurt.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import ElasticEmbedding
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> ElasticEmbedding(20).fit(X[:1000], some).transform(X[1000:]).shape
    (797, 20)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        lam: float = 100.0,
        mu: float = 1.0,
        gamma: float = 10.0,
        kernel: str | None = None,
        sigma: float | None = None,
        n_neighbors: int = 10,
        graph: Any = "heat",
        beta: Any = "mean",
        degree: int = 3,
        coef0: float = 1.0,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.mu = mu
        self.gamma = gamma
        self.kernel = kernel
        self.sigma = sigma
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.beta = beta
        self.degree = degree
        self.coef0 = coef0
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _embed(self, X: Array, y: Labels) -> None:
        lam, mu, gamma = (as_positive(getattr(self, name), name) for name in ("lam", "mu", "gamma"))
        d = _check_dimensions(self.n_components, y)
        kernel = self._kernel_of(X, self.sigma)
        self._solve(X, y, self._laplacian(X), kernel, lam, mu, gamma, d)


def _check_dimensions(value: Any, labels: Labels) -> int:
    most = len(labels.labelled)
    if value is None:
        return most
    return check_components(value, most, "the number of labelled rows, on which alone the constraint Z'D̃Z = I holds")


class ElasticEmbeddingCV(_Elastic):
    """Elastic embedding with its weights, kernel width and dimensions chosen by validation on the labelled rows.

    In turn a part of the labels is hidden, and found again by the nearest of the other labelled rows in the embedding.
    For one regression, γ and μ, all splits and all λ are problems of the labelled rows alone, which cost next to
    nothing; linear maps share the factorisation also between regressions of the same μγ.

    Parameters
    ----------
    n_components : int or None, default None
        None is chosen, too. A choice of as many as the splits allow means all l.
    lam, mu, gamma : sequences of floats or float, default (1e-9, 1e-6, ..., 1e9)
        What λ, μ and γ are chosen from (SEE section 5).
    kernel : {None, "linear", "rbf", "poly", "precomputed"}, default None
    sigma : sequence of floats, float or None, default None
        Widths of the kernel exp(-d²/sigma²) to choose from; None is sigma² = 2^m times the mean squared distance
        between rows, m = 1, ..., 6.
    cv : int, default 5
        Parts that the labels are split into, at most as many as the smallest class has.
    n_repeats : int, default 5
        Times that they are split, each time anew: with few labels a single split says little.
    target : {"transform", "embedding"}, default "transform"
        Whether hidden rows are looked for where the map takes them, as for new rows, or where `embedding_` has them.
    random_state : int, default 0
        Of the splits.
    n_neighbors, graph, beta, degree, coef0, connect, neighbors
        As in `ElasticEmbedding`.
    verbose : bool, default False
        Print a line per regression that was tried.

    Attributes
    ----------
    best_params_ : dict
        lam, mu, gamma, n_components, and sigma for a Gaussian kernel: what to give to an `ElasticEmbedding`.
    best_score_ : float
        Share of hidden labels that were found again.
    cv_results_ : dict of arrays
        One entry per choice of weights: lam, mu, gamma, sigma, n_components (the best for these weights) and score.
    embedding_, eigenvalues_, coef_, intercept_, dual_coef_, classes_
        Of the elastic embedding with the best parameters and all labels.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import ElasticEmbeddingCV
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 60, y[:1000], -1)
    >>> search = ElasticEmbeddingCV(mu=(1e-3, 1.0), gamma=(1e-3, 1.0)).fit(X[:1000], some)
    >>> sorted(search.best_params_)
    ['gamma', 'lam', 'mu', 'n_components']
    >>> search.best_score_ > 0.8
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        lam: Any = GRID,
        mu: Any = GRID,
        gamma: Any = GRID,
        kernel: str | None = None,
        sigma: Any = None,
        cv: int = 5,
        n_repeats: int = 5,
        target: str = "transform",
        random_state: int = 0,
        n_neighbors: int = 10,
        graph: Any = "heat",
        beta: Any = "mean",
        degree: int = 3,
        coef0: float = 1.0,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.mu = mu
        self.gamma = gamma
        self.kernel = kernel
        self.sigma = sigma
        self.cv = cv
        self.n_repeats = n_repeats
        self.target = target
        self.random_state = random_state
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.beta = beta
        self.degree = degree
        self.coef0 = coef0
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _embed(self, X: Array, y: Labels) -> None:
        lams, mus, gammas = (_check_grid(getattr(self, name), name) for name in ("lam", "mu", "gamma"))
        if self.n_components is not None:
            _check_dimensions(self.n_components, y)
        if self.target not in ("transform", "embedding"):
            raise ValueError(f"target must be 'transform' or 'embedding'. Got {self.target!r} instead.")
        splits = self._splits(y)
        dimensions = splits[0].dimensions
        kernels = self._kernels(X)
        L = self._laplacian(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about weights that are not chosen in the end
            tried = list(self._tried(X, y, L, kernels, splits, lams, mus, gammas))
        lam, mu, gamma, at, d, self.best_score_ = max(tried, key=lambda entry: entry[-1])
        names = ("lam", "mu", "gamma", "sigma", "n_components", "score")
        self.cv_results_ = dict(zip(names, (np.array(column) for column in zip(*tried, strict=True)), strict=True))
        widths = [np.nan if k is None or k.name != "rbf" else float(np.ldexp(k.sigma, self._exponent)) for k in kernels]
        self.cv_results_["sigma"] = np.array(widths)[self.cv_results_["sigma"]]
        if self.n_components is not None or d == dimensions[-1]:
            d = _check_dimensions(self.n_components, y)
        self.best_params_ = {"lam": lam, "mu": mu, "gamma": gamma, "n_components": d}
        if np.isfinite(widths[at]):
            self.best_params_["sigma"] = widths[at]
        self._solve(X, y, L, kernels[at], lam, mu, gamma, d)

    def _tried(
        self, X: Array, y: Labels, L: Any, kernels: Any, splits: list[_Split], lams: Any, mus: Any, gammas: Any
    ) -> Iterator[tuple[float, float, float, int, int, float]]:
        """λ, μ, γ, the number of the kernel, the best dimensions for these and their score."""
        dimensions, hidden = splits[0].dimensions, self.n_repeats * len(y.labelled)
        done, top = 0, 0.0
        for at, kernel in enumerate(kernels):
            for mu, gamma, problem in self._regressions(X, y, L, kernel, mus, gammas):
                curves = np.sum([split.found(problem, lams) for split in splits], axis=0) / hidden
                for lam, curve in zip(lams, curves, strict=True):
                    best = int(np.argmax(curve))
                    yield lam, mu, gamma, at, int(dimensions[best]), float(curve[best])
                done, top = done + len(lams), max(top, float(curves.max()))
                if self.verbose:
                    total = len(kernels) * len(mus) * len(gammas) * len(lams)
                    print(f"ElasticEmbeddingCV: {done} of {total}, best score {top:.4f}", flush=True)

    def _kernels(self, X: Array) -> list[Kernel | None]:
        """The kernels to choose from; one where there is no width to choose."""
        if self.kernel != "rbf":
            return [self._kernel_of(X, None)]
        if self.sigma is None:
            unit = mean_sq_distance(X) or 1.0
            return [Kernel("rbf", float(np.sqrt(2.0**m * unit))) for m in range(1, 7)]
        return [self._kernel_of(X, sigma) for sigma in _check_grid(self.sigma, "sigma")]

    def _splits(self, labels: Labels) -> list[_Split]:
        from sklearn.model_selection import RepeatedStratifiedKFold

        parts, repeats = as_count(self.cv, "cv"), as_count(self.n_repeats, "n_repeats")
        smallest = int(labels.sizes.min())
        if parts < 2 or smallest < 2:
            raise ValueError(
                "cv must be at least 2, and every class must have at least 2 labelled rows to hide one of them. "
                f"Got cv = {parts} and a class with {smallest}."
            )
        codes = labels.codes[labels.labelled]
        splitter = RepeatedStratifiedKFold(
            n_splits=min(parts, smallest), n_repeats=repeats, random_state=self.random_state
        )
        pairs = list(splitter.split(codes, codes))
        most = min(len(known) for known, _ in pairs)
        dimensions = np.arange(1, most + 1)
        if self.n_components is not None:
            dimensions = dimensions[min(self.n_components, most) - 1 :][:1]
        return [_Split(codes, known, hidden, dimensions, self.target == "transform") for known, hidden in pairs]

    def _regressions(
        self, X: Array, labels: Labels, L: Any, kernel: Kernel | None, mus: list[float], gammas: list[float]
    ) -> Iterator[tuple[float, float, Reduced]]:
        """Every μ and γ with the problem reduced to the labelled rows."""
        rows = labels.labelled
        M, D = objectives.margins(labels.codes[rows], labels.count)
        columns, near = _unit(len(X), rows), _mean_degree(L)

        def reduced(shift: float, weight: float, smoothers: list[Any]) -> list[Reduced]:
            # Smoothers that differ in their ridges alone share what does not depend on these.
            system = PenalizedSystem(_shifted(L, rows, D, shift), smoothers[0].penalty(weight))
            first, found = system.inner(columns), []
            for smoother in smoothers:
                if smoother is not smoothers[0]:
                    system = system.with_ridges(smoother.penalty(weight).ridges)
                response = system.complete(first.copy(), columns)
                found.append(Reduced(response[rows], smoother.hat(rows) @ response, shift, D))
            return found

        def both(weight: float, smoothers: list[Any]) -> list[Reduced]:
            problems = reduced(near, weight, smoothers)
            shifts = [Condensed(problem.block, M, D, near).far_shift() for problem in problems]
            far = max((shift for shift in shifts if shift is not None), default=None)
            if far is None:
                return problems
            others = reduced(far, weight, smoothers)
            return [replace(problem, far=other) for problem, other in zip(problems, others, strict=True)]

        if kernel is None:
            smoother = self._smoother(X, None, 1.0)
            products: dict[float, list[tuple[float, float]]] = {}
            for mu, gamma in product(mus, gammas):
                products.setdefault(float(f"{mu * gamma:.12g}"), []).append((mu, gamma))
            for weight, pairs in products.items():
                problems = both(weight, [smoother.with_ridge(self._ridge(gamma)) for _, gamma in pairs])
                yield from ((mu, gamma, problem) for (mu, gamma), problem in zip(pairs, problems, strict=True))
            return
        for gamma in gammas:
            smoother = self._smoother(X, kernel, gamma)
            for mu in mus:
                yield mu, gamma, both(mu * gamma, [smoother])[0]


@dataclass(frozen=True)
class Reduced:
    """One regression seen from the labelled rows: P = E'(A + τD̃)^-1 E, and what the map makes of that column space.

    `far` is the same for a larger τ, where one is needed.
    """

    block: Array
    image: Array
    shift: float
    D: Array
    far: Reduced | None = None


class _Split:
    """Labels of which some are hidden, and how many of these the others find again."""

    def __init__(self, codes: Array, known: Array, hidden: Array, dimensions: Array, mapped: bool) -> None:
        self._known, self._hidden, self._mapped, self.dimensions = known, hidden, mapped, dimensions
        self._answers, self._truth = codes[known], codes[hidden]
        self._M, self._D = objectives.margins(codes[known], int(codes.max()) + 1)

    def found(self, problem: Reduced, lams: list[float]) -> Array:
        """Hidden labels that are found again (len(lams), len(dimensions))."""
        condensed, new = self._hide(problem)
        if problem.far is not None:
            far, new = self._hide(problem.far)
            condensed = condensed.with_far(far)
        counts = []
        for lam in lams:
            _, gallery, mixing = condensed.eigenvectors(lam, int(self.dimensions[-1]))
            counts.append(self._curve(gallery, new @ mixing))
        return np.array(counts)

    def _hide(self, problem: Reduced) -> tuple[Condensed, Array]:
        """The problem without the hidden labels, and what takes its columns to where hidden rows are looked for."""
        block, known, hidden = problem.block, self._known, self._hidden
        # Hidden rows are unlabelled: A + τD̃ less what they, and other sizes of the classes, take from the diagonal.
        change = -(1.0 - 1e-10) * problem.shift * problem.D  # not all of it, in case nothing else holds a hidden row
        change[known] = problem.shift * (self._D - problem.D[known])
        turned = la.solve(np.eye(len(block)) + change[:, None] * block, _unit(len(block), known), check_finite=False)
        inside = block @ turned
        new = problem.image[hidden] @ turned if self._mapped else inside[hidden]
        return Condensed(inside[known], self._M, self._D, problem.shift), new

    def _curve(self, gallery: Array, queries: Array) -> Array:
        """Right answers of the nearest neighbour by dimension."""
        counts = np.zeros(len(self.dimensions), dtype=np.int64)
        step = max(1, _CHUNK // gallery.size)
        for begin in range(0, len(queries), step):
            part = slice(begin, begin + step)
            distances = queries[part].T[:, :, None] - gallery.T[:, None]
            np.cumsum(np.square(distances, out=distances), axis=0, out=distances)
            nearest = np.argmin(distances[self.dimensions - 1], axis=2)
            counts += np.sum(self._answers[nearest] == self._truth[part], axis=1)
        return counts


def _check_grid(values: Any, name: str) -> list[float]:
    if np.ndim(values) == 0:
        return [as_positive(values, name)]
    if np.ndim(values) != 1 or not len(values):
        raise ValueError(f"{name} must be a positive number or a sequence of them. Got {values!r} instead.")
    return [as_positive(value, f"every entry of {name}") for value in values]


class _Discriminant(Projected, _SemiSupervised):
    """Linear projections that keep classes apart and a graph of all rows smooth."""

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 0.1,
        beta: float = 0.1,
        n_neighbors: int = 10,
        graph: Any = "heat",
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.beta = beta
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _embed(self, X: Array, y: Labels) -> None:
        alpha, ridge = as_number(self.alpha, "alpha", minimum=0.0), as_positive(self.beta, "beta")
        d = self._check_dimensions(y, min(X.shape[0] - 1, X.shape[1]))
        L = self._laplacian(X)
        F = X.astype(np.float64)
        F -= F.mean(axis=0)  # which changes none of the matrices below
        F, basis = in_span(F)
        between, within = self._scatters(F[y.labelled], y.indicators[y.labelled])
        within = within + alpha * np.asarray(F.T @ (L @ F))
        within.flat[:: len(within) + 1] += self._in_squares(ridge)
        size = float(np.trace(within)) / len(within)
        coef, self.eigenvalues_ = most_separating(between, within, d, size)
        self._keep_map(X, None, coef if basis is None else fix_signs(basis @ coef), np.zeros(d))

    def _check_dimensions(self, labels: Labels, rank: int) -> int:
        """n_components, by default and at most as many as the classes leave."""
        most = min(labels.count - 1, rank)
        if self.n_components is None:
            return most
        return check_components(self.n_components, most, "the classes less one and the dimensions that X spans")

    @abstractmethod
    def _scatters(self, F: Array, hot: Array) -> tuple[Array, Array]:
        """What is to be large and what is to be small, for labelled rows F and their one-hot labels."""


class SDA(_Discriminant):
    """Semi-supervised discriminant analysis (Cai et al. 2007).

    Linear discriminant analysis of the labelled rows, kept smooth on a neighbour graph of all rows: the largest of S_b
    against S_t + alpha X'LX + beta I, with S_b and S_t the between-class and total scatter of the labelled rows.

    Parameters
    ----------
    n_components : int or None, default None
        At most the number of classes less one, which is the default.
    alpha : float, default 0.1
        Weight of smoothness on the graph.
    beta : float, default 0.1
        Ridge.
    n_neighbors : int, default 10
    graph : {"heat", "binary", "full", "l1"} or matrix of shape (n, n), default "heat"
        Graph of all rows; heat weights are exp(-d²/b) with b the mean squared distance over all pairs of rows.
    connect : bool, default True
        Join the components of a disconnected graph by the shortest missing edges, with a warning. A given matrix is
        left as it is.
    neighbors : (distances, indices), optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        What the map makes of the training rows.
    components_ : array of shape (n_components, p)
    intercept_ : zeros
    eigenvalues_ : array of shape (n_components,)
        Descending.
    classes_ : array

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import SDA
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> SDA().fit(X[:1000], some).transform(X[1000:]).shape
    (797, 9)
    """

    def _scatters(self, F: Array, hot: Array) -> tuple[Array, Array]:
        F = F - F.mean(axis=0)
        means = (hot.T @ F) / np.sqrt(hot.sum(axis=0))[:, None]
        return means.T @ means, F.T @ F


class SDE(_Discriminant):
    """Semi-supervised discriminant embedding (Yu et al. 2012, Huang et al. 2012).

    Local discriminant embedding of the labelled rows, kept smooth on a neighbour graph of all rows: the largest of
    X_l'L_bX_l against X_l'L_wX_l + alpha X'LX + beta I. All labelled rows of one class are joined in the graph of L_w,
    all of different classes in that of L_b, with weights 1.

    Parameters
    ----------
    n_components : int or None, default None
        At most the dimensions that X spans; None is the number of classes less one.
    alpha : float, default 0.1
        Weight of smoothness on the graph.
    beta : float, default 0.1
        Ridge.
    n_neighbors, graph, connect, neighbors, verbose
        As in `SDA`.

    Attributes
    ----------
    embedding_, components_, intercept_, eigenvalues_, classes_
        As in `SDA`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import SDE
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> SDE(12).fit(X[:1000], some).transform(X[1000:]).shape
    (797, 12)
    """

    def _check_dimensions(self, labels: Labels, rank: int) -> int:
        if self.n_components is None:
            return min(labels.count - 1, rank)
        return check_components(self.n_components, rank, "the dimensions that X spans")

    def _scatters(self, F: Array, hot: Array) -> tuple[Array, Array]:
        # L_w = diag(l_c) - YY' and L_b = diag(l - l_c) + YY' - 11' for one-hot labels Y.
        sizes = hot @ hot.sum(axis=0)
        sums = hot.T @ F
        within = F.T @ (sizes[:, None] * F) - sums.T @ sums
        everything = len(F) * (F.T @ F) - np.outer(F.sum(axis=0), F.sum(axis=0))
        return everything - within, within


class TCA(Projected, _SemiSupervised):
    """Transductive component analysis (Liu et al. 2008), in our reading.

    The original text was not at hand. Read from its summary in SEE: min tr Y'(L + alpha M̃ + R)Y with Y'Y = I, for the
    Laplacian L of a graph of all rows, the margins M̃ between the classes of the labelled rows, and R what the ridge
    regression of Y on X leaves, R = mu (H - X_c (X_c'X_c + beta I)^-1 X_c'). This regression maps new rows.

    Parameters
    ----------
    n_components : int or None, default None
        At most the number of rows; None is the number of classes less one.
    alpha : float, default 1.0
        Weight of the margins.
    beta : float, default 0.1
        Ridge of the regression, 1/γ in `ElasticEmbedding`.
    mu : float, default 1.0
        Weight of the regression, μγ in `ElasticEmbedding`.
    n_neighbors, graph, connect, neighbors, verbose
        As in `SDA`.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        Orthonormal columns; `transform` of the training rows is their regression, which does not interpolate.
    components_ : array of shape (n_components, p)
    intercept_ : array of shape (n_components,)
    eigenvalues_ : array of shape (n_components,)
        Ascending.
    classes_ : array

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import TCA
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> TCA(20).fit(X[:1000], some).transform(X[1000:]).shape
    (797, 20)
    """

    _interpolates = False

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.1,
        mu: float = 1.0,
        n_neighbors: int = 10,
        graph: Any = "heat",
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.beta = beta
        self.mu = mu
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _embed(self, X: Array, y: Labels) -> None:
        alpha, mu = (as_number(getattr(self, name), name, minimum=0.0) for name in ("alpha", "mu"))
        ridge = self._in_squares(as_positive(self.beta, "beta"))
        d = y.count - 1 if self.n_components is None else check_components(self.n_components, len(X), "the rows")
        L = self._laplacian(X)
        rows = y.labelled
        M, _ = objectives.margins(y.codes[rows], y.count)
        places = np.repeat(rows, len(rows)), np.tile(rows, len(rows))
        margins = sp.csr_array(sp.coo_array((alpha * M.ravel(), places), shape=L.shape))
        smoother = LinearRidgeSmoother(X.astype(np.float64), ridge)
        A = L + (margins if is_sparse(L) else margins.toarray())
        self.eigenvalues_, Y = smallest_eigenvectors(
            smoother.penalty(mu).added_to(A) if mu else A, d, check=False, verbose=self.verbose
        )
        self._keep_map(X, None, *smoother.fit(Y))
        self.embedding_ = Y.astype(X.dtype, copy=False)
