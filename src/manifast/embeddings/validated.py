"""SDA, SDE and TCA with their weights chosen by labels that are hidden in turn."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la

from manifast._choices import WEIGHTS, Hidden, Tried, WeightSearch, defaults_of
from manifast._labels import Labels
from manifast._linalg.pencils import as_dense
from manifast._linalg.smooth_gram import SmoothGram, root_of
from manifast._rows import Rows
from manifast._validation import Array, as_positive
from manifast.embeddings.composed import choice
from manifast.embeddings.partly_labelled import SDA, SDE, TCA
from manifast.kernels import sq_distances
from manifast.objectives import SDA as SDAObjective
from manifast.objectives import SDE as SDEObjective
from manifast.objectives import Margin
from manifast.smoothers import Projection, Ridge
from manifast.solve import embed

__all__ = ["SDACV", "SDECV", "TCACV"]


class _Searched(WeightSearch):
    """Of one graph all weights are tried, and the best ones fitted to all labels."""

    def _embed(self, X: Any, y: Labels) -> None:
        grids, hidden = self._plan(y)
        builder = self._builder()
        rows = Rows(X, self._row_exponent)  # type: ignore[attr-defined]
        d = self._dimensions(builder, rows, y)  # type: ignore[attr-defined]
        builder.check(rows, y, d)
        graphs = self._graphs()
        L = builder.set_params(**graphs[0]).laplacian(rows) if len(graphs) == 1 else None

        def tried() -> Tried:
            for graph in graphs:
                own = self._builder().set_params(**graph).laplacian(rows) if L is None else L
                for pair, found in self._tried(rows, y, own, d, grids, hidden):
                    yield (*pair, *graph.values()), found

        weights = self._choose(grids, hidden, tried)
        if L is None:
            builder.set_params(**{name: weights[name] for name in graphs[0]})
            L = builder.laplacian(rows)
        objective = self._weighted(builder, weights).assemble(y, rows.n, L)
        exact = self.n_components is not None  # type: ignore[attr-defined]
        solution = embed(objective, self._smoothed(weights).prepare(rows), d, exact=exact)
        self._keep(rows, builder, objective, solution)  # type: ignore[attr-defined]

    def _builder(self) -> Any:
        """The objective, whatever its weight and graph."""
        raise NotImplementedError

    def _weighted(self, builder: Any, weights: dict[str, float]) -> Any:
        return builder.set_params(alpha=weights["alpha"])

    def _smoothed(self, weights: dict[str, float]) -> Any:
        """The smoother of these weights."""
        raise NotImplementedError

    def _tried(
        self, rows: Rows, labels: Labels, L: Any, d: int, grids: dict[str, list[float]], hidden: list[Hidden]
    ) -> Tried:
        """Every pair of weights and the hidden labels that it finds."""
        raise NotImplementedError


class SDACV(_Searched, SDA):
    """SDA with its two weights chosen by validation on the labelled rows.

    S_b w = λ (S_t + alpha X'LX + ridge I) w as in `SDA`.

    In turn a part of the labels is hidden, and found again by the nearest of the other labelled rows in the embedding.
    One eigendecomposition serves all weights and all parts: what is left for each are problems as large as the labelled
    rows are many.

    Rows that are -1, NaN, None or pandas' NA in y have no label.

    Parameters
    ----------
    n_components : int or None, default None
        At most the number of classes less one, which is the default.
    alpha, ridge : float or sequence of floats, default (1e-6, 1e-4, ..., 1e6)
        What the weights are chosen from, each more than 0. A warning says where the best one is at the edge.
    cv : int, default 5
        Parts that the labels are split into, at most as many as the smallest class has. Where no class has two labels
        the defaults of `SDA` are taken, with a warning.
    n_repeats : int, default 5
        Times that they are split, each time anew: with few labels a single split says little. Of weights that find
        equally many labels the pair in the middle of them is taken.
    random_state : int, default 0
        Of the splits.
    n_neighbors, beta
        As in `SDA`, or sequences of such values: then the graph is chosen, too.
    graph, connect, neighbors, verbose
        As in `SDA`.

    Attributes
    ----------
    best_params_ : dict
        alpha and ridge, and what was chosen of the graph: what to give to an `SDA`.
    best_score_ : float
        Share of hidden labels that were found again.
    cv_results_ : dict of arrays
        One entry per pair of weights: alpha, ridge and score.
    embedding_, components_, intercept_, eigenvalues_, classes_
        Of `SDA` with the best weights and all labels.

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(np(k + p)) and O(p³) once, then
    O(l³) for every pair of weights and part of the l labelled rows. A new row takes O(pd).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import SDACV
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> model = SDACV().fit(X[:1000], some)
    >>> sorted(model.best_params_), model.transform(X[1000:]).shape
    (['alpha', 'ridge'], (797, 9))
    """

    _defaults: ClassVar[dict[str, float]] = defaults_of(SDA, "alpha", "ridge")

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: Any = WEIGHTS,
        ridge: Any = WEIGHTS,
        n_neighbors: Any = None,
        graph: Any = "heat",
        beta: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        cv: int = 5,
        n_repeats: int = 5,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_components,
            alpha=alpha,
            ridge=ridge,
            n_neighbors=n_neighbors,
            graph=graph,
            beta=beta,
            connect=connect,
            neighbors=neighbors,
            verbose=verbose,
        )
        self.cv = cv
        self.n_repeats = n_repeats
        self.random_state = random_state

    def _builder(self) -> Any:
        return choice(SDAObjective, self, alpha=1.0)

    def _smoothed(self, weights: dict[str, float]) -> Any:
        return Projection(weights["ridge"])

    def _tried(
        self, rows: Rows, labels: Labels, L: Any, d: int, grids: dict[str, list[float]], hidden: list[Hidden]
    ) -> Tried:
        X = as_dense(rows.X)
        gram = SmoothGram(X - X.mean(axis=0), L, labels.labelled)
        codes = labels.codes[labels.labelled]
        parts = []
        for known, out in hidden:
            within, between = self._builder().scatters(Labels(labels.classes, codes[known]))
            parts.append((known, out, as_dense(within), as_dense(between)))
        for alpha in grids["alpha"]:
            for ridge in grids["ridge"]:
                G = gram(alpha, rows.squared(ridge))
                yield (alpha, ridge), sum(discriminated(G, codes, *part, d) for part in parts)


class SDECV(SDACV):
    """SDE with its two weights chosen by validation on the labelled rows.

    X_l'L_bX_l w = λ (X_l'L_wX_l + alpha X'LX + ridge I) w as in `SDE`.

    As `SDACV`: one eigendecomposition serves all weights and all parts of the labels.

    Parameters
    ----------
    n_components : int or None, default None
        At most the dimensions that X spans; None is the number of classes less one.
    alpha, ridge, cv, n_repeats, random_state
        As in `SDACV`.
    n_neighbors, beta
        As in `SDA`, or sequences of such values: then the graph is chosen, too.
    graph, connect, neighbors, verbose
        As in `SDA`.

    Attributes
    ----------
    best_params_, best_score_, cv_results_
        As in `SDACV`.
    embedding_, components_, intercept_, eigenvalues_, classes_
        Of `SDE` with the best weights and all labels.

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features, O(np(k + p)) and O(p³) once, then
    O(l³) for every pair of weights and part of the l labelled rows. A new row takes O(pd).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import SDECV
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(1000) < 100, y[:1000], -1)
    >>> SDECV(12).fit(X[:1000], some).transform(X[1000:]).shape
    (797, 12)
    """

    _defaults: ClassVar[dict[str, float]] = defaults_of(SDE, "alpha", "ridge")

    def _builder(self) -> Any:
        return choice(SDEObjective, self, alpha=1.0)


def discriminated(
    G: Array, codes: Array, known: Array, hidden: Array, within: Array, between: Array, d: int
) -> int:
    """Hidden labels that the nearest known row finds in the projection of the largest ratios, by inner products G.

    A direction w = (a F'LF + b I)^-1 F_k'u has the ratio u'G S_b G u / u'(G S_w G + G)u.
    """
    root, back = root_of(G[np.ix_(known, known)])
    if not root.shape[1]:  # known rows that do not differ: the first is as near as any
        return int(np.sum(codes[hidden] == codes[known][0]))
    inner = root.T @ within @ root
    inner.flat[:: len(inner) + 1] += 1.0
    most = min(d, len(inner))
    values, vectors = la.eigh(
        root.T @ between @ root, inner, subset_by_index=(len(inner) - most, len(inner) - 1), check_finite=False
    )
    vectors = vectors[:, values > 100 * len(inner) * np.finfo(float).eps * values[-1]]
    return nearest_right(root @ vectors, G[np.ix_(hidden, known)] @ (back @ vectors), codes[known], codes[hidden])


def nearest_right(gallery: Array, queries: Array, answers: Array, truth: Array) -> int:
    """Rows whose nearest in the gallery has their label."""
    nearest = sq_distances(np.ascontiguousarray(queries), np.ascontiguousarray(gallery)).argmin(axis=1)
    return int(np.sum(answers[nearest] == truth))


class TCACV(_Searched, TCA):
    """TCA with two of its weights chosen by validation on the labelled rows.

    min tr Y'(L + alpha M̃ + R)Y with Y'Y = I as in `TCA`.

    In turn a part of the labels is hidden, and found again by the nearest of the other labelled rows where the map
    takes them. All fits share the graph and the factorisation of the regression; as the constraint of TCA holds on all
    rows, each is an eigenproblem of its own.

    Rows that are -1, NaN, None or pandas' NA in y have no label.

    Parameters
    ----------
    n_components : int or None, default None
        At most the number of rows; None is the number of classes less one.
    alpha, mu : float or sequence of floats, default (1e-4, 1e-2, 1.0, 1e2, 1e4)
        What the weights are chosen from, each more than 0. A warning says where the best one is at the edge.
    ridge : float, default 0.1
        Of the regression, in squared units of the rows.
    cv, random_state
        As in `SDACV`.
    n_repeats : int, default 1
        As in `SDACV`, where more cost less.
    n_neighbors, beta
        As in `SDA`, or sequences of such values: then the graph is chosen, too.
    graph, connect, neighbors, verbose
        As in `SDA`.

    Attributes
    ----------
    best_params_ : dict
        alpha and mu, and what was chosen of the graph: what to give to a `TCA`.
    best_score_ : float
        Share of hidden labels that were found again.
    cv_results_ : dict of arrays
        One entry per pair of weights: alpha, mu and score.
    embedding_, components_, intercept_, eigenvalues_, classes_
        Of `TCA` with the best weights and all labels.

    Notes
    -----
    Cost: `fit` takes O(n²p) for the neighbours, about O(n log n) below 9 features and O(np²) once, and O(n(k + p)d) per
    step of an eigensolver for every pair of weights and part of the labels. A new row takes O(pd).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from manifast import TCACV
    >>> X, y = load_digits(return_X_y=True)
    >>> some = np.where(np.arange(500) < 50, y[:500], -1)
    >>> model = TCACV(alpha=(0.1, 1.0), mu=1.0).fit(X[:500], some)
    >>> sorted(model.best_params_), model.transform(X[500:]).shape
    (['alpha', 'mu'], (1297, 9))
    """

    _defaults: ClassVar[dict[str, float]] = defaults_of(TCA, "alpha", "mu")

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: Any = WEIGHTS[1:-1],
        ridge: float = 0.1,
        mu: Any = WEIGHTS[1:-1],
        n_neighbors: Any = None,
        graph: Any = "heat",
        beta: Any = None,
        connect: bool = True,
        neighbors: Any = None,
        cv: int = 5,
        n_repeats: int = 1,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_components,
            alpha=alpha,
            ridge=ridge,
            mu=mu,
            n_neighbors=n_neighbors,
            graph=graph,
            beta=beta,
            connect=connect,
            neighbors=neighbors,
            verbose=verbose,
        )
        self.cv = cv
        self.n_repeats = n_repeats
        self.random_state = random_state

    def _builder(self) -> Any:
        return choice(Margin, self, lam=1.0, constraint="identity")

    def _weighted(self, builder: Any, weights: dict[str, float]) -> Any:
        return builder.set_params(lam=weights["alpha"])

    def _smoothed(self, weights: dict[str, float]) -> Any:
        return Ridge(weights["mu"], ridge=as_positive(self.ridge, "ridge"))

    def _tried(
        self, rows: Rows, labels: Labels, L: Any, d: int, grids: dict[str, list[float]], hidden: list[Hidden]
    ) -> Tried:
        places = labels.labelled
        codes = labels.codes[places]
        regression = self._smoothed({"mu": 1.0}).prepare(rows)
        for mu in grids["mu"]:
            smoother = regression.with_weight(mu)
            for alpha in grids["alpha"]:
                builder, found = self._weighted(self._builder(), {"alpha": alpha}), 0
                for known, out in hidden:
                    some = labels.codes.copy()
                    some[places[out]] = -1
                    solution = embed(builder.assemble(Labels(labels.classes, some), rows.n, L), smoother, d)
                    assert solution.map is not None
                    mapped = solution.map.predict(rows.X[places[out]].astype(np.float64))
                    found += nearest_right(solution.Y[places[known]], mapped, codes[known], codes[out])
                yield (alpha, mu), found
