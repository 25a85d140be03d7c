"""Elastic embedding: margins between labelled rows beside a graph of all rows, smoothed by a ridge regression."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la

from manifast import objectives
from manifast._choices import central_best, check_grid, graph_choices, hide_labels
from manifast._labels import Labels
from manifast._linalg.condensed import Condensed, by_product, mean_degree, regressions_on, shifted, unit
from manifast._progress import Progress, Steps, stage, stages
from manifast._rows import Rows
from manifast._validation import Array, as_positive
from manifast._warnings import warn
from manifast.embeddings._base import SupervisedEmbedding
from manifast.embeddings._callbacks import FollowedFit
from manifast.embeddings.composed import Composed, choice
from manifast.graphs import mean_sq_distance
from manifast.maps import LinearMap
from manifast.objectives.formulas import margins
from manifast.smoothers import KernelRidge, Ridge, Smoother
from manifast.solve import embed

__all__ = ["ElasticEmbedding", "ElasticEmbeddingCV"]

GRID = (1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9)  # of every weight, SEE section 5
_DEFAULTS = (100.0, 1.0, 10.0)  # λ, μ and γ of ElasticEmbedding
_CHUNK = 1 << 20  # distances held at once


class Elastic(Composed, SupervisedEmbedding):
    """Base: the regression with weights μ and γ as a smoother, linear with bias or with a kernel without."""

    _unlabelled = True

    def _regression(self, mu: float, gamma: float, **kernel: Any) -> Smoother:
        """The smoother of SEE (10) or (14): weight μγ and ridge 1/γ."""
        if self.kernel is None:
            return Ridge(mu * gamma, ridge=1.0 / gamma)
        return choice(
            KernelRidge, self, weight=mu * gamma, ridge=1.0 / gamma, bias=False, **kernel
        )

    def _dimensions(self, builder: objectives.ObjectiveBuilder, rows: Rows, labels: Labels | None) -> int:
        assert labels is not None
        if self.n_components is not None or len(labels.labelled) < rows.n:
            count = len(labels.labelled) if self.n_components is None else self.n_components
            return int(builder.dimensions(count, rows, labels))
        builder.check(rows, labels, labels.count - 1)
        warn(
            f"all rows have labels: n_components=None keeps {labels.count - 1} dimensions, the classes less one, as "
            "one for every labelled row would only repeat the rows. Give n_components to keep more."
        )
        return labels.count - 1

    @property
    def intercept_(self) -> Array:
        """What the linear map adds to every row (n_components,); kernel maps have no bias."""
        return self._of_map(LinearMap, "intercept_").intercept  # type: ignore[no-any-return]

    @property
    def coef_(self) -> Array:
        """Coefficients of the linear map (p, n_components)."""
        return np.ascontiguousarray(self.components_.T)


class ElasticEmbedding(Elastic):
    """Margin-based semi-supervised elastic embedding (Dornaika and El Traboulsi), linear or with a kernel.

    An embedding of all rows and the map that predicts it, learnt together from a graph of all rows and the labels of
    some: min tr Z'(L + λM̃ + R)Z with Z'D̃Z = I (SEE eqs. 10 to 15). M̃ and D̃ hold the margins between the classes of
    the labelled rows, R is what is left of the regression μ(\\|W\\|² + γ\\|XW + 1b' - Z\\|²) once its W and b are
    optimal.

    Rows that are -1, NaN, None or pandas' NA in y have no label.

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
    n_neighbors : int or None, default None
        None is 10, or as many as few rows have, with a warning.
        For the neighbour graphs: an edge joins two rows where either is among the nearest of the other.
    graph : {"heat", "binary", "full", "l1"} or matrix of shape (n, n), default "heat"
        Neighbour graph with heat or unit weights, full graph with heat weights, the graph of sparse codes, or symmetric
        affinities of the training rows.
    beta : None, "local", "mean" or float, default None
        Width of the heat weights exp(-d²/beta): "local", one width per row from its nearest, as in
        `manifast.graphs.knn_graph`; "mean", the mean squared distance over all pairs of rows; or a number. None is
        "local" for neighbour graphs and "mean" for full ones.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    connect : bool, default True
        Join the components of a disconnected graph by the shortest missing edges, with a warning. A given matrix is
        left as it is.
    neighbors : (distances, indices), "approximate" or "auto", optional
        Nearest neighbours of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

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
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(np²) and one sparse system with l
    right-hand sides for l labelled rows, and O(l³); with a kernel O(n³) and n × n matrices. A new row takes O(pd), with
    a kernel O(n(p + d)).

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
        n_neighbors: int | None = None,
        graph: Any = "heat",
        beta: Any = None,
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

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.Margin, self, lam=as_positive(self.lam, "lam"))

    def _smoother(self) -> Smoother | None:
        return self._regression(as_positive(self.mu, "mu"), as_positive(self.gamma, "gamma"))


class ElasticEmbeddingCV(FollowedFit, Elastic):
    """Elastic embedding with its weights, kernel width and dimensions chosen by validation on the labelled rows.

    The objective is that of `ElasticEmbedding` (SEE eqs. 10 to 15). In turn a part of the labels is hidden, and found
    again by the nearest of the other labelled rows in the embedding. For one regression, γ and μ, all splits and all λ
    are problems of the labelled rows alone, which cost next to nothing; linear maps share the factorisation also
    between regressions of the same μγ, and graphs share those of the rows.

    Rows that are -1, NaN, None or pandas' NA in y have no label.

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
        Times that they are split, each time anew: with few labels a single split says little. Of weights that find
        equally many labels the one in the middle of them is taken.
    target : {"transform", "embedding"}, default "transform"
        Whether hidden rows are looked for where the map takes them, as for new rows, or where `embedding_` has them.
    random_state : int, default 0
        Of the splits.
    n_neighbors, beta
        As in `ElasticEmbedding`, or sequences of such values: then the graph is chosen, too.
    graph, degree, coef0, connect, neighbors
        As in `ElasticEmbedding`.
    verbose : bool or int, default False
        1 says on stderr how many choices of weights were tried, and the times; 2 also what the solvers do.

    Attributes
    ----------
    best_params_ : dict
        lam, mu, gamma, n_components, sigma for a Gaussian kernel, and what was chosen of the graph: what to give to an
        `ElasticEmbedding`.
    best_score_ : float
        Share of hidden labels that were found again.
    cv_results_ : dict of arrays
        One entry per choice of weights: lam, mu, gamma, sigma, n_components (the best for these weights), score, and
        what was chosen of the graph.
    embedding_, eigenvalues_, coef_, intercept_, dual_coef_, classes_
        Of the elastic embedding with the best parameters and all labels.

    Notes
    -----
    Cost: `fit` takes one system of all rows for every pair of μ and γ (and width, and graph), as in
    `ElasticEmbedding`, and O(l³) per split and λ for l labelled rows.

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
        n_neighbors: Any = None,
        graph: Any = "heat",
        beta: Any = None,
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

    def _objective(self) -> objectives.ObjectiveBuilder:
        return choice(objectives.Margin, self, lam=1.0)

    def _embed(self, X: Array, y: Labels) -> None:
        lams, mus, gammas = (check_grid(getattr(self, name), name) for name in ("lam", "mu", "gamma"))
        if self.target not in ("transform", "embedding"):
            raise ValueError(f"target must be 'transform' or 'embedding'. Got {self.target!r} instead.")
        graphs = graph_choices(self.n_neighbors, self.beta)
        rows = Rows(X, self._exponent, self.kernel == "precomputed")
        self._regression(1.0, 1.0, **({} if self.kernel is None else {"sigma": None})).check(rows)
        builders = [self._objective().set_params(**graph) for graph in graphs]
        d = self._dimensions(builders[0], rows, y)
        for builder in builders:
            builder.check(rows, y, d)
        splits = self._splits(y)
        kernels = self._kernels(rows)
        laplacians = [builder.laplacian(rows) for builder in (builders if splits else builders[:1])]
        if not splits:
            warn(
                "no class has two labelled rows, so that none can be hidden to validate on: the default weights of "
                "ElasticEmbedding are taken. Label a second row of some classes to choose weights."
            )
            lam, mu, gamma, at, which, self.best_score_ = *_DEFAULTS, 0, 0, np.nan
            self.cv_results_ = {}
        else:
            dimensions = splits[0].dimensions
            count = len(graphs) * len(kernels) * len(mus) * len(gammas) * len(lams)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # about weights that are not chosen in the end
                with stage(f"validation of {count} choices of weights"):
                    tried = list(self._tried(rows, y, laplacians, kernels, splits, lams, mus, gammas))
            grids = [list(dict.fromkeys(graph[name] for graph in graphs)) for name in graphs[0]]
            steps = [[grid.index(v) for grid, v in zip(grids, graph.values(), strict=True)] for graph in graphs]
            places = [[lams.index(e[0]), mus.index(e[1]), gammas.index(e[2]), e[3], *steps[e[4]]] for e in tried]
            middle = central_best(np.array(places), np.array([entry[-1] for entry in tried]))
            lam, mu, gamma, at, which, best, self.best_score_ = tried[middle]
            names = ("lam", "mu", "gamma", "sigma", "graph", "n_components", "score")
            columns = (np.array(column) for column in zip(*tried, strict=True))
            self.cv_results_ = dict(zip(names, columns, strict=True))
            widths = np.array([np.nan if sigma is None else np.ldexp(sigma, self._exponent) for sigma in kernels])
            self.cv_results_["sigma"] = widths[self.cv_results_["sigma"]]
            of_graph = self.cv_results_.pop("graph")
            for name in graphs[0]:
                self.cv_results_[name] = np.array([graphs[i][name] for i in of_graph], dtype=object)
            if self.n_components is None and best != dimensions[-1]:
                d = best
        self.best_params_ = {"lam": lam, "mu": mu, "gamma": gamma, "n_components": d} | graphs[which]
        sigma = kernels[at]
        if sigma is not None:
            self.best_params_["sigma"] = float(np.ldexp(sigma, self._exponent))
        objective = builders[which].set_params(lam=lam).assemble(y, rows.n, laplacians[which])
        solution = embed(objective, self._prepared(rows, kernels[at], mu, gamma), d)
        self._keep(rows, builders[which], objective, solution)

    def _prepared(self, rows: Rows, sigma: float | None, mu: float, gamma: float) -> Any:
        """The smoother for rows that are scaled already, and so is the width."""
        width = {} if sigma is None else {"sigma": float(np.ldexp(sigma, rows.exponent))}
        return self._regression(mu, gamma, **({} if self.kernel is None else {"sigma": None} | width)).prepare(rows)

    def _tried(
        self, rows: Rows, y: Labels, graphs: Any, kernels: Any, splits: list[_Split], lams: Any, mus: Any, gammas: Any
    ) -> Iterator[tuple[float, float, float, int, int, int, float]]:
        """λ, μ, γ, the numbers of the kernel and of the graph, the best dimensions for these and their score."""
        dimensions, hidden = splits[0].dimensions, sum(split.count for split in splits)
        done, top = 0, 0.0
        total = len(graphs) * len(kernels) * len(mus) * len(gammas) * len(lams)
        report, steps = Progress("choices of weights", total), Steps("choices of weights", total)
        for at, kernel in enumerate(kernels):
            for mu, gamma, which, problem in self._regressions(rows, y, graphs, kernel, mus, gammas):
                curves = np.sum([split.found(problem, lams) for split in splits], axis=0) / hidden
                for lam, curve in zip(lams, curves, strict=True):
                    best = int(np.argmax(curve))
                    yield lam, mu, gamma, at, which, int(dimensions[best]), float(curve[best])
                done, top = done + len(lams), max(top, float(curves.max()))
                if stages():
                    report(done, f", best score {top:.4f}")
                if steps.done(len(lams)):
                    steps.close()
                    return
        steps.close()

    def _kernels(self, rows: Rows) -> list[float | None]:
        """Widths of the kernel to choose from, in units of the scaled rows; None where there is no width to choose."""
        if self.kernel != "rbf":
            return [None]
        if self.sigma is None:
            mean = mean_sq_distance(rows.X) or 1.0
            return [float(np.sqrt(2.0**m * mean)) for m in range(1, 7)]
        return [float(rows.in_units(sigma, 1)) for sigma in check_grid(self.sigma, "sigma")]

    def _splits(self, labels: Labels) -> list[_Split]:
        pairs = hide_labels(labels, self.cv, self.n_repeats, self.random_state)
        if not pairs:
            return []
        most = min(len(known) for known, _ in pairs)
        dimensions = np.arange(1, most + 1)
        if self.n_components is not None:
            dimensions = dimensions[min(self.n_components, most) - 1 :][:1]
        codes = labels.codes[labels.labelled]
        return [_Split(codes, known, hidden, dimensions, self.target == "transform") for known, hidden in pairs]

    def _regressions(
        self, data: Rows, labels: Labels, graphs: list[Any], sigma: float | None, mus: list[float], gammas: list[float]
    ) -> Iterator[tuple[float, float, int, Reduced]]:
        """Every μ, γ and number of a graph with the problem reduced to the labelled rows."""
        rows = labels.labelled
        M, D = margins(labels.codes[rows], labels.count)
        degrees = [mean_degree(L) for L in graphs]

        def reduced(L: Any, shift: float, weight: float, smoothers: list[Any]) -> list[Reduced]:
            parts = regressions_on(shifted(L, rows, D, shift), rows, weight, smoothers)
            return [Reduced(block, image, shift, D) for block, image in parts]

        def both(which: int, weight: float, smoothers: list[Any]) -> list[Reduced]:
            L, near = graphs[which], degrees[which]
            problems = reduced(L, near, weight, smoothers)
            shifts = [Condensed(problem.block, M, D, near).far_shift() for problem in problems]
            far = max((shift for shift in shifts if shift is not None), default=None)
            if far is None:
                return problems
            others = reduced(L, far, weight, smoothers)
            return [replace(problem, far=other) for problem, other in zip(problems, others, strict=True)]

        # What a smoother has factored of the rows does not depend on the graph.
        if self.kernel is None:
            smoother = self._prepared(data, None, 1.0, 1.0).regression
            for weight, pairs in by_product(mus, gammas):
                ridged = [smoother.with_ridge(data.squared(1.0 / gamma)) for _, gamma in pairs]
                for which in range(len(graphs)):
                    problems = both(which, weight, ridged)
                    yield from ((mu, gamma, which, one) for (mu, gamma), one in zip(pairs, problems, strict=True))
            return
        for gamma in gammas:
            smoother = self._prepared(data, sigma, 1.0, gamma).regression
            for which in range(len(graphs)):
                for mu in mus:
                    yield mu, gamma, which, both(which, mu * gamma, [smoother])[0]


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
        self._answers, self._truth, self.count = codes[known], codes[hidden], len(hidden)
        self._M, self._D = margins(codes[known], int(codes.max()) + 1)

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
        turned = la.solve(np.eye(len(block)) + change[:, None] * block, unit(len(block), known), check_finite=False)
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
